#!/usr/bin/perl
# Programs that free everything pass both gates of docs/ci.md (lost blocks and remaining blocks)
# every time. HSNAP_CLEAN_ROUNDS (1) is the number of runs of each program; make check-clean uses
# 20.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use File::Basename qw(dirname);
use Test::More;
use Hunt;

my $rounds = $ENV{HSNAP_CLEAN_ROUNDS} // 1;
my $dir = fresh_dir();
my $mingw = 'x86_64-w64-mingw32';
for my $case (['environment.c', 'gcc-win32'], ['threads.c', 'gcc-posix', '-pthread'], ['strings.cpp', 'g++-win32'], ['threads.cpp', 'g++-posix', '-pthread']) {
	my ($source, $compiler, @options) = @$case;
	subtest "$source, $compiler, static" => sub { runs_clean("$root/tests/clean/$source", $compiler, '-static', @options) };
	subtest "$source, $compiler, with DLLs" => sub { runs_clean("$root/tests/clean/$source", $compiler, @options) };
}
done_testing;

sub runs_clean {
	my ($source, $compiler, @options) = @_;
	plan(skip_all => "no $mingw-$compiler") if !grep { -x "$_/$mingw-$compiler" } split /:/, $ENV{PATH};
	my $made = run(["$mingw-$compiler", qw(-g -O1), $source, @options, '-o', "$dir/clean.exe"]);
	is("$made->{status}$made->{err}", '0', 'it is built') or return;
	my %folders = map { dirname($_) => 1 } grep { m{/} } map { run(["$mingw-$compiler", "-print-file-name=$_"])->{out} =~ s/\s+$//r } qw(libstdc++-6.dll libwinpthread-1.dll);
	my $env = { WINEPATH => join ';', map { win($_) } sort keys %folders };
	for my $round (1 .. $rounds) {
		for my $gate (['what is lost', ['-g'], ['--lost']], ['what is left', [], []]) {
			my ($name, $run, $diff) = @$gate;
			my $exit = "$dir/exit.txt";
			my $ran = run([wine("$root/build/win64/hsnap.exe", 'run', @$run, '--at-exit', win($exit), '--', win("$dir/clean.exe"))], env => $env);
			is($ran->{status}, 0, "$name: it runs") or diag($ran->{err});
			my $got = run(tool('hdiff', 'linux', @$diff, '--suppress=runtime', '--max-growth', 0, $exit));
			is($got->{status}, 0, "$name, round $round: the gate is open") or diag($got->{err}, $got->{out});
		}
	}
}
