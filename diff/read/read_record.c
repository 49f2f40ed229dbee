/* Reading a recording into sums: its state at a moment, or the fates of allocations in a window. */
#include "diff/read/read_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/parse.h"
#include "diff/read/read_dump.h"

struct place_in_time {
	uint64_t position, time_ms;
};

/* Moments of a window: its start, the last allocation that counts, and its end. */
struct window_places {
	struct place_in_time from, born, to;
};

const char *block_fate_name(enum block_fate fate)
{
	static const char *const names[] = {
		[FATE_LIVE] = "live",
		[FATE_AIFO] = "aifo",
		[FATE_AIFI] = "aifi",
		[FATE_AOFI] = "aofi",
		[FATE_AOFO] = "aofo",
		[FATE_AI] = "ai",
		[FATE_ALL] = "all",
	};

	return names[fate];
}

/* Counts blocks from before the tracer was attached. These blocks have no stack. */
static int add_before(struct record_reader *reader, struct recording *recording, struct err *err)
{
	const struct record_facts *facts = reader->facts;
	struct block_totals *before = &reader->sums->before;
	struct record_state state;
	int rc;

	reader->sums->is_attached = facts->is_attached;
	if (!facts->is_attached)
		return 0;
	rc = recording_state(recording, facts->start_position, &state, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < state.kind_count; i++) {
		uint64_t bytes;

		if (facts->kinds[i].stack != RECORD_NO_STACK ||
			__builtin_mul_overflow(facts->kinds[i].bytes, state.live[i], &bytes))
			continue;
		before->block_count += state.live[i];
		before->requested_bytes += bytes;
	}
	record_state_release(&state);
	return 0;
}

static void copy_facts(struct record_reader *reader)
{
	const struct record_facts *facts = reader->facts;
	struct dump_sums *sums = reader->sums;

	sums->id.pid = facts->pid;
	sums->id.parent_pid = facts->parent_pid;
	sums->id.start_ms = facts->start_ms;
	sums->id.image = record_reader_text(&sums->arena, facts->image);
	sums->id.os = record_reader_text(&sums->arena, facts->os);
	sums->id.bits = facts->bits;
	sums->id.source = record_reader_text(&sums->arena, facts->source);
	sums->quality.sample_bytes = facts->sample_bytes;
}

/* Adds warnings about losses up to a position. If a recording was not ended, only its last events
 * are missing. Sums of an earlier moment are therefore complete. */
static void add_losses(struct record_reader *reader, uint64_t to)
{
	const struct record_facts *facts = reader->facts;
	char text[200];

	for (size_t i = 0; i < facts->remark_count; i++)
		sums_warn(reader->sums, facts->remarks[i]);
	if (facts->lost_count) {
		snprintf(text, sizeof(text),
			"%" PRIu64 " event%s lost during the recording: each number may be "
			"wrong by up to that many blocks",
			facts->lost_count, facts->lost_count == 1 ? " was" : "s were");
		sums_warn(reader->sums, text);
		reader->sums->quality.is_incomplete = true;
	}
	if (facts->is_cut) {
		snprintf(text, sizeof(text),
			"the recording was not ended: it is complete up to %" PRIu64
			".%03u s; later events are missing",
			facts->length_ms / 1000, (unsigned)(facts->length_ms % 1000));
		sums_warn(reader->sums, text);
		reader->sums->quality.is_incomplete |= to == facts->event_count;
	}
}

/* Finds the position of a moment. `option` is the option that specified the moment, or NULL if the
 * moment is part of the path. */
static int find_moment(const struct record_reader *reader, struct recording *recording,
	const char *option, const char *moment, struct place_in_time *place, struct err *err)
{
	int rc = recording_position(recording, moment, &place->position, &place->time_ms, err);

	if (rc == -ERR_MOMENT)
		snprintf(err->place, sizeof(err->place), "%s%s%s",
			option ? option : reader->sums->id.path, option ? " " : "",
			option ? moment : "");
	return rc;
}

