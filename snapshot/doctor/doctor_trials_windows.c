#include "snapshot/doctor/doctor_trials_windows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/capture.h"
#include "snapshot/doctor/doctor_judge.h"
#include "snapshot/doctor/doctor_windows.h"
#include "snapshot/target/nt_process.h"
#include "snapshot/target/peb_layout.h"
#include "snapshot/stacks/os_stacks.h"

#define WALKS_MAX 3 /* while something in the heaps makes no sense */

/* A way of taking a snapshot, and how it is judged. */
struct dump {
	const char *source;
	enum capture_stacks stacks;
	bool must_be; /* that it is not to be had is a mistake */
	int (*judge)(struct doctor *doctor, const struct doctor_found *found);
};

static int note(struct doctor *doctor, const char *line)
{
	return doctor->notes.len && strstr(doctor->notes.data, line) ?
		       0 :
		       buf_add_text(&doctor->notes, line);
}

static const char *front_end_name(uint32_t front_end)
{
	static const char *const names[] = {"none", "look-aside lists", "low fragmentation"};

	return front_end < 3 ? names[front_end] : "unknown";
}

/* Which row of which layout table read each of the child's heaps. */
static int note_layouts(struct doctor *doctor, const struct doctor_found *found)
{
	char line[300];
	int rc = 0;

	for (int i = 0; !rc && i < DOCTOR_HEAPS; i++) {
		const struct heap *heap = doctor_found_heap(found, doctor->truth->heaps[i]);

		if (!doctor->truth->heaps[i] || !heap)
			continue;
		snprintf(line, sizeof(line), "%-14s  kind %s%s%s, front end %s%s\n",
			doctor_heap_name((enum doctor_heap)i), heap->kind ? heap->kind : "unknown",
			heap->layout ? ", layout " : "", heap->layout ? heap->layout : "",
			front_end_name(doctor->truth->front_ends[i]),
			heap->unwalked ? ", not walked" : "");
		rc = note(doctor, line);
	}
	return rc;
}

static int note_held(struct doctor *doctor, const struct target *target)
{
	char line[100];

	snprintf(line, sizeof(line), "%-14s  %s\n", "held",
		target->is_cloned ? "by a clone of its memory" : "by suspending it");
	return note(doctor, line);
}

static int note_warnings(struct doctor *doctor, const char *source, const struct snapshot *snapshot)
{
	char line[700];
	int rc = 0;

	for (size_t i = 0; !rc && i < snapshot->warning_count; i++) {
		snprintf(line, sizeof(line), "%-14s  warning: %.600s\n", source,
			snapshot->warnings[i]);
		rc = note(doctor, line);
	}
	return rc;
}

static int judge(struct doctor *doctor, const struct doctor_found *found)
{
	int rc = doctor_judge(&doctor->report, doctor->truth, found);

	return rc ? rc : note_layouts(doctor, found);
}

static int judge_sums(struct doctor *doctor, const struct doctor_found *found)
{
	return doctor_judge_sums(&doctor->report, doctor->truth, found);
}

static int say(struct doctor *doctor, const char *source, const char *what,
	enum doctor_verdict verdict, const struct err *why)
{
	char text[700];

	return doctor_report_say(
		&doctor->report, source, what, verdict, err_text(why, text, sizeof(text)));
}

static int walk_held(struct memory *memory, struct walk *walk, struct err *err)
{
	struct target *target = memory->target;
	int rc;

	walk_clear(walk);
	memory_clear(memory);
	rc = target->ops->suspend(target, err);
	if (!rc)
		rc = heaps_walk(memory, walk, err);
	target->ops->resume(target);
	return rc;
}

/* The child waits, but a thread of the system's in it may have stood inside a heap. */
static int walk_child(struct memory *memory, struct walk *walk, struct err *err)
{
	unsigned walks = 0;
	int rc;

	do {
		rc = walk_held(memory, walk, err);
	} while (!rc && walk->broken_count && ++walks < WALKS_MAX);
	return rc;
}

/* Where the walkers met with what they could not make sense of. */
static int say_broken(struct doctor *doctor, const char *source, const struct walk *walk)
{
	struct doctor_row row = {.source = source,
		.heap = "",
		.what = "places without sense",
		.found = walk->broken_count,
		.verdict = walk->broken_count ? DOCTOR_OFF : DOCTOR_OK};

	if (walk->broken_count)
		snprintf(row.detail, sizeof(row.detail), "%s at %" PRIX64, walk->broken_what,
			walk->broken_addr);
	return doctor_report_add(&doctor->report, &row);
}

/* Every block that the walkers list, with a stack or without. */
static int examine_walk(struct doctor *doctor, struct target *target, const char *source)
{
	struct doctor_found found = {0};
	struct memory memory;
	struct err err = {0};
	struct walk walk;
	int rc;

	if (memory_init(&memory, target))
		return -ERR_NOMEM;
	walk_init(&walk);
	rc = walk_child(&memory, &walk, &err);
	if (rc) {
		rc = say(doctor, source, "walking the heaps", DOCTOR_OFF, &err);
	} else {
		rc = doctor_found_by_walk(&found, &walk);
		found.source = source;
		rc = rc ? rc : judge(doctor, &found);
		rc = rc ? rc : say_broken(doctor, source, &walk);
		rc = rc ? rc : note_held(doctor, target);
	}
	doctor_found_release(&found);
	walk_release(&walk);
	memory_release(&memory);
	return rc;
}

