# One cell of the matrix in which tests/live runs: bits of the target and bits of hsnap, under the
# installed Wine.
#
#   HSNAP_CELL_TARGET   64 (the default) or 32: bits of the targets
#   HSNAP_CELL_HSNAP    64 (the default): hsnap.exe, which delegates 32-bit targets to the hsnap32.exe
#                       beside it; 32: hsnap32.exe
#   HSNAP_CELL_WINE     required Wine, which must run programs of both bitnesses: 8, 10 or 10-wow64 (tests/platforms)
#
# A test gets its programs here, so it is the same in each cell. The truth is the target's own
# statement (tests/targets/stated.h).
package Cell;
use strict;
use warnings;
no warnings 'portable';    # addresses have 64 bits
use Exporter qw(import);
use File::Basename qw(basename);
use File::Copy qw(copy);
use Test::More;
use Hunt;

our @EXPORT = qw($target_bits $hsnap_bits needs_other_bits target_path other_path start_stating stated next_stated blocks_in growth_of
    check_blocks check_heap_sums check_sums check_chains check_stackless);

our $target_bits = bits_from('HSNAP_CELL_TARGET');
our $hsnap_bits = bits_from('HSNAP_CELL_HSNAP');
my $shown_at_most = 10; # number of differences of each sort that are printed
my $runs_32;

plan(skip_all => 'a 32-bit hsnap does not look at 64-bit programs') if $hsnap_bits < $target_bits;
if ($target_bits == 32 && !runs_32()) {
	BAIL_OUT('this Wine runs no 32-bit programs') if $ENV{HSNAP_CELL_WINE};
	plan(skip_all => 'this Wine runs no 32-bit programs');
}
$Hunt::hsnap = program_dir() . ($hsnap_bits == 32 ? '/hsnap32.exe' : '/hsnap.exe');
note("a $target_bits-bit target, by $Hunt::hsnap");

sub bits_from {
	my ($name) = @_;
	my $bits = $ENV{$name} // 64;
	die "$name=$bits: 64 or 32\n" if $bits !~ /^(?:64|32)$/;
	return $bits;
}

sub runs_32 {
	my $exe = "$root/build/win32/targets/parent.exe";
	$runs_32 //= -e $exe && run([wine($exe, 0)], limit => 280)->{out} =~ /^parent 0 pid / ? 1 : 0;
	return $runs_32;
}

# Returns the folder with both hsnaps and both tracers.
sub program_dir {
	my $dir = "$root/build/win64";
	return $dir if -e "$dir/hsnap32.exe" || ($target_bits == 64 && $hsnap_bits == 64);
	my $to = fresh_dir();
	my %from = (map({ $_ => "$dir/$_" } qw(hsnap.exe hsnap-tracer64.dll)), 'hsnap32.exe' => "$root/build/win32/hsnap.exe",
		'hsnap-tracer32.dll' => "$root/build/win32/hsnap-tracer32.dll");
	for my $name (sort keys %from) {
		copy($from{$name}, "$to/$name") or die "$from{$name}: $!\n";
	}
	return $to;
}

# Skips the calling subtest if programs of the other bitness cannot run.
sub needs_other_bits {
	plan(skip_all => 'this Wine runs no 32-bit programs') if !runs_32();
	return;
}

# target_path('samples/leak_steady.exe') returns the path of this cell's build of a program;
# other_path returns that of the other bitness.
sub target_path { return "$root/build/win$target_bits/$_[0]" }
sub other_path { return "$root/build/win" . (96 - $target_bits) . "/$_[0]" }

# ---------------------------------------------------------------- statements

sub start_stating {
	my ($name, $args, %how) = @_;
	return target(target_path($name), $args, %how);
}

