package Comments;
# The comments of a source text, each joined to one line: C comments, and in scripts each block of
# lines that begin with #.
use strict;
use warnings;
use Exporter 'import';

our @EXPORT = qw(comments_of);

# Returns [LINE, TEXT] of each comment.
sub comments_of {
	my ($text, $is_c) = @_;
	return $is_c ? c_comments($text) : script_comments($text);
}

sub c_comments {
	my ($text) = @_;
	my ($line, $from, @found) = (1, 0);
	while ($text =~ m{"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|/\*(.*?)\*/}sg) {
		my ($comment, $at) = ($1, $-[0]);
		$line += substr($text, $from, $at - $from) =~ tr/\n//;
		$from = $at;
		push @found, [$line, plain($comment)] if defined $comment;
	}
	return @found;
}

sub script_comments {
	my ($text) = @_;
	my ($line, @found, $open) = (0);
	for (split /\n/, $text) {
		$line++;
		my ($own) = /^\s*#(?!!)\s?(.*)/;
		my ($after) = /\S\s+# ([A-Za-z].*)$/;
		if (defined $own) {
			$open //= [$line, ''];
			$open->[1] .= "$own ";
			next;
		}
		push @found, $open if $open;
		$open = undef;
		push @found, [$line, $after] if defined $after;
	}
	push @found, $open if $open;
	return map { [$_->[0], plain($_->[1])] } @found;
}

sub plain { return $_[0] =~ s/\n\s*\*?/ /gr =~ s/\s+/ /gr =~ s/^[ *-]+|[ *-]+$//gr }

1;
