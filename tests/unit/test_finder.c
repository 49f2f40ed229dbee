#include "tests/unit/finder_scene.h"

#undef TEST_AROUND
#define TEST_AROUND scene_begin, scene_end

TEST(test_path_in_dump_and_one_in_image)
{
	scene_image(IMAGE, NULL);
	scene_pdb(OUT_PDB, 0, 3);
	check_found(IMAGE, OUT_PDB);
	assert_string_equal(files.guid, MADE_GUID);
	assert_int_equal(files.age, 3);
	assert_false(files.is_mismatch);
	assert_string_equal(scene_reason(), "");
	assert_int_equal(told_count, 0);
}

TEST(test_path_is_found_in_any_case)
{
	scene_image(DRIVE_C "App/Sub Folder/aPP.ExE", NULL);
	scene_pdb(DRIVE_C "App/SUB folder/APP.pdb", 0, 3); /* another folder than above */
	scene_pdb(DRIVE_C "App/Sub Folder/App.PDB", 0, 3);
	module.path = "c:/app/Sub Folder\\APP.EXE";
	check_found(DRIVE_C "App/Sub Folder/aPP.ExE", DRIVE_C "App/Sub Folder/App.PDB");
	module.path = "\\\\?\\C:\\App\\Sub Folder\\aPP.ExE";
	scene_find();
	check_file(files.image, DRIVE_C "App/Sub Folder/aPP.ExE");
	module.path = "\\??\\C:\\App\\.\\Sub Folder\\\\app.exe";
	scene_find();
	check_file(files.image, DRIVE_C "App/Sub Folder/aPP.ExE");
}

TEST(test_first_map_that_leads_to_file_wins)
{
	static const char *const words[] = {
		"C:\\App=%s/nowhere", "c:/APP=%s/first", "C:=%s/second"};
	const char *maps[3];
	char text[3][700];

	for (size_t i = 0; i < 3; i++) {
		scene_words(text[i], sizeof(text[i]), words[i]);
		maps[i] = text[i];
	}
	options.maps = maps;
	options.map_count = 3;
	scene_image(IMAGE, NULL);
	scene_image("second/App/app.exe", NULL);
	scene_pdb("second/Out/app.pdb", 0, 3);
	scene_pdb(OUT_PDB, 0, 3);
	check_found("second/App/app.exe", "second/Out/app.pdb");
	scene_image("first/App.EXE", NULL);
	check_found("first/App.EXE", "second/Out/app.pdb");
	/* A map to a file of another build is skipped. */
	scene_image("first/App.EXE", &(struct image_plan){.timestamp = 1, .size = SCENE_SIZE});
	check_found("second/App/app.exe", "second/Out/app.pdb");
	assert_int_equal(told_count, 0);
}

TEST(test_map_may_be_of_file_and_lead_to_drive)
{
	static const char *maps[] = {
		"C:\\App\\app.exe=C:\\kept\\old.exe", "\\\\host\\share=C:\\kept", "D:\\=C:\\a=b"};

	options.maps = maps;
	options.map_count = 3;
	scene_image(DRIVE_C "kept/old.exe", NULL);
	check_found(DRIVE_C "kept/old.exe", NULL);
	module.path = "\\\\HOST\\share\\old.exe";
	check_found(DRIVE_C "kept/old.exe", NULL);
	scene_image(DRIVE_C "a=b/new.exe", NULL);
	module.path = "D:\\new.exe"; /* the first "=" separates a map's parts */
	check_found(DRIVE_C "a=b/new.exe", NULL);
}

TEST(test_pdb_beside_image)
{
	struct image_plan plan = scene_plan();

	plan.pdb = "app.pdb";
	scene_image(IMAGE, &plan);
	scene_pdb(DRIVE_C "App/App.pdb", 0, 3);
	check_found(IMAGE, DRIVE_C "App/App.pdb");
	/* A PDB of another build at the path recorded in the image is ignored. */
	scene_image(IMAGE, NULL);
	scene_pdb(OUT_PDB, 1, 3);
	check_found(IMAGE, DRIVE_C "App/App.pdb");
	assert_int_equal(told_count, 0);
	assert_string_equal(scene_reason(), "");
}

