#include "snapshot/live/turn_windows.h"

#include <inttypes.h>
#include <wchar.h>
#include <windows.h>

#include "snapshot/live/process.h"

/* Of the whole machine: who may change a process need not be in its session. Another user's may be opened
 * with these rights, where all are asked for in vain. */
#define NAME L"Global\\hsnap-control-%" PRIu32
#define RIGHTS (SYNCHRONIZE | MUTEX_MODIFY_STATE)

bool turn_take(struct turn *turn, uint32_t pid, uint32_t patience_ms)
{
	wchar_t name[60];
	DWORD status;

	*turn = (struct turn){0};
	_snwprintf(name, 60, NAME, pid);
	turn->mutex = CreateMutexExW(NULL, name, 0, RIGHTS);
	if (!turn->mutex) /* somebody else's, or something else of that name: on without it */
		return true;
	status = WaitForSingleObject(turn->mutex, patience_ms);
	if (status == WAIT_OBJECT_0 || status == WAIT_ABANDONED)
		return true;
	CloseHandle(turn->mutex);
	turn->mutex = NULL;
	return false;
}

bool process_is_changing(uint32_t pid)
{
	wchar_t name[60];
	HANDLE mutex;

	_snwprintf(name, 60, NAME, pid);
	mutex = OpenMutexW(SYNCHRONIZE, FALSE, name);
	if (mutex)
		CloseHandle(mutex);
	return mutex;
}

void turn_give_back(struct turn *turn)
{
	if (!turn->mutex)
		return;
	ReleaseMutex(turn->mutex);
	CloseHandle(turn->mutex);
	turn->mutex = NULL;
}
