#!/usr/bin/perl
# Synthetic processes of every kind of Windows, as minidumps. hsnap -z finds exactly the blocks that
# the maker placed, each with its sizes and its stack. Two states of one process differ by what the
# maker added.
#
# Arguments are those of make_image: tests only that process.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;
use Images;

my @profiles = profiles();
# Profiles whose segment heaps have a known layout.
my @segment = grep { /^win10-(?:(?:14393|16299|17134|17763)-x64|x64|x86)$|^win11-(?:26100-)?x64$/ } @profiles;
my $dir = fresh_dir();

if (@ARGV) {
	(grep { $_ eq '--ust' } @ARGV) ? grows(@ARGV) : check(@ARGV);
	done_testing;
	exit;
}
cmp_ok(scalar @profiles, '>=', 6, 'several kinds of Windows');
cmp_ok(scalar @segment, '>=', 2, 'some of them with segment heaps');
# The form of the memory list, and the word next to a stack's depth, depend only on bitness.
my %of_bitness = map { $_ => 1 } qw(win7-x86 win10-x64 wow64);
for my $profile (@profiles) {
	subtest $profile => sub {
		check($profile, @$_) for [], ['--ust', '--no-lfh'], ['--ust', '--depth-slot', 'index'],
		    ['--debug-flags'], ['--ust', '--debug-flags'], ['--ust', '--heaps', 7, '--seed', 2],
		    ['--ust', '--plain-headers'], ['--ust', '--seed', 3, '--blocks', 300],
		    ['--blocks', 20, '--heaps', 1, '--seed', 4], ['--seed', 12, '--blocks', 500];
		check($profile, '--page-heap', $_), check($profile, '--ust', '--seed', 3, '--page-heap', $_) for qw(full light);
		if ($of_bitness{$profile}) {
			check($profile, '--ust', $_) for qw(--memory-list --no-memory-info);
			# The word next to a depth is always 1, or a small number, or anything, or
			# 0.
			check($profile, '--ust', '--depth-slot', 'index', '--blocks', 200, '--seed', $_) for 3, 4, 6, 12;
		}
		grows($profile, '--ust');
		partial($profile, '--ust');
	};
}
for my $profile (@segment) {
	subtest "$profile, segment heaps" => sub {
		check($profile, '--segment', @$_) for [], ['--ust', '--seed', 2], ['--ust', '--seed', 3, '--heaps', 5],
		    ['--ust', '--seed', 10, '--blocks', 500], map { ['--seed', $_, '--blocks', 500] } 7, 13, 16;
		grows($profile, '--ust', '--segment');
	};
}
# Variants of build 26100: a slot is named by pointer or by distance, there are one or eight slots,
# and they are shared or not.
subtest 'segment heaps of 26100' => sub {
	for my $seed (1 .. 6, 9, 10) {
		check('win11-26100-x64', '--segment', '--blocks', 5500, '--seed', $seed, @$_) for [], ['--ust'];
	}
};
# A heap's address may look like another kind of value.
subtest 'many heaps' => sub {
	check('win7-x64', '--heaps', 20, '--ust', '--seed', $_) for 6, 21, 25, 46;
	check('win7-x64', '--heaps', 20, '--seed', $_) for 6, 25, 56;
	check('win10-x64', '--ust', '--heaps', 600, '--blocks', 6000);
	check('win7-x86', '--ust', '--heaps', 200, '--blocks', 2000);
};
subtest 'many blocks' => sub { check('win10-x64', '--ust', '--blocks', 100000, '--heaps', 3) };
subtest 'on Windows' => \&on_windows;
done_testing;

# Returns warnings that a valid image must not cause: they show that the reader misunderstood the
# image.
sub odd_warnings {
	my ($err, $truth) = @_;
	my ($failures, $is_said) = ($truth->{database} ? $truth->{database}[2] : 0);
	my @odd;
	for (split /\n/, $err) {
		next if /: warning: no block has a stack\b/ && !%{ $truth->{blocks} };
		push @odd, $_ if !/: warning: .*stack database had no room for the stacks of (\d+) alloc/ || $1 != $failures;
		$is_said = defined $1;
	}
	push @odd, "it is not said that $failures stacks found no room" if $failures && !$is_said;
	return @odd;
}

