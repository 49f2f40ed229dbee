#!/usr/bin/perl
# The synthetic processes for tests of the walkers. Their segment heaps and page heaps have a
# consistent truth, are equal for equal seeds, grow without moving, and are damaged on request.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();
my $tool = "$root/build/linux/images/make_image";
my %kinds = (segment => ['--segment', '--heaps', 1], full => ['--page-heap', 'full'],
	light => ['--page-heap', 'light']);
my %profiles = (
	segment => [qw(win10-16299-x64 win10-x64 win10-x86 win11-x64 win10-17134-x64 win10-17763-x64 win10-14393-x64
	    win11-26100-x64)],
	full => [qw(win7-x86 win7-x64 win10-x64 win10-x86 win11-x64 win11-26100-x64 win11-26100-x86)],
	light => [qw(win7-x86 win7-x64 win81-x64 win10-x86)],
);

for my $kind (sort keys %kinds) {
	for my $profile (@{ $profiles{$kind} }) {
		for my $ust (0, 1) {
			my @options = (@{ $kinds{$kind} }, $ust ? '--ust' : (), '--blocks', 1200);
			check_image("$profile $kind" . ($ust ? ' with stacks' : ''), $profile, $ust, @options);
		}
	}
	check_damage($_, @{ $kinds{$kind} }, '--ust') for $profiles{$kind}[1], $profiles{$kind}[2];
}
done_testing;

sub make {
	my ($profile, $name, @options) = @_;
	my $result = run([$tool, $profile, @options, "$dir/$name"]);
	is($result->{status}, 0, "made: $profile @options") or diag($result->{err});
	return { bytes => slurp("$dir/$name"), truth => slurp("$dir/$name.truth") };
}

sub blocks_of {
	my ($truth) = @_;
	my %blocks;
	while ($truth =~ /^block (\w+) (\w+) (\d+) (\d+) (\S+)$/mg) {
		$blocks{$2} = { at => hex $2, requested => $3, overhead => $4, stack => $5, line => $& };
	}
	return \%blocks;
}

sub check_image {
	my ($what, $profile, $ust, @options) = @_;
	my ($one, $two) = map { make($profile, 'a.dmp', @options) } 1, 2;
	ok($one->{bytes} eq $two->{bytes} && $one->{truth} eq $two->{truth}, "$what: a seed is an image");
	my $blocks = blocks_of($one->{truth});
	my $count = keys %$blocks;
	cmp_ok(abs($count - 1200), '<', 600, "$what: about as many blocks as requested");
	is(overlaps(values %$blocks), 0, "$what: no block lies in another");
	my ($requested, $overhead) = (0, 0);
	$requested += $_->{requested}, $overhead += $_->{overhead} for values %$blocks;
	like($one->{truth}, qr/^total $count $requested $overhead$/m, "$what: the total is the blocks'");
	my $with = grep { $_->{stack} ne '-' } values %$blocks;
	$ust ? cmp_ok($with, '>', $count / 2, "$what: most blocks have a stack")
	    : is($with, 0, "$what: no block has a stack");
	check_growth($what, $blocks, blocks_of(make($profile, 'b.dmp', @options, '--growth', 3)->{truth}));
}

# Counts blocks that overlap the next block.
sub overlaps {
	my @blocks = sort { $a->{at} <=> $b->{at} } @_;
	return scalar grep { $blocks[$_]{at} + $blocks[$_]{requested} > $blocks[ $_ + 1 ]{at} } 0 .. $#blocks - 1;
}

sub check_growth {
	my ($what, $old, $new) = @_;
	my @kept = grep { $new->{$_} } keys %$old;
	cmp_ok(scalar @kept, '>', keys(%$old) * 0.8, "$what: most blocks live on");
	cmp_ok(scalar @kept, '<', scalar keys %$old, "$what: some were freed");
	is(scalar(grep { $old->{$_}{line} ne $new->{$_}{line} } @kept), 0, "$what: what lives on is as it was");
	cmp_ok(scalar(keys %$new) - @kept, '>', 20, "$what: and there are new ones");
	my %all = (%$old, %$new);
	is(overlaps(values %all), 0, "$what: new ones lie where no old one was");
}

sub check_damage {
	my ($profile, @options) = @_;
	my $prefix = $options[0] eq '--segment' ? 'segment-heap-' : $options[1] eq 'full' ? 'page-heap-(?!light)' : 'page-heap-light';
	my @names = run([$tool, '--list-breaks'])->{out} =~ /^($prefix\S+)/mg;
	cmp_ok(scalar @names, '>', 1, "$prefix: kinds of damage");
	my $whole = make($profile, 'a.dmp', @options, '--blocks', 300);
	for my $name (@names) {
		my $damaged = make($profile, 'b.dmp', @options, '--blocks', 300, '--break', $name);
		is($damaged->{truth}, $whole->{truth}, "$name: the truth is that of the whole one");
		ok($damaged->{bytes} ne $whole->{bytes}, "$name: it is damaged")
		    and is(length $damaged->{bytes}, length $whole->{bytes}, "$name: in place");
	}
}
