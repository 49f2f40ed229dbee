#!/usr/bin/perl
# A hostile dump cannot harm its reader's terminal or memory, other dumps, or other machines.
use strict;
use warnings;
no warnings 'portable';  # addresses have 64 bits
use FindBin qw($Bin);
use IO::Compress::Gzip qw(gzip $GzipError);
use lib "$Bin/lib";
use Test::More;
use Hunt;
use Symbols qw(program identity function_start);

my $dir = fresh_dir();
my $base = 0x140000000;

subtest 'bytes that a terminal obeys' => \&terminal;
subtest 'modules without end' => \&modules;
subtest 'memory that runs out' => \&no_memory;
subtest 'a gzip with nothing in it' => \&nothing_packed;
subtest 'files that a dump names' => \&named_files;
subtest 'names that a stranger plants' => \&planted;
subtest 'no offset is added to a null pointer' => \&null_pointers;
done_testing;

# Writes a dump of one block. $path: path of the module of the block's stack; @more: lines before
# the heap.
sub dump_with {
	my ($file, $path, @more) = @_;
	return spew("$dir/$file", join '', map { "$_\n" } '// hsnap: dump format=1', '// Loaded modules:',
		sprintf('// %X 24000 %s', $base, $path), '// Process modules enumerated.', @more,
		'*- - - - - - - - - - Start of data for heap @ 650000 - - - - - - - - - -',
		'10 bytes + 10 at 655FB0 by BackTrace1', sprintf("\t%X", $base + 0x1491), '',
		'*- - - - - - - - - - End of data for heap @ 650000 - - - - - - - - - -',
		'// hsnap: end blocks=1 requested=16 overhead=16');
}

