/*
 * What a console is written, and its code page: the system's calls are noted instead of made. Speaks TAP.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "core/base/os.h"
#include "core/base/os_windows.h"
#include "tests/win/tap.h"

static UINT WINAPI on_get_page(void);
static BOOL WINAPI on_set_page(UINT page);
static BOOL WINAPI on_get_mode(HANDLE handle, LPDWORD mode);
static BOOL WINAPI on_write(
	HANDLE handle, const void *units, DWORD count, LPDWORD put, void *reserved);
/* What the linker takes in the place of the pointers to the system's. */
UINT(WINAPI *imported_get_page)(void) __asm__("__imp_GetConsoleOutputCP") = on_get_page;
BOOL(WINAPI *imported_set_page)(UINT) __asm__("__imp_SetConsoleOutputCP") = on_set_page;
BOOL(WINAPI *imported_mode)(HANDLE, LPDWORD) __asm__("__imp_GetConsoleMode") = on_get_mode;
BOOL(WINAPI *imported_write)
(HANDLE, const void *, DWORD, LPDWORD, void *)__asm__("__imp_WriteConsoleW") = on_write;

static UINT page = 850;
static unsigned page_changes;
static wchar_t shown[100000];
static size_t shown_count;
static DWORD at_once = 7; /* units that a call takes */

static UINT WINAPI on_get_page(void)
{
	return page;
}

static BOOL WINAPI on_set_page(UINT to)
{
	page = to;
	page_changes++;
	return TRUE;
}

static BOOL WINAPI on_get_mode(HANDLE handle, LPDWORD mode)
{
	(void)handle;
	*mode = 3;
	return TRUE;
}

static BOOL WINAPI on_write(
	HANDLE handle, const void *units, DWORD count, LPDWORD put, void *reserved)
{
	(void)handle;
	(void)reserved;
	*put = count < at_once ? count : at_once;
	memcpy(shown + shown_count, units, *put * sizeof(*shown));
	shown_count += *put;
	return TRUE;
}

/* Writes text in pieces of that many bytes; it must be shown once, as it is. */
static bool is_shown(const char *text, size_t piece)
{
	struct os_file file = {.handle = 4};
	const size_t len = strlen(text);
	wchar_t *wide = wide_from_utf8(text);
	bool same;

	shown_count = 0;
	for (size_t at = 0; at < len; at += piece)
		os_write(&file, text + at, len - at < piece ? len - at : piece, "stdout", NULL);
	same = shown_count == wcslen(wide) && !memcmp(shown, wide, shown_count * sizeof(*shown));
	free(wide);
	return same;
}

static bool is_shown_in_all_pieces(const char *text)
{
	for (size_t piece = 1; piece <= strlen(text) && piece < 50; piece++) {
		if (!is_shown(text, piece))
			return false;
	}
	return is_shown(text, strlen(text));
}

static bool is_long_text_shown(void)
{
	static const char unit[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80";
	static char text[3 * 8192 * 4];
	size_t len = sizeof(unit) - 1;

	for (size_t at = 0; at + len < sizeof(text); at += len)
		memcpy(text + at, unit, len);
	at_once = 60000;
	return is_shown(text, strlen(text)) && is_shown(text, 8191) && is_shown(text, 4097);
}

static void check_restored(void)
{
	ok(page == 850, "the code page is restored at the end");
	ok_end();
	fflush(stdout);
}

int main(int argc, char **argv)
{
	atexit(check_restored);
	ok(is_shown_in_all_pieces("plain text\n"), "ASCII is shown as it is");
	ok(is_shown_in_all_pieces("\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 \xd0\xb6.\n"),
		"characters are shown once, wherever they are cut");
	ok(is_long_text_shown(), "a long text is shown once, whatever pieces it comes in");
	os_start(&argc, &argv);
	ok(page == CP_UTF8, "messages are UTF-8");
	console_lend(true);
	ok(page == 850, "a program that uses the console has its code page");
	console_lend(false);
	ok(page == CP_UTF8, "afterwards messages are UTF-8 again");
	return 0;
}
