#!/usr/bin/perl
# Wine's cmd.exe, a foreign program, runs a batch file. It behaves the same with the tracer and
# without it, and its dump can be read back.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();
spew("$dir/loop.bat", join "\r\n", '@echo off', 'setlocal', 'set /a sum=0',
	'for /L %%i in (1,1,200) do (set /a sum=sum+%%i>nul)', 'echo the sum is %sum%',
	'for /L %%i in (1,1,20) do echo line %%i>>lines.txt', 'type lines.txt', 'del lines.txt',
	'call :part one', 'call :part two', 'exit /b 7',
	':part', 'echo part %1', 'goto :eof', '');

my @work = ('cmd.exe', '/c', win("$dir/loop.bat"));
my $plain = run([wine(@work)], dir => $dir);
is($plain->{status}, 7, 'untraced: exit status 7');
like($plain->{out}, qr/the sum is 20100\r?\nline 1.*line 20.*part two/s, 'untraced: it did its work');

my $traced = run([wine("$root/build/win64/hsnap.exe", 'run', '--at-exit', win("$dir/cmd.txt"), '--', @work)],
	dir => $dir);
is($traced->{status}, 7, 'traced: the same exit status');
is($traced->{out}, $plain->{out}, 'traced: the same output');
is($traced->{err}, $plain->{err}, 'traced: the same on stderr');
is_deeply([files_in($dir)], ['cmd.txt', 'loop.bat'], 'the dump is there and nothing else');

my $again = run([wine("$root/build/win64/hsnap.exe", 'run', '--', @work)], dir => $dir);
is_deeply([@$again{qw(status out)}], [@$plain{qw(status out)}], 'traced without a dump: the same');

my %rows;
for my $side (tool_names()) {
	my $what = "$side hdiff of one dump";
	my $result = run(tool('hdiff', $side, "$dir/cmd.txt"));
	check_ok($result, $what) or next;
	my $report = report($result->{out});
	check_report($report, $what);
	my @stacks = grep { @{ $_->{frames} } > 1 } @{ $report->{rows} };
	my $blocks = 0;
	$blocks += $_->{count} for @stacks;
	cmp_ok($blocks, '>', 0, "$what: blocks with stacks");
	ok((grep { grep { ($_->{module} // '') =~ /^cmd\b/i } @{ $_->{frames} } } @stacks),
		"$what: stacks go through cmd.exe");
	is_deeply([grep { $_->{old} || $_->{count_old} } @{ $report->{rows} }], [], "$what: nothing is old");
	$rows{$side} = [map { [@$_{qw(id bytes count)}] } @{ $report->{rows} }];
	diag("$blocks blocks in ", scalar @stacks, ' stacks') if $ENV{VERBOSE};
}
is_deeply($rows{windows}, $rows{linux}, 'both hdiffs count alike');
done_testing;
