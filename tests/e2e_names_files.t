#!/usr/bin/perl
# hsym uses the right file or none. Tests the places where hsym searches for files with names. A
# file of another build, or a damaged one, gives a warning in place of names.
use strict;
use warnings;
no warnings 'portable';
use File::Copy qw(copy);
use File::Path qw(make_path);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;
use Symbols;

my $exe = 'names_c.exe';
my $pdb = 'names_c.pdb';
my $is = identity(program('pdb_msvc', $exe));
my $key = sprintf '%s%X', $is->{guid}, $is->{age};
my $image_key = sprintf '%s%x', $is->{timestamp}, $is->{size};
my $other_key = identity(program('pdb_other', $exe))->{guid};
my $nowhere = 'C:\\nowhere\\';
my $scenes = fresh_dir();
my $scene_count = 0;
my $every = keys %{ notes('pdb_msvc', $exe)->{$exe} };

isnt($is->{guid}, $other_key, 'the other build has another GUID');
is($is->{pdb}, 'C:\\made\\pdb_msvc\\names_c.pdb', 'the image names its PDB by a path that is not here');

# ---------------------------------------------------------------- a missing PDB

for my $side (tool_names()) {
	my $scene = scene();
	looked_up($side, $scene, [], 'none', "no PDB");
	explained($side, $scene, [], "no PDB", qr/\Q$pdb\E/, qr/$is->{guid}/i);
	my $result = run(tool('hdiff', $side, $scene->{dump}));
	my $line = $result->{err};
	like($line, qr/^hdiff: $every of $every frames have no name: $every in names_c\b.*\bhsym --explain .*scene\.txt\b.*\n\z/,
		"$side hdiff, no PDB: one line says how many, where, and what to ask");
}

# ---------------------------------------------------------------- a PDB of another build

