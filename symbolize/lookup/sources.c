/*
 * Sources of names: cache, backends, tables (lookup.h). The addresses of one module are first
 * looked up in the cache, with the dump's key and then with the files' key. The remaining addresses
 * are looked up in backends and tables. Final answers are added to the cache.
 */
#include "symbolize/lookup/lookup.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/os.h"
#include "symbolize/files/module_files.h"
#include "symbolize/names.h"

/* Sources of answers, as bit numbers in subject->answered_by. The backends have the first bits. */
enum { BY_CACHE = 4, BY_SYMBOLS, BY_PRIVATES, BY_PUBLICS, BY_EXPORTS, BY_COUNT };
static const char *const by_names[BY_COUNT] = {[BY_CACHE] = "cache",
	[BY_SYMBOLS] = "symbols",
	[BY_PRIVATES] = "private symbols",
	[BY_PUBLICS] = "publics",
	[BY_EXPORTS] = "exports"};

/* Prefix of every cache key. Must be changed whenever names are found or spelled differently. */
#define NAMES_FORM "2 "

/* Stands in the cache for an address without a name; no function has this name. */
static const char no_name[] = "-";

int sources_init(struct sources *sources, const struct symbol_options *options, struct err *err)
{
	*sources = (struct sources){.options = *options};
	sources->options.listener.counts = &sources->counts;
	sources->finder = finder_new(&sources->options, err);
	if (!sources->finder)
		return -ERR_USAGE;
	for (; backends[sources->backend_count]; sources->backend_count++)
		sources->backends[sources->backend_count] =
			backends[sources->backend_count]->make(&sources->options, sources->finder);
	return 0;
}

void sources_release(struct sources *sources)
{
	for (size_t i = 0; i < sources->backend_count; i++)
		backends[i]->release(sources->backends[i]);
	name_cache_close(sources->cache);
	finder_free(sources->finder);
	*sources = (struct sources){0};
}

const char *sources_trouble(const struct sources *sources)
{
	for (size_t i = 0; i < sources->backend_count; i++) {
		const char *trouble = backends[i]->trouble(sources->backends[i]);

		if (trouble)
			return trouble;
	}
	return NULL;
}

static void note_answer(struct sym_module *subject, unsigned by)
{
	subject->answered_by |= (uint16_t)(1u << by);
}

void sources_describe(const struct sym_module *subject, struct buf *text)
{
	for (unsigned i = 0; i < BY_COUNT; i++) {
		if (subject->answered_by & 1u << i)
			buf_printf(text, "%s%s", text->len ? ", " : "",
				by_names[i] ? by_names[i] : backends[i]->name);
	}
}

/* ---------------------------------------------------------------- the cache */

/* Composes the key for a module's build using only the dump. The key includes the paths in the
 * dump, because they select which files are trusted for this build. Returns false if the dump does
 * not identify the build. */
static bool build_key(const struct sources *sources, const struct module *module, struct buf *key)
{
	char guid[33] = "";

	if (!module->has_identity || (!build_guid_is_known(module->pdb_guid, guid) &&
					     !(module->timestamp && module->checksum)))
		return false;
	buf_printf(key, NAMES_FORM "build%s %llx %lx %lx %s %lx %zx %s",
		sources->options.no_demangle ? " raw" : "", (unsigned long long)module->size_bytes,
		(unsigned long)module->timestamp, (unsigned long)module->checksum, guid,
		(unsigned long)module->pdb_age, strlen(module->path), module->path);
	if (module->pdb)
		buf_printf(key, " %s", module->pdb);
	return true;
}

static void add_file(struct buf *key, const char *path)
{
	struct os_file file;

	if (!path) {
		buf_add_text(key, " -");
	} else if (os_open(&file, path, NULL)) {
		buf_add_text(key, " ?");
	} else {
		buf_printf(key, " %llx %s", (unsigned long long)os_size(&file), path);
		os_close(&file);
	}
}

/* Composes the key for the files that were found. Returns false if the files have no unique
 * identity. */
static bool files_key(
	const struct sources *sources, const struct sym_module *subject, struct buf *key)
{
	const struct module_files *files = &subject->files;
	const struct pe_image *pe = files->pe;

	/* Path and size do not suffice: they may be those of another build. */
	if (files->is_mismatch || (!files->guid[0] && !(pe && pe->timestamp && pe->checksum)))
		return false;
	buf_printf(key, NAMES_FORM "files%s %s %lx", sources->options.no_demangle ? " raw" : "",
		files->guid, (unsigned long)files->age);
	if (pe)
		buf_printf(key, " %lx %lx %lx", (unsigned long)pe->timestamp,
			(unsigned long)pe->checksum, (unsigned long)pe->size_of_image);
	add_file(key, files->image);
	add_file(key, files->pdb);
	return true;
}

/* ---------------------------------------------------------------- asking */

struct lookup_batch {
	struct sources *sources;
	struct sym_module *subject;
	struct arena *arena;
	const char *build, *files; /* cache keys, or NULL */
	struct lookup *lookups;
	size_t count;
};

/* Fills in cached answers for `key`, unless `key` is NULL. Returns true if all lookups have an
 * answer. */
