#!/usr/bin/perl
# make install: the installed programs work, and make uninstall removes all files.
use strict;
use warnings;
use File::Glob ':bsd_glob';    # paths may have blanks
use FindBin qw($Bin);
use lib "$Bin/lib";
use File::Basename;
use File::Find;
use Test::More;
use Hunt;

my $dir = fresh_dir();
my $to = "$dir/a place/usr";

sub make {
	my ($what) = @_;
	my $run = run(['env', '-u', 'MAKEFLAGS', 'make', '-s', '-C', $root, 'SETUP=no', $what, "DESTDIR=$dir/a place", 'PREFIX=/usr']);
	is("$run->{status} $run->{err}", '0 ', "make $what");
}

sub files {
	my @files;
	find({ no_chdir => 1, wanted => sub { push @files, substr $_, 1 + length $to if -f } }, $to);
	return [sort @files];
}

make('install');
my @pages = map { my ($section) = /(\d)$/; "share/man/man$section/" . basename($_) } glob "$root/man/*";
my @windows = map { "lib/hsnap/$_" } qw(hsnap.exe hsnap-tracer64.dll hsnap32.exe hsnap-tracer32.dll hdiff.exe hsym.exe);
is_deeply(files(), [sort @pages, @windows, 'share/doc/hsnap/LICENSE', 'include/hsnap-mark.h', map({ 'share/doc/hsnap/' . basename($_) } glob "$root/docs/*.md"),
		map { ("bin/$_", "share/bash-completion/completions/$_") } qw(hdiff hsnap hsym)],
	'programs, also for Windows and Wine, manuals, docs, completion, the header for marks and the licence');
for my $program (qw(hdiff hsnap hsym)) {
	like(run(["$to/bin/$program", '--version'])->{out}, qr/^$program \d/, "$program runs");
}
is((stat "$to/share/man/man1/hdiff.1")[2] & 07777, 0644, 'a manual is readable by all');

is(completed('hdiff', '--si'), '--since --size --sizes', 'options of hdiff');
is(completed('hsnap', 'doc'), 'doctor', 'commands of hsnap');
is(completed('hsnap', 'snapshot', '--sam'), '--sample-content', 'options of one');
is(completed('hsnap', '-p', 5, '--ev'), '--every', 'and those of a snapshot without a command');
is(completed('hsym', '--nothing'), '', 'what is none');
check_powershell();

spew("$to/bin/other", '');
make('uninstall');
is_deeply(files(), ['bin/other'], 'uninstall takes what install brought, and no more');
done_testing;

# Checks the patterns in PowerShell's completion, because PowerShell is not available here.
sub check_powershell {
	my ($options, $commands) = map { qr/$_/ } slurp("$root/setup/completion/hsnap.ps1") =~ /\$pattern = '([^']+)'/g;
	my $found = sub {
		my ($pattern, @command) = @_;
		my %words = map { /$pattern/ ? ($1 => 1) : () } split /\r?\n/, run([@command, '--help'])->{out};
		return join ' ', sort keys %words;
	};
	my @commands = split ' ', completed('hsnap', '');
	cmp_ok(scalar @commands, '>=', 10, 'hsnap has commands');
	is($found->($commands, "$to/bin/hsnap"), "@commands", 'PowerShell: commands');
	for my $words (['hdiff'], ['hsym'], map { ['hsnap', $_] } @commands) {
		my ($program, @command) = @$words;
		is($found->($options, "$to/bin/$program", @command), completed(@$words, '--'), "PowerShell: options of @$words");
	}
}

# Returns bash's completions of the last word.
sub completed {
	my @words = @_;
	my $script = 'source "$1"; shift; COMP_CWORD=$(($# - 1)); COMP_WORDS=("$@"); _hsnap_complete; echo "${COMPREPLY[*]}"';
	my $run = run(['env', "PATH=$to/bin:$ENV{PATH}", 'bash', '-c', $script, 'bash', "$to/share/bash-completion/completions/$words[0]", @words]);
	return join ' ', sort split ' ', $run->{out};
}
