/* A program, built once per test program. Its functions and lines are known from the source, nm and
 * objdump. */
#ifndef TESTS_UNIT_TEST_SYMBOLIZE_H
#define TESTS_UNIT_TEST_SYMBOLIZE_H

#include "tests/unit/scratch.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "core/base/os.h"
#include "core/pe/pe.h"
#include "symbolize/backend/backend.h"
#include "symbolize/hsym/hsym.h"
#include "symbolize/symbolize.h"

/* The call in line 7 is in hidden(), and the call in line 11 is in api(). */
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

static char exe[340], *old_path;
static struct module module;
static struct symbolizer *symbolizer;
static uint32_t api_start, api_return, hidden_start, hidden_return;

/* ---------------------------------------------------------------- the program */

/* Returns the return address of the first call in a function of exe. */
static inline uint32_t return_in(const char *name)
{
	char command[1000];

	snprintf(command, sizeof(command),
		"x86_64-w64-mingw32-objdump -d --no-show-raw-insn --disassemble=%s '%s' | "
		"awk 'seen { print $1; exit } $2 == \"call\" { seen = 1 }'",
		name, exe);
	return (uint32_t)(scratch_number(command, 16) - scratch_header(exe, "ImageBase"));
}

/* Builds the program in "Mixed Case". The dump's path spells that folder differently. */
static inline int build(void **state)
{
	static char windows_path[] = "C:\\mixed case\\APP.exe";
	const char *path = getenv("PATH");
	char command[1300];
	struct stat st;

	if (scratch_begin(state))
		return -1;
	old_path = strdup(path ? path : "");
	setenv("WINEPREFIX", dir, 1);
	setenv("HSYM_CACHE", "off", 1);
	scratch_write("s.c", source_text, 0644);
	snprintf(command, sizeof(command),
		"cd '%s' && mkdir bin dosdevices drive_c 'drive_c/Mixed Case' && "
		"ln -s ../drive_c dosdevices/c: && command -v x86_64-w64-mingw32-gcc >bin/which && "
		"x86_64-w64-mingw32-gcc -O1 -fno-optimize-sibling-calls -gdwarf-4 s.c "
		"-o 'drive_c/Mixed Case/App.exe' && ln -s 'drive_c/Mixed Case/App.exe' a.exe",
		dir);
	if (system(command) != 0)
		return 0;
	snprintf(exe, sizeof(exe), "%s/a.exe", dir);
	module = (struct module){.base = BASE,
		.size_bytes = scratch_header(exe, "SizeOfImage"),
		.path = windows_path,
		.has_identity = true,
		.checksum = (uint32_t)scratch_header(exe, "CheckSum")};
	api_start = scratch_rva(exe, "api");
	hidden_start = scratch_rva(exe, "hidden");
	api_return = return_in("api");
	hidden_return = return_in("hidden");
	/* The time stamp is 8 bytes after the offset stored at 60. */
	snprintf(command, sizeof(command),
		"od -An -tx4 -j $(($(od -An -tu4 -j60 -N4 '%s') + 8)) -N4 '%s'", exe, exe);
	module.timestamp = (uint32_t)scratch_number(command, 16);
	return stat(exe, &st);
}

static inline int clean(void **state)
{
	setenv("PATH", old_path, 1);
	free(old_path);
	return scratch_end(state);
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
	if (system("command -v llvm-symbolizer$LLVM >/dev/null") != 0) {
		print_message("# no llvm-symbolizer here\n");
		skip();
	}
}

static inline void start(const struct symbol_options *options)
{
	symbolizer_free(symbolizer);
	symbolizer = symbolizer_new(options, NULL);
}

static inline int stop(void **state)
{
	(void)state;
	symbolizer_free(symbolizer);
	symbolizer = NULL;
	return 0;
}

/* Resolves one return address in exe. The names are valid until the next start(). */
static inline struct symbols ask(const struct module *in, uint32_t rva)
{
	struct symbol_query query = {.addr = in->base + rva, .module = in};

	symbolizer_resolve(symbolizer, &query, 1);
	return query.found;
}

#undef TEST_AROUND
#define TEST_AROUND NULL, stop

#endif
