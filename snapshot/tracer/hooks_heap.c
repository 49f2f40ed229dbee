/* Hooks of the heap functions. The first part of this file is used by other hooks too: the words
 * and the filter for sampling, and the recording of stacks. */
#include "snapshot/tracer/guard.h"
#include "snapshot/tracer/hooks.h"
#include "snapshot/tracer/tables.h"
#include "snapshot/tracer/tracer_nt.h"
#include "snapshot/tracer/unwind.h"

static struct tracer_filter filter;
static uint64_t random_state;
/* Offsets, for guard_slot(), of two words of the thread: the sample word, and the session in which
 * that word was set. */
static uint32_t word_offset, session_offset;

void liveblocks_init(void)
{
	LARGE_INTEGER now = {0};

	QueryPerformanceCounter(&now);
	random_state = (uint64_t)now.QuadPart ^ (uint64_t)GetCurrentProcessId() << 32;
	word_offset = guard_new_slot();
	if (sizeof(uintptr_t) == sizeof(uint32_t))
		session_offset = guard_new_slot();
	hsnap_tracer.clear = (uintptr_t)&filter;
	hsnap_tracer.clear_bytes = sizeof(filter);
}

/* Returns the thread's sample word. If the word is from an earlier session, sets it to 0 first,
 * because the earlier session may have had a different mean. */
static uint32_t *thread_word(void)
{
	uint32_t *word = (uint32_t *)guard_slot(word_offset);
	/* on 64-bit systems, the sample word uses one half of the slot */
	uint32_t *session = sizeof(uintptr_t) > sizeof(uint32_t) ?
				    word + 1 :
				    (uint32_t *)guard_slot(session_offset);

	if (__builtin_expect(*session != hsnap_tracer.session, 0)) {
		*session = hsnap_tracer.session;
		*word = 0;
	}
	return word;
}

bool liveblocks_sample(uint64_t bytes)
{
	return sample_crosses(thread_word(), &random_state, hsnap_tracer.sample_bytes, bytes);
}

void liveblocks_add_sampled(const struct tracer_block *block)
{
	tracer_filter_add(&filter, tracer_block_addr(block));
	blocktable_add(&hsnap_tracer, block);
}

bool liveblocks_remove_sampled(uint64_t addr, struct tracer_block *block)
{
	if (!tracer_filter_may_hold(&filter, addr) ||
		!blocktable_remove(&hsnap_tracer, addr, block))
		return false;
	tracer_filter_remove(&filter, addr);
	return true;
}

static struct unwind_skip own_code;

void record_init(uint64_t from, uint64_t to)
{
	own_code = (struct unwind_skip){from, to};
}

/* Walks the stack. `caller` is NULL if the caller's state is not known. */
static uint32_t unwind(uint64_t *frames, const struct hook_caller *caller)
{
	uintptr_t before = guard_begin(GUARD_TRACER);
	uint64_t mismatches;
	uint32_t depth = caller ? unwind_from(frames, TRACER_DEPTH_MAX, &own_code,
					  (uintptr_t)caller->slot, caller->rbp) :
				  unwind_stack(frames, TRACER_DEPTH_MAX, &own_code);

	guard_end(before);
	mismatches = unwind_mismatches - hsnap_tracer.unwind_base;
	if (hsnap_tracer.unwind_mismatches != mismatches)
		hsnap_tracer.unwind_mismatches = mismatches;
	return depth;
}

/* Records the stack. `addr` is the only frame that is always known. */
static __attribute__((noinline)) uint32_t record_frames(
	const struct hook_caller *caller, const void *addr)
{
	uint64_t frames[TRACER_DEPTH_MAX];
	uint32_t id, depth = guard_now() == GUARD_NONE ? unwind(frames, caller) : 0;
	struct unwind_note *note = depth ? unwind_note() : NULL;

	if (!hooks_are_on())
		return 0;
	if (!depth) /* for example, the stack is not the thread's own */
		frames[depth++] = (uint64_t)(uintptr_t)addr;
	id = stacktable_intern(&hsnap_tracer, frames, depth);
	if (!id)
		__atomic_fetch_add(&hsnap_tracer.dropped_stacks, 1, __ATOMIC_RELAXED);
	if (note) {
		/* Clear `id` first, because the thread may be terminated between any two of these
		 * statements. */
		__atomic_store_n(&note->id, 0, __ATOMIC_RELEASE);
		note->session = hsnap_tracer.session;
		__atomic_store_n(&note->id, id, __ATOMIC_RELEASE);
	}
	return id;
}

