# Synthetic recordings: the text that build/linux/record/make_recording converts into a recording,
# and the truth about it.
package Recordings;
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use Exporter qw(import);
use JSON::PP;
use Test::More;
use Hunt;
use Replay;

our @EXPORT_OK = qw(ask);
our @EXPORT = qw(random_events make_recording make_random refused replay position_of live_at fate_of is_used use_at by_stack by_heap dump_of);

# Returns the events of a process that allocates and frees at random. %how: events, seed, ms
# (length), attached (number of blocks before the start), stop (the recording's writer dies).
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
	my (%live, %is_range, %known, $frees);
	for my $kind (1 .. 40) {
		my $place = (qw(h1 h1 h1 h2 h2 committed reserved mapped stack))[rand 9];
		my $stack = rand() < 0.1 ? '-' : rand() < 0.1 ? 'nowhere' : 's' . (1 + int rand 12);
		my $what = sprintf '%d %s %s', (rand() < 0.1 ? 0 : 1 + int rand(10)**(1 + int rand 7)), $stack, $place;
		redo if $known{$what}++; # must be unique in a recording
		push @lines, "kind k$kind $what";
		$live{"k$kind"} = [];
		$is_range{"k$kind"} = $place !~ /^h/;
	}
	push @lines, 'kind before 640 - h1';
	my (%count, $time) = (before => 0);
	my $alloc = sub { my ($kind) = @_; push @lines, "alloc $kind"; push @{ $live{$kind} }, $count{$kind}++ };
	my $free = sub {
		my ($kind) = @_;
		my $blocks = $live{$kind};
		@$blocks or return;
		push @lines, "free $kind " . splice @$blocks, rand() < 0.6 ? -1 : int rand @$blocks, 1;
		$lines[-1] .= ' ' . (qw(s1 s2 s3 s4 nowhere))[$frees % 5] if $is_range{$kind} && ++$frees % 6;
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

# Makes random recordings. Converts NAME -> %how to NAME -> file, and NAME -> Replay.
sub make_random {
	my ($dir, %made) = @_;
	my (%file, %replay);
	for my $name (sort keys %made) {
		my $text = random_events(%{ $made{$name} });
		$file{$name} = make_recording($text, "$dir/$name.hrec");
		$replay{$name} = replay($text);
	}
	return (\%file, \%replay);
}

# For each [[ARGUMENT...], WORD...], checks that hdiff refuses the arguments with a line that has
# the words, and that the recording stays unchanged.
sub refused {
	my ($file, @wrong) = @_;
	my $before = slurp($file);
	for (@wrong) {
		my ($args, @words) = @$_;
		check_error(run(["$root/build/linux/hdiff", '-d', '--no-symbols', @$args]), 'hdiff', join(' ', map { s{.*/}{}r } @$args), @words);
	}
	ok(slurp($file) eq $before, 'no recording was written over');
	return;
}

# Converts the text to a Replay. Its allocations have their stacks as frames ("" for none), and
# virtual memory has the headings of dumps as heaps. Further fields: pid, parent, bits, start_ms,
# wall_ms, sample, attached, image; modules and heaps by name; stack_numbers, by frames; start, a
# position; length, in milliseconds.
sub replay {
	my ($text) = @_;
	my (%is, %modules, %kinds, %count, %numbers);
	my %stacks = ('-' => '');
	my %heaps = (committed => 1, reserved => 2, mapped => 3, stack => 4);
	my ($time, $thread, @events) = (0, 0);
	$is{start} = 0;
	for (split /\n/, $text) {
		my ($word, @of) = split / /;
		if ($word eq 'process') {
			@is{qw(pid parent bits start_ms wall_ms sample attached image)} = @of;
		} elsif ($word eq 'module') {
			$modules{ $of[0] } = { base => hex $of[1], size => hex $of[2], timestamp => $of[3], path => $of[4] };
		} elsif ($word eq 'stack') {
			$stacks{ $of[0] } = join ' ', map { s/^(\w+)\+0*/$1+/r } @of[1 .. $#of];
			$numbers{ $stacks{ $of[0] } } //= keys %numbers;
		} elsif ($word eq 'heap') {
			$heaps{ $of[0] } = $of[1];
		} elsif ($word eq 'kind') {
			$kinds{ $of[0] } = "$of[1] $of[2] $heaps{ $of[3] }";
		} elsif ($word eq 'time') {
			$time = $of[0];
		} elsif ($word eq 'thread') {
			$thread = $of[0];
		} elsif ($word eq 'alloc') {
			push @events, sprintf '%d %d alloc %s-%d %s', $time, $thread, $of[0], $count{ $of[0] }++, $kinds{ $of[0] };
		} elsif ($word eq 'free') {
			push @events, "$time $thread free $of[0]-$of[1]" . (@of > 2 ? " $of[2]" : '');
		} elsif ($word eq 'mark') {
			push @events, "$time $thread mark $of[0]";
		} elsif ($word eq 'start') {
			$is{start} = @events; # no mark precedes this position
		}
	}
	my $replay = Replay->new(join "\n", @events);
	$_->{stack} = $stacks{ $_->{stack} } for @{ $replay->allocations }, grep { $_ && $_->{stack} } map { $_->{free} } @{ $replay->allocations };
	@$replay{qw(modules heaps stack_numbers length), keys %is} = (\%modules, \%heaps, \%numbers, $time, values %is);
	return $replay;
}

# Returns hdiff's report about recordings as JSON.
sub ask {
	my @args = @_;
	my $result = run(["$root/build/linux/hdiff", '--no-symbols', '-o', 'json', @args]);
	is($result->{status}, 0, "hdiff @args") or diag($result->{err});
	return $result->{out} ? decode_json($result->{out}) : {};
}

# Returns true for allocations that are not address space.
sub is_used { return $_->{heap} ne 2 }

sub use_at {
	my ($replay, $at) = @_;
	return $replay->state($at, [], \&is_used)->{''}{bytes} // 0;
}

sub position_of {
	my ($replay, $moment) = @_;
	my ($mark) = grep { $_->{label} eq $moment } @{ $replay->marks };
	return $mark->{position} if $mark;
	return $replay->{start} if $moment eq 'start';
	return $replay->events if $moment eq 'end';
	return $replay->peak(\&is_used)->{position} if $moment eq 'peak';
	return $replay->position($moment =~ /^(\d+)ms$/ ? $1 : $moment =~ /^(\d+)s$/ ? 1000 * $1
	    : $moment =~ /^(\d+)%$/ ? $replay->{length} * $1 / 100 : die "no moment: $moment\n");
}

sub live_at {
	my ($replay, $moment) = @_;
	return [$replay->live(position_of($replay, $moment))];
}

sub fate_of {
	my ($replay, $class, $from, $to) = @_;
	return [$replay->fate($class, map { position_of($replay, $_) } $from, $to)];
}

# Sums blocks: stack -> [BYTES, COUNT]. Leaves out address space unless heaps are given.
sub by_stack {
	my ($blocks, @heaps) = @_;
	my %wanted = map { $_ => 1 } @heaps;
	return sums(['stack'], grep { @heaps ? $wanted{ $_->{heap} } : is_used() } @$blocks);
}

# Sums blocks, including address space: "HEAP STACK" -> [BYTES, COUNT].
sub by_heap { return sums(['heap', 'stack'], @{ $_[0] }) }

sub sums {
	my $sums = Replay::sums(@_);
	return { map { $_ => [@{ $sums->{$_} }{qw(bytes count)}] } keys %$sums };
}

# Writes a dump of such blocks without hsnap, one entry for each block, like a snapshot at that
# time.
sub dump_of {
	my ($replay, $blocks, $ms) = @_;
	my ($modules, $spare) = ($replay->{modules}, 0x7FFA00000000);
	my (%ids, %base, %taken, $addr);
	my $text = "// hsnap: dump format=1 tool=test time=" . date($replay->{wall_ms} + $ms)
	    . "\n// hsnap: process id=$replay->{pid} start=" . date($replay->{start_ms}) . " image=\"app.exe\"\n"
	    . "// Loaded modules: \n//     Base Size Module\n";
	my $notes = '';
	# If two modules are at one place, one of them is moved.
	for my $name (sort { $b cmp $a } keys %$modules) {
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
