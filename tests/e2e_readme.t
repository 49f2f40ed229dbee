#!/usr/bin/perl
# The README's tour works as typed, and prints what the README shows. What differs
# from run to run (pids, times, addresses, ids, the checkout's place) is left out
# of the comparison.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my ($tour) = slurp("$root/README.md") =~ /^## Five minutes\n(.*?)^## /ms or die "README.md: no tour\n";
my @sessions = map { [split /^/m, s/^    //gmr] } $tour =~ /^((?:    .*\n|\n(?=\n*    ))+)/gm;
my @commands = map { my @lines = @$_; { command => shift(@lines) =~ s/^\$ //r =~ s/\n//r, shows => join '', @lines } }
    map { split_session(@$_) } @sessions;
my $first = shift @commands;
like($first->{command}, qr{^setup/wine build/win64/hsnap\.exe run -- \S+$}, 'the tour begins with hsnap run');

my $target = target("$root/" . (split ' ', $first->{command})[-1], [], traced => 1);
is($target->step, 1, $first->{command});
is(masked($first->{shows}), masked("step 1 pid 1\nstep 2 pid 1\n"), 'it prints its steps');
my $snapshots = 0;
for my $step (@commands) {
	my $command = $step->{command} =~ s/ -p \d+/ -p $target->{pid}/r;
	is($target->next_step, 2, 'the program goes on') if $command =~ /hsnap/ && $snapshots++;
	my $result = run(['sh', '-c', $command]);
	is($result->{status}, 0, $step->{command}) or diag($result->{err});
	is(masked($result->{err} . $result->{out}), masked($step->{shows}), 'it prints what the README shows');
}
is($target->quit, 0, 'the program ends');
done_testing;

# A session of one or more "$ command" lines, each with what it prints.
sub split_session {
	my @parts;
	for my $line (@_) {
		push @parts, [] if $line =~ /^\$ /;
		push @{ $parts[-1] }, $line if @parts;
	}
	return @parts;
}

sub masked {
	my ($text) = @_;
	$text =~ s/\r//g;
	$text =~ s{\Q$root\E}{/src/hsnap}g;
	$text =~ s/\d{4}-\d\d-\d\dT[\d:.]+Z/TIME/g;
	$text =~ s/\b(pid|process) \d+/$1 N/g;
	$text =~ s/BackTrace\w+/BackTraceN/g;
	$text =~ s/\+[0-9A-F]+(?= |$)/+X/gm;
	$text =~ s/\s+\z//;
	return $text;
}
