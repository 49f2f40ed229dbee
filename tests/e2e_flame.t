#!/usr/bin/perl
# hdiff -o svg of dumps: a self-contained flame graph. Its boxes show the contents of the synthetic
# dumps, with proportional widths. Hostile names do no harm.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use List::Util qw(sum0);
use Test::More;
use Calls;
use Charts;
use Hunt;
use Pages;
use Series;

my $dir = fresh_dir();
my @dumps = call_dumps($dir, 60, 'Document::parse(Reader *)', 'cache_fill', map { "f$_" } 1 .. 12);
my $pixels = 1180; # width of the root box

subtest 'growth' => sub {
	my $svg = flame(@dumps);
	my $moved = sum0 map { abs $_->{bytes} } call_rows();
	check($svg, $moved, sub { abs $_[0]{bytes} }, sub {
		my (@rows) = @_;
		my ($grew, $shrank) = map { my $way = $_; sum0 map { $_->{bytes} * $way > 0 ? abs $_->{bytes} : 0 } @rows } 1, -1;
		my ($new, $old) = map { my $when = $_; sum0 map { $_->{$when}[0] } @rows } qw(new old);
		return sprintf '%s%d bytes (%d - %d), grew %d, shrank %d', $new < $old ? '-' : '+', abs($new - $old), $new, $old, $grew, $shrank;
	});
	for my $box (boxes($svg)) {
		my ($grew, $shrank) = $box->{figures} =~ /grew (\d+), shrank (\d+)/;
		like($box->{class}, $grew > $shrank ? qr/^g\d$/ : $grew < $shrank ? qr/^s\d$/ : qr/^n$/, 'red grew, blue shrank');
	}
	my @shades = map { $_->{class} =~ /^g(\d)/ } sort { grown($a) <=> grown($b) } grep { $_->{class} =~ /^g/ } boxes($svg);
	is_deeply(\@shades, [sort @shades], 'the more the redder');
};
subtest 'one dump' => sub {
	my $all = sum0 map { $_->{new}[0] } call_rows();
	check(flame($dumps[1]), $all, sub { $_[0]{new}[0] }, sub { sum0(map { $_->{new}[0] } @_) . ' bytes' });
};
subtest 'nothing' => sub {
	my $svg = flame($dumps[0], $dumps[0]);
	is_deeply([boxes($svg)], [], 'no boxes');
	like($svg, qr/nothing grew or shrank/, 'and reports it');
};
subtest 'names' => sub {
	my $svg = flame(page_dumps($dir));
	unlike($svg, qr/<(?!\/?(?:svg|title|style|rect|text|g)\b|\/)/, 'no element is made of one');
	unlike($svg, qr/[\x00-\x08\x0b-\x1f\x7f]/, 'no control characters');
	my $deep = spew("$dir/deep.txt", "*- - Start of data for heap \@ 1E0000 - -\n10 bytes + 8 at 200000 by BackTrace1\n"
		. join('', map { sprintf "\t%X\n", 0x1000 + $_ } 1 .. 400) . "\n*- - End of data for heap \@ 1E0000 - -\n");
	like(flame($deep), qr/; stacks are cut above 300 boxes</, 'a deep stack is cut, and that is reported');
};
subtest 'what cannot be drawn' => sub {
	for my $form (qw(svg pprof speedscope dhat folded)) {
		check_error(run(["$root/build/linux/hdiff", '-o', $form, series_of(2)]), 'hdiff', "$form of two processes", '--series');
	}
	SKIP: {
		skip('needs script(1)', 1) if $as_windows;
		my $result = run(['script', '-qec', "'$root/build/linux/hdiff' -o pprof '$dumps[0]'", '/dev/null']);
		like($result->{out}, qr/-o pprof: .*terminal.*-f FILE/, 'pprof is not for a terminal');
	}
};
done_testing;

# Returns three dumps of each of $count processes.
sub series_of {
	my ($count) = @_;
	return map { series($dir, [map { 1763632800000 + 1000 * $_ } 1 .. 3], { x => [5, 6, 7] }, name => "p$_-%d.txt", pid => $_) } 1 .. $count;
}

sub flame {
	my (@files) = @_;
	my $result = run(["$root/build/linux/hdiff", '-o', 'svg', @files]);
	is($result->{status}, 0, 'hdiff -o svg');
	is(xml_error($result->{out}), '', 'it is XML');
	return $result->{out};
}

# Returns [{name, figures, class, x, y, width}] in the file's order.
sub boxes {
	my ($svg) = @_;
	return map { { name => $_->[0] =~ s/&lt;/</gr =~ s/&gt;/>/gr =~ s/&quot;/"/gr =~ s/&amp;/&/gr, figures => $_->[1], class => $_->[2],
		x => $_->[3], y => $_->[4], width => $_->[5] } }
	    map { [/<title>(.*): ([+-]?\d+ bytes.*), [\d.]+ %<\/title><rect class="(\w+)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"/] }
	    $svg =~ /^(<g class="b">.*)$/mg;
}

sub grown { my ($box) = @_; my ($grew, $shrank) = $box->{figures} =~ /grew (\d+), shrank (\d+)/; return $grew - $shrank }

# Checks that every path from the root that is at least a pixel wide has a box. The box's width must
# be the path's share, and the box must lie on top of its caller.
sub check {
	my ($svg, $all, $weight, $figures) = @_;
	my %rows;
	for my $row (grep { $weight->($_) } call_rows()) {
		my @path = reverse 'RtlAllocateHeap', 'malloc', @{ $row->{calls} }, @call_start;
		push @{ $rows{ join '>', map { call_module($_) . "!$_" } @path[0 .. $_ - 1] } }, $row for 0 .. @path;
	}
	my (%wanted, %width, $narrow);
	for my $path (keys %rows) {
		my $width = $pixels * sum0(map { $weight->($_) } @{ $rows{$path} }) / $all;
		$narrow++, next if $width < 1;
		$wanted{$path} = $figures->(@{ $rows{$path} });
		$width{$path} = $width;
	}
	my (%got, @stack);
	for my $box (boxes($svg)) {
		pop @stack while @stack && ($stack[-1]{y} <= $box->{y} || $stack[-1]{x} + $stack[-1]{width} < $box->{x} + $box->{width} - 0.2);
		push @stack, $box;
		my $path = join '>', map { $_->{name} } @stack[1 .. $#stack];
		$got{$path} = $box->{figures};
		ok(abs($box->{width} - ($width{$path} // 0)) < 0.06, 'as wide as its part');
	}
	is_deeply(\%got, \%wanted, 'each box and its figures');
	like($svg, qr/; $narrow boxes that are narrower than a pixel are left out</, 'how many are not drawn');
	return;
}
