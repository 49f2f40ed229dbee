# Parsed charts of usage over time: their texts, and the heights that are drawn.
package Charts;
use strict;
use warnings;
use Exporter qw(import);
use File::Temp;
use Hunt;

our @EXPORT = qw(xml_error chart_of);
needs_linux('xmllint') if system('command -v xmllint >/dev/null 2>&1');

sub xml_error {
	my ($svg) = @_;
	my $file = File::Temp->new;
	spew("$file", $svg);
	my $result = run(['xmllint', '--noout', '--nonet', "$file"]);
	return $result->{status} ? "status $result->{status}: $result->{err}" : '';
}

# Parses a chart: { error => XML error, figures => [{ time_ms, bytes, count, highest_bytes,
# highest_ms }] shown at the pointer, tops => [bytes at the upper edge of each span's area], ends =>
# [bytes of the line, starting at the first moment] }. tops and ends are measured on the scale that
# is drawn beside them.
sub chart_of {
	my ($svg) = @_;
	my %units = (B => 1, KiB => 1 << 10, MiB => 1 << 20, GiB => 1 << 30);
	my %chart = (error => xml_error($svg), figures => [], tops => [], ends => []);
	while ($svg =~ /<title>(\d+)\.(\d+) s: (\d+) bytes? in (\d+) blocks?\b.*?; highest (\d+) at (\d+)\.(\d+) s</g) {
		push @{ $chart{figures} }, { time_ms => 0 + "$1$2", bytes => $3, count => $4, highest_bytes => $5, highest_ms => 0 + "$6$7" };
	}
	my @scale;
	push @scale, [$1, $2 * $units{$3}] while $svg =~ /<line class="grid"[^>]* y1="([\d.]+)"[^>]*>\s*<text[^>]*>([\d.]+) (\w+)</g;
	return \%chart if @scale < 2;
	my $by_pixel = ($scale[-1][1] - $scale[0][1]) / ($scale[0][0] - $scale[-1][0]);
	my $bytes = sub { return ($scale[0][0] - $_[0]) * $by_pixel };
	my $count = @{ $chart{figures} };
	while ($svg =~ /<path class="(\w+)" d="([^"]*)"/g) {
		my ($class, $way) = ($1, $2);
		if ($class eq 'end') {
			$chart{ends} = [map { $bytes->($_) } $way =~ /[ML][\d.]+ ([\d.]+)/g];
		} else { # areas are stacked: each begins at the previous one
			$chart{tops} = [map { $bytes->($_) } ($way =~ /V([\d.]+)H/g)[0 .. $count - 1]];
		}
	}
	return \%chart;
}

1;
