#!/usr/bin/perl
# The main use: a program leaks, hsnap takes snapshots from outside, and hdiff names the leaking
# line with the exact growth. Tests every sample with both hdiffs.
use strict;
use warnings;
use File::Glob ':bsd_glob';    # paths may have blanks
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

for my $source (glob "$root/samples/*.c") {
	my $name = $source =~ s,.*/|\.c$,,gr;
	subtest $name => sub { hunt($name) };
}
done_testing;

sub hunt {
	my ($name) = @_;
	my $exe = "$root/build/win64/samples/$name.exe";
	my $dir = fresh_dir();
	my @pairs = do { my %seen; grep { !$seen{"@$_"}++ } map { [@$_[0, 1]] } truths($name) };
	@pairs = ([1, 2], [1, 3]) unless @pairs;

	my $target = target($exe, [], traced => 1);
	for my $step (1 .. 3) {
		is($step == 1 ? $target->step : $target->next_step, $step, "step $step is done") or return;
		snapshot($target->{pid}, "$dir/$step.txt") or return;
	}
	is($target->quit, 0, 'the sample ends as it would untraced');
	is_deeply([files_in($dir)], ['1.txt', '2.txt', '3.txt'], 'nothing but the dumps is left');

	for my $pair (@pairs) {
		my ($from, $to) = @$pair;
		my %numbers;
		for my $side (tool_names()) {
			my $what = "$side hdiff, step $from->$to";
			my $result = run(tool('hdiff', $side, "$dir/$from.txt", "$dir/$to.txt"));
			check_ok($result, $what) or next;
			my $report = report($result->{out});
			check_report($report, $what);
			check_truth($report, $name, $from, $to, $what)
			    or diag($result->{out});
			$numbers{$side} = [$report->{total},
				map { [@$_{qw(id bytes new old count count_new count_old)}] } @{ $report->{rows} }];
		}
		is_deeply($numbers{windows}, $numbers{linux}, "step $from->$to: both count alike");
	}
	same_dump($dir);
}

# A dump compared with itself shows no growth.
sub same_dump {
	my ($dir) = @_;
	my $result = run(tool('hdiff', 'linux', "$dir/1.txt", "$dir/1.txt"));
	is("$result->{status} $result->{err}", "0 hdiff: $dir/1.txt: warning: the same snapshot as $dir/1.txt\n", 'a dump and itself: one warning') or return;
	my $report = report($result->{out});
	is_deeply([$report->{rows}, $report->{total}], [[], [0, 0, 0]], 'a dump and itself: no row, total 0');
}
