#!/usr/bin/perl
# The frame that names a stack in hdiff's table, groups, pages and gates is never a frame that only
# allocates memory, with names or without. Stacks are synthetic, so the program's own frames are
# known.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use FindBin qw($Bin);
use lib "$Bin/lib";
use File::Basename qw(basename);
use JSON::PP;
use Test::More;
use Hunt;
use Series;
use People;

my $dir = fresh_dir();
my $hdiff = "$root/build/linux/hdiff";
my %base = ('app.exe' => 0x140000000, 'plug.dll' => 0x150000000, 'ntdll.dll' => 0x170000000, 'KERNEL32.DLL' => 0x171000000,
	'ucrtbase.dll' => 0x172000000, 'MSVCR80.dll' => 0x173000000, 'OLEAUT32.dll' => 0x174000000);
my @heap = ('ntdll+A123', 'ntdll+12A33'); # the innermost frames of heap calls on Windows

subtest 'without symbols, the first module that is not the system\'s' => \&nameless_modules;
subtest 'a C library that was linked in' => \&linked_in;
subtest 'an ambiguous row is marked' => \&candidates;
subtest 'libraries of the program are no callers' => \&libraries;
subtest 'operator new is nearly the only caller of malloc' => \&only_new;
subtest 'an ordinary leak is no allocator' => \&ordinary;
subtest 'functions that call other DLLs, or lie near malloc, are no allocators' => \&ordinary_callees;
subtest 'stacks that end in an allocator' => \&uncalled;
subtest 'long names' => \&long_names;
subtest 'long names keep their class' => \&long_scopes;
subtest 'a frame that starts the program is not suppressed by a part of its name' => \&start_up;
subtest 'patterns match each spelling of a name' => \&spellings;
subtest 'a pattern for -x that matches nothing is reported' => \&unmatched;
subtest 'suppressions that match, and why others do not' => \&suppressions;
subtest 'threads and locales of the C++ library' => \&library_functions;
subtest 'code that the linker moved' => \&moved_code;
subtest 'logs that show no modules, or no heaps' => \&no_modules;
subtest 'heaps without blocks' => \&empty_heaps;
subtest 'allocating functions of well-known libraries' => \&known_libraries;
subtest 'another build of a module' => \&other_builds;
subtest 'modules that share a name' => \&shared_names;
subtest 'a filter that cannot decide keeps no limit' => \&undecided;
subtest 'users\' inputs' => \&inputs;
done_testing;

# ---------------------------------------------------------------- synthetic dumps

