#!/usr/bin/perl
# hdiff's trend as text. The truth comes from the synthetic series: the sums at each snapshot, their
# totals, and their intended course.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP;
use List::Util qw(max min sum0);
use Test::More;
use Hunt;
use Series;

my $dir = fresh_dir();
my $start = 1763632800000;
my $step = 600_000; # ten minutes
my @times = map { $start + $step * $_ } 1 .. 12;
my @n = 0 .. 11;
my %stacks = (
	leak => [map { [5000 + 1000 * $_, 5 + $_] } @n], # 6000 bytes and 6 blocks per hour
	slow => [map { [900 + 100 * $_, 9 + $_] } @n], # 600
	step => [map { $_ < 5 ? [700, 1] : [9000, 3] } @n],
	# ends at its first value
	saw => [map { [4000 + (0, 3000, 6000, 9000, 0)[$_ % 4], 4] } @n[0 .. 10], 12],
	falls => [map { [20_000 - 800 * $_, 30 - $_] } @n],
	flat => [map { [333, 3] } @n],
);
my %verdict = (leak => 'grows', slow => 'grows', step => 'grew once', saw => 'returns', falls => 'shrinks');
my @files = series("$dir", \@times, \%stacks, name => 'a-%02d.txt');

# Returns the sums of the selected stacks at each snapshot: [bytes, blocks].
sub sums_of {
	my ($stacks, @names) = @_;
	return map { my $i = $_; [map { my $k = $_; sum0(map { $stacks->{$_}[$i][$k] } @names) } 0, 1] } @n;
}

