#!/usr/bin/perl
# Random programs in ETW logs. Whatever the log's form is, live memory at any moment, by stack, must
# be that of a plain replay of the program. The same is tested inside the log of a real machine.
use strict;
use warnings;
no warnings 'portable'; # addresses have 64 bits
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP;
use Test::More;
use Hunt;
use Logs;

my $dir = fresh_dir();
my $hdiff = "$root/build/linux/hdiff";

my @forms = (
	{},
	{ header => 'compact', stacks => 'keys' },
	{ header => 'full', stacks => 'mixed', bits => 32 },
	{ header => 'instance', stacks => 'keys', pack => 3 },
	{ header => 'system', stacks => 'mixed', bits => 32, old => 1 },
	{ stacks => 'keys', pack => 2, each => 7 },
	{ stacks => 'full', pack => 4, each => 300 },
	{ stacks => 'full', unlogged => 1 },
	{ stacks => 'keys', clock => 2 },
	{ stacks => 'mixed', clock => 3 },
	{ stacks => 'none' },
);
my $seed = 0;
for my $form (@forms) {
	my $name = join(', ', map { "$_ $form->{$_}" } sort keys %$form) || 'plain';
	subtest $name => sub { check(play(++$seed, %$form), $name) };
}
subtest 'in the log of a real machine' => sub {
	my $real = data_file('etl/net.4.5.2.x64.etl.zip') or plan skip_all => 'the real log is not here';
	system('unzip', '-qo', $real, '-d', $dir) == 0 or plan skip_all => 'no unzip';
	my $bytes = slurp("$dir/net.4.5.2.x64.etl");
	my $payload = 72 + 32;
	local $Logs::T0 = unpack('Q<', substr($bytes, 72 + 16, 8));
	local $Logs::FREQUENCY = unpack('Q<', substr($bytes, $payload + 256, 8));
	local $Logs::START = unpack('Q<', substr($bytes, $payload + 264, 8));
	for my $stacks (qw(full keys mixed)) {
		check(play(++$seed, stacks => $stacks, into => $bytes), "stacks $stacks");
	}
};
done_testing;

