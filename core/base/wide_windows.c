/* Conversion between UTF-16 and UTF-8, and Windows' error messages. */
#include <stdlib.h>
#include <string.h>

#include <windows.h>

#include "core/base/memory.h"
#include "core/base/os_windows.h"

wchar_t *wide_from_utf8(const char *text)
{
	int units = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
	wchar_t *wide = units > 0 ? xmalloc((size_t)units * sizeof(*wide)) : NULL;

	if (wide && !MultiByteToWideChar(CP_UTF8, 0, text, -1, wide, units)) {
		free(wide);
		wide = NULL;
	}
	return wide;
}

char *wide_to_utf8(const wchar_t *wide)
{
	int bytes = WideCharToMultiByte(CP_UTF8, 0, wide, -1, NULL, 0, NULL, NULL);
	char *text = bytes > 0 ? xmalloc((size_t)bytes) : NULL;

	if (text && !WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, bytes, NULL, NULL)) {
		free(text);
		text = NULL;
	}
	return text;
}

const char *windows_error(unsigned long code, char *text, size_t size)
{
	wchar_t wide[256];
	DWORD len = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL,
		code, 0, wide, 256, NULL);
	wchar_t *file = len ? wcsstr(wide, L"%1") : NULL;
	char *utf8;

	if (file) /* "%1" stands for a file name, which the caller's message already contains */
		wmemcpy(file, L"it", 2);
	while (len && (wide[len - 1] <= L' ' || wide[len - 1] == L'.'))
		wide[--len] = L'\0';
	utf8 = len ? wide_to_utf8(wide) : NULL;
	/* the failed call set no error code; the message for code 0 would be "success" */
	if (!code)
		snprintf(text, size, "no reason given");
	else if (utf8)
		snprintf(text, size, "%s", utf8);
	else
		snprintf(text, size, "Windows error %lu", code);
	free(utf8);
	return text;
}
