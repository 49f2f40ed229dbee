#!/usr/bin/perl
# A leak gate at exit. --suppress=runtime ignores blocks that the C and C++ libraries and the loader
# keep, but no block of the program. Blocks in C++ containers belong to the function that uses the
# container.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();
my $c = spew("$dir/gate.c", <<'C');
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	char *block = malloc(100);
	FILE *file = fopen(argv[0], "rb");

	printf("%d\n", getc(file));
	puts(what);
	putchar('\n');
	fclose(file);
	free(block);
	if (!strcmp(what, "malloc"))
		block = malloc(1);
	if (!strcmp(what, "strdup"))
		block = strdup("kept");
	if (!strcmp(what, "open") && (file = fopen("open.tmp", "w")))
		fputs("a file that is left open has its buffer", file);
	return !block;
}
C
my $cpp = spew("$dir/gate.cpp", <<'CPP');
#include <algorithm>
#include <functional>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

struct Doc {
	std::vector<std::string> lines;
	std::map<std::string, int> index;
	std::unordered_map<std::string, std::wstring> more;
	std::list<int> list;
	std::set<long> set;
	std::unique_ptr<int> one;
	std::vector<std::vector<int>> table;
};

__attribute__((noinline)) void parse(Doc *doc)
{
	for (int i = 0; i < 10; i++) {
		doc->lines.push_back("a line that is too long to be kept inside " + std::to_string(i));
		doc->index[doc->lines.back()] = i;
		doc->more[doc->lines.back()] = L"a text that is too long to be kept inside";
		doc->list.push_back(i);
		doc->set.insert(i);
	}
	doc->one = std::make_unique<int>(1);
	doc->table.resize(3, std::vector<int>(4));
	doc->index.begin()->second = 7; /* no call is the last thing here */
}

static std::vector<char *> kept;

__attribute__((noinline)) bool before(int a, int b)
{
	kept.push_back(new char[77]);
	return a < b;
}

int main(int argc, char **argv)
{
	std::string what = argc > 1 ? argv[1] : "";
	Doc doc;

	parse(&doc);
	try {
		throw what;
	} catch (const std::string &) {
		std::cout << doc.lines.size() << std::endl;
	}
	if (what == "parse")
		parse(new Doc);
	if (what == "sort") {
		std::vector<int> numbers = {3, 1, 2};
		std::sort(numbers.begin(), numbers.end(), before);
	}
	return 0;
}
CPP

my %built = (
	'C' => [build('gcc', $c, '-O1'), { malloc => [1, 'main'], strdup => [5, 'main'], open => [undef, 'fwrite'] }],
	'C++' => [build('g++', $cpp, '-O0'), { parse => [undef, 'parse(Doc*)'], sort => [undef, 'before(int, int)'] }],
	'C++ -O2' => [build('g++', $cpp, '-O2'), { parse => [undef, 'parse(Doc*)'] }],
);
for my $name (sort keys %built) {
	my ($exe, $leaks) = @{ $built{$name} };
	my $dump = dump_of($exe, '');
	for my $side (tool_names()) {
		my $plain = run(tool('hdiff', $side, '--max-growth', 0, $dump));
		is($plain->{status}, 1, "$name, $side: what the libraries keep is no nothing");
		my $gate = run(tool('hdiff', $side, '--suppress=runtime', '--max-growth', 0, $dump));
		is($gate->{status}, 0, "$name, $side: what frees everything passes") or diag($gate->{out}, $gate->{err});
	}
	for my $leak (sort keys %$leaks) {
		my ($bytes, $function) = @{ $leaks->{$leak} };
		my $leaky = dump_of($exe, $leak);
		my $gate = run(tool('hdiff', 'linux', '--strip', '--suppress=runtime', '--max-growth', 0, $leaky));
		is($gate->{status}, 1, "$name, $leak: a leak does not pass");
		like($gate->{out}, qr/^\t\S+!\Q$function\E\+/m, "$name, $leak: it is shown");
		like($gate->{err}, qr/growth of (?:.* \()?$bytes bytes?\b/, "$name, $leak: all of it, and nothing else") if $bytes;
		own_of($leaky, "$name, $leak", $function) if $function =~ /\(/;
	}
}
done_testing;

sub build {
	my ($compiler, $source, $optimize) = @_;
	my $exe = "$source$optimize.exe";
	my $made = run(["x86_64-w64-mingw32-$compiler", '-g', '-gdwarf-4', $optimize, '-static', $source, '-o', $exe]);
	is("$made->{status}$made->{err}", '0', "$compiler $optimize");
	return $exe;
}

sub dump_of {
	my ($exe, $leak) = @_;
	my $dump = "$exe-$leak.txt";
	my $ran = run([wine(win("$root/build/win64/hsnap.exe"), 'run', '--at-exit', win($dump), '--', win($exe), $leak || ())], dir => $dir);
	is("$ran->{status} $ran->{err}", '0 ', "$exe $leak") or diag($ran->{out});
	return $dump;
}

# Blocks allocated through the library belong to the program's own function.
sub own_of {
	my ($dump, $what, $function) = @_;
	my $groups = run(tool('hdiff', 'linux', '--group', 'function', '--suppress=runtime', $dump))->{out};
	my ($self, $total) = $groups =~ /^ *\+(\d+) +\+\d+ +\+(\d+) +\+\d+  \S+!\Q$function\E$/m;
	cmp_ok($self // 0, '>', 0, "$what: it has bytes of its own");
	is($self, $total, "$what: all that was allocated there");
	is_deeply([$groups =~ /^ *\+[1-9]\d* +\+\d+ +\+\d+ +\+\d+  \S+!(?:\S+ )*(std::.*)$/mg], [], "$what: none is the library's");
}
