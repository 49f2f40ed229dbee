#!/usr/bin/perl
# hsnap doctor reads a child with known blocks, alive and from a minidump, and finds
# nothing off; and it does notice: a child that lies about one block in any way turns
# the row about it off.
use strict;
use warnings;
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Time::HiRes qw(time);
use Hunt;

my $exe = "$root/build/win64/hsnap.exe";
my $prefix = $ENV{HSNAP_WINE_PREFIX} // "$root/build/wine";
my $dir = fresh_dir();
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
for my $source ('walk', 'file', 'walk+ust', 'tracer') {
	for my $heap (@heaps) {
		my %found = map { $_->{what} => $_->{found} }
		    grep { $_->{source} eq $source && $_->{heap} eq $heap } @rows;
		my @missing = grep { !$found{$_} } @groups, $heap eq 'fixed maximum' ? () : 'big blocks',
		    $heap eq 'process heap' ? () : 'freed blocks gone', $source eq 'tracer' ? 'stacks' : ();
		is_deeply(\@missing, [], "$source, $heap: every kind of block was there and found");
		is($found{'blocks that overlap'}, 0, "$source, $heap: none in another");
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
like($doctor->{out}, qr/^\Q$_\E +kind wine, layout wine 8\.0 x64,/m, "$_: the layout that read it") for @heaps;
unlike($doctor->{out}, qr/as an administrator/, 'which no administrator can help');
like($doctor->{out}, qr/^held +by suspending it\r?$/m, 'how it was held: Wine has no clones');
for my $source (qw(ust os)) {
	my ($reason) = $doctor->{out} =~ /^not there: $source, (.*)$/m;
	like($reason, qr/\(.*\)$/, "$source: why not, and nothing that cannot help: $reason");
}
ok(soon(sub { !unix_pids($exe) && !children() }), 'no process is left');
is_deeply([minidumps()], [], 'nor a minidump');
short();
no_file();


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
	# One that is in the minidump too; the others are told where none can be written, which takes its time.
	my $has_file = $lie eq 'silent';
	my $result = $has_file ? doctor($lie) : fileless($exe, '-v', $lie);
	my @sources = $lie eq 'site' ? 'tracer' : ('walk', $has_file ? 'file' : (), 'walk+ust', 'tracer');
	is($result->{status}, 1, "a lie ($lie): status 1");
	my %off = map { ("$_->{source}, $_->{heap}, $_->{what}" => $_) } grep { $_->{ok} eq 'OFF' } rows($result->{out});
	for my $source (@sources) {
		for my $what (@whats) {
			my $name = "$source, $heap, $what";
			ok($off{$name}, "a lie ($lie): $name is off");
			like($result->{out}, qr/^OFF: \Q$name\E: expected \d+, found \d+: \S/m, "a lie ($lie): $name, and why");
		}
	}
	# A block that is not found has no stack either.
	delete @off{ map { my $source = $_; map { "$source, $heap, $_" } @whats, 'stacks' } @sources };
	# What the walk lists beyond the truth is its to judge, and the sums have to have it too.
	my %sums = (size => [$bytes], heap => [$number, $bytes], place => [$number, $bytes]);
	for my $what (@{ $sums{$lie} // [] }) {
		ok(delete $off{"sums, $heap, $what"}, "a lie ($lie): $what in $heap is off");
	}
	is_deeply([sort keys %off], [], "a lie ($lie): nothing else is off");
	like($result->{out}, qr/^\d+ rows? (?:is|are) OFF: do not trust .*\n\z/m, "a lie ($lie): the last line says so");
}
ok(soon(sub { !unix_pids($exe) && !children() }), 'no process is left by a doctor that finds faults');

# hsnap.exe alone: the tracer cannot be tried, which is a fault that can be mended.
copy($exe, "$dir/hsnap.exe") or die "$dir/hsnap.exe: $!\n";
my $alone = fileless("$dir/hsnap.exe", '-v');
is($alone->{status}, 1, 'without its DLL: status 1');
like($alone->{out}, qr/^OFF: tracer, the child: .*keep hsnap-tracer64\.dll beside hsnap\.exe/m, 'and what to do');
is_deeply([map { "$_->{source}, $_->{what}" } grep { $_->{ok} eq 'OFF' } rows($alone->{out})],
	['tracer, the child'], 'the rest is tried all the same');

die_when('its child is there', \&children);
die_when('a minidump is there', \&minidumps);
die_when('a minidump is large', sub { grep { -s > 4_000_000 } minidumps() });

check_error(hsnap('doctor', 'me'), 'hsnap', 'an argument', 'me', 'doctor');
check_error(hsnap('doctor', '--fast'), 'hsnap', 'an unknown option', '--fast');
is(hsnap('doctor', '-v', '--child')->{status}, 2, 'nor is --child an option');
is(hsnap('doctor', '--child')->{status}, 2, 'the child does not run without its parent');
is(hsnap('doctor', '--child', 1, 2, 3, 'x')->{status}, 2, 'nor with handles that are none');
my $linux = run(["$root/build/linux/hsnap", 'doctor']);
check_error($linux, 'hsnap', 'elsewhere', 'doctor', 'Windows');
done_testing;

# The doctor's children that run in our prefix.
sub children {
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

# A doctor that is killed leaves neither a child nor a minidump, at whatever moment.
sub die_when {
	my ($what, $is_time) = @_;
	my $pid = Hunt::start([wine($exe, 'doctor')]);
	ok(soon($is_time), "killed when $what");
	my @doctor = unix_pids($exe);
	kill KILL => @doctor;
	cmp_ok(scalar @doctor, '>', 0, "killed when $what: it was there");
	Hunt::finish($pid);
	ok(soon(sub { !children() }), "killed when $what: the child ends");
	ok(soon(sub { !minidumps() }), "killed when $what: no minidump stays");
}

# With every row printed.
sub doctor {
	my ($lie) = @_;
	return run([wine($exe, 'doctor', '-v')], env => defined $lie ? { HSNAP_DOCTOR_LIE => $lie } : {});
}

# Where no temporary file can be made. Wine takes TMP from its registry, so it is set inside.
sub fileless {
	my ($program, $option, $lie) = @_;
	my $command = join "\r\n", '@set TMP=' . win("$dir/none"), '@set TEMP=%TMP%',
	    '@' . win($program) . " doctor $option", '@exit /b %errorlevel%', '';
	spew("$dir/doctor.bat", $command);
	return run([wine('cmd', '/c', win("$dir/doctor.bat"))],
		env => defined $lie ? { HSNAP_DOCTOR_LIE => $lie } : {});
}

# The doctor's minidumps that are there.
sub minidumps { return glob "$prefix/drive_c/users/*/Temp/hsnap-doctor-*.dmp" }

# Without -v, one line for each source and heap with the sums of its rows, and a lie shows.
sub short {
	my ($well, $lied) = (run([wine($exe, 'doctor')]), fileless($exe, '', 'size'));
	is($well->{status}, 0, 'in short: status 0');
	is($lied->{status}, 1, 'in short, a lie: status 1');
	cmp_ok(scalar(my @lines = split /\n/, $well->{out}), '<', 42, 'in short: less than half of it');
	for my $source ('walk', 'file', 'walk+ust', 'tracer') {
		for my $heap (@heaps) {
			my $sum = 0;
			$sum += $_->{found} for grep { $_->{source} eq $source && $_->{heap} eq $heap
			    && $_->{what} =~ /^(?:blocks (?:of|to)|big|reallocated) / } @rows;
			my $start = sprintf '%-9s %-14s %d/', $source, $heap, $sum;
			like($well->{out}, qr{^\Q$start$sum\E blocks\b.* ok$}m, "in short: $source, $heap: $sum blocks");
			next if $heap ne 'growable' || $source eq 'file';
			my $less = $sum - 1;
			like($lied->{out}, qr{^\Q$start$less\E blocks\b.* OFF$}m, "in short, a lie: $source, $heap");
		}
	}
	like($lied->{out}, qr/^OFF: walk, growable, blocks of 0 to 1024 bytes: expected \d+, found \d+: the block at /m,
		'in short, a lie: what and why');
}

# Where no file can be written there is no such trial, and that is no fault.
sub no_file {
	my $result = fileless($exe, '');
	is($result->{status}, 0, 'no place for a file: status 0');
	like($result->{out}, qr/^not there: file, a minidump: .*cannot create \(.+\)$/m, 'no place for a file: it is said')
	    or diag("$result->{out}$result->{err}");
}

# The table's rows: words in columns of a fixed width.
sub rows {
	my ($text) = @_;
	my @rows;
	for (split /\r?\n/, $text) {
		my @columns = /^(.{9}) (.{14}) (.{26}) ( *\d+| *-) ( *\d+| *-)  (ok|note|OFF|not there)$/ or next;
		s/^ +| +$//g for @columns;
		my %row;
		@row{qw(source heap what expected found ok)} = @columns;
		push @rows, \%row;
	}
	return @rows;
}
