/*
 * The tracer DLL in the target: entry point, memory, thread slots, unload notifications, and the
 * hooks of process creation and exit. When the DLL is loaded, it only publishes the addresses of
 * its hooks. hsnap does everything else. The DLL does not use a C library, so it defines memcpy()
 * and memset() for the compiler.
 */
#include <stddef.h>

#include "snapshot/tracer/guard.h"
#include "snapshot/tracer/hooks.h"
#include "snapshot/tracer/tables.h"
#include "snapshot/tracer/tracer_memory.h"
#include "snapshot/tracer/tracer_nt.h"
#include "snapshot/tracer/unwind.h"

/* string.h declares these functions with reserved names.
 * NOLINTBEGIN(readability-inconsistent-declaration-parameter-name) */
void *memcpy(void *restrict to, const void *restrict from, size_t len)
{
	void *start = to;

	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(len) : : "memory");
	return start;
}

void *memset(void *to, int value, size_t len)
{
	void *start = to;

	__asm__ volatile("rep stosb" : "+D"(to), "+c"(len) : "a"(value) : "memory");
	return start;
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

/* Number of tries before waiting. A preempted lock holder runs again within milliseconds. A
 * suspended one may take longer, and a terminated one never releases the lock. */
#define YIELDS 100

/* The system's own functions. Calls through the hooks would count as the target's calls. */
typedef NTSTATUS(NTAPI *allocate_fn)(
	HANDLE process, PVOID *base, ULONG_PTR zero_bits, PSIZE_T bytes, ULONG type, ULONG protect);
typedef NTSTATUS(NTAPI *free_fn)(HANDLE process, PVOID *base, PSIZE_T bytes, ULONG type);

bool memory_commit(void *at, uint64_t bytes)
{
	allocate_fn allocate =
		(allocate_fn)(ULONG_PTR)hsnap_tracer.hooks[HOOK_VIRTUAL_ALLOCATE].original;
	SIZE_T size = (SIZE_T)bytes;

	return allocate(THIS_PROCESS, &at, 0, &size, MEM_COMMIT, PAGE_READWRITE) >= 0;
}

void memory_decommit(void *at, uint64_t bytes)
{
	free_fn free = (free_fn)(ULONG_PTR)hsnap_tracer.hooks[HOOK_VIRTUAL_FREE].original;
	SIZE_T size = (SIZE_T)bytes;

	free(THIS_PROCESS, &at, &size, MEM_DECOMMIT);
}

bool memory_may_wait(struct memory_patience *patience, uint64_t limit)
{
	LARGE_INTEGER now = {0};

	NtQuerySystemTime(&now);
	return memory_is_patient(patience, (uint64_t)now.QuadPart, limit);
}

bool memory_wait(struct memory_patience *patience)
{
	LARGE_INTEGER one_ms = {.QuadPart = -10000};

	if (RtlDllShutdownInProgress())
		return false;
	if (patience->tries++ < YIELDS) {
		NtYieldExecution();
		return true;
	}
	NtDelayExecution(FALSE, &one_ms);
	return memory_may_wait(patience, MEMORY_PATIENCE);
}

#define TLS_SLOT_COUNT 64 /* the system allocates memory for further slots when they are needed */
#define WHAT_MASK ((uintptr_t)3)

uint32_t guard_offset;

/* Words for threads that have no words of their own. guard_now() recognizes these shared words. */
static uintptr_t shared_words[THREADWORDS_COUNT];

uint32_t guard_new_slot(void)
{
	static uint32_t far_count;
	DWORD slot = TlsAlloc();

	if (slot < TLS_SLOT_COUNT)
		return guard_teb_slots + slot * (uint32_t)sizeof(void *);
	if (slot != TLS_OUT_OF_INDEXES)
		TlsFree(slot);
	return far_count++;
}

uintptr_t *guard_far_slot(uint32_t offset)
{
	uintptr_t *words = threadwords_find((uintptr_t)NtCurrentTeb(), GetCurrentThreadId());

	return (words ? words : shared_words) + offset;
}

static bool is_shared(const uintptr_t *slot)
{
	return slot >= shared_words && slot < shared_words + THREADWORDS_COUNT;
}

void guard_init(void)
{
	guard_offset = guard_new_slot();
}

static uint32_t ring_slot;

uint32_t memory_thread_id(void)
{
	return GetCurrentThreadId();
}

uintptr_t *memory_thread_word(void)
{
	uintptr_t *word = guard_slot(ring_slot);

	return is_shared(word) ? NULL : word;
}

/* Maximum depth of a heap call on a stack that is not recorded in the thread's TEB. A greater
 * distance means a different stack. */
#define GUARD_DEPTH_MAX 65536

/* Returns true if the guard began on the thread's current stack. */
static bool is_of_this_stack(uintptr_t here, uintptr_t began)
{
	const NT_TIB *tib = (const NT_TIB *)NtCurrentTeb();

	if (here >= (uintptr_t)tib->StackLimit && here < (uintptr_t)tib->StackBase)
		return began <= (uintptr_t)tib->StackBase;
	return began - here <= GUARD_DEPTH_MAX;
}

enum guard guard_now(void)
{
	const uintptr_t *slot = guard_slot(guard_offset);
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), guard = *slot;
	uintptr_t began = guard & ~WHAT_MASK;

	if (is_shared(slot)) /* unknown activity: an incomplete record is better than a wrong one */
		return GUARD_HEAP;
	if (!guard || here >= began || !is_of_this_stack(here, began))
		return GUARD_NONE;
	return (enum guard)(guard & WHAT_MASK);
}

