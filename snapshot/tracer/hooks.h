/* The hooks, and what they record: stacks, blocks, and pages. */
#ifndef SNAPSHOT_TRACER_HOOKS_H
#define SNAPSHOT_TRACER_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot/tracer/shared.h"
#include "snapshot/tracer/tables.h"

/*
 * Hooks: the functions that replace ntdll's.
 *
 * hsnap writes each jump to them, and removes it again, while no thread is inside the bytes that
 * change. Calls of the original go through hook_original(), which also works after the jump was
 * removed.
 */

/* Data export TRACER_EXPORT, which hsnap finds by its name. */
extern __declspec(dllexport) struct tracer_area hsnap_tracer;

static inline void *hook_original(enum tracer_hook_id id)
{
	return (void *)(uintptr_t)hsnap_tracer.hooks[id].original;
}

/* Returns true while the hooks record: from when hsnap has set everything up until it removes the
 * hooks. That may happen while threads are inside hooks. While they are in a function that a hook
 * has called, or in the system's unwinder, the tables may be freed: a hook asks again after such a
 * call, and leaves the tables alone if the hooks are off. */
static inline bool hooks_are_on(void)
{
	return __builtin_expect(
		__atomic_load_n(&hsnap_tracer.state, __ATOMIC_RELAXED) == TRACER_ON, 1);
}

/* Fill in tracer_hook.hook for the functions that they hook. */
void hooks_heap_init(void);
void hooks_virtual_init(void);

/* Callers: the stack of the thread that is in a hook, as an id of the stack table. */

/* Records the stack of a hook, which passes its return address: the one frame that is always known.
 * Returns the id, or 0 if there is no room, which is counted, or if the hooks are off by then. The
 * caller's frames are found under GUARD_TRACER. */
uint32_t record_stack(const void *caller);

/* State at the call of a hook in assembly: place of its return address, and RBP. */
struct hook_caller {
	const void *const *slot;
	uintptr_t rbp;
};

/* Records the stack of such a hook, without the hook's own frames. */
uint32_t record_stack_of(const struct hook_caller *caller);

/* Sets the tracer's own code: frames of addresses in [from, to) at the inner end are left out. To
 * be called once, first. */
void record_init(uint64_t from, uint64_t to);

/*
 * Recorded blocks: all, or a sample (tracer_area.sample_bytes).
 *
 * With a sample, most blocks are not in the table, and their frees should not search it: a filter
 * shows where a block may be. Blocks may leave the table without liveblocks_take(): with their
 * heap, or because the same address is put twice. They stay in the filter, and only make it less
 * useful.
 */

/* Reserves the words of threads that the sample needs. */
void liveblocks_init(void);

/* The next three functions, for a sample. */
bool liveblocks_sample(uint64_t bytes);
void liveblocks_put_sampled(const struct tracer_block *block);
bool liveblocks_take_sampled(uint64_t addr, struct tracer_block *block);

static inline bool liveblocks_are_sampled(void)
{
	return __builtin_expect(hsnap_tracer.sample_bytes != 0, 0);
}

/* Returns true if a block of that size that was just allocated is to be recorded. To be called once
 * per block. */
static inline bool liveblocks_want(uint64_t bytes)
{
	return !liveblocks_are_sampled() || liveblocks_sample(bytes);
}

static inline void liveblocks_put(const struct tracer_block *block)
{
	if (liveblocks_are_sampled())
		liveblocks_put_sampled(block);
	else
		blocktable_put(&hsnap_tracer, block);
}

/* Removes a block from the table. Returns true if the block was recorded. */
static inline bool liveblocks_take(uint64_t addr, struct tracer_block *block)
{
	if (liveblocks_are_sampled())
		return liveblocks_take_sampled(addr, block);
	return blocktable_take(&hsnap_tracer, addr, block);
}

/*
 * Records a free for a recording that may have the block although no table had it when the
 * recording began. was_recorded: the block was taken out of the table while tracer_area.rings had
 * this value; then only a recording that has begun since may have it.
 */
static inline void liveblocks_free_old(uint64_t addr, bool was_recorded, uint64_t rings)
{
	if (__builtin_expect(hsnap_tracer.rings != 0, 0) && !liveblocks_are_sampled() &&
		(!was_recorded || rings != hsnap_tracer.rings))
		blocktable_free_old(&hsnap_tracer, addr);
}

/* The system's information about this process's pages, without touching them. */

/* Range of whole pages. */
struct pages {
	uint64_t from, to;
};

/* Finds the pages of [base, base + bytes). Returns false if that is empty or outside any address
 * space. */
bool pages_around(uint64_t base, uint64_t bytes, struct pages *pages);

/* Pages from an address on that are alike. */
struct pages_kind {
	struct pages pages;
	uint64_t allocation;
	uint32_t state, type; /* MEM_RESERVE and so on; MEM_PRIVATE and so on */
};

/* Queries the pages from an address on. Returns false beyond the address space. */
bool pages_ask(uint64_t addr, struct pages_kind *kind);

bool pages_of_image(uint64_t addr, struct pages *image);

/* Returns true if that many bytes can be read. Another thread may unmap them at any time, but then
 * the program's own call would have failed, too. */
bool pages_can_read(const void *at, size_t bytes);

#endif
