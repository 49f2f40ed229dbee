#!/usr/bin/perl
# The samples' leaks between two snapshots, to the byte, by function.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;

for my $name (qw(leak_steady leak_realloc leak_threads leak_heaps)) {
	subtest $name => sub { leaks($name) };
}
done_testing;

sub leaks {
	my ($name) = @_;
	my $dir = fresh_dir();
	my $target = start_stating("samples/$name.exe", [], traced => 1);
	is($target->step, 1, 'step 1');
	snapshot($target->{pid}, "$dir/1.txt") or return;
	is($target->next_step, 2, 'step 2');
	snapshot($target->{pid}, "$dir/2.txt") or return;
	is($target->quit, 0, 'it ends as it would untraced');
	my %sums = map { ($_->[2][0] => [@$_[3, 4]]) } grep { $_->[0] == 1 && $_->[1] == 2 } truths($name);
	check_sums(["$dir/1.txt", "$dir/2.txt"], $name, \%sums, 'growth');
	# Rows are named after the program's functions, not after the C library's allocators.
	my %named = map { s/^$name!//r => 1 } run(["$root/build/linux/hdiff", "$dir/1.txt", "$dir/2.txt"])->{out} =~ /^ +\d+ +\+.*? % +(\S+)/mg;
	ok(%named && !grep({ !$sums{$_} } keys %named), 'rows have the names of functions that leak') or diag(join ' ', sort keys %named);
}
