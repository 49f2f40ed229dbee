#include "snapshot/control/run_windows.h"

#include <stdlib.h>
#include <windows.h>

#include "core/utf_windows.h"
#include "snapshot/control/command_line.h"
#include "snapshot/control/delegate_windows.h"
#include "snapshot/control/family_windows.h"
#include "snapshot/control/program_windows.h"
#include "snapshot/control/spawn_windows.h"
#include "snapshot/control/start_fail_windows.h"

/* COM keeps freed strings for the next ones, with the stacks of those before them, unless this is set;
 * "Debugging memory leaks", Microsoft Learn. */
static void avoid_bstr_cache(void)
{
	static const wchar_t name[] = L"OANOCACHE";

	if (!GetEnvironmentVariableW(name, NULL, 0) && GetLastError() == ERROR_ENVVAR_NOT_FOUND)
		SetEnvironmentVariableW(name, L"1");
}

static wchar_t *command_line(const char *const *argv)
{
	wchar_t *wide = NULL;
	struct buf line;

	buf_init(&line);
	if (!command_line_add(&line, argv) && line.len)
		wide = wide_from_utf8(line.data);
	buf_release(&line);
	return wide;
}

static int create(const struct run *run, struct spawn *spawn, const wchar_t *path, struct err *err)
{
	struct spawn_request request = {
		.command = command_line(run->argv), .flags = CREATE_SUSPENDED};
	int rc = 0;

	if (!request.command)
		return err_set(err, ERR_NOMEM, run->argv[0], NULL);
	/* By its command line the system finds paths of the usual length only. */
	if (path && wcslen(path) >= MAX_PATH)
		request.image = path;
	spawn_pass_streams(&request.startup);
	if (!spawn_start(spawn, &request))
		rc = start_fail(GetLastError(), run->argv[0], err);
	free(request.command);
	return rc;
}

/* Starts the program, suspended; not one that could not load our tracer. */
static int start(const struct run *run, struct spawn *spawn, struct err *err)
{
	wchar_t *path = program_find(run->argv[0]);
	unsigned bits = path ? program_bits(path) : 0;
	int rc;

	if (bits && bits != OUR_BITS)
		rc = err_set(err, ERR_BITS, run->argv[0], NULL);
	else
		rc = create(run, spawn, path, err);
	free(path);
	return rc;
}

/* From the program's creation to its first instruction, with the tracer at work. A program that ends
 * on this way (a DLL is missing, say) has its status, and no trace. */
static int bring_up(const struct run *run, struct spawn *spawn, struct traced *traced,
	const struct traced_options *options, struct err *err)
{
	/* Its file was no image, or another one: it may be of the other bitness after all. */
	int rc = traced_prepare(
		traced, spawn->info.hProcess, spawn->info.hThread, run->argv[0], err);

	if (rc)
		return rc;
	ResumeThread(spawn->info.hThread);
	spawn_let_go(spawn);
	return traced_bring_up(traced, NULL, options, err);
}

static int run_started(const struct run *run, struct spawn *spawn, struct family *family,
	uint32_t *exit_status, struct err *err)
{
	struct traced traced = {0};
	DWORD status = 2;
	int rc = bring_up(run, spawn, &traced, &family->options, err);

	if (rc) {
		TerminateProcess(spawn->info.hProcess, 2);
	} else {
		rc = family_follow(family, &traced, err);
		GetExitCodeProcess(spawn->info.hProcess, &status);
		*exit_status = status;
	}
	traced_release(&traced);
	spawn_let_go(spawn);
	CloseHandle(spawn->info.hThread);
	CloseHandle(spawn->info.hProcess);
	return rc;
}

static int run_here(const struct run *run, uint32_t *exit_status, struct err *err)
{
	struct family family;
	struct spawn spawn = {0};
	int rc = family_init(&family, run, err);

	if (rc)
		return rc;
	rc = start(run, &spawn, err);
	if (!rc)
		rc = run_started(run, &spawn, &family, exit_status, err);
	family_end(&family);
	if (family.is_late)
		*exit_status = RUN_LATE;
	return rc;
}

int run(const struct run *run, uint32_t *exit_status, struct err *err)
{
	int rc;

	leave_interrupts_to_child();
	if (!run->keep_bstr_cache)
		avoid_bstr_cache();
	rc = run_here(run, exit_status, err);
	return rc == -ERR_BITS ? delegate(run->argv[0], exit_status, err) : rc;
}
