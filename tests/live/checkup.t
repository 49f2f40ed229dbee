#!/usr/bin/perl
# hsnap doctor finds that everything is read correctly.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;

my $result = run([wine($Hunt::hsnap, 'doctor')], limit => 280);
is($result->{status}, 0, 'status 0');
is($result->{err}, '', 'no complaint');
unlike($result->{out}, qr/^OFF\b|\bOFF$/m, 'no row is off') or diag($result->{out});
like($result->{out}, qr/^Everything was read correctly\.\r?$/m, 'all is well');
if ($target_bits == 32 && $hsnap_bits == 64) {
	like($result->{out}, qr/^tracer32\b/m, 'a 32-bit child was read, too');
	unlike($result->{out}, qr/^not there: tracer32,/m, 'and its stacks');
}
done_testing;
