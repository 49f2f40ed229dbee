# Drives Debian's chromium by its protocol over two pipes: JSON messages, each followed by a NUL.
# All network requests and complaints of the page are recorded.
package Chromium;
use strict;
use warnings;
use parent -norequire, 'Browser';
use IO::Select;
use JSON::PP;
use MIME::Base64 qw(decode_base64);
use POSIX ();
use Time::HiRes qw(time);

sub begin {
	my ($self, $program) = @_;
	pipe my $its_in, my $out or die "pipe: $!\n";
	pipe my $in, my $its_out or die "pipe: $!\n";
	$self->start_program(sub {
			my ($to, $from) = map { POSIX::dup(fileno $_) } $its_in, $its_out;
			POSIX::dup2($to, 3);
			POSIX::dup2($from, 4);
		}, $program, qw(--headless --no-sandbox --disable-gpu --hide-scrollbars --remote-debugging-pipe --no-first-run --disable-background-networking
		--disable-component-update), "--user-data-dir=$self->{dir}/profile", "--window-size=$self->{width},$self->{height}", 'about:blank');
	CORE::close $its_in;
	CORE::close $its_out;
	@$self{qw(in out)} = ($in, $out);
	$out->autoflush;
	my $target = $self->ask('Target.createTarget', { url => 'about:blank' });
	$self->{session} = $self->ask('Target.attachToTarget', { targetId => $target->{targetId}, flatten => JSON::PP::true })->{sessionId};
	$self->ask($_) for qw(Page.enable Runtime.enable Log.enable Network.enable);
	return;
}

sub ask {
	my ($self, $method, $params) = @_;
	my $id = ++$self->{id};
	print { $self->{out} } $Browser::json->encode({ id => $id, method => $method, params => $params // {}, $self->{session} ? (sessionId => $self->{session}) : () }), "\0";
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
	$self->read_more($self->{in}, $until - time) while $self->{said} !~ /\0/;
	$self->{said} =~ s/\A(.*?)\0//s;
	my $message = $Browser::json->decode($1);
	my ($method, $params) = ($message->{method} // '', $message->{params});
	push @{ $self->{complaints} }, $params->{exceptionDetails}{exception}{description} // $params->{exceptionDetails}{text} if $method eq 'Runtime.exceptionThrown';
	push @{ $self->{complaints} }, $params->{entry}{text} if $method eq 'Log.entryAdded' && $params->{entry}{level} =~ /warning|error/;
	push @{ $self->{complaints} }, "console: $params->{type}" if $method eq 'Runtime.consoleAPICalled';
	push @{ $self->{complaints} }, "a dialog: $params->{message}" if $method eq 'Page.javascriptDialogOpening';
	push @{ $self->{requests} }, $params->{request}{url} if $method eq 'Network.requestWillBeSent';
	$self->{loaded}++ if $method eq 'Page.loadEventFired';
	return $message;
}

sub load {
	my ($self, $url) = @_;
	$self->{loaded} = 0;
	$self->ask('Page.navigate', { url => $url });
	$self->message until $self->{loaded};
	return;
}

sub js {
	my ($self, $expression) = @_;
	my $result = $self->ask('Runtime.evaluate', { expression => $expression, returnByValue => JSON::PP::true, awaitPromise => JSON::PP::true });
	die "$expression: $result->{exceptionDetails}{exception}{description}\n" if $result->{exceptionDetails};
	return $result->{result}{value};
}

sub pointer {
	my ($self, $x, $y, $type) = @_;
	$self->ask('Input.dispatchMouseEvent', { type => $type, x => $x, y => $y, button => $type eq 'mouseMoved' && !$self->{is_down} ? 'none' : 'left',
			buttons => $self->{is_down} ? 1 : 0, clickCount => 1 });
	$self->{is_down} = $type eq 'mousePressed' if $type ne 'mouseMoved';
	return;
}

sub press {
	my ($self, $key) = @_;
	my %code = (Enter => 13, Escape => 27, Backspace => 8, PageUp => 33, PageDown => 34, End => 35, Home => 36, ArrowDown => 40, ArrowUp => 38, ArrowLeft => 37,
		ArrowRight => 39, Tab => 9, ' ' => 32);
	my $text = $key eq 'Enter' ? "\r" : $key;
	for my $type (qw(keyDown keyUp)) {
		$self->ask('Input.dispatchKeyEvent', { type => $type, key => $key, code => $key, windowsVirtualKeyCode => $code{$key} // ord $key,
				$type eq 'keyDown' && length $text == 1 ? (text => $text) : () });
	}
	return;
}

sub type { my ($self, $text) = @_; $self->ask('Input.insertText', { text => $text }); return $self->drawn }

sub size {
	my ($self, $width, $height) = @_;
	$self->ask($width ? ('Emulation.setDeviceMetricsOverride', { width => $width, height => $height, deviceScaleFactor => 1, mobile => JSON::PP::false }) : 'Emulation.clearDeviceMetricsOverride');
	return;
}

sub media {
	my ($self, %how) = @_;
	$self->ask('Emulation.setEmulatedMedia', { media => $how{medium} // '', features => [$how{scheme} ? { name => 'prefers-color-scheme', value => $how{scheme} } : ()] });
	return;
}

sub png { my ($self) = @_; return decode_base64($self->ask('Page.captureScreenshot', { format => 'png' })->{data}) }
sub pdf { my ($self) = @_; return decode_base64($self->ask('Page.printToPDF', { printBackground => JSON::PP::true })->{data}) }
sub complaints { return @{ $_[0]{complaints} } }
sub requests { return @{ $_[0]{requests} } }
sub quit { my ($self) = @_; delete $self->{session}; return $self->ask('Browser.close') }

1;
