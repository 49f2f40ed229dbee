#!/usr/bin/perl
# Unless --overwrite is given, no option of any program replaces a dump, a UMDH log, a recording, a
# minidump, an ETW log or an archive with its output. Tests each option with each kind of file.
# Reports may replace reports. A dump may replace files that it makes superfluous: an older dump of
# the same process, or itself.
use strict;
use warnings;
no warnings 'portable';  # addresses have 64 bits
use FindBin qw($Bin);
use lib "$Bin/lib";
use Encode qw(encode);
use IO::Compress::Gzip qw(gzip);
use Test::More;
use Hunt;
use Images;
use Logs;
use Recordings;
use Series;

my $dir = fresh_dir();
my ($noon, $evening) = (1763640000000, 1763660000000);
my %is_output = map { $_ => 1 } map { ("hdiff $_", "hsym $_", "hsnap $_") } qw(-f --output --junit -o --at-exit --log --keep);
my %is_input = map { $_ => 1 } 'hdiff --strip-file', 'hdiff --suppress', 'hsnap --dump', 'hsnap -z', 'hsnap --program';

# ---------------------------------------------------------------- files of each kind

my $text = series_dump($noon, { leak => [1000, 10] });
my $umdh = "// \r\n// UMDH: version 6.1.7650.0: Logtime 2011-08-08 20:39 - Machine=NAME - PID=4711\r\n// \r\n\r\n"
    . "*- - - - - - - - - - Start of data for heap @ 650000 - - - - - - - - - -\r\n\r\n"
    . "40 bytes + 18 at 660000 by BackTrace1\r\n\t140001000\r\n\r\n"
    . "*- - - - - - - - - - End of data for heap @ 650000 - - - - - - - - - -\r\n";
my $log = Logs->new;
$log->process(type => 3, at => 0, image => 'app.exe');
$log->alloc(at => 100, bytes => 1000, addr => 0x20000, frames => [0x140001000]);
my $packed = '';
gzip(\$text => \$packed) or die 'gzip';
my $twice = '';
gzip(\$packed => \$twice) or die 'gzip';
# A comparison without UMDH's header, with blanks instead of TABs, in the forms that hdiff reads.
my $rows = "+    8000 (   9000 -   1000)      9 allocs    BackTraceA1B0\n+       8 (      9 -      1)    BackTraceA1B0    allocations\n\n"
    . "        ntdll!RtlAllocateHeap+3E\n        app!Load<int>+4 (D:\\p\\l.cpp, 8)\n\n\nTotal increase ==   8000 requested +    100 overhead =   8100\n";