# Parses a trend. Adds to report()'s result each series, with its line and snapshots, and each row,
# with the line before the row.
sub trend {
	my ($text) = @_;
	my $report = report($text);
	my @notes = $text =~ m{^//     (\w[^\n]*)\n(?=[+-])}mg;
	for my $row (@{ $report->{rows} }) {
		my $note = shift @notes;
		@$row{qw(verdict rate low high blocks spark)} = ($1, $2, $3, $4, $5, $7)
		    if $note =~ m{^(\w+(?: once)?)(?:, ([+-][\d.]+) bytes/h \((-?[\d.]+) to (-?[\d.]+)\), ([+-][\d.]+) blocks/h)?(  (\S+))?$};
		($row->{name}) = map { $_->{function} // () } @{ $row->{frames} };
	}
	$report->{title} = [$text =~ m{^// (SERIES .*)$}mg];
	$report->{snapshots} = [map { [/^(\S+) +(\d+) bytes +(\d+) blocks  (\S+)$/] } $text =~ m{^//  +\d+  (.*)$}mg];
	($report->{sum}) = $text =~ m{^//   sum: (.*)$}m;
	return $report;
}

# Returns the bars of a series as documented, with eight levels between the lowest value and the
# highest.
sub bars {
	my @levels = split //, '.:-=+*#@';
	my ($low, $high) = (min(@_), max(@_));
	return join '', map { $levels[$high > $low ? min(7, int(8 * ($_ - $low) / ($high - $low))) : 0] } @_;
}

sub hdiff { return run(["$root/build/linux/hdiff", "-d", @_], dir => $dir) }

my $whole = hdiff('a-*.txt');
my $trend = trend($whole->{out});
subtest 'every snapshot and every stack that ever changed is listed' => sub {
	is($whole->{status}, 0, 'status 0');
	like($whole->{out}, qr{\A// hdiff \S+: trend by stack\n}, 'the first line names a trend');
	is_deeply($trend->{unread}, [], 'it is laid out as a comparison');
	like($trend->{title}[0], qr{^SERIES 1 of 1: app\.exe, process 4242, started \Q@{[iso($start)]}\E, 12 snapshots from \Q@{[iso($times[0])]} to @{[iso($times[-1])]}\E$}, 'one process');
	is_deeply($trend->{snapshots},
		[map { [iso($times[$_]), @{ (sums_of(\%stacks, keys %stacks))[$_] }, sprintf 'a-%02d.txt', $_] } @n],
		'each snapshot with its time, sums and file');
	is_deeply([sort map { $_->{name} } @{ $trend->{rows} }], [sort keys %verdict], 'what never changed is left out');
	for my $row (@{ $trend->{rows} }) {
		my $of = $stacks{ $row->{name} };
		is_deeply([@$row{qw(new old count_new count_old)}], [$of->[-1][0], $of->[0][0], $of->[-1][1], $of->[0][1]],
			"$row->{name}: the last against the first");
		is($row->{verdict}, $verdict{ $row->{name} }, "$row->{name}: $verdict{ $row->{name} }");
		is($row->{spark}, bars(map { $_->[0] } @$of), "$row->{name}: its bars");
	}
	is($trend->{total}[0], sum0(map { $_->[-1][0] - $_->[0][0] } values %stacks), 'the total is from first to last');
	like($trend->{sum}, qr{  \Q@{[bars(map { $_->[0] } sums_of(\%stacks, keys %stacks))]}\E$}, 'the bars of all of it');
};

subtest 'rates are what the series were made of' => sub {
	my %row = map { $_->{name} => $_ } @{ $trend->{rows} };
	for my $name (qw(leak slow)) {
		my $rate = 6 * ($stacks{$name}[1][0] - $stacks{$name}[0][0]);
		is($row{$name}{rate}, "+$rate", "$name: $rate bytes per hour");
		is_deeply([@{ $row{$name} }{qw(low high)}], [$rate, $rate], "$name: without a doubt");
		is($row{$name}{blocks}, '+6', "$name: 6 blocks per hour");
	}
	is($row{falls}{rate}, '-4800', 'what falls has a negative rate');
};

subtest 'practice 10: not one difference but many decide; the least doubtful leak comes first' => sub {
	is_deeply([map { $_->{name} } @{ $trend->{rows} }], [qw(leak slow step saw falls)], 'by verdict, then by slope');
	is(hdiff('--sort', 'verdict', 'a-*.txt')->{out}, $whole->{out}, 'as --sort verdict has it');
	my @rows = @{ trend(hdiff('--sort', 'slope', 'a-*.txt')->{out})->{rows} };
	is_deeply([map { $_->{rate} } @rows], [sort { $b <=> $a } map { $_->{rate} } @rows], '--sort slope');
	is($rows[0]{name}, 'leak', 'the fastest first');
	is_deeply([map { $_->{name} } @{ trend(hdiff('--sort', 'bytes', 'a-*.txt')->{out})->{rows} }],
		[sort { $stacks{$b}[-1][0] - $stacks{$b}[0][0] <=> $stacks{$a}[-1][0] - $stacks{$a}[0][0] } keys %verdict],
		'--sort bytes: by net growth');
	is_deeply([map { $_->{name} } @{ trend(hdiff('-n', 2, 'a-*.txt')->{out})->{rows} }], [qw(leak slow)], '-n 2');
};

subtest 'what is a trend\'s alone is refused of two dumps' => sub {
	for (['--sort', 'verdict'], ['--sort', 'slope'], ['--verdict', 'grows'], ['--max-growth', '1M/h']) {
		check_error(hdiff(@$_, @files[0, 1]), 'hdiff', "@$_", $_->[0], 'only to a trend');
	}
	check_error(hdiff('--verdict', 'grows,grew', 'a-*.txt'), 'hdiff', 'no verdict', 'grew-once');
	check_error(hdiff('--max-growth', '1M/m', 'a-*.txt'), 'hdiff', 'no rate', 'SIZE/h');
	check_error(hdiff('--spark', 'braille', 'a-*.txt'), 'hdiff', 'no bars', 'ascii');
};

subtest 'bars are ASCII but on a terminal that shows more' => sub {
	my $utf8 = hdiff('--spark', 'utf8', 'a-*.txt')->{out};
	like($utf8, qr{^//     grows, [^\n]*  \xe2\x96\x81(?:\xe2\x96.){10}\xe2\x96\x88\n}m, '--spark utf8: blocks');
	my %ascii;
	my @blocks = map { "\xe2\x96" . chr(0x81 + $_) } 0 .. 7;
	@ascii{@blocks} = split //, '.:-=+*#@';
	is($utf8 =~ s/(\xe2\x96.)/$ascii{$1}/gr, $whole->{out}, 'the same bars as in ASCII');
	is(hdiff('--spark', 'ascii', 'a-*.txt')->{out}, $whole->{out}, 'a pipe has ASCII');
	unlike(hdiff('--spark', 'none', 'a-*.txt')->{out}, qr{^//     grows,.*blocks/h .}m, '--spark none');
	local $ENV{LC_ALL} = 'C.UTF-8';
	is(hdiff('-f', 'report.txt', 'a-*.txt')->{status}, 0, 'into a file');
	is(slurp("$dir/report.txt"), $whole->{out}, 'a file is the same in any locale');
	SKIP: {
		skip 'there is no script(1) to make a terminal', 4 if $as_windows || !grep { -x "$_/script" } split /:/, $ENV{PATH};
		for (['C.UTF-8', 1], ['C', 0], ['de_DE.ISO-8859-1', 0], ['xx_XX.utf8', 1]) {
			my ($locale, $is_utf8) = @$_;
			my $shown = run(['script', '-qec', "'$root/build/linux/hdiff' -d 'a-*.txt'", '/dev/null'],
				dir => $dir, env => { LC_ALL => $locale })->{out};
			is($shown =~ /\xe2\x96\x81/ ? 1 : 0, $is_utf8, "a terminal, LC_ALL=$locale");
		}
	}
};

subtest 'practice 11: numbers in hexadecimal' => sub {
	my $hex = hdiff('--hex', 'a-*.txt')->{out};
	my ($name) = map { sprintf '%x', $_->[0] } $stacks{leak}[-1];
	like($hex, qr{^\+ +2af8 \( +$name - }m, 'of rows');
	like($hex, qr{^//  +1  \S+ +@{[sprintf '%x', (sums_of(\%stacks, keys %stacks))[0][0]]} bytes}m, 'of snapshots');
	like($hex, qr{^//     grows, \+6000 bytes/h }m, 'rates stay decimal');
};

subtest 'a report of a series is not read back' => sub {
	for my $how ([], ['--sort', 'bytes'], ['--group', 'module']) {
		check_error(hdiff('-o', 'json', spew("$dir/g.txt", hdiff(@$how, 'a-*.txt')->{out})), 'hdiff', "@$how", 'g.txt',
			'compare the dumps');
	}
	# Names of files and programs do not change how a report or its numbers are read.
	my @odd = series($dir, \@times, { leak => $stacks{leak} }, name => 'Numbers are hexadecimal %02d.txt',
		image => 'Numbers are hexadecimal, CUT SHORT: sums cover only the complete part');
	spew("$dir/odd.txt", hdiff(@odd[0, -1])->{out});
	my $read = hdiff('-o', 'json', 'odd.txt');
	is(decode_json($read->{out})->{rows}[0]{new}{bytes}, $stacks{leak}[-1][0], 'odd names are no words of the header');
};

subtest 'filters' => sub {
	my %filters = ( # the stacks that each filter leaves; all stacks share the frame app+FFF
		'--min-bytes 9000' => [qw(leak saw)], # 11000; 9000 up and down; 8800; 8300
		'--min-count 11' => [qw(leak slow falls)],
		'--min-bytes 8800 --min-count 2' => [qw(leak falls)],
		'-i saw' => [qw(saw)],
		'-x leak -x saw' => [qw(slow step falls)],
		'--module app' => [keys %verdict],
		'--heap 650000' => [keys %verdict],
		'--verdict grows' => [qw(leak slow)],
		'--verdict grew-once,returns' => [qw(step saw)],
		'--verdict grows -i slow' => [qw(slow)],
	);
	for my $filter (sort keys %filters) {
		my $got = trend(hdiff(split(/ /, $filter), 'a-*.txt')->{out});
		my @left = @{ $filters{$filter} };
		is_deeply([sort map { $_->{name} } @{ $got->{rows} }], [sort @left], "$filter: rows");
		is_deeply([map { [@$_[1, 2]] } @{ $got->{snapshots} }], [sums_of(\%stacks, @left)], "$filter: sums at each time");
		is(($got->{total} // [])->[0], sum0(map { $stacks{$_}[-1][0] - $stacks{$_}[0][0] } @left), "$filter: total");
	}
	spew("$dir/known.supp", "leak:step\nleak:saw\nleak:nothing\n");
	my $result = hdiff('--suppress', 'known.supp', 'a-*.txt');
	my $got = trend($result->{out});
	is_deeply([map { $_->{name} } @{ $got->{rows} }], [qw(leak slow falls)], '--suppress');
	is_deeply([map { [@$_[1, 2]] } @{ $got->{snapshots} }], [sums_of(\%stacks, qw(leak slow falls flat))],
		'what is suppressed is in no sum; what never changed is');
	like($result->{err}, qr/known\.supp:1: leak:step suppressed stacks: 1, bytes: 8300, blocks: 2$/m, 'net growth');
	like($result->{err}, qr/known\.supp:2: leak:saw suppressed stacks: 1, bytes: 0, blocks: 0$/m, 'of what returns none');
	like($result->{err}, qr/known\.supp:3: leak:nothing suppressed nothing/, 'and what took nothing');
};

subtest 'groups have series of their own' => sub {
	my $text = hdiff('--group', 'function', 'a-*.txt')->{out};
	my $number = qr/ *([+-]\d+|-|\?)/;
	my %group = map { m{^$number$number  ([a-z-]+) +([+-][\d.]+|-)$number$number  ([a-z-]+) +([+-][\d.]+)  (\S+) *  (\S+)$}
		? ($10 => { self => $1, verdict => $3, rate => $4, total => $5, whole => $7, whole_rate => $8, bars => $9 }) : () }
	    split /\n/, $text;
	is_deeply([sort keys %group], [sort 'app!?', map { "app!$_" } keys %verdict], 'a group for each function');
	for my $name (sort keys %verdict) {
		my $group = $group{"app!$name"};
		my $net = $stacks{$name}[-1][0] - $stacks{$name}[0][0];
		is_deeply([@$group{qw(self total)}], [map { sprintf '%+d', $net } 1, 2], "$name: net growth");
		is_deeply([@$group{qw(verdict whole)}], [map { $verdict{$name} =~ tr/ /-/r } 1, 2], "$name: the verdict of its stack");
		is($group->{bars}, bars(map { $_->[0] } @{ $stacks{$name} }), "$name: bars");
	}
	my $all = $group{'app!?'}; # the frame that all stacks have
	is_deeply([@$all{qw(self verdict rate)}], ['+0', '-', '-'], 'no stack begins in the outermost frame');
	is($all->{bars}, bars(map { $_->[0] } sums_of(\%stacks, keys %verdict)), 'and all go through it');
	my ($first) = $text =~ m{^ .*  (app!\S+)$}m;
	is($first, 'app!leak', 'the least doubtful leak comes first');
	unlike(hdiff('--group', 'module', '--spark', 'none', 'a-*.txt')->{out}, qr/@/, '--spark none');
};

subtest 'a limit per hour is for what keeps growing' => sub {
	# leak and slow grow by 6600 bytes an hour. The other stacks change neither this growth nor
	# its steadiness.
	my @two = ('-i', 'leak|slow');
	my $over = hdiff('--max-growth', '6599/h', @two, 'a-*.txt');
	is($over->{status}, 1, 'over it');
	like($over->{err}, qr{^hdiff: growth of 6\.4 KiB/h \(6600 bytes/h\) is over the limit of 6\.4 KiB/h \(6599 bytes/h\); fastest: app!leak < app\+FFF, by 5\.9 KiB/h \(6000 bytes/h\)$}m,
		'which is reported, with what grows fastest');
	is(hdiff('--max-growth', '6600/h', @two, 'a-*.txt')->{status}, 0, 'up to it');
	is(hdiff('--max-growth', '158400/d', @two, 'a-*.txt')->{status}, 0, 'per day');
	like(hdiff('--max-growth', '158399/d', @two, 'a-*.txt')->{err}, qr{growth of 154\.7 KiB/d \(158400 bytes/d\) is over}, 'over that');
	is(hdiff('--max-growth', '1/h', '-i', 'step|saw|falls', 'a-*.txt')->{status}, 0, 'what grew once or returns is over none');
	is(hdiff('--max-growth', '1/h', '--verdict', 'grew-once', 'a-*.txt')->{status}, 0, 'what is filtered out does not count');
	is(hdiff('--max-growth', '1/h', '-n', '0', 'a-*.txt')->{status}, 1, 'what is not shown does');
	my $both = hdiff('--max-growth', '1/h', '--max-growth', '7000/h', '--max-growth', '1', '--max-growth', '12099,100', @two, 'a-*.txt');
	is($both->{status}, 1, 'both kinds may be given');
	is_deeply([grep { /limit/ } split /\n/, $both->{err}], ['hdiff: growth of 11.8 KiB (12100 bytes) is 1 byte over the limit of 11.8 KiB'],
		'of each the last one counts');
};

subtest 'without times there are verdicts, and no rates' => sub {
	series($dir, \@times, \%stacks, name => 'timeless-%02d.txt', no_time => 1);
	my $result = hdiff('timeless-*.txt');
	my $got = trend($result->{out});
	is_deeply({ map { $_->{name} => $_->{verdict} } @{ $got->{rows} } }, \%verdict, 'verdicts');
	is_deeply([grep { defined } map { $_->{rate} } @{ $got->{rows} }], [], 'no rates');
	unlike($result->{out}, qr{bytes/h \(\d}, 'none for the sum either');
	is(scalar(() = $result->{out} =~ m{^//  +\d+  \(unknown time\) }mg), 12, 'no times');
	for my $force ([], ['--force']) {
		my $limit = hdiff(@$force, '--max-growth', '1T/h', 'timeless-*.txt');
		is($limit->{status}, 2, "@$force a limit per hour cannot be judged");
		like($limit->{err}, qr/cannot judge growth per hour: not all snapshots have a usable time/, 'which is reported');
		ok(length $limit->{out}, 'the report is written');
	}
	is(hdiff('--max-growth', '1T', 'timeless-*.txt')->{status}, 0, 'one from first to last can');
};

subtest 'each process is a series' => sub {
	my %second = (leak => [map { [100 + 50 * $_, 1 + $_] } @n], step => [map { [10, 1] } @n]);
	my @later = map { $_ + 86_400_000 } @times;
	series($dir, \@later, \%second, name => 'b-%02d.txt', pid => 77, start => $start + 80_000_000, slide => 0x10000);
	my $result = hdiff('a-*.txt', 'b-*.txt');
	my @texts = split m{(?=^// hdiff )}m, $result->{out};
	is(scalar @texts, 2, 'two reports');
	like($texts[$_], qr{^// SERIES @{[$_ + 1]} of 2: app\.exe, process @{[(4242, 77)[$_]]},}m, "of process number $_") for 0, 1;
	is_deeply([map { my $got = trend($_); [map { $_->{name} } @{ $got->{rows} }] } @texts],
		[[qw(leak slow step saw falls)], ['leak']], 'each with its own rows');
	is_deeply(trend(hdiff('--series', 2, 'a-*.txt', 'b-*.txt')->{out})->{rows}, trend($texts[1])->{rows}, '--series 2');
	my $over = hdiff('--max-growth', '299/h', 'a-*.txt', 'b-*.txt');
	like($over->{err}, qr{^hdiff: series 1: growth of [\d.]+ KiB/h \(\d+ bytes/h\) is over}m, 'the first is over a limit');
	like($over->{err}, qr{^hdiff: series 2: growth of 300 bytes/h is over the limit of 299 bytes/h; fastest: app!leak}m, 'and the second');
	my $warned = hdiff('-i', 'slow', '-i', 'nowhere', '--min-bytes', '1000', 'a-*.txt', 'b-*.txt')->{err};
	unlike($warned, qr/-i slow: warning/, 'what one of them has is found');
	is(scalar(() = $warned =~ /-i nowhere: warning/g), 1, 'a filter without a match is reported once');
	is(scalar(() = hdiff('--module', 'none', 'a-*.txt', 'b-*.txt')->{err} =~ /--module none: warning/g), 1, 'of modules, too');

	# If processes are joined, only growth within a process counts.
	my $joined = trend(hdiff('--across-restarts', 'a-*.txt', 'b-*.txt')->{out});
	like($joined->{title}[0], qr{^SERIES 1 of 1: app\.exe, 2 processes, 24 snapshots}, 'joined');
	my %row = map { $_->{name} => $_ } @{ $joined->{rows} };
	is_deeply([@{ $row{leak} }{qw(new old count_new count_old)}], [16_000 + 650, 5000 + 100, 16 + 12, 5 + 1],
		'the ends of both, added up');
	is($row{leak}{spark}, bars(map { $_->[0] } @{ $stacks{leak} }, @{ $second{leak} }) =~ s/^(.{12})/$1|/r, 'a mark between them');
	is($joined->{total}[0], sum0(map { $_->{bytes} } @{ $joined->{rows} }), 'rows add up to the total');
	is($joined->{total}[0], sum0(map { $_->[-1][0] - $_->[0][0] } values %stacks, values %second), 'which is the growth of both');
};

subtest 'damaged dumps' => sub {
	my @dumps = series($dir, [map { $_ + 1 } @times], { leak => $stacks{leak} }, name => 'c-%02d.txt', pid => 8);
	my $text = slurp($dumps[-1]);
	spew($dumps[-1], substr $text, 0, index($text, 'End of data'));
	my $result = hdiff('--max-growth', '1/h', @dumps);
	is($result->{status}, 2, 'given by name: status 2, whatever is over a limit');
	like($result->{err}, qr/growth of 5\.9 KiB\/h \(6000 bytes\/h\) is over/, 'which is reported');
	is(scalar @{ trend($result->{out})->{snapshots} }, 11, 'of what is whole');
	$result = hdiff('--force', '--max-growth', '1/h', @dumps);
	is($result->{status}, 1, '--force: the limit counts');
	like($result->{out}, qr{^//  +12  .*c-11\.txt, CUT SHORT: sums cover only the complete part$}m, 'and the report marks the cut dump');
};

subtest 'few snapshots' => sub {
	series("$dir", [@times[0 .. 1]], { leak => [[1, 1], [2, 2]] }, name => 'two-%d.txt', pid => 5);
	series("$dir", [$times[3]], { leak => [[9, 1]] }, name => 'one-%d.txt', pid => 6);
	my $result = hdiff('--max-growth', '1/h', 'two-0.txt', 'two-1.txt', 'one-0.txt');
	is($result->{status}, 2, 'no limit per hour can be judged');
	is(scalar(() = $result->{err} =~ /cannot judge growth per hour: fewer than three/g), 2, 'of neither');
	$result = hdiff('--max-growth', '1T/h', 'two-0.txt', 'two-1.txt', 'a-*.txt');
	is($result->{status}, 0, 'it is enough when one can be judged');
	like($result->{err}, qr/series \d: --max-growth cannot judge/, 'and that the other cannot be judged');
	# Sen's bounds require five or more snapshots of one process.
	my $sure = qr/^\/\/ [^\n]*with 95 percent$/m;
	unlike(hdiff(@files[0 .. 3])->{out}, $sure, 'four of a process: no confidence');
	like(hdiff(@files[0 .. 3])->{out}, qr/the least and the\s*\/\/ greatest/, 'but what the bounds are');
	like(hdiff(@files[0 .. 4])->{out}, $sure, 'five');
	# One of 3! 3! orders is not rarer than 5 of 200, but one of 4! 2! orders is.
	my @other = series($dir, [map { $_ + 86_400_000 } @times[0 .. 2]], { leak => [(1) x 3] }, name => 'o-%d.txt', pid => 9, start => $start + 80_000_000);
	unlike(hdiff('--across-restarts', @files[0 .. 2], @other)->{out}, $sure, 'three and three');
	like(hdiff('--across-restarts', @files[0 .. 3], @other[0, 1])->{out}, $sure, 'four and two');
};

subtest 'what changes within no process is no row' => sub {
	my @other = series($dir, [map { $_ + 86_400_000 } @times[0 .. 2]], { leak => [[7, 1], [8, 1], [9, 1]], flat => [([444, 4]) x 3], new => [([5, 1]) x 3] },
		name => 'p-%d.txt', pid => 10, start => $start + 80_000_000);
	my $joined = trend(hdiff('--across-restarts', @files, @other)->{out});
	is_deeply([sort map { $_->{name} } @{ $joined->{rows} }], [sort keys %verdict], 'though it differs between them');
	is($joined->{snapshots}[-1][1], 9 + 444 + 5, 'but it is in the sums');
};
done_testing;
