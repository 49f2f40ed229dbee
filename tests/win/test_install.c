/* Switches the tracer on and off in another process. A thread inside the changed bytes continues at
 * their new place. An unexpected state is refused without changes. Prints TAP. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/control/patch_plan.h"
#include "tests/win/tap.h"
#include "tests/win/traced_again.h"

/* ---------------------------------------------------------------- the target */

/* Data in a named section, which both processes map. */
struct shared {
	void *thread_stack;
	ULONG_PTR result; /* result of the function, once it has returned to after() */
	LONG is_ready;
	LONG allocates,
		/* requests an allocation by a second thread; set to another value when the thread
		 * succeeded */
		has_allocated;
	LONG is_unlocked; /* the heap of that allocation, which is locked before */
	DWORD allocator; /* id of the second thread */
};

static struct shared *shared;

static struct shared *open_shared(const char *name)
{
	HANDLE section = CreateFileMappingA(
		INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, sizeof(struct shared), name);

	return MapViewOfFile(section, FILE_MAP_ALL_ACCESS, 0, 0, sizeof(struct shared));
}

/* Address to which the function returns into which the thread was moved. */
__attribute__((noreturn, used)) static void after(ULONG_PTR result)
{
	shared->result = result;
	ExitThread(77);
}

__asm__(".globl return_here\nreturn_here:\n\tmovq %rax, %rcx\n\tsubq $32, %rsp\n\tcall after\n");
extern char return_here[];

static DWORD WINAPI spin(void *argument)
{
	(void)argument;
	InterlockedExchange(&shared->is_ready, 1);
	while (InterlockedCompareExchange(&shared->is_ready, 0, 0))
		YieldProcessor();
	return 0;
}

static bool is_set(volatile LONG *word)
{
	return InterlockedCompareExchange(word, 0, 0) != 0;
}

/* Waits inside RtlAllocateHeap, called from its hook, until the heap is unlocked. */
static DWORD WINAPI allocate(void *heap)
{
	void *block;

	while (!is_set(&shared->allocates))
		Sleep(1);
	/* This call makes sure that the tables are not empty. */
	HeapFree(GetProcessHeap(), 0, HeapAlloc(GetProcessHeap(), 0, 100));
	block = HeapAlloc(heap, 0, 100);
	InterlockedExchange(&shared->has_allocated, 1);
	HeapFree(heap, 0, block);
	return block ? 55 : 56;
}

/* The target loads the tracer and has a thread that spins until it is moved. */
static int be_target(HANDLE ready, HANDLE end, const char *name)
{
	HANDLE heap = HeapCreate(0, 0, 0);
	DWORD id;

	shared = open_shared(name);
	if (!shared || !heap || !traced_load_dll())
		return 3;
	shared->thread_stack = malloc(1);
	if (!CreateThread(NULL, 0, spin, NULL, 0, &id))
		return 4;
	if (!CreateThread(NULL, 0, allocate, heap, 0, &shared->allocator) || !HeapLock(heap))
		return 5;
	while (!InterlockedCompareExchange(&shared->is_ready, 0, 0))
		SwitchToThread();
	InterlockedExchange(&shared->is_ready, (LONG)id);
	SetEvent(ready);
	while (WaitForSingleObject(end, 1) == WAIT_TIMEOUT) {
		if (is_set(&shared->is_unlocked) && heap && HeapUnlock(heap))
			heap = NULL;
	}
	free(malloc(100));
	return 0;
}

/* ---------------------------------------------------------------- this process */

static bool start(void)
{
	char name[60];
	wchar_t more[60];

	snprintf(name, sizeof(name), "hsnap-test-install-%lu-%d", GetCurrentProcessId(), ok_count);
	shared = open_shared(name);
	_snwprintf(more, 60, L"%hs", name);
	return shared && child_start(more);
}

/* Reads the target's tracer; returns NULL if it is unreadable. */
static struct tracee *tracee_of(void)
{
	struct tracee *tracee = NULL;

