/* Runs a stand-in program in place of llvm-symbolizer. Prints TAP. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "core/base/os.h"
#include "core/base/os_windows.h"
#include "symbolize/backend/backend.h"
#include "symbolize/backend/llvm.h"
#include "tests/win/again.h"
#include "tests/win/tap.h"

#define WAIT_MS 20000
#define MANY 5000

/* This test's folder, and the program in it. */
static wchar_t work[MAX_PATH], stand_in[MAX_PATH + 40];

/* ---------------------------------------------------------------- files */

static void path_in(wchar_t *path, const wchar_t *name)
{
	_snwprintf(path, MAX_PATH + 40, L"%ls\\%ls", work, name);
}

/* Writes a file into the folder; returns the file's path, which the caller frees. */
static char *write_new(const wchar_t *name, const char *text)
{
	wchar_t path[MAX_PATH + 40];
	FILE *file;

	path_in(path, name);
	file = _wfopen(path, L"wb");
	if (!file)
		return NULL;
	fputs(text, file);
	(void)fclose(file);
	return wide_to_utf8(path);
}

static unsigned count_files(const wchar_t *pattern)
{
	wchar_t path[MAX_PATH + 40];
	WIN32_FIND_DATAW data;
	unsigned found = 0;
	HANDLE search;

	path_in(path, pattern);
	search = FindFirstFileW(path, &data);
	if (search == INVALID_HANDLE_VALUE)
		return 0;
	do
		found++;
	while (FindNextFileW(search, &data));
	FindClose(search);
	return found;
}

static void delete (const wchar_t *name)
{
	wchar_t path[MAX_PATH + 40];

	path_in(path, name);
	DeleteFileW(path);
}

/* Makes a folder whose name has blanks and letters that no single code page contains. It is also
 * the temporary folder. Copies the stand-in into it. */
static bool set_up(void)
{
	wchar_t from[MAX_PATH + 40], temp[MAX_PATH], *name;

	if (!GetTempPathW(MAX_PATH, temp) || !GetModuleFileNameW(NULL, from, MAX_PATH))
		return false;
	_snwprintf(work, MAX_PATH, L"%lshsym test \u00e4\u65e5 %lu", temp, GetCurrentProcessId());
	for (int up = 0; up < 2; up++) {
		name = wcsrchr(from, L'\\');
		if (!name)
			return false;
		*name = L'\0';
	}
	wcscat(from, L"\\targets\\llvm_stand_in.exe");
	path_in(stand_in, L"llvm-symbolizer.exe");
	return CreateDirectoryW(work, NULL) && CopyFileW(from, stand_in, TRUE) &&
	       SetEnvironmentVariableW(L"TMP", work) && SetEnvironmentVariableW(L"TEMP", work) &&
	       SetEnvironmentVariableW(L"HSYM_LLVM", stand_in);
}

static void tear_down(void)
{
	SetCurrentDirectoryW(L"C:\\");
	for (int i = 0; i < 100 && !DeleteFileW(stand_in); i++)
		Sleep(50); /* until all processes have exited */
	RemoveDirectoryW(work);
}

/* ---------------------------------------------------------------- requests */

struct scene {
	struct symbol_options options;
	struct module module;
	struct sym_module subject;
	struct pe_image pe;
	struct lookup *lookups;
	size_t count;
	struct arena arena;
	bool is_trouble;
	unsigned staged; /* number of files and folders while the backend existed */
};

/* Requests the addresses 1, 2, ... The caller must call close_scene(). */
static void ask(struct scene *scene, char *image, char *pdb)
{
	void *backend = llvm_backend.make(&scene->options, NULL);

	scene->module.path = "C:\\a.exe";
	scene->pe.preferred_base = 0x140000000;
	scene->pe.bits = 64;
	scene->pe.machine = PE_MACHINE_AMD64;
	scene->subject = (struct sym_module){.module = &scene->module,
		.files = {.image = image, .pe = image ? &scene->pe : NULL, .pdb = pdb}};
	scene->subject.tables = tables_new(&scene->subject.files, false);
	scene->lookups = calloc(scene->count, sizeof(*scene->lookups));
	for (size_t i = 0; i < scene->count; i++)
		scene->lookups[i].rva = (uint32_t)i + 1;
	arena_init(&scene->arena);
	llvm_backend.resolve(backend, &scene->subject, scene->lookups, scene->count, &scene->arena);
	scene->is_trouble = llvm_backend.trouble(backend) != NULL;
	scene->staged = count_files(L"hsym-*");
	llvm_backend.release(backend);
}

