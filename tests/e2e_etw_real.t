#!/usr/bin/perl
# Real ETW logs of Windows Vista to 11, from other projects. Each is read to its last byte. The
# counts of one log agree with Microsoft's own reader. Each stack finds its event, and images have
# their PDBs. None of the logs has heap events.
use strict;
use warnings;
use File::Glob ':bsd_glob';    # paths may have blanks
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP;
use Test::More;
use Hunt;

my $data = data_file('etl') or plan skip_all => 'the real logs are not here';
my $dir = fresh_dir();
my $hdiff = "$root/build/linux/hdiff";

sub list_of {
	my (@paths) = @_;
	my $run = run([$hdiff, '--list', '-v', '-o', 'json', @paths]);
	is($run->{status}, 0, "@paths is read") or diag($run->{err});
	return decode_json($run->{out});
}

system('tar', 'xf', "$data/$_", '-C', $dir) == 0 or die "$_: cannot be unpacked" for qw(various.tar.xz syzygy-test-data.tar.xz);
my @logs = (glob("$dir/*.etl"), glob("$data/*.zip"));
cmp_ok(scalar @logs, '>=', 25, 'there are logs');
for my $log (@logs) {
	my $list = list_of($log);
	ok(!$list->{cut}, 'to its end');
	is($list->{buffers_damaged}, 0, 'with all its buffers');
	cmp_ok($list->{event_count}, '>', 0, 'it has events');
	is($list->{stacks}{unbound} + $list->{stacks}{undefined}, 0, 'each stack has its event');
}

# Names of events in Microsoft's reader.
my %names = (
	'Windows Kernel/Image/DCStart' => ['Image', 3],
	'Windows Kernel/Image/DCStop' => ['Image', 4],
	'Windows Kernel/Image/Load' => ['Image', 10],
	'Windows Kernel/Image/Unload' => ['Image', 2],
	'Windows Kernel/Process/DCStart' => ['Process', 3],
	'Windows Kernel/Process/DCStop' => ['Process', 4],
	'Windows Kernel/Process/Start' => ['Process', 1],
	'Windows Kernel/Process/Stop' => ['Process', 2],
	'Windows Kernel/Process/PerfCtr' => ['Process', 32],
	'Windows Kernel/Process/PerfCtrRundown' => ['Process', 33],
	'Windows Kernel/Process/Defunct' => ['Process', 39],
	'Windows Kernel/Thread/Start' => ['Thread', 1],
	'Windows Kernel/Thread/Stop' => ['Thread', 2],
	'Windows Kernel/Thread/DCStart' => ['Thread', 3],
	'Windows Kernel/Thread/DCStop' => ['Thread', 4],
	'Windows Kernel/Memory/HardFault' => ['Memory', 32],
	'KernelTraceControl/ImageID' => ['ImageId', 0],
	'KernelTraceControl/ImageID/None' => ['ImageId', 32],
	'KernelTraceControl/ImageID/DbgID_RSDS' => ['ImageId', 36],
	'KernelTraceControl/ImageID/DbgID_ILRSDS' => ['ImageId', 37],
	'KernelTraceControl/ImageID/FileVersion' => ['ImageId', 64],
	'Microsoft-Windows-DotNETRuntime/GC/AllocationTick' => ['e13c0d23-ccbc-4e12-931b-d9cc2eee27e4', 10],
	'Microsoft-Windows-DotNETRuntime/GC/FinalizersStop' => ['e13c0d23-ccbc-4e12-931b-d9cc2eee27e4', 13],
	'Microsoft-Windows-DotNETRuntime/GC/GenerationRange' => ['e13c0d23-ccbc-4e12-931b-d9cc2eee27e4', 23],
);
my $list = list_of("$data/net.4.5.2.x64.etl.zip");
my %counts;
$counts{"$_->{provider} $_->{type}"} += $_->{count} for @{ $list->{events} };
open my $baseline, '<', "$data/net.4.5.2.x64.baseline.txt" or die "baseline: $!";
my $compared = 0;
while (<$baseline>) {
	/^COUNT (.*):(\d+)\r?$/ && $names{$1} or next;
	is($counts{"@{ $names{$1} }"}, $2, "$1: $2");
	$compared++;
}
cmp_ok($compared, '>=', 20, 'many kinds of events are compared');
is_deeply($list->{stacks}, { full => 252, keys => 9107, definitions => 2921, bound => 9359, unbound => 0, undefined => 0 },
	'its stacks are those that were counted by another reader');
is($list->{image_count}, 3596, 'all images');
cmp_ok($list->{identified_count}, '>=', 3578, 'nearly all have their PDBs');
my ($process) = grep { $_->{pid} == 3676 } @{ $list->{processes} };
is($process->{image}, 'Test.x64.exe', 'processes have their names');
my $run = run([$hdiff, "$data/net.4.5.2.x64.etl.zip"]);
is($run->{status}, 2, 'it has no heap events');
like($run->{err}, qr/^hdiff: .*\.zip: net\.4\.5\.2\.x64\.etl: .*contains no heap or virtual-memory events/, 'which is reported');
done_testing;
