/* Scene for the tests of the finder: a folder with a Wine prefix, generated images and PDBs, one
 * module of a dump, and the messages to the listener. The module is C:\App\app.exe with time stamp
 * 5F3A0001, size 3000, GUID MADE_GUID and age 3. */
#ifndef TESTS_UNIT_FINDER_SCENE_H
#define TESTS_UNIT_FINDER_SCENE_H

#include "tests/unit/pdb_made.h"

#include "symbolize/files/module_files.h"

#define SCENE_STAMP 0x5f3a0001u
#define SCENE_SIZE 0x3000u
#define SCENE_KEY MADE_GUID "3" /* key of the PDB in a symbol store */
#define SCENE_IMAGE_KEY "5F3A00013000"
#define DRIVE_C "prefix/dosdevices/c:/"
#define IMAGE DRIVE_C "App/app.exe"
#define PDB DRIVE_C "App/app.pdb" /* next to the module */
#define OUT_PDB DRIVE_C "Out/app.pdb" /* at the path recorded in the image */

static struct symbol_options options;
static struct module module;
static struct module_files files;
static struct buf told; /* messages to the listener, one per line */
static size_t told_count;

/* Contents of an image. The defaults match the module. */
struct image_plan {
	uint32_t timestamp, size, checksum, age;
	unsigned char guid_0; /* first byte of the image's GUID; it is 0 in MADE_GUID */
	const char *pdb; /* NULL: no CodeView record */
	const char *section; /* section name stored in the header, or NULL */
	const char *long_name; /* section name stored at the start of the string table, or NULL */
};

static inline struct image_plan scene_plan(void)
{
	return (struct image_plan){
		.timestamp = SCENE_STAMP, .size = SCENE_SIZE, .age = 3, .pdb = "C:\\Out\\app.pdb"};
}

static inline void scene_path(char *path, size_t size, const char *name)
{
	assert_true((size_t)snprintf(path, size, "%s/%s", dir, name) < size);
}

/* Copies `words`, replacing each %s with dir. */
static inline void scene_words(char *text, size_t size, const char *words)
{
	size_t len = 0;

	while (*words) {
		const char *piece = !strncmp(words, "%s", 2) ? dir : words;
		size_t part = piece == dir ? strlen(dir) : 1;

		assert_true(len + part < size);
		memcpy(text + len, piece, part);
		len += part;
		words += piece == dir ? 2 : 1;
	}
	text[len] = '\0';
}

static inline void scene_folders(const char *name)
{
	char path[1000];

	scene_path(path, sizeof(path), name);
	for (char *at = path + strlen(dir) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		(void)mkdir(path, 0755);
		*at = '/';
	}
}

static inline void scene_write(const char *name, const void *bytes, size_t len)
{
	char path[1000];

	scene_folders(name);
	scene_path(path, sizeof(path), name);
	file_write(path, bytes, len);
}

/* Makes an image with at most one section. The debug directory is at 200, the CodeView record at
 * 240, the string table at 800. */
static inline struct made_bytes scene_image_bytes(const struct image_plan *plan)
{
	struct made_bytes file = {0}, record = {0};

	made_fill(&file, 0x900);
	made_pe(&file, plan->section != NULL, plan->size);
	made_set(&file, MADE_PE + 8, plan->timestamp, 4);
	made_set(&file, MADE_PE + 12, plan->long_name ? 0x800 - 18 * 5 : 0, 4);
	made_set(&file, MADE_PE + 16, plan->long_name ? 5 : 0, 4);
	made_set(&file, MADE_OPTIONAL + 64, plan->checksum, 4);
	if (plan->section)
		made_image_section(&file, 0, plan->section, 0x1000, 0, 0);
	if (plan->long_name) {
		made_set(&file, 0x800, 0x100, 4);
		memcpy(file.bytes + 0x804, plan->long_name, strlen(plan->long_name) + 1);
	}
	if (!plan->pdb)
		return file;
	made_add(&record, "RSDS", 4); /* CodeView record: GUID, age, name */
	made_number(&record, plan->guid_0, 1);
	for (unsigned i = 1; i < 16; i++)
		made_number(&record, i, 1);
	made_number(&record, plan->age, 4);
	made_add(&record, plan->pdb, strlen(plan->pdb) + 1);
	assert_true(record.len <= 0x900 - 0x240);
	memcpy(file.bytes + 0x240, record.bytes, record.len);
	made_set(&file, MADE_DIRECTORIES + 6 * 8, 0x200, 4);
	made_set(&file, MADE_DIRECTORIES + 6 * 8 + 4, 28, 4);
	made_set(&file, 0x200 + 12, 2, 4);
	made_set(&file, 0x200 + 16, record.len, 4);
	made_set(&file, 0x200 + 20, 0x240, 4);
	free(record.bytes);
	return file;
}

