#!/usr/bin/perl
# The log of a real machine, into which another program has written the heap events of an invented
# process. That program (etw_other.pl) uses only the format's description, and its author is not the
# reader's. Live memory at a moment, by stack, must be what that program states. A damaged log must
# give the same, up to its end.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP;
use Test::More;
use Hunt;

my $real = data_file('etl/net.4.5.2.x64.etl.zip') or plan skip_all => 'the real log is not here';
my $dir = fresh_dir();
system('unzip', '-qo', $real, '-d', $dir) == 0 or plan skip_all => 'no unzip';
my $made = "$dir/made.etl";
my %says = (
	'' => qr/\A\z/,
	cut => qr/damaged or cut short at byte \d+/,
	lost => qr/(?:buffers? of events|events? (?:was|were) lost)/,
	garbage => qr/1 damaged buffer in the log/,
);
for my $damage (sort keys %says) {
	subtest $damage || 'whole' => sub {
		my $rows = 0;
		for my $seed (1 .. 8) {
			my $truth = run([$^X, "$root/tests/etw_other.pl", "$dir/net.4.5.2.x64.etl", $seed, $made, $damage ? $damage : ()]);
			is($truth->{status}, 0, "seed $seed: a log is made") or next;
			for my $moment (@{ decode_json($truth->{out})->{moments} }) {
				my ($found, $said) = found("$made\@$moment->{ms}ms");
				is_deeply($found, $moment->{rows}, "seed $seed, $moment->{ms} ms");
				like($said, $says{$damage}, 'the fault is reported');
				$rows += keys %{ $moment->{rows} };
			}
		}
		cmp_ok($rows, '>', 200, 'stacks were compared');
	};
}
done_testing;

# Returns the bytes and blocks of each stack, and all warnings except the one that every log with
# heap events causes.
sub found {
	my ($what) = @_;
	my $run = run(["$root/build/linux/hdiff", '-o', 'json', '--no-symbols', '--sum', '--process', 4321, $what]);
	is($run->{status}, 0, 'it is read') or diag($run->{err});
	my $read = decode_json($run->{out});
	my @warnings = grep { !/tested only on generated logs/ } @{ $read->{inputs}[0]{warnings} // [] };
	my %rows;
	for my $row (@{ $read->{rows} }) {
		my $stack = join ' ', map { "$_->{module}+$_->{offset}" } @{ $row->{frames} };
		$rows{$stack}[0] += $row->{new}{bytes};
		$rows{$stack}[1] += $row->{new}{blocks};
	}
	return (\%rows, join "\n", @warnings);
}
