#!/usr/bin/perl
# A recording with two marks, and the allocations between them. Tested for a recording that begins
# at the program's start, and for one of a running program.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;

my %step = map { my ($truth) = $_; ($truth->[2][0] => [@$truth[3, 4]]) } grep { $_->[0] == 1 } truths('leak_heaps');

subtest 'from its start' => \&started;
subtest 'of a program that runs' => \&running;
done_testing;

sub started {
	my $file = fresh_dir() . '/run.hrec';
	my $target = start_stating('samples/leak_heaps.exe', [], record => ['-o', win($file)]);
	is($target->step, 1, 'step 1');
	sleep 1; # the program waits: its last event was earlier
	marked($target, 'one');
	is($target->next_step, 2, 'step 2');
	marked($target, 'two');
	is($target->quit, 0, "its status is the program's");
	my %at = reverse run(["$root/build/linux/hdiff", '--list', $file])->{out} =~ /^mark +([\d.]+) s +(\w+)/mg;
	cmp_ok($at{one} // 0, '>=', 1, 'a mark has its own time, not that of the event before it');
	cmp_ok($at{two} // 0, '>=', $at{one} // 9, 'in order');
	is(slurp("$target->{err}"), '', 'no complaint');
	check_sums(["$file\@one", "$file\@two"], 'leak_heaps', \%step, 'between the marks');
}

sub running {
	my $file = fresh_dir() . '/part.hrec';
	my $err = File::Temp->new;
	my $target = start_stating('samples/leak_heaps.exe');
	is($target->step, 1, 'step 1');
	my $recorder = Hunt::start([wine($Hunt::hsnap, 'record', '-o', win($file), '-p', $target->{pid})], stderr => "$err");
	marked($target, 'one');
	is($target->next_step, 2, 'step 2');
	marked($target, 'two');
	check_ok(hsnap('record', '--stop', '-p', $target->{pid}), '--stop');
	is(Hunt::finish($recorder) >> 8, 0, 'the recorder ends') or diag(slurp("$err"));
	is($target->quit, 0, 'so does the program');
	# The block of grow_table is older, because it was moved.
	my %known = map { $_ => $step{$_} } grep { $_ ne 'grow_table' } keys %step;
	check_sums(["$file\@one", "$file\@two"], 'leak_heaps', \%known, 'between the marks');
}