static inline void scene_image(const char *name, const struct image_plan *plan)
{
	struct image_plan usual = scene_plan();
	struct made_bytes file = scene_image_bytes(plan ? plan : &usual);

	scene_write(name, file.bytes, file.len);
	free(file.bytes);
}

static inline void scene_pdb(const char *name, unsigned char guid_0, uint32_t age)
{
	struct made_pdb pdb = {.block_bytes = 512};

	made_info(&pdb, 99);
	made_set(&pdb.streams[MADE_INFO].content, 12, guid_0, 1);
	pdb.streams[2].is_nil = true;
	made_dbi(&pdb, age, 0x8664, 100);
	made_finish(&pdb);
	scene_write(name, pdb.file.bytes, pdb.file.len);
	made_free(&pdb);
}

static inline void scene_listen(void *ctx, const char *sentence)
{
	assert_ptr_equal(ctx, &told);
	assert_null(strchr(sentence, '\n'));
	buf_printf(&told, "%s\n", sentence);
	told_count++;
}

static inline int scene_begin(void **state)
{
	char path[400];

	if (scratch_begin(state))
		return -1;
	scene_path(path, sizeof(path), "prefix");
	setenv("WINEPREFIX", path, 1);
	unsetenv("_NT_SYMBOL_PATH");
	scene_folders("prefix/dosdevices/x");
	scene_folders("prefix/drive_c/App/x");
	scene_path(path, sizeof(path), "prefix/dosdevices/c:");
	if (symlink("../drive_c", path))
		return -1;
	options = (struct symbol_options){.listener = {.ctx = &told, .warn = scene_listen}};
	module = (struct module){.base = 0x10000,
		.size_bytes = SCENE_SIZE,
		.path = "C:\\App\\app.exe",
		.has_identity = true,
		.timestamp = SCENE_STAMP,
		.pdb = "C:\\Out\\app.pdb",
		.pdb_guid = MADE_GUID,
		.pdb_age = 3};
	files = (struct module_files){0};
	buf_init(&told);
	told_count = 0;
	return 0;
}

static inline int scene_end(void **state)
{
	module_files_release(&files);
	buf_release(&told);
	return scratch_end(state);
}

static inline void scene_find(void)
{
	struct err err;
	struct finder *finder = finder_new(&options, &err);

	assert_non_null(finder);
	module_files_release(&files);
	buf_clear(&told);
	told_count = 0;
	finder_find(finder, &module, &files);
	finder_free(finder);
}

/* Checks that `file` is `name` below dir, or that no file was found if name is NULL. */
static inline void check_file(const char *file, const char *name)
{
	char path[1000];

	if (!name) {
		assert_null(file);
		return;
	}
	scene_path(path, sizeof(path), name);
	assert_non_null(file);
	assert_string_equal(file, path);
}

static inline void check_files(const char *image, const char *pdb)
{
	check_file(files.image, image);
	check_file(files.pdb, pdb);
	assert_int_equal(files.pe != NULL, image != NULL);
}

static inline void check_found(const char *image, const char *pdb)
{
	scene_find();
	check_files(image, pdb);
}

/* Sets the symbol path, replacing each %s with dir. */
static inline void use_path(const char *path)
{
	static char text[2000];

	scene_words(text, sizeof(text), path);
	options.symbol_path = text;
}

/* Sets one map, which replaces `from` with dir/sub. */
static inline void use_map(const char *from, const char *sub)
{
	static char text[700];
	static const char *map = text;

	assert_true(
		(size_t)snprintf(text, sizeof(text), "%s=%s/%s", from, dir, sub) < sizeof(text));
	options.maps = &map;
	options.map_count = 1;
}

static inline const char *scene_reason(void)
{
	return files.reason.len ? files.reason.data : "";
}

/* Checks that the reason contains `words`, with dir for each %s. */
static inline void check_reason(const char *expected)
{
	char words[1500];

	scene_words(words, sizeof(words), expected);
	if (!strstr(scene_reason(), words))
		fail_msg("\"%s\" is not in \"%s\"", words, scene_reason());
}

static inline void check_told(const char *expected)
{
	char words[1500];

	scene_words(words, sizeof(words), expected);
	if (!told.len || !strstr(told.data, words))
		fail_msg("\"%s\" is not in \"%s\"", words, told.len ? told.data : "");
}

#endif
