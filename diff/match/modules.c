/* Identity of modules: pairs the modules of each dump with modules of earlier dumps, by file and
 * build, and ranks them by name. */
#include "diff/match/locations.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/text.h"

/* Available information about a module's build. Each level includes the previous levels. A
 * timestamp alone is not enough: in reproducible builds, the field does not contain a time. */
enum detail {
	DETAIL_NONE,
	DETAIL_SIZE, /* all that a log of UMDH has: a first choice, which proves nothing */
	DETAIL_HEADERS,
	DETAIL_PDB
};

struct module_file {
	const struct module *module;
	const char *path, *name; /* in lower case */
	struct module_file *same; /* file paired with this one, or NULL */
	/* index among the known files; a new file that was paired has the index of its known
	 * file */
	uint32_t rank;
};

/* A file in one round of pairing. */
struct seeker {
	struct module_file *file;
	const char *place; /* path or name of the file */
	enum detail detail; /* level of information that the round compares */
	bool is_new; /* belongs to the current dump */
};

/* Number of dumps that contain a rank or a group, and the last such dump. */
struct occurrence {
	size_t count, last;
};

/* Distinct module files of the dumps that were already processed. */
struct known {
	struct module_file **files;
	size_t count, cap;
	struct arena *arena;
};

static const char *lower_path(struct arena *arena, const char *path)
{
	char *copy = arena_text(arena, path, strlen(path));

	for (char *at = copy; *at; at++)
		*at = text_lower(*at);
	return copy;
}

static enum detail detail_of(const struct module *module)
{
	if (!module->has_identity)
		return DETAIL_SIZE;
	return module->pdb_guid ? DETAIL_PDB : DETAIL_HEADERS;
}

/* Compares the builds of two modules, using information of the given level. Both modules have this
 * level. */
static int by_build(const struct module *a, const struct module *b, enum detail detail)
{
	int order = 0;

	if (detail >= DETAIL_SIZE)
		order = number_order(a->size_bytes, b->size_bytes);
	if (!order && detail >= DETAIL_HEADERS)
		order = number_order(a->timestamp, b->timestamp);
	if (!order && detail >= DETAIL_HEADERS)
		order = number_order(a->checksum, b->checksum);
	if (!order && detail == DETAIL_PDB)
		order = strcmp(a->pdb_guid, b->pdb_guid);
	if (!order && detail == DETAIL_PDB)
		order = number_order(a->pdb_age, b->pdb_age);
	return order;
}

/* Compares files. Ignores base addresses, which differ in every process. Returns 0 for the same
 * file. */
static int by_file(const struct module_file *a, const struct module_file *b)
{
	enum detail x = detail_of(a->module), y = detail_of(b->module);
	int order = strcmp(a->name, b->name);

	if (!order)
		order = strcmp(a->path, b->path);
	if (!order)
		order = number_order(x, y);
	return order ? order : by_build(a->module, b->module, x);
}

static int by_file_and_module(const void *a, const void *b)
{
	const struct module_file *x = a, *y = b;
	int order = by_file(x, y);

	return order ? order : x->module < y->module ? -1 : x->module > y->module;
}

/* Fills `files` with the dump's modules, sorted so that equal files are adjacent. */
static void files_fill(struct module_file *files, const struct dump_sums *dump, struct arena *arena)
{
	for (size_t i = 0; i < dump->module_list.count; i++) {
		const char *path = lower_path(arena, dump->module_list.items[i].path);

		files[i] = (struct module_file){
			&dump->module_list.items[i], path, module_path_base(path), NULL, 0};
	}
	qsort(files, dump->module_list.count, sizeof(*files), by_file_and_module);
}

/* Returns 0 for files that are the same in this round. */
static int by_group(const void *a, const void *b)
{
	const struct seeker *x = a, *y = b;
	int order = strcmp(x->place, y->place);

	return order ? order : by_build(x->file->module, y->file->module, x->detail);
}

