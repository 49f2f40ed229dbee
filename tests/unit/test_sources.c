/* Sources of names: their order, which names are accepted, and the cache between runs. Fakes with
 * known contents replace the backends, tables and files. */
#include "tests/unit/t.h"

#include <unistd.h>

#include "symbolize/backend/backend.h"
#include "symbolize/names.h"

#define BASE UINT64_C(0x140000000)
#define RVA_MAX 64

/* ---------------------------------------------------------------- contents of the fakes */

struct fake {
	const struct symbol *knows; /* sorted by rva; function NULL: unknown */
	size_t call_count, asked_count; /* asked_count: lookups without a name */
	bool is_dead; /* the backend never answers */
};

static struct fake fakes[2];
static const char *table_names[RVA_MAX]; /* functions, indexed by their start */
static bool are_symbols; /* true: the names are an image's symbols; false: its exports */
static uint32_t reach_from; /* no function that begins earlier extends beyond this rva */
static uint32_t denied_below; /* another function is known to begin here */
static bool is_mismatch, is_cancelled, is_nameless; /* is_nameless: the files have no identity */
static bool has_bare_inline; /* every name contains an inlined function without a line */
static size_t find_count;

struct backend {
	struct fake *fake;
	const struct symbol_options *options;
};

static struct backend *make(size_t number, const struct symbol_options *options)
{
	struct backend *backend = xmalloc(sizeof(*backend));

	*backend = (struct backend){&fakes[number], options};
	return backend;
}

static void *make_first(const struct symbol_options *options, const struct finder *finder)
{
	(void)finder;
	return make(0, options);
}

static void *make_second(const struct symbol_options *options, const struct finder *finder)
{
	(void)finder;
	return make(1, options);
}

static void release(void *of_backend)
{
	struct backend *backend = of_backend;

	free(backend);
}

static void resolve(void *of_backend, struct sym_module *subject, struct lookup *lookups,
	size_t count, struct arena *arena)
{
	struct backend *backend = of_backend;
	struct fake *fake = backend->fake;

	(void)subject;
	fake->call_count++;
	for (size_t i = 0; i < count; i++) {
		const struct symbol *known = fake->knows ? &fake->knows[lookups[i].rva] : NULL;

		if (i)
			assert_true(lookups[i - 1].rva < lookups[i].rva);
		if (lookups[i].found.count)
			continue;
		if (listener_is_cancelled(backend->options))
			return;
		fake->asked_count++;
		lookups[i].is_answered = !fake->is_dead;
		listener_progress(backend->options, "app.exe", i + 1, count);
		if (!fake->is_dead && known && known->function) {
			const struct symbol chain[] = {{.function = "inlined"}, *known};

			names_copy(arena, chain + !has_bare_inline, 1 + (size_t)has_bare_inline,
				&lookups[i].found);
		}
	}
}

static const char *trouble(const void *of_backend)
{
	const struct backend *backend = of_backend;

	return backend->fake->is_dead ? "it died" : NULL;
}

static const struct backend_kind first = {"first", false, make_first, release, resolve, trouble};
static const struct backend_kind second = {"second", false, make_second, release, resolve, trouble};
const struct backend_kind *const backends[] = {&first, &second, NULL};

struct finder *finder_new(const struct symbol_options *options, struct err *err)
{
	(void)options;
	(void)err;
	return xmalloc(1);
}

void finder_free(struct finder *finder)
{
	free(finder);
}

void finder_find(struct finder *finder, const struct module *module, struct module_files *files)
{
	(void)finder;
	(void)module;
	if (files->is_searched)
		return;
	find_count++;
	files->is_searched = true;
	files->is_mismatch = is_mismatch;
	memcpy(files->guid, "0123456789ABCDEF0123456789ABCDEF", is_nameless ? 0 : 32);
	files->image = strdup("no such file");
}

void module_files_release(struct module_files *files)
{
	free(files->image);
	buf_release(&files->reason);
}

struct tables {
	bool no_demangle;
};

struct tables *tables_new(const struct module_files *files, bool no_demangle)
{
	struct tables *tables = xmalloc(sizeof(*tables));

	(void)files;
	tables->no_demangle = no_demangle;
	return tables;
}

void tables_free(struct tables *tables)
{
	free(tables);
}

void tables_rest(struct tables *tables)
{
	(void)tables;
}

int tables_find(struct tables *tables, uint32_t rva, const char *said, struct arena *arena,
	struct symbol *symbol, const char **by)
{
	(void)tables;
	(void)said;
	(void)arena;
	for (uint32_t start = rva + 1; start-- > 0;) {
		if (!table_names[start])
			continue;
		*symbol = (struct symbol){
			.function = table_names[start], .offset_bytes = rva + 1 - start};
		*by = "exports";
		return 1;
	}
	return 0;
}

