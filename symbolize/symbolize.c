#include "symbolize/symbolize.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/buf.h"
#include "core/table.h"
#include "symbolize/backend.h"
#include "symbolize/image.h"
#include "symbolize/keep.h"

struct symbolizer {
	struct arena arena; /* names */
	struct table images; /* what tells a build from others -> index into list */
	struct table answers; /* struct place -> index into answer_list */
	struct symbols *answer_list;
	size_t answer_count, answer_cap;
	struct image *list;
	size_t image_count, image_cap;
	struct backend *backend;
	const struct module *last; /* within one call: most queries follow one of the same module */
	uint32_t last_image;
};

/* What an address means, whatever the dump and wherever it had loaded the image. */
struct place {
	uint32_t image, rva;
};

struct item {
	struct place place;
	const struct module *module;
};

struct symbolizer *symbolizer_new(struct err *err)
{
	struct symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));
	struct backend *backend = backend_new();

	if (!symbolizer || !backend) {
		free(symbolizer);
		if (backend)
			backend_free(backend);
		err_set(err, ERR_NOMEM, NULL, NULL);
		return NULL;
	}
	arena_init(&symbolizer->arena);
	table_init(&symbolizer->images);
	table_init(&symbolizer->answers);
	symbolizer->backend = backend;
	return symbolizer;
}

