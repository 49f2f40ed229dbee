#!/usr/bin/perl
# The system's own MiniDumpWriteDump, called by a program of either bitness, writes minidumps. hsnap
# -z on both systems finds the stated blocks and their stacks.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;

subtest 'a writer of the same bitness' => sub { read_back(target_path('targets/dumper.exe')) };
subtest 'a writer of the other bitness' => sub {
	plan(skip_all => 'a 32-bit MiniDumpWriteDump does not write 64-bit processes') if $target_bits == 64;
	read_back(other_path('targets/dumper.exe'));
};
done_testing;

sub read_back {
	my ($writer) = @_;
	my $dir = fresh_dir();
	my $target = start_stating('targets/every_block.exe', [], traced => 1);
	my $said = stated($target);
	my $file = "$dir/process.dmp";
	is(run([wine($writer, $target->{pid}, win($file))])->{status}, 0, 'a minidump') or return;
	is($target->quit, 0, 'the program ends');
	for my $side (tool_names()) {
		my $out = "$dir/$side.txt";
		my $result = $side eq 'linux' ? run(tool('hsnap', 'linux', '-z', $file, '-f', $out))
		    : hsnap('-z', win($file), '-f', win($out));
		check_ok($result, "hsnap -z, $side") or next;
		check_blocks($out, $said, $side);
		check_sums([$out], 'every_block', $said->{sums}, $side);
	}
}
