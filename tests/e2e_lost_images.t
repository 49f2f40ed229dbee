#!/usr/bin/perl
# Unreachable blocks in synthetic Windows processes of 32 and 64 bits. The blocks get random
# pointers to each other. hsnap -g's states agree with a plain search along these pointers.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
no warnings 'recursion';
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;
use Images;

my $dir = fresh_dir();
my %made = (
	'win7-x86' => [[], ['--page-heap', 'light']], 'win7-x64' => [[], ['--no-lfh']], 'win10-x86' => [[], ['--segment']],
	'win10-x64' => [[], ['--segment'], ['--page-heap', 'full']], 'win11-x64' => [[], ['--segment']],
	'win11-26100-x64' => [[], ['--segment']], 'win11-26100-x86' => [[]],
);
our $seed = 1;
for my $profile (sort keys %made) {
	for my $options (@{ $made{$profile} }) {
		subtest "$profile @$options" => sub { one_image($profile, @$options) };
	}
	# win7-x64 is left out: its heaps lie below and above 4 GiB, so words of heaps would look
	# like halves of addresses.
	subtest "$profile, no stacks" => sub { sums_without_stacks($profile) } if $profile ne 'win7-x64';
}
done_testing;

sub random { $seed = ($seed * 1103515245 + 12345) & 0x7fffffff; return ($seed >> 8) % $_[0] }

sub linked_image {
	my ($file, $profile, @options) = @_;
	ok(make_image($file, $profile, '--blocks', 700, '--seed', 1 + random(1000), @options), 'made') or return;
	my $image = { bytes => slurp($file), word => $profile =~ /x86/ ? 4 : 8 };
	regions($image);
	my $truth = truth("$file.truth");
	my @blocks = sort { $a->{at} <=> $b->{at} }
	    map { my @words = split / /, $truth->{all}{$_}; +{ at => hex $_, bytes => $words[1], overhead => $words[2], links => {}, starts => {} } } keys %{ $truth->{all} };
	put_pointers($image, \@blocks, { map { (hex $_) => 1 } keys %{ $truth->{heaps} } });
	spew($file, $image->{bytes});
	return ($image, \@blocks);
}

sub one_image {
	my ($profile, @options) = @_;
	my $file = "$dir/made.dmp";
	my ($image, $blocks) = linked_image($file, $profile, '--ust', @options) or return;
	for my $by_middle (1, 0) {
		search($image, $blocks, $by_middle);
		my $run = run(["$root/build/linux/hsnap", '-g', '--interior', $by_middle ? 'yes' : 'no', '-z', $file, '-f', "$file.txt"]);
		is($run->{status}, 0, 'hsnap -g -z') or diag($run->{err});
		compare($blocks, said("$file.txt"));
	}
}

# Blocks without stacks are listed as sums of their heap. The sums of lost blocks agree with the
# search.
sub sums_without_stacks {
	my ($profile) = @_;
	my $file = "$dir/made.dmp";
	local $seed = 1;
	my ($image, $blocks) = linked_image($file, $profile) or return;
	search($image, $blocks, 1);
	my $run = run(["$root/build/linux/hsnap", '-g', '-z', $file, '-f', "$file.txt"]);
	is($run->{status}, 0, 'hsnap -g -z') or diag($run->{err});
	my @lost = grep { ref $_->{state} || $_->{state} eq 'lost' } @$blocks;
	my @sums = (scalar @lost, 0, 0);
	for (@lost) {
		$sums[1] += $_->{bytes};
		$sums[2] += $_->{overhead};
	}
	my @found = (0, 0, 0);
	for (grep { /^\/\/ hsnap: heap / } split /\r\n/, slurp("$file.txt")) {
		my %note = /([\w-]+)=(\d+)/g;
		$found[$_] += $note{ 'stackless-lost-' . (qw(blocks requested overhead))[$_] } // 0 for 0 .. 2;
	}
	is_deeply(\@found, \@sums, 'blocks, requested, overhead');
	cmp_ok($sums[0], '>', 5, 'several');
	return;
}

