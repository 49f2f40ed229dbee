#!/usr/bin/perl
# hdiff for Windows and hdiff for Linux print the same bytes, from every kind of file and in every
# form. The sums of both agree with the maker of the dumps.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use IO::Compress::Gzip qw(gzip $GzipError);
use Test::More;
use Hunt;

my $dir = fresh_dir();
my %said;

# Dumps that are large enough for several threads, in each layout.
for my $layout (qw(full first last)) {
	for my $seed (1, 2) {
		my $blocks = $layout eq 'full' ? 30_000 : 150_000;
		my $made = run(["$root/build/linux/bench/gen_dump", $blocks, 300, 12, $layout, $seed]);
		($said{"$layout$seed.txt"}) = $made->{err} =~ /^blocks=\d+ requested=(\d+) /;
		spew("$dir/$layout$seed.txt", $made->{out});
		cmp_ok(length $made->{out}, '>', 4 << 20, "$layout $seed is large");
	}
}
gzip("$dir/full1.txt" => "$dir/full1.gz") or die $GzipError;
$said{'full1.gz'} = $said{'full1.txt'};
my $wide = slurp("$dir/first2.txt");
spew("$dir/wide.txt", "\xff\xfe" . ($wide =~ s/(.)/$1\0/gsr));
$said{'wide.txt'} = $said{'first2.txt'};
spew("$dir/cut.txt", substr $wide, 0, length($wide) / 2);
my $bad = $wide;
$bad =~ s/ bytes \+ (\w+) at 206/ bytes + $1 of 206/ for 1 .. 3;
spew("$dir/bad.txt", $bad);

my @runs = (
	['-d', 'full1.txt', 'full2.txt'], ['-d', 'first1.txt', 'last2.txt'], ['-d', 'full1.gz', 'wide.txt'], ['cut.txt'], ['bad.txt'],
	['full1.txt', 'full2.txt'], ['--tree', 'first1.txt', 'last2.txt'],
	['-o', 'json', 'first1.txt', 'wide.txt'], ['-o', 'csv', '-n', 20, 'last1.txt', 'last2.txt'],
	['-o', 'folded', 'first1.txt'], (map { ['-o', $_, 'full1.txt', 'full2.txt'] } qw(pprof speedscope dhat svg)),
	['--group', 'module', 'full1.txt', 'full2.txt'],
	['--hex', '-i', 'module03', '--min-bytes', '100K', 'first1.txt', 'first2.txt'],
	['-d', '--match', 'address', '--sort', 'count', 'full1.txt', 'full2.txt'],
);
for my $args (@runs) {
	subtest "hdiff @$args" => sub {
		my @got = map {
			run(/linux/ ? ["$root/build/linux/hdiff", @$args] : [wine("$root/build/win64/hdiff.exe", @$args)], dir => $dir);
		} tool_names();
		is($_->{status}, $args->[0] =~ /^(?:cut|bad)/ ? 2 : 0, 'status') for @got;
		s/^(?:hdiff: \d+ of \d+ frames? ha(?:ve|s) no name.*\n)//m for map { $_->{err} } @got;
		is($got[1]{err}, $got[0]{err}, 'the same words');
		ok($got[1]{out} eq $got[0]{out}, 'the same bytes');
		cmp_ok(length $got[0]{out}, '>', 200, 'and not none');
		my ($old, $new) = map { $said{$_} } grep { exists $said{$_} } @$args;
		return if "@$args" !~ /^-d/ || "@$args" =~ /-o|--group|-i|cut|bad/;
		my $growth = defined $new ? $new - $old : $old;
		my ($way, $size) = $got[0]{out} =~ /^Total (\w+) == +(\d+) requested/m;
		is($way eq 'increase' ? $size : -$size, $growth, 'as the maker of the dumps states');
	};
}
done_testing;
