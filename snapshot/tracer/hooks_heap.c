/*
 * The heap's functions for blocks.
 *
 * Inside a hook there is no heap use, and no lock is held across the real call. A block is taken
 * out of the table before it is freed and put in after it was allocated, so the table never names
 * memory that another thread may already have got.
 */
#include "snapshot/tracer/guard.h"
#include "snapshot/tracer/heapindex.h"
#include "snapshot/tracer/hooks.h"
#include "snapshot/tracer/liveblocks.h"
#include "snapshot/tracer/nt.h"
#include "snapshot/tracer/record.h"

/* Results are passed on as whole registers: what the upper bits hold is the caller's business. */
typedef ULONG_PTR(WINAPI *allocate_fn)(PVOID heap, ULONG flags, SIZE_T bytes);
typedef ULONG_PTR(WINAPI *reallocate_fn)(PVOID heap, ULONG flags, PVOID block, SIZE_T bytes);
typedef ULONG_PTR(WINAPI *free_fn)(PVOID heap, ULONG flags, PVOID block);

static void record(PVOID heap, ULONG_PTR addr, SIZE_T bytes, const void *caller)
{
	struct tracer_block block = tracer_block_make(
		addr, heapindex_of(&hsnap_tracer, (ULONG_PTR)heap), record_stack(caller), bytes);

	liveblocks_put(&block);
}

static ULONG_PTR WINAPI hook_allocate(PVOID heap, ULONG flags, SIZE_T bytes)
{
	void *original = hook_original(HOOK_ALLOCATE);
	ULONG_PTR addr;

	if (!hooks_are_on())
		return ((allocate_fn)original)(heap, flags, bytes);
	addr = guard_call((ULONG_PTR)heap, flags, bytes, 0, 0, 0, original, NULL);
	if (addr && liveblocks_want(bytes))
		record(heap, addr, bytes, __builtin_return_address(0));
	return addr;
}

static ULONG_PTR WINAPI hook_free(PVOID heap, ULONG flags, PVOID block)
{
	void *original = hook_original(HOOK_FREE);
	struct tracer_block taken;
	bool found;
	ULONG_PTR result;

	if (!block || !hooks_are_on())
		return ((free_fn)original)(heap, flags, block);
	found = liveblocks_take((ULONG_PTR)block, &taken);
	result = guard_call(
		(ULONG_PTR)heap, flags, (ULONG_PTR)block, 0, 0, 0, original, found ? &taken : NULL);
	if (found && !(result & 0xff)) /* refused: the block lives on */
		liveblocks_put(&taken);
	return result;
}

/*
 * The real one may call the hooked allocate and free for a block that moves: what they record is
 * replaced here by the same address, and the old block is unknown to them.
 */
static ULONG_PTR WINAPI hook_reallocate(PVOID heap, ULONG flags, PVOID block, SIZE_T bytes)
{
	void *original = hook_original(HOOK_REALLOCATE);
	struct tracer_block taken;
	bool found;
	ULONG_PTR addr;

	if (!block || !hooks_are_on())
		return ((reallocate_fn)original)(heap, flags, block, bytes);
	found = liveblocks_take((ULONG_PTR)block, &taken);
	addr = guard_call((ULONG_PTR)heap, flags, (ULONG_PTR)block, bytes, 0, 0, original,
		found ? &taken : NULL);
	if (addr && liveblocks_are_sampled())
		liveblocks_take(addr, &taken); /* chosen for what allocated it, not for this */
	if (addr && liveblocks_want(bytes))
		record(heap, addr, bytes, __builtin_return_address(0));
	else if (!addr && found) /* refused: the old block lives on */
		liveblocks_put(&taken);
	return addr;
}

void hooks_heap_init(void)
{
	hsnap_tracer.hooks[HOOK_ALLOCATE].hook = (uintptr_t)hook_allocate;
	hsnap_tracer.hooks[HOOK_REALLOCATE].hook = (uintptr_t)hook_reallocate;
	hsnap_tracer.hooks[HOOK_FREE].hook = (uintptr_t)hook_free;
}
