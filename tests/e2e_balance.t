#!/usr/bin/perl
# The balance of a process: snapshots account for its committed memory, its threads and its handles.
# The truth is what targets/holds.c states in its comment, and its own sums of VirtualQuery().
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use List::Util qw(sum);
use Test::More;
use Hunt;

my $dir = fresh_dir();
my $exe = "$root/build/win64/targets/holds.exe";
my $source = slurp("$root/tests/targets/holds.c");
my %stated = $source =~ /^ \* balance: (\S+) \+(\d+)$/mg;
my @private = qw(heap-blocks heap-overhead heap-free tracer thread-stacks virtual image-copies view-copies system);
my $THREAD_BYTES = 2 << 20; # more than Wine and the heap need for one thread, beside its stack

is(keys %stated, 6, 'the target states what it adds');
subtest 'without tracer' => sub { check_steps(0) };
subtest 'with tracer' => sub { check_steps(1) };
done_testing;

# Returns the figures of a dump's notes; handles by type as "handles:TYPE".
sub balance_of {
	my ($file) = @_;
	my $text = slurp($file);
	my %found;
	for my $note ($text =~ m{^// hsnap: (?:memory|counts) (.*?)\r$}mg) {
		%found = (%found, $note =~ /(\S+)=(\d+)/g);
	}
	$found{"handles:$1"} = $2 while $text =~ m{^// hsnap: handles type="([^"]+)" count=(\d+)\r$}mg;
	return \%found;
}

# Reads the target's own sums, then waits for its step.
sub next_space {
	my ($target, $step) = @_;
	syswrite $target->{to}, "\n" if $step > 1;
	my %space = ($target->line // '') =~ /(private|mapped|images) (\d+)/g;
	is($target->step, $step, "step $step");
	return \%space;
}

sub check_space {
	my ($balance, $space, $step) = @_;
	my $copies = $balance->{'image-copies'} + $balance->{'view-copies'}; # VirtualQuery() counts them as images and views
	is(sum(@$balance{@private}) - $copies, $space->{private}, "step $step: parts add up to all private memory");
	is($balance->{mapped} + $balance->{'view-copies'}, $space->{mapped}, '... views');
	is($balance->{images} + $balance->{'image-copies'}, $space->{images}, '... images');
	cmp_ok($balance->{$_}, '>', 0, $_) for qw(private working-set heap-blocks heap-free thread-stacks system mapped images);
}

sub check_steps {
	my ($traced) = @_;
	my $target = target($exe, [], traced => $traced);
	my (@balance, %grown);
	for my $step (1 .. 3) {
		my $space = next_space($target, $step);
		my $file = "$dir/$traced-$step.txt";
		is(hsnap('-p', $target->{pid}, '-f', win($file))->{status}, 0, 'a snapshot');
		push @balance, balance_of($file);
		check_space($balance[-1], $space, $step);
		is($balance[-1]{tracer} > 0, !!$traced, $traced ? 'the tracer has memory' : 'there is no tracer');
	}
	is($target->quit, 0, 'the target ends');
	$grown{$_} = ($balance[1]{$_} // 0) - ($balance[0]{$_} // 0) for map { keys %$_ } @balance;
	is($grown{$_}, $stated{$_}, $_) for qw(threads handles thread-stacks-reserved mapped);
	is($grown{"handles:$_->[0]"}, $_->[1], $_->[0]) for ['Thread', 40], ['Event', 500], ['Section', 1];
	for (qw(virtual heap-blocks)) {
		cmp_ok($grown{$_}, '>=', $stated{$_}, "$_, at least");
		cmp_ok($grown{$_}, '<=', $stated{$_} + $stated{threads} * $THREAD_BYTES, "$_, at most");
	}
	my %later = map { $_ => $balance[2]{$_} - $balance[1]{$_} } grep { !/tracer|working|private/ } keys %{ $balance[2] };
	is_deeply([grep { $later{$_} } sort keys %later], [], 'nothing else changes in the last step');
	return;
}
