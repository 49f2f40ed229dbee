#include <stdlib.h>
#include <string.h>

#include "snapshot/live/nt_windows.h"
#include "snapshot/live/process.h"

#include <tlhelp32.h>

#include "core/buf.h"
#include "core/utf_windows.h"

/* 0: not known. */
static size_t wide_pair(const char *image, const char *name, wchar_t **wide)
{
	wide[0] = wide_from_utf8(image);
	wide[1] = wide_from_utf8(name);
	return wide[0] && wide[1] ? wcslen(wide[0]) : 0;
}

/* As file systems compare names: in any case of letters, by a table that no language changes. */
static bool is_same(const wchar_t *text, size_t len, const wchar_t *name)
{
	return CompareStringOrdinal(text, (int)len, name, -1, TRUE) == CSTR_EQUAL;
}

bool process_is_called(const char *image, const char *name)
{
	wchar_t *wide[2];
	size_t len = wide_pair(image, name, wide);
	bool is = len && is_same(wide[0], len, wide[1]);

	if (!is && len > 4 && is_same(wide[0] + len - 4, 4, L".exe"))
		is = is_same(wide[0], len - 4, wide[1]);
	free(wide[0]);
	free(wide[1]);
	return is;
}

static int add(struct process_list *list, const PROCESSENTRY32W *entry)
{
	char *name;

	/* The idle process is none, and hsnap itself is never a target. Without a thread it is a clone
	 * that somebody reads, or has ended and is remembered. */
	if (!entry->th32ProcessID || !entry->cntThreads ||
		entry->th32ProcessID == GetCurrentProcessId())
		return 0;
	name = utf8_from_wide(entry->szExeFile);
	if (!name ||
		array_grow((void **)&list->items, &list->cap, list->count, sizeof(*list->items))) {
		free(name);
		return -ERR_NOMEM;
	}
	list->items[list->count++] =
		(struct process_entry){.pid = entry->th32ProcessID, .name = name};
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct process_entry *left = a, *right = b;

	return left->pid < right->pid ? -1 : left->pid > right->pid;
}

int process_list_take(struct process_list *list, struct err *err)
{
	HANDLE processes = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
	PROCESSENTRY32W entry = {.dwSize = sizeof(entry)};
	char text[300];
	int rc = 0;

	*list = (struct process_list){0};
	if (processes == INVALID_HANDLE_VALUE)
		return err_set(err, ERR_SYSTEM, "the list of processes", "%s",
			windows_error(GetLastError(), text, sizeof(text)));
	for (BOOL more = Process32FirstW(processes, &entry); more && !rc;
		more = Process32NextW(processes, &entry))
		rc = add(list, &entry);
	CloseHandle(processes);
	if (rc)
		return err_set(err, ERR_NOMEM, "the list of processes", NULL);
	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), compare);
	return 0;
}

void process_list_release(struct process_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].name);
	free(list->items);
	*list = (struct process_list){0};
}
