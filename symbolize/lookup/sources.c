#include "symbolize/lookup/lookup.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/os.h"
#include "symbolize/files/module_files.h"
#include "symbolize/names.h"

/* Who answered, as bits of subject->answered_by: the backends are the first ones. */
enum { BY_CACHE = 4, BY_SYMBOLS, BY_PRIVATES, BY_PUBLICS, BY_EXPORTS, BY_COUNT };
static const char *const by_names[BY_COUNT] = {[BY_CACHE] = "cache",
	[BY_SYMBOLS] = "symbols",
	[BY_PRIVATES] = "private symbols",
	[BY_PUBLICS] = "publics",
	[BY_EXPORTS] = "exports"};

/* Begins every key of the cache; another one where names that are found differ from those of before. */
#define NAMES_FORM "2 "

/* What stands in the cache for an address without a name: no function is called so. */
static const char no_name[] = "-";

/* ---------------------------------------------------------------- listening */

static void tell_progress(void *ctx, const char *module, size_t done, size_t total)
{
	struct sources *sources = ctx;

	(void)total;
	if (sources->told_count < sources->done_count + done)
		sources->told_count = sources->done_count + done;
	if (sources->listener.progress)
		sources->listener.progress(
			sources->listener.ctx, module, sources->told_count, sources->total_count);
}

static void tell_warning(void *ctx, const char *sentence)
{
	const struct sources *sources = ctx;

	if (sources->listener.warn)
		sources->listener.warn(sources->listener.ctx, sentence);
}

static bool ask_cancelled(void *ctx)
{
	const struct sources *sources = ctx;

	return sources->listener.is_cancelled &&
	       sources->listener.is_cancelled(sources->listener.ctx);
}

static void tell_busy(void *ctx, bool is_busy)
{
	const struct sources *sources = ctx;

	if (sources->listener.busy)
		sources->listener.busy(sources->listener.ctx, is_busy);
}

/* ---------------------------------------------------------------- beginning and end */

int sources_init(struct sources *sources, const struct symbol_options *options, struct err *err)
{
	*sources = (struct sources){.options = *options, .listener = options->listener};
	sources->options.listener = (struct symbol_listener){.ctx = sources,
		.warn = tell_warning,
		.progress = tell_progress,
		.is_cancelled = ask_cancelled,
		.busy = tell_busy};
	sources->finder = finder_new(&sources->options, err);
	if (!sources->finder)
		return -(int)(err ? err->code : ERR_NOMEM);
	for (size_t i = 0; backends[i]; i++) {
		sources->backends[i] = backends[i]->make(&sources->options, sources->finder);
		if (!sources->backends[i])
			return err_set(err, ERR_NOMEM, NULL, NULL);
		sources->backend_count++;
	}
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

static void answered(struct sym_module *subject, int by)
{
	subject->answered_by |= (uint16_t)(1u << by);
}

int sources_say(const struct sym_module *subject, struct buf *text)
{
	bool is_first = true;
	int rc = 0;

	for (unsigned i = 0; !rc && i < BY_COUNT; i++) {
		const char *name = by_names[i];

		if (!(subject->answered_by & 1u << i))
			continue;
		if (!name)
			name = backends[i]->name;
		rc = buf_printf(text, "%s%s", is_first ? "" : ", ", name);
		is_first = false;
	}
	return rc;
}

/* ---------------------------------------------------------------- the cache */

/* What tells a module's build from all others, from the dump alone, and where the dump has its files: which ones
 * were believed about that build was whose dump said so to choose. 1, 0: nothing tells it; or -ERR_NOMEM. */
static int build_key(const struct sources *sources, const struct module *module, struct buf *key)
{
	char guid[33] = "";
	int rc;

	if (!module->has_identity || (!build_guid_is_known(module->pdb_guid, guid) &&
					     !(module->timestamp && module->checksum)))
		return 0;
	rc = buf_printf(key, NAMES_FORM "build%s %llx %lx %lx %s %lx %zx ",
		sources->options.no_demangle ? " raw" : "", (unsigned long long)module->size_bytes,
		(unsigned long)module->timestamp, (unsigned long)module->checksum, guid,
		(unsigned long)module->pdb_age, strlen(module->path));
	if (!rc)
		rc = buf_add_text(key, module->path);
	if (!rc && module->pdb)
		rc = buf_printf(key, " %s", module->pdb);
	return rc ? rc : 1;
}

static int add_file(struct buf *key, const char *path)
{
	struct os_file file;
	uint64_t size;

	if (!path)
		return buf_add_text(key, " -");
	if (os_open(&file, path, NULL))
		return buf_add_text(key, " ?");
	size = os_size(&file);
	os_close(&file);
	return buf_printf(key, " %llx ", (unsigned long long)size) ? -ERR_NOMEM :
								     buf_add_text(key, path);
}

/* What tells the files that were found for it from all others. As above. */
static int files_key(
	const struct sources *sources, const struct sym_module *subject, struct buf *key)
{
	const struct module_files *files = &subject->files;
	const struct pe_image *pe = files->pe;
	int rc;

	/* Files of one size at one path may still be two builds. */
	if (files->is_mismatch || (!files->guid[0] && !(pe && pe->timestamp && pe->checksum)))
		return 0;
	rc = buf_printf(key, NAMES_FORM "files%s %s %lx",
		sources->options.no_demangle ? " raw" : "", files->guid, (unsigned long)files->age);
	if (!rc && pe)
		rc = buf_printf(key, " %lx %lx %lx", (unsigned long)pe->timestamp,
			(unsigned long)pe->checksum, (unsigned long)pe->size_of_image);
	if (!rc)
		rc = add_file(key, files->image);
	if (!rc)
		rc = add_file(key, files->pdb);
	return rc ? rc : 1;
}

static struct name_cache *open_cache(struct sources *sources)
{
	if (!sources->is_cache_tried && !sources->options.no_cache)
		sources->cache = name_cache_open(NULL, NAME_CACHE_BYTES);
	sources->is_cache_tried = true;
	return sources->cache;
}

/* Takes what the cache has under the key for those without an answer. */
static void ask_cache(const struct sources *sources, const char *key, struct sym_module *subject,
	struct lookup *lookups, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct lookup *lookup = &lookups[i];

		if (lookup->is_answered ||
			!name_cache_find(sources->cache, key, lookup->rva, &lookup->found))
			continue;
		lookup->is_answered = true;
		if (!strcmp(lookup->found.list[0].function, no_name))
			lookup->found = (struct symbols){0};
		else
			answered(subject, BY_CACHE);
	}
}

