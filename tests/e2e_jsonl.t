#!/usr/bin/perl
# hdiff -o jsonl has a line for each stack in each dump. Each line is valid JSON with the same keys
# and types, whether the input is one dump, two dumps, or the series of several processes. A stack
# has the same hash on every machine and in every build. This test makes the dumps, so it knows each
# line's content.
use strict;
use warnings;
no warnings 'portable';    # numbers of 64 bits
use utf8;
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP;
use Sys::Hostname;
use Test::More;
use Hunt;
use Series;

binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output todo_output);

my @strings = qw(host image build path stack function frames start time);
my @numbers = qw(pid bytes blocks overhead private_bytes threads handles);
my @keys = qw(host image build pid start time path stack function frames bytes blocks overhead private_bytes threads handles);
my ($start, $begin, $half_hour) = (1763632800000, 1763633000123, 1800000);
my $unknown = "\x{fffd}";
# Extreme names, and how frames show them.
my %odd = (
	'leak' => 'leak',
	'Map<int, char>::add' => 'Map<int, char>::add',
	'quo"te\\' => 'quo"te\\',
	"new\nline" => 'new?line',
	'semi;colon' => 'semi:colon',
	"J\xfcrgen" => "J${unknown}rgen",
	"\xe2\x80\xa8" => "\x{2028}",
	"\x{d0}\x{9f}!+1" => "\x{41f}!+1",
	'x' x 3000 => 'x' x 3000,
);
my $dir = fresh_dir();
subtest 'one dump' => \&check_one;
subtest 'two dumps' => \&check_two;
subtest 'series of two hosts' => \&check_series;
subtest 'the same stack anywhere' => \&check_anywhere;
subtest 'builds' => \&check_builds;
subtest 'what hands out memory is no function' => \&check_function;
subtest 'what is not known' => \&check_unknown;
subtest 'what has no such lines' => \&check_refused;
subtest 'the example of the manual' => \&check_example;
subtest 'a live process' => \&check_live;
done_testing;

# ---------------------------------------------------------------- reading

