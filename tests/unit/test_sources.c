/* Who is asked for a name, in which order, and who is believed. */
#include "tests/unit/t.h"

#include "tests/unit/test_sources.h"

/* ---------------------------------------------------------------- in turn */

static const struct symbol lines_b[RVA_MAX] = {
	[8] = {"wrong", 9, "b.c", 4}, [12] = {"b", 1, "b.c", 5}};

#undef TEST_AROUND
#define TEST_AROUND begin, end

TEST(test_the_next_is_asked_for_what_is_left)
{
	struct symbolizer *symbolizer = start(&no_cache);
	struct symbol_query queries[] = {{.addr = BASE + 13, .module = &app},
		{.addr = BASE + 9, .module = &app}, {.addr = BASE + 21, .module = &app},
		{.addr = BASE + 9, .module = &app}};
	struct symbol_status story;
	struct err err;

	fakes[0].knows = lines_a;
	fakes[1].knows = lines_b;
	assert_int_equal(symbolizer_resolve(symbolizer, queries, 4, &err), 0);
	check(queries[0].found, "b", 1, 5);
	check(queries[1].found, "a", 9, 3);
	assert_int_equal(queries[2].found.count, 0);
	check(queries[3].found, "a", 9, 3);
	assert_int_equal(fakes[0].asked_count, 3); /* each once */
	assert_int_equal(fakes[1].asked_count, 2);
	assert_int_equal(symbolizer_story(symbolizer, &app, &story, &err), 0);
	assert_string_equal(story.by, "first, second");
	assert_int_equal(symbolizer_resolve(symbolizer, queries, 4, &err), 0);
	assert_int_equal(fakes[0].asked_count, 3);
	assert_int_equal(find_count, 1);
	symbolizer_free(symbolizer);
}

TEST(test_trouble_of_any_is_said)
{
	struct symbolizer *symbolizer = start(&no_cache);

	assert_null(symbolizer_trouble(symbolizer));
	fakes[1].is_dead = true;
	assert_string_equal(symbolizer_trouble(symbolizer), "it died");
	symbolizer_free(symbolizer);
}

/* ---------------------------------------------------------------- who is believed */

static const struct symbol no_lines[RVA_MAX] = {
	[20] = {"far", 21, NULL, 0}, [30] = {"near", 2, NULL, 0}, [40] = {"no start", 0, NULL, 0}};

TEST(test_tables_decide_where_there_is_no_line)
{
	struct symbolizer *symbolizer = start(&no_cache);
	struct symbol_status story;
	struct err err;

	fakes[0].knows = no_lines;
	table_names[16] = "close";
	check(ask_one(symbolizer, 20), "close", 5, 0);
	assert_int_equal(symbolizer_story(symbolizer, &app, &story, &err), 0);
	assert_string_equal(story.by, "exports");
	symbolizer_free(symbolizer);
}

TEST(test_without_tables_only_what_can_reach_is_kept)
{
	struct symbolizer *symbolizer = start(&no_cache);

	fakes[0].knows = no_lines;
	reach_from = 10;
	assert_int_equal(ask_one(symbolizer, 20).count, 0);
	check(ask_one(symbolizer, 30), "near", 2, 0);
	assert_int_equal(ask_one(symbolizer, 40).count, 0);
	symbolizer_free(symbolizer);
}

/* A helper may say the nearest symbol's name with the line of another function. */
TEST(test_a_name_that_tables_deny_is_not_shown)
{
	struct symbolizer *symbolizer = start(&no_cache);

	fakes[0].knows = lines_a; /* begins at 0 */
	check(ask_one(symbolizer, 8), "a", 9, 3);
	symbolizer_free(symbolizer);
	symbolizer = start(&no_cache);
	denied_below = 4;
	assert_int_equal(ask_one(symbolizer, 8).count, 0);
	symbolizer_free(symbolizer);
	symbolizer = start(&no_cache);
	table_names[4] = "true";
	check(ask_one(symbolizer, 8), "true", 5, 0);
	symbolizer_free(symbolizer);
}

