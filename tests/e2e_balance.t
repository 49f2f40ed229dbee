#!/usr/bin/perl
# hdiff's figures of a process: what changed, in all forms, and limits. The truth is what targets/holds.c
# states in its comment, and made dumps. tests/live/balance.t checks the figures themselves.
use strict;
use warnings;
use FindBin qw($Bin);
use IO::Uncompress::Gunzip qw(gunzip);
use lib "$Bin/lib";
use JSON::PP;
use List::Util qw(sum);
use Test::More;
use Hunt;
use Images;

my $dir = fresh_dir();
my @steps = map { "$dir/$_.txt" } 1 .. 3;
my @private = qw(heap-blocks heap-overhead heap-free tracer thread-stacks virtual image-copies view-copies system);

subtest 'snapshots' => \&capture_steps;
subtest 'hdiff' => \&check_hdiff;
subtest 'limits' => \&check_limits;
subtest 'made dumps' => \&check_made;
subtest 'made heaps' => \&check_made_heaps;
done_testing;

# Snapshots of the three steps of a traced target.
sub capture_steps {
	my $target = target("$root/build/win64/targets/holds.exe", [], traced => 1);
	for my $step (1 .. 3) {
		syswrite $target->{to}, "\n" if $step > 1;
		$target->line; # its own sums: tests/live/balance.t
		is($target->step, $step, "step $step");
		is(hsnap('-p', $target->{pid}, '-f', win($steps[$step - 1]))->{status}, 0, 'a snapshot');
	}
	is($target->quit, 0, 'the target ends');
	return;
}

