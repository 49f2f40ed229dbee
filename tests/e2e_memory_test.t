#!/usr/bin/perl
# samples/memory_test.cpp states each of its events: it does what its head says, and snapshots taken
# at any moment have what lived then, to the byte.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;
use Images qw(found);
use Replay;

my $dir = fresh_dir();
my $exe = "$root/build/win64/samples/memory_test.exe";
my $buffer = 10 * 1024 * 1024;
# Buffers live from 150 to 250 ms, 450 to 550 ms, and so on; half way is at 1500 ms.
my @stops = (200, 1400, 1600, 3000);
my $target = target($exe, ['--seconds', 3, '--events', win("$dir/events"), map { ('--stop', $_) } @stops],
	traced => 1, run => ['--at-exit', win("$dir/exit.txt")]);
for my $stop (1 .. @stops) {
	is($stop == 1 ? $target->step : $target->next_step, $stop, "stop $stop") or BAIL_OUT('the sample ended too early');
	taken("stop$stop");
	next if $stop != 3;
	# While it goes on: it ends only after its last stop.
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

# A snapshot that did not wait for a stop. What lives is the same just before a buffer and just after it.
my $running = listing(blocks_of('running'));
my @moments = grep { listing(live_at($_)) eq $running } $replay->mark('stop 3') .. $replay->mark('stop 4');
ok(scalar @moments, 'a snapshot of it running is that of a moment') or diag($running);
note("positions @moments of ", $replay->mark('stop 3'), ' to ', $replay->mark('stop 4'));
check_moment('running', $moments[0]) if @moments;

is(run([wine($exe, '--seconds', 1)])->{status}, 2, 'a second is too short for it');
done_testing;

sub taken {
	my ($name) = @_;
	return check_ok(hsnap('-pn', 'memory_test', '-f', win("$dir/$name.txt")), "snapshot $name");
}

# What the head of the sample says.
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

# { "HEAP ADDR" => BYTES } of what lived at a position. Committed memory has the heap 1 in dumps.
sub live_at {
	my ($position) = @_;
	return { map { ($_->{memory} eq 'heap' ? $_->{heap} : 1) . " $_->{id}" => $_->{bytes} } $replay->live($position) };
}

# The same of a dump: all that the heap of the objects has, and buffers. Threads have committed memory too.
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
