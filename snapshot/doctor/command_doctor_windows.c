#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <windows.h>
#include <dbghelp.h>

#include "core/base/opt.h"
#include "core/base/os_windows.h"
#include "snapshot/command/command.h"
#include "snapshot/doctor/doctor_windows.h"
#include "snapshot/live/process.h"
#include "snapshot/stacks/os_stacks.h"
#include "snapshot/target/nt_process.h"
#include "snapshot/target/peb_layout.h"

#define NAMES_MAX 100 /* files of one process that may be there */

typedef BOOL(WINAPI *write_dump_fn)(HANDLE process, DWORD pid, HANDLE file, MINIDUMP_TYPE type,
	PMINIDUMP_EXCEPTION_INFORMATION exception, PMINIDUMP_USER_STREAM_INFORMATION streams,
	PMINIDUMP_CALLBACK_INFORMATION callback);

/* Of the system's own library, whatever lies beside hsnap.exe; NULL: there is none. */
static write_dump_fn find_write_dump(void)
{
	static const wchar_t name[] = L"\\dbghelp.dll";
	wchar_t path[MAX_PATH + sizeof(name) / sizeof(*name)];
	UINT len = GetSystemDirectoryW(path, MAX_PATH);
	HMODULE library;

	if (!len || len >= MAX_PATH)
		return NULL;
	memcpy(path + len, name, sizeof(name));
	library = LoadLibraryW(path);
	return library ? (write_dump_fn)(void *)GetProcAddress(library, "MiniDumpWriteDump") : NULL;
}

static int file_fail(enum err_code code, const char *place, struct err *err)
{
	char text[300];

	return err_set(err, code, place, "%s", windows_error(GetLastError(), text, sizeof(text)));
}

/* A new file of ours that ends with its handle; others may read it meanwhile. */
static HANDLE create(const wchar_t *path)
{
	return CreateFileW(path, GENERIC_READ | GENERIC_WRITE | DELETE,
		FILE_SHARE_READ | FILE_SHARE_DELETE, NULL, CREATE_NEW,
		FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, NULL);
}

static int create_somewhere(struct doctor_file *file, struct err *err)
{
	wchar_t folder[MAX_PATH + 1], path[MAX_PATH + 60];
	DWORD len = GetTempPathW(MAX_PATH + 1, folder);

	if (!len || len > MAX_PATH)
		return file_fail(ERR_CREATE, "a temporary file", err);
	for (unsigned i = 0; file->handle == INVALID_HANDLE_VALUE && i < NAMES_MAX; i++) {
		_snwprintf(path, sizeof(path) / sizeof(*path), L"%lshsnap-doctor-%lu-%u.dmp",
			folder, GetCurrentProcessId(), i);
		file->handle = create(path);
		if (file->handle == INVALID_HANDLE_VALUE && GetLastError() != ERROR_FILE_EXISTS)
			break;
	}
	if (file->handle == INVALID_HANDLE_VALUE)
		return file_fail(ERR_CREATE, "a temporary file", err);
	file->path = utf8_from_wide(path);
	return file->path ? 0 : err_set(err, ERR_NOMEM, "a temporary file", NULL);
}

int doctor_file_write(struct doctor_file *file, HANDLE process, DWORD pid, struct err *err)
{
	write_dump_fn write_dump = find_write_dump();
	int rc;

	*file = (struct doctor_file){.handle = INVALID_HANDLE_VALUE};
	if (!write_dump)
		return err_set(
			err, ERR_SYSTEM, "dbghelp.dll", "there is none that writes minidumps");
	rc = create_somewhere(file, err);
	if (!rc && !write_dump(process, pid, file->handle,
			   MiniDumpWithFullMemory | MiniDumpWithFullMemoryInfo, NULL, NULL, NULL))
		rc = file_fail(ERR_WRITE, file->path, err);
	return rc;
}

void doctor_file_remove(struct doctor_file *file)
{
	if (file->handle != INVALID_HANDLE_VALUE)
		CloseHandle(file->handle);
	free(file->path);
	*file = (struct doctor_file){.handle = INVALID_HANDLE_VALUE};
}

#define WAIT_MS 60000 /* for each thing the child does */
#define END_MS 5000
#define TABLES_BYTES ((uint64_t)64 << 20) /* for the tracer */
#define NAME "the doctor's child"

