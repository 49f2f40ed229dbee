#!/usr/bin/perl
# hdiff -o pprof in go tool pprof. Shows each function's growth, also as the difference of two
# profiles with -diff_base, in modules with their builds. The truth comes from the synthetic dumps.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use FindBin qw($Bin);
use lib "$Bin/../lib";
use JSON::PP;
use List::Util qw(sum0);
use Test::More;
use Calls;
use Hunt;
use Pages;
use Viewers;

my $go = need_program('go');
my $dir = fresh_dir();
my @dumps = call_dumps($dir, 60, 'Document::parse(Reader *)', 'cache_fill', map { "f$_" } 1 .. 20);
my %profile = (growth => profile(@dumps), old => profile($dumps[0]), new => profile($dumps[1]));

for my $unit ('space', 'objects') {
	my ($key, $index) = $unit eq 'space' ? ('bytes', 0) : ('blocks', 1);
	check_top("growth, $unit", ["-sample_index=growth_$unit", $profile{growth}], sub { $_[0]{$key} });
	check_top("-diff_base, $unit", ["-sample_index=inuse_$unit", '-diff_base', $profile{old}, $profile{new}], sub { $_[0]{$key} });
	check_top("one dump, $unit", ["-sample_index=inuse_$unit", $profile{new}], sub { $_[0]{new}[$index] });
}
my $default = pprof('-top', $profile{growth});
like($default, qr/^Type: growth_space$/m, 'bytes unless asked');

my $raw = pprof('-raw', $profile{growth});
my @builds = map { $_ eq 'app' ? [0x140000000, 'app.exe', $_] : $_ eq 'ntdll' ? [0x170000000, 'ntdll.dll', $_] : [0x180000000, 'kernel32.dll', $_] }
    qw(app ntdll kernel32);
for my $build (@builds) {
	my ($base, $file, $name) = @$build;
	my $guid = uc unpack 'H32', pack 'A16', $name;
	like($raw, qr{^\d+: 0x@{[sprintf '%x', $base]}/0x@{[sprintf '%x', $base + 0x100000]}/0x0 \Q$file\E ${guid}3 \[FN\]\[FL\]\[LN\]\[IN\]$}m,
		"$file: where it is, which build, and that names are there");
}
like($raw, qr{^1: \S+ app\.exe }m, 'the program first');
like($raw, qr{ app!cache_fill code\.cpp:8 }, 'a file and line');
like($raw, qr{^Time: 2025-11-20 11:30:00 \+0000 UTC$}m, 'when it was');

# Harmful names.
my @hostile = page_dumps($dir);
$raw = pprof('-raw', profile(@hostile));
my $json = JSON::PP->new->utf8->decode(run(["$root/build/linux/hdiff", '-o', 'json', @hostile])->{out});
my @sums = (0, 0);
$raw =~ s/^ +(-?\d+) +(-?\d+): [\d ]+$/$sums[0] += $1; $sums[1] += $2; ''/gem;
is_deeply(\@sums, [@{ $json->{totals}{selected}{growth} }{qw(blocks bytes)}], 'all of it, whatever it is called');
unlike($raw, qr/[\x00-\x08\x0b-\x1f\x7f]/, 'no control characters');
done_testing;

sub profile {
	my (@files) = @_;
	our $count;
	my $file = "$dir/" . ++$count . '.pb.gz';
	check_ok(run(["$root/build/linux/hdiff", '-o', 'pprof', '--strip', '-f', $file, @files]), "hdiff -o pprof @files");
	return $file;
}

sub pprof {
	my (@args) = @_;
	my $result = run([$go, 'tool', 'pprof', '-symbolize=none', @args], dir => $dir, env => { TZ => 'UTC', HOME => $dir });
	is($result->{status}, 0, "go tool pprof @args") or diag($result->{err});
	return $result->{out};
}

# Checks each function's own amount and the amount that passes through it.
sub check_top {
	my ($what, $args, $value) = @_;
	my (%flat, %cum);
	for my $row (call_rows()) {
		my @calls = (@{ $row->{calls} }, @call_start);
		my %once = map { $_ => 1 } @calls;
		$flat{ $calls[0] } += $value->($row);
		$cum{$_} += $value->($row) for keys %once;
	}
	my %wanted = map { (call_module($_) . "!$_") => ($flat{$_} // 0) . ' ' . $cum{$_} } grep { $flat{$_} || $cum{$_} } keys %cum;
	my $top = pprof('-top', '-unit=B', '-nodecount=9999', '-nodefraction=0', @$args);
	my %got = map { /^ *(-?\d+)B? +-?[\d.]+% +-?[\d.]+% +(-?\d+)B? +-?[\d.]+%  (.*)$|^ +(0) +0% +\S+ +(-?\d+)B? +\S+  (.*)$/
		? (($3 // $6) => ($1 // $4) . ' ' . ($2 // $5)) : () } split /\n/, $top;
	is_deeply(\%got, \%wanted, "$what: each function") or diag($top);
	return;
}
