# Dumps of a synthetic process at several times, whose stacks have sums that a test chooses.
#
#   my @files = series($dir, [T0_MS, T1_MS, ...], { NAME => [BYTES at each time], ... }, %how);
#
# Each BYTES is a number, or [BYTES, BLOCKS]; 0 leaves the stack out. A stack NAME is two frames
# "app!NAME", with a name in the dumps that may be any bytes, and "app+FFF". %how: pid, start (ms),
# parent (pid), image, host, slide (of the modules), timestamp (their build), name (pattern of the
# files, with %d for their number), full (one line per block instead of one per stack), no_time,
# no_start.
package Series;
use strict;
use warnings;
no warnings 'portable';  # addresses have 64 bits
use Exporter qw(import);
use POSIX qw(strftime);
use Hunt;

our @EXPORT = qw(series series_dump iso);

sub iso {
	my ($ms) = @_;
	return strftime('%Y-%m-%dT%H:%M:%S', gmtime int $ms / 1000) . sprintf '.%03dZ', $ms % 1000;
}

sub series {
	my ($dir, $times, $stacks, %how) = @_;
	my @files;
	for my $i (0 .. $#$times) {
		my %sums = map { $_ => $stacks->{$_}[$i] } keys %$stacks;
		push @files, spew("$dir/" . sprintf($how{name} // 'made-%03d.txt', $i), series_dump($times->[$i], \%sums, %how));
	}
	return @files;
}

# Returns the text of one dump. A stack's place depends only on its name.
sub series_dump {
	my ($time, $sums, %how) = @_;
	my ($pid, $start, $slide) = ($how{pid} // 4242, $how{start} // 1763632800000, $how{slide} // 0);
	my ($base, $heap) = (0x140000000 + $slide, 0x650000);
	my $text = '// hsnap: dump format=1 tool=0.1.0' . ($how{no_time} ? '' : ' time=' . iso($time)) . "\r\n"
	    . "// hsnap: process id=$pid" . ($how{no_start} ? '' : ' start=' . iso($start)) . ' bits=64' . ($how{parent} ? " parent=$how{parent}" : '') . ' image="'
	    . ($how{image} // 'C:\\\\app\\\\app.exe') . '"' . (defined $how{host} ? ' host=' . quoted($how{host}) : '')
	    . "\r\n// hsnap: stacks source=tracer\r\n"
	    . sprintf("//\r\n// Loaded modules:\r\n//     Base Size Module\r\n//    %16X %8X C:\\app\\app.exe\r\n",
		$base, 0x1000000)
	    . sprintf("// hsnap: module base=%X timestamp=%08X checksum=0\r\n", $base, $how{timestamp} // 7)
	    . "//\r\n// Process modules enumerated.\r\n"
	    . sprintf("// hsnap: heap addr=%X kind=wine bits=64 committed=65536 reserved=65536\r\n", $heap)
	    . sprintf("*- - - - - - - - - - Start of data for heap @ %X - - - - - - - - - -\r\n", $heap)
	    . sprintf("*- - - - - - - - - - Heap %X Hogs - - - - - - - - - -\r\n\r\n", $heap);
	my ($blocks, $bytes, $at, %place) = (0, 0, 0x660000);
	for my $name (sort keys %$sums) {
		my ($of, $count) = ref $sums->{$name} ? @{ $sums->{$name} } : ($sums->{$name}, $sums->{$name} ? 1 : 0);
		next unless $count;
		my $place = $place{$name} = $base + 0x1000 + offset_of($name);
		my $frames = sprintf "\t%X\r\n\t%X\r\n\r\n", $place, $base + 0xfff;
		my $id = sprintf '%X', offset_of($name) + 1;
		if ($how{full}) {
			for my $i (0 .. $count - 1) {
				my $part = int($of / $count) + ($i < $of % $count);
				$text .= sprintf "%X bytes + 8 at %X by BackTrace%s\r\n%s", $part, $at += 0x100000, $id, $i ? "\r\n" : $frames;
			}
		} else {
			$text .= sprintf "%X bytes in 0x%X allocations (@ 0x%X + 0x8) by: BackTrace%s\r\n%s", $of, $count, $of / $count,
			    $id, $frames;
		}
		$blocks += $count;
		$bytes += $of;
	}
	$text .= sprintf "*- - - - - - - - - - End of data for heap @ %X - - - - - - - - - -\r\n", $heap;
	$text .= sprintf "// hsnap: name addr=%X function=%s offset=1\r\n", $place{$_}, quoted($_) for sort keys %place;
	$text .= sprintf "// hsnap: end blocks=%d requested=%d overhead=%d\r\n", $blocks, $bytes, 8 * $blocks;
	return $text;
}

# Quotes a value as the notes of a dump do: man/hdump.5.
sub quoted {
	my ($bytes) = @_;
	return $bytes if $bytes =~ /\A\w+\z/a;
	$bytes =~ s/(["\\])/\\$1/g;
	$bytes =~ s/([\x00-\x1f\x7f-\xff])/sprintf '\\x%02X', ord $1/ge;
	return qq("$bytes");
}

# Returns an offset in the module that is computed from a name: a hash that is the same on every
# machine.
sub offset_of {
	my ($name) = @_;
	my $hash = 0x811c9dc5;
	$hash = ($hash ^ ord) * 0x01000193 & 0xffffffff for split //, $name;
	return 0x10 * ($hash % 0x80000);
}

1;
