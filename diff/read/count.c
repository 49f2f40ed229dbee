#include "diff/read/count.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "diff/read/count_fast.h"

#define ID_BYTES 9
#define FLUSH_COUNT 64 /* cells that are handed over at once */

void tally_init(struct thread_counts *tally, struct shared_stacks *pool)
{
	*tally = (struct thread_counts){.pool = pool, .heap = HEAP_NONE, .shift = 64};
	tally->mixer = hash_key().words[0] | 1;
	tally->plain = plain;
	tally->frames_take = frames_take;
#ifdef __x86_64__
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")) {
		tally->plain = tally_plain_avx2;
		tally->frames_take = tally_frames_avx2;
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

/* The number of a stack under an id, as the dump writes it. */
static uint32_t stack_number(
	const struct thread_counts *tally, uint32_t id, struct stack stack, struct pool_text *text)
{
	char bytes[ID_BYTES];
	size_t len = (size_t)snprintf(bytes, sizeof(bytes), "%X", (unsigned)id);

	stack.id = bytes;
	return shared_stacks_add(tally->pool, &stack, len, text);
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

uint32_t tally_stack_take(struct thread_counts *tally, const struct entry_plain *entry,
	const char *lines, const char *end, uint32_t number)
{
	struct tally_stack *known = &tally->stacks[number];
	struct stack stack = {.same_id = STACK_NONE, .frames = tally->frames};
	struct stack_total cell = {
		.heap = tally->heap, .sums = {1, entry->requested_bytes, entry->overhead_bytes}};
	struct pool_text text = {.text = lines};
	const char *behind = tally->frames_take(tally->frames, lines, end, &stack.frame_count);

	if (!behind)
		return 0;
	text.len = (uint32_t)(behind - lines); /* of at most DUMP_FRAMES_MAX short lines */
	text.line_count = stack.frame_count;
	cell.stack = stack_number(tally, entry->id, stack, &text);
	if (known->stack == STACK_NONE) {
		known->text = text;
		known->stack = cell.stack;
	}
	if (known->stack == cell.stack)
		tally_count_known(tally, number, entry);
	else
		shared_stacks_count(tally->pool, &cell, 1, tally->take_away);
	return stack.frame_count;
}

const char *tally_plain(struct thread_counts *tally, const char *at, const char *end,
	struct dump_progress *progress)
{
	return tally->plain(tally, at, end, progress);
}

/* What was counted under a number, which is now nothing. */
static struct stack_total take(struct thread_counts *tally, uint32_t number, bool is_bare)
{
	struct tally_id *id = &tally->ids[number];
	struct tally_stack *known = &tally->stacks[number];
	struct block_totals *sums = is_bare ? &id->sums : &known->sums;
	struct stack_total cell = {
		.stack = known->stack, .heap = tally->heap, .is_bare = is_bare, .sums = *sums};

	if (is_bare)
		cell.stack =
			stack_number(tally, id->id, (struct stack){.same_id = STACK_NONE}, NULL);
	*sums = (struct block_totals){0};
	return cell;
}

void tally_flush(struct thread_counts *tally)
{
	struct stack_total cells[FLUSH_COUNT];

	while (tally->touched_count) {
		size_t count = 0;

		for (; count < FLUSH_COUNT && tally->touched_count; count++) {
			uint32_t touched = tally->touched[--tally->touched_count];

			cells[count] = take(tally, touched / 2, touched % 2 == 0);
		}
		shared_stacks_count(tally->pool, cells, count, tally->take_away);
	}
}
