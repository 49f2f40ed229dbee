#!/usr/bin/perl
# A C++ program: the standard library's allocations belong to the function that called the library,
# even after exceptions.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;

my $dir = fresh_dir();
my $target = start_stating('targets/collections.exe', [], traced => 1);
my @said = (stated($target));
snapshot($target->{pid}, "$dir/1.txt"); # up to this point the library keeps some blocks for itself
for my $step (2, 3) {
	push @said, next_stated($target);
	snapshot($target->{pid}, "$dir/$step.txt");
	check_sums(["$dir/1.txt", "$dir/$step.txt"], 'collections', growth_of($said[0], $said[-1]), "growth up to step $step");
}
is($target->quit, 0, 'the program ends');
done_testing;