/* Whether an error says no more than that a source is not to be had here. */
static bool is_not_there(enum err_code code)
{
	return code == ERR_NO_STACKS || code == ERR_NOT_TRACED || code == ERR_PLATFORM;
}

/* What a dump would have, of the stacks that are wanted. */
static int examine_dump(struct doctor *doctor, struct target *target, const struct dump *dump)
{
	struct capture_options want = {.stacks = dump->stacks};
	struct capture_stats stats = {0};
	struct doctor_found found = {0};
	struct snapshot snapshot;
	struct err err = {0};
	int rc;

	snapshot_init(&snapshot);
	if (capture(target, &want, &snapshot, &stats, &err)) {
		rc = say(doctor, dump->source, "dump",
			!dump->must_be && is_not_there(err.code) ? DOCTOR_NOT_THERE : DOCTOR_OFF,
			&err);
	} else {
		rc = doctor_found_by_snapshot(&found, &snapshot);
		found.source = dump->source;
		rc = rc ? rc : dump->judge(doctor, &found);
		if (!rc && dump->stacks != STACKS_AUTO) /* that there are none is no surprise */
			rc = note_warnings(doctor, dump->source, &snapshot);
	}
	doctor_found_release(&found);
	snapshot_release(&snapshot);
	return rc;
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

static int examine_plain(struct doctor *doctor, struct doctor_child *child)
{
	static const struct dump sums = {"sums", STACKS_AUTO, true, judge_sums};
	int rc = examine_walk(doctor, &child->target, "walk");
	bool has_front_end = false;

	doctor->has_ust = global_flag(child) & NT_FLAG_UST;
	for (int i = 0; i < DOCTOR_HEAPS; i++)
		has_front_end = has_front_end || doctor->truth->front_ends[i] == 2;
	if (!rc && !has_front_end)
		rc = say_not_there(doctor, "low fragmentation heap",
			"the system gave no heap of the child one");
	if (!rc && !doctor->truth->heaps[DOCTOR_SEGMENT])
		rc = say_not_there(doctor, "segment heap",
			"the system makes none for a program that asks for one");
	return rc ? rc : examine_dump(doctor, &child->target, &sums);
}

static int examine_ust(struct doctor *doctor, struct doctor_child *child)
{
	const struct dump dump = {"ust", STACKS_UST, doctor->has_ust && !doctor->is_wine, judge};
	char line[100];
	int rc;

	snprintf(line, sizeof(line), "%-14s  %" PRIX32 " in the child with +ust\n", "NtGlobalFlag",
		global_flag(child));
	rc = note(doctor, line);
	rc = rc ? rc : examine_walk(doctor, &child->target, "walk+ust");
	return rc ? rc : examine_dump(doctor, &child->target, &dump);
}

static int switch_os_on(struct doctor_child *child, struct err *err)
{
	return os_stacks_switch(child->target.pid, true, err);
}

static int examine_os(struct doctor *doctor, struct doctor_child *child)
{
	static const struct dump dump = {"os", STACKS_OS, false, judge};

	return examine_dump(doctor, &child->target, &dump);
}

static int examine_tracer(struct doctor *doctor, struct doctor_child *child)
{
	static const struct dump dump = {"tracer", STACKS_TRACER, true, judge};

	return examine_dump(doctor, &child->target, &dump);
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
		return say(doctor, trial->source, "the child", DOCTOR_NOT_THERE, &err);
	if (doctor_child_work(child, doctor->truth, &err))
		return say(doctor, trial->source, "the child", DOCTOR_OFF, &err);
	return trial->examine(doctor, child);
}

/* One child from its start to its end. */
static int try(struct doctor *doctor, const struct trial *trial)
{
	struct doctor_child child;
	struct err err = {0};
	int rc = doctor_child_start(&child, trial->how, &err);

	rc = rc ? say(doctor, trial->source, "the child", DOCTOR_OFF, &err) :
		  examine_child(doctor, trial, &child);
	doctor_child_end(&child);
	return rc;
}

int doctor_examine(struct doctor *doctor)
{
	int rc = 0;

	*doctor = (struct doctor){.truth = malloc(sizeof(*doctor->truth))};
	doctor_report_init(&doctor->report);
	buf_init(&doctor->notes);
	if (!doctor->truth)
		return -ERR_NOMEM;
	for (size_t i = 0; !rc && i < TRIALS; i++)
		rc = try(doctor, &trials[i]);
	return rc;
}

void doctor_release(struct doctor *doctor)
{
	buf_release(&doctor->notes);
	doctor_report_release(&doctor->report);
	free(doctor->truth);
}