bool tables_reach(struct tables *tables, uint32_t start, uint32_t rva)
{
	(void)tables;
	return start <= rva && start >= reach_from;
}

bool tables_deny(struct tables *tables, uint32_t start, uint32_t rva)
{
	(void)tables;
	return start < denied_below && rva >= denied_below;
}

uint64_t tables_offset(struct tables *tables, uint32_t rva, bool *is_sure)
{
	*is_sure = false;
	(void)tables;
	(void)rva;
	return 0;
}

int tables_name_at(struct tables *tables, uint32_t rva, const char *said, struct table_name *name)
{
	(void)tables;
	if (rva >= RVA_MAX || !table_names[rva])
		return 0;
	*name = (struct table_name){.raw = table_names[rva],
		.table = are_symbols ? "symbols" : "exports",
		.is_said = said && is_name_of(table_names[rva], said) > 0,
		.is_for_others = !are_symbols};
	return 1;
}

const char *tables_shown(struct tables *tables, const char *raw, struct arena *arena)
{
	const char *shown;
	struct buf text;

	buf_init(&text);
	shown = !tables->no_demangle && demangle_name(raw, &text) == 1 ?
			arena_text(arena, text.data, text.len) :
			raw;
	buf_release(&text);
	return shown;
}

/* ---------------------------------------------------------------- queries */

static char cache_path[300];
static const struct symbol_options no_cache = {.no_cache = true};
static struct symbolizer *symbolizer;

static void start(const struct symbol_options *options)
{
	symbolizer_free(symbolizer);
	symbolizer = symbolizer_new(options, NULL);
}

static int begin(void **state)
{
	(void)state;
	memset(fakes, 0, sizeof(fakes));
	memset(table_names, 0, sizeof(table_names));
	reach_from = denied_below = 0;
	is_mismatch = is_cancelled = is_nameless = has_bare_inline = are_symbols = false;
	find_count = 0;
	snprintf(cache_path, sizeof(cache_path), "%s/test_sources.%ld",
		getenv("TMPDIR") ? getenv("TMPDIR") : "build", (long)getpid());
	unlink(cache_path);
	setenv("HSYM_CACHE", cache_path, 1);
	start(&no_cache);
	return 0;
}

static int end(void **state)
{
	(void)state;
	symbolizer_free(symbolizer);
	symbolizer = NULL;
	unlink(cache_path);
	return 0;
}

static struct module app = {.base = BASE,
	.size_bytes = 4096,
	.path = "C:\\app.exe",
	.has_identity = true,
	.timestamp = 1,
	.checksum = 2};

/* Backends get the rva of the return address minus one. */
static struct symbols ask_one(uint32_t rva)
{
	struct symbol_query query = {.addr = BASE + rva + 1, .module = &app};

	symbolizer_resolve(symbolizer, &query, 1);
	return query.found;
}

static void check(const struct symbols found, const char *function, uint64_t offset, uint32_t line)
{
	assert_int_equal(found.count, 1);
	assert_string_equal(found.list[0].function, function);
	assert_int_equal(found.list[0].offset_bytes, offset);
	assert_int_equal(found.list[0].line, line);
}

static const char *by_whom(void)
{
	struct symbol_status story;

	symbolizer_explain(symbolizer, &app, &story);
	return story.by;
}

static const struct symbol lines_a[RVA_MAX] = {[8] = {"a", 9, "a.c", 3}};

/* ---------------------------------------------------------------- order */

static const struct symbol lines_b[RVA_MAX] = {
	[8] = {"wrong", 9, "b.c", 4}, [12] = {"b", 1, "b.c", 5}};

#undef TEST_AROUND
#define TEST_AROUND begin, end

TEST(test_next_is_asked_for_what_is_left)
{
	struct symbol_query queries[] = {{.addr = BASE + 13, .module = &app},
		{.addr = BASE + 9, .module = &app}, {.addr = BASE + 21, .module = &app},
		{.addr = BASE + 9, .module = &app}};

	fakes[0].knows = lines_a;
	fakes[1].knows = lines_b;
	symbolizer_resolve(symbolizer, queries, 4);
	check(queries[0].found, "b", 1, 5);
	check(queries[1].found, "a", 9, 3);
	assert_int_equal(queries[2].found.count, 0);
	check(queries[3].found, "a", 9, 3);
	assert_int_equal(fakes[0].asked_count, 3); /* each address is looked up once */
	assert_int_equal(fakes[1].asked_count, 2);
	assert_string_equal(by_whom(), "first, second");
	symbolizer_resolve(symbolizer, queries, 4);
	assert_int_equal(fakes[0].asked_count, 3);
	assert_int_equal(find_count, 1);
}

