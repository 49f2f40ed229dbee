#!/usr/bin/perl
# A trend for programs and spreadsheets: the whole series of each stack, in JSON and CSV, parsed by
# independent parsers. This test makes the dumps, so it knows the expected output.
use strict;
use warnings;
no warnings 'portable';    # numbers of 64 bits
use utf8;
use Encode qw(decode);
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP;
use Test::More;
use Hunt;
use Series;
eval { require Text::CSV } or needs_linux('Text::CSV');

binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output todo_output);

my ($start, $begin, $hour) = (1763632800000, 1763633000123, 3600000);
my @times = map { $begin + $_ * $hour } 0 .. 11;
my $unknown = "\x{fffd}";
# Extreme names, and the text that results. All of these stacks grow by 1000 bytes and two blocks an
# hour.
my %odd = (
	'leak' => 'leak',
	'map<int, char>' => 'map<int, char>',
	'quo"te' => 'quo"te',
	"new\nline" => 'new?line',
	'=1+1' => '=1+1',
	"J\xfcrgen" => "J${unknown}rgen",
);
my %stacks = (
	(map { $_ => [map { [50_000 + 1000 * $_, 10 + 2 * $_] } 0 .. 11] } keys %odd),
	step => [map { $_ < 4 ? [4096, 4] : [8192, 8] } 0 .. 11],
	gone => [map { [24_000 - 2000 * $_, 13 - $_] } 0 .. 11],
	passing => [map { $_ == 5 ? [70_000, 7] : 0 } 0 .. 11],
	back => [map { $_ == 5 ? [90_000, 9] : [500, 5] } 0 .. 11],
	still => [map { [640, 5] } 0 .. 11],
);
my %verdict = ((map { $_ => 'grows' } keys %odd), step => 'grew-once', gone => 'shrinks', passing => 'returns', back => 'returns');
my %text_of = (%odd, map { $_ => $_ } qw(step gone passing back still));
my %name_of = reverse %text_of;

my $dir = fresh_dir();
my @files = names(series($dir, \@times, \%stacks));
subtest 'one series, json' => \&check_json;
subtest 'one series, csv' => \&check_csv;
subtest 'one series, folded' => \&check_folded;
subtest 'what was selected' => \&check_selected;
subtest 'both systems' => \&check_sides;
subtest 'without times' => \&check_no_times;
subtest 'two processes' => \&check_two;
subtest 'two processes joined' => \&check_joined;
subtest 'one snapshot' => \&check_short;
subtest 'what files say of themselves' => \&check_state;
subtest 'times of a wall clock' => \&check_umdh;
subtest 'two dumps are no trend' => \&check_pair;
subtest 'man pages' => \&check_pages;
done_testing;

# ---------------------------------------------------------------- helpers

sub names { return map { s,.*/,,r } @_ }

sub hdiff_in {
	my ($where, @args) = @_;
	return run(tool('hdiff', 'linux', @args), dir => $where);
}

sub report_of {
	my (@args) = @_;
	my $result = hdiff_in($dir, @args);
	is($result->{status}, 0, "hdiff @args") or diag($result->{err});
	return $result->{out};
}

sub json_in {
	my ($bytes) = @_;
	my $json = eval { JSON::PP->new->utf8->decode($bytes) };
	ok($json, 'is JSON in UTF-8') or die $@;
	is($bytes =~ tr/\x00-\x09\x0b-\x1f\x7f//, 0, 'no control characters');
	is($json->{schema}, 'hdiff-trend/1', 'a schema of its own');
	return $json;
}

# Removes the mark that precedes text that a spreadsheet would execute (man/hdiff-csv.5).
sub unmarked { return $_[0] =~ s/^'(?=[=+\-\@'\t\r\n])//r }

