/* Names from a module's own tables. The expected names come from nm and objdump of programs built
 * here, and from generated images and PDBs. Damaged files must not hang the reader. */
#include "tests/unit/pdb_made.h"

#include "symbolize/backend/backend.h"
#include "symbolize/files/pdb.h"

/* hidden() is neither exported nor a public symbol. The two functions named app differ in their
 * parameters. */
static const char source_text[] =
	"extern \"C\" __declspec(dllimport) int printf(const char *, ...);\n"
	"extern \"C\" int some_data;\n"
	"int some_data = 4;\n"
	"static int __attribute__((noinline)) hidden(int n) { return printf(\"%d\", n) + n; }\n"
	"namespace app {\n"
	"__attribute__((noinline)) int grab(int n) { return hidden(n) + printf(\"i\"); }\n"
	"__attribute__((noinline)) int grab(const char *s) { return hidden(*s) + printf(s); }\n"
	"}\n"
	"extern \"C\" __declspec(dllexport) int api(int n)\n"
	"{ return app::grab(n) + app::grab(\"x\") + some_data; }\n"
	"extern \"C\" int main() { return api(3) + printf(\"m\"); }\n";

static int setup(void **state)
{
	char path[400];

	if (scratch_begin(state))
		return -1;
	snprintf(path, sizeof(path), "%s/t.cpp", dir);
	file_write(path, source_text, strlen(source_text));
	return 0;
}

/* Runs a command in dir; skips the test if a tool is missing. */
static void build(const char *tools, const char *command)
{
	char text[2000];

	snprintf(text, sizeof(text), "for i in %s; do command -v $i >'%s/which' || exit 1; done",
		tools, dir);
	if (system(text) != 0) {
		print_message("# not here: one of %s\n", tools);
		skip();
	}
	snprintf(text, sizeof(text), "cd '%s' && %s", dir, command);
	assert_int_equal(system(text), 0);
}

/* ---------------------------------------------------------------- one module */

static struct module_files files;
static struct tables *tables;
static struct arena arena;

static int close_scene(void **state)
{
	(void)state;
	tables_free(tables);
	tables = NULL;
	module_files_release(&files);
	arena_release(&arena);
	return 0;
}

static char *path_in_dir(const char *name)
{
	char *path = malloc(400);

	assert_non_null(path);
	snprintf(path, 400, "%s/%s", dir, name);
	return path;
}

/* Opens the files, with headers as the finder reads them. Returns false if the image is invalid. */
static bool open_scene(const char *image, const char *pdb, bool no_demangle)
{
	int rc = 0;

	close_scene(NULL);
	files = (struct module_files){.pdb = pdb ? path_in_dir(pdb) : NULL};
	if (image) {
		files.image = path_in_dir(image);
		files.pe = calloc(1, sizeof(*files.pe));
		assert_non_null(files.pe);
		rc = scratch_headers(files.image, files.pe);
	}
	tables = tables_new(&files, no_demangle);
	return !rc;
}

#undef TEST_AROUND
#define TEST_AROUND NULL, close_scene

static void write_in_dir(const char *name, const struct made_bytes *bytes)
{
	char *path = path_in_dir(name);

	file_write(path, bytes->bytes, bytes->len);
	free(path);
}

static uint64_t offset_at(uint32_t rva)
{
	bool is_sure;

	return tables_offset(tables, rva, &is_sure);
}

/* Checks the name found at rva. name: NULL if no name is expected. */
static void check(uint32_t rva, const char *name, uint32_t start, const char *by)
{
	struct symbol symbol;
	const char *who = "";
	int rc = tables_find(tables, rva, NULL, &arena, &symbol, &who);

	assert_int_equal(rc, name != NULL);
	if (!name)
		return;
	assert_string_equal(symbol.function, name);
	assert_int_equal(symbol.offset_bytes, rva + 1 - start);
	assert_string_equal(who, by);
	assert_null(symbol.file);
	assert_int_equal(symbol.line, 0);
	tables_rest(tables);
}

static void check_raw(uint32_t rva, const char *raw)
{
	struct table_name name = {0};

	assert_int_equal(tables_name_at(tables, rva, NULL, &name), raw != NULL);
	if (raw)
		assert_string_equal(name.raw, raw);
}

/* ---------------------------------------------------------------- images */

