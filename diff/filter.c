#include "diff/filter.h"

#include <inttypes.h>
#include <string.h>

#include "core/model.h"
#include "diff/glob.h"

void filter_init(struct filter *filter)
{
	*filter = (struct filter){0};
	patterns_init(&filter->include);
	patterns_init(&filter->exclude);
	buf_init(&filter->name);
}

void filter_release(struct filter *filter)
{
	patterns_release(&filter->include);
	patterns_release(&filter->exclude);
	buf_release(&filter->name);
	filter_init(filter);
}

bool filter_is_active(const struct filter *filter)
{
	return filter->include.count || filter->exclude.count || filter->module_count ||
	       filter->min_bytes || filter->min_blocks;
}

static uint64_t magnitude(int64_t value)
{
	return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

bool filter_growth(const struct filter *filter, const struct delta *delta)
{
	return magnitude(delta->requested_bytes) >= filter->min_bytes &&
	       magnitude(delta->block_count) >= filter->min_blocks;
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

/* Where a module's extension is not known, any will do. */
static bool is_named(const char *wanted, const char *module, const char *file)
{
	size_t len = strlen(wanted), module_len = strlen(module);
	const char *dot = strrchr(wanted, '.');

	if (same_name(wanted, len, module, module_len))
		return true;
	if (file)
		return same_name(wanted, len, file, strlen(file));
	return dot && same_name(wanted, (size_t)(dot - wanted), module, module_len);
}

static bool is_in_module(const struct filter *filter, const struct comparison *comparison,
	const struct row *row, const struct frames *frames)
{
	for (size_t i = 0; i < frames->count; i++) {
		const struct frame *frame = &frames->items[i];
		const char *file = frame_module_file(comparison, row, frame);

		for (size_t k = 0; frame->module && k < filter->module_count; k++) {
			if (is_named(filter->modules[k], frame->module, file))
				return true;
		}
	}
	return false;
}

/* ---------------------------------------------------------------- patterns */

/* Whether any of the patterns matches any of the texts a frame has: 1, 0 or negative. */
static int match_frame(struct patterns *patterns, const struct frame *frame, bool raw,
	struct buf *name, struct err *err)
{
	int found;

	if (frame_name(frame, name))
		return err_set(err, ERR_NOMEM, NULL, NULL);
	found = patterns_match(patterns, name->data, err);
	if (!found && frame->file)
		found = patterns_match(patterns, frame->file, err);
	if (!found && raw && frame->has_addr) {
		buf_clear(name);
		if (buf_printf(name, "%" PRIX64, frame->addr))
			return err_set(err, ERR_NOMEM, NULL, NULL);
		found = patterns_match(patterns, name->data, err);
	}
	return found;
}

static int match_frames(struct filter *filter, struct patterns *patterns,
	const struct frames *frames, bool raw, struct err *err)
{
	int found = 0;

	for (size_t i = 0; patterns->count && !found && i < frames->count; i++)
		found = match_frame(patterns, &frames->items[i], raw, &filter->name, err);
	return found;
}

int filter_raw(struct filter *filter, const struct comparison *comparison, const struct row *row,
	const struct frames *frames, enum verdict *verdict, struct err *err)
{
	int excluded, included = !filter->include.count;

	if (filter->module_count && !is_in_module(filter, comparison, row, frames)) {
		*verdict = VERDICT_DROP;
		return 0;
	}
	excluded = match_frames(filter, &filter->exclude, frames, true, err);
	if (!excluded && !included)
		included = match_frames(filter, &filter->include, frames, true, err);
	if (excluded < 0 || included < 0)
		return excluded < 0 ? excluded : included;
	if (excluded || (!included && !frames->count))
		*verdict = VERDICT_DROP;
	else if (!included)
		*verdict = VERDICT_NAMES;
	else
		*verdict = filter->exclude.count ? VERDICT_NAMES_EXCLUDE : VERDICT_KEEP;
	return 0;
}

int filter_named(
	struct filter *filter, const struct frames *frames, enum verdict *verdict, struct err *err)
{
	int found;

	if (*verdict == VERDICT_NAMES) {
		found = match_frames(filter, &filter->include, frames, false, err);
		if (found < 0)
			return found;
		*verdict = found ? VERDICT_NAMES_EXCLUDE : VERDICT_DROP;
	}
	if (*verdict == VERDICT_NAMES_EXCLUDE) {
		found = match_frames(filter, &filter->exclude, frames, false, err);
		if (found < 0)
			return found;
		*verdict = found ? VERDICT_DROP : VERDICT_KEEP;
	}
	return 0;
}
