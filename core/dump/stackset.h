/*
 * The stacks of one dump: what each id stands for.
 *
 * An id is a label: it is opaque text, and one id may stand for several stacks (UMDH's ids are
 * short and wrap). Stacks are kept apart per id; equal stacks under different ids are not merged
 * here, that is the reader's business.
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

/* 32 bytes, for there are millions. No stack has more than 1024 frames: DUMP_FRAMES_MAX, RECORD_FRAMES_MAX. */
struct stack {
	const char *id;
	/* Return addresses, innermost first: of uint64_t, or as stack_frames_keep() packs them, see stack_frame().
	 * NULL: no dump line has given them. */
	const void *frames;
	/* Further candidates under this id ("Alias" in UMDH's logs): the true stack is one of
	 * them. Candidate k is frames[alias_at[k]..alias_at[k + 1]), the first starts at 0. In a
	 * stack set each has frames. */
	const uint32_t *alias_at;
	uint32_t same_id; /* the next stack under this id, or STACK_NONE */
	uint16_t frame_count;
	uint16_t alias_count : 12;
	/* By so many bytes frames are shorter than uint64_t; then what is to be added to each is behind them. */
	uint16_t frame_cut : 3;
	/* frames are no addresses but numbers of texts that whoever fills the set knows. */
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

/* Gives a stack the frames of another one, packed, in arena: addresses of one process are mostly near each other. */
void stack_frames_keep(struct stack *to, const struct stack *from, struct arena *arena);

/* The bytes that it made: equal for equal frames. Of a stack without frames there are none. */
static inline const char *stack_frames_kept(const struct stack *stack, size_t *len)
{
	size_t cut = stack->frame_cut;

	*len = stack->frame_count * (FRAME_WIDTH - cut) + (cut ? FRAME_WIDTH : 0);
	return stack->frames;
}

/* Whether two stacks have the same frames, with the same candidates. */
bool stack_same_frames(const struct stack *a, const struct stack *b);

struct stackset {
	struct arena arena;
	struct hash_index ids; /* the first stack of each id */
	struct table behind; /* stacks that are far behind the first of their id */
	struct stack *stacks;
	size_t count, cap;
};

void stackset_init(struct stackset *set);
void stackset_release(struct stackset *set);

/* Gives back what only stackset_put() needs, which must not be called then; also the memory of ids,
 * frames and candidates when the stacks were made to point elsewhere. */
void stackset_close(struct stackset *set, bool are_elsewhere);

/*
 * Finds or adds the stack that an entry of the dump names: by id alone when frames is NULL (the
 * first stack under that id), else by id and frames. Candidates without frames are none. Everything
 * is copied. *index is one into set->stacks.
 */
void stackset_put(struct stackset *set, const struct stack *wanted, size_t id_len, uint32_t *index);

/* The same in parts, for many stacks at once. The hash of an id does not change while the set lives. */
uint32_t stackset_hash(const struct stackset *set, const char *id, size_t id_len);
uint32_t stackset_put_hashed(
	struct stackset *set, uint32_t hash, const struct stack *wanted, size_t id_len);

/* Has what is known under an id come nearer to the processor, in steps 0, 1 and 2 with other work between them. */
void stackset_prefetch(const struct stackset *set, uint32_t hash, unsigned step);

#endif
