#!/usr/bin/perl
# Eight threads allocate, reallocate and free each other's blocks, while libraries are loaded and
# unloaded and snapshots are taken. Nothing crashes, no block is lost, and no block has another
# block's stack.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use List::Util qw(sum0);
use Test::More;
use Hunt;

my $dir = fresh_dir();
my $threads = 8;
my $rounds = $ENV{HSNAP_STRESS_ROUNDS} // 10_000_000;
for my $seed (1, 2) {
	my $target = target("$root/build/win64/targets/stress.exe", [$threads, $rounds, $seed], traced => 1);
	is($target->step, 1, "seed $seed: it begins") or last;
	my $before = stackless(taken($target, "before$seed"));
	syswrite $target->{to}, "\n";
	# A thread that moves a block may have two unrecorded blocks: the old block, which the
	# tracer's table no longer has, and the new block, which the table does not have yet. One
	# more thread loads the libraries.
	for my $i (1 .. 5) {
		my $found = stackless(taken($target, "while$seed-$i"));
		cmp_ok($found, '<=', $before + 2 * ($threads + 1), "snapshot $i while they work: every block has its stack");
	}
	syswrite $target->{to}, "\n";
	my (%made, $line);
	while (defined($line = $target->line) && $line =~ /^made (\w+) (\d+) (\d+)$/) {
		$made{$1} = [$2, $3] if $2;
	}
	like($line // 'nothing', qr/^step 2 pid \d+$/, 'all threads have ended') or last;
	my $file = taken($target, "after$seed");
	cmp_ok(scalar(keys %made), '>', 16, 'blocks are left of many makers');
	is_deeply(rows_of($file), \%made, 'what is left has the stacks of those who made it, to the byte');
	is(stackless($file), $before, 'no block is without a stack that was made meanwhile');
	is($target->next_step, 3, 'everything is freed') or last;
	is_deeply(rows_of(taken($target, "freed$seed")), {}, 'and nothing of it is listed any more');
	is($target->quit, 0, 'the program ends well');
}
done_testing;

sub taken {
	my ($target, $name) = @_;
	my $result = hsnap('-p', $target->{pid}, '-f', win("$dir/$name.txt"));
	# The target loads libraries in turn. A library may be where another one was before.
	$result->{err} =~ s/\Ahsnap: .*warning: \d+ modules? (?:was|were) loaded at the place of an earlier one .*\n//;
	# If processors are few, eight threads may hold a heap's lock at every attempt. hsnap
	# reports that, and takes the blocks from the tracer's table, so the following checks still
	# hold.
	$result->{err} =~ s/\Ahsnap: .*warning: \d+ heaps? (?:was|were) locked on every try, .*\n// if $name =~ /^while/;
	check_ok($result, "snapshot $name");
	return "$dir/$name.txt";
}

sub stackless {
	my ($file) = @_;
	return sum0(slurp($file) =~ /^\/\/ hsnap: heap .*\bstackless-blocks=(\d+)/mg);
}

# Returns blocks and bytes, by the function of the program that allocated them.
sub rows_of {
	my ($file) = @_;
	my $diff = run(tool('hdiff', 'linux', $file));
	check_ok($diff, 'hdiff');
	my %rows;
	for my $row (@{ report($diff->{out})->{rows} }) {
		my ($first) = chain_of($row, 'stress') or next;
		next if $first->{function} !~ /^(?:re)?make_/;
		$rows{ $first->{function} }[0] += $row->{count};
		$rows{ $first->{function} }[1] += $row->{bytes};
	}
	return \%rows;
}
