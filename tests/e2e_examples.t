#!/usr/bin/perl
# The manual's examples work as typed. Each is run in a folder with the files that it names, and
# must do what its description promises. An example that this test does not know is a failure. The
# truth is in the contents of this test's dumps.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use IO::Compress::Gzip qw(gzip $GzipError);
use POSIX ();
use Test::More;
use Hunt;
use People;
use Recordings;
use Series;

my $dir = fresh_dir();

# Contents of the stacks: [name of the second innermost function, its module, file, blocks in a,
# blocks in b, bytes of each block].
my @stacks = (
	['parse', 'app', 'parse.c', 1, 5, 30_000],
	['test_parse', 'app', 'test.c', 0, 4, 50_000],
	['cache_fill', 'lib', 'cache.c', 2, 9, 100],
	['load', 'lib', 'load.c', 3, 3, 64],
	map { ["f$_", 'app', "f$_.c", 0, $_, 10] } 1 .. 14,
);
my %base = (app => 0x14000 << 16, lib => 0x7FF81234 << 16, ntdll => 0x7FFA << 32);

for my $index (0, 1) {
	my $name = $index ? 'b.txt' : 'a.txt';
	spew("$dir/$name", dump_text($index));
	gzip("$dir/$name" => "$dir/$name.gz") or die $GzipError;
}
spew("$dir/known.txt", "leak:test_parse\n");

my %growth = map { $_->[0] => ($_->[4] - $_->[3]) * $_->[5] } @stacks;
my $total = 0;
$total += $_ for values %growth;

my %wanted = (
	'hdiff a.txt b.txt' => sub {
		my ($result) = @_;
		my $report = people($result->{out});
		is(scalar @{ $report->{stacks} }, scalar grep({ $_ } values %growth), 'what changed, and no more');
		is($report->{total}[0], signed_units($total), 'it adds up');
	},
	q{hdiff -n 10 -i '^app!' -x 'test' a.txt b.txt} => sub {
		my ($result) = @_;
		my @rows = @{ people($result->{out})->{stacks} };
		is(scalar @rows, 10, 'ten rows');
		is($rows[0]{growth}, signed_units($growth{parse}), 'the largest growth of the module without its tests');
		unlike($result->{out}, qr/test_parse/, 'no tests');
	},
	'hdiff --group function a.txt b.txt' => sub {
		my ($result) = @_;
		my %self = map { $_->{name} => $_->{self} } @{ people($result->{out})->{groups} };
		is($self{"app!$_"}, signed_units($growth{$_}), "$_ and its growth") for qw(parse test_parse f14);
		unlike($result->{out}, qr/^[^\n]*RtlAllocateHeap$/m, 'allocators are no functions that ask');
	},
	'hdiff -o csv --group file -f growth.csv a.txt b.txt' => sub {
		like(slurp("$dir/growth.csv"), qr/\bcache\.c\b/, 'by file');
	},
	'gzip -dc b.txt.gz | hdiff --force a.txt -' => sub {
		my ($result) = @_;
		is(people($result->{out})->{total}[0], signed_units($total), 'it adds up');
	},
	'hdiff --max-growth 64K,100 --suppress known.txt a.txt b.txt' => sub {
		my ($result) = @_;
		my $grew = $total - $growth{test_parse}; # nothing shrank
		is($result->{status}, 1, 'the limit is exceeded');
		like($result->{err}, qr/growth of [\d.]+ [KM]iB \($grew bytes\) is [\d.]+ [KM]iB over the limit of 64\.0 KiB/, 'and by how much is reported');
		like($result->{err}, qr/leak:test_parse suppressed stacks: 1, bytes: $growth{test_parse}, blocks: 4/, 'what is known of');
	},
);

# A trend. Two stacks leak, one of them 2 MiB an hour, and a cache fills up.
mkdir "$dir/trend";
series("$dir/trend", [map { 1763632800000 + 1_800_000 * $_ } 1 .. 12], {
	leak => [map { (1 << 20) * $_ } 1 .. 12],
	slow => [map { 1000 * $_ } 1 .. 12],
	cache => [map { $_ < 6 ? 1 << 20 : 50 << 20 } 1 .. 12],
});
$wanted{'hdiff -n 10 --verdict grows trend/*.txt'} = sub {
	my ($result) = @_;
	is_deeply([map { $_->{frames}[0] =~ /^app!(\w+)/ } @{ people($result->{out})->{stacks} }], [qw(leak slow)], 'what grows, and nothing else');
};
$wanted{'hdiff --max-growth 1M/h trend/*.txt'} = sub {
	my ($result) = @_;
	is($result->{status}, 1, 'the limit is exceeded');
	like($result->{err}, qr{growth of [\d.]+ MiB/h \(\d+ bytes/h\) is over the limit of 1\.0 MiB/h \(1048576 bytes/h\); fastest: app!leak < app\+FFF, by 2\.0 MiB/h \(2097152 bytes/h\)$}m,
		'the message names what grows');
};

