#!/usr/bin/perl
# The maker of synthetic processes. It writes minidumps that are valid by the format's description.
# The process in a minidump is valid by the published facts about Windows. Its truth agrees with
# itself and with the memory. This test is independent of our own readers of dumps and heaps.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use FindBin qw($Bin);
use lib "$Bin/lib";
use List::Util qw(max min);
use Test::More;
use Hunt;
use Minidump;
use SegmentHeap;

my $maker = "$root/build/linux/images/make_image";
my $dir = fresh_dir();
plan skip_all => 'build/linux/images/make_image is not built' if !-x $maker && !$as_windows;

my %bits = (32 => {}, 64 => {});
# TEB.PEB, PEB {Ldr, ProcessHeap, NtGlobalFlag, NumberOfHeaps, ProcessHeaps}; the lists of the
# loader; a loader's entry {DllBase, SizeOfImage}
@{ $bits{32} }{qw(peb ldr process_heap flag heap_count heaps load base size)} =
    (0x30, 0xc, 0x18, 0x68, 0x88, 0x90, 0xc, 0x18, 0x20);
@{ $bits{64} }{qw(peb ldr process_heap flag heap_count heaps load base size)} =
    (0x60, 0x18, 0x30, 0xbc, 0xe8, 0xf0, 0x10, 0x30, 0x40);
# The ring of heaps: bytes of an entry; signatures of heaps (FFEEFFEE, DDEEDDEE); offsets of
# UserContext in an NT heap and in a segment heap, and of ProcessHeapsListIndex.
@{ $bits{32} }{qw(ring_bytes kind nt_context segment_context list_index)} = (0x18, 8, 0xdc, undef, 0x7c);
@{ $bits{64} }{qw(ring_bytes kind nt_context segment_context list_index)} = (0x30, 0x10, 0x188, 0x38, 0xd0);
# Fields of _HEAP_SEGMENT and entries.
@{ $bits{32} }{qw(unit coded link first last holes hole_count hole_pages encoding slot)} = (8, 0, 0x10, 0x24, 0x28, 0x38, 0x30, 0x2c, 0x50, 4);
@{ $bits{64} }{qw(unit coded link first last holes hole_count hole_pages encoding slot)} = (16, 8, 0x18, 0x40, 0x48, 0x60, 0x54, 0x50, 0x80, 8);
# By the first build of a row: the size of _HEAP (which HeaderValidateLength contains), and the
# offsets of HeaderValidateLength, UCRList and FrontEndHeap.
my %heaps = (
	32 => [[7600, 0x138, 0x82, 0x90, 0xd4], [9200, 0x248, 0x7e, 0x8c, 0xd0], [14393, 0x248, 0x7e, 0x8c, 0xd4], [17763, 0x258, 0x7e, 0x8c, 0xe4]],
	64 => [[7600, 0x208, 0xda, 0xf8, 0x178], [9200, 0x298, 0xd2, 0xf0, 0x170], [14393, 0x2a0, 0xd2, 0xf0, 0x178], [17763, 0x2c0, 0xd2, 0xf0, 0x198]],
);

sub make {
	my ($name, @words) = @_;
	my $file = "$dir/$name.dmp";
	my $made = run([$maker, @words, $file]);
	is($made->{status}, 0, "made: @words") or diag $made->{err};
	my ($dump, $truth) = (dump_of($file), truth_of("$file.truth"));
	$dump->{bits} = $truth->{process}{bits};
	return ($dump, $truth);
}

sub profiles {
	my $made = run([$maker, '--list-profiles']);
	return split ' ', $made->{out};
}

# ---------------------------------------------------------------- the file

sub check_ranges {
	my ($dump) = @_;
	my $end = 0;
	for my $range (@{ $dump->{ranges} }) {
		return fail(sprintf 'range %X comes after %X', $range->[0], $end) if $range->[0] < $end;
		$end = $range->[0] + $range->[1];
	}
	is($dump->{memory_end}, length $dump->{bytes}, 'the memory ends where the file does');
}

sub check_infos {
	my ($dump) = @_;
	my ($next, $committed) = (0, 0);
	for my $info (@{ $dump->{infos} }) {
		return fail(sprintf 'info %X, not %X', $info->{base}, $next) if $info->{base} != $next;
		$next += $info->{bytes};
		$committed += $info->{bytes} if $info->{state} == 0x1000 && $info->{protect} != 1 && !($info->{protect} & 0x100);
	}
	my $held = 0;
	$held += $_->[1] for @{ $dump->{ranges} };
	is($committed, $held, 'every committed page is in the dump, and nothing else is');
}

# Checks that the committed ranges of containers are those of the dump's list of memory.
sub check_containers {
	my ($dump, $truth) = @_;
	my @wrong;
	for my $container (@{ $truth->{containers} }) {
		my ($addr, $bytes, @ranges) = @$container;
		my $sum = 0;
		for my $info (grep { $_->{state} == 0x1000 && $_->{base} < $addr + $bytes && $_->{base} + $_->{bytes} > $addr } @{ $dump->{infos} }) {
			$sum += min($info->{base} + $info->{bytes}, $addr + $bytes) - max($info->{base}, $addr);
		}
		$sum -= $_->[1] - $_->[0] for @ranges;
		push @wrong, sprintf '%X: %d bytes', $addr, $sum if $sum;
	}
	is_deeply(\@wrong, [], 'containers are committed as stated');
}

sub check_modules {
	my ($dump, $truth) = @_;
	is_deeply([map { [@{$_}{qw(base bytes path)}] } @{ $dump->{modules} }],
		$truth->{modules}, 'modules are those of the truth');
	for my $module (@{ $dump->{modules} }) {
		my ($magic, $guid, $age, $name) = unpack 'a4 a16 V Z*', $module->{codeview};
		my $head = memory($dump, $module->{base}, 0x400);
		my $pe = unpack 'V', substr $head, 0x3c, 4;
		is($magic . substr($head, 0, 2) . substr($head, $pe, 4), "RSDSMZPE\0\0", "$module->{path}: headers");
		like($name, qr/^\w+\.pdb$/, 'its PDB');
	}
}

# ---------------------------------------------------------------- the process

