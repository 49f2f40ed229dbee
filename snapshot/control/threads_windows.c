#include <stdlib.h>

#include <windows.h>
#include <tlhelp32.h>

#include "core/base/memory.h"
#include "core/base/os_windows.h"
#include "core/pe/pe.h"
#include "snapshot/control/control_windows.h"
#include "snapshot/control/patch_plan.h"
#include "snapshot/live/nt_windows.h"
#include "snapshot/live/process.h"

#define FRAMES_MAX 2000
#define FUNCTIONS_BYTES_MAX ((uint32_t)1 << 24)

struct image {
	uint64_t base;
	struct unwind_function *functions; /* by address */
	size_t count;
};

struct frames {
	struct target *target;
	HANDLE process;
	struct image *images;
	size_t count, cap;
};

struct frames *frames_new(struct target *target, HANDLE process)
{
	struct frames *frames = target->bits == 64 ? calloc(1, sizeof(*frames)) : NULL;

	if (frames) {
		frames->target = target;
		frames->process = process;
	}
	return frames;
}

void frames_free(struct frames *frames)
{
	if (!frames)
		return;
	for (size_t i = 0; i < frames->count; i++)
		free(frames->images[i].functions);
	free(frames->images);
	free(frames);
}

#if defined(_WIN64)

/* The base of the image that addr is in; 0: in none. */
static uint64_t image_of(const struct frames *frames, uint64_t addr)
{
	MEMORY_BASIC_INFORMATION info;

	if (VirtualQueryEx(frames->process, (void *)(ULONG_PTR)addr, &info, sizeof(info)) !=
			sizeof(info) ||
		info.State != MEM_COMMIT || info.Type != MEM_IMAGE)
		return 0;
	return (ULONG_PTR)info.AllocationBase;
}

/* Reads an image's table of functions, in the order that it has to have. */
static bool read_functions(const struct frames *frames, struct image *image)
{
	struct target_image at = {frames->target, image->base};
	struct pe_source source = target_image_source(&at);
	struct pe_image *headers = malloc(sizeof(*headers));
	uint32_t bytes = 0;
	bool ok = headers && !pe_read_headers(&source, headers);

	if (ok)
		bytes = headers->exceptions.size_bytes;
	ok = ok && bytes && bytes <= FUNCTIONS_BYTES_MAX;
	image->count = bytes / sizeof(*image->functions);
	image->functions = ok ? malloc(bytes) : NULL;
	ok = image->functions && !target_read(frames->target, image->base + headers->exceptions.rva,
					 image->functions, bytes);
	for (size_t i = 1; ok && i < image->count; i++)
		ok = image->functions[i].begin >= image->functions[i - 1].begin;
	free(headers);
	return ok;
}

/* NULL: it has no such table, or a damaged one, or there is no memory. */
static const struct image *find_image(struct frames *frames, uint64_t addr)
{
	struct image image = {.base = image_of(frames, addr)};

	if (!image.base)
		return NULL;
	for (size_t i = 0; i < frames->count; i++) {
		if (frames->images[i].base == image.base)
			return &frames->images[i];
	}
	if (!read_functions(frames, &image) || array_grow((void **)&frames->images, &frames->cap,
						       frames->count, sizeof(*frames->images))) {
		free(image.functions);
		return NULL;
	}
	frames->images[frames->count] = image;
	return &frames->images[frames->count++];
}

static const struct unwind_function *find_function(const struct image *image, uint64_t addr)
{
	uint64_t rva = addr - image->base;
	size_t low = 0, high = image->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (image->functions[middle].end <= rva)
			low = middle + 1;
		else
			high = middle;
	}
	return low < image->count && image->functions[low].begin <= rva ? &image->functions[low] :
									  NULL;
}

static bool read(void *ctx, uint64_t addr, void *bytes, size_t len)
{
	return !target_read(ctx, addr, bytes, len);
}

static bool get_registers(HANDLE thread, struct unwind_registers *registers)
{
	CONTEXT context = {.ContextFlags = CONTEXT_FULL};
	/* Rax to R15 follow one another, as instructions number them. */
	const DWORD64 *general = &context.Rax;

	if (!GetThreadContext(thread, &context))
		return false;
	registers->ip = context.Rip;
	for (int i = 0; i < 16; i++)
		registers->general[i] = general[i];
	return true;
}

/* One step; false when there is doubt about it. */
static bool step(struct frames *frames, bool is_innermost, struct unwind_registers *registers)
{
	const struct image *image = find_image(frames, registers->ip);
	struct unwind_source source = {.read = read, .ctx = frames->target};

	if (!image)
		return false;
	source.image = image->base;
	return unwind_step(&source, find_function(image, registers->ip), is_innermost, registers);
}

