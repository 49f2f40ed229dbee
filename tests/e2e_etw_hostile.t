#!/usr/bin/perl
# Damaged and hostile ETW logs. Each gives a recording, or one line with the fault. No log makes
# hdiff crash or hang, and memory stays bounded. The sanitizers check this too.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;
use Logs;

my $dir = fresh_dir();
# a separate folder, because other tests make files at the same time
my $temporary = $ENV{ $as_windows ? 'TMP' : 'TMPDIR' } = "$dir/temporary";
mkdir $temporary;
my $hsnap = "$root/build/asan/hsnap";
my $out = "$dir/out.hrec";
my $path = "$dir/hostile.etl";
my ($read, $refused) = (0, 0);

sub sample {
	my (%options) = @_;
	my $log = Logs->new(%options);
	$log->volume(0, '\Device\Made\\', 'C:\\');
	$log->process(type => 3, at => 0, image => 'app.exe');
	$log->image(type => 3, at => 0, base => 0x140000000, bytes => 0x20000, path => '\Device\Made\app.exe');
	$log->identity(at => 0, base => 0x140000000, bytes => 0x20000, timestamp => 5, name => 'app.exe', guid => 'g' x 16, age => 1, pdb => 'app.pdb');
	for my $i (1 .. 30) {
		$log->alloc(at => 100 + $i, bytes => $i, addr => 0x20000 + 64 * $i, cpu => $i % 3, frames => [0x140001000 + $i, 0x140002000]);
		$log->key(at => 100.5 + $i, for => 100 + $i, key => 0x10 + $i % 4);
		$log->free(at => 150 + $i, addr => 0x20000 + 64 * $i, cpu => 1) if $i % 2;
	}
	$log->realloc(at => 200, bytes => 7, addr => 0x20080, old => 0x20080);
	$log->pages(at => 201, addr => 0x1000000, bytes => 0x10000, flags => 0x3000, frames => [0x140001000]);
	$log->pages(at => 202, addr => 0x1002000, bytes => 0x1000, flags => 0x4000);
	$log->define_key(at => 300, key => 0x10 + $_, frames => [0x140003000 + $_]) for 0 .. 3;
	return $log;
}

# Requires one line on stderr and status 2, or status 0 and a recording. With 300 MB of address
# space the result must be the same.
sub survives {
	my ($bytes, $name) = @_;
	spew($path, $bytes);
	my $run = run([$hsnap, 'record', '--overwrite', '--from', $path, '-o', $out]);
	my $is_fine = ($run->{status} == 0 && -s $out) || ($run->{status} == 2 && $run->{err} =~ /^hsnap: [^\n]+\n\z/);
	$run->{status} == 0 ? $read++ : $refused++;
	my $bounded = $as_windows ? $run : run(['sh', '-c', 'ulimit -v 300000 && exec "$@"', 'sh', "$root/build/linux/hsnap", 'record', '--overwrite', '--from', $path, '-o', $out]);
	$is_fine &&= $bounded->{status} == $run->{status} && $bounded->{err} eq $run->{err};
	return ok($is_fine, $name) || diag("status $run->{status}: " . substr($run->{err}, 0, 2000), "in little memory: $bounded->{status}: $bounded->{err}");
}

