/* A recording's rings in another process. They contain all calls that its threads report. The
 * process continues when the reader ends. After the tracer is removed, no part of the rings
 * remains. Prints TAP. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/win/tap.h"
#include "tests/win/traced_again.h"

#define SECTION_BYTES ((uint64_t)4 << 20)

/* ---------------------------------------------------------------- the target */

#define THREADS 4u
#define ROUNDS 5000u
#define KEPT 7u
#define BYTES 7770u /* sizes used only here */
#define BYTES_LARGER (BYTES + 1)
#define BYTES_KEPT (BYTES + 2)
#define BYTES_IN_HEAP (BYTES + 3)
#define BYTES_OLD 100000u
#define BYTES_OLD_LARGER 300000u
#define BYTES_VIRTUAL ((uint64_t)0x54000)

/* Two blocks that are older than the tracer. */
static void *old_blocks[2];

static DWORD WINAPI work(void *unused)
{
	static LONG has_begun;
	HANDLE heap = GetProcessHeap(), own;

	(void)unused;
	if (!InterlockedExchange(&has_begun, 1)) {
		HeapFree(heap, 0, old_blocks[0]);
		(void)HeapReAlloc(heap, 0, old_blocks[1], BYTES_OLD_LARGER);
	}
	for (unsigned i = 0; i < ROUNDS; i++) {
		void *block = HeapAlloc(heap, 0, BYTES);

		block = HeapReAlloc(heap, 0, block, BYTES_LARGER);
		HeapFree(heap, 0, block);
	}
	for (unsigned i = 0; i < KEPT; i++)
		(void)HeapAlloc(heap, 0, BYTES_KEPT);
	own = HeapCreate(0, 0, 0);
	for (unsigned i = 0; i < KEPT; i++)
		(void)HeapAlloc(own, 0, BYTES_IN_HEAP);
	HeapDestroy(own);
	VirtualFree(VirtualAlloc(NULL, BYTES_VIRTUAL, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE), 0,
		MEM_RELEASE);
	return 0;
}

static int be_target(HANDLE ready, HANDLE end, HANDLE to_work, HANDLE worked)
{
	HANDLE threads[THREADS];

	if (!traced_load_dll())
		return 3;
	for (unsigned i = 0; i < 2; i++)
		old_blocks[i] = HeapAlloc(GetProcessHeap(), 0, BYTES_OLD);
	SetEvent(ready);
	WaitForSingleObject(to_work, WAIT_MS);
	for (unsigned i = 0; i < THREADS; i++)
		threads[i] = CreateThread(NULL, 0, work, NULL, 0, NULL);
	WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE);
	SetEvent(worked);
	WaitForSingleObject(end, WAIT_MS);
	return 0;
}

/* ---------------------------------------------------------------- this process */

static HANDLE go, done; /* events: start work; work done */

static bool start(void)
{
	wchar_t more[40];

	go = shared_event();
	done = shared_event();
	_snwprintf(more, 40, L"%llx %llx", (unsigned long long)go, (unsigned long long)done);
	return child_start(more);
}

/* Events that were read from the rings. */
static struct seen {
	uint32_t tails[RING_COUNT_MAX], threads[RING_COUNT_MAX], next[RING_STREAMS];
	uint64_t allocs[4], frees[4]; /* index i: blocks of BYTES + i bytes */
	/* Counted in stream 0 only, because every stream gets an event for each heap. */
	uint64_t heaps_gone;
	uint64_t committed, taken; /* of BYTES_VIRTUAL, and their places */
	uint64_t virtual_addrs[THREADS];
	uint64_t old_blocks[2]; /* addresses of the old blocks; 0: freed */
	uint32_t tids[THREADS], tid_count; /* ids of the threads that allocated BYTES */
	bool is_wrong;
} seen;

static void see_thread(uint32_t tid)
{
	for (uint32_t i = 0; i < seen.tid_count; i++) {
		if (seen.tids[i] == tid)
			return;
	}
	if (seen.tid_count < THREADS)
		seen.tids[seen.tid_count++] = tid;
	else
		seen.is_wrong = true;
}

