#!/usr/bin/perl
# -o markdown and --annotate, for the pages of build servers. The numbers are those of profiles that
# this test writes.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;
use Profile;
use Series;

my $dir = fresh_dir();
my $hdiff = "$root/build/linux/hdiff";
my $main = ['app', 0x401000, ['main', 'C:\\build\\src\\main.c', 9]];
my @evil = ('</code></td></table>', "a\n\n# b", '<script>alert(1)</script>', '| x |', '[x](http://y)', '@user', '`code`', '&amp;', '![x](y)', ' ', "\t", '<!--', '</pre>', '::error::x', 'a,b:c%d');

sub hdiff { return run([$hdiff, @_]) }

# Writes a profile. Stack I has I * $times blocks of 1000 bytes, and one block more.
sub made {
	my ($name, $count, $times, $functions, @head) = @_;
	return spew("$dir/$name.pb", profile(types => [['inuse_objects', 'count'], ['inuse_space', 'bytes']], samples => [map {
		[[1 + $_ * $times, 1000 + 1000 * $_ * $times], [['libc.so.6', 0x400010, ['malloc', '', 0]], ['app', 0x401000 + 16 * $_, [$functions ? $functions->[$_ - 1] : "leak$_", "C:\\build\\src\\f$_.c", 10 + $_]], $main]]
	} 1 .. $count], head => join '', @head));
}

