#!/usr/bin/perl
# The system's own MiniDumpWriteDump writes a minidump of a live sample. hsnap -z finds in the file,
# block by block, what hsnap -p finds in the process, on Windows and on Linux. Two such files give
# the sample's growth exactly.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;
use Images;

subtest 'with the tracer' => sub { traced('leak_heaps') };
subtest 'without stacks' => sub { untraced('leak_steady') };
subtest 'real files without full memory' => \&real;
subtest 'a snapshot that lacks something' => \&incomplete;
subtest 'what is no minidump' => \&refused;
subtest 'what needs Windows' => \&elsewhere;
done_testing;

sub minidump {
	my ($pid, $file) = @_;
	my $result = run([wine("$root/build/win64/targets/dumper.exe", $pid, win($file))]);
	return ok($result->{status} == 0 && -s $file, "a minidump of pid $pid, " . (-s $file // 0) . ' bytes')
	    || diag($result->{err});
}

# Requires status 0, and no message except one about missing stacks if $expected is set.
sub check_done {
	my ($result, $what, $expected) = @_;
	return check_ok($result, $what) unless $expected;
	return ok($result->{status} == 0 && $result->{err} =~ /\Ahsnap: .*: warning: no block has a stack.*\n\z/,
		"$what: status 0, and it is said that no block has a stack") || diag($result->{err});
}

# Runs the Linux and Windows builds of hsnap -z, which write FILE.linux.txt and FILE.windows.txt.
# Returns true if the two files are equal.
sub read_file {
	my ($file, $is_stackless) = @_;
	for my $side (tool_names()) {
		my $out = "$file.$side.txt";
		my $result = run(tool('hsnap', $side, '-z', $file, '-f', $out));
		check_done($result, "hsnap -z, $side", $is_stackless) or return;
		cmp_ok($result->{cpu_seconds}, '<', 20, "$side: in time");
	}
	return ok(slurp("$file.linux.txt") eq slurp("$file.windows.txt"), 'both sides write the same bytes');
}

# Returns lines without their time and place. A file has whole seconds, no parent and no host. Wine
# omits the process's start, its own name, and of the figures of the balance all but the threads.
sub lasting {
	my ($file) = @_;
	return [map { s/ (?:time|start|clock|parent|host)=\S+//gr =~ s/, Wine [\d.]+//r }
		grep { !m{^// hsnap: (?:memory|counts|handles) } } split /\r?\n/, slurp($file)];
}

sub check_same {
	my ($live, $file, $what) = @_;
	my ($x, $y) = (lasting($live), lasting($file));
	my $blocks = grep { / by BackTrace/ } @$x;
	ok("@$x" eq "@$y", "$what: the file's $blocks blocks, stacks, heaps and modules are the process's")
	    or is_deeply($y, $x);
	is(balance_of($file)->{threads}, balance_of($live)->{threads}, "$what: as many threads");
	return $blocks;
}

sub traced {
	my ($name) = @_;
	my $dir = fresh_dir();
	my $target = target("$root/build/win64/samples/$name.exe", [], traced => 1);
	for my $step (1 .. 2) {
		is($step == 1 ? $target->step : $target->next_step, $step, "step $step is done") or return;
		snapshot($target->{pid}, "$dir/live$step.txt") or return;
		minidump($target->{pid}, "$dir/$step.dmp") or return;
		read_file("$dir/$step.dmp") or return;
		my $blocks = check_same("$dir/live$step.txt", "$dir/$step.dmp.linux.txt", "step $step");
		cmp_ok($blocks, '>', 10, "step $step: blocks with stacks");
	}
	is($target->quit, 0, 'the sample ends as it would untraced');
	growth($dir, $name);
	like(slurp("$dir/1.dmp.linux.txt"), qr{^// hsnap: process id=$target->{pid} bits=64 image="[^"]*$name\.exe"}m,
		'the file identifies the process');
	wanted_stacks("$dir/1.dmp");
}

sub growth {
	my ($dir, $name) = @_;
	my $result = run(tool('hdiff', 'linux', map { "$dir/$_.dmp.linux.txt" } 1, 2));
	check_ok($result, 'hdiff of two files') or return;
	my $report = report($result->{out});
	check_report($report, 'hdiff of two files');
	check_truth($report, $name, 1, 2, 'hdiff of two files') or diag($result->{out});
}

sub wanted_stacks {
	my ($file) = @_;
	check_ok(run(tool('hsnap', 'linux', '-z', $file, '--stacks=tracer', '-f', "$file.tracer")),
		'the tracer by name');
	ok(slurp("$file.tracer") eq slurp("$file.linux.txt"), 'the tracer by name: the same');
	check_error(run(tool('hsnap', 'linux', '-z', $file, '--stacks=ust')), 'hsnap',
		'stacks that it has not', '+ust');
}

sub heap_notes { return [grep { m,^// hsnap: heap , } @{ lasting($_[0]) }] }

sub untraced {
	my ($name) = @_;
	my $dir = fresh_dir();
	my $target = target("$root/build/win64/samples/$name.exe");
	is($target->step, 1, 'step 1 is done') or return;
	check_done(hsnap('-p', $target->{pid}, '-f', win("$dir/live.txt")), 'the live process', 1) or return;
	minidump($target->{pid}, "$dir/a.dmp") or return;
	is($target->quit, 0, 'the sample ends');
	read_file("$dir/a.dmp", 1) or return;
	my $heaps = heap_notes("$dir/live.txt");
	cmp_ok(scalar @$heaps, '>', 1, 'several heaps');
	is_deeply(heap_notes("$dir/a.dmp.linux.txt"), $heaps, "the file's heaps are the process's, to the byte");
	check_error(run(tool('hsnap', 'linux', '-z', "$dir/a.dmp", '--stacks=tracer')), 'hsnap',
		'a tracer that it has not', 'not traced');
}

sub refused {
	my $dir = fresh_dir();
	my %bad = (
		'no file' => ['none.dmp', undef, 'cannot open'],
		'an empty file' => ['empty.dmp', '', 'is empty'],
		'a text' => ['text.dmp', "Windows\n", 'is not a minidump'],
		'a cut header' => ['cut.dmp', 'MDMP' . "\x93\xa7\0\0", 'is not a minidump', 'cut short after 8 bytes'],
		'a dump of a system' => ['system.dmp', 'PAGEDU64' . "\0" x 8192, 'is not a minidump', 'whole system'],
		'nothing in it' => ['nothing.dmp', "MDMP\x93\xa7\0\0" . "\0" x 24, "contains no heap memory"],
	);
	for my $what (sort keys %bad) {
		my ($name, $bytes, @words) = @{ $bad{$what} };
		spew("$dir/$name", $bytes) if defined $bytes;
		for my $side (tool_names()) {
			my $result = run(tool('hsnap', $side, '-z', "$dir/$name", '-f', "$dir/out.txt"));
			check_error($result, 'hsnap', "$what, $side", $name, @words);
			ok(!-e "$dir/out.txt", "$what, $side: nothing is written");
		}
	}
	check_error(run(tool('hsnap', 'linux', '-z', "$dir")), 'hsnap', 'a folder', 'a folder');
	check_error(run(tool('hsnap', 'linux', '-z', '/dev/null')), 'hsnap', 'a device', 'not a regular file') if !$as_windows;
}

# Minidumps of real Windows without full memory. hsnap lists the modules and reports missing data.
# In the only heap that is partly present, it finds the blocks that were read by hand.
sub real {
	my $dir = fresh_dir();
	my %modules = (
		'node-minidump_windows_x64_14393' => 58,
		'syzygy_notepad-larger-32bit' => 22,
		'syzygy_notepad-larger-64bit' => 5,
	);
	for my $name (sort keys %modules) {
		SKIP: {
			my $dump = data_file("dumps/$name.dmp") or skip("$name.dmp is not here", 5);
			my $result = run(tool('hsnap', 'linux', '-z', $dump, '-f', "$dir/$name.txt"));
			is($result->{status}, 2, "$name: status");
			# Only one minidump has a part of a heap.
			like($result->{err}, $name =~ /32bit/ ? qr/: the snapshot is incomplete \(.*--force\n\z/ : qr/: contains no heap memory .*\n\z/,
				"$name: and why");
			like($result->{err}, qr/warning: the dump was written without full memory: it has \d+ bytes in \d+ ranges?\n/, "$name: it is said");
			my $text = slurp("$dir/$name.txt");
			my $count = () = $text =~ m{^// {3,}[0-9A-F]+ +[0-9A-F]+ [A-Z]:\\}mg;
			is($count, $modules{$name}, "$name: its modules");
			like($text, qr{^// hsnap: end blocks=\d+}m, "$name: a whole dump");
		}
	}
	SKIP: {
		my $walk = data_file('dumps/syzygy_notepad-larger-32bit.walk.txt') or skip('the chain read by hand is not here', 1);
		my @bytes = map { hex } slurp($walk) =~ /^\S+ size .* user=\w+ ubytes=(\w+)/mg;
		my ($count, $sum) = (scalar @bytes, 0);
		$sum += $_ for @bytes;
		like(slurp("$dir/syzygy_notepad-larger-32bit.txt"), qr{^// hsnap: end blocks=$count requested=$sum }m,
			"the $count blocks of $sum bytes that were read by hand");
	}
}

# A synthetic process without full memory. hsnap writes the dump with status 2, or 0 if --force is
# given. The dump never passes a growth limit.
sub incomplete {
	my $dir = fresh_dir();
	make_image("$dir/sound.dmp", 'win10-x64', '--no-lfh') or return fail('an image');
	my $bytes = slurp("$dir/sound.dmp");
	spew("$dir/cut.dmp", substr $bytes, 0, int(0.7 * length $bytes));
	make_image("$dir/none.dmp", 'win10-x64', '--partial') or return fail('an image without memory');
	my %said = (cut => qr/^hsnap: cut\.dmp: the snapshot is incomplete \(the dump was written anyway\); .*--force\n\z/m,
		none => qr/^hsnap: none\.dmp: contains no heap memory \(the dump was written anyway\); .*\n\z/m);
	for my $side (tool_names()) {
		for my $name (sort keys %said) {
			my @how = ('hsnap', $side, '-z', "$dir/$name.dmp", '-f');
			my $result = run(tool(@how, "$dir/$name.txt"));
			is($result->{status}, 2, "$name, $side: status 2");
			like($result->{err}, $said{$name}, 'which is reported last');
			like(slurp("$dir/$name.txt"), qr{^// hsnap: incomplete missing=[1-9]\d*\r\n.*^// hsnap: end blocks=\d+}ms, 'the dump is written, and states it');
			$result = run(tool(@how, "$dir/forced.txt", '--force'));
			is($result->{status}, 0, "$name, $side: with --force status 0");
			unlike($result->{err}, qr/: the (?:snapshot is incomplete|heaps' memory)/, 'and no error');
			ok(slurp("$dir/forced.txt") eq slurp("$dir/$name.txt"), 'the dump is the same');
		}
	}
	for my $files (['cut.txt'], ['none.txt', 'cut.txt']) {
		my @files = map { "$dir/$_" } @$files;
		my $result = run(tool('hdiff', 'linux', '--no-symbols', '--max-growth', '1T', @files));
		is($result->{status}, 2, "hdiff --max-growth @$files: status 2");
		my $count = () = $result->{err} =~ /: warning: --max-growth cannot judge it: the snapshot is incomplete;/g;
		cmp_ok($count, '>=', 1, 'and why');
		is(run(tool('hdiff', 'linux', '--no-symbols', '--max-growth', '1T', '--force', @files))->{status}, 0, 'with --force status 0');
	}
}

# hsnap for Linux reads files, and refuses everything else by name.
sub elsewhere {
	needs_linux('a system without processes of Windows');
	for my $args (['-p', 1], ['-pn', 'app.exe'], ['run', 'app.exe'], ['ust', 'show', 'app.exe'], ['ps'], ['doctor']) {
		check_error(run(tool('hsnap', 'linux', @$args)), 'hsnap', "hsnap @$args", 'this needs Windows', '-z FILE.dmp');
	}
	check_error(run(tool('hsnap', 'linux', '-z', 'a.dmp', '-p', 1)), 'hsnap', 'two processes', 'give one of them');
	my $help = run(tool('hsnap', 'linux', 'snapshot', '--help'));
	is($help->{status}, 0, '--help: status 0');
	like($help->{out}, qr/^\s+-z, --dump FILE\s/m, '--help has -z');
}
