#!/usr/bin/perl
# hsnap record of a live program. memory_test states each of its events. At every moment and in
# every window its recording agrees with them, to the byte, by stack, and so do snapshots taken
# during the recording. Starting and ending a recording leaves the program unchanged.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use List::Util qw(min);
use Test::More;
use Time::HiRes qw(sleep);
use Charts;
use Hunt;
use Replay;

my $dir = fresh_dir();
my $exe = "$root/build/win64/samples/memory_test.exe";
my $record = "$root/build/win64/hsnap.exe";

my ($running, $recorder, $part);
subtest 'what takes long begins' => \&begin;
subtest 'from its start' => \&whole;
subtest 'blocks that are older than the tracer' => \&early;
subtest 'a part of a program that is started' => \&a_part;
subtest 'no more than --max-bytes' => \&full;
subtest 'children' => \&children;
subtest 'names of files' => \&names;
subtest 'in a terminal' => \&terminal;
subtest 'standard input is somebody else\'s' => \&no_terminal;
subtest 'hsnap is ended' => \&killed;
subtest 'dropped events are reported' => \&dropped;
subtest 'of a process that runs' => \&attached;
subtest 'errors are one line each' => \&errors;
done_testing;

sub whole {
	# In a spike, after a spike, and after the half-way allocation.
	my @stops = (200, 1475, 1600, 3000);
	my $target = target($exe, ['--seconds', 3, '--events', win("$dir/events"), map { ('--stop', $_) } @stops],
		record => ['-v', '-o', win("$dir/run.hrec")]);
	for my $stop (1 .. @stops) {
		is($stop == 1 ? $target->step : $target->next_step, $stop, "stop $stop") or return;
		check_ok(hsnap('mark', '-p', $target->{pid}, "stop $stop"), "mark $stop");
		check_ok(hsnap('-p', $target->{pid}, '-f', win("$dir/stop$stop.txt")), "snapshot $stop");
	}
	is($target->quit, 0, 'its status is the program\'s');
	like(slurp("$target->{err}"), qr/^hsnap: \S+run\.hrec: [1-9]\d* events in [1-9]\d* bytes; threads waited \d+ times/, '-v');
	my $replay = Replay->new(slurp("$dir/events"));
	for my $stop (1 .. @stops) {
		my $at = $replay->mark("stop $stop");
		same("stop $stop", $replay->state($at, ['stack']), '--match', 'function', "$dir/run.hrec\@start", "$dir/run.hrec\@stop $stop");
		# The remaining differences are blocks that are older than the tracer, or that
		# belong to threads that ended.
		my $result = run(tool('hdiff', 'linux', '--force', "$dir/stop$stop.txt", "$dir/run.hrec\@stop $stop"));
		is_deeply(rows_by_functions(report($result->{out}), 'memory_test'), {}, "the snapshot at stop $stop is that moment")
		    or diag($result->{out}, $result->{err});
	}
	same('all that is left', $replay->state($replay->events, ['stack']), "$dir/run.hrec");
	subtest 'the picture' => sub { picture($replay) };
	for my $window ([1, 2], [2, 3], [3, 4], [1, 4]) {
		my ($from, $to) = map { "stop $_" } @$window;
		my $classes = $replay->window((map { $replay->mark($_) } $from, $to), ['stack']);
		for my $class (qw(aifo aifi aofi aofo)) {
			my %truth = map { $_ => $classes->{$_}{$class} } grep { $classes->{$_}{$class}{count} } keys %$classes;
			same("$from to $to, $class", \%truth, '--class', $class, '--from', $from, '--to', $to, "$dir/run.hrec");
		}
	}
	return;
}

