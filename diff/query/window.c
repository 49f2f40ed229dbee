/* The fates of allocations in a window of a recording, for each row or group, computed in one pass
 * over the events. */
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/record/record.h"
#include "diff/match/match.h"
#include "diff/query/lives.h"
#include "diff/query/view.h"
#include "diff/read/read_use.h"

#define NO_KIND UINT32_MAX
#define GONE UINT64_MAX /* time of an allocation that was freed */
#define PAGE_TIMES 64
#define FETCH_AHEAD 16 /* in events; frees often access blocks at random */
#define LIFE_CLASS_BITS 5 /* classes of lifetimes in ms: exact below 64, within 1/64 above */

/* Times of allocations of one kind with consecutive numbers. A page is freed when all of its
 * allocations were freed. */
struct time_page {
	uint64_t times_ms[PAGE_TIMES];
	unsigned live_count;
};

/* A kind that belongs to a selected row. */
struct window_kind {
	uint64_t bytes;
	/* bytes per recorded block; in a sample, a recorded block represents several blocks, whose
	 * bytes are added up */
	uint64_t use_bytes;
	uint64_t stands_for; /* number of blocks that one recorded block represents */
	uint64_t live; /* number of live blocks when the window began */
	/* number of the first allocation in the window, and of the first that does not count */
	uint64_t first_number, end_number;
	uint64_t allocated, freed_inside, freed_before;
	struct time_span allocated_ms, freed_ms;
	uint64_t shortest_ms, longest_ms;
	double lives_ms;
	uint64_t threads_seen; /* bit mask of the threads below 64 that allocated blocks */
	const uint32_t *windows; /* indexes in `view->window` of the sums that include the kind */
	size_t window_count;
	/* pages with the times of the allocations in the window, in order of their numbers; an
	 * element is NULL if all allocations of the page were freed */
	struct time_page **pages;
	size_t page_count, page_cap;
	uint32_t number; /* number of the kind in the recording */
};

struct window_use {
	uint64_t bytes, peak_bytes, peak_ms;
	/* indexed by class of lifetime: number of blocks that were allocated and freed in the
	 * window; NULL if all numbers are 0 */
	uint64_t *lives;
};

struct window_run {
	struct view *view;
	const struct dump_sums *sums;
	const struct record_facts *facts;
	size_t window_count;
	/* Each row has a list of the sums (elements of `view->window`) that include it. `windows`
	 * contains all lists, one after another. `windows_at`, indexed by row, is the start of the
	 * row's list. Sum 0 includes all rows. */
	uint32_t *windows_at, *windows;
	uint32_t *numbers; /* indexed by kind: index in `kinds`, or NO_KIND */
	struct window_kind *kinds;
	size_t kind_count, kind_cap;
	struct window_use *uses; /* indexed like view->window */
	/* number of classes needed for lifetimes up to the length of the window */
	size_t life_classes;
	/* each key is the index of a kind and the number of a thread that allocated blocks of this
	 * kind */
	struct u64map threads;
	/* maps the index of a kind and the stack that freed its blocks to an index in
	 * `freed_counts` */
	struct u64map freed;
	uint64_t *freed_counts;
	size_t freed_cap;
	struct life_maker *lives; /* NULL: not requested */
};

static int too_much(const struct window_run *run, struct err *err)
{
	return err_set(err, ERR_BAD_RECORDING, run->sums->id.path, SUMS_TOO_LARGE);
}

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

/* Adds a kind if it belongs to a selected row. Until the first event, the peak is the usage at the
 * start of the window. */
