#!/usr/bin/perl
# Blocks without a stack: hdiff's rows for their sizes and first words. The truth is what
# targets/kinds.c states in its comment, made dumps, and the maker of minidumps.
# tests/live/stackless.t checks each row of live programs.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP;
use Test::More;
use Hunt;
use Images;
use Stackless;

my $dir = fresh_dir();
my $exe = "$root/build/win64/targets/kinds.exe";

subtest 'snapshots' => \&capture_steps;
subtest 'forms' => \&check_forms;
subtest 'sizes' => \&check_sizes;
subtest 'made dumps' => \&check_made;
subtest 'damage' => \&check_damage;
subtest 'minidumps' => \&check_images;
subtest 'data of a PDB' => \&check_pdb;
done_testing;

sub hdiff { return run(["$root/build/linux/hdiff", '--no-local-files', '--no-cache', @_]) }

# Snapshots of the three steps, with names.
sub capture_steps {
	my $target = target($exe, []);
	for my $step (1 .. 3) {
		is($step == 1 ? $target->step : $target->next_step, $step, "step $step");
		is(hsnap('--sample-content', 2, '-p', $target->{pid}, '-f', win("$dir/$step.txt"))->{status}, 0, 'a snapshot');
		is(run(["$root/build/linux/hsym", '-o', "$dir/named-$step.txt", "$dir/$step.txt"])->{status}, 0, 'names');
	}
	is($target->quit, 0, 'the target ends');
	return;
}

sub check_forms {
	my @files = map { "$dir/named-$_.txt" } 1, 2;
	my $text = hdiff(@files)->{out};
	like($text, qr/^ +\d +\+31\.3 KiB +\+500 +\d+ % +\(no stack\) 64 B, kinds!session_table$/m, 'the table');
	like($text, qr/^ +\(no stack\) 64 B\n +kinds!session_table\n/m, '... and the stacks');
	like(hdiff('-o', 'folded', @files)->{out}, qr/^\(no stack recorded\);kinds!session_table;\(no stack\) 64 B 0 32000$/m, 'folded');
	like(hdiff('--tree', @files)->{out}, qr/^.* \(no stack recorded\)\n/m, 'a tree');
	like(hdiff('-o', 'csv', @files)->{out}, qr/\(no stack\) 4096 B/, 'csv');
	like(hdiff('-o', 'umdh', @files)->{out}, qr/^\t\(no stack\) 40 B\n\ttext "GET \/in"\n/m, 'umdh');
	like(hdiff('--group', 'module', @files)->{out}, qr/\+1,180 .*\(no stack recorded\)$/m, 'a group');
	is(hdiff('-i', 'session_table', '--max-growth', 32_000, @files)->{status}, 0, 'a filter and a limit');
	is(hdiff('-i', 'session_table', '--max-growth', 31_999, @files)->{status}, 1, '... that is exceeded');
	is(hdiff('--max-growth-row', 1_300_000, @files)->{status}, 1, 'a limit for rows');
	like(hdiff(map { "$dir/named-$_.txt" } 1, 2, 2, 3)->{out}, qr/ grew-once .*\(no stack\) 64 B, /m, 'a trend');
	my $plain = hdiff('--no-symbols', @files)->{out};
	like($plain, qr/\(no stack\) 64 B, kinds\+[0-9A-F]+$/m, 'without names');
	unlike($plain, qr{ no name}, 'labels lack no name');
	return;
}

sub check_sizes {
	my @files = map { "$dir/named-$_.txt" } 1, 2;
	my %row = stackless_rows('--sizes', @files);
	is_deeply($row{'(no stack) 4096 B'}{sizes}, [{ size => 4096, old_blocks => 0, new_blocks => 300 }], 'one size');
	my @sizes = grep { $_->{new_blocks} } @{ $row{'(no stack) 16-32 KiB'}{sizes} };
	is_deeply([map { $_->{size} } @sizes], [map { 20_000 + 100 * $_ } 0 .. 79], 'all sizes of a row');
	unlike(hdiff('--age', @files)->{out}, qr/already there/, 'no ages for blocks without a stack');
	%row = stackless_rows('--age', @files);
	ok(!exists $row{'(no stack) 4096 B'}{age}, '... nor in json');
	return;
}

