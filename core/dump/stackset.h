/*
 * The stacks of one dump, by id.
 *
 * An id is a label: opaque text, and one id may stand for several stacks (UMDH's ids are short and
 * wrap around). Stacks are kept separately for each id. Equal stacks under different ids are not
 * merged here; that is left to the reader.
 */
#ifndef CORE_DUMP_STACKSET_H
#define CORE_DUMP_STACKSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/text.h"

#define STACK_NONE UINT32_MAX

/* 32 bytes, because there are millions. A stack has at most 1024 frames: DUMP_FRAMES_MAX,
 * RECORD_FRAMES_MAX. */
struct stack {
	const char *id;
	/* Return addresses, innermost first: uint64_t, or packed by stack_frames_keep(); read them
	 * with stack_frame(). NULL: no line of the dump has them yet. */
	const void *frames;
	/* Further candidates under this id ("Alias" in UMDH's logs), one of which is the true
	 * stack. Candidate k is frames[alias_at[k]..alias_at[k + 1]); the first starts at 0. In a
	 * stack set every candidate has frames. */
	const uint32_t *alias_at;
	uint32_t same_id; /* the next stack with this id, or STACK_NONE */
	uint16_t frame_count;
	uint16_t alias_count : 12;
	/* Bytes by which packed frames are shorter than uint64_t; unless 0, a base to add follows
	 * the frames. */
	uint16_t frame_cut : 3;
	/* frames are not addresses but numbers of texts, which the owner of the set knows */
	uint16_t is_named : 1;
};

#define FRAME_WIDTH sizeof(uint64_t)

static inline uint64_t stack_frame(const struct stack *stack, uint32_t index)
{
	const char *frames = stack->frames;
	size_t cut = stack->frame_cut, width = FRAME_WIDTH - cut;
	uint64_t frame;

	if (!cut) {
		memcpy(&frame, frames + index * FRAME_WIDTH, FRAME_WIDTH);
		return frame;
	}
	frame = hex_load(frames + index * width) & UINT64_MAX >> 8 * cut;
	return frame + hex_load(frames + stack->frame_count * width);
}

/* Copies frames into arena, packed: addresses of one process are mostly close to each other. */
void stack_frames_keep(struct stack *to, const struct stack *from, struct arena *arena);

/* Returns the packed bytes, equal for equal frames; none for a stack without frames. */
static inline const char *stack_frames_kept(const struct stack *stack, size_t *len)
{
	size_t cut = stack->frame_cut;

	*len = stack->frame_count * (FRAME_WIDTH - cut) + (cut ? FRAME_WIDTH : 0);
	return stack->frames;
}

/* Returns true if two stacks have the same frames and the same candidates. */
bool stack_same_frames(const struct stack *a, const struct stack *b);

struct stackset {
	struct arena arena;
	struct hash_index ids; /* the first stack of each id */
	struct table behind; /* stacks far down the list of their id */
	struct stack *stacks;
	size_t count, cap;
};

void stackset_init(struct stackset *set);
void stackset_release(struct stackset *set);

/* Frees what only stackset_put() needs; do not call that afterwards. are_elsewhere: also frees the
 * memory of ids, frames and candidates, because the stacks point to other memory now. */
void stackset_close(struct stackset *set, bool are_elsewhere);

/* Finds or adds the stack of an entry: by id alone if frames is NULL (the first stack of that id),
 * otherwise by id and frames. Candidates without frames are ignored. Everything is copied. *index
 * is an index into set->stacks. */
void stackset_put(struct stackset *set, const struct stack *wanted, size_t id_len, uint32_t *index);

/* The two steps of stackset_put(), for many stacks at once. The hash of an id is constant while the
 * set lives. */
uint32_t stackset_hash(const struct stackset *set, const char *id, size_t id_len);
uint32_t stackset_put_hashed(
	struct stackset *set, uint32_t hash, const struct stack *wanted, size_t id_len);

/* Prefetches the data of an id, in steps 0, 1 and 2 with other work between them. */
void stackset_prefetch(const struct stackset *set, uint32_t hash, unsigned step);

#endif
