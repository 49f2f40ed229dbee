#!/usr/bin/perl
# hsnap ps shows a process, its bits, the number of its heaps as the system counts them, and the
# source of stacks.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;

use File::Copy qw(copy);

# A 32-bit process with a 64-bit half has one more heap in that half. The 64-bit hsnap counts this
# heap too.
my $others = ($ENV{HSNAP_CELL_WINE} // '') eq '10-wow64' && $target_bits == 32 && $hsnap_bits == 64 ? 1 : 0;
my $name = "shown$$";
my $exe = fresh_dir() . "/$name.exe";
copy(target_path('targets/every_block.exe'), $exe) or die "$exe: $!\n";
for my $case (['none'], ['tracer', traced => 1]) {
	my ($stacks, %how) = @$case;
	my $target = target($exe, [], %how);
	my $said = stated($target);
	my $result = hsnap('ps', $name);
	is($result->{status}, 0, "$stacks: ps");
	my ($row) = grep { /^ *$target->{pid} / } split /\r?\n/, $result->{out};
	my @columns = ($row // '') =~ /^ *\d+ +(\S+) +(\S+) +(\S+) +[\d.]+ [KMG]iB +\S+ +\S+ +\S+ +(\S+)/;
	is_deeply(\@columns, [$target_bits, $said->{heaps} + $others, $stacks, "$name.exe"], "$stacks: bits, heaps, stacks, name") or diag($result->{out});
	is($target->quit, 0, 'the program ends');
}
done_testing;