uint64_t frames_walk(struct frames *frames, HANDLE thread, uint64_t end,
	bool (*visit)(void *ctx, uint64_t addr), void *ctx)
{
	struct unwind_registers registers;
	uint64_t known;

	if (!get_registers(thread, &registers))
		return 0;
	known = registers.general[UNWIND_RSP];
	for (int i = 0; i < FRAMES_MAX; i++) {
		uint64_t sp;

		if (!step(frames, i == 0, &registers))
			break;
		sp = registers.general[UNWIND_RSP];
		if (sp <= known || sp > end)
			break;
		known = sp;
		if (visit(ctx, registers.ip))
			break;
		if (!registers.ip) /* the thread began here */
			return end;
	}
	return known;
}

#else

uint64_t frames_walk(struct frames *frames, HANDLE thread, uint64_t end,
	bool (*visit)(void *ctx, uint64_t addr), void *ctx)
{
	(void)frames;
	(void)thread;
	(void)end;
	(void)visit;
	(void)ctx;
	return 0;
}

#endif

#define TRIES 100 /* to find the same threads twice */
#define RIGHTS (THREAD_GET_CONTEXT | THREAD_SET_CONTEXT | THREAD_QUERY_INFORMATION | SYNCHRONIZE)
#define PATIENCE_MS 30000 /* with another hsnap */
#define PAUSE_MS 10
#define AGAIN 1 /* threads have come or gone meanwhile */

#if defined(_WIN64)
#define CONTEXT_IP Rip
#define CONTEXT_SP Rsp
#else
#define CONTEXT_IP Eip
#define CONTEXT_SP Esp
#endif

void threads_init(struct threads *threads, HANDLE process, const char *name)
{
	*threads = (struct threads){.process = process, .name = name};
}

static void forget(struct threads *threads)
{
	for (size_t i = 0; i < threads->count; i++) {
		if (threads->items[i].handle)
			CloseHandle(threads->items[i].handle);
	}
	threads->count = 0;
}

static int system_err(const struct threads *threads, const char *what, struct err *err)
{
	char text[300];

	return err_set(err, ERR_SYSTEM, threads->name, "%s: %s", what,
		windows_error(GetLastError(), text, sizeof(text)));
}

/* Calls each() for every thread of the process; 0, or what each() returned, or -ERR_SYSTEM. */
static int for_each(
	HANDLE process, int (*each)(void *ctx, size_t index, DWORD id), void *ctx, size_t *count)
{
	HANDLE all = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
	THREADENTRY32 entry = {.dwSize = sizeof(entry)};
	DWORD pid = GetProcessId(process);
	int rc = 0;

	*count = 0;
	if (all == INVALID_HANDLE_VALUE)
		return -ERR_SYSTEM;
	for (BOOL more = Thread32First(all, &entry); more && !rc;
		more = Thread32Next(all, &entry)) {
		if (entry.th32OwnerProcessID == pid)
			rc = each(ctx, (*count)++, entry.th32ThreadID);
	}
	CloseHandle(all);
	return rc;
}

static int only_count(void *ctx, size_t index, DWORD id)
{
	(void)ctx;
	(void)index;
	(void)id;
	return 0;
}

size_t threads_count(HANDLE process)
{
	size_t count;

	return for_each(process, only_count, NULL, &count) ? 0 : count;
}

static int add(void *ctx, size_t index, DWORD id)
{
	struct threads *threads = ctx;

	if (array_grow((void **)&threads->items, &threads->cap, index, sizeof(*threads->items)))
		return -ERR_NOMEM;
	threads->items[index] = (struct held_thread){.id = id};
	threads->count = index + 1;
	return 0;
}

static int compare(void *ctx, size_t index, DWORD id)
{
	const struct threads *threads = ctx;

	return index < threads->count && threads->items[index].id == id ? 0 : AGAIN;
}

/* Asking for its registers also waits until it has really stopped. */
static int look_at(struct threads *threads, struct held_thread *thread, struct err *err)
{
	CONTEXT context = {.ContextFlags = CONTEXT_CONTROL};
	char what[60];

	thread->handle = OpenThread(RIGHTS, FALSE, thread->id);
	if (!thread->handle && GetLastError() == ERROR_INVALID_PARAMETER)
		return AGAIN;
	if (thread->handle && GetThreadContext(thread->handle, &context)) {
		thread->ip = context.CONTEXT_IP;
		thread->sp = context.CONTEXT_SP;
		return 0;
	}
	if (thread->handle && WaitForSingleObject(thread->handle, 0) == WAIT_OBJECT_0)
		return AGAIN;
	snprintf(what, sizeof(what), "its thread %lu cannot be looked at", thread->id);
	return err_set(err, ERR_RIGHTS, threads->name, "%s", what);
}