TEST(test_trouble_of_any_backend_is_reported)
{
	assert_null(symbolizer_trouble(symbolizer));
	fakes[1].is_dead = true;
	assert_string_equal(symbolizer_trouble(symbolizer), "it died");
}

/* ---------------------------------------------------------------- acceptance */

static const struct symbol no_lines[RVA_MAX] = {
	[20] = {"far", 21, NULL, 0}, [30] = {"near", 2, NULL, 0}, [40] = {"no start", 0, NULL, 0}};

TEST(test_tables_decide_where_there_is_no_line)
{
	fakes[0].knows = no_lines;
	table_names[16] = "close";
	check(ask_one(20), "close", 5, 0);
	assert_string_equal(by_whom(), "exports");
}

TEST(test_without_tables_only_what_can_reach_is_kept)
{
	fakes[0].knows = no_lines;
	reach_from = 10;
	assert_int_equal(ask_one(20).count, 0);
	check(ask_one(30), "near", 2, 0);
	assert_int_equal(ask_one(40).count, 0);
}

/* A helper may return the nearest symbol's name with another function's line. */
TEST(test_name_that_tables_deny_is_not_shown)
{
	fakes[0].knows = lines_a; /* the function begins at 0 */
	check(ask_one(8), "a", 9, 3);
	start(&no_cache);
	denied_below = 4;
	assert_int_equal(ask_one(8).count, 0);
	start(&no_cache);
	table_names[4] = "true";
	check(ask_one(8), "true", 5, 0);
}

TEST(test_overloads_are_distinguished_by_whole_name)
{
	static const struct symbol knows[RVA_MAX] = {[8] = {"app::f", 5, "a.cpp", 3},
		[24] = {"app::f", 5, "a.cpp", 4},
		[40] = {"app::g", 5, "a.cpp", 5},
		[56] = {"app::f(char)", 5, "a.cpp", 6}};
	static const struct symbol_options raw = {.no_cache = true, .no_demangle = true};
	fakes[0].knows = knows;
	table_names[4] = "_ZN3app1fEi";
	table_names[20] = "_ZN3app1fEd";
	table_names[36] = "_ZN3app2ghEd"; /* another function: app::gh(double) */
	table_names[52] = "_ZN3app1fEi";
	check(ask_one(8), "app::f(int)", 5, 3);
	check(ask_one(24), "app::f(double)", 5, 4);
	check(ask_one(40), "app::g", 5, 5);
	check(ask_one(56), "app::f(char)", 5, 6);
	start(&raw);
	check(ask_one(8), "_ZN3app1fEi", 5, 3);
}

/* A helper may prefer a linker's label at the function's start, or a label within the function. */
TEST(test_function_is_better_than_label)
{
	static const struct symbol knows[RVA_MAX] = {
		[8] = {"___crt_xt_end__", 5, "a.c", 3}, [24] = {".l_start", 2, "a.c", 4}};
	fakes[0].knows = knows;
	are_symbols = true;
	table_names[4] = "hidden";
	table_names[20] = "mainCRTStartup";
	check(ask_one(8), "hidden", 5, 3);
	check(ask_one(24), "mainCRTStartup", 5, 4);
	start(&no_cache);
	are_symbols = false; /* an export may have any name */
	check(ask_one(8), "___crt_xt_end__", 5, 3);
}

/* ---------------------------------------------------------------- progress */

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
	static struct told told;
	static const struct symbol_options options = {
		.no_cache = true, .listener = {.ctx = &told, .progress = take_progress}};
	struct symbol_query queries[] = {{.addr = BASE + 5, .module = &app},
		{.addr = BASE + 9, .module = &app}, {.addr = BASE + 9, .module = &other}};

	start(&options);
	other.timestamp = 7;
	symbolizer_resolve(symbolizer, queries, 3);
	assert_int_equal(told.last, 3);
	assert_int_equal(told.total, 3);
	assert_true(told.call_count > 3);
}

TEST(test_what_was_not_looked_up_is_looked_up_another_time)
{
	static const struct symbol_options options = {
		.no_cache = true, .listener = {.is_cancelled = take_cancelled}};

	start(&options);
	fakes[0].knows = lines_a;
	table_names[0] = "table";
	is_cancelled = true;
	assert_int_equal(ask_one(8).count, 0);
	is_cancelled = false;
	check(ask_one(8), "a", 9, 3);
}

