/* The fates of allocations in a window of a recording, for each row or group, computed in one pass
 * over the events. */
#include "diff/query/window.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "diff/match/match.h"
#include "diff/query/lives.h"
#include "diff/read/read_use.h"
#include "diff/read/thread_kinds.h"

#define NO_KIND UINT32_MAX
#define GONE UINT64_MAX /* time of an allocation that was freed */
#define PAGE_TIMES 64
#define FETCH_AHEAD 16 /* in events; frees often access blocks at random */

/* Times of allocations of one kind with consecutive numbers. A page is freed when all of its
 * allocations were freed. */
struct time_page {
	uint64_t times_ms[PAGE_TIMES];
	unsigned live_count;
};

/* ---------------------------------------------------------------- sums of each kind */

static const uint32_t *members(const struct view *view, size_t shown, size_t *count)
{
	if (view->group == GROUP_STACK) {
		*count = 1;
		return &view->rows[shown];
	}
	*count = view->groups[shown].member_count;
	return view->groups[shown].members;
}

/* For each row, lists the sums that include the row. The first sum includes all selected rows. */
static void find_windows(struct window_run *run)
{
	const struct view *view = run->view;
	size_t rows = view->comparison->row_count, count;
	uint32_t *filled = xcalloc(rows + 1, sizeof(*filled));

	run->windows_at = xcalloc(rows + 2, sizeof(*run->windows_at));
	for (size_t i = 0; i < view->row_count + view->other_count; i++)
		run->windows_at[view->rows[i] + 1]++;
	for (size_t i = 0; i < view->shown_count; i++) {
		const uint32_t *rows_of = members(view, i, &count);

		for (size_t k = 0; k < count; k++)
			run->windows_at[rows_of[k] + 1]++;
	}
	for (size_t i = 0; i < rows; i++)
		run->windows_at[i + 1] += run->windows_at[i];
	run->windows = xcalloc(run->windows_at[rows] + 1, sizeof(*run->windows));
	for (size_t i = 0; i < view->row_count + view->other_count; i++)
		filled[view->rows[i]]++;
	for (size_t i = 0; i < view->shown_count; i++) {
		const uint32_t *rows_of = members(view, i, &count);

		for (size_t k = 0; k < count; k++)
			run->windows[run->windows_at[rows_of[k]] + filled[rows_of[k]]++] =
				(uint32_t)i + 1;
	}
	free(filled);
}

/* State of a kind at the start of the window. */
struct kind_start {
	uint32_t kind; /* index in the recording */
	uint64_t live, first_number, end_number;
};

/* Adds a kind, or a part of it, if it belongs to a selected row. `number` is the index in
 * `kind_cells`. Until the first event, the peak is the usage at the start of the window. */
static int append_kind(
	struct window_run *run, uint32_t number, const struct kind_start *start, struct err *err)
{
	const struct dump_sums *sums = run->sums;
	uint32_t row = sums->window.kind_cells[number] == CELL_NONE ?
			       ROW_NONE :
			       run->view->comparison->cell_rows[0][sums->window.kind_cells[number]];
	struct window_kind *kind;
	uint64_t there;

	run->numbers[number] = NO_KIND;
	if (row == ROW_NONE || run->windows_at[row] == run->windows_at[row + 1])
		return 0;
	array_grow((void **)&run->kinds, &run->kind_cap, run->kind_count, sizeof(*run->kinds));
	kind = &run->kinds[run->kind_count];
	run->numbers[number] = (uint32_t)run->kind_count++;
	*kind = (struct window_kind){.bytes = run->facts->kinds[start->kind].bytes,
		.use_bytes = record_kind_bytes(run->facts, start->kind),
		.stands_for = record_kind_stands_for(run->facts, start->kind, 1),
		.live = start->live,
		.first_number = start->first_number,
		.end_number = start->end_number,
		.allocated_ms = {UINT64_MAX, 0},
		.freed_ms = {UINT64_MAX, 0},
		.shortest_ms = UINT64_MAX,
		.windows = &run->windows[run->windows_at[row]],
		.window_count = run->windows_at[row + 1] - run->windows_at[row],
		.number = start->kind};
	if (__builtin_mul_overflow(kind->live, kind->use_bytes, &there) ||
		there > INT64_MAX - run->uses[0].bytes)
		return window_too_large(run, err);
	for (size_t i = 0; i < kind->window_count; i++) {
		struct window_use *use = &run->uses[kind->windows[i]];

		use->bytes += there;
		use->peak_bytes = use->bytes;
	}
	if (run->lives)
		lives_add_kind(run->lives,
			&(struct life_kind){start->kind, row, kind->live, kind->first_number,
				row_new(run->view->comparison, &run->view->comparison->rows[row])
					.requested_bytes});
	return 0;
}

