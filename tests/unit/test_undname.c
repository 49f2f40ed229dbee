/* Names that Microsoft's compiler decorated, read through llvm-undname. Truth: what the letters stand for, by the
 * names' published grammar; for hostile ones, that the others are read. */
#include "tests/unit/t.h"

#include <sys/stat.h>
#include <unistd.h>

#include "symbolize/backend/undname.h"

static const struct {
	const char *name, *text;
} truths[] = {{"?f@app@@YAXH@Z", "app::f"}, {"?g@@YAHXZ", "g"},
	{"?AllocateBasicChunk@MemoryAllocator@internal@v8@@QEAAPEAVBasicMemoryChunk@23@_K0W4"
	 "Executability@3@PEAVSpace@23@@Z",
		"v8::internal::MemoryAllocator::AllocateBasicChunk"},
	{"??0Pool@app@@QEAA@H@Z", "app::Pool::Pool"}, {"??1Pool@app@@UEAA@XZ", "app::Pool::~Pool"},
	{"?size@Pool@app@@QEBAHXZ", "app::Pool::size"},
	{"?make@Pool@app@@SAPEAV12@P6AHH@Z@Z", "app::Pool::make"},
	{"??$grab@H@app@@YAXH@Z", "app::grab<int>"},
	{"??$call@P6AHH@Z@app@@YAXXZ", "app::call<int (__cdecl *)(int)>"},
	{"?f@?A0x1234abcd@app@@YAXXZ", "app::`anonymous namespace'::f"},
	{"??HNumber@app@@QEAAHH@Z", "app::Number::operator+"},
	{"??RNumber@app@@QEAAHH@Z", "app::Number::operator()"},
	{"??6Number@app@@QEAAHH@Z", "app::Number::operator<<"},
	{"??MNumber@app@@QEAA_NH@Z", "app::Number::operator<"},
	{"??CNumber@app@@QEAAPEAHXZ", "app::Number::operator->"}};
enum { TRUTHS = sizeof(truths) / sizeof(*truths) };

static char dir[300];
static const struct symbol_options options;

static int make_dir(void **state)
{
	char here[200];

	(void)state;
	snprintf(dir, sizeof(dir), "%s/%s/test_undname.XXXXXX",
		getenv("TMPDIR") ? "" : getcwd(here, sizeof(here)),
		getenv("TMPDIR") ? getenv("TMPDIR") : "build");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char command[400];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command);
}

static void need_program(void)
{
	if (system("command -v llvm-undname-16 llvm-symbolizer-16 >/dev/null") != 0) {
		print_message("# no llvm-undname here\n");
		skip();
	}
	setenv("HSYM_LLVM", "/usr/bin/llvm-symbolizer-16", 1);
}

/* A shell script that is called llvm-undname, beside another one called llvm-symbolizer. */
static void fake_program(const char *script)
{
	static const char *const names[] = {"llvm-symbolizer", "llvm-undname"};
	char path[400];

	for (size_t i = 0; i < 2; i++) {
		FILE *file;

		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		file = fopen(path, "w");
		assert_non_null(file);
		fprintf(file, "#!/bin/sh\n%s", script);
		(void)fclose(file);
		assert_int_equal(chmod(path, 0755), 0);
	}
	snprintf(path, sizeof(path), "%s/llvm-symbolizer", dir);
	setenv("HSYM_LLVM", path, 1);
}

static void check_text(const char *text, const char *expected)
{
	if (!expected)
		assert_null(text);
	else
		assert_non_null(text);
	if (expected)
		assert_string_equal(text, expected);
}

TEST(names_are_scope_and_name)
{
	const char *names[TRUTHS + 3], *texts[TRUTHS + 3];
	struct arena arena;

	need_program();
	for (size_t i = 0; i < TRUTHS; i++)
		names[i] = truths[i].name;
	names[TRUTHS] = "?no such name";
	names[TRUTHS + 1] = "?bad";
	names[TRUTHS + 2] = truths[0].name;
	arena_init(&arena);
	assert_int_equal(undname_find(names, texts, TRUTHS + 3, &arena, &options), 0);
	for (size_t i = 0; i < TRUTHS; i++)
		check_text(texts[i], truths[i].text);
	check_text(texts[TRUTHS], NULL);
	check_text(texts[TRUTHS + 1], NULL);
	check_text(texts[TRUTHS + 2], truths[0].text);
	arena_release(&arena);
}

/* Functions that take forty of the one before, ten deep: more text than there is memory. */
TEST(a_name_that_explodes_harms_no_other)
{
	char bomb[1000] = "?f@@YAXPEAH";
	const char *names[] = {truths[0].name, bomb, truths[1].name}, *texts[3];
	struct arena arena;

	need_program();
	for (int digit = 0; digit < 10; digit++) {
		size_t len = strlen(bomb);
		char forty[41] = "";

		memset(forty, '0' + digit, 40);
		snprintf(bomb + len, sizeof(bomb) - len, "P6AX%s@Z", forty);
	}
	strcat(bomb, "@Z");
	arena_init(&arena);
	assert_int_equal(undname_find(names, texts, 3, &arena, &options), 0);
	check_text(texts[0], truths[0].text);
	check_text(texts[1], NULL);
	check_text(texts[2], truths[1].text);
	arena_release(&arena);
}

TEST(one_that_dies_or_talks_nonsense_leaves_names_as_they_are)
{
	static const char dies[] = "while read -r line; do echo \"$line\"; case $line in *g@@*) "
				   "exit 1;; esac; echo 'app::f(int)'; echo; done\n";
	static const char *const bad[] = {"exit 1\n", "cat /dev/zero\n",
		"while read -r line; do echo x; done; exec sleep 30\n", "exec sleep 30\n"};
	static const struct symbol_options impatient = {.patience_ms = 300};
	const char *names[] = {truths[1].name, truths[0].name}, *texts[2];
	struct arena arena;

	arena_init(&arena);
	fake_program(dies);
	assert_int_equal(undname_find(names, texts, 2, &arena, &options), 0);
	check_text(texts[0], NULL);
	check_text(texts[1], "app::f");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		fake_program(bad[i]);
		assert_int_equal(undname_find(names, texts, 2, &arena, &impatient), 0);
		check_text(texts[0], NULL);
		check_text(texts[1], NULL);
	}
	setenv("HSYM_LLVM", "/nonexistent", 1);
	assert_int_equal(undname_find(names, texts, 2, &arena, &options), 0);
	check_text(texts[1], NULL);
	arena_release(&arena);
}

GROUP(make_dir, remove_dir)
