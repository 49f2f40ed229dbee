#!/usr/bin/perl
# A program that uses every TLS slot in its threads' own blocks is traced like any other, even while
# threads end and new threads reuse their slots.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;

subtest 'run' => \&run_it;
subtest "attach @$_" => sub { attach_to_it(@$_) } for [], ['--sample', 1];
subtest 'a recording' => \&record_it;
done_testing;

sub run_it {
	my $dir = fresh_dir();
	my $target = start_stating('targets/no_slots.exe', [], traced => 1);
	for my $step (1 .. 3) {
		my $said = $step == 1 ? stated($target) : next_stated($target);
		for my $how ([], ['--walk']) {
			my $file = "$dir/$step@$how.txt";
			check_ok(hsnap(@$how, '-p', $target->{pid}, '-f', win($file)), "step $step: a snapshot @$how");
			check_sums([$file], 'no_slots', $said->{sums}, "step $step @$how");
		}
	}
	is($target->quit, 0, 'the program ends');
}

sub attach_to_it {
	my @how = @_;
	my $dir = fresh_dir();
	my $target = start_stating('targets/no_slots.exe');
	my $said = stated($target);
	for my $round (1 .. 3) {
		check_ok(hsnap('attach', '-p', $target->{pid}, @how), "attach, round $round");
		# A snapshot of sampled blocks has warnings, so only its status is checked.
		is(hsnap('-p', $target->{pid}, '-f', win("$dir/$round-1.txt"))->{status}, 0, 'a snapshot');
		my $after = next_stated($target);
		is(hsnap('-p', $target->{pid}, '-f', win("$dir/$round-2.txt"))->{status}, 0, 'another one');
		check_sums(["$dir/$round-1.txt", "$dir/$round-2.txt"], 'no_slots', growth_of($said, $after), "growth, round $round", 1);
		check_ok(hsnap('detach', '-p', $target->{pid}), 'detach');
		$said = $after;
	}
	is($target->quit, 0, 'the program ends');
}

# Each thread has its own ring or shares one, so no event is lost.
sub record_it {
	my $dir = fresh_dir();
	my $target = start_stating('targets/no_slots.exe', [], record => ['-o', win("$dir/out.hrec")]);
	my $said = stated($target);
	$said = next_stated($target) for 1, 2;
	is($target->quit, 0, 'the program ends');
	check_sums(["$dir/out.hrec\@end"], 'no_slots', $said->{sums}, 'at the end of the recording', 1);
}
