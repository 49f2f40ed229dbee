/* Output on Windows. A new file never replaces another one. An existing file is replaced even while
 * other programs, such as virus scanners or indexers, open it. The calls that rename a file are
 * replaced with functions that simulate another program at that moment. Prints TAP. */
#include <stdio.h>
#include <string.h>
#include <windows.h>

#include "core/base/os.h"
#include "core/io/out.h"
#include "tests/win/folder.h"
#include "tests/win/tap.h"

static char temp[500]; /* path of the temporary file before it is renamed */

/* The linker uses these pointers in place of the library's imports. */
static BOOL WINAPI on_flush(HANDLE handle);
static BOOL WINAPI on_close(HANDLE handle);
static void WINAPI on_sleep(DWORD ms);
BOOL(WINAPI *imported_flush)(HANDLE) __asm__("__imp_FlushFileBuffers") = on_flush;
BOOL(WINAPI *imported_close)(HANDLE) __asm__("__imp_CloseHandle") = on_close;
void(WINAPI *imported_sleep)(DWORD) __asm__("__imp_Sleep") = on_sleep;

static struct {
	DWORD flush_fails; /* error with which a flush fails; 0: flushes succeed */
	/* another program opens the file and denies renaming */
	bool opens_at_flush, opens_at_close;
	bool closes_at_sleep;
	bool is_closing;
	unsigned flushes, sleeps;
	HANDLE opened; /* handle of the other program */
	bool was_there; /* the file already had its name when its bytes were flushed */
} scene;

static void *system_call(const char *name)
{
	return (void *)GetProcAddress(GetModuleHandleA("kernel32.dll"), name);
}

static HANDLE open_closely(const char *name, DWORD how)
{
	return CreateFileA(
		name, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, how, 0, NULL);
}

static void let_go(void)
{
	BOOL(WINAPI * close)(HANDLE) = system_call("CloseHandle");

	if (scene.opened)
		close(scene.opened);
	scene.opened = NULL;
}

static BOOL WINAPI on_flush(HANDLE handle)
{
	BOOL(WINAPI * flush)(HANDLE) = system_call("FlushFileBuffers");

	scene.flushes++;
	scene.was_there = os_exists(path);
	if (scene.opens_at_flush) {
		scene.opened = open_closely(temp, OPEN_EXISTING);
		if (scene.opened == INVALID_HANDLE_VALUE)
			scene.opened = NULL;
	}
	SetLastError(scene.flush_fails);
	return scene.flush_fails ? FALSE : flush(handle);
}

static BOOL WINAPI on_close(HANDLE handle)
{
	BOOL(WINAPI * close)(HANDLE) = system_call("CloseHandle");
	BOOL done = close(handle);

	if (scene.opens_at_close && !scene.opened) {
		scene.opened = open_closely(temp, OPEN_EXISTING);
		if (scene.opened == INVALID_HANDLE_VALUE)
			scene.opened = NULL;
	}
	return done;
}

static void WINAPI on_sleep(DWORD ms)
{
	(void)ms;
	scene.sleeps++;
	if (scene.closes_at_sleep && scene.sleeps == 2)
		let_go();
}

/* Writes the file while these events occur; returns the result. */
static int write_file(const char *text, unsigned flags, struct err *err)
{
	struct out out;
	int rc = out_open_as(&out, path, flags, err);

	if (rc)
		return rc;
	out_text(&out, text);
	return out_commit(&out, err);
}

static void begin(void)
{
	let_go();
	memset(&scene, 0, sizeof(scene));
}

static void check_openers(unsigned flags)
{
	struct err err = {0};

	begin();
	scene.opens_at_close = true;
	ok(!write_file("new\n", flags, &err) && has("new\n") && file_count() == 1,
		"who opens the file when it is closed is not in the way");
	printf("# %s: %s\n", err.place, err.detail);
	ok(scene.flushes == 1 && (!scene.was_there || !(flags & OUT_NEW)),
		"its bytes were on the disk before it had its name");
	begin();
	DeleteFileA(path);
	scene.opens_at_flush = true;
	ok(!write_file("again\n", flags, &err) && has("again\n") && file_count() == 1,
		"nor who would open it before");
	begin();
	DeleteFileA(path);
}