	return tracee_new(
		       &tracee, &child.target, child.info.hProcess, child.area_addr, &child.err) ?
		       NULL :
		       tracee;
}

/* Returns true if the target's ntdll functions have their original bytes. */
static bool is_clean(void)
{
	static const char *const names[] = {"RtlAllocateHeap", "RtlReAllocateHeap", "RtlFreeHeap",
		"NtAllocateVirtualMemory", "NtFreeVirtualMemory", "NtMapViewOfSection",
		"NtUnmapViewOfSection", "NtTerminateProcess", "NtCreateThreadEx",
		"NtTerminateThread", "RtlDestroyHeap"};
	HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const void *function = (const void *)GetProcAddress(ntdll, names[i]);
		unsigned char theirs[32];

		if (!ReadProcessMemory(
			    child.info.hProcess, function, theirs, sizeof(theirs), NULL) ||
			memcmp(theirs, function, sizeof(theirs)) != 0)
			return false;
	}
	return true;
}

/* Moves a suspended thread to the address after RtlReAllocateHeap's first instruction, push r15.
 * The registers are set as if the function was called without a block, so it returns 0 to
 * return_here. */
static bool write_inside(HANDLE thread, HANDLE process, uint64_t at)
{
	CONTEXT context = {.ContextFlags = CONTEXT_FULL};
	uint64_t frame[2];

	if (!GetThreadContext(thread, &context))
		return false;
	context.Rsp = ((context.Rsp - 0x400) & ~(DWORD64)15) - 16;
	frame[0] = context.R15;
	frame[1] = (ULONG_PTR)return_here;
	context.Rip = at;
	context.Rcx = (ULONG_PTR)GetProcessHeap();
	context.Rdx = 0;
	context.R8 = 0; /* the argument for the block */
	context.R9 = 100;
	return WriteProcessMemory(
		       process, (void *)(ULONG_PTR)context.Rsp, frame, sizeof(frame), NULL) &&
	       SetThreadContext(thread, &context);
}

static uint64_t ip_of(HANDLE thread)
{
	CONTEXT context = {.ContextFlags = CONTEXT_CONTROL};

	return GetThreadContext(thread, &context) ? context.Rip : 0;
}

static uint64_t space_bytes(void)
{
	MEMORY_BASIC_INFORMATION info;
	uint64_t bytes = 0;

	for (char *at = NULL; VirtualQueryEx(child.info.hProcess, at, &info, sizeof(info));
		at = (char *)info.BaseAddress + info.RegionSize)
		bytes += info.State == MEM_FREE ? 0 : info.RegionSize;
	return bytes;
}

/* Returns true if this function of ntdll begins with pushes, between which a thread can be. Sets
 * *inside to the address of such a place. */
static bool has_inside(uint64_t *inside)
{
	static const uint8_t pushes[] = {0x41, 0x57, 0x41, 0x56};
	const void *function =
		(const void *)GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "RtlReAllocateHeap");

	*inside = (ULONG_PTR)function + 2;
	return !memcmp(function, pushes, sizeof(pushes));
}

/* Moves a thread to such a place before the tracer is switched on, and checks it until it has left
 * the function. */
static void thread_inside(void)
{
	uint64_t inside, stands;
	struct tracee *tracee = NULL;
	DWORD status = 0;
	HANDLE thread;

	if (!has_inside(&inside)) {
		ok(true, "a thread inside # SKIP this ntdll's function does not begin with pushes");
		return;
	}
	ok(start(), "a target runs");
	shared->result = 1;
	thread = OpenThread(THREAD_ALL_ACCESS, FALSE, (DWORD)shared->is_ready);
	SuspendThread(thread);
	ok(write_inside(thread, child.info.hProcess, inside) && ip_of(thread) == inside,
		"its thread stands inside the bytes that change");
	ok(!child_install(NULL), "the tracer is switched on");
	stands = ip_of(thread);
	tracee = tracee_of();
	ok(tracee && tracee->area.state == TRACER_ON, "and is on");
	ok(tracee && stands == tracee->area.hooks[HOOK_REALLOCATE].original + 2,
		"the thread stands at the same instruction in the trampoline");
	tracee_free(tracee);
	ok(!child_remove() && is_clean(), "it is removed, wherever the thread is");
	ok(child_area().reserved, "but its tables stay");
	ok(child_install(NULL) == -ERR_BUSY && strstr(child.err.detail, "thread") && is_clean(),
		"and it is not switched on again as long as the thread is there");
	ResumeThread(thread);
	ok(WaitForSingleObject(thread, WAIT_MS) == WAIT_OBJECT_0 &&
			GetExitCodeThread(thread, &status) && status == 77 && !shared->result,
		"it has come out of the function with its result");
	ok(!child_install(NULL) && !child_remove() && is_clean(),
		"then it is switched on and removed");
	ok(child_end() == 0, "the target ends well");
}