bool memory_is_in_heap(void)
{
	return guard_now() == GUARD_HEAP;
}

/* LdrRegisterDllNotification and its callback: Microsoft Learn. */
#define NOTE_LOADED 1
#define NOTE_UNLOADED 2

struct note {
	ULONG flags;
	const UNICODE_STRING *path, *name;
	PVOID base;
	ULONG bytes;
};

typedef VOID(CALLBACK *note_fn)(ULONG reason, const struct note *note, PVOID context);
typedef NTSTATUS(NTAPI *register_fn)(ULONG flags, note_fn function, PVOID context, PVOID *cookie);

/* Reads memory that may not be mapped. The system copies the memory, or returns an error. */
static bool read_own(uint64_t addr, void *to, uint32_t len)
{
	SIZE_T got = 0;

	return NtReadVirtualMemory(THIS_PROCESS, (LPCVOID)(ULONG_PTR)addr, to, len, &got) >= 0 &&
	       got == len;
}

static bool read_nothing(uint64_t addr, void *to, uint32_t len)
{
	(void)addr;
	(void)to;
	(void)len;
	return false;
}

/* Returns true if the module's own image is still mapped at its address. */
static bool is_mapped(const struct note *note)
{
	struct pages_kind kind;

	return pages_query((ULONG_PTR)note->base, &kind) && kind.state == MEM_COMMIT &&
	       kind.type == MEM_IMAGE && kind.allocation == (ULONG_PTR)note->base;
}

/* Adds an unload. The loader serializes its notifications. If they overlap anyway and the record is
 * in use, the unload is recorded without a name. */
static void add(const struct note *note)
{
	static struct module_record record; /* too large for another program's thread stack */
	static uint32_t lock;
	struct module_image image = {
		.base = (ULONG_PTR)note->base,
		.bytes = note->bytes,
		.path = note->path ? note->path->Buffer : NULL,
		.read = is_mapped(note) ? read_own : read_nothing,
	};
	const struct tracer_module nameless = {
		.record_bytes = sizeof(nameless), .image_bytes = note->bytes};
	struct memory_patience patience = {0};

	if (image.path)
		image.path_units = note->path->Length / 2;
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) {
		if (!memory_wait(&patience)) {
			unloads_add(&hsnap_tracer, image.base, image.base + image.bytes, &nameless);
			return;
		}
	}
	module_record_make(&record, &image);
	unloads_add(&hsnap_tracer, image.base, image.base + image.bytes, &record.module);
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

static VOID CALLBACK on_note(ULONG reason, const struct note *note, PVOID context)
{
	(void)context;
	if (reason == NOTE_LOADED)
		__atomic_fetch_add(&hsnap_tracer.load_count, 1, __ATOMIC_RELEASE);
	if (reason != NOTE_UNLOADED || !note)
		return;
	if (hooks_are_on())
		add(note);
	unwind_forget((ULONG_PTR)note->base, (ULONG_PTR)note->base + note->bytes);
}

/* Registers for the loader's notifications until the process exits. If the loader cannot notify
 * (before Windows Vista) or refuses, unloads are not recorded. */
static void loader_notes_init(void)
{
	HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");
	register_fn ask = (register_fn)(void *)GetProcAddress(ntdll, "LdrRegisterDllNotification");
	PVOID cookie;

	if (ask && ask(0, on_note, NULL, &cookie) >= 0)
		__atomic_fetch_add(&hsnap_tracer.load_count, 1, __ATOMIC_RELEASE);
}