# Returns the columns' names, and a hash for each record.
sub csv_in {
	my ($bytes) = @_;
	my $csv = Text::CSV->new({ binary => 1, strict => 1, eol => "\r\n" });
	open my $in, '<:encoding(UTF-8)', \$bytes or die "csv: $!\n";
	my @records;
	while (my $record = $csv->getline($in)) {
		push @records, $record;
	}
	ok($csv->eof, 'is CSV, each record as long as the first') or diag($csv->error_diag);
	my $names = shift @records;
	return ($names, map { my %of; @of{@$names} = @$_; \%of } @records);
}

# Returns the bytes (0) or blocks (1) of a synthetic stack at each time.
sub sums {
	my ($stack, $what) = @_;
	return [map { ref $_ ? $_->[$what] : $_ } @$stack];
}

sub total {
	my ($stacks, $what, $i) = @_;
	my $sum = 0;
	$sum += sums($_, $what)->[$i] for values %$stacks;
	return $sum;
}

sub net { return $_[0][-1] - $_[0][0] }

# ---------------------------------------------------------------- one series

sub check_json {
	my $bytes = report_of('-o', 'json', @files);
	my $json = json_in($bytes);
	is_deeply([@$json{qw(group frame_order)}], [qw(stack innermost_first)], 'group and frame order');
	is(scalar @{ $json->{series} }, 1, 'one series');
	my $series = $json->{series}[0];
	is_deeply($series->{parts}, [{ image => 'C:\\app\\app.exe', pid => 4242, start => iso($start), first => 0, count => 12 }],
		'of one process');
	is($series->{number}, 1, 'it has a number');
	is_deeply($series->{snapshots}, [map { +{
		path => $files[$_], time => iso($times[$_]), cut => JSON::PP::false, warning_count => 0, warnings => [],
		selected => { bytes => total(\%stacks, 0, $_), blocks => total(\%stacks, 1, $_), overhead => 8 * total(\%stacks, 1, $_) },
	} } 0 .. 11], 'the snapshots, and the sums of each');
	my %all = map { (qw(old new))[$_] => $series->{snapshots}[-$_]{selected} } 0, 1;
	$all{growth} = { map { $_ => $all{new}{$_} - $all{old}{$_} } qw(bytes blocks overhead) };
	is_deeply([@{ $series->{totals} }{qw(all selected)}], [\%all, \%all], 'first and last, and what grew');
	is($series->{trend}{net_bytes}, $all{growth}{bytes}, 'net growth of all');

	my %rows = map { $name_of{ $_->{frames}[0]{function} } => $_ } @{ $series->{rows} };
	is_deeply([sort keys %rows], [sort keys %verdict], 'a row for each stack that is not always the same');
	is_deeply([@$series{qw(row_count shown_count)}], [(scalar keys %verdict) x 2], 'as many as are counted');
	for my $name (sort keys %rows) {
		my ($row, $shown) = ($rows{$name}, $text_of{$name});
		is_deeply($row->{$_->[0]}, sums($stacks{$name}, $_->[1]), "$shown: $_->[0]") for [bytes => 0], [blocks => 1];
		is($row->{trend}{verdict}, $verdict{$name}, "$shown: verdict");
		is_deeply([@{ $row->{trend} }{qw(net_bytes net_blocks)}], [map { net(sums($stacks{$name}, $_)) } 0, 1], "$shown: net");
	}
	is_deeply({ %{ $rows{leak}{trend} } }, { verdict => 'grows', net_bytes => 11_000, net_blocks => 22,
			bytes_per_hour => 1000, low_bytes_per_hour => 1000, high_bytes_per_hour => 1000, blocks_per_hour => 2 },
		'a straight line has its slope, without doubt');
	is_deeply([@{ $rows{gone}{trend} }{qw(bytes_per_hour blocks_per_hour)}], [-2000, -1], 'also downwards');

	is($json->{series_count}, 1, 'of one');
	my @lines = grep { /^\{"kind"/ } split /\n/, $bytes;
	is(scalar @lines, scalar keys %verdict, 'one row a line');
	is(scalar(grep { !eval { JSON::PP->new->utf8->decode(s/(?:,|\]\}\]\})\z//r) } } @lines), 0, 'each of which can be read alone');
	ok($bytes eq report_of('-o', 'json', reverse @files), 'the order of arguments changes nothing');
}

sub check_csv {
	my ($columns, @records) = csv_in(report_of('-o', 'csv', @files));
	is_deeply([grep { /^bytes \d/ } @$columns], [map { 'bytes ' . iso($_) } @times], 'a column of bytes for each time');
	is_deeply([grep { /^blocks \d/ } @$columns], [map { 'blocks ' . iso($_) } @times], 'and one of blocks');
	is(scalar(grep { /\A\n?(?:bytes|blocks) \d/ } @$columns[-24 .. -1]), 24, 'behind all others');
	my %rows = map { $name_of{ unmarked($_->{function}) } => $_ } @records;
	is_deeply([sort keys %rows], [sort keys %verdict], 'a row for each stack');
	for my $name (sort keys %rows) {
		my ($row, $shown) = ($rows{$name}, $text_of{$name});
		for my $what (0, 1) {
			my $sums = sums($stacks{$name}, $what);
			is_deeply([map { $row->{ (qw(bytes blocks))[$what] . ' ' . iso($_) } } @times], $sums, "$shown: " . (qw(bytes blocks))[$what]);
			is($row->{ (qw(net_bytes net_blocks))[$what] }, net($sums), "$shown: net");
			is_deeply([@$row{ map { $_ . (qw(_bytes _count))[$what] } qw(old new growth) }], [@$sums[0, -1], net($sums)],
				"$shown: first and last");
		}
		is($row->{verdict}, $verdict{$name}, "$shown: verdict");
		is_deeply([@$row{qw(series image pid start)}], [1, 'C:\\app\\app.exe', 4242, iso($start)], "$shown: whose it is");
		is($row->{stack}, "app!$shown <- app+FFF", "$shown: stack");
	}
	is_deeply([@{ $rows{leak} }{qw(bytes_per_hour low_bytes_per_hour high_bytes_per_hour blocks_per_hour)}],
		[1000, 1000, 1000, 2], 'the slope of a straight line');
	is(scalar(grep { /^[=+\-\@\t\r]/ && !/^-?[\d.]+$/ } map { values %$_ } @records), 0, 'no field is a formula');
}

sub check_folded {
	my %found = map { /^(.*) (\d+) (\d+)$/ ? ($1 => [$2, $3]) : ($_ => 'what is this') }
	    split /\n/, decode('UTF-8', report_of('-o', 'folded', @files));
	my %wanted = map { my $sums = sums($stacks{$_}, 0); ("app+FFF;app!$text_of{$_}" => [@$sums[0, -1]]) }
	    grep { !/^(?:passing|back)$/ } keys %verdict;
	is_deeply(\%found, \%wanted, 'the first snapshot against the last, of what they differ in');
}

sub check_selected {
	my $series = json_in(report_of('-o', 'json', '-i', '!(?:step|leak)$', @files))->{series}[0];
	ok($series->{filtered}, 'filtered');
	is_deeply([map { $_->{selected}{bytes} } @{ $series->{snapshots} }],
		[map { sums($stacks{step}, 0)->[$_] + sums($stacks{leak}, 0)->[$_] } 0 .. 11], 'the sums of two stacks');
	is($series->{trend}{net_bytes}, 11_000 + 4096, 'and what they grew by');
	is($series->{totals}{all}{old}{bytes}, total(\%stacks, 0, 0), 'of all there is');
	is(scalar @{ json_in(report_of('-o', 'json', '-n', 1, @files))->{series}[0]{rows} }, 1, 'the first row');
	my $grouped = json_in(report_of('-o', 'json', '--group', 'module', @files))->{series}[0];
	is_deeply([map { [@$_{qw(name)}, $_->{total}{growth}{bytes}] } @{ $grouped->{groups} }],
		[['app', total(\%stacks, 0, 11) - total(\%stacks, 0, 0)]], 'a group, and what it grew by');
	my (undef, @groups) = csv_in(report_of('-o', 'csv', '--group', 'module', @files));
	is_deeply([map { [@$_{qw(name growth_bytes)}] } @groups], [['app', $grouped->{groups}[0]{total}{growth}{bytes}]], 'csv');
	check_functions();
}

# Each group has two series: the sum of the stacks that end in the group, and that of all stacks
# that pass through it.
sub check_functions {
	my $by = json_in(report_of('-o', 'json', '--group', 'function', @files))->{series}[0]{groups};
	my ($leak) = grep { $_->{name} eq 'app!leak' } @$by;
	for my $part (qw(self total)) {
		is_deeply($leak->{$part}{$_->[0]}, sums($stacks{leak}, $_->[1]), "function: $_->[0] of $part") for [bytes => 0], [blocks => 1];
		is_deeply([@{ $leak->{$part}{trend} }{qw(verdict bytes_per_hour)}], ['grows', 1000], "function: trend of $part");
	}
	my ($main) = grep { !@{ [grep { $_ } @{ $_->{self}{bytes} }] } } @$by;
	my @changing = grep { $_ ne 'still' } keys %stacks;
	is_deeply($main->{total}{bytes}, [map { my $i = $_; my $sum = 0; $sum += sums($stacks{$_}, 0)->[$i] for @changing; $sum } 0 .. 11],
		'function: the caller of all');
	is_deeply([@{ $main->{self} }{qw(bytes blocks)}, $main->{self}{trend}{verdict}], [[(0) x 12], [(0) x 12], 'steady'], 'which asks for nothing itself');
	my (undef, @records) = csv_in(report_of('-o', 'csv', '--group', 'function', @files));
	my ($same) = grep { $_->{name} eq 'app!leak' } @records;
	is_deeply([map { $same->{ 'bytes ' . iso($_) } } @times], sums($stacks{leak}, 0), 'function, csv: bytes');
	is_deeply([@$same{qw(verdict self_verdict bytes_per_hour self_bytes_per_hour self_net_blocks)}], ['grows', 'grows', 1000, 1000, 22],
		'function, csv: trend');
	my ($root) = grep { $_->{self_verdict} eq 'steady' } @records;
	is_deeply([@$root{qw(self_net_bytes net_bytes)}], [0, $main->{total}{trend}{net_bytes}], 'function, csv: of self and of total');
}

# Checks that both systems print the same bytes, including rates.
sub check_sides {
	my @odd_times = map { $begin + $_ * 7_654_321 } 0 .. 6;
	my $sub = "$dir/sides";
	mkdir $sub;
	my @given = names(series($sub, \@odd_times, {
		slow => [map { [1000 + 7 * $_ + $_ % 2, 1 + int $_ / 3] } 0 .. 6], fast => [map { 1 << 40 + $_ } 0 .. 6] }));
	for my $format (qw(json csv)) {
		my ($here, $there) = map { run(tool('hdiff', $_, '-o', $format, @given), dir => $sub) } tool_names();
		is("$here->{status} $there->{status}", '0 0', "$format: both went well");
		ok($here->{out} eq $there->{out}, "$format: the same bytes");
		like($here->{out}, qr/[:,]\d+\.\d{1,3}[,}]/, "$format: with fractions");
		unlike($here->{out}, qr/\d[eE][+\d]|\binf\b|\bnan\b/i, "$format: plain numbers");
	}
}

# ---------------------------------------------------------------- other series

sub check_no_times {
	my $sub = "$dir/no_times";
	mkdir $sub;
	my @given = names(series($sub, [@times[0 .. 3]], { leak => [map { 100 * $_ } 1 .. 4] }, no_time => 1));
	my $result = hdiff_in($sub, '-o', 'json', @given);
	is($result->{status}, 0, 'well') or diag($result->{err});
	my $series = json_in($result->{out})->{series}[0];
	is_deeply([map { $_->{path} } @{ $series->{snapshots} }], \@given, 'in the order given');
	ok(!grep({ exists $_->{time} } @{ $series->{snapshots} }), 'no time');
	for my $trend ($series->{trend}, $series->{rows}[0]{trend}) {
		is_deeply([grep { defined $trend->{$_} } grep { /hour/ } sort keys %$trend], [], 'no rates');
		is(scalar(grep { /hour/ } keys %$trend), 4, 'which is reported for each');
	}
	my ($columns, $row) = csv_in(hdiff_in($sub, '-o', 'csv', @given)->{out});
	is_deeply([grep { /^bytes / } @$columns], [map { "bytes $_" } @given], 'csv: columns have the names of the files');
	is_deeply([map { $row->{$_} } grep { /hour/ } @$columns], [('') x 4], 'csv: no rates');
}

# Two processes with the same name, whose snapshots alternate. The second process started first.
my (%one, %two, $two_start);

sub made_two {
	my $sub = "$dir/two";
	return $sub if -d $sub;
	mkdir $sub;
	$two_start = $start + 12 * $hour;
	%one = (leak => [map { 1000 * $_ } 5 .. 10], still => [(64) x 6]);
	%two = (leak => [map { 1000 * $_ } 1 .. 6], other => [10, 10, 20, 20, 20, 20]);
	series($sub, [@times[0 .. 5]], \%one, name => 'z-%d.txt');
	series($sub, [map { $two_start + $_ * $hour } 1 .. 6], \%two, name => 'a-%d.txt', pid => 77, start => $two_start, slide => 0x10000);
	return $sub;
}

sub check_two {
	my $sub = made_two();
	my @all = files_in($sub);
	my $result = hdiff_in($sub, '-o', 'json', @all);
	is($result->{status}, 0, 'well') or diag($result->{err});
	my @series = @{ json_in($result->{out})->{series} };
	is(scalar @series, 2, 'two series') or return;
	is_deeply([map { $_->{number} } @series], [1, 2], 'numbered');
	is_deeply([map { map { [@$_{qw(pid start first count)}] } @{ $_->{parts} } } @series],
		[[4242, iso($start), 0, 6], [77, iso($two_start), 0, 6]], 'the first to begin first');
	is_deeply([map { join ' ', map { $_->{path} } @{ $_->{snapshots} } } @series],
		[join(' ', map { "z-$_.txt" } 0 .. 5), join(' ', map { "a-$_.txt" } 0 .. 5)], 'each with its snapshots');
	is_deeply([map { { map { $_->{frames}[0]{function} => $_->{bytes} } @{ $_->{rows} } } } @series],
		[{ leak => $one{leak} }, { leak => $two{leak}, other => $two{other} }], 'and with its rows');

	my ($columns, @records) = csv_in(hdiff_in($sub, '-o', 'csv', @all)->{out});
	my @bytes = grep { /^bytes \d/ } @$columns;
	is_deeply(\@bytes, [map { 'bytes ' . iso($_) } @times[0 .. 5], map { $two_start + $_ * $hour } 1 .. 6], 'csv: all times');
	is_deeply({ map { my $row = $_; ("$row->{series} $row->{pid} $row->{function}" => join ' ', map { $row->{$_} =~ s/^$/-/r } @bytes) } @records },
		{ '1 4242 leak' => '5000 6000 7000 8000 9000 10000 - - - - - -', '2 77 leak' => '- - - - - - 1000 2000 3000 4000 5000 6000',
		  '2 77 other' => '- - - - - - 10 10 20 20 20 20' }, 'csv: each series in its own columns');

	my $refused = hdiff_in($sub, '-o', 'folded', '-f', "$dir/folded.txt", @all);
	check_error($refused, 'hdiff', 'folded: two series', '--series', '2');
	ok(!-e "$dir/folded.txt", 'folded: nothing is written');
	for my $series ([1, 5000, 10000], [2, 1000, 6000]) {
		my ($number, $old, $new) = @$series;
		my $chosen = hdiff_in($sub, '-o', 'folded', '--series', $number, '-i', 'leak', @all);
		is($chosen->{out}, "app+FFF;app!leak $old $new\n", "folded: series $number") or diag($chosen->{err});
	}
	my $second = json_in(hdiff_in($sub, '-o', 'json', '--series', 2, @all)->{out})->{series};
	is_deeply([map { [$_->{number}, $_->{parts}[0]{pid}] } @$second], [[2, 77]], 'a series keeps its number');
	my (undef, @second) = csv_in(hdiff_in($sub, '-o', 'csv', '--series', 2, @all)->{out});
	is_deeply([map { $_->{series} } @second], [2, 2], 'csv: too');
}

sub check_joined {
	my $sub = made_two();
	my $result = hdiff_in($sub, '-o', 'json', '--across-restarts', files_in($sub));
	is($result->{status}, 0, 'well') or diag($result->{err});
	my @series = @{ json_in($result->{out})->{series} };
	is(scalar @series, 1, 'one series') or return;
	is_deeply([map { [@$_{qw(pid first count)}] } @{ $series[0]{parts} }], [[4242, 0, 6], [77, 6, 6]], 'of two parts');
	my %rows = map { $_->{frames}[0]{function} => $_ } @{ $series[0]{rows} };
	is_deeply($rows{leak}{bytes}, [@{ $one{leak} }, @{ $two{leak} }], 'one row for both');
	is($rows{leak}{trend}{net_bytes}, 5000 + 5000, 'what it grew by within each');
	is_deeply([@{ $rows{leak}{trend} }{qw(verdict bytes_per_hour)}], ['grows', 1000], 'and how fast');
	my $totals = $series[0]{totals}{all};
	is_deeply([map { $totals->{$_}{bytes} } qw(old new growth)], [5064 + 1010, 10064 + 6020, 10010], 'first and last of each, added up');
	is($series[0]{trend}{net_bytes}, 10010, 'which is what all of it grew by');
}

# A process with one snapshot shows no growth, but it is still a series.
sub check_short {
	my $sub = "$dir/short";
	mkdir $sub;
	series($sub, [$times[0]], { leak => [500] }, name => 'a-%d.txt');
	series($sub, [@times[1, 2]], { leak => [500, 700] }, name => 'b-%d.txt', pid => 77);
	my @series = @{ json_in(hdiff_in($sub, '-o', 'json', '.')->{out})->{series} };
	is_deeply([map { $_->{parts}[0]{count} } @series], [1, 2], 'both are there');
	is_deeply([@{ $series[0]{trend} }{qw(net_bytes bytes_per_hour blocks_per_hour)}], [0, undef, undef], 'nothing grew, no rate');
	is_deeply($series[0]{totals}{all}{growth}, { bytes => 0, blocks => 0, overhead => 0 }, 'nor is all of it growth');
	is_deeply($series[0]{rows}, [], 'no rows');
	is_deeply($series[1]{rows}[0]{bytes}, [500, 700], 'the other one has a row');
	my (undef, @records) = csv_in(hdiff_in($sub, '-o', 'csv', '.')->{out});
	is_deeply([map { [@$_{qw(series net_bytes)}] } @records], [[2, 200]], 'csv: too');
}

# Tests a truncated dump, a sampled dump, and a dump with a warning.
sub check_state {
	my $sub = "$dir/state";
	mkdir $sub;
	my @given = names(series($sub, [@times[0 .. 3]], { leak => [map { 1 << 20 + $_ } 1 .. 4] }));
	my $note = sub {
		my ($file, $text) = @_;
		spew("$sub/$file", slurp("$sub/$file") =~ s{^(?=// hsnap: stacks)}{$text\r\n}mr);
	};
	$note->($_, '// hsnap: sample bytes=65536') for @given;
	$note->($given[2], '// hsnap: warning text="a heap is missing"');
	my $result = hdiff_in($sub, '-o', 'json', @given);
	my @snapshots = @{ json_in($result->{out})->{series}[0]{snapshots} };
	is_deeply([map { $_->{sample_bytes} } @snapshots], [(65536) x 4], 'samples');
	is_deeply([map { $_->{warnings} } @snapshots], [[], [], ['a heap is missing'], []], 'warnings');
	my ($columns, $row) = csv_in(hdiff_in($sub, '-o', 'csv', @given)->{out});
	is($row->{sample_bytes}, 65536, 'csv: samples');
	spew("$sub/$given[3]", slurp("$sub/$given[3]") =~ s{^// hsnap: end.*}{}msr);
	$result = hdiff_in($sub, '-o', 'json', '--force', @given);
	is_deeply([map { $_->{cut} ? 1 : 0 } @{ json_in($result->{out})->{series}[0]{snapshots} }], [0, 0, 0, 1], 'a cut one');
}

# UMDH states only the minute, in the machine's local time.
sub check_umdh {
	my $sub = "$dir/umdh";
	mkdir $sub;
	my $log = slurp("$root/tests/golden/old.txt");
	for my $minute (10, 25, 40) {
		my $bytes = sprintf '%X', 1000 * $minute;
		spew("$sub/$minute.txt", $log =~ s/Logtime \S+ \S+ /Logtime 2026-11-20 10:$minute /r =~ s/^[0-9A-F]+(?= bytes \+)/$bytes/mr);
	}
	my @given = map { "$_.txt" } 40, 10, 25;
	my $result = hdiff_in($sub, '-o', 'json', @given);
	is($result->{status}, 0, 'well') or diag($result->{err});
	my $series = json_in($result->{out})->{series}[0];
	is_deeply([map { [@$_{qw(path local_time time)}] } @{ $series->{snapshots} }],
		[map { ["$_.txt", "2026-11-20T10:$_", undef] } 10, 25, 40], 'in their order, and not marked as UTC');
	is($series->{parts}[0]{pid}, 4711, 'pid');
	is($series->{trend}{bytes_per_hour}, 60_000, 'how fast it grows');
	my ($columns) = csv_in(hdiff_in($sub, '-o', 'csv', @given)->{out});
	is_deeply([grep { /^bytes / } @$columns], [map { "bytes 2026-11-20T10:$_" } 10, 25, 40], 'csv: too');
}

sub check_pair {
	my $json = JSON::PP->new->utf8->decode(report_of('-o', 'json', @files[0, 1]));
	is($json->{schema}, 'hdiff/1', 'json');
	ok($json->{rows} && !$json->{series}, 'as ever');
	my ($columns) = csv_in(report_of('-o', 'csv', @files[0, 1]));
	is($columns->[0], 'growth_bytes', 'csv');
	is(scalar(grep { /^(?:series|verdict|bytes )/ } @$columns), 0, 'as ever');
}

# Every key and every column is documented, and the example works.
sub check_pages {
	my %keys = map { $_ => 1 } report_of('-o', 'json', @files) =~ /"(\w+)":/g;
	my ($columns) = csv_in(report_of('-o', 'csv', @files));
	for (['hdiff-json', sort keys %keys], ['hdiff-csv', map { s/ \d.*//r } @$columns]) {
		my ($page, @words) = @$_;
		my %told = map { $_ => 1 } map { split /[ ,]+/ } slurp("$root/man/$page.5") =~ /^\.(?:It )?Cm (.*)/mg;
		cmp_ok(scalar @words, '>', 25, "$page.5: something to explain");
		is_deeply([grep { !$told{$_} } @words], [], "$page.5 explains all of it");
	}
	return if $as_windows; # the example's programs are not in PATH
	my ($example) = slurp("$root/man/hdiff-json.5") =~ /^(hdiff -o json dumps.*?)^\.Ed/ms;
	my $place = fresh_dir();
	symlink $dir, "$place/dumps" or die "$!\n";
	my $result = run(['sh', '-c', $example =~ s/\\e/\\/gr], dir => $place, env => { PATH => "$root/build/linux:$ENV{PATH}" });
	is($result->{status}, 0, 'the example of hdiff-json.5') or diag($result->{err});
	is_deeply([sort split /\n/, decode('UTF-8', $result->{out})], [sort map { "1000\t$_\t?" } values %odd], 'prints what grows');
}
