/*
 * Output to a Windows console, always in UTF-16.
 *
 * The console would interpret bytes according to its code page. This program does not set the code
 * page to UTF-8, because all programs that use the console share the code page. Even with UTF-8 as
 * the code page there would be a problem: WriteFile() on Windows 7 returns the number of characters
 * instead of bytes.
 */
#include <io.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>

#include "core/base/os_windows.h"

#define PIECE_BYTES 8192u /* bytes per call; a console refuses more than 64 KiB */
#define MESSAGE_BYTES 2048u /* enough for most messages */

bool console_is(void *handle)
{
	DWORD mode;

	return GetConsoleMode(handle, &mode);
}

/* Returns `len`, less the bytes of an incomplete character at the end. */
static size_t whole_characters(const char *bytes, size_t len)
{
	size_t tail = 0; /* number of continuation bytes at the end */
	unsigned char lead;
	size_t wanted;

	while (tail < 3 && tail < len && (bytes[len - 1 - tail] & 0xc0) == 0x80)
		tail++;
	if (tail == len)
		return len;
	lead = (unsigned char)bytes[len - 1 - tail];
	wanted = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
	return wanted > tail + 1 ? len - tail - 1 : len;
}

/* Writes at most PIECE_BYTES. */
static bool write_piece(HANDLE console, const char *bytes, size_t len)
{
	wchar_t units[PIECE_BYTES];
	DWORD count = 0;

	if (len)
		count = (DWORD)MultiByteToWideChar(
			CP_UTF8, 0, bytes, (int)len, units, (int)PIECE_BYTES);
	for (DWORD at = 0, put = 0; at < count; at += put) {
		if (!WriteConsoleW(console, units + at, count - at, &put, NULL) || !put)
			return false;
	}
	return true;
}

bool console_write(void *console, const char *bytes, size_t len)
{
	/* starts with the incomplete character left by the previous call */
	static char next[PIECE_BYTES];
	static size_t next_len;

	while (len) {
		size_t room = sizeof(next) - next_len, part = len < room ? len : room, whole;

		memcpy(next + next_len, bytes, part);
		bytes += part;
		len -= part;
		next_len += part;
		whole = whole_characters(next, next_len);
		if (!write_piece(console, next, whole))
			return false;
		memmove(next, next + whole, next_len - whole);
		next_len -= whole;
	}
	return true;
}

/* ---------------------------------------------------------------- messages */

/* Writes a whole message to a stream, or to the console if the stream leads to one. */
static bool write_message(FILE *stream, const char *text, size_t len)
{
	void *handle = (void *)_get_osfhandle(_fileno(stream));
	size_t part;

	if (!console_is(handle))
		return fwrite(text, 1, len, stream) == len;
	if (fflush(stream))
		return false;
	for (; len; text += part, len -= part) {
		part = len < PIECE_BYTES ? len : whole_characters(text, PIECE_BYTES);
		if (!write_piece(handle, text, part))
			return false;
	}
	return true;
}

/* Replace the functions that mingw's printf() and fprintf() call. The library's versions write byte
 * by byte to an unbuffered stream such as standard error. A console would then never receive a
 * whole character of several bytes. */
/* NOLINTBEGIN(bugprone-reserved-identifier) */
int __mingw_vfprintf(FILE *stream, const char *format, va_list args)
{
	char few[MESSAGE_BYTES], *text = few;
	va_list again;
	int len;

	va_copy(again, args);
	len = vsnprintf(few, sizeof(few), format, args);
	if (len >= (int)sizeof(few)) {
		text = malloc((size_t)len + 1);
		len = text ? vsnprintf(text, (size_t)len + 1, format, again) : -1;
	}
	va_end(again);
	if (len > 0 && !write_message(stream, text, (size_t)len))
		len = -1;
	if (text != few)
		free(text);
	return len;
}

int __mingw_vprintf(const char *format, va_list args)
{
	return __mingw_vfprintf(stdout, format, args);
}
/* NOLINTEND(bugprone-reserved-identifier) */
