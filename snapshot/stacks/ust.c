#include "snapshot/stacks/ust.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "core/u64map.h"
#include "snapshot/stacks/code_ranges.h"
#include "snapshot/stacks/ust_layout.h"

#define RECORD_HEAD_MAX 16 /* bytes before the frames */
#define CLEAR_MIN 8 /* so many records at least show where the number is */
#define ADDRESS_MIN 0x10000u /* below, Windows has no memory */

struct record {
	uint64_t addr;
	size_t frames_at; /* into ust.frames */
	/* What stands where Depth and Index are; 0 when it is not the number of frames that all lie in
	 * code. */
	uint8_t depth, index;
	/* When neither is: what stands there, 0 when it cannot be a number of frames at all; and how
	 * many frames in code there are. */
	uint8_t said_depth, said_index, last_resort;
	uint8_t block_depth;
	uint8_t frame_count;
	uint8_t bits;
};

struct ust {
	struct u64map numbers[2]; /* of 32- and of 64-bit heaps: address -> index into records */
	uint32_t *of_blocks; /* the record of each block, or UST_NONE */
	struct record *records;
	size_t record_count, record_cap, broken_count;
	uint64_t *frames;
	size_t frame_count, frame_cap;
	/* So many frames the target's memory can hold at most, if no two records share theirs. */
	uint64_t frames_left;
	struct code_ranges code;
	const struct module *modules; /* the caller's, while records are taken */
	size_t module_count;
	struct ust_database database;
};

struct ust *ust_new(void)
{
	struct ust *ust = calloc(1, sizeof(*ust));

	if (!ust)
		return NULL;
	u64map_init(&ust->numbers[0]);
	u64map_init(&ust->numbers[1]);
	code_ranges_init(&ust->code);
	return ust;
}

static void clear(struct ust *ust)
{
	u64map_release(&ust->numbers[0]);
	u64map_release(&ust->numbers[1]);
	free(ust->of_blocks);
	ust->of_blocks = NULL;
	ust->record_count = ust->broken_count = ust->frame_count = 0;
	ust->database = (struct ust_database){0};
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

/* What stands in a block's prefix when no stack was logged for it, as seen by DbgHelpUtils. */
static bool is_nothing(uint64_t record)
{
	return !record || record == 0x01010000 || record == UINT64_C(0x0101000000000000);
}

/* A record begins with a pointer, and so do all. */
static bool can_be_there(const struct record *record)
{
	uint64_t space = record->bits == 64 ? TARGET_SPACE_BYTES : UINT64_C(1) << 32;

	return record->addr % (record->bits / 8u) == 0 && record->addr < space;
}

/* What is in the slots of frames, as far as it is there; how many. */
static uint32_t read_slots(const struct ust *ust, struct memory *memory, uint64_t slot,
	unsigned bits, uint64_t frames[UST_DEPTH_MAX])
{
	size_t size = bits / 8;
	const unsigned char *all = memory_at(memory, slot, UST_DEPTH_MAX * size);
	uint32_t count = 0;

	for (; count < UST_DEPTH_MAX && count < ust->frames_left; count++) {
		/* At the end of memory they may not be all there. */
		const unsigned char *bytes =
			all ? all + count * size : memory_at(memory, slot + count * size, size);

		if (!bytes)
			break;
		frames[count] = bytes_ptr(bytes, bits);
	}
	return count;
}

/* How many of them, from the first one on, lie in code. */
static uint32_t count_code(struct ust *ust, const uint64_t *frames, uint32_t count)
{
	uint32_t in_code = 0;

	while (in_code < count && code_ranges_have_return(&ust->code, frames[in_code]))
		in_code++;
	return in_code;
}

/* Adds a record's frames. */
static int keep_frames(struct ust *ust, const uint64_t *frames, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (array_grow((void **)&ust->frames, &ust->frame_cap, ust->frame_count,
			    sizeof(*ust->frames)))
			return -ERR_NOMEM;
		ust->frames[ust->frame_count++] = frames[i];
	}
	ust->frames_left -= count;
	return 0;
}

