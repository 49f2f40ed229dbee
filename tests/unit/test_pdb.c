/* PDBs: their identity and their functions, read from generated files. test_tables.c and
 * e2e_pdb_msvc.t read PDBs that linkers made. */
#include "tests/unit/pdb_made.h"

#include "symbolize/files/pdb.h"

static char path[340];

static int setup(void **state)
{
	int rc = scratch_begin(state);

	snprintf(path, sizeof(path), "%s/a.pdb", dir);
	return rc;
}

static void finish_at(struct made_pdb *pdb, const char *to)
{
	made_finish(pdb);
	file_write(to, pdb->file.bytes, pdb->file.len);
}

struct pdb_damage {
	int place; /* stream's number, or one of these places */
	size_t at;
	uint64_t value;
	size_t len;
};
enum { THE_FILE = -1, THE_DIRECTORY = -2, THE_MAP = -3 };

/* 300 KB in blocks of 512 bytes need a directory of 5 blocks. 40 MB need 640 blocks, more than the
 * 128 that one map can list. */
TEST(test_guid_and_age_that_images_record)
{
	static const struct {
		uint32_t block_bytes;
		size_t more_bytes;
	} sizes[] = {{512, 0}, {1024, 0}, {4096, 0}, {32768, 0}, {512, 300 << 10}, {512, 40 << 20}};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct made_pdb pdb = made_small(sizes[i].block_bytes);
		struct pdb_identity identity;

		made_fill(&pdb.streams[0].content, sizes[i].more_bytes);
		finish_at(&pdb, path);
		assert_int_equal(pdb_read_identity(path, &identity, NULL), 0);
		assert_string_equal(identity.guid, MADE_GUID);
		assert_int_equal(identity.age, 3);
		made_free(&pdb);
	}
}

/* Returns the error for a file of these bytes, or "" if the file is read. */
static const char *detail_of(const void *bytes, size_t len)
{
	struct pdb_identity identity = {.age = 99};
	static struct err err;
	int rc;

	file_write(path, bytes, len);
	rc = pdb_read_identity(path, &identity, &err);
	if (!rc)
		return "";
	assert_int_equal(rc, -ERR_TARGET);
	assert_int_equal(identity.age, 99);
	assert_string_equal(err.place, path);
	return err.detail;
}

TEST(test_cut_file_is_reported)
{
	struct made_pdb pdb = made_small(4096);

	made_fill(&pdb.streams[MADE_SYMBOLS].content, 20000);
	made_finish(&pdb);
	assert_string_equal(detail_of(pdb.file.bytes, pdb.file.len), "");
	for (size_t len = 4096; len < pdb.file.len; len += 4096)
		assert_string_equal(detail_of(pdb.file.bytes, len), "the PDB is cut short");
	assert_string_equal(detail_of(pdb.file.bytes, pdb.file.len - 1), "the PDB is cut short");
	for (size_t len = 32; len < 60; len++)
		assert_string_equal(detail_of(pdb.file.bytes, len), "the PDB is cut short");
	for (size_t len = 0; len < 32; len++)
		assert_string_equal(detail_of(pdb.file.bytes, len), "not a PDB file");
	made_free(&pdb);
}

TEST(test_what_is_no_such_file_is_refused)
{
	static const char old[200] = "Microsoft C/C++ program database 2.00\r\n\032JG";
	struct made_pdb pdb = made_small(4096);
	struct pdb_identity identity;
	char nowhere[400];
	struct err err;

	assert_string_equal(detail_of(old, sizeof(old)), "not a PDB file");
	assert_string_equal(detail_of("BSJB", 4), "not a PDB file");
	pdb.streams[MADE_DBI].content.len = 0;
	made_finish(&pdb);
	assert_string_equal(detail_of(pdb.file.bytes, pdb.file.len), "the PDB belongs to no image");
	made_free(&pdb);
	pdb = made_small(4096);
	made_set(&pdb.streams[MADE_INFO].content, 0, 19970604, 4);
	made_finish(&pdb);
	assert_string_equal(detail_of(pdb.file.bytes, pdb.file.len), "the PDB has no GUID");
	made_free(&pdb);
	snprintf(nowhere, sizeof(nowhere), "%s/none.pdb", dir);
	assert_int_equal(pdb_read_identity(nowhere, &identity, &err), -ERR_OPEN);
	assert_string_equal(err.place, nowhere);
	assert_int_equal(pdb_read_identity(dir, &identity, &err), -ERR_OPEN);
}

