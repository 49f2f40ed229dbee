#!/usr/bin/perl
# tests/windows/beside_umdh, a test for Windows, with logs whose truth is known. It compares hsnap's
# dump of a synthetic process with a log in UMDH's grammar. This test writes that log from the
# maker's truth. The two must be equal. Every change to the log must be found, except differences
# that follow a known rule, which must be explained.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;
use Images;

my $dir = fresh_dir();
for my $case (['win10-x64'], ['win7-x86'], ['win11-x64', '--segment'], ['wow64']) {
	my ($profile, @options) = @$case;
	my $made = made($profile, @options);
	my $beside = beside($made);
	is($beside->{status}, 0, "@$case: equal, or explained") or diag($beside->{out}, $beside->{err});
	like($beside->{out}, qr/^equal: @{[scalar @{ $made->{blocks} }]} blocks$/m, "@$case: all blocks are");
	is_deeply([$beside->{out} =~ /^explained: (.*)$/mg], $profile eq 'wow64' ? ['other half: 3'] : [],
		"@$case: and nothing but modules of another half is left to explain");
}

my $made = made('win10-x64');
my $some = $made->{blocks}[5];
my @differ = (
	['a block less', sub { shift @{ $_[0]{blocks} } }, 'a block that UMDH has not: 1'],
	['a block more', sub { push @{ $_[0]{blocks} }, { %$some, addr => $some->{addr} + 1 } }, 'a block that hsnap has not: 1'],
	['a byte', sub { $_[0]{blocks}[7]{requested}++ }, 'the bytes of a block: 1'],
	['65 bytes of overhead', sub { $_[0]{blocks}[7]{overhead} += 65 }, 'the overhead of a block: 1'],
	['another heap', sub { $_[0]{blocks}[7]{heap} ^= 1 }, 'the heap of a block: 1'],
	['a frame less', sub { stack_of_one($_[0], sub { pop @{ $_[0] } }) }, 'the stack of a block: 1'],
	['a frame more', sub { stack_of_one($_[0], sub { push @{ $_[0] }, 0x1234 }) }, 'the stack of a block: 1'],
	['another frame', sub { stack_of_one($_[0], sub { $_[0][0]++ }) }, 'the stack of a block: 1'],
	['no stack', sub { stack_of_one($_[0], sub { @{ $_[0] } = () }) }, 'the stack of a block: 1'],
	['a module less', sub { pop @{ $_[0]{modules} } }, 'a module that UMDH has not: 1'],
	['a module more', sub { push @{ $_[0]{modules} }, [0x1000, 0x1000, 'C:\x.dll'] }, 'a module that hsnap has not: 1'],
	['a module that is larger', sub { $_[0]{modules}[0][1]++ }, 'a module: 1'],
);
for my $case (@differ) {
	my ($what, $change, $words) = @$case;
	my $beside = beside(changed($change));
	is($beside->{status}, 1, "$what: status 1");
	is_deeply([$beside->{out} =~ /^DIFFERENT: (.*)$/mg], [$words], "$what: it is told, and nothing else") or diag($beside->{out}, $beside->{err});
}

my $count = @{ $made->{blocks} };
my $overhead = beside(changed(sub { $_->{overhead} += 16 for @{ $_[0]{blocks} } }));
is($overhead->{status}, 0, 'another overhead is explained');
is($overhead->{out}, "equal: 0 blocks\nexplained: overhead: $count\noverhead: UMDH's is 16 bytes more: $count blocks\n", 'and reported');
my $alias = beside(changed(sub { push @{ $_[0]{blocks}[7]{alias} }, [1, 2, 3] }));
is("$alias->{status} $alias->{out}", '0 equal: ' . ($count - 1) . " blocks\nexplained: alias: 1\n", 'so are two stacks, of which ours is one');
is(beside(changed(sub { $_[0]{blocks}[7]{alias} = [[1, 2, 3]]; stack_of_one($_[0], sub { $_[0][0]++ }) }))->{status}, 1,
	'but not if it is none of them');

# Changes between hsnap's two dumps: the second shows the process later, with new and freed blocks.
my $later = made('win10-x64', '--growth', 1);
my %before = map { $_->{addr} => 1 } @{ $made->{blocks} };
my %after = map { $_->{addr} => 1 } @{ $later->{blocks} };
my $changed = grep { !$before{$_} || !$after{$_} } keys %{ { %before, %after } };
cmp_ok($changed, '>', 10, 'blocks come and go') or diag($changed);
my $between = beside({ %$made, theirs => $later }, $later->{ours});
is("$between->{status} $between->{out}", '0 equal: ' . grep({ $after{$_} } keys %before) . " blocks\nexplained: changed: $changed\n",
	'what came or went between our dumps is left out');
is(beside({ %$made, theirs => $later })->{status}, 1, 'without the second dump it is different');

