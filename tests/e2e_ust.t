#!/usr/bin/perl
# hsnap ust sets one bit in the registry. Programs that start afterwards have the flag, other
# programs' settings stay, and the previous state is restored to the byte. The registry is that of
# this test's Wine prefix. reg.exe verifies it.
use strict;
use warnings;
use Encode qw(decode);
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();
my $image = "flagged$$.exe"; # a unique name
my $exe = "$dir/$image";
my $root_key = 'HKLM\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\\Image File Execution Options';
my $key = "$root_key\\$image";
copy("$root/build/win64/targets/own_flags.exe", $exe) or die "own_flags.exe: $!\n";

# One Windows process keeps running, so that Wine's server does too.
my $stays = target($exe);
is(flags($stays), '00000000', 'at first a program has no flags');
like(ust('on', $image)->{out}, qr/^Wine records no stacks.*'hsnap run'/m, 'under Wine a message states that the flag does nothing');
is(ust('off', $image)->{status}, 0, 'off again');
my $first = exported();

# Cleans up, even if a test dies.
END {
	local $?;
	run([wine('reg', 'delete', $key, '/f')], limit => 20) if $key && has_key();
}

subtest 'names' => \&names;
subtest 'usage' => \&usage;
subtest 'no rights' => \&no_rights;
subtest 'an image nobody knows' => \&fresh;
subtest 'flags that others set' => \&others;
subtest 'a flag as text, with more in the key' => \&text_and_more;
subtest 'practice 7: two at once' => \&two_at_once;
is(exported(), $first, 'at the end the registry is as it was');
is($stays->quit, 0, 'the first program ends');
done_testing;

