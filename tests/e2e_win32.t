#!/usr/bin/perl
# The 32-bit hsnap and tracer, for a Wine that runs only 64-bit programs. This test does not run
# them; e2e_win32_live.t and tests/live do.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my %side = (32 => "$root/build/win32", 64 => "$root/build/win64");
plan skip_all => "'make win32' has not been run" if !-e "$side{32}/hsnap.exe";

for my $bits (32, 64) {
	my ($hsnap, $tracer) = ("$side{$bits}/hsnap.exe", "$side{$bits}/hsnap-tracer$bits.dll");
	for my $file ($hsnap, $tracer) {
		my $image = slurp($file);
		my $at = unpack 'V', substr $image, 60, 4;
		is(substr($image, $at, 4), "PE\0\0", "$file: an image");
		is(unpack('v', substr $image, $at + 4, 2), $bits == 32 ? 0x14c : 0x8664, 'for this machine');
		is(unpack('v', substr $image, $at + 24, 2), $bits == 32 ? 0x10b : 0x20b, 'of this form');
	}
	my $tables = `x86_64-w64-mingw32-objdump -p '$tracer'`;
	is_deeply([$tables =~ /^\s+\[\s*\d+\](?: \+base\[\s*\d+\]\s+[0-9a-f]+)? ([A-Za-z_]\S*)$/mg], [qw(hsnap_tracer tracer_mark)], "tracer, $bits bits: two exports, undecorated");
	is_deeply([sort map { lc } $tables =~ /DLL Name: (\S+)/g], [qw(kernel32.dll ntdll.dll)], 'nothing but kernel32 and ntdll is imported');
	like($tables, qr/\breloc\s+\d+ offset/, 'it can lie anywhere');
}
# In each build shared.h asserts the layout of the shared memory at compile time.
like(slurp("$root/snapshot/tracer/shared.h"), qr/^_Static_assert\(sizeof\(struct tracer_area\)/m, 'the layout is asserted');
done_testing;
