#!/usr/bin/perl
# --help lists exactly the options of the man page; --version says the version.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my %programs = (
	'hdiff' => tool('hdiff', 'linux'),
	'hsym' => tool('hsym', 'linux'),
	'hdiff.exe' => tool('hdiff', 'windows'),
	'hsym.exe' => tool('hsym', 'windows'),
	'hsnap' => tool('hsnap', 'linux'),
	'hsnap.exe' => [wine("$root/build/win64/hsnap.exe")],
);
my ($version) = slurp("$root/Makefile") =~ /^VERSION\s*:?=\s*(\S+)/m;

for my $program (sort keys %programs) {
	my $name = $program =~ s/\.exe$//r;
	my $help = run([@{ $programs{$program} }, '--help']);
	is($help->{status}, 0, "$program --help: status 0");
	is($help->{err}, '', "$program --help: on stdout");
	my @helped = helped($help->{out});
	my @documented = documented("$root/man/$name.1");
	if ($program eq 'hsnap') { # most of its commands are for Windows
		my %is_documented = map { $_ => 1 } @documented;
		cmp_ok(scalar @helped, '>', 10, "$program --help lists options");
		@documented = grep { $is_documented{$_} } @helped;
	}
	is_deeply(\@helped, \@documented, "$program --help and $name.1 list the same options");
	my ($longest) = sort { $b <=> $a } map { length } split /\r?\n/, $help->{out};
	cmp_ok($longest, '<=', 100, "$program --help fits on a screen");

	my $said = run([@{ $programs{$program} }, '--version']);
	is($said->{status}, 0, "$program --version: status 0");
	like($said->{out}, qr/^$name \Q$version\E\r?\n\z/, "$program --version: name and version, one line");
}

# Allocators' frames: the list that hdiff has is the one that its manual shows.
my @has = slurp("$root/diff/ask/allocators.c") =~ /^\t"([^"]+)",$/mg;
my ($list) = slurp("$root/man/hdiff.1") =~ /^The whole list.*?\n\.Bd[^\n]*\n(.*?)^\.Ed/ms;
cmp_ok(scalar @has, '>', 50, 'hdiff knows allocators');
is_deeply([split /\n/, $list // ''], \@has, 'hdiff.1 lists them');
done_testing;

# The lines that opt_help() prints: "  -p, --pid PID   words".
sub helped {
	my ($text) = @_;
	my %options;
	for (split /\r?\n/, $text) {
		next unless /^\s+(-\S.*?)(?:\s{2,}|$)/;
		$options{$_}++ for $1 =~ /(?:^|\s)(--?[\w-]+)/g;
	}
	return sort keys %options;
}

# ".It Fl p , Fl -pid Ar PID" in the sections about options: "-p", "--pid".
sub documented {
	my ($page) = @_;
	my (%options, $section);
	for (split /\n/, slurp($page)) {
		$section = $1 if /^\.Sh (.*)/;
		next unless /^\.It .*\bFl\b/ && ($section // '') =~ /OPTIONS|DESCRIPTION|COMMANDS/;
		$options{"-$1"}++ while /\bFl\s+([\w-]+)/g;
	}
	return sort keys %options;
}