static int append_kind(struct window_run *run, uint32_t number, const struct record_state *state,
	const struct record_state *born, struct err *err)
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
	*kind = (struct window_kind){.bytes = run->facts->kinds[number].bytes,
		.use_bytes = record_kind_bytes(run->facts, number),
		.stands_for = record_kind_stands_for(run->facts, number, 1),
		.live = state->live[number],
		.first_number = state->allocated[number],
		.end_number = born->allocated ? born->allocated[number] : UINT64_MAX,
		.allocated_ms = {UINT64_MAX, 0},
		.freed_ms = {UINT64_MAX, 0},
		.shortest_ms = UINT64_MAX,
		.windows = &run->windows[run->windows_at[row]],
		.window_count = run->windows_at[row + 1] - run->windows_at[row],
		.number = number};
	if (__builtin_mul_overflow(kind->live, kind->use_bytes, &there) ||
		there > INT64_MAX - run->uses[0].bytes)
		return too_much(run, err);
	for (size_t i = 0; i < kind->window_count; i++) {
		struct window_use *use = &run->uses[kind->windows[i]];

		use->bytes += there;
		use->peak_bytes = use->bytes;
	}
	if (run->lives)
		lives_add_kind(run->lives,
			&(struct life_kind){number, row, kind->live, kind->first_number,
				row_new(run->view->comparison, &run->view->comparison->rows[row])
					.requested_bytes});
	return 0;
}

static int add_kinds(struct window_run *run, struct recording *recording, struct err *err)
{
	struct record_state state, born = {0};
	int rc;

	if (run->facts->kind_count < run->sums->window.kind_count ||
		run->facts->event_count < run->sums->window.position - 1)
		return err_set(err, ERR_CHANGED, run->sums->id.path, NULL);
	rc = recording_state(recording, run->sums->window.from_position, &state, err);
	if (!rc && window_is_longer(&run->sums->window))
		rc = recording_state(recording, run->sums->window.born_position, &born, err);
	if (rc) {
		record_state_release(&state);
		return rc;
	}
	run->uses = xcalloc(run->window_count, sizeof(*run->uses));
	for (size_t i = 0; i < run->window_count; i++)
		run->uses[i].peak_ms = run->sums->window.from_ms;
	run->life_classes =
		use_class(run->sums->window.to_ms - run->sums->window.from_ms, LIFE_CLASS_BITS) + 1;
	run->numbers = xcalloc(run->sums->window.kind_count + 1, sizeof(*run->numbers));
	for (uint32_t i = 0; !rc && i < run->sums->window.kind_count; i++)
		rc = append_kind(run, i, &state, &born, err);
	record_state_release(&state);
	record_state_release(&born);
	return rc;
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

static void span_extend(struct time_span *span, uint64_t time_ms)
{
	if (span->first_ms > time_ms)
		span->first_ms = time_ms;
	if (span->last_ms < time_ms)
		span->last_ms = time_ms;
}

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
		return too_much(run, err);
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

static void add_freed_by(struct window_run *run, const struct window_kind *kind, uint32_t stack)
{
	uint32_t at = (uint32_t)run->freed.index.count;

	if (u64map_add(&run->freed, (uint64_t)(kind - run->kinds) << 32 | stack, &at)) {
		array_grow((void **)&run->freed_counts, &run->freed_cap, at,
			sizeof(*run->freed_counts));
		run->freed_counts[at] = 0;
	}
	run->freed_counts[at]++;
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
		add_freed_by(run, kind, event->freed_by);
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
			uint32_t number = events[i].kind < run->sums->window.kind_count ?
						  run->numbers[events[i].kind] :
						  NO_KIND;

			if (i + 2 * FETCH_AHEAD < count)
				fetch_kind(run, &events[i + 2 * FETCH_AHEAD]);
			if (i + FETCH_AHEAD < count)
				fetch_event(run, &events[i + FETCH_AHEAD]);
			if (run->lives)
				lives_advance(run->lives, position, events[i].time_ms);
			if (number != NO_KIND && events[i].number < run->kinds[number].end_number)
				rc = (events[i].type == RECORD_ALLOC ? handle_alloc : handle_free)(
					run, &run->kinds[number], &events[i], err);
		}
		if (rc)
			break;
	}
	record_cursor_close(cursor);
	return rc;
}

/* ---------------------------------------------------------------- results */

static bool add_fate(
	struct window_sums *sums, enum block_fate fate, uint64_t count, uint64_t block_bytes)
{
	struct block_totals *totals = &sums->by_fate[fate];
	uint64_t bytes;

	return __builtin_mul_overflow(count, block_bytes, &bytes) || bytes > INT64_MAX ||
	       __builtin_add_overflow(totals->requested_bytes, bytes, &totals->requested_bytes) ||
	       totals->requested_bytes > INT64_MAX ||
	       __builtin_add_overflow(totals->block_count, count, &totals->block_count);
}

