/* A folder for a test of output, and the file under test. */
#ifndef TESTS_WIN_FOLDER_H
#define TESTS_WIN_FOLDER_H

#include <stdio.h>
#include <string.h>
#include <windows.h>

#include "core/dump/source.h"

static char folder[400], path[460];

static inline bool make_folder(void)
{
	char base[300];

	if (!GetTempPathA(sizeof(base), base))
		return false;
	snprintf(folder, sizeof(folder), "%shsnap-test-%lu", base, GetCurrentProcessId());
	snprintf(path, sizeof(path), "%s\\out.txt", folder);
	return CreateDirectoryA(folder, NULL);
}

/* Returns the number of files in the folder, without subfolders, or -1 if the folder cannot be
 * listed. */
static inline int file_count(void)
{
	WIN32_FIND_DATAA found;
	char pattern[420];
	HANDLE find;
	int number = 0;

	snprintf(pattern, sizeof(pattern), "%s\\*", folder);
	find = FindFirstFileA(pattern, &found);
	if (find == INVALID_HANDLE_VALUE)
		return -1;
	do
		number += !(found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY);
	while (FindNextFileA(find, &found));
	FindClose(find);
	return number;
}

/* Compares the file's text. Reads the file as hdiff does, which decompresses it. */
static inline bool has(const char *text)
{
	struct source *source;
	char bytes[100];
	int64_t got;

	if (source_open(&source, path, NULL))
		return false;
	got = source_read(source, bytes, sizeof(bytes), NULL);
	source_close(source);
	return got == (int64_t)strlen(text) && !memcmp(bytes, text, (size_t)got);
}

#endif
