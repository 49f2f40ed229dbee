# A headless browser for tests of pages. Chromium.pm and Firefox.pm are its drivers. They define:
#
#   js EXPRESSION       returns the value of an expression, or of its promise
#   load URL            opens a page and waits until it is loaded
#   pointer X, Y, TYPE  one event of the pointer, at a place in the window
#   press KEY           presses and releases a key, named as in JavaScript
#   type TEXT           types a text where the focus is
#   size W, H           sets the size of the page's window; no numbers: as at first
#   media %HOW          scheme => 'light' or 'dark', medium => 'print'; those not given are as at first
#   png, pdf            the window as a picture, the page on paper
#   complaints          texts of errors and warnings of all pages
#   requests            addresses that were requested, if the driver can observe them
#   quit                ends the browser
package Browser;
use strict;
use warnings;
use JSON::PP;
use POSIX ();
use Hunt;

our $json = JSON::PP->new->utf8->allow_nonref;

sub new {
	my ($class, $program, %how) = @_;
	my $driver = $program =~ /firefox/ ? 'Firefox' : 'Chromium';
	require "$driver.pm";
	my $self = bless { limit => 60, said => '', complaints => [], requests => [], dir => fresh_dir(), width => 1280, height => 900, %how }, $driver;
	$self->begin($program);
	return $self;
}

# Starts the browser's program. `$before` runs in the new process.
sub start_program {
	my ($self, $before, @command) = @_;
	$self->{pid} = fork // die "fork: $!\n";
	return if $self->{pid};
	open STDOUT, '>', '/dev/null' or POSIX::_exit(126);
	open STDERR, '>', "$self->{dir}/log" or POSIX::_exit(126);
	local $^F = 4;
	$before->();
	{ no warnings 'exec'; exec @command; }
	POSIX::_exit(127);
}

# Reads more of what the browser writes.
sub read_more {
	my ($self, $in, $left) = @_;
	die "the browser says nothing\n" if $left <= 0 || !IO::Select->new($in)->can_read($left);
	sysread($in, $self->{said}, 1 << 20, length $self->{said}) or die "the browser is gone\n" . slurp("$self->{dir}/log");
	return;
}

# Opens a page. Opens about:blank first, because a new '#' alone would not reload the page.
sub open_page { my ($self, $url) = @_; $self->load($_) for 'about:blank', $url; return }

# Waits until the page has drawn the changes.
sub drawn { $_[0]->js('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))'); return }

# Moves the pointer to a place in an element. The place is given in fractions of the element's size,
# or in pixels from its corner.
sub point {
	my ($self, $selector, $x, $y, @types) = @_;
	my $at = $self->js(sprintf '(() => { const e = document.querySelector(%s); e.scrollIntoView({ block: "center" }); const r = e.getBoundingClientRect();'
		. ' return [r.left + (%s), r.top + (%s)]; })()', $json->encode($selector), $x =~ /\./ ? "r.width * $x" : $x, $y =~ /\./ ? "r.height * $y" : $y);
	$self->pointer(@$at, $_) for @types ? @types : qw(mouseMoved mousePressed mouseReleased);
	$self->drawn;
	return;
}

sub click { my ($self, $selector) = @_; return $self->point($selector, '0.5', '0.5') }

sub key {
	my ($self, @keys) = @_;
	$self->press($_) for @keys;
	$self->drawn;
	return;
}

sub picture { my ($self, $file) = @_; return spew($file, $self->png) }

sub close {
	my ($self) = @_;
	my $pid = delete $self->{pid} or return;
	eval { $self->quit };
	waitpid $pid, 0;
	return;
}

sub DESTROY {
	my ($self) = @_;
	local ($?, $@);
	my $pid = $self->{pid} or return;
	kill 'KILL', $pid;
	waitpid $pid, 0;
	return;
}

1;
