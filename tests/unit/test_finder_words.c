#include "tests/unit/finder_scene.h"

/* ---------------------------------------------------------------- --allow-mismatch */

#undef TEST_AROUND
#define TEST_AROUND scene_begin, scene_end

TEST(test_files_of_another_build_are_used_when_asked_for)
{
	struct image_plan plan = scene_plan();

	options.allow_mismatch = true;
	plan.timestamp = 1;
	plan.guid_0 = 0xbb;
	scene_image(IMAGE, &plan);
	scene_pdb(PDB, 0xbb, 3); /* the PDB that the image names */
	check_found(IMAGE, PDB);
	assert_true(files.is_mismatch);
	check_reason("is a different build: time stamp 5F3A0001 in the dump, 00000001 in the file, "
		     "and used anyway");
	check_told("; it is used anyway (--allow-mismatch)");
	assert_int_equal(told_count, 1);
	/* A PDB of another build is better than no PDB. */
	scene_pdb(PDB, 0xcc, 3);
	check_found(IMAGE, PDB);
	assert_true(files.is_mismatch);
	check_told("app.exe: %s/" PDB " is a different build: GUID and age 030201BB");
	/* Finds a matching image and a PDB of another build. */
	scene_image(IMAGE, NULL);
	check_found(IMAGE, PDB);
	assert_true(files.is_mismatch);
	check_told(
		PDB " is a different build: GUID and age " MADE_GUID " 3 in the image, 030201CC");
	assert_int_equal(told_count, 1);
	assert_string_equal(files.guid, MADE_GUID);
	/* Images of another build are ignored if one image matches. */
	use_map("C:\\App", DRIVE_C "Other");
	scene_image(DRIVE_C "Other/app.exe", &plan);
	check_found(IMAGE, PDB);
	assert_int_equal(told_count, 1);
	options.map_count = 0;
	/* A matching PDB is used normally. */
	scene_pdb(PDB, 0, 3);
	check_found(IMAGE, PDB);
	assert_false(files.is_mismatch);
	assert_int_equal(told_count, 0);
}

TEST(test_mismatch_is_reported_once)
{
	struct image_plan plan = scene_plan();
	struct err err;
	struct finder *finder = finder_new(&options, &err);

	assert_non_null(finder);
	plan.timestamp = 1;
	scene_image(IMAGE, &plan);
	for (int i = 0; i < 3; i++) {
		struct module_files more = {0};

		finder_find(finder, &module, &more);
		assert_non_null(strstr(more.reason.data, "is a different build"));
		module_files_release(&more);
	}
	assert_int_equal(told_count, 1);
	finder_free(finder);
}

/* Wine's files differ from the Windows files in the dump. The finder mentions this only in the
 * reason. */
TEST(test_system_files_of_another_system_are_no_news)
{
	struct image_plan plan = scene_plan();

	plan.timestamp = 1;
	module.path = "C:\\WINDOWS\\system32\\test.dll";
	scene_image(DRIVE_C "windows/system32/test.dll", &plan);
	check_found(NULL, NULL);
	check_reason("test.dll is a different build: time stamp");
	assert_int_equal(told_count, 0);
}

/* ---------------------------------------------------------------- reasons */

TEST(test_reasons_name_what_is_missing)
{
	struct image_plan plan = scene_plan();

	scene_find();
	assert_string_equal(scene_reason(),
		"no file C:\\App\\app.exe here; app.pdb (" MADE_GUID
		" 3) was not found: it is not at the path in the dump, and there is no symbol path "
		"(-y)");
	scene_image(IMAGE, NULL);
	options.symbol_path = "C:\\App";
	scene_find();
	assert_string_equal(scene_reason(),
		"app.pdb (" MADE_GUID " 3) was not found: it is not beside the image nor in "
		"the symbol path");
	assert_int_equal(told_count, 0);
	plan.pdb = "";
	scene_image(IMAGE, &plan);
	scene_find();
	assert_string_equal(scene_reason(), "contains no debug information (stripped?)");
	plan.section = ".text";
	plan.long_name = ".text$a";
	scene_image(IMAGE, &plan);
	scene_find();
	assert_string_equal(
		scene_reason(), "contains no debug information, only a table of symbols");
}

