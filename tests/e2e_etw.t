#!/usr/bin/perl
# hdiff reads ETW logs. Live memory at each moment is the sum of the events, whatever their headers,
# order, stacks and modules are. Missing information is reported.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP;
use Test::More;
use Hunt;
use Pages;
use Logs;

my $dir = fresh_dir();
# a separate folder, because other tests make files at the same time
my $temporary = $ENV{ $as_windows ? 'TMP' : 'TMPDIR' } = "$dir/temporary";
mkdir $temporary;
my $hdiff = "$root/build/linux/hdiff";
my $number = 0;
my @deep = (0x7ff800001234, 0x140001000, 0x140002000);
my $deep = 'ntdll+1234 app+1000 app+2000';

sub log_of { # returns a log that already has the usual process and modules
	my (%options) = @_;
	my $log = Logs->new(%options);
	my $high = ($options{bits} // 64) == 64 ? 0x7ff800000000 : 0x77000000;
	my $low = ($options{bits} // 64) == 64 ? 0x140000000 : 0x400000;
	$log->volume(0, '\Device\HarddiskVolume3\\', 'C:\\');
	$log->process(type => 3, at => 0, image => 'app.exe');
	$log->image(type => 3, at => 0, base => $low, bytes => 0x20000, path => '\Device\HarddiskVolume3\app\app.exe');
	$log->image(type => 3, at => 0, base => $high, bytes => 0x100000, path => '\Device\HarddiskVolume3\Windows\ntdll.dll');
	return $log;
}

sub put { my ($log, %how) = @_; return $log->write("$dir/" . ++$number . '.etl', %how) }

# Returns hdiff's result at a moment, { "FRAME FRAME ..." => [BYTES, BLOCKS] }, and its warnings.
sub live {
	my ($path, @options) = @_;
	my $run = run([$hdiff, '-o', 'json', '--no-symbols', '--sum', @options, $path]);
	is($run->{status}, 0, "$path is read") or diag($run->{err});
	my $json = eval { decode_json($run->{out}) } or return ({}, []);
	my %rows;
	for my $row (@{ $json->{rows} }) {
		my $frames = join ' ', map { $_->{module} ? "$_->{module}+$_->{offset}" : $_->{address} } @{ $row->{frames} };
		$rows{$frames} = [$row->{new}{bytes}, $row->{new}{blocks}];
	}
	return (\%rows, $json->{inputs}[0]{warnings});
}

sub is_live {
	my ($path, $moment, $expected, $name) = @_;
	my ($rows) = live("$path\@$moment");
	is_deeply($rows, $expected, $name);
}

sub says {
	my ($path, $pattern, $name) = @_;
	my (undef, $warnings) = live("$path\@end");
	ok((grep { /$pattern/ } @$warnings), $name) or diag(explain($warnings));
}

sub says_not {
	my ($path, $pattern, $name) = @_;
	my (undef, $warnings) = live("$path\@end");
	ok(!(grep { /$pattern/ } @$warnings), $name) or diag(explain($warnings));
}

subtest 'blocks come, change and go' => sub {
	my $log = log_of();
	$log->heap_event(32, at => 50);
	$log->alloc(at => 100, bytes => 1000, addr => 0x20000, frames => \@deep);
	$log->alloc(at => 200, bytes => 500, addr => 0x21000, frames => [0x140003000]);
	$log->realloc(at => 300, bytes => 700, addr => 0x21000, old => 0x21000, frames => [0x140004000]);
	$log->alloc(at => 400, bytes => 24, addr => 0x22000, frames => [0x123456], heap => 0x90000);
	$log->free(at => 1000, addr => 0x20000);
	$log->heap_event(35, at => 2000, heap => 0x90000);
	$log->free(at => 3000, addr => 0x99000);
	my $path = put($log);
	is_live($path, '250ms', { $deep => [1000, 1], 'app+3000' => [500, 1] }, 'two were allocated');
	is_live($path, '350ms', { $deep => [1000, 1], 'app+4000' => [700, 1] }, 'one has another size and stack in its place');
	is_live($path, '500ms', { $deep => [1000, 1], 'app+4000' => [700, 1], '123456' => [24, 1] }, 'a third, in no module');
	is_live($path, '1500ms', { 'app+4000' => [700, 1], '123456' => [24, 1] }, 'one is freed');
	is_live($path, 'end', { 'app+4000' => [700, 1] }, 'a heap that is destroyed takes its blocks with it');
	says($path, '^1 free of blocks', 'a free of what was there before is counted');
	says($path, 'tested only on generated logs', 'a warning states that no real heap trace was tested');
	says_not($path, 'already running', 'a log that saw the heap being made has all');
};

subtest 'a moving realloc is an allocation and a free, or one event' => sub {
	my $log = log_of();
	$log->alloc(at => 100, bytes => 100, addr => 0x20000, frames => \@deep);
	$log->alloc(at => 200, bytes => 300, addr => 0x30000, frames => \@deep);
	$log->free(at => 200.1, addr => 0x20000);
	$log->realloc(at => 200.2, bytes => 300, old_bytes => 100, addr => 0x30000, old => 0x20000, frames => [0x140004000]);
	my $path = put($log);
	is_live($path, 'end', { $deep => [300, 1] }, 'the realloc beside them adds nothing');
	says_not($path, 'moved by a realloc', 'and nothing is reported');
	$log = log_of();
	$log->alloc(at => 100, bytes => 100, addr => 0x20000, frames => \@deep);
	$log->realloc(at => 200.2, bytes => 300, old_bytes => 100, addr => 0x30000, old => 0x20000, frames => [0x140004000]);
	$path = put($log);
	is_live($path, 'end', { 'app+4000' => [300, 1] }, 'alone it counts');
	says($path, '^1 block moved by a realloc without', 'and is reported');
};

subtest 'all headers, old heads, 32 bits, several processors' => sub {
	for my $bits (64, 32) {
		for my $header (qw(system compact full instance)) {
			for my $old (0, 1) {
				my $log = log_of(bits => $bits, old => $old);
				my $base = $bits == 64 ? 0x140000000 : 0x400000;
				$log->alloc(at => 100, bytes => 10, addr => 0x20000, frames => [$base + 0x10], header => $header);
				$log->alloc(at => 200, bytes => 20, addr => 0x21000, cpu => 1, tid => 2, frames => [$base + 0x20], header => $header);
				$log->free(at => 300, addr => 0x20000, cpu => 2, tid => 3, header => $header);
				$log->alloc(at => 400, bytes => 40, addr => 0x20000, cpu => 0, frames => [$base + 0x30], header => $header);
				my $path = put($log, each => 2, reverse => 1);
				my $what = "$bits bits, $header" . ($old ? ', Windows 7' : '');
				is_live($path, '250ms', { 'app+10' => [10, 1], 'app+20' => [20, 1] }, "$what: before the free");
				is_live($path, 'end', { 'app+20' => [20, 1], 'app+30' => [40, 1] }, "$what: the order is that of time");
			}
		}
	}
	my $log = log_of();
	$log->alloc(at => 100, bytes => 10, addr => 0x20000, frames => [0x140000010], header => 'perfinfo');
	$log->alloc(at => 110, bytes => 10, addr => 0x30000, frames => [0x140000010], header => 'perfinfo', pid => 99);
	$log->free(at => 200, addr => 0x30000, header => 'perfinfo');
	my $path = put($log);
	is_live("$path", 'end', { 'app+10' => [10, 1] }, 'events without a process are those of their stack')
	    if $log->heap_event(32, at => 50) && ($path = put($log));
};

subtest 'a 32-bit process of 64-bit Windows' => sub {
	my $log = log_of();
	my $old = sub { my ($type, $at, @numbers) = @_; $log->event(of => 'heap', type => $type, at => $at, bits => 32, payload => pack('V*', @numbers)) };
	$log->image(type => 3, at => 0, base => 0x77000000, bytes => 0x100000, path => '\Device\HarddiskVolume3\Windows\SysWOW64\ntdll.dll');
	$old->(33, 100, 0x10000, 123, 0x20000, 3);
	$log->stack(at => 100, frames => [0x77000010, 0x7ff800001234]);
	$old->(33, 200, 0x10000, 77, 0x21000, 3);
	$log->stack(at => 200, frames => [0x77000020]);
	$old->(34, 300, 0x10000, 0x21000, 0x21000, 99, 77, 3);
	$old->(36, 400, 0x10000, 0x20000, 3);
	my $path = put($log);
	is_live($path, '250ms', { 'ntdll+10 ntdll+1234' => [123, 1], 'ntdll+20' => [77, 1] }, 'its numbers have 4 bytes, frames have 8');
	is_live($path, 'end', { '' => [99, 1] }, 'and so have its other events');
	like(run([$hdiff, '--list', '-o', 'json', $path])->{out}, qr/"pid":4321,"parent_pid":1,"bits":32/, 'it is known to be 32-bit');
};

subtest 'a free and an allocation at one time' => sub {
	my $log = log_of();
	$log->alloc(at => 100, bytes => 10, addr => 0x20000, frames => \@deep);
	$log->alloc(at => 200, bytes => 30, addr => 0x20000, frames => [0x140000010], cpu => 0);
	$log->free(at => 200, addr => 0x20000, cpu => 1, tid => 2);
	my $path = put($log);
	is_live($path, 'end', { 'app+10' => [30, 1] }, 'the free comes first');
	says_not($path, 'allocated where one was', 'and nothing is lost');
};

subtest 'stacks by key' => sub {
	my $log = log_of();
	$log->alloc(at => 100, bytes => 1, addr => 0x20000);
	$log->key(at => 100.01, for => 100, key => 0xf1);
	$log->alloc(at => 200, bytes => 2, addr => 0x21000);
	# The stack's kernel part comes first, then its user part.
	$log->key(at => 200.01, for => 200, key => 0xf2, part => 37);
	$log->key(at => 500, for => 200, key => 0xf1, part => 38);
	$log->define_key(at => 600, key => 0xf1, frames => \@deep, type => 35);
	$log->define_key(at => 600, key => 0xf2, frames => [0xfffff80000001000], type => 35);
	$log->alloc(at => 700, bytes => 4, addr => 0x22000);
	$log->key(at => 700.01, for => 700, key => 0xf1); # defines the key again
	$log->alloc(at => 800, bytes => 8, addr => 0x23000);
	$log->key(at => 800.01, for => 800, key => 0xf3); # this key is never defined
	$log->alloc(at => 900, bytes => 16, addr => 0x24000);
	$log->define_key(at => 1000, key => 0xf1, frames => [0x140003000]);
	my $path = put($log);
	my ($rows, $warnings) = live("$path\@end");
	is_deeply($rows->{$deep}, [3, 2], 'a key stands for its first definition behind its use');
	is_deeply($rows->{'app+3000'}, [4, 1], 'and for the next one behind that');
	ok((grep { /^2 of 5 allocations have no stack/ } @$warnings), 'those without are counted') or diag(explain($warnings));
	my $list = decode_json(run([$hdiff, '--list', '-v', '-o', 'json', $path])->{out});
	is_deeply($list->{stacks}, { full => 0, keys => 5, definitions => 3, bound => 5, unbound => 0, undefined => 1 },
		'the list counts bound stacks');
};

subtest 'frames in the kernel are left out' => sub {
	my $log = log_of();
	$log->alloc(at => 100, bytes => 1, addr => 0x20000, frames => [0xfffff80000001000, @deep]);
	is_live(put($log), 'end', { $deep => [1, 1] }, 'the rest of the stack stays');
};

subtest 'virtual memory' => sub {
	my $log = log_of();
	my $page = 0x1000;
	$log->pages(at => 100, addr => 0x1000000, bytes => 16 * $page, flags => 0x2000, frames => [0x140000100]);
	$log->pages(at => 200, addr => 0x1000000, bytes => 4 * $page, flags => 0x1000, frames => [0x140000200]);
	$log->pages(at => 300, addr => 0x1002000, bytes => 4 * $page, flags => 0x1000, frames => [0x140000300]);
	$log->pages(at => 400, addr => 0x1000000, bytes => 1 * $page, flags => 0x4000);
	# Events of another process.
	$log->pages(at => 450, addr => 0x5000000, bytes => 2 * $page, flags => 0x3000, owner => 99, pid => 4321);
	$log->pages(at => 500, addr => 0x2000000, bytes => 3 * $page, flags => 0x1000, frames => [0x140000400]);
	$log->pages(at => 600, addr => 0x1000000, bytes => 0, flags => 0x8000);
	my $path = put($log);
	my @committed = ('--process', 4321, '--heap', 'virtual');
	my $at = sub { my ($ms) = @_; my ($rows) = live("$path\@${ms}ms", @committed); return $rows };
	is_deeply($at->(250), { 'app+200' => [4 * $page, 1] }, 'a part is committed');
	is_deeply($at->(350), { 'app+200' => [4 * $page, 1], 'app+300' => [2 * $page, 1] }, 'what is committed stays what it was');
	is_deeply($at->(420), { 'app+200' => [3 * $page, 1], 'app+300' => [2 * $page, 1] }, 'a part is given up');
	is_deeply($at->(550), { 'app+200' => [3 * $page, 1], 'app+300' => [2 * $page, 1], 'app+400' => [3 * $page, 1] },
		'what was reserved before the log counts once it is committed; memory of others does not');
	is_deeply($at->(600), { 'app+400' => [3 * $page, 1] }, 'a release without a size releases all');
	my (undef, $warnings) = live("$path\@end", @committed);
	ok(!(grep { /only on generated logs/ } @$warnings), 'no warning of heap events without heap events');
	like(run([$hdiff, $path])->{err}, qr/2 with virtual-memory events, none with heap events/, 'one of two must be chosen');
};

subtest 'the pages of heaps' => sub {
	my $log = log_of();
	my $page = 0x1000;
	$log->pages(at => 100, addr => 0x1000000, bytes => 64 * $page, flags => 0x2000, frames => [0x140000100]);
	$log->pages(at => 110, addr => 0x1000000, bytes => 4 * $page, flags => 0x1000, frames => [0x140000200]);
	$log->pages(at => 120, addr => 0x2000000, bytes => 2 * $page, flags => 0x3000, frames => [0x140000300]);
	$log->alloc(at => 200, bytes => 100, addr => 0x1000100, frames => \@deep);
	$log->pages(at => 300, addr => 0x1004000, bytes => 4 * $page, flags => 0x1000, frames => [0x140000200]);
	$log->alloc(at => 310, bytes => 10, addr => 0x1004100, frames => \@deep);
	$log->pages(at => 400, addr => 0x1004000, bytes => 4 * $page, flags => 0x4000);
	$log->pages(at => 500, addr => 0x1000000, bytes => 0, flags => 0x8000);
	$log->pages(at => 600, addr => 0x1000000, bytes => 8 * $page, flags => 0x3000, frames => [0x140000400]);
	my $path = put($log);
	my $other = { 'app+300' => [2 * $page, 1] };
	is_live($path, '150ms', { %$other, 'app+200' => [4 * $page, 1] }, 'pages count');
	is_live($path, '250ms', { %$other, $deep => [100, 1] }, 'until there is a block in them');
	is_live($path, '350ms', { %$other, $deep => [110, 2] }, 'nor do those that the heap takes later');
	is_live($path, '450ms', { %$other, $deep => [110, 2] }, 'or gives back');
	is_live($path, 'end', { %$other, $deep => [110, 2], 'app+400' => [8 * $page, 1] }, 'what comes in the place of the heap counts');
};

subtest 'modules that come and go' => sub {
	my $log = log_of();
	my $base = 0x7ff900000000;
	my $volume = '\Device\HarddiskVolume3';
	$log->image(type => 10, at => 100, base => $base, bytes => 0x10000, path => "$volume\\one.dll", timestamp => 5);
	$log->alloc(at => 200, bytes => 1, addr => 0x20000, frames => [$base + 0x10]);
	$log->image(type => 2, at => 300, base => $base, bytes => 0x10000, path => "$volume\\one.dll");
	$log->image(type => 10, at => 500, base => $base, bytes => 0x10000, path => "$volume\\two.dll");
	$log->alloc(at => 600, bytes => 4, addr => 0x22000, frames => [$base + 0x10]);
	$log->alloc(at => 700, bytes => 8, addr => 0x23000, frames => [0x7ffa00000020]);
	$log->image(type => 4, at => 900, base => 0x7ffa00000000, bytes => 0x1000, path => "$volume\\late.dll");
	$log->identity(at => 900, base => 0x140000000, bytes => 0x20000, timestamp => 0x5f000000, name => 'app.exe',
		guid => pack('C16', 1 .. 16), age => 3, pdb => 'app.pdb');
	my $path = put($log);
	is_live($path, 'end', { 'one+10' => [1, 1], 'two+10' => [4, 1], 'late+20' => [8, 1] },
		'a frame is in what was there at its time');
	my $dump = run([$hdiff, '--extract', "$path\@end"])->{out};
	like($dump, qr/^\/\/ hsnap: module base=140000000 timestamp=5F000000 .*pdb="app\.pdb" guid=0403020106050807090A0B0C0D0E0F10 age=3\r?$/m,
		'a module has its PDB');
	like($dump, qr/140000000 +20000 C:\\app\\app\.exe\r?$/m, 'and its path is one of people');
	like($dump, qr/^\/\/ hsnap: stacks source=etw\r?$/m, 'the dump has the source of its stacks');
};

subtest 'which process' => sub {
	my $log = log_of();
	$log->process(type => 1, at => 10, pid => 77, image => 'Other.exe');
	$log->alloc(at => 100, bytes => 1, addr => 0x20000, frames => \@deep);
	$log->alloc(at => 110, bytes => 10, addr => 0x20000, frames => \@deep, pid => 77, tid => 9);
	$log->process(type => 2, at => 300, pid => 77, image => 'Other.exe');
	$log->alloc(at => 400, bytes => 100, addr => 0x21000, pid => 77, tid => 10);
	my $path = put($log);
	my $run = run([$hdiff, $path]);
	is($run->{status}, 2, 'of several one must be chosen');
	like($run->{err}, qr/^hdiff: \Q$path\E: .* \(77 Other\.exe, 4321 app\.exe\); choose one by its PID \(hdiff --process, hsnap -p\)/m, 'the processes are listed');
	for my $name (77, 'Other.exe', 'other') {
		my ($rows) = live($path, '--process', $name);
		is((values %$rows)[0][0], 10, "--process $name");
	}
	my (undef, $warnings) = live($path, '--process', 77);
	ok((grep { /^1 heap event left out: a later process/ } @$warnings), 'who gets its number later is another');
	like(run([$hdiff, '--process', 'no.exe', $path])->{err}, qr/^hdiff: no\.exe: no such process/, 'an unknown one is named');
	like(run([$hdiff, '--list', $path])->{out}, qr/^ +77 +2 +0  Other\.exe +heap blocks by stack$/m, 'the list has it');
};

subtest 'losses are reported' => sub {
	my $log = log_of(lost => [7, 2]);
	$log->alloc(at => 100, bytes => 1, addr => 0x20000, frames => \@deep);
	my $path = put($log);
	says($path, '^7 events were lost', 'events');
	says($path, 'at least 2 buffers', 'buffers');
	says($path, 'already running when the log began', 'existing blocks');
	is(run([$hdiff, '--max-growth', '1M', "$path\@0s", "$path\@end"])->{status}, 2, 'no limit can be judged');
	is(run([$hdiff, '--max-growth', '1M', '--force', "$path\@0s", "$path\@end"])->{status}, 0, 'but by force');
};

subtest 'several logs of a session are one' => sub {
	my ($kernel, $heap) = (log_of(), Logs->new);
	$heap->alloc(at => 100, bytes => 1000, addr => 0x20000, frames => \@deep);
	$heap->free(at => 2000, addr => 0x20000);
	my ($k, $h) = (put($kernel), put($heap));
	my $run = run([$hdiff, '-o', 'json', '--no-symbols', $k, "$h\@10ms", "$h\@1s"]);
	is(eval { decode_json($run->{out})->{totals}{all}{growth}{bytes} }, 1000, 'two moments of the two') or diag($run->{err});
	like($run->{out}, qr/"module":"ntdll"/, 'modules are from the other one');
	my $list = run([$hdiff, '--list', '-o', 'json', $k, $h])->{out};
	is(scalar @{ decode_json($list)->{files} }, 2, 'the list has both');
	my $packed = "$dir/both.zip";
	system("cd '$dir' && zip -q both.zip " . join(' ', map { s{.*/}{}r } $k, $h)) == 0 or plan(skip_all => 'no zip');
	is_live($packed, '1s', { $deep => [1000, 1] }, 'also in an archive');
	for my $how ('-0', '-9', '-fz') { # stored, deflated, and with 64-bit headers
		unlink $packed;
		system("cd '$dir' && zip -q $how both.zip " . join(' ', map { s{.*/}{}r } $k, $h)) == 0 or next;
		is_live($packed, '1s', { $deep => [1000, 1] }, "zip $how");
	}
	is_deeply([files_in($temporary)], [], 'no temporary file stays');
};

subtest 'a recording of one process' => sub {
	my $log = log_of();
	$log->alloc(at => 100 + $_, bytes => $_, addr => 0x20000 + 64 * $_, frames => \@deep) for 1 .. 50;
	my $path = put($log);
	my $run = run(["$root/build/linux/hsnap", 'record', '--from', $path, '-p', 4321, '-o', "$dir/run.hrec"]);
	is($run->{status}, 0, 'hsnap record --from') or diag($run->{err});
	my ($rows, $warnings) = live("$dir/run.hrec\@end");
	is_deeply($rows, { $deep => [1275, 50] }, 'it has what the log has');
	ok((grep { /only on generated logs/ } @$warnings), 'and prints the warning');
	like(run([$hdiff, '--list', "$dir/run.hrec"])->{out}, qr/^remark +heap events are /m, 'so does its list');
	is(run(["$root/build/linux/hsnap", 'record', '--from', $path])->{status}, 2, 'it needs a file');
};

# Uses the slowest build and ever larger logs, until reading takes long enough to show progress.
subtest 'progress on a terminal' => sub {
	needs_linux('script(1)');
	my @hsnap = ("$root/build/asan/hsnap", 'record', '--overwrite', '--from', "$dir/large.etl", '-p', 4321, '-o', "$dir/large.hrec");
	my ($seen, $bytes) = ('', 0);
	for (my $mib = 64; $mib <= 4096 && $seen !~ /reading: /; $mib *= 4) {
		is(run(["$root/build/linux/bench/gen_etl", "$dir/large.etl", $mib, 1000])->{status}, 0, "a log of $mib MiB");
		$bytes = -s "$dir/large.etl";
		$seen = run(['script', '-qec', join(' ', map { "'$_'" } @hsnap), '/dev/null'])->{out};
	}
	my @done = $seen =~ m{\rhsnap: reading: (\d+) of $bytes, \S*large\.etl}g;
	cmp_ok(scalar @done, '>', 0, 'a line shows it');
	ok((grep { $_ > 0 && $_ <= $bytes } @done) == @done, 'by bytes of the file') or diag("@done");
	like($seen, qr/\r +\r[^\r]*\z/, 'and is wiped in the end') or diag($seen);
	is(run(\@hsnap)->{err}, '', 'on no terminal nothing is printed');
	unlink "$dir/large.etl";
};

subtest 'charts and windows' => sub {
	my $log = log_of();
	$log->alloc(at => 100, bytes => 1 << 20, addr => 0x100000, frames => \@deep);
	$log->free(at => 500, addr => 0x100000);
	$log->alloc(at => 1000, bytes => 100, addr => 0x100000, frames => [0x140003000]);
	my $path = put($log);
	like(run([$hdiff, '--over-time', '-o', 'csv', $path])->{out}, qr/1048576/, 'use over time has the peak');
	my ($rows) = live("$path\@peak");
	is_deeply($rows, { $deep => [1 << 20, 1] }, 'the peak is a moment');
	like(run([$hdiff, '--transient', '-d', '--no-symbols', $path])->{out}, qr/1048576/, 'what came and went');
	like(run([$hdiff, '--histogram', $path])->{out}, qr/\S/, 'sizes');
	is(run([$hdiff, '-o', 'html', '-f', "$dir/page.html", $path])->{status}, 0, 'a page');
	my $recording = page_data(slurp("$dir/page.html"))->{recording};
	is(scalar @{ $recording->{rows} }, 2, '... with both stacks');
	is((sort { $b <=> $a } map { $_->{highest} } @{ $recording->{edges} })[0], 1 << 20, '... and the highest use of its spans');
};
done_testing;
