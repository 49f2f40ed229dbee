/*
 * Task Scheduler by its own interface, ITaskService ("Task Scheduler 2.0 Interfaces", Microsoft Learn), for Windows
 * Vista and later. Wine 8.0 registers and removes tasks, but keeps nothing of what they are to run, nor how often, and
 * lists none: there it answers E_NOTIMPL, which Windows does not.
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

#define FOLDER L"hsnap"
#define ELEVATION_REQUIRED 740 /* "System Error Codes", Microsoft Learn; headers of MinGW lack it */
#define NO_TASK HRESULT_FROM_WIN32(ERROR_FILE_NOT_FOUND)

/* ---------------------------------------------------------------- what it answers */

/* Windows keeps no text of SCHED_E_*, "Task Scheduler Error and Success Constants", Microsoft Learn, where others are
 * found. */
static const char *words(HRESULT hr, char *text, size_t size)
{
	switch ((uint32_t)hr) {
	case 0x80041315: /* SCHED_E_SERVICE_NOT_RUNNING */
	case 0x80041322: /* SCHED_E_SERVICE_NOT_AVAILABLE */
	case 0x80070426: /* ERROR_SERVICE_NOT_ACTIVE */
	case 0x800706ba: /* RPC_S_SERVER_UNAVAILABLE */
		return "its service does not run; start it with 'net start Schedule'";
	default: return windows_error((unsigned long)hr, text, size);
	}
}

static bool is_missing(HRESULT hr)
{
	return hr == HRESULT_FROM_WIN32(ERROR_FILE_NOT_FOUND) ||
	       hr == HRESULT_FROM_WIN32(ERROR_PATH_NOT_FOUND);
}

int scheduler_fail(HRESULT hr, const char *place, struct err *err)
{
	char text[300];

	if (hr == E_OUTOFMEMORY)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	if (hr == E_ACCESSDENIED || hr == HRESULT_FROM_WIN32(ELEVATION_REQUIRED) ||
		hr == HRESULT_FROM_WIN32(ERROR_PRIVILEGE_NOT_HELD))
		return err_set(err, ERR_ADMIN, place, "Task Scheduler: access denied");
	if (is_missing(hr))
		return err_set(err, ERR_NO_TASK, place, NULL);
	if (hr == HRESULT_FROM_WIN32(ERROR_ALREADY_EXISTS) ||
		hr == HRESULT_FROM_WIN32(ERROR_FILE_EXISTS))
		return err_set(err, ERR_TASK_EXISTS, place, NULL);
	if (hr == E_NOINTERFACE)
		return err_set(err, ERR_TASK, place, "it does not run one program");
	if (hr == E_NOTIMPL)
		return err_set(err, ERR_SYSTEM, place, "%s",
			"Wine's Task Scheduler runs no tasks and forgets what they are to run; "
			"'hsnap schedule add --print-xml' writes one for Windows");
	return err_set(err, ERR_SYSTEM, place, "Task Scheduler: %s, 0x%08lX",
		words(hr, text, sizeof(text)), (unsigned long)hr);
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

/* ---------------------------------------------------------------- a connection */

/* Of ole32.dll and oleaut32.dll, which are on every Windows; no other command of hsnap needs them. */
static struct {
	HRESULT(WINAPI *initialize)(void *, DWORD);
	void(WINAPI *uninitialize)(void);
	HRESULT(WINAPI *create)(REFCLSID, IUnknown *, DWORD, REFIID, void **);
	HRESULT(WINAPI *security)
	(void *, LONG, void *, void *, DWORD, DWORD, void *, DWORD, void *);
	BSTR(WINAPI *text)(const OLECHAR *);
	void(WINAPI *free_text)(BSTR);
	INT(WINAPI *date)(DOUBLE, SYSTEMTIME *);
} com;

struct session {
	BSTR name; /* of the task that it is about */
	ITaskService *service;
	ITaskFolder *folder; /* \hsnap; NULL: it is not there */
	bool is_initialized;
};

static const VARIANT nothing; /* VT_EMPTY */

static bool load(void)
{
	HMODULE ole = LoadLibraryW(L"ole32.dll"), automation = LoadLibraryW(L"oleaut32.dll");

	if (!ole || !automation)
		return false;
	com.initialize = (void *)GetProcAddress(ole, "CoInitializeEx");
	com.uninitialize = (void *)GetProcAddress(ole, "CoUninitialize");
	com.create = (void *)GetProcAddress(ole, "CoCreateInstance");
	com.security = (void *)GetProcAddress(ole, "CoInitializeSecurity");
	com.text = (void *)GetProcAddress(automation, "SysAllocString");
	com.free_text = (void *)GetProcAddress(automation, "SysFreeString");
	com.date = (void *)GetProcAddress(automation, "VariantTimeToSystemTime");
	return true;
}

static void session_close(struct session *session)
{
	if (session->name)
		com.free_text(session->name);
	if (session->folder)
		ITaskFolder_Release(session->folder);
	if (session->service)
		ITaskService_Release(session->service);
	if (session->is_initialized)
		com.uninitialize();
}

/* The scheduler acts as whoever asks: it is allowed to, as the documentation's examples do. */
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
	/* what is not found here is the service, no task */
	return is_missing(hr) ? HRESULT_FROM_WIN32(ERROR_SERVICE_NOT_ACTIVE) : hr;
}

