#!/usr/bin/perl
# The scripts of docs/ci.md as published. They are run with programs that leak, do not leak, have a
# known leak, or fail. Checks exit statuses and output files. The page's YAML is valid and calls
# commands that exist.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use CPAN::Meta::YAML;
use File::Copy qw(copy);
use Test::More;
use Charts;
use Hunt;

my $page = slurp("$root/docs/ci.md");
my ($sh) = $page =~ /^```sh\n(.*?)^```$/ms;
my ($bat) = $page =~ /^```bat\n(.*?)^```$/ms;
my $lines = grep { /\S/ } split /\n/, $sh;
cmp_ok($lines, '<=', 20, 'a gate in twenty lines');

my $source = <<'C';
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) void leak(void) { *(char *)malloc(1000) = 1; }
__attribute__((noinline)) void known_leak(void) { *(char *)malloc(70) = 1; }

int main(int argc, char **argv)
{
	free(malloc(5));
	if (argc > 1 && !strcmp(argv[1], "leak"))
		leak();
	if (argc > 1 && !strcmp(argv[1], "known"))
		known_leak();
	return argc > 1 && !strcmp(argv[1], "fail") ? 3 : 0;
}
C
my $dir = fresh_dir();
mkdir "$dir/$_" for qw(tools bin);
symlink "$root/build/win64/$_", "$dir/tools/$_" for qw(hsnap.exe hsnap-tracer64.dll hdiff.exe);
symlink "$root/build/linux/hdiff", "$dir/tools/hdiff";
spew("$dir/bin/wine", "#!/bin/sh\nPATH='$ENV{PATH}' exec '$root/setup/wine' \"\$@\"\n");
chmod 0755, "$dir/bin/wine";
spew("$dir/test.c", $source);
spew("$dir/known.supp", "leak:known_leak\n");
spew("$dir/leak-gate.sh", $sh);
spew("$dir/leak-gate.cmd", $bat =~ s/\n/\r\n/gr);
my $made = run([qw(x86_64-w64-mingw32-gcc -g -O0 -static test.c -o test.exe)], dir => $dir);
is("$made->{status}$made->{err}", '0', 'a program is built');

my %wanted = ('' => 0, leak => 1, known => 0, fail => 3);
for my $gate ('sh leak-gate.sh', 'cmd leak-gate.cmd') {
	for my $what (sort keys %wanted) {
		run(['rm', '-rf', "$dir/leaks"]);
		my $result = run_gate($gate, $what);
		is($result->{status}, $wanted{$what}, "$gate $what: its status") or diag($result->{out}, $result->{err});
		next if $what eq 'fail';
		ok(-s "$dir/leaks/$_", "$gate $what: $_ is kept") for qw(exit.txt report.txt report.html summary.md junit.xml);
		my $junit = slurp("$dir/leaks/junit.xml");
		is(xml_error($junit), '', 'junit.xml is XML');
		my $place = $gate =~ /^sh/ ? qr/file=\S*test\.c,line=4,/ : qr/(?:file=\S*test\.c,line=4,)?/;
		is(scalar(() = $result->{err} =~ /^::error ${place}title=memory growth::\+1000 bytes, \+1 block: test!leak\b/mg), $wanted{$what}, 'an annotation for each leak');
		like(slurp("$dir/leaks/summary.md"), $what eq 'leak' ? qr{<td align="right">1000 B</td><td align="right">1</td><td><code>test!leak\b} : qr{<p>No stack that was selected changed\.</p>}, 'the summary');
		is($junit =~ /<failure/ ? 1 : 0, $wanted{$what}, 'and reports the result');
		like($junit, $gate =~ /^sh/ ? qr/1000 bytes.*: test!leak \(\S*test\.c:4\)/ : qr/1000 bytes.*: test!leak\b/, 'by whom') if $what eq 'leak';
		like($result->{out}, qr/^1000 bytes in 1: leak$/m, 'so does jq') if $what eq 'leak' && $gate =~ /^sh/;
	}
}
spew("$dir/known.supp", "leak:*\n");
is(run_gate('sh leak-gate.sh', 'leak')->{status}, 2, 'a list of everything is no list: status 2');

# With a good build's dump in place of lists: its 4K allow 1,000 bytes, but do not allow 2,000
# blocks.
my ($baseline) = $page =~ /^    (hdiff \S+ --max-growth 4K,10 .*)$/m;
run(['rm', '-rf', "$dir/leaks"]);
spew("$dir/known.supp", '');
is(run_gate('sh leak-gate.sh', '')->{status}, 0, 'a good build');
copy("$dir/leaks/exit.txt", "$dir/good.txt") or die "$!\n";
is(run_gate('sh leak-gate.sh', 'leak')->{status}, 1, 'a later one leaks');
is(run_here($baseline)->{status}, 0, 'by less than the noise');
is(run_here($baseline =~ s/4K,10/999/r)->{status}, 1, 'of 999 bytes it would be more');

# A running program, with seconds in place of minutes. Permanent growth exceeds the limit.
my ($series, $rate) = $page =~ /^    hsnap run -- server\.exe\n    (hsnap -pn .*?) {2,}.*\n    (hdiff .*)$/m;
run(['rm', '-rf', "$dir/leaks"]);
mkdir "$dir/leaks";
my $server = "$dir/server$$.exe";
copy("$root/build/win64/samples/leak_steady.exe", $server) or die "$!\n";
my $target = target($server, [], traced => 1);
is($target->step, 1, 'a server runs');
my $watching = Hunt::start(['sh', '-c', $series =~ s/^hsnap/tools\/hsnap.exe/r =~ s/^/wine /r =~ s/server\.exe/server$$.exe/r =~ s/10m/1s/r],
	dir => $dir, env => { PATH => "$dir/bin:$ENV{PATH}" });
for my $step (2 .. 7) {
	my $until = time + $Hunt::limit;
	select undef, undef, undef, 0.05 until (grep { /^\d+\.txt$/ } files_in("$dir/leaks")) >= $step - 1 || time > $until;
	is($target->next_step, $step, 'it serves, and leaks');
}
is($target->quit, 0, 'it ends');
is(Hunt::finish($watching), 0, 'and with it the snapshots');
my $judged = run_here($rate);
is($judged->{status}, 1, 'it grows faster than 1M/h') or diag($judged->{out}, $judged->{err});
like($judged->{err}, qr/grow_log/, 'and what does is named');

for my $yaml ($page =~ /^```yaml\n(.*?)^```$/gms) {
	my $read = eval { CPAN::Meta::YAML->read_string($yaml =~ s/\[([^]]*)\]/'$1'/gr)->[0] };
	ok(ref $read eq 'HASH', 'YAML') or diag($@);
	ok($yaml =~ /leak-gate\.(sh|cmd) / && -e "$dir/leak-gate.$1", 'it calls the gate');
}
done_testing;

sub run_here { return run(['sh', '-c', $_[0]], dir => $dir, env => { PATH => "$dir/tools:$ENV{PATH}" }) }

sub run_gate {
	my ($gate, $what) = @_;
	my ($shell, $script) = split ' ', $gate;
	return run(['sh', $script, 'test.exe', $what || ()], dir => $dir, env => { PATH => "$dir/bin:$ENV{PATH}" }) if $shell eq 'sh';
	return run([wine('cmd', '/c', $script, 'test.exe', $what || ())], dir => $dir, env => { WINEPATH => win("$dir/tools") });
}
