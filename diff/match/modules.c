#include "diff/match/locations.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

/* What a dump tells of a module's build, each with what is before it. Builds that are to be
 * repeatable have no true timestamp, so that alone does not do. */
enum detail { DETAIL_NONE, DETAIL_HEADERS, DETAIL_PDB };

/* A module's file. */
struct module_file {
	const struct module *module;
	const char *path, *name; /* lower case */
	struct module_file *same; /* the one it was paired with, or NULL */
	uint32_t rank; /* its number among the known ones, or that of its equal there */
};

/* A file in one round of pairing. */
struct seeker {
	struct module_file *file;
	const char *place; /* its path or its name */
	enum detail detail; /* that the round compares */
	bool is_new; /* of the dump at hand */
};

/* In how many dumps something was seen, and where last. */
struct occurrence {
	size_t count, last;
};

/* Files that stand for their equals in all dumps. */
struct known {
	struct module_file **files;
	size_t count, cap;
	struct arena *arena;
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

static enum detail detail_of(const struct module *module)
{
	if (!module->has_identity)
		return DETAIL_NONE;
	return module->pdb_guid ? DETAIL_PDB : DETAIL_HEADERS;
}

static int order_of(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* By no more than this detail of the build, which both have. */
static int by_build(const struct module *a, const struct module *b, enum detail detail)
{
	int order = 0;

	if (detail >= DETAIL_HEADERS)
		order = order_of(a->timestamp, b->timestamp);
	if (!order && detail >= DETAIL_HEADERS)
		order = order_of(a->checksum, b->checksum);
	if (!order && detail >= DETAIL_HEADERS)
		order = order_of(a->size_bytes, b->size_bytes);
	if (!order && detail == DETAIL_PDB)
		order = strcmp(a->pdb_guid, b->pdb_guid);
	if (!order && detail == DETAIL_PDB)
		order = order_of(a->pdb_age, b->pdb_age);
	return order;
}

/* Not by base, which differs each time; 0: the same file. */
static int by_file(const struct module_file *a, const struct module_file *b)
{
	enum detail x = detail_of(a->module), y = detail_of(b->module);
	int order = strcmp(a->name, b->name);

	if (!order)
		order = strcmp(a->path, b->path);
	if (!order)
		order = order_of(x, y);
	return order ? order : by_build(a->module, b->module, x);
}

static int by_file_and_module(const void *a, const void *b)
{
	const struct module_file *x = a, *y = b;
	int order = by_file(x, y);

	return order ? order : x->module < y->module ? -1 : x->module > y->module;
}

/* The dump's modules, sorted: equal ones side by side. */
static int files_fill(struct module_file *files, const struct dump_sums *dump, struct arena *arena)
{
	for (size_t i = 0; i < dump->module_count; i++) {
		const char *path = lower_path(arena, dump->modules[i].path);

		if (!path)
			return -ERR_NOMEM;
		files[i] = (struct module_file){
			&dump->modules[i], path, module_path_base(path), NULL, 0};
	}
	if (dump->module_count)
		qsort(files, dump->module_count, sizeof(*files), by_file_and_module);
	return 0;
}

/* 0: what the round takes for the same. */
static int by_group(const void *a, const void *b)
{
	const struct seeker *x = a, *y = b;
	int order = strcmp(x->place, y->place);

	return order ? order : by_build(x->file->module, y->file->module, x->detail);
}

/* Known files first, then those that tell no more than is compared. */
static int by_group_and_side(const void *a, const void *b)
{
	const struct seeker *x = a, *y = b;
	int order = by_group(a, b);

	if (!order)
		order = order_of(x->is_new, y->is_new);
	if (!order)
		order = order_of(detail_of(x->file->module), detail_of(y->file->module));
	if (!order)
		order = by_file(x->file, y->file);
	return order ? order : order_of(x->file->rank, y->file->rank);
}

/* Pairs known files with new ones as long as one of two tells no more than is compared: where both
 * do, they were compared before and differ. */
static void group_pair(struct seeker *group, size_t count)
{
	size_t known = 0;

	while (known < count && !group[known].is_new)
		known++;
	for (size_t i = 0; i < known && known + i < count; i++) {
		struct module_file *old = group[i].file, *new = group[known + i].file;

		if (detail_of(old->module) > group->detail &&
			detail_of(new->module) > group->detail)
			break;
		new->same = old;
		old->same = new;
	}
}

/* One round: pairs what is not paired yet, has that detail, and is the same by place and detail. */
static void round_pair(struct seeker *seekers, struct module_file **files, size_t known,
	size_t count, bool by_path, enum detail detail)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (files[i]->same || detail_of(files[i]->module) < detail)
			continue;
		seekers[kept++] = (struct seeker){
			files[i], by_path ? files[i]->path : files[i]->name, detail, i >= known};
	}
	if (kept)
		qsort(seekers, kept, sizeof(*seekers), by_group_and_side);
	for (size_t from = 0, to; from < kept; from = to) {
		for (to = from + 1; to < kept && !by_group(&seekers[from], &seekers[to]);)
			to++;
		group_pair(seekers + from, to - from);
	}
}

