#!/usr/bin/perl
# hsnap record of a process that is already traced. Older blocks have the stacks that the tracer
# knows. New blocks are recorded to the byte, whatever the threads are doing when a recording begins
# and ends. The tracer stays as it was.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Time::HiRes qw(sleep);
use Hunt;
use Replay;

my $dir = fresh_dir();
my $record = "$root/build/win64/hsnap.exe";

subtest 'under hsnap run' => sub { traced('run') };
subtest 'attached' => sub { traced('attach') };
subtest 'while threads work' => \&stressed;
subtest 'after a recorder was killed' => \&killed;
done_testing;

sub recorder {
	my ($target, $name, @more) = @_;
	my $pid = Hunt::start([wine($record, 'record', '-v', @more, '-o', win("$dir/$name.hrec"), '-p', $target->{pid})], stderr => "$dir/$name.err");
	for (1 .. 10 * $Hunt::limit) {
		return $pid if !hsnap('mark', '-p', $target->{pid}, 'begin')->{status};
		sleep 0.1;
	}
	diag(slurp("$dir/$name.err"));
	return;
}

sub ended {
	my ($target, $recorder, $name) = @_;
	check_ok(hsnap('record', '--stop', '-p', $target->{pid}), "$name: --stop");
	return is(Hunt::finish($recorder) >> 8, 0, "$name: it ends well") || diag(slurp("$dir/$name.err"));
}

sub rows { return rows_by_functions(report(run(tool('hdiff', 'linux', '--match', 'function', @_))->{out}), 'memory_test') }

# memory_test states its events. Blocks from before the recording have their stacks, and are freed
# during it.
sub traced {
	my ($how) = @_;
	my @stops = map { ('--stop', $_) } $how eq 'attach' ? (50) : (), 900, 1900, 2500, 2900;
	my $target = target("$root/build/win64/samples/memory_test.exe", ['--seconds', 3, '--events', win("$dir/$how.events"), @stops],
		traced => $how eq 'run');
	is($target->step, 1, 'it runs') or return;
	my $stop = 1;
	if ($how eq 'attach') {
		check_ok(hsnap('attach', '-p', $target->{pid}), 'attach');
		is($target->next_step, ++$stop, 'it went on');
	}
	my $begin = $stop;
	my $recorder = recorder($target, $how) or return ok(0, 'it is recorded');
	check_ok(hsnap('-p', $target->{pid}, '-f', win("$dir/$how-begin.txt")), 'a snapshot when it begins');
	check_error(hsnap('record', '-o', win("$dir/second.hrec"), '-p', $target->{pid}), 'hsnap', 'a second recorder', qr/another hsnap/);
	is($target->next_step, ++$stop, 'it goes on');
	my $middle = $stop;
	check_ok(hsnap('mark', '-p', $target->{pid}, 'middle'), 'a mark');
	is($target->next_step, ++$stop, 'and on');
	check_ok(hsnap('-p', $target->{pid}, '-f', win("$dir/$how-end.txt")), 'a snapshot before it ends');
	ended($target, $recorder, $how) or return;
	$recorder = recorder($target, "$how-again") or return ok(0, 'it is recorded again');
	is($target->next_step, ++$stop, 'the program goes on');
	check_ok(hsnap('-p', $target->{pid}, '-f', win("$dir/$how-later.txt")), 'the tracer is as it was');
	ended($target, $recorder, "$how-again") or return;
	is($target->quit, 0, 'the program ends well');

	my $replay = Replay->new(slurp("$dir/$how.events"));
	my %at = (begin => $replay->mark("stop $begin"), middle => $replay->mark("stop $middle"), end => $replay->mark('stop ' . ($middle + 1)));
	my $file = "$dir/$how.hrec";
	for my $window (['begin', 'middle'], ['begin', 'end'], ['middle', 'end']) {
		my ($from, $to) = @$window;
		my $classes = $replay->window(@at{$from, $to}, ['stack']);
		for my $class (qw(aifo aifi aofi aofo)) {
			# Blocks from before attach have no stack.
			next if $how eq 'attach' && $class =~ /^ao/;
			my %truth = map { $_ => [@{ $classes->{$_}{$class} }{qw(bytes count)}] } grep { $classes->{$_}{$class}{count} } keys %$classes;
			is_deeply(rows('--class', $class, '--from', $from, '--to', $to, $file), \%truth, "$from to $to, $class");
		}
	}
	for my $moment ('begin', 'end') {
		is_deeply(rows('--force', "$dir/$how-$moment.txt", "$file\@$moment"), {}, "a snapshot at its $moment is that moment");
	}
	is_deeply(rows('--force', "$dir/$how-later.txt", "$dir/$how-again.hrec\@end"), {}, 'so is one in the next recording');
	cmp_ok(scalar keys %{ rows("$dir/$how-later.txt") }, '>', 0, 'which has stacks');
	return;
}

