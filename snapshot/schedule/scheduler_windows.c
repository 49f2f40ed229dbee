/*
 * Access to Task Scheduler through its own interface, ITaskService ("Task Scheduler 2.0
 * Interfaces", Microsoft Learn), on Windows Vista and later. Wine 8.0 registers and removes tasks,
 * but does not store the programs that they run. A call that reads these programs returns E_NOTIMPL
 * there, which Windows never does.
 */
#include "snapshot/schedule/scheduler.h"

#define COBJMACROS
#define INITGUID
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <windows.h>
#include <taskschd.h>

#include "core/base/os_windows.h"
#include "snapshot/schedule/scheduler_parts_windows.h"
#include "snapshot/schedule/task.h"

#define FOLDER "hsnap"
#define NO_TASK HRESULT_FROM_WIN32(ERROR_FILE_NOT_FOUND)

/* ---------------------------------------------------------------- results */

static bool is_missing(HRESULT hr)
{
	return hr == HRESULT_FROM_WIN32(ERROR_FILE_NOT_FOUND) ||
	       hr == HRESULT_FROM_WIN32(ERROR_PATH_NOT_FOUND);
}

#define STOPPED "Task Scheduler: its service is not running; start it with 'net start Schedule', 0x"

/* Windows has no messages for SCHED_E_*. Source: "Task Scheduler Error and Success Constants",
 * Microsoft Learn. */
int scheduler_fail(HRESULT hr, const char *place, struct err *err)
{
	static const char denied[] = "Task Scheduler: access denied";
	static const struct {
		uint32_t hr;
		enum err_code code;
		const char *detail;
	} answers[] = {
		{0x80070005, ERR_ADMIN, denied}, /* E_ACCESSDENIED */
		{0x800702e4, ERR_ADMIN, denied}, /* ERROR_ELEVATION_REQUIRED */
		{0x80070522, ERR_ADMIN, denied}, /* ERROR_PRIVILEGE_NOT_HELD */
		{0x80070002, ERR_NO_TASK, ""}, /* ERROR_FILE_NOT_FOUND */
		{0x80070003, ERR_NO_TASK, ""}, /* ERROR_PATH_NOT_FOUND */
		{0x800700b7, ERR_TASK_EXISTS, ""}, /* ERROR_ALREADY_EXISTS */
		{0x80070050, ERR_TASK_EXISTS, ""}, /* ERROR_FILE_EXISTS */
		{0x80004001, ERR_SYSTEM, /* E_NOTIMPL */
			"Wine's Task Scheduler never runs tasks; use 'hsnap schedule add "
			"--print-xml' "
			"to write a task for Windows"},
		/* SCHED_E_SERVICE_NOT_RUNNING, SCHED_E_SERVICE_NOT_AVAILABLE */
		{0x80041315, ERR_SYSTEM, STOPPED "80041315"},
		{0x80041322, ERR_SYSTEM, STOPPED "80041322"},
		/* ERROR_SERVICE_NOT_ACTIVE, RPC_S_SERVER_UNAVAILABLE */
		{0x80070426, ERR_SYSTEM, STOPPED "80070426"},
		{0x800706ba, ERR_SYSTEM, STOPPED "800706BA"},
	};
	char text[300];

	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		if (answers[i].hr == (uint32_t)hr)
			return err_set(err, answers[i].code, place, "%s", answers[i].detail);
	}
	return err_set(err, ERR_SYSTEM, place, "Task Scheduler: %s, 0x%08lX",
		windows_error((unsigned long)hr, text, sizeof(text)), (unsigned long)hr);
}

const char *scheduler_warning(HRESULT hr)
{
	switch ((uint32_t)hr) {
	case 0x0004131b: /* SCHED_S_SOME_TRIGGERS_FAILED */
		return "added, but not all of its triggers will start it; look at them in Task "
		       "Scheduler, or add it with another --start";
	case 0x0004131c: /* SCHED_S_BATCH_LOGON_PROBLEM */
		return "added, but its user may not run tasks; give the user the right 'Log on as "
		       "a batch job' in secpol.msc";
	default: return NULL;
	}
}

/* ---------------------------------------------------------------- connection */

/* Functions of ole32.dll and oleaut32.dll. The DLLs exist on every Windows version, but are loaded
 * only here, because no other command of hsnap needs them. */
static struct {
	HRESULT(WINAPI *initialize)(void *, DWORD);
	void(WINAPI *uninitialize)(void);
	HRESULT(WINAPI *create)(REFCLSID, IUnknown *, DWORD, REFIID, void **);
	HRESULT(WINAPI *security)
	(void *, LONG, void *, void *, DWORD, DWORD, void *, DWORD, void *);
	BSTR(WINAPI *text)(const OLECHAR *);
	void(WINAPI *free_text)(BSTR);
} com;

struct session {
	BSTR name; /* name of the task */
	ITaskService *service;
	ITaskFolder *folder; /* \hsnap; NULL: it does not exist */
	bool is_initialized;
};

static const VARIANT nothing; /* VT_EMPTY */

/* Releases an object with any interface; accepts NULL. */
static void release(void *object)
{
	if (object)
		IUnknown_Release((IUnknown *)object);
}

static bool load(void)
{
	HMODULE ole = windows_library(L"ole32.dll"), automation = windows_library(L"oleaut32.dll");

	if (!ole || !automation)
		return false;
	com.initialize = (void *)GetProcAddress(ole, "CoInitializeEx");
	com.uninitialize = (void *)GetProcAddress(ole, "CoUninitialize");
	com.create = (void *)GetProcAddress(ole, "CoCreateInstance");
	com.security = (void *)GetProcAddress(ole, "CoInitializeSecurity");
	com.text = (void *)GetProcAddress(automation, "SysAllocString");
	com.free_text = (void *)GetProcAddress(automation, "SysFreeString");
	return true;
}

