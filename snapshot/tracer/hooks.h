/* The hooks and the data that they record: stacks, blocks, and pages. */
#ifndef SNAPSHOT_TRACER_HOOKS_H
#define SNAPSHOT_TRACER_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot/tracer/shared.h"
#include "snapshot/tracer/tables.h"

/*
 * The hooks: functions that replace functions of ntdll.
 *
 * hsnap writes and removes the jumps to the hooks while no thread is executing the changed bytes.
 * Hooks call the original functions through hook_original(), which still works after a jump was
 * removed.
 */

/* The DLL's data export TRACER_EXPORT, which hsnap finds by name. */
extern __declspec(dllexport) struct tracer_area hsnap_tracer;

static inline void *hook_original(enum tracer_hook_id id)
{
	return (void *)(uintptr_t)hsnap_tracer.hooks[id].original;
}

/*
 * Returns true while the hooks record. hsnap turns recording on when everything is set up, and off
 * when it removes the hooks, even if threads are inside hooks. Such a thread may be in a function
 * called by a hook, or in the system's unwinder, and the tables may be freed meanwhile. So after
 * such a call, each hook calls this function again. If it returns false, the hook does not use the
 * tables.
 */
static inline bool hooks_are_on(void)
{
	return __builtin_expect(
		__atomic_load_n(&hsnap_tracer.state, __ATOMIC_RELAXED) == TRACER_ON, 1);
}

/* Set `tracer_hook.hook` for the functions that are hooked by the file with the same name. */
void hooks_heap_init(void);
void hooks_virtual_init(void);
void hooks_process_init(void);
void hooks_thread_init(void);
void hooks_handles_init(void);

/* Returns true if a handle refers to this process. A handle that cannot be queried counts as
 * another process's handle. */
bool hooks_is_this_process(void *process);

/* Records a handle that was opened by the caller of a hook, if handles are recorded. Must be called
 * after the real call has succeeded. */
void handles_add(void *const *handle, enum tracer_handle_type type, const void *caller);

/* Returns true if a hook must record a change to the process with this handle: the process is this
 * one, and the call comes neither from a real heap nor from the tracer. */
bool hooks_record(void *process);

/* Registers for the loader's notifications until the process exits. Without notifications, unloads
 * are not recorded. The loader may refuse, and does not support them before Windows Vista. */
void loader_notes_init(void);

/* Stacks: a hook adds the stack of its caller to the stack table, and gets the stack's id. */

/*
 * Records the stack of a hook. `caller` is the hook's return address, the only frame that is always
 * known. Returns the stack's id. Returns 0 if there is no room (which is counted), or if the hooks
 * have been turned off. The stack is walked under GUARD_TRACER.
 */
uint32_t record_stack(const void *caller);

/* State when a hook written in assembly was called: the slot of the hook's return address, and
 * RBP. */
struct hook_caller {
	const void *const *slot;
	uintptr_t rbp;
};

/* Sets the address range of the tracer's own code. Innermost frames in [from, to) are omitted. Must
 * be called once, before any stack is recorded. */
void record_init(uint64_t from, uint64_t to);

/*
 * Recorded blocks: all blocks, or a sample of them (tracer_area.sample_bytes).
 *
 * In a sample, most blocks are not in the table. A filter avoids searching the table when such a
 * block is freed. Some blocks leave the table without liveblocks_remove(), because their heap is
 * destroyed or because the same address is added again. They stay in the filter and only make it
 * less effective.
 */

/* Reserves the per-thread words that sampling needs. */
void liveblocks_init(void);

/* The next three functions are used only in a sample. */
bool liveblocks_sample(uint64_t bytes);
void liveblocks_add_sampled(const struct tracer_block *block);
bool liveblocks_remove_sampled(uint64_t addr, struct tracer_block *block);

static inline bool liveblocks_are_sampled(void)
{
	return __builtin_expect(hsnap_tracer.sample_bytes != 0, 0);
}

/* Returns true if a newly allocated block of that size must be recorded. Must be called exactly
 * once per block. */
static inline bool liveblocks_want(uint64_t bytes)
{
	return !liveblocks_are_sampled() || liveblocks_sample(bytes);
}

static inline void liveblocks_add(const struct tracer_block *block)
{
	if (liveblocks_are_sampled())
		liveblocks_add_sampled(block);
	else
		blocktable_add(&hsnap_tracer, block);
}

/* Removes a block from the table. Returns true if the block was recorded. */
static inline bool liveblocks_remove(uint64_t addr, struct tracer_block *block)
{
	if (liveblocks_are_sampled())
		return liveblocks_remove_sampled(addr, block);
	return blocktable_remove(&hsnap_tracer, addr, block);
}

/*
 * Records the free of a block if a recording needs the event although no table contained the block
 * when the recording began. `was_recorded` is true if the caller removed the block from the table.
 * `rings` is the value of tracer_area.rings at the time of that removal. If the block was in the
 * table, only a recording that began after the removal needs this event.
 */
static inline void liveblocks_free_old(uint64_t addr, bool was_recorded, uint64_t rings)
{
	if (__builtin_expect(hsnap_tracer.rings != 0, 0) && !liveblocks_are_sampled() &&
		(!was_recorded || rings != hsnap_tracer.rings))
		blocktable_free_old(&hsnap_tracer, addr);
}

/* Information about the pages of this process. It comes from the system; the pages are not
 * accessed. */

/* A range of whole pages. */
struct pages {
	uint64_t from, to;
};

/* Consecutive pages with the same properties. */
struct pages_kind {
	struct pages pages;
	uint64_t allocation;
	uint32_t state, type; /* MEM_RESERVE and so on; MEM_PRIVATE and so on */
};

/* Queries the pages that begin at an address. Returns false if the address is beyond the address
 * space. */
bool pages_query(uint64_t addr, struct pages_kind *kind);

/* Returns true if the bytes can be read now. Another thread may unmap them before they are read,
 * but the program's own call would then fail too. */
bool pages_can_read(const void *at, size_t bytes);

#endif