/*
 * Process exit and process creation.
 *
 * A thread waits here only for hsnap. Each wait ends when hsnap's process ends. The wait for a new
 * process also has a time limit.
 */

typedef ULONG_PTR(WINAPI *terminate_fn)(HANDLE process, NTSTATUS status);
typedef ULONG_PTR(WINAPI *create_process_fn)(PHANDLE process, PHANDLE thread,
	ACCESS_MASK process_access, ACCESS_MASK thread_access, PVOID process_attributes,
	PVOID thread_attributes, ULONG process_flags, ULONG thread_flags, PVOID parameters,
	PVOID create_info, PVOID attribute_list);

/* THREAD_CREATE_FLAGS_CREATE_SUSPENDED: phnt, ntpsapi.h */
#define CREATE_THREAD_SUSPENDED 1u
#define PATIENCE_MS 30000 /* maximum time for hsnap to prepare a new process */

static HANDLE handle(uint64_t value)
{
	return (HANDLE)(uintptr_t)value;
}

/* Blocks every thread that would end the process, until hsnap has taken its snapshot or has
 * exited. */
static void wait_for_snapshot(void)
{
	static LONG waited;
	struct tracer_area *area = &hsnap_tracer;
	HANDLE handles[] = {handle(area->exit_continue), handle(area->hsnap_process)};

	if (!area->exit_reached)
		return;
	if (!InterlockedExchange(&waited, 1)) {
		area->exit_thread = GetCurrentThreadId();
		NtSetEvent(handle(area->exit_reached), NULL);
	}
	NtWaitForMultipleObjects(2, handles, 1 /* any */, FALSE, NULL);
}

/* Returns true if a handle refers to this process, whatever rights the handle has. */
static bool is_own(HANDLE process)
{
	PROCESS_BASIC_INFORMATION info = {0};
	HANDLE same;
	NTSTATUS status;

	if (process == THIS_PROCESS)
		return true;
	if (NtDuplicateObject(THIS_PROCESS, process, THIS_PROCESS, &same,
		    PROCESS_QUERY_LIMITED_INFORMATION, 0, 0) < 0)
		return false;
	status =
		NtQueryInformationProcess(same, ProcessBasicInformation, &info, sizeof(info), NULL);
	NtClose(same);
	return status >= 0 && info.UniqueProcessId == GetCurrentProcessId();
}

static ULONG_PTR WINAPI hook_terminate(HANDLE process, NTSTATUS status)
{
	/* NULL means all other threads of the process; an exiting process does this first */
	if (hooks_are_on() && (!process || is_own(process)))
		wait_for_snapshot();
	return ((terminate_fn)hook_original(HOOK_TERMINATE))(process, status);
}

/* Waits for 1 ms. Returns true if hsnap_process has exited. */
static bool is_alone(uint64_t hsnap_process)
{
	LARGE_INTEGER one_ms = {.QuadPart = -10000};

	return NtWaitForSingleObject(handle(hsnap_process), FALSE, &one_ms) != STATUS_TIMEOUT;
}

bool memory_wait_hsnap(struct memory_patience *patience)
{
	if (patience->tries++ >= YIELDS)
		return !is_alone(hsnap_tracer.rings_process);
	NtYieldExecution();
	return true;
}

/* Session in which new processes are no longer announced, because hsnap did not answer, or because
 * a thread waiting for the answer was terminated. */
static uint32_t over_in;

static bool is_over(void)
{
	return __atomic_load_n(&over_in, __ATOMIC_RELAXED) == hsnap_tracer.session;
}

static void be_over(void)
{
	__atomic_store_n(&over_in, hsnap_tracer.session, __ATOMIC_RELAXED);
}

/* Acquires the right to announce; only one thread has it at a time. Returns false if announcing is
 * no longer useful. */
static bool begin_announcing(void)
{
	struct memory_patience patience = {0};

	while (!is_over()) {
		if (!__atomic_exchange_n(&hsnap_tracer.child_lock, 1, __ATOMIC_ACQUIRE))
			return true;
		if (is_alone(hsnap_tracer.hsnap_process))
			return false;
		if (!memory_may_wait(&patience, (uint64_t)2 * PATIENCE_MS * 10000))
			be_over();
	}
	return false;
}

/*
 * Waits until hsnap has prepared the process. Returns false if hsnap does not answer in time. No
 * other process is announced after that, because a late answer would count as the answer for the
 * next process.
 */