void symbolizer_free(struct symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	backend_free(symbolizer->backend);
	for (size_t i = 0; i < symbolizer->image_count; i++)
		image_release(&symbolizer->list[i]);
	free(symbolizer->list);
	free(symbolizer->answer_list);
	table_release(&symbolizer->images);
	table_release(&symbolizer->answers);
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

/* The same for two modules exactly when they are one build of one file. */
static int image_key(struct buf *key, const struct module *module)
{
	size_t at;
	int rc = buf_printf(key, "%llx %d %lx %lx %s %lx ", (unsigned long long)module->size_bytes,
		module->has_identity, (unsigned long)module->timestamp,
		(unsigned long)module->checksum, module->pdb_guid ? module->pdb_guid : "-",
		(unsigned long)module->pdb_age);

	at = key->len;
	if (!rc)
		rc = buf_add_text(key, module->path);
	if (!rc)
		one_spelling(key->data + at);
	return rc;
}

static int add_image(struct symbolizer *symbolizer, const struct buf *key, uint32_t *index)
{
	if (array_grow((void **)&symbolizer->list, &symbolizer->image_cap, symbolizer->image_count,
		    sizeof(*symbolizer->list)) ||
		table_add(&symbolizer->images, key->data, key->len, symbolizer->image_count))
		return -ERR_NOMEM;
	*index = (uint32_t)symbolizer->image_count;
	symbolizer->list[symbolizer->image_count++] = (struct image){0};
	return 0;
}

static int image_of(struct symbolizer *symbolizer, const struct module *module, uint32_t *index)
{
	struct buf key;
	uint64_t *known;
	int rc;

	if (module == symbolizer->last) {
		*index = symbolizer->last_image;
		return 0;
	}
	buf_init(&key);
	rc = image_key(&key, module);
	known = rc ? NULL : table_find(&symbolizer->images, key.data, key.len);
	if (known)
		*index = (uint32_t)*known;
	else if (!rc)
		rc = add_image(symbolizer, &key, index);
	buf_release(&key);
	if (!rc) {
		symbolizer->last = module;
		symbolizer->last_image = *index;
	}
	return rc;
}

static bool names_know(const struct symbol_query *query, struct symbols *found)
{
	*found = query->names ? symbol_names_find(query->names, query->addr) : (struct symbols){0};
	return found->count > 0;
}

/* 1 and the place that a query asks about, 0 when there is none, or -ERR_NOMEM. */
static int place_of(
	struct symbolizer *symbolizer, const struct symbol_query *query, struct place *place)
{
	const struct module *module = query->module;
	uint64_t rva;
	int rc;

	if (!module || query->addr <= module->base)
		return 0;
	rva = query->addr - 1 - module->base;
	if (rva >= module->size_bytes || rva >= UINT32_MAX)
		return 0;
	*place = (struct place){.rva = (uint32_t)rva};
	rc = image_of(symbolizer, module, &place->image);
	return rc ? rc : !symbolizer->list[place->image].is_absent;
}

static int by_place(const void *a, const void *b)
{
	const struct place *x = &((const struct item *)a)->place;
	const struct place *y = &((const struct item *)b)->place;

	if (x->image != y->image)
		return x->image < y->image ? -1 : 1;
	return x->rva < y->rva ? -1 : x->rva > y->rva;
}

static bool same_place(const struct place *a, const struct place *b)
{
	return a->image == b->image && a->rva == b->rva;
}

/* The places nobody asked about before, sorted, each once. Returns how many, or -ERR_NOMEM. */
static int64_t new_places(struct symbolizer *symbolizer, const struct symbol_query *queries,
	size_t count, struct item *items)
{
	size_t found = 0, kept = 0;
	struct symbols named;
	bool is_sorted = true; /* as it is when the queries are, which saves much time */

	for (size_t i = 0; i < count; i++) {
		struct place place;
		int rc = names_know(&queries[i], &named) ?
				 0 :
				 place_of(symbolizer, &queries[i], &place);

		if (rc < 0)
			return rc;
		if (!rc || table_find(&symbolizer->answers, &place, sizeof(place)))
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

/* A name from a table that knows only where functions begin may be that of another function far
 * below; one with a line comes from true debug information. */
static bool is_believable(const struct image *image, const struct lookup *lookup)
{
	const struct symbol *function = &lookup->found.list[lookup->found.count - 1];
	uint64_t end = (uint64_t)lookup->rva + 1;

	if (function->line)
		return true;
	return function->offset_bytes && function->offset_bytes <= end &&
	       image_reaches(image, (uint32_t)(end - function->offset_bytes), lookup->rva);
}

static int ask_tables(struct image *image, struct lookup *lookup, struct arena *arena)
{
	const struct pe_export *function = image_function_at(image, lookup->rva);
	struct symbol symbol;

	if (!function)
		return 0;
	symbol = (struct symbol){.function = function->name,
		.offset_bytes = (uint64_t)lookup->rva + 1 - function->rva};
	return symbols_keep(arena, &symbol, 1, &lookup->found);
}

static int ask_image(
	struct symbolizer *symbolizer, struct image *image, struct lookup *lookups, size_t count)
{
	int rc = backend_resolve(symbolizer->backend, image, lookups, count, &symbolizer->arena);

	for (size_t i = 0; !rc && i < count; i++) {
		if (lookups[i].found.count && !is_believable(image, &lookups[i]))
			lookups[i].found = (struct symbols){0};
		if (!lookups[i].found.count)
			rc = ask_tables(image, &lookups[i], &symbolizer->arena);
	}
	return rc;
}

static int add_answers(struct symbolizer *symbolizer, const struct item *items,
	const struct lookup *lookups, size_t count)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < count; i++) {
		rc = array_grow((void **)&symbolizer->answer_list, &symbolizer->answer_cap,
			symbolizer->answer_count, sizeof(*symbolizer->answer_list));
		if (!rc)
			rc = table_add(&symbolizer->answers, &items[i].place,
				sizeof(items[i].place), symbolizer->answer_count);
		if (!rc)
			symbolizer->answer_list[symbolizer->answer_count++] = lookups[i].found;
	}
	return rc;
}

/* All items are of one image. */
static int resolve_image(struct symbolizer *symbolizer, const struct item *items, size_t count)
{
	struct image *image = &symbolizer->list[items->place.image];
	struct lookup *lookups = calloc(count, sizeof(*lookups));
	int rc = lookups ? image_open(image, items->module) : -ERR_NOMEM;

	for (size_t i = 0; lookups && i < count; i++)
		lookups[i].rva = items[i].place.rva;
	if (!rc)
		rc = ask_image(symbolizer, image, lookups, count);
	image_close(image);
	if (!rc) /* that there is no name is an answer too */
		rc = add_answers(symbolizer, items, lookups, count);
	image->is_absent = rc == -ERR_SYMBOLS;
	if (image->is_absent)
		rc = 0;
	free(lookups);
	return rc;
}

static int answer(struct symbolizer *symbolizer, struct symbol_query *query)
{
	struct place place;
	uint64_t *index;
	int rc;

	if (names_know(query, &query->found))
		return 0;
	rc = place_of(symbolizer, query, &place);
	if (rc <= 0)
		return rc;
	index = table_find(&symbolizer->answers, &place, sizeof(place));
	if (index)
		query->found = symbolizer->answer_list[*index];
	return 0;
}

int symbolizer_resolve(
	struct symbolizer *symbolizer, struct symbol_query *queries, size_t count, struct err *err)
{
	struct item *items = malloc((count + 1) * sizeof(*items));
	int64_t found;
	int rc;

	symbolizer->last = NULL;
	found = items ? new_places(symbolizer, queries, count, items) : -ERR_NOMEM;
	rc = found < 0 ? -ERR_NOMEM : 0;
	for (size_t from = 0, to; !rc && from < (size_t)found; from = to) {
		for (to = from + 1; to < (size_t)found; to++) {
			if (items[to].place.image != items[from].place.image)
				break;
		}
		rc = resolve_image(symbolizer, items + from, to - from);
	}
	for (size_t i = 0; !rc && i < count; i++)
		rc = answer(symbolizer, &queries[i]);
	free(items);
	return rc ? err_set(err, ERR_NOMEM, NULL, NULL) : 0;
}

void symbolizer_set_patience(struct symbolizer *symbolizer, unsigned ms)
{
	backend_set_patience(symbolizer->backend, ms);
}

const char *symbolizer_trouble(const struct symbolizer *symbolizer)
{
	return backend_trouble(symbolizer->backend);
}
