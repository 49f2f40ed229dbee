#define COBJMACROS
#define INITGUID
#include <stdint.h>
#include <stdlib.h>

#include <windows.h>
#include <taskschd.h>

#include "core/base/memory.h"
#include "core/base/os_windows.h"
#include "snapshot/control/control.h"
#include "snapshot/live/spawn_windows.h"
#include "snapshot/schedule/scheduler_windows.h"

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

/* As Task Scheduler puts it together. */
static wchar_t *command_line(const char *program, const char *arguments)
{
	wchar_t *wide = NULL;
	struct buf line;

	buf_init(&line);
	if (!buf_printf(&line, "\"%s\" %s", program, arguments ? arguments : ""))
		wide = wide_from_utf8(line.data);
	buf_release(&line);
	return wide;
}

static bool start(
	const wchar_t *program, wchar_t *line, const wchar_t *folder, PROCESS_INFORMATION *info)
{
	SECURITY_ATTRIBUTES inherited = {.nLength = sizeof(inherited), .bInheritHandle = TRUE};
	STARTUPINFOW startup = {.cb = sizeof(startup)};
	HANDLE none = CreateFileW(L"NUL", GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE,
		&inherited, OPEN_EXISTING, 0, NULL);
	bool is_started;

	spawn_pass_streams(&startup);
	startup.dwFlags |= STARTF_USESTDHANDLES;
	startup.hStdInput = none;
	is_started =
		CreateProcessW(program, line, NULL, NULL, TRUE, 0, NULL, folder, &startup, info);
	if (none != INVALID_HANDLE_VALUE) {
		DWORD error = GetLastError();

		CloseHandle(none);
		SetLastError(error);
	}
	return is_started;
}

/* "C:\folder\" of "C:\folder\program.exe". */
static wchar_t *folder_of(const char *program)
{
	wchar_t *folder = wide_from_utf8(program);
	wchar_t *name = folder ? wcsrchr(folder, L'\\') : NULL;

	if (name)
		name[1] = L'\0';
	return folder;
}

int task_run(const char *program, const char *arguments, uint32_t *exit_status, struct err *err)
{
	wchar_t *wide = wide_from_utf8(program), *folder = folder_of(program);
	wchar_t *line = command_line(program, arguments);
	PROCESS_INFORMATION info;
	DWORD status = 2;
	int rc = 0;

	leave_interrupts_to_child();
	if (!wide || !folder || !line) {
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	} else if (!start(wide, line, folder, &info)) {
		rc = start_fail(GetLastError(), program, err);
	} else {
		WaitForSingleObject(info.hProcess, INFINITE);
		GetExitCodeProcess(info.hProcess, &status);
		CloseHandle(info.hThread);
		CloseHandle(info.hProcess);
		*exit_status = status;
	}
	free(line);
	free(folder);
	free(wide);
	return rc;
}

/* What is taken of ole32.dll and oleaut32.dll, which are on every Windows. */
struct scheduler_com {
	HMODULE ole, automation;
	HRESULT(WINAPI *initialize)(void *, DWORD);
	void(WINAPI *uninitialize)(void);
	HRESULT(WINAPI *create)(REFCLSID, IUnknown *, DWORD, REFIID, void **);
	HRESULT(WINAPI *security)
	(void *, LONG, void *, void *, DWORD, DWORD, void *, DWORD, void *);
	BSTR(WINAPI *text)(const OLECHAR *);
	void(WINAPI *free_text)(BSTR);
	INT(WINAPI *date)(DOUBLE, SYSTEMTIME *);
	bool is_initialized;
	ITaskService *service;
	ITaskFolder *folder; /* NULL: it is not there */
};

static const VARIANT nothing; /* VT_EMPTY */

static bool load(struct scheduler_com *com)
{
	com->ole = LoadLibraryW(L"ole32.dll");
	com->automation = LoadLibraryW(L"oleaut32.dll");
	if (!com->ole || !com->automation)
		return false;
	com->initialize = (void *)GetProcAddress(com->ole, "CoInitializeEx");
	com->uninitialize = (void *)GetProcAddress(com->ole, "CoUninitialize");
	com->create = (void *)GetProcAddress(com->ole, "CoCreateInstance");
	com->security = (void *)GetProcAddress(com->ole, "CoInitializeSecurity");
	com->text = (void *)GetProcAddress(com->automation, "SysAllocString");
	com->free_text = (void *)GetProcAddress(com->automation, "SysFreeString");
	com->date = (void *)GetProcAddress(com->automation, "VariantTimeToSystemTime");
	return com->initialize && com->uninitialize && com->create && com->security && com->text &&
	       com->free_text && com->date;
}

