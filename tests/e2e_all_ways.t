#!/usr/bin/perl
# Traces every way to allocate from a heap. Each new block that the walk of the heaps finds must be
# in the tracer's table, with the stack of the allocating function.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();
my $target = target("$root/build/win64/targets/all_ways.exe", [], traced => 1);
is($target->step, 1, 'the program begins') or BAIL_OUT('no target');
my %before = stackless(taken('before'));
my (%ways, $line);
syswrite $target->{to}, "\n";
while (defined($line = $target->line) && $line =~ /^way (\w+) ([0-9A-F]+) (\d+)$/) {
	$ways{$1} = [hex $2, $3];
}
like($line // 'nothing', qr/^step 2 pid \d+$/, 'it has tried all ways');
cmp_ok(scalar(keys %ways), '>', 24, 'there are many');
my $after = taken('after');
$target->quit;

# No heap may have more blocks without a stack than before.
my %now = stackless($after);
for my $heap (sort keys %now) {
	cmp_ok($now{$heap}, '<=', $before{$heap} // 0, "heap $heap: no new block is without a stack");
}

my %functions = functions($after);
my @blocks = blocks($after);
for my $way (sort keys %ways) {
	my ($addr, $bytes) = @{ $ways{$way} };
	my ($block) = grep { $_->{addr} <= $addr && $addr < $_->{addr} + ($_->{bytes} || 1) } @blocks;
	ok($block, "$way: its block is listed") or next;
	cmp_ok($block->{bytes}, '>=', $bytes, "$way: with $bytes bytes or more");
	cmp_ok($block->{bytes}, '<=', $bytes + 24, "$way: and not many more");
	is((grep { defined } map { $functions{$_} } @{ $block->{frames} })[0] // 'none', $way, "$way: and its function's stack");
}
done_testing;

sub taken {
	my ($name) = @_;
	my $result = hsnap('-p', $target->{pid}, '-f', win("$dir/$name.txt"));
	check_ok($result, "snapshot $name");
	return "$dir/$name.txt";
}

sub stackless {
	my ($file) = @_;
	return slurp($file) =~ /^\/\/ hsnap: heap addr=(\w+) .*\bstackless-blocks=(\d+)/mg;
}

# Returns the program's functions by return address, as named by hsym.
sub functions {
	my ($file) = @_;
	my $result = run(tool('hsym', 'linux', '-o', "$file.named", $file));
	check_ok($result, 'hsym');
	return slurp("$file.named") =~ /^\/\/ hsnap: name addr=(\w+) function="?(way_\w+|thread_main|fiber_main)\b/mg;
}

sub blocks {
	my ($file) = @_;
	my (@blocks, %stacks, $id);
	for (split /\r?\n/, slurp($file)) {
		if (/^([0-9A-F]+) bytes \+ [0-9A-F]+ at ([0-9A-F]+) by BackTrace(\w+)$/) {
			push @blocks, { bytes => hex $1, addr => hex $2, id => $id = $3 };
		} elsif (/^\t([0-9A-F]+)$/) {
			push @{ $stacks{$id} }, $1;
		}
	}
	$_->{frames} = $stacks{ $_->{id} } // [] for @blocks;
	return @blocks;
}
