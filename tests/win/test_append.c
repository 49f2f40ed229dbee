/* Growing files on Windows: several processes append to one file beyond its limit. Prints TAP. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "core/base/os.h"
#include "core/io/file.h"
#include "tests/win/folder.h"
#include "tests/win/tap.h"

#ifndef SYMBOLIC_LINK_FLAG_ALLOW_UNPRIVILEGED_CREATE
#define SYMBOLIC_LINK_FLAG_ALLOW_UNPRIVILEGED_CREATE 2
#endif

#define WRITERS 4
#define LINES 300
#define LINE_BYTES 100
#define LIMIT_BYTES                                                                                \
	((uint64_t)WRITERS * LINES * LINE_BYTES * 2 / 3) /* so that there are two files */

static char aside[470]; /* name that a full file gets */
static long errors;

static void write_lines(void *ctx, unsigned number)
{
	char line[LINE_BYTES];

	(void)ctx;
	memset(line, 'a' + (int)number, sizeof(line) - 1);
	line[sizeof(line) - 1] = '\n';
	for (int i = 0; i < LINES; i++) {
		if (file_append_line(path, line, sizeof(line), LIMIT_BYTES, aside, NULL))
			InterlockedIncrement(&errors);
	}
}

/* Counts the lines of each writer in a file. Returns false if a line is torn or mixed with
 * another. */
static bool count_lines(const char *name, unsigned counts[WRITERS])
{
	FILE *from = fopen(name, "rb");
	char *text = calloc(1, WRITERS * LINES * LINE_BYTES);
	size_t len = from && text ? fread(text, 1, WRITERS * LINES * LINE_BYTES, from) : 0;
	bool good = from && !fclose(from) && len && len % LINE_BYTES == 0 && len <= LIMIT_BYTES;

	for (size_t at = 0; good && at < len; at += LINE_BYTES) {
		unsigned who = (unsigned)(text[at] - 'a');

		good = who < WRITERS && text[at + LINE_BYTES - 1] == '\n' &&
		       !memchr(text + at, '\n', LINE_BYTES - 1);
		for (size_t i = 1; good && i < LINE_BYTES - 1; i++)
			good = text[at + i] == text[at];
		if (good)
			counts[who]++;
	}
	free(text);
	return good;
}

static void test_many_writers(void)
{
	unsigned counts[WRITERS] = {0};
	bool all = true;

	thread_run(WRITERS, write_lines, NULL);
	ok(!errors, "every line was written");
	ok(count_lines(aside, counts), "the full file has whole lines, and no more than it may");
	ok(count_lines(path, counts), "so has the new one");
	for (unsigned i = 0; i < WRITERS; i++)
		all &= counts[i] == LINES;
	ok(all, "no line of any writer is lost");
}

static void test_torn_line(void)
{
	FILE *to = fopen(path, "wb");
	bool is_written = to && fputs("one\ntorn", to) >= 0;

	if (to && fclose(to))
		is_written = false;
	ok(is_written, "a torn line");
	ok(!file_append_line(path, "two\n", 4, LIMIT_BYTES, aside, NULL), "the next one is added");
	ok(has("one\ntorn\ntwo\n"), "on a line of its own");
}

/* A reader does not block writers, and writers may move the file. */
static void test_reader(void)
{
	HANDLE reader = CreateFileA(path, GENERIC_READ,
		FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_EXISTING, 0,
		NULL);
	char bytes[20];
	DWORD got = 0;

	ok(!file_append_line(path, "three\n", 6, LIMIT_BYTES, aside, NULL),
		"added while it is read");
	ok(ReadFile(reader, bytes, sizeof(bytes), &got, NULL) && got == 19, "and it can be read");
	ok(!file_append_line(path, "four\n", 5, 20, aside, NULL), "and set aside");
	CloseHandle(reader);
}

/* Skipped where links are unsupported: Wine 8.0 only pretends to make one. */
static void test_link(void)
{
	char other[470];
	DWORD attributes;

	snprintf(other, sizeof(other), "%s\\other.txt", folder);
	DeleteFileA(path);
	CreateSymbolicLinkA(path, other, SYMBOLIC_LINK_FLAG_ALLOW_UNPRIVILEGED_CREATE);
	attributes = GetFileAttributesA(path);
	if (attributes == INVALID_FILE_ATTRIBUTES || !(attributes & FILE_ATTRIBUTE_REPARSE_POINT)) {
		printf("ok %d # SKIP no symbolic links here\n", ++ok_count);
		return;
	}
	ok(file_append_line(path, "one\n", 4, LIMIT_BYTES, aside, NULL) == -ERR_CREATE &&
			GetFileAttributesA(other) == INVALID_FILE_ATTRIBUTES,
		"a link in the file's place is refused, and nothing is made where it leads");
}

int main(void)
{
	ok(make_folder(), "a folder");
	snprintf(aside, sizeof(aside), "%s.1", path);
	test_many_writers();
	test_torn_line();
	test_reader();
	test_link();
	DeleteFileA(path);
	DeleteFileA(aside);
	ok(RemoveDirectoryA(folder), "nothing else is left");
	return ok_end();
}