# Reads the program's output. Afterwards the program waits.
sub flags {
	my ($target) = @_;
	my ($flags) = (join ' ', $target->line // '', $target->line // '') =~ /^flags ([0-9A-F]{8}) heaps \d+$/;
	$target->step;
	return $flags // 'none';
}

sub started_flags {
	my $target = target($exe);
	my $flags = flags($target);
	is($target->quit, 0, 'it ends');
	return $flags;
}

sub ust { return hsnap('ust', @_) }

sub reg {
	my (@args) = @_;
	my $result = run([wine('reg', @args)]);
	is($result->{status}, 0, "reg $args[0]") or diag($result->{out}, $result->{err});
	return $result->{out};
}

sub has_key { return run([wine('reg', 'query', $key)])->{status} == 0 }

# Returns the whole key as reg.exe writes it, except for the values of tests/windows/umdh.t, which
# may run at the same time.
sub exported {
	my $file = "$dir/export.reg";
	unlink $file;
	reg('export', $root_key, win($file), '/y');
	return decode('UTF-16', slurp($file)) =~ s/^\[[^\]]*\\leak\d+\.exe\]\R[^\[]*//mgr;
}

# Returns the lines of this test's key: NAME => [TYPE, VALUE].
sub values_now {
	my %values;
	for (split /\r?\n/, run([wine('reg', 'query', $key)])->{out}) {
		$values{$1} = [$2, $3] if /^\s+(\S+)\s+(REG_\w+)\s+(.*?)\s*$/;
	}
	return \%values;
}

sub names {
	for my $name ('..\\app.exe', 'C:\\app.exe', 'dir/app.exe', '*.exe', '..', 'app', '') {
		my $what = "refused: '$name'";
		check_error(ust('on', $name), 'hsnap', $what, 'is not the name of an image', 'app.exe');
	}
	is(exported(), $first, 'nothing was written');
}

sub usage {
	check_error(ust(), 'hsnap', 'nothing asked', 'on, off or show');
	check_error(ust('maybe', $image), 'hsnap', 'no such word', 'maybe');
	check_error(ust('on'), 'hsnap', 'no image', 'image');
	check_error(ust('on', $image, $image), 'hsnap', 'two images', 'one image');
	for my $db (0, 4096, -1, '12x', '99999999999999999999') {
		check_error(ust('on', $image, '--db-mb', $db), 'hsnap', "--db-mb $db", '1 to 4095');
	}
	check_error(ust('off', $image, '--db-mb', 5), 'hsnap', '--db-mb with off', '--db-mb');
	is(exported(), $first, 'nothing was written');
}

# A read-only key simulates the rights of a user who is not an administrator.
sub no_rights {
	for my $mode ([], ['read']) {
		my $locked = target("$root/build/win64/targets/lock_key.exe", [$image, @$mode]);
		is($locked->step, 1, "a key is locked @$mode");
		my @denied = qw(on);
		push @denied, qw(off show) if !@$mode;
		check_error(ust($_, $image), 'hsnap', $_, $image, 'no right', 'administrator') for @denied;
		if (@$mode) {
			unlike(ust('on', $image)->{err}, qr/view is changed/, 'nothing is left half done');
			like(ust('show', $image)->{out}, qr/ust is off in .* no GlobalFlag\r?$/m, 'show may look');
			check_ok(ust('off', $image), 'off has nothing to do');
		}
		is(ust('show')->{status}, 0, 'show without an image passes it by');
		is($locked->quit, 0, 'the key goes');
	}
	is(exported(), $first, 'nothing was written');
}

sub fresh {
	my $on = ust('on', $image);
	check_ok($on, 'on');
	like($on->{out}, qr/^ust is on for \Q$image\E: .*started from now on/, 'which is reported');
	like($on->{out}, qr/^running now: pid $stays->{pid}; start it again/m, 'and who runs without it');
	is_deeply(values_now(), { GlobalFlag => ['REG_DWORD', '0x1000'] }, 'one value, a number');

	my $target = target($exe);
	is(flags($target), '00001000', 'a program started now finds the bit in itself');
	my $ps = hsnap('ps', $image);
	is($ps->{status}, 0, 'ps');
	is_deeply([sort { $a->[0] <=> $b->[0] } map { [$1, $2] if /^\s*(\d+)\s+64\s+\d+\s+(\w+)\s.*\s\Q$image\E  / } grep { !/pid bits/ }
			split /\n/, $ps->{out}],
		[sort { $a->[0] <=> $b->[0] } [$stays->{pid}, 'none'], [$target->{pid}, 'ust']],
		'ps sees it in the one and not in the other');
	like($ps->{err}, qr/^hsnap: ust is on for .*\Q$image\E.*'hsnap ust off/, 'and reminds');
	is($target->quit, 0, 'it ends');

	my $show = ust('show', $image);
	check_ok($show, 'show');
	like($show->{out}, qr/^\Q$image\E: ust is on in .* GlobalFlag 00001000 ust\r?$/m, 'show');
	like($show->{out}, qr/^ust is on for .*\Q$image\E/m, 'show reminds');
	check_ok(ust('off', uc $image), 'off, the name in capitals');
	is(exported(), $first, 'the registry is as it was');
	is(started_flags(), '00000000', 'a program started now has no flags');
	unlike(ust('show')->{out}, qr/\Q$image\E/, 'nothing to remind of');
	check_ok(ust('off', $image), 'off once more');
	is(exported(), $first, 'changes nothing');
}

sub others {
	reg('add', $key, '/v', 'GlobalFlag', '/t', 'REG_DWORD', '/d', '0x70', '/f');
	my $before = exported();
	check_ok(ust('on', $image), 'on');
	is(started_flags(), '00001070', 'the program has all of them');
	like(ust('show', $image)->{out}, qr/GlobalFlag 00001070 htc hfc hpc ust\r?$/m, 'show names them');
	check_ok(ust('on', $image), 'on again');
	check_ok(ust('off', $image), 'off');
	is(exported(), $before, 'what others set is there as it was');
}

# One process sets the flag while another one removes it. Whichever comes last, neither fails, and
# both views of the registry agree. Under Wine the views are one key; tests/unit/test_ifeo.c has
# two.
sub two_at_once {
	my @wrong;
	for my $round (1 .. 6) {
		my @pids = map { Hunt::start([wine("$root/build/win64/hsnap.exe", 'ust', $_, $image)]) }
		    $round % 2 ? qw(on off) : qw(off on);
		my @statuses = map { Hunt::finish($_) } @pids;
		my @views = map { flag_in($_) } 64, 32;
		push @wrong, "round $round: statuses @statuses, flags @views"
		    if grep({ $_ } @statuses) || $views[0] ne $views[1] || $views[0] !~ /^(?:none|0x1000)$/;
	}
	is_deeply(\@wrong, [], 'both views agree, and have the flag or no flag');
	check_ok(ust('off', $image), 'off');
	is(exported(), $first, 'and nothing is left');
}

sub flag_in {
	my ($bits) = @_;
	my $out = run([wine('reg', 'query', $key, '/v', 'GlobalFlag', "/reg:$bits")])->{out};
	return $out =~ /GlobalFlag\s+REG_DWORD\s+(\S+)/ ? $1 : 'none';
}

sub text_and_more {
	reg('add', $key, '/v', 'GlobalFlag', '/t', 'REG_SZ', '/d', '4096', '/f');
	my $digits = exported();
	check_error(ust($_, $image), 'hsnap', "$_, with digits that can mean two numbers", 'GlobalFlag', "'4096'",
		'Image File Execution Options', 'starts with 0x') for qw(on off);
	like(ust('show', $image)->{out}, qr/a GlobalFlag that is not a number\r?$/m, 'show reports it');
	is(exported(), $digits, 'nothing was written');
	reg('add', $key, '/v', 'GlobalFlag', '/t', 'REG_SZ', '/d', '0x00000070', '/f');
	reg('add', $key, '/v', 'StackTraceDatabaseSizeInMb', '/t', 'REG_DWORD', '/d', '16', '/f');
	reg('add', $key, '/v', 'Debugger', '/t', 'REG_SZ', '/d', '', '/f');
	reg('add', "$key\\sub", '/f');
	check_ok(ust('on', $image, '--db-mb', 64), 'on with --db-mb');
	my $values = values_now();
	is_deeply($values->{GlobalFlag}, ['REG_DWORD', '0x1070'], 'the text is a number now');
	is_deeply($values->{StackTraceDatabaseSizeInMb}, ['REG_DWORD', '0x40'], '--db-mb is there');
	like(ust('show', $image)->{out}, qr/GlobalFlag 00001070 .*, database of 64 MB/, 'show prints both');
	check_ok(ust('off', $image), 'off');
	is_deeply(values_now(), { GlobalFlag => ['REG_DWORD', '0x70'], Debugger => ['REG_SZ', ''] },
		'the flag is as it was, as a number, and the size is gone');
	reg('query', "$key\\sub");
	reg('delete', $key, '/f');
}
