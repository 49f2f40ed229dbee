#!/usr/bin/perl
# samples/memory_test.cpp states each of its events. It does what its header describes. Snapshots at
# any moment have the live memory, to the byte. hdiff answers the exercise's questions for WPA from
# the sample's recording.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP qw(decode_json);
use List::Util qw(max min);
use Test::More;
use Hunt;
use Images qw(found);
use Replay;

my $dir = fresh_dir();
my $exe = "$root/build/win64/samples/memory_test.exe";
my $buffer = 10 * 1024 * 1024;
# Buffers live from 150 to 250 ms, from 450 to 550 ms, and so on. The half-way point is at 1500 ms.
my @stops = (200, 1400, 1600, 3000);
my $target = target($exe, ['--seconds', 3, '--events', win("$dir/events"), map { ('--stop', $_) } @stops],
	traced => 1, run => ['--at-exit', win("$dir/exit.txt")]);
for my $stop (1 .. @stops) {
	is($stop == 1 ? $target->step : $target->next_step, $stop, "stop $stop") or BAIL_OUT('the sample ended too early');
	taken("stop$stop");
	next if $stop != 3;
	# Take this snapshot while the program is running: it ends only after its last stop.
	syswrite $target->{to}, "\n";
	taken('running');
	is($target->step, $stop = 4, 'stop 4') or BAIL_OUT('the sample ended too early');
	taken("stop$stop");
	last;
}
is($target->quit, 0, 'it ends as it would untraced');

my $replay = Replay->new(slurp("$dir/events"));
exercise();
for my $stop (1 .. @stops) {
	check_moment("stop$stop", $replay->mark("stop $stop"));
	check_growth($stop - 1, $stop) if $stop > 1;
}
check_moment('exit', $replay->events);

# This snapshot did not wait for a stop. The live blocks are the same just before a buffer and just
# after.
my $running = listing(blocks_of('running'));
my @moments = grep { listing(live_at($_)) eq $running } $replay->mark('stop 3') .. $replay->mark('stop 4');
ok(scalar @moments, 'a snapshot of it running is that of a moment') or diag($running);
note("positions @moments of ", $replay->mark('stop 3'), ' to ', $replay->mark('stop 4'));
check_moment('running', $moments[0]) if @moments;

is(run([wine($exe, '--seconds', 1)])->{status}, 2, 'a second is too short for it');
subtest 'the questions of the exercise' => \&questions;
done_testing;

# ---------------------------------------------------------------- WPA's questions

