#!/usr/bin/perl
# hsnap ps lists processes in columns, the largest first: bits, heaps, source of stacks, private
# bytes, threads, handles, start and command line. The test compares the list with a program that counts its own
# heaps, and one that reports how much memory it keeps.
use strict;
use warnings;
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use POSIX ();
use Test::More;
use Hunt;

my $dir = fresh_dir();
my $name = "listed$$"; # a unique name
my $exe = "$dir/$name.exe";
copy("$root/build/win64/targets/own_flags.exe", $exe) or die "own_flags.exe: $!\n";
my $sample = "$dir/traced-$name.exe";
copy("$root/build/win64/samples/leak_steady.exe", $sample) or die "leak_steady.exe: $!\n";
my $closed = "$dir/closed-$name.exe";
copy("$root/build/win64/targets/odd.exe", $closed) or die "odd.exe: $!\n";

my @words = ("0 \e[31m \x{c2}\x{9b}\n'two  words'", '5 ' . 'x' x 100);
my $before = time;
my @plain = map { target($exe, [$_]) } @words;
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
like($header, qr/^ +pid bits heaps +stacks +private +threads +handles +started +name  command line$/, 'a header line');
my @rows = map { [/^ *(\d+) +(64|32|\?) +(\d+|\?) +(tracer|attached|detached|ust|none|\?) +(\d+\.\d [KMG]iB|\?) +(?:\d+|\?) +(?:\d+|\?) +(\d{4}-\d\d-\d\dT\d\d:\d\dZ|\?) +(\S.*?)  (.*)$/] } @lines;
is_deeply([map { $lines[$_] } grep { !@{ $rows[$_] } } 0 .. $#rows], [], 'every other line is a process');
my @sizes = map { $_->[4] =~ /^(.*) (.)iB$/ ? $1 * { K => 1, M => 1024, G => 1024**2 }->{$2} : -1 } @rows;
is_deeply(\@sizes, [sort { $b <=> $a } @sizes], 'the largest first');
is_deeply([grep { $_->[6] =~ /^hsnap/i && $_->[0] == ($traced->{pid} // 0) } @rows], [], 'hsnap is not the program');
my $column = index $header, 'name';
is_deeply([grep { substr($_, $column - 1, 2) !~ /^ \S/ } @lines], [], 'names stand below each other');
my %row = map { $_->[0] => $_ } @rows;
is_deeply([@{ $row{ $plain[$_]{pid} } }[1, 2, 3, 6]], [64, $heaps[$_], 'none', "$name.exe"],
	"the program with $heaps[$_] heaps") for 0, 1;
is_deeply([@{ $row{ $traced->{pid} } }[1, 3, 6]], [64, 'tracer', "traced-$name.exe"], 'the traced one');
is_deeply([@{ $row{ $refusing->{pid} } }[1, 2, 3, 6, 7]], ['?', '?', '?', "closed-$name.exe", '?'],
	'the one that lets nobody in');
like($all->{err}, qr/^hsnap: [1-9]\d* of the processes, shown as \?, cannot be read/m, 'which is reported');

# The command line is printed completely, and must have no effect on the terminal.
my @lines_of = map { $row{ $_->{pid} }[7] } @plain;
like($lines_of[0], qr/ "0 \?\[31m \?\??\?'two  words'"$/, 'what a terminal would obey is made harmless');
like($lines_of[1], qr/^\S*\Q$name\E\.exe"? "5 x{100}"$/, 'however long it is');
my $now = time;
my @times = map { POSIX::strftime('%Y-%m-%dT%H:%MZ', gmtime $_) } $before - 60 .. $now;
ok((grep { $_ eq $row{ $plain[0]{pid} }[5] } @times), 'when it began');

# A program that keeps 16 MiB more at each step.
my $grows = "$dir/grows-$name.exe";
copy("$root/build/win64/targets/grows.exe", $grows) or die "grows.exe: $!\n";
my $growing = target($grows);
is($growing->step, 1, 'a program grows');
my @private = private_of($growing);
is($growing->next_step, $_, 'and grows') for 2, 3;
push @private, private_of($growing);
cmp_ok(abs($private[1] - $private[0] - 32), '<', 1, 'its private bytes are those that it keeps') or diag("@private");
is($growing->quit, 0, 'it ends');

# A program that starts 40 threads and keeps 541 handles more.
my $holds = "$dir/holds-$name.exe";
copy("$root/build/win64/targets/holds.exe", $holds) or die "holds.exe: $!\n";
my $holding = target($holds);
my @objects;
for my $step (1, 2) {
	syswrite $holding->{to}, "\n" if $step > 1;
	like($holding->line, qr/^space /, 'a program states its memory');
	is($holding->step, $step, '... and waits');
	push @objects, [hsnap('ps', "holds-$name")->{out} =~ /iB +(\d+) +(\d+|\?) /];
}
is($objects[1][0] - $objects[0][0], 40, 'ps counts threads');
# Wine 8 does not count handles.
ok($objects[0][1] eq '?' || $objects[1][1] - $objects[0][1] == 541, 'ps counts handles, or does not know them') or diag("@{ $objects[0] }, @{ $objects[1] }");
is($holding->quit, 0, 'it ends');

# On a terminal each line fits the width, and omits the program's path. Undo Wine's changes to a
# line before the check.
SKIP: {
	skip 'no script(1)', 2 if $as_windows || system('command -v script >/dev/null');
	my $shown = run(['script', '-qec', "stty cols 90; '$root/setup/wine' '$root/build/win64/hsnap.exe' ps $name*", '/dev/null'])->{out};
	$shown =~ s/\e\[K\e\[(\d+)C/' ' x $1/ge;
	$shown =~ s/\e\[[?\d;]*[A-Za-z]//g;
	like($shown, qr/^ *$plain[1]{pid} .*  \Q$name\E\.exe  "5 x+\r*$/m, 'the name and what is behind it') or diag($shown);
	is_deeply([grep { length > 89 } split /\r*\n/, $shown], [], 'a line has less than 90 columns');
}

is_deeply([named($name)], [sort { $a <=> $b } map { $_->{pid} } @plain, $traced, $refusing], 'a part of the name');
is_deeply([named(uc "$name.exe")], [sort { $a <=> $b } map { $_->{pid} } @plain, $traced, $refusing],
	'in any case');
is_deeply([named("$name*")], [sort { $a <=> $b } map { $_->{pid} } @plain], 'a pattern is the whole name');
is_deeply([named("T?aced-$name.*")], [$traced->{pid}], 'with any letter, in any case');
check_error(hsnap('ps', "nobody-$name"), 'hsnap', 'nobody', "nobody-$name", 'no such process');
check_error(hsnap('ps', 'a', 'b'), 'hsnap', 'two patterns', 'one pattern');
is($_->quit, 0, 'it ends') for @plain, $traced, $refusing;
done_testing;

# Returns the private MiB that ps lists for a program.
sub private_of {
	my ($target) = @_;
	my ($mib) = hsnap('ps', "grows-$name")->{out} =~ / (\d+\.\d) MiB /;
	return $mib // 0;
}

# Returns the pids that ps lists for a pattern.
sub named {
	my ($pattern) = @_;
	my $result = hsnap('ps', $pattern);
	is($result->{status}, 0, "ps $pattern");
	return sort { $a <=> $b } map { /^ *(\d+) / ? $1 : () } split /\r?\n/, $result->{out};
}
