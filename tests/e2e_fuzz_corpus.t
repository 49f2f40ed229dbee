#!/usr/bin/perl
# Runs each input of the fuzz targets once, with gcc's sanitizers: inputs that failed in the past,
# and a fuzzer's seeds. make check-fuzz searches for more.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

$ENV{UBSAN_OPTIONS} = 'print_stacktrace=1';

my @targets = map { m{fuzz_(\w+)\.c$} } glob 'tests/fuzz/fuzz_*.c';
cmp_ok(scalar @targets, '>', 10, 'there are targets');
is_deeply([files_in('tests/fuzz/corpus')], [sort @targets], 'every target has inputs, and every input a target');
my $bytes = 0;
$bytes += -s for glob 'tests/fuzz/corpus/*/*';
cmp_ok($bytes, '<', 400 << 10, 'they are small');

for my $target (@targets) {
	my @inputs = glob "tests/fuzz/corpus/$target/*";
	my $result = run(["build/asan/fuzz/fuzz_$target", @inputs]);
	my @read = $result->{out} =~ /^ok\t(.*)$/mg;
	ok($result->{status} == 0 && @read == @inputs, "$target comes through each of " . @inputs . ' inputs')
	    or diag("status $result->{status} at ", $inputs[@read] // 'the end', ":\n", substr($result->{err}, 0, 4000));
}
done_testing;
