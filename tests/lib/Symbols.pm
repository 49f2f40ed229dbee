# Shared code of the tests of names: the programs of tests/symbols/, the functions at their return
# addresses (from comments in their sources), the addresses themselves (which the programs print),
# and dumps that contain these addresses. The code compares hsym's and hdiff's output with all this.
package Symbols;
use strict;
use warnings;
no warnings 'portable';  # addresses have 64 bits
use Exporter qw(import);
use File::Basename qw(basename);
use File::Copy qw(copy);
use Hunt;
use Test::More;

our @EXPORT = qw(kinds program pdb_of notes frames_of_sources identity place dump_of names_in
    names_by_hsym names_by_hdiff check_names has_pdb function_start functions_of);

my ($readobj) = grep { !system("command -v $_ >/dev/null 2>&1") } "llvm-readobj$llvm", 'llvm-readobj' or needs_linux('llvm-readobj');
my $built = "$root/build/win64/symbols";
my $sources = "$root/tests/symbols";
my $first_base = 0x140000000;

sub kinds { return qw(dwarf4 dwarf5 pdb_gnu pdb_msvc stripped lld) }
sub has_pdb { return $_[0] =~ /^pdb_/ }
sub program { return "$built/$_[0]/$_[1]" } # program('dwarf4', 'names_c.exe') returns a path
sub pdb_of { return $_[0] =~ s/\.\w+$/.pdb/r }

# ---------------------------------------------------------------- output of the programs

# Returns a program's output, { MODULE => { MARKER => RVA } }. Each program runs only once.
my %notes;
sub notes {
	my ($kind, $name) = @_;
	return $notes{"$kind/$name"} //= run_program(program($kind, $name));
}

sub run_program {
	my ($exe) = @_;
	my $result = run([wine(win($exe))]);
	die "$exe: status $result->{status}\n$result->{err}" if $result->{status};
	my %said;
	for (split /\r?\n/, $result->{out}) {
		next unless /^note (\S+) (\S+) ([0-9a-f]+)$/;
		die "$exe: two places for $1\n" if exists $said{$2}{$1} && $said{$2}{$1} != hex $3;
		$said{$2}{$1} = hex $3;
	}
	return \%said;
}

