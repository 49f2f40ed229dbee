#!/usr/bin/perl
# hdiff reads recordings. The state at any moment, the growth between any two, and the fate of the
# allocations between them agree, to the byte, with a replay that keeps every block separately. So
# do extracted dumps. Dumps that are written independently for those moments show no difference.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP qw(decode_json);
use List::Util qw(sum0);
use Test::More;
use Hunt;
use Recordings;

my $dir = fresh_dir();
my $hdiff = "$root/build/linux/hdiff";
my @classes = qw(aifo aifi aofi aofo ai);
my %made = (
	run => { seed => 1, events => 6000 },
	attached => { seed => 2, events => 4000, attached => 300 },
	small => { seed => 3, events => 40, ms => 1000 },
	cut => { seed => 4, events => 3000, stop => 1 },
);
my ($files, $replays) = make_random($dir, %made);
my %file = %$files;
my %replay = %$replays;

subtest "$_: moments" => \&check_moments, $_ for sort keys %made;
subtest "$_: windows" => \&check_windows, $_ for sort keys %made;
subtest 'by heap' => \&check_heaps;
subtest "a part of a window: $_" => \&check_parts, $_ for qw(ai aifi aofi);
subtest 'a window in every form' => \&check_forms;
subtest 'dumps' => \&check_dumps;
subtest 'dumps with addresses' => \&check_addresses;
subtest 'a trend' => \&check_trend;
subtest 'on both systems' => \&check_systems;
subtest '--list' => \&check_list;
subtest 'missing parts are reported' => \&check_losses;
subtest 'names with an @' => \&check_names;
subtest 'errors are one line each' => \&check_errors;
done_testing;

# ---------------------------------------------------------------- queries

sub ask {
	my @args = @_;
	my $result = run([$hdiff, '-d', '--no-symbols', '-o', 'json', @args]);
	is($result->{status}, 0, "hdiff @args") or diag($result->{err});
	return $result->{out} ? decode_json($result->{out}) : {};
}

sub frame_text {
	my ($frame) = @_;
	return $frame->{address} unless defined $frame->{module};
	return "$frame->{module}+$frame->{offset}";
}

