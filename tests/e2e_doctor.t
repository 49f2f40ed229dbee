#!/usr/bin/perl
# hsnap doctor reads a child with known blocks, alive and from a minidump, and finds no fault. It
# names missing parts, and leaves nothing when killed. tests/unit/test_doctor.c proves that the
# doctor detects wrong readings.
use strict;
use warnings;
use File::Glob ':bsd_glob';    # paths may have blanks
use File::Basename qw(basename dirname);
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Time::HiRes qw(time);
use Hunt;

my $prefix = $ENV{HSNAP_WINE_PREFIX} // "$root/build/wine";
my $dir = fresh_dir();
my $exe = fresh_dir() . '/hsnap.exe'; # a name that no other test uses
copy("$root/build/win64/" . basename($_), $_) or die "$_: $!\n" for $exe, dirname($exe) . '/hsnap-tracer64.dll';

# The long form, with every row.
my $doctor = run([wine($exe, 'doctor', '-v')]);
is($doctor->{status}, 0, 'nothing is off: status 0');
is($doctor->{err}, '', 'no complaint');
my @rows = rows($doctor->{out});
is_deeply([grep { $_->{ok} eq 'OFF' } @rows], [], 'no row is off');
my @counted = grep { $_->{expected} ne '-' } @rows;
is_deeply([grep { $_->{expected} != $_->{found} } @counted], [], 'what is ok has equal numbers');
like($doctor->{out}, qr/^Everything was read correctly\.$/m, 'and reports it');

my @heaps = ('process heap', 'growable', 'fixed maximum', 'no-serialize');
my @groups = ('blocks of 0 to 1024 bytes', 'blocks to 16 KiB', 'blocks to 256 KiB', 'reallocated blocks');
for my $source ('walk', 'file', 'walk+ust', 'tracer') {
	for my $heap (@heaps) {
		my %found = map { $_->{what} => $_->{found} }
		    grep { $_->{source} eq $source && $_->{heap} eq $heap } @rows;
		my @missing = grep { !$found{$_} } @groups, $heap eq 'fixed maximum' ? () : 'big blocks',
		    $heap eq 'process heap' ? () : 'freed blocks gone', $source eq 'tracer' ? 'stacks' : ();
		is_deeply(\@missing, [], "$source, $heap: every kind of block was there and found");
		is($found{'blocks that overlap'}, 0, "$source, $heap: none in another");
		is($found{'other blocks'}, 0, "$source, $heap: and nothing else")
		    if $heap ne 'process heap';
	}
}
for my $source ('walk', 'file', 'walk+ust') {
	my %found = map { $_->{what} => $_->{found} } grep { $_->{source} eq $source && $_->{heap} eq '' } @rows;
	cmp_ok($found{'heaps of GetProcessHeaps()'}, '>=', @heaps, "$source: heaps that the child lists were found");
	is($found{'other heaps'}, 0, "$source: and no other heaps");
}
my ($stacks) = map { $_->{found} } grep { $_->{source} eq 'tracer' && $_->{what} eq 'stacks' } @rows;
cmp_ok($stacks, '>', 2000, 'stacks of thousands of blocks lead to where they were allocated');
my $layout = wine_version() < 9 ? 8 : 9; # the heaps of Wine 9 to 11 are alike
my %verdicts = map { ("$_->{source} $_->{what}" => $_->{ok}) } @rows;
is($verdicts{'ust dump'}, 'not there', 'Wine has no stacks of +ust, and that is not called ok');
is($verdicts{'walk segment heap'}, 'not there', 'nor a segment heap');
is($verdicts{'walk low fragmentation heap'}, $layout < 9 ? 'not there' : undef, 'a low fragmentation heap: not before Wine 9');
like($doctor->{out}, qr/^NtGlobalFlag +1000 in the child with \+ust\r?$/m, 'the flag was set in the child');
like($doctor->{out}, qr/^\Q$_\E +kind wine, layout wine $layout\.0 x64,/m, "$_: the layout that read it") for @heaps;
unlike($doctor->{out}, qr/as an administrator/, 'which no administrator can help');
like($doctor->{out}, qr/^lists of heaps +GetProcessHeaps\(\) \d+, PEB\.NumberOfHeaps \d+, in the 64-bit child\r?$/m, 'the lengths of both lists of heaps');
like($doctor->{out}, qr/^held +by suspending it\r?$/m, 'how it was held: Wine has no clones');
my ($reason) = $doctor->{out} =~ /^not there: ust, (.*)$/m;
like($reason, qr/\(.*\)$/, "ust: why not, and nothing that cannot help: $reason");
ok(soon(sub { !unix_pids($exe) && !children() }), 'no process is left');
is_deeply([minidumps()], [], 'nor a minidump');

