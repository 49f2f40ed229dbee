#!/usr/bin/perl
# docs/fleet.md works as typed: the lines of 1,000 hosts with 48 dumps each are loaded into DuckDB
# and ClickHouse, and both answer the page's questions as the plan of these hosts predicts. The
# lines are written here in the form of man/hdiff-json.5; those of a few hosts come from hdiff, from
# dumps, and are identical to the byte.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Encode qw(decode);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use IO::Compress::Gzip qw(gzip);
use IO::Socket::INET;
use JSON::PP;
use Test::More;
use Time::HiRes qw(sleep time);
use Hunt;
use Series;
use Viewers;

my ($host_count, $dump_count, $half_hour, $begin) = (1000, 48, 1800, 1763640000);
my @real = (0, 7, 40, 111, 950);    # hosts with lines from hdiff
# Time stamps of the three builds, not in the order of time.
my @stamps = (0x67000000, 0x66f00000, 0x66f80000);
my @builds = map { sprintf '%08X1000000', $_ } @stamps;
my @stacks = qw(fill_cache grow_log new_table parse_header session_open start_up take_job);
my %id = map { $_ => stack_hash("app!$_;app+FFF") } @stacks;
# Tolerance of rounded answers.
my %rounded = (bytes_per_hour => 0.5, percent => 0.5, middle => 0.005);
my $json = JSON::PP->new->utf8;
my $dir = fresh_dir();
my $page = slurp("$root/docs/fleet.md");
my @sql = $page =~ /^```sql\n(.*?)^```$/msg;
my @sh = $page =~ /^```sh\n(.*?)^```$/msg;
is(@sql . ' ' . @sh, '12 2', 'the page has two tables, three views, six questions and the frames; and how to make and load lines') or die;
my ($table_clickhouse, $table_duckdb, @common) = @sql;
$common[-1] =~ s/0123456789ABCDEF/$id{grow_log}/ or die "the page's example of a stack\n";

my @hosts = map { host($_) } 0 .. $host_count - 1;
my %truth = (growing => growing(), builds => by_build(), new => new_stacks(), first => first_hosts(), shares => shares());
subtest 'the task' => \&check_task;
subtest 'the plan is what one would look for' => \&check_plan;
subtest 'lines of hdiff' => \&check_lines;
write_fleet();
subtest 'DuckDB' => \&check_duckdb;
subtest 'ClickHouse' => \&check_clickhouse;
done_testing;

# ---------------------------------------------------------------- the plan

