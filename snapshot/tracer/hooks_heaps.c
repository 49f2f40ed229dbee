/*
 * Heaps that come and go.
 *
 * All blocks of a heap go with it: they leave the table before, for another thread may get its memory
 * as soon as it is gone.
 */
#include "snapshot/tracer/blocktable.h"
#include "snapshot/tracer/guard.h"
#include "snapshot/tracer/heapindex.h"
#include "snapshot/tracer/hooks.h"
#include "snapshot/tracer/nt.h"
#include "snapshot/tracer/ranges.h"

typedef ULONG_PTR(WINAPI *create_fn)(
	ULONG flags, PVOID base, SIZE_T reserve, SIZE_T commit, PVOID lock, PVOID parameters);
typedef ULONG_PTR(WINAPI *destroy_fn)(PVOID heap);

#define PAGE ((uint64_t)4096)

static ULONG_PTR process_heap;

/* The memory that a caller has a heap built in was the caller's; from now on its blocks are counted. */
static void give(PVOID base, SIZE_T reserve)
{
	struct ranges_extent extent;
	uint64_t from = (ULONG_PTR)base & ~(PAGE - 1);
	uint64_t to = ((ULONG_PTR)base + (uint64_t)reserve + PAGE - 1) & ~(PAGE - 1);

	if (!ranges_find(&hsnap_tracer, from, &extent) || extent.base > from)
		return;
	if (!reserve || to > extent.end)
		to = extent.end;
	if (to > from)
		ranges_forget(&hsnap_tracer, from, to);
}

static ULONG_PTR WINAPI hook_create(
	ULONG flags, PVOID base, SIZE_T reserve, SIZE_T commit, PVOID lock, PVOID parameters)
{
	void *original = hook_original(HOOK_CREATE_HEAP);
	ULONG_PTR heap;

	if (!hooks_are_on())
		return ((create_fn)original)(flags, base, reserve, commit, lock, parameters);
	heap = guard_call(flags, (ULONG_PTR)base, reserve, commit, (ULONG_PTR)lock,
		(ULONG_PTR)parameters, original, NULL);
	if (heap && base)
		give(base, reserve);
	if (heap) /* so that it is no other one that was here once */
		heapindex_new(&hsnap_tracer, heap);
	return heap;
}

/*
 * What others allocate from the heap meanwhile is live when the call is refused. The process's own
 * heap always is: its blocks do not go even for that time.
 */
static ULONG_PTR WINAPI hook_destroy(PVOID heap)
{
	void *original = hook_original(HOOK_DESTROY_HEAP);
	ULONG_PTR refused;
	uint32_t tag;
	bool is_forgotten;

	if (!heap || (ULONG_PTR)heap == process_heap || !hooks_are_on())
		return ((destroy_fn)original)(heap);
	tag = heapindex_of(&hsnap_tracer, (ULONG_PTR)heap);
	is_forgotten = blocktable_forget_heap(&hsnap_tracer, tag);
	refused = guard_call((ULONG_PTR)heap, 0, 0, 0, 0, 0, original, NULL);
	if (is_forgotten && refused)
		blocktable_restore_heap(&hsnap_tracer, tag);
	else if (is_forgotten)
		blocktable_bury_heap(&hsnap_tracer, tag);
	return refused;
}

void hooks_heaps_init(void)
{
	process_heap = (ULONG_PTR)GetProcessHeap();
	hsnap_tracer.hooks[HOOK_CREATE_HEAP].hook = (uintptr_t)hook_create;
	hsnap_tracer.hooks[HOOK_DESTROY_HEAP].hook = (uintptr_t)hook_destroy;
}