static bool is_missing(HRESULT hr)
{
	return hr == HRESULT_FROM_WIN32(ERROR_FILE_NOT_FOUND) ||
	       hr == HRESULT_FROM_WIN32(ERROR_PATH_NOT_FOUND);
}

/* The scheduler acts as whoever asks: it is allowed to, as the documentation's examples do. A process that
 * has settled that before keeps what it has. */
static HRESULT log_on(struct scheduler_com *com)
{
	HRESULT hr = com->initialize(NULL, COINIT_MULTITHREADED);

	if (FAILED(hr))
		return hr;
	com->is_initialized = true;
	com->security(NULL, -1, NULL, NULL, RPC_C_AUTHN_LEVEL_PKT_PRIVACY,
		RPC_C_IMP_LEVEL_IMPERSONATE, NULL, 0, NULL);
	hr = com->create(&CLSID_TaskScheduler, NULL, CLSCTX_INPROC_SERVER, &IID_ITaskService,
		(void **)&com->service);
	if (SUCCEEDED(hr))
		hr = ITaskService_Connect(com->service, nothing, nothing, nothing, nothing);
	/* what is not found here is the service, no task */
	return is_missing(hr) ? SCHED_E_SERVICE_NOT_AVAILABLE : hr;
}

static HRESULT make_folder(struct scheduler_com *com, bool is_system)
{
	BSTR root = com->text(L"\\"), name = com->text(SCHEDULER_FOLDER);
	BSTR rights = is_system ? com->text(RIGHTS_OF_ADMINISTRATORS) : NULL;
	ITaskFolder *top = NULL;
	VARIANT sddl = nothing;
	HRESULT hr = E_OUTOFMEMORY;

	if (rights) {
		V_VT(&sddl) = VT_BSTR;
		V_BSTR(&sddl) = rights;
	}
	if (root && name && (rights || !is_system))
		hr = ITaskService_GetFolder(com->service, root, &top);
	if (SUCCEEDED(hr))
		hr = ITaskFolder_CreateFolder(top, name, sddl, &com->folder);
	if (hr == HRESULT_FROM_WIN32(ERROR_ALREADY_EXISTS))
		hr = E_ACCESSDENIED; /* it is there, and was not shown to us */
	if (top)
		ITaskFolder_Release(top);
	com->free_text(root);
	com->free_text(name);
	com->free_text(rights);
	return hr;
}

static HRESULT find_folder(struct scheduler_com *com)
{
	BSTR path = com->text(L"\\" SCHEDULER_FOLDER);
	HRESULT hr =
		path ? ITaskService_GetFolder(com->service, path, &com->folder) : E_OUTOFMEMORY;

	com->free_text(path);
	return is_missing(hr) ? S_OK : hr;
}

HRESULT scheduler_com_open(struct scheduler_com **com)
{
	struct scheduler_com *made = calloc(1, sizeof(*made));
	HRESULT hr;

	if (!made)
		return E_OUTOFMEMORY;
	hr = load(made) ? log_on(made) : HRESULT_FROM_WIN32(ERROR_MOD_NOT_FOUND);
	if (SUCCEEDED(hr))
		hr = find_folder(made);
	if (FAILED(hr))
		scheduler_com_close(made);
	else
		*com = made;
	return hr;
}

void scheduler_com_close(struct scheduler_com *com)
{
	if (!com)
		return;
	if (com->folder)
		ITaskFolder_Release(com->folder);
	if (com->service)
		ITaskService_Release(com->service);
	if (com->is_initialized)
		com->uninitialize();
	if (com->automation)
		FreeLibrary(com->automation);
	if (com->ole)
		FreeLibrary(com->ole);
	free(com);
}

HRESULT scheduler_com_add(struct scheduler_com *com, const wchar_t *name, const wchar_t *xml,
	bool is_system, bool may_replace)
{
	BSTR path = com->text(name), text = com->text(xml);
	IRegisteredTask *task = NULL;
	HRESULT hr = path && text ? S_OK : E_OUTOFMEMORY;

	if (SUCCEEDED(hr) && !com->folder)
		hr = make_folder(com, is_system);
	if (SUCCEEDED(hr))
		hr = ITaskFolder_RegisterTask(com->folder, path, text,
			may_replace ? TASK_CREATE_OR_UPDATE : TASK_CREATE, nothing, nothing,
			is_system ? TASK_LOGON_SERVICE_ACCOUNT : TASK_LOGON_S4U, nothing, &task);
	if (task)
		IRegisteredTask_Release(task);
	com->free_text(path);
	com->free_text(text);
	return hr;
}

