# What the end-to-end tests share: running things with a time limit, a sample
# that is stepped from outside, snapshots of it, hdiff's report taken apart, and
# the truth that a sample states in its header comment.
#
# Nothing here sleeps: it waits for lines, for files and for processes to end.
# What is still running when a test dies is ended by its pid.
package Hunt;
use strict;
use warnings;
use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(basename dirname);
use File::Temp qw(tempdir);
use POSIX ();
use Test::More;
use Time::HiRes qw(time);

our @EXPORT = qw($root $llvm $as_windows needs_linux lacks file_name data_file fresh_dir from_npm slurp spew files_in win as_here wine run hsnap tool tool_names snapshot
    target peek marked unix_pids wine_process wine_version truths source_of report chain_of rows_by_functions check_ok check_error check_report check_truth);

our $root = abs_path(dirname(__FILE__) . '/../..');
our $hsnap = "$root/build/win64/hsnap.exe";    # tests/lib/Cell.pm has another one
our $limit = $ENV{HSNAP_STEP_TIMEOUT} // 180;  # seconds for one event, for what hangs: a busy machine does not get there
my %running;                                   # pids of ours
$SIG{PIPE} = 'IGNORE';
$ENV{HSYM_CACHE} = 'off';  # names are looked up, not remembered from an earlier run
$SIG{$_} = sub { exit 1 } for qw(INT TERM HUP);
chdir $root or die "$root: $!\n";

# On Windows, in MSYS2, programs run as they are, and those built for Windows stand in for those for Linux.
# HSNAP_AS_WINDOWS does the latter elsewhere, to see which tests that leaves. A test that says itself what of it
# needs Linux, by needs_linux() or $as_windows, runs; any other one that mentions what is not on Windows is skipped.
my $on_windows = $^O =~ /^(?:msys|cygwin)$/;
our $as_windows = $on_windows || $ENV{HSNAP_AS_WINDOWS};
# How the names of LLVM's tools end.
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

# Skips the whole test for want of something, or fails where HSNAP_MUST_HAVE, a list with commas, has that.
sub lacks {
	my ($what, $reason) = @_;
	plan(skip_all => $reason) if !grep { $_ eq $what } split /,/, $ENV{HSNAP_MUST_HAVE} // '';
	fail("$what is here: $reason");
	done_testing();
	exit 1;
}

# Skips the subtest that calls it, or the whole test, where programs for Windows run.
sub needs_linux {
	my ($word) = @_;
	plan(skip_all => "needs $word") if $as_windows;
	return;
}

# ---------------------------------------------------------------- files