# Returns a host and the runs of its process. All hosts begin with build 0. 900 hosts get build 1,
# and 50 of these get build 2. On 50 other hosts the process is restarted unchanged.
sub host {
	my ($number) = @_;
	my @from = (0, $number >= 950 ? 30 : (), $number < 900 ? 10 + $number % 12 : (), $number == 7 ? $dump_count - 1 : $number < 50 ? 30 + $number % 10 : ());
	my @runs = map { {
		build => $number < 950 ? $_ : 0, from => $from[$_], to => ($from[ $_ + 1 ] // $dump_count) - 1, pid => 1000 + $_, start => time_of($number, $from[$_]) - 60
	} } 0 .. $#from;
	return { number => $number, name => sprintf('host%04d', $number), runs => \@runs };
}

# Returns seconds. No two hosts take their dumps at the same time, and the order of times is not the
# order of names.
sub time_of { my ($number, $at) = @_; return $begin + $at * $half_hour + (617 * $number + 500) % $host_count }

# Returns a stack's bytes on a host in dump number AGE of a run, or 0 if the stack has no line.
sub bytes_of {
	my ($stack, $host, $build, $at, $age) = @_;
	return 50_000 if $stack eq 'start_up';
	return 700_000 * ($age < 6 ? $age : 6) if $stack eq 'fill_cache';
	return 90_000 * (($at * 7 + $host->{number}) % 10) if $stack eq 'take_job';
	return $build > 0 ? 150_000 * $age : 0 if $stack eq 'parse_header';
	return 1_000_000 + ($build < 2 && is_logging($host) ? 200_000 * $age : 0) if $stack eq 'grow_log';
	return $build < 2 ? 0 : $stack eq 'new_table' ? 250_000 : 400_000 * ($age + 1);
}

# Returns true if grow_log leaks on a host, which build 2 fixes.
sub is_logging { return $_[0]{number} % 37 == 0 }

sub run_bytes {
	my ($stack, $host, $run) = @_;
	return map { bytes_of($stack, $host, $run->{build}, $_, $_ - $run->{from}) } $run->{from} .. $run->{to};
}

# ---------------------------------------------------------------- expected answers

# Calls back for each host, run and stack, with the bytes in each dump of the run.
sub each_run {
	my ($told) = @_;
	for my $host (@hosts) {
		for my $run (@{ $host->{runs} }) {
			$told->($host, $run, $_, run_bytes($_, $host, $run)) for @stacks;
		}
	}
	return;
}

# Answers questions 1 and 2.
sub growing {
	my %found;
	each_run(sub {
		my ($host, $run, $stack, @bytes) = @_;
		my $grown = $bytes[-1] - $bytes[0];
		return if $grown <= 1_000_000;
		my $row = $found{$stack} //= { stack => $id{$stack}, function => "app!$stack" };
		$row->{on}{ $host->{name} } = 1;
		$row->{runs_grown}++;
		$row->{bytes} += $grown;
		$row->{hours} += $#bytes / 2;
		$row->{over} += $_ / @bytes for map { $_ - $bytes[0] } @bytes;
	});
	for (values %found) {
		$_->{hosts} = keys %{ delete $_->{on} };
		$_->{bytes_per_hour} = $_->{bytes} / delete $_->{hours};
		$_->{middle} = delete($_->{over}) / $_->{bytes};
	}
	return [values %found];
}

# Answers question 3.
sub by_build {
	my (%found, %all, %seen);
	each_run(sub {
		my ($host, $run, $stack, @bytes) = @_;
		my $build = $run->{build};
		my $time = time_of($host->{number}, $run->{from});
		$all{$build}{ $host->{name} } = 1;
		$seen{$build} = $time if !$seen{$build} || $time < $seen{$build};
		return if $bytes[-1] - $bytes[0] <= 1_000_000;
		my $row = $found{$stack}{$build} //= { stack => $id{$stack}, function => "app!$stack", build => $builds[$build] };
		$row->{on}{ $host->{name} } = 1;
		$row->{bytes} += $bytes[-1] - $bytes[0];
		$row->{hours} += $#bytes / 2;
	});
	my @rows;
	for my $stack (sort keys %found) {
		for my $build (sort { $seen{$a} <=> $seen{$b} } keys %{ $found{$stack} }) {
			my $row = $found{$stack}{$build};
			$row->{hosts} = keys %{ delete $row->{on} };
			$row->{percent} = 100 * $row->{hosts} / keys %{ $all{$build} };
			$row->{bytes_per_hour} = delete($row->{bytes}) / delete $row->{hours};
			$row->{seen} = iso(1000 * $seen{$build}) =~ s/T(.*)\..*/ $1/r;
			push @rows, $row;
		}
	}
	return \@rows;
}

# Answers question 4, from the plan and the longest run of build 2.
sub new_stacks {
	my ($longest) = sort { $b <=> $a } map { $_->{to} - $_->{from} + 1 } grep { $_->{build} == 2 } map { @{ $_->{runs} } } @hosts;
	return [{ stack => $id{session_open}, function => 'app!session_open', hosts => 50, most_bytes => 400_000 * $longest },
		{ stack => $id{new_table}, function => 'app!new_table', hosts => 50, most_bytes => 250_000 }];
}

# Answers question 5.
sub first_hosts {
	my %first;
	each_run(sub {
		my ($host, $run, $stack, @bytes) = @_;
		return if $bytes[-1] - $bytes[0] <= 1_000_000;
		my ($at) = grep { $bytes[$_] - $bytes[0] > 1_000_000 } 0 .. $#bytes;
		my $time = time_of($host->{number}, $run->{from} + $at);
		$first{$stack} = [$time, $host->{name}] if !$first{$stack} || $time < $first{$stack}[0];
	});
	return [map { {
		stack => $id{$_}, function => "app!$_", first_host => $first{$_}[1], first_time => iso(1000 * $first{$_}[0]) =~ s/T(.*)\..*/ $1/r
	} } sort { $first{$a}[0] <=> $first{$b}[0] } keys %first];
}

# Answers question 6.
sub shares {
	my (%grown, %sum);
	each_run(sub {
		my ($host, $run, $stack, @bytes) = @_;
		my $more = $bytes[-1] - $bytes[0];
		$_ += $more for $more > 0 ? ($grown{ $host->{name} }{$stack}, $sum{ $host->{name} }) : ();
	});
	my @rows;
	for my $host (sort { $sum{$b} <=> $sum{$a} || $a cmp $b } keys %sum) {
		for my $stack (sort { $grown{$host}{$b} <=> $grown{$host}{$a} } keys %{ $grown{$host} }) {
			push @rows, { host => $host, function => "app!$stack", stack => $id{$stack}, stack_grown => $grown{$host}{$stack},
				percent => 100 * $grown{$host}{$stack} / $sum{$host} } if $grown{$host}{$stack} > 0.1 * $sum{$host};
		}
	}
	return [@rows[0 .. 99]];
}

# Checks the expected answers against facts of the plan that need no sums.
sub check_plan {
	my %of = map { $_->{function} => $_ } @{ $truth{growing} };
	is_deeply([sort keys %of], [map { "app!$_" } qw(fill_cache grow_log parse_header session_open)], 'four stacks grow');
	is_deeply([map { $of{"app!$_"}{hosts} } qw(fill_cache grow_log parse_header session_open)], [1000, 28, 900, 49],
		'each on so many hosts: the one whose process is there for one dump does not count');
	is_deeply([map { $of{"app!$_"}{bytes_per_hour} } qw(grow_log parse_header session_open)], [400_000, 300_000, 800_000], 'how fast');
	is_deeply([map { sprintf '%.6f', $of{"app!$_"}{middle} } qw(grow_log parse_header session_open)], [('0.500000') x 3], 'leaks are steady');
	cmp_ok($of{'app!fill_cache'}{middle}, '>', 0.7, 'the cache is not');
	is_deeply([map { [@$_{qw(function build)}] } grep { $_->{function} ne 'app!fill_cache' } @{ $truth{builds} }],
		[['app!grow_log', $builds[0]], ['app!grow_log', $builds[1]], (map { ['app!parse_header', $builds[$_]] } 1, 2), ['app!session_open', $builds[2]]],
		'in these builds');
}

# ---------------------------------------------------------------- lines

# Checks the task, because Task Scheduler itself is not available.
sub check_task {
	my ($words) = $page =~ /^    hsnap (schedule add .*)/m or return fail('the page has it');
	my $task = run(["$root/build/linux/hsnap", split(' ', $words), '--program', 'C:\tools\hsnap.exe', '--print-xml']);
	is("$task->{status} $task->{err}", '0 ', 'its options are right');
	like(decode('UTF-16', $task->{out}), qr/-pn app\.exe .*--by-stack .*--gzip/, 'it writes packed sums by stack');
}

# 64-bit FNV-1a.
sub stack_hash {
	my ($text) = @_;
	use integer;
	no warnings 'portable';
	my $hash = 0xcbf29ce484222325;
	$hash = ($hash ^ ord) * 0x100000001b3 for split //, $text;
	return sprintf '%016X', $hash;
}

sub dump_name {
	my ($host, $run, $at) = @_;
	return sprintf 'dumps/%s/app-%d-%02d.txt%s', $host->{name}, $run->{pid}, $at, $host->{number} < 950 ? '' : '.gz';
}

# Returns all lines of a dump in the form of man/hdiff-json.5.
sub lines_of {
	my ($host, $run, $at) = @_;
	my $process = sprintf '{"host":"%s","image":"app.exe","build":"%s","pid":%d,"start":"%s","time":"%s","path":"%s"', $host->{name}, $builds[ $run->{build} ],
	    $run->{pid}, iso(1000 * $run->{start}), iso(1000 * time_of($host->{number}, $at) + 123), dump_name($host, $run, $at);
	my $lines = '';
	for my $stack (@stacks) {
		my $bytes = bytes_of($stack, $host, $run->{build}, $at, $at - $run->{from}) or next;
		# If a function calls a stack from two places, there are two lines.
		for my $part ($stack eq 'parse_header' && $host->{number} % 50 == 3 ? (10_000, $bytes - 10_000) : $bytes) {
			$lines .= sprintf qq(%s,"stack":"%s","function":"app!%s","frames":"app!%s;app+FFF","bytes":%d,"blocks":%d,"overhead":%d,"private_bytes":-1,"threads":-1,"handles":-1}\n),
			    $process, $id{$stack}, $stack, $stack, $part, $part / 10_000, $part / 1250;
		}
	}
	return $lines;
}

