#include "diff/naming.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"

#define MISSING_MAX 4 /* modules that are named */

static size_t frame_count(const struct row *row)
{
	return row->stack ? row->stack->frame_count : 0;
}

static struct symbol_query ask(const struct sums *dump, const struct stack *stack, size_t frame)
{
	uint64_t addr = stack->frames[frame];

	return (struct symbol_query){.addr = addr,
		.module = module_of_return(dump->modules, dump->module_count, addr),
		.names = dump->names};
}

static bool has_name(const struct symbol_query *query)
{
	return symbol_names_find(query->names, query->addr).count != 0;
}

/* Where the row's dump has no name for a frame, the other one's name for it is asked for. */
static void ask_row(struct symbol_query *queries, const struct row *row)
{
	for (size_t i = 0; i < frame_count(row); i++) {
		queries[i] = ask(row->dump, row->stack, i);
		if (row->older_stack && !has_name(&queries[i])) {
			struct symbol_query older = ask(row->older_dump, row->older_stack, i);

			if (has_name(&older))
				queries[i] = older;
		}
	}
}

/* A module's file name without folder and extension: its length, and where it starts in *name. */
static size_t short_name(const struct module *module, const char **name)
{
	const char *dot;

	*name = path_base(module->path);
	dot = strrchr(*name, '.');
	return dot && dot > *name ? (size_t)(dot - *name) : strlen(*name);
}

static int name_modules(struct naming *naming)
{
	const struct comparison *comparison = naming->comparison;
	const char ***all = arena_alloc(&naming->arena, comparison->dump_count * sizeof(*all) + 1);

	for (size_t i = 0; all && comparison->dumps && i < comparison->dump_count; i++) {
		const struct sums *dump = &comparison->dumps[i];

		all[i] = arena_alloc(&naming->arena, dump->module_count * sizeof(**all) + 1);
		for (size_t k = 0; all[i] && k < dump->module_count; k++) {
			const char *name;
			size_t len = short_name(&dump->modules[k], &name);

			all[i][k] = arena_text(&naming->arena, name, len);
			if (!all[i][k])
				return -ERR_NOMEM;
		}
		if (!all[i])
			return -ERR_NOMEM;
	}
	naming->modules = all;
	return all ? 0 : -ERR_NOMEM;
}

int naming_make(
	struct naming *naming, const struct comparison *comparison, bool by_name, struct err *err)
{
	*naming = (struct naming){.comparison = comparison, .by_name = by_name};
	arena_init(&naming->arena);
	naming->of_row = calloc(comparison->row_count + 1, sizeof(*naming->of_row));
	if (!naming->of_row || name_modules(naming))
		return err_set(err, ERR_NOMEM, NULL, NULL);
	return 0;
}

int naming_find(struct naming *naming, const uint32_t *rows, size_t count, struct err *err)
{
	const struct row *all = naming->comparison->rows;
	struct symbol_query *queries;
	size_t total = 0;

	if (!naming->by_name)
		return 0;
	for (size_t i = 0; i < count; i++)
		total += naming->of_row[rows[i]] ? 0 : frame_count(&all[rows[i]]);
	queries = arena_alloc(&naming->arena, (total + 1) * sizeof(*queries));
	if (!queries)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	for (size_t i = 0, at = 0; i < count; i++) {
		if (naming->of_row[rows[i]])
			continue;
		naming->of_row[rows[i]] = queries + at;
		ask_row(queries + at, &all[rows[i]]);
		at += frame_count(&all[rows[i]]);
	}
	if (!total)
		return 0;
	if (!naming->symbolizer)
		naming->symbolizer = symbolizer_new(err);
	if (!naming->symbolizer)
		return -ERR_NOMEM;
	return symbolizer_resolve(naming->symbolizer, queries, total, err);
}

void naming_release(struct naming *naming)
{
	if (naming->symbolizer)
		symbolizer_free(naming->symbolizer);
	free(naming->of_row);
	arena_release(&naming->arena);
	*naming = (struct naming){0};
}

static int add_symbols(struct frames *frames, struct frame frame, const struct symbols *symbols)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < symbols->count; i++) {
		const struct symbol *symbol = &symbols->list[i];

		frame.function = symbol->function;
		frame.offset_bytes = symbol->offset_bytes;
		frame.file = symbol->file;
		frame.line = symbol->line;
		frame.is_inline = i + 1 < symbols->count;
		rc = frames_add(frames, &frame);
	}
	return rc;
}

/* Those that came with a row. */
static int copy_frames(struct frames *to, const struct frames *from)
{
	size_t part = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < from->count; i++) {
		for (; !rc && part < from->part_count && from->part_at[part] <= i; part++)
			rc = frames_part(to);
		if (!rc)
			rc = frames_add(to, &from->items[i]);
	}
	for (; !rc && part < from->part_count; part++)
		rc = frames_part(to);
	return rc;
}

