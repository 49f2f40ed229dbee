#include "symbolize/symbolize.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "symbolize/backend/undname.h"
#include "symbolize/lookup/lookup.h"
#include "symbolize/names.h"

struct symbolizer {
	struct arena arena; /* names */
	struct table keys; /* what tells a build from others -> index into subjects */
	struct u64map answers; /* place_number() -> index into answer_list */
	struct symbols *answer_list;
	size_t answer_count, answer_cap;
	struct sym_module **subjects;
	size_t subject_count, subject_cap;
	struct table
		undnames; /* a name that Microsoft's compiler decorated -> index into undname_list */
	const char **undname_list; /* what it means; NULL: nobody can say */
	const char **decorated; /* the same names as they are */
	size_t undname_count, undname_cap, decorated_cap;
	size_t asked_count; /* of them; the others wait for undname_find() */
	struct sources sources;
	struct buf by; /* what symbolizer_story() said last */
	const struct module *last; /* within one call: most queries follow one of the same module */
	uint32_t last_subject;
};

/* What an address means, whatever the dump and wherever it had loaded the image. */
struct batch_place {
	uint32_t subject, rva;
};

struct item {
	struct batch_place place;
	const struct module *module;
};

struct symbolizer *symbolizer_new(const struct symbol_options *options, struct err *err)
{
	static const struct symbol_options defaults = {0};
	struct symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));

	if (!symbolizer) {
		err_set(err, ERR_NOMEM, NULL, NULL);
		return NULL;
	}
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

static void subject_free(struct sym_module *subject)
{
	tables_free(subject->tables);
	module_files_release(&subject->files);
	free(subject);
}

void symbolizer_free(struct symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	sources_release(&symbolizer->sources); /* before the names that it may remember go */
	for (size_t i = 0; i < symbolizer->subject_count; i++)
		subject_free(symbolizer->subjects[i]);
	free(symbolizer->subjects);
	free(symbolizer->answer_list);
	table_release(&symbolizer->keys);
	table_release(&symbolizer->undnames);
	free(symbolizer->undname_list);
	free(symbolizer->decorated);
	u64map_release(&symbolizer->answers);
	buf_release(&symbolizer->by);
	arena_release(&symbolizer->arena);
	free(symbolizer);
}

/* Both slashes mean the same behind a drive's letter, and only there. */
static void one_spelling(char *path)
{
	for (bool has_drive = path[0] && path[1] == ':'; has_drive && *path; path++) {
		if (*path == '/')
			*path = '\\';
	}
}

/* The same for two modules exactly when they are one build of one file, with one PDB. */
static int module_key(struct buf *key, const struct module *module)
{
	const char *pdb = module->pdb ? module->pdb : "";
	size_t at;
	int rc = buf_printf(key, "%llx %d %lx %lx %s %lx %zx %s ",
		(unsigned long long)module->size_bytes, module->has_identity,
		(unsigned long)module->timestamp, (unsigned long)module->checksum,
		module->pdb_guid ? module->pdb_guid : "-", (unsigned long)module->pdb_age,
		strlen(pdb), pdb);

	at = key->len;
	if (!rc)
		rc = buf_add_text(key, module->path);
	if (!rc)
		one_spelling(key->data + at);
	return rc;
}

static int add_subject(struct symbolizer *symbolizer, const struct module *module,
	const struct buf *key, uint32_t *index)
{
	struct sym_module *subject = calloc(1, sizeof(*subject));

	if (subject)
		subject->tables =
			tables_new(&subject->files, symbolizer->sources.options.no_demangle);
	if (!subject || !subject->tables ||
		array_grow((void **)&symbolizer->subjects, &symbolizer->subject_cap,
			symbolizer->subject_count, sizeof(struct sym_module *)) ||
		table_add(&symbolizer->keys, key->data, key->len, symbolizer->subject_count)) {
		if (subject)
			subject_free(subject);
		return -ERR_NOMEM;
	}
	subject->number = (uint32_t)symbolizer->subject_count;
	subject->module = module;
	*index = subject->number;
	symbolizer->subjects[symbolizer->subject_count++] = subject;
	return 0;
}

