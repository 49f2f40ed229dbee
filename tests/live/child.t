#!/usr/bin/perl
# Child processes of either bitness are traced, and each has its own snapshot at exit.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;

my $exe = 'targets/parent.exe';

subtest 'of one bitness' => sub { family(target_path($exe), target_path($exe), target_path($exe)) };
subtest 'a child of the other bitness' => sub { needs_other_bits(); family(target_path($exe), other_path($exe)) };
subtest 'and its child' => sub { needs_other_bits(); family(target_path($exe), other_path($exe), target_path($exe)) };
done_testing;

# Starts a chain of programs, each of which starts the next. Each leaks a different number of
# blocks, which is also its exit status.
sub family {
	my @programs = @_;
	my $dir = fresh_dir();
	my @words = map { (win($programs[$_]), 50 + $_) } 0 .. $#programs;
	my $result = hsnap('run', '--children', '--at-exit', win("$dir/{pid}.txt"), '--', @words);
	is($result->{status}, 50, "the status is the first program's");
	is($result->{err}, '', 'no complaint');
	my %pid = $result->{out} =~ /^parent (\d+) pid (\d+)\r?$/mg;
	is_deeply([sort keys %pid], [map { 50 + $_ } 0 .. $#programs], 'all have run');
	is_deeply([files_in($dir)], [sort map { "$_.txt" } values %pid], 'each has a snapshot');
	for my $count (sort keys %pid) {
		my $file = "$dir/$pid{$count}.txt";
		check_sums([$file], 'parent', { parent_leak => [77 * $count, $count] }, "parent $count") if -e $file;
	}
}
