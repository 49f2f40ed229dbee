#!/usr/bin/perl
# Errors are reported in one line that names the file or the pid, with exit status 2. No output file
# remains, and the target continues.
use strict;
use warnings;
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();
my $samples = "$root/build/win64/samples";
my $victim = "victim$$.exe"; # a unique name
my $exe = "$dir/$victim";
copy("$samples/leak_steady.exe", $exe) or die "$exe: $!\n";

subtest 'no such process' => \&no_such_process;
subtest 'practice 4: several processes of one name' => \&several;
subtest 'practice 6: no rights' => \&no_rights;
subtest 'practice 8: not traced' => \&not_traced;
subtest 'ended' => \&ended;
subtest '32-bit' => \&bits32;
subtest 'programs that cannot be started' => \&cannot_start;
subtest 'wrong usage' => \&wrong_usage;
subtest 'where the output cannot go' => \&bad_output;
subtest 'disk full' => \&disk_full;
subtest 'bad dumps' => \&bad_dumps;
SKIP: {
	skip "a running 32-bit process: this Wine has no 32-bit side", 1;
}
done_testing;

# Checks that hsnap fails and leaves no file.
sub refused {
	my ($what, $args, @words) = @_;
	my $out = fresh_dir();
	check_error(hsnap(@$args, '-f', win("$out/out.txt")), 'hsnap', $what, @words);
	is_deeply([files_in($out)], [], "$what: no file is left");
}

sub no_such_process {
	refused('a pid nobody has', ['-p', 999999], '999999');
	refused('pid 0', ['-p', 0], qr/\b0\b/);
	refused('a pid that is no number', ['-p', '12x'], '12x');
	my $target = target($exe);
	is($target->step, 1, 'a program runs');
	refused("a number $_ above its pid", ['-p', $target->{pid} + $_], 'no such process', $target->{pid} + $_)
	    for 1 .. 3;
	is($target->quit, 0, 'it ends');
	refused('a name nobody has', ['-pn', 'nobody-has-this.exe'], 'nobody-has-this.exe');
	refused('the same by --process-name of UMDH', ['-pn:nobody-has-this.exe'], 'nobody-has-this.exe', "'hsnap ps'");
	refused("a path: $_", ['-pn', $_], 'app.exe', 'give a file name alone') for 'C:\\x\\app.exe', 'bin/app.exe';
}

sub several {
	my @targets = map { target($exe, [], traced => 1) } 1, 2;
	is($_->step, 1, 'a target runs') for @targets;
	refused('two of one name', ['-pn', $victim], $victim,
		map { qr/\b$_->{pid}\b/ } @targets);
	is($targets[0]->quit, 0, 'one goes');
	my $out = fresh_dir();
	check_ok(hsnap('-pn', uc $victim, '-f', win("$out/by-name.txt")), 'the other one by its name');
	ok(-s "$out/by-name.txt", 'its dump is there');
	is($targets[1]->next_step, 2, 'the other one goes on');
	is($targets[1]->quit, 0, 'and ends');
}

sub no_rights {
	my $target = target("$root/build/win64/targets/odd.exe", ['closed']);
	is($target->step, 1, 'the target runs and lets nobody in');
	refused('no rights', ['-p', $target->{pid}], qr/\b$target->{pid}\b/, 'no right', 'administrator');
	is($target->quit, 0, 'the target ends well');
}

sub not_traced {
	my $target = target($exe);
	is($target->step, 1, 'the target runs untraced');
	refused('not traced', ['-p', $target->{pid}, '--stacks=tracer'], qr/\b$target->{pid}\b/, 'not traced', 'hsnap run');
	refused('no ust', ['-p', $target->{pid}, '--stacks=ust'], qr/\b$target->{pid}\b/, 'not started with +ust', 'hsnap ust on');
	my $without = hsnap('-p', $target->{pid});
	is($without->{status}, 0, 'without --stacks the totals are reported');
	like($without->{err}, qr/\Ahsnap: [^\n]*warning: no block has a stack[^\n]*\n\z/, 'which one line reports');
	like($without->{err}, qr/'hsnap attach -p $target->{pid}'/, 'with what would help');
	like($without->{out}, qr/^\/\/ hsnap: stacks source=none\r?$/m, 'and the dump');
	is($target->next_step, 2, 'the target goes on');
	is($target->quit, 0, 'the target ends well');
}

