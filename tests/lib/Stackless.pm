# Rows of blocks without a stack, as hdiff reports them.
package Stackless;
use strict;
use warnings;
use Exporter qw(import);
use Hunt;

our @EXPORT = qw(stackless_rows stackless_growth);

# Returns the rows of blocks without a stack in json, by the names of their frames.
sub stackless_rows {
	my $report = hdiff_json('--no-local-files', '--no-cache', @_);
	return map { name_of($_) => $_ } grep { $_->{kind} eq 'stackless' } @{ $report->{rows} };
}

sub name_of {
	return join '|', map { $_->{module} ? "$_->{module}!" . ($_->{function} // "+$_->{offset}") : $_->{function} } @{ $_[0]{frames} };
}

sub stackless_growth { return { map { $_ => [@{ $_[0]{$_}{growth} }{qw(blocks bytes)}] } keys %{ $_[0] } } }

1;
