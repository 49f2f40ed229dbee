#!/usr/bin/perl
# Repeats all multi-threaded work of hdiff and hsnap under gcc's thread sanitizer. There must be no
# race, and the output must be the same as without the sanitizer.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

needs_linux('the thread sanitizer');
plan(skip_all => 'random addresses may not be switched off here') if system('setarch -R true 2>/dev/null');

my $dir = fresh_dir();
# Each form of a dump has 4 MiB or more, because a single thread reads smaller dumps.
for my $layout (qw(full first last sums)) {
	my @dumps = map { made_dump($layout, $_, 36_000, 12_000) } 1, 2;
	same('hdiff', "$layout: one", $dumps[0]);
	same('hdiff', "$layout: two", @dumps);
}
my @series = map { made_dump('sums', $_, 6000, 5000, 1) } 1 .. 6;
same('hdiff', 'a trend', @series);
same('hdiff', "a trend, --match $_", '--match', $_, @series) for qw(function id);

my $recording = "$dir/run.hrec";
is(run(["$root/build/linux/bench/gen_recording", 'maps', 30_000, $recording])->{status}, 0, 'a recording is made');
same('hdiff', "a recording, @$_", @$_, $recording) for [], ['--transient'], ['--over-time'], ['--histogram'];

my $log = "$dir/heap.etl";
is(run(["$root/build/linux/bench/gen_etl", $log, 2, 100])->{status}, 0, 'an ETW log is made');
same('hdiff', 'an ETW log', $log);

# A second thread walks one half of an LFH with many blocks. If the LFH is damaged, it is walked
# again.
for my $damage ([], ['--break', 'lfh-key-wrong']) {
	my $image = "$dir/image.dmp";
	my @how = ('win10-x64', '--ust', '--blocks', 30_000, @$damage);
	is(run(["$root/build/linux/images/make_image", @how, $image])->{status}, 0, "a process is made, @how");
	same('hsnap', "a minidump, @how", '-z', $image, '--force', '-f', '-');
}
done_testing;

sub made_dump {
	my ($layout, $seed, $blocks, $stacks, @number) = @_;
	my $file = "$dir/$layout-$seed-$blocks.txt";
	my @seeds = @number ? (1, $seed) : $seed;
	spew($file, run(["$root/build/linux/bench/gen_dump", $blocks, $stacks, 32, $layout, @seeds])->{out});
	return $file;
}

sub same {
	my ($program, $what, @arguments) = @_;
	my @say = $program eq 'hdiff' ? ('--no-symbols', '-n', 1_000_000) : ();
	my ($plain, $watched) = map { run([@$_, @say, @arguments]) } ["$root/build/linux/$program"], ['setarch', '-R', "$root/build/tsan/$program"];
	unlike($watched->{err}, qr/ThreadSanitizer/, "$program, $what: no race");
	is($watched->{out}, $plain->{out}, "$program, $what: the same words");
	is_deeply([$plain->{status}, $watched->{status}], [0, 0], "$program, $what: both without an error");
}