TEST(test_numbers_that_cannot_be_are_refused)
{
	static const struct pdb_damage damages[] = {{THE_FILE, 32, 0, 4}, {THE_FILE, 32, 1, 4},
		{THE_FILE, 32, 256, 4}, {THE_FILE, 32, 4095, 4}, {THE_FILE, 32, 1 << 17, 4},
		{THE_FILE, 32, UINT32_MAX, 4}, {THE_FILE, 40, 0, 4}, {THE_FILE, 40, 1, 4},
		{THE_FILE, 44, 0, 4}, {THE_FILE, 44, 4, 4}, {THE_FILE, 44, 16, 4},
		{THE_FILE, 44, UINT32_MAX, 4}, {THE_FILE, 52, 0, 4}, {THE_FILE, 52, 1000, 4},
		{THE_FILE, 52, UINT32_MAX, 4}, {THE_DIRECTORY, 0, 0, 4},
		{THE_DIRECTORY, 0, UINT32_MAX, 4}, {THE_DIRECTORY, 0, 1000, 4},
		{THE_DIRECTORY, 8, 27, 4}, {THE_DIRECTORY, 8, 1 << 30, 4},
		{THE_DIRECTORY, 8, UINT32_MAX, 4}, {THE_DIRECTORY, 8, UINT32_MAX - 1, 4},
		{THE_DIRECTORY, 16, UINT32_MAX, 4}, {THE_DIRECTORY, 16, 63, 4},
		{THE_DIRECTORY, 12, 1 << 20, 4}, {THE_DIRECTORY, 36, 0, 4},
		{THE_DIRECTORY, 36, 999, 4}, {THE_DIRECTORY, 40, UINT32_MAX, 4}, {THE_MAP, 0, 0, 4},
		{THE_MAP, 0, 999, 4}, {THE_MAP, 0, UINT32_MAX, 4}};

	for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
		struct made_pdb pdb = made_small(4096);
		size_t at = damages[i].at;
		const char *detail;

		made_finish(&pdb);
		if (damages[i].place != THE_FILE)
			at += damages[i].place == THE_MAP ? pdb.map_at : pdb.directory_at;
		made_set(&pdb.file, at, damages[i].value, 4);
		detail = detail_of(pdb.file.bytes, pdb.file.len);
		if (!strstr(detail, "PDB is damaged") && !strstr(detail, "belongs to no image"))
			fail_msg("damage %zu: \"%s\"", i, detail);
		made_free(&pdb);
	}
}

/* ---------------------------------------------------------------- public symbols */

static struct pe_exports functions;
static struct err err;

static int read_made(struct made_pdb *pdb)
{
	finish_at(pdb, path);
	made_free(pdb);
	return pdb_read_functions(path, &functions, &err);
}

static void check_function(size_t i, uint32_t rva, const char *name)
{
	assert_true(i < functions.count);
	assert_int_equal(functions.list[i].rva, rva);
	assert_int_equal(functions.list[i].ordinal, 0);
	assert_string_equal(functions.list[i].name, name);
}

static int release(void **state)
{
	(void)state;
	pe_exports_release(&functions);
	return 0;
}

#undef TEST_AROUND
#define TEST_AROUND NULL, release

