#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "core/buf.h"
#include "core/os.h"
#include "core/pe.h"
#include "core/utf_windows.h"
#include "snapshot/control/inject_windows.h"
#include "snapshot/control/install_windows.h"
#include "snapshot/live/process.h"
#include "snapshot/control/spawn_windows.h"
#include "snapshot/stacks/tracer_table.h"

#define PATH_UNITS 32768

struct child {
	struct spawn spawn;
	struct injection injection;
	HANDLE exit_reached, exit_continue;
};

static int add_backslashes(struct buf *line, size_t count)
{
	int rc = 0;

	while (count-- && !rc)
		rc = buf_add_text(line, "\\");
	return rc;
}

/* One argument as CommandLineToArgvW() reads it back: before a quote backslashes count twice. */
static int quote_argument(struct buf *line, const char *arg)
{
	int rc = buf_add_text(line, line->len ? " \"" : "\"");

	while (!rc) {
		size_t backslashes = strspn(arg, "\\");

		arg += backslashes;
		if (!*arg)
			return add_backslashes(line, 2 * backslashes) ? -ERR_NOMEM :
									buf_add_text(line, "\"");
		rc = add_backslashes(line, *arg == '"' ? 2 * backslashes + 1 : backslashes);
		if (!rc)
			rc = buf_add(line, arg++, 1);
	}
	return rc;
}

static int add_argument(struct buf *line, const char *arg)
{
	int rc;

	if (!*arg || strpbrk(arg, " \t\n\v\""))
		return quote_argument(line, arg);
	rc = buf_add_text(line, line->len ? " " : "");
	return rc ? rc : buf_add_text(line, arg);
}

static wchar_t *command_line(char **argv)
{
	wchar_t *wide = NULL;
	struct buf line;
	int rc = 0;

	buf_init(&line);
	for (; *argv && !rc; argv++)
		rc = add_argument(&line, *argv);
	if (!rc && line.len)
		wide = wide_from_utf8(line.data);
	buf_release(&line);
	return wide;
}

