/* Sums of stacks whose frames are texts: numbers of the texts, and a cell for each stack. */
#include "diff/read/text_sums.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/dump/dump.h"
#include "diff/read/read_dump.h"

/* FNV-1a. */
#define HASH_START UINT32_C(0x811c9dc5)

static uint32_t mix(uint32_t hash, uint32_t value)
{
	return (hash ^ value) * UINT32_C(0x01000193);
}

void text_sums_begin(struct text_sums *texts, struct dump_sums *sums, const char *path)
{
	*texts = (struct text_sums){.sums = sums};
	table_init(&texts->texts);
	u64map_init(&texts->cells);
	sums_init(sums);
	sums->id.path = arena_text(&sums->arena, path, strlen(path));
	sums->quality.lacks_overhead = true;
	sums->single.has_unlisted = true;
	sums->heaps = xcalloc(1, sizeof(*sums->heaps));
	sums->heap_count = 1;
}

void text_sums_end(struct text_sums *texts)
{
	stackset_close(&texts->sums->stacks, false);
	table_release(&texts->texts);
	u64map_release(&texts->cells);
	free(texts->hashes);
}

uint64_t text_sums_frame(struct text_sums *texts, const char *text, size_t len)
{
	struct dump_sums *sums = texts->sums;
	const uint64_t *known = table_find(&texts->texts, text, len);
	uint32_t hash = HASH_START;
	char *copy;

	if (known)
		return *known;
	table_add(&texts->texts, text, len, sums->text_count);
	array_grow((void **)&sums->texts, &texts->text_cap, sums->text_count, sizeof(*sums->texts));
	array_grow((void **)&texts->hashes, &texts->hash_cap, sums->text_count,
		sizeof(*texts->hashes));
	copy = arena_text(&sums->arena, text, len);
	for (size_t i = 0; i < len; i++) {
		copy[i] = (unsigned char)copy[i] < ' ' ? ' ' : copy[i];
		hash = mix(hash, (unsigned char)copy[i]);
	}
	texts->hashes[sums->text_count] = hash;
	sums->texts[sums->text_count] = copy;
	return sums->text_count++;
}

static int add_cell(struct text_sums *texts, uint32_t stack, const struct block_totals *blocks)
{
	struct dump_sums *sums = texts->sums;
	uint32_t cell = (uint32_t)sums->cell_count;

	if (sum_reader_add(&sums->total, blocks))
		return -1;
	if (u64map_add(&texts->cells, stack, &cell)) {
		array_grow((void **)&sums->cells, &texts->cell_cap, sums->cell_count,
			sizeof(*sums->cells));
		sums->cells[sums->cell_count++] = (struct stack_total){.stack = stack};
	}
	block_totals_add(&sums->cells[cell].sums, blocks);
	return 0;
}

int text_sums_add(struct text_sums *texts, const char *id, const uint64_t *frames, size_t count,
	const struct block_totals *blocks)
{
	struct dump_sums *sums = texts->sums;
	struct stack stack = {.id = id,
		.same_id = STACK_NONE,
		.frames = count ? frames : NULL,
		.frame_count = (uint16_t)count,
		.is_named = count > 0};
	uint32_t hash = HASH_START, index;
	char made[9];

	if (!id) { /* a stack has the same id in every file */
		for (size_t i = 0; i < count; i++)
			hash = mix(hash, texts->hashes[frames[i]]);
		snprintf(made, sizeof(made), "%" PRIX32, hash);
		stack.id = made;
	}
	stackset_add(&sums->stacks, &stack, strlen(stack.id), &index);
	return add_cell(texts, index, blocks);
}

int text_sums_add_stackless(struct text_sums *texts, const struct block_totals *blocks)
{
	return add_cell(texts, STACK_NONE, blocks);
}
