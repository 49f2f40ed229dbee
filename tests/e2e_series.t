#!/usr/bin/perl
# Snapshots at fixed times of programs under Wine. At any moment each file is a complete dump of the
# right process. Only the newest files remain. A failure is one line, and the next attempt works.
# The process always continues.
use strict;
use warnings;
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Time::HiRes qw(time);
use Hunt;
use Looping;

my $exe = own_copy('build/win64/samples/leak_steady.exe', 'every');
my $name = $exe =~ s,.*/|\.exe$,,gr;

subtest 'what does not fit together' => \&wrong_usage;
subtest 'practice 1, 2, 9: whole files under names of their own, the newest of them' => \&whole_files;
subtest 'practice 4: several processes, and their end' => \&several;
subtest 'practice 3: the process comes back' => \&comes_back;
subtest 'Ctrl-C' => \&interrupted;
subtest 'a folder that goes away, and a disk that is full' => \&trouble;
subtest 'faults that stay' => \&faults_that_stay;
done_testing;

# The program for this machine reports the same errors, although it cannot take processes.
sub wrong_usage {
	my $hsnap = "$root/build/linux/hsnap";
	my @live = ('-pn', $name, '-f');
	for my $case (
		[['-pn', $name, '--every', '1s'], 'needs a file'],
		[[@live, 'x.txt', '--every', '1s'], '{time}'],
		[[@live, 'x.txt', '--keep', '3'], '{time}'],
		[[@live, 'x-{time}/y.txt', '--every', '1s'], '{time}'],
		[[@live, 'x-{time}.txt', '--every', '1'], '1h30m'],
		[[@live, 'x-{time}.txt', '--every', '0s'], '365d'],
		[[@live, 'x-{time}.txt', '--count', '3'], '--every'],
		[[@live, 'x-{time}.txt', '--all'], '{pid}'],
		[['-p', 1, '-f', 'x-{pid}.txt', '--all'], '-pn'],
		[['-p', 1, '-f', 'x-{n}.txt', '--every', '1s', '--on-exit', 'wait'], '-pn'],
		[['-z', 'x.dmp', '-f', 'x-{time}.txt', '--every', '1s'], 'minidump'],
		[['-z', 'x.dmp', '-f', 'x-{n}.txt'], '{n}'],
		[[@live, 'x-{who}.txt'], '{pid}'],
		[['-p', 1, '-f', 'x.txt', '--log', 'x.txt'], 'the log'],
		[['watch', '-pn', $name, '-f', 'x-{n}.txt'], '--growth'],
		[['watch', '--growth', '1M', '-f', 'x-{n}.txt'], '-pn'],
		[['watch', '-pn', $name, '--growth', '1M', '-f', 'x-{pid}.txt'], '{time}'],
		[['watch', '-pn', $name, '--growth', '1M', '-f', 'x-{n}.txt', 'more'], 'more'],
	) {
		my ($args, @words) = @$case;
		check_error(run([$hsnap, @$args]), 'hsnap', "@$args", 'wrong usage', @words);
	}
	return if $as_windows;
	check_error(run([$hsnap, @live, 'x-{time}.txt', '--every', '1s']), 'hsnap', 'here', 'needs Windows');
	check_error(run([$hsnap, 'watch', @live, 'x-{time}.txt', '--growth', '1M']), 'hsnap', 'watch here', 'needs Windows');
}

