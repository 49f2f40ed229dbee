/* Tables of made images and PDBs, sound and damaged: what they say, and that any damage ends. */
#include "tests/unit/t.h"

#include "tests/unit/image_made.h"

#include "core/base/os.h"
#include "symbolize/backend/backend.h"
#include "symbolize/files/pdb.h"

static uint64_t offset_at(struct tables *tables, uint32_t rva)
{
	bool is_sure;

	return tables_offset(tables, rva, &is_sure);
}

static char dir[300], image_path[340], pdb_path[340];
static uint64_t seed;

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "%s/test_tables.XXXXXX",
		getenv("TMPDIR") ? getenv("TMPDIR") : "build");
	if (!mkdtemp(dir))
		return -1;
	snprintf(image_path, sizeof(image_path), "%s/a.dll", dir);
	snprintf(pdb_path, sizeof(pdb_path), "%s/a.pdb", dir);
	return 0;
}

static int clean(void **state)
{
	(void)state;
	unlink(image_path);
	unlink(pdb_path);
	return rmdir(dir);
}

static uint64_t dice(uint64_t limit)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed * UINT64_C(0x2545f4914f6cdd1d) >> 16) % limit;
}

/* ---------------------------------------------------------------- tables of files */

static int read_file(void *ctx, uint64_t offset, void *bytes, size_t len)
{
	return os_read_at(ctx, offset, bytes, len);
}

/* Headers as the finder reads them; false: that is no image. */
static bool take_image(struct module_files *files, struct pe_image *pe)
{
	struct os_file file;
	struct pe_source source = {.read = read_file, .ctx = &file};
	int rc;

	assert_int_equal(os_open(&file, image_path, NULL), 0);
	rc = pe_read_headers(&source, pe);
	os_close(&file);
	files->image = image_path;
	files->pe = pe;
	return !rc;
}

static void write_image(const struct made_bytes *image)
{
	made_write(image_path, image->bytes, image->len);
}

static void check(struct tables *tables, uint32_t rva, const char *name, uint64_t offset)
{
	struct arena arena;
	struct symbol symbol;
	const char *by;

	arena_init(&arena);
	assert_int_equal(tables_find(tables, rva, NULL, &arena, &symbol, &by), name != NULL);
	if (name) {
		assert_string_equal(symbol.function, name);
		assert_int_equal(symbol.offset_bytes, offset);
	}
	arena_release(&arena);
}

TEST(test_parts_that_were_moved_away_keep_their_functions_name)
{
	struct made_bytes image = made_image();
	struct module_files files = {0};
	struct tables *tables;
	struct pe_image pe;

	write_image(&image);
	assert_true(take_image(&files, &pe));
	tables = tables_new(&files, false);
	assert_non_null(tables);
	check(tables, 0x1010, "alpha", 0x11);
	check(tables, 0x1110, "beta", 0x11);
	check(tables, 0x1210, "Ordinal4", 0x11);
	check(tables, 0x1518, "func", 0x19);
	check(tables, 0x1528, "func", 0x29); /* "mark" is no function */
	check(tables, 0x1610, "delta", 0); /* which begins further above */
	check(tables, 0x1690, NULL, 0); /* behind a part, before gamma */
	check(tables, 0x1710, "gamma", 0x11);
	check(tables, 0x1810, "alpha", 0x811); /* not gamma */
	check(tables, 0x1910, "delta", 0x11);
	assert_int_equal(offset_at(tables, 0x1810), 0x811);
	assert_int_equal(offset_at(tables, 0x1610), 0);
	assert_int_equal(offset_at(tables, 0x1518), 0x19);
	assert_true(tables_reach(tables, 0x1000, 0x1810));
	assert_false(tables_reach(tables, 0x1700, 0x1810));
	assert_false(tables_reach(tables, 0x1200, 0x1518));
	tables_free(tables);
	free(image.bytes);
}

/* All there is to ask; what comes back is bounded, the rest is for the sanitizers to see. */
static unsigned ask_all(struct module_files *files)
{
	struct tables *tables = tables_new(files, false);
	struct arena arena;
	unsigned found = 0;

	assert_non_null(tables);
	arena_init(&arena);
	for (uint32_t rva = 0xf00; rva < 0x4100; rva += 0x90) {
		struct symbol symbol;
		const char *by;
		struct table_name name;
		bool has_name = tables_name_at(tables, rva, NULL, &name) == 1;
		int rc = tables_find(tables, rva, NULL, &arena, &symbol, &by);

		assert_true(rc == 0 || rc == 1);
		assert_true(!has_name || strlen(name.raw) < 0x10000);
		if (rc == 1) {
			assert_true(strlen(symbol.function) < 0x10000);
			assert_true(symbol.offset_bytes <= (uint64_t)rva + 1);
			found++;
		}
		assert_true(offset_at(tables, rva) <= (uint64_t)rva + 1);
		tables_reach(tables, rva / 2, rva);
	}
	assert_false(tables_reach(tables, UINT32_MAX, 0));
	assert_true(offset_at(tables, UINT32_MAX) <= (uint64_t)UINT32_MAX + 1);
	tables_free(tables);
	arena_release(&arena);
	return found;
}