/* Compares by group, then known files before new ones, then files with less information first. */
static int by_group_and_side(const void *a, const void *b)
{
	const struct seeker *x = a, *y = b;
	int order = by_group(a, b);

	if (!order)
		order = number_order(x->is_new, y->is_new);
	if (!order)
		order = number_order(detail_of(x->file->module), detail_of(y->file->module));
	if (!order)
		order = by_file(x->file, y->file);
	return order ? order : number_order(x->file->rank, y->file->rank);
}

/* Pairs known files with new ones. If both files have more information on their builds than this round
 * compares, an earlier round found them different. Such files are not paired. */
static void group_pair(struct seeker *group, size_t count)
{
	const enum detail detail = group->detail > DETAIL_SIZE ? group->detail : DETAIL_SIZE;
	size_t known = 0;

	while (known < count && !group[known].is_new)
		known++;
	for (size_t i = 0; i < known && known + i < count; i++) {
		struct module_file *old = group[i].file, *now = group[known + i].file;

		if (detail_of(old->module) > detail && detail_of(now->module) > detail)
			break;
		now->same = old;
		old->same = now;
	}
}

/* Runs one round: pairs files that are not paired yet and have at least the information of level
 * `detail`. The two files must have equal places (paths or names) and equal builds. */
static void round_pair(struct seeker *seekers, struct module_file **files, size_t known,
	size_t count, bool by_path, enum detail detail)
{
	size_t seeker_count = 0;

	for (size_t i = 0; i < count; i++) {
		if (files[i]->same || detail_of(files[i]->module) < detail)
			continue;
		seekers[seeker_count++] = (struct seeker){
			files[i], by_path ? files[i]->path : files[i]->name, detail, i >= known};
	}
	qsort(seekers, seeker_count, sizeof(*seekers), by_group_and_side);
	for (size_t from = 0, to; from < seeker_count; from = to) {
		for (to = from + 1; to < seeker_count && !by_group(&seekers[from], &seekers[to]);)
			to++;
		group_pair(seekers + from, to - from);
	}
}

/* Pairs new files with known ones. The first `known` of the `count` files are known, the rest are
 * new. First pairs files with the same path, then moved files, which have only the same name. Both
 * steps start with the most detailed comparison of builds. */
static void files_pair(struct module_file **files, size_t known, size_t count)
{
	struct seeker *seekers = xcalloc(count + 1, sizeof(*seekers));

	for (int by_path = 1; by_path >= 0; by_path--) {
		for (int detail = DETAIL_PDB; detail >= DETAIL_NONE; detail--)
			round_pair(seekers, files, known, count, by_path, (enum detail)detail);
	}
	free(seekers);
}

/* Updates paired known files from the new ones. Adds unpaired new files to the known ones. */
static void files_update(struct known *known, size_t before)
{
	size_t count = known->count;

	known->count = before;
	for (size_t i = before; i < count; i++) {
		struct module_file *now = known->files[i], *old = now->same;

		if (old) {
			if (detail_of(now->module) >= detail_of(old->module))
				old->module = now->module;
			now->rank = old->rank;
			old->same = NULL;
		} else {
			now->rank = (uint32_t)known->count;
			known->files[known->count++] = now;
		}
	}
}

/* Pairs the modules of a dump with known files. For each module, stores the number of its known
 * file in `kind_of`. */
static void dump_pair(struct known *known, const struct dump_sums *dump, uint32_t *kind_of)
{
	size_t before = known->count, count = dump->module_list.count;
	struct module_file *all = arena_alloc(known->arena, count * sizeof(*all));

	files_fill(all, dump, known->arena);
	for (size_t i = 0; i < count; i++) {
		if (i && !by_file(&all[i - 1], &all[i]))
			continue; /* the same file, loaded twice */
		array_grow(
			(void **)&known->files, &known->cap, known->count, sizeof(*known->files));
		known->files[known->count++] = &all[i];
	}
	files_pair(known->files, before, known->count);
	files_update(known, before);
	for (size_t i = 0; i < count; i++) {
		if (i && !by_file(&all[i - 1], &all[i]))
			all[i].rank = all[i - 1].rank;
		kind_of[all[i].module - dump->module_list.items] = all[i].rank;
	}
}

