#!/usr/bin/perl
# Blocks selected by size and by age. The truth is a replay that keeps every block, or the list of
# blocks from which a dump is made.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP qw(decode_json);
use List::Util qw(sum0);
use Test::More;
use Hunt;
use Recordings qw(:DEFAULT ask);

my $dir = fresh_dir();
my $hdiff = "$root/build/linux/hdiff";
my %made = (run => { seed => 11, events => 5000 }, attached => { seed => 12, events => 3000, attached => 300 });
my ($files, $replays) = make_random($dir, %made);
my %file = %$files;
my %replay = %$replays;

subtest "$_: sizes" => \&check_sizes, $_ for sort keys %made;
subtest 'sizes in dumps' => \&check_dumps;
subtest 'blocks without a stack' => \&check_stackless;
subtest 'sizes in charts' => \&check_charts;
subtest 'limits are of the part' => \&check_limits;
subtest 'sizes by mark' => \&check_marks;
subtest "$_: older blocks" => \&check_older, $_ for sort keys %made;
subtest "$_: blocks that still exist" => \&check_still, $_ for sort keys %made;
subtest 'age by group and size' => \&check_groups;
subtest 'errors are one line each' => \&check_errors;
done_testing;

# ---------------------------------------------------------------- queries

sub stack_text {
	my ($has) = @_;
	return join ' ', map { defined $_->{module} ? "$_->{module}+$_->{offset}" : $_->{address} } @{ $has->{frames} // [] };
}

# Checks the rows, and that the totals are theirs and stated to be a part. Returns the report.
sub check {
	my ($truth, $what, @args) = @_;
	my $report = ask(@args);
	my %rows = map { stack_text($_) => [@{ $_->{new} }{qw(bytes blocks)}] } @{ $report->{rows} };
	is_deeply(\%rows, $truth, "$what: each stack");
	my @total = map { my $i = $_; sum0(map { $_->[$i] } values %$truth) } 0, 1;
	is_deeply([@{ $report->{totals}{selected}{new} }{qw(bytes blocks)}], \@total, "$what: and all");
	ok($report->{filtered}, "$what: which is a part");
	return $report;
}

sub of_size {
	my ($least, $most, @blocks) = @_;
	return [grep { $_->{bytes} >= $least && $_->{bytes} <= $most } @blocks];
}

# ---------------------------------------------------------------- sizes

my @ranges = (['1..100', 1, 100], ['1K..1M', 1024, 1 << 20], ['0', 0, 0], ['..500', 0, 500], ['2K..', 2048, ~0]);

sub check_sizes {
	my ($name) = @_;
	my ($of, $file) = ($replay{$name}, $file{$name});
	my ($one) = sort { $a <=> $b } map { $_->{bytes} } @{ live_at($of, '60%') };
	for (@ranges, [$one, $one, $one]) {
		my ($size, @range) = @$_;
		check(by_stack(of_size(@range, @{ live_at($of, '60%') })), "$size at a moment", '--size', $size, "$file\@60%");
		for my $class (qw(aifo aifi aofi aofo ai)) {
			my $report = check(by_stack(of_size(@range, @{ fate_of($of, $class, '20%', '60%') })), "$size, $class", '--size', $size,
				'--class', $class, '--from', '20%', '--to', '60%', $file);
			my $window = by_stack(of_size(@range, @{ fate_of($of, 'ai', '20%', '60%') }));
			is($report->{window}{ai}{bytes}, sum0(map { $_->[0] } values %$window), 'and the whole window');
		}
	}
	my $all = ask('--size', '64', "$file\@60%")->{totals}{all}{new}{bytes};
	is($all, use_at($of, position_of($of, '60%')), 'the total of all is that of all');
}

# Blocks [BYTES, STACK], one after another. A stack's frames follow its first block.
sub dump_file {
	my ($name, $time, $blocks, $notes) = @_;
	my %known;
	my ($bytes, $addr) = (0, 0x2000);
	my $text = "// hsnap: dump format=1 tool=1 time=2026-11-20T10:00:0$time.000Z\n"
	    . "// hsnap: process id=7 start=2026-11-20T09:00:00.000Z bits=64 image=app.exe\n"
	    . "// Loaded modules:\n//\tBase Size Module\n//\t140000000 24000 C:\\app.exe\n// Process modules enumerated.\n" . ($notes // '')
	    . "*- - - Start of data for heap @ 650000 - - -\n";
	for (@$blocks) {
		$text .= sprintf "%X bytes + 10 at %X by BackTrace%X\n", $_->[0], $addr += 0x10000, $_->[1];
		$text .= sprintf "\t14000%04X\n", 0x1000 + 16 * $_->[1] if !$known{ $_->[1] }++;
		$bytes += $_->[0];
	}
	my ($count) = map { $_ + @$blocks } $notes ? $notes =~ /stackless-blocks=(\d+)/ : 0;
	$bytes += $1 if $notes && $notes =~ /stackless-requested=(\d+)/;
	return spew("$dir/$name", $text . sprintf "// hsnap: end blocks=%d requested=%d overhead=%d\n", $count, $bytes, 16 * @$blocks);
}

sub sum_sizes {
	my ($blocks, $least, $most) = @_;
	my %sum;
	for (grep { $_->[0] >= $least && $_->[0] <= $most } @$blocks) {
		my $sum = $sum{ sprintf 'app+%X', 0x1000 + 16 * $_->[1] } //= [0, 0];
		$sum->[0] += $_->[0];
		$sum->[1]++;
	}
	return \%sum;
}

sub check_dumps {
	srand 5;
	my @old = map { [(0, 8, 64, 64, 1024, 4096, 5000)[rand 7], 1 + int rand 9] } 1 .. 200;
	my @new = (@old[20 .. 150], map { [(8, 64, 65, 4096, 9000)[rand 5], 1 + int rand 12] } 1 .. 150);
	my ($was_in, $is_in) = (dump_file('a.txt', 0, \@old), dump_file('b.txt', 5, \@new));
	for (['64', 64, 64], ['1K..4K', 1024, 4096], ['..64', 0, 64], ['4097..', 4097, ~0]) {
		my ($size, @range) = @$_;
		my ($was, $is) = map { sum_sizes($_, @range) } \@old, \@new;
		check($is, "$size in a dump", '--size', $size, $is_in);
		my %grown = map { my $stack = $_; $stack => [map { ($is->{$stack}[$_] // 0) - ($was->{$stack}[$_] // 0) } 0, 1] } keys %$was, keys %$is;
		my $report = ask('--size', $size, $was_in, $is_in);
		is_deeply({ map { stack_text($_) => [@{ $_->{growth} }{qw(bytes blocks)}] } @{ $report->{rows} } },
			{ map { $_ => $grown{$_} } grep { $grown{$_}[0] || $grown{$_}[1] } keys %grown }, "$size between two");
		is($report->{totals}{all}{new}{bytes}, sum0(map { $_->[0] } @new), 'the total of all is that of all');
		my ($heap) = @{ ask('--size', $size, '--group', 'heap', $is_in)->{groups} };
		is($heap->{self}{new}{blocks}, sum0(map { $_->[1] } values %$is), 'the same by heap');
	}
	my $sizes = ask('--size', '1K..4K', '--sizes', $was_in, $is_in);
	is_deeply([sort { $a <=> $b } keys %{ { map { $_->{size} => 1 } map { @{ $_->{sizes} } } @{ $sizes->{rows} } } }], [1024, 4096], '--sizes lists these sizes');
	my @trend = map { [@new[0 .. 20 + 30 * $_]] } 1 .. 4;
	my $series = ask('--size', '64', map { dump_file("t$_.txt", $_, $trend[$_ - 1]) } 1 .. 4)->{series}[0];
	my @sums = map { sum_sizes($_, 64, 64) } @trend;
	my @stacks = grep { ($sums[0]{$_}[0] // 0) != $sums[3]{$_}[0] } keys %{ $sums[3] };
	is_deeply({ map { stack_text($_) => $_->{bytes} } @{ $series->{rows} } },
		{ map { my $stack = $_; $stack => [map { $_->{$stack}[0] // 0 } @sums] } @stacks }, 'in a trend');
}

# Groups of one size count, others have no size.
sub check_stackless {
	my $notes = "// hsnap: heap addr=650000 kind=nt committed=65536 reserved=65536 stackless-blocks=60 stackless-requested=6000 stackless-overhead=0\n"
	    . "// hsnap: stackless addr=650000 bytes=64 blocks=10 requested=640 overhead=0\n"
	    . "// hsnap: stackless addr=650000 bytes=32 blocks=20 requested=640 overhead=0\n";
	my $file = dump_file('stackless.txt', 1, [[64, 1]], $notes);
	my $ran = run([$hdiff, '--no-symbols', '-o', 'json', '--size', '64', $file]);
	my $report = decode_json($ran->{out});
	is_deeply([map { [@{ $_->{new} }{qw(bytes blocks)}] } @{ $report->{rows} }], [[640, 10], [64, 1]], 'a group of this size counts');
	is($report->{totals}{all}{new}{blocks}, 61, 'the total has all');
	like($ran->{err}, qr/warning: 30 blocks without a stack have no recorded size: --size leaves them out$/m, 'blocks of unknown size are reported');
}

sub check_charts {
	my $of = $replay{run};
	my @blocks = grep { Recordings::is_used() } @{ of_size(1024, 65536, @{ live_at($of, 'end') }) };
	my ($columns, @lines) = map { [split /,/] } split /\r?\n/, run([$hdiff, '--no-symbols', '-o', 'csv', '--over-time', '--size', '1K..64K', $file{run}])->{out};
	my %last;
	@last{@$columns} = @{ $lines[-1] };
	is($last{bytes}, sum0(map { $_->{bytes} } @blocks), 'use at the end');
}

sub check_marks {
	my $of = $replay{run};
	my @at = (position_of($of, 'start'), (map { $_->{position} } @{ $of->marks }), $of->events);
	my @truth = map { my @part = @at[$_ - 1, $_]; +{ kept => sum_of($of->fate('aifo', @part)), transient => sum_of($of->fate('aifi', @part)) } } 1 .. $#at;
	my @parts = @{ ask('--by-mark', '--size', '64..4K', $file{run})->{parts} };
	is_deeply([map { +{ kept => $_->{kept}, transient => $_->{transient} } } @parts], \@truth, 'each part');
}

sub sum_of {
	my @blocks = grep { Recordings::is_used() } @{ of_size(64, 4096, @_) };
	return { bytes => sum0(map { $_->{bytes} } @blocks), blocks => scalar @blocks };
}

sub check_limits {
	my $of = $replay{run};
	my $sum = sum0(map { $_->[0] } values %{ by_stack(of_size(64, 4096, @{ fate_of($of, 'aifo', 'start', 'end') })) });
	cmp_ok($sum, '>', 0, 'there are such blocks');
	my @limit = ('--size', '64..4K', '--max-growth');
	is(run([$hdiff, '--no-symbols', @limit, $sum, $file{run}])->{status}, 0, 'a limit at the sum passes');
	is(run([$hdiff, '--no-symbols', @limit, $sum - 1, $file{run}])->{status}, 1, 'and below it fails');
}

# ---------------------------------------------------------------- ages

sub check_rows {
	my ($truth, $what, @args) = @_;
	my $report = ask(@args);
	is_deeply({ map { stack_text($_) => [@{ $_->{new} }{qw(bytes blocks)}] } @{ $report->{rows} } }, $truth, $what);
	return $report;
}

# Blocks that exist at a position and were allocated up to a millisecond.
sub older_at {
	my ($of, $moment, $ms) = @_;
	my $at = position_of($of, $moment);
	my $end = $at ? $of->{times}[$at - 1] : 0;
	$end = $moment =~ /^(\d+)%$/ ? $of->{length} * $1 / 100 : $of->{length} if $moment ne 'peak';
	return [grep { $_->{alloc}{index} < $of->{start} || $_->{alloc}{time} <= $end - $ms } $of->live($at)];
}

sub check_older {
	my ($name) = @_;
	my ($of, $file) = ($replay{$name}, $file{$name});
	for my $case (['3s', 3000, 'end'], ['500ms', 500, '60%'], ['1ms', 1, 'peak'], ['10s', 10_000, 'end']) {
		my ($age, $ms, $moment) = @$case;
		my $truth = by_stack(older_at($of, $moment, $ms));
		check_rows($truth, "$age before $moment", '--older-than', $age, $moment eq 'end' ? () : ('--to', $moment), $file);
	}
	my $growth = sum0(map { $_->[0] } values %{ by_stack(older_at($of, 'end', 3000)) });
	is(run([$hdiff, '--no-symbols', '--older-than', '3s', '--max-growth', $growth, $file])->{status}, 0, 'a limit counts them');
	is(run([$hdiff, '--no-symbols', '--older-than', '3s', '--max-growth', $growth - 1, $file])->{status}, 1, 'exactly') if $growth;
}

sub still_at { my ($of, $from, $to, $at) = @_; my $is = position_of($of, $at); return [grep { Replay::lives_at($_, $is) } @{ fate_of($of, 'ai', $from, $to) }] }

sub check_still {
	my ($name) = @_;
	my ($of, $file) = ($replay{$name}, $file{$name});
	for my $case (['10%', '40%', '90%'], ['start', '50%', 'end'], ['20%', '20%', '60%'], ['30%', '60%', '60%']) {
		my ($from, $to, $at) = @$case;
		my @args = ('--from', $from, '--to', $to, '--still-at', $at, $file);
		my $report = check_rows(by_stack(still_at($of, $from, $to, $at)), "born from $from to $to, at $at", @args);
		is_deeply([@{ $report->{inputs}[0] }{qw(class from_ms to_ms still_at_ms)}], ['aifo', map { ms_of($of, $_) } $from, $to, $at],
			'which the report states') if $to ne $at;
		my @born = grep { Recordings::is_used() } @{ fate_of($of, 'ai', $from, $to) };
		is_deeply($report->{window}{ai}, { bytes => sum0(map { $_->{bytes} } @born), blocks => scalar @born }, 'all that were born then');
		my @freed = grep { !Replay::lives_at($_, position_of($of, $at)) } @born;
		is_deeply($report->{window}{aifi}, { bytes => sum0(map { $_->{bytes} } @freed), blocks => scalar @freed }, 'those of them that were freed');
		is_deeply([sort { $a <=> $b } map { $_->{free}{time} - $_->{alloc}{time} } @freed]->[-1], $report->{window}{lifetime}{longest_ms}, 'and the longest life');
	}
	my $text = run([$hdiff, '--no-symbols', qw(--from 1s --to 2s --still-at 5s), $file])->{out};
	like($text, qr/what was allocated from 1\.000 s to 2\.000 s and still existed at 5\.000 s/, 'the text states it, too');
	my $page = run([$hdiff, '--no-symbols', '-o', 'html', qw(--from 1s --to 2s --still-at 5s), $file]);
	is($page->{status}, 0, 'a page of it');
	unlike($page->{out}, qr/"lives":/, 'has no chart of other windows');
}

sub ms_of { my ($of, $moment) = @_; return $moment =~ /^(\d+)%$/ ? $of->{length} * $1 / 100 : $moment eq 'end' ? $of->{length} : 0 }

sub check_groups {
	my $of = $replay{run};
	my %truth;
	for (grep { Recordings::is_used() && $_->{bytes} <= 1024 } @{ older_at($of, 'end', 2000) }) {
		my $sum = $truth{ { 1 => 'committed', 3 => 'mapped', 4 => 'stack' }->{ $_->{heap} } // 'heap' } //= [0, 0];
		$sum->[0] += $_->{bytes};
		$sum->[1]++;
	}
	my $groups = ask('--older-than', '2s', '--size', '..1K', '--group', 'memory', $file{run})->{groups};
	is_deeply({ map { $_->{name} => [@{ $_->{self}{new} }{qw(bytes blocks)}] } grep { $_->{self}{new}{blocks} } @$groups }, \%truth, 'small old blocks by memory');
}

sub check_errors {
	my $sums = spew("$dir/sums.txt", slurp("$dir/b.txt") =~ s/^8 bytes \+ 10 at \w+ by: */8 bytes in 0x1 allocations (@ 0x8 + 0x10) by: /mr
	    =~ s/^40 bytes \+ 10 at \w+ by (BackTrace\w+)$/40 bytes in 0x1 allocations (@ 0x40 + 0x10) by: $1/mr);
	my $printed = "$dir/printed.txt";
	run([$hdiff, '-d', '--no-symbols', '-f', $printed, "$dir/a.txt", "$dir/b.txt"]);
	refused($file{run},
		[['--size', '64', $sums], 'sums.txt', 'only sums', '--by-stack'],
		[['--size', '64', $printed], 'printed.txt', 'does not list blocks'],
		[['--size', '64', $printed, $printed], 'printed.txt'],
		[['--size', '4K..1K', $file{run}], '--size 4K..1K', 'above'],
		[['--size', 'big', $file{run}], '--size big', '64K'],
		[['--size', '64', '--list', $file{run}], '--size', '--list'],
		[['--size', '64', '--extract', "$file{run}\@end"], '--size', '--extract'],
		[['--older-than', '11s', $file{run}], '--older-than', '10s'],
		[['--older-than', '5', $file{run}], '--older-than 5', '10m'],
		[['--older-than', '0s', $file{run}], '--older-than 0s', '10m'],
		[['--older-than', '5s', '--from', '1s', $file{run}], '--older-than', '--from'],
		[['--older-than', '5s', '--still-at', '1s', $file{run}], '--older-than', '--still-at'],
		[['--older-than', '5s', '--transient', $file{run}], '--older-than', '--class'],
		[['--older-than', '5s', "$file{run}\@5s"], '--older-than', '@MOMENT'],
		[['--older-than', '5s', $file{run}, $file{attached}], '--older-than', 'one recording'],
		[['--older-than', '5s', "$dir/b.txt"], 'b.txt', 'recording'],
		[['--older-than', '5s', '--over-time', '-o', 'text', $file{run}], '--older-than', 'chart'],
		[['--older-than', '5s', '--by-mark', '-o', 'text', $file{run}], '--by-mark', 'window'],
		[['--still-at', '5s', '--by-mark', '-o', 'text', $file{run}], '--by-mark', 'window'],
		[['--still-at', '5s', '--to', '6s', $file{run}], 'run.hrec', '--still-at'],
		[['--still-at', 'nobody', $file{run}], '--still-at nobody', 'no mark'],
		[['--still-at', '5s', '--class', 'ai', $file{run}], '--still-at', '--class'],
		[['--peak', '--still-at', '5s', $file{run}], '--peak'],
		[['--list', '--older-than', '5s', $file{run}], '--list'],
		[['--size', '64', '--heaps', "$dir/b.txt"], '--size', '--heaps'],
		[['--size', '64', '--pinned', '-o', 'text', "$dir/b.txt"], '--pinned', '--size'],
	);
}
