#include "snapshot/stacks/ust.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "core/u64map.h"
#include "snapshot/stacks/code_ranges.h"
#include "snapshot/stacks/ust_layout.h"

struct record {
	uint64_t addr;
	size_t frames_at; /* into ust.frames */
	/* What stands where Depth and Index are; 0 when it is no possible number of frames. */
	uint8_t depth, index;
	uint8_t block_depth;
	uint8_t last_resort; /* frames when neither is possible */
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

/* The frames from the first slot up to where something is no code address; how many. */
static uint32_t read_frames(struct ust *ust, struct memory *memory, uint64_t slot, unsigned bits,
	uint64_t frames[UST_DEPTH_MAX])
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
		if (!code_ranges_have_return(&ust->code, frames[count]))
			break;
	}
	return count;
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

static uint8_t least(uint32_t a, uint32_t b)
{
	return (uint8_t)(a < b ? a : b);
}

/* What is no number of frames that are all code addresses is 0. */
static uint8_t possible(uint16_t said, uint32_t frame_count)
{
	return said <= frame_count ? (uint8_t)said : 0;
}

/* Reads the record that was just added. */
static int read_record(struct ust *ust, struct memory *memory, struct record *record)
{
	const struct ust_layout *layout = ust_layout(record->bits);
	const unsigned char *head;
	uint64_t frames[UST_DEPTH_MAX];
	uint16_t depth, index;
	uint32_t count, used;

	if (!can_be_there(record))
		return 0;
	head = memory_at(memory, record->addr, layout->frames);
	if (!head)
		return 0;
	depth = bytes_u16(head + layout->depth);
	index = bytes_u16(head + layout->index);
	record->block_depth = (uint8_t)(bytes_u16(head + layout->trace_count) >> 11);
	count = read_frames(ust, memory, record->addr + layout->frames, record->bits, frames);
	record->depth = possible(depth, count);
	record->index = possible(index, count);
	record->last_resort = least(count, record->block_depth ? record->block_depth : count);
	used = record->depth > record->index ? record->depth : record->index;
	return keep_frames(ust, frames, used ? used : record->last_resort);
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

/*
 * Depth or Index? What is possible is taken; of two that are, the one that has room in the record
 * (BlockDepth, where that is known); of two that have, the one that is possible in more of the
 * process's records, and else Depth, which is what public symbols call it.
 */
static uint8_t choose(const struct record *record, bool is_index_better)
{
	uint8_t room = record->block_depth;
	bool depth_fits = record->depth <= room, index_fits = record->index <= room;

	if (!record->depth && !record->index)
		return record->last_resort;
	if (!record->depth || !record->index)
		return record->depth ? record->depth : record->index;
	if (room && depth_fits != index_fits)
		return depth_fits ? record->depth : record->index;
	return is_index_better ? record->index : record->depth;
}

static void choose_all(struct ust *ust)
{
	size_t depths = 0, indexes = 0;

	for (size_t i = 0; i < ust->record_count; i++) {
		depths += ust->records[i].depth > 0;
		indexes += ust->records[i].index > 0;
	}
	for (size_t i = 0; i < ust->record_count; i++) {
		struct record *record = &ust->records[i];

		record->frame_count = choose(record, indexes > depths);
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
