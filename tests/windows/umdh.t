#!/usr/bin/perl
# On Windows, as administrator: UMDH and GFlags of the Debugging Tools, compared with hsnap and
# hdiff. UMDH and hsnap each take one process that stands still, and each reads the other's file.
# HSNAP_DEBUGGERS is the folder of umdh.exe. With HSNAP_STAND_IN the programs there are stand-ins,
# and the stacks are the tracer's.
use strict;
use warnings;
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Hunt;

my $tools = $ENV{HSNAP_DEBUGGERS} // '/c/Program Files (x86)/Windows Kits/10/Debuggers/x64';
lacks('umdh', "no UMDH in $tools: the SDK has it, in its Debugging Tools") unless -x "$tools/umdh.exe";
my $traced = $ENV{HSNAP_STAND_IN};
my $image = "leak$$.exe"; # the flag applies to all programs with this name
my $dir = fresh_dir();
copy("$root/build/win64/samples/leak_steady.exe", "$dir/$image") or die "$image: $!\n";
END { local $?; hsnap('ust', 'off', $image) if defined $dir }

# ---------------------------------------------------------------- the flag, by either

my ($ours_on, $theirs_on) = (qr/^\Q$image\E: ust is on/m, qr/^\s*ust - /m);
gflags('+ust');
like(hsnap('ust', 'show', $image)->{out}, $ours_on, 'GFlags sets +ust: hsnap shows it');
gflags('-ust');
unlike(hsnap('ust', 'show', $image)->{out}, $ours_on, 'GFlags clears it: hsnap shows none');
check_ok(hsnap('ust', 'on', $image), 'hsnap ust on');
like(gflags()->{out}, $theirs_on, 'hsnap sets +ust: GFlags shows it');

# ---------------------------------------------------------------- snapshots

my $target = target("$dir/$image", [], traced => $traced);
for my $step (1, 2) {
	is($step == 1 ? $target->step : $target->next_step, $step, "step $step");
	ours("ours$step.txt");
	my $umdh = umdh("-p:$target->{pid}", '-f:' . win("$dir/umdh$step.txt"));
	is($umdh->{status}, 0, "step $step: UMDH's log") or diag($umdh->{out}, $umdh->{err});
	ours("after$step.txt");
	my $beside = run([$^X, "$root/tests/windows/beside_umdh", map { "$dir/$_$step.txt" } qw(ours umdh after)]);
	is($beside->{status}, 0, "step $step: every block, its bytes and its stack are the same, or a rule says why not")
	    or diag($beside->{out}, $beside->{err});
	note($beside->{out});
}
is($target->quit, 0, 'the program ends');
check_ok(hsnap('ust', 'off', $image), 'hsnap ust off');
unlike(gflags()->{out}, $theirs_on, 'GFlags shows none');

# ---------------------------------------------------------------- comparisons

for my $of (qw(umdh ours)) {
	my @logs = map { win("$dir/$of$_.txt") } 1, 2;
	my %by = (UMDH => umdh('-d', @logs), hdiff => run([wine("$root/build/win64/hdiff.exe", '-d', '--match', 'id', @logs)]));
	my %read = map { $_ => report($by{$_}{out}) } keys %by;
	is($by{UMDH}{status}, 0, "UMDH compares logs: $of") or diag($by{UMDH}{err});
	check_report($read{hdiff}, "hdiff of $of");
	is_deeply($read{UMDH}{total}, $read{hdiff}{total}, "$of: the same total");
	is_deeply(rows($read{UMDH}), rows($read{hdiff}), "$of: the same rows, by the labels of stacks");
	spew("$dir/$of-compared.txt", $by{UMDH}{out});
	is(grown("$dir/$of-compared.txt", 65536, 64), '011', "$of, by UMDH: the step leaks what the sample says, neither more nor less");
	is(grown(@logs, 65536, 64), '011', "$of, by hdiff: the same");
}
done_testing;

sub gflags { return run(["$tools/gflags.exe", '-i', $image, @_]) }

sub umdh { return run(["$tools/umdh.exe", @_]) }

sub ours {
	my ($name) = @_;
	check_ok(hsnap('-p', $target->{pid}, '--stacks=' . ($traced ? 'tracer' : 'ust'), '-f', win("$dir/$name")), $name);
}

# Returns { LABEL => "BYTES BLOCKS" }.
sub rows {
	my ($report) = @_;
	return { map { $_->{id} => "$_->{bytes} $_->{count}" } @{ $report->{rows} } };
}

# Exit statuses of limits: the growth of the program's own stacks, a byte less, a block less.
sub grown {
	my ($blocks, $bytes, @files) = (pop, pop, @_);
	return join '', map { run([wine("$root/build/win64/hdiff.exe", '--module', $image, '--max-growth', "$_->[0],$_->[1]",
		map { m{^/} ? win($_) : $_ } @files)])->{status} } [$bytes, $blocks], [$bytes - 1, $blocks], [$bytes, $blocks - 1];
}
