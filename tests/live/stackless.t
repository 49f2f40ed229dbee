#!/usr/bin/perl
# Groups of blocks without a stack, by size and first word. The truth is what targets/kinds.c states in
# its comment.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../lib";
use Test::More;
use Cell;
use Hunt;
use Stackless;

my $dir = fresh_dir();
# Rows of step 2: name => [blocks, bytes].
my %stated = (
	'(no stack) 64 B|kinds!session_table' => [500, 500 * 64],
	'(no stack) 4096 B' => [300, 300 * 4096],
	'(no stack) 40 B|text "GET /in"' => [200, 200 * 40],
	'(no stack) 48 B|UTF-16 text "queue-n"' => [100, 100 * 48],
	'(no stack) 16-32 KiB' => [80, 80 * 20000 + 100 * 79 * 80 / 2],
);

is(scalar(() = slurp("$root/tests/targets/kinds.c") =~ /^ \* blocks: /mg), keys %stated, 'the target states what it adds');
subtest 'without tracer' => sub { check_steps(0) };
subtest 'older than the tracer' => sub { check_steps(1) };
done_testing;

sub check_steps {
	my ($attached) = @_;
	my $target = start_stating('targets/kinds.exe');
	for my $step (1 .. 3) {
		syswrite $target->{to}, "\n" if $step > 1;
		is($target->step, $step, "step $step");
		is(hsnap('attach', '-p', $target->{pid})->{status}, 0, 'attached') if $attached && $step == 3;
		my $file = "$dir/$attached-$step.txt";
		is(hsnap('--sample-content', 2, '-p', $target->{pid}, '-f', win($file))->{status}, 0, 'a snapshot');
		is(run(["$root/build/linux/hsym", '-o', "$dir/named-$attached-$step.txt", $file])->{status}, 0, 'names');
	}
	is(hsnap('-p', $target->{pid}, '-f', win("$dir/private.txt"))->{status}, 0, 'another one');
	unlike(slurp("$dir/private.txt"), qr{stackless .*text=|hsnap: content}, 'has no data of the program');
	is($target->quit, 0, 'the target ends');
	my %row = stackless_rows(map { "$dir/named-$attached-$_.txt" } 1, 2);
	# Without llvm-symbolizer, data has an offset instead of a name (tests/e2e_stackless.t).
	%row = map { s/^(\(no stack\) 64 B\|kinds!)\+[0-9A-F]+$/$1session_table/r => $row{$_} } keys %row;
	is_deeply(stackless_growth(\%row), \%stated, 'what grew');
	is_deeply({ map { $_ => contents($row{$_}) } keys %stated }, { map { $_ => [/KiB/ ? 10 : 2, start_of($_)] } keys %stated }, 'contents');
	%row = stackless_rows(map { "$dir/named-$attached-$_.txt" } 2, 3);
	is_deeply([grep { exists $row{$_} } keys %stated], [], 'nothing of it changes later');
	return;
}

# Returns the number of a row's contents, and their first bytes, which must be equal.
sub contents {
	my %start = map { (unpack 'H16', pack('H*', $_->{data}) . "\0" x 8) => 1 } @{ $_[0]{contents} // [] };
	return [scalar @{ $_[0]{contents} // [] }, sort keys %start];
}

sub start_of {
	my ($name) = @_;
	return unpack('H16', 'GET /ind') if $name =~ /GET/;
	return unpack('H16', "q\0u\0e\0u\0") if $name =~ /queue/;
	return '0' x 16 if $name !~ /session/;
	my ($table) = slurp("$dir/0-2.txt") =~ /stackless addr=\S+ bytes=64 to=(\S+) blocks=500/;
	return unpack 'H16', reverse pack 'H*', ("0" x (16 - length $table)) . $table;
}
