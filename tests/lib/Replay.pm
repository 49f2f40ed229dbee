# A replay of a program's stated allocations and frees, as simple as possible: the truth for
# recordings and for hdiff's results about them. Each allocation is kept whole, and every question
# is answered by looking at all of them.
#
# The text has one event per line, in the order of time. Words are separated by one blank, numbers
# are decimal, and times are milliseconds that never decrease:
#
#	# a comment; blank lines are ignored too
#	TIME THREAD alloc ID BYTES STACK HEAP
#	TIME THREAD free ID [STACK]
#	TIME THREAD realloc ID NEW-ID BYTES STACK HEAP
#	TIME THREAD destroy HEAP                        frees all blocks left in it
#	TIME THREAD commit ADDR BYTES STACK             also reserve, map
#	TIME THREAD decommit ADDR BYTES [STACK]         also release, unmap
#	TIME THREAD mark LABEL                          the rest of the line
#
# ID, STACK, HEAP and THREAD are any words; an ID is unique among live blocks. A STACK is written
# INNERMOST<-CALLER<-...<-main where its functions matter. ADDR has hexadecimal digits. Ranges of
# one sort of memory (heap, committed, reserved, mapped) do not overlap, and the sorts are
# independent: a range that is reserved and then committed is released in between.
#
# An event is an allocation or a free. A realloc is two events, the free first. A freed range may
# contain parts of ranges: each range, the lowest first, is freed whole, and then its remainder is
# allocated again with its own stack. A destroyed heap is one free per block, the oldest first. A
# mark is not an event.
#
# A position is a number of events: at position 0 nothing has happened. A window is between two
# positions. Its allocations have WPA's classes, by where they were (A)llocated and (F)reed,
# (I)nside the window or (O)utside: aifo, aifi, aofi, aofo. A block that is freed before the window
# or allocated after it is in no class.
package Replay;
use strict;
use warnings;
no warnings 'portable';    # addresses have 64 bits
use List::Util qw(sum0);

# $replay = Replay->new(TEXT)
#	events       number of events
#	allocations  in their order: { id, bytes, stack, heap, memory, alloc, free }; heap is the memory's
#	             name for ranges; alloc and free are { index, time, thread }, free is undef for live blocks,
#	             and has the freeing stack, if the text states it
#	marks        { label, time, position }
# $replay->position(MS)    after the events of that millisecond and before
# $replay->mark(LABEL)     its position
# $replay->live(POSITION, WHERE)          live allocations
# $replay->fate(CLASS, FROM, TO, WHERE)   those of a class in a window; "ai": of aifo and aifi
# $replay->state(POSITION, BY, WHERE)     sums of live allocations: { KEY => { bytes, count } }
# $replay->fates(CLASS, FROM, TO, BY, WHERE)    sums of a class
# $replay->window(FROM, TO, BY, WHERE)
#	{ KEY => { aifo, aifi, aofi, aofo, old, new, size, peak, lifetime } } for each key that has any of the
#	four classes; each value is { bytes, count } except peak and lifetime
#	old, new     live at the window's beginning and end
#	aifi         churn: allocated and freed inside
#	size         allocated inside: aifo and aifi
#	peak         { bytes, position, time }: the most live bytes, and the first position with them
#	lifetime     of aifi: { count, sum, min, max, median } in milliseconds, the mean being sum / count; half of
#	             them lived no longer than the median; undef without aifi
# $replay->peak(WHERE)     { bytes, position, time } of the whole
#
# BY is a list of fields of an allocation, whose values, joined by a blank, are the key: ['stack'],
# ['heap', 'stack'], [] for one sum under ''. WHERE is a function that is called with an allocation
# in $_ and returns true to count it; without WHERE all are counted.

my %sorts = (
	(map { $_ => 'committed' } qw(commit decommit)),
	(map { $_ => 'reserved' } qw(reserve release)),
	(map { $_ => 'mapped' } qw(map unmap)),
);

