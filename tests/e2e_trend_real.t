#!/usr/bin/perl
# A trend of a real process. A program does the same in every step and is captured after each. hdiff
# of the folder has the series of each stack to the byte, and reports growth only for the leaking
# stack.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP;
use Test::More;
use Time::Local qw(timegm);
use Hunt;

my ($dir, $source, %truth) = (fresh_dir(), slurp("$root/samples/leak_over_time.c"));
while ($source =~ /^ \* trend: (\S+) (\S+)<-one_step<-main (bytes|blocks) ([\d ]+)$/mg) {
	$truth{$2}{verdict} = $1;
	$truth{$2}{$3} = [split ' ', $4];
}
is_deeply([map { $truth{$_}{verdict} } sort keys %truth], [qw(grew-once grows same returns)], 'as the program states');
my $steps = @{ $truth{leak}{bytes} };

mkdir "$dir/dumps";
my $target = target("$root/build/win64/samples/leak_over_time.exe", [], traced => 1);
for my $step (1 .. $steps) {
	is($step == 1 ? $target->step : $target->next_step, $step, "step $step is done") or BAIL_OUT('no target');
	my $taken = hsnap('-p', $target->{pid}, '--by-stack', '-f', win("$dir/dumps/$step.txt"));
	is($taken->{status}, 0, "snapshot $step") or diag($taken->{err});
}
is($target->quit, 0, 'the program ends');

my $result = run(tool('hdiff', 'linux', '-o', 'json', "$dir/dumps"));
is($result->{status}, 0, 'hdiff on the folder') or diag($result->{err});
my @series = @{ JSON::PP->new->utf8->decode($result->{out})->{series} };
is(scalar @series, 1, 'one series');
my ($snapshots, $rows) = @{ $series[0] }{qw(snapshots rows)};
is_deeply([map { $_->{path} =~ s,.*/,,r } @$snapshots], [map { "$_.txt" } 1 .. $steps], 'of all snapshots, in their order');
is($series[0]{parts}[0]{pid}, $target->{pid}, 'of this process');
my @times = map { ms($_->{time}) } @$snapshots;
is(scalar(grep { $times[$_] <= $times[$_ - 1] } 1 .. $#times), 0, 'one after the other');

my (%found, @others);
for my $row (@$rows) {
	my ($function, $caller) = map { $_->{function} } grep { ($_->{module} // '') eq 'leak_over_time' } @{ $row->{frames} };
	next push @others, $row unless defined $caller && $caller eq 'one_step';
	is($found{$function}, undef, "$function: one row");
	$found{$function} = $row;
}
is_deeply([sort keys %found], [grep { $truth{$_}{verdict} ne 'same' } sort keys %truth], 'a row for each stack that changed, none for the other');
for my $name (sort keys %found) {
	my ($row, $true) = ($found{$name}, $truth{$name});
	is_deeply($row->{$_}, $true->{$_}, "$name: $_ at each step") for qw(bytes blocks);
	is($row->{trend}{verdict}, $true->{verdict}, "$name: verdict");
	for my $what ('bytes', 'blocks') {
		my ($rate, $true) = ($row->{trend}{"${what}_per_hour"}, slope($true->{$what}));
		cmp_ok(abs($rate - $true), '<=', 0.0006 + 1e-9 * abs $true, "$name: $what per hour");
	}
}
is($rows->[0]{frames} && $rows->[0]{trend}{net_bytes}, 21_000, 'the leak comes first');
cmp_ok($found{leak}{trend}{low_bytes_per_hour}, '>', 0, 'and grows without doubt');
is_deeply([map { row_text($_) } grep { $_->{trend}{verdict} eq 'grows' } @others], [], 'nothing else does');
done_testing;

sub ms {
	my ($text) = @_;
	my ($y, $mon, $d, $h, $m, $s, $ms) = $text =~ /^(\d+)-(\d+)-(\d+)T(\d+):(\d+):(\d+)\.(\d+)Z$/ or die "time $text\n";
	return 1000 * timegm($s, $m, $h, $d, $mon - 1, $y) + $ms;
}

# Returns the median slope between any two snapshots (Theil and Sen), per hour.
sub slope {
	my ($of) = @_;
	my @slopes;
	for my $to (1 .. $#$of) {
		push @slopes, map { 3_600_000 * ($of->[$to] - $of->[$_]) / ($times[$to] - $times[$_]) } 0 .. $to - 1;
	}
	@slopes = sort { $a <=> $b } @slopes;
	return ($slopes[$#slopes / 2] + $slopes[@slopes / 2]) / 2;
}

sub row_text {
	my ($row) = @_;
	return "@{ $row->{bytes} } " . join '<-', map { $_->{function} // '?' } @{ $row->{frames} };
}