# Checks that both builds print the same bytes. Returns the objects. Each object must have all keys
# in order, and each value must have its key's type.
sub lines_of {
	my ($args, @files) = @_;
	my ($linux, $windows) = map { run(tool('hdiff', $_, '-o', 'jsonl', @$args, map { s,.*/,,r } @files), dir => $dir) }
	    tool_names();
	is($_->{status}, 0, "hdiff -o jsonl @$args: status") or diag($_->{err}) for $linux, $windows;
	ok($linux->{out} eq $windows->{out}, 'the same bytes of both builds');
	like($linux->{out}, qr/\A(?:[^\n]+\n)+\z/, 'lines, and none empty');
	is($linux->{out} =~ tr/\x00-\x09\x0b-\x1f\x7f//, 0, 'no control characters');
	my (@lines, @wrong);
	for (split /\n/, $linux->{out}) {
		my $line = eval { JSON::PP->new->utf8->decode($_) } or push(@wrong, "$@: $_"), next;
		push @wrong, "keys: $_" if join(' ', /(?:^\{|,)"(\w+)":(?=["\d-])/g) ne "@keys";
		my $text = $_;
		push @wrong, "types: $text"
		    if grep({ $text !~ /[{,]"$_":"/ } @strings) || grep { $text !~ /[{,]"$_":(?:0|-1|[1-9]\d*)[,}]/ } @numbers;
		push @wrong, "hash: $_" if $line->{stack} ne hash_of($line->{frames});
		push @lines, $line;
	}
	is_deeply(\@wrong, [], 'each is JSON in UTF-8, with all keys and their types, and the hash of its frames');
	return @lines;
}

# 64-bit FNV-1a.
sub hash_of {
	my ($text) = @_;
	utf8::encode($text);
	use integer;
	my $hash = 0xcbf29ce484222325;
	$hash = ($hash ^ ord) * 0x100000001b3 for split //, $text;
	return sprintf '%016X', $hash;
}

# Returns [WHO, WHEN, FRAMES, BYTES, BLOCKS, OVERHEAD], sorted.
sub told {
	my ($lines) = @_;
	return [sort { "@$a" cmp "@$b" } map { [@$_{qw(host image pid start time path frames bytes blocks overhead)}] } @$lines];
}

sub wanted {
	my ($how, $time, $file, $sums) = @_;
	my @wanted;
	for my $name (sort keys %$sums) {
		my ($bytes, $blocks) = ref $sums->{$name} ? @{ $sums->{$name} } : ($sums->{$name}, $sums->{$name} ? 1 : 0);
		push @wanted, [$how->{host} // '', 'app.exe', $how->{pid} // 4242, iso($how->{start} // $start), iso($time), $file,
			'app!' . ($odd{$name} // $name) . ';app+FFF', $bytes, $blocks, 8 * $blocks] if $blocks;
	}
	return @wanted;
}

sub by_stack { return sort { $a->{stack} cmp $b->{stack} } @_ }

sub sorted { return [sort { "@$a" cmp "@$b" } @_] }

# ---------------------------------------------------------------- dumps and their lines

sub check_one {
	my %sums = map { $_ => [1000 + length, 3] } keys %odd;
	my %how = (host => "no\"de\n\xff");
	spew("$dir/one.txt", series_dump($begin, \%sums, %how));
	my @lines = lines_of([], 'one.txt');
	is_deeply(told(\@lines), sorted(wanted({ host => "no\"de\n$unknown" }, $begin, 'one.txt', \%sums)), 'every stack, with what it has');
	is(scalar(grep { $_->{function} ne $_->{frames} =~ s/;app\+FFF\z//r } @lines), 0, 'its function is the innermost');
	for my $option (['--strip'], ['--invert'], ['--hex']) {
		is_deeply([by_stack(lines_of($option, 'one.txt'))], [by_stack(@lines)], "@$option changes nothing");
	}
	is(scalar lines_of(['-i', 'leak'], 'one.txt'), 1, 'stacks that are not selected have no line');
	is(scalar lines_of(['-n', 2], 'one.txt'), 2, 'nor what is not shown');
}

sub check_two {
	my @sums = ({ grows => [100, 1], still => [64, 1], gone => [70, 2] }, { grows => [300, 2], still => [64, 1], came => [80, 4] });
	my %how = (host => 'a');
	my @files = series($dir, [$begin, $begin + 1], { map { my $name = $_; $name => [map { $_->{$name} // 0 } @sums] } qw(grows still gone came) },
		%how, name => 'two-%d.txt');
	delete $_->{still} for @sums;
	is_deeply(told([lines_of([], @files)]),
		sorted(map { wanted(\%how, $begin + $_, "two-$_.txt", $sums[$_]) } 0, 1), 'what changed, where it has blocks');
}

sub check_series {
	my (@files, @wanted);
	for my $host (qw(a b)) {
		my %how = (host => $host, pid => ord $host, start => $start + ord $host, slide => 0x10000 * ord $host);
		my @times = map { $begin + $_ * $half_hour } 0 .. 5;
		my %stacks = (leak => [map { [1000 * $_, $_] } 1 .. 6], passing => [0, 0, 500, 0, 0, 0]);
		push @files, series($dir, \@times, \%stacks, %how, name => "$host-%d.txt");
		for my $i (0 .. $#times) {
			push @wanted, wanted(\%how, $times[$i], "$host-$i.txt", { map { $_ => $stacks{$_}[$i] } keys %stacks });
		}
	}
	my @lines = lines_of([], @files);
	is_deeply(told(\@lines), sorted(@wanted), 'each stack of each process in each snapshot');
	is(scalar(keys %{ { map { $_->{stack} => 1 } @lines } }), 2, 'of both hosts they are the same');
	is_deeply([map { $_->{bytes} } grep { $_->{host} eq 'b' && $_->{function} eq 'app!leak' } @lines], [map { 1000 * $_ } 1 .. 6],
		'in the order of their times');
}

# ---------------------------------------------------------------- stacks

# Writes one block, allocated through frames [MODULE PATH, OFFSET, FUNCTION or undef], or [undef,
# ADDRESS].
sub dump_of {
	my ($file, $frames, %how) = @_;
	my (%base, $names);
	my $next = 0x140000000 + ($how{slide} // 0);
	my $text = "// hsnap: dump format=1 tool=0.1.0 time=2026-11-20T11:00:25.841Z\n"
	    . '// hsnap: process id=208 start=2026-11-20T11:00:22.809Z bits=64' . ($how{process} // '') . "\n// Loaded modules:\n";
	for my $path (grep { defined } map { $_->[0] } @$frames) {
		next if $base{$path};
		$text .= sprintf "//    %16X %8X %s\n", $base{$path} = $next += 0x1000000, 0x24000, $path;
	}
	$text .= "// Process modules enumerated.\n";
	$text .= sprintf "// hsnap: module base=%X %s\n", values %base, $how{module} if $how{module};
	my @addrs = map { $_->[1] + (defined $_->[0] ? $base{ $_->[0] } : 0) } @$frames;
	$text .= join '', "10 bytes + 10 at 655FB0 by BackTrace2\n", map({ sprintf "\t%X\n", $_ } @addrs), "\n";
	for my $i (grep { defined $frames->[$_][2] } 0 .. $#addrs) {
		$text .= sprintf "// hsnap: name addr=%X function=\"%s\" offset=%X\n", $addrs[$i], $frames->[$i][2], $how{offset} // 5;
	}
	spew("$dir/$file", "$text// hsnap: end blocks=1 requested=16 overhead=16\n");
	return (lines_of($how{args} // [], $file))[0];
}

sub check_anywhere {
	my @where = (['C:\app\Engine.dll', 0x1234, 'grow'], [undef, 0x7FF000001000], ['C:\app\app.exe', 0x2000], ['C:\app\app.exe', 0x3000, 'main']);
	my $here = dump_of('here.txt', \@where);
	is($here->{frames}, 'engine!grow;?;app+2000;app!main', 'frames by module, and function or offset') or return;
	my $there = dump_of('there.txt', [['D:\x\ENGINE.DLL', 0x1234, 'grow'], [undef, 0x7FE000002000], ['D:\APP.exe', 0x2000],
			['D:\APP.exe', 0x3000, 'main']], slide => 0x7FF000000000);
	is($there->{stack}, $here->{stack}, 'other folders, capitals and addresses are nothing');
	my @built = map { [@$_] } @where;
	@$_[1] += 0x40 for @built[0, 3];
	is(dump_of('built.txt', \@built, offset => 9)->{stack}, $here->{stack}, 'nor is where a function lies, or where in it that is');
	for my $change ([0, 2, 'shrink'], [2, 1, 0x2001], [0, 0, 'C:\app\engine2.dll']) {
		my ($frame, $what, $value) = @$change;
		my @other = map { [@$_] } @where;
		$other[$frame][$what] = $value;
		isnt(dump_of('other.txt', \@other)->{stack}, $here->{stack}, "another one is: $value");
	}
}

sub check_builds {
	my $exe = [['C:\app\eapp.exe', 0x1490, 'main']];
	my $image = ' image="C:\\\\app\\\\EApp.exe"';
	my $guid = '0123456789ABCDEF0123456789ABCDEF';
	my $of = sub { my ($module) = @_; return dump_of('build.txt', $exe, process => $image, module => $module)->{build} };
	is($of->("timestamp=5FB7A1C2 checksum=0 pdb=\"eapp.pdb\" guid=$guid age=1A"), "${guid}1A", 'by the PDB');
	is($of->('timestamp=5FB7A1C checksum=0'), '05FB7A1C24000', 'by time stamp and size');
	is($of->(undef), '', 'if nothing identifies it');
	is(dump_of('no-image.txt', $exe, module => 'timestamp=1 checksum=0')->{build}, '', 'of no known image');
}

sub check_function {
	my @where = (['C:\w\ntdll.dll', 0x10, 'RtlAllocateHeap'], ['C:\w\msvcrt.dll', 0x20, 'malloc'], ['C:\app\app.exe', 0x30, 'grow'],
		['C:\w\msvcrt.dll', 0x40, 'malloc']);
	for my $args ([], ['--strip'], ['--no-strip']) {
		my $line = dump_of('strip.txt', \@where, args => $args);
		is($line->{function}, 'app!grow', "the caller (@$args)");
		is($line->{frames}, 'ntdll!RtlAllocateHeap;msvcrt!malloc;app!grow;msvcrt!malloc', 'the frames are all there');
	}
	spew("$dir/list.txt", "app!grow\nmsvcrt!*\nntdll!*\n");
	is(dump_of('strip.txt', \@where, args => ['--strip', '--strip-file', 'list.txt'])->{function}, 'msvcrt!malloc', 'a list of the user counts');
}

sub check_unknown {
	spew("$dir/plain.txt", "10 bytes + 8 at 655FB0 by BackTrace2\n\t7B601234\n\n20 bytes + 8 at 656FB0 by BackTrace3\n");
	my @lines = lines_of([], 'plain.txt');
	is_deeply(told(\@lines), sorted(map { ['', '', 0, ('1970-01-01T00:00:00.000Z') x 2, 'plain.txt', @$_] }
			['?', 16, 1, 8], ['(stack not in the dump)', 32, 1, 8]), 'every key has a value of its type');
	is_deeply([map { $_->{build} } @lines], ['', ''], 'the build, too');
}

sub check_refused {
	spew("$dir/printed.txt", "+ 1000 ( 1010 - 10) 3 allocs\tBackTraceA\n+ 2 ( 3 - 1)\tBackTraceA\tallocations\n\n"
	    . "\tapp!f+1F\n\n\nTotal increase == 1000 requested + 20 overhead = 1020\n");
	for my $args (['--sum', 'one.txt'], ['--group', 'function', 'one.txt'], ['--input-base', 'decimal', 'printed.txt']) {
		check_error(run(tool('hdiff', 'linux', '-o', 'jsonl', @$args), dir => $dir), 'hdiff', "@$args", '-o jsonl');
	}
}

sub check_example {
	my $text = slurp("$root/man/hdiff-json.5");
	my ($options, $line) = $text =~ /^\$ hdiff -o jsonl (.*) a\.txt\n(.*?)^\.Ed/ms or return fail('there is one');
	my $found = dump_of('a.txt', [['C:\app\eapp.exe', 0x1490, 'main']], process => ' image="C:\\\\app\\\\eapp.exe" host=node7',
		module => 'timestamp=5FB7A1C2 checksum=0', args => [split ' ', $options]);
	is_deeply($found, decode_json($line), 'it is what that dump gives');
}

sub check_live {
	my $target = target("$root/build/win64/samples/leak_steady.exe", [], traced => 1);
	is($target->step, 1, 'a program waits') or return;
	snapshot($target->{pid}, "$dir/live.txt");
	my ($line) = lines_of(['-i', '^leak_steady!grow_log$'], 'live.txt');
	is($target->quit, 0, 'it ends');
	is_deeply([@$line{qw(host image pid function)}], [hostname() =~ s/\..*//sr, 'leak_steady.exe', $target->{pid}, 'leak_steady!grow_log'],
		'its machine, program and number, and who allocates');
}
