#!/usr/bin/perl
# The hooks answer what ntdll answers, for whatever a program asks; and what they know afterwards is
# right. Modules that go are noted with what identifies them. However a process ends, hsnap has its
# snapshot before.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();
my %program = map { $_ => "$root/build/win64/targets/$_.exe" } qw(hook_cases let_go ends begets elders);

my $plain = run([wine($program{hook_cases})]);
is($plain->{status}, 0, 'odd calls, not traced: the program is content');
cmp_ok(scalar(split /\n/, $plain->{out}), '>', 40, 'and has asked many things');
unlike($plain->{out}, qr/^table:/m, 'of no table');
my $traced = traced('hook_cases');
is_deeply([split /\n/, $traced->{out}], [split /\n/, $plain->{out}],
	'traced, every answer and every last error is the same, and the table is right after each call');
is($traced->{status}, 0, 'and so is its status');
is($traced->{err}, '', 'no complaint');

for my $library (qw(version.dll winmm.dll)) {
	my $result = traced('let_go', $library);
	is($result->{status}, 0, "$library is noted when it goes, while it is there") or diag($result->{out});
	like($result->{out}, qr/^timestamp [1-9a-f]/, 'with what its headers said');
}
is(run([wine($program{let_go}, 'version.dll')])->{status}, 3, 'which is the tracer\'s doing');

for my $how (qw(pseudo handle detach other)) {
	my $file = "$dir/$how.txt";
	my $result = hsnap('run', '--at-exit', win($file), '--', win($program{ends}), $how);
	is($result->{status}, 21, "$how: the status that it ended with");
	is($result->{err}, '', "$how: no complaint");
	is_deeply(kept($file, 'ends', 'keep_block'), [3, 4500], "$how: the snapshot is of its end");
}
begets(raw => 1);
begets(crowd => 12);
elders();
done_testing;

sub traced {
	my ($name, @args) = @_;
	return hsnap('run', '--', win($program{$name}), @args);
}

# A program and its children, however they are made: each has its snapshot.
sub begets {
	my ($how, $children) = @_;
	my $to = fresh_dir();
	is(run([wine($program{begets}), $how])->{status}, 41, "$how: not traced, all children are well");
	my $result = hsnap('run', '--children', '--at-exit', win("$to/{name}-{pid}.txt"), '--',
		win($program{begets}), $how);
	is($result->{status}, 41, "$how: so are they when followed");
	is($result->{err}, '', "$how: no complaint");
	my @kept = map { join ' ', @{ kept("$to/$_", 'begets', 'child_block') // [] } } files_in($to);
	is_deeply([sort @kept], ['0 0', ('1 2500') x $children], "$how: everybody's snapshot is of the end");
}

# Threads from before are traced from the first attach on, left alone after a detach, traced again.
sub elders {
	my $target = target($program{elders});
	is($target->step, 1, 'threads are there');
	for my $step ([attach => 2], [detach => 3], [attach => 4]) {
		my ($command, $next) = @$step;
		my $result = hsnap($command, '-p', $target->{pid});
		is($result->{status}, 0, "$command") or diag($result->{err});
		is($target->next_step, $next, 'they go on');
	}
	is($target->quit, 0, 'and the tracer knew of them what was so');
}

# Blocks and bytes of a function.
sub kept {
	my ($file, $module, $function) = @_;
	my $diff = run(tool('hdiff', 'linux', $file));
	check_ok($diff, 'hdiff') or return;
	my @found = (0, 0);
	for my $row (@{ report($diff->{out})->{rows} }) {
		my ($first) = chain_of($row, $module);
		next if !$first || $first->{function} ne $function;
		$found[0] += $row->{count};
		$found[1] += $row->{bytes};
	}
	return \@found;
}