# A name without what no file of Windows has in its own.
sub file_name { return $as_windows ? $_[0] =~ s/[\x00-\x1f<>:"|?*]//gr : $_[0] }

# The path of test data of other projects, which this repository may not contain: a file or folder in HSNAP_TEST_DATA, by
# default in ../shared/data beside the checkout. undef if it is missing, which is a failure where HSNAP_TEST_DATA is set.
# Unit tests have data_file() of tests/unit/data.h.
sub data_file {
	my ($name) = @_;
	my $wanted = $ENV{HSNAP_TEST_DATA} // '';
	my $path = ($wanted ne '' ? abs_path($wanted) // $wanted : "$root/../shared/data") . "/$name";
	return $path if -e $path;
	die "HSNAP_TEST_DATA: no $path\n" if $wanted ne '';
	return;
}

# The folder of an npm package, fetched once into build/npm; undef where npm does not give it.
sub from_npm {
	my ($package) = @_;
	my $to = "$root/build/npm/" . $package =~ s/^@//r =~ tr,@/,-,r;
	return "$to/package" if -d "$to/package";
	my $got = system("mkdir -p '$to' && cd '$to' && { timeout 120 npm pack --silent --fetch-retries=0 '$package'"
		. ' && tar xzf *.tgz && rm *.tgz; } >pack.log 2>&1');
	return !$got && -d "$to/package" ? "$to/package" : undef;
}

my %fresh;    # as programs for Windows know them
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

# A path of this machine as programs for Windows know it.
sub win {
	my ($path) = @_;
	return 'Z:' . $path =~ tr,/,\\,r if !$on_windows;
	open my $from, '-|', 'cygpath', '-w', $path or die "cygpath: $!\n";
	return <$from> =~ s/\r?\n\z//r;
}

# ---------------------------------------------------------------- processes

# What a program for Windows says in the place of one for Linux, with the paths in fresh folders as they are here (JSON
# doubles what separates them), and a word that it is told.
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

# The command line of a program for Windows. MSYS2 takes what begins with one slash for a path.
sub wine { return $on_windows ? map({ m{^/\w$} ? "/$_" : $_ } @_) : ("$root/setup/wine", @_) }

# A command with the program for Windows, if there is one, in the place of that for Linux. It runs without limits,
# which Windows has not, and without sanitizers.
sub for_windows {
	my @words = @_;
	my ($at) = grep { is_for_linux($words[$_]) && -e program_for_windows($words[$_]) } 0 .. $#words or return @words;
	my ($program, @args) = splice @words, $at;
	splice @words, -4 if @words >= 4 && $words[-2] =~ /^ulimit\b/; # sh -c '...' sh
	return (@words, wine(program_for_windows($program), map { as_there($_) } @args));
}

sub is_for_linux { return $_[0] =~ m{^\Q$root\E/build/(?:linux|asan)/} }
sub program_for_windows { return $_[0] =~ s,/build/(?:linux|asan)/,/build/win64/,r . '.exe' }

# Starts a command; its pid. %how: stdin, stdout, stderr (names or handles), dir.
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

# Waits for a process of ours; its wait status.
sub finish {
	my ($pid) = @_;
	waitpid $pid, 0;
	my $status = $?;
	delete $running{$pid};
	return $status;
}

# Somebody else has waited for it.
sub forget { delete $running{ $_[0] } }

# Runs a command to its end: its status (128 + signal when it was killed; 124
# when the time was over), what it wrote, and the seconds it took, of the clock and of a processor: those
# that are other programs' do not count there.
#
# The last line of hsnap on stderr, of a snapshot that went well, says what is in the file: that line, and no other
# one, is set apart from {err}, as {wrote}.
#
# Where setup/wine may not switch random addresses off, one start in some thousands
# under Wine 8.0 ends with status 1 and not a byte printed. A rare one ends with an
# error of Wine's own client. No program of ours ends so: it is told and tried once
# more.
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

# Of the children that have ended, and theirs.
sub cpu_seconds {
	my (undef, undef, $user, $system) = times;
	return $user + $system;
}

# The processes of this machine that run a program of ours, known by its path.
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

# The process of a program that setup/wine runs as a process of ours: to it alone a SIGINT may go. Wine 8 forks
# to start a process, and up to the exec the child takes a SIGINT as if it were its parent: it makes a thread,
# waits for a lock that was held at the fork, and the parent waits for it, both for ever. On Windows it is ours.
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

# The command line of hdiff or hsym: tool('hdiff', 'linux', ARG...). A path is
# turned into what the program understands.
sub tool {
	my ($name, $side, @args) = @_;
	unshift @args, '-d' if $name eq 'hdiff';    # UMDH's form, unless another one is asked for
	return ["$root/build/linux/$name", @args] if $side eq 'linux';
	return [wine("$root/build/win64/$name.exe", map { m,^/, ? win($_) : $_ } @args)];
}

sub tool_names { return qw(linux windows) }

# Takes a snapshot of a process by its Windows pid; true when all was well.
sub snapshot {
	my ($pid, $file) = @_;
	return check_ok(hsnap('-p', $pid, '-f', win($file)), "snapshot of pid $pid") && -s $file;
}

# Starts a sample: target(PATH, [ARG...], traced => 1, run => [OPTION...]), or record => [OPTION...]; under =>
# [WORD...] is a command of this machine that starts all that.
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

# What a target's memory looks like from outside: { ntdll => BYTES CHANGED, ... }.
sub peek {
	my ($target) = @_;
	my $result = run([wine("$root/build/win64/targets/peek.exe", $target->{pid})]);
	die "peek: $result->{status} $result->{out} $result->{err}\n" if $result->{status};
	return { map { /^(\w+) (.*?)\r?$/ ? ($1, $2) : () } split /\n/, $result->{out} };
}

# Returns the major version of Wine: 8, 9, 10. On Windows, which is like the newest, 100.
sub wine_version { return $as_windows ? 100 : (run(['wine', '--version'])->{out} =~ /^wine-(\d+)/)[0] }

# Waits until a target is being recorded, and names that moment.
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

	# The next line, or undef at the end or when the time is over.
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

	# Waits for "step K pid P"; K, or 0 when something else comes.
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

	# Lets it go on, and waits for the next step.
	sub next_step {
		my ($self) = @_;
		syswrite $self->{to}, "\n";
		return $self->step;
	}

	# Says so and waits for its end; its exit status.
	sub quit {
		my ($self) = @_;
		syswrite $self->{to}, "quit\n";
		close $self->{to};
		my $status = Hunt::finish($self->{unix});
		return $status & 127 ? 128 + ($status & 127) : $status >> 8;
	}

	# Its end is what the test is about: let it go without a question.
	sub DESTROY {
		my ($self) = @_;
		return unless $running{ $self->{unix} };
		local $?;
		close $self->{to};
		Hunt::finish($self->{unix});
	}
}

# ---------------------------------------------------------------- the truth

sub source_of { return "$root/samples/" . basename($_[0], '.exe', '.c') . '.c' }

# The "truth:" lines of a sample: ([FROM, TO, [FUNCTION...], BYTES, ALLOCS]...);
# none for a sample that says "nothing".
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

# ---------------------------------------------------------------- the report

my $number = qr/\s*(-?\d+)/;

sub frame_of {
	my ($text) = @_;
	return { none => 1 } if $text eq '(no stack recorded)';
	return { module => $1, function => $2, offset => hex($3 // 0), file => $4, line => $5, inlined => defined $6 }
	    if $text =~ /^([^!]*)!(.+?)(?:\+([0-9A-Fa-f]+))?(?: : [0-9A-Fa-f]+)?(?: \((.*), (\d+)\))?( \[inline\])?$/;
	return { module => $1, offset => hex $2, addr => $3 }
	    if $text =~ /^(.+)\+([0-9A-Fa-f]+) : ([0-9A-Fa-f]+)$/;
	return;
}

# Takes hdiff's text (decimal) apart by words:
#   rows    { bytes, new, old, count, count_new, count_old, id, frames }, signed
#   total   [REQUESTED, OVERHEAD, SUM], signed
#   unread  lines that are none of what a report has
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

# The functions of a module on a row's stack, the innermost first, up to main.
sub chain_of {
	my ($row, $module) = @_;
	my @chain;
	for my $frame (grep { lc(($_->{module} // '') =~ s/\.exe$//ir) eq lc $module } @{ $row->{frames} }) {
		push @chain, { %$frame, function => $frame->{function} // '?' };
		last if $chain[-1]{function} eq 'main';
	}
	return @chain;
}

# { STACK => [BYTES, COUNT] } of the rows that come from a module's main: its functions, "f<-g<-main".
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

# ---------------------------------------------------------------- what must hold

# Status 0, and nothing on stderr but a summary of names.
sub check_ok {
	my ($result, $what) = @_;
	my $summary = qr{hdiff: \d+ of \d+ frames have no name: .*\n|hsym: \d+ of \d+ addresses named\b.*\n};
	my $well = $result->{status} == 0 && $result->{err} =~ m{\A(?:$summary)?\z};
	ok($well, "$what: status 0, no complaint")
	    or diag("$result->{command}\nstatus $result->{status}\nstderr: $result->{err}\n",
		"stdout: ", substr($result->{out}, 0, 2000));
	return $well;
}

# One line on stderr from PROGRAM with all of @words in it, exit status 2, no data.
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

# What is true of every report: it can be read, adds up and is in order.
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

# Is the source line that a frame names the one that calls $callee?
sub calls {
	my ($frame, $source, $callee) = @_;
	return 'no file and line' unless defined $frame->{line};
	return "file $frame->{file}" if $frame->{file} !~ m,(?:^|[/\\])\Q@{[basename($source)]}\E$,;
	my $line = (split /\n/, slurp($source))[$frame->{line} - 1] // '';
	return $line =~ /\b$callee\(/ ? () : "line $frame->{line}: $line";
}

# The rows of a sample's module are exactly what its truth lines for FROM->TO say.
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
