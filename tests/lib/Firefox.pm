# Drives Debian's firefox-esr by Marionette: JSON messages over a TCP connection on this machine, each
# with its length before it. Firefox chooses the port and writes it to a file in the profile.
package Firefox;
use strict;
use warnings;
use parent -norequire, 'Browser';
use IO::Select;
use IO::Socket::INET;
use JSON::PP;
use MIME::Base64 qw(decode_base64);
use Time::HiRes qw(sleep time);
use Hunt;

# Marionette's own names of keys, which are private characters.
my %keys = (Backspace => 0xe003, Tab => 0xe004, Enter => 0xe007, Escape => 0xe00c, PageUp => 0xe00e, PageDown => 0xe00f, End => 0xe010, Home => 0xe011,
	ArrowLeft => 0xe012, ArrowUp => 0xe013, ArrowRight => 0xe014, ArrowDown => 0xe015);

sub begin {
	my ($self, $program) = @_;
	my $profile = "$self->{dir}/profile";
	mkdir $profile or die "$profile: $!\n";
	# A proxy that does not exist keeps Firefox's own requests inside this machine.
	my %prefs = ('marionette.port' => 0, 'network.proxy.type' => 1, 'network.proxy.http' => '"127.0.0.1"', 'network.proxy.http_port' => 9, 'network.proxy.ssl' => '"127.0.0.1"',
		'network.proxy.ssl_port' => 9, 'layout.css.devPixelsPerPx' => '"1.0"', 'browser.shell.checkDefaultBrowser' => 'false', 'datareporting.policy.dataSubmissionEnabled' => 'false',
		'security.sandbox.content.level' => 0);
	spew("$profile/user.js", join '', map { "user_pref(\"$_\", $prefs{$_});\n" } sort keys %prefs);
	$self->start_program(sub { @ENV{qw(HOME MOZ_CRASHREPORTER_DISABLE)} = ($self->{dir}, 1) }, $program,
		qw(--headless --no-remote --marionette --remote-allow-system-access --profile), $profile, 'about:blank');
	my ($until, $port) = (time + $self->{limit});
	until (-r "$profile/MarionetteActivePort" && (($port) = slurp("$profile/MarionetteActivePort") =~ /^(\d+)/)) {
		die "Firefox does not start\n" . slurp("$self->{dir}/log") if time > $until || waitpid($self->{pid}, 1) > 0;
		sleep 0.05;
	}
	$self->{socket} = IO::Socket::INET->new(PeerHost => '127.0.0.1', PeerPort => $port) or die "Firefox does not answer: $!\n";
	$self->message; # its name and version
	$self->ask('WebDriver:NewSession', { capabilities => { alwaysMatch => { unhandledPromptBehavior => 'dismiss' } } });
	$self->ask('WebDriver:SetTimeouts', { script => 1000 * $self->{limit}, pageLoad => 1000 * $self->{limit} });
	$self->size;
	return;
}

