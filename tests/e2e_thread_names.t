#!/usr/bin/perl
# Names of threads in a recording of a live program, which states its threads, their names, and who
# freed their blocks.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP qw(decode_json);
use Test::More;
use Hunt;

my $dir = fresh_dir();
my $file = "$dir/named.hrec";
my $target = target("$root/build/win64/targets/named.exe", [], record => ['-o', win($file)]);
my %stated;
while (defined(my $line = $target->line)) {
	$line =~ s/\r$//;
	$stated{$1} = { allocated => $2, itself => $3, main => $4, name => $5 } if $line =~ /^thread (\d+) (\d+) (\d+) (\d+) (.*)$/;
	($target->{pid}) = $1 or last if $line =~ /^step 1 pid (\d+)$/;
	last if $target->{pid};
}
is(scalar keys %stated, 5, 'it states its threads');
marked($target, 'names');
is($target->next_step, 2, 'the threads end');
is($target->quit, 0, 'the program ends');
my ($main) = grep { $stated{$_}{name} eq 'main thread' } keys %stated;

my $run = run(["$root/build/linux/hdiff", '--no-symbols', '-o', 'json', '--size', 10007, '--group', 'thread', $file]);
my %groups = map { $_->{thread} => $_ } @{ decode_json($run->{out})->{groups} };
# Groups without blocks of the class have no row.
for my $id (sort { $a <=> $b } keys %stated) {
	my ($thread, $group) = ($stated{$id}, $groups{$id});
	my $kept = $thread->{allocated} - $thread->{itself} - $thread->{main};
	is($group ? $group->{self}{new}{blocks} : 0, $kept, "$thread->{name}: blocks") or diag($run->{err});
	next if !$group;
	is(utf8($group->{name}), $thread->{name} ? "$thread->{name} ($id)" : "thread $id", 'its name');
	my %freed = map { $_->{thread} => $_->{blocks} } @{ $group->{window}{freed_by_threads} };
	is_deeply(\%freed, { $thread->{itself} ? ($id => $thread->{itself}) : (), $thread->{main} ? ($main => $thread->{main}) : () }, 'who freed');
}
my %names = map { $_ => $stated{$_}{name} } grep { $stated{$_}{name} ne '' } keys %stated;
my $list = decode_json(run(["$root/build/linux/hdiff", '--list', '-o', 'json', $file])->{out});
is_deeply({ map { $_ => utf8($list->{thread_names}{$_}) } keys %{ $list->{thread_names} } }, \%names, 'the list has all names');
done_testing;

sub utf8 { my ($text) = @_; utf8::encode($text); return $text }