#define GXX "x86_64-w64-mingw32-g++"
#define INT_GRAB "_ZN3app4grabEi"
#define TEXT_GRAB "_ZN3app4grabEPKc"

TEST(test_symbols_of_image)
{
	uint32_t hidden, grab, other, api;

	build(GXX, GXX " -O1 -fno-optimize-sibling-calls -g t.cpp -o t.exe");
	hidden = scratch_rva("t.exe", "_ZL6hiddeni");
	grab = scratch_rva("t.exe", INT_GRAB);
	other = scratch_rva("t.exe", TEXT_GRAB);
	api = scratch_rva("t.exe", "api");
	open_scene("t.exe", NULL, false);
	check(hidden + 12, "hidden(int)", hidden, "symbols");
	check(grab + 12, "app::grab(int)", grab, "symbols");
	check(other + 12, "app::grab(char const*)", other, "symbols");
	check(api, "api", api, "symbols");
	check_raw(grab, INT_GRAB);
	check_raw(api, "api");
	check_raw(api + 1, NULL);
	assert_int_equal(offset_at(grab + 12), 13);
	assert_true(tables_reach(tables, grab, grab + 12));
	assert_true(tables_reach(tables, grab + 4, grab + 12));
	assert_false(tables_reach(tables, grab, other + 12));
	assert_true(tables_deny(tables, grab, other + 12));
	assert_false(tables_deny(tables, grab, grab + 12));
	assert_false(tables_reach(tables, grab + 12, grab));
	check(scratch_rva("t.exe", "some_data"), NULL, 0, NULL); /* not a function */
	check(0x10, NULL, 0, NULL);
	check(UINT32_MAX, NULL, 0, NULL);
	open_scene("t.exe", NULL, true);
	check(grab + 12, INT_GRAB, grab, "symbols");
}

/* Other programs report symbols that are not functions, such as the linker's section marks, as
 * names. */
TEST(test_functions_of_dll_without_start_up_code)
{
	uint32_t hidden, api;

	build(GXX, GXX " -O1 -fno-optimize-sibling-calls -g -shared -nostdlib -Wl,-e,api "
		       "-D'main()=unused()' t.cpp -lmsvcrt -o t.dll");
	hidden = scratch_rva("t.dll", "_ZL6hiddeni");
	api = scratch_rva("t.dll", "api");
	open_scene("t.dll", NULL, false);
	check(hidden + 12, "hidden(int)", hidden, "symbols");
	check(api + 12, "api", api, "symbols");
	check(scratch_rva("t.dll", "some_data"), NULL, 0, NULL);
}

/* ---------------------------------------------------------------- PDBs */

#define LLD                                                                                        \
	"clang++$LLVM --target=x86_64-w64-mingw32 -fuse-ld=lld$LLVM -nostdlib -shared "            \
	"-Wl,-e,api "                                                                              \
	"-L/usr/x86_64-w64-mingw32/lib o.o -lmsvcrt "

/* The addresses come from nm of an unstripped build with equal code. */
TEST(test_public_symbols_of_linkers_pdb)
{
	uint32_t grab, other, hidden;

	build("clang++$LLVM ld.lld$LLVM " GXX,
		"clang++$LLVM --target=x86_64-w64-mingw32 -w -O1 -fno-optimize-sibling-calls -g "
		"-gcodeview -ffunction-sections -Dmain=unused -c t.cpp -o o.o && " LLD
		"-Wl,--pdb=p.pdb -o p.dll && " LLD "-o n.dll");
	hidden = scratch_rva("n.dll", "_ZL6hiddeni");
	grab = scratch_rva("n.dll", INT_GRAB);
	other = scratch_rva("n.dll", TEXT_GRAB);
	open_scene("n.dll", NULL, false);
	check(hidden + 12, "hidden(int)", hidden, "symbols");
	check(other + 12, "app::grab(char const*)", other, "symbols");
	open_scene("p.dll", "p.pdb", false);
	check(grab + 12, "app::grab(int)", grab, "publics");
	check(other + 12, "app::grab(char const*)", other, "publics");
	check(hidden + 12, "hidden", hidden, "private symbols");
	open_scene(NULL, "p.pdb", false);
	check(grab + 12, "app::grab(int)", grab, "publics");
	check(hidden + 12, "hidden", hidden, "private symbols");
	assert_int_equal(offset_at(grab + 12), 13);
	check_raw(other, TEXT_GRAB);
	assert_true(tables_reach(tables, grab, grab + 12));
}

