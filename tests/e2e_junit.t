#!/usr/bin/perl
# hdiff --junit. The report for a build server agrees with the limit and the dumps, is valid XML for
# all names, and is either complete or absent.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Calls;
use Charts;
use Hunt;
use Pages;
use Series;

my $dir = fresh_dir();
my @dumps = call_dumps($dir, 40, 'Document::parse(Reader *)', 'cache_fill', map { "f$_" } 1 .. 12);
my @rows = call_rows();
my $hour = 3_600_000;
my @trend = (
	series($dir, [map { 1763632800000 + $hour * $_ } 0 .. 11], { leak => [map { 1_000_000 * $_ } 1 .. 12] }, name => 'leaky-%02d.txt'),
	series($dir, [map { 1763632800000 + $hour * $_ } 0 .. 11], { still => [(5000) x 12] }, name => 'still-%02d.txt', pid => 7),
	series($dir, [1763632800000, 1763632800000 + $hour], { few => [1, 2] }, name => 'few-%d.txt', pid => 9));

subtest 'a limit that nothing reaches' => sub {
	my $case = junit(0, '--max-growth-net', '1T', @dumps);
	is($case->{counts}, 'tests 1 failures 0 errors 0 skipped 0', 'a test, and no failure');
	my ($bytes, $blocks) = (0, 0);
	$bytes += $_->{bytes}, $blocks += $_->{blocks} for @rows;
	is_deeply([@{ $case->{properties} }{'growth bytes', 'growth blocks'}], [$bytes, $blocks], 'the growth');
	check_worst($case->{out}, 'the worst, too');
};
subtest 'over a limit' => sub {
	my $case = junit(1, '--max-growth', '1K', '--sort', 'name', '-n', 2, @dumps);
	is($case->{counts}, 'tests 1 failures 1 errors 0 skipped 0', 'a failure');
	like($case->{failure}, qr/^growth of [\d.]+ [KMG]iB \(\d+ bytes\) is [\d.]+ \w+ over the limit of 1\.0 KiB(?: \(1024 bytes\))?$/m, 'by how much');
	check_worst($case->{failure}, 'the five worst, whatever is shown');
};
subtest 'within a limit' => sub {
	is(junit(0, '--max-growth', '1T', @dumps)->{counts}, 'tests 1 failures 0 errors 0 skipped 0', 'no failure');
};
subtest 'series' => sub {
	my $case = junit(1, '--max-growth', '500K/h', @trend);
	is($case->{counts}, 'tests 3 failures 1 errors 0 skipped 1', 'each is a test; of one there are too few dumps');
	like($case->{failure}, qr{bytes/h\) is over the limit of 500\.0 KiB/h \(512000 bytes/h\); fastest: app!leak}, 'which grows, and how fast');
	like($case->{xml}, qr{name="app\.exe, series \d"}, 'which');
};
subtest 'what cannot be judged' => sub {
	spew("$dir/cut.txt", substr slurp($dumps[1]), 0, 500_000);
	my $case = junit(2, '--max-growth', '1T', $dumps[0], "$dir/cut.txt");
	is($case->{counts}, 'tests 1 failures 0 errors 1 skipped 0', 'an error');
};
subtest 'names' => sub {
	my $case = junit(1, '--max-growth', '0', '--strip', page_dumps($dir));
	unlike($case->{xml}, qr/[\x00-\x08\x0b-\x1f\x7f]/, 'no control characters');
};
subtest 'the file' => sub {
	my $hdiff = "$root/build/linux/hdiff";
	check_error(run([$hdiff, '--max-growth', 0, '--junit', '-', @dumps]), 'hdiff', 'standard output', '--junit');
	check_error(run([$hdiff, '--max-growth', 0, '--junit', $dir, @dumps]), 'hdiff', 'a folder', 'a folder');
	check_error(run([$hdiff, '--max-growth', 0, '--junit', $dumps[0], @dumps]), 'hdiff', 'a dump', 'input and output are the same file');
	check_error(run([$hdiff, '-f', "$dir/x", '--max-growth', 0, '--junit', "$dir/x", @dumps]), 'hdiff', 'the report itself', '/x');
	check_error(run([$hdiff, '--list', '--junit', "$dir/x", @dumps]), 'hdiff', 'another question', '--junit');
	ok(!-e "$dir/x", 'nothing was written');
	my $result = run([$hdiff, '-f', "$dir/report.txt", '--max-growth', '1G', '--junit', "$dir/none/x.xml", @dumps]);
	is($result->{status}, 2, 'a file that cannot be written: status 2');
	like($result->{err}, qr{^hdiff: \S+/none/x\.xml: }m, 'which is named');
	ok(-s "$dir/report.txt", 'the report is there');
};
done_testing;

# Returns the output, which must be equal for both programs.
sub junit {
	my ($status, @args) = @_;
	my @xml = map {
		my $result = run(tool('hdiff', $_, '--junit', "$dir/$_.xml", @args));
		is($result->{status}, $status, "$_: status $status") or diag($result->{err});
		slurp("$dir/$_.xml");
	} tool_names();
	ok($xml[0] eq $xml[1], 'the same on both') or diag(@xml);
	is(xml_error($xml[0]), '', 'it is XML');
	my $plain = sub { ($_[0] // '') =~ s/&#10;/\n/gr =~ s/&lt;/</gr =~ s/&gt;/>/gr =~ s/&quot;/"/gr =~ s/&amp;/&/gr };
	my ($head) = $xml[0] =~ /<testsuite name="hdiff" ([^>]*) time="0">/;
	my ($failure) = $xml[0] =~ m{<failure [^>]*>(.*?)</failure>}s;
	my ($out) = $xml[0] =~ m{<system-out>(.*?)</system-out>}s;
	return { xml => $xml[0], counts => ($head // '') =~ tr/="/ /dr, failure => $plain->($failure), out => $plain->($out),
		properties => { $xml[0] =~ /<property name="([^"]*)" value="([^"]*)"/g } };
}

sub check_worst {
	my ($text, $what) = @_;
	my @wanted = map { sprintf '+%d bytes, %+d block%s: %s!%s (%s)', $_->{bytes}, $_->{blocks}, abs $_->{blocks} == 1 ? '' : 's',
		call_module($_->{calls}[0]), $_->{calls}[0], call_place($_->{calls}[0]) } @rows[0 .. 4];
	is_deeply([grep { /^[+]/ } split /\n/, $text], \@wanted, $what);
	return;
}