static int add_kind(struct window_run *run, const struct window_kind *kind, struct err *err)
{
	uint64_t counts[BLOCK_FATES] = {
		[FATE_AIFO] = kind->allocated - kind->freed_inside,
		[FATE_AIFI] = kind->freed_inside,
		[FATE_AOFI] = kind->freed_before,
		[FATE_AOFO] = kind->live - kind->freed_before,
		[FATE_AI] = kind->allocated,
	};
	double lives_ms = kind->lives_ms;

	for (int fate = 0; fate < BLOCK_FATES; fate++)
		counts[fate] = record_kind_stands_for(run->facts, kind->number, counts[fate]);
	if (kind->freed_inside)
		lives_ms *= (double)counts[FATE_AIFI] / (double)kind->freed_inside;
	for (size_t i = 0; i < kind->window_count; i++) {
		struct window_sums *sums = &run->view->window[kind->windows[i]];

		for (int fate = 0; fate < BLOCK_FATES; fate++) {
			if (add_fate(sums, (enum block_fate)fate, counts[fate], kind->bytes))
				return too_much(run, err);
		}
		if (kind->allocated) {
			span_extend(&sums->allocated, kind->allocated_ms.first_ms);
			span_extend(&sums->allocated, kind->allocated_ms.last_ms);
		}
		if (kind->freed_inside || kind->freed_before) {
			span_extend(&sums->freed, kind->freed_ms.first_ms);
			span_extend(&sums->freed, kind->freed_ms.last_ms);
		}
		sums->lives_ms += lives_ms;
		if (kind->shortest_ms < sums->shortest_ms)
			sums->shortest_ms = kind->shortest_ms;
		if (kind->longest_ms > sums->longest_ms)
			sums->longest_ms = kind->longest_ms;
	}
	return 0;
}

/* Returns the median lifetime: the middle of the class that contains the median, but at least the
 * shortest and at most the longest lifetime. */
static uint64_t median_life(
	const struct window_run *run, const struct window_use *use, const struct window_sums *sums)
{
	uint64_t all = 0, sum = 0, first, last;
	size_t life_class = 0;

	for (size_t i = 0; i < run->life_classes; i++)
		all += use->lives[i];
	while ((sum += use->lives[life_class]) < all - all / 2)
		life_class++;
	first = use_class_first(life_class, LIFE_CLASS_BITS);
	last = use_class_first(life_class + 1, LIFE_CLASS_BITS) - 1;
	first += (last - first) / 2;
	first = first > sums->shortest_ms ? first : sums->shortest_ms;
	return first < sums->longest_ms ? first : sums->longest_ms;
}

/* A thread, a heap or a stack, and the sum that it belongs to. */
struct place {
	uint64_t value;
	uint32_t window;
};

struct places {
	struct place *items;
	size_t count, cap;
};

static void add_places(struct places *found, const struct window_kind *kind, uint64_t value)
{
	for (size_t i = 0; i < kind->window_count; i++) {
		array_grow(
			(void **)&found->items, &found->cap, found->count, sizeof(*found->items));
		found->items[found->count++] = (struct place){value, kind->windows[i]};
	}
}

static int by_window(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->window != y->window)
		return x->window < y->window ? -1 : 1;
	return x->value < y->value ? -1 : x->value > y->value;
}

/* For each sum, stores the threads (or heaps) that belong to it, sorted and without duplicates. */
static void store_places(struct window_run *run, struct places *found, bool are_threads)
{
	uint64_t *values = arena_alloc(&run->view->arena, found->count * sizeof(*values));

	if (found->count)
		qsort(found->items, found->count, sizeof(*found->items), by_window);
	for (size_t i = 0; i < found->count; i++) {
		const struct place *place = &found->items[i];
		struct window_sums *sums = &run->view->window[place->window];
		const uint64_t **list = are_threads ? &sums->threads : &sums->heaps;
		size_t *count = are_threads ? &sums->thread_count : &sums->heap_count;

		if (i && !by_window(place, place - 1))
			continue;
		*values = place->value;
		if (!(*count)++)
			*list = values;
		values++;
	}
	free(found->items);
}

/* Sum of the blocks that a stack freed. `place` contains the stack. It must be first, because
 * by_window() compares places. */
