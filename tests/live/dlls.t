#!/usr/bin/perl
# A DLL is loaded, allocates, and is unloaded. Its blocks keep the DLL's name.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;

use File::Copy qw(copy);

my $dir = fresh_dir();
for my $name (qw(plug other)) {
	copy(target_path('targets/plug.dll'), "$dir/$name.dll") or die "plug.dll: $!\n";
}
my $target = start_stating('targets/unload.exe', [map { win("$dir/$_.dll") } qw(plug other)], traced => 1);
is($target->step, 1, 'the DLL is loaded');
snapshot($target->{pid}, "$dir/1.txt");
is_deeply(kept("$dir/1.txt"), { plug => [10_000, 10] }, 'its blocks');
syswrite $target->{to}, "\n";
$target->line for 1 .. 2; # skip the lines with the load addresses
is($target->step, 2, 'it was unloaded, and loaded again');
snapshot($target->{pid}, "$dir/2.txt");
is($target->next_step, 3, 'all are unloaded');
snapshot($target->{pid}, "$dir/3.txt");
is_deeply(kept("$dir/$_.txt"), { plug => [16_500, 18], other => [14_000, 7] }, "step $_: each has its own") for 2, 3;
is_deeply(kept("$dir/1.txt", "$dir/3.txt"), { plug => [6500, 8], other => [14_000, 7] }, 'growth');
is($target->quit, 0, 'the program ends');
done_testing;

# Returns bytes and blocks, by the DLL whose function allocated them.
sub kept {
	my @files = @_;
	my $result = run(tool('hdiff', 'linux', @files));
	check_ok($result, 'hdiff') or return;
	my %kept;
	for my $row (@{ report($result->{out})->{rows} }) {
		my ($module) = map { $_->{module} // '' } grep { ($_->{module} // '') =~ /^(?:plug|other)$/ } @{ $row->{frames} } or next;
		$kept{$module}[0] += $row->{bytes};
		$kept{$module}[1] += $row->{count};
	}
	return \%kept;
}