static void write_pdb(const char *name, struct made_pdb *pdb)
{
	made_finish(pdb);
	write_in_dir(name, &pdb->file);
	made_free(pdb);
}

/* Sections of made_small(): 1 at 0x1000 to 0x3000, 2 at 0x3000, 3 at 0x4000. */
TEST(test_pdb_alone)
{
	static const uint32_t parts[][4] = {{1, 0x100, 0x100, MADE_COMDAT},
		{1, 0x200, 0x100, MADE_COMDAT}, {3, 0x80, 0x20, MADE_COMDAT}};
	struct made_pdb pdb = made_small(4096);
	made_parts(&pdb, 0xf12eba2d, parts, 3);
	made_public(&pdb, 2, 1, 0x100, "first");
	made_public(&pdb, 2, 1, 0x200, "?g@@YAHXZ");
	made_public(&pdb, 2, 1, 0x200, "g");
	made_public(&pdb, 2, 3, 0x80, "_Z1fi");
	write_pdb("alone.pdb", &pdb);
	open_scene(NULL, "alone.pdb", false);
	check(0x10ff, NULL, 0, NULL);
	check(0x1100, "first", 0x1100, "publics");
	check(0x11ff, "first", 0x1100, "publics");
	check(0x1200, "g", 0x1200, "publics");
	check(0x3010, NULL, 0, NULL);
	check(0x4010, NULL, 0, NULL);
	check(0x4090, "f(int)", 0x4080, "publics");
	check(0x5000, NULL, 0, NULL);
	assert_true(tables_reach(tables, 0x1100, 0x11ff));
	assert_true(tables_reach(tables, 0x1180, 0x11ff));
	assert_false(tables_reach(tables, 0x1100, 0x1200));
	assert_false(tables_reach(tables, 0x1200, 0x4010));
	check_raw(0x1200, "g");
}

static const char *name_at(uint32_t rva, const char *said)
{
	struct table_name name;

	assert_int_equal(tables_name_at(tables, rva, said, &name), 1);
	return name.raw;
}

/* A private symbol contains its function's size. A public symbol may be a label within a
 * function. */
TEST(test_private_symbols)
{
	static const struct made_function functions[] = {{0x110f, 0x20, 1, 0x100, "hidden"},
		{0x1110, 0x40, 1, 0x140, "app::f"}, {0x1147, 0x40, 1, 0x140, "app::folded"},
		{0x1110, 0, 1, 0x300, "empty"}};
	struct made_pdb pdb = made_small(4096);
	made_object(&pdb, functions, 4);
	made_public(&pdb, 2, 1, 0x140, "?f@app@@YAXXZ");
	made_public(&pdb, 2, 1, 0x160, "label");
	made_public(&pdb, 2, 1, 0x1c0, "bare");
	write_pdb("private.pdb", &pdb);
	open_scene(NULL, "private.pdb", false);
	check(0x10ff, NULL, 0, NULL);
	check(0x111f, "hidden", 0x1100, "private symbols");
	check(0x1120, NULL, 0, NULL);
	check(0x117f, "app::f", 0x1140, "private symbols");
	check(0x1180, NULL, 0, NULL);
	check(0x1300, "empty", 0x1300, "private symbols");
	check(0x1301, NULL, 0, NULL);
	assert_int_equal(offset_at(0x117f), 0x40);
	assert_true(tables_reach(tables, 0x1160, 0x117f));
	assert_false(tables_deny(tables, 0x1160, 0x117f));
	assert_true(tables_deny(tables, 0x1100, 0x117f));
	assert_string_equal(name_at(0x1140, "app::folded(int)"), "app::folded");
	assert_string_equal(name_at(0x1140, "app::f(int)"), "app::f");
	open_scene(NULL, "private.pdb", true);
	assert_string_equal(name_at(0x1140, "app::f(int)"), "?f@app@@YAXXZ");
}

