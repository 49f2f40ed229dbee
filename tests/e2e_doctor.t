#!/usr/bin/perl
# hsnap doctor reads a child with known blocks and finds nothing off; and it does
# notice: a child that lies about one block in any way turns the row about it off.
use strict;
use warnings;
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Time::HiRes qw(time);
use Hunt;

my $exe = "$root/build/win64/hsnap.exe";
my $doctor = doctor();
is($doctor->{status}, 0, 'nothing is off: status 0');
is($doctor->{err}, '', 'no complaint');
my @rows = rows($doctor->{out});
is_deeply([grep { $_->{ok} eq 'OFF' } @rows], [], 'no row is off');
my @counted = grep { $_->{expected} ne '-' } @rows;
is_deeply([grep { $_->{expected} != $_->{found} } @counted], [], 'what is ok has equal numbers');
like($doctor->{out}, qr/^All that is there is as it should be\.$/m, 'and it says so');

my @heaps = ('process heap', 'growable', 'fixed maximum', 'no-serialize');
my @groups = ('blocks of 0 to 1024 bytes', 'blocks to 16 KiB', 'blocks to 256 KiB', 'reallocated blocks');
for my $source ('walk', 'walk+ust', 'tracer') {
	for my $heap (@heaps) {
		my %found = map { $_->{what} => $_->{found} }
		    grep { $_->{source} eq $source && $_->{heap} eq $heap } @rows;
		my @missing = grep { !$found{$_} } @groups, $heap eq 'fixed maximum' ? () : 'big blocks',
		    $heap eq 'process heap' ? () : 'freed blocks gone', $source eq 'tracer' ? 'stacks' : ();
		is_deeply(\@missing, [], "$source, $heap: every kind of block was there and found");
		is($found{'other blocks'}, 0, "$source, $heap: and nothing else")
		    if $heap ne 'process heap';
	}
}
for my $heap (@heaps[1 .. 3]) {
	my %sums = map { $_->{what} => $_->{found} }
	    grep { $_->{source} eq 'sums' && $_->{heap} eq $heap } @rows;
	cmp_ok($sums{'number of blocks'}, '>', 500, "$heap: the sums are right");
	cmp_ok($sums{'bytes in them'}, '>', 500_000, "$heap: in bytes too");
}
my ($stacks) = map { $_->{found} } grep { $_->{source} eq 'tracer' && $_->{what} eq 'stacks' } @rows;
cmp_ok($stacks, '>', 2000, 'stacks of thousands of blocks lead to where they were allocated');
my %verdicts = map { ("$_->{source} $_->{what}" => $_->{ok}) } @rows;
is($verdicts{'ust dump'}, 'not there', 'Wine has no stacks of +ust, and that is not called ok');
is($verdicts{'os the child'}, 'not there', 'nor has it stacks of its own');
is($verdicts{'walk segment heap'}, 'not there', 'nor a segment heap');
like($doctor->{out}, qr/^NtGlobalFlag +1000 in the child with \+ust\r?$/m, 'the flag was set in the child');
like($doctor->{out}, qr/^\Q$_\E +kind wine\b/m, "$_: the layout that read it") for @heaps;
unlike($doctor->{out}, qr/as an administrator/, 'which no administrator can help');
like($doctor->{out}, qr/^held +by suspending it\r?$/m, 'how it was held: Wine has no clones');
is_deeply([unix_pids($exe), children()], [], 'no process is left');

