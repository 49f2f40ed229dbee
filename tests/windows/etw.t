#!/usr/bin/perl
# On Windows, as administrator: WPR traces the heap of a sample. hdiff finds the sample in the log,
# with the stack that leaks.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Hunt;

plan skip_all => 'needs Windows' unless $^O =~ /^(?:msys|cygwin)$/;
my $wpr = '/c/Windows/System32/wpr.exe';
lacks('wpr', "no $wpr") unless -x $wpr;

my $image = 'leak_steady.exe';
my $dir = fresh_dir();
my $log = "$root/build/log/tests/heap.etl";
END { local $?; wpr('-cancel'), wpr('-heaptracingconfig', $image, 'disable') if defined $dir }

is(wpr('-heaptracingconfig', $image, 'enable')->{status}, 0, 'heap tracing is switched on for the sample');
my $started = wpr('-start', 'Heap', '-filemode');
is($started->{status}, 0, 'WPR starts') or diag($started->{out}, $started->{err});
my $target = target("$root/build/win64/samples/$image");
is($target->step, 1, 'the sample runs');
is($target->next_step, $_, "step $_") for 2 .. 4;
is($target->quit, 0, 'it ends');
my $stopped = wpr('-stop', win($log));
is($stopped->{status}, 0, 'WPR writes its log') or diag($stopped->{out}, $stopped->{err});
is(wpr('-heaptracingconfig', $image, 'disable')->{status}, 0, 'heap tracing is switched off');

my @hdiff = wine("$root/build/win64/hdiff.exe");
note(run([@hdiff, '--list', '-v', win($log)])->{out});
my @leaks = ('--process', $image, '-i', '!grow_log', win($log));
note(run([@hdiff, @leaks])->{out});
my @statuses = map { run([@hdiff, '--max-growth', $_, @leaks])->{status} } '262144,256', '262143,256', '262144,255';
is("@statuses", '0 1 1', 'four steps leak 262144 bytes in 256 blocks, neither more nor less');
done_testing;

# -start, -stop and similar words begin without a slash, so MSYS2 does not change them.
sub wpr { return run([$wpr, @_], limit => 300) }
