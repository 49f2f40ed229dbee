#!/usr/bin/perl
# The replay, which provides the truth of recordings, agrees with arithmetic for a few events.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Replay;

sub sum { return { bytes => $_[0], count => $_[1] } }

# Returns a row with these sums; all other sums are zero.
sub row {
	my (%is) = @_;
	return { (map { $_ => sum(0, 0) } qw(aifo aifi aofi aofo old new size)), %is };
}

sub at { my %peak; @peak{qw(bytes position time)} = @_; return \%peak }

my $heaps = Replay->new(<<'END');
# index 0
0 1 alloc a 100 s1 h
10 1 alloc b 50 s2 h

20 1 free a
20 1 alloc c 70 s1 h
30 1 mark half way
35 1 alloc d 10 s1 g
40 1 realloc c x 90 s1 h
50 2 free x
50 1 free d
60 1 alloc e 5 s2 g
END
is($heaps->events, 10, 'a realloc is two events, a mark none');
is_deeply([map { $heaps->position($_) } 0, 9, 10, 20, 34, 40, 50, 99], [1, 1, 2, 4, 4, 7, 9, 10], 'a moment is after all events of its millisecond');
is($heaps->mark('half way'), 4, 'a mark has a position');
is_deeply($heaps->marks, [{ label => 'half way', time => 30, position => 4 }], 'and a time');
is_deeply($heaps->state(0, []), {}, 'nothing lives at first');
is_deeply($heaps->state(5, ['stack']), { s1 => sum(80, 2), s2 => sum(50, 1) }, 'what lives after five events, by stack');
is_deeply($heaps->state(5, ['heap']), { h => sum(120, 2), g => sum(10, 1) }, 'by heap');
is_deeply($heaps->state(5, ['heap', 'bytes']), { 'h 50' => sum(50, 1), 'h 70' => sum(70, 1), 'g 10' => sum(10, 1) }, 'and by two fields');
is_deeply($heaps->state(6, []), { '' => sum(60, 2) }, 'between the halves of a realloc');
is_deeply($heaps->state(10, [], sub { $_->{heap} eq 'g' }), { '' => sum(5, 1) }, 'of one heap alone');

is_deeply($heaps->window(2, 9, ['stack']), {
	# live, from position 2 on: 100 0 70 80 10 100 10 0
	s1 => row(aofi => sum(100, 1), aifi => sum(170, 3), old => sum(100, 1), size => sum(170, 3),
		lifetime => { count => 3, sum => 45, min => 10, max => 20, median => 15 }, peak => at(100, 2, 10)),
	s2 => row(aofo => sum(50, 1), old => sum(50, 1), new => sum(50, 1), peak => at(50, 2, 10)),
}, 'a window by stack');
is_deeply($heaps->window(2, 9, ['heap']), {
	# 150 50 120 120 50 140 50 50
	h => row(aofi => sum(100, 1), aofo => sum(50, 1), aifi => sum(160, 2), old => sum(150, 2), new => sum(50, 1),
		size => sum(160, 2), lifetime => { count => 2, sum => 30, min => 10, max => 20, median => 10 }, peak => at(150, 2, 10)),
	g => row(aifi => sum(10, 1), size => sum(10, 1), lifetime => { count => 1, sum => 15, min => 15, max => 15, median => 15 },
		peak => at(10, 5, 35)),
}, 'the same window by heap');
is_deeply($heaps->window(0, 10, []), { '' => row(aifo => sum(55, 2), aifi => sum(270, 4), size => sum(325, 6), new => sum(55, 2),
	lifetime => { count => 4, sum => 65, min => 10, max => 20, median => 15 }, peak => at(150, 2, 10)) }, 'all of it');
is_deeply($heaps->fates('aifi', 2, 9, ['heap']), { h => sum(160, 2), g => sum(10, 1) }, 'one class of it alone');
is_deeply([map { $_->{id} } $heaps->fate('aifo', 0, 10)], [qw(b e)], 'which blocks these are');
is_deeply([map { $_->{id} } $heaps->live(5)], [qw(b c d)], 'and those that live');
is_deeply($heaps->window(3, 3, []), { '' => row(aofo => sum(50, 1), old => sum(50, 1), new => sum(50, 1), peak => at(50, 3, 20)) },
	'a window without events');
