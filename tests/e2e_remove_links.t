#!/usr/bin/perl
# Under Wine, a link of the host system looks like its target. hsnap must remove neither the links
# nor the targets.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

needs_linux('links of Linux, and Wine');
my $dir = fresh_dir();
mkdir "$dir/$_" or die "$_: $!\n" for 'a folder', 'other';
symlink 'a folder', "$dir/way" or die;
spew("$dir/$_", $_) for 'file', 'kept', 'UPPER', 'a folder/inner', 'a folder/same', "\xc3\xbc";
symlink 'kept', "$dir/link" or die;
symlink 'a folder/same', "$dir/same" or die;
symlink 'none', "$dir/dangling" or die;

my @tries = (
	['file', 'removed', 'a file'],
	['upper', 'removed', 'a file in another case of letters'],
	["\xc3\xbc", 'removed', 'a file of another letter'],
	['way/inner', 'removed', 'a file behind a link to its folder'],
	['file', 'removed', 'one that is gone is no trouble'],
	['link', 'left', 'a link'],
	['same', 'left', 'a link to a file of the same name'],
	['other', 'left', 'a folder'],
	['way', 'left', 'a link to a folder'],
);
my $got = run([wine("$root/build/win64/tests/ask_remove.exe", map { win("$dir/$_->[0]") } @tries)]);
my @said = split /\r?\n/, $got->{out};
is($said[$_], $tries[$_][1], "$tries[$_][2]: $tries[$_][1]") for 0 .. $#tries;
is_deeply([sort(files_in($dir))], [sort('a folder', qw(dangling kept link other same way))], 'what was left is there');
is_deeply([files_in("$dir/a folder")], ['same'], 'in the other folder too');
done_testing;
