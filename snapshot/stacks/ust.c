/* Records of the user-mode stack trace database: reads the records, and chooses the number of
 * frames of each from two candidates (see ust.h). */
#include "snapshot/stacks/ust.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "snapshot/stacks/code_ranges.h"
#include "snapshot/stacks/ust_layout.h"
#include "snapshot/target/nt_process.h"

/* evidence is clear if one slot fits better in at least CLEAR_MIN records, and in at least
 * CLEAR_TIMES times as many records as the other slot */
#define CLEAR_MIN 8
#define CLEAR_TIMES 4
#define ADDRESS_MIN 0x10000u /* Windows never maps memory below this address */

static bool are_addresses(const uint64_t *frames, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (frames[i] < ADDRESS_MIN || frames[i] >= TARGET_SPACE_BYTES)
			return false;
	}
	return true;
}

static enum ust_fit fit_of(uint32_t said, struct code_ranges *code, const uint64_t *frames,
	uint32_t count, uint32_t in_code)
{
	if (!said || said > count)
		return UST_FIT_NONE;
	if (said <= in_code)
		return said < in_code ? UST_FIT_INSIDE : UST_FIT_EXACT;
	if (!code_ranges_have_return(code, frames[said - 1]) ||
		(said < count && code_ranges_have_return(code, frames[said])))
		return UST_FIT_NONE;
	return are_addresses(frames, said) ? UST_FIT_WHOLE : UST_FIT_NONE;
}

/* Fills *depth: compares the two numbers and the room of a record with the first `count`
 * slots of its frames (at most UST_DEPTH_MAX). */
static void ust_depth_read(struct ust_depth *depth, const uint16_t said[UST_SLOTS], unsigned room,
	struct code_ranges *code, const uint64_t *frames, uint32_t count)
{
	uint32_t in_code = 0;

	while (in_code < count && code_ranges_have_return(code, frames[in_code]))
		in_code++;
	*depth = (struct ust_depth){
		.room = (uint8_t)room, .in_code = (uint8_t)in_code, .count = (uint8_t)count};
	for (int i = 0; i < UST_SLOTS; i++) {
		depth->said[i] = said[i] <= UST_DEPTH_MAX ? (uint8_t)said[i] : 0;
		depth->fit[i] = (uint8_t)fit_of(depth->said[i], code, frames, count, in_code);
	}
}

/* Returns the largest number of frames that can be chosen for a record. */
static uint32_t ust_depth_most(const struct ust_depth *depth)
{
	uint32_t most = depth->in_code;

	for (int i = 0; i < UST_SLOTS; i++) {
		if (depth->said[i] > most && depth->said[i] <= depth->count)
			most = depth->said[i];
	}
	return most;
}

static void ust_votes_add(struct ust_votes *votes, const struct ust_depth *depth)
{
	uint8_t by_depth = depth->fit[UST_SLOT_DEPTH], by_index = depth->fit[UST_SLOT_INDEX];

	if (depth->room && depth->room < depth->in_code)
		votes->no_room++;
	else if (depth->room && depth->in_code)
		votes->room++;
	if (by_depth > by_index)
		votes->fits[UST_SLOT_DEPTH] += by_depth >= UST_FIT_EXACT;
	else if (by_index > by_depth)
		votes->fits[UST_SLOT_INDEX] += by_index >= UST_FIT_EXACT;
}

static bool is_clear(size_t yes, size_t no)
{
	return yes >= CLEAR_MIN && yes / CLEAR_TIMES >= no;
}

/* Derives the habit of a process. `guess` is the slot to use if there are too few records to
 * decide. */
static struct ust_habit ust_votes_habit(const struct ust_votes *votes, enum ust_slot guess)
{
	size_t depth = votes->fits[UST_SLOT_DEPTH], index = votes->fits[UST_SLOT_INDEX];
	struct ust_habit habit = {.slot = guess};

	if (depth != index)
		habit.slot = depth > index ? UST_SLOT_DEPTH : UST_SLOT_INDEX;
	habit.is_clear = depth > index ? is_clear(depth, index) : is_clear(index, depth);
	habit.has_room = is_clear(votes->room, votes->no_room);
	return habit;
}

/* Returns true if the number in the usual slot may be right although it does not fit the frames.
 * The process has a clear habit. All these frames must be addresses, and at least one must be in
 * code. The others may be in unloaded modules. */