int naming_frames(const struct naming *naming, size_t index, struct frames *frames)
{
	const struct comparison *comparison = naming->comparison;
	const struct row *row = &comparison->rows[index];
	uint32_t alias = 0;
	int rc = 0;

	frames_clear(frames);
	if (row->frames)
		return copy_frames(frames, row->frames);
	for (uint32_t i = 0; !rc && row->stack && i < row->stack->frame_count; i++) {
		struct symbol_query query = naming->of_row[index] ? naming->of_row[index][i] :
								    ask(row->dump, row->stack, i);
		const struct sums *dump =
			query.names == row->dump->names ? row->dump : row->older_dump;
		struct frame frame = {.has_addr = true, .addr = query.addr};

		if (query.module) {
			frame.module = naming->modules[dump - comparison->dumps]
						      [query.module - dump->modules];
			frame.offset_bytes = query.addr - query.module->base;
		}
		for (; !rc && alias < row->stack->alias_count && row->stack->alias_at[alias] <= i;
			alias++)
			rc = frames_part(frames);
		if (!rc)
			rc = query.found.count ? add_symbols(frames, frame, &query.found) :
						 frames_add(frames, &frame);
	}
	return rc;
}

/* A module's file name and how many frames in it have no name. */
struct missing {
	const char *name;
	size_t len, count;
};

static int by_name(const void *a, const void *b)
{
	const struct missing *x = a, *y = b;
	int order = memcmp(x->name, y->name, x->len < y->len ? x->len : y->len);

	return order ? order : x->len < y->len ? -1 : x->len > y->len;
}

static int by_count(const void *a, const void *b)
{
	const struct missing *x = a, *y = b;

	return x->count != y->count ? (x->count > y->count ? -1 : 1) : by_name(a, b);
}

/* Counts for each module, by dump and index; those in no module come last. The number of all. */
static size_t count_missing(const struct naming *naming, const size_t *first, struct missing *all)
{
	const struct comparison *comparison = naming->comparison;
	size_t frames = 0;

	for (size_t i = 0; i < comparison->row_count; i++) {
		const struct row *row = &comparison->rows[i];
		for (size_t k = 0; naming->of_row[i] && k < frame_count(row); k++, frames++) {
			const struct symbol_query *frame = &naming->of_row[i][k];
			const struct sums *dump =
				frame->names == row->dump->names ? row->dump : row->older_dump;

			if (frame->found.count)
				continue;
			if (frame->module)
				all[first[dump - comparison->dumps] +
					(size_t)(frame->module - dump->modules)]
					.count++;
			else
				all[first[comparison->dump_count]].count++;
		}
	}
	return frames;
}

/* Unites modules of one name and drops those with nothing; the most frames first. */
static size_t unite(struct missing *all, size_t count)
{
	size_t some = 0, kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (all[i].count)
			all[some++] = all[i];
	}
	qsort(all, some, sizeof(*all), by_name);
	for (size_t i = 0; i < some; i++) {
		if (kept && !by_name(&all[kept - 1], &all[i]))
			all[kept - 1].count += all[i].count;
		else
			all[kept++] = all[i];
	}
	qsort(all, kept, sizeof(*all), by_count);
	return kept;
}

static int say_missing(struct buf *words, const struct missing *all, size_t modules, size_t frames)
{
	size_t missing = 0;
	int rc = 0;

	for (size_t i = 0; i < modules; i++)
		missing += all[i].count;
	if (missing)
		rc = buf_printf(words, "%zu of %zu frames have no name:", missing, frames);
	for (size_t i = 0; !rc && i < modules && i < MISSING_MAX; i++)
		rc = buf_printf(words, "%s %zu in %.*s", i ? "," : "", all[i].count,
			(int)all[i].len, all[i].name);
	if (!rc && modules > MISSING_MAX)
		rc = buf_printf(words, ", the others in %zu more", modules - MISSING_MAX);
	return rc;
}

int naming_missing(const struct naming *naming, struct buf *words)
{
	const struct comparison *comparison = naming->comparison;
	size_t count = comparison->dump_count, modules = 0, frames;
	size_t *first = calloc(count + 1, sizeof(*first));
	struct missing *all = NULL;
	int rc = -ERR_NOMEM;

	if (!first)
		goto out;
	if (!comparison->dumps) { /* it was read with its names */
		rc = 0;
		goto out;
	}
	for (size_t i = 0; i < count; i++)
		first[i + 1] = first[i] + comparison->dumps[i].module_count;
	all = calloc(first[count] + 1, sizeof(*all));
	if (!all)
		goto out;
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < comparison->dumps[i].module_count; k++, modules++)
			all[modules].len =
				short_name(&comparison->dumps[i].modules[k], &all[modules].name);
	}
	all[modules].name = "no module";
	all[modules].len = strlen(all[modules].name);
	frames = count_missing(naming, first, all);
	rc = say_missing(words, all, unite(all, modules + 1), frames);
out:
	free(all);
	free(first);
	return rc;
}