/* What is no number of so many frames is 0. */
static uint8_t possible(uint16_t said, uint32_t frame_count)
{
	return said <= frame_count ? (uint8_t)said : 0;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Looks for the number of frames where it may stand; returns how many frames are to be kept. */
static uint32_t read_depth(
	struct record *record, const unsigned char *head, uint32_t slots, uint32_t in_code)
{
	const struct ust_layout *layout = ust_layout(record->bits);
	uint16_t depth = bytes_u16(head + layout->depth);
	uint16_t index = bytes_u16(head + layout->index);
	uint32_t room = (uint32_t)bytes_u16(head + layout->trace_count) >> 11;

	record->block_depth = (uint8_t)room;
	record->depth = possible(depth, in_code);
	record->index = possible(index, in_code);
	if (record->depth || record->index)
		return larger(record->depth, record->index);
	record->said_depth = possible(depth, slots);
	record->said_index = possible(index, slots);
	record->last_resort = (uint8_t)(room && room < in_code ? room : in_code);
	return larger(record->last_resort, larger(record->said_depth, record->said_index));
}

/* Reads the record that was just added. */
static int read_record(struct ust *ust, struct memory *memory, struct record *record)
{
	const struct ust_layout *layout = ust_layout(record->bits);
	unsigned char head[RECORD_HEAD_MAX];
	uint64_t frames[UST_DEPTH_MAX] = {0};
	uint32_t slots;

	if (!can_be_there(record) || memory_copy(memory, record->addr, head, layout->frames))
		return 0;
	slots = read_slots(ust, memory, record->addr + layout->frames, record->bits, frames);
	return keep_frames(
		ust, frames, read_depth(record, head, slots, count_code(ust, frames, slots)));
}

/* What has to be known before the first record is read; most processes have none. */
static int prepare(struct ust *ust, struct target *target)
{
	ust->frames_left = target_committed_bytes(target) / 4;
	return code_ranges_take(&ust->code, target, ust->modules, ust->module_count);
}

/* Finds the record at addr, or reads and adds it. */
static int add_record(
	struct ust *ust, struct memory *memory, uint64_t addr, unsigned bits, uint32_t *number)
{
	int rc;

	*number = (uint32_t)ust->record_count;
	if (ust->record_count >= UST_NONE - 1 ||
		(!ust->record_count && prepare(ust, memory->target)))
		return -ERR_NOMEM;
	rc = u64map_put(&ust->numbers[bits == 64], addr, number);
	if (rc <= 0)
		return rc;
	if (array_grow((void **)&ust->records, &ust->record_cap, ust->record_count,
		    sizeof(*ust->records)))
		return -ERR_NOMEM;
	ust->records[ust->record_count] =
		(struct record){.addr = addr, .frames_at = ust->frame_count, .bits = (uint8_t)bits};
	return read_record(ust, memory, &ust->records[ust->record_count++]);
}

static int add_records(struct ust *ust, struct memory *memory, const struct walk *walk)
{
	int rc = 0;

	ust->of_blocks = malloc((walk->block_count + 1) * sizeof(*ust->of_blocks));
	if (!ust->of_blocks)
		return -ERR_NOMEM;
	for (size_t i = 0; !rc && i < walk->block_count; i++) {
		const struct walked_block *block = &walk->blocks[i];

		if (is_nothing(block->record))
			ust->of_blocks[i] = UST_NONE;
		/* Neighbours often have one stack. */
		else if (i && block->record == block[-1].record && block->heap == block[-1].heap)
			ust->of_blocks[i] = ust->of_blocks[i - 1];
		else
			rc = add_record(ust, memory, block->record, walk->heaps[block->heap].bits,
				&ust->of_blocks[i]);
	}
	return rc;
}

/* Where most records of a process have the number of their frames. */
enum habit {
	HABIT_DEPTH,
	HABIT_INDEX,
};

/*
 * Depth or Index? What is possible is taken; of two that are, the one that has room in the record
 * (BlockDepth, where that is known); of two that have, the one that is possible in more of the
 * process's records, and else Depth, which is what public symbols call it.
 */
static uint8_t choose(const struct record *record, enum habit habit)
{
	uint8_t room = record->block_depth;
	bool depth_fits = record->depth <= room, index_fits = record->index <= room;

	if (!record->depth || !record->index)
		return record->depth ? record->depth : record->index;
	if (room && depth_fits != index_fits)
		return depth_fits ? record->depth : record->index;
	return habit == HABIT_INDEX ? record->index : record->depth;
}

/* True when so many frames may be a stack that leads through code which is not there any more: all
 * are addresses, and some lie in code. */
static bool is_likely(struct ust *ust, const struct record *record, uint32_t count)
{
	const uint64_t *frames = ust->frames + record->frames_at;
	bool has_code = false;

	for (uint32_t i = 0; i < count; i++) {
		if (frames[i] < ADDRESS_MIN || frames[i] >= TARGET_SPACE_BYTES)
			return false;
		has_code = has_code || code_ranges_have_return(&ust->code, frames[i]);
	}
	return has_code;
}

/* Of a record that has frames outside of code, as when a DLL was unloaded: what stands where the
 * process's other records have the number, or else the frames up to there. */
static uint8_t choose_broken(struct ust *ust, const struct record *record, enum habit habit)
{
	uint8_t room = record->block_depth, said = record->said_depth;

	if (habit == HABIT_INDEX)
		said = record->said_index;
	else if (room && said > room)
		said = 0;
	return said && is_likely(ust, record, said) ? said : record->last_resort;
}

static void choose_all(struct ust *ust)
{
	size_t depths = 0, indexes = 0;
	enum habit habit;
	bool is_clear;

	for (size_t i = 0; i < ust->record_count; i++) {
		depths += ust->records[i].depth > 0;
		indexes += ust->records[i].index > 0;
	}
	habit = indexes > depths ? HABIT_INDEX : HABIT_DEPTH;
	depths = indexes > depths ? indexes : depths;
	is_clear = depths >= CLEAR_MIN && depths > ust->record_count / 2;
	for (size_t i = 0; i < ust->record_count; i++) {
		struct record *record = &ust->records[i];

		record->frame_count = choose(record, habit);
		if (!record->frame_count)
			record->frame_count =
				is_clear ? choose_broken(ust, record, habit) : record->last_resort;
		ust->broken_count += !record->frame_count;
	}
}

int ust_take(struct ust *ust, struct memory *memory, const struct walk *walk,
	const struct module *modules, size_t module_count, bool is_flagged)
{
	int rc;

	clear(ust);
	ust->modules = modules;
	ust->module_count = module_count;
	rc = add_records(ust, memory, walk);
	if (rc)
		return rc;
	choose_all(ust);
	if (ust->record_count || is_flagged)
		rc = ust_database_find(
			&ust->database, memory, memory->target->bits, modules, module_count);
	return rc;
}

uint32_t ust_number(const struct ust *ust, size_t i)
{
	return ust->of_blocks[i];
}

uint32_t ust_frames(
	const struct ust *ust, uint32_t number, const uint64_t **frames, uint64_t *first_slot)
{
	const struct record *record = &ust->records[number];

	*frames = ust->frames + record->frames_at;
	*first_slot = record->addr + ust_layout(record->bits)->frames;
	return record->frame_count;
}

size_t ust_record_count(const struct ust *ust)
{
	return ust->record_count;
}

size_t ust_broken_count(const struct ust *ust)
{
	return ust->broken_count;
}

const struct ust_database *ust_database(const struct ust *ust)
{
	return &ust->database;
}
