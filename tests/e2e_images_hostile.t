#!/usr/bin/perl
# Damaged minidumps of synthetic processes. Whatever is wrong in them, hsnap -z ends soon, either
# with the readable part or with one line that names the error. It reads nothing outside its
# buffers, and the file's size bounds its memory. (tests/unit/test_image_damage.c tests hundreds of
# random damages.)
#
# Arguments are those of make_image: tests only that process.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;
use Images;

my $seconds = 20; # limit for a hang, long enough for the sanitizers
my $dir = fresh_dir();
my @kinds = breaks();
my %known = map { $_ => 1 } profiles();
my $seed = 20261120;
# Damage that no check detects yet, because no other data contradict it with certainty. hsnap must
# only survive it.
my %unseen = map { $_ => 1 } qw(nt-big-prefix);

cmp_ok(scalar @kinds, '>=', 10, 'several kinds of damage');
my @processes = @ARGV ? [@ARGV] : (
	['win10-x64', '--ust'], ['win7-x86', '--ust'], ['win10-x64', '--segment', '--ust'],
	['win10-x64', '--page-heap', 'full', '--ust'], ['wow64', '--ust'], ['win81-x64'],
	['win7-x64', '--page-heap', 'light', '--ust'],
	# With seed 1, half of a subsegment happens to have as many free blocks as the whole.
	['win11-26100-x64', '--segment', '--ust', '--seed', 2],
);
for my $how (@processes) {
	ok($known{ $how->[0] }, "there is $how->[0]");
	subtest "@$how" => sub { hurt(@$how) };
}
done_testing;

sub hurt {
	my @how = (@_, '--blocks', 300);
	make_image("$dir/sound.dmp", @how) or return fail('a sound image');
	ok(with_sanitizers("$dir/sound.dmp", "@how") && in_little_memory("$dir/sound.dmp", "@how"),
		'the sound image') or return;
	my $said = run(tool('hsnap', 'linux', '-z', "$dir/sound.dmp", '-f', "$dir/out.txt"))->{err};
	is(join("\n", words_of($said, truth("$dir/sound.dmp.truth"))), '', 'of which nothing is reported');
	targeted(@how);
	at_random(slurp("$dir/sound.dmp"));
	cut(slurp("$dir/sound.dmp"));
}

# Returns a fault in hsnap's handling of a file, or '' if hsnap handled it well. Checks the seconds
# last.
sub wrong {
	my ($result, $is_written) = @_;
	my @lines = split /\n/, $result->{err};
	return 'a sanitizer speaks' if $result->{err} =~ /Sanitizer|runtime error:|^==\d+==/m;
	return "status $result->{status}" if $result->{status} != 0 && $result->{status} != 2;
	return 'words of another kind' if grep { !/^hsnap: / } @lines;
	return 'not printable' if $result->{err} =~ /[^\n\x20-\x7e]/;
	return 'too many words' if @lines > 40;
	# There is one error, after all warnings.
	my @errors = grep { !/^hsnap: [^:]+: warning: / } @lines;
	return 'no one error is named' if $result->{status} == 2
	    && (@errors != 1 || $errors[0] ne $lines[-1] || $errors[0] !~ /: .*; /);
	return 'an error, but status 0' if $result->{status} == 0 && @errors;
	return 'no memory' if $result->{err} =~ /out of memory/;
	return 'no dump' if $result->{status} == 0 && !$is_written;
	return $result->{cpu_seconds} > $seconds ? "$result->{cpu_seconds} seconds" : '';
}

sub with_sanitizers {
	my ($file, $what) = @_;
	return look("$what, with the sanitizers", "$root/build/asan/hsnap", '-z', $file, '-f', "$dir/out.txt");
}

# Runs hsnap with the memory for the mapped file, for a multiple of its size, and for its own start.
sub in_little_memory {
	my ($file, $what) = @_;
	return 1 if $as_windows; # Windows has no such limits
	my $kib = 64 * 1024 + 24 * int((-s $file) / 1024);
	return look("$what, in $kib KiB", 'sh', '-c', "ulimit -v $kib; exec \"\$@\"", 'sh',
			"$root/build/linux/hsnap", '-z', $file, '-f', "$dir/out.txt");
}

sub look {
	my ($what, @command) = @_;
	unlink "$dir/out.txt";
	my $result = run(\@command, limit => 10 * $seconds);
	my $wrong = wrong($result, -s "$dir/out.txt") or return 1;
	diag("$what: $wrong\n", substr $result->{err}, 0, 4000);
	return;
}