TEST(test_public_symbol_names_no_other_part)
{
	static const uint32_t parts[][4] = {{1, 0x200, 0x40, MADE_COMDAT},
		{1, 0x180, 0x80, MADE_COMDAT}, {1, 0x100, 0x80, MADE_COMDAT},
		{9, 0, 1, MADE_COMDAT}, {1, 0x1fff, 2, MADE_COMDAT}, {1, 0x400, 0x100, 0x20}};
	static const uint32_t versions[] = {0xf12eba2d, 0xf13151e4};

	for (size_t i = 0; i < 2; i++) {
		struct made_pdb pdb = made_small(4096);
		made_parts(&pdb, versions[i], parts, sizeof(parts) / sizeof(*parts));
		made_public(&pdb, 2, 1, 0x100, "first");
		made_public(&pdb, 2, 1, 0x200, "second");
		made_public(&pdb, 2, 1, 0x400, "of_an_object_file");
		write_pdb("parts.pdb", &pdb);
		open_scene(NULL, "parts.pdb", false);
		check(0x117f, "first", 0x1100, "publics");
		check(0x1180, NULL, 0, NULL);
		check(0x11ff, NULL, 0, NULL);
		check(0x123f, "second", 0x1200, "publics");
		check(0x1240, NULL, 0, NULL);
		check(0x1410, NULL, 0, NULL); /* a static function may lie in between */
		assert_false(tables_reach(tables, 0x1100, 0x1190));
		assert_true(tables_reach(tables, 0x1180, 0x1190));
	}
}

TEST(test_without_parts_public_symbol_may_be_neighbour_s)
{
	struct made_pdb pdb = made_small(4096);
	made_public(&pdb, 2, 1, 0x100, "first");
	write_pdb("no_parts.pdb", &pdb);
	open_scene(NULL, "no_parts.pdb", false);
	check(0x1100, "first", 0x1100, "publics"); /* the function's first byte */
	check(0x1110, NULL, 0, NULL);
	assert_false(tables_reach(tables, 0x1100, 0x1110));
	assert_false(tables_deny(tables, 0x1100, 0x1110));
	check_raw(0x1100, "first");
}

TEST(test_files_that_are_gone_know_nothing)
{
	open_scene(NULL, NULL, false);
	check(0x1000, NULL, 0, NULL);
	assert_int_equal(offset_at(0x1000), 0);
	assert_false(tables_reach(tables, 0x1000, 0x1000));
	check_raw(0x1000, NULL);
	open_scene(NULL, "none.pdb", false);
	check(0x1000, NULL, 0, NULL);
	check_raw(0x1000, NULL);
}

/* ---------------------------------------------------------------- generated images */

/*
 * A small generated 64-bit PE image to be damaged: exports, symbols and a table of functions. The
 * layout follows Microsoft's "PE Format" and "x64 exception handling", and is written down a second
 * time to check the reader.
 *
 *   0x1000  code: alpha 0x1000 (to 0x1100), beta 0x1100 (to 0x1200), Ordinal4 0x1200, func 0x1500,
 *           a part of delta 0x1600 (to 0x1680), gamma 0x1700, a part of alpha 0x1800 (to 0x1880),
 *           delta 0x1900 (to 0x1a00); "mark" at 0x1520 is not a function
 *   0x2000  exports
 *   0x3000  table of functions, with unwind records from 0x3100 on
 */
enum { MADE_TEXT = 0x400, MADE_EXPORTS = 0x600, MADE_FUNCTIONS = 0xa00, MADE_COFF = 0xc00 };

static void made_headers(struct made_bytes *to)
{
	made_pe(to, 3, 0x4000);
	made_set(to, MADE_PE + 12, MADE_COFF, 4);
	made_set(to, MADE_PE + 16, 2, 4);
	made_set(to, MADE_DIRECTORIES, 0x2000, 4);
	made_set(to, MADE_DIRECTORIES + 4, 0x200, 4);
	made_set(to, MADE_DIRECTORIES + 24, 0x3000, 4);
	made_set(to, MADE_DIRECTORIES + 28, 60, 4);
	made_image_section(to, 0, ".text", 0x1000, MADE_TEXT, 0x200);
	made_image_section(to, 1, ".edata", 0x2000, MADE_EXPORTS, 0x400);
	made_image_section(to, 2, ".pdata", 0x3000, MADE_FUNCTIONS, 0x200);
}

