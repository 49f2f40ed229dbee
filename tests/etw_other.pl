#!/usr/bin/perl
# Makes test logs: copies a real 64-bit Windows ETW log and appends buffers with the heap events of
# an invented process. Prints, as JSON, the live blocks at five moments, by allocation stack.
# Usage: perl etw_other.pl REAL.etl SEED OUT.etl [cut|lost|garbage] > truth.json
use strict;
use warnings;
no warnings 'portable';	# addresses have 64 bits
use JSON::PP;
use List::Util qw(min shuffle);

# PID is odd, unlike any real pid. HEADER: bytes of a buffer's header; SLOT: distance between a
# heap's blocks.
use constant { PID => 4321, CPU_ALLOC => 50, CPU_FREE => 51, HEADER => 72, SLOT => 0x4000 };

die "usage: $0 REAL.etl SEED OUT.etl [cut|lost|garbage]\n" if @ARGV < 3 || @ARGV > 4;
my ($real_name, $seed, $out_name, $damage) = @ARGV;
die "SEED must be a number\n" unless $seed =~ /^\d+$/;
$damage //= '';
die "unknown damage '$damage'\n" unless $damage =~ /^(?:|cut|lost|garbage)$/;
srand($seed);

# The real log, and its header event.
open(my $in, '<:raw', $real_name) or die "$real_name: $!\n";
my $real = do { local $/; <$in> };
die "$real_name: too short\n" if length($real) < HEADER + 32 + 280;
die "$real_name: no 64-bit log header\n" unless substr($real, HEADER + 2, 2) =~ /^\x02[\xC0-\xFF]/;
my $t0 = unpack('Q<', substr($real, HEADER + 16, 8));
my $head = substr($real, HEADER + 32);
my $buffer_size = unpack('L<', $head);
my ($freq, $start, $clock) = unpack('Q<Q<L<', substr($head, 256, 20));
die "$real_name: not 64-bit, clock not QPC, or odd buffer size\n" unless unpack('L<', substr($head, 44, 4)) == 8
	&& $clock == 1 && $freq >= 1_000_000 && $buffer_size >= 4096 && $buffer_size <= 1 << 24;

# Times are stored in microseconds from t0; the log has ticks.
my $now = 50_000 + int(rand(50_000));
sub ticks { return $t0 + int($_[0] * $freq / 1_000_000) }
sub dice { return int(rand($_[0])) }
sub pick { return $_[dice(scalar @_)] }

# Buffers of each processor. The last buffer of each list is still being filled.
my %stream = (CPU_ALLOC, [], CPU_FREE, []);
# Adds an event's bytes. $of is the time from which events are wrong if these bytes are lost: the
# time of the event itself, or of the event to which a stack belongs. $of never falls, so the value
# for a buffer's first bytes is its earliest.
sub add {
	my ($cpu, $time, $of, $bytes) = @_;
	$bytes .= "\0" x (-length($bytes) % 8);
	my $list = $stream{$cpu};
	if (!@$list || HEADER + length($list->[-1]{data}) + length($bytes) > $list->[-1]{limit}) {
		my $limit = min($buffer_size, 1500 + int(rand() ** 2 * 16000));
		push @$list, { cpu => $cpu, data => '', limit => $limit, first => $of };
	}
	$list->[-1]{data} .= $bytes;
	$list->[-1]{last} = $time;
}
# Adds an event with a 64-bit system header.
sub event {
	my ($cpu, $group, $kind, $version, $thread, $process, $payload) = @_;
	add($cpu, $now, $now, pack('S<CCS<CCL<L<Q<Q<', $version, 2, 0xC0, 32 + length($payload),
		$kind, $group, $thread, $process, ticks($now), 0) . $payload);
}
# Adds the full stack of the previous event, a moment later, with a perfinfo header.
sub stack_event {
	my ($cpu, $thread, $stack) = @_;
	my $time = $now + dice(4);
	my $payload = pack('Q<L<L<Q<*', ticks($now), PID, $thread, @{$stack->{frames}});
	add($cpu, $time, $now, pack('S<CCS<CCQ<', 2, 17, 0xC0, 16 + length($payload),
		32, 0x18, ticks($time)) . $payload);
}