/* ---------------------------------------------------------------- hostile exports */

/* One field of the export table, or of what it points to. */
static const struct {
	size_t at;
	uint64_t value;
	size_t len;
} hostile[] = {{20, UINT32_MAX, 4}, {20, 65537, 4}, {20, 65536, 4}, {20, 0x400, 4},
	{20, 0, 4}, /* how many */
	{24, UINT32_MAX, 4}, {24, 65537, 4}, {24, 65536, 4}, {24, 0x400, 4}, {24, 0, 4}, {28, 0, 4},
	{28, UINT32_MAX, 4}, {28, 0x2ffd, 4}, {28, 0x3fff, 4}, {28, 0x80000000, 4}, /* where */
	{32, 0, 4}, {32, UINT32_MAX, 4}, {32, 0x2ffd, 4}, {32, 0x1000, 4}, {32, 0x80000000, 4},
	{36, 0, 4}, {36, UINT32_MAX, 4}, {36, 0x2fff, 4}, {36, 0x1000, 4}, {36, 0x80000000, 4},
	{16, UINT32_MAX, 4}, /* first ordinal */
	{MADE_ADDRESSES, UINT32_MAX, 4}, {MADE_ADDRESSES, 0x2000, 4}, {MADE_ADDRESSES, 0x3fff, 4},
	{MADE_NAMES, 0, 4}, {MADE_NAMES, UINT32_MAX, 4}, {MADE_NAMES, 0x2fff, 4},
	{MADE_NAMES, 0x3fff, 4}, {MADE_NAMES, 0x500, 4}, {MADE_ORDINALS, 0xffff, 2},
	{MADE_ORDINALS, 6, 2}};

TEST(test_hostile_exports_end)
{
	for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
		struct made_bytes image = made_image();
		struct module_files files = {0};
		struct pe_image pe;

		made_set(&image, MADE_EXPORTS + hostile[i].at, hostile[i].value, hostile[i].len);
		write_image(&image);
		assert_true(take_image(&files, &pe));
		ask_all(&files);
		free(image.bytes);
	}
}

/* 0xffff names of 4000 bytes each, all at one place: 260 MB if each were kept. */
TEST(test_many_exports_of_one_long_name_are_refused)
{
	enum { COUNT = 65535, LEN = 3900, TABLE = COUNT * 10 + 40 };
	struct made_bytes image = made_image();
	struct module_files files = {0};
	struct pe_image pe;
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
	write_image(&image);
	assert_true(take_image(&files, &pe));
	assert_true(ask_all(&files) < 3); /* the symbol table, no export */
	free(image.bytes);
}

/* ---------------------------------------------------------------- random damage */

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
		struct module_files files = {0};
		struct pe_image pe;

		for (uint64_t times = 1 + dice(6); times; times--) {
			const size_t *region = regions[dice(sizeof(regions) / sizeof(*regions))];

			damage_somewhere(&image, region[0], region[1]);
		}
		if (!dice(10))
			image.len = (size_t)dice(image.len);
		write_image(&image);
		if (take_image(&files, &pe)) {
			read++;
			found += ask_all(&files) > 0;
		}
		free(image.bytes);
	}
	assert_true(read > 1000 && found > 500); /* damage is survived, not refused */
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
		struct module_files files = {.pdb = pdb_path};
		struct pdb_identity identity;

		for (uint64_t times = 1 + dice(5); times; times--) {
			switch (dice(4)) {
			case 0: damage_somewhere(&pdb.file, 32, 60); break;
			case 1: damage_somewhere(&pdb.file, pdb.directory_at, pdb.file.len); break;
			default: damage_somewhere(&pdb.file, 512, pdb.file.len);
			}
		}
		if (!dice(10))
			pdb.file.len = (size_t)dice(pdb.file.len);
		made_write(pdb_path, pdb.file.bytes, pdb.file.len);
		named += !pdb_read_identity(pdb_path, &identity, NULL);
		found += ask_all(&files) > 0;
		made_free(&pdb);
	}
	assert_true(named > 500 && found > 500);
}

/* A file whose streams all claim to be as large as it may be, in ever the same blocks. */
TEST(test_streams_that_share_their_blocks_end)
{
	struct made_pdb pdb = pdb_to_damage();
	struct module_files files = {.pdb = pdb_path};
	struct made_bytes *file = &pdb.file;

	for (size_t i = 0; i < MADE_STREAMS; i++)
		made_set(file, pdb.directory_at + 4 + i * 4, file->len, 4);
	made_write(pdb_path, file->bytes, file->len);
	ask_all(&files);
	for (size_t at = pdb.directory_at + 36; at + 4 <= pdb.map_at; at += 4)
		made_set(file, at, pdb.directory_at / 512, 4);
	made_write(pdb_path, file->bytes, file->len);
	ask_all(&files);
	made_free(&pdb);
}

GROUP(setup, clean)
