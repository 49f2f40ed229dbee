# Shared code of the end-to-end tests. Runs commands with a time limit, steps a sample from outside,
# takes snapshots of it, parses hdiff's report, and reads the truth in a sample's header comment.
#
# Tests wait for lines, files and ends of processes, never for time to pass. Processes that are
# still running when a test dies are ended by pid.
package Hunt;
use strict;
use warnings;
use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(basename dirname);
use File::Temp qw(tempdir);
use JSON::PP ();
use POSIX ();
use Test::More;
use Time::HiRes qw(time);

our @EXPORT = qw($root $llvm $as_windows needs_linux lacks file_name data_file fresh_dir from_npm slurp spew files_in win as_here wine run hsnap hdiff_json tool tool_names snapshot
    target peek marked unix_pids wine_process wine_version truths source_of report chain_of rows_by_functions check_ok check_error check_report check_truth);

our $root = abs_path(dirname(__FILE__) . '/../..');
our $hsnap = "$root/build/win64/hsnap.exe"; # tests/lib/Cell.pm uses another one
# seconds for one event; so high that only a hang reaches it, even on a busy machine
our $limit = $ENV{HSNAP_STEP_TIMEOUT} // 180;
my %running; # pids of the processes that this test started
$SIG{PIPE} = 'IGNORE';
$ENV{HSYM_CACHE} = 'off'; # names must be looked up, not taken from an earlier run
$SIG{$_} = sub { exit 1 } for qw(INT TERM HUP);
chdir $root or die "$root: $!\n";

# On Windows, in MSYS2, programs run natively, and the programs built for Windows replace those for
# Linux. HSNAP_AS_WINDOWS does this replacement on Linux, to show which tests remain. A test that
# declares its Linux parts with needs_linux() or $as_windows is run. Any other test that mentions
# something missing on Windows is skipped.
my $on_windows = $^O =~ /^(?:msys|cygwin)$/;
our $as_windows = $on_windows || $ENV{HSNAP_AS_WINDOWS};
# Suffix of the names of LLVM's tools.
chomp(our $llvm = `setup/llvm 2>/dev/null`);
my @needs = (
	["Linux's /proc", qr{/proc/|\b(?:unix_pids|wine_process)\b}],
	['Wine', qr{build/wine|WINEPREFIX|drive_c|setup/wine|\bWINE}],
	['programs that are built for Linux', qr{build/(?:asan/(?!hsnap\b)|linux/(?:obj|library|fail|tests)\b)}],
	['compilers and tools of Debian', qr{mingw32-|\bclang|mandoc|xmllint|llvm-\w+\$llvm|setup/\w}],
);
if ($as_windows && (my $source = slurp($0)) !~ /\bneeds_linux\b|\$as_windows\b/) {
	for my $need (@needs) {
		plan(skip_all => "needs $need->[0]") if $source =~ $need->[1];
	}
}

# Skips the whole test because something is missing. Fails if HSNAP_MUST_HAVE, a comma-separated
# list, contains the missing thing.
sub lacks {
	my ($what, $reason) = @_;
	plan(skip_all => $reason) if !grep { $_ eq $what } split /,/, $ENV{HSNAP_MUST_HAVE} // '';
	fail("$what is here: $reason");
	done_testing();
	exit 1;
}

# Skips the calling subtest, or the whole test, if the programs for Windows are tested.
sub needs_linux {
	my ($word) = @_;
	plan(skip_all => "needs $word") if $as_windows;
	return;
}

# ---------------------------------------------------------------- files

