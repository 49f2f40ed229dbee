#!/usr/bin/perl
# The balance of a process: snapshots account for its committed memory, its threads and its handles.
# The truth is what targets/holds.c states in its comment, and sums of VirtualQueryEx(): its own, or those
# of a program with hsnap's bitness.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use List::Util qw(sum);
use Test::More;
use Cell;
use Hunt;
use Images;

my $dir = fresh_dir();
my %stated = slurp("$root/tests/targets/holds.c") =~ /^ \* balance: (\S+) \+(\d+)$/mg;
my @private = qw(heap-blocks heap-overhead heap-free tracer thread-stacks virtual image-copies view-copies system);
my $THREAD_BYTES = 4 << 10; # more than the system allocates for one thread, beside its stack and TEB

is(keys %stated, 6, 'the target states what it adds');
subtest 'without tracer' => sub { check_steps(0) };
subtest 'with tracer' => sub { check_steps(1) };
subtest 'heaps' => \&check_heaps;
done_testing;

# Waits for the target's step. Returns the sums of its memory.
sub next_space {
	my ($target, $step) = @_;
	syswrite $target->{to}, "\n" if $step > 1;
	my $stated = $target->line // '';
	is($target->step, $step, "step $step");
	$stated = run([wine(other_path('targets/holds.exe'), $target->{pid})])->{out} if $hsnap_bits != $target_bits;
	return { $stated =~ /(private|mapped|images) (\d+)/g };
}

sub check_space {
	my ($balance, $space, $step) = @_;
	my $copies = $balance->{'image-copies'} + $balance->{'view-copies'}; # VirtualQueryEx() counts them as images and views
	is(sum(@$balance{@private}) - $copies, $space->{private}, "step $step: parts add up to all private memory");
	is($balance->{mapped} + $balance->{'view-copies'}, $space->{mapped}, '... views');
	is($balance->{images} + $balance->{'image-copies'}, $space->{images}, '... images');
	cmp_ok($balance->{$_}, '>', 0, $_) for qw(private working-set heap-blocks heap-free thread-stacks system mapped images);
	is_deeply([grep { !$balance->{$_} && /peak|threads|handles|gdi|user/ } keys %$balance], [], '... what the system does not count is absent');
}

sub check_steps {
	my ($traced) = @_;
	my $target = start_stating('targets/holds.exe', [], traced => $traced);
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
	is($grown{$_}, $stated{$_}, $_) for qw(threads mapped);
	# Windows 8 and later list handles by type. Wine 8 does not count handles.
	is($grown{$_}, $stated{$_}, $_) for grep { $_ eq 'handles' } keys %grown;
	# Wine's threads have another stack for Wine's own code, and 32-bit ones another one for 64-bit code:
	# 1 MiB each, measured with 8.0 and 10.0.
	ok(scalar(grep { $grown{'thread-stacks-reserved'} == $_ * $stated{'thread-stacks-reserved'} } 1 .. ($target_bits == 64 ? 2 : 3)), 'thread-stacks-reserved')
	    or diag($grown{'thread-stacks-reserved'});
	cmp_ok($grown{'thread-stacks'}, '<=', $grown{'thread-stacks-reserved'}, 'thread-stacks');
	if (grep { /^handles:/ } keys %grown) {
		is($grown{"handles:$_->[0]"}, $_->[1], $_->[0]) for ['Thread', 40], ['Event', 500], ['Section', 1];
	}
	for (qw(virtual heap-blocks)) {
		cmp_ok($grown{$_}, '>=', $stated{$_}, "$_, at least");
		cmp_ok($grown{$_}, '<=', $stated{$_} + $stated{threads} * $THREAD_BYTES, "$_, at most");
	}
	my %later = map { $_ => $balance[2]{$_} - $balance[1]{$_} } grep { !/tracer|working|private/ } keys %{ $balance[2] };
	is_deeply([grep { $later{$_} } sort keys %later], [], 'nothing else changes in the last step');
	my $text = run(["$root/build/linux/hdiff", map { "$dir/$traced-$_.txt" } 1, 2])->{out};
	like($text, $traced ? qr/^threads \+40/m : qr/^the rows explain \d+ %, but not thread stacks \('hsnap run' shows by whom\)$/m, 'hdiff');
	unlike($text, qr/^the rows explain/m, '... whose rows explain all') if $traced;
	return;
}

# The heaps of a live process add up to its balance, and the program's blocks are in one of them.
sub check_heaps {
	my @files = map { "$dir/1-$_.txt" } 1, 2;
	my $heaps = hdiff_json('--heaps', @files)->{heaps};
	my ($old, $new) = map { balance_of($_) } @files;
	for my $side (['old', $old], ['new', $new]) {
		my ($key, $balance) = @$side;
		is(sum(map { $_->{$key}{bytes} // 0 } @$heaps), $balance->{'heap-blocks'}, "$key: live");
		is(sum(map { $_->{$key}{overhead} // 0 } @$heaps), $balance->{'heap-overhead'}, "$key: overhead");
		is(sum(map { $_->{$key}{free} // 0 } @$heaps), $balance->{'heap-free'}, "$key: free");
		is(sum(map { $_->{$key}{committed} // 0 } @$heaps), sum(@$balance{qw(heap-blocks heap-overhead heap-free)}), "$key: committed");
	}
	my ($first) = @$heaps;
	cmp_ok($first->{new}{bytes} - $first->{old}{bytes}, '>=', 20_480_000, 'the heap that grew comes first');
	cmp_ok($first->{new}{blocks} - $first->{old}{blocks}, '>=', 40, '... with its blocks');
	return;
}
