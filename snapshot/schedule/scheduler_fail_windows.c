#include "snapshot/schedule/scheduler_fail_windows.h"

#include <stdint.h>

#include "core/utf_windows.h"
#include "snapshot/control/start_fail_windows.h"

#define NOT_RUNNING "its service does not run; start it with 'net start Schedule'"

/* SCHED_E_* of "Task Scheduler Error and Success Constants", Microsoft Learn: Windows keeps no text of them
 * where others are found. */
static const struct {
	uint32_t code;
	const char *text;
} texts[] = {
	{0x8004130f, "the account of the task is not known"},
	{0x80041314, "it cannot read the task's account"}, {0x80041315, NOT_RUNNING},
	{0x80041316, "it did not expect an element of the XML"},
	{0x80041317, "it did not expect the XML's namespace"},
	{0x80041318, "a value in the XML is out of its range"},
	{0x80041319, "an element is missing in the XML"},
	{0x8004131a, "it takes the XML for malformed"}, {0x8004131d, "the task's time is over"},
	{0x80041322, NOT_RUNNING}, /* SCHED_E_SERVICE_NOT_AVAILABLE */
	{0x80041323, "it is too busy; try again"}, {0x80041326, "the task is disabled"},
	{0x80070425, NOT_RUNNING}, /* ERROR_SERVICE_CANNOT_ACCEPT_CTRL */
	{0x80070426, NOT_RUNNING}, /* ERROR_SERVICE_NOT_ACTIVE */
	{0x800706ba, NOT_RUNNING}, /* RPC_S_SERVER_UNAVAILABLE */
	{0x800706d9, NOT_RUNNING}, /* EPT_S_NOT_REGISTERED */
};

static const char *words(HRESULT hr, char *text, size_t size)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (texts[i].code == (uint32_t)hr)
			return texts[i].text;
	}
	return windows_error((unsigned long)hr, text, size);
}

/* Want of rights, by whichever of its names. */
static bool is_refusal(HRESULT hr)
{
	return hr == E_ACCESSDENIED || hr == HRESULT_FROM_WIN32(ERROR_ELEVATION_REQUIRED) ||
	       hr == HRESULT_FROM_WIN32(ERROR_PRIVILEGE_NOT_HELD);
}

const char *scheduler_warning(HRESULT hr)
{
	switch ((uint32_t)hr) {
	case 0x0004131b: /* SCHED_S_SOME_TRIGGERS_FAILED */
		return "it is there, but not all of its triggers will start it; look at them in "
		       "Task Scheduler, or add it with another --start";
	case 0x0004131c: /* SCHED_S_BATCH_LOGON_PROBLEM */
		return "it is there, but its user may not run tasks; give him the right 'Log on as "
		       "a batch job' in secpol.msc";
	default: return NULL;
	}
}

bool scheduler_is_missing(HRESULT hr)
{
	return hr == REGDB_E_CLASSNOTREG || hr == HRESULT_FROM_WIN32(ERROR_MOD_NOT_FOUND);
}

const char *scheduler_unseen(void)
{
	TOKEN_ELEVATION elevation = {0};
	HANDLE token;
	DWORD size;

	if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token))
		return NULL;
	if (!GetTokenInformation(token, TokenElevation, &elevation, sizeof(elevation), &size))
		elevation.TokenIsElevated = 1;
	CloseHandle(token);
	return elevation.TokenIsElevated ? NULL : "run as administrator to see the system's";
}

int scheduler_no_task(const char *name, struct err *err)
{
	const char *unseen = scheduler_unseen();

	return err_set(err, ERR_NO_TASK, name, unseen ? "%s" : NULL, unseen);
}

int scheduler_fail(HRESULT hr, const char *place, struct err *err)
{
	char text[300];

	if (hr == E_OUTOFMEMORY)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	if (is_refusal(hr))
		return err_set(err, ERR_ADMIN, place, "Task Scheduler: access denied");
	if (hr == HRESULT_FROM_WIN32(ERROR_FILE_NOT_FOUND) ||
		hr == HRESULT_FROM_WIN32(ERROR_PATH_NOT_FOUND))
		return scheduler_no_task(place, err);
	if (hr == HRESULT_FROM_WIN32(ERROR_ALREADY_EXISTS) ||
		hr == HRESULT_FROM_WIN32(ERROR_FILE_EXISTS))
		return err_set(err, ERR_TASK_EXISTS, place, NULL);
	return err_set(err, ERR_SYSTEM, place, "Task Scheduler: %s, 0x%08lX",
		words(hr, text, sizeof(text)), (unsigned long)hr);
}