static int fail(enum err_code code, const char *what, struct err *err)
{
	char text[300];

	return err_set(
		err, code, NAME, "%s: %s", what, windows_error(GetLastError(), text, sizeof(text)));
}

static int make_handles(struct doctor_child *child, struct err *err)
{
	SECURITY_ATTRIBUTES inherit = {.nLength = sizeof(inherit), .bInheritHandle = TRUE};
	HANDLE self = GetCurrentProcess();

	child->handles[DOCTOR_MEMORY] = CreateFileMappingW(
		INVALID_HANDLE_VALUE, &inherit, PAGE_READWRITE, 0, sizeof(*child->shared), NULL);
	child->handles[DOCTOR_SAID] = CreateEventW(&inherit, FALSE, FALSE, NULL);
	child->handles[DOCTOR_GO] = CreateEventW(&inherit, FALSE, FALSE, NULL);
	if (!child->handles[DOCTOR_MEMORY] || !child->handles[DOCTOR_SAID] ||
		!child->handles[DOCTOR_GO] ||
		!DuplicateHandle(
			self, self, self, &child->handles[DOCTOR_PARENT], SYNCHRONIZE, TRUE, 0))
		return fail(ERR_START, "no handles", err);
	child->shared = MapViewOfFile(child->handles[DOCTOR_MEMORY], FILE_MAP_READ | FILE_MAP_WRITE,
		0, 0, sizeof(*child->shared));
	return child->shared ? 0 : fail(ERR_START, "no memory to share", err);
}

/* This very program, suspended before its first instruction; only the handles are inherited. */
static int spawn(struct doctor_child *child, struct err *err)
{
	wchar_t *image = malloc(32768 * sizeof(*image)), command[200];
	struct spawn_request request = {.image = image,
		.command = command,
		.flags = CREATE_SUSPENDED | DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP,
		.handles = child->handles,
		.handle_count = DOCTOR_HANDLES};
	int rc = 0;

	if (!image)
		return err_set(err, ERR_NOMEM, NAME, NULL);
	_snwprintf(command, 200, L"hsnap doctor " DOCTOR_CHILD L" %llx %llx %llx %llx",
		(unsigned long long)(ULONG_PTR)child->handles[DOCTOR_MEMORY],
		(unsigned long long)(ULONG_PTR)child->handles[DOCTOR_SAID],
		(unsigned long long)(ULONG_PTR)child->handles[DOCTOR_GO],
		(unsigned long long)(ULONG_PTR)child->handles[DOCTOR_PARENT]);
	if (!GetModuleFileNameW(NULL, image, 32768) || !spawn_start(&child->spawn, &request))
		rc = fail(ERR_START, "hsnap itself", err);
	free(image);
	return rc;
}

/*
 * What 'hsnap ust on' leads to, for this one process and without a right to the registry: the loader
 * looks at the flag in the process environment block when the first thread starts.
 */
static int set_ust(struct doctor_child *child, struct err *err)
{
	uint64_t addr = child->target.peb + peb_layout(64)->global_flag;
	uint32_t flag = 0;

	if (target_u32(&child->target, addr, &flag))
		return target_err(&child->target, addr, "unreadable PEB", err);
	flag |= NT_FLAG_UST;
	if (!WriteProcessMemory(
		    child->spawn.info.hProcess, (LPVOID)(ULONG_PTR)addr, &flag, sizeof(flag), NULL))
		return fail(ERR_START, "its flags cannot be set", err);
	return 0;
}

/* Waits for an event of the child's, or its end. */
static int wait_for(struct doctor_child *child, HANDLE event, struct err *err)
{
	HANDLE wait[] = {event, child->spawn.info.hProcess};
	DWORD status = 0;

	switch (WaitForMultipleObjects(2, wait, FALSE, WAIT_MS)) {
	case WAIT_OBJECT_0: return 0;
	case WAIT_OBJECT_0 + 1:
		GetExitCodeProcess(child->spawn.info.hProcess, &status);
		return err_set(err, ERR_GONE, NAME, "exit status %lX", status);
	case WAIT_TIMEOUT: return err_set(err, ERR_START, NAME, "it is silent");
	default: return fail(ERR_START, "no waiting", err);
	}
}

