#!/usr/bin/perl
# hsym adds names to a dump. hdiff prints these names on a machine without the binaries.
use strict;
use warnings;
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $name = 'leak_wrapper';
my $dir = fresh_dir();
my $exe = "$dir/$name.exe";
copy("$root/build/win64/samples/$name.exe", $exe) or die "$exe: $!\n";

my $target = target($exe, [], traced => 1);
for my $step (1, 2) {
	is($step == 1 ? $target->step : $target->next_step, $step, "step $step") or BAIL_OUT('no step');
	snapshot($target->{pid}, "$dir/$step.txt") or BAIL_OUT('no snapshot');
}
is($target->quit, 0, 'the sample ends well');

my %with;
for my $side (tool_names()) {
	for my $step (1, 2) {
		check_ok(run(tool('hsym', $side, '-o', "$dir/$side.$step.txt", "$dir/$step.txt")), "$side hsym -o");
	}
	my $again = run(tool('hsym', $side, "$dir/$side.1.txt"));
	check_ok($again, "$side hsym to standard output");
	ok(as_here($again->{out}) eq as_here(slurp("$dir/$side.1.txt")), "$side hsym: a dump with names stays as it is");
	$with{$side} = report(run(tool('hdiff', $side, "$dir/1.txt", "$dir/2.txt"))->{out});
	check_truth($with{$side}, $name, 1, 2, "$side hdiff with the binary");
}

unlink $exe or die "$exe: $!\n";
for my $side (tool_names()) {
	my $what = "$side hdiff without binary and names";
	my $result = run(tool('hdiff', $side, "$dir/1.txt", "$dir/2.txt"));
	check_ok($result, $what);
	my $report = report($result->{out});
	check_report($report, $what);
	my @named = grep { $_->{function} ne '?' } map { chain_of($_, $name) } @{ $report->{rows} };
	is_deeply(\@named, [], "$what: module+offset, no made-up names");
	for my $by (tool_names()) {
		$what = "$side hdiff, names by $by hsym, no binary";
		$result = run(tool('hdiff', $side, "$dir/$by.1.txt", "$dir/$by.2.txt"));
		check_ok($result, $what);
		$report = report($result->{out});
		check_report($report, $what);
		check_truth($report, $name, 1, 2, $what);
		next unless $by eq $side;
		my @stacks = map { [map { stacks_of($_) } @{ $_->{rows} }] } $report, $with{$side};
		is_deeply(@stacks, "$what: all names are those that the binaries gave");
	}
}
done_testing;

sub stacks_of {
	my ($row) = @_;
	return [map { my $frame = $_; join ' ', map { $frame->{$_} // '-' } qw(module function offset file line) }
		    @{ $row->{frames} }];
}
