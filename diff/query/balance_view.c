/* Rows of the balance: one for each figure that a dump records, one for the sum of the private
 * parts, and one for each type of handle. */
#include "diff/query/balance_view.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "diff/match/row_series.h"

#define WHOLE_KEY "private-memory"
#define HANDLES_PREFIX "handles:"

static enum balance_role role_of(enum balance_figure figure)
{
	if (balance_words[figure].is_count)
		return BALANCE_OBJECTS;
	if (figure < BALANCE_FIRST_PART)
		return BALANCE_COUNTER;
	if (figure <= BALANCE_LAST_PART)
		return BALANCE_PART;
	return figure == BALANCE_STACKS_RESERVED ? BALANCE_ADDRESSES : BALANCE_SHARED;
}

static uint64_t value_of(const struct balance *balance, const struct balance_row *row)
{
	if (row->role == BALANCE_WHOLE)
		return balance_knows(balance, BALANCE_FIRST_PART) ? balance_parts_sum(balance) :
								    BALANCE_UNKNOWN;
	if (row->role == BALANCE_TYPE)
		return balance->handle_count ? balance_handles_of(balance, row->words) :
					       BALANCE_UNKNOWN;
	return balance_knows(balance, row->figure) ? balance->figures[row->figure] :
						     BALANCE_UNKNOWN;
}

/* Converts a row's values to the type that trend_judge() needs. The caller frees the result. */
static struct block_totals *totals_of(const struct balance_row *row, size_t count)
{
	struct block_totals *totals = xcalloc(count, sizeof(*totals));

	for (size_t i = 0; i < count; i++)
		totals[i].requested_bytes = row->values[i];
	return totals;
}

static void find_change(struct balance_row *row, const struct comparison *comparison)
{
	const struct trend_axis *axis = comparison->axis;
	const size_t count = comparison->dump_count;
	struct block_totals *totals;
	struct trend_judge *judge;
	bool is_known = true;

	if (!axis) {
		row->first = count > 1 ? row->values[0] : 0;
		row->last = row->values[count - 1];
		row->has_change = row->first != BALANCE_UNKNOWN && row->last != BALANCE_UNKNOWN;
		return;
	}
	for (size_t i = 0; i < count; i++)
		is_known = is_known && row->values[i] != BALANCE_UNKNOWN;
	if (!is_known)
		return;
	totals = totals_of(row, count);
	row->first = series_first(axis, totals).requested_bytes;
	row->last = series_last(axis, totals).requested_bytes;
	row->has_change = row->has_trend = true;
	judge = trend_judge_new(axis);
	trend_judge(judge, totals, &row->trend);
	trend_judge_free(judge);
	free(totals);
}

/* Adds a row if a dump has its figure. */
static void add_row(struct balance_view *balance, const struct comparison *comparison,
	struct balance_row row, struct arena *arena)
{
	const size_t count = comparison->dump_count;
	bool is_known = false;

	row.values = arena_alloc(arena, count * sizeof(*row.values));
	for (size_t i = 0; i < count; i++) {
		row.values[i] = value_of(sums_balance(&comparison->dumps[i]), &row);
		is_known = is_known || row.values[i] != BALANCE_UNKNOWN;
	}
	if (!is_known)
		return;
	find_change(&row, comparison);
	balance->rows[balance->count++] = row;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Adds a row for each type of handle in any dump. */
static void add_types(
	struct balance_view *balance, const struct comparison *comparison, struct arena *arena)
{
	const char **types;
	size_t count = 0;

