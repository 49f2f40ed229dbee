#!/usr/bin/perl
# 32-bit programs, captured by hsnap.exe with hsnap32.exe beside it, and by hsnap32.exe alone. Tests
# which half of a process each program sees, what one delegates to the other, and children of the
# other bitness. tests/live has the tests that are the same for every bitness.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use File::Basename qw(basename);
use Test::More;
use Hunt;

my %hsnap = map { $_ => "$root/build/win64/$_" } qw(hsnap.exe hsnap32.exe);
my %sample = map { $_ => "$root/build/win$_/samples/leak_steady.exe" } 32, 64;
my @missing = grep { !-e } values %hsnap, values %sample;
plan skip_all => "not built: @missing" if @missing;
plan skip_all => 'this Wine runs no 32-bit programs' if run([wine($hsnap{'hsnap32.exe'}, '--version')])->{out} !~ /^hsnap \d/;

for my $name (sort keys %hsnap) {
	subtest "$name at a 32-bit program" => sub { looked_at($name) };
	subtest "$name records a 32-bit program that runs" => sub { recorded($name) };
	subtest "$name follows children of the other bitness" => sub { followed($name) };
}
subtest 'hsnap32.exe and 64-bit processes' => \&refused;
subtest 'a minidump by a 64-bit program' => \&in_file;
done_testing;

sub by { my ($name, @args) = @_; return run([wine($hsnap{$name}, @args)]) }

