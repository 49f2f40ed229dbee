/* The parts of a recording between its marks, computed in one pass over the events. The number of an
 * allocation within its kind shows in which part it was made: each kind has a list of the parts in
 * which it was allocated, with the first number of each. */
#include "diff/query/mark_parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/record/record.h"
#include "diff/match/match.h"

/* Allocations of a kind in one part. */
struct mark_batch {
	size_t part;
	uint64_t first_number;
	uint64_t allocated, freed_inside, live;
};

/* A kind that belongs to a selected row. */
struct mark_kind {
	uint64_t bytes;
	uint64_t use_bytes; /* bytes that one recorded block represents */
	uint32_t row;
	struct mark_batch *batches; /* in order of parts */
	size_t batch_count, batch_cap;
};

struct marks_run {
	struct view *view;
	const struct dump_sums *sums;
	const struct record_facts *facts;
	struct mark_parts *parts;
	struct mark_kind *kinds; /* indexed by kind; a kind that is not selected has MARK_NO_ROW */
	uint32_t kind_count;
	size_t part; /* index of the current part */
	uint64_t live_bytes; /* blocks of the current part that are live */
	uint32_t *touched; /* kinds that were allocated in the current part */
	size_t touched_count, touched_cap;
	struct block_totals *by_row; /* indexed by row; all 0 except while a part ends */
};

static int too_much(const struct marks_run *run, struct err *err)
{
	return err_set(err, ERR_BAD_RECORDING, run->sums->id.path, SUMS_TOO_LARGE);
}

/* Adds `count` recorded blocks of a kind. Returns false if a sum is too large. */
static bool add_blocks(
	const struct marks_run *run, struct block_totals *totals, uint32_t number, uint64_t count)
{
	const uint64_t blocks = record_kind_stands_for(run->facts, number, count);
	uint64_t bytes;

	return !__builtin_mul_overflow(blocks, run->kinds[number].bytes, &bytes) &&
	       !__builtin_add_overflow(totals->requested_bytes, bytes, &totals->requested_bytes) &&
	       totals->requested_bytes <= INT64_MAX &&
	       !__builtin_add_overflow(totals->block_count, blocks, &totals->block_count) &&
	       totals->block_count <= INT64_MAX;
}

/* ---------------------------------------------------------------- parts and kinds */

static void add_parts(struct marks_run *run)
{
	const struct record_facts *facts = run->facts;
	struct mark_parts *parts = run->parts;

	parts->count = facts->mark_count + 1;
	parts->items = xcalloc(parts->count, sizeof(*parts->items));
	for (size_t i = 0; i < parts->count; i++) {
		struct mark_part *part = &parts->items[i];

		*part = (struct mark_part){.from_ms = run->sums->window.from_ms,
			.to_ms = run->sums->window.to_ms,
			.row = MARK_NO_ROW};
		if (i < facts->mark_count)
			part->to_ms = facts->marks[i].time_ms;
		if (!i)
			continue;
		part->from_ms = facts->marks[i - 1].time_ms;
		part->label = arena_text(&run->view->arena, facts->marks[i - 1].label,
			strlen(facts->marks[i - 1].label));
	}
}

/* Finds the row of each kind, if the row is selected. */
static int add_kinds(struct marks_run *run, struct err *err)
{
	const struct comparison *comparison = run->view->comparison;
	const uint32_t *cells = run->sums->window.kind_cells;
	bool *is_selected;

	run->kind_count = (uint32_t)run->sums->window.kind_count;
	if (run->facts->kind_count < run->kind_count ||
		run->facts->event_count < run->sums->window.position - 1)
		return err_set(err, ERR_CHANGED, run->sums->id.path, NULL);
	is_selected = xcalloc(comparison->row_count + 1, sizeof(*is_selected));
	for (size_t i = 0; i < run->view->row_count + run->view->other_count; i++)
		is_selected[run->view->rows[i]] = true;
	run->by_row = xcalloc(comparison->row_count + 1, sizeof(*run->by_row));
	run->kinds = xcalloc(run->kind_count + 1, sizeof(*run->kinds));
	for (uint32_t i = 0; i < run->kind_count; i++) {
		uint32_t row =
			cells[i] == CELL_NONE ? ROW_NONE : comparison->cell_rows[0][cells[i]];

		run->kinds[i] = (struct mark_kind){.bytes = run->facts->kinds[i].bytes,
			.use_bytes = record_kind_bytes(run->facts, i),
			.row = row == ROW_NONE || !is_selected[row] ? MARK_NO_ROW : row};
	}
	free(is_selected);
	return 0;
}

