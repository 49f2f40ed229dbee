/*
 * The symbolizer: maps queries to locations, resolves each new location once using sources.c, one
 * module at a time, and stores the answers. Names are made readable when they are stored.
 */
#include "symbolize/symbolize.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/sorted.h"
#include "symbolize/backend/undname.h"
#include "symbolize/lookup/lookup.h"
#include "symbolize/names.h"

struct symbolizer {
	struct arena arena; /* holds the names */
	struct table keys; /* maps the identity of a build to an index into subjects */
	struct u64map answers; /* maps a location to an index into answer_list */
	struct symbols *answer_list;
	size_t answer_count, answer_cap;
	struct sym_module **subjects;
	size_t subject_count, subject_cap;
	/* Decorated names of Microsoft's compiler. */
	struct table undnames; /* maps a decorated name to an index into both lists */
	const char **decorated;
	const char **undecorated; /* NULL: not known */
	size_t undname_count, undname_cap;
	size_t asked_count; /* number of names already passed to undname_find() */
	struct sources sources;
	struct buf by; /* string returned by the last symbolizer_explain() */
	/* The previous query's module and subject, within one call: most queries have the same
	 * module. */
	const struct module *last;
	struct sym_module *last_subject;
};

/* A location is an address that does not depend on dump and load base: the upper half is the number
 * of a subject, the lower half is an rva. */
#define NO_LOCATION UINT64_MAX

static uint32_t location_subject(uint64_t location)
{
	return (uint32_t)(location >> 32);
}

struct symbolizer *symbolizer_new(const struct symbol_options *options, struct err *err)
{
	static const struct symbol_options defaults = {0};
	struct symbolizer *symbolizer = xcalloc(1, sizeof(*symbolizer));

	arena_init(&symbolizer->arena);
	table_init(&symbolizer->keys);
	table_init(&symbolizer->undnames);
	u64map_init(&symbolizer->answers);
	buf_init(&symbolizer->by);
	if (!sources_init(&symbolizer->sources, options ? options : &defaults, err))
		return symbolizer;
	symbolizer_free(symbolizer);
	return NULL;
}

void symbolizer_free(struct symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	/* must come first: it writes names that are freed below */
	sources_release(&symbolizer->sources);
	for (size_t i = 0; i < symbolizer->subject_count; i++) {
		tables_free(symbolizer->subjects[i]->tables);
		module_files_release(&symbolizer->subjects[i]->files);
		free(symbolizer->subjects[i]);
	}
	free(symbolizer->subjects);
	free(symbolizer->answer_list);
	table_release(&symbolizer->keys);
	table_release(&symbolizer->undnames);
	free(symbolizer->undecorated);
	free(symbolizer->decorated);
	u64map_release(&symbolizer->answers);
	buf_release(&symbolizer->by);
	arena_release(&symbolizer->arena);
	free(symbolizer);
}

/* Composes a key. Two modules have equal keys if and only if they are the same build of the same
 * file, with the same PDB. */
static void module_key(struct buf *key, const struct module *module)
{
	const char *pdb = module->pdb ? module->pdb : "";
	bool has_drive = module->path[0] && module->path[1] == ':';
	size_t at;

	buf_printf(key, "%llx %d %lx %lx %s %lx %zx %s ", (unsigned long long)module->size_bytes,
		module->has_identity, (unsigned long)module->timestamp,
		(unsigned long)module->checksum, module->pdb_guid ? module->pdb_guid : "-",
		(unsigned long)module->pdb_age, strlen(pdb), pdb);
	at = key->len;
	buf_add_text(key, module->path);
	/* '/' equals '\\' only in a path with a drive letter. */
	for (; has_drive && at < key->len; at++) {
		if (key->data[at] == '/')
			key->data[at] = '\\';
	}
}

static struct sym_module *add_subject(struct symbolizer *symbolizer)
{
	struct sym_module *subject = xcalloc(1, sizeof(*subject));

	subject->tables = tables_new(&subject->files, symbolizer->sources.options.no_demangle);
	subject->number = (uint32_t)symbolizer->subject_count;
	array_grow((void **)&symbolizer->subjects, &symbolizer->subject_cap,
		symbolizer->subject_count, sizeof(struct sym_module *));
	return symbolizer->subjects[symbolizer->subject_count++] = subject;
}

static struct sym_module *subject_of(struct symbolizer *symbolizer, const struct module *module)
{
	struct sym_module *subject;
	const uint64_t *known;
	struct buf key;

