#!/usr/bin/perl
# Handles with the stacks that opened them. The truth is what targets/handles.c states in its comment.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP;
use Test::More;
use Hunt;

my $dir = fresh_dir();
my $exe = "$root/build/win64/targets/handles.exe";
my %stated = slurp("$root/tests/targets/handles.c") =~ /^ \* handles: (\S+ \S+) (\d+)$/mg;

is(keys %stated, 15, 'the target states what it opens');
subtest 'run' => sub { check_steps('run') };
subtest 'attach' => sub { check_steps('attach') };
subtest 'forms' => \&check_forms;
subtest 'without --handles' => \&check_without;
subtest 'detach' => \&check_detach;
done_testing;

sub hdiff { return run(["$root/build/linux/hdiff", @_]) }

# Returns { 'FUNCTION TYPE' => growth of handles }, by json.
sub growth {
	my @files = @_;
	my %growth;
	for my $type (qw(event file key mutant process section semaphore thread timer token other)) {
		for my $row (@{ JSON::PP->new->decode(hdiff('-o', 'json', '--heap', $type, @files)->{out})->{rows} }) {
			my ($own) = map { $_->{function} } grep { ($_->{module} // '') eq 'handles' && ($_->{function} // '') =~ /^(?:open|copy|move)_\w+s$/ } @{ $row->{frames} };
			is($row->{growth}{bytes}, 0, 'no bytes') if $row->{growth}{bytes};
			$growth{"$own $type"} += $row->{growth}{blocks} if $own;
		}
	}
	return \%growth;
}

sub check_steps {
	my ($how) = @_;
	my $target = $how eq 'run' ? target($exe, [], traced => 1, run => ['--handles']) : target($exe, []);
	for my $step (1 .. 3) {
		syswrite $target->{to}, "\n" if $step > 1;
		is($target->step, $step, "step $step");
		is(hsnap('attach', '--handles', '-p', $target->{pid})->{status}, 0, 'attached') if $how eq 'attach' && $step == 1;
		is(hsnap('-p', $target->{pid}, '-f', win("$dir/$how-$step.txt"))->{status}, 0, 'a snapshot');
	}
	is($target->quit, 0, 'the target ends');
	is_deeply(growth(map { "$dir/$how-$_.txt" } 1, 2), \%stated, 'what was opened');
	is_deeply(growth(map { "$dir/$how-$_.txt" } 2, 3), { map { $_ => -$stated{$_} } keys %stated }, 'what was closed');
	return;
}

sub check_forms {
	my @files = map { "$dir/run-$_.txt" } 1, 2;
	my $plain = hdiff(@files)->{out};
	my ($count) = $plain =~ /^not counted: handles, \+(\d+) \(--heap handles\)$/m;
	cmp_ok($count, '>=', 97, 'handles are not blocks');
	unlike($plain, qr/open_events/, '... and no rows');
	my $handles = hdiff('--heap', 'handles', @files)->{out};
	like($handles, qr/^ +\d +0 B +\+30 .* open_events /m, 'rows on request');
	like(hdiff('--heap', 'handles', '--group', 'heap', @files)->{out}, qr/\+46 .* Handles: Event$/m, 'types as groups');
	my $json = JSON::PP->new->decode(hdiff('-o', 'json', @files)->{out});
	is($json->{totals}{handles}{growth}{blocks}, $count, 'json');
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
