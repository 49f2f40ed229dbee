#!/usr/bin/perl
# The laws of the house that a machine can check: which room may include which,
# names, sizes, and what must not stand in any file.
use strict;
use warnings;
use File::Basename qw(basename dirname);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my @files = tracked();
my @c = grep { /\.[ch]$/ } @files;
my %text = map { $_ => slurp($_) } @files;
cmp_ok(scalar @c, '>', 20, 'there are sources to look at');

# Which rooms (folders) the files of a room may include from.
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
none('every include of ours is there', grep_includes(sub { $_[2] && !exists $text{ $_[1] } }));
none('windows.h is for whole files of Windows', grep_includes(sub {
	my ($file, $header) = @_;
	return $header =~ /^(?:windows|winternl|psapi|dbghelp|tlhelp32|shellapi|io)\.h$/i
	    && $file !~ m{_windows\.[ch]$|^snapshot/tracer/|^samples/|^tests/win/|^tests/targets/|^tests/plugs/|^tests/bench/(?:pairs|mixed)\.c$};
}));
my @pcre2 = grep_includes(sub { $_[1] eq 'pcre2.h' });
none('pcre2.h is in one file at most', @pcre2 > 1 ? @pcre2 : ());
none('uthash.h is behind core/base/hash.c', grep_includes(sub { $_[1] =~ /^ut\w+\.h$/ && $_[0] ne 'core/base/hash.c' }));
none('Zydis is for the tracer', grep_includes(sub { $_[1] =~ m,^Zy, && $_[0] !~ m,^snapshot/, }));
none('no #ifdef for the system in the middle of a thought',
	grep { !m{^core/err\.h$|^tests/} && $text{$_} =~ /^#\s*(?:el)?if.*\b(?:_WIN32|__linux__|__MINGW32__|WIN32)\b/m } @c);

my %named;
push @{ $named{ lc basename($_) } }, $_ for grep { !m{^\.ci/} } @files;
none('file names are unique', map { "@$_" } grep { @$_ > 1 } values %named);
none('no tag is hidden in a typedef', grep { $text{$_} =~ /^typedef\s+(?:struct|union|enum)\b/m } @c);
none('comments are /* */', grep { $text{$_} =~ m{(?:^|[;{}])[ \t]*//}m } @c);
none('lines end in a newline alone, without blanks before it',
	grep { $text{$_} =~ /[ \t\r]$/m || $text{$_} =~ /[^\n]\z/ } grep { !binary($_) } @files);

# Written so that this file does not break them itself.
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

# What git knows, or would know; without git everything outside build.
sub tracked {
	my @known = split /\0/, `git ls-files -z --cached --others --exclude-standard 2>/dev/null`;
	@known = map { chomp; s,^\./,,r } `find . -path ./build -prune -o -path ./.git -prune -o -type f -print`
	    unless @known;
	return sort grep { -f $_ && !-l $_ } @known;
}

sub binary {
	my ($file) = @_;
	return $text{$file} =~ /\0/ || $file =~ m{^tests/(?:data|golden)/};
}

# "FILE: HEADER" of each include that $wanted->(FILE, HEADER, IN_QUOTES) is true for.
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

# The hosts that this machine takes its packages from, by its own settings.
sub package_hosts {
	my %hosts;
	for my $file (glob '/etc/apt/sources.list /etc/apt/sources.list.d/* /etc/apt/apt.conf.d/* /etc/apt/mirrors/*') {
		next unless -f $file;
		$hosts{ lc $_ }++ for slurp($file) =~ s{^\s*(?:#|//).*}{}gmr =~ m{\w://(?:[^/\s@]*@)?([\w.-]+\.[\w-]+)}g;
	}
	return sort keys %hosts;
}