# Returns the bytes of each region that is committed, uniform and in the file, and of the threads'
# registers.
sub regions {
	my ($image) = @_;
	my ($count, $at) = unpack 'x8 V V', $image->{bytes};
	my %streams = map { my ($type, $bytes, $rva) = unpack 'V3', substr $image->{bytes}, $at + 12 * $_, 12; ($type => $rva) } 0 .. $count - 1;
	my ($ranges, $from) = unpack 'Q< Q<', substr $image->{bytes}, $streams{9}, 16;
	my ($head, $entry, $infos) = unpack 'V V Q<', substr $image->{bytes}, $streams{16}, 16;
	my @infos = map { [unpack 'Q< x16 Q< V V V', substr $image->{bytes}, $streams{16} + $head + $entry * $_, 48] } 0 .. $infos - 1;
	for my $i (0 .. $ranges - 1) {
		my ($addr, $bytes) = unpack 'Q< Q<', substr $image->{bytes}, $streams{9} + 16 + 16 * $i, 16;
		for (@infos) {
			my ($base, $size, $state, $protect, $type) = @$_;
			next if $state != 0x1000 || $base < $addr || $base >= $addr + $bytes || $protect & 0x101;
			push @{ $image->{regions} }, { at => $base, bytes => $size, offset => $from + $base - $addr,
				is_image => $type == 0x1000000, is_written => ($protect & 0xcc) != 0 };
		}
		$from += $bytes;
	}
	my $threads = unpack 'V', substr $image->{bytes}, $streams{3}, 4;
	for my $i (0 .. $threads - 1) {
		my ($bytes, $rva) = unpack 'x40 V V', substr $image->{bytes}, $streams{3} + 4 + 48 * $i, 48;
		push @{ $image->{contexts} }, { at => 0, bytes => $bytes, offset => $rva };
	}
	return;
}

sub region_of { my ($image, $addr) = @_; return (grep { $addr >= $_->{at} && $addr < $_->{at} + $_->{bytes} } @{ $image->{regions} })[0] }

sub put_word {
	my ($image, $addr, $value) = @_;
	my $region = region_of($image, $addr) // return;
	substr($image->{bytes}, $region->{offset} + $addr - $region->{at}, $image->{word}) = pack $image->{word} == 8 ? 'Q<' : 'V', $value;
	return;
}

# Returns true if a block is an entry of the ring of heaps: two links and a heap. Such a block stays
# unchanged.
sub is_of_ring {
	my ($image, $block, $heaps) = @_;
	my $region = region_of($image, $block->{at});
	return if $block->{bytes} < 3 * $image->{word};
	my @words = unpack $image->{word} == 8 ? 'Q<3' : 'V3', substr $image->{bytes}, $region->{offset} + $block->{at} - $region->{at}, 24;
	return $heaps->{ $words[2] };
}

# Gives each block up to three pointers to the beginnings or middles of blocks, and gives the
# program's data some more.
sub put_pointers {
	my ($image, $blocks, $heaps) = @_;
	my $some = sub {
		my $block = $blocks->[random(scalar @$blocks)];
		return $block->{at} + (random(3) ? 0 : random($block->{bytes} + 2));
	};
	for my $block (@$blocks) {
		my ($region, $words) = (region_of($image, $block->{at}), int $block->{bytes} / $image->{word});
		next if !$region || $block->{bytes} > $region->{at} + $region->{bytes} - $block->{at} || is_of_ring($image, $block, $heaps);
		substr($image->{bytes}, $region->{offset} + $block->{at} - $region->{at}, $block->{bytes}) = "\0" x $block->{bytes};
		my $first = -$block->{at} % $image->{word};
		next if $block->{bytes} < $first + $image->{word};
		$words = int(($block->{bytes} - $first) / $image->{word});
		put_word($image, $block->{at} + $first + $image->{word} * random($words), $some->()) for 1 .. random(4);
	}
	my ($data) = grep { $_->{is_image} && $_->{is_written} } @{ $image->{regions} };
	ok($data, 'the program has data') or return;
	put_word($image, $data->{at} + 16 * $_, $some->()) for 1 .. 60;
	return;
}