/* Pairs the last of count files, which are new, with the known ones before them. Files that stayed
 * where they were find each other first, then those that moved; the same build first. */
static int files_pair(struct module_file **files, size_t known, size_t count)
{
	struct seeker *seekers = calloc(count + 1, sizeof(*seekers));

	if (!seekers)
		return -ERR_NOMEM;
	for (int by_path = 1; by_path >= 0; by_path--) {
		for (int detail = DETAIL_PDB; detail >= DETAIL_NONE; detail--)
			round_pair(seekers, files, known, count, by_path, (enum detail)detail);
	}
	free(seekers);
	return 0;
}

/* Makes the paired known files tell what the new ones do, and the others known. */
static void files_settle(struct known *known, size_t before)
{
	size_t count = known->count;

	known->count = before;
	for (size_t i = before; i < count; i++) {
		struct module_file *new = known->files[i], *old = new->same;

		if (old) {
			if (detail_of(new->module) >= detail_of(old->module))
				old->module = new->module;
			new->rank = old->rank;
			old->same = NULL;
		} else {
			new->rank = (uint32_t)known->count;
			known->files[known->count++] = new;
		}
	}
}

/* kind_of: for each module of the dump its number among the known files. */
static int dump_pair(struct known *known, const struct dump_sums *dump, uint32_t *kind_of)
{
	size_t before = known->count, count = dump->module_count;
	struct module_file *all = arena_alloc(known->arena, count * sizeof(*all) + 1);
	int rc = all ? files_fill(all, dump, known->arena) : -ERR_NOMEM;

	for (size_t i = 0; !rc && i < count; i++) {
		if (i && !by_file(&all[i - 1], &all[i]))
			continue; /* the same file, loaded twice */
		if (known->count >= UINT32_MAX - 1 ||
			array_grow((void **)&known->files, &known->cap, known->count,
				sizeof(*known->files)))
			return -ERR_NOMEM;
		known->files[known->count++] = &all[i];
	}
	if (!rc)
		rc = files_pair(known->files, before, known->count);
	if (rc)
		return rc;
	files_settle(known, before);
	for (size_t i = 0; i < count; i++) {
		if (i && !by_file(&all[i - 1], &all[i]))
			all[i].rank = all[i - 1].rank;
		kind_of[all[i].module - dump->modules] = all[i].rank;
	}
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct module_file *x = *(struct module_file *const *)a,
				 *y = *(struct module_file *const *)b;
	int order = strcmp(x->name, y->name);

	if (!order)
		order = strcmp(x->path, y->path);
	return order ? order : order_of(x->rank, y->rank);
}