TEST(test_file_names_are_shortened)
{
	static const struct symbol knows[RVA_MAX] = {[8] = {"a", 9, "/src/app/a.c", 3}};
	static const char *prefix = "/src";
	static const struct symbol_options options = {
		.no_cache = true, .strip_paths = &prefix, .strip_count = 1};

	start(&options);
	fakes[0].knows = knows;
	assert_string_equal(ask_one(8).list[0].file, "app/a.c");
}

/* ---------------------------------------------------------------- cache */

/* Resolves one address with a new symbolizer; returns the number of lookups in the backends. */
static size_t questions(const struct symbol_options *options, uint32_t rva)
{
	start(options);
	fakes[0].asked_count = fakes[1].asked_count = 0;
	ask_one(rva);
	start(&no_cache); /* this closes the symbolizer, which writes the cache */
	return fakes[0].asked_count + fakes[1].asked_count;
}

static void ask_twice(size_t at_first, size_t then)
{
	assert_int_equal(questions(NULL, 8), at_first);
	assert_int_equal(questions(NULL, 8), then);
}

TEST(test_names_with_lines_need_no_files_second_time)
{
	fakes[0].knows = lines_a;
	assert_int_equal(questions(NULL, 8), 1);
	find_count = 0;
	assert_int_equal(questions(NULL, 8), 0);
	assert_int_equal(find_count, 0);
	fakes[0].knows = NULL;
	start(NULL);
	check(ask_one(8), "a", 9, 3);
	assert_string_equal(by_whom(), "cache");
	assert_int_equal(questions(&no_cache, 8), 2);
}

TEST(test_poor_names_are_remembered_with_their_files)
{
	table_names[4] = "table";
	assert_int_equal(questions(NULL, 8), 2);
	assert_int_equal(questions(NULL, 2), 2); /* neither run gets a name */
	table_names[4] = NULL;
	assert_int_equal(questions(NULL, 8), 0);
	assert_int_equal(questions(NULL, 2), 0);
	assert_true(find_count >= 4);
	start(NULL);
	check(ask_one(8), "table", 5, 0);
	assert_int_equal(ask_one(2).count, 0);
}

TEST(test_what_may_be_wrong_or_poorer_is_not_remembered)
{
	table_names[4] = "table";
	fakes[1].is_dead = true;
	ask_twice(2, 2); /* a later run may get an answer */
	fakes[1].is_dead = false;
	is_nameless = true;
	ask_twice(2, 2); /* files of equal size at one path may be different builds */
	is_nameless = false;
	fakes[0].knows = lines_a;
	is_mismatch = true;
	ask_twice(1, 1);
	is_mismatch = false;
	/* An old llvm-symbolizer must not fix an answer to which a new one can add lines. */
	has_bare_inline = true;
	ask_twice(1, 1);
	has_bare_inline = false;
	ask_twice(1, 0);
}

/* An all-zero GUID is invalid. Images that were linked without a GUID contain it. */
TEST(test_dump_without_build_is_looked_up_again)
{
	struct module old = app;

	fakes[0].knows = lines_a;
	is_nameless = true;
	app.timestamp = app.checksum = 0;
	app.pdb_guid = "00000000000000000000000000000000";
	ask_twice(1, 1);
	app = old;
}

/* A dump's author controls its build information and the paths where names were found. */
TEST(test_dump_with_other_paths_has_its_own_names)
{
	static const char *const paths[][2] = {{"C:\\app.exe", "app.pdb"},
		{"Z:\\stranger\\app.exe", "app.pdb"},
		{"c:\\APP.exe", "app.pdb"}, /* another file if names are case-sensitive */
		{"C:\\app.exe", "Z:\\stranger\\app.pdb"}, {"C:\\app.exe", NULL},
		/* Two pairs of texts must not be equal only because their concatenations are. */
		{"C:\\app.exe app.pdb", "x"}, {"C:\\app.exe", "app.pdb x"}};
	struct module old = app;

	fakes[0].knows = lines_a;
	for (size_t asked = 1; asked <= 2; asked++) {
		for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
			app.path = paths[i][0];
			app.pdb = paths[i][1];
			assert_int_equal(questions(NULL, 8), asked == 1);
		}
	}
	app = old;
}

TEST(test_nor_do_two_dumps_of_one_run_share_them)
{
	struct module other = app;
	struct symbol_query queries[] = {
		{.addr = BASE + 9, .module = &app}, {.addr = BASE + 9, .module = &other}};

	start(NULL);
	other.pdb = "Z:\\stranger\\app.pdb";
	symbolizer_resolve(symbolizer, queries, 2);
	assert_int_equal(find_count, 2);
}

TEST(test_another_build_or_form_is_another_name)
{
	static const struct symbol_options raw = {.no_demangle = true};
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