TEST(test_pdb_without_its_image)
{
	scene_pdb(PDB, 0, 3);
	check_found(NULL, PDB);
	assert_string_equal(files.guid, MADE_GUID);
	assert_int_equal(files.age, 3);
	check_reason("no file C:\\App\\app.exe here");
	scene_pdb(OUT_PDB, 0, 3);
	check_found(NULL, OUT_PDB);
	module.pdb_guid = "0302010005040706"; /* an invalid GUID */
	check_found(NULL, NULL);
	module.pdb_guid = "00000000000000000000000000000000"; /* a GUID of zeros is no identity */
	check_found(NULL, NULL);
	module.pdb_guid = "../../../../../../../../../../..";
	check_found(NULL, NULL);
}

TEST(test_right_pdb_beside_wrong_image)
{
	struct image_plan plan = scene_plan();

	plan.timestamp++;
	scene_image(IMAGE, &plan);
	scene_pdb(PDB, 0, 3);
	options.allow_mismatch = true;
	check_found(NULL, PDB);
	assert_false(files.is_mismatch);
}

TEST(test_images_of_another_build_are_reported_with_both_values)
{
	struct image_plan plans[6];
	static const char *const how[] = {"time stamp 5F3A0001 in the dump, 60112233 in the file",
		"size 3000 in the dump, 5000 in the file",
		"GUID and age " MADE_GUID " 3 in the dump, 030201BB05040706"
		"08090A0B0C0D0E0F 3 in the file",
		"GUID and age " MADE_GUID " 3 in the dump, " MADE_GUID " A in the file",
		"GUID " MADE_GUID " in the dump, none in the file",
		"checksum 00001234 in the dump, 0000ABCD in the file"};
	char words[600];

	for (size_t i = 0; i < 6; i++)
		plans[i] = scene_plan();
	plans[0].timestamp = 0x60112233;
	plans[1].size = 0x5000;
	plans[2].guid_0 = 0xbb;
	plans[3].age = 10;
	plans[4].pdb = plans[5].pdb = NULL;
	plans[5].checksum = 0xabcd;
	for (size_t i = 0; i < 6; i++) {
		if (i == 5) { /* used if the GUID is unknown */
			module.pdb_guid = NULL;
			module.checksum = 0x1234;
		}
		scene_image(IMAGE, &plans[i]);
		check_found(NULL, NULL);
		snprintf(words, sizeof(words), "%%s/" IMAGE " is a different build: %s", how[i]);
		check_reason(words);
		snprintf(words, sizeof(words),
			"app.exe: %%s/" IMAGE
			" is a different build: %s; --allow-mismatch uses it anyway\n",
			how[i]);
		check_told(words);
		assert_int_equal(told_count, 1);
	}
}

/* UMDH's logs have no identity, and some dumps have an empty one. */
TEST(test_without_identity_size_and_name_decide)
{
	struct image_plan plan = scene_plan();

	plan.timestamp = 7;
	module.has_identity = false;
	scene_image(IMAGE, &plan);
	scene_pdb(PDB, 0, 3);
	check_found(IMAGE, PDB);
	check_reason("UMDH recorded no GUID: the file matches by name and size only");
	assert_int_equal(told_count, 0);
	module.has_identity = true;
	module.timestamp = 0;
	module.pdb_guid = NULL;
	module.pdb = NULL;
	check_found(IMAGE, PDB);
	check_reason("the dump does not record its build: the file matches by name and size only");
	module.size_bytes = 0x9000;
	check_found(NULL, NULL);
	check_told("is a different build: size 9000 in the dump, 3000 in the file");
	/* A GUID can replace a missing time stamp. */
	module.size_bytes = SCENE_SIZE;
	module.pdb_guid = MADE_GUID;
	module.pdb_age = 3;
	check_found(IMAGE, PDB);
	assert_string_equal(scene_reason(), "");
}

static void make_link(const char *name, const char *to)
{
	char path[1000];

	scene_path(path, sizeof(path), name);
	assert_int_equal(symlink(to, path), 0);
}

