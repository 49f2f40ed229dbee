#!/usr/bin/perl
# Where the system has no heap stacks of its own, as Wine has none, asking for
# them is refused in one line, no file is left, and the process goes on: under
# Wine an export that is only a stub would end hsnap or the process.
use strict;
use warnings;
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();
my $target = target("$root/build/win64/samples/leak_steady.exe");
is($target->step, 1, 'a program waits');
my $pid = $target->{pid};

check_error(hsnap('os', $_, '-p', $pid), 'hsnap', "os $_", "pid $pid", 'Windows 10 1607') for qw(on off);
check_error(hsnap('-p', $pid, '--stacks=os', '-f', win("$dir/out.txt")), 'hsnap', '--stacks=os', "pid $pid",
	'Windows 10 1607');
is_deeply([files_in($dir)], [], 'no file is left');
check_error(hsnap('os'), 'hsnap', 'nothing asked', 'on or off');
check_error(hsnap('os', 'maybe', '-p', $pid), 'hsnap', 'no such word', 'maybe');
check_error(hsnap('os', 'on', 'off', '-p', $pid), 'hsnap', 'two words', 'off');
check_error(hsnap('os', 'on'), 'hsnap', 'of no process', '-p PID');
check_error(hsnap('os', 'on', @$_), 'hsnap', "of two: @$_", 'give one of -p and -pn') for ['-p', $pid, '-pn', 'x.exe'], ['-pn', 'a', '-pn', 'b'];
check_error(hsnap('os', 'on', '-p', '12x'), 'hsnap', 'a pid that is no number', '12x');
check_error(hsnap('os', 'on', '-pn', 'nobody-has-this.exe'), 'hsnap', 'a name nobody has', 'nobody-has-this.exe');
my $name = "several$$"; # a name that nobody else has
copy("$root/build/win64/samples/leak_steady.exe", "$dir/$name.exe") or die "$name.exe: $!\n";
my @several = map { target("$dir/$name.exe") } 1, 2;
is($_->step, 1, 'a program of a name waits') for @several;
my $result = hsnap('os', 'on', '-pn', $name);
check_error($result, 'hsnap', 'several of the name', 'choose one of them with -p PID',
	map { qr/\bpid $_->{pid} started \d{4}-\d\d-\d\dT[\d:.]+Z with \d+ private bytes\b/ } @several);
unlike($result->{err}, qr/--all/, 'os has no --all');
is($_->quit, 0, 'it ends') for @several;
is($target->next_step, 2, 'the program goes on');
is($target->quit, 0, 'and ends');
done_testing;