static int bring_up(struct doctor_child *child, enum doctor_start how, struct err *err)
{
	static const struct traced_options options = {.install.limit_bytes = TABLES_BYTES};
	HANDLE process = child->spawn.info.hProcess, thread = child->spawn.info.hThread;
	int rc = target_open_handle(&child->target, process, err);

	if (!rc && how == DOCTOR_WITH_UST)
		rc = set_ust(child, err);
	if (!rc && how == DOCTOR_WITH_TRACER)
		rc = traced_prepare(&child->traced, process, thread, NAME, err);
	if (rc)
		return rc;
	ResumeThread(thread);
	if (how == DOCTOR_WITH_TRACER)
		rc = traced_bring_up(&child->traced, NULL, &options, err);
	return rc ? rc : wait_for(child, child->handles[DOCTOR_SAID], err);
}

int doctor_child_start(struct doctor_child *child, enum doctor_start how, struct err *err)
{
	int rc;

	*child = (struct doctor_child){0};
	rc = make_handles(child, err);
	if (!rc)
		rc = spawn(child, err);
	return rc ? rc : bring_up(child, how, err);
}

int doctor_child_make_heaps(struct doctor_child *child, struct err *err)
{
	SetEvent(child->handles[DOCTOR_GO]);
	return wait_for(child, child->handles[DOCTOR_SAID], err);
}

int doctor_child_work(struct doctor_child *child, struct doctor_truth *truth, struct err *err)
{
	int rc;

	SetEvent(child->handles[DOCTOR_GO]);
	rc = wait_for(child, child->handles[DOCTOR_SAID], err);
	if (rc)
		return rc;
	memcpy(truth, child->shared, sizeof(*truth));
	if (truth->failed_bytes)
		return err_set(err, ERR_SYSTEM, NAME, "it got no block of %" PRIu32 " bytes",
			truth->failed_bytes);
	if (!doctor_truth_is_sound(truth))
		return err_set(err, ERR_SYSTEM, NAME, "what it says makes no sense");
	return 0;
}

void doctor_child_end(struct doctor_child *child)
{
	if (child->spawn.info.hProcess) {
		TerminateProcess(child->spawn.info.hProcess, 0);
		WaitForSingleObject(child->spawn.info.hProcess, END_MS);
	}
	if (child->target.system)
		child->target.ops->close(&child->target);
	traced_release(&child->traced);
	if (child->shared)
		UnmapViewOfFile(child->shared);
	for (int i = 0; i < DOCTOR_HANDLES; i++) {
		if (child->handles[i])
			CloseHandle(child->handles[i]);
	}
	if (child->spawn.info.hThread)
		CloseHandle(child->spawn.info.hThread);
	if (child->spawn.info.hProcess)
		CloseHandle(child->spawn.info.hProcess);
	if (child->spawn.job)
		CloseHandle(child->spawn.job);
	*child = (struct doctor_child){0};
}

static int say_not_there(struct doctor *doctor, const char *what, const char *why)
{
	return doctor_report_say(&doctor->report, "walk", what, DOCTOR_NOT_THERE, why);
}

static uint32_t global_flag(struct doctor_child *child)
{
	uint32_t flag = 0;

	return target_u32(&child->target, child->target.peb + peb_layout(64)->global_flag, &flag) ?
		       0 :
		       flag;
}

/* What of the heaps that were to be tried the system did not give. */
static int say_missing(struct doctor *doctor)
{
	bool has_front_end = false;
	int rc = 0;

	for (int i = 0; !rc && i < DOCTOR_HEAPS; i++) {
		has_front_end = has_front_end || doctor->truth->front_ends[i] == 2;
		if (!doctor->truth->heaps[i])
			rc = say_not_there(doctor, doctor_heap_name((enum doctor_heap)i),
				"the system makes none for a program that asks for one");
	}
	if (!rc && !has_front_end)
		rc = say_not_there(doctor, "low fragmentation heap",
			"the system gave no heap of the child one");
	return rc;
}

/* A minidump of the child, as hsnap -z would read it. */
static int examine_file(struct doctor *doctor, struct doctor_child *child, const char *source,
	int (*examine)(struct doctor *doctor, struct target *target, const char *source))
{
	struct target target = {0};
	struct doctor_file file;
	struct err err = {0};
	int rc;

	if (doctor_file_write(
		    &file, child->spawn.info.hProcess, child->spawn.info.dwProcessId, &err)) {
		rc = doctor_say(doctor, source, "a minidump", DOCTOR_NOT_THERE, &err);
	} else if (target_open_minidump(&target, file.path, &err)) {
		rc = doctor_say(doctor, source, "the minidump", DOCTOR_OFF, &err);
	} else {
		rc = examine(doctor, &target, source);
		target.ops->close(&target);
	}
	doctor_file_remove(&file);
	return rc;
}