sub ended {
	my $target = target($exe, [], traced => 1);
	is($target->step, 1, 'the target runs');
	my $pid = $target->{pid};
	is($target->quit, 0, 'the target ends');
	refused('a process that has ended', ['-p', $pid], qr/\b$pid\b/);
}

sub bits32 {
	my $bytes = slurp($exe);
	my $header = unpack 'V', substr $bytes, 0x3c, 4;
	is(substr($bytes, $header, 4), "PE\0\0", 'a PE header to patch');
	substr $bytes, $header + 4, 2, pack 'v', 0x14c;
	spew("$dir/prog32.exe", $bytes);
	check_error(hsnap('run', '--', "$dir/prog32.exe"), 'hsnap', 'run', 'prog32.exe', '32-bit');
	my $out = fresh_dir();
	check_error(hsnap('run', '--at-exit', win("$out/x.txt"), '--', win("$dir/prog32.exe")),
		'hsnap', 'run --at-exit', 'prog32.exe', '32-bit');
	is_deeply([files_in($out)], [], 'no dump of what never ran');
}

sub cannot_start {
	spew("$dir/text.exe", "this is no program\n");
	check_error(hsnap('run', '--', win("$dir/missing.exe")), 'hsnap', 'a missing program', 'missing.exe');
	# Wine's CreateProcess() refuses such a path, too.
	my $deep = "$dir/" . join '/', map { $_ x 60 } qw(a b c d e);
	system('mkdir', '-p', $deep) == 0 or die "mkdir: $?\n";
	copy("$samples/leak_steady.exe", "$deep/far.exe") or die "far.exe: $!\n";
	check_error(hsnap('run', '--', win("$deep/far.exe")), 'hsnap', 'a program at a long path', 'far.exe', 'more than 259 characters');
	check_error(hsnap('run', '--', win("$dir/text.exe")), 'hsnap', 'a text', 'text.exe');
	check_error(hsnap('run', '--', win($dir)), 'hsnap', 'a folder', $dir =~ s,.*/,,r);
	my $no_program = hsnap('run', '--', win("$root/build/win64/hsnap-tracer64.dll"));
	check_error($no_program, 'hsnap', 'a DLL', 'hsnap-tracer64.dll');
	unlike($no_program->{err}, qr/%1/, 'whose name the system would put in is not left open');
	copy("$root/build/win64/hsnap.exe", "$dir/alone.exe") or die "alone.exe: $!\n";
	my $target = target($exe);
	is($target->step, 1, 'a program runs');
	check_error(run([wine("$dir/alone.exe", @$_)]), 'hsnap', "@$_ without the tracer's file", qr/\(hsnap-tracer64\.dll is missing, perhaps removed by an antivirus: keep .* beside hsnap\.exe\)/)
	    for ['run', '--', win($exe)], ['attach', '-p', $target->{pid}];
	is($target->quit, 0, 'it ends');
	my $late = hsnap("run", "--at-exit", win("$dir/none/x.txt"), "--", win($exe));
	check_error($late, "hsnap", '--at-exit into a folder that is missing: the program does not run', "x.txt");
}

