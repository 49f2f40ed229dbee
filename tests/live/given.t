#!/usr/bin/perl
# Targets that other authors wrote and that state their truth: data_file('matrix'), built with
# mingw.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;

my $data = data_file('matrix') or plan skip_all => 'the targets of others are not here';
plan skip_all => 'mingw is not here' if system 'command -v x86_64-w64-mingw32-gcc i686-w64-mingw32-gcc >/dev/null';
my $bin = fresh_dir();
build($target_bits, $_, program($_)) for qw(known dlls overrun spawn leaver);
build($target_bits, 'plug', "$bin/plug$target_bits.dll", '-shared');
build(96 - $target_bits, 'leaver', program('leaver', 96 - $target_bits));

subtest 'every block' => \&known;
subtest 'DLLs that come and go' => \&dlls;
subtest 'a damaged heap' => \&overrun;
subtest 'a child' => sub { spawned($target_bits) };
subtest 'a child of the other bitness' => sub { needs_other_bits(); spawned(96 - $target_bits) };
done_testing;

sub program { return "$bin/$_[0]" . ($_[1] // $target_bits) . '.exe' }

sub build {
	my ($bits, $name, $to, @more) = @_;
	my $gcc = ($bits == 64 ? 'x86_64' : 'i686') . '-w64-mingw32-gcc';
	my $built = run([$gcc, qw(-std=gnu11 -O1 -gdwarf-4 -gno-statement-frontiers -fno-omit-frame-pointer -fno-optimize-sibling-calls), @more,
		"$data/$name.c", '-o', $to], limit => 280);
	is($built->{status}, 0, "$name.c, $bits bits") or diag($built->{err});
}

sub known {
	my $dir = fresh_dir();
	my $target = target(program('known'), [], traced => 1);
	for my $step (1 .. 4) {
		my $said = $step == 1 ? stated($target) : next_stated($target);
		for my $how ([], ['--walk']) {
			my $file = "$dir/$step@$how.txt";
			check_ok(hsnap(@$how, '-p', $target->{pid}, '-f', win($file)), "step $step: a snapshot @$how");
			check_blocks($file, $said, "step $step @$how") if -s $file;
		}
	}
	is($target->quit, 0, 'the program ends');
}

sub dlls {
	my $dir = fresh_dir();
	my $target = target(program('dlls'), [win("$bin/plug$target_bits.dll")], traced => 1);
	my @said = (stated($target));
	snapshot($target->{pid}, "$dir/1.txt");
	push @said, next_stated($target);
	snapshot($target->{pid}, "$dir/2.txt");
	check_sums(["$dir/$_.txt"], "plug$target_bits", $said[$_ - 1]{sums}, "step $_") for 1, 2;
	check_sums(["$dir/1.txt", "$dir/2.txt"], "plug$target_bits", growth_of(@said), 'growth');
	is($target->quit, 0, 'the program ends');
}

sub overrun {
	my $dir = fresh_dir();
	my $target = target(program('overrun'), [], traced => 1);
	for my $step (1, 2) {
		my $said = $step == 1 ? stated($target) : next_stated($target);
		is(hsnap('-p', $target->{pid}, '-f', win("$dir/$step.txt"))->{status}, 0, "step $step: a snapshot");
		check_sums(["$dir/$step.txt"], "overrun$target_bits", $said->{sums}, "step $step", 1);
	}
	is($target->quit, 0, 'the program ends');
}

sub spawned {
	my ($bits) = @_;
	my $dir = fresh_dir();
	my $result = hsnap('run', '--children', '--at-exit', win("$dir/{name}-{pid}.txt"), '--', win(program('spawn')), win(program('leaver', $bits)));
	is($result->{status}, 7, "the child's status is its parent's");
	is($result->{err}, '', 'no complaint');
	my %file = map { /^(.*)-\d+\.txt$/ ? ($1 => "$dir/$_") : () } files_in($dir);
	is_deeply([sort keys %file], ["leaver$bits", "spawn$target_bits"], 'both have a snapshot') or return;
	check_sums([$file{"leaver$bits"}], "leaver$bits", { leaver_leak => [50 * 99, 50] }, 'the child');
	check_sums([$file{"spawn$target_bits"}], "spawn$target_bits", { parent_leak => [100 * 77, 100] }, 'the parent');
}
