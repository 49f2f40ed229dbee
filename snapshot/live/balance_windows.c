/*
 * Address space, TEBs and counters of a running process, as the system reports them. Everything is
 * read while the process runs. Sources: Microsoft's documentation of VirtualQueryEx,
 * GetProcessMemoryInfo, GetProcessHandleCount and GetGuiResources; phnt (ntpsapi.h, ntobapi.h) for
 * handles by type.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/text.h"
#include "snapshot/live/live_windows.h"
#include "snapshot/target/nt_process.h"

#include <psapi.h>
#include <tlhelp32.h>

#define OWN_BITS ((unsigned)(8 * sizeof(void *)))
#define WAIT_MS 20000 /* maximum time for which hsnap waits for the address space under Wine */
#define TEB_TRIES 5
#define SPACE_MAX ((size_t)4 << 20) /* maximum number of ranges; far more than a process has */

/* ---------------------------------------------------------------- address space */

struct space {
	HANDLE process;
	struct target_memory *list;
	size_t count, cap;
	bool is_whole;
};

static void add_range(struct space *space, const MEMORY_BASIC_INFORMATION *info)
{
	const uint64_t addr = (uintptr_t)info->BaseAddress;

	array_grow((void **)&space->list, &space->cap, space->count, sizeof(*space->list));
	space->list[space->count++] = (struct target_memory){
		.addr = addr,
		.end = addr + info->RegionSize,
		.allocation = (uintptr_t)info->AllocationBase,
		.type = info->Type == MEM_IMAGE	 ? TARGET_IMAGE :
			info->Type == MEM_MAPPED ? TARGET_VIEW :
						   TARGET_PRIVATE,
		.is_committed = info->State == MEM_COMMIT,
		.is_copy = live_is_copy(info->Type, info->Protect, info->AllocationProtect),
	};
}

static DWORD WINAPI list_space(void *ctx)
{
	struct space *space = ctx;
	MEMORY_BASIC_INFORMATION info;
	uint64_t addr = 0;

	while (space->count < SPACE_MAX && region_info(space->process, addr, &info)) {
		if (info.State != MEM_FREE)
			add_range(space, &info);
		addr = (uint64_t)(uintptr_t)info.BaseAddress + info.RegionSize;
	}
	space->is_whole = space->count < SPACE_MAX && GetLastError() == ERROR_INVALID_PARAMETER;
	return 0;
}

/* Lists the address space on another thread. Returns false if that thread does not answer, because
 * the process has exited. `space` then still belongs to the thread. */
static bool list_guarded(struct space *space)
{
	HANDLE handles[2] = {CreateThread(NULL, 0, list_space, space, 0, NULL), space->process};
	DWORD status;

	if (!handles[0])
		return true;
	status = WaitForMultipleObjects(2, handles, FALSE, WAIT_MS);
	if (status == WAIT_OBJECT_0 + 1)
		status = WaitForSingleObject(handles[0], 100);
	CloseHandle(handles[0]);
	return status == WAIT_OBJECT_0;
}

int balance_space(HANDLE process, bool is_wine, struct target_memory **list, size_t *count)
{
	struct space *space = xcalloc(1, sizeof(*space));
	int rc;

	space->process = process;
	if (!is_wine)
		list_space(space);
	else if (!list_guarded(space))
		return -ERR_TARGET;
	rc = space->is_whole ? 0 : -ERR_TARGET;
	if (rc)
		free(space->list);
	*list = rc ? NULL : space->list;
	*count = rc ? 0 : space->count;
	free(space);
	return rc;
}

/* ---------------------------------------------------------------- threads */

#define THREAD_BASIC_INFORMATION_CLASS 0

/* THREAD_BASIC_INFORMATION: phnt, ntpsapi.h. */
uint64_t balance_native_teb(HANDLE thread)
{
	struct {
		LONG status;
		void *teb;
		CLIENT_ID id;
		ULONG_PTR affinity;
		LONG priority, base_priority;
	} basic;

	if (NtQueryInformationThread(thread, (THREADINFOCLASS)THREAD_BASIC_INFORMATION_CLASS,
		    &basic, sizeof(basic), NULL) < 0)
		return 0;
	return (uintptr_t)basic.teb;
}

struct tebs {
	struct target_teb *list;
	size_t count, cap;
	bool is_incomplete; /* the TEB of a thread that has not exited is unknown */
};

static void add_teb(struct tebs *tebs, uint64_t addr, unsigned bits)
{
	if (!addr)
		return;
	array_grow((void **)&tebs->list, &tebs->cap, tebs->count, sizeof(*tebs->list));
	tebs->list[tebs->count++] = (struct target_teb){addr, bits};
}

