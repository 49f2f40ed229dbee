#!/usr/bin/perl
# hsnap --by-stack and --gzip. A dump by stack has one line per stack and heap, with the sums of a
# synthetic process's blocks and the same totals as a dump of every block. hdiff finds no growth
# between the two forms. The sums agree with the truth of a traced sample. A compressed file has the
# same text, under a name with .gz.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();
my @images = (
	['win10-x64', '--segment', '--heaps', 2, '--ust'],
	['win7-x86', '--heaps', 20, '--ust'],
	['win7-x64', '--page-heap', 'full', '--ust'],
	['win10-x64', '--heaps', 3], # has no stacks, so there is nothing to sum up
);
check_image($_, @{ $images[$_] }) for 0 .. $#images;
check_packed();
check_traced();
check_virtual();
check_sample();
done_testing;

# ---------------------------------------------------------------- synthetic processes

sub check_image {
	my ($number, @options) = @_;
	my ($image, $what) = ("$dir/$number.dmp", "@options");
	my $made = run(["$root/build/linux/images/make_image", @options, '--blocks', 3000, $image]);
	is($made->{status}, 0, "made: $what") or diag($made->{err});
	my ($full, $sums) = map { "$dir/$number-$_.txt" } qw(full sums);
	my @results = (run(["$root/build/linux/hsnap", '-z', $image, '-f', $full]),
		run(["$root/build/asan/hsnap", '-z', $image, '--by-stack', '-f', $sums]));
	is($_->{status}, 0, "$what: is read") for @results;
	is($results[1]{err}, $results[0]{err}, "$what: with the same warnings by stack");
	my ($truth, $dump) = (truth_of(slurp("$image.truth")), read_dump($sums));
	is_deeply($dump->{sums}, $truth->{sums}, "$what: what each stack has in each heap");
	is_deeply($dump->{heaps}, $truth->{heaps}, "$what: the heaps' notes");
	is($dump->{end}, $truth->{end}, "$what: and the end mark");
	is($dump->{blocks}, 0, "$what: no single block");
	is_deeply($dump->{twice}, [], "$what: each stack has its frames once");
	like($dump->{text}, qr{^// hsnap: sums by=stack\r$}m, "$what: a note says how it was taken");
	is_deeply(frames_of($sums), frames_of($full), "$what: the stacks are the same");
	note(sprintf '%s: %d bytes, by stack %d', $what, -s $full, -s $sums);
	cmp_ok(-s $sums, '<', -s $full, "$what: it is smaller") if keys %{ $truth->{sums} };
	same_for_hdiff($full, $sums, $what, $truth->{end});
	return;
}

# Sums the blocks, which an image's truth lists one by one.
sub truth_of {
	my ($text) = @_;
	my (%ids, %of, %heaps, %sums, @total);
	$ids{$1} = $2 while $text =~ /^stack (\d+) (\w+)/mg;
	while ($text =~ /^block (\w+) \w+ (\d+) (\d+) (\S+)$/mg) {
		my $to = $4 eq '-' ? $heaps{$1}{stackless} //= [0, 0, 0] : $of{"$1 $ids{$4}"} //= [0, 0, 0];
		my @one = (1, $2, $3);
		$to->[$_] += $one[$_], $total[$_] += $one[$_] for 0 .. 2;
	}
	for my $key (keys %of) {
		my ($count, $requested, $overhead) = @{ $of{$key} };
		my $rest = $overhead % $count;
		$sums{$key} = [$count, $requested, int($requested / $count), ($overhead - $rest) / $count];
		$heaps{ $key =~ s/ .*//r }{rest} += $rest;
	}
	my %notes;
	for my $heap ($text =~ /^heap (\w+)/mg) {
		my $stackless = $heaps{$heap}{stackless} // [0, 0, 0];
		$notes{$heap} = join ' ', @$stackless, $heaps{$heap}{rest} // 0;
	}
	return { sums => \%sums, heaps => \%notes, end => "@total" };
}

sub read_dump {
	my ($file) = @_;
	my $text = $file =~ /\.gz$/ ? run(['gzip', '-dc', $file])->{out} : slurp($file);
	my %dump = (text => $text, blocks => 0, sums => {}, heaps => {}, twice => []);
	my ($heap, $id, %frames);
	for (split /\r\n/, $dump{text}) {
		if (/^\*.* Heap (\w+) Hogs/) {
			$heap = $1;
		} elsif (/^(\w+) bytes in 0x(\w+) allocations \(@ 0x(\w+) \+ 0x(\w+)\) by: BackTrace(\w+)$/) {
			$id = $5;
			push @{ $dump{twice} }, "sum of $heap $id" if $dump{sums}{"$heap $id"};
			$dump{sums}{"$heap $id"} = [map { hex } $2, $1, $3, $4];
		} elsif (/^[0-9A-F]+ bytes \+ /) {
			$dump{blocks}++;
		} elsif (/^\t/) {
			push @{ $dump{twice} }, "frames of $id" if defined $frames{$id} && $frames{$id} ne $heap;
			$frames{$id} = $heap;
		} elsif (m{^// hsnap: heap addr=(\w+) }) {
			my $addr = $1;
			my %pairs = /(\S+)=(\d+)/g;
			$dump{heaps}{$addr} = join ' ', map { $_ // 0 }
			    @pairs{qw(stackless-blocks stackless-requested stackless-overhead rest-overhead)};
		} elsif (m{^// hsnap: end blocks=(\d+) requested=(\d+) overhead=(\d+)$}) {
			$dump{end} = "$1 $2 $3";
		}
	}
	return \%dump;
}

sub frames_of {
	my ($file) = @_;
	my (%frames, $id);
	for (split /\r\n/, slurp($file)) {
		$id = $1 if /BackTrace(\w+)$/;
		push @{ $frames{$id} }, $1 if /^\t(.*)/;
	}
	return \%frames;
}

# Checks that nothing grows between two forms of the same state, and that both are complete.
sub same_for_hdiff {
	my ($full, $sums, $what, $end) = @_;
	for my $pair ([$full, $sums], [$sums, $full]) {
		my $report = report(run([@{ tool('hdiff', 'linux', '--no-symbols') }, @$pair])->{out});
		check_report($report, $what);
		is(scalar @{ $report->{rows} }, 0, "$what: nothing grows");
		is_deeply($report->{total}, [0, 0, 0], "$what: nor does the sum");
	}
	my @totals = map { report(run([@{ tool('hdiff', 'linux', '--no-symbols') }, $_])->{out})->{total} } $full, $sums;
	is_deeply($totals[1], $totals[0], "$what: hdiff finds the same total of either");
	my (undef, $requested, $overhead) = split / /, $end // return;
	is_deeply($totals[1], [$requested, $overhead, $requested + $overhead], "$what: which is the true one");
	return;
}

# ---------------------------------------------------------------- compressed

sub check_packed {
	my $hsnap = "$root/build/linux/hsnap";
	my @take = ($hsnap, '-z', "$dir/0.dmp", '--by-stack', '--gzip', '-f');
	mkdir "$dir/packed" or die $!;
	is(run([@take, "$dir/packed/$_"])->{status}, 0, "packed to $_") for qw(a.txt b.txt.gz c.GZ);
	is_deeply([files_in("$dir/packed")], [qw(a.txt.gz b.txt.gz c.GZ)], 'names end in .gz once');
	my $text = slurp("$dir/0-sums.txt");
	for my $name (files_in("$dir/packed")) {
		my $gzip = run(['gzip', '-dc'], stdin => "$dir/packed/$name");
		is($gzip->{status}, 0, "gzip reads $name");
		ok($gzip->{out} eq $text, 'and finds the text');
	}
	cmp_ok(-s "$dir/packed/a.txt.gz", '<', length($text) / 2, 'it is smaller');
	same_for_hdiff("$dir/0-full.txt", "$dir/packed/a.txt.gz", 'packed');
	my $piped = run([@take[0 .. $#take - 1]]);
	is($piped->{status}, 0, 'packed to standard output');
	ok($piped->{out} eq slurp("$dir/packed/a.txt.gz"), 'which gets the same bytes');
	SKIP: {
		skip('needs devices in /dev', 2) if $as_windows;
		is(run([@take, '/dev/null'])->{status}, 0, 'a device keeps its name');
		check_error(run([@take, '/dev/full']), 'hsnap', 'a full disk', '/dev/full: cannot write');
	}
	check_error(run([@take, "$dir/none/a.txt"]), 'hsnap', 'no such folder', 'none/a.txt.gz: cannot create');
	return;
}

# ---------------------------------------------------------------- under Wine

sub taken {
	my ($target, $name, @options) = @_;
	my $result = hsnap('-p', $target->{pid}, @options, '-f', win("$dir/$name"));
	is($result->{status}, 0, "taken: $name") or diag($result->{err});
	return "$dir/$name";
}

sub check_traced {
	my $target = target("$root/build/win64/samples/leak_heaps.exe", [], traced => 1);
	is($target->step, 1, 'a sample runs') or return;
	my ($full, $sums) = (taken($target, 'full1.txt'), taken($target, 'sums1.txt', '--by-stack'));
	is($target->next_step, 2, 'and leaks');
	my $packed = taken($target, 'sums2.txt', '--by-stack', '--gzip') . '.gz';
	$target->quit;
	is_deeply(read_dump($sums)->{twice}, [], 'the sample: each stack has one sum in each heap');
	same_for_hdiff($full, $sums, 'the sample');
	my @dumps = ([$sums, $packed], [$full, $packed]);
	my $named = run([@{ tool('hsym', 'linux', $packed) }]);
	check_ok($named, 'hsym reads it');
	push @dumps, [$sums, spew("$dir/named.txt", $named->{out})];
	like($named->{out}, qr/^\/\/ hsnap: name .*"leak_private"/m, 'names its frames');
	is_deeply(read_dump("$dir/named.txt")->{sums}, read_dump($packed)->{sums}, 'and passes sums on');
	for my $pair (@dumps) {
		my $diff = run(tool('hdiff', 'linux', @$pair));
		is($diff->{status}, 0, 'hdiff compares');
		my $report = report($diff->{out});
		check_report($report, "@$pair");
		check_truth($report, 'leak_heaps', 1, 2, join ' ', map { s,.*/,,r } @$pair);
	}
	return;
}

# Ranges of virtual memory are summed up like blocks.
sub check_virtual {
	my $target = target("$root/build/win64/targets/virtual_cases.exe", [], traced => 1);
	my $line;
	do { $line = $target->line } until !defined $line || $line =~ /^step \d+ pid (\d+)$/;
	ok(defined $line, 'a program has virtual memory') or return;
	($target->{pid}) = $line =~ /(\d+)$/;
	my ($full, $sums) = (taken($target, 'ranges.txt'), taken($target, 'range-sums.txt', '--by-stack'));
	my ($heap, %wanted) = ('');
	for (split /\r\n/, slurp($full)) {
		$heap = $1 if /^\*.* Heap (\w+) Hogs/;
		next unless $heap =~ /^[123]$/ && /^(\w+) bytes \+ 0 at \w+ by BackTrace(\w+)$/;
		$wanted{"$heap $2"}[0]++;
		$wanted{"$heap $2"}[1] += hex $1;
	}
	my $found = read_dump($sums)->{sums};
	my %found = map { $_ => [@{ $found->{$_} }[0, 1]] } grep { /^[123] / } keys %$found;
	cmp_ok(scalar keys %wanted, '>', 0, 'of several stacks');
	is_deeply(\%found, \%wanted, 'which each have one sum of it under each heading');
	same_for_hdiff($full, $sums, 'virtual memory');
	return;
}

# In a sample, several sums of one stack become one sum.
sub check_sample {
	my $target = target("$root/build/win64/samples/many_blocks.exe", [50_000],
		traced => 1, run => ['--sample', '4K']);
	is($target->step, 1, 'a sampled program runs') or return;
	my ($by_size, $sums) = (taken($target, 'sized.txt'), taken($target, 'sums.txt', '--by-stack'));
	$target->quit;
	my ($heap, %wanted) = ('');
	for (split /\r\n/, slurp($by_size)) {
		$heap = $1 if /^\*.* Heap (\w+) Hogs/;
		my @number = /^(\w+) bytes in 0x(\w+) allocations .* by: BackTrace(\w+)$/ or next;
		$wanted{"$heap $number[2]"}[0] += hex $number[1];
		$wanted{"$heap $number[2]"}[1] += hex $number[0];
	}
	my $dump = read_dump($sums);
	my %found = map { $_ => [@{ $dump->{sums}{$_} }[0, 1]] } grep { !/^[123] / } keys %{ $dump->{sums} };
	is_deeply(\%found, \%wanted, 'its estimates are added up');
	is_deeply($dump->{twice}, [], 'to one for each stack');
	like($dump->{text}, qr{^// hsnap: sample bytes=4096\r$}m, 'and are called estimates');
	same_for_hdiff($by_size, $sums, 'the sampled program');
	return;
}
