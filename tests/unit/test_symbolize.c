/* Names for addresses. What is right is computed from the source's lines, nm and objdump. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/pe.h"
#include "symbolize/addnames.h"
#include "symbolize/image.h"
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
static uint64_t number_of(const char *command)
{
	FILE *pipe = popen(command, "r");
	char line[100] = "";

	if (!pipe || !fgets(line, sizeof(line), pipe))
		line[0] = '\0';
	if (pipe)
		pclose(pipe);
	return strtoull(line, NULL, 16);
}

static uint32_t nm(const char *name, uint64_t base)
{
	char command[1000];

	snprintf(command, sizeof(command),
		"x86_64-w64-mingw32-nm %s | awk '$3 == \"%s\" { print $1 }'", exe, name);
	return (uint32_t)(number_of(command) - base);
}

/* Where the first call in a function returns to. */
static uint32_t return_in(const char *name, uint64_t base)
{
	char command[1000];

	snprintf(command, sizeof(command),
		"x86_64-w64-mingw32-objdump -d --no-show-raw-insn --disassemble=%s %s | "
		"awk 'seen { print $1; exit } $2 == \"call\" { seen = 1 }'",
		name, exe);
	return (uint32_t)(number_of(command) - base);
}

static uint64_t header(const char *word)
{
	char command[1000];

	snprintf(command, sizeof(command),
		"x86_64-w64-mingw32-objdump -p %s | awk '$1 == \"%s\" { print $2 }'", exe, word);
	return number_of(command);
}

static void write_file(const char *name, const char *text, int mode)
{
	char path[500];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	(void)fclose(file);
	assert_int_equal(chmod(path, (mode_t)mode), 0);
}