static void session_close(struct session *session)
{
	if (session->name)
		com.free_text(session->name);
	release(session->folder);
	release(session->service);
	if (session->is_initialized)
		com.uninitialize();
}

/* Connects to the service and permits it to impersonate this user, as in the documentation's
 * examples. */
static HRESULT connect_service(struct session *session)
{
	HRESULT hr = com.initialize(NULL, COINIT_MULTITHREADED);

	if (FAILED(hr))
		return hr;
	session->is_initialized = true;
	com.security(NULL, -1, NULL, NULL, RPC_C_AUTHN_LEVEL_PKT_PRIVACY,
		RPC_C_IMP_LEVEL_IMPERSONATE, NULL, 0, NULL);
	hr = com.create(&CLSID_TaskScheduler, NULL, CLSCTX_INPROC_SERVER, &IID_ITaskService,
		(void **)&session->service);
	if (SUCCEEDED(hr))
		hr = ITaskService_Connect(session->service, nothing, nothing, nothing, nothing);
	/* At this point, such a result shows that the service is missing, not a task. */
	return is_missing(hr) ? HRESULT_FROM_WIN32(ERROR_SERVICE_NOT_ACTIVE) : hr;
}

static BSTR bstr(const char *text)
{
	wchar_t *wide = wide_from_utf8(text);
	BSTR result = wide ? com.text(wide) : NULL;

	if (!result)
		memory_out();
	free(wide);
	return result;
}

/* Opens a session. The caller must always call session_close(). */
static HRESULT session_open(struct session *session, const char *name)
{
	BSTR path;
	HRESULT hr;

	*session = (struct session){0};
	if (!load())
		return HRESULT_FROM_WIN32(ERROR_MOD_NOT_FOUND);
	session->name = bstr(name);
	hr = connect_service(session);
	path = bstr("\\" FOLDER);
	if (SUCCEEDED(hr))
		hr = ITaskService_GetFolder(session->service, path, &session->folder);
	com.free_text(path);
	return session->service && is_missing(hr) ? S_OK : hr;
}

/* ---------------------------------------------------------------- adding, removing */

static HRESULT make_folder(struct session *session, bool is_system)
{
	BSTR root = bstr("\\"), name = bstr(FOLDER), rights = bstr(RIGHTS_OF_ADMINISTRATORS);
	ITaskFolder *top = NULL;
	VARIANT sddl = nothing;
	HRESULT hr = ITaskService_GetFolder(session->service, root, &top);

	if (is_system) {
		V_VT(&sddl) = VT_BSTR;
		V_BSTR(&sddl) = rights;
	}
	if (SUCCEEDED(hr))
		hr = ITaskFolder_CreateFolder(top, name, sddl, &session->folder);
	if (hr == HRESULT_FROM_WIN32(ERROR_ALREADY_EXISTS))
		hr = E_ACCESSDENIED; /* the folder exists but is hidden from this user */
	release(top);
	com.free_text(root);
	com.free_text(name);
	com.free_text(rights);
	return hr;
}

/* Returns a failure if the scheduler has not stored what the task runs. */
static HRESULT check_actions(IRegisteredTask *task)
{
	ITaskDefinition *definition = NULL;
	IActionCollection *all = NULL;
	LONG count;
	HRESULT hr = IRegisteredTask_get_Definition(task, &definition);

	if (SUCCEEDED(hr))
		hr = ITaskDefinition_get_Actions(definition, &all);
	if (SUCCEEDED(hr))
		hr = IActionCollection_get_Count(all, &count);
	release(all);
	release(definition);
	return hr;
}

/* The XML contains the account. The kind of logon is a separate argument: a service account (for
 * the system), or a user without a password (S4U). */
int scheduler_add(
	const char *name, const char *xml, bool is_system, bool may_replace, struct err *err)
{
	struct session session;
	IRegisteredTask *task = NULL;
	HRESULT hr = session_open(&session, name);

	if (SUCCEEDED(hr) && !session.folder)
		hr = make_folder(&session, is_system);
	if (SUCCEEDED(hr)) {
		BSTR text = bstr(xml);

		hr = ITaskFolder_RegisterTask(session.folder, session.name, text,
			may_replace ? TASK_CREATE_OR_UPDATE : TASK_CREATE, nothing, nothing,
			is_system ? TASK_LOGON_SERVICE_ACCOUNT : TASK_LOGON_S4U, nothing, &task);
		com.free_text(text);
	}
	if (SUCCEEDED(hr) && scheduler_warning(hr))
		fprintf(stderr, "hsnap: %s: warning: %s\n", name, scheduler_warning(hr));
	if (SUCCEEDED(hr)) {
		hr = check_actions(task);
		if (FAILED(hr)) /* the task would run nothing */
			ITaskFolder_DeleteTask(session.folder, session.name, 0);
	}
	release(task);
	session_close(&session);
	return FAILED(hr) ? scheduler_fail(hr, name, err) : 0;
}

int scheduler_remove(const char *name, struct err *err)
{
	struct session session;
	HRESULT hr = session_open(&session, name);

	if (SUCCEEDED(hr))
		hr = session.folder ? ITaskFolder_DeleteTask(session.folder, session.name, 0) :
				      NO_TASK;
	session_close(&session);
	return FAILED(hr) ? scheduler_fail(hr, name, err) : 0;
}
