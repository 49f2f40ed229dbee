#!/usr/bin/perl
# Use of heaps' memory. For synthetic processes of every kind of Windows, the dump's largest unused
# range, the blocks in LFH and VS containers, and the almost unused containers follow from what the
# maker placed. So do hdiff --heaps and hdiff --pinned. tests/live/heap_space.t does the
# same for a live target.
#
# Arguments are those of make_image: tests only that process.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP;
use List::Util qw(max min sum0);
use Test::More;
use Hunt;
use Images;

my $PAGE = 4096;
my $dir = fresh_dir();
my $hdiff = "$root/build/linux/hdiff";
my @pinned_keys = qw(containers blocks bytes pinned alone shared);
my %seen; # kinds of containers that were listed, and states that were met

if (@ARGV) {
	check_image(@ARGV);
	done_testing;
	exit;
}
for my $profile (profiles()) {
	subtest $profile => sub {
		check_image($profile, @$_) for [], ['--sparse', '--ust'];
		check_image($profile, '--segment', @$_) for grep { has_segment_heap($profile) } [], ['--sparse', '--ust', '--seed', 4];
		return if $profile !~ /^(?:win7-x86|win10-x64|wow64)$/;
		check_image($profile, @$_) for ['--sparse', '--no-memory-info', '--seed', 2], ['--sparse', '--blocks', 60, '--heaps', 1, '--seed', 3],
		    ['--page-heap', 'light'];
		no_numbers($profile, '--page-heap', 'full');
	};
}
ok($seen{$_}, "some process has $_") for qw(segment vs lfh inner decommitted alone shared stackless);
subtest 'damaged heaps' => \&damaged;
subtest 'made dumps' => \&made;
subtest 'creators' => \&creators;
subtest 'refused' => \&refused;
done_testing;

sub has_segment_heap { return $_[0] =~ /^win10-(?:(?:14393|16299|17134|17763)-x64|x64|x86)$|^win11-(?:26100-)?x64$/ }

sub check_image {
	my @how = @_;
	my $file = "$dir/a.dmp";
	make_and_read($file, @how);
	-s "$file.txt" or return fail("@how: a dump");
	my $truth = truth("$file.truth");
	my $true = true_space("$file.truth", $truth);
	my $found = space_of("$file.txt");
	is_deeply($found, $true, "@how: unused ranges, LFH, VS and containers") or return;
	check_heaps("$file.txt", $truth, $true, "@how");
	check_pinned("$file.txt", $truth, $true, "@how");
}

