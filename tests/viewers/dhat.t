#!/usr/bin/perl
# hdiff -o dhat in Valgrind's viewer. The viewer's own script builds a tree that has each stack with
# its bytes and blocks. The truth comes from the synthetic dumps.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use JSON::PP;
use List::Util qw(sum0);
use Test::More;
use Calls;
use Hunt;
use Pages;
use Viewers;

my $viewer = '/usr/libexec/valgrind/dh_view.js';
need_file($viewer, 'valgrind');
my $dir = fresh_dir();
my $json = JSON::PP->new->utf8;
spew("$dir/read.js", <<'END');
const fs = require('fs'), vm = require('vm');
const [viewer, file] = process.argv.slice(2);
const read = `
gSelect = { childNodes: gSelectData.map(() => ({})), selectedIndex: 0 };
gData = JSON.parse(text);
buildTree();
const leaves = [];
function walk(node, above) {
	const frames = above.concat(node._frames);
	if (node._kids) node._kids.forEach((kid) => walk(kid, frames));
	else leaves.push([frames.slice(1).map((i) => gData.ftbl[i]), node._totalBytes, node._totalBlocks]);
}
if (gData.pps.length) walk(gRoot, []);
JSON.stringify({ leaves, verb: gData.verb, te: gData.te, pid: gData.pid, root: gData.ftbl[0], bytes: gRoot._totalBytes, blocks: gRoot._totalBlocks });
`;
console.log(vm.runInNewContext(fs.readFileSync(viewer, 'utf8') + read, { text: fs.readFileSync(file, 'utf8'), console, document: {} }));
END

my @dumps = call_dumps($dir, 60, 'Document::parse(Reader *)', 'cache_fill', map { "f$_" } 1 .. 20);
my $grown = viewed(@dumps);
check($grown, 'growth', 'Grown, allocated', 5_400_000_000, map { $_->{bytes} > 0 ? [$_->{calls}, $_->{bytes}, $_->{blocks}] : () } call_rows());
my $one = viewed($dumps[1]);
check($one, 'one dump', 'Live, allocated', 5_400_000_000, map { $_->{new}[0] ? [$_->{calls}, @{ $_->{new} }] : () } call_rows());

my @hostile = page_dumps($dir);
my $hostile = viewed($hostile[1]);
my $wanted = $json->decode(run(["$root/build/linux/hdiff", '-o', 'json', $hostile[1]])->{out})->{totals}{all}{new};
is_deeply([@$hostile{qw(bytes blocks)}], [@$wanted{qw(bytes blocks)}], 'hostile names: all bytes and blocks');
unlike(join('', map { @{ $_->[0] } } @{ $hostile->{leaves} }), qr/[\x00-\x1f\x7f]/, 'no control characters');
is_deeply(viewed($dumps[0], spew("$dir/again.txt", slurp($dumps[0]) . "//\n"))->{leaves}, [], 'what did not change is nothing');
done_testing;

sub viewed {
	my (@files) = @_;
	my $file = "$dir/" . join('-', map { s{.*/}{}r =~ tr/a-z.//cdr } @files) . '.json';
	check_ok(run(["$root/build/linux/hdiff", '-o', 'dhat', '-f', $file, @files]), "hdiff -o dhat @files");
	my $result = run(node_with("$dir/read.js", $viewer, $file));
	is("$result->{status} $result->{err}", '0 ', 'the viewer reads it');
	return $json->decode($result->{out});
}

sub check {
	my ($got, $what, $verb, $us, @rows) = @_;
	is_deeply([sort map { join '|', @{ $_->[0] }, @$_[1, 2] } @{ $got->{leaves} }],
		[sort map { join '|', (map { call_module($_) . "!$_ (" . call_place($_) . ')' } 'RtlAllocateHeap', 'malloc', @{ $_->[0] }, @call_start),
			@$_[1, 2] } @rows], "$what: each stack, innermost first");
	is_deeply([@$got{qw(verb te pid root bytes blocks)}], [$verb, $us, 4242, '[root]', sum0(map { $_->[1] } @rows), sum0(map { $_->[2] } @rows)],
		"$what: what it is of");
	return;
}
