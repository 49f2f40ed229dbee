#!/usr/bin/perl
# Which test leaks: the samples mark each of their tests, and hdiff --by-mark finds the tests that
# leak, with the blocks and the function that the samples state. docs/ci.md shows the same code.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP qw(decode_json);
use Test::More;
use Hunt;

my $dir = fresh_dir();
my $hdiff = "$root/build/linux/hdiff";
for my $source ('plain_marks.c', 'gtest_marks.cpp') {
	subtest $source => sub { hunt($source) };
}
my $docs = slurp("$root/docs/ci.md");
my ($listener) = slurp("$root/samples/marks/gtest_marks.cpp") =~ /^(class HsnapMarks .*?^\};\n)/ms;
ok(index($docs, $listener) >= 0, 'docs/ci.md shows the listener');
done_testing;

sub hunt {
	my ($source) = @_;
	my $exe = "$root/build/win64/samples/marks/" . $source =~ s/\.\w+$/.exe/r;
	plan(skip_all => 'GoogleTest is not here: libgtest-dev') if $source =~ /gtest/ && !-e $exe;
	my $text = slurp("$root/samples/marks/$source");
	my %truth;
	$truth{$1} = [$2 * $3, $2, $4] while $text =~ /^ \* truth: (\S+) keeps (\d+) blocks of (\d+) bytes in (\w+)$/mg;
	is(scalar keys %truth, 2, 'the sample states what leaks');
	my $file = "$dir/$source.hrec";
	my $result = run([wine($Hunt::hsnap, 'record', '-o', win($file), '--', $exe)]);
	is("$result->{status} $result->{err}", '0 ', 'its tests pass') or diag($result->{out});
	my @gate = ('--by-mark', '--suppress=runtime', '--max-growth', 0, '--junit', "$dir/junit.xml");
	$result = run([$hdiff, @gate, '-o', 'json', '--strip', $file]);
	is($result->{status}, 1, 'the gate fails') or diag($result->{err});
	my %kept = map { $_->{label} => [@{ $_->{kept} }{qw(bytes blocks)}, $_->{stack}{frames}[0]{function} =~ s/\(.*//r] }
	    grep { defined $_->{label} && $_->{label} ne '(end)' && $_->{kept}{blocks} } @{ decode_json($result->{out})->{parts} };
	is_deeply(\%kept, \%truth, 'for the tests that leak, and no others') or diag(explain(\%kept));
	my $xml = slurp("$dir/junit.xml");
	is(scalar(() = $xml =~ /<testcase /g), 4, 'JUnit has four tests');
	is_deeply([sort $xml =~ /<testcase [^>]*name="([^"]*)"[^>]*>\s*<failure /g], [sort keys %truth], 'of which these fail');
	return;
}
