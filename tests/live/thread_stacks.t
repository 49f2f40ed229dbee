#!/usr/bin/perl
# Stacks of threads are memory of the function that started the thread, from then until the thread
# ends. The truth is what targets/thread_stacks.c states, which sums up the stacks by VirtualQuery().
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;

my $dir = fresh_dir();
subtest 'from the start' => \&started;
subtest 'attached' => \&attached;
subtest 'recorded' => \&recorded;
done_testing;

# Checks the threads of each function in a dump. The tracer sees no thread of start_silent, and none
# of the functions in @unseen. A recording does not see when threads of start_outside end.
sub check_stacks {
	my ($files, $said, $what, @unseen) = @_;
	my %sums = (%{ $said->{sums} }, map { $_ => [0, 0] } 'start_silent', @unseen);
	delete $sums{start_outside} if "@$files" =~ /hrec/;
	return check_sums(['--heap', 'stack', @$files], 'thread_stacks', \%sums, $what);
}

sub started {
	my $target = start_stating('targets/thread_stacks.exe', [], traced => 1);
	for my $step (1 .. 4) {
		my $said = $step == 1 ? stated($target) : next_stated($target);
		snapshot($target->{pid}, "$dir/$step.txt") or return;
		check_stacks(["$dir/$step.txt"], $said, "step $step");
		next if $step != 2;
		check_chains("$dir/$step.txt", 'thread_stacks', $said, "step $step");
		my $text = run(["$root/build/linux/hdiff", "$dir/1.txt", "$dir/2.txt"])->{out};
		like($text, qr/^ +1 +\+\S+ \S+ +\+5 +\d+ % +(?:thread_stacks!)?start_worker\b/m, 'the row has the name of the function') or diag($text);
	}
	is($target->quit, 0, 'it ends as it would untraced');
	return;
}

sub attached {
	my $target = start_stating('targets/thread_stacks.exe');
	stated($target);
	check_ok(hsnap('attach', '-p', $target->{pid}), 'attach');
	my $said = next_stated($target);
	snapshot($target->{pid}, "$dir/attached.txt");
	check_stacks(["$dir/attached.txt"], $said, 'later threads', 'start_early');
	check_ok(hsnap('detach', '-p', $target->{pid}), 'detach while threads live');
	next_stated($target);
	check_ok(hsnap('attach', '-p', $target->{pid}), 'attach again');
	$said = next_stated($target);
	snapshot($target->{pid}, "$dir/again.txt");
	check_stacks(["$dir/again.txt"], $said, 'threads after that', 'start_early');
	is($target->quit, 0, 'it ends as it would untraced');
	return;
}

sub recorded {
	my $file = "$dir/run.hrec";
	my $target = start_stating('targets/thread_stacks.exe', [], record => ['-o', win($file)]);
	my @said;
	for my $step (1 .. 4) {
		push @said, $step == 1 ? stated($target) : next_stated($target);
		marked($target, "step$step");
	}
	is($target->quit, 0, "its status is the program's");
	check_stacks(["$file\@step$_"], $said[$_ - 1], "step $_") for 1 .. 4;
	check_stacks(["$file\@step1", "$file\@step2"], { sums => growth_of(@said[0, 1]) }, 'growth');
	my $ended = run(tool('hdiff', 'linux', qw(--heap stack --class aifi --from step1 --to step2), $file));
	my %count;
	for my $row (@{ report($ended->{out})->{rows} }) {
		my ($first) = chain_of($row, 'thread_stacks');
		$count{ $first->{function} } += $row->{count};
	}
	# Ending a thread of start_worker was refused, which is a free and an allocation, as for blocks.
	delete $count{start_outside};
	is_deeply(\%count, { start_ended => 6, start_killed => 1, start_worker => 1 }, 'threads that ended in the window');
	return;
}
