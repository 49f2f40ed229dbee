/* Contents of some blocks of each stack: the first bytes of these blocks, and the words in them
 * that point to other blocks. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/sorted.h"
#include "snapshot/capture/capture_parts.h"

struct content_word {
	uint64_t value;
	uint32_t content, offset;
	uint32_t block; /* index of the block to which the word points, or NO_BLOCK */
};

#define NO_BLOCK UINT32_MAX

void content_add(struct target *target, struct block_content content, struct snapshot *snapshot)
{
	content.len = content.requested_bytes < CONTENT_BYTES_MAX ?
			      (uint32_t)content.requested_bytes :
			      CONTENT_BYTES_MAX;
	if (!content.len || target_read(target, content.addr, content.bytes, content.len))
		return;
	array_grow((void **)&snapshot->contents, &snapshot->content_cap, snapshot->content_count,
		sizeof(*snapshot->contents));
	snapshot->contents[snapshot->content_count++] = content;
}

bool content_is_chosen(uint64_t at, uint64_t of, unsigned count)
{
	return of <= count || at * count / of != (at + 1) * count / of;
}

/* Stores the first bytes of `count` blocks per stack. */
static void copy_contents(struct target *target, unsigned count, struct snapshot *snapshot)
{
	uint64_t *total = xcalloc(snapshot->stacks.count + 1, sizeof(*total));
	uint64_t *seen = xcalloc(snapshot->stacks.count + 1, sizeof(*seen));

	for (size_t i = 0; i < snapshot->block_count; i++)
		total[snapshot->blocks[i].stack]++;
	for (size_t i = 0; i < snapshot->block_count; i++) {
		const struct block *block = &snapshot->blocks[i];

		if (content_is_chosen(seen[block->stack]++, total[block->stack], count))
			content_add(target,
				(struct block_content){.addr = block->addr,
					.requested_bytes = block->requested_bytes,
					.stack = block->stack},
				snapshot);
	}
	free(total);
	free(seen);
}

static int by_stack(const void *a, const void *b)
{
	const struct block_content *x = a, *y = b;

	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int by_value(const void *a, const void *b)
{
	const struct content_word *x = a, *y = b;

	return x->value < y->value ? -1 : x->value > y->value;
}

static int by_place(const void *a, const void *b)
{
	const struct content_word *x = a, *y = b;

	if (x->content != y->content)
		return x->content < y->content ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static struct content_word *list_words(const struct snapshot *snapshot, size_t *count)
{
	const uint32_t step = snapshot->bits / 8;
	struct content_word *words =
		xcalloc(snapshot->content_count * (CONTENT_BYTES_MAX / 4) + 1, sizeof(*words));

	*count = 0;
	for (size_t i = 0; i < snapshot->content_count; i++) {
		const struct block_content *content = &snapshot->contents[i];

		for (uint32_t at = 0; at + step <= content->len; at += step) {
			uint64_t value = step == 8 ? bytes_u64(content->bytes + at) :
						     bytes_u32(content->bytes + at);

			words[(*count)++] = (struct content_word){value, (uint32_t)i, at, NO_BLOCK};
		}
	}
	return words;
}

/* Finds the block to which each word points. There are many blocks and few words, so each block is
 * looked up in the sorted words. */
static void find_blocks(const struct snapshot *snapshot, struct content_word *words, size_t count)
{
	for (size_t i = 0; i < snapshot->block_count; i++) {
		const struct block *block = &snapshot->blocks[i];
		size_t at = sorted_below(words, count, sizeof(*words),
			offsetof(struct content_word, value), block->addr);

		for (; at < count && words[at].value - block->addr < block->requested_bytes; at++) {
			if (words[at].block == NO_BLOCK)
				words[at].block = (uint32_t)i;
		}
	}
}

void content_capture(struct target *target, unsigned count, struct snapshot *snapshot)
{
	struct content_word *words;
	size_t word_count;

	copy_contents(target, count, snapshot);
	if (!snapshot->content_count)
		return;
	qsort(snapshot->contents, snapshot->content_count, sizeof(*snapshot->contents), by_stack);
	words = list_words(snapshot, &word_count);
	qsort(words, word_count, sizeof(*words), by_value);
	find_blocks(snapshot, words, word_count);
	qsort(words, word_count, sizeof(*words), by_place);
	for (size_t i = 0; i < word_count; i++) {
		const struct block *to;

		if (words[i].block == NO_BLOCK)
			continue;
		to = &snapshot->blocks[words[i].block];
		array_grow((void **)&snapshot->pointers, &snapshot->pointer_cap,
			snapshot->pointer_count, sizeof(*snapshot->pointers));
		snapshot->pointers[snapshot->pointer_count++] =
			(struct content_pointer){words[i].content, words[i].offset, to->addr,
				to->requested_bytes, to->stack};
	}
	free(words);
}