HRESULT scheduler_com_remove(struct scheduler_com *com, const wchar_t *name)
{
	BSTR path = com->text(name);
	HRESULT hr = HRESULT_FROM_WIN32(ERROR_FILE_NOT_FOUND);

	if (!path)
		hr = E_OUTOFMEMORY;
	else if (com->folder)
		hr = ITaskFolder_DeleteTask(com->folder, path, 0);
	com->free_text(path);
	return hr;
}

static HRESULT find_task(struct scheduler_com *com, const wchar_t *name, IRegisteredTask **task)
{
	BSTR path = com->text(name);
	HRESULT hr = HRESULT_FROM_WIN32(ERROR_FILE_NOT_FOUND);

	if (!path)
		hr = E_OUTOFMEMORY;
	else if (com->folder)
		hr = ITaskFolder_GetTask(com->folder, path, task);
	com->free_text(path);
	return hr;
}

HRESULT scheduler_com_xml(struct scheduler_com *com, const wchar_t *name, struct buf *bytes)
{
	IRegisteredTask *task = NULL;
	BSTR text = NULL;
	HRESULT hr = find_task(com, name, &task);

	if (SUCCEEDED(hr))
		hr = IRegisteredTask_get_Xml(task, &text);
	if (SUCCEEDED(hr) && text &&
		(buf_add(bytes, "\xff\xfe", 2) ||
			buf_add(bytes, text, wcslen(text) * sizeof(*text))))
		hr = E_OUTOFMEMORY;
	com->free_text(text);
	if (task)
		IRegisteredTask_Release(task);
	return hr;
}

/* A time of the scheduler's is a local one; 0 stands for none. */
static void time_text(struct scheduler_com *com, DATE date, char text[TASK_TIME_BYTES])
{
	SYSTEMTIME time;

	if (date > 0 && com->date(date, &time))
		snprintf(text, TASK_TIME_BYTES, "%04u-%02u-%02u %02u:%02u", time.wYear % 10000u,
			time.wMonth % 100u, time.wDay % 100u, time.wHour % 100u,
			time.wMinute % 100u);
}

void scheduler_com_state(struct scheduler_com *com, const wchar_t *name, struct task_state *state)
{
	IRegisteredTask *task = NULL;
	TASK_STATE kind = TASK_STATE_UNKNOWN;
	LONG result = 0;
	DATE date = 0;

	if (FAILED(find_task(com, name, &task)))
		return;
	if (IRegisteredTask_get_LastRunTime(task, &date) == S_OK)
		time_text(com, date, state->last);
	date = 0;
	if (IRegisteredTask_get_NextRunTime(task, &date) == S_OK)
		time_text(com, date, state->next);
	if (SUCCEEDED(IRegisteredTask_get_State(task, &kind)))
		state->kind = (unsigned)kind;
	if (SUCCEEDED(IRegisteredTask_get_LastTaskResult(task, &result))) {
		state->has_result = true;
		state->result = (uint32_t)result;
	}
	IRegisteredTask_Release(task);
}

static HRESULT take_name(struct scheduler_com *com, IRegisteredTaskCollection *tasks, LONG number,
	HRESULT (*each)(void *ctx, const wchar_t *name), void *ctx)
{
	IRegisteredTask *task = NULL;
	VARIANT index = nothing;
	BSTR name = NULL;
	HRESULT hr;

	V_VT(&index) = VT_I4;
	V_I4(&index) = number;
	hr = IRegisteredTaskCollection_get_Item(tasks, index, &task);
	if (SUCCEEDED(hr))
		hr = IRegisteredTask_get_Name(task, &name);
	if (SUCCEEDED(hr) && name)
		hr = each(ctx, name);
	com->free_text(name);
	if (task)
		IRegisteredTask_Release(task);
	return hr;
}

HRESULT scheduler_com_each(
	struct scheduler_com *com, HRESULT (*each)(void *ctx, const wchar_t *name), void *ctx)
{
	IRegisteredTaskCollection *tasks = NULL;
	LONG count = 0;
	HRESULT hr;

	if (!com->folder)
		return S_OK;
	hr = ITaskFolder_GetTasks(com->folder, TASK_ENUM_HIDDEN, &tasks);
	if (SUCCEEDED(hr))
		hr = IRegisteredTaskCollection_get_Count(tasks, &count);
	for (LONG i = 1; SUCCEEDED(hr) && i <= count; i++)
		hr = take_name(com, tasks, i, each, ctx);
	if (tasks)
		IRegisteredTaskCollection_Release(tasks);
	return hr;
}
