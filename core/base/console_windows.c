/*
 * The console of Windows, which is to show UTF-8.
 *
 * Reports are written as UTF-16: WriteFile() of Windows 7 returns characters, not bytes, where the code page is UTF-8.
 * Messages go through the C library, so the code page is changed, and changed back: it belongs to the console, and so to
 * the programs that share it.
 */
#include <stdlib.h>
#include <string.h>

#include <windows.h>

#include "core/base/os_windows.h"

#define PIECE_BYTES 8192u /* at once; a console refuses more than 64 KiB */

static UINT own_page; /* code page to restore; 0: none was changed */

void console_restore(void)
{
	if (own_page)
		SetConsoleOutputCP(own_page);
}

void console_lend(bool is_lent)
{
	if (own_page)
		SetConsoleOutputCP(is_lent ? own_page : CP_UTF8);
}

void console_begin(void)
{
	const UINT page = GetConsoleOutputCP(); /* 0 without a console */

	if (!page || page == CP_UTF8 || !SetConsoleOutputCP(CP_UTF8))
		return;
	own_page = page;
	atexit(console_restore);
}

bool console_is(void *handle)
{
	DWORD mode;

	return GetConsoleMode(handle, &mode);
}

/* Returns how many of the bytes are whole characters: the last one may be cut. */
static size_t whole_characters(const char *bytes, size_t len)
{
	size_t tail = 0; /* bytes of the last character so far */

	while (tail < 3 && tail < len && (bytes[len - 1 - tail] & 0xc0) == 0x80)
		tail++;
	if (tail < len) {
		const unsigned char lead = (unsigned char)bytes[len - 1 - tail];
		const size_t wanted = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;

		if (wanted > tail + 1)
			return len - tail - 1;
	}
	return len;
}

static bool write_wide(HANDLE console, const char *bytes, size_t len)
{
	wchar_t units[PIECE_BYTES];
	DWORD count = len ? (DWORD)MultiByteToWideChar(
				    CP_UTF8, 0, bytes, (int)len, units, (int)PIECE_BYTES) :
			    0;

	for (DWORD at = 0, put = 0; at < count; at += put) {
		if (!WriteConsoleW(console, units + at, count - at, &put, NULL) || !put)
			return false;
	}
	return true;
}

bool console_write(void *console, const char *bytes, size_t len)
{
	static char cut[PIECE_BYTES]; /* what is written next; it begins with a cut character */
	static size_t cut_len;

	while (len) {
		size_t room = sizeof(cut) - cut_len, part = len < room ? len : room, whole;

		memcpy(cut + cut_len, bytes, part);
		bytes += part;
		len -= part;
		cut_len += part;
		whole = whole_characters(cut, cut_len);
		if (!write_wide(console, cut, whole))
			return false;
		memmove(cut, cut + whole, cut_len - whole);
		cut_len -= whole;
	}
	return true;
}