for my $side (tool_names()) {
	for my $where (['beside the image', ''], ['at the path in the image', 'made']) {
		my ($what, $dir) = ("wrong PDB $where->[0]", $where->[1]);
		my $scene = scene();
		my $at = folder($scene, $dir);
		put(pdb_of(program('pdb_other', $exe)), "$at/$pdb");
		my @map = $dir ? ('--map', 'C:\\made\\pdb_msvc=' . here($side, $at)) : ();
		my $result = looked_up($side, $scene, \@map, 'none', $what);
		warned_once($result, "$side, $what", $is->{guid}, $other_key, $pdb);
		explained($side, $scene, \@map, $what, qr/\Q$pdb\E/);

		$result = run(tool('hsym', $side, '--allow-mismatch', @map, $scene->{dump}));
		my $wrong = names_in($result->{out});
		my $offset = $scene->{modules}[0]{notes}{plain};
		is(($wrong->{ $scene->{modules}[0]{base} + $offset } // [])->[0]{function}, 'other_plain_call',
			"$side, $what: --allow-mismatch takes its names");

		# hsym finds the right file after a wrong one.
		put(pdb_of(program('pdb_msvc', $exe)), folder($scene, 'right') . "/$pdb");
		looked_up($side, $scene, [@map, '-y', here($side, "$scene->{dir}/right")], full($side),
			"$what, the right one in the symbol path");
	}
}

# ---------------------------------------------------------------- an image of another build

for my $side (tool_names()) {
	my $what = 'image with another time stamp';
	my $scene = scene(kind => 'dwarf4', stamp => 0x5F3A0001);
	my $result = looked_up($side, $scene, [], 'none', $what);
	warned_once($result, "$side, $what", identity(program('dwarf4', $exe))->{timestamp}, '5F3A0001', $exe);
	my ($names) = names_by_hsym($side, $scene->{modules}, $scene->{dump}, ['--allow-mismatch']);
	check_names($names, $scene->{modules}, full($side), "$side, $what: --allow-mismatch takes its names");
}

# ---------------------------------------------------------------- a damaged PDB

for my $side (tool_names()) {
	my $whole = slurp(pdb_of(program('pdb_msvc', $exe)));
	for my $bytes (0, 20, 4096, int(length($whole) / 2), length($whole) - 4096) {
		my $scene = scene();
		spew("$scene->{dir}/$pdb", substr $whole, 0, $bytes);
		looked_up($side, $scene, [], 'none', "PDB cut to $bytes bytes");
		next if $bytes != 4096;
		explained($side, $scene, [], "PDB cut to $bytes bytes", qr/\Q$pdb\E/);
		put(pdb_of(program('pdb_msvc', $exe)), folder($scene, 'right') . "/$pdb");
		# The DbgHelp of Wine 8 looks beside the image first. If it finds no names, they
		# come from hsym's own tables of the PDB, without lines.
		my $level = full($side) eq 'lines' ? 'lines' : 'functions';
		looked_up($side, $scene, ['-y', here($side, "$scene->{dir}/right")], $level,
			'a PDB that is cut beside the image, the right one in the symbol path');
	}
}

# ---------------------------------------------------------------- places of a PDB

my %layouts = (
	'plain folder' => ['', 'DIR'],
	'folder symbols/exe' => ['symbols/exe', 'DIR'],
	'two-tier store' => ["$pdb/$key", 'srv*DIR'],
	'two-tier store, key in lower case' => ["$pdb/" . lc $key, 'srv*DIR'],
	'store before a server' => ["$pdb/$key", 'srv*DIR*http://127.0.0.1:1/none'],
	'second store' => ["$pdb/$key", 'srv*EMPTY*DIR'],
	'cache' => ["$pdb/$key", 'cache*DIR'],
	'symsrv*symsrv.dll' => ["$pdb/$key", 'symsrv*symsrv.dll*DIR'],
	'three-tier store' => ["na/$pdb/$key", 'srv*DIR', 'index2.txt'],
	'behind a folder without it' => ['', 'EMPTY;DIR'],
);
for my $side (tool_names()) {
	for my $layout (sort keys %layouts) {
		my ($folder, $path, @also) = @{ $layouts{$layout} };
		next if $side eq 'windows' && $layout =~ /^(?!two-tier store$|three|plain)/;
		my $scene = scene();
		my $at = folder($scene, 'store');
		put(pdb_of(program('pdb_msvc', $exe)), folder($scene, "store/$folder") . "/$pdb");
		spew("$at/$_", '') for @also;
		my $empty = folder($scene, 'empty');
		$path =~ s/EMPTY/here($side, $empty)/e;
		$path =~ s/DIR/here($side, $at)/e;
		looked_up($side, $scene, ['-y', $path], full($side), "PDB in $layout");
		my ($names, $result) = names_by_hdiff($side, $scene->{modules}, $scene->{dump}, [], env => { _NT_SYMBOL_PATH => $path });
		check_names($names, $scene->{modules}, full($side), "$side hdiff, _NT_SYMBOL_PATH, PDB in $layout");
	}
}

# Both the image and the PDB, then only the PDB, which the dump identifies.
for my $with_image (1, 0) {
	my $scene = scene(path => $nowhere);
	unlink "$scene->{dir}/$exe";
	my $at = folder($scene, 'store');
	put(program('pdb_msvc', $exe), folder($scene, "store/$exe/$image_key") . "/$exe") if $with_image;
	put(pdb_of(program('pdb_msvc', $exe)), folder($scene, "store/$pdb/$key") . "/$pdb");
	# Wine's DbgHelp has no lines without the image
	my $level = $with_image ? full('linux') : $as_windows ? 'functions' : 'lines';
	looked_up('linux', $scene, ['-y', "srv*$at"], $level, $with_image ? 'image and PDB in a store' : 'PDB in a store, no image');
}

# Steps that are not supported are reported.
{
	my $scene = scene();
	my $at = folder($scene, "store/$pdb/$key");
	spew("$at/names_c.pd_", 'MSCF');
	my @path = ('-y', "srv*$scene->{dir}/store");
	looked_up('linux', $scene, \@path, 'none', 'compressed PDB');
	explained('linux', $scene, \@path, 'compressed PDB', qr/names_c\.pd_/, qr/compressed/);

	unlink "$at/names_c.pd_";
	spew("$at/file.ptr", 'PATH:\\\\server\\share\\names_c.pdb');
	explained('linux', $scene, \@path, 'pointer file', qr/file\.ptr/);
	my $server = 'https://127.0.0.1:1/symbols';
	# DbgHelp queries the server.
	explained('linux', $scene, ['-y', "srv*$scene->{dir}/store*$server"], 'a server', qr/\Q$server\E/, qr/cannot be used/) if !$as_windows;
}

# ---------------------------------------------------------------- paths from another machine

for my $side (tool_names()) {
	my $scene = scene(path => 'C:\\Build\\out\\bin\\');
	my $at = here($side, $scene->{dir});
	put(pdb_of(program('pdb_msvc', $exe)), folder($scene, 'bin') . "/$pdb");
	rename "$scene->{dir}/$exe", "$scene->{dir}/bin/$exe" or die "$exe: $!\n";
	looked_up($side, $scene, [], 'none', 'path of another machine');
	looked_up($side, $scene, ['--map', "$_=$at"], full($side), "--map $_")
	    for 'C:\\Build\\out', 'c:/build/OUT', 'C:\\Build\\out\\';
	looked_up($side, $scene, ['--map', "C:\\elsewhere=$at", '--map', "C:\\Build\\ou=$at", '--map', "C:\\Build=$at"], 'none',
		'--map of other paths');
}

for my $side (tool_names()) {
	for my $kind (qw(dwarf4 pdb_msvc)) {
		my $scene = scene(kind => $kind, folder => "ein Ordner mit \x{c3}\x{9c}ml\x{c3}\x{a4}uten");
		put(pdb_of(program($kind, $exe)), "$scene->{dir}/$pdb") if has_pdb($kind);
		looked_up($side, $scene, [], full($side), "$kind in a folder with blanks and umlauts");
	}
}

# ---------------------------------------------------------------- dumps without identities

for my $side (tool_names()) {
	my $scene = scene(kind => 'dwarf4', umdh => 1);
	looked_up($side, $scene, [], full($side), "a UMDH log");
	explained($side, $scene, [], "a UMDH log", qr/UMDH recorded no GUID/) if $side eq 'linux';
	$scene = scene(umdh => 1);
	put(pdb_of(program('pdb_msvc', $exe)), "$scene->{dir}/$pdb");
	looked_up($side, $scene, [], full($side), "a UMDH log, PDB");
	$scene = scene(umdh => 1);
	put(pdb_of(program('pdb_other', $exe)), "$scene->{dir}/$pdb");
	looked_up($side, $scene, [], 'none', "a UMDH log, a PDB that is not the image's");
}
done_testing;

# ---------------------------------------------------------------- helpers

# Returns the best level that DbgHelp or this machine's tools can reach.
sub full { return $_[0] eq 'linux' && !$as_windows ? 'lines' : 'dbghelp' }

# Returns a path in the form that programs of that system accept in the middle of an argument.
sub here { return $_[0] eq 'linux' && !$as_windows ? $_[1] : win($_[1]) }

# Makes a folder with the image, without its PDB, and a dump of it. %how:
#   kind    of the image; pdb_msvc
#   path    folder in the dump
#   folder  name of the folder
#   stamp   another time stamp for the image
#   umdh    a log without identity
sub scene {
	my (%how) = @_;
	my $kind = $how{kind} // 'pdb_msvc';
	my $dir = "$scenes/" . ++$scene_count . (defined $how{folder} ? "/$how{folder}" : '');
	make_path($dir);
	put(program($kind, $exe), "$dir/$exe");
	my $modules = place($kind, $exe, only => $exe, files => { $exe => "$dir/$exe" }, path => $how{path});
	stamp("$dir/$exe", $how{stamp}) if $how{stamp};
	return { dir => $dir, modules => $modules, dump => dump_of("$dir/scene.txt", $modules, umdh => $how{umdh}) };
}

sub folder {
	my ($scene, $name) = @_;
	make_path("$scene->{dir}/$name");
	return "$scene->{dir}/$name";
}

sub put {
	my ($from, $to) = @_;
	copy($from, $to) or die "$to: $!\n";
	return;
}

# Overwrites an image's time stamp, 8 bytes after the signature.
sub stamp {
	my ($file, $stamp) = @_;
	my $bytes = slurp($file);
	substr($bytes, unpack('V', substr $bytes, 0x3c, 4) + 8, 4) = pack 'V', $stamp;
	spew($file, $bytes);
	return;
}

sub looked_up {
	my ($side, $scene, $args, $level, $what) = @_;
	my ($names, $result) = names_by_hsym($side, $scene->{modules}, $scene->{dump}, $args);
	is($result->{status}, 0, "$side, $what: status 0") or diag("$result->{command}\n$result->{err}");
	check_names($names, $scene->{modules}, $level, "$side, $what: level $level")
	    or diag("$result->{command}\n$result->{err}");
	return $result;
}

# Checks the lines of --explain, starting at the module's line.
sub explained {
	my ($side, $scene, $args, $what, @words) = @_;
	my $result = run(tool('hsym', $side, '--explain', @$args, $scene->{dump}));
	my $text = "$result->{out}$result->{err}";
	my @missing = grep { $text !~ $_ } qr/names_c/, @words;
	ok($result->{status} == 0 && !@missing, "$side, $what: --explain says why")
	    or diag("$result->{command}\nstatus $result->{status}, missing @missing\n$text");
	return;
}

# Checks for one line that has all words, ignoring case and the dashes in numbers.
sub warned_once {
	my ($result, $what, @words) = @_;
	my @lines = grep { my $line = lc($_) =~ tr/{}-//dr; !grep { index($line, lc) < 0 } @words } split /\n/, $result->{err};
	is(scalar @lines, 1, "$what: one line with both values and the path") or diag("@words in:\n$result->{err}");
	return;
}
