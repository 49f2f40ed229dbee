#include "tests/unit/t.h"

#include <time.h>

#include "snapshot/record/replay.h"

#define THREADS 6
#define LOG2 RING_LOG2_MIN
#define TOLD_MAX 200000
#define ADDRS 60

/* An event that is passed to a recorder, or that is expected. */
struct allocations {
	bool is_free;
	uint64_t addr, bytes, heap; /* addr: address of an allocation */
	uint32_t stack, thread;
	uint32_t freed_by; /* stack of a free */
	enum record_memory memory;
	size_t alloc; /* for a free: index of the block's allocation in the list */
	size_t group; /* frees with equal numbers may arrive in any order; 0: none */
};

static struct scene {
	struct ring_area *area;
	struct replay *replay;
	struct drain *drain;
	struct allocations *allocations, *wanted;
	size_t told_count, wanted_count;
	struct record_kind kinds[20000];
	size_t kind_count;
	/* By kind and number: the allocation's index plus one in the list `allocations`; 0: freed. */
	uint32_t *allocs[20000];
	uint64_t alloc_counts[20000];
	uint64_t heaps[200];
	size_t heap_count;
	uint32_t thread;
	uint64_t time_ms, lost;
	/* State of the program. */
	uint32_t orders[RING_STREAMS];
	uint64_t time, random;
	size_t group;
} scene;

static uint32_t random_below(uint32_t limit)
{
	scene.random = scene.random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((scene.random >> 32) * limit >> 32);
}

/* ---------------------------------------------------------------- a recorder that stores calls */

uint32_t recorder_heap(struct recorder *recorder, uint64_t handle)
{
	(void)recorder;
	for (size_t i = 0; i < scene.heap_count; i++) {
		if (scene.heaps[i] == handle)
			return (uint32_t)i;
	}
	assert_true(scene.heap_count < 200);
	scene.heaps[scene.heap_count] = handle;
	return (uint32_t)scene.heap_count++;
}

uint32_t recorder_thread(struct recorder *recorder, uint32_t tid)
{
	(void)recorder;
	return tid;
}

uint32_t recorder_kind(struct recorder *recorder, const struct record_kind *kind)
{
	(void)recorder;
	for (size_t i = 0; i < scene.kind_count; i++) {
		const struct record_kind *known = &scene.kinds[i];

		if (known->bytes == kind->bytes && known->stack == kind->stack &&
			known->heap == kind->heap && known->memory == kind->memory)
			return (uint32_t)i;
	}
	assert_true(scene.kind_count < 20000);
	scene.kinds[scene.kind_count] = *kind;
	return (uint32_t)scene.kind_count++;
}

void recorder_time(struct recorder *recorder, uint64_t time_ms)
{
	(void)recorder;
	scene.time_ms = time_ms > scene.time_ms ? time_ms : scene.time_ms;
}

void recorder_thread_is(struct recorder *recorder, uint32_t thread)
{
	(void)recorder;
	scene.thread = thread;
}

static struct allocations *tell(uint32_t kind)
{
	const struct record_kind *known = &scene.kinds[kind];

	assert_true(kind < scene.kind_count && scene.told_count < TOLD_MAX);
	scene.allocations[scene.told_count] = (struct allocations){.bytes = known->bytes,
		.heap = known->memory == RECORD_HEAP ? scene.heaps[known->heap] : 0,
		.stack = known->stack,
		.thread = scene.thread,
		.memory = known->memory};
	return &scene.allocations[scene.told_count++];
}

uint64_t recorder_alloc(struct recorder *recorder, uint32_t kind, uint64_t addr)
{
	uint64_t number = scene.alloc_counts[kind]++;

	(void)recorder;
	tell(kind)->addr = addr;
	if ((number & (number + 1)) == 0) {
		scene.allocs[kind] =
			realloc(scene.allocs[kind], (2 * number + 2) * sizeof(*scene.allocs[kind]));
		assert_non_null(scene.allocs[kind]);
	}
	scene.allocs[kind][number] = (uint32_t)scene.told_count;
	return number;
}

void recorder_free(struct recorder *recorder, uint32_t kind, uint64_t number)
{
	recorder_free_by(recorder, kind, number, RECORD_NO_STACK);
}

