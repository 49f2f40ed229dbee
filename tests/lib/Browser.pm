# A headless browser for tests of pages: Debian's chromium, controlled by its protocol over two
# pipes (JSON messages, each followed by a NUL). All network requests and complaints of the page are
# recorded.
package Browser;
use strict;
use warnings;
use IO::Select;
use JSON::PP;
use MIME::Base64 qw(decode_base64);
use POSIX ();
use Time::HiRes qw(time);
use Hunt;

my $json = JSON::PP->new->utf8->allow_nonref;

sub new {
	my ($class, $program, %how) = @_;
	my $self = bless { limit => 60, id => 0, said => '', complaints => [], requests => [], dir => fresh_dir() }, $class;
	pipe my $its_in, my $out or die "pipe: $!\n";
	pipe my $in, my $its_out or die "pipe: $!\n";
	$self->{pid} = fork // die "fork: $!\n";
	if (!$self->{pid}) {
		my ($to, $from) = map { POSIX::dup(fileno $_) } $its_in, $its_out;
		POSIX::dup2($to, 3);
		POSIX::dup2($from, 4);
		open STDOUT, '>', '/dev/null' or POSIX::_exit(126);
		open STDERR, '>', "$self->{dir}/log" or POSIX::_exit(126);
		local $^F = 4;
		{ no warnings 'exec'; exec $program, qw(--headless --no-sandbox --disable-gpu --hide-scrollbars --remote-debugging-pipe
			--no-first-run --disable-background-networking --disable-component-update), "--user-data-dir=$self->{dir}/profile",
			sprintf('--window-size=%d,%d', $how{width} // 1280, $how{height} // 900), 'about:blank'; }
		POSIX::_exit(127);
	}
	close $its_in;
	close $its_out;
	@$self{qw(in out)} = ($in, $out);
	$out->autoflush;
	my $target = $self->ask('Target.createTarget', { url => 'about:blank' });
	$self->{session} = $self->ask('Target.attachToTarget', { targetId => $target->{targetId}, flatten => JSON::PP::true })->{sessionId};
	$self->ask($_) for qw(Page.enable Runtime.enable Log.enable Network.enable);
	return $self;
}

sub ask {
	my ($self, $method, $params) = @_;
	my $id = ++$self->{id};
	print { $self->{out} } $json->encode({ id => $id, method => $method, params => $params // {}, $self->{session} ? (sessionId => $self->{session}) : () }), "\0";
	while (1) {
		my $message = $self->message;
		next unless ($message->{id} // 0) == $id;
		die "$method: $message->{error}{message}\n" if $message->{error};
		return $message->{result};
	}
}

# Returns the next message; records requests and complaints.
sub message {
	my ($self) = @_;
	my $until = time + $self->{limit};
	while ($self->{said} !~ /\0/) {
		my $left = $until - time;
		die "the browser says nothing\n" if $left <= 0 || !IO::Select->new($self->{in})->can_read($left);
		sysread($self->{in}, $self->{said}, 1 << 20, length $self->{said}) or die "the browser is gone\n" . slurp("$self->{dir}/log");
	}
	$self->{said} =~ s/\A(.*?)\0//s;
	my $message = $json->decode($1);
	my ($method, $params) = ($message->{method} // '', $message->{params});
	push @{ $self->{complaints} }, $params->{exceptionDetails}{exception}{description} // $params->{exceptionDetails}{text} if $method eq 'Runtime.exceptionThrown';
	push @{ $self->{complaints} }, $params->{entry}{text} if $method eq 'Log.entryAdded' && $params->{entry}{level} =~ /warning|error/;
	push @{ $self->{complaints} }, "console: $params->{type}" if $method eq 'Runtime.consoleAPICalled';
	push @{ $self->{complaints} }, "a dialog: $params->{message}" if $method eq 'Page.javascriptDialogOpening';
	push @{ $self->{requests} }, $params->{request}{url} if $method eq 'Network.requestWillBeSent';
	$self->{loaded}++ if $method eq 'Page.loadEventFired';
	return $message;
}

# Opens a page and waits until it is loaded. Opens about:blank first, because a new '#' alone would
# not reload the page.
sub open_page {
	my ($self, $url) = @_;
	for my $next ('about:blank', $url) {
		$self->{loaded} = 0;
		$self->ask('Page.navigate', { url => $next });
		$self->message until $self->{loaded};
	}
	return;
}

# Returns the value of a JavaScript expression.
sub js {
	my ($self, $expression) = @_;
	my $result = $self->ask('Runtime.evaluate', { expression => $expression, returnByValue => JSON::PP::true, awaitPromise => JSON::PP::true });
	die "$expression: $result->{exceptionDetails}{exception}{description}\n" if $result->{exceptionDetails};
	return $result->{result}{value};
}

# Waits until the page has drawn the changes.
sub drawn { $_[0]->js('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))'); return }

# Moves the pointer to a place in an element. The place is given in fractions of the element's size,
# or in pixels from its corner.
sub point {
	my ($self, $selector, $x, $y, @types) = @_;
	my $at = $self->js(sprintf '(() => { const e = document.querySelector(%s); e.scrollIntoView({ block: "center" }); const r = e.getBoundingClientRect();'
		. ' return [r.left + (%s), r.top + (%s)]; })()', $json->allow_nonref->encode($selector), $x =~ /\./ ? "r.width * $x" : $x, $y =~ /\./ ? "r.height * $y" : $y);
	for my $type (@types ? @types : qw(mouseMoved mousePressed mouseReleased)) {
		$self->ask('Input.dispatchMouseEvent', { type => $type, x => $at->[0], y => $at->[1], button => $type eq 'mouseMoved' && !$self->{is_down} ? 'none' : 'left',
				buttons => $self->{is_down} ? 1 : 0, clickCount => 1 });
		$self->{is_down} = $type eq 'mousePressed' if $type ne 'mouseMoved';
	}
	$self->drawn;
	return;
}

sub click { my ($self, $selector) = @_; return $self->point($selector, '0.5', '0.5') }

sub key {
	my ($self, @keys) = @_;
	my %code = (Enter => 13, Escape => 27, Backspace => 8, ArrowDown => 40, ArrowUp => 38, ArrowLeft => 37, ArrowRight => 39, Tab => 9, ' ' => 32);
	for my $key (@keys) {
		for my $type (qw(keyDown keyUp)) {
			$self->ask('Input.dispatchKeyEvent', { type => $type, key => $key, code => $key, windowsVirtualKeyCode => $code{$key} // ord $key,
					$type eq 'keyDown' && length $key == 1 ? (text => $key) : () });
		}
	}
	$self->drawn;
	return;
}

sub type { my ($self, $text) = @_; $self->ask('Input.insertText', { text => $text }); return $self->drawn }

sub picture {
	my ($self, $file) = @_;
	return spew($file, decode_base64($self->ask('Page.captureScreenshot', { format => 'png' })->{data}));
}

sub close {
	my ($self) = @_;
	my $pid = delete $self->{pid} or return;
	delete $self->{session};
	eval { $self->ask('Browser.close') };
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