static int subject_of(struct symbolizer *symbolizer, const struct module *module, uint32_t *index)
{
	struct buf key;
	uint64_t *known;
	int rc;

	if (module == symbolizer->last) {
		*index = symbolizer->last_subject;
		return 0;
	}
	buf_init(&key);
	rc = module_key(&key, module);
	known = rc ? NULL : table_find(&symbolizer->keys, key.data, key.len);
	if (known)
		*index = (uint32_t)*known;
	else if (!rc)
		rc = add_subject(symbolizer, module, &key, index);
	buf_release(&key);
	if (!rc) {
		symbolizer->last = module;
		symbolizer->last_subject = *index;
		/* That of an earlier call may be gone. */
		symbolizer->subjects[*index]->module = module;
	}
	return rc;
}

/* ---------------------------------------------------------------- names of Microsoft's compiler */

/* Notes the decorated names, to have them read all at once. 0 or -ERR_NOMEM. */
static int note_decorated(struct symbolizer *symbolizer, const struct symbols *found)
{
	size_t *count = &symbolizer->undname_count;

	for (size_t i = 0; i < found->count && !symbolizer->sources.options.no_demangle; i++) {
		const char *name = found->list[i].function;

		if (name[0] != '?' || table_find(&symbolizer->undnames, name, strlen(name)))
			continue;
		if (array_grow((void **)&symbolizer->undname_list, &symbolizer->undname_cap, *count,
			    sizeof(*symbolizer->undname_list)) ||
			array_grow((void **)&symbolizer->decorated, &symbolizer->decorated_cap,
				*count, sizeof(*symbolizer->decorated)))
			return -ERR_NOMEM;
		name = arena_text(&symbolizer->arena, name, strlen(name));
		if (!name || table_add(&symbolizer->undnames, name, strlen(name), *count))
			return -ERR_NOMEM;
		symbolizer->decorated[*count] = name;
		symbolizer->undname_list[(*count)++] = NULL;
	}
	return 0;
}

static int read_decorated(struct symbolizer *symbolizer)
{
	size_t from = symbolizer->asked_count, count = symbolizer->undname_count - from;

	symbolizer->asked_count += count;
	return count ? undname_find(symbolizer->decorated + from, symbolizer->undname_list + from,
			       count, &symbolizer->arena, &symbolizer->sources.options) :
		       0;
}

/* Puts what they mean into a copy of the chain. 0 or -ERR_NOMEM. */
static int show_undecorated(struct symbolizer *symbolizer, struct symbols *found)
{
	struct symbol *list = NULL;

	for (size_t i = 0; i < found->count; i++) {
		const char *name = found->list[i].function, *text;
		const uint64_t *index =
			name[0] == '?' ? table_find(&symbolizer->undnames, name, strlen(name)) :
					 NULL;

		text = index ? symbolizer->undname_list[*index] : NULL;
		if (!text)
			continue;
		if (!list) {
			list = arena_alloc(&symbolizer->arena, found->count * sizeof(*list));
			if (!list)
				return -ERR_NOMEM;
			memcpy(list, found->list, found->count * sizeof(*list));
		}
		list[i].function = text;
	}
	if (list)
		found->list = list;
	return 0;
}

/* ---------------------------------------------------------------- queries */

static bool names_know(const struct symbol_query *query, struct symbols *found)
{
	*found = query->names ? symbol_names_find(query->names, query->addr) : (struct symbols){0};
	return found->count > 0;
}

/* 1 and the place that a query asks about, 0 when there is none, or -ERR_NOMEM. */
static int place_of(
	struct symbolizer *symbolizer, const struct symbol_query *query, struct batch_place *place)
{
	const struct module *module = query->module;
	uint64_t rva;
	int rc;

