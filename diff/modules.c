#include "diff/modules.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "core/table.h"

#define NONE UINT32_MAX
/* So many files of one name are told apart by comparing each with each; real processes have two or
 * three. Further ones are kept apart from everything, which costs matches and never mixes any. */
#define SAME_NAME_MAX 64

/* A module that stands for its equals in all dumps. */
struct kind {
	const struct module *module;
	const char *path, *name; /* lower case */
	size_t dump; /* the last one that had it */
	uint32_t next; /* with the same name, or NONE */
	uint32_t rank;
};

struct kinds {
	struct kind *items;
	size_t count, cap;
	struct table by_name; /* the first kind of that name */
	struct arena *arena;
};

/* A module of the dump at hand, with what it is compared by. */
struct candidate {
	const struct module *module;
	const char *path, *name;
	uint32_t kind;
};

static const char *lower_path(struct arena *arena, const char *path)
{
	char *copy = arena_text(arena, path, strlen(path));

	for (char *at = copy; copy && *at; at++) {
		if (*at >= 'A' && *at <= 'Z')
			*at = (char)(*at + 'a' - 'A');
	}
	return copy;
}

/* What a build cannot change without becoming another one. Builds that are to be repeatable have
 * no true timestamp, so that alone does not do. */
static bool same_build(const struct module *a, const struct module *b)
{
	if (a->timestamp != b->timestamp || a->checksum != b->checksum ||
		a->size_bytes != b->size_bytes)
		return false;
	if (!a->pdb_guid || !b->pdb_guid)
		return true;
	return a->pdb_age == b->pdb_age && !strcmp(a->pdb_guid, b->pdb_guid);
}

static bool fits(const struct kind *kind, const struct candidate *wanted, size_t dump, bool by_path)
{
	const struct module *a = kind->module, *b = wanted->module;
	bool same_path = !strcmp(kind->path, wanted->path);

	if (a->has_identity && b->has_identity && !same_build(a, b))
		return false;
	if (kind->dump == dump) /* the same file, loaded twice */
		return same_path && a->has_identity == b->has_identity;
	return same_path || !by_path;
}

/* The kind of wanted among the first ones of that name, or NONE. */
static uint32_t kind_find(
	const struct kinds *kinds, const struct candidate *wanted, size_t dump, bool by_path)
{
	uint64_t *first = table_find(&kinds->by_name, wanted->name, strlen(wanted->name));
	uint32_t at = first ? (uint32_t)*first : NONE;

	for (int i = 0; at != NONE && i < SAME_NAME_MAX; i++) {
		if (fits(&kinds->items[at], wanted, dump, by_path))
			return at;
		at = kinds->items[at].next;
	}
	return NONE;
}

static int kind_add(
	struct kinds *kinds, const struct candidate *wanted, size_t dump, uint32_t *index)
{
	struct kind kind = {wanted->module, wanted->path, wanted->name, dump, NONE, 0};
	uint64_t *first = table_find(&kinds->by_name, wanted->name, strlen(wanted->name));
	uint32_t at;

	if (kinds->count >= NONE - 1 ||
		array_grow((void **)&kinds->items, &kinds->cap, kinds->count, sizeof(kind)))
		return -ERR_NOMEM;
	*index = (uint32_t)kinds->count;
	if (!first && table_add(&kinds->by_name, wanted->name, strlen(wanted->name), *index))
		return -ERR_NOMEM;
	kinds->items[kinds->count++] = kind;
	if (!first)
		return 0;
	at = (uint32_t)*first;
	for (int i = 0; i < SAME_NAME_MAX && kinds->items[at].next != NONE; i++)
		at = kinds->items[at].next;
	kinds->items[*index].next = kinds->items[at].next;
	kinds->items[at].next = *index;
	return 0;
}

static void claim(struct kinds *kinds, struct candidate *wanted, size_t dump, uint32_t index)
{
	struct kind *kind = &kinds->items[index];

	wanted->kind = index;
	if (kind->dump != dump && wanted->module->has_identity)
		kind->module = wanted->module; /* it tells more, or the same */
	kind->dump = dump;
}

