#!/usr/bin/perl
# -g: unreachable blocks of a program that loses and holds blocks in known ways.
use strict;
use warnings;
no warnings 'portable';    # addresses have 64 bits
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;

# one of the program's numbers may look like an address; such chance references are the same in each
# run
my $by_chance_at_most = 2;
# Below this address numbers look like pointers, so pointers into a block's middle do not count.
my $low = 1 << 20;

subtest 'alive' => \&alive;
subtest 'at its end' => \&at_exit;
done_testing;

sub alive {
	my $file = fresh_dir() . '/g.txt';
	my $target = start_stating('targets/lost.exe', [], traced => 1);
	my (@lines, $pid);
	while (!$pid && defined(my $line = $target->line)) {
		push @lines, $line;
		$pid = $1 if $line =~ /^ready (\d+)$/;
	}
	ok($pid, 'the program is ready') or return;
	my $result = hsnap('-g', '-p', $pid, '-f', win($file));
	is($result->{status}, 0, 'hsnap -g');
	check_states($file, $result->{err}, join("\n", @lines), 'alive');
	syswrite $target->{to}, "\n";
}

sub at_exit {
	my $file = fresh_dir() . '/exit.txt';
	my $result = run([wine($Hunt::hsnap, 'run', '-g', '--at-exit', win($file), '--', target_path('targets/lost.exe'))],
		stdin => spew("$file.in", "\n"));
	is($result->{status}, 0, 'hsnap run -g --at-exit');
	# One block is in a register, and one is on a stack that has ended.
	check_states($file, $result->{err}, $result->{out}, 'at exit', 1081, 1091);
}

# Checks that no held block is reported as lost, and that every lost block is reported, unless a
# chance reference holds it.
sub check_states {
	my ($file, $err, $text, $what, @without) = @_;
	my %said = $text =~ /^block (\d+) (\w+).*?\r?$/mg;
	delete @said{1500, @without}; # 1500 is freed
	-s $file or return fail("$what: a dump") || diag($err);
	my ($states, $addrs, $low_count) = states($file);
	my $warning = qr/[^\n]*warning: \d+ blocks? below 1 MiB[^\n]*\n/;
	like($err, $low_count ? qr/\A$warning\z/ : qr/\A(?:$warning)?\z/, "$what: no complaint, except about low blocks");
	# Only a pointer into the block's middle leads to it.
	$said{1031} = 'lost' if ($addrs->{1031} // 0) < $low;
	my @false = grep { $said{$_} !~ /^lost/ && ($states->{$_} // 'missing') !~ /^(?:held|interior)$/ } sort keys %said;
	is_deeply([map { "$_ " . ($states->{$_} // 'missing') } @false], [], "$what: nothing is called lost that is held");
	my @lost = grep { $said{$_} =~ /^lost/ } sort keys %said;
	# If chance holds this block, this block holds others too.
	my %with = $text =~ /^block (\d+) lost-with (\d+)/mg;
	my %is_missed = map { $_ => 1 } grep { ($states->{$_} // 'missing') !~ /^lost/ } @lost;
	my @missed = grep { !$is_missed{ $with{$_} // 0 } } sort keys %is_missed;
	cmp_ok(scalar @missed, '<=', $by_chance_at_most, "$what: of " . @lost . ' that are lost ' . (@lost - @missed) . ' are found')
	    or diag("not lost: @missed");
}

# Returns { SIZE => STATE } and { SIZE => ADDR } for blocks whose size is one of the program's, and
# the number of all blocks at low addresses.
sub states {
	my ($file) = @_;
	my ($state, $low_count, %states, %addrs) = ('held', 0);
	my $blocks = blocks_in($file);
	$low_count = grep { $_ < $low } keys %$blocks;
	for (split /\r?\n/, slurp($file)) {
		$state = 'held' if /^\*-.* Start of data/;
		$state = $1 if m{^// hsnap: blocks reach=([\w-]+)};
		next unless /^([0-9A-F]+) bytes \+ [0-9A-F]+ at ([0-9A-F]+) / && hex $1 > 1000 && hex $1 < 1500;
		$states{ hex $1 } = $state;
		$addrs{ hex $1 } = hex $2;
	}
	return (\%states, \%addrs, $low_count);
}