struct freed_sum {
	struct place place;
	struct block_totals sum;
};

static struct stack stack_at(struct window_run *run, uint32_t number)
{
	const struct record_stack *from = &run->facts->stacks[number];
	uint64_t *frames =
		arena_alloc(&run->view->arena, (from->frame_count + 1) * sizeof(*frames));

	record_stack_addrs(run->sums, from, frames);
	return (struct stack){
		.frames = frames, .frame_count = from->frame_count, .same_id = STACK_NONE};
}

/* For each sum, stores the stack that freed the most bytes, and looks up the stack's names. */
static void store_freed(struct window_run *run)
{
	struct stack *stacks = arena_alloc(&run->view->arena, run->window_count * sizeof(*stacks));
	struct freed_sum *all = NULL;
	struct block_totals sum = {0};
	size_t count = 0, cap = 0, stack_count = 0;

	for (size_t i = 0; i < run->freed.index.count; i++) {
		uint64_t number = run->freed.items[i].number, blocks = run->freed_counts[i];
		const struct window_kind *kind = &run->kinds[number >> 32];

		for (size_t k = 0; k < kind->window_count; k++) {
			array_grow((void **)&all, &cap, count, sizeof(*all));
			all[count++] = (struct freed_sum){{(uint32_t)number, kind->windows[k]},
				{.block_count = blocks, .requested_bytes = blocks * kind->bytes}};
		}
	}
	if (count)
		qsort(all, count, sizeof(*all), by_window);
	for (size_t i = 0; i < count; i++) {
		struct window_sums *sums = &run->view->window[all[i].place.window];

		block_totals_add(&sum, &all[i].sum);
		if (i + 1 < count && !by_window(&all[i], &all[i + 1]))
			continue;
		if (!sums->freed_by)
			sums->freed_by = &stacks[stack_count++];
		if (!sums->freed_by_count++ ||
			sum.requested_bytes > sums->freed_by_sum.requested_bytes) {
			sums->freed_by_sum = sum;
			stacks[stack_count - 1] = stack_at(run, (uint32_t)all[i].place.value);
		}
		sum = (struct block_totals){0};
	}
	naming_find_stacks(&run->view->naming, 0, stacks, stack_count);
	free(all);
}

static int add_up(struct window_run *run, struct err *err)
{
	struct places threads = {0}, heaps = {0};
	int rc = 0;

	run->view->window = xcalloc(run->window_count, sizeof(*run->view->window));
	for (size_t i = 0; i < run->window_count; i++) {
		struct window_sums *window = &run->view->window[i];

		window->peak_bytes = run->uses[i].peak_bytes;
		window->peak_ms = run->uses[i].peak_ms;
		window->shortest_ms = UINT64_MAX;
		window->allocated.first_ms = window->freed.first_ms = UINT64_MAX;
	}
	for (size_t i = 0; !rc && i < run->kind_count; i++)
		rc = add_kind(run, &run->kinds[i], err);
	for (size_t i = 0; i < run->window_count; i++) {
		if (run->uses[i].lives)
			run->view->window[i].median_ms =
				median_life(run, &run->uses[i], &run->view->window[i]);
	}
	for (size_t i = 0; i < run->kind_count; i++)
		add_places(&heaps, &run->kinds[i],
			record_kind_heap(run->facts, &run->facts->kinds[run->kinds[i].number]));
	for (size_t i = 0; i < run->threads.index.count; i++) {
		uint64_t number = run->threads.items[i].number;
		uint32_t tid = run->facts->threads[(uint32_t)number];

		if (tid)
			add_places(&threads, &run->kinds[number >> 32], tid);
	}
	store_places(run, &heaps, false);
	store_places(run, &threads, true);
	if (!rc)
		store_freed(run);
	return rc;
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
	u64map_init(&run.freed);
	find_windows(&run);
	if (view->wants_lives)
		run.lives = begin_lives(&run);
	rc = add_kinds(&run, recording, err);
	if (!rc)
		rc = replay_events(&run, recording, err);
	if (!rc)
		rc = add_up(&run, err);
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
	u64map_release(&run.freed);
	free(run.freed_counts);
	recording_close(recording);
	return rc;
}
