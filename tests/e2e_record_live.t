#!/usr/bin/perl
# hsnap record of a busy program. Eight threads pass blocks to each other, libraries that allocate
# are loaded and unloaded, heaps are destroyed, and children start. The program writes the same
# bytes as without hsnap, and the recording agrees with its statements. A recording may begin and
# end at any time, even on a full disk. If hsnap or the program is killed, the file is right up to
# its end.
use strict;
use warnings;
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use List::Util qw(sum0);
use Test::More;
use Time::HiRes qw(time sleep);
use Hunt;
use Replay;

my $dir = fresh_dir();
$ENV{HSYM_CACHE} = "$dir/names"; # the same names are needed again and again
my $record = "$root/build/win64/hsnap.exe";
my $stress = "$root/build/win64/targets/stress.exe";
my $threads = 8;
my $kills = $ENV{HSNAP_KILLS} // 4; # number of kills of each process

subtest 'from its start' => \&whole;
subtest 'handed on as fast as they can' => \&handed_on;
subtest 'attached again and again' => \&attached;
subtest 'a full disk' => \&full_disk;
subtest 'hsnap or the program is killed' => \&killed;
done_testing;

sub stress {
	my ($events, %how) = @_;
	return target($stress, [$threads, 1000, 1, win("$root/build/win64/targets/plug.dll"), win($events)], %how);
}

# Runs the program up to its next step; returns the output.
sub to_step {
	my ($target) = @_;
	my $text = '';
	while (defined(my $line = $target->line)) {
		$text .= "$line\n";
		$target->{pid} = $1 if $line =~ s/^(?:step \d+ pid )(\d+)$//;
		return $text =~ s/\d+$//r if $line eq '';
	}
	return $text . "no further step\n";
}

sub go_on { return syswrite $_[0]{to}, "\n" }

# Runs the program to its end; returns the output and the exit status.
sub to_end {
	my ($target) = @_;
	my $text = '';
	syswrite $target->{to}, "quit\n";
	while (defined(my $line = $target->line)) {
		$text .= "$line\n";
	}
	return $text . 'status ' . $target->quit;
}

