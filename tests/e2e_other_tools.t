#!/usr/bin/perl
# Files of other tools that are read like dumps: folded stacks, profiles for pprof, and what hdiff(1)
# converts to folded stacks. The numbers are those that this test writes.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use IO::Compress::Gzip qw(gzip);
use JSON::PP qw(decode_json);
use Test::More;
use Hunt;
use Profile;
use Series;

my $dir = fresh_dir();
my $hdiff = "$root/build/linux/hdiff";
my @types = (['alloc_objects', 'count'], ['alloc_space', 'bytes'], ['inuse_objects', 'count'], ['inuse_space', 'bytes']);
my $main = ['app.exe', 0x401000, ['main', 'src/main.c', 9]];

subtest 'folded stacks' => \&folded;
subtest 'folded stacks: numbers of blocks are unknown' => \&no_blocks;
subtest 'folded stacks: odd lines' => \&odd_lines;
subtest 'folded stacks: a trend' => \&folded_trend;
subtest 'profiles' => \&profiles;
subtest 'types of values' => \&types;
subtest 'forms of profiles' => \&forms;
subtest 'profiles: a trend' => \&profile_trend;
subtest 'profiles that hdiff wrote' => \&own;
subtest 'damaged profiles' => \&damaged;
subtest 'conversions of the manual' => \&conversions;
done_testing;

sub hdiff { return run([$hdiff, @_]) }
sub json { my $result = hdiff('-o', 'json', @_); is("$result->{status} $result->{err}", '0 ', "@_"); return decode_json($result->{out} || '{}') }

