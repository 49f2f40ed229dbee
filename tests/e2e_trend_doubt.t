#!/usr/bin/perl
# hdiff with an insufficient series: limits that cannot be judged, too few snapshots, an unknown
# order, and growth that the bytes do not show. The truth is how the series were made.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use File::Copy qw(copy);
use JSON::PP qw(decode_json);
use Test::More;
use Hunt;
use Series;

use constant { HOUR => 3_600_000, START => 1_763_632_800_000, BIG => 4_611_686_018_427_387_904 };

my @six = map { START + $_ * HOUR } 1 .. 6;
my @leak = map { 100 + 50 * $_ } 0 .. 5;

sub hdiff { return run(tool('hdiff', 'linux', '--no-symbols', @_)) }

sub json { return decode_json(hdiff('-o', 'json', @_)->{out}) }

# Returns the report's verdicts in order, as text.
sub notes { return $_[0] =~ m{^//     ([a-z][^\n]*)\n(?=[+-])}mg }

# Returns the offsets of the innermost frames, in the report's order.
sub places { return map { $_->{frames}[0]{offset} } @{ $_[0]{series}[0]{rows} } }

sub place { return sprintf '%X', 0x1000 + Series::offset_of($_[0]) }

sub cut { return map { spew($_, substr slurp($_), 0, -100) } @_ }

subtest 'a limit is not kept only because there are no two snapshots of a process' => sub {
	my $none = qr/^hdiff: --max-growth cannot judge growth: fewer than two snapshots of a process$/m;
	my $dir = fresh_dir();
	my @files = series($dir, \@six, { leak => \@leak });
	for (['--warm-up 5', '--warm-up', 5], ['--since 0h', '--since', '0h']) {
		my ($what, @args) = @$_;
		for my $limit ('1', '1T', '1T,100') {
			my $result = hdiff(@args, '--max-growth', $limit, $dir);
			is($result->{status}, 2, "$what, $limit: status 2");
			like($result->{err}, $none, 'which is reported');
			ok(length $result->{out}, 'the report is written');
		}
		is(hdiff(@args, $dir)->{status}, 0, "$what: without a limit all is well");
	}
	cut(@files[1 .. 5]);
	my $result = hdiff('--max-growth', '1', $dir);
	is($result->{status}, 2, 'five of six are cut short');
	like($result->{err}, $none, 'which is no growth');
	my $all = json($dir);
	is_deeply([$all->{left_out_file_count}, $all->{left_out_files}], [5, [@files[1 .. 5]]], 'JSON lists the files left out');
	like(hdiff($dir)->{out}, qr{^// files that were left out: 5: \Q@{[join ', ', @files[1 .. 5]]}\E$}m, 'and the report');
	my $many = fresh_dir();
	series($many, [$six[$_]], { leak => [$leak[$_]] }, pid => 10 + $_, name => "p$_-%d.txt") for 0 .. 5;
	$result = hdiff('--max-growth', '1', $many);
	is($result->{status}, 2, 'six processes with a dump each');
	is(scalar(() = $result->{err} =~ /^hdiff: series \d: --max-growth cannot judge growth: fewer than two/mg), 6, 'each is named');
	series($many, [@six[0, 1]], { leak => [7, 9] }, pid => 30, name => 'q%d.txt');
	is(hdiff('--max-growth', '2', $many)->{status}, 0, 'it is enough when one can be judged');
	is(hdiff('--max-growth', '1', $many)->{status}, 1, 'and that is');
	my $alone = fresh_dir();
	my ($file) = series($alone, [$six[0]], { leak => [100] });
	$result = hdiff('--max-growth', '1T', $alone);
	is($result->{status}, 2, 'a folder with a single dump');
	like($result->{err}, qr/^hdiff: --max-growth cannot judge growth: a single dump was found$/m, 'which is reported');
	is(hdiff('--max-growth', $_->[0], $file)->{status}, $_->[1], "by its name all of it is growth: $_->[0]") for [99, 1], [100, 0];
	spew("$alone/made-000.txt", hdiff(@{ [series(fresh_dir(), [@six[0, 1]], { leak => [7, 9] })] })->{out});
	is(hdiff('--max-growth', $_->[0], $alone)->{status}, $_->[1], "a comparison tells growth: $_->[0]") for [1, 1], [2, 0];
};

subtest 'no limit is kept because the first or the last dump was left out' => sub {
	my $double = sub { return map { spew($_, slurp($_) x 2) } @_ };
	for (['first', 0, 2], ['second', 1, 0], ['last', 5, 2]) {
		my ($what, $number, $status) = @$_;
		for my $kind ('cut', 'double') {
			my $dir = fresh_dir();
			my @files = series($dir, \@six, { leak => \@leak });
			my $bad = $files[$number];
			$kind eq 'cut' ? cut($bad) : $double->($bad);
			$status = 2 if $kind eq 'double'; # its process is unknown
			for my $limit ('1T', '1T/h') {
				my $result = hdiff('--max-growth', $limit, '--junit', "$dir/j.tmp", $dir);
				is($result->{status}, $status, "$what $kind, $limit: status $status");
				is(scalar(() = $result->{err} =~ /^hdiff: --max-growth cannot judge growth: \Q$bad\E was left out/mg), $status / 2, 'and why');
				is(scalar(() = slurp("$dir/j.tmp") =~ /<error message="[^"]* was left out/g), $status / 2, 'also for the build server');
			}
			is(hdiff($dir)->{status}, 0, 'without a limit');
			is(hdiff('--max-growth', 1, $dir)->{status}, 1, 'over it');
		}
	}
	my $dir = fresh_dir();
	my @files = map { series($dir, \@six, { leak => \@leak }, pid => $_, name => "p$_-%d.txt") } 7, 8;
	cut($files[5]);
	is(hdiff('--max-growth', '1T', $dir)->{status}, 2, 'one process of two');
	is(hdiff('--series', $$_[0], '--max-growth', '1T', $dir)->{status}, $$_[1], "series $$_[0]") for [1, 2], [2, 0];
	cut(@files[0 .. 4]);
	like(hdiff('--max-growth', '1T', $dir)->{err}, qr/^hdiff: --max-growth cannot judge growth: \Q$files[0]\E was left out/m, 'all dumps of a process');
	spew("$dir/notes.txt", "no dump\n");
	unlink @files[0 .. 5];
	is(hdiff('--max-growth', '1T', $dir)->{status}, 0, 'what is no dump is not needed');
};

subtest 'no limit is kept because --verdict cannot judge two snapshots' => sub {
	my $dir = fresh_dir();
	series($dir, [@six[0, 1]], { leak => [@leak[0, 1]] }, pid => $_, name => "p$_-%d.txt") for 7, 8;
	for (['grows', 2], ['grows,too-few', 1], ['steady', 2]) {
		my $result = hdiff('--verdict', $$_[0], '--max-growth', 0, $dir);
		is($result->{status}, $$_[1], "--verdict $$_[0]: status $$_[1]");
		is(scalar(() = $result->{err} =~ /cannot judge growth: --verdict needs three snapshots of a process$/mg), $$_[1] == 2 ? 2 : 0, 'and why');
	}
	series($dir, [@six[0 .. 2]], { leak => [9, 9, 9] }, pid => 9, name => 'p9-%d.txt');
	is(hdiff('--verdict', 'grows', '--max-growth', 0, $dir)->{status}, 0, 'it is enough when one can be judged');
};

subtest 'dumps without a time are no order for those that have one, nor the other way round' => sub {
	my $dir = fresh_dir();
	my @timed = series($dir, \@six, { leak => \@leak }, name => 't%d.txt');
	my ($timeless) = series($dir, [1], { leak => [1] }, name => 'x%d.txt', no_time => 1);
	my $result = hdiff($dir);
	like($result->{err}, qr/^hdiff: \S*x0\.txt: warning: left out: has no usable time, but other dumps of its process do$/m, 'the fewer are left out');
	is_deeply([map { s/,.*//r } notes($result->{out})], ['grows'], 'a leak stays one');
	like($result->{out}, qr{^// files that were left out: 1: \Q$timeless\E$}m, 'and the report lists it');
	my $pair = fresh_dir();
	series($pair, [@six[0, 1]], { leak => [1, 2] });
	my $foreign = spew("$pair/foreign.txt", "no dump\n");
	like(hdiff($pair)->{out}, qr{^// OLD: .*\n// files that were left out: 1: \Q$foreign\E$}m, 'the two remaining dumps are compared, which is reported');
	my $few = fresh_dir();
	series($few, [@six[0 .. 2]], { leak => [1, 2, 3] }, name => 'n%d.txt', no_time => 1);
	series($few, [@six[1, 4]], { leak => [8, 9] }, name => 't%d.txt');
	$result = hdiff($few);
	is(scalar(() = $result->{err} =~ /left out: records a time, but most other dumps of its process do not/g), 2, 'two that tell it of five');
	is_deeply([map { @{ $_->{bytes} } } @{ json($few)->{series}[0]{rows} }], [1, 2, 3], 'the others stay');
	unlink "$few/n2.txt";
	is_deeply([map { @{ $_->{bytes} } } @{ json("$few/n0.txt", "$few/n1.txt", "$few/t0.txt", "$few/t1.txt")->{series}[0]{rows} }], [8, 9], 'of as many those that tell it stay');
	is(json("$dir/t0.txt", "$dir/x0.txt", "$dir/t5.txt")->{series}[0]{snapshots}[0]{path}, "$dir/t0.txt", 'whatever the order in which they are given');
};

subtest 'names are sorted with numbers by value; ties are reported once' => sub {
	my $dir = fresh_dir();
	my @files = map { umdh("$dir/s$_.txt", int(($_ - 1) / 2), 4711, 500 + 500 * $_) } 1 .. 12;
	my $warned = qr/^hdiff: \S+: warning: 6 dumps of its series record the same time as the one before: /m;
	for ([$dir], ["$dir/s*.txt"]) {
		my $result = hdiff('-o', 'json', @$_);
		my $series = decode_json($result->{out})->{series}[0];
		is_deeply($series->{rows}[0]{bytes}, [map { 500 + 500 * $_ } 1 .. 12], "$_->[0]: s2 is before s10");
		is(scalar(() = $result->{err} =~ /warning/g), 1, 'one warning');
		like($result->{err}, $warned, 'of so many');
	}
	is_deeply(json(@files[1, 0, 2])->{series}[0]{rows}[0]{bytes}, [1500, 1000, 2000], 'those given by name are as they are given');
	is_deeply(json(sort @files)->{series}[0]{rows}[0]{bytes}, [map { 500 + 500 * $_ } 1 .. 12], 'unless a shell may have expanded a pattern');
	my @timeless = series(fresh_dir(), \@six, { leak => \@leak }, name => '%d0.txt', no_time => 1);
	rename $timeless[$_], $timeless[$_] =~ s{\d0(?=\.txt)}{7 + $_}er or die "$!\n" for 0 .. 5;
	is_deeply(json(sort map { $timeless[$_] =~ s{\d0(?=\.txt)}{7 + $_}er } 0 .. 5)->{series}[0]{rows}[0]{bytes}, \@leak, 'without times, too');
	my $more = fresh_dir();
	my @names = qw(a1.txt a01.txt a2b3.txt a2b10.txt a10.txt a00000000000000000000000000000011.txt a99999999999999999999999.txt b.txt);
	# Times of equal value are sorted by bytes.
	my @right = sort { $a->[0] cmp $b->[0] } map { [$_ eq 'a01.txt' ? 0 : 1, $_] } @names[0, 1];
	umdh("$more/$names[$_]", 0, 4712, 1 + $_) for reverse 0 .. $#names;
	is_deeply([map { $_->{path} =~ s,.*/,,r } @{ json($more)->{series}[0]{snapshots} }], [(map { $_->[1] } @right), @names[2 .. 7]],
		'numbers by their value, however long');
};

subtest 'no limit is kept by a snapshot that is known to be incomplete' => sub {
	my $dir = fresh_dir();
	my @files = series($dir, \@six, { leak => \@leak });
	is(hdiff('--max-growth', $_, $dir)->{status}, 0, "$_: of whole ones status 0") for '1T', '1T/h';
	spew($files[2], slurp($files[2]) =~ s{^(// hsnap: process .*\n)}{$1// hsnap: incomplete missing=1\n}mr);
	for my $limit ('1T', '1T/h', '1/h') {
		my $result = hdiff('--max-growth', $limit, $dir);
		is($result->{status}, 2, "$limit: status 2");
		like($result->{err}, qr/^hdiff: \Q$files[2]\E: warning: --max-growth cannot judge it: the snapshot is incomplete; .*--force$/m, 'and why');
		is(hdiff('--force', '--max-growth', $limit, $dir)->{status}, $limit eq '1/h' ? 1 : 0, "$limit: with --force it is judged");
	}
	is(hdiff($dir)->{status}, 0, 'without a limit it is content');
};

subtest 'with --force no limit is kept by what a damaged dump lacks' => sub {
	my $dir = fresh_dir();
	my @files = series($dir, \@six, { leak => \@leak, zz => [map { 1000 + 100 * $_ } 0 .. 5] });
	my $text = slurp($files[5]);
	spew($files[5], substr $text, 0, rindex $text, 'by: BackTrace'); # the second stack is missing
	for my $limit ('1T', '1T/h', '1/h') {
		my $result = hdiff('--force', '--max-growth', $limit, '-i', 'app\+' . place('zz') . '$', $dir);
		is($result->{status}, 2, "$limit: status 2");
		like($result->{err}, qr/^hdiff: --max-growth cannot judge growth: \Q$files[5]\E is cut short$/m, 'and why');
	}
	is(hdiff('--force', $dir)->{status}, 0, 'without a limit it is content');
	my $middle = fresh_dir();
	@files = series($middle, \@six, { leak => \@leak });
	cut(@files[2, 3]);
	my $over = hdiff('--force', '--max-growth', '1', $middle);
	is($over->{status}, 1, 'what is over a limit is');
	unlike($over->{err}, qr/cut short$/m, 'as before');
	like(hdiff('--force', '--max-growth', '1T', $middle)->{err}, qr/: \Q$files[2]\E is cut short, and 1 more is cut short or damaged$/m, 'two');
	cut($files[5]);
	like(hdiff('--force', '--max-growth', '1', $middle)->{err}, qr/over the limit of 1 byte; the last snapshot is cut short$/m, 'the message names the last snapshot');
	cut($files[0]);
	like(hdiff('--force', '--max-growth', '1', $middle)->{err}, qr/over the limit of 1 byte; the first and the last snapshots are cut short$/m, 'and the first');
	is(hdiff('--force', '--max-growth', '1T', @files[0, 5])->{status}, 0, 'of two dumps it is as it was');
};

subtest 'fewer than three snapshots of a process are too few for a verdict' => sub {
	my $dir = fresh_dir();
	my %stacks = (up => [1, 1000], more => [1, 3000], down => [900, 100]);
	series($dir, [@six[0, 1]], \%stacks, name => 'a%d.txt');
	series($dir, [@six[3, 4]], \%stacks, name => 'b%d.txt', pid => 7);
	for (["two processes", $dir], ['joined', '--across-restarts', $dir]) {
		my ($what, @args) = @$_;
		my $json = json(@args);
		my $series = $json->{series}[0];
		is_deeply([map { $_->{trend}{verdict} } $series, @{ $series->{rows} }], [('too-few') x 4], "$what: none, in JSON");
		is_deeply([places($json)], [map { place($_) } qw(more up down)], 'in the order of growth');
		my $text = hdiff(@args)->{out};
		is_deeply([map { /^(too few)/ } notes($text)], [('too few') x ($what eq 'joined' ? 3 : 6)], 'in text');
		like($text, qr{^// Fewer than three snapshots of a process are too few for a verdict\.$}m, 'and what that is');
		like($text, qr{^// BLOCKS are .*\n.*The largest growth comes first}m, 'the header states the order');
		like(hdiff('-o', 'csv', @args)->{out}, qr/,too-few,/, 'in CSV');
		my @groups = @{ json('--group', 'module', @args)->{series}[0]{groups} };
		is_deeply([map { $_->{self}{trend}{verdict}, $_->{total}{trend}{verdict} } @groups], [('too-few') x (2 * @groups)], 'of groups');
		is(scalar places(json('--verdict', 'too-few', @args)), 3, '--verdict too-few');
		is(scalar places(json('--verdict', 'grows,grew-once,returns,steady,shrinks', @args)), 0, 'and no other');
	}
	my $three = fresh_dir();
	series($three, [@six[0 .. 2]], { up => [1, 2, 3] });
	unlike(hdiff($three)->{out}, qr/too few/, 'three are enough');
	my $one = hdiff('--warm-up', 2, $three)->{out};
	unlike($one, qr/Rates/, 'a single snapshot has no rates');
};

subtest 'a series that is too short keeps no other from being judged, times or not' => sub {
	my $dir = fresh_dir();
	series($dir, \@six, { leak => \@leak }, name => 'a%d.txt');
	series($dir, [@six[0, 1]], { leak => [1, 2] }, name => 'b%d.txt', pid => 7, no_time => 1);
	my $result = hdiff('--max-growth', '50/h', $dir);
	is($result->{status}, 0, 'within the limit');
	like($result->{err}, qr/series \d: --max-growth cannot judge growth per hour: fewer than three/, 'and why one is not judged');
	is(hdiff('--max-growth', '49/h', $dir)->{status}, 1, 'over it');
};

subtest 'two dumps that are found are compared when they are of one process' => sub {
	my $dir = fresh_dir();
	series($dir, [$six[0]], { leak => [100] }, name => 'a%d.txt');
	series($dir, [$six[1]], { leak => [900] }, name => 'b%d.txt', pid => 7);
	my $json = json($dir);
	is($json->{schema}, 'hdiff-trend/1', 'else they are a trend');
	is(scalar @{ $json->{series} }, 2, 'of two series');
	is(json("$dir/a0.txt", "$dir/b0.txt")->{schema}, 'hdiff/1', 'two dumps given by name are compared');
	my $pair = fresh_dir();
	series($pair, [@six[0, 1]], { leak => [1, 2] });
	is(json($pair)->{schema}, 'hdiff/1', 'of one process they are compared');
	my $limit = hdiff('--max-growth', '1/h', $pair);
	is($limit->{status}, 2, 'a limit per hour makes them a trend');
	like($limit->{err}, qr/cannot judge growth per hour: fewer than three/, 'that is too short');
	like($limit->{out}, qr{^// SERIES 1 of 1}m, 'and is shown');
};

subtest 'a leak of blocks is judged by blocks' => sub {
	my $dir = fresh_dir();
	series($dir, \@six, { count => [map { [4096, 10 + $_] } 0 .. 5], bytes => [map { [100 + $_, 1] } 0 .. 5], step => [map { [$_ < 3 ? 50 : 90_000, 3] } 0 .. 5] });
	my $text = hdiff($dir)->{out};
	like($text, qr{^//     grows by blocks, \+0 bytes/h \(0 to 0\), \+1 blocks/h  \.\S+@\n}m, 'printed, and drawn');
	is((places(json($dir)))[1], place('count'), 'before what does not grow');
	my $slope = fresh_dir();
	series($slope, \@six, { count => [map { [4096, 10 + $_] } 0 .. 5], back => [map { [$_ == 2 ? 900_000 : 7, 1] } 0 .. 5] });
	is((places(json('--sort', 'slope', $slope)))[0], place('count'), '--sort slope: of as many bytes the most blocks');
	my ($group) = run(tool('hdiff', 'linux', '--group', 'function', $dir))->{out} =~ m{^(.*  app!count)$}m;
	like($group, qr{  \.\S+\@  app!count$}, 'groups are drawn so, too');
};

subtest 'exceeded limits are reported with numbers and what grows' => sub {
	my $dir = fresh_dir();
	series($dir, [map { START + 10 * HOUR * $_ } 1 .. 6], { leak => [map { 100 + 40_964 * $_ } 0 .. 5] });
	like(hdiff('--max-growth', '4096/h', $dir)->{err}, qr{^hdiff: growth of 4\.0 KiB/h \(4096\.4 bytes/h\) is over the limit of 4\.0 KiB/h \(4096 bytes/h\); fastest: }m, 'a fraction');
	my $both = fresh_dir();
	my @odd = map { $_ % 2 ? 500_000 : 1000 } 0 .. 11;
	series($both, [map { START + HOUR * $_ } 1 .. 12], { here => \@odd, there => [map { 600_000 + 100 * $_ - $odd[$_] } 0 .. 11] });
	like(hdiff('--max-growth', '1/h', $both)->{err},
		qr{^hdiff: growth of 100 bytes/h is over the limit of 1 bytes/h; the total keeps growing, but no single stack does: try --group}m,
		'only the sum grows');
};

subtest 'rows with equal sort keys are in the default order' => sub {
	my $dir = fresh_dir();
	series($dir, \@six, { step => [map { $_ < 3 ? [10, 1] : [90_000, 6] } 0 .. 5], leak => [map { [100 + $_, 1 + $_] } 0 .. 5] });
	my @default = places(json($dir));
	is_deeply(\@default, [map { place($_) } qw(leak step)], 'what leaks is first');
	is_deeply([places(json('--sort', 'count', $dir))], \@default, '--sort count: both grew by five');
	my $same = fresh_dir();
	series($same, \@six, { step => [10, 10, 10, 15, 15, 15], leak => [100 .. 105] });
	is_deeply([places(json('--sort', 'bytes', $same))], [map { place($_) } qw(leak step)], '--sort bytes: both grew by five');
};

subtest 'a sample among whole dumps is reported for the series' => sub {
	my $dir = fresh_dir();
	my @files = series($dir, \@six, { leak => \@leak });
	spew($files[2], slurp($files[2]) =~ s{^// hsnap: stacks}{// hsnap: sample bytes=65536\r\n// hsnap: stacks}mr);
	my $result = hdiff($dir);
	my $words = 'sampled at a different rate than the snapshot before it: growth in its series may be a sampling error';
	is($result->{err}, "hdiff: $files[2]: warning: $words\n", 'once, where it begins');
	like($result->{out}, qr{^// warning: \Q$files[2]\E: $words$}m, 'in the report, too');
};

subtest 'address space that is reserved for a while is reported' => sub {
	my $dir = fresh_dir();
	my @files = series($dir, \@six, { leak => \@leak });
	for my $i (2, 3) {
		my $part = join "\r\n", '// hsnap: heap addr=2 kind=reserved bits=64 committed=0 reserved=0',
		    '*- - - - - - - - - - Start of data for heap @ 2 - - - - - - - - - -',
		    '*- - - - - - - - - - Heap 2 Hogs: VirtualAlloc reserved - - - - - - - - - -', '',
		    sprintf('%X bytes in 0x1 allocations (@ 0x%X + 0x0) by: BackTrace77', (65536 * $i) x 2), "\t140001234", '', '',
		    '*- - - - - - - - - - End of data for heap @ 2 - - - - - - - - - -', '';
		spew($files[$i], slurp($files[$i]) =~ s{(?=^// hsnap: name)}{$part}mr
		    =~ s{end blocks=(\d+) requested=(\d+)}{'end blocks=' . ($1 + 1) . ' requested=' . ($2 + 65536 * $i)}er);
	}
	my $result = hdiff($dir);
	is($result->{err}, '', 'it is sound');
	like($result->{out}, qr{^// reserved but uncommitted address space, .*: \+0 \( 0 - 0\), 196608 at most; --heap reserved shows its stacks$}m, 'in the header');
	is_deeply([map { $_->{reserved}{bytes} } @{ json($dir)->{series}[0]{snapshots} }], [0, 0, 131072, 196608, 0, 0], 'in JSON');
	unlike(hdiff('--heap', 'reserved', $dir)->{out}, qr{^// reserved but uncommitted address space}m, 'if selected, it is in the sums');
};

subtest 'messages' => sub {
	my $dir = fresh_dir();
	my @files = series($dir, \@six, { leak => \@leak });
	check_error(hdiff('-f', "$dir/", $dir), 'hdiff', 'the report cannot be a folder', 'a folder');
	cut(@files);
	my $result = hdiff($dir);
	like($result->{err}, qr/^hdiff: \Q$dir\E: is cut short \(none of 6 files is complete\).*--force$/m, 'what would help when all are cut short');
	is(hdiff('--force', $dir)->{status}, 0, 'and helps');
	my $umdh = fresh_dir();
	umdh("$umdh/a$_.txt", $_, 4711, 1000 + $_), umdh("$umdh/b$_.txt", 30 + $_, 4712, 1000 + $_) for 0 .. 2;
	like(hdiff('--across-restarts', $umdh)->{out}, qr{^// SERIES 1 of 1: app\.exe, 2 processes, 6 snapshots}m, 'the image that joined them');
};

subtest 'sums that do not fit, and rates that are more than any memory' => sub {
	my $dir = fresh_dir();
	series($dir, [$six[$_], $six[$_] + 1, $six[$_] + 2], { leak => [map { [$_, 1] } BIG, BIG / 2, 0] }, pid => 10 + $_, name => "p$_-%d.txt") for 0 .. 2;
	my $result = hdiff('--across-restarts', $dir);
	is($result->{status}, 0, 'well') or diag($result->{err});
	unlike($result->{out}, qr/\binf\b/, 'rates are finite');
	like($result->{out}, qr{-8\.301e\+24 bytes/h}, 'and right'); # 2^61 each millisecond
	my $all = json('--across-restarts', $dir)->{series}[0]{totals}{all};
	is($all->{old}{bytes}, '9223372036854775807', 'the most stands for more');
};

# UMDH's logs have local times, which are set back an hour at the end of summer time.
subtest 'logs of two machines with one pid' => sub {
	my $dir = fresh_dir();
	for my $machine (0, 1) {
		for my $i (0 .. 2) {
			my $log = umdh("$dir/$machine-$i.txt", sprintf('1%d:0%d', $i, $machine), 44, 1000 + ($machine ? 0 : 4096 * $i));
			spew($log, slurp($log) =~ s/Machine=MADEUP/Machine=PC-$machine/r);
		}
	}
	my $report = json($dir);
	is_deeply([sort map { $_->{totals}{all}{growth}{bytes} } @{ $report->{series} }], [0, 8192], 'two series');
	is(hdiff('--max-growth', '1K/h', $dir)->{status}, 1, 'one of them grows');
	is(hdiff('--max-growth', '1K/h', glob "$dir/1-*.txt")->{status}, 0, 'the other does not');
};

# UMDH's banner identifies process and time, also of logs that are given by name.
subtest 'two logs of UMDH named in the wrong order' => sub {
	my $dir = fresh_dir();
	my ($old, $new) = (umdh("$dir/before.txt", '09:12', 4412, 1000), umdh("$dir/after.txt", '10:12', 4412, 14568));
	for ([$old, $new], [$new, $old]) {
		my $result = hdiff('--max-growth', 0, @$_);
		is($result->{status}, 1, 'the limit is exceeded');
		like($result->{err}, qr/growth of 13\.3 KiB \(13568 bytes\)/, '13568 bytes');
		is(scalar(() = $result->{err} =~ /\Q$new\E: warning: counts as NEW: taken after \Q$old\E$/mg), $_->[0] eq $new ? 1 : 0, 'a message if they were exchanged');
		is(hdiff('-o', 'text', @$_)->{out} =~ s/NEW.*|warning.*//gr, hdiff('-o', 'text', $dir)->{out} =~ s/NEW.*|warning.*//gr, 'the report of their folder');
	}
	my ($dump) = @{ json($new, $old)->{inputs} };
	is_deeply([@$dump{qw(path pid local_time time)}], [$old, 4412, '2025-11-20T09:12', undef], 'process and time in JSON');
	my $line = decode_json((split /\n/, hdiff('-o', 'jsonl', $new)->{out})[0]);
	is_deeply([@$line{qw(host pid start time bytes)}], ['MADEUP', 4412, '1970-01-01T00:00:00.000Z', '2025-11-20T10:12:00.000Z', 14568], 'and in JSON lines');
	# Other processes, and the night in which clocks are set back, do not determine the order.
	is(hdiff('--max-growth', 0, umdh("$dir/after.txt", '10:12', 4413, 14568), $old)->{status}, 0, 'logs of two processes stay in order');
	my @night = (umdh("$dir/n1.txt", '02:50', 5, 1000, '2025-10-26'), umdh("$dir/n2.txt", '02:10', 5, 2000, '2025-10-26'));
	my $result = hdiff('--max-growth', 0, @night);
	is($result->{status}, 1, 'when summer time ends, the order of the names counts');
	like($result->{err}, qr/n2\.txt: warning: its time, 2025-10-26T02:10, is not later than .* end of summer time/, 'with a message');
};

# The names of dumps that were found do not show their order: "after" sorts before "before".
subtest 'found dumps whose times do not show their order' => sub {
	my $dir = fresh_dir();
	my @logs = (umdh("$dir/before.txt", '09:12', 4412, 1000), umdh("$dir/after.txt", '09:12', 4412, 14568));
	my $unknown = qr/^hdiff: --max-growth cannot judge growth: the times in the dumps do not show/m;
	for ($dir, "$dir/*.txt") {
		my $result = hdiff('--max-growth', 0, $_);
		is($result->{status}, 2, "$_: a limit cannot be judged");
		like($result->{err}, $unknown, 'which is reported');
		like($result->{err}, qr/^hdiff: \S+before\.txt: warning: records the same time as \S+after\.txt: they are ordered by name$/m, 'with the reason');
		like($result->{out}, qr/ordered by name/, 'also in the report');
		is(hdiff($_)->{status}, 0, 'without a limit: only a warning');
		is(hdiff('--force', '--max-growth', 0, $_)->{status}, 0, 'with --force they count as ordered');
	}
	my $named = hdiff('--max-growth', 0, @logs);
	is($named->{status}, 1, 'the order of named logs counts');
	unlike($named->{err}, qr/warning/, 'without a warning');
	# In a longer series only its ends matter.
	my @times = (['09:12', '09:12', '09:13', 2], ['09:11', '09:12', '09:12', 2], ['09:11', '09:12', '09:12', '09:13', 0]);
	for (@times) {
		my ($status, $sub, $n) = (pop @$_, fresh_dir(), 0);
		my @files = map { umdh(sprintf('%s/%d.txt', $sub, $n++), $_, 4412, 1000 - $n) } @$_;
		is(hdiff('--max-growth', 0, $sub)->{status}, $status, "@$_: status $status");
		is(hdiff('--max-growth', 0, @files)->{status}, 0, 'named: 0');
	}
	my $timeless = fresh_dir();
	my @dumps = series($timeless, [@six[0, 1]], { leak => [1, 2] }, no_time => 1);
	my $result = hdiff('--max-growth', 0, $timeless);
	is($result->{status}, 2, 'two dumps without times');
	like($result->{err}, $unknown, 'and why');
	is(hdiff('--max-growth', 0, @dumps)->{status}, 1, 'given by name');
};

subtest 'two dumps of different processes that are found are no pair' => sub {
	my $dir = fresh_dir();
	umdh("$dir/c.txt", '11:12', 5120, 2000);
	umdh("$dir/a.txt", '09:12', 4412, 1000);
	my $result = hdiff($dir);
	is($result->{status}, 0, 'two series');
	like($result->{err}, qr/^hdiff: the two dumps are from different processes; to compare them: hdiff \Q$dir\E.a\.txt \Q$dir\E.c\.txt$/m, 'and how to compare them');
	umdh("$dir/d.txt", '12:12', 5120, 3000);
	unlike(hdiff($dir)->{err}, qr/to compare them/, 'three dumps are a trend');
};

# Logs of UMDH's have local times, which go back an hour at the end of summer time.
subtest 'the night in which summer time ends' => sub {
	my %nights = ('25 minutes apart' => [qw(01:40 02:05 02:30 02:55 02:20 02:45 03:10 03:35)], '20 minutes apart' => [qw(02:00 02:20 02:40 02:00 02:20 02:40 03:00)],
		'an hour apart' => [qw(00:30 01:30 02:30 02:30 03:30)]);
	for my $what (sort keys %nights) {
		my ($dir, $bytes) = (fresh_dir(), 1000);
		my @logs = map { umdh(sprintf('%s/%02d.txt', $dir, $bytes / 1000), $_, 5, $bytes += 1000, '2025-10-26') } @{ $nights{$what} };
		my $expanded = fresh_dir();
		my @numbered = map { copy($logs[$_], "$expanded/" . ($_ + 7) . '.txt') or die; "$expanded/" . ($_ + 7) . '.txt' } 0 .. $#logs;
		for my $files ([$dir], \@logs, [sort @numbered]) {
			my $result = hdiff('--max-growth', '1K/h', @$files);
			is($result->{status}, 2, "$what: growth per hour cannot be judged");
			like($result->{err}, qr/warning: its time, 2025-10-26T02:\d\d, is not later than .* end of summer time/, 'and why');
			is(json(@$files)->{series}[0]{rows}[0]{trend}{verdict}, 'grows', 'in the order of the names it grows each time');
		}
		umdh($logs[$_], sprintf('01:%02d', 30 - $_), 5, 1000, '2025-10-27') for 0 .. $#logs;
		is(hdiff('--max-growth', '1K/h', @logs)->{status}, 0, "$what: on another day the order of the names does not matter");
	}
};

# Writes logs of one process, each with 1000 bytes more than the one before. %logs maps names to
# times. Returns the folder and the files, in the order in which they were taken.
sub taken {
	my ($names, $times, @days) = @_;
	my $sub = fresh_dir();
	return $sub, map { umdh("$sub/$names->[$_]", $times->[$_], 4412, 1000 * ($_ + 1), $days[$_] // $days[-1]) } 0 .. $#$names;
}

# Logs of UMDH's have no running clock. Clocks are set back, by hand or by a time server.
subtest 'times that contradict the numbers in the names' => sub {
	my @numbers = map { "umdh_$_.log" } 8 .. 13;
	my %back = (
		'by three hours' => [[qw(10:00 10:30 11:00 08:30 09:00 09:30)], 10, 11],
		'by eight minutes' => [[qw(10:00 10:05 10:10 10:07 10:12 10:17)], 10, 11],
		'at the end' => [[qw(10:00 10:30 11:00 11:30 12:00 11:10)], 12, 13],
		'at the beginning' => [[qw(11:10 10:30 11:00 11:30 12:00 12:30)], 8, 9],
		'twice' => [[qw(10:00 09:00 10:30 11:00 10:10 11:30)], 8, 9]);
	for my $what (sort keys %back) {
		my ($times, $before, $after) = @{ $back{$what} };
		my ($sub, @logs) = taken(\@numbers, $times, '2025-11-20');
		my ($first, $second) = map { "$sub/umdh_$_.log" } $before, $after;
		my ($time, $other) = map { "2025-11-20T$times->[$_ - 8]" } $after, $before;
		my $words = "by its time, $time, it is before $first ($other), by its name after it: the clock may have been set; sorted by time";
		for my $files ([$sub], ["$sub/*.log"], \@logs, [sort @logs]) {
			for my $limit (4999, 5000, '99999', '1/h', '1T/h') {
				my $result = hdiff('--max-growth', $limit, @$files);
				is($result->{status}, 2, "$what, $limit: status 2");
				is(scalar(() = $result->{err} =~ /warning/g), 1, 'one warning') or diag($result->{err});
				like($result->{err}, qr/^hdiff: \Q$second: warning: $words, without rates\E$/m, 'both orders and files');
				like($result->{err}, qr/^hdiff: --max-growth cannot judge growth(?: per hour)?: the date of \Q$second\E is in doubt; correct it, or use --force$/m, 'why');
			}
			is(hdiff(@$files)->{status}, 0, "$what: without a limit only a warning");
			my $forced = hdiff('--force', '--max-growth', '1T', '-o', 'text', @$files);
			is($forced->{status}, 0, "$what: --force accepts the times");
			like($forced->{err}, qr/\A\Qhdiff: $second: warning: $words\E\n\z/, 'with the warning');
			like($forced->{out}, qr{B/h}, 'and rates');
		}
		my @by_time = sort { $times->[$a] cmp $times->[$b] or $a <=> $b } 0 .. 5;
		is_deeply([map { $_->{path} } @{ json($sub)->{series}[0]{snapshots} }], [@logs[@by_time]], "$what: the times are the order");
	}
	my ($sub, @logs) = taken([qw(1.txt 2.txt)], [qw(11:00 10:00)], '2025-11-20');
	my $pair = hdiff('--max-growth', 9999, $sub);
	is($pair->{status}, 2, 'two logs of a folder');
	like($pair->{err}, qr/2\.txt: warning: by its time, .* is before \S+1\.txt .*by its name after it: the clock may have been set; sorted by time$/m, 'and why');
	is(hdiff('--force', '--max-growth', 9999, $sub)->{status}, 0, 'two logs: --force');
	is(hdiff('--max-growth', 1000, @logs)->{status}, 0, 'two logs by name are only exchanged, with a message');
	($sub, @logs) = taken(\@numbers, $back{'by three hours'}[0], '2025-11-20');
	is(hdiff('--max-growth', '1T', @$_)->{status}, 2, "@$_[0, 1]: which logs are used depends on the order") for ['--warm-up', 3, $sub], ['--since', '1h', $sub];
	my $part = hdiff('--max-growth', 2000, '--until', '2025-11-20T09:30', $sub);
	is("$part->{status}$part->{err}", 0, '--until: a part without a contradiction');
	is(hdiff('--sum', '--max-growth', 1000, $logs[0])->{status}, 0, 'a sum has no order');
};

subtest 'times that contradict the command line' => sub {
	my ($sub, @logs) = taken([qw(start.log middle.log end.log)], [qw(10:00 11:00 09:00)], '2025-11-20');
	my $result = hdiff('--max-growth', 9999, @logs);
	is($result->{status}, 2, 'status 2');
	like($result->{err}, qr/^hdiff: \Q$logs[2]: warning: by its time, 2025-11-20T09:00, it is before $logs[1] (2025-11-20T11:00), by its place on the command line after it: \E/m, 'a warning');
	is(scalar(() = $result->{err} =~ /warning/g), 1, 'only one');
	# In these cases the times are right.
	for my $files ([$sub], [sort @logs], [@logs[1, 0, 2]]) {
		$result = hdiff('--max-growth', 9999, @$files);
		is("$result->{status}$result->{err}", 0, "@$files: found, in alphabetic order, or from the newest to the oldest") or diag($result->{err});
	}
};

# The clock was right.
subtest 'times that contradict nothing' => sub {
	my @days = map { "2025-11-$_" } 20 .. 25;
	my %right = (
		'numbers in alphabetic order' => [[map { "u$_.log" } 1 .. 12], [map { "10:$_" } 10 .. 21], '2025-11-20'],
		'names without numbers' => [[qw(start.log middle.log end.log)], [qw(10:00 10:30 11:00)], '2025-11-20'],
		'names that count backwards' => [[map { "u$_.log" } 3, 2, 1], [qw(10:00 10:30 11:00)], '2025-11-20'],
		'dates, the day first' => [[qw(29-11-2025.log 30-11-2025.log 01-12-2025.log 02-12-2025.log)], [('10:00') x 4], qw(2025-11-29 2025-11-30 2025-12-01 2025-12-02)],
		'hours' => [[map { sprintf 'u%02d.log', $_ } 18 .. 23, 0 .. 17], [map { sprintf '%02d:02', $_ } 18 .. 23, 0 .. 17], ('2025-11-20') x 6, '2025-11-21'],
		'days of the month' => [[map { sprintf 'u%02d.log', $_ } 16 .. 30, 1 .. 15], [('10:00') x 30], (map { "2025-11-$_" } 16 .. 30), map { sprintf '2025-12-%02d', $_ } 1 .. 15],
		'times past midnight' => [[qw(2300.log 2330.log 0000.log 0030.log)], [qw(23:00 23:30 00:00 00:30)], ('2025-11-20') x 2, '2025-11-21'],
		'other numbers' => [[qw(u4711.log u815.log u99.log u2000.log)], [qw(10:00 10:30 11:00 11:30)], '2025-11-20'],
		'a minute' => [[qw(u1.log u2.log u3.log u4.log)], [qw(10:00 10:01 10:01 10:02)], '2025-11-20'],
	);
	for my $what (sort keys %right) {
		my ($names, $times, @on) = @{ $right{$what} };
		my ($sub, @logs) = taken($names, $times, @on);
		my $growth = 1000 * $#logs;
		for my $files ([$sub], \@logs, [sort @logs], [reverse @logs]) {
			my $got = hdiff('--max-growth', $growth, @$files);
			is($got->{status}, 0, "$what: $growth bytes");
			unlike($got->{err}, qr/by its/, 'in silence') or diag($got->{err});
			is(hdiff('--max-growth', $growth - 1, @$files)->{status}, 1, "$what: one byte less");
		}
	}
	my ($sub, @logs) = taken([qw(10.log 25.log 40.log)], [qw(10:10 10:25 10:40)], '2025-11-20');
	my $mixed = hdiff('--max-growth', 2000, @logs[2, 0, 1]);
	is("$mixed->{status}$mixed->{err}", 0, 'numbers that agree with the times');
	my @dumps = series($sub, [@six[0 .. 2]], { leak => [1 .. 3] }, name => 'd%d.txt');
	is(hdiff($sub)->{err}, '', 'two processes');
};

# A process does not run for a year between two logs, and no rate is that of ten years.
subtest 'a clock that was wrong by years' => sub {
	for my $names ([map { "u$_.log" } 1 .. 6], [qw(b.log e.log d.log f.log a.log c.log)]) {
		my ($sub, @logs) = taken($names, [map { "1$_:00" } 0 .. 5], ('2016-01-01') x 2, '2025-11-20');
		my $is_numbered = $names->[0] =~ /\d/;
		my $words = "$logs[2]: warning: its time, 2025-11-20T12:00, is 3611 days after that of $logs[1] (2016-01-01T11:00): the clock may have been set, so there are no rates";
		for my $limit ('1/h', '1T/h', 5000, 4999) {
			my $result = hdiff('--max-growth', $limit, $sub);
			my $status = $limit =~ /h/ || !$is_numbered ? 2 : $limit == 5000 ? 0 : 1;
			is($result->{status}, $status, "$names->[0], $limit: status $status");
			is(scalar(() = $result->{err} =~ /warning/g), 1, 'one warning');
			like($result->{err}, qr/^hdiff: \Q$words\E$/m, 'which one');
		}
		unlike(hdiff('-o', 'text', $sub)->{out}, qr{B/h}, 'no rates');
		is(hdiff('--max-growth', 5000, @logs)->{status}, 0, 'named in this order') if !$is_numbered;
		my $later = hdiff('--max-growth', '999/h', '--since', '2025-01-01', $sub);
		is($later->{status}, 1, 'the others have a rate');
		unlike($later->{err}, qr/warning/, 'in silence');
	}
	# The third and fourth of six are dated ahead, and count as the last.
	for my $names ([map { "u$_.log" } 1 .. 6], [qw(b.log e.log d.log f.log a.log c.log)]) {
		for my $year (2526, 2936) {
			my ($sub, @logs) = taken($names, [map { "1$_:00" } 0 .. 5], ('2025-11-20') x 2, ("$year-11-20") x 2, '2025-11-20');
			for my $files ([$sub], \@logs) {
				my $result = hdiff('--max-growth', 4999, @$files);
				is($result->{status}, 2, "$names->[0], $year: the last is not known") or diag($result->{err});
				like($result->{err}, qr/cannot judge growth: the date of \S+log is (?:wrong|in doubt; .*)$/m, 'which is reported');
			}
		}
	}
};

# Writes a UMDH log with one block. $time: minutes after ten, or a time of day.
sub umdh {
	my ($to, $time, $pid, $bytes, $day) = @_;
	$time = sprintf '10:%02d', $time if $time !~ /:/;
	$day //= '2025-11-20';
	return spew($to, join "\r\n", '// ', "// UMDH: version 10.0.19041.1: Logtime $day $time - Machine=MADEUP - PID=$pid",
		'// ', '', '// Loaded modules: ', '//     Base Size Module', '//           140000000    10000 C:\app\app.exe',
		'//           7FF800000000    10000 C:\Windows\ntdll.dll', '//', '// Process modules enumerated.', '',
		'*- - - - - - - - - - Start of data for heap @ 1E0000 - - - - - - - - - -', '',
		'*- - - - - - - - - - Heap 1E0000 Hogs - - - - - - - - - -', '', '',
		sprintf('%X bytes + 10 at 200000 by BackTrace1234', $bytes), "\t140001000", "\t7FF800001000", '', '',
		'*- - - - - - - - - - End of data for heap @ 1E0000 - - - - - - - - - -', '');
}

subtest 'one snapshot given twice' => \&given_twice;
done_testing;

# A copy of a snapshot shows no growth, whatever grew.
sub given_twice {
	my $dir = fresh_dir();
	my $head = "// UMDH: version 10.0.19041.1: Logtime 2026-05-04 09:31 - Machine=SRV3 - PID=7\n";
	my $log = sub { my ($blocks) = @_;
		return "*- - - Start of data for heap @ 1F0000 - - -\n" . join('', map { sprintf "30 bytes + 10 at %X by BackTrace11\n%s", 0x200000 + 64 * $_, $_ ? '' : "\t7FF600001A12\n\n" } 0 .. $blocks - 1)
			. "*- - - End of data for heap @ 1F0000 - - -\n" };
	my $own = series_dump(1763632800000, { leak => 1000 });
	for my $text ($head . $log->(4), $log->(4), $own) {
		my @files = map { spew("$dir/twice$_.txt", $_ ? $text =~ s/\r?\n/\r\n/gr : $text) } 0, 1;
		for my $pair ([@files], [$files[0], $files[0]]) {
			my $result = hdiff('--max-growth', 0, '--junit', "$dir/twice.xml", @$pair);
			is($result->{status}, 2, 'nothing is judged');
			like($result->{err}, qr/^hdiff: \Q$pair->[1]\E: warning: the same snapshot as \Q$pair->[0]\E$/m, 'the reason') or diag($result->{err});
			like(slurp("$dir/twice.xml"), qr/ errors="1"/, 'the build server does not see it as passed');
			is(hdiff('--max-growth', 0, '--force', @$pair)->{status}, 0, 'with --force');
		}
	}
	my @later = map { spew("$dir/later$_.txt", $head . ($log->(4) =~ s/200000/$_/r)) } '200000', '300000';
	is(hdiff('--max-growth', 0, @later)->{status}, 0, 'two snapshots of one minute with equal sums');
	return;
}