/* NULL: out of memory. */
static BSTR bstr(const char *text)
{
	wchar_t *wide = wide_from_utf8(text);
	BSTR result = wide ? com.text(wide) : NULL;

	free(wide);
	return result;
}

/* To be closed, whatever is returned. */
static HRESULT session_open(struct session *session, const char *name)
{
	BSTR path = NULL;
	HRESULT hr;

	*session = (struct session){0};
	if (!load())
		return HRESULT_FROM_WIN32(ERROR_MOD_NOT_FOUND);
	session->name = bstr(name);
	path = com.text(L"\\" FOLDER);
	hr = path && session->name ? connect_service(session) : E_OUTOFMEMORY;
	if (SUCCEEDED(hr))
		hr = ITaskService_GetFolder(session->service, path, &session->folder);
	com.free_text(path);
	return session->service && is_missing(hr) ? S_OK : hr;
}

/* ---------------------------------------------------------------- what a task runs */

struct action {
	char *program, *arguments; /* UTF-8; the program without quotes around it */
};

static void action_release(struct action *action)
{
	free(action->program);
	free(action->arguments);
}

static HRESULT read_exec(IExecAction *exec, struct action *action)
{
	BSTR program = NULL, arguments = NULL;
	HRESULT hr = IExecAction_get_Path(exec, &program);
	size_t len;

	if (SUCCEEDED(hr))
		hr = IExecAction_get_Arguments(exec, &arguments);
	if (SUCCEEDED(hr)) {
		action->program = wide_to_utf8(program ? program : L"");
		action->arguments = wide_to_utf8(arguments ? arguments : L"");
		hr = action->program && action->arguments ? S_OK : E_OUTOFMEMORY;
	}
	com.free_text(program);
	com.free_text(arguments);
	len = SUCCEEDED(hr) ? strlen(action->program) : 0;
	if (len > 1 && action->program[0] == '"' && action->program[len - 1] == '"') {
		memmove(action->program, action->program + 1, len - 2);
		action->program[len - 2] = '\0';
	}
	return hr;
}

/* E_NOINTERFACE: anything but running one program. */
static HRESULT read_action(IRegisteredTask *task, struct action *action)
{
	ITaskDefinition *definition = NULL;
	IActionCollection *all = NULL;
	IAction *first = NULL;
	IExecAction *exec = NULL;
	LONG count = 0;
	HRESULT hr = IRegisteredTask_get_Definition(task, &definition);

	if (SUCCEEDED(hr))
		hr = ITaskDefinition_get_Actions(definition, &all);
	if (SUCCEEDED(hr))
		hr = IActionCollection_get_Count(all, &count);
	if (SUCCEEDED(hr))
		hr = count == 1 ? IActionCollection_get_Item(all, 1, &first) : E_NOINTERFACE;
	if (SUCCEEDED(hr))
		hr = IAction_QueryInterface(first, &IID_IExecAction, (void **)&exec);
	if (SUCCEEDED(hr))
		hr = read_exec(exec, action);
	if (exec)
		IExecAction_Release(exec);
	if (first)
		IAction_Release(first);
	if (all)
		IActionCollection_Release(all);
	if (definition)
		ITaskDefinition_Release(definition);
	return hr;
}

