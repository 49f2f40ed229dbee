/*
 * The DLL inside the target: hooks ntdll's heap functions and keeps the tables of shared.h.
 *
 * Inside a hook there is no heap use, and no lock is held across the real call. A block is taken
 * out of the table before it is freed and put in after it was allocated, so the table never names
 * memory that another thread may already have got.
 */
#include "snapshot/tracer/blocktable.h"
#include "snapshot/tracer/nt.h"
#include "snapshot/tracer/patch.h"
#include "snapshot/tracer/shared.h"
#include "snapshot/tracer/stacktable.h"
#include "snapshot/tracer/unwind.h"

__declspec(dllexport) struct tracer_area hsnap_tracer = {
	.magic = TRACER_MAGIC,
	.version = TRACER_VERSION,
	.area_bytes = sizeof(struct tracer_area),
};

enum {
	ALLOCATE,
	REALLOCATE,
	FREE,
	TERMINATE,
	HOOK_COUNT,
};

static struct patch patches[HOOK_COUNT];
static struct unwind_skip own_code;
static DWORD guard_slot;

/* Results are passed on as whole registers: what the upper bits hold is the caller's business. */
typedef ULONG_PTR(WINAPI *allocate_fn)(PVOID heap, ULONG flags, SIZE_T bytes);
typedef ULONG_PTR(WINAPI *reallocate_fn)(PVOID heap, ULONG flags, PVOID block, SIZE_T bytes);
typedef ULONG_PTR(WINAPI *free_fn)(PVOID heap, ULONG flags, PVOID block);
typedef ULONG_PTR(WINAPI *terminate_fn)(HANDLE process, NTSTATUS status);

/*
 * The guard against re-entry: a TLS slot of the thread holds the stack address of the hook that is
 * at work on the tables; the target's own code runs under it only where that gives unwind data. It
 * counts only while the stack is deeper than that. The slot is read in the TEB itself, since TlsGetValue() changes the last error;
 * offsets: TlsSlots in struct _TEB, public symbols of ntdll, x64, Windows 7 to 11.
 */
#define TEB_TLS_SLOTS 0x1480
#define TLS_SLOT_COUNT 64

static ULONG_PTR guard_get(void)
{
	return __readgsqword((unsigned)(TEB_TLS_SLOTS + guard_slot * 8));
}

static void guard_set(ULONG_PTR value)
{
	__writegsqword((unsigned)(TEB_TLS_SLOTS + guard_slot * 8), value);
}

static bool is_nested(void)
{
	ULONG_PTR here = (ULONG_PTR)__builtin_frame_address(0), guard = guard_get();

	return guard && here < guard && guard <= (ULONG_PTR)((NT_TIB *)NtCurrentTeb())->StackBase;
}

/* caller: where the hook returns to, the one frame that is always known. */
static void record(PVOID heap, ULONG_PTR addr, SIZE_T bytes, const void *caller)
{
	struct tracer_block block = {.addr = addr, .size_bytes = bytes, .heap = (ULONG_PTR)heap};
	uint64_t frames[TRACER_DEPTH_MAX];
	uint32_t depth = unwind_stack(frames, TRACER_DEPTH_MAX, &own_code);

	if (!depth) /* on a stack that is not the thread's own, say */
		frames[depth++] = (uint64_t)caller;
	block.stack = stacktable_intern(&hsnap_tracer, frames, depth);
	if (!block.stack)
		__atomic_fetch_add(&hsnap_tracer.dropped_stacks, 1, __ATOMIC_RELAXED);
	blocktable_put(&hsnap_tracer, &block);
}

/* record() under the guard: finding unwind data may call the target's code, which may allocate. */
static void record_guarded(PVOID heap, ULONG_PTR addr, SIZE_T bytes, const void *caller)
{
	guard_set((ULONG_PTR)__builtin_frame_address(0));
	record(heap, addr, bytes, caller);
	guard_set(0);
}

static ULONG_PTR WINAPI hook_allocate(PVOID heap, ULONG flags, SIZE_T bytes)
{
	ULONG_PTR addr = ((allocate_fn)patches[ALLOCATE].original)(heap, flags, bytes);

	if (addr && !is_nested())
		record_guarded(heap, addr, bytes, __builtin_return_address(0));
	return addr;
}

