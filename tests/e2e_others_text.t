#!/usr/bin/perl
# Texts from other programs and people: frames of old Windows, logs changed by mail and web pages,
# two logs in one file, comparisons in a row, other tools' files. Each synthetic text has a plain
# form, whose report is the truth.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use File::Basename qw(basename);
use JSON::PP qw(decode_json);
use Test::More;
use Hunt;
use Series;

my $dir = fresh_dir();
my $hdiff = "$root/build/linux/hdiff";
# Growth of bytes, OLD bytes, growth of blocks, OLD blocks; frames: address, module, function,
# offset, file, line.
my @stacks = (
	[640, 13920, 2, 26, [0x7C8531E4, 'ntdll', 'RtlAllocateHeapSlowly', 0x44], [0x77C2C3C9, 'msvcrt', 'malloc', 0x6C],
		[0x401A12, 'stock', 'Bin::add(Item *)', 0x32, 'd:\src (new)\bin.cpp', 88], [0x401B90, 'stock', 'main', 0x150, 'd:\src (new)\main.c', 41]],
	[-520, 14040, -1, 27, [0x7C8531E4, 'ntdll', 'RtlAllocateHeapSlowly', 0x44], [0x77C2C3C9, 'msvcrt', 'malloc', 0x6C],
		[0x402233, 'stock', 'read_line', 0x13], [0x10002233, 'plug', undef, 0x2233]],
);

# PowerShell 5 turns the first message of a program into such a record.
my $error = <<'RECORD' =~ s/_$//gmr;
umdh.exe : DBGHELP: stock - private symbols & lines _
In C:\tools\diff (1).ps1:14 Zeichen:1
+ & $umdh $a $b 2>&1 > cmp.txt
+ ~~~~~~~~~~~~~~~~~~~~~~~~~~~
    + CategoryInfo          : NotSpecified: (DBGHELP: stock...mbols & lines :String) [], Re_
   moteException
    + FullyQualifiedErrorId : NativeCommandError
 _
RECORD
# Symbol tracing prints such lines, which may stand anywhere.
my $messages = <<'LINES';
SYMSRV:  UNC: C:\symbols\stock.pdb\2B43\stock.pdb - path not found
SYMSRV:  RESULT: 0x80070003
DBGHELP: stock - private symbols & lines
         C:\symbols\stock.pdb
