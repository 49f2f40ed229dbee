#!/usr/bin/perl
# The page of hdiff -o html in a browser. It shows the data of the JSON report, its controls work,
# hostile names do no harm, and nothing is fetched. The test adds up the expected values from the
# JSON report.
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
my @dumps = page_dumps($dir);

our ($url, $report) = page_of(@dumps);
our @rows = @{ $report->{rows} };
my $all = tree('down', 'name');
subtest 'the table has the rows of the report' => \&check_table;
subtest 'the graph has their sums' => \&check_graph;
subtest 'sorting' => \&check_sorting;
subtest 'searching' => \&check_search;
subtest 'zooming, by pointer and keys' => \&check_zoom;
subtest 'grouping, as hdiff --group does' => \&check_groups;
subtest 'a row and the graph lead to each other' => \&check_links;
subtest 'a call tree' => \&check_tree;
subtest 'the table by keys' => \&check_table_keys;
subtest 'each width' => \&check_every_width;
subtest 'callers and callees of a function' => \&check_around;
subtest 'without libraries' => \&check_hidden;
subtest 'the table as text, and sources' => \&check_copy;
subtest 'an address that restores the view' => \&check_address;
subtest 'light and dark' => \&check_themes;
subtest 'words in the graph can be read' => \&check_contrast;
subtest 'a stack that vanished is as wide as it was large' => \&check_vanished;
subtest 'paper, and no scripts' => \&check_paper;
subtest 'one dump' => \&check_one;
subtest 'folded stacks, whose numbers of blocks are unknown' => \&check_folded;
subtest 'a trend' => \&check_trend;
subtest 'a recording' => \&check_recording;
subtest 'groups of the report' => \&check_report_groups;
subtest '20,000 stacks' => \&check_many;
is_deeply([$browser->complaints], [], 'the browser reports no errors, and no name runs');
is_deeply([grep { !m{^file:///\S+\.html|^about:blank} } $browser->requests], [], 'nothing is fetched');
$browser->close;
done_testing;

# Returns the path of a report's page, and the report as JSON in which frames have names.
our $made;
sub page_of {
	my (@args) = @_;
	my @got = map { run(["$root/build/linux/hdiff", '-o', $_, @args])->{out} } qw(html json);
	my $data = $json->decode($got[1]);
	return ('file://' . spew("$dir/page" . ++$made . '.html', $got[0]), $data);
}

sub show { my ($hash) = @_; $browser->open_page($url . ($hash // '')); return $browser->drawn }

sub name_of {
	my ($frame) = @_;
	return (defined $frame->{module} ? "$frame->{module}!" : '') . $frame->{function} if defined $frame->{function};
	return defined $frame->{module} ? "$frame->{module}+$frame->{offset}" : $frame->{address};
}

sub names { my ($row) = @_; return @{ $row->{frames} // [] } ? map({ name_of($_) } @{ $row->{frames} }) : '(no stack recorded)' }

# Returns sums by "name\0name...", from the outermost frame inwards (or from the innermost
# outwards): { old, new, up, down } in bytes.
sub tree {
	my ($order) = @_;
	my %tree;
	for my $row (@rows) {
		my @names = $order eq 'down' ? reverse names($row) : names($row);
		my $growth = $row->{growth}{bytes};
		for my $depth (0 .. @names) {
			my $node = $tree{ join "\0", @names[0 .. $depth - 1] } //= { old => 0, new => 0, up => 0, down => 0 };
			$node->{$_} += $row->{$_}{bytes} for qw(old new);
			$node->{ $growth < 0 ? 'down' : 'up' } += abs $growth;
		}
	}
	return \%tree;
}

# Loads all rows of the table and returns them: [{name, numbers by column}].
sub table {
	$browser->js('while (!document.getElementById("more").hidden) document.getElementById("more").click()');
	return $browser->js(<<'END');
(() => { const heads = [...document.querySelectorAll('#columns th')].map(head => head.dataset.name);
  return [...document.querySelectorAll('#rows tr.row')].map(row => Object.fromEntries([...row.children].map((cell, i) =>
    [heads[i], cell.dataset.n === undefined ? cell.querySelector('button')?.title ?? cell.textContent : Number(cell.dataset.n)]))); })()
END
}

sub status { return $browser->js('({ ...document.getElementById("status").dataset })') }
sub sums { my ($node) = @_; return join ' ', map { $node->{$_} } qw(old new up down) }
sub value { my ($expression) = @_; return $browser->js($expression) }
sub hash_of { return value('location.hash') }

sub check_table {
	show();
	my $table = table();
	is(scalar @$table, scalar @rows, 'as many');
	is_deeply([map { [@$_{qw(growth blocks old new)}] } @$table],
		[map { [$_->{growth}{bytes}, $_->{growth}{blocks}, $_->{old}{bytes}, $_->{new}{bytes}] } @rows], 'their numbers, in its order');
	is(scalar(grep { my $name = $table->[$_]{name}; !grep { $_ eq $name } names($rows[$_]) } 0 .. $#rows), 0, 'each by one of its frames');
	my %files = map { my $frame = $_; my $name = ($frame->{file} // '') =~ s{.*[\\/]}{}sr; ("$name:" . ($frame->{line} // '')) => 1 } map { @{ $_->{frames} // [] } } @rows;
	is_deeply([grep { $_ ne '' && !$files{$_} } map { $_->{file} } @$table], [], 'with the name of its file alone');
	is(value('document.querySelectorAll("img, iframe, script:not([type])").length'), 1, 'no name became an element');
	is(value('document.documentElement.scrollWidth <= innerWidth'), JSON::PP::true, 'no name is wider than the page');
	return;
}

sub check_graph {
	for my $order (qw(down up)) {
		my $tree = tree($order);
		show("#o=$order");
		is(sums(status()), sums($tree->{''}), "$order: everything");
		value('document.getElementById("graph").focus()');
		my (@path, $seen);
		for my $step (1 .. 4) {
			$browser->key('ArrowDown');
			my $status = status();
			push @path, $status->{label};
			my $node = $tree->{ join "\0", @path } or last;
			$seen++;
			is(sums($status), sums($node), "$order: " . substr join(' > ', @path), 0, 60);
			my @kids = grep { join("\0", @path[0 .. $#path - 1], '') eq substr $_, 0, length(join "\0", @path[0 .. $#path - 1], '') and tr/\0// == $#path } grep { $_ ne '' } keys %$tree;
			my ($most) = sort { $b <=> $a } map { $tree->{$_}{up} + $tree->{$_}{down} } $#path ? @kids : grep { $_ ne '' && !/\0/ } keys %$tree;
			is($node->{up} + $node->{down}, $most, 'the widest one');
			last if $step == 4 || !grep { index($_, join("\0", @path) . "\0") == 0 } keys %$tree;
		}
		cmp_ok($seen, '>', 1, "$order: some way down");
	}
	# Checks widths: below a place in the second line is the node whose sums reach that place.
	show();
	my @top = sort { width($b) <=> width($a) } grep { $_ ne '' && !/\0/ } keys %$all;
	my $at = 0;
	for my $name (@top[0 .. ($#top > 2 ? 2 : $#top)]) {
		my $share = width($name) / width('');
		next if $share < 0.02;
		for my $x ($at + 0.005, $at + $share - 0.005) {
			$browser->point('#graph', sprintf('%.5f', $x), 30, 'mouseMoved');
			is(status()->{label}, $name, sprintf 'at %.3f of the width', $x);
		}
		$at += $share;
	}
	return;
}

sub width { return $all->{ $_[0] }{up} + $all->{ $_[0] }{down} }

sub check_sorting {
	show();
	for (['blocks', 1], ['old', 1], ['name', 0]) {
		my ($column, $is_number) = @$_;
		$browser->click("th[data-name=$column] button");
		my @found = map { $_->{$column} } @{ table() };
		is_deeply(\@found, [$is_number ? sort { $b <=> $a } @found : @found], "by $column") if $is_number;
		is(scalar @found, scalar @rows, "$column: all are there");
		is(value("document.querySelector('th[data-name=$column]').getAttribute('aria-sort')"), $is_number ? 'descending' : 'ascending', 'and says so');
		$browser->click("th[data-name=$column] button");
		is_deeply([map { $_->{$column} } @{ table() }], $is_number ? [sort { $a <=> $b } @found] : [reverse sort @found], "$column the other way") if $is_number;
	}
	return;
}

sub check_search {
	show();
	$browser->key('/');
	$browser->type('PARSE|#z=');
	my @found = grep { grep { /parse|#z=/i } names($_), map { $_->{file} // '' } @{ $_->{frames} } } @rows;
	value('new Promise(done => setTimeout(done, 50))');
	is_deeply([map { $_->{growth} } @{ table() }], [map { $_->{growth}{bytes} } @found], 'the rows that have it');
	my $part = 0;
	$part += abs $_->{growth}{bytes} for @found;
	my ($count, $share) = value('document.getElementById("found").value') =~ /^(\d+) stacks?, .*, ([\d.]+) %$/;
	is($count, scalar @found, 'how many');
	cmp_ok(abs($share - 100 * $part / width('')), '<', 0.06, 'and their share');
	value('(() => { const field = document.getElementById("search"); field.value = "(("; field.dispatchEvent(new Event("input")); return new Promise(done => setTimeout(done, 50)) })()');
	is(value('document.getElementById("search").getAttribute("aria-invalid")'), 'true', 'what is none is said');
	is(scalar @{ table() }, scalar @rows, 'and hides nothing');
	return;
}

sub check_zoom {
	show();
	my ($widest) = sort { width($b) <=> width($a) } grep { $_ ne '' && !/\0/ } keys %$all;
	$browser->point('#graph', 5, 30);
	is(status()->{label}, $widest, 'a click zooms in');
	my @inside = grep { (reverse names($_))[0] eq $widest } @rows;
	is_deeply([map { $_->{growth} } @{ table() }], [map { $_->{growth}{bytes} } @inside], 'the table has what is in it');
	$browser->key('Escape');
	is(status()->{label}, '(all that changed)', 'Escape zooms out');
	value('document.getElementById("graph").focus()');
	$browser->key('ArrowDown', 'ArrowDown', 'Enter');
	is(value('new URLSearchParams(location.hash.slice(1)).getAll("z").length'), 2, 'keys go down two, and zoom');
	$browser->key('Backspace');
	is(status()->{label}, $widest, 'Backspace goes out by one');
	$browser->click('#out');
	is(status()->{label}, '(all that changed)', 'the button by the next');
	is(scalar @{ table() }, scalar @rows, 'all rows again');
	return;
}

sub check_groups {
	for my $group (qw(module function)) {
		show("#g=$group");
		my $wanted = $json->decode(run(["$root/build/linux/hdiff", '-o', 'json', '--group', $group, @dumps])->{out});
		my %found = map { $_->{name} => "$_->{growth} $_->{blocks} $_->{old} $_->{new}" } @{ table() };
		is(scalar keys %found, scalar @{ $wanted->{groups} }, "$group: as many") or diag(join ' | ', sort keys %found);
		is_deeply(\%found, { map { my $sum = $_->{total}; $_->{name} => "$sum->{growth}{bytes} $sum->{growth}{blocks} $sum->{old}{bytes} $sum->{new}{bytes}" } @{ $wanted->{groups} } },
			"$group: their totals");
	}
	return;
}

# Returns { LEVEL, name, old, new } of the lines of the call tree.
sub tree_lines {
	return @{ value(<<'END') };
(() => { while (!document.getElementById('more').hidden) document.getElementById('more').click();
  const heads = [...document.querySelectorAll('#columns th')].map(head => head.dataset.name);
  return [...document.querySelectorAll('#rows tr.row')].map(row => Object.fromEntries([['level', Number(row.getAttribute('aria-level') ?? 1)],
    ...[...row.children].map((cell, i) => [heads[i], cell.dataset.n === undefined ? cell.querySelector('button')?.title ?? cell.textContent : Number(cell.dataset.n)])])); })()
END
}

sub check_tree {
	for my $order (qw(down up)) {
		my $tree = tree($order);
		show("#g=tree&o=$order");
		# Unfolds all.
		value('for (let i = 0; i < 200; i++) { const line = [...document.querySelectorAll("#rows [aria-expanded=false]")][0]; if (!line) break; line.click(); }');
		my (@path, @wrong, $count);
		for my $line (tree_lines()) {
			splice @path, ($line->{level} // 1) - 1;
			push @path, $line->{name};
			my $node = $tree->{ join "\0", @path[1 .. $#path] };
			$count++;
			push @wrong, "@path" if !$node || "$line->{old} $line->{new}" ne "$node->{old} $node->{new}";
		}
		cmp_ok($count, '>', 30, "$order: lines");
		is_deeply(\@wrong, [], '... with their sums');
	}
	return;
}

# Keys reach heads and rows, and the focus stays where it is.
sub check_table_keys {
	my $focused = sub { return value('(e => e.closest("th")?.dataset.name ?? e.title)(document.activeElement)') };
	show();
	is(value('document.getElementById("table").role'), 'table', 'a table');
	value('document.querySelector("th[data-name=old] button").focus()');
	$browser->key('Enter', 'Enter');
	is($focused->() . value('document.querySelector("th[data-name=old]").ariaSort'), 'oldascending', 'sorted twice at the same head');
	value('document.querySelector("#rows button").focus()');
	$browser->key('ArrowRight', 'ArrowDown', 'ArrowDown', 'ArrowUp', 'ArrowUp');
	is(value('document.activeElement.ariaExpanded'), 'true', 'a row is opened');
	is_deeply(value('[...document.querySelectorAll("#rows tr")].map(row => row.className).slice(0, 3)'), ['row open', 'stack', 'row'], '... and arrows pass over its stack');
	$browser->key('ArrowLeft');
	is(value('document.querySelectorAll("#rows tr.stack").length'), 0, '... and closed');

	show('#g=tree');
	is(value('document.getElementById("table").role'), 'treegrid', 'a tree');
	value('document.querySelector("#rows button").focus()');
	$browser->key('ArrowDown');
	my ($name) = map { $_->{name} } (tree_lines())[1];
	is($focused->(), $name, 'the second line');
	my $count = tree_lines();
	$browser->key('ArrowRight');
	cmp_ok(scalar tree_lines(), '>', $count, '... unfolds');
	is($focused->() . ' ' . value('document.activeElement.closest("tr").ariaExpanded'), "$name true", '... and keeps the focus');
	$browser->key('ArrowLeft');
	is(scalar tree_lines(), $count, '... and folds');
	return;
}

# No control is cut, broken into lines, or over another one.
sub check_every_width {
	for my $width (400, 800, 1400) {
		$browser->size($width, 900);
		show();
		is(value('document.documentElement.scrollWidth <= innerWidth'), JSON::PP::true, "$width pixels: nothing is wider than the page");
		my ($cut, $lines, $over) = @{ value(<<'END') };
(() => { const all = [...document.querySelectorAll('button, select, input[type=search], #tools label')].filter(e => e.offsetParent && !e.closest('#wide'));
  const box = e => e.getBoundingClientRect(), name = e => e.id || e.textContent;
  return [all.filter(e => box(e).left < 0 || box(e).right > innerWidth), all.filter(e => e.matches('button') && box(e).height > 34),
    all.filter(a => all.some(b => a !== b && !a.contains(b) && !b.contains(a) && box(a).left + 1 < box(b).right - 1 && box(b).left + 1 < box(a).right - 1
      && box(a).top + 1 < box(b).bottom - 1 && box(b).top + 1 < box(a).bottom - 1))].map(list => list.map(name)); })()
END
		is_deeply([$cut, $lines, $over], [[], [], []], "$width pixels: nothing is cut, broken or covered");
	}
	$browser->size;
	return;
}

sub check_around {
	my ($name) = grep { /parse/ } map { name_of($_) } map { @{ $_->{frames} // [] } } @rows;
	my @with = grep { grep { $_ eq $name } names($_) } @rows;
	for my $order (qw(down up)) {
		$browser->open_page($url . "#o=$order&f=" . $name =~ s/([^\w])/sprintf '%%%02X', ord $1/ger);
		$browser->drawn;
		my ($old, $new) = (0, 0);
		$old += $_->{old}{bytes}, $new += $_->{new}{bytes} for @with;
		is(join(' ', @{ status() }{qw(old new)}), "$old $new", "$order: the sums of all stacks with it");
		value('document.getElementById("graph").focus()');
		$browser->key('ArrowDown');
		is(status()->{label}, $name, '... it is the only root');
		is(join(' ', @{ status() }{qw(old new)}), "$old $new", '... of all of them');
	}
	value('document.getElementById("around").click()');
	is(join(' ', @{ status() }{qw(old new)}), "$all->{''}{old} $all->{''}{new}", 'and back');
	return;
}

sub check_hidden {
	show('#h=1&g=tree');
	value('for (let i = 0; i < 400; i++) { const line = [...document.querySelectorAll("#rows [aria-expanded=false]")][0]; if (!line) break; line.click(); }');
	my @names = map { $_->{name} } tree_lines();
	is_deeply([grep { /!(?:malloc|operator new)$/ } @names[1 .. $#names]], [], 'no allocators');
	my $tree = tree('down');
	cmp_ok(scalar(grep { /!malloc/ } keys %$tree), '>', 0, 'which the stacks have');
	is(join(' ', @{ status() }{qw(old new)}), "$all->{''}{old} $all->{''}{new}", 'the sums stay');
	return;
}

sub check_copy {
	show('#e=' . 'vscode%3A%2F%2Ffile%2F%7Bfile%7D%3A%7Bline%7D');
	$browser->click('#copy-table');
	my @lines = split /\n/, value('document.getElementById("copied").dataset.text');
	is(scalar @lines, 1 + @rows, 'a line for each row, and the heads');
	is_deeply([(split /\t/, $lines[0])[0 .. 3]], [qw(Growth Blocks Old New)], 'the heads');
	value('document.querySelectorAll("#rows tr.row").forEach(row => row.click())');
	my @links = @{ value('[...document.querySelectorAll("#rows a")].map(link => link.href)') };
	cmp_ok(scalar @links, '>', 0, 'places are links');
	is_deeply([grep { !m{^vscode://file/.+:\d+$} } @links], [], '... to the source');
	show('#e=javascript%3Aalert(%7Bfile%7D)');
	value('document.querySelectorAll("#rows tr.row").forEach(row => row.click())');
	is(value('document.querySelectorAll("#rows a").length'), 0, 'no script is a link');
	return;
}

sub check_links {
	show();
	$browser->click('#rows tr.row:nth-child(1) td:nth-child(2)');
	is_deeply(value('[...document.querySelectorAll("#rows tr.stack li")].map(e => e.firstChild.textContent)'), [names($rows[0])], 'a click shows the stack');
	is(value('document.querySelector("#rows .row button").getAttribute("aria-expanded")'), 'true', 'and says so');
	$browser->click('tr.stack button');
	is_deeply(value('new URLSearchParams(location.hash.slice(1)).getAll("z")'), [reverse names($rows[0])], 'its button leads there in the graph');
	ok((grep { $_->{growth} == $rows[0]{growth}{bytes} } @{ table() }), 'where the row is in the table');
	return;
}

sub check_address {
	show();
	my ($widest) = sort { width($b) <=> width($a) } grep { $_ ne '' && !/\0/ } keys %$all;
	$browser->click('#metric label:last-of-type');
	$browser->click('#show label:last-of-type');
	$browser->point('#graph', 5, 30);
	$browser->click('th[data-name=old] button');
	$browser->key('/');
	$browser->type('[a-z]');
	value('new Promise(done => setTimeout(done, 50))');
	my $hash = hash_of();
	my $before = [status(), table(), value('document.getElementById("found").value')];
	like($hash, qr/m=blocks/, 'it holds what was chosen');
	show($hash);
	is_deeply([status(), table(), value('document.getElementById("found").value')], $before, 'and brings it back');
	is(hash_of(), $hash, 'as it was');
	show('#v=99&m=%3Cimg%3E&w=%00&a=-5&z=%3Cscript%3E&s=nothing&q=%5B&o=x&g=__proto__&c=pink&t=x,9');
	is(scalar @{ table() }, scalar @rows, 'what makes no sense is passed over');
	return;
}

sub check_themes {
	for my $theme (qw(light dark)) {
		$browser->media(scheme => $theme);
		show();
		my $other = $theme eq 'light' ? 'dark' : 'light';
		my $lit = sub { my ($paper) = value('getComputedStyle(document.body).backgroundColor') =~ /(\d+)/; return $paper > 128 ? 'light' : 'dark' };
		is($lit->(), $theme, "$theme where the system is");
		my $pixel = '(() => { const copy = document.createElement("canvas").getContext("2d", { willReadFrequently: true }); copy.drawImage(document.getElementById("graph"), -600, -8); return copy.getImageData(0, 0, 1, 1).data[0] })()';
		my $before = value($pixel);
		$browser->click('#theme');
		is($lit->(), $other, "the switch makes it $other");
		isnt(value($pixel), $before, 'the graph, too');
		show(hash_of());
		is($lit->(), $other, 'and the address keeps it');
	}
	$browser->media;
	return;
}

# Checks the text's contrast on the deepest colours. WCAG requires at least 4.5 between the
# luminances of the text and its background.
sub check_contrast {
	my ($up, $down) = map { [series(fresh_dir(), [1763632800000, 1763634600000], { leak => $_ })] } [1000, 90_000], [90_000, 1000];
	my %reports = (grown => $up, shrunk => $down, live => [$up->[1]]);
	for my $theme (qw(light dark)) {
		for my $kind (sort keys %reports) {
			local ($url, $report) = page_of(@{ $reports{$kind} });
			show("#c=$theme");
			my ($ink, $box) = map { luminance(@$_) } @{ value(<<'END') };
(() => { const copy = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const read = () => [...copy.getImageData(0, 0, 1, 1).data].slice(0, 3);
  copy.fillStyle = getComputedStyle(document.body).color; copy.fillRect(0, 0, 1, 1); const ink = read();
  copy.drawImage(document.getElementById('graph'), -600, -8); return [ink, read()]; })()
END
			my $ratio = $ink > $box ? ($ink + 0.05) / ($box + 0.05) : ($box + 0.05) / ($ink + 0.05);
			cmp_ok($ratio, '>=', 4.5, "$kind, $theme");
		}
	}
	return;
}

sub luminance {
	my @parts = map { $_ / 255 } @_;
	@parts = map { $_ <= 0.04045 ? $_ / 12.92 : (($_ + 0.055) / 1.055)**2.4 } @parts;
	return 0.2126 * $parts[0] + 0.7152 * $parts[1] + 0.0722 * $parts[2];
}

sub check_vanished {
	my @two = series(fresh_dir(), [1763632800000, 1763634600000], { came => [0, 3000], gone => [1000, 0], same => [500, 500] });
	local ($url, $report) = page_of(@two);
	show();
	# Below the function that calls both stacks, the new stack has three quarters of the width,
	# and the vanished stack has the rest.
	my $lines = value('document.getElementById("graph").clientHeight') / 20;
	for my $x (0.01, 0.74, 0.76, 0.99) {
		$browser->point('#graph', sprintf('%.3f', $x), 20 * $lines - 10, 'mouseMoved');
		is(status()->{label}, $x < 0.75 ? 'app!came' : 'app!gone', "at $x of the width");
	}
	is(join(' ', @{ status() }{qw(old new)}), '1000 0', 'with what it had');
	$browser->click('#show label:nth-of-type(2)');
	is(status()->{old}, 1000 + 500 * grep({ $_->{new}{bytes} == 500 } @{ $report->{rows} }), 'before: all that was there and changed');
	return;
}

sub check_paper {
	if ($browser->isa('Chromium')) {
		$browser->ask('Emulation.setScriptExecutionDisabled', { value => JSON::PP::true });
		$browser->open_page($url);
		my $document = $browser->ask('DOM.getDocument');
		my $found = $browser->ask('DOM.querySelectorAll', { nodeId => $document->{root}{nodeId}, selector => 'noscript td:first-child' });
		is(scalar @{ $found->{nodeIds} }, scalar @rows, 'without scripts there is the table');
		$browser->ask('Emulation.setScriptExecutionDisabled', { value => JSON::PP::false });
	}
	show();
	$browser->media(medium => 'print');
	is(value('getComputedStyle(document.getElementById("tools")).display'), 'none', 'on paper there are no buttons');
	$browser->media;
	$browser->size(1400, 900);
	show('#c=dark');
	my $shape = '(canvas => [canvas.width / devicePixelRatio, canvas.clientHeight])(document.getElementById("graph"))';
	my $before = value($shape);
	value("addEventListener('beforeprint', () => { window.printed = $shape; })");
	my $pages = $browser->pdf;
	like($pages, qr/\A%PDF-.*%%EOF\s*\z/s, 'it prints');
	is(value('window.printed[0]'), 1400, 'the graph is drawn for a page of 700 pixels, twice as sharp');
	$browser->drawn;
	is_deeply(value($shape), $before, 'and for the screen again');
	is(value('document.documentElement.dataset.theme'), 'dark', '... in its colours');
	$browser->size;
	return;
}

sub check_folded {
	my @files = map { spew("$dir/page$_.folded", "main;leak " . 1000 * $_ . "\nmain;other 5\n") } 1 .. 3;
	for my $inputs ([@files[0, 1]], \@files) {
		local ($url, $report) = page_of(@$inputs);
		show('#m=blocks');
		is_deeply([grep { /block/i } @{ value('[...document.querySelectorAll("th")].map(head => head.textContent)') }], [], 'no such column');
		is(value('document.getElementById("metric").hidden'), JSON::PP::true, 'none to choose');
		like(value('document.querySelector(".totals").textContent'), qr/^\+@{[1000 * $#$inputs]} bytes, \? blocks/, 'the sum');
		like(value('document.querySelector("tbody").textContent'), qr/leak/, 'a row');
	}
	return;
}

sub check_one {
	local ($url, $report) = page_of($dumps[1]);
	local @rows = @{ $report->{rows} };
	show();
	my $table = table();
	is_deeply([map { [@$_{qw(new blocks)}] } @$table], [map { [@{ $_->{new} }{qw(bytes blocks)}] } @rows], 'what there is');
	my $sum = 0;
	$sum += $_->{new}{bytes} for @rows;
	is(status()->{new}, $sum, 'and all of it');
	is(value('document.getElementById("show").hidden'), JSON::PP::true, 'there is no growth to choose');
	return;
}

sub check_trend {
	my %leaks = (leak => [map { 1000 + 500 * $_ } 0 .. 9], '</script>' => [map { $_ % 2 ? 900 : 300 } 0 .. 9], gone => [map { $_ < 5 ? 4000 : 0 } 0 .. 9]);
	local ($url, $report) = page_of(series($dir, [map { 1763632800000 + 1_800_000 * $_ } 0 .. 9], \%leaks));
	show();
	my @series = @{ $report->{series}[0]{rows} };
	is_deeply([map { [@$_{qw(growth verdict)}] } @{ table() }], [map { [@{ $_->{trend} }{qw(net_bytes verdict)}] } @series], 'net growth and verdicts');
	like(value('document.getElementById("verdict").textContent'), qr/^Series 1: \Q@{[$report->{series}[0]{trend}{verdict} =~ tr,-, ,r]}\E/, 'the verdict of all');
	# Selects the second snapshot to the third from the end with the pointer.
	my @x = map { sprintf '%.5f', (76 + 914 * $_ / 9) / 1000 } 1, 7;
	my $narrow = sub { return (sprintf('%.5f', 0.5 + ($_[0] - 0.5) * value('(() => { const r = document.getElementById("chart").getBoundingClientRect(); return Math.min(r.width / 1000, r.height / 180) * 1000 / r.width })()')), '0.4') };
	$browser->point('#chart', $narrow->($x[0]), qw(mouseMoved mousePressed));
	$browser->point('#chart', $narrow->($x[1]), 'mouseMoved');
	$browser->point('#chart', $narrow->($x[1]), 'mouseReleased');
	my %wanted = map { $_->{frames}[0]{function} => $_->{bytes}[7] - $_->{bytes}[1] } @series;
	is_deeply({ map { $_->{name} =~ s/^app!//r => $_->{growth} } @{ table() } }, \%wanted, 'brushing: the growth between its ends');
	my $status = status();
	my ($up, $down) = (0, 0);
	$_ < 0 ? ($down -= $_) : ($up += $_) for values %wanted;
	is("$status->{up} $status->{down}", "$up $down", 'in the graph, too');
	like(hash_of(), qr/a=1&b=7/, 'and in the address');
	check_widths();
	$browser->click('#whole');
	is(value('document.getElementById("net").dataset.n'), $report->{series}[0]{trend}{net_bytes}, 'all of it again');
	return;
}

# Checks that names can be read in a window of 1,000 pixels, and that no column covers another
# column.
sub check_widths {
	$browser->size(1000, 800);
	$browser->drawn;
	cmp_ok(value('document.querySelector("td.name").clientWidth'), '>', 150, 'there is room for names');
	is(value('[...document.querySelectorAll("#columns th")].filter(head => head.firstChild.getBoundingClientRect().right > head.getBoundingClientRect().right + 1).length'),
		0, 'no title is over the next');
	is(value('document.documentElement.scrollWidth <= innerWidth'), JSON::PP::true, 'and the page is no wider than the window');
	$browser->size;
	return;
}

sub check_recording {
	my ($files) = make_random($dir, run => { seed => 1, events => 6000 });
	local ($url, $report) = page_of('--from', 'start', '--to', 'end', $files->{run});
	local @rows = grep { $_->{new}{blocks} } @{ $report->{rows} };
	show();
	is_deeply([map { [@$_{qw(allocated transient)}] } @{ table() }],
		[map { [$_->{window}{ai}{bytes}, $_->{window}{aifi}{bytes}] } @rows], 'what became of it');
	check_widths();
	is(value('[...document.querySelectorAll("header details")].map((d) => d.open + " " + d.querySelector("svg title").textContent).join()'),
		'false sizes of allocations', 'sizes');
	my @pages = map { run(["$root/build/linux/hdiff", @$_, '-o', 'html', $files->{run}])->{out} } [], ['--over-time'], ['--histogram'];
	is($pages[$_], $pages[0], 'a chart is a part of the same page') for 1, 2;
	return;
}

sub check_report_groups {
	local ($url, $report) = page_of('--group', 'module', @dumps);
	show();
	is_deeply([map { "$_->{name} $_->{growth} $_->{self}" } @{ table() }],
		[map { "$_->{name} $_->{total}{growth}{bytes} $_->{self}{growth}{bytes}" } @{ $report->{groups} }], 'as they are');
	is(value('document.getElementById("flame").hidden'), JSON::PP::true, 'and no graph');
	return;
}

sub check_many {
	my @many = page_dumps(fresh_dir(), stacks => 25_000);
	local ($url, $report) = page_of('--no-symbols', @many);
	cmp_ok($report->{row_count}, '>', 20_000, 'so many rows');
	show();
	my $ready = value('Number(document.documentElement.dataset.ready)');
	note("$report->{row_count} rows, @{[-s substr($url, 7)]} bytes: ready after $ready ms");
	cmp_ok($ready, '<', 10_000, 'it is there');
	$browser->point('#graph', 5, 50);
	my $took = value('(() => { const began = performance.now(); document.getElementById("out").click(); return performance.now() - began })()');
	$browser->drawn;
	note("zooming out takes $took ms, drawing it ", value('document.getElementById("graph").dataset.ms'), ' ms');
	cmp_ok($took, '<', 5_000, 'and stays fluid');
	return;
}
