/* The tally of a thread: the table of ids, batches of new stacks, and the choice of code for this
 * processor. */
#include "diff/read/count.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/io/out.h"
#include "diff/read/count_fast.h"

#define FLUSH_COUNT 64 /* cells moved at once */

void tally_init(struct thread_counts *tally, struct shared_stacks *pool)
{
	*tally = (struct thread_counts){.pool = pool, .heap = HEAP_NONE, .shift = 64};
	tally->mixer = hash_key().words[0] | 1;
	tally->plain = plain;
	tally->frames_parse = frames_parse;
#ifdef __x86_64__
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")) {
		tally->plain = tally_plain_avx2;
		tally->frames_parse = tally_frames_avx2;
	}
#endif
}

void tally_release(struct thread_counts *tally)
{
	free(tally->slots);
	free(tally->ids);
	free(tally->stacks);
	free(tally->touched);
	free(tally->batch);
	*tally = (struct thread_counts){0};
}

static void slots_grow(struct thread_counts *tally)
{
	size_t old_count = tally->slot_count, count = old_count ? 2 * old_count : 1024;
	uint64_t *old = tally->slots;

	tally->slots = xcalloc(count, sizeof(*tally->slots));
	tally->slot_count = count;
	tally->shift = 64 - (unsigned)__builtin_ctzll(count);
	for (size_t i = 0; i < old_count; i++) {
		if (old[i])
			*tally_slot(tally, (uint32_t)old[i]) = old[i];
	}
	free(old);
}

uint32_t tally_id_add(struct thread_counts *tally, uint32_t id)
{
	uint32_t number = (uint32_t)tally->count++;

	if (number == tally->cap) {
		tally->cap = tally->cap ? 2 * tally->cap : 512;
		tally->ids = xrealloc(tally->ids, tally->cap * sizeof(*tally->ids));
		tally->stacks = xrealloc(tally->stacks, tally->cap * sizeof(*tally->stacks));
		tally->touched = xrealloc(tally->touched, 2 * tally->cap * sizeof(*tally->touched));
	}
	if (2 * tally->count >= tally->slot_count)
		slots_grow(tally);
	tally->ids[number] = (struct tally_id){.id = id};
	tally->stacks[number] = (struct tally_stack){.stack = STACK_NONE};
	*tally_slot(tally, id) = id | ((uint64_t)number + 1) << 32;
	return number;
}

struct entry_batch *tally_batch(struct thread_counts *tally)
{
	struct entry_batch *batch = tally->batch;

	if (!batch) {
		batch = tally->batch = xmalloc(sizeof(*batch));
		batch->count = batch->frame_count = 0;
	}
	if (batch->count == BATCH_ENTRIES || BATCH_FRAMES - batch->frame_count < DUMP_FRAMES_MAX)
		tally_batch_flush(tally);
	return batch;
}

void tally_batch_flush(struct thread_counts *tally)
{
	struct entry_batch *batch = tally->batch;

	if (!batch || !batch->count)
		return;
	shared_stacks_entries(
		tally->pool, batch->items, batch->count, tally->heap, tally->take_away);
	for (size_t i = 0; i < batch->count; i++) {
		const struct pool_entry *entry = &batch->items[i];
		struct tally_stack *known = &tally->stacks[batch->numbers[i]];

		if (entry->stack.frames &&
			(known->stack == STACK_NONE ||
				(known->stack == entry->number && !known->text.text))) {
			known->stack = entry->number;
			known->text = entry->text;
		}
	}
	batch->count = batch->frame_count = 0;
}

/* Adds an entry with its sums to the batch. The entry's frames must already be in the batch. */
static void batch_add(struct thread_counts *tally, uint32_t number, uint32_t frame_count,
	const struct block_totals *sums, const struct pool_text *text)
{
	struct entry_batch *batch = tally->batch;
	struct pool_entry *entry = &batch->items[batch->count];
	char *id = batch->ids[batch->count];

	*entry = (struct pool_entry){
		.stack = {.id = id,
			.same_id = STACK_NONE,
			.frames = frame_count ? batch->frames + batch->frame_count : NULL,
			.frame_count = frame_count},
		.id_len = out_hex_digits(id, tally->ids[number].id),
		.sums = *sums,
		.text = *text};
	batch->numbers[batch->count++] = number;
	batch->frame_count += frame_count;
}

uint32_t tally_stack_add(struct thread_counts *tally, const struct entry_plain *entry,
	const char *lines, const char *end, uint32_t number)
{
	struct entry_batch *batch = tally_batch(tally);
	struct block_totals sums = {1, entry->requested_bytes, entry->overhead_bytes};
	struct pool_text text = {.text = lines};
	const char *behind = tally->frames_parse(
		batch->frames + batch->frame_count, lines, end, &text.line_count);

	if (!behind)
		return 0;
	text.len = (uint32_t)(behind - lines); /* fits: at most DUMP_FRAMES_MAX short lines */
	batch_add(tally, number, text.line_count, &sums, &text);
	return text.line_count;
}

const char *tally_plain(struct thread_counts *tally, const char *at, const char *end,
	struct dump_progress *progress)
{
	return tally->plain(tally, at, end, progress);
}

void tally_flush(struct thread_counts *tally)
{
	struct stack_total cells[FLUSH_COUNT];
	size_t count = 0;

	tally_batch_flush(tally);
	while (tally->touched_count) {
		uint32_t touched = tally->touched[--tally->touched_count], number = touched / 2;
		bool is_bare = touched % 2 == 0;
		struct tally_stack *known = &tally->stacks[number];
		struct block_totals *sums = is_bare ? &tally->ids[number].sums : &known->sums;

		if (is_bare) {
			tally_batch(tally);
			batch_add(tally, number, 0, sums, &(struct pool_text){0});
		} else {
			cells[count++] = (struct stack_total){
				.stack = known->stack, .heap = tally->heap, .sums = *sums};
		}
		*sums = (struct block_totals){0};
		if (count == FLUSH_COUNT || !tally->touched_count) {
			shared_stacks_count(tally->pool, cells, count, tally->take_away);
			count = 0;
		}
	}
	tally_batch_flush(tally);
}