	if (!module || query->addr <= module->base)
		return 0;
	rva = query->addr - 1 - module->base;
	if (rva >= module->size_bytes || rva >= UINT32_MAX)
		return 0;
	*place = (struct batch_place){.rva = (uint32_t)rva};
	rc = subject_of(symbolizer, module, &place->subject);
	return rc ? rc : 1;
}

static int by_place(const void *a, const void *b)
{
	const struct batch_place *x = &((const struct item *)a)->place;
	const struct batch_place *y = &((const struct item *)b)->place;

	if (x->subject != y->subject)
		return x->subject < y->subject ? -1 : 1;
	return x->rva < y->rva ? -1 : x->rva > y->rva;
}

static bool same_place(const struct batch_place *a, const struct batch_place *b)
{
	return a->subject == b->subject && a->rva == b->rva;
}

static uint64_t place_number(const struct batch_place *place)
{
	return (uint64_t)place->subject << 32 | place->rva;
}

/* The places nobody asked about before, sorted, each once. Returns how many, or -ERR_NOMEM. */
static int64_t new_places(struct symbolizer *symbolizer, const struct symbol_query *queries,
	size_t count, struct item *items)
{
	size_t found = 0, kept = 0;
	struct symbols named;
	bool is_sorted = true; /* as it is when the queries are, which saves much time */
	uint32_t known;

	for (size_t i = 0; i < count; i++) {
		struct batch_place place;
		int rc = names_know(&queries[i], &named) ?
				 note_decorated(symbolizer, &named) :
				 place_of(symbolizer, &queries[i], &place);

		if (rc < 0)
			return rc;
		if (!rc || u64map_find(&symbolizer->answers, place_number(&place), &known))
			continue;
		items[found++] = (struct item){place, queries[i].module};
		is_sorted &= found < 2 || by_place(&items[found - 2], &items[found - 1]) <= 0;
	}
	if (!is_sorted)
		qsort(items, found, sizeof(*items), by_place);
	for (size_t i = 0; i < found; i++) {
		if (!kept || !same_place(&items[kept - 1].place, &items[i].place))
			items[kept++] = items[i];
	}
	return (int64_t)kept;
}

/* File names as they are shown: without what --strip-path says. 0 or -ERR_NOMEM. */
static int strip_files(struct symbolizer *symbolizer, struct symbols *found)
{
	const struct symbol_options *options = &symbolizer->sources.options;
	struct symbol *list;

	if (!options->strip_count || !found->count)
		return 0;
	list = arena_alloc(&symbolizer->arena, found->count * sizeof(*list));
	if (!list)
		return -ERR_NOMEM;
	for (size_t i = 0; i < found->count; i++) {
		list[i] = found->list[i];
		if (list[i].file)
			list[i].file = names_strip_path(
				list[i].file, options->strip_paths, options->strip_count);
	}
	found->list = list;
	return 0;
}

static int add_answers(struct symbolizer *symbolizer, const struct item *items,
	const struct lookup *lookups, size_t count)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < count; i++) {
		uint32_t number = (uint32_t)symbolizer->answer_count;

		if (!lookups[i].is_answered)
			continue;
		if (symbolizer->answer_count >= UINT32_MAX ||
			array_grow((void **)&symbolizer->answer_list, &symbolizer->answer_cap,
				symbolizer->answer_count, sizeof(*symbolizer->answer_list)) ||
			u64map_put(&symbolizer->answers, place_number(&items[i].place), &number) <
				0)
			rc = -ERR_NOMEM;
		if (!rc) {
			symbolizer->answer_list[symbolizer->answer_count++] = lookups[i].found;
			rc = strip_files(
				symbolizer, &symbolizer->answer_list[symbolizer->answer_count - 1]);
			rc = rc ? rc : note_decorated(symbolizer, &lookups[i].found);
		}
	}
	return rc;
}

