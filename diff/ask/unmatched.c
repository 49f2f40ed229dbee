#include "diff/ask/unmatched.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/err.h"
#include "core/model.h"

/* ---------------------------------------------------------------- modules */

static bool is_in_frames(const char *wanted, const struct frame *frames, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (frames[i].module && module_is_named(wanted, frames[i].module, NULL))
			return true;
	}
	return false;
}

static bool is_in_dump(const char *wanted, const struct naming *naming, size_t dump)
{
	const struct sums *sums = &naming->comparison->dumps[dump];

	for (size_t i = 0; i < sums->module_count; i++) {
		if (module_is_named(
			    wanted, naming->modules[dump][i], path_base(sums->modules[i].path)))
			return true;
	}
	return is_in_frames(wanted, naming->texts[dump], sums->text_count);
}

static bool is_module(const char *wanted, const struct naming *naming)
{
	const struct comparison *comparison = naming->comparison;

	for (size_t i = 0; comparison->dumps && i < comparison->dump_count; i++) {
		if (is_in_dump(wanted, naming, i))
			return true;
	}
	for (size_t i = 0; !comparison->dumps && i < comparison->row_count; i++) {
		const struct frames *frames = comparison->rows[i].frames;

		if (frames && is_in_frames(wanted, frames->items, frames->count))
			return true;
	}
	return false;
}

int unmatched_modules(
	const struct filter *filter, const struct naming *naming, unmatched_say *say, void *ctx)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < filter->module_count; i++) {
		if (!is_module(filter->modules[i], naming))
			rc = say(ctx, "--module", filter->modules[i], "no module has this name");
	}
	return rc;
}

/* ---------------------------------------------------------------- heaps */

static bool is_heap(const struct comparison *comparison, uint64_t addr)
{
	for (size_t i = 0; i < comparison->dump_count; i++) {
		const struct sums *sums = &comparison->dumps[i];

		for (size_t k = 0; k < sums->heap_count; k++) {
			if (sums->heaps[k] == addr)
				return true;
		}
	}
	return false;
}

int unmatched_heaps(const struct comparison *comparison, const uint64_t *heaps, size_t count,
	unmatched_say *say, void *ctx)
{
	char addr[20];
	int rc = 0;

	for (size_t i = 0; !rc && comparison->dumps && i < count; i++) {
		if (is_heap(comparison, heaps[i]))
			continue;
		snprintf(addr, sizeof(addr), "%" PRIX64, heaps[i]);
		rc = heap_name(heaps[i]) ? say(ctx, "--heap", heap_name(heaps[i]),
						   "no dump has recorded such memory") :
					   say(ctx, "--heap", addr, "no dump has this heap");
	}
	return rc;
}

/* ---------------------------------------------------------------- patterns */

struct search {
	struct filter *filter;
	struct naming raw; /* frames without names */
	struct naming *naming;
	struct frames frames;
	uint32_t *rows; /* that the other filters leave */
	size_t row_count;
};

/* Holds all forms of the row's frames against the patterns that have matched nothing so far. */
static int try_row(struct search *search, const struct naming *naming, uint32_t row)
{
	struct filter *filter = search->filter;

	if (naming_frames(naming, row, &search->frames))
		return -ERR_NOMEM;
	for (size_t i = 0; i < search->frames.count; i++) {
		const struct frame *frame = &search->frames.items[i];

		if (frame_name(frame, &filter->name))
			return -ERR_NOMEM;
		patterns_try(&filter->include, filter->name.data);
		if (frame->file)
			patterns_try(&filter->include, frame->file);
		buf_clear(&filter->addr);
		if (frame->has_addr && buf_printf(&filter->addr, "%" PRIX64, frame->addr))
			return -ERR_NOMEM;
		if (frame->has_addr)
			patterns_try(&filter->include, filter->addr.data);
	}
	return 0;
}

static int try_rows(struct search *search, const struct naming *naming)
{
	const struct patterns *patterns = &search->filter->include;
	int rc = 0;

	for (size_t i = 0; !rc && i < search->row_count; i++) {
		if (patterns_unmatched(patterns, 0) == patterns->count)
			break;
		rc = try_row(search, naming, search->rows[i]);
	}
	return rc;
}

static int find_rows(struct search *search)
{
	const struct comparison *comparison = search->naming->comparison;
	const struct filter *filter = search->filter;

	search->rows = calloc(comparison->row_count + 1, sizeof(*search->rows));
	if (!search->rows)
		return -ERR_NOMEM;
	for (size_t i = 0; i < comparison->row_count; i++) {
		const struct row *row = &comparison->rows[i];

		if (!filter_change(filter, comparison, row))
			continue;
		if (filter->module_count && naming_frames(&search->raw, i, &search->frames))
			return -ERR_NOMEM;
		if (filter->module_count &&
			!filter_modules(filter, comparison, row, &search->frames))
			continue;
		search->rows[search->row_count++] = (uint32_t)i;
	}
	return 0;
}

/* When none has matched and nothing was excluded, selecting has held all of them against all that
 * there is. */
static bool were_all_held(const struct filter *filter)
{
	for (size_t i = 0; i < filter->include.count; i++) {
		if (patterns_unmatched(&filter->include, i) != i)
			return false;
	}
	return !filter->exclude.count;
}

static int try_all(struct search *search)
{
	const struct patterns *patterns = &search->filter->include;
	struct err err;
	int rc = try_rows(search, &search->raw);

	if (!rc && patterns_unmatched(patterns, 0) < patterns->count)
		rc = naming_find(search->naming, search->rows, search->row_count, &err);
	return rc ? rc : try_rows(search, search->naming);
}

static int say_unmatched(
	const struct patterns *patterns, bool is_part, unmatched_say *say, void *ctx)
{
	const char *what = is_part ? "no stack that changed and that other options leave has a "
				     "frame that matches it" :
				     "no stack that changed has a frame that matches it";
	int rc = 0;

	for (size_t i = 0; !rc && (i = patterns_unmatched(patterns, i)) < patterns->count; i++)
		rc = say(ctx, patterns->option, pattern_text(patterns, i), what);
	return rc;
}

int unmatched_patterns(
	struct filter *filter, struct naming *naming, bool is_part, unmatched_say *say, void *ctx)
{
	struct search search = {.filter = filter, .naming = naming};
	struct err err;
	int rc;

	if (patterns_unmatched(&filter->include, 0) == filter->include.count)
		return 0;
	is_part |= filter->module_count || filter->min_bytes || filter->min_blocks ||
		   filter->trend_verdicts;
	frames_init(&search.frames);
	rc = naming_make(&search.raw, naming->comparison, false, &err);
	if (!rc)
		rc = find_rows(&search);
	if (!rc && !were_all_held(filter))
		rc = try_all(&search);
	if (!rc && search.row_count)
		rc = say_unmatched(&filter->include, is_part, say, ctx);
	free(search.rows);
	naming_release(&search.raw);
	frames_release(&search.frames);
	return rc ? -ERR_NOMEM : 0;
}
