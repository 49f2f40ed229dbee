/* How many files a folder holds, folders in it left out; -1: it cannot be listed. */
#ifndef TESTS_WIN_FILE_COUNT_H
#define TESTS_WIN_FILE_COUNT_H

#include <stdio.h>
#include <windows.h>

static inline int file_count(const char *folder)
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

#endif
