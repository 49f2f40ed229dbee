#!/usr/bin/perl
# hdiff's output for the dumps in tests/golden, byte for byte, in every form. Unit tests check the
# sums; this test makes every change visible. "tests/e2e_golden.t --record" rewrites the files.
# Review them as a diff.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;
use Series;

my $dir = "$root/tests/golden";
my @pair = qw(old.txt new.txt);
my %runs = (
	'text' => ['-o', 'text', @pair],
	'text-tree' => ['-o', 'text', '--tree', @pair],
	'text-group' => ['-o', 'text', '--group', 'function', @pair],
	'umdh' => [@pair],
	'umdh-hex' => ['--hex', @pair],
	'umdh-one' => ['new.txt'],
	'umdh-no-symbols' => ['--no-symbols', @pair],
	'umdh-filtered' => ['-x', 'log', '--min-bytes', '10', '-n', 1, '--suppress', 'known.supp', @pair],
	'umdh-inverted' => ['--invert', '--strip', @pair],
	'umdh-by-id' => ['--match', 'id', @pair],
	'umdh-heap' => ['--heap', '7F0000', @pair],
	'group-function' => ['--group', 'function', @pair],
	'group-file' => ['--group', 'file', @pair],
	'group-module' => ['--group', 'module', '--hex', @pair],
	'group-heap' => ['--group', 'heap', @pair],
	'json' => ['-o', 'json', @pair],
	'json-group' => ['-o', 'json', '--group', 'module', @pair],
	'csv' => ['-o', 'csv', @pair],
	'folded' => ['-o', 'folded', @pair],
	'markdown' => ['-o', 'markdown', @pair],
	'read-text' => ['compared.txt'],
	'read-json' => ['-o', 'json', 'compared.txt'],
	'read-group' => ['--group', 'function', 'compared.txt'],
	'legacy' => ['legacy.txt'],
);

# A trend of two processes of one program, made here.
my @times = map { 1763632800000 + 1_800_000 * $_ } 1 .. 13;
my @trend = map { sprintf 't-%02d.txt', $_ } 0 .. $#times;
my $made = fresh_dir();
series($made, [@times[0 .. 6]], {
	'leak' => [map { [1000 + 500 * $_, 2 + $_] } 0 .. 6],
	'Cache::fill' => [[100, 1], [100, 1], map { [4000, 9] } 2 .. 6],
	'request' => [map { $_ % 2 ? [900 + 100 * $_, 9 + $_] : [300, 3] } 0 .. 6],
	'flat' => [map { [64, 1] } 0 .. 6],
}, name => 't-%02d.txt');
series($made, [@times[7 .. 12]], { 'leak' => [map { [1200 + 500 * $_, 3 + $_] } 0 .. 5], 'flat' => [map { [64, 1] } 0 .. 5] },
	name => 'u-%02d.txt', pid => 4243, start => $times[7] - 60_000, slide => 0x200000);
rename sprintf("$made/u-%02d.txt", $_), sprintf("$made/t-%02d.txt", $_ + 7) or die "$!\n" for 0 .. 5;
my %trends = (
	'trend-text' => ['-o', 'text', @trend],
	'trend' => [@trend],
	'trend-utf8' => ['--spark', 'utf8', '--hex', '-n', 1, '--series', 1, @trend],
	'trend-joined' => ['--across-restarts', '-x', 'request', @trend],
	'trend-group' => ['--group', 'function', '--series', 1, @trend],
	'trend-json' => ['-o', 'json', @trend],
	'trend-json-joined' => ['-o', 'json', '--across-restarts', @trend],
	'trend-json-group' => ['-o', 'json', '--group', 'function', '--series', 2, @trend],
	'trend-csv' => ['-o', 'csv', @trend],
	'trend-csv-group' => ['-o', 'csv', '--group', 'function', '--series', 2, @trend],
	'trend-folded' => ['-o', 'folded', '--series', 1, @trend],
	'trend-markdown' => ['-o', 'markdown', @trend],
);
%runs = (%runs, %trends);

for my $name (sort keys %runs) {
	my $result = run(["$root/build/linux/hdiff", '-d', @{ $runs{$name} }], dir => $trends{$name} ? $made : $dir);
	is($result->{status}, 0, "$name: status 0") or diag($result->{err});
	$result->{out} =~ s/\bhdiff \d+\.\d+\.\d+/hdiff VERSION/g;
	if ("@ARGV" eq '--record') {
		spew("$dir/$name.golden", $result->{out});
	} else {
		my $same = -e "$dir/$name.golden" && slurp("$dir/$name.golden") eq $result->{out};
		ok($same, "$name: as recorded") or diag(run(['diff', '-u', "$dir/$name.golden", '-'],
			stdin => do { open my $in, '<', spew(fresh_dir() . '/got', $result->{out}) or die; $in })->{out});
	}
}
my @golden = map { s/\.golden$//r } grep { /\.golden$/ } files_in($dir);
is_deeply([sort @golden], [sort keys %runs], 'every golden file is looked at');
done_testing;
