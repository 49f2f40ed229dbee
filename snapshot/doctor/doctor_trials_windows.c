#include "snapshot/doctor/doctor_trials_windows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "snapshot/doctor/doctor_file_windows.h"
#include "snapshot/doctor/doctor_windows.h"
#include "snapshot/live/process.h"
#include "snapshot/stacks/os_stacks.h"
#include "snapshot/target/nt_process.h"
#include "snapshot/target/peb_layout.h"

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
