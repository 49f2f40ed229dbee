/* The finder on Windows: drives, long paths, letters beyond ASCII, and paths that are never opened.
 * The wanted image is a copy of this test. Prints TAP. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <windows.h>

#include "core/base/os.h"
#include "core/base/os_windows.h"
#include "symbolize/files/local_path.h"
#include "symbolize/files/module_files.h"
#include "tests/win/tap.h"

#define MADE_MAX 100

static wchar_t base[MAX_PATH]; /* this test's folder */
static char *base_text;
static wchar_t *made[MADE_MAX]; /* paths to remove, folders before their contents */
static size_t made_count;
static struct symbol_options options;
static struct module module;
static struct module_files files;

/* Returns the full path of name, in the form that has no length limit. */
static wchar_t *in_base(const wchar_t *name)
{
	size_t units = wcslen(base) + wcslen(name) + 8;
	wchar_t *path = malloc(units * sizeof(*path));

	if (path && made_count < MADE_MAX)
		_snwprintf(path, units, L"\\\\?\\%ls%ls%ls", base, *name ? L"\\" : L"", name);
	else
		exit(2);
	return path;
}

static void make_folder(const wchar_t *name)
{
	made[made_count++] = in_base(name);
	CreateDirectoryW(made[made_count - 1], NULL);
}

static void copy_self(const wchar_t *name)
{
	wchar_t self[MAX_PATH];

	made[made_count++] = in_base(name);
	GetModuleFileNameW(NULL, self, MAX_PATH);
	CopyFileW(self, made[made_count - 1], FALSE);
}

static void remove_all(void)
{
	while (made_count) {
		const wchar_t *path = made[--made_count];

		if (!DeleteFileW(path))
			RemoveDirectoryW(path);
		free(made[made_count]);
	}
}

/* Returns base\name in UTF-8, valid until the next call. */
static const char *text_of(const char *name)
{
	static char text[2000];

	snprintf(text, sizeof(text), "%s\\%s", base_text, name);
	return text;
}

static int read_file(void *ctx, uint64_t offset, void *bytes, size_t len)
{
	return os_read_at(ctx, offset, bytes, len);
}

static bool know_self(void)
{
	wchar_t self[MAX_PATH];
	struct os_file file;
	struct pe_source source = {.read = read_file, .ctx = &file};
	struct pe_image pe;
	char *path;
	int rc;

	GetModuleFileNameW(NULL, self, MAX_PATH);
	path = wide_to_utf8(self);
	if (!path || os_open(&file, path, NULL))
		return false;
	rc = pe_read_headers(&source, &pe);
	os_close(&file);
	free(path);
	module = (struct module){.base = 0x10000,
		.size_bytes = pe.size_of_image,
		.has_identity = true,
		.timestamp = pe.timestamp,
		.checksum = pe.checksum};
	return !rc;
}

static bool finds(const char *path)
{
	struct finder *finder = finder_new(&options, NULL);

	module_files_release(&files);
	module.path = path;
	if (finder)
		finder_find(finder, &module, &files);
	finder_free(finder);
	return files.image;
}

static void check_paths(void)
{
	char text[2000];

	make_folder(L"\u00e4 \u6f22");
	copy_self(L"\u00e4 \u6f22\\\u00fc b.exe");
	ok(finds(text_of("\xc3\xa4 \xe6\xbc\xa2\\\xc3\xbc b.exe")), "letters beyond ASCII");
	ok(finds(text_of("\xc3\xa4 \xe6\xbc\xa2/\xc3\xbc B.EXE")), "other case, other slash");
	ok(files.image && !strncmp(files.image, base_text, 2), "a full path");
	snprintf(text, sizeof(text), "\\\\?\\%s", text_of("\xc3\xa4 \xe6\xbc\xa2\\\xc3\xbc b.exe"));
	ok(finds(text), "the prefix of long paths");
	ok(!finds(text_of("\xc3\xa4 \xe6\xbc\xa2\\none.exe")), "one that is not there");
	ok(files.reason.len && strstr(files.reason.data, "none.exe here"), "and the reason");
	ok(!finds(text_of("\xc3\xa4 \xe6\xbc\xa2")), "a folder is none");
	module.timestamp++;
	ok(!finds(text_of("\xc3\xa4 \xe6\xbc\xa2\\\xc3\xbc b.exe")), "another build is not used");
	ok(files.reason.len && strstr(files.reason.data, "is a different build: time stamp"),
		"and the reason");
	module.timestamp--;
}

/* The path is longer than Windows' usual limit. */
static void check_long_path(void)
{
	wchar_t name[400] = L"";
	char path[700];

	for (int i = 0; i < 6; i++) {
		wcscat(name, i ? L"\\" : L"");
		for (int letter = 0; letter < 50; letter++)
			wcscat(name, L"n");
		make_folder(name);
	}
	wcscat(name, L"\\a.exe");
	copy_self(name);
	snprintf(path, sizeof(path), "%s\\%ls", base_text, name);
	ok(strlen(path) > 300 && finds(path), "a long path");
}

