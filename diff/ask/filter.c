#include "diff/ask/filter.h"

#include <inttypes.h>
#include <string.h>

#include "core/model.h"
#include "diff/ask/glob.h"
#include "diff/match/series_ends.h"

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
static struct census magnitude_of(const struct comparison *comparison, const struct row *row)
{
	struct delta delta;

	if (comparison->axis)
		return series_swing(comparison->axis, row->of);
	delta = row_delta(comparison, row);
	return (struct census){.block_count = magnitude(delta.block_count),
		.requested_bytes = magnitude(delta.requested_bytes)};
}

bool filter_change(
	const struct filter *filter, const struct comparison *comparison, const struct row *row)
{
	struct census change = magnitude_of(comparison, row);

	return change.requested_bytes >= filter->min_bytes &&
	       change.block_count >= filter->min_blocks &&
	       (!filter->trend_verdicts || filter->trend_verdicts >> row->trend.verdict & 1);
}

/* ---------------------------------------------------------------- modules */

/* A frame's address is one in either of the row's dumps; its module's short name tells which. */
static const char *module_file(const struct sums *dump, const struct frame *frame)
{
	const struct module *module =
		dump ? module_of_return(dump->modules, dump->module_count, frame->addr) : NULL;
	const char *file = module ? path_base(module->path) : "";
	size_t len = strlen(frame->module);

	return !strncmp(file, frame->module, len) && (!file[len] || file[len] == '.') ? file : NULL;
}

const char *frame_module_file(
	const struct comparison *comparison, const struct row *row, const struct frame *frame)
{
	const char *file;

	if (!comparison->dumps || !frame->module || !frame->has_addr)
		return NULL;
	file = module_file(row->dump, frame);
	return file ? file : module_file(row->older_dump, frame);
}

bool module_is_named(const char *wanted, const char *module, const char *file)
{
	size_t len = strlen(wanted), module_len = strlen(module);
	const char *dot = strrchr(wanted, '.');

	if (same_name(wanted, len, module, module_len))
		return true;
	if (file)
		return same_name(wanted, len, file, strlen(file));
	return dot && same_name(wanted, (size_t)(dot - wanted), module, module_len);
}

bool filter_modules(const struct filter *filter, const struct comparison *comparison,
	const struct row *row, const struct frames *frames)
{
	for (size_t i = 0; i < frames->count; i++) {
		const struct frame *frame = &frames->items[i];
		const char *file = frame_module_file(comparison, row, frame);

		for (size_t k = 0; frame->module && k < filter->module_count; k++) {
			if (module_is_named(filter->modules[k], frame->module, file))
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