TEST(test_damaged_files_are_named)
{
	scene_write(IMAGE, "MZ", 2);
	scene_write(PDB, "Microsoft C/C++ MSF 7.00\r\n\032DS\0\0\0", 32);
	check_found(NULL, NULL);
	check_reason("%s/" IMAGE " is not a PE image, or is damaged");
	check_reason("%s/" PDB " cannot be used: the PDB is cut short");
	assert_int_equal(told_count, 2);
	check_told("app.exe: %s/" PDB " cannot be used: the PDB is cut short\n");
	assert_null(strstr(scene_reason(), "not found"));
}

TEST(test_words_are_harmless)
{
	module.path = "C:\\App\\a\x1b[2Jb\n\xc2\x9b.exe";
	module.pdb = "p\x07q.pdb";
	scene_find();
	check_reason("no file C:\\App\\a?[2Jb???.exe here; p?q.pdb (");
	scene_write(DRIVE_C "App/a\x1b[2Jb\n\xc2\x9b.exe", "x", 1);
	scene_find();
	check_reason("/App/a?[2Jb???.exe is not a PE image");
}

TEST(test_paths_of_any_length)
{
	enum { LEN = 60000 };
	char *path = malloc(LEN + 1);

	assert_non_null(path);
	for (int i = 0; i < LEN; i++)
		path[i] = i % 2 ? '\\' : '.';
	path[LEN] = '\0';
	memcpy(path, "C:\\", 3);
	module.path = path;
	module.pdb = path;
	check_found(NULL, NULL);
	assert_true(files.reason.len < 2000);
	memset(path + 3, 'a', LEN - 3);
	check_found(NULL, NULL);
	assert_true(files.reason.len < 2000);
	free(path);
}

/* ---------------------------------------------------------------- DWARF */

static bool has_dwarf(const char *section, const char *long_name)
{
	struct image_plan plan = scene_plan();

	plan.section = section;
	plan.long_name = long_name;
	scene_image(IMAGE, &plan);
	scene_find();
	check_file(files.image, IMAGE);
	return files.has_dwarf;
}

TEST(test_dwarf_is_recognized_by_long_section_names)
{
	assert_true(has_dwarf("/4", ".debug_info"));
	assert_true(has_dwarf("/0000004", ".debug_info"));
	assert_true(has_dwarf("/4", ".zdebug_info"));
	assert_false(has_dwarf("/4", ".debug_line"));
	assert_false(has_dwarf("/4", ".debug_info.x"));
	assert_false(has_dwarf("/4", ".zdebug_infox"));
	assert_false(has_dwarf("/5", ".debug_info"));
	assert_false(has_dwarf("/9999999", ".debug_info"));
	assert_false(has_dwarf("/4x", ".debug_info"));
	assert_false(has_dwarf("/4", NULL));
	assert_false(has_dwarf(".text", ".debug_info"));
	assert_false(has_dwarf(".debug_i", NULL));
	assert_false(has_dwarf(NULL, NULL));
}

/* ---------------------------------------------------------------- paths that are never opened */

TEST(test_paths_to_other_machines_are_not_opened)
{
	static const char *const paths[] = {"\\\\host\\share\\app.exe", "//host/share/app.exe",
		"\\\\?\\UNC\\host\\share\\app.exe", "\\\\.\\pipe\\app.exe",
		"\\Device\\Mup\\host\\app.exe", "\\??\\UNC\\host\\share\\app.exe"};

	/* These files exist on this machine, so the test fails if the finder treats the paths as
	 * local. */
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		module.path = paths[i];
		check_found(NULL, NULL);
		assert_memory_equal(scene_reason(), paths[i], strlen(paths[i]));
		assert_non_null(strstr(scene_reason(), " is on another machine or a device"));
	}
}