static bool is_taken(void)
{
	struct tracer_area *area = &hsnap_tracer;
	HANDLE handles[] = {handle(area->child_taken), handle(area->hsnap_process)};
	LARGE_INTEGER patience = {.QuadPart = -10000LL * PATIENCE_MS};

	if (NtSetEvent(handle(area->child_created), NULL) < 0)
		return false;
	return NtWaitForMultipleObjects(2, handles, 1 /* any */, FALSE, &patience) == STATUS_WAIT_0;
}

static void announce(HANDLE process, HANDLE thread)
{
	PROCESS_BASIC_INFORMATION process_info = {0};
	struct nt_thread_info thread_info = {0};

	if (NtQueryInformationProcess(process, ProcessBasicInformation, &process_info,
		    sizeof(process_info), NULL) < 0 ||
		NtQueryInformationThread(thread, NT_THREAD_BASIC_INFORMATION, &thread_info,
			sizeof(thread_info), NULL) < 0 ||
		!begin_announcing())
		return;
	if (!is_over()) {
		hsnap_tracer.child_pid = (uint32_t)process_info.UniqueProcessId;
		hsnap_tracer.child_tid = (uint32_t)thread_info.thread_id;
		if (!is_taken())
			be_over();
	}
	__atomic_store_n(&hsnap_tracer.child_lock, 0, __ATOMIC_RELEASE);
}

/*
 * The new process must not run before hsnap has prepared it. Kernelbase always creates the first
 * thread suspended and resumes it later. For other callers, this hook suspends and resumes the
 * thread, if the requested rights of the thread's handle allow it.
 */
static ULONG_PTR WINAPI hook_create_process(PHANDLE process, PHANDLE thread,
	ACCESS_MASK process_access, ACCESS_MASK thread_access, PVOID process_attributes,
	PVOID thread_attributes, ULONG process_flags, ULONG thread_flags, PVOID parameters,
	PVOID create_info, PVOID attribute_list)
{
	create_process_fn original = (create_process_fn)hook_original(HOOK_CREATE_PROCESS);
	bool follow = hooks_are_on() && hsnap_tracer.child_created;
	ULONG suspend = 0;
	ULONG_PTR result;

	if (follow && thread_access & (THREAD_SUSPEND_RESUME | MAXIMUM_ALLOWED | GENERIC_ALL))
		suspend = CREATE_THREAD_SUSPENDED & ~thread_flags;
	follow = follow && (thread_flags | suspend) & CREATE_THREAD_SUSPENDED;
	result = original(process, thread, process_access, thread_access, process_attributes,
		thread_attributes, process_flags, thread_flags | suspend, parameters, create_info,
		attribute_list);
	if ((NTSTATUS)result >= 0 && follow)
		announce(*process, *thread);
	if ((NTSTATUS)result >= 0 && suspend)
		NtResumeThread(*thread, NULL);
	return result;
}

static void hooks_process_init(void)
{
	hsnap_tracer.hooks[HOOK_TERMINATE].hook = (uintptr_t)hook_terminate;
	hsnap_tracer.hooks[HOOK_CREATE_PROCESS].hook = (uintptr_t)hook_create_process;
}

/* The tracer area, and the DLL's entry point. */

__attribute__((aligned(64))) struct tracer_area hsnap_tracer = {
	.magic = TRACER_MAGIC,
	.version = TRACER_VERSION,
	.area_bytes = sizeof(struct tracer_area),
	.pointer_bytes = sizeof(void *),
};

BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, LPVOID reserved);

BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, LPVOID reserved)
{
	const IMAGE_DOS_HEADER *dos = (const IMAGE_DOS_HEADER *)instance;
	const IMAGE_NT_HEADERS *nt = (const IMAGE_NT_HEADERS *)((const char *)dos + dos->e_lfanew);
	HMODULE pinned;

	(void)reserved;
	if (reason != DLL_PROCESS_ATTACH)
		return TRUE;
	record_init((ULONG_PTR)instance, (ULONG_PTR)instance + nt->OptionalHeader.SizeOfImage);
	/* Hooks jump into this DLL, so it must stay loaded until the process exits. */
	GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
		(LPCWSTR)instance, &pinned);
	DisableThreadLibraryCalls(instance);
	guard_init();
	liveblocks_init();
	ring_slot = guard_new_slot();
	hooks_heap_init();
	hooks_virtual_init();
	hooks_process_init();
	loader_notes_init();
	return TRUE;
}