# The chart of usage over time shows the program's steady state, its ten spikes and its peak.
# According to its statements, its usage goes through these heights in the same order.
sub picture {
	my ($replay) = @_;
	my @ranges = grep { $_->{memory} eq 'committed' } @{ $replay->allocations };
	my $between = min(map { $ranges[$_]{alloc}{time} - $ranges[$_ - 1]{free}{time} } grep { $ranges[$_ - 1]{stack} ne 'main' } 1 .. $#ranges);
	my $svg = drawn($replay, $between, sub { $_->{memory} eq 'committed' }, [(10, 20) x 5, 10, (20, 30) x 5, 20], '--module', 'memory_test');
	like($svg, qr/>peak 30 MiB at \d+\.\d+ s</, 'the peak is named');
	is(scalar(() = $svg =~ /<line class="mark"/g), 4, 'and four marks drawn');
	like($svg, qr/>stop $_</, "stop $_") for 1, 2, 4;
	drawn($replay, $between, sub { $_->{stack} =~ /^Manipulate/ }, [(10, 0) x 9, 10], '-i', 'memory_test!ManipulateTemporaryBuffer');
	return;
}

# Checks the chart for a part of the memory. The heights are whole MiB, in order. The two permanent
# buffers end within a moment, so values below the last height are ignored after it.
sub drawn {
	my ($replay, $between, $where, $wanted, @words) = @_;
	my $result = run(tool('hdiff', 'linux', '--over-time', '--heap', 'virtual', '-o', 'svg', @words, "$dir/run.hrec"));
	is($result->{status}, 0, "@words: a picture") or diag($result->{err});
	my $chart = chart_of($result->{out});
	is($chart->{error}, '', 'it is well-formed XML');
	my $heights = sub {
		my @all = map { int($_ / (1 << 20) + 0.5) } @_;
		my @heights = map { $all[$_] } grep { !$_ || $all[$_] != $all[$_ - 1] } 0 .. $#all;
		shift @heights while @heights && !$heights[0];
		pop @heights while @heights && $heights[-1] < $wanted->[-1];
		return \@heights;
	};
	my @truth = map { $replay->state($_, [], $where)->{''}{bytes} // 0 } 1 .. $replay->events;
	is_deeply($heights->(@truth), $wanted, 'what it states');
	my @figures = @{ $chart->{figures} };
	SKIP: { # if the machine stalls this long, the sample makes no spikes
		skip "$between ms between spikes", 2 if $between < 2 * ($figures[2]{time_ms} - $figures[1]{time_ms});
		is_deeply($heights->(map { $_->{highest_bytes} } @figures), $wanted, 'its figures are these');
		is_deeply($heights->(@{ $chart->{tops} }), $wanted, 'it is drawn as high');
	}
	return $result->{out};
}

# Checks that { STACK => { bytes, count } } equals hdiff's result for these options. Now and then
# also runs the other system's hdiff.
sub same {
	my ($what, $truth, @words) = @_;
	my %rows = map { $_ => [@{ $truth->{$_} }{qw(bytes count)}] } keys %$truth;
	for my $side ($what =~ /stop 4/ ? tool_names() : 'linux') {
		my $result = run(tool('hdiff', $side, @words), env => { HSYM_CACHE => $side eq 'linux' ? "$dir/names" : 'off' });
		is_deeply(rows_by_functions(report($result->{out}), 'memory_test'), \%rows, "$what, $side hdiff")
		    or diag("@words\n$result->{out}$result->{err}");
	}
	return;
}

# Starts recordings that run while other subtests run.
sub begin {
	$part = target($exe, ['--seconds', 3, '--stop', 2900], record => ['--for', '1s', '-o', win("$dir/for.hrec")]);
	$running = target($exe, ['--seconds', 12, '--events', win("$dir/events2"), '--stop', 700, '--stop', 11500]);
	is($running->step, 1, 'it runs') or return;
	$recorder = Hunt::start([wine($record, 'record', '-o', win("$dir/part.hrec"), '-p', $running->{pid})], stderr => "$dir/part.err");
	marked($running, 'begin');
	syswrite $running->{to}, "\n";
	return;
}

# The blocks that already exist are listed first, so that their frees are known. This test lasts
# longer than any single wait of hsnap.
sub attached {
	my $target = $running;
	is($target->step, 2, 'it went on');
	check_ok(hsnap('mark', '-p', $target->{pid}, 'the end'), 'a second mark');
	check_error(hsnap('mark', '-p', $target->{pid}, $_), 'hsnap', "a label like a moment: $_", 'as a moment') for qw(end peak 5s 1.5ms 40%);
	check_error(hsnap('record', '-o', win("$dir/second.hrec"), '-p', $target->{pid}), 'hsnap', 'a second recorder');
	check_error(hsnap('record', '-o', win("$dir/second.hrec.GZ"), '-p', $target->{pid}), 'hsnap', 'a name that ends in .gz', qr/compressed already/);
	check_ok(hsnap('record', '--stop', '-p', $target->{pid}), '--stop');
	is(Hunt::finish($recorder) >> 8, 0, 'it ended well') or diag(slurp("$dir/part.err"));
	check_error(hsnap('mark', '-p', $target->{pid}), 'hsnap', 'then there is nothing to mark', qr/not being recorded/);
	is($target->quit, 0, 'the program did not');
	my $replay = Replay->new(slurp("$dir/events2"));
	for my $class (qw(aifo aifi)) {
		my $truth = $replay->fates($class, (map { $replay->mark("stop $_") } 1, 2), ['stack']);
		same("attached, $class", $truth, '--class', $class, '--from', 'begin', '--to', 'end', "$dir/part.hrec");
	}
	like(run(tool('hdiff', 'linux', '--list', "$dir/part.hrec"))->{out}, qr/^attached +to a running process, which had [1-9]\d* blocks$/m, 'it records that the process ran before');
	return;
}

# Blocks that the program allocated during loading exist, without a stack, when the recording
# begins. They are freed during the recording.
sub early {
	my $target = target("$root/build/win64/targets/early.exe", [], record => ['-o', win("$dir/early.hrec")]);
	is($target->step, 1, 'it runs') or return;
	check_ok(hsnap('mark', '-p', $target->{pid}, 'a'), 'a mark');
	is($target->next_step, 2, 'and goes on');
	check_ok(hsnap('mark', '-p', $target->{pid}, 'b'), 'another one');
	is($target->quit, 0, 'to its end');
	my $rows = sub {
		my ($class) = @_;
		my $result = run(tool('hdiff', 'linux', '--class', $class, '--from', 'a', '--to', 'b', "$dir/early.hrec"));
		return [map { [@$_{qw(bytes count)}, $_->{frames}[0]{none} // $_->{frames}[0]{function}] } grep { my ($row) = $_; $row->{bytes} > 10_000 } @{ report($result->{out})->{rows} }];
	};
	is_deeply($rows->('aofi'), [[2 * 12345, 2, 1]], 'two are freed');
	my ($left) = @{ $rows->('aofo') };
	cmp_ok($left->[0], '>=', 12345, 'one stays');
	is($left->[2], 1, 'without a stack');
	is_deeply([map { @$_[0, 1] } @{ $rows->('aifo') }], [54321, 1], 'the one that was moved has one');
	return;
}

# --for: the recording ends, and the program continues without the tracer. It waits at its stop
# until the tracer is unloaded.
sub a_part {
	is($part->step, 1, 'the program runs') or return;
	ok(comes(sub { peek($part)->{ntdll} eq '0' }), 'the tracer leaves it');
	check_error(hsnap('mark', '-p', $part->{pid}), 'hsnap', 'a mark after the time', qr/not being recorded.*its recording is over/);
	is($part->quit, 0, 'status of the program');
	my $list = list("$dir/for.hrec");
	unlike($list, qr/^cut/m, 'the recording was ended');
	my ($seconds) = $list =~ /^events\s+\d+ in ([\d.]+) s/m;
	cmp_ok($seconds, '>=', 0.9, 'after the time') or diag($list);
	return;
}

# --max-bytes: the recording ends when its file has reached that size, and the program continues.
sub full {
	my $insertions = 400_000;
	my $here = run(["$root/build/linux/bench/maps", $insertions]);
	my $file = "$dir/full.hrec";
	my $result = run([wine($record, 'record', '--max-bytes', '1M', '-o', win($file), '--', "$root/build/win64/bench/maps.exe", $insertions)]);
	is($result->{status}, 0, 'status of the program') or diag($result->{err});
	is($result->{out} =~ s/\r//r, $here->{out} =~ s/\r//r, 'which did all it does');
	like($result->{err}, qr/\Ahsnap: \S+full\.hrec: .*--max-bytes.* after [\d.]+ s, .*\n\z/, 'one line reports it');
	cmp_ok(-s $file, '>=', 1 << 20, 'the file has the size');
	cmp_ok(-s $file, '<', 3 << 19, 'and not much more');
	my $list = run(tool('hdiff', 'linux', '--list', $file))->{out};
	my ($events) = $list =~ /^events\s+(\d+)/m;
	my ($made, $freed) = $here->{out} =~ /^allocations (\d+) bytes \d+ frees (\d+)/;
	cmp_ok($events, '<', $made + $freed, 'it ended before the program') or diag($list);
	check_ok(run(tool('hdiff', 'linux', '--no-symbols', '--max-growth', '1G', $file)), 'and well');
	return;
}

# --children: each process of a tree has its own recording, with the block that the process keeps.
# This includes processes that outlive their parent. Processes that are ended early have none.
sub children {
	my $family = "$root/build/win64/targets/family.exe";
	my $result = run([wine($record, 'record', '--children', '-v', '-o', win("$dir/tree.hrec"), '--', $family, 'tree', 3)]);
	is($result->{status}, 13, "the exit status is the first program's");
	my %pid = $result->{out} =~ /^tree (\d) pid (\d+)\r?$/mg;
	is_deeply([sort keys %pid], [0 .. 3], 'four generations');
	my %file = map { $_ => $_ == 3 ? 'tree.hrec' : "tree.$pid{$_}.hrec" } keys %pid;
	is_deeply([grep { /^tree/ } files_in($dir)], [sort values %file], 'each has a file of its own');
	for my $generation (sort keys %file) {
		my $file = "$dir/$file{$generation}";
		like($result->{err}, qr/\Q$file{$generation}\E: [1-9]\d* events in /, "generation $generation: -v");
		my $rows = rows_by_functions(report(run(tool('hdiff', 'linux', $file))->{out}), 'family');
		my %of_size = map { $_->[0] => $_->[1] } values %$rows;
		is($of_size{ 1000 * ($generation + 1) }, 1, 'its block, with its stack') or diag(explain($rows));
		my $by = $pid{ $generation + 1 };
		like(list($file), qr/^process +$pid{$generation}, 64-bit, started by $by$/m, 'whose child it is') if $by;
	}
	$result = run([wine($record, 'record', '--children', '--for', '20s', '-o', win("$dir/orphan.hrec"), '--', $family, 'orphan')]);
	is($result->{status}, 5, 'a child outlives the first program');
	like($result->{out}, qr/^after the end\r?$/, 'hsnap waits for it');
	is($result->{err}, '', 'no complaint');
	my ($orphan) = grep { /^orphan\.\d+\.hrec$/ } files_in($dir);
	my $rows = rows_by_functions(report(run(tool('hdiff', 'linux', "$dir/$orphan"))->{out}), 'family');
	is(scalar(grep { $_->[0] == 4321 } values %$rows), 1, 'and it is recorded to its end');
	return;
}

# {name} and {pid} in the output: programs that run at once, and children, have their own files.
sub names {
	my $family = "$root/build/win64/targets/family.exe";
	my @running = map { my $out = "$dir/out$_"; [Hunt::start([wine($record, 'record', '-o', win("$dir/new/{name}-{pid}.hrec"), '--', $family, 'tree', 0)], stdout => $out), $out] } 1, 2;
	is(Hunt::finish($_->[0]) >> 8, 10, 'a program ends with its status') for @running;
	my @pids = map { slurp($_->[1]) =~ /^tree 0 pid (\d+)/ } @running;
	is_deeply([files_in("$dir/new")], [sort map { "family-$_.hrec" } @pids], 'each has its file, in a new folder');
	like(list("$dir/new/family-$_.hrec"), qr/^process +$_,/m, 'which is of that process') for @pids;
	my $result = run([wine($record, 'record', '--children', '-o', win("$dir/{pid}/{{x}.hrec"), '--', $family, 'tree', 1)]);
	is($result->{status}, 11, 'a family') or diag($result->{err});
	ok(-s "$dir/$_/{x}.hrec", "the file of $_") for $result->{out} =~ / pid (\d+)/g;
	check_error(hsnap('record', '-o', win("$dir/{$_}.hrec"), '--', $family, 'tree', 0), 'hsnap', "{$_}", qr/\{$_\}/) for qw(time n what);
	return;
}

# Enter marks a moment with a typed label or a number. Ctrl-C ends the recording, which is then
# complete.
sub terminal {
	needs_linux('script(1)');
	my $target = target($exe, ['--seconds', 3, '--stop', 100, '--stop', 2900]);
	is($target->step, 1, 'it runs') or return;
	my $file = "$dir/terminal.hrec";
	pipe my $keys, my $hand or die "pipe: $!\n";
	my $script = Hunt::start(['script', '-qefc', "exec '$root/setup/wine' '$record' record -o '" . win($file) . "' -p $target->{pid} 2>'$dir/said'",
		"$dir/typescript"], stdin => $keys);
	ok(comes(sub { -e "$dir/said" && slurp("$dir/said") =~ /Enter marks/ }), 'it prints the keys');
	my $count = -1;
	for my $line ('', 'half way there', '') {
		my $is_marked = sub { (() = list($file) =~ /^mark /mg) > $count };
		$count++;
		syswrite $hand, "$line\r";
		# A key that is pressed during the console's creation may be lost.
		syswrite $hand, "\r" if !$count && !comes($is_marked, 100);
		ok(comes($is_marked), "Enter behind '$line'") or diag(slurp("$dir/said")), last;
	}
	syswrite $hand, "\x03";
	is(Hunt::finish($script), 0, 'Ctrl-C ends it well') or diag(slurp("$dir/said"));
	like(join(', ', list($file) =~ /^mark +[\d.]+ s (.*)/mg), qr/^(?:1, )?[12], half way there, [34]$/, 'the marks are there');
	unlike(list($file), qr/^cut/m, 'and it was ended');
	is($target->next_step, 2, 'the program goes on');
	is($target->quit, 0, 'to its end');
	return;
}

sub list { return run(tool('hdiff', 'linux', '--list', @_))->{out} }

sub comes {
	my ($is_there, $tries) = @_;
	for (1 .. $tries // 10 * $Hunt::limit) {
		return 1 if $is_there->();
		sleep 0.1;
	}
	return 0;
}

# While recording, hsnap reads its stdin only if it is a console.
sub no_terminal {
	my $target = target($exe, ['--seconds', 2, '--stop', 100]);
	is($target->step, 1, 'it runs') or return;
	pipe my $from, my $to or die "pipe: $!\n";
	syswrite $to, "one\ntwo\n";
	my $result = run([wine($record, 'record', '--for', '1s', '-o', win("$dir/piped.hrec"), '-p', $target->{pid})], stdin => $from);
	is($result->{err}, '', 'it prints nothing');
	close $to;
	is(join('', <$from>), "one\ntwo\n", 'what was to read is still there');
	unlike(list("$dir/piped.hrec"), qr/^mark/m, 'and marks nothing');
	is($target->quit, 0, 'the program ends well');
	return;
}

# Whatever happens to hsnap, the program continues, and the part that was written can be read.
sub killed {
	needs_linux("Linux's /proc");
	my $target = target($exe, ['--seconds', 3, '--stop', 100, '--stop', 2900]);
	is($target->step, 1, 'it runs') or return;
	my $recorder = Hunt::start([wine($record, 'record', '-o', win("$dir/cut.hrec"), '-p', $target->{pid})], stderr => "$dir/err");
	marked($target, 'begin') or return;
	syswrite $target->{to}, "\n";
	sleep 1.6;
	kill 'KILL', wine_process($recorder, $record);
	Hunt::finish($recorder);
	is($target->step, 2, 'the program goes on');
	is($target->quit, 0, 'to its end');
	my $result = run(tool('hdiff', 'linux', '--force', "$dir/cut.hrec\@begin", "$dir/cut.hrec\@end"));
	is($result->{status}, 0, 'the file can be read') or diag($result->{err});
	my $rows = rows_by_functions(report($result->{out}), 'memory_test');
	my ($objects) = grep { /InnerLoop/ } keys %$rows;
	ok($objects && $rows->{$objects}[1] > 100, 'and has what came before') or diag($result->{out});
	my $again = hsnap('record', '--for', '0s', '-o', win("$dir/gone.hrec"), '-p', $target->{pid});
	isnt($again->{status}, 0, 'a process that has ended is not recorded');
	ok(!-e "$dir/gone.hrec", 'and leaves no file');
	return;
}

# The rings have room for only a few events. Threads wait, or with --drop events are lost; losses
# are reported and counted.
sub dropped {
	my $maps = "$root/build/win64/bench/maps.exe";
	my %events;
	for my $drop ([], ['--drop']) {
		my $file = "$dir/ring@$drop.hrec";
		my $result = run([wine($record, 'record', '-v', '-o', win($file), '--ring', '1M', @$drop, '--', $maps, 50000)]);
		is($result->{status}, 0, "@$drop: status of the program") or diag($result->{err});
		my ($waits) = $result->{err} =~ /threads waited (\d+) times/;
		my ($lost) = $result->{err} =~ /warning: (\d+) events? lost$/m;
		my $read = run(tool('hdiff', 'linux', '--no-symbols', '--max-growth', '1G', $file));
		if (@$drop) {
			is($waits, 0, 'nobody waits');
			cmp_ok($lost // 0, '>', 0, 'and events are lost') or diag($result->{err});
			is($read->{status}, 2, 'so no limit holds');
			like($read->{err}, qr/\b$lost\b/, 'and hdiff reports how many') if $lost;
		} else {
			is($lost, undef, 'nothing is lost') or diag($result->{err});
			is($read->{status}, 0, 'and limits hold') or diag($read->{err});
			my ($left) = $result->{out} =~ /bytes (\d+) frees/ ? $1 : 0;
			$left -= $1 if $result->{out} =~ /frees \d+ bytes (\d+)/;
			my $stacks = 0;
			$stacks += $_->{bytes} for grep { grep { ($_->{module} // '') =~ /^maps/ } @{ $_->{frames} } } @{ report($read->{out})->{rows} };
			cmp_ok($stacks, '>=', $left, 'all that is left is there');
		}
	}
	return;
}

sub errors {
	check_error(hsnap('record'), 'hsnap', 'no file', qr/-o FILE/);
	check_error(hsnap('record', '-o', win("$dir/x.hrec")), 'hsnap', 'no process', qr/-p PID|-pn/);
	check_error(hsnap('record', '-o', win("$dir/none/x.hrec"), '--', $exe), 'hsnap', 'no folder', qr/x\.hrec/);
	check_error(hsnap('record', '-o', win("$dir/x.hrec"), '--ring', '5', '--', $exe), 'hsnap', '--ring 5', qr/--ring/);
	check_error(hsnap('record', '-o', win("$dir/x.hrec"), '--max-bytes', '9', '--', $exe), 'hsnap', '--max-bytes 9', qr/--max-bytes/);
	check_error(hsnap('record', '--stop', '-o', win("$dir/x.hrec"), '-p', 8), 'hsnap', '--stop with a file', qr/--stop/);
	check_error(hsnap('record', '-o', win("$dir/x.hrec"), '--', win("$dir/none.exe")), 'hsnap', 'no program', qr/none\.exe/);
	check_error(hsnap('record', '-o', win("$dir/x.hrec"), '--children', '-p', 8), 'hsnap', '--children of a process', qr/--children/);
	check_error(hsnap('mark', '-p', 8, 'x' x 300), 'hsnap', 'a label that is too long');
	ok(!-e "$dir/x.hrec", 'no file is left');
	return;
}
