/* Reading PDBs: whom they belong to. Truth: made files, and LLVM's own reader of real ones. */
#include "tests/unit/t.h"

#include "tests/unit/pdb_made.h"

#include <inttypes.h>

#include "symbolize/files/pdb.h"

static char dir[300], path[340];

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "%s/test_pdb.XXXXXX",
		getenv("TMPDIR") ? getenv("TMPDIR") : "build");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/a.pdb", dir);
	return 0;
}

static int clean(void **state)
{
	char command[400];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static void check_identity(struct made_pdb *pdb)
{
	struct pdb_identity identity;
	struct err err;

	made_write(path, pdb->file.bytes, pdb->file.len);
	assert_int_equal(pdb_read_identity(path, &identity, &err), 0);
	assert_string_equal(identity.guid, MADE_GUID);
	assert_int_equal(identity.age, 3);
}

TEST(test_guid_and_the_age_that_images_record)
{
	static const uint32_t sizes[] = {512, 1024, 4096, 32768};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct made_pdb pdb = made_small(sizes[i]);

		made_finish(&pdb);
		check_identity(&pdb);
		made_free(&pdb);
	}
}

/* 300 KB of symbols in blocks of 512 bytes: a directory of 5 blocks. 40 MB: of 640, and more blocks than
 * one map of 128 can list. */
TEST(test_large_directories)
{
	static const size_t sizes[] = {300 << 10, 40 << 20};

	for (size_t i = 0; i < 2; i++) {
		struct made_pdb pdb = made_small(512);

		made_fill(&pdb.streams[0].content, sizes[i]);
		made_finish(&pdb);
		check_identity(&pdb);
		made_free(&pdb);
	}
}

/* What goes wrong with a file of these bytes; "" for nothing. */
static const char *detail_of(const void *bytes, size_t len, struct err *err)
{
	struct pdb_identity identity = {.age = 99};
	int rc;

	made_write(path, bytes, len);
	*err = (struct err){0};
	rc = pdb_read_identity(path, &identity, err);
	if (!rc)
		return "";
	assert_int_equal(rc, -ERR_TARGET);
	assert_int_equal(identity.age, 99);
	assert_string_equal(err->place, path);
	return err->detail;
}

TEST(test_a_file_that_is_cut_says_so)
{
	struct made_pdb pdb = made_small(4096);
	struct err err;

	made_fill(&pdb.streams[MADE_SYMBOLS].content, 20000);
	made_finish(&pdb);
	assert_string_equal(detail_of(pdb.file.bytes, pdb.file.len, &err), "");
	for (size_t len = 4096; len < pdb.file.len; len += 4096)
		assert_string_equal(detail_of(pdb.file.bytes, len, &err), "the PDB is cut short");
	assert_string_equal(
		detail_of(pdb.file.bytes, pdb.file.len - 1, &err), "the PDB is cut short");
	for (size_t len = 32; len < 60; len++)
		assert_string_equal(detail_of(pdb.file.bytes, len, &err), "the PDB is cut short");
	for (size_t len = 0; len < 32; len++)
		assert_string_equal(detail_of(pdb.file.bytes, len, &err), "it is not a PDB file");
	made_free(&pdb);
}

TEST(test_what_is_no_such_file_is_refused)
{
	static const char old[200] = "Microsoft C/C++ program database 2.00\r\n\032JG";
	struct made_pdb pdb = made_small(4096);
	struct pdb_identity identity;
	char nowhere[400];
	struct err err;

	assert_string_equal(detail_of(old, sizeof(old), &err), "it is not a PDB file");
	assert_string_equal(detail_of("BSJB", 4, &err), "it is not a PDB file");
	pdb.streams[MADE_DBI].content.len = 0;
	made_finish(&pdb);
	assert_string_equal(
		detail_of(pdb.file.bytes, pdb.file.len, &err), "the PDB belongs to no image");
	made_free(&pdb);
	pdb = made_small(4096);
	made_set(&pdb.streams[MADE_INFO].content, 0, 19970604, 4);
	made_finish(&pdb);
	assert_string_equal(detail_of(pdb.file.bytes, pdb.file.len, &err),
		"the PDB is of a kind without a GUID");
	made_free(&pdb);
	snprintf(nowhere, sizeof(nowhere), "%s/none.pdb", dir);
	assert_int_equal(pdb_read_identity(nowhere, &identity, &err), -ERR_OPEN);
	assert_string_equal(err.place, nowhere);
	assert_int_equal(pdb_read_identity(dir, &identity, &err), -ERR_OPEN);
}

