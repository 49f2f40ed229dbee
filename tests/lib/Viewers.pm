# What tests of reports in their viewers share: whether a viewer is installed.
package Viewers;
use strict;
use warnings;
use Exporter qw(import);
use Test::More;
use Hunt qw($root);

our @EXPORT = qw(need_program need_file need_package node_with);

# Ends the test with a word where a program is missing; under make check-viewers that is a failure.
sub need_program {
	my ($name) = @_;
	for my $folder (split /:/, $ENV{PATH}) {
		return "$folder/$name" if -x "$folder/$name";
	}
	return missing($name);
}

# The same for a file that a package installs.
sub need_file {
	my ($path, $package) = @_;
	return -r $path ? $path : missing($package);
}

# The same for an npm package.
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

# The words that run a script under node with those packages.
sub node_with {
	my (@words) = @_;
	return ['env', "NODE_PATH=$root/build/viewers/node_modules", need_program('node'), @words];
}

1;
