/* The rings of a recording contain the events of the tracer's tables. A reader passes an event when
 * it is the next event of its stream. So the reader obtains all changes of the tables in order. */
#include "tests/unit/t.h"

#include <pthread.h>

#include "tests/unit/fake_memory.h"

#include "snapshot/tracer/rings.h"
#include "snapshot/tracer/tables.h"

#define RINGS_MAX 16u
#define WORKERS 8u

/* ---------------------------------------------------------------- reader */

static struct {
	struct ring_area *rings;
	uint32_t ring_count, events_log2;
	uint32_t tails[RINGS_MAX], threads[RINGS_MAX];
	uint64_t times[RINGS_MAX];
	uint32_t next[RING_STREAMS];
	uint64_t passed;
	void (*see)(const struct ring_event *event, uint32_t thread);
} reader;

static void reader_begin(uint32_t ring_count, uint32_t events_log2, uint32_t flags)
{
	uint64_t bytes = (ring_area_bytes(ring_count, events_log2) + 63) & ~(uint64_t)63;

	memset(&reader, 0, sizeof(reader));
	reader.ring_count = ring_count;
	reader.events_log2 = events_log2;
	reader.rings = aligned_alloc(64, bytes);
	assert_non_null(reader.rings);
	memset(reader.rings, 0, bytes);
	ring_area_init(reader.rings, ring_count, events_log2, flags);
	area.rings = (uintptr_t)reader.rings;
}

static void reader_end(void)
{
	area.rings = 0;
	free(reader.rings);
	reader.rings = NULL;
}

/* Passes an event if it is the next event of its stream. */
static bool pass(uint32_t ring, const struct ring_event *event)
{
	uint64_t time = ring_event_time(event, ring_time());

	assert_in_range(event->type, RING_NONE + 1, RING_TYPES - 1);
	assert_true(ring == RING_SHARED || time >= reader.times[ring]);
	if (event->type == RING_THREAD) {
		reader.threads[ring] = event->low;
		return true;
	}
	assert_in_range(event->stream, 0, RING_STREAMS - 1);
	assert_true((int32_t)(event->order - reader.next[event->stream]) >= 0);
	if (event->order != reader.next[event->stream])
		return false;
	reader.times[ring] = time;
	reader.next[event->stream]++;
	reader.passed++;
	if (reader.see)
		reader.see(event, reader.threads[ring]);
	return true;
}

/* Reads each ring once; returns true if any event was passed. */
static bool read_once(void)
{
	bool any = false;

	for (uint32_t i = 0; i < reader.ring_count; i++) {
		const struct ring_event *events =
			ring_events(reader.rings, reader.ring_count, reader.events_log2, i);
		uint32_t ready = ring_ready(&reader.rings->rings[i], reader.tails[i]);
		uint32_t mask = (1u << reader.events_log2) - 1;

		assert_true(ready <= mask + 1);
		for (; ready && pass(i, &events[reader.tails[i] & mask]); ready--) {
			reader.tails[i]++;
			any = true;
		}
		ring_consume(&reader.rings->rings[i], reader.tails[i]);
	}
	return any;
}

/* Reads all events. Once the producers have stopped, no gaps may remain. */
static void read_all(void)
{
	while (read_once())
		continue;
	for (uint32_t i = 0; i < reader.ring_count; i++)
		assert_int_equal(ring_ready(&reader.rings->rings[i], reader.tails[i]), 0);
}

static uint64_t total_waits(void)
{
	uint64_t waits = 0;

	for (uint32_t i = 0; i < reader.ring_count; i++)
		waits += __atomic_load_n(&reader.rings->rings[i].waits, __ATOMIC_RELAXED);
	return waits;
}

static uint64_t total_dropped(void)
{
	uint64_t dropped = reader.rings->dropped;

	for (uint32_t i = 0; i < reader.ring_count; i++)
		dropped += reader.rings->rings[i].dropped;
	return dropped;
}

#define ADDRS 48u
#define ADDR_STEP 0x8010ull /* spreads the addresses over many shards */

static uint64_t addr_of(uint32_t slot)
{
	return 0x7f0000000000 + slot * ADDR_STEP;
}

static uint32_t slot_of(const struct ring_event *event)
{
	uint64_t slot = (ring_event_addr(event) - addr_of(0)) / ADDR_STEP;

	assert_true(slot < ADDRS);
	return (uint32_t)slot;
}