# Writes dumps for a few hosts, and converts them with the page's commands.
sub check_lines {
	my %wanted;
	for my $host (@hosts[@real]) {
		make_path("$dir/dumps/$host->{name}");
		for my $run (@{ $host->{runs} }) {
			for my $at ($run->{from} .. $run->{to}) {
				my $name = dump_name($host, $run, $at);
				my %sums = map { my $bytes = bytes_of($_, $host, $run->{build}, $at, $at - $run->{from}); $_ => [$bytes, $bytes / 10_000] } @stacks;
				my $dump = series_dump(1000 * time_of($host->{number}, $at) + 123, \%sums, host => $host->{name}, pid => $run->{pid},
						start => 1000 * $run->{start}, timestamp => $stamps[ $run->{build} ], slide => 0x10000 * $host->{number});
				gzip(\$dump, \my $packed);
				spew("$dir/$name", $name =~ /gz\z/ ? $packed : $dump);
				$wanted{$name} = lines_of($host, $run, $at);
			}
		}
	}
	is(keys %wanted, @real * $dump_count, 'dumps of a few hosts');
	my $made = run(['sh', '-euc', $sh[0]], dir => $dir, env => { PATH => "$root/build/linux:$ENV{PATH}" });
	my $nameless = qr/^hdiff: \d+ of \d+ frames? ha(?:ve|s) no name: \d+ in app; .*\n/m;    # app+FFF
	is($made->{status} . $made->{err} =~ s/$nameless//gr, '0', "the page's commands make lines of them");
	my @other = grep { sorted(slurp("$dir/lines/$_.jsonl")) ne sorted($wanted{$_}) } sort keys %wanted;
	is_deeply(\@other, [], 'which are those of this test') or diag(slurp("$dir/lines/$other[0].jsonl"), $wanted{ $other[0] });
	my $once_more = run(['sh', '-euc', $sh[0]], dir => $dir, env => { PATH => '/usr/bin:/bin' });
	is($once_more->{status}, 0, 'and none a second time');
}

sub sorted { return join "\n", sort split /\n/, $_[0] }

# Writes the lines of all other hosts, and some lines that the page's views must exclude: those of
# another program, and of an earlier time.
sub write_fleet {
	my %is_real = map { $_ => 1 } @real;
	for my $host (grep { !$is_real{ $_->{number} } } @hosts) {
		make_path("$dir/lines/dumps/$host->{name}");
		my $text = '';
		for my $run (@{ $host->{runs} }) {
			$text .= lines_of($host, $run, $_) for $run->{from} .. $run->{to};
		}
		if ($host->{number} % 10 == 1) {
			my $more = $text =~ s/"bytes":/"bytes":9/gr;
			$text .= $more =~ s/"app\.exe"/"other.exe"/gr . $more =~ s/"(start|time)":"2025-11-/"$1":"2025-10-/gr if $host->{number} < 200;
		}
		spew("$dir/lines/dumps/$host->{name}/all.jsonl", $text);
	}
	return;
}

# ---------------------------------------------------------------- the engines

# Compares an engine's answers, which are lists of rows, with the page's questions in their order.
sub check_answers {
	my ($count, @answers) = @_;
	is(scalar @answers, 7, 'an answer to each') or return;
	my @by_hosts = sort { $b->{hosts} <=> $a->{hosts} } @{ $truth{growing} };
	my @by_runs = sort { $b->{runs_grown} <=> $a->{runs_grown} } @{ $truth{growing} };
	check_rows('which stacks grow, on how many hosts, how fast', $answers[0], \@by_hosts, qw(stack function hosts bytes bytes_per_hour));
	check_rows('a leak, or a cache', $answers[1], \@by_runs, qw(stack function runs_grown middle));
	check_rows('since which build', $answers[2], $truth{builds}, qw(stack function build seen hosts percent bytes_per_hour));
	check_rows('new with the last build', $answers[3], $truth{new}, qw(stack function hosts most_bytes));
	check_rows('on which host first', $answers[4], $truth{first}, qw(stack function first_host first_time));
	check_rows("how much of a host's growth", $answers[5], $truth{shares}, qw(host function stack stack_grown percent));
	check_rows('the frames', $answers[6], [{ all_frames => 'app!grow_log;app+FFF' }], 'all_frames');
}

sub check_rows {
	my ($name, $got, $wanted, @columns) = @_;
	my @wrong = map { my $i = $_; grep { !is_same($_, $got->[$i]{$_}, $wanted->[$i]{$_}) } @columns } 0 .. ($#$got < $#$wanted ? $#$got : $#$wanted);
	ok(@$got == @$wanted && !@wrong, $name) or diag(map { my $rows = $_; map({ my $row = $_; join(' ', map { $row->{$_} // '-' } @columns) . "\n" } @$rows), "--\n" } $got, $wanted);
}

sub is_same {
	my ($column, $got, $wanted) = @_;
	return abs($got - $wanted) <= $rounded{$column} + 1e-9 if $rounded{$column};
	return $got =~ s/(:\d\d)\.123\z/$1/r eq $wanted;    # ClickHouse's times have whole seconds
}

sub check_duckdb {
	need_package('@duckdb/node-api');
	my $script = spew("$dir/ask.js", <<'END');
const { DuckDBInstance } = require('@duckdb/node-api');
(async () => {
	const connection = await (await DuckDBInstance.create(':memory:', { threads: '2' })).connect();
	for (const sql of JSON.parse(require('fs').readFileSync(0)))
		console.log(JSON.stringify((await connection.runAndReadAll(sql)).getRowObjectsJson()));
})().catch(error => { console.error(String(error)); process.exit(1); });
END
	my $asked = spew("$dir/asked.json", $json->encode([$table_duckdb, @common]));
	my $said = run(node_with($script), dir => $dir, stdin => $asked);
	is("$said->{status} $said->{err}", '0 ', 'it takes all that the page has') or return;
	note(sprintf '%.1f s', $said->{seconds});
	my (undef, @answers) = map { $json->decode($_) } split /\n/, $said->{out};
	check_answers(@answers[0, 3 .. $#answers]);
}

sub check_clickhouse {
	my $server = need_program('clickhouse-server');
	need_program('clickhouse-client');
	my $port = start_server($server);
	spew("$dir/.clickhouse-client/config.xml", "<config><host>127.0.0.1</host><port>$port</port></config>\n");
	my $ask = sub { return run(['clickhouse-client', '--format', 'JSONEachRow', '--query', $_[0]], env => { HOME => $dir }) };
	my $until = time + 30;
	sleep 0.05 until IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) || time > $until;
	my $made = $ask->($table_clickhouse);
	is("$made->{status} $made->{err}", '0 ', 'a table') or return;
	my $loaded = run(['sh', '-euc', $sh[1]], dir => $dir, env => { HOME => $dir });
	is("$loaded->{status} $loaded->{err}", '0 ', 'the lines are loaded') or return;
	my @said = map { $ask->($_) } @common;
	is(join('', map { $_->{err} } @said), '', 'it takes all that the page has') or return;
	note(sprintf 'loaded in %.1f s, asked in %s s', $loaded->{seconds}, join ' ', map { sprintf '%.1f', $_->{seconds} } @said);
	check_answers(undef, map { my $out = $_->{out}; [map { $json->decode($_) } split /\n/, $out] } @said[3 .. $#said]);
}

# Starts a private server on loopback, with its own folder. However the test ends, the server is
# ended by pid.
sub start_server {
	my ($program) = @_;
	my $data = tempdir("$root/build/clickhouse-XXXXXX", CLEANUP => 1);
	my $socket = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') or die "no port: $!\n";
	my $port = $socket->sockport;
	close $socket;
	make_path(map { "$data/$_" } qw(data tmp));
	make_path("$dir/.clickhouse-client");
	spew("$data/config.xml", <<"END");
<yandex>
	<logger><level>warning</level><log>$data/log</log><errorlog>$data/errors</errorlog></logger>
	<tcp_port>$port</tcp_port>
	<listen_host>127.0.0.1</listen_host>
	<path>$data/data/</path>
	<tmp_path>$data/tmp/</tmp_path>
	<users_config>users.xml</users_config>
	<default_profile>default</default_profile>
	<default_database>default</default_database>
	<mark_cache_size>100000000</mark_cache_size>
	<timezone>Asia/Tokyo</timezone>
</yandex>
END
	spew("$data/users.xml", <<'END');
<yandex>
	<profiles><default><max_threads>2</max_threads></default></profiles>
	<users><default>
		<password></password>
		<networks><ip>127.0.0.1</ip></networks>
		<profile>default</profile>
		<quota>default</quota>
	</default></users>
	<quotas><default></default></quotas>
</yandex>
END
	Hunt::start([$program, "--config-file=$data/config.xml"], dir => $data);
	return $port;
}
