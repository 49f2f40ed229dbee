#include <stdlib.h>
#include <string.h>

#include "core/base/os.h"
#include "snapshot/control/control_windows.h"
#include "snapshot/live/nt_windows.h"

#define PIECE_BYTES ((size_t)1 << 16)
#define STACK_BYTES_MAX ((uint64_t)1 << 28) /* larger ones are not looked through */
#define POINTER sizeof(void *)

/* The thread's own answer to NtQueryInformationThread(), class 0; Windows SDK pages of that function,
 * and phnt, ntpsapi.h. */
struct thread_basic_information {
	NTSTATUS exit_status;
	NT_TIB *teb;
	CLIENT_ID client_id;
	ULONG_PTR affinity_mask;
	LONG priority, base_priority;
};

static bool is_tracers(const struct tracee *tracee, uint64_t addr)
{
	struct tracee_range trampolines = {
		tracee->area.trampolines, tracee->area.trampolines_bytes};

	return tracee_is_in(&tracee->dll, addr) || tracee_is_in(&trampolines, addr);
}

/* Where the thread's stack begins, above what it uses; 0: not known. */
static uint64_t stack_base(const struct tracee *tracee, const struct held_thread *thread)
{
	struct thread_basic_information info;
	NT_TIB tib;

	if (NtQueryInformationThread(
		    thread->handle, (THREADINFOCLASS)0, &info, sizeof(info), NULL) < 0 ||
		target_read(tracee->target, (ULONG_PTR)info.teb, &tib, sizeof(tib)))
		return 0;
	return (ULONG_PTR)tib.StackBase;
}

/* On a stack that is not the one its thread's block names: all of that memory. */
static uint64_t memory_end(const struct tracee *tracee, uint64_t addr)
{
	MEMORY_BASIC_INFORMATION info;

	if (VirtualQueryEx(tracee->process, (void *)(ULONG_PTR)addr, &info, sizeof(info)) !=
		sizeof(info))
		return 0;
	return (ULONG_PTR)info.BaseAddress + info.RegionSize;
}

static bool has_tracers(const struct tracee *tracee, const unsigned char *bytes, size_t len)
{
	for (size_t i = 0; i + POINTER <= len; i += POINTER) {
		ULONG_PTR value;

		memcpy(&value, bytes + i, sizeof(value));
		if (is_tracers(tracee, value))
			return true;
	}
	return false;
}

static bool is_on_stack(
	const struct tracee *tracee, uint64_t from, uint64_t end, unsigned char *piece)
{
	while (from < end) {
		size_t len = end - from < PIECE_BYTES ? (size_t)(end - from) : PIECE_BYTES;

		if (target_read(tracee->target, from, piece, len) ||
			has_tracers(tracee, piece, len))
			return true;
		from += len;
	}
	return false;
}

struct visit {
	const struct tracee *tracee;
	bool found;
};

static bool look_for_tracers(void *ctx, uint64_t addr)
{
	struct visit *visit = ctx;

	visit->found = is_tracers(visit->tracee, addr);
	return visit->found;
}

/* Whether one of the values that look like it is a return address, as far as frames can be told. */
static bool is_in_frames(const struct tracee *tracee, const struct held_thread *thread,
	uint64_t from, uint64_t end, unsigned char *piece)
{
	struct frames *frames = frames_new(tracee->target, tracee->process);
	struct visit visit = {.tracee = tracee};
	uint64_t known =
		frames ? frames_walk(frames, thread->handle, end, look_for_tracers, &visit) : 0;

	frames_free(frames);
	return visit.found || is_on_stack(tracee, known > from ? known : from, end, piece);
}

bool inside_tracer(const struct tracee *tracee, const struct held_thread *thread)
{
	uint64_t from = thread->sp & ~(uint64_t)(POINTER - 1), end = stack_base(tracee, thread);
	unsigned char *piece;
	bool inside;

	if (is_tracers(tracee, thread->ip))
		return true;
	if (from >= end || end - from > STACK_BYTES_MAX)
		end = memory_end(tracee, from);
	if (from >= end || end - from > STACK_BYTES_MAX)
		return true;
	piece = malloc(PIECE_BYTES);
	inside = !piece || (is_on_stack(tracee, from, end, piece) &&
				   is_in_frames(tracee, thread, from, end, piece));
	free(piece);
	return inside;
}

