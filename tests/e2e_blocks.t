#!/usr/bin/perl
# The blocks of a stack, one by one: their sizes, and which of them OLD had already. The expected
# results follow from the lists of blocks from which the dumps are made.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP;
use Test::More;
use Hunt;

my $dir = fresh_dir();
subtest 'sizes and ages'    => \&both;
subtest 'many sizes'        => \&classes;
subtest 'at random'         => \&at_random;
subtest 'addresses twice'   => \&twice;
subtest 'what cannot be asked' => \&refused;
done_testing;

# Writes a dump of blocks [ADDRESS, BYTES, STACK, HEAP] in the given order.
sub dump_of {
	my ($name, $time, $pid, @blocks) = @_;
	my (%known, $heap);
	my ($count, $bytes) = (scalar @blocks, 0);
	my $text = "// hsnap: dump format=1 tool=1 time=2026-11-20T10:00:0$time.000Z\n"
		. "// hsnap: process id=$pid start=2026-11-20T09:00:00.000Z bits=64 image=app.exe\n"
		. "// Loaded modules:\n//\tBase Size Module\n//\t140000000 24000 C:\\app.exe\n// Process modules enumerated.\n";
	for (@blocks) {
		my ($addr, $size, $stack, $at) = @$_;
		if (!$heap || $heap ne $at) {
			$text .= "*- - - Start of data for heap @ $at - - -\n";
			$heap = $at;
		}
		$text .= sprintf "%X bytes + 10 at %X by BackTrace%X\n", $size, $addr, $stack;
		$text .= sprintf "\t14000%04X\n", 0x1000 + 16 * $stack if !$known{$stack}++;
		$bytes += $size;
	}
	$text .= sprintf "// hsnap: end blocks=%d requested=%d overhead=%d\n", $count, $bytes, 16 * $count;
	spew("$dir/$name", $text);
	return "$dir/$name";
}

sub hdiff { run(["$root/build/linux/hdiff", '--no-symbols', @_]) }

# Returns { FRAME'S ADDRESS => ROW }.
sub rows {
	my $ran = hdiff('-o', 'json', @_);
	is("$ran->{status} $ran->{err}", '0 ', "hdiff @_");
	return { map { $_->{frames}[0]{address} => $_ } @{ decode_json($ran->{out})->{rows} } };
}

sub both {
	my $old = dump_of('a.txt', 0, 7, [0x1000, 64, 1, 650000], [0x1100, 64, 1, 650000], [0x1200, 32, 1, 650000], [0x1300, 8, 2, 650000]);
	my $new = dump_of('b.txt', 5, 7,
		[0x1000, 64, 1, 650000], # existed before
		[0x1200, 48, 1, 650000], # had another size
		[0x1300, 8, 1, 650000], # had another stack
		[0x1400, 64, 1, 650000], [0x1500, 64, 1, 660000]);
	my $rows = rows('--sizes', '--age', $old, $new);
	is_deeply($rows->{140001010}{age}, { kept => { bytes => 64, blocks => 1 }, came => { bytes => 184, blocks => 4 }, gone => { bytes => 96, blocks => 2 } },
		'of stack 1 one block is left');
	is_deeply($rows->{140001010}{sizes}, [
		{ size => 8,  old_blocks => 0, new_blocks => 1 }, { size => 32, old_blocks => 1, new_blocks => 0 },
		{ size => 48, old_blocks => 0, new_blocks => 1 }, { size => 64, old_blocks => 2, new_blocks => 3 }], 'its sizes');
	is_deeply($rows->{140001020}{age}, { kept => { bytes => 0, blocks => 0 }, came => { bytes => 0, blocks => 0 }, gone => { bytes => 8, blocks => 1 } },
		'the one of stack 2 went, as its address is of another stack now');
	my $text = hdiff('--sizes', '--age', $old, $new)->{out};
	like($text, qr/^\s+already there: 64 B in 1; new: 184 B in 4; freed: 96 B in 2$/m, 'the same in text');
	like($text, qr/^\s+64\s+\+1\s+3$/m, 'one more of 64 bytes, now three');
	like($text, qr/^\s+32\s+-1\s+0$/m, 'one less of 32');
	$rows = rows('--sizes', '--age', '--heap', '660000', $old, $new);
	is_deeply($rows->{140001010}{age}{came}, { bytes => 64, blocks => 1 }, 'of one heap alone');
	$rows = rows('--sizes', $new);
	is_deeply($rows->{140001010}{sizes}[2], { size => 64, old_blocks => 0, new_blocks => 3 }, 'of one dump');
	like(hdiff('--sizes', $new)->{out}, qr/^\s+size\s+blocks\n(?:.+\n)*?\s+64\s+3\n/m, 'in text');
	is(rows($old, $new)->{140001010}{sizes}, undef, 'nothing of it without being asked');
}