static ULONG_PTR WINAPI hook_free(PVOID heap, ULONG flags, PVOID block)
{
	free_fn original = (free_fn)patches[FREE].original;
	struct tracer_block taken;
	ULONG_PTR result;

	if (!block || !blocktable_take(&hsnap_tracer, (ULONG_PTR)block, &taken))
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
	reallocate_fn original = (reallocate_fn)patches[REALLOCATE].original;
	struct tracer_block taken = {0};
	ULONG_PTR addr;

	if (!block || is_nested())
		return original(heap, flags, block, bytes);
	blocktable_take(&hsnap_tracer, (ULONG_PTR)block, &taken);
	addr = original(heap, flags & ~(ULONG)HEAP_GENERATE_EXCEPTIONS, block, bytes);
	if (addr)
		record_guarded(heap, addr, bytes, __builtin_return_address(0));
	else if (taken.addr) /* refused: the old block lives on */
		blocktable_put(&hsnap_tracer, &taken);
	if (!addr && flags & HEAP_GENERATE_EXCEPTIONS)
		RtlRaiseStatus(STATUS_NO_MEMORY);
	return addr;
}

/* Holds every thread that would end the process until hsnap has taken its snapshot, or is gone. */
static void wait_for_snapshot(void)
{
	static LONG waited;
	struct tracer_area *area = &hsnap_tracer;
	HANDLE handles[] = {(HANDLE)area->exit_continue, (HANDLE)area->hsnap_process};

	if (!area->exit_reached)
		return;
	if (!InterlockedExchange(&waited, 1))
		NtSetEvent((HANDLE)area->exit_reached, NULL);
	NtWaitForMultipleObjects(2, handles, 1 /* any */, FALSE, NULL);
}

static ULONG_PTR WINAPI hook_terminate(HANDLE process, NTSTATUS status)
{
	if (!process || process == THIS_PROCESS) /* NULL: "all my other threads" */
		wait_for_snapshot();
	return ((terminate_fn)patches[TERMINATE].original)(process, status);
}

static enum tracer_failure prepare_hooks(struct patcher *patcher)
{
	static const struct {
		const char *name;
		void *hook;
	} hooks[HOOK_COUNT] = {
		[ALLOCATE] = {"RtlAllocateHeap", hook_allocate},
		[REALLOCATE] = {"RtlReAllocateHeap", hook_reallocate},
		[FREE] = {"RtlFreeHeap", hook_free},
		[TERMINATE] = {"NtTerminateProcess", hook_terminate},
	};
	HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");

	for (int i = 0; i < HOOK_COUNT; i++) {
		void *function = ntdll ? (void *)GetProcAddress(ntdll, hooks[i].name) : NULL;

		if (!function)
			return TRACER_NO_EXPORT;
		if (!i && !patcher_init(patcher, function))
			return TRACER_NO_MEMORY;
		if (!patch_prepare(patcher, &patches[i], function, hooks[i].hook))
			return TRACER_NOT_PATCHABLE;
	}
	return patcher_seal(patcher) ? TRACER_OK : TRACER_NO_MEMORY;
}

static enum tracer_failure start(void)
{
	struct patcher patcher;
	enum tracer_failure failure;

	guard_slot = TlsAlloc();
	if (guard_slot >= TLS_SLOT_COUNT)
		return TRACER_NO_TLS_SLOT;
	if (!stacktable_init(&hsnap_tracer, STACKTABLE_RESERVE_BYTES))
		return TRACER_NO_MEMORY;
	failure = prepare_hooks(&patcher);
	for (int i = 0; !failure && i < HOOK_COUNT; i++) {
		if (patch_enable(&patches[i]))
			continue;
		while (i--)
			patch_disable(&patches[i]);
		return TRACER_NOT_PATCHABLE;
	}
	return failure;
}

BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, LPVOID reserved);

BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, LPVOID reserved)
{
	const IMAGE_DOS_HEADER *dos = (const IMAGE_DOS_HEADER *)instance;
	const IMAGE_NT_HEADERS *nt = (const IMAGE_NT_HEADERS *)((const char *)dos + dos->e_lfanew);
	HMODULE pinned;

	(void)reserved;
	if (reason != DLL_PROCESS_ATTACH)
		return TRUE;
	own_code.from = (ULONG_PTR)instance;
	own_code.to = own_code.from + nt->OptionalHeader.SizeOfImage;
	/* Hooks point into this DLL: it stays until the process ends. */
	GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
		(LPCWSTR)instance, &pinned);
	DisableThreadLibraryCalls(instance);
	hsnap_tracer.failure = start();
	__atomic_store_n(&hsnap_tracer.state, hsnap_tracer.failure ? TRACER_FAILED : TRACER_ON,
		__ATOMIC_RELEASE);
	return TRUE;
}
