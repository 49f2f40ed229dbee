/* The system's memory functions as the tracer's tables use them, for tests. Reserved address space
 * is accessible only where it was committed. A test can make commits fail. The committed bytes are
 * counted independently of the tables. */
#ifndef TESTS_UNIT_FAKE_MEMORY_H
#define TESTS_UNIT_FAKE_MEMORY_H

#include "tests/unit/t.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "snapshot/control/patch_plan.h"
#include "snapshot/tracer/tables.h"
#include "snapshot/tracer/tracer_memory.h"

#define FAKE_ALIGN ((uint64_t)65536)
#define FAKE_ALWAYS INT32_MAX
#define FAKE_PAGE ((uint64_t)4096)

static struct fake_memory {
	char *base;
	uint64_t bytes;
	uint8_t *is_committed; /* one entry per page */
	int32_t commits_left; /* number of commits that still succeed */
	uint32_t waits, waits_max; /* after waits_max waits, every wait fails */
	void (*on_wait)(void);
} memory;

static struct tracer_area area;

/* Records whether the pages of [at, at + bytes) are committed. The range must consist of whole
 * pages of the reservation. */
static inline void fake_mark(const char *at, uint64_t bytes, bool is_committed)
{
	uint64_t first = (uint64_t)(at - memory.base) / FAKE_PAGE;

	assert_true(at >= memory.base && bytes && bytes % FAKE_PAGE == 0);
	assert_true((uint64_t)(at - memory.base) % FAKE_PAGE == 0);
	assert_true((uint64_t)(at - memory.base) + bytes <= memory.bytes);
	for (uint64_t i = 0; i < bytes / FAKE_PAGE; i++)
		__atomic_store_n(&memory.is_committed[first + i], is_committed, __ATOMIC_RELAXED);
}

bool memory_commit(void *at, uint64_t bytes)
{
	if (__atomic_load_n(&memory.commits_left, __ATOMIC_RELAXED) != FAKE_ALWAYS &&
		__atomic_fetch_sub(&memory.commits_left, 1, __ATOMIC_RELAXED) <= 0)
		return false;
	fake_mark(at, bytes, true);
	return !mprotect(at, bytes, PROT_READ | PROT_WRITE);
}

