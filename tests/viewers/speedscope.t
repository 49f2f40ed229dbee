#!/usr/bin/perl
# hdiff -o speedscope satisfies speedscope's own schema, and its profiles have the contents of the
# synthetic dumps.
use strict;
use warnings;
use File::Glob ':bsd_glob';    # paths may have blanks
use FindBin qw($Bin);
use lib "$Bin/../lib";
use JSON::PP;
use Test::More;
use Calls;
use Hunt;
use Pages;
use Viewers;

my ($schema) = glob need_package('speedscope') . '/dist/release/file-format-schema.json';
need_package('ajv');
my $dir = fresh_dir();
my $json = JSON::PP->new->utf8;
spew("$dir/validate.js", <<'END');
const Ajv = require('ajv').default, fs = require('fs');
const [schema, ...files] = process.argv.slice(2);
const validate = new Ajv({ strict: false }).compile(JSON.parse(fs.readFileSync(schema)));
for (const file of files) if (!validate(JSON.parse(fs.readFileSync(file)))) console.log(file, JSON.stringify(validate.errors));
END

my @dumps = call_dumps($dir, 60, 'Document::parse(Reader *)', 'cache_fill', map { "f$_" } 1 .. 20);
my ($later) = slurp($dumps[1]) =~ m{\A(.*?)^// Loaded modules}ms;
spew("$dir/same.txt", slurp($dumps[0]) =~ s{\A.*?(?=^// Loaded modules)}{$later}msr);
my @files = (made('growth', @dumps), made('one', $dumps[1]), made('hostile', page_dumps($dir)), made('nothing', $dumps[0], "$dir/same.txt"));
my $result = run(node_with("$dir/validate.js", $schema, @files));
is("$result->{status}$result->{err}$result->{out}", '0', 'all are of its schema');
spew("$dir/bad.json", slurp($files[0]) =~ s/"type":"sampled"/"type":"simple"/r);
like(run(node_with("$dir/validate.js", $schema, "$dir/bad.json"))->{out}, qr/bad\.json/, 'which would say so');

my @rows = call_rows();
my $growth = $json->decode(slurp($files[0]));
is_deeply([map { $_->{name} } @{ $growth->{profiles} }], ['Growth', 'Shrink', 'New, of stacks that changed', 'Old, of stacks that changed'], 'four profiles');
check($growth, 0, sub { $_[0]{bytes} > 0 ? $_[0]{bytes} : 0 });
check($growth, 1, sub { $_[0]{bytes} < 0 ? -$_[0]{bytes} : 0 });
check($growth, 2, sub { $_[0]{new}[0] });
check($growth, 3, sub { $_[0]{old}[0] });
my $one = $json->decode(slurp($files[1]));
is(scalar @{ $one->{profiles} }, 1, 'of one dump one');
check($one, 0, sub { $_[0]{new}[0] });
my $hostile = $json->decode(slurp($files[2]));
unlike(join('', map { $_->{name} } @{ $hostile->{shared}{frames} }), qr/[\x00-\x1f\x7f]/, 'no control characters in names');
done_testing;

sub made {
	my ($name, @dumps) = @_;
	check_ok(run(["$root/build/linux/hdiff", '-o', 'speedscope', '-f', "$dir/$name.json", @dumps]), "hdiff -o speedscope, $name");
	return "$dir/$name.json";
}

# Checks each stack, from the outermost frame inwards, with its weight.
sub check {
	my ($file, $index, $weight) = @_;
	my $profile = $file->{profiles}[$index];
	my ($sum, %got, %wanted) = (0);
	for my $i (0 .. $#{ $profile->{samples} }) {
		my @frames = map { $file->{shared}{frames}[$_] } @{ $profile->{samples}[$i] };
		$got{ join '|', map { "$_->{name} $_->{file}:$_->{line}" } @frames } = $profile->{weights}[$i];
		$sum += $profile->{weights}[$i];
	}
	for my $row (grep { $weight->($_) } @rows) {
		my @calls = ('RtlAllocateHeap', 'malloc', @{ $row->{calls} }, @call_start);
		$wanted{ join '|', map { call_module($_) . "!$_ " . call_place($_) } reverse @calls } = $weight->($row);
	}
	is_deeply(\%got, \%wanted, "$profile->{name}: each stack");
	is_deeply([@$profile{qw(type unit startValue endValue)}], ['sampled', 'bytes', 0, $sum], "$profile->{name}: its sum");
	return;
}
