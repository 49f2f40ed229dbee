#!/usr/bin/perl
# The cell is the one that tests/platforms names. Checks Wine's version, the target's bits, and the
# bits of the Linux process that runs the target. Only in the new WoW64 does a 64-bit process run a
# 32-bit program.
use strict;
use warnings;
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;

needs_linux("Linux's /proc");
my $image = slurp(target_path('samples/leak_steady.exe'));
my $machine = unpack 'v', substr $image, unpack('V', substr $image, 60, 4) + 4, 2;
is($machine, $target_bits == 64 ? 0x8664 : 0x14c, "the target has $target_bits bits");
my $exe = fresh_dir() . "/cell$$.exe"; # a name that no other process has
copy(target_path('samples/leak_steady.exe'), $exe) or die "$exe: $!\n";
my $target = target($exe);
is($target->step, 1, 'it runs');
my ($pid) = unix_pids($exe);
ok($pid, 'a process runs it');
if (my $expected = $ENV{HSNAP_CELL_WINE}) {
	my ($wine) = run(["$root/setup/wine", '--version'])->{out} =~ /^wine-(\d+)/;
	my $loader_bits = 32 * ord substr slurp("/proc/$pid/exe"), 4, 1; # EI_CLASS of ELF: 1 or 2
	is($wine, $expected =~ /^(\d+)/ ? $1 : 0, "Wine $expected");
	is($loader_bits, $expected =~ /wow64/ ? 64 : $target_bits, "in a $loader_bits-bit process");
}
is($target->quit, 0, 'it ends');
done_testing;
