#!/usr/bin/perl
# If DbgHelp has no names, hsym.exe uses llvm-symbolizer.exe. No such program runs here, so a
# stand-in replays the answers that this machine's llvm-symbolizer gave about the same program.
use strict;
use warnings;
no warnings 'portable';    # addresses have 64 bits
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $name = 'leak_wrapper';
my $mingw = 'x86_64-w64-mingw32';
my $dir = fresh_dir();
my $exe = "$dir/$name.exe";
for my $tool ("$mingw-gcc", "$mingw-objdump", "llvm-symbolizer$llvm") {
	plan skip_all => "no $tool here" if system("command -v $tool >/dev/null");
}

# Wine's DbgHelp silently ignores DWARF 5.
is(system("$mingw-gcc", '-I.', '-O1', '-gdwarf-5', '-gno-statement-frontiers', '-fno-optimize-sibling-calls',
	'-DUNICODE', '-D_UNICODE', '-D_WIN32_WINNT=0x0601', source_of($name), '-static', '-o', $exe), 0,
	'a program with DWARF 5') or BAIL_OUT('no program');
spew("$dir/answers", answers($exe));

my $target = target($exe, [], traced => 1);
for my $step (1, 2) {
	is($step == 1 ? $target->step : $target->next_step, $step, "step $step") or BAIL_OUT('no step');
	snapshot($target->{pid}, "$dir/$step.txt") or BAIL_OUT('no snapshot');
}
is($target->quit, 0, 'the sample ends well');

my %stand_in = (
	HSYM_LLVM => win("$root/build/win64/targets/llvm_stand_in.exe"),
	STAND_IN_ANSWERS => win("$dir/answers"),
	STAND_IN_FOR => "$name.exe",
);
# hsym finds llvm-symbolizer.exe next to itself without configuration, but never in the current
# folder.
my $apart = "$dir/apart";
mkdir $apart or die "$apart: $!\n";
copy("$root/build/win64/targets/llvm_stand_in.exe", "$apart/llvm-symbolizer.exe") or die "$!\n";
copy("$root/build/win64/hsym.exe", "$apart/hsym.exe") or die "$!\n";
my %unnamed = map { $_ => $stand_in{$_} } qw(STAND_IN_ANSWERS STAND_IN_FOR);
for my $place (["$apart/hsym.exe", $dir, 'beside hsym.exe', 1], ["$root/build/win64/hsym.exe", $apart, 'in the current folder', 0]) {
	my ($hsym, $in, $what, $is_used) = @$place;
	my $result = run([wine(win($hsym), win("$dir/1.txt"))], env => \%unnamed, dir => $in);
	check_ok($result, "llvm-symbolizer $what");
	my @lines = $result->{out} =~ /^.*hsnap: name .*\bfile="[^"]*\Q$name\E\.c" line=.*$/mg;
	ok($is_used ? @lines > 0 : @lines == 0, "llvm-symbolizer $what is " . ($is_used ? 'asked' : 'not asked'))
	    or diag($result->{out});
}

for my $with (1, 0) {
	my $what = $with ? 'with llvm-symbolizer' : 'without';
	my %env = (%stand_in, $with ? () : (HSYM_LLVM => 'none'));
	for my $step (1, 2) {
		check_ok(run(tool('hsym', 'windows', '-o', "$dir/named.$step.txt", "$dir/$step.txt"), env => \%env),
			"$what: hsym -o");
	}
	# hdiff must use only the names in the dumps.
	rename $exe, "$exe.away" or die "$exe: $!\n";
	my $report = report(run(tool('hdiff', 'linux', "$dir/named.1.txt", "$dir/named.2.txt"))->{out});
	rename "$exe.away", $exe or die "$exe: $!\n";
	if ($with) {
		check_truth($report, $name, 1, 2, $what);
	} else {
		my @lines = grep { $_->{line} } map { chain_of($_, $name) } @{ $report->{rows} };
		is_deeply(\@lines, [], "$what: no lines");
	}
}
done_testing;

# Returns llvm-symbolizer's output for each byte of a program's code.
sub answers {
	my ($file) = @_;
	my ($base) = `$mingw-objdump -p '$file'` =~ /^ImageBase\s+(\w+)/m;
	my ($size, $start) = `$mingw-objdump -h '$file'` =~ /\s\.text\s+(\w+)\s+(\w+)/;
	my $rva = hex($start) - hex $base;
	my $questions = spew("$dir/questions", join '', map { sprintf "CODE \"%s\" 0x%x\n", $file, $_ } $rva .. $rva + hex($size) - 1);
	return scalar `llvm-symbolizer$llvm --relative-address --demangle --inlines --functions=linkage --addresses --verbose <'$questions'`;
}
