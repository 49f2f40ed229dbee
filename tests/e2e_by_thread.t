#!/usr/bin/perl
# Blocks by the thread that allocated, and the threads that freed them. The truth is a replay that
# keeps every block with its threads.
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
my @classes = qw(aifo aifi aofi aofo ai);
my %made = (run => { seed => 21, events => 6000 }, attached => { seed => 22, events => 3000, attached => 300 });
my %name = (100 => 'main', 102 => 'worker-1', 103 => 'worker-2'); # 101 and 104 have none
my (%file, %replay);
for my $run (sort keys %made) {
	my $text = random_events(%{ $made{$run} });
	my $names = "name 100 first\nname 100 main\nname 102 worker-1\nname 103 worker-2\n";
	$text =~ s/^flush$/flush\n$names/m;
	$file{$run} = make_recording($text, "$dir/$run.hrec");
	$replay{$run} = replay($text);
}

subtest "$_: groups of a window" => \&check_windows, $_ for sort keys %made;
subtest "$_: groups of moments" => \&check_moments, $_ for sort keys %made;
subtest "$_: --thread" => \&check_filter, $_ for sort keys %made;
subtest 'text and page' => \&check_text;
subtest 'with other options' => \&check_combined;
subtest 'errors are one line each' => \&check_errors;
done_testing;

sub name_of { my ($id) = @_; return !$id ? '(thread not known)' : $name{$id} ? "$name{$id} ($id)" : "thread $id" }

# Sums blocks that are no address space: KEY -> [BYTES, COUNT].
sub sums_by {
	my ($key, @blocks) = @_;
	my %sums;
	for (grep { Recordings::is_used() } @blocks) {
		my $sum = $sums{ $key->($_) } //= [0, 0];
		$sum->[0] += $_->{bytes};
		$sum->[1]++;
	}
	return \%sums;
}

sub by_thread { return sums_by(sub { name_of($_[0]{alloc}{thread}) }, @_) }
sub groups_of { my ($report, $key) = @_; return { map { $_->{name} => [@{ $_->{self}{$key} }{qw(bytes blocks)}] } grep { $_->{self}{$key}{blocks} } @{ $report->{groups} } } }

# Threads that freed some blocks in a window, the one with most bytes first.
sub freers {
	my ($of, $from, $to, @blocks) = @_;
	my ($first, $last) = map { position_of($of, $_) } $from, $to;
	my @freed = grep { $_->{free} && $_->{free}{index} >= $first && $_->{free}{index} < $last } @blocks;
	my $sums = sums_by(sub { $_[0]{free}{thread} }, @freed);
	return [map { { thread => $_, ($name{$_} ? (name => $name{$_}) : ()), bytes => $sums->{$_}[0], blocks => $sums->{$_}[1] } }
		sort { $sums->{$b}[0] <=> $sums->{$a}[0] || $a <=> $b } keys %$sums];
}