sub ask {
	my ($self, $command, $params) = @_;
	my $text = $Browser::json->encode([0, ++$self->{id}, $command, $params // {}]);
	print { $self->{socket} } length($text), ':', $text;
	my (undef, undef, $error, $result) = @{ $self->message };
	die "$command: $error->{error}: $error->{message}\n" if $error;
	return $result;
}

sub message {
	my ($self) = @_;
	my $until = time + 2 * $self->{limit};
	$self->read_more($self->{socket}, $until - time) while $self->{said} !~ /\A(\d+):/ || length $self->{said} < $1 + 1 + length $1;
	my ($length) = $self->{said} =~ /\A(\d+):/;
	my $text = substr $self->{said}, 1 + length $length, $length;
	substr $self->{said}, 0, 1 + length($length) + $length, '';
	return $Browser::json->decode($text);
}

# Runs a script in Firefox itself, and returns its value.
sub inside {
	my ($self, $script, @args) = @_;
	$self->ask('Marionette:SetContext', { value => 'chrome' });
	my $value = eval { $self->ask('WebDriver:ExecuteScript', { script => $script, args => \@args })->{value} };
	my $error = $@;
	$self->ask('Marionette:SetContext', { value => 'content' });
	die $error if $error;
	return $value;
}

sub load {
	my ($self, $url) = @_;
	$self->see_requests;
	$self->ask('WebDriver:Navigate', { url => $url });
	return;
}

sub js {
	my ($self, $expression) = @_;
	return $self->ask('WebDriver:ExecuteScript', { script => 'return (' . $expression =~ s/;\s*\z//r . ')', args => [] })->{value} if $expression !~ /\A(?:while|for)\b/;
	return $self->ask('WebDriver:ExecuteScript', { script => $expression, args => [] })->{value};
}

sub act {
	my ($self, $type, @actions) = @_;
	$self->ask('WebDriver:PerformActions', { actions => [{ type => $type, id => $type, actions => \@actions }] });
	return;
}

sub pointer {
	my ($self, $x, $y, $type) = @_;
	my %button = (mousePressed => 'pointerDown', mouseReleased => 'pointerUp');
	return $self->act('pointer', { type => 'pointerMove', x => int $x, y => int $y, duration => 0 }) if $type eq 'mouseMoved';
	return $self->act('pointer', { type => 'pointerMove', x => int $x, y => int $y, duration => 0 }, { type => $button{$type}, button => 0 });
}

sub press {
	my ($self, $key) = @_;
	my $value = $keys{$key} ? chr $keys{$key} : $key;
	return $self->act('key', map { { type => $_, value => $value } } qw(keyDown keyUp));
}

sub type {
	my ($self, $text) = @_;
	$self->act('key', map { my $letter = $_; map { { type => $_, value => $letter } } qw(keyDown keyUp) } split //, $text);
	return $self->drawn;
}

sub size {
	my ($self, $width, $height) = @_;
	$self->inside(<<'END', $width // $self->{width}, $height // $self->{height});
const [width, height] = arguments, style = gBrowser.selectedBrowser.style;
window.resizeTo(Math.max(width, 500) + 20, height + 200);
style.minWidth = style.maxWidth = width + 'px';
style.minHeight = style.maxHeight = height + 'px';
END
	$self->js('new Promise(done => { const look = left => left && (innerWidth !== ' . ($width // $self->{width}) . ') ? setTimeout(look, 20, left - 1) : done(1); look(100); })');
	return;
}

sub media {
	my ($self, %how) = @_;
	my %number = (dark => 0, light => 1, '' => 2);
	$self->inside('Services.prefs.setIntPref("layout.css.prefers-color-scheme.content-override", arguments[0]); gBrowser.selectedBrowser.browsingContext.mediumOverride = arguments[1]',
		$number{ $how{scheme} // '' }, $how{medium} // '');
	return;
}

sub png { my ($self) = @_; return decode_base64($self->ask('WebDriver:TakeScreenshot', { full => JSON::PP::false })->{value}) }
sub pdf { my ($self) = @_; return decode_base64($self->ask('WebDriver:Print', { background => JSON::PP::true })->{value}) }

sub complaints {
	my ($self) = @_;
	return @{ $self->inside(<<'END') };
return Services.console.getMessageArray().filter(each => each instanceof Ci.nsIScriptError && /^(?:file|about:blank)/.test(each.sourceName)).map(each => each.errorMessage)
END
}

# Adds the files that the open page loaded, as far as the page knows them.
sub see_requests {
	my ($self) = @_;
	push @{ $self->{requests} }, @{ $self->js('[location.href, ...performance.getEntriesByType("resource").map(each => each.name)]') };
	return;
}

sub requests { my ($self) = @_; $self->see_requests; return @{ $self->{requests} } }
sub quit { my ($self) = @_; return $self->ask('Marionette:Quit', { flags => ['eForceQuit'] }) }

1;