static int add_kinds(struct window_run *run, struct recording *recording, struct err *err)
{
	const struct recording_window *window = &run->sums->window;
	struct record_state state, born = {0};
	int rc = recording_state(recording, window->from_position, &state, err);

	if (!rc)
		rc = recording_state(recording, window->born_position, &born, err);
	for (uint32_t i = 0; !rc && i < window->kind_count; i++) {
		const struct kind_start start = {.kind = i,
			.live = state.live[i],
			.first_number = state.allocated[i],
			.end_number = born.allocated[i]};

		rc = append_kind(run, i, &start, err);
	}
	record_state_release(&state);
	record_state_release(&born);
	return rc;
}

static int add_parts(struct window_run *run, struct err *err)
{
	const struct recording_window *window = &run->sums->window;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < window->kind_count; i++) {
		const struct thread_kind *part = &window->parts[i];
		const struct kind_start start = {.kind = part->kind,
			.live = part->from_live,
			.first_number = part->from_allocated,
			.end_number = part->from_allocated + part->born_allocated};

		rc = append_kind(run, i, &start, err);
	}
	return rc;
}

/* Prepares the sums of all kinds, or of parts of kinds. */
static int begin_kinds(struct window_run *run, struct recording *recording, struct err *err)
{
	const struct recording_window *window = &run->sums->window;

	if (run->facts->event_count < window->position - 1 ||
		run->facts->kind_count < (window->parts ? window->real_count : window->kind_count))
		return err_set(err, ERR_CHANGED, run->sums->id.path, NULL);
	run->uses = xcalloc(run->window_count, sizeof(*run->uses));
	for (size_t i = 0; i < run->window_count; i++)
		run->uses[i].peak_ms = window->from_ms;
	run->life_classes = use_class(window->to_ms - window->from_ms, LIFE_CLASS_BITS) + 1;
	run->numbers = xcalloc(window->kind_count + 1, sizeof(*run->numbers));
	return window->parts ? add_parts(run, err) : add_kinds(run, recording, err);
}

/* ---------------------------------------------------------------- lifetimes */

/* Stores the time of the kind's next allocation. */
static void store_time(struct window_kind *kind, uint64_t time_ms)
{
	struct time_page *page;

	if (kind->allocated % PAGE_TIMES == 0) {
		array_grow((void **)&kind->pages, &kind->page_cap, kind->page_count,
			sizeof(*kind->pages));
		page = xmalloc(sizeof(*page));
		page->live_count = 0;
		kind->pages[kind->page_count++] = page;
	}
	page = kind->pages[kind->page_count - 1];
	page->times_ms[kind->allocated++ % PAGE_TIMES] = time_ms;
	page->live_count++;
}

/* Marks an allocation as freed. Returns its time, or GONE if it is not live. */
static uint64_t mark_freed(struct window_kind *kind, uint64_t number)
{
	uint64_t index = number - kind->first_number, time_ms;
	struct time_page *page;

	if (index >= kind->allocated || !(page = kind->pages[index / PAGE_TIMES]))
		return GONE;
	time_ms = page->times_ms[index % PAGE_TIMES];
	if (time_ms == GONE)
		return GONE;
	page->times_ms[index % PAGE_TIMES] = GONE;
	if (!--page->live_count && index / PAGE_TIMES < kind->allocated / PAGE_TIMES) {
		free(page);
		kind->pages[index / PAGE_TIMES] = NULL;
	}
	return time_ms;
}

/* ---------------------------------------------------------------- events */

static void add_thread(struct window_run *run, struct window_kind *kind, uint32_t thread)
{
	uint64_t bit = thread < 64 ? UINT64_C(1) << thread : 0;
	uint32_t none = 0;

	if (kind->threads_seen & bit)
		return;
	kind->threads_seen |= bit;
	u64map_add(&run->threads, (uint64_t)(kind - run->kinds) << 32 | thread, &none);
}

