/*
 * memory_test [--seconds N] [--stop MS]... [--events FILE]: for N seconds (30, at least 2) performs
 * the best-known exercise in tracing memory:
 *
 *	10 MiB are committed by VirtualAlloc in main at the start, and 10 MiB more half way;
 *	ten buffers of 10 MiB, at N/20, 3N/20, ... 19N/20 seconds, each for 100 ms, by
 *	main -> Operation1 -> ManipulateTemporaryBuffer;
 *	1200 objects of 40 bytes, at a constant rate, by operator new in InnerLoopOperation, in a heap
 *	of their own. Objects that are due while a buffer exists are made after it is freed.
 *
 * At the end everything except the objects is freed.
 *
 * At each --stop, MS milliseconds of those N seconds, in rising order, it prints "step K pid P" and
 * waits for a line, like the other samples; that time does not count. Actions due at that moment
 * follow after the stop. After the end of the input there are no more stops.
 *
 * --events writes what happened, to the byte: each event as tests/lib/Replay.pm reads it, and each
 * stop as a mark "stop K". TIME is clock time since the start, with stops; ID and ADDR are
 * addresses, and HEAP is a handle, hexadecimal; STACK has the functions named above. A free is
 * recorded before it is done, everything else after. Recording allocates nothing: the file is
 * written at the end.
 */
#include <stdint.h>
#include <stdlib.h>

#include "samples/step.h"

#define BUFFER_BYTES ((SIZE_T)10 << 20)
#define BUFFERS 10
#define BUFFER_MS 100
#define OBJECTS 1200
#define STOPS_MAX 16
#define EVENTS_MAX (OBJECTS + 2 * (BUFFERS + 2) + STOPS_MAX)
#define LINE_MAX 128

struct object {
	char bytes[40];
};

struct event {
	unsigned long time_ms;
	const char *type; /* MARK: bytes is the number of the stop */
	const void *addr;
	size_t bytes;
	const char *stack, *heap;
};

static const char ALLOC[] = "alloc", COMMIT[] = "commit", DECOMMIT[] = "decommit", MARK[] = "mark";

static struct event events[EVENTS_MAX];
static unsigned event_count;
static char text[EVENTS_MAX * LINE_MAX], heap_text[20];
static HANDLE object_heap;
static LARGE_INTEGER began, per_second;
static unsigned long stops[STOPS_MAX], stopped_ms;
static unsigned stop_count, stops_done;

/* ---------------------------------------------------------------- clock and events */

static unsigned long clock_ms()
{
	LARGE_INTEGER now;

	QueryPerformanceCounter(&now);
	return (unsigned long)((now.QuadPart - began.QuadPart) * 1000 / per_second.QuadPart);
}

static void note(const char *type, const void *addr, size_t bytes, const char *stack)
{
	if (event_count == EVENTS_MAX)
		ExitProcess(4); /* impossible */
	events[event_count++] = {clock_ms(), type, addr, bytes, stack, heap_text};
}

static unsigned long wait_for_clock(unsigned long ms)
{
	unsigned long now;

	while ((now = clock_ms()) < ms)
		Sleep(ms - now);
	return now;
}

/*
 * Waits for a moment of the run, and at each stop on the way. Stops and events keep the order in
 * which they are due, even if they are late.
 */
static void wait_until(unsigned long ms)
{
	while (stops_done < stop_count && stops[stops_done] <= ms) {
		unsigned long from = wait_for_clock(stopped_ms + stops[stops_done]);

		stops_done++;
		note(MARK, NULL, stops_done, NULL);
		if (!step_done(stops_done))
			stop_count = stops_done;
		stopped_ms += clock_ms() - from;
	}
	wait_for_clock(stopped_ms + ms);
}

/* ---------------------------------------------------------------- traced functions */

NOINLINE void *operator new(size_t bytes)
{
	return step_leak(HeapAlloc(object_heap, 0, bytes));
}

void operator delete(void *block) noexcept
{
	HeapFree(object_heap, 0, block);
}

void operator delete(void *block, size_t) noexcept
{
	HeapFree(object_heap, 0, block);
}

static NOINLINE void InnerLoopOperation()
{
	struct object *object = new struct object;

	step_leak(object);
	note(ALLOC, object, sizeof(*object), "InnerLoopOperation<-main");
}