# Returns the rows of the table, and the details as [SUMMARY, FRAME...], without markup.
sub parts {
	my ($text) = @_;
	my $plain = sub { $_[0] =~ s/<[^>]+>/ /gr =~ s/ +/ /gr =~ s/^ | $//gr };
	return ([map { [map { $plain->($_) } m{<td[^>]*>(.*?)</td>}g] } $text =~ m{<tr>(<td.*?)</tr>}g],
		[map { [$plain->($_->[0]), split /\n/, $_->[1]] } map { [m{<summary>(.*?)</summary><pre>\n(.*?)</pre>}s] } $text =~ m{<details>(.*?)</details>}gs]);
}

# Every block is HTML, so Markdown has no syntax in it, and there is only known markup.
sub check_blocks {
	my ($text, $what) = @_;
	my @blocks = split /\n(?:[ \t]*\n)+/, $text;
	is_deeply([grep { !/\A<(?:h3|p|table|details)>/ } @blocks], [], "$what: all blocks are HTML");
	for my $block (@blocks) {
		my (@open, @bad);
		while ($block =~ m{<(/?)([^<> ]*)([^<>]*)>}g) {
			my ($end, $name, $rest) = ($1, $2, $3);
			push @bad, "$name$rest" if $name !~ /^(?:h3|p|br|table|tr|th|td|code|details|summary|pre)$/ || ($rest ne '' && $rest ne ' align="right"');
			push @open, $name if !$end && $name ne 'br';
			push @bad, "/$name" if $end && (pop(@open) // '') ne $name;
		}
		is_deeply([@bad, @open, grep { !/^(?:amp|lt|gt|quot|#\d+|#x\w+)$/ } $block =~ /&([^;]*);?/g], [], "$what: only known markup") or diag($block);
	}
	return;
}

subtest 'two dumps' => sub {
	my @files = (made('old', 30, 0), made('new', 30, 1));
	my $result = hdiff('-o', 'markdown', @files);
	is("$result->{status} $result->{err}", '0 ', 'status 0');
	my ($rows, $details) = parts($result->{out});
	check_blocks($result->{out}, 'two dumps');
	like($result->{out}, qr{\A<h3>\+454\.1 KiB, \+465 blocks</h3>\n<p>Growth from <code>\S+old\.pb</code> to <code>\S+new\.pb</code></p>\n}, 'the head');
	is_deeply($rows->[0], ['+29.3 KiB', '+30', 'app!leak30 (C:\\build\\src\\f30.c:40)'], 'the first row');
	is_deeply([map { $_->[1] } @$rows], [map { "+$_" } reverse 11 .. 30], 'twenty rows');
	like($result->{out}, qr{^<p>10 more are not shown\.</p>$}m, 'the other rows');
	is_deeply($details->[2], ['+27.3 KiB, +28 blocks: app!leak28 (C:\\build\\src\\f28.c:38)', 'at libc.so.6!malloc', 'at app!leak28  C:\\build\\src\\f28.c:38', 'at app!main  C:\\build\\src\\main.c:9'], 'a stack');
	is(scalar @$details, 3, 'the first stacks');
	is_deeply([(parts(hdiff('-o', 'markdown', '-n', 2, @files)->{out}))[0][1][1], scalar @{ (parts(hdiff('-o', 'markdown', '-n', 2, @files)->{out}))[0] }], ['+29', 2], '-n');
	like(hdiff('-o', 'markdown', $files[0], made('same', 30, 0))->{out}, qr{^<p>No stack changed\.</p>$}m, 'nothing grew');
	my $one = hdiff('-o', 'markdown', $files[1])->{out};
	like($one, qr{\A<h3>483\.4 KiB, 495 blocks</h3>\n<p>Memory in <code>\S+new\.pb</code></p>\n}, 'one dump');
	check_blocks($one, 'one dump');
	my $groups = hdiff('-o', 'markdown', '--group', 'function', '--sort', 'total', '-n', 1, @files)->{out};
	is_deeply([parts($groups)], [[['+454.1 KiB', '+465', 'app!main']], []], 'groups');
	check_blocks($groups, 'groups');
};

subtest 'a trend' => sub {
	my @files = map { made("trend$_", 2, $_, undef, field(9, (1763632800 + 3600 * $_) * 1_000_000_000)) } 1 .. 4;
	my $text = hdiff('-o', 'markdown', @files)->{out};
	like($text, qr{\A<h3>\+8\.8 KiB, \+9 blocks, grows</h3>\n<p>Growth from .*, 4 snapshots</p>}, 'the head');
	is_deeply((parts($text))[0], [['+5.9 KiB', '+6', 'grows', 'app!leak2 (C:\\build\\src\\f2.c:12)'], ['+2.9 KiB', '+3', 'grows', 'app!leak1 (C:\\build\\src\\f1.c:11)']], 'verdicts');
	check_blocks($text, 'a trend');
};

subtest 'the balance' => sub {
	my @dumps = map { my $times = $_; spew("$dir/balance$_.txt", series_dump(1763632800000 + $_, { leak => [1000 * $_, $_] }) =~ s{^(// hsnap: stacks.*\n)}{$1// hsnap: memory private=@{[1048576 * $times]}\r\n}mr) } 1, 2;
	my $text = hdiff('-o', 'markdown', @dumps)->{out};
	like($text, qr{</code><br>\nthe system counts \+1\.0 MiB of private bytes</p>}, 'a line') or diag($text);
	check_blocks($text, 'the balance');
};

subtest 'hostile names' => sub {
	my @files = map { made("evil$_", scalar @evil, $_, \@evil) } 0, 1;
	my $text = hdiff('-o', 'markdown', @files)->{out};
	check_blocks($text, 'hostile names');
	is(scalar(() = $text =~ /^<tr><td/mg), scalar @evil, 'a line for each');
	like($text, qr{<code>app!&lt;/code&gt;&lt;/td&gt;&lt;/table&gt; \(}, 'a name');
	my @lines = grep { /^::/ } split /\n/, hdiff('--annotate', '--max-growth', 0, @files)->{err};
	is_deeply([grep { !/^::error file=C%3A\/build\/src\/f\d+\.c,line=\d+,title=memory growth::\+\d+ bytes, \+\d+ blocks?: app!/ } @lines], [], 'annotations');
	is(scalar @lines, 10, 'ten lines');
	like("@lines", qr/: app!::error::x \(C:/, 'a message may have colons');
	like("@lines", qr/: app!a,b:c%25d \(C:/, 'a per cent sign');
};

subtest 'annotations' => sub {
	my @files = (made('old', 30, 0), made('new', 30, 1));
	my $ask = sub {
		my $result = hdiff('-o', 'json', '--annotate', @_, @files);
		return ($result->{status}, join ' ', map { /^::error file=\S+f(\d+)\.c,/ ? $1 : '?' } grep { /^::/ } split /\n/, $result->{err});
	};
	is_deeply([$ask->('--max-growth', 465000)], [0, ''], 'growth at the limit');
	is_deeply([$ask->('--max-growth', 464999)], [1, join ' ', reverse 21 .. 30], 'growth over the limit: the ten that grew most');
	is_deeply([$ask->('--max-growth-row', 27000)], [1, '30 29 28'], 'stacks over the limit of a stack');
	is_deeply([$ask->('--max-growth-row', '1M,28')], [1, '30 29'], 'by blocks');
	is_deeply([$ask->('--max-growth-row', 27000, '--max-growth-net', 1)], [1, join ' ', reverse 21 .. 30], 'both limits');
	my ($line) = hdiff('--annotate', '--max-growth-row', 29500, @files)->{err} =~ /^(::.*)$/m;
	is($line, '::error file=C%3A/build/src/f30.c,line=40,title=memory growth::+30000 bytes, +30 blocks: app!leak30 (C:\\build\\src\\f30.c:40)', 'a line');
	for my $workspace ('C:\\build', 'c:/build') {
		local $ENV{GITHUB_WORKSPACE} = $workspace;
		like(hdiff('--annotate', '--max-growth-row', 29500, @files)->{err}, qr/^::error file=src\/f30\.c,line=40,/m, "relative to $workspace");
	}
	local $ENV{GITHUB_WORKSPACE} = 'C:\\buil';
	like(hdiff('--annotate', '--max-growth-row', 29500, @files)->{err}, qr/^::error file=C%3A\/build\/src\/f30\.c,/m, 'another folder');
	is(hdiff('--annotate', '--max-growth', 1, map { spew("$dir/no$_.folded", "main;f " . 1000 * $_ . "\n") } 1, 2)->{err} =~ s/^hdiff: .*\n//gmr, "::error title=memory growth::+1000 bytes, ? blocks: f\n", 'without a file');
	like(hdiff('--annotate', @files)->{err}, qr/--annotate: .*needs a limit/, 'without a limit');
};
done_testing;
