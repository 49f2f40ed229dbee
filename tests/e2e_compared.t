#!/usr/bin/perl
# What a build job asks of hdiff: the dump of this build against that of the last, and all that several
# processes leaked.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();

rebuilt();
done_testing;

# A program in a new build, whose lines have moved: each stack is the one that it was.
sub rebuilt {
	my $source = <<'C';
#include <stdlib.h>
static void *volatile kept;
__attribute__((noinline)) static void leak(unsigned bytes) { kept = malloc(bytes); }
__attribute__((noinline)) static void twice(void)
{
	leak(1000);
	leak(200);
	leak(30);
}
int main(void)
{
	kept = malloc(5000);
	leak(60);
	twice();
	return 0;
}
C
	my %builds = (    # names of one length: the path is in memory, too
		base => $source,
		more => "/* one line more */\n$source",
		grew => $source =~ s/\ttwice\(\);\n/$&\tleak(7777);\n/r,
	);
	my $run = sub {
		my ($name) = @_;
		mkdir "$dir/$name" or die "$dir/$name: $!\n";
		spew("$dir/$name/app.c", $builds{$name});
		my $built = run(['x86_64-w64-mingw32-gcc', '-g', '-O1', '-o', "$dir/$name/app.exe", "$dir/$name/app.c"]);
		is("$built->{status} $built->{err}", '0 ', "$name: built");
		check_ok(hsnap('run', '--at-exit', win("$dir/$name.txt"), '--', win("$dir/$name/app.exe")), "$name: run");
	};
	$run->($_) for sort keys %builds;

	for my $format ([], ['--match', 'function']) {
		my $diff = run(tool('hdiff', 'linux', '--max-growth', '0,0', @$format, "$dir/base.txt", "$dir/more.txt"));
		is($diff->{status}, 0, "@$format: a line more: no growth") or diag($diff->{err});
		my $report = report($diff->{out});
		is_deeply($report->{rows}, [], 'no row') or diag($diff->{out});
		is_deeply($report->{total}, [0, 0, 0], 'and no sum');
	}
	my $diff = run(tool('hdiff', 'linux', '--max-growth', 7776, "$dir/base.txt", "$dir/grew.txt"));
	is($diff->{status}, 1, 'a leak more') or diag($diff->{err});
	my @rows = @{ report($diff->{out})->{rows} };
	is_deeply([map { [$_->{bytes}, map { $_->{function} } chain_of($_, 'app')] } @rows], [[7777, qw(leak main)]], 'is one row');
}
