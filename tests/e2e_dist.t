#!/usr/bin/perl
# make dist: the released files are complete, they run, and they are reproducible.
use strict;
use warnings;
use File::Glob ':bsd_glob';    # paths may have blanks
use FindBin qw($Bin);
use lib "$Bin/lib";
use Digest::SHA qw(sha256_hex);
use IO::Uncompress::Unzip;
use JSON::PP;
use Test::More;
use YAML::XS ();
use Hunt;

my $dir = fresh_dir();
my ($version) = slurp("$root/Makefile") =~ /^VERSION := (\S+)/m;
my @sums = map { dist() } 1 .. 2;
is($sums[1], $sums[0], 'the same bytes again');
like($sums[0], qr/^\w{64}  hsnap-\Q$version\E\.tar\.gz\n\w{64}  hsnap-\Q$version\E-windows\.zip\n\z/, 'a tarball and a zip');
for ($sums[0] =~ /^(\w+  .*)$/mg) {
	my ($sum, $name) = split /  /;
	is(Digest::SHA->new(256)->addfile("$root/build/dist/$name")->hexdigest, $sum, "$name is what its sum says");
}

my $listed = run(['tar', '-tzf', "$root/build/dist/hsnap-$version.tar.gz"])->{out};
my $known = run(['git', '-C', $root, 'ls-tree', '-r', '--name-only', 'HEAD'])->{out};
is_deeply([sort grep { !m{/$} } split /\n/, $listed], [sort map { "hsnap-$version/$_" } split /\n/, $known], 'the tarball has what was committed');

my %files = unzipped("$root/build/dist/hsnap-$version-windows.zip");
my @programs = qw(hsnap.exe hsnap-tracer64.dll hsnap32.exe hsnap-tracer32.dll hdiff.exe hsym.exe);
my @prove = ('stepper.exe', map { ("x64/$_.exe", "x86/$_.exe") } qw(leak_steady leak_heaps memory_test));
my @licences = qw(pcre2 uthash zstd zydis zlib mingw-w64 gcc-runtime);
my @pages = map { m{([^/]+)$} } glob "$root/man/*";
is_deeply([sort keys %files], [sort @programs, (map { "licences/$_.txt" } @licences), (map { "doc/$_.html" } @pages), (map { "doc/$_.md" } qw(allocators ci costs over-time proven)),
	(map { "prove/$_" } @prove), 'prove.cmd', 'README.txt', 'LICENSE.txt', 'SHA256SUMS.txt', 'completion/hsnap.ps1', 'include/hsnap-mark.h', 'sbom.spdx.json'],
	'the zip has the programs, manuals, completion, the header for marks, licences, what prove.cmd needs and the list of parts');
is_deeply([grep { $files{"prove/$_"} =~ /\Q$root\E/ } @prove], [], 'no place of this machine is in its samples');
unlike($files{'prove.cmd'}, qr/(?<!\r)\n/, 'prove.cmd has the ends of lines that cmd.exe wants');
is_deeply([grep { length $files{"licences/$_.txt"} < 500 } @licences], [], 'licences are whole');
is_deeply([grep { $files{"doc/$_.html"} !~ m{<html.*</html>}s } @pages], [], 'manuals are HTML');
is_deeply({ reverse map { split /  / } split /\n/, $files{'SHA256SUMS.txt'} }, { map { $_ => sha256_hex($files{$_}) } @programs },
	'the hash of each program, for allow lists');
for my $program (@programs) {
	my $at = unpack 'V', substr $files{$program}, 0x3c, 4;
	is(unpack('V', substr $files{$program}, $at + 8, 4), 0, "$program has no time in it");
	unlike($files{$program}, qr/\Q$root\E/, "$program has no place of this machine in it");
	is(version_in($files{$program}), "$version.0 $version", "$program has its version as a resource");
	spew("$dir/$program", $files{$program});
}
for my $program (qw(hsnap hdiff hsym)) {
	like(run([wine("$dir/$program.exe", '--version')])->{out}, qr/^$program \Q$version\E/, "$program.exe runs");
}
my $traced = run([wine("$dir/hsnap.exe", 'run', '--at-exit', win("$dir/out.txt"), '--', win("$root/build/win64/targets/odd.exe"))]);
ok(-s "$dir/out.txt", 'and finds its tracer') or diag($traced->{err});

