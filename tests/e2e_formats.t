#!/usr/bin/perl
# hdiff's output for programs: JSON, CSV and folded stacks, parsed by independent parsers. This test
# makes the dumps, with extreme names, and adds up the expected results while making them.
use strict;
use warnings;
no warnings 'portable';    # numbers of 64 bits
use File::Glob ':bsd_glob';    # paths may have blanks
use utf8;
use Encode qw(encode);
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP;
use Test::More;
use Hunt;
eval { require Text::CSV } or needs_linux('Text::CSV');

binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output todo_output);

my ($app, $lib, $unknown) = (0x140000000, 0x7FF812340000, "\x{fffd}");
my $module = qq(=l,\ti"b;); # name of the module lib
# The bytes of each function's name, and the text that results: control characters become '?' when a
# name is read. The first name does not change, and the last two become equal.
my @names = (
	['still', 'still'],
	['plain', 'plain'],
	['std::map<int, std::string>::operator[]', 'std::map<int, std::string>::operator[]'],
	['quo"te', 'quo"te'],
	['"', '"'],
	["new\nline", 'new?line'],
	["car\rriage\r\n", 'car?riage??'],
	["tab\tx", 'tab?x'],
	['semi;colon;', 'semi;colon;'],
	["=cmd|' /C calc'!A0", "=cmd|' /C calc'!A0"],
	['=1,2', '=1,2'],
	['+1', '+1'],
	['-1', '-1'],
	['@SUM(1)', '@SUM(1)'],
	["'mark", "'mark"],
	['back\\slash\\', 'back\\slash\\'],
	["J\xfcrgen", "J${unknown}rgen"],
	[encode('UTF-8', 'Jürgen 水'), 'Jürgen 水'],
	["cut \xe6\xb0", "cut $unknown$unknown"],
	["\xed\xa0\x80", "$unknown$unknown?"], # 80 is a command to terminals of 8 bits
	["\e[1m\x7f\x01", '?[1m??'],
	["\xc2\x9b1m", '??1m'],
	["\xe2\x80\xa8x", "\x{2028}x"],
	['a <- b', 'a <- b'],
	['ends in 12 34', 'ends in 12 34'],
	[' 7', ' 7'],
	['x' x 3000, 'x' x 3000],
	['same', 'same'],
	['same', 'same'],
);
my $image = qq(C:\\"a"\r\n\e\x7f.exe);
my $none = @names; # stack number that means "no stack"
my (%all, %sums); # %all by role: [BYTES, BLOCKS, OVERHEAD]; %sums also by stack number

my $dir = fresh_dir();
srand 20261120;
write_dump('old', 0);
write_dump('new', 0x700000);
my @rows = grep { $sums{old}[$_][0] != $sums{new}[$_][0] || $sums{old}[$_][1] != $sums{new}[$_][1] } 0 .. $none;
cmp_ok(scalar @rows, '>', 20, 'most stacks changed');
ok(!grep({ $_ == 0 } @rows), 'one did not');
ok(scalar(grep { $sums{new}[$_][0] < $sums{old}[$_][0] } @rows), 'some shrank');

my $text = report(report_in('umdh'));
subtest 'umdh' => sub { check_report($text, 'umdh'); is(scalar @{ $text->{rows} }, scalar @rows, 'rows') };
subtest 'json' => \&check_json;
subtest 'csv' => \&check_csv;
subtest 'folded' => \&check_folded;
subtest 'every form' => \&check_every;
subtest 'man pages' => \&check_pages;
subtest 'grouped' => \&check_grouped;
subtest 'turned round' => \&check_inverted;
done_testing;

# ---------------------------------------------------------------- the truth

sub quoted {
	my ($bytes) = @_;
	$bytes =~ s/(["\\])/\\$1/g;
	$bytes =~ s/([\x00-\x1f\x7f-\xff])/sprintf '\\x%02X', ord $1/ge;
	return qq("$bytes");
}

sub count {
	my ($role, $number, @more) = @_;
	for my $sum ($sums{$role}[$number] //= [0, 0, 0], $all{$role} //= [0, 0, 0]) {
		$sum->[$_] += $more[$_] for 0 .. 2;
	}
	return;
}

# Returns the frames of stack I: app+(1000 + 10 * I), lib, app+800. Stacks with equal names share a
# place in lib.
sub frames {
	my ($i) = @_;
	return ($app + 0x1000 + 0x10 * $i, $lib + ($names[$i][0] eq 'same' ? 0x500 : 0x600 + $i), $app + 0x800);
}

sub write_dump {
	my ($role, $slide) = @_;
	my @lines = ('// hsnap: dump format=1 tool=test', '// hsnap: process image=' . quoted($image), '// Loaded modules: ', '//     Base Size Module',
		sprintf('//    %16X %8X C:\\made up\\app.exe', $app + $slide, 0x10000),
		sprintf('//    %16X %8X C:\\made up\\%s.dll', $lib + $slide, 0x20000, $module),
		'//', '// Process modules enumerated.');
	for my $i (0 .. $#names) {
		push @lines, sprintf '// hsnap: name addr=%X function=%s offset=2F file=%s line=7',
		    $slide + (frames($i))[0], quoted($names[$i][0]), quoted($names[$i][0]);
		count($role, $i, 0, 0, 0);
	}
	my @stackless = $role eq 'old' ? (300, 3, 24) : (500, 4, 32);
	count($role, $none, @stackless);
	push @lines, sprintf '// hsnap: heap addr=1E0000 kind=wine stackless-requested=%d stackless-blocks=%d'
	    . ' stackless-overhead=%d', @stackless;
	for my $heap (0x1E0000, 0x2E0000) {
		push @lines, sprintf '*- - - - - Start of data for heap @ %X - - - - -', $heap;
		push @lines, sprintf '*- - - - - Heap %X Hogs - - - - -', $heap;
		for my $i (0 .. $#names) {
			my $blocks = $i ? int rand($role eq 'old' ? 3 : 5) : 2;
			for (1 .. $blocks) {
				my $bytes = $i ? 1 + int rand 5000 : 64;
				count($role, $i, $bytes, 1, 8);
				push @lines, '', sprintf('%X bytes + 8 at %X by BackTrace%X', $bytes,
					$heap + 0x10 * @lines, 0x1E0 + $i);
				push @lines, (map { sprintf "\t%X", $slide + $_ } frames($i)), '';
			}
		}
		push @lines, sprintf '*- - - - - End of data for heap @ %X - - - - -', $heap;
	}
	push @lines, sprintf '// hsnap: end blocks=%d requested=%d overhead=%d', @{ $all{$role} }[1, 0, 2];
	spew("$dir/$role.txt", join '', map { "$_\n" } @lines);
	return;
}

# Returns the [BYTES, BLOCKS, OVERHEAD] of growth, of NEW and of OLD.
sub sums_of { return [growth_of($sums{new}[$_[0]], $sums{old}[$_[0]]), $sums{new}[$_[0]], $sums{old}[$_[0]]] }

sub growth_of {
	my ($new, $old) = @_;
	return [map { $new->[$_] - $old->[$_] } 0 .. 2];
}

# ---------------------------------------------------------------- formats

sub report_in {
	my ($format, @more) = @_;
	my $result = run(tool('hdiff', 'linux', '-o', $format, @more, "$dir/old.txt", "$dir/new.txt"));
	check_ok($result, "hdiff -o $format @more");
	return $result->{out};
}

sub sums_in {
	my ($json) = @_;
	return [map { [@{ $json->{$_} }{qw(bytes blocks overhead)}] } qw(growth new old)];
}

sub check_json {
	my $bytes = report_in('json');
	my $json = eval { JSON::PP->new->utf8->decode($bytes) };
	ok($json, 'is JSON in UTF-8') or return diag($@);
	is($json->{schema}, 'hdiff/1', 'of this schema');
	is($bytes =~ tr/\x00-\x09\x0b-\x1f\x7f//, 0, 'no control characters');
	is_deeply([map { "$_->{role} $_->{path}" } @{ $json->{inputs} }], ["old $dir/old.txt", "new $dir/new.txt"],
		'inputs');
	is_deeply([map { $_->{image} } @{ $json->{inputs} }], [$image, $image], 'their images, to the letter');
	is_deeply(sums_in($json->{totals}{all}), [growth_of(@all{qw(new old)}), @all{qw(new old)}], 'all blocks');
	is_deeply($json->{totals}{selected}, $json->{totals}{all}, 'all are selected');
	is_deeply($json->{totals}{$_}, { map { $_ => { bytes => 0, blocks => 0, overhead => 0 } } qw(old new growth) },
		"none are $_") for qw(suppressed left_out);
	is_deeply([@$json{qw(row_count shown_count)}], [scalar @rows, scalar @rows], 'number of rows');

	my %found = map { number_of($_) => $_ } @{ $json->{rows} };
	is_deeply([sort { $a <=> $b } keys %found], \@rows, 'one row for each stack');
	for my $i (grep { $found{$_} } @rows) {
		my $row = $found{$i};
		is_deeply(sums_in($row), sums_of($i), "sums of row $i");
		is($row->{kind}, $i == $none ? 'stackless' : 'stack', "kind of row $i");
		next if $i == $none;
		my ($first, @others) = @{ $row->{frames} };
		is_deeply($row->{ids}, [sprintf '%X', 0x1E0 + $i], "ids of row $i");
		is_deeply($first, { module => 'app', function => $names[$i][1], file => $names[$i][1], line => 7,
				offset => '2F', address => sprintf('%X', ($sums{new}[$i][1] ? 0x700000 : 0) + (frames($i))[0]) }, "name of row $i");
		is_deeply([map { "$_->{module}+$_->{offset}" } @others],
			[sprintf('%s+%X', $module, (frames($i))[1] - $lib), 'app+800'], "other frames of row $i");
	}

	my @lines = grep { /^\{"kind"/ } split /\n/, $bytes;
	is(scalar @lines, scalar @rows, 'one row a line');
	is(scalar(grep { !eval { JSON::PP->new->utf8->decode(s/(?:,|\]\})\z//r) } } @lines), 0,
		'each of which can be read alone');
}

# Returns the number of a JSON row's stack.
sub number_of {
	my ($row) = @_;
	return $none unless @{ $row->{frames} };
	return ((hex($row->{frames}[0]{address}) - $app) % 0x700000 - 0x1000) / 0x10;
}

# Removes the mark that precedes text that a spreadsheet would execute (man/hdiff-csv.5).
sub unmarked { return $_[0] =~ s/^'(?=[=+\-\@'\t\r\n])//r }

sub csv_in {
	my ($bytes) = @_;
	my $csv = Text::CSV->new({ binary => 1, strict => 1, eol => "\r\n" });
	my @records;
	open my $in, '<:encoding(UTF-8)', \$bytes or die "csv: $!\n";
	while (my $record = $csv->getline($in)) {
		push @records, $record;
	}
	ok($csv->eof, 'is CSV') or diag($csv->error_diag);
	my $names = shift @records;
	return map { my %of; @of{@$names} = @$_; \%of } @records;
}

sub check_csv {
	my @records = csv_in(report_in('csv'));
	is(scalar @records, scalar @rows, 'number of rows');
	my %ids = map { $_->{ids} => $_ } @records;
	for my $i (@rows) {
		my $row = $ids{ $i == $none ? 'BackTrace0' : sprintf 'BackTrace%X', 0x1E0 + $i };
		ok($row, "row $i") or next;
		is_deeply([map { my $when = $_; [map { $row->{"${when}_$_"} } qw(bytes count overhead)] } qw(growth new old)],
			sums_of($i), "sums of row $i");
		next if $i == $none;
		my $name = $names[$i][1];
		is(unmarked($row->{function}), $name, "function of row $i");
		is(unmarked($row->{file}), $name, "file of row $i");
		is($row->{stack}, sprintf('app!%s <- %s+%X <- app+800', $name, $module, (frames($i))[1] - $lib), "stack of row $i");
	}
	is(scalar(grep { /^[=+\-\@\t\r]/ && !/^-?\d+$/ } map { values %$_ } @records), 0, 'no field is a formula');
	is(scalar(grep { /^-/ } map { @$_{qw(module function file stack)} } @records), 0, 'nor looks like a number below 0');
}

# Parses lines as flamegraph.pl does: first the last number, then the number before it.
sub folded_in {
	my ($bytes) = @_;
	my (%stacks, @wrong);
	for (split /\n/, decode_utf8($bytes)) {
		my ($stack, $old, $new) = /^(.*)\s+?(\d+)\s+?(\d+)$/ or push(@wrong, $_), next;
		push @wrong, "twice: $_" if $stacks{$stack};
		$stacks{$stack} = [$old, $new];
	}
	is_deeply(\@wrong, [], 'every line is a stack and two numbers');
	return \%stacks;
}

sub decode_utf8 { return Encode::decode('UTF-8', $_[0], Encode::FB_CROAK | Encode::LEAVE_SRC) }

sub column {
	my ($stacks, $column) = @_;
	my $sum = 0;
	$sum += $_->[$column] for values %$stacks;
	return $sum;
}

sub check_columns {
	my ($stacks, $what) = @_;
	for my $column (0, 1) {
		my $wanted = 0;
		$wanted += $sums{ (qw(old new))[$column] }[$_][0] for @rows;
		is(column($stacks, $column), $wanted, "$what: " . (qw(OLD NEW))[$column] . ' adds up');
	}
	is(column($stacks, 1) - column($stacks, 0), $all{new}[0] - $all{old}[0], "$what: the growth of everything");
}

sub check_folded {
	my $bytes = report_in('folded');
	my $stacks = folded_in($bytes);
	my %wanted;
	for my $i (@rows) {
		my $name = $i == $none ? '' : $names[$i][1] =~ tr/;/:/r;
		my $stack = $i == $none ? '(no stack recorded)' :
		    sprintf 'app+800;=l,?i"b:+%X;app!%s', (frames($i))[1] - $lib, $name;
		$wanted{$stack}[0] += $sums{old}[$i][0];
		$wanted{$stack}[1] += $sums{new}[$i][0];
	}
	is_deeply($stacks, \%wanted, 'exactly the stacks, with their bytes');
	check_columns($stacks, 'folded');
	# Flame graphs are ordered by frames, and within equal frames by bytes.
	my @lines = map { s/ \d+ \d+\z//r =~ tr/;/\0/r } split /\n/, $bytes;
	is_deeply(\@lines, [sort @lines], 'sorted frame by frame');
}

sub check_every {
	for my $format (qw(text umdh json jsonl csv folded)) {
		my $once = report_in($format);
		ok($once eq report_in($format), "$format: the same each time");
		my $result = run(tool('hdiff', 'linux', '-o', $format, '-f', "$dir/out", "$dir/old.txt", "$dir/new.txt"));
		check_ok($result, "$format -f");
		ok($result->{out} eq '' && as_here(slurp("$dir/out")) eq $once, "$format -f: the same in a file");
	}
	my $result = run(tool('hdiff', 'linux', '-o', 'nonsense', "$dir/new.txt"));
	is("$result->{status} $result->{out}", '2 ', 'there are no others');
}

# Every key and every column is documented.
sub check_pages {
	my %json = map { $_ => 1 } report_in('json') =~ /"(\w+)":/g,
	    (map { slurp($_) } glob "$root/diff/report/*json*.c") =~ /(?:json|put)_\w+\([^"()]*"([a-z_]+)"/g;
	my ($columns) = report_in('csv') =~ /^(.*?)\r\n/;
	for (['hdiff-json', sort keys %json], ['hdiff-csv', split /,/, $columns]) {
		my ($page, @words) = @$_;
		my %told = map { $_ => 1 } map { split /[ ,]+/ } slurp("$root/man/$page.5") =~ /^\.(?:It )?Cm (.*)/mg;
		cmp_ok(scalar @words, '>', 15, "$page.5: something to explain");
		is_deeply([grep { !$told{$_} } @words], [], "$page.5 explains all of it");
	}
}

# ---------------------------------------------------------------- with other options

sub has_option {
	my ($option) = @_;
	state_help() =~ /(?:^|\s)\Q$option\E\b/ or plan(skip_all => "hdiff has no $option");
	return;
}

sub state_help { return run(tool('hdiff', 'linux', '--help'))->{out} }

sub check_grouped {
	has_option('--group');
	for my $group (qw(function file module heap)) {
		my @by = ('--group', $group);
		my $json = eval { JSON::PP->new->utf8->decode(report_in('json', @by)) };
		is($json && $json->{group}, $group, "json by $group") or next;
		is(scalar @{ $json->{groups} }, $json->{group_count}, "json by $group: all groups");
		ok(!exists $json->{rows}, "json by $group: no rows");
		my @records = csv_in(report_in('csv', @by));
		is_deeply([sort map { "$_->{growth_bytes} $_->{self_growth_bytes}" } @records],
			[sort map { "$_->{total}{growth}{bytes} $_->{self}{growth}{bytes}" } @{ $json->{groups} }],
			"csv by $group: the same sums");
		my $growth = 0;
		my $stacks = folded_in(report_in('folded', @by));
		$growth += $_->[1] - $_->[0] for values %$stacks;
		is($growth, $all{new}[0] - $all{old}[0], "folded by $group: the growth of everything");
	}
}

sub check_inverted {
	has_option('--invert');
	my $stacks = folded_in(report_in('folded'));
	my %turned = map { join(';', reverse split /;/, $_, -1) => $stacks->{$_} } keys %$stacks;
	is_deeply(folded_in(report_in('folded', '--invert')), \%turned, 'folded: the leaf comes first');
	my $json = JSON::PP->new->utf8->decode(report_in('json', '--invert'));
	is($json->{frame_order}, 'outermost_first', 'so it is in JSON');
	is(scalar(grep { @{ $_->{frames} } && ($_->{frames}[0]{offset} // '') ne '800' } @{ $json->{rows} }), 0,
		'json: the outermost frame comes first');
}
