#!/usr/bin/perl
# A program states every block that it allocates, through each allocation function. All blocks are
# in the tracer's tables, in a walk of the heaps, and, without a tracer, in the sums.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;

subtest 'with the tracer' => \&traced;
subtest 'without the tracer' => \&untraced;
done_testing;

sub traced {
	my $dir = fresh_dir();
	my $target = start_stating('targets/every_block.exe', [], traced => 1);
	for my $step (1 .. 4) {
		my $said = $step == 1 ? stated($target) : next_stated($target);
		for my $how ([], ['--walk']) {
			my $file = "$dir/$step@$how.txt";
			check_ok(hsnap(@$how, '-p', $target->{pid}, '-f', win($file)), "step $step: a snapshot @$how");
			check_blocks($file, $said, "step $step @$how") if -s $file;
		}
	}
	is($target->quit, 0, 'the program ends');
}

# In a heap of Wine 9 or later, a block of this function that was shrunk in place still has its old
# size.
sub untraced {
	my $dir = fresh_dir();
	my $target = start_stating('targets/every_block.exe');
	for my $step (1 .. 4) {
		my $said = $step == 1 ? stated($target) : next_stated($target);
		my $file = "$dir/$step.txt";
		check_stackless(hsnap('-p', $target->{pid}, '-f', win($file)), "step $step: a snapshot");
		check_heap_sums($file, $said, "step $step", 'moved') if -s $file;
	}
	is($target->quit, 0, 'the program ends');
}
