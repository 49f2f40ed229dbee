#!/usr/bin/perl
# hdiff --by-mark: what each part of a recording, from a mark to the next, has kept, left and freed
# agrees with a replay that keeps every block separately; in every form, with filters, and as a
# limit.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP qw(decode_json);
use List::Util qw(max sum0);
use Test::More;
use Text::CSV;
use Hunt;
use Recordings;

my $dir = fresh_dir();
my $hdiff = "$root/build/linux/hdiff";
my %made = (
	run => { seed => 11, events => 6000 },
	attached => { seed => 12, events => 4000, attached => 300 },
	cut => { seed => 13, events => 3000, stop => 1 },
);
my ($files, $replays) = make_random($dir, %made);

subtest "$_: every part" => \&check_parts, $_ for sort keys %made;
subtest 'only some stacks' => \&check_filters;
subtest 'in every form' => \&check_forms;
subtest 'marks at the start, at the end and twice' => \&check_places;
subtest 'a sample' => \&check_sample;
subtest 'a limit for each mark' => \&check_limit;
subtest 'on both systems' => \&check_systems;
subtest 'errors are one line each' => \&check_errors;
done_testing;

sub ask {
	my @args = @_;
	my $result = run([$hdiff, '--no-symbols', '--by-mark', '-o', 'json', @args]);
	is($result->{status}, 0, "hdiff --by-mark @args") or diag($result->{err});
	return $result->{out} ? decode_json($result->{out}) : {};
}

sub totals { return { bytes => sum0(map { $_->{bytes} } @_), blocks => scalar @_ } }

# Returns the parts as the replay has them. `best` has the sums of the stacks that kept most.
sub parts_of {
	my ($replay, $wanted) = @_;
	$wanted //= \&Recordings::is_used;
	my @marks = ({ position => $replay->{start}, time => 0 }, @{ $replay->marks });
	my @parts;
	for my $i (0 .. $#marks) {
		my $from = $marks[$i]{position};
		my $to = $i < $#marks ? $marks[$i + 1]{position} : $replay->events;
		my @mine = grep { $wanted->() && $_->{alloc}{index} >= $from && $_->{alloc}{index} < $to } @{ $replay->allocations };
		my @kept = grep { !$_->{free} || $_->{free}{index} >= $to } @mine;
		my %by_stack;
		push @{ $by_stack{ $_->{stack} } }, $_ for @kept;
		my ($best) = sort { $b->{bytes} <=> $a->{bytes} || $b->{blocks} <=> $a->{blocks} } map { totals(@$_) } values %by_stack;
		push @parts, {
			label => $marks[$i]{label},
			kept => totals(@kept),
			left => totals(grep { !$_->{free} } @mine),
			transient => totals(grep { $_->{free} && $_->{free}{index} < $to } @mine),
			peak_bytes => $replay->peak_of($from, $to, \@mine)->{bytes},
			best => $best,
			by_stack => { map { $_ => totals(@{ $by_stack{$_} }) } keys %by_stack },
		};
	}
	return @parts;
}