# Returns { PATH => BASE } of the modules in a dump.
sub modules_in {
	return { map { m{^//\s+([0-9A-F]+)\s+[0-9A-F]+ (\S.*)} ? (lc $2 => $1) : () } split /\r?\n/, slurp($_[0]) };
}

# Checks that a dump lists the program, its tracer and the system's 32-bit DLLs, with the paths of
# their files.
sub check_modules {
	my ($file, $what) = @_;
	my $modules = modules_in($file);
	my %wanted = map { lc $_ => 1 } win($sample{32}), win("$root/build/win64/hsnap-tracer32.dll"),
	    map { "C:\\windows\\syswow64\\$_.dll" } qw(ntdll kernel32 kernelbase msvcrt);
	is_deeply([grep { !$modules->{$_} } sort keys %wanted], [], "$what: the 32-bit modules are listed")
	    or diag(join "\n", sort keys %$modules);
	return;
}

# Returns the [BITS, STACKS] that ps lists for a process.
sub row_of {
	my ($listed, $pid) = @_;
	return [$listed =~ /^ *$pid +(\d+|\?) +\S+ +(\S+)/m];
}

sub looked_at {
	my ($name) = @_;
	my $dir = fresh_dir();
	my $target = target($sample{32}, [], traced => 1);
	is($target->step, 1, 'hsnap.exe runs it') or return;
	my $listed = by($name, 'ps', 'leak_steady');
	is_deeply(row_of($listed->{out}, $target->{pid}), [32, 'tracer'], 'ps: its bits, and where its stacks come from')
	    or diag($listed->{out}, $listed->{err});
	my $taken = by($name, '-p', $target->{pid}, '-f', win("$dir/a.txt"));
	unlike($taken->{err}, qr/unreadable|module list/, 'its lists can be read');
	like(slurp("$dir/a.txt"), qr{^// hsnap: process id=$target->{pid} .* bits=32 }m, 'the dump is of 32 bits');
	like(slurp("$dir/a.txt"), qr{^// hsnap: stacks source=tracer}m, 'its stacks are the tracer\'s');
	check_modules("$dir/a.txt", $name);
	is(by($name, 'detach', '-p', $target->{pid})->{status}, 0, 'detach');
	is_deeply(row_of(by($name, 'ps', 'leak_steady')->{out}, $target->{pid}), [32, 'detached'], 'ps: it is detached');
	is(by($name, 'attach', '-p', $target->{pid})->{status}, 0, 'attach');
	is_deeply(row_of(by($name, 'ps', 'leak_steady')->{out}, $target->{pid}), [32, 'attached'], 'ps: it is attached');
	is($target->quit, 0, 'it ends as by itself');
	return;
}

# Returns { FUNCTION => [BYTES, COUNT] } for the sample, up to the end of a recording or between two
# moments.
sub grown_in {
	my ($what, @moments) = @_;
	my $compared = run(tool('hdiff', 'linux', @moments));
	is($compared->{status}, 0, "$what: hdiff reads it") or diag($compared->{err});
	return rows_by_functions(report($compared->{out}), 'leak_steady');
}

# A recording that begins while the program is running has the later events.
sub recorded {
	my ($name) = @_;
	my $file = fresh_dir() . '/run.hrec';
	my $target = target($sample{32});
	is($target->step, 1, 'it runs') or return;
	my $err = File::Temp->new;
	my $pid = Hunt::start([wine($hsnap{$name}, 'record', '-p', $target->{pid}, '-o', win($file))], stderr => "$err");
	my $is_marked = 0;
	for (1 .. 100) {
		last if $is_marked = !by($name, 'mark', '-p', $target->{pid}, 'begin')->{status};
	}
	ok($is_marked, 'a mark before') or diag(slurp("$err"));
	is($target->next_step, 2, 'a step');
	is(by($name, 'mark', '-p', $target->{pid}, 'end')->{status}, 0, 'a mark after');
	is($target->quit, 0, 'it ends as by itself');
	is(Hunt::finish($pid), 0, 'and so does hsnap') or diag(slurp("$err"));
	is_deeply(grown_in('one step', "$file\@begin", "$file\@end"), { 'grow_log<-serve_request<-main' => [65536, 64] },
		'what its step leaks, exactly');
	return;
}

# cmd.exe of one bitness starts the sample of the other bitness. When its input ends, the sample
# ends, after one step.
sub followed {
	my ($name) = @_;
	my %cmd = (64 => 'C:\\windows\\system32\\cmd.exe', 32 => 'C:\\windows\\syswow64\\cmd.exe');
	# hsnap32.exe cannot start a 64-bit program itself.
	for my $bits ($name eq 'hsnap.exe' ? (64, 32) : 32) {
		my $dir = fresh_dir();
		my $child = $sample{ 96 - $bits };
		my $recorded = by($name, 'record', '--children', '-o', win("$dir/run.hrec"), '--', $cmd{$bits}, '/c', win($child));
		my ($pid) = $recorded->{out} =~ /^step 1 pid (\d+)\r?$/m;
		is("$recorded->{status} $recorded->{err}", '0 ', "$bits bits start others: recorded without a complaint");
		is_deeply([files_in($dir)], ["run.$pid.hrec", 'run.hrec'], 'each has its recording') or next;
		is_deeply(grown_in('the child', "$dir/run.$pid.hrec"), { 'grow_log<-serve_request<-main' => [65536, 64] },
			'what the child leaks, exactly');

		my $run = by($name, 'run', '--children', '--force', '--at-exit', win("$dir/{name}-{pid}.txt"), '--', $cmd{$bits}, '/c', win($child));
		($pid) = $run->{out} =~ /^step 1 pid (\d+)\r?$/m;
		is($run->{status}, 0, 'run: the status is the parent\'s');
		unlike($run->{err}, qr/not traced/, 'each is traced');
		is(scalar(grep { /^cmd-\d+\.txt$/ } files_in($dir)), 1, 'the parent has its snapshot');
		like(slurp("$dir/leak_steady-$pid.txt"), qr{^// hsnap: process id=$pid .* bits=@{[96 - $bits]} .*\n(?:.*\n)*// hsnap: stacks source=tracer}m,
			'and so has the child, with stacks') if ok(-e "$dir/leak_steady-$pid.txt", 'the child has a file');
	}
	return;
}

sub refused {
	my $target = target($sample{64});
	is($target->step, 1, 'a 64-bit program runs') or return;
	my $listed = by('hsnap32.exe', 'ps', 'leak_steady');
	is_deeply(row_of($listed->{out}, $target->{pid}), [64, '?'], 'ps: its bits, and nothing else');
	is($listed->{err}, "hsnap: use the 64-bit hsnap for 64-bit processes (1 of them)\n", 'and which program is for it');
	for my $command (['-p'], ['attach', '-p'], ['detach', '-p']) {
		check_error(by('hsnap32.exe', @$command, $target->{pid}), 'hsnap', "hsnap32 @$command", '64-bit', 'use the 64-bit hsnap');
	}
	check_error(by('hsnap32.exe', 'run', '--', win($sample{64})), 'hsnap', 'hsnap32 run', '64-bit', 'use the 64-bit hsnap');
	is($target->quit, 0, 'it ends as by itself');
	return;
}

# A minidump's list of modules has only the 64-bit half, or only the program (Wine 10).
sub in_file {
	my $dir = fresh_dir();
	my $target = target($sample{32}, [], traced => 1);
	is($target->step, 1, 'it runs') or return;
	my $written = run([wine("$root/build/win64/targets/dumper.exe", $target->{pid}, win("$dir/a.dmp"))]);
	is($written->{status}, 0, 'a minidump') or diag($written->{err});
	is($target->quit, 0, 'it ends as by itself');
	for my $side (tool_names()) {
		my $read = run(tool('hsnap', $side, '-z', "$dir/a.dmp", '-f', "$dir/$side.txt", '--force'));
		is($read->{status}, 0, "hsnap -z, $side") or diag($read->{err});
		unlike($read->{err}, qr/no block has a stack|64-bit/, "$side: nothing is missed");
		like(slurp("$dir/$side.txt"), qr{^// hsnap: stacks source=tracer}m, "$side: the tracer is found");
		check_modules("$dir/$side.txt", $side);
	}
	is(slurp("$dir/windows.txt"), slurp("$dir/linux.txt"), 'both sides write the same bytes');
	return;
}