/* 0 when every thread has been looked at and none has come or gone since. */
static int look(struct threads *threads, struct err *err)
{
	size_t count = 0;
	int rc = for_each(threads->process, add, threads, &count);

	if (rc == -ERR_NOMEM)
		return err_set(err, ERR_NOMEM, threads->name, NULL);
	if (rc)
		return system_err(threads, "its threads", err);
	for (size_t i = 0; i < threads->count && !rc; i++)
		rc = look_at(threads, &threads->items[i], err);
	if (!rc)
		rc = for_each(threads->process, compare, threads, &count);
	return rc == -ERR_SYSTEM	     ? system_err(threads, "its threads", err) :
	       !rc && count < threads->count ? AGAIN :
					       rc;
}

static int suspend(struct threads *threads, struct err *err)
{
	NTSTATUS status;

	guard_arm(threads->guard);
	status = NtSuspendProcess(threads->process);
	if (status >= 0) {
		threads->is_held = true;
		return 0;
	}
	guard_disarm(threads->guard);
	if (WaitForSingleObject(threads->process, 0) == WAIT_OBJECT_0)
		return err_set(err, ERR_GONE, threads->name, NULL);
	return err_set(err, ERR_RIGHTS, threads->name, "status %08lX", (unsigned long)status);
}

/* Waits until neither another hsnap nor a helper of one is at it. */
static bool take_turn(struct threads *threads)
{
	SECURITY_ATTRIBUTES inherit = {.nLength = sizeof(inherit), .bInheritHandle = TRUE};
	wchar_t name[60];

	_snwprintf(name, 60, L"Local\\hsnap-hold-%lu", GetProcessId(threads->process));
	for (int waited_ms = 0; waited_ms < PATIENCE_MS; waited_ms += PAUSE_MS) {
		HANDLE turn = CreateEventW(&inherit, TRUE, FALSE, name);
		DWORD code = GetLastError();

		if (turn && code != ERROR_ALREADY_EXISTS) {
			threads->turn = turn;
			return true;
		}
		if (!turn && code != ERROR_ACCESS_DENIED)
			return false;
		if (turn)
			CloseHandle(turn);
		WaitForSingleObject(threads->process, PAUSE_MS);
	}
	return false;
}

static int begin(struct threads *threads, struct err *err)
{
	if (!threads->turn && !take_turn(threads))
		return err_set(err, ERR_BUSY, threads->name, "another hsnap is at it");
	if (!threads->guard)
		threads->guard = guard_start_keeping(threads->process, threads->turn);
	if (!threads->guard)
		return system_err(threads, "the helper that would continue it", err);
	return 0;
}

int threads_hold(struct threads *threads, struct err *err)
{
	int begun = begin(threads, err);

	if (begun)
		return begun;
	for (int i = 0; i < TRIES; i++) {
		int rc = suspend(threads, err);

		if (!rc)
			rc = look(threads, err);
		if (!rc)
			return 0;
		threads_let_go(threads);
		if (rc != AGAIN)
			return rc;
		if (WaitForSingleObject(threads->process, 1) == WAIT_OBJECT_0)
			return err_set(err, ERR_GONE, threads->name, NULL);
	}
	return err_set(err, ERR_SYSTEM, threads->name, "it begins and ends threads all the time");
}

void threads_let_go(struct threads *threads)
{
	forget(threads);
	if (!threads->is_held)
		return;
	NtResumeProcess(threads->process);
	threads->is_held = false;
	guard_disarm(threads->guard);
}

void threads_release(struct threads *threads)
{
	threads_let_go(threads);
	guard_stop(threads->guard);
	if (threads->turn)
		CloseHandle(threads->turn);
	free(threads->items);
	*threads = (struct threads){0};
}

bool threads_move(struct held_thread *thread, uint64_t ip)
{
	CONTEXT context = {.ContextFlags = CONTEXT_CONTROL};

	if (!GetThreadContext(thread->handle, &context))
		return false;
	context.CONTEXT_IP = (ULONG_PTR)ip;
	if (!SetThreadContext(thread->handle, &context))
		return false;
	thread->ip = ip;
	return true;
}
