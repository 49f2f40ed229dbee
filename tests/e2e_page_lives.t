#!/usr/bin/perl
# The table in the page of a recording: for any window of whole spans, it gives the classes of each
# stack's blocks, and the use of memory at each edge. A replay of the recording's events gives the
# expected values.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use List::Util qw(sum0);
use Test::More;
use Hunt;
use Pages;
use Recordings;

my $dir = fresh_dir();
my ($file, $replay) = make_random($dir, plain => { seed => 11, events => 6000 }, attached => { seed => 12, events => 4000, attached => 70 },
	short => { seed => 13, events => 900, ms => 12 }, unfinished => { seed => 14, events => 3000, stop => 1 }, long => { seed => 15, events => 4000, ms => 400_000_000 });
subtest $_ => sub { check($_) } for sort keys %$file;
subtest 'a window' => sub { check('plain', '--from', '1s', '--to', 'm3885') };
subtest 'rows that do not fit' => \&check_others;
done_testing;

sub page_of { return page_data(run(["$root/build/linux/hdiff", '--no-symbols', '-o', 'html', @_])->{out}) }

# Returns [NAME, [BIRTH, DEATH, BLOCKS, BYTES], ...] for each row, and last for the other rows.
sub rows_of {
	my ($data) = @_;
	my @numbers = page_numbers($data->{recording}{lives});
	my @rows;
	for my $row (@{ $data->{recording}{rows} }, undef) {
		my ($count, $size, $birth, @entries) = (splice(@numbers, 0, 2), 0);
		for (1 .. $count) {
			$birth += shift @numbers;
			my ($death, $blocks) = ($birth + shift @numbers, shift @numbers);
			push @entries, [$birth, $death, $blocks, $size ? ($size - 1) * $blocks : shift @numbers];
		}
		push @rows, [$row ? join(' ', map { name_of($_) } @{ $row->{frames} }) : '(other)', @entries];
	}
	is(scalar @numbers, 0, 'the table ends with its last row');
	return @rows;
}