/* ---------------------------------------------------------------- adding, removing */

static HRESULT make_folder(struct session *session, bool is_system)
{
	BSTR root = com.text(L"\\"), name = com.text(FOLDER);
	BSTR rights = is_system ? com.text(RIGHTS_OF_ADMINISTRATORS) : NULL;
	ITaskFolder *top = NULL;
	VARIANT sddl = nothing;
	HRESULT hr = E_OUTOFMEMORY;

	if (rights) {
		V_VT(&sddl) = VT_BSTR;
		V_BSTR(&sddl) = rights;
	}
	if (root && name && (rights || !is_system))
		hr = ITaskService_GetFolder(session->service, root, &top);
	if (SUCCEEDED(hr))
		hr = ITaskFolder_CreateFolder(top, name, sddl, &session->folder);
	if (hr == HRESULT_FROM_WIN32(ERROR_ALREADY_EXISTS))
		hr = E_ACCESSDENIED; /* it is there, and was not shown to us */
	if (top)
		ITaskFolder_Release(top);
	com.free_text(root);
	com.free_text(name);
	com.free_text(rights);
	return hr;
}

/* How whoever the XML names is to be logged on is asked for beside it: as a service's account, which the system's is,
 * or as a user without a password (S4U). */
int scheduler_add(
	const char *name, const char *xml, bool is_system, bool may_replace, struct err *err)
{
	struct session session;
	struct action kept = {0};
	IRegisteredTask *task = NULL;
	HRESULT hr = session_open(&session, name);

	if (SUCCEEDED(hr) && !session.folder)
		hr = make_folder(&session, is_system);
	if (SUCCEEDED(hr)) {
		BSTR text = bstr(xml);

		hr = text ? ITaskFolder_RegisterTask(session.folder, session.name, text,
				    may_replace ? TASK_CREATE_OR_UPDATE : TASK_CREATE, nothing,
				    nothing,
				    is_system ? TASK_LOGON_SERVICE_ACCOUNT : TASK_LOGON_S4U,
				    nothing, &task) :
			    E_OUTOFMEMORY;
		com.free_text(text);
	}
	if (SUCCEEDED(hr) && scheduler_warning(hr))
		fprintf(stderr, "hsnap: %s: warning: %s\n", name, scheduler_warning(hr));
	if (SUCCEEDED(hr)) {
		hr = read_action(task, &kept);
		if (FAILED(hr)) /* it would run nothing */
			ITaskFolder_DeleteTask(session.folder, session.name, 0);
	}
	if (task)
		IRegisteredTask_Release(task);
	action_release(&kept);
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

/* ---------------------------------------------------------------- listing */

/* A time of the scheduler's is a local one; 0 stands for none. */
static void time_text(DATE date, char text[TASK_TIME_BYTES])
{
	SYSTEMTIME time;

	if (date > 0 && com.date(date, &time))
		snprintf(text, TASK_TIME_BYTES, "%04u-%02u-%02u %02u:%02u", time.wYear % 10000u,
			time.wMonth % 100u, time.wDay % 100u, time.wHour % 100u,
			time.wMinute % 100u);
}

static void read_state(IRegisteredTask *task, struct task_listed *row)
{
	TASK_STATE state = TASK_STATE_UNKNOWN;
	LONG result = 0;
	DATE last = 0, next = 0;
	BSTR wide = NULL;
	char *xml;

	if (IRegisteredTask_get_LastRunTime(task, &last) == S_OK)
		time_text(last, row->last);
	if (IRegisteredTask_get_NextRunTime(task, &next) == S_OK)
		time_text(next, row->next);
	if (SUCCEEDED(IRegisteredTask_get_State(task, &state)))
		row->state = (unsigned)state;
	row->has_result = SUCCEEDED(IRegisteredTask_get_LastTaskResult(task, &result));
	row->result = (uint32_t)result;
	if (SUCCEEDED(IRegisteredTask_get_Xml(task, &wide)) && wide) {
		xml = wide_to_utf8(wide);
		if (xml)
			task_every_text(xml, row->every);
		free(xml);
	}
	com.free_text(wide);
}

static HRESULT print_row(IRegisteredTask *task, const char *name)
{
	struct task_listed row = {.name = name};
	struct action action = {0};
	HRESULT hr = read_action(task, &action);

	if (SUCCEEDED(hr)) {
		row.program = action.program;
		row.arguments = action.arguments;
		row.runs_hsnap = scheduler_is_own_program(action.program);
	}
	read_state(task, &row);
	if (hr == E_NOINTERFACE)
		hr = S_OK;
	if (SUCCEEDED(hr) && task_table_row(stdout, &row))
		hr = E_OUTOFMEMORY;
	action_release(&action);
	return hr;
}

static HRESULT list_one(IRegisteredTaskCollection *tasks, LONG number)
{
	IRegisteredTask *task = NULL;
	VARIANT index = nothing;
	BSTR wide = NULL;
	char *name = NULL;
	HRESULT hr;

	V_VT(&index) = VT_I4;
	V_I4(&index) = number;
	hr = IRegisteredTaskCollection_get_Item(tasks, index, &task);
	if (SUCCEEDED(hr))
		hr = IRegisteredTask_get_Name(task, &wide);
	if (SUCCEEDED(hr)) {
		name = wide_to_utf8(wide ? wide : L"");
		hr = name ? print_row(task, name) : E_OUTOFMEMORY;
	}
	free(name);
	com.free_text(wide);
	if (task)
		IRegisteredTask_Release(task);
	return hr;
}

int scheduler_list(struct err *err)
{
	struct session session;
	IRegisteredTaskCollection *tasks = NULL;
	LONG count = 0;
	HRESULT hr = session_open(&session, "");

	if (SUCCEEDED(hr) && session.folder)
		hr = ITaskFolder_GetTasks(session.folder, TASK_ENUM_HIDDEN, &tasks);
	if (SUCCEEDED(hr) && tasks)
		hr = IRegisteredTaskCollection_get_Count(tasks, &count);
	if (SUCCEEDED(hr) && !count)
		printf("there are no tasks of hsnap's (the system's are shown to "
		       "administrators)\n");
	else if (SUCCEEDED(hr))
		task_table_head(stdout);
	for (LONG i = 1; SUCCEEDED(hr) && i <= count; i++)
		hr = list_one(tasks, i);
	if (tasks)
		IRegisteredTaskCollection_Release(tasks);
	session_close(&session);
	return FAILED(hr) ? scheduler_fail(hr, "schedule list", err) : 0;
}

/* ---------------------------------------------------------------- running */

int scheduler_action_arguments(const char *name, const char *program, const char *arguments,
	int *argc, char ***argv, struct err *err)
{
	struct buf folder = {0}, keep = {0}, line = {0};
	wchar_t *wide = NULL;
	int rc = 0;

	if (!scheduler_is_own_program(program))
		return err_set(err, ERR_TASK, name, "it runs another program, %s", program);
	rc = task_arguments_read(arguments, name, &folder, &keep);
	if (!buf_printf(&line, "hsnap %s", arguments))
		wide = wide_from_utf8(line.data);
	if (!rc)
		rc = err_set(err, ERR_TASK, name, "with other arguments: %s", arguments);
	else if (rc < 0 || !wide || windows_arguments(wide, argc, argv))
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	else
		rc = 0;
	free(wide);
	buf_release(&folder);
	buf_release(&keep);
	buf_release(&line);
	return rc;
}

int scheduler_arguments(const char *name, int *argc, char ***argv, struct err *err)
{
	struct session session;
	struct action action = {0};
	IRegisteredTask *task = NULL;
	HRESULT hr = session_open(&session, name);
	int rc;

	if (SUCCEEDED(hr))
		hr = session.folder ? ITaskFolder_GetTask(session.folder, session.name, &task) :
				      NO_TASK;
	if (SUCCEEDED(hr))
		hr = read_action(task, &action);
	if (task)
		IRegisteredTask_Release(task);
	session_close(&session);
	rc = FAILED(hr) ? scheduler_fail(hr, name, err) :
			  scheduler_action_arguments(
				  name, action.program, action.arguments, argc, argv, err);
	action_release(&action);
	return rc;
}
