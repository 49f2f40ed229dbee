#!/usr/bin/perl
# hsym caches names, so the next run starts no symbolizer. A damaged or shared cache never causes
# wrong names or other trouble.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;
use Symbols;

my $dir = fresh_dir();
my $log = "$dir/log";
my ($real) = grep { -x } map { my $name = $_; map { "$_/$name" } split /:/, $ENV{PATH} } "llvm-symbolizer$llvm", 'llvm-symbolizer';
plan skip_all => 'llvm-symbolizer is not installed' if !$real;
# Runs in front of llvm-symbolizer and notes each start.
my $fake = spew("$dir/llvm-symbolizer", "#!/bin/sh\necho start >>'$log'\nexec '$real' \"\$@\"\n");
chmod 0755, $fake or die "$fake: $!\n";
my $none = "$dir/none";

for my $kind (qw(dwarf5 pdb_msvc)) {
	my $modules = place($kind, 'names_cpp.exe');
	my $dump = dump_of("$dir/$kind.txt", $modules);
	my $cache = "$dir/cache-$kind";
	my $what = "hsym, $kind";
	my $first = asked($modules, $dump, $cache, $fake, [], "$what, first run");
	cmp_ok(starts(), '>', 0, "$what: the first run asks llvm-symbolizer");
	ok(-s $cache, "$what: and leaves a cache");
	my $bytes = slurp($cache);
	my $second = asked($modules, $dump, $cache, $fake, [], "$what, second run");
	is(starts(), 0, "$what: the second run asks nobody");
	ok($first eq $second, "$what: and says the same, byte by byte");
	ok(slurp($cache) eq $bytes, "$what: the cache stays as it is");
	asked($modules, $dump, $cache, $none, [], "$what, no llvm-symbolizer");
	my ($names) = names_by_hdiff('linux', $modules, $dump, [], env => { HSYM_CACHE => $cache, HSYM_LLVM => $none });
	check_names($names, $modules, 'lines', "hdiff, $kind: from hsym's cache");

	asked($modules, $dump, $cache, $fake, ['--no-cache'], "$what --no-cache");
	cmp_ok(starts(), '>', 0, "$what --no-cache: asks");
	asked($modules, $dump, 'off', $fake, [], "$what, HSYM_CACHE=off");
	cmp_ok(starts(), '>', 0, "$what, HSYM_CACHE=off: asks");
	ok(slurp($cache) eq $bytes, "$what: neither changes the cache");
	ok(!-e "$root/off", "$what: 'off' is no file");

	# Damage must be detected, because the damaged bytes would give wrong names.
	my $n = 0;
	for my $damaged ('x' x 5000, substr($bytes, 0, length($bytes) / 2), flipped($bytes)) {
		spew($cache, $damaged);
		asked($modules, $dump, $cache, $fake, [], "$what, damaged cache " . ++$n);
	}
	starts();
	unlink $cache;
	mkdir $cache or die "$cache: $!\n";
	asked($modules, $dump, $cache, $fake, [], "$what, a folder for a cache");
	rmdir $cache or die "$cache: $!\n";

	# Another build at the same path has other names.
	if (has_pdb($kind)) {
		my $c = place($kind, 'names_c.exe', only => 'names_c.exe');
		my $other = place('pdb_other', 'names_c.exe', only => 'names_c.exe');
		$_->{path} = 'C:\\away\\names_c.exe' for @$c, @$other;
		my @maps = map { ['--map', 'C:\\away=' . program($_, '') =~ s,/$,,r, '--map', 'C:\\made\\pdb_msvc=' . program($_, '') =~ s,/$,,r] }
		    $kind, 'pdb_other';
		asked($c, dump_of("$dir/c.txt", $c), $cache, $fake, $maps[0], "$what, one build");
		my ($names) = names_by_hsym('linux', $other, dump_of("$dir/other.txt", $other), $maps[1],
			env => { HSYM_CACHE => $cache, HSYM_LLVM => $fake });
		is($names->{plain}[0]{function}, 'other_plain_call', "$what: another build has its own names");
		unlink $cache;
	}

	# Several runs at the same time.
	my @pids = map {
		Hunt::start(["$root/build/linux/hsym", '-o', "$dir/at-once-$_", $dump],
			env => { HSYM_CACHE => $cache, HSYM_LLVM => $fake })
	} 1 .. 4;
	is(Hunt::finish($_), 0, "$what: one of several at once ends well") for @pids;
	for (1 .. 4) {
		ok(slurp("$dir/at-once-$_") eq $first, "$what: one of several at once says the same");
	}
	starts();
	asked($modules, $dump, $cache, $none, [], "$what, from the cache of several");
}

# Under Wine: without DbgHelp, the names can only come from the cache.
{
	my $modules = place('pdb_msvc', 'names_cpp.exe');
	my $dump = dump_of("$dir/windows.txt", $modules);
	my $cache = win("$dir/cache-windows");
	for my $run ([first => {}], ['from the cache' => { HSYM_DBGHELP => 'C:\\none\\dbghelp.dll' }]) {
		my ($names, $result) = names_by_hsym('windows', $modules, $dump, [], env => { HSYM_CACHE => $cache, %{ $run->[1] } });
		check_ok($result, "windows hsym, $run->[0]");
		check_names($names, $modules, 'dbghelp', "windows hsym, $run->[0]: names are the sources'");
	}
}
done_testing;

# Runs hsym with a cache and a program as llvm-symbolizer. Returns the names, and hsym's output.
sub asked {
	my ($modules, $dump, $cache, $llvm, $args, $what) = @_;
	my ($names, $result) = names_by_hsym('linux', $modules, $dump, $args, env => { HSYM_CACHE => $cache, HSYM_LLVM => $llvm });
	check_ok($result, $what);
	check_names($names, $modules, 'lines', "$what: names are the sources'");
	return $result->{out};
}

# Returns how often llvm-symbolizer was started since the last call.
sub starts {
	my $lines = -e $log ? () = slurp($log) =~ /\n/g : 0;
	unlink $log;
	return $lines;
}

sub flipped {
	my ($bytes) = @_;
	my $at = length($bytes) >> 1;
	substr($bytes, $at, 1) = chr(ord(substr $bytes, $at, 1) ^ 0x21);
	return $bytes;
}
