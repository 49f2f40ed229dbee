#!/usr/bin/perl
# Harmful names, in every place where a dump has a name, through every form and message. No control
# byte reaches a text, and no mark that changes the reading order. Each form can be parsed, and
# contains the name as documented. Also tests decompression bombs, and patterns that would take
# forever.
use strict;
use warnings;
no warnings 'portable';    # addresses have 64 bits
use Compress::Raw::Zlib ();
use Encode qw(decode encode);
use FindBin qw($Bin);
use IO::Compress::Gzip qw(gzip);
use IO::Uncompress::Gunzip qw(gunzip);
use JSON::PP;
use lib "$Bin/lib";
use Test::More;
use Charts;
use Hunt;
use Logs;
use Recordings;
eval { require Text::CSV } or needs_linux('Text::CSV');

my $dir = fresh_dir();
my $base = 0x140000000;
# Names as bytes. Each is used alone; all except the long one are also joined to one name.
my @evil = ("\e[31m", "\e]0;title\a", "\x9b31m", "\xc2\x9b31m", (map { encode('UTF-8', "$_") } "\x{202e}txt.exe", "\x{2066}", "\x{200f}", "\x{61c}", "\x{2028}"),
	"line\nnew", "car\rriage", "tab\tx", '=1+1', '+1', '-1', '@x', "\t=x", "\r=x", '<script>alert(1)</script>', '</script>', ']]>', '&lt;', '"quo\'te\\',
	"\xed\xa0\x80", "\xff\xfe", 'a;b 1 2', '%s%n', '--output=x', '__proto__', 'null\\u0000', 'x' x 3000);
my $all = join ' ', grep { length $_ < 1000 } @evil;
# Control sequences for terminals, in UTF-8 text. An 8-bit terminal also obeys some bytes that are
# not UTF-8.
my $utf8 = qr/[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}/;
my $obeyed = qr/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]/;

my @dumps = map { hostile_dump(file_name($_ % 2 ? "old\e[1m$_\xe2\x80\xae.txt" : "new\n<b>&'\"$_.txt"), $_) } 1 .. 4;
subtest 'forms for people' => \&people;
subtest 'forms for programs' => \&programs;
subtest 'hsym' => \&hsym;
subtest 'what the user types' => \&typed;
subtest 'marks of a recording, and its modules' => \&recording;
subtest 'an ETW log' => \&etw;
subtest 'the modules of a minidump' => \&minidump;
subtest 'what explodes' => \&explosions;
subtest 'a pattern that is slow for each of many names' => \&slow_patterns;
done_testing;

