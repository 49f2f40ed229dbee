/* Selection of stacks by size, modules and patterns, first without names, then with names. Also
 * checks for filters that match nothing. */
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

/* In a trend, the difference between the lowest and the highest snapshot counts. The net growth
 * would be 0 for memory that was freed again. */
bool filter_change(
	const struct filter *filter, const struct comparison *comparison, const struct row *row)
{
	struct block_totals change = {0};
	struct delta delta;

	if (comparison->axis) {
		change = series_swing(comparison->axis, row->totals);
	} else {
		delta = row_delta(comparison, row);
		change.block_count = magnitude(delta.block_count);
		change.requested_bytes = magnitude(delta.requested_bytes);
	}
	/* In a comparison without old counts, an unchanged count may be unknown. */
	return change.requested_bytes >= filter->min_bytes &&
	       (change.block_count >= filter->min_blocks ||
		       (comparison->lacks_counts && !change.block_count)) &&
	       (!filter->trend_verdicts ||
		       filter->trend_verdicts >> row_trend(comparison, row)->verdict & 1);
}

/* ---------------------------------------------------------------- modules */

/* Returns the file name of a frame's module in a dump. Returns NULL if the dump's module at the
 * frame's address has another short name. */
static const char *module_file(const struct dump_sums *dump, const struct frame *frame)
{
	const struct module *module =
		module_of_return(dump->module_list.items, dump->module_list.count, frame->addr);
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
	file = module_file(&comparison->dumps[row->dump], frame);
	return file ? file : module_file(&comparison->dumps[row->older_dump], frame);
}

/* Returns true if the user's `wanted` names a module. `file` is the module's name with extension.
 * If `file` is NULL, `wanted` may have any extension. */
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

/* Returns true if a frame of the row is in one of the modules. */
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

int filter_raw(struct filter *filter, const struct comparison *comparison, const struct row *row,
	const struct frames *frames, enum verdict *verdict, struct err *err)
{
	bool has_patterns = filter->include.count || filter->exclude.count;
	int excluded = 0, included = !filter->include.count;

	*verdict = VERDICT_DROP;
	if (filter->module_count && !filter_modules(filter, comparison, row, frames))
		return 0;
	/* Most frames have different texts, so texts are not cached. Each text is made once and
	 * matched against both lists. */
	for (size_t i = 0; has_patterns && !excluded && i < frames->count; i++) {
		const struct frame *frame = &frames->items[i];
		struct frame spelt;

		frame_spelling(frame, 0, &spelt);
		frame_name(&spelt, &filter->name);
		buf_clear(&filter->addr);
		buf_printf(&filter->addr, "%" PRIX64, frame->addr);
		excluded = match_raw(&filter->exclude, filter, frame->has_addr, err);
		if (!excluded && !included)
			included = match_raw(&filter->include, filter, frame->has_addr, err);
		if (excluded < 0 || included < 0)
			return -ERR_USAGE;
	}
	if (excluded || (!included && !frames->count))
		return 0;
	if (!included)
		*verdict = VERDICT_NAMES;
	else
		*verdict = filter->exclude.count ? VERDICT_NAMES_EXCLUDE : VERDICT_KEEP;
	return 0;
}

/* ---------------------------------------------------------------- named frames */

/* Returns 1 if any pattern matches a spelling of a frame's name or file, 0 if no pattern matches, or
 * an error. filter_raw() already matched the other forms of the frame. */
static int match_named(
	struct patterns *patterns, const struct frames *frames, struct buf *name, struct err *err)
{
	int found = 0;

