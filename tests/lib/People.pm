# hdiff's report for people, parsed, and amounts in units such as KiB.
package People;
use strict;
use warnings;
use Exporter qw(import);
our @EXPORT = qw(in_units signed_units with_commas people);

# Formats a size like "12.3 MiB": one digit after the point, rounded; whole bytes below 1 KiB.
sub in_units {
	my ($bytes) = @_;
	return "$bytes B" if $bytes < 1024;
	my ($tenths, @units) = ($bytes * 10, qw(KiB MiB GiB TiB));
	my $unit = 'B';
	while ($tenths >= 10239.5) {
		$tenths /= 1024;
		$unit = shift @units;
	}
	return sprintf '%.1f %s', int($tenths + 0.5) / 10, $unit;
}

sub signed_units {
	my ($bytes) = @_;
	return ($bytes > 0 ? '+' : $bytes < 0 ? '-' : '') . in_units(abs $bytes);
}

sub with_commas {
	my ($number) = @_;
	1 while $number =~ s/^(-?\d+)(\d{3})/$1,$2/;
	return $number;
}

# Parses a report: {title, from, to, table: [{number, growth, blocks, share, name}], total: [growth,
# blocks], stacks: [{number, growth, blocks, now, verdict, frames: [...]}], groups: [{self, blocks,
# total, name}], tree: [{growth, blocks, share, depth, is_one (of several), name}]}, with amounts as
# written.
sub people {
	my ($text) = @_;
	my $size = qr/[+-]?\d+(?:\.\d)? [KMGTPE]?i?B/;
	my $count = qr/[+-]?[\d,]+/;
	my %report = (table => [], stacks => [], groups => [], tree => []);
	my @lines = split /\r?\n/, $text;
	$report{title} = $lines[0];
	my $headings = '';
	for (@lines) {
		$headings = $_ if /^ +(?:growth|bytes|self|total) +blocks\b/;
		if (/^from (.*) to (\S+, \S+)$/) { @report{qw(from to)} = ($1, $2) }
		elsif (/^from (.*)/) { $report{from} = $1 }
		elsif (/^to   (.*)/) { $report{to} = $1 }
		elsif (/^(?:in all|selected): ($size), ($count) blocks?$/) { $report{total} = [$1, $2] }
		elsif (/^ {0,2}(\d+) +($size) +($count) +(?:(<?\d+) %)? +(.*)$/) {
			push @{ $report{table} }, { number => $1, growth => $2, blocks => $3, share => $4, name => $5 };
		} elsif (/^ {0,2}(\d+) ($size), ($count) blocks?(?:; now ($size) in ($count))?/) {
			push @{ $report{stacks} }, { number => $1, growth => $2, blocks => $3, now => [$4, $5], frames => [] };
		} elsif (my @node = $headings =~ /calls|called by/
			? /^ +($size) +($count) +(<?\d+) % {2}(new  |gone |     )( *(?:- )?)(\S.*)$/ : ()) {
			push @{ $report{tree} }, { growth => $node[0], blocks => $node[1], share => $node[2], depth => length $node[4], is_one => scalar($node[4] =~ /-/),
				name => $node[5] };
		} elsif ($headings =~ /self/ && /^ +($size) +($count) +($size) {2}(.*)$/) {
			push @{ $report{groups} }, { self => $1, blocks => $2, total => $3, name => $4 };
		} elsif (/^ {6}((?:grows|grew-once|returns|steady|shrinks|too-few)\b.*)$/) {
			$report{stacks}[-1]{verdict} = $1;
		} elsif (/^ {6}(\S.*)$/ && @{ $report{stacks} }) {
			push @{ $report{stacks}[-1]{frames} }, $1;
		}
	}
	return \%report;
}

1;