# There are more sizes than the report lists one by one, so the report has powers of two.
sub classes {
	my @blocks = map { [0x1000 + 4096 * $_, $_, 1, 650000] } 0 .. 100;
	my $text = hdiff('--sizes', dump_of('c.txt', 0, 7, @blocks))->{out};
	for (['0', 1], ['1', 1], ['2-3', 2], ['4-7', 4], ['8-15', 8], ['16-31', 16], ['32-63', 32], ['64-127', 37]) {
		like($text, qr/^\s+\Q$_->[0]\E\s+$_->[1]$/m, "$_->[1] of $_->[0] bytes");
	}
}

# Allocates and frees blocks at random. The test counts each stack's remaining blocks itself.
sub at_random {
	srand 19;
	my (%at, %before, @sums);
	for my $time (0, 5) {
		if ($time) {
			%before = %at;
			delete $at{$_} for grep { rand() < 0.4 } keys %at;
		}
		$at{ 0x10000 + 64 * int rand 4000 } = [16 * int(1 + rand 12), 1 + int rand 20, 650000 + int rand 3] for 1 .. 2000;
		push @sums, dump_of("random$time.txt", $time, 9, map { [$_, @{ $at{$_} }] } sort { $at{$a}[2] <=> $at{$b}[2] || $a <=> $b } keys %at);
	}
	my %expected;
	for ([\%before, 'old_blocks'], [\%at, 'new_blocks']) {
		my ($blocks, $key) = @$_;
		$expected{ $_->[1] }{sizes}{ $_->[0] }{$key}++ for values %$blocks;
	}
	for my $addr (keys %at) {
		my ($size, $stack) = @{ $at{$addr} };
		my $was = $before{$addr};
		my $kept = $was && $was->[0] == $size && $was->[1] == $stack;
		$expected{$stack}{age}{ $kept ? 'kept' : 'came' }{blocks}++;
		$expected{$stack}{age}{ $kept ? 'kept' : 'came' }{bytes} += $size;
	}
	my $rows = rows('--sizes', '--age', @sums);
	my $count = 0;
	for my $stack (sort { $a <=> $b } keys %expected) {
		# A stack without a row did not change.
		my $row = $rows->{ sprintf '14000%04X', 0x1000 + 16 * $stack } // next;
		my $sizes = $expected{$stack}{sizes};
		is_deeply($row->{sizes}, [map { { size => $_, old_blocks => $sizes->{$_}{old_blocks} // 0, new_blocks => $sizes->{$_}{new_blocks} // 0 } } sort { $a <=> $b } keys %$sizes],
			"sizes of stack $stack");
		is_deeply({ map { $_ => $row->{age}{$_} } qw(kept came) }, { map { $_ => { bytes => 0, blocks => 0, %{ $expected{$stack}{age}{$_} // {} } } } qw(kept came) },
			"what is left of stack $stack");
		is($row->{age}{gone}{blocks}, $row->{old}{blocks} - $row->{age}{kept}{blocks}, 'and what went');
		$count++;
	}
	cmp_ok($count, '>', 10, "$count stacks");
}

# One block of OLD must not match two blocks of NEW.
sub twice {
	my $old = dump_of('d.txt', 0, 7, [0x1000, 64, 1, 650000], [0x1000, 64, 1, 650000], [0x2000, 64, 1, 650000]);
	my $new = dump_of('e.txt', 5, 7, map { [0x1000, 64, 1, 650000] } 1 .. 4);
	my $age = rows('--age', $old, $new)->{140001010}{age};
	is_deeply([map { $age->{$_}{blocks} } qw(kept came gone)], [1, 3, 2], 'is found again once');
}

sub refused {
	my ($old, $new) = map { dump_of("f$_.txt", $_, 7, [0x1000, 64 + $_, 1, 650000]) } 0, 5;
	my $other = dump_of('g.txt', 6, 8, [0x1000, 64, 1, 650000]);
	my $sums = "$dir/sums.txt";
	spew($sums, "*- - - Start of data for heap @ 650000 - - -\n40 bytes in 0x2 allocations (@ 0x20) by: BackTrace1\n\t140001000\n");
	for (
		[['--age', $old], qr/--age: .*two dumps of one process/],
		[['--age', '--force', $old, $other], qr/--age: .*two dumps of one process/],
		[['--sizes', $sums], qr/sums\.txt: .*has only sums.*--by-stack/],
		[['--sizes', $old, $new, $other], qr/--sizes: .*not to a trend/],
		[['--sizes', '--group', 'function', $old, $new], qr/--sizes: .*leave out/],
		[['--age', '--sum', $old, $new], qr/--age: .*leave out/],
		[['--sizes', '--tree', $old, $new], qr/--sizes: .*text report without --tree/],
		[['--sizes', '-o', 'csv', $old, $new], qr/--sizes: .*text report without/],
	) {
		my ($args, $expected) = @$_;
		my $ran = hdiff(@$args);
		is($ran->{status}, 2, "hdiff @$args");
		like($ran->{err}, $expected, 'reports why');
		is($ran->{out}, '', 'and shows nothing');
	}
}
