# Walks a segment heap of 26100 x64 by the published facts about its structures (windows-2026,
# section B), independently of our walker and of the image maker. Dies if one structure contradicts
# another.
package SegmentHeap;
use strict;
use warnings;
no warnings 'portable';    # numbers of 64 bits
use Exporter qw(import);
use Minidump;

our @EXPORT = qw(segment_heap_blocks);

my ($contexts, $context_bytes, $vs, $lfh, $large) = (0x140, 0xc0, 0x2c0, 0x340, 0x48);

sub add_block {
	my ($walk, $addr, $place, $unused, $usable) = @_;
	die sprintf "two blocks at %X\n", $addr if $walk->{blocks}{$addr};
	die sprintf "%X unused of %X at %X\n", $unused, $usable, $addr if $unused > $usable;
	$walk->{blocks}{$addr} = [$usable - $unused, $place - $usable + $unused];
	return;
}

# Reads the last word of a place; returns (unused bytes, flags).
sub last_word {
	my ($dump, $end, $mask) = @_;
	my $word = number($dump, $end - 2, 2);
	return $word & 0x8000 ? (1, 0) : ($word & $mask, $word & ~$mask);
}

# ---------------------------------------------------------------- the LFH

sub is_over_page { my ($addr, $bytes) = @_; return $addr >> 12 != ($addr + $bytes - 1) >> 12 }

sub walk_lfh {
	my ($dump, $walk, $at) = @_;
	my $name = sprintf 'LFH subsegment %X', $at;
	my ($owner, $bucket) = map { $walk->{heap} + $lfh + 64 * number($dump, $at + $_, 2) } 0x14, 0x2c;
	my ($byte, $of_bucket) = (number($dump, $owner, 1), number($dump, $bucket, 1));
	die "$name: bucket\n" if !($of_bucket & 1) || $of_bucket >> 1 != $byte >> 1;
	die "$name: owner\n" if !!($byte & 1) != ($owner == $bucket);
	die "$name: bucket of the owner\n" if $walk->{heap} + $lfh + 64 * number($dump, $owner + 2, 2) != $bucket;
	die "$name: Buckets\n" if pointer($dump, $walk->{heap} + $lfh + 0x1c0 + 8 * ($byte >> 1)) != $bucket;
	my $offsets = number($dump, $at + 0x28, 4) ^ ($walk->{lfh_key} & 0xffffffff) ^ ($at >> 12 & 0xffffffff);
	my ($bytes, $first) = ($offsets & 0xffff, $offsets >> 16);
	my ($free, $count, $withheld) = (number($dump, $at + 0x20, 2), number($dump, $at + 0x22, 2), number($dump, $at + 0x25, 1));
	die "$name: blocks of $bytes bytes\n" if !$bytes || $bytes % 16 || $first < 0x40 + int(($count + 31) / 32) * 8;
	my ($busy, $over) = (0, 0);
	for my $i (0 .. $count - 1) {
		my $word = number($dump, $at + 0x40 + 8 * int($i / 32), 8);
		next if !($word >> $i % 32 & 1);
		$busy++;
		my $addr = $at + $first + $i * $bytes;
		if ($withheld && is_over_page($addr, $bytes)) {
			$over++;
			next;
		}
		my ($unused) = $word >> 32 + $i % 32 & 1 ? last_word($dump, $addr + $bytes, 0x3fff) : (0);
		add_block($walk, $addr, $bytes, $unused, $bytes);
	}
	die "$name: $busy busy, $free free of $count\n" if $busy + $free != $count;
	die "$name: $over of $withheld withheld\n" if $over != $withheld;
	$walk->{seen}{lfh}++;
	$walk->{seen}{withheld} += $withheld;
	$walk->{seen}{private} += number($dump, $at + 0x33, 1);
	$walk->{owned}{$at} = $owner;
	return;
}

sub lists_of_owner {
	my ($dump, $owner) = @_;
	my %found;
	for my $head ($owner + 0x18, $owner + 0x28) {
		for (my $at = pointer($dump, $head); $at != $head; $at = pointer($dump, $at)) { $found{$at} = $owner }
	}
	return %found;
}

# ---------------------------------------------------------------- VS chunks

