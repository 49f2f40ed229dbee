#!/usr/bin/perl
# hdiff's report for people. It agrees with the arithmetic of synthetic dumps with known stacks, in
# units and shares. It fits 80 columns, and uses colours and a pager only on a terminal.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Encode qw(decode encode);
use List::Util qw(sum0);
use Test::More;
use Unicode::UCD qw(prop_invlist);
use Calls;
use Hunt;
use People;
use Series;

my $dir = fresh_dir();
my $hdiff = "$root/build/linux/hdiff";

my @names = ('Document::parse(Reader *)', 'cache_fill', "evil\e[2Jname\xff", 'a_name_that_is_longer_than_any_line_of_the_table' x 2,
	map { "f$_" } 1 .. 20);
call_dumps($dir, 60, @names);
my @rows = call_rows();
sub shown { my ($name) = @_; return call_module($name) . '!' . $name =~ s/\e/?/gr =~ s/\xff/\xef\xbf\xbd/gr }

my @grew = grep { $_->{bytes} > 0 } @rows;
my @shrank = grep { $_->{bytes} < 0 } @rows;
my ($total, $blocks) = map { my $key = $_; sum0 map { $_->{$key} } @rows } qw(bytes blocks);
my $grown = sum0 map { $_->{bytes} } @grew;
my $shrunk = -sum0 map { $_->{bytes} } @shrank;

