# Shared code of the tests of hdiff -o html: two dumps of a process with harmful names, and a parser
# for the content of a page.
package Pages;
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use utf8;
use Encode qw(encode);
use Exporter qw(import);
use JSON::PP;
use MIME::Base64 qw(decode_base64);
use Hunt;

our @EXPORT = qw(page_dumps page_data page_numbers page_like bare);

# Names as bytes, as in dumps.
my @functions = map { encode('UTF-8', $_) } (
	'parse', 'load', 'malloc', 'operator new', 'std::vector<int>::push_back', 'main', 'step', 'draw',
	'</script><img src=x onerror=alert(1)>', '</noscript><script>alert(2)</script>', '<!--', '-->]]>', q{"quotes' & `ticks`}, '&lt;b&gt;&#60;',
	"line\x{2028}and\x{2029}paragraph", "\x{202e}desrever", 'שלום', '水の関数', '#z=x&q=y', 'a;b%00%3C', '__proto__', 'constructor', '{{DATA}}', '$&', ' blanks  ',
	'x' x 5000, "nul\x01\x7f\e[1m",
), "no \xff UTF-8";
my @modules = ('app', '<b>net<b>', "q'\"\x{e2}\x{80}\x{ae}m", 'plain');

sub quoted { return '"' . $_[0] =~ s/(["\\])/\\$1/gr =~ s/([\x00-\x1f\x7f-\xff])/sprintf '\\x%02X', ord $1/ger . '"' }

# Writes the dumps. Their stacks grew, shrank, appeared, vanished, changed only in number of blocks,
# or stayed the same.
sub page_dumps {
	my ($dir, %how) = @_;
	my $count = $how{stacks} // 120;
	my @paths;
	srand 17;
	my @stacks = map {
		[0, $_ % @functions, map({ int rand @functions } 1 .. 1 + int rand 6), 5, $_ % 3 ? () : ('bare')]
	} 1 .. $count;
	for my $when (0, 1) {
		my ($bytes, $blocks, @entries) = (0, 0);
		for my $i (0 .. $#stacks) {
			my @sum = (1 + int rand 4, int exp rand 12);
			@sum = (1 + $when, 64) if $i % 10 == 1;
			@sum = (2, 100) if $i % 10 == 2;
			next if ($i % 10 == 3 && !$when) || ($i % 10 == 4 && $when);
			my $part = $i % 10 == 1 ? 64 / $sum[0] : $sum[1];
			for (1 .. $sum[0]) {
				push @entries, sprintf("%X bytes + 8 at %X by BackTrace%X", $part, 0x1E0000 + 0x10 * ++$blocks, 0x100 + $i),
				    map({ sprintf "\t%X", $_ eq 'bare' ? 0x140003000 + 0x10 * $i : place($_) } @{ $stacks[$i] }), '';
				$bytes += $part;
			}
		}
		my @lines = ('// hsnap: dump format=1 tool=test', '// hsnap: process image=' . quoted('C:\\<i>app</i>\'".exe'), '// Loaded modules: ', '//     Base Size Module',
			map({ sprintf '//    %16X %8X C:\\made\\%s.dll', 0x140000000 + 0x100000 * $_, 0x80000, $modules[$_] } 0 .. $#modules), '//', '// Process modules enumerated.',
			map({ sprintf '// hsnap: name addr=%X function=%s offset=2F file=%s line=%d', place($_), quoted($functions[$_]),
				    quoted("src/$functions[$_].c"), 7 + $_ } 0 .. $#functions),
			"// hsnap: heap addr=1E0000 kind=wine stackless-requested=@{[300 + $when]} stackless-blocks=3 stackless-overhead=24",
			'*- - - - - Start of data for heap @ 1E0000 - - - - -', '*- - - - - Heap 1E0000 Hogs - - - - -', '', @entries, '*- - - - - End of data for heap @ 1E0000 - - - - -',
			sprintf('// hsnap: end blocks=%d requested=%d overhead=%d', $blocks + 3, $bytes + 300 + $when, 8 * ($blocks + 3)));
		push @paths, spew("$dir/" . ("old{{DATA}}'&amp;#z=.txt", "new%00&lt;.txt")[$when], join '', map { "$_\n" } @lines);
	}
	return @paths;
}

sub place { return 0x140000000 + 0x100000 * ($_[0] % 2 ? $_[0] % @modules : 0) + 0x1000 + 0x100 * $_[0] }

# Returns the report in a page, in which frames replace their numbers.
sub page_data {
	my ($page) = @_;
	my ($text) = $page =~ m{<script type="application/json" id="data">(.*?)</script>}s or return;
	my $data = JSON::PP->new->utf8->decode($text);
	my $frames = delete $data->{frames};
	delete @$_{qw(layer start short)} for @$frames;
	named($data, $frames);
	restore_sums($_) for grep { $_->{table} } @{ $data->{series} // [] };
	return $data;
}

# Returns the numbers of a table in a page.
sub page_numbers {
	my ($table) = @_;
	my (@numbers, $shift);
	my $value = 0;
	for my $byte (unpack 'C*', decode_base64($table)) {
		$value += ($byte & 0x7f) << ($shift // 0);
		$shift = ($shift // 0) + 7;
		next if $byte > 0x7f;
		push @numbers, $value;
		($value, $shift) = (0, 0);
	}
	return @numbers;
}

# Puts the sums of a series' rows back in their places. If rows were merged, their sum remains as
# other: [BYTES, ...].
sub restore_sums {
	my ($series) = @_;
	my @numbers = page_numbers(delete $series->{table});
	my $read = sub {
		my ($value, @values) = 0;
		while (@values < @{ $series->{snapshots} }) {
			my $number = shift @numbers;
			$value += $number % 2 ? ($number + 1) / 2 : -$number / 2;
			push @values, ($value) x (1 + ($number ? 0 : shift @numbers));
		}
		return \@values;
	};
	my $others = delete $series->{other_rows};
	my $other = {};
	for my $row (@{ $series->{rows} }, $other) {
		my $size = shift(@numbers) - 1;
		$row->{blocks} = $read->();
		$row->{bytes} = $size < 0 ? $read->() : [map { $size * $_ } @{ $row->{blocks} }];
	}
	@$series{qw(other other_rows)} = ($other->{bytes}, $others) if $others;
	die "a table has more numbers\n" if @numbers;
	return;
}

sub named {
	my ($data, $frames) = @_;
	if (ref $data eq 'ARRAY') {
		named($_, $frames) for @$data;
	} elsif (ref $data eq 'HASH') {
		for my $stack (exists $data->{frames} ? $data->{frames} : (), @{ $data->{candidates} // [] }) {
			$_ = { %{ $frames->[$_] } } for @$stack;
		}
		named($_, $frames) for values %$data;
	}
	return;
}

# Reduces a JSON report to what a page contains. Leaves out offsets within functions and addresses
# of named frames.
sub page_like {
	my ($data) = @_;
	if (ref $data eq 'ARRAY') {
		page_like($_) for @$data;
	} elsif (ref $data eq 'HASH') {
		bare($data) if exists $data->{module} || exists $data->{function} || exists $data->{address};
		page_like($_) for values %$data;
	}
	return $data;
}

sub bare {
	my ($frame) = @_;
	delete $frame->{offset} if exists $frame->{function};
	delete $frame->{address} if exists $frame->{function} || exists $frame->{module};
	return $frame;
}

1;