/* All items are of one subject. */
static int resolve_subject(struct symbolizer *symbolizer, const struct item *items, size_t count)
{
	struct sym_module *subject = symbolizer->subjects[items->place.subject];
	struct lookup *lookups = calloc(count, sizeof(*lookups));
	int rc = lookups ? 0 : -ERR_NOMEM;

	for (size_t i = 0; lookups && i < count; i++)
		lookups[i].rva = items[i].place.rva;
	if (!rc)
		rc = sources_ask(&symbolizer->sources, subject, lookups, count, &symbolizer->arena);
	if (!rc) /* that there is no name is an answer too */
		rc = add_answers(symbolizer, items, lookups, count);
	free(lookups);
	return rc;
}

static int answer(struct symbolizer *symbolizer, struct symbol_query *query)
{
	struct batch_place place;
	uint32_t index;
	int rc;

	if (names_know(query, &query->found)) {
		rc = strip_files(symbolizer, &query->found);
		return rc ? rc : show_undecorated(symbolizer, &query->found);
	}
	rc = place_of(symbolizer, query, &place);
	if (rc <= 0)
		return rc;
	if (u64map_find(&symbolizer->answers, place_number(&place), &index))
		query->found = symbolizer->answer_list[index];
	return 0;
}

static int resolve_all(struct symbolizer *symbolizer, const struct item *items, size_t count)
{
	struct sources *sources = &symbolizer->sources;
	int rc = 0;

	sources->total_count = count;
	sources->told_count = 0;
	for (size_t from = 0, to; !rc && from < count; from = to) {
		const struct module *module = items[from].module;

		for (to = from + 1; to < count; to++) {
			if (items[to].place.subject != items[from].place.subject)
				break;
		}
		sources->done_count = from;
		listener_progress(&sources->options, module_path_base(module->path), 0, to - from);
		if (listener_is_cancelled(&sources->options))
			break;
		rc = resolve_subject(symbolizer, items + from, to - from);
	}
	sources->done_count = count;
	if (!rc && count)
		listener_progress(&sources->options,
			module_path_base(items[count - 1].module->path), 0, count);
	return rc;
}

int symbolizer_resolve(
	struct symbolizer *symbolizer, struct symbol_query *queries, size_t count, struct err *err)
{
	struct item *items = malloc((count + 1) * sizeof(*items));
	size_t had = symbolizer->answer_count;
	int64_t found;
	int rc;

	symbolizer->last = NULL;
	found = items ? new_places(symbolizer, queries, count, items) : -ERR_NOMEM;
	rc = found < 0 ? -ERR_NOMEM : 0;
	if (found > 0) {
		listener_busy(&symbolizer->sources.options, true);
		rc = u64map_reserve(&symbolizer->answers, (size_t)found);
		if (!rc)
			rc = resolve_all(symbolizer, items, (size_t)found);
		listener_busy(&symbolizer->sources.options, false);
	}
	if (!rc)
		rc = read_decorated(symbolizer);
	for (size_t i = had; !rc && i < symbolizer->answer_count; i++)
		rc = show_undecorated(symbolizer, &symbolizer->answer_list[i]);
	for (size_t i = 0; !rc && i < count; i++)
		rc = answer(symbolizer, &queries[i]);
	free(items);
	return rc ? err_set(err, ERR_NOMEM, NULL, NULL) : 0;
}

const char *symbolizer_trouble(const struct symbolizer *symbolizer)
{
	return sources_trouble(&symbolizer->sources);
}

int symbolizer_story(struct symbolizer *symbolizer, const struct module *module,
	struct symbol_status *story, struct err *err)
{
	struct sym_module *subject;
	uint32_t index;
	int rc;

	symbolizer->last = NULL;
	rc = subject_of(symbolizer, module, &index);
	subject = rc ? NULL : symbolizer->subjects[index];
	if (!rc)
		rc = finder_find(symbolizer->sources.finder, module, &subject->files);
	buf_clear(&symbolizer->by);
	if (!rc)
		rc = sources_say(subject, &symbolizer->by);
	if (rc)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	*story = (struct symbol_status){.image = subject->files.image,
		.debug = subject->files.pdb,
		.by = symbolizer->by.len ? symbolizer->by.data : "",
		.reason = subject->files.reason.len ? subject->files.reason.data : ""};
	return 0;
}