uint32_t record_stack(const void *caller)
{
	return record_frames(NULL, caller);
}

/* Like record_stack(), for a hook written in assembly. Omits the hook's own frames. */
static uint32_t record_stack_of(const struct hook_caller *caller)
{
	const struct unwind_note *last = NULL;

	if (guard_now() == GUARD_NONE)
		last = unwind_reuse((uintptr_t)caller->slot, caller->rbp);
	if (last && last->id && last->session == hsnap_tracer.session)
		return last->id;
	return record_frames(caller, *caller->slot);
}

/*
 * Creation and destruction of heaps.
 *
 * Destroying a heap frees all its blocks. The blocks leave the table before the real call, because
 * another thread may get their memory as soon as it is free.
 */

typedef ULONG_PTR(WINAPI *create_fn)(
	ULONG flags, PVOID base, SIZE_T reserve, SIZE_T commit, PVOID lock, PVOID parameters);
typedef ULONG_PTR(WINAPI *destroy_fn)(PVOID heap);

static ULONG_PTR process_heap;

/* Forgets memory that the caller supplied for a new heap. The heap's blocks are counted instead of
 * this memory. */
static void forget_supplied(PVOID base, SIZE_T reserve)
{
	struct ranges_extent extent;
	uint64_t from = (ULONG_PTR)base & ~(TRACER_PAGE - 1);
	uint64_t to = ((ULONG_PTR)base + (uint64_t)reserve + TRACER_PAGE - 1) & ~(TRACER_PAGE - 1);

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
	const void *caller = __builtin_return_address(0);
	ULONG_PTR heap;
	uint32_t at;

	if (!hooks_are_on())
		return ((create_fn)original)(flags, base, reserve, commit, lock, parameters);
	heap = guard_call(flags, (ULONG_PTR)base, reserve, commit, (ULONG_PTR)lock,
		(ULONG_PTR)parameters, original, NULL);
	if (!heap || !hooks_are_on())
		return heap;
	if (base)
		forget_supplied(base, reserve);
	/* Marks the heap as new, so that it is not confused with an earlier heap at the same
	 * address. */
	at = heapindex_new(&hsnap_tracer, heap) & ((1u << TRACER_HEAPS_LOG2) - 1);
	if (at)
		__atomic_store_n(
			&hsnap_tracer.heap_stacks[at], record_stack(caller), __ATOMIC_RELAXED);
	return heap;
}

/*
 * If the call is refused, all blocks are live again. This includes blocks that other threads
 * allocated from the heap during the call. Destroying the process heap is always refused, so its
 * blocks stay in the table.
 */
static ULONG_PTR WINAPI hook_destroy(PVOID heap)
{
	void *original = hook_original(HOOK_DESTROY_HEAP);
	ULONG_PTR refused;
	uint32_t tag, session = hsnap_tracer.session;
	bool is_forgotten;

	if (!heap || (ULONG_PTR)heap == process_heap || !hooks_are_on())
		return ((destroy_fn)original)(heap);
	tag = heapindex_of(&hsnap_tracer, (ULONG_PTR)heap);
	is_forgotten = blocktable_forget_heap(&hsnap_tracer, tag);
	refused = guard_call((ULONG_PTR)heap, 0, 0, 0, 0, 0, original, NULL);
	if (!hooks_are_on() || hsnap_tracer.session != session)
		return refused;
	if (is_forgotten && refused)
		blocktable_restore_heap(&hsnap_tracer, tag);
	else if (is_forgotten)
		blocktable_bury_heap(&hsnap_tracer, tag);
	return refused;
}

/*
 * Hooks of the block functions.
 *
 * A hook uses no heap, and holds no lock during the real call. A block is removed from the table
 * before it is freed, and added after it was allocated. So while a block is in the table, no other
 * thread can get its memory.
 */

