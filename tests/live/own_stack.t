#!/usr/bin/perl
# A program allocates on stacks that its threads' own blocks do not describe. Its blocks have their
# callers. Memory that its heap gets from the system for these blocks is not counted again.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use JSON::PP;
use Test::More;
use Cell;
use Hunt;

my $dir = fresh_dir();
subtest 'run' => sub { grown(traced => 1) };
subtest 'attach' => sub { grown() };
done_testing;

sub grown {
	my (%how) = @_;
	my $target = target(target_path('targets/own_stack.exe'), [], %how);
	is($target->step, 1, 'the program runs');
	check_ok(hsnap('attach', '-p', $target->{pid}), 'attach') if !$how{traced};
	for my $step (2 .. 4) {
		is($target->next_step, $step, 'it goes on');
		check_ok(hsnap('-p', $target->{pid}, '-f', win("$dir/$step.txt")), 'a snapshot');
		next if $step == 2;
		my $report = decode_json(run(tool('hdiff', 'linux', '-o', 'json', "$dir/" . ($step - 1) . '.txt', "$dir/$step.txt"))->{out});
		my ($blocks, $bytes, $all, $bare) = (0, 0, 0, 0);
		for my $row (@{ $report->{rows} }) {
			my @names = map { $_->{function} // '' } @{ $row->{frames} };
			$all += $row->{growth}{bytes};
			next if !grep { $_ eq 'leak_on_own' } @names;
			$blocks += $row->{growth}{blocks};
			$bytes += $row->{growth}{bytes};
			$bare += !grep { $_ eq 'run_on_own' } @names;
		}
		is($blocks, 6000, 'blocks of leak_on_own()');
		is($bytes, 6000 * 4321, 'and their bytes');
		is($bare, 0, 'all with its caller');
		is($all, 6000 * 4321 - ($step == 3 ? 32768 : 0), 'nothing else has grown');
	}
	is($target->quit, 0, 'the program ends');
}
