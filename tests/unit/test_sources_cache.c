/* Which names are remembered from one run to the next, and by what. */
#include "tests/unit/t.h"

#include "tests/unit/test_sources.h"

/* ---------------------------------------------------------------- what is remembered */

/* Asks for one address in a symbolizer of its own; how many questions the backends got. */
static size_t questions(const struct symbol_options *options, uint32_t rva)
{
	struct symbolizer *symbolizer = start(options);

	fakes[0].asked_count = fakes[1].asked_count = 0;
	ask_one(symbolizer, rva);
	symbolizer_free(symbolizer);
	return fakes[0].asked_count + fakes[1].asked_count;
}

#undef TEST_AROUND
#define TEST_AROUND begin, end

TEST(test_names_with_lines_need_no_files_the_second_time)
{
	struct symbolizer *symbolizer;
	struct symbol_status story;
	struct err err;

	fakes[0].knows = lines_a;
	assert_int_equal(questions(NULL, 8), 1);
	find_count = 0;
	assert_int_equal(questions(NULL, 8), 0);
	assert_int_equal(find_count, 0);
	fakes[0].knows = NULL;
	symbolizer = start(NULL);
	check(ask_one(symbolizer, 8), "a", 9, 3);
	assert_int_equal(symbolizer_story(symbolizer, &app, &story, &err), 0);
	assert_string_equal(story.by, "cache");
	symbolizer_free(symbolizer);
	assert_int_equal(questions(&no_cache, 8), 2);
}

TEST(test_poor_names_are_remembered_with_their_files)
{
	struct symbolizer *symbolizer;

	table_names[4] = "table";
	assert_int_equal(questions(NULL, 8), 2);
	assert_int_equal(questions(NULL, 2), 2); /* no name at all */
	table_names[4] = NULL;
	assert_int_equal(questions(NULL, 8), 0);
	assert_int_equal(questions(NULL, 2), 0);
	assert_true(find_count >= 4);
	symbolizer = start(NULL);
	check(ask_one(symbolizer, 8), "table", 5, 0);
	assert_int_equal(ask_one(symbolizer, 2).count, 0);
	symbolizer_free(symbolizer);
}

TEST(test_what_may_be_wrong_or_poorer_is_not_remembered)
{
	table_names[4] = "table";
	fakes[1].is_dead = true;
	assert_int_equal(questions(NULL, 8), 2);
	assert_int_equal(questions(NULL, 8), 2); /* another time it may answer */
	fakes[1].is_dead = false;
	fakes[0].knows = lines_a;
	is_mismatch = true;
	assert_int_equal(questions(NULL, 8), 1);
	assert_int_equal(questions(NULL, 8), 1);
}

/* Files of one size at one path may be two builds. */
TEST(test_files_that_nothing_tells_apart_are_asked_again)
{
	table_names[4] = "table";
	is_nameless = true;
	assert_int_equal(questions(NULL, 8), 2);
	assert_int_equal(questions(NULL, 8), 2);
}

/* A GUID of zeros is none, as in images that were linked without one. */
TEST(test_a_dump_that_tells_no_build_is_looked_up_again)
{
	struct module old = app;

	fakes[0].knows = lines_a;
	is_nameless = true;
	app.timestamp = app.checksum = 0;
	app.pdb_guid = "00000000000000000000000000000000";
	assert_int_equal(questions(NULL, 8), 1);
	assert_int_equal(questions(NULL, 8), 1);
	app = old;
}

/* Whoever wrote a dump chose what it says of the build, and the paths at which its names were found. */
TEST(test_a_dump_with_other_paths_has_its_own_names)
{
	struct module old = app;

	fakes[0].knows = lines_a;
	app.pdb = "app.pdb";
	assert_int_equal(questions(NULL, 8), 1);
	app.path = "Z:\\stranger\\app.exe";
	assert_int_equal(questions(NULL, 8), 1);
	app.path = "c:\\APP.exe"; /* another file where case counts */
	assert_int_equal(questions(NULL, 8), 1);
	app.path = old.path;
	app.pdb = "Z:\\stranger\\app.pdb";
	assert_int_equal(questions(NULL, 8), 1);
	app.pdb = NULL;
	assert_int_equal(questions(NULL, 8), 1);
	/* Where one text ends does not make two of them the same. */
	app.path = "C:\\app.exe app.pdb";
	app.pdb = "x";
	assert_int_equal(questions(NULL, 8), 1);
	app.path = "C:\\app.exe";
	app.pdb = "app.pdb x";
	assert_int_equal(questions(NULL, 8), 1);
	app.pdb = "app.pdb";
	assert_int_equal(questions(NULL, 8), 0);
	app = old;
}

TEST(test_nor_do_two_dumps_of_one_run_share_them)
{
	struct symbolizer *symbolizer = start(NULL);
	struct module other = app;
	struct symbol_query queries[] = {
		{.addr = BASE + 9, .module = &app}, {.addr = BASE + 9, .module = &other}};
	struct err err;

	other.pdb = "Z:\\stranger\\app.pdb";
	assert_int_equal(symbolizer_resolve(symbolizer, queries, 2, &err), 0);
	assert_int_equal(find_count, 2);
	symbolizer_free(symbolizer);
}

/* An old llvm-symbolizer has to leave lines out that a new one knows. */
TEST(test_what_lacks_some_lines_is_asked_again)
{
	fakes[0].knows = lines_a;
	has_bare_inline = true;
	assert_int_equal(questions(NULL, 8), 1);
	assert_int_equal(questions(NULL, 8), 1);
	has_bare_inline = false;
	assert_int_equal(questions(NULL, 8), 1);
	assert_int_equal(questions(NULL, 8), 0);
}

TEST(test_another_build_or_form_is_another_name)
{
	const struct symbol_options raw = {.no_demangle = true};
	uint32_t timestamp = app.timestamp;

	fakes[0].knows = lines_a;
	assert_int_equal(questions(NULL, 8), 1);
	assert_int_equal(questions(&raw, 8), 1);
	app.timestamp++;
	assert_int_equal(questions(NULL, 8), 1);
	app.timestamp = timestamp;
	assert_int_equal(questions(NULL, 8), 0);
	assert_int_equal(questions(&raw, 8), 0);
}