/* By name and path, then by what else tells them apart: not by base, which differs each time. */
static int by_path(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (!order)
		order = strcmp(x->path, y->path);
	if (order)
		return order;
	if (x->module->timestamp != y->module->timestamp)
		return x->module->timestamp < y->module->timestamp ? -1 : 1;
	if (x->module->size_bytes != y->module->size_bytes)
		return x->module->size_bytes < y->module->size_bytes ? -1 : 1;
	return x->module < y->module ? -1 : x->module > y->module;
}

static int fill(struct candidate *candidates, const struct sums *dump, struct arena *arena)
{
	for (size_t i = 0; i < dump->module_count; i++) {
		const char *path = lower_path(arena, dump->modules[i].path);

		if (!path)
			return -ERR_NOMEM;
		candidates[i] = (struct candidate){&dump->modules[i], path, path_base(path), NONE};
	}
	if (dump->module_count)
		qsort(candidates, dump->module_count, sizeof(*candidates), by_path);
	return 0;
}

/* Files that stayed where they were find each other first; then those that moved. */
static int dump_kinds(
	struct kinds *kinds, const struct sums *dump, size_t number, uint32_t *kind_of)
{
	struct candidate *all = calloc(dump->module_count + 1, sizeof(*all));
	int rc = all ? fill(all, dump, kinds->arena) : -ERR_NOMEM;

	for (int pass = 0; !rc && pass < 2; pass++) {
		for (size_t i = 0; !rc && i < dump->module_count; i++) {
			uint32_t index = all[i].kind;

			if (index != NONE)
				continue;
			index = kind_find(kinds, &all[i], number, pass == 0);
			if (index == NONE && pass == 1)
				rc = kind_add(kinds, &all[i], number, &index);
			if (!rc && index != NONE)
				claim(kinds, &all[i], number, index);
		}
	}
	for (size_t i = 0; !rc && i < dump->module_count; i++)
		kind_of[all[i].module - dump->modules] = all[i].kind;
	free(all);
	return rc;
}

static int by_kind_name(const void *a, const void *b)
{
	const struct kind *x = *(struct kind *const *)a, *y = *(struct kind *const *)b;
	int order = strcmp(x->name, y->name);

	if (!order)
		order = strcmp(x->path, y->path);
	return order ? order : x < y ? -1 : x > y;
}

/* Turns the numbers of kinds, which follow the order of the dumps, into ranks. */
static int rank(struct kinds *kinds, const struct sums *dumps, size_t count, uint32_t **kind_of)
{
	struct kind **order = calloc(kinds->count + 1, sizeof(*order));

	if (!order)
		return -ERR_NOMEM;
	for (size_t i = 0; i < kinds->count; i++)
		order[i] = &kinds->items[i];
	if (kinds->count)
		qsort(order, kinds->count, sizeof(*order), by_kind_name);
	for (size_t i = 0; i < kinds->count; i++)
		order[i]->rank = (uint32_t)i;
	free(order);
	for (size_t dump = 0; dump < count; dump++) {
		for (size_t i = 0; i < dumps[dump].module_count; i++)
			kind_of[dump][i] = kinds->items[kind_of[dump][i]].rank;
	}
	return 0;
}

uint32_t **modules_rank(const struct sums *dumps, size_t count, struct arena *arena)
{
	struct kinds kinds = {.arena = arena};
	uint32_t **ranks = arena_alloc(arena, count * sizeof(*ranks) + 1);
	int rc = ranks ? 0 : -ERR_NOMEM;

	table_init(&kinds.by_name);
	for (size_t i = 0; !rc && i < count; i++) {
		ranks[i] = arena_alloc(arena, dumps[i].module_count * sizeof(**ranks) + 1);
		rc = ranks[i] ? dump_kinds(&kinds, &dumps[i], i, ranks[i]) : -ERR_NOMEM;
	}
	if (!rc)
		rc = rank(&kinds, dumps, count, ranks);
	table_release(&kinds.by_name);
	free(kinds.items);
	return rc ? NULL : ranks;
}
