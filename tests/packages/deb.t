#!/usr/bin/perl
# make deb: Debian's own checks find no fault in the package. The package has the same bytes in any
# folder, and its programs run.
use strict;
use warnings;
use File::Glob ':bsd_glob';    # paths may have blanks
use FindBin qw($Bin);
use lib "$Bin/../lib";
use File::Basename;
use Test::More;
use Hunt;

my @missing = grep { run(['sh', '-c', "command -v $_"])->{status} } qw(dh lintian dpkg-buildpackage);
if (@missing) {
	die "not installed: @missing\n" if ($ENV{HSNAP_PACKAGES} // '') eq 'required';
	plan(skip_all => "not installed: @missing");
}
my $dir = fresh_dir();
my ($version) = slurp("$root/Makefile") =~ /^VERSION := (\S+)/m;
my @made = map { made("$dir/$_") } 'one', 'other';
is(scalar @made, 2, 'it is made twice');
my $deb = $made[0];
is(basename($deb), "hsnap_${version}_amd64.deb", 'its name has the version');
ok(slurp($_->[0]) eq slurp($_->[1]), "the same bytes in another folder: $_->[2]") for map { my $name = $_;
	[map({ (glob "$dir/$_/$name")[0] } 'one', 'other'), $name] } 'hsnap_*.deb', 'hsnap-dbgsym_*.deb';

my $lintian = run(['lintian', '--allow-root', '--display-info', '--pedantic', $deb]);
my $found = join '', grep { !is_code($_) } split /^/, $lintian->{out} . $lintian->{err};
is("$lintian->{status} $found", '0 ', 'lintian has nothing against it');
is(run(['dpkg-deb', '-x', $deb, "$dir/root"])->{status}, 0, 'it unpacks');
for my $program (qw(hdiff hsym hsnap)) {
	like(run(["$dir/root/usr/bin/$program", '--version'])->{out}, qr/^$program \Q$version\E$/m, "$program runs");
	unlike(slurp("$dir/root/usr/bin/$program"), qr/\Q$dir\E|\Q$root\E/, "$program has no place of this machine in it");
}
my @pages = map { "/usr/share/man/man" . substr($_, -1) . '/' . basename($_) . '.gz' } glob "$root/man/*";
is_deeply([grep { !-s "$dir/root$_" } @pages], [], 'manuals are there');
my $depends = run(['dpkg-deb', '-f', $deb, 'Depends'])->{out};
like($depends, qr/\b\Q$_\E\b/, "it depends on $_") for qw(libc6 libpcre2-8-0 libzstd1 zlib1g);
done_testing;

# lintian looks for misspelled words in all bytes of a program. Machine code can look like one; a
# word of ours is in the sources.
sub is_code {
	my ($line) = @_;
	my ($word) = $line =~ /spelling-error-in-binary (\w+) / or return 0;
	return run(['git', '-C', $root, 'grep', '-qwF', $word, '--', '*.c', '*.h'])->{status} == 1;
}

# Uses a package that was made in this folder.
sub made {
	my ($to) = @_;
	my $run = run(["$root/setup/deb", $version, $to], limit => 400);
	is("$run->{status} $run->{err}", '0 ', "setup/deb in $to");
	return $run->{out} =~ /^(.*hsnap_.*\.deb)$/m;
}