static bool is_likely(const struct ust_depth *depth, struct code_ranges *code,
	const uint64_t *frames, uint32_t said)
{
	bool has_code = depth->in_code > 0;

	if (!said || said > depth->count || !are_addresses(frames, said))
		return false;
	for (uint32_t i = 0; i < said && !has_code; i++)
		has_code = code_ranges_have_return(code, frames[i]);
	return has_code;
}

/* Returns the number of leading frames that point into code and fit in the room. Sets `*is_cut` if
 * the record claims more frames than that. */
static uint32_t last_resort(
	const struct ust_depth *depth, const struct ust_habit *habit, uint32_t said, bool *is_cut)
{
	uint32_t room = habit->has_room ? depth->room : 0;
	uint32_t count = room && room < depth->in_code ? room : depth->in_code;

	*is_cut = count && said > count;
	return count;
}

/* Chooses between two numbers that fit equally well: the number in the usual slot, unless only the
 * other number is within the room. */
static uint32_t choose_equal(const struct ust_depth *depth, const struct ust_habit *habit)
{
	enum ust_slot other = habit->slot == UST_SLOT_DEPTH ? UST_SLOT_INDEX : UST_SLOT_DEPTH;
	bool has_limit = habit->has_room && depth->room;

	if (has_limit && depth->said[habit->slot] > depth->room &&
		depth->said[other] <= depth->room)
		return depth->said[other];
	return depth->said[habit->slot];
}

/* Chooses the number of frames, at most ust_depth_most(). If the record's number is too large,
 * because the slots after the frames contain no frames, chooses the number of frames and sets
 * `*is_cut`. */
static uint32_t ust_depth_choose(const struct ust_depth *depth, const struct ust_habit *habit,
	struct code_ranges *code, const uint64_t *frames, bool *is_cut)
{
	const uint8_t *said = depth->said, *fit = depth->fit;

	*is_cut = false;
	if (habit->is_clear) {
		uint32_t usual = said[habit->slot];

		if (fit[habit->slot] || is_likely(depth, code, frames, usual))
			return usual;
		return last_resort(depth, habit, usual, is_cut);
	}
	if (fit[UST_SLOT_DEPTH] != fit[UST_SLOT_INDEX])
		return fit[UST_SLOT_DEPTH] > fit[UST_SLOT_INDEX] ? said[UST_SLOT_DEPTH] :
								   said[UST_SLOT_INDEX];
	if (fit[UST_SLOT_DEPTH])
		return choose_equal(depth, habit);
	return last_resort(depth, habit,
		said[UST_SLOT_DEPTH] > said[UST_SLOT_INDEX] ? said[UST_SLOT_DEPTH] :
							      said[UST_SLOT_INDEX],
		is_cut);
}

#define AHEAD_RECORDS 8 /* memory is prefetched this many records ahead */
#define AHEAD_BYTES 256 /* bytes to prefetch per record */
#define RECORD_HEAD_MAX 64 /* bytes of a record up to its first frame */

/* Kinds of records. An ambiguous record follows the majority of its kind. */
enum ust_record_kind {
	ENTRY_32, /* entry of the database */
	ENTRY_64,
	TRACE_32, /* trace of page heap */
	TRACE_64,
	RECORD_KINDS,
};

struct ust_entry {
	uint64_t addr, first_slot;
	size_t frames_at; /* index into ust.frames */
	struct ust_depth depth;
	uint8_t kind; /* enum ust_record_kind */
	uint8_t frame_count;
};

struct ust {
	struct ust_entry *records; /* in the order of the walk's records */
	size_t record_cap;
	uint64_t *frames;
	size_t frame_count, frame_cap;
	/* Maximum number of frames that may still be added. At first, it is the number of frames
	 * that fit in the target's memory if no two records share frames. */
	uint64_t frames_left;
	struct code_ranges code;
	const struct module *modules; /* owned by the caller; valid during ust_read() */
	size_t module_count;
	struct ust_facts facts;
};

struct ust *ust_new(void)
{
	struct ust *ust = xcalloc(1, sizeof(*ust));

	code_ranges_init(&ust->code);
	return ust;
}

static void clear(struct ust *ust)
{
	ust->frame_count = 0;
	ust->facts = (struct ust_facts){0};
}

void ust_free(struct ust *ust)
{
	if (!ust)
		return;
	clear(ust);
	code_ranges_release(&ust->code);
	free(ust->records);
	free(ust->frames);
	free(ust);
}

static unsigned bits_of(const struct ust_entry *record)
{
	return record->kind % 2 ? 64 : 32;
}

