/* The files of a series on Windows: its separators, case-insensitive names, long paths, and files
 * opened by other programs. Prints TAP. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "core/base/os.h"
#include "core/base/os_windows.h"
#include "core/base/parse.h"
#include "core/io/file.h"
#include "core/io/out.h"
#include "snapshot/live/process.h"
#include "snapshot/series/file_pattern.h"
#include "snapshot/series/series.h"
#include "tests/win/tap.h"

#define PID 42
#define START_MS INT64_C(1795168800009)
#define TAKEN_MS INT64_C(1795170348123) /* 2026-11-20T10:25:48.123Z */

/* A name of 120 letters. Three such folders exceed the usual limit of a path. */
#define TEN "\xc3\xa4 long name"
#define LONG_NAME TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

/* Joins a folder that ends with a separator, and a name. The caller frees the path. */
static char *join(const char *folder, const char *name)
{
	size_t size = strlen(folder) + strlen(name) + 1;
	char *path = malloc(size);

	if (!path)
		exit(2);
	snprintf(path, size, "%s%s", folder, name);
	return path;
}

/* Makes a folder in another; returns its path with a separator at the end. */
static char *make_folder(const char *in, const char *name, const char *separator)
{
	char *path = join(in, name), *result;
	wchar_t *wide = wide_path(path);

	if (!wide || !CreateDirectoryW(wide, NULL))
		printf("# %s cannot be made: %lu\n", path, GetLastError());
	result = join(path, separator);
	free(wide);
	free(path);
	return result;
}

static char *temporary(void)
{
	char base[MAX_PATH + 1], name[40];

	if (!GetTempPathA(sizeof(base), base))
		exit(2);
	snprintf(name, sizeof(name), "test_series %lu", os_pid());
	return make_folder(base, name, "\\");
}

static void write_dump(const char *path, uint32_t pid, int64_t time_ms)
{
	char time[DATE_TEXT_BYTES], start[DATE_TEXT_BYTES];
	struct out out;

	if (out_open(&out, path, NULL))
		return;
	out_printf(&out,
		"// hsnap: dump format=1 tool=0.1.0 time=%s\r\n"
		"// hsnap: process id=%u start=%s bits=64\r\n",
		date_text(time_ms, time), pid, date_text(START_MS, start));
	out_commit(&out, NULL);
}

static void write_dump_in(const char *folder, const char *name, uint32_t pid)
{
	char *path = join(folder, name);

	write_dump(path, pid, TAKEN_MS - 1000);
	free(path);
}

/* Returns true if the folder contains these names. The text has a blank after each name. */
static bool holds(const char *folder, const char *expected)
{
	struct folder_list list;
	struct err err;
	struct buf names;
	bool same;

	buf_init(&names);
	if (folder_list_read(folder, &list, &err)) {
		printf("# %s: %s\n", err.place, err.detail);
		return false;
	}
	for (size_t i = 0; i < list.count; i++)
		buf_printf(&names, "%s ", list.entries[i].name);
	same = names.data ? !strcmp(names.data, expected) : !*expected;
	if (!same)
		printf("# %s\n", names.data ? names.data : "nothing");
	buf_release(&names);
	folder_list_release(&list);
	return same;
}

static void remove_all(const char *folder)
{
	struct folder_list list;
	wchar_t *wide = wide_path(folder);

	if (folder_list_read(folder, &list, NULL))
		return;
	for (size_t i = 0; i < list.count; i++) {
		char *path = join(folder, list.entries[i].name), *inner = join(path, "\\");
		wchar_t *name = wide_path(path);

		if (name && list.entries[i].is_file) {
			SetFileAttributesW(name, FILE_ATTRIBUTE_NORMAL);
			DeleteFileW(name);
		} else if (!list.entries[i].is_link) {
			remove_all(inner);
		}
		free(name);
		free(inner);
		free(path);
	}
	folder_list_release(&list);
	if (wide)
		RemoveDirectoryW(wide);
	free(wide);
}

static struct series_files *new_series(const char *folder, const char *pattern, size_t keep_count)
{
	char *path = join(folder, pattern);
	const struct series_plan plan = {.out = path, .limits = {keep_count, UINT64_MAX}};
	struct err err;
	struct series_files *files =
		series_files_new(&plan, "C:\\pro gram\\\xc3\xbc n.exe", PID, START_MS, &err);

	if (!files)
		exit(2);
	free(path);
	return files;
}

/* Returns 0, or the error about older files. */
static int write_next(struct series_files *files, struct err *err)
{
	struct buf path;
	int rc;

	buf_init(&path);
	rc = series_files_name(files, TAKEN_MS, 0, &path, err);
	if (!rc) {
		write_dump(path.data, PID, TAKEN_MS);
		rc = series_files_written(files, path.data, err);
	}
	if (rc)
		printf("# %s: %s\n", err->place, err->detail);
	buf_release(&path);
	return rc;
}

static int check_folder(const char *folder)
{
	char *path = join(folder, "{n}");
	const struct series_plan plan = {.out = path, .limits = {UINT64_MAX, UINT64_MAX}};
	struct err err;
	int rc = series_files_check(&plan, &err);

	if (rc)
		printf("# %s: %s\n", err.place, err.detail);
	free(path);
	return rc;
}

