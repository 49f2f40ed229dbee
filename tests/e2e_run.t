#!/usr/bin/perl
# hsnap run leaves a program as it is, odd ones too: its threads, arguments and
# exit status; and what it does does not spoil the snapshot at its end.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();
my $odd = "$root/build/win64/targets/odd.exe";

is(traced('threads')->{out} =~ s/\s//gr, 'same', 'the loader initialises it in its own thread');
my @arguments = ('a b', '', 'a"b', 'a\\', 'a\\\\"b c\\', '"', '\\"', 'tab	x', '--', '-p', '*.c', 'end');
is(traced('arguments', @arguments)->{out}, plain('arguments', @arguments)->{out}, 'arguments arrive as they are');
is($_->('early')->{status}, 33, 'a program that ends before main has its status') for \&plain, \&traced;
my $early = traced_to("$dir/early.txt", 'early');
is($early->{status}, 33, 'also when a snapshot was to be taken at its exit');
like($early->{err}, qr/\Ahsnap: .*before it came to its own exit.*\n\z/, 'which one line says');

my $raise = rows_of('raise', 0);
is_deeply($raise->{leak_after}, [100, 77700], 'allocations after an exception that went through a hook have their stacks');
is_deeply($raise->{keep_block}, [1, 1000], 'and so has the block that could not be reallocated');
my $adjacent = rows_of('adjacent', 0);
is_deeply($adjacent->{fill_heap}, [400, 80_000_000], 'heaps that lie side by side are both walked');
rows_of('race', 17) for 1 .. 3;
is_deeply([files_in($dir)], [map { "$_.txt" } qw(adjacent race raise)], 'nothing but the dumps is left');
done_testing;

sub plain { return run([wine($odd, @_)]) }
sub traced { return hsnap('run', '--', win($odd), @_) }

sub traced_to {
	my ($file, @args) = @_;
	return hsnap('run', '--at-exit', win($file), '--', win($odd), @args);
}

# Blocks and bytes by the function of the program that allocates.
sub rows_of {
	my ($what, $status) = @_;
	my $result = traced_to("$dir/$what.txt", $what);
	is($result->{status}, $status, "$what: the program's status");
	is($result->{err}, '', "$what: no complaint");
	my $diff = run(tool('hdiff', 'linux', "$dir/$what.txt"));
	check_ok($diff, "$what: hdiff");
	my $report = report($diff->{out});
	check_report($report, $what);
	my %rows;
	for my $row (@{ $report->{rows} }) {
		my ($first) = chain_of($row, 'odd') or next;
		$rows{ $first->{function} }[0] += $row->{count};
		$rows{ $first->{function} }[1] += $row->{bytes};
	}
	return \%rows;
}
