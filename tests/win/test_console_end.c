/* Requests of a console to end this process: the test calls the handler in place of the system,
 * records the termination instead of performing it, and stops the clock. (Wine sends only Ctrl-C,
 * which another test covers.) Prints TAP. */
#include <stdio.h>
#include <string.h>
#include <windows.h>

#include "core/base/os.h"
#include "tests/win/tap.h"

static BOOL WINAPI on_set(PHANDLER_ROUTINE routine, BOOL is_added);
static BOOL WINAPI on_terminate(HANDLE process, UINT status);
static BOOL WINAPI on_clock(LARGE_INTEGER *ticks);
static BOOL WINAPI on_rate(LARGE_INTEGER *each_s);
/* The linker uses these pointers in place of the imported functions. */
BOOL(WINAPI *imported_set)(PHANDLER_ROUTINE, BOOL) __asm__("__imp_SetConsoleCtrlHandler") = on_set;
BOOL(WINAPI *imported_end)(HANDLE, UINT) __asm__("__imp_TerminateProcess") = on_terminate;
BOOL(WINAPI *imported_clock)(LARGE_INTEGER *) __asm__("__imp_QueryPerformanceCounter") = on_clock;
BOOL(WINAPI *imported_rate)(LARGE_INTEGER *) __asm__("__imp_QueryPerformanceFrequency") = on_rate;

static PHANDLER_ROUTINE control;
static char calls[100]; /* log of the calls, in order */

static void note(const char *call)
{
	size_t len = strlen(calls);

	snprintf(calls + len, sizeof(calls) - len, "%s ", call);
}

static BOOL WINAPI on_set(PHANDLER_ROUTINE routine, BOOL is_added)
{
	control = is_added ? routine : NULL;
	return TRUE;
}

static BOOL WINAPI on_terminate(HANDLE process, UINT status)
{
	note(process == GetCurrentProcess() && status == 2 ? "ended" : "what?");
	return TRUE;
}

static int64_t clock_ms = 1000;

static BOOL WINAPI on_clock(LARGE_INTEGER *ticks)
{
	ticks->QuadPart = clock_ms;
	return TRUE;
}

static BOOL WINAPI on_rate(LARGE_INTEGER *each_s)
{
	each_s->QuadPart = 1000;
	return TRUE;
}

static void handler(void)
{
	note("handler");
}

static void last(void)
{
	note("last");
}

static void told(void)
{
	note("told");
}

static bool ends_by(DWORD type, const char *expected)
{
	bool same;

	calls[0] = '\0';
	control(type);
	same = !strcmp(calls, expected);
	if (!same)
		printf("# %s\n", calls);
	return same;
}

int main(void)
{
	static const DWORD ends[] = {CTRL_CLOSE_EVENT, CTRL_LOGOFF_EVENT, CTRL_SHUTDOWN_EVENT};

	os_on_interrupt(handler);
	ok(control, "the console knows whom to call");
	ok(ends_by(CTRL_C_EVENT, "handler ended "), "Ctrl-C ends the process, in order");
	ok(ends_by(CTRL_BREAK_EVENT, "handler ended "), "and so does Ctrl-Break");
	os_hold_interrupt(true);
	os_on_end(last);
	os_on_held(told);
	for (size_t i = 0; i < 3; i++)
		ok(ends_by(ends[i], i ? "handler ended " : "handler last ended "),
			"a console that is closed ends it while it is held, and its last word is "
			"said once");
	ok(!os_was_interrupted(), "which is no interrupt");
	ok(ends_by(CTRL_BREAK_EVENT, "told ") && os_was_interrupted(),
		"Ctrl-Break is held back, as Ctrl-C, and that is told");
	clock_ms += 250;
	ok(ends_by(CTRL_C_EVENT, ""), "a quarter of a second later it is the same press");
	clock_ms += 250;
	ok(ends_by(CTRL_C_EVENT, "handler ended "), "a second one ends it");
	return ok_end();
}
