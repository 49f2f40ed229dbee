/*
 * Chains of printed comparisons: NEW of each comparison is OLD of the next.
 *
 * The comparisons are converted to dumps, one for each moment. Each dump contains all stacks that
 * occur in any comparison. A stack that is missing in a comparison did not change there. UMDH
 * prints a row for each id, so equal stacks with different ids are kept separate. */
#include "diff/chain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/text.h"
#include "diff/file_list.h"
#include "diff/inputs.h"
#include "diff/messages.h"
#include "diff/options.h"
#include "diff/printed/printed.h"
#include "diff/read/read_dump.h"
#include "diff/read/text_sums.h"

/* A stack and its sums at each moment. */
struct chain_row {
	const char *id;
	const struct frames *frames;
	enum row_kind kind;
	struct block_totals *at;
	size_t last; /* latest moment with known sums */
};

struct chain {
	struct inputs *inputs;
	const struct file_list *list;
	struct comparison *comparisons; /* indexed by file */
	struct chain_row *rows;
	size_t row_count, row_cap;
	struct table numbers; /* maps id and frames to a row number */
	struct table ids; /* maps an id to the first file with it */
	struct arena arena;
	/* number of rows in the current file that also occur in an earlier file */
	size_t joined_count;
	/* number of rows in the current file whose id occurs in an earlier file, but only with
	 * other names */
	size_t renamed_count;
	/* `rests` is indexed by moment: growth, since the first moment, of all stacks without a
	 * row. Their actual number of bytes is unknown. It is assumed to be 0 at the moment with
	 * the smallest value, `least_rest`. */
	int64_t *rests, least_rest;
	bool lacks_rows; /* stacks without a row exist */
};

#define TOO_MUCH "with the comparisons before it, " SUMS_TOO_LARGE

enum chain_part {
	PART_OTHER, /* forbids a chain */
	PART_COMPARISON,
	PART_DOUBLE, /* named twice */
	/* file of unknown kind that was not named; allowed in a folder with comparisons */
	PART_FOREIGN,
};

static enum chain_part part_of(const struct file_item *item)
{
	enum file_kind kind = FILE_UNKNOWN;
	struct source *source;
	const char *words;
	int rc;

	if (item->is_double)
		return PART_DOUBLE;
	if (!strcmp(item->path, "-") || os_is_special(item->path) || item->part.is_asked ||
		source_open(&source, item->file, NULL))
		return PART_OTHER;
	rc = input_kind(item->path, source, &kind, &words, NULL);
	source_close(source);
	if (!rc && kind == FILE_COMPARISON)
		return PART_COMPARISON;
	return !rc && kind == FILE_UNKNOWN && item->is_found ? PART_FOREIGN : PART_OTHER;
}

static bool is_kept(const struct file_item *item, size_t number, void *ctx)
{
	const enum chain_part *parts = ctx;

	(void)item;
	return parts[number] == PART_COMPARISON;
}

bool chain_find(struct file_list *list, FILE *messages)
{
	enum chain_part *parts = xcalloc(list->count + 1, sizeof(*parts));
	size_t comparisons = 0, others = 0;

	for (size_t i = 0; i < list->count && !others; i++) {
		parts[i] = part_of(&list->items[i]);
		comparisons += parts[i] == PART_COMPARISON;
		others += parts[i] == PART_OTHER;
	}
	for (size_t i = 0; !others && comparisons > 1 && i < list->count; i++) {
		if (parts[i] != PART_COMPARISON)
			message_left_out(messages, list->items[i].path,
				parts[i] == PART_DOUBLE ? "named twice" : "not a comparison");
	}
	if (!others && comparisons > 1)
		file_list_filter(list, is_kept, parts);
	free(parts);
	return !others && comparisons > 1;
}

/* ---------------------------------------------------------------- reading */

static int count_skipped(void *ctx, const struct err *why)
{
	struct inputs *inputs = ctx;

	inputs->is_partial = true;
	message_left_out(inputs->messages, why->place, why->detail);
	return 0;
}

static int print_warning(void *ctx, const char *text)
{
	struct inputs *inputs = ctx;

	message_warning(inputs->messages, inputs->printed_name, "", text);
	return 0;
}

int chain_read_comparison(struct inputs *inputs, struct comparison *comparison,
	struct source *source, const char *name, bool by_id, struct err *err)
{
	struct read_words words = {inputs, count_skipped, print_warning, by_id};

	inputs->printed_name = name;
	return comparison_read(
		comparison, source, (unsigned)inputs->options->input_base, &words, err);
}

