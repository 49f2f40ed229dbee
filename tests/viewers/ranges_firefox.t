#!/usr/bin/perl
# tests/viewers/ranges.t in Firefox.
use strict;
use warnings;
use FindBin qw($Bin);

$ENV{HSNAP_BROWSER} = 'firefox-esr';
exec $^X, "$Bin/ranges.t" or die "$^X: $!\n";
