#!/usr/bin/perl
# hsnap ps lists processes in columns, by pid: their bits, their heaps and where
# stacks would come from. A program that counts its own heaps is the witness.
use strict;
use warnings;
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();
my $name = "listed$$"; # a name that nobody else has
my $exe = "$dir/$name.exe";
copy("$root/build/win64/targets/own_flags.exe", $exe) or die "own_flags.exe: $!\n";
my $sample = "$dir/traced-$name.exe";
copy("$root/build/win64/samples/leak_steady.exe", $sample) or die "leak_steady.exe: $!\n";
my $closed = "$dir/closed-$name.exe";
copy("$root/build/win64/targets/odd.exe", $closed) or die "odd.exe: $!\n";

my @plain = map { target($exe, [$_]) } 0, 5;
my @heaps = map { my ($heaps) = (join ' ', $_->line // '', $_->line // '') =~ /heaps (\d+)/; $heaps } @plain;
is($_->step, 1, 'a program waits') for @plain;
cmp_ok($heaps[1], '==', $heaps[0] + 5, 'one made five heaps more') or diag("@heaps");
my $traced = target($sample, [], traced => 1);
is($traced->step, 1, 'a traced one waits');
my $refusing = target($closed, ['closed']);
is($refusing->step, 1, 'one that lets nobody in waits');

my $all = hsnap('ps');
is($all->{status}, 0, 'ps: status 0');
my ($header, @lines) = split /\r?\n/, $all->{out};
like($header, qr/^ +pid bits heaps +stacks +name$/, 'a header line');
my @rows = map { [/^ *(\d+) +(64|32|\?) +(\d+|\?) +(tracer|attached|detached|ust|none|\?) +(\S.*)$/] } @lines;
is_deeply([map { $lines[$_] } grep { !@{ $rows[$_] } } 0 .. $#rows], [], 'every other line is a process');
is_deeply([map { $_->[0] } @rows], [sort { $a <=> $b } map { $_->[0] } @rows], 'by pid');
is_deeply([grep { $_->[4] =~ /^hsnap/i && $_->[0] == ($traced->{pid} // 0) } @rows], [], 'hsnap is not the program');
my $column = index $header, 'name';
is_deeply([grep { substr($_, $column - 1, 2) !~ /^ \S/ } @lines], [], 'names stand below each other');
my %row = map { $_->[0] => $_ } @rows;
is_deeply($row{ $plain[$_]{pid} }, [$plain[$_]{pid}, 64, $heaps[$_], 'none', "$name.exe"],
	"the program with $heaps[$_] heaps") for 0, 1;
is_deeply([@{ $row{ $traced->{pid} } }[1, 3, 4]], [64, 'tracer', "traced-$name.exe"], 'the traced one');
is_deeply($row{ $refusing->{pid} }, [$refusing->{pid}, '?', '?', '?', "closed-$name.exe"],
	'the one that lets nobody in');
like($all->{err}, qr/^hsnap: no right to look at [1-9]\d* of them/m, 'which is said');

is_deeply([named($name)], [sort { $a <=> $b } map { $_->{pid} } @plain, $traced, $refusing], 'a part of the name');
is_deeply([named(uc "$name.exe")], [sort { $a <=> $b } map { $_->{pid} } @plain, $traced, $refusing],
	'in any case');
is_deeply([named("$name*")], [sort { $a <=> $b } map { $_->{pid} } @plain], 'a pattern is the whole name');
is_deeply([named("T?aced-$name.*")], [$traced->{pid}], 'with any letter, in any case');
check_error(hsnap('ps', "nobody-$name"), 'hsnap', 'nobody', "nobody-$name", 'no such process');
check_error(hsnap('ps', 'a', 'b'), 'hsnap', 'two patterns', 'one pattern');
is($_->quit, 0, 'it ends') for @plain, $traced, $refusing;
done_testing;

# The pids that ps lists for a pattern.
sub named {
	my ($pattern) = @_;
	my $result = hsnap('ps', $pattern);
	is($result->{status}, 0, "ps $pattern");
	return map { /^ *(\d+) / ? $1 : () } split /\r?\n/, $result->{out};
}
