/* The command hsnap doctor. It starts a child in each possible way, reads the child from all
 * sources, and compares the results with the child's truth. With --keep, it also stores minidumps
 * of the children. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>
#include <dbghelp.h>

#include "core/base/opt.h"
#include "core/base/os_windows.h"
#include "snapshot/command/command.h"
#include "snapshot/control/control_windows.h"
#include "snapshot/doctor/doctor_windows.h"
#include "snapshot/live/process.h"
#include "snapshot/target/nt_process.h"
#include "snapshot/target/peb_layout.h"

#define FILE_UNITS (MAX_PATH + 60) /* maximum length of the minidump's path */

static const char *const trial_sources[TRIALS] = {"walk", "ust", "tracer", "segment"};
static const char *const trial_sources_32[TRIALS] = {"walk32", "ust32", "tracer32", "segment32"};
/* Names for --keep; NULL: this trial is not stored. */
static const char *const trial_states[TRIALS] = {
	[TRIAL_PLAIN] = "plain", [TRIAL_UST] = "ust", [TRIAL_SEGMENT] = "ust-segment"};

/*
 * Creates a file in the folder for temporary files. Other programs may read the file. It is deleted
 * when its handle is closed, however hsnap ends. Returns INVALID_HANDLE_VALUE on failure; the
 * reason is the system's last error. */
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
		return doctor_fail(ERR_SYSTEM, "dbghelp.dll", err);
	return 0;
}

/* Uses of a child's minidump. */
struct doctor_dump {
	const char *source; /* source name for the report's rows; NULL: not compared */
	bool has_stacks;
	const char *state; /* name for --keep; NULL: not stored */
};

/* With --keep, records why a child is not stored. */
static void record_reason(
	struct doctor *doctor, const struct doctor_child *child, const char *state, const char *why)
{
	if (doctor->keep && state)
		doctor_keep_reason(doctor->keep, state, child->is_other ? 32 : OUR_BITS, why);
}

static void record_error(struct doctor *doctor, const struct doctor_child *child, const char *state,
	const struct err *err)
{
	char text[700];

	err_reason(err, text, sizeof(text));
	record_reason(doctor, child, state, text);
}

static void compare_file(struct doctor *doctor, const struct doctor_dump *use, const char *path)
{
	struct target target = {0};
	struct err err = {0};

	if (target_open_minidump(&target, path, &err)) {
		doctor_add_error(doctor, use->source, "the minidump", DOCTOR_OFF, &err);
		return;
	}
	if (use->has_stacks)
		doctor_look_dump(doctor, &target, use->source, STACKS_UST, true);
	else
		doctor_look_walk(doctor, &target, use->source);
	target.ops->close(&target);
}

/* Writes a minidump of the child, reads it like hsnap -z, compares the result, and stores the
 * minidump. */
static void examine_file(
	struct doctor *doctor, struct doctor_child *child, const struct doctor_dump *use)
{
	const char *name = use->source ? use->source : use->state;
	wchar_t wide[FILE_UNITS];
	HANDLE file = make_file(wide, name);
	char *path = file != INVALID_HANDLE_VALUE ? wide_to_utf8(wide) : NULL;
	struct err err = {0};

	if ((!path && doctor_fail(ERR_CREATE, "a temporary file", &err)) ||
		write_minidump(child, file, &err)) {
		doctor_add_error(doctor, name, "a minidump", DOCTOR_NOT_THERE, &err);
		record_error(doctor, child, use->state, &err);
	} else {
		if (use->source)
			compare_file(doctor, use, path);
		if (doctor->keep && use->state)
			doctor_keep_child(doctor, use->state, &child->target,
				child->spawn.info.hProcess, file);
	}
	if (file != INVALID_HANDLE_VALUE)
		CloseHandle(file);
	free(path);
}

/* Adds a row for each kind of heap and front end that the system did not provide. */
static void examine_heaps(struct doctor *doctor, const char *source)
{
	bool has_front_end = false;

	for (int i = 0; i < DOCTOR_HEAPS; i++) {
		has_front_end = has_front_end || doctor->truth->front_ends[i] == 2;
		if (!doctor->truth->heaps[i])
			doctor_add_reason(doctor, source, doctor_heap_names[i], DOCTOR_NOT_THERE,
				"the system creates none for a program that requests one");
	}
	if (!has_front_end)
		doctor_add_reason(doctor, source, "low fragmentation heap", DOCTOR_NOT_THERE,
			"no heap of the child has one");
}

