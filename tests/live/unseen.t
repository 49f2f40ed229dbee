#!/usr/bin/perl
# A program frees blocks without calling the tracer's hook. These blocks must not be reported as
# leaks: not in snapshots while it runs, not in the snapshot at its exit, and not in a recording.
# hsnap reports how many blocks were freed unseen.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;

my %step = (bypass_leak => [100 * 48, 100], bypass_gone => [0, 0]);

subtest 'snapshots' => \&snapshots;
subtest 'at exit' => \&at_exit;
subtest 'a recording' => \&recording;
subtest 'a recording beside a locked heap' => \&locked_heap;
done_testing;

sub snapshots {
	my $dir = fresh_dir();
	my $target = start_stating('targets/bypass.exe', [], traced => 1);
	is($target->step, 1, 'step 1');
	unseen($target, "$dir/1.txt");
	is($target->next_step, 2, 'step 2');
	unseen($target, "$dir/2.txt");
	is($target->quit, 0, 'it ends as it would untraced');
	check_sums(["$dir/1.txt", "$dir/2.txt"], 'bypass', \%step, 'growth', 1);
	return;
}

# Takes a snapshot. The heap may have reused the places of a few freed blocks.
sub unseen {
	my ($target, $file) = @_;
	my $result = hsnap('-p', $target->{pid}, '-f', win($file));
	is($result->{status}, 0, 'status 0');
	check_warning($result->{err});
	return;
}

sub check_warning {
	my ($err) = @_;
	my ($count) = $err =~ /warning: (\d+) blocks were freed without the tracer noticing, and are not listed/;
	cmp_ok($count // 0, '>=', 1900, 'a warning counts them') or diag($err);
	cmp_ok($count // 0, '<=', 4000, 'and no others');
	return;
}

sub at_exit {
	my $file = fresh_dir() . '/exit.txt';
	my $result = hsnap('run', '--at-exit', win($file), '--', target_path('targets/bypass.exe'), 1);
	is($result->{status}, 0, 'status 0');
	check_warning($result->{err});
	check_sums([$file], 'bypass', \%step, 'at exit', 1);
	return;
}

sub recording {
	my $file = fresh_dir() . '/run.hrec';
	my $target = start_stating('targets/bypass.exe', [], record => ['-o', win($file)]);
	is($target->step, 1, 'step 1');
	marked($target, 'one');
	is($target->next_step, 2, 'step 2');
	marked($target, 'two');
	is($target->quit, 0, "its status is the program's");
	like(slurp("$target->{err}"), qr/warning: [1-4]\d\d\d blocks freed without the tracer noticing; .* where hsnap noticed it, at/, 'a warning');
	check_sums(["$file\@one", "$file\@two"], 'bypass', \%step, 'between the marks', 1);
	check_sums(["$file\@end"], 'bypass', { bypass_leak => [200 * 48, 200], bypass_gone => [0, 0] }, 'at the end', 1);
	return;
}

# While a lock is held, hsnap cannot walk the heaps. The recording reports that it could not be
# compared with them.
sub locked_heap {
	my $file = fresh_dir() . '/run.hrec';
	my $target = start_stating('targets/bypass.exe', ['locked'], record => ['-o', win($file)]);
	is($target->step, 1, 'step 1');
	is($target->quit, 0, "its status is the program's");
	like(slurp("$target->{err}"), qr/warning: a heap was locked or damaged, so the events could not be compared/, 'a warning');
	like(run(["$root/build/linux/hdiff", '--list', $file])->{out}, qr/^remark +a heap was locked or damaged, so/m, 'the recording keeps it');
	return;
}
