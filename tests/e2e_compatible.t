#!/usr/bin/perl
# hdiff will always read files of 0.1.0, and skips future additions to a format; JSON keeps its
# keys. tests/golden/format-1 is never regenerated. This test computes the truth from how the files
# were made.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use B ();
use Compress::Zlib qw(crc32);
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP qw(decode_json);
use List::Util qw(sum0 uniq);
use Test::More;
use Hunt;
use Logs;
use Recordings;

my $dir = fresh_dir();
my $old = "$root/tests/golden/format-1";
my ($hdiff, $hsym) = map { "$root/build/linux/$_" } qw(hdiff hsym);
my $newer = 'was written in a newer format';

# lost.txt and sums.txt are from hsnap -g of one synthetic process, by block and by stack. Including
# overhead, its blocks have 928 bytes. The requested sizes by stack are those of make_image.
my %lost = (
	'leaky+CDB9' => [883, 880, 883, 882, 884, 887, 873, 880, 887, 884, 874, 879, 887],
	'ntdll+CC27 ntdll+D50A' => [876, 876, 880],
	'kernel32+4D4C kernel32+1779 msvcrt+C730' => [877, 885],
	'' => [873, 873, 886, 630, 873, 882, 887, 881, 888, 886, 876, 875],
);
my %all = map { my $sizes = $lost{$_}; ($_ => [sum0(@$sizes), scalar @$sizes, 928 * @$sizes - sum0(@$sizes)]) } keys %lost;
# Two words of the program's data are pointers: one to the last block of one stack, and one to the
# middle of another stack's last block.
my %kept = (%all, map { my $sizes = $lost{$_}; my $n = @$sizes - 1; my $bytes = sum0(@$sizes[0 .. $n - 1]); ($_ => [$bytes, $n, 928 * $n - $bytes]) }
	'leaky+CDB9', 'ntdll+CC27 ntdll+D50A');

# run.hrec: two blocks of 64 bytes existed. At 10 ms three blocks of 100 bytes are allocated. At 20
# ms two of 4096 are allocated and one of them is freed; then comes the mark half. At 30 ms 64 KiB
# of virtual memory are allocated. At 40 ms this memory and one of the first blocks are freed. At 50
# ms another block of 100 is allocated.
my ($leak, $buffer, $view) = ('app+1000 app+2000', 'app+1100 app+2000', 'app+1200');
my %run = (
	'start' => { '' => [128, 2, 0] },
	'10ms' => { '' => [128, 2, 0], $leak => [300, 3, 0] },
	'half' => { '' => [128, 2, 0], $leak => [300, 3, 0], $buffer => [4096, 1, 0] },
	'peak' => { '' => [128, 2, 0], $leak => [300, 3, 0], $buffer => [4096, 1, 0], $view => [65536, 1, 0] },
	'end' => { '' => [64, 1, 0], $leak => [400, 4, 0], $buffer => [4096, 1, 0] },
);
# log.hrec, from an ETW log: 1000 bytes are allocated at 100 ms. At 200 ms 500 are allocated, which
# grow to 700 at 300 ms. The 1000 bytes are freed at 400 ms.
my %log = (
	'250ms' => { $leak => [1000, 1, 0], 'plug+3000' => [500, 1, 0] },
	'320ms' => { $leak => [1000, 1, 0], 'plug+4000' => [700, 1, 0] },
	'end' => { 'plug+4000' => [700, 1, 0] },
);
# sampled.txt: four blocks of 100 bytes were recorded at a rate of one in 1000 bytes.
my $sampled = sprintf '%.0f', 4 / (1 - exp(-100 / 1000));

subtest 'dumps of format 1' => sub {
	is_deeply(live("$old/lost.txt"), \%all, 'lost.txt: all blocks');
	is_deeply(live('--lost', "$old/lost.txt"), \%kept, 'lost.txt: what is lost');
	is_deeply(by_count(live("$old/sums.txt")), by_count(\%all), 'sums.txt: all blocks');
	is_deeply(by_count(live('--lost', "$old/sums.txt")), by_count(\%kept), 'sums.txt: what is lost');
	is(read_json("$old/sums.txt")->{totals}{all}{new}{overhead}, sum0(map { $_->[2] } values %all), 'sums.txt: the overhead of all');
	my ($row) = grep { $_->{new}{blocks} == 2 } @{ read_json("$old/lost.txt")->{rows} };
	is_deeply([map { @$_{qw(offset block)} } $row->{contents}[0]{words}[0]], [8, '2782FC84290'], 'what a block holds');
	is_deeply(live("$old/moment.txt"), $run{peak}, 'moment.txt: of a recording, with virtual memory');
	is_deeply(live("$old/sampled.txt"), { $leak => [100 * $sampled, 0 + $sampled, 0] }, 'sampled.txt: estimates');
	is(read_json("$old/sampled.txt")->{inputs}[0]{sample_bytes}, 1000, 'which is reported');
	is(run([$hsym, '-o', "$dir/named-$_", "$old/$_"])->{status}, 0, "hsym reads $_") for qw(lost.txt sums.txt moment.txt sampled.txt);
};

