#!/usr/bin/perl
# Reports of handles, and tracers without them. tests/live/handles.t checks each handle.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

my $dir = fresh_dir();
my $exe = "$root/build/win64/targets/handles.exe";

subtest 'forms' => \&check_forms;
subtest 'without --handles' => \&check_without;
subtest 'detach' => \&check_detach;
done_testing;

sub hdiff { return run(["$root/build/linux/hdiff", @_]) }

sub check_forms {
	my @files = map { "$dir/$_.txt" } 1, 2;
	my $target = target($exe, [], traced => 1, run => ['--handles']);
	for my $step (1, 2) {
		is($step == 1 ? $target->step : $target->next_step, $step, "step $step");
		is(hsnap('-p', $target->{pid}, '-f', win($files[$step - 1]))->{status}, 0, 'a snapshot');
	}
	is($target->quit, 0, 'the target ends');
	my $plain = hdiff(@files)->{out};
	my ($count) = $plain =~ /^not counted: handles, \+(\d+) \(--heap handles\)$/m;
	cmp_ok($count, '>=', 97, 'handles are not blocks');
	unlike($plain, qr/open_events/, '... and no rows');
	my $handles = hdiff('--heap', 'handles', @files)->{out};
	like($handles, qr/^ +\d +0 B +\+30 .* open_events /m, 'rows on request');
	like(hdiff('--heap', 'handles', '--group', 'heap', @files)->{out}, qr/\+46 .* Handles: Event$/m, 'types as groups');
	is(hdiff_json(@files)->{totals}{handles}{growth}{blocks}, $count, 'json');
	is(hdiff('--heap', 'nothing', @files)->{status}, 2, 'an unknown kind');
	return;
}

sub check_without {
	my $target = target($exe, [], traced => 1);
	is($target->step, 1, 'step 1');
	is(hsnap('-p', $target->{pid}, '-f', win("$dir/none.txt"))->{status}, 0, 'a snapshot');
	is($target->quit, 0, 'the target ends');
	unlike(slurp("$dir/none.txt"), qr/Handles/, 'has no handles');
	my $none = hdiff('--heap', 'handles', "$dir/none.txt", "$dir/none.txt");
	like($none->{err}, qr/no dump has handles; hsnap run --handles records them/, 'a message');
	return;
}

# Without --handles, ntdll has the jumps that every tracer needs. After detaching, it has none, and the
# target goes on.
sub check_detach {
	my $target = target($exe, []);
	my %bytes;
	is($target->step, 1, 'step 1');
	for my $how ('', '--handles', '') {
		is(hsnap('attach', grep({ $_ } $how), '-p', $target->{pid})->{status}, 0, "attach $how");
		push @{ $bytes{$how} }, peek($target)->{ntdll};
		is(hsnap('detach', '-p', $target->{pid})->{status}, 0, 'detach');
		is(peek($target)->{ntdll}, 0, 'ntdll is as in the file');
	}
	is($bytes{''}[0], $bytes{''}[1], 'a later attach changes what the first one did');
	cmp_ok($bytes{'--handles'}[0], '>', $bytes{''}[0], '--handles changes more');
	is($target->next_step, $_, "step $_") for 2, 3;
	is($target->quit, 0, 'the target ends');
	return;
}
