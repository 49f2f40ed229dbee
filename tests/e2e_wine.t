#!/usr/bin/perl
# setup/wine runs programs and their children without address randomization. With it, one in some
# thousands of starts fails under Wine 8. Also tests that one Ctrl-C at a terminal arrives once.
use strict;
use warnings;
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use POSIX ();
use Test::More;
use Hunt;

my $no_random = 0x0040000; # ADDR_NO_RANDOMIZE of personality(2)
my $exe = fresh_dir() . "/fixed$$.exe"; # a unique name, by which the process is found
copy("$root/build/win64/samples/leak_steady.exe", $exe) or die "$exe: $!\n";
SKIP: {
	skip('random addresses may not be switched off here', 6) if system('setarch -R true 2>/dev/null');
	for my $by (0, 1) {
		my $target = target($exe, [], traced => $by);
		my $what = $by ? 'a program that another one starts' : 'a program';
		is($target->step, 1, "$what runs");
		my @personality = map { hex(slurp("/proc/$_/personality") =~ s/\s//gr) } unix_pids($exe);
		is(scalar(grep { $_ & $no_random } @personality), 1, "$what: without random addresses");
		is($target->quit, 0, 'it ends');
	}
}
is(run([wine('cmd', '/c', 'exit 7')], env => { TMPDIR => fresh_dir() })->{status}, 7, 'a program runs where TMPDIR is set, of which Wine 10 dies');
for my $limit (undef, 200) {
	my $what = defined $limit ? 'with a time limit' : 'as it is';
	my $target = target($exe);
	is($target->step, 1, 'a program runs');
	my $dir = fresh_dir();
	open my $terminal, '+<', '/dev/ptmx' or die "/dev/ptmx: $!\n";
	my $side = side_of($terminal);
	# setsid makes this the program's terminal, as a shell does.
	my $pid = Hunt::start([qw(setsid --ctty env), defined $limit ? "HSNAP_WINE_TIMEOUT=$limit" : qw(-u HSNAP_WINE_TIMEOUT),
		wine("$root/build/win64/hsnap.exe", '-p', $target->{pid}, '-f', win("$dir/{n}.txt"), '--every', '1h', '--log', win("$dir/log"))],
		stdin => $side, stdout => $side, stderr => $side);
	ok(waited($terminal, sub { -e "$dir/log" && slurp("$dir/log") =~ /: \d+ blocks/ }), "$what: a first file");
	is(slurp("/proc/$pid/comm") =~ /^timeout$/m, defined $limit, "$what: who sits at a terminal has the limit that he asks for");
	syswrite $terminal, "\cC";
	ok(waited($terminal, sub { waitpid($pid, POSIX::WNOHANG) == $pid }), "$what: Ctrl-C is the end") or next;
	is($? >> 8, 0, "$what: in order, it is not taken for two");
	Hunt::forget($pid);
	like(slurp("$dir/log"), qr/Z interrupted: 1 file written\r?\n\z/, "$what: and that is said");
	is($target->quit, 0, 'the program goes on');
}
done_testing;

# Returns the end of a terminal that programs use.
sub side_of {
	my ($terminal) = @_;
	my ($unlock, $number) = (pack('i', 0), pack('i', 0));
	ioctl $terminal, 0x40045431, $unlock or die "TIOCSPTLCK: $!\n";
	ioctl $terminal, 0x80045430, $number or die "TIOCGPTN: $!\n";
	return '/dev/pts/' . unpack 'i', $number;
}

# Waits until a condition is true, while reading the output. Returns false after the time limit.
sub waited {
	my ($terminal, $is_true) = @_;
	my $until = time + $Hunt::limit;
	until ($is_true->()) {
		return 0 if time > $until;
		my $ready = '';
		vec($ready, fileno $terminal, 1) = 1;
		sysread $terminal, my $bytes, 4096 if select($ready, undef, undef, 0.01) > 0;
	}
	return 1;
}