# Writes a dump of stacks [BYTES, BLOCKS, 'module+OFFSET', ...], innermost first, with names {
# 'module+OFFSET' => [function, file, line] }. If no names are given, writes a UMDH log, which has
# no notes.
sub dump_of {
	my ($name, $stacks, $names) = @_;
	my $addr = sub {
		my ($module, $offset) = split /\+/, $_[0];
		return hex($offset) + ($base{"$module.exe"} // $base{"$module.dll"} // $base{"$module.DLL"} // 0);
	};
	my $text = $names ? "// hsnap: dump format=1 tool=0.1.0\n// hsnap: process id=7 bits=64\n// hsnap: stacks source=tracer\n"
	    : "// \n// UMDH: version 10.0.19041.1: Logtime 2026-05-04 09:31 - Machine=SRV3 - PID=7\n// \n";
	$text .= "// Loaded modules: \n//     Base Size Module\n";
	$text .= sprintf "//        %X    800000 C:\\made\\%s\n", $base{$_}, $_ for sort { $base{$a} <=> $base{$b} } keys %base;
	$text .= "//\n// Process modules enumerated.\n";
	for my $place (sort keys %{ $names // {} }) {
		my ($function, $file, $line) = @{ $names->{$place} };
		$text .= sprintf "// hsnap: name addr=%X function=\"%s\" offset=5%s\n", $addr->($place), $function =~ s/"/\\"/gr,
		    $file ? " file=\"$file\" line=$line" : '';
	}
	$text .= "*- - - - - - - - - - Start of data for heap @ 1F0000 - - - - - - - - - -\n";
	my ($number, $at, $bytes, $blocks) = (0, 0x200000, 0, 0);
	for my $stack (@$stacks) {
		my ($size, $count, @frames) = @$stack;
		$number++;
		for my $block (1 .. $count) {
			$text .= sprintf "%X bytes + 10 at %X by BackTrace%X\n", $size, $at += 0x10000, $number;
			$text .= join('', map { sprintf "\t%X\n", $addr->($_) } @frames) . "\n" if $block == 1;
		}
		$blocks += $count;
		$bytes += $size * $count;
	}
	$text .= "*- - - - - - - - - - End of data for heap @ 1F0000 - - - - - - - - - -\n";
	$text .= sprintf "// hsnap: end blocks=%d requested=%d overhead=%d\n", $blocks, $bytes, 16 * $blocks if $names;
	return spew("$dir/$name", $text);
}

sub text { return run([$hdiff, '--no-pager', '--no-local-files', @_])->{out} }

# Returns the column "function" of the table's rows.
sub named { return [map { $_->{name} } @{ people(text(@_))->{table} }] }

# Returns the frames in a page, with the page's flags, by the names that its script shows.
sub frame_flags {
	my ($page) = run([$hdiff, '--no-local-files', '-o', 'html', @_])->{out} =~ m{<script type="application/json"[^>]*>(.*?)</script>}s;
	return { map { ($_->{module} // '') . ($_->{function} ? "!$_->{function}" : '+' . ($_->{offset} // '')) => $_ } @{ decode_json($page)->{frames} } };
}

# ---------------------------------------------------------------- tests

sub nameless_modules {
	my $old = dump_of('mod1.txt', [[0x40, 2, @heap, 'ucrtbase+F2B6', 'plug+1234', 'app+1A12 : 7FF600001A12'], [0x80, 1, @heap, 'app+2000']]);
	my $new = dump_of('mod2.txt', [[0x40, 40, @heap, 'ucrtbase+F2B6', 'plug+1234', 'app+1A12 : 7FF600001A12'], [0x80, 3, @heap, 'app+2000'],
			[0x20, 2, @heap, 'OLEAUT32+100', 'plug+7777', 'app+1A12 : 7FF600001A12'], [0x10, 2, 'MSVCR80+9', 'app+3000', 'KERNEL32+5', 'ntdll+6']]);
	my %grown = ('plug' => 0x40 * 38 + 0x20 * 2, 'app' => 0x80 * 2 + 0x10 * 2);
	is_deeply(named($old, $new), ['plug+1234', 'app+2000', 'plug+7777', 'app+3000'], 'the table');
	my %self = map { $_->{name} => $_->{self} } @{ people(text('--group', 'module', $old, $new))->{groups} };
	is_deeply(\%self, { map { $_ => signed_units($grown{$_}) } keys %grown }, '--group module');
	%self = map { $_->{name} => $_->{self} } @{ people(text('--group', 'function', $old, $new))->{groups} };
	is_deeply(\%self, { map { +"$_!?" => signed_units($grown{$_}) } keys %grown }, '--group function');
	my $flags = frame_flags($old, $new);
	is_deeply([grep { $flags->{$_}{layer} } sort keys %$flags],
		['KERNEL32+5', 'MSVCR80+9', 'OLEAUT32+100', 'ntdll+12A33', 'ntdll+6', 'ntdll+A123', 'ucrtbase+F2B6'], 'the page knows them');
	run([$hdiff, '--no-local-files', '--max-growth', 0, '--junit', "$dir/j.xml", $old, $new]);
	like(slurp("$dir/j.xml"), qr/\+2432 bytes, \+38 blocks: plug\+1234\b/, 'the report for a build server has it');
	is_deeply(named('--strip', '-o', 'text', $old, $new), ['plug+1234', 'app+2000', 'plug+7777', 'app+3000'], 'also with --strip');
}

# malloc is nameless and has 41 callers, or 8 callers, one of which is operator new with 34 of its
# own. calloc is near malloc and has 12 callers. Two of them are functions that also call malloc.
sub linked_in {
	my @stacks = map {
		my $n = $_;
		[0x10 + $n, 1 + $n, 'app+100010', $n <= 34 ? 'app+101000' : (), sprintf('app+%X', 0x1000 * $n), 'app+300000']
	} 1 .. 40;
	push @stacks, map { [8, 1, 'app+102000', sprintf('app+%X', $_ < 3 ? 0x1000 * $_ + 0x30 : 0x50000 + 0x100 * $_), 'app+300000'] } 1 .. 12;
	# This function is far from malloc.
	push @stacks, map { [8, 1, 'app+200000', sprintf('app+%X', 0x60000 + 0x100 * $_), 'app+300000'] } 1 .. 11;
	push @stacks, [0x100000, 9, 'app+100010', 'app+777', 'app+888', 'plug+10', 'app+300000', 'KERNEL32+5', 'ntdll+6'];
	my $new = dump_of('static.txt', \@stacks);
	my $rows = named('-n', 10, $new);
	is($rows->[0], 'app+777', 'the caller of malloc');
	is_deeply($rows, first_ten(\@stacks), 'all rows') or diag(join ' ', @$rows);
	is((grep { $_->{layer} } values %{ frame_flags($new) }) + 0, 5, 'and nothing else is an allocator');
	my %names = ('plug+10' => ['plug::Store::open(int)'], 'KERNEL32+5' => ['BaseThreadInitThunk'], 'ntdll+6' => ['RtlUserThreadStart'],
		'app+300000' => ['main']);
	my $named = dump_of('static-named.txt', \@stacks, \%names);
	is(named($named)->[0], 'app+777 < plug!plug::Store::open(int)', 'and the nearest one with a name');
	delete $names{$_} for 'plug+10', 'app+300000';
	is(named(dump_of('static-start.txt', \@stacks, \%names))->[0], 'app+777', 'what starts a thread is none');
	$names{'app+100010'} = ['Pool::take'];
	is(named(dump_of('static-known.txt', \@stacks, \%names))->[0], 'app!Pool::take', 'a function with a name is not taken for malloc');
	my $compared = spew("$dir/compared.txt", run([$hdiff, '--no-local-files', '-o', 'umdh', dump_of('none.txt', [[1, 1, 'app+1', 'app+2']]), $new])->{out});
	is(named($compared)->[0], 'app+777', 'in a comparison that was printed, too');
}

# Functions of <functional>, <future>, MFC, ATL and Qt, as their makers name them; the outermost is the
# program's.
sub libraries {
	my @stacks = (
		['ntdll!RtlAllocateHeap', 'ucrtbase!_malloc_base', 'app!operator new', 'app!std::_Func_class<void,int>::_Reset<<lambda_5a> >', 'app!std::function<void __cdecl(int)>::function<void __cdecl(int)><<lambda_5a>,0>', 'app!own1'],
		['ntdll!RtlAllocateHeap', 'app!operator new', 'app!std::_Get_associated_state<int,std::_Fake_no_copy_callable_adapter<<lambda_1> > >', 'app!std::async<<lambda_1> >', 'app!own2'],
		['ntdll!RtlAllocateHeap', 'app!operator new', 'app!std::_Packaged_state<int __cdecl(void)>::_Packaged_state<int __cdecl(void)><<lambda_1> >', 'app!own3'],
		['ntdll!RtlAllocateHeap', 'MFC140U!operator new', 'MFC140U!CPlex::Create', 'MFC140U!CMapStringToOb::NewAssoc', 'MFC140U!CMapStringToOb::operator[]', 'app!own4'],
		['ntdll!RtlAllocateHeap', 'MFC140U!ATL::CAtlStringMgr::Allocate', 'app!ATL::CSimpleStringT<wchar_t,0>::PrepareWrite2', 'app!ATL::CStringT<wchar_t,StrTraitMFC_DLL<wchar_t> >::AppendFormat', 'app!own5'],
		['ntdll!RtlAllocateHeap', 'Qt6Core!QArrayData::allocate2', 'Qt6Core!QString::reallocData', 'Qt6Core!QString::append', 'app!own6'],
		['ntdll!RtlAllocateHeap', 'Qt5Cored!QArrayData::allocate', 'app!own7'],
	);
	my ($text, $number) = ('', 0);
	for (@stacks) {
		my $bytes = sprintf '%X', 0x1000 - 16 * ++$number;
		$text .= "+ $bytes ( $bytes - 0) A allocs\tBackTrace$number\n+ A ( A - 0)\tBackTrace$number\tallocations\n\n" . join('', map { "\t$_+10\n" } @$_, 'app!main') . "\n";
	}
	my $file = spew("$dir/libraries.txt", $text);
	is_deeply(named('--input-base', 'hex', $file), [map { "app!own$_" } 1 .. @stacks]);
}

# An id of two candidates, and one of one. The table marks the first.
sub candidates {
	my $log = sub {
		my ($blocks) = @_;
		my $text = "// UMDH: version 6.1.7600.16385: Logtime 2026-05-04 09:00 - Machine=MADE - PID=4312\n// Loaded modules: \n//     Base Size Module\n//        400000    10000 C:\\till.exe\n//        74000000    10000 C:\\scan.ocx\n//\n// Process modules enumerated.\n"
		    . "*- - - - - - - - - - Start of data for heap @ 5D0000 - - - - - - - - - -\n\nREQUESTED bytes + OVERHEAD at ADDRESS by BackTraceID\n     STACK if not already dumped.\n\n*- - - - - - - - - - Heap 5D0000 Hogs - - - - - - - - - -\n\n";
		for (1 .. $blocks) {
			$text .= sprintf "1C bytes + 14 at %X by BackTrace94C4\n%s", 0x5D1000 + 0x30 * $_, $_ > 1 ? '' : "\t401234\n\t402000\n\tAlias\n\t74002222\n\t402300\n\n";
			$text .= sprintf "8 bytes + 14 at %X by BackTrace18D0A0D0\n%s", 0x5E1000 + 0x30 * $_, $_ > 1 ? '' : "\t74001234\n\t402100\n\n";
		}
		return spew("$dir/till$blocks.txt", "$text\n*- - - - - - - - - - End of data for heap @ 5D0000 - - - - - - - - - -\n");
	};
	is_deeply(named('--no-symbols', $log->(1), $log->(3)), ['(ambiguous) till+1234', 'scan+1234']);
}

# operator new, with 40 callers, is the only caller of malloc, or one of two.
sub only_new {
	for my $others (0, 1) {
		my @stacks = map { [0x10 + $_, 1, 'app+100010', 'app+180000', sprintf('app+%X', 0x1000 * $_), 'app+300000'] } 1 .. 40;
		push @stacks, [1, 1, 'app+100010', 'app+888', 'app+300000'] if $others;
		is_deeply(named('-n', 3, dump_of('new.txt', \@stacks)), ['app+28000', 'app+27000', 'app+26000'], "operator new and $others other callers");
	}
	# Half of the stacks pass through operator new, which calls malloc, or the heap itself.
	for my $malloc ('app+100010', undef) {
		my @stacks = map { [0x10 + $_, 1, (grep { defined } $malloc // ($_ % 2 ? () : 'app+100010')), $_ % 2 ? 'app+100480' : (), sprintf('app+%X', 0x1000 * $_), 'app+300000'] } 1 .. 40;
		is_deeply(named('-n', 3, dump_of('half.txt', \@stacks)), ['app+28000', 'app+27000', 'app+26000'], 'half through operator new, which calls ' . ($malloc ? 'malloc' : 'the heap'));
	}
	# Two functions near each other are not allocators if they have few callers.
	my @two = map { [0x10 + $_, 1, $_ % 2 ? 'app+100480' : 'app+100010', sprintf('app+%X', 0x1000 * ($_ % 28)), sprintf('app+%X', 0x40000 + 0x1000 * $_), 'app+300000'] } 1 .. 40;
	is(named('-n', 1, dump_of('two.txt', \@two))->[0], 'app+100010', 'two functions with 28 callers');
	# A function that leaks by way of one caller is in most stacks only.
	my @leak = map { [0x10 + $_, 1, 'app+5000', 'app+180000', sprintf('app+%X', 0x1000 * $_), 'app+300000'] } 1 .. 40;
	push @leak, map { [1, 1, sprintf('app+%X', 0x200000 + 0x1000 * $_), sprintf('app+%X', 0x1000 * $_), 'app+300000'] } 1 .. 20;
	is(named('-n', 3, dump_of('leak.txt', \@leak))->[0], 'app+5000', 'a function that leaks');
}

# Returns the largest of these rows, by the frame that must name the row.
sub first_ten {
	my ($stacks) = @_;
	my @rows = map {
		my ($bytes, $blocks, @frames) = @$_;
		shift @frames while $frames[0] =~ /^app\+(?:100010|101000|102000)$/;
		{ bytes => $bytes * $blocks, name => $frames[0] }
	} @$stacks;
	return [map { $_->{name} } (sort { $b->{bytes} <=> $a->{bytes} } @rows)[0 .. 9]];
}

# 40 stacks without names, most of which pass through one function that leaks. Either the function
# has few callers, or as many other stacks do not pass through it.
sub ordinary {
	my @few = map { [0x10, 1, 'app+5000', sprintf('app+%X', 0x100 * ($_ % 29 + 1)), sprintf('app+%X', 0x10000 + 0x100 * $_), 'app+9'] } 1 .. 40;
	is_deeply([map { s/ .*//r } @{ named(dump_of('few.txt', \@few)) }], [('app+5000') x 10], '29 callers');
	my @half = map { [0x10, 1, $_ <= 40 ? 'app+5000' : sprintf('app+%X', 0x6000 + $_), sprintf('app+%X', 0x10000 + 0x100 * $_), 'app+9'] } 1 .. 80;
	dump_of('half.txt', \@half);
	is(frame_flags("$dir/half.txt")->{'app+5000'}{layer}, undef, 'half of the stacks are not most of them');
	push @half, [0x10, 1, 'app+5000', 'app+70000', 'app+9'];
	is(frame_flags(dump_of('most.txt', \@half))->{'app+5000'}{layer}, JSON::PP::true, 'one more is');
}

sub ordinary_callees {
	# A function with 40 callers that calls the C library's DLL is operator new or a similar
	# function.
	my @called = (['ucrtbase+F2B6', 1], ['MSVCR80+14D83', 1], ['OLEAUT32+100', 0], [undef, 1]);
	for my $called (@called) {
		my ($dll, $is_layer) = @$called;
		my $runtime = [grep { defined } $dll];
		my @stacks = map { [0x10, $_, @heap, @$runtime, 'app+5100', sprintf('app+%X', 0x20000 + 0x100 * $_), 'app+9'] } 1 .. 40;
		is(frame_flags(dump_of('runtime.txt', \@stacks))->{'app+5100'}{layer}, $is_layer ? JSON::PP::true : undef,
			'called from 40 places, calls ' . ($dll // 'ntdll'));
	}
	# malloc is at 5100 with 40 callers. A function that leaks is at 7000 with 12 callers.
	my @near = map { [0x20, 1, @heap, 'app+5100', sprintf('app+%X', 0x20000 + 0x100 * $_), 'app+9'] } 1 .. 40;
	push @near, map { [500, 2, @heap, 'app+7000', sprintf('app+%X', 0x30000 + 0x100 * $_), 'app+9'] } 1 .. 12;
	my $flags = frame_flags(dump_of('near.txt', \@near));
	is($flags->{'app+5100'}{layer}, JSON::PP::true, 'malloc');
	is($flags->{'app+7000'}{layer}, undef, 'its neighbour');
	my %names = map { (sprintf('app+%X', 0x20000 + 0x100 * $_) => ["caller_$_"], sprintf('app+%X', 0x30000 + 0x100 * $_) => ["ringer_$_"]) } 1 .. 40;
	is(frame_flags(dump_of('near-named.txt', \@near, \%names))->{'app+7000'}{layer}, undef, 'whose callers have names of their own');
	# operator new is at 80000 and is called from 90 places. operator new[] is next to it and is
	# called from 31 places.
	push @near, map { [0x20, 1, @heap, 'app+5100', 'app+80000', sprintf('app+%X', 0x40000 + 0x100 * $_), 'app+9'] } 1 .. 90;
	push @near, map { [0x20, 1, @heap, 'app+5100', 'app+80000', 'app+80400', sprintf('app+%X', 0x50000 + 0x100 * $_), 'app+9'] } 1 .. 31;
	$flags = frame_flags(dump_of('new.txt', \@near));
	is_deeply([grep { /^app/ && $flags->{$_}{layer} } sort keys %$flags], ['app+5100', 'app+80000', 'app+80400'], 'operator new[] calls its neighbour');
}

sub uncalled {
	my $old = dump_of('fpo1.txt', [[198, 30, @heap, 'MSVCR80+14D83']]);
	my $new = dump_of('fpo2.txt', [[198, 60, @heap, 'MSVCR80+14D83'], [198, 10, @heap, 'MSVCR80+14D83', 'app+100'],
			[10, 1, 'ucrtbase+1', 'ucrtbase+9', 'KERNEL32+5', 'ntdll+6']]);
	# 30 of the 40 blocks, and 10 bytes that belong to the system's own thread.
	my $share = int(100 * 198 * 30 / (198 * 40 + 10) + 0.5);
	like(text($old, $new), qr/^no caller recorded for $share % of the growth: .*\n.*--sizes.*hsnap attach/m, 'their share, and what helps');
	like(text($new), qr/^no caller recorded for \d+ % of the memory:/m, 'of one dump');
	my $ok = dump_of('ok.txt', [[198, 60, @heap, 'MSVCR80+14D83', 'app+100'], [1, 1, 'app+100']]);
	unlike(text($old, $ok), qr/no caller/, 'nothing where callers are there');
	my %names = ('MSVCR80+14D83' => ['_initterm_of_its_own']);
	unlike(text(dump_of('named.txt', [[198, 60, 'MSVCR80+14D83']], \%names)), qr/no caller/, 'or where the name is no allocator\'s');
	%names = ('app+14D83' => ['malloc']);
	like(text(dump_of('named.txt', [[198, 60, 'app+14D83']], \%names)), qr/no caller recorded for 100 %/, 'but an allocator in the program is one');
}

sub long_names {
	my $map = 'std::map<std::string, Widget, std::less<std::string>, std::allocator<std::pair<std::string const, Widget> > >';
	my %names = (
		'app+1' => ["void $map" . '::fill_it<' . $map . '>(' . $map . ' const&, int)'],
		'app+2' => ["app::operator<<($map const&, $map const&)"],
		'app+3' => ["app::run($map)::{lambda($map&)#1}::operator()($map&) const"],
		'app+4' => ["app::Table<$map>::grow(int)", 'table.cpp', 7],
		'app+5' => ['main']);
	my $new = dump_of('long.txt', [[0x100, 9, 'app+1', 'app+5'], [0x100, 8, 'app+2', 'app+5'], [0x100, 7, 'app+3', 'app+5'], [0x100, 6, 'app+4', 'app+5']], \%names);
	my $report = people(text($new));
	my @frames = map { $_->{frames}[0] } @{ $report->{stacks} };
	is($frames[1], 'app!app::operator<<(std::map<...> const&, std::map<...> const&)', 'templates in parameters');
	is($frames[2], 'app!app::run(...)::{lambda(...)#1}::operator()(...) const', 'lambdas, an operator, parameters');
	is($frames[3], 'app!app::Table<...>::grow(int)  table.cpp:7', 'with its place');
	is((grep { length > 80 } split /\n/, text($new)) + 0, 0, 'the report fits its columns') or diag(join "\n", grep { length > 80 } split /\n/, text($new));
	is($report->{table}[3]{name}, 'app::Table<...>::grow(int)  table.cpp:7', 'the table');
	for my $form (qw(umdh json csv folded)) {
		my $said = run([$hdiff, '--no-local-files', '-o', $form, $new])->{out};
		like($said, qr/\Q::fill_it<$map>\E/, "$form has all of it") or diag($said);
	}
	my $flags = frame_flags($new);
	my ($frame) = grep { $_->{function} =~ /Table/ } values %$flags;
	is($frame->{short}, 'app!app::Table<...>::grow(int)', 'the page has both');
	is($frame->{function}, $names{'app+4'}[0], 'so that one can search');
	is($flags->{'app!main'}{short}, undef, 'where there is something to shorten');
}

# Checks each name, and the part of the name that fits into the table and the groups.
sub long_scopes {
	my @names = (
		'std::function<void (int)>::operator()(int) const' => 'std::function<void (int)>::operator()',
		'Reef::run()::{lambda(int)#1}::operator()(int) const' => 'Reef::run()::{lambda(int)#1}::operator()',
		'Reef::Coral::operator std::string() const volatile' => 'Reef::Coral::operator std::string',
		'Reef::Coral::operator std::function<void ()>() const' => '...Coral::operator std::function<void ()>',
		'std::function<void (int)> Reef::Coral::make_them(int, long, char, double)' => 'Reef::Coral::make_them(...)',
		'Reef::Coral::of<&Reef::operator< >::grow_it_slowly(int, int)' => 'Reef::Coral::of<...>::grow_it_slowly',
		'Reef::Coral::of<decltype(a->b), int>::grow_it_slowly(int, int)' => 'Reef::Coral::of<...>::grow_it_slowly',
		'main.(*SessionCacheOfUsers[...]).Put(long, long)' => 'main.(*SessionCacheOfUsers[...]).Put',
		'a1::b2::c3::d4::e5::f6::g7::h8::i9::j10::k11::l12::m13::names' => '...g7::h8::i9::j10::k11::l12::m13::names',
		'a_long_outer_scope::one_more_long_scope::Coral::grow' => '...one_more_long_scope::Coral::grow');
	my (@stacks, %names, @shown);
	while (my ($name, $shown) = splice @names, 0, 2) {
		my $at = sprintf 'app+%X', 0x100 * (1 + @stacks);
		push @stacks, [0x1000 - 0x100 * @stacks, 1, $at, 'app+9000'];
		push @shown, "app!$shown";
		$names{$at} = [$name];
	}
	my $new = dump_of('scopes.txt', \@stacks, \%names);
	is_deeply(named($new), \@shown, 'the table') or diag(join "\n", @{ named($new) });
	my @groups = map { $_->{name} } @{ people(text('--group', 'function', '-n', 10, $new))->{groups} };
	@groups = grep { !/\?$/ } @groups;
	is_deeply(\@groups, \@shown, '--group function') or diag(join "\n", @groups);
}

sub start_up {
	my %names = ('app+1' => ['leak_main_thread'], 'app+2' => ['main', 'app.c', 5], 'app+3' => ['__tmainCRTStartup', 'crtexe.c', 9],
		'app+4' => ['mainCRTStartup', 'crtexe.c', 2], 'KERNEL32+5' => ['BaseThreadInitThunk', './dlls/kernel32/thread.c', 61],
		'ntdll+6' => ['RtlUserThreadStart', './dlls/ntdll/thread.c', 3], 'app+7' => ['worker', 'pool.c', 4]);
	my @start = ('KERNEL32+5', 'ntdll+6');
	my $new = dump_of('start.txt', [[1, 1, 'app+1', 'app+2', 'app+3', 'app+4', @start], [2, 1, 'app+7', @start], [4, 1, 'app+3', 'app+4', @start]], \%names);
	# Bytes that remain under each rule.
	my %left = ('leak:main' => 2 + 4, 'leak:thread.c' => 7, 'leak:CRTStartup' => 7, 'leak:^mainCRTStartup$' => 2, 'leak:^ntdll$' => 7, 'leak:KERNEL32' => 7,
		'leak:^app.exe$' => 4, 'leak:^RtlUserThreadStart$' => 0, 'leak:worker < ^KERNEL32!BaseThreadInitThunk$' => 5, 'leak:worker < Base' => 7, 'leak:app.c' => 6);
	for my $rule (sort keys %left) {
		spew("$dir/rules.txt", "$rule\n");
		my $said = decode_json(run([$hdiff, '--no-local-files', '-o', 'json', '--suppress', "$dir/rules.txt", $new])->{out});
		my $bytes = 0;
		$bytes += $_->{new}{bytes} for @{ $said->{rows} };
		is($bytes, $left{$rule}, $rule);
	}
	# A printed comparison has modules without extension.
	my $printed = spew("$dir/printed.txt", "+ 10 ( 10 - 0) 1 allocs\tBackTrace1\n+ 1 ( 1 - 0)\tBackTrace1\tallocations\n\n\tntdll!RtlAllocateHeap+3E\n\tthird+12 : 10012\n\tapp!main+20\n\nTotal increase == 10\n");
	for my $rule ('^third.dll$', 'third.exe', '^third$', '^third.d', 'app.exe < ...', 'third.ocx < ^app.exe$') {
		spew("$dir/rules.txt", "leak:$rule\n");
		is(run([$hdiff, '--input-base', 'hex', '--suppress', "$dir/rules.txt", '--max-growth', 0, $printed])->{status}, 0, "a printed comparison: $rule");
	}
	spew("$dir/rules.txt", "leak:^hird.dll\nleak:^third.cpp\$\n");
	is(run([$hdiff, '--input-base', 'hex', '--suppress', "$dir/rules.txt", '--max-growth', 0, $printed])->{status}, 1, 'a printed comparison: other modules');
}

# Inputs that users sent. Each README states the answer.
sub inputs {
	my ($field, $use) = map { data_file($_) } qw(field use);
	plan(skip_all => 'no test data') if !$field || !$use;
	is_deeply(named(map { "$field/04-nameless-module/mod$_.txt" } 1, 2), ['imapconn+1234', 'spellchk+4321'], 'logs without symbols');
	like(text(map { "$field/15-stack-ends-in-malloc/fpo$_.txt" } 1, 2), qr/^no caller recorded for 100 % of the growth/m, 'frame pointers left out');
	my @node = map { "$use/10-static-crt/$_.txt.gz" } qw(a b);
	like(named(@node)->[0], qr/^node\+308E50 < .*Heap::AllocateExternal/, 'a C library without a PDB');
	is((grep { /136359C/ } @{ named('-n', 100, @node) }) + 0, 0, 'no row is called by its malloc');
	my $said = decode_json(run([$hdiff, '--no-local-files', '--strip', '-o', 'json', map { "$use/06-cpp-library-frames/$_.txt.gz" } qw(a b)])->{out});
	my ($all, $std) = (0, 0);
	for my $row (@{ $said->{rows} }) {
		$all += $row->{growth}{bytes};
		$std += $row->{growth}{bytes} if ($row->{frames}[0]{function} // '') =~ /\bstd::|^_ZSt/;
	}
	cmp_ok($std, '<', $all / 100, "idioms of C++ are named by the program's lines: $std of $all bytes are not");
}

# ---------------------------------------------------------------- patterns

# Writes a comparison of stacks. Stack N, from 0, grew by 2^N blocks of 16 bytes.
sub comparison_of {
	my ($text, $id) = ('', 0);
	for my $frames (@_) {
		my $count = 1 << $id++;
		$text .= sprintf "+%8X ( %6X - %6X) %6X allocs\tBackTrace%X\n+%8X ( %6X - %6X)\tBackTrace%X\tallocations\n\n", 16 * $count, 16 * $count, 0, $count, $id, $count, $count, 0, $id;
		$text .= join '', (map { "\t$_\n" } @$frames), "\n";
	}
	my $sum = 16 * ((1 << @_) - 1);
	return spew("$dir/compared.txt", $text . sprintf "Total increase == %6X requested + %6X overhead = %6X\n", $sum, 0, $sum);
}

# Returns the numbers of the stacks that a report shows.
sub rows_of {
	my $result = run([$hdiff, '--no-local-files', '--input-base', 'hex', '-o', 'json', @_]);
	return [sort { $a <=> $b } map { log($_->{growth}{bytes} / 16) / log 2 } @{ decode_json($result->{out})->{rows} }];
}

sub spellings {
	my $msvc = 'std::basic_string<char,std::char_traits<char>,std::allocator<char> >';
	my $gnu = 'std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >';
	my $old = 'class std::basic_string<char,struct std::char_traits<char>,class std::allocator<char> >';
	my @names = ("app!${msvc}::assign", "app!${gnu}::append(char)", "app!f($old)", "app!$gnu app::make<int>(int)", 'app!std::__cxx11::list<int>::push', 'plug.dll!Plug::open');
	my $file = comparison_of(map { [$names[$_] . "+1$_ (d:\\src\\$_.cpp, 7)", 'app!main+3'] } 0 .. $#names);
	my @cases = (
		["\Q$msvc\E" => 0], ["^\Qapp!$gnu\E" => 1, 3], ["\Q$old\E" => 2], ['std::string' => 0 .. 3], ['^app!app::make<int>' => 3], ['^app!std::string app::make' => 3],
		['std::__cxx11::list' => 4], ['^app!std::list<int>' => 4], ['^plug\.dll!Plug' => 5], ['^plug!Plug' => 5], ['char_traits' => 0 .. 3], ['\A!' => ()]);
	for my $case (@cases) {
		my ($pattern, @rows) = @$case;
		my %is_left = map { $_ => 1 } 0 .. $#names;
		delete @is_left{@rows};
		is_deeply(rows_of('-i', $pattern, $file), \@rows, "-i $pattern");
		is_deeply(rows_of('-x', $pattern, $file), [sort keys %is_left], "-x $pattern");
	}
	for my $case ([$msvc => 0], ["^$gnu*append" => 1], ["f($old)\$" => 2], ['^app::make<' => 3], ['^app!std::list' => 4], ['^plug.dll!' => 5], ['^plug.dll$' => 5], ['std::string' => 0 .. 3]) {
		my ($pattern, @rows) = @$case;
		my %is_left = map { $_ => 1 } 0 .. $#names;
		delete @is_left{@rows};
		is_deeply(rows_of('--suppress', spew("$dir/known.supp", "leak:$pattern\n"), $file), [sort keys %is_left], "leak:$pattern");
	}
	# Lines of --strip-file match whole names.
	for my $line ("app!${msvc}::assign", "app!${gnu}::append*", 'app!app::make<*', 'app!std::string app::make<*', 'plug!Plug::*', 'plug.dll!Plug::*') {
		my @first = map { $_->{frames}[0]{function} } @{ decode_json(run([$hdiff, '--strip-file', spew("$dir/strip.txt", "$line\n"), '-o', 'json',
				comparison_of(map { ["$_+1", 'app!user+3'] } $line =~ /msvc|basic_string<char,std/ ? $names[0] : $line =~ /append/ ? $names[1] : $line =~ /make/ ? $names[3] : $names[5])])->{out})->{rows} };
		is_deeply(\@first, ['user'], "--strip-file: $line");
	}
	# Names in dumps may be mangled.
	my $dump = dump_of('mangled.txt', [[16, 1, 'app+10'], [32, 1, 'app+20']], { 'app+10' => ['_ZN3app4loadEv'], 'app+20' => ['other'] });
	is_deeply([map { $_->{growth}{bytes} } @{ decode_json(run([$hdiff, '--no-local-files', '-o', 'json', '-i', $_, $dump])->{out})->{rows} }], [16], "-i $_")
	    for '^app!_ZN3app4loadEv$', '^app!app::load\(\)$';
}

sub unmatched {
	my $file = comparison_of(['app!f+1', 'app!main+3'], ['app!g+1', 'app!main+3']);
	for my $option ('-i', '-x') {
		my $said = sub { [grep { /warning/ } split /\n/, run([$hdiff, '-o', 'json', @_, $file])->{err}] };
		is_deeply($said->($option, '^app!nothing'), ["hdiff: $option ^app!nothing: warning: no changed stack has a matching frame"], "$option without a match");
		is_deeply($said->($option, '^app!f'), [], "$option with a match");
		is_deeply($said->($option, '^app!f', $option, '!fx'), ["hdiff: $option !fx: warning: no changed stack has a matching frame"], "$option: the one without a match");
	}
	is(run([$hdiff, '-i', '!f$', '-x', '!g$', $file])->{err}, '', '-x matches a stack that -i leaves out');
}

sub suppressions {
	my $file = comparison_of(['v!ssl_init+1 (E:\\vendor\\openssl\\ssl.c, 3)', 'app!main+3'], ['app!Cache::fill+1 (/src/cache.cpp, 3)', 'app!main+3', 'kernel32!BaseThreadInitThunk+4'], ['app!g+1', 'app!main+3']);
	my %left = ('leak:*/vendor/openssl/*' => [1, 2], 'leak:*\\vendor\\openssl\\*' => [1, 2], 'leak:/src/cache' => [0, 2], 'leak:\\src\\cache' => [0, 1, 2], 'leak: Cache::fill ' => [0, 2], "leak:\tCache::fill" => [0, 2],
		'leak:Cache::fill  <  ^main$' => [0, 2]);
	for my $line (sort keys %left) {
		is_deeply(rows_of('--suppress', spew("$dir/known.supp", "$line\n"), $file), $left{$line}, $line);
	}
	my %why = ('leak:nothing' => 'no changed stack matches it', 'leak:cache::fill' => 'it matches only if case is ignored',
		'leak:BaseThread' => 'it matches only functions that start a program or a thread; for those, write the whole name between ^ and $',
		"leak:Cache\nleak:^Cache::fill\$" => 'an earlier suppression covers what it matches');
	for my $line (sort keys %why) {
		like(run([$hdiff, '--suppress', spew("$dir/known.supp", "$line\n"), $file])->{err}, qr/ suppressed nothing: \Q$why{$line}\E$/m, $line =~ tr/\n/,/r);
	}
	like(run([$hdiff, '-i', '!g$', '--suppress', spew("$dir/known.supp", "leak:Cache\n"), $file])->{err}, qr/suppressed nothing: no changed stack that the other options select matches it$/m, 'with -i');
}

# Names of code that the linker moved away from its function, in ntdll with public symbols only.
sub moved_code {
	my @moved = ('ntdll! ?? ::FNODOBFM::`string\'+1A', 'ntdll! ?? ::NNGAKEGL::`string\'+2B00');
	my $file = comparison_of((map { [$moved[$_], "app!user_$_+3"] } 0 .. $#moved), ['app! ?? ::FNODOBFM::`string\'+1A', 'app!main+3']);
	my @rows = @{ named($file) };
	is(scalar(grep { /^app!user_/ } @rows), 2, 'such names in ntdll do not name a row') or diag(join "\n", @rows);
	is(scalar(grep { /FNODOBFM/ } @rows), 1, '... but in the program they do');
	return;
}

# A module that no log can show: a limit cannot be judged.
sub no_modules {
	my $log = sub { my ($name, $count, $list) = @_;
		return spew("$dir/$name", ($list ? "// Loaded modules:\n//     Base Size Module\n//        140000000    24000 C:\\app\\app.exe\n//\n// Process modules enumerated.\n" : '')
			. join '', map { sprintf "10 bytes + 8 at %X by BackTrace2\n%s", 0x655FB0 + 64 * $_, $_ == 1 ? "\t140001490\n\n" : "\n" } 1 .. $count) };
	for my $list (0, 1) {
		my @files = map { $log->("modules-$_.txt", $_, $list) } 1, 3;
		is(run([$hdiff, '--module', 'app', '--max-growth', 0, @files])->{status}, $list ? 1 : 2, $list ? 'with the list, growth is over the limit' : 'without the list of modules, nothing is judged');
		is(run([$hdiff, '--module', 'other', '--max-growth', 0, @files])->{status}, 2, 'a module that does not exist');
	}
	# One block of 16 bytes before, three later. These logs do not show that they are of one process.
	for my $pair ([0, 1], [1, 0]) {
		my @files = map { $log->("only-$_.txt", $_ ? 3 : 1, $pair->[$_]) } 0, 1;
		my $bare = $files[$pair->[0]];
		my $result = run([$hdiff, '--module', 'app', '--max-growth', 0, @files]);
		is($result->{status}, 2, "only one lists modules: nothing is judged, @$pair");
		is(scalar(() = $result->{err} =~ /^hdiff: \Q$bare\E: warning: lists no modules/mg), 1, 'one warning') or diag($result->{err});
		for my $limit (31, 32) {
			my $same = run([$hdiff, '--match', 'address', '--max-growth', $limit, @files]);
			is($same->{status}, $limit < 32 ? 1 : 0, "by address: the limit $limit");
			unlike($same->{err}, qr/lists no modules/, 'no warning');
		}
		is(run([$hdiff, '--match', 'address', '--module', 'app', '--max-growth', 0, @files])->{status}, 2, 'by address, of a module');
	}
	my @files = ($log->('some.txt', 2, 1), spew("$dir/none.txt", "// UMDH: version 6.3.9600: Logtime 2026-05-04 09:31 - Machine=SRV3 - PID=7\n// Loaded modules:\n//     Base Size Module\n//        140000000    24000 C:\\app\\app.exe\n//\n// Process modules enumerated.\n"));
	is(run([$hdiff, '--max-growth', 0, @$_])->{status}, 2, 'a log without heaps measures nothing') for [@files], [reverse @files], [$files[1]];
	return;
}

# UMDH writes heaps without blocks if +ust was off. hsnap's dumps contain blocks without stacks, so that
# such a dump is true.
sub empty_heaps {
	my $log = sub { my ($name, $hour, $count) = @_;
		my $heap = join '', map { "*- - - - - - - - - - $_ - - - - - - - - - -\n\n" } 'Start of data for heap @ 1F0000', 'Heap 1F0000 Hogs';
		return spew("$dir/$name", "// UMDH: version 10.0.19041.1: Logtime 2026-05-04 0$hour:31 - Machine=SRV3 - PID=7\n// Loaded modules:\n//     Base Size Module\n"
			. "//        140000000    24000 C:\\app\\app.exe\n//\n// Process modules enumerated.\n$heap"
			. join('', map { sprintf "10 bytes + 8 at %X by BackTrace2\n%s", 0x655FB0 + 64 * $_, $_ == 1 ? "\t140001490\n\n" : "\n" } 1 .. $count)
			. "*- - - - - - - - - - End of data for heap @ 1F0000 - - - - - - - - - -\n") };
	my @some = map { $log->("empty-some$_.txt", $_, 1) } 1 .. 4;
	my ($early, $late) = map { $log->("empty-$_.txt", $_, 0) } 0, 5;
	mkdir "$dir/empty" or die;
	link $_, "$dir/empty/" . basename($_) or die for $early, @some;
	for my $files ([$early, $late], [$early, $some[0]], [$some[0], $late], [@some, $late], ["$dir/empty"]) {
		my $result = run([$hdiff, '--max-growth', 1000, '--junit', "$dir/empty.xml", @$files]);
		is($result->{status}, 2, 'a log without blocks measures nothing: ' . join ' ', map { basename($_) } @$files);
		like($result->{err}, qr/^hdiff: \S*empty-\d\.txt: warning: has no blocks: was \+ust on when the process started\?/m, 'the reason') or diag($result->{err});
		like(slurp("$dir/empty.xml"), qr/ errors="1"/, 'the build server does not see it as passed');
	}
	is(run([$hdiff, '--warm-up', 1, '--max-growth', 0, "$dir/empty"])->{status}, 0, 'after the first log, nothing grew');
	is(run([$hdiff, '--max-growth', 0, @some[0, 1]])->{status}, 0, 'logs with blocks are judged');
	my @true = series($dir, [1763632800000, 1763636400000], { leak => [0, 0] }, name => 'nothing-%d.txt');
	my $result = run([$hdiff, '--max-growth', 0, @true]);
	is("$result->{status} $result->{err}", '0 ', 'a dump made by hsnap may have no blocks');
	return;
}

# Layers of libraries, innermost first. The function that calls them names the row. The last list has
# names of programs that only resemble allocators.
sub known_libraries {
	my @layers = (['mfc140u!CAfxStringMgr::Allocate', 'mfc140u!ATL::CSimpleStringT<wchar_t,1>::PrepareWrite2'], ['mfc42!CPlex::Create', 'mfc42!CPtrList::NewNode', 'mfc42!CPtrList::AddTail'],
		['mfc140u!operator new', 'mfc140u!CByteArray::SetSize'], ['app!CArray<CPoint,CPoint &>::SetSize'], ['app!CList<int,int>::NewNode'], ['app!CMap<int,int,int,int>::SetAt'], ['app!CAfxStringMgr::Allocate'],
		['app!ATL::CComBSTR::CComBSTR'], ['app!ATL::CComHeapPtr<wchar_t>::AllocateBytes'], ['app!ATL::CAtlMap<int,int>::NewNode'], ['app!ATL::CCRTAllocator::Allocate'],
		['libcrypto-3-x64!CRYPTO_malloc', 'libcrypto-3-x64!CRYPTO_zalloc'], ['libcrypto-3-x64!CRYPTO_strdup'], ['sqlite3!sqlite3MemMalloc', 'sqlite3!mallocWithAlarm', 'sqlite3!sqlite3Malloc', 'sqlite3!sqlite3_malloc64'],
		['winsqlite3!sqlite3DbMallocRawNN', 'winsqlite3!dbMallocRawFinish'], ['mozglue!moz_xmalloc'], ['xul!moz_xstrdup'], ['python311!_PyMem_RawMalloc', 'python311!PyObject_Malloc'], ['python27!PyMem_Realloc'],
		['libtcmalloc!tc_malloc'], ['app!tc_newarray'], ['app!je_malloc'], ['app!je_calloc'], ['app!mi_malloc', 'app!_mi_malloc_generic'], ['app!mi_new'], ['jvm!os::malloc', 'jvm!AllocateHeap'],
		['app!boost::make_shared<Foo,int>'], ['app!boost::shared_ptr<Foo>::shared_ptr<Foo>'], ['KERNELBASE!StrDupW'], ['SHLWAPI!StrDupA'], ['RPCRT4!AllocWrapper', 'RPCRT4!NdrAllocate'], ['libcurl!Curl_dyn_add'],
		['zlib1!zcalloc'], ['app!xmalloc'], ['app!xcalloc'], ['app!xrealloc'], ['app!xstrdup'], ['libxml2!xmlMallocZero'], ['libxml2!xmlStrndup'], ['atl100+1234'], ['mfc140u+1234', 'mfc140u+2345']);
	my @own = map { [$_] } 'app!max_malloc_size', 'app!sqlite3_prepare_v2', 'app!my_zcalloc_all', 'app!CPtrListView::Add', 'app!os::malloc', 'atlas+1234', 'app!PyMemory_report', 'app!tc', 'libcrypto!BIO_new_ex', 'mfc140u!CWinApp::Run';
	my ($text, $number, @expected) = ('', 0);
	for my $stack (@layers, @own) {
		my $bytes = 100_000 - 100 * ++$number;
		$text .= sprintf "+ %d ( %d - 0) 100 allocs\tBackTrace%d\n+ 100 ( 100 - 0)\tBackTrace%d\tallocations\n\n%s\n", $bytes, $bytes, $number, $number,
		    join '', map { "\t$_\n" } map { /\+/ ? "$_ : 7FF$number" . '00001234' : "$_+12" } 'ntdll!RtlAllocateHeap', 'ucrtbase!_malloc_base', @$stack, "user!leak$number";
		push @expected, $number > @layers ? $stack->[0] : "user!leak$number";
	}
	my $sum = 100_000 * $number - 100 * $number * ($number + 1) / 2;
	my $file = spew("$dir/known.txt", "$text\nTotal increase == $sum requested + 0 overhead = $sum\n");
	my $rows = decode_json(text('--input-base', 'decimal', '-n', 100, '-o', 'json', '--strip', $file))->{rows};
	my @names = map { my $frame = $_->{frames}[0]; $frame->{module} . ($frame->{function} ? "!$frame->{function}" : "+$frame->{offset}") } @$rows;
	is($names[$_], $expected[$_], "layers: @{ [@layers, @own]->[$_] }") for 0 .. $#expected;
	return;
}

# Writes a log of UMDH with modules [BASE, SIZE, PATH] and stacks [BYTES, BLOCKS, ADDRESS, ...].
sub log_of {
	my ($name, $hour, $modules, $stacks) = @_;
	my ($number, $at) = (0, 0x200000);
	my $text = "// UMDH: version 10.0.19041.1: Logtime 2026-05-04 0$hour:31 - Machine=SRV3 - PID=7\n// Loaded modules:\n//     Base Size Module\n"
	    . join('', map { sprintf "//        %X    %X %s\n", @$_ } @$modules) . "//\n// Process modules enumerated.\n*- - - - - - - - - - Start of data for heap @ 1F0000 - - - - - - - - - -\n";
	for my $stack (@$stacks) {
		my ($bytes, $blocks, @frames) = @$stack;
		$number++;
		$text .= sprintf "%X bytes + 10 at %X by BackTrace%X\n%s", $bytes, $at += 0x10000, $number, $_ == 1 ? join('', map { sprintf "\t%X\n", $_ } @frames) . "\n" : '' for 1 .. $blocks;
	}
	return spew("$dir/$name", "$text*- - - - - - - - - - End of data for heap @ 1F0000 - - - - - - - - - -\n");
}

# Modules of one name: in different folders, with different endings, or with one path, in a log that a
# person made anonymous. The first grows by 50 blocks of 256 bytes, the second shrinks by as much. A third
# module has the name, but no stack.
sub shared_names {
	my @rest = ([0x150000000, 0x90000, 'C:\other\place\filter.dll'], [0x170000000, 0x200000, 'C:\Windows\ntdll.dll']);
	for my $case (['C:\h\blur\x\filter.dll', 'C:\h\grain\x\filter.dll', 'filter(blur\x)', 'filter(grain\x)'], ['C:\h\filter.exe', 'C:\h\Filter.dll', 'filter.exe', 'Filter.dll'],
		['C:\h\xxxx.dll', 'C:\h\xxxx.dll', 'xxxx(1)', 'xxxx(2)']) {
		my ($one, $other, @names) = @$case;
		my ($grown, $shrunk) = (0x140000000, 0x148000000);
		my @modules = ([$grown, 0x80000, $one], [$shrunk, 0x60000, $other], @rest);
		my @files = map { my $later = $_; log_of("shared-$later.txt", 1 + $later, \@modules,
			[[0x100, $later ? 60 : 10, 0x170001111, $grown + 0x1234], [0x100, $later ? 10 : 60, 0x170001111, $shrunk + 0x1234]]) } 0, 1;
		my @shown = $names[0] =~ /1/ ? reverse @names : @names; # numbers are in order of size
		is_deeply(named(@files), [map { "$_+1234" } @shown], "@names: the rows can be told apart");
		my %self = map { $_->{name} => $_->{self} } @{ people(text('--group', 'module', @files))->{groups} };
		is_deeply(\%self, { $shown[0] => signed_units(12800), $shown[1] => signed_units(-12800) }, 'so can groups');
		my $json = decode_json(text('-o', 'json', @files));
		is_deeply([map { [$_->{growth}{bytes}, @{ $_->{frames}[1] }{qw(module path)}] } @{ $json->{rows} }],
			[[12800, $one =~ /(\w+)\.\w+$/, $one], [-12800, $other =~ /(\w+)\.\w+$/, $other]], 'the path is in json');
		my $name = lc $one =~ s/.*\\(\w+)\..*/$1/r;
		is(run([$hdiff, '--max-growth', 12799, '--module', $name, '-i', "^(?i:$name)\\+1234", @files])->{status}, 1, 'options match the plain name');
		my $umdh = spew("$dir/shared-d.txt", text('-d', @files));
		is(scalar @{ decode_json(text('-o', 'json', $umdh))->{rows} }, 2, 'UMDH\'s form keeps them apart');
	}
	return;
}

# Nothing grows: 4 blocks of 256 bytes before and after. If the other build has moved the call, its row
# looks like growth. In either case a warning names the module.
sub other_builds {
	my $log = sub { my ($hour, $pid, $size, $offset, $ntdll) = @_;
		my $file = log_of("build$hour.txt", $hour, [[0x140000000, $size, 'C:\\t\\tests.exe'], [0x150000000, 0x1000, 'C:\\t\\a.dll'], [0x170000000, $ntdll // 0x200000, 'C:\\Windows\\System32\\ntdll.dll']], [[0x100, 4, 0x170001111, 0x140000000 + $offset]]);
		return spew($file, slurp($file) =~ s/PID=7/PID=$pid/r) };
	for my $moved (0, 0x120) {
		my @files = ($log->(1, 8, 0x40000, 0x1111), $log->(2, 9, 0x41000, 0x1111 + $moved));
		my $result = run([$hdiff, '--max-growth', 0, @files]);
		is($result->{status}, $moved ? 1 : 0, 'rows are compared by offset');
		like($result->{err}, qr/^hdiff: \Q$files[1]\E: warning: another build of tests\.exe than in \Q$files[0]\E, /m, 'the doubt');
		like($result->{out}, qr/^warning: .*another build of tests\.exe/m, 'also in the report');
		like(run([$hdiff, '--across-restarts', @files, $log->(3, 10, 0x41000, 0x1111)])->{err}, qr/another build of tests\.exe/, 'so it is with a trend');
	}
	unlike(run([$hdiff, $log->(1, 8, 0x40000, 0x1111), $log->(2, 9, 0x40000, 0x1111, 0x210000)])->{err}, qr/another build/, 'an update of Windows is no other build');
	return;
}

# A comparison that lacks what a filter needs.
sub undecided {
	my $gate = sub { my ($status, $file, $what, @args) = @_;
		my $result = run([$hdiff, '--input-base', 'hex', @args, '--max-growth', 0, $file]);
		is($result->{status}, $status, $what) or diag($result->{out}, $result->{err});
		return $result;
	};
	# The first row grew by 16 bytes and the second by 32, each from 16 bytes; no count of the
	# first is known, and the second has one block more.
	my $counts = spew("$dir/counts.txt", "+      10 (     20 -     10)      2 allocs\tBackTrace1\n\n\tapp!f+1\n\n+      20 (     30 -     10)      3 allocs\tBackTrace2\n"
		. "+       1 (      3 -      2)\tBackTrace2\tallocations\n\n\tapp!g+1\n\nTotal increase ==     30 requested +      0 overhead =     30\n");
	$gate->(1, $counts, '--min-count keeps a row whose count is not known', '--min-count', 2);
	is_deeply(rows_of('--min-count', 2, $counts), [0], '... and only this one');
	for ('--module app', '-i ^app!', '-i open') {
		my $result = $gate->(2, comparison_of([], []), "no stacks, $_", split / /);
		like($result->{err}, qr/^hdiff: \Q$_\E: warning: (?:the comparison has no stacks|no frame has a name that it could match)$/m, 'and why');
	}
	# The frames of the program have no names, or none has.
	my $named = comparison_of(['ntdll!RtlAllocateHeap+1', 'app+1A12 : 7FF600001A12']);
	$gate->($$_[1], $named, "names of another module, -i $$_[0]", '-i', $$_[0]) for ['^app!', 2], ['app.exe!f', 2], ['^plug!', 0], ['open', 0], ['app', 1];
	my $nameless = comparison_of(['ntdll+10 : 7FF700000010', 'app+1A12 : 7FF600001A12']);
	$gate->($$_[1], $nameless, "no names, -i $$_[0]", '-i', $$_[0]) for ['^app!', 2], ['Session::open', 2], ['^plug!', 0], ['app\\+1A13', 0], ['app\\+1A12', 1];
	is(run([$hdiff, '-i', '^app!', $nameless])->{status}, 0, 'without a limit');
	# Logs that list the modules.
	my @logs = map { dump_of("undecided$_.txt", [[0x40, $_, @heap, 'app+1A12']]) } 1, 2;
	is(run([$hdiff, '--no-symbols', '-i', $$_[0], '--max-growth', 0, @logs])->{status}, $$_[1], "logs, -i $$_[0]") for ['^plug', 0], ['Plug::open', 2], ['^app', 1];
}

sub library_functions {
	my @library = ('std::thread::_Start<void (*)(int),int>', 'std::_Facet_Register', 'std::use_facet<std::ctype<char> >', 'std::_Deque_val<std::_Deque_simple_types<int> >::_Growmap');
	is_deeply(named(comparison_of(map { ["app!$library[$_]+1", "app!user_$_+3"] } 0 .. $#library)), [map { "app!user_$_" } reverse 0 .. $#library], 'are not the function that is named');
}
