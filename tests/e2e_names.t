#!/usr/bin/perl
# Names of functions, including inlined ones, and files and lines agree with the sources for every
# kind of debug information. Every frame has exactly one right answer.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;
use Symbols;

my $dir = fresh_dir();
# Quality that each tool can reach. Wine's DbgHelp reads no DWARF 5, and llvm-symbolizer is missing
# under Wine, so there the image's own symbols give names without lines.
my %level = (
	linux => { stripped => 'exports' },
	windows => { dwarf4 => 'dbghelp', pdb_gnu => 'dbghelp', pdb_msvc => 'dbghelp', stripped => 'exports', dwarf5 => 'functions', lld => 'functions' },
);

for my $kind (kinds()) {
	for my $name (qw(names_c.exe names_cpp.exe)) {
		my $modules = place($kind, $name);
		my $dump = dump_of("$dir/$kind-$name.txt", $modules);
		for my $side (tool_names()) {
			my $level = $level{ $as_windows ? 'windows' : $side }{$kind} // 'lines';
			my $what = "$side, $name, $kind, level $level";
			my ($names, $result) = names_by_hsym($side, $modules, $dump);
			check_ok($result, "hsym on $what");
			check_names($names, $modules, $level, "hsym on $what: names are the sources'");
			($names, $result) = names_by_hdiff($side, $modules, $dump);
			check_ok($result, "hdiff on $what");
			check_names($names, $modules, $level, "hdiff on $what: names are the sources'");
		}
	}
}
done_testing;