static void add_tebs(struct tebs *tebs, struct target *target, DWORD id)
{
	HANDLE thread = OpenThread(THREAD_QUERY_INFORMATION | SYNCHRONIZE, FALSE, id);
	uint64_t teb;

	if (!thread) {
		tebs->is_incomplete |= GetLastError() != ERROR_INVALID_PARAMETER; /* has exited */
		return;
	}
	teb = balance_native_teb(thread);
	tebs->is_incomplete |= !teb && WaitForSingleObject(thread, 0) == WAIT_TIMEOUT;
	add_teb(tebs, teb, OWN_BITS);
	if (teb && target->bits != OWN_BITS)
		add_teb(tebs, nt_guest_teb(target, teb), target->bits);
	else if (teb && OWN_BITS == 32)
		add_teb(tebs, nt_host_teb(target, teb), 64);
	CloseHandle(thread);
}

/* Calls each() for the id of each thread of the process. Returns the number of threads, or 0 if
 * threads cannot be listed. */
static size_t each_thread(DWORD pid,
	void (*each)(struct tebs *tebs, struct target *target, DWORD id), struct tebs *tebs,
	struct target *target)
{
	HANDLE all = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
	THREADENTRY32 entry = {.dwSize = sizeof(entry)};
	size_t count = 0;

	if (all == INVALID_HANDLE_VALUE)
		return 0;
	for (BOOL more = Thread32First(all, &entry); more; more = Thread32Next(all, &entry)) {
		if (entry.th32OwnerProcessID != pid)
			continue;
		count++;
		if (each)
			each(tebs, target, entry.th32ThreadID);
	}
	CloseHandle(all);
	return count;
}

/* A thread that is just starting or exiting may have no TEB, so the threads are listed again. */
int balance_tebs(struct target *target, HANDLE process, struct target_teb **list, size_t *count)
{
	for (int tries = 0; tries < TEB_TRIES; tries++) {
		struct tebs tebs = {0};

		if (tries)
			Sleep(1);
		if (each_thread(GetProcessId(process), add_tebs, &tebs, target) &&
			!tebs.is_incomplete) {
			*list = tebs.list;
			*count = tebs.count;
			return 0;
		}
		free(tebs.list);
	}
	return -ERR_TARGET;
}

/* ---------------------------------------------------------------- handles by type */

#define PROCESS_HANDLE_INFORMATION 51 /* PROCESS_HANDLE_SNAPSHOT_INFORMATION, Windows 8 */
#define OBJECT_TYPES_INFORMATION 3 /* OBJECT_TYPES_INFORMATION */
#define STATUS_LENGTH_MISMATCH ((NTSTATUS)0xC0000004)
#define ANSWER_MAX ((ULONG)256 << 20) /* maximum size of the system's answer */
#define TYPES_MAX 256 /* an index of a type fits into a byte */

struct process_handle { /* PROCESS_HANDLE_TABLE_ENTRY_INFO */
	HANDLE value;
	ULONG_PTR handle_count, pointer_count;
	ULONG access, type, attributes, reserved;
};

struct process_handles { /* PROCESS_HANDLE_SNAPSHOT_INFORMATION */
	ULONG_PTR count, reserved;
	struct process_handle entries[];
};

struct object_type { /* start of OBJECT_TYPE_INFORMATION */
	UNICODE_STRING name;
	ULONG counters[12], attributes;
	GENERIC_MAPPING mapping;
	ULONG access;
	BOOLEAN security, database;
	UCHAR index; /* 0 before Windows 8.1: types are numbered from 2 */
	CHAR reserved;
	ULONG pool, paged, nonpaged;
};

/* Asks for the handles of a process or, if `process` is NULL, for all types of objects. */
static NTSTATUS ask_once(HANDLE process, void *answer, ULONG bytes)
{
	return process ?
		       NtQueryInformationProcess(process,
			       (PROCESSINFOCLASS)PROCESS_HANDLE_INFORMATION, answer, bytes, NULL) :
		       NtQueryObject(NULL, (OBJECT_INFORMATION_CLASS)OBJECT_TYPES_INFORMATION,
			       answer, bytes, NULL);
}

/* Returns the system's answer and its size in bytes, or NULL if the system does not answer. The
 * caller frees the answer. */
static void *ask(HANDLE process, ULONG *bytes)
{
	for (ULONG size = 1 << 16; size <= ANSWER_MAX; size *= 4) {
		void *answer = xcalloc(1, size);
		NTSTATUS status = ask_once(process, answer, size);

		*bytes = size;
		if (status >= 0)
			return answer;
		free(answer);
		if (status != STATUS_LENGTH_MISMATCH)
			return NULL;
	}
	return NULL;
}

/*
 * Counts the handles of a process by the number of their type. Returns their total, or 0 if the
 * system does not list them: before Windows 8, and in Wine. The list of all handles of the system
 * is no substitute: a query for it crashes Wine 8's server, and with it all Windows programs.
 */
static uint64_t count_types(HANDLE process, uint64_t counts[TYPES_MAX])
{
	ULONG bytes = 0;
	uint64_t total = 0;
	struct process_handles *handles = ask(process, &bytes);
	const size_t most = (bytes - sizeof(*handles)) / sizeof(struct process_handle);

	for (; handles && total < handles->count && total < most; total++)
		counts[handles->entries[total].type % TYPES_MAX]++;
	free(handles);
	return total;
}

