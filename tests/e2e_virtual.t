#!/usr/bin/perl
# Virtual memory under hsnap run. Every page that a program reserves, commits or maps is in the
# dump, under its heading and with its stack. Released pages are not, however they are released. The
# truth is the program's own statement, which the program has compared with VirtualQuery.
use strict;
use warnings;
no warnings 'portable'; # 64 bits
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my %kinds = (virtual => 'committed', reserved => 'reserved', mapped => 'mapped', stack => 'stack');
my $dir = fresh_dir();
my (%functions, $case, %said);
is(follow('virtual_cases'), 23, 'all cases of VirtualAlloc were seen, and all of those who use it');
while_others_get_it();
done_testing;

# Threads free memory and get the same memory again all the time. Wherever they are when hsnap takes
# a snapshot, it must not treat any record of the tracer as damaged.
sub while_others_get_it {
	my $busy = target("$root/build/win64/targets/busy.exe", [4, 'virtual'], traced => 1);
	is($busy->step, 1, 'busy threads run');
	for my $round (1 .. 8) {
		my $result = hsnap('-p', $busy->{pid}, '-f', win("$dir/busy$round.txt"));
		is($result->{status}, 0, "snapshot $round of busy threads");
		unlike($result->{err}, qr/warning/, 'without a warning');
	}
	is($busy->quit, 0, 'the busy threads have found nothing wrong');
	return;
}

# Runs a program through all its cases; returns the number of cases.
sub follow {
	my ($program) = @_;
	my $target = target("$root/build/win64/targets/$program.exe", [], traced => 1);
	my $count = 0;
	%functions = %said = ();
	while (defined(my $line = $target->line)) {
		if ($line =~ /^function (\w+) ([0-9A-F]+)$/) {
			$functions{$1} = hex $2;
		} elsif ($line =~ /^case (.+)$/) {
			$case = $1;
		} elsif ($line =~ /^pages (\w+) ([0-9A-F]+) ([0-9A-F]+) (\w+)$/) {
			add_pages(\%said, $2, $3, "$1 by $4");
		} elsif ($line =~ /^cannot (.+)$/) {
			note("$case: this system refuses to $1");
		} elsif ($line =~ /^step (\d+) pid (\d+)$/) {
			compare($2, "$dir/$program-$1.txt");
			$count++;
			%said = ();
			syswrite $target->{to}, "\n";
		} else {
			fail("$case: $line");
		}
	}
	is($target->quit, 0, "$program came to its end");
	return $count;
}

# Adds every page with its kind and its stack. So the result does not depend on how ranges are
# split.
sub add_pages {
	my ($pages, $addr, $bytes, $what) = @_;
	($addr, $bytes) = (hex $addr, hex $bytes);
	for (my $at = $addr; $at < $addr + $bytes; $at += 4096) {
		$pages->{$at} .= $pages->{$at} ? " and $what" : $what;
	}
}

sub compare {
	my ($pid, $file) = @_;
	my $result = hsnap('-v', '-p', $pid, '-f', win($file));
	is($result->{status}, 0, "$case: snapshot") or return;
	my $found = pages_in(slurp($file));
	check_said(slurp($file), $result->{err});
	my @different = grep { ($said{$_} // '') ne ($found->{$_} // '') } sort { $a <=> $b } keys %{ { %said, %$found } };
	ok(!@different, "$case: " . keys(%said) . ' pages as they are')
	    or diag(map { sprintf "%X: %s; in the dump %s\n", $_, $said{$_} // 'nothing', $found->{$_} // 'nothing' }
		@different[0 .. ($#different > 20 ? 20 : $#different)]);
}

# hsnap -v reports separately how many of a dump's blocks and bytes are not memory. The test adds
# them up from the dump's list, as hdiff does.
sub check_said {
	my ($dump, $said) = @_;
	my ($is_reserved, $blocks) = (0, 0);
	my %bytes = (0 => 0, 1 => 0);
	for (split /\r\n/, $dump) {
		if (m{^// hsnap: heap addr=([0-9A-F]+) .*stackless-blocks=(\d+) stackless-requested=(\d+)}) {
			$bytes{ $1 eq '2' ? 1 : 0 } += $3;
			$blocks += $2 if $1 ne '2';
		} elsif (/^\*[- ]+Start of data for heap @ (\S+)/) {
			$is_reserved = $1 eq '2' ? 1 : 0;
		} elsif (/^([0-9A-F]+) bytes \+ [0-9A-F]+ at /) {
			$bytes{$is_reserved} += hex $1;
			$blocks += !$is_reserved;
		}
	}
	my ($said_blocks, $requested, $reserved) = $said =~ /: (\d+) blocks, (\d+) bytes requested(?: \(and (\d+) bytes of address space reserved\))?,/;
	is_deeply([$said_blocks, $requested, $reserved // 0], [$blocks, @bytes{0, 1}],
		"$case: blocks and bytes that are memory, and reserved ones");
	return;
}

# Returns the program's innermost function on a stack, or undef if the program is not on the stack.
sub function_of {
	my @by_addr = sort { $functions{$a} <=> $functions{$b} } keys %functions;
	my ($first, $last) = @functions{ @by_addr[0, -1] };
	for my $frame (grep { $_ >= $first && $_ < $last } map { hex } @_) {
		return (grep { $functions{$_} <= $frame } @by_addr)[-1];
	}
	return;
}

# Returns the pages that the program's functions allocated, by the headings.
sub pages_in {
	my ($dump) = @_;
	my (%heap_kinds, %stacks, @ranges, $kind, $frames);
	for (split /\r\n/, $dump) {
		if (m{^// hsnap: heap addr=([0-9A-F]+) kind=(\w+)}) {
			$heap_kinds{$1} = $kinds{$2};
		} elsif (/^\*[- ]+Start of data for heap @ (\S+)/) {
			$kind = $heap_kinds{$1};
		} elsif (/^([0-9A-F]+) bytes \+ ([0-9A-F]+) at ([0-9A-F]+) by BackTrace(\S+)$/) {
			push @ranges, [$kind, $3, $1, $4] if $kind;
			ok($2 eq '0', "no overhead at $3") if $kind && $2 ne '0';
			$frames = $stacks{$4} //= [];
		} elsif (/^\t([0-9A-F]+)$/) {
			push @$frames, $1;
		}
	}
	my %listed = map { $_ => 1 } grep { defined } values %heap_kinds;
	is(join(' ', sort keys %listed), 'committed mapped reserved stack', "$case: the headings");
	my %pages;
	for (@ranges) {
		my ($what, $addr, $bytes, $id) = @$_;
		my $function = function_of(@{ $stacks{$id} }) or next;
		add_pages(\%pages, $addr, $bytes, "$what by $function");
	}
	return \%pages;
}