# Returns the messages, except those that a valid image may also cause.
sub words_of {
	my ($err, $truth) = @_;
	return grep { !/stack database had no room/ && !(/no block has a stack/ && !%{ $truth->{blocks} }) } split /\n/, $err;
}

# Checks that lost or invented heaps, blocks and stacks are reported.
sub is_said {
	my ($file, $what) = @_;
	my $result = run(tool('hsnap', 'linux', '-z', $file, '-f', "$dir/out.txt"));
	my $truth = truth("$file.truth");
	return 1 if $result->{status} || words_of($result->{err}, $truth);
	my $found = found("$dir/out.txt");
	take_wild_frames($found, $truth) if $what eq 'frames-wild';
	my @wrong = wrong_of($found, walked($file), $truth);
	$unseen{$what} ? note("$what: nothing is said") : diag("$what: nothing is said, though\n", join "\n", @wrong) if @wrong;
	return !@wrong || $unseen{$what};
}

# Accepts a frame outside all code if the dump lists the frame as in memory and the stack's other
# frames are unchanged.
sub take_wild_frames {
	my ($found, $truth) = @_;
	for my $addr (grep { $truth->{blocks}{$_} } keys %{ $found->{blocks} }) {
		my @frames = split / /, $found->{blocks}{$addr};
		my @true = split / /, $truth->{blocks}{$addr};
		$found->{blocks}{$addr} = join ' ', map { $frames[$_] eq '7FFE1231' ? $true[$_] // 'none' : $frames[$_] } 0 .. $#frames;
	}
}

# Checks damage that hides nothing: hsnap must find everything and print a message.
sub loses_nothing {
	my ($file, $what) = @_;
	my $result = run(tool('hsnap', 'linux', '-z', $file, '-f', "$dir/out.txt"));
	my $truth = truth("$file.truth");
	my @wrong = wrong_of(found("$dir/out.txt"), walked($file), $truth);
	push @wrong, 'nothing is reported' if !words_of($result->{err}, $truth);
	diag("$what: ", join "\n", @wrong) if @wrong;
	return !@wrong;
}

sub targeted {
	my @how = @_;
	my @bad;
	my $count = 0;
	for my $kind (@kinds) {
		# Skip damage for which this process has no place.
		unlink "$dir/bad.dmp";
		next if run(["$root/build/linux/images/make_image", @how, '--break', $kind, "$dir/bad.dmp"])->{status};
		$count++;
		with_sanitizers("$dir/bad.dmp", $kind) && in_little_memory("$dir/bad.dmp", $kind)
		    && ($kind =~ /-leaf-wild$/ ? loses_nothing("$dir/bad.dmp", $kind) : is_said("$dir/bad.dmp", $kind))
		    or push @bad, $kind;
	}
	cmp_ok($count, '>=', 10, "$count kinds of damage fit");
	is_deeply(\@bad, [], 'each is survived, and losses are reported');
}

# Returns a number below $limit. The sequence is the same in every run.
sub dice {
	my ($limit) = @_;
	$seed = ($seed * 1103515245 + 12345) % 2**31;
	return int($seed / 2**31 * $limit);
}

# Returns typical results of damage, and numbers that an attacker would choose.
sub number {
	my @numbers = ("\0" x 8, "\xff" x 8, "\xff\xff\xff\xff", "\0\0\0\x80", "\0" x 7 . "\x80", "\1", "\0", "\xff\xff");
	return $numbers[dice(scalar @numbers)] if dice(2);
	return pack 'C', dice(256);
}

sub at_random {
	my ($sound) = @_;
	my @bad;
	for my $try (1 .. 24) {
		my $bytes = $sound;
		for (1 .. 1 + dice(200)) {
			my $number = number();
			substr $bytes, dice(length($bytes) - 8), length $number, $number;
		}
		spew("$dir/bad.dmp", $bytes);
		($try % 3 ? with_sanitizers("$dir/bad.dmp", "try $try") : in_little_memory("$dir/bad.dmp", "try $try"))
		    or push @bad, $try;
	}
	is_deeply(\@bad, [], '24 times random damage is survived');
}

sub cut {
	my ($sound) = @_;
	my @bad;
	my @lengths = (1, 31, 32, 33, 100, map { dice(length $sound) } 1 .. 7);
	for my $length (@lengths) {
		with_sanitizers(spew("$dir/bad.dmp", substr $sound, 0, $length), "cut to $length") or push @bad, $length;
	}
	is_deeply(\@bad, [], @lengths . ' cuts are survived');
}