# Each of these dumps would need far more memory than this test permits.
sub modules {
	my $limit_kb = 64 << 10;
	my @gzips = (
		['long paths' => 1200, sub { sprintf('// %X 1000 C:\\%06d', 0x150000000 + 0x1000 * $_[0], $_[0]) . 'A' x 65000 }],
		['many paths' => 18000, sub { sprintf('// %X 1000 C:\\%06d', 0x150000000 + 0x1000 * $_[0], $_[0]) . 'A' x 4000 }],
		['many modules' => 700000, sub { sprintf('// %X 1000 C:\\%06d', 0x150000000 + 0x1000 * $_[0], $_[0]) }],
		['many builds' => 700000, sub { sprintf('// hsnap: module base=%X', $_[0]) }],
		['long names of PDB files' => 1200, sub { sprintf('// hsnap: module base=%X pdb="', $_[0]) . 'A' x 65000 . '"' }],
	);
	for (@gzips) {
		my ($what, $count, $line) = @$_;
		my $zip = IO::Compress::Gzip->new("$dir/modules.gz", -Level => 1) or die "$GzipError\n";
		$zip->print("// hsnap: dump format=1\n// Loaded modules:\n");
		$zip->print($line->($_), "\n") for 1 .. $count;
		$zip->print("// Process modules enumerated.\n// hsnap: end blocks=0 requested=0 overhead=0\n");
		$zip->close;
		for my $tool (['hdiff'], ['hsym', '-o', "$dir/out.txt"]) {
			my $command = tool(@$tool[0], 'linux', @$tool[1 .. $#$tool], "$dir/modules.gz");
			my $result = run(['sh', '-c', "ulimit -s 512 && ulimit -v $limit_kb && exec \"\$@\"", 'sh', @$command], env => { MALLOC_ARENA_MAX => 1 });
			check_error($result, $tool->[0], "$tool->[0], $what", 'too many bad lines');
		}
	}
	# Names at the length limit and one byte longer.
	for my $len (4096, 4097) {
		my $path = 'C:\\' . 'A' x ($len - 3);
		my $result = run(tool('hdiff', 'linux', '--no-symbols', dump_with('long.txt', $path)));
		is($result->{status}, $len > 4096 ? 2 : 0, "hdiff: a path of $len bytes") or diag($result->{err});
		like($result->{err}, $len > 4096 ? qr/long\.txt:3\b.*path is too long/ : qr/^$/, "hdiff: what is said of $len bytes");
	}
	return;
}

# Runs a program with more and more memory, until the memory is enough. Wherever memory runs out,
# the program must print one line and leave no file.
sub no_memory {
	my $line = sub { sprintf "10 bytes + 10 at %X by BackTrace%X\n%s\n", 0x650000 + 32 * $_[0], $_[0], join '', map { sprintf "\t%X\n", $base + 64 * $_[0] + $_ } 1 .. 9 };
	my $dump = spew("$dir/stacks.txt", join '', "*- - - - - - - - - - Start of data for heap \@ 650000 - - - - - - - - - -\n\n",
		(map { $line->($_) } 1 .. 40000), "*- - - - - - - - - - End of data for heap \@ 650000 - - - - - - - - - -\n");
	for my $command ([hdiff => '--no-symbols'], ['hdiff', '--no-symbols', '--match', 'address', '-o', 'json'], ['hsym', '--no-cache']) {
		my ($tool, @args) = @$command;
		my ($failed, $status) = (0, 2);
		for (my $kb = 16 << 10; $status && $kb < 4 << 20; $kb = int($kb * 1.08)) {
			mkdir "$dir/out";
			my $result = run(['sh', '-c', "ulimit -s 512 && ulimit -v $kb && exec \"\$@\"", 'sh',
				@{ tool($tool, 'linux', @args, $tool eq 'hsym' ? '-o' : '-f', "$dir/out/of.txt", $dump) }], env => { MALLOC_ARENA_MAX => 1 });
			my $is_started = $result->{err} !~ /error while loading shared|cannot allocate memory in static TLS/i && $result->{status} < 126;
			$status = $result->{status};
			my @left = files_in("$dir/out");
			next unless $is_started && $status;
			$failed++;
			like($result->{err}, qr/\A$tool: out of memory; [^\n]+\n\z/, "$tool in $kb KB: one line");
			is($status, 2, "$tool in $kb KB: status 2");
			is_deeply(\@left, [], "$tool in $kb KB: nothing is left");
		}
		is($status, 0, "@$command: it ends well in the end");
		is_deeply([files_in("$dir/out")], ['of.txt'], '... with its file');
		unlink "$dir/out/of.txt";
		cmp_ok($failed, '>', 2, '... and ran out of memory before');
	}
	return;
}

# The header of a gzip file without names has ten bytes.
sub nothing_packed {
	my $zip = "\x1f\x8b\x08\0\0\0\0\0\0\x03";
	my $file = spew("$dir/cut.gz", $zip);
	check_error(run(tool('hsym', 'linux', '--force', '-o', $file, $file)), 'hsym', 'hsym --force -o X X', 'the compressed data is truncated');
	ok(slurp($file) eq $zip, 'hsym --force -o X X: the file stays');
	check_error(run(tool('hsym', 'linux', '--force', '--explain', $file)), 'hsym', 'hsym --force --explain', 'the compressed data is truncated');
	check_error(run(tool('hdiff', 'linux', '--force', $file)), 'hdiff', 'hdiff --force', 'the compressed data is truncated');
	return;
}

# A dump's author must not determine which files are opened.
sub named_files {
	my $seen = "$dir/strace";
	plan skip_all => 'strace is not installed, or may not trace' if run(['strace', '-o', $seen, 'true'])->{status};
	symlink '/net/stranger', "$dir/link" or die "link: $!\n";
	my $count = 0;
	for my $path ('/net/stranger/share/a.dll', 'Z:\\net\\stranger\\share\\a.dll', 'Z:\\NET\\stranger\\a.dll', "$dir/link/a.dll",
		'/sys/stranger/a.dll', '/proc/self/root/stranger/a.dll', 'C:\\..\\..\\..\\dev\\stranger\\a.dll') {
		my $dump = dump_with('named.txt', $path, sprintf '// hsnap: module base=%X timestamp=5F000000 checksum=1 pdb="%s" '
			    . 'guid=00112233445566778899AABBCCDDEEFF age=1', $base, $path =~ s/dll$/pdb/r =~ s/\\/\\\\/gr);
		for my $tool (['hdiff'], ['hsym', '-o', '/dev/null']) {
			my $command = tool($tool->[0], 'linux', @$tool[1 .. $#$tool], $dump);
			my $result = run(['strace', '-f', '-qq', '-s', 4096, '-e', 'trace=%file', '-o', $seen, @$command]);
			is($result->{status}, 0, "$tool->[0], $path: status 0") or diag($result->{err});
			my @asked = grep { m{"/(?:net|sys|proc/self/root|dev)/stranger|"\Q$dir\E/link/} } split /\n/,
			    # The targets of links may be shown.
			    slurp($seen) =~ s/readlink\("[^"]*"\K, "[^"]*"//gr;
			is_deeply(\@asked, [], "$tool->[0], $path: no call uses it");
			$count += () = slurp($seen) =~ /named\.txt/g;
		}
	}
	cmp_ok($count, '>', 0, 'strace saw the dumps opened');

	# With the option, hsym opens no file even at the permitted places.
	my $exe = "$root/build/win64/samples/leak_wrapper.exe";
	my $is = identity($exe);
	my $dump = dump_with('local.txt', $exe, sprintf '// hsnap: module base=%X timestamp=%s checksum=%s', $base, $is->{timestamp}, $is->{checksum});
	for my $tool (['hdiff'], ['hsym', '--explain']) {
		for my $option ([], ['--no-local-files']) {
			my $command = tool($tool->[0], 'linux', @$tool[1 .. $#$tool], @$option, $dump);
			my $result = run(['strace', '-f', '-qq', '-s', 4096, '-e', 'trace=%file', '-o', $seen, @$command]);
			is($result->{status}, 0, "$tool->[0] @$option: status 0") or diag($result->{err});
			my $is_asked = slurp($seen) =~ /"\Q$exe\E"/ ? 1 : 0;
			is($is_asked, @$option ? 0 : 1, "$tool->[0] @$option: the file at the dump's path is" . (@$option ? ' not' : '') . ' asked for');
		}
	}
	my @addr = sprintf '+%X', 0x1491;
	my $plain = run(tool('hsym', 'linux', '-e', $exe, @addr));
	like($plain->{out}, qr/!/, 'hsym -e: a name');
	for my $typed (['--no-local-files', '-e', $exe], ['-e', "/proc/self/root$exe"]) {
		is(run(tool('hsym', 'linux', @$typed, @addr))->{out}, $plain->{out}, "hsym @$typed: a file that the user names is used");
	}
	return;
}

# Two folders, each with an image and its dump. The hostile image has other names and claims to be
# the same build.
sub planted {
	my $built = program('dwarf4', 'names_c.exe');
	my $is = identity($built);
	my ($at) = map { hex } run(['x86_64-w64-mingw32-nm', $built])->{out} =~ /^([0-9a-f]+) T plain_call$/m or die "no plain_call\n";
	my %dump;
	for my $side (qw(own stranger)) {
		my $bytes = slurp($built);
		$bytes =~ s/plain_call/EVIL_NAMES/g if $side eq 'stranger';
		mkdir "$dir/$side" or die "$side: $!\n";
		spew("$dir/$side/names_c.exe", $bytes);
		my $text = slurp(dump_with('planted.txt', "$dir/$side/names_c.exe",
			sprintf '// hsnap: module base=%X timestamp=%s checksum=%s', $base, $is->{timestamp}, $is->{checksum}));
		$text =~ s/ 24000 / @{[sprintf '%X', $is->{size}]} /;
		$text =~ s/\t\K[0-9A-F]+/sprintf '%X', $at - hex($is->{base}) + $base + 8/e;
		$dump{$side} = spew("$dir/$side/dump.txt", $text);
	}
	my $of = sub {
		my ($tool, $side, $cache, %env) = @_;
		my $result = run(tool($tool, 'linux', $dump{$side}), env => { HSYM_CACHE => $cache, %env });
		diag($result->{err}) if $result->{status};
		return join ' ', $result->{out} =~ /(plain_call|EVIL_NAMES)/g;
	};
	for my $way ([qw(hdiff hdiff)], [qw(hsym hdiff)], [qw(hdiff hsym)]) {
		my ($first, $then) = @$way;
		my $cache = "$dir/cache-$first-$then";
		is($of->($first, 'stranger', $cache), 'EVIL_NAMES', "$first: the stranger's own dump has his names");
		is($of->($then, 'own', $cache), 'plain_call', "$first, then $then: no other dump has them");
		is($of->($first, 'stranger', $cache), 'EVIL_NAMES', "$first: nor has his the others'");
	}

	# Names in the cache outlive their files, and no symbolizer is available.
	my @alone = ("$dir/cache-hdiff-hdiff", HSYM_LLVM => "$dir/none");
	my $rebuilt = slurp("$dir/own/names_c.exe");
	substr($rebuilt, unpack('V', substr $rebuilt, 0x3c, 4) + 8, 4) ^= "\1";
	spew("$dir/own/names_c.exe", $rebuilt);
	is($of->('hdiff', 'own', @alone), 'plain_call', 'hdiff: the names of a build outlive the next one');
	unlink "$dir/own/names_c.exe" or die "own: $!\n";
	is($of->('hdiff', 'own', @alone), 'plain_call', 'hdiff: and the file itself');
	return;
}

# Removes printable characters in UTF-8; returns the rest.
sub obeyed_in {
	my ($bytes) = @_;
	$bytes =~ s/[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}//g;
	return join ' ', map { sprintf '%02X', ord } $bytes =~ /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;
}

sub terminal {
	my $exe = "$dir/named\x9b31m.exe";
	my $bytes = slurp("$root/build/win64/samples/leak_wrapper.exe");
	ok($bytes =~ s/load_texture/load\x9b31mture/g, 'a function has the byte 9B in its name');
	spew($exe, $bytes);
	my ($at) = run(['x86_64-w64-mingw32-nm', $exe])->{out} =~ /^([0-9a-f]+) . load.31mture$/m;
	my $module = dump_with('module.txt', "C:\\m\x9b31m.exe");
	my $name = dump_with('name.txt', 'C:\\m.exe',
		sprintf('// hsnap: name addr=%X function="\\x9b31mRED" offset=1 file="\\x9b.c" line=1', $base + 0x1491));
	my $image = dump_with('image.txt', $exe, sprintf '// hsnap: module base=%X timestamp=1 checksum=1', $base);
	my %ways = (
		(map { ("hdiff, $_->[0]" => ['hdiff', $_->[1]], "hsym --explain, $_->[0]" => ['hsym', '--explain', $_->[1]],
			"hsym, $_->[0]" => ['hsym', '-o', '/dev/null', $_->[1]]) } [module => $module], [name => $name], [image => $image]),
		'hdiff, a file that is none' => ['hdiff', "$dir/no\x9bfile"],
		'hsym -e' => ['hsym', '-e', $exe, sprintf '0x%X', 8 + hex $at],
		'hsym -e, a file that is none' => ['hsym', '-e', "$dir/no\x9bfile"],
	);
	for my $llvm ([], [HSYM_LLVM => "$dir/none"]) {
		for my $way (sort keys %ways) {
			my $result = run(tool($ways{$way}[0], 'linux', @{ $ways{$way} }[1 .. $#{ $ways{$way} }]), env => {@$llvm});
			my $text = "$result->{out}$result->{err}";
			is(obeyed_in($text), '', "$way@{[@$llvm ? ', no llvm-symbolizer' : '']}: harmless") or diag($text);
			like($text, qr/\?31m/, "$way: and the name is shown") if $way !~ /none|^hsym(?: --explain, name|, name|, image)/;
		}
	}
	return;
}

# Adding 0 to a null pointer is undefined, but gcc's sanitizer ignores it. Files that once did so
# are compiled with clang, which makes such code trap. All other files are compiled as usual.
sub null_pointers {
	plan(skip_all => "no clang$llvm here") if system("command -v clang$llvm >/dev/null");
	my @objects;
	for my $file (qw(diff/match/location_names diff/printed/printed_rows snapshot/minidump/minidump_memory symbolize/backend/llvm)) {
		push @objects, "$dir/" . $file =~ tr,/,-,r . '.o';
		is(run(["clang$llvm", qw(-std=c11 -I. -D_XOPEN_SOURCE=700 -O0 -fsanitize=undefined -fsanitize-trap=undefined -c),
			"$file.c", '-o', $objects[-1]])->{status}, 0, $file);
	}
	my $blockless = join "\n", '// Loaded modules:', '// Process modules enumerated.', '// hsnap: end blocks=0 requested=0 overhead=0', '';
	spew("$dir/none.txt", "// hsnap: dump format=1\n$blockless");
	my $stackless = '// hsnap: heap addr=650000 kind=nt bits=64 committed=0 reserved=0 stackless-blocks=2 stackless-requested=20 stackless-overhead=0';
	spew("$dir/stackless.txt", join "\n", '// hsnap: dump format=1', '// hsnap: stacks source=tracer', '// Loaded modules:',
		'// Process modules enumerated.', $stackless, '*- - - - - - - - - - Start of data for heap @ 650000 - - - - - - - - - -',
		'*- - - - - - - - - - End of data for heap @ 650000 - - - - - - - - - -', '// hsnap: end blocks=2 requested=20 overhead=0', '');
	is(run(tool('hdiff', 'linux', '-f', "$dir/report.txt", "$dir/stackless.txt"))->{status}, 0, 'a report whose row has no frames');
	# An empty list of memory.
	spew("$dir/empty.dmp", pack('a4 V7 V3 Q2', 'MDMP', 0xa793, 1, 32, 0, 0, 0, 0, 9, 16, 44, 0, 60));
	my $exe = "$root/build/win64/symbols/dwarf4/names_c.exe";
	for my $case (['diff/hdiff', 0, "$dir/none.txt"], ['diff/hdiff', 0, "$dir/report.txt"],
		['snapshot/hsnap', 2, '-z', "$dir/empty.dmp", '-f', "$dir/out.txt"], ['symbolize/hsym/hsym', 0, '--no-cache', '-e', $exe, '+1600']) {
		my ($main, $status, @args) = @$case;
		my $program = "$dir/" . $main =~ s,.*/,,r;
		my $linked = -e $program || !run(['gcc', "build/linux/obj/$main.o", @objects, 'build/linux/library.a',
			qw(-lpcre2-8 -lZydis -lz -lzstd -lpthread -l:libsupc++.a -o), $program])->{status};
		ok($linked, "$main is linked");
		is(run([$program, @args])->{status}, $status, "$main: status $status, not that of a trap");
	}
}