static void check_symbol_path(void)
{
	char path[1000], key[60];
	wchar_t name[100];
	struct finder *finder;

	snprintf(key, sizeof(key), "%08lX%lx", (unsigned long)module.timestamp,
		(unsigned long)module.size_bytes);
	make_folder(L"sym");
	make_folder(L"sym\\App.exe");
	_snwprintf(name, 100, L"sym\\App.exe\\%hs", key);
	make_folder(name);
	_snwprintf(name, 100, L"sym\\App.exe\\%hs\\app.exe", key);
	copy_self(name);
	snprintf(path, sizeof(path), "srv*%s*https://example.org", text_of("SYM"));
	options.symbol_path = path;
	ok(finds("C:\\none\\APP.EXE"), "a store");
	ok(!finds("C:\\none\\other.exe"), "another name");
	ok(files.reason.len && !strstr(files.reason.data, "not asked"), "servers are asked here");
	finder = finder_new(&options, NULL);
	ok(finder && finder_servers(finder) && !strcmp(finder_servers(finder), path),
		"the symbol path for DbgHelp");
	finder_free(finder);
	snprintf(path, sizeof(path), "%s", text_of("sym"));
	ok(finds("C:\\none\\APP.EXE"), "a folder that is a store");
	options.symbol_path = NULL;
}

static void check_maps(void)
{
	const char *map;
	char text[1000];

	make_folder(L"to");
	copy_self(L"to\\m.exe");
	snprintf(text, sizeof(text), "Q:\\build=%s", text_of("TO"));
	map = text;
	options.maps = &map;
	options.map_count = 1;
	ok(finds("q:/Build/m.exe"), "a map");
	ok(!finds("q:/Build/m.exe:stream"), "no streams");
	ok(!finds("q:/Build/m.exe/x"), "nothing is in a file");
	options.map_count = 0;
}

/* Names are interpreted as the system does. A stranger's path must never lead to these places,
 * whether they exist or not. */
static void check_local_paths(void)
{
	static const char *const paths[] = {"\\\\localhost\\c$\\windows\\system32\\ntdll.dll",
		"//localhost/c$/windows/system32/ntdll.dll",
		"\\\\.\\C:\\windows\\system32\\ntdll.dll",
		"\\\\?\\UNC\\localhost\\c$\\windows\\system32\\ntdll.dll",
		"\\??\\UNC\\localhost\\c$\\windows\\system32\\ntdll.dll",
		"\\windows\\system32\\ntdll.dll", "C:windows\\system32\\ntdll.dll", "ntdll.dll",
		"C:\\windows\\system32\\NUL", "C:\\windows\\com1", "C:\\windows\\system32\\con.dll",
		"C:\\Lpt9.x\\a", "C:\\aux .txt", "C:\\CONIN$", "C:\\com\xc2\xb9",
		"C:\\windows\\system32\\ntdll.dll:x", "C:\\windows\\system32\\ntdll.dl?", "",
		/* these exist under Wine */
		"Z:\\proc\\self\\exe", "Z:/Proc/self/exe", "Z:\\etc\\..\\proc\\.\\self\\exe",
		"Z:\\sys\\kernel\\mm", "Z:\\dev"};
	struct local_paths *local = local_paths_new();
	struct buf here;

	make_folder(L"many");
	copy_self(L"many\\Some.exe");
	copy_self(L"many\\\u00fc.exe");
	buf_init(&here);
	ok(local_foreign(local, text_of("many\\sOME.exe"), &here) == LOCAL_FILE, "other case");
	ok(local_foreign(local, text_of("many\\\xc3\x9c.exe"), &here) == LOCAL_FILE,
		"other case of letters beyond ASCII");
	ok(local_foreign(local, text_of("many\\Some.exe."), &here) == LOCAL_FILE,
		"as the system takes names");
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		int kind = local_foreign(local, paths[i], &here);

		printf("# %s\n", paths[i]);
		ok(kind == LOCAL_NONE, "refused");
	}
	ok(local_foreign(local, "C:\\windows\\system32\\ntdll.dll", &here) == LOCAL_FILE,
		"but not all are");
	ok(local_foreign(local, "C:\\", &here) == LOCAL_FOLDER, "a drive is a folder");
	ok(local_typed(local, ".", &here) == LOCAL_FOLDER && here.data[1] == ':',
		"what the user types may be relative");
	buf_release(&here);
	local_paths_free(local);
}

int main(void)
{
	wchar_t temporary[MAX_PATH - 60];

	SetEnvironmentVariableW(L"_NT_SYMBOL_PATH", NULL);
	GetTempPathW(MAX_PATH - 60, temporary);
	_snwprintf(base, MAX_PATH, L"%lstest_finder.%lu", temporary, GetCurrentProcessId());
	base_text = wide_to_utf8(base);
	if (!base_text || !know_self())
		return 2;
	make_folder(L"");
	check_paths();
	check_long_path();
	check_symbol_path();
	check_maps();
	check_local_paths();
	remove_all();
	module_files_release(&files);
	ok(GetFileAttributesW(base) == INVALID_FILE_ATTRIBUTES, "nothing is left");
	free(base_text);
	return ok_end();
}
