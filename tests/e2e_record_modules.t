#!/usr/bin/perl
# Recordings of modules that are loaded and unloaded, and recordings with addresses. Each stack is
# in the module in which it was made, whatever replaced that module. Modules are listed for their
# lifetime. Each block is where snapshots find it. The program's source states how much each module
# allocated.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();
my $file = "$dir/run.hrec";
for my $name (qw(plug other)) {
	copy("$root/build/win64/targets/plug.dll", "$dir/$name.dll") or die "plug.dll: $!\n";
}
my $target = target("$root/build/win64/targets/unload.exe", [map { win("$dir/$_.dll") } qw(plug other)],
	record => ['--addresses', '-o', win($file)]);
is($target->step, 1, 'the module is loaded');
take(1);
syswrite $target->{to}, "\n";
is($target->line, 'same 1', 'another one has its address now');
is($target->line, 'again 1', 'and it has another address');
is($target->step, 2, 'the module was unloaded, and loaded again');
take(2);
is($target->next_step, 3, 'all are unloaded');
take(3);
is($target->quit, 0, 'the program ends');

my %rows = (1 => { plug => [[10, 10_000]] }, 2 => { plug => [[3, 1500], [15, 15_000]], other => [[7, 14_000]] });
$rows{3} = $rows{2};
for my $step (1 .. 3) {
	is_deeply(rows("$file\@$step"), $rows{$step}, "step $step: its blocks are its");
	is_deeply(rows("$dir/$step.txt", "$file\@$step"), {}, 'as a snapshot has it');
	check_ok(run(tool('hdiff', 'linux', '--extract', "$file\@$step", '-f', "$dir/extracted$step.txt")), "step $step is extracted");
	my ($recorded, $found) = map { blocks("$dir/$_.txt") } "extracted$step", $step;
	is(scalar keys %$found, $step == 1 ? 10 : 25, 'the snapshot has each block');
	is_deeply($recorded, $found, 'and the recording, where it is');
	my @heaps = map { { slurp("$dir/$_.txt") =~ /^\/\/ hsnap: heap addr=(\w+) (kind=\w+ bits=\d+) /mg } } $step, "extracted$step";
	cmp_ok(scalar keys %{ $heaps[1] }, '>', 1, 'it has heaps');
	is_deeply($heaps[1], { map { $_ => $heaps[0]{$_} } keys %{ $heaps[1] } }, 'of the kind in the snapshot');
}
is_deeply(rows("$file\@1", "$file\@2"), { plug => [[3, 1500], [5, 5000]], other => [[7, 14_000]] }, 'one stack, loaded or not, is one row');

check_ok(run(tool('hdiff', 'linux', '--extract', "$file\@start", '-f', "$dir/start.txt")), 'the start is extracted');
is_deeply(modules('start'), [], 'neither is there at the start');
my ($first) = map { /^plug at (\w+)$/ } @{ modules('extracted1') };
is_deeply(modules('extracted1'), ["plug at $first"], 'then the first is');
my @second = @{ modules('extracted2') };
my ($again) = map { /^plug at (\w+)$/ } @second;
is_deeply(\@second, ["other at $first", "plug at $again", "plug was at $first"], 'then another one, where it was, and itself elsewhere');
is_deeply(modules('extracted3'), [sort "other was at $first", "plug was at $again", "plug was at $first"], 'at the end none, but stacks have them');

my $list = run(tool('hdiff', 'linux', '--list', $file))->{out};
my %marks = reverse $list =~ /^mark +([\d.]+) s (\d)$/mg;
my @came;
while ($list =~ /^((?:un)?loaded) +([\d.]+) s \S*[\\\/](plug|other)\.dll$/mg) {
	my ($what, $at) = ("$1 $3", $2);
	my ($step) = grep { $at <= $marks{$_} } 1 .. 3;
	push @{ $came[$step // 4] }, $what;
}
is_deeply([map { [sort @{ $_ // [] }] } @came[1 .. 3]],
	[['loaded plug'], ['loaded other', 'loaded plug', 'unloaded plug'], ['unloaded other', 'unloaded plug']],
	'they come and go before the marks that were set then') or diag($list);
is(scalar @came, 4, 'and at no other time');
done_testing;

sub take {
	my ($step) = @_;
	check_ok(hsnap('mark', '-p', $target->{pid}, $step), "mark $step");
	check_ok(hsnap('-p', $target->{pid}, '-f', win("$dir/$step.txt")), "snapshot $step");
	return;
}

# Returns, by module, the blocks and bytes of each row that plug_keep allocated in that module.
sub rows {
	my @files = @_;
	my $diff = run(tool('hdiff', 'linux', @files));
	my %rows;
	for my $row (@{ report($diff->{out})->{rows} }) {
		my ($frame) = grep { ($_->{module} // '') =~ /^(?:plug|other)$/ } @{ $row->{frames} } or next;
		push @{ $rows{ $frame->{module} } }, [$row->{count}, $row->{bytes}];
	}
	@$_ = sort { $a->[0] <=> $b->[0] } @$_ for values %rows;
	return \%rows;
}

# Returns the lines about the plugs in a dump: [NAME, BASE, BYTES, former place or undef].
sub our_modules {
	my ($text) = @_;
	my %was = $text =~ m{^// hsnap: module base=(\S+) .* unloaded=1 at=(\w+)\r?$}mg;
	my @found;
	push @found, [$3, $1, $2, $was{$1}] while $text =~ m{^//\s+([0-9A-F]+)\s+([0-9A-F]+) .*\\(plug|other)\.dll\r?$}mg;
	return @found;
}

sub modules {
	my ($name) = @_;
	return [sort map { $_->[3] ? "$_->[0] was at $_->[3]" : "$_->[0] at $_->[1]" } our_modules(slurp("$dir/$name.txt"))];
}

# Returns ADDRESS -> "BYTES MODULE" for the plugs' blocks.
sub blocks {
	my ($path) = @_;
	my $text = slurp($path);
	my (%blocks, %stacks, @order, $id);
	my @modules = our_modules($text);
	for (split /\r\n/, $text) {
		if (/^(\w+) bytes \+ \w+ at (\w+) by BackTrace(\w+)$/) {
			push @order, [$2, hex $1, $id = $3];
		} elsif (/^\t([0-9A-F]+)$/) {
			my $addr = hex $1;
			my ($in) = grep { $addr >= hex $_->[1] && $addr < hex($_->[1]) + hex $_->[2] } @modules;
			$stacks{$id} //= $in->[0] if $in;
		}
	}
	$stacks{ $_->[2] } and $blocks{ $_->[0] } = "$_->[1] $stacks{ $_->[2] }" for @order;
	return \%blocks;
}
