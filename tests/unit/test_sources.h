/*
 * For the tests of who is asked for names: backends, tables and files that are made up, so that what each
 * knows is known. They stand in the place of the library's.
 */
#ifndef TESTS_UNIT_TEST_SOURCES_H
#define TESTS_UNIT_TEST_SOURCES_H

#include "tests/unit/t.h"

#include <unistd.h>

#include "symbolize/backend/backend.h"
#include "symbolize/names.h"

#define BASE UINT64_C(0x140000000)
#define RVA_MAX 64

/* ---------------------------------------------------------------- what everybody knows */

struct fake {
	const struct symbol *knows; /* by rva; function NULL: nothing */
	size_t call_count, asked_count; /* lookups without a name */
	bool is_dead; /* answers nothing */
};

static struct fake fakes[2];
static const char *table_names[RVA_MAX]; /* functions, by where they begin */
static bool are_symbols; /* they are an image's symbols, else its exports */
static uint32_t reach_from; /* no function from before reaches further */
static uint32_t denied_below; /* here another function begins, as is known */
static bool is_mismatch, is_cancelled, is_nameless; /* files that nothing tells from others */
static bool has_bare_inline; /* every name has one without a line inlined into it */
static size_t find_count;

struct backend {
	struct fake *fake;
	const struct symbol_options *options;
};

static inline struct backend *make(struct fake *fake, const struct symbol_options *options)
{
	struct backend *backend = calloc(1, sizeof(*backend));

	assert_non_null(backend);
	*backend = (struct backend){fake, options};
	return backend;
}

static inline struct backend *make_first(
	const struct symbol_options *options, const struct finder *finder)
{
	(void)finder;
	return make(&fakes[0], options);
}

static inline struct backend *make_second(
	const struct symbol_options *options, const struct finder *finder)
{
	(void)finder;
	return make(&fakes[1], options);
}

static void release(struct backend *backend)
{
	free(backend);
}

static int resolve(struct backend *backend, struct sym_module *subject, struct lookup *lookups,
	size_t count, struct arena *arena)
{
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
			return 0;
		fake->asked_count++;
		lookups[i].is_answered = !fake->is_dead;
		listener_progress(backend->options, "app.exe", i + 1, count);
		if (!fake->is_dead && known && known->function) {
			const struct symbol chain[] = {{.function = "inlined"}, *known};

			assert_int_equal(names_keep(arena, chain + !has_bare_inline,
						 1 + (size_t)has_bare_inline, &lookups[i].found),
				0);
		}
	}
	return 0;
}

static const char *trouble(const struct backend *backend)
{
	return backend->fake->is_dead ? "it died" : NULL;
}

static const struct backend_kind first = {.name = "first",
	.make = make_first,
	.release = release,
	.resolve = resolve,
	.trouble = trouble};
static const struct backend_kind second = {.name = "second",
	.make = make_second,
	.release = release,
	.resolve = resolve,
	.trouble = trouble};
const struct backend_kind *const backends[] = {&first, &second, NULL};

struct finder {
	int nothing;
};

struct finder *finder_new(const struct symbol_options *options, struct err *err)
{
	(void)options;
	(void)err;
	return calloc(1, sizeof(struct finder));
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

const char *finder_servers(const struct finder *finder)
{
	(void)finder;
	return NULL;
}

struct tables {
	bool no_demangle;
};

struct tables *tables_new(const struct module_files *files, bool no_demangle)
{
	struct tables *tables = calloc(1, sizeof(struct tables));

	(void)files;
	assert_non_null(tables);
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

/* ---------------------------------------------------------------- asking */

static char cache_path[300];

static inline int begin(void **state)
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
	return setenv("HSYM_CACHE", cache_path, 1);
}

static inline int end(void **state)
{
	(void)state;
	unlink(cache_path);
	return 0;
}

static struct module app = {.base = BASE,
	.size_bytes = 4096,
	.path = "C:\\app.exe",
	.has_identity = true,
	.timestamp = 1,
	.checksum = 2};

/* The rva that the backends see is one less than that of the return address. */
static inline struct symbols ask_one(struct symbolizer *symbolizer, uint32_t rva)
{
	struct symbol_query query = {.addr = BASE + rva + 1, .module = &app};
	struct err err;

	assert_int_equal(symbolizer_resolve(symbolizer, &query, 1, &err), 0);
	return query.found;
}

static inline void check(
	const struct symbols found, const char *function, uint64_t offset, uint32_t line)
{
	assert_int_equal(found.count, 1);
	assert_string_equal(found.list[0].function, function);
	assert_int_equal(found.list[0].offset_bytes, offset);
	assert_int_equal(found.list[0].line, line);
}

static inline struct symbolizer *start(const struct symbol_options *options)
{
	struct err err;
	struct symbolizer *symbolizer = symbolizer_new(options, &err);

	assert_non_null(symbolizer);
	return symbolizer;
}

static const struct symbol_options no_cache = {.no_cache = true};

static const struct symbol lines_a[RVA_MAX] = {[8] = {"a", 9, "a.c", 3}};

#endif