TEST(test_pipes_and_loops_are_no_files)
{
	char path[600];

	scene_path(path, sizeof(path), IMAGE);
	assert_int_equal(mkfifo(path, 0600), 0); /* opening it would block forever */
	scene_path(path, sizeof(path), PDB);
	assert_int_equal(symlink("app.pdb", path), 0);
	scene_path(path, sizeof(path), "sym");
	assert_int_equal(symlink("sym", path), 0);
	scene_folders("other/x");
	scene_path(path, sizeof(path), "other/App.pdb");
	assert_int_equal(mkfifo(path, 0600), 0);
	options.symbol_path = "";
	check_found(NULL, NULL);
	scene_path(path, sizeof(path), "other;srv*C:\\App\\app.exe;C:\\App\\app.pdb");
	options.symbol_path = path;
	check_found(NULL, NULL);
	check_reason("no file C:\\App\\app.exe here");
}

TEST(test_files_that_cannot_be_opened_are_named)
{
	char path[600];

	scene_image(IMAGE, NULL);
	scene_path(path, sizeof(path), IMAGE);
	assert_int_equal(chmod(path, 0), 0);
	scene_find();
	if (!access(path, R_OK)) /* root can read everything */
		check_file(files.image, IMAGE);
	else
		check_reason("%s/" IMAGE " cannot be opened (Permission denied)");
}

/* ---------------------------------------------------------------- large inputs */

TEST(test_many_maps_and_elements)
{
	enum { MAPS = 5000, ELEMENTS = 20000, MODULES = 300 };
	static const char *maps[MAPS];
	struct finder *finder;
	struct buf text;

	for (int i = 0; i < MAPS; i++)
		maps[i] = i % 2 ? "C:\\App=C:\\nowhere" : "D:\\x=/src";
	buf_init(&text);
	for (int i = 0; i < ELEMENTS; i++)
		buf_printf(&text, "srv*C:\\none%d*C:\\App;", i);
	options.maps = maps;
	options.map_count = MAPS;
	options.symbol_path = text.data;
	scene_pdb(DRIVE_C "App/app.pdb/" SCENE_KEY "/app.pdb", 0, 3);
	finder = finder_new(&options, NULL);
	for (int i = 0; i < MODULES; i++) {
		module_files_release(&files);
		finder_find(finder, &module, &files);
		check_files(NULL, DRIVE_C "App/app.pdb/" SCENE_KEY "/app.pdb");
	}
	finder_free(finder);
	buf_release(&text);
}

static bool cancel(void *ctx)
{
	(void)ctx;
	return true;
}

TEST(test_long_search_can_be_cancelled)
{
	enum { FOLDERS = 300 };
	struct buf text;

	buf_init(&text);
	for (int i = 0; i < FOLDERS; i++) {
		char name[40];

		snprintf(name, sizeof(name), "f%d/x", i);
		scene_folders(name);
		buf_printf(&text, "%s/f%d;", dir, i);
	}
	scene_pdb("f299/app.pdb", 0, 3);
	options.symbol_path = text.data;
	check_found(NULL, "f299/app.pdb");
	options.listener.is_cancelled = cancel;
	check_found(NULL, NULL);
	buf_release(&text);
}

/* If names differ only in case, the finder uses the first in byte order. It reads each folder
 * once. */
TEST(test_names_of_folders_are_kept)
{
	struct err err;
	struct finder *finder = finder_new(&options, &err);

	scene_image(DRIVE_C "Sub/aPP.exe", NULL);
	scene_image(DRIVE_C "Sub/APP.EXe", NULL);
	module.path = "C:\\sub\\app.EXE";
	finder_find(finder, &module, &files);
	check_file(files.image, DRIVE_C "Sub/APP.EXe");
	module_files_release(&files);
	scene_image(DRIVE_C "Sub/Later.exe", NULL);
	module.path = "C:\\Sub\\later.exe";
	finder_find(finder, &module, &files);
	check_file(files.image, NULL);
	finder_free(finder);
	scene_find();
	check_file(files.image, DRIVE_C "Sub/Later.exe");
}