sub whole_files {
	my $target = target($exe, [], traced => 1);
	is($target->step, 1, 'the target runs');
	my $dir = fresh_dir();
	my $loop = loop('-pn', $name, '-f', win("$dir/{name}-{pid}-{time}.txt"), qw(--every 1s --count 3 --keep 2),
		'--log', win("$dir/log"));
	my (%seen, @wrong, $most);
	my $foreign = "$name-$target->{pid}-20200101T000000Z.txt";
	spew("$dir/$foreign", "no dump\n");
	# At any moment all files are complete, except the one that is being written, which has its
	# own name.
	until ($loop->has_ended(0.02)) {
		my @there = grep { /^\Q$name\E-.*\.txt$/ && $_ ne $foreign } files_in($dir);
		$most = @there if @there > ($most // 0);
		for my $file (@there) {
			next if $seen{$file}++ || !-e "$dir/$file";
			# The file may be removed at this moment.
			my $text = eval { slurp("$dir/$file") } // next;
			push @wrong, $file if $text !~ m{^// hsnap: end [^\n]*\n\z}m;
		}
	}
	is($loop->status, 0, 'status 0');
	is_deeply(\@wrong, [], 'each of ' . keys(%seen) . ' files that were seen was whole');
	cmp_ok($most, '<=', 3, 'two are kept, and the newest is there before an old one goes');
	my @left = grep { /^\Q$name-$target->{pid}\E-\d{8}T\d{6}Z(?:_\d+)?\.txt$/ } files_in($dir);
	is(scalar @left, 3, 'two of them are left, and the file that is no dump');
	is($left[0], $foreign, 'which was not ours');
	my @said = $loop->said(qr{^(.*\.txt): \d+ blocks?, \d+ bytes?, held \d+ ms$});
	is(scalar @said, 3, 'a line for each file');
	is_deeply([map { s/.*\\//r } @said[1, 2]], [@left[1, 2]], 'the newest two are those that are left');
	is_deeply([map { pid_in("$dir/$_") } @left[1, 2]], [($target->{pid}) x 2], 'of the right process');
	my @log = split /\n/, slurp("$dir/log");
	is(scalar(grep { /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \S.*: \d+ blocks,/ } @log), 3, 'the log has them, too');
	like($log[-1], qr/Z 3 files written$/, 'and how many there were');
	is_deeply([grep { /\.tmp/ } files_in($dir)], [], 'nothing else is left');
	is($target->next_step, 2, 'the target goes on');
	is($target->quit, 0, 'and ends');
}

sub pid_in {
	my ($file) = @_;
	return slurp($file) =~ m{^// hsnap: process id=(\d+)}m ? $1 : 'none';
}

sub several {
	my @targets = map { target($exe) } 1, 2;
	is($_->step, 1, 'a target runs') for @targets;
	my $dir = fresh_dir();
	my @args = ('-pn', $name, '-f', win("$dir/{name}-{pid}-{n}.txt"), qw(--every 1s --by-stack));
	my $result = hsnap(@args);
	check_error($result, 'hsnap', 'two of the name', '-p PID', '--all',
		map { qr/pid $_->{pid} started \d{4}-\d\d-\d\dT[\d:.]+Z with \d+ private bytes/ } @targets);
	is_deeply([files_in($dir)], [], 'none is touched');
	my $loop = loop(@args, '--all');
	ok($loop->wait_for("$name-$_->{pid}-000001.txt", $dir), 'each is taken') for @targets;
	is($targets[1]->quit, 0, 'one goes');
	push @targets, target($exe);
	is($targets[2]->step, 1, 'one comes');
	ok($loop->wait_for("$name-$_->{pid}-000002.txt", $dir), 'those that are there are taken again') for @targets[0, 2];
	$loop->interrupt;
	is($loop->end, 0, 'status 0');
	is(scalar($loop->said(qr/^(pid $targets[1]{pid}): the process has ended/)), 1, 'which is reported');
	is_deeply([grep { pid_in("$dir/$_") ne (/-(\d+)-\d{6}\.txt$/)[0] } files_in($dir)], [], 'each file is of its process');
	my $once = fresh_dir();
	is(hsnap('-pn', $name, '-f', win("$once/{pid}.txt"), '--all')->{status}, 0, 'each once');
	is_deeply([sort(files_in($once))], [sort map { "$_->{pid}.txt" } @targets[0, 2]], 'into a file of its own');
	is($_->quit, 0, 'they end') for @targets[0, 2];
}

sub comes_back {
	my $dir = fresh_dir();
	my @args = ('-pn', $name, '-f', win("$dir/{pid}-{n}.txt"), qw(--every 1s --by-stack));
	check_error(hsnap(@args), 'hsnap', 'nobody is there', 'no such process');
	my $loop = loop(@args, qw(--on-exit wait));
	ok($loop->wait_line(qr/waiting for a process with this name/), 'it is waited for');
	my $first = target($exe);
	is($first->step, 1, 'it comes');
	ok($loop->wait_for("$first->{pid}-000001.txt", $dir), 'and is taken');
	is($first->quit, 0, 'it goes');
	ok($loop->wait_line(qr/pid $first->{pid}: the process has ended/), 'which is reported');
	my $second = target($exe);
	is($second->step, 1, 'another one comes');
	ok($loop->wait_for("$second->{pid}-00000$_.txt", $dir), "its file $_") for 1, 2;
	$loop->interrupt;
	is($loop->end, 0, 'status 0');
	is_deeply([grep { pid_in("$dir/$_") ne (/^(\d+)-/)[0] } files_in($dir)], [], 'each file is of its process');
	my $stop = loop(@args);
	ok($stop->wait_line(qr/: \d+ blocks/), 'one that stops with it');
	is($second->quit, 0, 'it goes');
	is($stop->end, 0, 'and that is the end');
}

sub interrupted {
	my $target = target($exe);
	is($target->step, 1, 'the target runs');
	my $dir = fresh_dir();
	my $loop = loop('-p', $target->{pid}, '-f', win("$dir/{n}.txt"), qw(--every 1h), '--log', win("$dir/log"));
	ok($loop->wait_for('000001.txt', $dir), 'a first file');
	ok($loop->wait_line(qr/: \d+ blocks/), 'is reported');
	like(slurp("$dir/log"), qr/^\S+Z pid $target->{pid}: warning: no block has a stack/m, 'and what it lacks, in the log, too');
	my $from = time;
	$loop->interrupt;
	is($loop->end, 0, 'status 0');
	cmp_ok(time - $from, '<', 3600, 'long before the hour is over');
	is(scalar($loop->said(qr/^(interrupted: 1 file written)$/)), 1, 'it says how many were written');
	is_deeply([files_in($dir)], ['000001.txt', 'log'], 'nothing else is left');
	my $both = "$dir/$target->{pid}.txt";
	check_error(hsnap('-p', $target->{pid}, '-f', win("$dir/{pid}.txt"), '--log', win($both)), 'hsnap', 'two files in one', 'the log');
	unlike(slurp($both), qr{^// hsnap}m, 'no dump is put in the place of a log');
	is($target->next_step, 2, 'the target goes on');
	is($target->quit, 0, 'and ends');
	in_the_middle();
}

# A snapshot of this target takes a long time. After one Ctrl-C the snapshot is finished, after two
# it is not. Neither leaves a partial file.
sub in_the_middle {
	my $target = target(own_copy('build/win64/samples/many_blocks.exe', 'many'), [60_000], traced => 1);
	is($target->step, 1, 'a large target runs');
	my $step = 1;
	for my $times (1, 2) {
		my ($dir, $log) = (fresh_dir(), fresh_dir() . '/log');
		my $loop = loop('-p', $target->{pid}, '-f', win("$dir/{n}.txt"), qw(--every 1h), '--log', win($log));
		# The file in the folder may be the one that tests whether the folder is writable.
		# The snapshot may be done before the test sees a file.
		ok($loop->until(sub { $loop->has_helper || -e "$dir/000001.txt" }), 'a snapshot is begun');
		$loop->interrupt;
		press_again($loop) if $times > 1;
		my $status = $loop->end;
		# The system removes a process's temporary files a moment after the process has
		# ended.
		$loop->until(sub { !grep { /\.tmp$/ } files_in($dir) });
		my @left = files_in($dir);
		# The snapshot may be finished before the second Ctrl-C.
		if ($times == 1 || $status == 0) {
			is($status, 0, "$times interrupts: status 0");
			is_deeply(\@left, ['000001.txt'], 'the current file is finished');
			is(scalar($loop->said(qr/^(interrupted: 1 file written)$/)), 1, 'and is reported');
		} else {
			is($status, 2, 'two interrupts: status 2');
			like(slurp($log), qr/^\S+Z ended from outside: the current file is dropped\n\z/m, 'which is the last line of the log');
		}
		is_deeply([grep { !whole("$dir/$_") } @left], [], 'no part of one is left');
		is($target->next_step, ++$step, 'the target goes on');
	}
	is($target->quit, 0, 'and ends');
}

# Stops hsnap, and presses Ctrl-C again. The second press comes after the first was seen, and later
# than hsnap's limit for one press.
sub press_again {
	my ($loop) = @_;
	my @pids = $loop->unix_pid;
	$loop->until(sub { $loop->has_ended(0) || $loop->said(qr/^(interrupted: .*another Ctrl-C)/) });
	kill STOP => @pids;
	my $until = time + 0.5;
	$loop->until(sub { time > $until });
	$loop->interrupt;
	kill CONT => @pids;
}

# If the target is traced, the dump has a line for each block, so it does not fit on a small disk.
sub trouble {
	my $target = target($exe, [], traced => 1);
	is($target->step, 1, 'the target runs');
	my $dir = fresh_dir();
	my $to = "$dir/to";
	mkdir $to or die "$to: $!\n";
	my @args = ('-p', $target->{pid}, '-f', win("$to/{n}.txt"), qw(--every 1s));
	my $loop = loop(@args, '--log', win("$dir/log"));
	ok($loop->wait_for('000001.txt', $to), 'a first file');
	rename $to, "$dir/away" or die "$to: $!\n";
	ok($loop->wait_line(qr/to\\.*cannot/), 'without its folder that is a line');
	my $before = grep { /^\d+\.txt$/ } files_in("$dir/away");
	rename "$dir/away", $to or die "$to: $!\n";
	ok($loop->wait_for(sprintf('%06d.txt', $before + 1), $to), 'the next one works');
	$loop->interrupt;
	is($loop->end, 2, 'status 2');
	my @there = files_in($to);
	is_deeply(\@there, [map { sprintf '%06d.txt', $_ } 1 .. @there], 'all files are there, and no other');
	is(scalar(grep { !whole("$to/$_") } files_in($to)), 0, 'whole');
	like(slurp("$dir/log"), qr/^\S+Z \S.*cannot/m, 'the log has the line');

	SKIP: {
		skip('needs ulimit', 5) if $as_windows;
		full_disk($target);
	}
	is($target->quit, 0, 'and ends');
}

# This target is not traced and never will be.
sub faults_that_stay {
	my $target = target($exe);
	is($target->step, 1, 'an untraced target runs');
	my $dir = fresh_dir();
	my @args = ('-p', $target->{pid}, '-f', win("$dir/{n}.txt"), qw(--stacks tracer --count 3));
	for my $case ([loop(@args, qw(--every 1s)), '--every'], [loop('watch', @args, qw(--growth 1K)), 'watch']) {
		my ($loop, $name) = @$case;
		is($loop->end, 2, "$name ends with status 2");
		is(scalar($loop->said(qr/^(pid $target->{pid}: the process is not traced; .*)$/)), 1, 'with the reason, once');
		is(scalar($loop->said(qr/^(pid $target->{pid}: given up after 1 failure in a row; 0 files written)$/)), 1, 'as given up');
	}
	is_deeply([files_in($dir)], [], 'without a file');
	is($target->next_step, 2, 'the target goes on');
	is($target->quit, 0, 'and ends');
}

sub full_disk {
	my ($target) = @_;
	is($target->next_step, $_, 'it grows') for 2 .. 8;
	my $full = fresh_dir();
	my $small = loop_under(['sh', '-c', 'trap "" XFSZ; ulimit -f 16; exec "$@"', 'sh'], '-p', $target->{pid},
		'-f', win("$full/{n}.txt"), '--every', '1s');
	ok($small->wait_line(qr/cannot write/), 'a disk that is full is a line');
	ok($small->wait_line(qr/cannot write/), 'and another when the next one is due');
	$small->interrupt;
	is($small->end, 2, 'status 2');
	is_deeply([files_in($full)], [], 'nothing is left');
	is($target->next_step, 9, 'the target goes on');
	return;
}

sub whole { return slurp($_[0]) =~ m{^// hsnap: end [^\n]*\n\z}m }
