# Folders of 'hsnap doctor --keep'. Compares what hsnap -z reads from each minidump with the truth
# beside it.
package Kept;
use strict;
use warnings;
no warnings 'portable';    # addresses have 64 bits
use Exporter qw(import);
use File::Basename qw(basename);
use IO::Uncompress::Gunzip qw(gunzip $GunzipError);
use Test::More;
use Hunt;
use Images ();

our @EXPORT = qw(check_kept kept_wrong unpacked_dump kept_states);

my ($FEW, $FREED_PART) = (32, 8); # how many freed blocks Windows may put aside: doctor_compare.c

# Returns the names of the states in a folder: plain-64, ust-32, ...
sub kept_states {
	my ($folder) = @_;
	return map { /^(.*)\.dmp\.gz$/ ? $1 : () } files_in($folder);
}

# Unpacks a minidump into its own folder; returns the path.
sub unpacked_dump {
	my ($folder, $state) = @_;
	my $file = fresh_dir() . "/$state.dmp";
	gunzip("$folder/$state.dmp.gz", $file) or die "$folder/$state.dmp.gz: $GunzipError\n";
	return $file;
}

# Reads the child's statements: heaps { ADDR => KIND }, blocks { ADDR => "HEAP REQUESTED" }, sites {
# ADDR => [SITE...] }, freed { ADDR => HEAP }, code { image, outer, SITE => [FROM, TO] }, process.
sub truth {
	my ($file) = @_;
	my %truth = map { $_ => {} } qw(heaps blocks sites freed code);
	for (split /\n/, slurp($file)) {
		my ($kind, @words) = split / +/;
		if ($kind eq 'process') {
			$truth{process} = { map { split /=/ } @words };
		} elsif ($kind eq 'heap') {
			$truth{heaps}{ $words[0] } = $words[1];
		} elsif ($kind eq 'block') {
			$truth{blocks}{ $words[1] } = "$words[0] $words[2]";
			$truth{sites}{ $words[1] } = [split /\|/, $words[5]];
		} elsif ($kind eq 'freed') {
			$truth{freed}{ $words[1] } = $words[0];
		} elsif ($kind eq 'site') {
			$truth{code}{ $words[0] } = [map { hex } @words[1, 2]];
		} elsif ($kind =~ /^(?:image|outer)$/) {
			$truth{code}{$kind} = [map { hex } @words];
		}
	}
	return \%truth;
}

# Returns all differences between the truth in a file and a minidump, as read by hsnap -z and its
# walkers.
sub kept_wrong {
	my ($dump, $truth_file) = @_;
	my $truth = truth($truth_file);
	my $result = run([@{ tool('hsnap', 'linux', '-z', $dump, '-f', "$dump.txt") }]);
	my ($found, $walked) = (Images::found("$dump.txt"), Images::walked($dump));
	my $has_stacks = $truth->{process}{flags} ne '0';
	my @wrong = (@{ $found->{odd} }, @{ $walked->{odd} });
	push @wrong, "status $result->{status}: $result->{err}" if $result->{status};
	push @wrong, "warning: $1" while $result->{err} =~ /warning: ((?!no block has a stack).*)/g;
	push @wrong, Images::differences('heap', $truth->{heaps}, heaps_of("$dump.txt", $truth->{process}{bits}));
	my %all = map { my ($heap, $bytes) = split / /, $walked->{all}{$_}; $_ => "$heap $bytes" } keys %{ $walked->{all} };
	push @wrong, Images::differences('block', $truth->{blocks}, { map { $_ => $all{$_} } grep { $all{$_} } keys %{ $truth->{blocks} } });
	my @listed = grep { ($all{$_} // '') =~ /^$truth->{freed}{$_} / } keys %{ $truth->{freed} };
	push @wrong, @listed . " freed blocks are listed, $listed[0] among them"
	    if @listed && (grep({ $_ eq 'wine' } values %{ $truth->{heaps} }) || @listed > $FEW || @listed > keys(%{ $truth->{freed} }) / $FREED_PART);
	push @wrong, wrong_stacks($found, $truth) if $has_stacks && !@wrong;
	return @wrong;
}

# Returns a dump's heaps in one half of a process.
sub heaps_of {
	my ($file, $bits) = @_;
	my %heaps;
	for (slurp($file) =~ m{^// hsnap: heap (.*)$}mg) {
		my %is = map { split /=/, $_, 2 } grep { /=/ } split ' ';
		$heaps{ $is{addr} } = $is{kind} . ($is{unwalked} ? ' unwalked' : '') if ($is{bits} // $bits) == $bits;
	}
	return \%heaps;
}

# Returns wrong stacks. The innermost frame in the child's program must be the block's site. The
# function that calls all sites must be farther out.
sub wrong_stacks {
	my ($found, $truth) = @_;
	my $code = $truth->{code};
	my $in = sub { my ($frame, $range) = @_; return $frame > $range->[0] && $frame <= $range->[1] };
	my @wrong;
	for my $addr (sort keys %{ $truth->{blocks} }) {
		my (undef, undef, undef, undef, @frames) = split / /, $found->{blocks}{$addr} // '';
		my ($first, @outer) = grep { $in->($_, $code->{image}) } map { /^[0-9A-F]+$/ ? hex : () } @frames;
		push @wrong, "block $addr: its stack does not lead to where it was allocated"
		    if !defined $first || !grep({ $in->($first, $code->{$_}) } @{ $truth->{sites}{$addr} }) || !grep { $in->($_, $code->{outer}) } @outer;
	}
	return @wrong > 8 ? (@wrong[0 .. 7], '... ' . @wrong . ' in all') : @wrong;
}

# Checks that each minidump of a folder is read exactly as the truth states.
sub check_kept {
	my ($folder, $what) = @_;
	my @states = kept_states($folder);
	ok(scalar @states, "$what: minidumps are there");
	for my $state (@states) {
		my @wrong = kept_wrong(unpacked_dump($folder, $state), "$folder/$state.truth");
		is_deeply(\@wrong, [], "$what: $state is read as its truth has it");
	}
	return;
}

1;
