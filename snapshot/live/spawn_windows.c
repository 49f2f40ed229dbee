#include "snapshot/live/spawn_windows.h"

#include <stdlib.h>

/* ProcThreadAttributeJobList (13) as an attribute of input; Windows SDK, WinBase.h, Windows 10. */
#define ATTRIBUTE_JOB_LIST 0x2000d

static void limit_job(HANDLE job, DWORD flags)
{
	JOBOBJECT_EXTENDED_LIMIT_INFORMATION info = {.BasicLimitInformation.LimitFlags = flags};

	SetInformationJobObject(job, JobObjectExtendedLimitInformation, &info, sizeof(info));
}

/* A list with room for two attributes, or NULL. */
static LPPROC_THREAD_ATTRIBUTE_LIST list_new(void)
{
	LPPROC_THREAD_ATTRIBUTE_LIST list;
	SIZE_T bytes = 0;

	InitializeProcThreadAttributeList(NULL, 2, 0, &bytes);
	list = malloc(bytes);
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

/* A job that ends its process when this one dies, or NULL. */
static HANDLE job_for(LPPROC_THREAD_ATTRIBUTE_LIST list, HANDLE *job)
{
	*job = CreateJobObjectW(NULL, NULL);
	if (*job)
		limit_job(*job, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE);
	if (*job && !UpdateProcThreadAttribute(
			    list, 0, ATTRIBUTE_JOB_LIST, job, sizeof(*job), NULL, NULL)) {
		CloseHandle(*job);
		*job = NULL;
	}
	return *job;
}

bool spawn_start(struct spawn *spawn, const struct spawn_request *request)
{
	STARTUPINFOEXW startup = {.StartupInfo = request->startup};
	struct spawn started = {0};
	DWORD code;
	BOOL ok;

	startup.StartupInfo.cb = sizeof(startup);
	startup.lpAttributeList = list_new();
	if (!startup.lpAttributeList)
		return false;
	job_for(startup.lpAttributeList, &started.job);
	ok = !request->handle_count ||
	     UpdateProcThreadAttribute(startup.lpAttributeList, 0,
		     PROC_THREAD_ATTRIBUTE_HANDLE_LIST, request->handles,
		     request->handle_count * sizeof(*request->handles), NULL, NULL);
	ok = ok && CreateProcessW(request->image, request->command, NULL, NULL, TRUE,
			   request->flags | EXTENDED_STARTUPINFO_PRESENT, NULL, NULL,
			   &startup.StartupInfo, &started.info);
	code = GetLastError();
	list_free(startup.lpAttributeList);
	if (ok)
		*spawn = started;
	else if (started.job)
		CloseHandle(started.job);
	SetLastError(code);
	return ok;
}

void spawn_let_go(struct spawn *spawn)
{
	if (!spawn->job)
		return;
	limit_job(spawn->job, 0);
	CloseHandle(spawn->job);
	spawn->job = NULL;
}