# Reads the frames from comments in the sources: { FILE => { MARKER => [{ function, file, line },
# ...] } }, innermost first. A header's frames belong to the files that include the header.
sub frames_of_sources {
	my %marked;
	for my $file (grep { /^names_\w+\.(?:c|cpp|h)$/ } files_in($sources)) {
		my $line = 0;
		for (split /\n/, slurp("$sources/$file")) {
			$line++;
			while (m{/\* frame (\S+) (\d+) (.+?) \*/}g) {
				die "$file:$line: two frames $1 $2\n" if $marked{$file}{$1}[$2 - 1];
				$marked{$file}{$1}[$2 - 1] = { function => $3, file => "tests/symbols/$file", line => $line };
			}
		}
	}
	my $header = delete $marked{'names_inline.h'};
	for my $marker (keys %$header) {
		$marked{'names_c.c'}{$marker}[$_] = $header->{$marker}[$_] for 0 .. $#{ $header->{$marker} };
	}
	return { map { my ($file, $frames) = ($_, $marked{$_}); ($file =~ s/\.c(?:pp)?$//r => $frames) } keys %marked };
}

# ---------------------------------------------------------------- files by another tool

my %identity;
sub identity {
	my ($file) = @_;
	return $identity{"$file " . ((stat $file)[9] // '')} //= read_identity($file);
}

sub read_identity {
	my ($file) = @_;
	my $text = run([$readobj, qw(--file-headers --coff-debug-directory), $file])->{out};
	my %is;
	($is{timestamp}) = $text =~ /TimeDateStamp: .*\(0x([0-9A-F]+)\)/ or die "$file: no time stamp\n";
	($is{size}) = $text =~ /SizeOfImage: (\d+)/ or die "$file: no size\n";
	($is{checksum}) = $text =~ /CheckSum: 0x([0-9A-F]+)/ or die "$file: no checksum\n";
	($is{base}) = $text =~ /ImageBase: 0x([0-9A-F]+)/ or die "$file: no base\n";
	# LLVM up to 17 prints a GUID as bytes, later versions as text:
	# {XXXXXXXX-XXXX-XXXX-XXXX-XXXXXXXXXXXX}.
	if ($text =~ /PDBGUID: (?:\(([0-9A-F ]+)\)|\{([0-9A-F-]+)\})\s+PDBAge: (\d+)\s+PDBFileName: (\S.*)/) {
		@is{qw(age pdb)} = ($3, $4);
		$is{guid} = defined $1 ? join('', (split / /, $1)[3, 2, 1, 0, 5, 4, 7, 6, 8 .. 15]) : $2 =~ tr/-//dr;
	}
	return \%is;
}

# Returns the start of the function that contains an offset, according to the image's unwind table.
my %functions;
sub function_start {
	my ($file, $rva) = @_;
	my ($found) = grep { $_->[0] <= $rva && $rva < $_->[1] } @{ $functions{$file} //= [functions_of($file)] };
	die sprintf("%s: no function at %x\n", $file, $rva) unless $found;
	return $found->[0];
}

# Returns each function's start and end, in order, from RUNTIME_FUNCTION entries of three numbers
# ("PE Format", section .pdata). Other tools take a long time to print that many.
sub functions_of {
	my ($file) = @_;
	my $bytes = slurp($file);
	my $pe = unpack 'V', substr $bytes, 0x3c, 4;
	my ($sections, $optional_size) = unpack 'x6 v x12 v', substr $bytes, $pe, 24;
	my ($rva, $size) = unpack 'V2', substr $bytes, $pe + 24 + 112 + 3 * 8, 8;
	for my $i (0 .. $sections - 1) {
		my ($virtual_size, $at, undef, $offset) = unpack 'x8 V4', substr $bytes, $pe + 24 + $optional_size + 40 * $i, 24;
		next unless $at <= $rva && $rva < $at + $virtual_size;
		my @table = unpack 'V*', substr $bytes, $offset + $rva - $at, $size;
		return sort { $a->[0] <=> $b->[0] } map { [@table[3 * $_, 3 * $_ + 1]] } 0 .. @table / 3 - 1;
	}
	die "$file: no table of functions\n";
}

# ---------------------------------------------------------------- dumps

# Returns the places of a program's addresses, for dump_of(): one module for each that the program
# printed notes about, the program first.
#   files     { MODULE => FILE }: other files than the built ones, for identity
#   path      path of the modules' folder in the dump, with a trailing slash; default: their own folder
#   only      this module and no other
sub place {
	my ($kind, $name, %how) = @_;
	my $notes = notes($kind, $name);
	my $base = $first_base;
	my @modules;
	my @names = sort { ($b eq $name) <=> ($a eq $name) || $a cmp $b } keys %$notes;
	for my $module (grep { $_ eq ($how{only} // $_) } @names) {
		my $file = $how{files}{$module} // program($kind, $module);
		push @modules, {
			name => $module, file => $file, built => program($kind, $module), kind => $kind,
			base => $base, notes => $notes->{$module},
			path => defined $how{path} ? $how{path} . $module : win($file),
		};
		$base += 0x40000000;
	}
	return \@modules;
}

# Writes a dump with a one-frame stack for each note, and records which note each stack belongs to.
# %how: umdh => 1 for a log like UMDH's, without module identities.
sub dump_of {
	my ($file, $modules, %how) = @_;
	my @lines;
	push @lines, '// hsnap: dump format=1 tool=test time=2026-11-20T11:00:25.841Z',
	    '// hsnap: process id=208 start=2026-11-20T11:00:22.809Z bits=64',
	    '// hsnap: stacks source=tracer' unless $how{umdh};
	push @lines, '//', '// Loaded modules:', '//     Base Size Module';
	push @lines, map { sprintf '// %15X %8X %s', $_->{base}, identity($_->{built})->{size}, $_->{path} } @$modules;
	push @lines, '//', '// Process modules enumerated.';
	push @lines, map { module_note($_) } @$modules unless $how{umdh};
	push @lines, '// hsnap: heap addr=650000 kind=wine bits=64' unless $how{umdh};
	push @lines, '*- - - - - - - - - - Start of data for heap @ 650000 - - - - - - - - - -';
	my ($bytes, $count) = (0, 0);
	for my $entry (entries($modules)) {
		push @lines, sprintf('%X bytes + 10 at %X by BackTrace%X', $entry->{bytes}, 0x650000 + 0x1000 * ++$count, $count),
		    sprintf("\t%X", $entry->{addr}), '';
		$bytes += $entry->{bytes};
	}
	push @lines, '*- - - - - - - - - - End of data for heap @ 650000 - - - - - - - - - -';
	push @lines, sprintf('// hsnap: end blocks=%d requested=%d overhead=%d', $count, $bytes, 16 * $count) unless $how{umdh};
	return spew($file, join '', map { "$_\r\n" } @lines);
}

# Returns the dump's entries. Each note has its own block size, which identifies the note's row in a
# report.
sub entries {
	my ($modules) = @_;
	my $size = 0;
	return map { my $module = $_;
		map { { module => $module, marker => $_, addr => $module->{base} + $module->{notes}{$_}, bytes => 16 * ++$size } }
		    sort keys %{ $module->{notes} } } @$modules;
}

sub module_note {
	my ($module) = @_;
	my $is = identity($module->{built});
	my $text = sprintf '// hsnap: module base=%X timestamp=%s checksum=%s', $module->{base}, $is->{timestamp}, $is->{checksum};
	$text .= sprintf ' pdb="%s" guid=%s age=%d', $is->{pdb} =~ s/([\\"])/\\$1/gr, $is->{guid}, $is->{age} if $is->{guid};
	return $text;
}

# ---------------------------------------------------------------- output of our programs

# Returns the names in a dump's text: { ADDR => [{ function, offset, file, line }, ...] }, innermost
# first.
sub names_in {
	my ($text) = @_;
	my %names;
	for ($text =~ m{^// hsnap: name (.*?)\r?$}mg) {
		my %pair;
		while (/(\w+)=(?:"((?:[^"\\]|\\.)*)"|(\S*))/g) {
			$pair{$1} = defined $2 ? plain($2) : $3;
		}
		push @{ $names{ hex delete $pair{addr} } }, { %pair, offset => hex($pair{offset} // '0') };
	}
	return \%names;
}

sub plain { return $_[0] =~ s/\\(?:x([0-9A-Fa-f]{2})|(.))/defined $1 ? chr hex $1 : $2/ger }

# Returns the names that hsym adds to a dump, natively or under Wine, { MARKER => [frames] }, and
# hsym's result.
sub names_by_hsym {
	my ($side, $modules, $dump, $args, %how) = @_;
	my $result = run(tool('hsym', $side, @{ $args // [] }, $dump), %how);
	my $names = names_in($result->{out});
	return ({ map { $_->{marker} => $names->{ $_->{addr} } // [] } entries($modules) }, $result);
}

# Returns the names in hdiff's report, in the form of names_by_hsym().
sub names_by_hdiff {
	my ($side, $modules, $dump, $args, %how) = @_;
	my $result = run(tool('hdiff', $side, @{ $args // [] }, $dump), %how);
	my %rows = map { $_->{new} => $_ } @{ report($result->{out})->{rows} };
	my %names;
	for my $entry (entries($modules)) {
		my $row = $rows{ $entry->{bytes} };
		$names{ $entry->{marker} } = [grep { defined $_->{function} } @{ $row ? $row->{frames} : [] }];
		$names{ $entry->{marker} } = [{ function => 'NO ROW' }] if !$row;
	}
	return (\%names, $result);
}

# ---------------------------------------------------------------- checks

# Unifies the spellings of a name: removes blanks, the words that Microsoft's tools put before
# types, and result types.
sub one_spelling {
	my ($name) = @_;
	$name =~ s/^(?:int|void) (?=app::)//;
	$name =~ s/\b(?:struct|class|enum) //g;
	$name =~ s/`anonymous namespace'/(anonymous namespace)/g;
	$name =~ s/\(void\)/()/g;
	return $name =~ s/\s+//gr;
}

sub without_parameters { return one_spelling($_[0]) =~ s/\([^()]*\)(?:const)?$//r }

# Returns one frame's faults. $loose: the frame may lack its parameters; $bare: it may also lack its
# scope; $plain: it must have no parameters.
sub faults_of_frame {
	my ($frame, $truth, $loose, $bare, $plain) = @_;
	my $short = without_parameters($truth->{function});
	my ($is, $want) = (one_spelling($frame->{function}), $plain ? $short : one_spelling($truth->{function}));
	my @wrong;
	push @wrong, "function $frame->{function}, not $truth->{function}"
	    unless $is eq $want || ($loose && $is eq $short) || ($bare && "::$short" =~ /::\Q$is\E$/);
	push @wrong, "file $frame->{file}"
	    if defined $frame->{file} && ($frame->{file} =~ tr,\\,/,r) !~ m{(?:^|/)\Q$truth->{file}\E$};
	push @wrong, "line $frame->{line}, not $truth->{line}"
	    if defined $frame->{line} && $frame->{line} != $truth->{line};
	return @wrong;
}

# Returns the faults in the names of one note. $level is the required quality:
#   lines      all frames, with files and lines
#   dbghelp    like lines, but inlined functions have short names, and no lines with DWARF
#   functions  at least the function itself
#   exports    like functions for exports of a DLL, nothing otherwise
#   none       nothing
#   any        no requirement
# Names that are present must be right on every level.
sub faults {
	my ($level, $module, $marker, $truth, $frames) = @_;
	my $name = $truth->[-1]{function};
	$level = $module->{name} =~ /\.dll$/ && $name =~ /^dll_(?:run|second)$/ ? 'functions' : 'none' if $level eq 'exports';
	return @$frames ? ("names: @{[map { $_->{function} } @$frames]}") : () if $level eq 'none';
	return $level eq 'any' ? () : 'no name' unless @$frames;
	my $all = $level eq 'lines' || $level eq 'dbghelp';
	return scalar(@$frames) . ' frames of ' . @$truth if $all ? @$frames != @$truth : @$frames != 1 && @$frames != @$truth;
	my $pdb = has_pdb($module->{kind});
	my $plain = $module->{kind} eq 'pdb_msvc'; # Microsoft's names consist of scope and name
	my @wrong;
	for my $i (0 .. $#$frames) {
		my ($frame, $want, $inlined) = ($frames->[$i], $truth->[@$truth - @$frames + $i], $i < $#$frames);
		# If a function is inlined or local to a file, a PDB lacks its parameters.
		my $loose = $pdb && ($inlined || $name =~ /anonymous namespace/);
		push @wrong, faults_of_frame($frame, $want, $loose, $inlined && $level ne 'lines', $plain);
		push @wrong, "$frame->{function}: no line" if $all && !(defined $frame->{file} && defined $frame->{line})
		    && !($level eq 'dbghelp' && !$pdb && @$truth > 1);
	}
	my $offset = $module->{notes}{$marker} - function_start($module->{built}, $module->{notes}{$marker} - 1);
	push @wrong, sprintf 'offset %X, not %X', $frames->[-1]{offset}, $offset if $frames->[-1]{offset} != $offset;
	return @wrong;
}

# Compares the names of all notes, { MARKER => [frames] }, with the truth. $level may be a sub that
# returns the level for (MODULE, MARKER).
my $truths;
sub check_names {
	my ($names, $modules, $level, $what) = @_;
	my @wrong;
	$truths //= frames_of_sources();
	for my $module (@$modules) {
		my $of_file = $truths->{ $module->{name} =~ s/\.\w+$//r };
		for my $marker (sort keys %{ $module->{notes} }) {
			my $truth = $of_file->{$marker} or die "$module->{name}: no frames of $marker in its source\n";
			my $here = ref $level ? $level->($module, $marker) : $level;
			push @wrong, map { "$marker: $_" } faults($here, $module, $marker, $truth, $names->{$marker} // []);
		}
	}
	return ok(!@wrong, $what) || diag(join "\n", @wrong);
}

1;