/* Sets `module.path` to `words`, replacing each %s with `dir`. Returns true if the finder finds the
 * module's image. */
static bool finds(const char *words)
{
	static char path[1500];

	scene_words(path, sizeof(path), words);
	module.path = path;
	scene_find();
	return files.image != NULL;
}

/* /proc/self/root shows all files of this machine again, and /net/HOST shows the files of another
 * machine. */
TEST(test_stranger_leads_to_no_other_machine_nor_what_system_makes_up)
{
	static const char away[] = "/proc/self/root";
	char up[64], deep[700];

	scene_image("own/app.exe", NULL);
	make_link("away", away);
	make_link("own/twice", "../away");
	for (size_t i = 0; i < sizeof(up) - 4; i += 3)
		memcpy(up + i, "../", 4);
	assert_true((size_t)snprintf(deep, sizeof(deep), "%s%s", up, away + 1) < sizeof(deep));
	make_link("deep", deep);
	assert_true(
		(size_t)snprintf(deep, sizeof(deep), "%s%s/own/app.exe", away, dir) < sizeof(deep));
	make_link("own/file.exe", deep);
	make_link("loop", "loop");
	make_link("inside", "own/./../own");
	assert_true(finds("%s/own/app.exe"));
	assert_true(finds("Z:%s/inside/app.exe"));
	assert_false(finds("/proc/self/root%s/own/app.exe"));
	check_reason("/proc/self/root%s/own/app.exe is on another machine or a device");
	assert_false(finds("/./proc/../PROC/self/root%s/own/app.exe"));
	assert_false(finds("Z:\\Proc\\self\\root%s\\own\\app.exe"));
	assert_false(finds("%s/away%s/own/app.exe"));
	assert_false(finds("%s/own/twice%s/own/app.exe"));
	assert_false(finds("%s/deep%s/own/app.exe"));
	assert_false(finds("%s/own/file.exe"));
	assert_false(finds("%s/loop/app.exe"));
	assert_false(finds("/net/host/share/app.exe"));
	check_reason("/net/host/share/app.exe is on another machine or a device");
}

TEST(test_nor_does_pdb_that_image_names)
{
	struct image_plan plan = scene_plan();
	char pdb[400];

	assert_true(
		(size_t)snprintf(pdb, sizeof(pdb), "/proc/self/root%s/made/app.pdb", dir) < 290);
	plan.pdb = pdb;
	scene_image(IMAGE, &plan);
	scene_pdb("made/app.pdb", 0, 3);
	make_link("prefix/drive_c/App/app.pdb", pdb);
	check_found(IMAGE, NULL);
}

/* The user's own paths may lie anywhere, but names from the dump remain restricted. */
TEST(test_user_may_lead_anywhere)
{
	static const char *map;
	char text[700];

	scene_image("own/app.exe", NULL);
	make_link("own/away", "/proc/self/root");
	scene_words(text, sizeof(text), "C:\\App=/proc/self/root%s/own");
	map = text;
	options.maps = &map;
	options.map_count = 1;
	assert_true(finds("C:\\App\\app.exe"));
	options.map_count = 0;
	use_path("/proc/self/root%s/own");
	assert_true(finds("C:\\App\\app.exe"));
	options.symbol_path = NULL;
	use_map("C:\\App", "own");
	assert_true(finds("C:\\App\\app.exe"));
	assert_false(finds("C:\\App\\away%s\\own\\app.exe"));
	assert_false(finds("C:\\App\\..\\own\\away%s\\own\\app.exe"));
}

TEST(test_no_local_files_limits_search_to_options)
{
	scene_image(IMAGE, NULL);
	scene_pdb(OUT_PDB, 0, 3);
	options.no_local_files = true;
	check_found(NULL, NULL);
	check_reason("C:\\App\\app.exe was not looked for (--no-local-files)");
	scene_image("named/app.exe", NULL);
	scene_pdb("named/app.pdb", 0, 3);
	use_path("%s/named");
	check_found("named/app.exe", "named/app.pdb");
	options.symbol_path = NULL;
	use_map("C:\\App", "named");
	check_found("named/app.exe", "named/app.pdb");
}
