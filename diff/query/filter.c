#include "diff/query/filter.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/text.h"
#include "core/dump/model.h"
#include "diff/match/row_series.h"
#include "diff/query/pattern.h"

void filter_init(struct filter *filter)
{
	*filter = (struct filter){0};
	patterns_init(&filter->include, "-i");
	patterns_init(&filter->exclude, "-x");
	buf_init(&filter->name);
	buf_init(&filter->addr);
}

void filter_release(struct filter *filter)
{
	patterns_release(&filter->include);
	patterns_release(&filter->exclude);
	buf_release(&filter->name);
	buf_release(&filter->addr);
	filter_init(filter);
}

bool filter_is_active(const struct filter *filter)
{
	return filter->include.count || filter->exclude.count || filter->module_count ||
	       filter->min_bytes || filter->min_blocks || filter->trend_verdicts;
}

static uint64_t magnitude(int64_t value)
{
	return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

/* Net growth would hide what returns. */
static struct block_totals magnitude_of(const struct comparison *comparison, const struct row *row)
{
	struct delta delta;

	if (comparison->axis)
		return series_swing(comparison->axis, row->of);
	delta = row_delta(comparison, row);
	return (struct block_totals){.block_count = magnitude(delta.block_count),
		.requested_bytes = magnitude(delta.requested_bytes)};
}

bool filter_change(
	const struct filter *filter, const struct comparison *comparison, const struct row *row)
{
	struct block_totals change = magnitude_of(comparison, row);

	return change.requested_bytes >= filter->min_bytes &&
	       change.block_count >= filter->min_blocks &&
	       (!filter->trend_verdicts || filter->trend_verdicts >> row->trend.verdict & 1);
}

/* ---------------------------------------------------------------- modules */

/* A frame's address is one in either of the row's dumps; its module's short name tells which. */
static const char *module_file(const struct dump_sums *dump, const struct frame *frame)
{
	const struct module *module =
		dump ? module_of_return(dump->modules, dump->module_count, frame->addr) : NULL;
	const char *file = module ? module_path_base(module->path) : "";
	size_t len = strlen(frame->module);

	return !strncmp(file, frame->module, len) && (!file[len] || file[len] == '.') ? file : NULL;
}

const char *filter_frame_file(
	const struct comparison *comparison, const struct row *row, const struct frame *frame)
{
	const char *file;

	if (!comparison->dumps || !frame->module || !frame->has_addr)
		return NULL;
	file = module_file(row->dump, frame);
	return file ? file : module_file(row->older_dump, frame);
}

/* Whether a module is the one that is wanted; where its file's name is NULL, that with extension is
 * not known and any will do. */
static bool filter_names_module(const char *wanted, const char *module, const char *file)
{
	size_t len = strlen(wanted), module_len = strlen(module);
	const char *dot = strrchr(wanted, '.');

	if (text_same(wanted, len, module, module_len))
		return true;
	if (file)
		return text_same(wanted, len, file, strlen(file));
	return dot && text_same(wanted, (size_t)(dot - wanted), module, module_len);
}

/* Whether a row, whose frames these are, goes through one of the modules. */
static bool filter_modules(const struct filter *filter, const struct comparison *comparison,
	const struct row *row, const struct frames *frames)
{
	for (size_t i = 0; i < frames->count; i++) {
		const struct frame *frame = &frames->items[i];
		const char *file = filter_frame_file(comparison, row, frame);

		for (size_t k = 0; frame->module && k < filter->module_count; k++) {
			if (filter_names_module(filter->modules[k], frame->module, file))
				return true;
		}
	}
	return false;
}

/* ---------------------------------------------------------------- raw frames */

static int match_raw(
	struct patterns *patterns, const struct filter *filter, bool has_addr, struct err *err)
{
	int found = patterns_match(patterns, filter->name.data, err);

	return found || !has_addr ? found : patterns_match(patterns, filter->addr.data, err);
}

/* Holds both lists against each frame; its texts, which are mostly its own, are made once. Stops
 * when the row is excluded. */
static int match_raw_frames(struct filter *filter, const struct frames *frames, int *excluded,
	int *included, struct err *err)
{
	for (size_t i = 0; i < frames->count; i++) {
		const struct frame *frame = &frames->items[i];

		buf_clear(&filter->addr);
		if (frame_name(frame, &filter->name) ||
			buf_printf(&filter->addr, "%" PRIX64, frame->addr))
			return err_set(err, ERR_NOMEM, NULL, NULL);
		*excluded = match_raw(&filter->exclude, filter, frame->has_addr, err);
		if (*excluded)
			return *excluded < 0 ? *excluded : 0;
		if (!*included)
			*included = match_raw(&filter->include, filter, frame->has_addr, err);
		if (*included < 0)
			return *included;
	}
	return 0;
}

int filter_raw(struct filter *filter, const struct comparison *comparison, const struct row *row,
	const struct frames *frames, enum verdict *verdict, struct err *err)
{
	int excluded = 0, included = !filter->include.count, rc = 0;

	if (filter->module_count && !filter_modules(filter, comparison, row, frames)) {
		*verdict = VERDICT_DROP;
		return 0;
	}
	if (filter->include.count || filter->exclude.count)
		rc = match_raw_frames(filter, frames, &excluded, &included, err);
	if (rc)
		return rc;
	if (excluded || (!included && !frames->count))
		*verdict = VERDICT_DROP;
	else if (!included)
		*verdict = VERDICT_NAMES;
	else
		*verdict = filter->exclude.count ? VERDICT_NAMES_EXCLUDE : VERDICT_KEEP;
	return 0;
}

/* ---------------------------------------------------------------- named frames */

/* Whether any of the patterns matches any frame: 1, 0 or negative. Raw forms are done with. */
static int match_named(
	struct patterns *patterns, const struct frames *frames, struct buf *name, struct err *err)
{
	int found = 0;

	for (size_t i = 0; patterns->count && !found && i < frames->count; i++) {
		const struct frame *frame = &frames->items[i];

		if (frame->function && frame_name(frame, name))
			return err_set(err, ERR_NOMEM, NULL, NULL);
		if (frame->function)
			found = patterns_match_known(patterns, name->data, err);
		if (!found && frame->file)
			found = patterns_match_known(patterns, frame->file, err);
	}
	return found;
}

int filter_named(
	struct filter *filter, const struct frames *frames, enum verdict *verdict, struct err *err)
{
	int found;

	if (*verdict == VERDICT_NAMES) {
		found = match_named(&filter->include, frames, &filter->name, err);
		if (found < 0)
			return found;
		*verdict = found ? VERDICT_NAMES_EXCLUDE : VERDICT_DROP;
	}
	if (*verdict == VERDICT_NAMES_EXCLUDE) {
		found = match_named(&filter->exclude, frames, &filter->name, err);
		if (found < 0)
			return found;
		*verdict = found ? VERDICT_DROP : VERDICT_KEEP;
	}
	return 0;
}

/* ---------------------------------------------------------------- modules */

static bool is_in_frames(const char *wanted, const struct frame *frames, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (frames[i].module && filter_names_module(wanted, frames[i].module, NULL))
			return true;
	}
	return false;
}

static bool is_in_dump(const char *wanted, const struct naming *naming, size_t dump)
{
	const struct dump_sums *sums = &naming->comparison->dumps[dump];

	for (size_t i = 0; i < sums->module_count; i++) {
		if (filter_names_module(wanted, naming->modules[dump][i],
			    module_path_base(sums->modules[i].path)))
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
		const struct dump_sums *sums = &comparison->dumps[i];

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

struct filter_search {
	struct filter *filter;
	struct naming raw; /* frames without names */
	struct naming *naming;
	struct frames frames;
	uint32_t *rows; /* that the other filters leave */
	size_t row_count;
};

/* Holds all forms of the row's frames against the patterns that have matched nothing so far. */
static int try_row(struct filter_search *search, const struct naming *naming, uint32_t row)
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

static int try_rows(struct filter_search *search, const struct naming *naming)
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

static int find_rows(struct filter_search *search)
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

static int try_all(struct filter_search *search)
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
	struct filter_search search = {.filter = filter, .naming = naming};
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
