/* Starting a process that is tied to this one by a job. Since Windows 10, the process is created
 * inside the job. In earlier versions, it is added to the job immediately after its creation. */
#include "snapshot/live/spawn_windows.h"

#include <stdlib.h>

#include "core/base/os_windows.h"

int spawn_fail(DWORD code, const char *place, struct err *err)
{
	char text[300];

	if (code == ERROR_ELEVATION_REQUIRED)
		return err_set(err, ERR_ELEVATION, place, NULL);
	return err_set(err, ERR_START, place, "%s", windows_error(code, text, sizeof(text)));
}

/* ProcThreadAttributeJobList (13), as an input attribute: Windows SDK, WinBase.h, Windows 10. */
#define ATTRIBUTE_JOB_LIST 0x2000d

static bool limit_job(HANDLE job, DWORD flags)
{
	JOBOBJECT_EXTENDED_LIMIT_INFORMATION info = {.BasicLimitInformation.LimitFlags = flags};

	return SetInformationJobObject(job, JobObjectExtendedLimitInformation, &info, sizeof(info));
}

/* Returns an attribute list with room for two attributes, or NULL. */
static LPPROC_THREAD_ATTRIBUTE_LIST list_new(void)
{
	LPPROC_THREAD_ATTRIBUTE_LIST list;
	SIZE_T bytes = 0;

	InitializeProcThreadAttributeList(NULL, 2, 0, &bytes);
	list = malloc(bytes);
	if (!list)
		SetLastError(ERROR_NOT_ENOUGH_MEMORY);
	if (list && !InitializeProcThreadAttributeList(list, 2, 0, &bytes)) {
		free(list);
		list = NULL;
	}
	return list;
}

static void list_free(LPPROC_THREAD_ATTRIBUTE_LIST list)
{
	DeleteProcThreadAttributeList(list);
	free(list);
}

/* Returns a job, or NULL. If this process dies, the job ends the process in it. Child processes of
 * that process are outside the job. */
static HANDLE job_new(void)
{
	HANDLE job = CreateJobObjectW(NULL, NULL);

	if (job)
		limit_job(job,
			JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_SILENT_BREAKAWAY_OK);
	return job;
}

static void drop_job(struct spawn *spawn)
{
	if (spawn->job)
		CloseHandle(spawn->job);
	spawn->job = NULL;
}

/* Starts the process, inside the job if in_job. Sets the last error on failure. */
static bool create(struct spawn *spawn, const struct spawn_request *request, bool in_job)
{
	STARTUPINFOEXW startup = {.StartupInfo = request->startup};
	DWORD code, unicode = request->environment ? CREATE_UNICODE_ENVIRONMENT : 0;
	BOOL ok;

	startup.StartupInfo.cb = sizeof(startup);
	startup.lpAttributeList = list_new();
	if (!startup.lpAttributeList)
		return false;
	ok = !in_job || UpdateProcThreadAttribute(startup.lpAttributeList, 0, ATTRIBUTE_JOB_LIST,
				&spawn->job, sizeof(spawn->job), NULL, NULL);
	ok = ok && (!request->handle_count ||
			   UpdateProcThreadAttribute(startup.lpAttributeList, 0,
				   PROC_THREAD_ATTRIBUTE_HANDLE_LIST, request->handles,
				   request->handle_count * sizeof(*request->handles), NULL, NULL));
	ok = ok &&
	     CreateProcessW(request->image, request->command, NULL, NULL, TRUE,
		     request->flags | EXTENDED_STARTUPINFO_PRESENT | unicode, request->environment,
		     request->folder, &startup.StartupInfo, &spawn->info);
	code = GetLastError();
	list_free(startup.lpAttributeList);
	SetLastError(code);
	return ok;
}

void spawn_pass_streams(STARTUPINFOW *startup)
{
	HANDLE *streams[] = {&startup->hStdInput, &startup->hStdOutput, &startup->hStdError};
	static const DWORD which[] = {STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE};

	startup->dwFlags |= STARTF_USESTDHANDLES;
	for (int i = 0; i < 3; i++) {
		*streams[i] = GetStdHandle(which[i]);
		SetHandleInformation(*streams[i], HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
	}
}

/* Returns true if the system can create a process inside a job, as Windows 10 and later can. */
static bool knows_job_lists(HANDLE *job)
{
	LPPROC_THREAD_ATTRIBUTE_LIST list = list_new();
	bool knows = list && UpdateProcThreadAttribute(
				     list, 0, ATTRIBUTE_JOB_LIST, job, sizeof(*job), NULL, NULL);

	if (list)
		list_free(list);
	return knows;
}

/* Before Windows 8, this fails if the process is already in another job. */
bool spawn_tie(struct spawn *spawn)
{
	if (!spawn->job)
		spawn->job = job_new();
	if (spawn->job && AssignProcessToJobObject(spawn->job, spawn->info.hProcess))
		return true;
	drop_job(spawn);
	return false;
}

bool spawn_start(struct spawn *spawn, const struct spawn_request *request)
{
	struct spawn started = {.job = job_new()};
	bool in_job = started.job && knows_job_lists(&started.job);

	if (!create(&started, request, in_job)) {
		DWORD code = GetLastError();

		drop_job(&started);
		SetLastError(code);
		return false;
	}
	/* A process that is already running needs no tie, and may have exited. */
	if (!in_job && request->flags & CREATE_SUSPENDED)
		spawn_tie(&started);
	else if (!in_job)
		drop_job(&started);
	*spawn = started;
	return true;
}

void spawn_let_go(struct spawn *spawn)
{
	if (!spawn->job)
		return;
	/* If the limit cannot be removed, closing the job would end the process. So the job stays
	 * open, and the process stays tied to this one. */
	if (!limit_job(spawn->job, JOB_OBJECT_LIMIT_SILENT_BREAKAWAY_OK))
		spawn->job = NULL;
	drop_job(spawn);
}
