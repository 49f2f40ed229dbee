/*
 * The balance of a process as text, in at most six lines: private memory and its parts, the
 * system's counter, other memory, objects, and the part of the growth that is not in the rows.
 * Shows only what changed. For a single dump, shows the values instead of changes.
 */
#include "diff/report/balance_text.h"

#include <stdlib.h>
#include <string.h>

#include "diff/report/clean.h"
#include "diff/report/numbers.h"
#include "diff/trend/trend.h"

/* Maximum numbers of parts and of types of handles on a line. With these, all lines together
 * usually fill at most six lines of 80 columns. */
#define PARTS_MAX 4
#define TYPES_MAX 3
/* The system's counter is shown if it differs from the sum of the parts by more than this. */
#define COUNTER_BYTES ((uint64_t)64 << 10)
/* Growth below this is not worth an explanation. */
#define EXPLAIN_BYTES ((uint64_t)256 << 10)
#define EXPLAINED_PERCENT 90

struct balance_text {
	const struct balance_view *balance;
	struct buf *text;
	bool is_single; /* there is no OLD: values are shown instead of changes */
};

static bool is_shown(const struct balance_text *text, const struct balance_row *row)
{
	return row->has_change && (text->is_single ? row->last != 0 : row->first != row->last);
}

static uint64_t amount_of(const struct balance_row *row)
{
	return row->last > row->first ? row->last - row->first : row->first - row->last;
}

/* Appends "+12.3 MiB" or "+1,040"; for a single dump, without the sign. */
static void add_amount(struct balance_text *text, const struct balance_row *row)
{
	char size[REPORT_SIZE_BYTES], count[REPORT_COUNT_BYTES];

	if (!text->is_single)
		buf_add_text(text->text, row->last >= row->first ? "+" : "-");
	buf_add_text(text->text, row->is_count ? report_count(amount_of(row), count) :
						 report_size(amount_of(row), size));
}

/* Appends "thread stacks +12.3 MiB", and the verdict if the row grows in a trend. */
static void add_row(struct balance_text *text, const struct balance_row *row)
{
	clean_text(text->text, row->words, false);
	buf_add_text(text->text, " ");
	add_amount(text, row);
	if (row->has_trend && row->trend.verdict == TREND_GROWS)
		buf_add_text(text->text, " (grows)");
}

static int by_amount(const void *a, const void *b)
{
	const struct balance_row *x = *(const struct balance_row *const *)a,
				 *y = *(const struct balance_row *const *)b;

	if (amount_of(x) != amount_of(y))
		return amount_of(x) < amount_of(y) ? 1 : -1;
	return x < y ? -1 : x > y;
}

/* Appends the rows of a role, largest change first. Before the first row, appends `before`; between
 * rows, appends a comma. Returns the number of rows. */
static size_t add_rows(struct balance_text *text, enum balance_role role, const char *before)
{
	const size_t most = role == BALANCE_TYPE ? TYPES_MAX : PARTS_MAX;
	const struct balance_view *balance = text->balance;
	const struct balance_row **shown = xcalloc(balance->count + 1, sizeof(*shown));
	size_t count = 0;

	for (size_t i = 0; i < balance->count; i++) {
		if (balance->rows[i].role == role && is_shown(text, &balance->rows[i]))
			shown[count++] = &balance->rows[i];
	}
	qsort(shown, count, sizeof(*shown), by_amount);
	for (size_t i = 0; i < count && i < most; i++) {
		buf_add_text(text->text, i ? ", " : before);
		add_row(text, shown[i]);
	}
	if (count > most)
		buf_printf(text->text, ", and %zu more", count - most);
	free(shown);
	return count;
}

/* Appends private memory and its parts. Appends nothing if their sum has not changed. In that case,
 * memory only moved between blocks and the free space of heaps, which the rows show. */
static void add_private(struct balance_text *text)
{
	const struct balance_row *whole =
		balance_view_row(text->balance, BALANCE_WHOLE, BALANCE_FIGURES);

	if (!whole || !is_shown(text, whole))
		return;
	add_row(text, whole);
	add_rows(text, BALANCE_PART, ": ");
	buf_add_text(text->text, "\n");
}

