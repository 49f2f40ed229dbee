#!/usr/bin/perl
# The replacements for Task Scheduler in docs/wine-and-systemd.md work as typed. The commands make
# units that systemd accepts, and cron's line works in cron's environment. The test does not touch
# this user's own timers and tables.
use strict;
use warnings;
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();
my ($section) = slurp("$root/docs/wine-and-systemd.md") =~ /^## Timers\n(.*)/ms or die "docs/wine-and-systemd.md: no section\n";
my @blocks = map { s/^    //gmr } $section =~ /^((?:    .*\n)+)/gm;
my ($typed) = grep { /^mkdir/ } @blocks;
my ($cron) = grep { m{^\*/} } @blocks;
ok($typed && $cron, 'it has a timer and a line of cron') or die "docs/wine-and-systemd.md: they are missing\n";

units();
like($cron, qr{^(?:\S+ ){5}cd /src/hsnap && [^%\n]+\n\z}, 'one line with five fields, and nothing that cron takes for a newline');
is(join(' ', (split ' ', $cron)[0 .. 4]), '*/30 * * * *', 'every half hour');
runs_the_same();
takes_dumps();
done_testing;

# Runs the commands as typed, with another home and in a folder whose name has a blank. Starting the
# timer is replaced by noting it.
sub units {
	mkdir "$dir/$_" or die "$dir/$_: $!\n" for 'bin', 'a checkout';
	symlink "$root/setup", "$dir/a checkout/setup" or die "$dir: $!\n";
	for my $program ('systemctl', 'loginctl') {
		spew("$dir/bin/$program", "#!/bin/sh\necho \"$program \$*\" >>$dir/started\n");
		chmod 0755, "$dir/bin/$program";
	}
	my $result = run(['sh', '-e', '-c', $typed], dir => "$dir/a checkout",
		env => { HOME => $dir, PATH => "$dir/bin:$ENV{PATH}" });
	is($result->{status}, 0, 'the commands work') or diag($result->{err});
	is(slurp("$dir/started"), "systemctl --user enable --now hsnap-app.timer\nloginctl enable-linger\n",
		'the timer is started, and lives on when nobody is logged in');
	my $units = "$dir/.config/systemd/user";
	is_deeply([files_in($units)], ['hsnap-app.service', 'hsnap-app.timer'], 'there are two units');
	my $calendar = slurp("$units/hsnap-app.timer");
	like($calendar, qr/^\[Timer\]\nOnCalendar=\S+\n/, 'one of them has a time');
	SKIP: {
		skip 'there is no systemd-analyze here', 2 if run(['systemd-analyze', '--version'])->{status};
		my $good = verify(map { "$units/$_" } files_in($units));
		is($good->{status}, 0, 'systemd takes them') or diag($good->{err});
		my $wrong = spew("$dir/wrong.timer", $calendar =~ s/^OnCalendar=.*/OnCalendar=*:0-x/mr);
		isnt(verify($wrong)->{status}, 0, 'and not one without a time');
	}
}

sub verify { return run(['systemd-analyze', 'verify', '--user', '--man=no', @_], env => { XDG_RUNTIME_DIR => $dir }) }

# The timer does what cron does: it runs in the checkout, without the tests' time limit. The service
# must not end Wine's server, nor the programs that it serves.
sub runs_the_same {
	my $service = slurp("$dir/.config/systemd/user/hsnap-app.service");
	my %of = $service =~ /^(\w+)=(.*)$/mg;
	is($of{KillMode}, 'process', 'when the service is done, what else runs in Wine goes on');
	is($of{Environment}, 'HSNAP_WINE_TIMEOUT=0', 'a dump may take as long as it takes');
	is($of{WorkingDirectory}, "$dir/a checkout", 'the timer works in the checkout');
	my $expected = "cd $of{WorkingDirectory} && $of{Environment} " . ($of{ExecStart} // '') =~ s{"\Q$of{WorkingDirectory}\E/setup/wine"}{setup/wine}r;
	is($cron =~ s/^(?:\S+ ){5}//r =~ s{/src/hsnap}{$of{WorkingDirectory}}r =~ s/'//gr, "$expected\n", 'cron does the same');
}

# Runs cron's line for a sample as cron does, and writes into a folder of this test. The sample has
# a unique name.
sub takes_dumps {
	my $name = "timers$$";
	copy("$root/build/win64/samples/leak_steady.exe", "$dir/$name.exe") or die "$!\n";
	my $line = $cron =~ s/^(?:\S+ ){5}//r =~ s{/src/hsnap}{'$root'}r =~ s/app\.exe/$name.exe/r
	    =~ s{build/(?=\{name|app\.log)}{Z:$dir/}gr;
	my @as_cron = ('env', '-i', 'PATH=/usr/bin:/bin', "HOME=$dir", 'sh', '-c', $line);
	is(run(\@as_cron)->{status}, 2, 'no such process: status 2');
	my $target = target("$dir/$name.exe", [], traced => 1);
	is($target->step, 1, 'a traced program runs');
	my $result = run(\@as_cron);
	is($result->{status}, 0, 'cron takes a dump') or diag($line, $result->{err});
	my @dumps = grep { /^$name-$target->{pid}-\d{8}T\d{6}Z\.txt$/ } files_in($dir);
	is(scalar @dumps, 1, 'it is there') or diag(join ' ', files_in($dir));
	my @lines = split /\n/, -e "$dir/app.log" ? slurp("$dir/app.log") : '';
	cmp_ok(scalar(grep { /$name/ } @lines), '>=', 2, 'both are in the log') or diag(join "\n", @lines);
	is($target->quit, 0, 'the program ends');
}