static bool poke(uint64_t addr, const void *bytes, size_t len)
{
	DWORD old, unused;
	void *at = (void *)(ULONG_PTR)addr;
	HANDLE process = child.info.hProcess;
	bool done = VirtualProtectEx(process, at, len, PAGE_EXECUTE_READWRITE, &old) &&
		    WriteProcessMemory(process, at, bytes, len, NULL);

	VirtualProtectEx(process, at, len, old, &unused);
	return done;
}

#define FIELD(name) (child.area_addr + offsetof(struct tracer_area, name))

/* Replaces the import of SetThreadContext() that the tested code uses. It fails refusals_left
 * times, as Windows may refuse an address that is not on a thread's shadow stack. */
typedef BOOL(WINAPI *set_context_fn)(HANDLE thread, const CONTEXT *context);
static unsigned refusals_left, refusals;

static BOOL WINAPI set_context(HANDLE thread, const CONTEXT *context)
{
	set_context_fn real = (set_context_fn)(void *)GetProcAddress(
		GetModuleHandleW(L"kernel32.dll"), "SetThreadContext");

	if (!refusals_left)
		return real(thread, context);
	refusals_left--;
	refusals++;
	return FALSE;
}

/* NOLINTNEXTLINE(bugprone-reserved-identifier) */
set_context_fn __imp_SetThreadContext = set_context;

static void thread_that_cannot_be_moved(void)
{
	uint64_t inside, stands;
	struct tracee *tracee = NULL;
	HANDLE thread;

	if (!has_inside(&inside)) {
		ok(true, "no move # SKIP this ntdll's function does not begin with pushes");
		return;
	}
	ok(start(), "a target runs");
	shared->result = 1;
	thread = OpenThread(THREAD_ALL_ACCESS, FALSE, (DWORD)shared->is_ready);
	SuspendThread(thread);
	ok(write_inside(thread, child.info.hProcess, inside),
		"its thread stands inside the bytes that change");
	refusals = 0;
	refusals_left = UINT_MAX;
	ok(child_install(NULL) == -ERR_INJECT && strstr(child.err.detail, "cannot be moved") &&
			is_clean() && !child_area().reserved && ip_of(thread) == inside,
		"a thread that is never moved: nothing is changed");
	ok(refusals == 101, "after 100 more tries");
	refusals_left = 100;
	ok(!child_install(NULL) && !refusals_left, "the last of them moves it");
	stands = ip_of(thread);
	tracee = tracee_of();
	ok(tracee && stands == tracee->area.hooks[HOOK_REALLOCATE].original + 2,
		"the thread stands in the trampoline");
	tracee_free(tracee);
	ResumeThread(thread);
	ok(WaitForSingleObject(thread, WAIT_MS) == WAIT_OBJECT_0 && !shared->result,
		"it has come out of the function with its result");
	ok(!child_remove() && is_clean(), "the tracer is removed");
	ok(child_end() == 0, "the target ends well");
}

/* A word lies above a thread's stack pointer, and an earlier call may or may not have left it
 * there. */
