#!/usr/bin/perl
# hdiff --over-time and --histogram. Each number in each form must agree with a replay that keeps
# every block separately, for all stacks and for those that a filter selects. No peak is lost, and
# each picture is drawn to its numbers.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use List::Util qw(first max min);
use Test::More;
use Charts;
use Hunt;
use Recordings;
eval { require Text::CSV } or needs_linux('Text::CSV');

my $dir = fresh_dir();
my $hdiff = "$root/build/linux/hdiff";
my @memories = qw(heap committed mapped stack reserved);
my %made = (
	run => { seed => 11, events => 4000 },
	attached => { seed => 12, events => 3000, attached => 300 },
	short => { seed => 13, events => 60, ms => 7 },
	cut => { seed => 14, events => 3000, stop => 1 },
);
my ($files, $replays) = make_random($dir, %made);
my %file = %$files;
my %replay = %$replays;

# Filters: as options of the command, and as conditions for the truth.
my @filters = (
	[[]],
	[['--module', 'lib'], sub { $_->{stack} =~ /\blib\+/ }],
	[['-i', '^lib\+', '-x', '^came\+'], sub { $_->{stack} =~ /\blib\+/ && $_->{stack} !~ /\bcame\+/ }],
	[['--heap', '1E0000', '--heap', 'mapped'], sub { $_->{heap} =~ /^(?:1E0000|3)$/ }],
	[['--heap', 'reserved'], sub { $_->{heap} eq '2' }],
);
for my $name (sort keys %made) {
	my ($mark) = map { $_->{label} } @{ $replay{$name}->marks };
	my @windows = (['start', 'end'], $name eq 'run' ? (['40%', 'peak'], ['0s', '0s'], [$mark, '90%']) : ());
	for my $window (@windows) {
		for my $filter ($name eq 'run' ? @filters : $filters[0]) {
			subtest "$name, @$window, @{ $filter->[0] }" => sub { check($name, $window, @$filter) };
		}
	}
}
subtest 'the least that a stack has had' => \&check_least;
like(run([$hdiff, '-d', "$file{run}\@end"])->{err}, qr/ha(?:ve|s) no name/, 'a report of rows looks for names');
is(run([$hdiff, '-d', '--over-time', $file{run}])->{err}, '', 'a chart that needs none does not');
subtest 'both systems draw the same' => \&check_systems;
subtest 'bars are as long as the terminal has room' => \&check_widths;
subtest 'texts from elsewhere are shown as such' => \&check_texts;
subtest 'errors are one line each' => \&check_errors;
done_testing;

# ---------------------------------------------------------------- the truth