/* Results are returned as whole registers, because some callers may use the upper bits. */
typedef ULONG_PTR(WINAPI *allocate_fn)(PVOID heap, ULONG flags, SIZE_T bytes);
typedef ULONG_PTR(WINAPI *reallocate_fn)(PVOID heap, ULONG flags, PVOID block, SIZE_T bytes);
typedef ULONG_PTR(WINAPI *free_fn)(PVOID heap, ULONG flags, PVOID block);

/* Hooks of allocate and reallocate. The last argument is the caller's state. */
ULONG_PTR WINAPI hooks_heap_allocate_for(
	PVOID heap, ULONG flags, SIZE_T bytes, PVOID unused, const struct hook_caller *caller);
ULONG_PTR WINAPI hooks_heap_reallocate_for(
	PVOID heap, ULONG flags, PVOID block, SIZE_T bytes, const struct hook_caller *caller);

/* Entry points for the program, which determine the caller's state. On x64 they are in assembly,
 * because C code cannot get the caller's RBP. */
#ifdef _WIN64
#define HOOK_FOR(name)                                                                             \
	__asm__(".text\n"                                                                          \
		".p2align 4\n"                                                                     \
		".globl hooks_heap_" name "\n"                                                     \
		".def hooks_heap_" name "; .scl 2; .type 32; .endef\n"                             \
		".seh_proc hooks_heap_" name "\n"                                                  \
		"hooks_heap_" name ":\n"                                                           \
		"	subq $56, %rsp\n"                                                                \
		"	.seh_stackalloc 56\n"                                                            \
		"	.seh_endprologue\n"                                                              \
		"	leaq 56(%rsp), %rax\n"                                                           \
		"	movq %rax, 40(%rsp)\n" /* struct hook_caller */                            \
		"	movq %rbp, 48(%rsp)\n"                                                           \
		"	leaq 40(%rsp), %rax\n"                                                           \
		"	movq %rax, 32(%rsp)\n"                                                           \
		"	call hooks_heap_" name "_for\n"                                            \
		"	nop\n"                                                                           \
		"	addq $56, %rsp\n"                                                                \
		"	ret\n"                                                                           \
		".seh_endproc\n")

HOOK_FOR("allocate");
HOOK_FOR("reallocate");
ULONG_PTR WINAPI hooks_heap_allocate(PVOID heap, ULONG flags, SIZE_T bytes);
ULONG_PTR WINAPI hooks_heap_reallocate(PVOID heap, ULONG flags, PVOID block, SIZE_T bytes);
#else
/* The hook's EBP points to the caller's EBP, which is followed by the return address. */
#define HOOK_CALLER                                                                                \
	{                                                                                          \
		(const void *const *)__builtin_frame_address(0) + 1,                               \
			*(const uintptr_t *)__builtin_frame_address(0)                             \
	}

static ULONG_PTR WINAPI hooks_heap_allocate(PVOID heap, ULONG flags, SIZE_T bytes)
{
	const struct hook_caller caller = HOOK_CALLER;

	return hooks_heap_allocate_for(heap, flags, bytes, NULL, &caller);
}

static ULONG_PTR WINAPI hooks_heap_reallocate(PVOID heap, ULONG flags, PVOID block, SIZE_T bytes)
{
	const struct hook_caller caller = HOOK_CALLER;

	return hooks_heap_reallocate_for(heap, flags, block, bytes, &caller);
}
#endif

static void record(PVOID heap, ULONG_PTR addr, SIZE_T bytes, const struct hook_caller *caller)
{
	struct tracer_block block;
	uint32_t stack;

	blocktable_expect(&hsnap_tracer, addr); /* prefetches while the stack is walked */
	stack = record_stack_of(caller);
	block = tracer_block_make(addr, heapindex_of(&hsnap_tracer, (ULONG_PTR)heap), stack, bytes);
	if (hooks_are_on())
		liveblocks_add(&block);
}