static void a_word_that_may_be_old(void)
{
	CONTEXT context = {.ContextFlags = CONTEXT_CONTROL};
	uint64_t hook = 0, space = 0;
	HANDLE thread;

	ok(start(), "a target runs");
	target_read(&child.target, FIELD(hooks[HOOK_FREE].hook), &hook, sizeof(hook));
	thread = OpenThread(THREAD_ALL_ACCESS, FALSE, (DWORD)shared->is_ready);
	SuspendThread(thread);
	ok(hook && GetThreadContext(thread, &context) &&
			WriteProcessMemory(child.info.hProcess,
				(void *)(ULONG_PTR)(context.Rsp + 24), &hook, sizeof(hook), NULL),
		"an address of the tracer is on the stack of a thread that stands still");
	for (int i = 0; i < 4; i++) {
		ok(!child_install(NULL), "the tracer is switched on");
		ok(!i || space_bytes() == space, "and takes no more than the last time");
		space = space_bytes();
		ok(!child_remove() && is_clean() && child_area().reserved,
			"it is removed, and its tables stay");
	}
	ResumeThread(thread);
	ok(child_end() == 0, "the target ends well");
}

/* Returns true if the thread has called a function through a hook, and the call has not returned
 * yet. */
static bool is_in_hook(HANDLE thread, uint64_t hook)
{
	CONTEXT context = {.ContextFlags = CONTEXT_CONTROL};
	uint64_t words[256];
	bool is_there = false;

	SuspendThread(thread);
	if (GetThreadContext(thread, &context) &&
		!target_read(&child.target, context.Rsp, words, sizeof(words))) {
		for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
			is_there |= words[i] >= hook && words[i] - hook < 0x100;
	}
	ResumeThread(thread);
	return is_there;
}

/* A thread waits in a function that was called through a hook. Meanwhile the tracer is removed and
 * its tables are freed. With is_on_again, the tracer is switched on again before the thread
 * returns. */
static void thread_that_comes_back(bool is_on_again)
{
	struct tracee *tracee = NULL;
	DWORD status = 0;
	uint64_t hook = 0;
	HANDLE thread;

	ok(start(), "a target runs");
	thread = OpenThread(THREAD_ALL_ACCESS, FALSE, shared->allocator);
	ok(!child_install(NULL), "the tracer is switched on");
	target_read(&child.target, FIELD(hooks[HOOK_ALLOCATE].hook), &hook, sizeof(hook));
	InterlockedExchange(&shared->allocates, 1);
	while (!is_in_hook(thread, hook) &&
		WaitForSingleObject(child.info.hProcess, 1) == WAIT_TIMEOUT)
		continue;
	ok(!child_remove() && is_clean() && child_area().reserved,
		"it is removed while a thread is in a hook, and its tables stay");
	if (is_on_again)
		ok(!child_install(NULL), "it is switched on again");
	else
		ok(child_remove() == -ERR_NOT_TRACED && !child_area().reserved,
			"when it is removed once more its tables go");
	ok(!is_set(&shared->has_allocated), "the thread is still there");
	InterlockedExchange(&shared->is_unlocked, 1);
	ok(WaitForSingleObject(thread, WAIT_MS) == WAIT_OBJECT_0 &&
			GetExitCodeThread(thread, &status) && status == 55,
		"it comes back with its block");
	tracee = tracee_of();
	ok(tracee && tracee->area.state == (is_on_again ? TRACER_ON : TRACER_OFF),
		"and the tracer is as it was");
	tracee_free(tracee);
	ok(child_remove() == (is_on_again ? 0 : -ERR_NOT_TRACED), "it can be removed");
	ok(child_end() == 0, "the target ends well");
}

