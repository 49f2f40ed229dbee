# Shared code of the tests of reports in their viewers. Checks that a viewer is installed.
package Viewers;
use strict;
use warnings;
use Exporter qw(import);
use Test::More;
use Hunt qw($root);

our @EXPORT = qw(need_program need_file need_package node_with);

# Skips the test with a reason if a program is missing; under make check-viewers the test fails.
sub need_program {
	my ($name) = @_;
	for my $folder (split /:/, $ENV{PATH}) {
		return "$folder/$name" if -x "$folder/$name";
	}
	return missing($name);
}

# Skips the test if a package's file is missing.
sub need_file {
	my ($path, $package) = @_;
	return -r $path ? $path : missing($package);
}

# Skips the test if an npm package is missing.
sub need_package {
	my ($name) = @_;
	return "$root/build/viewers/node_modules/$name" if -d "$root/build/viewers/node_modules/$name";
	return missing($name);
}

sub missing {
	my ($name) = @_;
	die "$name is not installed\n" if ($ENV{HSNAP_VIEWERS} // '') eq 'required';
	plan skip_all => "$name is not installed: make check-viewers";
	exit 0;
}

# Returns the command that runs a script under node with those packages.
sub node_with {
	my (@words) = @_;
	return ['env', "NODE_PATH=$root/build/viewers/node_modules", need_program('node'), @words];
}

1;