void recorder_free_by(struct recorder *recorder, uint32_t kind, uint64_t number, uint32_t stack)
{
	struct allocations *allocations = tell(kind);

	(void)recorder;
	allocations->freed_by = stack;
	assert_true(number < scene.alloc_counts[kind] && scene.allocs[kind][number]);
	allocations->is_free = true;
	allocations->alloc = scene.allocs[kind][number] - 1;
	scene.allocs[kind][number] = 0;
}

void recorder_lost(struct recorder *recorder, uint64_t events)
{
	(void)recorder;
	scene.lost += events;
}

/* ---------------------------------------------------------------- the program */

static uint32_t stack_number(void *ctx, uint32_t id)
{
	(void)ctx;
	return id + 1000;
}

static int begin(void **state)
{
	(void)state;
	memset(&scene, 0, sizeof(scene));
	scene.area = calloc(1, ring_area_bytes(THREADS + 1, LOG2));
	scene.allocations = calloc(TOLD_MAX, sizeof(*scene.allocations));
	scene.wanted = calloc(TOLD_MAX, sizeof(*scene.wanted));
	assert_true(scene.area && scene.allocations && scene.wanted);
	ring_area_init(scene.area, THREADS + 1, LOG2, 0);
	scene.replay = replay_new(NULL, stack_number, NULL);
	scene.drain = drain_new(scene.replay, NULL, scene.area, THREADS + 1, LOG2, NULL);
	scene.time = 1000000;
	scene.random = 1;
	drain_events(scene.drain, scene.time, 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	drain_free(scene.drain);
	replay_free(scene.replay);
	free(scene.area);
	free(scene.allocations);
	free(scene.wanted);
	for (size_t i = 0; i < scene.kind_count; i++)
		free(scene.allocs[i]);
	return 0;
}

#undef TEST_AROUND
#define TEST_AROUND begin, end

static size_t drain_now(void)
{
	return drain_events(scene.drain, scene.time, (scene.time - 1000000) / 1000);
}

static void put(uint32_t thread, struct ring_event event)
{
	struct ring *ring = &scene.area->rings[thread];

	if (ring->head - ring->tail >= ((uint32_t)1 << LOG2) - 2)
		drain_now();
	if (!ring->head) {
		struct ring_event first = {.type = RING_THREAD,
			.stream = 255,
			.low = 100 + thread,
			.time = (uint32_t)scene.time};

		ring_write(&scene.area->rings[thread], &first);
	}
	event.order = scene.orders[event.stream]++;
	event.time = (uint32_t)scene.time;
	ring_write(&scene.area->rings[thread], &event);
}

static void write_block(
	uint32_t thread, unsigned type, const struct tracer_block *block, uint64_t heap)
{
	put(thread, (struct ring_event){.block = *block,
			    .low = (uint32_t)heap,
			    .high = (uint16_t)(heap >> 32),
			    .type = (uint8_t)type,
			    .stream = (uint8_t)((tracer_block_addr(block) >> 4) % TRACER_SHARDS)});
}

static size_t want(struct allocations allocations)
{
	assert_true(scene.wanted_count < TOLD_MAX);
	scene.wanted[scene.wanted_count] = allocations;
	return scene.wanted_count++;
}

static int by_alloc(const void *a, const void *b)
{
	const struct allocations *x = a, *y = b;

	return (x->alloc > y->alloc) - (x->alloc < y->alloc);
}

static void sort_groups(void)
{
	for (size_t i = 0, next; i < scene.wanted_count; i = next) {
		for (next = i + 1; next < scene.wanted_count && scene.wanted[i].group &&
				   scene.wanted[next].group == scene.wanted[i].group;)
			next++;
		qsort(&scene.wanted[i], next - i, sizeof(*scene.wanted), by_alloc);
		qsort(&scene.allocations[i], next - i, sizeof(*scene.allocations), by_alloc);
	}
}

static void check_told(void)
{
	while (drain_now())
		;
	assert_int_equal(scene.lost, 0);
	assert_int_equal(drain_damaged(scene.drain), 0);
	assert_int_equal(scene.told_count, scene.wanted_count);
	sort_groups();
	for (size_t i = 0; i < scene.told_count; i++) {
		const struct allocations *allocations = &scene.allocations[i],
					 *wanted = &scene.wanted[i];

		assert_int_equal(allocations->is_free, wanted->is_free);
		assert_int_equal(allocations->addr, wanted->addr);
		assert_int_equal(allocations->bytes, wanted->bytes);
		assert_int_equal(allocations->heap, wanted->heap);
		assert_int_equal(allocations->stack, wanted->stack);
		assert_int_equal(allocations->thread, wanted->thread);
		if (allocations->is_free)
			assert_int_equal(allocations->alloc, wanted->alloc);
	}
}

/* ---------------------------------------------------------------- blocks */

struct live {
	struct tracer_block block;
	uint64_t heap;
	size_t alloc;
	bool is_live;
};

#define HEAPS 4
#define HEAP_OF(i, generation)                                                                     \
	(0x10000u * (uint64_t)((i) + 1) + 0x100000000u * ((generation) / 100))

static void free_wanted(struct live *live, uint32_t thread)
{
	struct allocations allocations = scene.wanted[live->alloc];

	allocations.is_free = true;
	allocations.addr = 0;
	allocations.thread = 100 + thread;
	allocations.alloc = live->alloc;
	allocations.group = scene.group;
	want(allocations);
	live->is_live = false;
}

static void step(struct live *lives, unsigned *generations)
{
	uint32_t thread = random_below(THREADS + 1), heap = random_below(HEAPS), stack;
	uint32_t tag = (heap + 1) | (generations[heap] % 15 + 1) << TRACER_HEAPS_LOG2;
	struct live *live = &lives[random_below(ADDRS)];

	scene.time += 1 + random_below(300);
	if (random_below(200) == 0) {
		for (unsigned i = 0; i < TRACER_SHARDS; i++)
			put(thread,
				(struct ring_event){.block.key = (uint64_t)tag << TRACER_ADDR_BITS,
					.low = (uint32_t)HEAP_OF(heap, generations[heap]),
					.type = RING_HEAP_GONE,
					.stream = (uint8_t)i});
		generations[heap]++;
		scene.group = scene.wanted_count + 1;
		for (unsigned i = 0; i < ADDRS; i++) {
			if (lives[i].is_live && lives[i].block.key >> TRACER_ADDR_BITS == tag)
				free_wanted(&lives[i], thread);
		}
		scene.group = 0;
		return;
	}
	if (live->is_live) {
		write_block(thread, RING_FREE, &live->block, live->heap);
		free_wanted(live, thread);
		return;
	}
	*live = (struct live){.heap = HEAP_OF(heap, generations[heap]), .is_live = true};
	live->block = tracer_block_make(0x1000 + 16 * (uint64_t)(live - lives), tag,
		1 + random_below(50), random_below(30) ? random_below(100) : TRACER_SIZE_MAX);
	write_block(thread, RING_ALLOC, &live->block, live->heap);
	stack = tracer_block_stack(&live->block);
	live->alloc = want((struct allocations){.addr = tracer_block_addr(&live->block),
		.bytes = tracer_block_bytes(&live->block),
		.heap = live->heap,
		.stack = stack ? stack + 1000 : RECORD_NO_STACK,
		.thread = 100 + thread});
}

TEST(events_of_threads_are_recorded_in_their_order)
{
	struct live lives[ADDRS] = {0};
	unsigned generations[HEAPS] = {0};

	for (unsigned i = 0; i < 50000; i++) {
		step(lives, generations);
		if (random_below(100) == 0)
			drain_now();
	}
	check_told();
	assert_true(scene.wanted_count > 5000);
}

static struct live allocated(uint32_t thread, unsigned type, uint64_t addr, uint32_t stack)
{
	struct live live = {.block = tracer_block_make(addr, 1, stack, 40), .heap = 0x10000};

	write_block(thread, type, &live.block, live.heap);
	return live;
}

static void want_alloc(struct live *live, uint32_t thread)
{
	live->alloc = want((struct allocations){.addr = tracer_block_addr(&live->block),
		.bytes = 40,
		.heap = live->heap,
		.stack = tracer_block_stack(&live->block) + 1000,
		.thread = 100 + thread});
}

/* A block that the real heap allocates for itself is part of its thread's next event, or is an
 * independent allocation. */
TEST(moved_block_is_recorded_once)
{
	struct tracer_block old = tracer_block_make(0x9000, 0, 0, 0);
	struct live inside, moved, other;

	for (unsigned drains = 0; drains < 2; drains++) {
		inside = allocated(0, RING_ALLOC_INSIDE, 0x1000, 1);
		write_block(0, RING_FREE_OLD, &old, 0);
		other = allocated(1, RING_ALLOC, 0x2000, 2);
		want_alloc(&other, 1);
		if (drains)
			drain_now();
		moved = allocated(0, RING_ALLOC, 0x1000, 3);
		want_alloc(&moved, 0);
		write_block(1, RING_FREE, &moved.block, moved.heap);
		free_wanted(&moved, 1);
		write_block(0, RING_FREE, &other.block, other.heap);
		free_wanted(&other, 0);
	}
	/* The outer allocation was not sampled. */
	inside = allocated(0, RING_ALLOC_INSIDE, 0x1000, 1);
	write_block(0, RING_FREE, &inside.block, inside.heap);
	/* The block is in a new heap. Another thread frees it, or its own thread logs another
	 * event. */
	inside = allocated(0, RING_ALLOC_INSIDE, 0x3000, 4);
	write_block(1, RING_FREE, &inside.block, inside.heap);
	want_alloc(&inside, 0);
	free_wanted(&inside, 1);
	inside = allocated(0, RING_ALLOC_INSIDE, 0x4000, 5);
	want_alloc(&inside, 0);
	other = allocated(0, RING_ALLOC, 0x5000, 6);
	want_alloc(&other, 0);
	/* The thread logs no other event. */
	inside = allocated(0, RING_ALLOC_INSIDE, 0x6000, 7);
	want_alloc(&inside, 0);
	drain_now();
	assert_int_equal(scene.told_count, scene.wanted_count - 1);
	scene.time += 10000 * 1000;
	check_told();
}

static void print_gone(uint32_t tag, uint64_t heap)
{
	for (unsigned i = 0; i < TRACER_SHARDS; i++) {
		const struct ring_event event = {.block.key = (uint64_t)tag << TRACER_ADDR_BITS,
			.low = (uint32_t)heap,
			.type = RING_HEAP_GONE,
			.stream = (uint8_t)i};

		assert_true(replay_event(scene.replay, &event));
	}
}

static void print_block(uint64_t addr, uint32_t tag, uint64_t heap)
{
	const struct ring_event event = {.block = tracer_block_make(addr, tag, 1, 8),
		.low = (uint32_t)heap,
		.type = RING_ALLOC};

	assert_true(replay_event(scene.replay, &event));
}

/* Counts the frees that follow. All of them must be in this heap. */
static size_t freed_of(uint64_t heap, size_t since)
{
	size_t count = 0;

	for (; since < scene.told_count; since++, count++)
		assert_true(
			scene.allocations[since].is_free && scene.allocations[since].heap == heap);
	return count;
}

TEST(heap_that_is_gone_takes_its_own_blocks_old_and_new)
{
	size_t since;

	for (uint64_t i = 1; i <= 3000; i++) {
		replay_add_block(scene.replay, i * 64, 0x10000 + i % 2 * 0x10000, 8, 0);
		print_block(i * 64 + 16, 5 + (uint32_t)(i % 2), 0x10000 + i % 2 * 0x10000);
	}
	since = scene.told_count;
	print_gone(6, 0x20000);
	assert_int_equal(freed_of(0x20000, since), 3000);
	since = scene.told_count;
	print_gone(6, 0x20000);
	print_gone(7, 0x20000);
	print_gone(7, 0);
	assert_int_equal(scene.told_count, since);
	/* The heap's tag is unknown, so no tagged block can be in this heap. */
	print_gone(0, 0x10000);
	assert_int_equal(freed_of(0x10000, since), 1500);
	since = scene.told_count;
	print_gone(5, 0x10000);
	assert_int_equal(freed_of(0x10000, since), 1500);
}

/* Returns the processor time that it takes to make and destroy heaps. */
static clock_t heaps_come_and_go(void)
{
	clock_t from = clock();

	for (uint64_t i = 1; i <= 30000; i++) {
		print_block(i * 64 + 16, 6, 0x20000);
		print_gone(6, 0x20000);
	}
	return clock() - from;
}

/* The cost depends on the heap's own blocks. If it depended on all blocks, it would be 32 times as
 * high. */
TEST(end_of_heap_costs_no_more_beside_many_blocks)
{
	clock_t alone = heaps_come_and_go(), beside;

	for (uint64_t i = 1; i <= 50000; i++)
		print_block(i * 64, 5, 0x10000);
	beside = heaps_come_and_go();
	assert_int_equal(scene.told_count, 50000 + 4 * 30000);
	assert_true(beside < 10 * alone);
}

/* Processors' clocks may differ, but the order within a stream remains valid. */
TEST(times_that_lie_change_no_order_of_one_stream)
{
	struct live lives[ADDRS] = {0};
	unsigned generations[HEAPS] = {0};
	size_t live_count = 0, told_live = 0;

	for (unsigned i = 0; i < 50000; i++) {
		uint64_t time = scene.time;

		scene.time += random_below(100000);
		step(lives, generations);
		scene.time = time + 20;
		if (random_below(100) == 0)
			drain_now();
	}
	while (drain_now())
		;
	/* recorder_free() checked that each free ends a live block */
	for (size_t i = 0; i < ADDRS; i++)
		live_count += lives[i].is_live;
	for (size_t i = 0; i < scene.told_count; i++)
		told_live += scene.allocations[i].is_free ? (size_t)-1 : 1;
	assert_int_equal(told_live, live_count);
	assert_int_equal(scene.told_count, scene.wanted_count);
	assert_int_equal(scene.lost + drain_damaged(scene.drain), 0);
}

/* ---------------------------------------------------------------- ranges */

#define PAGES 1500 /* room for several hundred ranges */
#define BASE 0x7000000u

/* State of each page as the rules of rings.h define it. */
struct page {
	uint32_t state, stack, reserve_stack;
};

static void change_page(unsigned type, struct page *page, uint32_t state, uint32_t stack)
{
	switch (type) {
	case RING_RANGE_TAKE: *page = (struct page){0}; break;
	case RING_RANGE_ADD: *page = (struct page){state, stack, stack}; break;
	case RING_RANGE_FILL:
		if (!page->state)
			*page = (struct page){state, stack, stack};
		break;
	case RING_RANGE_USE:
		if (page->state == RANGE_RESERVED)
			*page = (struct page){state, stack, page->stack};
		break;
	default:
		if (page->state == state && state != RANGE_RESERVED)
			*page = (struct page){
				RANGE_RESERVED, page->reserve_stack, page->reserve_stack};
	}
}

/* Checks the recording's live ranges page by page. */
static void check_pages(const struct page *pages)
{
	static const uint32_t states[RECORD_MEMORIES] = {[RECORD_COMMITTED] = RANGE_COMMITTED,
		[RECORD_RESERVED] = RANGE_RESERVED,
		[RECORD_MAPPED] = RANGE_MAPPED,
		[RECORD_STACK] = RANGE_STACK};
	struct page allocations[PAGES] = {0};

	for (size_t kind = 0; kind < scene.kind_count; kind++) {
		const struct record_kind *known = &scene.kinds[kind];

		for (uint64_t i = 0; i < scene.alloc_counts[kind]; i++) {
			uint32_t alloc = scene.allocs[kind][i];
			uint64_t first;

			if (!alloc)
				continue;
			first = (scene.allocations[alloc - 1].addr - BASE) / TRACER_PAGE;
			assert_true(first + known->bytes / TRACER_PAGE <= PAGES);
			for (uint64_t at = first; at < first + known->bytes / TRACER_PAGE; at++) {
				assert_int_equal(allocations[at].state, 0);
				allocations[at].state = states[known->memory];
				allocations[at].stack = known->stack - 1000;
			}
		}
	}
	for (unsigned i = 0; i < PAGES; i++) {
		assert_int_equal(allocations[i].state, pages[i].state);
		assert_int_equal(allocations[i].stack, pages[i].stack);
	}
}

TEST(ranges_agree_with_pages_and_are_freed_by_events_stack)
{
	struct page pages[PAGES] = {0};
	size_t frees = 0;

	for (unsigned i = 0; i < 12000; i++) {
		unsigned type = RING_RANGE_ADD + random_below(5), from = random_below(PAGES);
		unsigned count = 1 + random_below(random_below(i < 4000 ? 4 : 200) ? 6 : PAGES);
		uint32_t became = RANGE_RESERVED + random_below(4), stack = 1 + random_below(7);
		size_t allocations;

		count = count > PAGES - from ? PAGES - from : count;
		scene.time++;
		put(random_below(THREADS),
			(struct ring_event){.block = tracer_block_make(
						    BASE + from * TRACER_PAGE, 0, stack, count),
				.low = type == RING_RANGE_TAKE ? RANGE_NONE : became,
				.type = (uint8_t)type,
				.stream = RING_RANGES});
		for (unsigned page = from; page < from + count; page++)
			change_page(type, &pages[page], became, stack);
		allocations = scene.told_count;
		drain_now();
		if (i % 8 == 0)
			check_pages(pages);
		for (; allocations < scene.told_count; allocations++) {
			if (!scene.allocations[allocations].is_free)
				continue;
			frees++;
			assert_int_equal(scene.allocations[allocations].freed_by,
				type == RING_RANGE_ADD ? RECORD_NO_STACK : stack + 1000);
		}
	}
	check_pages(pages);
	assert_true(frees > 1000);
	assert_int_equal(drain_damaged(scene.drain), 0);
}

static void print_range(unsigned type, uint64_t number)
{
	replay_event(scene.replay,
		&(struct ring_event){
			.block = tracer_block_make(BASE + number * 2 * TRACER_PAGE, 0, 1, 1),
			.low = type == RING_RANGE_TAKE ? RANGE_NONE : RANGE_COMMITTED,
			.type = (uint8_t)type,
			.stream = RING_RANGES});
}

/* Returns the processor time that it takes to add and remove ranges. */
static clock_t ranges_come_and_go(void)
{
	clock_t from = clock();

	for (unsigned i = 0; i < 20000; i++) {
		uint64_t number = 100000 + random_below(50000);

		print_range(RING_RANGE_ADD, number);
		print_range(RING_RANGE_TAKE, number);
	}
	return clock() - from;
}

/* A change moves only a few of the ranges above it. Moving all of them would take a thousand times
 * as long. */
TEST(change_of_range_costs_no_more_beside_many)
{
	clock_t alone = ranges_come_and_go(), beside;

	for (uint64_t i = 0; i < 100000; i++)
		print_range(RING_RANGE_ADD, i < 50000 ? i : i + 100000);
	beside = ranges_come_and_go();
	assert_int_equal(scene.told_count, 100000 + 20000 * 2 + 20000 * 2);
	assert_true(beside < 20 * alone);
}

/* ---------------------------------------------------------------- faults */

TEST(stream_whose_next_event_never_comes_goes_on_after_while)
{
	const struct tracer_block block = tracer_block_make(0x1000, 0, 1, 8);

	write_block(0, RING_ALLOC, &block, 0);
	scene.orders[(0x1000 >> 4) % TRACER_SHARDS] += 3; /* three events are missing */
	write_block(1, RING_FREE, &block, 0);
	drain_now();
	assert_int_equal(scene.told_count, 1);
	scene.time += 4000 * 1000;
	drain_now();
	assert_int_equal(scene.told_count, 1);
	scene.time += 2000 * 1000;
	drain_now();
	assert_int_equal(scene.told_count, 2);
	assert_int_equal(scene.lost, 3);
}

TEST(waiting_events_are_recorded_at_end_and_missing_ones_counted)
{
	struct tracer_block block = tracer_block_make(0x1000, 0, 1, 8);

	scene.orders[(0x1000 >> 4) % TRACER_SHARDS] += 3;
	write_block(0, RING_ALLOC, &block, 0);
	scene.orders[(0x1000 >> 4) % TRACER_SHARDS] += 4;
	write_block(1, RING_FREE, &block, 0);
	allocated(2, RING_ALLOC_INSIDE, 0x2000, 2);
	drain_now();
	assert_int_equal(scene.told_count, 0);
	drain_end(scene.drain);
	assert_int_equal(scene.told_count, 3);
	assert_int_equal(scene.lost, 7);
}

TEST(ring_that_has_event_twice_makes_no_sense)
{
	const struct tracer_block block = tracer_block_make(0x1000, 0, 1, 8);

	write_block(0, RING_ALLOC, &block, 0);
	scene.orders[(0x1000 >> 4) % TRACER_SHARDS]--;
	write_block(1, RING_FREE, &block, 0);
	write_block(0, RING_FREE, &block, 0);
	drain_now();
	assert_int_equal(scene.told_count, 2);
	assert_int_equal(scene.lost, 1);
	assert_int_equal(drain_damaged(scene.drain), 1);
}

TEST(what_is_dropped_is_counted)
{
	scene.area->rings[2].dropped = 70;
	drain_now();
	scene.area->rings[2].dropped = 75;
	scene.area->dropped = 3;
	drain_now();
	assert_int_equal(scene.lost, 78);
}

/* Random rings. recorder_free() ends only live blocks, memory stays bounded, and a thread with an
 * invalid ring does not wait forever. */
TEST(rings_may_hold_anything)
{
	for (unsigned round = 0; round < 300; round++) {
		for (uint32_t ring = 0; ring <= THREADS; ring++) {
			struct ring *shared = &scene.area->rings[ring];
			uint32_t free_count = ((uint32_t)1 << LOG2) - (shared->head - shared->tail);

			for (unsigned i = random_below(10); i && free_count; i--, free_count--) {
				struct ring_event event = {
					.block = tracer_block_make(random_below(9) * 8,
						random_below(3), random_below(9), random_below(9)),
					.order = scene.orders[random_below(3)]++,
					.low = random_below(5),
					.type = (uint8_t)random_below(
						RING_TYPES + !random_below(50)),
					.stream =
						(uint8_t)random_below(3 + 60 * !random_below(50))};

				ring_write(shared, &event);
			}
		}
		if (round == 200)
			scene.area->rings[3].head += 1 << 20;
		scene.time += 1000 * 1000;
		drain_now();
	}
	assert_true(drain_damaged(scene.drain) > 0);
	for (unsigned i = 0; i < 10; i++) {
		scene.time += 10000 * 1000;
		drain_now();
	}
	for (uint32_t ring = 0; ring <= THREADS; ring++)
		assert_int_equal(scene.area->rings[ring].tail, scene.area->rings[ring].head);
}

/* ---------------------------------------------------------------- a walk of the heaps */

static bool is_even_sixteenth(const void *ctx, uint64_t addr)
{
	(void)ctx;
	return addr / 16 % 2 == 0;
}

/* Allocates or frees blocks at equal addresses on two threads. */
static void write_many(uint64_t bytes, unsigned type)
{
	for (uint64_t i = 0; i < 100; i++) {
		const struct tracer_block block = tracer_block_make(0x10000 + 16 * i, 1, 1, bytes);

		scene.time++;
		write_block(i % 2, type, &block, 0x10000);
	}
}

TEST(events_beyond_limit_wait_until_it_is_lifted)
{
	uint32_t limits[RING_STREAMS];

	write_many(8, RING_ALLOC);
	memcpy(limits, scene.orders, sizeof(limits));
	write_many(8, RING_FREE);
	drain_limit(scene.drain, limits);
	assert_false(drain_is_at_limit(scene.drain));
	while (drain_now())
		;
	assert_true(drain_is_at_limit(scene.drain));
	assert_int_equal(scene.told_count, 100);
	drain_limit(scene.drain, NULL);
	while (drain_now())
		;
	assert_int_equal(scene.told_count, 200);
	assert_int_equal(drain_damaged(scene.drain), 0);
	assert_int_equal(scene.lost, 0);
}

TEST(blocks_that_no_heap_has_end)
{
	bool is_freed;

	write_many(8, RING_ALLOC);
	while (drain_now())
		;
	assert_int_equal(
		replay_filter_blocks(scene.replay, is_even_sixteenth, NULL, true, &is_freed), 50);
	assert_true(is_freed);
	assert_int_equal(scene.told_count, 150);
	for (size_t i = 100; i < 150; i++) {
		assert_true(scene.allocations[i].is_free);
		assert_int_equal(scene.allocations[i].freed_by, RECORD_NO_STACK);
		assert_int_equal(scene.allocations[scene.allocations[i].alloc].addr / 16 % 2, 1);
	}
	assert_int_equal(
		replay_filter_blocks(scene.replay, is_even_sixteenth, NULL, true, &is_freed), 0);
}

static bool is_none(const void *ctx, uint64_t addr)
{
	(void)ctx;
	(void)addr;
	return false;
}

TEST(walk_that_lacks_many_blocks_is_not_believed_unless_sure)
{
	bool is_freed;

	write_many(8, RING_ALLOC);
	while (drain_now())
		;
	assert_int_equal(replay_filter_blocks(scene.replay, is_none, NULL, false, &is_freed), 100);
	assert_false(is_freed);
	assert_int_equal(scene.told_count, 100);
	assert_int_equal(
		replay_filter_blocks(scene.replay, is_even_sixteenth, NULL, false, &is_freed), 50);
	assert_true(is_freed);
	assert_int_equal(scene.told_count, 150);
}