/* Sections of made_small(): 1 at 0x1000, 2 at 0x3000, 3 at 0x4000. */
TEST(test_publics_are_found_where_their_sections_are)
{
	struct made_pdb pdb = made_small(512);

	made_public(&pdb, 2, 3, 0x10, "third");
	made_public(&pdb, 2, 1, 0x1fff, "last");
	made_public(&pdb, 3, 1, 0, "first");
	made_public(&pdb, 2, 1, 0, "?first@@YAHXZ");
	/* Not a symbol but a reference to one. */
	made_record(&pdb, 0x1125, "\0\0\0\0\1\0\0\0\1\0first", 16);
	made_public(&pdb, 0, 2, 0x20, "some_data");
	made_public(&pdb, 1, 1, 0x30, "data_in_code");
	made_public(&pdb, 2, 1, 0x2000, "outside");
	made_public(&pdb, 2, 4, 0, "in no section");
	made_public(&pdb, 2, 0, 0, "absolute");
	made_public(&pdb, 2, 1, 8, "");
	assert_int_equal(read_made(&pdb), 0);
	assert_int_equal(functions.count, 5);
	check_function(0, 0x1000, "?first@@YAHXZ");
	check_function(1, 0x1000, "first");
	check_function(2, 0x2fff, "last");
	check_function(3, 0x3020, "some_data");
	check_function(4, 0x4010, "third");
}

TEST(test_names_of_32_bit_images_are_those_of_source)
{
	struct made_pdb pdb = made_small(4096);
	struct pe_image *image = calloc(1, sizeof(*image));

	assert_non_null(image);
	made_set(&pdb.streams[MADE_DBI].content, 58, 0x14c, 2);
	made_public(&pdb, 2, 1, 0, "_main");
	made_public(&pdb, 2, 1, 16, "__Z1fi");
	made_public(&pdb, 2, 1, 32, "?f@@YAHH@Z");
	assert_int_equal(read_made(&pdb), 0);
	assert_int_equal(functions.count, 3);
	check_function(0, 0x1000, "main");
	check_function(1, 0x1010, "_Z1fi");
	check_function(2, 0x1020, "?f@@YAHH@Z");
	assert_int_equal(pdb_read_sections(path, image, &err), 0);
	assert_int_equal(image->bits, 32);
	assert_int_equal(image->section_count, 3);
	assert_string_equal(image->sections[2].name, ".code2");
	assert_int_equal(image->sections[2].rva, 0x4000);
	assert_int_equal(image->sections[2].size_bytes, 0x1000);
	free(image);
}

/* Records of maximum length lie across every boundary of blocks and reads. */
TEST(test_long_and_many_names)
{
	struct made_pdb pdb = made_small(4096);
	char *name = malloc(66000);

	assert_non_null(name);
	for (uint32_t i = 0; i < 2000; i++) {
		size_t len = i % 50 ? i % 50 : 65500 + i / 50 % 20;

		memset(name, 'a' + (int)(i % 26), len);
		name[len] = '\0';
		made_public(&pdb, 2, 1, i * 4, name);
	}
	assert_int_equal(read_made(&pdb), 0);
	assert_int_equal(functions.count, 2000);
	for (uint32_t i = 0; i < 2000; i++) {
		size_t len = i % 50 ? i % 50 : 65500 + i / 50 % 20;

		assert_int_equal(functions.list[i].rva, 0x1000 + i * 4);
		assert_int_equal(strlen(functions.list[i].name), len);
		assert_int_equal(functions.list[i].name[len - 1], 'a' + (int)(i % 26));
	}
	free(name);
}

TEST(test_missing_or_rearranged_parts_are_reported)
{
	static const struct {
		size_t at, value, len;
		const char *detail; /* NULL: no fault */
	} cases[] = {
		{64 + 100 + 3 * 2, MADE_OMAP, 2, "OMAP"}, {64 + 100 + 5 * 2, 0xffff, 2, "sections"},
		{48, 10, 4, "sections"}, /* the list of sections is shorter than required */
		{24, UINT32_MAX, 4, "the PDB is damaged"}, /* one part is too long */
		{20, 0xffff, 2, NULL}, /* the PDB has no symbols */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct made_pdb pdb = made_small(4096);

		made_set(&pdb.streams[MADE_DBI].content, cases[i].at, cases[i].value, cases[i].len);
		made_public(&pdb, 2, 1, 0, "f");
		assert_int_equal(read_made(&pdb), cases[i].detail ? -ERR_TARGET : 0);
		if (cases[i].detail)
			assert_non_null(strstr(err.detail, cases[i].detail));
		else
			assert_int_equal(functions.count, 0);
	}
}

