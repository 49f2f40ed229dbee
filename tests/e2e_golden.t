#!/usr/bin/perl
# What hdiff prints of the dumps in tests/golden, to the byte, in every form. The
# sums are worked out in unit tests; this is so that no change goes unseen.
# "tests/e2e_golden.t --record" writes the files anew: review them as a diff.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = "$root/tests/golden";
my @pair = qw(old.txt new.txt);
my %runs = (
	'text' => [@pair],
	'text-hex' => ['--hex', @pair],
	'text-one' => ['new.txt'],
	'text-no-symbols' => ['--no-symbols', @pair],
	'text-filtered' => ['-x', 'log', '--min-bytes', '10', '-n', 1, '--suppress', 'known.supp', @pair],
	'text-inverted' => ['--invert', '--strip', @pair],
	'text-by-id' => ['--match', 'id', @pair],
	'text-heap' => ['--heap', '7F0000', @pair],
	'group-function' => ['--group', 'function', @pair],
	'group-file' => ['--group', 'file', @pair],
	'group-module' => ['--group', 'module', '--hex', @pair],
	'group-heap' => ['--group', 'heap', @pair],
	'json' => ['-o', 'json', @pair],
	'json-group' => ['-o', 'json', '--group', 'module', @pair],
	'csv' => ['-o', 'csv', @pair],
	'folded' => ['-o', 'folded', @pair],
	'read-text' => ['compared.txt'],
	'read-json' => ['-o', 'json', 'compared.txt'],
	'read-group' => ['--group', 'function', 'compared.txt'],
	'legacy' => ['legacy.txt'],
);

for my $name (sort keys %runs) {
	my $result = run(["$root/build/linux/hdiff", @{ $runs{$name} }], dir => $dir);
	is($result->{status}, 0, "$name: status 0") or diag($result->{err});
	$result->{out} =~ s/\bhdiff \d+\.\d+\.\d+/hdiff VERSION/g;
	if ("@ARGV" eq '--record') {
		spew("$dir/$name.golden", $result->{out});
	} else {
		my $same = -e "$dir/$name.golden" && slurp("$dir/$name.golden") eq $result->{out};
		ok($same, "$name: as recorded") or diag(run(['diff', '-u', "$dir/$name.golden", '-'],
			stdin => do { open my $in, '<', spew(fresh_dir() . '/got', $result->{out}) or die; $in })->{out});
	}
}
my @golden = map { s/\.golden$//r } grep { /\.golden$/ } files_in($dir);
is_deeply([sort @golden], [sort keys %runs], 'every golden file is looked at');
done_testing;
