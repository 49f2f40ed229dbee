#!/usr/bin/perl
# Rules of HACKING.md that a machine can check: includes between folders, names, and forbidden
# content in files.
use strict;
use warnings;
use File::Basename qw(basename dirname);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Comments;
use Hunt;

my @files = tracked();
my @c = grep { /\.[ch]$/ } @files;
my %text = map { $_ => slurp($_) } @files;
cmp_ok(scalar @c, '>', 20, 'there are sources to look at');

# Top folders, and the top folders that their files may include.
my %downhill = (
	'core' => ['core'],
	'snapshot' => ['core', 'snapshot'],
	'diff' => ['core', 'diff'],
	'symbolize' => ['core', 'symbolize'],
	'samples' => ['samples'],
	'tests' => [qw(core snapshot diff symbolize samples tests)],
);
my %also = ('diff' => { 'symbolize/symbolize.h' => 1 });

none('includes go downhill', grep_includes(sub {
	my ($file, $header, $ours) = @_;
	return unless $ours;
	my ($room, $from) = map { m,^([^/]+)/, ? $1 : '' } $file, $header;
	return if grep { $_ eq $from } @{ $downhill{$room} // [] };
	return !$also{$room}{$header};
}));
none('no two folders include each other, at any depth', cycles());
none('a header has two users besides its own .c, or is the interface of one of 150 lines', lonely_headers());
none('no two files of a folder call each other, nor do files of several folders in a circle', circles());
none('files of more than 600 lines are listed with a reason', long_files());
none('a tag is defined once', tags_twice());
none('an external function is named after its file, its folder or its struct', strangers());
none('HACKING.md leads to what is there', astray());
none('each promise of SECURITY.md names its tests, which are there', unkept());
none('every include of ours is there', grep_includes(sub { $_[2] && !exists $text{ $_[1] } }));
none('windows.h is for whole files of Windows', grep_includes(sub {
	my ($file, $header) = @_;
	return $header =~ /^(?:windows|winternl|psapi|dbghelp|tlhelp32|shellapi|io)\.h$/i
	    && $file !~ m{_windows\.[ch]$|^snapshot/tracer/|^samples/|^tests/win/|^tests/targets/|^tests/plugs/|^tests/bench/(?:pairs|mixed)\.c$};
}));
my @pcre2 = grep_includes(sub { $_[1] eq 'pcre2.h' });
none('pcre2.h is in one file at most', @pcre2 > 1 ? @pcre2 : ());
none('uthash.h is behind one door', grep_includes(sub { $_[1] eq 'uthash.h' && $_[0] ne 'core/base/hash.c' }));
none('Zydis is for the tracer', grep_includes(sub { $_[1] =~ m,^Zy, && $_[0] !~ m,^snapshot/, }));
none('no #ifdef for the system in the middle of a thought',
	grep { !m{^core/base/err\.h$|^snapshot/hsnap-mark\.h$|^tests/} && $text{$_} =~ /^#\s*(?:el)?if.*\b(?:_WIN32|__linux__|__MINGW32__|WIN32)\b/m } @c);

my %named;
push @{ $named{ lc basename($_) } }, $_ for grep { !m{^\.ci/|^tests/fuzz/corpus/} } @files;
none('file names are unique', map { "@$_" } grep { @$_ > 1 } values %named);
none('what waits for a target does so by a clock that nobody sets',
	grep { m{^snapshot/(?:control|live|stacks)/} && $text{$_} =~ /\bos_time_ms\(/ } @c);
none('no tag is hidden in a typedef', grep { !m{^snapshot/hsnap-mark\.h$} && $text{$_} =~ /^typedef\s+(?:struct|union|enum)\b/m } @c);
none('comments are /* */', grep { $text{$_} =~ m{(?:^|[;{}])[ \t]*//}m } @c);
none('lines end in a newline alone, without blanks before it',
	grep { $text{$_} =~ /[ \t\r]$/m || $text{$_} =~ /[^\n]\z/ } grep { !binary($_) } @files);

english();

# This pattern is written so that this file itself does not break the rule.
my $path = qr{(?<![\w.\$\}\)\]~-])/(?:work|tmp|root|home)(?=/|\b)};
none('no path of one machine', find($path, sub { $_[0] ne 'tests/laws.t' }));
my @hosts = package_hosts();
note(scalar(@hosts), " package hosts");
my $hosts = join '|', map { quotemeta } @hosts;
none('no host of packages', $hosts ? find(qr/(?:$hosts)/i) : ());
none('tests and scripts can be run', map { -x $_ ? () : $_ }
	grep { $text{$_} =~ /^#!/ && !/\.pm$/ } @files);
done_testing;

sub none {
	my ($what, @found) = @_;
	splice @found, 20 if @found > 20;
	ok(!@found, $what) or diag(join "\n", @found);
}

# Rules of HACKING.md, "English". Each limit is the number of remaining violations, and may only
# fall.
sub english {
	my %limit = (opening => 0, begin => 0, rule2 => 1, rule4 => 0, rule5 => 5, verbs => 6, articles => 0);
	my %words = (
		begin => qr/^(?:What|Whether|That|Of|Those|Who|Where|Nor|The same)\b/,
		rule2 => qr/\b(?:tells?|told|says?|said|asked for|meant)\b/,
		rule4 => qr/\b(?:whoever|nobody|somebody|the one who)\b/i,
		rule5 => qr/\b(?:so many|so much|makes? no sense|hangs? on|(?:is|are) none|behind|from then on|(?:is|are) gone)\b/i,
	);
	my %found = map { $_ => [] } keys %limit;
	for my $file (grep { m{^(?:core|snapshot|symbolize|diff|tests|setup)/} && /\.(?:[cht]|pm|sh)$|^setup/ && !binary($_) } @files) {
		next if $file eq 'tests/laws.t';
		for (comments_of($text{$file}, scalar $file =~ /\.[ch]$/)) {
			my ($line, $comment) = @$_;
			$comment =~ $words{$_} and push @{ $found{$_} }, "$file:$line: $comment" for keys %words;
		}
	}
	for my $file (product()) {
		push @{ $found{opening} }, $file if $file =~ /\.c$/ && $text{$file} !~ m{\A\s*/\*};
		push @{ $found{verbs} }, "$file: $1" while $text{$file} =~ /^(?!return\b|else\b)\w[\w ]*[ *]((?:\w+_)?(?:take|takes|give|gives|put|puts|say|says|tell|tells|keep|keeps|settle|settles|deal|deals)(?:_\w+)?)\((?=[^;{]*\)\s*\{)/mg;
	}
	for my $file (grep { m{^tests/.*\.c$} } @c) {
		push @{ $found{articles} }, "$file: $1" while $text{$file} =~ /^TEST\(((?:\w+_)?(?:a|an|the)_\w+)/mg;
	}
	my %rule = (opening => '.c files of the product without an opening comment', begin => 'comments that begin as rule 1 forbids', rule2 => 'comments with words of rule 2', rule4 => 'of rule 4', rule5 => 'of rule 5',
		verbs => 'functions with verbs that rule 8 does not list', articles => 'tests whose names have articles');
	for (sort keys %limit) {
		my $count = @{ $found{$_} };
		cmp_ok($count, '<=', $limit{$_}, $rule{$_}) or diag(join "\n", @{ $found{$_} }[0 .. ($count > 10 ? 9 : $count - 1)]);
		diag("$rule{$_}: lower the limit to $count") if $count < $limit{$_};
	}
	return;
}

# Returns the files that git tracks or would track. Without git, returns all files outside build.
sub tracked {
	my @known = split /\0/, `git ls-files -z --cached --others --exclude-standard 2>/dev/null`;
	@known = map { chomp; s,^\./,,r } `find . -path ./build -prune -o -path ./.git -prune -o -type f -print`
	    unless @known;
	return sort grep { -f $_ && !-l $_ } @known;
}

sub binary {
	my ($file) = @_;
	return $text{$file} =~ /\0/ || $file =~ m{^tests/(?:data|golden|fuzz/corpus)/};
}

# Returns "FILE: HEADER" of each include for which $wanted->(FILE, HEADER, IN_QUOTES) is true.
sub grep_includes {
	my ($wanted) = @_;
	my @found;
	for my $file (@c) {
		while ($text{$file} =~ /^\s*#\s*include\s*(["<])([^">]+)/mg) {
			push @found, "$file: $2" if $wanted->($file, $2, $1 eq '"');
		}
	}
	return @found;
}

sub product { return grep { m{^(?:core|snapshot|diff|symbolize)/} } @c }

# Returns the common name of a file's variants for systems or processors.
sub stem { return basename($_[0]) =~ s/\.[ch]$//r =~ s/_(?:x64|x86)(?=_windows$|$)//r =~ s/_(?:posix|windows)$//r }

# Returns "A -> B -> A" for folders that include each other.
sub cycles {
	my (%from, %state, @found);
	for (grep_includes(sub { $_[2] && dirname($_[0]) ne dirname($_[1]) })) {
		my ($file, $header) = split /: /;
		$from{ dirname($file) }{ dirname($header) } = 1 unless $file =~ m{^tests/};
	}
	my $visit;
	$visit = sub {
		my ($folder, @way) = @_;
		if (($state{$folder} // '') eq 'open') {
			push @found, join ' -> ', @way, $folder;
		} elsif (!$state{$folder}) {
			$state{$folder} = 'open';
			$visit->($_, @way, $folder) for sort keys %{ $from{$folder} };
			$state{$folder} = 'done';
		}
	};
	$visit->($_) for sort keys %from;
	return @found;
}

# Pairs of files that still call each other. The list may only become shorter.
sub known_circles {
	return (
		# memory_out() ends the program by functions of the system, and these allocate.
		'core/base/memory.c core/base/os_posix.c',
		'core/base/memory.c core/base/os_windows.c',
	);
}

# Returns "A -> B: FUNCTIONS; B -> A: FUNCTIONS" for two files of one folder that call functions of
# each other, and "A, B, ..." for files of several folders that call each other in a circle. Longer
# circles within a folder are allowed: a walker may call itself through others. A call is a name
# before a parenthesis, outside comments and strings, that another file defines as an external
# function. The files of Linux and of Windows are looked at apart, because both define the same
# functions. The circles are found as strongly connected components (Tarjan).
sub circles {
	my (%code, %own, %found);
	for my $file (grep { /\.c$/ } product()) {
		$code{$file} = $text{$file} =~ s{/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'}{ }gsr;
		while ($code{$file} =~ /^(?!return\b|else\b)(\w[\w ]*[ *])(?:__attribute__\S+ )?(\w+)\((?=[^;{]*\)\s*\{)/mg) {
			my ($kind, $name) = ($1, $2);
			$own{$file}{$name} = $kind =~ /\bstatic\b/ ? 'static' : 'external';
		}
	}
	my %known = map { $_ => 1 } known_circles();
	for my $other (qw(_windows _posix)) {
		my @here = grep { !/$other(?:\.c$)/ } sort keys %code;
		my %defined;
		for my $file (@here) {
			for (keys %{ $own{$file} }) {
				push @{ $defined{$_} }, $file if $own{$file}{$_} eq 'external' && !/^mem(?:cpy|set)$/;
			}
		}
		my %calls;
		for my $file (@here) {
			while ($code{$file} =~ /(?<![\w.>])(\w+)\(/g) {
				next if $own{$file}{$1} || !$defined{$1};
				$calls{$file}{$_}{$1} = 1 for @{ $defined{$1} };
			}
		}
		for my $file (@here) {
			for (grep { $file lt $_ && $calls{$_}{$file} && dirname($file) eq dirname($_) } keys %{ $calls{$file} }) {
				next if $known{"$file $_"} && ++$known{"$file $_"};
				$found{"$file -> $_: @{[sort keys %{ $calls{$file}{$_} }]}; back: @{[sort keys %{ $calls{$_}{$file} }]}"} = 1;
			}
		}
		$found{ join ', ', @$_ } = 1 for grep { my %folders = map { dirname($_) => 1 } @$_; keys %folders > 1 } components(\%calls, @here);
	}
	return sort(keys %found), map { "known_circles() lists a circle that no longer exists: $_" } grep { $known{$_} == 1 } sort keys %known;
}

# Returns the strongly connected components of a graph (a hash of hashes) as array references.
sub components {
	my ($to, @nodes) = @_;
	my (%index, %low, %open, @stack, @found);
	my $visit;
	$visit = sub {
		my ($node) = @_;
		$index{$node} = $low{$node} = keys %index;
		push @stack, $node;
		$open{$node} = 1;
		for (sort keys %{ $to->{$node} // {} }) {
			my $next = $_;
			$visit->($next) unless defined $index{$next};
			$low{$node} = $low{$next} if $open{$next} && $low{$next} < $low{$node};
		}
		return if $low{$node} != $index{$node};
		my @together;
		do {
			push @together, pop @stack;
			delete $open{ $together[-1] };
		} until $together[-1] eq $node;
		push @found, [sort @together];
	};
	defined $index{$_} or $visit->($_) for @nodes;
	return @found;
}

# Returns files of more than 600 lines that are not listed here, and listed files that are not that
# long any more.
sub long_files {
	my %reason = (
		'core/dump/pasted.c' => 'one repair, with the signs that it is needed',
		'core/etw/etw_record.c' => 'one replay, whose events all change the same state',
		'diff/match/match.c' => 'one pass from classes to rows',
		'diff/printed/printed.c' => 'one parser, whose lines depend on the lines before them',
		'symbolize/backend/llvm.c' => 'one backend, with its processes and their protocol',
		'symbolize/files/find_files.c' => 'one search, with the reasons for what it does not find',
		'symbolize/files/pdb.c' => 'one format',
		'tests/targets/virtual_cases.c' => 'one program that allocates in every way',
		'tests/unit/test_capture.c' => 'tests of one module, in one simulated process',
		'tests/unit/test_doctor.c' => 'tests of one comparison, with one truth',
		'tests/unit/test_heap_wine.c' => 'tests of one walker',
		'tests/unit/test_model_build.c' => 'tests of one function, with one fake tracer',
		'tests/unit/test_record.c' => 'tests of one format: written and read back',
		'tests/unit/test_record_hostile.c' => 'tests of one reader with damaged files',
		'tests/unit/test_record_replay.c' => 'tests of one replay, against a model',
		'tests/unit/test_series_files.c' => 'tests of one module',
		'tests/unit/test_series_loop.c' => 'tests of one loop, in one simulated world',
		'tests/unit/test_strip.c' => 'tests of one filter',
		'tests/unit/test_tables.c' => 'tests of one backend',
		'tests/unit/test_tracer_copy.c' => 'tests of one module',
		'tests/unit/test_tracer_ranges.c' => 'tests of one table, against a model',
		'tests/unit/test_tracer_rings.c' => 'tests of one protocol',
		'tests/unit/test_tracer_stacks.c' => 'tests of one table',
		'tests/unit/test_tracer_tables.c' => 'tests of one table',
		'tests/unit/test_unwind_fast.c' => 'tests of one cache and its walks',
		'tests/unit/test_ust.c' => 'tests of one format',
	);
	my %long = map { $_ => 1 } grep { ($text{$_} =~ tr/\n//) > 600 } @c;
	return map({ "$_: " . ($text{$_} =~ tr/\n//) . ' lines' } grep { !$reason{$_} } sort keys %long),
	    map { "$_ is listed and has no more than 600 lines" } grep { !$long{$_} } sort keys %reason;
}

sub lonely_headers {
	my %users;
	for (grep_includes(sub { $_[2] })) {
		my ($file, $header) = split /: /;
		$users{$header}{$file} = 1 unless $file =~ m{^tests/} || stem($file) eq stem($header);
	}
	my %lines = map { $_ => ($text{$_} =~ tr/\n//) } product();
	my $is_door = sub { ($lines{ $_[0] =~ s/\.h$/.c/r } // 0) >= 150 && keys %{ $users{ $_[0] } } };
	return map { my $n = keys %{ $users{$_} }; $n < 2 && !$is_door->($_) ? "$_: $n" : () } grep { /\.h$/ && $_ ne 'snapshot/hsnap-mark.h' } product();
}

sub tags_twice {
	my %where;
	for my $file (product()) {
		$where{$1}{ stem($file) } = $file while $text{$file} =~ /^(?:static\s+)?(?:const\s+)?(?:struct|union|enum)\s+(\w+)\s*\{/mg;
	}
	return map { keys %{ $where{$_} } > 1 ? "$_: @{[sort values %{ $where{$_} }]}" : () } sort keys %where;
}

# Returns external functions whose names lack a word for their place. Two functions of one file that
# begin alike are named after their subject: date_parse, date_text.
sub strangers {
	my (%defined, %header, @found);
	for my $file (grep { /\.h$/ } product()) {
		my $code = $text{$file} =~ s{/\*.*?\*/}{}gsr;
		$header{$1} //= $file while $code =~ /\b(\w+)\(/g;
	}
	for my $file (grep { /\.c$/ } product()) {
		while ($text{$file} =~ /^(?!static\b|typedef\b|extern\b|return\b|else\b)\w[\w ]*[ *](\w+)\((?=[^;{]*\)\s*\{)/mg) {
			push @{ $defined{$file} }, $1;
		}
	}
	for my $file (sort keys %defined) {
		my %alike;
		$alike{ (split /_/)[0] }++ for @{ $defined{$file} };
		for my $name (@{ $defined{$file} }) {
			next if $name =~ /^(?:main|wmain|DllMain|mem(?:cpy|set)|x(?:[mc]|re)alloc|xstrdup)$/;
			my $header = $header{$name} // $file;
			my @tags = $text{$header} =~ /^(?:struct|union|enum)\s+(\w+)\b/mg;
			my %known = map { $_ => 1, s/s$//r => 1, "${_}s" => 1 } map { split m{[/_]} } dirname($file), dirname($header), @tags,
			    map { basename($_) =~ s/\.[ch]$//r } $file, $header;
			my @words = split /_/, $name;
			push @found, "$file: $name" unless @words > 1 && ($alike{ $words[0] } > 1 || grep { $known{$_} } @words);
		}
	}
	return @found;
}

# Returns the functions and tables that "Where is" in HACKING.md lists for a file that does not have
# them.
sub astray {
	my @found;
	while ($text{'HACKING.md'} =~ m{`([a-z]+/[\w/*.]+\.[ch])(?:: (?:struct )?(\w+))?(?:\[\])?`}g) {
		my ($path, $name) = ($1, $2);
		my $pattern = quotemeta($path) =~ s/\\\*/\\w+/gr;
		my @there = grep { /^$pattern$/ } @files;
		next if $path =~ /NAME/;
		push @found, "$path: " . ($name // 'no such file') unless grep { !defined $name || $text{$_} =~ /\b$name\b/ } @there;
	}
	return @found;
}

# Returns rows of SECURITY.md's table whose tests do not exist.
sub unkept {
	my @found;
	for my $row (grep { !/^\|[-|]+$|^\| promise|^\| \*\*/ } $text{'SECURITY.md'} =~ /^(\|.*)$/mg) {
		my ($tests) = $row =~ /\| ([^|]*) \|$/;
		my @names = ($tests // '') =~ /`([^`]+)`/g;
		push @found, $row unless @names;
		push @found, map { "SECURITY.md: tests/$_" } grep { !exists $text{"tests/$_"} } @names;
	}
	return @found;
}

sub find {
	my ($pattern, $where) = @_;
	my @found;
	for my $file (grep { !$where || $where->($_) } @files) {
		my $line = 0;
		for (split /\n/, $text{$file}) {
			$line++;
			push @found, "$file:$line: $_" if /$pattern/;
		}
	}
	return @found;
}

# Returns the hosts of this machine's package sources, from its own settings.
sub package_hosts {
	my %hosts;
	for my $file (glob '/etc/apt/sources.list /etc/apt/sources.list.d/* /etc/apt/apt.conf.d/* /etc/apt/mirrors/*') {
		next unless -f $file;
		$hosts{ lc $_ }++ for slurp($file) =~ s{^\s*(?:#|//).*}{}gmr =~ m{\w://(?:[^/\s@]*@)?([\w.-]+\.[\w-]+)}g;
	}
	return sort keys %hosts;
}
