#!/usr/bin/perl
# hsnap run --children also traces the processes that a program starts, and writes a snapshot of
# each at its exit. Whatever happens to the processes, to their parents or to hsnap, no process
# remains waiting.
use strict;
use warnings;
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();
my $family = "$root/build/win64/targets/family.exe";
my $gone = 'did not exit normally (status 9: a crash, termination by another process, or \'hsnap detach\')';

{
	my $out = fresh_dir();
	my $tree = followed($out, 'tree', 3);
	is($tree->{status}, 13, "the exit status is the first program's");
	is($tree->{err}, '', 'no complaint');
	my %pid = $tree->{out} =~ /^tree (\d) pid (\d+)\r?$/mg;
	is_deeply([sort keys %pid], [0 .. 3], 'four generations');
	is_deeply([files_in($out)], [sort map { "family-$_.txt" } values %pid], 'each has a file of its own');
	is_deeply(kept("$out/family-$pid{$_}.txt"), [1, 1000 * ($_ + 1)], "generation $_: its block, with its stack") for 0 .. 3;
}
{
	my $out = fresh_dir();
	my $alone = hsnap('run', '--at-exit', win("$out/{name}-{pid}.txt"), '--', win($family), 'tree', 1);
	my %pid = $alone->{out} =~ /^tree (\d) pid (\d+)\r?$/mg;
	is_deeply([files_in($out)], ["family-$pid{1}.txt"], 'without --children only the first program is traced');
}
{
	my $out = fresh_dir();
	my $orphan = followed($out, 'orphan');
	is($orphan->{status}, 5, "a child outlives the first program: the status is that one's");
	like($orphan->{out}, qr/^after the end\r?$/, 'hsnap waits for the child');
	is($orphan->{err}, '', 'no complaint');
	my @kept = grep { @$_ } map { kept("$out/$_") } files_in($out);
	is_deeply(\@kept, [[1, 4321]], 'which has its snapshot');
}
{
	my $out = fresh_dir();
	my $ended = followed($out, 'ended');
	is($ended->{status}, 0, 'children that are ended from outside');
	my @lines = split /\n/, $ended->{err};
	is(scalar(grep { /^hsnap: pid \d+: warning: no snapshot at its exit: .*\Q$gone\E/ } @lines), 2, 'one line for each');
	is(scalar @lines, 2, 'and no other');
	is(scalar files_in($out), 1, 'and no file');
}
# After the time limit, processes may be at any stage. If a process has reported a block, the block
# is in its snapshot.
{
	my $out = fresh_dir();
	my $mine = "$dir/stay$$.exe"; # a unique name, by which the processes are found
	copy($family, $mine) or die "$mine: $!\n";
	my $late = hsnap('run', '--children', '--time-limit', '8s', '--at-exit', win("$out/{pid}.txt"), '--', win($mine), 'stay', 2);
	is($late->{status}, 124, 'a time limit: the status is that of timeout');
	my %pid = $late->{out} =~ /^stay (\d) pid (\d+)\r?$/mg;
	is_deeply(kept("$out/$pid{$_}.txt"), [1, 1000 * ($_ + 1)], "generation $_ has its snapshot") for sort keys %pid;
	my @said = $late->{err} =~ /^hsnap: pid (\d+): ended by the time limit$/mg;
	is_deeply([grep { my $pid = $_; !grep { $_ == $pid } @said } values %pid], [], 'which a line says of each');
	SKIP: {
		skip("needs Linux's /proc", 1) if $as_windows;
		my @left;
		wait_until(sub { !(@left = unix_pids($mine)) });
		is_deeply(\@left, [], 'none is left running');
	}
	my $in_time = hsnap('run', '--children', '--time-limit', '1h', '--', win($family), 'tree', 1);
	is("$in_time->{status} $in_time->{err}", '11 ', 'who ends in time has a status of his own');
	check_error(hsnap('run', '--time-limit', $_, '--', win($family), 'tree', 0), 'hsnap', "--time-limit $_", '--time-limit', $_)
		for '8', '0s', '1000d';
}
{
	my $out = fresh_dir();
	my $left = followed($out, 'abandon');
	is($left->{status}, 5, 'a program ends and leaves a child suspended: hsnap does not wait for it');
	my ($pid, $tid) = $left->{out} =~ /^abandoned (\d+) (\d+)\r?$/m;
	like($left->{err}, qr/\Ahsnap: pid $pid: warning: this child process is not traced: .*left it suspended\)\n\z/,
		'one line reports it');
	is(scalar files_in($out), 1, 'the first program has its snapshot');
	is(run([wine($family, 'revive', $pid, $tid)])->{status}, 7, 'resumed after all, the child runs as ever');
}
{
	my $many = hsnap('run', '--children', '--', win($family), 'many', 4, 10);
	is($many->{out} =~ s/\s//gr, 40, 'four threads start ten children each');
	is("$many->{status} $many->{err}", '0 ', 'no complaint');
}
{
	my $out = fresh_dir();
	is(run([wine($family), 'raw'])->{status}, 10, "a child made by ntdll's function, not traced, is well");
	my $raw = followed($out, 'raw');
	is("$raw->{status} $raw->{err}", '10 ', 'so is it when followed');
	is_deeply([sort map { join ' ', @{ kept("$out/$_") } } files_in($out)], ['', '1 1000'], 'and its snapshot has its block');
}
{
	my $closed = hsnap('run', '--children', '--', win($family), 'closed');
	is($closed->{status}, 8, 'a child that nobody may open runs on');
	like($closed->{err}, qr/\Ahsnap: pid \d+: warning: this child process is not traced: no right.*\n\z/, 'one line reports it');
}
{
	my ($name, $out) = ("$dir/\x{e6}\x{9e}\x{97} b.exe", fresh_dir());
	copy($family, $name) or die "$name: $!\n";
	my $odd = run([wine("$root/build/win64/hsnap.exe", 'run', '--children', '--at-exit', win("$out/{{{pid}}-{name}.txt"),
		'--', win($name), 'tree', 1)]);
	is("$odd->{status} $odd->{err}", '11 ', 'a name that is not ASCII');
	my @pids = sort $odd->{out} =~ / pid (\d+)\r?$/mg;
	is_deeply([files_in($out)], [sort map { "{$_}-\x{e6}\x{9e}\x{97} b.txt" } @pids], 'names the files');
}
check_error(hsnap('run', '--children', '--at-exit', win("$dir/{name}.txt"), '--', win($family), 'tree', 0),
	'hsnap', 'one file for all', '{pid}', '--children');

# A stopped hsnap handles no child, so the parent waits for hsnap. When hsnap is killed, all
# processes are released.
SKIP: {
	skip("needs Linux's /proc", 5) if $as_windows;
	my $hsnap = "$dir/hsnap.exe";
	for my $file (qw(hsnap.exe hsnap-tracer64.dll)) {
		copy("$root/build/win64/$file", "$dir/$file") or die "$file: $!\n";
	}
	my $target = target($hsnap, ['run', '--children', '--', win($family), 'steps']);
	is($target->step, 1, 'a program that starts a child for each step');
	is($target->next_step, 2, 'the first');
	my @pids = unix_pids($hsnap);
	ok(scalar @pids, 'hsnap is there');
	kill STOP => @pids;
	syswrite $target->{to}, "\n";
	kill KILL => @pids;
	is($target->step, 3, 'hsnap is killed while the parent waits for it: both go on');
	is($target->next_step, 4, 'and further children start');
	$target->quit;
}
done_testing;

sub wait_until {
	my ($is_true) = @_;
	my $until = time + $Hunt::limit;
	select undef, undef, undef, 0.02 until $is_true->() || time > $until;
}

sub followed {
	my ($out, @args) = @_;
	return hsnap('run', '--children', '--at-exit', win("$out/{name}-{pid}.txt"), '--', win($family), @args);
}

# Returns the [blocks, bytes] that keep_block() has allocated in a dump, or an empty list if it
# allocated nothing.
sub kept {
	my ($file) = @_;
	my $diff = run(tool('hdiff', 'linux', $file));
	check_ok($diff, 'hdiff');
	my @kept;
	for my $row (@{ report($diff->{out})->{rows} }) {
		my ($first) = grep { ($_->{function} // '') eq 'keep_block' } @{ $row->{frames} } or next;
		$kept[0] += $row->{count};
		$kept[1] += $row->{bytes};
	}
	return \@kept;
}
