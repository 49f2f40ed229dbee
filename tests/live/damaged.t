#!/usr/bin/perl
# A program writes past the end of a block, which damages its heap. The tracer still has each of its
# blocks.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;

my $dir = fresh_dir();
my $target = start_stating('targets/overrun.exe', [], traced => 1);
my %said = (1 => stated($target));
snapshot($target->{pid}, "$dir/1.txt");
check_blocks("$dir/1.txt", $said{1}, 'before');
$said{2} = next_stated($target);
for my $how ([], ['--walk']) {
	my $result = hsnap(@$how, '--overwrite', '-p', $target->{pid}, '-f', win("$dir/2.txt"));
	is($result->{status}, 0, "a snapshot @$how of a damaged heap: status 0, for no block is missing") or diag($result->{err});
	like($result->{err}, qr/\A(?:hsnap: [^\n]*: warning: [^\n]*\n)*\z/, 'with warnings at most');
	check_blocks("$dir/2.txt", $said{2}, "after @$how");
}
check_sums(["$dir/1.txt", "$dir/2.txt"], 'overrun', { overrun_leak => [0, 0] }, 'no growth', 1);
check_sums(["$dir/2.txt"], 'overrun', $said{2}{sums}, 'what is live', 1);
is($target->quit, 0, 'the program ends');
done_testing;
