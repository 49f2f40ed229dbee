#!/usr/bin/perl
# setup/wine runs programs without random addresses, and what they start, too: with them a start
# under Wine 8 fails once in some thousands.
use strict;
use warnings;
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

plan skip_all => 'random addresses may not be switched off here' if system('setarch -R true 2>/dev/null');

my $no_random = 0x0040000; # ADDR_NO_RANDOMIZE: personality(2)
my $exe = fresh_dir() . "/fixed$$.exe"; # a name that nobody else has: the process is found by it
copy("$root/build/win64/samples/leak_steady.exe", $exe) or die "$exe: $!\n";
for my $by (0, 1) {
	my $target = target($exe, [], traced => $by);
	my $what = $by ? 'a program that another one starts' : 'a program';
	is($target->step, 1, "$what runs");
	my @personality = map { hex(slurp("/proc/$_/personality") =~ s/\s//gr) } unix_pids($exe);
	is(scalar(grep { $_ & $no_random } @personality), 1, "$what: without random addresses");
	is($target->quit, 0, 'it ends');
}
done_testing;
