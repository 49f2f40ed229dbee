#!/usr/bin/perl
# hsym's other modes (addresses in a file, explanations, a filter), its questions to
# llvm-symbolizer, and Ctrl-C. The truth comes from nm and addr2line for a sample, from this test's
# dumps, and from arithmetic.
use strict;
use warnings;
no warnings 'portable';  # addresses have 64 bits
use utf8;
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use POSIX qw(mkfifo);
use Test::More;
use Time::HiRes qw(time);
use Hunt;
use Symbols qw(program pdb_of identity);

my @functions = qw(xmalloc load_texture load_sound load_level main);
my $sample = "$root/build/win64/samples/leak_wrapper.exe";
my ($base, $size) = map { hex } slurp_command('x86_64-w64-mingw32-objdump', '-p', $sample)
    =~ /^ImageBase\s+([0-9a-f]+).*^SizeOfImage\s+([0-9a-f]+)/ms or die "no headers\n";
my %start = map { /^([0-9a-f]+) [tT] (\w+)$/ ? ($2 => hex($1) - $base) : () }
    split /\n/, slurp_command('x86_64-w64-mingw32-nm', $sample);
my $dir = fresh_dir();
# UTF-8 bytes; the name has a blank, and letters outside ASCII.
my $odd = "$dir/gro\xc3\x9f und s\xc3\xa4tt";
my $exe = "$odd/l\xc3\xa4ck wrapper.exe";
mkdir $odd or die "$odd: $!\n";
copy($sample, $exe) or die "$exe: $!\n";
copy($sample, "$dir/app.exe") or die "$!\n";

subtest 'addresses in a file' => \&addresses;
subtest 'addresses in a PDB alone' => \&pdb_alone;
subtest "names of Microsoft's compiler" => \&decorated;
subtest 'what is no address and no file' => \&refused;
subtest 'why there are no names' => \&explained;
subtest 'a filter' => \&filter;
subtest "UMDH's logs" => \&umdh;
subtest 'modules that were unloaded' => \&unloaded;
subtest 'wrong options' => \&wrong_options;
subtest 'hdiff asks for what it shows' => \&only_shown;
subtest 'Ctrl-C' => \&interrupted;
done_testing;

sub slurp_command {
	my (@command) = @_;
	my $result = run([@command]);
	die "@command: $result->{err}\n" if $result->{status};
	return $result->{out};
}

# Returns the source line of an offset as addr2line reports it: "FILE LINE", without the folder.
sub line_of {
	my ($offset) = @_;
	my ($file, $line) = slurp_command('x86_64-w64-mingw32-addr2line', '-e', $sample, sprintf '%x', $base + $offset)
	    =~ m{([^/\\]+):(\d+)} or die "no line at $offset\n";
	return "$file $line";
}

# Returns a function's frame in a dump: a return address 8 bytes after the function's start.
sub frame { return $_[1] + $start{ $_[0] } + 8 }

# dump({ path => BASE }, [frames...]...): each stack has one block more than the previous stack and
# ten times its bytes. Further lines precede the first stack.
sub dump_of {
	my ($modules, $stacks, @lines) = @_;
	my $text = "// Loaded modules:\n//     Base Size Module\n";
	$text .= sprintf "//  %16X %8X %s\n", $modules->{$_}, $size, $_ for sort keys %$modules;
	$text .= join '', "// Process modules enumerated.\n", map { "$_\n" } @lines;
	$text .= "*- - Start of data for heap @ 1E0000 - -\n";
	my $addr = 0x20000;
	for my $number (1 .. @$stacks) {
		$text .= sprintf "%X bytes + 8 at %X by BackTrace%d\n", 10**$number, $addr += 0x1000, $number;
		$text .= join('', map { sprintf "\t%X\n", $_ } @{ $stacks->[$number - 1] }) . "\n";
	}
	return $text . "*- - End of data for heap @ 1E0000 - -\n";
}