sub utf16 { return pack('S<*', unpack('C*', $_[0]), 0) }
# Lets time pass: at least 10 microseconds, rarely little, at most 25 ms.
sub pass { $now += 10 + int(rand() ** 2 * 25_000) }

# Adds the rundown of the process and then of its two modules. Another process makes the rundown, as
# in real logs.
my @modules = (
	{ name => 'app', file => 'app.exe', base => 0x7FF6_0000_0000 + dice(0xFFFF) * 0x10000 },
	{ name => 'other', file => 'other.dll', base => 0x7FFA_0000_0000 + dice(0xFFFF) * 0x10000 },
);
my $sid = pack('L<', 0);
# Adds a pair of pointer size and then S-1-5-18 or a longer SID, or no SID at all.
my $parts = dice(3);
$sid = pack('Q<Q<CCx5CL<*', 0xFFFF_A000_1234_5670, 0, 1, $parts, 5, (18) x $parts) if $parts;
event(CPU_ALLOC, 3, 3, 4, 891, 889, pack('Q<L<L<L<l<Q<L<', 0xFFFF_FA80_0123_4080, PID, 889, 1,
	259, 0x1234_5000, 0) . $sid . "app.exe\0" . utf16('"C:\app\app.exe" -x') . utf16('') . utf16(''));
for my $m (@modules) {
	pass();
	$m->{size} = (0x10 + dice(0xF0)) * 0x1000;
	event(CPU_ALLOC, 0x14, 3, 2, 891, 889, pack('Q<Q<L<L<L<L<Q<L<4', $m->{base}, $m->{size}, PID,
		0x1000 + dice(0xFFFF), 0, 0, $m->{base}, 0, 0, 0, 0)
		. utf16("\\Device\\HarddiskVolume1\\app\\$m->{file}"));
}

# The stacks: random places in the two modules, innermost first.
my (@stacks, %known);
while (@stacks < 20) {
	my (@frames, @names);
	for (1 .. 3 + dice(6)) {
		my $m = pick(@modules);
		my $offset = 1 + dice($m->{size} - 1);
		push @frames, $m->{base} + $offset;
		push @names, sprintf('%s+%X', $m->{name}, $offset);
	}
	push @stacks, { frames => \@frames, row => "@names" } unless $known{"@names"}++;
}

