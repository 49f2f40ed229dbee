#!/usr/bin/perl
# hsnap walks the heaps of a traced program without holding the program. Its snapshots are the same,
# line by line, as when the program is held. --walk finds in the heaps exactly what the tracer's
# table has.
use strict;
use warnings;
use File::Glob ':bsd_glob';    # paths may have blanks
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

for my $source (glob("$root/samples/*.c"), "$root/tests/targets/all_ways.c") {
	my ($folder, $name) = $source =~ m{(samples|targets)/(\w+)\.c$};
	subtest $name => sub { both_ways("$root/build/win64/$folder/$name.exe") };
}
for my $name (qw(leak_wrapper leak_heaps churn)) {
	subtest "attached to $name" => sub { attached($name) };
}
for my $threads (1, 1, 2, 2, 4) {
	subtest "attached to $threads busy threads" => sub { attached_busy($threads) };
}
subtest 'blocks from before attaching are counted' => \&older_counted;
subtest running => \&running;
subtest busy => \&busy;
done_testing;

sub both_ways {
	my ($exe) = @_;
	my $dir = fresh_dir();
	my $target = target($exe, [], traced => 1);
	for my $step (1, 2) {
		syswrite $target->{to}, "\n" if $step > 1;
		my $line = '';
		$line = $target->line // last until $line =~ /^step (\d+) pid (\d+)$/;
		is($1, $step, "step $step is done") or return;
		$target->{pid} = $2;
		compare($target->{pid}, "$dir/$step");
	}
	ok(defined $target->quit, 'the program goes on');
}

sub compare {
	my ($pid, $path) = @_;
	my $result = hsnap('-p', $pid, '-v', '-f', win("$path.txt"));
	is($result->{status}, 0, 'not held for a walk');
	like($result->{err}, qr/^hsnap: pid $pid: walked in \d+ ms while it ran, /m, 'which is reported');
	unlike($result->{err}, qr/warning/, 'no complaint');
	my $walked = hsnap('-p', $pid, '--walk', '-v', '-f', win("$path-walked.txt"));
	is($walked->{status}, 0, '--walk');
	like($walked->{err}, qr/^hsnap: pid $pid: walked in \d+ ms, /m, 'which is reported');
	unlike($walked->{err}, qr/warning/, 'heaps and table have the same');
	is_deeply(said("$path.txt"), said("$path-walked.txt"), 'both say the same');
	cmp_ok(scalar(@{ said("$path.txt") }), '>', 10, 'and something');
}