LINES
# Changes that mail, web pages and editors make to a text. The meaning stays certain.
my %mangled = (
	'8 blanks' => sub { $_[0] =~ s/^\t/' ' x 8/gmer =~ s/\t/  /gr },
	'4 blanks' => sub { $_[0] =~ s/^\t/    /gmr },
	'an indented block' => sub { $_[0] =~ s/^\t/' ' x 8/gmer =~ s/^(?=.)/    /gmr },
	'no-break blanks' => sub { $_[0] =~ s/^\t/"\xc2\xa0" x 8/gmer =~ s/(?<=\d) (?=bytes|at|by)/\xc2\xa0/gr =~ s/(?<=\d) +(?=\w+ C:)/\xc2\xa0\xc2\xa0/gr },
	'no-break blanks everywhere' => sub { $_[0] =~ s/ /\xc2\xa0/gr },
	'no-break blanks of Windows-1252' => sub { $_[0] =~ s/^\t/"\xa0" x 8/gmer },
	'double-spaced' => sub { $_[0] =~ s/\n/\n\n/gr },
	'double-spaced blanks' => sub { $_[0] =~ s/^\t/    /gmr =~ s/\n/\n\n/gr },
	'blank lines with blanks' => sub { $_[0] =~ s/^\t/    /gmr =~ s/^$/  /gmr },
	'quoted' => sub { $_[0] =~ s/^(.*)\n/> $1\n/gmr },
	'quoted twice' => sub { $_[0] =~ s/^(.*)\n/> > $1\n/gmr },
	'quoted, TABs to blanks' => sub { $_[0] =~ s/^\t/        /gmr =~ s/^(.*)\n/>$1\n/gmr },
	'quoted and double-spaced' => sub { $_[0] =~ s/\n/\n\n/gr =~ s/^(.*)\n/> $1\n/gmr },
	'en dashes' => sub { $_[0] =~ s/(?<=[ *])-(?= )/\xe2\x80\x93/gr },
	'minus signs' => sub { $_[0] =~ s/^-/\xe2\x88\x92/gmr =~ s/(?<=[ *])-(?= )/\xe2\x88\x92/gr },
	'en dashes of Windows-1252' => sub { $_[0] =~ s/(?<=[ *])-(?= )/\x96/gr },
	'CR CR LF' => sub { $_[0] =~ s/\n/\r\r\n/gr },
	'a list of points' => sub { $_[0] =~ s/^\*- /\xe2\x80\xa2 /gmr },
	'CR LF, blanks' => sub { $_[0] =~ s/^\t/        /gmr =~ s/\n/\r\n/gr },
	'UTF-16, blanks' => sub { "\xff\xfe" . pack 'v*', unpack 'C*', $_[0] =~ s/^\t/        /gmr },
	'terminal, erased line ends' => sub { $_[0] =~ s/$/\e[K/gmr =~ s/\t/        /gr },
	'terminal, colours' => sub { $_[0] =~ s/^(.*)$/\e[0;32m$1\e(B\e[m/gmr },
	'terminal, links and modes' => sub { $_[0] =~ s/^(.*)\n/\e]8;;http:\/\/a\e\\$1\e]0;a title\a\e[?25h\e=\r\n/gmr },
	'terminal, bare frames' => sub { $_[0] =~ s/^\t//gmr =~ s/$/\e[0m/gmr },
	'no width before lines' => sub { $_[0] =~ s/^(?=.)/\xe2\x80\x8b/gmr },
	'byte order marks before lines' => sub { $_[0] =~ s/^(?=.)/\xef\xbb\xbf/gmr },
	'directions around lines' => sub { $_[0] =~ s/^(.+)$/\xe2\x80\x8e$1\xe2\x81\xa9/gmr },
	'collapsed blanks' => sub { $_[0] =~ s/^[ \t]+//gmr =~ s/[ \t]+/ /gr },
	'quotation marks around lines' => sub { $_[0] =~ s/"/""/gr =~ s/^(.*)$/"$1"/gmr },
	'cells of a spreadsheet' => sub { $_[0] =~ s/^(\t?)([^\t\n]*[,"][^\t\n]*)$/$1 . '"' . $2 =~ s{"}{""}gr . '"'/gmer =~ s/$/\t/gmr },
	"a PowerShell error" => sub { $_[0] =~ s/^(?=Total)|(?<=RtlAllocateHeapSlowly\+0x00000044\n)|(?<=RtlAllocateHeapSlowly\+44\n)|(?<=\t7FF812345678\n)|(?<=\n)(?=\t7[0-9A-F]{7,}\n)/$error/r },
	'messages of the symbol engine' => sub { $_[0] =~ s/(RtlAllocateHeapSlowly\S+\n|\t7FFE1000A123\n| allocs\t.*\n|Total .*\n)/$1$messages/gr },
	'files on lines of their own' => sub { $_[0] =~ s/ \((?=d:)/\n(/gr },
	'numbers of lines on lines of their own' => sub { $_[0] =~ s/,\K (?=\d+\)$)/\n\t    /gmr },
	'files on lines of their own, mailed' => sub { $_[0] =~ s/^\t/    /gmr =~ s/ \((?=d:)/\n(/gr =~ s/\n/\n\n/gr },
	'a prompt' => sub { $_[0] . "\nC:\\dumps>" },
	'time stamps of a build server' => sub { my $at = 0; "\xef\xbb\xbf" . ($_[0] =~ s/^/sprintf '2026-05-04T09:%02d:%02d.%07dZ ', $at \/ 60 % 60, $at++ % 60, $at/gmer) },
	'numbers of lines' => sub { my $at = 0; $_[0] =~ s/^/++$at . ':'/gmer },
	'numbers of lines that are not empty' => sub { my $at = 0; $_[0] =~ s/^(.*)\n/++$at && length $1 ? "$at:$1\n" : ''/gmer },
	'a bar before lines' => sub { "Hello,\n" . $_[0] =~ s/^(.*)$/length $1 ? "| $1" : '|'/gmer },
	'initials before lines' => sub { "Hello,\n" . ($_[0] =~ s/^(.*)$/length $1 ? "KM> $1" : 'KM>'/gmer) . "Regards\n" },
	'colons, blanks for TABs' => sub { $_[0] =~ s/^\t/        /gmr =~ s/^(?=.)/: /gmr },
	'blanks before exclamation marks' => sub { $_[0] =~ s/(?=!)/\xc2\xa0/gr },
	'words around it' => sub { "Hello,\n\nhere it is:\n\n" . $_[0] =~ s/^\t/  /gmr . "\nRegards\n-- \nA - B\n" },
);

frames_of_old_windows();
two_in_one_file();
two_encodings();
pasted();
escaped();
nearly_right();
subtest 'notes that were wrapped' => \&wrapped_notes;
subtest 'a banner that was wrapped' => \&wrapped_banner;
subtest 'no file to read' => \&no_file;
subtest 'stacks that were lost' => \&lost_stacks;
other_tools();
code_pages();
chains();
subtest 'stacks of chains' => \&chained_stacks;
subtest 'totals of chains' => \&chained_totals;
subtest 'a heap that is missing' => \&missing_heaps;
subtest 'paths of modules that are cut' => \&cut_paths;
subtest 'a total line that counts more than the rows' => \&clipped;
subtest 'a stack whose lines were left out has no caller that is known' => \&torn;
subtest 'prefixes of some lines' => \&some_prefixes;
subtest 'patches of logs' => \&patches;
subtest 'overhead without rows' => \&overhead_only;
subtest 'words in place of entries' => \&cut_entries;
subtest 'frames whose address is all that is known' => \&addresses_only;
subtest 'texts of others' => \&given;
done_testing;

sub hdiff { return run([$hdiff, @_]) }

sub frame {
	my ($form, $addr, $module, $function, $offset, $file, $line) = @_;
	my $name = $module . (defined $function ? "!$function" : '') . sprintf $form->{offset} // '+%08X', $offset;
	my $place = defined $file && !$form->{no_file} ? " ($file, $line)" : '';
	my $digits = sprintf $form->{digits} // '%08X', $addr;
	return "$digits$form->{after}$name$place" if $form->{after};
	return "$digits : $name$place" if $form->{first};
	return ($form->{behind} || !defined $function ? "$name : $digits" : $name) . $place;
}

sub comparison {
	my ($form) = @_;
	my ($text, $sum) = ("// Debug library initialized ...\n", 0);
	for my $i (0 .. $#stacks) {
		my ($bytes, $old, $count, $old_count, @frames) = @{ $stacks[$i] };
		my $sign = $bytes < 0 ? '-' : '+';
		$text .= sprintf "%s%8X ( %6X - %6X) %6X allocs\tBackTrace%X\n", $sign, abs $bytes, $old + $bytes, $old, $old_count + $count, 0x363 + $i;
		$text .= sprintf "%s%8X ( %6X - %6X)\tBackTrace%X\tallocations\n\n", $sign, abs $count, $old_count + $count, $old_count, 0x363 + $i;
		$text .= join '', map { "\t" . frame($form, @$_) . "\n" } @frames;
		$text .= "\n";
		$sum += $bytes;
	}
	return $text . sprintf "\n\nTotal increase == %6X requested + %6X overhead = %6X\n", $sum, 16, $sum + 16;
}

# Writes an old log, whose frames are names. The argument is 0 for the log before the growth, and 1
# for the log after it.
sub hogs {
	my ($form, $when) = @_;
	my $text = "*- - - - - - - - - - Heap 00140000 Hogs - - - - - - - - - -\n\n";
	for my $i (0 .. $#stacks) {
		my ($bytes, undef, $count, undef, @frames) = @{ $stacks[$i] };
		my $blocks = 30 + $when * $count;
		$text .= sprintf "%08X bytes in 0x%X allocations (@ 0x%08X) by: BackTrace%05X\n", 3000 + $when * $bytes, $blocks, (3000 + $when * $bytes) / $blocks, 0x363 + $i;
		$text .= join '', map { frame($form, @$_) . "\n" } @frames;
		$text .= "\n";
	}
	return $text;
}

# UMDH prints code of a just-in-time compiler as "<no module>!???+0 : ADDRESS". Two stacks differ only in
# that address: one grew, the other shrank by as much.
sub addresses_only {
	for my $name ('<no module>!???', '<nomodule>!???', 'host!???') {
		my ($text, @addrs) = ('', 0x7FF9 << 32 | 0x641B2C44, 0x7FF9 << 32 | 0x641B7700);
		for my $i (0, 1) {
			$text .= sprintf "%s   80000 ( %s)     80 allocs\tBackTrace%d\n%s      80 ( %s)\tBackTrace%d\tallocations\n\n\tntdll!RtlAllocateHeap+93\n\t%s+00000000 : %X\n\thost!main+42\n\n",
			    $i ? ('-', '80000 - 160000', 7, '-', '80 -    160', 7) : ('+', '80000 -      0', 6, '+', '80 -      0', 6), $name, $addrs[$i];
		}
		my $file = spew("$dir/only.txt", "${text}Total increase == 0 requested + 0 overhead = 0\n");
		run([$hdiff, '--input-base', 'decimal', '-d', '--overwrite', '-f', "$dir/only2.txt", $file]);
		for my $read ($file, "$dir/only2.txt") {
			my @base = $read eq $file ? ('--input-base', 'decimal') : ();
			my $json = decode_json(hdiff(@base, '-o', 'json', $read)->{out});
			is_deeply([map { [$_->{growth}{bytes}, $_->{frames}[1]{address}] } @{ $json->{rows} }], [[80000, '7FF9641B2C44'], [-80000, '7FF9641B7700']], "$name: both rows: " . basename($read));
			is(hdiff(@base, '--max-growth', 79999, $read)->{status}, 1, 'what grew is over the limit');
			next if $name =~ /^host/;
			my $shown = hdiff(@base, $read)->{out};
			like($shown, qr/^ +\Q$_\E$/m, 'the text has the address') for map { sprintf '%X', $_ } @addrs;
		}
	}
	return;
}

# In every report a frame's address, place and file are those from which the frame was made. Its
# form may lack the address or the file.
sub frames_of_old_windows {
	my @forms = (['behind', {}], ['first', { first => 1 }], ['first, short', { first => 1, offset => '+%X', digits => '%x', no_file => 1 }],
		['behind, all', { behind => 1, offset => '+0x%X' }], ['first, 64 bits', { first => 1, digits => '%016X', offset => '+0x%08X' }],
		['first, without a colon', { after => ' ', digits => '%08x', offset => '+0x%x' }], ['after a number', { after => ' ', digits => '0f 0x%x' }]);
	for my $case (@forms) {
		my ($what, $form) = @$case;
		my @one = spew("$dir/cmp.txt", comparison($form));
		my @two = map { spew("$dir/hogs$_.txt", hogs($form, $_)) } 0, 1;
		subtest "comparison, address $what" => sub { check_frames($form, @one) };
		subtest "log of old, address $what" => sub { check_frames({ %$form, is_log => 1 }, @two) };
	}
	# A comparison treats other spellings of a frame as the same frame.
	my @same = map { "\t$_\n" } 'ntdll!RtlAllocateHeap+44 : 7FFE12345678', "00007ffe`12345678 : ntdll!RtlAllocateHeap+0x44", "00007ffe`12345678 ntdll!RtlAllocateHeap+44",
		'ntdll!RtlAllocateHeap+44 (7FFE12345678)', 'ntdll!RtlAllocateHeap+0x44 7FFE12345678', '7FFE12345678 (ntdll!RtlAllocateHeap+0x44)', 'ntdll!RtlAllocateHeap+44 [7FFE12345678]', (map { "$_ ntdll!RtlAllocateHeap+0x44" } columns()),
		'ntdll.dll!RtlAllocateHeap+0x44', "77c9a1f2 ntdll.DLL!RtlAllocateHeap+0x44";
	my @source = map { "\t$_\n" } 'app!f(int)+1A (e:\\b c\\f.cpp, 12)', 'app!f(int)+1A (e:\\b c\\f.cpp, 12) : 7FF611110A1A', '7FF611110A1A : app!f(int)+1A (e:\\b c\\f.cpp, 12)', 'app!f(int)+0x1a [e:\\b c\\f.cpp @ 12]',
		"00007ff6`11110a1a app!f(int)+0x1a [e:\\b c\\f.cpp @ 12]", 'app!f(int)+1A [e:\\b c\\f.cpp @ 12] : 7FF611110A1A', 'app!f(int)+1A (e:\\b c\\f.cpp:12)',
		map { "$_ app.exe!f(int)+0x1a [e:\\b c\\f.cpp @ 12]" } columns();
	my $written = comparison({}) =~ s/^\tntdll.*\n/join '', @same, @source/mer;
	my $frames = decode_json(hdiff('-o', 'json', spew("$dir/written.txt", $written))->{out})->{rows}[0]{frames};
	is_deeply([map { [@$_{qw(module function offset file line)}] } @$frames[0 .. $#same + @source]],
		[(map { ['ntdll', 'RtlAllocateHeap', '44', undef, undef] } @same), (map { ['app', 'f(int)', '1A', 'e:\\b c\\f.cpp', 12] } @source)], 'writings of debuggers') or diag(explain($frames));
	debuggers_files();
	# If modules and offsets are known, the code's address does not distinguish stacks.
	my @moved = map { spew("$dir/moved$_.txt", hogs({ first => 1 }, $_) =~ s/^0(\d{7} : )/9$1/gmr) } 1;
	my $report = hdiff('-o', 'json', spew("$dir/old.txt", hogs({ first => 1 }, 0)), @moved);
	is_deeply([map { $_->{growth}{bytes} } @{ decode_json($report->{out})->{rows} }], [640, -520], 'at other addresses: the same stacks');
	return;
}

# Columns that debuggers print before a name.
sub columns {
	my $addr = '00007ffc`2000a1f2';
	return ('77c9a1f2', '0x77c9a1f2', '7FFC2000A1F2', '0x00007FFC2000A1F2', '00', '0a', '00 ', '0:', '3 :', '0018fe10 77c9a1f2', '01 0018fe10 77c9a1f2', '1c 104 0018fe10 77c9a1f2',
		'77c9a1f2 00000000 0018fe44 00000000', "02 00000000`0012f8a8 $addr", "0b $addr : 00000000`00000000 00000000`00000001 00000000`00000000 $addr :");
}

# Names of folders may hold brackets, and where a function begins no offset is printed.
sub debuggers_files {
	for my $file ('C:\\Program Files (x86)\\w\\log.cpp', 'd:\\a (b) c\\(d)\\log.cpp', 'd:\\[a] b [c]\\log.cpp', 'd:\\a ((b)\\log.cpp', '/a/b.c') {
		my @names = map { ("gateway!Log::put(int)+9A$_", "gateway!Log::put(int)$_", "00 gateway!Log::put(int)$_") } map { (" ($file$_)", " [$file$_]", "  [$file$_]") } ':301', ', 301', ' @ 301', ':301:7';
		@names = grep { !/put\(int\) .*\(\(/ } @names; # where the brackets do not match it takes an offset
		my $text = comparison({}) =~ s/^\tntdll.*\n/join '', map { "\t$_\n" } @names/mer;
		my $frames = decode_json(hdiff('-o', 'json', spew("$dir/files.txt", $text))->{out})->{rows}[0]{frames};
		is_deeply([map { [@$_{qw(module function file line)}] } @$frames[0 .. $#names]], [map { ['gateway', 'Log::put(int)', $file, 301] } @names], "files of debuggers: $file") or diag(explain($frames));
		for my $name (grep { /9A [^ ]/ } @names) {
			my $log = hdiff('-o', 'json', spew("$dir/files.txt", hogs({}, 1) =~ s/^ntdll.*/$name/mr));
			is_deeply([@{ decode_json($log->{out} || '{}')->{rows}[0]{frames}[0] // {} }{qw(function offset file line)}], ['Log::put(int)', '9A', $file, 301], "in an old log: $name") or diag($log->{err});
		}
	}
	for my $function ('f[abi:cxx11]', 'f [clone .cold]', 'f [abi:1x]', 'S::operator[]', 'f<a[12]>', 'f [12]', 'f (*)[12]') {
		my $text = comparison({}) =~ s/^\tntdll.*/\tgateway!$function/mr;
		my $frame = decode_json(hdiff('-o', 'json', spew("$dir/files.txt", $text))->{out})->{rows}[0]{frames}[0];
		is_deeply([@$frame{qw(function file)}], [$function, undef], "not a file: $function");
	}
	my $text = comparison({}) =~ s/^\tntdll.*\n/\t77c9a1f2 ntdll+0x1f2\n\t01 (Inline Function) --------`-------- app!g+0x7\n\t02 (Inline) -------- app!g+0x7\n/mr;
	my $frames = decode_json(hdiff('-o', 'json', spew("$dir/files.txt", $text))->{out})->{rows}[0]{frames};
	is_deeply([map { [@$_{qw(module function offset inline)}] } @$frames[0 .. 2]],
		[['ntdll', undef, '1F2', undef], map { ['app', 'g', '7', JSON::PP::true] } 1, 2], 'no name, and inlined') or diag(explain($frames));
	return;
}

sub check_frames {
	my ($form, @files) = @_;
	my $result = hdiff('-o', 'json', @files);
	is($result->{status}, 0, 'read') or diag($result->{err});
	my $rows = decode_json($result->{out})->{rows};
	is(scalar @$rows, 2, 'rows');
	for my $i (0, 1) {
		my ($bytes, undef, $count, undef, @frames) = @{ $stacks[$i] };
		is_deeply([@{ $rows->[$i]{growth} }{qw(bytes blocks)}], [$bytes, $count], "row $i: growth");
		my @named = map { [@$_{qw(module function offset file line)}] } @{ $rows->[$i]{frames} };
		my @wanted = map { [@$_[1, 2], sprintf('%X', $_->[3]), $form->{no_file} ? (undef, undef) : @$_[4, 5]] } @frames;
		is_deeply(\@named, \@wanted, "row $i: frames") or diag(explain(\@named));
	}
	my $only = sub { my $got = hdiff('-o', 'json', @_, @files); my $got_rows = decode_json($got->{out})->{rows}; return join ' ', map { $_->{growth}{bytes} } @$got_rows };
	is($only->('--module', 'plug'), '-520', '--module');
	is($only->('-i', '^stock!Bin'), '640', '-i');
	is($only->('-x', '^plug\+'), '640', '-x');
	# Users write the names of modules as lists of modules have them.
	is($only->('-i', $_), '640', "-i $_") for '^stock.exe!Bin', 'stock\.EXE!Bin', 'none.dll!|stock\.exe!Bin';
	is($only->('-x', 'stock.exe!Bin'), '-520', '-x with an extension');
	is($only->('-i', '\.exe!'), '', '-i: a condition on the extension');
	is($only->('--suppress', spew("$dir/known.supp", "leak:^stock.exe!read_line\$\n")), '640', '--suppress a function of a file');
	is($only->('--suppress', spew("$dir/known.supp", "leak:*.exe!\n")), '640 -520', '--suppress: a condition on the extension');
	is($only->('--suppress', spew("$dir/known.supp", "leak:^read_line\$\n")), '640', '--suppress a function');
	is($only->('--suppress', spew("$dir/known.supp", "leak:^plug\$\n")), '640', '--suppress a module');
	is($only->('--suppress', spew("$dir/known.supp", "leak:bin.cpp\n")), $form->{no_file} ? '640 -520' : '-520', '--suppress a file');
	my $table = hdiff('--no-pager', @files)->{out};
	like($table, qr/^ +1 +\+640 B .*\bBin::add\(Item \*\)/m, 'the table: the first function that is no allocator');
	like(hdiff('--no-pager', '--strip-file', spew("$dir/strip", "$_!Bin::*\n"), @files)->{out}, qr/^ +1 +\+640 B .*\bmain\b/m, "--strip-file: $_") for 'stock', 'Stock.exe';
	my $groups = decode_json(hdiff('-o', 'json', '--group', 'module', @files)->{out})->{groups};
	is_deeply([sort map { $_->{name} } @$groups], [qw(plug stock)], '--group module: without allocators');
	my $folded = hdiff('-o', 'folded', @files)->{out};
	my ($old, $new) = $form->{is_log} ? (3000, 3640) : (13920, 14560);
	like($folded, qr/^stock!main;stock!Bin::add\(Item \*\);msvcrt!malloc;ntdll!RtlAllocateHeapSlowly $old $new$/m, 'folded');
	return;
}

# Writes a raw UMDH log. The first argument is 0 for the log before the growth and 1 for the log
# after it, which has two blocks per stack instead of one. %how: pid, blocks of the first stack.
sub raw {
	my ($when, %how) = @_;
	my $text = "// \n// UMDH: version 10.0.19041.1: Logtime 2026-05-04 09:0$when - Machine=MADE - PID=" . ($how{pid} // 4312) . "\n// \n"
	    . "// Loaded modules: \n//     Base Size Module\n//        7FF600000000    40000 C:\\a p\\stock.exe\n//        7FFE10000000   1F0000 C:\\Windows\\ntdll.dll\n//\n"
	    . "// Process modules enumerated.\n\n";
	for my $heap (0x1F0000, 0x2F0000) {
		my $block = $heap;
		$text .= sprintf "*- - - - - - - - - - Start of data for heap @ %X - - - - - - - - - -\n\nREQUESTED bytes + OVERHEAD at ADDRESS by BackTraceID\n     STACK if not already dumped.\n\n"
		    . "*- - - - - - - - - - Heap %X Hogs - - - - - - - - - -\n\n", $heap, $heap;
		for my $id (0x11, 0x1A) {
			for my $i (0 .. ($when + 1) * 2 * ($how{blocks} // 1) - 1) {
				$text .= sprintf "%X bytes + %X at %X by BackTrace%X\n", 0x30, 0x10, $block += 0x40, $id;
				$text .= sprintf "\t7FFE1000A123\n\t7FF60000%04X\n\t7FF600001A12\n\n", 0x1200 + $id if !$i;
			}
		}
		$text .= sprintf "\n*- - - - - - - - - - End of data for heap @ %X - - - - - - - - - -\n", $heap;
	}
	return $text;
}

# A log that ends at the end of a heap looks whole. Of two heaps, the second is missing or empty.
sub missing_heaps {
	my $old = spew("$dir/heaps-old.txt", raw(0));
	my ($first) = raw(1) =~ /\A(.*?heap \@ 1F0000 - [- ]*\n)(?=\*- - [- ]*Start of data for heap \@ 2F)/s or BAIL_OUT('no second heap');
	my $empty = raw(1) =~ s/( Heap 2F0000 Hogs [- ]*\n).*?(?=\n\*)/$1/sr;
	for (['no second heap', $first, 1], ['an empty heap', $empty, 0], ['another process', $first =~ s/PID=4312/PID=4313/r, 0], ['both', raw(1), 0]) {
		my ($what, $text, $count) = @$_;
		my $new = spew("$dir/heaps-new.txt", $text);
		my $result = hdiff($old, $new);
		is($result->{status}, 0, "$what: status 0");
		is_deeply([grep { /heaps? of/ } split /\n/, $result->{err}],
			[("hdiff: $new: warning: 1 of the 2 heaps of $old is not in it: destroyed since, or the log ends too early") x $count], "$what: warnings");
	}
	return;
}

# Two logs in one file are never summed. The message has the first line of the second log. The test
# then reads the file's parts.
sub two_in_one_file {
	my $ours = series_dump(1763632800000, { leak => 1000 });
	my %texts = (raw => raw(1), fragment => raw(1) =~ s/\A.*?(?=\*-)//sr, modules => raw(1) =~ s/\A.*?(?=^\/\/ Loaded)//smr,
		hogs => hogs({}, 1), bare => hogs({}, 1) =~ s/\A\*-.*\n\n//r, dump => $ours, comparison => comparison({}), headed => "// + BYTES_DELTA (NEW_BYTES - OLD_BYTES)\n" . comparison({}) =~ s{\n+Total.*}{\n\n}sr);
	my %begins = (raw => qr{^// UMDH}, fragment => qr/^\*-/, modules => qr{^// Loaded}, hogs => qr/^\*-/, bare => qr/^\w+ bytes in/, dump => qr{^// hsnap}, comparison => qr/^\+/, headed => qr{^// \+ BYTES});
	my @pairs = (['raw', 'raw'], ['raw', 'fragment'], ['fragment', 'fragment'], ['fragment', 'raw'], ['fragment', 'modules'], ['modules', 'modules'], ['hogs', 'hogs'], ['bare', 'bare'],
		['raw', 'dump'], ['dump', 'raw'], ['dump', 'dump'], ['raw', 'comparison'], ['hogs', 'comparison'], ['comparison', 'comparison'], ['headed', 'headed']);
	for my $pair (@pairs) {
		my ($first, $second) = @$pair;
		my $line = 1 + ($texts{$first} =~ tr/\n//);
		for my $text (split /\n/, $texts{$second}) {
			last if $text =~ $begins{$second};
			$line++;
		}
		my $file = spew("$dir/two.txt", $texts{$first} . $texts{$second});
		my $result = hdiff('-o', 'json', $file);
		is($result->{status}, 2, "$first and $second: status 2");
		is($result->{out}, '', "$first and $second: no sum");
		like($result->{err}, qr/\Ahdiff: \Q$file\E:$line: another snapshot or comparison begins here .*csplit.*\n\z/, "$first and $second: at line $line");
	}
	# The first log may have no blocks.
	my $empty = raw(0) =~ s/^\*- (?:- )+Start.*//msr;
	my $empty_lines = $empty =~ tr/\n//;
	my ($banner) = raw(1) =~ m{\A(.*?)^// UMDH}ms;
	my $begins = 1 + $empty_lines + ($banner =~ tr/\n//);
	like(hdiff(spew("$dir/two.txt", $empty . raw(1)))->{err}, qr/two\.txt:$begins: another snapshot.* \(UMDH's banner\)/, 'after a log without blocks: at the banner');
	# Files that several threads read in pieces, and hsym.
	my $large = raw(0, blocks => 30000);
	my $line = 2 + ($large =~ tr/\n//);
	my $file = spew("$dir/large.txt", $large . raw(1));
	like(hdiff($file)->{err}, qr/large\.txt:$line: another snapshot/, 'a large file');
	like(run(["$root/build/linux/hsym", $file])->{err}, qr/large\.txt:$line: another snapshot/, 'hsym');
	# UMDH's users often name its logs "*.log"; only hsnap's own logs are left out.
	my $logs = fresh_dir();
	spew("$logs/$_.log", raw($_)) for 0, 1;
	spew("$logs/hsnap.log", "2026-11-20T10:00:00.000Z pid 4312: 8 blocks\n");
	for my $given ($logs, "$logs/*") {
		my $found = hdiff('-o', 'json', $given);
		is("$found->{status} " . decode_json($found->{out})->{totals}{all}{growth}{blocks}, '0 8', "logs named *.log: $given");
	}
	# With UMDH's matching, an id may stand for several stacks; none of them is named for the row.
	my @two = map { spew("$dir/id$_.txt", raw($_) =~ s/(Start of data for heap @ 2F0000.*?)\t7FFE1000A123\n/$1\t7FFE1000B456\n/sr) } 0, 1;
	like(hdiff('--no-pager', '--no-symbols', '--match', 'id', @two)->{out}, qr/^ +1 .*\(one of 2 stacks under this id\)\n.*^ +\(2 different stacks have this id: one is shown\)\n/ms, '--match id: an id of two stacks');
	is_deeply([sort map { $_->{stack_count} // 1 } @{ decode_json(hdiff('-o', 'json', '--match', 'id', @two)->{out})->{rows} }], [1, 2], '--match id: their number in json');
	# In a folder, such a file is left out, and the other files are used.
	my $folder = fresh_dir();
	spew("$folder/$_.txt", raw($_)) for 0, 1;
	spew("$folder/2.txt", raw(0) . raw(1));
	my $result = hdiff('-o', 'json', $folder);
	like($result->{err}, qr/2\.txt:\d+: warning: left out: another snapshot/, 'in a folder');
	is(decode_json($result->{out})->{totals}{all}{growth}{blocks}, 8, 'what the others are');
	return;
}

# PowerShell writes UTF-16, and cmd appends 8-bit text to it: where that begins is in the message.
sub two_encodings {
	my %units = (LE => ["\xff\xfe", 'v*'], BE => ["\xfe\xff", 'n*']);
	my $utf16 = sub { my ($order, $text) = @_; return $units{$order}[0] . pack $units{$order}[1], unpack 'U*', $text };
	my %texts = (raw => raw(0), 'a long one' => raw(0, blocks => 3000), comparison => comparison({}), hogs => hogs({}, 0), words => "\n" . 'x' x 70 . "\n");
	for my $order (sort keys %units) {
		for my $pair (['raw', 'raw'], ['a long one', 'raw'], ['raw', 'a long one'], ['comparison', 'comparison'], ['hogs', 'hogs'], ['raw', 'words']) {
			for my $crlf (0, 1) {
				my ($first, $second) = map { $crlf ? $texts{$_} =~ s/\n/\r\n/gr : $texts{$_} } @$pair;
				my $file = spew("$dir/two.txt", $utf16->($order, $first) . $second);
				my ($line, $byte) = (1 + ($first =~ tr/\n//), 2 + 2 * length $first);
				my $what = "UTF-16$order, @{[join ' and ', @$pair]}, " . ($crlf ? 'CR LF' : 'LF');
				for my $given ($file, packed($file)) {
					my $result = hdiff('-o', 'json', $given);
					is($result->{status}, 2, "$what: status 2");
					is($result->{out}, '', "$what: no sum");
					like($result->{err}, qr/\Ahdiff: \Q$given\E:$line: the file is in two encodings \(UTF-16 up to byte $byte, 8-bit text after it\); .*\n\z/, "$what: where");
				}
			}
		}
		my $empty = spew("$dir/two.txt", $utf16->($order, raw(0)) . "\r\n" . ' ' x ($order eq 'LE' ? 0 : 80));
		is(hdiff($empty)->{status}, 2, "UTF-16$order, an empty line");
		my $letters = $utf16->($order, raw(0) =~ s/stock/"\x{4e2d}" x 24 . "\x{6587}\x{4ef6}"/er);
		is(hdiff(spew("$dir/letters.txt", $letters))->{status}, 0, "UTF-16$order, letters of two ASCII bytes");
	}
	return;
}

sub report_of {
	my ($what, @files) = @_;
	my $result = hdiff('-o', 'json', @files);
	is($result->{status}, 0, "$what: status 0") or diag($result->{err});
	unlike($result->{err}, qr/warning/, "$what: no warning");
	my $report = eval { decode_json($result->{out}) } // {};
	return { map { $_ => $report->{$_} } qw(totals rows) };
}

sub pasted {
	my @logs = map { raw($_) } 0, 1;
	my @old = map { hogs({ first => 1 }, $_) } 0, 1;
	my %plain = (raw => \@logs, comparison => [comparison({})], 'log of old' => \@old);
	for my $kind (sort keys %plain) {
		my $truth = report_of($kind, map { spew("$dir/plain$_.txt", $plain{$kind}[$_]) } 0 .. $#{ $plain{$kind} });
		for my $what (sort keys %mangled) {
			# These changes lose nothing in this kind of log.
			next if $kind eq 'log of old' && $what =~ /blanks|indented/ && $what !~ /double|around/;
			next if $kind eq 'comparison' && $what =~ /bare/; # frames there need a blank
			my @files = map { spew("$dir/pasted$_.txt", $mangled{$what}->($plain{$kind}[$_])) } 0 .. $#{ $plain{$kind} };
			is_deeply(report_of("$kind: $what", @files), $truth, "$kind: $what: the same report");
			is_deeply(report_of("$kind: $what, packed", map { packed($_) } @files), $truth, "$kind: $what: packed, too") if $what =~ /8 blanks|CR CR/;
		}
	}
	# Nothing at all precedes the frames.
	my @bare = map { spew("$dir/bare$_.txt", $logs[$_] =~ s/^\t//gmr) } 0, 1;
	is_deeply(report_of('no TABs', @bare), report_of('plain', map { spew("$dir/plain$_.txt", $logs[$_]) } 0, 1), 'no TABs: the same report');
	# Few lines suffice, and signs of no width anywhere.
	my $one = $logs[1] =~ s{^\*-[^\n]*Start of data for heap \@ 2F0000.*}{}msr =~ s/BackTrace1A/BackTrace11/gr;
	my $truth = report_of('one stack', spew("$dir/one.txt", $one));
	for my $sign ("\xe2\x80\x8b", "\xef\xbb\xbf", "\xe2\x81\xa0", "\xe2\x80\x8f", "\xc2\xad", "\e[K", "\e[1;31m", "\e[m\e[K") {
		my %places = (legend => qr/^(?=REQ| +STACK)/m, 'first line' => qr/\A/, frames => qr/^(?=\t7)/m, 'ends of frames' => qr/(?<=^\t7FF.{9})$/m, entries => qr/^(?=30 bytes)/m,
			'ends of modules' => qr/(?<=\.exe)$/m, comments => qr{^(?=//)}m, headings => qr/^(?=\*-)/m, 'ends of entries' => qr/(?<=BackTrace11)$/m);
		for my $place (sort keys %places) {
			next if $place eq 'ends of modules' && $sign !~ /^\e/; # a path may hold any sign
			my $what = sprintf 'one stack, %s: %s', unpack('H*', $sign), $place;
			is_deeply(report_of($what, spew("$dir/one.txt", $one =~ s/$places{$place}/$sign/gr)), $truth, "$what: the same report");
		}
	}
	# hsym reproduces the original text.
	my $file = spew("$dir/pasted.txt", $mangled{'quoted, TABs to blanks'}->($logs[1]));
	my $named = run(["$root/build/linux/hsym", '-o', "$dir/named.txt", $file]);
	is($named->{status}, 0, 'hsym') or diag($named->{err});
	my ($printed, $got) = map { s/ +$//gmr =~ s/^ +(?=STACK)//gmr } $logs[1], slurp("$dir/named.txt");
	is($got, $printed, 'hsym: as it was printed');
	return;
}

# The source of a web page has entities for some characters; programs that escape twice have '&amp;' before their names.
sub escaped {
	my $html = sub { my ($text) = @_; return $text =~ s/&/&amp;/gr =~ s/</&lt;/gr =~ s/>/&gt;/gr =~ s/"/&quot;/gr =~ s/'/&#39;/gr };
	my %ways = ('once' => $html, 'twice' => sub { $html->($html->($_[0])) }, 'by numbers' => sub { $_[0] =~ s/([&<>"'])/sprintf '&#%d;', ord $1/ger },
		'by hexadecimal numbers' => sub { $_[0] =~ s/([&<>"'])/sprintf '&#x%x;', ord $1/ger }, 'for quotation marks alone' => sub { $_[0] =~ s/"/&quot;/gr =~ s/'/&apos;/gr },
		'with blanks' => sub { $html->($_[0]) =~ s/^\t/&nbsp; &nbsp; /gmr }, 'quoted' => sub { $html->($_[0] =~ s/^/> /gmr) }, 'quoted after it' => sub { $html->($_[0]) =~ s/^/> /gmr },
		'double-spaced' => sub { $html->($_[0]) =~ s/\n/\n\n/gr }, 'with tags' => sub { $html->($_[0]) =~ s/$/<br \/>/gmr }, 'with tags at the end' => sub { $html->($_[0]) . "</pre></body></html>\n" });
	my %change = (raw => sub { $_[0] =~ s/a p/R&D's/gr }, comparison => sub { $_[0] =~ s/Bin::add\(Item \*\)/Bin<Item,"a&b",std::less<> >::operator<<(Item const &)/gr =~ s/src \(new\)/R&D's/gr },
		dump => sub { $_[0] =~ s/C:.{1,2}app/C:\\\\R&D's/gr });
	my %plain = (raw => [map { raw($_) } 0, 1], comparison => [comparison({})], dump => [map { series_dump(1763632800000 + $_, { "f<R>(R &&, '<')" => 1000 + $_, 'g' => 5 }) =~ tr/\r//dr } 0, 900]);
	$change{'log of old'} = $change{comparison};
	$plain{'log of old'} = [map { hogs({}, $_) } 0, 1];
	for my $kind (sort keys %plain) {
		my @texts = map { $change{$kind}->($_) } @{ $plain{$kind} };
		my $truth = report_of("$kind with signs", map { spew("$dir/plain$_.txt", $texts[$_]) } 0 .. $#texts);
		for my $way (sort keys %ways) {
			my @files = map { spew("$dir/escaped$_.txt", $ways{$way}->($texts[$_])) } 0 .. $#texts;
			is_deeply(report_of("$kind: escaped $way", @files), $truth, "$kind: escaped $way: the same report");
		}
	}
	# A value of a note may hold anything.
	my $note = series_dump(1763632800000, { leak => 1000 }, image => 'C:\\\\a&amp;b\\\\app.exe');
	like(hdiff('-o', 'json', spew("$dir/note.txt", $note))->{out}, qr/a&amp;b/, 'a note that holds an entity');
	return;
}

sub packed {
	my ($file) = @_;
	system('gzip', '-kf', $file) == 0 or die "gzip: $?\n";
	return "$file.gz";
}

# Checks the number of lines that were not read. One message has this number, the first such line
# and its text. The status is 2.
sub nearly_right {
	my $log = raw(1);
	my $far = raw(0, blocks => 5000); # beyond the part in which the file's kind is recognized
	my $cut = sub { my ($end) = @_; return comparison({}) =~ s/^(\tstock!main\+\w+) \(.*/$1$end/mr };
	my @cases = ( # the text; the first unread line and the number of such lines, or a fault in a line
		['frames far away', $far . "\n30 bytes + 10 at 9F0740 by BackTrace99\n" . join('', map { "        7FFE1000A12$_\n" } 1 .. 5), qr/^ +7FFE1000A121/, 5],
		['an entry with a bar', $log . "| 30 bytes + 10 at 9F0740 by BackTrace11\n", qr/^\|/, 'bad entry'],
		['an entry in two lines', $log . "| 30 bytes + 10 at 9F0740 by\n| BackTrace11\n", qr/^\|/, 2],
		['frames in one line', $log . "\n 7FFE1000A123 7FF600001211 7FF600001A12\n", qr/^ 7FFE/, 1],
		['frames with tags', $log . "\n7FFE1000A123</td>\n7FF600001211</td>\n", qr/^7FFE/, 2],
		['a module in two lines', $log =~ s/\\a p\\/\\a p\n/r, qr/^stock/, 1],
		['a module without a path', $log =~ s/ C:\\a p.*//r, qr{^// +7FF6}, 1],
		['a heading with other words', $log =~ s/^\*-.*(Start of data for heap @ 2F0000).*\n/the $1\n/mr =~ s/^\*-.*(Heap 2F0000 Hogs).*\n//mr, qr/^the Start/, 1],
		['frames of another form', hogs({}, 1) =~ s/^ntdll!RtlAlloc.*\n/<no symbol>!?\n/mr, qr/^<no/, 4],
		['rows far away', ("\n" x 5000) . comparison({}) . ('x' x 300 . "\n") x 1000 . "  + 10 ( 20 - 10) 2 allocs BackTrace5\n  + 1 ( 2 - 1) BackTrace5 allocations\n", qr/^  \+/, 2],
		['a row without its sign', "x\n" . comparison({}) =~ s/^\+ /  /gmr, qr/^ +280/, 6],
		['the output of diff', "8a9,40\n" . $log =~ s/^/> /gmr, qr/^8a9/, 1],
		['an omission by a viewer', $log =~ s/(.*\n)(?=.* bytes \+ )/$1\[... 200 lines truncated ...]\n/r, qr/^\[\.\.\. 200/, 1],
		(map { ["$_ for entries", $log =~ s/^30 bytes.*\n(?=30)/$_\n/mr, qr/^\Q$_\E$/, 1], ["$_ for rows", comparison({}) =~ s/^-.*(?=\nTotal)/$_/smr, qr/^\Q$_\E$/, 1],
			["$_ for a frame", comparison({}) =~ s/^\tstock!Bin.*/\t$_/mr, qr/^\t\Q$_\E$/, 1] } '...', '[...]', '<snip>', "\xe2\x80\xa6"),
		['a row that was pasted twice', comparison({}) =~ s/(^-.*?)(?=\nTotal)/$1$1/smr, qr/^never/, 'the same row was listed before', 18],
		['blanks that became TABs', comparison({}) =~ s/^\tstock!Bin.*/$& =~ tr{ }{\t}r/mer, qr/^\tstock!Bin/, 1],
		['words before the banner', $log =~ s{^(?=// UMDH)}{Jane: }mr, qr/^Jane/, 1],
		['the number of a page in a stack', $log =~ s/^\t/        /gmr =~ s/(?<=7FFE1000A123\n)/                       12\n/r, qr/^ +7FF600001211/, 2],
		['a file that is cut off', $cut->(' (d:\src'), qr/^\tstock!main/, 1], ['dots at the end of a file', $cut->(' (d:\src (new)\main...'), qr/^\tstock!main/, 1],
		['a file without its name', $cut->(' (,41)'), qr/^\tstock!main/, 1], ['a file without a blank', $cut->('(main.c, 41)'), qr/^\tstock!main/, 1],
		['a place in the source before a frame', comparison({}) =~ s/^\tstock!main.*/\td:\\src\\main.c(41): stock!main+150/mr, qr/^\td:/, 1],
		['frames in one line of a row', comparison({}) =~ s/^(\tntdll.*)\n\t(.*)\n\t(.*)\n\t(.*)/$1 $2 $3 $4/mr, qr/^\tntdll/, 1],
		['two lines of a row in one line', comparison({}) =~ s/(allocs\tBackTrace363)\n/$1 /r, qr/^\+ +280/, 'begins like a row but does not continue like one'],
		['frames without a row', comparison({}) . "\n\tfoo!bar+10\n", qr/^\tfoo/, 'does not belong to a row'],
		['a total between words', "\n" . comparison({}) =~ s/^(?=Total)/in all: /mr, qr/^in all/, 1],
	);
	for my $case (@cases) {
		my ($what, $text, $sign, $count, $at) = @$case;
		my @lines = split /\n/, $text;
		($at) = grep { $lines[$_] =~ $sign } 0 .. $#lines if !$at;
		my $file = spew("$dir/near.txt", $text);
		my $result = hdiff('-o', 'json', $file);
		is($result->{status}, 2, "$what: status 2");
		my $shown = substr $lines[$at] =~ s/^\t//r =~ tr/\t/?/r, 0, 60;
		my $words = $count eq 1 ? '1 line that looks' : "$count lines that look";
		my $wanted = $count =~ /\D/ ? $count : "$words like data; the first: \"$shown";
		my @said = grep { /left out/ } split /\n/, $result->{err};
		is(scalar @said, 1, "$what: one message") or diag($result->{err});
		like($said[0], qr/^hdiff: \Q$file\E:@{[$at + 1]}: warning: left out: \Q$wanted\E/, "$what: which lines");
	}
	my $page = hdiff(spew("$dir/near.txt", $log =~ s/^\t//gmr =~ s/(?<=7FFE1000A123\n)/12\n/r));
	is($page->{status}, 2, 'the number of a page in a stack without TABs: status 2');
	like($page->{err}, qr/near\.txt:20: warning: left out: bad entry/, 'the number of a page in a stack without TABs: its line');
	# The module, function and offset of a frame count even if its file is cut off.
	my $frames = decode_json(hdiff('-o', 'json', spew("$dir/near.txt", $cut->(' (d:\src')))->{out})->{rows}[0]{frames};
	is_deeply([@{ $frames->[-1] }{qw(module function offset file)}], ['stock', 'main', '150', undef], 'a file that is cut off: the rest of the frame');
	my $rust = comparison({}) =~ s/^\tmsvcrt!malloc.*\n\tstock!Bin.*/\tstock!std::sys::alloc::windows::process_heap_alloc+12\n\tstock!alloc::raw_vec::RawVec<T,A>::grow_one+34\n\tstock!wal::Segment::snapshot+56/mr;
	like(hdiff('--no-pager', spew("$dir/near.txt", $rust))->{out}, qr/^ +1 +\+640 B .*\bwal::Segment::snapshot/m, "Rust's allocators do not name a row");
	my $overhead = comparison({}) =~ s/^Total.*/Total increase ==     78 requested + 900000 overhead = 900078/mr;
	like(hdiff('--no-pager', spew("$dir/near.txt", $overhead))->{out}, qr/^heap overhead: \+9\.0 MiB, more than the blocks themselves$/m, 'overhead that exceeds the growth');
	my $ended = hdiff('-o', 'json', spew("$dir/near.txt", comparison({}) . "\x1a"));
	is("$ended->{status} $ended->{err}", '0 ', 'a mark of DOS at the end');
	my $unread = hdiff('--force', '--max-growth', 1, spew("$dir/near.txt", comparison({}) =~ s/ allocs/ x/gr =~ s/^Total.*//mr));
	is($unread->{status}, 2, 'a comparison without a readable row: status 2, even by --force');
	like($unread->{err}, qr/a comparison, but none of its rows can be read/, 'a comparison without a readable row');
	my $result = hdiff(spew("$dir/near.txt", "Dear reader,\n\x3d 30 bytes + 10 at 1F0740 by BackTrace11\n    7FFE1000A123\n"));
	is($result->{status}, 2, 'no dump: status 2');
	like($result->{err}, qr/near\.txt: is not a heap dump \(line 3 only looks like data: "    7FFE1000A123"\)/, 'no dump: which line is nearly right');
	return;
}

sub given {
	my $data = data_file('field/01-xp-address-first') or plan(skip_all => 'needs test data of other projects');
	my @rows = @{ decode_json(hdiff('-o', 'json', "$data/cmp.txt")->{out})->{rows} };
	is_deeply([map { [$_->{growth}{bytes}, $_->{frames}[3]{module}, $_->{frames}[3]{function}, $_->{frames}[3]{line}] } @rows],
		[[640, 'ledger', 'post_entry', 88], [-520, 'ledger', 'read_line', undef]], 'Windows XP');
	is_deeply([map { $_->{name} } @{ decode_json(hdiff('-o', 'json', '--group', 'module', "$data/cmp.txt")->{out})->{groups} }], ['ledger'], 'its module');
	my $foreign = data_file('field/13-foreign-formats');
	for my $case (['a.heap', 'gperftools'], ['crt.txt', 'C runtime'], ['dhat.json', 'DHAT'], ['je.heap', 'jemalloc'], ['vld.txt', 'Visual Leak Detector']) {
		like(hdiff("$foreign/$case->[0]")->{err}, qr/\(.*$case->[1]/, $case->[0]);
	}
	my $pasted = data_file('field/02-pasted-raw-log');
	my $result = hdiff('-o', 'json', "$pasted/a.txt", "$pasted/b.txt");
	is($result->{status}, 0, 'a pasted log');
	is_deeply([map { [$_->{growth}{bytes}, scalar @{ $_->{frames} }] } @{ decode_json($result->{out})->{rows} }], [[4 * 0x30, 3], [0x30, 3]], 'its stacks');
	return;
}

# For a file of another tool, the message names the file's kind.
sub other_tools {
	my %files = (
		'gperftools' => "heap profile:      3:     4096 [    10:     9000] @ heapprofile\n     3:     4096 [    10:     9000] @ 0x4005d4\n",
		'jemalloc' => "heap_v2/524288\n  t*: 28: 300 [0: 0]\n",
		'pprof, damaged' => "\x0a\x04\x08\x01\x10\x02\x12\x08\x0a\x04\x08\x01\x10\x64\x00\x00",
		'DHAT' => '{"dhatFileVersion":2,"mode":"heap","verb":"Allocated"}',
		'Massif' => "desc: --massif-out-file=m\ncmd: ./a\ntime_unit: i\n#-----------\nsnapshot=0\n",
		'heaptrack' => "v 10400 3\nX ./app\nI 1000 400\n",
		'Visual Leak Detector' => "Loaded a.dll\r\nVisual Leak Detector Version 2.5.1 installed.\r\nWARNING: Visual Leak Detector detected memory leaks!\r\n",
		'C runtime' => "'a.exe': Loaded 'C:\\a.exe'\nDetected memory leaks!\nDumping objects ->\n{12} normal block at 0x0012, 4 bytes long.\n",
		'Valgrind' => "==123== Memcheck, a memory error detector\n",
		'sanitizer' => "==123==ERROR: LeakSanitizer: detected memory leaks\n", 'sanitizer report' => "started\n\n" . '=' x 65 . "\n==123==ERROR: LeakSanitizer: detected memory leaks\n",
		'Valgrind report' => "started\n==123== Memcheck, a memory error detector\n",
		# The forms are those of Microsoft's page on the extension !heap.
		"WinDbg's !heap" => "0:000> !heap -s\nLFH Key                   : 0x6c8a1bc0\n  Heap     Flags   Reserv  Commit  Virt   Free  List   UCR  Virt  Lock  Fast \n",
		"output of WinDbg's !heap" => "  Heap     Flags   Reserv  Commit  Virt   Free  List   UCR  Virt  Lock  Fast \n                    (k)     (k)    (k)     (k) length      blocks cont. heap \n00150000 00000002    1024     28     28      6     2     1    0      0   LFH\n",
		"of WinDbg's !heap" => "    address 0cb0bf00 found in\n    _DPH_HEAP_ROOT \@ 3d1000\n", "(?:of) WinDbg's !heap" => "Allocations statistics for\n heap @ 00150000\ngroup-by: TOTSIZE max-display: 20\n",
		"(?:output of) WinDbg's !heap" => "0:000> !heap -stat -h 00150000\n heap \@ 00150000\ngroup-by: TOTSIZE max-display: 20\n    size     #blocks     total     ( %) (percent of total busy bytes)\n",
		'UTF-16LE' => join('', map { "$_\0" } split //, raw(1)), 'UTF-16BE' => join('', map { "\0$_" } split //, raw(1)),
		(map { my ($order, $mark) = @$_; my $text = pack $order, unpack 'C*', raw(1); ("UTF-32$mark" => $text, "(?:)UTF-32$mark" => pack($order, 0xfeff) . $text) } ['V*', 'LE'], ['N*', 'BE']),
		'lines end only with CR' => raw(1) =~ tr/\n/\r/r,
		'minidump' => "MDMP\x93\xa7\x00\x00" . "\0" x 100,
		'xz' => "\xfd7zXZ\0\0\4", 'bzip2' => 'BZh91AY&SY', 'zstd' => "\x28\xb5\x2f\xfd\x04\x00", 'lz4' => "\x04\x22\x4d\x18\x64", 'zip' => "PK\x03\x04\x14\0",
		'patch; remove the first character' => comparison({}) =~ s/^/+/gmr,
		'quoted-printable mail' => comparison({}) =~ s/=/=3D/gr, # as for the total line
		'quoted-printable mail, in' => raw(1) =~ s/=/=3D/gr =~ s/ $/=20/gmr,
		'PDF' => "%PDF-1.7\n", 'quoted-printable' => "Subject: leak\nContent-Transfer-Encoding: quoted-printable\n\nx =\ny\n",
		'patch; use the files that it was made of' => "--- /dev/null\n+++ b/a.txt\n\@\@ -0,0 +1,60 \@\@\n" . comparison({}) =~ s/^/+/gmr,
		'spreadsheet split into cells' => comparison({}) =~ s/[ \t]+/,/gr, 'spreadsheet split' => comparison({}) =~ s/[ \t]+/;/gr,
		'web page' => "<!DOCTYPE html>\n<html><pre>30 bytes + 10 at 1F0740 by BackTrace11\n",
	);
	for my $what (sort keys %files) {
		my $file = spew("$dir/foreign", $files{$what});
		my $result = hdiff($file);
		is($result->{status}, 2, "$what: status 2");
		like($result->{err}, qr/\Ahdiff: \Q$file\E(?::\d+)?: is not a heap dump \(.*\b$what\b/, "$what: named");
	}
	subtest 'a zip archive' => sub {
		my ($zip, $dump) = ("$dir/a.zip", spew("$dir/a.txt", raw(1)));
		system('zip', '-qj', $zip, $dump) == 0 or plan(skip_all => 'no zip');
		my @said = map { run($_)->{err} } [$hdiff, $zip], ["$root/build/linux/hsnap", 'record', '-o', "$dir/a.hrec", '--from', $zip];
		is_deeply(\@said, [map { "$_: $zip: is a zip archive without an .etl file; unpack it first\n" } qw(hdiff hsnap)], 'named');
		like(run([$hdiff, '-'], stdin => $zip)->{err}, qr{\(packed by zip; unpack it first: 'unzip -p FILE \| hdiff -'\)}, 'from a pipe');
	};
	my %convert = ('DHAT' => 'hdiff\(1\), "Files of other tools", converts it', 'Massif' => 'valgrind --tool=dhat', 'Visual Leak Detector' => 'hdiff\(1\)', 'C runtime' => 'hdiff\(1\)',
		'heaptrack' => q{'heaptrack_print --flamegraph-cost-type leaked -F OUT.folded FILE'}, 'jemalloc' => q{'jeprof --collapsed PROGRAM FILE >OUT.folded'}, 'gperftools' => q{'go tool pprof -proto});
	like(hdiff(spew("$dir/foreign", $files{$_}))->{err}, qr/\(.*$_.*$convert{$_}/, "$_: how to convert it") for sort keys %convert;
	like(run([$hdiff, '-'], stdin => packed(spew("$dir/foreign", $files{DHAT})))->{err}, qr/a DHAT file/, 'also packed, from a pipe');
	my $refused = "// \n// UMDH: version 10.0.19041.1: Logtime 2026-03-04 10:00 - Machine=MADE - PID=44\n// \n// Process 44 had not enabled allocation stack collection. It is enabled now.\n";
	like(hdiff(spew("$dir/foreign", $refused))->{err}, qr/is not a heap dump \(UMDH found that the process collected no stacks; take the log again/, 'an error of UMDH: named');
	unlike(hdiff(spew("$dir/foreign", "Dear reader;\nit is 5\n"))->{err}, qr/\(an? /, 'prose is nothing');
	return;
}

# Names in a code page: the rows are unchanged, and there is one hint per file.
sub code_pages {
	my $page = "\xc5\xd7\xbd\xba\xc6\xae"; # in Windows' code page 949
	my %texts = (raw => raw(1) =~ s/stock\.exe/$page.exe/r, comparison => comparison({}) =~ s/bin\.cpp/$page.cpp/gr =~ s/main\.c/$page.c/gr,
		'log of old' => hogs({}, 1) =~ s/stock!/$page!/gr);
	for my $what (sort keys %texts) {
		my $file = spew("$dir/page.txt", $texts{$what});
		my $result = hdiff('-o', 'json', $file);
		is($result->{status}, 0, "$what: status 0");
		is_deeply([grep { /warning/ } split /\n/, $result->{err}],
			["hdiff: $file: warning: names in it are not UTF-8: they are shown with '?', and do not match the same names in UTF-8; 'iconv -f CP1252 -t UTF-8 FILE' converts it, with CP932 for Japanese, CP936 for Chinese"], "$what: one hint");
		is(scalar @{ decode_json($result->{out})->{rows} }, 2, "$what: rows");
		my $right = run(['sh', '-c', 'iconv -f CP949 -t UTF-8 "$1" | "$0" -o json -', $hdiff, $file]);
		unlike($right->{err}, qr/UTF-8/, "$what: converted");
	}
	# Code page 932: the second byte of the third character is that of a backslash.
	my $log = sub { my ($blocks) = @_; raw($blocks) =~ s/stock\.exe/\x89\xef\x8cv\x83\\\x83t\x83g.exe/r =~ s/ntdll\.dll/\x8b\x8b\x97^\x83\\\x83t\x83g.dll/r };
	my @logs = map { spew("$dir/japan$_.txt", $log->($_)) } 0, 1;
	for my $format (qw(json csv)) {
		my $result = hdiff('-o', $format, '--group', 'module', @logs);
		is(scalar(() = $result->{err} =~ /not UTF-8/g), 2, "code page 932: a hint per file in $format");
		is(scalar @{ decode_json($result->{out})->{groups} }, 2, 'code page 932: two modules') if $format eq 'json';
	}
	return;
}

# Writes a comparison of rows [ID, [OLD bytes, blocks], [NEW bytes, blocks], FRAME...].
sub printed {
	my ($text, $sum) = ('', 0);
	for (@_) {
		my ($id, $old, $new, @frames) = @$_;
		my $sign = sub { ($_[0] < 0 ? '-' : '+', abs $_[0]) };
		$text .= sprintf "%s%8X ( %6X - %6X) %6X allocs\tBackTrace%s\n", $sign->($new->[0] - $old->[0]), $new->[0], $old->[0], $new->[1], $id;
		$text .= sprintf "%s%8X ( %6X - %6X)\tBackTrace%s\tallocations\n\n", $sign->($new->[1] - $old->[1]), $new->[1], $old->[1], $id;
		$text .= join '', (map { "\t$_\n" } @frames), "\n";
		$sum += $new->[0] - $old->[0];
	}
	return $text . total_line($sum, 0);
}

sub torn {
	my $text = printed(['11', [0, 0], [1000, 10], 'ntdll!RtlAllocateHeap+4', 'app!main+5']);
	my $whole = hdiff('--no-stacks', spew("$dir/torn.txt", $text =~ s/\tapp.*\n//r));
	like($whole->{out}, qr/^no caller recorded for 100 %/m, 'a stack that ends in an allocator');
	my $torn = hdiff('--no-stacks', spew("$dir/torn.txt", $text =~ s/\tapp/\t[0] app/r));
	is($torn->{status}, 2, 'a line that is left out: status 2');
	like($torn->{err}, qr/torn\.txt:\d+: warning: left out:/, 'is reported');
	unlike($torn->{out}, qr/no caller recorded/, 'and nothing about its caller');
	return;
}

sub total_line {
	my ($sum, $overhead) = @_;
	return sprintf "\n\nTotal %s == %6X requested + %6X overhead = %6X\n", $sum < 0 ? 'decrease' : 'increase', abs $sum, $overhead, abs($sum) + $overhead;
}

# Comparisons of one process, each continuing the last, are a trend. Comparisons that do not join
# are an error.
sub chains {
	my @leak = ('ntdll!RtlAllocateHeap+44', 'app!leak(int)+10 (d:\\a b\\a.c, 5)', 'app+2233 : 402233');
	my @cache = ('7C8531E4 : app!fill+10', 'app!main+3');
	my @texts = (
		printed(['A1', [1000, 10], [2000, 20], @leak], ['B1', [0, 0], [500, 5], @cache]),
		# An equal stack under another id.
		printed(['A1', [2000, 20], [3000, 30], @leak], ['A2', [100, 1], [700, 7], @leak]),
		printed(['A1', [3000, 30], [4000, 40], @leak], ['B1', [500, 5], [400, 4], @cache], ['C1', [0, 0], [64, 1]]),
	);
	my @files = map { spew("$dir/c$_.txt", $texts[$_]) } 0 .. 2;
	my $result = hdiff('-o', 'json', @files);
	is($result->{status}, 0, 'a chain: status 0') or diag($result->{err});
	my $series = decode_json($result->{out})->{series}[0];
	is_deeply([map { [@{ $_->{selected} }{qw(bytes blocks)}] } @{ $series->{snapshots} }],
		[[1100, 11], [2600, 26], [4200, 42], [5164, 52]], 'a chain: what all rows have at each moment');
	is_deeply([map { $_->{path} } @{ $series->{snapshots} }], ["OLD of $files[0]", @files], 'a chain: the moments');
	my %rows = map { $_->{ids}[0] => $_ } @{ $series->{rows} };
	is_deeply([sort keys %rows], [qw(A1 B1 C1)], 'a chain: rows');
	is_deeply([map { [@$_{qw(module function file line)}] } @{ $rows{A1}{frames} }],
		[['ntdll', 'RtlAllocateHeap', undef, undef], ['app', 'leak(int)', 'd:\\a b\\a.c', 5], ['app', undef, undef, undef]], 'a chain: frames');
	is($rows{A1}{trend}{verdict}, 'grows', 'a chain: the leak grows');
	is($rows{B1}{trend}{net_bytes}, 400, 'a chain: the cache');
	is(hdiff('--max-growth', 4064, @files)->{status}, 0, 'a chain: within its limit'); # 3600 of A1, 400 of B1, 64 of C1
	is(hdiff('--max-growth', 4063, @files)->{status}, 1, 'a chain: over its limit');
	is(hdiff('-o', $_, '-f', "$dir/out", '--overwrite', @files)->{status}, 0, "a chain: -o $_") for qw(text umdh html csv jsonl svg folded pprof speedscope);
	my $folder = fresh_dir();
	my @copies = map { spew("$folder/" . basename($_), slurp($_)) } @files;
	my $notes = spew("$folder/notes.txt", "Tuesday: restarted nothing.\n");
	my $found = hdiff('-o', 'json', $folder);
	is($found->{status}, 0, 'a chain beside notes: status 0');
	is_deeply([grep { /left out/ } split /\n/, $found->{err}], ["hdiff: $notes: warning: left out: not a comparison"], 'a chain beside notes: they are named');
	is_deeply(decode_json($found->{out})->{series}[0]{rows}[0]{growth}, $series->{rows}[0]{growth}, 'a chain beside notes: the same growth');
	my $twice = hdiff('-o', 'json', @files, $files[1]);
	is_deeply([grep { /left out/ } split /\n/, $twice->{err}], ["hdiff: $files[1]: warning: left out: named twice"], 'a chain with a file named twice');
	is_deeply(decode_json($twice->{out})->{series}[0]{rows}, $series->{rows}, 'a chain with a file named twice: the same rows');
	# Symbols were there for one comparison alone: a stack has two names, and therefore two rows.
	my $bare = sub { $_[0] =~ s/^\tapp!leak.*/\tapp+1010 : 401010/mr };
	my $renamed = spew("$dir/renamed.txt", $bare->(printed(['A1', [2000, 20], [3000, 30], @leak], ['A2', [100, 1], [700, 7], @leak])));
	like(hdiff($files[0], $renamed)->{err}, qr/shares no stack \(same id and names\)/, 'other names: refused');
	my $partly = spew("$dir/partly.txt", $bare->(printed(['A1', [2000, 20], [3000, 30], @leak], ['B1', [500, 5], [400, 4], @cache], ['C1', [0, 0], [64, 1], @leak])));
	for my $case ([1, 2, '--force', $files[0], $renamed], [1, 3, $files[0], $partly]) {
		my ($count, $all, @args) = @$case;
		my $two = hdiff('-o', 'json', @args);
		is($two->{status}, 0, 'other names: status 0') or diag($two->{err});
		is_deeply([grep { /different names/ } split /\n/, $two->{err}], ["hdiff: $args[-1]: warning: $count of its $all stacks has the id of a stack in an earlier comparison, but different names, "
			. 'so they are kept apart; print all comparisons with the same symbols, or give the dumps'], 'other names: one message');
	}
	$result = hdiff(@files[0, 2]);
	is($result->{status}, 2, 'a link is missing: status 2');
	like($result->{err}, qr/c2\.txt: .*does not continue where .*c0\.txt ends: BackTraceA1 ends with 2000 bytes in 20 blocks there, but starts with 3000 in 30 here/, 'a link is missing: which');
	$result = hdiff($files[0], spew("$dir/other.txt", printed(['D1', [3, 1], [4, 1], 'x!y+1'])));
	is($result->{status}, 2, 'of another process: status 2');
	like($result->{err}, qr/other\.txt: .*shares no stack \(same id and names\) with an earlier comparison/, 'of another process: named');
	like(hdiff($files[0], spew("$dir/other.txt", $texts[1] =~ s/BackTraceA/BackTraceE/gr))->{err}, qr/shares no stack \(same id and names\) with an earlier comparison/, 'other ids: named');
	my $dump = spew("$dir/dump.txt", raw(0));
	like(hdiff($files[0], $dump)->{err}, qr/c0\.txt: .*a comparison can be read only alone, or with comparisons that continue it/, 'beside a dump: refused');
	like(hdiff('--group', 'heap', @files)->{err}, qr/a comparison does not record heaps/, 'heaps: refused');
	my $huge = 1 << 62;
	my @huge = map { my $n = $_; spew("$dir/huge$n.txt", printed(['A1', [$n, 1], [$n + 1, 1], 'a!b+1'], ["B$n", [0, 0], [$huge, 1], "a!c$n+1"])) } 1 .. 3;
	like(hdiff('--input-base', 'hex', @huge)->{err}, qr/add up to more than 8 EiB/, 'more than any address space holds');
	return;
}

# Stacks keep their names in a chain, however deep they are.
sub chained_stacks {
	for my $depth (1 .. 7) {
		my @frames = map { "app!level$_+1$_" } 1 .. $depth;
		my @files = map { spew("$dir/deep$_.txt", printed(['A1', [100 * $_, $_], [100 * $_ + 100, $_ + 1], @frames])) } 1, 2;
		my $rows = decode_json(hdiff('-o', 'json', @files)->{out})->{series}[0]{rows};
		is_deeply([map { "$_->{module}!$_->{function}" } @{ $rows->[0]{frames} }], [map { "app!level$_" } 1 .. $depth], "$depth frames");
		is(hdiff('--module', 'app', '--max-growth', 0, @files)->{status}, 1, "$depth frames: --module finds them");
	}
	return;
}

# A chain does not know its stacks' overhead. If total lines exceed the rows, the excess counts.
sub chained_totals {
	my @rows = map { [['A1', [100 * $_, $_], [100 * $_ + 100, $_ + 1], 'app!a+1']] } 1 .. 3;
	my $with = sub { my ($n, $sum) = @_; return spew("$dir/total$n.txt", printed(@{ $rows[$n] }) =~ s/\n\nTotal.*/total_line($sum, 160)/ser) };
	my @files = map { $with->($_, 100) } 0 .. 2;
	my $report = decode_json(hdiff('-o', 'json', @files)->{out});
	is($report->{series}[0]{totals}{all}{growth}{overhead}, undef, 'overhead: unknown');
	like(hdiff('-o', 'csv', @files)->{out}, qr/,300,400,100,3,4,1,,,,stack,/, 'overhead: empty in csv');
	like(hdiff('-o', 'umdh', @files)->{out}, qr/^Total increase == +(300|12C)$/m, 'overhead: not in the total line');
	@files = ($with->(0, 100 + 8000), $with->(1, 100 - 5000), $with->(2, 100 - 4000)); # 1000 are from before the first
	my $result = hdiff('-o', 'json', @files);
	my $totals = decode_json($result->{out})->{series}[0]{totals};
	is_deeply([map { $_->{bytes} } @{ $totals->{all} }{qw(old new growth)}], [1100, 400, -700], 'rows are missing: all');
	is($totals->{selected}{growth}{bytes}, 300, 'rows are missing: rows');
	is($totals->{left_out}{growth}{bytes}, -1000, 'rows are missing: the rest');
	$result = hdiff('--max-growth', 1000, @files);
	is($result->{status}, 2, 'rows are missing: a limit is not judged');
	like($result->{err}, qr/total0\.txt: .*--max-growth cannot judge it: may not show everything that grew/, 'rows are missing: reported');
	return;
}

# The total line has no number of blocks, so that of the blocks without a row is unknown.
sub clipped {
	my $row = ['A1', [100, 1], [300, 3], 'app!a+1'];
	my $file = spew("$dir/clipped.txt", printed($row) =~ s/\n\nTotal.*/total_line(1200, 160)/ser);
	like(hdiff($file)->{out}, qr/^selected: \+200 B, \+2 blocks\nleft out: \+1000 B, \? blocks; all: \+1\.2 KiB, \? blocks$/m, 'text');
	like(hdiff('-d', $file)->{out}, qr{^// +\+200 +\? +\+2  selected.*^// +\+1000 +\? +\?  left out\n// +\+1200 +\+160 +\?  all$}ms, 'umdh');
	my $totals = decode_json(hdiff('-o', 'json', $file)->{out})->{totals};
	my %sums = map { my $share = $_; $share => [map { [@{ $totals->{$share}{$_} }{qw(blocks overhead)}] } qw(old new growth)] } qw(all selected left_out);
	is_deeply(\%sums, {all => [[undef, undef], [undef, undef], [undef, 160]], selected => [[1, undef], [3, undef], [2, undef]], left_out => [([undef, undef]) x 3]}, 'json');
	$totals = decode_json(hdiff('-o', 'json', spew("$dir/whole.txt", printed($row) =~ s/\n\nTotal.*/total_line(200, 32)/ser))->{out})->{totals};
	is_deeply($totals->{$_}, {old => {bytes => 100, blocks => 1, overhead => undef}, new => {bytes => 300, blocks => 3, overhead => undef}, growth => {bytes => 200, blocks => 2, overhead => 32}}, "json, nothing is missing: $_") for qw(all selected);
	is(hdiff('--max-growth', 200, '--module', 'other', "$dir/whole.txt")->{status}, 0, 'a module without growth passes, because a comparison lists no modules');
	return;
}

# A console of 80 columns cuts the paths of two modules, which begin alike.
sub cut_paths {
	my $log = raw(1) =~ s/C:\\a p\\stock\.exe/C:\\Program Files\\Ledger\nServer\\stock.exe/r;
	my $result = hdiff(spew("$dir/console.txt", $log));
	is($result->{status}, 2, 'status 2');
	like($result->{err}, qr/console\.txt:7: warning: left out: 1 line that looks like data; the first: "Server\\stock\.exe"; module paths are cut, so different modules may share a name$/m, 'reported');
	return;
}

# If only a part of the data has a prefix, it is another text, or lines are missing.
sub some_prefixes {
	my $text = comparison({});
	for my $form (sub { "KM> $_[0]" }, sub { "| $_[0]" }, sub { "2026-05-04T09:00:00Z $_[0]" }, sub { "7:$_[0]" }) {
		my $marked = join '', map { $form->($_) } split /^/, $text;
		for my $both ($text . $marked, $marked . $text, $marked =~ s/^\S+?[ :](?=-)//mr) {
			my $result = hdiff('--max-growth', 1 << 40, spew("$dir/some.txt", $both));
			is($result->{status}, 2, 'status 2') or diag($both);
			like($result->{err}, qr/some\.txt/, 'and a message');
		}
	}
	return;
}

# A patch has only the lines around a change, some of them twice.
sub patches {
	my @files = map { spew("$dir/log$_.txt", raw($_)) } 0, 1;
	for my $how (['-u'], ['-U', 100], ['-c'], []) {
		my $patch = run(['diff', @$how, @files])->{out};
		for my $kind (['as it is', $patch], ['with a head', "diff --git a/umdh.txt b/umdh.txt\nindex 3a1f..99bc 100644\n$patch"]) {
			my $result = hdiff('--max-growth', 1 << 40, spew("$dir/log.patch", $kind->[1]));
			is($result->{status}, 2, "@$how, $kind->[0]: status 2");
			like($result->{err}, @$how && $how->[0] ne '-c' ? qr/log\.patch(?::\d+)?: is not a heap dump \(a patch\b/ : qr/log\.patch/, 'the reason') or diag($result->{err});
		}
	}
	return;
}

# A total line that counts 620 bytes and 40340 of overhead in no row. Its digits fit both bases.
sub overhead_only {
	my $row = "+     100 (    300 -    200)      3 allocs\tBackTrace7\n+       1 (      3 -      2)\tBackTrace7\tallocations\n\n\tapp!f+12\n\n";
	for my $case (['', 620, '\+39\.4 KiB'], [$row, 720, '\+39\.4 KiB'], [$row, 720, '\+1\.4 MiB', 1500000], ['', -620, '-39\.4 KiB', -40340]) {
		my ($rows, $bytes, $shown, $overhead) = @$case;
		$overhead //= 40340;
		my $total = sprintf 'Total %s == %d requested + %d overhead = %d', $bytes < 0 ? 'decrease' : 'increase', map { abs } $bytes, $overhead, $bytes + $overhead;
		my $file = spew("$dir/overhead.txt", "$rows\n$total\n");
		my $text = hdiff('--input-base', 'decimal', $file)->{out};
		# If a stack changed, smaller overhead is no news.
		($rows && $overhead < 1 << 20 ? \&unlike : \&like)->($text, qr/^heap overhead of all: $shown, more than the blocks themselves$/m, "overhead of $overhead");
		my ($last) = hdiff('--input-base', 'decimal', '-d', $file)->{out} =~ /^(Total .*)$/m;
		is($last =~ s/ +/ /gr, $total, 'UMDH\'s form has the same total');
		is(hdiff('--input-base', 'decimal', '--max-growth', 0, $file)->{status}, 2, 'nothing is judged');
	}
	return;
}

# Whatever stands between the entries of a heap may have replaced some of them. In other places, words
# are no data.
sub cut_entries {
	my @lines = split /^/, raw(1);
	my ($first) = grep { $lines[$_] =~ /^\t/ && $lines[$_ + 1] !~ /^\t/ } 0 .. $#lines; # the end of a stack
	my @marks = ('--8<---- about 30 more of the same here ----', '[30 Zeilen gek\xc3\xbcrzt]', 'Show more', '(and so on)', '-----', 'Mehr anzeigen', "\xe6\x9b\xb4\xe5\xa4\x9a", '*snip*', 'u.s.w.', '# 12 entries');
	for my $mark (@marks) {
		for my $end ("\n", "\r\n") {
			my $text = join '', @lines[0 .. $first], "\n$mark\n", @lines[$first + 1 .. $#lines];
			my $result = hdiff('--max-growth', 100000, spew("$dir/cut0.txt", raw(0)), spew("$dir/cut1.txt", $text =~ s/\n/$end/gr));
			is($result->{status}, 2, "$mark: status 2");
			my $line = $first + 3;
			like($result->{err}, qr/cut1\.txt:$line: warning: left out: 1 line that looks like data; the first: "\Q$mark\E"/, 'which') or diag($result->{err});
		}
		my $result = hdiff('--max-growth', 100000, spew("$dir/cut0.txt", raw(0)), spew("$dir/cut1.txt", "$mark\n" . raw(1) . "$mark\n"));
		is($result->{status}, 0, "$mark, outside of heaps: silent") or diag($result->{err});
	}
	return;
}

# A log that has none of its stacks is reported once, and does not pass a gate.
sub lost_stacks {
	my %forms = ('a list' => '  * ', 'a bar' => '|', 'an escaped TAB' => '\\t', 'an arrow' => "\xe2\x86\x92", 'a wide blank of CP932' => "\x81\x40");
	my @ids = (11, '1A');
	my %names = ('a number' => '1. ', 'a short number' => "\t5 ", 'a number in brackets' => "\t[0] ", 'an arrow of two signs' => "\t=> ", 'a word' => "\tat ", 'words' => "\tframe 3, ");
	%names = (%forms, %names); # in a log they would be addresses
	for my $what (sort keys %names) {
		my $file = spew("$dir/marked.txt", comparison({}) =~ s/^\t/$names{$what}/gmr);
		my $result = hdiff('--module', 'stock', '--max-growth', 0, $file);
		is($result->{status}, 2, "a comparison, $what: status 2");
		my @said = grep { /left out/ } split /\n/, $result->{err};
		is(scalar @said, 1, "a comparison, $what: one message") or diag($result->{err});
		like($said[0], qr/marked\.txt:5: warning: left out: \d lines that look like data; the first: ".*ntdll!RtlAllocateHeapSlowly/, "a comparison, $what: which");
	}
	my %changed = map { my $text = $forms{$_}; $_ => sub { $_[0] =~ s/^\t/$text/gmr } } keys %forms;
	$changed{'joined lines'} = sub { $_[0] =~ s/\n\t/ /gr };
	my $words = sprintf '%d of %1$d stacks are missing from the file, such as that of BackTrace%s: the file may have been edited', scalar @ids, $ids[0];
	for my $what (sort keys %changed) {
		my @files = map { spew("$dir/lost$_.txt", $changed{$what}->(raw($_))) } 0, 1;
		my $result = hdiff('--module', 'X', '--max-growth', 0, @files);
		is($result->{status}, 2, "$what: status 2");
		my @said = grep { /missing from the file/ } split /\n/, $result->{err};
		is(scalar @said, 2, "$what: once for each file") or diag($result->{err});
		like($said[0], qr/^hdiff: \Q$files[0]\E: warning: \Q$words\E$/, "$what: which") if $what ne 'joined lines';
	}
	my $folder = fresh_dir();
	spew("$folder/$_.txt", raw($_)) for 0, 1;
	spew("$folder/2.txt", $changed{'a bar'}->(raw(1)));
	like(hdiff($folder)->{err}, qr/2\.txt:\d+: warning: left out: .*\d+ lines that look like data; the first: "\|/, 'in a folder: left out');
	my $large = raw(0, blocks => 30000) =~ s/^\t/|/gmr;
	like(hdiff(spew("$dir/lost.txt", $large))->{err}, qr/\d stacks are missing from the file/, 'a large file, which threads read');
	like(hdiff(spew("$dir/lost.txt", hogs({}, 1) =~ s/^(?=\w+[!+])/| /gmr))->{err}, qr/left out: \d lines that look like data.*\n.*2 of 2 stacks are missing/, 'a log of old');
	my $single = raw(1) =~ s/BackTrace1A/BackTrace11/gr =~ s/^\t/|/gmr;
	like(hdiff(spew("$dir/lost.txt", $single))->{err}, qr/: 1 of 1 stack is missing from the file/, 'a log with one stack');
	# Logs that lack stacks by chance or on purpose are not reported.
	for my $text ("30 bytes + 10 at 1F0740 by BackTrace11\n", "30 bytes + 10 at 1F0740 by BackTrace0\n", raw(1) =~ s/^\t.*\n//mgr =~ s/BackTrace1\w/BackTrace0/gr) {
		my $result = hdiff(spew("$dir/few.txt", $text));
		is($result->{status}, 0, 'silent: status 0');
		is($result->{err}, '', 'silent');
	}
	return;
}

# If the notes of an hsnap dump are wrapped, this is reported, however many there are.
sub wrapped_notes {
	my $dump = series_dump(1763632800000, { leak => 1000 });
	is(hdiff(spew("$dir/notes.txt", $dump))->{status}, 0, 'whole: status 0');
	my ($number, $rest) = (0, undef);
	my $count = $dump =~ s{^(// hsnap: process \S+) (.*)$}{$1 \n$2}m + $dump =~ s{^(// hsnap: heap \S+) (.*)$}{$1 \n$2}mg;
	for my $line (split /\n/, $dump) {
		$number++;
		next if $line =~ m{^(?://|\*|[0-9A-F]+ bytes|\s|$)} || $line =~ /^REQUESTED/;
		$rest = $line;
		last;
	}
	my $result = hdiff(spew("$dir/notes.txt", $dump));
	is($result->{status}, 2, 'wrapped: status 2');
	my @said = grep { /left out/ } split /\n/, $result->{err};
	is(scalar @said, 1, 'wrapped: one message') or diag($result->{err});
	like($said[0], qr/notes\.txt:$number: warning: left out: $count lines? that looks? like data; the first: "\Q@{[substr $rest, 0, 40]}\E/, 'wrapped: which');
	return;
}

# Without the process and the time, the logs would not be exchanged, and the leak would look like
# freed memory: 2 blocks of 48 bytes in each of 2 stacks and 2 heaps.
sub wrapped_banner {
	my %wrapped = (mail => sub { $_[0] =~ s/^(.{50,72}) /$1\n/gmr }, quoted => sub { $_[0] =~ s/^(.{50,70}) /$1\n/gmr =~ s/^/> /gmr },
		'in the time' => sub { $_[0] =~ s/(?<=Logtime \S{10}) /\n/r }, 'in two places' => sub { $_[0] =~ s/ (?=Machine=|PID=)/\n/gr },
		'a console' => sub { $_[0] =~ s{^(// UMDH.*)(..)$}{$1\n$2}mr =~ s/^\t/        /gmr }, 'in a comment' => sub { $_[0] =~ s{ (?=PID=)}{\n// }r },
		dashes => sub { $_[0] =~ s/ - (?=Machine|PID)/ \xe2\x80\x93 /gr =~ s/^\t/    /gmr }, 'no-break blanks' => sub { $_[0] =~ s/ (?=Logtime|Machine|PID)/\xc2\xa0/gr =~ s/^\t/    /gmr },
		'one dash' => sub { $_[0] =~ s/-(?= PID)/\xe2\x80\x93/r }, 'one dash of Windows-1252' => sub { $_[0] =~ s/-(?= PID)/\x96/r },
		'one no-break blank' => sub { $_[0] =~ s/ (?=PID)/\xc2\xa0/r }, 'quotation marks' => sub { $_[0] =~ s/^(.*)$/"$1"/gmr }, 'not at all' => sub { $_[0] });
	for my $what (sort keys %wrapped) {
		my ($old, $new) = map { spew("$dir/wrapped$_.txt", $wrapped{$what}->(raw($_))) } 0, 1;
		my $result = hdiff('--max-growth', 383, $new, $old);
		is($result->{status}, 1, "$what: 2 * 4 * 48 = 384 bytes more");
		like($result->{err}, qr/^hdiff: \Q$new\E: warning: counts as NEW: taken after \Q$old\E$/m, "$what: exchanged") or diag($result->{err});
		my ($first) = @{ decode_json(hdiff('-o', 'json', $new, $old)->{out})->{inputs} };
		is_deeply([@$first{qw(pid local_time)}], [4312, '2026-05-04T09:00'], "$what: process and time");
		is(scalar(() = $result->{err} =~ /warning/g), 1, "$what: no other message");
	}
	my $cut = hdiff(spew("$dir/wrapped0.txt", raw(0) =~ s/ - PID=.*//r));
	is($cut->{status}, 0, 'without its end: status 0');
	like($cut->{err}, qr/^hdiff: \S+wrapped0\.txt: warning: UMDH's banner cannot be read to its end \(PID=\), so the process, the machine and the time are unknown$/m, 'which is reported');
	my $foreign = hdiff(spew("$dir/wrapped0.txt", raw(0) =~ s/2026-05-04 (?=09)/04.05.2026 /r));
	like($foreign->{err}, qr/: warning: UMDH's banner cannot be read to its end/, 'a date in another form is reported, too');
	return;
}

# An option takes the only name as its value.
sub no_file {
	my $result = hdiff('--max-growth', 0, '--junit', "$dir/only.txt");
	is($result->{status}, 2, 'status 2');
	like($result->{err}, qr/\nhdiff: \Q$dir\E\/only\.txt: wrong usage \(is the output; also name a file to read\); see --help\n\z/, 'the last line');
	return;
}
