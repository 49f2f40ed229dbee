#!/usr/bin/perl
# How hdiff selects among many dumps by the files alone: folders, patterns, order, and series. Also
# the practical faults that occur when dumps are taken for weeks.
use strict;
use warnings;
use File::Glob ':bsd_glob';    # paths may have blanks
use FindBin qw($Bin);
use lib "$Bin/lib";
use File::Basename qw(basename);
use File::Copy qw(copy);
use JSON::PP qw(decode_json);
use IO::Compress::Gzip qw(gzip);
use IO::Compress::Zip qw(zip);
use POSIX qw(mkfifo);
use Test::More;
use Hunt;
use Series;

use constant { HOUR => 3_600_000, T0 => 1_763_634_348_000, START => 1_763_632_800_000 };

# Returns hdiff's result for the arguments: { status, err, series => [{ files, bytes => { PLACE =>
# [...] } }] }. Files have no folders. A row's place is its innermost frame's offset.
sub trend {
	my (@args) = @_;
	return trend_by('linux', @args);
}

sub trend_by {
	my ($side, @args) = @_;
	my $result = run(tool('hdiff', $side, '--no-symbols', '-o', 'json', @args));
	my $json = $result->{out} =~ /^\{/ ? decode_json($result->{out}) : {};
	my @series = map { {
		files => join(' ', map { basename($_->{path} =~ tr,\\,/,r) } @{ $_->{snapshots} }),
		bytes => { map { $_->{frames}[0]{offset} => join ' ', map { $_ // '-' } @{ $_->{bytes} } } @{ $_->{rows} } },
		parts => [map { $_->{count} } @{ $_->{parts} }],
	} } @{ $json->{series} // [] };
	return { %$result, series => \@series, files => join(' | ', map { $_->{files} } @series), is_trend => exists $json->{series} };
}

sub place { return sprintf '%X', 0x1000 + Series::offset_of($_[0]) }

# Checks that hdiff complains once about each of these files, in any order, and about no other file.
sub complains {
	my ($result, $status, $what, @files) = @_;
	my @lines = split /\n/, $result->{err};
	my $well = $result->{status} == $status && @lines == @files;
	for my $file (@files) {
		$well &&= 1 == grep { ref $file ? $_ =~ $file : /^hdiff: \S*\Q$file\E(?::\d+)?: warning: left out: / } @lines;
	}
	ok($well, $what) or diag("$result->{command}\nstatus $result->{status}\n$result->{err}");
	return;
}

my @six = map { T0 + $_ * HOUR } 0 .. 5;
my %leak = (leak => [map { 1000 + 100 * $_ } 0 .. 5], flat => [(500) x 6]);

# Writes dumps of one process. Each is [DATE, CLOCK in seconds, BYTES of the only block].
sub clocked {
	my ($dir, @dumps) = @_;
	return map {
		my ($date, $clock, $bytes) = @{ $dumps[$_] };
		spew("$dir/c$_.txt", "// hsnap: dump format=1 tool=1 time=$date\n"
			. '// hsnap: process id=42 start=2026-11-20T09:00:00.000Z' . (defined $clock ? ' clock=' . 1000 * $clock : '') . " bits=64 image=app.exe\n"
			. "// Loaded modules:\n//     140000000 24000 app.exe\n// Process modules enumerated.\n"
			. "*- - - Start of data for heap @ 650000 - - -\n" . sprintf("%X bytes + 8 at 1000 by BackTrace1\n\t140001000\n", $bytes)
			. "*- - - End of data for heap @ 650000 - - -\n// hsnap: end blocks=1 requested=$bytes overhead=8\n")
	} 0 .. $#dumps;
}

# Any two neighbouring snapshots are one hour apart, whatever their dates are. So the growth is 1
# MiB an hour.
subtest 'the running clock decides, not the date' => sub {
	my $mib = 1 << 20;
	my @good = map { [sprintf('2026-11-20T%02d:00:00.000Z', 10 + $_), 5000 + 3600 * $_, $mib * (1 + $_)] } 0 .. 4;
	my %bad = (
		'one is dated 2036' => sub { $_[0][4][0] = '2036-11-20T14:00:00.000Z' },
		'the first is dated 1999' => sub { $_[0][0][0] = '1999-01-01T00:00:00.000Z' },
		'the clock was changed back by 90 minutes' => sub { $_[0][$_][0] = sprintf '2026-11-20T%02d:30:00.000Z', 8 + $_ for 3, 4 },
	);
	for my $how (sort keys %bad) {
		my @dumps = map { [@$_] } @good;
		$bad{$how}->(\@dumps);
		for my $order ([0 .. 4], [4, 2, 0, 1, 3]) {
			my @files = (clocked(fresh_dir(), @dumps))[@$order];
			my $got = trend(@files);
			is($got->{files}, 'c0.txt c1.txt c2.txt c3.txt c4.txt', "$how: their order");
			like($got->{err}, qr/^hdiff: \S+c\d\.txt: warning: its date is \S+, but by the machine's uptime it was taken at 2026-11-20T\S+; that time is used$/m, 'a warning');
			is(run(tool('hdiff', 'linux', '--no-symbols', '-n', 1, '--max-growth', $$_[0], @files))->{status}, $$_[1], "a limit of $$_[0]") for ['1000K/h', 1], ['1050K/h', 0];
		}
		my $since = trend('--since', '2h', clocked(fresh_dir(), @dumps));
		is($since->{files}, 'c2.txt c3.txt c4.txt', "$how: the last two hours");
	}
};

# A time server corrects a wrong clock after the third of seven hourly dumps. The last four dates
# are right, so the first dump was taken at 8 o'clock.
subtest 'dates after a correction of the clock stay' => sub {
	my $date = sub { sprintf '2026-11-20T%02d:00:00.000Z', $_[0] };
	my $moved = sub { my ($n, $by) = @_; "c$n.txt: warning: its date is " . $date->(8 + $n + $by) . q{, but by the machine's uptime it was taken at } . $date->(8 + $n) . '; that time is used' };
	for my $by (2, -2) {
		my $dir = fresh_dir();
		my @files = clocked($dir, map { [$date->(8 + $_ + ($_ < 3 ? $by : 0)), 5000 + 3600 * $_, 1000 * (1 + $_)] } 0 .. 6);
		my $sees = sub {
			my ($what, $from, $to, @args) = @_;
			my $got = run(tool('hdiff', 'linux', '--no-symbols', '-o', 'json', @args));
			my $json = decode_json($got->{out});
			my %time = map { basename($_->{path}) => $_->{time} } @{ $json->{inputs} // $json->{series}[0]{snapshots} };
			is_deeply(\%time, { map { ("c$_.txt" => $date->(8 + $_)) } $from .. $to }, "$by h, $what: the times") or diag($got->{command}, explain(\%time));
			is_deeply([sort map { s{^hdiff: .*/}{}r } grep { /uptime it was taken at/ } split /\n/, $got->{err}],
				[map { $moved->($_, $by) } grep { $_ < 3 } $from .. $to], "$by h, $what: the warnings") or diag($got->{err});
			return $got->{err};
		};
		$sees->('all', 0, 6, $dir);
		$sees->('a pair', 2, 3, @files[2, 3]);
		$sees->('a pair in the wrong order', 2, 3, @files[3, 2]);
		$sees->('--until', 0, 2, '--until', '2026-11-20T10:30', $dir);
		$sees->('--since, a span', 4, 6, '--since', '2h', $dir);
		$sees->('both', 1, 4, '--since', '2026-11-20T08:30', '--until', '2026-11-20T12:30', $dir);
		my $err = $sees->('--since', 3, 6, '--since', '2026-11-20T11:00', $dir);
		my @out = map { m{/(c\d)\.txt: warning: left out: its date is within --since and --until, but by} } split /\n/, $err;
		is("@out", $by > 0 ? 'c1 c2' : '', "$by h: dumps that only their dates include");
		my ($columns) = split /\n/, run(tool('hdiff', 'linux', '--no-symbols', '-o', 'csv', $dir))->{out};
		is_deeply([$columns =~ /bytes (2026[^,]*)/g], [map { $date->(8 + $_) } 0 .. 6], "$by h: the columns of CSV");
	}
};

subtest 'two dumps' => sub {
	my $pair = sub { run(tool('hdiff', 'linux', '--no-symbols', '--max-growth', 0, clocked(fresh_dir(), @_))) };
	my $got = $pair->(['2026-11-20T10:00:15.000Z', 100, 1000], ['2026-11-20T10:00:10.000Z', 110, 2000]);
	is($got->{status}, 1, 'a leak while the clock was changed back does not pass');
	unlike($got->{err}, qr/it is NEW/, 'the files are in order');
	$got = $pair->(['2026-11-20T10:00:15.000Z', undef, 1000], ['2026-11-20T08:00:00.000Z', undef, 2000]);
	like($got->{err}, qr/c1\.txt: warning: its date is 2026-11-20T08:00:00.000Z, before its process began \(2026-11-20T09:00:00.000Z\): the clock was changed$/m, 'a date before the process began');
	unlike($pair->(['2026-11-20T10:00:00.000Z', 100, 1000], ['2026-11-20T10:00:10.020Z', 110, 1000])->{err}, qr/warning/, 'clocks that agree');
	is($pair->(['2026-11-20T10:00:00.000Z', "9" x 16, 1000], ['2026-11-20T10:00:10.000Z', 110, 1000])->{status}, 2, 'a clock that no machine has');
};

# The dates are known to be wrong, and not all dumps have a running clock. A limit gives status 2,
# and a line has the reason.
subtest 'no rate by a wrong date' => sub {
	my $date = sub { sprintf '2026-11-20T%02d:00:00.000Z', $_[0] };
	my $early = qr/^hdiff: \S+c0\.txt: warning: its date is 1998-03-04T10:00:00.000Z, before its process began .*: the clock was changed$/m;
	my $ahead = qr/^hdiff: \S+c3\.txt: warning: its date, 2941-03-04T13:00:00.000Z, lies in the future/m;
	my @tests = (
		[$early, ['1998-03-04T10:00:00.000Z'], [$date->(11)], [$date->(12)]],
		[$early, ['1998-03-04T10:00:00.000Z', 100], [$date->(11)], [$date->(12)]],
		[$ahead, [$date->(10)], [$date->(11)], [$date->(12)], ['2941-03-04T13:00:00.000Z']]);
	for (@tests) {
		my ($words, @dumps) = @$_;
		my @files = clocked(fresh_dir(), map { [@{ $dumps[$_] }[0, 1], 1000 * (1 + $_)] } 0 .. $#dumps);
		for my $limit ('1/h', '500/h', '9999K/h') {
			my $got = run(tool('hdiff', 'linux', '--no-symbols', '--max-growth', $limit, @files));
			is($got->{status}, 2, "$limit: its status");
			my @said = $got->{err} =~ /$words/g;
			is(@said, 1, 'one warning') or diag($got->{err});
			like($got->{err}, qr/^hdiff: --max-growth cannot judge growth per hour: the date of \S+c\d\.txt is wrong$/m, 'the limit is not judged');
		}
		is(run(tool('hdiff', 'linux', '--no-symbols', '--max-growth', $$_[0], @files))->{status}, $$_[1], "growth from end to end: $$_[0]")
		    for [100, 1], ['9999K', 0];
		my $report = run(tool('hdiff', 'linux', '--no-symbols', '-o', 'text', @files))->{out};
		unlike($report, qr/future/, 'no report depends on when it is made');
		unlike($report, qr{B/h\b}, 'no rate of a dump from before its process began') if $words == $early;
	}
	my @clocked = clocked(fresh_dir(), map { ["2941-03-04T1$_:00:00.000Z", 100 + 3600 * $_, 1000 * (1 + $_)] } 0 .. 2);
	is(run(tool('hdiff', 'linux', '--no-symbols', '--max-growth', $$_[0], @clocked))->{status}, $$_[1], "the running clock of all: $$_[0]")
	    for ['999/h', 1], ['1001/h', 0];
	my $dir = fresh_dir();
	my @log = series($dir, [map { T0 + $_ * HOUR } 0 .. 2], { leak => [1000, 2000, 3000] }, name => 'l%d.txt');
	for my $n (0 .. 2) {
		my ($text, $when) = (slurp($log[$n]), $n < 2 ? "2026-03-04 1$n:00" : '2939-01-01 00:00');
		$text =~ s{^// hsnap: (?:dump|process).*\n}{}mg;
		spew($log[$n], "// \n// UMDH: version 10.0.19041.1: Logtime $when - Machine=SRV3 - PID=7\n// \n$text");
	}
	my $got = run(tool('hdiff', 'linux', '--no-symbols', '--max-growth', '9999K/h', @log));
	is($got->{status}, 2, 'a log of UMDH');
	like($got->{err}, qr/l2\.txt: warning: its date, 2939-01-01T00:00, lies in the future/, 'and its warning');
};

# c0 and c2 are two hours apart. The clock was set back after c1, which has no running clock.
subtest 'a dump without the clock among dumps that show that it was set' => sub {
	my @dumps = (['2026-11-20T10:00:00.000Z', 7200, 1000], ['2026-11-20T11:00:00.000Z', undef, 2000], ['2026-11-20T09:30:00.000Z', 14400, 3000]);
	my $got = trend(clocked(fresh_dir(), @dumps));
	is($got->{files}, 'c0.txt c2.txt c1.txt', 'the date of the newest dump counts');
	like($got->{err}, qr/c0\.txt: warning: its date is 2026-11-20T10:00:00.000Z, but by .* at 2026-11-20T07:30:00.000Z; that time is used$/m, 'the wrong date');
	like($got->{err}, qr/c1\.txt: warning: its time is unknown: other dumps of its process have wrong dates, .* uptime$/m, 'and what is not known');
	for my $limit (0, '9999K', '9999K/h') {
		$got = run(tool('hdiff', 'linux', '--no-symbols', '--max-growth', $limit, clocked(fresh_dir(), @dumps)));
		is($got->{status}, 2, "a limit of $limit");
		like($got->{err}, qr/cannot judge growth(?: per hour)?: the date of \S+c1\.txt is not known$/m, 'the reason');
	}
	$dumps[2][0] = '2026-11-20T12:00:00.000Z';
	is(run(tool('hdiff', 'linux', '--no-symbols', '--max-growth', '9999K/h', clocked(fresh_dir(), @dumps)))->{status}, 0, 'clocks that agree');
};

subtest 'three or more snapshots are looked at for a trend, in the order of their own times' => sub {
	my $dir = fresh_dir();
	# Their names and the files' times suggest the opposite order.
	my @files = series($dir, $_ = [reverse @six], { leak => [reverse @{ $leak{leak} }], flat => $leak{flat} }, name => 'd%d.txt');
	utime 1_600_000_000 + $_ * 1000, 1_600_000_000 + $_ * 1000, $files[$_] for 0 .. 5;
	my $want = 'd5.txt d4.txt d3.txt d2.txt d1.txt d0.txt';
	for (["by name", @files], ["a folder", $dir], ["a folder with a slash", "$dir/"], ["a pattern", "$dir/d*.txt"],
		["a pattern of one letter", "$dir/d?.txt"], ["upper case", "$dir/D?.TXT"], ["mixed", $files[3], $dir]) {
		my ($what, @args) = @$_;
		my $result = trend(@args);
		is($result->{files}, $want, "$what: all, the oldest first");
		is($result->{series}[0]{bytes}{ place('leak') }, "@{ $leak{leak} }", "$what: the series of the stack");
		ok(!exists $result->{series}[0]{bytes}{ place('flat') }, "$what: what never changes has no row");
		is($result->{status}, 0, "$what: status 0");
		my @twice = $what eq 'mixed' ? ('d3.txt') : ();
		complains($result, 0, "$what: complaints", @twice);
	}
	my $result = run(tool('hdiff', 'linux', '--no-symbols', @files[0, 5]));
	like($result->{out}, qr/^\+\s+500 \(\s*1500 -\s+1000\)/m, 'two by name: the older one is OLD');
	like($result->{err}, qr/^hdiff: \S+d0\.txt: warning: counts as NEW: taken after \S+d5\.txt$/m, 'which a line reports');
	my $pair = fresh_dir();
	spew("$pair/$_", slurp("$dir/$_")) for qw(d0.txt d5.txt);
	$result = run(tool('hdiff', 'linux', '--no-symbols', $pair));
	like($result->{out}, qr/^\+\s+500 \(\s*1500 -\s+1000\)/m, 'two of a folder: the older one is OLD');
	like($result->{out}, qr{^// OLD: \S+/d5\.txt}m, 'and reported as such');
	ok(!trend($pair)->{is_trend}, 'two make no trend');
	unlink "$pair/d0.txt";
	$result = run(tool('hdiff', 'linux', '--no-symbols', $pair));
	like($result->{out}, qr/^\+\s+1000 \(\s*1000 -\s+0\)/m, 'one of a folder is read as one dump');
	check_error(run(tool('hdiff', 'linux', '--no-symbols', fresh_dir())), 'hdiff', 'an empty folder', 'the folder contains no file');
	check_error(run(tool('hdiff', 'linux', '--no-symbols', "$dir/x*")), 'hdiff', 'a pattern of nothing', 'x*', 'no file matches');
	check_error(run(tool('hdiff', 'linux', '--no-symbols', "$dir/none/x*")), 'hdiff', 'a pattern in no folder', 'none');
};

subtest 'a file whose name is a pattern goes first' => sub {
	needs_linux('names with asterisks');
	my $dir = fresh_dir();
	my @files = series($dir, [@six[0 .. 2]], { leak => [1, 2, 3] }, name => 'a%d.txt');
	my ($plain) = series($dir, [$six[3]], { leak => [4] }, name => 'x%d.txt');
	rename $plain, my $star = "$dir/a*.txt";
	is(trend($star, @files[0, 1])->{files}, 'a0.txt a1.txt a*.txt', 'the file itself');
	is(trend("$dir/a?.txt")->{files}, 'a0.txt a1.txt a2.txt a*.txt', 'another pattern finds it too');
};

# The first practical fault: the comparison starts while a dump is being written.
subtest 'practice 1: partial dumps are passed over by their names, or named and left out' => sub {
	my $dir = fresh_dir();
	my @files = series($dir, [@six], {%leak}, name => 'd%d.txt');
	my $whole = slurp($files[5]);
	rename $files[5], "$files[5].123.tmp";
	spew("$dir/app.log", "2026-11-20T10:25:48Z a line\n");
	spew("$dir/app.log.1", "2026-11-20T10:25:48Z a line\n");
	spew("$dir/.hidden", 'x');
	mkdir "$dir/older.txt";
	spew("$dir/older.txt/x.txt", $whole);
	# A link counts as its target. A pipe would block this test. Windows has neither.
	my @links = $as_windows ? () : (['.pipe', 'to-pipe.txt'], ['older.txt', 'to-folder.txt'], ['/dev/null', 'to-device.txt']);
	mkfifo("$dir/$_", 0600) || die for @links ? qw(pipe.txt .pipe) : ();
	symlink $_->[0], "$dir/$_->[1]" or die for @links;
	my $result = trend($dir);
	is($result->{files}, 'd0.txt d1.txt d2.txt d3.txt d4.txt', 'not what is being written, logs, hidden files, folders');
	complains($result, 0, 'without a word');
	$result = trend("$dir/*");
	is($result->{files}, 'd0.txt d1.txt d2.txt d3.txt d4.txt', 'the same by a pattern');
	complains($result, 0, 'neither');
	SKIP: {
		skip('needs pipes, devices and links in a folder', 2) if $as_windows;
		symlink "$dir/older.txt/x.txt", "$dir/to-dump.txt" or die;
		symlink 'nothing', "$dir/to-nothing.txt" or die;
		$result = trend($dir);
		is($result->{files}, 'd0.txt d1.txt d2.txt d3.txt d4.txt to-dump.txt', 'a link to a dump is a dump');
		complains($result, 0, 'one that leads nowhere is named', 'to-nothing.txt');
		unlink map { "$dir/$_" } qw(to-dump.txt to-nothing.txt);
	}
	is(trend("$dir/*.tmp", @files[0, 1])->{files}, 'd0.txt d1.txt d5.txt.123.tmp', 'unless the pattern includes it');
	spew($files[5], substr $whole, 0, length($whole) / 2);
	spew("$dir/foreign.txt", "no dump\n");
	spew("$dir/empty.txt", '');
	spew("$dir/report.txt", run(tool('hdiff', 'linux', '--no-symbols', @files[0, 1]))->{out});
	spew("$dir/bad.txt", slurp($files[4]) =~ s/^(.* bytes) in /$1 on /mr);
	my @bad = qw(d5.txt foreign.txt empty.txt report.txt bad.txt);
	$result = trend($dir);
	is($result->{files}, 'd0.txt d1.txt d2.txt d3.txt d4.txt', 'damaged and foreign files are left out');
	complains($result, 0, 'each is named in a line, and the status stays', @bad);
	$result = trend(@files[0 .. 4], map { "$dir/$_" } @bad);
	is($result->{files}, 'd0.txt d1.txt d2.txt d3.txt d4.txt', 'the same by name: the rest still answers');
	complains($result, 2, 'and the status is 2', @bad);
	$result = trend("$dir/empty.txt", $dir);
	complains($result, 2, 'an unusable file is not reported as a duplicate', @bad);
	$result = trend(@files[0 .. 2], "$dir/missing.txt");
	is($result->{files}, 'd0.txt d1.txt d2.txt', 'a file that is not there');
	complains($result, 2, 'and is named', 'missing.txt');
	is(trend('--force', @files)->{files}, 'd0.txt d1.txt d2.txt d3.txt d4.txt d5.txt', '--force: what is cut is used as far as it goes');
	is(trend('--force', @files)->{status}, 0, 'with status 0');
	check_error(trend('-f', $files[2], $dir), 'hdiff', 'a dump of the folder is not written over', 'd2.txt', 'is not replaced')
	    if unlink map { "$dir/$_" } @bad;
	is(run(tool('hdiff', 'linux', '--no-symbols', '-o', 'json', '-f', "$dir/report.json", $dir))->{status}, 0, 'a report in the folder');
	$result = run(tool('hdiff', 'linux', '--no-symbols', '-o', 'json', '-f', "$dir/report.json", $dir));
	is("$result->{status}$result->{err}", '0', 'that is written again is passed over');
	my $alone = fresh_dir();
	spew("$alone/d.txt", slurp($files[0]));
	check_error(trend('-f', "$alone/d.txt", $alone), 'hdiff', 'nor is the only one', 'd.txt', 'is not replaced');
	my $only = fresh_dir();
	spew("$only/$_.txt", "no dump\n") for 1 .. 3;
	my @lines = split /\n/, trend($only)->{err};
	like($lines[-1], qr/^hdiff: .*\bis not a heap dump \(none of 3 files/, 'nothing that can be used is an error');
};

subtest 'practice 1: of several files found, one that is left is no growth' => sub {
	my $dir = fresh_dir();
	my @files = series($dir, [@six[0, 1]], {%leak}, name => 'd%d.txt');
	my $whole = slurp($files[1]);
	for (['cut', substr $whole, 0, length($whole) / 2], ['foreign', "no dump\n"], ['a copy', slurp($files[0])]) {
		my ($what, $text) = @$_;
		spew($files[1], $text);
		for my $arg ($dir, "$dir/d?.txt") {
			my $result = trend('--max-growth', '500', $arg);
			is("$result->{status} $result->{files}", '2 d0.txt', "$what, $arg: a series of one, of which no limit can be judged");
			complains($result, 2, "$what, $arg: said", 'd1.txt', qr/^hdiff: --max-growth cannot judge growth: /);
		}
	}
	spew($files[1], substr $whole, 0, length($whole) - 100);
	ok(!trend('--force', $dir)->{is_trend}, '--force: two dumps, whatever is missing');
	unlink $files[1];
	run(tool('hdiff', 'linux', '--no-symbols', '-o', 'json', '-f', "$dir/report.json", $dir)) for 1, 2;
	is(decode_json(slurp("$dir/report.json"))->{schema}, 'hdiff/1', 'the report is no dump that is missing');
	unlink "$dir/report.json";
	ok(!trend($files[0], $dir)->{is_trend}, 'nor is one that is named, too');
};

# The second practical fault: names that are reused, or that contain a wrong time.
subtest 'practice 2: times count, not names that collide or lie; the same snapshot counts once' => sub {
	my $dir = fresh_dir();
	mkdir "$dir/$_" for qw(a b);
	series("$dir/a", [@six[0, 2, 4]], { leak => [1, 3, 5] }, name => 'umdh-08-11-%d.txt');
	my @b = series("$dir/b", [@six[1, 3, 5]], { leak => [2, 4, 6] }, name => 'umdh-08-11-%d.txt');
	my $result = trend("$dir/a", "$dir/b");
	is($result->{series}[0]{bytes}{ place('leak') }, '1 2 3 4 5 6', 'names that are the same in two folders');
	spew("$dir/a/copy.txt", slurp($b[1]));
	link $b[2], "$dir/a/link.txt";
	$result = trend("$dir/a", "$dir/b");
	is($result->{series}[0]{bytes}{ place('leak') }, '1 2 3 4 5 6', 'a copy and a link count once');
	complains($result, 0, 'and are named', 'b/umdh-08-11-1.txt', 'b/umdh-08-11-2.txt');
	# UMDH states only the minute. Two logs of one minute are still two logs.
	my $in_no_time = qr/^hdiff: \S+: warning: all dumps of its process record the same time: .*no rates/;
	my @umdh = map { umdh("$dir/minute-$_.txt", '2026-11-20 10:30', 4711, 1000 + 10_000_000 * $_) } 0 .. 2;
	$result = trend(@umdh);
	is($result->{files}, 'minute-0.txt minute-1.txt minute-2.txt', 'three of one minute are three');
	complains($result, 0, 'which tell nothing of growth per hour', $in_no_time);
	my $series = decode_json($result->{out})->{series}[0];
	is(scalar(grep { defined $_->{bytes_per_hour} } map { $_->{trend} } $series, @{ $series->{rows} }), 0, 'so there are no rates');
	my $limit = trend('--max-growth', '1M/h', @umdh);
	is($limit->{status}, 2, 'and a limit per hour is not kept');
	like($limit->{err}, qr/^hdiff: --max-growth cannot judge growth per hour: /m, 'which is reported');
	my $text = run(tool('hdiff', 'linux', '--no-symbols', @umdh))->{out};
	unlike($text, qr{bytes/h \(\d}, 'the text has none either');
	like($text, qr{^// [^\n]*all record the same}m, 'and states why');
	# If there are several processes, a violation in a process that has no trend does not count.
	my @later = map { umdh("$dir/later-$_.txt", "2026-11-20 1$_:30", 4712, 2000 + $_) } 1, 2;
	$result = trend('--across-restarts', '--max-growth', '1M/h', @umdh, @later);
	is("$result->{status} $result->{files}", "2 minute-0.txt minute-1.txt minute-2.txt later-1.txt later-2.txt", 'two of another process are no help');
	is(trend('--max-growth', '1M/h', @umdh[0, 1], umdh("$dir/next.txt", '2026-11-20 10:31', 4711, 1001))->{status}, 0, 'a minute later is');
};

# The third practical fault: a service restarts, and the system reuses its pid for another process.
# The banner of a UMDH log has only the minute, so its text shows whether it is a copy.
subtest 'copies of logs of UMDH count once' => sub {
	my $dir = fresh_dir();
	my @logs = map { umdh(sprintf('%s/umdh_%d.log', $dir, $_), sprintf('2025-10-26 0%d:00', $_), 4711, 1000 + 100 * $_) } 0 .. 3;
	my $all = 'umdh_0.log umdh_1.log umdh_2.log umdh_3.log';
	my @limits = ([299, 1], [300, 0], ['99/h', 1], ['100/h', 0]);
	my $check = sub {
		my ($what, $copies, @args) = @_;
		complains(trend(@args), 0, "$what: reported", @$copies);
		is(trend(@args)->{files}, $all, "$what: once");
		for my $limit (@limits) {
			is(run(tool('hdiff', 'linux', '--no-symbols', '--max-growth', $limit->[0], @args))->{status}, $limit->[1], "$what: $limit->[0]");
		}
	};
	$check->('no copy', [], $dir);
	spew("$dir/umdh_0 - Copy.log", slurp($logs[0]));
	$check->('of the first', ['umdh_0 - Copy.log'], $dir);
	spew("$dir/Copy of umdh_3.log", slurp($logs[3]));
	unlink "$dir/umdh_0 - Copy.log";
	my $last = trend($dir);
	is($last->{files}, 'umdh_0.log umdh_1.log umdh_2.log Copy of umdh_3.log', 'of the last, sorted before it');
	complains($last, 0, 'reported', 'umdh_3.log');
	unlink "$dir/Copy of umdh_3.log";
	gzip(\slurp($logs[1]) => "$dir/umdh_1.log.gz") or die;
	spew("$dir/umdh_2 (2).log", "\xff\xfe" . pack 'v*', unpack 'C*', slurp($logs[2]));
	$check->('packed, and as UTF-16', ['umdh_1.log.gz', 'umdh_2 (2).log'], $dir);
	unlink "$dir/umdh_1.log.gz", "$dir/umdh_2 (2).log";
	spew("$dir/Copy of umdh_2.log", slurp($logs[2]) =~ tr/\r//dr);
	is(trend($dir)->{files}, 'umdh_0.log umdh_1.log Copy of umdh_2.log umdh_3.log', 'with other line ends, once');
	my $other = fresh_dir();
	spew("$other/b.txt", slurp($logs[3]));
	$check->('given by name', ['b.txt'], @logs, "$other/b.txt");
	like(run(["$root/build/linux/hdiff", '--no-symbols', '--sum', $logs[3]])->{out}, qr/^Sum of 1 dump$/m, 'one dump');
	my @tie = map { umdh("$other/t$_.txt", "2025-11-04 09:0$_", 4711, 1300 + $_) } 0 .. 2;
	complains(trend(@tie, spew("$other/t3.txt", slurp($tie[2]) =~ s/at 200000 by/at 300000 by/r)), 0, 'a tie', qr/: warning: 1 dump of its series records the same time as the one before: such/);
	unlink @tie, "$other/t3.txt";
	# Another log of the same minute is no copy, even with equal sums.
	umdh("$other/a.txt", '2025-10-26 03:00', 4711, 1300);
	spew("$other/a.txt", slurp("$other/a.txt") =~ s/at 200000 by/at 300000 by/r);
	my $both = trend($other);
	ok($both->{status} == 0 && !$both->{is_trend}, 'equal sums, other blocks: two dumps to compare');
	my $sum = sub { run(tool('hdiff', 'linux', '--no-symbols', '--sum', '--max-growth', @_)) };
	umdh("$other/a.txt", '2025-10-26 03:00', 4712, 500);
	spew("$other/c.txt", slurp("$other/b.txt"));
	for my $files ([$other], [map { "$other/$_.txt" } qw(a b c)], [map { "$other/$_.txt" } qw(c b a)]) {
		is($sum->($_->[0], @$files)->{status}, $_->[1], "a sum of $_->[0]") for [1799, 1], [1800, 0];
	}
	spew("$other/c.txt", slurp("$other/b.txt") =~ s/at 200000 by/at 300000 by/r);
	check_error($sum->(9999, $other), 'hdiff', 'a second log of a process', 'c.txt', 'from the same process as', 'b.txt');
	my $pair = fresh_dir();
	spew("$pair/$_.txt", slurp($logs[0])) for 1, 2;
	my $found = run(tool('hdiff', 'linux', '--no-symbols', '--max-growth', 0, $pair));
	is($found->{status}, 2, 'two copies are no growth');
	complains($found, 2, 'which is reported', '2.txt', qr/cannot judge growth: fewer than two snapshots/);
};

subtest 'practice 3: a reused pid is another process, and never continues a series' => sub {
	my $dir = fresh_dir();
	series($dir, [@six], {%leak}, name => 'a%d.txt');
	my @more = map { $_ + 24 * HOUR } @six[0 .. 3];
	my $later = T0 + 23 * HOUR;
	series($dir, \@more, { leak => [1, 2, 3, 4] }, name => 'b%d.txt', start => $later);
	my $result = trend($dir);
	is($result->{files}, 'a0.txt a1.txt a2.txt a3.txt a4.txt a5.txt | b0.txt b1.txt b2.txt b3.txt', 'two series');
	is($result->{series}[1]{bytes}{ place('leak') }, '1 2 3 4', 'each with its own sums');
	is(trend('--series', 2, $dir)->{files}, 'b0.txt b1.txt b2.txt b3.txt', '--series shows one of them');
	check_error(trend('--series', 3, $dir), 'hdiff', 'a number that there is not', '--series', 'the last series is number 2');
	my $joined = trend('--across-restarts', $dir);
	is($joined->{files}, $result->{files} =~ s/ \| / /r, '--across-restarts joins them');
	is("@{ $joined->{series}[0]{parts} }", '6 4', 'in two parts');
	# Another image with the same folder name, and another process of the same image at the same
	# time.
	series($dir, [map { $_ + 30 * HOUR } @six[0, 1]], { leak => [7, 8] }, name => 'c%d.txt', start => $later, image => 'C:\\\\app\\\\other.exe');
	series($dir, [map { $_ + HOUR / 2 } @six[0, 1]], { leak => [9, 10] }, name => 'd%d.txt', start => START + 3000, pid => 7, slide => 0x10000000);
	my @four = ('a0.txt a1.txt a2.txt a3.txt a4.txt a5.txt', 'd0.txt d1.txt', 'b0.txt b1.txt b2.txt b3.txt', 'c0.txt c1.txt');
	is(trend($dir)->{files}, join(' | ', @four), 'another image is another series; the first to begin comes first');
	$joined = trend('--across-restarts', $dir);
	is($joined->{files}, "@four[0 .. 2] | $four[3]", 'only the same image is joined');
	is($joined->{series}[0]{bytes}{ place('leak') }, '1000 1100 1200 1300 1400 1500 9 10 1 2 3 4', 'by module and offset, wherever it was loaded');
	# A minidump has the process's start in whole seconds.
	my $seconds = fresh_dir();
	series($seconds, [@six[0 .. 1]], { leak => [1, 2] }, name => 'a%d.txt', start => START + 678);
	series($seconds, [@six[2 .. 3]], { leak => [3, 4] }, name => 'b%d.txt', start => START);
	is(trend($seconds)->{files}, 'a0.txt a1.txt b0.txt b1.txt', 'the same second is the same start');
	# UMDH's own logs contain the pid.
	my @umdh = map { umdh("$seconds/u$_.txt", sprintf('2026-11-20 1%d:30', 4 - $_ % 3), 4711 + ($_ > 2), 1000 + $_) } 0 .. 5;
	is(trend(@umdh)->{files}, 'u2.txt u1.txt u0.txt | u5.txt u4.txt u3.txt', 'by the pid and the time of a banner of UMDH');
	is(trend('--across-restarts', @umdh)->{files}, 'u2.txt u1.txt u0.txt u5.txt u4.txt u3.txt', 'the image is the program among the modules');
	# After a reboot, modules have other bases.
	for my $base ('140', '7FF80') {
		my @two = map { spew("$seconds/v$_.txt", slurp($umdh[1 - $_]) =~ s/ \K$base(?=\d+ +\d+ C:)/${base}1/r =~ s/^\t\K$base/${base}1/mr) } 0, 1;
		my $found = trend($umdh[2], @two);
		is($found->{files}, 'u2.txt | v0.txt v1.txt', "another base ($base): two series");
		complains($found, 0, 'reported', qr/v0\.txt: warning: from another process than \S+, with the same pid: the program or ntdll\.dll has another base$/);
		complains(run(tool('hdiff', 'linux', '--no-symbols', $umdh[2], $two[0])), 0, 'reported of two', qr/v0\.txt: warning: from another process than \S+u2\.txt/);
	}
};

# The eighth practical fault: the first snapshots show a process that is still starting up.
subtest 'practice 8: warm-up is left out, of each process' => sub {
	my $dir = fresh_dir();
	series($dir, [@six], {%leak}, name => 'a%d.txt');
	series($dir, [map { $_ + 24 * HOUR } @six[0 .. 2]], { leak => [1, 2, 3] }, name => 'b%d.txt', start => T0 + 23 * HOUR);
	is(trend('--warm-up', 2, $dir)->{files}, 'a2.txt a3.txt a4.txt a5.txt | b2.txt', '--warm-up 2');
	is(trend('--warm-up', 2, '--across-restarts', $dir)->{files}, 'a2.txt a3.txt a4.txt a5.txt b2.txt', 'of each part, too');
	my $result = trend('--warm-up', 3, $dir);
	is($result->{files}, 'a3.txt a4.txt a5.txt', 'nothing is left of the second');
	complains($result, 0, 'which is reported', 'b2.txt');
	my $one = trend('--warm-up', 2, '--series', 2, '--max-growth', '0', $dir);
	is("$one->{files}; $one->{status}", 'b2.txt; 2', 'of a series of one snapshot nobody knows whether it grew');
	my $none = trend('--warm-up', 6, $dir);
	is($none->{status}, 2, 'nothing left at all is an error');
	like($none->{err}, qr/^hdiff: --warm-up, --since, --until: .*none of 9 dumps/m, 'which is reported');
	is(trend('--since', '2025-11-20T12:00', '--until', '2025-11-20T14:25:48', $dir)->{files}, 'a2.txt a3.txt a4.txt', '--since and --until');
	is(trend('--since', '2025-11-21', $dir)->{files}, 'b0.txt b1.txt b2.txt', 'a day');
	is(trend('--until', '2025-11-20', $dir)->{files}, 'a0.txt a1.txt a2.txt a3.txt a4.txt a5.txt', 'to the end of a day');
	is(trend('--since', '1h', $dir)->{files}, 'b1.txt b2.txt', 'an hour before the newest');
	is(trend('--warm-up', 1, '--until', '2025-11-20', $dir)->{files}, 'a1.txt a2.txt a3.txt a4.txt a5.txt', 'warm-up is what the process began with');
	check_error(trend('--since', 'yesterday', $dir), 'hdiff', 'no such time', '--since yesterday');
	check_error(trend('--warm-up', 'x', $dir), 'hdiff', 'no such number', '--warm-up x');
	check_error(trend('--series', '0', $dir), 'hdiff', 'series are numbered from 1', '--series 0');
};

# The folder of a task that has run for a year. hdiff does not read dumps outside the range. So
# damage after their heads causes no complaint, and the result is the same as without these files.
subtest 'outside --since and --until only heads are read' => sub {
	my @times = map { T0 + $_ * HOUR } 0 .. 11;
	my $iso = sub { iso($times[$_[0]]) };
	for (
		[[0 .. 11], ''], [[8 .. 11], 'since', '--since', $iso->(8)], [[0 .. 3], 'until', '--until', $iso->(3)],
		[[4 .. 7], 'both', '--since', $iso->(4), '--until', $iso->(7)], [[9 .. 11], 'a span', '--since', '2h'],
		[[0 .. 9], 'until a span', '--until', '2h', 11], [[7 .. 9], 'two spans', '--since', '4h', '--until', '2h', 11],
		[[5 .. 8], 'a span and a time', '--since', '6h', '--until', $iso->(8), 11]) {
		my ($inside, $what, @args) = @$_;
		my %sound = map { $_ => 1 } @$inside, @args && $args[-1] =~ /^\d+$/ ? pop @args : ();
		my ($all, $some, $all_gz) = map { fresh_dir() } 1 .. 3;
		my @stacks = ({ leak => [map { 1000 + 100 * $_ } 0 .. 11] }, name => 'd%02d.txt');
		my @files = series($all, [@times], @stacks);
		spew("$some/" . basename($files[$_]), slurp($files[$_])) for @$inside;
		# Another process is also left out completely, because it is outside the range more
		# often.
		for my $i (grep { !$sound{$_} } 0 .. 11) {
			my ($head) = slurp($files[$i]) =~ m{\A((?:// hsnap: .*\n)+)};
			spew($files[$i], $i % 3 ? $head . ($i % 3 == 1 ? "rubbish\x00\n" x 5000 : '') : substr slurp($files[$i]), 0, -20);
		}
		for (0 .. 11) {
			my $packed = "$all_gz/" . basename($files[$_]);
			my $noise = $sound{$_} ? '' : join '', map { chr 33 + $_ * $_ % 8191 % 90 } 1 .. 8000;
			gzip(\(slurp($files[$_]) . $noise) => $packed) or die;
			spew($packed, substr slurp($packed), 0, -30) unless $sound{$_};
		}
		my $want = trend(@args ? '--warm-up' : (), @args ? 0 : (), $some);
		for my $dir ($all, $all_gz) {
			my $result = trend(@args, $dir);
			my $kind = "$what, " . ($dir eq $all ? 'plain' : 'packed');
			is("$result->{status}$result->{err}", 0, "$kind: no complaint");
			is($result->{files}, join(' ', map { sprintf 'd%02d.txt', $_ } @$inside), "$kind: the selected dumps");
			is_deeply($result->{series}, $want->{series}, "$kind: as where there is nothing else");
			$result = trend(@args, map { "$dir/" . basename($_) } reverse @files);
			is("$result->{status}$result->{err}", 0, "$kind: by name, too") if @args;
		}
	}
};

subtest 'a span goes back from the newest dump that can be used' => sub {
	my $dir = fresh_dir();
	my @files = series($dir, [map { T0 + $_ * HOUR } 0 .. 9], { leak => [1 .. 10] }, name => 'd%d.txt');
	my $cut = sub { spew($files[$_], substr slurp($files[$_]), 0, -20) for @_ };
	$cut->(8, 9, 2);
	my $result = trend('--since', '2h', $dir);
	is($result->{files}, 'd5.txt d6.txt d7.txt', 'the next when it is cut short');
	complains($result, 0, 'which is reported, but for none outside', 'd8.txt', 'd9.txt');
	$result = trend('--until', '4h', '--since', '6h', @files);
	is($result->{files}, 'd1.txt d3.txt', 'and where the window ends before it');
	complains($result, 2, 'what is inside is named', 'd2.txt', 'd8.txt', 'd9.txt');
	$result = trend('--since', '2h', '--force', $dir);
	is($result->{files}, 'd7.txt d8.txt d9.txt', 'with --force it can be used');
	$result = trend('--since', '0h', @files[0, 1], "$dir/missing.txt");
	is($result->{files}, 'd1.txt', 'what is not there is not the newest');
	complains($result, 2, 'and is named', 'missing.txt');
};

subtest 'dumps outside the range count by their heads' => sub {
	my $dir = fresh_dir();
	my @files = series($dir, [@six], {%leak}, name => 'd%d.txt');
	my $whole = slurp($files[0]);
	spew($_, substr slurp($_), 0, -20) for @files[0, 1];
	my $since = iso($six[2]);
	is(trend('--warm-up', 3, '--since', $since, $dir)->{files}, 'd3.txt d4.txt d5.txt', 'for the warm-up');
	spew("$dir/a-copy.txt", $whole);
	spew("$dir/other.txt", slurp($files[3]));
	complains(trend('--since', $since, $dir), 0, 'as a double, inside and outside', 'd0.txt', 'other.txt');
	my $none = trend('--since', '2030-01-01', $dir);
	like($none->{err}, qr/^hdiff: --warm-up, --since, --until: .*none of 8 dumps/m, 'among those that are not wanted');
	# Files that have no valid head with a time are read, and their faults are reported.
	unlink "$dir/a-copy.txt", "$dir/other.txt";
	my %bad = (empty => '', foreign => "no dump\n", report => run(tool('hdiff', 'linux', '--no-symbols', @files[3, 4]))->{out},
		head => $whole =~ s/id=4242/id=x/r, newer => $whole =~ s/format=1/format=99/r, timeless => $whole =~ s/ time=\S+//r);
	spew("$dir/$_.txt", $bad{$_}) for keys %bad;
	my $result = trend('--since', $since, $dir);
	is($result->{files}, 'd2.txt d3.txt d4.txt d5.txt', 'the others');
	complains($result, 0, 'are named', map { "$_.txt" } keys %bad);
	complains(trend('--since', $since, glob "$dir/*.txt"), 2, 'by name, too', map { "$_.txt" } keys %bad);
	check_error(trend('--since', $since, '-f', $files[0], $dir), 'hdiff', 'one outside is not written over', 'd0.txt', 'is not replaced');
	# hdiff cannot look at the head of stdin first, and learns of its end only by reading it.
	my $piped = fresh_dir();
	@files = series($piped, [@six], {%leak}, name => 'd%d.txt');
	for ([0, 'd4.txt d5.txt'], [4, '- d5.txt']) {
		my ($in, $want) = @$_;
		my $got = run(['sh', '-c', 'in=$1; shift; exec "$@" <"$in"', 'sh', $files[$in], "$root/build/linux/hdiff", qw(--no-symbols -o json --since),
			iso($six[4]), '-', grep { $_ ne $files[$in] } @files]);
		is(join(' ', map { basename($_->{path}) } map { @{ $_->{snapshots} } } @{ decode_json($got->{out})->{series} }), $want, "number $in from standard input");
	}
	# UMDH's logs have the minute in a banner. Their image is among the modules, whose list may
	# be long.
	my $umdh = fresh_dir();
	my @logs = map { umdh("$umdh/u$_.txt", sprintf('2026-11-20 1%d:30', $_), 4711, 1000 + $_) } 0 .. 5;
	spew($logs[$_], slurp($logs[$_]) =~ s/app\.exe/other.exe/r) for 4, 1;
	my $many = join '', map { sprintf "//        %X    1000 C:\\some folder\\module%05d.dll\r\n", 0x20000000 + $_ * 0x1000, $_ } 0 .. 1999;
	spew($logs[0], slurp($logs[0]) =~ s/(?=^\/\/\r$)/$many/mr);
	spew($_, slurp($_) =~ s/^3E.*\K\r\n\t140001000/\r\n\tdamaged/mr) for @logs[0 .. 2];
	$result = trend('--since', '2026-11-20T13:00', $umdh);
	is($result->{files}, 'u4.txt | u3.txt u5.txt', 'logs of UMDH: the image that began first');
	complains($result, 0, 'damaged is named what is read, for its head is long', 'u0.txt');
};

# The message for each limit states a remedy.
subtest 'too many files are an error with a remedy' => sub {
	my $dir = fresh_dir();
	my ($file) = series($dir, [T0], { leak => [1] }, name => 'd%d.txt');
	my ($list_max) = slurp("$root/diff/file_list.h") =~ /^#define FILES_MAX (\d+)/m;
	my ($read_max) = slurp("$root/diff/read_files.h") =~ /^#define READ_MAX (\d+)/m;
	for my $i (1 .. $read_max) { # NTFS has no more than 1023 links to a file
		($as_windows ? copy($file, "$dir/n$i.txt") : link $file, "$dir/n$i.txt") or die "$!";
	}
	check_error(trend($dir), 'hdiff', 'too many to be read', "at most $read_max can be read", '--since', 'pattern');
	check_error(trend('--since', '2020-01-01', $dir), 'hdiff', 'too many inside', '--since, --until', 'a shorter time');
	my $result = trend('--since', '2030-01-01', "$dir/*");
	like($result->{err}, qr/these options leave none of @{[$read_max + 1]} dumps/, 'but not when they are outside');
	my ($looked, $read) = map { s/(?=\d{3}$)/,/r } $list_max, $read_max;
	like(slurp("$root/man/hdiff.1"), qr/^At most $looked files are looked at, and of these $read are read\.$/m, 'the manual states both');
};

# The tenth practical fault: heaps change while they are walked. Only growth over several snapshots
# counts, so hdiff must not guess the position of a dump without a time.
subtest 'practice 2: dumps without a time stay in the order given, which is reported' => sub {
	my $dir = fresh_dir();
	my @files = series($dir, [@six[0 .. 3]], { leak => [4, 3, 2, 1] }, name => 'd%d.txt', no_time => 1);
	my $result = trend(reverse @files);
	is($result->{files}, 'd3.txt d2.txt d1.txt d0.txt', 'as they are given');
	complains($result, 0, 'with a warning', qr/^hdiff: \S+: warning: not all dumps of its process have a usable time: .*no rates/);
	is(trend($dir)->{files}, 'd0.txt d1.txt d2.txt d3.txt', 'by name, in a folder');
	$result = trend('--since', '2020-01-01', $dir);
	is($result->{status}, 2, '--since has nothing to go by');
};

subtest 'sampled and whole dumps in one series are reported' => sub {
	my $dir = fresh_dir();
	my @files = series($dir, [@six[0 .. 2]], { leak => [1, 2, 3] }, name => 'd%d.txt');
	series($dir, [map { $_ + 24 * HOUR } @six[0, 1]], { leak => [1, 2] }, name => 'e%d.txt', start => T0 + 23 * HOUR);
	spew($_, slurp($_) =~ s{^// hsnap: stacks}{// hsnap: sample bytes=65536\r\n// hsnap: stacks}mr) for "$dir/e0.txt", "$dir/e1.txt";
	complains(trend($dir), 0, 'not of another series');
	spew($files[0], slurp($files[0]) =~ s{^// hsnap: stacks}{// hsnap: sample bytes=65536\r\n// hsnap: stacks}mr);
	complains(trend($dir), 0, 'of the same', qr/^hdiff: \S*d1\.txt: warning: sampled at a different rate than the snapshot before it/);
};

subtest 'what many dumps lack is reported once per series' => sub {
	my $dir = fresh_dir();
	my @files = series($dir, [@six], {%leak}, name => 'd%d.txt');
	push @files, series($dir, [map { $_ + 24 * HOUR } @six[0, 1]], { leak => [1, 2] }, name => 'e%d.txt', start => T0 + 23 * HOUR);
	my %lacks = (all => [0 .. 7], some => [2 .. 4], one => [5]);
	for my $i (0 .. $#files) {
		my $notes = join '', map { my $n = $_; qq(// hsnap: warning text="lacks $n"\r\n) x grep { $_ == $i } @{ $lacks{$n} } } qw(all some one);
		# A note that occurs twice in one dump counts once.
		spew($files[$i], slurp($files[$i]) =~ s{^(?=// hsnap: stacks)}{$notes . ($i == 2 ? $notes : '')}mre);
	}
	my %want = ('d0.txt: lacks all' => 6, 'd2.txt: lacks some' => 3, 'd5.txt: lacks one' => 1, 'e0.txt: lacks all' => 2);
	my @want = map { my $of = $want{$_} > 1 ? " (in $want{$_} dumps; this is the first)" : ''; "$dir/$_$of" } sort keys %want;
	my $result = trend($dir);
	is_deeply([sort split /\n/, $result->{err}], [sort map { my $line = $_; "hdiff: " . $line =~ s/: lacks/: warning: lacks/r } @want], 'in a line each');
	is($result->{status}, 0, 'with status 0');
	my $text = run(tool('hdiff', 'linux', '--no-symbols', $dir))->{out};
	is_deeply([sort $text =~ m{^// warning: (.*)$}mg], [sort @want], 'in the header of each series');
	my @warnings = map { [map { @{ $_->{warnings} // [] } } @{ $_->{snapshots} }] } @{ decode_json($result->{out})->{series} };
	is_deeply([map { scalar @$_ } @warnings], [6 + 3 + 1 + 2, 2], 'JSON has the warnings of each');
	is(scalar(() = trend('--series', 2, $dir)->{err} =~ /lacks/g), 1, 'nothing is reported for a series that is not shown');
	unlink @files[2 .. $#files];
	$result = trend($dir);
	is($result->{err}, join('', map { "hdiff: $files[$_]: warning: lacks all\n" } 0, 1), 'for two dumps, each is reported');
};

# docs/costs.md states how much more memory a thousand dumps need than a few.
subtest 'many small dumps take the memory that docs/costs.md states' => sub {
	needs_linux('getrusage()');
	plan skip_all => 'getrusage() has another number here' if `uname -sm` ne "Linux x86_64\n";
	my ($few, $many, $processes) = map {
		my $dir = fresh_dir();
		my ($count, $is_one) = @$_;
		for my $i (1 .. $count) {
			my @how = $is_one ? () : (pid => $i, start => START + 1000 * $i);
			spew(sprintf("$dir/d%04d.txt", $i), series_dump(T0 + 60_000 * $i, { map { $_ => $i } 'a' .. 'e' }, @how));
		}
		my $result = run(['perl', '-e', 'system(@ARGV) && exit 1; syscall(98, -1, $_ = "\0" x 144); print((unpack "q18", $_)[4])',
			"$root/build/linux/hdiff", "--no-symbols", "-f", "$dir/out.csv", '-o', 'csv', "$dir/d*.txt"]);
		is("$result->{status}$result->{err}", "0", "$count dumps");
		$result->{out};
	} [3, 1], [1000, 1], [1000, 0];
	cmp_ok($many - $few, '<', 1000 * (6 + 5 * (45 + 300) / 1000), 'KB for 1000 dumps of five stacks and names');
	cmp_ok($processes - $few, '<', 1000 * 16, 'KB for as many of as many processes');
};

subtest 'zip archives in a folder are left out' => sub {
	my $dir = fresh_dir();
	series($dir, \@six, \%leak, name => 'd%d.txt');
	for my $name ('old.zip', 'report.docx') {
		zip("$dir/d0.txt" => "$dir/$name", Name => 'd0.txt') or die;
	}
	spew("$dir/damaged.zip", "PK\x03\x04" . "\xff" x 1000);
	my $result = trend($dir);
	complains($result, 0, 'each is named', 'old.zip', 'report.docx', 'damaged.zip');
	is($result->{files}, 'd0.txt d1.txt d2.txt d3.txt d4.txt d5.txt', 'the dumps are used');
	like(trend("$dir/old.zip", "$dir/d0.txt")->{err}, qr/old\.zip: is a zip archive without an \.etl file/, 'by name it is refused');
};

# Both machines have a process with the same pid. The second leaks 100 bytes an hour.
subtest 'series of several machines name them' => sub {
	my $dir = fresh_dir();
	series($dir, \@six, { leak => [(1000) x 6] }, name => 'a%d.txt', host => 'WEB1');
	series($dir, \@six, { leak => $leak{leak} }, name => 'b%d.txt', host => 'WEB2');
	my $result = run(tool('hdiff', 'linux', '--no-symbols', '-o', 'text', '--max-growth', '99/h', '--junit', "$dir.xml", $dir));
	is($result->{status}, 1, 'one grows');
	is_deeply([$result->{out} =~ /^Trend of app\.exe, process 4242 on (WEB\d): 6 snapshots/mg], ['WEB1', 'WEB2'], 'the heads');
	like($result->{err}, qr/^hdiff: series 2 \(WEB2\): growth of 100 bytes\/h is over the limit/m, 'the message') or diag($result->{err});
	is_deeply([slurp("$dir.xml") =~ /testcase .* name="(.*?)"/g], ['app.exe, series 1, WEB1', 'app.exe, series 2, WEB2'], 'the build server');
	like(run(tool('hdiff', 'linux', '--no-symbols', '-o', 'umdh', $dir))->{out}, qr{^// SERIES 2 of 2: app\.exe, process 4242 on WEB2, }m, 'UMDH\'s form');
	my $pair = run(tool('hdiff', 'linux', '--no-symbols', '-o', 'text', "$dir/a0.txt", "$dir/b5.txt"))->{out};
	like($pair, qr/^Growth from app\.exe, process 4242 on WEB1 to app\.exe, process 4242 on WEB2/, 'two dumps');
	unlike(run(tool('hdiff', 'linux', '--no-symbols', '-o', 'text', "$dir/b0.txt", "$dir/b5.txt"))->{out}, qr/WEB2/, 'one machine needs no name');
	unlink "$dir.xml";
};

subtest 'hdiff.exe does the same with the paths of Windows' => sub {
	my $dir = fresh_dir();
	series($dir, [reverse @six], { leak => [reverse @{ $leak{leak} }] }, name => 'd%d.txt');
	spew("$dir/foreign.txt", "no dump\n");
	my $want = 'd5.txt d4.txt d3.txt d2.txt d1.txt d0.txt';
	for ($dir, "$dir/", "$dir/D?.txt") {
		my $result = trend_by('windows', $_);
		is("$result->{status} $result->{files}", "0 $want", $_);
	}
	complains(trend_by('windows', $dir), 0, 'a foreign file is named', 'foreign.txt');
};

# Writes a UMDH log with one block.
sub umdh {
	my ($to, $time, $pid, $bytes) = @_;
	return spew($to, join "\r\n", '// ', "// UMDH: version 10.0.19041.1: Logtime $time - Machine=MADEUP - PID=$pid", '// ', '',
		'// Loaded modules: ', '//     Base Size Module', '//           140000000    10000 C:\app\app.exe',
		'//           7FF800000000    10000 C:\Windows\ntdll.dll', '//', '// Process modules enumerated.', '',
		'*- - - - - - - - - - Start of data for heap @ 1E0000 - - - - - - - - - -', '',
		'*- - - - - - - - - - Heap 1E0000 Hogs - - - - - - - - - -', '', '',
		sprintf('%X bytes + 10 at 200000 by BackTrace1234', $bytes), "\t140001000", "\t7FF800001000", '', '',
		'*- - - - - - - - - - End of data for heap @ 1E0000 - - - - - - - - - -', '');
}

done_testing;