sub play {
	my ($number, %form) = @_;
	srand $number;
	my $bits = $form{bits} // 64;
	local $Logs::FREQUENCY = 3_000_000_000 if ($form{clock} // 1) == 3;
	local $Logs::T0 = $Logs::START if ($form{clock} // 1) == 2;
	my $log = Logs->new(bits => $bits, old => $form{old}, pack => $form{pack}, clock => $form{clock} // 1);
	my ($low, $high) = $bits == 64 ? (0x140000000, 0x7ff800000000) : (0x400000, 0x77000000);
	my @modules = ([app => $low, 0x20000], [ntdll => $high, 0x100000], [plugin => $high + 0x400000, 0x8000]);
	my $cpu0 = $form{into} ? 40 : 0; # processors that no other event uses
	my %at = (cpu => $cpu0);
	$log->event(of => 'paths', type => 35, at => 0, cpu => $cpu0,
		payload => Logs::wide('\Device\Made\\') . Logs::wide('C:\\'));
	$log->process(type => 3, at => 0, image => 'app.exe', cpu => $cpu0);
	$log->image(type => $_ % 2 ? 3 : 4, at => $_ % 2 ? 1 : 9000, cpu => $cpu0, base => $modules[$_][1], bytes => $modules[$_][2],
		path => "\\Device\\Made\\$modules[$_][0]" . ($_ ? '.dll' : '.exe')) for 0 .. 2;
	my (@stacks, @names);
	for my $i (0 .. 19) {
		my @frames = map { $modules[rand @modules] } 0 .. int rand 8;
		my @offsets = map { int rand 0x8000 } @frames;
		push @stacks, [map { $frames[$_][1] + $offsets[$_] } 0 .. $#frames];
		$names[$i] = join ' ', map { sprintf '%s+%X', $frames[$_][0], $offsets[$_] } 0 .. $#frames;
	}
	# The program's state.
	my (%live, %pages, %sums, @moments, %keys, %key_of);
	my ($time, $next, $unknown) = (10, 0x10000, 0);
	my @with = map { $_ } 1 .. 4;
	my $give = sub { # adds the stack of the thread's event at $time
		my ($thread, $cpu, $stack) = @_;
		return 0 if ($form{stacks} // 'full') eq 'none' || rand() < 0.1;
		my $by_key = ($form{stacks} // 'full') eq 'keys' || (($form{stacks} // '') eq 'mixed' && rand() < 0.5);
		if (!$by_key) {
			$log->stack(at => $time, tid => $thread, cpu => $cpu, frames => $stacks[$stack]);
			return 1;
		}
		if (!defined $key_of{$stack}) { # a reused key is defined before its use
			my $key = 0x1000 + int rand 8;
			if (defined(my $other = $keys{$key})) {
				$log->define_key(at => $time - 0.4, key => $key, frames => $stacks[$other], type => 35, cpu => $cpu0);
				delete $key_of{$other};
			}
			$keys{$key} = $stack;
			$key_of{$stack} = $key;
		}
		$log->key(at => $time + 0.01, for => $time, part => 37, key => 0xf00, tid => $thread, cpu => $cpu) if rand() < 0.3;
		$log->key(at => $time + 0.1 + rand 0.4, for => $time, key => $key_of{$stack}, tid => $thread, cpu => $cpu0 + int rand 2);
		return 1;
	};
	for my $event (1 .. 600) {
		my ($thread, $cpu, $stack) = ($with[rand @with], $cpu0 + int rand 2, int rand @stacks);
		my @who = (at => $time, tid => $thread, cpu => $cpu, $form{header} ? (header => $form{header}) : ());
		my $what = rand;
		my @known = sort { $a <=> $b } keys %live;
		if ($what < 0.5 || !@known) {
			my ($addr, $bytes, $heap) = ($next += 0x100, 1 + int rand 5000, 0x10000 + 0x10000 * int rand 3);
			$log->alloc(@who, addr => $addr, bytes => $bytes, heap => $heap);
			$live{$addr} = [$bytes, $give->($thread, $cpu, $stack) ? $stack : -1, $heap];
		} elsif ($what < 0.75) {
			my $addr = $known[rand @known];
			$log->free(@who, addr => $addr, heap => $live{$addr}[2]);
			delete $live{$addr};
		} elsif ($what < 0.82) {
			my $addr = $known[rand @known];
			$log->realloc(@who, addr => $addr, old => $addr, bytes => my $bytes = 1 + int rand 9000, heap => $live{$addr}[2]);
			$live{$addr} = [$bytes, $give->($thread, $cpu, $stack) ? $stack : -1, $live{$addr}[2]];
		} elsif ($what < 0.88) {
			my ($old, $addr, $bytes) = ($known[rand @known], $next += 0x100, 1 + int rand 9000);
			my $heap = $live{$old}[2];
			if (!$form{unlogged}) {
				$log->alloc(@who, addr => $addr, bytes => $bytes, heap => $heap);
				$live{$addr} = [$bytes, $give->($thread, $cpu, $stack) ? $stack : -1, $heap];
				$log->free(@who, at => $time + 0.6, addr => $old, heap => $heap);
				$log->realloc(@who, at => $time + 0.7, addr => $addr, old => $old, bytes => $bytes, heap => $heap);
			} else {
				$log->realloc(@who, addr => $addr, old => $old, bytes => $bytes, heap => $heap);
				$live{$addr} = [$bytes, $give->($thread, $cpu, $stack) ? $stack : -1, $heap];
			}
			delete $live{$old};
		} elsif ($what < 0.90) {
			$log->free(@who, addr => 0x70000000 + $event * 16);
			$unknown++;
		} elsif ($what < 0.91) {
			my $heap = $live{ $known[0] }[2];
			$log->heap_event(35, @who, heap => $heap);
			delete @live{ grep { $live{$_}[2] == $heap } keys %live };
		} else { # virtual memory: pages 0 to 63 of one region
			my ($first, $count) = (int rand 48, 1 + int rand 16);
			my ($flags) = (0x2000, 0x1000, 0x3000, 0x4000, 0x8000)[rand 5];
			my @some = map { $_ + $first } 0 .. $count - 1;
			@some = grep { !$pages{$_} } @some if $flags & 0x2000;
			next if @some != $count;
			$log->pages(at => $time, tid => $thread, cpu => $cpu, addr => 0x30000000 + $first * 4096, bytes => $count * 4096,
				flags => $flags, header => 'perfinfo');
			my $by = $flags & 0xc000 ? -1 : $give->($thread, $cpu, $stack) ? $stack : -1;
			for my $page (@some) {
				if ($flags & 0x8000) { delete $pages{$page} }
				elsif ($flags & 0x4000) { $pages{$page} = 'reserved' if defined $pages{$page} }
				elsif ($flags & 0x1000) { $pages{$page} = $by if !defined $pages{$page} || $pages{$page} eq 'reserved' }
				else { $pages{$page} = 'reserved' }
			}
		}
		if ($form{into} || rand() < 0.3) { # events of other processes at the same addresses
			$log->alloc(@who, at => $time + 0.2, pid => 99, tid => 77, addr => $next, bytes => 1, heap => 0x10000);
			$log->free(@who, at => $time + 0.3, pid => 99, tid => 77, addr => $known[0], heap => 0x10000) if @known;
		}
		if ($event % 75 == 0) {
			my %sum;
			for my $block (values %live) {
				my $row = $sum{ $block->[1] < 0 ? '' : $names[$block->[1]] } //= [0, 0];
				$row->[0] += $block->[0];
				$row->[1]++;
			}
			my %committed;
			$committed{ $_ < 0 ? '' : $names[$_] } += 4096 for grep { $_ ne 'reserved' } values %pages;
			push @moments, [int($time) + 4, \%sum, \%committed];
			$time += 10;
		}
		$time += 1 + rand 5;
		$time = int($time * 100) / 100;
	}
	$log->define_key(at => $time + 50, key => $_, frames => $stacks[$keys{$_}], cpu => $cpu0) for sort keys %keys;
	$log->define_key(at => $time + 50, key => 0xf00, frames => [$bits == 64 ? 0xfffff80000001000 : 0x80001000], cpu => $cpu0);
	my $path = $log->write("$dir/$number.etl", each => $form{each} // 20, reverse => $number % 2, into => $form{into});
	return { path => $path, moments => \@moments, unknown => $unknown };
}

sub rows_of {
	my ($path, @options) = @_;
	my $run = run([$hdiff, '-o', 'json', '--no-symbols', '--sum', '--process', 4321, @options, $path]);
	my $json = eval { decode_json($run->{out}) };
	ok($json, "$path is read") or diag($run->{err});
	my %rows;
	for my $row (@{ $json->{rows} }) {
		my $frames = join ' ', map { $_->{module} ? "$_->{module}+$_->{offset}" : $_->{address} } @{ $row->{frames} };
		$rows{$frames}[0] += $row->{new}{bytes};
		$rows{$frames}[1] += $row->{new}{blocks};
	}
	return (\%rows, $json);
}

sub check {
	my ($made, $name) = @_;
	my $json;
	for my $moment (@{ $made->{moments} }) {
		my ($ms, $heap, $committed) = @$moment;
		(my $rows, $json) = rows_of("$made->{path}\@${ms}ms", map { ('--heap', $_) } '10000', '20000', '30000');
		is_deeply($rows, $heap, "blocks at $ms ms");
		($rows) = rows_of("$made->{path}\@${ms}ms", '--heap', 'virtual');
		is_deeply({ map { $_ => $rows->{$_}[0] } keys %$rows }, $committed, "pages at $ms ms");
	}
	my ($said) = map { /^(\d+) frees of blocks/ ? $1 : () } @{ $json->{inputs}[0]{warnings} };
	is($said, $made->{unknown}, 'frees of what was there before are counted');
}