# Checks hdiff's parts. The stack that kept most may be one of several that kept the same.
sub same {
	my ($what, $report, @truth) = @_;
	my @found = @{ $report->{parts} // [] };
	is(scalar @found, scalar @truth, "$what: parts") or return;
	my $figures = sub { my ($part) = @_; return { map { $_ => $part->{$_} } qw(label kept left transient peak_bytes) } };
	is_deeply([map { $figures->($_) } @found], [map { $figures->($_) } @truth], "$what: their figures");
	is_deeply([map { $_->{stack} && $_->{stack}{kept} } @found], [map { $_->{best} } @truth], "$what: what one stack kept at most");
	for my $i (grep { $found[$_]{stack} } 0 .. $#found) {
		my $name = join ' ', map { defined $_->{module} ? "$_->{module}+$_->{offset}" : $_->{address} } @{ $found[$i]{stack}{frames} };
		is_deeply($truth[$i]{by_stack}{$name}, $found[$i]{stack}{kept}, "$what: and which one, part $i") or diag($name);
	}
	return;
}

sub check_parts {
	my ($name) = @_;
	my $replay = $replays->{$name};
	cmp_ok(scalar @{ $replay->marks }, '>', 2, 'there are marks');
	my $report = ask('--force', $files->{$name});
	same($name, $report, parts_of($replay));
	is($report->{schema}, 'hdiff-marks/1', 'schema');
	is($report->{pid}, 4711, 'process');
	return;
}

sub check_filters {
	my $replay = $replays->{run};
	my %case = (
		'-i ^lib' => sub { Recordings::is_used() && $_->{stack} =~ /(?:^| )lib\+/ },
		'-x ^lib' => sub { Recordings::is_used() && $_->{stack} !~ /(?:^| )lib\+/ },
		'--module gone' => sub { Recordings::is_used() && $_->{stack} =~ /(?:^| )gone\+/ },
		'--heap reserved' => sub { $_->{heap} eq '2' },
		'--heap 7F0000' => sub { $_->{heap} eq '7F0000' },
	);
	same($_, ask(split(/ /), $files->{run}), parts_of($replay, $case{$_})) for sort keys %case;
	return;
}

sub check_forms {
	my $report = ask($files->{run});
	my $csv = run([$hdiff, '--no-symbols', '--by-mark', '-o', 'csv', $files->{run}]);
	my @lines = split /\r?\n/, $csv->{out};
	my $reader = Text::CSV->new({ binary => 1 });
	my @rows = map { $reader->parse($_) ? [$reader->fields] : [] } @lines;
	my @names = @{ shift @rows };
	my @found = map { my %of; @of{@names} = @$_; \%of } @rows;
	is_deeply([map { [@$_{qw(mark from_ms to_ms kept_bytes kept_count left_bytes left_count transient_bytes transient_count peak_bytes)}] } @found],
		[map { my $part = $_; [$part->{label} // '', @$part{qw(from_ms to_ms)}, (map { @{ $part->{$_} }{qw(bytes blocks)} } qw(kept left transient)), $part->{peak_bytes}] } @{ $report->{parts} }],
		'CSV has the figures of JSON');
	is_deeply([map { $_->{function} } @found], [map { my $frame = $_->{stack}{frames}[0]; $frame ? $frame->{module} ? "$frame->{module}+$frame->{offset}" : $frame->{address} : '(no stack recorded)' } @{ $report->{parts} }],
		'and the innermost function');
	my $text = run([$hdiff, '--no-symbols', '--by-mark', $files->{run}])->{out};
	my @shown = $text =~ /^ +(\d+) +\S+ \w+ +([\d,]+) +\S+ \w+ +\S+ \w+ +\S+ \w+  (\S+)$/mg;
	is_deeply(\@shown, [map { my $part = $report->{parts}[$_]; ($_ + 1, $part->{kept}{blocks}, $part->{label} // '(start)') } 0 .. $#{ $report->{parts} }], 'so has the text')
	    or diag($text);
	# -n: those that kept most, still in order of time
	my @order = sort { $report->{parts}[$b]{kept}{bytes} <=> $report->{parts}[$a]{kept}{bytes} } 0 .. $#{ $report->{parts} };
	is_deeply(ask('-n', 3, $files->{run})->{parts}, [map { $report->{parts}[$_] } sort { $a <=> $b } @order[0 .. 2]], '-n 3');
	like(run([$hdiff, '--no-symbols', '--by-mark', '-n', 3, $files->{run}])->{out}, qr/^@{[@order - 3]} more kept /m, '-n 3 as text');
	return;
}

# The replay's own parts are simple enough here to state them.
sub check_places {
	my $file = make_recording(<<'END', "$dir/places.hrec");
process 4711 12 64 1763600000000 1763600100250 0 0 C:\made\app.exe
module app 140000000 20000 77 C:\made\app.exe
stack s1 app+110 app+1000
heap h1 1E0000
kind k1 100 s1 h1
mark first
mark first
alloc k1
alloc k1
mark <a>"b"
free k1 0
alloc k1
free k1 2
mark last
END
	my $parts = ask($file)->{parts};
	my $brief = sub { my ($part) = @_; return [$part->{label}, map { @{ $part->{$_} }{qw(bytes blocks)} } qw(kept left transient)] };
	is_deeply([map { $brief->($_) } @$parts], [[undef, (0) x 6], ['first', (0) x 6], ['first', 200, 2, 100, 1, 0, 0], ['<a>"b"', 0, 0, 0, 0, 100, 1], ['last', (0) x 6]], 'five parts');
	is_deeply([map { $_->{peak_bytes} } @$parts], [0, 0, 200, 100, 0], 'their peaks');
	return;
}

# In a sample, a recorded block represents several. A part's sums are those of the window between
# its marks.
sub check_sample {
	my $file = make_recording(random_events(seed => 14, events => 3000) =~ s/^(process(?: \d+){5}) 0/$1 4096/r, "$dir/sample.hrec");
	my @parts = @{ ask($file)->{parts} };
	my @moments = ('start', (map { $_->{label} } @parts[1 .. $#parts]), 'end');
	my $checked = 0;
	for my $i (grep { "@moments[$_, $_ + 1]" !~ /again/ } 0 .. $#parts) {
		for my $class (['aifo', 'kept'], ['aifi', 'transient']) {
			my $window = run([$hdiff, '--no-symbols', '-o', 'json', '--class', $class->[0], '--from', $moments[$i], '--to', $moments[$i + 1], $file]);
			my $sum = decode_json($window->{out})->{totals}{selected}{new};
			is_deeply([@{ $parts[$i]{ $class->[1] } }{qw(bytes blocks)}], [@$sum{qw(bytes blocks)}], "part $i: $class->[1]");
			$checked++;
		}
	}
	cmp_ok($checked, '>', 3, 'parts were compared');
	return;
}

sub check_limit {
	my @parts = parts_of($replays->{run});
	my $most = max(map { $_->{kept}{bytes} } @parts[1 .. $#parts]);
	my $junit = "$dir/junit.xml";
	for my $limit ($most, $most - 1, 0) {
		my @over = grep { $_->{kept}{bytes} > $limit } @parts[1 .. $#parts];
		my $result = run([$hdiff, '--no-symbols', '--by-mark', '--max-growth', $limit, '--junit', $junit, $files->{run}]);
		is($result->{status}, @over ? 1 : 0, "--max-growth $limit");
		is(scalar(() = $result->{err} =~ /^hdiff: \S+: kept memory of /mg), scalar @over, 'a line for each mark that is over');
		my $xml = slurp($junit);
		is(run(['xmllint', '--noout', $junit])->{status}, 0, 'XML');
		is_deeply([$xml =~ /<testcase classname="hdiff" name="([^"]*)"/g], [map { $_->{label} } @parts[1 .. $#parts]], 'a test case for each mark');
		is_deeply([$xml =~ /<testcase [^>]*name="([^"]*)"[^>]*>\s*<failure /g], [map { $_->{label} } @over], 'and its failures');
		like($xml, qr/ tests="$#parts" failures="@{[scalar @over]}" errors="0" /, 'counted');
	}
	my ($one) = grep { $_->{kept}{blocks} > 1 } @parts[1 .. $#parts];
	is(run([$hdiff, '--no-symbols', '--by-mark', '--max-growth', '1T,' . max(map { $_->{kept}{blocks} } @parts[1 .. $#parts]), $files->{run}])->{status}, 0, 'a limit of blocks');
	is(run([$hdiff, '--no-symbols', '--by-mark', '--max-growth', '1T,1', $files->{run}])->{status}, 1, 'that is exceeded');
	# The part before the first mark has no name, and no limit.
	my $start = make_recording("process 1 0 64 0 1763600100250 0 0 a.exe\nheap h 10000\nkind k 99 - h\nalloc k\nmark m\n", "$dir/start.hrec");
	is(run([$hdiff, '--no-symbols', '--by-mark', '--max-growth', 0, $start])->{status}, 0, 'the start has no limit');
	# Labels in parentheses have no limit, either.
	my $end = make_recording("process 1 0 64 0 1763600100250 0 0 a.exe\nheap h 10000\nkind k 99 - h\nmark (setup)\nalloc k\nmark m\nmark (end)\nalloc k\n", "$dir/end.hrec");
	is(run([$hdiff, '--no-symbols', '--by-mark', '--max-growth', 0, '--junit', $junit, $end])->{status}, 0, 'nor have labels in parentheses');
	is_deeply([slurp($junit) =~ / tests="(\d+)"|<testcase classname="hdiff" name="([^"]*)"/g], [1, undef, undef, 'm'], 'which are no test cases');
	my $cut = run([$hdiff, '--no-symbols', '--by-mark', '--max-growth', '1T', '--junit', $junit, $files->{cut}]);
	is($cut->{status}, 2, 'a recording that is cut short is not judged');
	like(slurp($junit), qr/failures="0" errors="@{[scalar @{ $replays->{cut}->marks }]}"/, 'which each case has');
	return;
}

sub check_systems {
	for my $form (qw(text csv json)) {
		my @results = map { run(tool('hdiff', $_, '--no-symbols', '--by-mark', '-o', $form, $files->{run})) } tool_names();
		my $path = win($files->{run});
		my $in_json = $path =~ s/\\/\\\\/gr;
		$_->{out} =~ s/\r\n/\n/g, $_->{out} =~ s{\Q$path\E|\Q$in_json\E}{$files->{run}}g for @results;
		is($results[1]{out}, $results[0]{out}, "$form is the same");
	}
	return;
}

sub check_errors {
	my $bare = make_recording("process 1 0 64 0 1763600100250 0 0 a.exe\nheap h 10000\nkind k 99 - h\nalloc k\n", "$dir/bare.hrec");
	refused($files->{run},
		[['--by-mark', '-o', 'text', $bare], 'no marks', 'hsnap-mark.h'],
		[['--by-mark', '-o', 'text', "$root/tests/golden/new.txt"], 'not a recording'],
		[['--by-mark', '-o', 'text', $files->{run}, $files->{cut}], '--by-mark', 'one recording'],
		[['--by-mark', '-o', 'csv', "$files->{run}\@end"], '--by-mark', 'without @MOMENT'],
		[['--by-mark', '-o', 'html', $files->{run}], '--by-mark', 'text, json and csv'],
		(map { [['--by-mark', '-o', 'text', @$_, $files->{run}], $_->[0] =~ /list|extract|sizes|heaps/ ? $_->[0] : '--by-mark'] } ['--peak'], ['--from', '1s'], ['--over-time'], ['--list'], ['--extract'], ['--sum'],
			['--warm-up', 1], ['--group', 'function'], ['--sort', 'name'], ['--tree'], ['--sizes'], ['--heaps'], ['--min-bytes', 1], ['--max-growth-row', 1], ['--max-growth-net', 1], ['--max-growth', 'threads:1'],
			['--max-growth', 0, '--annotate']));
	return;
}