# Writes a dump with a heap at 10000 that has blocks without a stack.
sub made {
	my ($name, $blocks, $bytes, @notes) = @_;
	spew("$dir/$name", join '', "// hsnap: dump format=1 tool=0\n", "// hsnap: process id=7\n", "// Loaded modules:\n",
		"//     140000000 10000 C:\\app.exe\n", "// Process modules enumerated.\n",
		"// hsnap: heap addr=10000 kind=nt committed=100000 reserved=100000 stackless-blocks=$blocks stackless-requested=$bytes\n",
		map({ "// hsnap: $_\n" } @notes), "// hsnap: end blocks=$blocks requested=$bytes overhead=0\n");
	return "$dir/$name";
}

sub group {
	my ($size, $blocks, $more) = @_;
	return "stackless addr=10000 bytes=$size blocks=$blocks requested=" . $size * $blocks . ' overhead=0' . ($more ? " $more" : '');
}

sub check_made {
	# One class, in a module that was loaded at another base.
	my @files = (made('a.txt', 10, 640, group(64, 10, 'to=140001000')), made('b.txt', 30, 1920, group(64, 30, 'to=150001000')));
	spew($files[1], slurp($files[1]) =~ s/140000000/150000000/r);
	my %row = stackless_rows(@files);
	is_deeply(stackless_growth(\%row), { '(no stack) 64 B|app!+1000' => [20, 1280] }, 'a module that moved') or diag(explain(\%row));

	# Ten sizes grow: the eight that grow most are exact.
	my @sizes = map { 1000 + $_ } 1 .. 10;
	my (@old, @new);
	push @old, group($_, 4) for @sizes;
	push @new, group($_, 4 + ($_ - 1000)) for @sizes;
	my ($before, $after) = (0, 0);
	$before += 4 * $_ for @sizes;
	$after += ($_ - 996) * $_ for @sizes;
	%row = stackless_rows(made('c.txt', 40, $before, @old), made('d.txt', 95, $after, @new));
	my %expected = map { ("(no stack) $_ B" => [$_ - 1000, $_ * ($_ - 1000)]) } 1003 .. 1010;
	$expected{'(no stack) 512-1023 B'} = [3, 1001 + 2 * 1002];
	is_deeply(stackless_growth(\%row), \%expected, 'eight exact sizes') or diag(explain(stackless_growth(\%row)));

	# Groups that a dump merged, and blocks in no group.
	%row = stackless_rows(made('e.txt', 12, 1200, 'stackless addr=10000 bytes=64 bytes-to=127 blocks=5 requested=500 overhead=0'));
	is_deeply({ map { ($_ => $row{$_}{growth}{bytes} // $row{$_}{new}{bytes}) } keys %row }, { '(no stack) 64-127 B' => 500, '' => 700 }, 'merged groups, and the rest');
	return;
}

sub check_damage {
	my %bad = (more => group(64, 11), 'more bytes' => 'stackless addr=10000 bytes=64 blocks=1 requested=641 overhead=0',
		overhead => 'stackless addr=10000 bytes=64 blocks=1 requested=64 overhead=1', heap => group(64, 1) =~ s/10000/20000/r,
		empty => group(64, 0), two => group(64, 1, 'to=140001000 text=abcd'), short => group(64, 1, 'text=abc'), long => group(64, 1, 'text=abcdefgh'),
		control => group(64, 1, 'text="ab\x01d"'), range => group(64, 1, 'bytes-to=128'), lost => group(64, 1, 'lost=1'),
		huge => 'stackless addr=10000 bytes=281474976710656 blocks=1 requested=1 overhead=0');
	for my $case (sort keys %bad) {
		my $file = made('bad.txt', 10, 640, $bad{$case});
		my $run = hdiff('-o', 'json', $file);
		is($run->{status}, 2, "$case: status");
		like($run->{err}, qr/bad\.txt:7: /, '... and the line');
		is(JSON::PP->new->decode($run->{out})->{totals}{all}{new}{bytes}, 640, '... the sum is the heap\'s');
	}
	return;
}

# Groups of made minidumps: the maker lists all blocks with their sizes.
sub check_images {
	for my $profile (profiles()) {
		for my $how ([], ['--blocks', 20_000, '--seed', 5], ['--page-heap', 'full'], ['--segment']) {
			make_and_read("$dir/a.dmp", $profile, @$how);
			next if !-s "$dir/a.dmp.txt"; # not every Windows has segment heaps
			check_image("@{[$profile, @$how]}");
		}
	}
	return;
}

sub check_image {
	my ($name) = @_;
	my (%true, %found, %ranges, $count);
	for (slurp("$dir/a.dmp.truth") =~ /^block(?:64)? (\S+ \S+ \d+ \d+ -)$/mg) {
		my ($heap, undef, $size, $overhead) = split;
		$true{$heap}{$size}[0]++;
		$true{$heap}{$size}[1] += $overhead;
	}
	for (slurp("$dir/a.dmp.txt") =~ /^\/\/ hsnap: stackless (.*)\r$/mg) {
		my %note = /(\S+)=(\S+)/g;
		$count++;
		my $list = $note{'bytes-to'} ? ($ranges{ $note{addr} }{ $note{bytes} } //= [0, 0, 0]) : ($found{ $note{addr} }{ $note{bytes} } //= [0, 0]);
		$list->[0] += $note{blocks};
		$list->[1] += $note{overhead};
		$list->[2] += $note{requested} if $note{'bytes-to'};
	}
	# Sizes without a group are in a range.
	my %rest;
	for my $heap (keys %true) {
		for my $size (grep { !$found{$heap}{$_} } keys %{ $true{$heap} }) {
			my $to = $rest{$heap}{ 1 << (length(sprintf '%b', $size) - 1) } //= [0, 0, 0];
			my ($blocks, $overhead) = @{ delete $true{$heap}{$size} };
			$to->[$_] += ($blocks, $overhead, $blocks * $size)[$_] for 0 .. 2;
		}
	}
	is_deeply(\%found, \%true, "$name: groups of one size");
	is_deeply(\%ranges, \%rest, '... and of several');
	cmp_ok($count, '<=', 1000 + 2 * 48, '... not too many');
	return;
}

# The first word points to public data of a PDB, as to a class's table of virtual functions. Another
# program lists that data.
sub check_pdb {
	my $exe = "$root/build/win64/symbols/pdb_msvc/names_cpp.exe";
	my $pdb = $exe =~ s/exe$/pdb/r;
	my $listed = `llvm-pdbutil$llvm dump -publics -section-headers "$pdb"`;
	my @rva = map { hex } $listed =~ /^ +([0-9A-F]+) virtual address$/mg;
	my %data;
	while ($listed =~ /S_PUB32 \[size = \d+\] `(.*)`\n +flags = none, addr = (\d+):(\d+)/g) {
		$data{ $rva[$2 - 1] + $3 } = $1 if $2 > 1; # section 1 is code
	}
	cmp_ok(scalar keys %data, '>', 10, 'there is public data');
	my $file = made('pdb.txt', scalar keys %data, 64 * keys %data, map { group(64, 1, sprintf 'to=%X', 0x140000000 + $_) } sort { $a <=> $b } keys %data);
	spew($file, slurp($file) =~ s/C:\\app\.exe/$exe/r);
	my $named = run(["$root/build/linux/hsym", '--no-demangle', '--no-cache', '--allow-mismatch', $file]);
	is($named->{status}, 0, 'names');
	spew("$dir/named.txt", $named->{out});
	my %row = stackless_rows("--no-demangle", "$dir/named.txt");
	is_deeply([sort keys %row], [sort map { "(no stack) 64 B|names_cpp!$_" } values %data], 'of all data');
	return;
}
