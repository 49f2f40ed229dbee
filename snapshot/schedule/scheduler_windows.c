/*
 * Access to Task Scheduler through its own interface, ITaskService ("Task Scheduler 2.0
 * Interfaces", Microsoft Learn), on Windows Vista and later. Wine 8.0 registers and removes tasks,
 * but does not store their programs and intervals, and does not list tasks. For these, it returns
 * E_NOTIMPL, which Windows never does. */
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

#define STOPPED "Task Scheduler: its service does not run; start it with 'net start Schedule', 0x"

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
		{0x80004002, ERR_TASK, "does not run exactly one program"}, /* E_NOINTERFACE */
		{0x80004001, ERR_SYSTEM, /* E_NOTIMPL */
			"Wine's Task Scheduler runs no tasks and forgets their programs; "
			"'hsnap schedule add --print-xml' writes one for Windows"},
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
	INT(WINAPI *date)(DOUBLE, SYSTEMTIME *);
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
	com.date = (void *)GetProcAddress(automation, "VariantTimeToSystemTime");
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
	/* This result means that the service is missing, not a task. */
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

/* Converts a string to UTF-8 and frees it; NULL counts as an empty string. */
static char *utf8(BSTR wide)
{
	char *text = scheduler_utf8(wide ? wide : L"");

	com.free_text(wide);
	return text;
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

/* ---------------------------------------------------------------- action of a task */

struct action {
	char *program, *arguments; /* in UTF-8; program without its quotes */
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
	action->program = utf8(program);
	action->arguments = utf8(arguments);
	len = strlen(action->program);
	if (len > 1 && action->program[0] == '"' && action->program[len - 1] == '"') {
		memmove(action->program, action->program + 1, len - 2);
		action->program[len - 2] = '\0';
	}
	return hr;
}

/* Returns E_NOINTERFACE unless the task runs a single program. */
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
	release(exec);
	release(first);
	release(all);
	release(definition);
	return hr;
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

/* The XML contains the account. The kind of logon is a separate argument: a service account (for
 * the system), or a user without a password (S4U). */
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

		hr = ITaskFolder_RegisterTask(session.folder, session.name, text,
			may_replace ? TASK_CREATE_OR_UPDATE : TASK_CREATE, nothing, nothing,
			is_system ? TASK_LOGON_SERVICE_ACCOUNT : TASK_LOGON_S4U, nothing, &task);
		com.free_text(text);
	}
	if (SUCCEEDED(hr) && scheduler_warning(hr))
		fprintf(stderr, "hsnap: %s: warning: %s\n", name, scheduler_warning(hr));
	if (SUCCEEDED(hr)) {
		hr = read_action(task, &kept);
		if (FAILED(hr)) /* the task would run nothing */
			ITaskFolder_DeleteTask(session.folder, session.name, 0);
	}
	release(task);
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

/* Formats one of the scheduler's local times; 0 means no time. */
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

	if (IRegisteredTask_get_LastRunTime(task, &last) == S_OK)
		time_text(last, row->last);
	if (IRegisteredTask_get_NextRunTime(task, &next) == S_OK)
		time_text(next, row->next);
	if (SUCCEEDED(IRegisteredTask_get_State(task, &state)))
		row->state = (unsigned)state;
	row->has_result = SUCCEEDED(IRegisteredTask_get_LastTaskResult(task, &result));
	row->result = (uint32_t)result;
	if (SUCCEEDED(IRegisteredTask_get_Xml(task, &wide))) {
		char *xml = utf8(wide);

		task_every_text(xml, row->every);
		free(xml);
	}
}

static HRESULT list_one(IRegisteredTaskCollection *tasks, LONG number)
{
	IRegisteredTask *task = NULL;
	struct task_listed row = {0};
	struct action action = {0};
	VARIANT index = nothing;
	BSTR name = NULL;
	HRESULT hr;

	V_VT(&index) = VT_I4;
	V_I4(&index) = number;
	hr = IRegisteredTaskCollection_get_Item(tasks, index, &task);
	if (SUCCEEDED(hr))
		hr = IRegisteredTask_get_Name(task, &name);
	if (SUCCEEDED(hr))
		hr = read_action(task, &action);
	if (task && (SUCCEEDED(hr) || hr == E_NOINTERFACE)) {
		char *text = utf8(name);

		row.name = text;
		row.program = action.program;
		row.arguments = action.arguments;
		row.runs_hsnap = SUCCEEDED(hr) && scheduler_is_own_program(action.program);
		read_state(task, &row);
		task_table_row(stdout, &row);
		free(text);
		hr = S_OK;
	}
	action_release(&action);
	release(task);
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
		printf("no tasks of hsnap (only administrators see those of the system)\n");
	else if (SUCCEEDED(hr))
		task_table_head(stdout);
	for (LONG i = 1; SUCCEEDED(hr) && i <= count; i++)
		hr = list_one(tasks, i);
	release(tasks);
	session_close(&session);
	return FAILED(hr) ? scheduler_fail(hr, "schedule list", err) : 0;
}

/* ---------------------------------------------------------------- running */

int scheduler_action_arguments(const char *name, const char *program, const char *arguments,
	int *argc, char ***argv, struct err *err)
{
	struct buf folder = {0}, keep = {0}, line = {0};
	wchar_t *wide;
	int rc = 0;

	if (!scheduler_is_own_program(program))
		return err_set(err, ERR_TASK, name, "runs another program, %s", program);
	buf_printf(&line, "hsnap %s", arguments);
	wide = wide_from_utf8(line.data);
	if (!task_arguments_read(arguments, name, &folder, &keep))
		rc = err_set(err, ERR_TASK, name, "with other arguments: %s", arguments);
	else
		windows_arguments(wide, argc, argv);
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
	release(task);
	session_close(&session);
	rc = FAILED(hr) ? scheduler_fail(hr, name, err) :
			  scheduler_action_arguments(
				  name, action.program, action.arguments, argc, argv, err);
	action_release(&action);
	return rc;
}
