#!/usr/bin/perl
# DLLs in the current folder, beside the target or beside hsnap.exe do not replace the system's
# DLLs, and no program imports network DLLs.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use File::Copy qw(copy);
use Test::More;
use Hunt;

my $dir = fresh_dir();
my $planted = "$root/build/win64/targets/planted.dll";
# Makes Wine load files with these names instead of its own DLLs, as Windows does.
my @wanted = qw(ole32.dll oleaut32.dll dbghelp.dll dbgcore.dll symsrv.dll version.dll hsnap-tracer64.dll);
$ENV{HSNAP_WINE_DLLS} = join(',', map { s/\.dll$//r } @wanted) . '=n,b';
mkdir "$dir/$_" or die "$_: $!\n" for 'here', 'theirs', 'ours';
my $target = copied("$root/build/win64/samples/leak_steady.exe", 'theirs');
my $hsnap = copied("$root/build/win64/hsnap.exe", 'ours');
my %tool = map { $_ => copied("$root/build/win64/$_.exe", 'ours') } qw(hdiff hsym);
for my $folder ('here', 'theirs') {
	copy($planted, "$dir/$folder/$_") or die "$_: $!\n" for @wanted;
}
copy($planted, "$dir/ours/$_") or die "$_: $!\n" for grep { !/^hsnap/ } @wanted;
copied("$root/build/win64/hsnap-tracer64.dll", 'ours');


is(said($hsnap, 'run', '--at-exit', win("$dir/exit.txt"), '--', $target), '', 'hsnap run');
ok(-s "$dir/exit.txt", '... with its own tracer');
is(said($hsnap, 'schedule', 'remove', 'app.exe'), '', 'hsnap schedule, which needs COM');
# Wine 8 always loads this DLL late and from there.
unlink "$dir/ours/version.dll" or die "version.dll: $!\n";
is(said($hsnap, 'doctor'), '', 'hsnap doctor, which writes minidumps');
is(said($tool{hdiff}, win("$dir/exit.txt")), '', 'hdiff, which asks DbgHelp for names');
is(said($tool{hsym}, '-o', win("$dir/named.txt"), win("$dir/exit.txt")), '', 'hsym, which does too');
{
	local $ENV{HSYM_DBGHELP} = win("$dir/ours/dbghelp.dll");
	is(said($tool{hsym}, '-o', win("$dir/named.txt"), win("$dir/exit.txt")), 'ours\\dbghelp.dll', 'a loaded planted DLL reports it');
}

# Windows always takes these from its own folder, whatever files are beside a program ("KnownDLLs").
for my $name (qw(hsnap.exe hdiff.exe hsym.exe hsnap-tracer64.dll)) {
	my @dlls = run(['x86_64-w64-mingw32-objdump', '-p', "$root/build/win64/$name"])->{out} =~ /^\s*DLL Name: (\S+)$/mg;
	is_deeply([grep { !/^(?:advapi32|kernel32|msvcrt|ntdll)\.dll$/i } @dlls], [], "$name needs @dlls alone") if ok(@dlls > 0, "$name imports");
}
for my $name (qw(hsnap hdiff hsym)) {
	my @calls = run(['nm', '-D', '--undefined-only', "$root/build/linux/$name"])->{out} =~ / U (\w+)/g;
	is_deeply([grep { /^(?:socket|connect|bind|listen|accept4?|getaddrinfo|gethostby\w+|dlopen)$/ } @calls], [], "$name connects to nothing")
	    if ok(@calls > 0, "$name calls");
}
done_testing;

sub copied {
	my ($file, $folder) = @_;
	my ($name) = $file =~ m{([^/]+)$};
	copy($file, "$dir/$folder/$name") or die "$name: $!\n";
	return "$dir/$folder/$name";
}

# Runs a program in a folder with planted DLLs; returns the reports of those that were loaded.
sub said {
	my ($program, @args) = @_;
	my $result = run([wine($program, @args)], dir => "$dir/here");
	return join ' ', "$result->{out}$result->{err}" =~ /^PLANTED .*\\(\w+\\[\w.-]+)\r?$/mg;
}