# The model: heaps, and all live blocks in one list.
my @heaps = map { { handle => 0x1_0000_0000 * (2 + $_) + 0x10000 * dice(64) } } 0 .. 1 + dice(2);
my ($count, @blocks) = (0);
sub heap_event {
	my ($cpu, $kind, $version, $thread, $payload) = @_;
	pass();
	event($cpu, 0x10, $kind, $version, $thread, PID, $payload);
	$count++;
}
sub create {
	my ($heap) = @_;
	@$heap{qw(alive next free)} = (1, 0, []);
	heap_event(CPU_ALLOC, 32, 3, 4323, pack('Q<L<Q<Q<Q<', $heap->{handle}, 2, 0x100000, 0x2000, 0));
}
# Returns a new block's address: often one that was freed before, otherwise the next fresh one.
sub alloc {
	my ($heap, $thread, $stack) = @_;
	my @free = @{$heap->{free}};
	my $address = @free && rand() < 0.7 ? splice(@{$heap->{free}}, dice(scalar @free), 1)
		: $heap->{handle} + 0x10760 + SLOT * $heap->{next}++;
	my $block = { heap => $heap, address => $address, size => 1 + int(rand() ** 3 * 0x3000), stack => $stack };
	heap_event(CPU_ALLOC, 33, 2, $thread, pack('Q<Q<Q<L<', $heap->{handle}, $block->{size}, $address, 1 + dice(6)));
	stack_event(CPU_ALLOC, $thread, $stack);
	push @blocks, $block;
	return $block;
}
sub release {
	my ($cpu, $thread, $block) = @_;
	@blocks = grep { $_ != $block } @blocks;
	push @{$block->{heap}{free}}, $block->{address};
	heap_event($cpu, 36, 2, $thread, pack('Q<Q<L<', $block->{heap}{handle}, $block->{address}, 1 + dice(6)));
}
sub realloc_event {
	my ($thread, $block, $old_address, $old_size) = @_;
	heap_event(CPU_ALLOC, 34, 2, $thread, pack('Q<5L<', $block->{heap}{handle}, $block->{address},
		$old_address, $block->{size}, $old_size, 1 + dice(6)));
	stack_event(CPU_ALLOC, $thread, $block->{stack});
}
# Records the live blocks by stack. More than 5 quiet ms precede and follow the moment.
my @moments;
sub moment {
	my %rows;
	for my $b (@blocks) {
		$rows{$b->{stack}{row}}[0] += $b->{size};
		$rows{$b->{stack}{row}}[1]++;
	}
	my $ms = int($now / 1000) + 7 + dice(4);
	push @moments, { ms => $ms, rows => \%rows };
	$now = $ms * 1000 + 6000 + dice(3000);
}
my $target = 310 + dice(280);
my @due = map { int($target * ($_ - 0.9 * rand()) / 5) } 1 .. 5;
$now += 100_000;
create($_) for @heaps;
while ($count < $target) {
	my ($what, $thread, $stack) = (rand(), pick(4323, 4325), pick(@stacks));
	if ($what < 0.5 || !@blocks) {
		my $heap = pick(@heaps);
		create($heap) unless $heap->{alive};
		alloc($heap, $thread, $stack);
	} elsif ($what < 0.76) {
		release(rand() < 0.8 ? (CPU_FREE, 4327) : (CPU_ALLOC, $thread), pick(@blocks));
	} elsif ($what < 0.89) {
		my $block = pick(@blocks);
		(my $old, @$block{qw(size stack)}) = ($block->{size}, 1 + dice(0x3000), $stack);
		realloc_event($thread, $block, $block->{address}, $old);
	} elsif ($what < 0.99) {
		# Moves a block: allocates a new block, frees the old one, then reports the realloc.
		my $old = pick(@blocks);
		my $new = alloc($old->{heap}, $thread, $stack);
		release(CPU_ALLOC, $thread, $old);
		realloc_event($thread, $new, $old->{address}, $old->{size});
	} elsif (my @candidates = grep { $_->{alive} } @heaps[1 .. $#heaps]) {
		my $heap = pick(@candidates);
		@blocks = grep { $_->{heap} != $heap } @blocks;
		$heap->{alive} = 0;
		heap_event(CPU_FREE, 35, 2, 4327, pack('Q<', $heap->{handle}));
	}
	moment(), shift @due while @due && $count >= $due[0];
}
moment() while @moments < 5;
die "events take too long: $now\n" if $now > 10_000_000;

# Sequence numbers rise with time and have gaps. The buffers' order in the file differs.
my $sequence = 100_000;
my @buffers = sort { $a->{last} <=> $b->{last} } map { @$_ } @stream{+CPU_ALLOC, +CPU_FREE};
$_->{sequence} = $sequence += 1 + dice(4) for @buffers;
@buffers = shuffle(@buffers);
if ($damage eq 'garbage') {
	my $bytes = pack('C*', map { dice(256) } 1 .. $buffer_size - HEADER);
	splice(@buffers, dice(@buffers + 1), 0, { cpu => pick(CPU_ALLOC, CPU_FREE), data => $bytes,
		last => $now, sequence => $sequence + 1 });
} elsif ($damage eq 'lost') {
	pick(@buffers)->{flags} = pick(2, 4);
} elsif ($damage eq 'cut') {
	# The buffer that starts last is also the last in the file, so that moments remain.
	@buffers = sort { $a->{first} <=> $b->{first} } @buffers;
	@moments = grep { $_->{ms} * 1000 < $buffers[-1]{first} } @moments;
}
my $out = '';
for my $b (@buffers) {
	my $used = HEADER + length($b->{data});
	$out .= pack('L<4Q<Q<Q<S<S<L<L<S<S<x16', $buffer_size, $used, $used, 0, $start + $b->{last} * 10,
		$b->{sequence}, 0, $b->{cpu}, 0, 3, $used, 0x20 | ($b->{flags} // 0), 0)
		. $b->{data} . "\xFF" x ($buffer_size - $used);
}
if ($damage eq 'cut') {
	substr($out, -$buffer_size + HEADER + 1 + dice(length($buffers[-1]{data}) - 1)) = '';
}
open(my $file, '>:raw', $out_name) or die "$out_name: $!\n";
(print {$file} $real, $out) && close($file) or die "$out_name: $!\n";
print JSON::PP->new->canonical->encode({ pid => PID, moments => \@moments }), "\n";