# Returns a row as [growth of bytes, of blocks, functions, the innermost first].
sub rows { return [map { my $row = $_; [@{ $row->{growth} }{qw(bytes blocks)}, join ' ', map { $_->{function} // '?' } @{ $row->{frames} }] } @{ $_[0]{rows} }] }

sub folded_pair {
	return (spew("$dir/a.folded", "main;serve;read 4096\nmain;load 10\nmain;add 5\nmain;same 7\nmain;gone 3\n"),
		spew("$dir/b.folded", "main;serve;read 1000\nmain;load 10\nmain;serve;read 7192\nmain;add 15\nmain;same 7\nmain;come 1\n"));
}

sub folded {
	my @pair = folded_pair();
	my $report = json(@pair);
	is_deeply(rows($report), [[4096, undef, 'read serve main'], [10, undef, 'add main'], [1, undef, 'come main'], [-3, undef, 'gone main']], 'rows');
	is_deeply([map { $report->{totals}{all}{$_}{bytes} } qw(old new growth)], [4121, 8225, 4104], 'totals');
	is_deeply(rows(json('-i', '^add$', @pair)), [[10, undef, 'add main']], 'a filter');
	is_deeply([map { [$_->{name}, $_->{total}{growth}{bytes}] } @{ json('--group', 'function', '-n', 1, @pair)->{groups} }], [['read', 4096]], 'groups');
	my ($one) = json($pair[0]);
	is_deeply([map { $_->[0] } @{ rows($one) }], [4096, 10, 7, 5, 3], 'one file');
	gzip($pair[1] => "$pair[1].gz");
	is_deeply(rows(json($pair[0], "$pair[1].gz")), rows($report), 'gzip');
	is_deeply(rows(decode_json(run([$hdiff, '-o', 'json', '-', $pair[1]], stdin => $pair[0])->{out})), rows($report), 'standard input');
	is(hdiff('--max-growth', 4107, @pair)->{status}, 0, 'growth at the limit');
	is(hdiff('--max-growth', 4106, @pair)->{status}, 1, 'growth over the limit');
	is(hdiff('-o', 'folded', $pair[0])->{out}, join('', map { "$_\n" } 'main;add 5', 'main;gone 3', 'main;load 10', 'main;same 7', 'main;serve;read 4096'), 'and written again');
	like(hdiff(spew("$dir/d.folded", hdiff('-o', 'folded', @pair)->{out}))->{err}, qr/folded stacks of a difference, with two numbers in each line/, 'a difference is refused');
}

sub no_blocks {
	my @pair = folded_pair();
	my $supp = spew("$dir/known.supp", "leak:^add\$\n");
	my $text = hdiff('--no-pager', '--suppress', $supp, @pair);
	is_deeply([$text->{out} =~ /^ +\d +([-+]\S+ \S+) +(\S+) +\S+ %/mg], ['+4.0 KiB', '?', '+1 B', '?', '-3 B', '?'], 'in the table');
	like($text->{out}, qr/^selected: \+4\.0 KiB, \? blocks$/m, 'in the sum');
	like($text->{out}, qr/; now 8\.0 KiB in \?$/m, 'in a stack');
	unlike($text->{out}, qr/\d blocks?\b/, 'no number of blocks anywhere');
	like($text->{err}, qr/suppressed stacks: 1, bytes: 10, blocks: \?$/m, 'of a suppression');
	like(hdiff('--tree', @pair)->{out}, qr/^ +\+4\.0 KiB +\? +\S+ %       main$/m, 'in a tree');
	is_deeply([(split /,/, (split /\n/, hdiff('-o', 'csv', @pair)->{out})[1], -1)[0 .. 8]], [4096, 8192, 4096, ('') x 6], 'csv: empty fields');
	is_deeply([map { my $line = decode_json($_); [@$line{qw(bytes blocks overhead)}] } grep { /"function":"read"/ } split /\n/, hdiff('-o', 'jsonl', @pair)->{out}],
		[[4096, undef, undef], [8192, undef, undef]], 'jsonl');
	my ($data) = hdiff('-o', 'html', @pair)->{out} =~ m{<script type="application/json"[^>]*>(.*?)</script>}s;
	is(decode_json($data)->{totals}{selected}{growth}{blocks}, undef, 'the page') if ok($data, 'the page has data');
	my $junit = "$dir/junit.xml";
	hdiff('--max-growth', 0, '--junit', $junit, '--overwrite', @pair);
	like(slurp($junit), qr/\+4096 bytes, \? blocks: read/, 'JUnit');
	unlike(slurp($junit), qr/name="\w+ blocks"/, 'JUnit: no property');
	for my $case (['-o umdh', '-d'], ['-o dhat', '-o', 'dhat'], ['--min-count', '--min-count', 1], ['--sort count', '--sort', 'count'], ['--max-growth', '--max-growth', '1K,1']) {
		my ($name, @ask) = @$case;
		my $result = hdiff(@ask, @pair);
		is($result->{status}, 2, "$name: refused");
		like($result->{err}, qr/\Ahdiff: \Q$name\E.*needs numbers of blocks, which \S*a\.folded does not record/, "$name: why");
	}
}

sub odd_lines {
	my $result = hdiff('-o', 'json', spew("$dir/odd.folded", "main;read 1\r\n\r\n" . "main;more 1\n" x 20 . "no number\n;;main;;0x1234;dead;add;0x00401000; 20\nmain;f 99999999999999999999\nmain;zero 0\n" . 'x;' x 40000 . " 1\nmain;last 3"));
	is($result->{status}, 2, 'lines are left out: status 2');
	like($result->{err}, qr/odd\.folded:$_: warning: left out: /, "line $_") for 23, 25, 27;
	my $report = decode_json($result->{out});
	is_deeply([map { $_->{growth}{bytes} } @{ $report->{rows} }], [20, 20, 3, 1], 'the other lines');
	is_deeply([map { $_->{address} // $_->{function} } @{ (grep { @{ $_->{frames} } > 2 } @{ $report->{rows} })[0]{frames} }], ['401000', 'add', 'dead', '1234', 'main'], 'functions that look like numbers, and addresses');
	my $deep = json(spew("$dir/deep.folded", join(';', map { "f$_" } 1 .. 3000) . " 5\n"));
	is_deeply([scalar @{ $deep->{rows}[0]{frames} }, $deep->{rows}[0]{frames}[0]{function}], [1024, 'f3000'], 'the innermost frames of a deep stack');
	my $large = spew("$dir/large.folded", join '', map { "a;b$_ 4611686018427387904\n" } 1 .. 2);
	like(hdiff($large)->{err}, qr/more than 8 EiB/, 'sums that are too large');
}

sub folded_trend {
	my @files = map { spew("$dir/trend$_.folded", "main;leak " . 1000 * $_ . "\nmain;still 50\n") } 1 .. 5;
	my $series = decode_json(hdiff('-o', 'json', @files)->{out})->{series}[0];
	is_deeply([map { $_->{trend}{verdict}, $_->{trend}{net_bytes}, $_->{trend}{net_blocks}, $_->{bytes}, $_->{blocks} } @{ $series->{rows} }],
		['grows', 4000, undef, [map { 1000 * $_ } 1 .. 5], [(undef) x 5]], 'a row');
	like((split /\n/, hdiff('-o', 'csv', @files)->{out})[1], qr/,1000,2000,3000,4000,5000,,,,,\r?$/, 'csv');
	is(hdiff('--max-growth-net', 4000, @files)->{status}, 0, 'a limit');
	is(hdiff('--max-growth-net', 3999, @files)->{status}, 1, 'a limit that is exceeded');
}

sub grown {
	my (%how) = @_;
	my $times = $how{times} // 1;
	my @values = (100 * $times, 9000 * $times, 3 * $times, 4096 * $times);
	return profile(types => \@types, samples => [
		[\@values, [['/lib/libc.so.6', 0x401234], ['app.exe', 0x401100, ['std::vector<int, std::allocator<int> >::grow(unsigned long)', '/usr/include/vector (1).h', 77], ['operator!=', '', 0], ['add', 'src/list.c', 12]], $main]],
		[[5, 500, 1, 50], [['C:\\app\\plug+in!.dll', 0x4010ff, ['register', 'plug.c', 3]], [undef, 0xabcdef01], $main]],
		[[5, 500, 0, 0], [$main]],
	], %how);
}

sub profiles {
	my @files = (spew("$dir/a.pb", grown()), spew("$dir/b.pb", grown(times => 3)));
	my $report = json(@files);
	is_deeply($report->{rows}[0]{growth}, { bytes => 8192, blocks => 6, overhead => undef }, 'growth');
	is(scalar @{ $report->{rows} }, 1, 'what did not grow is no row');
	my $frames = $report->{rows}[0]{frames};
	is_deeply([map { [@$_{qw(module function file line inline)}] } @$frames[1 .. 4]], [
		['app', 'std::vector<int, std::allocator<int> >::grow(unsigned long)', '/usr/include/vector (1).h', 77, JSON::PP::true],
		['app', 'operator!=', undef, undef, JSON::PP::true], ['app', 'add', 'src/list.c', 12, undef], ['app', 'main', 'src/main.c', 9, undef]], 'frames');
	is_deeply([@{ $frames->[0] }{qw(module offset address)}], ['libc.so.6', '1234', '401234'], 'a frame without a function');
	my $one = json($files[0]);
	is_deeply([map { [@{ $_->{new} }{qw(bytes blocks)}] } @{ $one->{rows} }], [[4096, 3], [50, 1]], 'one profile: what is in use');
	is_deeply([map { [@$_{qw(module function address)}] } @{ $one->{rows}[1]{frames} }], [['plug_in_', 'register', undef], [undef, undef, 'ABCDEF01'], ['app', 'main', undef]], 'frames in no module');
	is_deeply(rows(json('--module', 'plug_in_', $files[0])), [[50, 1, 'register ? main']], 'by module');
}

sub types {
	my @stack = ([['app', 0x401000, ['f', '', 0]]]);
	my $ask = sub {
		my ($types, @values) = @_;
		my $result = hdiff('-o', 'json', spew("$dir/types.pb", profile(types => $types, samples => [[\@values, @stack]])));
		return [$result->{status}, $result->{status} ? $result->{err} : (@{ decode_json($result->{out})->{rows}[0]{new} }{qw(bytes blocks)}, $result->{err} =~ s/.*warning: //r)];
	};
	is_deeply($ask->(\@types, 1, 2, 3, 4), [0, 4, 3, ''], 'inuse');
	is_deeply($ask->([@types[0, 1]], 1, 2), [0, 2, 1, "of its 2 types of values, alloc_space is read\n"], 'alloc');
	is_deeply($ask->([['x', 'count'], ['objects', 'count'], ['space', 'bytes']], 7, 1, 2), [0, 2, 1, "of its 3 types of values, space is read\n"], 'space');
	is_deeply($ask->([['x', 'count'], ['y', 'bytes']], 7, 1), [0, 1, undef, "of its 2 types of values, y is read\n"], 'the last');
	is_deeply($ask->([['alloc', 'bytes']], 9), [0, 9, undef, ''], 'the only one');
	like($ask->([['samples', 'count'], ['cpu', 'nanoseconds']], 1, 2)->[1], qr/a profile for pprof, its values are not bytes/, 'a profile of time');
	like($ask->([@types], 1, 2, -3, -4)->[1], qr/of a difference, with negative values; give the two profiles/, 'a difference');
	is_deeply($ask->([@types], -1, -2, 3, 4), [0, 4, 3, ''], 'types that are not read do not matter');
}

sub forms {
	my $file = spew("$dir/a.pb", grown());
	my $rows = json($file)->{rows};
	my %forms = ('other fields before the types' => field(11, \(field(1, 1) . field(2, 2))) . field(12, 1) . grown(),
		'numbers that are not packed' => grown(is_unpacked => 1), 'unknown fields' => grown(head => field(99, 5) . field(98, \'text') . varint(97 << 3 | 1) . 'x' x 8 . varint(96 << 3 | 5) . 'x' x 4));
	is_deeply(json(spew("$dir/form.pb", $forms{$_}))->{rows}, $rows, $_) for sort keys %forms;
	gzip(\grown() => \my $packed);
	is_deeply(json(spew("$dir/form.pb.gz", $packed))->{rows}, $rows, 'gzip');
	like(hdiff(spew("$dir/cut.pb.gz", substr $packed, 0, 200))->{err}, qr/a profile for pprof, (?:cut short|damaged)/, 'gzip, cut short');
	my $sampled = hdiff(spew("$dir/form.pb", grown(period_type => ['space', 'bytes'], head => field(12, 524288))));
	like($sampled->{out}, qr/ESTIMATES: one in 524288 bytes/, 'a sampled profile');
	is(json(spew("$dir/form.pb", grown(head => field(9, 1763632800000 * 1_000_000))))->{inputs}[0]{time}, '2025-11-20T10:00:00.000Z', 'the time');
}

sub profile_trend {
	my $sub = "$dir/trend";
	mkdir $sub;
	spew("$sub/$_.pb", grown(times => $_, head => field(9, (1763632800 + 3600 * $_) * 1_000_000_000))) for 1 .. 4;
	my $series = json($sub)->{series}[0];
	is_deeply($series->{rows}[0]{bytes}, [map { 4096 * $_ } 1 .. 4], 'bytes');
	is_deeply([@{ $series->{rows}[0]{trend} }{qw(verdict bytes_per_hour)}], ['grows', 4096], 'trend');
	is(hdiff('--max-growth', '4095/h', $sub)->{status}, 1, 'a rate');
}

sub own {
	my @dumps = map { spew("$dir/own$_.txt", series_dump(1763632800000 + $_, { leak => [1000 * $_, $_], cache => [77, 7] })) } 1, 2;
	my @profiles = map { my $file = s/txt$/pb.gz/r; hdiff('-o', 'pprof', '-f', $file, $_); $file } @dumps;
	is_deeply(rows(json(@profiles)), [[1000, 1, 'leak app+FFF']], 'the row');
	is_deeply([map { @{ $_->{frames}[0] }{qw(module function)} } @{ json(@profiles)->{rows} }], ['app', 'leak'], 'modules');
	my $growth = "$dir/growth.pb.gz";
	hdiff('-o', 'pprof', '-f', $growth, @dumps);
	like(hdiff($growth)->{err}, qr/types of values, growth_space is read/, 'a profile of growth');
	hdiff('-o', 'pprof', '-f', $growth, reverse @dumps);
}

# Each cut and each changed byte of a profile either is refused in one line, or is read.
sub damaged {
	my $whole = grown();
	my ($bad, $read) = (0, 0);
	for my $at (0 .. length($whole) - 1) {
		next if $at % 3;
		for my $bytes (substr($whole, 0, $at), do { my $changed = $whole; substr($changed, $at, 1) = chr(ord(substr $whole, $at, 1) ^ 0xff >> $at % 8); $changed }) {
			my $result = hdiff('-o', 'json', spew("$dir/bad.pb", $bytes));
			if ($result->{status} == 0) {
				$read += defined eval { decode_json($result->{out}) };
			} else {
				$bad += $result->{status} == 2 && $result->{err} =~ /\Ahdiff: [^\n]+\n(?:hdiff: [^\n]*\n)*\z/ && $result->{out} eq '';
			}
		}
	}
	is($bad + $read, 2 * int(length($whole) / 3 + 1), 'each is read or refused');
	cmp_ok($bad, '>', length($whole) / 3, 'most are refused');
	my %wrong = ('a location that is missing' => profile(types => [$types[3]], samples => [[[1], []]]) . field(2, \(field(1, 1234) . field(2, 5))),
		'a string that is missing' => field(1, \(field(1, 55) . field(2, 1))) . field(6, \''),
		'more values than types' => profile(types => [$types[3]], samples => [[[1, 2], [$main]]]),
		'an id that occurs twice' => grown() . field(3, \field(1, 7)) . field(4, \field(1, 8)),
		'a length beyond the end' => grown() . "\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
		'a number without an end' => grown() . "\x48" . "\x80" x 20);
	for my $what (sort keys %wrong) {
		my $result = hdiff(spew("$dir/wrong.pb", $wrong{$what}));
		is($result->{status}, 2, "$what: status 2");
		like($result->{err}, qr/wrong\.pb: is not a heap dump \(a profile for pprof, damaged: /, "$what: why");
	}
	# A stack of 1000 frames in each of many samples would need much more memory than the file.
	my $many = profile(types => [$types[3]], samples => [map { [[1], [['app', $_ * 16, ["f$_", '', 0]], ['app', 8, map { ["inlined$_", 'a.c', $_] } 1 .. 1000]]] } 1 .. 70]);
	is(scalar @{ json(spew("$dir/many.pb", $many))->{rows} }, 70, 'long stacks');
}

# Runs the commands of hdiff(1) on small files of the other tools.
sub conversions {
	needs_linux('mandoc');
	my $page = run(['sh', '-c', 'mandoc -T ascii -O width=400 man/hdiff.1 | col -bx'])->{out};
	my ($section) = $page =~ /^ +Files of other tools\n(.*?)^[A-Z]/ms;
	plan(skip_all => 'no mandoc') if !defined $section || $section eq '';
	my ($jq) = $section =~ /^ +(jq .*? dhat\.out)/ms;
	my ($sed) = $section =~ /^ +(sed .*? leaks\.txt)/ms;
	my ($awk) = $section =~ /^ +(awk .*? vld\.txt)/ms;
	my $convert = sub {
		my ($command, $name, $text) = @_;
		spew("$dir/$name", $text);
		return run(['sh', '-c', $command], dir => $dir);
	};
	my $dhat = $convert->($jq, 'dhat.out', '{"dhatFileVersion":2,"pps":[{"tb":900,"eb":500,"fs":[1,2,3]},{"tb":7,"eb":0,"fs":[3]}],"ftbl":["[root]","0x48417B4: malloc (in /usr/lib/x.so)","0x109150: add (l.c:2)","0x10916D: main (l.c:3)"]}');
	is($dhat->{out}, "main (l.c:3);add (l.c:2);malloc (in /usr/lib/x.so) 500\nmain (l.c:3) 0\n", 'DHAT');
	is_deeply([map { [@$_{qw(function file line)}] } @{ json(spew("$dir/dhat.folded", $dhat->{out}))->{rows}[0]{frames} }],
		[['malloc (in /usr/lib/x.so)', undef, undef], ['add', 'l.c', 2], ['main', 'l.c', 3]], 'DHAT: frames');
	my $crt = $convert->($sed, 'leaks.txt', "Detected memory leaks!\r\nDumping objects ->\r\nd:\\my src\\global.c(264) : {644} normal block at 0x0433E948, 56 bytes long.\r\n Data: <   > 00\r\n{12} normal block at 0x0012, 4 bytes long.\r\nd:\\my src\\global.c(264) : {645} client block at 0x0433E949, subtype 0, 4 bytes long.\r\nObject dump complete.\r\n");
	is($crt->{out}, "leaks;d:\\my src\\global.c:264 56\nleaks;? 4\nleaks;d:\\my src\\global.c:264 4\n", "the C runtime's list");
	is_deeply(rows(json(spew("$dir/crt.folded", $crt->{out}))), [[60, undef, 'd:\\my src\\global.c:264 leaks'], [4, undef, '? leaks']], "the C runtime's list: rows");
	my $vld = $convert->($awk, 'vld.txt', join "\r\n", 'WARNING: Visual Leak Detector detected memory leaks!', '---------- Block 41 at 0x00AB2700: 4 bytes ----------', '  Leak Hash: 0x19C58DBA, Count: 3, Total 12 bytes',
		'  Call Stack (TID 15860):', '    ucrtbased.dll!malloc()', '    c:\\my src\\prog.cpp (31): Prog.exe!make() + 0x7 bytes', '    Prog.exe!main() + 0x9 bytes', '  Data:', '    78 56 34 12                                                  xV4.....', '', 'Visual Leak Detector detected 3 memory leaks (12 bytes).', '');
	is($vld->{out}, "Prog.exe!main();Prog.exe!make() (c:\\my src\\prog.cpp, 31);ucrtbased.dll!malloc() 12\n", 'Visual Leak Detector');
	is_deeply([map { [@$_{qw(module function line)}] } @{ json(spew("$dir/vld.folded", $vld->{out}))->{rows}[0]{frames} }],
		[['ucrtbased', 'malloc()', undef], ['Prog', 'make()', 31], ['Prog', 'main()', undef]], 'Visual Leak Detector: frames');
}