	for (size_t i = 0; i < comparison->dump_count; i++)
		count += sums_balance(&comparison->dumps[i])->handle_count;
	types = xcalloc(count + 1, sizeof(*types));
	count = 0;
	for (size_t i = 0; i < comparison->dump_count; i++) {
		const struct balance *dump = sums_balance(&comparison->dumps[i]);

		for (size_t k = 0; k < dump->handle_count; k++)
			types[count++] = dump->handles[k].type;
	}
	qsort(types, count, sizeof(*types), by_text);
	for (size_t i = 0; i < count; i++) {
		const size_t len = strlen(types[i]);
		char *key;

		if (i && !strcmp(types[i], types[i - 1]))
			continue;
		key = arena_bytes(arena, sizeof(HANDLES_PREFIX) + len);
		memcpy(key, HANDLES_PREFIX, sizeof(HANDLES_PREFIX) - 1);
		memcpy(key + sizeof(HANDLES_PREFIX) - 1, types[i], len + 1);
		add_row(balance, comparison,
			(struct balance_row){.role = BALANCE_TYPE,
				.figure = BALANCE_HANDLES,
				.key = key,
				.words = types[i],
				.is_count = true},
			arena);
	}
	free(types);
}

const struct balance_row *balance_view_row(
	const struct balance_view *balance, enum balance_role role, enum balance_figure figure)
{
	for (size_t i = 0; i < balance->count; i++) {
		if (balance->rows[i].role == role && balance->rows[i].figure == figure)
			return &balance->rows[i];
	}
	return NULL;
}

static uint64_t above_zero(int64_t change)
{
	return change > 0 ? (uint64_t)change : 0;
}

static struct block_totals recorded(const struct dump_sums *dump, enum balance_figure part)
{
	return part == BALANCE_STACKS ?
		       dump->thread_stacks :
		       (struct block_totals){.requested_bytes = dump->virtual_bytes};
}

/* Returns the growth of the memory from VirtualAlloc, or of the threads' stacks, that the tracer
 * recorded, over all processes. */
static struct block_totals recorded_growth(
	const struct comparison *comparison, enum balance_figure part)
{
	const size_t count = comparison->dump_count;
	struct block_totals *totals = xcalloc(count, sizeof(*totals)), first = {0}, last;

	for (size_t i = 0; i < count; i++)
		totals[i] = recorded(&comparison->dumps[i], part);
	last = totals[count - 1];
	if (count > 1)
		first = totals[0];
	if (comparison->axis) {
		first = series_first(comparison->axis, totals);
		last = series_last(comparison->axis, totals);
	}
	free(totals);
	return (struct block_totals){
		.block_count = above_zero((int64_t)(last.block_count - first.block_count)),
		.requested_bytes =
			above_zero((int64_t)(last.requested_bytes - first.requested_bytes))};
}

/* Returns the growth of a part that rows contain, or UINT64_MAX if they explain all of it: in Wine, and
 * in 32-bit programs on 64-bit Windows, a thread has further stacks, which its row explains. */
static uint64_t growth_in_rows(const struct balance_view *balance,
	const struct comparison *comparison, const struct balance_row *part)
{
	const struct balance_row *threads =
		balance_view_row(balance, BALANCE_OBJECTS, BALANCE_THREADS);
	const struct block_totals growth = recorded_growth(comparison, part->figure);
	const uint64_t more =
		threads && threads->has_change ? above_zero(balance_row_change(threads)) : 0;

	return part->figure == BALANCE_STACKS && more && growth.block_count >= more ?
		       UINT64_MAX :
		       growth.requested_bytes;
}

/* Finds the growth of private memory that no row contains. Rows contain heap blocks with their
 * overhead, and the memory from VirtualAlloc and the stacks of threads that the tracer recorded. */
static void find_missing(struct balance_view *balance, const struct comparison *comparison)
{
	const struct balance_row *whole = balance_view_row(balance, BALANCE_WHOLE, BALANCE_FIGURES);

	if (whole && whole->has_change)
		balance->grown_bytes = above_zero(balance_row_change(whole));
	for (size_t i = 0; i < balance->count; i++) {
		struct balance_row *row = &balance->rows[i];
		const uint64_t grown = row->has_change ? above_zero(balance_row_change(row)) : 0;
		uint64_t in_rows = 0;

		if (row->role != BALANCE_PART)
			continue;
		if (row->figure == BALANCE_BLOCKS || row->figure == BALANCE_OVERHEAD)
			in_rows = grown;
		else if ((row->figure == BALANCE_VIRTUAL && balance->has_virtual) ||
			 (row->figure == BALANCE_STACKS && balance->has_stacks))
			in_rows = growth_in_rows(balance, comparison, row);
		in_rows = in_rows < grown ? in_rows : grown;
		row->missing_bytes = grown - in_rows;
		balance->explained_bytes += in_rows;
	}
}

/* Returns an upper bound for the number of rows, or 0 if no dump records a balance. */
static size_t rows_max(const struct comparison *comparison)
{
	size_t types = 0;
	bool is_known = false;

	for (size_t i = 0; i < comparison->dump_count; i++) {
		is_known = is_known || sums_balance(&comparison->dumps[i])->known;
		types += sums_balance(&comparison->dumps[i])->handle_count;
	}
	return is_known || types ? BALANCE_FIGURES + 1 + types : 0;
}

void balance_view_make(
	struct balance_view *balance, const struct comparison *comparison, struct arena *arena)
{
	size_t most;

	*balance = (struct balance_view){0};
	if (!comparison->dumps || comparison->is_sum)
		return;
	most = rows_max(comparison);
	if (!most)
		return;
	balance->rows = arena_alloc(arena, most * sizeof(*balance->rows));
	add_row(balance, comparison,
		(struct balance_row){.role = BALANCE_WHOLE,
			.figure = BALANCE_FIGURES,
			.key = WHOLE_KEY,
			.words = "private memory"},
		arena);
	for (int i = 0; i < BALANCE_FIGURES; i++)
		add_row(balance, comparison,
			(struct balance_row){.role = role_of(i),
				.figure = i,
				.key = balance_words[i].key,
				.words = balance_words[i].words,
				.is_count = balance_words[i].is_count},
			arena);
	add_types(balance, comparison, arena);
	balance->has_types =
		sums_balance(&comparison->dumps[0])->handle_count &&
		sums_balance(&comparison->dumps[comparison->dump_count - 1])->handle_count;
	balance->has_virtual = balance->has_stacks = true;
	for (size_t i = 0; i < comparison->dump_count; i++) {
		balance->has_virtual = balance->has_virtual && comparison->dumps[i].has_virtual;
		balance->has_stacks = balance->has_stacks && comparison->dumps[i].has_stacks;
	}
	find_missing(balance, comparison);
}

bool balance_key_known(const char *key, size_t len, bool *is_count)
{
	const size_t prefix_len = sizeof(HANDLES_PREFIX) - 1;

	*is_count = false;
	if (text_same(key, len, WHOLE_KEY, sizeof(WHOLE_KEY) - 1))
		return true;
	*is_count = true;
	if (len > prefix_len && text_same(key, prefix_len, HANDLES_PREFIX, prefix_len))
		return true;
	for (int i = 0; i < BALANCE_FIGURES; i++) {
		const struct balance_word *word = &balance_words[i];

		*is_count = word->is_count;
		if (text_same(key, len, word->key, strlen(word->key)))
			return true;
	}
	return false;
}

const struct balance_row *balance_view_find(
	const struct balance_view *balance, const char *key, size_t len)
{
	for (size_t i = 0; i < balance->count; i++) {
		const char *own = balance->rows[i].key;

		if (text_same(key, len, own, strlen(own)))
			return &balance->rows[i];
	}
	return NULL;
}
