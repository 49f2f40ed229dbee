#!/usr/bin/perl
# Stacks of 32-bit code. A program allocates from callers with different kinds of frames and states
# its call chains. However the program was built, a recording must have exactly these chains. Runs
# only if Wine runs 32-bit programs.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my %kinds = (
	o0 => 'without optimization',
	fp => 'optimized, with frame pointers',
	fpo => 'optimized, without frame pointers',
	bare => 'with frame pointers, and no rules for unwinding',
);
my $targets = "$root/build/win32/targets";
my $hsnap = "$root/build/win32/hsnap.exe";

plan skip_all => "'make win32' has not been run" if grep { !-e } $hsnap, map { "$targets/frames_$_.exe" } keys %kinds;
my $dir = fresh_dir();
my $alone = run([wine("$targets/frames_o0.exe")]);
plan skip_all => 'no 32-bit program runs here' if $alone->{status} || $alone->{out} !~ /^chain /;

for my $kind (sort keys %kinds) {
	subtest $kinds{$kind} => sub { check_chains($kind) };
}
subtest 'rules that cannot be read' => \&check_hidden;
subtest 'a module without rules is named' => \&check_warning;
done_testing;

# Returns each stated chain as "FUNCTION CALLER ...", without duplicates.
sub stated { my %all = map { $_ => 1 } $_[0] =~ /^chain (.*?)\r?$/mg; return sort keys %all }

# Returns the chains that begin with a heap function, because the C library allocates too.
# Decorations of names are removed.
sub recorded {
	my ($module, @rows) = @_;
	my %all;
	for my $row (@rows) {
		my @functions = map { $_->{function} =~ s/\(.*//r =~ s/^@?(\w+)@\d+$/$1/r } chain_of($row, $module);
		$all{"@functions"} = 1 if @functions && $functions[0] =~ /^by_/;
	}
	return sort keys %all;
}

sub check_chains {
	my ($kind) = @_;
	my $run = run([wine($hsnap, 'record', '-o', win("$dir/$kind.hrec"), '--', "$targets/frames_$kind.exe")]);
	is($run->{status}, 0, 'it ran') or diag($run->{err});
	my @truth = stated($run->{out});
	cmp_ok(scalar(@truth), '>=', 25, 'it states its chains');
	my $result = run(tool('hdiff', 'linux', '--force', "$dir/$kind.hrec"));
	is($result->{status}, 0, 'hdiff') or diag($result->{err});
	my @found = recorded("frames_$kind", @{ report($result->{out})->{rows} });
	is_deeply(\@found, \@truth, 'its recording has the same') or diag(map { "$_\n" } @found);
	return;
}

# If a function's unwind rules were removed, a stack ends at that function, and the program
# continues.
sub check_hidden {
	my $run = run([wine($hsnap, 'record', '-o', win("$dir/hidden.hrec"), '--', "$targets/frames_fpo.exe", 'hide')]);
	is($run->{status}, 0, 'it ran') or diag($run->{err});
	my @doors = map { s/ .*//r } stated($run->{out});
	my $result = run(tool('hdiff', 'linux', '--force', "$dir/hidden.hrec"));
	my %once = map { $_ => 1 } @doors;
	is_deeply([recorded('frames_fpo', @{ report($result->{out})->{rows} })], [sort keys %once], 'each door is known, and no caller');
	return;
}

# Only this program causes a warning in the snapshot at its end and in its recording: all other
# programs have rules.
sub check_warning {
	for my $kind ('bare', 'fpo') {
		my $file = "$dir/$kind.txt";
		run([wine($hsnap, 'run', '--at-exit', win($file), '--', "$targets/frames_$kind.exe")]);
		warns_of($kind, 'snapshot', slurp($file) =~ m{^// hsnap: warning .*(stacks of 32-bit code may lack callers: .*?)\r?$}mg);
		my $list = run(tool('hdiff', 'linux', '--list', "$dir/$kind.hrec"));
		warns_of($kind, 'recording', $list->{out} =~ /^ *remark +(stacks of 32-bit code .*)$/mg);
	}
	return;
}

sub warns_of {
	my ($kind, $what, @warnings) = @_;
	is(scalar(@warnings), $kind eq 'bare' ? 1 : 0, "$kind: warnings of the $what");
	like($warnings[0], qr/may lack callers: no unwind information in frames_bare\.exe; build it/, 'of this program') if @warnings;
	return;
}
