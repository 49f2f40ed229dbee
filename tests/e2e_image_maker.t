#!/usr/bin/perl
# The maker of made processes: what it writes is a minidump by the format's description, the
# process in it is one by the published facts about Windows, and its truth agrees with itself and
# with the memory. Our own readers of dumps and heaps have no part in it.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;
use Minidump;

my $maker = "$root/build/linux/images/make_image";
my $dir = fresh_dir();
plan skip_all => 'build/linux/images/make_image is not built' if !-x $maker;

my %bits = (32 => {}, 64 => {});
# TEB.PEB, PEB {Ldr, ProcessHeap, NtGlobalFlag, NumberOfHeaps, ProcessHeaps}; the lists of the
# loader; a loader's entry {DllBase, SizeOfImage}
@{ $bits{32} }{qw(peb ldr process_heap flag heap_count heaps load base size)} =
    (0x30, 0xc, 0x18, 0x68, 0x88, 0x90, 0xc, 0x18, 0x20);
@{ $bits{64} }{qw(peb ldr process_heap flag heap_count heaps load base size)} =
    (0x60, 0x18, 0x30, 0xbc, 0xe8, 0xf0, 0x10, 0x30, 0x40);
# _HEAP_SEGMENT and entries
@{ $bits{32} }{qw(unit coded link first last holes hole_count encoding slot)} = (8, 0, 0x10, 0x24, 0x28, 0x38, 0x30, 0x50, 4);
@{ $bits{64} }{qw(unit coded link first last holes hole_count encoding slot)} = (16, 8, 0x18, 0x40, 0x48, 0x60, 0x54, 0x80, 8);

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
		$committed += $info->{bytes} if $info->{state} == 0x1000 && $info->{protect} != 1;
	}
	my $held = 0;
	$held += $_->[1] for @{ $dump->{ranges} };
	is($committed, $held, 'every committed page is in the dump, and nothing else is');
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