	if (module == symbolizer->last)
		return symbolizer->last_subject;
	buf_init(&key);
	module_key(&key, module);
	known = table_find(&symbolizer->keys, key.data, key.len);
	subject = known ? symbolizer->subjects[*known] : add_subject(symbolizer);
	if (!known)
		table_add(&symbolizer->keys, key.data, key.len, subject->number);
	buf_release(&key);
	subject->module = module; /* an earlier call's module may have been freed */
	symbolizer->last = module;
	return symbolizer->last_subject = subject;
}

/* ---------------------------------------------------------------- readable names */

/* Collects decorated names, so that all names can be undecorated at once. */
static void note_decorated(struct symbolizer *symbolizer, const struct symbols *found)
{
	size_t *count = &symbolizer->undname_count;

	for (size_t i = 0; i < found->count && !symbolizer->sources.options.no_demangle; i++) {
		const char *name = found->list[i].function;

		if (name[0] != '?' || table_find(&symbolizer->undnames, name, strlen(name)))
			continue;
		table_add(&symbolizer->undnames, name, strlen(name), *count);
		array_grow((void **)&symbolizer->decorated, &symbolizer->undname_cap, *count,
			sizeof(*symbolizer->decorated));
		symbolizer->decorated[(*count)++] =
			arena_text(&symbolizer->arena, name, strlen(name));
	}
}

static void read_decorated(struct symbolizer *symbolizer)
{
	size_t from = symbolizer->asked_count, count = symbolizer->undname_count - from;

	if (!count)
		return;
	symbolizer->undecorated = xrealloc(symbolizer->undecorated,
		symbolizer->undname_count * sizeof(*symbolizer->undecorated));
	undname_find(symbolizer->decorated + from, symbolizer->undecorated + from, count,
		&symbolizer->arena, &symbolizer->sources.options);
	symbolizer->asked_count += count;
}

/* Returns a function's name in the spelling common to all backends. */
static const char *shown_name(struct symbolizer *symbolizer, const char *name)
{
	const uint64_t *index;
	struct buf text;

	if (symbolizer->sources.options.no_demangle)
		return name;
	if (name[0] == '_' && is_mangled(name)) {
		/* A name is still mangled if it comes from a dump to which another run added names,
		 * or if only gcc's demangler can demangle it. */
		buf_init(&text);
		if (demangle_name(name, &text) == 1)
			name = arena_text(&symbolizer->arena, text.data, text.len);
		buf_release(&text);
	}
	if (name[0] != '?')
		return names_plain(&symbolizer->arena, name);
	index = table_find(&symbolizer->undnames, name, strlen(name));
	return index && symbolizer->undecorated[*index] ? symbolizer->undecorated[*index] : name;
}

/* Replaces the chain with a copy that has readable names, and applies --strip-path to file
 * names. */
static void show(struct symbolizer *symbolizer, struct symbols *found)
{
	const struct symbol_options *options = &symbolizer->sources.options;
	struct symbol *list;
	bool is_plain = !options->strip_count;

	for (size_t i = 0; is_plain && i < found->count; i++)
		is_plain = !strpbrk(found->list[i].function, "?.@") &&
			   !is_mangled(found->list[i].function);
	if (is_plain)
		return;
	list = arena_alloc(&symbolizer->arena, found->count * sizeof(*list));
	for (size_t i = 0; i < found->count; i++) {
		list[i] = found->list[i];
		list[i].function = shown_name(symbolizer, list[i].function);
		if (list[i].function != found->list[i].function)
			list[i].recorded_function = found->list[i].function;
		if (list[i].file)
			list[i].file = names_strip_path(
				list[i].file, options->strip_paths, options->strip_count);
		if (list[i].file != found->list[i].file)
			list[i].recorded_file = found->list[i].file;
	}
	found->list = list;
}

/* ---------------------------------------------------------------- queries */

static bool find_in_dump(const struct symbol_query *query, struct symbols *found)
{
	*found = query->names ? symbol_names_find(query->names, query->addr) : (struct symbols){0};
	return found->count > 0;
}

static uint64_t location_of(struct symbolizer *symbolizer, const struct symbol_query *query)
{
	const struct module *module = query->module;
	uint64_t rva;

	if (!module || query->addr <= module->base)
		return NO_LOCATION;
	rva = query->addr - 1 - module->base;
	if (rva >= module->size_bytes || rva >= UINT32_MAX)
		return NO_LOCATION;
	return (uint64_t)subject_of(symbolizer, module)->number << 32 | rva;
}

/* Collects the locations that have no answer yet, sorted and without duplicates. Returns the number
 * of locations. */
