#!/usr/bin/perl
# Handles with the stacks that opened them. The truth is what targets/handles.c states in its comment.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;

my $dir = fresh_dir();
my %stated = slurp("$root/tests/targets/handles.c") =~ /^ \* handles: (\S+ \S+) (\d+)$/mg;

is(keys %stated, 15, 'the target states what it opens');
subtest 'run' => sub { check_steps('run') };
subtest 'attach' => sub { check_steps('attach') };
done_testing;

# Returns { 'FUNCTION TYPE' => growth of handles }, by json.
sub growth {
	my @files = @_;
	my %growth;
	for my $type (qw(event file key mutant process section semaphore thread timer token other)) {
		for my $row (@{ hdiff_json('--heap', $type, @files)->{rows} }) {
			my ($own) = map { $_->{function} } grep { ($_->{module} // '') eq 'handles' && ($_->{function} // '') =~ /^(?:open|copy|move)_\w+s$/ } @{ $row->{frames} };
			is($row->{growth}{bytes}, 0, 'no bytes') if $row->{growth}{bytes};
			$growth{"$own $type"} += $row->{growth}{blocks} if $own;
		}
	}
	return \%growth;
}

sub check_steps {
	my ($how) = @_;
	my $target = start_stating('targets/handles.exe', [], $how eq 'run' ? (traced => 1, run => ['--handles']) : ());
	for my $step (1 .. 3) {
		syswrite $target->{to}, "\n" if $step > 1;
		is($target->step, $step, "step $step");
		check_ok(hsnap('attach', '--handles', '-p', $target->{pid}), 'attach') if $how eq 'attach' && $step == 1;
		snapshot($target->{pid}, "$dir/$how-$step.txt");
	}
	is($target->quit, 0, 'the target ends');
	is_deeply(growth(map { "$dir/$how-$_.txt" } 1, 2), \%stated, 'what was opened');
	is_deeply(growth(map { "$dir/$how-$_.txt" } 2, 3), { map { $_ => -$stated{$_} } keys %stated }, 'what was closed');
	return;
}
