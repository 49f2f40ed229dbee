/*
 * The inside of a tally, for the files that count.
 */
#ifndef DIFF_TALLY_TABLE_H
#define DIFF_TALLY_TABLE_H

#include "core/entry_plain.h"
#include "diff/read/tally.h"

/* Entries that name an id and give no stack. Two to a cache line. */
struct tally_id {
	uint64_t requested_bytes, overhead_bytes, block_count;
	uint32_t id;
	uint32_t padding;
};

/* Entries with the stack whose text is known. */
struct tally_stack {
	uint64_t requested_bytes, overhead_bytes, block_count;
	struct pool_text text; /* or nothing: then the stack is not known either */
	uint32_t stack;
};

#define TALLY_IDS_MAX ((size_t)1 << 17) /* about: with more of them a tally starts afresh */

/* Hands all sums over and forgets all ids. 0 or -ERR_NOMEM. */
int tally_reset(struct tally *tally);

/* Makes a number for an id that is new. 0 or -ERR_NOMEM. */
int tally_id_add(struct tally *tally, uint32_t id, uint32_t *number);

/* Counts an entry whose stack, at lines, is not the known one of its id. How many lines the stack has,
 * or 0: it is not plain, or memory is out. */
uint32_t tally_stack_take(struct tally *tally, const struct entry_plain *entry, const char *lines,
	const char *end, uint32_t number);

/* Counts sums, from the start of a line on, until something else comes; behind them. See tally_plain(). */
const char *tally_sums(
	struct tally *tally, const char *at, const char *end, struct dump_progress *progress);

static inline const char *tally_blanks_skip(const char *at, uint32_t *line_count)
{
	for (; *at == '\n' || (*at == '\r' && at[1] == '\n'); ++*line_count)
		at += 1 + (*at == '\r');
	return at;
}

/* tally_plain() for processors of today. */
const char *tally_plain_avx2(
	struct tally *tally, const char *at, const char *end, struct dump_progress *progress);

/* frames_take() for them. */
const char *tally_frames_avx2(uint64_t *frames, const char *at, const char *end, uint32_t *count);

static inline void tally_touch(struct tally *tally, uint32_t number, unsigned with_stack)
{
	tally->touched[tally->touched_count++] = 2 * number + with_stack;
}

static inline void tally_count_bare(
	struct tally *tally, uint32_t number, const struct entry_plain *entry)
{
	struct tally_id *to = &tally->ids[number];

	if (!to->block_count++)
		tally_touch(tally, number, 0);
	to->requested_bytes += entry->requested_bytes;
	to->overhead_bytes += entry->overhead_bytes;
}

static inline void tally_count_known(
	struct tally *tally, uint32_t number, const struct entry_plain *entry)
{
	struct tally_stack *to = &tally->stacks[number];

	if (!to->block_count++)
		tally_touch(tally, number, 1);
	to->requested_bytes += entry->requested_bytes;
	to->overhead_bytes += entry->overhead_bytes;
}

static inline uint64_t *tally_slot(const struct tally *tally, uint32_t id)
{
	size_t mask = tally->slot_count - 1, at = (size_t)(id * tally->mixer >> tally->shift);

	while (tally->slots[at] && (uint32_t)tally->slots[at] != id)
		at = (at + 1) & mask;
	return &tally->slots[at];
}

static inline int tally_id_find(struct tally *tally, uint32_t id, uint32_t *number)
{
	uint64_t slot = tally->slot_count ? *tally_slot(tally, id) : 0;

	if (!slot)
		return tally_id_add(tally, id, number);
	*number = (uint32_t)(slot >> 32) - 1;
	return 0;
}

#endif
