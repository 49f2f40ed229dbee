/*
 * The stacks of one dump, by id.
 *
 * An id is a label: opaque text. One id may stand for several stacks, because UMDH's ids are short
 * and wrap around. Stacks are stored separately for each id. Equal stacks with different ids are
 * not merged here; readers of the dump merge them.
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

/* Packed into 32 bytes, because a dump has millions of stacks. A stack has at most 1024 frames:
 * DUMP_FRAMES_MAX, RECORD_FRAMES_MAX. */
struct stack {
	const char *id;
	/* Return addresses, innermost first: an array of uint64_t, or packed by the set. Read them
	 * with stack_frame(). NULL: the dump has not listed the frames yet. */
	const void *frames;
	/* Start of each additional candidate stack with this id ("Alias" in UMDH's logs). Only one
	 * candidate is the true stack. Candidate k is frames[alias_at[k]..alias_at[k + 1]); the
	 * first candidate starts at 0. In a stack set every candidate has frames. */
	const uint32_t *alias_at;
	uint32_t same_id; /* next stack with this id, or STACK_NONE */
	uint16_t frame_count;
	uint16_t alias_count : 12;
	/* Number of bytes saved per packed frame, compared with uint64_t. If nonzero, each frame is
	 * stored as its distance from a base, which is stored after the frames. */
	uint16_t frame_cut : 3;
	/* `frames` contains string numbers instead of addresses; only the owner of the set can
	 * resolve them */
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

/* Returns the packed bytes, which are equal for equal frames. *len is 0 for a stack without
 * frames. */
static inline const char *stack_frames_kept(const struct stack *stack, size_t *len)
{
	size_t cut = stack->frame_cut;

	*len = stack->frame_count * (FRAME_WIDTH - cut) + (cut ? FRAME_WIDTH : 0);
	return stack->frames;
}

/* Returns true if two stacks have the same frames and candidates. */
bool stack_same_frames(const struct stack *a, const struct stack *b);

struct stackset {
	struct arena arena;
	struct hash_index ids; /* maps each id to its first stack */
	struct table behind; /* stacks that are far down in the list of their id */
	struct stack *stacks;
	size_t count, cap;
};

void stackset_init(struct stackset *set);
void stackset_release(struct stackset *set);

/* Frees the memory that only stackset_add() needs. Do not call stackset_add() afterwards. Set
 * `are_elsewhere` if the stacks now point to other memory: the memory of ids, frames and candidates
 * is then freed too. */
void stackset_close(struct stackset *set, bool are_elsewhere);

/* Finds or adds the stack of an entry and sets `*index` to its index in set->stacks. If
 * `wanted->frames` is NULL, finds the first stack with that id; otherwise compares id and frames,
 * and ignores candidates without frames. Copies everything that it adds. */
void stackset_add(struct stackset *set, const struct stack *wanted, size_t id_len, uint32_t *index);

/* The two steps of stackset_add(), for adding many stacks at once. An id has the same hash
 * throughout the life of the set. */
uint32_t stackset_hash(const struct stackset *set, const char *id, size_t id_len);
uint32_t stackset_add_hashed(
	struct stackset *set, uint32_t hash, const struct stack *wanted, size_t id_len);

/* Prefetches the data for an id. Call it with step 0, 1 and 2 in turn, and do other work between
 * the calls. */
void stackset_prefetch(const struct stackset *set, uint32_t hash, unsigned step);

#endif