# Returns all lines of a dump except those with its time, sorted.
# Omits the working set: a snapshot reads pages that the program has not used yet.
sub said {
	my ($path) = @_;
	return [sort grep { !m{^// hsnap: (process|time)} && !/^\/\/.*\d\d:\d\d:\d\d/ } split /\r\n/, slurp($path) =~ s/ working-set=\d+//r];
}

# attach lists the blocks that are older than the tracer. After that they are followed.
sub attached {
	my ($name) = @_;
	my $dir = fresh_dir();
	my $target = target("$root/build/win64/samples/$name.exe", []);
	is($target->step, 1, 'a program that runs');
	check_ok(hsnap('attach', '-p', $target->{pid}), 'attach');
	compare($target->{pid}, "$dir/1");
	is($target->next_step, 2, 'which goes on');
	compare($target->{pid}, "$dir/2");
	check_ok(hsnap('detach', '-p', $target->{pid}), 'detach');
	is($target->next_step, 3, 'without the tracer');
	check_ok(hsnap('attach', '-p', $target->{pid}), 'attach again');
	compare($target->{pid}, "$dir/3");
	ok(defined $target->quit, 'the program goes on');
}

# The program itself counts its blocks, of which 20 are newer than the attach.
sub older_counted {
	my $dir = fresh_dir();
	my $target = target("$root/build/win64/targets/counted.exe", []);
	is($target->step, 1, 'a program that runs');
	check_ok(hsnap('attach', '-p', $target->{pid}), 'attach');
	syswrite $target->{to}, "\n";
	my ($line, $blocks, $bytes) = '';
	while ($line !~ /^step 2 pid /) {
		$line = $target->line // last;
		($blocks, $bytes) = ($1, $2) if $line =~ /^walked (\d+) (\d+)/;
	}
	for my $how ([], ['--walk'], ['--by-stack']) {
		my $out = "$dir/a@$how.txt";
		check_ok(hsnap('-p', $target->{pid}, @$how, '-f', win($out)), "a snapshot @$how");
		my ($count, $sum) = slurp($out) =~ m{^// hsnap: tracer .* attached=1 before-blocks=(\d+) before-requested=(\d+) }m;
		is($count, $blocks - 20, 'blocks from before');
		is($sum, $bytes - 20 * 2222, 'and their bytes');
		like(run(tool('hdiff', 'linux', '--no-symbols', '-o', 'umdh', $out))->{out}, qr/: $count older blocks of $sum bytes have no stack/, 'in the head');
	}
	ok(defined $target->quit, 'the program goes on');
}

# At the attach, threads may be anywhere in a heap. After they have ended, tables and heaps have the
# same blocks. If a thread is always in a heap, attach does not list older blocks, and hsnap walks
# the heaps as usual.
sub attached_busy {
	my ($threads) = @_;
	my $dir = fresh_dir();
	my $target = target("$root/build/win64/targets/stress.exe", [$threads, 10_000_000, 1]);
	is($target->step, 1, 'a program that runs');
	syswrite $target->{to}, "\n";
	check_ok(hsnap('attach', '-p', $target->{pid}), 'attach');
	syswrite $target->{to}, "\n";
	my $line = '';
	$line = $target->line // last until $line =~ /^step 2 pid /;
	for my $step (2, 3) {
		my %said;
		for my $walk ('', '--walk') {
			my $result = hsnap('-p', $target->{pid}, '-f', win("$dir/$step$walk.txt"), $walk ? $walk : ());
			$result->{err} =~ s/\Ahsnap: .*warning: \d+ modules? (?:was|were) loaded at the place of an earlier one .*\n//;
			check_ok($result, "step $step, snapshot $walk");
			$said{$walk} = said("$dir/$step$walk.txt");
		}
		is_deeply($said{''}, $said{'--walk'}, 'heaps and tables have the same');
		is($target->next_step, 3, 'all is freed') if $step == 2;
	}
	is($target->quit, 0, 'the program goes on');
}

# Threads that never rest are held on their way from a heap to the table, each with a block or two.
# Only these blocks may be missing from the heap or the table, although most of the table was read
# earlier.
sub busy {
	my $dir = fresh_dir();
	my $target = target("$root/build/win64/targets/busy.exe", [2, 'heap'], traced => 1);
	is($target->step, 1, 'a program that runs');
	for my $i (1 .. 5) {
		my $result = hsnap('-p', $target->{pid}, '--walk', '-f', win("$dir/$i.txt"));
		is($result->{status}, 0, 'a snapshot');
		my ($untraced, $unfound) = $result->{err} =~ /warning: the heaps and the tracer's table disagree: (\d+) blocks? only in the heaps, (\d+) only in the table/;
		cmp_ok(($untraced // 0) + ($unfound // 0), '<=', 6, 'heaps and table have the same');
	}
	is($target->quit, 0, 'the program found its blocks as it had left them');
}

# Blocks, heaps and sizes change all the time. Whatever the walk finds, the dump has all blocks of a
# chain.
sub running {
	my $dir = fresh_dir();
	my $target = target("$root/build/win64/targets/gaps.exe", [20_000], traced => 1);
	is($target->step, 1, 'a program that runs');
	my $result = hsnap('-p', $target->{pid}, '-v', '-f', win("$dir/a.txt"));
	like($result->{err}, qr/walked in \d+ ms while it ran, /, 'it is not held for the walk');
	ok($result->{err} =~ /^hsnap: pid \d+: (\d+) blocks/m && $1 >= 20_000, 'it has its blocks');
	ok(defined $target->quit, 'the program goes on');
}
