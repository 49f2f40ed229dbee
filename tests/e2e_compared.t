#!/usr/bin/perl
# hdiff in a build job: growth between two dumps, the second of which may be from the next build,
# and the sum of several processes' leaks.
use strict;
use warnings;
use FindBin qw($Bin);
use JSON::PP qw(decode_json);
use lib "$Bin/lib";
use Test::More;
use Hunt;
use Series;

my ($start, $minute) = (1763632800000, 60_000);
my $dir = fresh_dir();

SKIP: {
	skip('needs a compiler', 1) if $as_windows;
	rebuilt();
}
rebuilt_while_it_grew();
named_the_wrong_way_round();
of_different_programs();
of_a_parent_and_its_child();
of_cloned_machines();
ordered_by_name();
added_up();
added_up_for_real();
beside_the_dumps();
nothing_changed();
SKIP: {
	my $use = data_file('use') or skip('the cases of users are not here', 1);
	of_users($use);
}
done_testing;

# Checks hdiff's exit status and messages; returns its report.
sub gate {
	my ($what, $status, $words, @args) = @_;
	my $result = run(tool('hdiff', 'linux', '-o', 'json', @args));
	is($result->{status}, $status, "$what: status $status") or diag($result->{err});
	my @lines = grep { !/frames? ha(?:ve|s) no name/ } split /\n/, $result->{err};
	is(scalar @lines, @$words, "$what: " . @$words . ' lines') or diag($result->{err});
	like($lines[$_], $words->[$_], "$what: line $_") for 0 .. $#$words;
	return $result->{out} eq '' ? undef : decode_json($result->{out});
}