# A recording with known contents.
my $events = random_events(seed => 5, events => 2000, ms => 30_000) =~ s/(\ntime 15\d+\n)/$1mark loaded\n/r;
make_recording($events, "$dir/run.hrec");
my $replay = replay($events);
my $use = sub { my ($moment) = @_; return use_at($replay, position_of($replay, $moment)) };
my $sum = sub { my $bytes = 0; $bytes += $_->{bytes} for grep { $_->{heap} ne 2 } @{ $_[0] }; return $bytes };
my $shows = sub {
	my ($result, $bytes, $what) = @_;
	is(people($result->{out})->{total}[0], $bytes, $what);
};
$wanted{'hdiff run.hrec@10s run.hrec@20s'} = sub { $shows->($_[0], signed_units($use->('20s') - $use->('10s')), 'what grew') };
$wanted{'hdiff --transient --from 10s --to 20s run.hrec'} = sub {
	$shows->($_[0], in_units($sum->(fate_of($replay, 'aifi', '10s', '20s'))), 'what came and went');
};
$wanted{'hdiff --over-time --module app -o svg -f use.svg run.hrec'} = sub {
	my $most = $replay->peak(sub { $_->{heap} ne 2 && $_->{stack} =~ /\bapp\+/ })->{bytes};
	my ($highest) = sort { $b <=> $a } slurp("$dir/use.svg") =~ /; highest (\d+) at /g;
	is($highest, $most, 'the most that the module used');
};
$wanted{'hdiff --extract -f loaded.txt run.hrec@loaded'} = sub {
	my $dump = run(tool('hdiff', 'linux', '--no-symbols', "$dir/loaded.txt"));
	is(report($dump->{out})->{total}[0], $use->('loaded'), 'a dump of that moment');
};

run_examples('hdiff', \%wanted);

# Examples of hsym. The program is local, as bin/app.exe; in moved.txt it was built at C:\build. Its
# names come from the symbol table.
my $program = "$root/build/win64/samples/leak_wrapper.exe";
my ($size) = map { hex } run(['x86_64-w64-mingw32-objdump', '-p', $program])->{out} =~ /^SizeOfImage\s+([0-9a-f]+)/m;
my %start = map { /^[0-9a-f]*?([0-9a-f]{8}) [tT] (\w+)$/ ? ($2 => hex($1) & 0xfffff) : () }
    split /\n/, run(['x86_64-w64-mingw32-nm', $program])->{out};
my $hdir = fresh_dir();
mkdir "$hdir/$_" for qw(bin symbols store);
copy($program, "$hdir/bin/app.exe") or die "$!\n";
spew("$hdir/a.txt", program_dump(win("$hdir/bin/app.exe")));
spew("$hdir/moved.txt", program_dump('C:\build\app.exe'));
my $named = sub { # returns a dump with the names of both functions
	my ($text) = @_;
	like($text, qr/^\/\/ hsnap: name addr=[0-9A-F]+ function="?$_"? offset=8 /m, "it has $_()") for qw(xmalloc main);
};
my %hsym = (
	'hsym -o a.txt a.txt' => sub { $named->(slurp("$hdir/a.txt")) },
	'hsym --explain a.txt' => sub { like($_[0]{out}, qr/^app\.exe +2 +2 /m, 'a row for app.exe') },
	q{hsym --map 'C:\build=bin' -o found.txt moved.txt} => sub { $named->(slurp("$hdir/found.txt")) },
	q{hsym -y 'symbols;srv*store*https://symbols.example.com' -o named.txt a.txt} => sub { $named->(slurp("$hdir/named.txt")) },
	'hsym -e bin/app.exe +10' => sub { like($_[0]{out}, qr/^app[!+]/, 'a frame') },
);
$dir = $hdir;
run_examples('hsym', \%hsym);

