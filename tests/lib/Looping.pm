# An hsnap that takes snapshots again and again under Wine: what it has said, the files that it has
# made, and Ctrl-C.
package Looping;
use strict;
use warnings;
use Exporter qw(import);
use File::Copy qw(copy);
use File::Temp ();
use Hunt;
use POSIX qw(WNOHANG);
use Time::HiRes qw(time sleep);

our @EXPORT = qw(own_copy loop loop_under);
my $limit = $Hunt::limit;
my $loops = 0;

# A program under a name that nobody else has: processes are found by it.
sub own_copy {
	my ($file, $name) = @_;
	my $exe = fresh_dir() . "/$name$$.exe";
	copy("$root/$file", $exe) or die "$exe: $!\n";
	return $exe;
}

sub loop { return loop_under([], @_) }

# The same, started by a command of this machine. The program is a copy: a signal finds it by its path.
sub loop_under {
	my ($under, @args) = @_;
	my $exe = own_copy('build/win64/hsnap.exe', 'loop' . $loops++ . '_');
	my $err = File::Temp->new;
	my $pid = Hunt::start([@$under, wine($exe, @args)], stderr => "$err");
	return bless { exe => $exe, pid => $pid, err => $err, args => "@args", at => 0 }, __PACKAGE__;
}

sub text { return slurp("$_[0]{err}") =~ s/\r//gr }

# Waits so many seconds for its end.
sub has_ended {
	my ($self, $seconds) = @_;
	return 1 if defined $self->{wait};
	sleep $seconds; # one looks as often as this
	return 0 if waitpid($self->{pid}, WNOHANG) != $self->{pid};
	$self->{wait} = $?;
	Hunt::forget($self->{pid});
	return 1;
}

sub status {
	my ($self) = @_;
	return $self->{wait} & 127 ? 128 + ($self->{wait} & 127) : $self->{wait} >> 8;
}

# Until its end; its status.
sub end {
	my ($self) = @_;
	return $self->until(sub { $self->has_ended(0.02) }) ? $self->status : 'no end in time';
}

# Waits until something is true, or the time is over.
sub until {
	my ($self, $is_true) = @_;
	my $until = time + $limit;
	until ($is_true->()) {
		if (time > $until) {
			Test::More::diag("hsnap $self->{args}:\n", $self->text);
			return 0;
		}
		sleep 0.002;
	}
	return 1;
}

# Waits for a file to be there.
sub wait_for {
	my ($self, $name, $dir) = @_;
	return $self->until(sub { -e "$dir/$name" });
}

# Waits for a line that was not waited for yet.
sub wait_line {
	my ($self, $words) = @_;
	return $self->until(sub {
		my $text = substr $self->text, $self->{at};
		return 0 if $text !~ /^[^\n]*$words[^\n]*\n/m;
		$self->{at} += $+[0];
		return 1;
	});
}

# What the first parenthesis of a pattern found in each line it has said.
sub said {
	my ($self, $pattern) = @_;
	return map { s/^hsnap: //r =~ $pattern ? $1 : () } split /\n/, $self->text;
}

sub interrupt { return kill INT => $_[0]->unix_pid }

# Whether the process is there that lets go of what hsnap holds, should hsnap be killed.
sub has_helper {
	my ($self) = @_;
	for my $dir (glob '/proc/[0-9]*') {
		my $command = eval { slurp("$dir/cmdline") } // next;
		return 1 if $command =~ /^hsnap[\0 ]--guard/ && (eval { slurp("$dir/maps") } // '') =~ /\Q$self->{exe}\E$/m;
	}
	return 0;
}

sub unix_pid { return wine_process($_[0]{pid}, $_[0]{exe}) }

1;
