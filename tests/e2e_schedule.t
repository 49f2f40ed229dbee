#!/usr/bin/perl
# hsnap schedule. A task's XML is the same on each system, is valid by a schema made from
# Microsoft's documentation, and has the requested values when an XML parser reads it. The task's
# command is run under Wine as a task is, with an empty environment. Wine's own scheduler registers
# and removes tasks but never runs them, and hsnap reports that.
use strict;
use warnings;
use Encode qw(decode encode);
use File::Copy qw(copy);
use File::Path qw(remove_tree);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();
my $schema = "$root/tests/schedule/task.xsd";
my $store = ($ENV{HSNAP_WINE_PREFIX} // "$root/build/wine") . "/drive_c/windows/system32/tasks/hsnap";
my $exe = "$root/build/win64/samples/leak_steady.exe";
my $name = 'leak_steady.exe';
my $bare = "$root/build/win64/targets/no_environment.exe";
my $own = win("$root/build/win64/hsnap.exe");

# Settings of every task, as Microsoft documents settingsType. A task runs on batteries too,
# whatever the network and idle state are. It never runs twice at a time. After a missed time it
# runs as soon as possible.
my %settings = (
	AllowStartOnDemand => 'true', MultipleInstancesPolicy => 'IgnoreNew',
	DisallowStartIfOnBatteries => 'false', StopIfGoingOnBatteries => 'false',
	AllowHardTerminate => 'true', StartWhenAvailable => 'true', RunOnlyIfNetworkAvailable => 'false',
	WakeToRun => 'false', 'Settings/Enabled' => 'true', Hidden => 'false', Priority => '5', RunOnlyIfIdle => 'false',
	'Triggers//Enabled' => undef,    # undef: enabled by default
);
my $program = 'C:\Program Files\hsnap & Co\hsnap.exe';

# Cleans up, even if a test dies.
END {
	local $?;
	schedule('remove', $name) if defined $store && -e "$store/$name";
}

asks_and_answers();
schema_can_refuse();
usage();
wines_scheduler();
life_of_a_task();
no_rights();
done_testing;

# ---------------------------------------------------------------- the XML

# Pairs of options and elements that the task must have; undef: the element must be absent.
sub asks_and_answers {
	my @start = ('--start', '2026-11-20T10:00', '--program', $program);
	my %system = (UserId => 'S-1-5-18', LogonType => undef, RunLevel => 'HighestAvailable', BootTrigger => undef, %settings);
	my @cases = (
		['plain', ['app.exe', '--every', '30m', '--dir', 'D:\dumps', @start], { %system,
			StartBoundary => '2026-11-20T10:00:00', Interval => 'PT30M', ExecutionTimeLimit => 'PT1H',
			Command => qq("$program"), WorkingDirectory => 'C:\Program Files\hsnap & Co',
			Arguments => '-pn app.exe -f "D:\dumps\{name}-{pid}-{time}.txt" --by-stack --keep 100 --all '
			    . '--log "D:\dumps\app.exe.log"' }],
		['umlauts, blanks, &, quotes and braces',
			["Gr\x{f6}\x{df}e & Co's.exe", '--every', '1d12h', '--keep', '7', '--gzip', '--full', '--at-start',
			    '--max-bytes', '2G', '--time-limit', '2h', '--dir', "D:\\\x{e4} {&} '\x{1f600}\\", @start],
			{ %system, Interval => 'P1DT12H', ExecutionTimeLimit => 'PT2H', Delay => 'PT1M', BootTrigger => '',
			    Arguments => "-pn \"Gr\x{f6}\x{df}e & Co's.exe\" -f \"D:\\\x{e4} {{&} '\x{1f600}\\{name}-{pid}-{time}.txt\" "
			    . "--gzip --keep 7 --max-bytes 2G --all --log \"D:\\\x{e4} {&} '\x{1f600}\\Gr\x{f6}\x{df}e & Co's.exe.log\"" }],
		['a root, UTC', ['app.exe', '--every', '31d', '--dir', 'E:/', @start[2, 3], '--start', '2026-11-20T10:00:30Z'],
			{ %system, Interval => 'P31D', ExecutionTimeLimit => 'PT1H', StartBoundary => '2026-11-20T10:00:30Z',
			    Arguments => '-pn app.exe -f "E:\{name}-{pid}-{time}.txt" --by-stack --keep 100 --all '
			    . '--log "E:\app.exe.log"' }],
	);
	for my $case (@cases) {
		my ($what, $args, $expected) = @$case;
		my @args = ('schedule', 'add', '--print-xml', map { encode('UTF-8', $_) } @$args);
		my %by = (linux => run(["$root/build/linux/hsnap", @args]), windows => hsnap(@args));
		check_ok($by{$_}, "$what: $_") for sort keys %by;
		ok($by{linux}{out} eq $by{windows}{out}, "$what: the same bytes from both");
		is(substr($by{linux}{out}, 0, 2), "\xff\xfe", "$what: UTF-16, little-endian, with a mark");
		my $file = spew("$dir/task.xml", $by{linux}{out});
		is(validate($file), '', "$what: the schema takes it");
		is_deeply({ map { $_ => scalar value($file, $_) } keys %$expected }, $expected, "$what: an XML parser reads it");
	}
	my $to_file = run(["$root/build/linux/hsnap", qw(schedule add app.exe --every 30m --dir D:\d --print-xml -f), "$dir/own.xml", @start]);
	check_ok($to_file, 'to a file');
	is($to_file->{out}, '', 'to a file: nothing else');
	my $to_stdout = run(["$root/build/linux/hsnap", qw(schedule add app.exe --every 30m --dir D:\d --print-xml), @start]);
	ok(slurp("$dir/own.xml") eq $to_stdout->{out}, 'to a file: the same bytes');
	my $user = hsnap(qw(schedule add app.exe --every 1h --dir D:\d --as-user --print-xml));
	my $file = spew("$dir/task.xml", $user->{out});
	is(validate($file), '', 'as the user: the schema takes it');
	like(value($file, 'UserId'), qr/^S-1-5-21(-\d+)+$/, 'as the user: by his SID');
	is(value($file, 'LogonType'), 'S4U', 'as the user: without a password');
	is(value($file, 'Command'), decode('UTF-8', qq("$own")), 'the program is this one by its full path');
}

# Returns '' or xmllint's message.
sub validate {
	my ($file) = @_;
	my $result = run(['xmllint', '--noout', '--nonet', '--schema', $schema, $file]);
	return $result->{status} ? "status $result->{status}: $result->{err}" : '';
}

# Returns the text of the only element with this name or path, as an XML parser reads it, or undef
# if it is absent.
sub value {
	my ($file, $element) = @_;
	my $path = "//*[local-name()='Task']//" . $element =~ s{(\w+)}{*[local-name()='$1']}gr;
	my $count = run(['xmllint', '--xpath', "count($path)", $file])->{out} =~ s/\s+//gr;
	return if !$count;
	return "$count of them" if $count != 1;
	my $text = decode('UTF-8', run(['xmllint', '--xpath', "string($path)", $file])->{out});
	chomp $text;
	return $element eq 'BootTrigger' ? '' : $text;
}

# Check the schema too: a schema that accepts everything would prove nothing.
sub schema_can_refuse {
	my $xml = decode('UTF-16', run(["$root/build/linux/hsnap", qw(schedule add app.exe --every 30m --dir D:\d --at-start
		--start 2026-11-20T10:00 --print-xml), '--program', $program])->{out});
	my @wrong = (
		['no actions', qr{<Actions.*</Actions>\r?\n}s, ''],
		['no command', qr{<Command>.*?</Command>}, ''],
		['two commands', qr{(<Command>.*?</Command>)}, '$1$1'],
		['an empty command', qr{<Command>.*?</Command>}, '<Command></Command>'],
		['a command that is too long', qr{<Command>}, '<Command>' . 'x' x 260],
		['arguments before the command', qr{(<Command>.*?</Command>)\s*(<Arguments>.*?</Arguments>)}s, '$2$1'],
		['actions before settings', qr{(<Settings>.*</Settings>)\s*(<Actions.*</Actions>)}s, '$2$1'],
		['a repetition before the start', qr{(<StartBoundary>.*?</StartBoundary>)\s*(<Repetition>.*?</Repetition>)}s, '$2$1'],
		['a delay in a trigger by time', qr{</TimeTrigger>}, '<Delay>PT1M</Delay></TimeTrigger>'],
		['a span that is none', qr{PT30M</Interval>}, '30M</Interval>'],
		['half a minute', qr{PT30M</Interval>}, 'PT30S</Interval>'],
		['more than a month', qr{PT30M</Interval>}, 'P32D</Interval>'],
		['a limit that is no span', qr{<ExecutionTimeLimit>.*?<}, '<ExecutionTimeLimit>1h<'],
		['a day that is none', qr{2026-11-20T}, '2026-11-31T'],
		['a truth that is none', qr{<Hidden>false}, '<Hidden>no'],
		['a policy that is none', qr{IgnoreNew}, 'Ignore'],
		['a principal that is none', qr{Context="Author"}, 'Context="Nobody"'],
		['a level that is none', qr{HighestAvailable}, 'Highest'],
		['no account name', qr{S-1-5-18}, ''],
		['another namespace', qr{2004/02}, '2004/03'],
		['an element that is none', qr{<Hidden>}, '<Visible>true</Visible><Hidden>'],
		['a priority that is none', qr{<Priority>5}, '<Priority>11'],
		['a bare ampersand', qr{&amp;}, '&'],
	);
	my @taken;
	for my $case (@wrong) {
		my ($what, $pattern, $by) = @$case;
		my $text = $xml;
		my $done = $text =~ s{$pattern}{ my ($one, $two) = ($1, $2); $by =~ s/\$([12])/$1 == 1 ? $one : $two/ger }e;
		push @taken, "$what: not done" if !$done;
		push @taken, $what if !validate(spew("$dir/wrong.xml", encode('UTF-16', $text)));
	}
	is_deeply(\@taken, [], scalar(@wrong) . ' wrong tasks are refused by the schema');
	is(validate(spew("$dir/right.xml", encode('UTF-16', $xml))), '', 'and the right one is not');
}

# ---------------------------------------------------------------- usage

sub usage {
	my @for = ('--program', $program);
	my @add = ('schedule', 'add', 'app.exe', '--every', '30m', '--dir', 'D:\d');
	my @cases = (
		['no verb', ['schedule'], 'add or remove'],
		['another verb', ['schedule', 'delete', 'app.exe'], 'add or remove'],
		['a list', ['schedule', 'list'], 'schtasks /query /tn \\hsnap\\ /v /fo list'],
		['a run', ['schedule', 'run', 'app.exe'], 'schtasks /run /tn \\hsnap\\NAME'],
		['no name', ['schedule', 'add', '--every', '30m', '--dir', 'D:\d'], 'NAME'],
		['two names', [@add, 'b.exe'], 'one name'],
		['a path', ['schedule', 'add', 'C:\app.exe', '--every', '30m', '--dir', 'D:\d', @for], 'file name alone'],
		['no interval', ['schedule', 'add', 'app.exe', '--dir', 'D:\d', @for], '--every', 'must be given'],
		['no folder', ['schedule', 'add', 'app.exe', '--every', '30m', @for], '--dir', 'must be given'],
		['seconds', [@add, @for, '--every', '90s'], '90s', 'whole minutes from 1m to 31d'],
		['a variable', [@add, @for, '--dir', 'D:\%TEMP%'], '%TEMP%', 'variables'],
		['an output without its XML', [@add, @for, '-f', 'task.xml'], 'task.xml', '--print-xml'],
		['none to keep', [@add, @for, '--keep', '0'], '--keep'],
		['an option of add', ['schedule', 'remove', 'app.exe', '--keep', '3'], '--keep applies only to add'],
		['an option that is none', [@add, '--often'], '--often', 'no such option'],
	);
	my $linux = "$root/build/linux/hsnap";
	for my $case (@cases) {
		my ($what, $args, @words) = @$case;
		check_error(run([$linux, @$args]), 'hsnap', $what, @words);
	}
	check_error(hsnap(@add, '--keep', '0'), 'hsnap', 'under Wine too', '--keep');
	check_error(run([$linux, @add, '--print-xml']), 'hsnap', 'on Linux without a program', '--program');
	check_error(run([$linux, @add, '--program', $program]), 'hsnap', 'on Linux', 'needs Windows', '--print-xml');
	my $as_user = run([$linux, @add, '--print-xml', '--program', $program, '--as-user']);
	check_error($as_user, 'hsnap', 'as a user, on Linux', '--as-user', 'knows the user');
	unlike($as_user->{err}, qr/minidump/, 'as a user, on Linux: no remedy for something else');
	check_error(run([$linux, 'schedule', 'remove', 'app.exe']), 'hsnap', 'removing on Linux', 'needs Windows');
	check_error(run([$linux, @add, '--program', $program, '--dir', 'dumps', '--print-xml']), 'hsnap',
		'a folder of Linux', 'full path');
}

# ---------------------------------------------------------------- under Wine

sub schedule { return hsnap('schedule', @_) }

# Returns the program and the arguments of the image's task, from its XML.
sub action {
	my ($image, @options) = @_;
	my $made = hsnap('schedule', 'add', $image, '--every', '30m', @options, '--print-xml');
	check_ok($made, "the task of $image");
	my $file = spew("$dir/action.xml", $made->{out});
	my @words = map { s/"//gr } (encode('UTF-8', value($file, 'Arguments')) =~ /((?:[^ "]|"[^"]*")+)/g);
	return (encode('UTF-8', value($file, 'Command')) =~ s/"//gr, @words);
}

sub dumps { return grep { /\.txt$/ } files_in($_[0]) }

sub stored { return -d $store ? files_in($store) : () }

# Uses the options of schtasks.exe, which Wine has too.
sub wines_scheduler {
	my $folder = "$dir/new/d\xc3\xbcmps & {more}";
	my @add = ('add', $name, '--every', '30m', '--dir', win($folder));
	my @wine = ("Wine's Task Scheduler", '--print-xml');
	schedule('remove', $name); # removes the task of a run that died
	check_error(schedule('remove', $name), 'hsnap', 'removing what is not there', $name, 'no such task');
	check_error(schedule(@add, '--program', 'C:\nowhere\hsnap.exe'), 'hsnap', 'a program that is not there', 'nowhere');

	check_error(schedule(@add), 'hsnap', 'Wine: add', $name, @wine);
	is_deeply([stored()], [], 'Wine: and nothing is left in the scheduler');
	ok(-d $folder, 'the folder is made');
	is((stat "$dir/new")[2] & 07 | (stat $folder)[2] & 07, 0, 'what of folders is made for the system, others have no rights to');
	chmod 0777, $folder;
	my ($warning, @more) = split /\n/, schedule(@add)->{err};
	like($warning, qr/\A[^\n]*\Q@{[win($folder)]}\E: warning: every user /, 'a folder that everybody may write into is warned of');
	is(scalar @more, 1, 'and of nothing else');
	chmod 0755, $folder;

	check_ok(hsnap('schedule', @add, '--print-xml', '-f', win("$dir/own.xml")), 'a file for schtasks');
	my $created = run([wine('schtasks', '/create', '/xml', win("$dir/own.xml"), '/tn', "\\hsnap\\$name")]);
	is($created->{status}, 0, 'schtasks takes it');
	is_deeply([stored()], [$name], 'the scheduler has it');
	check_error(schedule(@add), 'hsnap', 'adding it again', $name, 'already', 'remove', '--replace');
	my $removed = schedule('remove', $name);
	check_ok($removed, 'remove');
	like($removed->{out}, qr/^\Q$name\E: the task was removed/, 'remove reports what it did');
	is_deeply([stored()], [], 'nothing is left in the scheduler');
}

sub life_of_a_task {
	my $folder = "$dir/new/d\xc3\xbcmps & {more}";
	my @action = action($name, '--keep', '2', '--dir', win($folder));
	is($action[0], $own, 'the task runs this hsnap');
	my $flags = image_flags();
	runs_of_a_task($folder, @action);
	is(image_flags(), $flags, 'practice 7: runs of a task leave the Image File Execution Options as they were');

	remove_tree($folder);
	my $nowhere = run([wine(@action)]);
	check_error($nowhere, 'hsnap', 'its folder is gone', win($folder));
}

# Returns all settings that the system applies when it starts programs, as reg.exe writes them.
sub image_flags {
	my $file = "$dir/flags.reg";
	unlink $file;
	my $export = run([wine('reg', 'export',
		'HKLM\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\\Image File Execution Options', win($file), '/y')]);
	is($export->{status}, 0, 'reg export');
	return -s $file ? slurp($file) : 'nothing was exported';
}

# hsnap may not open the process. The task's log has the error and the remedy.
sub no_rights {
	my $image = "closed$$.exe";
	my $folder = "$dir/closed";
	copy("$root/build/win64/targets/odd.exe", "$dir/$image") or die "$image: $!\n";
	mkdir $folder or die "$folder: $!\n";
	my @action = action($image, '--dir', win($folder));
	my $closed = target("$dir/$image", ['closed']);
	is($closed->step, 1, 'it runs');
	my $result = run([wine(@action)]);
	is($result->{status}, 2, 'practice 6: no right to read the process: status 2') or diag($result->{err}, $result->{out});
	my $log = "$folder/$image.log";
	my @lines = grep { /no right/ } split /\n/, -e $log ? slurp($log) : '';
	is(scalar @lines, 1, 'practice 6: one line in the log') or diag($result->{err});
	like($lines[0] // '', qr/pid $closed->{pid}: no right to read the process; run hsnap as .*administrator/,
		'practice 6: it names the process and the remedy');
	is_deeply([dumps($folder)], [], 'practice 6: no dump');
	is($closed->quit, 0, 'it ends');
}

# The helper itself has this test's variables. The programs that it starts have only Wine's and the
# system's variables.
sub no_environment {
	local $ENV{HSNAP_MARK} = 'mine';
	my $all = run([wine($bare)]);
	check_ok($all, 'a program as usual');
	like($all->{out}, qr/^HSNAP_MARK\r?$/m, 'a program as usual has our environment');
	my $variables = run([wine($bare, win($bare))]);
	check_ok($variables, 'a program as a task has it');
	like($variables->{out}, qr/^SystemRoot\r?$/mi, 'it prints its variables') or diag($variables->{out});
	unlike($variables->{out}, qr/^(?:HSNAP_MARK|PATH|TEMP|TMP|USERPROFILE|APPDATA)\r?$/mi, 'practice 5: a task has no environment')
	    or diag($variables->{out});
}

sub runs_of_a_task {
	my ($folder, @action) = @_;
	my $run_bare = sub { return run([wine($bare, @action)]) };
	no_environment();

	my $log = "$folder/$name.log";
	my $nobody = $run_bare->();
	is($nobody->{status}, 2, 'no such process: status 2') or diag($nobody->{err});
	is_deeply([dumps($folder)], [], 'no such process: no dump');
	like(-e $log ? slurp($log) : '', qr/^\d{4}-\d\d-\d\dT[\d:.]+Z .*\Q$name\E.*\n\z/, 'no such process: a line in the log');

	spew("$folder/notes.txt", "mine\n");
	my $target = target($exe, [], traced => 1);
	is($target->step, 1, 'a traced program runs');
	my @seen;
	for my $step (1 .. 3) {
		is($target->next_step, $step, "step $step") if $step > 1;
		my $result = $run_bare->();
		is($result->{status}, 0, "run $step: status 0") or diag($result->{err}, $result->{out});
		my @new = grep { my $file = $_; $file ne 'notes.txt' && !grep { $_ eq $file } @seen } dumps($folder);
		is(scalar @new, 1, "run $step: one new dump") or diag(join ' ', files_in($folder));
		like($new[0] // '', qr/^leak_steady-$target->{pid}-\d{8}T\d{6}Z(?:_\d+)?\.txt$/, "run $step: called as it should be");
		push @seen, $new[0] // 'none';
		check_growth($folder, @seen) if $step == 2;
	}
	is_deeply([dumps($folder)], [sort @seen[1, 2], 'notes.txt'], 'the newest two are kept, and what is not a dump');
	is_deeply([grep { !/\.(?:txt|log)$/ } files_in($folder)], [], 'nothing half written is left');
	my @lines = split /\n/, -e $log ? slurp($log) : '';
	for my $seen (@seen) {
		my @about = grep { /\Q$seen\E/ } @lines;
		cmp_ok(scalar @about, '>=', 1, "the log names $seen") or diag(join "\n", @lines);
	}
	is($target->quit, 0, 'the program ends');
}

# Compares the sums by stack with the sample's statement.
sub check_growth {
	my ($folder, $old, $new) = @_;
	return fail('two runs wrote two dumps') if grep { !-f "$folder/$_" } $old, $new;
	my $text = slurp("$folder/$new");
	like($text, qr/^TOTAL|^[0-9A-F]+ bytes in 0x[0-9A-F]+ allocations/m, 'a dump by stack');
	my $compared = run(tool('hdiff', 'linux', "$folder/$old", "$folder/$new"));
	check_ok($compared, 'hdiff of two runs');
	my $report = report($compared->{out});
	check_report($report, 'two runs');
	check_truth($report, $exe, 1, 2, 'two runs');
}
