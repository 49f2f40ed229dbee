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
#include "snapshot/control/control_windows.h"
#include "snapshot/doctor/doctor.h"
#include "snapshot/live/process.h"
#include "snapshot/live/spawn_windows.h"
#include "snapshot/stacks/os_stacks.h"
#include "snapshot/target/nt_process.h"
#include "snapshot/target/peb_layout.h"

#define WAIT_MS 60000 /* for each thing the child does */
#define END_MS 5000
#define TABLES_BYTES ((uint64_t)64 << 20) /* for the tracer */
#define NAME "the doctor's child"
#define PATH_UNITS 32768 /* no path is longer */
#define FILE_UNITS (MAX_PATH + 60) /* of the minidump's path */

struct doctor_child {
	bool is_other; /* 32-bit, and this hsnap is not */
	struct spawn spawn;
	HANDLE handles[DOCTOR_HANDLES];
	struct doctor_truth *shared; /* as the child writes it; not to be trusted */
	struct traced traced;
	struct target target; /* the child, open */
};

/* One child for each way of starting it, read from all sources that it has. */
enum doctor_trial {
	TRIAL_PLAIN,
	TRIAL_UST, /* started with the flag that makes Windows keep stacks */
	TRIAL_OS,
	TRIAL_TRACER,
	TRIALS,
};

static const char *const trial_sources[TRIALS] = {"walk", "ust", "os", "tracer"};
static const char *const trial_sources_32[TRIALS] = {"walk32", "ust32", "os32", "tracer32"};

static int fail(enum err_code code, const char *what, struct err *err)
{
	char text[300];

	return err_set(
		err, code, NAME, "%s: %s", what, windows_error(GetLastError(), text, sizeof(text)));
}

static int make_handles(struct doctor_child *child, struct err *err)
{
	SECURITY_ATTRIBUTES inherit = {.nLength = sizeof(inherit), .bInheritHandle = TRUE};
	HANDLE self = GetCurrentProcess(), *handles = child->handles;

	handles[DOCTOR_MEMORY] = CreateFileMappingW(
		INVALID_HANDLE_VALUE, &inherit, PAGE_READWRITE, 0, sizeof(*child->shared), NULL);
	handles[DOCTOR_SAID] = CreateEventW(&inherit, FALSE, FALSE, NULL);
	handles[DOCTOR_GO] = CreateEventW(&inherit, FALSE, FALSE, NULL);
	if (!handles[DOCTOR_MEMORY] || !handles[DOCTOR_SAID] || !handles[DOCTOR_GO] ||
		!DuplicateHandle(self, self, self, &handles[DOCTOR_PARENT], SYNCHRONIZE, TRUE, 0))
		return fail(ERR_START, "no handles", err);
	child->shared = MapViewOfFile(handles[DOCTOR_MEMORY], FILE_MAP_READ | FILE_MAP_WRITE, 0, 0,
		sizeof(*child->shared));
	return child->shared ? 0 : fail(ERR_START, "no memory to share", err);
}

/* This very program, or the 32-bit hsnap; the caller's to free. NULL: its path is not known, or the file is not there. */
static wchar_t *child_image(const struct doctor_child *child)
{
	wchar_t *image;

	if (child->is_other)
		return program_beside(L"" HSNAP_32);
	image = xmalloc(PATH_UNITS * sizeof(*image));
	if (GetModuleFileNameW(NULL, image, PATH_UNITS))
		return image;
	free(image);
	return NULL;
}

/* Suspended before its first instruction; only the handles are inherited. */
static int spawn(struct doctor_child *child, struct err *err)
{
	wchar_t *image = child_image(child);
	wchar_t command[200];
	struct spawn_request request = {.image = image,
		.command = command,
		.flags = CREATE_SUSPENDED | DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP,
		.handles = child->handles,
		.handle_count = DOCTOR_HANDLES};
	int rc = 0;

	_snwprintf(command, 200, L"hsnap doctor " DOCTOR_CHILD L" %llx %llx %llx %llx",
		(unsigned long long)(ULONG_PTR)child->handles[DOCTOR_MEMORY],
		(unsigned long long)(ULONG_PTR)child->handles[DOCTOR_SAID],
		(unsigned long long)(ULONG_PTR)child->handles[DOCTOR_GO],
		(unsigned long long)(ULONG_PTR)child->handles[DOCTOR_PARENT]);
	if (!image || !spawn_start(&child->spawn, &request))
		rc = fail(ERR_START, child->is_other ? HSNAP_32 : "hsnap itself", err);
	free(image);
	return rc;
}

