#!/usr/bin/perl
# hsnap run leaves a program unchanged, even an unusual one: its threads, arguments and exit status.
# hsnap's own actions do not affect the snapshot at the end, in any form.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();
my $odd = "$root/build/win64/targets/odd.exe";

is(traced('threads')->{out} =~ s/\s//gr, 'same', 'the loader initialises it in its own thread');
my @arguments = ('a b', '', 'a"b', 'a\\', 'a\\\\"b c\\', '"', '\\"', 'tab	x', '--', '-p', '*.c', 'end');
is(traced('arguments', @arguments)->{out}, plain('arguments', @arguments)->{out}, 'arguments arrive as they are');
is($_->('early')->{status}, 33, 'a program that ends before main has its status') for \&plain, \&traced;
my $early = traced_to("$dir/early.txt", 'early');
is($early->{status}, 33, 'also when a snapshot was to be taken at its exit');
like($early->{err}, qr/\Ahsnap: .*did not exit normally \(status 33: .*\n\z/, 'which one line reports');

my $without = slurp($odd);
is($without =~ s/msvcrt\.dll/missed.dll/gi, 1, 'a program that needs a DLL which is nowhere');
spew("$dir/without.exe", $without);
my $missing = hsnap('run', '--at-exit', win("$dir/without.txt"), '--', win("$dir/without.exe"));
is($missing->{err}, "hsnap: " . win("$dir/without.exe") . ": the process did not exit normally "
	. "(status C0000135: a DLL that it needs is missing); nothing was written\n", 'a warning counts them');
is($missing->{status}, 0x35, 'and is its status, of which a shell here has 8 bits');
unlink "$dir/without.exe";

passed_on();
long_paths();
out_patterns();
forms();
form_of_each_child();
incomplete();
other_bitness();
other_machine();
linked();

my $raise = rows_of('raise', 0);
is_deeply($raise->{leak_after}, [100, 77700], 'allocations after an exception that went through a hook have their stacks');
is_deeply($raise->{keep_block}, [1, 1000], 'and so has the block that could not be reallocated');
my $adjacent = rows_of('adjacent', 0);
is_deeply($adjacent->{fill_heap}, [400, 80_000_000], 'heaps that lie side by side are both walked');
rows_of('race', 17) for 1 .. 3;
rows_of('crowd', 18) for 1 .. 6; # after this, no work in the program depends on one of its threads
is_deeply([files_in($dir)], [map { "$_.txt" } qw(adjacent crowd race raise)], 'nothing but the dumps is left');
done_testing;

# The program receives what it would receive without hsnap.
sub passed_on {
	my @hsnap = (win("$root/build/win64/hsnap.exe"), 'run');
	my $told = win("$root/build/win64/targets/told.exe");
	for my $status (0, 1, 259, 65_536, 2_147_483_648, 3_221_225_477, 4_294_967_295) {
		is(told('status', "@hsnap -- $told - exit $status")->{out}, sprintf('%X', $status), "exit status $status, all 32 bits");
	}
	my $both = sub {
		my ($what, %how) = @_;
		my @got = map {
			my $file = "$dir/streams.txt";
			my %streams = (%how, ref $how{stdin} ? (stdin => $how{stdin}->()) : ());
			my $result = run([wine(@$_, $told, win($file), 'streams')], %streams);
			my $got = join '|', slurp($file), @$result{qw(out err status)};
			unlink $file;
			$got
		} [], [@hsnap, '--'];
		is($got[1], $got[0], "streams: $what");
		like($got[1], $how{expect}, "streams: $what: as they are");
	};
	my $in = spew("$dir/in.txt", "a line\n");
	$both->('a file and files', stdin => $in, expect => qr/^disk\ndisk\ndisk\na line\n\|out\|err\|0$/);
	$both->('nothing', stdin => '/dev/null', expect => qr/^char\ndisk\ndisk\n\|out\|err\|0$/);
	$both->('a pipe', stdin => sub { pipe_with("from a pipe\n") }, expect => qr/^pipe\ndisk\ndisk\n/);
	my @closed = map {
		told('closed', join ' ', @$_, $told, win("$dir/closed.txt"), 'streams');
		slurp("$dir/closed.txt")
	} [], [@hsnap, '--'];
	is($closed[1], $closed[0], 'streams: closed ones');
	unlink "$dir/closed.txt", $in;

	is(told_by([@hsnap, '--'], 'env', 'OANOCACHE')->{out}, '1', 'OANOCACHE=1 is set');
	is(told_by([@hsnap, '--keep-bstr-cache', '--'], 'env', 'OANOCACHE')->{out}, 'unset', '--keep-bstr-cache leaves it');
	is(told_by([@hsnap, '--'], 'env', 'OANOCACHE', env => { OANOCACHE => 'mine' })->{out}, 'mine', 'one that is there stays');
	my $here = fresh_dir() . "/\x{c3}\x{a4} \x{e6}\x{9e}\x{97}";
	mkdir $here or die "$here: $!\n";
	is(told_by([@hsnap, '--'], 'folder', '', dir => $here)->{out}, win($here), 'the working folder');
	copy("$root/build/win64/targets/told.exe", "$here/found.exe") or die "found.exe: $!\n";
	for my $name ('found', 'found.exe', '.\\found') {
		my $got = run([wine(@hsnap, '--', $name, '-', 'image')], dir => $here);
		is($got->{out}, win("$here/found.exe"), "'$name' is found as the system does");
	}
	is(told_by([@hsnap, '--'], 'exit', 9)->{status}, 9, 'a status for the shell');
	for my $event ([0, 'Ctrl-C'], [1, 'Ctrl-Break']) {
		my ($number, $name) = @$event;
		my ($plain, $got) = map { told('console', join ' ', @$_, $told, '- ctrl', $number)->{out} } [], [@hsnap, '--'];
	SKIP: {
			skip("$name: there is no console here, or no such event in it", 1) if $plain ne sprintf '%X', 55 + $number;
			is($got, $plain, "$name is the program's, and hsnap waits for what it does");
		}
	}
}

# Paths that are longer than Windows accepts in its usual form, with letters outside ASCII. The
# program's own path is short, because Wine's CreateProcess accepts no path of that length in any
# form.
sub long_paths {
	my $deep = fresh_dir();
	for my $name ("\x{c3}\x{a4}" x 60, 'b' x 100, 'c d' x 30) {
		$deep .= "/$name";
		mkdir $deep or die "$deep: $!\n";
	}
	cmp_ok(length $deep, '>', 300, 'a long path');
	copy("$root/build/win64/$_", "$deep/$_") or die "$_: $!\n" for qw(hsnap.exe hsnap-tracer64.dll);
	my $prog = win("$root/build/win64/targets/told.exe");
	my $long = win("$root/build/win64/hsnap.exe");
	my $got = run([wine($long, 'run', '--at-exit', win("$deep/{name}.txt"), '--', $prog, win("$deep/out"), 'env', 'OANOCACHE')]);
	is("$got->{status} $got->{err}", '0 ', 'an argument is a long path');
	is(slurp("$deep/out"), '1', 'it ran');
	ok(-s "$deep/told.txt", 'so does the snapshot at exit');
	my $hsnap = win("$deep/hsnap.exe");
	$got = run([wine($hsnap, 'run', '--at-exit', win("$dir/deep.txt"), '--', win($odd), 'threads')]);
	# hsnap's helper is a program at that path, which Wine does not start: see above.
	like("$got->{status} $got->{err}", qr/\A0 (?:hsnap: pid \d+: warning: the helper that would resume it cannot be started.*\n)?\z/,
		'hsnap and the tracer lie in a long path');
	ok(-s "$dir/deep.txt", 'and trace');
	unlink "$dir/deep.txt";
}

sub out_patterns {
	my $out = fresh_dir();
	for my $wrong ('{nam}', '{', '{pid', 'a{}b', '{time}', '{pid}-{n}') {
		check_error(traced_to("$out/$wrong", 'early'), 'hsnap', "OUT with $wrong", $wrong =~ /time|n}/ ? 'series' : 'brace');
	}
	for my $bad (['--max-mb', 0], ['--max-mb', 15], ['--max-mb', '1G'], ['--sample', 0], ['--sample', 'much'], ['--sample', '1e3']) {
		check_error(hsnap('run', @$bad, '--', win($odd), 'early'), 'hsnap', "@$bad", $bad->[1]);
	}
	is_deeply([files_in($out)], [], 'nothing was written');
	is(traced_to("$out/{{x}-{name}.txt", 'threads')->{status}, 0, 'good ones');
	is_deeply([files_in($out)], ['{x}-odd.txt'], 'become names');
	is(traced_to("$out/made/{name}/{pid}.txt.gz", 'threads')->{status}, 0, 'folders that are missing');
	my ($packed) = files_in("$out/made/odd");
	like(slurp("$out/made/odd/$packed"), qr/\A\x1f\x8b/, 'are made; a name that ends in .gz packs');
	spew("$out/file", '');
	check_error(traced_to("$out/file/{pid}", 'early'), 'hsnap', 'OUT in a file', '{pid}');
	is(hsnap('run', '-f', win("$out/by-f.txt"), '--', win($odd), 'threads')->{status}, 0, '-f is taken, as snapshots have it');
	ok(-s "$out/by-f.txt", 'for --at-exit');
	is(hsnap('run', '--max-mb', 16, '--sample', '64K', '--', win($odd), 'threads')->{status}, 0, 'sizes are taken');
}

# One line per stack, and compressed: the sums of a program are the same in every form.
sub forms {
	my $out = fresh_dir();
	my %truth = (raise => ["100 77700", "1 1000"], adjacent => ["200 40000000", "200 40000000"]);
	for my $what (sort keys %truth) {
		my ($full, $sums, $packed) = map { "$out/$what-$_.txt" } qw(full sums packed);
		taken_at_exit($what, $full);
		taken_at_exit($what, $sums, '--by-stack');
		taken_at_exit($what, $packed, '--by-stack', '--gzip');
		my @sums = map { sums_in(slurp($_)) } $full, $sums;
		is_deeply($sums[1]{sums}, $sums[0]{sums}, "$what: each stack has the same blocks and bytes by stack");
		is($sums[1]{single}, 0, "$what: and no line is one block's");
		cmp_ok($sums[0]{single}, '>', 0, "$what: unlike in the full dump");
		is($sums[1]{end}, $sums[0]{end}, "$what: the end marks agree");
		my %count;
		$count{ s/^(\S+ \S+) .*/$1/sr }++ for @{ $sums[1]{sums} };
		my %wanted;
		$wanted{$_}++ for @{ $truth{$what} };
		is_deeply({ map { $_ => $count{$_} // 0 } keys %wanted }, \%wanted, "$what: what the program keeps is among them");
		is(run(['gzip', '-t', "$packed.gz"])->{status}, 0, "$what: gzip finds the packed one whole");
		my $text = run(['gzip', '-dc', "$packed.gz"])->{out};
		is(lasting($text), lasting(slurp($sums)), "$what: and in it the same text");
	}
	is_deeply([files_in($out)], [sort map { ("$_-full.txt", "$_-packed.txt.gz", "$_-sums.txt") } keys %truth], 'no other file');
	taken_at_exit('raise', "$out/full", '--gzip');
	is(lasting(run(['gzip', '-dc', "$out/full.gz"])->{out}), lasting(slurp("$out/raise-full.txt")), 'a full dump is packed, too');
	my $diff = run(tool('hdiff', 'linux', "$out/full.gz"));
	check_ok($diff, 'hdiff reads it');

	my $none = fresh_dir();
	spew("$none/a.txt", 'mine');
	check_error(hsnap('run', $_, '--', win($odd), 'early'), 'hsnap', "$_ without a file", "$_: ", '--at-exit OUT') for '--by-stack', '--gzip';
	check_error(hsnap('run', '--gzip', '--at-exit', win("$none/none/a.txt"), '--', win($odd), 'early'), 'hsnap',
		'packed into no folder', 'a.txt.gz: cannot create');
	is(traced_with('early', "$none/a.txt", '--gzip')->{status}, 33, 'a program that has no exit of its own');
	is_deeply([map { "$_ " . slurp("$none/$_") } files_in($none)], ['a.txt mine'], 'leaves what there is as it is');
}

sub form_of_each_child {
	my $out = fresh_dir();
	my $tree = hsnap('run', '--children', '--by-stack', '--gzip', '--at-exit', win("$out/{pid}.txt"), '--',
		win("$root/build/win64/targets/family.exe"), 'tree', 1);
	is("$tree->{status} $tree->{err}", '11 ', '--children');
	my %pid = $tree->{out} =~ /^tree (\d) pid (\d+)\r?$/mg;
	is_deeply([files_in($out)], [sort map { "$_.txt.gz" } values %pid], 'each has a file by its name');
	for my $generation (sort keys %pid) {
		my $sums = sums_in(run(['gzip', '-dc', "$out/$pid{$generation}.txt.gz"])->{out});
		my $bytes = 1000 * ($generation + 1);
		is(scalar(grep { /^1 $bytes / } @{ $sums->{sums} }), 1, "generation $generation: by stack");
		is($sums->{single}, 0, "generation $generation: alone");
	}
}

# In a broken heap the tracer knows all blocks, but losses are unknown. hsnap writes the snapshot,
# and its status is 2 if the program's is 0.
sub incomplete {
	my $file = fresh_dir() . "/broken.txt";
	my $complete = hsnap('run', '--at-exit', win($file), '--', win($odd), 'broken', 0);
	is($complete->{status}, 0, 'a broken heap of a program that was traced from its start');
	like($complete->{err}, qr/inconsistent; .*; all blocks that the tracer recorded in those heaps are listed\n\z/, 'is no reason to lack blocks');
	unlike(slurp($file), qr{^// hsnap: incomplete }m, 'nor is its dump incomplete');
	for my $case ([0, 2], [33, 33], [0, 0, '--force'], [33, 33, '--force']) {
		my ($own, $status, @options) = @$case;
		unlink $file;
		my $result = hsnap('run', '-g', @options, '--at-exit', win($file), '--', win($odd), 'broken', $own);
		is($result->{status}, $status, "a broken heap, status $own @options");
		like($result->{err}, qr/: warning: \d+ places? in the heaps (?:is|are) inconsistent/, 'a warning counts them');
		is($result->{err} =~ /: the snapshot is incomplete \(the dump was written anyway\); .*--force\n\z/, !@options, 'and the end');
		like(slurp($file), qr{^// hsnap: incomplete missing=1\r\n.*^// hsnap: end }ms, 'the dump is written');
	}
	check_error(hsnap('run', '--force', '--', win($odd), 'early'), 'hsnap', '--force without a file', '--force: ', '--at-exit OUT');
	my $target = target($odd, ['broken']);
	is($target->step, 1, 'a broken heap of a program that runs');
	for my $case ([2], [0, '--force']) {
		my ($status, @options) = @$case;
		my $out = fresh_dir();
		my $result = hsnap('-p', $target->{pid}, '-f', win("$out/{n}.txt"), '--every', '1s', '--count', 2, @options);
		is($result->{status}, $status, "a series of it, @options: status");
		is_deeply([files_in($out)], ['000001.txt', '000002.txt'], 'all files');
		is(scalar(() = $result->{err} =~ /: the snapshot is incomplete /g), @options ? 0 : 2, 'which is reported for each');
		like($result->{err}, qr/^hsnap: 2 files written$/m, 'the series goes on');
	}
	is($target->quit, 0, 'the program goes on');
}

sub traced_with {
	my ($what, $file, @options) = @_;
	return hsnap('run', @options, '--at-exit', win($file), '--', win($odd), $what);
}

sub taken_at_exit {
	my ($what, $file, @options) = @_;
	my $result = traced_with($what, $file, @options);
	is("$result->{status} $result->{err}", '0 ', "$what @options");
}

# Removes the dump's time and process, which differ between runs.
sub lasting {
	my ($text) = @_;
	$text =~ s{^(// hsnap: memory) .*? (?=heap-blocks=)}{$1 }m; # the system's counters vary
	return $text =~ s{^(// hsnap: dump .*) time=\S+}{$1}mr =~ s{^(// hsnap: process) id=\d+ start=\S+ clock=\d+( bits=\d+) parent=\d+}{$1$2}mr;
}

# Returns the contents of each stack in each heap (the first, the second ...) from both kinds of
# UMDH's lines, as "BLOCKS BYTES HEAP FRAMES". Also returns the number of lines of single blocks.
sub sums_in {
	my ($text) = @_;
	my ($heap, $id, %frames, %sums);
	my %found = (single => 0);
	for (split /\r\n/, $text) {
		if (/^\*.* Heap \w+ Hogs/) {
			$heap++;
		} elsif (/^([0-9A-F]+) bytes \+ \w+ at \w+ by BackTrace(\w+)$/) {
			$id = $2;
			$found{single}++;
			$sums{"$heap $id"}[0]++;
			$sums{"$heap $id"}[1] += hex $1;
		} elsif (/^(\w+) bytes in 0x(\w+) allocations \(@ 0x\w+ \+ 0x\w+\) by: BackTrace(\w+)$/) {
			$id = $3;
			$sums{"$heap $id"}[0] += hex $2;
			$sums{"$heap $id"}[1] += hex $1;
		} elsif (/^\t(\w+)/) {
			$frames{$id} .= " $1";
		} elsif (m{^// hsnap: end (.*)}) {
			$found{end} = $1;
		}
	}
	$found{sums} = [sort map { my ($of, $stack) = split / /; "@{ $sums{$_} } $of$frames{$stack}" } keys %sums];
	return \%found;
}

# hsnap.exe delegates a 32-bit program to an hsnap32.exe beside it, and passes on all messages. The
# header of an image determines its bitness, so the test changes the header of a 64-bit image.
sub other_bitness {
	my $here = fresh_dir();
	copy("$root/build/win64/$_", "$here/$_") or die "$_: $!\n" for qw(hsnap.exe hsnap-tracer64.dll);
	my $image = slurp($odd);
	substr($image, unpack('V', substr($image, 60, 4)) + 4, 2) = pack 'v', 0x14c;
	spew("$here/old.exe", $image);
	my @run = (wine(win("$here/hsnap.exe")), 'run', '--at-exit', '-', '--', win("$here/old.exe"), 'a b', '', 'c"d');
	check_error(run([@run]), 'hsnap', 'a 32-bit program', 'old.exe', '32-bit', 'hsnap32.exe');
	copy("$here/hsnap.exe", "$here/hsnap32.exe") or die "hsnap32.exe: $!\n";
	check_error(run([@run]), 'hsnap', 'an hsnap32.exe that is for 64 bits', 'old.exe', '32-bit', 'hsnap32.exe');
	unlink "$here/hsnap32.exe";
	copy("$root/build/win64/targets/stand_in.exe", "$here/hsnap32.exe") or die "stand_in.exe: $!\n";
	my $got = run([@run], stdin => spew("$here/in.txt", "a line\n"));
	is_deeply([split /\r?\n/, $got->{out}], ['[run]', '[--at-exit]', '[-]', '[--]', '[' . win("$here/old.exe") . ']', '[a b]', '[]',
		'[c"d]', 'a line'], 'hsnap32.exe gets the same arguments and streams');
	is($got->{status}, 77, 'and its status is passed on');
}

# A program for ARM64 processors is not started.
sub other_machine {
	my $here = fresh_dir();
	my $image = slurp($odd);
	substr($image, unpack('V', substr($image, 60, 4)) + 4, 2) = pack 'v', 0xaa64;
	spew("$here/arm.exe", $image);
	my $result = hsnap('run', '--at-exit', win("$here/out.txt"), '--', win("$here/arm.exe"), 'early');
	is($result->{err}, 'hsnap: ' . win("$here/arm.exe") . q{: cannot be traced (a program for ARM64 processors, on which the tracer does not }
	    . qq{run yet; 'hsnap ust on IMAGE' and snapshots with -p may work)\n}, 'a program for ARM64 processors is refused by one line');
	is($result->{status}, 2, 'with status 2');
	ok(!-e "$here/out.txt", 'and no snapshot');
}

# winget makes links to programs, in a folder that lacks the programs' other files.
sub linked {
	my $here = fresh_dir();
	symlink "$root/build/win64/hsnap.exe", "$here/hsnap.exe" or die "hsnap.exe: $!\n";
	my $got = run([wine(win("$here/hsnap.exe")), 'run', '--at-exit', win("$here/out.txt"), '--', win($odd), 'early']);
	is($got->{status}, 33, 'by a link hsnap runs a program') or diag($got->{err});
}

sub told { return run([wine(win("$root/build/win64/targets/told.exe"), '-', @_)]) }

sub told_by {
	my ($by, $what, $arg, %how) = @_;
	return run([wine(@$by, win("$root/build/win64/targets/told.exe"), '-', $what, $arg)], %how);
}

sub pipe_with {
	pipe my $in, my $to or die "pipe: $!\n";
	syswrite $to, $_[0];
	return $in;
}

sub plain { return run([wine($odd, @_)]) }
sub traced { return hsnap('run', '--', win($odd), @_) }

sub traced_to {
	my ($file, @args) = @_;
	return hsnap('run', '--at-exit', win($file), '--', win($odd), @args);
}

# Returns blocks and bytes, by the function of the program that allocated them.
sub rows_of {
	my ($what, $status) = @_;
	my $result = traced_to("$dir/$what.txt", $what);
	is($result->{status}, $status, "$what: the program's status");
	is($result->{err}, '', "$what: no complaint");
	my $diff = run(tool('hdiff', 'linux', "$dir/$what.txt"));
	check_ok($diff, "$what: hdiff");
	my $report = report($diff->{out});
	check_report($report, $what);
	my %rows;
	for my $row (@{ $report->{rows} }) {
		my ($first) = chain_of($row, 'odd') or next;
		$rows{ $first->{function} }[0] += $row->{count};
		$rows{ $first->{function} }[1] += $row->{bytes};
	}
	return \%rows;
}