/* Returns the address of the entry after a type, which follows the type's name and is aligned. */
static const unsigned char *type_after(const struct object_type *type)
{
	const uintptr_t end = (uintptr_t)type->name.Buffer + type->name.MaximumLength;

	return (const unsigned char *)((end + sizeof(void *) - 1) & ~(sizeof(void *) - 1));
}

/* Lists the names of types by their numbers. The answer is memory of hsnap in which the name of each
 * type follows its entry. Returns false if the answer has another form. */
static bool list_types(const void *answer, ULONG bytes, const UNICODE_STRING *names[TYPES_MAX])
{
	const unsigned char *start = answer, *at = start + sizeof(void *);
	const ULONG count = *(const ULONG *)answer;

	for (ULONG i = 0; i < count && i < TYPES_MAX; i++) {
		const struct object_type *type = (const void *)at;
		const unsigned char *text;

		if ((size_t)(at - start) > bytes - sizeof(*type))
			return false;
		text = (const unsigned char *)type->name.Buffer;
		if (text < at || type->name.Length > type->name.MaximumLength ||
			type->name.MaximumLength > bytes ||
			(size_t)(text - start) > bytes - type->name.MaximumLength)
			return false;
		names[type->index ? type->index : (i + 2) % TYPES_MAX] = &type->name;
		at = type_after(type);
	}
	return true;
}

/* Adds the types that have handles, with their names. */
static void name_types(const uint64_t counts[TYPES_MAX],
	const UNICODE_STRING *const names[TYPES_MAX], struct balance *balance, struct arena *arena)
{
	char name[128];

	balance->handles = arena_alloc(arena, TYPES_MAX * sizeof(*balance->handles));
	for (int i = 0; i < TYPES_MAX; i++) {
		if (!names[i] || !counts[i])
			continue;
		text_from_utf16((const unsigned char *)names[i]->Buffer, names[i]->Length / 2, name,
			sizeof(name));
		balance->handles[balance->handle_count++] =
			(struct balance_handles){arena_text(arena, name, strlen(name)), counts[i]};
	}
}

static void count_handles(HANDLE process, struct balance *balance, struct arena *arena)
{
	const UNICODE_STRING *names[TYPES_MAX] = {NULL};
	uint64_t counts[TYPES_MAX] = {0}, total = count_types(process, counts);
	ULONG bytes = 0;
	DWORD count;
	void *types = total ? ask(NULL, &bytes) : NULL;

	/* Wine 8 reports 0, which is never true. */
	if (GetProcessHandleCount(process, &count) && count)
		total = count;
	if (total)
		balance_set(balance, BALANCE_HANDLES, total);
	if (types && list_types(types, bytes, names))
		name_types(counts, names, balance, arena);
	free(types);
}

/* ---------------------------------------------------------------- counters */

typedef DWORD(WINAPI *gui_fn)(HANDLE process, DWORD flags);

/* Sets the numbers of GDI and USER objects. user32 is loaded only for this purpose. In Wine 8 and
 * 10, GetGuiResources() fails. */
static void count_gui(HANDLE process, struct balance *balance)
{
	static const struct {
		DWORD flag; /* GR_GDIOBJECTS, ... */
		enum balance_figure figure;
	} rows[] = {
		{0, BALANCE_GDI},
		{1, BALANCE_USER},
		{2, BALANCE_GDI_PEAK},
		{4, BALANCE_USER_PEAK},
	};
	HMODULE user32 = LoadLibraryW(L"user32.dll");
	gui_fn gui = user32 ? (gui_fn)(void *)GetProcAddress(user32, "GetGuiResources") : NULL;

	for (size_t i = 0; gui && i < sizeof(rows) / sizeof(*rows); i++) {
		DWORD value;

		SetLastError(0);
		value = gui(process, rows[i].flag);
		if (value || !GetLastError())
			balance_set(balance, rows[i].figure, value);
	}
}

void balance_count(HANDLE process, bool is_wine, struct balance *balance, struct arena *arena)
{
	PROCESS_MEMORY_COUNTERS_EX memory = {.cb = sizeof(memory)};
	size_t threads = each_thread(GetProcessId(process), NULL, NULL, NULL);

	/* In Windows 7, PagefileUsage is 0; Wine 8 sets only PagefileUsage. */
	if (GetProcessMemoryInfo(process, (PROCESS_MEMORY_COUNTERS *)&memory, sizeof(memory))) {
		balance_set(balance, BALANCE_PRIVATE,
			memory.PrivateUsage ? memory.PrivateUsage : memory.PagefileUsage);
		balance_set(balance, BALANCE_WORKING_SET, memory.WorkingSetSize);
		if (memory.PeakPagefileUsage)
			balance_set(balance, BALANCE_COMMIT_PEAK, memory.PeakPagefileUsage);
	}
	if (threads)
		balance_set(balance, BALANCE_THREADS, threads);
	count_handles(process, balance, arena);
	if (!is_wine)
		count_gui(process, balance);
}