#define PATIENCE_MS 5000
#define DRAIN_MS 500 /* so long a moment is looked for when nobody is inside */
#define PAUSE_MS 20 /* between two holds */
#define AGAIN 1

/* Each function is as it was, or as the tracer has made it. */
static int check_jumps(const struct tracee *tracee, struct err *err)
{
	for (int i = 0; i < HOOK_COUNT; i++) {
		enum tracee_jump jump = tracee_jump(tracee, i);

		if (jump == JUMP_UNREADABLE)
			return target_err(tracee->target, tracee->area.hooks[i].function,
				tracee_function_name(i), err);
		if (jump == JUMP_FOREIGN)
			return err_set(err, ERR_BUSY, tracee->target->name,
				"another program has changed %s since", tracee_function_name(i));
	}
	return 0;
}

/* Those that put blocks into the tables first: so none is there for long that is not live. */
static const enum tracer_hook_id order[] = {HOOK_ALLOCATE, HOOK_REALLOCATE, HOOK_CREATE_HEAP,
	HOOK_VIRTUAL_ALLOCATE, HOOK_VIRTUAL_ALLOCATE_EX, HOOK_MAP, HOOK_MAP_EX, HOOK_FREE,
	HOOK_DESTROY_HEAP, HOOK_VIRTUAL_FREE, HOOK_UNMAP, HOOK_UNMAP_EX, HOOK_TERMINATE,
	HOOK_CREATE_PROCESS};
_Static_assert(sizeof(order) / sizeof(*order) == HOOK_COUNT, "every hook");

/* With all threads held and none inside. */
static int take_out(struct tracee *tracee, struct err *err)
{
	for (int i = 0; i < HOOK_COUNT; i++) {
		if (tracee_jump(tracee, order[i]) == JUMP_IN &&
			!tracee_patch(tracee, order[i], false))
			return err_set(err, ERR_SYSTEM, tracee->target->name,
				"%s cannot be written", tracee_function_name(order[i]));
	}
	if (!tracee_set_state(tracee, TRACER_OFF))
		return err_set(err, ERR_SYSTEM, tracee->target->name, "it cannot be written");
	return 0;
}

/* Threads that have stood still inside the tracer since the first hold. */
struct waiting {
	struct held_thread *items;
	size_t count;
	bool is_begun;
};

static const struct held_thread *find(const struct threads *threads, DWORD id)
{
	for (size_t i = 0; i < threads->count; i++) {
		if (threads->items[i].id == id)
			return &threads->items[i];
	}
	return NULL;
}

/* Remembers who is inside. */
static int begin_waiting(
	struct waiting *waiting, const struct tracee *tracee, const struct threads *threads)
{
	waiting->items = calloc(threads->count + 1, sizeof(*waiting->items));
	if (!waiting->items)
		return -ERR_NOMEM;
	waiting->is_begun = true;
	for (size_t i = 0; i < threads->count; i++) {
		if (inside_tracer(tracee, &threads->items[i]))
			waiting->items[waiting->count++] = threads->items[i];
	}
	return 0;
}

static bool is_anybody_inside(const struct tracee *tracee, const struct threads *threads)
{
	for (size_t i = 0; i < threads->count; i++) {
		if (inside_tracer(tracee, &threads->items[i]))
			return true;
	}
	return false;
}

/* Forgets those that have moved, or are out. */
static void go_on_waiting(struct waiting *waiting, const struct threads *threads)
{
	size_t kept = 0;

	for (size_t i = 0; i < waiting->count; i++) {
		const struct held_thread *was = &waiting->items[i];
		const struct held_thread *is = find(threads, was->id);

		if (is && is->ip == was->ip && is->sp == was->sp)
			waiting->items[kept++] = *was;
	}
	waiting->count = kept;
}

