# Made recordings: the text that build/linux/record/make_recording turns into one, and the truth about it, found
# by keeping every block by itself for all of its life.
package Recordings;
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use Exporter qw(import);
use Test::More;
use Hunt;

our @EXPORT = qw(random_events make_recording replay position_of live_at fate_of use_at by_stack by_heap dump_of);

# A process that allocates and frees at random. %how: events, seed, ms (its length), attached (so many blocks
# were there before), stop (its writer dies).
sub random_events {
	my (%how) = @_;
	srand $how{seed};
	my $length = $how{ms} // 10_000;
	my @lines = ("process 4711 12 64 1763600000000 1763600100250 0 " . ($how{attached} ? 1 : 0) . ' C:\made\app.exe');
	push @lines, 'module app 140000000 20000 77 C:\made\app.exe', 'module lib 7FF800000000 8000 78 C:\made\lib.dll',
	    'module gone 7FF810000000 8000 79 C:\made\gone.dll', 'module came 7FF810000000 9000 80 C:\made\came.dll';
	my @modules = qw(app lib gone came);
	for my $stack (1 .. 12) {
		my @frames = map { sprintf '%s+%X', $modules[rand @modules], 0x100 + int rand 0x4000 } 1 .. 1 + int rand 6;
		push @lines, "stack s$stack @frames app+1000";
	}
	push @lines, 'stack nowhere 1230000 1240000';
	push @lines, 'heap h1 1E0000', 'heap h2 7F0000';
	my %live;
	for my $kind (1 .. 40) {
		my $place = (qw(h1 h1 h1 h2 h2 committed reserved mapped))[rand 8];
		my $stack = rand() < 0.1 ? '-' : rand() < 0.1 ? 'nowhere' : 's' . (1 + int rand 12);
		push @lines, sprintf 'kind k%d %d %s %s', $kind, (rand() < 0.1 ? 0 : 1 + int rand(10)**(1 + int rand 7)), $stack, $place;
		$live{"k$kind"} = [];
	}
	push @lines, 'kind before 640 - h1';
	my (%count, $time) = (before => 0);
	my $alloc = sub { my ($kind) = @_; push @lines, "alloc $kind"; push @{ $live{$kind} }, $count{$kind}++ };
	my $free = sub {
		my ($kind) = @_;
		my $blocks = $live{$kind};
		@$blocks or return;
		push @lines, "free $kind " . splice @$blocks, rand() < 0.6 ? -1 : int rand @$blocks, 1;
	};
	$alloc->('before') for 1 .. $how{attached} // 0;
	push @lines, 'start' if $how{attached};
	my $grows = 0.6;
	for my $event (1 .. $how{events}) {
		$grows = 0.2 + rand 0.6 if $event % 500 == 0;
		if (rand() < 0.4) {
			$time = int($length * $event / $how{events});
			push @lines, "time $time";
		}
		push @lines, 'thread ' . (100 + int rand 5) if rand() < 0.1;
		push @lines, 'flush' if rand() < 0.002;
		push @lines, 'mark m' . $event if $event % 777 == 0;
		push @lines, 'mark again' if $event % 1500 == 0;
		my $kind = $how{attached} && rand() < 0.05 ? 'before' : 'k' . (1 + int rand 40);
		rand() < $grows && $kind ne 'before' ? $alloc->($kind) : $free->($kind);
	}
	push @lines, "time $length";
	push @lines, 'flush', 'stop' if $how{stop};
	return join '', map { "$_\n" } @lines;
}

sub make_recording {
	my ($text, $file) = @_;
	my $made = run(["$root/build/linux/record/make_recording", spew("$file.events", $text), $file]);
	is($made->{status}, 0, 'a recording is made') or diag($made->{err});
	return $file;
}

