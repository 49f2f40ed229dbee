#!/usr/bin/perl
# Complete call chains in two programs: one built with frame pointers, and an optimized one without
# them.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;

for my $name (qw(chains chains_fpo)) {
	subtest $name => sub { whole($name) };
}
done_testing;

sub whole {
	my ($name) = @_;
	my $dir = fresh_dir();
	my $target = start_stating("targets/$name.exe", [], traced => 1);
	my @said = (stated($target));
	snapshot($target->{pid}, "$dir/1.txt") or return;
	check_sums(["$dir/1.txt"], $name, $said[0]{sums}, 'step 1');
	check_chains("$dir/1.txt", $name, $said[0], 'step 1');
	push @said, next_stated($target);
	snapshot($target->{pid}, "$dir/2.txt") or return;
	check_sums(["$dir/1.txt", "$dir/2.txt"], $name, growth_of(@said), 'growth');
	is($target->quit, 0, 'the program ends');
}
