/*
 * told FILE WHAT [ARG...]: writes what its parent process passed on into FILE, in UTF-8; "-" is
 * standard output.
 *
 *   env NAME     the variable's value, or "unset"
 *   folder       the current folder
 *   image        its own path
 *   streams      the kinds of standard input, output and error; then the first line of input, and
 *                the words "out" and "err" into the others
 *   exit STATUS  nothing: ends with the status, decimal, up to 32 bits
 *   status LINE  starts the command line and writes the status of the program, hexadecimal
 *   closed LINE  like status, for a program that has no standard streams
 *   console LINE like status, in a new console, where Ctrl-C does not end it
 *   ctrl EVENT   raises Ctrl-C (0) or Ctrl-Break (1) for all in its console, waits until its own
 *                handler has seen it, and ends with status 55 + EVENT, or 56 + EVENT * 10 on
 *                failure
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include <shellapi.h>

#define UNITS 32768
#define WAIT_MS 20000

static HANDLE seen;
static DWORD expected;

static void messages(HANDLE to, const wchar_t *wide)
{
	static char text[3 * UNITS];
	int len = WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, sizeof(text), NULL, NULL);
	DWORD put;

	if (len > 0)
		WriteFile(to, text, (DWORD)len - 1, &put, NULL);
}

static const wchar_t *kind(DWORD which)
{
	HANDLE handle = GetStdHandle(which);

	if (!handle || handle == INVALID_HANDLE_VALUE)
		return L"none\n";
	switch (GetFileType(handle)) {
	case FILE_TYPE_DISK: return L"disk\n";
	case FILE_TYPE_PIPE: return L"pipe\n";
	case FILE_TYPE_CHAR: return L"char\n";
	default: return L"unknown\n";
	}
}

static void print_streams(HANDLE to)
{
	char line[100];
	wchar_t wide[100] = L"";
	DWORD got = 0, put;

	messages(to, kind(STD_INPUT_HANDLE));
	messages(to, kind(STD_OUTPUT_HANDLE));
	messages(to, kind(STD_ERROR_HANDLE));
	if (ReadFile(GetStdHandle(STD_INPUT_HANDLE), line, sizeof(line) - 1, &got, NULL) && got)
		MultiByteToWideChar(CP_UTF8, 0, line, (int)got, wide, 99);
	messages(to, wide);
	WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), "out", 3, &put, NULL);
	WriteFile(GetStdHandle(STD_ERROR_HANDLE), "err", 3, &put, NULL);
}

static void print_status(HANDLE to, wchar_t *line, DWORD startup_flags)
{
	STARTUPINFOW startup = {.cb = sizeof(startup), .dwFlags = startup_flags};
	PROCESS_INFORMATION info;
	DWORD status = 0;
	wchar_t text[20];

	if (!CreateProcessW(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &startup, &info)) {
		messages(to, L"not started");
		return;
	}
	WaitForSingleObject(info.hProcess, INFINITE);
	GetExitCodeProcess(info.hProcess, &status);
	_snwprintf(text, 20, L"%lX", status);
	messages(to, text);
}

static BOOL WINAPI ignore(DWORD event)
{
	return event <= CTRL_BREAK_EVENT;
}

static BOOL WINAPI on_event(DWORD event)
{
	if (event == expected)
		SetEvent(seen);
	return TRUE;
}

static int raise_event(DWORD event)
{
	seen = CreateEventW(NULL, TRUE, FALSE, NULL);
	expected = event;
	SetConsoleCtrlHandler(NULL, FALSE);
	SetConsoleCtrlHandler(on_event, TRUE);
	if (!GenerateConsoleCtrlEvent(event, 0) ||
		WaitForSingleObject(seen, WAIT_MS) != WAIT_OBJECT_0)
		return 56 + 10 * (int)event;
	return 55 + (int)event;
}

static HANDLE create(const wchar_t *name)
{
	if (!wcscmp(name, L"-"))
		return GetStdHandle(STD_OUTPUT_HANDLE);
	return CreateFileW(name, GENERIC_WRITE, 0, NULL, CREATE_ALWAYS, 0, NULL);
}

static int tell(HANDLE to, const wchar_t *what, wchar_t *arg)
{
	static wchar_t text[UNITS];

	if (!wcscmp(what, L"env"))
		messages(to, GetEnvironmentVariableW(arg, text, UNITS) ? text : L"unset");
	else if ((!wcscmp(what, L"folder") && GetCurrentDirectoryW(UNITS, text)) ||
		 (!wcscmp(what, L"image") && GetModuleFileNameW(NULL, text, UNITS)))
		messages(to, text);
	else if (!wcscmp(what, L"streams"))
		print_streams(to);
	else if (!wcscmp(what, L"exit"))
		ExitProcess(wcstoul(arg, NULL, 10));
	else if (!wcscmp(what, L"console")) {
		FreeConsole();
		AllocConsole();
		SetConsoleCtrlHandler(ignore, TRUE);
		print_status(to, arg, 0);
	} else if (!wcscmp(what, L"status"))
		print_status(to, arg, 0);
	else if (!wcscmp(what, L"closed"))
		print_status(to, arg, STARTF_USESTDHANDLES);
	else if (!wcscmp(what, L"ctrl"))
		return raise_event((DWORD)wcstoul(arg, NULL, 10));
	else
		return 99;
	return 0;
}

int main(void)
{
	int count;
	wchar_t **args = CommandLineToArgvW(GetCommandLineW(), &count);
	static wchar_t none[] = L"";

	if (!args || count < 3)
		return 98;
	return tell(create(args[1]), args[2], count > 3 ? args[3] : none);
}
