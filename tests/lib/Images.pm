# Synthetic processes: the minidumps and truths that tests/images/make_image writes, and hsnap's
# results for them.
package Images;
use strict;
use warnings;
no warnings 'portable';    # numbers of 64 bits
use Exporter qw(import);
use Test::More;
use Hunt;

our @EXPORT = qw(profiles breaks make_image make_and_read truth found balance_of true_balance walked walked_in wrong_of check_found check_walked growth_of);

my $maker = "$root/build/linux/images/make_image";

sub listed {
	my ($option) = @_;
	my $result = run([$maker, $option]);
	return map { /^(\S+)/ ? $1 : () } split /\n/, $result->{out};
}

sub profiles { return listed('--list-profiles') }

sub breaks { return listed('--list-breaks') }

# Writes FILE and FILE.truth. Returns true on success.
sub make_image {
	my ($file, @how) = @_;
	# Otherwise replacing the file would wait for the disk.
	unlink $file, "$file.truth", "$file.txt";
	my $result = run([$maker, @how, $file]);
	return $result->{status} == 0 && -s $file || !diag("make_image @how: status $result->{status} $result->{err}");
}

# Writes FILE and FILE.truth with the maker, FILE.txt with hsnap -z, and FILE.list with the walkers.
# Returns run()'s result for hsnap, or for the maker if the maker fails.
sub make_and_read {
	my ($file, @how) = @_;
	unlink map { "$file$_" } '', '.truth', '.txt', '.list';
	my $made = run([$maker, @how, $file]);
	my $result = $made->{status} ? $made : run(["$root/build/linux/hsnap", '-z', $file, '-f', "$file.txt"]);
	list_blocks($file);
	return $result;
}

sub list_blocks {
	my ($file) = @_;
	my $result = run(["$root/build/linux/walk/list_blocks", $file]);
	spew("$file.list", $result->{out} . ($result->{status} ? "list_blocks: status $result->{status} $result->{err}\n" : ''));
	return;
}