my %pasted = ('plain' => $rows, 'after many lines' => "a line of a build log that is long enough\n" x 5000 . $rows, 'quoted' => $rows =~ s/^/> /gmr,
	'as HTML' => "<pre>\n" . $rows =~ s/</&lt;/gr =~ s/>/&gt;/gr . "</pre>\n", 'no-break blanks' => $rows =~ s/ {4}/"\xc2\xa0" x 4/ger,
	'in quotation marks' => $rows =~ s/^(.*)$/"$1"/gmr, 'UTF-16' => "\xff\xfe" . encode('UTF-16LE', $rows), 'colours' => $rows =~ s/^(.+)$/\e[32m$1\e[m/gmr,
	'total line alone' => 'Total increase ==   8000 requested +    100 overhead =   8100' . "\n");
gzip(\$rows => \$pasted{packed}) or die 'gzip';
my %kept = (
	'dump' => [$text, 'a heap dump'],
	'packed dump' => [$packed, 'a heap dump'],
	'UMDH log' => [$umdh, "a UMDH log"],
	'UMDH log of PowerShell' => ["\xff\xfe" . encode('UTF-16LE', $umdh), "a UMDH log"],
	'UTF-16 without a mark' => [encode('UTF-16LE', $umdh), "a UMDH log"],
	'UTF-16BE without a mark' => [encode('UTF-16BE', $umdh), "a UMDH log"],
	'UTF-32' => [encode('UTF-32', $umdh), "a UMDH log"],
	'UTF-32LE without a mark' => [encode('UTF-32LE', $umdh), "a UMDH log"],
	'build log with times' => ["2026-11-20T10:00:00.1Z building\n" . $umdh =~ s/^/2026-11-20T10:00:00.2Z /gmr, "a UMDH log"],
	'mail' => ["From: a\@example.com\nSubject: leak\n\nHello,\n\n" . $umdh, "a UMDH log"],
	'web page' => ["<html><body>\n<pre class=\"log\">" . $umdh =~ s/^.*?Start of data/Start of data/sr, 'a heap dump'],
	'twice packed dump' => [$twice, 'a heap dump'],
	'quoted UMDH log' => [$umdh =~ s/^/> /gmr, "a UMDH log"],
	'a part of a log' => ["64 bytes + 1C at 7F0120 by BackTrace2A\n\t7B601234\n", 'a heap dump'],
	'an old log' => ["00005320 bytes in 0x14 allocations (@ 0x00000428) by: BackTrace00B53\napp!main+0x00000040\n", 'a heap dump'],
	'recording' => [slurp(make_recording(random_events(events => 200, seed => 1), "$dir/made.hrec")), 'a recording'],
	'minidump' => ["MDMP\x93\xa7\0\0" . "\0" x 100, 'a minidump'],
	'ETW log' => [slurp($log->write("$dir/made.etl")), 'an ETW log'],
	"UMDH's comparison" => ["// Debug library initialized ...\r\n// + BYTES_DELTA (NEW_BYTES - OLD_BYTES) NEW_COUNT allocs BackTrace TRACEID\r\n", "a UMDH comparison"],
	'a part of one' => ["+    1000 (   2000 -   1000)     10 allocs\tBackTrace5D\n", "a UMDH comparison"],
	(map { ("pasted comparison, $_" => [$pasted{$_}, 'a UMDH comparison']) } keys %pasted),
	'suppressions' => ["# known\r\n\r\n leak:Cache::fill\r\nleak: main < x\r\n", 'a list of suppressions'],
	'suppressions of PowerShell' => ["\xff\xfe" . encode('UTF-16LE', "leak:Cache::fill\r\n"), 'a list of suppressions'],
	'frames to strip' => ["# ours\napp!xmalloc\n*!operator new*\napp!f2\n", 'a list of functions'],
	'program' => ["MZ\x90\0" . "\0" x 100, 'a program'], 'PDB' => ["Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0", 'a symbol file'],
	'xz' => ["\xfd7zXZ\0\0", 'a packed file'],
	'bzip2' => ["BZh91AY&SY", 'a packed file'],
	'zstd' => ["\x28\xb5\x2f\xfd\4", 'a packed file'],
	'zip' => ["PK\3\4" . "\0" x 100, 'a zip archive'],
);
my @dumps = map { spew("$dir/$_->[0].txt", series_dump($_->[1], { leak => [$_->[2], 10] })) } ['old', $noon, 1000], ['new', $evening, 5000];
make_image("$dir/image.dmp", 'win10-x64', '--blocks', 10) or BAIL_OUT('no image');

# ---------------------------------------------------------------- every option

my $hdiff = "$root/build/linux/hdiff";
my $hsym = "$root/build/linux/hsym";
my $hsnap = "$root/build/linux/hsnap";
my @tries = (
	['hdiff -f', sub { [$hdiff, '-f', $_[0], @dumps] }],
	['hdiff --output', sub { [$hdiff, "--output=$_[0]", @dumps] }],
	['hdiff -f of one dump', sub { [$hdiff, '-f', $_[0], $dumps[1]] }],
	['hdiff -o html -f', sub { [$hdiff, '-o', 'html', '-f', $_[0], @dumps] }],
	['hdiff -o pprof -f', sub { [$hdiff, '-o', 'pprof', '-f', $_[0], @dumps] }],
	['hdiff -f of a trend', sub { [$hdiff, '--across-restarts', '-f', $_[0], @dumps] }],
	['hdiff --junit', sub { [$hdiff, '--max-growth', 0, '--junit', $_[0], @dumps] }],
	['hdiff --list -f', sub { [$hdiff, '--list', '-f', $_[0], "$dir/made.hrec"] }],
	['hdiff --list -f of a log', sub { [$hdiff, '--list', '-f', $_[0], "$dir/made.etl"] }],
	['hdiff --extract -f', sub { [$hdiff, '--extract', '-f', $_[0], "$dir/made.hrec\@end"] }],
	['hdiff --over-time -f', sub { [$hdiff, '--over-time', '-f', $_[0], "$dir/made.hrec"] }],
	['hdiff --histogram -f', sub { [$hdiff, '--histogram', '-f', $_[0], "$dir/made.hrec"] }],
	['hsym -o', sub { [$hsym, '-o', $_[0], $dumps[1]] }],
	['hsym -f', sub { [$hsym, '-f', $_[0], $dumps[1]] }],
	['hsym --explain -o', sub { [$hsym, '--explain', '-o', $_[0], $dumps[1]] }],
	['hsym -e -o', sub { [$hsym, '--no-cache', '-o', $_[0], '-e', "$root/build/win64/hsnap.exe", '+1000'] }],
	['hsnap -z -f', sub { [$hsnap, '-z', "$dir/image.dmp", '-f', $_[0]] }, 'dump', 'packed dump'],
	['hsnap record --from -o', sub { [$hsnap, 'record', '--from', "$dir/made.etl", '-o', $_[0]] }],
);
for my $try (@tries) {
	my ($option, $command, @replaced) = @$try;
	subtest $option => sub { refuses($command, insist => '--overwrite', replaced => \@replaced) };
}
if (!$as_windows) { # hsnap's other commands need Windows, or Wine
	my $target = target("$root/build/win64/samples/leak_steady.exe", ['--hold']);
	my $wine = sub { my @words = @_; sub { [wine("$root/build/win64/hsnap.exe", map { ref ? win($_[0]) : $_ } @words)] } };
	my $program = win("$root/build/win64/targets/odd.exe");
	subtest 'hsnap run --at-exit' => sub { refuses($wine->('run', '--at-exit', \1, '--', $program, 'early'), replaced => ['dump', 'packed dump']) };
	subtest 'hsnap record -o' => sub { refuses($wine->('record', '-o', \1, '--', $program, 'early')) };
	subtest 'hsnap --log' => sub { refuses($wine->('-pn', 'none.exe', '-f', win("$dir/{n}.txt"), '--every', '1s', '--log', \1)) };
	subtest 'hsnap schedule -f' => sub {
		refuses($wine->(qw(schedule add app.exe --every 30m --dir D:\dumps --print-xml -f), \1), remedy => 'choose another name');
	};
}

# ---------------------------------------------------------------- replaced files

subtest 'reports' => sub {
	for my $first (['-o', 'html'], ['-o', 'umdh'], ['--hex'], ['-o', 'json'], ['-o', 'csv'], ['-o', 'pprof'], []) {
		is(run([$hdiff, @$first, '-f', "$dir/report", @dumps])->{status}, 0, "a report @$first");
		is(run([$hdiff, '-f', "$dir/report", @dumps])->{status}, 0, 'is replaced by another one');
	}
	spew("$dir/x.xml", '<xml/>');
	is(run([$hdiff, '--max-growth', '1G', '--junit', "$dir/x.xml", @dumps])->{status}, 0, 'a result');
	like(slurp("$dir/x.xml"), qr/<testsuite /, 'is replaced');
};
subtest 'a dump by itself with names' => sub {
	is(run([$hsym, '-o', "$dir/named.txt", $dumps[1]])->{status}, 0, 'a copy');
	is(run([$hsym, '-o', "$dir/named.txt", $dumps[1]])->{status}, 0, 'again');
	is(run([$hsym, '-o', "$dir/named.txt", "$dir/named.txt"])->{status}, 0, 'in its own place');
	spew("$dir/umdh.txt", $umdh);
	is(run([$hsym, '-o', "$dir/umdh.txt", "$dir/umdh.txt"])->{status}, 0, "a UMDH log, too");
	is(run([$hsym, '-o', "$dir/umdh.txt", spew("$dir/other.txt", $umdh)])->{status}, 2, 'but not by another one of that minute');
};
subtest 'a moment by itself' => sub {
	my $moment = sub { run([$hdiff, '--extract', '-f', "$dir/moment.txt", "$dir/made.hrec\@$_[0]"])->{status} };
	is($moment->('end'), 0, 'a moment');
	is($moment->('end'), 0, 'again');
	is($moment->('start'), 2, 'but not by another one');
};
subtest 'a dump by another process' => sub {
	my $out = spew("$dir/again.txt", $text);
	is(run([$hsnap, '-z', "$dir/image.dmp", '-f', $out])->{status}, 0, 'as a script does that runs again');
	is(run([$hsnap, '-z', "$dir/image.dmp", '-f', $out])->{status}, 0, 'a minidump is read again');
	my ($time) = slurp($out) =~ /^(\/\/ hsnap: dump .*)/m;
	spew($out, slurp($out) =~ s/( time=20)\d\d/${1}01/r);
	is(run([$hsnap, '-z', "$dir/image.dmp", '-f', $out])->{status}, 2, 'not an earlier one of the same process');
	is(run([$hsnap, '-z', "$dir/image.dmp", '--overwrite', '-f', $out])->{status}, 0, 'but with --overwrite');
	ok(index(slurp($out), $time) >= 0, 'which writes it');
};
subtest 'every option that names a file is known here' => sub {
	for my $program (qw(hdiff hsym hsnap)) {
		my $help = join '', map { run(["$root/build/linux/$program", @$_])->{out} }
		    $program eq 'hsnap' ? (['snapshot', '-h'], ['watch', '-h'], ['run', '-h'], ['record', '-h'], ['schedule', '-h']) : ['--help'];
		for my $options ($help =~ /^ +(-\S.*?) (?:FILE|OUT|FOLDER)  /mg) {
			my @unknown = grep { !$is_output{"$program $_"} && !$is_input{"$program $_"} } $options =~ /(--?[\w-]+)/g;
			is("@unknown", '', "$program $options");
		}
	}
};
subtest 'a result without a limit' => sub {
	check_error(run([$hdiff, '--junit', "$dir/none.xml", @dumps]), 'hdiff', 'is refused', '--junit', '--max-growth');
	check_error(run([$hdiff, '--junit', @dumps]), 'hdiff', 'and takes no dump for its file', '--junit', '--max-growth');
	ok(!-e "$dir/none.xml", 'nothing is written');
};
done_testing;

# Runs the command with the path of a file of each kind. The file must remain. %how: insist, a word
# that allows replacing; remedy, words of the message; replaced, kinds to skip.
sub refuses {
	my ($command, %how) = @_;
	my $remedy = $how{remedy} // '--overwrite';
	my %is_replaced = map { $_ => 1 } @{ $how{replaced} // [] };
	for my $kind (grep { !$is_replaced{$_} } sort keys %kept) {
		my ($bytes, $name) = @{ $kept{$kind} };
		my $path = spew("$dir/kept.txt", $bytes);
		my $result = run($command->($path));
		is($result->{status}, 2, "$kind: status 2") or diag($result->{out});
		like($result->{err}, qr/^(?:hdiff|hsym|hsnap): \S*kept\.txt: .*\Q$remedy\E/m, "$kind: the message names it and the remedy");
		like($result->{err}, qr/\Q$name\E/, "$kind: and says what it is") unless $how{remedy};
		ok(slurp($path) eq $bytes, "$kind: it is as it was");
		next unless $how{insist};
		my ($program, @words) = @{ $command->($path) };
		my @first = $words[0] eq 'record' ? shift @words : ();
		my $again = run([$program, @first, $how{insist}, @words]);
		isnt($again->{status}, 2, "$kind: with $how{insist} it is replaced") or diag($again->{err});
		ok(slurp($path) ne $bytes, "$kind: by what was asked for");
	}
	return;
}