# Returns rows by stack: the [BYTES, COUNT] of the key ("new", "growth").
sub rows_of {
	my ($report, $key) = @_;
	return { map { (join ' ', map { frame_text($_) } @{ $_->{frames} // [] }) => [$_->{$key}{bytes}, $_->{$key}{blocks}] } @{ $report->{rows} } };
}

sub total_of { my ($sums) = @_; return [map { my $i = $_; sum0(map { $_->[$i] } values %$sums) } 0, 1] }

sub check_live {
	my ($truth, $what, @args) = @_;
	my $report = ask(@args);
	is_deeply(rows_of($report, 'new'), $truth, "$what: what each stack has");
	is_deeply([@{ $report->{totals}{selected}{new} }{qw(bytes blocks)}], total_of($truth), "$what: and all of them");
	return $report;
}

sub difference {
	my ($old, $new) = @_;
	my %growth;
	for my $stack (keys %$old, keys %$new) {
		my @change = map { ($new->{$stack}[$_] // 0) - ($old->{$stack}[$_] // 0) } 0, 1;
		$growth{$stack} = \@change if $change[0] || $change[1];
	}
	return \%growth;
}

# ---------------------------------------------------------------- moments and windows

# Returns the labels that name one mark only.
sub labels {
	my %count;
	$count{ $_->{label} }++ for @{ $_[0]->marks };
	return sort grep { $count{$_} == 1 } keys %count;
}

sub moments {
	my ($name) = @_;
	my $length = $replay{$name}{length};
	my @marks = (labels($replay{$name}))[0, 1];
	return ('start', 'end', 'peak', '0s', '40%', '100%', int($length / 3) . 'ms', grep { defined } @marks);
}

sub check_moments {
	my ($name) = @_;
	my $of = $replay{$name};
	my @moments = moments($name);
	cmp_ok($of->events, '>', 20, 'there are events');
	for my $moment (@moments) {
		my $report = check_live(by_stack(live_at($of, $moment)), $moment, "$file{$name}\@$moment");
		is($report->{inputs}[0]{pid}, 4711, 'of the process') if $moment eq 'peak';
	}
	for my $pair (['start', 'end'], ['40%', 'peak'], ['0s', 'end'], @moments > 7 ? [@moments[7, 8]] : ()) {
		next if grep { !defined } @$pair;
		my ($old, $new) = sort { position_of($of, $a) <=> position_of($of, $b) } @$pair;
		my $truth = difference(map { by_stack(live_at($of, $_)) } $old, $new);
		my $report = ask(map { "$file{$name}\@$_" } $old, $new);
		is_deeply(rows_of($report, 'growth'), $truth, "from $old to $new: what grew");
	}
	check_live(by_stack(live_at($of, 'peak')), '--peak', '--peak', $file{$name});
	my $wall = Recordings::date($of->{wall_ms} + 500);
	check_live(by_stack(live_at($of, '500ms')), 'a wall time', "$file{$name}\@$wall");
}

sub check_windows {
	my ($name) = @_;
	my ($of, $file) = ($replay{$name}, $file{$name});
	check_live(by_stack(fate_of($of, 'aifo', 'start', 'end')), 'all of it', $file);
	check_live(by_stack(fate_of($of, 'aifi', 'start', 'end')), '--transient', '--transient', $file);
	my ($mark) = labels($of);
	for my $window (['start', 'end'], ['40%', 'end'], ['start', '40%'], ['10%', '90%'], ['0s', '0s'],
		defined $mark ? [position_of($of, $mark) < position_of($of, '50%') ? ($mark, '50%') : ('50%', $mark)] : ()) {
		my ($from, $to) = @$window;
		for my $class (@classes) {
			my $truth = by_stack(fate_of($of, $class, $from, $to));
			my $report = check_live($truth, "$class from $from to $to", '--class', $class, '--from', $from, '--to', $to, $file);
			is($report->{inputs}[0]{class}, $class, 'which the report states');
			check_sums($of, $report, $from, $to, $_, "$class from $from to $to") for undef, 'row';
		}
	}
	my $until = by_stack(fate_of($of, 'aifo', 'start', '30%'));
	check_live($until, 'a window is aifo', '--to', '30%', $file);
	my $text = run([$hdiff, '-d', '--no-symbols', '--from', '0s', '--to', '50%', '--class', 'aifi', $file])->{out};
	my $seconds = sprintf '%d.%03d s', int($of->{length} / 2000), $of->{length} / 2 % 1000;
	like($text, qr{^// NEW: .*, what was allocated and freed from 0\.000 s to \Q$seconds\E(?:,.*)?$}m, 'the text states what it shows');
}

# Compares each row's window, or that of all stacks, with the replay.
sub check_sums {
	my ($of, $report, $from, $to, $of_rows, $what) = @_;
	my %shown = map { stack_text($_) => window_in($_) } @{ $report->{rows} };
	my %blocks = map { $_ => [] } $of_rows ? keys %shown : '';
	for my $block (grep { $_->{heap} ne 2 } @{ $of->allocations }) {
		push @{ $blocks{ $of_rows ? $block->{stack} : '' } }, $block if !$of_rows || $shown{ $block->{stack} };
	}
	my %truth = map { $_ => window_of($of, $blocks{$_}, $from, $to, $report->{inputs}[0]) } keys %blocks;
	%shown = ('' => window_in($report)) if !$of_rows;
	near_medians($shown{$_}, $truth{$_}) for keys %truth;
	is_deeply(\%shown, \%truth, "$what: " . ($of_rows ? 'all that each row has' : 'and all together'));
	return;
}

# Replaces the true median with the reported one if the two are close enough. Medians below 64 ms
# are exact; others are within a 64th.
sub near_medians {
	my ($shown, $truth) = map { $_->{lifetime} } @_;
	return if !$shown || !$truth;
	my $off = abs(($shown->{median_ms} // 'inf') - $truth->{median_ms});
	$truth->{median_ms} = $shown->{median_ms} if $off <= ($truth->{median_ms} < 64 ? 0 : $truth->{median_ms} / 64);
	return;
}

sub stack_text { my ($has) = @_; return join ' ', map { frame_text($_) } @{ $has->{frames} } }

# Returns the window, in which the stack that freed most is a text.
sub window_in {
	my ($has) = @_;
	my %window = %{ $has->{window} };
	$window{freed_by} = { %{ $window{freed_by} }, frames => stack_text($window{freed_by}) } if $window{freed_by};
	return \%window;
}

# Returns the stack that freed most bytes. If several did, returns the first of them in the
# recording.
sub freed_by {
	my ($of, @freed) = @_;
	my $sums = Replay::sums(['stack'], map { { bytes => $_->{bytes}, stack => $_->{free}{stack} } } grep { defined $_->{free}{stack} } @freed);
	my ($most) = sort { $sums->{$b}{bytes} <=> $sums->{$a}{bytes} || $of->{stack_numbers}{$a} <=> $of->{stack_numbers}{$b} } keys %$sums;
	return defined $most ? { stacks => scalar keys %$sums, bytes => $sums->{$most}{bytes}, blocks => $sums->{$most}{count}, frames => $most } : undef;
}

sub rounded { return int($_[0] * 1000 + 0.5) / 1000 } # halves are rounded up
sub span_of { my @ms = sort { $a <=> $b } @_; return { first_ms => $ms[0], last_ms => $ms[-1] } }
sub ordered { my %seen = map { $_ => 1 } @_; return [sort { $a <=> $b } keys %seen] }

sub window_of {
	my ($of, $blocks, $from, $to, $input) = @_;
	my @window = map { position_of($of, $_) } $from, $to;
	my $part = bless { %$of, allocations => $blocks }, ref $of;
	my $row = $part->window(@window, [])->{''} // { peak => { bytes => 0, position => $window[0] } };
	my %truth = map { my $sum = $row->{ $_ eq 'ai' ? 'size' : $_ }; $_ => { bytes => $sum->{bytes} // 0, blocks => $sum->{count} // 0 } } @classes;
	my $ms = $input->{to_ms} - $input->{from_ms};
	$truth{allocated_per_second} = $ms ? rounded($truth{ai}{blocks} * 1000 / $ms) : undef;
	my $peak = $row->{peak};
	$truth{peak} = { bytes => $peak->{bytes}, first_ms => $peak->{position} == $window[0] ? $input->{from_ms} : $peak->{time} };
	my @made = $part->fate('ai', @window);
	my @freed = map { $part->fate($_, @window) } qw(aifi aofi);
	$truth{allocated} = span_of(map { $_->{alloc}{time} } @made) if @made;
	$truth{freed} = span_of(map { $_->{free}{time} } @freed) if @freed;
	my $by = freed_by($of, @freed);
	$truth{freed_by} = $by if $by;
	my $lives = $row->{lifetime};
	$truth{lifetime} = { shortest_ms => $lives->{min}, mean_ms => rounded($lives->{sum} / $lives->{count}), median_ms => $lives->{median}, longest_ms => $lives->{max} } if $lives;
	$truth{threads} = ordered(grep { $_ } map { $_->{alloc}{thread} } @made);
	my %heaps = map { $_->{heap} => 1 } @made, map { $part->fate($_, @window) } qw(aofi aofo);
	my %names = (1 => 'VirtualAlloc', 2 => 'VirtualAlloc reserved', 3 => 'Mapped', 4 => 'Thread stacks');
	$truth{heaps} = [map { $names{$_} // $_ } sort { hex $a <=> hex $b } keys %heaps];
	return \%truth;
}

# Checks the windows of some of the stacks: of one heap, of groups, and of one module. Stacks that
# have nothing in the class count too.
sub check_parts {
	my ($of, $class) = ($replay{run}, @_);
	my @window = ('--class', $class, '--from', '20%', '--to', '60%', $file{run});
	my $check = sub {
		my ($report, $has, $what, $blocks) = @_;
		my $truth = window_of($of, $blocks, '20%', '60%', $report->{inputs}[0]);
		near_medians(window_in($has), $truth);
		is_deeply(window_in($has), $truth, "$class: $what");
	};
	my $report = ask('--heap', '1E0000', @window);
	$check->($report, $report, 'one heap', [grep { $_->{heap} eq '1E0000' } @{ $of->allocations }]);
	is_deeply(ask('--sum', '--heap', '1E0000', @window)->{window}, $report->{window}, 'as a sum of one');
	my $groups = ask('--group', 'heap', @window);
	cmp_ok(scalar @{ $groups->{groups} }, '>', 1, "$class: groups by heap");
	for my $group (@{ $groups->{groups} }) {
		my $heap = { VirtualAlloc => 1, Mapped => 3, 'Thread stacks' => 4 }->{ $group->{name} } // $group->{name};
		$check->($groups, $group, "the group $group->{name}", [grep { $_->{heap} eq $heap } @{ $of->allocations }]);
	}
	my @widths = map { scalar(() = /,/g) } split /\r\n/, run([$hdiff, '-d', '-o', 'csv', '--group', 'heap', @window])->{out};
	is_deeply([@widths[1 .. $#widths]], [($widths[0]) x @{ $groups->{groups} }], 'CSV of groups has all columns');
	my $modules = ask('--group', 'module', @window);
	my ($app) = grep { $_->{name} eq 'app' } @{ $modules->{groups} };
	my @through = grep { $_->{stack} =~ /\bapp\+/ && $_->{heap} ne 2 } @{ $of->allocations };
	$check->($modules, $app, 'a module has all stacks through it', \@through);
	my $only = ask('--module', 'app', @window);
	$check->($only, $only, '--module selects all stacks through it', \@through);
	return;
}

sub check_forms {
	my @window = ('--class', 'ai', '--from', '20%', '--to', '60%', $file{run});
	my $all = ask(@window);
	my ($columns, @lines) = map { [split /,/] } map { s/\r$//r } split /\n/, run([$hdiff, '-d', '--no-symbols', '-o', 'csv', @window])->{out};
	is(scalar @lines, scalar @{ $all->{rows} }, 'CSV has the same rows');
	for my $i (0 .. $#lines) {
		my ($row, %of);
		($row, @of{@$columns}) = ($all->{rows}[$i]{window}, @{ $lines[$i] });
		my %truth = map { ("${_}_bytes" => $row->{$_}{bytes}, "${_}_count" => $row->{$_}{blocks}) } @classes;
		@truth{qw(allocated_per_second peak_bytes peak_ms)} = ($row->{allocated_per_second}, @{ $row->{peak} }{qw(bytes first_ms)});
		@truth{map { ("first_${_}_ms", "last_${_}_ms") } qw(allocated freed)} = map { ($row->{$_}{first_ms} // '', $row->{$_}{last_ms} // '') } qw(allocated freed);
		@truth{qw(shortest_life_ms mean_life_ms median_life_ms longest_life_ms)} = map { $row->{lifetime}{"${_}_ms"} // '' } qw(shortest mean median longest);
		$truth{threads} = join ' ', @{ $row->{threads} };
		@truth{map { "freed_by$_" } qw(_stacks _bytes _count)} = map { $row->{freed_by}{$_} // '' } qw(stacks bytes blocks);
		$truth{freed_by} = stack_text($row->{freed_by}) =~ s/ / <- /gr;
		is_deeply({ map { $_ => $of{$_} } keys %truth }, \%truth, "CSV: row $i is that of JSON") or last;
	}
	my $text = run([$hdiff, '-d', '--no-symbols', @window])->{out};
	my @rows = (@{ $all->{rows} }, $all);
	for my $row (map { $_->{window} } @rows) {
		my ($ai, $aifo, $peak, $lives) = @$row{qw(ai aifo peak lifetime)};
		like($text, qr{^//     size $ai->{bytes} in $ai->{blocks} \($row->{allocated_per_second}/s\); impacting $aifo->{bytes} in $aifo->{blocks}; peak $peak->{bytes} at @{[seconds($peak->{first_ms})]}\n//     allocated @{[seconds($row->{allocated}{first_ms})]}}m,
			'text has it') or last;
		like($text, qr{; lived $lives->{shortest_ms} to $lives->{longest_ms} ms, on average $lives->{mean_ms}, median $lives->{median_ms};}, 'and lives') if $lives;
		next if !$row->{freed_by}{stacks};
		my ($stacks, @by) = ($row->{freed_by}{stacks} - 1, @{ $row->{freed_by} }{qw(bytes blocks)});
		my $lines = join '', map { "//         $_" . '(?: : \w+)?\n' } map { quotemeta frame_text($_) } @{ $row->{freed_by}{frames} };
		my $others = $stacks ? "; more by $stacks other stack" . ($stacks > 1 ? 's' : '') : '';
		like($text, qr{^//     freed by \($by[0] in $by[1]\Q$others\E\):\n$lines(?!//         )}m, 'and who freed it') or last;
	}
	unlike(run([$hdiff, '-d', '--no-symbols', map { "$file{run}\@$_" } '20%', '60%'])->{out}, qr/impacting/, 'a diff of two moments is as it was');
	return;
}

sub seconds { my ($ms) = @_; return sprintf '%d.%03d s', int($ms / 1000), $ms % 1000 }

sub check_heaps {
	my $of = $replay{run};
	for my $heap ('1E0000', '7F0000', 'virtual', 'reserved', 'mapped') {
		my $number = { virtual => 1, reserved => 2, mapped => 3 }->{$heap} // $heap;
		check_live(by_stack(live_at($of, '60%'), $number), $heap, '--heap', $heap, "$file{run}\@60%");
		check_live(by_stack(fate_of($of, 'aifi', '20%', '60%'), $number), "transient in $heap", '--heap', $heap,
			'--transient', '--from', '20%', '--to', '60%', $file{run});
	}
	check_live(by_stack(live_at($of, '60%'), '1E0000', '7F0000'), 'all heaps', '--heap', 'heaps', "$file{run}\@60%");
	my $groups = ask('--group', 'heap', "$file{run}\@60%")->{groups};
	my $all = by_heap(live_at($of, '60%'));
	my %truth;
	$truth{ s/ .*//r } += $all->{$_}[0] for grep { !/^2 / } keys %$all;
	is_deeply([sort { $a <=> $b } map { $_->{self}{new}{bytes} } @$groups], [sort { $a <=> $b } values %truth], 'heaps have what is theirs');
	my ($sort, %by_memory) = ({ 1 => 'committed', 2 => 'reserved', 3 => 'mapped', 4 => 'stack' });
	for my $key (keys %$all) {
		$by_memory{ $sort->{ $key =~ s/ .*//r } // 'heap' }[$_] += $all->{$key}[$_] for 0, 1;
	}
	is(scalar keys %by_memory, 5, 'there is each sort of memory');
	$groups = ask('--group', 'memory', (map { ('--heap', $_) } qw(heaps virtual reserved mapped stack)), "$file{run}\@60%")->{groups};
	is_deeply({ map { $_->{name} => [@{ $_->{total}{new} }{qw(bytes blocks)}] } @$groups }, \%by_memory, 'as has each');
	my $folded = run([$hdiff, '-o', 'folded', '--group', 'memory', "$file{run}\@60%"])->{out};
	is_deeply({ $folded =~ /^(\w+) (\d+)$/mg }, { map { $_ => $by_memory{$_}[0] } qw(heap committed mapped stack) }, 'folded, too');
}

# ---------------------------------------------------------------- comparisons with dumps

sub check_dumps {
	for my $name (qw(run attached small)) {
		my $of = $replay{$name};
		for my $moment ('start', '30%', 'peak', 'end') {
			my ($out, $blocks) = ("$dir/$name-$moment.txt", live_at($of, $moment));
			my $extract = run([$hdiff, '-d', '--extract', "$file{$name}\@$moment", '-f', $out]);
			is($extract->{status}, 0, "$name\@$moment is extracted") or diag($extract->{err});
			is_deeply(sums_of($out), by_heap($blocks), 'what each stack has in each heap');
			check_same($out, "$file{$name}\@$moment");
			my $taken = spew("$dir/$name-$moment-taken.txt", dump_of($of, $blocks, 77));
			check_same($taken, $out);
			check_same($taken, "$file{$name}\@$moment", '--heap', 'reserved');
			check_same("$file{$name}\@$moment", $taken);
		}
	}
	my $truth = difference(by_stack(live_at($replay{run}, '30%')), by_stack(live_at($replay{run}, 'end')));
	is_deeply(rows_of(ask("$dir/run-30%.txt", $file{run}), 'growth'), $truth, 'a recording beside a dump is its end');
	my $peak = run([$hdiff, '-d', '--extract', '--peak', $file{run}]);
	ok($peak->{out} eq slurp("$dir/run-peak.txt"), '--extract --peak is the same dump');
}

# A recording with addresses has each block separately, at its place.
sub check_addresses {
	my $addr = 0;
	my $text = random_events(seed => 8, events => 5000, attached => 50) =~ s/^(process .*)$/$1 addresses/mr
	    =~ s/^(alloc .*)$/sprintf '%s %X', $1, 0x10000 + 16 * $addr++/gmre;
	my $file = make_recording($text, "$dir/addresses.hrec");
	my $of = replay($text);
	my @all = @{ $of->allocations };
	$all[$_]{addr} = sprintf '%X', 0x10000 + 16 * $_ for 0 .. $#all;
	for my $moment ('start', '30%', 'peak', 'end') {
		my $out = "$dir/addresses-$moment.txt";
		check_ok(run([$hdiff, '-d', '--extract', "$file\@$moment", '-f', $out]), "$moment is extracted");
		my $blocks = live_at($of, $moment);
		my %truth = map { $_->{addr} => join ' ', @$_{qw(bytes heap stack)} } grep { $_->{stack} ne '' } @$blocks;
		cmp_ok(scalar keys %truth, '>', 100, 'there are blocks') if $moment ne 'start';
		is_deeply(blocks_of($out), \%truth, 'each block, where it is');
		check_same($out, "$file\@$moment");
		check_same(spew("$out-taken", dump_of($of, $blocks, 77)), $out);
	}
	like(run([$hdiff, '-d', '--list', $file])->{out}, qr/^addresses /m, '--list shows it');
	unlike(run([$hdiff, '-d', '--list', $file{run}])->{out}, qr/^addresses /m, 'of no other');
}

# Reads a dump by block: ADDRESS -> "BYTES HEAP STACK". Frames are relative to the dump's modules.
sub blocks_of {
	my ($file) = @_;
	my (%blocks, %stacks, %modules, @order, $heap, $id);
	for (split /\r\n/, slurp($file)) {
		if (m{^//\s+([0-9A-F]+)\s+([0-9A-F]+) \S+\\(\w+)\.\w+$}) {
			$modules{$3} = [hex $1, hex $2];
		} elsif (/^\*.* Heap (\w+) Hogs/) {
			$heap = $1;
		} elsif (/^(\w+) bytes \+ 0 at (\w+) by BackTrace(\w+)$/) {
			push @order, [$2, hex $1, $heap, $id = $3];
		} elsif (/^\t(\w+)$/) {
			push @{ $stacks{$id} }, frame_in(hex $1, \%modules) // $1;
		}
	}
	$blocks{ $_->[0] } = join ' ', @$_[1, 2], join ' ', @{ $stacks{ $_->[3] } } for @order;
	return \%blocks;
}

# Returns "MODULE+OFFSET", or undef.
sub frame_in {
	my ($addr, $modules) = @_;
	my ($in) = grep { $addr >= $modules->{$_}[0] && $addr < $modules->{$_}[0] + $modules->{$_}[1] } sort keys %$modules;
	return $in && sprintf '%s+%X', $in, $addr - $modules->{$in}[0];
}

# Reads a dump by stack: "HEAP STACK" -> [BYTES, COUNT]. Frames are relative to the dump's modules.
sub sums_of {
	my ($file) = @_;
	my (%sums, %stacks, %modules, @order, $heap, $id);
	for (split /\r\n/, slurp($file)) {
		if (m{^//\s+([0-9A-F]+)\s+([0-9A-F]+) \S+\\(\w+)\.\w+$}) {
			$modules{$3} = [hex $1, hex $2];
		} elsif (/^\*.* Heap (\w+) Hogs/) {
			$heap = $1;
		} elsif (/^(\w+) bytes in 0x(\w+) allocations .* by: BackTrace(\w+)$/) {
			push @order, [$heap, $id = $3, hex $1, hex $2];
		} elsif (/^\t(\w+)$/) {
			push @{ $stacks{$id} }, frame_in(hex $1, \%modules) // $1;
		} elsif (m{^// hsnap: heap addr=(\w+) .*stackless-blocks=(\d+) stackless-requested=(\d+) }) {
			$sums{"$1 "} = [$3, $2] if $2;
		}
	}
	$sums{"$_->[0] " . join ' ', @{ $stacks{ $_->[1] } }} = [@$_[2, 3]] for @order;
	return \%sums;
}

sub check_same {
	my ($old, $new, @args) = @_;
	my $report = ask(@args, $old, $new);
	is_deeply([scalar @{ $report->{rows} }, $report->{totals}{all}{growth}{bytes}], [0, 0], "$old and $new are the same");
}

sub check_trend {
	my @moments = map { "$_%" } 10, 30, 50, 70, 90;
	my $report = ask(map { "$file{run}\@$_" } reverse @moments);
	my $use = [map { use_at($replay{run}, position_of($replay{run}, $_)) } @moments];
	is($report->{schema}, 'hdiff-trend/1', 'five moments are a trend');
	is_deeply([map { $_->{selected}{bytes} } @{ $report->{series}[0]{snapshots} }], $use, 'in order, with what was in use');
	# Three positions lie in the same millisecond.
	my $text = join '', map { "$_\n" } 'process 5 1 64 1000 2000 0 0 x.exe', 'heap h 1000', 'kind k 8 - h',
	    'time 3', 'alloc k', 'mark a', 'alloc k', 'alloc k', 'mark b', 'free k 0', 'mark c';
	my $file = make_recording($text, "$dir/marks.hrec");
	$report = ask(map { "$file\@$_" } qw(c b a));
	is_deeply([map { $_->{selected}{bytes} } @{ $report->{series}[0]{snapshots} }], [8, 24, 16], 'marks of one millisecond are three moments');
}

sub check_systems {
	my $wall = Recordings::date($replay{run}{wall_ms} + 5000);
	for my $args (["$file{run}\@$wall"], ['--class', 'aofi', '--from', '10%', $file{run}], ["$file{run}\@10%", "$file{run}\@peak"], ['--extract', "$file{run}\@peak"]) {
		my ($linux, $windows) = map { run(tool('hdiff', $_, '--no-symbols', @$args)) } 'linux', 'windows';
		is($windows->{status}, 0, "@$args on Windows") or diag($windows->{err});
		my ($truth, $text) = map { $_->{out} =~ s{^// (?:NEW|OLD): .*\n}{}mgr } $linux, $windows;
		ok($text eq $truth && length $text > 1000, 'prints the same as on Linux');
	}
}

# ---------------------------------------------------------------- lists and messages

sub check_list {
	my ($of, $file) = ($replay{attached}, $file{attached});
	my $said = run([$hdiff, '-d', '--list', $file]);
	is($said->{status}, 0, '--list');
	my %line = map { /^(\S+) +(.*)$/ } split /\n/, $said->{out};
	my ($events, $bytes) = ($of->events, -s $file);
	is($line{process}, '4711, 64-bit, started by 12', 'the process');
	is($line{image}, 'C:\made\app.exe', 'its image');
	is($line{started}, Recordings::date($of->{start_ms}), 'when it started');
	is($line{begun}, Recordings::date($of->{wall_ms}), 'when the recording began');
	is($line{attached}, 'to a running process, which had 300 blocks', 'and existing blocks');
	is($line{events}, "$events in 10.000 s", 'its events');
	is($line{file}, sprintf('%d bytes, %.3f an event', $bytes, $bytes / $events), 'its size');
	is($line{lost}, '0 events', 'nothing is lost');
	my $peak = $of->peak(\&is_used);
	is($line{peak}, sprintf('%d bytes at %d.%03d s', $peak->{bytes}, int($peak->{time} / 1000), $peak->{time} % 1000), 'the peak');
	is_deeply([$said->{out} =~ /^mark +(.*)$/mg], [map { sprintf '%d.%03d s %s', int($_->{time} / 1000), $_->{time} % 1000, $_->{label} } @{ $of->marks }], 'its marks');
	ok(!exists $line{cut}, 'it is whole');
	like(run([$hdiff, '-d', '--list', $file{cut}])->{out}, qr/^cut /m, 'a recording that was not ended is marked');
	run([$hdiff, '-d', '--list', $file, '-f', "$dir/list.txt"]);
	is(as_here(slurp("$dir/list.txt")), $said->{out}, 'the same to a file');
	my $json = decode_json(run([$hdiff, '-d', '--list', '-o', 'json', $file])->{out});
	my %truth = (
		schema => 'hdiff-list/1', path => $file, pid => 4711, parent_pid => 12, bits => 64, image => 'C:\made\app.exe',
		start => Recordings::date($of->{start_ms}), begun => Recordings::date($of->{wall_ms}), attached => JSON::PP::true,
		start_position => 300, event_count => $events, length_ms => $of->{length}, file_bytes => $bytes, lost_count => 0, addresses => JSON::PP::false, cut => JSON::PP::false,
		peak => { position => $peak->{position}, time_ms => $peak->{time}, bytes => $peak->{bytes} },
		heaps => [sort grep { length > 1 } values %{ $of->{heaps} }], threads => [100 .. 104], module_count => 4, stack_count => 13,
	);
	$json->{$_} = [sort @{ $json->{$_} }] for qw(heaps threads);
	is_deeply({ map { $_ => $json->{$_} } keys %truth }, \%truth, 'the same as JSON');
	is_deeply($json->{marks}, [map { { label => $_->{label}, time_ms => $_->{time}, position => $_->{position} } } @{ $of->marks }], 'with its marks');
}

sub check_losses {
	my $cut = run([$hdiff, '-d', '--no-symbols', $file{cut}]);
	is($cut->{status}, 0, 'a recording that was not ended is read');
	like($cut->{err}, qr/\Ahdiff: \S+cut\.hrec: warning: the recording was not ended: .* 10\.000 s.*\n\z/, 'with a warning');
	my $limit = run([$hdiff, '-d', '--no-symbols', '--max-growth', '1T', $file{cut}]);
	is($limit->{status}, 2, 'no limit is kept by it');
	is(run([$hdiff, '-d', '--no-symbols', '--max-growth', '1T', "$file{cut}\@50%"])->{status}, 0, 'but by a moment before its end');
	my $text = random_events(seed => 9, events => 50) . "lost 12\n";
	my $lossy = run([$hdiff, '-d', '--no-symbols', make_recording($text, "$dir/lossy.hrec") . '@end']);
	like($lossy->{err}, qr/warning: 12 events were lost/, 'lost events are reported');
	my $dump = run([$hdiff, '-d', '--extract', "$dir/lossy.hrec\@end"]);
	like($dump->{out}, qr/^\/\/ hsnap: incomplete missing=1\r$/m, 'and in an extracted dump');
	like($dump->{err}, qr/12 events were lost/, 'as does standard error');
}

sub check_names {
	my $at = "$dir/run.hrec\@end";
	my $dump = dump_of($replay{small}, live_at($replay{small}, 'end'), 5);
	spew($at, $dump);
	check_live(by_stack(live_at($replay{small}, 'end')), 'a file of the whole name goes first', $at);
	unlink $at;
	link $file{run}, "$dir/odd\@name.hrec" or die $!;
	check_live(by_stack(live_at($replay{run}, '50%')), 'the last @ counts', "$dir/odd\@name.hrec\@50%");
	my $found = fresh_dir();
	link $file{run}, "$found/a.hrec" or die $!;
	my $half = by_stack(live_at($replay{run}, '50%'));
	check_live($half, 'a pattern has a moment, too', "$found/?.hrec\@50%");
	my $other = random_events(%{ $made{small} }) =~ s/^process 4711/process 4712/r . "mark all?\nmark v2\@beta\n";
	make_recording($other, "$found/b.hrec");
	my $more = by_stack(live_at(replay($other), '50%'));
	my %sum = map { my $stack = $_; $stack => [map { ($half->{$stack}[$_] // 0) + ($more->{$stack}[$_] // 0) } 0, 1] } keys %$half, keys %$more;
	check_live(\%sum, 'each of them has it', '--sum', "$found/*.hrec\@50%");
	check_live(by_stack(live_at(replay($other), 'end')), 'a mark like a pattern', "$found/b.hrec\@all?");
	check_live(by_stack(live_at(replay($other), 'end')), 'a mark with an @', "$found/b.hrec\@v2\@beta");
	check_error(run([$hdiff, '-d', "$found/c*.hrec\@50%"]), 'hdiff', 'a pattern that finds nothing', 'c*.hrec', 'no file matches');
	unlink "$found/b.hrec";
	spew("$found/b.txt", dump_of($replay{run}, [], 0));
	my $growth = difference({}, by_stack(live_at($replay{run}, 'end')));
	is_deeply(rows_of(ask($found), 'growth'), $growth, 'a recording in a folder is found');
}

sub check_errors {
	for my $moment ('@5s', '') {
		my ($hint) = run([$hdiff, '--no-local-files', "$file{run}$moment"])->{err} =~ /ha(?:ve|s) no name.*; (hdiff --extract .*) shows why$/m;
		my $ran = run(['sh', '-c', "PATH=$root/build/linux:\$PATH; $hint"]);
		like($ran->{out}, qr/^module +seen /, "a command says why names are missing: $hint") or diag($ran->{err});
	}
	my $dump = spew("$dir/dump.txt", dump_of($replay{run}, [], 0));
	my ($run, $small) = @file{qw(run small)};
	my @wrong = (
		[["$run\@11s"], 'run.hrec@11s', '11s'],
		[["$run\@nobody"], 'run.hrec@nobody', 'no mark is named nobody'],
		[["$run\@nobody+1s"], 'run.hrec@nobody+1s', 'no mark is named nobody'],
		[["$run\@peak+99s"], 'run.hrec@peak+99s', '(peak+99s: the recording is 10.000 s long)'],
		[["$run\@5"], 'run.hrec@5', 'no mark', '5s'],
		[["$run\@-11s"], 'run.hrec@-11s', '10.000 s long'],
		[["$dump\@10s"], 'dump.txt', 'recording'],
		[["$dir/none.hrec\@10s"], 'none.hrec@10s', 'cannot open'],
		[['--class', 'aifo', $run, $small], '--class', 'one recording'],
		[['--class', 'aifo', "$run\@1s"], '--class', 'without @MOMENT'],
		[['--transient', $dump], 'dump.txt', 'recording'],
		[['--class', 'all', $run], '--class all', 'aifo, aifi, aofi, aofo'],
		[['--from', '5s', '--to', '1s', $run], '--from'],
		[['--from', 'nobody', $run], '--from nobody', 'no mark is named nobody'],
		[['--peak', '--to', '5s', $run], '--peak'],
		[['--list', '--extract', $run], '--list'],
		[['--list', $dump], 'dump.txt', 'recording'],
		[['--list', '-o', 'csv', $run], '--list', 'text and json'],
		[['--extract', '--class', 'aifi', $run], '--extract'],
		[['--extract', $run, $small], '--extract'],
		[['-f', $run, "$run\@5s"], 'run.hrec'],
		[['--extract', '-f', $run, "$run\@5s"], 'run.hrec'],
		[['--list', '-f', $run, $run], 'run.hrec'],
	);
	refused($run, @wrong);
	my $twice = join '', map { "$_\n" } 'process 5 1 64 1000 2000 0 0 x.exe', 'heap h 1000', 'kind k 8 - h', ('alloc k') x 3, ('free k 0') x 2;
	check_error(run([$hdiff, '-d', '--transient', make_recording($twice, "$dir/twice.hrec")]), 'hdiff', 'a block that is freed twice', 'twice.hrec', 'freed twice');
	system("gzip -k < '$run' > '$dir/packed.hrec.gz'");
	check_error(run([$hdiff, '-d', '--no-symbols', "$dir/packed.hrec.gz"]), 'hdiff', 'a packed one', 'packed.hrec.gz', 'unpacked file');
	check_error(run(['sh', '-c', 'cat "$0" 2>/dev/null | "$@"', $run, $hdiff, '-']), 'hdiff', 'one from a pipe', 'pipe');
}
