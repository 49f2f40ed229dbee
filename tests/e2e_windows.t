#!/usr/bin/perl
# Windows-only parts, tested without Windows where possible. The workflow is valid YAML and calls
# commands that exist. tests/windows/umdh.t passes with correct stand-ins for UMDH and GFlags, and
# fails if a stand-in omits a block.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use CPAN::Meta::YAML;
use Encode qw(encode_utf8);
use Test::More;
use Hunt;

my $text = slurp("$root/.github/workflows/windows.yml");
my $flow = eval { CPAN::Meta::YAML->read_string($text =~ s/\[([^]]*)\]/'$1'/gr)->[0] };
is(ref $flow, 'HASH', 'the workflow is YAML') or diag($@);
my @steps = map { @{ $_->{steps} } } values %{ $flow->{jobs} };
is_deeply([grep { !defined $_->{run} == !defined $_->{uses} } @steps], [], 'each step runs one thing');
my @called = map { ($_->{run} // '') =~ m{((?:tests|setup)/\S+)(?: (\w+))?} ? [$1, $2] : () } @steps;
cmp_ok(scalar @called, '>=', 4, 'it calls scripts');
for my $call (@called) {
	my ($script, $word) = map { encode_utf8($_) } @$call; # a path consists of bytes
	ok(-x "$root/$script", "$script is there");
	like(slurp("$root/$script"), qr/^\Q$word\E\)$/m, "$script knows '$word'");
}
my %targets = map { $_ => 1 } slurp("$root/Makefile") =~ /^([a-z0-9-]+):/mg;
my @made = map { ($_->{run} // '') =~ s/\$\{\{.*?\}\}//gr =~ /\bmake (.*)/ ? grep { !/=/ } split ' ', $1 : () } @steps;
is_deeply([grep { !$targets{$_} } @made], [], 'it makes what the Makefile has');
like($text, qr/\A(?:#.*\n)*#.*This workflow has never run/, 'and states that it has never run');

my $tools = fresh_dir();
my $hsnap = "'$root/setup/wine' '$root/build/win64/hsnap.exe'";
spew("$tools/gflags.exe", "#!/bin/sh\n" . <<"SH");
case \$3 in
+ust) exec $hsnap ust on "\$2" ;;
-ust) exec $hsnap ust off "\$2" ;;
*) $hsnap ust show "\$2" | sed -n "s/^\$2: ust is on.*/	ust - Create user mode stack trace database/p" ;;
esac
SH
spew("$tools/umdh.exe", "#!/bin/sh\n" . <<"SH");
[ "\$1" = -d ] && exec '$root/setup/wine' '$root/build/win64/hdiff.exe' --match id "\$@"
$hsnap --stacks=tracer "\$@" || exit
file=\$(printf '%s' "\${2#-f:Z:}" | tr '\\\\' /)
perl -i -ne 'print "// UMDH: version 10.0.1.2 : Logtime 2026-11-20 10:00 - Machine=BOX - PID='"\${1#-p:}"'\\n" if \$. == 1;
	print unless m{^// hsnap:} || \$ENV{HSNAP_LIE} && /^[0-9A-F]+ bytes/ && !\$done++' "\$file"
SH
chmod 0755, "$tools/umdh.exe", "$tools/gflags.exe";

my %how = (HSNAP_DEBUGGERS => $tools, HSNAP_STAND_IN => 1);
my @umdh = ($^X, "$root/tests/windows/umdh.t");
like(run(\@umdh, env => { HSNAP_DEBUGGERS => "$tools/none" })->{out}, qr/^1\.\.0 # SKIP no UMDH/, 'without UMDH it is skipped with a word');
my $missed = run(\@umdh, env => { HSNAP_DEBUGGERS => "$tools/none", HSNAP_MUST_HAVE => 'wpr,umdh' });
is($missed->{status}, 1, 'where it must be there, its absence is a failure');
like($missed->{out}, qr/^not ok 1 - umdh is here: no UMDH/, 'which names it');
my $true = run(\@umdh, env => \%how);
is($true->{status}, 0, 'tests/windows/umdh.t passes if UMDH is right') or diag($true->{out}, $true->{err});
my $lying = run(\@umdh, env => { %how, HSNAP_LIE => 1 });
my @failed = $lying->{out} =~ /^not ok \d+ - (.*)$/mg;
is_deeply([grep { /every block/ } @failed], [map { "step $_: every block, its bytes and its stack are the same, or a rule says why not" } 1, 2],
	'and fails where it leaves out a block') or diag($lying->{out});
like($lying->{err}, qr/DIFFERENT: a block that UMDH has not: 1\b/, 'which is named');
done_testing;
