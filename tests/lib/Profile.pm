# Profiles for pprof, as profile.proto of pprof's sources defines them: writes and reads them.
package Profile;
use strict;
use warnings;
use Exporter qw(import);

our @EXPORT = qw(varint field profile);

sub varint {
	my ($value) = @_;
	my $bytes = '';
	$value = ~0 - (-$value - 1) if $value < 0;
	for (; $value >= 128; $value >>= 7) {
		$bytes .= chr($value & 127 | 128);
	}
	return $bytes . chr $value;
}

# Returns a field: a number, or bytes if the value is a reference.
sub field {
	my ($number, $value) = @_;
	return ref $value ? varint($number << 3 | 2) . varint(length $$value) . $$value : varint($number << 3) . varint($value);
}

# Returns a profile.
# types => [[NAME, UNIT], ...], samples => [[[VALUE, ...], [LOCATION, ...]], ...], innermost first;
# LOCATION: [MODULE, ADDRESS, [FUNCTION, FILE, LINE], ...], innermost first.
# Each module starts at 0x400000. `head` has fields to add; `is_unpacked`: one field for each number.
sub profile {
	my (%of) = @_;
	my (@strings, %string, %known, $tables);
	my $string = sub { $string{ $_[0] } //= push(@strings, $_[0]) - 1 };
	my $message = sub {
		my ($part, $key, $fields) = @_;
		return $known{"$part $key"} if $known{"$part $key"};
		my $id = $known{"$part $key"} = keys(%known) + 7;
		$tables .= field($part, \(field(1, $id) . $fields->()));
		return $id;
	};
	$string->('');
	my $type = sub { field(1, $string->($_[0][0])) . field(2, $string->($_[0][1])) };
	my $profile = join '', map { field(1, \$type->($_)) } @{ $of{types} };
	my $numbers = sub {
		my ($number, @values) = @_;
		return join '', map { field($number, $_) } @values if $of{is_unpacked};
		return field($number, \join '', map { varint($_) } @values);
	};
	for my $sample (@{ $of{samples} }) {
		my @locations = map {
			my ($module, $addr, @lines) = @$_;
			my $mapping = $module && $message->(3, $module, sub { field(2, 0x400000) . field(3, 0x500000) . field(5, $string->($module)) });
			$message->(4, join("\n", $module // '', $addr, map { @$_ } @lines), sub {
				join '', ($mapping ? field(2, $mapping) : ''), field(3, $addr), map {
					my ($name, $file, $line) = @$_;
					my $function = $message->(5, "$name\n$file", sub { field(2, $string->($name)) . field(4, $string->($file)) });
					field(4, \(field(1, $function) . field(2, $line)));
				} @lines;
			});
		} @{ $sample->[1] };
		$profile .= field(2, \($numbers->(1, @locations) . $numbers->(2, @{ $sample->[0] })));
	}
	$profile .= field(11, \$type->($of{period_type})) if $of{period_type};
	return $profile . ($tables // '') . join('', map { field(6, \$_) } @strings) . ($of{head} // '');
}

1;
