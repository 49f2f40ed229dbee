#!/usr/bin/perl
# hsnap ust sets the flag and removes it. A program that has the flag is read like any other
# program.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;

use File::Copy qw(copy);

my $dir = fresh_dir();
my $image = "ust$$.exe";
my $exe = "$dir/$image";
copy(target_path('targets/every_block.exe'), $exe) or die "$exe: $!\n";
END {
	local $?;
	hsnap('ust', 'off', $image) if $image;
}
is(hsnap('ust', 'on', $image)->{status}, 0, 'on');
like(hsnap('ust', 'show', $image)->{out}, qr/\bon\b/i, 'show');
my $target = target($exe, [], traced => 1);
my $said = stated($target);
snapshot($target->{pid}, "$dir/1.txt") and check_blocks("$dir/1.txt", $said, 'with the flag');
is($target->quit, 0, 'it ends');
is(hsnap('ust', 'off', $image)->{status}, 0, 'off');
unlike(hsnap('ust', 'show', $image)->{out}, qr/: on\b/i, 'show');
done_testing;
