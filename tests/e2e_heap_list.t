#!/usr/bin/perl
# The heaps of Windows 11 24H2 and later, in made processes. There the PEB lists the process heap
# only, and a ring leads to the others. hsnap -z finds all heaps, even if the ring is damaged. It
# reports the damage, and each heap that no list contains.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;
use Images;
use Minidump;

my $dir = fresh_dir();
my $fault = qr/warning: the list of heaps could not be followed to its end: /;
my %damage = ( # damage's name in the report, and the number of heaps that it hides from the list
	'ring-cut' => ['unreadable ring of heaps', 1],
	'ring-not-named-back' => ['entry of the ring of heaps that its heap does not point back to', 1],
	'ring-loop' => ['broken ring of heaps', 0],
	'ring-no-head' => ['ring of heaps without its head', 0],
	'ring-stale' => ['entry of the ring of heaps that its heap does not point back to', 0],
	'ring-missing' => ['process heap without a ring of heaps', 2],
);

for my $profile (qw(win11-26100-x64 win11-26100-x86 wow64-26100)) {
	for my $how ([], ['--ust'], [qw(--page-heap full)], [qw(--page-heap light)]) {
		my ($result, $what) = read_heaps($profile, @$how);
		is($result->{status}, 0, "$what: status 0");
		unlike($result->{err}, qr/list of heaps|no list names/, "$what: the ring leads to all heaps");
	}
	for my $break (sort keys %damage) {
		my ($text, $hidden) = @{ $damage{$break} };
		my ($result, $what) = read_heaps($profile, '--break', $break);
		is($result->{status}, 2, "$what: status 2");
		like($result->{err}, qr/$fault$text at [0-9A-F]+; heaps may be missing$/m, "$what: the damage is reported");
		my @unlisted = $result->{err} =~ /warning: (\d+) unlisted heaps? w\w+ found by signature, the first at/;
		is($unlisted[0] // 0, $hidden, "$what: heaps found by signature are reported");
	}
}
earlier_builds();
one_heap();
segment_heaps_of_32_bits();
done_testing;

# Reads an image of three heaps. hsnap must find all blocks of all heaps. Returns hsnap's result and
# the truth.
sub read_heaps {
	my @how = (@_, qw(--heaps 3 --blocks 900));
	my $file = "$dir/a.dmp";
	my $result = make_and_read($file, @how);
	my ($found, $truth) = (found("$file.txt"), truth("$file.truth"));
	is_deeply($found->{heaps}, $truth->{heaps}, "@how: all heaps are found, each once");
	is("$found->{count} $found->{bytes} $found->{overhead}", "$truth->{count} $truth->{bytes} $truth->{overhead}",
		"@how: all blocks are found");
	return ($result, "@how");
}

# Earlier builds list all heaps. There, hsnap finds a hidden heap by its signature.
sub earlier_builds {
	for my $profile (qw(win7-x86 win7-x64 win10-x86 win10-x64 win11-x64)) {
		for my $how ([], ['--segment']) {
			next if @$how && $profile =~ /^win7/;
			my $file = "$dir/a.dmp";
			make_image($file, $profile, @$how, qw(--heaps 3 --blocks 900)) or next;
			list_one_heap($file, $profile =~ /x86/ ? 32 : 64);
			my $result = run(tool('hsnap', 'linux', '-z', $file, '-f', "$file.txt"));
			my ($found, $truth) = (found("$file.txt"), truth("$file.truth"));
			is($result->{status}, 0, "$profile @$how: status 0");
			is($found->{count}, $truth->{count}, "$profile @$how: all blocks are found");
			like($result->{err}, qr/warning: 2 unlisted heaps were found/, "$profile @$how: heaps that are not listed are reported");
		}
	}
	return;
}

# Sets the PEB's count of heaps to one.
sub list_one_heap {
	my ($file, $bits) = @_;
	my $dump = dump_of($file);
	my $peb = number($dump, $dump->{teb} + ($bits == 64 ? 0x60 : 0x30), $bits / 8);
	substr $dump->{bytes}, place_of($dump, $peb + ($bits == 64 ? 0xe8 : 0x88), 4), 4, pack 'V', 1;
	spew($file, $dump->{bytes});
	return;
}

# A ring that has only one heap and the head is valid.
sub one_heap {
	my $file = "$dir/a.dmp";
	my $result = make_and_read($file, qw(win11-26100-x64 --heaps 1 --blocks 300));
	is($result->{status}, 0, 'one heap: status 0');
	is(found("$file.txt")->{count}, truth("$file.truth")->{count}, 'one heap: all blocks are found');
	return;
}

# No layout of 32-bit segment heaps is known. hsnap refuses them with one message, and lists the
# other heaps' blocks.
sub segment_heaps_of_32_bits {
	my $file = "$dir/a.dmp";
	my $result = make_and_read($file, qw(win11-26100-x86 --segment --heaps 4 --blocks 900));
	my ($found, $truth) = (found("$file.txt"), truth("$file.truth"));
	is($result->{status}, 2, '32-bit segment heaps: status 2');
	my @why = $result->{err} =~ /warning: (32-bit segment heaps of this Windows are not known yet: 2 heaps were not walked), /g;
	is(scalar @why, 1, '32-bit segment heaps: one message');
	unlike($result->{err}, qr/inconsistent|may be damaged|could not be followed/, '32-bit segment heaps: nothing is called damaged');
	is($found->{count}, $truth->{count}, '32-bit segment heaps: the blocks of NT heaps are found');
	is(scalar(grep { $_ eq 'segment unwalked' } values %{ $found->{heaps} }), 2, '32-bit segment heaps: they are listed');
	return;
}
