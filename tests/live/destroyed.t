#!/usr/bin/perl
# Destroyed heaps are left out, even if several had the same address. There is no warning and no
# unread heap, and -g works.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;

my $dir = fresh_dir();
my %ways = (run => [traced => 1], attach => []);
for my $way (sort keys %ways) {
	my $target = start_stating('targets/destroyed.exe', [], @{ $ways{$way} });
	my $said = stated($target);
	check_ok(hsnap('attach', '-p', $target->{pid}), 'attach') if $way eq 'attach';
	for my $step (1 .. 3) {
		next_stated($target) if $step > 1;
		my $file = "$dir/$way-$step.txt";
		my $result = hsnap('-g', '-p', $target->{pid}, '-f', win($file));
		is($result->{status}, 0, "$way, step $step: status 0");
		unlike($result->{err}, qr/not walked|incomplete|no block is marked/, 'no complaint') or diag($result->{err});
		my $text = -s $file ? slurp($file) : '';
		unlike($text, qr{^// hsnap: heap .*\bkind=unknown}m, 'each heap was walked');
		check_sums([$file], 'destroyed', $step == 1 ? $said->{sums} : { make => [0, 0] }, "step $step", 1) if $way eq 'run';
	}
	is($target->quit, 0, 'the program ends');
}
done_testing;
