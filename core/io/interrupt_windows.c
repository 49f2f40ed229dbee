/*
 * Interrupts, the steady clock and waiting on Windows. A console control handler, on its own
 * thread, either ends the process, or holds back the first Ctrl-C and wakes os_wait() using an
 * event.
 */
#include <stdlib.h>

#include <windows.h>

#include "core/base/os.h"

static void (*interrupt_handler)(void);
static void (*end_handler)(void);
static void (*held_handler)(void);

/* A program between hsnap and the terminal, such as timeout(1), may forward a Ctrl-C that hsnap
 * also receives directly. A second Ctrl-C within this time counts as the same key press. */
#define SAME_PRESS_MS 300

static volatile LONG interrupt_held, is_ending;
static volatile LONG64 interrupt_ms; /* time when an interrupt was held back; 0: never */
/* Event that is set after an interrupt was held back; NULL: no interrupt can be held back. */
static HANDLE waker;

/* Returns true if the interrupt must not end the process. */
static bool hold_back(void)
{
	int64_t now = os_clock_ms() | 1, first;

	if (!interrupt_held)
		return false;
	first = InterlockedCompareExchange64(&interrupt_ms, now, 0);
	if (first)
		return now - first < SAME_PRESS_MS;
	SetEvent(waker);
	if (held_handler)
		held_handler();
	return true;
}

static void end_process(void)
{
	if (interrupt_handler)
		interrupt_handler();
	if (end_handler && !InterlockedExchange(&is_ending, 1))
		end_handler();
	TerminateProcess(GetCurrentProcess(), 2);
}

void os_end(void)
{
	end_process();
	abort(); /* not reached */
}

/* Handles a console event, on a thread created by Windows. */
static BOOL WINAPI on_control(DWORD type)
{
	bool is_interrupt = type == CTRL_C_EVENT || type == CTRL_BREAK_EVENT;

	if (is_interrupt && hold_back())
		return TRUE;
	end_process();
	return TRUE;
}

void os_on_interrupt(void (*handler)(void))
{
	interrupt_handler = handler;
	SetConsoleCtrlHandler(on_control, TRUE);
}

void os_on_end(void (*last)(void))
{
	end_handler = last;
}

void os_on_held(void (*told)(void))
{
	held_handler = told;
}

void os_hold_interrupt(bool is_held)
{
	if (is_held && !waker)
		waker = CreateEventW(NULL, TRUE, FALSE, NULL);
	InterlockedExchange(&interrupt_held, is_held && waker);
}

bool os_was_interrupted(void)
{
	return interrupt_ms != 0;
}

int64_t os_clock_ms(void)
{
	LARGE_INTEGER ticks, each_s;

	QueryPerformanceFrequency(&each_s);
	/* the performance counter, because GetTickCount64() advances in steps of 16 ms */
	QueryPerformanceCounter(&ticks);
	return ticks.QuadPart / each_s.QuadPart * 1000 +
	       ticks.QuadPart % each_s.QuadPart * 1000 / each_s.QuadPart;
}

void os_wait(int64_t until_ms, const intptr_t *handles, size_t count)
{
	HANDLE all[OS_WAIT_MAX + 1];
	int64_t now = os_clock_ms();
	DWORD used = 0, ms;

	if (until_ms <= now || interrupt_ms)
		return;
	ms = (DWORD)(until_ms - now < OS_WAIT_MS ? until_ms - now : OS_WAIT_MS);
	if (waker)
		all[used++] = waker;
	for (size_t i = 0; i < count; i++)
		all[used++] = (HANDLE)handles[i];
	if (!used || WaitForMultipleObjects(used, all, FALSE, ms) == WAIT_FAILED)
		Sleep(ms);
}
