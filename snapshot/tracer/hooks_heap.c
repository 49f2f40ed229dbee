/*
 * The heap's functions.
 *
 * Inside a hook there is no heap use, and no lock is held across the real call. A block is taken
 * out of the table before it is freed and put in after it was allocated, so the table never names
 * memory that another thread may already have got.
 */
#include "snapshot/tracer/blocktable.h"
#include "snapshot/tracer/guard.h"
#include "snapshot/tracer/heapindex.h"
#include "snapshot/tracer/hooks.h"
#include "snapshot/tracer/nt.h"
#include "snapshot/tracer/record.h"

/* Results are passed on as whole registers: what the upper bits hold is the caller's business. */
typedef ULONG_PTR(WINAPI *allocate_fn)(PVOID heap, ULONG flags, SIZE_T bytes);
typedef ULONG_PTR(WINAPI *reallocate_fn)(PVOID heap, ULONG flags, PVOID block, SIZE_T bytes);
typedef ULONG_PTR(WINAPI *free_fn)(PVOID heap, ULONG flags, PVOID block);

static bool is_on(void)
{
	return __atomic_load_n(&hsnap_tracer.state, __ATOMIC_RELAXED) == TRACER_ON;
}

static void record(PVOID heap, ULONG_PTR addr, SIZE_T bytes, const void *caller)
{
	struct tracer_block block = tracer_block_make(
		addr, heapindex_of(&hsnap_tracer, (ULONG_PTR)heap), record_stack(caller), bytes);

	blocktable_put(&hsnap_tracer, &block);
}

static ULONG_PTR WINAPI hook_allocate(PVOID heap, ULONG flags, SIZE_T bytes)
{
	uintptr_t before = guard_begin(GUARD_HEAP);
	ULONG_PTR addr = ((allocate_fn)hook_original(HOOK_ALLOCATE))(heap, flags, bytes);

	guard_end(before);
	if (addr && is_on())
		record(heap, addr, bytes, __builtin_return_address(0));
	return addr;
}

static ULONG_PTR WINAPI hook_free(PVOID heap, ULONG flags, PVOID block)
{
	free_fn original = (free_fn)hook_original(HOOK_FREE);
	struct tracer_block taken;
	ULONG_PTR result;

	if (!block || !is_on() || !blocktable_take(&hsnap_tracer, (ULONG_PTR)block, &taken))
		return original(heap, flags, block);
	result = original(heap, flags, block);
	if (!(result & 0xff)) /* refused: the block lives on */
		blocktable_put(&hsnap_tracer, &taken);
	return result;
}

/*
 * The block leaves the table before the call and comes back after it, so an exception that passes
 * through here would lose it. So a call that asks for one gets it from here; a heap that was created
 * to raise them loses the block's stack.
 *
 * The real one may call the hooked allocate and free for a block that moves: what they record is
 * replaced here by the same address, and the old block is unknown to them.
 */
static ULONG_PTR WINAPI hook_reallocate(PVOID heap, ULONG flags, PVOID block, SIZE_T bytes)
{
	reallocate_fn original = (reallocate_fn)hook_original(HOOK_REALLOCATE);
	struct tracer_block taken = {0};
	uintptr_t before;
	ULONG_PTR addr;

	if (!block || !is_on())
		return original(heap, flags, block, bytes);
	blocktable_take(&hsnap_tracer, (ULONG_PTR)block, &taken);
	before = guard_begin(GUARD_HEAP);
	addr = original(heap, flags & ~(ULONG)HEAP_GENERATE_EXCEPTIONS, block, bytes);
	guard_end(before);
	if (addr)
		record(heap, addr, bytes, __builtin_return_address(0));
	else if (taken.key) /* refused: the old block lives on */
		blocktable_put(&hsnap_tracer, &taken);
	if (!addr && flags & HEAP_GENERATE_EXCEPTIONS)
		RtlRaiseStatus(STATUS_NO_MEMORY);
	return addr;
}

void hooks_heap_init(void)
{
	hsnap_tracer.hooks[HOOK_ALLOCATE].hook = (uintptr_t)hook_allocate;
	hsnap_tracer.hooks[HOOK_REALLOCATE].hook = (uintptr_t)hook_reallocate;
	hsnap_tracer.hooks[HOOK_FREE].hook = (uintptr_t)hook_free;
}