# Reads the maker's truth; returns it in the form of found().
sub truth {
	my ($file) = @_;
	my %truth = (blocks => {}, heaps => {}, modules => {}, stackless => {}, all => {}, sizes => {});
	my ($side, %stacks) = ('');
	for (split /\n/, slurp($file)) {
		my ($kind, @words) = split / /;
		if ($kind eq 'process') {
			$truth{process} = { map { split /=/ } @words };
		} elsif ($kind eq 'module') {
			$truth{modules}{ $words[0] } = [$words[1], join ' ', @words[2 .. $#words]];
		} elsif ($kind =~ /^heap(64)?$/) {
			$truth{heaps}{ $words[0] } = $words[1];
			$truth{stackless}{ $words[0] } = [0, 0, 0];
		} elsif ($kind =~ /^heapsize(64)?$/) {
			$truth{sizes}{ $words[0] } = "$words[1] committed, $words[2] reserved";
		} elsif ($kind eq 'stack') {
			my ($number, $id, @frames) = @words;
			$stacks{"$side$number"} = [$id, "@frames"];
		} elsif ($kind eq 'database') {
			$truth{database} //= [@words];
			$side = '64/'; # the rest describes the process's other half
		} elsif ($kind =~ /^block(64)?$/) {
			my $prefix = $1 ? '64/' : '';
			my ($heap, $addr, $requested, $overhead, $stack) = @words;
			$truth{count}++;
			$truth{bytes} += $requested;
			$truth{overhead} += $overhead;
			$truth{all}{$addr} = "$heap $requested $overhead";
			if ($stack eq '-') {
				my $stackless = $truth{stackless}{$heap};
				$stackless->[0]++;
				$stackless->[1] += $requested;
				$stackless->[2] += $overhead;
			} else {
				my $is = $stacks{"$prefix$stack"} // die "$file: no stack $prefix$stack\n";
				$truth{blocks}{$addr} = join ' ', $heap, $requested, $overhead, @$is;
			}
		}
	}
	return \%truth;
}

# Reads an hsnap dump: blocks { ADDR => "HEAP REQUESTED OVERHEAD ID FRAME..." }, heaps { ADDR =>
# KIND }, modules, and stackless { HEAP => [BLOCKS, REQUESTED, OVERHEAD] } for blocks without a
# stack.
sub found {
	my ($file) = @_;
	my %found = (blocks => {}, heaps => {}, modules => {}, stackless => {}, odd => []);
	my ($heap, $id, %frames, @blocks);
	for (split /\r?\n/, slurp($file)) {
		if (/^([0-9A-F]+) bytes \+ ([0-9A-F]+) at ([0-9A-F]+) by BackTrace(\S+)$/) {
			push @blocks, [$3, $heap, hex $1, hex $2, $id = $4];
		} elsif (/^\t([0-9A-F]+)$/) {
			push @{ $frames{$id} }, $1;
		} elsif (/Start of data for heap @ ([0-9A-F]+)/) {
			$heap = $1;
		} elsif (m{^// hsnap: heap (.*)}) {
			my %is = map { split /=/, $_, 2 } split / /, $1;
			push @{ $found{odd} }, "heap $is{addr} is there twice" if $found{heaps}{ $is{addr} };
			$found{heaps}{ $is{addr} } = $is{kind} . ($is{unwalked} ? ' unwalked' : '');
			$found{stackless}{ $is{addr} } = [map { $is{"stackless-$_"} } qw(blocks requested overhead)];
		} elsif (m{^// hsnap: end blocks=(\d+) requested=(\d+) overhead=(\d+)}) {
			@found{qw(count bytes overhead)} = ($1, $2, $3);
		} elsif (m{^//\s+([0-9A-F]+)\s+([0-9A-F]+) (.*)}) {
			$found{modules}{$1} = [hex $2, $3];
		} elsif (m{^// hsnap: process (.*)}) {
			$found{process} = { map { split /=/, $_, 2 } split / /, $1 };
		}
	}
	for my $block (@blocks) {
		my ($addr, @is) = @$block;
		push @{ $found{odd} }, "block $addr is there twice" if $found{blocks}{$addr};
		$found{blocks}{$addr} = join ' ', @is, @{ $frames{ $is[3] } // ['no frames'] };
	}
	return \%found;
}

# Returns the figures of a dump's notes; handles by type as "handles:TYPE".
sub balance_of {
	my ($file) = @_;
	my $text = slurp($file);
	my %found;
	for my $note ($text =~ m{^// hsnap: (?:memory|counts) (.*?)\r$}mg) {
		%found = (%found, $note =~ /(\S+)=(\d+)/g);
	}
	$found{"handles:$1"} = $2 while $text =~ m{^// hsnap: handles type="([^"]+)" count=(\d+)\r$}mg;
	return \%found;
}

# Reads the maker's truth; returns it in the form of balance_of().
sub true_balance {
	my ($file) = @_;
	my $text = slurp($file);
	my %truth = $text =~ /^(?:memory|count) (\S+) (\d+)$/mg;
	$truth{"handles:$2"} = $1 while $text =~ /^handles (\d+) (.+)$/mg;
	return \%truth;
}

# Runs the walkers: all { ADDR => "HEAP REQUESTED OVERHEAD" }, heaps { ADDR => KIND }, sizes { ADDR
# => "COMMITTED committed, RESERVED reserved" }, records { ADDR => RECORD } for blocks that have a
# record, and broken.
sub walked {
	my ($file) = @_;
	list_blocks($file);
	return walked_in("$file.list");
}

# Reads the output of list_blocks; returns the form of walked().
sub walked_in {
	my ($file) = @_;
	my %walked = (all => {}, heaps => {}, sizes => {}, records => {}, odd => [], broken => 0);
	for (split /\n/, slurp($file)) {
		my ($kind, @words) = split / /;
		if ($kind eq 'list_blocks:') {
			push @{ $walked{odd} }, $_;
		} elsif ($kind eq 'heap') {
			$walked{heaps}{ $words[0] } = $words[1];
			$walked{sizes}{ $words[0] } = "$words[2] committed, $words[3] reserved";
		} elsif ($kind eq 'block') {
			my ($heap, $addr, $requested, $overhead, $record) = @words;
			push @{ $walked{odd} }, "block $addr is there twice" if $walked{all}{$addr};
			$walked{all}{$addr} = "$heap $requested $overhead";
			$walked{records}{$addr} = hex $record if $record;
		} elsif ($kind eq 'broken') {
			$walked{broken} = $words[0];
		}
	}
	return \%walked;
}

# Returns all differences between the truth and the results of hsnap and its walkers.
sub wrong_of {
	my ($found, $walked, $truth) = @_;
	my @wrong = (@{ $found->{odd} }, @{ $walked->{odd} });
	push @wrong, differences('heap', $truth->{heaps}, $found->{heaps});
	push @wrong, differences('block', $truth->{all}, $walked->{all});
	push @wrong, differences('block', $truth->{blocks}, $found->{blocks}) if !@wrong;
	return @wrong;
}

# Checks that the walkers found every block exactly, with a stack or without: its address, its heap
# and its sizes.
sub check_walked {
	my ($walked, $truth, $what) = @_;
	my @wrong = @{ $walked->{odd} };
	push @wrong, "$walked->{broken} places made no sense" if $walked->{broken};
	push @wrong, differences('heap', $truth->{heaps}, $walked->{heaps});
	push @wrong, differences('block', $truth->{all}, $walked->{all});
	push @wrong, differences('size of heap', $truth->{sizes},
		{ map { $_ => $walked->{sizes}{$_} } keys %{ $truth->{sizes} } });
	my $frames_at = $truth->{process}{bits} == 64 ? 0x10 : 0xc;
	for my $addr (keys %{ $truth->{blocks} }) {
		my $id = hex((split / /, $truth->{blocks}{$addr}, 5)[3]) - $frames_at;
		my $got = $walked->{records}{$addr} // 0;
		push @wrong, sprintf 'block %s: its record is at %X; the truth is %X', $addr, $got, $id if $got != $id;
	}
	@wrong = (@wrong[0 .. 15], '... ' . @wrong . ' in all') if @wrong > 16;
	return ok(!@wrong, "$what: the walkers find exactly the truth, $truth->{count} blocks") || diag(join "\n", @wrong);
}

sub differences {
	my ($what, $wanted, $got) = @_;
	my @wrong;
	# the fast path: usually there are no differences
	return if keys %$wanted == keys %$got
	    && !grep { !defined $got->{$_} || ref $got->{$_} || $got->{$_} ne $wanted->{$_} } keys %$wanted;
	for my $key (sort { length $a <=> length $b || $a cmp $b } keys %{ { %$wanted, %$got } }) {
		my ($x, $y) = map { ref $_ ? "@$_" : $_ // 'nothing' } $wanted->{$key}, $got->{$key};
		push @wrong, "$what $key: found $y; the truth is $x" if $x ne $y;
	}
	return @wrong > 8 ? (@wrong[0 .. 7], '... ' . @wrong . " of these in all") : @wrong;
}

# Checks that heaps, blocks, sizes, stacks and modules are exact, and that nothing else was found.
sub check_found {
	my ($found, $truth, $what) = @_;
	my @wrong = @{ $found->{odd} };
	push @wrong, map { differences($_, $truth->{"${_}s"}, $found->{"${_}s"}) } qw(heap module block);
	push @wrong, differences('blocks without a stack in', $truth->{stackless}, $found->{stackless});
	push @wrong, differences('sum of', map { my $it = $_; +{ map { $_ => $it->{$_} } qw(count bytes overhead) } }
		    $truth, $found) if !@wrong;
	push @wrong, "it has $found->{process}{bits} bits and the pid $found->{process}{id}"
	    if $found->{process}{bits} != $truth->{process}{bits} || $found->{process}{id} != $truth->{process}{pid};
	return ok(!@wrong, "$what: exactly the truth, $truth->{count} blocks in " . keys(%{ $truth->{heaps} }) . ' heaps')
	    || diag(join "\n", @wrong);
}

# Returns the growth between two truths, { FRAMES => [BYTES, BLOCKS] }, for stacks that changed.
sub growth_of {
	my ($old, $new) = @_;
	my %growth;
	for my $side ([$old, -1], [$new, 1]) {
		my ($truth, $sign) = @$side;
		for (values %{ $truth->{blocks} }) {
			my (undef, $requested, undef, undef, @frames) = split / /;
			$growth{"@frames"}[0] += $sign * $requested;
			$growth{"@frames"}[1] += $sign;
		}
	}
	delete @growth{ grep { !$growth{$_}[0] && !$growth{$_}[1] } keys %growth };
	return \%growth;
}

1;
