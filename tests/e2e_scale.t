#!/usr/bin/perl
# A million live blocks. hsnap takes all of them, and needs less than 1 GiB. The time is printed but
# not judged, because the benchmark does that.
use strict;
use warnings;
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use POSIX qw(WNOHANG);
use Test::More;
use Time::HiRes qw(time);
use Hunt;

my $blocks = 1_000_000;
my $dir = fresh_dir();
my $hsnap = "$dir/hsnap.exe"; # a unique name, by which the process is found
for my $file (qw(hsnap.exe hsnap-tracer64.dll)) {
	copy("$root/build/win64/$file", "$dir/$file") or die "$file: $!\n";
}

my $target = target("$root/build/win64/samples/many_blocks.exe", [$blocks], traced => 1);
is($target->step, 1, "the target has made its $blocks blocks") or BAIL_OUT('no target');
my ($status, $seconds, $kib) = measured(wine($hsnap, '-p', $target->{pid}, '-f', win("$dir/out.txt")));
is($status, 0, 'hsnap: status 0') or BAIL_OUT('no snapshot');
cmp_ok($kib, '>', 0, 'its memory was measured');
cmp_ok($kib, '<', 1 << 20, 'it needs less than 1 GiB');
diag(sprintf '%d blocks: %.1f s, %d MiB, a dump of %d MB', $blocks, $seconds, $kib >> 10, (-s "$dir/out.txt") / 1e6);
is($target->next_step, 2, 'the target goes on');
is($target->quit, 0, 'the target ends well');

my $result = run(tool('hdiff', 'linux', "$dir/out.txt"));
check_ok($result, 'hdiff');
diag(sprintf 'hdiff: %.1f s', $result->{seconds});
my $report = report($result->{out});
check_report($report, 'hdiff');

my (%found, %truth);
for my $row (@{ $report->{rows} }) {
	my $chain = join '<-', map { $_->{function} } chain_of($row, 'many_blocks');
	push @{ $found{$chain} }, "$row->{count} allocs $row->{bytes} bytes" if $chain =~ /^make_block<-/;
}
my (%count, %bytes);
for my $i (0 .. $blocks - 1) {
	$count{ $i % 1000 }++;
	$bytes{ $i % 1000 } += 16 + $i % 97;
}
for my $path (keys %count) {
	my $chain = join '<-', 'make_block', (map { $path >> $_ & 1 ? 'right' : 'left' } reverse 0 .. 9), 'main';
	$truth{$chain} = ["$count{$path} allocs $bytes{$path} bytes"];
}
is(scalar keys %found, 1000, '1000 stacks');
is_deeply(\%found, \%truth, 'each with exactly its blocks and bytes');
done_testing;

# Runs a command. Returns its exit status, its seconds, and its peak memory in KiB, which is read
# from the system while the command runs.
sub measured {
	my @command = @_;
	my ($from, $peak) = (time, 0);
	my $pid = Hunt::start(\@command);
	my @pids;
	until (waitpid $pid, WNOHANG) {
		@pids = unix_pids($hsnap) unless @pids;
		for (@pids) {
			open my $in, '<', "/proc/$_/status" or next;
			my ($now) = map { /^VmHWM:\s*(\d+)/ ? $1 : () } <$in>;
			$peak = $now if defined $now && $now > $peak;
		}
		select undef, undef, undef, 0.005;
	}
	my $status = $?;
	Hunt::finish($pid);
	return ($status >> 8 || $status, time - $from, $peak);
}