is_deeply($heaps->window(3, 6, ['stack'], sub { $_->{id} eq 'c' }), { s1 => row(aifi => sum(70, 1), size => sum(70, 1),
	lifetime => { count => 1, sum => 20, min => 20, max => 20, median => 20 }, peak => at(70, 4, 20)) }, 'one block in a window');
is_deeply($heaps->window(4, 5, ['stack'])->{s1}, row(aifo => sum(10, 1), aofo => sum(70, 1), old => sum(70, 1), new => sum(80, 2),
	size => sum(10, 1), peak => at(80, 5, 35)), 'a window that both reach out of');
is_deeply($heaps->peak, at(150, 2, 10), 'the first of two moments of most use');
is_deeply($heaps->peak(sub { $_->{heap} eq 'g' }), at(10, 5, 35), 'and of one heap');
is_deeply([map { $_->{free} ? "$_->{free}{thread} at $_->{free}{time}" : 'lives' } @{ $heaps->allocations }],
	['1 at 20', 'lives', '1 at 40', '1 at 50', '2 at 50', 'lives'], 'who freed each, and when');

# When a range is freed in part, the rest becomes a new allocation with the stack that made the
# range.
my $ranges = Replay->new(<<'END');
0 1 reserve 10000 65536 first
5 1 release 10000 12288
5 1 commit 10000 12288 second<-main
10 1 decommit 11000 4096 fourth<-main
20 1 commit 11000 4096 third
30 1 decommit 10000 8192
40 1 release 13000 53248
END
is_deeply([map { [@$_{qw(memory id bytes stack)}, $_->{alloc}{index}, $_->{free} && $_->{free}{index}] } @{ $ranges->allocations }], [
	['reserved', '10000', 65536, 'first', 0, 1],
	['reserved', '13000', 53248, 'first', 2, 10],
	['committed', '10000', 12288, 'second<-main', 3, 4],
	['committed', '10000', 4096, 'second<-main', 5, 8],
	['committed', '12000', 4096, 'second<-main', 6, undef],
	['committed', '11000', 4096, 'third', 7, 9],
], 'parts of ranges go');
is_deeply([map { $_->{free}{stack} } grep { $_->{free} } @{ $ranges->allocations }], [undef, undef, 'fourth<-main', undef, undef],
	'the whole of a range of which a part goes is freed by who takes the part');
is_deeply($ranges->state($ranges->position(10), ['heap']), { reserved => sum(53248, 1), committed => sum(8192, 2) },
	'the heap of a range is its memory');

my $destroyed = Replay->new(<<'END');
1 1 alloc a 1 s h
2 1 alloc b 2 s g
3 1 alloc c 4 s h
9 2 destroy h
10 1 alloc a 8 s h
END
is_deeply([map { $_->{free} && $_->{free}{index} } @{ $destroyed->allocations }], [3, undef, 4, undef], 'a heap is destroyed, and comes again');

my %wrong = (
	'0 1 alloc a 1 s' => 'its words are others',
	'0 1 alloc a -1 s h' => 'its words are others',
	'0 1 alloc a 1 s h x' => 'its words are others',
	'0 1 frees a' => 'no such event',
	'0 alloc a' => 'no event',
	'0 1 free b' => q('b' does not live),
	'0 1 alloc a 1 s h;0 1 alloc a 1 s h' => q('a' lives already),
	'5 1 mark x;4 1 mark y' => 'time goes back',
	'0 1 commit 1000 4096 s;0 1 commit 1800 4096 s' => 'it overlaps another one',
	'0 1 map 1000 4096 s;0 1 unmap 1000 8192' => 'not all of it lives',
	'0 1 commit 1000 0 s' => 'a range of no bytes',
);
for my $text (sort keys %wrong) {
	ok(!eval { Replay->new($text =~ tr/;/\n/r) }, "'$text' is refused");
	like($@, qr/^line \d+, '.*': \Q$wrong{$text}\E$/, "for: $wrong{$text}");
}
done_testing;