/* The areas are of other versions, or have false contents. */
static void refused_areas(void)
{
	uint32_t version = 1, right = TRACER_VERSION, state = 77, loaded = TRACER_LOADED;
	uint64_t lie = (ULONG_PTR)GetModuleHandleW(NULL), hook = lie, own = 0;
	MEMORY_BASIC_INFORMATION info;

	ok(start(), "a target runs");
	poke(FIELD(version), &version, sizeof(version));
	ok(child_install(NULL) == -ERR_TARGET && strstr(child.err.detail, "version 1"),
		"a tracer of another version is refused by name");
	poke(FIELD(version), &right, sizeof(right));
	poke(FIELD(state), &state, sizeof(state));
	ok(child_install(NULL) == -ERR_TARGET, "one in an unknown state is refused");
	poke(FIELD(state), &loaded, sizeof(loaded));
	target_read(&child.target, FIELD(hooks[HOOK_FREE].hook), &own, sizeof(own));
	poke(FIELD(hooks[HOOK_FREE].hook), &hook, sizeof(hook));
	ok(child_install(NULL) == -ERR_INJECT && is_clean(),
		"hooks outside the tracer are refused");
	poke(FIELD(hooks[HOOK_FREE].hook), &own, sizeof(own));
	ok(child_remove() == -ERR_NOT_TRACED, "what is not on is not removed");
	poke(FIELD(reserved), &lie, sizeof(lie));
	ok(!child_install(NULL), "the tracer is switched on");
	ok(VirtualQueryEx(child.info.hProcess, (void *)(ULONG_PTR)lie, &info, sizeof(info)) &&
			info.State == MEM_COMMIT,
		"an image that was called its tables is not freed");
	ok(child_install(NULL) == -ERR_TRACED, "a second time it is on already");
	ok(!child_remove() && is_clean(), "it is removed");
	ok(child_end() == 0, "the target ends well");
}

/* Another tool has placed its own jump over the tracer's jump, and removes it later. */
static void foreign_jump(void)
{
	uint64_t function =
		(ULONG_PTR)GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "RtlFreeHeap");
	uint8_t ours[5], theirs[5];
	int32_t away;

	ok(start(), "a target runs");
	ok(!child_install(NULL) && !is_clean(), "the tracer is switched on");
	target_read(&child.target, function, ours, sizeof(ours));
	memcpy(theirs, ours, sizeof(theirs));
	memcpy(&away, theirs + 1, sizeof(away));
	away += 1 << 20;
	memcpy(theirs + 1, &away, sizeof(away));
	SuspendThread(child.info.hThread);
	poke(function, theirs, sizeof(theirs));
	ok(child_remove() == -ERR_BUSY && strstr(child.err.detail, "RtlFreeHeap"),
		"another tool's jump on top is named, and nothing is removed");
	poke(function, ours, sizeof(ours));
	ResumeThread(child.info.hThread);
	ok(!is_clean(), "the hooks are still there");
	ok(!child_remove() && is_clean(), "without it the tracer is removed");
	ok(child_end() == 0, "the target ends well");
}

/* hsnap was terminated when only some jumps were in place. */
static void half_installed(void)
{
	struct tracee *tracee = NULL;
	const struct tracer_hook *hook;

	ok(start(), "a target runs");
	ok(!child_install(NULL), "the tracer is switched on");
	tracee = tracee_of();
	if (!ok(tracee, "and can be read"))
		return;
	hook = &tracee->area.hooks[HOOK_ALLOCATE];
	poke(hook->function, hook->old_bytes, hook->patch_bytes);
	ok(!child_install(NULL), "with a jump missing it is switched on anew");
	ok(tracee_jump(tracee, HOOK_ALLOCATE) == JUMP_IN &&
			tracee_jump(tracee, HOOK_FREE) == JUMP_IN,
		"all jumps are there");
	poke(hook->function, hook->old_bytes, hook->patch_bytes);
	ok(!child_remove() && is_clean(), "with a jump missing it is removed");
	tracee_free(tracee);
	ok(child_end() == 0, "the target ends well");
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], GUARD_COMMAND))
		return guard_main(argc, argv);
	if (argc == 5 && !strcmp(argv[1], "target"))
		return be_target(handle_of(argv[2]), handle_of(argv[3]), argv[4]);
	setvbuf(stdout, NULL, _IONBF, 0);
	thread_inside();
	thread_that_cannot_be_moved();
	a_word_that_may_be_old();
	thread_that_comes_back(false);
	thread_that_comes_back(true);
	refused_areas();
	foreign_jump();
	half_installed();
	return ok_end();
}