/* ---------------------------------------------------------------- events */

static int handle_alloc(struct marks_run *run, const struct record_event *event, struct err *err)
{
	struct mark_kind *kind = &run->kinds[event->kind];
	struct mark_part *part = &run->parts->items[run->part];
	struct mark_batch *batch = kind->batch_count ? &kind->batches[kind->batch_count - 1] : NULL;

	if (!batch || batch->part != run->part) {
		array_grow((void **)&kind->batches, &kind->batch_cap, kind->batch_count,
			sizeof(*kind->batches));
		batch = &kind->batches[kind->batch_count++];
		*batch = (struct mark_batch){.part = run->part, .first_number = event->number};
		array_grow((void **)&run->touched, &run->touched_cap, run->touched_count,
			sizeof(*run->touched));
		run->touched[run->touched_count++] = event->kind;
	}
	batch->allocated++;
	batch->live++;
	if (kind->use_bytes > INT64_MAX - run->live_bytes)
		return too_much(run, err);
	run->live_bytes += kind->use_bytes;
	if (run->live_bytes > part->peak_bytes)
		part->peak_bytes = run->live_bytes;
	return 0;
}

/* Returns the batch of an allocation, or NULL if the allocation is older than the recording. */
static struct mark_batch *find_batch(const struct mark_kind *kind, uint64_t number)
{
	size_t from = 0, to = kind->batch_count;

	if (to && kind->batches[to - 1].first_number <= number) /* most blocks die young */
		return &kind->batches[to - 1];
	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (kind->batches[middle].first_number <= number)
			from = middle + 1;
		else
			to = middle;
	}
	return from ? &kind->batches[from - 1] : NULL;
}

static int handle_free(struct marks_run *run, const struct record_event *event, struct err *err)
{
	const struct mark_kind *kind = &run->kinds[event->kind];
	struct mark_batch *batch = find_batch(kind, event->number);

	if (!batch)
		return 0;
	if (!batch->live || event->number - batch->first_number >= batch->allocated)
		return err_set(
			err, ERR_BAD_RECORDING, run->sums->id.path, "a block is freed twice");
	batch->live--;
	if (batch->part == run->part) {
		batch->freed_inside++;
		run->live_bytes -= kind->use_bytes;
	}
	return 0;
}

/* ---------------------------------------------------------------- results */

static bool is_more(const struct block_totals *a, const struct block_totals *b)
{
	return a->requested_bytes != b->requested_bytes ? a->requested_bytes > b->requested_bytes :
							  a->block_count > b->block_count;
}

/* Computes the sums of the current part and begins the next one. */
static int end_part(struct marks_run *run, struct err *err)
{
	struct mark_part *part = &run->parts->items[run->part];
	bool fits = true;

	for (size_t i = 0; i < run->touched_count; i++) {
		const uint32_t number = run->touched[i];
		const struct mark_kind *kind = &run->kinds[number];
		const struct mark_batch *batch = &kind->batches[kind->batch_count - 1];
		const uint64_t kept = batch->allocated - batch->freed_inside;

		fits &= add_blocks(run, &part->transient, number, batch->freed_inside);
		fits &= add_blocks(run, &part->kept, number, kept);
		fits &= add_blocks(run, &run->by_row[kind->row], number, kept);
	}
	for (size_t i = 0; i < run->touched_count; i++) {
		const uint32_t row = run->kinds[run->touched[i]].row;
		struct block_totals *kept = &run->by_row[row];

		if (is_more(kept, &part->row_kept) ||
			(kept->block_count && row < part->row && !is_more(&part->row_kept, kept))) {
			part->row = row;
			part->row_kept = *kept;
		}
		*kept = (struct block_totals){0};
	}
	run->touched_count = 0;
	run->live_bytes = 0;
	run->part++;
	return fits ? 0 : too_much(run, err);
}