# Removes characters that Windows does not allow in file names.
sub file_name { return $as_windows ? $_[0] =~ s/[\x00-\x1f<>:"|?*]//gr : $_[0] }

# Returns the path of test data of other projects, which this repository may not contain. The path
# is a file or folder in HSNAP_TEST_DATA, by default ../shared/data beside the checkout. Returns
# undef if it is missing; if HSNAP_TEST_DATA is set, that is a failure. Unit tests use data_file()
# of tests/unit/data.h.
sub data_file {
	my ($name) = @_;
	my $wanted = $ENV{HSNAP_TEST_DATA} // '';
	my $path = ($wanted ne '' ? abs_path($wanted) // $wanted : "$root/../shared/data") . "/$name";
	return $path if -e $path;
	die "HSNAP_TEST_DATA: no $path\n" if $wanted ne '';
	return;
}

# Returns the folder of an npm package, which is fetched once into build/npm, or undef if npm cannot
# get the package.
sub from_npm {
	my ($package) = @_;
	my $to = "$root/build/npm/" . $package =~ s/^@//r =~ tr,@/,-,r;
	return "$to/package" if -d "$to/package";
	my $got = system("mkdir -p '$to' && cd '$to' && { timeout 120 npm pack --silent --fetch-retries=0 '$package'"
		. ' && tar xzf *.tgz && rm *.tgz; } >pack.log 2>&1');
	return !$got && -d "$to/package" ? "$to/package" : undef;
}

my %fresh; # path on this machine => path for Windows programs
sub fresh_dir {
	my $dir = abs_path(tempdir('hsnap-XXXXXX', TMPDIR => 1, CLEANUP => 1));
	$fresh{$dir} = win($dir) if $as_windows;
	return $dir;
}

sub slurp {
	my ($file) = @_;
	open my $in, '<:raw', $file or die "$file: $!\n";
	local $/;
	return scalar(<$in>) // '';
}

sub spew {
	my ($file, $bytes) = @_;
	open my $out, '>:raw', $file or die "$file: $!\n";
	print {$out} $bytes;
	close $out or die "$file: $!\n";
	return $file;
}

sub files_in {
	my ($dir) = @_;
	opendir my $in, $dir or die "$dir: $!\n";
	my @names = sort grep { !/^\.\.?$/ } readdir $in;
	return @names;
}

# Converts a path of this machine to the form for Windows programs.
sub win {
	my ($path) = @_;
	return 'Z:' . $path =~ tr,/,\\,r if !$on_windows;
	open my $from, '-|', 'cygpath', '-w', $path or die "cygpath: $!\n";
	return <$from> =~ s/\r?\n\z//r;
}

# ---------------------------------------------------------------- processes

# Adapts a Windows program's output to that of the Linux program. Paths in fresh folders become
# local paths (JSON doubles the separators). as_there() does the reverse for an argument.
sub as_here {
	my ($said) = @_;
	for my $dir (grep { index($said, basename($_)) >= 0 } keys %fresh) {
		my $shown = join '\\\\{1,2}', map { quotemeta } split /\\/, $fresh{$dir};
		$said =~ s{$shown((?:(?:\\{1,2}|/)[^\s\\/":,;]+)*)}{$dir . $1 =~ tr,\\,/,sr}ge;
	}
	return $said;
}

sub as_there {
	my ($word) = @_;
	for my $dir (grep { index($word, $_) >= 0 } keys %fresh) {
		$word =~ s{\Q$dir\E([^*;@]*)}{$fresh{$dir} . $1 =~ tr,/,\\,r}ge;
	}
	return $word =~ s{^(-[\w-]+=)?(/\w.*)}{($1 // '') . win($2)}er;
}

# Returns the command line of a Windows program. MSYS2 treats a word that begins with a single slash
# as a path.
sub wine { return $on_windows ? map({ m{^/\w$} ? "/$_" : $_ } @_) : ("$root/setup/wine", @_) }

# If the Windows program exists, replaces the Linux program in a command with it. It runs without
# resource limits, which Windows lacks, and without sanitizers.
sub for_windows {
	my @words = @_;
	my ($at) = grep { is_for_linux($words[$_]) && -e program_for_windows($words[$_]) } 0 .. $#words or return @words;
	my ($program, @args) = splice @words, $at;
	splice @words, -4 if @words >= 4 && $words[-2] =~ /^ulimit\b/; # sh -c '...' sh
	return (@words, wine(program_for_windows($program), map { as_there($_) } @args));
}

sub is_for_linux { return $_[0] =~ m{^\Q$root\E/build/(?:linux|asan)/} }
sub program_for_windows { return $_[0] =~ s,/build/(?:linux|asan)/,/build/win64/,r . '.exe' }

# Starts a command; returns its pid. %how: stdin, stdout, stderr (names or handles), dir.
sub start {
	my ($command, %how) = @_;
	$command = [for_windows(@$command)] if $as_windows;
	my $pid = fork // die "fork: $!\n";
	if ($pid) {
		$running{$pid} = 1;
		return $pid;
	}
	my $open = sub {
		my ($to, $mode, $what) = @_;
		open $to, ref $what ? "$mode&" : $mode, $what or POSIX::_exit(126);
	};
	$open->(*STDIN, '<', $how{stdin} // '/dev/null');
	$open->(*STDOUT, '>', $how{stdout} // '/dev/null');
	$open->(*STDERR, '>', $how{stderr} // '/dev/null');
	chdir($how{dir} // '.') or POSIX::_exit(126);
	%ENV = (%ENV, %{ $how{env} // {} });
	{ no warnings 'exec'; exec @$command; }
	POSIX::_exit(127);
}

# Waits for a process that this test started; returns the wait status.
sub finish {
	my ($pid) = @_;
	waitpid $pid, 0;
	my $status = $?;
	delete $running{$pid};
	return $status;
}

# Forgets a pid for which other code has already waited.
sub forget { delete $running{ $_[0] } }

# Runs a command to its end. Returns its status (128 + signal if it was killed; 124 after a
# timeout), its output, and the seconds it took, by the clock and of processor time; the latter
# excludes other programs.
#
# The last stderr line of a successful snapshot summarizes the file. Only that line is moved from
# {err} to {wrote}.
#
# If setup/wine may not turn address randomization off, one start in some thousands under Wine
# 8.0 ends with status 1 and no output. Rarely one ends with an error of Wine's own client. None of
# our programs ends like that: it is reported and tried once more.
sub run {
	my ($command, %how) = @_;
	my $result = run_once($command, %how);
	return $result unless $command->[0] eq "$root/setup/wine" && $result->{status} == 1
	    && $result->{out} eq '' && $result->{err} =~ /\A(?:wine client error:.*\n)?\z/;
	diag("$result->{command}: Wine gave up ($result->{err}); once more");
	return run_once($command, %how);
}

sub run_once {
	my ($command, %how) = @_;
	my ($out, $err) = (File::Temp->new, File::Temp->new);
	my ($from, $cpu_from) = (time, cpu_seconds());
	my $pid = start([qw(timeout --foreground -k 5), $how{limit} // 2 * $limit, @$command],
		stdout => "$out", stderr => "$err", %how);
	my $status = finish($pid);
	my $shown = $as_windows && grep({ is_for_linux($_) } @$command) ? \&as_here : sub { $_[0] };
	my $said = $shown->(slurp("$err") =~ s/\r\n/\n/gr);
	my $wrote = $said =~ s/^(hsnap: [^\n]+: \d+ blocks \(\d+ % with stacks\), \d+ bytes(?:; lost: \d+ blocks, \d+ bytes)?\n)\z//m ? $1 : '';
	return {
		command => "@$command",
		status => $status & 127 ? 128 + ($status & 127) : $status >> 8,
		out => $shown->(slurp("$out")),
		err => $said,
		wrote => $wrote,
		seconds => time - $from,
		cpu_seconds => cpu_seconds() - $cpu_from,
	};
}

# Returns the processor time of all children that have ended, and of their descendants.
sub cpu_seconds {
	my (undef, undef, $user, $system) = times;
	return $user + $system;
}

# Finds the processes on this machine that run one of our programs, by its path.
sub unix_pids {
	my ($exe) = @_;
	my ($unix, $windows, @found) = ($exe, win($exe));
	for my $dir (glob '/proc/[0-9]*') {
		open my $in, '<', "$dir/cmdline" or next;
		local $/;
		my ($name) = split /\0/, <$in> // '', 2;
		push @found, basename($dir) if defined $name && ($name eq $unix || lc $name eq lc $windows);
	}
	return @found;
}

# Returns the process of a program that setup/wine runs as our child. SIGINT may be sent only to
# this process. Wine 8 forks to start a process. If the forked child gets a SIGINT before exec, it
# acts as if it were its parent: it creates a thread and waits for a lock that was held at the fork.
# The parent waits for the child, so both wait forever. On Windows the process is our child itself.
sub wine_process {
	my ($ours, $exe) = @_;
	return $ours if $on_windows;
	my $parent = sub { (eval { slurp("/proc/$_[0]/stat") } // '') =~ /^.*\) \S (\d+)/s ? $1 : 0 };
	return grep { $_ == $ours || $parent->($_) == $ours } unix_pids($exe);
}

END {
	my $status = $?;
	for my $pid (keys %running) {
		kill TERM => $pid;
		waitpid $pid, 0;
	}
	$? = $status;
}

# ---------------------------------------------------------------- the programs

sub hsnap { return run([wine($hsnap, @_)]) }

# Returns hdiff's report in JSON, or undef if hdiff prints none.
sub hdiff_json {
	my $result = run(["$root/build/linux/hdiff", qw(-o json), @_]);
	my $report = eval { JSON::PP::decode_json($result->{out}) };
	diag("$result->{command}: status $result->{status}: $result->{err}") if !$report;
	return $report;
}

# tool('hdiff', 'linux', ARG...) returns the command line of hdiff or hsym. Paths are converted for
# the program.
sub tool {
	my ($name, $side, @args) = @_;
	# UMDH's format unless the test requests another one.
	unshift @args, '-d' if $name eq 'hdiff';
	return ["$root/build/linux/$name", @args] if $side eq 'linux';
	return [wine("$root/build/win64/$name.exe", map { m,^/, ? win($_) : $_ } @args)];
}

sub tool_names { return qw(linux windows) }

# Takes a snapshot of the process with this Windows pid. Returns true on success.
sub snapshot {
	my ($pid, $file) = @_;
	return check_ok(hsnap('-p', $pid, '-f', win($file)), "snapshot of pid $pid") && -s $file;
}

# target(PATH, [ARG...], traced => 1, run => [OPTION...]), or record => [OPTION...], starts a
# sample. under => [WORD...] is a command of this machine that starts the whole command line.
sub target {
	my ($exe, $args, %how) = @_;
	my @under = $how{record} ? ('record', @{ $how{record} }) : $how{traced} ? ('run', @{ $how{run} // [] }) : ();
	@under = ($hsnap, @under, '--') if @under;
	pipe my $in, my $to or die "pipe: $!\n";
	pipe my $from, my $out or die "pipe: $!\n";
	my $err = File::Temp->new;
	my $pid = start([@{ $how{under} // [] }, wine(@under, $exe, @{ $args // [] })],
		stdin => $in, stdout => $out, stderr => "$err");
	return bless {
		to => $to, from => $from, err => $err, unix => $pid, exe => $exe, bytes => '',
	}, 'Hunt::Target';
}

# Reads a target's memory from outside. Returns { ntdll => BYTES CHANGED, ... }.
sub peek {
	my ($target) = @_;
	my $result = run([wine("$root/build/win64/targets/peek.exe", $target->{pid})]);
	die "peek: $result->{status} $result->{out} $result->{err}\n" if $result->{status};
	return { map { /^(\w+) (.*?)\r?$/ ? ($1, $2) : () } split /\n/, $result->{out} };
}

# Returns Wine's major version (8, 9, 10), or 100 on Windows, which is like the newest Wine.
sub wine_version { return $as_windows ? 100 : (run(['wine', '--version'])->{out} =~ /^wine-(\d+)/)[0] }

# Waits until a target is being recorded, then sets a mark.
sub marked {
	my ($target, $label) = @_;
	my $until = time + $limit;
	while (time < $until) {
		return pass("mark $label") if !hsnap('mark', '-p', $target->{pid}, $label)->{status};
	}
	return ok(0, "mark $label");
}

package Hunt::Target {
	use Time::HiRes qw(time);

	# Returns the next line, or undef at the end or after the time limit.
	sub line {
		my ($self) = @_;
		my $until = time + $limit;
		my $end;
		until (($end = index $self->{bytes}, "\n") >= 0) {
			my ($ready, $left) = ('', $until - time);
			vec($ready, fileno $self->{from}, 1) = 1;
			return if $left <= 0 || select($ready, undef, undef, $left) <= 0;
			sysread $self->{from}, $self->{bytes}, 4096, length $self->{bytes} or return;
		}
		return substr($self->{bytes}, 0, $end + 1, "") =~ s{\r?\n$}{}r;
	}

	# Waits for "step K pid P". Returns K, or 0 if the target prints another line.
	sub step {
		my ($self) = @_;
		my $line = $self->line // 'no line in time';
		if ($line !~ /^step (\d+) pid (\d+)$/) {
			Test::More::diag("$self->{exe}: $line: ", Hunt::slurp("$self->{err}"));
			return 0;
		}
		$self->{pid} = $2;
		return $1;
	}

	sub next_step {
		my ($self) = @_;
		syswrite $self->{to}, "\n";
		return $self->step;
	}

	# Asks the target to quit, and returns its exit status.
	sub quit {
		my ($self) = @_;
		syswrite $self->{to}, "quit\n";
		close $self->{to};
		my $status = Hunt::finish($self->{unix});
		return $status & 127 ? 128 + ($status & 127) : $status >> 8;
	}

	# Releases a target whose end is not part of the test.
	sub DESTROY {
		my ($self) = @_;
		return unless $running{ $self->{unix} };
		local $?;
		close $self->{to};
		Hunt::finish($self->{unix});
	}
}

# ---------------------------------------------------------------- truth

sub source_of { return "$root/samples/" . basename($_[0], '.exe', '.c') . '.c' }

# Returns a sample's "truth:" lines: ([FROM, TO, [FUNCTION...], BYTES, ALLOCS]...), or an empty list
# for "nothing".
sub truths {
	my ($sample) = @_;
	my @truths;
	for (split /\n/, slurp(source_of($sample))) {
		next unless /^ \* truth: (?!nothing$)(.*)/;
		$1 =~ /^step (\d+)->(\d+) stack (\S+) bytes \+(\d+) allocs \+(\d+)$/
		    or die "$sample: cannot read the line '$_'\n";
		push @truths, [$1, $2, [split /<-/, $3], $4, $5];
	}
	return @truths;
}

# ---------------------------------------------------------------- report

my $number = qr/\s*(-?\d+)/;

sub frame_of {
	my ($text) = @_;
	return { none => 1 } if $text =~ /^\(no stack(?: recorded|\) .*B$)|^(?:UTF-16 )?text "/;
	return { module => $1, function => $2, offset => hex($3 // 0), file => $4, line => $5, inlined => defined $6 }
	    if $text =~ /^([^!]*)!(.+?)(?:\+([0-9A-Fa-f]+))?(?: : [0-9A-Fa-f]+)?(?: \((.*), (\d+)\))?( \[inline\])?$/;
	return { module => $1, offset => hex $2, addr => $3 }
	    if $text =~ /^(.+)\+([0-9A-Fa-f]+) : ([0-9A-Fa-f]+)$/;
	return;
}

# Parses hdiff's text report (decimal):
#   rows    { bytes, new, old, count, count_new, count_old, id, frames }, signed
#   total   [REQUESTED, OVERHEAD, SUM], signed
#   unread  lines that are not part of a report
sub report {
	my ($text) = @_;
	my ($report, $row) = ({ rows => [], unread => [] });
	for (split /\r?\n/, $text) {
		if (/^([+-])$number \($number -$number\)$number allocs\tBackTrace(\S+)$/) {
			push @{ $report->{rows} }, $row = {
				bytes => "${1}1" * $2, new => $3, old => $4, says_count => $5, id => $6, frames => [],
			};
		} elsif ($row && /^([+-])$number \($number -$number\)\tBackTrace(\S+)\tallocations$/) {
			@$row{qw(count count_new count_old id_again)} = ("${1}1" * $2, $3, $4, $5);
		} elsif ($row && /^\t(.*)$/ && (my $frame = frame_of($1))) {
			push @{ $row->{frames} }, $frame;
		} elsif (/^Total (increase|decrease)\s+==$number requested \+$number overhead =$number\s*$/) {
			my $sign = $1 eq 'increase' ? 1 : -1;
			push @{ $report->{unread} }, $_ if $report->{total};
			$report->{total} = [map { $sign * $_ } $2, $3, $4];
		} elsif (/\S/ && !m,^//,) {
			push @{ $report->{unread} }, $_;
		}
	}
	return $report;
}

# Returns the functions of a module on a row's stack, innermost first and ending with main.
sub chain_of {
	my ($row, $module) = @_;
	my @chain;
	for my $frame (grep { lc(($_->{module} // '') =~ s/\.exe$//ir) eq lc $module } @{ $row->{frames} }) {
		push @chain, { %$frame, function => $frame->{function} // '?' };
		last if $chain[-1]{function} eq 'main';
	}
	return @chain;
}

# Returns { STACK => [BYTES, COUNT] } of the rows from a module's main. STACK lists the module's
# functions, "f<-g<-main".
sub rows_by_functions {
	my ($report, $module) = @_;
	my %rows;
	for my $row (@{ $report->{rows} }) {
		my @functions = map { $_->{function} =~ s/\(.*//r } chain_of($row, $module);
		next if !@functions || $functions[-1] ne 'main';
		my $stack = join '<-', grep { $_ ne 'operator new' } @functions;
		$rows{$stack}[0] += $row->{bytes};
		$rows{$stack}[1] += $row->{count};
	}
	return \%rows;
}

# ---------------------------------------------------------------- checks

# Requires status 0, and nothing on stderr except a summary of names.
sub check_ok {
	my ($result, $what) = @_;
	my $summary = qr{hdiff: \d+ of \d+ frames? ha(?:ve|s) no name: .*\n|hsym: \d+ of \d+ address(?:es)? named\b.*\n};
	my $well = $result->{status} == 0 && $result->{err} =~ m{\A(?:$summary)?\z};
	ok($well, "$what: status 0, no complaint")
	    or diag("$result->{command}\nstatus $result->{status}\nstderr: $result->{err}\n",
		"stdout: ", substr($result->{out}, 0, 2000));
	return $well;
}

# Requires one stderr line from PROGRAM that contains all @words, exit status 2, and no data.
sub check_error {
	my ($result, $program, $what, @words) = @_;
	my @lines = split /\n/, $result->{err};
	my @missing = grep { my $word = $_; !grep { ref $word ? $_ =~ $word : index($_, $word) >= 0 } @lines } @words;
	my $well = $result->{status} == 2 && @lines == 1 && $lines[0] =~ /^\Q$program\E: / && !@missing
	    && $result->{out} eq '' && ($result->{wrote} // '') eq '';
	ok($well, "$what: one line, status 2")
	    or diag("$result->{command}\nstatus $result->{status}, missing: @missing\n",
		"stderr: $result->{err}", 'stdout: ', length $result->{out}, ' bytes');
	note($result->{err});
	return $well;
}

# Checks that a report has the properties of every report: it can be parsed, adds up and is sorted.
sub check_report {
	my ($report, $what) = @_;
	my @rows = @{ $report->{rows} };
	my ($requested, $overhead, $sum) = @{ $report->{total} // [] };
	my ($bytes, $last, @wrong) = (0, undef);
	for my $row (@rows) {
		my @counts = map { $_ // 'none' } @$row{qw(count count_new count_old)};
		push @wrong, "row $row->{id}: bytes $row->{bytes} of $row->{new} - $row->{old}"
		    if $row->{bytes} != $row->{new} - $row->{old};
		if ("@counts" =~ /none/) {
			push @wrong, "row $row->{id}: no line of allocations";
		} else {
			push @wrong, "row $row->{id}: counts @counts"
			    if $counts[0] != $counts[1] - $counts[2] || $counts[1] != $row->{says_count};
			push @wrong, "row $row->{id}: nothing changed" if !$row->{bytes} && !$counts[0];
			push @wrong, "row $row->{id}: another id $row->{id_again}" if $row->{id} ne $row->{id_again};
		}
		push @wrong, "row $row->{id}: not in order" if defined $last && $row->{bytes} > $last;
		push @wrong, "row $row->{id}: neither a stack nor a word about it" if !@{ $row->{frames} };
		$last = $row->{bytes};
		$bytes += $row->{bytes};
	}
	push @wrong, 'no total' if !defined $sum;
	push @wrong, "rows sum up to $bytes, total is $requested" if defined $sum && $bytes != $requested;
	push @wrong, "$requested + $overhead is not $sum" if defined $sum && $requested + $overhead != $sum;
	push @wrong, map { "unknown line: $_" } @{ $report->{unread} };
	splice @wrong, 20 if @wrong > 20;
	return ok(!@wrong, "$what: can be read and adds up") || diag(join "\n", @wrong);
}

# Checks that the source line of a frame calls $callee. Returns the fault, if any.
sub calls {
	my ($frame, $source, $callee) = @_;
	return 'no file and line' unless defined $frame->{line};
	return "file $frame->{file}" if $frame->{file} !~ m,(?:^|[/\\])\Q@{[basename($source)]}\E$,;
	my $line = (split /\n/, slurp($source))[$frame->{line} - 1] // '';
	return $line =~ /\b$callee\(/ ? () : "line $frame->{line}: $line";
}

# Checks that a sample's module has exactly the rows in its truth lines for FROM->TO.
sub check_truth {
	my ($report, $sample, $from, $to, $what) = @_;
	my $module = basename($sample, '.exe');
	my $source = source_of($sample);
	my @truths = grep { $_->[0] == $from && $_->[1] == $to } truths($sample);
	my @rows = grep { @{ $_->{chain} } } map { +{ %$_, chain => [chain_of($_, $module)] } } @{ $report->{rows} };
	my @wrong;

	for my $truth (@truths) {
		my (undef, undef, $functions, $bytes, $allocs) = @$truth;
		my $stack = join '<-', @$functions;
		my @mine = grep { "<-$_->{names}<-" =~ /<-\Q$stack\E<-/ }
		    map { $_->{names} = join('<-', map { $_->{function} } @{ $_->{chain} }); $_ } @rows;
		push @wrong, @mine . " rows for $stack" if @mine != 1;
		for my $row (@mine) {
			$row->{known} = 1;
			push @wrong, "$stack: $row->{bytes} bytes, $row->{count} allocs; the truth is $bytes, $allocs"
			    if $row->{bytes} != $bytes || $row->{count} != $allocs;
			my $callee = '(?:malloc|calloc|realloc|\w+Alloc)';
			for my $frame (@{ $row->{chain} }) {
				push @wrong, map { "$frame->{function}: $_" } calls($frame, $source, $callee);
				$callee = quotemeta $frame->{function};
			}
		}
	}
	push @wrong, map { "not in the truth: $_->{bytes} bytes, $_->{count} allocs at "
		    . join '<-', map { $_->{function} } @{ $_->{chain} } } grep { !$_->{known} } @rows;
	return ok(!@wrong, "$what: " . (@truths ? 'exactly the truth, by function, file and line' : 'no growth'))
	    || diag(join "\n", @wrong);
}

1;