/* Appends a frame as text that frame_parse() can read. */
static void add_frame_text(struct buf *text, const struct frame *frame)
{
	if (frame->function) {
		buf_printf(text, "%s%s%s", frame->module ? frame->module : "",
			frame->module ? "!" : "", frame->function);
		if (frame->offset_bytes)
			buf_printf(text, "+%llX", (unsigned long long)frame->offset_bytes);
	} else if (frame->module) {
		buf_printf(text, "%s+%llX : %llX", frame->module,
			(unsigned long long)frame->offset_bytes, (unsigned long long)frame->addr);
	} else {
		buf_printf(text, "%llX", (unsigned long long)frame->addr);
	}
	if (frame->file)
		buf_printf(text, " (%s, %u)", frame->file, frame->line);
	if (frame->is_inline)
		buf_add_text(text, " [inline]");
}

static bool same_totals(const struct block_totals *a, const struct block_totals *b)
{
	return a->block_count == b->block_count && a->requested_bytes == b->requested_bytes;
}

static int contradiction(const struct chain *chain, size_t number, const struct chain_row *row,
	const struct block_totals *old, struct err *err)
{
	const struct block_totals *before = &row->at[row->last];

	return err_set(err, ERR_USAGE, chain->list->items[number].path,
		"does not continue where %s ends: BackTrace%s ends with %llu byte%s in %llu "
		"block%s "
		"there, but starts with %llu in %llu here; give comparisons of one process in "
		"order, or the dumps",
		chain->list->items[row->last - 1].path, row->id,
		(unsigned long long)before->requested_bytes, text_plural(before->requested_bytes),
		(unsigned long long)before->block_count, text_plural(before->block_count),
		(unsigned long long)old->requested_bytes, (unsigned long long)old->block_count);
}

/* Counts a new row if its id occurs in an earlier file. */
static void count_renamed(struct chain *chain, size_t number, const char *id)
{
	const uint64_t *first = table_find(&chain->ids, id, strlen(id));

	if (!first)
		table_add(&chain->ids, id, strlen(id), number);
	else if (*id)
		chain->renamed_count += *first < number;
}

static int add_row(
	struct chain *chain, size_t number, const struct row *row, struct buf *key, struct err *err)
{
	const struct block_totals *old = &row->totals[0];
	const char *id = row->id_count ? row->ids[0] : "";
	struct chain_row *taken;
	uint64_t *known;

	buf_clear(key);
	buf_add(key, id, strlen(id) + 1);
	for (size_t i = 0; i < row->frames->count; i++) {
		add_frame_text(key, &row->frames->items[i]);
		buf_add(key, "\n", 1);
	}
	known = table_find(&chain->numbers, key->data, key->len);
	if (!known) {
		array_grow((void **)&chain->rows, &chain->row_cap, chain->row_count,
			sizeof(*chain->rows));
		table_add(&chain->numbers, key->data, key->len, chain->row_count);
		count_renamed(chain, number, id);
		taken = &chain->rows[chain->row_count++];
		*taken = (struct chain_row){.id = id,
			.frames = row->frames,
			.kind = row->kind,
			.at = arena_alloc(
				&chain->arena, (chain->list->count + 1) * sizeof(*taken->at))};
		taken->at[0] = *old;
	} else {
		taken = &chain->rows[*known];
		chain->joined_count++;
		if (!same_totals(&taken->at[taken->last], old))
			return contradiction(chain, number, taken, old, err);
	}
	while (taken->last < number) {
		taken->at[taken->last + 1] = taken->at[taken->last];
		taken->last++;
	}
	taken->at[++taken->last] = row->totals[1];
	return 0;
}

/* Adds to `rests` the growth in the total line of comparison `number` that its rows do not
 * explain. */
static int add_rest(struct chain *chain, size_t number, struct err *err)
{
	const struct comparison *comparison = &chain->comparisons[number];
	int64_t rest, rows = 0; /* no overflow: read_rows_finish() checked the sum */

	for (size_t i = 0; i < comparison->row_count; i++)
		rows += row_delta(comparison, &comparison->rows[i]).requested_bytes;
	chain->lacks_rows |= comparison->lacks_rows;
	if (__builtin_sub_overflow(comparison_delta(comparison).requested_bytes, rows, &rest) ||
		__builtin_add_overflow(chain->rests[number], rest, &chain->rests[number + 1]) ||
		chain->rests[number + 1] > INT64_MAX / 2 ||
		chain->rests[number + 1] < -(INT64_MAX / 2))
		return err_set(err, ERR_BAD_LINE, chain->list->items[number].path, TOO_MUCH);
	if (chain->rests[number + 1] < chain->least_rest)
		chain->least_rest = chain->rests[number + 1];
	return 0;
}