static void check_reader(void)
{
	struct err err = {0};

	begin();
	ok(!write_file("old\n", 0, &err), "a file that a reader has open");
	scene.opened = open_closely(path, OPEN_EXISTING);
	scene.closes_at_sleep = true;
	ok(!write_file("new\n", 0, &err) && has("new\n") && scene.sleeps == 2,
		"is replaced as soon as the reader has closed it");
	begin();
	scene.opened = open_closely(path, OPEN_EXISTING);
	ok(write_file("newer\n", 0, &err) == -ERR_CREATE && scene.sleeps > 2 && scene.sleeps < 50,
		"one that stays is not waited for for ever");
	printf("# %s: %s\n", err.place, err.detail);
	ok(has("new\n") && file_count() == 1, "the file stays as it was, and nothing else is left");
	begin();
	DeleteFileA(path);
}

/* A folder is not a reader, so there is nothing to wait for. */
static void check_folder(void)
{
	struct err err = {0};

	begin();
	CreateDirectoryA(path, NULL);
	ok(write_file("new\n", 0, &err) == -ERR_CREATE && !scene.sleeps && !file_count(),
		"a folder of that name is an error at once");
	ok(write_file("new\n", OUT_NEW, &err) == -ERR_EXISTS, "and has the name of a new file");
	RemoveDirectoryA(path);
}

/* An earlier process with the same pid left a temporary file, which another program still has
 * open. */
static void check_leftover(unsigned flags)
{
	struct err err = {0};

	begin();
	scene.opened = open_closely(temp, CREATE_ALWAYS);
	ok(!write_file("new\n", flags, &err) && has("new\n") && file_count() == 2,
		"a leftover that cannot be removed is not in the way");
	printf("# %s: %s\n", err.place, err.detail);
	begin();
	DeleteFileA(path);
	ok(!write_file("new\n", flags, &err) && file_count() == 1, "one that can be removed is");
	DeleteFileA(path);
}

static void check_flush(void)
{
	static const struct {
		DWORD code;
		int rc;
	} cases[] = {{ERROR_INVALID_FUNCTION, 0}, {ERROR_NOT_SUPPORTED, 0},
		{ERROR_DISK_FULL, -ERR_WRITE}, {ERROR_IO_DEVICE, -ERR_WRITE}};
	struct err err = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		begin();
		scene.flush_fails = cases[i].code;
		ok(write_file("new\n", OUT_NEW, &err) == cases[i].rc &&
				file_count() == !cases[i].rc,
			cases[i].rc ?
				"what does not reach the disk is an error, and leaves nothing" :
				"a file system that cannot flush is one all the same");
		DeleteFileA(path);
	}
}

static bool spew(const char *text)
{
	FILE *file = fopen(path, "wb");

	return file && fputs(text, file) >= 0 && !fclose(file);
}

/* Another program takes the name during the write. */
static void check_new(unsigned flags)
{
	struct err err = {0};
	struct out out;

	begin();
	ok(!write_file("new\n", OUT_NEW | flags, &err) && has("new\n") && file_count() == 1,
		"a new file is there, whole");
	ok(write_file("newer\n", OUT_NEW | flags, &err) == -ERR_EXISTS && has("new\n"),
		"not a second time");
	DeleteFileA(path);
	ok(!out_open_as(&out, path, OUT_NEW | flags, &err), "it is opened again");
	out_text(&out, "new\n");
	ok(spew("somebody's\n"), "somebody takes the name meanwhile");
	ok(out_commit(&out, &err) == -ERR_EXISTS && err.code == ERR_EXISTS, "which is an error");
	ok(has("somebody's\n") && file_count() == 1, "keeps that file, and leaves nothing");
	ok(!write_file("new\n", flags, &err) && has("new\n") && file_count() == 1,
		"one that is not to be new replaces it");
	DeleteFileA(path);
}

int main(void)
{
	ok(make_folder(), "a folder for it");
	snprintf(temp, sizeof(temp), "%s.%lu.tmp", path, os_pid());
	check_new(0);
	check_new(OUT_GZIP);
	check_openers(OUT_NEW);
	check_openers(0);
	check_reader();
	check_folder();
	check_leftover(OUT_NEW);
	check_leftover(0);
	check_flush();
	begin();
	ok(RemoveDirectoryA(folder), "nothing is left");
	return ok_end();
}