# Reads a target's statements up to its next step: { step, heaps, blocks => { ADDR => [BYTES, DOOR]
# }, gone => { ADDR => DOOR }, whole => { DOOR => HANDLE }, sums => { FUNCTION => [BYTES, BLOCKS] },
# chains => { FUNCTION => [CALLER...] } }.
sub stated {
	my ($target) = @_;
	my %said = map { $_ => {} } qw(blocks gone whole sums chains);
	while (defined(my $line = $target->line)) {
		if ($line =~ /^block ([0-9A-F]+) (\d+) (\w+)$/) {
			$said{blocks}{ hex $1 } = [$2, $3];
		} elsif ($line =~ /^gone ([0-9A-F]+) (\w+)$/) {
			$said{gone}{ hex $1 } = $2;
		} elsif ($line =~ /^whole ([0-9A-F]+) (\w+)$/) {
			$said{whole}{$2} = hex $1;
		} elsif ($line =~ /^sum (\w+) (\d+) (\d+)$/) {
			$said{sums}{$1} = [$2, $3];
		} elsif ($line =~ /^chain (\w+)(?: (.*))?$/) {
			$said{chains}{$1} = [$1, split / /, $2 // ''];
		} elsif ($line =~ /^heaps (\d+)$/) {
			$said{heaps} = $1;
		} elsif ($line =~ /^step (\d+) pid (\d+)$/) {
			$target->{pid} = $2;
			$said{step} = $1;
			return \%said;
		# A heap that also has blocks that are not stated.
		} elsif ($line !~ /^heap [0-9A-F]+ \w+$/) {
			die "$target->{exe}: an unknown statement: $line\n";
		}
	}
	die "$target->{exe}: no step in time: ", slurp("$target->{err}"), "\n";
}

# Lets a target continue; returns its statements up to the next step.
sub next_stated {
	my ($target) = @_;
	syswrite $target->{to}, "\n";
	return stated($target);
}

sub growth_of {
	my ($before, $after) = @_;
	my %grown;
	for my $function (keys %{ $after->{sums} }) {
		my $old = $before->{sums}{$function} // [0, 0];
		$grown{$function} = [map { $after->{sums}{$function}[$_] - $old->[$_] } 0, 1];
	}
	return \%grown;
}

# ---------------------------------------------------------------- dumps

# Reads a dump's single blocks: { ADDR => [BYTES, HEAP, ID] }.
sub blocks_in {
	my ($file) = @_;
	my ($heap, %blocks) = (0);
	for (split /\r?\n/, slurp($file)) {
		if (/^([0-9A-F]+) bytes \+ [0-9A-F]+ at ([0-9A-F]+) by BackTrace(\S+)$/) {
			$blocks{ hex $2 } = [hex $1, $heap, $3];
		} elsif (/^\*-.* Start of data for heap @ ([0-9A-F]+) /) {
			$heap = hex $1;
		}
	}
	return \%blocks;
}

# Checks that a dump has every stated block with its size and in its heap, has no freed block, and
# has no other block in a heap that is stated to be whole.
sub check_blocks {
	my ($file, $said, $what) = @_;
	my $found = blocks_in($file);
	my %whole = reverse %{ $said->{whole} };
	my (%wrong, %doors);
	for my $addr (keys %{ $said->{blocks} }) {
		my ($bytes, $door) = @{ $said->{blocks}{$addr} };
		my $block = $found->{$addr};
		my $line = sprintf '%X, %d bytes, %s', $addr, $bytes, $door;
		if (!$block) {
			push @{ $wrong{missing} }, $line;
		} elsif ($block->[0] != $bytes) {
			push @{ $wrong{'of another size'} }, "$line: $block->[0]";
		} elsif (($said->{whole}{$door} // $block->[1]) != $block->[1]) {
			push @{ $wrong{'in another heap'} }, sprintf "$line: %X", $block->[1];
		}
	}
	for my $addr (keys %$found) {
		my ($bytes, $heap) = @{ $found->{$addr} };
		my $line = sprintf '%X, %d bytes', $addr, $bytes;
		next if $said->{blocks}{$addr};
		push @{ $wrong{freed} }, "$line, $said->{gone}{$addr}" if defined $said->{gone}{$addr};
		push @{ $wrong{'not of the program'} }, "$line, $whole{$heap}" if defined $whole{$heap};
	}
	my $count = keys %{ $said->{blocks} };
	my @lines = map { my @all = sort @{ $wrong{$_} }; (scalar(@all) . " $_:", map { "  $_" } splice @all, 0, $shown_at_most) } sort keys %wrong;
	return ok($count && !@lines, "$what: $count blocks, exactly") || diag(join "\n", @lines);
}

# For a dump without stacks: checks the number of blocks and bytes in heaps that are stated to be
# whole. In the heap of DOOR, checks only the blocks.
sub check_heap_sums {
	my ($file, $said, $what, $door) = @_;
	my (%stated, %found);
	for my $block (values %{ $said->{blocks} }) {
		my $heap = $said->{whole}{ $block->[1] } // next;
		$stated{$heap}[0]++;
		$stated{$heap}[1] += $block->[0];
	}
	for my $note (slurp($file) =~ m{^// hsnap: heap (addr=[0-9A-F]+ .*?)\r?$}mg) {
		my ($heap, @sums) = $note =~ /^addr=(\w+) .*\bstackless-blocks=(\d+) stackless-requested=(\d+)/ or next;
		$found{ hex $heap } = \@sums if $stated{ hex $heap };
	}
	if (my $sums = $found{ $said->{whole}{$door} }) {
		$sums->[1] = $stated{ $said->{whole}{$door} }[1];
	}
	return is_deeply(\%found, \%stated, "$what: blocks and bytes of " . keys(%stated) . ' heaps');
}

sub bare_name {
	my ($name) = @_;
	$name =~ s/\(anonymous namespace\)|`anonymous namespace'|_GLOBAL__N_\w*/anonymous/g;
	return $name =~ s/\(.*//sr =~ s/^.*:://sr;
}

# Returns hdiff's rows of one or two dumps. Each row has the functions of a module that are on its
# stack. MAY_WARN: warnings about the dumps are allowed.
sub rows_of {
	my ($files, $module, $what, $may_warn) = @_;
	my $result = run(tool('hdiff', 'linux', @$files));
	$result->{err} =~ s/^hdiff: [^\n]*: warning: [^\n]*\n//mg if $may_warn;
	check_ok($result, "$what: hdiff") or return;
	my $report = report($result->{out});
	check_report($report, $what) or return;
	return map { +{ %$_, functions => [map { bare_name($_->{function}) } chain_of($_, $module)] } } @{ $report->{rows} };
}

# Compares the bytes and blocks of the stacks on which each function lies with the stated ones.
# FILES: one dump, or two dumps, whose difference is compared.
sub check_sums {
	my ($files, $module, $sums, $what, $may_warn) = @_;
	my %found = map { $_ => [0, 0] } keys %$sums;
	for my $row (rows_of($files, $module, $what, $may_warn)) {
		my %once = map { $_ => 1 } @{ $row->{functions} };
		for my $function (grep { $found{$_} } keys %once) {
			$found{$function}[0] += $row->{bytes};
			$found{$function}[1] += $row->{count};
		}
	}
	my @wrong = map { "$_: $found{$_}[0] bytes, $found{$_}[1] blocks; stated are $sums->{$_}[0], $sums->{$_}[1]" }
	    grep { "@{ $found{$_} }" ne "@{ $sums->{$_} }" } sort keys %found;
	return ok(%found && !@wrong, "$what: the sums of " . keys(%found) . ' functions') || diag(join "\n", @wrong);
}

# Checks that every stack with a stated function has the stated callers.
sub check_chains {
	my ($file, $module, $said, $what) = @_;
	my (%seen, @wrong);
	for my $row (rows_of([$file], $module, $what)) {
		my ($function) = grep { $said->{chains}{$_} } @{ $row->{functions} } or next;
		my ($found, $stated) = map { join ' < ', @$_ } $row->{functions}, $said->{chains}{$function};
		$seen{$function} = 1;
		push @wrong, "$row->{count} blocks: $found; stated is $stated" if $found ne $stated;
	}
	push @wrong, map { "no stack with $_" } grep { !$seen{$_} } sort keys %{ $said->{chains} };
	return ok(%seen && !@wrong, "$what: the chains of " . keys(%{ $said->{chains} }) . ' functions') || diag(join "\n", @wrong);
}

# Checks a snapshot without stacks: status 0, and only the warning about missing stacks.
sub check_stackless {
	my ($result, $what) = @_;
	my $well = $result->{status} == 0 && $result->{err} =~ /\Ahsnap: [^\n]*: warning: no block has a stack[^\n]*\n\z/;
	return ok($well, "$what: status 0, a warning that no block has a stack")
	    || diag("$result->{command}\nstatus $result->{status}\nstderr: $result->{err}");
}

1;
