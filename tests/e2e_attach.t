#!/usr/bin/perl
# hsnap attach and detach leave a program unchanged, whatever its threads are doing and whenever
# hsnap is ended. Between the two commands the trace is exact.
use strict;
use warnings;
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Time::HiRes qw(time);
use Hunt;
use Looping;

my $dir = fresh_dir();
my $busy = "$root/build/win64/targets/busy.exe";
my %seconds = (attach => 1, detach => 1); # seconds that each command takes
my $victim = "$dir/hsnap$$.exe"; # a unique name, by which the test finds and kills the process
copy("$root/build/win64/hsnap.exe", $victim) or die "hsnap.exe: $!\n";
copy("$root/build/win64/hsnap-tracer64.dll", $dir) or die "hsnap-tracer64.dll: $!\n";

# Allows ten seconds for a busy loader, because other tests run at the same time.
my $locked = target($busy, [0, 'locked']);
$locked->step == 1 or die "busy locked: $!\n";
my $waiting = Hunt::start([qw(timeout -k 5 120), wine("$root/build/win64/hsnap.exe", 'attach', '-p', $locked->{pid})],
	stdout => "$dir/locked.out", stderr => "$dir/locked.err");

subtest 'one thread' => \&one_thread;
subtest 'strings of COM' => \&strings_of_com;
subtest 'another sample' => \&another_sample;
subtest 'busy threads' => \&busy_threads;
subtest 'no DLL can be loaded' => \&locked;
subtest 'hsnap is killed' => \&hsnap_is_killed;
subtest 'the target ends' => \&target_ends;
subtest 'refused' => \&refused;
subtest 'a rule keeps the tracer out' => \&kept_out;
subtest 'the DLL is no DLL' => \&no_dll;
subtest 'several of one name' => \&several;
subtest 'a program that run is starting' => \&starting;
subtest 'run in run' => \&nested;
done_testing;

sub attach { my ($target, @args) = @_; return hsnap('attach', '-p', $target->{pid}, @args) }
sub detach { my ($target, @args) = @_; return hsnap('detach', '-p', $target->{pid}, @args) }