static NOINLINE void ManipulateTemporaryBuffer(unsigned long end_ms)
{
	static const char stack[] = "ManipulateTemporaryBuffer<-Operation1<-main";
	unsigned long committed_ms;
	void *buffer;

	buffer = step_leak(
		VirtualAlloc(NULL, BUFFER_BYTES, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
	note(COMMIT, buffer, BUFFER_BYTES, stack);
	committed_ms = events[event_count - 1].time_ms;
	memset(buffer, 'x', BUFFER_BYTES);
	wait_until(end_ms);
	wait_for_clock(committed_ms + BUFFER_MS);
	note(DECOMMIT, buffer, BUFFER_BYTES, stack);
	VirtualFree(buffer, 0, MEM_RELEASE);
}

static NOINLINE void Operation1(unsigned long end_ms)
{
	ManipulateTemporaryBuffer(end_ms);
	step_leaked = NULL; /* keeps the call above from becoming a jump */
}

/* ---------------------------------------------------------------- output of events */

static char *put_hex(char *to, uint64_t value)
{
	char digits[20];
	int count = 0;

	do
		digits[count++] = "0123456789ABCDEF"[value % 16];
	while (value /= 16);
	while (count)
		*to++ = digits[--count];
	return to;
}

static char *put_event(char *to, const struct event *event)
{
	to = step_decimal(to, event->time_ms);
	*to++ = ' ';
	to = step_decimal(to, GetCurrentThreadId());
	*to++ = ' ';
	to = step_text(to, event->type);
	if (event->type == MARK) {
		to = step_text(to, " stop ");
		to = step_decimal(to, (unsigned long)event->bytes);
	} else {
		*to++ = ' ';
		to = put_hex(to, (uintptr_t)event->addr);
		*to++ = ' ';
		to = step_decimal(to, (unsigned long)event->bytes);
	}
	if (event->type != MARK) {
		*to++ = ' ';
		to = step_text(to, event->stack);
	}
	if (event->type == ALLOC) {
		*to++ = ' ';
		to = step_text(to, event->heap);
	}
	*to++ = '\n';
	return to;
}

static bool write_events(const char *path)
{
	HANDLE file = CreateFileA(path, GENERIC_WRITE, 0, NULL, CREATE_ALWAYS, 0, NULL);
	char *end = text;
	DWORD put;

	if (file == INVALID_HANDLE_VALUE)
		return false;
	for (unsigned i = 0; i < event_count; i++)
		end = put_event(end, &events[i]);
	return WriteFile(file, text, (DWORD)(end - text), &put, NULL) && CloseHandle(file);
}

/* ---------------------------------------------------------------- main */

static bool number_of(const char *word, unsigned long min, unsigned long max, unsigned long *number)
{
	char *end;

	*number = strtoul(word, &end, 10);
	return end != word && !*end && *number >= min && *number <= max;
}

static bool options(char **word, unsigned long *total_ms, const char **events_path)
{
	unsigned long seconds = 30, last = 0;

	for (; word[0]; word += 2) {
		if (!word[1])
			return false;
		if (!strcmp(word[0], "--events")) {
			*events_path = word[1];
		} else if (!strcmp(word[0], "--seconds")) {
			if (!number_of(word[1], 2, 86400, &seconds))
				return false;
		} else if (!strcmp(word[0], "--stop")) {
			if (stop_count == STOPS_MAX || !number_of(word[1], last, 86400000, &last))
				return false;
			stops[stop_count++] = last;
		} else {
			return false;
		}
	}
	*total_ms = 1000 * seconds;
	return last <= *total_ms;
}

int main(int argc, char **argv)
{
	const char *events_path = NULL;
	void *first, *second = NULL;
	unsigned long total_ms;
	unsigned buffers = 0;

	if (!options(argv + (argc > 0), &total_ms, &events_path))
		return 2;
	QueryPerformanceFrequency(&per_second);
	QueryPerformanceCounter(&began);
	object_heap = HeapCreate(0, 0, 0);
	*put_hex(heap_text, (uintptr_t)object_heap) = '\0';

	first = step_leak(
		VirtualAlloc(NULL, BUFFER_BYTES, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
	note(COMMIT, first, BUFFER_BYTES, "main");
	for (unsigned made = 0; made < OBJECTS; made++) {
		unsigned long due_ms = (unsigned long)((uint64_t)total_ms * made / OBJECTS);
		unsigned long buffer_ms = (2 * buffers + 1) * (total_ms / (2 * BUFFERS));

		if (buffers < BUFFERS && due_ms >= buffer_ms) {
			buffers++;
			wait_until(buffer_ms);
			Operation1(buffer_ms + BUFFER_MS);
		}
		if (!second && due_ms >= total_ms / 2) {
			wait_until(total_ms / 2);
			second = step_leak(VirtualAlloc(
				NULL, BUFFER_BYTES, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
			note(COMMIT, second, BUFFER_BYTES, "main");
		}
		wait_until(due_ms);
		InnerLoopOperation();
	}
	wait_until(total_ms);
	note(DECOMMIT, first, BUFFER_BYTES, "main");
	VirtualFree(first, 0, MEM_RELEASE);
	note(DECOMMIT, second, BUFFER_BYTES, "main");
	VirtualFree(second, 0, MEM_RELEASE);
	return events_path && !write_events(events_path) ? 1 : 0;
}