/* Compares names as file systems do, using their own table of letters, for any language. */
static void check_program_names(void)
{
	ok(process_is_called("App.exe", "aPP") && process_is_called("App.exe", "APP.EXE"),
		"a program is known by its name in any case of letters");
	ok(process_is_called("pr\xc3\xbc"
			     "f\xc3\x84.exe",
		   "PR\xc3\x9c"
		   "F\xc3\xa4") &&
			process_is_called("\xd0\xb6.exe", "\xd0\x96.EXE"),
		"whatever letters they are");
	ok(!process_is_called("pruf.exe", "pr\xc3\xbc"
					  "f") &&
			!process_is_called("a.exe", "") && !process_is_called("a.exe", "a.") &&
			!process_is_called("ab.exe", "a") && !process_is_called("a.exe.exe", "a"),
		"and by no other");
}

static void check_separators(void)
{
	unsigned words = 0;

	ok(!strcmp(file_pattern_last("a/b\\{n}"), "{n}") &&
			!strcmp(file_pattern_last("a\\b/{n}"), "{n}") &&
			!strcmp(file_pattern_last("\\\\?\\C:\\x\\{n}"), "{n}"),
		"both separators end a folder's name");
	ok(!strcmp(file_pattern_last("D:{n}"), "{n}"), "and so does a drive's colon");
	ok(file_pattern_check("{n}\\a", &words, NULL) == -ERR_USAGE &&
			file_pattern_check("{time}/a", &words, NULL) == -ERR_USAGE,
		"times and numbers are not for folders");
	ok(!file_pattern_check("D:{name}\\{pid}/{n}", &words, NULL) &&
			words == (PATTERN_NAME | PATTERN_PID | PATTERN_NUMBER),
		"but for the files in them");
}

static void check_long_paths(const char *folder)
{
	char *one = make_folder(folder, LONG_NAME, "\\");
	char *two = make_folder(one, LONG_NAME, "/");
	char *three = make_folder(two, LONG_NAME, "\\");
	struct series_files *files = new_series(three, "{name}-{pid}-{n}.txt", 2);
	struct err err;
	int rc = check_folder(three);

	printf("# %zu bytes\n", strlen(three));
	ok(!rc && holds(three, ""),
		"a folder with a long path is tried, and nothing is left there");
	for (int i = 0; i < 4; i++)
		rc |= write_next(files, &err);
	ok(!rc && holds(three, "\xc3\xbc n-42-000003.txt \xc3\xbc n-42-000004.txt "),
		"the oldest go");
	series_files_free(files);
	free(one);
	free(two);
	free(three);
}

static void check_cases(const char *folder)
{
	char *in = make_folder(folder, "cases", "\\");
	struct series_files *files = new_series(in, "App-{n}.txt", 1);
	struct err err = {0};

	write_dump_in(in, "APP-000007.TXT", PID);
	write_dump_in(in, "app-000008.txt", PID + 1);
	ok(!write_next(files, &err) && holds(in, "App-000009.txt app-000008.txt "),
		"letters may differ in case");
	series_files_free(files);
	free(in);
	in = make_folder(folder, "letters", "\\");
	files = new_series(in, "\xc3\x9c-\xf0\x9f\x98\x80{n}\xc3\xa4.txt", 1);
	write_dump_in(in,
		"\xc3\xbc-\xf0\x9f\x98\x80"
		"000007\xc3\x84.TXT",
		PID);
	write_dump_in(in,
		"u-\xf0\x9f\x98\x80"
		"000009\xc3\x84.TXT",
		PID);
	ok(!write_next(files, &err) && holds(in, "u-\xf0\x9f\x98\x80"
						 "000009\xc3\x84.TXT \xc3\x9c-\xf0\x9f\x98\x80"
						 "000008\xc3\xa4.txt "),
		"whatever letters they are");
	series_files_free(files);
	free(in);
}

static HANDLE hold_open(const char *path)
{
	wchar_t *wide = wide_path(path);
	HANDLE handle = wide ? CreateFileW(wide, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING,
				       0, NULL) :
			       INVALID_HANDLE_VALUE;

	free(wide);
	return handle;
}

static void check_held_files(const char *folder)
{
	char *in = make_folder(folder, "held", "\\");
	char *inner = make_folder(in, "000009", "\\"), *path = join(in, "000001");
	struct series_files *files = new_series(in, "{n}", 2);
	struct err err = {0};
	HANDLE handle;
	int troubles = 0;

	write_dump(path, PID, TAKEN_MS - 1000);
	handle = hold_open(path);
	ok(handle != INVALID_HANDLE_VALUE, "a file is held open");
	for (int i = 0; i < 3; i++)
		troubles += write_next(files, &err) == -ERR_REMOVE;
	ok(troubles == 1 && !strcmp(err.place, path), "that it cannot be removed is told once");
	ok(holds(in, "000001 000009 000011 000012 "), "it stays, and so does a folder");
	CloseHandle(handle);
	ok(!write_next(files, &err) && holds(in, "000009 000012 000013 "), "then it goes");
	series_files_free(files);
	free(inner);
	free(path);
	free(in);
}

int main(void)
{
	char *folder = temporary();

	check_program_names();
	check_separators();
	check_long_paths(folder);
	check_cases(folder);
	check_held_files(folder);
	remove_all(folder);
	ok(folder_list_read(folder, &(struct folder_list){0}, NULL) == -ERR_OPEN,
		"nothing is left");
	free(folder);
	return ok_end();
}