TEST(test_overloads_are_told_apart_by_the_whole_name)
{
	static const struct symbol knows[RVA_MAX] = {[8] = {"app::f", 5, "a.cpp", 3},
		[24] = {"app::f", 5, "a.cpp", 4},
		[40] = {"app::g", 5, "a.cpp", 5},
		[56] = {"app::f(char)", 5, "a.cpp", 6}};
	const struct symbol_options raw = {.no_cache = true, .no_demangle = true};
	struct symbolizer *symbolizer = start(&no_cache);

	fakes[0].knows = knows;
	table_names[4] = "_ZN3app1fEi";
	table_names[20] = "_ZN3app1fEd";
	table_names[36] = "_ZN3app2ghEd"; /* another function: app::gh(double) */
	table_names[52] = "_ZN3app1fEi";
	check(ask_one(symbolizer, 8), "app::f(int)", 5, 3);
	check(ask_one(symbolizer, 24), "app::f(double)", 5, 4);
	check(ask_one(symbolizer, 40), "app::g", 5, 5);
	check(ask_one(symbolizer, 56), "app::f(char)", 5, 6);
	symbolizer_free(symbolizer);
	symbolizer = start(&raw);
	check(ask_one(symbolizer, 8), "_ZN3app1fEi", 5, 3);
	symbolizer_free(symbolizer);
}

/* A helper may prefer a linker's label at the same place, or one within the function. */
TEST(test_a_function_is_better_than_a_label)
{
	static const struct symbol knows[RVA_MAX] = {
		[8] = {"___crt_xt_end__", 5, "a.c", 3}, [24] = {".l_start", 2, "a.c", 4}};
	struct symbolizer *symbolizer = start(&no_cache);

	fakes[0].knows = knows;
	are_symbols = true;
	table_names[4] = "hidden";
	table_names[20] = "mainCRTStartup";
	check(ask_one(symbolizer, 8), "hidden", 5, 3);
	check(ask_one(symbolizer, 24), "mainCRTStartup", 5, 4);
	symbolizer_free(symbolizer);
	symbolizer = start(&no_cache);
	are_symbols = false; /* an export may be called anything */
	check(ask_one(symbolizer, 8), "___crt_xt_end__", 5, 3);
	symbolizer_free(symbolizer);
}

/* ---------------------------------------------------------------- while it works */

struct told {
	size_t last, total, call_count;
};

static void take_progress(void *ctx, const char *module, size_t done, size_t total)
{
	struct told *told = ctx;

	assert_non_null(module);
	assert_true(done >= told->last && done <= total);
	*told = (struct told){done, total, told->call_count + 1};
}

static bool take_cancelled(void *ctx)
{
	(void)ctx;
	return is_cancelled;
}

TEST(test_progress_counts_all_modules)
{
	struct module other = app;
	struct told told = {0};
	const struct symbol_options options = {
		.no_cache = true, .listener = {.ctx = &told, .progress = take_progress}};
	struct symbolizer *symbolizer = start(&options);
	struct symbol_query queries[] = {{.addr = BASE + 5, .module = &app},
		{.addr = BASE + 9, .module = &app}, {.addr = BASE + 9, .module = &other}};
	struct err err;

	other.timestamp = 7;
	assert_int_equal(symbolizer_resolve(symbolizer, queries, 3, &err), 0);
	assert_int_equal(told.last, 3);
	assert_int_equal(told.total, 3);
	assert_true(told.call_count > 3);
	symbolizer_free(symbolizer);
}

TEST(test_what_was_not_looked_up_is_looked_up_another_time)
{
	const struct symbol_options options = {
		.no_cache = true, .listener = {.is_cancelled = take_cancelled}};
	struct symbolizer *symbolizer = start(&options);

	fakes[0].knows = lines_a;
	table_names[0] = "table";
	is_cancelled = true;
	assert_int_equal(ask_one(symbolizer, 8).count, 0);
	is_cancelled = false;
	check(ask_one(symbolizer, 8), "a", 9, 3);
	symbolizer_free(symbolizer);
}

TEST(test_file_names_are_shortened)
{
	static const struct symbol knows[RVA_MAX] = {[8] = {"a", 9, "/src/app/a.c", 3}};
	const char *prefix = "/src";
	const struct symbol_options options = {
		.no_cache = true, .strip_paths = &prefix, .strip_count = 1};
	struct symbolizer *symbolizer = start(&options);

	fakes[0].knows = knows;
	assert_string_equal(ask_one(symbolizer, 8).list[0].file, "app/a.c");
	symbolizer_free(symbolizer);
}