# Returns the names in a dump, { ADDRESS => "FUNCTION+OFFSET" }. If functions are inlined, the name
# is the outermost one's.
sub names_in {
	my ($text) = @_;
	my %names;
	while ($text =~ m{^// hsnap: name addr=(\w+) function="?(\w+)"?(?: offset=(\w+))?}mg) {
		$names{ hex $1 } = "$2+" . hex($3 // 0);
	}
	return \%names;
}

sub addresses {
	my ($one, $two) = ($start{xmalloc} + 4, $start{main} + 9);
	for my $side (tool_names()) {
		my $result = run(tool('hsym', $side, '-e', $exe, sprintf('%X', $one), sprintf('+%x', $two),
			sprintf('0x%X', $base + $two), "L\xc3\xa4ck wrapper+" . sprintf('%X', $one)));
		is($result->{status}, 0, "$side: status 0");
		is($result->{err}, '', "$side: no complaint");
		my @lines = split /\r?\n/, $result->{out};
		is(scalar @lines, 4, "$side: a line each") or diag($result->{out});
		my @wanted = (['xmalloc', 4, $one], ['main', 9, $two], ['main', 9, $two], ['xmalloc', 4, $one]);
		for my $i (0 .. 3) {
			my ($function, $offset, $at) = @{ $wanted[$i] };
			my ($file, $line) = split / /, line_of($at - 1);
			like($lines[$i], qr/^l\xc3\xa4ck wrapper!$function\+$offset \((?:.*[\/\\])?\Q$file\E, $line\)$/,
				"$side: $function, its offset, and the line of the byte before");
		}
		my $exact = run(tool('hsym', $side, '-e', $exe, '--exact', sprintf '+%X', $start{main}));
		my ($file, $line) = split / /, line_of($start{main});
		like($exact->{out}, qr/^l\xc3\xa4ck wrapper!main\+0 \((?:.*[\/\\])?\Q$file\E, $line\)\r?\n\z/,
			"$side: --exact: the first byte");
	}
	my $input = spew("$dir/addresses", sprintf "%x\r\n\n  app+%X \n", $one, $two);
	my $piped = run(tool('hsym', 'linux', '-e', 'app.exe'), stdin => $input, dir => $dir);
	is(join(' ', $piped->{out} =~ /^app!(\w+\+\d+) /mg), 'xmalloc+4 main+9', 'from standard input, by a relative name');
	my $long = 'app+' . '0' x 4000;
	for my $line ((' ' x 5000) . '10', "1A2B\0zz", "10\n$long\0") {
		check_error(run(tool('hsym', 'linux', '-e', "$dir/app.exe"), stdin => spew($input, "$line\n")), 'hsym',
			'a line that no address is written in', 'standard input:' . (1 + ($line =~ tr/\n//)));
	}
	my $none = run(tool('hsym', 'linux', '-e', "$dir/app.exe", sprintf '%X', $size - 1));
	is($none->{out}, sprintf("app+%X\n", $size - 1), 'where no function is: module and offset');
	like($none->{err}, qr/^hsym: 1 of 1 address has no name.*\n\z/, 'and a line reports it');
}

# The truth is the unwind information and another tool's output, both for the program of the PDB.
sub pdb_alone {
	my ($from) = grep { -f } map { program($_, 'names_c.exe') } qw(pdb_msvc pdb_gnu);
	plan(skip_all => 'no program with a PDB here') unless $from;
	my $pdb = "$odd/names_c.pdb";
	copy(pdb_of($from), $pdb) or die "$pdb: $!\n";
	my $preferred = hex identity($from)->{base};
	my ($main) = grep { slurp_command("llvm-symbolizer$llvm", '--relative-address', "--obj=$from", sprintf '0x%x', $_) =~ /^main$/m }
	    map { hex($_) - $preferred } slurp_command("llvm-readobj$llvm", '--unwind', $from) =~ /StartAddress: .*\(0x([0-9A-F]+)\)/g;
	ok(defined $main, 'another tool knows where main() is') or return;
	my ($line) = slurp_command("llvm-symbolizer$llvm", '--relative-address', "--obj=$from", sprintf '0x%x', $main) =~ /:(\d+):\d+$/m;
	for my $side (tool_names()) {
		my $result = run(tool('hsym', $side, '-e', $pdb, '--exact', sprintf '%X', $main));
		is($result->{status}, 0, "$side: status 0");
		like($result->{out}, qr/^names_c!main\+0(?: \(.*names_c\.c, $line\))?\r?\n\z/, "$side: the function, and no wrong line");
		like($result->{out}, qr/ \(.*names_c\.c, $line\)/, "$side: with its line") if $side eq 'linux';
	}
	my $apart = "$dir/apart";
	mkdir $apart or die "$apart: $!\n";
	copy($from, "$apart/names_c.exe") or die "$!\n";
	copy(pdb_of(program('pdb_other', 'names_c.exe')), "$apart/names_c.pdb") or die "$!\n";
	my $other = run(tool('hsym', 'linux', '-e', "$apart/names_c.exe", sprintf '%X', $main + 1));
	is(() = $other->{err} =~ /is a different build/g, 1, 'a PDB of another build is spoken of once');
	unlink "$apart/names_c.pdb" or die "$!\n";
	my @far = ('--no-cache', '-e', "$apart/names_c.exe", '10');
	like(run(tool('hsym', 'linux', '-y', "$dir/nowhere", @far))->{err},
		qr/nowhere, which is not a folder.*^hsym: 1 of 1 address has no name; names_c\.pdb \(.* was not found/ms,
		'a warning of something else hides no reason');
	my $served = run(tool('hsym', 'linux', '-y', 'srv*', @far))->{err};
	is(() = $served =~ /servers cannot be used/g, 1, 'a server is spoken of once');
	like($served, qr/no name; names_c\.pdb \(.* was not found/, 'beside the reason');
	is(run(tool('hsym', 'linux', '--no-cache', '-e', $pdb, '7000000'), env => { HSYM_LLVM => 'none' })->{err},
		"hsym: 1 of 1 address has no name; HSYM_LLVM is not the full path of a program\n",
		'a PDB lacks no image, but the one who reads it');
	truncate $pdb, 5000 or die "$!\n";
	check_error(run(tool('hsym', 'linux', '-e', $pdb, '10')), 'hsym', 'a PDB that was cut', 'names_c.pdb: no names');
	spew($pdb, 'Microsoft C/C++ MSF 7.00');
	check_error(run(tool('hsym', 'linux', '-e', $pdb, '10')), 'hsym', 'a PDB of a few bytes', 'names_c.pdb: no names');
}

# A DLL without symbols that exports such a name, and dumps that have the name decorated or
# undecorated.
sub decorated {
	plan(skip_all => 'no llvm-undname here') if system("command -v llvm-undname$llvm llvm-symbolizer$llvm >/dev/null");
	my $plain = 'v8::internal::MemoryAllocator::AllocateBasicChunk';
	my $name = '?AllocateBasicChunk@MemoryAllocator@internal@v8@@QEAAPEAVBasicMemoryChunk@23@_K0W4Executability@3@PEAVSpace@23@@Z';
	my $dll = "$dir/decorated.dll";
	spew("$dir/d.c", "int f(int n) { return n * 3; }\n");
	spew("$dir/d.def", qq{EXPORTS\n"$name" = f\n});
	is(system('x86_64-w64-mingw32-gcc', '-shared', '-o', $dll, "$dir/d.c", "$dir/d.def"), 0, 'a DLL') or return;
	my ($image_base) = slurp_command('x86_64-w64-mingw32-objdump', '-p', $dll) =~ /^ImageBase\s+(\w+)/m;
	my ($at) = map { hex($_) - hex $image_base } slurp_command('x86_64-w64-mingw32-nm', $dll) =~ /^(\w+) T f$/m;
	is(system('x86_64-w64-mingw32-strip', $dll), 0, 'without symbols');
	for my $side (tool_names()) {
		my @asked = ('--exact', '-e', $dll, sprintf '+%X', $at);
		is(run(tool('hsym', $side, @asked))->{out} =~ tr/\r//dr, "decorated!$plain+0\n", "$side: scope and name");
		is(run(tool('hsym', $side, '--no-demangle', @asked))->{out} =~ tr/\r//dr, "decorated!$name+0\n",
			"$side: --no-demangle: as the compiler made it");
	}
	is(run(tool('hsym', 'linux', '--exact', '-e', $dll, sprintf '+%X', $at), env => { HSYM_LLVM => '/nonexistent' })->{out},
		"decorated!$name+0\n", 'without llvm-undname, too');
	my @dumps = map { dump_of({ 'C:\\app.exe' => 0x7FF600000000 * $_->[0] },
		[[$_->[0] * 0x7FF600000000 + 0x1000 + $_->[0]], [0]],
		sprintf '// hsnap: name addr=%X function="%s" offset=8', $_->[0] * 0x7FF600000000 + 0x1000 + $_->[0], $_->[1]) }
	    [1, $name], [2, $plain];
	my @files = (spew("$dir/old.txt", $dumps[0]), spew("$dir/new.txt", $dumps[1]));
	is(run(tool('hsym', 'linux', $files[0]))->{out}, $dumps[0], 'names in a dump stay unchanged');
	my %out = map { $_ => run(tool('hdiff', 'linux', '--match', $_, @files)) } qw(module symbol);
	is($out{symbol}{err}, '', 'no complaint');
	unlike($out{symbol}{out}, qr/app!/, 'a dump with the one is matched with one that has the other');
	like($out{module}{out}, qr/app!/, 'by names, not by places');
	like(run(tool('hdiff', 'linux', $files[0]))->{out}, qr/^\tapp!\Q$plain\E\+8$/m, 'and the readable one is shown');
}

sub refused {
	spew("$dir/text.txt", "no program\n");
	spew("$dir/cut.exe", substr slurp($sample), 0, 100);
	for my $side (tool_names()) {
		for my $file ($dir, "$dir/text.txt", "$dir/cut.exe", "$dir/none.exe") {
			my ($name) = $file =~ m,([^/]+)$,;
			check_error(run(tool('hsym', $side, '-e', $file, '10')), 'hsym', "$side: $name", $name);
		}
		for my $text ('x', '1 2', '', '+', '0x', '11112222333344445', 'other+10', '-1') {
			check_error(run(tool('hsym', $side, '-e', "$dir/app.exe", '--', $text)), 'hsym', "$side: '$text'", $text);
		}
		check_error(run(tool('hsym', $side, '--explain', "$dir/none.txt")), 'hsym', "$side: no dump", 'none.txt');
		check_error(run(tool('hsym', $side, "$dir/text.txt", "$dir/text.txt")), 'hsym', "$side: two dumps", 'one dump');
		check_error(run(tool('hsym', $side, '--exact', "$dir/text.txt")), 'hsym', "$side: --exact alone", '--exact');
	}
}

# Three modules: one exists, one is missing, and the dump has the names of the third. One frame is
# outside all modules.
sub explained {
	my %base = (here => 0x7FF600000000, gone => 0x7FF700000000, said => 0x7FF800000000);
	my @stack = ((map { frame($_, $base{here}) } @functions), (map { $base{gone} + 0x1000 + $_ } 1 .. 3),
		$base{said} + 0x100, $base{said} + 0x200, 0x1234, frame('main', $base{here}));
	spew("$dir/explain.txt", dump_of({ win("$dir/app.exe") => $base{here}, 'C:\none\gone.dll' => $base{gone},
		'C:\none\said.dll' => $base{said} }, [[@stack], [@stack]],
		map { sprintf '// hsnap: name addr=%X function=f offset=1', $base{said} + $_ } 0x100, 0x200));
	for my $side (tool_names()) {
		my $result = run(tool('hsym', $side, '--explain', "$dir/explain.txt"));
		is($result->{status}, 0, "$side: status 0");
		is($result->{err}, '', "$side: nothing on stderr");
		my @rows = grep { /^\S/ } split /\r?\n/, $result->{out};
		my %row = map { /^(\S.*?)\s+(\d+)\s+(\d+)  (\S.*?)\s{2,}(.*)$/ ? ($1 => [$2, $3, $4, $5]) : () } @rows;
		is_deeply([@{ $row{'app.exe'} }[0, 1]], [5, 5], "$side: all of app's") or diag($result->{out});
		isnt($row{'app.exe'}[2], '-', "$side: somebody knew them");
		like($row{'app.exe'}[3], qr/\bapp\.exe$/, "$side: the file that was used");
		is_deeply($row{'gone.dll'}, [3, 0, '-', '-'], "$side: none of gone's");
		is_deeply([@{ $row{'said.dll'} }[0 .. 2]], [2, 2, 'the dump'], "$side: the dump's own names");
		is_deeply($row{'(outside all modules)'}, [1, 0, '-', '-'], "$side: outside");
		my @order = map { /^(\S.*?)\s{2,}/ } @rows;
		is_deeply(\@order, ['module', 'gone.dll', '(outside all modules)', 'app.exe', 'said.dll', 'total'],
			"$side: the most nameless first, then by name");
		like($result->{out}, qr/^total +11 +7  in 3 modules\r?$/m, "$side: the sum");
		my ($why) = $result->{out} =~ /^gone\.dll.*\n((?:    .*\n)+)/m;
		like($why // '', qr/gone\.dll/, "$side: and why not") or diag($result->{out});
		my %column = map { $_ => 1 } map { /^(.*\S\s+\d+ +\d+)  \S/ ? length $1 : () } grep { !/^total/ } @rows;
		is(scalar keys %column, 1, "$side: columns are aligned");
	}
	my $text = slurp("$dir/explain.txt");
	is(run(tool('hsym', 'linux', '--explain', '-'), stdin => "$dir/explain.txt")->{status}, 0, 'from standard input');
	ok(slurp("$dir/explain.txt") eq $text, 'the dump stays as it was');
	my $empty = spew("$dir/empty.txt", dump_of({}, []));
	like(run(tool('hsym', 'linux', '--explain', $empty))->{out}, qr/^total +0 +0  in 0 modules$/m, 'a dump without frames');
}

sub filter {
	my $dump = spew("$dir/filter.txt", dump_of({ win($exe) => 0x7FF600000000 },
		[[map { frame($_, 0x7FF600000000) } @functions]]));
	my %wanted = map { (frame($_, 0x7FF600000000) => "$_+8") } @functions;
	for my $side (tool_names()) {
		my $result = run(tool('hsym', $side), stdin => $dump);
		check_ok($result, "$side: standard input to standard output");
		is_deeply(names_in($result->{out}), \%wanted, "$side: its names");
		(my $rest = $result->{out}) =~ s{^// hsnap: name .*\n}{}mg;
		ok($rest eq slurp($dump), "$side: and every byte of it");
		my $again = run(tool('hsym', $side), stdin => spew("$dir/named.txt", $result->{out}));
		ok($again->{out} eq $result->{out}, "$side: once more changes nothing");
	}
}

sub umdh {
	my $dump = spew("$dir/umdh.txt", dump_of({ win("$dir/app.exe") => 0x7FF600000000 },
		[[map { frame($_, 0x7FF600000000) } @functions]]));
	my $named = run(tool('hsym', 'linux', $dump));
	is(scalar keys %{ names_in($named->{out}) }, scalar @functions, 'names by path and size');
	like($named->{err}, qr/^hsym: 5 of 5 addresses named; UMDH recorded no GUID: .*\n\z/, 'and what that rests on');
	like(run(tool('hsym', 'linux', '--explain', $dump))->{out}, qr/^UMDH recorded no GUID/m, 'the table also reports it');
	my $ours = spew("$dir/ours.txt", "// hsnap: dump format=1\n" . slurp($dump) . "// hsnap: end blocks=1 requested=10 overhead=8\n");
	unlike(run(tool('hsym', 'linux', $ours))->{err}, qr/UMDH/, 'but not for a dump by hsnap');
	my $logs = data_file('umdh');
	note('no logs of real UMDHs here') unless $logs;
	for my $log ($logs ? map { "$logs/$_" } grep { /^snap_.*\.txt$/ } files_in($logs) : ()) {
		my $result = run(tool('hsym', 'linux', $log));
		is($result->{status}, 0, "$log: status 0");
		my $lost = () = slurp($log) =~ /\n/g;
		my $kept = () = $result->{out} =~ /\n/g;
		cmp_ok($kept, '>=', $lost, 'every line is there');
		is(run(tool('hsym', 'linux', '--explain', $log))->{status}, 0, 'and can be explained');
	}
}

# Frames in an unloaded module have a synthetic base, at which no module was ever loaded.
sub unloaded {
	my $base = 0x800000000000;
	my ($stamp) = slurp_command("llvm-readobj$llvm", '--file-headers', $sample) =~ /TimeDateStamp: .*\(0x([0-9A-F]+)\)/;
	my $dump = spew("$dir/unloaded.txt", dump_of({ win("$dir/app.exe") => $base }, [[map { frame($_, $base) } @functions]],
		sprintf '// hsnap: module base=%X timestamp=%s unloaded=1 at=7FF600000000', $base, $stamp));
	my %wanted = map { (frame($_, $base) => "$_+8") } @functions;
	for my $side (tool_names()) {
		my $named = run(tool('hsym', $side, $dump));
		is_deeply(names_in($named->{out}), \%wanted, "$side: its names are those of the file") or diag($named->{err});
		like(run(tool('hsym', $side, '--explain', $dump))->{out}, qr/^app\.exe \(unloaded\) +5 +5 /m, "$side: and it is marked");
	}
}

sub wrong_options {
	for my $tool ('hsym', 'hdiff') { # even for a dump whose modules have no files
		my $none = spew("$dir/none.txt", dump_of({}, [[0x1000]]));
		my $said = run(tool($tool, 'linux', '-y', "$dir/none", $none))->{err};
		is(scalar(() = $said =~ m{names \S+/none, which is not a folder here; check -y}g), 1, "$tool: a folder that is missing is reported, once");
	}
	my $dump = spew("$dir/small.txt", dump_of({}, [[0x1000]]));
	for my $tool (qw(hsym hdiff)) {
		for my $map ('x', '=x', 'x=') {
			check_error(run(tool($tool, 'linux', '--map', $map, $dump)), $tool, "$tool --map $map", "--map $map");
		}
		check_error(run(tool($tool, 'linux', '--strip-path', '', $dump)), $tool, "$tool: an empty value", '--strip-path');
		for my $path (["-y:$dir"], ['-y', $dir], ["--symbol-path=$dir"], ["-y$dir"]) {
			is(run(tool($tool, 'linux', @$path, '--map', 'C:\a=/b', '--map', 'D:\=/c', '--strip-path', '/x',
				'--no-demangle', '--allow-mismatch', '--no-cache', $dump))->{status}, 0, "$tool @$path and all others");
		}
	}
	is(run(tool('hsym', 'windows', "-y:$dir", '--map', 'C:\a=Z:\b', $dump =~ s,/,\\,gr =~ s,^,Z:,r))->{status}, 0,
		'the same on Windows');
}

# Writes a program to run as llvm-symbolizer. It records its input and passes it to the real
# llvm-symbolizer; with $hangs it reads and never answers. Returns the environment in which to run
# hsym.
sub fake_llvm {
	my ($hangs) = @_;
	my ($real) = grep { -x } map { ("$_/llvm-symbolizer$llvm", "$_/llvm-symbolizer") } split /:/, $ENV{PATH};
	my $bin = "$dir/bin" . ($hangs ? '.hangs' : '');
	mkdir $bin;
	my $work = $hangs ? "while read -r line; do echo \"\$line\" >>'$dir/asked'; done" : "tee -a '$dir/asked' | '$real' \"\$@\"";
	spew("$bin/llvm-symbolizer", "#!/bin/sh\ncase \"\$*\" in *--version*) exec '$real' --version;; esac\n$work\n");
	chmod 0755, "$bin/llvm-symbolizer" or die "$!\n";
	copy("$bin/llvm-symbolizer", "$bin/llvm-symbolizer-19") or die "$!\n";
	chmod 0755, "$bin/llvm-symbolizer-19" or die "$!\n";
	unlink "$dir/asked";
	return (PATH => "$bin:$ENV{PATH}", HSYM_LLVM => "$bin/llvm-symbolizer");
}

# Returns the offsets in the recorded input. Offsets larger than any image mark the end of answers.
sub asked {
	return sort { $a <=> $b } grep { $_ < 2**32 } map { /0x([0-9a-f]+)\s*$/i ? hex $1 : () } split /\n/, slurp("$dir/asked");
}

sub only_shown {
	my @stacks = (['xmalloc', 'load_texture'], ['xmalloc', 'load_sound'], ['xmalloc', 'load_level', 'main', 'xmalloc']);
	my $dump = spew("$dir/shown.txt", dump_of({ win("$dir/app.exe") => 0x7FF600000000 },
		[map { [map { frame($_, 0x7FF600000000) } @$_] } @stacks]));
	my $rvas = sub { my %seen; return sort { $a <=> $b } map { $start{$_} + 7 } grep { !$seen{$_}++ } map { @$_ } @_ };
	for my $shown (1, 2, 3) {
		my %env = fake_llvm();
		my $result = run(tool('hdiff', 'linux', '-n', $shown, $dump), env => \%env);
		is($result->{status}, 0, "-n $shown: status 0");
		is_deeply([asked()], [$rvas->(@stacks[3 - $shown .. 2])], "-n $shown: those frames, each once");
		my @named = $result->{out} =~ /^\tapp!(\w+)\+8 /mg;
		is_deeply(\@named, [map { @$_ } reverse @stacks[3 - $shown .. 2]], "-n $shown: and they have names");
	}
	my %env = fake_llvm();
	run(tool('hdiff', 'linux', '--no-symbols', $dump), env => \%env);
	ok(!-e "$dir/asked", '--no-symbols: nobody is asked');
}

# Runs a command on its own terminal. Types the result of $typed->(OUTPUT SO FAR), once for each
# answer.
sub on_terminal {
	my ($command, $typed, %how) = @_;
	pipe my $in, my $to or die "pipe: $!\n";
	pipe my $from, my $out or die "pipe: $!\n";
	my $pid = Hunt::start(['script', '-qec', $command, '/dev/null'], stdin => $in, stdout => $out, %how);
	close $_ for $in, $out;
	my ($seen, $until) = ('', time + $Hunt::limit);
	while (time < $until) {
		my $ready = '';
		vec($ready, fileno $from, 1) = 1;
		next unless select $ready, undef, undef, 1;
		last unless sysread $from, $seen, 4096, length $seen;
		my $keys = $typed->($seen);
		syswrite $to, $keys if defined $keys;
	}
	kill TERM => $pid if time >= $until;
	return { status => Hunt::finish($pid) >> 8, seen => $seen, is_late => time >= $until };
}

sub interrupted {
	my $dump = spew("$dir/slow.txt", dump_of({ win("$dir/app.exe") => 0x7FF600000000 },
		[[map { frame($_, 0x7FF600000000) } @functions]],
		sprintf '// hsnap: name addr=%X function=known offset=8', frame('main', 0x7FF600000000)));
	my %env = fake_llvm('hangs');
	my @cases = (['hsym', "'$root/build/linux/hsym' -o '$dir/out.txt' '$dump'", 'addresses without a name: 4'],
		['hdiff', "'$root/build/linux/hdiff' -f '$dir/out.txt' '$dump'", 'frames without a name: 4']);
	for my $case (@cases) {
		my ($tool, $command, $words) = @$case;
		my $is_typed;
		unlink "$dir/out.txt";
		my $result = on_terminal("exec $command", sub {
			return if $is_typed || $_[0] !~ /\r$tool: looking up names: 0 of 4, app\.exe/;
			$is_typed = 1;
			return "\cC";
		}, env => \%env);
		ok($is_typed, "$tool: a line says how far it is") or diag($result->{seen});
		is($result->{status}, 0, "$tool: Ctrl-C while names are looked up is no failure");
		like($result->{seen}, qr/\r *\r$tool: stopped looking for names; $words\r?$/m,
			"$tool: the line is wiped, and another one says what is missing") or diag($result->{seen});
		like(slurp("$dir/out.txt"), $tool eq 'hsym' ? qr/End of data/ : qr/app!known\b.*^Call tree/ms, "$tool: all is written");
	}
	mkfifo("$dir/never", 0600) or die "$!\n"; # a dump whose data never arrive
	unlink "$dir/out.txt";
	my $writer;
	my $early = on_terminal("echo ready; exec '$root/build/linux/hsym' -o '$dir/out.txt' '$dir/never'", sub {
		return if $writer || $_[0] !~ /ready/;
		open $writer, '>', "$dir/never" or die "$!\n"; # waits until hsym opens the pipe
		return "\cC";
	});
	is($early->{status}, 2, 'Ctrl-C at another time ends it');
	ok(!-e "$dir/out.txt", 'with nothing written');
	is_deeply([grep { /out\.txt/ } files_in($dir)], [], 'and nothing left');
	unlink "$dir/asked";
	my $pid = Hunt::start(["$root/build/linux/hsym", '-o', "$dir/out.txt", $dump], env => \%env);
	my $until = time + $Hunt::limit;
	select undef, undef, undef, 0.02 while !-s "$dir/asked" && time < $until;
	kill TERM => $pid;
	is(Hunt::finish($pid) >> 8, 2, 'SIGTERM ends it while names are looked up');
	is_deeply([grep { /out\.txt/ } files_in($dir)], [], 'with nothing written');
}
