/* Short names of modules. If stacks call several modules with one short name, such as plugins in
 * different folders, their rows would look alike. The names shown then contain what distinguishes the
 * paths. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/text.h"
#include "diff/match/locations.h"
#include "diff/query/naming.h"

size_t naming_short_name(const struct module *module, const char **name)
{
	const char *dot;

	*name = module_path_base(module->path);
	dot = strrchr(*name, '.');
	return dot && dot > *name ? (size_t)(dot - *name) : strlen(*name);
}

/* A module, the same in all dumps. */
struct named_file {
	const char *path, *name; /* the name is in the path, and `len` bytes long */
	size_t len;
	uint32_t rank;
	bool is_used; /* a stack of some row calls it */
	bool is_double; /* another used module of the same dump has its short name */
};

static int by_name(const void *a, const void *b)
{
	const struct named_file *x = *(struct named_file *const *)a,
				*y = *(struct named_file *const *)b;
	const size_t len = x->len < y->len ? x->len : y->len;

	for (size_t i = 0; i < len; i++) {
		if (text_lower(x->name[i]) != text_lower(y->name[i]))
			return number_order((unsigned char)text_lower(x->name[i]),
				(unsigned char)text_lower(y->name[i]));
	}
	return x->len != y->len ? number_order(x->len, y->len) : number_order(x->rank, y->rank);
}

static bool has_same_name(const struct named_file *a, const struct named_file *b)
{
	return text_same(a->name, a->len, b->name, b->len);
}

/* Fills `files`, indexed by rank. */
static void files_fill(struct named_file *files, const struct comparison *comparison)
{
	uint32_t **by_dump = comparison->locations->ranks.by_dump;

	for (size_t dump = 0; dump < comparison->dump_count; dump++) {
		const struct dump_sums *sums = &comparison->dumps[dump];

		if (dump && by_dump[dump] == by_dump[dump - 1])
			continue;
		for (size_t i = 0; i < sums->module_list.count; i++) {
			struct named_file *file = &files[by_dump[dump][i]];

			file->path = sums->module_list.items[i].path;
			file->len = naming_short_name(&sums->module_list.items[i], &file->name);
			file->rank = by_dump[dump][i];
		}
	}
}

static void find_used(struct named_file *files, const struct comparison *comparison)
{
	for (size_t i = 0; i < comparison->row_count; i++) {
		const struct row *row = &comparison->rows[i];
		const uint32_t depth =
			row->stack && !row->stack->is_named ?
				location_depth(comparison->locations, row->dump, row->stack) :
				0;

		for (uint32_t k = 0; k < depth; k++) {
			const uint64_t frame = stack_frame(row->stack, k);
			struct place_module found = {0};
			struct location place = {0, 0};

			if (!stackless_is(row->stack) || !stackless_is_label(frame))
				place = location_of(
					comparison->locations, row->dump, frame, &found);
			if (found.module)
				files[place.unit - 1].is_used = true;
		}
	}
}

/* Finds used modules that share a short name in one dump. Builds of one module that replace each other
 * are in different dumps. `numbers` has the number of each rank's short name. */
static bool find_doubles(
	struct named_file *files, const struct comparison *comparison, const uint32_t *numbers)
{
	const struct module_ids *ranks = &comparison->locations->ranks;
	uint32_t *seen = xcalloc(ranks->count + 1, sizeof(*seen)); /* rank + 1, by short name */
	bool has_doubles = false;

	for (size_t dump = 0; dump < comparison->dump_count; dump++) {
		const uint32_t *own = ranks->by_dump[dump];

		if (dump && own == ranks->by_dump[dump - 1])
			continue;
		memset(seen, 0, ranks->count * sizeof(*seen));
		for (size_t i = 0; i < comparison->dumps[dump].module_list.count; i++) {
			uint32_t *other = &seen[numbers[own[i]]];

			if (!files[own[i]].is_used)
				continue;
			if (*other && *other != own[i] + 1) {
				files[own[i]].is_double = files[*other - 1].is_double = true;
				has_doubles = true;
			}
			*other = own[i] + 1;
		}
	}
	free(seen);
	return has_doubles;
}

/* Returns the end of a path: its file name and at most `depth` folders. */
static const char *path_tail(const char *path, size_t depth)
{
	const char *tail = module_path_base(path);

	while (depth-- && tail > path) {
		tail--;
		while (tail > path && tail[-1] != '/' && tail[-1] != '\\')
			tail--;
	}
	return tail;
}

static bool is_unique(struct named_file *const *group, size_t count, const struct named_file *file,
	const char *tail, size_t depth)
{
	for (size_t i = 0; i < count; i++) {
		if (group[i]->is_double && text_compare(group[i]->path, file->path) != 0 &&
			!text_compare(path_tail(group[i]->path, depth), tail))
			return false;
	}
	return true;
}

/* Returns the shown name of a double: its file name, or its short name and folders, and a number if its
 * path is not unique. */
static const char *shown_name(struct arena *arena, struct named_file *const *group, size_t count,
	const struct named_file *file)
{
	const char *base = module_path_base(file->path), *tail = base, *shown;
	size_t number = 0, same = 0;
	bool has_ending = false; /* the file's extension distinguishes it */
	struct buf name;

	for (size_t depth = 1; tail > file->path && !is_unique(group, count, file, tail, depth - 1);
		depth++)
		tail = path_tail(file->path, depth);
	for (size_t i = 0; i < count; i++) {
		const bool is_same =
			group[i]->is_double && !text_compare(group[i]->path, file->path);

		same += is_same;
		number += is_same && group[i]->rank <= file->rank;
		has_ending |= group[i]->is_double &&
			      text_compare(module_path_base(group[i]->path), base) != 0;
	}
	buf_init(&name);
	buf_add(&name, file->name, tail == base && has_ending ? strlen(base) : file->len);
	if (tail < base)
		buf_printf(&name, "(%.*s)", (int)(base - tail - 1), tail);
	if (same > 1)
		buf_printf(&name, "(%zu)", number);
	shown = arena_text(arena, name.data, name.len);
	buf_release(&name);
	return shown;
}

void naming_find_doubles(struct naming *naming)
{
	const struct comparison *comparison = naming->comparison;
	const size_t count = comparison->dumps ? comparison->locations->ranks.count : 0;
	struct named_file *files = xcalloc(count + 1, sizeof(*files));
	struct named_file **sorted = xcalloc(count + 1, sizeof(struct named_file *));
	uint32_t *numbers = xcalloc(count + 1, sizeof(*numbers));
	size_t name_count = 0;

	if (count)
		files_fill(files, comparison);
	for (size_t i = 0; i < count; i++)
		sorted[i] = &files[i];
	qsort(sorted, count, sizeof(struct named_file *), by_name);
	for (size_t i = 0; i < count; i++) {
		name_count += !i || !has_same_name(sorted[i - 1], sorted[i]);
		numbers[sorted[i]->rank] = (uint32_t)name_count - 1;
	}
	if (name_count < count) {
		find_used(files, comparison);
		if (find_doubles(files, comparison, numbers))
			naming->doubles =
				arena_alloc(&naming->arena, count * sizeof(*naming->doubles));
	}
	for (size_t from = 0, to; naming->doubles && from < count; from = to) {
		for (to = from + 1; to < count && has_same_name(sorted[from], sorted[to]);)
			to++;
		for (size_t i = from; i < to; i++) {
			if (sorted[i]->is_double)
				naming->doubles[sorted[i]->rank] = shown_name(
					&naming->arena, sorted + from, to - from, sorted[i]);
		}
	}
	free(numbers);
	free(sorted);
	free(files);
}