# Searches from modules' data and registers to blocks, and from these to other blocks. A heap's
# memory outside blocks holds nothing.
sub search {
	my ($image, $blocks, $by_middle) = @_;
	my ($min, $max) = ($blocks->[0]{at}, $blocks->[-1]{at} + $blocks->[-1]{bytes} + 1);
	my $block_at = sub {
		my ($word) = @_;
		my ($low, $high) = (0, scalar @$blocks);
		while ($low < $high) {
			my $middle = int(($low + $high) / 2);
			if ($blocks->[$middle]{at} <= $word) { $low = $middle + 1 } else { $high = $middle }
		}
		return unless $low && $word < $blocks->[$low - 1]{at} + ($blocks->[$low - 1]{bytes} || 1);
		return if !$by_middle && $word != $blocks->[$low - 1]{at};
		return $low - 1;
	};
	@$_{qw(links starts state)} = ({}, {}, undef) for @$blocks;
	my (%roots, %root_starts);
	my @data = grep { $_->{is_image} && $_->{is_written} } @{ $image->{regions} };
	for my $place (@data, @{ $image->{contexts} }, @$blocks) {
		my $region = $place->{offset} ? $place : region_of($image, $place->{at}) // next;
		my $skip = -$place->{at} % $image->{word};
		my ($at, $bytes) = ($place->{at} - $region->{at} + $skip, int(($place->{bytes} - $skip) / $image->{word}) * $image->{word});
		next if $bytes <= 0 || $at + $bytes > $region->{bytes};
		for my $word (unpack(($image->{word} == 8 ? 'Q<' : 'V') . '*', substr $image->{bytes}, $region->{offset} + $at, $bytes)) {
			my $to = $word >= $min && $word < $max ? $block_at->($word) // next : next;
			($place->{links} // \%roots)->{$to} = 1;
			($place->{starts} // \%root_starts)->{$to} = 1 if $word == $blocks->[$to]{at};
		}
	}
	my %held = %{ followed($blocks, keys %roots) };
	my %starts = %root_starts;
	for my $from (keys %held) { $starts{$_} = 1 for grep { $_ != $from } keys %{ $blocks->[$from]{starts} } }
	my @lost = grep { !$held{$_} } 0 .. $#$blocks;
	my %leads = map { $_ => followed($blocks, keys %{ $blocks->[$_]{links} }) } @lost;
	for my $i (0 .. $#$blocks) {
		$blocks->[$i]{state} = $starts{$i} ? 'held' : 'interior' if $held{$i};
	}
	for my $i (@lost) {
		my $is_first = !grep { $_ != $i && $leads{$_}{$i} && (!$leads{$i}{$_} || $_ < $i) } @lost;
		$blocks->[$i]{state} = 'lost' if $is_first;
	}
	for my $i (grep { !$blocks->[$_]{state} } @lost) {
		$blocks->[$i]{state} = { map { sprintf('%X', $blocks->[$_]{at}) => 1 } grep { ($blocks->[$_]{state} // '') eq 'lost' && $leads{$_}{$i} } @lost };
	}
	return;
}

# Returns the given blocks and all blocks that are reachable from them.
sub followed {
	my ($blocks, @left) = @_;
	my %seen;
	while (@left) {
		my $block = pop @left;
		next if $seen{$block}++;
		push @left, keys %{ $blocks->[$block]{links} };
	}
	return \%seen;
}

# Returns { ADDRESS => [STATE, ROOT] }.
sub said {
	my ($path) = @_;
	my (%said, $state, $with);
	for (split /\r\n/, slurp($path)) {
		($state, $with) = ('held', undef) if /^\*- .* Start of data/;
		($state, $with) = ($1, $2) if m{^// hsnap: blocks reach=(\S+)(?: root=(\w+))?};
		$said{$1} = [$state, $with] if /^[0-9A-F]+ bytes \+ [0-9A-F]+ at ([0-9A-F]+) by/;
	}
	return \%said;
}

sub compare {
	my ($blocks, $said) = @_;
	my (%count, @wrong);
	for my $block (grep { $said->{ sprintf '%X', $_->{at} } } @$blocks) {
		my ($state, $with) = @{ $said->{ sprintf '%X', $block->{at} } };
		$count{$state}++;
		my $is_right = ref $block->{state} ? $state eq 'lost-with' && $block->{state}{$with} : $state eq $block->{state};
		push @wrong, sprintf '%X: %s %s, not %s', $block->{at}, $state, $with // '', ref $block->{state} ? 'lost-with' : $block->{state} if !$is_right;
	}
	is_deeply([splice @wrong, 0, 10], [], 'each block is what the search finds');
	cmp_ok($count{$_} // 0, '>', 5, "$_: several") for qw(held lost lost-with);
	diag(join ' ', %count) if $ENV{HSNAP_SHOW};
	return;
}