static bool ask_cache(struct lookup_batch *batch, const char *key)
{
	bool all_answered = true;

	for (size_t i = 0; i < batch->count; i++) {
		struct lookup *lookup = &batch->lookups[i];

		if (!lookup->is_answered && key &&
			name_cache_find(batch->sources->cache, key, lookup->rva, &lookup->found)) {
			lookup->is_answered = true;
			if (!strcmp(lookup->found.list[0].function, no_name))
				lookup->found = (struct symbols){0};
			else
				note_answer(batch->subject, BY_CACHE);
		}
		all_answered &= lookup->is_answered;
	}
	return all_answered;
}

/* Returns the cache key for an answer, or NULL if the answer must not be cached. An answer with
 * lines for all functions comes from the right debug information. An answer with only some lines is
 * not cached: a helper's wrong lines may have been dropped, and a later version of the helper may
 * return correct lines. An answer without lines is cached only if every backend has answered,
 * because otherwise another run may find more. */
static const char *cache_key(
	const struct lookup_batch *batch, const struct lookup *lookup, size_t answer_count)
{
	size_t lines = symbols_count_lines(&lookup->found);

	if (!batch->sources->cache || batch->subject->files.is_mismatch)
		return NULL;
	if (lines && lines == lookup->found.count)
		return batch->build ? batch->build : batch->files;
	return !lines && answer_count == batch->sources->backend_count ? batch->files : NULL;
}

/* Chooses the name and caches it. `given_by` is the index of the backend that returned a name, or
 * BACKENDS_MAX. */
static void decide(
	struct lookup_batch *batch, struct lookup *lookup, unsigned given_by, size_t answer_count)
{
	static const struct symbol none = {.function = no_name};
	static const struct symbols nothing = {&none, 1};
	const char *table = choose_name(batch->subject, lookup,
		given_by < BACKENDS_MAX ? backends[given_by] : NULL, batch->arena);
	const char *key = cache_key(batch, lookup, answer_count);
	unsigned by = table ? BY_SYMBOLS : given_by;

	while (table && by < BY_EXPORTS && strcmp(table, by_names[by]) != 0)
		by++;
	if (lookup->found.count)
		note_answer(batch->subject, by);
	if (key)
		name_cache_add(batch->sources->cache, key, lookup->rva,
			lookup->found.count ? &lookup->found : &nothing);
}

/* Queries backends and tables for the addresses that have no answer yet. */
static void ask_files(struct lookup_batch *batch)
{
	struct sources *sources = batch->sources;
	struct lookup *open = xmalloc(batch->count * sizeof(*open));
	/* For each lookup: index of the backend that returned a name; number of backends that
	 * answered. */
	unsigned char *given_by = xmalloc(batch->count), *answer_count = xcalloc(batch->count, 1);
	size_t open_count = 0, next = 0;
	bool is_cancelled = false;

	for (size_t i = 0; i < batch->count; i++) {
		if (!batch->lookups[i].is_answered)
			open[open_count++] = (struct lookup){.rva = batch->lookups[i].rva};
	}
	memset(given_by, BACKENDS_MAX, batch->count);
	for (unsigned backend = 0; !is_cancelled && backend < sources->backend_count; backend++) {
		for (size_t i = 0; i < open_count; i++)
			open[i].is_answered = false;
		backends[backend]->resolve(
			sources->backends[backend], batch->subject, open, open_count, batch->arena);
		for (size_t i = 0; i < open_count; i++) {
			answer_count[i] += open[i].is_answered;
			if (open[i].found.count && given_by[i] == BACKENDS_MAX)
				given_by[i] = (unsigned char)backend;
		}
		is_cancelled = listener_is_cancelled(&sources->options);
	}
	for (size_t i = 0; i < open_count; i++) {
		/* If the user cancelled, a missing name is not an answer. */
		open[i].is_answered = open[i].found.count || !is_cancelled;
		if (open[i].is_answered)
			decide(batch, &open[i], given_by[i], answer_count[i]);
	}
	for (size_t i = 0; i < batch->count; i++) {
		if (!batch->lookups[i].is_answered)
			batch->lookups[i] = open[next++];
	}
	tables_rest(batch->subject->tables);
	free(answer_count);
	free(given_by);
	free(open);
}

void sources_resolve(struct sources *sources, struct sym_module *subject, struct lookup *lookups,
	size_t count, struct arena *arena)
{
	struct lookup_batch batch = {sources, subject, arena, NULL, NULL, lookups, count};
	struct buf build, files;

	buf_init(&build);
	buf_init(&files);
	if (!sources->is_cache_tried && !sources->options.no_cache)
		sources->cache = name_cache_open(NULL, NAME_CACHE_BYTES);
	sources->is_cache_tried = true;
	if (sources->cache && build_key(sources, subject->module, &build))
		batch.build = build.data;
	if (!ask_cache(&batch, batch.build)) {
		finder_find(sources->finder, subject->module, &subject->files);
		if (sources->cache && files_key(sources, subject, &files))
			batch.files = files.data;
		if (!ask_cache(&batch, batch.files))
			ask_files(&batch);
	}
	buf_release(&files);
	buf_release(&build);
}
