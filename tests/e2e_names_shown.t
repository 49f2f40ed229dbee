#!/usr/bin/perl
# Options for names, and how names are printed: files without a folder prefix, raw names, single
# addresses, a dump through a pipe, names that a dump already has, and names for which no file is
# available.
use strict;
use warnings;
no warnings 'portable';
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;
use Symbols;

my $dir = fresh_dir();
my $c = place('dwarf4', 'names_c.exe');
my $cpp = place('dwarf4', 'names_cpp.exe');
my $pdb = place('pdb_msvc', 'names_cpp.exe');
my $c_dump = dump_of("$dir/c.txt", $c);
my $cpp_dump = dump_of("$dir/cpp.txt", $cpp);
my $pdb_dump = dump_of("$dir/pdb.txt", $pdb);

# ---------------------------------------------------------------- files

for my $tool (qw(hsym hdiff)) {
	my $ask = $tool eq 'hsym' ? \&names_by_hsym : \&names_by_hdiff;
	for my $modules ([$c, $c_dump], [$pdb, $pdb_dump]) {
		for my $prefix ("$root/", $root, "$root/tests/symbols") {
			my ($names) = $ask->('linux', @$modules, ['--strip-path', '/no/such', '--strip-path', $prefix]);
			my %files = map { map { ($_->{file} // 'none') => 1 } @$_ } values %$names;
			# The name of a header may contain a folder ".".
			my $rest = $prefix =~ /symbols$/ ? '' : qr{(?:\./)?tests/symbols/};
			my @long = grep { !m{^${rest}names_\w+\.(?:c|cpp|h)$} && !m{/\./.*\.h$} } keys %files;
			is_deeply(\@long, [], "$tool --strip-path: $modules->[0][0]{kind}, what is left is no path of this machine");
		}
		my ($names) = $ask->('linux', @$modules, ['--strip-path', "$root/tests/sym"]);
		check_names($names, $modules->[0], 'lines', "$tool --strip-path: half a folder's name is none");
		like((map { $_->{file} // '' } map { @$_ } values %$names)[0], qr/^\Q$root\E/, "$tool --strip-path: it stays");
	}
}

# ---------------------------------------------------------------- raw names

# Microsoft's decoration: Y free function, A __cdecl, H int, N double, PEBD const char *.
my %raw = ('turn-int' => '?turn@app@@YAHH@Z', 'turn-double' => '?turn@app@@YAHN@Z', 'turn-text' => '?turn@app@@YAHPEBD@Z');
for my $tool (qw(hsym hdiff)) {
	my $ask = $tool eq 'hsym' ? \&names_by_hsym : \&names_by_hdiff;
	my %symbol = symbols_at($cpp->[0]{built});
	my ($names) = $ask->('linux', $cpp, $cpp_dump, ['--no-demangle']);
	my $notes = $cpp->[0]{notes};
	my %is = map { $_ => $names->{$_} ? $names->{$_}[-1]{function} : 'none' } keys %$notes;
	my %want = map { $_ => $symbol{ function_start($cpp->[0]{built}, $notes->{$_} - 1) } } keys %$notes;
	is_deeply(\%is, \%want, "$tool --no-demangle: names of gcc as they are in the image's table");
	($names) = $ask->('linux', $pdb, $pdb_dump, ['--no-demangle']);
	is_deeply({ map { $_ => $names->{$_} ? $names->{$_}[-1]{function} : 'none' } keys %raw }, \%raw,
		"$tool --no-demangle: Microsoft's names by their rules");
}

# ---------------------------------------------------------------- single addresses

for my $side (tool_names()) {
	my $level = $side eq 'linux' ? 'lines' : 'dbghelp';
	for my $modules ($c, $pdb) {
		my ($module) = grep { $_->{name} =~ /\.exe$/ } @$modules;
		my @markers = sort keys %{ $module->{notes} };
		my @rvas = map { $module->{notes}{$_} } @markers;
		my $base = hex identity($module->{built})->{base};
		my %ways = (
			'+offset' => [map { sprintf '+%X', $_ } @rvas],
			'offset' => [map { sprintf '%x', $_ } @rvas],
			'address with 0x' => [map { sprintf '0x%X', $base + $_ } @rvas],
		);
		for my $way (sort keys %ways) {
			my $result = run(tool('hsym', $side, '-e', $module->{built}, @{ $ways{$way} }));
			check_singles($result, $module, \@markers, $level, "$side hsym -e, $module->{kind}, $way");
		}
		my $in = spew("$dir/addrs", join '', map { "$_\n" } @{ $ways{'+offset'} });
		my $result = run(tool('hsym', $side, '-e', $module->{built}), stdin => $in);
		check_singles($result, $module, \@markers, $level, "$side hsym -e, $module->{kind}, from standard input");
	}
}
{
	my $module = $c->[0];
	my $start = function_start($module->{built}, $module->{notes}{plain} - 1);
	my $result = run(tool('hsym', 'linux', '-e', $module->{built}, '--exact', sprintf '+%X', $start));
	like($result->{out}, qr/names_c!plain_call\b/, 'hsym -e --exact: the first byte of a function is in it');
	$result = run(tool('hsym', 'linux', '-e', $module->{built}, '+F0000000'));
	is($result->{status}, 0, 'hsym -e: an offset behind the end is no trouble');
	unlike($result->{out}, qr/!/, 'hsym -e: and has no name');
	check_error(run(tool('hsym', 'linux', '-e', "$dir/none.exe", '1000')), 'hsym', 'hsym -e, no such file', 'none.exe');
	check_error(run(tool('hsym', 'linux', '-e', $module->{built}, 'xyz')), 'hsym', 'hsym -e, no address', 'xyz');
}

# ---------------------------------------------------------------- through a pipe, and again

for my $side (tool_names()) {
	my $named = run(tool('hsym', $side, $cpp_dump))->{out};
	my $piped = run(tool('hsym', $side), stdin => $cpp_dump);
	check_ok($piped, "$side hsym, filter");
	ok($piped->{out} eq $named, "$side hsym: from standard input the same as from a file");
	spew("$dir/$side.txt", $named);
	my $again = run(tool('hsym', $side, "$dir/$side.txt"));
	ok($again->{out} eq $named, "$side hsym: names that are there stay, byte by byte");
	my ($before, $after) = map { s{^// hsnap: name .*\r?\n}{}mgr } slurp($cpp_dump), $named;
	ok($before eq $after, "$side hsym: nothing else is changed");
}

# ---------------------------------------------------------------- only names available

for my $kind (qw(dwarf5 pdb_gnu)) {
	my $modules = place($kind, 'names_cpp.exe');
	my $named = spew("$dir/away", run(tool('hsym', 'linux', dump_of("$dir/here.txt", $modules)))->{out}
		    =~ s/\Q@{[win($modules->[0]{file})]}\E/C:\\away\\names_cpp.exe/gr);
	for my $side (tool_names()) {
		my ($names, $result) = names_by_hdiff($side, $modules, $named);
		check_names($names, $modules, 'lines', "$side hdiff, $kind: names of the dump, no file of the program's");
		unlike($result->{err}, qr/have no name/, "$side hdiff, $kind: nothing is missing");
	}
}

# ---------------------------------------------------------------- messages about missing files

{
	my $modules = place('stripped', 'names_c.exe');
	my $dump = dump_of("$dir/stripped.txt", $modules);
	my ($exe) = map { scalar keys %{ $_->{notes} } } grep { $_->{name} =~ /exe$/ } @$modules;
	my $all = $exe + 3;
	for my $side (tool_names()) {
		my $result = run(tool('hdiff', $side, $dump));
		like($result->{err}, qr/^hdiff: @{[$exe + 1]} of $all frames have no name: $exe in names_c\b.*, 1 in names_dll\b.*hsym --explain/,
			"$side hdiff, stripped: how many, where, and what to ask");
		$result = run(tool('hsym', $side, '--explain', $dump));
		my ($first) = $result->{out} =~ /^(.*names_c\b.*)$/m;
		my ($second) = $result->{out} =~ /^(.*names_dll\b.*)$/m;
		like($first // '', qr/\b$exe\b.*\b0\b/, "$side hsym --explain: none of $exe named in the program");
		like($second // '', qr/\b3\b.*\b2\b/, "$side hsym --explain: two of three in the DLL, which it exports");
		like($result->{out}, qr/stripped|no debug information/, "$side hsym --explain: why");
		like($result->{out}, qr/\bexports\b/, "$side hsym --explain: by whom");
		is($result->{status}, 0, "$side hsym --explain: status 0");
	}
}
done_testing;

# Checks lines of frames in the order of the question. An address's inlined frames come first.
sub check_singles {
	my ($result, $module, $markers, $level, $what) = @_;
	my @frames = map { Hunt::frame_of($_ =~ s/^\s+//r) // { function => "UNREAD $_" } } split /\r?\n/, $result->{out};
	my %names;
	for my $marker (@$markers) {
		while (@frames) {
			push @{ $names{$marker} }, my $frame = shift @frames;
			last if !$frame->{inlined};
		}
	}
	is($result->{status}, 0, "$what: status 0") or diag($result->{err});
	is(scalar @frames, 0, "$what: no more lines than frames");
	return check_names(\%names, [$module], $level, "$what: names are the sources'") || diag($result->{out});
}

# Returns the image's function symbols by offset, as read by another tool.
sub symbols_at {
	my ($file) = @_;
	my $base = hex identity($file)->{base};
	my %at;
	for (split /\n/, run(["llvm-nm$llvm", $file])->{out}) {
		$at{ hex($1) - $base } = $2 if /^([0-9a-f]+) [Tt] (\S+)$/ && $2 !~ /^\./;
	}
	return %at;
}