/* Examines a child with +ust. Stores the child even if Windows seems to record no stacks, because
 * hsnap may have failed to find them. */
static void examine_ust(
	struct doctor *doctor, struct doctor_child *child, const char *source, bool must_be)
{
	struct doctor_dump use = {.has_stacks = true, .state = trial_states[TRIAL_UST]};

	doctor_note(doctor, "NtGlobalFlag", "%" PRIX32 " in the child with +ust",
		doctor_child_flag(child));
	if (!child->is_other)
		doctor_look_walk(doctor, &child->target, "walk+ust");
	doctor_look_dump(doctor, &child->target, source, STACKS_UST, must_be);
	if (doctor->is_wine) {
		record_reason(doctor, child, use.state, "Wine records no stacks");
		return;
	}
	/* If no stacks were found in the live child, its minidump lacks them too. */
	if (!child->is_other && doctor_count(doctor, source, DOCTOR_OK))
		use.source = "file+ust";
	if (use.source || doctor->keep)
		examine_file(doctor, child, &use);
}

static bool has_segment_heap(struct doctor_child *child, const struct doctor_truth *truth)
{
	uint32_t signature = 0;

	return !target_u32(&child->target,
		       truth->heaps[DOCTOR_PROCESS_HEAP] + NT_HEAP_SIGNATURE_AT(child->target.bits),
		       &signature) &&
	       signature == SEGMENT_HEAP_SIGNATURE;
}

/* Examines a child whose manifest requests segment heaps. Windows supports this since Windows 10
 * 2004. */
static void examine_segment(struct doctor *doctor, struct doctor_child *child, const char *source)
{
	static const char why[] =
		"the system creates none for a program whose manifest requests them";
	const struct doctor_dump use = {.state = trial_states[TRIAL_SEGMENT]};

	if (!has_segment_heap(child, doctor->truth)) {
		doctor_add_reason(doctor, source, "segment heaps", DOCTOR_NOT_THERE, why);
		record_reason(
			doctor, child, use.state, "the manifest did not enable segment heaps");
		return;
	}
	doctor_look_walk(doctor, &child->target, source);
	doctor_look_dump(doctor, &child->target, child->is_other ? "seg+ust32" : "seg+ust",
		STACKS_UST, false);
	examine_file(doctor, child, &use);
}

static void examine_plain(
	struct doctor *doctor, struct doctor_child *child, const char *source, bool has_ust)
{
	const struct doctor_dump use = {.source = child->is_other ? "file32" : "file",
		.state = has_ust ? NULL : trial_states[TRIAL_PLAIN]};

	if (has_ust)
		record_reason(doctor, child, trial_states[TRIAL_PLAIN],
			"the registry has +ust for this program");
	doctor_look_walk(doctor, &child->target, source);
	examine_heaps(doctor, source);
	examine_file(doctor, child, &use);
}

/* Lets a child that is ready do its work, then examines it. */
static void examine(struct doctor *doctor, struct doctor_child *child, enum doctor_trial trial,
	const char *source, bool *has_ust)
{
	struct err err = {0};

	if (doctor_child_work(child, doctor->truth, &err)) {
		doctor_add_error(doctor, source, "the child", DOCTOR_OFF, &err);
		record_error(doctor, child, trial_states[trial], &err);
		return;
	}
	switch (trial) {
	case TRIAL_PLAIN:
		*has_ust = doctor_child_flag(child) & NT_FLAG_UST;
		examine_plain(doctor, child, source, *has_ust);
		break;
	case TRIAL_UST: examine_ust(doctor, child, source, *has_ust && !doctor->is_wine); break;
	case TRIAL_SEGMENT: examine_segment(doctor, child, source); break;
	default: doctor_look_dump(doctor, &child->target, source, STACKS_TRACER, true);
	}
}