static int read_one(struct chain *chain, size_t number, struct err *err)
{
	const struct options *options = chain->inputs->options;
	const struct file_item *item = &chain->list->items[number];
	struct comparison *comparison = &chain->comparisons[number];
	struct source *source;
	struct buf key;
	int rc = source_open(&source, item->file, err);

	if (rc)
		return rc;
	buf_init(&key);
	chain->joined_count = chain->renamed_count = 0;
	rc = chain_read_comparison(chain->inputs, comparison, source, item->path, true, err);
	source_close(source);
	if (!rc)
		inputs_judge_printed(chain->inputs, comparison);
	for (size_t i = 0; !rc && i < comparison->row_count; i++)
		rc = add_row(chain, number, &comparison->rows[i], &key, err);
	if (!rc)
		rc = add_rest(chain, number, err);
	if (!rc && number && comparison->row_count && !chain->joined_count && !options->force)
		rc = err_set(err, ERR_USAGE, item->path,
			"shares no stack (same id and names) with an earlier comparison, so it may "
			"not continue one; give the dumps, or use --force");
	if (!rc && chain->renamed_count)
		message_line(chain->inputs->messages,
			"%s: warning: %zu of its %zu stack%s ha%s the id of a stack in an earlier "
			"comparison, but different names, so they are kept apart; print all "
			"comparisons with the same symbols, or give the dumps",
			item->path, chain->renamed_count, comparison->row_count,
			text_plural(comparison->row_count), chain->renamed_count == 1 ? "s" : "ve");
	buf_release(&key);
	return rc;
}

/* ---------------------------------------------------------------- dumps */

/* Adds a stack's sums at a moment. Returns 0, or -1 if the total overflows. */
static int add_stack(struct text_sums *texts, const struct chain_row *row, size_t moment)
{
	const struct block_totals *blocks = &row->at[moment];
	size_t depth = row->frames->count < DUMP_FRAMES_MAX ? row->frames->count : DUMP_FRAMES_MAX;
	uint64_t frames[DUMP_FRAMES_MAX];
	struct buf text;

	if (!blocks->block_count && !blocks->requested_bytes)
		return 0;
	if (row->kind == ROW_STACKLESS)
		return text_sums_add_stackless(texts, blocks);
	buf_init(&text);
	for (size_t i = 0; i < depth; i++) {
		buf_clear(&text);
		add_frame_text(&text, &row->frames->items[i]);
		frames[i] = text_sums_frame(texts, text.data, text.len);
	}
	buf_release(&text);
	return text_sums_add(texts, row->id, frames, depth, blocks);
}

/* Makes the dump of a moment. Moment 0 is OLD of the first comparison. */
static int make_dump(const struct chain *chain, size_t moment, struct err *err)
{
	const char *path = chain->list->items[moment ? moment - 1 : 0].path;
	struct dump_sums *sums = &chain->inputs->dumps[moment];
	const struct block_totals rest = {
		.requested_bytes = (uint64_t)(chain->rests[moment] - chain->least_rest)};
	struct text_sums texts;
	struct buf name;
	int rc = 0;

	buf_init(&name);
	buf_printf(&name, "%s%s", moment ? "" : "OLD of ", path);
	text_sums_begin(&texts, sums, name.data);
	sums->quality.lacks_rows = chain->lacks_rows;
	for (size_t i = 0; !rc && i < chain->row_count; i++)
		rc = add_stack(&texts, &chain->rows[i], moment);
	if (!rc)
		rc = sum_reader_add(&sums->total, &rest);
	text_sums_end(&texts);
	buf_release(&name);
	return rc ? err_set(err, ERR_BAD_LINE, path, TOO_MUCH) : 0;
}

int chain_read(struct inputs *inputs, const struct file_list *list, struct err *err)
{
	struct chain chain = {.inputs = inputs, .list = list};
	size_t count = 0;
	int rc = 0;

	table_init(&chain.numbers);
	table_init(&chain.ids);
	arena_init(&chain.arena);
	chain.comparisons = xcalloc(list->count, sizeof(*chain.comparisons));
	chain.rests = xcalloc(list->count + 1, sizeof(*chain.rests));
	while (!rc && count < list->count)
		rc = read_one(&chain, count++, err);
	for (size_t i = 0; !rc && i < chain.row_count; i++) {
		struct chain_row *row = &chain.rows[i];

		for (; row->last < list->count; row->last++)
			row->at[row->last + 1] = row->at[row->last];
	}
	for (size_t moment = 0; !rc && moment <= list->count; moment++) {
		rc = make_dump(&chain, moment, err);
		inputs->dump_count++;
	}
	for (size_t i = 0; i < count; i++)
		comparison_release(&chain.comparisons[i]);
	free(chain.comparisons);
	free(chain.rests);
	free(chain.rows);
	table_release(&chain.numbers);
	table_release(&chain.ids);
	arena_release(&chain.arena);
	return rc;
}