static int replay_events(struct marks_run *run, struct recording *recording, struct err *err)
{
	const struct record_event *events;
	struct record_cursor *cursor;
	uint64_t position = run->sums->window.from_position;
	size_t count;
	int rc = record_cursor_open(
		&cursor, recording, position, run->sums->window.position - 1, err);

	if (rc)
		return rc;
	while ((rc = record_next_events(cursor, &events, &count, err)) > 0) {
		rc = 0;
		for (size_t i = 0; !rc && i < count; i++, position++) {
			while (!rc && run->part < run->facts->mark_count &&
				run->facts->marks[run->part].position <= position)
				rc = end_part(run, err);
			if (rc || events[i].kind >= run->kind_count ||
				run->kinds[events[i].kind].row == MARK_NO_ROW)
				continue;
			rc = (events[i].type == RECORD_ALLOC ? handle_alloc : handle_free)(
				run, &events[i], err);
		}
		if (rc)
			break;
	}
	record_cursor_close(cursor);
	while (!rc && run->part < run->parts->count)
		rc = end_part(run, err);
	return rc;
}

/* Adds the blocks that are live at the end of the recording to their parts. */
static int add_left(struct marks_run *run, struct err *err)
{
	for (uint32_t i = 0; i < run->kind_count; i++) {
		const struct mark_kind *kind = &run->kinds[i];

		for (size_t k = 0; k < kind->batch_count; k++) {
			const struct mark_batch *batch = &kind->batches[k];

			if (!add_blocks(run, &run->parts->items[batch->part].left, i, batch->live))
				return too_much(run, err);
		}
	}
	return 0;
}

static void find_names(struct marks_run *run)
{
	uint32_t *rows = xcalloc(run->parts->count, sizeof(*rows));
	size_t count = 0;

	for (size_t i = 0; i < run->parts->count; i++) {
		if (run->parts->items[i].row != MARK_NO_ROW)
			rows[count++] = run->parts->items[i].row;
	}
	naming_find(&run->view->naming, rows, count);
	free(rows);
}

static int read_all(struct marks_run *run, struct recording *recording, struct err *err)
{
	int rc;

	if (!run->facts->mark_count)
		return err_set(err, ERR_USAGE, run->sums->id.path,
			"has no marks: set them with 'hsnap mark', or with hsnap_mark() of "
			"hsnap-mark.h");
	rc = add_kinds(run, err);
	if (rc)
		return rc;
	add_parts(run);
	rc = replay_events(run, recording, err);
	if (!rc)
		rc = add_left(run, err);
	if (!rc)
		find_names(run);
	return rc;
}

int mark_parts_read(struct mark_parts *parts, struct view *view, struct err *err)
{
	struct marks_run run = {.view = view, .sums = view->comparison->dumps, .parts = parts};
	struct recording *recording;
	int rc = recording_open(&recording, run.sums->id.file, err);

	*parts = (struct mark_parts){0};
	if (rc)
		return rc;
	run.facts = recording_facts(recording);
	rc = read_all(&run, recording, err);
	for (uint32_t i = 0; run.kinds && i < run.kind_count; i++)
		free(run.kinds[i].batches);
	free(run.kinds);
	free(run.touched);
	free(run.by_row);
	recording_close(recording);
	return rc;
}

void mark_parts_release(struct mark_parts *parts)
{
	free(parts->items);
	*parts = (struct mark_parts){0};
}
