#!/usr/bin/perl
# Names that would do harm, in every place where a dump has one, through every form and message: no control byte and no
# mark that turns the reading order reaches a text, each form can be read, and the name is in it as the manuals say.
# What is packed so that it explodes, and patterns that take for ever.
use strict;
use warnings;
no warnings 'portable';    # addresses have 64 bits
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();
my $base = 0x140000000;

subtest 'a pattern that is slow for each of many names' => \&slow_patterns;
done_testing;

# A dump whose blocks have stacks of one frame each, in functions of these names.
sub dump_of {
	my ($file, @names) = @_;
	my @lines = ('// hsnap: dump format=1', '// Loaded modules:', sprintf('// %X 1000000 C:\\app.exe', $base), '// Process modules enumerated.');
	push @lines, map { sprintf '// hsnap: name addr=%X function="%s" offset=1', $base + 16 * $_, $names[$_] } 0 .. $#names;
	push @lines, '*- - - - - - - - - - Start of data for heap @ 650000 - - - - - - - - - -';
	push @lines, map { (sprintf('10 bytes + 8 at %X by BackTrace%X', 0x650000 + 32 * $_, $_ + 1), sprintf("\t%X", $base + 16 * $_), '') } 0 .. $#names;
	push @lines, '*- - - - - - - - - - End of data for heap @ 650000 - - - - - - - - - -',
		sprintf('// hsnap: end blocks=%d requested=%d overhead=%d', scalar @names, 16 * @names, 8 * @names);
	return spew("$dir/$file", join '', map { "$_\n" } @lines);
}

# Below the limit for each of them: what all together may take has one, too.
sub slow_patterns {
	my $dump = dump_of('slow.txt', map { sprintf 'a%06dx%s', $_, 'a' x 1000 } 1 .. 8000);
	for my $option ('-i', '-x') {
		my $result = run(tool('hdiff', 'linux', $option, 'a*a*a*[bc]$', $dump));
		check_error($result, 'hdiff', "$option a*a*a*[bc]\$", "$option a*a*a*[bc]\$: ", 'too long for so many names');
		is(run(tool('hdiff', 'linux', $option, 'a0+[1-9].*xa*[^b]$', $dump))->{status}, 0, "$option of a plain pattern");
	}
	return;
}
