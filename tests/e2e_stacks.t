#!/usr/bin/perl
# Sources of stacks, with synthetic processes. Covers ust stacks with the count of frames at every
# place, the database's own statistics, and the messages for missing stacks.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;
use Images;

my $dir = fresh_dir();
my $image = "$dir/image.dmp";
my $hsnap = "$root/build/linux/hsnap";

for my $profile (qw(win7-x86 win7-x64 win10-x86 win10-x64 win11-x64 wow64 win11-26100-x64 win11-26100-x86)) {
	subtest $profile => sub {
		with_ust($profile, $_) for qw(depth index);
		without_ust($profile);
	};
}
names_are_harmless();
done_testing;

sub with_ust {
	my ($profile, $slot) = @_;
	my $what = "$profile, frames counted in $slot";
	make_image($image, $profile, '--ust', '--depth-slot', $slot, '--blocks', 1500) or return fail("$what: an image");
	my $truth = truth("$image.truth");
	for my $stacks (qw(auto ust)) {
		my $result = run([$hsnap, '-z', $image, "--stacks=$stacks", '-f', "$dir/$stacks.txt"]);
		is($result->{status}, 0, "$what: --stacks=$stacks");
		check_found(found("$dir/$stacks.txt"), $truth, "$what: --stacks=$stacks");
		my $failures = $truth->{database}[2];
		my @warned = $result->{err} =~ /had no room for the stacks of (\d+) allocations.*--db-mb/g;
		is("@warned", $failures || '', "$what: it is said whether stacks found no room");
	}
	my $dump = slurp("$dir/ust.txt");
	ok($dump eq slurp("$dir/auto.txt"), "$what: auto finds them");
	like($dump, qr{^// hsnap: stacks source=ust\r$}m, "$what: the dump names the source");
	my %note = map { split /=/ } split / /, ($dump =~ m{^// hsnap: ust (.*)\r$}m)[0] // '';
	is_deeply([@note{qw(entries lookups failures used reserved)}], $truth->{database}, "$what: what the database says");
	is($note{'broken-records'}, 0, "$what: all records make sense");
	my %ids = map { (split / /)[3] => 1 } values %{ $truth->{blocks} };
	is($note{records}, scalar(keys %ids), "$what: one record for each stack of a live block");
	cmp_ok($note{indexed}, '==', $note{entries}, "$what: its index leads to all entries") if $slot eq 'depth';
	refused($what, 'tracer', qr/not traced/);
}

sub without_ust {
	my ($profile) = @_;
	make_image($image, $profile, '--blocks', 1500) or return fail("$profile: an image");
	my $truth = truth("$image.truth");
	my $result = run([$hsnap, '-z', $image, '-f', "$dir/none.txt"]);
	is($result->{status}, 0, "$profile: a process without stacks gives totals only");
	like($result->{err}, qr/\Ahsnap: [^\n]*warning: no block has a stack[^\n]*\n\z/, "$profile: which one line says");
	check_found(found("$dir/none.txt"), $truth, $profile);
	my $dump = slurp("$dir/none.txt");
	like($dump, qr{^// hsnap: stacks source=none\r$}m, "$profile: the dump names no source");
	unlike($dump, qr{^// hsnap: ust }m, "$profile: nor a database");
	refused($profile, 'ust', qr/not started with \+ust/);
}

# Checks that one line names what is missing, and that no file remains.
sub refused {
	my ($what, $stacks, $words) = @_;
	my $result = run([$hsnap, '-z', $image, "--stacks=$stacks", '-f', "$dir/refused.txt"]);
	is($result->{status}, 2, "$what: --stacks=$stacks is refused");
	like($result->{err}, qr/\Ahsnap: [^\n]*$words[^\n]*\n\z/, "$what: and why");
	ok(!-e "$dir/refused.txt", "$what: without a file");
}

# Control characters in a file's name are not printed.
sub names_are_harmless {
	my $named = "$dir/" . file_name("a\xc2\x9b31m\x1b.dmp");
	make_image($image, 'win10-x64', '--blocks', 100) or return fail('an image');
	rename $image, $named or return fail('a name');
	my $result = run([$hsnap, '-z', $named, '-v', '-f', "$dir/named.txt"]);
	is($result->{status}, 0, 'a file of any name is read');
	like($result->{err}, qr/warning: no block has a stack/, 'a warning names it');
	unlike($result->{err}, qr/\xc2\x9b|\x1b/, 'without control characters');
}
