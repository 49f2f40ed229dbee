#!/usr/bin/perl
# Synthetic segment heaps and page heaps, read with the offsets in listings of public symbols.
# Neither the maker's tables nor our walkers' are used. The result must be the truth.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
no warnings 'recursion'; # trees are walked recursively
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;
use Minidump;

my $maker = "$root/build/linux/images/make_image";
my $listings = data_file('layouts');
my $dir = fresh_dir();
plan skip_all => 'build/linux/images/make_image is not built' if !-x $maker && !$as_windows;
plan skip_all => 'no listings of structures here' if !$listings;

my ($dump, $truth, %offset, %found);
my %segment_heaps = (
	'win10-17763-x64' => 'ntkrnlmp_win10_17763_x64.txt',
	'win10-x64' => 'ntkrnlmp_win10_19041_x64.txt',
	'win11-x64' => 'ntkrnlmp_win11_22000_x64.txt',
);
my %page_heaps = ('win7-x86' => 'r2_ntdll_Win7x86.txt', 'win10-x64' => 'r2_ntdll_Win10x64.txt');

for my $ust ([], ['--ust']) {
	for my $profile (sort keys %segment_heaps) {
		prepare($segment_heaps{$profile}, $profile, '--segment', '--blocks', 900, @$ust);
		walk_segment_heap($_) for heaps_of('segment');
		compare("$profile @$ust: a segment heap", 'segment');
	}
	for my $profile (sort keys %page_heaps) {
		prepare($page_heaps{$profile}, $profile, '--page-heap', 'full', '--blocks', 300, @$ust);
		walk_page_heap($_) for heaps_of('page');
		compare("$profile @$ust: page heaps", 'page');
	}
}
done_testing;

# ---------------------------------------------------------------- inputs