/* A number in the file's head, or in the directory, that cannot be. */
TEST(test_numbers_that_cannot_be_are_refused)
{
	static const struct {
		int place; /* 0: the file, 1: the directory, 2: the map */
		size_t at;
		uint64_t value;
	} damages[] = {{0, 32, 0}, {0, 32, 1}, {0, 32, 256}, {0, 32, 4095}, {0, 32, 1 << 17},
		{0, 32, UINT32_MAX}, {0, 40, 0}, {0, 40, 1}, {0, 44, 0}, {0, 44, 4}, {0, 44, 16},
		{0, 44, UINT32_MAX}, {0, 52, 0}, {0, 52, 1000}, {0, 52, UINT32_MAX}, {1, 0, 0},
		{1, 0, UINT32_MAX}, {1, 0, 1000}, {1, 8, 27}, {1, 8, 1 << 30}, {1, 8, UINT32_MAX},
		{1, 8, UINT32_MAX - 1}, {1, 16, UINT32_MAX}, {1, 16, 63}, {1, 12, 1 << 20},
		{2, 0, 0}, {2, 0, 999}, {2, 0, UINT32_MAX}, {1, 36, 0}, {1, 36, 999},
		{1, 40, UINT32_MAX}};
	struct err err;

	for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
		struct made_pdb pdb = made_small(4096);
		const char *detail;

		made_finish(&pdb);
		made_set(&pdb.file,
			damages[i].at + (damages[i].place == 1	      ? pdb.directory_at :
						damages[i].place == 2 ? pdb.map_at :
									0),
			damages[i].value, 4);
		detail = detail_of(pdb.file.bytes, pdb.file.len, &err);
		if (!strstr(detail, "PDB is damaged") && !strstr(detail, "belongs to no image"))
			fail_msg("damage %zu: \"%s\"", i, detail);
		made_free(&pdb);
	}
}

/* The word behind a label in the output of a command. */
static bool word_of(const char *command, const char *label, char *word)
{
	FILE *pipe = popen(command, "r");
	char line[500];
	bool found = false;

	while (pipe && !found && fgets(line, sizeof(line), pipe)) {
		const char *at = strstr(line, label);

		found = at && sscanf(at + strlen(label), "%99s", word) == 1;
	}
	if (pipe)
		pclose(pipe);
	return found;
}

TEST(test_a_linkers_file_is_read_as_llvm_does)
{
	char command[2000], guid[100] = "", age[100] = "", plain[33] = "";
	struct pdb_identity identity;
	struct err err;
	size_t len = 0;

	snprintf(command, sizeof(command),
		"command -v clang-16 ld.lld-16 llvm-pdbutil-16 >%s/which && cd %s && echo 'int "
		"f(void) "
		"{ return 1; }' >f.c && clang-16 --target=x86_64-w64-mingw32 -g -gcodeview -shared "
		"-nostdlib -fuse-ld=lld-16 -Wl,--pdb=a.pdb,-e,f f.c -o f.dll",
		dir, dir);
	if (system(command) != 0) {
		print_message("# no clang-16, lld-16 and llvm-16 here\n");
		skip();
	}
	snprintf(command, sizeof(command), "llvm-pdbutil-16 dump --summary %s", path);
	assert_true(word_of(command, "GUID: {", guid) && word_of(command, "Age: ", age));
	for (const char *c = guid; *c && *c != '}'; c++) {
		if (*c != '-')
			plain[len++] = *c;
	}
	assert_int_equal(pdb_read_identity(path, &identity, &err), 0);
	assert_string_equal(identity.guid, plain);
	snprintf(guid, sizeof(guid), "%" PRIu32, identity.age);
	assert_string_equal(guid, age);
}

GROUP(setup, clean)
