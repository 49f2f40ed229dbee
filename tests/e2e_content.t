#!/usr/bin/perl
# Contents of blocks with hsnap --sample-content: the bytes that the program states that it wrote,
# and the targets of its pointers.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP;
use Test::More;
use Hunt;

my $dir = fresh_dir();
subtest 'a program'           => \&a_program;
subtest 'at the end of one'   => \&at_exit;
subtest 'notes that make no sense' => \&damaged;
done_testing;

# Returns { ALLOCATING FUNCTION => ROW }.
sub rows {
	my ($file, @options) = @_;
	my $ran = run(["$root/build/linux/hdiff", '-o', 'json', @options, $file]);
	is($ran->{status}, 0, "hdiff @options") or diag $ran->{err};
	my %rows;
	for my $row (@{ decode_json($ran->{out})->{rows} }) {
		my ($by) = grep { ($_->{function} // '') =~ /^make_/ } @{ $row->{frames} };
		$rows{ $by->{function} } = $row if $by;
	}
	return \%rows;
}

sub a_program {
	my $target = target("$root/build/win64/targets/filled.exe", [], traced => 1);
	my (%at, $pid);
	while (!$pid) {
		my $line = $target->line // last;
		$at{$1} = $2 if $line =~ /^block (\d+) (\w+)/;
		$pid = $1 if $line =~ /^ready (\d+)/;
	}
	ok($pid, 'the program is ready') or return;
	my ($live, $sums, $dump, $from) = map { "$dir/$_" } qw(live.txt sums.txt it.dmp from.txt);
	check_ok(hsnap('--sample-content', 3, '-p', $pid, '-f', win($live)), 'hsnap --sample-content');
	check_ok(hsnap('--sample-content', 100, '--by-stack', '-g', '-p', $pid, '-f', win($sums)), 'and by stack');
	is(run([wine("$root/build/win64/targets/dumper.exe", $pid, win($dump))])->{status}, 0, 'a minidump');
	syswrite $target->{to}, "\n";
	check_ok(run(["$root/build/linux/hsnap", '--sample-content', 3, '-z', $dump, '-f', $from]), 'of it');
	holds($live, 3, \%at);
	holds($from, 3, \%at);
	holds($sums, 10, \%at);
	my $named = "$dir/named.txt";
	check_ok(run(["$root/build/linux/hsym", '-o', $named, $live]), 'hsym');
	holds($named, 3, \%at, '--no-local-files', '--no-cache');
	my $text = run(["$root/build/linux/hdiff", '-n', 100, $live])->{out};
	my $text_at = $at{2001};
	like($text, qr/^ +block $text_at of 2,001 bytes:\n +\+00  696C613D72657375  user=ali\n/m, 'text has the block');
	like($text, qr/^ +\+00  \w{16}  .{8}  filled!session_methods\+10$/m, 'the methods of the object');
	like($text, qr/^ +\+08  0*\w+  .{8}  block $text_at of 2,001 bytes$/m, 'and its pointer');
	like($text, qr/^ +block \w+ of 2,\d+ bytes: zeros$/m, 'zeros are not listed');
}

sub holds {
	my ($file, $count, $at, @options) = @_;
	my $rows = rows($file, @options);
	my ($words, $of) = map { $rows->{$_}{contents} // [] } qw(make_text make_object);
	is(pack('H*', $words->[0]{data} // ''), 'user=alice; path=/login; a long line of text that goes on for more than is taken of a block' =~ s/^(.{64}).*/$1/r,
		'the first 64 bytes of the text');
	is_deeply([map { $_->{offset} } @{ $words->[0]{words} }], [], 'it leads nowhere');
	my ($object_at) = grep { $at->{$_} eq ($of->[0]{address} // '') } keys %$at;
	is($object_at, 2000 + 48, 'the object');
	my ($methods, $middle, $code, @more) = @{ $of->[0]{words} };
	is_deeply([@{ $methods->{frames}[0] }{qw(module function offset)}], ['filled', 'session_methods', '10'], 'its first word: its methods');
	is($methods->{offset}, 0, 'at 0');
	is_deeply($middle, { offset => 8, block => $at->{2001}, bytes => 2001, id => $rows->{make_text}{ids}[0] }, 'the second: the text');
	is_deeply([$code->{offset}, @{ $code->{frames}[0] }{qw(module function)}], [16, 'filled', 'on_close'], 'the third: code');
	is_deeply(\@more, [], 'and no more');
	is(substr($of->[0]{data}, 48, 48), '8877665544332211' . unpack('H*', "session 17") =~ tr/a-f/A-F/r . '0' x 12, 'a number and a name');
	my $zeros = $rows->{make_zeros}{contents} // [];
	is(@$zeros, $count, "$count of ten blocks of one stack");
	is_deeply([grep { $_->{data} !~ /^0{128}$/ || @{ $_->{words} } } @$zeros], [], 'all zeros');
	my %known = reverse %$at;
	is_deeply([grep { ($known{ $_->{address} } // 0) != $_->{bytes} } @$zeros], [], 'each where it is');
}

sub at_exit {
	my $out = "$dir/exit.txt";
	my $ran = run([wine("$root/build/win64/hsnap.exe", 'run', '--at-exit', win($out), '--sample-content', 1, '--', win("$root/build/win64/targets/filled.exe"))]);
	ok(-s $out, 'a snapshot at the end') or diag $ran->{err};
	is(scalar @{ rows($out)->{make_object}{contents} }, 1, 'has what a block holds');
	for ([['--sample-content', '0'], qr/1 to 100/], [['--sample-content', '101'], qr/1 to 100/], [['--sample-content', 'x'], qr/1 to 100/]) {
		my $bad = run(["$root/build/linux/hsnap", @{ $_->[0] }, '-z', "$dir/it.dmp"]);
		is($bad->{status}, 2, "@{$_->[0]}");
		like($bad->{err}, $_->[1], 'reports why');
	}
	my $alone = run([wine("$root/build/win64/hsnap.exe", 'run', '--sample-content', 1, '--', 'x.exe')]);
	like($alone->{err}, qr/--sample-content: .*--at-exit/, 'it is about a snapshot');
}

sub damaged {
	my $good = slurp("$dir/live.txt");
	my ($note) = $good =~ m{(// hsnap: content [^\r]*)};
	for my $bad (
		$note =~ s/data=../data=/r =~ s/data=/data=X/r,
		$note =~ s/data=/data=0/r,
		$note =~ s/data=/'data=' . '0' x 130/er,
		$note =~ s/ stack=\S+//r,
		$note =~ s/bits=\d+/bits=16/r,
		$note =~ s/addr=\w+/addr=XYZ/r,
		'// hsnap: pointer addr=1 offset=0 to=2 bytes=3 stack=1',
		'// hsnap: pointer addr=1',
	) {
		spew("$dir/bad.txt", $good =~ s/\Q$note\E/$bad/r);
		my $ran = run(["$root/build/linux/hdiff", '--no-symbols', "$dir/bad.txt"]);
		is($ran->{status}, 2, substr($bad, 0, 60));
		like($ran->{err}, qr/bad\.txt:\d+/, 'the line is named');
	}
}
