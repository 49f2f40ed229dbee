/* Console output: the system calls are replaced and recorded. Prints TAP. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "core/base/os.h"
#include "core/base/os_windows.h"
#include "tests/win/tap.h"

static BOOL WINAPI on_set_page(UINT page);
static BOOL WINAPI on_get_mode(HANDLE handle, LPDWORD mode);
static BOOL WINAPI on_write(
	HANDLE handle, const void *units, DWORD count, LPDWORD put, void *reserved);
/* The linker uses these pointers in place of the imported functions. */
BOOL(WINAPI *imported_set_page)(UINT) __asm__("__imp_SetConsoleOutputCP") = on_set_page;
BOOL(WINAPI *imported_mode)(HANDLE, LPDWORD) __asm__("__imp_GetConsoleMode") = on_get_mode;
BOOL(WINAPI *imported_write)
(HANDLE, const void *, DWORD, LPDWORD, void *)__asm__("__imp_WriteConsoleW") = on_write;

static unsigned page_changes;
static wchar_t shown[100000];
static size_t shown_count, write_count;
static DWORD at_once = 7; /* number of units that one call writes */

static BOOL WINAPI on_set_page(UINT page)
{
	(void)page;
	page_changes++;
	return TRUE;
}

static BOOL WINAPI on_get_mode(HANDLE handle, LPDWORD mode)
{
	*mode = 3;
	/* The TAP goes to stdout, so stdout is not a console. */
	return handle != GetStdHandle(STD_OUTPUT_HANDLE);
}

static BOOL WINAPI on_write(
	HANDLE handle, const void *units, DWORD count, LPDWORD put, void *reserved)
{
	(void)handle;
	(void)reserved;
	*put = count < at_once ? count : at_once;
	memcpy(shown + shown_count, units, *put * sizeof(*shown));
	shown_count += *put;
	write_count++;
	return TRUE;
}

/* Writes text in pieces of this size. The console must show the text once and unchanged. */
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

/* Prints a message, which must be written with a single call. */
static bool is_message_shown(const char *text)
{
	wchar_t *wide = wide_from_utf8(text);
	bool same;

	shown_count = write_count = 0;
	at_once = 60000;
	fprintf(stderr, "%s", text);
	same = shown_count == wcslen(wide) && !memcmp(shown, wide, shown_count * sizeof(*shown)) &&
	       write_count == (strlen(text) + 8191) / 8192;
	free(wide);
	return same;
}

static bool is_long_message_shown(void)
{
	static char text[20000];

	memset(text, 'x', sizeof(text) - 1);
	memcpy(text + 8190, "\xe2\x82\xac", 3);
	return is_message_shown(text);
}

int main(int argc, char **argv)
{
	os_start(&argc, &argv);
	ok(is_shown_in_all_pieces("plain text\n"), "ASCII is shown as it is");
	ok(is_shown_in_all_pieces("\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 \xd0\xb6.\n"),
		"characters are shown once, wherever they are cut");
	ok(is_long_text_shown(), "a long text is shown once, whatever pieces it comes in");
	ok(is_message_shown("hsnap: B\xc3\xbc"
			    "cher.txt: \xd0\xb6\n"),
		"a message is written at once");
	ok(is_long_message_shown(), "a long message is cut between characters");
	ok(!page_changes, "the code page stays");
	return ok_end();
}
