/*
 * Removes the tracer: removes the jumps while all threads are held, and frees the tables and rings
 * when no thread can use them any more. A thread's stack shows whether the thread may be in a hook.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/os.h"
#include "snapshot/control/threads_windows.h"
#include "snapshot/control/tracee_windows.h"
#include "snapshot/live/nt_windows.h"

#define PIECE_BYTES ((size_t)1 << 16)
#define STACK_BYTES_MAX ((uint64_t)1 << 28) /* larger stacks are not searched */
#define POINTER sizeof(void *)

/* Result of NtQueryInformationThread(), class 0. Sources: Windows SDK pages of that function, and
 * phnt, ntpsapi.h. */
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

/* Returns the upper end of the thread's stack, or 0 if it is not known. */
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

/* Returns the end of the memory around `addr`, for a stack that is not recorded in the thread's
 * TEB. */
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

/* Returns true if the thread may be in a hook, or in a function called by a hook. Also returns true
 * if the stack still contains traces of an earlier call, or if it cannot be checked. */
static bool may_be_inside(const struct tracee *tracee, const struct held_thread *thread)
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
	inside = !piece || is_on_stack(tracee, from, end, piece);
	free(piece);
	return inside;
}

/* Returns true if the thread is in the tracer's own code, or in a system call made by that code.
 * During such a call, ntdll's function has pushed nothing on x64, and one return address on x86. */
static bool is_in_code(const struct tracee *tracee, const struct held_thread *thread)
{
	unsigned char top[8];

	return is_tracers(tracee, thread->ip) ||
	       target_read(tracee->target, thread->sp, top, sizeof(top)) ||
	       has_tracers(tracee, top, sizeof(top));
}

/*
 * Threads that may still use the memory to be freed. Once a thread was seen outside the tracer, it
 * cannot start using the memory again, so it is removed from this list. Waiting for a moment at
 * which all threads are outside could take forever.
 */
struct users {
	DWORD *ids;
	size_t count;
};

static bool users_begin(struct users *users, const struct threads *threads)
{
	users->ids = calloc(threads->count + 1, sizeof(*users->ids));
	for (size_t i = 0; users->ids && i < threads->count; i++)
		users->ids[users->count++] = threads->items[i].id;
	return users->ids;
}

/* Removes the threads that are now outside. */
static void users_look(struct users *users, const struct tracee *tracee,
	const struct threads *threads,
	bool (*is_there)(const struct tracee *tracee, const struct held_thread *thread))
{
	size_t count = 0;

	for (size_t k = 0; k < users->count; k++) {
		size_t i = 0;

		while (i < threads->count && threads->items[i].id != users->ids[k])
			i++;
		if (i < threads->count && is_there(tracee, &threads->items[i]))
			users->ids[count++] = users->ids[k];
	}
	users->count = count;
}

#define PATIENCE_MS 5000
#define DRAIN_MS 250
#define PAUSE_MS 20 /* pause between two holds */
#define AGAIN 1
#define WRITE_TRIES 2

/* Checks that each function has its original bytes or the tracer's jump. */
static int check_jumps(const struct tracee *tracee, struct err *err)
{
	for (int i = 0; i < HOOK_COUNT; i++) {
		enum tracee_jump jump = tracee_jump(tracee, i);

		if (jump == JUMP_UNREADABLE)
			return target_err(tracee->target, tracee->area.hooks[i].function,
				tracee_function_name(i), err);
		if (jump == JUMP_FOREIGN)
			return err_set(err, ERR_BUSY, tracee->target->name,
				"another program has since changed %s", tracee_function_name(i));
	}
	return 0;
}

/* Removes the jumps. All threads are held. The caller has checked that no function has another
 * program's jump. A jump that cannot be read therefore counts as the tracer's. */
static int remove_jumps(struct tracee *tracee, struct err *err)
{
	const char *left = "";

	for (int tries = 0; left && tries < WRITE_TRIES; tries++) {
		left = NULL;
		for (int i = HOOK_COUNT - 1; i >= 0; i--) {
			enum tracer_hook_id id = tracee_hook_order[i];

			if (tracee_jump(tracee, id) != JUMP_OUT && !tracee_patch(tracee, id, false))
				left = tracee_function_name(id);
		}
	}
	if (left)
		return err_set(err, ERR_SYSTEM, tracee->target->name, "%s cannot be written", left);
	if (!tracee_set_state(tracee, TRACER_OFF))
		return err_set(
			err, ERR_SYSTEM, tracee->target->name, "its memory cannot be written");
	return 0;
}