# The short form, by an hsnap.exe that lacks its DLL and a folder to write to. (Wine takes TMP from
# its registry, so TMP is set inside.) The missing DLL is a fault that can be fixed; the missing
# folder is not a fault.
copy($exe, "$dir/hsnap.exe") or die "$dir/hsnap.exe: $!\n";
spew("$dir/doctor.bat", join "\r\n", '@set TMP=' . win("$dir/none"), '@set TEMP=%TMP%',
	'@' . win("$dir/hsnap.exe") . ' doctor', '@exit /b %errorlevel%', '');
my $alone = run([wine('cmd', '/c', win("$dir/doctor.bat"))]);
is($alone->{status}, 1, 'without its DLL: status 1');
like($alone->{out}, qr/^OFF: tracer, the child: .*keep hsnap-tracer64\.dll and hsnap-tracer32\.dll beside hsnap\.exe/m, 'and what to do');
like($alone->{out}, qr/^1 row is OFF: do not trust .*\n\z/m, 'the last line reports only this row');
like($alone->{out}, qr/^not there: file, a minidump: .*cannot create \(.+\)/m, 'a missing place for a file is reported');
for my $source ('walk', 'walk+ust') {
	for my $heap (@heaps) {
		my $sum = 0;
		$sum += $_->{found} for grep { $_->{source} eq $source && $_->{heap} eq $heap
		    && $_->{what} =~ /^(?:blocks (?:of|to)|big|reallocated) / } @rows;
		my $start = sprintf '%-9s %-14s %d/%d blocks', $source, $heap, $sum, $sum;
		like($alone->{out}, qr{^\Q$start\E\b.* ok\r?$}m, "in short: $source, $heap: $sum blocks");
	}
}

# The doctor is killed while it writes a minidump of its child.
my $pid = Hunt::start([wine($exe, 'doctor')]);
ok(soon(\&minidumps), 'a minidump is there');
my @doctor = unix_pids($exe);
cmp_ok(scalar(children()), '>', 0, 'and the child');
kill KILL => @doctor;
Hunt::finish($pid);
ok(soon(sub { !children() }), 'killed: the child ends');
ok(soon(sub { !minidumps() }), 'killed: no minidump stays');

check_error(hsnap('doctor', 'me'), 'hsnap', 'an argument', 'me', 'doctor');
check_error(hsnap('doctor', '--fast'), 'hsnap', 'an unknown option', '--fast');
is(hsnap('doctor', '-v', '--child')->{status}, 2, 'nor is --child an option');
is(hsnap('doctor', '--child', 1, 2, 3, 'x')->{status}, 2, 'the child does not run without its parent');
my $linux = run(["$root/build/linux/hsnap", 'doctor']);
check_error($linux, 'hsnap', 'elsewhere', 'doctor', 'Windows');
done_testing;

# Returns the doctor's children that run in this test's prefix.
sub children {
	return grep {
		my $pid = $_;
		my ($command, $environ) = map { eval { slurp("/proc/$pid/$_") } // '' } qw(cmdline environ);
		$command =~ /^hsnap\0doctor\0--child\0/ && "\0$environ" =~ /\0WINEPREFIX=\Q$prefix\E\0/;
	} map { m{(\d+)$} } glob '/proc/[0-9]*';
}

# Waits until $done->() is true; returns false after a time limit.
sub soon {
	my ($done) = @_;
	my $until = time + $Hunt::limit;
	until ($done->()) {
		return 0 if time > $until;
		select undef, undef, undef, 0.02;
	}
	return 1;
}

sub minidumps { return glob "$prefix/drive_c/users/*/{,AppData/Local/}Temp/hsnap-doctor-*.dmp" }

# Returns the table's rows, each split into words by columns of fixed width.
sub rows {
	my ($text) = @_;
	my @rows;
	for (split /\r?\n/, $text) {
		my @columns = /^(.{9}) (.{14}) (.{26}) ( *\d+| *-) ( *\d+| *-)  (ok|note|OFF|not there)$/ or next;
		s/^ +| +$//g for @columns;
		my %row;
		@row{qw(source heap what expected found ok)} = @columns;
		push @rows, \%row;
	}
	return @rows;
}
