#!/usr/bin/perl
# For all calls of a program, the hooks return the same results as ntdll, and their records are
# correct. However a process ends, hsnap takes its snapshot first.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();
my %program = map { $_ => "$root/build/win64/targets/$_.exe" } qw(hook_cases odd);

my $plain = run([wine($program{hook_cases})]);
is($plain->{status}, 0, 'odd calls, not traced: the program is content');
cmp_ok(scalar(split /\n/, $plain->{out}), '>', 40, 'and has asked many things');
unlike($plain->{out}, qr/^table:/m, 'of no table');
my $traced = hsnap('run', '--', win($program{hook_cases}));
is_deeply([split /\n/, $traced->{out}], [split /\n/, $plain->{out}],
	'traced, every answer and every last error is the same, and the table is right after each call');
is($traced->{status}, 0, 'and so is its status');
is($traced->{err}, '', 'no complaint');

for my $how (qw(pseudo handle detach other)) {
	my $file = "$dir/$how.txt";
	my $result = hsnap('run', '--at-exit', win($file), '--', win($program{odd}), $how);
	is($result->{status}, 21, "$how: the status that it ended with");
	is($result->{err}, '', "$how: no complaint");
	is_deeply(kept($file, 'odd', 'keep_block'), [3, 3000], "$how: the snapshot is of its end");
}
done_testing;

sub kept {
	my ($file, $module, $function) = @_;
	my $diff = run(tool('hdiff', 'linux', $file));
	check_ok($diff, 'hdiff') or return;
	my @found = (0, 0);
	for my $row (@{ report($diff->{out})->{rows} }) {
		my ($first) = chain_of($row, $module);
		next if !$first || $first->{function} ne $function;
		$found[0] += $row->{count};
		$found[1] += $row->{bytes};
	}
	return \@found;
}
