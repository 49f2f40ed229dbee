#!/usr/bin/perl
# hsnap doctor finds that all is read as it is.
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
like($result->{out}, qr/^All that is there is as it should be\.\r?$/m, 'all is well');
like($result->{out}, qr/32-bit/, 'a 32-bit child was read, too') if $target_bits == 32 && $hsnap_bits == 64;
done_testing;