sub name_of { my ($frame) = @_; return defined $frame->{module} ? ($frame->{module} =~ s/\.\w+$//r) . "+$frame->{offset}" : $frame->{address} }

# Returns the class of blocks in a window from edge $from to edge $to.
sub class_of {
	my ($birth, $death, $from, $to) = @_;
	return if $birth > $to || ($death <= $from);
	return ($birth > $from ? 'ai' : 'ao') . ($death <= $to ? 'fi' : 'fo');
}

sub positions_of {
	my ($data, $replay, $from, $to) = @_;
	return map { defined $_->{label} && $_->{label} =~ /./ ? position_of($replay, $_->{label}) : $replay->position($_->{ms}) } @{ $data->{recording}{edges} };
}

sub check {
	my ($name, @window) = @_;
	my $data = page_of(@window, $file->{$name});
	my $replay = $replay->{$name};
	my @edges = @{ $data->{recording}{edges} };
	my @at = positions_of($data, $replay);
	cmp_ok(scalar @edges, '<=', 257, 'at most 256 spans');
	is_deeply([sort { $a <=> $b } @at], \@at, 'edges are in order of time');
	is_deeply([grep { my $mark = $_; !grep { defined $_->{label} && $_->{label} eq $mark } @edges } map { $_->{label} }
			grep { $_->{label} ne 'again' && $_->{position} > $at[0] && $_->{position} < $at[-1] } @{ $replay->marks }], [], 'spans end at marks');
	is_deeply([map { $_->{label} } @{ $data->{recording}{marks} }],
		[map { $_->{label} } grep { $_->{position} >= $at[0] && $_->{position} <= $at[-1] } @{ $replay->marks }], 'all marks of the window are listed');
	my @rows = rows_of($data);
	is(scalar(@{ $rows[-1] }), 1, 'no row is merged');
	srand 5;
	for my $turn (1 .. 25) {
		my ($from, $to) = $turn == 1 ? (0, $#edges) : sort { $a <=> $b } int rand @edges, int rand @edges;
		for my $class (qw(aifo aifi aofi aofo)) {
			my %found;
			for my $row (@rows) {
				my @sum = map { my $at = $_; sum0 map { $_->[$at] } grep { (class_of(@$_[0, 1], $from, $to) // '') eq $class } @$row[1 .. $#$row] } 3, 2;
				$found{ $row->[0] } = \@sum if $sum[1];
			}
			is_deeply(\%found, by_stack([$replay->fate($class, @at[$from, $to])]), "$class from edge $from to edge $to");
		}
	}
	check_use($data, $replay, @at);
	return;
}

sub check_use {
	my ($data, $replay, @at) = @_;
	my %heap = (committed => 1, reserved => 2, mapped => 3, stack => 4);
	my (@found, @wanted);
	for my $i (0 .. $#at) {
		my $live = by_heap([$replay->live($at[$i])]);
		my $use = $data->{recording}{edges}[$i]{use};
		my @memories = @{ $data->{recording}{memories} };
		for my $k (0 .. $#memories) {
			my $wanted = $heap{ $memories[$k] };
			# Reserved address space is not counted.
			my @mine = $memories[$k] eq 'reserved' ? () : grep { my ($heap) = split / /; defined $wanted ? $heap eq $wanted : $heap !~ /^[1-4]$/ } keys %$live;
			push @found, "$i $memories[$k] @$use[2 * $k, 2 * $k + 1]";
			push @wanted, join ' ', $i, $memories[$k], map { my $at = $_; sum0 map { $live->{$_}[$at] } @mine } 0, 1;
		}
	}
	is_deeply(\@found, \@wanted, 'use of each kind of memory at each edge');
	my @highest = map { $data->{recording}{edges}[$_]{highest} } 1 .. $#at;
	my @most = map { my $i = $_; my $most = 0; for my $at ($at[$i - 1] .. $at[$i]) { my $use = use_at($replay, $at); $most = $use if $use > $most } $most } 1 .. 5;
	is_deeply([@highest[0 .. 4]], \@most, 'the highest use in the first spans');
	return;
}

# Not all of these stacks fit in a page. The page states how many were merged, and sums stay
# exact.
sub check_others {
	my $count = 40_000;
	my @text = 'process 1 0 64 1763600000000 1763600000000 0 0 C:\made\app.exe';
	push @text, 'module app 140000000 20000000 77 C:\made\app.exe', 'heap h 1E0000';
	push @text, map { sprintf("stack s%d %s", $_, join ' ', map { sprintf 'app+%X', 0x1000 + $_ } map { $_ * 16, 3 + $_ * 16, 7 + $_ * 16, 100 } $_),
		sprintf 'kind k%d %d s%d h', $_, 10 + $_, $_ } 1 .. $count;
	push @text, map { ("time $_", "alloc k$_", $_ % 3 ? () : "free k$_ 0") } 1 .. $count;
	my $run = make_recording(join('', map { "$_\n" } @text), "$dir/many.hrec");
	my $page = run(["$root/build/linux/hdiff", '--no-symbols', '-o', 'html', $run])->{out};
	cmp_ok(length $page, '<', 4_000_000, 'the page stays small');
	my $data = page_data($page);
	my @rows = rows_of($data);
	is(@rows - 1 + $data->{recording}{other_rows}, $count, 'each stack is listed or counted');
	cmp_ok($data->{recording}{other_rows}, '>', 1000, 'some are merged');
	my %sum;
	for my $row (@rows) {
		$sum{ $_->[1] == @{ $data->{recording}{edges} } ? 'kept' : 'freed' } += $_->[3] for @$row[1 .. $#$row];
	}
	is($sum{freed}, sum0(map { 10 + 3 * $_ } 1 .. int($count / 3)), 'bytes that were freed');
	is($sum{kept}, sum0(map { 10 + $_ } grep { $_ % 3 } 1 .. $count), '... and those that were kept');
	my ($largest) = grep { $_->[0] =~ sprintf 'app\+%X ', 0x1000 + 16 * $count } @rows;
	ok($largest, 'the largest is listed');
	return;
}
