#!/usr/bin/perl
# What a stranger's dump can do to the one who reads it: nothing to his terminal, his memory, his other dumps
# or other machines.
use strict;
use warnings;
no warnings 'portable';  # addresses have 64 bits
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;
use Symbols qw(program identity function_start);

my $dir = fresh_dir();
my $base = 0x140000000;

subtest 'bytes that a terminal obeys' => \&terminal;
done_testing;

# A dump of one block. $path: of the module its stack is in; @more: lines before the heap.
sub dump_with {
	my ($file, $path, @more) = @_;
	return spew("$dir/$file", join '', map { "$_\n" } '// hsnap: dump format=1', '// Loaded modules:',
		sprintf('// %X 24000 %s', $base, $path), '// Process modules enumerated.', @more,
		'*- - - - - - - - - - Start of data for heap @ 650000 - - - - - - - - - -',
		'10 bytes + 10 at 655FB0 by BackTrace1', sprintf("\t%X", $base + 0x1491), '',
		'*- - - - - - - - - - End of data for heap @ 650000 - - - - - - - - - -',
		'// hsnap: end blocks=1 requested=16 overhead=16');
}

# What is not UTF-8 of characters that are shown.
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
