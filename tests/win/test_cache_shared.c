/* The cache of names on Windows. The expected names are computed from key and address. Prints
 * TAP. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <windows.h>

#include "core/io/file.h"
#include "symbolize/lookup/lookup.h"
#include "tests/win/again.h"
#include "tests/win/tap.h"

enum { WRITERS = 4, ROUNDS = 12, EACH = 20, SMALL = 20000 };

static wchar_t folder[MAX_PATH]; /* folder of the user's caches in this test */

static const char *function_of(const char *key, uint32_t rva, char *text)
{
	sprintf(text, "%s::function%u", key, (unsigned)rva);
	return text;
}

static void add(struct name_cache *cache, struct arena *arena, const char *key, uint32_t rva)
{
	struct symbol *symbol = arena_alloc(arena, sizeof(*symbol));
	struct symbols symbols = {.list = symbol, .count = 1};
	char text[100];

	function_of(key, rva, text);
	*symbol = (struct symbol){.function = arena_text(arena, text, strlen(text)),
		.file = rva % 2 ? "C:\\src\\\xc3\xa4.c" : NULL,
		.line = rva,
		.offset_bytes = rva};
	name_cache_add(cache, key, rva, &symbols);
}

static void put(size_t limit, const char *path, const char *key, uint32_t first)
{
	struct name_cache *cache = name_cache_open(path, limit);
	struct arena arena;

	arena_init(&arena);
	for (uint32_t i = 0; i < EACH; i++)
		add(cache, &arena, key, first + i);
	name_cache_close(cache);
	arena_release(&arena);
}

/* Returns the number of names that were found, or an impossible number if one of them is wrong. */
static size_t get_of(size_t limit, const char *path, const char *key, uint32_t first)
{
	struct name_cache *cache = name_cache_open(path, limit);
	struct symbols found;
	size_t right = 0;
	char text[100];

	for (uint32_t rva = first; rva < first + EACH; rva++) {
		if (!name_cache_find(cache, key, rva, &found))
			continue;
		right += found.count == 1 && found.list->line == rva &&
					 found.list->offset_bytes == rva &&
					 !strcmp(found.list->function,
						 function_of(key, rva, text)) &&
					 !found.list->file == !(rva % 2) ?
				 1 :
				 1000;
	}
	name_cache_close(cache);
	return right;
}

static size_t get(const char *key, uint32_t first)
{
	return get_of(NAME_CACHE_BYTES, NULL, key, first);
}

static wchar_t *in_folder(const wchar_t *name)
{
	static wchar_t path[4][MAX_PATH];
	static unsigned turn;
	wchar_t *text = path[turn++ % 4];

	_snwprintf(text, MAX_PATH, L"%ls\\%ls", folder, name);
	return text;
}

static void test_place(void)
{
	struct name_cache *cache;

	put(NAME_CACHE_BYTES, NULL, "key", 5);
	ok(GetFileAttributesW(in_folder(L"hsnap\\names")) != INVALID_FILE_ATTRIBUTES,
		"it is among the user's caches, whose folders are made");
	ok(get("key", 5) == EACH, "names come back");
	ok(get("kez", 5) == 0 && get("key", 500) == 0, "and no others");
	SetEnvironmentVariableW(L"HSYM_CACHE", L"off");
	cache = name_cache_open(NULL, NAME_CACHE_BYTES);
	ok(!cache, "HSYM_CACHE=off: there is none");
	SetEnvironmentVariableW(L"HSYM_CACHE", in_folder(L"a\\b/c"));
	put(NAME_CACHE_BYTES, NULL, "key", 5);
	ok(get("key", 5) == EACH, "HSYM_CACHE says where it is");
	ok(DeleteFileW(in_folder(L"a\\b\\c")) && RemoveDirectoryW(in_folder(L"a\\b")) &&
			RemoveDirectoryW(in_folder(L"a")),
		"there it was");
	SetEnvironmentVariableW(L"HSYM_CACHE", L"NUL");
	put(NAME_CACHE_BYTES, NULL, "key", 5);
	ok(get("key", 5) == 0, "a device is no cache");
	SetEnvironmentVariableW(L"HSYM_CACHE", folder);
	put(NAME_CACHE_BYTES, NULL, "key", 5);
	ok(get("key", 5) == 0, "nor is a folder");
	SetEnvironmentVariableW(L"HSYM_CACHE", NULL);
}

