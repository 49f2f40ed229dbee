#!/usr/bin/perl
# Snapshots at fixed times, and after growth.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;

subtest '--every' => \&every;
subtest 'watch' => \&watch;
subtest 'a process that has ended' => \&ended;
done_testing;

sub every {
	my $dir = fresh_dir();
	my $target = start_stating('samples/leak_steady.exe', [], traced => 1);
	is($target->step, 1, 'step 1');
	my $result = hsnap('-p', $target->{pid}, '--every', '1s', '--count', 3, '-f', win("$dir/{n}.txt"));
	is($result->{status}, 0, 'status 0') or diag($result->{err});
	is_deeply([files_in($dir)], [map { "00000$_.txt" } 1 .. 3], 'three files');
	check_sums(["$dir/000001.txt", "$dir/000003.txt"], 'leak_steady', { grow_log => [0, 0] }, 'of one moment');
	check_sums(["$dir/000003.txt"], 'leak_steady', { grow_log => [65536, 64] }, 'the last');
	is($target->quit, 0, 'the program ends');
}

# The program grows by 16 MiB at each step.
sub watch {
	my $dir = fresh_dir();
	my $err = File::Temp->new;
	my $target = start_stating('targets/grows.exe', [], traced => 1);
	is($target->step, 1, 'step 1');
	my $watch = Hunt::start([wine($Hunt::hsnap, 'watch', '-p', $target->{pid}, '--growth', '40M', '--count', 2, '-f', win("$dir/{n}.txt"))],
		stderr => "$err");
	wait_for(sub { -e "$dir/000001.txt" });
	is($target->next_step, $_, "step $_") for 2 .. 4;
	is(Hunt::finish($watch) >> 8, 0, 'status 0') or diag(slurp("$err"));
	is_deeply([files_in($dir)], ['000001.txt', '000002.txt'], 'two files');
	check_sums([map { "$dir/00000$_.txt" } 1, 2], 'grows', { main => [3 << 24, 3] }, 'growth');
	is($target->quit, 0, 'the program ends');
}

# A permanent fault ends the series.
sub ended {
	my $dir = fresh_dir();
	my $result = hsnap('-p', 4_000_000_000, '--every', '1s', '--count', 3, '-f', win("$dir/{n}.txt"));
	isnt($result->{status}, 0, 'no such process') or diag($result->{err});
	isnt($result->{status}, 124, 'and it does not wait for ever');
	is_deeply([files_in($dir)], [], 'no file');
}

sub wait_for {
	my ($is_true) = @_;
	my $until = time + 60;
	select undef, undef, undef, 0.02 until $is_true->() || time > $until;
	return;
}
