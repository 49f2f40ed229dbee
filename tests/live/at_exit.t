#!/usr/bin/perl
# A snapshot at a program's exit has the program's blocks, and hsnap returns the program's exit
# status.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;

my $dir = fresh_dir();
my $result = hsnap('run', '--at-exit', win("$dir/exit.txt"), '--', target_path('targets/parent.exe'), 50);
is($result->{status}, 50, "the status is the program's");
is($result->{err}, '', 'no complaint');
like($result->{out}, qr/^parent 50 pid \d+\r?$/m, 'its output is its own');
check_sums(["$dir/exit.txt"], 'parent', { parent_leak => [50 * 77, 50] }, 'at exit');
$result = hsnap('run', '--at-exit', win("$dir/none.txt"), '--', target_path('targets/parent.exe'), 0);
is($result->{status}, 0, 'status 0');
check_sums(["$dir/none.txt"], 'parent', { parent_leak => [0, 0] }, 'nothing leaked');
subtest 'a crash' => \&crash;
subtest 'a locked heap' => \&locked;
done_testing;

# Under Wine 10 a crash passes through the program's normal exit, which leaves a snapshot. Other
# versions leave none. The message always has the status.
sub crash {
	my $file = fresh_dir() . '/crash.txt';
	my $result = hsnap('run', '--at-exit', win($file), '--', win(target_path('targets/crash.exe')));
	is($result->{status}, 5, 'the status of the program');
	like($result->{err}, qr/^hsnap: .*status C0000005: a crash: access violation/m, 'a message names it');
	check_sums([$file], 'crash', { make => [33 * 77, 33] }, 'its blocks', 1) if -e $file;
	my $negative = hsnap('run', '--at-exit', win("$file.2"), '--', win(target_path('targets/crash.exe')), -1);
	is($negative->{status}, 255, 'exit(-1)');
	is($negative->{err}, '', 'is no crash');
}

# The exiting thread holds the process heap's lock until the process has exited, so it is useless to
# wait for the lock.
sub locked {
	my $dir = fresh_dir();
	for my $how ([], ['-g']) {
		my $file = "$dir/exit.txt";
		my $result = hsnap('run', '-v', @$how, '--at-exit', win($file), '--', target_path('targets/exit_locked.exe'));
		is($result->{status}, 7, "@$how: the status of the program");
		like($result->{err}, qr/ ms, 1 try, /, "@$how: it is held once");
		unlike($result->{err}, qr/locked/, "@$how: its lock is no reason for a warning");
		check_sums([$file], 'exit_locked', { locked_leak => [50 * 100, 50] }, "@$how: its blocks", 1);
	}
	return;
}
