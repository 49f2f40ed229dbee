#!/usr/bin/perl
# The totals of each form of a report. Every printed sum and head line agrees with the sums of the
# dumps. Two dumps have stacks that grew, shrank, cancel each other, and did not change. Forms that
# show only changed stacks note that.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP qw(decode_json);
use List::Util qw(sum0);
use Test::More;
use Hunt;
use Pages;
use Series;

my $dir = fresh_dir();
my $hdiff = "$root/build/linux/hdiff";
# [BYTES, BLOCKS] by stack and dump.
my %stacks = (
	leak => [[1000, 10], [250_000, 60]],
	fresh => [[0, 0], [33, 1]],
	cache => [[7000, 7], [90, 3]],
	gone => [[40_000, 4], [0, 0]],
	steady => [[123_456, 12], [123_456, 12]],
	idle => [[500, 5], [500, 5]],
);
my @dumps = series($dir, [1763632800000, 1763636400000], \%stacks);
my @all = sort keys %stacks;
my @changed = grep { $stacks{$_}[0][0] != $stacks{$_}[1][0] } @all;

subtest 'two dumps' => sub { check_two(\@all, \@changed) };
subtest 'two dumps, some stacks' => sub { check_two((map { my $of = $_; [grep { /^(?:leak|gone|idle)$/ } @$of] } \@changed, \@changed), '-i', 'leak|gone|idle') };
subtest 'rows that shrink come first' => \&check_shrinking;
subtest 'groups of two dumps count what did not change, too' => \&check_groups;
subtest 'one dump' => \&check_one;
done_testing;

# One heap contains all stacks.
sub check_groups {
	my ($old, $new) = map { +{ bytes => sum_of($_, 0, @all), blocks => sum_of($_, 1, @all) } } 0, 1;
	for my $group (qw(heap memory)) {
		my ($said, @more) = @{ decode_json(hdiff('-o', 'json', '--group', $group, @dumps))->{groups} };
		is(@more, 0, "--group $group: one group");
		is_deeply([map { @{ $said->{self}{$_} }{qw(bytes blocks)} } qw(old new)], [map { @$_{qw(bytes blocks)} } $old, $new], 'json');
		my ($alone) = @{ decode_json(hdiff('-o', 'json', '--group', $group, $dumps[1]))->{groups} };
		is_deeply($said->{self}{new}, $alone->{self}{new}, 'as of NEW alone, with overhead');
		my ($line) = grep { /^-?\d/ } split /\r?\n/, hdiff('-d', '-o', 'csv', '--group', $group, @dumps);
		is_deeply([(split /,/, $line)[0 .. 5]], [map { ($new->{$_} - $old->{$_}, $new->{$_}, $old->{$_}) } qw(bytes blocks)], 'csv');
	}
	my $said = decode_json(hdiff('-o', 'json', '--group', 'function', @dumps));
	is_deeply([map { $_->{total}{new}{bytes} } grep { $_->{name} eq 'app!?' } @{ $said->{groups} }], [sum_of(1, 0, @changed)], 'a function has what changed');
	is_deeply([sort map { $_->{name} =~ /app!(\w+)/ } @{ $said->{groups} }], [sort @changed], 'what has only such stacks is not shown');
	is($said->{row_count}, scalar @changed, 'nor are these stacks');
	my @some = ('-o', 'json', '--group', 'heap', '-i', 'leak|idle', @dumps);
	is(decode_json(hdiff(@some))->{groups}[0]{total}{new}{bytes}, sum_of(1, 0, 'leak', 'idle'), 'of what is selected');
}

# If one of them grew, "the first 5" are a part of the growth, if they are shown.
sub check_shrinking {
	my %of = ((map { +"big$_" => [[90_000 + $_, 1], [80_000, 1]] } 1 .. 5), (map { +"small$_" => [[100, 1], [200 + $_, 1]] } 1 .. 6));
	my @ask = ('-o', 'text', '-n', 5, series(fresh_dir(), [1763632800000, 1763636400000], \%of));
	my $share = int(100 * sum0(map { 100 + $_ } 2 .. 6) / sum0(map { 100 + $_ } 1 .. 6) + 0.5);
	like(hdiff(@ask), qr/^6 stacks grew, 5 shrank; the first 5 make up $share %$/m, 'by growth');
	like(hdiff('--sort', 'old', @ask), qr/^6 stacks grew, 5 shrank$/m, 'by size before');
	like(hdiff(@ask, '-n', 4), qr/^6 stacks grew, 5 shrank$/m, 'not all are shown');
}

sub hdiff { return run([$hdiff, @_])->{out} }

sub sum_of { my ($dump, $what, @names) = @_; return sum0 map { $stacks{$_}[$dump][$what] } @names }

# Formats sizes such as "+1.5 KiB" as the report for people does.
sub size_text {
	my ($bytes) = @_;
	return "$bytes B" if $bytes < 1024;
	return sprintf '%.1f KiB', $bytes / 1024;
}

