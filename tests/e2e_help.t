#!/usr/bin/perl
# --help lists exactly the options of the man page. hsnap's --help shows each command's usage, which
# the page may shorten. It fits a screen and names the commands; each command's own help has its options.
# --version lists all versions.
use strict;
use warnings;
use File::Glob ':bsd_glob';    # paths may have blanks
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my %programs = (
	'hdiff' => tool('hdiff', 'linux'),
	'hsym' => tool('hsym', 'linux'),
	'hdiff.exe' => tool('hdiff', 'windows'),
	'hsym.exe' => tool('hsym', 'windows'),
	'hsnap' => tool('hsnap', 'linux'),
	'hsnap.exe' => [wine("$root/build/win64/hsnap.exe")],
);
my $makefile = slurp("$root/Makefile");
my ($version) = $makefile =~ /^VERSION\s*:?=\s*(\S+)/m;
like(slurp("$root/CHANGELOG.md"), qr/^## \[\Q$version\E\]/m, 'the change log has a heading for this version');

for my $program (sort keys %programs) {
	my $name = $program =~ s/\.exe$//r;
	my $help = help($program);
	my @helped = helped($help);
	my @documented = documented($name);
	# tested below; no command's help has --version
	@documented = grep { $_ ne '--version' } @documented if $program =~ /^hsnap/;
	if ($program eq 'hsnap') { # on Linux most of hsnap's commands are missing
		my %is_documented = map { $_ => 1 } @documented;
		cmp_ok(scalar @helped, '>', 10, "$program --help lists options");
		@documented = grep { $is_documented{$_} } @helped;
	}
	is_deeply(\@helped, \@documented, "$program --help and $name.1 list the same options");
	my ($longest) = sort { $b <=> $a } map { length } split /\r?\n/, $help;
	cmp_ok($longest, '<=', 100, "$program --help fits on a screen");

	my $said = run([@{ $programs{$program} }, '--version']);
	is($said->{status}, 0, "$program --version: status 0");
	next if $as_windows; # the expected versions are Debian's
	is($said->{out} =~ s/\r//gr, versions($name, $program =~ /\.exe$/), "$program --version: its own, those of its libraries, the formats'");
}

# The usage has every form of hsnap's commands. Each form lists its options in the order of the
# table below it.
my $hsnap_help = help('hsnap.exe');
my @forms = usages($hsnap_help);
cmp_ok(scalar @forms, '>', 12, 'hsnap has commands');
my @in_pages = (commands("$root/man/hsnap.1"), map { synopsis($_) } glob "$root/man/hsnap-*.1");
is(scalar @forms, scalar @in_pages, 'hsnap --help and the pages have as many forms');
for my $form (@forms) {
	is(scalar(grep { is_short_for($_, $form) } @in_pages), 1, "one form of the pages is: $form");
}
for my $command (split /^(?=usage: )/m, $hsnap_help) {
	my ($first, @more) = usages($command);
	my @names = $command =~ /^  (?:-\w+, |    )--([\w-]+)/mg;
	my %short = $command =~ /^  -(\w+), --([\w-]+)/mg;
	my %place = map { $names[$_] => $_ } 0 .. $#names;
	for my $form ($first, @more) {
		my @used = map { $short{$_} // $_ } $form =~ /(?<![\w-])--?(\w[\w-]*)/g;
		is_deeply([grep { !exists $place{$_} } @used], [], "$form: its options are listed");
		is_deeply(\@used, [sort { ($place{$a} // 0) <=> ($place{$b} // 0) } @used], "$form: in this order");
	}
	my %used = map { ($short{$_} // $_) => 1 } map { /(?<![\w-])--?(\w[\w-]*)/g } $first, @more;
	is_deeply([grep { !$used{$_} && !/^(?:help|version)$/ } @names], [], "$first: and no others") if defined $first;
}

subtest 'other ways to ask for help' => sub {
	my $hsnap = $programs{hsnap};
	my $short = run([@$hsnap, '-h'])->{out};
	for my $word ('--help', '-?', '/?', 'help') {
		is(run([@$hsnap, $word])->{out}, $short, "hsnap $word");
	}
	my $none = run($hsnap);
	is($none->{err}, $short, 'hsnap alone: the same, on standard error');
	is($none->{status}, 2, 'with status 2');
	like(run([@$hsnap, '-p', 5, '-h'])->{out}, qr/^usage: hsnap -p PID.*--by-stack/s, 'behind options: that of a snapshot');
	my @commands = $short =~ /^  (?!hsnap )([a-z]+) +\S/mg;
	for my $word ('stop', 'leaks', 'Run') {
		check_error(run([@$hsnap, $word, '-p', 5]), 'hsnap', "hsnap $word: the commands are named", $word, 'no such command', @commands);
	}
	for my $words (['a.txt', 'b.txt'], ['-d', 'a.txt', 'b.txt']) {
		my $result = run([@$hsnap, @$words]);
		is($result->{status}, 2, "hsnap @$words: status 2");
		like($result->{err}, qr/\Ahsnap: .*\bhdiff (?:-d )?a\.txt b\.txt.*\n\z/, 'hdiff is named');
	}
};

# hdiff's list of allocator frames equals the published list.
my ($array) = slurp("$root/diff/query/strip_allocators.c") =~ /allocators\[\] = \{\n(.*?)^\};/ms;
my @has = ($array // '') =~ /^\t"([^"]+)",$/mg;
my $list = join '', slurp("$root/docs/allocators.md") =~ /^    (.*\n)/mg;
cmp_ok(scalar @has, '>', 50, 'hdiff knows allocators');
is_deeply([split /\n/, $list], \@has, 'docs/allocators.md lists them');
my $modules = join '', map { slurp("$root/diff/query/strip.c") =~ /${_}_modules\[\] = \{\n(.*?)^\};/ms } qw(heap allocator);
($list) = slurp("$root/docs/allocators.md") =~ /these modules: (.*?)\.\n/s;
is_deeply([split /,\s/, $list // ''], [$modules =~ /"([^"]+)"/g], 'and modules whose frames without a name are taken');

# The built-in suppressions equal the published list.
my ($table) = slurp("$root/diff/query/suppress.c") =~ /runtime\[\] = \{\n(.*?)^\};/ms;
my @rules = map { s/"$//r } ($table // '') =~ /^\t"(leak:.*),$/mg;
($list) = slurp("$root/docs/ci.md") =~ /^## The list runtime\n(.*)/ms;
$list = join '', ($list // '') =~ /^    (.*\n)/mg;
cmp_ok(scalar @rules, '>', 10, 'hdiff knows suppressions');
is_deeply([split /\n/, $list], \@rules, 'docs/ci.md lists them');
done_testing;

# Returns the expected --version output. The Makefile names the libraries. Their versions come from
# Debian's packages, or from the list of libraries that are built for Windows.
sub versions {
	my ($name, $is_windows) = @_;
	my ($linked) = $makefile =~ ($is_windows ? qr/^win64_${name}_LIBS := (.*)/m : qr/^linux_${name}_LIBS := (.*)/m);
	my $package = sub { run(['dpkg-query', '-W', '-f', '${Version}', $_[0]])->{out} };
	my $source = sub { (slurp("$root/setup/pins") =~ /^\Q$_[0]\E +(\S+)/m)[0] };
	my @known = (
		['pcre2-8', 'PCRE2', $is_windows ? $source->('pcre2') : $package->('libpcre2-8-0')],
		['zstd', 'zstd', $is_windows ? $source->('libzstd') : $package->('libzstd1')],
		['z', 'zlib', $package->($is_windows ? 'libz-mingw-w64-dev' : 'zlib1g')],
		# Zydis' header states this version.
		['zydis', 'Zydis', $is_windows ? $source->('zydis') =~ s/^4\.1\.1$/4.1.0/r : ''],
	);
	my @parts = map { my ($library, $called, $of) = @$_; $linked =~ /-l\Q$library\E(?: |$)/ ? "$called " . ($of =~ /^(?:\d+:)?(?:.*really)?([\d.]+\d)/)[0] : () } @known;
	my @formats = ('dump format 1', $name eq 'hsym' ? () : 'recording format 1');
	return "$name $version\n" . join(', ', @parts) . "\n" . join(', ', @formats) . "\n";
}

# Returns the help of all options. For hsnap, this is the help of each command that hsnap names, of
# which Linux has only a few.
sub help {
	my ($program) = @_;
	my $help = run([@{ $programs{$program} }, '--help']);
	is($help->{status}, 0, "$program --help: status 0");
	is($help->{err}, '', "$program --help: on stdout");
	my $text = $help->{out} =~ s/\r//gr;
	return $text if $program !~ /^hsnap/;
	cmp_ok(scalar(() = $text =~ /\n/g), '<=', 25, "$program --help fits a screen");
	unlike($text, qr/.{81}/, 'of 80 columns');
	my @commands = $text =~ /^  (?!hsnap )([a-z]+) +\S/mg;
	cmp_ok(scalar @commands, '>=', 10, 'it names the commands');
	@commands = qw(snapshot watch schedule) if $program eq 'hsnap';
	return join "\n", map { run([@{ $programs{$program} }, $_, '-h'])->{out} =~ s/\r//gr } @commands;
}

# Parses the lines that opt_help() prints: " -p, --pid PID words".
sub helped {
	my ($text) = @_;
	my %options;
	for (split /\r?\n/, $text) {
		next unless /^\s+(-\S.*?)(?:\s{2,}|$)/;
		$options{$_}++ for $1 =~ /(?:^|\s)(--?[\w-]+)/g;
	}
	return sort keys %options;
}

# Returns the usage's forms, each on one line.
sub usages {
	my ($text) = @_;
	my @forms;
	while ($text =~ /^usage: (.*?)^\n/msg) {
		push @forms, map { s/\s+/ /gr =~ s/ $//r } split /^ +(?=hsnap )/m, $1;
	}
	return @forms;
}

# Returns true if the first form is the second one, with [options] for any optional options.
sub is_short_for {
	my ($short, $form) = @_;
	my $pattern = quotemeta($short) =~ s/\\ \\\[options\\\]/(?: \\[-(?:[^][]|\\[[^]]*\\])*\\])*/r;
	return $form =~ /^$pattern$/;
}

# Returns the forms in the section COMMANDS of the page.
sub commands {
	my ($page) = @_;
	my ($text) = slurp($page) =~ /^\.Sh COMMANDS\n(.*?)^\.Sh /ms;
	return map { s/\s+/ /gr =~ s/ $//r } map { split /^(?=hsnap )/m } $text =~ /^\.Bd -literal\n(.*?)^\.Ed/msg;
}

# Returns a program's manual: its own page, and the pages of some of its commands.
sub pages {
	my ($name) = @_;
	return map { slurp("$root/man/$_") } grep { /^\Q$name\E(?:-\w+)?\.1$/ } files_in("$root/man");
}

# Returns the forms in the synopsis of a command's page.
sub synopsis {
	my ($page) = @_;
	my @forms;
	for my $form (map { split /^\.Nm(?: hsnap)?\n/m } slurp($page) =~ /^\.Sh SYNOPSIS\n(.*?)^\.Sh /ms) {
		my @words;
		for my $line (split /\n/, $form) {
			my $is_optional = $line =~ s/^\.Op /./;
			my $said = $line =~ s/^\.//r =~ s/\b(?:Ar|Cm) //gr =~ s/\bFl (?=\S)/-/gr;
			push @words, $is_optional ? "[$said]" : $said;
		}
		push @forms, join ' ', 'hsnap', @words if @words;
	}
	return @forms;
}

# Parses ".It Fl p , Fl -pid Ar PID" in the sections about options. Returns "-p" and "--pid".
sub documented {
	my ($name) = @_;
	my (%options, $section);
	for (map { split /\n/ } pages($name)) {
		$section = $1 if /^\.Sh (.*)/;
		next unless /^\.It .*\bFl\b/ && ($section // '') =~ /OPTIONS|DESCRIPTION|COMMANDS/;
		$options{"-$1"}++ while /\bFl\s+([\w-]+)/g;
	}
	return sort keys %options;
}
