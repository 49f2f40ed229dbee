/*
 * thread_stacks: starts threads in all ways, and ends them in all ways. At each step it states, for each
 * function that starts threads, the number of live threads and the committed bytes of their stacks,
 * as VirtualQuery() reports them (stated.h).
 *
 * Step 1: three threads of start_early. They live until the program ends.
 * Step 2: all other ways to start and to end a thread.
 * Step 3: all threads of step 2 have ended.
 * Step 4: four threads of start_again, where others were.
 */
#include <process.h>

#include "tests/targets/stated.h"

#define MOST 8
#define THIS_PROCESS ((HANDLE)(LONG_PTR)-1)

/* phnt, ntpsapi.h */
typedef LONG(NTAPI *create_fn)(PHANDLE thread, ACCESS_MASK access, PVOID attributes, HANDLE process,
	PVOID start, PVOID argument, ULONG flags, SIZE_T zero_bits, SIZE_T commit, SIZE_T reserve,
	PVOID list);

struct attribute_list { /* PS_ATTRIBUTE_LIST with one attribute: phnt, ntpsapi.h */
	SIZE_T bytes;
	ULONG_PTR what;
	SIZE_T value_bytes;
	void **value;
	SIZE_T *returned;
};
#define ATTRIBUTE_TEB 0x10004u

struct worker {
	HANDLE handle;
	char *volatile on_stack; /* an address on its stack; NULL: the thread does not run yet */
	HANDLE done; /* event that ends it */
	unsigned long how; /* how the thread ends */
};

/* Threads that one function has started. */
struct starter {
	const char *name;
	size_t count;
	struct worker workers[MOST];
};

static HANDLE never, done, running;
static create_fn create_thread;
static struct starter early = {.name = "start_early"}, worker = {.name = "start_worker"},
		      ended = {.name = "start_ended"}, killed = {.name = "start_killed"},
		      suspended = {.name = "start_suspended"}, outside = {.name = "start_outside"},
		      native = {.name = "start_native"}, silent = {.name = "start_silent"},
		      crt = {.name = "start_crt"}, again = {.name = "start_again"};

enum { UNTIL_DONE, RETURN, EXIT, KILL_SELF };

static DWORD WINAPI work(void *arg)
{
	struct worker *self = arg;
	char here;
	HANDLE thread;

	self->on_stack = &here;
	SetEvent(running);
	if (self->how == EXIT)
		ExitThread(1);
	if (self->how == KILL_SELF) {
		DuplicateHandle(THIS_PROCESS, GetCurrentThread(), THIS_PROCESS, &thread, 0, FALSE,
			DUPLICATE_SAME_ACCESS);
		TerminateThread(thread, 1);
	}
	if (self->how == UNTIL_DONE)
		WaitForSingleObject(self->done, INFINITE);
	return 0;
}

static unsigned __stdcall crt_work(void *arg)
{
	return work(arg);
}

static struct worker *next(struct starter *starter, unsigned long how)
{
	struct worker *made = &starter->workers[starter->count++];

	*made = (struct worker){.done = starter == &early ? never : done, .how = how};
	return made;
}

/* Waits until a thread runs, or has ended if it ends by itself. */
static void started(struct worker *made)
{
	WaitForSingleObject(running, INFINITE);
	if (made->how != UNTIL_DONE)
		WaitForSingleObject(made->handle, INFINITE);
}

static NOINLINE void start_early(void)
{
	struct worker *made = next(&early, UNTIL_DONE);

	made->handle = step_leak(CreateThread(NULL, 0, work, made, 0, NULL));
	started(made);
}

static NOINLINE void start_worker(void)
{
	struct worker *made = next(&worker, UNTIL_DONE);

	made->handle = step_leak(CreateThread(NULL, 0, work, made, 0, NULL));
	started(made);
}

static NOINLINE void start_ended(unsigned long how)
{
	struct worker *made = next(&ended, how);

	made->handle = step_leak(CreateThread(NULL, 0, work, made, 0, NULL));
	started(made);
	ended.count--;
}

static NOINLINE void start_killed(void)
{
	struct worker *made = next(&killed, UNTIL_DONE);

	made->handle = step_leak(CreateThread(NULL, 0, work, made, 0, NULL));
	started(made);
	TerminateThread(made->handle, 1);
	WaitForSingleObject(made->handle, INFINITE);
	killed.count--;
}

/* Ends a thread from another process, which the tracer cannot see. */
static NOINLINE void start_outside(void)
{
	struct worker *made = next(&outside, UNTIL_DONE);
	STARTUPINFOA startup = {.cb = sizeof(startup)};
	PROCESS_INFORMATION info;
	char path[MAX_PATH], line[MAX_PATH + 50];
	DWORD tid;

	made->handle = step_leak(CreateThread(NULL, 0, work, made, 0, &tid));
	started(made);
	GetModuleFileNameA(NULL, path, sizeof(path));
	snprintf(line, sizeof(line), "\"%s\" %lu", path, tid);
	if (!CreateProcessA(path, line, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &info))
		ExitProcess(5);
	WaitForSingleObject(info.hProcess, INFINITE);
	WaitForSingleObject(made->handle, INFINITE);
	outside.count--;
}