for my $trouble (['another process', sub { $_[0]{pid}++ }, 'two processes'], ['a log without blocks', sub { $_[0]{blocks} = [] }, 'no block has a stack']) {
	my ($what, $change, $words) = @$trouble;
	my $beside = beside(changed($change));
	is($beside->{status}, 2, "$what: status 2");
	like($beside->{err}, qr/^beside_umdh: .*$words/, "$what: why");
}
done_testing;

# Makes a process that was started with +ust. {ours} is hsnap's result; everything else is the
# maker's truth in UMDH's terms.
sub made {
	my ($profile, @options) = @_;
	my $file = "$dir/" . join('', $profile, @options);
	make_and_read($file, $profile, '--ust', '--blocks', 300, @options);
	my (%made, @stacks);
	$made{ours} = "$file.txt";
	for (split /\n/, slurp("$file.truth")) {
		my ($kind, @words) = split / /;
		$made{pid} = $1 if /^process pid=(\d+)/;
		push @{ $made{modules} }, [hex $words[0], $words[1], join ' ', @words[2 .. $#words]]
		    if $kind eq 'module' && ($profile ne 'wow64' || length $words[0] <= 8);
		$stacks[$words[0]] = [map { hex } @words[2 .. $#words]] if $kind eq 'stack' && !$made{database};
		$made{database} = 1 if $kind eq 'total';
		push @{ $made{blocks} }, { heap => hex $words[0], addr => hex $words[1], requested => $words[2], overhead => $words[3], stack => $stacks[$words[4]] }
		    if $kind eq 'block' && $words[4] ne '-';
	}
	return \%made;
}

# Changes UMDH's part, then compares.
sub changed {
	my ($change) = @_;
	my $theirs = { %$made, blocks => [map { +{ %$_ } } @{ $made->{blocks} }], modules => [map { [@$_] } @{ $made->{modules} }] };
	$change->($theirs);
	return { %$made, theirs => $theirs };
}

# Changes the stack of the eighth block only.
sub stack_of_one {
	my ($theirs, $change) = @_;
	$theirs->{blocks}[7]{stack} = [@{ $theirs->{blocks}[7]{stack} }];
	$change->($theirs->{blocks}[7]{stack});
}

sub beside {
	my ($made, @again) = @_;
	my $log = spew("$dir/umdh.log", umdh_log($made->{theirs} // $made));
	return run(["$root/tests/windows/beside_umdh", $made->{ours}, $log, @again]);
}

# Writes a log like UMDH 6.1 to 10, which prints a stack's frames at the first occurrence of the
# stack's label.
sub umdh_log {
	my ($made) = @_;
	my ($text, $label, %labels) = ('', 0xA39);
	my %heaps;
	push @{ $heaps{ $_->{heap} } }, $_ for @{ $made->{blocks} };
	$text .= "// \n// UMDH: version 10.0.19041.1 : Logtime 2020-11-20 10:52 - Machine=BOX - PID=$made->{pid}\n// \n\n";
	$text .= "// Debug privilege has been enabled.\n// Preparing to dump heap allocations.\n// Connecting to process $made->{pid} ...\n";
	$text .= "// Loaded modules: \n//     Base Size Module\n";
	$text .= sprintf "// %16X %8X %s\n", @$_ for @{ $made->{modules} };
	$text .= "//\n// Process modules enumerated.\n// Debug library initialized ...\nDBGHELP: leaky - private symbols & lines \n         leaky.pdb\n";
	for my $heap (sort { $a <=> $b } keys %heaps) {
		my $rule = '- - - - - - - - - -';
		$text .= sprintf "\n*%s Start of data for heap \@ %X %s\n\n", $rule, $heap, $rule;
		$text .= "REQUESTED bytes + OVERHEAD at ADDRESS by BackTraceID\n     STACK if not already dumped.\n\n";
		$text .= sprintf "*%s Heap %X Hogs %s\n\n", $rule, $heap, $rule;
		for my $block (@{ $heaps{$heap} }) {
			my $key = join '|', map { "@$_" } $block->{stack}, @{ $block->{alias} // [] };
			my $new = !$labels{$key};
			my $id = $labels{$key} //= sprintf '%X', $label += 24;
			$text .= "\n" if $new;
			$text .= sprintf "%X bytes + %X at %X by BackTrace%s\n", @$block{qw(requested overhead addr)}, $id;
			next if !$new;
			$text .= join "\tAlias\n", map { join '', map { sprintf "\t%X\n", $_ } @$_ } $block->{stack}, @{ $block->{alias} // [] };
			$text .= "\n";
		}
		$text .= sprintf "\n*%s End of data for heap \@ %X %s\n", $rule, $heap, $rule;
	}
	return $text =~ s/\n/\r\n/gr;
}
