# Two dumps of a synthetic program with random calls, and their sums, for tests of reports.
package Calls;
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use Exporter qw(import);
use List::Util qw(sum0);
use Hunt;
use Series;

our @EXPORT = qw(call_dumps call_rows call_module call_place call_times @call_start);

# Frames of each stack: RtlAllocateHeap, malloc, functions (innermost first), main, and then these
# outermost frames.
our @call_start = ('mainCRTStartup', 'BaseThreadInitThunk', 'RtlUserThreadStart');
my %base = (app => 0x140000000, ntdll => 0x170000000, kernel32 => 0x180000000);
my %module = (RtlAllocateHeap => 'ntdll', RtlUserThreadStart => 'ntdll', BaseThreadInitThunk => 'kernel32');
my @times = (1763632800000, 1763632800000 + 5_400_000);
my (@all, %place, @stacks);

sub call_module { return $module{ $_[0] } // 'app' }
sub call_times { return @times }

# Returns a function's place, for example "code.cpp:7".
sub call_place { my ($name) = @_; return 'code.cpp:' . (1 + (grep { $all[$_] eq $name } 0 .. $#all)[0]) }

# Writes the dumps into a folder; returns their paths. The dumps have `count` stacks of functions
# with these names.
sub call_dumps {
	my ($dir, $count, @names) = @_;
	my %seen;
	srand 7;
	@all = ('RtlAllocateHeap', 'malloc', 'main', @call_start, @names);
	%place = map { $all[$_] => $base{ call_module($all[$_]) } + 0x1000 + 0x10 * $_ } 0 .. $#all;
	@stacks = ();
	while (@stacks < $count) {
		my @calls = ('main', map { $names[rand @names] } 1 .. 1 + rand 6);
		next if $seen{"@calls"}++;
		my ($old, $new) = map { int rand 5_000 } 1 .. 2;
		$old = 0 if @stacks % 10 == 3;
		$new = 0 if @stacks % 10 == 4;
		push @stacks, [[reverse @calls], $old, $old == $new ? $new + 1 : $new, 8 * (1 + int 2**rand 8)];
	}
	return map { spew("$dir/" . ('a', 'b')[$_] . '.txt', dump_text($_)) } 0, 1;
}

# Returns the rows, largest growth first: [{calls, old: [bytes, blocks], new: [bytes, blocks],
# bytes, blocks}]. The last two are the growth.
sub call_rows {
	return sort { $b->{bytes} <=> $a->{bytes} } map {
		my ($calls, $old, $new, $each) = @$_;
		{ calls => $calls, old => [$old * $each, $old], new => [$new * $each, $new],
			bytes => ($new - $old) * $each, blocks => $new - $old }
	} @stacks;
}

sub dump_text {
	my ($when) = @_;
	my ($text) = series_dump($times[$when], {}) =~ /\A(.*?)^\/\/ Loaded modules/ms;
	$text =~ s/\r//g;
	$text .= "// Loaded modules:\n//     Base Size Module\n";
	for my $name (sort keys %base) {
		$text .= sprintf "//    %16X %8X C:\\made\\%s.%s\n", $base{$name}, 0x100000, $name, $name eq 'app' ? 'exe' : 'dll';
		$text .= sprintf "// hsnap: module base=%X timestamp=5 checksum=0 pdb=%s.pdb guid=%s age=3\n", $base{$name}, $name,
		    uc unpack 'H32', pack 'A16', $name;
	}
	$text .= "// Process modules enumerated.\n";
	$text .= sprintf "// hsnap: name addr=%X function=\"%s\" offset=5 file=code.cpp line=%d\n", $place{$_},
	    s/([\x00-\x1f\x7f-\xff"\\])/sprintf '\\x%02X', ord $1/ger, call_place($_) =~ /(\d+)$/ for @all;
	$text .= "*- - Start of data for heap @ 1E0000 - -\n";
	for my $number (0 .. $#stacks) {
		my ($calls, $bytes, $count) = (@{ $stacks[$number] }[0, 3], $stacks[$number][1 + $when]);
		for my $block (1 .. $count) {
			$text .= sprintf "%X bytes + 8 at %X by BackTrace%X\n", $bytes, 0x200000 + 0x1000000 * $number + 0x100 * $block, $number + 1;
			$text .= join('', map { sprintf "\t%X\n", $place{$_} } 'RtlAllocateHeap', 'malloc', @$calls, @call_start) . "\n" if $block == 1;
		}
	}
	my ($bytes, $blocks) = map { my $index = $_; sum0 map { $_->[ 1 + $when ] * ($index ? 1 : $_->[3]) } @stacks } 0, 1;
	return $text . "*- - End of data for heap @ 1E0000 - -\n"
	    . sprintf "// hsnap: end blocks=%d requested=%d overhead=%d\n", $blocks, $bytes, 8 * $blocks;
}

1;
