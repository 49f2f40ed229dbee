#!/usr/bin/perl
# prove.cmd, as in the zip. Under Wine every step is ok, or is skipped with a reason. With a sample
# that leaks less than it states, and two missing samples, it reports exactly the steps that failed.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use File::Copy qw(copy);
use File::Path qw(make_path);
use Test::More;
use Hunt;

my @steps = (
	'hsnap runs', 'hdiff runs', 'hsym runs', 'doctor', 'x64 run', 'x64 attach', 'x64 run --at-exit', 'x64 record', 'x64 -g', 'x64 hsym',
);

my $dir = unpacked();
my $whole = prove();
is($whole->{status}, 0, 'all is well: status 0') or diag($whole->{out}, $whole->{err});
is($whole->{failed}, '', 'and nothing FAILED');
is(scalar(grep { /^x64 run(?: --at-exit)?: (?:no warning|a walk finds 0 untraced)/ } @{ $whole->{ok} }), 2, 'snapshots without a warning are steps of their own');
my %ok = map { s/:.*//r => 1 } @{ $whole->{ok} };
is_deeply([grep { !$ok{$_} } @steps], [], 'each part was tried');
is(join("\n", @{ $whole->{skipped} }), "x86: this system does not run such programs\n+ust: Wine records no stacks",
	'what Wine lacks is skipped with a message');
like($whole->{text}, qr/\Aprove\.cmd: what came of it\n\nMicrosoft Windows .*\nhsnap \d+\.\d+\.\d+\n.*\nEverything was read correctly\.\n/s,
	'prove.txt has the version of the system, those of the programs, and the doctor\'s output');
like($whole->{text}, qr/^This is Wine/m, 'and that it proves nothing about Windows');
is(() = $whole->{text} =~ /^ +1 +\+64\.0 KiB +\+64 100 % +(?:leak_steady!)?grow_log\b/mg, 3, 'and the reports: by run, attach and record');
like($whole->{out}, qr/The result is in prove\.txt/, 'it prints where the result is');
is_deeply([grep { !/^(?:h.*\.(?:exe|dll)|prove(?:\.cmd|\.txt|))$/ } files_in($dir)], [], 'nothing else is left');
is_deeply([grep { !/^(?:x64|x86|stepper\.exe|work|kept)$/ } files_in("$dir/prove")], [], 'but what is in prove/work and prove/kept');
is_deeply([grep { !-s "$dir/prove/kept/$_" } qw(machine.txt plain-64.dmp.gz plain-64.truth)], [], 'the doctor keeps what a machine can send back');
like($whole->{out}, qr/^The folder prove.kept has memory of/m, 'which is named');

# This run leaves out the doctor, which takes longest and was tested above.
$dir = unpacked();
my $script = slurp("$dir/prove.cmd") =~ s/^call :try 0 "doctor.*\n//mr;
my $warned = '>>%work%\%bits%-exit.txt echo // hsnap: warning text="made"';
$script =~ s/^(?=call :quiet "%bits% run --at-exit)/$warned\r\n/m or die 'no such step';
spew("$dir/prove.cmd", $script);
my $less = slurp("$root/samples/leak_steady.c") =~ s/char text\[1024 - /char text[1016 - /r;
spew("$dir/less.c", $less);
my $made = run([qw(x86_64-w64-mingw32-gcc -I), $root, qw(-O1 -fno-optimize-sibling-calls -static -D_WIN32_WINNT=0x0601), "$dir/less.c",
	'-o', "$dir/prove/x64/leak_steady.exe"]);
is("$made->{status}$made->{err}", '0', 'a sample that leaks other blocks than it states');
unlink "$dir/less.c", map { "$dir/prove/x64/$_.exe" } qw(memory_test leak_heaps);
my $broken = prove();
is($broken->{status}, 1, 'something is wrong: status 1');
is_deeply([sort split /\n/, $broken->{failed}], [sort(
	(map { "x64 $_ (status 001, not 011)" } 'run: what a step leaks', 'attach: what a step leaks', 'run --at-exit: what four steps leak',
		'record: what is leaked between two marks', 'hsym: they are there without the program'),
	(map { "x64 $_ (status 2, not 0)" } 'record: three seconds', '-g: two steps, and the end', '-g: no more is lost than was leaked'),
	'x64 -g: more than half of it is (status 2, not 1)', 'x64 run --at-exit: no warning (status 1, not 0)',
	(map { "x64 record: $_ (status 222, not 011)" } 'small objects that are left', 'large buffers that come and go', 'buffers at the peak'),
)], 'what depends on it FAILED, and nothing else') or diag($broken->{text});
like($broken->{out}, qr/^Something FAILED\. With prove\.txt the folder prove.work is of use/m, 'and prints what to send');
done_testing;

# Unpacks the released zip into a folder.
sub unpacked {
	my $to = fresh_dir();
	my $from = "$root/build/win64";
	make_path("$to/prove/x64", "$to/prove/x86");
	copy("$from/$_", "$to/$_") or die "$_: $!\n" for qw(hsnap.exe hsnap-tracer64.dll hdiff.exe hsym.exe);
	copy("$root/build/win32/hsnap.exe", "$to/hsnap32.exe") or die "hsnap32.exe: $!\n";
	copy("$root/build/win32/hsnap-tracer32.dll", $to) or die "hsnap-tracer32.dll: $!\n";
	copy("$from/targets/stepper.exe", "$to/prove") or die "stepper.exe: $!\n";
	for my $sample (qw(leak_steady leak_heaps memory_test)) {
		copy("$root/build/win$_->[0]/samples/$sample.exe", "$to/prove/$_->[1]") or die "$sample: $!\n" for ['64', 'x64'], ['32', 'x86'];
	}
	spew("$to/prove.cmd", slurp("$root/setup/prove.cmd") =~ s/\n/\r\n/gr);
	return $to;
}

sub prove {
	my $run = run([wine('cmd', '/c', win("$dir/prove.cmd"))], env => { CI => 'true' }, limit => 4 * $Hunt::limit);
	my $text = slurp("$dir/prove.txt") =~ s/\r\n/\n/gr =~ s/\A\s+//r;
	my ($results) = $text =~ /^(?:ok|FAILED|skipped) .*?\n(?=\n)/ms ? $& : '';
	return { %$run, text => $text, failed => join("\n", $results =~ /^FAILED +(.*)$/mg),
		ok => [$results =~ /^ok +(.*)$/mg], skipped => [$results =~ /^skipped +(.*)$/mg] };
}
