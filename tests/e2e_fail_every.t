#!/usr/bin/perl
# Whichever call to the system or to the C library fails, hsnap ends cleanly.
# build/win64/fail/hsnap.exe makes the calls fail. Tests a sample of the calls, which
# tests/fail-every chooses, or every call with the option --all.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

needs_linux("Linux's /proc");
my @bad;
open my $from, '-|', $^X, "$Bin/fail-every" or die "fail-every: $!\n";
while (my $line = <$from>) {
	if ($line !~ /^(\S+): \d+ calls of \d+ functions, (\d+) failed once, (\d+) bad$/) {
		push @bad, $line;
		next;
	}
	ok($2 > 1 && !$3 && !@bad, "$1: no call that fails does harm") or diag($line, splice @bad);
}
close $from;
is_deeply([$?, @bad], [0], 'it comes to its end');
done_testing;
