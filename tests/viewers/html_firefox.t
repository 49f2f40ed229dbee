#!/usr/bin/perl
# tests/viewers/html.t in Firefox.
use strict;
use warnings;
use FindBin qw($Bin);

$ENV{HSNAP_BROWSER} = 'firefox-esr';
exec $^X, "$Bin/html.t" or die "$^X: $!\n";