/* Finds the moment by which blocks must be allocated to be old enough at the window's end. */
static int find_older(const struct record_reader *reader, struct recording *recording,
	const struct recording_part *part, struct window_places *places, struct err *err)
{
	char moment[30], end[DURATION_TEXT_BYTES];

	if ((uint64_t)part->older_ms > places->to.time_ms)
		return err_set(err, ERR_USAGE, "--older-than",
			"no block can be that old: the window ends after %s",
			duration_text((int64_t)places->to.time_ms, end));
	snprintf(moment, sizeof(moment), "%" PRIu64 "ms",
		places->to.time_ms - (uint64_t)part->older_ms);
	return find_moment(reader, recording, "--older-than", moment, &places->from, err);
}

/* Finds the moments of a window. For FATE_LIVE, finds only a moment, and stores it in `to`. */
static int find_part(const struct record_reader *reader, struct recording *recording,
	const struct recording_part *part, struct window_places *places, struct err *err)
{
	const char *to = part->to ? part->to : part->still_at ? part->still_at : "end";
	int rc;

	if (part->fate == FATE_LIVE)
		to = part->moment ? part->moment : "end";
	rc = find_moment(reader, recording,
		part->fate == FATE_LIVE ? NULL :
		part->to		? "--to" :
					  "--still-at",
		to, &places->to, err);
	places->born = places->to;
	if (rc || part->fate == FATE_LIVE)
		return rc;
	if (part->still_at)
		rc = find_moment(reader, recording, "--still-at", part->still_at, &places->to, err);
	if (!rc && part->older_ms)
		rc = find_older(reader, recording, part, places, err);
	else if (!rc)
		rc = find_moment(reader, recording, "--from", part->from ? part->from : "start",
			&places->from, err);
	if (rc)
		return rc;
	if (places->from.position > places->born.position)
		return err_set(err, ERR_USAGE, reader->sums->id.path, "--from is after --to");
	return places->born.position > places->to.position ?
		       err_set(err, ERR_USAGE, reader->sums->id.path, "--to is after --still-at") :
		       0;
}

static int read_part(struct record_reader *reader, struct recording *recording,
	const struct recording_part *part, struct err *err)
{
	struct dump_sums *sums = reader->sums;
	struct window_places places = {0};
	int rc = find_part(reader, recording, part, &places, err);

	if (!rc)
		rc = add_before(reader, recording, err);
	if (rc)
		return rc;
	record_reader_place(reader, places.to.time_ms);
	copy_facts(reader);
	add_losses(reader, places.to.position);
	if (reader->facts->time_ms)
		sums->id.time_ms = reader->facts->time_ms + (int64_t)places.to.time_ms;
	sums->single.sizes = part->sizes;
	sums->window = (struct recording_window){.fate = part->fate,
		.from_position = places.from.position,
		.from_ms = places.from.time_ms,
		.born_position = places.born.position,
		.born_ms = places.born.time_ms,
		.to_ms = places.to.time_ms,
		.position = places.to.position + 1,
		.module_bases = sums->window.module_bases};
	if (part->by_thread)
		return record_reader_threads(reader, recording, part, err);
	if (part->fate != FATE_LIVE)
		return record_reader_fates(reader, recording, err);
	rc = record_reader_live(reader, recording, places.to.position, err);
	if (!rc && part->wants_blocks && reader->facts->has_addresses &&
		!reader->facts->sample_bytes)
		rc = record_reader_blocks(reader, recording, places.to.position, err);
	return rc;
}

int sums_read_recording(struct dump_sums *sums, const char *path, const char *file,
	const struct recording_part *part, struct err *err)
{
	struct record_reader reader = {.sums = sums};
	struct recording *recording;
	int rc = recording_open(&recording, file, err);

	if (rc)
		return rc;
	sums->id.path = arena_text(&sums->arena, path, strlen(path));
	sums->id.file = arena_text(&sums->arena, file, strlen(file));
	reader.facts = recording_facts(recording);
	reader.stacks = xmalloc((reader.facts->stack_count + 1) * sizeof(*reader.stacks));
	memset(reader.stacks, 0xff, reader.facts->stack_count * sizeof(*reader.stacks));
	u64map_init(&reader.heaps);
	u64map_init(&reader.cells);
	rc = read_part(&reader, recording, part, err);
	if (!rc)
		record_reader_copy_modules(&reader);
	u64map_release(&reader.heaps);
	u64map_release(&reader.cells);
	free(reader.places);
	free(reader.wanted_threads);
	free(reader.stacks);
	recording_close(recording);
	return rc;
}