sub walk_vs {
	my ($dump, $walk, $at, $slot) = @_;
	my $name = sprintf 'VS subsegment %X', $at;
	my ($units, $ref, $signature) = (number($dump, $at + 0x20, 2), number($dump, $at + 0x22, 2), number($dump, $at + 0x24, 2));
	die "$name: signature\n" if ($signature ^ $units ^ 0x2bed) & 0x7fff;
	die "$name: owner\n" if $walk->{heap} + $vs + 64 * $ref != $slot;
	my ($chunk, $end, $before, $free) = ($at + 0x30, $at + 16 * $units, 0, 0);
	while ($chunk < $end) {
		my $plain = pointer($dump, $chunk) ^ $chunk ^ $walk->{key};
		my ($size, $previous, $is_busy) = ($plain >> 16 & 0xffff, $plain >> 32 & 0xffff, $plain >> 48 & 0xff);
		die sprintf "%s: chunk %X\n", $name, $chunk if !$size || $previous != $before;
		if ($is_busy) { walk_chunk($dump, $walk, $chunk, 16 * $size, $chunk - $at) }
		else { $free++ }
		($before, $chunk) = ($size, $chunk + 16 * $size);
	}
	die "$name: ends elsewhere\n" if $chunk != $end;
	return $free;
}

sub walk_chunk {
	my ($dump, $walk, $chunk, $bytes, $offset) = @_;
	my $bits = number($dump, $chunk + 8, 4);
	die sprintf "page of chunk %X\n", $chunk if (($bits ^ $chunk ^ $walk->{key}) & 0xff) != $offset >> 12;
	my ($unused, $flags) = $bits & 0x100 ? last_word($dump, $chunk + $bytes, 0x1fff) : (0, 0);
	if ($flags & 0x2000) { walk_lfh($dump, $walk, $chunk + 16) }
	else { add_block($walk, $chunk + 16, $bytes, $unused, $bytes - 16) }
	return;
}

sub count_nodes {
	my ($dump, $node, $key) = @_;
	return 0 if !$node;
	my @children = map { $_ ? $_ ^ $key : 0 } pointer($dump, $node), pointer($dump, $node + 8);
	return 1 + count_nodes($dump, $children[0], $key) + count_nodes($dump, $children[1], $key);
}

sub walk_slots {
	my ($dump, $walk) = @_;
	my $context = $walk->{heap} + $vs;
	my $map = $context + 64 * number($dump, $context, 2);
	my @places = map { $context + 64 * number($dump, $map + 4 * $_, 2) } 0 .. number($dump, $context + 2, 1);
	my %slots = map { $_ => 1 } @places;
	for my $slot (sort { $a <=> $b } keys %slots) {
		my $back = pointer($dump, $slot);
		my $kind = $back == $context ? 'pointer' : $back == $slot - $context ? 'offset' : die sprintf "slot %X\n", $slot;
		$walk->{seen}{$kind}++;
		my ($count, $free, $head) = (0, 0, $slot + 0x20);
		for (my $at = pointer($dump, $head) ^ $head; $at != $head; $at = pointer($dump, $at) ^ $at) {
			die sprintf "two lists have %X\n", $at if !delete $walk->{vs_ranges}{$at};
			$free += walk_vs($dump, $walk, $at, $slot);
			$count++;
		}
		die sprintf "%X: free chunks\n", $slot if $free != count_nodes($dump, pointer($dump, $slot + 0x10), 0);
		$walk->{seen}{ $count ? 'slots' : 'empty slots' }++;
	}
	$walk->{seen}{'shared slots'} += @places - keys %slots;
	die "VS ranges in no list\n" if %{ $walk->{vs_ranges} };
	return;
}

# ---------------------------------------------------------------- the back end

sub walk_range {
	my ($dump, $walk, $descriptor, $flags, $addr, $bytes) = @_;
	if ($flags == 3) { add_block($walk, $addr, $bytes, number($dump, $descriptor + 4, 4), $bytes) }
	elsif ($flags == 0xb) { walk_lfh($dump, $walk, $addr) }
	elsif ($flags == 0xf) { $walk->{vs_ranges}{$addr} = 1 }
	else { die sprintf "range flags %X\n", $flags }
	return;
}