	for (size_t i = 0; patterns->count && !found && i < frames->count; i++) {
		const struct frame *frame = &frames->items[i];
		struct frame spelt;

		for (size_t k = 0; !found && k < FRAME_SPELLINGS; k++) {
			if ((!k && !frame->function) || !frame_spelling(frame, k, &spelt))
				continue;
			frame_name(&spelt, name);
			found = patterns_match_known(patterns, name->data, err);
		}
		if (!found && frame->file)
			found = patterns_match_known(patterns, frame->file, err);
		if (!found && frame->recorded_file)
			found = patterns_match_known(patterns, frame->recorded_file, err);
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

/* ---------------------------------------------------------------- filters that match nothing */

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

	for (size_t i = 0; i < sums->module_list.count; i++) {
		if (filter_names_module(wanted, naming->modules[dump][i],
			    module_path_base(sums->module_list.items[i].path)))
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

/* Returns true if a printed comparison has rows, but no frames. */
static bool lacks_frames(const struct comparison *comparison)
{
	for (size_t i = 0; i < comparison->row_count; i++) {
		const struct frames *frames = comparison->dumps ? NULL : comparison->rows[i].frames;

		if (comparison->dumps || (frames && frames->count))
			return false;
	}
	return comparison->row_count;
}

/* Returns true if the absence of a module proves that the filter cannot work. The frames of old logs
 * have names, but only those of modules that allocated: there, a module may be absent because it
 * has no blocks. A dump of addresses that lacks the list of modules cannot show any module. */
static bool absence_is_wrong(const struct comparison *comparison)
{
	for (size_t i = 0; comparison->dumps && i < comparison->dump_count; i++) {
		const struct dump_sums *dump = &comparison->dumps[i];

		if (!dump->module_list.count && dump->text_count)
			return false;
	}
	return comparison->dumps;
}

void unmatched_modules(const struct filter *filter, const struct naming *naming,
	unmatched_report *messages, void *ctx)
{
	bool has_none = lacks_frames(naming->comparison);

	for (size_t i = 0; i < filter->module_count; i++) {
		if (!is_module(filter->modules[i], naming))
			messages(ctx, "--module", filter->modules[i],
				has_none ? "the comparison has no stacks" :
					   "no module has this name",
				has_none || absence_is_wrong(naming->comparison));
	}
}

static bool is_heap(const struct comparison *comparison, uint64_t addr)
{
	for (size_t i = 0; i < comparison->dump_count; i++) {
		const struct dump_sums *sums = &comparison->dumps[i];

		for (size_t k = 0; k < sums->heap_count; k++) {
			if (match_heap(addr, sums->heaps[k]))
				return true;
		}
	}
	return false;
}

void unmatched_heaps(const struct comparison *comparison, const uint64_t *heaps, size_t count,
	unmatched_report *messages, void *ctx)
{
	char addr[20];

	for (size_t i = 0; comparison->dumps && i < count; i++) {
		if (is_heap(comparison, heaps[i]))
			continue;
		snprintf(addr, sizeof(addr), "%" PRIX64, heaps[i]);
		if (heaps[i] == HEAPS_ALL)
			messages(ctx, "--heap", "heaps", "no dump has a heap", false);
		else if (heaps[i] == HANDLES_ALL || heap_is_handles(heaps[i]))
			messages(ctx, "--heap", "handles",
				"no dump has handles; hsnap run --handles records them", false);
		else if (heap_name(heaps[i]))
			messages(ctx, "--heap", heap_name(heaps[i]), "no dump records such memory",
				false);
		else
			messages(ctx, "--heap", addr, "no dump has this heap", true);
	}
}

/* Matches all forms of a row's frames against the patterns that have not matched yet. */
static void try_row(struct patterns *patterns, const struct frames *frames)
{
	struct buf text;

	buf_init(&text);
	for (size_t i = 0; i < frames->count; i++) {
		const struct frame *frame = &frames->items[i];
		struct frame spelt;

		for (size_t k = 0; k < FRAME_SPELLINGS; k++) {
			if (!frame_spelling(frame, k, &spelt))
				continue;
			frame_name(&spelt, &text);
			patterns_try(patterns, text.data);
		}
		if (frame->file)
			patterns_try(patterns, frame->file);
		if (frame->recorded_file)
			patterns_try(patterns, frame->recorded_file);
		if (!frame->has_addr)
			continue;
		buf_clear(&text);
		buf_printf(&text, "%" PRIX64, frame->addr);
		patterns_try(patterns, text.data);
	}
	buf_release(&text);
}

/* Returns true if every pattern was already tried on every row during selection. This is the case
 * if no pattern matched and the other list is empty. */
static bool were_all_held(const struct patterns *patterns, const struct patterns *others)
{
	for (size_t i = 0; i < patterns->count; i++) {
		if (patterns_unmatched(patterns, i) != i)
			return false;
	}
	return !others->count;
}

/* Returns true if a pattern may miss stacks of these rows, because no frame of the module before its
 * "!" has a name, or no frame at all. A pattern for offsets or for a listed module needs no names. */
static bool lacks_names(
	const struct naming *naming, const uint32_t *rows, size_t count, const char *pattern)
{
	bool has_frames = false, is_nameless = false, is_named = false, is_listed;
	struct frames frames;
	struct buf text;
	char *module;
	size_t len;

	frames_init(&frames);
	buf_init(&text);
	buf_add_text(&text, pattern + (*pattern == '^'));
	pattern_drop_extensions(text.data);
	module = text.data;
	len = strcspn(module, "!\\.[](){}*+?|$^");
	is_listed = !module[len] && is_module(module, naming);
	module = module[len] == '!' ? module : NULL;
	for (size_t i = 0; i < count && !is_named; i++) {
		naming_frames(naming, rows[i], &frames);
		for (size_t k = 0; k < frames.count; k++) {
			const struct frame *frame = &frames.items[k];

			has_frames = true;
			if (module && (!frame->module || !text_same(module, len, frame->module,
								 strlen(frame->module))))
				continue;
			is_named |= frame->function != NULL;
			is_nameless |= !frame->function;
		}
	}
	buf_release(&text);
	frames_release(&frames);
	return !is_named && (is_nameless || !has_frames) && !is_listed && !strstr(pattern, "\\+");
}

/* Checks one list of patterns: part of unmatched_patterns(). */
static void check_patterns(struct filter *filter, struct patterns *patterns, struct naming *naming,
	bool is_part, unmatched_report *messages, void *ctx)
{
	const struct comparison *comparison = naming->comparison;
	const struct patterns *others =
		patterns == &filter->include ? &filter->exclude : &filter->include;
	uint32_t *rows; /* rows that pass the other filters */
	size_t count = 0;
	struct frames frames;

	if (patterns_unmatched(patterns, 0) == patterns->count)
		return;
	is_part |= filter->module_count || filter->min_bytes || filter->min_blocks ||
		   filter->trend_verdicts;
	frames_init(&frames);
	rows = xcalloc(comparison->row_count + 1, sizeof(*rows));
	for (size_t i = 0; i < comparison->row_count; i++) {
		const struct row *row = &comparison->rows[i];

		if (!filter_change(filter, comparison, row))
			continue;
		if (filter->module_count) {
			naming_raw_frames(naming, i, &frames);
			if (!filter_modules(filter, comparison, row, &frames))
				continue;
		}
		rows[count++] = (uint32_t)i;
	}
	/* Looking up names is slow, so patterns are tried without names first. */
	for (int with_names = 0; with_names < 2 && !were_all_held(patterns, others); with_names++) {
		if (with_names && patterns_unmatched(patterns, 0) < patterns->count)
			naming_find(naming, rows, count);
		for (size_t i = 0; i < count; i++) {
			if (patterns_unmatched(patterns, 0) == patterns->count)
				break;
			if (with_names)
				naming_frames(naming, rows[i], &frames);
			else
				naming_raw_frames(naming, rows[i], &frames);
			try_row(patterns, &frames);
		}
	}
	for (size_t i = 0;
		messages && count && (i = patterns_unmatched(patterns, i)) < patterns->count; i++) {
		const char *text = pattern_text(patterns, i);
		bool is_unsure =
			patterns == &filter->include && lacks_names(naming, rows, count, text);

		if (is_unsure && count < comparison->row_count) {
			for (count = 0; count < comparison->row_count; count++)
				rows[count] = (uint32_t)count;
			naming_find(naming, rows, count);
			is_unsure = lacks_names(naming, rows, count, text);
		}
		messages(ctx, patterns->option, text,
			is_unsure ? "no frame has a name that it could match" :
			is_part	  ? "no changed stack that passes the other options has a matching "
				    "frame" :
				    "no changed stack has a matching frame",
			is_unsure);
	}
	free(rows);
	frames_release(&frames);
}

void unmatched_patterns(struct filter *filter, struct naming *naming, bool is_part,
	unmatched_report *messages, void *ctx)
{
	check_patterns(filter, &filter->include, naming, is_part, messages, ctx);
	check_patterns(filter, &filter->exclude, naming, is_part, messages, ctx);
}
