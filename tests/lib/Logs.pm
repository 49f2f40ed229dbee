# ETW logs, written event by event, so that a test controls their content. The layouts are those of
# man/hdiff-etw.7.
package Logs;

use strict;
use warnings;

our $FREQUENCY = 10_000_000;
our $START = 133_000_000_000_000_000; # in units of FILETIME
our $T0 = 1_000_000; # in ticks

my %guids = (
    memory  => pack('VvvC8', 0x3d6fa8d3, 0xfe05, 0x11d0, 0x9d, 0xda, 0, 0xc0, 0x4f, 0xd7, 0xba, 0x7c),
    heap    => pack('VvvC8', 0x222962ab, 0x6180, 0x4b88, 0xa8, 0x25, 0x34, 0x6b, 0x75, 0xf2, 0xa2, 0x4a),
    stack   => pack('VvvC8', 0xdef2fe46, 0x7bd6, 0x4b80, 0xbd, 0x94, 0xf5, 0x7f, 0xe2, 0x0d, 0x0c, 0xe3),
    ids     => pack('VvvC8', 0xb3e675d7, 0x2554, 0x4f18, 0x83, 0x0b, 0x27, 0x62, 0x73, 0x25, 0x60, 0xde),
    paths   => pack('VvvC8', 0x9b79ee91, 0xb5fd, 0x41c0, 0xa2, 0x43, 0x42, 0x48, 0xe2, 0x66, 0xe9, 0xd0),
    wpr     => pack('VvvC8', 0x901d2afa, 0x4ff6, 0x46d7, 0x8d, 0x0e, 0x53, 0x64, 0x5e, 0x1a, 0x47, 0xf5),
);
my %groups = (memory => 2, process => 3, thread => 5, heap => 0x10, image => 0x14, stack => 0x18);

# Makes a log. Options: bits (64), clock (1), old (heads as in Windows 7), lost => [events,
# buffers], freq.
sub new {
    my ($class, %options) = @_;
    my $self = bless {bits => 64, clock => 1, lost => [0, 0], %options, cpus => {}, tick => 0}, $class;

    return $self;
}