sub new {
	my ($class, $text) = @_;
	my $self = bless { events => 0, allocations => [], marks => [], times => [], live => {} }, $class;
	my ($number, $last) = (0, 0);
	for my $line (split /\r?\n/, $text) {
		$number++;
		next if $line =~ /^(?:#.*)?$/;
		eval {
			my ($time, $thread, $what, $rest) = $line =~ /^(\d+) (\S+) ([a-z]+) (\S.*)$/ or die "no event\n";
			die "time goes back\n" if $time < $last;
			$self->{now} = { time => $last = $time, thread => $thread };
			$self->take($what, $rest);
			1;
		} or do { chomp(my $why = $@); die "line $number, '$line': $why\n" };
	}
	delete @$self{qw(now live)};
	return $self;
}

sub take {
	my ($self, $what, $rest) = @_;
	if ($what eq 'mark') {
		push @{ $self->{marks} }, { label => $rest, time => $self->{now}{time}, position => $self->{events} };
	} elsif ($what eq 'alloc') {
		my ($id, $bytes, $stack, $heap) = words($rest, qr/(\S+) (\d+) (\S+) (\S+)/);
		$self->allocate('heap', $id, $bytes, $stack, $heap);
	} elsif ($what eq 'free') {
		$self->free('heap', words($rest, qr/(\S+)(?: (\S+))?/));
	} elsif ($what eq 'realloc') {
		my ($id, $new_id, $bytes, $stack, $heap) = words($rest, qr/(\S+) (\S+) (\d+) (\S+) (\S+)/);
		$self->free('heap', $id);
		$self->allocate('heap', $new_id, $bytes, $stack, $heap);
	} elsif ($what eq 'destroy') {
		my ($heap) = words($rest, qr/(\S+)/);
		my @left = grep { $_->{heap} eq $heap } values %{ $self->{live}{heap} };
		$self->free('heap', $_->{id}) for sort { $a->{alloc}{index} <=> $b->{alloc}{index} } @left;
	} elsif ($what =~ /^(?:commit|reserve|map)$/) {
		my ($addr, $bytes, $stack) = words($rest, qr/([0-9A-Fa-f]+) (\d+) (\S+)/);
		$self->add_range($sorts{$what}, hex $addr, $bytes, $stack);
	} elsif ($sorts{$what}) {
		my ($addr, $bytes, $stack) = words($rest, qr/([0-9A-Fa-f]+) (\d+)(?: (\S+))?/);
		$self->cut_ranges($sorts{$what}, hex $addr, hex($addr) + $bytes, $stack);
	} else {
		die "no such event\n";
	}
	return;
}

sub words {
	my ($text, $pattern) = @_;
	my @words = $text =~ /^$pattern$/ or die "its words are others\n";
	return @words;
}

sub next_event {
	my ($self) = @_;
	push @{ $self->{times} }, $self->{now}{time};
	return { index => $self->{events}++, %{ $self->{now} } };
}

sub allocate {
	my ($self, $memory, $id, $bytes, $stack, $heap) = @_;
	die "'$id' lives already\n" if $self->{live}{$memory}{$id};
	my $allocation = {
		id => $id, bytes => $bytes, stack => $stack, heap => $heap, memory => $memory, alloc => $self->next_event,
	};
	push @{ $self->{allocations} }, $allocation;
	return $self->{live}{$memory}{$id} = $allocation;
}

sub free {
	my ($self, $memory, $id, $stack) = @_;
	my $allocation = delete $self->{live}{$memory}{$id} // die "'$id' does not live\n";
	$allocation->{free} = $self->next_event;
	$allocation->{free}{stack} = $stack if defined $stack;
	return;
}

sub add_range {
	my ($self, $memory, $start, $bytes, $stack) = @_;
	die "a range of no bytes\n" if !$bytes;
	for my $other (values %{ $self->{live}{$memory} }) {
		die "it overlaps another one\n" if $start < $other->{start} + $other->{bytes} && $other->{start} < $start + $bytes;
	}
	$self->allocate($memory, sprintf('%X', $start), $bytes, $stack, $memory)->{start} = $start;
	return;
}

sub cut_ranges {
	my ($self, $memory, $from, $to, $by) = @_;
	my $cut = 0;
	for my $range (sort { $a->{start} <=> $b->{start} } values %{ $self->{live}{$memory} }) {
		my ($start, $end, $stack) = ($range->{start}, $range->{start} + $range->{bytes}, $range->{stack});
		next if $start >= $to || $end <= $from;
		$self->free($memory, $range->{id}, $by);
		$self->add_range($memory, $start, $from - $start, $stack) if $start < $from;
		$self->add_range($memory, $to, $end - $to, $stack) if $end > $to;
		$cut += ($end < $to ? $end : $to) - ($start > $from ? $start : $from);
	}
	die "not all of it lives\n" if $cut != $to - $from;
	return;
}

# ---------------------------------------------------------------- questions

sub events { return $_[0]{events} }
sub allocations { return $_[0]{allocations} }
sub marks { return $_[0]{marks} }

sub position {
	my ($self, $ms) = @_;
	return scalar grep { $_ <= $ms } @{ $self->{times} };
}

sub mark {
	my ($self, $label) = @_;
	my ($mark) = grep { $_->{label} eq $label } @{ $self->{marks} };
	return ($mark // die "no mark '$label'\n")->{position};
}

sub chosen {
	my ($self, $where) = @_;
	return grep { !$where || $where->() } @{ $self->{allocations} };
}

sub key_of {
	my ($allocation, $by) = @_;
	return join ' ', map { $allocation->{$_} // die "no field '$_'\n" } @$by;
}

sub lives_at {
	my ($allocation, $position) = @_;
	return $allocation->{alloc}{index} < $position
	    && !($allocation->{free} && $allocation->{free}{index} < $position);
}

sub add {
	my ($sum, $allocation) = @_;
	$sum->{bytes} += $allocation->{bytes};
	$sum->{count}++;
	return;
}

sub sums {
	my ($by, @allocations) = @_;
	my %sums;
	add($sums{ key_of($_, $by) } //= {}, $_) for @allocations;
	return \%sums;
}

sub live {
	my ($self, $position, $where) = @_;
	return grep { lives_at($_, $position) } $self->chosen($where);
}

sub state {
	my ($self, $position, $by, $where) = @_;
	return sums($by, $self->live($position, $where));
}

sub fate {
	my ($self, $class, $from, $to, $where) = @_;
	return grep { (class_of($_, $from, $to) // '') =~ /^$class/ } $self->chosen($where);
}

sub fates {
	my ($self, $class, $from, $to, $by, $where) = @_;
	return sums($by, $self->fate($class, $from, $to, $where));
}

sub class_of {
	my ($allocation, $from, $to) = @_;
	my ($alloc, $free) = map { $_ && $_->{index} } @$allocation{qw(alloc free)};
	return if $alloc >= $to || (defined $free && $free < $from);
	return ($alloc >= $from ? 'ai' : 'ao') . (defined $free && $free < $to ? 'fi' : 'fo');
}

sub window {
	my ($self, $from, $to, $by, $where) = @_;
	my (%rows, %of, %lives);
	for my $allocation ($self->chosen($where)) {
		my $class = class_of($allocation, $from, $to) or next;
		my $key = key_of($allocation, $by);
		push @{ $of{$key} }, $allocation;
		my $row = $rows{$key} //= { map { $_ => { bytes => 0, count => 0 } } qw(aifo aifi aofi aofo old new size) };
		add($row->{$class}, $allocation);
		add($row->{old}, $allocation) if lives_at($allocation, $from);
		add($row->{new}, $allocation) if lives_at($allocation, $to);
		add($row->{size}, $allocation) if $class =~ /^ai/;
		push @{ $lives{$key} }, $allocation->{free}{time} - $allocation->{alloc}{time} if $class eq 'aifi';
	}
	$rows{$_}{peak} = $self->peak_of($from, $to, $of{$_}) for keys %rows;
	$rows{$_}{lifetime} = lifetime(sort { $a <=> $b } @{ $lives{$_} }) for keys %lives;
	return \%rows;
}

sub lifetime {
	my @ms = @_;
	return { count => scalar @ms, sum => sum0(@ms), min => $ms[0], max => $ms[-1], median => $ms[$#ms / 2] };
}

# Returns the highest number of live bytes of some allocations at any position between two
# positions.
sub peak_of {
	my ($self, $from, $to, $allocations) = @_;
	my ($bytes, %change) = (0);
	for my $allocation (@$allocations) {
		my ($alloc, $free) = @$allocation{qw(alloc free)};
		$bytes += $allocation->{bytes} if lives_at($allocation, $from);
		$change{ $alloc->{index} } = $allocation->{bytes};
		$change{ $free->{index} } = -$allocation->{bytes} if $free;
	}
	my $peak = { bytes => $bytes, position => $from, time => $from ? $self->{times}[$from - 1] : 0 };
	for my $index (grep { $_ >= $from && $_ < $to } sort { $a <=> $b } keys %change) {
		$bytes += $change{$index};
		$peak = { bytes => $bytes, position => $index + 1, time => $self->{times}[$index] } if $bytes > $peak->{bytes};
	}
	return $peak;
}

sub peak {
	my ($self, $where) = @_;
	return $self->peak_of(0, $self->{events}, [$self->chosen($where)]);
}

1;
