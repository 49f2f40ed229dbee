#!/usr/bin/perl
# DbgHelp alone: which copy hsym loads, which calls hsym makes, and which answers hsym uses. Wine's
# DbgHelp gives true names. A stand-in reports the calls that a DbgHelp of Windows would receive.
use strict;
use warnings;
use File::Copy qw(copy);
use File::Path qw(make_path);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;
use Symbols;

my $ask = "$root/build/win64/tests/ask_dbghelp.exe";
my $stand_in = "$root/build/win64/targets/dbghelp_stand_in.dll";
my $dir = fresh_dir();
my $here = win($dir);
my $guid = '00112233445566778899AABBCCDDEEFF'; # the identity that the stand-in reports
my %bit = (undname => 0x2, lines => 0x10, ignore_cvrec => 0x80, exact => 0x400, ignore_nt_sympath => 0x1000);

# ---------------------------------------------------------------- Wine's own

for my $kind (qw(dwarf4 pdb_gnu pdb_msvc)) {
	my $exe = program($kind, 'names_c.exe');
	my @pdb = has_pdb($kind) ? pdb_words($exe) : ();
	check_names(names_of($kind, 'image=' . win($exe), @pdb), modules($kind), 'dbghelp', "$kind: names, files, lines");
}
for my $kind (qw(dwarf5 stripped)) {
	my $exe = program($kind, 'names_c.exe');
	check_names(names_of($kind, 'image=' . win($exe)), modules($kind), 'none', "$kind: no names, no harm");
}

my ($exe, $pdb) = (program('pdb_gnu', 'names_c.exe'), pdb_of(program('pdb_gnu', 'names_c.exe')));
my @identity = map { my $is = identity($exe); ("guid=$is->{guid}", "age=$is->{age}") } 1;
my ($alone, $apart) = map { make_path("$dir/$_"); "$dir/$_" } 'an image, alone', "a PDB, \xc3\xa4part";
copy($exe, "$alone/names_c.exe") or die "$alone: $!\n";
copy($pdb, "$apart/names_c.pdb") or die "$apart: $!\n";
my $image = 'image=' . win("$alone/names_c.exe");

names_are('none', [$image], 'no PDB, and the image names none that is here');
names_are('dbghelp', [$image, 'pdb=' . win("$apart/names_c.pdb"), @identity],
	'the PDB that was found, in a folder with a blank and another letter');
names_are('none', [$image, 'pdb=' . win("$apart/names_c.pdb"), "guid=$guid", 'age=1'],
	'a PDB of another build than the dump\'s', says => qr/^reason DbgHelp took .*names_c\.pdb, which is a different build$/m);
names_are('none', ['pdb=' . win("$apart/names_c.pdb"), @identity, sprintf 'size=%x', identity($exe)->{size}],
	'the PDB without an image, which this DbgHelp refuses: no names, no harm');
copy(pdb_of(program('pdb_other', 'names_c.exe')), "$alone/names_c.pdb") or die "$alone: $!\n";
names_are('none', [$image], 'the PDB of another build beside the image');
make_path("$dir/current");
copy(pdb_of(program('pdb_other', 'names_c.exe')), "$dir/current/names_c.pdb") or die "$dir/current: $!\n";
names_are('none', [$image], 'the PDB of another build in the current folder', dir => "$dir/current");
for my $bytes (40, 5000, 60000) {
	spew("$alone/names_c.pdb", substr(slurp($pdb), 0, $bytes));
	names_are('none', [$image, @identity, 'damaged'], "a PDB cut after $bytes bytes beside the image, found to be damaged");
}
unlink "$alone/names_c.pdb" or die "$alone: $!\n";
is(asked([$image, 'cancel', '1000'])->{out}, '', 'stopped: nothing');

# ---------------------------------------------------------------- a difficult name

my $long = 'l' . 'o' x 6000 . 'ng';
spew("$dir/hard.c", <<"END");
volatile int total;
__attribute__((noinline)) void *from(void) { total++; return __builtin_return_address(0); }
__attribute__((noinline)) void *$long(void) { void *at = from(); total++; return at; }
extern const char __ImageBase;
int printf(const char *, ...);
void exit(int);
int main(void) { printf("%x\\n", (int)((char *)$long() - &__ImageBase)); exit(0); }
END
my $made = run(["clang$llvm", qw(--target=x86_64-pc-windows-msvc -O1 -g -gcodeview -fno-optimize-sibling-calls -c),
	"$dir/hard.c", '-o', "$dir/hard.obj"]);
