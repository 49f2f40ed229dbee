#!/usr/bin/perl
# The recipe for CTest in docs/ci.md: each test has its own files, also if all run at once, and the
# gate of the test that leaks fails.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use Hunt;

needs_linux('cmake for mingw');
lacks('cmake', 'cmake is not here') if run(['cmake', '--version'])->{status} || run(['ctest', '--version'])->{status};

my $dir = fresh_dir();
my ($recipe) = slurp("$root/docs/ci.md") =~ /^```cmake\n(.*?)^```$/ms;
ok(defined $recipe, 'docs/ci.md has a recipe');
# The commands of the recipe, as they are found in the path.
mkdir "$dir/bin" or die "$dir/bin: $!\n";
spew("$dir/bin/hsnap", "#!/bin/sh\nexec '$root/setup/wine' '$root/build/win64/hsnap.exe' \"\$@\"\n");
symlink "$root/build/linux/hdiff", "$dir/bin/hdiff" or die "symlink: $!\n";
chmod 0755, "$dir/bin/hsnap";
spew("$dir/tests.c", <<'END');
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __attribute__((noinline)) void lose(int bytes)
{
	char *volatile block = malloc(bytes);

	*block = 1;
	block = NULL;
}

int main(int argc, char **argv)
{
	for (volatile int i = 0; argc > 1 && !strcmp(argv[1], "lose") && i < 50; i++)
		lose(100);
	return argc > 1 && !strcmp(argv[1], "fail");
}
END
spew("$dir/CMakeLists.txt", <<"END");
cmake_minimum_required(VERSION 3.13)
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc)
project(leaks C)
enable_testing()
add_executable(tests tests.c)
target_compile_options(tests PRIVATE -g -gdwarf-4)
target_link_options(tests PRIVATE -static)
$recipe
leak_test(Parser.Short tests)
leak_test(Parser.Long tests lose)
leak_test(Cache.Fill tests)
leak_test(Cache.Bad tests fail)
END
my %env = (env => { PATH => "$dir/bin:$ENV{PATH}", MAKEFLAGS => '' });
for my $step (['cmake', '-S', $dir, '-B', "$dir/build", '-G', 'Unix Makefiles'], ['cmake', '--build', "$dir/build"]) {
	my $result = run($step, %env);
	is($result->{status}, 0, "@$step[0, 1]") or diag($result->{out}, $result->{err});
}
my $result = run(['ctest', '--test-dir', "$dir/build", '-j8'], %env);
my %state = $result->{out} =~ m{Test +#\d+: (\S+) \.*[ *]*(Passed|Failed|Not Run)}g;
is_deeply(\%state, {
		'Parser.Short' => 'Passed', 'Parser.Short.leaks' => 'Passed',
		'Parser.Long' => 'Passed', 'Parser.Long.leaks' => 'Failed',
		'Cache.Fill' => 'Passed', 'Cache.Fill.leaks' => 'Passed',
		'Cache.Bad' => 'Failed', 'Cache.Bad.leaks' => 'Not Run',
	}, 'the test that leaks has a gate that fails, and no test that failed is judged') or diag($result->{out}, $result->{err});
is_deeply([grep { !/Bad/ } files_in("$dir/build/leaks")], [sort map { ("$_.txt", "$_.xml") } qw(Parser.Short Parser.Long Cache.Fill)], 'each test has its files');
like(slurp("$dir/build/leaks/Parser.Long.xml"), qr/<failure .*\+5000 bytes, \+50 blocks: tests!lose /s, 'the result names the function');
unlike(slurp("$dir/build/leaks/Parser.Short.xml"), qr/<failure/, 'others have none');
done_testing;