# Reads the notes of a dump: { heaps => { ADDR => { free-run, lfh, vs } }, containers => [...] }.
sub space_of {
	my ($file) = @_;
	my %found = (heaps => {}, containers => []);
	for (split /\r?\n/, slurp($file)) {
		m{^// hsnap: (heap|containers|container) (.*)} or next;
		my ($kind, $pairs) = ($1, $2);
		my %is = $pairs =~ /(\S+?)=("[^"]*"|\S+)/g;
		my $totals = sub { my ($prefix) = @_; return join ' ', map { $is{"$prefix$_"} // 0 } qw(blocks requested overhead) };
		if ($kind eq 'heap') {
			$found{heaps}{ $is{addr} } = { run => $is{'free-run'}, map { $_ => $totals->("$_-") } qw(lfh vs) } if defined $is{'free-run'};
		} elsif ($kind eq 'container') {
			push @{ $found{containers} }, join ' ', @is{qw(addr heap kind bytes committed)}, $totals->('');
		} else {
			@found{qw(listed left)} = @is{qw(listed left-out)};
		}
	}
	return \%found;
}

# Computes what space_of() should return from the maker's containers and blocks.
sub true_space {
	my ($file, $truth) = @_;
	my (@containers, %true);
	for (slurp($file) =~ /^container(?:64)? (.*)$/mg) {
		my ($heap, $kind, $addr, $bytes, @ranges) = split / /;
		push @containers, { heap => $heap, kind => $kind, from => hex $addr, end => hex($addr) + $bytes, blocks => [],
			inner => [], committed => [map { [map { hex } split /-/] } @ranges] };
	}
	@containers = sort { $a->{from} <=> $b->{from} || $b->{end} <=> $a->{end} } @containers;
	my @open;
	for my $container (@containers) {
		pop @open while @open && $open[-1]{end} <= $container->{from};
		if (@open) {
			$container->{outer} = $open[-1];
			push @{ $open[-1]{inner} }, $container;
		}
		push @open, $container;
	}
	add_blocks(\@containers, $truth);
	$true{heaps}{ $_->{heap} } //= { run => 0, lfh => '0 0 0', vs => '0 0 0' } for @containers;
	for my $container (@containers) {
		my $heap = $true{heaps}{ $container->{heap} };
		$heap->{run} = max($heap->{run}, largest_unused($container));
		$heap->{ $container->{kind} } = added($heap->{ $container->{kind} }, totals($container)) if $container->{kind} ne 'segment';
	}
	my @pinned = sort { $b->{bytes} <=> $a->{bytes} || $a->{from} <=> $b->{from} } pinned(@containers);
	$seen{ $_->{kind} } = 1, $seen{inner} ||= $_->{outer}, $seen{decommitted} ||= $_->{bytes} < $_->{end} - $_->{from} for @pinned;
	$true{containers} = [map { sprintf '%X %s %s %d %d %s', $_->{from}, $_->{heap}, $_->{kind}, $_->{end} - $_->{from}, $_->{bytes}, all_totals($_) } @pinned];
	@true{qw(listed left)} = (scalar @pinned, 0);
	$true{heaps} //= {};
	return \%true;
}

# Adds each block to its innermost container.
sub add_blocks {
	my ($containers, $truth) = @_;
	my @from = map { $_->{from} } @$containers;
	for my $addr (keys %{ $truth->{all} }) {
		my ($heap, $requested, $overhead) = split / /, $truth->{all}{$addr};
		my $at = hex $addr;
		my ($low, $high) = (0, scalar @from);
		while ($low < $high) {
			my $middle = int(($low + $high) / 2);
			$from[$middle] <= $at ? ($low = $middle + 1) : ($high = $middle);
		}
		my $container = $low ? $containers->[$low - 1] : undef;
		$container = $container->{outer} while $container && $container->{end} <= $at;
		push @{ $container->{blocks} }, { addr => $addr, at => $at, requested => $requested, overhead => $overhead } if $container;
	}
}

# Returns the size of the largest committed range without blocks and smaller containers.
sub largest_unused {
	my ($container) = @_;
	my @used = ((map { [$_->{at}, $_->{at} + $_->{requested} + $_->{overhead}] } @{ $container->{blocks} }),
		(map { [$_->{from}, $_->{end}] } @{ $container->{inner} }), [$container->{end}, $container->{end}]);
	my ($largest, $from) = (0, $container->{from});
	for my $used (sort { $a->[0] <=> $b->[0] } @used) {
		my $end = min($used->[0], $container->{end});
		$largest = max($largest, min($end, $_->[1]) - max($from, $_->[0])) for $from < $end ? @{ $container->{committed} } : ();
		$from = max($from, $used->[1]);
	}
	return $largest;
}

sub totals {
	my ($container) = @_;
	my $blocks = $container->{blocks};
	return join ' ', scalar @$blocks, map { my $key = $_; sum0(map { $_->{$key} } @$blocks) } qw(requested overhead);
}

sub added {
	my ($left, $right) = map { [split / /] } @_;
	return join ' ', map { $left->[$_] + $right->[$_] } 0 .. 2;
}

sub all_totals {
	my ($container) = @_;
	my $sum = totals($container);
	$sum = added($sum, all_totals($_)) for @{ $container->{inner} };
	return $sum;
}

# Returns the outermost containers that are almost unused, as man/hdump.5 defines it.
sub pinned {
	my @pinned;
	for my $container (@_) {
		$container->{bytes} = sum0(map { $_->[1] - $_->[0] } @{ $container->{committed} });
		next if $container->{is_covered} = $container->{outer} && $container->{outer}{is_covered};
		my ($count, $requested, $overhead) = split / /, all_totals($container);
		my $used = $requested + $overhead;
		my $pages = int(($used + $PAGE - 1) / $PAGE) * $PAGE;
		$container->{is_covered} = $count && 8 * $used <= $container->{bytes} && $pages + $PAGE <= $container->{bytes} or next;
		push @pinned, $container;
	}
	return @pinned;
}

# hdiff --heaps repeats the dump's numbers, and the heaps add up to the balance.
sub check_heaps {
	my ($dump, $truth, $true, $what) = @_;
	my $heaps = hdiff_json('--no-symbols', '--heaps', $dump)->{heaps} // [];
	is_deeply([sort map { $_->{heap} } @$heaps], [sort keys %{ $truth->{heaps} }], "$what: --heaps lists all heaps");
	my %found = map { my $new = $_->{new}; $_->{heap} => { run => $new->{largest_free},
		map({ my $kind = $_; $kind => join ' ', map { $new->{"${kind}_$_"} // '-' } qw(blocks bytes) } qw(lfh vs)) } } @$heaps;
	my %true = map { my $is = $true->{heaps}{$_}; $_ => { run => $is->{run},
		map({ my $kind = $_; $kind => $is ? $is->{$kind} =~ s/ \d+$//r : '- -' } qw(lfh vs)) } } keys %{ $truth->{heaps} };
	is_deeply(\%found, \%true, '... with these numbers');
	is(sum0(map { $_->{new}{bytes} } @$heaps), $truth->{bytes}, '... and all blocks');
	is(sum0(map { $_->{new}{overhead} } @$heaps), $truth->{overhead}, '... and their overhead');
}

# Computes the rows of --pinned from the truth: { FRAMES => [CONTAINERS, BLOCKS, BYTES, PINNED, ALONE,
# SHARED] }. Rows that share a container have parts of it, by their numbers of blocks.
sub true_rows {
	my ($truth, $true) = @_;
	my %rows;
	my @blocks = sort { $a->[0] <=> $b->[0] } map { [hex $_, $_] } keys %{ $truth->{all} };
	for (@{ $true->{containers} }) {
		my ($addr, undef, undef, $bytes, $committed) = split / /;
		my ($from, $end, %in) = (hex $addr, hex($addr) + $bytes);
		for (grep { $_->[0] >= $from && $_->[0] < $end } @blocks) {
			my ($heap, $requested) = split / /, $truth->{all}{ $_->[1] };
			my $block = $truth->{blocks}{ $_->[1] };
			my $frames = $block ? (split / /, $block, 5)[4] : '';
			$in{$frames}[0]++;
			$in{$frames}[1] += $requested;
		}
		my $is_shared = keys %in > 1;
		my $count = sum0(map { $_->[0] } values %in);
		$seen{ $is_shared ? 'shared' : 'alone' } = 1;
		for my $frames (keys %in) {
			my $row = $rows{$frames} //= [(0) x 6];
			$seen{stackless} ||= $frames eq '';
			$row->[0]++;
			$row->[ 1 + $_ ] += $in{$frames}[$_] for 0, 1;
			$row->[3] += int($committed * $in{$frames}[0] / $count);
			$row->[ $is_shared ? 5 : 4 ] += $committed;
		}
	}
	return \%rows;
}

sub check_pinned {
	my ($dump, $truth, $true, $what) = @_;
	my $rows = true_rows($truth, $true);
	my $json = hdiff_json('--no-symbols', '--pinned', $dump);
	my %found = map { my $row = $_; join(' ', map { $_->{address} } @{ $row->{frames} }) => [@{ $row->{pinned} }{@pinned_keys}] } @{ $json->{rows} };
	my $stackless = delete($json->{pinned}{stackless});
	$found{''} = [@$stackless{@pinned_keys}] if $stackless->{blocks};
	is_deeply(\%found, $rows, "$what: the rows of --pinned");
	my @order = map { $_->{pinned} } @{ $json->{rows} };
	is(scalar(grep { $order[$_]{pinned} < $order[ $_ + 1 ]{pinned} } 0 .. $#order - 1), 0, '... in their order');
	my @all = map { [split / /] } @{ $true->{containers} };
	my $sum = sub { my ($at) = @_; return sum0(map { $_->[$at] } @all) };
	is_deeply($json->{pinned}, { containers => scalar @all, left_out => 0, committed => $sum->(4), blocks => $sum->(5), bytes => $sum->(6),
		overhead => $sum->(7) }, '... and their sum');
}

# Full page heaps have no containers: each block has pages of its own.
sub no_numbers {
	my @how = @_;
	my $file = "$dir/a.dmp";
	make_and_read($file, @how);
	my $found = space_of("$file.txt");
	my %kind = %{ truth("$file.truth")->{heaps} };
	is_deeply([grep { $kind{$_} eq 'page' } keys %{ $found->{heaps} }], [], "@how: no numbers for page heaps");
	like(run([$hdiff, '--heaps', '--no-symbols', "$file.txt"])->{out}, qr/^ *[0-9A-F]+ .* B +- +- +- +-$/m, '... which --heaps shows as dashes');
}

# Damage never makes hsnap write numbers that hdiff refuses, and heaps that were read in part have none.
sub damaged {
	my $file = "$dir/a.dmp";
	for my $how (['win10-x64', '--sparse'], ['win10-x64', '--segment', '--sparse']) {
		for my $break (grep { /^(?:nt|lfh|segment)-/ } breaks()) {
			my $made = run(["$root/build/linux/images/make_image", @$how, '--blocks', 300, '--break', $break, $file]);
			next if $made->{status};
			run(["$root/build/linux/hsnap", '-z', $file, '-f', "$file.txt"]);
			next if !-s "$file.txt";
			my $result = run([$hdiff, qw(--no-symbols --force -o json --pinned), "$file.txt"]);
			unlike($result->{err}, qr/bad '|malformed/, "$break: hdiff reads the dump");
			my @large = grep { my @is = split / /; $is[4] > $is[3] || $is[6] + $is[7] > $is[4] / 8 } @{ space_of("$file.txt")->{containers} };
			is_deeply(\@large, [], '... whose containers are almost unused') if $result->{status} == 0;
		}
	}
}

# Returns a dump with these containers and blocks, all of 16 bytes.
sub dump_of_blocks {
	my ($name, $containers, @blocks) = @_;
	my $heap = join '', map { "*- - - - - - - - - - $_ - - - - - - - - - -\n" } 'Start of data for heap @ 10000', 'Heap 10000 Hogs';
	my $entries = join '', map { sprintf "10 bytes + 8 at %X by BackTrace%d\n\t%X\n\n", $_->[0], $_->[1], 0x400000 + $_->[1] } @blocks;
	return spew("$dir/$name", join '', "// hsnap: dump format=1 tool=0\n", "// hsnap: process id=7\n",
		"// hsnap: heap addr=10000 kind=nt committed=1048576 reserved=1048576\n", map({ "// hsnap: $_\n" } @$containers), $heap, $entries,
		sprintf "// hsnap: end blocks=%d requested=%d overhead=%d\n", scalar @blocks, 16 * @blocks, 8 * @blocks) && "$dir/$name";
}

sub made {
	my $note = sub { my ($addr, $bytes, $blocks) = @_; return sprintf 'container addr=%X heap=10000 kind=segment bytes=%d committed=%d blocks=%d requested=%d overhead=%d',
		$addr, $bytes, $bytes, $blocks, 16 * $blocks, 8 * $blocks };
	my @blocks = ([0x20000, 1], [0x20100, 1], [0x40000, 1], [0x40100, 2], [0x60000, 3]);
	my @notes = ('containers listed=3 left-out=2', $note->(0x20000, 0x10000, 2), $note->(0x40000, 0x10000, 2), $note->(0x60000, 0x8000, 2));
	my $file = dump_of_blocks('made.txt', \@notes, @blocks);
	my %row = map { $_->{frames}[0]{address} => [@{ $_->{pinned} }{@pinned_keys}] } @{ hdiff_json('--no-symbols', '--pinned', $file)->{rows} };
	# The third container has one block without a stack.
	is_deeply(\%row, { 400001 => [2, 3, 48, 0x18000, 0x10000, 0x10000], 400002 => [1, 1, 16, 0x8000, 0, 0x10000],
		400003 => [1, 1, 16, 0x4000, 0, 0x8000] }, 'rows');
	my $text = run([$hdiff, '--no-symbols', '--pinned', $file])->{out};
	like($text, qr/^ +1 +96\.0 KiB +64\.0 KiB +64\.0 KiB +3  400001$/m, 'a line of the table') or diag($text);
	like($text, qr/^3 containers: 160\.0 KiB committed, 144 B used by 6 blocks$/m, 'the sum');
	like($text, qr/^without a stack: 16\.0 KiB pinned by 1 block$/m, 'blocks without a stack');
	like($text, qr/^not in the dump: 2 smaller containers$/m, 'what is not listed');
	like($text, qr/^      pins 96\.0 KiB: 48 B in 3 blocks, in 2 containers$/m, 'a line of a stack');
	unlike($text, qr/.{81}/, 'lines of 80 columns');
	# The last of several dumps counts.
	my $other = dump_of_blocks('other.txt', ['containers listed=1 left-out=0', $note->(0x20000, 0x10000, 1)], [0x20000, 9]);
	is_deeply(hdiff_json('--no-symbols', '--pinned', $other, $file)->{rows}, hdiff_json('--no-symbols', '--pinned', $file)->{rows}, 'the last of two dumps');
	# Containers that overlap, and the one with the lower address counts.
	my $twice = dump_of_blocks('twice.txt', [$notes[0], $notes[1], $note->(0x28000, 0x10000, 1), $note->(0x20000, 0x20000, 1)], @blocks);
	is(hdiff_json('--no-symbols', '--pinned', $twice)->{pinned}{committed}, 0x10000, 'containers that overlap count once');
	for my $bad ('addr=20000 bytes=0', 'addr=FFFFFFFFFFFFF000 bytes=8192', 'addr=20000 bytes=4096 committed=8192', 'addr=20000 bytes=x',
		'addr=20000 bytes=8192 committed=4096 blocks=1 requested=4097', 'addr=20000 bytes=18446744073709551615') {
		my $result = run([$hdiff, '--no-symbols', '--pinned', dump_of_blocks('bad.txt', [$notes[0], "container heap=10000 kind=segment $bad"], @blocks)]);
		is($result->{status}, 2, "$bad: status 2");
		like($result->{err}, qr/bad\.txt:5: /, '... and the line');
	}
}

# A heap's creator is shown only if all of its frames are valid.
sub creators {
	my %depth = ('7B614DB1 140001617' => 2, '7B614DB1' => 1, join(' ', (1) x 256) => 256, join(' ', (1) x 257) => 0, '' => 0, ' 1' => 0,
		'1  2' => 0, '1 x' => 0, '12345678123456781' => 0, '-1' => 0);
	for my $frames (sort keys %depth) {
		my $file = dump_of_blocks('creator.txt', [qq(heap addr=20000 kind=nt committed=65536 reserved=65536 creator="$frames")], [0x10100, 1]);
		my ($heap) = grep { $_->{heap} eq '20000' } @{ hdiff_json('--no-symbols', '--heaps', $file)->{heaps} };
		my $what = length $frames > 40 ? length($frames) . ' bytes' : qq("$frames");
		is(scalar @{ $heap->{created_by} // [] }, $depth{$frames}, "$what: frames");
	}
}

sub refused {
	my $file = dump_of_blocks('made.txt', ['containers listed=0 left-out=0'], [0x20000, 1]);
	like(run([$hdiff, '--no-symbols', '--pinned', $file])->{out}, qr/^0 containers: 0 B committed/m, 'a dump without such containers');
	for my $words (['--tree'], [qw(-o csv)], [qw(-o html)], ['--sum'], ['--age'], ['--heaps'], [qw(--max-growth 1M)], [qw(--group heap)]) {
		my $result = run([$hdiff, '--pinned', @$words, $file]);
		is($result->{status}, 2, "@$words is refused");
		like($result->{err}, qr/\Ahdiff: [^\n]*--[^\n]*\n\z/, '... in one line');
	}
	is(run([$hdiff, '--pinned', $file, $file, $file])->{status}, 2, 'a trend is refused');
	check_error(run([$hdiff, '--pinned', dump_of_blocks('older.txt', [], [0x20000, 1])]), 'hdiff', 'an older dump', 'older.txt', 'does not list containers');
	spew("$dir/umdh.txt", "10 bytes + 8 at 655FB0 by BackTrace2\n\t7B601234\n\n");
	check_error(run([$hdiff, '--pinned', "$dir/umdh.txt"]), 'hdiff', 'a log of UMDH', 'umdh.txt', 'does not list containers');
	my $dmp = "$dir/a.dmp";
	make_image($dmp, qw(win10-x64 --sparse)) or return;
	run(["$root/build/linux/hsnap", '-z', $dmp, '--by-stack', '-f', "$dmp.txt"]);
	spew("$dmp.txt", slurp("$dmp.txt") =~ s{^// hsnap: warning .*\n}{}mgr);
	unlike(slurp("$dmp.txt"), qr/hsnap: container/, 'a dump by stack lists no containers');
	like(slurp("$dmp.txt"), qr/hsnap: heap .*free-run=\d/, '... but has the numbers of heaps');
	check_error(run([$hdiff, '--pinned', "$dmp.txt"]), 'hdiff', 'a dump by stack', 'a.dmp.txt', 'does not list containers');
}
