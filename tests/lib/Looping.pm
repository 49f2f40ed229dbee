# An hsnap under Wine that takes snapshots repeatedly. Provides its messages and its files, and
# sends Ctrl-C.
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

# Copies a program to a unique name, by which its processes are found.
sub own_copy {
	my ($file, $name) = @_;
	my $exe = fresh_dir() . "/$name$$.exe";
	copy("$root/$file", $exe) or die "$exe: $!\n";
	return $exe;
}

sub loop { return loop_under([], @_) }

# Starts hsnap through a command of this machine. The program is a copy, because signals find it by
# its path.
sub loop_under {
	my ($under, @args) = @_;
	my $exe = own_copy('build/win64/hsnap.exe', 'loop' . $loops++ . '_');
	my $err = File::Temp->new;
	my $pid = Hunt::start([@$under, wine($exe, @args)], stderr => "$err");
	return bless { exe => $exe, pid => $pid, err => $err, args => "@args", at => 0 }, __PACKAGE__;
}

sub text { return slurp("$_[0]{err}") =~ s/\r//gr }

# Waits up to this number of seconds for hsnap's end.
sub has_ended {
	my ($self, $seconds) = @_;
	return 1 if defined $self->{wait};
	sleep $seconds; # polling interval
	return 0 if waitpid($self->{pid}, WNOHANG) != $self->{pid};
	$self->{wait} = $?;
	Hunt::forget($self->{pid});
	return 1;
}

sub status {
	my ($self) = @_;
	return $self->{wait} & 127 ? 128 + ($self->{wait} & 127) : $self->{wait} >> 8;
}

sub end {
	my ($self) = @_;
	return $self->until(sub { $self->has_ended(0.02) }) ? $self->status : 'no end in time';
}

# Waits until a condition is true or the time limit is reached.
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

sub wait_for {
	my ($self, $name, $dir) = @_;
	return $self->until(sub { -e "$dir/$name" });
}

sub wait_line {
	my ($self, $words) = @_;
	return $self->until(sub {
		my $text = substr $self->text, $self->{at};
		return 0 if $text !~ /^[^\n]*$words[^\n]*\n/m;
		$self->{at} += $+[0];
		return 1;
	});
}

# Returns the first group of a pattern for each matching line that hsnap printed.
sub said {
	my ($self, $pattern) = @_;
	return map { s/^hsnap: //r =~ $pattern ? $1 : () } split /\n/, $self->text;
}

sub interrupt { return kill INT => $_[0]->unix_pid }

# Returns true if the watchdog process exists. The watchdog releases hsnap's targets if hsnap is
# killed.
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