static void see(const struct ring_event *event, uint32_t tid)
{
	uint64_t bytes = tracer_block_bytes(&event->block) - BYTES;

	for (unsigned i = 0; i < 2; i++) {
		/* The second block may have grown at its old address. */
		if (ring_event_addr(event) == seen.old_blocks[i] &&
			(event->type == RING_FREE_OLD ||
				(i && event->type == RING_ALLOC &&
					tracer_block_bytes(&event->block) == BYTES_OLD_LARGER)))
			seen.old_blocks[i] = 0;
	}
	switch (event->type) {
	case RING_ALLOC:
		if (bytes >= 4)
			break;
		seen.allocs[bytes]++;
		see_thread(tid);
		break;
	case RING_FREE: seen.frees[bytes < 4 ? bytes : 3] += bytes < 4; break;
	case RING_HEAP_GONE: seen.heaps_gone += event->stream == 0; break;
	case RING_RANGE_ADD:
		if (ring_event_range_bytes(event) != BYTES_VIRTUAL ||
			event->low != RANGE_COMMITTED || !tracer_block_stack(&event->block))
			break;
		seen.virtual_addrs[seen.committed++ % THREADS] = ring_event_addr(event);
		break;
	case RING_RANGE_TAKE:
		for (unsigned i = 0; i < THREADS; i++) {
			if (ring_event_addr(event) != seen.virtual_addrs[i] ||
				ring_event_range_bytes(event) != BYTES_VIRTUAL)
				continue;
			seen.virtual_addrs[i] = 0;
			seen.taken++;
			break;
		}
		break;
	default: break;
	}
}

static bool pass(uint32_t ring, const struct ring_event *event)
{
	if (event->type == RING_THREAD) {
		seen.threads[ring] = event->low;
		return true;
	}
	if (event->stream >= RING_STREAMS || event->order != seen.next[event->stream])
		return false;
	seen.next[event->stream]++;
	see(event, seen.threads[ring]);
	return true;
}

static bool read_once(const struct ring_section *rings)
{
	uint32_t mask = (1u << rings->events_log2) - 1;
	bool any = false;

	for (uint32_t i = 0; i < rings->ring_count; i++) {
		const struct ring_event *events =
			ring_events(rings->area, rings->ring_count, rings->events_log2, i);
		uint32_t ready = ring_ready(&rings->area->rings[i], seen.tails[i]);

		seen.is_wrong |= ready > mask + 1;
		for (; ready && pass(i, &events[seen.tails[i] & mask]); ready--) {
			seen.tails[i]++;
			any = true;
		}
		ring_consume(&rings->area->rings[i], seen.tails[i]);
	}
	return any;
}

static bool record(const struct ring_section *rings)
{
	DWORD waited;

	memset(&seen, 0, sizeof(seen));
	/* The child is the same program, so its variables have the same addresses. */
	if (target_read(&child.target, (ULONG_PTR)old_blocks, seen.old_blocks,
		    sizeof(seen.old_blocks)) ||
		!seen.old_blocks[0] || !seen.old_blocks[1])
		return false;
	SetEvent(go);
	while ((waited = WaitForSingleObject(done, 0)) == WAIT_TIMEOUT) {
		if (!read_once(rings))
			Sleep(1);
	}
	while (read_once(rings))
		continue;
	for (uint32_t i = 0; i < rings->ring_count; i++)
		seen.is_wrong |= ring_ready(&rings->area->rings[i], seen.tails[i]) != 0;
	return waited == WAIT_OBJECT_0 && !seen.is_wrong;
}

static uint32_t owned(const struct ring_section *rings)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < rings->ring_count; i++)
		count += rings->area->rings[i].owner != 0;
	return count;
}

static bool is_free(uint64_t addr)
{
	MEMORY_BASIC_INFORMATION info;

	return VirtualQueryEx(child.info.hProcess, (void *)(ULONG_PTR)addr, &info, sizeof(info)) &&
	       info.State == MEM_FREE;
}

static void recorded(void)
{
	struct ring_section rings;
	struct tracer_area area;
	const uint64_t all = (uint64_t)THREADS * ROUNDS;

	ok(!ring_section_init(&rings, SECTION_BYTES, 0, &child.err), "there is a section");
	ok(ring_area_bytes(rings.ring_count, rings.events_log2) <= SECTION_BYTES,
		"that is not larger than it may be");
	ok(start() && !child_install(&rings), "the tracer of a target is switched on with it");
	ok(record(&rings), "what the target does is read as it does it, with no gaps");
	ok(seen.allocs[0] == all && seen.frees[0] == all, "each block comes and goes");
	ok(seen.allocs[1] == all && seen.frees[1] == all, "and again as reallocated");
	ok(seen.allocs[2] == (uint64_t)THREADS * KEPT && !seen.frees[2],
		"what is not freed comes only");
	ok(seen.allocs[3] == (uint64_t)THREADS * KEPT && !seen.frees[3] &&
			seen.heaps_gone == THREADS,
		"heaps go with their blocks");
	ok(seen.committed == THREADS && seen.taken == THREADS, "virtual memory comes and goes");
	ok(!seen.old_blocks[0] && !seen.old_blocks[1],
		"blocks that are older than the tracer go, too");
	ok(seen.tid_count == THREADS, "by four threads");
	ok(owned(&rings) >= THREADS, "which have a ring each");
	ring_section_reclaim(&rings, child.info.dwProcessId);
	ok(owned(&rings) <= 1, "and none of them when they have ended");
	area = child_area();
	ok(area.rings_view && !is_free(area.rings_view), "the target has a view of the section");
	ok(!child_remove() && is_free(area.rings_view) && !child_area().rings &&
			!child_area().rings_process,
		"and none when the tracer is removed");
	ok(!child_install(NULL) && !child_area().rings_view && !child_remove(),
		"it can be switched on without one");
	ok(child_end() == 0, "the target ends well");
	ring_section_release(&rings);
}