static void close_scene(struct scene *scene)
{
	free(scene->lookups);
	tables_free(scene->subject.tables);
	buf_release(&scene->subject.files.reason);
	arena_release(&scene->arena);
}

/* Counts the lookups that have the right line and this function. */
static size_t count_named(const struct scene *scene, const char *function)
{
	size_t named = 0;

	for (size_t i = 0; i < scene->count; i++) {
		const struct symbols *found = &scene->lookups[i].found;
		const struct symbol *last = found->count ? &found->list[found->count - 1] : NULL;

		named += last && last->line == i + 1 && !strcmp(last->function, function);
	}
	return named;
}

static void test_many_questions(char *image)
{
	struct scene scene = {.count = MANY};

	ask(&scene, image, NULL);
	ok(!scene.is_trouble, "it is asked about an image");
	ok(count_named(&scene, "IMAGE") == MANY, "each answer goes to its question");
	ok(!scene.staged, "nothing is put into the folder of temporary files for that");
	close_scene(&scene);
}

static void test_pdb(char *image)
{
	char *pdb = write_new(L"some \u00e4\u65e5.pdb", "PDB");
	struct scene scene = {.count = 3};

	ask(&scene, image, pdb);
	ok(count_named(&scene, "PDB") == 3, "a PDB is asked through a stub that names it");
	ok(scene.staged == 1, "which is in a folder of its own");
	ok(!count_files(L"hsym-*"), "and gone afterwards");
	close_scene(&scene);
	ask(&scene, NULL, pdb);
	ok(count_named(&scene, "PDB") == 3, "also without an image");
	close_scene(&scene);
	delete (L"some \u00e4\u65e5.pdb");
	free(pdb);
}

/* ---------------------------------------------------------------- misbehaviour */

static bool stop_soon(void *ctx)
{
	return ++*(unsigned *)ctx > 3;
}

static void test_misbehaviour(char *image)
{
	static const wchar_t *const modes[] = {L"die", L"babble", L"hang"};
	struct scene scene = {.count = 3, .options.patience_ms = 3000};
	unsigned asked = 0;

	/* The second address is requested without inlined functions, so an image gives no line for
	 * it. */
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		SetEnvironmentVariableW(L"STAND_IN_MODE", modes[i]);
		ask(&scene, image, NULL);
		ok(scene.is_trouble && count_named(&scene, "IMAGE") == (i < 2 ? 2 : 1),
			"what one that misbehaves has said stays, and one that hangs is given up");
		close_scene(&scene);
	}
	scene.count = MANY;
	scene.options.patience_ms = WAIT_MS;
	scene.options.listener.is_cancelled = stop_soon;
	scene.options.listener.ctx = &asked;
	ask(&scene, image, NULL);
	ok(!scene.is_trouble && asked < 100, "the wait for one that hangs can be stopped");
	close_scene(&scene);
	SetEnvironmentVariableW(L"STAND_IN_MODE", NULL);
}

/* Waits for a file, returns the number in it, and deletes the file. */
static DWORD wait_for_number(const wchar_t *name)
{
	wchar_t path[MAX_PATH + 40];
	unsigned long number = 0;

	path_in(path, name);
	for (int i = 0; i < WAIT_MS / 20 && !number; i++) {
		FILE *file = _wfopen(path, L"rb");
		char line[20] = "";

		if (file && fgets(line, sizeof(line), file))
			number = strtoul(line, NULL, 10);
		if (!number)
			Sleep(20);
		if (file)
			(void)fclose(file);
	}
	DeleteFileW(path);
	return number;
}

