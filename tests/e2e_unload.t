#!/usr/bin/perl
# Frames in a module that is unloaded later keep the module's name and their offset, whatever is
# loaded at its address afterwards. This holds for the dump, and for hdiff's comparison with a dump
# from when the module was loaded. The program's source states how much each module allocated.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();
for my $name (qw(plug other)) {
	copy("$root/build/win64/targets/plug.dll", "$dir/$name.dll") or die "plug.dll: $!\n";
}
my $target = target("$root/build/win64/targets/unload.exe", [map { win("$dir/$_.dll") } qw(plug other)], traced => 1);
is($target->step, 1, 'the module is loaded');
take('1.txt');
syswrite $target->{to}, "\n";
is($target->line, 'same 1', 'another one has its address now');
is($target->line, 'again 1', 'and it has another address');
is($target->step, 2, 'the module was unloaded, and loaded again');
take('2.txt');
is($target->next_step, 3, 'all are unloaded');
take('3.txt');
is($target->quit, 0, 'the program ends');

my %first = rows('1.txt');
is_deeply(\%first, { plug => [[10, 10_000]] }, 'loaded: its blocks are its');
my %second = rows('2.txt');
is_deeply(\%second, { plug => [[3, 1500], [15, 15_000]], other => [[7, 14_000]] },
	'unloaded: they still are, and those of what came to its address are not');
my %third = rows('3.txt');
is_deeply(\%third, \%second, 'when nothing of it is loaded, nothing changes');
my %growth = rows('1.txt', '2.txt');
is_deeply(\%growth, { plug => [[3, 1500], [5, 5000]], other => [[7, 14_000]] },
	'one stack, loaded or not, is one row');
is_deeply({ rows('2.txt', '3.txt') }, {}, 'unloading is no growth');

my %base2 = bases('2.txt');
my %base3 = bases('3.txt');
is(scalar keys %base2, 1, 'one module is listed as unloaded');
is(scalar keys %base3, 2, 'then two');
is($base3{plug}, $base2{plug}, 'a base stays from dump to dump');
my $image = slurp("$dir/plug.dll");
my ($time, $image_bytes, $checksum) = map { sprintf '%X', unpack 'V', substr $image, unpack('V', substr $image, 60, 4) + $_, 4 } 8, 80, 88;
for my $name (qw(plug other)) {
	like(slurp("$dir/3.txt"), qr{^// hsnap: module base=$base3{$name} timestamp=$time checksum=$checksum unloaded=1 at=\w+\r$}m,
		"$name: what identifies it, as its headers said");
	like(slurp("$dir/3.txt"), qr{^//\s+$base3{$name}\s+$image_bytes \S.*\\$name\.dll\r$}m, "$name: its size and path");
}
my %frames = offsets('3.txt');
is(scalar keys %{ $frames{plug} }, 1, 'all calls of it come from one offset');
is_deeply($frames{other}, $frames{plug}, 'which is that of its copy');
done_testing;

sub take {
	my ($name) = @_;
	my $result = hsnap('-p', $target->{pid}, '-f', win("$dir/$name"));
	is($result->{status}, 0, "$name: hsnap takes it") or diag($result->{err});
	is($result->{err}, '', "$name: without a warning");
	return;
}

# Returns, by module, the blocks and bytes of each row that plug_keep allocated in that module.
sub rows {
	my @files = map { "$dir/$_" } @_;
	my $diff = run(tool('hdiff', 'linux', @files));
	check_ok($diff, "hdiff @_");
	my $report = report($diff->{out});
	check_report($report, "hdiff @_");
	my %rows;
	for my $row (@{ $report->{rows} }) {
		my ($frame) = grep { ($_->{module} // '') =~ /^(plug|other)$/ } @{ $row->{frames} } or next;
		push @{ $rows{ $frame->{module} } }, [$row->{count}, $row->{bytes}];
	}
	@$_ = sort { $a->[0] <=> $b->[0] } @$_ for values %rows;
	return %rows;
}

# Returns the synthetic bases, by the module's name.
sub bases {
	my ($name) = @_;
	my $text = slurp("$dir/$name");
	my %unloaded = map { $_ => 1 } $text =~ m{^// hsnap: module base=(\S+) .* unloaded=1 at=\w+\r?$}mg;
	my %bases;
	while ($text =~ m{^//\s+([0-9A-F]+)\s+[0-9A-F]+ .*\\(\w+)\.dll\r?$}mg) {
		$bases{$2} = $1 if $unloaded{$1};
	}
	return %bases;
}

# Returns, by module, the offsets that occur on stacks.
sub offsets {
	my ($name) = @_;
	my $text = slurp("$dir/$name");
	my %bases = bases($name);
	my %offsets;
	while ($text =~ /^\t([0-9A-F]+)\r?$/mg) {
		my $frame = hex $1;
		for my $module (keys %bases) {
			my $offset = $frame - hex $bases{$module};
			$offsets{$module}{$offset} = 1 if $offset > 0 && $offset < 0x10000;
		}
	}
	return %offsets;
}