sub quoted { return '"' . $_[0] =~ s/(["\\])/\\$1/gr =~ s/([\x00-\x1f\x7f-\xff])/sprintf '\\x%02X', ord $1/ger . '"' }

# Writes a dump in which every name is the given name, or in which each harmful name occurs.
sub hostile_dump {
	my ($file, $hour) = @_;
	my ($blocks, $bytes) = (1, 5);
	my @lines = ("// hsnap: dump format=1 tool=@{[quoted($all)]} time=2026-11-27T0$hour:00:00.000Z",
		"// hsnap: process id=7 start=2026-11-27T00:00:00.000Z bits=64 image=@{[quoted('C:\\' . $all)]} os=@{[quoted($all)]} host=@{[quoted($all)]}",
		"// hsnap: stacks source=@{[quoted($all)]}", "// hsnap: warning text=@{[quoted($all)]}", "// hsnap: unheard x=@{[quoted($all)]}", '// Loaded modules:');
	push @lines, map { sprintf '// %X 1000 C:\\m%s.dll', $base + 0x10000 * $_, $evil[$_] =~ tr/\n//dr } 0 .. $#evil;
	push @lines, '// Process modules enumerated.';
	push @lines, map { sprintf '// hsnap: name addr=%X function=%s offset=1 file=%s line=3', $base + 0x10000 * $_ + 16, (quoted($evil[$_])) x 2 } 0 .. $#evil;
	push @lines, "// hsnap: heap addr=650000 kind=@{[quoted($all)]} layout=@{[quoted($all)]} bits=64 committed=0 reserved=0"
	    . ' stackless-blocks=1 stackless-requested=5 stackless-overhead=0', '*- - - - - - - - - - Start of data for heap @ 650000 - - - - - - - - - -';
	for my $i (0 .. $#evil) {
		my $size = 100 * $hour * (1 + $i % 3);
		push @lines, sprintf('%X bytes + 8 at %X by BackTrace%X', $size, 0x650000 + 4096 * $i, $i + 1),
		    sprintf("\t%X", $base + 0x10000 * $i + 16), sprintf("\t%X", $base + 0x10000 * (($i + 1) % @evil) + 32), '';
		$blocks++;
		$bytes += $size;
	}
	push @lines, '*- - - - - - - - - - End of data for heap @ 650000 - - - - - - - - - -',
	    "// hsnap: end blocks=$blocks requested=$bytes overhead=@{[8 * ($blocks - 1)]}";
	return spew("$dir/$file", join '', map { "$_\n" } @lines);
}

# Checks that a terminal would obey nothing in a text, except colours that were requested.
sub harmless {
	my ($bytes, $what) = @_;
	my ($text, $raw) = ($bytes =~ s/\e\[\d*m//gr, $bytes =~ s/$utf8//gr);
	my @found = ($text =~ /($obeyed)/g, $raw =~ /([\x80-\x9f])/g);
	return ok(!@found, "$what: harmless") || diag(join ' ', map { unpack 'H*', $_ } @found);
}

sub ran {
	my ($what, $status, @command) = @_;
	my $result = run(\@command);
	is($result->{status}, $status, "$what: status $status") or diag($result->{err});
	harmless($result->{err}, "$what, what is said");
	return $result->{out};
}

sub hdiff { my (@args) = @_; return ran("hdiff @args" =~ s/\Q$dir\E\S*//gr =~ s/[^ -~]/?/gr, 0, "$root/build/linux/hdiff", @args) }

sub people {
	for my $dumps ([$dumps[0]], [@dumps[0, 1]], \@dumps) {
		for my $form ([], ['--tree'], ['--color=always'], ['-v'], ['-o', 'umdh'], ['-o', 'svg'], ['-o', 'folded'], ['-o', 'markdown'], map { ['--group', $_] } qw(function file module heap)) {
			my $out = hdiff(@$form, @$dumps);
			harmless($out, "@$form");
			like($out, qr/\?\[31m/, "@$form: names are there") if !@$form;
		}
	}
	return;
}

# Control characters in names are replaced when the names are read. In other texts they are data,
# which each form spells in its own way.
sub programs {
	for my $dumps ([$dumps[0]], [@dumps[0, 1]], \@dumps) {
		my $json = JSON::PP->new->utf8;
		for my $form (qw(json jsonl speedscope dhat)) {
			my $out = hdiff('-o', $form, @$dumps);
			unlike($out, qr/[\x00-\x09\x0b-\x1f\x7f]/, "$form: no control characters");
			my @read = map { eval { $json->decode($_) } } $form eq 'jsonl' ? split(/\n/, $out) : $out;
			ok(@read && !grep({ !defined } @read), "$form: is JSON") or diag($@);
			next unless $form eq 'json';
			my %functions = map { $_->{function} => 1 } grep { defined $_->{function} } map { @{ $_->{frames} } } map { @{ $_->{rows} } } $read[0]{series} ? @{ $read[0]{series} } : $read[0];
			ok($functions{$_}, "json: there is $_") for '=1+1', ']]>', '</script>', '%s%n', '__proto__', 'null\\u0000', '?[31m';
		}
		my $csv = hdiff('-o', 'csv', @$dumps);
		open my $in, '<:encoding(UTF-8)', \$csv or die "csv: $!\n";
		my ($reader, $count, @formulas) = (Text::CSV->new({ binary => 1, strict => 1 }), 0);
		while (my $record = $reader->getline($in)) {
			$count++;
			push @formulas, grep { /^[=+\-\@\t\r]/ && !/^-?\d+$/ } @$record;
		}
		ok($reader->eof && $count > @evil, 'csv: is CSV') or diag($reader->error_diag);
		is_deeply(\@formulas, [], 'csv: no formula');
		my $packed = hdiff('-o', 'pprof', @$dumps);
		my $profile = '';
		ok(gunzip(\$packed => \$profile) && index($profile, ']]>') > 0, 'pprof: names are there');
		ok($profile !~ /\e[\[\]]|\xe2\x80\xae/, 'pprof: nothing that is obeyed');
		hdiff('--max-growth', '1T', '--junit', "$dir/junit.xml", @$dumps);
		my $xml = slurp("$dir/junit.xml");
		is(xml_error($xml), '', 'junit: is XML');
		harmless($xml, 'junit');
		my $svg = hdiff('-o', 'svg', @$dumps);
		is(xml_error($svg), '', 'svg: is XML');
		unlike($svg, qr/<script>alert/, 'svg: no name is markup');
	}
	return;
}

# hsym copies a dump unchanged into a file, and without control characters to a terminal.
sub hsym {
	my $bytes = slurp($dumps[0]);
	my $copied = ran('hsym', 0, "$root/build/linux/hsym", $dumps[0]);
	is(join('', grep { !m{^// hsnap: name } } split /^/, $copied), join('', grep { !m{^// hsnap: name } } split /^/, $bytes), 'hsym: every line as it was');
	spew("$dir/plain.txt", $bytes);
	SKIP: {
		skip('needs script(1)', 2) if $as_windows;
		my $shown = run(['script', '-qec', "'$root/build/linux/hsym' '$dir/plain.txt'", '/dev/null'])->{out};
		harmless($shown =~ s/\r//gr, 'hsym on a terminal');
		like($shown, qr/m\?\[31m\.dll/, 'hsym on a terminal: modules are there');
	}
	harmless(ran('hsym --explain', 0, "$root/build/linux/hsym", '--explain', $dumps[0]), 'hsym --explain');
	return;
}

# Names on a command line, and names in a file that the command line names.
sub typed {
	needs_linux('command lines of any bytes');
	my $name = "a\e[31m\x9b\xe2\x80\xae\xc2\x9b\n";
	my $list = spew("$dir/list$name", "bad $name");
	my @commands = (
		(map { my $tool = $_; ([$tool, "--$name"], [$tool, "$dir/none$name"]) } qw(hdiff hsym hsnap)),
		['hsym', '-e', "$dir/none$name", '10'], ['hsym', '--map', $name, $dumps[0]], ['hsnap', '-z', "$dir/none$name", '-f', "$dir/out"],
		['hsnap', 'record', '--from', "$dir/none$name", '-o', "$dir/out"], ['hdiff', '--list', $dumps[0]], ['hdiff', "$dumps[0]\@$name"],
		(map { ['hdiff', $_, $name, $dumps[0]] } qw(--sort --group -o --since --suppress --strip-file --heap --min-bytes --max-growth)),
		['hdiff', '-i', "($name", $dumps[0]], ['hdiff', '-f', "$dir/none$name/x", $dumps[0]], ['hdiff', '--suppress', $list, $dumps[0]],
		['hdiff', '--strip-file', $list, $dumps[0]],
	);
	for my $command (@commands) {
		my ($tool, @args) = @$command;
		ran("$tool @args" =~ s/\Q$dir\E//gr =~ s/[^ -~]/?/gr, 2, "$root/build/linux/$tool", @args);
	}
	return;
}

sub recording {
	# make_recording splits words at these characters
	my @marks = map { s/[ \n]/_/gr } grep { length $_ < 60 } @evil;
	my $file = "$dir/" . file_name("run$evil[0].hrec");
	make_recording(join('', map { "$_\n" } 'process 4711 12 64 1763600000000 1763600100250 0 0 C:\\' . $marks[0] . '.exe',
		(map { sprintf 'module m%d %X 1000 7%d C:\\%s.dll', $_, $base + 0x10000 * $_, $_, $marks[$_] } 0 .. $#marks),
		(map { "stack s$_ m$_+10" } 0 .. $#marks), 'heap h 1E0000', (map { "kind k$_ @{[10 + $_]} s$_ h" } 0 .. $#marks),
		(map { ("time @{[1000 * $_]}", "alloc k$_", "mark $marks[$_]") } 0 .. $#marks)), $file);
	my $listed = hdiff('--list', '-v', $file);
	harmless($listed, '--list');
	for my $label (grep { /^[!-~]+$/ } @marks) {
		like($listed, qr/\Q$label\E/, "--list: the mark $label");
	}
	harmless(hdiff("$file\@$_"), "a moment: $_" =~ s/[^ -~]/?/gr) for grep { !/^[-+@]|\d/ && !($as_windows && /[^ -~]/) } @marks;
	harmless(hdiff('--over-time', $file), '--over-time');
	is(xml_error(hdiff('--over-time', '-o', 'svg', $file)), '', '--over-time -o svg: is XML');
	ok(eval { JSON::PP->new->utf8->decode(hdiff('-o', 'json', $file)) }, '-o json: is JSON');
	my $dump = hdiff('--extract', "$file\@end");
	harmless($dump, '--extract');
	return;
}

# The name of a process's image consists of bytes of the machine's code page. A module's path is
# UTF-16.
sub etw {
	my $log = Logs->new;
	$log->volume(0, '\Device\Made\\', 'C:\\');
	my @names = map { decode('UTF-8', $_) } grep { length $_ < 100 } @evil;
	$log->process(type => 3, at => 0, pid => 1000 + $_, image => substr($evil[$_] =~ s/\0//gr, 0, 100)) for 0 .. $#evil;
	$log->process(type => 3, at => 0, image => 'app.exe');
	$log->image(type => 3, at => 0, base => $base + 0x10000 * $_, bytes => 0x1000, path => "\\Device\\Made\\$names[$_]\x{d800}.dll") for 0 .. $#names;
	for my $pid (4321, map { 1000 + $_ } 0 .. $#evil) {
		$log->alloc(at => 100 + $_, pid => $pid, bytes => 100 + $_, addr => 0x20000 + 64 * $_, frames => [$base + 0x10000 * $_ + 16]) for 0 .. $#names;
	}
	my $file = spew("$dir/" . file_name("log$evil[0].etl"), $log->bytes);
	harmless(hdiff('--list', $file), '--list');
	harmless(hdiff('--list', '-v', $file), '--list -v');
	harmless(hdiff('--process', 4321, "$file\@end"), 'a moment');
	ran('no such process', 2, "$root/build/linux/hdiff", '--process', "x$evil[0]", "$file\@end");
	harmless(hdiff('--process', 4321, '--extract', "$file\@end"), '--extract');
	ok(eval { JSON::PP->new->utf8->decode(hdiff('--process', 4321, '-o', 'json', "$file\@end")) }, 'json');
	return;
}

# A path is UTF-16 that may contain anything, even half a surrogate pair.
sub minidump {
	my $image = "$dir/made.dmp";
	is(run(["$root/build/linux/images/make_image", 'win10-x64', '--blocks', 50, '--ust', $image])->{status}, 0, 'a process');
	my $bytes = slurp($image);
	my $count = 0;
	for my $name ("\e[31m", "\x{9b}1m", "\x{202e}", "a\nb", "a\rb", "\t=x", "\x{d800}", "\x{dc00}x", '"\\', ']]>') {
		my $wide = pack 'v*', map { ord } split //, $name;
		# Replaces the letters before ".dll" or ".exe", in another module each time.
		my $at = 0;
		$at = index $bytes, pack('v*', map { ord } split //, '.dll'), $at + 1 for 0 .. $count;
		last if $at < length $wide;
		substr($bytes, $at - length $wide, length $wide) = $wide;
		$count++;
	}
	cmp_ok($count, '>', 2, 'modules have such names');
	spew("$dir/evil.dmp", $bytes);
	my $said = run(["$root/build/asan/hsnap", '-v', '-z', "$dir/evil.dmp", '-f', "$dir/evil.txt"]);
	is($said->{status}, 0, 'it is read') or diag($said->{err});
	harmless($said->{err}, 'what hsnap says');
	harmless(slurp("$dir/evil.txt"), 'the dump');
	harmless(hdiff("$dir/evil.txt"), 'hdiff');
	return;
}

# Each file has a few kilobytes, but reading it naively would need gigabytes or hours.
sub explosions {
	my %made = (
		'zeros' => "\0" x (64 << 20),
		'blank lines' => "\n" x (64 << 20),
		'one line' => '// ' . 'x' x (64 << 20),
	);
	for my $what (sort keys %made) {
		my $file = spew("$dir/$what.gz", gzipped($made{$what} x 2));
		my $nested = spew("$dir/$what twice.gz", gzipped(slurp($file)));
		for my $path ($file, $nested) {
			for my $command (['hdiff'], ['hsym', '-o', "$dir/out.txt"], ['hsnap', 'record', '-o', "$dir/out.hrec", '--from']) {
				my ($tool, @args) = @$command;
				my $result = run(['sh', '-c', 'ulimit -v 200000 && exec "$@"', 'sh', "$root/build/linux/$tool", @args, $path], env => { MALLOC_ARENA_MAX => 1 });
				check_error($result, $tool, "$tool, $what" . ($path eq $nested ? ' twice' : ''));
			}
		}
	}
	# A log in a zip is unpacked into a temporary file. This one would fill a disk: the zip's
	# list states 8 GiB, and the log's data never end.
	my $name = 'bomb.etl';
	my $data = deflated("\0" x (4 << 20)) x 100;
	my $local = pack('VvvvvvVVVvv', 0x04034b50, 45, 0, 8, 0, 0, 0, length $data, 0xffffffff, length $name, 0) . $name . $data;
	my $central = pack('VvvvvvvVVVvvvvvVV', 0x02014b50, 45, 45, 0, 8, 0, 0, 0, length $data, 0xffffffff, length $name, 12, 0, 0, 0, 0, 0)
	    . $name . pack('vvQ<', 1, 8, 8 << 30);
	my $zip = spew("$dir/bomb.zip", $local . $central . pack('VvvvvVVv', 0x06054b50, 0, 0, 1, 1, length $central, length $local, 0));
	mkdir "$dir/temporary";
	my $result = run(["$root/build/linux/hsnap", 'record', '-o', "$dir/out.hrec", '--from', $zip], env => { TMPDIR => "$dir/temporary" });
	check_error($result, 'hsnap', 'a zip', 'bomb.zip', 'hundreds of times its packed size');
	is_deeply([grep { !/^wine-/ } files_in("$dir/temporary")], [], 'a zip: nothing stays');
	return;
}

# Returns a deflated block that has no end.
sub deflated {
	my ($bytes) = @_;
	my ($deflate) = Compress::Raw::Zlib::Deflate->new(-WindowBits => -15, -Level => 9, -AppendOutput => 1);
	my $packed = '';
	$deflate->deflate($bytes, $packed);
	$deflate->flush($packed, Compress::Raw::Zlib::Z_FULL_FLUSH());
	return $packed;
}

sub gzipped {
	my ($bytes) = @_;
	gzip(\$bytes => \my $packed, -Level => 9) or die "gzip\n";
	return $packed;
}

# Writes a dump in which each block's stack is one frame, in a function with one of these names.
sub named_dump {
	my ($file, @names) = @_;
	my @lines = ('// hsnap: dump format=1', '// Loaded modules:', sprintf('// %X 1000000 C:\\app.exe', $base), '// Process modules enumerated.');
	push @lines, map { sprintf '// hsnap: name addr=%X function="%s" offset=1', $base + 16 * $_, $names[$_] } 0 .. $#names;
	push @lines, '*- - - - - - - - - - Start of data for heap @ 650000 - - - - - - - - - -';
	push @lines, map { (sprintf('10 bytes + 8 at %X by BackTrace%X', 0x650000 + 32 * $_, $_ + 1), sprintf("\t%X", $base + 16 * $_), '') } 0 .. $#names;
	push @lines, '*- - - - - - - - - - End of data for heap @ 650000 - - - - - - - - - -',
		sprintf('// hsnap: end blocks=%d requested=%d overhead=%d', scalar @names, 16 * @names, 8 * @names);
	return spew("$dir/$file", join '', map { "$_\n" } @lines);
}

# Each name is below the limit. The sum over all names has a limit too.
sub slow_patterns {
	my $dump = named_dump('slow.txt', map { sprintf 'a%06dx%s', $_, 'a' x 1000 } 1 .. 8000);
	for my $option ('-i', '-x') {
		my $result = run(tool('hdiff', 'linux', $option, 'a*a*a*[bc]$', $dump));
		check_error($result, 'hdiff', "$option a*a*a*[bc]\$", "$option a*a*a*[bc]\$: ", 'too long on these names');
		is(run(tool('hdiff', 'linux', $option, 'a0+[1-9].*xa*[^b]$', $dump))->{status}, 0, "$option of a plain pattern");
	}
	return;
}