sub check_windows {
	my ($run) = @_;
	my ($of, $file) = ($replay{$run}, $file{$run});
	for my $window (['start', 'end'], ['20%', '60%'], ['0s', '50%'], ['40%', '40%']) {
		my ($from, $to) = @$window;
		for my $class (@classes) {
			my $report = ask('--group', 'thread', '--class', $class, '--from', $from, '--to', $to, $file);
			is_deeply(groups_of($report, 'new'), by_thread(@{ fate_of($of, $class, $from, $to) }), "$class from $from to $to by thread");
			for my $group (@{ $report->{groups} }) {
				my @mine = grep { name_of($_->{alloc}{thread}) eq $group->{name} && Recordings::is_used() } @{ $of->allocations };
				is_deeply($group->{window}{freed_by_threads}, freers($of, $from, $to, @mine), "$group->{name}: who freed");
				for my $fate (@classes) {
					my ($first, $last) = map { position_of($of, $_) } $from, $to;
					my @blocks = grep { (Replay::class_of($_, $first, $last) // '') =~ /^$fate/ } @mine;
					is_deeply($group->{window}{$fate}, { bytes => sum0(map { $_->{bytes} } @blocks), blocks => scalar @blocks }, "$group->{name}: $fate");
				}
				is($group->{thread}, $mine[0]{alloc}{thread}, 'its id');
			}
		}
	}
}

sub check_moments {
	my ($run) = @_;
	my ($of, $file) = ($replay{$run}, $file{$run});
	for my $moment ('start', '30%', 'peak', 'end') {
		is_deeply(groups_of(ask('--group', 'thread', "$file\@$moment"), 'new'), by_thread(@{ live_at($of, $moment) }), "at $moment");
	}
	my ($old, $new) = map { by_thread(@{ live_at($of, $_) }) } '30%', '80%';
	my $report = ask('--group', 'thread', map { "$file\@$_" } '30%', '80%');
	is_deeply(groups_of($report, 'new'), $new, 'between two: new');
	is_deeply(groups_of($report, 'old'), $old, 'and old');
	my $trend = ask('--group', 'thread', map { "$file\@$_" } '30%', '50%', '80%');
	is_deeply([sort map { $_->{name} } @{ $trend->{series}[0]{groups} }], [sort keys %{ { %$old, %$new } }], 'a trend') or diag(explain([keys %{ $trend->{series}[0] }]));
}

sub stack_text {
	my ($has) = @_;
	return join ' ', map { defined $_->{module} ? "$_->{module}+$_->{offset}" : $_->{address} } @{ $has->{frames} // [] };
}

sub check_filter {
	my ($run) = @_;
	my ($of, $file) = ($replay{$run}, $file{$run});
	for my $case ([101, qr/^101$/], ['worker-1', qr/^102$/], ['worker*', qr/^10[23]$/], ['main', qr/^100$/]) {
		my ($thread, $is) = @$case;
		for my $class (@classes) {
			my @blocks = grep { $_->{alloc}{thread} =~ $is } @{ fate_of($of, $class, '20%', '60%') };
			my $report = ask('--thread', $thread, '--class', $class, '--from', '20%', '--to', '60%', $file);
			is_deeply({ map { stack_text($_) => [@{ $_->{new} }{qw(bytes blocks)}] } @{ $report->{rows} } }, by_stack(\@blocks), "$thread: $class");
			ok($report->{filtered}, 'which is a part');
			my @mine = grep { $_->{alloc}{thread} =~ $is && Recordings::is_used() } @{ $of->allocations };
			is_deeply($report->{window}{freed_by_threads}, freers($of, '20%', '60%', @mine), 'who freed');
		}
		my @live = grep { $_->{alloc}{thread} =~ $is } @{ live_at($of, '70%') };
		my $report = ask('--thread', $thread, "$file\@70%");
		is_deeply({ map { stack_text($_) => [@{ $_->{new} }{qw(bytes blocks)}] } @{ $report->{rows} } }, by_stack(\@live), "$thread at a moment");
		is($report->{totals}{all}{new}{bytes}, use_at($of, position_of($of, '70%')), 'the total of all is that of all');
	}
}

sub check_text {
	my $run = $file{run};
	my $text = run([$hdiff, '--no-symbols', '--group', 'thread', $run])->{out};
	like($text, qr/^ .*  worker-1 \(102\)$/m, 'a thread has its name');
	like($text, qr/^ .*  thread 101$/m, 'or only its id');
	my @crossed = grep { $_->{free} && $_->{alloc}{thread} == 102 && $_->{free}{thread} == 100 && Recordings::is_used() } @{ $replay{run}->allocations };
	my $count = @crossed;
	like($text, qr/^ +freed +blocks  freed by another thread than allocated\n/m, 'a table of what crosses');
	my $whole = run([$hdiff, '--no-symbols', '--group', 'thread', '-n', 100, $run])->{out};
	like($whole, qr/^ +[\d.]+ \w+ +$count  worker-1 \(102\) -> main \(100\)$/m, 'with each pair');
	like(run([$hdiff, '--no-symbols', '--thread', 'main', $run])->{out}, qr/^ +freed by (?:\w|-)+ .*: .* in \d+/m, 'stacks show who freed');
	my $page = run([$hdiff, '--no-symbols', '-o', 'html', '--thread', 'main', $run]);
	is($page->{status}, 0, 'a page');
	for my $form (qw(umdh csv folded pprof speedscope svg dhat html)) {
		is(run([$hdiff, '--no-symbols', '-o', $form, '-f', "$dir/out.$form", '--group', 'thread', $run])->{status}, 0, "groups as $form");
	}
	like(slurp("$dir/out.folded"), qr/^worker-1 \(102\) /m, 'folded has names');
	my $list = run([$hdiff, '--list', $run])->{out};
	like($list, qr/^thread +102 worker-1$/m, '--list has them');
	is_deeply(decode_json(run([$hdiff, '--list', '-o', 'json', $run])->{out})->{thread_names}, \%name, 'as JSON, too');
}

sub check_combined {
	my $of = $replay{run};
	my @heap = grep { $_->{heap} eq '1E0000' } @{ live_at($of, '60%') };
	is_deeply(groups_of(ask('--group', 'thread', '--heap', '1E0000', "$file{run}\@60%"), 'new'), by_thread(@heap), 'of one heap');
	my @small = grep { $_->{bytes} <= 1024 } @{ live_at($of, '60%') };
	is_deeply(groups_of(ask('--group', 'thread', '--size', '..1K', "$file{run}\@60%"), 'new'), by_thread(@small), 'of some sizes');
	my $at = position_of($of, '90%');
	my @still = grep { Replay::lives_at($_, $at) } @{ fate_of($of, 'ai', '10%', '40%') };
	is_deeply(groups_of(ask('--group', 'thread', qw(--from 10% --to 40% --still-at 90%), $file{run}), 'new'), by_thread(@still), 'with --still-at');
	my @of_two = grep { $_->{alloc}{thread} == 102 } @{ live_at($of, '60%') };
	is_deeply(groups_of(ask('--group', 'thread', '--thread', 102, "$file{run}\@60%"), 'new'), by_thread(@of_two), '--group with --thread');
	my $sum = sum0(map { $_->[0] } values %{ by_thread(grep { $_->{alloc}{thread} == 102 } @{ fate_of($of, 'aifo', 'start', 'end') }) });
	is(run([$hdiff, '--no-symbols', '--thread', 102, '--max-growth', $sum, $file{run}])->{status}, 0, 'a limit of one thread');
	is(run([$hdiff, '--no-symbols', '--thread', 102, '--max-growth', $sum - 1, $file{run}])->{status}, 1, 'exactly');
}

sub check_errors {
	my $dump = spew("$dir/dump.txt", dump_of($replay{run}, live_at($replay{run}, 'end'), 5));
	my $printed = "$dir/printed.txt";
	run([$hdiff, '-d', '--no-symbols', '-f', $printed, $dump, $dump]);
	refused($file{run},
		[['--group', 'thread', '-o', 'text', $dump], 'dump.txt', '--group thread', 'recordings'],
		[['--thread', 'main', $dump], 'dump.txt', '--thread', 'recordings'],
		[['--thread', 'main', $printed], 'printed.txt', 'threads'],
		[['--thread', 'nobody', $file{run}], 'nobody', 'no thread', '--list'],
		[['--thread', '999', $file{run}], '999', 'no thread', '--list'],
		[['--thread', 'main', '--over-time', '-o', 'text', $file{run}], '--thread', '--over-time'],
		[['--thread', 'main', '--by-mark', '-o', 'text', $file{run}], '--by-mark', 'thread'],
		[['--thread', 'main', '--extract', "$file{run}\@5s"], '--thread', '--extract'],
	);
}
