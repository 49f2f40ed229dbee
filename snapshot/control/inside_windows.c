#include "snapshot/control/inside_windows.h"

#include <stdlib.h>
#include <string.h>

#include "snapshot/control/frames_windows.h"
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