sub peb_of {
	my ($dump, $truth, $is_wow64) = @_;
	my $teb = $is_wow64 ? number($dump, $dump->{teb}, 8) : $dump->{teb};
	return pointer($dump, $teb + $dump->{f}{peb});
}

sub listed_heaps {
	my ($dump, $peb) = @_;
	my $f = $dump->{f};
	my $list = pointer($dump, $peb + $f->{heaps});
	return map { pointer($dump, $list + $_ * $dump->{bits} / 8) } 0 .. number($dump, $peb + $f->{heap_count}, 4) - 1;
}

# Returns the address of a heap's UserContext, or undef if it is unknown.
sub context_of {
	my ($dump, $heap) = @_;
	my $f = $dump->{f};
	my $kind = number($dump, $heap + $f->{kind}, 4);
	my $at = $kind == 0xffeeffee ? $f->{nt_context} : $kind == 0xddeeddee ? $f->{segment_context} : undef;
	return defined $at ? $heap + $at : undef;
}

# Follows the Flinks of the ring from an entry, as long as the ring is valid. Returns {entries,
# heaps, heads, wrong}.
sub ring_of {
	my ($dump, $start) = @_;
	my $ptr = $dump->{bits} / 8;
	my ($ntdll) = grep { $_->{path} =~ /(?:System32|SysWOW64).ntdll\.dll$/ && $_->{base} >> 32 == ($dump->{bits} == 64 ? 0x7ffa : 0) }
	    @{ $dump->{modules} };
	my $ring = { entries => [], heaps => [], heads => 0, wrong => '' };
	return { %$ring, wrong => 'no ring' } if !$start;
	my ($at, %seen) = ($start);
	do {
		return { %$ring, wrong => 'loop' } if $seen{$at}++;
		my $next = pointer($dump, $at);
		my $heap = pointer($dump, $at + 2 * $ptr);
		if ($at >= $ntdll->{base} && $at < $ntdll->{base} + $ntdll->{bytes}) {
			$ring->{heads}++;
			return { %$ring, wrong => 'head with a heap' } if $heap;
		}
		else {
			return { %$ring, wrong => 'no heap' } if !defined memory($dump, $heap, $ptr);
			my $context = context_of($dump, $heap);
			return { %$ring, wrong => 'not named back' } if defined $context && pointer($dump, $context) != $at;
			push @{ $ring->{entries} }, $at;
			push @{ $ring->{heaps} }, $heap;
		}
		return { %$ring, wrong => 'cut' } if !defined memory($dump, $next, 2 * $ptr);
		return { %$ring, wrong => 'blink' } if pointer($dump, $next + $ptr) != $at;
		$at = $next;
	} while ($at != $start);
	$ring->{wrong} = 'no head' if $ring->{heads} != 1;
	return $ring;
}

# Returns the entry of the process heap, or of the first heap with a known UserContext.
sub first_entry {
	my ($dump, $truth, $peb) = @_;
	my ($context) = grep { defined } map { context_of($dump, $_) } pointer($dump, $peb + $dump->{f}{process_heap}),
	    sort { $a <=> $b } keys %{ $truth->{heaps} };
	return pointer($dump, $context);
}

