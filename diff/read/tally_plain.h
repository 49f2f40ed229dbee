/*
 * The hot loop, to be compiled once for every machine and once for processors of today: what it
 * means is in diff/read/tally.h.
 */
#ifndef DIFF_TALLY_PLAIN_H
#define DIFF_TALLY_PLAIN_H

#include "diff/read/tally_table.h"

#define BATCH 32
#define PREFETCH_BYTES 1024 /* of a stack; most are shorter */

/* An entry that was read and not yet counted. */
struct pending {
	struct entry_plain entry;
	uint32_t number; /* of its id */
	uint32_t line_count; /* with empty ones before it, without its stack */
	uint32_t stack_len; /* of the lines with a TAB behind its own */
	const char *behind; /* all of it */
};

/* Several entries on their way: while one is counted, what the next ones need comes nearer. */
struct batch {
	struct pending items[BATCH];
	unsigned count;
};

static inline const char *blanks_skip(const char *at, uint32_t *line_count)
{
	for (; *at == '\n' || (*at == '\r' && at[1] == '\n'); ++*line_count)
		at += 1 + (*at == '\r');
	return at;
}

/* Reads entries until the batch is full or something else comes. */
static inline void batch_fill(
	struct tally *tally, struct batch *batch, const char *at, const char *end)
{
	const uint64_t *slots = tally->slots, mixer = tally->mixer;
	unsigned shift = tally->shift;

	batch->count = 0;
	while (slots && batch->count < BATCH && at < end) {
		struct pending *pending = &batch->items[batch->count];
		const char *stack;

		pending->line_count = 1;
		stack = entry_plain(&pending->entry, blanks_skip(at, &pending->line_count));
		if (!stack || stack > end)
			return;
		__builtin_prefetch(&slots[pending->entry.id * mixer >> shift]);
		at = *stack == '\t' ? entry_stack_end(stack, end) : stack;
		if (at == end && !*end)
			return;
		pending->stack_len = (uint32_t)(at - stack);
		pending->behind = at;
		batch->count++;
	}
}

/* Finds what the entries are counted to. */
static inline void batch_find(struct tally *tally, struct batch *batch)
{
	for (unsigned i = 0; i < batch->count; i++) {
		struct pending *pending = &batch->items[i];

		if (tally_id_find(tally, pending->entry.id, &pending->number))
			batch->count = i;
		else if (pending->stack_len)
			__builtin_prefetch(&tally->stacks[pending->number], 1);
		else
			__builtin_prefetch(&tally->ids[pending->number], 1);
	}
}

static inline void batch_prefetch(const struct tally *tally, const struct batch *batch)
{
	for (unsigned i = 0; i < batch->count; i++) {
		const struct pending *pending = &batch->items[i];
		const struct pool_text *text = &tally->stacks[pending->number].text;

		if (!pending->stack_len)
			continue;
		for (uint32_t at = 0; at < text->len && at < PREFETCH_BYTES; at += 64)
			__builtin_prefetch(text->text + at);
	}
}

static inline void progress_add(
	struct dump_progress *progress, const struct entry_plain *entry, uint64_t line_count)
{
	progress->line_count += line_count;
	progress->seen.block_count++;
	progress->seen.requested_bytes += entry->requested_bytes;
	progress->seen.overhead_bytes += entry->overhead_bytes;
}

/* Counts entries up to one whose stack is another than was thought; what lies behind them. */
static inline const char *batch_count(struct tally *tally, const struct batch *batch,
	const char *at, struct dump_progress *progress)
{
	for (unsigned i = 0; i < batch->count; i++) {
		const struct pending *pending = &batch->items[i];
		uint64_t line_count = pending->line_count;

		if (pending->stack_len) {
			const struct pool_text *text = &tally->stacks[pending->number].text;

			if (text->len != pending->stack_len ||
				memcmp(pending->behind - text->len, text->text, text->len) != 0)
				break;
			line_count += text->line_count;
			tally_count_known(tally, pending->number, &pending->entry);
		} else {
			tally_count_bare(tally, pending->number, &pending->entry);
		}
		progress_add(progress, &pending->entry, line_count);
		at = pending->behind;
	}
	return at;
}

/* Takes one entry that may be new. What lies behind it, or NULL: it is not plain. */
static const char *take_one(
	struct tally *tally, const char *at, const char *end, struct dump_progress *progress)
{
	struct entry_plain entry;
	uint32_t line_count = 1, number;
	const char *from;

	at = entry_plain(&entry, blanks_skip(at, &line_count));
	if (!at || at > end || tally_id_find(tally, entry.id, &number))
		return NULL;
	from = at;
	if ((*at == '\t' ? entry_stack_end(at, end) : at) == end && !*end)
		return NULL;
	if (*at == '\t')
		at = tally_stack_take(tally, &entry, at, end, number);
	else
		tally_count_bare(tally, number, &entry);
	for (; at && from < at; from++)
		line_count += *from == '\n';
	if (at)
		progress_add(progress, &entry, line_count);
	return at;
}

/* See tally_plain(). */
static const char *plain(
	struct tally *tally, const char *at, const char *end, struct dump_progress *progress)
{
	struct dump_progress own = *progress; /* nobody else's cache line */
	struct batch batch;

	do {
		const char *behind;

		batch_fill(tally, &batch, at, end);
		batch_find(tally, &batch);
		batch_prefetch(tally, &batch);
		at = batch_count(tally, &batch, at, &own);
		if (batch.count == BATCH && at == batch.items[BATCH - 1].behind)
			continue;
		behind = take_one(tally, at, end, &own);
		if (!behind)
			break;
		at = behind;
	} while (at < end);
	*progress = own;
	return at;
}

#endif
