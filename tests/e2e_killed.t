#!/usr/bin/perl
# hsnap is killed, or its target ends, in the middle of a snapshot. The target continues, nothing
# that looks like a dump remains, and the next snapshot is exact.
use strict;
use warnings;
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Time::HiRes qw(time);
use Hunt;

my $dir = fresh_dir();
my $blocks = 200_000;
my $victim = "$dir/victim$$.exe"; # unique names, by which the processes are found
my $hsnap = "$dir/hsnap.exe";
copy("$root/build/win64/samples/many_blocks.exe", $victim) or die "$victim: $!\n";
for my $file (qw(hsnap.exe hsnap-tracer64.dll)) {
	copy("$root/build/win64/$file", "$dir/$file") or die "$file: $!\n";
}

my $target = target($victim, [$blocks], traced => 1);
my $step = $target->step;
is($step, 1, 'the target runs');
my $whole = snapshot_in(fresh_dir());
is($whole->{status}, 0, 'a snapshot that nobody disturbs');
diag(sprintf 'a snapshot of %d blocks: %.2f s', $blocks, $whole->{seconds});

# Kills hsnap at several moments between start and end, and when the output begins. hsnap's progress
# differs between runs, but the required result does not. If a program gets a SIGINT before its
# main(), Wine ends it with status 0. So for that signal, time is counted from when a file exists.
for my $signal (qw(INT TERM KILL)) {
	disturb($signal, $_ / 8 * $whole->{seconds}) for 1 .. 7;
	disturb($signal);
}
my $after = fresh_dir();
is(snapshot_in($after)->{status}, 0, 'a snapshot after all that');
is(make_block_count("$after/out.txt"), $blocks, 'it has every block');
is($target->quit, 0, 'the target ends well');

subtest 'the target ends in the middle' => \&target_ends;
done_testing;

sub snapshot_in {
	my ($out) = @_;
	return run([wine($hsnap, '-p', $target->{pid}, '-f', win("$out/out.txt"))]);
}

# Starts a snapshot into $out, waits, and calls $do; returns hsnap's status.
sub in_the_middle {
	my ($out, $seconds, $do, $begun) = @_;
	my $err = "$dir/stderr";
	my $pid = Hunt::start([wine($hsnap, '-p', $target->{pid}, '-f', win("$out/out.txt"))], stderr => $err);
	my $until = time + $Hunt::limit;
	while ($begun && time < $until && !$begun->()) {
		select undef, undef, undef, 0.002;
	}
	$until = time + ($seconds // $Hunt::limit);
	# The delay is intended, unless $do must wait for the first byte of output.
	while (time < $until && (defined $seconds || !files_in($out))) {
		select undef, undef, undef, 0.002;
	}
	$do->($pid);
	my $status = Hunt::finish($pid);
	return $status & 127 ? 128 + ($status & 127) : $status >> 8;
}

sub disturb {
	my ($signal, $seconds) = @_;
	my $what = "SIG$signal " . (defined $seconds ? sprintf 'after %.2f s', $seconds : 'at the first output');
	my $out = fresh_dir();
	my $status = in_the_middle($out, $seconds, sub { kill $signal => $signal eq 'INT' ? wine_process($_[0], $hsnap) : unix_pids($hsnap) },
		$signal eq 'INT' && sub { files_in($out) });
	my @left = $status == 0 || $signal eq 'KILL' ? files_in($out) : left_in($out);
	if ($status == 0) {
		is_deeply(\@left, ['out.txt'], "$what: it was done already");
	} elsif ($signal eq 'KILL') {
		is_deeply([grep { $_ eq 'out.txt' && !is_complete("$out/$_") } @left], [], "$what: no part of a dump is left");
	} else {
		is_deeply([grep { is_part("$out/$_") } @left], [], "$what: no part of a dump is left (status $status)");
	}
	my $next = $target->next_step;
	is($next, ++$step, "$what: the target goes on") or BAIL_OUT('the target hangs');
}

# Returns true for a complete dump. The process may still be running at that time. If hsnap is
# killed between the last byte and the rename, or between the rename and exit(), it leaves a
# complete file.
sub is_complete {
	my ($dump) = @_;
	return run(tool('hdiff', 'linux', $dump))->{status} == 0;
}

# Returns true for a partial file. Windows learns only from a second call, after the creation, that
# it must delete a file with its process. If a process is killed between the two calls, it leaves an
# empty file, under a name that no dump has.
sub is_part {
	my ($file) = @_;
	return !is_complete($file) && (-s $file || $file !~ /\.tmp$/);
}

# Returns the output files that remain from a killed process. Waits for the system, which may remove
# the files a moment after the process has exited.
sub left_in {
	my ($out) = @_;
	my $until = time + $Hunt::limit;
	while (time < $until && grep { is_part("$out/$_") } files_in($out)) {
		select undef, undef, undef, 0.01;
	}
	return files_in($out);
}

sub make_block_count {
	my ($dump) = @_;
	my $count = 0;
	for my $row (@{ report(run(tool('hdiff', 'linux', $dump))->{out})->{rows} }) {
		my ($first) = chain_of($row, "victim$$");
		$count += $row->{count} if $first && $first->{function} eq 'make_block';
	}
	return $count;
}

# Either the snapshot was finished first, or one line reports that the process has exited.
sub target_ends {
	for my $how ('quit', 'KILL') {
		for my $part (1 .. 7) {
			$target = target($victim, [$blocks], traced => 1);
			is($target->step, 1, 'the target runs') or return;
			my $out = fresh_dir();
			my $status = in_the_middle($out, $part / 8 * $whole->{seconds}, sub {
				return kill KILL => unix_pids($victim) if $how eq 'KILL';
				syswrite $target->{to}, "quit\n";
			});
			my $what = sprintf '%s after %.2f s', $how, $part / 8 * $whole->{seconds};
			my $said = slurp("$dir/stderr");
			if ($status == 0) {
				is_deeply([files_in($out)], ['out.txt'], "$what: the snapshot was done");
			} elsif ($status == 1 && $said =~ /\A(?:wine client error:.*\n)?\z/) {
				# As in Hunt::run(): no program of this project ends like this.
				diag("$what: Wine gave up ($said)");
			} else {
				check_error({ command => $what, status => $status, out => '',
					err => $said =~ s/\r//gr }, 'hsnap', $what, qr/\b$target->{pid}\b/);
				is_deeply([grep { !is_complete("$out/$_") } files_in($out)], [], "$what: no part of a dump is left");
			}
			Hunt::finish($target->{unix});
		}
	}
}