sub memory_of { my ($block) = @_; return { 1 => 'committed', 2 => 'reserved', 3 => 'mapped', 4 => 'stack' }->{ $block->{heap} } // 'heap' }

# Returns the state at each position: { MEMORY => [BYTES, COUNT], sum => [BYTES, COUNT], block,
# is_free }. block and is_free describe the event just before the position.
sub states {
	my ($replay, $wanted, $counts_reserved) = @_;
	my (@events, @states);
	my %now = map { $_ => [0, 0] } @memories, 'sum';
	for my $block (@{ $replay->allocations }) {
		$events[$block->{alloc}{index} + 1] = [$block, 1];
		$events[$block->{free}{index} + 1] = [$block, -1] if $block->{free};
	}
	for my $position (0 .. $replay->events) {
		my ($block, $sign) = @{ $events[$position] // [] };
		my $is_wanted = $block && (!$wanted || grep { $wanted->() } $block);
		for my $sum ($is_wanted ? @now{ memory_of($block), 'sum' } : ()) {
			next if $sum == $now{sum} && $block->{heap} eq '2' && !$counts_reserved;
			$sum->[0] += $sign * $block->{bytes};
			$sum->[1] += $sign;
		}
		my %state = map { $_ => [@{ $now{$_} }] } keys %now;
		my $is_counted = $is_wanted && ($block->{heap} ne '2' || $counts_reserved);
		push @states, { %state, $is_counted ? (block => $block, is_free => $sign < 0) : () };
	}
	return \@states;
}

sub rows_between {
	my ($replay, $states, $first, $last, @times) = @_;
	my @rows;
	my $from = $first;
	for my $i (0 .. $#times) {
		my $to = $i ? $i == $#times ? $last : max($from, min($last, position_of($replay, "$times[$i]ms"))) : $first;
		my $most = max(map { $_->{sum}[0] } @$states[$from .. $to]);
		my $at = first { $states->[$_]{sum}[0] == $most } $from .. $to;
		my %sums = map { $_ => [0, 0] } 'allocated', 'freed';
		for my $event (grep { $_->{block} } @$states[$from + 1 .. $to]) {
			my $sum = $sums{ $event->{is_free} ? 'freed' : 'allocated' };
			$sum->[0] += $event->{block}{bytes};
			$sum->[1]++;
		}
		push @rows, {
			time_ms => $times[$i], highest_bytes => $most,
			highest_ms => $at > $from ? $replay->{times}[$at - 1] : $times[$i ? $i - 1 : 0],
			bytes => $states->[$to]{sum}[0], count => $states->[$to]{sum}[1],
			(map { ("${_}_bytes" => $states->[$to]{$_}[0], "${_}_count" => $states->[$to]{$_}[1]) } @memories),
			(map { ("${_}_bytes" => $sums{$_}[0], "${_}_count" => $sums{$_}[1]) } keys %sums),
		};
		$from = $to;
	}
	return \@rows;
}

# Returns "MEMORY FROM-TO" => [allocated bytes, count, live bytes, count], for the sizes from each
# of @bounds up to the next.
sub sizes_of {
	my ($replay, $wanted, $first, $last, @bounds) = @_;
	my %sizes;
	for my $block (grep { !$wanted || $wanted->() } @{ $replay->allocations }) {
		my $is_new = $block->{alloc}{index} >= $first && $block->{alloc}{index} < $last;
		my $is_live = Replay::lives_at($block, $last);
		next unless $is_new || $is_live;
		my $i = first { $bounds[$_ + 1] > $block->{bytes} } 0 .. $#bounds;
		my $sums = $sizes{ memory_of($block) . " $bounds[$i]-" . ($bounds[$i + 1] - 1) } //= [0, 0, 0, 0];
		for my $at ($is_new ? 0 : (), $is_live ? 2 : ()) {
			$sums->[$at] += $block->{bytes};
			$sums->[$at + 1]++;
		}
	}
	return \%sizes;
}

# ---------------------------------------------------------------- output

sub ask {
	my @args = @_;
	my $result = run([$hdiff, '-d', '--no-symbols', @args]);
	is($result->{status}, 0, "hdiff @args") or diag($result->{err});
	return $result->{out};
}

sub table {
	my ($text) = @_;
	my $csv = Text::CSV->new({ binary => 1, eol => "\r\n" });
	open my $in, '<:encoding(UTF-8)', \$text or die $!;
	my $names = $csv->getline($in);
	$csv->column_names(@$names);
	return $csv->getline_hr_all($in);
}

sub check {
	my ($name, $window, $args, $wanted) = @_;
	my ($replay, $file) = ($replay{$name}, $file{$name});
	my @asked = (@$args, '--from', $window->[0], '--to', $window->[1], $file);
	my ($first, $last) = map { position_of($replay, $_) } @$window;
	my $counts_reserved = "@$args" =~ /reserved/;
	my $states = states($replay, $wanted, $counts_reserved);

	my $shown = table(ask('--over-time', '-o', 'csv', @asked));
	my @times = map { $_->{time_ms} } @$shown;
	cmp_ok(scalar @times, '<=', 502, 'not too many rows');
	my %steps = map { $times[$_] - $times[$_ - 1] => 1 } 2 .. $#times - 1;
	cmp_ok(scalar keys %steps, '<=', 1, 'of one length');
	is($times[-1], $made{$name}{stop} ? $replay->{times}[-1] : $replay->{length}, 'up to the end') if $window->[1] eq 'end';
	my @truth = @{ rows_between($replay, $states, $first, $last, @times) };
	my @marks = map { delete $_->{marks} } @$shown;
	is_deeply($shown, \@truth, 'each number of each row');
	is(join('; ', grep { length } @marks), join('; ', marks_between($replay, $first, $last)), 'all marks');

	my ($peak_bytes, $peak_ms) = @{ (sort { $b->{highest_bytes} <=> $a->{highest_bytes} } @truth)[0] }{qw(highest_bytes highest_ms)};
	my $text = ask('--over-time', @asked);
	like($text, qr/^\/\/ peak: $peak_bytes bytes at @{[seconds($peak_ms)]} s$/m, 'the peak is named');
	my @lines = map { [split] } grep { /^ *\d/ } split /\n/, $text;
	cmp_ok(max(map { length } grep { !m{^//} } split /\n/, $text), '<=', 79, 'it fits a terminal');
	cmp_ok(scalar @lines, '<=', 52, 'in few lines');
	my $rows = rows_between($replay, $states, $first, $last, map { $_->[0] =~ s/\.//r } @lines);
	is_deeply([map { [@$_[1 .. 3]] } @lines], [map { [@$_{qw(bytes count highest_bytes)}] } @$rows], 'text has the same');
	my $width = max(map { length($_->[4] // '') } @lines);
	my @wrong = grep { abs(length($_->[4] // '') - ($peak_bytes && $_->[3] / $peak_bytes) * $width) > 0.51 } @lines;
	is_deeply(\@wrong, [], 'and bars as long as the highest use');
	check_picture(ask('--over-time', '-o', 'svg', @asked), \@truth, $peak_ms);
	check_sizes($replay, $wanted, $first, $last, @asked);
	return;
}

sub marks_between {
	my ($replay, $first, $last) = @_;
	return map { $_->{label} } grep { $_->{position} >= $first && $_->{position} <= $last } @{ $replay->marks };
}

sub seconds { my ($ms) = @_; return sprintf '%d.%03d', int($ms / 1000), $ms % 1000 }

sub check_picture {
	my ($svg, $truth, $peak_ms) = @_;
	my $chart = chart_of($svg);
	is($chart->{error}, '', 'the picture is well-formed XML');
	my @shown = @{ $chart->{figures} };
	is_deeply([map { [@$_{qw(time_ms bytes count highest_bytes highest_ms)}] } @shown],
		[map { [@$_{qw(time_ms bytes count highest_bytes highest_ms)}] } @$truth[1 .. $#$truth]], 'it has the figures');
	my $most = max(map { $_->{highest_bytes} } @$truth);
	return if !$most;
	# Coordinates are rounded to a tenth of a pixel. The line and the scale may each be off by
	# half of that.
	my $exact = $most / 100;
	my @wrong = grep { abs($chart->{tops}[$_] - $truth->[$_ + 1]{highest_bytes}) > $exact } 0 .. $#shown;
	is_deeply(\@wrong, [], 'the areas are as high as the highest use') or diag("@{ $chart->{tops} }[@wrong]");
	@wrong = grep { abs($chart->{ends}[$_] - $truth->[$_]{bytes}) > $exact } 0 .. $#$truth;
	is_deeply(\@wrong, [], 'the line is as high as the use');
	like($svg, qr/>peak [\d.]+ [KMG]?i?B at @{[seconds($peak_ms)]} s</, 'the peak is named there');
	return;
}

sub check_sizes {
	my ($replay, $wanted, $first, $last, @asked) = @_;
	my @octaves = (0, 1, map { 2**$_ } 1 .. 40);
	my @quarters = (0 .. 3, map { my $low = 2**$_; map { $low + $low / 4 * $_ } 0 .. 3 } 2 .. 40);
	my $truth = sizes_of($replay, $wanted, $first, $last, @quarters);
	my $csv = table(ask('--histogram', '-o', 'csv', @asked));
	is_deeply({ map { ("$_->{memory} $_->{from_bytes}-$_->{to_bytes}" => [@$_{qw(allocated_bytes allocated_count live_bytes live_count)}]) } @$csv },
		$truth, 'sizes, as a table');
	my ($memory, %lines);
	for (split /\n/, ask('--histogram', @asked)) {
		$memory = $1 if m{^// (heap|committed|mapped|stack|reserved)$};
		my @words = split;
		$lines{"$memory $words[0]-$words[1]"} = [@words[3, 2, 5, 4]] if /^ *\d/;
	}
	is_deeply(\%lines, sizes_of($replay, $wanted, $first, $last, @octaves), 'and by powers of two');
	my $svg = ask('--histogram', '-o', 'svg', @asked);
	is(xml_error($svg), '', 'the picture is well-formed XML');
	unlike($svg, qr/>0 B</, 'whose scales, being logarithmic, have no 0');
	my @figures = $svg =~ /<title>(\d+) to (\d+) bytes: allocated (\d+) blocks of (\d+) bytes, live (\d+) of (\d+)</g;
	my @found;
	push @found, join ' ', "$figures[0]-$figures[1]", @figures[3, 2, 5, 4] and splice @figures, 0, 6 while @figures;
	my @wanted = map { join ' ', (split)[1], @{ $truth->{$_} } } keys %$truth;
	is_deeply([sort @found], [sort @wanted, @wanted], 'and has them twice, by blocks and by bytes');
	return;
}

# ---------------------------------------------------------------- other checks

sub check_least {
	my $replay = $replay{run};
	my %sums;
	$sums{ $_->{stack} } += $_->{bytes} for @{ $replay->allocations };
	my $least = (sort { $a <=> $b } values %sums)[keys(%sums) / 2];
	check('run', ['start', 'end'], ['--min-bytes', $least], sub { $sums{ $_->{stack} } >= $least });
	return;
}

sub check_systems {
	for my $args (map { my $what = $_; map { [$what, '-o', $_] } qw(text csv svg) } '--over-time', '--histogram') {
		my @got = map { run(tool('hdiff', $_, '--no-symbols', @$args, 'run.hrec'), dir => $dir) } tool_names();
		is($_->{status}, 0, "@$args") or diag($_->{err}) for @got;
		ok($got[0]{out} eq $got[1]{out}, "@$args: the same bytes");
	}
	return;
}

sub check_widths {
	for my $what ('--over-time', '--histogram') {
		SKIP: for my $columns (80, 132, 200) {
			skip('needs script(1)', 3) if $as_windows;
			my $shown = run(['script', '-qec', "stty cols $columns; '$hdiff' --no-symbols $what '$file{run}'", '/dev/null'], env => { COLUMNS => '' });
			is(widest($shown->{out}), $columns - 1, "$what on a terminal of $columns columns");
		}
		is(widest(ask($what, $file{run})), 79, 'and of what goes elsewhere');
	}
	return;
}

sub widest { my ($text) = @_; return max(map { length } grep { m{^ *\d} } split /\r?\n/, $text) }

sub check_texts {
	my $label = "<b_a=\"1\">_&_\e[31m_\xef\xbf\xbe_\xff";
	my $text = random_events(seed => 15, events => 40) =~ s{app\.exe$}{<&>.exe}mr;
	my $file = make_recording($text =~ s/(\ntime \d+\n)/$1mark $label\n/r, "$dir/" . file_name('a<b&.hrec'));
	my $name = file_name('a<b&.hrec') =~ s/&/&amp;/r =~ s/</&lt;/r;
	for my $what ('--over-time', '--histogram') {
		my $svg = ask($what, '-o', 'svg', $file);
		is(xml_error($svg), '', "$what: well-formed XML");
		unlike($svg, qr/\e/, 'nothing that a terminal obeys');
		like($svg, qr/: &lt;&amp;&gt;\.exe, process/, 'the image');
		like($svg, qr/\Q$name\E/, 'the file');
	}
	like(ask('--over-time', '-o', 'svg', $file), qr/>&lt;b_a=(?:"|&quot;)1(?:"|&quot;)&gt;_&amp;_\?\[31m_\?_\xef\xbf\xbd</, 'and the label are text');
	my ($peak) = ask('--over-time', $file) =~ /^\/\/ peak: (\d+) bytes/m;
	like(ask('--over-time', '--hex', $file), qr/^\/\/ peak: @{[sprintf '%x', $peak]} bytes.* peak\n/ms, 'numbers are hexadecimal where that is asked for');
	my $lines = ask('--over-time', $file);
	like($lines, qr/^\/\/ mark \d+\.\d+ s <b_a="1">_&_\?\[31m_/m, 'in text, too');
	unlike($lines, qr/\e/, 'without what a terminal obeys');
	return;
}

sub check_errors {
	my ($run, $dump) = ($file{run}, spew("$dir/dump.txt", dump_of($replay{run}, [], 0)));
	my @wrong = (
		[['--over-time', $dump], 'dump.txt', 'recording'],
		[['--over-time', $run, $file{short}], '--over-time', 'one recording'],
		[['--over-time', "$run\@5s"], '--over-time', 'without @MOMENT'],
		[['--histogram', '--transient', $run], '--transient', '--from'],
		[['--over-time', '--peak', $run], '--peak', '--from'],
		[['--over-time', '--list', $run], '--list', 'whole'],
		[['--over-time', '--extract', $run], '--extract'],
		[['--over-time', '--group', 'module', $run], '--over-time', '--group'],
		[['--over-time', '--max-growth', '1M', $run], '--over-time', '--max-growth'],
		[['--histogram', '--sum', $run], '--histogram', '--sum'],
		[['--over-time', '-o', 'json', $run], '-o json', 'svg'],
		[['--over-time', '--from', '5s', '--to', '1s', $run], '--from'],
		[['--over-time', '-f', $run, $run], 'run.hrec'],
	);
	refused($run, @wrong);
	return;
}