/* ---------------------------------------------------------------- several processes */

/* Writes until the cache keeps the names, because another process may hold the lock for too
 * long. */
static int write_rounds(const char *key)
{
	for (uint32_t round = 0; round < ROUNDS; round++) {
		do
			put(NAME_CACHE_BYTES, NULL, key, round * 100);
		while (get(key, round * 100) < EACH);
	}
	return 7;
}

static const char *writer_key(unsigned writer, char *text)
{
	sprintf(text, "key%u", writer % 2); /* two writers per module */
	return text;
}

static void test_processes(void)
{
	PROCESS_INFORMATION writers[WRITERS];
	wchar_t wide[10];
	DWORD status;
	char key[10];
	bool is_started = true, is_done = true, is_right = true;

	for (unsigned i = 0; i < WRITERS; i++) {
		_snwprintf(wide, 10, L"%hs", writer_key(i, key));
		is_started &= start_again(wide, &writers[i]);
	}
	if (!ok(is_started, "processes start"))
		return;
	for (unsigned i = 0; i < 100; i++)
		is_right &= get(writer_key(i, key), i % ROUNDS * 100) <= EACH;
	for (unsigned i = 0; i < WRITERS; i++) {
		WaitForSingleObject(writers[i].hProcess, 60000);
		is_done &= GetExitCodeProcess(writers[i].hProcess, &status) && status == 7;
	}
	ok(is_right, "what is found while others write is right");
	ok(is_done, "each of them gets its names kept");
	for (uint32_t round = 0; round < ROUNDS; round++)
		is_right &= get("key0", round * 100) == EACH && get("key1", round * 100) == EACH;
	ok(is_right && get("key", 5) == EACH, "nobody's names are lost");
}

/* One process has the file open while other processes replace it. */
static void test_bound(void)
{
	wchar_t *wide = in_folder(L"small");
	char path[3 * MAX_PATH];
	struct os_file file;
	WIN32_FILE_ATTRIBUTE_DATA data;
	bool is_small = true;

	WideCharToMultiByte(CP_UTF8, 0, wide, -1, path, sizeof(path), NULL, NULL);
	put(SMALL, path, "first", 0);
	ok(get_of(SMALL, path, "first", 0) == EACH && !own_file_open(&file, path),
		"a small one is open");
	for (uint32_t i = 0; i < 40; i++) {
		put(SMALL, path, "other", i * 100);
		is_small &= GetFileAttributesExW(wide, GetFileExInfoStandard, &data) &&
			    data.nFileSizeLow <= SMALL;
	}
	os_close(&file);
	ok(is_small, "the bound is kept");
	ok(get_of(SMALL, path, "first", 0) == 0, "the oldest is gone");
	ok(get_of(SMALL, path, "other", 3900) == EACH, "the newest is there");
	DeleteFileW(wide);
}

static void test_lock(void)
{
	struct os_file file;
	char *own = own_cache_folder(), path[3 * MAX_PATH];

	snprintf(path, sizeof(path), "%s/names", own);
	free(own);
	if (!ok(own_file_lock(&file, path) == 0, "the lock is to be had"))
		return;
	put(NAME_CACHE_BYTES, NULL, "late", 0);
	ok(get("late", 0) == 0 && get("key", 5) == EACH,
		"a lock that stays is given up, and reading needs none");
	os_close(&file);
	put(NAME_CACHE_BYTES, NULL, "late", 0);
	ok(get("late", 0) == EACH, "without it all is as before");
}

int main(int argc, char **argv)
{
	wchar_t temp[MAX_PATH];

	if (argc > 1)
		return write_rounds(argv[1]);
	GetTempPathW(MAX_PATH, temp);
	_snwprintf(folder, MAX_PATH, L"%lsn\u00e4mes %lu", temp, GetCurrentProcessId());
	SetEnvironmentVariableW(L"LOCALAPPDATA", folder);
	SetEnvironmentVariableW(L"HSYM_CACHE", NULL);
	test_place();
	test_processes();
	test_bound();
	test_lock();
	ok(DeleteFileW(in_folder(L"hsnap\\names")) && RemoveDirectoryW(in_folder(L"hsnap")) &&
			RemoveDirectoryW(folder),
		"nothing else was left behind");
	return ok_end();
}
