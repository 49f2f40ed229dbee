#!/usr/bin/perl
# Parts of real heaps of Windows 10 and 11, as crash dumps contain them. hsnap -z and its walkers
# find exactly the blocks that other people read from the dumps, and do not report missing parts as
# damage.
#
# The truth of the back end is a list of its entries. The truth of the LFH is a list of containers,
# and the dump's bytes, which this test reads independently. Both are test data (data_file).
use strict;
use warnings;
no warnings 'portable';    # addresses have 64 bits
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;
use Images;
use Minidump;

my %dumps = ( # each with the counts that the dump's maker published
	'win10-18362-x64_vulkano' => { file => 'win10-18362-x64_vulkano', counted => '47 of 10024, 113 more, 11487 in all' },
	'win11-26100-x64_otclient' => { file => 'win11-26100-x64_otclient', bits => 64, heaps => 2 },
	'win11-26200-x86_redfaction' => { file => 'win11-26200-x86_one-container', bits => 32, heaps => 3 },
);
my ($OWN, $MARKER) = (1, 3); # values of UnusedBytes for Windows' own blocks
my $vectors = data_file('heaps/real-heap-vectors.tsv') // plan(skip_all => 'no words of real heaps here');
my @rows = map { [split /\t/] } split /\n/, slurp($vectors);

for my $image (sort keys %dumps) {
	subtest $image => sub {
		my $given = data_file("heaps/$dumps{$image}{file}.heapmeta.dmp") // plan(skip_all => "$image is not here");
		my $file = fresh_dir() . '/dump.dmp'; # the list of blocks goes into the same folder
		copy($given, $file) or die "$file: $!\n";
		check($image, $file, $dumps{$image}{counted});
		check_one_listed($image, $file) if $dumps{$image}{heaps};
	};
}
done_testing;

sub check {
	my ($image, $file, $counted) = @_;
	my ($truth, $sums) = truth_of_dump($image, memory_of($file));
	is($sums, $counted, 'the truth is as it was counted') if $counted;
	my $walked = walked($file);
	my @wrong = (@{ $walked->{odd} }, Images::differences('block', $truth, $walked->{all}));
	is_deeply(\@wrong, [], 'the walkers find the truth, ' . keys(%$truth) . ' blocks');
	my $dir = fresh_dir();
	my $result = run(tool('hsnap', 'linux', '-z', $file, '-f', "$dir/dump.txt"));
	is($result->{status}, 2, 'hsnap -z: fragments are incomplete, status 2');
	unlike($result->{err}, qr/inconsistent|may be damaged|not walked/, 'nothing is reported as damaged');
	like($result->{err}, qr/warning: \d+ places? in the heaps points? to missing memory; /, 'a warning counts missing memory');
	my $bytes = 0;
	$bytes += (split / /, $_)[1] for values %$truth;
	like(slurp("$dir/dump.txt"), qr{^// hsnap: end blocks=${\ scalar keys %$truth} requested=$bytes }m, 'so many blocks and bytes');
	return $result;
}

# The maker of the dumps listed all heaps in the PEB. In these builds, a real PEB lists one heap
# (facts, A1), and these fragments lack the ring of the others. hsnap finds them by their
# signatures.
sub check_one_listed {
	my ($image, $file) = @_;
	my ($bits, $heaps) = @{ $dumps{$image} }{qw(bits heaps)};
	my $dump = memory_of($file);
	my ($form, $size) = $bits == 64 ? ('Q<', 8) : ('V', 4);
	my $teb = unpack 'Q<', substr $dump->{bytes}, $dump->{streams}{3}[0] + 4 + 16, 8;
	my $peb = unpack $form, memory($dump, $teb + ($bits == 64 ? 0x60 : 0x30), $size);
	substr $dump->{bytes}, place_of($dump, $peb + ($bits == 64 ? 0xe8 : 0x88), 4), 4, pack 'V', 1;
	spew($file, $dump->{bytes});
	my $result = check($image, $file);
	my $found = $heaps == 2 ? '1 unlisted heap was' : $heaps - 1 . ' unlisted heaps were';
	like($result->{err}, qr/warning: $found found by signature, the first at/, 'heaps that are not listed are reported');
	like($result->{err}, qr/warning: the list of heaps could not be followed to its end: /, 'the missing ring is reported');
}

# Reads the memory of a dump that has only lists of memory and modules.
sub memory_of {
	my ($file) = @_;
	my $dump = { bytes => slurp($file) };
	my (undef, undef, $count, $at) = unpack 'a4 V3', $dump->{bytes};
	for my $i (0 .. $count - 1) {
		my ($type, $bytes, $rva) = unpack 'V3', substr $dump->{bytes}, $at + 12 * $i, 12;
		$dump->{streams}{$type} = [$rva, $bytes];
	}
	Minidump::ranges_of($dump);
	return $dump;
}

# Returns { ADDR => "HEAP REQUESTED OVERHEAD" } of the blocks, and their sums.
sub truth_of_dump {
	my ($image, $dump) = @_;
	my (%truth, %is_internal);
	my ($count, $back, $all) = (0, 0, 0);
	for my $row (grep { $_->[0] eq 'entry' && $_->[1] eq $image } @rows) {
		my ($bits, $heap, $addr) = ($row->[2], hex $row->[3], hex $row->[5]);
		my ($size, $flags, $unused) = map { hex $row->[$_] } 7, 8, 11;
		my $user = $addr + ($bits == 64 ? 16 : 8);
		$is_internal{$user} = 1 if $flags & 8;
		next if !($flags & 1) || $flags & 8 || $unused == $OWN || $unused == $MARKER;
		$truth{ sprintf '%X', $user } = sprintf '%X %d %d', $heap, $size - $unused, $unused;
		$count++;
		$back += $size - $unused;
	}
	for my $row (grep { $_->[0] eq 'container' && $_->[1] eq $image } @rows) {
		my ($bits, $heap, $addr) = ($row->[2], hex $row->[3], hex $row->[5]);
		next if !$is_internal{$addr} || !is_described($dump, $bits, $addr);
		my ($blocks, $first, $stride) = map { hex $row->[$_] } 8, 9, 10;
		for my $i (0 .. $blocks - 1) {
			my $entry = $addr + $first + $i * $stride;
			my $header = memory($dump, $entry, $bits == 64 ? 16 : 8) // next;
			my $mark = ord substr $header, -1;
			next if $mark <= 0x80;
			my $unused = $mark & 0x3f;
			$truth{ sprintf '%X', $entry + length $header } = sprintf '%X %d %d', $heap, $stride - $unused, $unused;
			$all += $stride - $unused;
		}
	}
	return (\%truth, sprintf '%d of %d, %d more, %d in all', $count, $back, keys(%truth) - $count, $back + $all);
}

# Checks that a container's subsegment points back to it: _HEAP_USERDATA_HEADER.SubSegment,
# _HEAP_SUBSEGMENT.UserBlocks.
sub is_described {
	my ($dump, $bits, $addr) = @_;
	my ($bytes, $form, $has_at) = $bits == 64 ? (8, 'Q<', 8) : (4, 'V', 4);
	my $subsegment = unpack $form, memory($dump, $addr, $bytes) // return 0;
	my $has = memory($dump, $subsegment + $has_at, $bytes) // return 0;
	return $addr == unpack $form, $has;
}
