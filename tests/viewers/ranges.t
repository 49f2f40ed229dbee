#!/usr/bin/perl
# The pages of recordings and trends in a browser: the user drags over the chart, and everything below follows.
# Each row equals what hdiff prints for the command line that the page shows.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use JSON::PP;
use Test::More;
use Browser;
use Hunt;
use Pages;
use Recordings;
use Series;
use Viewers;

binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output todo_output);
my $browser = Browser->new(need_program($ENV{HSNAP_BROWSER} // 'chromium'));
my $json = JSON::PP->new->utf8;
my $dir = fresh_dir();
my ($file) = make_random($dir, plain => { seed => 21, events => 6000 }, attached => { seed => 22, events => 5000, attached => 60 },
	short => { seed => 23, events => 900, ms => 15 });
our ($url, $data);
for my $name (sort keys %$file) {
	my $page = run(["$root/build/linux/hdiff", '--no-symbols', '-o', 'html', $file->{$name}])->{out};
	local $url = 'file://' . spew("$dir/$name.html", $page);
	local $data = page_data($page);
	subtest "$name: windows" => sub { check_windows($name eq 'plain' ? 30 : 10) };
	subtest "$name: classes" => \&check_classes;
}
my $page = run(["$root/build/linux/hdiff", '--no-symbols', '-o', 'html', $file->{plain}])->{out};
$url = 'file://' . spew("$dir/page.html", $page);
$data = page_data($page);
subtest 'the chart' => \&check_chart;
subtest 'keys and fields' => \&check_keys;
subtest 'an address restores the view' => \&check_address;
subtest 'widths' => \&check_widths;
subtest 'a page with filters' => \&check_filters;
subtest 'a trend: pairs' => \&check_pairs;
is_deeply([$browser->complaints], [], 'the browser reports no errors');
$browser->close;
done_testing;

sub value { my ($expression) = @_; return $browser->js($expression) }
sub text_of { my ($id) = @_; return value("document.getElementById('$id').textContent") }

sub choose {
	my ($id, $value) = @_;
	value("(() => { const e = document.getElementById('$id'); e.value = '$value'; e.dispatchEvent(new Event('change')); })()");
	return $browser->drawn;
}

# Drags from one place of the chart to another; places are fractions of its width.
sub drag {
	my ($from, $to) = @_;
	$browser->point('#chart', sprintf('%.4f', $from), 100, 'mousePressed');
	$browser->point('#chart', sprintf('%.4f', $_), 100, 'mouseMoved') for ($from + $to) / 2, $to;
	$browser->point('#chart', sprintf('%.4f', $to), 100, 'mouseReleased');
	return;
}

# Returns { STACK => [NUMBER, ...] } of the table's columns.
sub rows_shown {
	my (@columns) = @_;
	my $list = value(<<'END');
(() => { while (!document.getElementById('more').hidden) document.getElementById('more').click();
  const heads = [...document.querySelectorAll('#columns th')].map(head => head.dataset.name);
  return [...document.querySelectorAll('#rows tr.row')].map(row => Object.fromEntries([['row', Number(row.dataset.row)],
    ...[...row.children].map((cell, i) => [heads[i], Number(cell.dataset.n)])])); })()
END
	return { map { stack_of(($data->{recording} // $data->{series}[0])->{rows}[$_->{row}]) => [@$_{@columns}] } grep { grep { $_ } @$_{@columns} } @$list };
}

sub stack_of { my ($row) = @_; return join ' ', map { name_of($_) } @{ $row->{frames} } }
sub name_of { my ($frame) = @_; return defined $frame->{function} ? "$frame->{module}!$frame->{function}" : defined $frame->{module} ? "$frame->{module}+$frame->{offset}" : $frame->{address} }

# Runs the command that the page shows, as JSON.
sub report_of_command {
	my ($command) = text_of('command') =~ /^hdiff (.*)/s;
	my @args = map { s/^"(.*)"$/$1/sr } $command =~ /("[^"]*"|\S+)/g;
	my $run = run(["$root/build/linux/hdiff", $data->{series} ? () : '--no-symbols', '-o', 'json', @args]);
	is($run->{status}, 0, $command) or diag($run->{err});
	return $json->decode($run->{out});
}

sub check_windows {
	my ($count) = @_;
	srand 9;
	$browser->open_page($url);
	choose('shown', 'growth');
	for my $turn (1 .. $count) {
		drag(map { 0.07 + rand 0.9 } 1, 2);
		my $report = report_of_command();
		my %wanted = map { stack_of($_) => [$_->{growth}{bytes}, $_->{growth}{blocks}] } @{ $report->{rows} };
		is_deeply(rows_shown(qw(growth blocks)), \%wanted, "window $turn: growth of each row");
		is(value('Number(document.getElementById("status").dataset.new) - Number(document.getElementById("status").dataset.old)'),
			$report->{totals}{selected}{growth}{bytes}, '... and the sum');
	}
	return;
}

sub check_classes {
	$browser->open_page($url);
	drag(0.3, 0.7);
	for my $class (qw(aifo aifi aofi aofo ai)) {
		choose('shown', $class);
		my $report = report_of_command();
		is_deeply(rows_shown(qw(new blocks)), { map { stack_of($_) => [@{ $_->{new} }{qw(bytes blocks)}] } @{ $report->{rows} } }, "$class: each row");
		next if $class eq 'ai';
		is(value("document.querySelector('#classes tr[data-name=$class] td').dataset.n"), $report->{totals}{selected}{new}{bytes}, '... and the line of the class');
	}
	for my $moment (qw(end peak)) {
		choose('shown', $moment);
		my $report = report_of_command();
		is_deeply(rows_shown(qw(new blocks)), { map { stack_of($_) => [@{ $_->{new} }{qw(bytes blocks)}] } @{ $report->{rows} } }, "$moment: each row");
	}
	return;
}

# Any two snapshots of a trend: each row equals the comparison of these two.
sub check_pairs {
	srand 31;
	my %stacks = map { my $base = int rand 5000; "f$_" => [map { rand() < 0.1 ? 0 : [$base + int(rand 3) * 64 * $_, 1 + int rand 5] } 1 .. 40] } 1 .. 60;
	my @dumps = series(fresh_dir(), [map { 1763632800000 + 1_800_000 * $_ } 0 .. 39], \%stacks);
	my $text = run(["$root/build/linux/hdiff", '-o', 'html', @dumps])->{out};
	local $data = page_data($text);
	$browser->open_page('file://' . spew("$dir/trend.html", $text));
	for my $turn (1 .. 50) {
		drag(map { 0.07 + rand 0.9 } 1, 2);
		my $report = report_of_command();
		is_deeply(rows_shown(qw(growth blocks)), { map { stack_of($_) => [@{ $_->{growth} }{qw(bytes blocks)}] } @{ $report->{rows} } }, "pair $turn: each row");
	}
	return;
}

sub check_chart {
	$browser->open_page($url);
	my @use = map { my $use = $_->{use}; my $sum = 0; $sum += $use->[2 * $_] for 0 .. 4; $sum } @{ $data->{recording}{edges} };
	my $last = $#use;
	$browser->point('#chart', '0.5', 100, 'mouseMoved');
	my ($moment, $total, @parts) = value('document.getElementById("tip").textContent') =~ /^(\S+ s)[^:]*: (\S+ \S+)\n(.*)/s;
	like($moment, qr/^\d+\.\d{3} s$/, 'the time under the pointer');
	for my $by (qw(function stack module memory)) {
		choose('kind', $by);
		cmp_ok(value('document.querySelectorAll("#areas button").length'), '>', 1, "areas by $by");
		cmp_ok(value('document.querySelectorAll("#areas button").length'), '<=', 9, '... at most eight and the rest');
		# The highest line of the chart is the sum of all areas.
		my ($points) = value('document.querySelector("#chart .use").getAttribute("points")');
		my @y = map { (split /,/)[1] } split ' ', $points;
		my ($highest) = map { $_->{highest} } sort { $b->{highest} <=> $a->{highest} } @{ $data->{recording}{edges} };
		is(scalar(grep { abs($y[$_] - (206 - 184 * $use[$_] / $highest)) > 0.11 } 0 .. $last), 0, '... add up to the use at each moment');
	}
	is(value('document.querySelectorAll("#chart .mark").length'), scalar @{ $data->{recording}{marks} }, 'all marks');
	is(value('getComputedStyle(document.querySelector("#chart .mark text")).stroke'), 'none', '... whose labels have no outline from the picture of sizes');
	choose('kind', 'function');
	is(value('document.querySelectorAll("#chart .one").length'), 0, 'no row is chosen');
	value('document.querySelector("#rows tr.row").click()');
	is(value('document.querySelectorAll("#chart .one").length'), 1, "a chosen row's own curve");
	return;
}

# The command does not repeat filters. The page then states that.
sub check_filters {
	my $hidden = sub {
		my $text = run(["$root/build/linux/hdiff", '--no-symbols', '-o', 'html', @_, $file->{plain}])->{out};
		$browser->open_page('file://' . spew("$dir/filters.html", $text));
		return value('document.getElementById("filters").hidden') ? 1 : 0;
	};
	is($hidden->(), 1, 'no filters');
	is($hidden->('--module', 'lib'), 0, '--module');
	is($hidden->('--heap', '1E0000'), 0, '--heap');
	return;
}

sub check_keys {
	$browser->open_page($url);
	my $at = sub { return [map { value("document.querySelector('#chart [data-end=$_]').getAttribute('aria-valuenow')") } qw(from to)] };
	my $last = $#{ $data->{recording}{edges} };
	is_deeply($at->(), [0, $last], 'all of it at first');
	value('document.querySelector("#chart [data-end=from]").focus()');
	$browser->key(qw(ArrowRight ArrowRight ArrowRight ArrowLeft));
	is_deeply($at->(), [2, $last], 'arrows move the start');
	value('document.querySelector("#chart [data-end=to]").focus()');
	$browser->key('ArrowLeft');
	is_deeply($at->(), [2, $last - 1], '... and the end');
	$browser->key('Escape');
	is_deeply($at->(), [0, $last], 'Escape takes it back');
	my ($edge) = grep { !defined $data->{recording}{edges}[$_]{label} } 20 .. $last;
	value("(() => { const e = document.getElementById('start'); e.value = '" . $data->{recording}{edges}[$edge]{ms} . "ms'; e.dispatchEvent(new Event('change')); })()");
	is_deeply($at->(), [$edge, $last], 'a typed moment');
	value("(() => { const e = document.getElementById('stop'); e.value = 'm3885'; e.dispatchEvent(new Event('change')); })()");
	my ($mark) = grep { ($data->{recording}{edges}[$_]{label} // '') eq 'm3885' } 0 .. $last;
	is_deeply($at->(), [sort { $a <=> $b } $edge, $mark], '... and the label of a mark');
	value("(() => { const e = document.getElementById('stop'); e.value = 'what'; e.dispatchEvent(new Event('change')); })()");
	is(value("document.getElementById('stop').getAttribute('aria-invalid')"), 'true', 'what is no moment is marked');
	value('document.getElementById("whole").click()');
	is_deeply($at->(), [0, $last], 'a button for all of it');
	return;
}

sub check_address {
	$browser->open_page($url);
	drag(0.25, 0.6);
	choose('shown', 'aifi');
	my ($hash, $command, $rows) = (value('location.hash'), text_of('command'), rows_shown(qw(new blocks)));
	like($hash, qr/[#&]t=\w[\w.]*%2C\w/, 'it has the range');
	$browser->open_page("$url$hash");
	$browser->drawn;
	is(text_of('command'), $command, 'the same window');
	is_deeply(rows_shown(qw(new blocks)), $rows, 'the same rows');
	return;
}

sub check_widths {
	for my $width (400, 800, 1400) {
		$browser->size($width, 900);
		$browser->open_page($url);
		$browser->drawn;
		is(value('document.documentElement.scrollWidth <= innerWidth'), JSON::PP::true, "$width pixels: nothing is wider than the page");
		my $wide = value('document.getElementById("chart").clientWidth');
		is(value('document.getElementById("chart").viewBox.baseVal.width'), $wide, "$width pixels: text in the chart has its size");
	}
	$browser->size;
	return;
}
