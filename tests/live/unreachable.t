#!/usr/bin/perl
# -g: which blocks nothing leads to, of a program that loses and holds blocks in known ways.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;

my $by_chance_at_most = 2; # a number of the program may look like an address: chance is steady

subtest 'alive' => \&alive;
subtest 'at its end' => \&at_exit;
done_testing;

sub alive {
	my $dir = fresh_dir();
	my $target = start_stating('targets/lost.exe', [], traced => 1);
	my (@lines, $pid);
	while (!$pid && defined(my $line = $target->line)) {
		push @lines, $line;
		$pid = $1 if $line =~ /^ready (\d+)$/;
	}
	ok($pid, 'the program is ready') or return;
	check_ok(hsnap('-g', '-p', $pid, '-f', win("$dir/g.txt")), 'hsnap -g');
	check_states("$dir/g.txt", join("\n", @lines), 'alive');
	syswrite $target->{to}, "\n";
}

sub at_exit {
	my $dir = fresh_dir();
	my $result = run([wine($Hunt::hsnap, 'run', '-g', '--at-exit', win("$dir/exit.txt"), '--', target_path('targets/lost.exe'))],
		stdin => spew("$dir/line", "\n"));
	is($result->{status}, 0, 'hsnap run -g --at-exit') or diag($result->{err});
	check_states("$dir/exit.txt", $result->{out}, 'at exit', 1081, 1091); # in a register; on a stack that has ended
}

# Nothing is called lost that is held; what is lost is called so, except by chance. Blocks that only a pointer into their middle leads
# to are held where such pointers count, as the dump says.
sub check_states {
	my ($file, $text, $what, @without) = @_;
	my %said = $text =~ /^block (\d+) (\w+).*?\r?$/mg;
	delete @said{1500, @without}; # 1500 is freed
	my ($is_interior) = (-s $file ? slurp($file) : '') =~ m{^// hsnap: reach .*?\binterior=(\d)}m or return fail("$what: a dump that knows");
	$said{1031} = 'lost' if !$is_interior;
	my $states = states($file);
	my @false = grep { $said{$_} !~ /^lost/ && ($states->{$_} // 'missing') !~ /^(?:held|interior)$/ } sort keys %said;
	is_deeply([map { "$_ " . ($states->{$_} // 'missing') } @false], [], "$what: nothing is called lost that is held");
	my @lost = grep { $said{$_} =~ /^lost/ } sort keys %said;
	my @missed = grep { ($states->{$_} // 'missing') !~ /^lost/ } @lost;
	cmp_ok(scalar @missed, '<=', $by_chance_at_most, "$what: of " . @lost . ' that are lost ' . (@lost - @missed) . ' are found')
	    or diag("not lost: @missed");
}

# { SIZE => STATE } of blocks with a size of the program's.
sub states {
	my ($file) = @_;
	my ($state, %states) = ('held');
	for (split /\r?\n/, slurp($file)) {
		$state = 'held' if /^\*-.* Start of data/;
		$state = $1 if m{^// hsnap: blocks reach=([\w-]+)};
		$states{ hex $1 } = $state if /^([0-9A-F]+) bytes \+ [0-9A-F]+ at / && hex $1 > 1000 && hex $1 < 1500;
	}
	return \%states;
}