my @libraries = map { chomp(my $file = `x86_64-w64-mingw32-gcc -print-file-name=lib$_.a`); $file } qw(msvcrt kernel32);
$made = run(["lld-link$llvm", qw(/nologo /debug /subsystem:console /entry:main), "/out:$dir/hard.exe", "$dir/hard.obj", @libraries])
    if !$made->{status};
is($made->{status}, 0, 'a program with a long name') or diag($made->{err});
my ($at) = run([wine("$dir/hard.exe")])->{out} =~ /^(\w+)/;
my ($hard) = @{ asked(['image=' . win("$dir/hard.exe"), pdb_words("$dir/hard.exe"), $at])->{frames} };
my $said = $hard->{function} // '';
ok(length $said >= 500 && length $said <= 4000 && index($long, $said) == 0, 'a long name is cut')
    or diag(length $said, ' bytes: ', substr($said, 0, 100));

# ---------------------------------------------------------------- C++ names

my %means = (
	'?turn@app@@YAHH@Z' => 'app::turn',
	'?turn@app@@YAHN@Z' => 'app::turn',
	'?turn@app@@YAHPEBD@Z' => 'app::turn',
	'?grab@?$Pool@N@app@@QEAANN@Z' => 'app::Pool<double>::grab',
);
is(run([wine($ask, "undname=$_")])->{out} =~ s/\r//gr, "0 $means{$_}\n", "$_ as scope and name") for sort keys %means;
for my $bad ('?', '??', '?f@@', "?f\xc3\xa4@@", '?f@@YAX' . 'V?$T@' x 700, '?' . 'f' x 9000) {
	is(run([wine($ask, "undname=$bad")])->{out} =~ s/\r//gr, "0 \n", substr($bad, 0, 20) . ' is no name');
}

# ---------------------------------------------------------------- the stand-in

# The stand-in needs a file name that Wine does not have as a built-in DLL. Under the real name, at
# the place in Windows' registry, Wine loads it only with a prefix of this test's own.
make_path("$dir/$_") for qw(configured kits/Debuggers/x64 empty);
my $configured = "$dir/configured/stand in.dll";
copy($stand_in, $_) or die "$_: $!\n" for $configured, "$dir/kits/Debuggers/x64/dbghelp.dll", map { "$dir/$_.dll" } qw(bare dbghelp);
my %with = (HSYM_DBGHELP => win($configured));
my @right = ("guid=$guid", 'age=1');

my $told = asked_of_stand_in([$image, @right]);
is($told->{by}, win($configured), 'HSYM_DBGHELP is loaded');
is($told->{search_path}, win($alone), 'without a PDB: it looks beside the image, not in the current folder');
is($told->{image}, win("$alone/names_c.exe"), 'it is given the image');
is(hex $told->{size}, identity($exe)->{size}, 'and its size');
ok($told->{options} & $bit{$_}, "option $_") for sort keys %bit;
is($told->{stop}, 0, 'it may go on');
is(asked_of_stand_in([$image, @right, 'cancel-load'])->{stop}, 1, 'it is asked to stop loading');
ok(!(asked_of_stand_in([$image, @right, 'raw'])->{options} & $bit{undname}), 'raw names, if requested');
ok(asked_of_stand_in([$image, @right, 'allow'])->{options} & $bit{exact}, 'leave to take another build changes nothing for the right one');
ok(!(asked_of_stand_in([$image, @right, qw(allow mismatch)])->{options} & $bit{exact}), 'another build, with leave');

$told = asked_of_stand_in([$image, 'pdb=' . win("$apart/names_c.pdb"), @right]);
is($told->{search_path}, win($apart), 'with a PDB: it looks where that is and nowhere else');
$told = asked_of_stand_in(['pdb=' . win("$apart/names_c.pdb"), 'size=12000', @right]);
is_deeply([@$told{qw(image size)}], [win("$apart/names_c.pdb"), '12000'], 'a PDB alone is loaded itself, with the size of the module');
my $servers = 'srv*C:\\cache*https://symbols.example/x';
is(asked_of_stand_in([$image, "path=$servers", @right])->{search_path}, $servers, 'a symbol path with servers is its business');
is(asked_of_stand_in([$image, 'pdb=' . win("$apart/names_c.pdb"), "path=$servers", @right])->{search_path}, win($apart),
	'but not when the PDB is here');
is(asked_of_stand_in([$image, 'path=C:\\folder', @right])->{search_path}, win($alone), 'one without servers was searched already');
my @served = ("path=$servers", 'size=12000', @right);
is(asked_of_stand_in([@served, 'dump-pdb=C:\\made\\served.pdb'])->{image}, 'C:\\cache\\served.pdb',
	'no file is here: the servers are queried for the PDB in the dump');
is(asked_of_stand_in([@served, 'dump-pdb=other.pdb'])->{by}, '', 'they have no other one');
is(asked_of_stand_in([@served, 'age=2', 'dump-pdb=served.pdb'])->{by}, '', 'nor of another age');
is(asked_of_stand_in(['size=12000', @right, 'dump-pdb=served.pdb'])->{by}, '', 'nor are any asked that the user did not name');
is_deeply(asked([@served, 'dump-pdb=served.pdb', '1000'])->{frames}, [], "Wine's own DbgHelp finds none, without harm");
my $unasked = qr/^warning symbol servers are not used: this copy of DbgHelp has no symsrv\.dll beside it; /m;
my @of_servers = asked([@served, 'dump-pdb=served.pdb', '1000', '2000'])->{out} =~ /$unasked/g;
is(scalar @of_servers, 1, 'a missing symsrv.dll causes one warning');
unlike(asked([$image, @right, '1000'])->{out}, $unasked, 'not when no server is named');
spew("$dir/configured/symsrv.dll", 'it is only looked for');
unlike(asked([@served, 'dump-pdb=served.pdb', '1000'], env => \%with)->{out}, $unasked, 'nor when it is there');
my $odd = "$dir/one;two";
make_path($odd);
copy($exe, "$odd/names_c.exe") or die "$odd: $!\n";
unlike(asked_of_stand_in(['image=' . win("$odd/names_c.exe"), @right])->{search_path}, qr/one|two|;/,
	'a folder whose name would be two is not in the search path');

for (['age=2'], ["guid=F$guid" =~ s/.$//r]) {
	my $result = asked([$image, @right, @$_, '1000'], env => \%with);
	is_deeply($result->{frames}, [], "@$_: the PDB that it loaded is not that");
	like($result->{out}, qr/^reason DbgHelp took C:\\some\.pdb, which is a different build$/m, 'which is reported');
}
for (['STAND_IN_UNMATCHED', 1, 'a PDB it took nevertheless'], ['STAND_IN_TYPE', 0, 'no symbols'],
	['STAND_IN_TYPE', 4, 'exports alone'], ['STAND_IN_TYPE', 6, 'a .sym file']) {
	my ($name, $value, $what) = @$_;
	is_deeply(asked([$image, @right, '1000'], env => { %with, $name => $value })->{frames}, [], "$what: no names");
}

for my $hidden (0xf00f00, 0xfeefee) {
	my ($frame) = @{ asked([$image, @right, '1000'], env => { %with, STAND_IN_LINE => $hidden })->{frames} };
	is_deeply([@$frame{qw(function file line)}], [win($configured), undef, 0], sprintf 'line %x is none', $hidden);
}

my $result = asked([$image, @right, '1000'], dir => $dir, env => { HSYM_DBGHELP => 'bare.dll' });
is_deeply($result->{frames}, [], 'a copy in the current folder is not loaded by its name');
like($result->{out}, qr/^warning bare\.dll in HSYM_DBGHELP is not a full path; another copy of DbgHelp is used$/m, 'which is reported');
my ($gone, $broken) = map { win("$dir/$_.dll") } qw(gone broken);
$result = asked([$image, @right, '1000'], env => { HSYM_DBGHELP => $gone });
like($result->{out}, qr/^warning \Q$gone\E cannot be loaded: .*; another copy of DbgHelp is used$/m, 'a missing copy is reported');
spew("$dir/broken.dll", "MZ and no more");
$result = asked(['image=' . win($exe), @identity, map { sprintf '%x', $_ } (values %{ modules('pdb_gnu')->[0]{notes} })[0]],
	env => { HSYM_DBGHELP => $broken });
like($result->{out}, qr/^warning \Q$broken\E cannot be loaded/m, 'a broken copy is reported');
isnt(scalar @{ $result->{frames} }, 0, 'and the next one is used');

# Makes a prefix with its own registry. Its programs are those of the other prefix.
my $prefix = "$dir/prefix";
my $old = $ENV{HSNAP_WINE_PREFIX} // "$root/build/wine";
make_path("$prefix/dosdevices");
copy("$old/$_", "$prefix/$_") or die "$prefix/$_: $!\n" for grep { -f "$old/$_" } files_in($old);
symlink "$old/drive_c", "$prefix/drive_c" or die "$prefix: $!\n";
symlink '../drive_c', "$prefix/dosdevices/c:" or die "$prefix: $!\n";
symlink '/', "$prefix/dosdevices/z:" or die "$prefix: $!\n";
my %ours = (HSNAP_WINE_PREFIX => $prefix);
my $kits = 'HKLM\SOFTWARE\Microsoft\Windows Kits\Installed Roots';
reg('HKCU\Software\Wine\AppDefaults\ask_dbghelp.exe\DllOverrides', '/v', 'dbghelp', '/d', 'native,builtin');

is(asked_of_stand_in([$image, @right], env => { %ours, HSYM_DBGHELP => win("$dir/dbghelp.dll") })->{by}, win("$dir/dbghelp.dll"),
	'in this prefix a dbghelp.dll can be a strange one');
is_deeply(asked([$image, @right, '1000'], dir => $dir, env => \%ours)->{frames}, [], 'but not that of the current folder');
for my $root_dir ('kits', win("$dir/empty"), '\\\\' . "localhost\\kits") {
	reg($kits, '/v', 'KitsRoot10', '/d', $root_dir);
	is_deeply(asked([$image, @right, '1000'], dir => $dir, env => \%ours)->{frames}, [], "Debugging Tools in $root_dir: none");
}
for my $view ('64', '32') {
	run([wine('reg', 'delete', $kits, '/f', "/reg:$_")], env => \%ours) for 32, 64;
	reg($kits, '/v', 'KitsRoot10', '/d', win("$dir/kits") . ($view eq '32' ? '\\' : ''), "/reg:$view");
	is(asked_of_stand_in([$image, @right], env => \%ours)->{by}, win("$dir/kits/Debuggers/x64/dbghelp.dll"),
		"the Debugging Tools' copy is taken by itself (registry of $view bits)");
}
is(asked_of_stand_in([$image, @right], env => { %ours, %with })->{by}, win($configured), 'but after HSYM_DBGHELP');
done_testing;

sub reg {
	my ($key, @words) = @_;
	my $result = run([wine('reg', 'add', $key, @words, '/f')], env => \%ours);
	die "reg: $result->{err}$result->{out}\n" if $result->{status};
	return;
}

sub modules { return place($_[0], 'names_c.exe', only => 'names_c.exe') }

sub pdb_words {
	my ($file) = @_;
	my $is = identity($file);
	return ('pdb=' . win(pdb_of($file)), "guid=$is->{guid}", "age=$is->{age}");
}

# Runs a query; returns the output, and the frames in the output.
sub asked {
	my ($words, %how) = @_;
	my $result = run([wine($ask, @$words)], %how, env => { LC_ALL => 'C.UTF-8', HSYM_DBGHELP => '', %{ $how{env} // {} } });
	$result->{out} =~ s/\r//g;
	is($result->{status}, 0, 'it ends well') or diag("@$words\n$result->{err}") if $result->{status};
	$result->{frames} = [];
	for (split /\n/, $result->{out}) {
		my @fields = split /\t/;
		next if @fields != 5;
		push @{ $result->{frames} }, { rva => hex $fields[0], function => $fields[1], offset => hex $fields[2],
			$fields[3] eq '-' ? () : (file => $fields[3]), line => $fields[4] };
	}
	return $result;
}

# Returns { MARKER => [frames] } for a program's notes.
sub names_of {
	my ($kind, @words) = @_;
	my %how = ref $words[-1] ? %{ pop @words } : ();
	my $notes = modules($kind)->[0]{notes};
	my $result = asked([@words, map { sprintf '%x', $_ } sort { $a <=> $b } values %$notes], %how);
	my %names;
	for my $marker (keys %$notes) {
		$names{$marker} = [map { my %frame = %$_; delete $frame{line} if !$frame{line}; \%frame }
			    grep { $_->{rva} == $notes->{$marker} } @{ $result->{frames} }];
	}
	$names_of::out = $result->{out};
	return \%names;
}

sub names_are {
	my ($level, $words, $what, %how) = @_;
	my $says = delete $how{says};
	check_names(names_of('pdb_gnu', @$words, \%how), modules('pdb_gnu'), $level, $what);
	like($names_of::out, $says, 'which is reported') if $says;
	return;
}

# Returns the parts of the call that the stand-in reports. All parts are '' if the stand-in was not
# called.
sub asked_of_stand_in {
	my ($words, %how) = @_;
	my ($frame) = @{ asked([@$words, '1000'], env => \%with, %how)->{frames} };
	my %told = (by => $frame->{function} // '');
	my @parts = split /\|/, $frame->{file} // '';
	@told{qw(options search_path image size base stop)} = map { $_ // '' } @parts[0 .. 5];
	$told{options} = hex($told{options} || 0);
	$told{stop} =~ s/stop: //;
	return \%told;
}