static void made_exports(struct made_bytes *to)
{
	/* The fifth entry is a forwarder: its text lies within the table. */
	static const uint32_t places[] = {0x1000, 0x1100, 0x1700, 0x1200, 0x2000 + 200, 0x1900};
	static const char *const names[] = {"alpha", "beta", "delta", "gamma", "gone"};
	static const uint16_t indexes[] = {0, 1, 5, 2, 4};

	made_set(to, MADE_EXPORTS + 16, 1, 4);
	made_set(to, MADE_EXPORTS + 20, 6, 4);
	made_set(to, MADE_EXPORTS + 24, 5, 4);
	made_set(to, MADE_EXPORTS + 28, 0x2000 + 40, 4);
	made_set(to, MADE_EXPORTS + 32, 0x2000 + 72, 4);
	made_set(to, MADE_EXPORTS + 36, 0x2000 + 96, 4);
	for (unsigned i = 0; i < 6; i++)
		made_set(to, MADE_EXPORTS + 40 + i * (size_t)4, places[i], 4);
	for (unsigned i = 0; i < 5; i++) {
		size_t text = 112 + i * (size_t)8;

		memcpy(to->bytes + MADE_EXPORTS + text, names[i], strlen(names[i]));
		made_set(to, MADE_EXPORTS + 72 + i * (size_t)4, 0x2000 + text, 4);
		made_set(to, MADE_EXPORTS + 96 + i * (size_t)2, indexes[i], 2);
	}
	memcpy(to->bytes + MADE_EXPORTS + 200, "OTHER.gone", 10);
}

/* If a function's unwind record refers to another entry, the function starts at that entry. */
static void made_functions(struct made_bytes *to)
{
	static const uint32_t entries[5][3] = {{0x1000, 0x1100, 0x3100}, {0x1100, 0x1200, 0x3100},
		{0x1600, 0x1680, 0x3110}, {0x1800, 0x1880, 0x3120}, {0x1900, 0x1a00, 0x3100}};
	/* Record's place, entry's number. */
	static const unsigned chained[2][2] = {{0x110, 4}, {0x120, 0}};

	for (unsigned i = 0; i < 15; i++)
		made_set(to, MADE_FUNCTIONS + i * (size_t)4, entries[i / 3][i % 3], 4);
	made_set(to, MADE_FUNCTIONS + 0x100, 1, 1);
	for (unsigned i = 0; i < 2; i++) {
		size_t at = MADE_FUNCTIONS + chained[i][0];

		made_set(to, at, 1 | 4 << 3, 1);
		for (unsigned j = 0; j < 3; j++)
			made_set(to, at + 4 + j * (size_t)4, entries[chained[i][1]][j], 4);
	}
}

static void made_symbol(
	struct made_bytes *to, unsigned i, const char *name, uint32_t value, uint16_t type)
{
	size_t at = MADE_COFF + i * (size_t)18;

	memcpy(to->bytes + at, name, strlen(name));
	made_set(to, at + 8, value, 4);
	made_set(to, at + 12, 1, 2);
	made_set(to, at + 14, type, 2);
	made_set(to, at + 16, 2, 1);
}

static struct made_bytes made_image(void)
{
	struct made_bytes image = {0};

	made_fill(&image, MADE_COFF + 2 * 18 + 4);
	made_headers(&image);
	made_exports(&image);
	made_functions(&image);
	made_symbol(&image, 0, "func", 0x500, 0x20);
	made_symbol(&image, 1, "mark", 0x520, 0);
	made_set(&image, MADE_COFF + 2 * 18, 4, 4); /* this truncates the names */
	return image;
}