/* ---------------------------------------------------------------- private symbols */

TEST(test_private_functions_and_how_far_they_reach)
{
	static const struct made_function list[] = {{0x1147, 0x10, 3, 0xff0, "global"},
		{0x110f, 0x30, 1, 0x40, "local"}, {0x1146, 8, 1, 0x80, "a::`1'::dtor$0"},
		{0x1110, 8, 1, 0, "_first"}, {0x1110, 0x11, 3, 0xff0, "too long"},
		{0x1110, 8, 1, 0x2000, "outside"}, {0x1110, 8, 4, 0, "in no section"},
		{0x1110, 8, 0, 0, "absolute"}, {0x1110, 8, 1, 0x90, ""},
		{0x1102, 8, 1, 0x90, "another kind"}};
	struct made_pdb pdb = made_small(512);
	struct pdb_parts ranges;

	made_set(
		/* 32-bit machine: names have no added '_'. */
		&pdb.streams[MADE_DBI].content, 58, 0x14c, 2);
	made_public(&pdb, 2, 1, 0, "_public");
	made_object(&pdb, list, sizeof(list) / sizeof(*list));
	finish_at(&pdb, path);
	made_free(&pdb);
	assert_int_equal(pdb_read_private_functions(path, &functions, &ranges, NULL), 0);
	assert_int_equal(functions.count, 4);
	assert_int_equal(ranges.count, 4);
	check_function(0, 0x1000, "_first");
	check_function(1, 0x1040, "local");
	check_function(2, 0x1080, "a::`1'::dtor$0");
	check_function(3, 0x4ff0, "global");
	assert_int_equal(ranges.list[1].rva, 0x1040);
	assert_int_equal(ranges.list[1].size_bytes, 0x30);
	assert_int_equal(ranges.list[3].size_bytes, 0x10);
	free(ranges.list);
}

TEST(test_records_that_make_no_sense_are_refused)
{
	static const struct made_function list[] = {{0x1147, 0x10, 1, 0, "global"}};
	static const struct pdb_damage damages[] = {{MADE_SYMBOLS, 0, 0, 2},
		{MADE_SYMBOLS, 0, 1, 2}, {MADE_SYMBOLS, 0, 0xffff, 2}, {MADE_SYMBOLS, 0, 0x7000, 2},
		{MADE_DBI, 64 + 36, UINT32_MAX, 4}, {MADE_DBI, 64 + 36, 0x1000, 4},
		{MADE_DBI, 64 + 36, 20, 4}, {MADE_DBI, 64 + 34, MADE_SECTIONS, 2},
		{MADE_DBI, 24, UINT32_MAX, 4}, {MADE_OBJECT, 4, 0, 2}, {MADE_OBJECT, 4, 0xffff, 2}};
	struct pdb_parts ranges;

	for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
		struct made_pdb pdb = made_small(4096);

		made_public(&pdb, 2, 1, 0, "f");
		made_object(&pdb, list, 1);
		made_set(&pdb.streams[damages[i].place].content, damages[i].at, damages[i].value,
			damages[i].len);
		finish_at(&pdb, path);
		made_free(&pdb);
		assert_int_equal(
			damages[i].place == MADE_SYMBOLS ?
				pdb_read_functions(path, &functions, &err) :
				pdb_read_private_functions(path, &functions, &ranges, &err),
			-ERR_TARGET);
		assert_non_null(strstr(err.detail, "PDB "));
	}
}

GROUP(setup, scratch_end)
