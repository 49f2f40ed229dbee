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

static int slots_grow(struct thread_counts *tally)
{
	size_t old_count = tally->slot_count, count = old_count ? 2 * old_count : 1024;
	uint64_t *old = tally->slots, *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return -ERR_NOMEM;
	tally->slots = slots;
	tally->slot_count = count;
	tally->shift = 64 - (unsigned)__builtin_ctzll(count);
	for (size_t i = 0; i < old_count; i++) {
		if (old[i])
			*tally_slot(tally, (uint32_t)old[i]) = old[i];
	}
	free(old);
	return 0;
}

static int ids_grow(struct thread_counts *tally)
{
	size_t cap = tally->cap ? 2 * tally->cap : 512;
	struct tally_id *ids = realloc(tally->ids, cap * sizeof(*ids));
	struct tally_stack *stacks = NULL;
	uint32_t *touched = NULL;

	if (ids) {
		tally->ids = ids;
		stacks = realloc(tally->stacks, cap * sizeof(*stacks));
	}
	if (stacks) {
		tally->stacks = stacks;
		touched = realloc(tally->touched, 2 * cap * sizeof(*touched));
	}
	if (!touched)
		return -ERR_NOMEM;
	tally->touched = touched;
	tally->cap = cap;
	return 0;
}

/* An id as the dump writes it; its length. */
static size_t id_text(uint32_t id, char text[ID_BYTES])
{
	return (size_t)snprintf(text, ID_BYTES, "%X", (unsigned)id);
}

int tally_id_add(struct thread_counts *tally, uint32_t id, uint32_t *number)
{
	if (tally->count >= UINT32_MAX / 2 || (tally->count == tally->cap && ids_grow(tally)) ||
		(2 * tally->count >= tally->slot_count && slots_grow(tally))) {
		tally->no_memory = true;
		return -ERR_NOMEM;
	}
	*number = (uint32_t)tally->count++;
	tally->ids[*number] = (struct tally_id){.id = id};
	tally->stacks[*number] = (struct tally_stack){.stack = STACK_NONE};
	*tally_slot(tally, id) = id | ((uint64_t)*number + 1) << 32;
	return 0;
}

uint32_t tally_stack_take(struct thread_counts *tally, const struct entry_plain *entry,
	const char *lines, const char *end, uint32_t number)
{
	struct tally_stack *known = &tally->stacks[number];
	struct stack stack = {.same_id = STACK_NONE, .frames = tally->frames};
	struct stack_total cell = {
		.heap = tally->heap, .sums = {1, entry->requested_bytes, entry->overhead_bytes}};
	struct pool_text text = {.text = lines};
	char id[ID_BYTES];
	size_t id_len = id_text(entry->id, id);
	const char *behind = tally->frames_take(tally->frames, lines, end, &stack.frame_count);

	stack.id = id;
	if (!behind)
		return 0;
	text.len = (uint32_t)(behind - lines); /* of at most DUMP_FRAMES_MAX short lines */
	text.line_count = stack.frame_count;
	if (shared_stacks_add(tally->pool, &stack, id_len, &cell.stack, &text)) {
		tally->no_memory = true;
		return 0;
	}
	if (known->stack == STACK_NONE) {
		known->text = text;
		known->stack = cell.stack;
	}
	if (known->stack == cell.stack)
		tally_count_known(tally, number, entry);
	else if (shared_stacks_count(tally->pool, &cell, 1, tally->take_away))
		tally->no_memory = true;
	if (tally->no_memory)
		return 0;
	return stack.frame_count;
}

const char *tally_plain(struct thread_counts *tally, const char *at, const char *end,
	struct dump_progress *progress)
{
	return tally->plain(tally, at, end, progress);
}

/* What was counted without a stack, which is now nothing. */
static int take_bare(struct thread_counts *tally, struct tally_id *from, struct stack_total *cell)
{
	struct stack bare = {.same_id = STACK_NONE};
	char id[ID_BYTES];
	size_t id_len = id_text(from->id, id);

	bare.id = id;
	if (shared_stacks_add(tally->pool, &bare, id_len, &cell->stack, NULL))
		return -ERR_NOMEM;
	cell->is_bare = true;
	cell->sums = (struct block_totals){
		from->block_count, from->requested_bytes, from->overhead_bytes};
	from->block_count = from->requested_bytes = from->overhead_bytes = 0;
	return 0;
}

static void take_known(struct tally_stack *from, struct stack_total *cell)
{
	cell->stack = from->stack;
	cell->sums = (struct block_totals){
		from->block_count, from->requested_bytes, from->overhead_bytes};
	from->block_count = from->requested_bytes = from->overhead_bytes = 0;
}

int tally_flush(struct thread_counts *tally)
{
	struct stack_total cells[FLUSH_COUNT];
	int rc = 0;

	while (!rc && tally->touched_count) {
		size_t count = 0;

		for (; !rc && count < FLUSH_COUNT && tally->touched_count; count++) {
			uint32_t touched = tally->touched[--tally->touched_count];

			cells[count] = (struct stack_total){.heap = tally->heap};
			if (touched % 2)
				take_known(&tally->stacks[touched / 2], &cells[count]);
			else
				rc = take_bare(tally, &tally->ids[touched / 2], &cells[count]);
		}
		if (!rc)
			rc = shared_stacks_count(tally->pool, cells, count, tally->take_away);
	}
	return rc;
}

int tally_reset(struct thread_counts *tally)
{
	if (tally_flush(tally)) {
		tally->no_memory = true;
		return -ERR_NOMEM;
	}
	memset(tally->slots, 0, tally->slot_count * sizeof(*tally->slots));
	tally->count = 0;
	return 0;
}