/* The exe is in "Mixed Case", which the dump's path spells otherwise. */
static int build(void **state)
{
	static char windows_path[] = "C:\\mixed case\\APP.exe";
	const char *path = getenv("PATH");
	char command[1300];
	struct stat st;
	uint64_t base;

	(void)state;
	snprintf(dir, sizeof(dir), "%s/test_symbolize.XXXXXX",
		getenv("TMPDIR") ? getenv("TMPDIR") : "build");
	if (!mkdtemp(dir))
		return -1;
	old_path = strdup(path ? path : "");
	setenv("WINEPREFIX", dir, 1);
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

static int clean(void **state)
{
	char command[800];

	(void)state;
	setenv("PATH", old_path, 1);
	free(old_path);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static void need_exe(void)
{
	if (!exe[0]) {
		print_message("# no x86_64-w64-mingw32-gcc here\n");
		skip();
	}
	assert_true(api_return > api_start && hidden_return > hidden_start && module.timestamp);
}

static void need_llvm(void)
{
	need_exe();
	if (system("command -v llvm-symbolizer >/dev/null") != 0) {
		print_message("# no llvm-symbolizer here\n");
		skip();
	}
}

/* Asks for one return address in exe. The names live until the symbolizer is freed. */
static struct symbols ask(struct symbolizer *symbolizer, const struct module *in, uint32_t rva)
{
	struct symbol_query query = {.addr = in->base + rva, .module = in};
	struct err err;

	assert_int_equal(symbolizer_resolve(symbolizer, &query, 1, &err), 0);
	return query.found;
}

/* What the image's own tables know: functions, no lines. */
static void check_tables(const struct module *in, bool has_symbols)
{
	struct symbolizer *symbolizer = symbolizer_new(NULL);
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

static void test_functions_lines_and_offsets_are_exact(void **state)
{
	struct symbolizer *symbolizer;
	struct symbols found;

	(void)state;
	need_llvm();
	symbolizer = symbolizer_new(NULL);
	found = ask(symbolizer, &module, hidden_return);
	assert_int_equal(found.count, 1);
	assert_string_equal(found.list[0].function, "hidden");
	assert_int_equal(found.list[0].offset_bytes, hidden_return - hidden_start);
	assert_int_equal(found.list[0].line, 7);
	assert_non_null(strstr(found.list[0].file, "s.c"));
	found = ask(symbolizer, &module, api_return);
	assert_int_equal(found.count, 1);
	assert_string_equal(found.list[0].function, "api");
	assert_int_equal(found.list[0].offset_bytes, api_return - api_start);
	assert_int_equal(found.list[0].line, 11);
	symbolizer_free(symbolizer);
}

static void test_another_build_gives_no_names(void **state)
{
	struct symbolizer *symbolizer;
	struct module other;

	(void)state;
	need_exe();
	symbolizer = symbolizer_new(NULL);
	other = module;
	other.timestamp++;
	assert_int_equal(ask(symbolizer, &other, api_return).count, 0);
	other = module;
	other.checksum++;
	assert_int_equal(ask(symbolizer, &other, api_return).count, 0);
	other = module;
	other.size_bytes += 4096;
	assert_int_equal(ask(symbolizer, &other, api_return).count, 0);
	other.has_identity = false;
	assert_int_equal(ask(symbolizer, &other, api_return).count, 0);
	other.size_bytes = module.size_bytes; /* all that UMDH's logs record */
	assert_true(ask(symbolizer, &other, api_return).count > 0);
	other.path = "C:\\mixed case\\none.exe";
	assert_int_equal(ask(symbolizer, &other, api_return).count, 0);
	symbolizer_free(symbolizer);
}

static void test_what_is_no_call_in_a_module_has_no_name(void **state)
{
	struct symbolizer *symbolizer;
	struct symbol_query query = {.addr = BASE, .module = &module, .found = {NULL, 9}};
	struct err err;

	(void)state;
	need_exe();
	symbolizer = symbolizer_new(NULL);
	assert_int_equal(symbolizer_resolve(symbolizer, &query, 1, &err), 0);
	assert_int_equal(query.found.count, 0);
	query = (struct symbol_query){.addr = BASE + api_return, .found = {NULL, 9}};
	assert_int_equal(symbolizer_resolve(symbolizer, &query, 1, &err), 0);
	assert_int_equal(query.found.count, 0);
	query = (struct symbol_query){.addr = UINT64_MAX, .module = &module};
	assert_int_equal(symbolizer_resolve(symbolizer, &query, 1, &err), 0);
	assert_int_equal(query.found.count, 0);
	assert_int_equal(ask(symbolizer, &module, 0x10).count, 0); /* headers */
	assert_int_equal(symbolizer_resolve(symbolizer, NULL, 0, &err), 0);
	symbolizer_free(symbolizer);
}

static void test_without_llvm_symbolizer_symbol_tables_answer(void **state)
{
	(void)state;
	need_exe();
	setenv("PATH", "/nonexistent", 1);
	check_tables(&module, true);
	setenv("PATH", old_path, 1);
}

/* hidden() lies between two exports, neither of which it is. */
static void test_stripped_images_have_the_names_of_exports_only(void **state)
{
	struct module bare = {.base = BASE, .path = "C:\\Mixed Case\\BARE.exe"};

	(void)state;
	need_exe();
	bare.size_bytes = bare_size;
	check_tables(&bare, false);
	setenv("PATH", "/nonexistent", 1);
	check_tables(&bare, false);
	setenv("PATH", old_path, 1);
}

static const char far[] = "#!/bin/sh\nwhile read -r line; do echo '{\"Symbol\":[{\"FunctionName\":"
			  "\"far\",\"StartAddress\":\"0x1\",\"Line\":0}]}'; done\n";

/* Programs called llvm-symbolizer that die, answer nonsense or never end their line. */
static void test_a_bad_llvm_symbolizer_harms_nothing(void **state)
{
	const char *const bad[] = {"#!/bin/sh\nexit 1\n",
		"#!/bin/sh\nread -r line\necho '{\"Symbol\":[{'\nexit 0\n",
		"#!/bin/sh\nwhile read -r line; do echo '{\"Symbol\":[]}'; done\n",
		"#!/bin/sh\nwhile read -r line; do echo nonsense; echo; done\n", far,
		"#!/bin/sh\nyes xxxxxxxxxxxxxxxx | tr -d '\\n'\n"};
	char path[4096], name[100];

	(void)state;
	need_exe();
	snprintf(path, sizeof(path), "%s/bin:%s", dir, old_path);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		snprintf(name, sizeof(name), "bin/llvm-symbolizer");
		write_file(name, bad[i], 0755);
		setenv("PATH", path, 1);
		check_tables(&module, true);
		setenv("PATH", old_path, 1);
	}
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	unlink(path);
}

/* Far more questions and answers than a socket holds. */
static void test_many_addresses_at_once_do_not_block(void **state)
{
	enum { COUNT = 30000 };
	struct symbolizer *symbolizer;
	struct symbol_query *queries;
	struct err err;

	(void)state;
	need_llvm();
	symbolizer = symbolizer_new(NULL);
	queries = calloc(COUNT, sizeof(*queries));
	assert_non_null(queries);
	for (uint32_t i = 0; i < COUNT; i++)
		queries[i] = (struct symbol_query){.addr = BASE + 0x1000 + i, .module = &module};
	queries[COUNT - 1].addr = BASE + hidden_return;
	assert_int_equal(symbolizer_resolve(symbolizer, queries, COUNT, &err), 0);
	assert_int_equal(queries[COUNT - 1].found.count, 1);
	assert_string_equal(queries[COUNT - 1].found.list[0].function, "hidden");
	assert_ptr_equal(queries[hidden_return - 0x1000].found.list,
		queries[COUNT - 1].found.list); /* resolved once */
	free(queries);
	symbolizer_free(symbolizer);
}

static void test_names_of_the_dump_come_first(void **state)
{
	struct symbol_names *names = symbol_names_new();
	struct symbolizer *symbolizer = symbolizer_new(NULL);
	struct symbol_query query = {.addr = 0x1234, .names = names};
	struct err err;
	struct kv pairs;
	static const char text[] = "addr=1234 function=f offset=4";

	(void)state;
	kv_init(&pairs);
	assert_int_equal(kv_parse(&pairs, text, strlen(text)), 0);
	assert_int_equal(symbol_names_note(names, &pairs), 0);
	assert_int_equal(symbolizer_resolve(symbolizer, &query, 1, &err), 0);
	assert_int_equal(query.found.count, 1);
	assert_string_equal(query.found.list[0].function, "f");
	kv_release(&pairs);
	symbolizer_free(symbolizer);
	symbol_names_free(names);
}

/* ---------------------------------------------------------------- notes */

static int note(struct symbol_names *names, const char *text)
{
	struct kv pairs;
	int rc;

	kv_init(&pairs);
	rc = kv_parse(&pairs, text, strlen(text));
	if (!rc)
		rc = symbol_names_note(names, &pairs);
	kv_release(&pairs);
	return rc;
}

static void test_notes_are_strict_on_numbers_only(void **state)
{
	static const char *const bad[] = {"function=f offset=1", "addr=1 offset=1",
		"addr=1 function=f", "addr=0x1 function=f offset=1",
		"addr=1 function=\"\" offset=1", "addr=11111111111111111 function=f offset=1",
		"addr=1 function=f offset=-1", "addr=1 function=f offset=1 line=0",
		"addr=1 function=f offset=1 line=4294967296", "addr=1 function=f offset=1 line=1F"};
	struct symbol_names *names = symbol_names_new();

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(note(names, bad[i]), -ERR_BAD_LINE);
	assert_int_equal(symbol_names_find(names, 1).count, 0);
	assert_int_equal(note(names, "later=x addr=1 function=f offset=AB column=9"), 0);
	assert_int_equal(symbol_names_find(names, 1).list[0].offset_bytes, 0xab);
	symbol_names_free(names);
}

static void check_symbol(const struct symbol *a, const struct symbol *b)
{
	assert_string_equal(a->function, b->function);
	assert_int_equal(a->offset_bytes, b->offset_bytes);
	assert_int_equal(!a->file, !b->file);
	if (a->file)
		assert_string_equal(a->file, b->file);
	assert_int_equal(a->line, b->line);
}

static void test_names_survive_writing_and_reading(void **state)
{
	static const struct symbol list[] = {{"ns::Pool<int, \"x\\y\">::operator!=(A const&)", 0,
						     "C:\\my src\\a b.cpp", 4294967295u},
		{"inlined", 0x10, NULL, 0}, {"\xc3\xa4rger", UINT64_MAX, "/src/=.c", 1}};
	struct symbols symbols = {list, 3}, found;
	struct symbol_names *names = symbol_names_new();
	char path[340], line[500];
	struct err err;
	struct out out;
	FILE *file;

	(void)state;
	snprintf(path, sizeof(path), "%s/names", dir);
	assert_int_equal(out_open(&out, path, &err), 0);
	symbol_names_write(&out, UINT64_MAX - 1, &symbols, "\n");
	assert_int_equal(out_commit(&out, &err), 0);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		assert_memory_equal(line, "// hsnap: name ", 15);
		assert_int_equal(note(names, line + 15), 0);
	}
	(void)fclose(file);
	found = symbol_names_find(names, UINT64_MAX - 1);
	assert_int_equal(found.count, 3);
	for (size_t i = 0; i < 3; i++)
		check_symbol(&found.list[i], &list[i]);
	symbol_names_free(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions_lines_and_offsets_are_exact),
		cmocka_unit_test(test_another_build_gives_no_names),
		cmocka_unit_test(test_what_is_no_call_in_a_module_has_no_name),
		cmocka_unit_test(test_without_llvm_symbolizer_symbol_tables_answer),
		cmocka_unit_test(test_stripped_images_have_the_names_of_exports_only),
		cmocka_unit_test(test_a_bad_llvm_symbolizer_harms_nothing),
		cmocka_unit_test(test_many_addresses_at_once_do_not_block),
		cmocka_unit_test(test_names_of_the_dump_come_first),
		cmocka_unit_test(test_notes_are_strict_on_numbers_only),
		cmocka_unit_test(test_names_survive_writing_and_reading),
	};

	return cmocka_run_group_tests(tests, build, clean);
}
