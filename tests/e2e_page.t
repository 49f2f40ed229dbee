#!/usr/bin/perl
# The page of hdiff -o html, without a browser. Checks its parts, that hostile names do no harm in
# it, and that it has the data of the JSON report. tests/viewers/html.t opens the page.
use strict;
use warnings;
use Digest::SHA qw(sha256_base64);
use Encode qw(decode);
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP;
use Test::More;
use Hunt;
use Pages;
use Recordings;
use Series;

my $dir = fresh_dir();
my @dumps = page_dumps($dir);
my @trend = series($dir, [map { 1763632800000 + 1_800_000 * $_ } 0 .. 5], { leak => [map { 1000 + 500 * $_ } 0 .. 5], steady => [(64) x 6],
		'</script><b>' => [map { $_ % 2 ? 900 : 300 } 0 .. 5] });
my ($recordings) = make_random($dir, run => { seed => 1, events => 6000 });
my %runs = (
	'a comparison' => [@dumps],
	'one dump' => [$dumps[1]],
	'turned round, some of it' => ['--invert', '--strip', '-n', 7, '-i', 'parse|load', @dumps],
	'by heap, by module' => ['--group', 'module', @dumps],
	'a trend' => [@trend],
	'a trend by function' => ['--group', 'function', @trend],
	'a recording' => ['--from', 'start', '--to', 'end', $recordings->{run}],
	'one that was read' => [spew("$dir/compared.txt", slurp("$root/tests/golden/compared.txt"))],
);
subtest $_ => sub { check(@{ $runs{$_} }) } for sort keys %runs;
subtest 'a table that nobody would read to its end is cut' => \&check_cut;
subtest 'a trend with rows that do not fit' => \&check_merged;
subtest "a recording's window has its classes in the head" => \&check_classes;
subtest 'what is of one dump neither grew nor shrank' => \&check_one;
subtest 'charts' => \&check_charts;
subtest 'files with names that only Linux has' => \&check_names;
done_testing;

sub pages {
	my (@args) = @_;
	my @got = map {
		run(/linux/ ? ["$root/build/linux/hdiff", @args] : [wine("$root/build/win64/hdiff.exe", @args)], dir => $dir);
	} tool_names();
	is($_->{status}, 0, 'status') or diag($_->{err}) for @got;
	ok($got[0]{out} eq $got[-1]{out}, 'both systems make the same bytes');
	return $got[0]{out};
}

sub json_of {
	my (@args) = @_;
	return JSON::PP->new->utf8->decode(run(["$root/build/linux/hdiff", '-o', 'json', @args], dir => $dir)->{out});
}

