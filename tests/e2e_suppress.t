#!/usr/bin/perl
# Suppressions with a limit, of frames in no module, and out of lists of LeakSanitizer and Valgrind.
# The growth is that of profiles that this test writes.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP qw(decode_json);
use Test::More;
use Hunt;
use Profile;

my $dir = fresh_dir();
my $hdiff = "$root/build/linux/hdiff";
my $main = ['app', 0x401000, ['main', 'C:\\src\\main.c', 9]];
# Stacks by name, with the growth of bytes and blocks.
my %stacks = (
	register => [4096, 40, ['plug.dll', 0x401100, ['register', 'C:\\src\\plug.c', 3]], $main],
	register2 => [100, 10, ['plug.dll', 0x401200, ['register', 'C:\\src\\plug.c', 5]], ['plug.dll', 0x401300, ['init', 'C:\\src\\plug.c', 7]], $main],
	less => [-500, -5, ['plug.dll', 0x401400, ['register', 'C:\\src\\plug.c', 9]], $main],
	made => [1000, 7, [undef, 0x7ffe0000], ['vm.dll', 0x401500, ['call', 'vm.c', 1]], $main],
	cache => [200, 2, ['libcache.so.6', 0x401600, ['malloc', '', 0]], ['libcache.so.6', 0x401700, ['grow', 'cache.c', 5]], ['app', 0x401800, ['_ZN5Cache4fillEv', 'cache.c', 8]], $main],
);
my @files = map {
	my $is_new = $_;
	spew("$dir/$is_new.pb", profile(types => [['inuse_objects', 'count'], ['inuse_space', 'bytes']], samples => [map {
		my ($bytes, $blocks, @locations) = @{ $stacks{$_} };
		my $has = $bytes < 0 ? !$is_new : $is_new;
		[[1 + ($has && abs $blocks), 8 + ($has && abs $bytes)], \@locations];
	} sort keys %stacks]));
} 0, 1;

# Returns the growth that is left, and the messages, without places.
sub left {
	my ($list, @ask) = @_;
	my $file = spew("$dir/known.supp", $list);
	my $result = run([$hdiff, '-o', 'json', '--suppress', $file, @ask, @files]);
	my @bytes = $result->{out} ? map { $_->{growth}{bytes} } @{ decode_json($result->{out})->{rows} } : ();
	return ($result->{status}, "@bytes", map { s/^hdiff: \Q$file\E:(\d+): /$1: /r } split /\n/, $result->{err});
}

is_deeply([left("leak:nothing\n")], [0, '4096 1000 200 100 -500', '1: leak:nothing suppressed nothing: no changed stack matches it'], 'the growth');
is_deeply([left("leak:plug!register max=50\n")], [0, '1000 200', '1: leak:plug!register max=50 suppressed stacks: 3, bytes: 3696, blocks: 45'], 'as many blocks as the limit');
is_deeply([left("leak:plug!register max=49\n")], [0, '4096 1000 200 100 -500', '1: leak:plug!register max=49 is over its limit: its stacks grew by 4196 bytes, 50 blocks, and are not suppressed'], 'one block more');
is_deeply([left("leak:plug!register max=4.09765625K\nleak:^grow\$ max=1K\n")], [0, '1000', '1: leak:plug!register max=4.09765625K suppressed stacks: 3, bytes: 3696, blocks: 45', '2: leak:^grow$ max=1K suppressed stacks: 1, bytes: 200, blocks: 2'], 'as many bytes as the limit');
is_deeply([(left("leak:plug!register max=4K\n"))[1]], ['4096 1000 200 100 -500'], 'fewer bytes');
is_deeply([(left("leak:plug!register max=0\nleak:register\n"))[1]], ['4096 1000 200 100 -500'], 'the first rule counts');
is((left("leak:register max=50\n", '--max-growth', 1200))[0], 0, 'a limit of growth, without the suppressed stacks');
is((left("leak:register max=49\n", '--max-growth', 1200))[0], 1, 'a limit of growth, with them');
for my $bad ('x', '-1', '4K5') {
	is_deeply([left("leak:register max=$bad\n")], [2, '', "1: wrong usage (a limit is a number of blocks, or a size such as 4K); see --help"], "max=$bad is no limit");
}
is_deeply([(left("$_\n"))[1]], ['4096 200 100 -500'], $_)
    for 'leak:(no module)', 'at:0x7FFE0000', 'leak:at:0x7FFE0000$', 'leak:(no module) < vm!call', 'leak:at:0x7FFE0000 < vm!call max=7';
is_deeply([(left("$_\n"))[1]], ['4096 1000 200 100 -500'], "$_: another stack") for 'at:0x7FFE1', 'leak:(no module) < plug!init';

# LeakSanitizer's list, in the form of its manual.
is_deeply([(left("# This is a known leak in the plug-in.\nleak:FooBar\nleak:/plug.c\n\nleak:libcache\n"))[1]], ['1000'], "LeakSanitizer's list");
# Valgrind's list, in the form of its manual.
my $valgrind = <<'LIST';
# from --gen-suppressions=all
{
   <insert_a_suppression_name_here>
   Memcheck:Leak
   match-leak-kinds: definite
   fun:malloc
   obj:/usr/lib/libcache.so*
   fun:_ZN5Cache*
   ...
   fun:main
}
{
   uninitialised value
   Memcheck:Cond
   fun:register
}
{
   source
   Memcheck:Leak
   fun:r?gister
   src:plug.c:7
}
LIST
is_deeply([left($valgrind)], [0, '4096 1000 -500', '2: { <insert_a_suppression_name_here> } suppressed stacks: 1, bytes: 200, blocks: 2', '17: { source } suppressed stacks: 1, bytes: 100, blocks: 10'], "Valgrind's list");
is_deeply([(left($valgrind =~ s/   fun:main\n//r =~ s/fun:malloc/fun:mallo/r))[1]], ['4096 1000 200 -500'], "Valgrind's list: whole names");
is_deeply([left("{\n  all\n  Memcheck:Leak\n  ...\n}\n")], [2, '', '1: wrong usage (this would suppress everything); see --help'], 'a block that matches everything');
is_deeply([left("{\n  none\n  Memcheck:Leak\n}\n")], [2, '', '1: wrong usage (this would suppress everything); see --help'], 'a block without frames');
is_deeply([left("\n{\n  open\n  Memcheck:Leak\n  fun:main\n")], [2, '', '2: wrong usage (the block that begins here does not end); see --help'], 'a block without an end');
done_testing;