sub walk_segment {
	my ($dump, $walk, $segment, $shift, $first) = @_;
	my $unit = $first;
	while ($unit < 256) {
		my $descriptor = $segment + 32 * $unit;
		my ($flags, $units) = (number($dump, $descriptor + 0x18, 1), number($dump, $descriptor + 0x1f, 1));
		die sprintf "%d units at %X\n", $units, $descriptor if !$units || $unit + $units > 256;
		my @inside = map { number($dump, $descriptor + 32 * $_ + 0x1a, 1) == $_ ? () : $_ } $flags ? 1 .. $units - 1 : $units - 1;
		die sprintf "units inside %X\n", $descriptor if @inside;
		push @{ $walk->{ranges} }, [$descriptor, $flags, $segment + ($unit << $shift), $units << $shift] if $flags;
		$unit += $units;
	}
	return;
}

# Finds HeapKey through the first page segment. LfhKey follows HeapKey in ntdll's data.
sub find_keys {
	my ($dump, $walk, $context) = @_;
	my $segment = pointer($dump, $context + 0x48);
	$walk->{key} = pointer($dump, $segment + 0x10) ^ $segment ^ $context;
	for my $ntdll (grep { $_->{path} =~ /ntdll/ } @{ $dump->{modules} }) {
		my $memory = memory($dump, $ntdll->{base}, $ntdll->{bytes});
		my $at = index $memory, pack 'Q<', $walk->{key};
		$walk->{lfh_key} = unpack 'Q<', substr $memory, $at + 8, 8 if $at >= 0;
	}
	die "no LfhKey\n" if !defined $walk->{lfh_key};
	return;
}

sub walk_back_end {
	my ($dump, $walk) = @_;
	find_keys($dump, $walk, $walk->{heap} + $contexts);
	for my $context (map { $walk->{heap} + $contexts + $_ * $context_bytes } 0, 1) {
		my ($head, $count) = ($context + 0x48, 0);
		for (my $at = pointer($dump, $head); $at != $head; $at = pointer($dump, $at)) {
			die sprintf "signature of %X\n", $at if (pointer($dump, $at + 0x10) ^ $at ^ $walk->{key}) != $context;
			walk_segment($dump, $walk, $at, number($dump, $context + 8, 1), number($dump, $context + 0xa, 1));
			$count++;
		}
		die "SegmentCount\n" if $count != pointer($dump, $context + 0x58);
	}
	return;
}

sub walk_large {
	my ($dump, $walk, $node, $key) = @_;
	return if !$node;
	my ($address, $pages) = (pointer($dump, $node + 0x18), pointer($dump, $node + 0x20) >> 12);
	add_block($walk, $address & ~0xffff, $pages << 12, $address & 0xffff, $pages << 12);
	walk_large($dump, $walk, $_ ? $_ ^ $key : 0, $key) for pointer($dump, $node), pointer($dump, $node + 8);
	return;
}

# Returns {blocks {ADDR => [requested, overhead]}, seen {kind => count}}.
sub segment_heap_blocks {
	my ($dump, $heap) = @_;
	my $walk = { heap => $heap, blocks => {}, seen => {}, ranges => [], owned => {}, vs_ranges => {} };
	die "no signature\n" if number($dump, $heap + 0x10, 4) != 0xddeeddee;
	walk_back_end($dump, $walk);
	walk_range($dump, $walk, @$_) for @{ $walk->{ranges} };
	walk_slots($dump, $walk);
	my %listed = map { lists_of_owner($dump, $_) } values %{ { map { $_ => $_ } values %{ $walk->{owned} } } };
	for my $at (keys %{ $walk->{owned} }) {
		die sprintf "LFH subsegment %X is in no list of its owner\n", $at if ($listed{$at} // 0) != $walk->{owned}{$at};
	}
	my ($root, $encoded) = (pointer($dump, $heap + $large), pointer($dump, $heap + $large + 8) & 1);
	my $key = $encoded ? $heap + $large : 0;
	walk_large($dump, $walk, $root ? $root ^ $key : 0, $key);
	return $walk;
}

1;