# If both dumps are of one process, their times determine which is OLD.
sub named_the_wrong_way_round {
	my $dir = fresh_dir();
	my @files = series($dir, [$start, $start + $minute], { leak => [1000, 2500] });
	my $report = gate('right', 1, [qr/growth of 1\.5 KiB \(1500 bytes\)/], '--max-growth', 1000, @files);
	my $turned = gate('turned', 1, [qr/^hdiff: \Q$files[1]\E: warning: .*NEW.* after \Q$files[0]\E$/, qr/growth of 1\.5 KiB \(1500 bytes\)/],
		'--max-growth', 1000, reverse @files);
	is_deeply($turned, $report, 'the same report');
	# Dumps that identify no process, such as minidumps, are ordered only by their times.
	my $folder = fresh_dir();
	for my $i (0, 1) {
		my $dump = slurp($files[$i]);
		ok($dump =~ s{^// hsnap: process .*\n}{}m, 'a dump without its process');
		spew("$folder/" . ($i ? 'a' : 'b') . '.txt', $dump);
	}
	gate('a folder', 1, [qr/growth of 1\.5 KiB \(1500 bytes\)/], '--max-growth', 1000, $folder);
	# If the dumps are of two runs of a program, the later run may be the reference.
	my ($other) = series($dir, [$start], { leak => [2500] }, pid => 77, name => 'other%d.txt');
	$report = gate('two runs', 0, [], '--max-growth', 1000, $files[1], $other);
	is($report->{totals}{all}{old}{bytes}, 2500, 'as they are given');
}

sub of_different_programs {
	my $dir = fresh_dir();
	my ($a) = series($dir, [$start], { leak => [1000] }, name => 'a%d');
	my ($b) = series($dir, [$start], { leak => [1000] }, name => 'b%d', pid => 77, image => 'C:\\\\other.exe');
	my ($same) = series($dir, [$start], { leak => [1000] }, name => 'c%d', pid => 78, image => 'D:\\\\new\\\\APP.EXE');
	my $differ = qr/^hdiff: \Q$b\E: warning: from a different program \(other\.exe\) than OLD \(app\.exe\)$/;
	gate('two programs', 0, [$differ], $a, $b);
	gate('with a limit', 2, [$differ, qr/--max-growth cannot judge.*different programs.*--force/], '--max-growth', 10, $a, $b);
	gate('by force', 0, [$differ], '--force', '--max-growth', 10, $a, $b);
	gate('another build of one', 0, [], '--max-growth', 10, $a, $same);
}

# Returns dumps of a process, of its child, and of a later process that has the first one's pid.
sub family {
	my ($dir) = @_;
	return (series($dir, [$start + 3 * $minute], { leak => [1000], own => [5] }, name => 'c-a%d.txt', start => $start),
		series($dir, [$start + 2.5 * $minute], { leak => [700] }, name => 'c-b%d.txt', start => $start + $minute, pid => 77,
			parent => 4242),
		series($dir, [$start + 2 * $minute], { leak => [40] }, name => 'c-c%d.txt', start => $start + $minute, pid => 78,
			parent => 77));
}

sub of_a_parent_and_its_child {
	my $dir = fresh_dir();
	my ($parent, $child, $grandchild) = family($dir);
	my $no = qr/^hdiff: \Q$child\E: .*child process of \Q$parent\E.*--sum/;
	is(gate('a parent and its child', 2, [$no], $parent, $child), undef, 'no report');
	gate('the other way round', 2, [$no], $child, $parent);
	my $warned = qr/: warning: from a child process of .*--sum/;
	my $three = gate('three', 0, [$warned], $parent, $child, $grandchild);
	is($three->{schema}, 'hdiff-trend/1', 'a trend of each');
	my @unknown = (qr/cannot judge/) x 3;
	gate('with a limit', 2, [$warned, @unknown], '--max-growth', '1G', $parent, $child, $grandchild);
	my ($later) = series($dir, [$start + 10 * $minute], { leak => [7] }, name => 'later%d.txt', start => $start + 9 * $minute);
	gate('a process that has the pid of its parent since', 0, [], $child, $later);
}

# Processes of cloned machines may have the same pid and second of start.
sub of_cloned_machines {
	my $dir = fresh_dir();
	my @times = ($start, $start + $minute, $start + 2 * $minute);
	my %how = (start => $start - $minute);
	my @one = series($dir, \@times, { leak => [100, 200, 300] }, %how, host => 'one', name => 'a%d.txt');
	my @two = series($dir, \@times, { leak => [7000, 7000, 7000] }, %how, host => 'TWO', name => 'b%d.txt');
	my $sums = sub { return [sort { $a->[1] <=> $b->[1] } map { [map { $_->{selected}{bytes} } @{ $_->{snapshots} }] } @{ $_[0]{series} }] };
	for my $given ([$dir], [reverse @one, @two], [$two[0], @one, @two[1, 2]]) {
		is_deeply($sums->(gate("clones: @$given", 0, [], @$given)), [[100, 200, 300], [7000, 7000, 7000]], "clones: two series");
	}
	is_deeply($sums->(gate('clones: their sum', 0, [], '--sum', $one[0], $two[0])), [], 'clones: --sum');
	is(gate('clones: a pair', 0, [], $two[1], $one[0])->{totals}{all}{growth}{bytes}, 100 - 7000, 'clones: not exchanged');
	my ($child) = series($dir, [$times[1]], { leak => [5] }, %how, host => 'two', pid => 77, parent => 4242, name => 'c%d.txt');
	gate("clones: another machine's child", 0, [], $one[0], $child);
	gate('clones: its own child', 2, [qr/child process/], $two[0], $child);
	# Minidumps do not record the machine, and its name has no case.
	my ($mini) = series($dir, [$start + 3 * $minute], { leak => [400] }, %how, name => 'm%d.txt');
	my ($small) = series($dir, [$start + 4 * $minute], { leak => [500] }, %how, host => 'ONE', name => 's%d.txt');
	is_deeply($sums->(gate('clones: a minidump', 0, [], $small, @one, $mini)), [[100, 200, 300, 400, 500]], 'a minidump: one series');
}

# The names decide where the times do not: that of a copy follows that of its original.
sub ordered_by_name {
	for my $names (['leak.txt', 'leak (2).txt', 'leak (10).txt'], ['leak.txt', 'leak(1).txt', 'leak(2).txt'], ['a.log.gz', 'a (2).log.gz', 'a (10).log.gz'], ['a.txt', 'a - Copy.txt', 'a - Copy (2).txt'],
		['a.txt', 'a-1.txt', 'a-10.txt'], ['a', 'a (2)', 'a (3)'], ['a.txt', 'a.txt.1', 'a.txt.2'], ['a.txt', 'a.2.txt', 'a.10.txt'], ['a.txt', 'a copy.txt', 'a copy 2.txt'], ['a1.txt', 'a2 (2).txt', 'a10.txt'], ['v1.2', 'v1.10', 'v2.1']) {
		my $dir = fresh_dir();
		my @files = map { "$dir/$_" } @$names;
		spew($_, series_dump(0, { leak => [1000] }, no_time => 1)) for @files;
		for my $given ($dir, "$dir/*") {
			my $report = gate("names: @$names", 0, [qr/ordered as given, or by name/], $given);
			is_deeply([map { $_->{path} } @{ $report->{series}[0]{snapshots} }], \@files, "names: @$names: their order");
		}
	}
}

sub added_up {
	my $dir = fresh_dir();
	my @files = family($dir);
	for my $given ([@files], [reverse @files], [$dir], ["$dir/c-*.txt"], [@files, $files[0], "$dir/*"]) {
		my @double = $given->[3] ? (qr/named twice/) x 4 : ();
		my $report = gate("the sum of @$given", 0, [@double], '--sum', '--max-growth', '1745,4', @$given);
		my %rows = map { ($_->{frames}[0]{function} => [$_->{new}{bytes}, $_->{new}{blocks}, $_->{old}{bytes}]) } @{ $report->{rows} };
		is_deeply(\%rows, { leak => [1740, 3, 0], own => [5, 1, 0] }, 'each stack has what all have of it');
		is_deeply([map { "$_->{role} $_->{path}" } @{ $report->{inputs} }], [map { "new $_" } reverse @files], 'of all files, by their times');
	}
	gate('over a limit', 1, [qr/growth of 1\.7 KiB \(1745 bytes\) is 1 byte over/], '--sum', '--max-growth', 1744, $dir);
	my $text = run(tool('hdiff', 'linux', '--sum', @files));
	check_ok($text, 'as text');
	check_report(report($text->{out}), 'as text');
	is_deeply(report($text->{out})->{total}, [1745, 32, 1777], 'all of it');
	like($text->{out}, qr/^\/\/ NEW: \Q$_\E/m, 'names each file') for @files;
	gate('one', 1, [qr/growth of 700 bytes/], '--sum', '--max-growth', 100, $files[1]);
	my $supp = spew("$dir/../" . ($dir =~ s{.*/}{}r) . '.supp', "leak:own\n");
	is(gate('suppressed', 0, [qr/suppressed stacks: 1, bytes: 5,/], '--sum', '--max-growth', 1740, '--suppress', $supp, @files)
		->{totals}{suppressed}{new}{bytes}, 5, 'a suppression');
	unlink $supp;

	my ($again) = series($dir, [$start + 2 * $minute], { leak => [1] }, name => 'again%d.txt', start => $start);
	gate('two of one process', 2, [qr/: .*same process as/], '--sum', @files, $again);
	unlink $again;
	spew($again, substr slurp($files[2]), 0, 700);
	gate('one that is cut short', 2, [qr/left out/], '--sum', '--max-growth', '1G', $dir);
	for my $trend (['--since', '6h'], ['--series', 1], ['--across-restarts'], ['--max-growth', '1K/h']) {
		my $result = run(tool('hdiff', 'linux', '--sum', @$trend, @files));
		check_error($result, 'hdiff', "--sum @$trend", 'trend');
	}
}

# Each generation of the process keeps its own block.
sub added_up_for_real {
	my $out = fresh_dir();
	my $tree = hsnap('run', '--children', '--at-exit', win("$out/c-{pid}.txt"), '--', win("$root/build/win64/targets/family.exe"),
		'tree', 2);
	is("$tree->{status} $tree->{err}", '12 ', 'a program, its child and grandchild');
	my @files = map { "$out/$_" } files_in($out);
	my @args = ('--sum', '-i', '!keep_block$', '--max-growth');
	my $report = gate('all of them', 0, [], @args, '6000,3', @files);
	is_deeply([map { [@{ $_->{new} }{qw(bytes blocks)}] } @{ $report->{rows} }], [[6000, 3]], 'one row');
	gate('over a limit', 1, [qr/6000 bytes/], @args, 5999, "$out/c-*.txt");
	gate('without --sum', 2, [qr/child process of .*--sum/, (qr/cannot judge/) x 3], '--max-growth', '1G', @files);
}

sub beside_the_dumps {
	my $dir = fresh_dir();
	my @files = series($dir, [$start, $start + $minute], { leak => [1000, 2500] });
	mkdir "$dir/empty" or die;
	gate('an empty folder', 2, [qr/^hdiff: \Q$dir\E\/empty: .*the folder contains no file/], $files[0], "$dir/empty");
	gate('alone', 2, [qr/^hdiff: \Q$dir\E\/empty: .*the folder contains no file/], "$dir/empty");
	spew("$dir/empty/app.log", iso($start) . " a line\n");
	gate('with nothing but a log', 2, [qr/the folder contains no file/], $files[0], "$dir/empty");
	spew("$dir/log", iso($start) . " pid 12: made-001.txt: 5 blocks\n" . iso($start) . " interrupted\n");
	my $report = gate("hsnap's own log", 0, [], $dir);
	is($report->{totals}{all}{growth}{bytes}, 1500, 'is passed over');
	gate('given by its name', 2, [qr/log: is not a heap dump/], $files[0], "$dir/log");
	unlink $files[0];
	is(gate('one dump and the log', 0, [], $dir)->{schema}, 'hdiff/1', 'are one dump');
	spew("$dir/notes", "2026 was a year\n");
	gate('another text', 0, [qr/notes: warning: left out: is not a heap dump/], $dir);
}

# In v2 main calls x() before its other calls, so the only row is that of x. In the second pair
# 100,000 bytes leak, and a cache of the same size was removed.
sub of_users {
	my ($use) = @_;
	my $report = gate('an inserted call', 1, [qr/growth of 9\.8 KiB \(10000 bytes\)/], '--max-growth', 0, map { "$use/01-inserted-call/$_.txt" } 'v1', 'v2');
	is_deeply([map { $_->{frames}[1]{function} } @{ $report->{rows} }], ['x'], 'is the only row');
	my @pair = map { "$use/02-net-gate/$_.txt" } 'a', 'b';
	gate('a leak, and a cache that went away', 1, [qr/growth of 97\.7 KiB \(100000 bytes\) is /], '--max-growth', 0, @pair);
	gate('the largest stack', 1, [qr/growth of one stack of 97\.7 KiB .*: app!leak_new < app!main$/], '--max-growth-row', '64K', @pair);
	gate('the sum', 0, [], '--max-growth-net', '0,0', @pair);
	return;
}

# A service is restarted with a new build, in which main calls x() before b(). b is one row with six
# snapshots.
sub rebuilt_while_it_grew {
	my $dir = fresh_dir();
	my @b = (500, 700, 900, 1000, 1200, 1400);
	for my $i (0 .. 5) {
		my $is_new = $i > 2 ? 1 : 0;
		my @calls = (['a', 9, 100], $is_new ? (['x', 14, 50]) : (), ['b', $is_new ? 19 : 14, $b[$i]], ['c', $is_new ? 24 : 19, 300]);
		spew("$dir/$i.txt", calls_dump($start + $i * $minute, $is_new, @calls));
	}
	my $rows = decode_json(run(tool('hdiff', 'linux', '-o', 'json', '--across-restarts', $dir))->{out})->{series}[0]{rows};
	is_deeply([map { [map { $_->{function} } @{ $_->{frames} }] } @$rows], [['b', 'main']], 'a rebuild: the one that grows');
	is_deeply($rows->[0]{bytes}, \@b, 'in every snapshot') or diag(explain($rows->[0]));
	return;
}

# Writes a dump of calls in main. Each call is [FUNCTION, BYTES AFTER MAIN'S START, BYTES
# ALLOCATED].
sub calls_dump {
	my ($time, $is_new, @calls) = @_;
	my ($base, $bytes) = (0x140000000 + 0x10000 * $is_new, 0);
	my $text = '// hsnap: dump format=1 tool=0.1.0 time=' . iso($time) . "\n"
	    . '// hsnap: process id=' . (7 + $is_new) . ' start=' . iso($start + 3 * $minute * $is_new - 1) . " bits=64 image=app.exe\n"
	    . "// hsnap: stacks source=tracer\n//\n// Loaded modules:\n//     Base Size Module\n"
	    . sprintf("//    %X 10000 C:\\app.exe\n// hsnap: module base=%X timestamp=%08X checksum=0\n", $base, $base, 7 + $is_new)
	    . "//\n// Process modules enumerated.\n*- - - - - Heap 650000 Hogs - - - - -\n\n";
	for my $call (@calls) {
		my ($function, $behind, $of) = @$call;
		my ($callee, $caller) = ($base + 0x1000 + 0x100 * ord $function, $base + 0x800 + 0x20 * $is_new + $behind);
		$text .= sprintf "// hsnap: name addr=%X function=%s offset=4\n// hsnap: name addr=%X function=main offset=%X\n"
		    . "%X bytes + 8 at %X by BackTrace%s\n\t%X\n\t%X\n\n", $callee, $function, $caller, $behind, $of, 0x660000 + 0x1000 * ord $function,
		    $function, $callee, $caller;
		$bytes += $of;
	}
	return $text . sprintf "// hsnap: end blocks=%d requested=%d overhead=%d\n", scalar @calls, $bytes, 8 * @calls;
}

# A new build of a program, in which lines have moved. Each stack is matched.
sub rebuilt {
	my $source = <<'C';
#include <stdlib.h>
static void *volatile kept;
__attribute__((noinline)) static void leak(unsigned bytes) { kept = malloc(bytes); }
__attribute__((noinline)) static void twice(void)
{
	leak(1000);
	leak(200);
	leak(30);
}
int main(void)
{
	kept = malloc(5000);
	leak(60);
	twice();
	return 0;
}
C
	my %builds = ( # equally long names, because the program's memory contains its path
		base => $source,
		more => "/* one line more */\n$source",
		grew => $source =~ s/\ttwice\(\);\n/$&\tleak(7777);\n/r,
	);
	my $run = sub {
		my ($name) = @_;
		mkdir "$dir/$name" or die "$dir/$name: $!\n";
		spew("$dir/$name/app.c", $builds{$name});
		my $built = run(['x86_64-w64-mingw32-gcc', '-g', '-O1', '-o', "$dir/$name/app.exe", "$dir/$name/app.c"]);
		is("$built->{status} $built->{err}", '0 ', "$name: built");
		check_ok(hsnap('run', '--at-exit', win("$dir/$name.txt"), '--', win("$dir/$name/app.exe")), "$name: run");
	};
	$run->($_) for sort keys %builds;

	for my $format ([], ['--match', 'function']) {
		my $diff = run(tool('hdiff', 'linux', '--max-growth', '0,0', @$format, "$dir/base.txt", "$dir/more.txt"));
		is($diff->{status}, 0, "@$format: a line more: no growth") or diag($diff->{err});
		my $report = report($diff->{out});
		is_deeply($report->{rows}, [], 'no row') or diag($diff->{out});
		is_deeply($report->{total}, [0, 0, 0], 'and no sum');
	}
	my $diff = run(tool('hdiff', 'linux', '--max-growth', 7776, "$dir/base.txt", "$dir/grew.txt"));
	is($diff->{status}, 1, 'a leak more') or diag($diff->{err});
	my @rows = @{ report($diff->{out})->{rows} };
	is_deeply([map { [$_->{bytes}, map { $_->{function} } chain_of($_, 'app')] } @rows], [[7777, qw(leak main)]], 'is one row');
}

# The last line reports that nothing changed, and hdiff can read the output again.
sub nothing_changed {
	my $dir = fresh_dir();
	my @files = series($dir, [$start, $start + $minute, $start + 2 * $minute], { leak => [1000, 1000, 1000], own => [5, 6, 5] });
	my ($same, $selected) = (qr{^Total decrease == .*\n// No stack changed\.\n\z}m,
		qr{^Total decrease == .*\n// No stack that was selected changed\.\n\z}m);
	for (['two dumps', $same, @files[0, 2]], ['selected', $selected, '-i', 'leak', @files[0, 1]],
		['groups', $same, '--group', 'module', @files[0, 2]], ['a trend', $selected, '-i', 'leak', @files]) {
		my ($what, $last, @args) = @$_;
		my $result = run(tool('hdiff', 'linux', @args));
		like($result->{out}, $last, "$what: a sentence");
		next if $what ne 'two dumps';
		my $again = run(tool('hdiff', 'linux', spew("$dir/printed", $result->{out})));
		check_ok($again, "$what: read again");
		like($again->{out}, $last, "$what: a sentence again");
		unlink "$dir/printed";
	}
	unlike(run(tool('hdiff', 'linux', @files[0, 1]))->{out}, qr/No stack/, 'where one grew there is none');
	# The header has no rows, so the rest is unknown.
	my $cut = spew("$dir/cut", run(tool('hdiff', 'linux', @files[0, 1]))->{out} =~ s/^[+].*//msr);
	unlike(run(tool('hdiff', 'linux', $cut))->{out}, qr/No stack/, 'nor where the rows are missing');
}