/*
 * One hold. AGAIN: threads are inside, and may_drain is false or one of them does not move. With may_drain the
 * hooks are taken out while others are inside, who come out of them by themselves.
 */
static int try_once(struct tracee *tracee, struct threads *threads, struct waiting *waiting,
	bool may_drain, struct err *err)
{
	int rc = threads_hold(threads, err);

	if (rc)
		return rc;
	rc = check_jumps(tracee, err);
	if (!rc && waiting->is_begun)
		go_on_waiting(waiting, threads);
	else if (!rc && begin_waiting(waiting, tracee, threads))
		rc = err_set(err, ERR_NOMEM, tracee->target->name, NULL);
	if (!rc && (waiting->count || !may_drain) && is_anybody_inside(tracee, threads))
		rc = AGAIN;
	if (!rc)
		rc = take_out(tracee, err);
	threads_let_go(threads);
	return rc;
}

/* A program whose threads call hooked functions all the time is never seen without one inside: after
 * some time it is enough that none of them stays there. */
static int try_for_long(struct tracee *tracee, struct threads *threads, struct err *err)
{
	int64_t from = os_time_ms(), now = from;
	struct waiting waiting = {0};
	int rc;

	while ((rc = try_once(tracee, threads, &waiting, now - from > DRAIN_MS, err)) == AGAIN &&
		now - from < PATIENCE_MS) {
		WaitForSingleObject(tracee->process, PAUSE_MS);
		now = os_time_ms();
	}
	if (rc == AGAIN)
		rc = err_set(err, ERR_BUSY, tracee->target->name, "its thread %lu is in a hook",
			waiting.count ? waiting.items[0].id : 0);
	free(waiting.items);
	return rc;
}

/* What the tracer had is given back when nobody is in it any more. AGAIN: somebody is. */
static int free_once(struct tracee *tracee, struct threads *threads, struct err *err)
{
	int rc = threads_hold(threads, err);
	bool inside;

	if (rc)
		return rc;
	inside = is_anybody_inside(tracee, threads);
	threads_let_go(threads);
	/* Without a jump nobody gets in. */
	if (!inside)
		tracee_free_tables(tracee);
	return inside ? AGAIN : 0;
}

static int free_for_long(struct tracee *tracee, struct threads *threads, struct err *err)
{
	int64_t until = os_time_ms() + PATIENCE_MS;
	int rc;

	if (!tracee->area.reserved)
		return 0;
	while ((rc = free_once(tracee, threads, err)) == AGAIN && os_time_ms() < until)
		WaitForSingleObject(tracee->process, PAUSE_MS);
	if (rc == AGAIN)
		rc = err_set(err, ERR_BUSY, tracee->target->name,
			"it is not traced any more, but a thread is in a hook still, and the "
			"tables stay");
	return rc;
}

int remove_rest(struct tracee *tracee, struct err *err)
{
	struct threads threads;
	int rc;

	threads_init(&threads, tracee->process, tracee->target->name);
	rc = free_for_long(tracee, &threads, err);
	threads_release(&threads);
	return rc;
}

static int remove_on(struct tracee *tracee, struct err *err)
{
	struct threads threads;
	int rc;

	threads_init(&threads, tracee->process, tracee->target->name);
	rc = try_for_long(tracee, &threads, err);
	if (!rc)
		rc = free_for_long(tracee, &threads, err);
	threads_release(&threads);
	return rc;
}

int remove_tracer(struct target *target, void *process, uint64_t area_addr, struct err *err)
{
	struct tracee *tracee = NULL;
	int rc = tracee_new(&tracee, target, process, area_addr, err);

	if (rc)
		return rc;
	if (tracee->area.state == TRACER_ON) {
		rc = remove_on(tracee, err);
	} else {
		rc = remove_rest(tracee, err);
		if (!rc)
			rc = err_set(err, ERR_NOT_TRACED, target->name,
				tracee->area.state == TRACER_OFF ? "it was detached before" : NULL);
	}
	tracee_free(tracee);
	return rc;
}