static int by_name(const void *a, const void *b)
{
	const struct module_file *x = *(struct module_file *const *)a,
				 *y = *(struct module_file *const *)b;
	int order = strcmp(x->name, y->name);

	if (!order)
		order = strcmp(x->path, y->path);
	return order ? order : number_order(x->rank, y->rank);
}

/* Converts numbers of known files to ranks. Known files are numbered as they occur in the dumps;
 * ranks follow the order of names. */
static void rank(
	struct known *known, const struct dump_sums *dumps, size_t count, uint32_t **kind_of)
{
	uint32_t *ranks = xcalloc(known->count + 1, sizeof(*ranks));

	if (known->count)
		qsort(known->files, known->count, sizeof(*known->files), by_name);
	for (size_t i = 0; i < known->count; i++)
		ranks[known->files[i]->rank] = (uint32_t)i;
	for (size_t dump = 0; dump < count; dump++) {
		if (dump && kind_of[dump] == kind_of[dump - 1])
			continue;
		for (size_t i = 0; i < dumps[dump].module_list.count; i++)
			kind_of[dump][i] = ranks[kind_of[dump][i]];
	}
	free(ranks);
}

/* Counts the dumps that contain each rank, or each group of ranks. */
static void occurrences(const struct module_ids *ranks, const struct dump_sums *dumps,
	size_t dump_count, bool by_group, struct occurrence *all)
{
	for (size_t dump = 0; dump < dump_count; dump++) {
		for (size_t i = 0; i < dumps[dump].module_list.count; i++) {
			uint32_t number = ranks->by_dump[dump][i];
			struct occurrence *at = &all[by_group ? ranks->group[number] : number];

			if (at->count && at->last == dump)
				continue;
			at->last = dump;
			at->count++;
		}
	}
}

/* Sets `is_rebuilt` for each build that is missing in a dump which has another build of the
 * module. */
static void find_rebuilt(struct module_ids *ranks, const struct dump_sums *dumps, size_t dump_count)
{
	struct occurrence *own = xcalloc(ranks->count + 1, sizeof(*own));
	struct occurrence *group = xcalloc(ranks->count + 1, sizeof(*group));

	occurrences(ranks, dumps, dump_count, false, own);
	occurrences(ranks, dumps, dump_count, true, group);
	for (size_t i = 0; i < ranks->count; i++)
		ranks->is_rebuilt[i] = own[i].count < group[ranks->group[i]].count;
	free(own);
	free(group);
}

void module_ids_make(
	const struct dump_sums *dumps, size_t count, struct module_ids *ranks, struct arena *arena)
{
	struct known known = {.arena = arena};
	uint32_t **by_dump = arena_alloc(arena, count * sizeof(*by_dump));

	for (size_t i = 0; i < count; i++) {
		if (i && dumps[i].module_list.count &&
			dumps[i].module_list.items == dumps[i - 1].module_list.items) {
			by_dump[i] =
				by_dump[i - 1]; /* most dumps of a process share their modules */
			continue;
		}
		by_dump[i] = arena_alloc(arena, dumps[i].module_list.count * sizeof(**by_dump));
		dump_pair(&known, &dumps[i], by_dump[i]);
	}
	rank(&known, dumps, count, by_dump);
	*ranks = (struct module_ids){.by_dump = by_dump,
		.count = known.count,
		.group = arena_alloc(arena, known.count * sizeof(*ranks->group)),
		.is_rebuilt = arena_alloc(arena, known.count)};
	for (size_t i = 0; i < known.count; i++) {
		bool is_first = !i || strcmp(known.files[i - 1]->name, known.files[i]->name) != 0;

		ranks->group[i] = is_first ? (uint32_t)i : ranks->group[i - 1];
	}
	find_rebuilt(ranks, dumps, count);
	free(known.files);
}