sub prepare {
	my ($listing, $profile, @options) = @_;
	my $struct = '';
	%offset = %found = ();
	for my $line (split /\n/, slurp("$listings/$listing")) {
		$struct = $1 if $line =~ /^(?:struct|union|== ntdll!) ?(\w+)/;
		$offset{"$struct.$2"} //= hex $1 if $line =~ /^ +\+0x(\w+) +(\w+)/;
		$offset{"$struct.size"} //= hex $1 if $line =~ /^(?:struct|union) \w+ size=0x(\w+)/;
	}
	my $result = run([$maker, $profile, @options, "$dir/x.dmp"]);
	is($result->{status}, 0, "made: $profile @options") or diag($result->{err});
	($dump, $truth) = (dump_of("$dir/x.dmp"), truth_of("$dir/x.dmp.truth"));
	$dump->{bits} = $truth->{process}{bits};
	$dump->{stack_of} = { map { $truth->{stacks}{$_}[0] => $_ } keys %{ $truth->{stacks} // {} } };
}

sub heaps_of {
	my ($kind) = @_;
	my @heaps = grep { $truth->{heaps}{$_} eq $kind } sort keys %{ $truth->{heaps} };
	cmp_ok(scalar @heaps, '>', 0, "there is a heap of kind $kind");
	return @heaps;
}

# at(ADDR, STRUCT, FIELD) returns a field's address.
sub at {
	my ($addr, $struct, $field) = @_;
	return $addr + ($offset{"$struct.$field"} // die "no $struct.$field in the listing\n");
}

sub field { return number($dump, at(@_[0 .. 2]), $_[3]) }
sub pointer_field { return pointer($dump, at(@_)) }

# Returns the number of the stack to which a block's pointer leads. A record's frames begin at 10h
# (64-bit) or Ch (32-bit).
sub stack_at {
	my ($record) = @_;
	return $dump->{stack_of}{ $record + ($dump->{bits} == 64 ? 0x10 : 0xc) } // '-';
}

sub add {
	my ($heap, $addr, $place, $requested, $stack) = @_;
	die sprintf "%X found twice\n", $addr if $found{$addr};
	$found{$addr} = [$heap, $requested, $place - $requested, $stack];
}

sub compare {
	my ($what, $kind) = @_;
	my %wanted = %{ $truth->{blocks} };
	delete @wanted{ grep { $truth->{heaps}{ $wanted{$_}[0] } ne $kind } keys %wanted };
	cmp_ok(scalar keys %wanted, '>', 100, "$what: there are blocks");
	my @wrong = grep { !$wanted{$_} || !$found{$_} || "@{ $wanted{$_} }" ne "@{ $found{$_} }" } keys %{ { %wanted, %found } };
	is(scalar @wrong, 0, "$what: every block, its size, overhead and stack")
	    or diag(sprintf 'first: %X', $wrong[0]);
}

# ---------------------------------------------------------------- segment heaps

my ($heap, $heap_key, $lfh_key);

sub walk_segment_heap {
	($heap) = @_;
	is(field($heap, '_SEGMENT_HEAP', 'Signature', 4), 0xddeeddee, 'signature');
	my $context = at($heap, '_SEGMENT_HEAP', 'SegContexts');
	my $segment = pointer_field($context, '_HEAP_SEG_CONTEXT', 'SegmentListHead');
	$heap_key = $segment ^ $context ^ 0xa2e64eada2e64ead ^ field($segment, '_HEAP_PAGE_SEGMENT', 'Signature', 8);
	my $globals = index $dump->{bytes}, pack 'Q<', $heap_key;
	cmp_ok($globals, '>', 0, 'the key is kept somewhere');
	$lfh_key = unpack 'Q<', substr $dump->{bytes}, $globals + $offset{'_RTLP_HP_HEAP_GLOBALS.LfhKey'}, 8;
	my $stats = at($heap, '_SEGMENT_HEAP', 'MemStats');
	my @pages = map { field($heap, '_SEGMENT_HEAP', "Large${_}Pages", 8)
		    + field($stats, '_HEAP_RUNTIME_MEMORY_STATS', "Total${_}Pages", 8) } qw(Committed Reserved);
	is(join(' ', map { $_ * 0x1000 } @pages), $truth->{sizes}{$heap}, 'its pages');
	walk_large(at($heap, '_SEGMENT_HEAP', 'LargeAllocMetadata'));
	walk_context($context + $_ * $offset{'_HEAP_SEG_CONTEXT.size'}) for 0, 1;
}

sub walk_large {
	my ($tree) = @_;
	my $mask = field($tree, '_RTL_RB_TREE', 'Encoded', 1) & 1 ? $tree : 0;
	my $walk;
	$walk = sub {
		my ($link, $parent) = @_;
		return if !$link;
		my $node = $link ^ $mask;
		is(pointer_field($node, '_RTL_BALANCED_NODE', 'ParentValue') & ~3, $parent, 'its parent');
		my $address = field($node, '_HEAP_LARGE_ALLOC_DATA', 'VirtualAddress', 8);
		my $more = field($node, '_HEAP_LARGE_ALLOC_DATA', 'AllocatedPages', 8);
		my ($block, $bytes) = ($address & ~0xffff, ($more >> 12) * 0x1000);
		add($heap, $block, $bytes, $bytes - ($address & 0xffff),
			tail_stack($block + $bytes, $address & 0xffff, $more & 1));
		$walk->(pointer_field($node, '_RTL_BALANCED_NODE', $_), $node) for qw(Left Right);
	};
	$walk->(pointer_field($tree, '_RTL_RB_TREE', 'Root'), 0);
}

sub walk_context {
	my ($context) = @_;
	my $head = at($context, '_HEAP_SEG_CONTEXT', 'SegmentListHead');
	my $shift = field($context, '_HEAP_SEG_CONTEXT', 'UnitShift', 1);
	my $count = 0;
	for (my $segment = pointer($dump, $head); $segment != $head; $segment = pointer($dump, $segment)) {
		my $signature = field($segment, '_HEAP_PAGE_SEGMENT', 'Signature', 8);
		is($signature ^ $segment ^ $heap_key ^ 0xa2e64eada2e64ead, $context, 'a segment is the context\'s');
		walk_segment($segment, $shift, field($context, '_HEAP_SEG_CONTEXT', 'FirstDescriptorIndex', 1));
		$count++;
	}
	is(field($context, '_HEAP_SEG_CONTEXT', 'SegmentCount', 8), $count, 'as many segments as it counts');
}

sub walk_segment {
	my ($segment, $shift, $unit) = @_;
	my $type = '_HEAP_PAGE_RANGE_DESCRIPTOR';
	while ($unit < 256) {
		my $range = $segment + $unit * $offset{"$type.size"};
		my $units = field($range, $type, 'UnitSize', 1);
		my $flags = field($range, $type, 'RangeFlags', 1);
		my ($addr, $bytes) = ($segment + ($unit << $shift), $units << $shift);
		die "no units\n" if !$units;
		die "no signature\n" if $flags & 2 && field($range, $type, 'TreeSignature', 4) != 0xccddccdd;
		if ($flags == 3) {
			my $unused = field($range, $type, 'UnusedBytes', 4);
			add($heap, $addr, $bytes, $bytes - $unused,
				tail_stack($addr + $bytes, $unused, field($range, $type, 'ExtraPresent', 1) & 1));
		}
		walk_lfh($addr, $bytes) if $flags == 0x0b;
		walk_vs($addr, $bytes) if $flags == 0x0f;
		$unit += $units;
	}
	is($unit, 256, 'ranges fill a segment');
}

sub walk_vs {
	my ($subsegment, $bytes) = @_;
	my $type = '_HEAP_VS_SUBSEGMENT';
	my $size = field($subsegment, $type, 'Size', 2);
	my $signature = field($subsegment, $type, 'Signature', 2) & 0x7fff;
	die "not a VS subsegment\n" if $signature != (($size ^ 0x2bed) & 0x7fff) || $size * 16 != $bytes;
	my ($chunk, $previous) = ($subsegment + 0x30, 0);
	while ($chunk < $subsegment + $bytes) {
		my $key = $chunk ^ $heap_key;
		my (undef, $units, $before, $busy) = unpack 'v3 C', pack 'Q<', number($dump, $chunk, 8) ^ $key;
		die "not a chunk\n" if !$units || $before != $previous;
		walk_chunk($chunk, $units * 16, ($chunk - $subsegment) >> 12, $key & 0xff) if $busy;
		($chunk, $previous) = ($chunk + $units * 16, $units);
	}
	die "chunks do not fill it\n" if $chunk != $subsegment + $bytes;
}

sub walk_chunk {
	my ($chunk, $bytes, $page, $key) = @_;
	my $bits = field($chunk, '_HEAP_VS_CHUNK_HEADER', 'AllocatedChunkBits', 4);
	my $user = $chunk + $offset{'_HEAP_VS_CHUNK_HEADER.size'};
	my $end = $chunk + $bytes;
	die "not that page\n" if (($bits ^ $key) & 0xff) != $page;
	my ($unused, $extra, $is_lfh) = $bits & 0x100 ? unused_at($end, 0x1fff) : (0, 0, 0);
	return walk_lfh($user, $end - $unused - $user) if $is_lfh;
	add($heap, $user, $bytes, $end - $unused - $user, tail_stack($end, $unused, $extra));
}

sub walk_lfh {
	my ($subsegment, $bytes) = @_;
	my $type = '_HEAP_LFH_SUBSEGMENT';
	my $key = ($lfh_key ^ (($subsegment & 0xffffffff) >> 12)) & 0xffffffff;
	my ($size, $first) = unpack 'v2', pack 'V', field($subsegment, $type, 'BlockOffsets', 4) ^ $key;
	my $count = field($subsegment, $type, 'BlockCount', 2);
	my ($free, $withheld) = (field($subsegment, $type, 'FreeCount', 2), field($subsegment, $type, 'WitheldBlockCount', 1));
	die "blocks go past it\n" if $first + $count * $size > $bytes;
	my $bitmap = at($subsegment, $type, 'BlockBitmap');
	for my $number (0 .. $count - 1) {
		my $bits = number($dump, $bitmap + ($number >> 2), 1) >> 2 * ($number & 3);
		next if !($bits & 1);
		my $end = $subsegment + $first + ($number + 1) * $size;
		my ($unused, $extra) = $bits & 2 ? unused_at($end, 0x3fff) : (0, 0);
		add($heap, $end - $size, $size, $size - $unused, tail_stack($end, $unused, $extra));
		$count--;
	}
	die "$free free and $withheld withheld, not $count\n" if $free + $withheld != $count;
}

# Returns the number of unused bytes before an end, whether an extra exists, and whether the block
# is a subsegment's.
sub unused_at {
	my ($end, $mask) = @_;
	return (1, 0, 0) if number($dump, $end - 1, 1) & 0x80;
	my $word = number($dump, $end - 2, 2);
	return ($word & $mask, $word & 0x4000, $mask == 0x1fff && $word & 0x2000);
}

sub tail_stack {
	my ($end, $unused, $extra) = @_;
	return '-' if !$extra;
	my $tail = memory($dump, $end - $unused, $unused);
	my $at = index $tail, "\1\1" . "\0" x 12;
	return $at < 0 ? '-' : stack_at(unpack 'Q<', substr $tail, $at + 14, 8);
}

# ---------------------------------------------------------------- page heaps

sub walk_page_heap {
	my ($handle) = @_;
	my $root = pointer_field($handle, '_DPH_HEAP_ROOT', 'NormalHeap') ? $handle : $handle + 0x1000;
	$root = $handle + 0x1000 if number($dump, $handle, 4) == 0xeeeeeeee;
	my $table = at($root, '_DPH_HEAP_ROOT', 'BusyNodesTable');
	my $ptr = $dump->{bits} / 8;
	my $normal = pointer_field($root, '_DPH_HEAP_ROOT', 'NormalHeap');
	is($truth->{heaps}{$normal}, 'nt', 'its normal heap is one');
	is(pointer($dump, $table), $table, 'the tree\'s end is its own parent');
	my $walk;
	$walk = sub {
		my ($node, $parent) = @_;
		return 0 if !$node;
		die "another's child\n" if pointer($dump, $node) != $parent;
		my ($left, $right) = map { $walk->(pointer($dump, $node + $_ * $ptr), $node) } 1, 2;
		my $balance = unpack 'c', memory($dump, $node + 3 * $ptr, 1);
		die "not balanced\n" if abs($balance) > 1 || $balance != $right - $left;
		walk_page_block($handle, $node);
		return 1 + ($left > $right ? $left : $right);
	};
	$walk->(pointer($dump, $table + 2 * $ptr), $table);
}

sub walk_page_block {
	my ($handle, $node) = @_;
	my ($user, $base, $bytes, $access, $requested, $record) = map { pointer_field($node, '_DPH_HEAP_BLOCK', $_) }
	    qw(pUserAllocation pVirtualBlock nVirtualBlockSize nVirtualAccessSize nUserRequestedSize StackTrace);
	my $info = $user - ($dump->{bits} == 64 ? 0x40 : 0x20);
	die "no stamp\n" if number($dump, $info, 4) != 0xabcdbbbb;
	die "two sizes\n" if pointer_field($info, '_DPH_BLOCK_INFORMATION', 'RequestedSize') != $requested;
	die "two stacks\n" if pointer_field($info, '_DPH_BLOCK_INFORMATION', 'StackTrace') != $record;
	die "not before its guard\n" if $user + $requested > $base + $access || $base + $access - $user - $requested >= 16;
	die "no guard\n" if $bytes != $access + 0x1000 || defined memory($dump, $base + $access, 1);
	add($handle, $user, $bytes, $requested, stack_at($record));
}