static void test_it_does_not_outlive_us(char *image)
{
	wchar_t path[MAX_PATH + 40], *wide = wide_from_utf8(image), quoted[MAX_PATH + 40];
	PROCESS_INFORMATION info;
	HANDLE process;
	DWORD pid;

	path_in(path, L"pid");
	SetEnvironmentVariableW(L"STAND_IN_PID", path);
	SetEnvironmentVariableW(L"STAND_IN_MODE", L"hang");
	_snwprintf(quoted, MAX_PATH + 40, L"\"%ls\"", wide);
	if (!ok(start_again(quoted, &info), "another process asks"))
		return;
	pid = wait_for_number(L"pid");
	process = OpenProcess(SYNCHRONIZE, FALSE, pid);
	ok(pid && process, "it runs");
	TerminateProcess(info.hProcess, 0);
	ok(process && WaitForSingleObject(process, WAIT_MS) == WAIT_OBJECT_0,
		"and ends when the one that started it is ended, though it hangs");
	if (process)
		CloseHandle(process);
	CloseHandle(info.hProcess);
	CloseHandle(info.hThread);
	free(wide);
	SetEnvironmentVariableW(L"STAND_IN_PID", NULL);
	SetEnvironmentVariableW(L"STAND_IN_MODE", NULL);
}

/* An inheritable end of a pipe. If no other process has this end, closing it ends the pipe. */
static void test_it_inherits_nothing_else(void)
{
	SECURITY_ATTRIBUTES inherited = {.nLength = sizeof(inherited), .bInheritHandle = TRUE};
	const char *const args[] = {"--verbose", NULL};
	char *program = wide_to_utf8(stand_in);
	struct helper *helper = NULL;
	HANDLE from = NULL, to = NULL;
	char byte;
	DWORD got;

	if (CreatePipe(&from, &to, &inherited, 0))
		helper = helper_start(program, args);
	CloseHandle(to);
	ok(helper && !ReadFile(from, &byte, 1, &got, NULL) && GetLastError() == ERROR_BROKEN_PIPE,
		"it inherits no handle but its own");
	CloseHandle(from);
	helper_stop(helper);
	free(program);
}

/* ---------------------------------------------------------------- place of the program */

static size_t list_with(const wchar_t *path)
{
	struct buf list;
	size_t len;

	buf_init(&list);
	SetEnvironmentVariableW(L"PATH", path);
	llvm_program_list(&list);
	len = list.len;
	buf_release(&list);
	return len;
}

static void test_where_it_is_found(char *image)
{
	wchar_t path[2 * MAX_PATH];
	char *expected = wide_to_utf8(stand_in);
	struct scene scene = {.count = 1};

	SetEnvironmentVariableW(L"HSYM_LLVM", NULL);
	SetCurrentDirectoryW(work);
	ok(!list_with(L".;;llvm;C:llvm"), "never in the current folder");
	_snwprintf(path, 2 * MAX_PATH, L".;\"%ls\";C:\\nowhere", work);
	ok(expected && list_with(path) == strlen(expected) + 1, "in a folder of PATH");
	SetEnvironmentVariableW(L"PATH", L"");
	ask(&scene, image, NULL);
	ok(scene.subject.files.reason.len && !scene.is_trouble &&
			strstr(scene.subject.files.reason.data, "not installed"),
		"that there is none is a reason, and no trouble");
	close_scene(&scene);
	SetEnvironmentVariableW(L"HSYM_LLVM", L"llvm-symbolizer.exe");
	ok(!list_with(work), "HSYM_LLVM is a full path, and the only one");
	free(expected);
}

int main(int argc, char **argv)
{
	struct scene scene = {.count = 10};
	wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &argc);
	char *image;

	(void)argv;
	if (argc > 1) { /* the process in the middle */
		ask(&scene, wide_to_utf8(wide[1]), NULL);
		return 0;
	}
	ok(set_up(), "a folder and a stand-in");
	image = write_new(L"image \u00e4.exe", "IMAGE of a program");
	test_many_questions(image);
	test_pdb(image);
	test_misbehaviour(image);
	test_it_does_not_outlive_us(image);
	test_it_inherits_nothing_else();
	test_where_it_is_found(image);
	delete (L"image \u00e4.exe");
	free(image);
	LocalFree(wide);
	tear_down();
	return ok_end();
}
