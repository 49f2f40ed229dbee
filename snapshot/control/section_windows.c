/* The section of a recording: the sizes of its rings, and its mapping in the target. Words of the
 * tracer's area are written both to the target and to the copy in `*tracee`. */
#include "snapshot/control/tracee_windows.h"

#include <stddef.h>
#include <string.h>

#include "snapshot/live/nt_windows.h"

/* A ring must have room for all events while hsnap is not scheduled: about 30 ms of one thread's
 * events. Threads that find no free ring share one ring. */
#define EVENTS_LOG2_USUAL 17u
#define RINGS_ENOUGH 16u

static uint32_t rings_in(uint64_t limit_bytes, uint32_t events_log2)
{
	uint32_t count = RING_COUNT_MAX;

	while (count > 1 && ring_area_bytes(count, events_log2) > limit_bytes)
		count--;
	return count;
}

/* Chooses as many rings of the usual size as fit, or smaller rings if these would be too few. */
static void choose_sizes(struct ring_section *section, uint64_t limit_bytes)
{
	section->events_log2 = EVENTS_LOG2_USUAL;
	while (section->events_log2 > RING_LOG2_MIN &&
		rings_in(limit_bytes, section->events_log2) < RINGS_ENOUGH)
		section->events_log2--;
	section->ring_count = rings_in(limit_bytes, section->events_log2);
}

int ring_section_init(
	struct ring_section *section, uint64_t limit_bytes, uint32_t flags, struct err *err)
{
	uint64_t bytes;

	*section = (struct ring_section){0};
	choose_sizes(section, limit_bytes);
	bytes = ring_area_bytes(section->ring_count, section->events_log2);
	section->handle = CreateFileMappingW(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE,
		(DWORD)(bytes >> 32), (DWORD)bytes, NULL);
	if (section->handle)
		section->area = MapViewOfFile(section->handle, FILE_MAP_WRITE, 0, 0, 0);
	if (!section->area)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	ring_area_init(section->area, section->ring_count, section->events_log2, flags);
	return 0;
}

void ring_section_release(struct ring_section *section)
{
	if (section->area)
		UnmapViewOfFile(section->area);
	if (section->handle)
		CloseHandle(section->handle);
	*section = (struct ring_section){0};
}

static bool is_running(uint32_t tid, uint32_t pid)
{
	HANDLE thread = OpenThread(SYNCHRONIZE | THREAD_QUERY_LIMITED_INFORMATION, FALSE, tid);
	bool runs;

	if (!thread)
		return GetLastError() != ERROR_INVALID_PARAMETER; /* no thread has this id */
	runs = GetProcessIdOfThread(thread) == pid &&
	       WaitForSingleObject(thread, 0) == WAIT_TIMEOUT;
	CloseHandle(thread);
	return runs;
}

void ring_section_reclaim(const struct ring_section *section, uint32_t pid)
{
	for (uint32_t i = RING_SHARED + 1; i < section->ring_count; i++) {
		struct ring *ring = &section->area->rings[i];
		uint32_t owner = __atomic_load_n(&ring->owner, __ATOMIC_ACQUIRE);

		if (owner && !is_running(owner, pid))
			ring_release(ring);
	}
}

#define FIELD(name) offsetof(struct tracer_area, name)

/* Writes one word of the area, both in the target and in `*tracee`. */
static bool set_word(struct tracee *tracee, size_t offset, uint64_t value)
{
	memcpy((char *)&tracee->area + offset, &value, sizeof(value));
	return tracee_write(tracee, tracee->area_addr + offset, &value, sizeof(value));
}

/* Duplicates a handle of hsnap's process into the target. With it, a thread that waits for room in
 * a ring notices that hsnap has exited. */
static bool share_process(struct tracee *tracee)
{
	HANDLE theirs = NULL;

	return DuplicateHandle(GetCurrentProcess(), GetCurrentProcess(), tracee->process, &theirs,
		       SYNCHRONIZE, FALSE, 0) &&
	       set_word(tracee, FIELD(rings_process), (ULONG_PTR)theirs);
}

int ring_section_map(const struct ring_section *section, struct tracee *tracee, struct err *err)
{
	void *view = NULL;
	SIZE_T bytes = 0;

	if (NtMapViewOfSection(section->handle, tracee->process, &view, 0, 0, NULL, &bytes,
		    NT_VIEW_UNMAP, 0, PAGE_READWRITE) < 0)
		return err_set(err, ERR_INJECT, tracee->target->name,
			"no address space for the rings of a recording");
	/* Record the view immediately, so that it is always unmapped later. */
	if (!set_word(tracee, FIELD(rings_view), (ULONG_PTR)view)) {
		NtUnmapViewOfSection(tracee->process, view);
		tracee->area.rings_view = 0;
		return err_set(
			err, ERR_INJECT, tracee->target->name, "its memory cannot be written");
	}
	if (!share_process(tracee))
		return err_set(err, ERR_INJECT, tracee->target->name,
			"handles cannot be duplicated into it");
	return 0;
}

int ring_section_start(struct tracee *tracee, struct err *err)
{
	if (set_word(tracee, FIELD(rings), tracee->area.rings_view))
		return 0;
	return err_set(err, ERR_INJECT, tracee->target->name, "its memory cannot be written");
}

int ring_section_stop(struct tracee *tracee, struct err *err)
{
	if (set_word(tracee, FIELD(rings), 0))
		return 0;
	return err_set(err, ERR_INJECT, tracee->target->name, "its memory cannot be written");
}

bool ring_section_is_read(const struct tracee *tracee)
{
	HANDLE reader = NULL;
	bool is_read =
		tracee->area.rings && tracee->area.rings_process &&
		DuplicateHandle(tracee->process, (HANDLE)(ULONG_PTR)tracee->area.rings_process,
			GetCurrentProcess(), &reader, SYNCHRONIZE, FALSE, 0) &&
		WaitForSingleObject(reader, 0) == WAIT_TIMEOUT;

	if (reader)
		CloseHandle(reader);
	return is_read;
}

/* Returns true if a mapped section that is not an image begins at this address. */
static bool is_view(const struct tracee *tracee, uint64_t addr)
{
	MEMORY_BASIC_INFORMATION info;
	void *at = (void *)(ULONG_PTR)addr;

	return VirtualQueryEx(tracee->process, at, &info, sizeof(info)) == sizeof(info) &&
	       info.AllocationBase == at && info.Type == MEM_MAPPED;
}

void ring_section_unmap(struct tracee *tracee)
{
	uint64_t view = tracee->area.rings_view, process = tracee->area.rings_process;

	/* Forget the view before unmapping it. If hsnap is terminated in between, the mapping is
	 * only lost. In the opposite order, a later hsnap might unmap memory that belongs to the
	 * program. */
	if (!view || !set_word(tracee, FIELD(rings), 0) || !set_word(tracee, FIELD(rings_view), 0))
		return;
	if (is_view(tracee, view))
		NtUnmapViewOfSection(tracee->process, (void *)(ULONG_PTR)view);
	if (process && set_word(tracee, FIELD(rings_process), 0))
		DuplicateHandle(tracee->process, (HANDLE)(ULONG_PTR)process, NULL, NULL, 0, FALSE,
			DUPLICATE_CLOSE_SOURCE);
}