# Questions about a third of the run, its middle, and the last four buffers. Marks are set where the
# program stops.
sub questions {
	my @at = (300, 1300, 1480, 1600, 1800, 3000);
	my $recorded = target($exe, ['--seconds', 3, '--events', win("$dir/recorded"), map { ('--stop', $_) } @at], record => ['-o', win("$dir/run.hrec")]);
	for my $stop (1 .. @at) {
		is($stop == 1 ? $recorded->step : $recorded->next_step, $stop, "stop $stop") or return;
		check_ok(hsnap('mark', '-p', $recorded->{pid}, "stop $stop"), "mark $stop");
	}
	is($recorded->quit, 0, 'it ends as it would unrecorded');
	my $told = Replay->new(slurp("$dir/recorded"));
	my $spike = 'ManipulateTemporaryBuffer<-Operation1<-main';
	my @virtual = ('--heap', 'virtual', '-i', '^memory_test!main$');

	my $whole = asked('--class', 'ai', @virtual);
	is_deeply(classes($whole->{window}), { ai => [120 << 20, 12], aifo => [0, 0], aifi => [120 << 20, 12], aofi => [0, 0], aofo => [0, 0] },
		'the whole run: size 120 MiB of VirtualAlloc, impacting 0');
	is($whole->{window}{peak}{bytes}, 30 << 20, '30 MiB at once');

	my $middle = asked(@virtual, between(3, 4));
	is_deeply([map { [chain($_), @{ $_->{new} }{qw(bytes blocks)}] } @{ $middle->{rows} }], [['main', 10 << 20, 1]], 'in the middle main commits 10 MiB, impacting');
	is_deeply([map { $_->{window}{heaps} } @{ $middle->{rows} }], [['VirtualAlloc']], 'by VirtualAlloc');
	like(join(' ', map { $_->{function} // '' } @{ $middle->{rows}[0]{frames} }), qr/VirtualAlloc.* main /, 'its stack is that of the commit');

	my $last = asked('--transient', @virtual, between(5, 6));
	is_deeply([map { [chain($_), classes($_->{window})] } @{ $last->{rows} }],
		[[$spike, { ai => [40 << 20, 4], aifo => [0, 0], aifi => [40 << 20, 4], aofi => [0, 0], aofo => [0, 0] }]],
		'the last four buffers: transient, count 4, size 40 MiB, impacting 0');
	my @last = (grep { $_->{stack} eq $spike } @{ $told->allocations })[6 .. 9];
	lives($told, $last->{rows}[0]{window}, @last);
	is_deeply(freed_by($last->{rows}[0]), { map { $_->{free}{stack} => [40 << 20, 4, 1] } @last }, 'decommitted by one stack');
	my @source = ('', split /\n/, slurp("$root/samples/memory_test.cpp"));
	my @calls = map { $source[line_of($_)] } $last->{rows}[0], $last->{rows}[0]{window}{freed_by};
	like($calls[0], qr/^\t+(?:buffer = step_leak|VirtualAlloc)\(/, 'it is committed where the source does that');
	like($calls[1], qr/^\tVirtualFree\(buffer,/, 'and decommitted where it does that');
	is_deeply(freed_by($_), { chain($_) => [@{ $_->{window}{aifi} }{qw(bytes blocks)}, 1] }, 'in the whole run, too, ' . chain($_)) for grep { chain($_) eq $spike } @{ $whole->{rows} };
	for my $side (tool_names()) {
		my $text = run(tool('hdiff', $side, '--transient', @virtual, between(5, 6), "$dir/run.hrec"))->{out};
		like($text, qr{^//     size 41943040 in 4 \([\d.]+/s\); impacting 0 in 0; peak 10485760 at [\d.]+ s\r?\n//     allocated .*; freed .*; lived \d+ to \d+ ms, on average [\d.]+, median \d+; thread \d+; VirtualAlloc\r?\n//     freed by \(41943040 in 4\):\r?\n(?://  .*\n)*?//         memory_test!ManipulateTemporaryBuffer\b.*\n//         memory_test!Operation1\b}m, "as text, $side hdiff");
	}

	my ($heap) = map { $_->{heap} } grep { $_->{memory} eq 'heap' } @{ $told->allocations };
	my $trend = decode_json(run(tool('hdiff', 'linux', '-o', 'json', '--group', 'heap', map { "$dir/run.hrec\@stop $_" } 1 .. @at))->{out});
	my %groups = map { $_->{name} => $_->{total} } @{ $trend->{series}[0]{groups} };
	is_deeply([grep { ($groups{$_}{trend}{verdict} // '') eq 'grows' } sort keys %groups], [$heap], 'one heap rises steadily');
	is_deeply($groups{$heap}{bytes}, [map { $told->state($told->mark("stop $_"), [], sub { $_->{memory} eq 'heap' })->{''}{bytes} } 1 .. @at], 'by what the program says');

	my $third = asked('--heap', 'heaps', '-i', '^memory_test!main$', between(1, 2));
	my $truth = $told->window((map { $told->mark("stop $_") } 1, 2), [], sub { $_->{memory} eq 'heap' })->{''}{aifo};
	cmp_ok($truth->{count}, '>', 350, 'a third of the objects is made in a third of the run');
	is_deeply([map { [chain($_), @{ $_->{new} }{qw(bytes blocks)}] } @{ $third->{rows} }], [['InnerLoopOperation<-main', @$truth{qw(bytes count)}]],
		'they are counted, impacting, in InnerLoopOperation');
	is($truth->{bytes}, 40 * $truth->{count}, 'each of 40 bytes');
	my ($window, $input) = ($third->{rows}[0]{window}, $third->{inputs}[0]);
	is($window->{allocated_per_second}, int($truth->{count} * 1_000_000 / ($input->{to_ms} - $input->{from_ms}) + 0.5) / 1000, 'with their rate');
	cmp_ok($input->{to_ms} - $input->{from_ms}, '>=', 980, 'in a second or more');
	is_deeply($window->{heaps}, [$heap], 'and their heap');
	return;
}

sub between { return ('--from', "stop $_[0]", '--to', "stop $_[1]") }

sub asked {
	my @words = @_;
	my $result = run(tool('hdiff', 'linux', '-o', 'json', @words, "$dir/run.hrec"));
	check_ok($result, "hdiff @words");
	return decode_json($result->{out});
}

sub classes { my ($window) = @_; return { map { $_ => [@{ $window->{$_} }{qw(bytes blocks)}] } qw(ai aifo aifi aofi aofo) } }

sub chain {
	my ($row) = @_;
	my @ours = grep { ($_->{module} // '') eq 'memory_test' } @{ $row->{frames} };
	my @functions = grep { $_ ne 'operator new' } map { $_->{function} =~ s/\(.*//r } @ours;
	my ($main) = grep { $functions[$_] eq 'main' } 0 .. $#functions;
	return join '<-', @functions[0 .. $main // $#functions];
}

# Returns the stacks that freed a row's memory: { STACK => [BYTES, COUNT, STACKS] }.
sub freed_by {
	my ($row) = @_;
	my $by = $row->{window}{freed_by} // return {};
	return { chain($by) => [@$by{qw(bytes blocks stacks)}] };
}

# Returns the line number of a row's first frame in the program.
sub line_of {
	my ($has) = @_;
	my ($first) = grep { ($_->{module} // '') eq 'memory_test' } @{ $has->{frames} };
	return $first->{line};
}

# Checks when buffers were committed and decommitted, and how long each buffer lived. The program
# notes a commit after it and a decommit before it, so the notes on either side bound both times.
# Millisecond clocks may differ by one each.
sub lives {
	my ($told, $window, @buffers) = @_;
	my @noted = sort { $a <=> $b } map { ($_->{alloc}{time}, $_->{free} ? $_->{free}{time} : ()) } @{ $told->allocations };
	my (@least, @most);
	for my $buffer (@buffers) {
		my ($from, $to) = ($buffer->{alloc}{time}, $buffer->{free}{time});
		push @least, $to - $from - 2;
		push @most, (min(grep { $_ > $to } @noted) // $to + 1000) - (max(grep { $_ < $from } @noted) // 0) + 2;
	}
	my $lived = $window->{lifetime};
	cmp_ok($lived->{shortest_ms}, '>=', min(@least), 'each is decommitted 100 ms after it was committed');
	cmp_ok($lived->{shortest_ms}, '>=', 98, 'as requested');
	cmp_ok($lived->{longest_ms}, '<=', max(@most), 'and not later than the program states');
	cmp_ok($lived->{mean_ms}, '>=', $lived->{shortest_ms}, 'on average, too');
	my $apart = $buffers[-1]{alloc}{time} - $buffers[0]{alloc}{time};
	cmp_ok(abs($window->{allocated}{last_ms} - $window->{allocated}{first_ms} - $apart), '<=', max(@most) - min(@least), 'first and last are as far apart as it states');
	cmp_ok($window->{freed}{first_ms} - $window->{allocated}{first_ms}, '>=', 98, 'the first goes after its time');
	is_deeply([scalar @{ $window->{threads} }, $window->{heaps}], [1, ['VirtualAlloc']], 'one thread did it');
	return;
}

# ---------------------------------------------------------------- snapshots

sub taken {
	my ($name) = @_;
	return check_ok(hsnap('-p', $target->{pid}, '-f', win("$dir/$name.txt")), "snapshot $name");
}

# Checks that the sample's header agrees with the recording.
sub exercise {
	my @all = @{ $replay->allocations };
	my @made = grep { $_->{memory} eq 'heap' } @all;
	is_deeply([map { "$_->{bytes} $_->{stack}" } @made], [('40 InnerLoopOperation<-main') x 1200], '1200 objects of 40 bytes');
	my %heaps = map { $_->{heap} => 1 } @made;
	is(scalar keys %heaps, 1, 'of one heap');
	my @early = grep { $made[$_]{alloc}{time} < int(3000 * $_ / 1200) } 0 .. $#made;
	is_deeply(\@early, [], 'none of them before its moment');
	my @ranges = grep { $_->{memory} eq 'committed' } @all;
	my @spike = ('ManipulateTemporaryBuffer<-Operation1<-main') x 5;
	is_deeply([map { "$_->{bytes} $_->{stack}" } @ranges], [map { "$buffer $_" } 'main', @spike, 'main', @spike], 'twelve buffers of 10 MiB');
	is_deeply([grep { $_->{stack} ne 'main' && $_->{free}{time} - $_->{alloc}{time} < 100 } @ranges], [], 'none lives for less than 100 ms');
	my $virtual = sub { $_->{memory} eq 'committed' };
	my $whole = $replay->window(0, $replay->events, [], $virtual)->{''};
	is_deeply([@{ $whole->{size} }{qw(bytes count)}, $whole->{aifo}{bytes}, $whole->{peak}{bytes}], [120 << 20, 12, 0, 30 << 20],
		'120 MiB of VirtualAlloc, none of it left, 30 MiB at once');
	my ($sixth, $tenth) = map { $_->{free}{index} + 1 } (grep { $_->{stack} ne 'main' } @ranges)[5, 9];
	my $last = $replay->window($sixth, $tenth, [], $virtual)->{''};
	is_deeply([@$last{qw(aifi aifo)}], [{ bytes => 40 << 20, count => 4 }, { bytes => 0, count => 0 }], 'the last four are transient');
	my $middle = $replay->window((map { $replay->mark("stop $_") } 2, 3), ['stack'], $virtual)->{main};
	is_deeply($middle->{aifo}, { bytes => $buffer, count => 1 }, 'in the middle one is left, of main');
	return;
}

# Returns { "HEAP ADDR" => BYTES } of live memory at a position. In dumps, committed memory has heap
# 1.
sub live_at {
	my ($position) = @_;
	return { map { ($_->{memory} eq 'heap' ? $_->{heap} : 1) . " $_->{id}" => $_->{bytes} } $replay->live($position) };
}

# Returns a dump's live memory like live_at(): everything in the objects' heap, and buffers. Threads
# also commit memory, which is left out.
sub blocks_of {
	my ($name) = @_;
	my $blocks = found("$dir/$name.txt")->{blocks};
	my %live;
	for my $addr (keys %$blocks) {
		my ($heap, $bytes) = split / /, $blocks->{$addr};
		$live{"$heap $addr"} = $bytes if $heap eq $replay->allocations->[1]{heap} || ($heap eq '1' && $bytes == $buffer);
	}
	return \%live;
}

sub listing {
	my ($live) = @_;
	return join "\n", map { "$_ $live->{$_}" } sort keys %$live;
}

sub check_moment {
	my ($name, $position) = @_;
	is(listing(blocks_of($name)), listing(live_at($position)), "$name: each block is where it is, and nothing else");
	my $state = $replay->state($position, ['stack']);
	check_rows($name, { map { $_ => [@{ $state->{$_} }{qw(bytes count)}] } keys %$state }, "$dir/$name.txt");
	return;
}

sub check_growth {
	my ($old, $new) = @_;
	my ($before, $after) = map { $replay->state($replay->mark("stop $_"), ['stack']) } $old, $new;
	my %growth;
	for my $stack (keys %{ { %$before, %$after } }) {
		my @change = map { ($after->{$stack}{$_} // 0) - ($before->{$stack}{$_} // 0) } qw(bytes count);
		$growth{$stack} = \@change if $change[0] || $change[1];
	}
	check_rows("stop $old to $new", \%growth, map { "$dir/stop$_.txt" } $old, $new);
	return;
}

sub check_rows {
	my ($what, $truth, @dumps) = @_;
	for my $side (tool_names()) {
		my $result = run(tool('hdiff', $side, @dumps));
		check_ok($result, "$what, $side hdiff") or next;
		is_deeply(rows_by_functions(report($result->{out}), 'memory_test'), $truth, "$what, $side hdiff: bytes and blocks of each stack")
		    or diag($result->{out});
	}
	return;
}