/* Tries to end a thread through a handle that does not allow it. */
static void fail_to_end(const struct worker *made)
{
	HANDLE handle;

	DuplicateHandle(THIS_PROCESS, made->handle, THIS_PROCESS, &handle, SYNCHRONIZE, FALSE, 0);
	if (TerminateThread(handle, 1))
		ExitProcess(6);
	CloseHandle(handle);
}

static NOINLINE void start_suspended(void)
{
	struct worker *made = next(&suspended, UNTIL_DONE);

	made->handle = step_leak(CreateThread(NULL, 0, work, made, CREATE_SUSPENDED, NULL));
}

/* Starts a thread that is not suspended, as ntdll does. Without the attribute, Wine knows the TEB
 * only when the thread runs. */
static NOINLINE void start_native(void)
{
	struct worker *made = next(&native, UNTIL_DONE);
	void *teb = NULL;
	struct attribute_list list = {sizeof(list), ATTRIBUTE_TEB, sizeof(teb), &teb, NULL};

	create_thread(&made->handle, THREAD_ALL_ACCESS, NULL, THIS_PROCESS, (PVOID)work, made, 0, 0,
		0, 0, &list);
	started(made);
}

/* Starts a thread whose handle does not allow resuming it. The tracer cannot see its stack. */
static NOINLINE void start_silent(void)
{
	struct worker *made = next(&silent, UNTIL_DONE);

	create_thread(&made->handle, SYNCHRONIZE, NULL, THIS_PROCESS, (PVOID)work, made, 0, 0, 0, 0,
		NULL);
	started(made);
}

static NOINLINE void start_crt(void)
{
	struct worker *made = next(&crt, UNTIL_DONE);

	made->handle = (HANDLE)_beginthreadex(NULL, 0, crt_work, made, 0, NULL);
	started(made);
}

static NOINLINE void start_again(void)
{
	struct worker *made = next(&again, UNTIL_DONE);

	made->handle = step_leak(CreateThread(NULL, 0, work, made, 0, NULL));
	started(made);
}

static const char *stack_of(const struct worker *made)
{
	CONTEXT context = {.ContextFlags = CONTEXT_CONTROL};

	if (made->on_stack)
		return made->on_stack;
	if (!GetThreadContext(made->handle, &context))
		ExitProcess(4);
#ifdef _WIN64
	return (const char *)context.Rsp;
#else
	return (const char *)context.Esp;
#endif
}

static unsigned long committed(const char *stack)
{
	MEMORY_BASIC_INFORMATION info;
	unsigned long bytes = 0;
	const char *at, *base;

	VirtualQuery(stack, &info, sizeof(info));
	base = info.AllocationBase;
	for (at = base; VirtualQuery(at, &info, sizeof(info)) && info.AllocationBase == base;
		at += info.RegionSize)
		bytes += info.State == MEM_COMMIT ? (unsigned long)info.RegionSize : 0;
	return bytes;
}

static void state_starter(const struct starter *starter)
{
	unsigned long bytes = 0;

	for (size_t i = 0; i < starter->count; i++)
		bytes += committed(stack_of(&starter->workers[i]));
	state("sum %s %lu %u\n", starter->name, bytes, (unsigned)starter->count);
}

static void end_all(struct starter *starter)
{
	for (size_t i = 0; i < starter->count; i++) {
		if (starter == &suspended)
			ResumeThread(starter->workers[i].handle);
		WaitForSingleObject(starter->workers[i].handle, INFINITE);
	}
	starter->count = 0;
}

int main(int argc, char **argv)
{
	static struct starter *const starters[] = {&early, &worker, &ended, &killed, &suspended,
		&outside, &native, &silent, &crt, &again};
	const size_t count = sizeof(starters) / sizeof(*starters);

	if (argc > 1)
		return !TerminateThread(
			OpenThread(THREAD_TERMINATE, FALSE, strtoul(argv[1], NULL, 10)), 1);
	create_thread = (create_fn)(void *)GetProcAddress(
		GetModuleHandleA("ntdll.dll"), "NtCreateThreadEx");
	running = CreateEventW(NULL, FALSE, FALSE, NULL);
	never = CreateEventW(NULL, TRUE, FALSE, NULL);
	done = CreateEventW(NULL, TRUE, FALSE, NULL);
	for (unsigned long step = 1;; step++) {
		if (step == 1) {
			for (volatile int i = 0; i < 3; i++)
				start_early();
		} else if (step == 2) {
			for (volatile int i = 0; i < 5; i++)
				start_worker();
			fail_to_end(&worker.workers[0]);
			for (volatile int i = 0; i < 6; i++)
				start_ended((unsigned long)i % 3 + 1);
			start_killed();
			start_outside();
			start_suspended();
			for (volatile int i = 0; i < 2; i++)
				start_native();
			start_silent();
			for (volatile int i = 0; i < 2; i++)
				start_crt();
			state("chain start_worker main\n");
		} else if (step == 3) {
			SetEvent(done);
			for (size_t i = 1; i < count; i++)
				end_all(starters[i]);
			ResetEvent(done);
		} else if (step == 4) {
			for (volatile int i = 0; i < 4; i++)
				start_again();
		}
		for (size_t i = 0; i < count; i++)
			state_starter(starters[i]);
		if (!state_step(step))
			return 0;
	}
}