# What a lie is about, and the rows that it turns off.
my $small = 'blocks of 0 to 1024 bytes';
my ($number, $bytes) = ('number of blocks', 'bytes in them');
my %lies = (
	size => ['growable', $small],
	place => ['growable', $small, 'other blocks'],
	silent => ['growable', 'other blocks'],
	freed => ['growable', 'freed blocks gone'],
	heap => ['no-serialize', $small],
	site => ['growable', 'stacks'],
);
for my $lie (sort keys %lies) {
	my ($heap, @whats) = @{ $lies{$lie} };
	my $result = doctor($lie);
	my @sources = $lie eq 'site' ? 'tracer' : ('walk', 'walk+ust', 'tracer');
	is($result->{status}, 1, "a lie ($lie): status 1");
	my %off = map { ("$_->{source}, $_->{heap}, $_->{what}" => $_) } grep { $_->{ok} eq 'OFF' } rows($result->{out});
	for my $source (@sources) {
		for my $what (@whats) {
			my $name = "$source, $heap, $what";
			ok($off{$name}, "a lie ($lie): $name is off");
			like($result->{out}, qr/^OFF: \Q$name\E: \S/m, "a lie ($lie): $name, and why");
		}
	}
	# A block that is not found has no stack either.
	delete @off{ map { my $source = $_; map { "$source, $heap, $_" } @whats, 'stacks' } @sources };
	my %sums = (size => [$bytes], silent => [$number, $bytes], freed => [$number, $bytes], heap => [$number, $bytes]);
	for my $what (@{ $sums{$lie} // [] }) {
		for my $sum_of ($lie eq 'heap' ? ('growable', $heap) : $heap) {
			ok(delete $off{"sums, $sum_of, $what"}, "a lie ($lie): $what in $sum_of is off");
		}
	}
	is_deeply([sort keys %off], [], "a lie ($lie): nothing else is off");
	like($result->{out}, qr/rows? (?:is|are) OFF: do not trust/, "a lie ($lie): the last line says so");
}
is_deeply([unix_pids($exe), children()], [], 'no process is left by a doctor that finds faults');

# hsnap.exe alone: the tracer cannot be tried, which is a fault that can be mended.
my $dir = fresh_dir();
copy($exe, "$dir/hsnap.exe") or die "$dir/hsnap.exe: $!\n";
my $alone = run([wine("$dir/hsnap.exe", 'doctor')]);
is($alone->{status}, 1, 'without its DLL: status 1');
like($alone->{out}, qr/^OFF: tracer, the child: .*keep hsnap-tracer64\.dll beside hsnap\.exe/m, 'and what to do');
is_deeply([map { "$_->{source}, $_->{what}" } grep { $_->{ok} eq 'OFF' } rows($alone->{out})],
	['tracer, the child'], 'the rest is tried all the same');

die_after($_) for 0, 0.1, 0.3;

check_error(hsnap('doctor', 'me'), 'hsnap', 'an argument', 'me', 'doctor');
check_error(hsnap('doctor', '--fast'), 'hsnap', 'an unknown option', '--fast');
is(hsnap('doctor', '--child')->{status}, 2, 'the child does not run without its parent');
is(hsnap('doctor', '--child', 1, 2, 3, 'x')->{status}, 2, 'nor with handles that are none');
my $linux = run(["$root/build/linux/hsnap", 'doctor']);
check_error($linux, 'hsnap', 'elsewhere', 'doctor', 'Windows');
done_testing;

# The doctor's children that run in our prefix.
sub children {
	my $prefix = $ENV{HSNAP_WINE_PREFIX} // "$root/build/wine";
	return grep {
		my $pid = $_;
		my ($command, $environ) = map { eval { slurp("/proc/$pid/$_") } // '' } qw(cmdline environ);
		$command =~ /^hsnap\0doctor\0--child\0/ && "\0$environ" =~ /\0WINEPREFIX=\Q$prefix\E\0/;
	} map { m{(\d+)$} } glob '/proc/[0-9]*';
}

# True when $done->() is, within a time in which it must be.
sub soon {
	my ($done) = @_;
	my $until = time + 60;
	until ($done->()) {
		return 0 if time > $until;
		select undef, undef, undef, 0.005;
	}
	return 1;
}

# A doctor that is killed leaves no child, at whatever moment: its first child is
# there, or has been for a while.
sub die_after {
	my ($seconds) = @_;
	my $pid = Hunt::start([wine($exe, 'doctor')]);
	my $what = "killed $seconds s after its first child began";
	ok(soon(sub { children() }), "$what: there is one");
	select undef, undef, undef, $seconds;
	my @doctor = unix_pids($exe);
	kill KILL => @doctor;
	cmp_ok(scalar @doctor, '>', 0, "$what: so it is");
	Hunt::finish($pid);
	ok(soon(sub { !children() }), "$what: and the child ends");
}

sub doctor {
	my ($lie) = @_;
	return run([wine($exe, 'doctor')], env => defined $lie ? { HSNAP_DOCTOR_LIE => $lie } : {});
}

# The table's rows: words in columns of a fixed width.
sub rows {
	my ($text) = @_;
	my @rows;
	for (split /\r?\n/, $text) {
		my @columns = /^(.{9}) (.{14}) (.{26}) ( *\d+| *-) ( *\d+| *-)  (ok|OFF|not there)$/ or next;
		s/^ +| +$//g for @columns;
		my %row;
		@row{qw(source heap what expected found ok)} = @columns;
		push @rows, \%row;
	}
	return @rows;
}
