#!/usr/bin/perl
# An hsnap that is killed, or whose target ends, in the middle of a snapshot: the
# target goes on, nothing that looks like a dump is left, and the next snapshot
# is exact.
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
my $victim = "$dir/victim$$.exe"; # names that nobody else has: processes are found by them
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

# At several moments from start to end, and when the output begins: what hsnap is
# at then differs from run to run, what must hold does not. A program that gets a
# SIGINT before its own main() is ended by Wine with status 0, whatever it is: for
# that one time runs from the moment when there is a file.
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

# Starts a snapshot into $out, waits, calls $do; the status of hsnap.
sub in_the_middle {
	my ($out, $seconds, $do, $begun) = @_;
	my $err = "$dir/stderr";
	my $pid = Hunt::start([wine($hsnap, '-p', $target->{pid}, '-f', win("$out/out.txt"))], stderr => $err);
	my $until = time + $Hunt::limit;
	while ($begun && time < $until && !$begun->()) {
		select undef, undef, undef, 0.002;
	}
	$until = time + ($seconds // $Hunt::limit);
	# Time itself is what is waited for here, unless it is the first byte of output.
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

# A dump can be whole and the process not yet at its end: whoever is killed between the
# last byte and the new name, or between that and exit(), leaves a complete file.
sub is_complete {
	my ($dump) = @_;
	return run(tool('hdiff', 'linux', $dump))->{status} == 0;
}

# Windows is told that a file is to go with its process by a second call, after the one that makes it:
# whoever is killed between them leaves an empty one, under a name that no dump has.
sub is_part {
	my ($file) = @_;
	return !is_complete($file) && (-s $file || $file !~ /\.tmp$/);
}

# What is left of the output of a process that was killed. The system may remove it a moment
# after the process is gone, so that is waited for.
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

# Either the snapshot was done, or one line says that the process is gone.
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
				diag("$what: Wine gave up ($said)"); # as in Hunt::run(); nothing of ours ends so
			} else {
				check_error({ command => $what, status => $status, out => '',
					err => $said =~ s/\r//gr }, 'hsnap', $what, qr/\b$target->{pid}\b/);
				is_deeply([grep { !is_complete("$out/$_") } files_in($out)], [], "$what: no part of a dump is left");
			}
			Hunt::finish($target->{unix});
		}
	}
}