/* Turns the numbers of known files, which follow the order of the dumps, into ranks. */
static int rank(
	struct known *known, const struct dump_sums *dumps, size_t count, uint32_t **kind_of)
{
	uint32_t *ranks = calloc(known->count + 1, sizeof(*ranks));

	if (!ranks)
		return -ERR_NOMEM;
	if (known->count)
		qsort(known->files, known->count, sizeof(*known->files), by_name);
	for (size_t i = 0; i < known->count; i++)
		ranks[known->files[i]->rank] = (uint32_t)i;
	for (size_t dump = 0; dump < count; dump++) {
		if (dump && kind_of[dump] == kind_of[dump - 1])
			continue;
		for (size_t i = 0; i < dumps[dump].module_count; i++)
			kind_of[dump][i] = ranks[kind_of[dump][i]];
	}
	free(ranks);
	return 0;
}

/* In how many dumps each rank, or each group of them, occurs. */
static void occurrences(const struct module_ids *ranks, const struct dump_sums *dumps,
	size_t dump_count, bool by_group, struct occurrence *all)
{
	for (size_t dump = 0; dump < dump_count; dump++) {
		for (size_t i = 0; i < dumps[dump].module_count; i++) {
			uint32_t number = ranks->of[dump][i];
			struct occurrence *at = &all[by_group ? ranks->group[number] : number];

			if (at->count && at->last == dump)
				continue;
			at->last = dump;
			at->count++;
		}
	}
}

/* A build that not every dump has which has a file of the name. */
static int find_rebuilt(struct module_ids *ranks, const struct dump_sums *dumps, size_t dump_count)
{
	struct occurrence *own = calloc(ranks->count + 1, sizeof(*own));
	struct occurrence *group = calloc(ranks->count + 1, sizeof(*group));
	int rc = own && group ? 0 : -ERR_NOMEM;

	if (!rc) {
		occurrences(ranks, dumps, dump_count, false, own);
		occurrences(ranks, dumps, dump_count, true, group);
	}
	for (size_t i = 0; !rc && i < ranks->count; i++)
		ranks->is_rebuilt[i] = own[i].count < group[ranks->group[i]].count;
	free(own);
	free(group);
	return rc;
}

/* known is sorted by name. */
static int describe(const struct known *known, struct module_ids *ranks,
	const struct dump_sums *dumps, size_t dump_count)
{
	ranks->count = known->count;
	ranks->group = arena_alloc(known->arena, known->count * sizeof(*ranks->group) + 1);
	ranks->is_rebuilt = arena_alloc(known->arena, known->count + 1);
	if (!ranks->group || !ranks->is_rebuilt)
		return -ERR_NOMEM;
	for (size_t i = 0; i < known->count; i++) {
		bool is_first = !i || strcmp(known->files[i - 1]->name, known->files[i]->name) != 0;

		ranks->group[i] = is_first ? (uint32_t)i : ranks->group[i - 1];
	}
	return find_rebuilt(ranks, dumps, dump_count);
}

int module_ids_make(
	const struct dump_sums *dumps, size_t count, struct module_ids *ranks, struct arena *arena)
{
	struct known known = {.arena = arena};
	uint32_t **of = arena_alloc(arena, count * sizeof(*of) + 1);
	struct module_ids made = {.of = of};
	int rc = of ? 0 : -ERR_NOMEM;

	for (size_t i = 0; !rc && i < count; i++) {
		if (i && dumps[i].module_count && dumps[i].modules == dumps[i - 1].modules) {
			of[i] = of[i - 1]; /* most dumps of a process have the same ones */
			continue;
		}
		of[i] = arena_alloc(arena, dumps[i].module_count * sizeof(**of) + 1);
		rc = of[i] ? dump_pair(&known, &dumps[i], of[i]) : -ERR_NOMEM;
	}
	if (!rc)
		rc = rank(&known, dumps, count, of);
	if (!rc)
		rc = describe(&known, &made, dumps, count);
	if (!rc)
		*ranks = made;
	free(known.files);
	return rc;
}
