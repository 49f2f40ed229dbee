#!/usr/bin/perl
# hsnap doctor --keep. On every system its minidumps are read as the truth beside them states, and
# they do not identify the user. Folders from Windows machines are in kept/ of the test data
# (data_file), or in tests/kept.
use strict;
use warnings;
no warnings 'portable';    # addresses have 64 bits
use File::Basename qw(basename dirname);
use File::Copy qw(copy);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Encode qw(encode);
use Hunt;
use Kept;

# These folders contain Microsoft's code, so the repository may not contain them. HSNAP_TEST_DATA
# may also lack them: none exists yet.
my $data = ($ENV{HSNAP_TEST_DATA} // '') ne '' ? $ENV{HSNAP_TEST_DATA} : "$root/../shared/data";
my @came = grep { -d } glob "\Q$data\E/kept/* tests/kept/*";
check_kept($_, basename($_)) for @came;

# A folder made on this system, by a program in its own folder, with a variable in the environment.
my $dir = fresh_dir();
my $exe = "$dir/hsnap.exe";
copy("$root/build/win64/" . basename($_), $_) or die "$_: $!\n" for $exe, "$dir/hsnap-tracer64.dll";
my $folder = "$dir/kept folder";
my $kept = run([wine($exe, 'doctor', '--keep', win($folder))], env => { SOME_VARIABLE => 'of-one-user' }, limit => 2 * $Hunt::limit);
is($kept->{status}, 0, 'status 0') or diag($kept->{out}, $kept->{err});
is($kept->{err}, '', 'no complaint');
check_kept($folder, 'this system');
my @states = kept_states($folder);
is($states[0], 'plain-64', 'a plain 64-bit child is kept');
is_deeply([files_in($folder)], [sort 'machine.txt', map { ("$_.dmp.gz", "$_.truth") } @states], 'nothing else is in the folder');

my $machine = slurp("$folder/machine.txt");
my %lines = map { /^(\S+) (.*)/ ? ($1 => $2) : () } split /\r?\n/, $machine;
like($lines{windows}, qr/^\d+\.\d+\.\d+(?:\.\d+)?(?:, wine .*)?$/, 'machine.txt: the version');
like($lines{processors}, qr/^\d+, architecture \d+/, 'machine.txt: the processor');
like($machine, qr/\\dbghelp\.dll(?: \d+\.\d+\.\d+\.\d+| none)$/mi, 'machine.txt: dbghelp.dll');
like($machine, qr/\\symsrv\.dll(?: \d+\.\d+\.\d+\.\d+| none)$/mi, 'machine.txt: symsrv.dll');
like($machine, qr/^plain-64 is kept: flags \w+, GetProcessHeaps\(\) \d+, PEB\.NumberOfHeaps \d+$/m, 'machine.txt: both lists of heaps');
like($machine, qr/^policies-64\b.* known$/m, 'machine.txt: policies');
my %code = $machine =~ /^code-64 (\w+)((?: [0-9a-f]{2}){64})$/mg;
is(scalar(grep { defined $code{$_} } qw(RtlAllocateHeap RtlReAllocateHeap RtlFreeHeap RtlCreateHeap RtlDestroyHeap NtAllocateVirtualMemory)), 6,
	'machine.txt: the first bytes of hooked functions');
for my $state (qw(ust-64 ust-segment-64)) {
	my $is_kept = grep { $_ eq $state } @states;
	my @said = $machine =~ /^\Q$state\E is (?:not )?kept: \S.*$/mg;
	is(scalar @said, 1, "machine.txt: one line about $state");
	like($said[0] // '', $is_kept ? qr/ is kept/ : qr/ is not kept/, "machine.txt: it is right about $state");
}
like($machine, qr/^ust-64 is not kept: Wine records no stacks$/m, 'Wine records no stacks') if $machine =~ /, wine /;

# Texts that identify the user.
my $dump = unpacked_dump($folder, $states[0]);
my $bytes = lc(slurp($dump));
my $system = $ENV{USERPROFILE} // 'C:\users\\' . (getpwuid $<)[0];
my %secret = ('the folder of hsnap' => win($dir), 'the user\'s folder' => $system, 'a variable' => 'of-one-user');
for my $what (sort keys %secret) {
	my $text = lc $secret{$what} =~ s/^\w://r;
	is(index($bytes, encode('UTF-16LE', $text)), -1, "the minidump lacks $what");
	# Wine's own copy of the text
	is(index($bytes, $text), -1, "the minidump lacks $what in bytes") if $what ne 'a variable';
	is(index(lc $machine, $text), -1, "machine.txt lacks $what");
}

# Check that the comparison detects errors.
my $truth = slurp("$folder/$states[0].truth");
my $wrong_of = sub { return kept_wrong($dump, spew("$dir/changed.truth", $_[0])) };
is_deeply([$wrong_of->($truth)], [], 'the truth as it is');
my ($block, $more) = $truth =~ /^(block \w+ \w+ )(\d+) /m;
my $longer = $block . ($more + 1);
is(scalar $wrong_of->($truth =~ s/^\Q$block$more\E /$longer /mr), 1, 'a block of another size is found');
is(scalar $wrong_of->($truth =~ s/^block (\w+ \w+) .*\n/freed $1\n/mr), 1, 'a freed block that is listed is found') if $machine =~ /, wine /;
is(scalar $wrong_of->("heap 12340000 wine\n$truth"), 1, 'a heap that is not listed is found');
is(scalar $wrong_of->($truth =~ s/^heap .*\n//mr), 1, 'a heap too many is found');

check_error(hsnap('doctor', '--keep', win($folder)), 'hsnap', 'a folder that is there', 'already exists');
check_error(hsnap('doctor', '--keep', win("$dir/none/kept")), 'hsnap', 'no place for a folder', 'cannot create');
check_error(hsnap('doctor', '--keep'), 'hsnap', 'no folder', '--keep');
done_testing;