static void remember(struct sources *sources, const char *key, const struct lookup *lookup)
{
	static const struct symbol none = {.function = no_name};
	static const struct symbols nothing = {&none, 1};

	name_cache_add(
		sources->cache, key, lookup->rva, lookup->found.count ? &lookup->found : &nothing);
}

/* ---------------------------------------------------------------- backends and tables */

static int by_of(const char *table)
{
	for (int i = BY_SYMBOLS; i < BY_COUNT; i++) {
		if (!strcmp(table, by_names[i]))
			return i;
	}
	return BY_EXPORTS;
}

/* Whether another file or another helper could make it no better. */
static bool is_complete(const struct lookup *lookup)
{
	for (size_t i = 0; i < lookup->found.count; i++) {
		if (!lookup->found.list[i].line)
			return false;
	}
	return lookup->found.count > 0;
}

static bool has_line(const struct lookup *lookup)
{
	for (size_t i = 0; i < lookup->found.count; i++) {
		if (lookup->found.list[i].line)
			return true;
	}
	return false;
}

/* Those of the lookups that nobody answered yet, moved together; as many as are returned. */
static size_t take_open(const struct lookup *lookups, size_t count, struct lookup *open)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (!lookups[i].is_answered)
			open[kept++] = (struct lookup){.rva = lookups[i].rva};
	}
	return kept;
}

static void give_back(struct lookup *lookups, size_t count, const struct lookup *open)
{
	for (size_t i = 0; i < count; i++) {
		if (!lookups[i].is_answered)
			lookups[i] = *open++;
	}
}

/* What is being asked about one subject, and how far it got. */
struct lookup_batch {
	struct sources *sources;
	struct sym_module *subject;
	struct arena *arena;
	const char *build, *files; /* keys of the cache, or NULL */
	struct lookup *open;
	size_t count;
	/* By lookup: the number of the backend that it is named by, and how many backends answered. */
	unsigned char *given_by, *answer_count;
};

/* What the cache is to remember it by, or NULL. A line can only come from the right debug information; where
 * some are left out, as a helper is known to have them wrong, a later one may have them. For all else every
 * backend must have said what it knows, or another time there may be more. */
