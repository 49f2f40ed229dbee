#!/usr/bin/perl
# snapshot/hsnap-mark.h: a program marks its own recording. Each mark lies exactly between the
# allocations before it and those after it, as the program states them. Marks allocate nothing, and
# without a recording they do nothing. The header compiles with every compiler, with and without
# windows.h.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP qw(decode_json);
use List::Util qw(sum0);
use Test::More;
use Hunt;
use Replay;

my $dir = fresh_dir();
my @exes = map { "$root/build/win$_/targets/marks.exe" } 64, 32;

my $runs_32 = run([wine("$root/build/win64/hsnap32.exe", '--version')])->{out} =~ /^hsnap \d/;
pop @exes if !$runs_32;
subtest "marks are where the program states them: $_" => \&stated, $_ for @exes;
subtest 'marks of four threads' => \&threads;
subtest 'without a recording' => \&unrecorded;
subtest 'the header' => \&header;
done_testing;

sub list { return run(tool('hdiff', 'linux', '--list', @_))->{out} }

sub stated {
	my ($exe) = @_;
	my $file = $exe =~ /win32/ ? "$dir/run32.hrec" : "$dir/run.hrec";
	my $target = target($exe, [], record => ['-o', win($file)]);
	my @lines;
	while (defined(my $line = $target->line)) {
		last if $line =~ /^step 1 pid/;
		push @lines, $line;
	}
	is($target->quit, 0, 'its status: no mark changed the last error') or diag(slurp("$target->{err}"));
	my $replay = Replay->new(join "\n", @lines);
	my @marks = @{ $replay->marks };
	is(scalar @marks, 10, 'it states its marks');
	is_deeply([list($file) =~ /^mark +[\d.]+ s (.*)$/mg], [map { $_->{label} } @marks], 'the recording has them');
	for my $i (1 .. $#marks) {
		my ($from, $to) = @marks[$i - 1, $i];
		my $classes = $replay->window((map { $_->{position} } $from, $to), ['stack']);
		for my $class (qw(aifo aifi aofi)) {
			my %truth = map { $_ => [@{ $classes->{$_}{$class} }{qw(bytes count)}] } grep { $classes->{$_}{$class}{count} } keys %$classes;
			my $result = run(tool('hdiff', 'linux', '--class', $class, '--from', $from->{label}, '--to', $to->{label}, $file));
			is_deeply(rows_by_functions(report($result->{out}), 'marks'), \%truth, "$from->{label} to $to->{label}, $class")
			    or diag($result->{out}, $result->{err});
		}
	}
	by_mark($file, $replay);
	# Also nothing of the mark itself.
	my $result = run(tool('hdiff', 'linux', '--class', 'ai', '--from', 'quiet 1', '--to', 'quiet 2', $file));
	is_deeply(report($result->{out})->{rows}, [], 'a mark allocates nothing') or diag($result->{out});
	return;
}

# hdiff --by-mark shows the same, and names the function that kept most.
sub by_mark {
	my ($file, $replay) = @_;
	my @marks = @{ $replay->marks };
	my @parts = @{ decode_json(run(["$root/build/linux/hdiff", '--by-mark', '--strip', '-o', 'json', '-i', '^marks!keep_', $file])->{out})->{parts} };
	shift @parts; # the start
	for my $i (0 .. $#marks) {
		my ($from, $to) = ($marks[$i]{position}, $i < $#marks ? $marks[$i + 1]{position} : $replay->events);
		my $classes = $replay->window($from, $to, ['stack']);
		my $sum = sub { my ($class) = @_; return [map { my $key = $_; sum0(map { $_->{$class}{$key} } values %$classes) } qw(bytes count)] };
		my ($most) = sort { $classes->{$b}{aifo}{bytes} <=> $classes->{$a}{aifo}{bytes} } grep { $classes->{$_}{aifo}{count} } keys %$classes;
		my @left = grep { $_->{alloc}{index} >= $from && $_->{alloc}{index} < $to && !$_->{free} } @{ $replay->allocations };
		is_deeply([$parts[$i]{label}, map { [@{ $parts[$i]{$_} }{qw(bytes blocks)}] } qw(kept transient left)],
			[$marks[$i]{label}, $sum->('aifo'), $sum->('aifi'), [sum0(map { $_->{bytes} } @left), scalar @left]], "--by-mark: $marks[$i]{label}");
		my @names = map { $_->{function} } @{ $parts[$i]{stack}{frames} // [] };
		is($names[0], $most && $most =~ s/<-.*//r, 'and who kept most');
	}
	return;
}

# When a mark is recorded, its thread has kept a block for this mark and for all its earlier marks,
# and none for later ones. Other threads may have kept one more than they marked.
sub threads {
	my $result = run([wine($Hunt::hsnap, 'record', '-o', win("$dir/threads.hrec"), '--', $exes[0], 'threads')]);
	is("$result->{status} $result->{err}", '0 ', 'it runs');
	my @labels = list("$dir/threads.hrec") =~ /^mark +[\d.]+ s (.*)$/mg;
	is_deeply([sort @labels], [map { my $k = $_; map { "$k.$_" } 0 .. 9 } 0 .. 3], 'each mark is there once');
	for my $i (grep { $_ % 5 == 0 || $_ > 35 } 0 .. $#labels) {
		my $rows = report(run(tool('hdiff', 'linux', "$dir/threads.hrec\@$labels[$i]"))->{out})->{rows};
		my ($count) = map { $_->{count} } grep { grep { ($_->{function} // '') eq 'keep_of_thread' } @{ $_->{frames} } } @$rows;
		cmp_ok($count // 0, '>=', $i + 1, "at mark $labels[$i]: the blocks before it");
		cmp_ok($count // 0, '<=', $i + 4, 'and none after it');
	}
	return;
}

sub unrecorded {
	for my $exe (@exes) {
		my $result = run([wine($exe, 'threads')]);
		is("$result->{status} $result->{err}", '0 ', "$exe ends as ever");
	}
	my $result = run([wine($Hunt::hsnap, 'run', '--', $exes[0], 'threads')]);
	is("$result->{status} $result->{err}", '0 ', 'also with the tracer');
	return;
}

sub header {
	needs_linux('compilers');
	my $with = '#include "hsnap-mark.h"' . "\n";
	my %source = (
		alone => $with,
		after => "#include <windows.h>\n$with",
		before => "$with#include <windows.h>\n",
		'without STRICT' => "#define NO_STRICT\n$with#include <windows.h>\n",
	);
	my @flags = ('-fsyntax-only', '-Wall', '-Wextra', '-Wpedantic', '-Wshadow', '-Werror', '-I', "$root/snapshot");
	my @windows = map { my $cpu = $_; ("$cpu-w64-mingw32-%s", "clang$llvm --target=$cpu-w64-mingw32 -x %s") } qw(x86_64 i686);
	for my $name (sort keys %source) {
		for my $compiler ($name eq 'alone' ? ('%s', "clang$llvm -x %s") : (), @windows) {
			for my $language (['c', 'gcc', '-std=c99', '-Wstrict-prototypes'], ['c++', 'g++', '-std=c++11']) {
				my ($suffix, $gcc, @standard) = @$language;
				my @command = split / /, sprintf $compiler, $compiler =~ /clang/ ? $suffix : $gcc;
				my $file = spew("$dir/use.$suffix", "$source{$name}int main(void) { hsnap_mark(\"a\"); return 0; }\n");
				my $result = run([@command, @standard, @flags, $file]);
				is("$result->{status} $result->{err}", '0 ', "$name: @command");
			}
		}
	}
	return;
}
