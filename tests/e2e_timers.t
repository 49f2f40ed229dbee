#!/usr/bin/perl
# What the README gives those who have no Task Scheduler works as typed: the
# commands make units that systemd takes, and the line of cron does its work in
# cron's environment. Nothing of this user's own timers and tables is touched.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();
my ($section) = slurp("$root/README.md") =~ /^## Dumps while nobody looks\n(.*?)^## /ms or die "README.md: no section\n";
my @blocks = map { s/^    //gmr } $section =~ /^((?:    .*\n)+)/gm;
my ($typed) = grep { /^mkdir/ } @blocks;
my ($cron) = grep { m{^\*/} } @blocks;
ok($typed && $cron, 'the README has a timer and a line of cron') or die "README.md: they are missing\n";

units();
like($cron, qr{^(?:\S+ ){5}cd /src/hsnap && [^%\n]+\n\z}, 'one line with five fields, and nothing that cron takes for a newline');
is(join(' ', (split ' ', $cron)[0 .. 4]), '*/30 * * * *', 'every half hour');
my $exec = (slurp("$dir/.config/systemd/user/hsnap-app.service") =~ /^ExecStart=(.*)$/m)[0] // '';
my ($from_cron) = $cron =~ /&& (.*)/;
is("$root/" . $from_cron =~ s/'//gr, $exec, 'the timer runs the same');
takes_dumps();
done_testing;

# The commands as typed, with another home, where starting the timer is only noted.
sub units {
	mkdir "$dir/bin" or die "$dir/bin: $!\n";
	spew("$dir/bin/systemctl", "#!/bin/sh\necho \"\$*\" >$dir/started\n");
	chmod 0755, "$dir/bin/systemctl";
	my $result = run(['sh', '-e', '-c', $typed], dir => $root, env => { HOME => $dir, PATH => "$dir/bin:$ENV{PATH}" });
	is($result->{status}, 0, 'the commands work') or diag($result->{err});
	is(slurp("$dir/started"), "--user enable --now hsnap-app.timer\n", 'the timer is started');
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

# The line of cron as cron runs it, of a sample, into a folder of ours.
sub takes_dumps {
	my $line = $cron =~ s/^(?:\S+ ){5}//r =~ s{/src/hsnap}{$root}r =~ s/app\.exe/leak_steady.exe/r
	    =~ s{build/(?=\{name|app\.log)}{Z:$dir/}gr;
	my @as_cron = ('env', '-i', 'PATH=/usr/bin:/bin', "HOME=$dir", 'sh', '-c', $line);
	is(run(\@as_cron)->{status}, 2, 'no such process: status 2');
	my $target = target("$root/build/win64/samples/leak_steady.exe", [], traced => 1);
	is($target->step, 1, 'a traced program runs');
	my $result = run(\@as_cron);
	is($result->{status}, 0, 'cron takes a dump') or diag($line, $result->{err});
	my @dumps = grep { /^leak_steady-$target->{pid}-\d{8}T\d{6}Z\.txt$/ } files_in($dir);
	is(scalar @dumps, 1, 'it is there') or diag(join ' ', files_in($dir));
	my @lines = split /\n/, -e "$dir/app.log" ? slurp("$dir/app.log") : '';
	cmp_ok(scalar(grep { /leak_steady/ } @lines), '>=', 2, 'both are in the log') or diag(join "\n", @lines);
	is($target->quit, 0, 'the program ends');
}
