/* The hooks, and what they record. */
#ifndef SNAPSHOT_TRACER_HOOKS_H
#define SNAPSHOT_TRACER_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot/tracer/shared.h"
#include "snapshot/tracer/tables.h"

/*
 * The functions that take the place of ntdll's, and what they share.
 *
 * hsnap has every jump to them written, and taken out again, while no thread stands inside the bytes
 * that change. Calls of the original go through hook_original(), which also works when the jump is out.
 */

/* hsnap finds it by its name, see TRACER_EXPORT. */
extern __declspec(dllexport) struct tracer_area hsnap_tracer;

static inline void *hook_original(enum tracer_hook_id id)
{
	return (void *)(uintptr_t)hsnap_tracer.hooks[id].original;
}

/* False before hsnap has set everything up, and from when it takes the hooks out. That may be while
 * threads are inside hooks, and while they are in a function that a hook has called, or in the system's
 * unwinder, the tables may go: a hook asks again behind that, and leaves the tables alone. */
static inline bool hooks_are_on(void)
{
	return __builtin_expect(
		__atomic_load_n(&hsnap_tracer.state, __ATOMIC_RELAXED) == TRACER_ON, 1);
}

/* Each fills in tracer_hook.hook for the functions it hooks. */
void hooks_heap_init(void);
void hooks_virtual_init(void);

/*
 * Who calls: the stack of the thread that is in a hook, as an id of the stack table.
 */

/* From the hook itself, with its return address: the one frame that is always known. Returns the id;
 * 0, and counts that, when there is no room, or when the hooks are off by then. The caller's frames are found under GUARD_TRACER. */
uint32_t record_stack(const void *caller);

/* What a hook of assembly found when it was called: where its return address stands, and RBP. */
struct hook_caller {
	const void *const *slot;
	uintptr_t rbp;
};

/* The same, without the hook's own frames. */
uint32_t record_stack_of(const struct hook_caller *caller);

/* Frames of addresses in [from, to) at the inner end are left out: the tracer's own. Once, before. */
void record_init(uint64_t from, uint64_t to);

/*
 * The blocks that the hooks record: all of them, or a sample (tracer_area.sample_bytes).
 *
 * With a sample most blocks are not in the table, and their frees should not look for them: a filter
 * says where there may be one. What is taken out in other ways than liveblocks_take() (with its heap,
 * or because the same address is put twice) stays in the filter, and only makes it less of use.
 */

/* Takes the words of threads that the sample needs. */
void liveblocks_init(void);

/* The same three where there is a sample. */
bool liveblocks_sample(uint64_t bytes);
void liveblocks_put_sampled(const struct tracer_block *block);
bool liveblocks_take_sampled(uint64_t addr, struct tracer_block *block);

static inline bool liveblocks_are_sampled(void)
{
	return __builtin_expect(hsnap_tracer.sample_bytes != 0, 0);
}

/* Whether to record a block of that size that was just allocated. To be asked once for each. */
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

/* True when the block was recorded; then it is no more. */
static inline bool liveblocks_take(uint64_t addr, struct tracer_block *block)
{
	if (liveblocks_are_sampled())
		return liveblocks_take_sampled(addr, block);
	return blocktable_take(&hsnap_tracer, addr, block);
}

/*
 * After a block went: a recording may have it, though no table had it any more when it began. was_recorded: it was
 * taken out of the table, when tracer_area.rings was this; then only a recording that has begun since may.
 */
static inline void liveblocks_free_old(uint64_t addr, bool was_recorded, uint64_t rings)
{
	if (__builtin_expect(hsnap_tracer.rings != 0, 0) && !liveblocks_are_sampled() &&
		(!was_recorded || rings != hsnap_tracer.rings))
		blocktable_free_old(&hsnap_tracer, addr);
}

/*
 * What the system says about this process's pages, without touching them.
 */

/* Addresses of whole pages. */
struct pages {
	uint64_t from, to;
};

/* The pages that bytes at base lie in; false when they are none, or not in any address space. */
bool pages_around(uint64_t base, uint64_t bytes, struct pages *pages);

/* The pages from an address on, at most to pages->to, that are alike. */
struct pages_kind {
	struct pages pages;
	uint64_t allocation;
	uint32_t state, type; /* MEM_RESERVE and so on; MEM_PRIVATE and so on */
};

/* False when the system does not say: beyond the address space. */
bool pages_ask(uint64_t addr, struct pages_kind *kind);

/* The image that an address lies in; false when it lies in none. */
bool pages_of_image(uint64_t addr, struct pages *image);

/* True when so many bytes can be read: another thread may take them away at any time, but who hands
 * such an address to the system would not have fared better. */
bool pages_can_read(const void *at, size_t bytes);

#endif