# Examples of hsnap, with a program under Wine. Seconds stand for hours, and a few files for many.
# Ctrl-C ends the examples that would not end.
$dir = fresh_dir();
mkdir "$dir/dumps";
my $server = "$dir/server$$.exe";
copy("$root/build/win64/targets/grows.exe", $server) or die "$server: $!\n";
my $target = target($server);
is($target->step, 1, 'a program runs');
my $hsnap = "hsnap$$";
mkdir "$dir/bin";
copy("$root/build/win64/hsnap.exe", "$dir/bin/$hsnap.exe") or die "$!\n";
spew("$dir/bin/hsnap", "#!/bin/sh\nexec '$root/setup/wine' '$dir/bin/$hsnap.exe' \"\$@\"\n");
chmod 0755, "$dir/bin/hsnap";
my $written = sub { # checks that complete files with matching names exist
	my ($name, $count) = @_;
	my @files = grep { $_ =~ $name } files_in("$dir/dumps");
	is(scalar @files, $count, "$count files");
	is(run(tool('hdiff', 'linux', "$dir/dumps/$_"))->{status}, 0, "$_ is whole") for @files;
};
my %series = (
	q[hsnap -pn server -f "dumps/{name}-{pid}-{time}.txt" --every 30m --count 48 --keep 48 --by-stack] => sub {
		$written->(qr/^server$$-$target->{pid}-\d{8}T\d{6}Z\.txt$/, 2);
	},
	q[hsnap -pn server --all -f "dumps/{pid}-{n}.txt" --every 1h --on-exit wait --keep 24 --log dumps/log] => sub {
		$written->(qr/^$target->{pid}-000001\.txt$/, 1);
		like(slurp("$dir/dumps/log"), qr/^\S+Z interrupted: \d+ files? written$/m, 'the log records how it ended');
	},
	q[hsnap watch -pn server --growth 50M -f "dumps/{name}-{n}.txt" --count 20 --gzip] => sub {
		$written->(qr/^server$$-000001\.txt\.gz$/, 1);
	},
);
run_examples('hsnap', \%series, sub {
	my ($example) = @_;
	$example =~ s/ server / server$$ /;
	$example =~ s/--every \S+/--every 1s/;
	$example =~ s/--count \d+/$example =~ m,watch, ? '--count 1' : '--count 2'/e;
	interrupt_after("$dir/dumps/$target->{pid}-000001.txt", "$dir/bin/$hsnap.exe") if $example =~ /--all/;
	return $example;
});
is($target->quit, 0, 'the program ends well');
done_testing;

# Sends Ctrl-C to a program once a file exists.
sub interrupt_after {
	my ($file, $exe) = @_;
	my $pid = fork // die "fork: $!\n";
	return if $pid;
	my $until = time + $Hunt::limit;
	select undef, undef, undef, 0.05 until -e $file || time > $until;
	kill INT => unix_pids($exe);
	POSIX::_exit(0);
}

sub program_dump {
	my ($path) = @_;
	my $base = 0x14000 << 16;
	my $text = sprintf "// Loaded modules:\n//     Base Size Module\n//    %16X %8X %s\n// Process modules enumerated.\n",
	    $base, $size, $path;
	$text .= "*- - Start of data for heap @ 1E0000 - -\n10 bytes + 10 at 200000 by BackTrace1\n";
	$text .= sprintf "\t%X\n", $base + $start{$_} + 8 for qw(xmalloc main);
	return "$text\n*- - End of data for heap @ 1E0000 - -\n";
}

# Runs all examples of a page, which must be those of %$wanted. $change->() adapts each command.
sub run_examples {
	my ($program, $wanted, $change) = @_;
	my $page = slurp("man/$program.1");
	my $section = join '', $page =~ /^\.Sh (?:QUICK START|EXAMPLES)\n(.*?)(?=^\.Sh )/msg;
	my @examples = map { s/\\e/\\/gr =~ s/\\\(dq/"/gr } $section =~ /^\.Dl \$ (.*)$/mg;
	is_deeply([sort @examples], [sort keys %$wanted], "every example of $program is known here");
	for my $example (@examples) {
		subtest $example => sub {
			unlink "$dir/named.txt"; # another example wrote this file
			my $result = run(['sh', '-c', $change ? $change->($example) : $example], dir => $dir,
				env => { PATH => "$dir/bin:$root/build/linux:$ENV{PATH}" });
			is($result->{status}, 0, 'it works') unless $example =~ /--max-growth/;
			$wanted->{$example}->($result);
		};
	}
}

sub dump_text {
	my ($index) = @_;
	my $text = "// Loaded modules:\n//     Base Size Module\n";
	$text .= sprintf "//    %16X %8X C:\\made up\\%s.dll\n", $base{$_}, 0x100000, $_ for sort keys %base;
	$text .= "// Process modules enumerated.\n";
	$text .= name($base{ntdll} + 0x10, 'RtlAllocateHeap', 'heap.c', 1);
	$text .= name($base{app} + 0x20, 'main', 'main.c', 9);
	$text .= name(place($_), $stacks[$_][0], $stacks[$_][2], 7) for 0 .. $#stacks;
	$text .= "*- - Start of data for heap @ 1E0000 - -\n";
	for my $number (0 .. $#stacks) {
		my $stack = $stacks[$number];
		for my $block (1 .. $stack->[3 + $index]) {
			$text .= sprintf "%X bytes + 10 at %X by BackTrace%X\n", $stack->[5], 0x200000 + 64 * $block, $number + 1;
			$text .= sprintf "\t%X\n\t%X\n\t%X\n\n", $base{ntdll} + 0x10, place($number), $base{app} + 0x20
			    if $block == 1;
		}
	}
	return $text . "*- - End of data for heap @ 1E0000 - -\n";
}

sub place { return $base{ $stacks[$_[0]][1] } + 0x1000 + 16 * $_[0] }

sub name {
	my ($addr, $function, $file, $line) = @_;
	return sprintf "// hsnap: name addr=%X function=%s offset=5 file=%s line=%d\n", $addr, $function, $file, $line;
}
