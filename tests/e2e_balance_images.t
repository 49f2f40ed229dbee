#!/usr/bin/perl
# The balance of processes in minidumps. hsnap -z attributes the memory of a synthetic process as
# its maker did, and counts its threads and handles. What a file lacks, or what is inconsistent in
# the file, is unknown; no figure is false.
#
# Arguments are those of make_image: tests only that process.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use FindBin qw($Bin);
use lib "$Bin/lib";
use List::Util qw(sum);
use Test::More;
use Hunt;
use Images;
use Minidump;

my @private = qw(heap-blocks heap-overhead heap-free tracer thread-stacks virtual image-copies view-copies system);
my @parts = (@private, qw(mapped images thread-stacks-reserved));
my @counters = qw(private private-peak working-set);
my $dir = fresh_dir();
my $maker = "$root/build/linux/images/make_image";

if (@ARGV) {
	check(@ARGV);
	done_testing;
	exit;
}
my @profiles = profiles();
cmp_ok(scalar @profiles, '>=', 6, 'several kinds of Windows');
for my $profile (@profiles) {
	subtest $profile => sub {
		check($profile, @$_) for [], ['--ust', '--seed', 2, '--heaps', 7], ['--blocks', 20, '--heaps', 1, '--seed', 4],
		    ['--page-heap', 'full'], ['--page-heap', 'light', '--seed', 3];
		# Not every Windows has segment heaps.
		check($profile, @$_) for grep { makes($profile, @$_) } ['--segment'], ['--segment', '--heaps', 5, '--seed', 3];
	};
}
subtest 'what a file lacks' => \&lacks;
for my $profile (qw(win10-x64 win7-x86 wow64)) {
	subtest "$profile, damaged" => sub { damaged($profile) };
}
subtest 'real files' => \&real;
done_testing;

sub makes {
	my @how = @_;
	return run([$maker, @how, "$dir/try.dmp"])->{status} == 0;
}

# Makes an image and reads it. Returns the figures of the dump, the truth, and the messages.
sub read_image {
	my @how = @_;
	my $result = make_and_read("$dir/a.dmp", @how);
	-s "$dir/a.dmp.txt" or return fail("@how: a dump, $result->{err}");
	return (balance_of("$dir/a.dmp.txt"), true_balance("$dir/a.dmp.truth"), $result->{err});
}

# Returns the sums of the address space, as the file lists it.
sub space_of {
	my ($file) = @_;
	my %sums = (private => 0, other => 0);
	for my $info (@{ dump_of($file)->{infos} }) {
		next if $info->{state} != 0x1000;
		$sums{ $info->{type} == 0x20000 ? 'private' : 'other' } += $info->{bytes};
	}
	return \%sums;
}

sub check {
	my @how = @_;
	my ($found, $truth) = read_image(@how) or return;
	is_deeply($found, $truth, "@how: all figures") or return;
	my $space = space_of("$dir/a.dmp");
	my $copies = $found->{'image-copies'} + $found->{'view-copies'};
	is(sum(@$found{@private}) - $copies, $space->{private}, '... add up to all private memory');
	is($found->{mapped} + $found->{images} + $copies, $space->{other}, '... and to the rest');
}

# Checks that all figures are true, except the unknown ones.
sub check_unknown {
	my ($what, $found, $truth, @unknown) = @_;
	my %true = %$truth;
	delete @true{@unknown};
	is_deeply($found, \%true, "$what: unknown are " . (@unknown ? join ' ', @unknown : 'none'));
}

sub lacks {
	my ($found, $truth) = read_image('win10-x64', '--no-memory-info') or return;
	check_unknown('without a list of regions', $found, $truth, @parts);
	($found, $truth) = read_image('win10-x64', '--partial') or return;
	check_unknown('without full memory', $found, $truth, @parts);
}

sub damaged {
	my ($profile) = @_;
	my @types = grep { /^handles:/ } keys %{ (read_image($profile))[1] };
	my $inconsistent = qr/the list of the process's memory is inconsistent/;
	my $cut = qr/its lists lack \d+ of their entries/;
	my %breaks = (
		'count-infos-ffffffff' => [$cut, @parts],
		'count-threads-ffffffff' => [$cut, @parts, 'threads'],
		'count-handles-ffffffff' => [$cut, 'handles', @types],
		'handle-bytes-8' => [$cut, 'handles', @types],
		'handle-bytes-ffffffff' => [$cut, 'handles', @types],
		'type-name-wild' => [qr/the file lacks the types of 38 handles/, @types],
		'type-name-long' => [],
		'counters-wild' => [undef, @counters],
		'counters-revision-3' => [undef, @counters],
		'teb-wild' => [qr/memory is missing: the environment blocks of 1 thread,/, @parts],
		map({ ("info-$_" => [$inconsistent, @parts]) } qw(size-wild low allocation-high allocation-low state type twice swapped)),
	);
	for my $break (sort keys %breaks) {
		my ($words, @unknown) = @{ $breaks{$break} };
		my ($found, $truth, $err) = read_image($profile, '--break', $break) or next;
		check_unknown($break, $found, $truth, @unknown);
		$words ? like($err, $words, '... which is reported') : unlike($err, qr/: warning: (?!no block has a stack)/, '... without a word');
	}
	many_types($profile);
}

# The file has 300 more types than the truth. A dump lists 256.
sub many_types {
	my ($profile) = @_;
	my ($found, $truth, $err) = read_image($profile, '--break', 'many-types') or return;
	my @made = grep { /^handles:Made \d+$/ } keys %$found;
	is(delete $found->{handles}, delete($truth->{handles}) + 300, 'many types: all handles');
	is(scalar(grep { /^handles:/ } keys %$found), 256, '... of the first 256 types');
	is_deeply([grep { $found->{$_} != 1 } @made], [], '... each of which has one');
	delete @$found{@made};
	is_deeply($found, $truth, '... and all else');
	my $left = 300 - @made;
	like($err, qr/the file lacks the types of $left handles/, '... of which is reported what is not listed');
}

# Real files have no list of regions and no handles. Reads their threads and counters here.
sub real {
	for my $name (qw(node-minidump_windows_x64_14393 syzygy_notepad-larger-32bit syzygy_notepad-larger-64bit)) {
		my $file = data_file("dumps/$name.dmp") // plan(skip_all => 'no real minidumps here');
		my $bytes = slurp($file);
		my (undef, undef, $count, $at) = unpack 'a4 V3', $bytes;
		my %streams = map { unpack 'V x4 V', substr $bytes, $at + 12 * $_, 12 } 0 .. $count - 1;
		my %truth = (threads => unpack 'V', substr $bytes, $streams{3}, 4);
		if ($streams{22}) {
			is(unpack('v', substr $bytes, $streams{22}, 2), 2, "$name: revision 2");
			@truth{@counters} = map { unpack 'Q<', substr $bytes, $streams{22} + $_, 8 } 88, 64, 16;
		}
		run(["$root/build/linux/hsnap", '-z', $file, '-f', "$dir/real.txt"]);
		is_deeply(balance_of("$dir/real.txt"), \%truth, "$name: threads and counters, and nothing else");
	}
}