sub pointer { my ($self, $value) = @_; return pack($self->{bits} == 64 ? 'Q<' : 'V', $value) }
sub wide { my ($text) = @_; return join('', map { pack('v', ord) } split //, $text) . "\0\0" }

# Converts ms since the log's start to ticks.
sub ticks { my ($ms) = @_; return $T0 + int($ms * $FREQUENCY / 1000 + 0.5) }

# Adds an event: at (ms), group or guid, type, version, payload; cpu, pid, tid; bits, if different
# from the log's; header system, compact, perfinfo, full or instance.
sub event {
    my ($self, %e) = @_;
    my $wide = ($e{bits} // $self->{bits}) == 64 ? 1 : 0;
    my $header = $e{header} // ($guids{$e{of}} && !$groups{$e{of}} ? 'full' : 'system');
    my ($pid, $tid) = ($e{pid} // 4321, $e{tid} // 1);
    my $time = $e{ticks} // ticks($e{at});
    my ($type, $version, $group) = ($e{type}, $e{version} // 2, $groups{$e{of}} // 0);
    my $bytes;

    if ($header eq 'system') {
        $bytes = pack('vCCvCCVVQ<QQ', $version, 1 + $wide, 0xc0, 32 + length $e{payload}, $type, $group, $tid, $pid,
            $time, 0, 0);
        $bytes = substr($bytes, 0, 24) . pack('VV', 0, 0);
    } elsif ($header eq 'compact') {
        $bytes = pack('vCCvCCVVQ<', $version, 3 + $wide, 0xc0, 24 + length $e{payload}, $type, $group, $tid, $pid, $time);
    } elsif ($header eq 'perfinfo') {
        $bytes = pack('vCCvCCQ<', $version, 16 + $wide, 0xc0, 16 + length $e{payload}, $type, $group, $time);
    } else {
        my $size = $header eq 'full' ? 48 : 72;
        my $kind = $header eq 'full' ? ($wide ? 20 : 10) : ($wide ? 21 : 11);

        $bytes = pack('vCCCCvVVQ<', $size + length $e{payload}, $kind, 0xc0, $type, 0, $version, $tid, $pid, $time)
            . $guids{$e{of}};
        $bytes .= "\0" x ($size - length $bytes);
    }
    $bytes .= $e{payload};
    $bytes .= "\0" x (-length($bytes) % 8);
    push @{$self->{cpus}{$e{cpu} // 0}}, [$time, $bytes];
    return $time;
}

sub stack {
    my ($self, %s) = @_;
    my $frames = join '', map { $self->pointer($_) } @{$s{frames}};

    $self->event(of => 'stack', type => 32, at => $s{at}, cpu => $s{cpu}, pid => 0xffffffff, tid => 0xffffffff,
        header => $s{header} // 'perfinfo',
        payload => pack('Q<VV', $s{ticks} // ticks($s{for} // $s{at}), $s{pid} // 4321, $s{tid} // 1) . $frames);
}

# Adds a key in place of frames. part: 37 (kernel) or 38 (user).
sub key {
    my ($self, %s) = @_;

    $self->event(of => 'stack', type => $s{part} // 38, at => $s{at}, cpu => $s{cpu}, header => 'perfinfo',
        payload => pack('Q<VV', ticks($s{for} // $s{at}), $s{pid} // 4321, $s{tid} // 1) . $self->pointer($s{key}));
}

sub define_key {
    my ($self, %s) = @_;

    $self->event(of => 'stack', type => $s{type} // 36, at => $s{at}, cpu => $s{cpu}, header => 'perfinfo',
        payload => $self->pointer($s{key}) . join '', map { $self->pointer($_) } @{$s{frames}});
}

sub alloc {
    my ($self, %b) = @_;

    $self->event(of => 'heap', type => 33, %b,
        payload => join('', map { $self->pointer($_) } $b{heap} // 0x10000, $b{bytes}, $b{addr}) . pack('V', 3));
    $self->stack(at => $b{at}, ticks => $b{ticks}, tid => $b{tid}, pid => $b{pid}, cpu => $b{cpu}, frames => $b{frames})
        if $b{frames};
}

sub free {
    my ($self, %b) = @_;

    $self->event(of => 'heap', type => 36, %b,
        payload => join('', map { $self->pointer($_) } $b{heap} // 0x10000, $b{addr}) . pack('V', 3));
}

sub realloc {
    my ($self, %b) = @_;

    $self->event(of => 'heap', type => 34, %b,
        payload => join('', map { $self->pointer($_) } $b{heap} // 0x10000, $b{addr}, $b{old}, $b{bytes}, $b{old_bytes} // 0)
            . pack('V', 3));
    $self->stack(at => $b{at}, tid => $b{tid}, frames => $b{frames}) if $b{frames};
}

sub heap_event {
    my ($self, $type, %b) = @_;

    $self->event(of => 'heap', type => $type, %b, payload => $self->pointer($b{heap} // 0x10000)
            . ($type == 32 ? pack('V', 0) : ''));
}

# Adds an event of virtual memory. flags: 0x1000 commit, 0x2000 reserve, 0x4000 decommit, 0x8000
# release.
sub pages {
    my ($self, %p) = @_;

    $self->event(of => 'memory', type => $p{flags} & 0xc000 ? 99 : 98, header => 'perfinfo', %p,
        payload => $self->pointer($p{addr}) . $self->pointer($p{bytes}) . pack('VV', $p{owner} // 4321, $p{flags}));
    $self->stack(at => $p{at}, tid => $p{tid}, cpu => $p{cpu}, frames => $p{frames}) if $p{frames};
}

# Adds an event of an image. type: 2 unloaded, 3 loaded before the start, 4 still loaded at the end,
# 10 loaded.
sub image {
    my ($self, %i) = @_;

    $self->event(of => $i{type} == 10 ? 'process' : 'image', type => $i{type}, at => $i{at}, cpu => $i{cpu},
        payload => $self->pointer($i{base}) . $self->pointer($i{bytes}) . pack('V5', $i{pid} // 4321, $i{checksum} // 0,
            $i{timestamp} // 0, 0, 0)
            . substr($self->pointer($i{base}) . "\0" x 16, 0, $self->{bits} / 8 + 12) . wide($i{path}));
}

sub identity {
    my ($self, %i) = @_;

    $self->event(of => 'ids', type => 0, at => $i{at}, payload => $self->pointer($i{base}) . $self->pointer($i{bytes})
            . pack('VV', $i{pid} // 4321, $i{timestamp}) . wide($i{name}));
    $self->event(of => 'ids', type => 36, at => $i{at}, payload => $self->pointer($i{base}) . pack('V', $i{pid} // 4321)
            . $i{guid} . pack('V', $i{age}) . "$i{pdb}\0");
}

sub volume {
    my ($self, $at, $nt, $dos) = @_;

    $self->event(of => 'paths', type => 35, at => $at, payload => wide($nt) . wide($dos));
}

# Adds an event of a process. type: 1 start, 2 end, 3 running before the start.
sub process {
    my ($self, %p) = @_;

    $self->event(of => 'process', type => $p{type}, version => 4, at => $p{at}, cpu => $p{cpu},
        payload => $self->pointer(0) . pack('VVVV', $p{pid} // 4321, $p{parent} // 1, 0, 0) . $self->pointer(0)
            . pack('V', $p{flags} // 0) . pack('V', 0) . "$p{image}\0" . wide($p{command} // $p{image}) . "\0\0\0\0");
}

sub head {
    my ($self) = @_;
    my $wide = $self->{bits} == 64;
    my $payload = pack('VCCCCVVQ<VVVVVVVV', 65536, 10, 0, 5, 1, 19045, 2, $START + 1_000_000_000, 156250, 0, 1, 10, 1,
        $self->{bits} / 8, $self->{lost}[0], 3000);

    $payload .= "\0" x ($wide ? 16 : 8) . "\0" x 176;
    $payload .= pack('Q<Q<Q<VV', $START - 50_000_000_000, $self->{freq} // $FREQUENCY, $START, $self->{clock}, $self->{lost}[1]);
    $payload .= wide('made') . wide('made.etl');
    return pack('vCCvCCVVQ<', 2, $wide ? 2 : 1, 0xc0, 32 + length $payload, 0, 0, 1, 4, $T0) . "\0" x 8 . $payload;
}

sub buffer {
    my ($self, $events, %b) = @_;
    my $used = 72 + length $events;
    my $cpu = $b{cpu} // 0;
    my $is_packed = $self->{pack} && ($b{type} // 0) != 4;

    $events = pack_bytes($self->{pack}, $events) if $is_packed;
    my $bytes = pack('VVVVQ<Q<Q<', $b{bytes} // (72 + length($events) + 7 & ~7), $self->{old} && ($b{type} // 0) == 4 ? 0 : $used, $used, 0,
        $START, $b{sequence} // 0, 0);

    $bytes .= $self->{old} ? pack('CCvV', $cpu, 8, 0, $b{packing} // 0) : pack('vvV', $cpu, 1, $b{packing} // 0);
    $bytes .= pack('Vvv', $used, ($self->{old} ? 0 : 0x20) | ($b{flags} // 0) | ($is_packed ? 0x40 : 0), $b{type} // 0) . "\0" x 16;
    return $bytes . $events . "\0" x (-length($events) % 8);
}

# Packs bytes without really compressing them, except for a few matches. 2 LZNT1, 3 Xpress, 4 Xpress
# Huffman.
sub pack_bytes {
    my ($how, $bytes) = @_;

    return join('', map { pack('v', 0x3000 | length($_) - 1) . $_ } unpack('(a4096)*', $bytes)) if $how == 2;
    if ($how == 4) { # each byte gets an 8-bit code that equals the byte
        return join '', map {
            # Words of 16 bits, the first byte on top.
            my @words = unpack('n*', $_ . "\0" x (length($_) % 2));
            "\x88" x 128 . "\0" x 128 . pack('v*', @words, (0) x (@words < 2 ? 2 - @words : 0), 0)
        } unpack('(a65536)*', $bytes);
    }
    my ($out, $at, $flags, $count, $items) = ('', 0, 0, 0, '');

    while ($at < length $bytes) {
        my ($len) = $at && substr($bytes, $at, 9) =~ /^((.)\2{2,8})/s ? length $1 : 0;
        my $is_match = $len >= 3 && substr($bytes, $at - 1, 1) eq substr($bytes, $at, 1);

        $len = 1 if !$is_match;
        $items .= $is_match ? pack('v', $len - 3) : substr($bytes, $at, 1);
        $flags = $flags << 1 | ($is_match ? 1 : 0);
        $at += $len;
        if (++$count == 32) {
            $out .= pack('V', $flags) . $items;
            ($flags, $count, $items) = (0, 0, '');
        }
    }
    return $out . pack('V', $flags << (32 - $count) | (1 << (32 - $count)) - 1) . $items if $count;
    return $out;
}

# Returns the log's bytes, with `each` events per buffer. The processors' buffers take turns. Later
# buffers may come first.
sub bytes {
    my ($self, %b) = @_;
    my $each = $b{each} // 100;
    my (@buffers, $sequence);

    for my $cpu (sort { $a <=> $b } keys %{$self->{cpus}}) {
        my @events = map { $_->[1] } sort { $a->[0] <=> $b->[0] } @{$self->{cpus}{$cpu}};

        while (my @some = splice @events, 0, $each) {
            push @buffers, $self->buffer(join('', @some), cpu => $cpu, sequence => ++$sequence, flags => $b{flags});
        }
    }
    @buffers = reverse @buffers if $b{reverse};
    splice @buffers, $b{lose}, 1 if defined $b{lose};
    return join '', $b{into} // $self->buffer($self->head, type => 4, packing => $self->{pack}), @buffers;
}

sub write {
    my ($self, $path, %b) = @_;

    open my $to, '>:raw', $path or die "$path: $!";
    print $to $self->bytes(%b);
    close $to or die "$path: $!";
    return $path;
}

1;
