#include "tests/unit/finder_scene.h"

#define STORED_PDB "sym/app.pdb/" SCENE_KEY "/app.pdb"
#define STORED_IMAGE "sym/app.exe/" SCENE_IMAGE_KEY "/app.exe"

static void check_at(const char *name, bool is_image)
{
	char path[1000];

	if (is_image)
		scene_image(name, NULL);
	else
		scene_pdb(name, 0, 3);
	check_found(is_image ? name : NULL, is_image ? NULL : name);
	scene_path(path, sizeof(path), name);
	assert_int_equal(unlink(path), 0);
	check_found(NULL, NULL);
}

#undef TEST_AROUND
#define TEST_AROUND scene_begin, scene_end

TEST(test_folders_as_dbghelp_searches_them)
{
	static const char *const pdbs[] = {"sym/app.pdb", "sym/App.PDB", "sym/symbols/pdb/app.pdb",
		"sym/Pdb/app.pdb",
		"sym/symbols/Exe/app.pdb", /* the folders of Microsoft's symbol packages */
		"sym/EXE/App.pdb"};
	static const char *const images[] = {
		"sym/app.exe", "sym/symbols/Exe/app.exe", "sym/EXE/APP.exe"};

	scene_folders("sym/x");
	use_path("%s/sym");
	for (size_t i = 0; i < sizeof(pdbs) / sizeof(*pdbs); i++)
		check_at(pdbs[i], false);
	for (size_t i = 0; i < sizeof(images) / sizeof(*images); i++)
		check_at(images[i], true);
	scene_pdb("sym/deep/app.pdb", 0, 3); /* only some subfolders are searched */
	check_found(NULL, NULL);
}

TEST(test_stores_of_two_and_three_tiers)
{
	static const char *const ways[] = {"srv*%s/sym*https://example.org", "cache*%s/sym",
		"SymSrv*symsrv.dll*%s/sym", "srv*%s/none*%s/sym", "%s/sym"};

	scene_folders("sym/x");
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		use_path(ways[i]);
		check_at(STORED_PDB, false);
		check_at("sym/ap/app.pdb/" SCENE_KEY "/app.pdb", false);
		check_at(STORED_IMAGE, true);
		check_at("sym/ap/app.exe/" SCENE_IMAGE_KEY "/app.exe", true);
	}
}

TEST(test_names_and_keys_in_any_case)
{
	scene_folders("sym/x");
	use_path("srv*%s/sym");
	module.pdb_guid = "0302010005040706"
			  "08090a0b0c0d0e0f";
	module.pdb_age = 0x1b;
	module.timestamp = 0xabc;
	module.size_bytes = 0x12ab000;
	scene_pdb("sym/App.pdb/0302010005040706"
		  "08090A0B0C0D0E0F1b/APP.PDB",
		0, 0x1b);
	scene_image("sym/aP/APP.EXE/00000ABC12ab000/app.exe",
		&(struct image_plan){
			.timestamp = 0xabc, .size = 0x12ab000, .age = 0x1b, .pdb = "app.pdb"});
	check_found("sym/aP/APP.EXE/00000ABC12ab000/app.exe", "sym/App.pdb/0302010005040706"
							      "08090A0B0C0D0E0F1b/APP.PDB");
	/* The age is hexadecimal; the time stamp always has eight digits. */
	assert_int_equal(files.age, 27);
	assert_string_equal(files.guid, MADE_GUID);
}

TEST(test_what_lies_in_store_must_fit_too)
{
	struct image_plan plan = scene_plan();

	use_path("srv*%s/sym");
	plan.timestamp++;
	scene_image(STORED_IMAGE, &plan);
	scene_pdb(STORED_PDB, 0, 4);
	check_found(NULL, NULL);
	check_told(
		"%s/sym/app.pdb/" SCENE_KEY "/app.pdb is a different build: GUID and age " MADE_GUID
		" 3 in the dump, " MADE_GUID " 4 in the file; --allow-mismatch");
	check_told("%s/sym/app.exe/" SCENE_IMAGE_KEY "/app.exe is a different build: time stamp");
}

TEST(test_elements_are_searched_in_order_after_dumps_path)
{
	scene_image("one/app.exe", NULL);
	scene_image("two/app.exe/" SCENE_IMAGE_KEY "/app.exe", NULL);
	scene_pdb("two/app.pdb/" SCENE_KEY "/app.pdb", 0, 3);
	scene_pdb("three/app.pdb", 0, 3);
	use_path("%s/one;srv*%s/two;%s/three");
	check_found("one/app.exe", "two/app.pdb/" SCENE_KEY "/app.pdb");
	scene_pdb("one/app.pdb", 1, 3); /* an image of another build is skipped */
	use_path("srv*%s/two;%s/one;%s/three");
	check_found("two/app.exe/" SCENE_IMAGE_KEY "/app.exe", "two/app.pdb/" SCENE_KEY "/app.pdb");
	use_path("%s/three;%s/one;srv*%s/two");
	check_found("one/app.exe", "three/app.pdb");
	assert_int_equal(told_count, 0);
	scene_image(IMAGE, NULL);
	scene_pdb(PDB, 0, 3);
	check_found(IMAGE, PDB);
}