static size_t new_locations(struct symbolizer *symbolizer, const struct symbol_query *queries,
	size_t count, uint64_t *locations)
{
	size_t found = 0;
	struct symbols named;
	uint32_t known;

	for (size_t i = 0; i < count; i++) {
		uint64_t location;

		if (find_in_dump(&queries[i], &named)) {
			note_decorated(symbolizer, &named);
			continue;
		}
		location = location_of(symbolizer, &queries[i]);
		if (location == NO_LOCATION || u64map_find(&symbolizer->answers, location, &known))
			continue;
		locations[found++] = location;
	}
	return sorted_unique(locations, found);
}

/* Resolves locations that belong to one subject. */
static void resolve_subject(struct symbolizer *symbolizer, const uint64_t *locations, size_t count)
{
	struct sym_module *subject = symbolizer->subjects[location_subject(*locations)];
	struct lookup *lookups = xcalloc(count, sizeof(*lookups));

	for (size_t i = 0; i < count; i++)
		lookups[i].rva = (uint32_t)locations[i];
	sources_resolve(&symbolizer->sources, subject, lookups, count, &symbolizer->arena);
	for (size_t i = 0; i < count; i++) {
		uint32_t number = (uint32_t)symbolizer->answer_count;

		if (!lookups[i].is_answered) /* "no name" is also an answer */
			continue;
		u64map_add(&symbolizer->answers, locations[i], &number);
		array_grow((void **)&symbolizer->answer_list, &symbolizer->answer_cap,
			symbolizer->answer_count, sizeof(*symbolizer->answer_list));
		symbolizer->answer_list[symbolizer->answer_count++] = lookups[i].found;
		note_decorated(symbolizer, &lookups[i].found);
	}
	free(lookups);
}

static void print_progress(const struct symbolizer *symbolizer, uint32_t subject, size_t total)
{
	listener_progress(&symbolizer->sources.options,
		module_path_base(symbolizer->subjects[subject]->module->path), 0, total);
}

static void resolve_locations(
	struct symbolizer *symbolizer, const uint64_t *locations, size_t count)
{
	struct sources *sources = &symbolizer->sources;

	sources->counts = (struct symbol_counts){.total = count};
	for (size_t from = 0, to; from < count; from = to) {
		uint32_t subject = location_subject(locations[from]);

		for (to = from + 1; to < count && location_subject(locations[to]) == subject; to++)
			;
		sources->counts.done = from;
		print_progress(symbolizer, subject, to - from);
		if (listener_is_cancelled(&sources->options))
			break;
		resolve_subject(symbolizer, locations + from, to - from);
	}
	sources->counts.done = count;
	print_progress(symbolizer, location_subject(locations[count - 1]), count);
}

void symbolizer_resolve(struct symbolizer *symbolizer, struct symbol_query *queries, size_t count)
{
	uint64_t *locations = xmalloc(count * sizeof(*locations));
	size_t had = symbolizer->answer_count, found;
	uint32_t index;

	symbolizer->last = NULL;
	found = new_locations(symbolizer, queries, count, locations);
	if (found) {
		listener_busy(&symbolizer->sources.options, true);
		u64map_reserve(&symbolizer->answers, found);
		resolve_locations(symbolizer, locations, found);
		listener_busy(&symbolizer->sources.options, false);
	}
	free(locations);
	read_decorated(symbolizer);
	for (size_t i = had; i < symbolizer->answer_count; i++)
		show(symbolizer, &symbolizer->answer_list[i]);
	for (size_t i = 0; i < count; i++) {
		struct symbol_query *query = &queries[i];

		if (find_in_dump(query, &query->found))
			show(symbolizer, &query->found);
		else if (u64map_find(&symbolizer->answers, location_of(symbolizer, query), &index))
			query->found = symbolizer->answer_list[index];
	}
}

const char *symbolizer_trouble(const struct symbolizer *symbolizer)
{
	return sources_trouble(&symbolizer->sources);
}

void symbolizer_explain(
	struct symbolizer *symbolizer, const struct module *module, struct symbol_status *story)
{
	struct sym_module *subject;

	symbolizer->last = NULL;
	subject = subject_of(symbolizer, module);
	finder_find(symbolizer->sources.finder, module, &subject->files);
	buf_clear(&symbolizer->by);
	sources_describe(subject, &symbolizer->by);
	*story = (struct symbol_status){.image = subject->files.image,
		.debug = subject->files.pdb,
		.by = symbolizer->by.len ? symbolizer->by.data : "",
		.reason = subject->files.reason.len ? subject->files.reason.data : ""};
}