# Returns { FUNCTION => { bytes, count } } for the functions that the program states. Each is the
# innermost function of its stacks.
sub rows {
	my ($report) = @_;
	my %rows;
	for my $row (@{ $report->{rows} }) {
		my $plug = ($row->{frames}[0]{module} // '') eq 'plug';
		my ($first) = chain_of($row, $plug ? 'plug' : 'stress') or next;
		next if $first->{function} !~ /^(?:(?:re)?make_|plug_keep$)/;
		$rows{ $first->{function} }{bytes} += $row->{bytes};
		$rows{ $first->{function} }{count} += $row->{count};
	}
	return \%rows;
}

sub shown {
	my ($what, @args) = @_;
	my $result = run(tool('hdiff', 'linux', @args));
	is($result->{status}, 0, "$what: hdiff") or diag("@args\n$result->{err}");
	return report($result->{out});
}

# Checks classes of allocations between two steps, by function. Each step has a mark.
sub check_classes {
	my ($file, $replay, $old, $new, @classes) = @_;
	for my $class (@classes) {
		my $what = "step $old to $new, $class";
		my $rows = rows(shown($what, '--class', $class, '--from', "step $old", '--to', "step $new", $file));
		is_deeply($rows, $replay->fates($class, (map { $replay->mark("step $_") } $old, $new), ['stack']), $what);
	}
	return;
}

sub whole {
	my @said;
	for my $how ([], [record => ['-v', '-o', win("$dir/run.hrec")]]) {
		my $target = stress("$dir/events", @$how);
		my $text = '';
		for my $step (1 .. 6) {
			$text .= to_step($target);
			check_ok(hsnap('mark', '-p', $target->{pid}, "step $step"), "mark $step") if @$how;
			go_on($target);
			next if $step % 2;
			sleep 0.5 if @$how; # at full speed the program states only its final state
			go_on($target);
		}
		push @said, $text . to_step($target) . to_end($target);
		like(slurp("$target->{err}"), qr/^hsnap: \S+: \d{6,} events in /, 'very many events') if @$how;
	}
	is($said[1], $said[0], 'the program says the same');
	like($said[0], qr/(?:child\nstep \d pid \n){6}0\n1\n4\n.*\nstatus 0\z/s, 'which is what it should') or return;
	my ($file, $replay) = ("$dir/run.hrec", Replay->new(slurp("$dir/events")));
	for my $moment ((map { "step $_" } 2 .. 6), 'end') {
		my $rows = rows(shown($moment, "$file\@start", "$file\@$moment"));
		my $position = $moment eq 'end' ? $replay->events : $replay->mark($moment);
		is_deeply($rows, $replay->state($position, ['stack']), "what lives at $moment");
	}
	check_classes($file, $replay, 3, 4, qw(aifo aifi aofi aofo));
	check_classes($file, $replay, @$_, qw(aifo aofi aofo)) for [4, 5], [2, 6];
	return;
}

# Detects a thread that numbers an event at the same time as another thread.
sub handed_on {
	my $target = target("$root/build/win64/targets/hand_on.exe", [8, 1_500_000], record => ['-o', win("$dir/handed.hrec")]);
	is($target->step, 1, 'it runs') or return;
	go_on($target);
	my ($made) = ($target->line // '') =~ /^made (\d+)$/ or return fail('threads hand blocks on');
	is($target->step, 2, 'all blocks are freed');
	is($target->quit, 0, 'it ends');
	is(slurp($target->{err}), '', 'nothing is missing in the recording');
	my %rows = map { $_ => rows_of_make(shown($_, '--class', $_, "$dir/handed.hrec")) } qw(aifi aifo);
	is_deeply(\%rows, { aifi => [$made, 32 * $made], aifo => [0, 0] }, 'each was allocated once, and freed once');
	return;
}

sub rows_of_make {
	my ($report) = @_;
	my @mine = grep { ((chain_of($_, 'hand_on'))[0] // { function => '' })->{function} eq 'make' } @{ $report->{rows} };
	return [sum0(map { $_->{count} } @mine), sum0(map { $_->{bytes} } @mine)];
}

# Checks the totals of the threads' shared heap, which contains no other blocks. Blocks that are
# older than the recording have no stack. Sizes are compared only under Wine 8: since version 9
# HeapSize() is wrong for blocks that were shrunk in place.
sub check_heap {
	my ($file, $replay, $old, $new) = @_;
	my $list = run(tool('hdiff', 'linux', '--list', $file))->{out};
	my ($heap) = map { $_->{heap} } grep { $_->{stack} eq 'make_0' && $_->{heap} !~ /^0+$/ } @{ $replay->allocations };
	for my $class (qw(aofi aofo)) {
		my $what = "step $old to $new, $class in the heap";
		my $truth = $replay->fates($class, (map { $replay->mark("step $_") } $old, $new), [], sub { $_->{heap} eq $heap });
		my %sum;
		for my $row (@{ shown($what, '--heap', $heap, '--class', $class, '--from', "step $old", '--to', "step $new", $file)->{rows} }) {
			$sum{$_} += $row->{$_} for qw(bytes count);
		}
		my %truth = %{ $truth->{''} // {} };
		delete @$_{ wine_version() < 9 ? () : 'bytes' } for \%sum, \%truth;
		if ($list =~ /^remark +its heaps were never idle/m) {
			cmp_ok(abs($sum{count} - $truth{count}), '<=', $threads, "$what: $sum{count}, but for one of each thread");
		} else {
			is_deeply(\%sum, \%truth, $what);
		}
	}
	return;
}

# Starts recording a running program. If a command of this machine is given, starts hsnap through
# that command.
sub recorder {
	my ($target, $name, $options, @under) = @_;
	return Hunt::start([@under, wine($record, 'record', '-o', win("$dir/$name.hrec"), @$options, '-p', $target->{pid})],
		stderr => "$dir/$name.err");
}

# Waits for the recording's end, and checks that the program is as before.
sub ended {
	my ($target, $recorder, $name, $status) = @_;
	is(Hunt::finish($recorder) >> 8, $status, "$name: status") or diag(slurp("$dir/$name.err"));
	my $is = peek($target);
	is_deeply([@$is{qw(ntdll suspended)}], [0, 0], "$name: nothing of it is left in the program, which goes on");
	return;
}

# Recordings begin and end while threads are running. Marks are set while the threads stand still.
# One recording ends because of --for.
sub attached {
	my $target = stress("$dir/events2");
	my @ends = (sub { check_ok(hsnap('record', '--stop', '-p', $target->{pid}), '--stop') },
		sub { $as_windows ? hsnap('record', '--stop', '-p', $target->{pid}) : kill INT => wine_process($_[0], $record) });
	to_step($target);
	go_on($target);
	to_step($target);
	my $step = 2;
	go_on($target);
	ended($target, recorder($target, 'for', ['--for', '1s']), 'for', 0);
	for my $end (@ends) {
		my $recorder = recorder($target, "run$step");
		marked($target, 'attached') or return;
		for my $next ($step + 1, $step + 2) {
			go_on($target);
			to_step($target);
			check_ok(hsnap('mark', '-p', $target->{pid}, "step $next"), "mark $next");
		}
		go_on($target);
		$end->($recorder);
		ended($target, $recorder, "run$step", 0);
		$step += 2;
	}
	go_on($target);
	to_step($target);
	like(to_end($target), qr/\A0\n1\n4\n.*\nstatus 0\z/s, 'the program does what it should');
	for my $name (qw(for run2 run4)) {
		my $list = run(tool('hdiff', 'linux', '--list', "$dir/$name.hrec"))->{out};
		like($list, qr/^events +[1-9]\d{4,} .*^lost +0 events$/ms, "$name: very many events, and all of them") or diag($list);
		unlike($list, qr/^cut /m, "$name: up to its end");
	}
	my $replay = Replay->new(slurp("$dir/events2"));
	for my $step (2, 4) {
		check_classes("$dir/run$step.hrec", $replay, $step + 1, $step + 2, qw(aifo aifi));
		check_heap("$dir/run$step.hrec", $replay, $step + 1, $step + 2);
	}
	return;
}

# Checks that hdiff reads the contents of a file that was not finished.
sub check_cut {
	my ($file) = @_;
	like(run(tool('hdiff', 'linux', '--list', $file))->{out}, qr/^cut /m, 'the file is marked as not ended');
	return shown('up to there it is read', $file);
}

# The recording ends with a message, and the program continues. No process under a limit is the
# first Wine process, because that process would start Wine's server, and its shared memory would be
# limited too.
sub full_disk {
	needs_linux('ulimit');
	my @small = ('sh', '-c', 'trap "" XFSZ; ulimit -f 1024; exec "$@"', 'sh');
	my $line = qr/\Ahsnap: \S+\.hrec: cannot write[^\n]*\n\z/;
	my $target = stress("$dir/events3");
	my $started = stress("$dir/none/events", under => \@small, record => ['-o', win("$dir/prog.hrec")]);
	for (1, 2) {
		to_step($_), go_on($_) for $target, $started;
	}
	ended($target, recorder($target, 'full', [], @small), 'full', 2);
	like(slurp("$dir/full.err") =~ s/\r//gr, $line, 'one line');
	my ($until, $is) = (time + $Hunt::limit);
	do { $is = peek($started) } until $is->{ntdll} eq '0' || time > $until;
	is($is->{ntdll}, 0, 'nothing of it is left in a program that was started') or return;
	go_on($_), to_step($_) for $target, $started;
	# The program cannot write its file of events, so its own status differs.
	like(to_end($started), qr/\nstatus 8\z/, 'which ends with its own status');
	like(slurp("$started->{err}") =~ s/\r//gr, $line, 'and a line');
	like(to_end($target), qr/\nstatus 0\z/, 'the other one does what it should');
	for my $file ("$dir/full.hrec", "$dir/prog.hrec") {
		like(run(tool('hdiff', 'linux', '--list', $file))->{out}, qr/^cut /m, 'the file is marked as not ended');
		cmp_ok(scalar keys %{ rows(shown('up to there it is read', $file)) }, '>', 16, 'many have blocks');
	}
	return;
}

# Kills processes at random moments, a few at the same time. The program does the same in each run,
# so a file must contain the statements of one run, up to some event. hsnap writes once a second.
# The program stops near its end, so no kill comes too late.
sub killed {
	needs_linux("Linux's /proc");
	my $exe = 'memory_test.exe';
	is(run([wine("$root/build/win64/samples/$exe", '--seconds', 2, '--events', win("$dir/truth"))])->{status}, 0, 'the truth is stated');
	my $replay = Replay->new(slurp("$dir/truth"));
	for (my $done = 0; $done < $kills; $done += 2) {
		my @runs;
		for my $victim ('hsnap', 'program', 'hsnap', 'program') {
			my $own = fresh_dir();
			copy("$root/build/win64/samples/$exe", $own) or die "$exe: $!\n";
			push @runs, { dir => $own, exe => "$own/$exe", victim => $victim, after => $victim eq 'hsnap' ? 0.9 + rand 1 : rand 1.9,
				target => target("$own/$exe", ['--seconds', 2, '--stop', 0, '--stop', 1990, '--events', win("$own/events")],
					record => ['-o', win("$own/run.hrec")]) };
		}
		$_->{target}->step or return fail('it runs') for @runs;
		my $from = time;
		go_on($_->{target}) for @runs;
		for my $run (sort { $a->{after} <=> $b->{after} } @runs) {
			sleep 0.005 while time < $from + $run->{after};
			kill KILL => $run->{victim} eq 'hsnap' ? wine_process($run->{target}{unix}, $record) : unix_pids($run->{exe});
		}
		check_killed($_, $replay) for @runs;
	}
	return;
}

sub check_killed {
	my ($run, $replay) = @_;
	my $what = sprintf '%s killed after %.2f s', @$run{qw(victim after)};
	$run->{target}->quit;
	sleep 0.01 while unix_pids($run->{exe});
	check_prefix($what, $replay, "$run->{dir}/run.hrec");
	my $is_cut = run(tool('hdiff', 'linux', '--list', "$run->{dir}/run.hrec"))->{out} =~ /^cut /m;
	is($is_cut, $run->{victim} eq 'hsnap', "$what: who is not killed ends the file");
	return if $run->{victim} ne 'hsnap';
	is(scalar(() = slurp("$run->{dir}/events") =~ /\n/g), 2 + (() = slurp("$dir/truth") =~ /\n/g), "$what: the program went on to its end");
	return;
}

# Checks that the live memory at the recording's end is that between two objects. Stacks that are
# read after the program has exited are unknown.
sub check_prefix {
	my ($what, $replay, $file) = @_;
	my $report = shown($what, $file);
	my $rows = rows_by_functions($report, 'memory_test');
	my @bare = grep { $_->{frames}[0]{none} } @{ $report->{rows} };
	my @objects = map { $_->{alloc}{index} } grep { $_->{stack} =~ /^Inner/ } @{ $replay->allocations };
	my ($count) = (map({ $rows->{$_}[1] } grep { /^Inner/ } keys %$rows), 0);
	my $most = $count + sum0(map { $_->{count} } @bare);
	my ($from, $to) = ($count ? $objects[$count - 1] + 1 : 0, $objects[$most] // $replay->events);
	my @same = grep {
		my $state = $replay->state($_, ['stack']);
		my %missing = map { $_ => $state->{$_}{bytes} - ($rows->{$_} // [0])->[0] } keys %$state;
		!grep({ !$state->{$_} } keys %$rows) && sum0(values %missing) == sum0(map { $_->{bytes} } @bare);
	} $from .. $to;
	return ok(scalar @same, "$what: what lived at one of events $from to $to") || diag(explain($rows, \@bare));
}