static int examine_plain(struct doctor *doctor, struct doctor_child *child)
{
	static const struct doctor_dump sums = {"sums", STACKS_AUTO, true, true};
	int rc = doctor_look_walk(doctor, &child->target, "walk");

	doctor->has_ust = global_flag(child) & NT_FLAG_UST;
	rc = rc ? rc : say_missing(doctor);
	rc = rc ? rc : doctor_look_dump(doctor, &child->target, &sums);
	return rc ? rc : examine_file(doctor, child, "file", doctor_look_walk);
}

static int look_ust(struct doctor *doctor, struct target *target, const char *source)
{
	const struct doctor_dump dump = {source, STACKS_UST, true, false};

	return doctor_look_dump(doctor, target, &dump);
}

static int examine_ust(struct doctor *doctor, struct doctor_child *child)
{
	const struct doctor_dump dump = {
		"ust", STACKS_UST, doctor->has_ust && !doctor->is_wine, false};
	char line[100];
	int rc;

	snprintf(line, sizeof(line), "%-14s  %" PRIX32 " in the child with +ust\n", "NtGlobalFlag",
		global_flag(child));
	rc = doctor_note(doctor, line);
	rc = rc ? rc : doctor_look_walk(doctor, &child->target, "walk+ust");
	rc = rc ? rc : doctor_look_dump(doctor, &child->target, &dump);
	/* Where the living child has no such stacks its file has none. */
	if (!rc && doctor_report_has(&doctor->report, "ust", DOCTOR_OK))
		rc = examine_file(doctor, child, "file+ust", look_ust);
	return rc;
}

static int switch_os_on(struct doctor_child *child, struct err *err)
{
	return os_stacks_switch(child->target.pid, true, err);
}

static int examine_os(struct doctor *doctor, struct doctor_child *child)
{
	static const struct doctor_dump dump = {"os", STACKS_OS, false, false};

	return doctor_look_dump(doctor, &child->target, &dump);
}

static int examine_tracer(struct doctor *doctor, struct doctor_child *child)
{
	static const struct doctor_dump dump = {"tracer", STACKS_TRACER, true, false};

	return doctor_look_dump(doctor, &child->target, &dump);
}

static const struct trial {
	const char *source;
	enum doctor_start how;
	/* What the child has to have before it makes its blocks; without it there is no trial. */
	int (*prepare)(struct doctor_child *child, struct err *err);
	int (*examine)(struct doctor *doctor, struct doctor_child *child);
} trials[] = {
	{"walk", DOCTOR_PLAIN, NULL, examine_plain},
	{"ust", DOCTOR_WITH_UST, NULL, examine_ust},
	{"os", DOCTOR_PLAIN, switch_os_on, examine_os},
	{"tracer", DOCTOR_WITH_TRACER, NULL, examine_tracer},
};

#define TRIALS (sizeof(trials) / sizeof(*trials))

/* A child that is there. What goes wrong with it is a finding. */
static int examine_child(
	struct doctor *doctor, const struct trial *trial, struct doctor_child *child)
{
	struct err err = {0};

	snprintf(doctor->os, sizeof(doctor->os), "%s", child->target.os);
	doctor->is_wine = child->target.is_wine;
	if (trial->prepare && trial->prepare(child, &err))
		return doctor_say(doctor, trial->source, "the child", DOCTOR_NOT_THERE, &err);
	if (doctor_child_make_heaps(child, &err))
		return doctor_say(doctor, trial->source, "the child", DOCTOR_OFF, &err);
	if (doctor_look_before(doctor, &child->target))
		return -ERR_NOMEM;
	if (doctor_child_work(child, doctor->truth, &err))
		return doctor_say(doctor, trial->source, "the child", DOCTOR_OFF, &err);
	return trial->examine(doctor, child);
}

