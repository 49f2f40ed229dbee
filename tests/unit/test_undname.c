/* Names decorated by Microsoft's compiler, read through llvm-undname. The expected names follow the
 * published grammar. Hostile names must not affect other names. */
#include "tests/unit/scratch.h"

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

static const struct symbol_options options;

static void need_program(void)
{
	if (system("command -v llvm-undname$LLVM llvm-symbolizer$LLVM >/dev/null") != 0) {
		print_message("# no llvm-undname here\n");
		skip();
	}
	scratch_use_llvm();
}

/* Writes a shell script named llvm-undname, next to another one named llvm-symbolizer. */
static void fake_program(const char *script)
{
	char path[400], text[500];

	snprintf(text, sizeof(text), "#!/bin/sh\n%s", script);
	scratch_write("llvm-symbolizer", text, 0755);
	scratch_write("llvm-undname", text, 0755);
	snprintf(path, sizeof(path), "%s/llvm-symbolizer", dir);
	setenv("HSYM_LLVM", path, 1);
}

/* Requests several names at once. The expected name is NULL if a name is unreadable. */
static void check(const char *const *names, const char *const *expected, size_t count,
	const struct symbol_options *asked)
{
	const char *texts[TRUTHS + 3];
	struct arena arena;

	arena_init(&arena);
	undname_find(names, texts, count, &arena, asked);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(!texts[i], !expected[i]);
		if (expected[i])
			assert_string_equal(texts[i], expected[i]);
	}
	arena_release(&arena);
}

TEST(names_are_scope_and_name)
{
	const char *names[TRUTHS + 3] = {"?no such name", "?bad", truths[0].name};
	const char *texts[TRUTHS + 3] = {NULL, NULL, truths[0].text};

	need_program();
	for (size_t i = 0; i < TRUTHS; i++) {
		names[i + 3] = truths[i].name;
		texts[i + 3] = truths[i].text;
	}
	check(names, texts, TRUTHS + 3, &options);
}

/* Functions with forty parameters, each of the previous type, ten levels deep: the text would not
 * fit into memory. */
TEST(name_that_explodes_harms_no_other)
{
	char bomb[1000] = "?f@@YAXPEAH";
	const char *names[] = {truths[0].name, bomb, truths[1].name};
	const char *texts[] = {truths[0].text, NULL, truths[1].text};

	need_program();
	for (int digit = 0; digit < 10; digit++) {
		size_t len = strlen(bomb);
		char forty[41] = "";

		memset(forty, '0' + digit, 40);
		snprintf(bomb + len, sizeof(bomb) - len, "P6AX%s@Z", forty);
	}
	strcat(bomb, "@Z");
	check(names, texts, 3, &options);
}

TEST(one_that_dies_or_talks_nonsense_leaves_names_as_they_are)
{
	static const char dies[] = "while read -r line; do echo \"$line\"; case $line in *g@@*) "
				   "exit 1;; esac; echo 'app::f(int)'; echo; done\n";
	static const char *const bad[] = {"exit 1\n", "cat /dev/zero\n",
		"while read -r line; do echo x; done; exec sleep 30\n", "exec sleep 30\n"};
	static const struct symbol_options impatient = {.patience_ms = 300};
	static const char *const nothing[2];
	const char *names[] = {truths[1].name, truths[0].name}, *second[] = {NULL, "app::f"};

	fake_program(dies);
	check(names, second, 2, &options);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		fake_program(bad[i]);
		check(names, nothing, 2, &impatient);
	}
	setenv("HSYM_LLVM", "/nonexistent", 1);
	check(names, nothing, 2, &options);
}

GROUP(scratch_begin, scratch_end)
