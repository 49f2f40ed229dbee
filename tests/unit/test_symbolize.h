/*
 * For the tests of symbolize/: a program, built once for a test program, whose functions and lines
 * are known from its source, nm and objdump.
 */
#ifndef TESTS_UNIT_TEST_SYMBOLIZE_H
#define TESTS_UNIT_TEST_SYMBOLIZE_H

#include "tests/unit/t.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/os.h"
#include "core/pe/pe.h"
#include "symbolize/backend/backend.h"
#include "symbolize/hsym/hsym.h"
#include "symbolize/symbolize.h"

/* The call of line 7 is in hidden(), that of line 11 in api(). */
static const char source_text[] = "extern int printf(const char *, ...);\n" /* 1 */
				  "static int __attribute__((noinline))\n"
				  "hidden(int n)\n"
				  "{\n"
				  "\tint got;\n" /* 5 */
				  "\n"
				  "\tgot = printf(\"%d\", n);\n"
				  "\treturn got + n;\n" /* 8 */
				  "}\n"
				  "__declspec(dllexport) int api(int n)\n" /* 10 */
				  "{ int a = hidden(n + 1); return a * 2; }\n"
				  "int main(void) { return api(3) + 1; }\n";
#define BASE UINT64_C(0x7ff612340000)

static char dir[300], exe[340], *old_path;
static struct module module;
static uint64_t bare_size;
static uint32_t api_start, api_return, hidden_start, hidden_return;

/* ---------------------------------------------------------------- a program to ask about */

/* What a command prints as a hexadecimal number. */
static inline uint64_t number_of(const char *command)
{
	FILE *pipe = popen(command, "r");
	char line[100] = "";

	if (!pipe || !fgets(line, sizeof(line), pipe))
		line[0] = '\0';
	if (pipe)
		pclose(pipe);
	return strtoull(line, NULL, 16);
}

static inline uint32_t nm(const char *name, uint64_t base)
{
	char command[1000];

	snprintf(command, sizeof(command),
		"x86_64-w64-mingw32-nm %s | awk '$3 == \"%s\" { print $1 }'", exe, name);
	return (uint32_t)(number_of(command) - base);
}

/* Where the first call in a function returns to. */
static inline uint32_t return_in(const char *name, uint64_t base)
{
	char command[1000];

	snprintf(command, sizeof(command),
		"x86_64-w64-mingw32-objdump -d --no-show-raw-insn --disassemble=%s %s | "
		"awk 'seen { print $1; exit } $2 == \"call\" { seen = 1 }'",
		name, exe);
	return (uint32_t)(number_of(command) - base);
}

static inline uint64_t header(const char *word)
{
	char command[1000];

	snprintf(command, sizeof(command),
		"x86_64-w64-mingw32-objdump -p %s | awk '$1 == \"%s\" { print $2 }'", exe, word);
	return number_of(command);
}

static inline void write_file(const char *name, const char *text, int mode)
{
	char path[800];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	(void)fclose(file);
	assert_int_equal(chmod(path, (mode_t)mode), 0);
}

/* The exe is in "Mixed Case", which the dump's path spells otherwise. */
static inline int build(void **state)
{
	static char windows_path[] = "C:\\mixed case\\APP.exe";
	const char *path = getenv("PATH");
	char command[1300], here[200];
	struct stat st;
	uint64_t base;

	(void)state;
	/* A full path: programs are looked for in no other folders. */
	snprintf(dir, sizeof(dir), "%s/%s/test_symbolize.XXXXXX",
		getenv("TMPDIR") ? "" : getcwd(here, sizeof(here)),
		getenv("TMPDIR") ? getenv("TMPDIR") : "build");
	if (!mkdtemp(dir))
		return -1;
	old_path = strdup(path ? path : "");
	setenv("WINEPREFIX", dir, 1);
	setenv("HSYM_CACHE", "off", 1);
	write_file("s.c", source_text, 0644);
	snprintf(command, sizeof(command),
		"cd %s && mkdir bin dosdevices drive_c 'drive_c/Mixed Case' && "
		"ln -s ../drive_c dosdevices/c: && command -v x86_64-w64-mingw32-gcc >bin/which && "
		"x86_64-w64-mingw32-gcc -O1 -fno-optimize-sibling-calls -gdwarf-4 s.c -o a.exe && "
		"x86_64-w64-mingw32-strip -o bare.exe a.exe && ln -s ../../bare.exe 'drive_c/Mixed "
		"Case/' && "
		"mv a.exe 'drive_c/Mixed Case/App.exe' && ln -s 'drive_c/Mixed Case/App.exe' a.exe",
		dir);
	if (system(command) != 0)
		return 0;
	snprintf(exe, sizeof(exe), "%s/bare.exe", dir);
	bare_size = header("SizeOfImage");
	snprintf(exe, sizeof(exe), "%s/a.exe", dir);
	base = header("ImageBase");
	module = (struct module){.base = BASE,
		.size_bytes = header("SizeOfImage"),
		.path = windows_path,
		.has_identity = true,
		.checksum = (uint32_t)header("CheckSum")};
	api_start = nm("api", base);
	hidden_start = nm("hidden", base);
	api_return = return_in("api", base);
	hidden_return = return_in("hidden", base);
	/* The time stamp is 8 bytes behind where the number at 60 points. */
	snprintf(command, sizeof(command),
		"od -An -tx4 -j $(($(od -An -tu4 -j60 -N4 %s) + 8)) -N4 %s", exe, exe);
	module.timestamp = (uint32_t)number_of(command);
	return stat(exe, &st);
}

static inline int clean(void **state)
{
	char command[800];

	(void)state;
	setenv("PATH", old_path, 1);
	free(old_path);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static inline void need_exe(void)
{
	if (!exe[0]) {
		print_message("# no x86_64-w64-mingw32-gcc here\n");
		skip();
	}
	assert_true(api_return > api_start && hidden_return > hidden_start && module.timestamp);
}

static inline void need_llvm(void)
{
	need_exe();
	if (system("command -v llvm-symbolizer-16 >/dev/null") != 0) {
		print_message("# no llvm-symbolizer here\n");
		skip();
	}
}

/* Asks for one return address in exe. The names live until the symbolizer is freed. */
static inline struct symbols ask(
	struct symbolizer *symbolizer, const struct module *in, uint32_t rva)
{
	struct symbol_query query = {.addr = in->base + rva, .module = in};
	struct err err;

	assert_int_equal(symbolizer_resolve(symbolizer, &query, 1, &err), 0);
	return query.found;
}

/* What the image's own tables know: functions, no lines. */
static inline void check_tables(const struct module *in, bool has_symbols)
{
	struct symbolizer *symbolizer = symbolizer_new(NULL, NULL);
	struct symbols found = ask(symbolizer, in, api_return);

	assert_int_equal(found.count, 1);
	assert_string_equal(found.list[0].function, "api");
	assert_int_equal(found.list[0].offset_bytes, api_return - api_start);
	assert_null(found.list[0].file);
	assert_int_equal(found.list[0].line, 0);
	found = ask(symbolizer, in, hidden_return);
	assert_int_equal(found.count, has_symbols);
	if (has_symbols) {
		assert_string_equal(found.list[0].function, "hidden");
		assert_int_equal(found.list[0].offset_bytes, hidden_return - hidden_start);
	}
	symbolizer_free(symbolizer);
}

#endif