/* The child gets this process's streams, whatever they are. */
static void pass_streams(STARTUPINFOW *startup)
{
	startup->dwFlags |= STARTF_USESTDHANDLES;
	startup->hStdInput = GetStdHandle(STD_INPUT_HANDLE);
	startup->hStdOutput = GetStdHandle(STD_OUTPUT_HANDLE);
	startup->hStdError = GetStdHandle(STD_ERROR_HANDLE);
	SetHandleInformation(startup->hStdInput, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
	SetHandleInformation(startup->hStdOutput, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
	SetHandleInformation(startup->hStdError, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
}

static int read_file(void *ctx, uint64_t offset, void *bytes, size_t len)
{
	return os_read_at(ctx, offset, bytes, len);
}

/* Where the system would find the program, UTF-8 and the caller's to free; or NULL. */
static char *find_program(const char *program)
{
	wchar_t *wide = wide_from_utf8(program), *path = malloc(PATH_UNITS * sizeof(*path));
	DWORD len = wide && path ? SearchPathW(NULL, wide, L".exe", PATH_UNITS, path, NULL) : 0;
	char *found = len && len < PATH_UNITS ? utf8_from_wide(path) : NULL;

	free(path);
	free(wide);
	return found;
}

/* A 32-bit program should not be started: it could not load a 64-bit tracer. What is no image at all
 * (a script) is not judged here. */
static bool is_32_bit(const char *program)
{
	char *path = find_program(program);
	struct pe_image *image = malloc(sizeof(*image));
	struct os_file file;
	bool result = false;

	if (path && image && !os_open(&file, path, NULL)) {
		struct pe_source source = {.read = read_file, .ctx = &file};

		result = !pe_read_headers(&source, image) && image->machine == PE_MACHINE_I386;
		os_close(&file);
	}
	free(image);
	free(path);
	return result;
}

static int start_suspended(const struct run *run, struct child *child, struct err *err)
{
	struct spawn_request request = {
		.command = command_line(run->argv), .flags = CREATE_SUSPENDED};
	char text[300];
	int rc = 0;

	if (!request.command)
		return err_set(err, ERR_NOMEM, run->argv[0], NULL);
	pass_streams(&request.startup);
	if (is_32_bit(run->argv[0]))
		rc = err_set(err, ERR_BITS, run->argv[0], NULL);
	else if (!spawn_start(&child->spawn, &request))
		rc = err_set(err, ERR_START, run->argv[0], "%s",
			windows_error(GetLastError(), text, sizeof(text)));
	free(request.command);
	return rc;
}

/* A handle of the child's for one of ours, or 0. */
static uint64_t give(struct child *child, HANDLE ours, DWORD access)
{
	HANDLE theirs = NULL;

	if (!DuplicateHandle(GetCurrentProcess(), ours, child->spawn.info.hProcess, &theirs, access,
		    FALSE, 0))
		return 0;
	return (uint64_t)theirs;
}

/* Tells the tracer to wait at exit, and whom for. */
static int arrange_exit(struct child *child, uint64_t area_addr, struct err *err)
{
	uint64_t handles[3];

	child->exit_reached = CreateEventW(NULL, TRUE, FALSE, NULL);
	child->exit_continue = CreateEventW(NULL, TRUE, FALSE, NULL);
	handles[0] = give(child, child->exit_reached, EVENT_MODIFY_STATE | SYNCHRONIZE);
	handles[1] = give(child, child->exit_continue, SYNCHRONIZE);
	handles[2] = give(child, GetCurrentProcess(), SYNCHRONIZE);
	if (!handles[0] || !handles[1] || !handles[2] ||
		!WriteProcessMemory(child->spawn.info.hProcess,
			(LPVOID)(area_addr + offsetof(struct tracer_area, exit_reached)), handles,
			sizeof(handles), NULL))
		return err_set(
			err, ERR_INJECT, "at exit", "the program's memory cannot be written");
	return 0;
}

/* Makes sure that the tracer is at work, and tells it what to do at the end. */
static int trace(const struct run *run, struct child *child, struct target *target, struct err *err)
{
	struct install_options options = {.limit_bytes = (uint64_t)4 << 30};
	struct snapshot modules;
	uint64_t area_addr = 0;
	int rc;

	snapshot_init(&modules);
	rc = target->ops->modules(target, &modules, err);
	if (!rc)
		rc = tracer_find(target, modules.modules, modules.module_count, &area_addr, err);
	if (rc == -ERR_NOT_TRACED)
		rc = err_set(err, ERR_INJECT, run->argv[0], "it does not load " TRACER_DLL_64);
	if (!rc)
		rc = install(target, child->spawn.info.hProcess, area_addr, &options, err);
	if (!rc && run->at_exit)
		rc = arrange_exit(child, area_addr, err);
	snapshot_release(&modules);
	return rc;
}

/* Waits for the end, and takes the snapshot when the program has arrived there. */
static int wait_for_end(const struct run *run, struct child *child, struct target *target,
	uint32_t *exit_status, struct err *err)
{
	HANDLE handles[] = {child->spawn.info.hProcess, child->exit_reached};
	DWORD count = child->exit_reached ? 2 : 1, status = 0;
	bool reached = false;
	int rc = 0;

	if (WaitForMultipleObjects(count, handles, FALSE, INFINITE) == WAIT_OBJECT_0 + 1) {
		reached = true;
		rc = run->snapshot(target, run->at_exit, err);
		SetEvent(child->exit_continue);
		WaitForSingleObject(child->spawn.info.hProcess, INFINITE);
	}
	GetExitCodeProcess(child->spawn.info.hProcess, &status);
	*exit_status = status;
	if (run->at_exit && !reached)
		rc = err_set(err, ERR_GONE, target->name,
			"before it came to its own exit: a crash, or another process");
	return rc;
}

/* Ctrl-C is the program's: hsnap waits for what it does with it. */
static BOOL WINAPI leave_to_child(DWORD type)
{
	return type == CTRL_C_EVENT || type == CTRL_BREAK_EVENT;
}

static void release(struct child *child)
{
	HANDLE handles[] = {child->spawn.info.hThread, child->spawn.info.hProcess,
		child->exit_reached, child->exit_continue};

	injection_release(&child->injection);
	spawn_let_go(&child->spawn);
	for (size_t i = 0; i < sizeof(handles) / sizeof(*handles); i++) {
		if (handles[i])
			CloseHandle(handles[i]);
	}
}

/* From the program's creation to its first instruction, with the tracer at work. A program that ends
 * on this way (a DLL is missing, say) has its status, and no trace. */
static int bring_up(
	const struct run *run, struct child *child, struct target *target, struct err *err)
{
	HANDLE process = child->spawn.info.hProcess, thread = child->spawn.info.hThread;
	int rc = target_open_handle(target, process, err);

	/* Its file was no image, or another one: it may be 32-bit after all. */
	if (!rc && target->bits != 64)
		rc = err_set(err, ERR_BITS, run->argv[0], NULL);
	if (!rc)
		rc = injection_prepare(&child->injection, process, thread, run->argv[0], err);
	if (rc)
		return rc;
	ResumeThread(thread);
	spawn_let_go(&child->spawn);
	if (injection_wait(&child->injection))
		rc = trace(run, child, target, err);
	if (!rc)
		injection_release(&child->injection);
	return rc;
}

int run(const struct run *run, uint32_t *exit_status, struct err *err)
{
	struct child child = {0};
	struct target target = {0};
	int rc;

	SetConsoleCtrlHandler(leave_to_child, TRUE);
	rc = start_suspended(run, &child, err);
	if (rc)
		return rc;
	rc = bring_up(run, &child, &target, err);
	if (rc)
		TerminateProcess(child.spawn.info.hProcess, 2);
	else
		rc = wait_for_end(run, &child, &target, exit_status, err);
	if (target.system)
		target.ops->close(&target);
	release(&child);
	return rc;
}