my $parts = decode_json($files{'sbom.spdx.json'});
is($parts->{spdxVersion}, 'SPDX-2.3', 'the list of parts is SPDX');
is_deeply([sort map { $_->{name} } @{ $parts->{packages} }], [sort 'hsnap', @licences], 'with each part');
is_deeply([grep { !length $_->{versionInfo} } @{ $parts->{packages} }], [], 'and its version');
is(scalar @{ $parts->{relationships} }, 1 + @licences, 'and what is in what');
check_manifests();
done_testing;

sub dist {
	my $run = run(["$root/setup/dist", $version, 'https://example.invalid/r']);
	is($run->{status}, 0, 'setup/dist') or diag($run->{err});
	return slurp("$root/build/dist/SHA256SUMS");
}

# Checks the manifests of winget and scoop: the zip's name and checksum, and the programs in the
# zip.
sub check_manifests {
	my $zip = "hsnap-$version-windows.zip";
	my ($sum) = $sums[0] =~ /^(\w+)  \Q$zip\E$/m;
	my $url = "https://example.invalid/r/$version/$zip";
	my @names = qw(hsnap.hsnap.yaml hsnap.hsnap.installer.yaml hsnap.hsnap.locale.en-US.yaml);
	is_deeply([files_in("$root/build/dist/winget")], [sort @names], 'winget has three manifests');
	my @manifests = map { YAML::XS::Load(slurp("$root/build/dist/winget/$_")) } @names;
	is_deeply([map { [@$_{qw(PackageIdentifier PackageVersion ManifestType ManifestVersion)}] } @manifests],
		[map { ['hsnap.hsnap', $version, $_, '1.6.0'] } qw(version installer defaultLocale)], 'of one version');
	my ($head, $installer, $locale) = @manifests;
	is($head->{DefaultLocale}, $locale->{PackageLocale}, 'in the same language');
	is_deeply([grep { !length $locale->{$_} } qw(Publisher PackageName License ShortDescription)], [], 'with all that a package must contain');
	is_deeply([@$installer{qw(InstallerType NestedInstallerType Installers)}],
		['zip', 'portable', [{ Architecture => 'x64', InstallerUrl => $url, InstallerSha256 => uc $sum }]], 'winget gets the zip');
	my @commands = grep { /\.exe$/ } @programs;
	is_deeply({ map { $_->{RelativeFilePath} => $_->{PortableCommandAlias} } @{ $installer->{NestedInstallerFiles} } },
		{ map { ("hsnap-$version-windows\\$_" => s/\.exe$//r) } @commands }, 'winget finds every program in it');

	my $scoop = decode_json(slurp("$root/build/dist/scoop/hsnap.json"));
	is_deeply($scoop->{architecture}, { '64bit' => { url => $url, hash => $sum, extract_dir => "hsnap-$version-windows" } }, 'scoop gets the zip');
	is_deeply([sort @{ $scoop->{bin} }], [sort @commands], 'and finds every program in it');
	is_deeply([$scoop->{version}, grep { !length $scoop->{$_} } qw(description homepage license)], [$version], 'and what it must contain');
}

# Returns the file version in a VS_FIXEDFILEINFO, and the string FileVersion that follows.
sub version_in {
	my ($bytes) = @_;
	my ($number, $strings) = $bytes =~ /\xbd\x04\xef\xfe.{4}(.{8})(.*)/s or return 'none';
	my ($text) = $strings =~ s/\0//gr =~ /FileVersion([\d.]+)/;
	return join('.', (unpack 'v4', $number)[1, 0, 3, 2]) . ' ' . ($text // 'none');
}

# Returns { NAME => BYTES } of all files below the zip's only folder.
sub unzipped {
	my ($path) = @_;
	my $zip = IO::Uncompress::Unzip->new($path) or die "$path: $IO::Uncompress::Unzip::UnzipError\n";
	my %files;
	for (my $more = 1; $more > 0; $more = $zip->nextStream) {
		my ($name, $bytes) = ($zip->getHeaderInfo->{Name}, '');
		1 while $zip->read($bytes, 1 << 20, length $bytes) > 0;
		$files{ $name =~ s{^hsnap-\Q$version\E-windows/}{}r } = $bytes;
	}
	return %files;
}