# Every block, from the text: { blocks => [{ bytes, stack, heap, from, to }], times => [of each event],
# marks => { LABEL => POSITION }, start }. A block is there from position "from" up to, and without, "to".
sub replay {
	my ($text) = @_;
	my (%replay, %modules, %stacks, %heaps, %kinds, %blocks, $stack);
	my %headings = (committed => 1, reserved => 2, mapped => 3);
	my ($time, $position) = (0, 0);
	@replay{qw(blocks times marks start lost)} = ([], [], {}, 0, 0);
	for (split /\n/, $text) {
		my ($word, @of) = split / /;
		if ($word eq 'process') {
			@replay{qw(pid parent bits start_ms wall_ms sample attached image)} = @of;
		} elsif ($word eq 'module') {
			$modules{ $of[0] } = { base => hex $of[1], size => hex $of[2], timestamp => $of[3], path => $of[4] };
		} elsif ($word eq 'stack') {
			$stacks{ $of[0] } = join ' ', map { s/^(\w+)\+0*/$1+/r } @of[1 .. $#of];
		} elsif ($word eq 'heap') {
			$heaps{ $of[0] } = $of[1];
		} elsif ($word eq 'kind') {
			$kinds{ $of[0] } = { bytes => $of[1], stack => $of[2] eq '-' ? '' : $stacks{ $of[2] }, heap => $headings{ $of[3] } // $heaps{ $of[3] } };
		} elsif ($word eq 'time') {
			$time = $of[0];
		} elsif ($word eq 'alloc') {
			push @{ $replay{times} }, $time;
			push @{ $replay{blocks} }, my $block = { %{ $kinds{ $of[0] } }, from => ++$position };
			push @{ $blocks{ $of[0] } }, $block;
		} elsif ($word eq 'free') {
			push @{ $replay{times} }, $time;
			$blocks{ $of[0] }[$of[1]]{to} = ++$position;
		} elsif ($word eq 'mark') {
			$replay{marks}{ $of[0] } //= $position;
			push @{ $replay{mark_lines} }, sprintf '%d.%03d s %s', int($time / 1000), $time % 1000, $of[0];
		} elsif ($word eq 'start') {
			$replay{start} = $position;
		} elsif ($word eq 'lost') {
			$replay{lost} += $of[0];
		}
	}
	@replay{qw(modules heaps length)} = (\%modules, \%heaps, $time);
	return \%replay;
}

sub is_live { my ($block, $at) = @_; return $block->{from} <= $at && (!$block->{to} || $block->{to} > $at) }

# All that is in use at a position but address space.
sub use_at {
	my ($replay, $at) = @_;
	my $sum = 0;
	$sum += $_->{bytes} for grep { $_->{heap} ne 2 && is_live($_, $at) } @{ $replay->{blocks} };
	return $sum;
}

sub position_of {
	my ($replay, $moment) = @_;
	my $times = $replay->{times};
	return $replay->{marks}{$moment} if defined $replay->{marks}{$moment};
	return $replay->{start} if $moment eq 'start';
	return scalar @$times if $moment eq 'end';
	if ($moment eq 'peak') {
		my ($best, $most, $use, %change) = (0, 0, 0);
		for my $block (grep { $_->{heap} ne 2 } @{ $replay->{blocks} }) {
			$change{ $block->{from} } += $block->{bytes};
			$change{ $block->{to} } -= $block->{bytes} if $block->{to};
		}
		for my $at (1 .. @$times) {
			$use += $change{$at} // 0;
			($best, $most) = ($at, $use) if $use > $most;
		}
		return $best;
	}
	my $ms = $moment =~ /^(\d+)ms$/ ? $1 : $moment =~ /^(\d+)s$/ ? 1000 * $1 : $moment =~ /^(\d+)%$/ ? $replay->{length} * $1 / 100
	    : die "no moment: $moment\n";
	return scalar grep { $_ <= $ms } @$times;
}

sub live_at {
	my ($replay, $moment) = @_;
	my $at = position_of($replay, $moment);
	return [grep { is_live($_, $at) } @{ $replay->{blocks} }];
}

# What became of blocks between two moments: by when each was allocated and freed, and by nothing else.
sub fate_of {
	my ($replay, $class, $from, $to) = @_;
	my ($first, $last) = map { position_of($replay, $_) } $from, $to;
	my @found;
	for my $block (@{ $replay->{blocks} }) {
		my $is_in = $block->{from} > $first && $block->{from} <= $last;
		my $goes_in = $block->{to} && $block->{to} > $first && $block->{to} <= $last;
		my $was_there = is_live($block, $first);
		push @found, $block if $class eq 'aifo' && $is_in && !$goes_in || $class eq 'aifi' && $is_in && $goes_in
		    || $class eq 'aofi' && $was_there && $goes_in || $class eq 'aofo' && $was_there && !$goes_in;
	}
	return \@found;
}

# What blocks add up to: stack -> [BYTES, COUNT], without address space unless heaps are named.
sub by_stack {
	my ($blocks, @heaps) = @_;
	my (%sums, %wanted);
	$wanted{$_} = 1 for @heaps;
	for my $block (@$blocks) {
		next if @heaps ? !$wanted{ $block->{heap} } : $block->{heap} eq 2;
		$sums{ $block->{stack} }[0] += $block->{bytes};
		$sums{ $block->{stack} }[1]++;
	}
	return \%sums;
}

# The same: "HEAP STACK" -> [BYTES, COUNT], of all.
sub by_heap {
	my ($blocks) = @_;
	my %sums;
	for my $block (@$blocks) {
		my $sum = $sums{"$block->{heap} $block->{stack}"} //= [0, 0];
		$sum->[0] += $block->{bytes};
		$sum->[1]++;
	}
	return \%sums;
}

# A dump of such blocks, each by itself, as a snapshot at that time would be: written here, not by hsnap.
sub dump_of {
	my ($replay, $blocks, $ms) = @_;
	my ($modules, $spare) = ($replay->{modules}, 0x7FFA00000000);
	my (%ids, %base, %taken, $addr);
	my $text = "// hsnap: dump format=1 tool=test time=" . date($replay->{wall_ms} + $ms)
	    . "\n// hsnap: process id=$replay->{pid} start=" . date($replay->{start_ms}) . " image=\"app.exe\"\n"
	    . "// Loaded modules: \n//     Base Size Module\n";
	my $notes = '';
	for my $name (sort { $b cmp $a } keys %$modules) { # of two at one place one lies elsewhere
		my $module = $modules->{$name};
		$base{$name} = $taken{ $module->{base} }++ ? ($spare += 0x100000) : $module->{base};
		$text .= sprintf "//    %16X %8X %s\n", $base{$name}, @$module{qw(size path)};
		$notes .= sprintf "// hsnap: module base=%X timestamp=%X checksum=1\n", $base{$name}, $module->{timestamp};
	}
	$text .= "//\n// Process modules enumerated.\n$notes";
	for my $heap (sort keys %{ { map { $_->{heap} => 1 } @$blocks } }) {
		my @mine = grep { $_->{heap} eq $heap } @$blocks;
		my @bare = grep { $_->{stack} eq '' } @mine;
		my $bytes = 0;
		$bytes += $_->{bytes} for @bare;
		$text .= sprintf "// hsnap: heap addr=%s kind=unknown committed=0 reserved=0 stackless-blocks=%d stackless-requested=%d stackless-overhead=0\n",
		    $heap, scalar @bare, $bytes;
		$text .= "*- - - - - - - - - - Start of data for heap @ $heap - - - - - - - - - -\n*- - - - - - - - - - Heap $heap Hogs - - - - - - - - - -\n";
		for my $block (grep { $_->{stack} ne '' } @mine) {
			my $id = $ids{ $block->{stack} };
			$text .= sprintf "%X bytes + 0 at %X by BackTrace%X\n", $block->{bytes}, $addr += 0x10000, $id // (1000 + keys %ids);
			next if $id;
			$ids{ $block->{stack} } = 1000 + keys %ids;
			$text .= "\t$_\n" for map { /^(\w+)\+(\w+)$/ ? sprintf '%X', $base{$1} + hex $2 : $_ } split / /, $block->{stack};
			$text .= "\n";
		}
	}
	my ($count, $bytes) = (scalar @$blocks, 0);
	$bytes += $_->{bytes} for @$blocks;
	return $text . "// hsnap: end blocks=$count requested=$bytes overhead=0\n";
}

sub date {
	my ($ms) = @_;
	my @time = gmtime int($ms / 1000);
	return sprintf '%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', $time[5] + 1900, $time[4] + 1, @time[3, 2, 1, 0], $ms % 1000;
}

1;