my $text = text();
subtest 'two lines, and what it adds up to' => sub {
	my $report = people($text);
	is($report->{title}, 'Growth of app.exe, process 4242, in 1h30m', 'of what');
	is($report->{from}, "$dir/a.txt, " . iso((call_times())[0]) =~ s/\.000//r, 'from when');
	is($report->{to}, "$dir/b.txt, " . iso((call_times())[1]) =~ s/\.000//r, 'to when');
	is_deeply($report->{total}, [signed_units($total), signed_commas($blocks)], 'the total');
	my $five = percent(sum0(map { $_->{bytes} } @grew[0 .. 4]), $grown);
	like($text, qr/^${\scalar @grew} stacks grew, ${\scalar @shrank} shrank; the first 5 make up $five %$/m, 'a line of totals');
	like($text, qr/^40 more: -n 60\. /m, 'how to see more');
	unlike($text, qr/[\x00-\x09\x0b-\x1f\x7f]/, 'no control characters');
};
subtest 'a table of ten' => sub {
	my $table = people($text)->{table};
	is(scalar @$table, 10, 'rows');
	for my $i (0 .. 9) {
		my ($shown, $row) = ($table->[$i], $rows[$i]);
		my $own = $row->{calls}[0];
		is_deeply([@$shown{qw(growth blocks)}], [signed_units($row->{bytes}), signed_commas($row->{blocks})], "row $i");
		is($shown->{share}, percent($row->{bytes}, $grown), 'its share');
		my $wanted = shown($own) =~ s/^app!//r;
		my ($name, $place) = split /  /, $shown->{name};
		ok(length $wanted > 40 ? $name =~ s/\.\.\.\z// && !index $wanted, $name : $name eq $wanted, "its own function: $own") or diag($name);
		is($place, call_place($own), 'and where that is');
	}
};
subtest 'twenty stacks' => sub {
	my $stacks = people($text)->{stacks};
	is(scalar @$stacks, 20, 'stacks');
	for my $i (0 .. 19) {
		my ($shown, $row) = ($stacks->[$i], $rows[$i]);
		is_deeply([@$shown{qw(growth blocks)}, @{ $shown->{now} }],
			[signed_units($row->{bytes}), signed_commas($row->{blocks}), in_units($row->{new}[0]), with_commas($row->{new}[1])], "row $i");
		is_deeply($shown->{frames},
			[map { shown($_) . '  ' . call_place($_) } 'RtlAllocateHeap', 'malloc', @{ $row->{calls} }], 'whole, without what starts a program');
	}
	is(scalar @{ people(text('-n', 3))->{stacks} }, 3, '-n 3');
	is(scalar @{ people(text('-n', 60))->{stacks} }, 60, '-n 60');
	my $inverted = people(text('--invert', '-n', 1))->{stacks}[0]{frames};
	is_deeply($inverted, [reverse @{ $stacks->[0]{frames} }], '--invert');
};
subtest 'as many rows as are wanted' => sub {
	for my $count (3, 15, 60) {
		my $report = people(text('-n', $count));
		is(scalar @{ $report->{table} }, $count, "-n $count: lines of the table");
		my $alone = people(text('--no-stacks', '-n', $count));
		is_deeply([$alone->{table}, $alone->{stacks}, $alone->{total}], [$report->{table}, [], $report->{total}], "--no-stacks: the same table alone");
	}
	is(scalar @{ people(text('--no-stacks'))->{table} }, 20, 'twenty by default');
	check_error(run([$hdiff, '--no-stacks', @$_, "$dir/a.txt", "$dir/b.txt"]), 'hdiff', "@$_: it is about text", '--no-stacks')
	    for ['-o', 'html'], ['-d'], ['--sizes'];
};
subtest 'one dump' => sub {
	my $report = people(run([$hdiff, '--no-pager', "$dir/b.txt"])->{out});
	my $bytes = sum0 map { $_->{new}[0] } @rows;
	my $count = sum0 map { $_->{new}[1] } @rows;
	is($report->{title}, 'Memory of app.exe, process 4242', 'of what');
	is_deeply($report->{total}, [in_units($bytes), with_commas($count)], 'sizes, without signs');
};
subtest 'two processes' => sub {
	my $sub = fresh_dir();
	my $growth = sub {
		my @files = map { series($sub, [(call_times())[$_]], { leak => [100] }, name => "p$_-%d.txt", @{ $_[$_] }) } 0, 1;
		return map { [split /\n/, run([$hdiff, '-o', $_, @files])->{out}] } qw(text svg);
	};
	my ($text, $svg) = $growth->([pid => 100], [pid => 200, start => 1763632801000]);
	is($text->[0], 'Growth from app.exe, process 100 to app.exe, process 200, in 1h30m', 'both');
	is(scalar(grep { />growth: app\.exe, process 200 since process 100</ } @$svg), 1, 'in a flame graph');
	($text) = $growth->([pid => 100, image => 'old.exe'], [pid => 200, image => 'new.exe']);
	is($text->[0], 'Growth from old.exe, process 100 to new.exe, process 200, in 1h30m', 'of two programs');
	($text, $svg) = $growth->([pid => 100], [pid => 100]);
	is($text->[0], 'Growth of app.exe, process 100, in 1h30m', 'one process');
	is(scalar(grep { />growth: app\.exe, process 100</ } @$svg), 1, 'in a flame graph');
};
subtest 'call trees' => \&trees;
subtest 'groups' => \&groups;
subtest 'a trend' => \&trend;
subtest 'on a terminal' => \&terminal;
subtest 'wide characters' => \&wide;
done_testing;

# Checks the totals of each path from the root in the tree.
sub trees {
	for my $is_inverted (0, 1) {
		my %total;
		for my $row (@rows) {
			my @path = $is_inverted ? @{ $row->{calls} } : reverse @{ $row->{calls} };
			for my $depth (0 .. @path) {
				my $node = $total{ join '>', @path[0 .. $depth - 1] } //= { bytes => 0, blocks => 0, moved => 0 };
				$node->{$_} += $row->{$_} for qw(bytes blocks);
				$node->{moved} += abs $row->{bytes};
			}
		}
		my $moved = $grown + $shrunk;
		my @wanted = sort map { join '|', signed_units($_->{bytes}), signed_commas($_->{blocks}), percent($_->{moved}, $moved) }
		    grep { $_->{moved} * 100 >= $moved } values %total;
		my $said = text('--tree', $is_inverted ? '--invert' : ());
		my $tree = people($said)->{tree};
		is_deeply([sort map { join '|', @$_{qw(growth blocks share)} } @$tree], \@wanted, 'each node with 1 % or more');
		like($said, qr/^${\(scalar(keys %total) - @wanted)} nodes? below 1 % (?:is|are) left out$/m, 'and how many have less');
		is($tree->[0]{name}, '(all)', 'from the root');
		is((grep { $_->{name} =~ /malloc|Startup/ } @$tree) + 0, 0, 'no allocators and no start');
		# Siblings are sorted: each has at least as much as the siblings below it.
		my @last;
		for my $node (grep { $_->{is_one} } @$tree) {
			$#last = $node->{depth};
			ok(!defined $last[ $node->{depth} ] || $last[ $node->{depth} ] >= $node->{share}, 'larger ones first')
			    or diag($node->{name});
			$last[ $node->{depth} ] = $node->{share};
		}
	}
}

sub groups {
	my (%self, %total);
	for my $row (@rows) {
		$self{ $row->{calls}[0] } += $row->{bytes};
		my %once = map { $_ => 1 } @{ $row->{calls} }, @call_start;
		$total{$_} += $row->{bytes} for keys %once;
	}
	my $said = text('--group', 'function', '-n', 99);
	my %by_name = map { $_->{name} => $_ } @{ people($said)->{groups} };
	is(scalar keys %by_name, scalar keys %self, 'functions with a stack of their own, and no others');
	for my $name (grep { length $_ < 40 } keys %self) {
		my $group = $by_name{ shown($name) };
		is_deeply([@$group{qw(self total)}], [signed_units($self{$name}), signed_units($total{$name})], $name);
	}
	my $alone = keys(%total) - keys %self;
	like($said, qr/; $alone are only passed through \(--sort total\)$/m, 'the number of other groups is printed');
	my @most = map { signed_units($total{$_}) } sort { $total{$b} <=> $total{$a} } keys %total;
	is_deeply([map { $_->{total} } @{ people(text('--group', 'function', '--sort', 'total'))->{groups} }], [@most[0 .. 19]],
		'--sort total: all of them, 20 shown');
}

sub trend {
	my $folder = fresh_dir();
	series($folder, [map { 1763632800000 + 1_800_000 * $_ } 0 .. 11],
		{ leak => [map { (1 << 20) * $_ } 1 .. 12], still => [(5000) x 12] });
	my $said = run([$hdiff, $folder])->{out};
	my ($row) = @{ people($said)->{table} };
	is_deeply([$row->{growth}, $row->{blocks}], [signed_units(11 << 20), '0'], '11 MiB more in the one block');
	like($row->{name}, qr{^grows +\+2\.0 MiB/h  app!leak$}, 'a verdict, and how fast');
	like($said, qr{^in all: grows, \+2\.0 MiB/h \(2\.0 to 2\.0\)  \.\S{10}\@$}m, 'of all, with its range and bars');
	like(run([$hdiff, '-i', 'app!still', $folder])->{out}, qr{^selected: steady}m, 'the verdict of what is selected is not that of all');
	like($said, qr/^Trend of app\.exe, process 4242: 12 snapshots in 5h30m$/m, 'of how many');
	unlike($said, qr{^//}m, 'no legend');
}

sub terminal {
	needs_linux('script(1)');
	my $plain = text();
	my $coloured = text('--color=always');
	like($coloured, qr/\e\[31m *\+.*\e\[0m/, 'grown is red');
	is($coloured =~ s/\e\[\d+m//gr, $plain, '--color always: the same words');
	my %env = (TERM => 'xterm', PAGER => 'cat', NO_COLOR => '');
	my $on = on_terminal(\%env);
	like($on, qr/\e\[31m/, 'colours on a terminal');
	unlike(on_terminal({ %env, NO_COLOR => 1 }), qr/\e/, 'NO_COLOR');
	unlike(on_terminal({ %env, TERM => 'dumb' }), qr/\e/, 'a terminal without colours');
	unlike(on_terminal(\%env, '--color=never'), qr/\e/, '--color never');
	like(on_terminal({ %env, NO_COLOR => 1 }, '--color=always'), qr/\e\[31m/, '--color always: nevertheless');
	my %paged = (%env, NO_COLOR => 1, HDIFF_PAGER => "sed 's/^/page: /'");
	my $lines = $plain =~ tr/\n//;
	is(scalar(() = on_terminal(\%paged) =~ /^page: /mg), $lines, 'HDIFF_PAGER has each line');
	is(scalar(() = on_terminal({ %env, PAGER => "sed 's/^/page: /'" }) =~ /^page: /mg), $lines, 'so has PAGER');
	unlike(on_terminal(\%paged, '--no-pager'), qr/page: /, '--no-pager');
	unlike(run([$hdiff, "$dir/a.txt", "$dir/b.txt"], env => \%paged)->{out}, qr/page: /, 'no pager elsewhere');
	is(on_terminal({ %paged, HDIFF_PAGER => 'head -n 1' }) =~ s/\s+\z//r, people($plain)->{title}, 'a pager that is left: no complaint');
	like(on_terminal({ %env, COLUMNS => 120, NO_COLOR => 1 }), qr/^.{81,120}$/m, 'COLUMNS=120 is used');
	for my $more ([], ['--tree'], ['--group', 'function'], ['--tree', '--invert']) {
		is_deeply([grep { length > 80 && !/^ {6}\S/ } split /\n/, decode('UTF-8', text(@$more) =~ s/\Q$dir\E//gr)], [], "80 columns: @$more");
	}
}

# Letters of East Asia and emoji take two columns each: Perl knows Unicode's table.
sub wide {
	my @bounds = map { prop_invlist("East_Asian_Width=$_") } 'W', 'F';
	my @codes = grep { $_ != 0x3000 } map { ($bounds[2 * $_], $bounds[2 * $_ + 1] - 1) } 0 .. $#bounds / 2; # U+3000 is a blank
	cmp_ok(scalar @codes, '>', 100, 'there are such characters');
	my ($text, $sum) = ('', 0);
	for my $name ((map { chr($_) x 60 } @codes), "\x{e9}" x 200, 'a' . "\x{5728}" x 60) {
		my $bytes = 1000 + length $text;
		$text .= sprintf "+ %8X ( %6X - %6X) %6X allocs\tBackTrace%X\n+ %8X ( %6X - %6X)\tBackTrace%5\$X\tallocations\n\n\tapp!%s+1 (a.cpp, 3)\n\n", $bytes, $bytes, 0, 1, $bytes, 1, 1, 0, encode('UTF-8', $name);
		$sum += $bytes;
	}
	my $file = spew("$dir/wide.txt", $text . sprintf "\nTotal increase == %6X requested + %6X overhead = %6X\n", $sum, 0, $sum);
	my $columns = sub { return length($_[0]) + (() = $_[0] =~ /\p{East_Asian_Width=W}|\p{East_Asian_Width=F}/g) };
	for my $more ([], ['--tree'], ['--group', 'function']) {
		my $result = run([$hdiff, '-n', 1000, @$more, $file]);
		check_ok($result, "hdiff @$more, wide characters");
		my @rows = grep { / \+\d[\d.]* +\S.*\.\.\./ && !/^ {6}\S/ } split /\n/, decode('UTF-8', $result->{out});
		cmp_ok(scalar @rows, '>', "@$more" eq '--tree' ? 1 : 100, "rows @$more");
		is_deeply([map { encode('UTF-8', $_) } grep { $columns->($_) > 80 || $columns->($_) < 79 } @rows], [], "80 columns of wide characters: @$more");
	}
}

sub on_terminal {
	my ($env, @more) = @_;
	my $command = join ' ', map { "'$_'" } $hdiff, @more, "$dir/a.txt", "$dir/b.txt";
	my $result = run(['script', '-qec', $command, '/dev/null'], env => $env);
	is($result->{status}, 0, "on a terminal: @more");
	return $result->{out} =~ s/\r//gr;
}

sub text {
	my (@more) = @_;
	my $result = run([$hdiff, @more, "$dir/a.txt", "$dir/b.txt"]);
	check_ok($result, "hdiff @more");
	return $result->{out};
}

sub percent { my ($part, $whole) = @_; my $share = int($part * 100 / $whole + 0.5); return $share || '<1' }
sub signed_commas { my ($count) = @_; return ($count > 0 ? '+' : '') . with_commas($count) }