# Makes an image and reads it. Returns hsnap's result, the truth, and the walkers' result, or
# nothing on failure.
sub read_image {
	my ($name, @how) = @_;
	my ($file, $what) = ("$dir/$name.dmp", "@how");
	my $result = make_and_read($file, @how);
	-s "$file.truth" or return fail("$what: an image, $result->{err}");
	my $truth = truth("$file.truth");
	my @odd = odd_warnings($result->{err}, $truth);
	my $is_partial = "@how" =~ /--partial/;
	my $as_should = $is_partial ? $result->{status} == 2 && $result->{err} =~ /^hsnap: [^\n]*contains no heap memory[^\n]*\n\z/m :
	    $result->{status} == 0 && !@odd;
	ok($as_should, "$what: " . ($is_partial ? 'status 2, and why' : 'status 0, no complaint'))
	    or diag("status $result->{status}\n", join "\n", @odd);
	return $as_should ? (found("$file.txt"), $truth, walked_in("$file.list")) : ();
}

sub check {
	my @how = @_;
	check_image(\@how, read_image('a', @how));
}

sub check_image {
	my ($how, $found, $truth, $walked) = @_;
	my @how = @$how;
	return if !$found;
	my $has_ust = grep { $_ eq '--ust' } @how;
	check_found($found, $truth, "@how");
	check_walked($walked, $truth, "@how");
	ok(!!%{ $truth->{blocks} } == !!$has_ust, "@how: " . ($has_ust ? 'blocks have stacks' : 'no block has a stack'));
}

# Checks that hdiff's comparison of two states agrees with the maker.
sub grows {
	my @how = @_;
	my ($found, $old, $walked) = read_image('old', @how) or return;
	check_image(\@how, $found, $old, $walked);
	my (undef, $new) = read_image('new', @how, '--growth', 3) or return;
	my $result = run(tool('hdiff', 'linux', '--no-symbols', "$dir/old.dmp.txt", "$dir/new.dmp.txt"));
	ok($result->{status} == 0 && !grep({ !/had no room/ } split /\n/, $result->{err}),
		"@how: hdiff of two states: status 0, no complaint") or return diag($result->{err});
	my $report = report($result->{out});
	check_report($report, "@how: hdiff of two states");
	my (%said, @twice);
	for my $row (@{ $report->{rows} }) {
		next if $row->{frames}[0]{none}; # blocks without a stack have their own rows
		my $frames = join ' ', map { $_->{addr} // '?' } @{ $row->{frames} };
		push @twice, $frames if $said{$frames};
		$said{$frames} = [$row->{bytes}, $row->{count}];
	}
	my $growth = growth_of($old, $new);
	cmp_ok(scalar keys %$growth, '>', 0, "@how: it grew");
	is_deeply(\@twice, [], "@how: each stack has one row");
	is_deeply(\%said, $growth, "@how: hdiff says exactly what grew, of " . keys(%$growth) . ' stacks');
	is($report->{total}[0], $new->{bytes} - $old->{bytes}, "@how: and the growth of all")
	    if !grep { $_->[0] } values %{ $old->{stackless} }, values %{ $new->{stackless} };
}

# If memory is incomplete, the listed blocks are true, and a warning is printed.
sub partial {
	my @how = (@_, '--partial');
	my ($found, $truth) = read_image('partial', @how) or return;
	my %truth = %{ $truth->{blocks} };
	my @wrong = grep { ($truth{$_} // '') ne $found->{blocks}{$_} } keys %{ $found->{blocks} };
	is_deeply(\@wrong, [], "@how: no block that is not there");
	is_deeply([sort keys %{ $found->{modules} }], [sort keys %{ $truth->{modules} }], "@how: all modules");
	like(slurp("$dir/partial.dmp.txt"), qr{^// hsnap: warning text="the dump was written without full memory}m,
		"@how: it says what is missing");
}

sub on_windows {
	for my $how (['win10-x64', '--ust'], ['win7-x86', '--ust'], ['wow64', '--ust']) {
		my $file = "$dir/windows.dmp";
		read_image('windows', @$how) or next;
		my $result = run(tool('hsnap', 'windows', '-z', $file, '-f', "$file.exe.txt"));
		is($result->{status}, 0, "@$how: status 0");
		ok(slurp("$file.txt") eq slurp("$file.exe.txt"), "@$how: hsnap.exe writes the same bytes");
	}
}
