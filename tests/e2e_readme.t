#!/usr/bin/perl
# The tours of the README work as typed, and print the output it shows. Parts that differ between
# runs (pids, times, addresses, ids, the checkout's place) are ignored in the comparison.
use strict;
use warnings;
use File::Glob ':bsd_glob';    # paths may have blanks
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

# of an earlier run
unlink grep { -e } map { "$root/build/$_" } qw(a.txt b.txt run.hrec lost.txt), map { "dumps/$_.txt" } 1 .. 8;
tour('Five minutes', 2);
check_shown($_->{command}, $_->{shows}) for commands('In time'), commands('CI');
unlink glob "$root/build/dumps/*";
tour('Days, not minutes', 8);
done_testing;

# Runs the commands of a section: a program is started, and snapshots are taken, one after each of
# $steps steps; the last snapshot command also stands for those that the text omits.
sub tour {
	my ($title, $steps) = @_;
	my @commands = commands($title);
	my ($first) = grep { $commands[$_]{command} =~ /hsnap\.exe run/ } 0 .. $#commands;
	$first = splice @commands, $first, 1;
	like($first->{command}, qr{^setup/wine build/win64/hsnap\.exe run -- \S+$}, "$title: it begins with hsnap run");

	my $target = target("$root/" . (split ' ', $first->{command})[-1], [], traced => 1);
	is($target->step, 1, $first->{command});
	my @shown = split /\n/, $first->{shows};
	is(masked($first->{shows}), masked(join '', map { "step $_ pid 1\n" } 1 .. @shown), 'it prints its steps');
	my $step = 0;
	my $last = grep { $_->{command} =~ /hsnap\.exe -p/ } @commands;
	for my $one (@commands) {
		my $command = $one->{command} =~ s/ -p \d+/ -p $target->{pid}/r;
		my $takes = $command =~ /hsnap\.exe -p/;
		is($target->next_step, $step + 1, 'the program goes on') if $takes && $step;
		check_shown($command, $one->{shows});
		next if !$takes || ++$step < $last;
		while ($step++ < $steps) {
			is($target->next_step, $step, 'the program goes on');
			check_shown(map { s/\b1\.txt/$step.txt/r } $command, $one->{shows});
		}
	}
	is($target->quit, 0, 'the program ends');
	return;
}

# Returns the commands of a section, and the output it shows for each.
sub commands {
	my ($title) = @_;
	my ($tour) = slurp("$root/README.md") =~ /^## \Q$title\E\n(.*?)^## /ms or die "README.md: no $title\n";
	my @sessions = map { [split /^/m, s/^    //gmr] } $tour =~ /^((?:    .*\n|\n(?=\n*    ))+)/gm;
	my @commands = map { my @lines = @$_; { command => shift(@lines) =~ s/^\$ //r =~ s/\n//r, shows => join '', @lines } }
	    map { split_session(@$_) } @sessions;
	return @commands;
}

sub check_shown {
	my ($command, $shows) = @_;
	my $result = run(['sh', '-c', $command]);
	is($result->{status}, 0, $command) or diag($result->{err});
	return check_lost($result->{out}, $shows) if $command =~ / --lost /;
	is(masked($result->{err} . $result->{wrote} . $result->{out}), masked($shows), 'it prints what the README shows');
	return;
}

# Checks rows "SIZE BLOCKS SIZE FUNCTION" of lost blocks: for each function the README's number of
# blocks, or up to two less.
sub check_lost {
	my ($found, $wanted) = map { +{ reverse /^ +\S+ \S+ +(\d+) .*  (\S+)$/mg } } @_;
	is_deeply([sort keys %$found], [sort keys %$wanted], 'it prints the functions that the README shows');
	for my $function (sort keys %$wanted) {
		ok($found->{$function} <= $wanted->{$function} && $found->{$function} >= $wanted->{$function} - 2,
			"$function: $found->{$function} of $wanted->{$function} blocks");
	}
	return;
}

# Splits a session into "$ command" lines, each with its output.
sub split_session {
	my @parts;
	for my $line (@_) {
		push @parts, [] if $line =~ /^\$ /;
		push @{ $parts[-1] }, $line if @parts;
	}
	return @parts;
}

sub masked {
	my ($text) = @_;
	$text =~ s/\r//g;
	$text =~ s{ +[+-]?[\d.]+ (?:[KMG]i)?B/h}{ RATE}g;
	$text =~ s/, in \S+$/, in a while/m;
	$text =~ s{\Q$root\E}{/src/hsnap}g;
	$text =~ s/\d{4}-\d\d-\d\dT[\d:.]+Z/TIME/g;
	$text =~ s/\b(pid|process) \d+/$1 N/g;
	$text =~ s/BackTrace\w+/BackTraceN/g;
	$text =~ s/: \d+ blocks \(\d+ % with stacks\), \d+ bytes$/: N blocks/gm; # includes Wine's own blocks
	$text =~ s/\+[0-9A-F]+(?= |$)/+X/gm;
	$text =~ s/\s+\z//;
	return $text;
}
