#!/usr/bin/perl
# attach to a running program: later allocations have stacks. detach restores the program.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;

my $dir = fresh_dir();
my $target = start_stating('samples/leak_steady.exe');
my %step = map { ("$_->[0] $_->[1]" => { $_->[2][0] => [@$_[3, 4]] }) } truths('leak_steady');
is($target->step, 1, 'it runs');
check_ok(hsnap('attach', '-p', $target->{pid}), 'attach');
snapshot($target->{pid}, "$dir/1.txt");
is($target->next_step, 2, 'it goes on');
snapshot($target->{pid}, "$dir/2.txt");
check_sums(["$dir/1.txt", "$dir/2.txt"], 'leak_steady', $step{'1 2'}, 'growth');
check_ok(hsnap('detach', '-p', $target->{pid}), 'detach');
is($target->next_step, 3, 'it goes on');
my $result = hsnap('-p', $target->{pid}, '-f', win("$dir/3.txt"));
is($result->{status}, 0, 'a snapshot of a detached process');
like($result->{err}, qr/\Ahsnap: [^\n]*: warning: [^\n]*detached[^\n]*\n\z/, 'with a warning');
check_ok(hsnap('attach', '-p', $target->{pid}), 'attach again');
snapshot($target->{pid}, "$dir/4.txt");
is($target->next_step, 4, 'it goes on');
snapshot($target->{pid}, "$dir/5.txt");
check_sums(["$dir/4.txt", "$dir/5.txt"], 'leak_steady', $step{'1 2'}, 'growth');
is($target->quit, 0, 'it ends');
done_testing;
