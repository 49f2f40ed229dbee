#include "diff/naming.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"

#define MISSING_MAX 4 /* modules that are named */

static size_t frame_count(const struct row *row)
{
	return row->stack ? row->stack->frame_count : 0;
}

static void ask_row(struct symbol_query *queries, const struct row *row, bool by_name)
{
	for (size_t i = 0; i < frame_count(row); i++) {
		uint64_t addr = row->stack->frames[i];

		queries[i] = (struct symbol_query){.addr = addr,
			.module = sums_module_at(row->dump, addr),
			.names = by_name ? row->dump->names : NULL};
	}
}

int naming_make(
	struct naming *naming, const struct comparison *comparison, bool by_name, struct err *err)
{
	size_t count = comparison->row_count, total = 0;

	*naming = (struct naming){.comparison = comparison};
	naming->first = calloc(count + 1, sizeof(*naming->first));
	for (size_t i = 0; naming->first && i < count; i++) {
		naming->first[i] = total;
		total += frame_count(&comparison->rows[i]);
	}
	naming->frames = calloc(total + 1, sizeof(*naming->frames));
	if (!naming->first || !naming->frames)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	naming->first[count] = total;
	for (size_t i = 0; i < count; i++)
		ask_row(naming->frames + naming->first[i], &comparison->rows[i], by_name);
	if (!by_name || !total)
		return 0;
	naming->symbolizer = symbolizer_new(err);
	if (!naming->symbolizer)
		return -ERR_NOMEM;
	return symbolizer_resolve(naming->symbolizer, naming->frames, total, err);
}

void naming_release(struct naming *naming)
{
	if (naming->symbolizer)
		symbolizer_free(naming->symbolizer);
	free(naming->frames);
	free(naming->first);
	*naming = (struct naming){0};
}

const struct symbol_query *naming_frames(const struct naming *naming, size_t index)
{
	return naming->frames + naming->first[index];
}

size_t naming_module(const struct module *module, const char **name)
{
	const char *dot;

	*name = path_base(module->path);
	dot = strrchr(*name, '.');
	return dot && dot > *name ? (size_t)(dot - *name) : strlen(*name);
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

/* One item per frame without a name; then one per module, the most frames first. */
static size_t collect(const struct naming *naming, struct missing *all)
{
	size_t frames = naming->first[naming->comparison->row_count], count = 0, kept = 0;

	for (size_t i = 0; i < frames; i++) {
		const struct symbol_query *frame = &naming->frames[i];

		if (frame->found.count)
			continue;
		all[count] = (struct missing){"no module", strlen("no module"), 1};
		if (frame->module)
			all[count].len = naming_module(frame->module, &all[count].name);
		count++;
	}
	qsort(all, count, sizeof(*all), by_name);
	for (size_t i = 0; i < count; i++) {
		if (kept && !by_name(&all[kept - 1], &all[i]))
			all[kept - 1].count++;
		else
			all[kept++] = all[i];
	}
	qsort(all, kept, sizeof(*all), by_count);
	return kept;
}

int naming_missing(const struct naming *naming, struct buf *words)
{
	size_t frames = naming->first[naming->comparison->row_count], missing = 0, modules;
	struct missing *all = calloc(frames + 1, sizeof(*all));
	int rc = all ? 0 : -ERR_NOMEM;

	modules = all ? collect(naming, all) : 0;
	for (size_t i = 0; i < modules; i++)
		missing += all[i].count;
	if (missing)
		rc = buf_printf(words, "%zu of %zu frames have no name:", missing, frames);
	for (size_t i = 0; !rc && i < modules && i < MISSING_MAX; i++)
		rc = buf_printf(words, "%s %zu in %.*s", i ? "," : "", all[i].count,
			(int)all[i].len, all[i].name);
	if (!rc && modules > MISSING_MAX)
		rc = buf_printf(words, ", the others in %zu more", modules - MISSING_MAX);
	free(all);
	return rc;
}
