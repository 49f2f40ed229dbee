#!/usr/bin/perl
# Runs "make soak" for seconds instead of an hour, to show that it still works and finds no faults
# under Wine.
use strict;
use warnings;
use FindBin qw($Bin);
exec "$Bin/soak", qw(--snapshots 24 --runs 4 --attaches 4) or die "tests/soak: $!\n";
