# A minidump and the truth beside it. This reader follows only the format's published description,
# and is independent of our reader and our writer.
package Minidump;
use strict;
use warnings;
no warnings 'portable';    # addresses have 64 bits
use Exporter qw(import);

our @EXPORT = qw(dump_of truth_of memory number pointer place_of);

sub bytes_of {
	my ($file) = @_;
	open my $in, '<:raw', $file or die "$file: $!\n";
	local $/;
	return scalar <$in>;
}

sub take {
	my ($dump, $at, $count) = @_;
	die "beyond the file's end: $at + $count\n" if $at + $count > length $dump->{bytes};
	return substr $dump->{bytes}, $at, $count;
}

sub text_at {
	my ($dump, $at) = @_;
	my $count = unpack 'V', take($dump, $at, 4);
	my $text = take($dump, $at + 4, $count);
	return pack 'C*', unpack 'v*', $text;
}

sub modules_of {
	my ($dump) = @_;
	my $at = $dump->{streams}{4}[0];
	my $count = unpack 'V', take($dump, $at, 4);
	for my $i (0 .. $count - 1) {
		my $row = take($dump, $at + 4 + 108 * $i, 108);
		my ($base, $bytes, undef, undef, $name) = unpack 'Q< V4', $row;
		my ($cv_bytes, $cv) = unpack 'V2', substr $row, 76, 8;
		push @{ $dump->{modules} },
		    { base => $base, bytes => $bytes, path => text_at($dump, $name), codeview => take($dump, $cv, $cv_bytes) };
	}
}

sub ranges_of {
	my ($dump) = @_;
	if (my $full = $dump->{streams}{9}) {
		my ($count, $at) = unpack 'Q<2', take($dump, $full->[0], 16);
		my @rows = unpack 'Q<*', take($dump, $full->[0] + 16, 16 * $count);
		while (my ($start, $bytes) = splice @rows, 0, 2) {
			push @{ $dump->{ranges} }, [$start, $bytes, $at];
			$at += $bytes;
		}
		$dump->{memory_end} = $at;
		return;
	}
	my $at = $dump->{streams}{5}[0];
	my $count = unpack 'V', take($dump, $at, 4);
	for my $i (0 .. $count - 1) {
		my ($start, $bytes, $rva) = unpack 'Q< V2', take($dump, $at + 4 + 16 * $i, 16);
		push @{ $dump->{ranges} }, [$start, $bytes, $rva];
		$dump->{memory_end} = $rva + $bytes;
	}
}

sub infos_of {
	my ($dump) = @_;
	my $stream = $dump->{streams}{16} or return;
	my ($head, $entry, $count) = unpack 'V2 Q<', take($dump, $stream->[0], 16);
	for my $i (0 .. $count - 1) {
		my @info = unpack 'Q<2 V2 Q< V4', take($dump, $stream->[0] + $head + $entry * $i, $entry);
		push @{ $dump->{infos} },
		    { base => $info[0], region => $info[1], bytes => $info[4], state => $info[5], protect => $info[6], type => $info[7] };
	}
}

# Reads a minidump: {bytes, streams {type => [rva, bytes]}, modules, ranges [[start, bytes, rva]],
# infos, teb, build}.
sub dump_of {
	my ($file) = @_;
	my $dump = { bytes => bytes_of($file), infos => [] };
	my ($magic, $version, $count, $at) = unpack 'a4 V3', take($dump, 0, 32);
	die "not a minidump\n" if $magic ne 'MDMP' || ($version & 0xffff) != 0xa793;
	for my $i (0 .. $count - 1) {
		my ($type, $bytes, $rva) = unpack 'V3', take($dump, $at + 12 * $i, 12);
		take($dump, $rva, $bytes);
		die "two streams of type $type\n" if $dump->{streams}{$type};
		$dump->{streams}{$type} = [$rva, $bytes];
	}
	($dump->{machine}) = unpack 'v', take($dump, $dump->{streams}{7}[0], 56);
	@{$dump}{qw(major minor build)} = unpack 'V3', substr take($dump, $dump->{streams}{7}[0], 56), 8;
	$dump->{teb} = unpack 'Q<', take($dump, $dump->{streams}{3}[0] + 4 + 16, 8);
	modules_of($dump);
	ranges_of($dump);
	infos_of($dump);
	return $dump;
}

# Returns the file offset of the process's bytes, or undef if the file lacks them.
sub place_of {
	my ($dump, $addr, $count) = @_;
	my ($low, $high) = (0, scalar @{ $dump->{ranges} });
	while ($low < $high) {
		my $middle = int(($low + $high) / 2);
		if ($dump->{ranges}[$middle][0] <= $addr) { $low = $middle + 1 }
		else { $high = $middle }
	}
	return undef if $low == 0;
	my ($start, $bytes, $rva) = @{ $dump->{ranges}[$low - 1] };
	return undef if $addr + $count > $start + $bytes;
	return $rva + $addr - $start;
}

# Returns the process's bytes, or undef if the dump lacks them.
sub memory {
	my ($dump, $addr, $count) = @_;
	my $at = place_of($dump, $addr, $count) // return undef;
	return take($dump, $at, $count);
}

sub number {
	my ($dump, $addr, $count) = @_;
	my $bytes = memory($dump, $addr, $count) // die sprintf "nothing at %X\n", $addr;
	return unpack 'Q<', $bytes . "\0" x (8 - $count);
}

sub pointer { return number($_[0], $_[1], $_[0]{bits} / 8) }

# Reads the truth: {process {}, heaps {addr => kind}, blocks {addr => [heap, requested, overhead,
# stack]},
#  containers [[addr, bytes, [from, end]...]], stacks {number => [id, frames]}, total [blocks, requested, overhead], database []}.
sub truth_of {
	my ($file) = @_;
	my $truth = { modules => [] };
	open my $in, '<', $file or die "$file: $!\n";
	while (my $line = <$in>) {
		chomp $line;
		my ($word, @rest) = split / /, $line;
		if ($word eq 'process') { $truth->{process} = { map { split /=/ } @rest } }
		elsif ($word eq 'module') { push @{ $truth->{modules} }, [hex $rest[0], $rest[1], join ' ', @rest[2 .. $#rest]] }
		elsif ($word eq 'heap') { $truth->{heaps}{ hex $rest[0] } = $rest[1] }
		elsif ($word eq 'heapsize') { $truth->{sizes}{ hex $rest[0] } = "@rest[1, 2]" }
		elsif ($word eq 'container') { push @{ $truth->{containers} }, [hex $rest[2], $rest[3], map { [map { hex } split /-/] } @rest[4 .. $#rest]] }
		elsif ($word eq 'stack') { $truth->{stacks}{ $rest[0] } = [map { hex } @rest[1 .. $#rest]] }
		elsif ($word =~ /^(total|database)$/) { $truth->{$word} = \@rest }
		elsif ($word =~ /^(memory|count)$/) { $truth->{$word}{ $rest[0] } = $rest[1] }
		elsif ($word eq 'handles') { $truth->{handles}{ join ' ', @rest[1 .. $#rest] } = $rest[0] }
		elsif ($word eq 'block') {
			my ($heap, $addr) = map { hex } @rest[0, 1];
			die "two blocks at $rest[1]\n" if $truth->{blocks}{$addr};
			$truth->{blocks}{$addr} = [$heap, @rest[2 .. 4]];
		}
		elsif ($word !~ /64$/) { die "what is '$line'?\n" }
	}
	return $truth;
}

1;