static uint64_t global_flag_addr(const struct doctor_child *child)
{
	return child->target.peb + peb_layout(child->target.bits)->global_flag;
}

static uint32_t global_flag(struct doctor_child *child)
{
	uint32_t flag = 0;

	return target_u32(&child->target, global_flag_addr(child), &flag) ? 0 : flag;
}

/*
 * What 'hsnap ust on' leads to, for this one process and without a right to the registry: the loader
 * looks at the flag in the process environment block when the first thread starts.
 */
static int set_ust(struct doctor_child *child, struct err *err)
{
	uint32_t flag = global_flag(child) | NT_FLAG_UST;

	return WriteProcessMemory(child->spawn.info.hProcess,
		       (LPVOID)(ULONG_PTR)global_flag_addr(child), &flag, sizeof(flag), NULL) ?
		       0 :
		       fail(ERR_START, "its flags cannot be set", err);
}

/* Waits until the child says so, or its end. */
static int wait_for(struct doctor_child *child, struct err *err)
{
	HANDLE wait[] = {child->handles[DOCTOR_SAID], child->spawn.info.hProcess};
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

/* Has the 32-bit hsnap attach to the child, before it has allocated any of its blocks. */
static int attach_other(const struct doctor_child *child, struct err *err)
{
	wchar_t words[40];
	uint32_t status = 0;
	int rc;

	_snwprintf(words, 40, L"attach -p %lu", child->spawn.info.dwProcessId);
	rc = run_other_hsnap_for(NAME, words, &status, err);
	return !rc && status ? err_set(err, ERR_INJECT, NAME,
				       HSNAP_32 " has ended with status %" PRIX32, status) :
			       rc;
}

/* Starts the child and waits until it is there and waits; child_end() in any case. */
static int child_start(struct doctor_child *child, enum doctor_trial trial, struct err *err)
{
	static const struct traced_options options = {.install.limit_bytes = TABLES_BYTES};
	const PROCESS_INFORMATION *info = &child->spawn.info;
	int rc = make_handles(child, err);

	rc = rc ? rc : spawn(child, err);
	rc = rc ? rc : target_open_handle(&child->target, info->hProcess, err);
	if (!rc && trial == TRIAL_UST)
		rc = set_ust(child, err);
	if (!rc && trial == TRIAL_TRACER && !child->is_other)
		rc = traced_prepare(&child->traced, info->hProcess, info->hThread, NAME, err);
	if (rc)
		return rc;
	ResumeThread(info->hThread);
	if (trial == TRIAL_TRACER && !child->is_other)
		rc = traced_bring_up(&child->traced, NULL, &options, err);
	rc = rc ? rc : wait_for(child, err);
	return rc || trial != TRIAL_TRACER || !child->is_other ? rc : attach_other(child, err);
}

/* Lets it allocate its blocks and copies its truth. */
static int child_work(struct doctor_child *child, struct doctor_truth *truth, struct err *err)
{
	int rc;

	SetEvent(child->handles[DOCTOR_GO]);
	rc = wait_for(child, err);
	if (rc)
		return rc;
	memcpy(truth, child->shared, sizeof(*truth));
	if (truth->failed_bytes)
		return err_set(err, ERR_SYSTEM, NAME, "it got no block of %" PRIu32 " bytes",
			truth->failed_bytes);
	return doctor_truth_is_sound(truth) ?
		       0 :
		       err_set(err, ERR_SYSTEM, NAME, "what it says makes no sense");
}

/* Ends the child, whatever it does, and closes everything. */
static void child_end(struct doctor_child *child)
{
	HANDLE process = child->spawn.info.hProcess;

	if (process) {
		TerminateProcess(process, 0);
		WaitForSingleObject(process, END_MS);
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
	if (process) {
		CloseHandle(child->spawn.info.hThread);
		CloseHandle(process);
	}
	if (child->spawn.job)
		CloseHandle(child->spawn.job);
}

/*
 * A new file in the folder for temporary ones that goes with its handle, however hsnap ends; others may
 * read it meanwhile. INVALID_HANDLE_VALUE: the system's last error says why.
 */
static HANDLE make_file(wchar_t path[FILE_UNITS], const char *source)
{
	wchar_t folder[MAX_PATH + 1];
	DWORD len = GetTempPathW(MAX_PATH + 1, folder);

	if (!len || len > MAX_PATH)
		return INVALID_HANDLE_VALUE;
	_snwprintf(path, FILE_UNITS, L"%lshsnap-doctor-%lu-%hs.dmp", folder, GetCurrentProcessId(),
		source);
	return CreateFileW(path, GENERIC_READ | GENERIC_WRITE | DELETE,
		FILE_SHARE_READ | FILE_SHARE_DELETE, NULL, CREATE_NEW,
		FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, NULL);
}

static int write_minidump(const struct doctor_child *child, HANDLE file, struct err *err)
{
	typedef BOOL(WINAPI * write_fn)(HANDLE process, DWORD pid, HANDLE file, MINIDUMP_TYPE type,
		void *exception, void *streams, void *callback);
	HMODULE library = windows_library(L"dbghelp.dll");
	write_fn write =
		library ? (write_fn)(void *)GetProcAddress(library, "MiniDumpWriteDump") : NULL;
	const PROCESS_INFORMATION *info = &child->spawn.info;

	if (!write ||
		!write(info->hProcess, info->dwProcessId, file,
			MiniDumpWithFullMemory | MiniDumpWithFullMemoryInfo, NULL, NULL, NULL))
		return fail(ERR_SYSTEM, "dbghelp.dll", err);
	return 0;
}

/* A minidump of the child, as hsnap -z would read it. */
static void examine_file(struct doctor *doctor, struct doctor_child *child, bool is_ust)
{
	const char *source = is_ust ? "file+ust" : child->is_other ? "file32" : "file";
	wchar_t wide[FILE_UNITS];
	HANDLE file = make_file(wide, source);
	char *path = file != INVALID_HANDLE_VALUE ? wide_to_utf8(wide) : NULL;
	struct target target = {0};
	struct err err = {0};

	if ((!path && fail(ERR_CREATE, "a temporary file", &err)) ||
		write_minidump(child, file, &err)) {
		doctor_say(doctor, source, "a minidump", DOCTOR_NOT_THERE, &err);
	} else if (target_open_minidump(&target, path, &err)) {
		doctor_say(doctor, source, "the minidump", DOCTOR_OFF, &err);
	} else {
		if (is_ust)
			doctor_look_dump(doctor, &target, source, STACKS_UST, true);
		else
			doctor_look_walk(doctor, &target, source);
		target.ops->close(&target);
	}
	if (file != INVALID_HANDLE_VALUE)
		CloseHandle(file);
	free(path);
}

/* What a walk of the child cannot try here, since the system did not give it. */
static void examine_heaps(struct doctor *doctor, const char *source)
{
	bool has_front_end = false;

	for (int i = 0; i < DOCTOR_HEAPS; i++) {
		has_front_end = has_front_end || doctor->truth->front_ends[i] == 2;
		if (!doctor->truth->heaps[i])
			doctor_say_why(doctor, source, doctor_heap_names[i], DOCTOR_NOT_THERE,
				"the system makes none for a program that asks for one");
	}
	if (!has_front_end)
		doctor_say_why(doctor, source, "low fragmentation heap", DOCTOR_NOT_THERE,
			"the system gave no heap of the child one");
}

static void examine_ust(
	struct doctor *doctor, struct doctor_child *child, const char *source, bool must_be)
{
	doctor_note(
		doctor, "NtGlobalFlag", "%" PRIX32 " in the child with +ust", global_flag(child));
	if (!child->is_other)
		doctor_look_walk(doctor, &child->target, "walk+ust");
	doctor_look_dump(doctor, &child->target, source, STACKS_UST, must_be);
	/* Where the living child has no such stacks its file has none. */
	if (!child->is_other && doctor_count(doctor, source, DOCTOR_OK))
		examine_file(doctor, child, true);
}

/* A child that is ready, from its work to its end. */
static void examine(struct doctor *doctor, struct doctor_child *child, enum doctor_trial trial,
	const char *source, bool *has_ust)
{
	struct target *target = &child->target;
	struct err err = {0};

	if (child_work(child, doctor->truth, &err)) {
		doctor_say(doctor, source, "the child", DOCTOR_OFF, &err);
	} else if (trial == TRIAL_PLAIN) {
		*has_ust = global_flag(child) & NT_FLAG_UST;
		doctor_look_walk(doctor, target, source);
		examine_heaps(doctor, source);
		examine_file(doctor, child, false);
	} else if (trial == TRIAL_UST) {
		examine_ust(doctor, child, source, *has_ust && !doctor->is_wine);
	} else {
		doctor_look_dump(doctor, target, source,
			trial == TRIAL_OS ? STACKS_OS : STACKS_TRACER, trial == TRIAL_TRACER);
	}
}

/* One child from its start to its end. What goes wrong with it is a finding. */
static void try(struct doctor *doctor, enum doctor_trial trial, bool is_other, bool *has_ust)
{
	const char *source = (is_other ? trial_sources_32 : trial_sources)[trial];
	struct doctor_child child = {.is_other = is_other};
	struct target *target = &child.target;
	struct err err = {0};

	if (child_start(&child, trial, &err)) {
		doctor_say(doctor, source, "the child", DOCTOR_OFF, &err);
		child_end(&child);
		return;
	}
	snprintf(doctor->os, sizeof(doctor->os), "%s", target->os);
	doctor->is_wine = target->is_wine;
	if (trial == TRIAL_OS && os_stacks_switch(target->pid, true, &err))
		doctor_say(doctor, source, "the child", DOCTOR_NOT_THERE, &err);
	else
		examine(doctor, &child, trial, source, has_ust);
	child_end(&child);
}

/* Returns true if a 32-bit child can be started; otherwise adds a row with the reason. */
static bool can_be_other(struct doctor *doctor)
{
	static const char source[] = "walk32", what[] = "a 32-bit child";
	wchar_t *image;
	const char *why = NULL;

	if (OUR_BITS == 32) /* its own children are */
		return false;
	image = program_beside(L"" HSNAP_32);
	if (!image)
		why = HSNAP_32 " does not lie beside this hsnap";
	else if (!other_bits_can_run(image))
		why = "this system runs no 32-bit programs";
	if (why)
		doctor_say_why(doctor, source, what, DOCTOR_NOT_THERE, why);
	free(image);
	return !why;
}

static int run_doctor(bool is_verbose)
{
	bool has_ust = false; /* every child is started with +ust: the registry says so */
	struct doctor doctor;
	int status;

	doctor_init(&doctor);
	for (int trial = 0; trial < TRIALS; trial++)
		try(&doctor, (enum doctor_trial)trial, false, &has_ust);
	has_ust = false;
	for (int trial = can_be_other(&doctor) ? 0 : TRIALS; trial < TRIALS; trial++) {
		if (trial != TRIAL_OS)
			try(&doctor, (enum doctor_trial)trial, true, &has_ust);
	}
	doctor_print(&doctor, is_verbose, stdout);
	status = doctor_count(&doctor, NULL, DOCTOR_OFF) ? 1 : 0;
	doctor_release(&doctor);
	return status;
}

enum {
	OPT_VERBOSE = 1,
};

static const struct opt options[] = {
	{OPT_VERBOSE, "v", "verbose", NULL,
		"print a row for each kind of block, not for each heap"},
	HELP_OPTION,
	{0},
};

static const char usage[] =
	"usage: hsnap doctor [-v]\n"
	"\n"
	"Check that hsnap reads this system's heaps correctly: start a program with\n"
	"known blocks, read it in every way there is, and compare.\n"
	"Exit with 1 if anything is off.\n";

static int set_option(void *is_verbose, int id, const char *value, struct err *err)
{
	if (id == OPT_ARGUMENT)
		return err_set(err, ERR_USAGE, value, "doctor takes no arguments");
	*(bool *)is_verbose = true;
	return id < 0 ? id : 0;
}

int command_doctor(int argc, char **argv)
{
	static const struct command_form form = {usage, options, .set = set_option};
	struct err err = {0};
	bool is_verbose = false;
	int rc;

	if (argc > 1 && !strcmp(argv[1], DOCTOR_CHILD))
		return doctor_child_main(argc - 2, argv + 2);
	rc = command_read(&form, argc, argv, &is_verbose, &err);
	if (rc > 0)
		return 0;
	return rc ? command_fail(&err) : run_doctor(is_verbose);
}