# hdiff repeats the figures of the dumps, and compares the first with the last.
sub check_hdiff {
	my @files = @steps;
	for my $count (1 .. 3) {
		my @used = @files[0 .. $count - 1];
		my $json = hdiff_json(@used);
		my %row = map { $_->{key} => $_ } @{ $json->{balance} // $json->{series}[0]{balance} };
		my @noted = map { balance_of($_) } @used;
		$_->{'private-memory'} = sum(@$_{@private}) for @noted;
		for my $key (sort { $a cmp $b } map { keys %$_ } @noted) {
			my @values = map { $_->{$key} // 0 } @noted;
			is_deeply($row{$key}{values}, \@values, "$count: $key") or next;
			is($row{$key}{change}, $count > 1 ? $values[-1] - $values[0] : undef, '... its change');
			is($row{$key}{unit}, $key =~ /threads$|^handles|gdi|user/ ? 'count' : 'bytes', '... its unit');
			is(defined $row{$key}{verdict}, $count > 2, '... a verdict only in a trend') or next;
		}
		# Step 2 adds everything, step 3 nothing.
		is_deeply([map { $row{$_}{verdict} } qw(threads mapped thread-stacks-reserved)], [('grew-once') x 3], 'verdicts') if $count > 2;
	}
	my $text = run(["$root/build/linux/hdiff", @files[0, 1]])->{out};
	like($text, qr/^private memory \+1\d\d\.\d MiB: /m, 'the report opens with private memory');
	like($text, qr/^not private: mapped files and sections \+3\.0 MiB$/m, 'views');
	like($text, qr/^threads \+40(?:, handles \+541 \(Event \+500, Thread \+40, Section \+1\))?$/m, 'objects');
	like($text, qr/thread stacks \+[48]0\.0 MiB/, 'thread stacks');
	my ($balance) = $text =~ /^(private memory .*?)\n\n/ms;
	my @lines = split /\n/, $balance // '';
	cmp_ok(scalar @lines, '<=', 6, 'at most six lines') or diag($balance);
	is(scalar(grep { length > 80 } @lines), 0, '... of 80 columns') or diag($balance);
	my $umdh = run(["$root/build/linux/hdiff", '-d', @files[0, 1]])->{out};
	like($umdh, qr{^// threads \+40}m, 'a comment in the form of UMDH');
	my $page = run(["$root/build/linux/hdiff", '-o', 'html', @files[0, 1]])->{out};
	like($page, qr{<li>threads \+40}, 'the page');
	@lines = map { decode_json($_) } map { split /\n/, run(["$root/build/linux/hdiff", qw(-o jsonl), $_])->{out} } @files[0, 1];
	my %lines = map { join(' ', @$_{qw(path private_bytes threads handles)}) => 1 } @lines;
	is_deeply([sort keys %lines], [map { my $has = balance_of($_); join ' ', $_, map { $has->{$_} // -1 } qw(private threads handles) } @files[0, 1]], 'JSON Lines');
	gunzip(\run(["$root/build/linux/hdiff", qw(-o pprof), @files[0, 1]])->{out}, \my $profile);
	like($profile, qr/threads \+40/, 'a comment of a profile');
	unlike(run(["$root/build/linux/hdiff", @files[1, 2]])->{out}, qr/^(?:threads|handles|not private)/m, 'nothing where nothing changed');
	return;
}

sub check_limits {
	my @files = @steps[0, 1];
	my %status = ('threads:39' => 1, 'threads:40' => 0, 'mapped:3145727' => 1, 'mapped:3M' => 0, 'thread-stacks-reserved:39M' => 1,
		'thread-stacks-reserved:80M' => 0, 'private-memory:1G' => 0, 'heap-blocks:19M' => 1);
	for my $limit (sort keys %status) {
		my $run = run(["$root/build/linux/hdiff", '--no-symbols', '--max-growth', $limit, @files]);
		is($run->{status}, $status{$limit}, $limit);
		is($run->{err} =~ /^hdiff: .* grew by .* over the limit of /m, $status{$limit} == 1, '... and the message');
	}
	is(run(["$root/build/linux/hdiff", '--max-growth', $_, @files])->{status}, 2, "$_ is refused") for qw(thread:5 :5 handles: threads:1K mapped:x);
	my $both = run(["$root/build/linux/hdiff", qw(--max-growth threads:39 --max-growth mapped:3M --max-growth 1G), @files]);
	is($both->{status}, 1, 'limits can be combined');
	return;
}

# A dump whose figures are made.
sub made {
	my ($name, @notes) = @_;
	spew("$dir/$name", join '', "// hsnap: dump format=1 tool=0\n", "// hsnap: process id=7\n",
		map({ "// hsnap: $_\n" } @notes), "// hsnap: end blocks=0 requested=0 overhead=0\n");
	return "$dir/$name";
}

sub check_made {
	my $parts = sub { my %part = (map({ $_ => 0 } @private), @_); return join ' ', 'memory', map { "$_=$part{$_}" } sort keys %part };
	my @files = (made('a.txt', $parts->('thread-stacks' => 1 << 20, private => 1 << 20), 'counts threads=3 gdi=10'),
		made('b.txt', $parts->('thread-stacks' => 11 << 20, private => 5 << 20), 'counts threads=13 gdi=10 user=4'));
	my $text = run(["$root/build/linux/hdiff", @files])->{out};
	like($text, qr/^private memory \+10\.0 MiB: thread stacks \+10\.0 MiB$/m, 'the only part that grew');
	like($text, qr/^the system counts \+4\.0 MiB of private bytes$/m, 'a counter that disagrees');
	like($text, qr/^threads \+10$/m, 'figures that did not change, or are not in both, are left out');
	like($text, qr/^the rows explain 0 %, but not thread stacks \('hsnap run' shows by whom\)$/m, 'what the rows lack');
	check_explained($parts);
	is(run(["$root/build/linux/hdiff", '--max-growth', 'user:0', @files])->{status}, 2, 'no limit for a figure that OLD lacks');
	is(run(["$root/build/linux/hdiff", '--max-growth', 'gdi:0', @files])->{status}, 0, 'but for one that both have');
	my @handles = (made('x.txt', 'counts handles=100', 'handles type=Event count=60', 'handles type="ALPC Port" count=40'),
		made('y.txt', 'counts handles=641', 'handles type=Event count=560', 'handles type="ALPC Port" count=40', 'handles type=Section count=41'));
	like(run(["$root/build/linux/hdiff", @handles])->{out}, qr/^handles \+541 \(Event \+500, Section \+41\)$/m, 'handles by type');
	my %status = ('handles:540' => 1, 'handles:541' => 0, 'handles:event:499' => 1, 'handles:Event:500' => 0, 'handles:ALPC Port:0' => 0,
		'handles:Section:40' => 1, 'handles:Desktop:0' => 0);
	is(run(["$root/build/linux/hdiff", '--max-growth', $_, @handles])->{status}, $status{$_}, $_) for sort keys %status;
	my %by = map { $_->{key} => $_ } @{ hdiff_json(@handles)->{balance} };
	is_deeply([map { $by{"handles:$_"}{values} } 'Event', 'ALPC Port', 'Section'], [[60, 560], [40, 40], [0, 41]], '... in json');
	my @moved = (made('m.txt', $parts->('heap-blocks' => 5000, 'heap-free' => 3000)), made('n.txt', $parts->('heap-blocks' => 6000, 'heap-free' => 2000)));
	unlike(run(["$root/build/linux/hdiff", @moved])->{out}, qr/^private/m, 'nothing if memory only moved inside of heaps');
	my %row = map { $_->{key} => $_ } @{ hdiff_json(@files)->{balance} };
	is_deeply([@{ $row{user} }{qw(values change)}], [[undef, 4], undef], 'null in json');
	is($row{handles}, undef, 'what no dump has is absent');
	my $less = run(["$root/build/linux/hdiff", $files[1], made('c.txt', 'counts threads=13')])->{out};
	unlike($less, qr/^private/m, 'a dump without parts');
	my $bad = run(["$root/build/linux/hdiff", $files[0], made('d.txt', 'memory private=x')]);
	like($bad->{err}, qr/d\.txt:3: /, 'a malformed note is reported with its line');
	is($bad->{status}, 2, '... with status 2');
	return;
}

# Returns the values after `heap` and `figure` of each record of --heaps, keyed by these two.
sub csv_of {
	my $run = run(["$root/build/linux/hdiff", qw(-o csv --heaps), @_]);
	my ($names, @records) = map { [split /,/, $_, -1] } split /\r\n/, $run->{out};
	is($run->{status}, 0, 'csv of ' . @_ . ' dumps');
	my ($at) = grep { $names->[$_] eq 'figure' } 0 .. $#$names;
	return ([@$names[$at + 1 .. $#$names]], { map { join(' ', grep { length } @$_[$at - 1, $at]) => [@$_[$at + 1 .. $#$_]] } @records });
}

sub check_csv {
	my @files = @_;
	my ($names, $row) = csv_of(@files);
	is_deeply($names, [qw(unit growth new old)], 'csv: columns');
	is_deeply($row->{'0x10000 committed'}, ['bytes', 1048576 - 65536, 1048576, 65536], 'csv: a heap that stays');
	is_deeply($row->{'0x10000 free'}, ['bytes', 1048576 - 6500 - 1616 - (65536 - 6400 - 1600), 1048576 - 6500 - 1616, 65536 - 6400 - 1600], '... its free space');
	is_deeply($row->{'0x10000 largest_free'}, ['bytes', '', '', ''], '... what the dumps do not record');
	is_deeply($row->{'0x20000 blocks'}, ['count', '', '', 10], '... one that was destroyed');
	is_deeply($row->{'0x30000 blocks'}, ['count', '', 20, ''], '... a new one');
	my $heap = 'heap addr=10000 kind=nt committed=65536 reserved=1048576';
	@files = map { made("csv$_->[0].txt", $heap, "counts threads=$_->[1] gdi=10" . ($_->[0] == 2 ? ' user=4' : '')) } [1, 3], [2, 13], [3, 23];
	(undef, $row) = csv_of($files[0]);
	is_deeply($row->{threads}, ['count', '', 3, ''], 'csv: one dump');
	(undef, $row) = csv_of(@files[0, 1]);
	is_deeply([@$row{qw(threads gdi user)}], [['count', 10, 13, 3], ['count', 0, 10, 10], ['count', '', 4, '']], 'csv: objects of a process');
	($names, $row) = csv_of(@files);
	is_deeply($names, [qw(unit growth new old verdict per_hour), map { "value $_" } @files], 'csv: columns of a trend');
	is_deeply($row->{threads}, ['count', 20, 23, 3, 'grows', '', 3, 13, 23], '... its values');
	is_deeply($row->{user}, ['count', '', '', '', '', '', '', 4, ''], '... a figure that one dump has');
	is_deeply($row->{'0x10000 reserved'}, ['bytes', 0, 1048576, 1048576, ('') x 5], '... a heap');
	return;
}

sub check_made_heaps {
	my $heap = sub { my ($addr, $committed, $blocks, $bytes) = @_;
		return "heap addr=$addr kind=nt committed=$committed reserved=1048576 stackless-blocks=$blocks stackless-requested=$bytes stackless-overhead=" . 16 * $blocks };
	my $dump = sub {
		my ($name, @heaps) = @_;
		my ($blocks, $bytes) = map { my $at = $_; sum(map { $_->[$at] } @heaps) } 2, 3;
		spew("$dir/$name", join '', "// hsnap: dump format=1 tool=0\n", "// hsnap: process id=7\n",
			map({ '// hsnap: ' . $heap->(@$_) . "\n" } @heaps),
			sprintf "// hsnap: end blocks=%d requested=%d overhead=%d\n", $blocks, $bytes, 16 * $blocks);
		return "$dir/$name";
	};
	my @files = ($dump->('h1.txt', ['10000', 65536, 100, 6400], ['20000', 65536, 10, 1000]),
		$dump->('h2.txt', ['10000', 1048576, 101, 6500], ['30000', 131072, 20, 100_000]));
	my %heap = map { $_->{heap} => $_ } @{ hdiff_json('--heaps', @files)->{heaps} };
	is_deeply([map { $heap{10000}{$_}{free} } qw(old new)], [65536 - 6400 - 1600, 1048576 - 6500 - 1616], 'free space of a heap that stays');
	is_deeply([map { $_->{committed} } @{ $heap{20000} }{qw(old new)}], [65536, undef], 'a heap that was destroyed');
	is_deeply([map { $_->{blocks} } @{ $heap{30000} }{qw(old new)}], [undef, 20], 'a new one');
	my $text = run(["$root/build/linux/hdiff", '--heaps', @files])->{out};
	like($text, qr/^ +10000 +\+1 +\+100 B +\+959\.9 KiB +\+960\.0 KiB +1\.0 MiB +99 %  nt$/m, 'a line for a heap that stays') or diag($text);
	like($text, qr/^ +20000 +-10 +-1000 B .* 0 %  nt, destroyed$/m, '... for one that was destroyed');
	like($text, qr/^ +30000 +\+20 .*  nt, new$/m, '... for a new one');
	like($text, qr/^ +all +\+11 +.*  3 heaps$/m, '... and for all');
	is(run(["$root/build/linux/hdiff", '--heaps', @$_])->{status}, 2, "@$_ is refused") for ['--tree', @files], ['-o', 'folded', @files], ['--sum', @files];
	check_csv(@files);
	spew("$dir/umdh.txt", "10 bytes + 8 at 655FB0 by BackTrace2\n\t7B601234\n\n");
	check_error(run(["$root/build/linux/hdiff", '--heaps', "$dir/umdh.txt"]), 'hdiff', 'a log without heaps', '--heaps', 'only dumps made by hsnap');
	return;
}

# Memory from VirtualAlloc and stacks of threads are explained as far as the tracer recorded them.
sub check_explained {
	my ($parts) = @_;
	my $virtual = sub {
		my ($name, $bytes, $recorded, @more) = @_;
		my $stacks = @more && $more[0] eq 'stacks' ? shift @more : '';
		my ($number, $words, $kind, $part) = $stacks ? (4, 'Thread stacks', 'stack', 'thread-stacks') : (1, 'VirtualAlloc', 'virtual', 'virtual');
		my $heading = join '', map { "*- - - - - - - - - - $_ - - - - - - - - - -\n" } "Start of data for heap \@ $number", "Heap $number Hogs: $words", "End of data for heap \@ $number";
		my $entry = sprintf "%X bytes + 0 at 7F0000 by BackTrace1\n\t140001490\n\n", $recorded;
		$heading =~ s/(?=\*[- ]+End)/$recorded ? $entry : ''/e;
		spew("$dir/$name", join '', "// hsnap: dump format=1 tool=0\n", "// hsnap: process id=7\n", '// hsnap: ' . $parts->($part => $bytes, @more) . "\n",
			"// hsnap: heap addr=$number kind=$kind committed=$recorded reserved=$recorded\n", $heading,
			sprintf "// hsnap: end blocks=%d requested=%d overhead=0\n", $recorded ? 1 : 0, $recorded);
		return "$dir/$name";
	};
	my $MB = 1 << 20;
	my $explained = sub { return (run(["$root/build/linux/hdiff", @_])->{out} =~ /^(the rows explain .*)$/m)[0] };
	my $old = $virtual->('v0.txt', $MB, 0);
	is($explained->($old, $virtual->('v1.txt', 11 * $MB, 10 * $MB)), undef, 'all that grew was recorded');
	is($explained->($old, $virtual->('v2.txt', 11 * $MB, 5 * $MB)), 'the rows explain 50 %, but not other private memory (the tracer did not see it)', 'half of it was recorded');
	is($explained->($old, $virtual->('v3.txt', 11 * $MB, 10 * $MB, 'thread-stacks' => 6 * $MB)),
		"the rows explain 63 %, but not thread stacks ('hsnap run' shows by whom)", 'what was recorded is not missing');
	$old = $virtual->('s0.txt', $MB, 0, 'stacks');
	is($explained->($old, $virtual->('s1.txt', 11 * $MB, 10 * $MB, 'stacks')), undef, 'all stacks that grew were recorded');
	my @threads = map { $virtual->("t$_.txt", (1 + 30 * $_) * $MB, 10 * $_ * $MB, 'stacks') } 0, 1;
	for my $more (0, 1, 2) {
		spew($threads[1], slurp($threads[1]) =~ s{^(?:// hsnap: counts.*\n)?(?=// hsnap: heap )}{"// hsnap: counts threads=" . (1 + $more) . "\n"}emr);
		spew($threads[0], slurp($threads[0]) =~ s{^(?:// hsnap: counts.*\n)?(?=// hsnap: heap )}{// hsnap: counts threads=1\n}mr);
		is($explained->(@threads), $more == 1 ? undef : "the rows explain 33 %, but not thread stacks (WinDbg's ~*k lists the threads)", "$more more threads than before, one recorded");
	}
	is($explained->($old, $virtual->('s2.txt', 11 * $MB, 5 * $MB, 'stacks')), "the rows explain 50 %, but not thread stacks (WinDbg's ~*k lists the threads)", '... half of them');
	return;
}