/*
 * Tries once to free memory. Without jumps, no thread enters a hook. A hook no longer uses the
 * tables after the function that it called has returned. `is_drained` is true if enough time has
 * passed since the first try. Then only threads in the tracer's own code prevent the freeing; they
 * leave that code quickly. Before that, any thread in a hook prevents the freeing.
 */
static int free_once(struct tracee *tracee, struct threads *threads, struct users *users,
	void (*give_back)(struct tracee *tracee), bool is_drained, struct err *err)
{
	int rc = threads_hold(threads, err);

	if (rc)
		return rc;
	if (!users->ids && !users_begin(users, threads))
		return err_set(err, ERR_NOMEM, tracee->target->name, NULL);
	users_look(users, tracee, threads, is_drained ? is_in_code : may_be_inside);
	threads_let_go(threads);
	if (users->count) {
		err_set(err, ERR_BUSY, tracee->target->name,
			"its thread %lu has not left the tracer since it was switched off",
			users->ids[0]);
		return AGAIN;
	}
	give_back(tracee);
	return 0;
}

static int free_in_time(struct tracee *tracee, void (*give_back)(struct tracee *tracee),
	int drain_ms, struct err *err)
{
	int64_t from = os_clock_ms(), now = from;
	struct users users = {0};
	struct threads threads;
	int rc;

	threads_init(&threads, tracee->process, tracee->target->name);
	while ((rc = free_once(tracee, &threads, &users, give_back, now - from >= drain_ms, err)) ==
			AGAIN &&
		now - from < PATIENCE_MS) {
		WaitForSingleObject(tracee->process, PAUSE_MS);
		now = os_clock_ms();
	}
	free(users.ids);
	threads_release(&threads);
	return rc == AGAIN ? -ERR_BUSY : rc;
}

int remove_rest(struct tracee *tracee, struct err *err)
{
	return tracee->area.reserved ? free_in_time(tracee, tracee_free_tables, DRAIN_MS, err) : 0;
}

/* Removes the rings. This need not wait for threads in functions called by hooks, because such a
 * thread never holds a ring. */
int remove_rings(struct tracee *tracee, struct err *err)
{
	int rc = tracee->area.rings_view ? ring_section_stop(tracee, err) : 0;

	return rc || !tracee->area.rings_view ? rc :
						free_in_time(tracee, ring_section_unmap, 0, err);
}

static bool is_anybody_inside(const struct tracee *tracee, const struct threads *threads)
{
	for (size_t i = 0; i < threads->count; i++) {
		if (may_be_inside(tracee, &threads->items[i]))
			return true;
	}
	return false;
}

/* Returns true if private memory (not an image) was reserved at this address. */
static bool is_reservation(const struct tracee *tracee, uint64_t addr)
{
	MEMORY_BASIC_INFORMATION info;
	void *at = (void *)(ULONG_PTR)addr;

	return VirtualQueryEx(tracee->process, at, &info, sizeof(info)) == sizeof(info) &&
	       info.AllocationBase == at && info.Type == MEM_PRIVATE;
}

void tracee_free_tables(struct tracee *tracee)
{
	uint64_t none[2] = {0};
	uint64_t reserved = tracee->area.reserved;

	if (!reserved)
		return;
	ring_section_unmap(tracee);
	/* Clear the record of this memory before freeing the memory. If hsnap is terminated in
	 * between, the memory is only lost. In the opposite order, a later hsnap would free it
	 * again, when it might already have another owner. */
	if (!tracee_write(tracee, tracee->area_addr + offsetof(struct tracer_area, reserved), none,
		    sizeof(none)))
		return;
	tracee->area.reserved = tracee->area.reserved_bytes = 0;
	if (is_reservation(tracee, reserved))
		VirtualFreeEx(tracee->process, (void *)(ULONG_PTR)reserved, 0, MEM_RELEASE);
}

static int remove_on(struct tracee *tracee, struct err *err)
{
	struct threads threads;
	bool may_be_used = true;
	int rc;

	threads_init(&threads, tracee->process, tracee->target->name);
	rc = threads_hold(&threads, err);
	if (!rc)
		rc = check_jumps(tracee, err);
	if (!rc)
		rc = remove_jumps(tracee, err);
	if (!rc)
		may_be_used = is_anybody_inside(tracee, &threads);
	threads_release(&threads);
	if (!may_be_used)
		tracee_free_tables(tracee);
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
				tracee->area.state == TRACER_OFF ? "already detached" : NULL);
	}
	tracee_free(tracee);
	return rc;
}
