/*
 * The table of live blocks, and the tags of heaps. heapindex_*() map the handle of a heap to an
 * index and a generation, without a lock. blocktable_*() implement a hash table of blocks that
 * consists of shards. Each shard has its own lock, and grows and shrinks in place. Changes are
 * recorded in the rings while the shard's lock is held.
 */
#include <stdbool.h>
#include <stddef.h>

#include "snapshot/tracer/tables.h"
#include "snapshot/tracer/tracer_memory.h"

#define COUNT (1u << TRACER_HEAPS_LOG2)
#define PROBES 128

static uint64_t *heap_at(struct tracer_area *area, uint32_t at)
{
	return &area->heaps[at & (COUNT - 1)];
}

static uint32_t tag(uint32_t at, uint64_t heap)
{
	return (at & (COUNT - 1)) | (uint32_t)(heap % TRACER_HEAP_GENERATIONS) << TRACER_HEAPS_LOG2;
}

static bool is_dead(uint64_t entry)
{
	return (entry & TRACER_HEAP_LEAVING) == TRACER_HEAP_DEAD;
}

/* Begins a new generation in `*entry`, for the heap `heap`. `found` is the entry's expected
 * contents. Does nothing if another thread has changed the entry. */
static void begin(struct tracer_area *area, uint64_t *entry, uint64_t found, uint64_t heap)
{
	uint64_t next = (found + 1) % TRACER_HEAP_GENERATIONS;
	bool is_buried = is_dead(found);

	if (!__atomic_compare_exchange_n(entry, &found, heap | (next ? next : TRACER_HEAP_CLEANING),
		    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&area->heap_stacks[entry - area->heaps], 0, __ATOMIC_RELAXED);
	if (!is_buried)
		__atomic_fetch_add(&area->heaps_destroyed, 1, __ATOMIC_RELEASE);
	if (next)
		return;
	/* The generation number starts again at 0. Remove the blocks of destroyed heaps first:
	 * blocks of an earlier generation 0 would otherwise count as live again. */
	blocktable_clean(area);
	__atomic_store_n(entry, heap, __ATOMIC_RELEASE);
}

/* Finds the entry of a live or destroyed heap. If the heap has no entry, finds one that can be used
 * for the heap. Returns NULL if all probed entries are in use. */
static uint64_t *find_heap(struct tracer_area *area, uint64_t heap, uint32_t *at)
{
	uint32_t first = heapindex_home(heap), dead = 0;

	for (uint32_t i = first; i < first + PROBES; i++) {
		uint64_t found = __atomic_load_n(heap_at(area, i), __ATOMIC_RELAXED);

		if (!(i & (COUNT - 1))) /* index 0 stands for an unknown heap */
			continue;
		*at = i;
		if (!found || (found & ~(uint64_t)TRACER_HEAP_STATE) == heap)
			return heap_at(area, i);
		if (!dead && is_dead(found))
			dead = i;
	}
	*at = dead;
	return dead ? heap_at(area, dead) : NULL;
}

static uint32_t index_slowly(struct tracer_area *area, uint64_t heap, bool is_new)
{
	for (unsigned tries = 0; tries < PROBES; tries++) {
		uint32_t at;
		uint64_t *entry = find_heap(area, heap, &at);
		uint64_t found = entry ? __atomic_load_n(entry, __ATOMIC_RELAXED) : 0;
		uint64_t nothing = 0, state = found & TRACER_HEAP_LEAVING;
		bool is_ours = (found & ~(uint64_t)TRACER_HEAP_STATE) == heap;

		if (!entry || state == TRACER_HEAP_CLEANING)
			return 0;
		if (!found)
			__atomic_compare_exchange_n(
				entry, &nothing, heap, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
		else if (is_dead(found) || (is_ours && is_new && state == TRACER_HEAP_LEAVING))
			begin(area, entry, found, heap);
		else if (is_ours) /* otherwise another thread took the entry */
			return tag(at, found);
	}
	return 0;
}

static bool can_be_heap(uint64_t heap)
{
	return heap && !(heap & TRACER_HEAP_STATE);
}

uint32_t heapindex_of(struct tracer_area *area, uint64_t heap)
{
	uint32_t at = heapindex_home(heap);
	uint64_t found = __atomic_load_n(&area->heaps[at], __ATOMIC_RELAXED);

	if (found - heap < TRACER_HEAP_GENERATIONS && at)
		return tag(at, found);
	return can_be_heap(heap) ? index_slowly(area, heap, false) : 0;
}

uint32_t heapindex_new(struct tracer_area *area, uint64_t heap)
{
	return can_be_heap(heap) ? index_slowly(area, heap, true) : 0;
}

#define SCANNED 64 /* average number of entries that a cleaning pass checks per use of the shard */

static struct tracer_shard *shard_of(struct tracer_area *area, uint64_t addr)
{
	return &area->shards[blocktable_shard(addr)];
}

static struct tracer_block *entries(const struct tracer_shard *shard)
{
	return (struct tracer_block *)(uintptr_t)shard->table;
}

#define PAGE_ENTRIES ((uint32_t)(TRACER_PAGE / sizeof(struct tracer_block)))

static uint64_t entry_count(const struct tracer_shard *shard)
{
	return (uint64_t)shard->pages * PAGE_ENTRIES;
}

static uint64_t home_count(const struct tracer_shard *shard)
{
	return (uint64_t)shard->lines * BLOCKTABLE_LINE;
}

static void count_change(struct tracer_area *area, const struct tracer_shard *shard, size_t count)
{
	uint32_t *changes = &area->changes[shard - area->shards][count];

	__atomic_store_n(changes, *changes + 1, __ATOMIC_RELEASE);
}

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Writes an entry. At any instant, a reader sees either the whole block or no block. */
static ALWAYS_INLINE void entry_set(struct tracer_area *area, const struct tracer_shard *shard,
	struct tracer_block *entry, const struct tracer_block *block)
{
	__atomic_store_n(&entry->key, 0, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	entry->what = block->what;
	__atomic_store_n(&entry->key, block->key, __ATOMIC_RELEASE);
	count_change(area, shard, tracer_count_of((uintptr_t)entry - (uintptr_t)entries(shard)));
}

static ALWAYS_INLINE struct tracer_block *find(const struct tracer_shard *shard, uint64_t addr)
{
	struct tracer_block *entry = &entries(shard)[blocktable_home(addr, shard->lines)];

	while (entry->key && tracer_block_addr(entry) != addr)
		entry++;
	return entry;
}

/* Returns true if the block's heap no longer exists. Returns false if the heap is being destroyed,
 * because the system may still refuse that. */
static bool is_gone(const struct tracer_area *area, const struct tracer_block *block)
{
	uint32_t index = tracer_block_heap(block);
	uint64_t state = __atomic_load_n(&area->heaps[index], __ATOMIC_RELAXED) & TRACER_HEAP_STATE;
	uint64_t generation = block->key >> (TRACER_ADDR_BITS + TRACER_HEAPS_LOG2);

	return index && state != generation && state != (generation | TRACER_HEAP_LEAVING);
}

/* Extends a shard's table to `pages` pages. The new entries are free. */
static bool extend(struct tracer_area *area, struct tracer_shard *shard, uint32_t pages)
{
	uint64_t at = blocktable_at(area, (unsigned)(shard - area->shards));
	uint64_t from = shard->pages * TRACER_PAGE, to = pages * TRACER_PAGE;

	if (to > area->shard_bytes ||
		!tables_commit(area, (void *)(uintptr_t)(at + from), to - from))
		return false;
	shard->table = at;
	__atomic_store_n(&shard->pages, pages, __ATOMIC_RELEASE);
	return true;
}

/* Moves the contents of an entry to a free entry. At any instant, a reader sees the block in the
 * new entry, in the old entry, or in both. */
static void move(struct tracer_block *to, struct tracer_block *from)
{
	to->what = from->what;
	__atomic_store_n(&to->key, from->key, __ATOMIC_RELEASE);
	__atomic_store_n(&from->key, 0, __ATOMIC_RELEASE);
}

/*
 * Prepares for a table of `lines` lines, in which homes lie further towards the end. Moves each
 * entry that lies before its new home to the first free entry at or after that home. Works from the
 * last entry to the first, so that there is room. Returns false if the table is still too small and
 * cannot be extended.
 */
static bool spread(struct tracer_area *area, struct tracer_shard *shard, uint32_t lines)
{
	struct tracer_block *table = entries(shard);

	for (uint64_t at = entry_count(shard); at--;) {
		uint64_t to = blocktable_home(tracer_block_addr(&table[at]), lines);

		if (!table[at].key || to <= at)
			continue;
		while (table[to].key)
			to++;
		if (to + 1 == entry_count(shard) && !extend(area, shard, shard->pages + 1))
			return false;
		move(&table[to], &table[at]);
	}
	return true;
}

/*
 * Moves each entry as close as possible to its home in a table of `lines` lines, starting with the
 * first entry. No entry may lie before its home. Removes blocks whose heap no longer exists.
 * Returns the end of the last entry.
 */
static uint64_t compact(struct tracer_area *area, struct tracer_shard *shard, uint32_t lines)
{
	struct tracer_block *table = entries(shard);
	uint64_t end = 0;

	shard->count = 0;
	for (uint64_t at = 0; at < entry_count(shard); at++) {
		uint64_t to = blocktable_home(tracer_block_addr(&table[at]), lines);

		if (!table[at].key)
			continue;
		if (is_gone(area, &table[at])) {
			__atomic_store_n(&table[at].key, 0, __ATOMIC_RELEASE);
			continue;
		}
		while (to < at && table[to].key)
			to++;
		if (to < at)
			move(&table[to], &table[at]);
		shard->count++;
		end = end > to ? end : to + 1;
	}
	shard->lines = lines;
	for (size_t i = 0; i < TRACER_COUNTS; i++)
		count_change(area, shard, i);
	return end;
}

#define FEW_PAGES 8

static bool grow(struct tracer_area *area, struct tracer_shard *shard)
{
	uint32_t pages = shard->pages, lines = shard->lines;

	pages += !pages ? 1 : pages < FEW_PAGES ? pages : pages / 4;
	if (!extend(area, shard, pages))
		return false;
	if (spread(area, shard, blocktable_lines(pages)))
		lines = blocktable_lines(pages);
	compact(area, shard, lines);
	return lines == blocktable_lines(pages);
}

/* Shrinks the table if few of its entries are in use. */
static void fit(struct tracer_area *area, struct tracer_shard *shard)
{
	uint32_t pages = shard->count / (PAGE_ENTRIES * 5 / 8) + 1, old = shard->pages;
	uint64_t end;

	if (shard->count >= home_count(shard) / 3 || pages >= old)
		return;
	end = compact(area, shard, blocktable_lines(pages));
	if (pages * PAGE_ENTRIES <= end)
		pages = (uint32_t)(end / PAGE_ENTRIES) + 1;
	if (pages == old)
		return;
	__atomic_store_n(&shard->pages, pages, __ATOMIC_RELEASE);
	tables_decommit(
		area, (char *)entries(shard) + pages * TRACER_PAGE, (old - pages) * TRACER_PAGE);
}

static uint32_t heaps_destroyed(const struct tracer_area *area)
{
	return (uint32_t)__atomic_load_n(&area->heaps_destroyed, __ATOMIC_ACQUIRE);
}

/* Closes the gap at `hole`: moves later entries up if their homes permit it. */
static void close_gap(
	struct tracer_area *area, const struct tracer_shard *shard, struct tracer_block *hole)
{
	const struct tracer_block *table = entries(shard);

	for (struct tracer_block *entry = hole + 1; entry->key; entry++) {
		if (table + blocktable_home(tracer_block_addr(entry), shard->lines) > hole)
			continue;
		entry_set(area, shard, hole, entry);
		hole = entry;
	}
	entry_set(area, shard, hole, &(struct tracer_block){0});
}

/* Removes the blocks of destroyed heaps. */
static __attribute__((noinline)) void clean(struct tracer_area *area, struct tracer_shard *shard)
{
	shard->cleaned = heaps_destroyed(area);
	shard->waited = 0;
	compact(area, shard, shard->lines);
}

/* Cleans a shard only after many uses, because a pass takes time proportional to the size of the
 * table. */
static ALWAYS_INLINE void clean_in_time(struct tracer_area *area, struct tracer_shard *shard)
{
	if (__builtin_expect(shard->cleaned == heaps_destroyed(area), 1) ||
		++shard->waited < SCANNED + entry_count(shard) / SCANNED)
		return;
	clean(area, shard);
	fit(area, shard);
}

/* Returns the block's entry, or a free entry. Grows the table if it has too few free entries.
 * Returns NULL if the table is too full and cannot grow. */
static struct tracer_block *place_for(
	struct tracer_area *area, struct tracer_shard *shard, uint64_t addr)
{
	struct tracer_block *entry = shard->table ? find(shard, addr) : NULL;

	if (!entry || (!entry->key && shard->count >= home_count(shard) / 5 * 4)) {
		if (entry && shard->cleaned != heaps_destroyed(area))
			clean(area, shard);
		/* If there is no memory to grow, use more of the table, up to seven eighths. In a
		 * fuller table, searches would take too long. */
		if (entry && shard->count < home_count(shard) / 8 * 5)
			fit(area, shard);
		else if (!grow(area, shard) && shard->count >= home_count(shard) / 8 * 7)
			return NULL;
		entry = find(shard, addr);
	}
	if (!entry->key && entry + 1 == entries(shard) + entry_count(shard) &&
		!extend(area, shard, shard->pages + 1))
		return NULL;
	return entry;
}

/* Records a change in a shard. The caller holds the shard's lock. */
static __attribute__((noinline)) void publish_event(struct tracer_area *area,
	struct tracer_shard *shard, struct ring *ring, enum ring_event_type type,
	struct tracer_block block)
{
	uint64_t heap = tracer_heap_handle(area, tracer_block_heap(&block));

	rings_publish(ring, &shard->order,
		&(struct ring_event){
			.block = block,
			.low = (uint32_t)heap,
			.high = (uint16_t)(heap >> 32),
			.type = (uint8_t)type,
			.stream = (uint8_t)(shard - area->shards),
		});
}

void blocktable_expect(const struct tracer_area *area, uint64_t addr)
{
	const struct tracer_shard *shard = &area->shards[blocktable_shard(addr)];
	uint32_t lines = __atomic_load_n(&shard->lines, __ATOMIC_RELAXED);

	if (lines)
		__builtin_prefetch(&entries(shard)[blocktable_home(addr, lines)], 1);
}

void blocktable_add(struct tracer_area *area, const struct tracer_block *block)
{
	struct tracer_shard *shard = shard_of(area, tracer_block_addr(block));
	struct tracer_block *entry = NULL;
	struct ring *ring;

	if (rings_lock(area, 1, &shard->lock, &shard->broken, &ring)) {
		clean_in_time(area, shard);
		entry = place_for(area, shard, tracer_block_addr(block));
		if (entry) {
			shard->count += !entry->key;
			entry_set(area, shard, entry, block);
		}
		if (__builtin_expect(ring && entry, 0))
			publish_event(area, shard, ring,
				memory_is_in_heap() ? RING_ALLOC_INSIDE : RING_ALLOC, *block);
		memory_unlock(&shard->lock);
	}
	rings_end(ring);
	if (!entry)
		__atomic_fetch_add(&area->dropped_blocks, 1, __ATOMIC_RELAXED);
}

/* Shrinks the table if few of its entries are in use. Checks this only after about one removal in
 * 64, because the pass may be in vain: the homes of many blocks may be near the end of the
 * table. */
static void shrink(struct tracer_area *area, struct tracer_shard *shard)
{
	if ((shard->count + 1) % 64 == 0)
		fit(area, shard);
}

/* Does the work of blocktable_remove(). The caller holds the shard's lock. */
static bool remove_block(struct tracer_area *area, struct tracer_shard *shard, uint64_t addr,
	struct tracer_block *block)
{
	bool is_live = false;

	clean_in_time(area, shard);
	if (shard->table) {
		struct tracer_block *entry = find(shard, addr);

		if (entry->key) {
			is_live = tracer_block_is_live(area, entry);
			if (is_live)
				*block = *entry;
			close_gap(area, shard, entry);
			shard->count--;
			shrink(area, shard);
		}
	}
	return is_live;
}

bool blocktable_remove(struct tracer_area *area, uint64_t addr, struct tracer_block *block)
{
	struct tracer_shard *shard = shard_of(area, addr);
	struct ring *ring;
	bool is_live = false;

	if (!__atomic_load_n(&shard->table, __ATOMIC_ACQUIRE))
		return false;
	if (rings_lock(area, 1, &shard->lock, &shard->broken, &ring)) {
		is_live = remove_block(area, shard, addr, block);
		if (__builtin_expect(ring && is_live, 0))
			publish_event(area, shard, ring, RING_FREE, *block);
		memory_unlock(&shard->lock);
	}
	rings_end(ring);
	return is_live;
}

void blocktable_free_old(struct tracer_area *area, uint64_t addr)
{
	struct tracer_shard *shard = shard_of(area, addr);
	struct ring *ring;

	if (rings_lock(area, 1, &shard->lock, &shard->broken, &ring)) {
		if (ring && (!shard->table || !find(shard, addr)->key))
			publish_event(area, shard, ring, RING_FREE_OLD,
				(struct tracer_block){.key = addr});
		memory_unlock(&shard->lock);
	}
	rings_end(ring);
}

/* Changes a heap's state from `from` to `to`. Returns false unless the heap has the tag's
 * generation and is in state `from`. */
static bool change_heap(struct tracer_area *area, uint32_t tag, uint64_t from, uint64_t to)
{
	uint64_t *heap = &area->heaps[tag & ((1u << TRACER_HEAPS_LOG2) - 1)];
	uint64_t generation = tag >> TRACER_HEAPS_LOG2;
	uint64_t found = __atomic_load_n(heap, __ATOMIC_RELAXED);

	return tag && (found & TRACER_HEAP_STATE) == (from | generation) &&
	       __atomic_compare_exchange_n(
		       heap, &found, found - from + to, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

bool blocktable_forget_heap(struct tracer_area *area, uint32_t heap)
{
	return change_heap(area, heap, 0, TRACER_HEAP_LEAVING);
}

void blocktable_restore_heap(struct tracer_area *area, uint32_t heap)
{
	change_heap(area, heap, TRACER_HEAP_LEAVING, 0);
}

/* Records the end of a heap in each stream. Must be called soon: after TRACER_HEAP_GENERATIONS more
 * generations, the tag represents another heap. */
static void publish_heap_end(
	struct tracer_area *area, uint64_t rings, struct ring *ring, uint32_t heap)
{
	const struct tracer_block any = {.key = (uint64_t)heap << TRACER_ADDR_BITS};

	for (unsigned i = 0; i < TRACER_SHARDS; i++) {
		struct tracer_shard *shard = &area->shards[i];

		if (!memory_lock(&shard->lock, &shard->broken))
			continue;
		if (area->rings == rings)
			publish_event(area, shard, ring, RING_HEAP_GONE, any);
		memory_unlock(&shard->lock);
	}
}

/* Exactly one thread counts the heap as destroyed: the thread that changes its state. If a new heap
 * at the same address has already begun the next generation, the new heap's thread has counted
 * it. */
void blocktable_bury_heap(struct tracer_area *area, uint32_t heap)
{
	uint64_t rings = __atomic_load_n(&area->rings, __ATOMIC_RELAXED);
	struct ring *ring = rings_begin(area, RINGS_EVENTS_MAX);

	if (ring)
		publish_heap_end(area, rings, ring, heap);
	rings_end(ring);
	if (change_heap(area, heap, TRACER_HEAP_LEAVING, TRACER_HEAP_DEAD))
		__atomic_fetch_add(&area->heaps_destroyed, 1, __ATOMIC_RELEASE);
}

void blocktable_clean(struct tracer_area *area)
{
	for (unsigned i = 0; i < TRACER_SHARDS; i++) {
		struct tracer_shard *shard = &area->shards[i];

		if (!__atomic_load_n(&shard->table, __ATOMIC_ACQUIRE) ||
			!memory_lock(&shard->lock, &shard->broken))
			continue;
		clean(area, shard);
		fit(area, shard);
		memory_unlock(&shard->lock);
	}
}