/* Returns true if `addr` is a possible address of a record or of a list of frames. Both contain
 * pointers, so they must be aligned. */
static bool can_be_there(uint64_t addr, unsigned bits)
{
	uint64_t space = bits == 64 ? TARGET_SPACE_BYTES : UINT64_C(1) << 32;

	return addr % (bits / 8u) == 0 && addr < space;
}

/* Reads the slots of frames up to the first missing slot. Returns the number of slots read. */
static uint32_t read_slots(const struct ust *ust, struct memory *memory, uint64_t slot,
	unsigned bits, uint64_t frames[UST_DEPTH_MAX])
{
	size_t size = bits / 8;
	const unsigned char *all = memory_at(memory, slot, UST_DEPTH_MAX * size);
	uint32_t count = 0;

	for (; count < UST_DEPTH_MAX && count < ust->frames_left; count++) {
		/* Slots at the end of a memory region may be missing. */
		const unsigned char *bytes =
			all ? all + count * size : memory_at(memory, slot + count * size, size);

		if (!bytes)
			break;
		frames[count] = bytes_ptr(bytes, bits);
	}
	return count;
}

static int copy_frames(struct ust *ust, const uint64_t *frames, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (array_try_grow((void **)&ust->frames, &ust->frame_cap, ust->frame_count,
			    sizeof(*ust->frames)))
			return -ERR_NOMEM;
		ust->frames[ust->frame_count++] = frames[i];
	}
	ust->frames_left -= count;
	return 0;
}

/* Reads the slots and compares them with the numbers in the record's head. Returns the number of
 * frames to store. */
static uint32_t read_frames(struct ust *ust, struct memory *memory, struct ust_entry *record,
	const uint16_t said[UST_SLOTS], unsigned room, uint64_t frames[UST_DEPTH_MAX])
{
	uint32_t slots = read_slots(ust, memory, record->first_slot, bits_of(record), frames);

	ust_depth_read(&record->depth, said, room, &ust->code, frames, slots);
	return ust_depth_most(&record->depth);
}

/* Returns the value at `bytes`, or 0 if the value is too large for a number of frames. */
static uint16_t number(const unsigned char *bytes)
{
	uint32_t value = bytes_u32(bytes);

	return value <= UST_DEPTH_MAX ? (uint16_t)value : 0;
}

/*
 * Tries to read a record as a trace of page heap, which may store its stacks in such traces. Unlike
 * entries of the database, traces contain a pointer to their frames. It is not known which of the
 * two numbers in a trace is the number of frames. Returns the number of frames to store, or 0 if
 * the record is not a trace.
 */
static uint32_t read_trace(struct ust *ust, struct memory *memory, struct ust_entry *record,
	uint64_t frames[UST_DEPTH_MAX])
{
	unsigned bits = bits_of(record);
	const struct ust_layout *layout = ust_layout(bits);
	struct ust_entry trace = *record;
	unsigned char head[RECORD_HEAD_MAX];
	uint16_t said[UST_SLOTS];
	uint32_t most;

	if (memory_copy(memory, record->addr, head, layout->trace_bytes))
		return 0;
	said[UST_SLOT_DEPTH] = number(head + layout->trace_number);
	said[UST_SLOT_INDEX] = number(head + layout->trace_size);
	trace.first_slot = bytes_ptr(head + layout->trace_frames, bits);
	trace.kind = bits == 64 ? TRACE_64 : TRACE_32;
	if (!can_be_there(trace.first_slot, bits))
		return 0;
	most = read_frames(ust, memory, &trace, said, 0, frames);
	/* Reject the record if neither number fits. Random data contains few code addresses, and a
	 * number that fits is even rarer there. */
	if (!trace.depth.fit[UST_SLOT_DEPTH] && !trace.depth.fit[UST_SLOT_INDEX])
		return 0;
	*record = trace;
	return most;
}

static int read_record(struct ust *ust, struct memory *memory, struct ust_entry *record)
{
	unsigned bits = bits_of(record);
	const struct ust_layout *layout = ust_layout(bits);
	unsigned char head[RECORD_HEAD_MAX];
	uint64_t frames[UST_DEPTH_MAX] = {0}, others[UST_DEPTH_MAX] = {0};
	uint16_t said[UST_SLOTS];
	uint32_t most, other;

	if (!can_be_there(record->addr, bits) ||
		memory_copy(memory, record->addr, head, layout->frames))
		return 0;
	said[UST_SLOT_DEPTH] = bytes_u16(head + layout->depth);
	said[UST_SLOT_INDEX] = bytes_u16(head + layout->index);
	most = read_frames(ust, memory, record, said,
		(unsigned)bytes_u16(head + layout->trace_count) >> 11, frames);
	if (record->depth.in_code || record->depth.fit[UST_SLOT_DEPTH] ||
		record->depth.fit[UST_SLOT_INDEX])
		return copy_frames(ust, frames, most);
	other = read_trace(ust, memory, record, others);
	return other ? copy_frames(ust, others, other) : copy_frames(ust, frames, most);
}