TEST(test_environment_has_symbol_path_too)
{
	char path[400];

	scene_path(path, sizeof(path), "sym");
	setenv("_NT_SYMBOL_PATH", path, 1);
	scene_pdb("sym/app.pdb", 0, 3);
	check_found(NULL, "sym/app.pdb");
	options.symbol_path = ""; /* explicitly empty */
	check_found(NULL, NULL);
	/* Other programs share the variable: elements that the finder does not know are not
	 * errors. */
	options.symbol_path = NULL;
	snprintf(path, sizeof(path), "odd*thing;%s/sym", dir);
	setenv("_NT_SYMBOL_PATH", path, 1);
	check_found(NULL, "sym/app.pdb");
	check_told("_NT_SYMBOL_PATH: odd*thing is ignored");
	assert_int_equal(told_count, 1);
	unsetenv("_NT_SYMBOL_PATH");
}

TEST(test_windows_paths_go_through_prefix)
{
	scene_pdb(DRIVE_C "Symbols/app.pdb/" SCENE_KEY "/app.pdb", 0, 3);
	use_path("srv*c:\\symbols*https://example.org/x");
	check_found(NULL, DRIVE_C "Symbols/app.pdb/" SCENE_KEY "/app.pdb");
}

TEST(test_relative_folder_becomes_full_path)
{
	char old[1000];

	assert_non_null(getcwd(old, sizeof(old)));
	scene_pdb("here/-/app.pdb", 0, 3);
	scene_folders("here/x");
	assert_int_equal(chdir(dir), 0);
	use_path("here\\-");
	check_found(NULL, "here/-/app.pdb");
	/* A path to another machine, and one to another drive's root. */
	use_path("\\\\here\\-;\\here\\-");
	scene_find();
	assert_int_equal(chdir(old), 0);
	check_files(NULL, NULL);
}

TEST(test_packed_files_are_named_as_not_read)
{
	use_path("srv*%s/sym");
	scene_write("sym/app.pdb/" SCENE_KEY "/app.pd_", "SZDD", 4);
	scene_write("sym/app.exe/" SCENE_IMAGE_KEY "/file.ptr", "PATH:x", 6);
	check_found(NULL, NULL);
	check_reason("%s/sym/app.pdb/" SCENE_KEY "/app.pd_ is compressed: unpack it with expand");
	check_reason("%s/sym/app.exe/" SCENE_IMAGE_KEY
		     "/file.ptr only points to the file: copy the file here");
	check_told("app.exe: %s/sym/app.pdb/" SCENE_KEY "/app.pd_ is compressed");
	scene_write("folder/app.ex_", "SZDD", 4);
	use_path("%s/folder");
	scene_find();
	check_reason("%s/folder/app.ex_ is compressed: unpack it with expand");
	/* The finder sends no message if it finds the file elsewhere. */
	scene_image(IMAGE, NULL);
	scene_pdb(PDB, 0, 3);
	scene_find();
	assert_string_equal(scene_reason(), "");
	assert_int_equal(told_count, 0);
}

TEST(test_servers_are_named_as_not_asked_once)
{
	struct err err;
	struct finder *finder;
	struct module_files more = {0};

	use_path("%s/none;srv*%s/cache*https://example.org/symbols");
	finder = finder_new(&options, &err);
	assert_non_null(finder);
	assert_string_equal(finder_servers(finder), options.symbol_path);
	finder_find(finder, &module, &files);
	check_reason("symbol servers cannot be used here: https://example.org/symbols");
	check_told("symbol servers cannot be used here: https://example.org/symbols;");
	check_told("the symbol path names %s/none, which is not a folder here");
	assert_int_equal(told_count, 2); /* a cache may be created later */
	finder_find(finder, &module, &more);
	assert_int_equal(told_count, 2);
	module_files_release(&more);
	finder_free(finder);
	use_path("%s/none");
	finder = finder_new(&options, &err);
	assert_null(finder_servers(finder));
	finder_free(finder);
}

TEST(test_what_makes_no_sense_is_error)
{
	static const char *const bad[] = {"", "=", "C:\\build", "C:\\build=", "=/src"};
	struct err err;

	options.symbol_path = "C:\\a;what*is*this";
	assert_null(finder_new(&options, &err));
	assert_int_equal(err.code, ERR_USAGE);
	assert_string_equal(err.place, "what*is*this");
	options.symbol_path = NULL;
	options.map_count = 1;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		options.maps = &bad[i];
		assert_null(finder_new(&options, &err));
		assert_int_equal(err.code, ERR_USAGE);
		assert_string_equal(err.place, bad[i]);
	}
}