subtest 'recordings of version 1' => sub {
	is_deeply(live("$old/run.hrec\@$_"), $run{$_}, "run.hrec\@$_") for sort keys %run;
	is_deeply(live("$old/log.hrec\@$_"), $log{$_}, "log.hrec\@$_") for sort keys %log;
	is_deeply(live('--transient', "$old/run.hrec"), { $buffer => [4096, 1, 0], $view => [65536, 1, 0] }, 'what came and went');
	my $list = list("$old/run.hrec");
	is_deeply([@$list{qw(pid event_count length_ms)}, $list->{peak}{bytes}], [4711, 12, 50, 128 + 300 + 4096 + 65536], 'what is in it');
	is_deeply($list->{marks}, [{ label => 'half', time_ms => 20, position => 2 + 3 + 2 + 1 }], 'its mark');
	$list = list("$old/log.hrec");
	is_deeply([map { ($_->{loaded} ? 'loaded' : 'unloaded', $_->{time_ms}) } @{ $list->{loads} }], ['loaded', 150, 'unloaded', 350], 'modules that came and went');
	is(scalar(grep { /^1 frees of blocks/ } @{ $list->{remarks} }), 1, 'and remarks');
};

subtest 'dumps of later versions' => sub {
	my $dump = slurp("$old/lost.txt");
	my $more = $dump =~ s{^(// hsnap: (?:dump|process|reach|heap|module|content|blocks|end)\b[^\r]*)}{$1 novel=1 novel2="a b"}gmr;
	$more =~ s{^(// hsnap: stacks source=)ust}{$1novel}m;
	$more =~ s{( kind=)nt( .* layout=)"[^"]*"}{$1novel$2novel};
	$more =~ s{^(?=// hsnap: reach)}{// hsnap: novel a=1 b="c d"\r\n}m;
	$more =~ s{^(?=// hsnap: end)}{// hsnap: novel a=2\r\n}m;
	cmp_ok(length $more, '>', length($dump) + 300, 'notes, keys and words are added');
	spew("$dir/more.txt", $more);
	is_deeply(live("$dir/more.txt"), \%all, 'they are passed over');
	is_deeply(live('--lost', "$dir/more.txt"), \%kept, 'also by what counts lost blocks');
	is(run([$hsym, '-o', "$dir/named.txt", "$dir/more.txt"])->{status}, 0, 'and by hsym');
	spew("$dir/newer.txt", $dump =~ s/^(.. hsnap: dump format=)1/${1}2/r);
	check_error(run([$hdiff, "$dir/newer.txt"]), 'hdiff', 'format 2', 'newer.txt', $newer);
	check_error(run([$hsym, "$dir/newer.txt"]), 'hsym', 'format 2', 'newer.txt', $newer);
};

subtest 'recordings of later versions' => sub {
	my ($head, @chunks) = chunks(slurp("$old/run.hrec"));
	my $start = 'tool=9.9.9 novel=1 pid=4711 parent=1 bits=64 sample=0 attached=1 addresses=1 start=2025-11-20T10:00:00.000Z'
	    . ' time=2025-11-20T10:00:10.000Z image="C:\\\\app\\\\app.exe" novel2="a b"';
	my @more = (chunk(1, $start), map { (chunk(200, 'of a later version'), $_) } @chunks[1 .. $#chunks]);
	spew("$dir/more.hrec", join '', $head, @more);
	is_deeply(live("$dir/more.hrec\@$_"), $run{$_}, "chunks and keys that are not known are passed over: $_") for sort keys %run;
	spew("$dir/index.hrec", join '', $head, @more, index_of($head, @more));
	is_deeply(live("$dir/index.hrec\@$_"), $run{$_}, "also by the index: $_") for sort keys %run;
	spew("$dir/newer.hrec", $head =~ s/^(.{8})\x01/$1\x02/sr . join '', @chunks);
	check_error(run([$hdiff, "$dir/newer.hrec"]), 'hdiff', 'version 2', 'newer.hrec', $newer);
};

subtest 'JSON' => \&check_json;
done_testing;

# ---------------------------------------------------------------- queries

sub json_of {
	my @args = @_;
	my $result = run([$hdiff, @args], dir => $dir);
	is($result->{status}, 0, "hdiff @args") or diag($result->{err});
	return $result->{out};
}

sub read_json { return decode_json(json_of('-o', 'json', '--no-symbols', @_)) }

sub list { return decode_json(json_of('--list', '-o', 'json', @_)) }

# Drops the overhead, because sums store whole bytes per block.
sub by_count { my ($rows) = @_; return { map { ($_ => [@{ $rows->{$_} }[0, 1]]) } keys %$rows } }

# Returns { "MODULE+OFFSET ..." => [BYTES, BLOCKS, OVERHEAD] }.
sub live {
	return { map { (join ' ', map { "$_->{module}+$_->{offset}" } @{ $_->{frames} }) => [@{ $_->{new} }{qw(bytes blocks overhead)}] } @{ read_json(@_)->{rows} } };
}

# ---------------------------------------------------------------- recordings

# Returns the file's head, and each chunk that precedes the index.
sub chunks {
	my ($bytes) = @_;
	my @chunks = substr $bytes, 0, 16;
	for (my $at = 16; ord(substr $bytes, $at + 4, 1) != 11; $at += length $chunks[-1]) {
		push @chunks, substr $bytes, $at, 32 + unpack 'V', substr $bytes, $at + 8, 4;
	}
	return @chunks;
}

sub chunk {
	my ($type, $payload) = @_;
	my $head = pack 'a4 C C v V V Q< V', "hrc\x1a", $type, 0, 0, length $payload, length $payload, 0, crc32($payload);
	return $head . pack('V', crc32($head)) . $payload;
}

sub varint {
	my ($value) = @_;
	return $value < 128 ? chr $value : chr($value & 127 | 128) . varint($value >> 7);
}

# Returns the index and the trailer for these chunks. All events are in one chunk, which begins at
# position 0 and ends with a check-point.
sub index_of {
	my @chunks = @_;
	my $payload = join '', map {
		my ($type, $ms) = unpack 'x4 C x11 Q<', $_;
		varint($type) . varint(length $_) . varint($ms) . varint($type == 8 ? 12 : 0);
	} @chunks[1 .. $#chunks];
	my $trailer = pack('Q<', sum0(map { length } @chunks)) . 'hrc.';
	return chunk(11, $payload) . $trailer . pack 'V', crc32($trailer);
}

# ---------------------------------------------------------------- JSON

# Checks that everything in hdiff-json(5) occurs at least once.
sub check_json {
	my (%types, %seen, @wrong);
	for (grep { !/^#/ } split /\n/, slurp("$old/json-keys.txt")) {
		my ($name, $keys) = /^(\S+): (.*)$/ or next;
		push @{ $types{$name} }, split ' ', $keys;
	}
	my $golden = "$root/tests/golden";
	my @moments = map { "$dir/$_.txt" } 'half', '30ms', 'end';
	json_of('--extract', '-f', "$dir/$_.txt", "$old/run.hrec\@$_") for 'half', '30ms', 'end';
	my $log = Logs->new;
	$log->process(type => 3, at => 0, image => 'app.exe');
	$log->alloc(at => 100, bytes => 1000, addr => 0x20000, frames => [0x140001000]);
	my $etl = $log->write("$dir/log.etl");
	for my $minute (10, 25) {
		spew("$dir/umdh-$minute.txt", slurp("$golden/old.txt") =~ s/Logtime \S+ \S+ /Logtime 2026-11-20 10:$minute /r);
	}
	my @odd = map { odd_dump($_) } 1 .. 3;
	my $reserved = make_recording(<<'END', "$dir/reserved.hrec");
process 4711 1 64 1763632800000 1763632810000 1000 0 C:\app\app.exe
stack s 140001000
kind some 100 s reserved
time 10
alloc some
mark half
time 20
alloc some
END
	my @texts = map { json_of('-o', 'json', @$_) } ["$old/lost.txt"], ["$old/sampled.txt"], ["$golden/old.txt", "$golden/new.txt"],
	    ["$golden/compared.txt"], ['--sizes', '--age', @moments[0, 2]], ["$old/run.hrec"], ['--transient', "$old/run.hrec"],
	    ['--group', 'function', "$old/run.hrec"], [@moments], ['--group', 'module', @moments], ['--match', 'id', @moments],
	    ["$dir/umdh-10.txt", "$dir/umdh-25.txt", "$dir/umdh-25.txt"], [@odd], [@odd[0, 1]], ['--list', $reserved],
	    ["$reserved\@start", "$reserved\@half"], ["$reserved\@start", "$reserved\@half", "$reserved\@end"], ['--list', "$old/run.hrec"], ['--list', "$old/log.hrec"], ['--list', '-v', $etl];
	for my $text (@texts) {
		my $json = decode_json($text);
		push @wrong, wrong_of($json, $json->{schema}, $json->{schema}, \%types, \%seen);
	}
	my @lines = split /\n/, json_of('-o', 'jsonl', @moments);
	push @wrong, map { wrong_of(decode_json($_), 'line', 'line', \%types, \%seen) } @lines;
	is(join("\n", uniq(@wrong)), '', 'every object has its keys, with their types');
	my @all = map { my $name = $_; map { "$name: " . s/=.*//r } @{ $types{$name} } } sort keys %types;
	# Keys that no report of these files contains.
	my @rare = ('row: heap?', 'series_row: heap?', 'input: local_time?');
	is_deeply([grep { my $key = $_; !$seen{$key} && !grep { $key eq $_ } @rare } @all], [], 'and all keys were seen');
	my @order = map { s/=.*//r } @{ $types{line} };
	is_deeply([(map { /"([a-z]+)":/g } $lines[0] =~ s/:"(?:[^"\\]|\\.)*"/:""/gr)[0 .. $#order]], \@order, 'those of JSON Lines first, in their order');
	my $manual = slurp("$root/man/hdiff-json.5");
	my %known = map { $_ => 1 } map { split /[ ,]+/ } $manual =~ /^(?:\.It |\.Pq )?\.?Cm (.*)/mg;
	is(join("\n", grep { my ($key) = /: (\w+)/; !$known{$key} } @all), '', 'the manual has all keys');
}

# Returns a dump that has an inlined function, an id with several stacks, and a stack with a
# doubtful match.
sub odd_dump {
	my ($n) = @_;
	my $bytes = sprintf '%X', 16 * $n;
	return spew("$dir/odd-$n.txt", <<"END");
// hsnap: dump format=1 tool=0.1.0 time=2025-11-20T10:0$n:00.000Z
// hsnap: process id=4711 start=2025-11-20T10:00:00.000Z bits=64
// Loaded modules:
//        140000000    20000 C:\\app\\app.exe
// Process modules enumerated.
// hsnap: name addr=140001000 function=inner offset=0 file=a.c line=7
// hsnap: name addr=140001000 function=outer offset=18
*- - - - - - - - - - Start of data for heap \@ 650000 - - - - - - - - - -
$bytes bytes + 8 at 650100 by BackTrace5
	140001000

$bytes bytes + 8 at 650200 by BackTrace5
	140002000

$bytes bytes + 8 at 650300 by BackTrace5
$bytes bytes + 8 at 650400 by BackTrace6
	140002000
	Alias
	140003000

*- - - - - - - - - - End of data for heap \@ 650000 - - - - - - - - - -
// hsnap: end blocks=4 requested=@{[64 * $n]} overhead=32
END
}

# Returns all faults in the types of a value.
sub wrong_of {
	my ($value, $type, $place, $types, $seen) = @_;
	my $may_be_null = $type =~ s/\|null$//;
	if (!defined $value) {
		return $may_be_null ? () : "$place: null";
	} elsif (my ($item) = $type =~ /^\[(.*)\]$/) {
		return "$place: no array" if ref $value ne 'ARRAY';
		return map { wrong_of($_, $item, "$place\[]", $types, $seen) } @$value;
	} elsif ($types->{$type}) {
		return "$place: no object" if ref $value ne 'HASH';
		return map {
			my ($key, $optional, $of) = /^(\w+)(\??)=(.*)$/;
			$seen->{"$type: $key$optional"} = 1 if exists $value->{$key};
			exists $value->{$key} ? wrong_of($value->{$key}, $of, "$place.$key", $types, $seen) : $optional ? () : "$place.$key: absent";
		} @{ $types->{$type} };
	}
	my $is = JSON::PP::is_bool($value) ? 'boolean' : ref $value ? lc ref $value : B::svref_2object(\$value)->FLAGS & B::SVf_POK ? 'string' : 'number';
	return $is eq $type ? () : "$place: a $is, no $type";
}
