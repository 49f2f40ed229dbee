#!/usr/bin/perl
# hsnap watch takes a first snapshot, and then one each time the program has grown by the specified
# amount. The program adds 16 MiB at each step, and states that.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Time::HiRes qw(time);
use Hunt;
use Looping;

my $step_bytes = 16 << 20;
my $exe = own_copy('build/win64/targets/grows.exe', 'watched');
my $name = $exe =~ s,.*/|\.exe$,,gr;
my $dir = fresh_dir();

my $target = target($exe);
is($target->step, 1, 'the target runs');
# The limit is two and a half steps. The program's other memory changes by far less than half a
# step.
my $watch = loop('watch', '-pn', $name, '--growth', '40M', '-f', win("$dir/{n}.txt"), '--by-stack', '--count', 3,
	'--log', win("$dir/log"));
ok($watch->wait_line(qr/000001\.txt: .*, private bytes \d+$/m), 'a first file at once');
my $step = 1;
is($target->next_step, ++$step, 'it grows') for 1, 2;
# watch takes no snapshot here. It polls once a second, so it has noticed the growth by this time.
my $until = time + 1.5;
$watch->until(sub { time > $until });
is(scalar(grep { /^\d+\.txt$/ } files_in($dir)), 1, 'not enough yet');
for my $number (2, 3) {
	is($target->next_step, ++$step, 'it grows') for 1 .. ($number == 2 ? 1 : 3);
	ok($watch->wait_line(qr/00000$number\.txt: .*, private bytes \d+ to \d+$/m), "file $number");
}
is($watch->end, 0, 'status 0');
is_deeply([grep { /\.txt$/ } files_in($dir)], [map { "00000$_.txt" } 1 .. 3], 'as many files as the growth requires');
my @growth = $watch->said(qr/private bytes (\d+ to \d+)$/);
my @sizes = map { [split / to /] } @growth;
is_deeply([grep { abs($_->[1] - $_->[0] - 3 * $step_bytes) > $step_bytes / 2 } @sizes], [], 'three steps in each');
is(scalar @sizes, 2, 'each prints the bytes before and after');
is($sizes[1][0], $sizes[0][1], 'each from where the last one was');
is(scalar(grep { /private bytes \d+ to \d+$/ } split /\n/, slurp("$dir/log")), 2, 'the log has them, too');
is($target->next_step, ++$step, 'the target goes on');

my $here = fresh_dir();
is(run([wine("$root/build/win64/hsnap.exe", 'watch', '-p', $target->{pid}, '--growth', '1G', '--count', 1)], dir => $here)->{status}, 0,
	'without a name');
like(join(' ', files_in($here)), qr/^watched\d+-$target->{pid}-\d{8}T\d{6}Z\.txt$/, 'the file is named by process and time');

my $idle = loop('watch', '-p', $target->{pid}, '--growth', '1G', '-f', win("$dir/idle-{n}.txt"), '--poll', '1h');
ok($idle->wait_line(qr/idle-000001\.txt/), 'one that has nothing to do for an hour');
$idle->interrupt;
is($idle->end, 0, 'is ended by Ctrl-C');
my $stop = loop('watch', '-p', $target->{pid}, '--growth', '1G', '-f', win("$dir/stop-{n}.txt"), '--poll', '1h');
ok($stop->wait_line(qr/stop-000001\.txt/), 'another one');
is($target->quit, 0, 'the target ends');
is($stop->end, 0, 'and that is seen at once');
is(scalar($stop->said(qr/^(pid $target->{pid}: the process has ended)/)), 1, 'and said');
objects('threads:40', 'threads', 40);
handles();
check_error(hsnap('watch', '-p', 4, '--growth', $_), 'hsnap', $_, '--growth') for 'threads:0', 'threads:1K', 'windows:5', 'heap-blocks:1M', ':5';
done_testing;

# A program starts 40 threads, and has 541 handles more, at once. Returns nothing.
sub objects {
	my ($growth, $figure, $count) = @_;
	my $holds = target("$root/build/win64/targets/holds.exe");
	like($holds->line, qr/^space /, 'a program states its memory');
	is($holds->step, 1, '... and waits');
	my $at = fresh_dir();
	my $loop = loop('watch', '-p', $holds->{pid}, '--growth', $growth, '-f', win("$at/{n}.txt"), '--count', 2);
	ok($loop->wait_line(qr/000001\.txt: .*, $figure \d+$/m), "$growth: a first file at once");
	syswrite $holds->{to}, "\n";
	like($holds->line, qr/^space /, 'the program grows');
	is($holds->step, 2, '... and waits');
	ok($loop->wait_line(qr/000002\.txt: .*, $figure \d+ to \d+$/m), 'a second file');
	is($loop->end, 0, 'status 0');
	my ($from, $to) = ($loop->said(qr/$figure (\d+ to \d+)$/))[0] =~ /(\d+)/g;
	is($to - $from, $count, "$count more");
	is($holds->quit, 0, 'the program ends');
	return;
}

# Wine 8 does not count handles, which watch reports.
sub handles {
	my $holds = target("$root/build/win64/targets/holds.exe");
	like($holds->line, qr/^space /, 'a program states its memory');
	is($holds->step, 1, '... and waits');
	my ($counted) = hsnap('ps', 'holds')->{out} =~ /iB +\d+ +(\d+) /;
	if (defined $counted) {
		objects('handles:541', 'handles', 541);
	} else {
		my $at = fresh_dir();
		my $loop = loop('watch', '-p', $holds->{pid}, '--growth', 'handles:5', '-f', win("$at/{n}.txt"), '--count', 1);
		ok($loop->wait_line(qr/this system does not report its handles/), 'handles are not known');
		$loop->interrupt;
		$loop->end;
	}
	is($holds->quit, 0, 'the program ends');
	return;
}
