#!/usr/bin/perl
# A tracer with full tables continues without recording. It counts the dropped blocks, and the dump
# and the recording report them. The tracer uses no more memory than its limit.
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
like($result->{err}, qr/warning: .*\b\d+ blocks\b.*--max-mb/, 'which warns of dropped blocks, with a remedy');
$target->quit;

my $dump = slurp("$dir/full.txt");
my ($note) = $dump =~ m{^// hsnap: tracer (.*?)\r?$}m;
my %says = ($note // '') =~ /([\w-]+)=(\d+)/g;
cmp_ok($says{committed}, '<=', $mb * 1024 ** 2, 'the tables have not grown beyond their limit');
is($says{limit}, $mb * 1024 ** 2, 'the limit is recorded');
cmp_ok($says{'dropped-blocks'}, '>', 0, 'blocks were dropped');
my $listed = () = $dump =~ /^[0-9A-F]+ bytes \+ /mg;
my $stackless = 0;
$stackless += $1 while $dump =~ /^\/\/ hsnap: heap .*\bstackless-blocks=(\d+)/mg;
cmp_ok($listed, '>', 100_000, 'many are listed with their stacks');
cmp_ok($says{'dropped-blocks'}, '>=', $blocks - $listed, 'what is not listed was counted as dropped');
cmp_ok($stackless, '>=', $blocks - $listed, 'and is in the sums of its heap: nothing is lost');
cmp_ok($listed + $stackless, '>=', $blocks, 'all blocks are accounted for');
recorded();
done_testing;

# Blocks that do not fit into the tables are not events. A recording reports the tracer's count of
# these blocks.
sub recorded {
	my ($count, $file) = (500_000, "$dir/run.hrec");
	my $again = target("$root/build/win64/samples/many_blocks.exe", [$count, $count], traced => 1, run => ['--max-mb', $mb]);
	is($again->step, 1, 'a program with tables for some of its blocks') or return;
	my $recorder = Hunt::start([wine("$root/build/win64/hsnap.exe", 'record', '-o', win($file), '-p', $again->{pid})], stderr => "$dir/record.err");
	marked($again, 'begin') or return;
	is($again->next_step, 2, 'which makes as many again');
	hsnap('-p', $again->{pid}, '-f', win("$dir/recorded.txt"));
	check_ok(hsnap('record', '--stop', '-p', $again->{pid}), 'its recording ends');
	is(Hunt::finish($recorder) >> 8, 2, 'with the status of one that lacks something');
	$again->quit;
	my ($dropped) = slurp("$dir/recorded.txt") =~ /dropped-blocks=(\d+)/;
	my ($missing) = slurp("$dir/record.err") =~ /warning: (\d+) events? lost$/m;
	is($missing, $dropped, 'as many events are missing as the tracer dropped');
	my $diff = run(tool('hdiff', 'linux', "$file\@begin", "$file\@end"));
	my $there = 0;
	$there += $_->{count} for grep { chain_of($_, 'many_blocks') } @{ report($diff->{out})->{rows} };
	cmp_ok($there, '>', 0, 'some are there');
	cmp_ok($there + $missing, '>=', $count, 'and with those all that were made');
	cmp_ok($missing, '<', $count, 'no more');
	my ($lost) = run(tool('hdiff', 'linux', '--list', $file))->{out} =~ /^lost +(\d+) events/m;
	is($lost, $missing, 'so does the file');
	return;
}