TEST(test_parts_that_were_moved_away_keep_their_functions_name)
{
	static const struct {
		uint32_t rva, start;
		const char *name, *by;
	} truths[] = {{0x1010, 0x1000, "alpha", "exports"}, {0x1110, 0x1100, "beta", "exports"},
		{0x1210, 0x1200, "Ordinal4", "exports"}, {0x1518, 0x1500, "func", "symbols"},
		{0x1528, 0x1500, "func", "symbols"}, /* "mark" is not a function */
		{0x1610, 0x1611, "delta", "exports"}, /* delta begins earlier */
		{0x1690, 0, NULL, NULL}, /* after a function's part, before gamma */
		{0x1710, 0x1700, "gamma", "exports"},
		{0x1810, 0x1000, "alpha", "exports"}, /* gamma does not extend to this address */
		{0x1910, 0x1900, "delta", "exports"}};
	struct made_bytes image = made_image();
	write_in_dir("a.dll", &image);
	free(image.bytes);
	assert_true(open_scene("a.dll", NULL, false));
	for (size_t i = 0; i < sizeof(truths) / sizeof(*truths); i++)
		check(truths[i].rva, truths[i].name, truths[i].start, truths[i].by);
	assert_int_equal(offset_at(0x1810), 0x811);
	assert_int_equal(offset_at(0x1610), 0);
	assert_int_equal(offset_at(0x1518), 0x19);
	assert_true(tables_reach(tables, 0x1000, 0x1810));
	assert_false(tables_reach(tables, 0x1700, 0x1810));
	assert_false(tables_reach(tables, 0x1200, 0x1518));
}

/* ---------------------------------------------------------------- damage */

static uint64_t seed;

static uint64_t dice(uint64_t limit)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed * UINT64_C(0x2545f4914f6cdd1d) >> 16) % limit;
}

/* Makes all queries of an open scene; returns the number of functions found. Checks that results
 * are bounded. The sanitizers check the rest. */
static unsigned ask_all(void)
{
	unsigned found = 0;

	for (uint32_t rva = 0xf00; rva < 0x4100; rva += 0x90) {
		struct symbol symbol;
		const char *by;
		struct table_name name;

		if (tables_name_at(tables, rva, NULL, &name))
			assert_true(strlen(name.raw) < 0x10000);
		if (tables_find(tables, rva, NULL, &arena, &symbol, &by)) {
			assert_true(strlen(symbol.function) < 0x10000);
			assert_true(symbol.offset_bytes <= (uint64_t)rva + 1);
			found++;
		}
		assert_true(offset_at(rva) <= (uint64_t)rva + 1);
		tables_reach(tables, rva / 2, rva);
	}
	assert_false(tables_reach(tables, UINT32_MAX, 0));
	assert_true(offset_at(UINT32_MAX) <= (uint64_t)UINT32_MAX + 1);
	return found;
}

static unsigned ask_pdb(const struct made_pdb *pdb)
{
	write_in_dir("damaged.pdb", &pdb->file);
	open_scene(NULL, "damaged.pdb", false);
	return ask_all();
}

/* 0xffff names of 4000 bytes each share one place. Storing each name would need 260 MB. */
TEST(test_many_exports_of_one_long_name_are_refused)
{
	enum { COUNT = 65535, LEN = 3900, TABLE = COUNT * 10 + 40 };
	struct made_bytes image = made_image();
	size_t at = image.len;
	made_fill(&image, at + 0x200000);
	made_set(&image, MADE_OPTIONAL + 56, 0x300000, 4);
	made_image_section(&image, 1, ".edata", 0x4000, (uint32_t)at, 0x200000);
	made_set(&image, MADE_HEADERS + 40 + 8, 0x200000, 4);
	made_set(&image, MADE_DIRECTORIES, 0x4000, 4);
	made_set(&image, at + 20, COUNT, 4);
	made_set(&image, at + 24, COUNT, 4);
	made_set(&image, at + 28, 0x4000 + 40, 4);
	made_set(&image, at + 32, 0x4000 + 40 + COUNT * 4, 4);
	made_set(&image, at + 36, 0x4000 + 40 + COUNT * 8, 4);
	memset(image.bytes + at + TABLE, 'n', LEN);
	for (size_t i = 0; i < COUNT; i++) {
		made_set(&image, at + 40 + i * 4, 0x1000 + i % 0x1000, 4);
		made_set(&image, at + 40 + COUNT * 4 + i * 4, 0x4000 + TABLE + i % 8, 4);
		made_set(&image, at + 40 + COUNT * 8 + i * 2, i, 2);
	}
	write_in_dir("a.dll", &image);
	free(image.bytes);
	assert_true(open_scene("a.dll", NULL, false));
	assert_true(ask_all() < 3); /* names come from the symbol table, not from the exports */
}

