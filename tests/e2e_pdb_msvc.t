#!/usr/bin/perl
# Names from PDBs of Microsoft's compiler, those of npm's node-pty. llvm-symbolizer dies on some of
# their functions. The truth comes from llvm-pdbutil for names, and from llvm-symbolizer for lines,
# which is restarted when it dies.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $package = 'node-pty@1.1.0';
for my $tool (map { "$_$llvm" } qw(llvm-symbolizer llvm-pdbutil llvm-readobj)) {
	plan(skip_all => "no $tool here") if system("command -v $tool >/dev/null");
}
my $there = from_npm($package) or plan(skip_all => "npm does not give $package here");
$there .= '/prebuilds';
my $dir = fresh_dir();
for my $file (qw(win32-x64/winpty-agent.exe win32-x64/conpty.node win32-arm64/winpty.dll)) {
	my $functions = functions_of("$there/$file");
	my @asked = map { { at => $_->{start} + int($_->{size} / 2), %$_ } } grep { $_->{size} } values %$functions;
	cmp_ok(scalar @asked, '>', 500, "$file: functions") or next;
	ask_truth("$there/$file", \@asked);
	check($file, \@asked);
}
done_testing;

# Returns { START => { start, size, names } } from the private symbols.
sub functions_of {
	my ($file) = @_;
	my @sections = map { hex } `llvm-readobj$llvm --sections '$file'` =~ /VirtualAddress: 0x(\w+)/g;
	my (%functions, $name);
	for (split /\n/, `llvm-pdbutil$llvm dump --symbols '@{[$file =~ s/\.\w+$/.pdb/r]}'`) {
		$name = $1 if / \| S_[GL]PROC32(?:_ID)? \[size = \d+\] `(.*)`$/;
		next unless defined $name && /, addr = (\d+):(\d+), code size = (\d+)$/;
		# The linker left this function out, so it is in no section.
		my $start = $1 > 0 ? $sections[$1 - 1] + $2 : next;
		$functions{$start} //= { start => $start, size => $3, names => {} };
		$functions{$start}{names}{$name} = 1;
		undef $name;
	}
	return \%functions;
}

# Sets line to "FILE:LINE" of the function itself. Restarts llvm-symbolizer when it dies.
sub ask_truth {
	my ($file, $asked) = @_;
	my $options = '--relative-address --functions=linkage --verbose';
	my $deaths = 0;
	for (my $at = 0; $at < @$asked;) {
		my @answers = answers($file, "$options --inlines", @$asked[$at .. $#$asked]);
		@answers = answers($file, "$options --no-inlines", $asked->[$at]) if !@answers;
		die "$file: no answer\n" if !@answers;
		$asked->[$at++]{line} = $_ for @answers;
		$deaths += $at < @$asked;
	}
	note("$file: llvm-symbolizer died $deaths times");
	return;
}

sub answers {
	my ($file, $options, @asked) = @_;
	my $questions = spew("$dir/questions", join '', map { sprintf "CODE \"%s\" 0x%x\n", $file, $_->{at} } @asked);
	return map { /.*^  Filename: ([^\n]*)\n.*?^  Line: (\d+)\n/ms ? "$1:$2" : () }
	    split /(?<=\n)\n/, `llvm-symbolizer$llvm $options <'$questions' 2>/dev/null`;
}

sub check {
	my ($file, $asked) = @_;
	my $questions = spew("$dir/addresses", join '', map { sprintf "+%X\n", $_->{at} } @$asked);
	my $result = run(tool('hsym', 'linux', '--exact', '-e', "$there/$file"), stdin => $questions);
	is($result->{status}, 0, "$file: status");
	is($result->{err}, '', "$file: no complaint");
	my @lines = grep { !/ \[inline\]$/ } split /\n/, $result->{out};
	is(scalar @lines, scalar @$asked, "$file: an answer each") or return;
	my (@wrong, @other);
	my $with_line = 0;
	for my $i (0 .. $#lines) {
		my $want = $asked->[$i];
		my ($name, $offset, $source, $line) = $lines[$i] =~ /^[^!]+!(.*)\+([0-9A-F]+)(?: \((.*), (\d+)\))?$/;
		push @wrong, sprintf '%s, not %s+%X', $lines[$i], join('|', keys %{ $want->{names} }), $want->{at} - $want->{start}
		    if !defined $name || !$want->{names}{$name} || hex $offset != $want->{at} - $want->{start};
		next if $want->{line} =~ /:0$/;
		$with_line++;
		push @other, "$lines[$i], not $want->{line}" if !defined $source || "$source:$line" ne $want->{line};
	}
	is(scalar @wrong, 0, "$file: names and offsets") or diag(join "\n", @wrong[0 .. ($#wrong > 9 ? 9 : $#wrong)]);
	cmp_ok($with_line, '>', 400, "$file: functions with lines");
	cmp_ok(scalar @other, '<=', $with_line / 100, "$file: 99 % of the lines")
	    or diag(join "\n", @other[0 .. ($#other > 9 ? 9 : $#other)]);
	return;
}
