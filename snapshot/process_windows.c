#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/nt_windows.h"
#include "snapshot/process.h"

#include <tlhelp32.h>

#include "core/buf.h"
#include "core/utf_windows.h"

/* "app.exe" is called app.exe and app, in any case. */
static bool is_called(const wchar_t *image, const wchar_t *name)
{
	size_t len = wcslen(image);

	if (!_wcsicmp(image, name))
		return true;
	return len > 4 && !_wcsicmp(image + len - 4, L".exe") && wcslen(name) == len - 4 &&
	       !_wcsnicmp(image, name, len - 4);
}

static int list_pids(const wchar_t *name, struct buf *pids, uint32_t *pid, unsigned *count)
{
	HANDLE list = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
	PROCESSENTRY32W entry = {.dwSize = sizeof(entry)};
	int rc = 0;

	if (list == INVALID_HANDLE_VALUE)
		return -ERR_SYSTEM;
	for (BOOL more = Process32FirstW(list, &entry); more && !rc;
		more = Process32NextW(list, &entry)) {
		if (entry.th32ProcessID == GetCurrentProcessId() ||
			!is_called(entry.szExeFile, name))
			continue;
		*pid = entry.th32ProcessID;
		rc = buf_printf(pids, "%s%lu", (*count)++ ? ", " : "", entry.th32ProcessID);
	}
	CloseHandle(list);
	return rc;
}

int process_by_name(const char *name, uint32_t *pid, struct err *err)
{
	wchar_t *wide = wide_from_utf8(name);
	uint32_t found = 0;
	unsigned count = 0;
	struct buf pids;
	int rc = -ERR_NOMEM;

	buf_init(&pids);
	if (wide)
		rc = list_pids(wide, &pids, &found, &count);
	if (rc)
		err_set(err, (enum err_code) - rc, name, NULL);
	else if (!count)
		rc = err_set(err, ERR_NO_PROCESS, name, NULL);
	else if (count > 1)
		rc = err_set(err, ERR_MANY, name, "pids %s", pids.data);
	else
		*pid = found;
	buf_release(&pids);
	free(wide);
	return rc;
}