static int handle_alloc(struct window_run *run, struct window_kind *kind,
	const struct record_event *event, struct err *err)
{
	uint64_t time_ms = event->time_ms < GONE ? event->time_ms : GONE - 1;

	if (run->lives)
		lives_alloc(run->lives, (uint32_t)(kind - run->kinds));
	span_extend(&kind->allocated_ms, time_ms);
	store_time(kind, time_ms);
	add_thread(run, kind, event->thread);
	if (kind->use_bytes > INT64_MAX - run->uses[0].bytes)
		return window_too_large(run, err);
	for (size_t i = 0; i < kind->window_count; i++) {
		struct window_use *use = &run->uses[kind->windows[i]];

		use->bytes += kind->use_bytes;
		if (use->bytes > use->peak_bytes) {
			use->peak_bytes = use->bytes;
			use->peak_ms = time_ms;
		}
	}
	return 0;
}

static void count_free(struct window_run *run, struct free_tally *tally,
	const struct window_kind *kind, uint32_t by)
{
	uint32_t at = (uint32_t)tally->keys.index.count;

	if (u64map_add(&tally->keys, (uint64_t)(kind - run->kinds) << 32 | by, &at)) {
		array_grow((void **)&tally->counts, &tally->cap, at, sizeof(*tally->counts));
		tally->counts[at] = 0;
	}
	tally->counts[at]++;
}

static void add_life(struct window_run *run, struct window_kind *kind, uint64_t lived_ms)
{
	size_t life_class = use_class(lived_ms, LIFE_CLASS_BITS);

	/* the lifetime may exceed the window if the file has a mark with a wrong time */
	life_class = life_class < run->life_classes ? life_class : run->life_classes - 1;
	for (size_t i = 0; i < kind->window_count; i++) {
		struct window_use *use = &run->uses[kind->windows[i]];

		if (!use->lives)
			use->lives = xcalloc(run->life_classes, sizeof(*use->lives));
		use->lives[life_class] += kind->stands_for;
	}
	kind->lives_ms += (double)lived_ms;
	if (lived_ms < kind->shortest_ms)
		kind->shortest_ms = lived_ms;
	if (lived_ms > kind->longest_ms)
		kind->longest_ms = lived_ms;
}

static int handle_free(struct window_run *run, struct window_kind *kind,
	const struct record_event *event, struct err *err)
{
	bool is_inside = event->number >= kind->first_number;
	uint64_t made_ms = is_inside ? mark_freed(kind, event->number) : 0;

	if (is_inside ? made_ms == GONE : kind->freed_before == kind->live)
		return err_set(
			err, ERR_BAD_RECORDING, run->sums->id.path, "a block is freed twice");
	if (run->lives)
		lives_free(run->lives, (uint32_t)(kind - run->kinds), event->number);
	span_extend(&kind->freed_ms, event->time_ms);
	if (event->freed_by != RECORD_NO_STACK)
		count_free(run, &run->by_stack, kind, event->freed_by);
	if (run->sums->window.parts)
		count_free(run, &run->by_thread, kind, event->thread);
	for (size_t i = 0; i < kind->window_count; i++)
		run->uses[kind->windows[i]].bytes -= kind->use_bytes;
	if (!is_inside) {
		kind->freed_before++;
		return 0;
	}
	kind->freed_inside++;
	add_life(run, kind, event->time_ms - made_ms);
	return 0;
}

/* Prefetches the kind of an event. Must be inline, because otherwise gcc removes the call as having
 * no effect. */
static inline __attribute__((always_inline)) void fetch_kind(
	const struct window_run *run, const struct record_event *event)
{
	uint32_t number =
		event->kind < run->sums->window.kind_count ? run->numbers[event->kind] : NO_KIND;
	const char *kind = (const char *)&run->kinds[number];

	if (number == NO_KIND)
		return;
	for (size_t i = 0; i < sizeof(struct window_kind); i += 64)
		__builtin_prefetch(kind + i);
	if (run->lives)
		lives_fetch(run->lives, number, false);
}