my %whole = map { $_ => sample(pack => $_)->bytes(each => 10) } 0, 2, 3, 4;
survives($whole{0}, 'a sound one');
is($refused, 0, 'is read');
for my $how (sort keys %whole) {
	my $bytes = $whole{$how};
	my $step = int(length($bytes) / 40);
	survives(substr($bytes, 0, $_ * $step + $_ % 7), "packing $how, cut at " . ($_ * $step + $_ % 7)) for 1 .. 39;
	srand 100 + $how;
	for my $round (1 .. 60) {
		my $damaged = $bytes;
		substr($damaged, int rand length $damaged, 1) = chr int rand 256 for 1 .. 1 + int rand 20;
		survives($damaged, "packing $how, bytes flipped, round $round");
	}
}
# Damages the headers of buffers and of events.
my $head = length Logs->new->buffer(Logs->new->head, type => 4);
for my $value (0, 71, 72, 100, 0xffff, 0x1000001, 0x7fffffff, 0xffffffff) {
	for my $at (0, 4, 0x30, $head, $head + 4, $head + 0x30) {
		my $damaged = $whole{0};
		substr($damaged, $at, 4) = pack('V', $value);
		survives($damaged, sprintf 'the number at %x is %x', $at, $value);
	}
}
for my $size (0, 1, 7, 8, 31, 32, 4095, 65535) {
	my $damaged = $whole{0};
	substr($damaged, $head + 72 + 4, 2) = pack('v', $size);
	substr($damaged, $head + 72, 2) = pack('v', $size) if $size & 1;
	survives($damaged, "an event of $size bytes");
}
subtest 'headers of all numbers' => sub {
	for my $header (0 .. 40) {
		my $damaged = $whole{0};
		substr($damaged, $head + 72 + 2, 1) = chr $header;
		survives($damaged, "header $header");
	}
};
subtest 'items that go on for ever' => sub {
	for my $bytes (0, 7, 8, 24, 65535) {
		my $log = sample();
		my $event = pack('vCCvvVVQ<', 120, 19, 0xc0, 1, 0, 1, 4321, $Logs::T0) . 'g' x 16 . "\0" x 40 . pack('vvvv', $bytes, 6, 1, 3) . "\0" x 32;
		$log->{cpus}{0} = [[0, substr($event, 0, 120)], @{ $log->{cpus}{0} }];
		survives($log->bytes, "of $bytes bytes");
	}
};
subtest 'frames that are no whole number' => sub {
	for my $cut (1 .. 7) {
		my $log = sample();
		$log->event(of => 'stack', type => 32, at => 101, header => 'perfinfo',
			payload => pack('Q<VV', Logs::ticks(101), 4321, 1) . "\1" x (24 - $cut));
		$log->event(of => 'stack', type => 36, at => 301, header => 'perfinfo', payload => "\1" x (16 - $cut));
		$log->event(of => 'stack', type => 38, at => 301, header => 'perfinfo', payload => "\1" x (16 - $cut));
		survives($log->bytes, "$cut bytes short");
	}
};
subtest 'floods' => sub {
	my $log = sample();
	$log->define_key(at => 300 + $_ / 1000, key => $_ * 8, frames => [0x140003000 + $_]) for 1 .. 20_000;
	survives($log->bytes(each => 400), '20,000 keys');
	$log = sample();
	$log->alloc(at => 400, bytes => 1, addr => 0x30000 + 16 * $_, cpu => $_, frames => [0x140001000]) for 1 .. 3000;
	survives($log->bytes, '3,000 processors');
	$log = sample();
	$log->image(type => 10, at => 400 + $_, base => 0x7ff800000000 + ($_ << 16) * ($_ % 2), bytes => 0xffffffffff, path => 'x' x 300) for 1 .. 3000;
	survives($log->bytes, '3,000 modules that overlap');
	$log = sample();
	$log->image(type => 10, at => 400 + $_ / 100, base => 0x7ff800000000 + (($_ % 7) << 20), bytes => 0x1000, path => 'x') for 1 .. 40_000;
	$log->identity(at => 400 + $_ / 100, base => 0x7ff800000000, bytes => 1, timestamp => 1, name => 'x', guid => 'g' x 16, age => 1, pdb => 'x') for 1 .. 20_000;
	survives($log->bytes(each => 400), '40,000 modules in seven places');
	my $buffer = Logs->new->buffer(pack('vCCvCCVVQ<', 2, 2, 0xc0, 32, 33, 16, 1, 4321, 5) . "\0" x 8, cpu => 0);
	survives($whole{0} . join('', map { my $b = $buffer; substr($b, 0x28, 2) = pack('v', $_); substr($b, 4, 4) = pack('V', 16 << 20); substr($b, 0x34, 2) = pack('v', 0x60); $b } 1 .. 3000),
		'buffers of 16 MiB of 3,000 processors');
	is($refused > 0, 1, 'some are refused');
};
subtest 'addresses and sizes of any value' => sub {
	for my $value (0, 1, 0xfff, 1 << 47, (1 << 48) - 1, 1 << 48, 0xffffffffffffffff) {
		my $log = sample();
		$log->alloc(at => 400, bytes => $value, addr => 0x50000);
		$log->alloc(at => 401, bytes => 1, addr => $value, heap => $value);
		$log->free(at => 402, addr => $value);
		$log->realloc(at => 403, bytes => $value, addr => $value, old => 0x50000);
		$log->pages(at => 404, addr => $value, bytes => 0x1000, flags => 0x3000);
		$log->pages(at => 405, addr => 0x6000000, bytes => $value, flags => 0x1000);
		$log->pages(at => 406, addr => $value, bytes => $value, flags => 0x8000);
		survives($log->bytes, sprintf '%x', $value);
	}
};
subtest 'archives' => sub {
	spew("$dir/in.etl", $whole{0});
	system("cd '$dir' && zip -q whole.zip in.etl") == 0 or plan skip_all => 'no zip';
	my $zip = slurp("$dir/whole.zip");
	$read = 0;
	survives($zip, 'a sound one');
	is($read, 1, 'is read');
	survives(substr($zip, 0, $_), "cut at $_") for grep { $_ % 23 == 0 } 1 .. length($zip) - 1;
	srand 7;
	for my $round (1 .. 60) {
		my $damaged = $zip;
		substr($damaged, ($round % 2 ? length($zip) - 120 : 0) + int rand 110, 1) = chr int rand 256 for 1 .. 3;
		survives($damaged, "round $round");
	}
	is_deeply([files_in($temporary)], [], 'no temporary file stays');
};
done_testing;
