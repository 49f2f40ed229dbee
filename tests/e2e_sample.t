#!/usr/bin/perl
# --sample: totals scaled from the recorded blocks are unbiased and marked as estimates. Recorded
# blocks are removed when they are freed.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();

# samples/many_blocks.c: block i has 16 + i % 97 bytes. At a rate of one in S bytes, a block of s
# bytes is recorded with probability p = 1 - exp(-s / S), and counts as s / p bytes and 1 / p
# blocks. So the variances of the sums are those of s^2 (1 - p) / p and (1 - p) / p. A deviation
# above five standard errors occurs once in a million.
my ($blocks, $mean) = (200_000, 4096);
my ($bytes, $bytes_variance, $count_variance) = (0, 0, 0);
for my $i (0 .. $blocks - 1) {
	my $size = 16 + $i % 97;
	my $p = 1 - exp(-$size / $mean);
	$bytes += $size;
	$bytes_variance += $size ** 2 * (1 - $p) / $p;
	$count_variance += (1 - $p) / $p;
}
my $many = target("$root/build/win64/samples/many_blocks.exe", [$blocks], traced => 1, run => ['--sample', '4K']);
is($many->step, 1, 'the program has its blocks') or BAIL_OUT('no target');
my $dump = taken($many, 'many');
$many->quit;
like(slurp($dump), qr{^// hsnap: sample bytes=$mean\r$}m, 'the dump is marked as sampled');
my $diff = run(tool('hdiff', 'linux', $dump));
is($diff->{status}, 0, 'hdiff reads it');
like($diff->{out}, qr/ESTIMATES: one in $mean bytes was recorded/, 'and its figures are marked as estimates');
my $found = made_by('many_blocks', 'make_block', $diff->{out});
within($found->[1], $bytes, sqrt $bytes_variance, 'bytes');
within($found->[0], $blocks, sqrt $count_variance, 'blocks');

# A recording of a sample: live blocks at a moment, in a window, and in a dump made from the
# recording.
my $recorded = target("$root/build/win64/samples/many_blocks.exe", [$blocks], record => ['--sample', '4K', '-o', win("$dir/many.hrec")]);
is($recorded->step, 1, 'a recorded program has its blocks') or BAIL_OUT('no target');
is($recorded->quit, 0, 'and ends');
like(run(tool('hdiff', 'linux', '--list', "$dir/many.hrec"))->{out}, qr/^sampled +one in $mean bytes: all numbers are estimates$/m, 'its recording is sampled');
run(tool('hdiff', 'linux', '--extract', "$dir/many.hrec", '-f', "$dir/extracted.txt"));
for my $from ([], ['--class', 'aifo'], ['dump']) {
	my $report = run(tool('hdiff', 'linux', "@$from" eq 'dump' ? "$dir/extracted.txt" : (@$from, "$dir/many.hrec")))->{out};
	like($report, qr/ESTIMATES: one in $mean bytes was recorded/, "@$from: figures are estimates");
	my $sums = made_by('many_blocks', 'make_block', $report);
	# The counts of the 97 sizes are rounded separately.
	within($sums->[0], $blocks, sqrt($count_variance) + 97 / 5, "@$from: blocks");
	within($sums->[1], $bytes, sqrt($bytes_variance) + 97 * 112 / 5, "@$from: bytes");
}
my @last = split /,/, (split /\r?\n/, run(tool('hdiff', 'linux', '--over-time', '-o', 'csv', '-i', 'make_block', "$dir/many.hrec"))->{out})[-1];
within($last[1], $bytes, sqrt($bytes_variance) + 97 * 112 / 5, 'use at the end: bytes');
within($last[2], $blocks, sqrt($count_variance) + 97 / 5, 'blocks');
my @sizes = (0, 0);
for (split /\r?\n/, run(tool('hdiff', 'linux', '--histogram', '-o', 'csv', '-i', 'make_block', "$dir/many.hrec"))->{out}) {
	my @fields = split /,/;
	@sizes = ($sizes[0] + $fields[5], $sizes[1] + $fields[6]) if $fields[0] eq 'heap';
}
within($sizes[0], $bytes, sqrt($bytes_variance) + 97 * 112 / 5, 'sizes: bytes');
within($sizes[1], $blocks, sqrt($count_variance) + 97 / 5, 'blocks');
my $json = run(tool('hdiff', 'linux', '-o', 'json', '-i', 'make_block', "$dir/many.hrec"))->{out};
my ($selected) = $json =~ /^"selected":.*"new":(\{"bytes":\d+,"blocks":\d+),/m;
my ($impacting) = $json =~ /^"window":.*"aifo":(\{"bytes":\d+,"blocks":\d+)\}/m;
is($impacting, $selected, 'the columns of a window have the same estimates');
# The recording begins while the tracer is sampling. It uses the tracer's tables and its rate.
my $later = target("$root/build/win64/samples/many_blocks.exe", [$blocks], traced => 1, run => ['--sample', '4K']);
is($later->step, 1, 'a traced program has its blocks') or BAIL_OUT('no target');
check_error(hsnap('record', '--sample', '8K', '-o', win("$dir/other.hrec"), '-p', $later->{pid}), 'hsnap', 'another sample', qr/traced already.*--sample/);
ok(!-e "$dir/other.hrec", 'which leaves no file');
check_ok(hsnap('record', '--for', '1s', '-o', win("$dir/later.hrec"), '-p', $later->{pid}), 'a recording of it');
$later->quit;
my $there = made_by('many_blocks', 'make_block', run(tool('hdiff', 'linux', "$dir/later.hrec\@start"))->{out});
within($there->[0], $blocks, sqrt($count_variance) + 97 / 5, 'existing blocks');
within($there->[1], $bytes, sqrt($bytes_variance) + 97 * 112 / 5, 'and their bytes');

# Eight threads free and reallocate each other's blocks. After all blocks are freed, none remains.
my $stress = target("$root/build/win64/targets/stress.exe", [8, 10_000_000, 3], traced => 1, run => ['--sample', '512']);
is($stress->step, 1, 'another program begins') or BAIL_OUT('no target');
syswrite $stress->{to}, "\n";
taken($stress, 'while');
syswrite $stress->{to}, "\n";
my ($line, $left, $moved, $moved_bytes) = ('', 0, 0, 0);
while (defined($line = $stress->line) && $line =~ /^made (\w+) (\d+) (\d+)$/) {
	my ($maker, $count, $sum) = ($1, $2, $3);
	$left += $count;
	($moved, $moved_bytes) = ($moved + $count, $moved_bytes + $sum) if $maker =~ /^remake/;
}
like($line // 'nothing', qr/^step 2 pid (\d+)$/, 'all threads have ended');
($stress->{pid}) = $line =~ /(\d+)$/;
cmp_ok($left, '>', 100, 'blocks are left');
my $kept = run(tool('hdiff', 'linux', taken($stress, 'kept')))->{out};
cmp_ok(made_by('stress', qr/^(?:re)?make_/, $kept)->[0], '>', 0, 'some of them were recorded');
# A block is reallocated from any of 600 sizes to any other, and counts with its final size. So the
# estimates must be right, and the variances are the means over these sizes.
my ($sums, @variance) = (made_by('stress', qr/^remake_/, $kept), 0, 0);
for my $size (16 .. 615) {
	my $p = 1 - exp(-$size / 512);
	$variance[0] += $moved / 600 * (1 - $p) / $p;
	$variance[1] += $moved / 600 * $size ** 2 * (1 - $p) / $p;
}
within($sums->[0], $moved, sqrt $variance[0], 'reallocated blocks');
within($sums->[1], $moved_bytes, sqrt $variance[1], 'and their bytes');
is($stress->next_step, 3, 'everything is freed');
is_deeply(made_by('stress', qr/^(?:re)?make_/, run(tool('hdiff', 'linux', taken($stress, 'freed')))->{out}), [0, 0],
	'nothing of it is listed any more');
$stress->quit;

my $none = hsnap('run', '--sample', '0', '--', win("$root/build/win64/samples/many_blocks.exe"));
check_error($none, 'hsnap', 'a sample of no bytes', 'number of bytes');
done_testing;

sub taken {
	my ($target, $name) = @_;
	my $result = hsnap('-p', $target->{pid}, '-f', win("$dir/$name.txt"));
	is($result->{status}, 0, "snapshot $name") or diag($result->{err});
	# The stress target loads and frees libraries in turn. A library may be where another one
	# was just before.
	my $moved = qr/hsnap: .*warning: \d+ modules? (?:was|were) loaded at the place of an earlier one .*\n/;
	# The target's threads may hold a heap's lock at every attempt.
	my $locked = qr/hsnap: .*warning: \d+ heaps? (?:was|were) locked on every try, .*\n/;
	like($result->{err}, qr/\A(?:$moved)?(?:$locked)?hsnap: .*warning: figures are estimates: one in \d+ bytes was recorded\n\z/, 'which one line warns of');
	return "$dir/$name.txt";
}

# Returns the blocks and bytes of a program's function, or of all functions that match.
sub made_by {
	my ($module, $function, $text) = @_;
	my @sums = (0, 0);
	for my $row (@{ report($text)->{rows} }) {
		my ($first) = chain_of($row, $module) or next;
		next if ref $function ? $first->{function} !~ $function : $first->{function} ne $function;
		$sums[0] += $row->{count};
		$sums[1] += $row->{bytes};
	}
	return \@sums;
}

sub within {
	my ($found, $truth, $error, $what) = @_;
	cmp_ok(abs($found - $truth), '<', 5 * $error, sprintf '%s: %d where %d is true, standard error %.0f', $what, $found, $truth, $error);
}