/* Makes the pages inaccessible, so that a late access crashes. */
void memory_decommit(void *at, uint64_t bytes)
{
	fake_mark(at, bytes, false);
	assert_true(mmap(at, bytes, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == at);
}

bool memory_wait(struct memory_patience *patience)
{
	__atomic_fetch_add(&memory.waits, 1, __ATOMIC_RELAXED);
	if (memory.on_wait)
		memory.on_wait();
	sched_yield();
	return patience->tries++ < memory.waits_max;
}

/* Threads are numbered in order of arrival, and each has one word of storage. hsnap counts as
 * running until the test ends it. */
static uint32_t fake_thread_count;
static _Thread_local uint32_t fake_thread;
static _Thread_local uintptr_t fake_word;
static bool fake_hsnap_ended;

uint32_t memory_thread_id(void)
{
	if (!fake_thread)
		fake_thread = __atomic_add_fetch(&fake_thread_count, 1, __ATOMIC_RELAXED);
	return fake_thread;
}

static _Thread_local bool fake_is_in_heap;

bool memory_is_in_heap(void)
{
	return fake_is_in_heap;
}

uintptr_t *memory_thread_word(void)
{
	return &fake_word;
}

bool memory_wait_hsnap(struct memory_patience *patience)
{
	patience->tries++;
	sched_yield();
	return !__atomic_load_n(&fake_hsnap_ended, __ATOMIC_RELAXED);
}

bool memory_may_wait(struct memory_patience *patience, uint64_t limit)
{
	(void)limit;
	return patience->tries++ < memory.waits_max;
}

static inline uint64_t fake_committed_bytes(void)
{
	uint64_t count = 0;

	for (uint64_t i = 0; i < memory.bytes / FAKE_PAGE; i++)
		count += memory.is_committed[i];
	return count * FAKE_PAGE;
}

static inline void fake_begin(uint64_t limit_bytes)
{
	uint64_t bytes = tracer_layout_bytes(limit_bytes);
	char *base = mmap(NULL, bytes + FAKE_ALIGN, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(base != MAP_FAILED);
	memory = (struct fake_memory){.bytes = bytes,
		.base = base + (FAKE_ALIGN - (uintptr_t)base % FAKE_ALIGN) % FAKE_ALIGN,
		.is_committed = calloc(bytes / FAKE_PAGE, 1),
		.commits_left = FAKE_ALWAYS,
		.waits_max = 1000};
	assert_non_null(memory.is_committed);
	memset(&area, 0, sizeof(area));
	tracer_layout_set(&area, (uint64_t)(uintptr_t)memory.base, limit_bytes);
}

static inline void fake_end(void)
{
	munmap(memory.base, memory.bytes);
	free(memory.is_committed);
	memory.base = NULL;
	memory.is_committed = NULL;
}

/* Fixture of a test: checks that the committed bytes recorded in the area are correct. */
#define LIMIT ((uint64_t)64 << 20)

static inline int set_up(void **state)
{
	(void)state;
	fake_begin(LIMIT);
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	assert_int_equal(area.committed_bytes, fake_committed_bytes());
	fake_end();
	return 0;
}

static inline uint64_t fake_dice(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed * 0x2545f4914f6cdd1du >> 16;
}

/* Copy of a table, updated at arbitrary moments while the program runs, like hsnap's copy. If the
 * table does not count a change, the copy stays wrong. */
struct fake_copy {
	uint64_t table;
	uint32_t changes[TRACER_COUNTS];
	uint64_t bytes;
	unsigned char copy[(size_t)1 << 22];
};

/* Copies memory. Returns false if the memory does not exist or is unmapped during the copy. */
static inline bool fake_read(void *to, uint64_t from, uint64_t bytes)
{
	const struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)from, bytes};

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

/* Returns the address and size of a table. number: a shard's, or TRACER_SHARDS for the stacks. */
static inline uint64_t fake_table(unsigned number, uint64_t *bytes)
{
	const struct tracer_shard *shard = &area.shards[number];

	*bytes = number < TRACER_SHARDS ?
			 __atomic_load_n(&shard->pages, __ATOMIC_ACQUIRE) * TRACER_PAGE :
			 __atomic_load_n(&area.stacks_top, __ATOMIC_ACQUIRE);
	return number < TRACER_SHARDS ? shard->table : area.stacks;
}

static inline void fake_copy_take(struct fake_copy *copy, unsigned number)
{
	copy->table = fake_table(number, &copy->bytes);
	assert_true(copy->bytes <= sizeof(copy->copy));
	fake_read(copy->changes, (uintptr_t)area.changes[number], sizeof(copy->changes));
	if (!fake_read(copy->copy, copy->table, copy->bytes))
		copy->bytes = 0;
}

/* Returns true if the copy equals the table in all pieces whose change counts are equal. The table
 * must not change during the call. */
static inline bool fake_copy_is_right(const struct fake_copy *copy, unsigned number)
{
	uint64_t bytes, table = fake_table(number, &bytes);

	for (uint64_t at = 0; at < copy->bytes && copy->bytes <= bytes; at += TRACER_PIECE) {
		uint64_t piece = copy->bytes - at < TRACER_PIECE ? copy->bytes - at : TRACER_PIECE;
		size_t count = at / TRACER_PIECE % TRACER_COUNTS;

		if (copy->changes[count] == area.changes[number][count] &&
			memcmp(copy->copy + at, (const char *)(uintptr_t)table + at, piece) != 0)
			return false;
	}
	return true;
}

#endif