static void damage_somewhere(struct made_bytes *bytes, size_t from, size_t to)
{
	static const uint64_t values[] = {0, 1, 4, 0x7f, 0x80, 0xff, 0xffff, 0x7fffffff, 0x80000000,
		UINT32_MAX, 0x1000, 0x1fff, 0x2000, 0x3ffc};
	size_t at = from + (size_t)dice(to - from);
	size_t len = (size_t)1 << dice(3);

	at -= dice(2) ? at % len : 0;
	if (at + len > bytes->len)
		return;
	if (dice(3))
		made_set(bytes, at, values[dice(sizeof(values) / sizeof(*values))], len);
	else
		made_set(bytes, at, dice(UINT32_MAX), len);
}

TEST(test_damaged_images_end)
{
	static const size_t regions[][2] = {{0, MADE_HEADERS + 120},
		{MADE_EXPORTS, MADE_EXPORTS + 220}, {MADE_FUNCTIONS, MADE_FUNCTIONS + 60},
		{MADE_FUNCTIONS + 0x100, MADE_FUNCTIONS + 0x140}, {MADE_COFF, MADE_COFF + 40},
		{MADE_PE, MADE_PE + 24}};
	unsigned read = 0, found = 0;

	seed = 99;
	for (unsigned round = 0; round < 3000; round++) {
		struct made_bytes image = made_image();
		for (uint64_t times = 1 + dice(6); times; times--) {
			const size_t *region = regions[dice(sizeof(regions) / sizeof(*regions))];

			damage_somewhere(&image, region[0], region[1]);
		}
		if (!dice(10))
			image.len = (size_t)dice(image.len);
		write_in_dir("a.dll", &image);
		free(image.bytes);
		if (open_scene("a.dll", NULL, false)) {
			read++;
			found += ask_all() > 0;
		} else {
		}
	}
	assert_true(read > 1000 && found > 500); /* most damaged images are still used */
}

static struct made_pdb pdb_to_damage(void)
{
	static const uint32_t parts[][4] = {{1, 0, 0x200, MADE_COMDAT},
		{1, 0x200, 0x1000, MADE_COMDAT}, {3, 0, 0x100, MADE_COMDAT}};
	static const struct made_function functions[] = {{0x1147, 0x100, 3, 0x40, "_Zf"},
		{0x110f, 0x30, 1, 0x40, "local"}, {0x1146, 8, 1, 0x80, "a::dtor$0"}};
	struct made_pdb pdb = made_small(512);

	made_object(&pdb, functions, 3);
	made_parts(&pdb, 0xf12eba2d, parts, 3);
	for (uint32_t i = 0; i < 40; i++) {
		char name[40];

		snprintf(name, sizeof(name), "_ZN3app8functionEi%u", i);
		made_public(&pdb, 2, 1, i * 0x40, name);
	}
	made_finish(&pdb);
	return pdb;
}

TEST(test_damaged_pdbs_end)
{
	unsigned found = 0, named = 0;

	seed = 7;
	for (unsigned round = 0; round < 3000; round++) {
		struct made_pdb pdb = pdb_to_damage();
		struct pdb_identity identity;
		char *path = path_in_dir("damaged.pdb");

		for (uint64_t times = 1 + dice(5); times; times--) {
			switch (dice(4)) {
			case 0: damage_somewhere(&pdb.file, 32, 60); break;
			case 1: damage_somewhere(&pdb.file, pdb.directory_at, pdb.file.len); break;
			default: damage_somewhere(&pdb.file, 512, pdb.file.len);
			}
		}
		if (!dice(10))
			pdb.file.len = (size_t)dice(pdb.file.len);
		found += ask_pdb(&pdb) > 0;
		named += !pdb_read_identity(path, &identity, NULL);
		made_free(&pdb);
		free(path);
	}
	assert_true(named > 500 && found > 500);
}

/* The file's streams all claim the maximum size and share their blocks. */
TEST(test_streams_that_share_their_blocks_end)
{
	struct made_pdb pdb = pdb_to_damage();
	struct made_bytes *file = &pdb.file;

	for (size_t i = 0; i < MADE_STREAMS; i++)
		made_set(file, pdb.directory_at + 4 + i * 4, file->len, 4);
	ask_pdb(&pdb);
	for (size_t at = pdb.directory_at + 36; at + 4 <= pdb.map_at; at += 4)
		made_set(file, at, pdb.directory_at / 512, 4);
	ask_pdb(&pdb);
	made_free(&pdb);
}

GROUP(setup, scratch_end)
