#!/usr/bin/perl
# Virtual memory in a recording, and the stacks that committed and released it, even in parts. In
# each step virtual_cases states the ranges that exist. The test derives the released ranges and
# their stacks from that.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP qw(decode_json);
use List::Util qw(sum0);
use Test::More;
use Hunt;

my $dir = fresh_dir();
my (%said, @cases); # sizes of ranges, by case and kind
record() or BAIL_OUT('there is no recording');
subtest 'the middle is decommitted' => \&middle;
subtest 'parts of several ranges' => \&parts;
subtest 'releases' => \&releases;
subtest 'views' => \&views;
done_testing;

# Records the cases. At each step it sets a mark with the case's name.
sub record {
	my $target = target("$root/build/win64/targets/virtual_cases.exe", [], record => ['-o', win("$dir/run.hrec")]);
	my $name = '';
	while (defined(my $line = $target->line)) {
		if ($line =~ /^case (.+)$/) {
			push @cases, $name = $1;
		} elsif ($line =~ /^pages (\w+) \w+ (\w+) \w+$/) {
			push @{ $said{$name}{$1} }, hex $2;
		} elsif ($line =~ /^step \d+ pid (\d+)$/) {
			check_ok(hsnap('mark', '-p', $1, $name), "mark '$name'") or return;
			last if $name eq 'views unmapped';
			syswrite $target->{to}, "\n";
		} elsif ($line =~ /^wrong/) {
			fail("$name: $line");
		}
	}
	$target->quit;
	return "@cases" =~ /views unmapped$/;
}

# Returns the rows of the program's own stacks between two steps, by the functions that made them ({
# FUNCTION => { window } }), and the total.
sub between {
	my ($from, $to, $heap, $class) = @_;
	my $result = run(tool('hdiff', 'linux', '-o', 'json', '--heap', $heap, '--class', $class, '-i', '^virtual_cases!', '--from', $from, '--to', $to, "$dir/run.hrec"));
	check_ok($result, "from $from to $to, $heap, $class");
	my $report = decode_json($result->{out});
	return ({ map { functions($_->{frames}) => told($_->{window}, $class) } @{ $report->{rows} } }, told($report->{window}, $class));
}

# Returns the program's functions up to the case's function, for example "both<-in_parts". Leaves
# out commit(), which is inline and not always shown.
sub functions {
	my ($frames) = @_;
	my @ours = grep { $_ ne 'commit' } map { $_->{function} } grep { ($_->{module} // '') eq 'virtual_cases' } @$frames;
	my ($main) = grep { $ours[$_] eq 'main' } 0 .. $#ours;
	return join '<-', @ours[0 .. ($main // @ours) - 1];
}

# Returns the amount in a class, the part of the row that one stack freed, and that stack.
sub told {
	my ($window, $class) = @_;
	my $by = $window->{freed_by} or return [@{ $window->{$class} }{qw(bytes blocks)}];
	like($by->{frames}[0]{function}, qr/^(?:VirtualFree|UnmapViewOfFile)/, 'its stack is that of the call that freed');
	return [@{ $window->{$class} }{qw(bytes blocks)}, @$by{qw(stacks bytes blocks)}, functions($by->{frames})];
}

# Four of 19h pages, which were committed together, are freed in the middle. The recording shows
# that all pages are freed, and that the same stack allocates the rest again, once below and once
# above.
sub middle {
	my ($case, $before) = ('both<-both_then_decommit', 'commit again, release all');
	my ($transient) = between($before, 'decommit of both', 'virtual', 'aifi');
	is_deeply($transient, { $case => [0x19000, 1, 1, 0x19000, 1, 'both_then_decommit'] }, 'the whole goes, by who decommits the middle');
	my ($rest) = between($before, 'decommit of both', 'virtual', 'aifo');
	is_deeply([@{ $rest->{$case} }[0, 1]], [0x15000, 2], 'two parts stay, of who committed them');
	my ($reserved) = between($before, 'decommit of both', 'reserved', 'aifo');
	is_deeply($reserved, { $case => [0x4000, 1] }, 'the middle is reserved again, by who had reserved it');
	return;
}

# Two decommits: of five pages in three ranges, and of the second page in a fourth range.
sub parts {
	my %sizes = (
		'commit_low<-in_parts' => 0x2000,
		'commit_over_both<-in_parts' => 0x3000,
		'commit_high<-in_parts' => 0x2000,
		'commit_few_bytes<-in_parts' => 0x2000,
	);
	my ($rows, $all) = between('commits', 'decommit a part', 'virtual', 'aofi');
	my %truth = map { $_ => [$sizes{$_}, 1, 1, $sizes{$_}, 1, 'in_parts'] } keys %sizes;
	is_deeply($rows, \%truth, 'each is freed whole, by who decommits');
	is_deeply($all, [0x9000, 4, 2, 0x7000, 3, 'in_parts'], 'two stacks did: the one that freed most is shown');
	my ($rest) = between('commits', 'decommit a part', 'virtual', 'aifo');
	my %left = map { $_ => $rest->{$_}[0] } grep { $rest->{$_}[0] } keys %$rest;
	is_deeply(\%left, { map { ("commit_$_<-in_parts" => 0x1000) } qw(low high few_bytes) }, 'what stays is of who committed it');
	return;
}

sub releases {
	my @sizes = @{ $said{plainly}{committed} };
	my (undef, $all) = between('plainly', 'plainly freed', 'virtual', 'aofi');
	is_deeply($all, [sum0(@sizes), scalar @sizes, 2, sum0(@sizes) - 0x5000, @sizes - 1, 'release<-plainly'],
		'by one call for all but one range, which another frees by a handle');
	my ($reserved) = between('plainly', 'plainly freed', 'reserved', 'aofi');
	is_deeply($reserved, { 'only_reserve<-plainly' => [0x100000, 1, 1, 0x100000, 1, 'release<-plainly'] }, 'as is address space');
	return;
}

sub views {
	my $sizes = $said{views}{mapped};
	is(scalar @$sizes, 5, 'there are five views');
	my (undef, $all) = between('views', 'views unmapped', 'mapped', 'aofi');
	is_deeply($all, [sum0(@$sizes), 5, 1, sum0(@$sizes), 5, 'unmap<-views'], 'which are unmapped by one call');
	return;
}