/* Appends the system's counter if it contradicts the sum of the parts. */
static void add_counter(struct balance_text *text)
{
	const struct balance_row *whole = balance_view_row(
					 text->balance, BALANCE_WHOLE, BALANCE_FIGURES),
				 *counter = balance_view_row(
					 text->balance, BALANCE_COUNTER, BALANCE_PRIVATE);
	int64_t difference = 0;

	if (!counter || !counter->has_change)
		return;
	if (whole && whole->has_change)
		difference = balance_row_change(counter) - balance_row_change(whole);
	else if (is_shown(text, counter))
		difference = INT64_MAX;
	if ((uint64_t)llabs(difference) <= COUNTER_BYTES)
		return;
	buf_add_text(text->text, "the system counts ");
	add_amount(text, counter);
	buf_add_text(text->text, " of private bytes\n");
}

static void add_shared(struct balance_text *text)
{
	if (add_rows(text, BALANCE_SHARED, "not private: "))
		buf_add_text(text->text, "\n");
}

/* Appends "threads +40, handles +1,080 (Event +1,040, Thread +40), GDI objects +3". */
static void add_objects(struct balance_text *text)
{
	static const enum balance_figure figures[] = {
		BALANCE_THREADS, BALANCE_HANDLES, BALANCE_GDI, BALANCE_USER};
	bool has_any = false;

	for (size_t i = 0; i < sizeof(figures) / sizeof(*figures); i++) {
		const struct balance_row *row =
			balance_view_row(text->balance, BALANCE_OBJECTS, figures[i]);

		if (!row || !is_shown(text, row))
			continue;
		if (has_any)
			buf_add_text(text->text, ", ");
		has_any = true;
		add_row(text, row);
		if (figures[i] == BALANCE_HANDLES && add_rows(text, BALANCE_TYPE, " ("))
			buf_add_text(text->text, ")");
	}
	if (has_any)
		buf_add_text(text->text, "\n");
}

/* Returns a hint about the growth of a part that is not in the rows, or NULL. */
static const char *hint_about(const struct balance_view *balance, enum balance_figure part)
{
	switch ((int)part) {
	case BALANCE_FREE: return "--heaps shows which";
	case BALANCE_STACKS:
		return balance->has_stacks ? "WinDbg's ~*k lists the threads" :
					     "'hsnap run' shows by whom";
	case BALANCE_VIRTUAL:
		return balance->has_virtual ? "the tracer did not see it" :
					      "'hsnap run' shows by whom";
	case BALANCE_IMAGE_COPIES: return "variables of modules";
	case BALANCE_TRACER: return "its tables";
	default: return NULL;
	}
}

/* If the rows contain less than EXPLAINED_PERCENT of the growth, appends the percentage and the
 * largest part of the rest. */
static void add_missing(struct balance_text *text)
{
	const struct balance_view *balance = text->balance;
	const uint64_t grown = balance->grown_bytes;
	const struct balance_row *largest = NULL;
	unsigned share = report_percent(balance->explained_bytes, grown);
	const char *hint;

	if (text->is_single || grown < EXPLAIN_BYTES || share >= EXPLAINED_PERCENT)
		return;
	for (size_t i = 0; i < balance->count; i++) {
		if (balance->rows[i].missing_bytes > (largest ? largest->missing_bytes : 0))
			largest = &balance->rows[i];
	}
	if (!largest)
		return;
	hint = hint_about(balance, largest->figure);
	buf_printf(text->text, "the rows explain %u %%, but not %s", share, largest->words);
	if (hint)
		buf_printf(text->text, " (%s)", hint);
	buf_add_text(text->text, "\n");
}

void balance_text(struct buf *words, const struct view *view)
{
	struct balance_text text = {.balance = &view->balance,
		.text = words,
		.is_single = view->comparison->dump_count < 2};

	buf_add_text(words, "");
	if (!text.balance->count)
		return;
	add_private(&text);
	add_counter(&text);
	add_shared(&text);
	add_objects(&text);
	if (!view->is_filtered)
		add_missing(&text);
}
