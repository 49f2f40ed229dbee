/* The sums of rows and groups in a window, from the sums of each kind. */
#include "diff/query/window.h"

#include <stdlib.h>

#include "core/base/memory.h"
#include "diff/match/match.h"
#include "diff/read/read_use.h"

int window_too_large(const struct window_run *run, struct err *err)
{
	return err_set(err, ERR_BAD_RECORDING, run->sums->id.path, SUMS_TOO_LARGE);
}

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
				return window_too_large(run, err);
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

/* Lists the blocks that were freed, by sum and by stack or thread. */
static struct freed_sum *list_freed(
	const struct window_run *run, const struct free_tally *tally, size_t *count)
{
	struct freed_sum *all = NULL;
	size_t cap = 0, kept = 0;

	*count = 0;
	for (size_t i = 0; i < tally->keys.index.count; i++) {
		uint64_t number = tally->keys.items[i].number, blocks = tally->counts[i];
		const struct window_kind *kind = &run->kinds[number >> 32];

		for (size_t k = 0; k < kind->window_count; k++) {
			array_grow((void **)&all, &cap, *count, sizeof(*all));
			all[(*count)++] = (struct freed_sum){{(uint32_t)number, kind->windows[k]},
				{.block_count = blocks, .requested_bytes = blocks * kind->bytes}};
		}
	}
	if (*count)
		qsort(all, *count, sizeof(*all), by_window);
	for (size_t i = 0; i < *count; i++) {
		if (kept && !by_window(&all[kept - 1], &all[i]))
			block_totals_add(&all[kept - 1].sum, &all[i].sum);
		else
			all[kept++] = all[i];
	}
	*count = kept;
	return all;
}

/* For each sum, stores the stack that freed the most bytes, and looks up the stack's names. */
static void store_freed(struct window_run *run)
{
	struct stack *stacks = arena_alloc(&run->view->arena, run->window_count * sizeof(*stacks));
	size_t count, stack_count = 0;
	struct freed_sum *all = list_freed(run, &run->by_stack, &count);

	for (size_t i = 0; i < count; i++) {
		struct window_sums *sums = &run->view->window[all[i].place.window];

		if (!sums->freed_by)
			sums->freed_by = &stacks[stack_count++];
		if (!sums->freed_by_count++ ||
			all[i].sum.requested_bytes > sums->freed_by_sum.requested_bytes) {
			sums->freed_by_sum = all[i].sum;
			stacks[stack_count - 1] = stack_at(run, (uint32_t)all[i].place.value);
		}
	}
	naming_find_stacks(&run->view->naming, 0, stacks, stack_count);
	free(all);
}

static int by_bytes(const void *a, const void *b)
{
	const struct thread_sum *x = a, *y = b;

	if (x->sum.requested_bytes != y->sum.requested_bytes)
		return x->sum.requested_bytes > y->sum.requested_bytes ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* For each sum, stores the threads that freed. */
static void store_freers(struct window_run *run)
{
	size_t count;
	struct freed_sum *all = list_freed(run, &run->by_thread, &count);
	struct thread_sum *to = arena_alloc(&run->view->arena, count * sizeof(*to));

	for (size_t i = 0; i < count; i++) {
		struct window_sums *sums = &run->view->window[all[i].place.window];

		to[i] = (struct thread_sum){run->facts->threads[all[i].place.value], all[i].sum};
		if (!sums->freer_count++)
			sums->freers = &to[i];
	}
	for (size_t i = 0; i < run->window_count; i++) {
		struct window_sums *sums = &run->view->window[i];

		if (sums->freer_count)
			qsort(sums->freers, sums->freer_count, sizeof(*sums->freers), by_bytes);
	}
	free(all);
}

int window_add_up(struct window_run *run, struct err *err)
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
	if (!rc) {
		store_freed(run);
		store_freers(run);
	}
	return rc;
}
