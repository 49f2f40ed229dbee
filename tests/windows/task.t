#!/usr/bin/perl
# On Windows, as administrator: Task Scheduler stores a task of hsnap and runs it, and the task
# writes a snapshot.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Time::HiRes qw(time sleep);
use Hunt;

plan skip_all => 'needs Windows' unless $^O =~ /^(?:msys|cygwin)$/;
my $image = 'leak_steady.exe';
my $dir = fresh_dir() . '/dumps';
END { local $?; hsnap('schedule', 'remove', $image) if defined $dir }

my $target = target("$root/build/win64/samples/$image", [], traced => 1);
is($target->step, 1, 'a traced sample runs');
my $added = hsnap('schedule', 'add', $image, '--every', '30m', '--start', '2099-01-01T00:00', '--dir', win($dir));
is($added->{status}, 0, 'a task is added') or diag($added->{err});
like(schtasks('/query', '/tn', '\\hsnap\\', '/v', '/fo', 'list')->{out}, qr/\Q$image\E/, 'the scheduler has it');
for my $step (1, 2) {
	is($target->next_step, $step, "step $step") if $step > 1;
	my $run = schtasks('/run', '/tn', "\\hsnap\\$image");
	is($run->{status}, 0, "run $step: the scheduler starts it") or diag($run->{out}, $run->{err});
	my $until = time + 120;
	sleep 0.5 while dumps() < $step && time < $until;
	is(scalar dumps(), $step, "run $step: a snapshot") or diag(map { slurp($_) } glob "$dir/*.log");
}
is($target->quit, 0, 'the sample ends');
my @hdiff = (@{ tool('hdiff', 'windows', sort { $a cmp $b } dumps()) }, '-i', '!grow_log', '--max-growth');
my @statuses = map { run([@hdiff, $_])->{status} } '65536,64', '65535,64', '65536,63';
is("@statuses", '0 1 1', 'the step leaks 65536 bytes in 64 blocks, neither more nor less');
check_ok(hsnap('schedule', 'remove', $image), 'the task is removed');
unlike(schtasks('/query')->{out}, qr/\Q$image\E/, 'the scheduler has it no more');
done_testing;

sub schtasks { return run(['/c/Windows/System32/schtasks.exe', @_], env => { MSYS2_ARG_CONV_EXCL => '*' }) }

sub dumps {
	my @dumps = glob "$dir/*.txt";
	return @dumps;
}