sub check_ring {
	my ($dump, $truth, $peb) = @_;
	my $f = $dump->{f};
	my @listed = listed_heaps($dump, $peb);
	is(scalar @listed, 1, 'the PEB lists one heap');
	is(number($dump, $peb + $f->{heap_count} + 4, 4), 0x10, 'MaximumNumberOfHeaps');
	my $ring = ring_of($dump, first_entry($dump, $truth, $peb));
	is($ring->{wrong}, '', 'the ring is right');
	my %kinds = %{ $truth->{heaps} };
	is_deeply([sort @{ $ring->{heaps} }], [sort grep { $kinds{$_} ne 'page' } keys %kinds], 'it has every heap');
	is($ring->{heaps}[0], $listed[0], 'first the process heap') if defined context_of($dump, $listed[0]);
	is(scalar(grep { $kinds{$_} eq 'nt' && number($dump, $_ + $f->{list_index}, 2) } keys %kinds), 0, 'ProcessHeapsListIndex is 0');
	my @blocks = map { $truth->{blocks}{$_} // [0, 0] } @{ $ring->{entries} };
	is(scalar(grep { $_->[1] < $f->{ring_bytes} } @blocks), 0, 'entries lie in live blocks');
	my $has_blocks = grep { $_->[0] == $listed[0] } values %{ $truth->{blocks} };
	is(scalar(grep { $_->[0] != $listed[0] } @blocks), 0, 'of the process heap') if $has_blocks;
}

sub check_process {
	my ($dump, $truth, $peb) = @_;
	my $f = $dump->{f};
	my $ptr = $dump->{bits} / 8;
	is(number($dump, $peb + $f->{flag}, 4), hex $truth->{process}{flags}, 'NtGlobalFlag');
	my @heaps = listed_heaps($dump, $peb);
	# The normal heap of a page heap may be missing from all lists.
	my %is_listed = map { $_ => 1 } @heaps;
	my $has_page = grep { $_ eq 'page' } values %{ $truth->{heaps} // {} };
	my @true = grep { $is_listed{$_} || !$has_page || $truth->{heaps}{$_} ne 'nt' } keys %{ $truth->{heaps} // {} };
	if ($dump->{build} < 26100) {
		is_deeply([sort { $a <=> $b } @heaps], [sort { $a <=> $b } @true], 'the heaps');
	}
	else {
		check_ring($dump, $truth, $peb);
	}
	is(pointer($dump, $peb + $f->{process_heap}), $heaps[0], 'the first is the process heap') if @heaps;
	my $head = pointer($dump, $peb + $f->{ldr}) + $f->{load};
	my %in_truth = map { $_->[0] => $_->[1] } @{ $truth->{modules} };
	my $loaded = 0;
	for (my $at = pointer($dump, $head); $at != $head; $at = pointer($dump, $at)) {
		$loaded++;
		my $base = pointer($dump, $at + $f->{base});
		return fail('a module that is none') if ($in_truth{$base} // 0) != number($dump, $at + $f->{size}, 4);
	}
	cmp_ok($loaded, '>=', 4, 'the loader lists modules');
}

# ---------------------------------------------------------------- heaps

# Returns Size, Flags, PreviousSize, SegmentOffset and UnusedBytes of a coded entry.
sub decoded {
	my ($coded, $key) = @_;
	my ($size, $flags, $sum, $previous, $offset, $unused) = unpack 'v C2 v C2', $coded ^ $key;
	my $is_plain = $key eq "\0" x 8 && $sum == 0;
	die "checksum\n" if !$is_plain && $sum != (($size & 0xff) ^ ($size >> 8) ^ $flags);
	return ($size, $flags, $previous, $offset, $unused);
}

# Returns 0 in a heap's first segment, which begins at the heap. In other segments returns the
# number of the 64 KiB unit, counted from 1.
sub segment_offset { my ($segment, $heap, $at) = @_; return $segment == $heap ? 0 : 1 + (($at - $segment) >> 16) }

sub entry_at {
	my ($dump, $heap, $at, $segment) = @_;
	my $coded = memory($dump, $at + $dump->{f}{coded}, 8) // die sprintf "no entry at %X\n", $at;
	my ($size, $flags, $previous, $offset, $unused) = eval { decoded($coded, $heap->{key}) };
	die sprintf "%s at %X\n", $@ =~ s/\n//r, $at if $@;
	die sprintf "no size at %X\n", $at if $size == 0;
	die sprintf "segment offset at %X\n", $at if defined $segment && $offset != segment_offset($segment, $heap->{addr}, $at);
	return ($size, $flags, $previous, $unused);
}

# Returns the uncommitted ranges of a segment. The range at its end has no bytes if the segment is
# fully committed.
sub holes_of {
	my ($dump, $heap, $segment) = @_;
	my $f = $dump->{f};
	my $slot = $f->{slot};
	my $head = $segment + $f->{holes};
	my ($last, $pages, %holes) = (pointer($dump, $segment + $f->{last}), 0);
	for (my $at = pointer($dump, $head); $at != $head; $at = pointer($dump, $at)) {
		my ($hole, $bytes) = map { pointer($dump, $at + $_ * $slot) } 2, 3;
		die sprintf "descriptor at %X is not before its range\n", $at if $at != $hole - 4 * $slot;
		# The preceding link belongs to _HEAP.UCRList, which contains only ranges with
		# bytes.
		die sprintf "UCRList at %X\n", $at if !$bytes != !$heap->{uncommitted}{ $at - 2 * $slot };
		$holes{$hole} = $bytes;
		$pages += $bytes / 0x1000;
		$heap->{ends}{ $bytes ? 'some' : 'all' }++ if $hole + $bytes == $last;
	}
	die "count of holes\n" if number($dump, $segment + $f->{hole_count}, 4) != keys %holes;
	die "pages of holes\n" if number($dump, $segment + $f->{hole_pages}, 4) != $pages;
	my @ends = grep { $_ + $holes{$_} == $last } keys %holes;
	die sprintf "%d descriptors for the end of %X\n", scalar @ends, $segment if @ends != 1;
	return \%holes;
}

sub list_of {
	my ($dump, $head) = @_;
	my %list;
	for (my $at = pointer($dump, $head); $at != $head; $at = pointer($dump, $at)) { $list{$at} = 1 }
	return \%list;
}

# Returns the requested size that a back-end entry or a front-end block stores.
sub block_at {
	my ($dump, $at, $bytes, $unused) = @_;
	my ($unit, $slot) = @{ $dump->{f} }{qw(unit slot)};
	my $mark = $dump->{bits} == 64 ? 0x28 : 0x10;
	if ($unused == 5 || $unused & 0x40) {
		my ($index, $context, $length, $tail) = unpack 'v4', memory($dump, $at + $mark, 8);
		die sprintf "no prefix at %X\n", $at if $index != 1 || $context != 0 || $tail != 0x502;
		return [$at + 3 * $unit, $bytes - $length, $length, pointer($dump, $at + $unit)];
	}
	$unused = pointer($dump, $at + $bytes - $slot) if $unused == 0x3f;
	die sprintf "unused %X at %X\n", $unused, $at if $unused < 8 || $unused > $bytes;
	return [$at + $unit, $bytes - $unused, $unused, undef];
}

# Since Windows 8: returns the expected coded word in the header of a front-end block, before
# RtlpLFHKey is applied.
sub block_code {
	my ($bits, $heap, $container, $entry) = @_;
	my $shift = $bits == 64 ? 4 : 3;
	return ($heap ^ ($entry >> $shift) ^ (($entry - $container) >> $shift << 16)) & 0xffffffff;
}

# Since Windows 8: returns the offset of the first of $count blocks, and their number.
sub first_of {
	my ($bits, $count) = @_;
	my ($head, $granule) = $bits == 64 ? (0x34, 16) : (0x1c, 8);
	return int(($head + 4 * int(($count + 31) / 32) + $granule - 1) / $granule) * $granule;
}

# Returns the bytes of a container with this SizeIndexAndPadding.
sub room_of { my ($word) = @_; return (1 << ($word & 0xff)) + ($word >> 16) }

sub fits {
	my ($bits, $room, $stride) = @_;
	$room -= 16 if $bits == 64;
	my $count = int($room / $stride);
	$count-- while first_of($bits, $count) + $count * $stride > $room;
	return $count;
}

sub check_container {
	my ($dump, $heap, $blocks, $count, $stride) = @_;
	my $is64 = $dump->{bits} == 64;
	my $word = number($dump, $blocks + ($is64 ? 0x10 : 8), 4);
	my $room = room_of($word);
	my $name = sprintf 'container %X', $blocks;
	die "$name: $count blocks\n" if $count != fits($dump->{bits}, $room, $stride);
	my $first = first_of($dump->{bits}, $count);
	my $key = block_code($dump->{bits}, $heap->{addr}, $blocks, $blocks + $first) ^ number($dump, $blocks + $first + ($is64 ? 8 : 0), 4);
	die "$name: another key\n" if $key != ($dump->{lfh_key} //= $key);
	my $offsets = number($dump, $blocks + ($is64 ? 0x18 : 0x10), 4);
	$offsets ^= $blocks & 0xffffffff ^ $heap->{front_end} & 0xffffffff ^ $key if $dump->{build} >= 9600;
	die "$name: offsets\n" if $offsets != ($first | $stride << 16);
	my ($size, $flags, undef, $unused) = entry_at($dump, $heap, $blocks - $dump->{f}{unit});
	if ($word & 0x100) {
		die "$name: guard\n" if ($blocks + $room) % 0x1000 || defined memory($dump, $blocks + $room, 1);
		$dump->{guards}++;
	}
	elsif ($size * $dump->{f}{unit} - $unused != $room || $word >> 16) {
		die "$name: room\n";
	}
	return $first;
}

sub container_blocks {
	my ($dump, $heap, $blocks) = @_;
	my $is64 = $dump->{bits} == 64;
	my $unit = $dump->{f}{unit};
	my $is7 = $dump->{build} < 9200;
	my $subsegment = pointer($dump, $blocks);
	my ($size_at, $count_at) = $is7 ? ($is64 ? (0x18, 0x1c) : (0x10, 0x14)) : ($is64 ? (0x24, 0x28) : (0x14, 0x18));
	my $stride = $unit * number($dump, $subsegment + $size_at, 2);
	my $count = number($dump, $subsegment + $count_at, 2);
	my $first = $is7 ? ($is64 ? 0x20 : 0x10) : check_container($dump, $heap, $blocks, $count, $stride);
	my @found;
	my $bitmap = $is7 ? undef : memory($dump, pointer($dump, $blocks + ($is64 ? 0x28 : 0x18)), int(($count + 7) / 8));
	for my $i (0 .. $count - 1) {
		my $at = $blocks + $first + $i * $stride;
		my $unused = number($dump, $at + $unit - 1, 1);
		die sprintf "not the front end's: %X\n", $at if !($unused & 0x80);
		my $code = $is7 || number($dump, $at + $dump->{f}{coded}, 4) ^ $dump->{lfh_key};
		die sprintf "code at %X\n", $at if !$is7 && $code != block_code($dump->{bits}, $heap->{addr}, $blocks, $at);
		my $is_busy = $unused != 0x80;
		die sprintf "bitmap at %X\n", $at if defined $bitmap && $is_busy != vec $bitmap, $i, 1;
		push @found, block_at($dump, $at, $stride, $unused & 0x7f) if $is_busy;
	}
	return @found;
}

sub segment_blocks {
	my ($dump, $heap, $segment) = @_;
	my $f = $dump->{f};
	my $holes = holes_of($dump, $heap, $segment);
	my ($at, $end) = map { pointer($dump, $segment + $f->{$_}) } qw(first last);
	$heap->{reserved} += $end - $segment;
	$heap->{committed} += $end - $segment;
	$heap->{committed} -= $_ for values %$holes;
	my ($before) = entry_at($dump, $heap, $segment, $segment);
	my ($was_free, $was_hole, @found) = (0, 0);
	while ($at < $end) {
		my ($size, $flags, $previous, $unused) = entry_at($dump, $heap, $at, $segment);
		die sprintf "previous size at %X\n", $at if $previous != $before && !($was_hole && $previous == 0);
		die sprintf "free beside free at %X\n", $at if !($flags & 1) && $was_free;
		my $next = $at + $size * $f->{unit};
		if ($flags & 8) {
			my $user = $at + $f->{unit};
			my $sign = number($dump, $user + ($dump->{bits} == 32 ? 0xc : $dump->{build} < 9200 ? 0x18 : 0x14), 4);
			push @found, container_blocks($dump, $heap, $user) if $sign == 0xf0e0d0c0;
		}
		elsif ($flags & 1 && $unused != 3 && $unused != 1) { # 1: Windows' own
			push @found, block_at($dump, $at, $next - $at, $unused);
		}
		($was_free, $was_hole, $before) = (!($flags & 1), 0, $size);
		if (defined(my $hole = delete $holes->{$next})) {
			die "marker\n" if $unused != 3 || $flags != 1 || $size * $f->{unit} != 8 * $f->{slot};
			($was_hole, $next) = (1, $next + $hole);
		}
		$at = $next;
	}
	die sprintf "segment ends at %X, not %X\n", $at, $end if $at != $end;
	die "holes are left\n" if %$holes;
	return @found;
}

sub big_blocks {
	my ($dump, $heap, $head) = @_;
	my ($reserve_at) = $dump->{bits} == 64 ? 0x28 : 0x14;
	my ($commit_at, $entry_at) = $dump->{bits} == 64 ? (0x20, 0x30) : (0x10, 0x18);
	my (@found, %seen);
	for (my $at = pointer($dump, $head); $at != $head; $at = pointer($dump, $at)) {
		die sprintf "circle at %X\n", $at if $seen{$at}++;
		my ($size, $flags, undef, $unused) = entry_at($dump, $heap, $at + $entry_at);
		die sprintf "big block at %X\n", $at if $unused != 4 || !($flags & 8);
		my $commit = pointer($dump, $at + $commit_at);
		$heap->{committed} += $commit;
		$heap->{reserved} += pointer($dump, $at + $reserve_at);
		my $mark = $at + $entry_at + ($dump->{bits} == 64 ? 0x28 : 0x10);
		if (number($dump, $mark + 6, 2) == 0x502 && number($dump, $mark, 4) == 1) {
			my $block = block_at($dump, $at + $entry_at, $commit, 5);
			push @found, $block;
		}
		else {
			push @found, [$at + $entry_at + $dump->{f}{unit}, $commit - $size, $size, undef];
		}
	}
	return @found;
}

sub heap_blocks {
	my ($dump, $addr) = @_;
	my $f = $dump->{f};
	my $is7 = $dump->{build} < 9200;
	my ($list, $virtual) =
	    $dump->{bits} == 64 ? ($is7 ? (0x128, 0x118) : (0x120, 0x110)) : ($is7 ? (0xa8, 0xa0) : (0xa4, 0x9c));
	my ($row) = grep { $_->[0] <= $dump->{build} } reverse @{ $heaps{ $dump->{bits} } };
	die "HeaderValidateLength\n" if number($dump, $addr + $row->[2], 2) != $row->[1];
	my $heap = { addr => $addr, key => memory($dump, $addr + $f->{encoding} + $f->{coded}, 8), committed => 0, reserved => 0,
		uncommitted => list_of($dump, $addr + $row->[3]), front_end => pointer($dump, $addr + $row->[4]) };
	my @found = big_blocks($dump, $heap, $addr + $virtual);
	for (my $at = pointer($dump, $addr + $list); $at != $addr + $list; $at = pointer($dump, $at)) {
		push @found, segment_blocks($dump, $heap, $at - $f->{link});
	}
	$dump->{sizes}{$addr} = "$heap->{committed} $heap->{reserved}";
	$dump->{ends}{$_}++ for keys %{ $heap->{ends} };
	return @found;
}

# Checks the truth's line about each block that was found: address, requested bytes, overhead, and
# the stack's record.
sub check_blocks {
	my ($dump, $truth) = @_;
	my %left = %{ $truth->{blocks} // {} };
	my $frames = $dump->{bits} == 64 ? 0x10 : 0xc;
	for my $heap (sort { $a <=> $b } grep { $truth->{heaps}{$_} eq 'nt' } keys %{ $truth->{heaps} }) {
		my @found = eval { heap_blocks($dump, $heap) };
		return fail("heap: $@") if $@;
		return fail("bytes: $dump->{sizes}{$heap}") if $dump->{sizes}{$heap} ne ($truth->{sizes}{$heap} // '');
		for my $block (@found) {
			my ($addr, $requested, $overhead, $trace) = @$block;
			my $said = delete $left{$addr} or return fail(sprintf 'no block at %X', $addr);
			return fail(sprintf 'sizes at %X', $addr) if "@$said[0..2]" ne "$heap $requested $overhead";
			my $stack = $said->[3];
			$dump->{no_stack}{$trace}++ if $stack eq '-' && defined $trace;
			my $is_right = $stack eq '-' ? !$trace || $trace == no_stack($dump)
			    : ($trace // 0) + $frames == $truth->{stacks}{$stack}[0];
			return fail(sprintf 'stack at %X', $addr) if !$is_right;
		}
	}
	is(scalar(grep { $truth->{heaps}{ $_->[0] } eq 'nt' } values %left), 0, 'every block of the truth is in the memory, and no other');
}

sub is_code {
	my ($dump, $addr) = @_;
	$dump->{code} //= [grep { $_->{protect} & 0xf0 } @{ $dump->{infos} }];
	for my $info (@{ $dump->{code} }) {
		return 1 if $addr > $info->{base} && $addr < $info->{base} + $info->{bytes};
	}
	return 0;
}

sub check_stacks {
	my ($dump, $truth, $slot) = @_;
	my ($count_at, $frames) = $dump->{bits} == 64 ? (0xe, 0x10) : (0xa, 0xc);
	$count_at -= 2 if $slot eq 'index';
	my $ptr = $dump->{bits} / 8;
	my $wrong = 0;
	for my $stack (values %{ $truth->{stacks} }) {
		my ($id, @frames) = @$stack;
		$wrong++ if number($dump, $id - $frames + $count_at, 2) != @frames;
		$wrong++ for grep { pointer($dump, $id + $_ * $ptr) != $frames[$_] } 0 .. $#frames;
		$wrong++ for grep { !is_code($dump, $_) } @frames;
	}
	is($wrong, 0, 'stacks are in the database, and their frames in code');
}

sub check_total {
	my ($truth) = @_;
	my ($count, $requested, $overhead) = (0, 0, 0);
	for my $block (values %{ $truth->{blocks} // {} }) {
		$count++;
		$requested += $block->[1];
		$overhead += $block->[2];
	}
	is_deeply($truth->{total}, [$count, $requested, $overhead], 'the total is the sum');
}

sub check {
	my ($profile, $slot, @words) = @_;
	my ($dump, $truth) = make("$profile-image", $profile, @words);
	$dump->{f} = $bits{ $dump->{bits} };
	is($dump->{build}, $truth->{process}{build}, 'the build');
	check_ranges($dump);
	check_infos($dump);
	check_containers($dump, $truth);
	check_modules($dump, $truth);
	check_process($dump, $truth, peb_of($dump, $truth, $profile =~ /^wow64/));
	check_blocks($dump, $truth) if !grep { $_ eq '--page-heap' } @words;
	check_stacks($dump, $truth, $slot);
	check_total($truth);
	return ($dump, $truth);
}

for my $profile (profiles()) {
	subtest "$profile, plain" => sub { check($profile, 'depth') };
	subtest "$profile, with stacks" => sub { check($profile, 'depth', '--ust', '--made-code', '--heaps', 4, '--blocks', 6000) };
	subtest "$profile, tails" => sub { check($profile, 'index', '--ust', '--debug-flags', '--depth-slot', 'index') };
	subtest "$profile, headers in clear" => sub { check($profile, 'depth', '--ust', '--plain-headers', '--heaps', 3) };
	subtest "$profile, no front end" => sub { check($profile, 'depth', '--no-lfh', '--seed', 7) };
}

for my $profile (qw(win10-x86 win10-x64 win11-x64 win11-26100-x86 win11-26100-x64 wow64 wow64-26100)) {
	subtest "$profile, segment heaps" => sub { check($profile, 'depth', '--ust', '--segment', '--heaps', 3) };
}
for my $profile (profiles()) {
	subtest "$profile, page heaps" => sub { check($profile, 'depth', '--ust', '--page-heap', 'full', '--blocks', 300) };
	subtest "$profile, light page heaps" => sub { check($profile, 'depth', '--ust', '--page-heap', 'light', '--blocks', 300) };
}

sub heaps_of_64_bits {
	my ($file) = @_;
	return map { hex((split / /)[1]) } grep { /^heap64 / } split /\n/, slurp($file);
}

subtest 'both halves of a WOW64 process have a ring' => sub {
	my ($dump) = make('halves', 'wow64-26100', '--heaps', 3);
	my $half = { %$dump, bits => 64, f => $bits{64} };
	my $peb = pointer($half, $half->{teb} + $half->{f}{peb});
	my $ring = ring_of($half, first_entry($half, {}, $peb));
	is($ring->{wrong}, '', 'the ring is right');
	is_deeply($ring->{heaps}, [heaps_of_64_bits("$dir/halves.dmp.truth")], 'its heaps are those of the half');
	is_deeply($ring->{heaps}, [listed_heaps($half, $peb)], 'its PEB lists the same one');
};

# Results of following the ring from the process heap's UserContext, and how many of the 4 heaps
# precede that heap.
my %ring_damage = (
	'ring-cut' => ['cut', 2], 'ring-not-named-back' => ['not named back', 3], 'ring-loop' => ['blink', 4],
	'ring-no-head' => ['no head', 4], 'ring-stale' => ['no heap', 1], 'ring-missing' => ['no ring', 0],
);
subtest 'damage to the ring of heaps' => sub {
	for my $profile (qw(win11-26100-x64 win11-26100-x86 wow64-26100)) {
		for my $kind (sort keys %ring_damage) {
			my ($dump, $truth) = make("$profile-$kind", $profile, '--heaps', 4, '--break', $kind);
			$dump->{f} = $bits{ $dump->{bits} };
			my $peb = peb_of($dump, $truth, $profile =~ /^wow64/);
			my $ring = ring_of($dump, first_entry($dump, $truth, $peb));
			is_deeply([$ring->{wrong}, scalar @{ $ring->{heaps} }], $ring_damage{$kind}, "$profile: $kind");
		}
	}
	for my $kind (sort keys %ring_damage) {
		my $made = run([$maker, 'win10-x64', '--break', $kind, "$dir/no-ring.dmp"]);
		is($made->{status}, 1, "win10-x64: $kind");
		like($made->{err}, qr/nothing to damage: ring/, 'the message names the ring');
	}
};

subtest 'a segment heap of unknown layout has its signature alone' => sub {
	my ($dump, $truth) = make('unknown', 'win11-26100-x86', '--segment', '--heaps', 3);
	$dump->{f} = $bits{32};
	for my $heap (grep { $truth->{heaps}{$_} eq 'segment' } sort keys %{ $truth->{heaps} }) {
		is(number($dump, $heap + 8, 4), 0xddeeddee, 'Signature');
		is(scalar(grep { $_->[0] == $heap } values %{ $truth->{blocks} }), 0, 'no blocks');
	}
};

# Returns the value that means no stack in a record, besides 0.
sub no_stack { my ($dump) = @_; return $dump->{bits} == 64 ? 0x0101000000000000 : 0x01010000 }

# Properties of real heaps must also occur in synthetic heaps.
subtest 'what real heaps have' => sub {
	for my $profile (qw(win10-x86 win10-x64)) {
		my ($dump) = check($profile, 'depth', '--ust', '--heaps', 8, '--blocks', 8000);
		cmp_ok($dump->{ends}{$_} // 0, '>', 0, "$profile: segments that are committed: $_") for qw(some all);
		cmp_ok($dump->{guards} // 0, '>', 0, "$profile: containers with a guard page");
		is_deeply([sort { $a <=> $b } keys %{ $dump->{no_stack} }], [0, no_stack($dump)], "$profile: both records of no stack");
	}
};

# Returns the places of a segment heap's extra that has the given record.
sub records_of {
	my ($dump, $record) = @_;
	my $ptr = $dump->{bits} / 8;
	my $bytes = "\0\0\1\1" . "\0" x (2 * $ptr - 4) . pack $ptr == 8 ? 'Q<' : 'V', $record;
	my @found;
	for my $range (@{ $dump->{ranges} }) {
		my $memory = memory($dump, @$range[0, 1]);
		for (my $at = -1; ($at = index $memory, $bytes, $at + 1) >= 0;) {
			push @found, $range->[0] + $at if $at % (2 * $ptr) == 0;
		}
	}
	return @found;
}

subtest 'records of no stack in segment heaps' => sub {
	for my $profile (qw(win10-x86 win10-x64)) {
		my ($dump, $truth) = make("none-$profile", $profile, qw(--ust --segment --heaps 1));
		my @addrs = sort { $a <=> $b } keys %{ $truth->{blocks} };
		for my $record (0, no_stack($dump)) {
			my @found = records_of($dump, $record);
			cmp_ok(scalar @found, '>', 0, sprintf '%s: records with the value %X', $profile, $record);
			my $wrong = 0;
			for my $at (@found) {
				my ($addr) = grep { $_ <= $at } reverse @addrs;
				$wrong++ if $truth->{blocks}{$addr}[3] ne '-' || $at < $addr + $truth->{blocks}{$addr}[1];
			}
			is($wrong, 0, 'each behind the bytes of a block without a stack');
		}
	}
};

sub up { my ($value, $to) = @_; return int(($value + $to - 1) / $to) * $to }

# Returns the size of the LFH blocks for this many bytes in a segment heap on x64, or 0 if there are
# too many bytes.
sub bucket_of {
	my ($bytes) = @_;
	my ($step) = map { $_->[1] } grep { $bytes <= $_->[0] } [1024, 16], [2048, 64], [4096, 128], [8192, 256], [16384, 512];
	return defined $step ? up($bytes, $step) : 0;
}

# Sizes of the place for a block with a stack's record, in the LFH and in a VS chunk (with its
# header).
sub lfh_place { return bucket_of(up($_[0], 16) + 0x20 + 2) }
sub vs_place { return up(16 + up($_[0], 16) + 0x20 + 2, 16) }

# Requested sizes and block sizes of a real process (facts, windows-2026, D1).
my %real_places = (
	16 => 64, 32 => 80, 48 => 96, 64 => 112, 96 => 144, 112 => 160, 144 => 192, 208 => 256, 240 => 288,
	280 => 336, 632 => 688, 864 => 912, 1136 => 1216, 1152 => 1216, 1280 => 1344, 1296 => 1344, 1328 => 1408,
);

# Returns where a block with a record lies ('lfh', 'vs' or 'pages'), or the fault.
sub place_of {
	my ($dump, $addr, $requested, $overhead, $record) = @_;
	my $place = $requested + $overhead;
	my ($tag, $index, $settable, $pointer) = unpack 'v2 x4 Q<2', memory($dump, $addr + up($requested, 16), 32);
	return 'no extra' if $tag || $index != 0x101 || $settable || $pointer != $record;
	return 'pages' if $requested >= 0x10000 && $place % 0x1000 == 0;
	for my $kind (['lfh', 0, 0], ['vs', 16, 48]) {
		my ($name, $header, $most_more) = @$kind;
		my $end = $addr + $place - $header;
		my $more = $place - ($header ? vs_place($requested) : lfh_place($requested) || $place + 1);
		my $word = number($dump, $end - 2, 2);
		return $name if $word == (0x4000 | $end - $addr - $requested) && $more >= 0 && $more <= $most_more;
	}
	return "$requested takes $place";
}

subtest 'places of segment heaps with stacks' => sub {
	is_deeply({ map { $_ => lfh_place($_) } keys %real_places }, \%real_places, 'the rule fits real blocks');
	is(vs_place(21784), 21856, 'and a real VS chunk');
	for my $profile (qw(win10-x64 win11-x64 win11-26100-x64)) {
		my ($dump, $truth) = make("places-$profile", $profile, qw(--ust --segment --heaps 1 --blocks 6000));
		my (%kinds, %sizes);
		while (my ($addr, $block) = each %{ $truth->{blocks} }) {
			my (undef, $requested, $overhead, $stack) = @$block;
			next if $stack eq '-';
			my $kind = place_of($dump, $addr, $requested, $overhead, $truth->{stacks}{$stack}[0] - 0x10);
			$kinds{$kind}++;
			$sizes{$requested} = $requested + $overhead if $kind eq 'lfh' && $real_places{$requested};
		}
		is_deeply([sort keys %kinds], [qw(lfh pages vs)], "$profile: all places are right");
		cmp_ok(scalar(keys %sizes), '>', 3, 'sizes of real blocks occur');
		is(scalar(grep { $sizes{$_} != $real_places{$_} } keys %sizes), 0, 'with the real places');
	}
};

# Compares segment heap blocks in the truth with segment_heap_blocks().
sub check_segments {
	my ($dump, $truth, $seen) = @_;
	for my $heap (grep { $truth->{heaps}{$_} eq 'segment' } keys %{ $truth->{heaps} }) {
		my $walk = eval { segment_heap_blocks($dump, $heap) };
		return fail("heap: $@") if !$walk;
		my %true = map { $truth->{blocks}{$_}[0] == $heap ? ($_ => [@{ $truth->{blocks}{$_} }[1, 2]]) : () } keys %{ $truth->{blocks} };
		is_deeply($walk->{blocks}, \%true, 'the blocks: ' . keys %true);
		$seen->{$_} += $walk->{seen}{$_} for keys %{ $walk->{seen} };
	}
}

subtest 'segment heaps of 26100' => sub {
	my %seen;
	for my $seed (1 .. 8) {
		for my $words (['--blocks', 6000, '--ust'], ['--growth', 2], ['--heaps', 3, '--blocks', 300]) {
			my ($dump, $truth) = make("segments-$seed", 'win11-26100-x64', '--segment', '--seed', $seed, @$words);
			check_segments($dump, $truth, \%seen);
		}
	}
	for my $kind ('pointer', 'offset', 'slots', 'empty slots', 'shared slots', 'lfh', 'withheld', 'private') {
		cmp_ok($seen{$kind} // 0, '>', 0, "seen: $kind");
	}
};

subtest 'the check of segment heaps finds damage' => sub {
	for my $kind (qw(key vs-cycle vs-size-0 free-size-more lfh-range-more lfh-bitmap-0 lfh-count-half lfh-size-0)) {
		my ($dump, $truth) = make("found-$kind", 'win11-26100-x64', '--segment', '--ust', '--break', "segment-heap-$kind");
		my ($heap) = grep { $truth->{heaps}{$_} eq 'segment' } keys %{ $truth->{heaps} };
		eval { segment_heap_blocks($dump, $heap) };
		isnt($@, '', "$kind: " . $@ =~ s/\n//r);
	}
};

# The second context of 19041's kernel heap has no pointers to the LFH and VS contexts.
subtest 'the second context of a segment heap' => sub {
	my %seen;
	for my $seed (1 .. 6) {
		my ($dump) = make('context', 'win10-x64', '--segment', '--heaps', 1, '--blocks', 100, '--seed', $seed);
		$dump->{f} = $bits{64};
		my $heap = pointer($dump, peb_of($dump, undef, 0) + $dump->{f}{process_heap});
		my @contexts = map { [map { pointer($dump, $_) } $_ + 0x18, $_ + 0x20] } $heap + 0x100, $heap + 0x1c0;
		is_deeply($contexts[0], [$heap + 0x340, $heap + 0x280], 'the first leads to both');
		$seen{ join ' ', map { $_ ? $_ - $heap : 0 } @{ $contexts[1] } }++;
	}
	is_deeply([sort keys %seen], ['0 0', '832 640'], 'the second to both or to none');
};

# Checks the rules for images with words of real Windows.
sub is_real_container {
	my ($bits, @row) = @_;
	my @headers = splice @row, -2;
	my ($heap, $lfh, $at, $offsets, $key, $blocks, $first, $stride, $word) = map { hex } @row;
	return 0 if $first != first_of($bits, $blocks) || $blocks != fits($bits, room_of($word), $stride);
	return 0 if ($offsets ^ $at & 0xffffffff ^ $lfh & 0xffffffff ^ $key) != ($first | $stride << 16);
	return 0 if $word & 0x100 && ($at + room_of($word)) % 0x1000;
	for my $i (grep { $headers[$_] ne '-' } 0, 1) {
		my ($code, $number) = unpack 'V v', pack 'H*', $headers[$i];
		return 0 if ($code ^ $key) != block_code($bits, $heap, $at, $at + $first + $i * $stride) || $number >> 8 != $i;
	}
	return 1;
}

sub is_real_entry {
	my ($bits, $heap, $key, $at, $coded, @said) = @_;
	my $unit = $bits / 4;
	my ($size, $flags, $previous, $offset, $unused) = eval { decoded(map { pack 'H*', $_ } $coded, $key) } or return 0;
	return join(' ', map { sprintf '%x', $_ } $size * $unit, $flags, $previous * $unit, $offset, $unused) eq "@said";
}

sub is_real_hole {
	my ($segment, $pages, $uncommitted, $count, $last, $link, $at, $bytes) = map { hex } @_;
	return $count == 1 && $link == $at - 0x20 && $at + $bytes == $last && $last == $segment + $pages * 0x1000 && $bytes == $uncommitted * 0x1000;
}

subtest 'real heaps' => sub {
	my $file = data_file('heaps/real-heap-vectors.tsv') or plan skip_all => 'no words of real heaps here';
	my %is_real = (container => \&is_real_container, entry => \&is_real_entry, hole => \&is_real_hole);
	my (%rows, %wrong);
	for (split /\n/, slurp($file)) {
		my ($kind, undef, @row) = split /\t/;
		next if !$is_real{$kind};
		$rows{$kind}++;
		push @{ $wrong{$kind} }, $_ if !$is_real{$kind}->(@row);
	}
	for my $kind (sort keys %is_real) {
		cmp_ok($rows{$kind} // 0, '>', 0, "rows: $kind");
		is_deeply($wrong{$kind} // [], [], 'follow the rules');
	}
};

subtest 'more stacks than 16 bits count' => sub { check('win10-x64', 'depth', '--ust', '--stacks', 66000, '--blocks', 3000) };

subtest 'the flag alone makes no stacks' => sub {
	my ($dump, $truth) = make('flag', 'win10-x64', '--ust-flag-only');
	is($truth->{process}{flags}, '1000', 'NtGlobalFlag');
	is(scalar(keys %{ $truth->{stacks} // {} }), 0, 'no stacks');
};

subtest 'other kinds of dumps' => sub {
	my %bytes;
	for my $words ([], ['--memory-list'], ['--no-memory-info'], ['--memory-list', '--no-memory-info']) {
		my ($dump, $truth) = make('kind', 'win10-x86', @$words);
		is(!!$dump->{streams}{5}, !!grep({ /list/ } @$words), 'MemoryList');
		is(!$dump->{streams}{16}, !!grep({ /info/ } @$words), 'MemoryInfoList');
		check_ranges($dump);
		my $all = join '', map { pack('Q<', $_->[0]) . memory($dump, $_->[0], $_->[1]) } @{ $dump->{ranges} };
		$bytes{$all}++;
	}
	is(scalar(keys %bytes), 1, 'all have the same memory');
};

subtest 'growth leaves in its place what stays' => sub {
	my @states = map { (make("growth-$_", 'win10-x64', '--ust', '--growth', $_))[1] } 0 .. 3;
	for my $i (1 .. 3) {
		my ($base, $later) = @states[0, $i];
		my @moved = grep { $later->{blocks}{$_} && "@{ $later->{blocks}{$_} }" ne "@{ $base->{blocks}{$_} }" } keys %{ $base->{blocks} };
		my $freed = grep { !$later->{blocks}{$_} } keys %{ $base->{blocks} };
		my $new = grep { !$base->{blocks}{$_} } keys %{ $later->{blocks} };
		my $changed = grep { $later->{stacks}{$_} && "@{ $later->{stacks}{$_} }" ne "@{ $base->{stacks}{$_} }" } keys %{ $base->{stacks} };
		is(@moved + $changed, 0, "state $i: no block and no stack is another");
		cmp_ok($freed, '>', 5, "some are freed ($freed)");
		cmp_ok($new, '>', 100 * $i - 50, "some are new ($new)");
	}
};

subtest 'one seed, one image' => sub {
	my @made = map { (make("same-$_", 'win7-x86', '--ust', '--seed', $_ < 2 ? 5 : 6))[0] } 0 .. 2;
	ok($made[0]{bytes} eq $made[1]{bytes}, 'twice the same');
	ok($made[0]{bytes} ne $made[2]{bytes}, 'another seed is another process');
};

subtest 'without full memory' => sub {
	for my $profile (profiles()) {
		my ($dump, $truth) = make('partial', $profile, '--partial');
		check_ranges($dump);
		check_modules_listed($dump, $truth);
		is(scalar(grep { defined memory($dump, $_, 8) } keys %{ $truth->{heaps} }), 0, 'no heap is there');
	}
};

sub check_modules_listed {
	my ($dump, $truth) = @_;
	is(scalar @{ $dump->{modules} }, scalar @{ $truth->{modules} }, 'modules are listed');
}

subtest 'damage is where the maker states' => sub {
	my @kinds = map { (split /\t/)[0] } split /\n/, run([$maker, '--list-breaks'])->{out};
	cmp_ok(scalar @kinds, '>', 20, 'kinds of damage: ' . @kinds);
	my $whole = slurp(make_file('whole'));
	for my $kind (grep { !/^(segment-heap|page|light|ring)-/ } @kinds) {
		isnt(slurp(make_file($kind, '--break', $kind)), $whole, $kind);
	}
};

subtest 'the check of heaps finds damage' => sub {
	for my $kind (qw(size-zero size-huge checksum-wrong encoding-wrong uncommitted-wild cycle-virtual)) {
		my ($dump, $truth) = make("found-$kind", 'win10-x64', '--ust', '--break', $kind);
		$dump->{f} = $bits{64};
		my $heap = pointer($dump, peb_of($dump, $truth, 0) + $dump->{f}{process_heap});
		eval { heap_blocks($dump, $heap) };
		isnt($@, '', "$kind: " . $@ =~ s/\n//r);
	}
};

sub make_file {
	my ($name, @words) = @_;
	my $made = run([$maker, 'win10-x64', '--ust', @words, "$dir/$name.dmp"]);
	is($made->{status}, 0, "made: $name") or diag $made->{err};
	return "$dir/$name.dmp";
}

subtest 'wrong words' => sub {
	is(run([$maker, 'win95', "$dir/no.dmp"])->{status}, 1, 'no such profile');
	is(run([$maker, 'win7-x86', '--break', 'nonsense', "$dir/no.dmp"])->{status}, 1, 'no such damage');
	is(run([$maker])->{status}, 2, 'no words at all');
	is(run([$maker, '--help'])->{status}, 0, '--help');
};

done_testing();
