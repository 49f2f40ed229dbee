#!/usr/bin/perl
# A tracer whose tables are full goes on without recording, counts what it dropped, and the dump says so;
# it takes no more memory than it was given.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();
my ($blocks, $mb) = (1_000_000, 16);
my $target = target("$root/build/win64/samples/many_blocks.exe", [$blocks], traced => 1, run => ['--max-mb', $mb]);
is($target->step, 1, 'the program has all its blocks') or BAIL_OUT('no target');
my $result = hsnap('-p', $target->{pid}, '-f', win("$dir/full.txt"));
is($result->{status}, 0, 'a snapshot is taken');
like($result->{err}, qr/warning: .*\b\d+ blocks\b.*--max-mb/, 'which warns of what was dropped, and says what helps');
$target->quit;

my $dump = slurp("$dir/full.txt");
my ($note) = $dump =~ m{^// hsnap: tracer (.*?)\r?$}m;
my %says = ($note // '') =~ /([\w-]+)=(\d+)/g;
cmp_ok($says{committed}, '<=', $mb * 1024 ** 2, 'the tables have not grown beyond their limit');
cmp_ok($says{'dropped-blocks'}, '>', 0, 'blocks were dropped');
my $listed = () = $dump =~ /^[0-9A-F]+ bytes \+ /mg;
my $stackless = 0;
$stackless += $1 while $dump =~ /^\/\/ hsnap: heap .*\bstackless-blocks=(\d+)/mg;
cmp_ok($listed, '>', 100_000, 'many are listed with their stacks');
cmp_ok($says{'dropped-blocks'}, '>=', $blocks - $listed, 'what is not listed was counted as dropped');
cmp_ok($stackless, '>=', $blocks - $listed, 'and is in the sums of its heap: nothing is lost');
cmp_ok($listed + $stackless, '>=', $blocks, 'all blocks are accounted for');
done_testing;