# Head lines count the selected stacks; rows are only the changed ones.
sub check_two {
	my ($selected, $rows, @options) = @_;
	my @ask = (@options, @dumps);
	my ($old, $new) = map { [sum_of($_, 0, @$selected), sum_of($_, 1, @$selected)] } 0, 1;
	my @growth = ($new->[0] - $old->[0], $new->[1] - $old->[1]);
	my ($grew, $shrank) = (0, 0);
	for my $name (@$rows) {
		my $change = sum_of(1, 0, $name) - sum_of(0, 0, $name);
		$change > 0 ? ($grew += $change) : ($shrank -= $change);
	}
	my ($rows_old, $rows_new) = map { sum_of($_, 0, @$rows) } 0, 1;

	my $totals = decode_json(hdiff('-o', 'json', @ask))->{totals}{selected};
	is_deeply([map { @{ $totals->{$_} }{qw(bytes blocks)} } qw(old new growth)], [@$old, @$new, @growth], 'json: totals');
	my $sign = $growth[0] < 0 ? '-' : '+';
	my $word = @options ? "selected" : "in all";
	for my $form ([], ['--tree'], ['--group', 'function']) {
		like(hdiff(@$form, @ask), qr/^$word: \Q$sign@{[size_text(abs $growth[0])]}\E, \Q@{[sprintf '%+d', $growth[1]]}\E blocks/m, "text @$form: $word");
	}
	like(hdiff('--tree', @ask), qr/^ +\Q$sign@{[size_text(abs $growth[0])]}\E +\Q@{[sprintf '%+d', $growth[1]]}\E +100 % +\(all\)$/m, 'tree: the root');
	like(hdiff('-d', '-o', 'umdh', @ask), qr/^Total increase == +\Q$growth[0]\E requested/m, 'umdh: the total') if $growth[0] > 0;

	my $page = hdiff('-o', 'html', @ask);
	my ($head) = $page =~ m{<p class="totals">(.*?)</p>};
	like($head =~ s/<[^>]*>//gr, qr/^\Q@{[sprintf '%+d bytes, %+d blocks', @growth]}\E: from $old->[0] to $new->[0] bytes, from $old->[1] to $new->[1] blocks/, 'html: the head');
	my $data = page_data($page);
	is(sum0(map { $_->{new}{bytes} } @{ $data->{rows} }), $rows_new, 'html: rows');

	my @lines = map { [split /,/] } grep { /^-?\d/ } split /\r?\n/, hdiff('-d', '-o', 'csv', @ask);
	is_deeply([map { my $at = $_; sum0 map { $_->[$at] } @lines } 0 .. 2], [$growth[0], $rows_new, $rows_old], 'csv: columns add up');
	my @folded = map { [/ (\d+) (\d+)$/] } split /\n/, hdiff('-o', 'folded', @ask);
	is_deeply([map { my $at = $_; sum0 map { $_->[$at] } @folded } 0, 1], [$rows_old, $rows_new], 'folded: columns add up');
	my %profile = map { $_->{name} => $_->{endValue} } @{ decode_json(hdiff('-o', 'speedscope', @ask))->{profiles} };
	is_deeply(\%profile, { Growth => $grew, Shrink => $shrank, 'New, of stacks that changed' => $rows_new, 'Old, of stacks that changed' => $rows_old },
		'speedscope: each profile has what its name promises');
	is(sum0(map { $_->{tb} } @{ decode_json(hdiff('-o', 'dhat', @ask))->{pps} }), $grew, 'dhat: what grew');
	like(hdiff('-o', 'svg', @ask), qr/<title>all that changed: \Q@{[sprintf '%+d', $growth[0]]}\E bytes \($rows_new - $rows_old\), grew $grew, shrank $shrank, 100 %</,
		'svg: the root');
	return;
}

sub check_one {
	my ($bytes, $blocks) = map { sum_of(1, $_, @all) } 0, 1;
	my $totals = decode_json(hdiff('-o', 'json', $dumps[1]))->{totals}{selected};
	is_deeply([@{ $totals->{new} }{qw(bytes blocks)}], [$bytes, $blocks], 'json');
	like(hdiff($dumps[1]), qr/^in all: \Q@{[size_text($bytes)]}\E, $blocks blocks/m, 'text');
	like(hdiff('-o', 'html', $dumps[1]), qr{<p class="totals"><b>$bytes</b> bytes in <b>$blocks</b> blocks</p>}, 'html');
	like(hdiff('-o', 'svg', $dumps[1]), qr/<title>all: $bytes bytes, 100 %</, 'svg');
	my ($profile) = @{ decode_json(hdiff('-o', 'speedscope', $dumps[1]))->{profiles} };
	is($profile->{endValue}, $bytes, 'speedscope');
	is(sum0(map { $_->{tb} } @{ decode_json(hdiff('-o', 'dhat', $dumps[1]))->{pps} }), $bytes, 'dhat');
	is(sum0(map { / (\d+)$/ ? $1 : () } split /\n/, hdiff('-o', 'folded', $dumps[1])), $bytes, 'folded');
	return;
}