/* Switches the tracer on with small rings, and exits without reading any of them. */
static int be_recorder(uint32_t pid)
{
	struct ring_section rings;

	memset(&child, 0, sizeof(child));
	child.info.hProcess = OpenProcess(PROCESS_ALL_ACCESS, FALSE, pid);
	if (!child.info.hProcess || ring_section_init(&rings, RING_SECTION_MIN, 0, &child.err) ||
		!child_find())
		return 3;
	return child_install(&rings) ? 4 : 0;
}

static void left_alone(void)
{
	PROCESS_INFORMATION recorder = {0};
	wchar_t arguments[40];
	DWORD status = 99;
	uint64_t view;

	ok(start(), "a target runs");
	_snwprintf(arguments, 40, L"recorder %lu", child.info.dwProcessId);
	ok(start_again(arguments, &recorder) &&
			WaitForSingleObject(recorder.hProcess, WAIT_MS) == WAIT_OBJECT_0 &&
			GetExitCodeProcess(recorder.hProcess, &status) && !status,
		"somebody records it, and ends");
	view = child_area().rings_view;
	ok(child_area().rings && child_area().rings == view, "its rings are there");
	SetEvent(go);
	ok(WaitForSingleObject(done, WAIT_MS) == WAIT_OBJECT_0,
		"threads with full rings wait for nobody");
	ok(!child_area().rings && child_area().rings_view == view, "nothing is recorded any more");
	ok(!child_remove() && is_free(view), "the view goes with the tracer");
	ok(child_end() == 0, "the target ends well");
}

/* Counts a load, as the loader does if it loads a module just before the threads stop. */
static int count_load(void *ctx, struct target *target, uint64_t area_addr,
	enum recording_start how, struct err *err)
{
	uint32_t *count = ctx;
	ULONG_PTR at = (ULONG_PTR)area_addr + offsetof(struct tracer_area, load_count);

	(void)target;
	(void)how;
	(void)err;
	*count = child_area().load_count + 1;
	return WriteProcessMemory(child.info.hProcess, (void *)at, count, sizeof(*count), NULL) ?
		       0 :
		       -ERR_SYSTEM;
}

static void loaded_late(void)
{
	struct ring_section rings;
	uint32_t count = 0;
	const struct recording_link link = {&rings, count_load, NULL, &count};
	const struct install_options options = {.limit_bytes = LIMIT,
		.flags = TRACER_FLAG_ATTACHED,
		.rings = &rings,
		.recording = &link};
	int rc = ring_section_init(&rings, RING_SECTION_MIN, 0, &child.err);

	rc = rc || !start();
	rc = rc || install_tracer(&child.target, child.info.hProcess, child.area_addr, &options,
			   &child.err);
	ok(!rc, "a recording begins");
	ok(count > 1 && child_area().load_count == count,
		"a module that comes while the tracer is switched on counts");
	ok(!child_remove(), "the tracer is removed");
	SetEvent(go);
	ok(child_end() == 0, "the target ends well");
	ring_section_release(&rings);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], GUARD_COMMAND))
		return guard_main(argc, argv);
	if (argc == 6 && !strcmp(argv[1], "target"))
		return be_target(handle_of(argv[2]), handle_of(argv[3]), handle_of(argv[4]),
			handle_of(argv[5]));
	if (argc == 3 && !strcmp(argv[1], "recorder"))
		return be_recorder((uint32_t)strtoul(argv[2], NULL, 10));
	setvbuf(stdout, NULL, _IONBF, 0);
	recorded();
	left_alone();
	loaded_late();
	return ok_end();
}