static const char *key_of(const struct lookup_batch *round, size_t i)
{
	const struct sources *sources = round->sources;

	if (!sources->cache || round->subject->files.is_mismatch)
		return NULL;
	if (is_complete(&round->open[i]))
		return round->build ? round->build : round->files;
	if (has_line(&round->open[i]))
		return NULL;
	return round->answer_count[i] == sources->backend_count ? round->files : NULL;
}

/* Decides what each is called, and remembers it. */
static int decide(struct lookup_batch *round, size_t i)
{
	struct lookup *lookup = &round->open[i];
	unsigned given_by = round->given_by[i];
	const char *table, *key;
	int rc = choose_name(round->subject, lookup,
		given_by < BACKENDS_MAX ? backends[given_by] : NULL, round->arena, &table);

	if (rc)
		return rc;
	if (lookup->found.count)
		answered(round->subject, table ? by_of(table) : (int)given_by);
	lookup->is_answered = true;
	key = key_of(round, i);
	if (key)
		remember(round->sources, key, lookup);
	return 0;
}

static int ask_backend(struct lookup_batch *round, size_t number)
{
	struct lookup *open = round->open;
	int rc;

	for (size_t i = 0; i < round->count; i++)
		open[i].is_answered = false;
	rc = backends[number]->resolve(
		round->sources->backends[number], round->subject, open, round->count, round->arena);
	for (size_t i = 0; i < round->count; i++) {
		round->answer_count[i] += open[i].is_answered;
		if (open[i].found.count && round->given_by[i] == BACKENDS_MAX)
			round->given_by[i] = (unsigned char)number;
	}
	return rc;
}

static int ask_all(struct lookup_batch *round)
{
	struct sources *sources = round->sources;
	bool is_cancelled = false;
	int rc = 0;

	for (size_t i = 0; !rc && !is_cancelled && i < sources->backend_count; i++) {
		rc = ask_backend(round, i);
		is_cancelled = listener_is_cancelled(&sources->options);
	}
	for (size_t i = 0; !rc && i < round->count; i++) {
		if (round->open[i].found.count || !is_cancelled)
			rc = decide(round, i);
		else
			round->open[i].is_answered = false; /* who knows what it would have been */
	}
	return rc;
}

static int ask_files(struct lookup_batch *round, struct lookup *lookups, size_t count)
{
	int rc = -ERR_NOMEM;

	round->open = malloc((count + 1) * sizeof(*round->open));
	round->given_by = malloc(count + 1);
	round->answer_count = calloc(count + 1, 1);
	if (round->open && round->given_by && round->answer_count) {
		memset(round->given_by, BACKENDS_MAX, count + 1);
		round->count = take_open(lookups, count, round->open);
		rc = ask_all(round);
	}
	if (!rc)
		give_back(lookups, count, round->open);
	tables_rest(round->subject->tables);
	free(round->answer_count);
	free(round->given_by);
	free(round->open);
	return rc;
}

static bool all_answered(const struct lookup *lookups, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!lookups[i].is_answered)
			return false;
	}
	return true;
}

int sources_ask(struct sources *sources, struct sym_module *subject, struct lookup *lookups,
	size_t count, struct arena *arena)
{
	struct lookup_batch round = {.sources = sources, .subject = subject, .arena = arena};
	struct buf build, files;
	int has_build = 0, has_files = 0, rc = 0;

	buf_init(&build);
	buf_init(&files);
	if (open_cache(sources))
		rc = has_build = build_key(sources, subject->module, &build);
	if (has_build == 1)
		ask_cache(sources, build.data, subject, lookups, count);
	if (rc < 0 || all_answered(lookups, count))
		goto out;
	rc = finder_find(sources->finder, subject->module, &subject->files);
	if (!rc && sources->cache)
		rc = has_files = files_key(sources, subject, &files);
	if (has_files == 1)
		ask_cache(sources, files.data, subject, lookups, count);
	if (rc < 0 || all_answered(lookups, count))
		goto out;
	round.build = has_build == 1 ? build.data : NULL;
	round.files = has_files == 1 ? files.data : NULL;
	rc = ask_files(&round, lookups, count);
out:
	buf_release(&files);
	buf_release(&build);
	return rc < 0 ? rc : 0;
}
