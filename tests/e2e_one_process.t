#!/usr/bin/perl
# hsnap takes one process and reports what it wrote. It never replaces the minidump that it reads
# with the snapshot.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use IO::Uncompress::Gunzip qw(gunzip);
use POSIX qw(strftime);
use Test::More;
use Hunt;
use Images;

my $dir = fresh_dir();
my $image = "$dir/image.dmp";
my $other = "$dir/other.dmp";
my $hsnap = "$root/build/linux/hsnap";

make_image($_, 'win10-x64', '--blocks', 100) or BAIL_OUT('no image') for $image, $other;
my $bytes = slurp($image);

mkdir "$dir/sub" or die;
my @symbolic = $as_windows ? () : "$dir/symbolic";
symlink $image, $_ or die for @symbolic;
link $image, "$dir/hard" or die;
for my $path ($image, "$dir/sub/../image.dmp", @symbolic, "$dir/hard") {
	my $name = $path =~ s{\Q$dir\E/}{}r;
	refused(["-z", $image, "-f", $path], qr/\Q$path\E: wrong usage \(input and output are the same file\)/, "$name as the output");
	ok(slurp($image) eq $bytes, "$name: the minidump is as it was");
}
ok(-l, 'a link stays one') for @symbolic;
is(run([$hsnap, '-z', $image, '-f', "$dir/new.txt"])->{status}, 0, 'another file is written');
refused(['-z', $image, '-f', $other], qr/is not replaced \(a minidump\).*--overwrite/, 'another minidump as the output');
is(run([$hsnap, '-z', $image, '-f', spew("$dir/there.txt", 'words')])->{status}, 0, 'even one that is there');
is(run([$hsnap, '-z', $image, '-f', '/dev/null'])->{status}, 0, 'and a device') if !$as_windows;

for my $twice ([qw(-p 1 -p 1)], [qw(-pn a -pn b)], ['-z', $image, '-z', $image], ['-z', $image, '-p', '1']) {
	my $what = join ' ', map { $_ eq $image ? 'FILE' : $_ } @$twice;
	refused([@$twice, '-f', "$dir/none.txt"], qr/-p, -pn and -z: wrong usage \(give one of them, once\)/, $what);
	ok(!-e "$dir/none.txt", "$what: without a file");
}
# Placeholders in the file's name: the process comes from the dump's contents, and the time from the
# minidump's own header (MINIDUMP_HEADER.TimeDateStamp, at 20).
mkdir "$dir/named" or die;
is(run([$hsnap, '-z', $image, '-f', "$dir/named/{name}-{pid}-{time}-{{.txt"])->{status}, 0, 'words in a name');
my ($file) = files_in("$dir/named");
my ($pid, $program) = slurp("$dir/named/$file") =~ m{^// hsnap: process id=(\d+) .*image="(?:[^"]*\\)?([^"\\]+)\.exe"}m;
is($file, "$program-$pid-" . strftime('%Y%m%dT%H%M%SZ', gmtime unpack 'x20V', $bytes) . '-{.txt', 'are replaced');
is(run([$hsnap, '-z', $image, '-f', "$dir/a{{b.txt"])->{status}, 0, 'two braces');
ok(-s "$dir/a{b.txt", 'are one');
is(run([$hsnap, '-z', $image, '-f', "$dir/made/deep/{name}.txt"])->{status}, 0, 'folders of a pattern');
is(scalar(files_in("$dir/made/deep")), 1, 'are made');
refused(['-z', $image, '-f', "$dir/none/x.txt"], qr/none\/x\.txt: cannot create .*check that the folder exists/, 'another one is not');
for my $packed ('x.txt.gz', '{pid}.TXT.GZ', 'x.gz') {
	is(run([$hsnap, '-z', $image, '-f', "$dir/packed/{name}/$packed"])->{status}, 0, "$packed is written");
}
for my $path (map { glob "$dir/packed/*/$_" } '*') {
	my $bytes = '';
	gunzip($path => \$bytes) or fail($path);
	like($bytes, qr{\A// hsnap: dump }, 'and packed');
}
says_what_it_wrote();
done_testing;

# hsnap prints one line, which must agree with the image maker's truth. It prints none if the dump
# goes to stdout.
sub says_what_it_wrote {
	my $made = "$dir/made.dmp";
	make_image($made, 'win10-x64', '--ust', '--blocks', 300) or return fail('an image');
	my $truth = slurp("$made.truth");
	my @stacks = $truth =~ /^block \S+ \S+ \d+ \d+ (\S+)$/mg;
	my ($blocks, $bytes) = $truth =~ /^total (\d+) (\d+)/m;
	my $with = int(100 * (grep { $_ ne '-' } @stacks) / @stacks);
	is(scalar @stacks, $blocks, 'every block is known');
	ok($with > 0 && $with < 100, "$with % of them have stacks");
	my ($name, $shown) = map { file_name($_) } "a\e[31m.txt", 'a?[31m.txt';
	for my $form ([], ['--by-stack'], ['--gzip']) {
		my $result = run([$hsnap, '-z', $made, @$form, '-f', "$dir/$name"]);
		my $gz = "@$form" =~ /gzip/ ? '.gz' : '';
		is($result->{wrote}, "hsnap: $dir/$shown$gz: $blocks blocks ($with % with stacks), $bytes bytes\n",
			"@$form: what is in the file");
		ok(-s "$dir/$name$gz", 'which is there');
	}
	for my $out ([], ['-f', '-']) {
		my $result = run([$hsnap, '-z', $made, @$out]);
		is("$result->{status} $result->{wrote}", '0 ', "@$out: nothing is reported about standard output");
		unlike($result->{err}, qr/blocks/, 'in no other words');
	}
	is(run([$hsnap, '-z', $made, '-v', '-f', "$dir/v.txt"])->{wrote}, '', 'nor with -v');
}

sub refused {
	my ($arguments, $words, $what) = @_;
	my $result = run([$hsnap, @$arguments]);
	is($result->{status}, 2, "$what is refused");
	like($result->{err}, qr/\Ahsnap: [^\n]*$words[^\n]*\n\z/, "$what: and why");
}