sub wrong_usage {
	my @nothing = (hsnap(), map { my $side = $_; map { run(tool($_, $side)) } qw(hdiff hsym) } tool_names());
	for my $result (@nothing) {
		ok($result->{status} == 2 && $result->{out} eq q() && $result->{err} =~ /^(?:usage: h|h\w+: )/,
			"nothing asked: status 2") or diag("$result->{command}: $result->{status}, $result->{err}");
	}
	for my $case (['no such option', '--no-such'], ['-p without a pid', '-p'],
		['run without a program', 'run'], ['both a pid and a name', '-p', 1, '-pn', 'x.exe']) {
		my ($what, @args) = @$case;
		check_error(hsnap(@args), 'hsnap', "hsnap: $what");
	}
	for my $case (['--at-exit', '-g'], ['--at-exit', '--'], ['--time-limit', '--children']) {
		my ($option, $value) = @$case;
		check_error(hsnap('run', $option, $value, '--', win($exe)), 'hsnap', "$option $value", $option, "the option $value follows");
	}
	for my $side (tool_names()) {
		check_error(run(tool('hdiff', $side, '-f', '--tree', 'a.txt', 'b.txt')), 'hdiff', "$side: -f --tree", 'needs a value', 'the option --tree follows');
	}
	check_error(run(tool('hsnap', 'linux', 'run', '--', 'app.exe')), 'hsnap', 'run on Linux', 'or under Wine') if !$as_windows;
	check_error(hsnap('run', '--at-exit', '{nix}.txt', '--', win($exe)), 'hsnap', 'a word that there is not', '{name}', '{pid}');
	check_error(hsnap('run', '--at-exit', '{time}.txt', '--', win($exe)), 'hsnap', 'a word for a series', 'for a series');
	for my $side (tool_names()) {
		check_error(run(tool('hdiff', $side, '--no-such')), 'hdiff', "$side hdiff --no-such", '--no-such');
	}
}

# Provides a traced target and a good dump of that target (1 MB with names).
sub with_dump {
	my ($do) = @_;
	my $target = target("$samples/many_blocks.exe", [5000], traced => 1);
	is($target->step, 1, 'the target runs');
	my $out = fresh_dir();
	snapshot($target->{pid}, "$out/good.txt");
	$do->($target->{pid}, "$out/good.txt");
	is($target->next_step, 2, 'the target goes on');
	is($target->quit, 0, 'the target ends well');
}

sub bad_output {
	with_dump(sub {
		my ($pid, $good) = @_;
		my $missing = "$dir/no-such-folder/out.txt";
		check_error(hsnap('-p', $pid, '-f', win($missing)), 'hsnap', 'a missing folder', 'out.txt');
		my $folder = fresh_dir();
		check_error(hsnap('-p', $pid, '-f', win($folder)), 'hsnap', 'a folder', $folder =~ s,.*/,,r);
		is_deeply([files_in($folder)], [], 'nothing in it');
		for my $side (tool_names()) {
			for my $case (['hdiff', '-f'], ['hsym', '-o']) {
				my ($tool, $option) = @$case;
				check_error(run(tool($tool, $side, $option, $missing, $good)), $tool,
					"$side $tool: a missing folder", 'out.txt');
				check_error(run(tool($tool, $side, $option, $folder, $good)), $tool,
					"$side $tool: a folder", $folder =~ s,.*/,,r);
				is_deeply([files_in($folder)], [], "$side $tool: nothing in it");
			}
		}
	});
}

sub disk_full {
	needs_linux('/dev/full, and ulimit');
	my $small = fresh_dir();
	my $mounted = $> == 0 && run(['mount', '-t', 'tmpfs', '-o', 'size=64k', 'none', $small])->{status} == 0;
	eval { with_dump(sub {
		my ($pid, $good) = @_;
		cmp_ok(-s $good, '>', 65536, 'the dump is larger than the disk');
		SKIP: {
			skip 'no right to mount a small disk', 5 unless $mounted;
			spew("$small/old.txt", "old\n");
			check_error(hsnap('-p', $pid, '-f', win("$small/old.txt")), 'hsnap', 'hsnap', 'old.txt', 'write');
			# The dump becomes larger when names are added.
			check_error(run(tool('hsym', $_, '-o', "$small/old.txt", $good)), 'hsym', "$_ hsym",
				'old.txt', 'write') for tool_names();
			is_deeply([files_in($small)], ['old.txt'], 'nothing half-written is left');
			is(slurp("$small/old.txt"), "old\n", 'the old file is as it was');
		}
		for my $tool (qw(hdiff hsym)) {
			my $full = run(tool($tool, 'linux', $good), stdout => '/dev/full');
			check_error($full, $tool, "$tool to a full standard output", 'standard output', 'write');
			my $limited = run(['sh', '-c', 'trap "" XFSZ; ulimit -f 1; exec "$@"', 'sh',
				@{ tool($tool, 'linux', $tool eq 'hsym' ? '-o' : '-f', "$dir/limited.txt", $good) }]);
			check_error($limited, $tool, "$tool past ulimit -f", 'limited.txt', 'write');
			ok(!-e "$dir/limited.txt", "$tool: no file is left");
		}
		my $full = run([wine("$root/build/win64/hsnap.exe", '-p', $pid)], stdout => '/dev/full');
		check_error($full, 'hsnap', 'hsnap to a full standard output', 'standard output', 'write');
	}) };
	my $died = $@;
	run(['umount', $small]) if $mounted;
	die $died if $died;
}