sub check {
	my (@args) = map { s{^\Q$dir\E/}{}r } @_;
	my $page = pages('-o', 'html', @args);
	check_form($page);
	my $wanted = json_of(@args);
	my $data = page_data($page);
	my $report = page_like(json_of(@args));
	if (my $recording = delete $data->{recording}) { # tests/e2e_page_lives.t checks it
		my %own = map { join(' ', @{ $_->{ids} }) => $_ } @{ $recording->{rows} };
		is_deeply($own{ join ' ', @{ $_->{ids} } }{frames}, $_->{frames}, 'the stack of a row') for @{ $report->{rows} };
		delete @$_{qw(rows row_count shown_count)} for $report, $data;
	}
	is_deeply(page_like($data), $report, 'it has the JSON report in it');
	my @views = $wanted->{series} ? @{ $wanted->{series} } : $wanted;
	my @rows = map { @{ $_->{rows} // $_->{groups} } } @views;
	cmp_ok(scalar @rows, '>', 1, 'there are rows');
	my @found = table_in($page);
	is(scalar @found, scalar @rows, 'the table has each');
	for my $i (0 .. $#rows) {
		my $row = $rows[$i]{total} // $rows[$i];
		my ($growth, $blocks, $old, $new, @rest) = @{ $found[$i] };
		my ($change, $trend) = ($row->{growth}, $row->{trend});
		is("$growth $blocks", sprintf('%+d %+d', $change ? @$change{qw(bytes blocks)} : @$trend{qw(net_bytes net_blocks)}), "growth of row $i");
		is("$old $new", "$row->{old}{bytes} $row->{new}{bytes}", "before and after of row $i") if $row->{old};
		my @frames = @{ $rows[$i]{frames} // [] } or next;
		is_deeply([split /\n/, $rest[-1]], [map { shown($_) } @frames], "stack of row $i");
	}
	my @folded = $page =~ m{<details><summary>(\d+) more frames?</summary>}g;
	is_deeply(\@folded, [map { $_ > 4 ? $_ - 4 : () } map { scalar @{ $_->{frames} // [] } } @rows], 'frames after the fourth are folded');
	return;
}

sub shown {
	my ($frame) = @_;
	my ($module, $function) = @$frame{qw(module function)};
	my $name = defined $function ? (defined $module ? "$module!" : '') . $function : defined $module ? "$module+$frame->{offset}" : $frame->{address};
	return $name . (defined $frame->{file} ? " ($frame->{file}:$frame->{line})" : '');
}

# Returns [CELL, ...] as text for each row of the tables.
sub table_in {
	my ($page) = @_;
	my ($tables) = decode('UTF-8', $page) =~ m{<noscript>\n(.*?)</noscript>}s;
	return map {
		[map { plain(s{<details><summary>\d+ more frames?</summary>|<br>}{\n}gr =~ s{</details>}{}gr) } m{<td>(.*?)</td>}gs]
	} grep { /<td>/ } $tables =~ m{<tr>(.*?)</tr>}gs;
}

sub plain {
	my ($html) = @_;
	my %meant = (lt => '<', gt => '>', quot => '"', amp => '&');
	return $html =~ s{</?bdi>}{}gr =~ s/&(\w+);/$meant{$1}/gr;
}

# Checks that the page is one file that runs only its own script, and that no text is markup.
sub check_form {
	my ($page) = @_;
	ok(eval { decode('UTF-8', $page, Encode::FB_CROAK | Encode::LEAVE_SRC) }, 'is UTF-8');
	is($page =~ tr/\x00-\x08\x0b-\x1f\x7f//, 0, 'has no control characters');
	my @scripts = $page =~ m{<script[^>]*>(.*?)</script>}gs;
	is(scalar @scripts, 2, 'two scripts');
	unlike($scripts[0], qr/[<>&]|\xe2\x80[\xa8\xa9]/, 'the data have no markup in them');
	my ($policy) = $page =~ /http-equiv="Content-Security-Policy" content="([^"]*)"/;
	is($policy, "default-src 'none'; script-src 'sha256-" . sha256_base64($scripts[1]) . "='; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'",
		'the policy lets that script run, and nothing else in');
	my $rest = $page =~ s{\A<!DOCTYPE html>\n}{}r =~ s{(<script[^>]*>).*?(</script>)}{$1$2}gsr =~ s{<style>.*?</style>}{}sr;
	unlike($rest, qr/<(?:img|b\b(?!>\d*[+-]?)|i\b|iframe|link|object|embed|base)[ >](?![+-]?\d|\w+<\/b>)/i, 'no element that a name would make');
	unlike($rest, qr/<[^>]*\s(?:on\w+|src|href|style)\s*=/i, 'no attribute that runs or fetches anything');
	unlike($page =~ s{http://www\.w3\.org/2000/svg}{}gr, qr{https?://}, 'no address of anything elsewhere');
	my (@open, @wrong);
	$rest =~ s{<\w+(?: [\w-]+="[^"<>]*")*/>}{}g; # elements of pictures
	while ($rest =~ m{<(/?)([a-z]\w*)[^<>]*?(?<!/)>|([<>])}gi) {
		my ($end, $name, $stray) = ($1, $2, $3);
		push(@wrong, "a bare $stray at " . pos $rest), next if defined $stray;
		next if $name =~ /^(?:meta|br|input)$/;
		push(@open, $name), next unless $end;
		my $last = pop(@open) // 'nothing';
		push @wrong, "$name closes $last" if $last ne $name;
	}
	is_deeply([@wrong, @open], [], 'every element ends where it may') or diag(join "\n", @wrong[0 .. ($#wrong > 9 ? 9 : $#wrong)]);
	return;
}

sub check_cut {
	my %stacks = map { sprintf('f%04d', $_) => [64, 64 + $_] } 1 .. 1200;
	my @many = series($dir, [1763632800000, 1763634600000], \%stacks, name => 'many-%d.txt');
	my $page = run(["$root/build/linux/hdiff", '-o', 'html', @many])->{out};
	is(scalar(table_in($page)), 1000, 'the first rows');
	like($page, qr{<p>200 more are not in this table\.</p>}, 'and how many more');
	is(scalar @{ page_data($page)->{rows} }, 1200, 'the script has them all');
	return;
}

# Rows of a trend that do not fit are merged, and sums stay exact.
sub check_merged {
	my %stacks = map { my $i = $_; sprintf('g%05d' . 'x' x 500, $i) => [map { 100 * $i + ($_ == 1 ? $i : 0) } 0 .. 2] } 1 .. 14_000;
	my @many = series($dir, [map { 1763632800000 + 1_800_000 * $_ } 0 .. 2], \%stacks, name => 'much-%d.txt');
	my $page = run(["$root/build/linux/hdiff", '-o', 'html', @many], limit => 100)->{out};
	cmp_ok(length $page, '<', 8_000_000, 'the page stays small');
	my ($series) = @{ page_data($page)->{series} };
	my @rows = @{ $series->{rows} };
	my %places = map { Series::offset_of($_) => 1 } keys %stacks; # some names have the same place
	is(@rows + $series->{other_rows}, scalar keys %places, 'each row is listed or counted');
	cmp_ok($series->{other_rows}, '>', 500, 'some are merged');
	my $of = $series->{other};
	is_deeply([map { my $k = $_; my $sum = $of->[$k]; $sum += $_->{bytes}[$k] for @rows; $sum } 0 .. 2],
		[map { my $sum = 0; for my $numbers (values %stacks) { $sum += $numbers->[$_] } $sum } 0 .. 2], 'the sum of all');
	is(scalar(grep { $_->{frames}[0]{function} =~ /^g1400/ } @rows), 1, 'the one that changes most is listed');
	return;
}

sub check_classes {
	my @window = ('--class', 'aofi', '--from', '20%', '--to', '70%', $recordings->{run});
	my $page = run(["$root/build/linux/hdiff", '-o', 'html', @window])->{out};
	my $wanted = json_of(@window)->{window};
	my ($head) = $page =~ m{<header>(.*?)</header>}s;
	my %found = map { m{<td>(\d+)</td><td>(\d+)</td><td>(\w+)} ? (lc $3 => "$1 $2") : () } split /\n/, $head;
	is_deeply(\%found, { map { $_ => "$wanted->{$_}{bytes} $wanted->{$_}{blocks}" } qw(aifo aifi aofi aofo) }, 'what became of all allocations');
	is(join(' ', $head =~ m{<tr class="asked">.*?<td>(\w+):}g), 'AOFI', 'and which ones the page is about');
	like($head, qr{<h1>app\.exe: a window of a recording</h1>}, 'a window is called one');
	my ($bytes, $blocks) = @{ $wanted->{aofi} }{qw(bytes blocks)};
	like($head, qr{<p class="totals"><b>$bytes</b> bytes in <b>$blocks</b> blocks, what existed before and was freed from }, 'the total names its class');
	return;
}

sub check_one {
	my $page = run(["$root/build/linux/hdiff", '-o', 'html', $dumps[1]])->{out};
	my ($bytes, $blocks) = (0, 0);
	for my $row (@{ json_of($dumps[1])->{rows} }) {
		$bytes += $row->{new}{bytes};
		$blocks += $row->{new}{blocks};
	}
	like($page, qr{<p class="totals"><b>$bytes</b> bytes in <b>$blocks</b> blocks</p>}, 'it states how much there is');
	return;
}

sub check_names {
	needs_linux('such names');
	my $path = q{<img src=x onerror="alert(3)">'</script>};
	mkdir "$dir/<img src=x onerror=\"alert(3)\">'<" or die "$!\n";
	spew("$dir/$path", slurp($dumps[0]));
	my $page = run(["$root/build/linux/hdiff", '-o', 'html', $path], dir => $dir)->{out};
	check_form($page);
	is(page_data($page)->{inputs}[0]{path}, $path, 'the name is there, to the letter');
	return;
}

sub check_charts {
	for my $window ([], ['--from', '20%', '--to', '70%']) {
		my @args = (@$window, $recordings->{run} =~ s{^\Q$dir\E/}{}r);
		my $page = pages('-o', 'html', @args);
		my $picture = run(["$root/build/linux/hdiff", '--histogram', '-o', 'svg', @args], dir => $dir)->{out};
		ok(index($page, $picture) > 0, "@args: the sizes are those of -o svg");
		is(pages($_, '-o', 'html', @args), $page, "$_: the same page") for '--over-time', '--histogram';
		my $groups = pages('-o', 'html', '--group', 'module', @args);
		ok(index($groups, run(["$root/build/linux/hdiff", $_, '-o', 'svg', @args], dir => $dir)->{out}) > 0, "$_: a page of groups has that of -o svg") for '--over-time', '--histogram';
	}
	return;
}