/* Prefetches what an event changes. Its kind was prefetched before. */
static inline __attribute__((always_inline)) void fetch_event(
	const struct window_run *run, const struct record_event *event)
{
	uint32_t number =
		event->kind < run->sums->window.kind_count ? run->numbers[event->kind] : NO_KIND;
	const struct window_kind *kind = number == NO_KIND ? NULL : &run->kinds[number];
	uint64_t index;
	const struct time_page *page;

	if (!kind)
		return;
	index = event->type == RECORD_FREE ? event->number - kind->first_number : kind->allocated;
	page = index / PAGE_TIMES < kind->page_count ? kind->pages[index / PAGE_TIMES] : NULL;
	__builtin_prefetch(&run->uses[kind->windows[kind->window_count - 1]]);
	if (run->lives)
		lives_fetch(run->lives, number, true);
	if (!page)
		return;
	__builtin_prefetch(&page->times_ms[index % PAGE_TIMES]);
	__builtin_prefetch(&page->live_count);
}

/* Handles an event at a position of the window. Its kind may be a part of a kind. */
static int handle_event(struct window_run *run, const struct record_event *event, uint64_t position,
	struct err *err)
{
	uint32_t number =
		event->kind < run->sums->window.kind_count ? run->numbers[event->kind] : NO_KIND;
	struct window_kind *kind = number == NO_KIND ? NULL : &run->kinds[number];

	if (run->lives)
		lives_advance(run->lives, position, event->time_ms);
	if (!kind || event->number >= kind->end_number)
		return 0;
	return (event->type == RECORD_ALLOC ? handle_alloc : handle_free)(run, kind, event, err);
}

static int replay_events(struct window_run *run, struct recording *recording, struct err *err)
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
			if (i + 2 * FETCH_AHEAD < count)
				fetch_kind(run, &events[i + 2 * FETCH_AHEAD]);
			if (i + FETCH_AHEAD < count)
				fetch_event(run, &events[i + FETCH_AHEAD]);
			rc = handle_event(run, &events[i], position, err);
		}
		if (rc)
			break;
	}
	record_cursor_close(cursor);
	return rc;
}

static int handle_part(void *ctx, const struct part_event *next, struct err *err)
{
	struct window_run *run = ctx;

	if (next->position < run->sums->window.from_position)
		return 0;
	return handle_event(run, &next->event, next->position, err);
}

static struct life_maker *begin_lives(const struct window_run *run)
{
	const struct dump_sums *sums = run->sums;
	struct life_window window = {.facts = run->facts,
		.row_count = run->view->comparison->row_count,
		.from_position = sums->window.from_position,
		.from_ms = sums->window.from_ms,
		.to_position = sums->window.position - 1,
		.to_ms = sums->window.to_ms};

	/* if the time of a mark is wrong, the end may be before the start */
	if (window.to_ms < window.from_ms)
		window.to_ms = window.from_ms;
	return lives_begin(&window);
}

int view_window(struct view *view, struct err *err)
{
	const struct comparison *comparison = view->comparison;
	struct window_run run = {.view = view, .window_count = view->shown_count + 1};
	struct recording *recording;
	int rc;

	if (!comparison_is_window(comparison))
		return 0;
	run.sums = &comparison->dumps[0];
	rc = recording_open(&recording, run.sums->id.file, err);
	if (rc)
		return rc;
	run.facts = recording_facts(recording);
	u64map_init(&run.threads);
	u64map_init(&run.by_stack.keys);
	u64map_init(&run.by_thread.keys);
	find_windows(&run);
	if (view->wants_lives)
		run.lives = begin_lives(&run);
	rc = begin_kinds(&run, recording, err);
	if (!rc && run.sums->window.parts)
		rc = thread_kinds_replay(recording, run.sums, handle_part, &run, err);
	else if (!rc)
		rc = replay_events(&run, recording, err);
	if (!rc)
		rc = window_add_up(&run, err);
	if (run.lives && !rc)
		view->lives = lives_end(run.lives);
	else
		lives_cancel(run.lives);
	for (size_t i = 0; i < run.kind_count; i++) {
		for (size_t k = 0; k < run.kinds[i].page_count; k++)
			free(run.kinds[i].pages[k]);
		free(run.kinds[i].pages);
	}
	free(run.kinds);
	free(run.numbers);
	for (size_t i = 0; run.uses && i < run.window_count; i++)
		free(run.uses[i].lives);
	free(run.uses);
	free(run.windows);
	free(run.windows_at);
	u64map_release(&run.threads);
	u64map_release(&run.by_stack.keys);
	u64map_release(&run.by_thread.keys);
	free(run.by_stack.counts);
	free(run.by_thread.counts);
	recording_close(recording);
	return rc;
}