static struct tracer_block block_of(uint32_t slot, uint32_t stack, uint64_t bytes)
{
	return tracer_block_make(addr_of(slot), 0, stack, bytes);
}

static bool is_same(const struct tracer_block *one, const struct tracer_block *other)
{
	return one->key == other->key && one->what == other->what;
}

static void put(uint32_t slot, uint32_t stack)
{
	struct tracer_block block = block_of(slot, stack, 8);

	blocktable_add(&area, &block);
}

static int set_up_rings(void **state)
{
	set_up(state);
	/* If processors are few, a thread may be suspended for a long time. */
	memory.waits_max = UINT32_MAX;
	fake_hsnap_ended = false;
	return 0;
}

static int tear_down_rings(void **state)
{
	if (reader.rings)
		reader_end();
	return tear_down(state);
}

/* Starts workers, reads until all of them have ended, then reads the rest. */
static void run_workers(void *(*work)(void *ctx), uint64_t expected_min)
{
	static uint64_t seeds[WORKERS];
	pthread_t threads[WORKERS];

	for (unsigned i = 0; i < WORKERS; i++) {
		seeds[i] = 7919 * (i + 1);
		assert_int_equal(pthread_create(&threads[i], NULL, work, &seeds[i]), 0);
	}
	for (unsigned i = 0; i < WORKERS; i++) {
		while (pthread_tryjoin_np(threads[i], NULL)) {
			if (!read_once())
				sched_yield();
		}
	}
	read_all();
	assert_true(reader.passed >= expected_min);
	assert_int_equal(total_dropped(), 0);
}

/* ---------------------------------------------------------------- threads that pass blocks on */

#define OPS 40000u

enum slot_state {
	SLOT_FREE,
	SLOT_BUSY,
	SLOT_LIVE,
};

/* A heap with a few addresses, which many threads share. Each address has one owner at a time, as
 * in real memory. */
static struct {
	uint32_t state, version;
} slots[ADDRS];
static unsigned wrong; /* number of errors that workers found */
static struct tracer_block seen[ADDRS]; /* live blocks as the reader sees them; key 0: not live */

