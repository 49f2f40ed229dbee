#include "snapshot/doctor/doctor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WALKS_MAX 3 /* while something in the heaps makes no sense */

int doctor_init(struct doctor *doctor)
{
	*doctor = (struct doctor){.truth = malloc(sizeof(*doctor->truth))};
	doctor_report_init(&doctor->report);
	buf_init(&doctor->notes);
	return doctor->truth ? 0 : -ERR_NOMEM;
}

void doctor_forget(struct doctor *doctor)
{
	doctor_found_release(&doctor->before);
	doctor_found_release(&doctor->walked);
}

void doctor_release(struct doctor *doctor)
{
	doctor_forget(doctor);
	buf_release(&doctor->notes);
	doctor_report_release(&doctor->report);
	free(doctor->truth);
}

int doctor_note(struct doctor *doctor, const char *line)
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
		rc = doctor_note(doctor, line);
	}
	return rc;
}

static int note_held(struct doctor *doctor, const struct target *target)
{
	char line[100];

	snprintf(line, sizeof(line), "%-14s  %s\n", "held",
		target->is_cloned ? "by a clone of its memory" : "by suspending it");
	return doctor_note(doctor, line);
}

static int note_warnings(struct doctor *doctor, const char *source, const struct snapshot *snapshot)
{
	char line[700];
	int rc = 0;

	for (size_t i = 0; !rc && i < snapshot->warning_count; i++) {
		snprintf(line, sizeof(line), "%-14s  warning: %.600s\n", source,
			snapshot->warnings[i]);
		rc = doctor_note(doctor, line);
	}
	return rc;
}

int doctor_say(struct doctor *doctor, const char *source, const char *what,
	enum doctor_verdict verdict, const struct err *why)
{
	char text[700];

	return doctor_report_say(&doctor->report, source, what, verdict,
		verdict == DOCTOR_OFF ? err_text(why, text, sizeof(text)) :
					err_reason(why, text, sizeof(text)));
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
	} while (!rc && !walk_is_sound(walk) && ++walks < WALKS_MAX);
	return rc;
}

/* Whose heap it is, for a place in it. */
static const char *owner_of(const struct doctor_truth *truth, uint64_t heap)
{
	for (int i = 0; i < DOCTOR_HEAPS; i++) {
		if (truth->heaps[i] == heap)
			return doctor_heap_name((enum doctor_heap)i);
	}
	return "not the child's own";
}

/* Where the walkers met with what they could not make sense of. */
static int say_broken(struct doctor *doctor, const char *source, const struct walk *walk)
{
	struct doctor_row row = {.source = source,
		.heap = "",
		.what = "places without sense",
		.part = "places without sense",
		.found = (uint64_t)walk->broken_count + walk->missing_count,
		.verdict = walk_is_sound(walk) ? DOCTOR_OK : DOCTOR_OFF};
	char place[80] = "";

	if (walk->broken_heap)
		snprintf(place, sizeof(place), ", in heap %" PRIX64 " (%s)", walk->broken_heap,
			owner_of(doctor->truth, walk->broken_heap));
	if (walk->broken_count)
		snprintf(row.detail, sizeof(row.detail), "%s at %" PRIX64 "%s", walk->broken_what,
			walk->broken_addr, place);
	else if (walk->missing_count)
		snprintf(row.detail, sizeof(row.detail), "%s at %" PRIX64, walk->missing_what,
			walk->missing_addr);
	return doctor_report_add(&doctor->report, &row);
}

/* Puts found where it stays when the walk it was made of does not. */
static void keep(struct doctor_found *kept, struct doctor_found *found)
{
	doctor_found_release(kept);
	*kept = *found;
	kept->heaps = NULL;
	kept->heap_count = 0;
	*found = (struct doctor_found){0};
}

int doctor_look_before(struct doctor *doctor, struct target *target)
{
	struct doctor_found found = {0};
	struct memory memory;
	struct err err = {0};
	struct walk walk;
	int rc = 0;

	if (memory_init(&memory, target))
		return -ERR_NOMEM;
	walk_init(&walk);
	/* What is wrong with the heaps is found when they are walked for their blocks. */
	if (!walk_child(&memory, &walk, &err))
		rc = doctor_found_by_walk(&found, &walk);
	keep(&doctor->before, &found);
	walk_release(&walk);
	memory_release(&memory);
	return rc;
}

static int judge_walk(struct doctor *doctor, const struct target *target, const char *source,
	const struct walk *walk)
{
	struct doctor_found found = {0};
	int rc = doctor_found_by_walk(&found, walk);

	found.source = source;
	rc = rc ? rc : doctor_judge(&doctor->report, doctor->truth, &found, &doctor->before);
	rc = rc ? rc : note_layouts(doctor, &found);
	rc = rc ? rc : say_broken(doctor, source, walk);
	if (!rc && !target->is_file)
		rc = note_held(doctor, target);
	keep(&doctor->walked, &found);
	return rc;
}

int doctor_look_walk(struct doctor *doctor, struct target *target, const char *source)
{
	struct memory memory;
	struct err err = {0};
	struct walk walk;
	int rc;

	if (memory_init(&memory, target))
		return -ERR_NOMEM;
	walk_init(&walk);
	if (walk_child(&memory, &walk, &err))
		rc = doctor_say(doctor, source, "walking the heaps", DOCTOR_OFF, &err);
	else
		rc = judge_walk(doctor, target, source, &walk);
	walk_release(&walk);
	memory_release(&memory);
	return rc;
}

/* Whether an error says no more than that a source is not to be had here. */
static bool is_not_there(enum err_code code)
{
	return code == ERR_NO_STACKS || code == ERR_NOT_TRACED || code == ERR_PLATFORM;
}

static int judge_dump(
	struct doctor *doctor, const struct doctor_dump *dump, const struct snapshot *snapshot)
{
	struct doctor_found found = {0};
	int rc = doctor_found_by_snapshot(&found, snapshot);

	found.source = dump->source;
	if (!rc && dump->is_sums) {
		rc = doctor_judge_sums(&doctor->report, doctor->truth, &found, &doctor->walked);
	} else if (!rc) {
		rc = doctor_judge(&doctor->report, doctor->truth, &found, &doctor->before);
		rc = rc ? rc : note_layouts(doctor, &found);
	}
	if (!rc && dump->stacks != STACKS_AUTO) /* that there are none is no surprise */
		rc = note_warnings(doctor, dump->source, snapshot);
	doctor_found_release(&found);
	return rc;
}

int doctor_look_dump(struct doctor *doctor, struct target *target, const struct doctor_dump *dump)
{
	struct capture_options want = {.stacks = dump->stacks};
	struct capture_stats stats = {0};
	struct snapshot snapshot;
	struct err err = {0};
	int rc;

	snapshot_init(&snapshot);
	if (capture(target, &want, &snapshot, &stats, &err))
		rc = doctor_say(doctor, dump->source, "dump",
			!dump->must_be && is_not_there(err.code) ? DOCTOR_NOT_THERE : DOCTOR_OFF,
			&err);
	else
		rc = judge_dump(doctor, dump, &snapshot);
	snapshot_release(&snapshot);
	return rc;
}