sub check_process {
	my ($dump, $truth, $peb) = @_;
	my $f = $dump->{f};
	my $ptr = $dump->{bits} / 8;
	is(number($dump, $peb + $f->{flag}, 4), hex $truth->{process}{flags}, 'NtGlobalFlag');
	my $count = number($dump, $peb + $f->{heap_count}, 4);
	my $list = pointer($dump, $peb + $f->{heaps});
	my @heaps = map { pointer($dump, $list + $_ * $ptr) } 0 .. $count - 1;
	# The ordinary heap behind a page heap may be in no list.
	my %is_listed = map { $_ => 1 } @heaps;
	my $has_page = grep { $_ eq 'page' } values %{ $truth->{heaps} // {} };
	my @true = grep { $is_listed{$_} || !$has_page || $truth->{heaps}{$_} ne 'nt' } keys %{ $truth->{heaps} // {} };
	is_deeply([sort { $a <=> $b } @heaps], [sort { $a <=> $b } @true], 'the heaps');
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

sub entry_at {
	my ($dump, $heap, $at) = @_;
	my $coded = memory($dump, $at + $dump->{f}{coded}, 8) // die sprintf "no entry at %X\n", $at;
	my @entry = unpack 'v C2 v C2', $coded ^ $heap->{key};
	$entry[2] = ($entry[0] & 0xff) ^ ($entry[0] >> 8) ^ $entry[1] if $heap->{key} eq "\0" x 8 && $entry[2] == 0;
	my ($size, $flags, $sum, $previous, $offset, $unused) = @entry;
	die sprintf "checksum at %X\n", $at if $sum != (($size & 0xff) ^ ($size >> 8) ^ $flags);
	die sprintf "no size at %X\n", $at if $size == 0;
	return ($size, $flags, $previous, $unused);
}

sub holes_of {
	my ($dump, $segment) = @_;
	my $f = $dump->{f};
	my $slot = $f->{slot};
	my $head = $segment + $f->{holes};
	my %holes;
	for (my $at = pointer($dump, $head); $at != $head; $at = pointer($dump, $at)) {
		$holes{ pointer($dump, $at + 2 * $slot) } = pointer($dump, $at + 3 * $slot);
	}
	die 'count of holes' if number($dump, $segment + $f->{hole_count}, 4) != keys %holes;
	return \%holes;
}

# What a back-end entry or a front end's block says was asked for.
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

# The front end's blocks of a container; offsets as the truth's own key decodes them.
sub container_blocks {
	my ($dump, $heap, $blocks) = @_;
	my $is64 = $dump->{bits} == 64;
	my $unit = $dump->{f}{unit};
	my $is7 = $dump->{build} < 9200;
	my $subsegment = pointer($dump, $blocks);
	my ($size_at, $count_at) = $is7 ? ($is64 ? (0x18, 0x1c) : (0x10, 0x14)) : ($is64 ? (0x24, 0x28) : (0x14, 0x18));
	my $stride = $unit * number($dump, $subsegment + $size_at, 2);
	my $count = number($dump, $subsegment + $count_at, 2);
	my $first = $is7 ? ($is64 ? 0x20 : 0x10) : first_of($dump, $blocks, $count);
	my @found;
	my $bitmap = $is7 ? undef : memory($dump, pointer($dump, $blocks + ($is64 ? 0x28 : 0x18)), int(($count + 7) / 8));
	for my $i (0 .. $count - 1) {
		my $at = $blocks + $first + $i * $stride;
		my $unused = number($dump, $at + $unit - 1, 1);
		die sprintf "not the front end's: %X\n", $at if !($unused & 0x80);
		my $is_busy = $unused != 0x80;
		die sprintf "bitmap at %X\n", $at if defined $bitmap && $is_busy != vec $bitmap, $i, 1;
		push @found, block_at($dump, $at, $stride, $unused & 0x7f) if $is_busy;
	}
	return @found;
}

sub first_of {
	my ($dump, $blocks, $count) = @_;
	my ($head, $word, $unit) = $dump->{bits} == 64 ? (0x30, 8, 16) : (0x1c, 4, 8);
	my $bytes = $head + $word * int(($count + 8 * $word - 1) / (8 * $word));
	return $unit * int(($bytes + $unit - 1) / $unit);
}

sub segment_blocks {
	my ($dump, $heap, $segment) = @_;
	my $f = $dump->{f};
	my $holes = holes_of($dump, $segment);
	my ($at, $end) = map { pointer($dump, $segment + $f->{$_}) } qw(first last);
	$heap->{reserved} += $end - $segment;
	$heap->{committed} += $end - $segment;
	$heap->{committed} -= $_ for values %$holes;
	my ($before) = entry_at($dump, $heap, $segment);
	my ($was_free, $was_hole, @found) = (0, 0);
	while ($at < $end) {
		my ($size, $flags, $previous, $unused) = entry_at($dump, $heap, $at);
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
		if (my $hole = delete $holes->{$next}) {
			die "marker" if $unused != 3;
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
	my $heap = { key => memory($dump, $addr + $f->{encoding} + $f->{coded}, 8), committed => 0, reserved => 0 };
	my @found = big_blocks($dump, $heap, $addr + $virtual);
	for (my $at = pointer($dump, $addr + $list); $at != $addr + $list; $at = pointer($dump, $at)) {
		push @found, segment_blocks($dump, $heap, $at - $f->{link});
	}
	$dump->{sizes}{$addr} = "$heap->{committed} $heap->{reserved}";
	return @found;
}

# The truth's line of a block that was found: address, requested, overhead, stack's record.
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
			my $is_right = $stack eq '-' ? !$trace || $trace =~ /^(16842752|72339069014638592)$/
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
	check_modules($dump, $truth);
	check_process($dump, $truth, peb_of($dump, $truth, $profile eq 'wow64'));
	check_blocks($dump, $truth) if !grep { $_ eq '--page-heap' } @words;
	check_stacks($dump, $truth, $slot);
	check_total($truth);
}

for my $profile (profiles()) {
	subtest "$profile, plain" => sub { check($profile, 'depth') };
	subtest "$profile, with stacks" => sub { check($profile, 'depth', '--ust', '--made-code', '--heaps', 4, '--blocks', 6000) };
	subtest "$profile, tails" => sub { check($profile, 'index', '--ust', '--debug-flags', '--depth-slot', 'index') };
	subtest "$profile, headers in clear" => sub { check($profile, 'depth', '--ust', '--plain-headers', '--heaps', 3) };
	subtest "$profile, no front end" => sub { check($profile, 'depth', '--no-lfh', '--seed', 7) };
}

for my $profile (qw(win10-x86 win10-x64 win11-x64 wow64)) {
	subtest "$profile, segment heaps" => sub { check($profile, 'depth', '--ust', '--segment', '--heaps', 3) };
}
for my $profile (profiles()) {
	subtest "$profile, page heaps" => sub { check($profile, 'depth', '--ust', '--page-heap', 'full', '--blocks', 300) };
	subtest "$profile, light page heaps" => sub { check($profile, 'depth', '--ust', '--page-heap', 'light', '--blocks', 300) };
}
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

subtest 'damage is done where it is said to be' => sub {
	my @kinds = map { (split /\t/)[0] } split /\n/, run([$maker, '--list-breaks'])->{out};
	cmp_ok(scalar @kinds, '>', 20, 'kinds of damage: ' . @kinds);
	my $whole = slurp(make_file('whole'));
	for my $kind (grep { !/^(segment-heap|page|light)-/ } @kinds) {
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