static bool own(uint32_t slot, uint32_t state)
{
	return __atomic_compare_exchange_n(
		&slots[slot].state, &state, SLOT_BUSY, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void disown(uint32_t slot, uint32_t state)
{
	__atomic_store_n(&slots[slot].state, state, __ATOMIC_RELEASE);
}

/* Makes a block. Its stack is the version at this address, and its size is the thread that
 * allocated it. */
static void *allocate_and_free(void *seed)
{
	struct tracer_block taken;

	for (unsigned i = 0; i < OPS;) {
		uint32_t slot = fake_dice(seed) % ADDRS;

		if (own(slot, SLOT_FREE)) {
			struct tracer_block block =
				block_of(slot, ++slots[slot].version, memory_thread_id());

			blocktable_add(&area, &block);
			disown(slot, SLOT_LIVE);
			i++;
		} else if (own(slot, SLOT_LIVE)) {
			if (!blocktable_remove(&area, addr_of(slot), &taken) ||
				tracer_block_stack(&taken) != slots[slot].version)
				__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
			disown(slot, SLOT_FREE);
			i++;
		}
	}
	return NULL;
}

static uint32_t versions[ADDRS]; /* versions that the reader has seen */

static void see_turns(const struct ring_event *event, uint32_t thread)
{
	uint32_t slot = slot_of(event);

	if (event->type == RING_ALLOC) {
		assert_int_equal(seen[slot].key, 0);
		assert_int_equal(tracer_block_stack(&event->block), ++versions[slot]);
		assert_int_equal(tracer_block_bytes(&event->block), thread);
		seen[slot] = event->block;
	} else {
		assert_int_equal(event->type, RING_FREE);
		assert_true(thread > 0 && is_same(&seen[slot], &event->block));
		seen[slot].key = 0;
	}
}

static void check_turns(uint32_t ring_count)
{
	reader_begin(ring_count, RING_LOG2_MIN, 0);
	memset(slots, 0, sizeof(slots));
	memset(seen, 0, sizeof(seen));
	memset(versions, 0, sizeof(versions));
	wrong = 0;
	reader.see = see_turns;
	run_workers(allocate_and_free, WORKERS * OPS);
	assert_int_equal(wrong, 0);
	assert_int_equal(reader.passed, WORKERS * OPS);
	for (unsigned i = 0; i < ADDRS; i++) {
		assert_int_equal(versions[i], slots[i].version);
		assert_int_equal(seen[i].key != 0, slots[i].state == SLOT_LIVE);
	}
}

#undef TEST_AROUND
#define TEST_AROUND set_up_rings, tear_down_rings

TEST(of_each_address_allocs_and_frees_take_turns_whichever_threads_they_are_by)
{
	check_turns(1 + WORKERS);
}

TEST(threads_without_ring_of_their_own_share_one)
{
	check_turns(1 + 2);
	assert_true(reader.tails[RING_SHARED] > 0);
}

TEST(all_threads_may_share_one_ring)
{
	check_turns(1);
}

/* ---------------------------------------------------------------- threads with own blocks */

static struct tracer_block replayed[ADDRS];

static void see_and_replay(const struct ring_event *event, uint32_t thread)
{
	(void)thread;
	if (event->type == RING_HEAP_GONE) {
		for (unsigned i = 0; i < ADDRS; i++) {
			uint64_t tag = replayed[i].key >> TRACER_ADDR_BITS;

			/* Other streams get their own event. */
			if (tag == ring_event_heap_tag(event))
				replayed[i].key = 0;
		}
		return;
	}
	assert_true(event->type == RING_ALLOC || event->type == RING_FREE);
	if (event->type == RING_ALLOC)
		assert_int_equal(ring_event_heap(event), tracer_block_stack(&event->block) << 16);
	replayed[slot_of(event)] =
		event->type == RING_ALLOC ? event->block : (struct tracer_block){0};
}

/* Puts and takes random addresses as blocks of the thread's own heap. The heap's handle identifies
 * the thread's events. */
static void *write_and_read_blindly(void *seed)
{
	uint64_t heap = (uint64_t)memory_thread_id() << 16;
	uint32_t tag = heapindex_new(&area, heap);
	struct tracer_block block;

	for (unsigned i = 0; i < OPS; i++) {
		uint32_t slot = fake_dice(seed) % ADDRS;

		if (fake_dice(seed) % 500 == 0) {
			if (blocktable_forget_heap(&area, tag))
				blocktable_bury_heap(&area, tag);
			tag = heapindex_new(&area, heap);
		} else if (fake_dice(seed) % 2) {
			block = tracer_block_make(addr_of(slot), tag, (uint32_t)(heap >> 16), i);
			blocktable_add(&area, &block);
		} else {
			blocktable_remove(&area, addr_of(slot), &block);
		}
	}
	return NULL;
}

TEST(what_is_replayed_is_what_table_holds)
{
	uint32_t live = 0;

	reader_begin(1 + WORKERS, 10, 0);
	memset(replayed, 0, sizeof(replayed));
	reader.see = see_and_replay;
	run_workers(write_and_read_blindly, WORKERS * OPS / 4);
	area.rings = 0;
	for (unsigned i = 0; i < ADDRS; i++) {
		struct tracer_block block = {0};
		bool is_live = blocktable_remove(&area, addr_of(i), &block);

		assert_int_equal(is_live, replayed[i].key != 0);
		assert_true(!is_live || is_same(&block, &replayed[i]));
		live += is_live;
	}
	assert_true(live > 0);
}

/* ---------------------------------------------------------------- full rings */

static unsigned last_stack;

static void see_stacks_in_order(const struct ring_event *event, uint32_t thread)
{
	(void)thread;
	assert_int_equal(tracer_block_stack(&event->block), ++last_stack);
}

/* Puts one block `count` times, with stacks 1, 2 and so on. */
static void *write_many(void *count)
{
	for (uint32_t i = 1; i <= *(uint32_t *)count; i++)
		put(0, i);
	return NULL;
}

TEST(thread_whose_ring_is_full_waits_and_loses_nothing)
{
	uint32_t count = 1000, room = 1u << RING_LOG2_MIN;
	pthread_t thread;

	reader_begin(2, RING_LOG2_MIN, 0);
	reader.see = see_stacks_in_order;
	last_stack = 0;
	assert_int_equal(pthread_create(&thread, NULL, write_many, &count), 0);
	while (!total_waits())
		sched_yield();
	/* The thread waits. One event may need two places, so one place may be free. */
	assert_in_range(ring_ready(&reader.rings->rings[1], 0), room - 1, room);
	while (pthread_tryjoin_np(thread, NULL))
		read_once();
	read_all();
	assert_int_equal(last_stack, count);
	assert_true(total_waits() >= 1);
	assert_int_equal(total_dropped(), 0);
}

static void see_any(const struct ring_event *event, uint32_t thread)
{
	(void)thread;
	last_stack = tracer_block_stack(&event->block);
}

TEST(where_events_may_be_dropped_lost_ones_are_counted_and_have_no_number)
{
	uint32_t count = 1000;

	reader_begin(2, RING_LOG2_MIN, RING_DROP);
	reader.see = see_any;
	write_many(&count);
	assert_int_equal(total_waits(), 0);
	read_all();
	assert_in_range(reader.passed, 1, 1u << RING_LOG2_MIN);
	assert_int_equal(reader.passed + total_dropped(), count);
	put(0, 5000);
	read_all(); /* the stuck event's number is the next one */
	assert_int_equal(last_stack, 5000);
	assert_int_equal(reader.passed + total_dropped(), count + 1);
	assert_int_equal(area.dropped_blocks, 0); /* the table has all blocks */
}

TEST(when_hsnap_ends_nobody_waits_and_nothing_is_recorded_any_more)
{
	uint32_t count = 1000;
	struct tracer_block block;

	reader_begin(2, RING_LOG2_MIN, 0);
	fake_hsnap_ended = true;
	write_many(&count);
	assert_int_equal(area.rings, 0);
	assert_int_equal(total_waits(), 1);
	assert_true(blocktable_remove(&area, addr_of(0), &block));
	assert_int_equal(tracer_block_stack(&block), count);
	assert_true(ring_ready(&reader.rings->rings[1], 0) <= 1u << RING_LOG2_MIN);
}

/* ---------------------------------------------------------------- ended threads */

static void *write_and_end(void *stack)
{
	put(*(uint32_t *)stack % ADDRS, *(uint32_t *)stack);
	return NULL;
}

static uint32_t by_thread[ADDRS]; /* the thread that put each block, as the reader sees it */

static void see_threads(const struct ring_event *event, uint32_t thread)
{
	by_thread[slot_of(event)] = thread;
}

TEST(ring_that_is_given_back_serves_another_thread)
{
	uint32_t first;

	reader_begin(2, RING_LOG2_MIN, 0);
	reader.see = see_threads;
	first = fake_thread_count + 1;
	for (uint32_t i = 0; i < 3; i++) {
		pthread_t thread;

		assert_int_equal(reader.rings->rings[1].owner, 0);
		assert_int_equal(pthread_create(&thread, NULL, write_and_end, &i), 0);
		pthread_join(thread, NULL);
		assert_int_equal(reader.rings->rings[1].owner, first + i);
		/* The ring's events have not been read yet. */
		ring_release(&reader.rings->rings[1]);
	}
	read_all();
	assert_int_equal(reader.passed, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(by_thread[i], first + i);
	assert_int_equal(reader.tails[RING_SHARED], 0);
}

TEST(ring_of_earlier_recording_is_not_taken_for_one_s_own)
{
	for (unsigned i = 0; i < 3; i++) {
		reader_begin(2 + i, RING_LOG2_MIN, 0);
		if (i == 1)
			reader.rings->rings[1].owner = 77777; /* another thread owns the ring */
		put(i, 1);
		read_all();
		assert_int_equal(reader.passed, 1);
		assert_int_equal(reader.tails[RING_SHARED], 0);
		assert_int_equal(reader.tails[i == 1 ? 2 : 1], 2);
		reader_end();
		for (unsigned k = 0; k < TRACER_SHARDS; k++)
			area.shards[k].order = 0;
	}
}

/* The thread ended inside the table's lock. It held the lock when it got its number, so no other
 * thread has a later number. */
TEST(stream_of_thread_that_was_ended_inside_ends_and_others_go_on)
{
	uint32_t stuck = 0, others = 0;
	uint64_t before;

	reader_begin(2, 12, 0);
	memory.waits_max = 1000;
	put(0, 1);
	read_all();
	for (unsigned i = 0; i < TRACER_SHARDS; i++) {
		if (area.shards[i].count)
			stuck = i;
	}
	assert_int_equal(area.shards[stuck].count, 1);
	area.shards[stuck].lock = 1;
	area.shards[stuck].order++; /* this number's event never arrives */
	before = reader.passed;
	for (unsigned i = 1; i < ADDRS; i++)
		put(i, 1);
	put(0, 2);
	assert_int_equal(area.shards[stuck].broken, 1);
	for (unsigned i = 0; i < TRACER_SHARDS; i++)
		others += i == stuck ? 0 : area.shards[i].count;
	assert_true(others > 0);
	read_all();
	assert_int_equal(reader.passed - before, others);
	assert_int_equal(area.dropped_blocks + others, ADDRS);
}

/* ---------------------------------------------------------------- contents of events */

static struct ring_event last;
static unsigned event_count;

static void see_last(const struct ring_event *event, uint32_t thread)
{
	(void)thread;
	last = *event;
	event_count++;
}

static unsigned new_events(void)
{
	event_count = 0;
	read_all();
	return event_count;
}

TEST(free_of_block_older_than_tracer_is_recorded_by_address)
{
	struct tracer_block block;

	reader_begin(2, RING_LOG2_MIN, 0);
	reader.see = see_last;
	assert_false(blocktable_remove(&area, addr_of(1), &block));
	assert_int_equal(new_events(), 0);
	blocktable_free_old(&area, addr_of(1));
	assert_int_equal(new_events(), 1);
	assert_int_equal(last.type, RING_FREE_OLD);
	assert_int_equal(ring_event_addr(&last), addr_of(1));
	put(1, 9); /* another thread already has that memory */
	assert_int_equal(new_events(), 1);
	blocktable_free_old(&area, addr_of(1));
	assert_int_equal(new_events(), 0);
}

/* Simulates hsnap starting a recording while a thread waits for a shard. */
static void begin_meanwhile(void)
{
	area.rings = (uintptr_t)reader.rings;
	for (unsigned i = 0; i < TRACER_SHARDS; i++)
		area.shards[i].lock = 0;
}

static void end_meanwhile(void)
{
	begin_meanwhile();
	area.rings = 0;
}

static void write_meanwhile(unsigned addr, void (*meanwhile)(void))
{
	for (unsigned i = 0; i < TRACER_SHARDS; i++)
		area.shards[i].lock = 1;
	memory.waits_max = 2;
	memory.on_wait = meanwhile;
	put(addr, 9);
	memory.on_wait = NULL;
}

TEST(recording_that_begins_or_ends_has_what_is_done_behind_that_and_no_more)
{
	struct tracer_block block;

	reader_begin(2, RING_LOG2_MIN, 0);
	reader.see = see_last;
	area.rings = 0;
	write_meanwhile(1, begin_meanwhile);
	assert_int_equal(new_events(), 1);
	assert_int_equal(last.type, RING_ALLOC);
	write_meanwhile(2, end_meanwhile);
	assert_int_equal(new_events(), 0);
	assert_true(blocktable_remove(&area, addr_of(1), &block));
	assert_true(blocktable_remove(&area, addr_of(2), &block));
	assert_int_equal(new_events(), 0);
}

TEST(what_table_has_no_memory_for_is_no_event)
{
	reader_begin(2, RING_LOG2_MIN, 0);
	reader.see = see_last;
	memory.commits_left = 0;
	put(1, 9);
	assert_int_equal(new_events(), 0);
	assert_int_equal(area.dropped_blocks, 1);
}

/* ---------------------------------------------------------------- virtual memory */

#define PAGES 64u

struct replayed_page {
	uint32_t kind, stack, reserve_stack;
};

static struct replayed_page replayed_pages[PAGES];
static uint32_t freeing; /* stack that frees; 0: no free */
static const uint64_t first_page = 0x7ff600000000;

static uint64_t page_addr(uint64_t page)
{
	return first_page + page * TRACER_PAGE;
}

static struct replayed_page page_after(
	const struct replayed_page *page, const struct ring_event *event)
{
	uint32_t kind = event->low, stack = tracer_block_stack(&event->block);
	struct replayed_page added = {kind, stack, kind == RANGE_COMMITTED ? stack : 0};

	switch (event->type) {
	case RING_RANGE_ADD: return added;
	case RING_RANGE_FILL: return page->kind ? *page : added;
	case RING_RANGE_USE:
		return page->kind == RANGE_RESERVED ?
			       (struct replayed_page){kind, stack, page->stack} :
			       *page;
	case RING_RANGE_GIVE_UP:
		assert_int_equal(stack, freeing);
		return page->kind == kind ?
			       (struct replayed_page){RANGE_RESERVED, page->reserve_stack, 0} :
			       *page;
	default:
		assert_int_equal(event->type, RING_RANGE_TAKE);
		assert_int_equal(stack, freeing);
		return (struct replayed_page){0};
	}
}

static void see_ranges(const struct ring_event *event, uint32_t thread)
{
	uint64_t from = (ring_event_addr(event) - first_page) / TRACER_PAGE;
	uint64_t count = ring_event_range_bytes(event) / TRACER_PAGE;

	(void)thread;
	assert_int_equal(event->stream, RING_RANGES);
	assert_true(from < PAGES && count && count <= PAGES - from);
	for (uint64_t i = from; i < from + count; i++)
		replayed_pages[i] = page_after(&replayed_pages[i], event);
}

static bool are_pages_as_listed(void)
{
	const struct tracer_range *nodes =
		(const struct tracer_range *)(uintptr_t)area.ranges.nodes;
	struct replayed_page listed[PAGES] = {0};

	for (uint32_t i = 0; i < area.ranges.node_count; i++) {
		if (!nodes[i].kind || nodes[i].kind & RANGE_TAKEN)
			continue;
		for (uint64_t addr = nodes[i].start; addr < nodes[i].end; addr += TRACER_PAGE)
			listed[(addr - first_page) / TRACER_PAGE] = (struct replayed_page){
				nodes[i].kind, nodes[i].stack, nodes[i].reserve_stack};
	}
	return !memcmp(listed, replayed_pages, sizeof(listed));
}

static void fill_allocation(uint64_t from, uint64_t to, uint32_t stack)
{
	struct tracer_range range = {
		.start = from, .end = to, .kind = RANGE_RESERVED, .stack = stack};
	struct ranges_extent extent;

	if (!ranges_find(&area, from, &extent))
		return;
	range.allocation = extent.base;
	if (range.end > extent.end)
		range.end = extent.end;
	ranges_fill(&area, &range);
}

static void change_ranges(uint64_t *seed)
{
	uint64_t from = fake_dice(seed) % PAGES, to = from + 1 + fake_dice(seed) % (PAGES - from);
	uint32_t stack = 1 + (uint32_t)(fake_dice(seed) % 4);
	uint32_t kind = RANGE_RESERVED + (uint32_t)(fake_dice(seed) % 3);
	struct tracer_range range = {.start = page_addr(from),
		.end = page_addr(to),
		.allocation = page_addr(from),
		.kind = kind,
		.stack = stack,
		.reserve_stack = kind == RANGE_COMMITTED ? stack : 0};
	struct ranges_taken taken;

	unsigned what = fake_dice(seed) % 8;

	freeing = what >= 4 && what <= 6 ? stack : 0;
	switch (what) {
	case 0: ranges_add(&area, &range); break;
	case 1: fill_allocation(page_addr(from), page_addr(to), stack); break;
	case 2:
	case 3: ranges_use(&area, range.start, range.end, RANGE_COMMITTED, stack); break;
	case 4: ranges_decommit(&area, range.start, range.end, RANGE_COMMITTED, stack); break;
	case 5:
		if (ranges_detach(&area, range.start, range.end, stack, &taken))
			ranges_drop(&area, &taken);
		break;
	case 6: /* the system refuses */
		if (ranges_detach(&area, range.start, range.end, stack, &taken))
			ranges_restore(&area, &taken);
		break;
	default: ranges_forget(&area, range.start, range.end); break;
	}
}

TEST(virtual_memory_replayed_is_what_table_holds)
{
	uint64_t seed = 4711;

	reader_begin(2, RING_LOG2_MIN, 0);
	reader.see = see_ranges;
	memset(replayed_pages, 0, sizeof(replayed_pages));
	for (unsigned i = 0; i < 50000; i++) {
		change_ranges(&seed);
		read_all();
		assert_true(are_pages_as_listed());
	}
	assert_true(reader.passed > 20000);
}