/* Prepares for the first record. Called only when needed, because most processes have no
 * records. */
static int prepare(struct ust *ust, struct target *target)
{
	ust->frames_left = target_committed_bytes(target) / 4;
	return code_ranges_capture(&ust->code, target, ust->modules, ust->module_count);
}

static int add_records(struct ust *ust, struct memory *memory, const struct walk *walk)
{
	int rc = walk->record_count ? prepare(ust, memory->target) : 0;

	for (size_t i = 0; !rc && i < walk->record_count; i++) {
		const struct walk_record *record = &walk->records[i];

		if (i + AHEAD_RECORDS < walk->record_count)
			memory_fetch(
				&memory->last, walk->records[i + AHEAD_RECORDS].addr, AHEAD_BYTES);
		if (array_try_grow((void **)&ust->records, &ust->record_cap,
			    ust->facts.record_count, sizeof(*ust->records)))
			return -ERR_NOMEM;
		ust->records[ust->facts.record_count] = (struct ust_entry){.addr = record->addr,
			.first_slot = record->addr + ust_layout(record->bits)->frames,
			.frames_at = ust->frame_count,
			.kind = record->bits == 64 ? ENTRY_64 : ENTRY_32};
		rc = read_record(ust, memory, &ust->records[ust->facts.record_count++]);
	}
	return rc;
}

/* Guesses the slot of the number of frames, if there are too few records to decide. If the
 * process's flags request stacks, chooses the slot that programs tested on Windows use. Otherwise
 * chooses the slot named in public symbols. */
static enum ust_slot guess(uint32_t global_flag)
{
	bool is_index = global_flag & NT_FLAG_UST && !(global_flag & NT_FLAG_HPA);

	return is_index ? UST_SLOT_INDEX : UST_SLOT_DEPTH;
}

/* Returns NULL if no record has frames. */
static const uint64_t *frames_of(const struct ust *ust, const struct ust_entry *record)
{
	return ust->frames ? ust->frames + record->frames_at : NULL;
}

static void choose_all(struct ust *ust, uint32_t global_flag)
{
	struct ust_votes votes[RECORD_KINDS] = {0};
	struct ust_habit habits[RECORD_KINDS];

	for (size_t i = 0; i < ust->facts.record_count; i++)
		ust_votes_add(&votes[ust->records[i].kind], &ust->records[i].depth);
	for (int i = 0; i < RECORD_KINDS; i++)
		habits[i] = ust_votes_habit(
			&votes[i], i < TRACE_32 ? guess(global_flag) : UST_SLOT_DEPTH);
	for (size_t i = 0; i < ust->facts.record_count; i++) {
		struct ust_entry *record = &ust->records[i];
		bool is_cut;

		record->frame_count = (uint8_t)ust_depth_choose(&record->depth,
			&habits[record->kind], &ust->code, frames_of(ust, record), &is_cut);
		ust->facts.broken_count += !record->frame_count;
		ust->facts.cut_count += is_cut;
	}
}

int ust_read(struct ust *ust, struct memory *memory, const struct walk *walk,
	const struct module *modules, size_t module_count, uint32_t global_flag)
{
	int rc;

	clear(ust);
	ust->modules = modules;
	ust->module_count = module_count;
	rc = add_records(ust, memory, walk);
	if (rc)
		return rc;
	choose_all(ust, global_flag);
	if (ust->facts.record_count || global_flag & NT_FLAG_UST)
		rc = ust_database_find(
			&ust->facts.database, memory, memory->target->bits, modules, module_count);
	return rc;
}

uint32_t ust_frames(
	const struct ust *ust, uint32_t number, const uint64_t **frames, uint64_t *first_slot)
{
	const struct ust_entry *record = &ust->records[number];

	*frames = frames_of(ust, record);
	*first_slot = record->first_slot;
	return record->frame_count;
}

const struct ust_facts *ust_facts(const struct ust *ust)
{
	return &ust->facts;
}