# The part that exists is used. The message and the status report that the file is incomplete.
sub check_cut {
	my ($result, $what, $name, $report) = @_;
	is($result->{status}, 2, "$what: status 2");
	like($result->{err}, qr/^hdiff: \S*\Q$name\E\S*: warning: cut short[^\n]*$/m, "$what: it is said");
	like(slurp($report), qr/\bCUT SHORT\b.*\nTotal increase == /s, "$what: and in the report");
}

sub bad_dumps {
	my $bad = fresh_dir();
	with_dump(sub {
		my ($pid, $good) = @_;
		my $bytes = slurp($good);
		my @lines = split /^/, $bytes;
		spew("$bad/empty", '');
		spew("$bad/cut-in-the-middle", substr $bytes, 0, length($bytes) / 2);
		spew("$bad/cut-at-a-line", join '', @lines[0 .. $#lines / 2]);
		spew("$bad/without-its-last-line", join '', @lines[0 .. $#lines - 1]);
		spew("$bad/without-its-last-bytes", substr $bytes, 0, -3);
		spew("$bad/binary", join '', map { chr } (0 .. 255) x 40);
		spew("$bad/zeros", "\0" x 100000);
		spew("$bad/program", slurp($exe));
		spew("$bad/prose", "This is a letter.\n" x 50);
		spew("$bad/one-long-line", 'x' x 3_000_000);
		spew("$bad/half-of-utf16", "\xff\xfe" . join '', map { "$_\0" } split //, substr $bytes, 0, length($bytes) / 2);
		spew("$bad/newer", $bytes =~ s/format=1\b/format=99/r);
		spew("$bad/comparison", run(tool('hdiff', 'linux', $good))->{out});
		spew("$bad/two-dumps-in-one", $bytes . $bytes);
		spew("$bad/too-many-bad-lines", $bytes . "1 bytes + x\n" x 101);
		mkdir "$bad/a-folder" or die "mkdir: $!\n";
	});
	for my $name (files_in($bad), 'missing') {
		for my $side (tool_names()) {
			for my $case (['hdiff', '-f'], ['hsym', '-o']) {
				my ($tool, $option) = @$case;
				# A comparison is printed again by hdiff.
				next if $tool eq 'hdiff' && $name eq 'comparison';
				my $out = fresh_dir();
				my $result = run(tool($tool, $side, $option, "$out/out.txt", "$bad/$name"));
				if ($tool eq 'hdiff' && $name =~ /^(?:cut-|without-|half-)/) {
					check_cut($result, "$side hdiff: $name", $name, "$out/out.txt");
					next;
				}
				check_error($result, $tool, "$side $tool: $name", $name);
				is_deeply([files_in($out)], [], "$side $tool: $name: no file is left");
			}
		}
		check_error(run(tool('hdiff', 'linux', "$bad/missing-too", "$bad/$name")), 'hdiff',
			"the first one is missing, the second is $name", $name eq 'a-folder' ? $name : 'missing-too');
	}
}