/* One child from its start to its end. */
static int try(struct doctor *doctor, const struct trial *trial)
{
	struct doctor_child child;
	struct err err = {0};
	int rc = doctor_child_start(&child, trial->how, &err);

	rc = rc ? doctor_say(doctor, trial->source, "the child", DOCTOR_OFF, &err) :
		  examine_child(doctor, trial, &child);
	doctor_forget(doctor);
	doctor_child_end(&child);
	return rc;
}

int doctor_examine(struct doctor *doctor)
{
	int rc = doctor_init(doctor);

	for (size_t i = 0; !rc && i < TRIALS; i++)
		rc = try(doctor, &trials[i]);
	return rc;
}

enum {
	OPT_HELP = 1,
	OPT_VERBOSE,
};

static const struct opt options[] = {
	{OPT_VERBOSE, "v", "verbose", NULL, "print every row of the table"},
	{OPT_HELP, "h", "help", NULL, "print this help"},
	{0},
};

static void doctor_help(FILE *to)
{
	fprintf(to,
		"usage: hsnap doctor [-v]\n"
		"\n"
		"Starts a program with known blocks, reads it in every way there is and compares.\n"
		"Ends with 1 when anything is not as it should be.\n"
		"\n");
	opt_help(options, to);
}

static void print_reasons(const struct doctor_report *report)
{
	static const enum doctor_verdict verdicts[] = {DOCTOR_NOT_THERE, DOCTOR_NOTE, DOCTOR_OFF};

	for (size_t i = 0; i < sizeof(verdicts) / sizeof(*verdicts); i++)
		doctor_report_print_details(report, verdicts[i], stdout);
}

static void print_verdict(const struct doctor_report *report)
{
	size_t off = doctor_report_off(report);

	if (off)
		printf("\n%zu row%s OFF: do not trust what hsnap says on this system.\n", off,
			off == 1 ? " is" : "s are");
	else if (doctor_report_count(report, DOCTOR_NOTE))
		printf("\nNothing is off; what is noted above may well be right.\n");
	else
		printf("\nAll that is there is as it should be.\n");
}

/* What matters most is last, where a terminal shows it: what is off, and the verdict. */
static void print(const struct doctor *doctor, bool is_verbose)
{
	printf("hsnap %s on %s\n\n", HSNAP_VERSION, *doctor->os ? doctor->os : "an unknown system");
	if (is_verbose)
		doctor_report_print_rows(&doctor->report, stdout);
	else
		doctor_report_print_short(&doctor->report, stdout);
	printf("\nused:\n%s\n", doctor->notes.len ? doctor->notes.data : "nothing\n");
	if (doctor_report_has(&doctor->report, "ust", DOCTOR_NOT_THERE) && !doctor->is_wine)
		printf("To try +ust as an administrator sets it: 'hsnap ust on hsnap.exe', "
		       "hsnap doctor once more,\nthen 'hsnap ust off hsnap.exe'.\n\n");
	print_reasons(&doctor->report);
	print_verdict(&doctor->report);
}

static int run_doctor(bool is_verbose)
{
	struct doctor doctor;
	struct err err = {0};
	int status = 0;

	if (doctor_examine(&doctor)) {
		err_set(&err, ERR_NOMEM, "doctor", NULL);
		status = command_fail(&err);
	} else {
		print(&doctor, is_verbose);
		status = doctor_report_off(&doctor.report) ? 1 : 0;
	}
	doctor_release(&doctor);
	return status;
}

int command_doctor(int argc, char **argv)
{
	struct opt_state state;
	struct err err = {0};
	bool is_verbose = false;
	int id;

	if (argc > 1 && !strcmp(argv[1], DOCTOR_CHILD))
		return doctor_child_main(argc - 2, argv + 2);
	opt_init(&state, options, argc, argv);
	while ((id = opt_next(&state, &err))) {
		if (id == OPT_HELP) {
			doctor_help(stdout);
			return 0;
		}
		is_verbose = is_verbose || id == OPT_VERBOSE;
		if (id == OPT_VERBOSE)
			continue;
		if (id == OPT_ARGUMENT)
			err_set(&err, ERR_USAGE, state.value, "doctor takes no arguments");
		return command_fail(&err);
	}
	if (sizeof(void *) != 8) { /* its program knows its own functions by what x64 has */
		err_set(&err, ERR_USAGE, "doctor", "it is for the 64-bit hsnap alone");
		return command_fail(&err);
	}
	return run_doctor(is_verbose);
}
