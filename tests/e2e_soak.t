#!/usr/bin/perl
# What "make soak" does for an hour, in seconds: that it finds nothing under Wine, and still works.
use strict;
use warnings;
use FindBin qw($Bin);
exec "$Bin/soak", qw(--snapshots 24 --runs 4 --attaches 4) or die "tests/soak: $!\n";