# Eight threads allocate and reallocate blocks, and free each other's blocks, all the time.
sub stressed {
	my $target = target("$root/build/win64/targets/stress.exe", [8, 100_000_000, 3], traced => 1);
	is($target->step, 1, 'it begins') or return;
	syswrite $target->{to}, "\n";
	for my $round (1 .. 3) {
		my $recorder = recorder($target, "stress$round", '--ring', '64M') or return ok(0, "recording $round begins");
		sleep 0.5;
		if ($round == 3) {
			syswrite $target->{to}, "\n";
			my (%made, $line);
			while (defined($line = $target->line) && $line =~ /^made (\w+) (\d+) (\d+)$/) {
				$made{$1} = [$3, $2] if $2;
			}
			like($line // 'nothing', qr/^step 2 pid \d+$/, 'all threads have ended') or return;
			hsnap('mark', '-p', $target->{pid}, 'rest');
			check_ok(hsnap('-p', $target->{pid}, '-f', win("$dir/stress.txt")), 'a snapshot then');
			is($target->next_step, 3, 'all is freed');
			ended($target, $recorder, "stress$round") or return;
			is_deeply(makers("$dir/stress3.hrec\@rest"), \%made, 'what is left has the stacks of those who made it, to the byte');
			is_deeply(makers("$dir/stress3.hrec\@end"), {}, 'and what is freed is gone');
			my ($rest, $taken) = map { stackless($_) } "$dir/stress3.hrec\@rest", "$dir/stress.txt";
			is($rest, $taken, 'no block is there without a stack but those of a snapshot');
		} else {
			ended($target, $recorder, "stress$round") or return;
		}
	}
	is($target->quit, 0, 'the program ends well');
	return;
}

# Returns bytes and blocks, by the function of the program that allocated them.
sub makers {
	my %rows;
	for my $row (@{ report(run(tool('hdiff', 'linux', @_))->{out})->{rows} }) {
		my ($maker) = grep { /^(?:re)?make_/ } map { $_->{function} } chain_of($row, 'stress') or next;
		$rows{$maker}[0] += $row->{bytes};
		$rows{$maker}[1] += $row->{count};
	}
	return \%rows;
}

sub stackless {
	my ($report) = report(run(tool('hdiff', 'linux', '--no-symbols', @_))->{out});
	my $count = 0;
	$count += $_->{count} for grep { $_->{frames}[0]{none} } @{ $report->{rows} };
	return $count;
}

# The tracer that the recording injected continues, and the next recording has the blocks that this
# tracer recorded.
sub killed {
	needs_linux("Linux's /proc");
	my $target = target("$root/build/win64/samples/memory_test.exe",
		['--seconds', 3, '--events', win("$dir/killed.events"), map { ('--stop', $_) } 300, 900, 1800, 2800]);
	is($target->step, 1, 'it runs') or return;
	my $recorder = recorder($target, 'killed') or return ok(0, 'it is recorded');
	is($target->next_step, 2, 'it goes on');
	kill 'KILL', wine_process($recorder, $record);
	Hunt::finish($recorder);
	is($target->next_step, 3, 'also without the recorder');
	$recorder = recorder($target, 'next') or return ok(0, 'it is recorded again');
	is($target->next_step, 4, 'and on');
	ended($target, $recorder, 'next') or return;
	is($target->quit, 0, 'it ends well');
	my $replay = Replay->new(slurp("$dir/killed.events"));
	my $classes = $replay->window((map { $replay->mark("stop $_") } 1, 3), ['stack']);
	my %truth = map { $_ => [@{ $classes->{$_}{aifo} }{qw(bytes count)}] } grep { $classes->{$_}{aifo}{count} } keys %$classes;
	is_deeply(rows("$dir/next.hrec\@start"), \%truth, 'what was done since the first recorder came has its stacks');
	return;
}