/* Starts, examines and ends one child. Any failure is a finding. */
static void try(struct doctor *doctor, enum doctor_trial trial, bool is_other, bool *has_ust)
{
	const char *source = (is_other ? trial_sources_32 : trial_sources)[trial];
	struct doctor_child child = {.is_other = is_other};
	struct target *target = &child.target;
	struct err err = {0};

	if ((trial == TRIAL_SEGMENT && doctor_child_copy(&child, doctor->keep->folder, &err)) ||
		doctor_child_start(&child, trial, &err)) {
		doctor_add_error(doctor, source, "the child",
			trial == TRIAL_SEGMENT ? DOCTOR_NOT_THERE : DOCTOR_OFF, &err);
		record_error(doctor, &child, trial_states[trial], &err);
		doctor_child_end(&child);
		return;
	}
	snprintf(doctor->os, sizeof(doctor->os), "%s", target->os);
	doctor->is_wine = target->is_wine;
	examine(doctor, &child, trial, source, has_ust);
	doctor_child_end(&child);
}

static bool can_be_other(struct doctor *doctor)
{
	static const char source[] = "walk32", what[] = "a 32-bit child";
	wchar_t *image;
	const char *why = NULL;

	if (OUR_BITS == 32) /* a 32-bit hsnap has only 32-bit children */
		return false;
	image = program_beside(L"" HSNAP_32);
	if (!image)
		why = HSNAP_32 NOT_BESIDE;
	else if (!other_bits_can_run(image))
		why = "this system runs no 32-bit programs";
	if (why)
		doctor_add_reason(doctor, source, what, DOCTOR_NOT_THERE, why);
	free(image);
	return !why;
}

struct doctor_request {
	bool is_verbose;
	const char *folder; /* folder of --keep, or NULL */
};

static void try_all(struct doctor *doctor, bool is_other)
{
	bool has_ust = false; /* according to the registry, every child starts with +ust */

	for (int trial = 0; trial < TRIALS; trial++) {
		if (trial != TRIAL_SEGMENT || doctor->keep)
			try(doctor, (enum doctor_trial)trial, is_other, &has_ust);
	}
}

static int run_doctor(const struct doctor_request *request)
{
	struct doctor_keep keep = {.folder = request->folder};
	struct err err = {0};
	struct doctor doctor;
	int status;

	if (request->folder && doctor_keep_begin(&keep, &err))
		return command_fail(&err);
	doctor_init(&doctor);
	doctor.keep = request->folder ? &keep : NULL;
	try_all(&doctor, false);
	if (can_be_other(&doctor))
		try_all(&doctor, true);
	doctor_print(&doctor, request->is_verbose, stdout);
	status = doctor_count(&doctor, NULL, DOCTOR_OFF) ? 1 : 0;
	if (doctor.keep && doctor_keep_end(&keep, &err))
		status = command_fail(&err);
	doctor_release(&doctor);
	return status;
}

enum {
	OPT_VERBOSE = 1,
	OPT_KEEP,
};

static const struct opt options[] = {
	{OPT_VERBOSE, "v", "verbose", NULL,
		"print a row for each kind of block, not for each heap"},
	{OPT_KEEP, NULL, "keep", "FOLDER",
		"create FOLDER, with minidumps of the programs and their known blocks"},
	HELP_OPTION,
	{0},
};

static const char usage[] =
	"usage: hsnap doctor [-v] [--keep FOLDER]\n"
	"\n"
	"Check that hsnap reads this system's heaps correctly: start a program with\n"
	"known blocks, read it in every available way, and compare.\n"
	"Exit with 1 if anything is off.\n";

static int set_option(void *ctx, int id, const char *value, struct err *err)
{
	struct doctor_request *request = ctx;

	if (id == OPT_ARGUMENT)
		return err_set(err, ERR_USAGE, value, "doctor takes no arguments");
	if (id == OPT_KEEP)
		request->folder = value;
	else if (id == OPT_VERBOSE)
		request->is_verbose = true;
	return id < 0 ? id : 0;
}

int command_doctor(int argc, char **argv)
{
	static const struct command_form form = {usage, options, .set = set_option};
	struct doctor_request request = {0};
	struct err err = {0};
	int rc;

	if (argc > 1 && !strcmp(argv[1], DOCTOR_CHILD))
		return doctor_child_main(argc - 2, argv + 2);
	rc = command_read(&form, argc, argv, &request, &err);
	if (rc > 0)
		return 0;
	return rc ? command_fail(&err) : run_doctor(&request);
}
