/*
 * Names of the target's threads, which SetThreadDescription() stores in the kernel.
 *
 * A thread usually gets its name when it starts, and may end soon after. So each thread is opened
 * when its first event arrives. On Windows, the name can then be read even after the thread has
 * ended; Wine forgets it. Names that a program passes to a debugger in an exception are not seen.
 *
 * Sources: for the information class, phnt (ntpsapi.h).
 */
#include <stdlib.h>
#include <string.h>

#include <windows.h>
#include <winternl.h>

#include "core/base/memory.h"
#include "core/base/os_windows.h"
#include "snapshot/record/replay.h"

#define THREAD_NAME_INFORMATION ((THREADINFOCLASS)38) /* Windows 10 1607 and later */
#define NAME_UNITS 256 /* longer names are ignored */
#define OPEN_MAX 4096 /* threads opened at the same time */

struct named_thread {
	uint32_t number; /* in the recording */
	HANDLE handle;
	char *name; /* as recorded; NULL: none */
};

struct thread_names {
	struct recorder *recorder;
	uint32_t pid;
	uint32_t seen_count; /* number of the recording's threads that were seen */
	struct named_thread *threads; /* threads whose handles are open */
	size_t count, cap;
};

struct thread_names *thread_names_new(struct recorder *recorder, uint32_t pid)
{
	struct thread_names *names = xcalloc(1, sizeof(*names));

	*names = (struct thread_names){.recorder = recorder, .pid = pid};
	return names;
}

static void forget(struct named_thread *thread)
{
	CloseHandle(thread->handle);
	free(thread->name);
}

void thread_names_free(struct thread_names *names)
{
	for (size_t i = 0; names && i < names->count; i++)
		forget(&names->threads[i]);
	if (names)
		free(names->threads);
	free(names);
}

/* Records the name of a thread if it is new. */
static void read_name(struct thread_names *names, struct named_thread *thread)
{
	struct {
		UNICODE_STRING name;
		wchar_t units[NAME_UNITS];
	} info;
	wchar_t wide[NAME_UNITS + 1];
	ULONG len;
	char *name;

	if (NtQueryInformationThread(
		    thread->handle, THREAD_NAME_INFORMATION, &info, sizeof(info), &len) < 0 ||
		!info.name.Buffer || !info.name.Length ||
		info.name.Length > NAME_UNITS * sizeof(wchar_t))
		return;
	len = info.name.Length / sizeof(wchar_t);
	memcpy(wide, info.name.Buffer, len * sizeof(wchar_t));
	wide[len] = L'\0';
	name = wide_to_utf8(wide);
	if (!name || (thread->name && !strcmp(thread->name, name))) {
		free(name);
		return;
	}
	free(thread->name);
	thread->name = name;
	recorder_thread_name(names->recorder, thread->number, name);
}

static void open_thread(struct thread_names *names, uint32_t number, uint32_t tid)
{
	struct named_thread *thread;
	HANDLE handle =
		tid && names->count < OPEN_MAX ?
			OpenThread(SYNCHRONIZE | THREAD_QUERY_LIMITED_INFORMATION, FALSE, tid) :
			NULL;

	if (!handle)
		return;
	if (GetProcessIdOfThread(handle) != names->pid) { /* the id belongs to a later thread */
		CloseHandle(handle);
		return;
	}
	array_grow((void **)&names->threads, &names->cap, names->count, sizeof(*names->threads));
	thread = &names->threads[names->count++];
	*thread = (struct named_thread){.number = number, .handle = handle};
}

void thread_names_add(struct thread_names *names)
{
	uint32_t tid;

	while (recorder_get_thread(names->recorder, names->seen_count, &tid))
		open_thread(names, names->seen_count++, tid);
}

void thread_names_look(struct thread_names *names)
{
	size_t kept = 0;

	for (size_t i = 0; i < names->count; i++) {
		struct named_thread *thread = &names->threads[i];
		bool is_over = WaitForSingleObject(thread->handle, 0) == WAIT_OBJECT_0;

		read_name(names, thread);
		if (is_over)
			forget(thread);
		else
			names->threads[kept++] = *thread;
	}
	names->count = kept;
}
