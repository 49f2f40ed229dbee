#!/usr/bin/perl
# The tours of the README and of docs/over-time.md work as typed, and print the output that the
# pages show. The comparison ignores parts that differ between runs: pids, times, addresses, ids,
# and the checkout's place.
use strict;
use warnings;
use File::Glob ':bsd_glob';    # paths may have blanks
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

# Files of an earlier run.
unlink grep { -e } map { "$root/build/$_" } qw(a.txt b.txt run.hrec lost.txt), map { "dumps/$_.txt" } 1 .. 8;
tour('README.md', 'Find a leak', 2);
unlink glob "$root/build/dumps/*";
tour('docs/over-time.md', 'An example', 8);
check_shown($_->{command}, $_->{shows}) for commands('docs/over-time.md', 'Every allocation');
done_testing;

# Runs the commands of a section. It starts a program and takes a snapshot after each of $steps
# steps. The last snapshot command is repeated for the snapshots that the text omits.
sub tour {
	my ($page, $title, $steps) = @_;
	my @commands = commands($page, $title);
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

# Returns a section's commands, with the README's aliases replaced, and the output shown for each.
sub commands {
	my ($page, $title) = @_;
	my ($aliases) = slurp("$root/README.md") =~ /^    alias (.*)$/m or die "README.md: no aliases\n";
	my %alias = map { s/'//gr } $aliases =~ /(\w+)=('[^']*'|\S+)/g;
	my ($tour) = slurp("$root/$page") =~ /^## \Q$title\E\n(.*?)(?:^## |\z)/ms or die "$page: no $title\n";
	my @sessions = map { [split /^/m, s/^    //gmr] } $tour =~ /^((?:    .*\n|\n(?=\n*    ))+)/gm;
	my @commands = map { my @lines = @$_; { command => shift(@lines) =~ s/^\$ //r =~ s/\n//r, shows => join '', @lines } }
	    map { split_session(@$_) } @sessions;
	$_->{command} =~ s/^(\w+)/$alias{$1} \/\/ $1/e for @commands;
	return @commands;
}

sub check_shown {
	my ($command, $shows) = @_;
	my $result = run(['sh', '-c', $command]);
	is($result->{status}, 0, $command) or diag($result->{err});
	is(masked($result->{err} . $result->{wrote} . $result->{out}), masked($shows), 'it prints what the page shows');
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
	$text =~ s/(,|snapshots) in \S+$/$1 in a while/m;
	$text =~ s/\([\d.]+ to [\d.]+\)/(RANGE)/;
	$text =~ s{\Q$root\E}{/src/hsnap}g;
	$text =~ s/\d{4}-\d\d-\d\dT[\d:.]+Z/TIME/g;
	$text =~ s/\b(pid|process) \d+/$1 N/g;
	$text =~ s/BackTrace\w+/BackTraceN/g;
	# This number includes Wine's own blocks.
	$text =~ s/: \d+ blocks \(\d+ % with stacks\), \d+ bytes$/: N blocks/gm;
	$text =~ s/\+[0-9A-F]+(?= |$)/+X/gm;
	$text =~ s/\b[\d.]+ s$/N s/gm; # the length of a recording
	$text =~ s/^left out: .*/left out: N/gm; # includes Wine's own blocks
	# Free space of heaps depends on Wine.
	$text =~ s/^(private memory|not private:) .*(?:\n  \S.*)*/$1/gm;
	$text =~ s/\s+\z//;
	return $text;
}