ULONG_PTR WINAPI hooks_heap_allocate_for(
	PVOID heap, ULONG flags, SIZE_T bytes, PVOID unused, const struct hook_caller *caller)
{
	void *original = hook_original(HOOK_ALLOCATE);
	ULONG_PTR addr;

	(void)unused;
	if (!hooks_are_on())
		return ((allocate_fn)original)(heap, flags, bytes);
	addr = guard_call((ULONG_PTR)heap, flags, bytes, 0, 0, 0, original, NULL);
	if (addr && hooks_are_on() && liveblocks_want(bytes))
		record(heap, addr, bytes, caller);
	return addr;
}

static ULONG_PTR WINAPI hook_free(PVOID heap, ULONG flags, PVOID block)
{
	void *original = hook_original(HOOK_FREE);
	struct tracer_block taken;
	uint64_t rings = hsnap_tracer.rings;
	bool found;
	ULONG_PTR result;

	if (!block || !hooks_are_on())
		return ((free_fn)original)(heap, flags, block);
	found = liveblocks_remove((ULONG_PTR)block, &taken);
	result = guard_call(
		(ULONG_PTR)heap, flags, (ULONG_PTR)block, 0, 0, 0, original, found ? &taken : NULL);
	if (!hooks_are_on())
		return result;
	if (result & 0xff)
		liveblocks_free_old((ULONG_PTR)block, found, rings);
	else if (found) /* the free was refused: the block is still live */
		liveblocks_add(&taken);
	return result;
}

/* Records a reallocation. `old` is the block as it was in the table, or NULL. */
static void replace(PVOID heap, PVOID block, ULONG_PTR addr, SIZE_T bytes,
	const struct tracer_block *old, uint64_t rings, const struct hook_caller *caller)
{
	struct tracer_block unused;

	/* The hook of the inner allocation may have selected the new block for the sample. Remove
	 * the block: the sample decides anew, about the whole reallocation. */
	if (addr && liveblocks_are_sampled())
		liveblocks_remove(addr, &unused);
	if (addr && liveblocks_want(bytes))
		record(heap, addr, bytes, caller);
	else if (!addr && old) /* refused: the old block is still live */
		liveblocks_add(old);
	if (addr && addr != (ULONG_PTR)block)
		liveblocks_free_old((ULONG_PTR)block, old, rings);
}

/*
 * If the block moves, the real function may call the hooked allocate and free functions. Their
 * hooks do not know that the new block replaces the old one, and record a separate allocation. This
 * hook replaces that record.
 */
ULONG_PTR WINAPI hooks_heap_reallocate_for(
	PVOID heap, ULONG flags, PVOID block, SIZE_T bytes, const struct hook_caller *caller)
{
	void *original = hook_original(HOOK_REALLOCATE);
	uint32_t *reallocating =
		&hsnap_tracer.shards[blocktable_shard((ULONG_PTR)block)].reallocating;
	struct tracer_block taken;
	uint64_t rings = hsnap_tracer.rings;
	bool found;
	ULONG_PTR addr;

	if (!block || !hooks_are_on())
		return ((reallocate_fn)original)(heap, flags, block, bytes);
	__atomic_fetch_add(reallocating, 1, __ATOMIC_SEQ_CST);
	found = liveblocks_remove((ULONG_PTR)block, &taken);
	addr = guard_call((ULONG_PTR)heap, flags, (ULONG_PTR)block, bytes, 0, 0, original,
		found ? &taken : NULL);
	if (hooks_are_on())
		replace(heap, block, addr, bytes, found ? &taken : NULL, rings, caller);
	__atomic_fetch_sub(reallocating, 1, __ATOMIC_SEQ_CST);
	return addr;
}

void hooks_heap_init(void)
{
	process_heap = (ULONG_PTR)GetProcessHeap();
	hsnap_tracer.hooks[HOOK_CREATE_HEAP].hook = (uintptr_t)hook_create;
	hsnap_tracer.hooks[HOOK_DESTROY_HEAP].hook = (uintptr_t)hook_destroy;
	hsnap_tracer.hooks[HOOK_ALLOCATE].hook = (uintptr_t)hooks_heap_allocate;
	hsnap_tracer.hooks[HOOK_REALLOCATE].hook = (uintptr_t)hooks_heap_reallocate;
	hsnap_tracer.hooks[HOOK_FREE].hook = (uintptr_t)hook_free;
}