# Compares the snapshots of steps $from and $to. Returns { FUNCTION => [BLOCKS, BYTES] }; the
# function 'none' has the blocks without a stack.
sub growth {
	my ($from, $to, $module) = @_;
	my $diff = run(tool('hdiff', 'linux', $from, $to));
	check_ok($diff, 'hdiff');
	my $report = report($diff->{out});
	check_report($report, 'the growth');
	my %growth;
	for my $row (@{ $report->{rows} }) {
		my ($first) = chain_of($row, $module // 'busy');
		my $name = $row->{frames}[0]{none} ? 'none' : $first ? $first->{function} : next;
		$growth{$name}[0] += $row->{count};
		$growth{$name}[1] += $row->{bytes};
	}
	return \%growth;
}

# Older blocks have no stack, newer blocks have one. Changes of both are counted correctly.
sub one_thread {
	my $target = target($busy, [0]);
	is($target->step, 1, 'the target runs');
	my $before = peek($target);
	is($before->{ntdll}, 0, 'its ntdll is as in the file');
	check_ok(attach($target), 'attach');
	my $attached = peek($target);
	cmp_ok($attached->{ntdll}, '>=', 15, 'ntdll has jumps');
	check_error(attach($target), 'hsnap', 'attach again', qr/\b$target->{pid}\b/, 'traced already');
	# Ignore the handle, which is closed a moment later.
	is_deeply({ %{ peek($target) }, handle => $attached->{handle} }, $attached, 'which changes nothing');
	my ($first, $second) = ("$dir/first.txt", "$dir/second.txt");
	is($target->next_step, 2, 'the target goes on');
	snapshot($target->{pid}, $first);
	is($target->next_step, 3, 'the target goes on');
	snapshot($target->{pid}, $second);
	my %step = (leak_new => [20, 20 * 2222], move_old => [1, 3333], none => [-2, -2 * 1111]);
	is_deeply(growth($first, $second), \%step, 'a step of the target is seen to the byte');
	my $result = detach($target, '-v');
	is($result->{status}, 0, 'detach');
	like($result->{err}, qr/\Ahsnap: pid $target->{pid}: no longer traced: .*\n\z/, 'and reports it');
	my $detached = peek($target);
	is($detached->{ntdll}, 0, 'ntdll is as in the file again');
	like($detached->{state}, qr/^2 /, 'the tracer is off');
	check_error(detach($target), 'hsnap', 'detach again', 'not traced', 'detached');
	$result = hsnap('-p', $target->{pid}, '-f', win("$dir/detached.txt"));
	is($result->{status}, 0, 'a snapshot of a detached process');
	like($result->{err}, qr/\Ahsnap: pid $target->{pid}: warning: .*detached.*\n\z/, 'reports that it was detached');
	for my $round (1 .. 4) {
		check_ok(attach($target), "attach, round $round");
		is($target->next_step, $round + 3, 'the target goes on');
		is(peek($target)->{space}, $attached->{space}, 'it takes no more address space than the first time');
		check_ok(detach($target), "detach, round $round");
	}
	check_ok(attach($target), 'attach again');
	($first, $second) = ("$dir/again1.txt", "$dir/again2.txt");
	snapshot($target->{pid}, $first);
	is($target->next_step, 8, 'the target goes on');
	snapshot($target->{pid}, $second);
	is_deeply(growth($first, $second), \%step, 'a stack is not what it was before, though it was the last one then');
	check_ok(detach($target), 'detach');
	is(peek($target)->{ntdll}, 0, 'ntdll is as in the file');
	is($target->quit, 0, 'the target has found nothing wrong');
}

# attach turns COM's string cache off. If the cache may be on, the dump warns.
sub strings_of_com {
	for my $case ([], ['late'], [], ['keep']) {
		my $is_warned = @$case;
		my @keep = grep { $_ eq 'keep' } @$case;
		my $target = target("$root/build/win64/targets/bstr_cache.exe", [@keep ? () : @$case]);
		is($target->step, 1, "@$case: the target runs");
		check_ok(attach($target, @keep ? '--keep-bstr-cache' : ()), 'attach');
		my ($first, $second) = ("$dir/first.txt", "$dir/second.txt");
		is($target->next_step, 2, 'the target goes on');
		my @shots = map { my $to = $_; $target->next_step if $to eq $second; hsnap('-p', $target->{pid}, '-f', win($to)) } $first, $second;
		is($_->{status}, 0, 'a snapshot') for @shots;
		like($shots[1]{err}, $is_warned ? qr/warning: COM's string cache/ : qr/\A\z/, $is_warned ? 'it warns' : 'it does not warn');
		my $growth = $is_warned ? {} : growth($first, $second, 'bstr_cache');
		is_deeply({ map { $_ => $growth->{$_}[0] } keys %$growth }, $is_warned ? {} : { leak_string => 30 }, 'only what leaks has a row');
		ok(defined $target->quit, 'the target ends');
	}
}

# A thread that counts bytes up to the next block of a sparse sample must not carry this count into
# a trace of every block.
sub another_sample {
	my $target = target($busy, [0]);
	is($target->step, 1, 'the target runs');
	check_ok(attach($target, '--sample', '1G'), 'attach for one byte of 1 G');
	is($target->next_step, 2, 'the target goes on');
	check_ok(detach($target), 'detach');
	check_ok(attach($target, '--sample', 1), 'attach for every byte');
	my ($first, $second) = ("$dir/first.txt", "$dir/second.txt");
	is(hsnap('-p', $target->{pid}, '-f', win($first))->{status}, 0, 'a snapshot');
	is($target->next_step, 3, 'the target goes on');
	is(hsnap('-p', $target->{pid}, '-f', win($second))->{status}, 0, 'another one');
	is(run(tool('hdiff', 'linux', $first, $second))->{out} =~ /leak_new/, 1, 'it is recorded');
	check_ok(detach($target), 'detach');
	is($target->quit, 0, 'the target ends');
}

# Now and then threads execute the bytes that hsnap patches. The target checks its own results.
sub busy_threads {
	for my $what ('both', 'heap') {
		my $target = target($busy, [4, $what]);
		is($target->step, 1, 'the target runs');
		my $step = 1;
		for my $round (1 .. 10) {
			check_ok(attach($target), "attach, round $round");
			is($target->next_step, ++$step, 'the target goes on') or BAIL_OUT('the target hangs');
			check_ok(detach($target), "detach, round $round");
			is($target->next_step, ++$step, 'the target goes on') or BAIL_OUT('the target hangs');
		}
		check_ok(attach($target), 'attach');
		my ($first, $second) = ("$dir/first-$what.txt", "$dir/second-$what.txt");
		snapshot($target->{pid}, $first);
		is($target->next_step, ++$step, 'the target goes on');
		snapshot($target->{pid}, $second);
		my $growth = growth($first, $second);
		is_deeply($growth->{leak_new}, [20, 20 * 2222], 'leak_new is seen to the byte');
		is_deeply($growth->{move_old}, [1, 3333], 'move_old is seen to the byte');
		is($target->quit, 0, 'the target has found nothing wrong');
	}
}

# Starts hsnap, and kills it after a number of seconds if it is still running. The delay is
# intended: hsnap's progress differs between runs, but the required result does not.
sub kill_after {
	my ($seconds, @args) = @_;
	my $pid = Hunt::start([wine($victim, @args)], stderr => "$dir/killed");
	my $until = time + $seconds;
	while (time < $until) {
		select undef, undef, undef, 0.005;
	}
	kill KILL => unix_pids($victim);
	return Hunt::finish($pid);
}

# Whatever a killed hsnap leaves, the target continues, and attach and detach work again.
sub hsnap_is_killed {
	needs_linux("Linux's /proc");
	my $target = target($busy, [2]);
	is($target->step, 1, 'the target runs');
	# Measure the second attach, because the killed ones are second too: the first attach leaves
	# tables.
	for my $round (1, 2) {
		for my $command ('attach', 'detach') {
			my $from = time;
			check_ok(hsnap($command, '-p', $target->{pid}), $command);
			$seconds{$command} = time - $from;
		}
	}
	my $step = 1;
	for my $command ('attach', 'detach') {
		for my $part (2, 4, 6, 8, 9) {
			attach($target) if $command eq 'detach';
			kill_after($part / 10 * $seconds{$command}, $command, '-p', $target->{pid});
			my $what = sprintf '%s killed after %.2f s', $command, $part / 10 * $seconds{$command};
			is($target->next_step, ++$step, "$what: the target goes on") or BAIL_OUT('the target hangs');
			my $attached = attach($target);
			ok($attached->{status} == 0 || $attached->{err} =~ /traced already/, "$what: it is traced then")
			    or diag($attached->{err});
			check_ok(detach($target), "$what: detach");
			my $after = peek($target);
			is($after->{ntdll}, 0, "$what: ntdll is as in the file");
			is($after->{suspended}, 0, "$what: no thread is left suspended");
		}
	}
	is($target->quit, 0, 'the target has found nothing wrong');
}

# The process ends during attach. hsnap prints one line, unless attach finished first.
sub target_ends {
	for my $part (3, 6, 9) {
		my $target = target($busy, [2]);
		is($target->step, 1, 'the target runs');
		my $pid = Hunt::start([qw(timeout -k 5 120), wine("$root/build/win64/hsnap.exe", 'attach', '-p', $target->{pid})],
			stderr => "$dir/ended");
		my $until = time + $part / 10 * $seconds{attach};
		while (time < $until) {
			select undef, undef, undef, 0.005;
		}
		is($target->quit, 0, 'the target has found nothing wrong');
		my $status = Hunt::finish($pid) >> 8;
		my $said = slurp("$dir/ended") =~ s/\r//gr;
		ok(($status == 0 && $said eq '') || ($status == 2 && $said =~ /\Ahsnap: [^\n]*\n\z/),
			"attach ends with status 0, or one line and status 2") or diag("$status: $said");
	}
}

sub refused {
	for my $command ('attach', 'detach') {
		my $quiet = sub { my ($what, $args, @words) = @_; check_error(hsnap($command, @$args), 'hsnap', "$command: $what", @words) };
		$quiet->('no process', ['-p', 99999996], '99999996', 'no such process');
		$quiet->('no name', ['-pn', 'nobody-has-this.exe'], 'no such process');
		$quiet->('nothing', [], '-p PID');
		$quiet->('two', ['-p', 12, '-pn', 'x'], 'give one of -p and -pn');
		$quiet->('one twice', ['-p', 12, '-p', 13], 'give one of -p and -pn');
		$quiet->('no number', ['-p', '12x'], '12x', 'decimal');
		$quiet->('a word', ['-p', 12, 'x'], 'x');
	}
	check_error(hsnap('attach', '-p', 12, '--max-mb', 1), 'hsnap', 'a limit too low', '1', 'MiB');
	check_error(hsnap('attach', '-p', 12, '--sample', '1Q'), 'hsnap', 'no size', '1Q', 'bytes');
	my $closed = target("$root/build/win64/targets/odd.exe", ['closed']);
	is($closed->step, 1, 'a program that lets nobody open it');
	check_error(attach($closed), 'hsnap', 'no right', qr/\b$closed->{pid}\b/, 'no right');
	check_error(detach($closed), 'hsnap', 'no right', qr/\b$closed->{pid}\b/, 'no right');
	is($closed->quit, 0, 'which goes on');
	my $untraced = target($busy, [0]);
	is($untraced->step, 1, 'a program that is not traced');
	check_error(detach($untraced), 'hsnap', 'detach', qr/\b$untraced->{pid}\b/, 'not traced');
	is($untraced->quit, 0, 'which goes on');
}

# The process's image file is replaced by an image for ARM64. A rule must refuse it before hsnap
# writes to the process.
sub kept_out {
	needs_linux('to write the file of a running program');
	my $exe = "$dir/kept$$.exe";
	copy($busy, $exe) or die "$exe: $!\n";
	my $target = target($exe, [0]);
	is($target->step, 1, 'the target runs');
	my $before = peek($target);
	my $image = slurp($exe);
	for_machine($exe, $image, 0xaa64);
	check_error(attach($target), 'hsnap', 'attach', qr/\Ahsnap: pid $target->{pid}: cannot be traced \(a program for ARM64 processors, on which the tracer does not run yet; 'hsnap ust on IMAGE' and snapshots with -p may work\)\n?\z/);
	is($before->{state}, undef, 'the target has no tracer');
	is_deeply({ %{ peek($target) }, handle => $before->{handle} }, $before, 'nothing in it has changed: code, address space, threads');
	is($target->next_step, 2, 'it goes on');
	for_machine($exe, $image, 0x8664);
	check_ok(attach($target), 'attach without the rule');
	is($target->next_step, 3, 'it goes on');
	check_ok(detach($target), 'detach');
	is($target->quit, 0, 'the target has found nothing wrong');
}

# Changes the machine in the header of an image's file.
sub for_machine {
	my ($exe, $image, $machine) = @_;
	open my $to, '+<:raw', $exe or die "$exe: $!\n";
	sysseek $to, unpack('V', substr($image, 60, 4)) + 4, 0;
	syswrite $to, pack 'v', $machine;
	close $to or die "$exe: $!\n";
}

# The loader refuses to load the tracer's file, as a policy may require.
sub no_dll {
	my $here = fresh_dir();
	copy("$root/build/win64/hsnap.exe", $here) or die "hsnap.exe: $!\n";
	spew("$here/hsnap-tracer64.dll", 'not an image');
	my $target = target($busy, [0]);
	is($target->step, 1, 'the target runs');
	my @why = ('cannot be traced (does not load hsnap-tracer64.dll: an antivirus or a policy, such as WDAC or Smart App Control, may '
		. q{forbid it; 'hsnap ust on IMAGE' needs no code in it)});
	check_error(run([wine("$here/hsnap.exe", 'attach', '-p', $target->{pid})]), 'hsnap', 'attach', qr/\b$target->{pid}\b/, @why);
	is(peek($target)->{ntdll}, 0, 'its ntdll is as in the file');
	is($target->next_step, 2, 'the target goes on');
	is($target->quit, 0, 'the target has found nothing wrong');
	check_error(run([wine("$here/hsnap.exe", 'run', '--', win("$root/build/win64/targets/odd.exe"), 'raise')]), 'hsnap', 'run', @why);
}

# Several processes are selected as for a snapshot, except that attach has no --all.
sub several {
	my $exe = "$dir/several$$.exe";
	copy($busy, $exe) or die "$exe: $!\n";
	my @targets = map { target($exe, [0]) } 1, 2;
	is($_->step, 1, 'a program runs') for @targets;
	for my $command ('attach', 'detach') {
		my $result = hsnap($command, '-pn', "several$$");
		check_error($result, 'hsnap', "$command: two of the name", 'choose one of them with -p PID',
			map { qr/\bpid $_->{pid} started \d{4}-\d\d-\d\dT[\d:.]+Z with \d+ private bytes\b/ } @targets);
		unlike($result->{err}, qr/--all/, "$command has no --all");
	}
	is(peek($_)->{state}, undef, 'none is touched') for @targets;
	is($targets[1]->quit, 0, 'one goes');
	check_ok(hsnap('attach', '-pn', uc "several$$.exe"), 'attach to the other one by its name');
	check_ok(hsnap('detach', '-pn', "several$$"), 'and detach');
	is($targets[0]->quit, 0, 'it has found nothing wrong');
}

# While hsnap run waits for the loader of a program or its child, attach waits for run. Otherwise
# each would overwrite the other's hooks and tables.
sub starting {
	needs_linux("Linux's /proc");
	my $odd = "$root/build/win64/targets/odd.exe";
	my @ways = ([$odd, ['slow'], []], ['cmd.exe', ['/c', win($odd), 'slow'], ['--children']]);
	for my $way (@ways) {
		my ($exe, $args, $run) = @$way;
		my $out = fresh_dir();
		my $target = target($exe, $args, traced => 1, run => [@$run, '--at-exit', win("$out/{name}-{pid}.txt")]);
		is($target->step, 1, "@$run: a program is at work before main") or next;
		is(lock_of($target), 'taken', 'it is the turn of run to change it');
		my $pid = Hunt::start([qw(timeout -k 5 120), wine($victim, 'attach', '-p', $target->{pid})], stderr => "$out/said");
		my $until = time + $Hunt::limit;
		while (!unix_pids($victim) && time < $until) {
			select undef, undef, undef, 0.005;
		}
		my $early = loop('-p', $target->{pid}, '-f', win("$out/early.txt"));
		ok($early->wait_line(qr/its tracer is being switched on or off: waiting/), 'a snapshot waits, and reports it');
		is($target->next_step, 2, 'the program goes on');
		is($early->end, 0, 'the snapshot is taken');
		like(slurp("$out/early.txt"), qr{^// hsnap: stacks source=tracer}m, 'with the stacks that the tracer has');
		is(Hunt::finish($pid) >> 8, 2, 'attach meanwhile');
		like(slurp("$out/said"), qr/\Ahsnap: [^\n]*traced already[^\n]*\n\z/, 'waits, and finds it traced');
		is(lock_of($target), 'free', 'it is the turn of anybody');
		is($target->quit, 0, 'the program ends');
		is(slurp("$target->{err}"), '', 'and run has no complaint');
		my ($file) = grep { /^odd-/ } files_in($out);
		my $dump = defined $file ? slurp("$out/$file") : '';
		is(scalar(() = $dump =~ /^3E8 bytes \+ \w+ at \w+ by BackTrace/mg), 1, 'its block is in the snapshot at its exit');
	}
}

sub lock_of {
	my ($target) = @_;
	return run([wine("$root/build/win64/tests/ask_lock.exe", $target->{pid})])->{out} =~ s/\s//gr;
}

# hsnap runs a second hsnap, which runs a program, with children. The second hsnap must be refused
# at once.
sub nested {
	my $out = fresh_dir();
	my $result = hsnap('run', '--children', '--at-exit', win("$out/{name}-{pid}.txt"), '--', win("$root/build/win64/hsnap.exe"),
		'run', '--at-exit', win("$out/inner.txt"), '--', win("$root/build/win64/targets/odd.exe"), 'raise');
	is($result->{status}, 2, 'run in a run that follows children');
	like($result->{err}, qr/^hsnap: [^\n]*: the process is traced already/m, 'reports that it is traced');
	ok(!-e "$out/inner.txt", 'and leaves no file');
}

# If the loader is too slow, attach fails. The loader's later actions change nothing.
sub locked {
	my $status = Hunt::finish($waiting) >> 8;
	my %result = (command => 'attach', status => $status, out => slurp("$dir/locked.out"), err => slurp("$dir/locked.err") =~ s/\r//gr);
	check_error(\%result, 'hsnap', 'attach', qr/\b$locked->{pid}\b/, 'loader is busy');
	is($locked->next_step, 2, 'the target goes on');
	check_ok(attach($locked), 'attach later');
	is($locked->next_step, 3, 'the target goes on');
	check_ok(detach($locked), 'detach');
	is($locked->quit, 0, 'the target has found nothing wrong');
}
