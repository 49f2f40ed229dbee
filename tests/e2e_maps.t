#!/usr/bin/perl
# A C++ program with maps and strings counts its allocations and frees. It behaves the same on both
# systems. A snapshot at its exit has the remaining blocks, to the byte.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $insertions = 20_000;
my $dir = fresh_dir();
my $exe = win("$root/build/win64/bench/maps.exe");
for my $keys ('random', 'oldest') {
	my $here = run(["$root/build/linux/bench/maps", $insertions, $keys]);
	my $said = $here->{out} =~ s/\r//r;
	my $there = hsnap('run', '--at-exit', win("$dir/$keys.txt"), '--', $exe, $insertions, $keys);
	is($there->{status}, 0, "$keys: it runs under hsnap") or diag($there->{err});
	is($there->{out} =~ s/\r//r, $said, "$keys: both say the same");
	my ($made, $made_bytes, $freed, $freed_bytes) = $said =~ /^allocations (\d+) bytes (\d+) frees (\d+) bytes (\d+)$/;
	cmp_ok($made, '>', $insertions, "$keys: each insertion allocates");
	cmp_ok($freed, '>', $insertions / 3, "$keys: and many free");
	my $result = run(tool('hdiff', 'linux', "$dir/$keys.txt"));
	check_ok($result, "$keys: hdiff");
	my @left = (0, 0);
	for my $row (@{ report($result->{out})->{rows} }) {
		my ($first) = chain_of($row, 'maps') or next;
		next if $first->{function} !~ /^operator new\b/;
		$left[0] += $row->{count};
		$left[1] += $row->{bytes};
	}
	is_deeply(\@left, [$made - $freed, $made_bytes - $freed_bytes], "$keys: what operator new has made and is left, to the byte");
}
done_testing;
