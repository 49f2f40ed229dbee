/*
 * Counting of sums, which hsnap --by-stack writes. Stacks hardly ever occur twice in such a dump,
 * so caching their texts is useless. Instead, the sums go to the pool in batches.
 *
 * Accepts only lines that the scanner would interpret in the same way. Such a line must have
 * exactly hsnap's form, and the lines before and after it must not change its meaning. */
#include <string.h>

#include "core/base/text.h"
#include "diff/read/count.h"

/* Largest number in a sum. A part of a file has fewer than 2^20 lines, so the sums of a part cannot
 * overflow. */
#define SUM_MAX (UINT64_C(1) << 43)

struct sum_line {
	struct block_totals sums;
	const char *id;
	size_t id_len;
};

static inline bool skip_text(const char **at, const char *text, size_t len)
{
	if (memcmp(*at, text, len) != 0)
		return false;
	*at += len;
	return true;
}

#define TAKE(at, text) skip_text(at, text, sizeof(text) - 1)

/* Parses the line at `at`. Returns the line's end, or NULL for another kind of line. Reads at most
 * 100 bytes after the parsed text. */
static const char *line_parse(const char *at, struct sum_line *line)
{
	uint64_t size_bytes, overhead;
	struct block_totals *sums = &line->sums;

	if (!hex_parse(&at, &sums->requested_bytes) || !TAKE(&at, " bytes in 0x") ||
		!hex_parse(&at, &sums->block_count) || !TAKE(&at, " allocations (@ 0x") ||
		!hex_parse(&at, &size_bytes) || !TAKE(&at, " + 0x") || !hex_parse(&at, &overhead) ||
		!TAKE(&at, ") by: BackTrace"))
		return NULL;
	if (sums->requested_bytes > SUM_MAX || sums->block_count > SUM_MAX ||
		(sums->block_count && overhead > SUM_MAX / sums->block_count))
		return NULL;
	sums->overhead_bytes = sums->block_count * overhead;
	line->id = at;
	while (hex_digits[(unsigned char)*at])
		at++;
	line->id_len = (size_t)(at - line->id);
	at += *at == '\r';
	return line->id_len && line->id_len < 32 && *at == '\n' ? at + 1 : NULL;
}

/* For a sum without a stack: returns true if the next line cannot be a function name. */
static bool is_no_name(const char *at)
{
	if (*at == '\n' || *at == '*' || *at == '/' || (*at == '\r' && at[1] == '\n'))
		return true;
	while (hex_digits[(unsigned char)*at])
		at++;
	return TAKE(&at, " bytes in 0x") || TAKE(&at, " bytes + ");
}

/* Parses the entry at `at`. Returns the entry's end, or NULL if the entry is not plain or may be
 * incomplete. */
static const char *entry_parse(const struct thread_counts *tally, struct entry_batch *batch,
	const char *at, const char *end)
{
	struct pool_entry *entry = &batch->items[batch->count];
	struct sum_line line;
	uint64_t *frames = batch->frames + batch->frame_count;
	uint32_t count = 0;

	at = line_parse(at, &line);
	if (!at || at >= end)
		return NULL;
	if (*at != '\t' && !is_no_name(at))
		return NULL;
	if (*at == '\t')
		at = tally->frames_parse(frames, at, end, &count);
	if (!at || (at == end && !*end))
		return NULL;
	*entry = (struct pool_entry){.stack = {.id = line.id,
					     .same_id = STACK_NONE,
					     .frames = count ? frames : NULL,
					     .frame_count = count},
		.id_len = line.id_len,
		.sums = line.sums};
	batch->frame_count += count;
	batch->count++;
	return at;
}

/* Parses entries until the batch is full or another kind of line follows. */
static void batch_parse(const struct thread_counts *tally, struct entry_batch *batch,
	const char *at, const char *end)
{
	batch->count = batch->frame_count = 0;
	while (at < end && batch->count < BATCH_ENTRIES &&
		BATCH_FRAMES - batch->frame_count >= DUMP_FRAMES_MAX) {
		const size_t number = batch->count;
		uint32_t blanks = 0;

		at = entry_parse(tally, batch, tally_blanks_skip(at, &blanks), end);
		if (!at)
			break;
		batch->behind[number] = at;
		batch->lines[number] = blanks + 1 + batch->items[number].stack.frame_count;
	}
}

const char *tally_sums(struct thread_counts *tally, const char *at, const char *end,
	struct dump_progress *progress)
{
	struct entry_batch *batch;
	struct sum_line line;
	uint32_t blanks = 0;

	if (at >= end || !line_parse(tally_blanks_skip(at, &blanks), &line))
		return at; /* most dumps have no sums */
	batch = tally_batch(tally);
	while (at < end) {
		batch_parse(tally, batch, at, end);
		if (!batch->count)
			break;
		shared_stacks_entries(
			tally->pool, batch->items, batch->count, tally->heap, tally->take_away);
		for (size_t i = 0; i < batch->count; i++) {
			progress->line_count += batch->lines[i];
			block_totals_add(&progress->seen, &batch->items[i].sums);
		}
		at = batch->behind[batch->count - 1];
	}
	batch->count = batch->frame_count = 0;
	return at;
}
