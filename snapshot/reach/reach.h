/*
 * Search for the blocks to which something in the process points. It is conservative: every aligned
 * word that is an address inside a block counts as a pointer to it. In a 64-bit process parts of a
 * word count too: its lower 47 bits, if it has a tag above them, and each half, in which programs
 * store addresses below 4 GiB. Memory is shown once, in ascending order; only the pointers between
 * blocks are stored. */
#ifndef SNAPSHOT_REACH_REACH_H
#define SNAPSHOT_REACH_REACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/dump/model.h"
#include "snapshot/heap/heap.h"
#include "snapshot/target/target.h"

struct reach_found {
	enum block_reach
		reach; /* among blocks that point to each other in a circle, the first is lost */
	uint64_t with; /* BLOCK_LOST_WITH: address of the lost block that leads to it */
};

/* End of the addresses that ordinary numbers look like: sizes, counters, characters. A pointer into
 * the middle of a block below never counts, because a block of some size contains an address for
 * any small number. */
#define REACH_LOW ((uint64_t)1 << 20)

struct reach;

/* Creates a search for a process of that bitness with about `count` blocks. by_middle: a pointer
 * into the middle of a block counts from REACH_LOW on. */
struct reach *reach_new(unsigned bits, bool by_middle, size_t count);
void reach_free(struct reach *reach); /* accepts NULL */

/* Adds a block. All blocks are added, in any order, before reach_ready() and before memory is
 * shown. Blocks that overlap end where the next begins. An empty block counts as one byte. */
void reach_add(struct reach *reach, uint64_t addr, uint64_t bytes);
void reach_ready(struct reach *reach);

bool reach_has_block(const struct reach *reach, uint64_t from, uint64_t end);

/* Shows bytes of memory from addr on, above all memory shown before. is_root: bytes outside of
 * blocks count as pointers too. */
void reach_show(
	struct reach *reach, uint64_t addr, const unsigned char *bytes, size_t len, bool is_root);

/* Adds a root word, such as a register. */
void reach_root(struct reach *reach, uint64_t word);

/* Determines what leads to each block. Returns 0, or -ERR_LIMIT if there are too many pointers to
 * store. */
int reach_settle(struct reach *reach, const char *name, struct err *err);

/* Returns the number of blocks to which only parts of words lead; they are held. */
size_t reach_part_count(const struct reach *reach);

/* Returns the result for the block that was added as number i. */
struct reach_found reach_of(const struct reach *reach, size_t i);

/*
 * The complete search in a process, whose memory is read once, while it is held. Roots are the
 * registers of threads and memory outside of heaps. That memory is the writable parts of modules,
 * stacks from the stack pointer on, and all other pages except read-only views. */

struct reach_taken {
	/* Owned by the caller, who calls reach_settle() after the process was resumed; its blocks
	 * are the walk's. */
	struct reach *reach;
	size_t thread_count, unseen_count; /* threads, and threads whose registers are unknown */
	uint64_t unread_bytes; /* bytes that could not be read */
	size_t low_count; /* blocks below REACH_LOW */
};

/* Returns the rest of the region that contains addr, from addr on; empty if there is no such
 * region. */
struct target_range reach_apart_from(struct target *target, uint64_t addr);

/* Shows a process to a new search. apart: memory that does not belong to the program and leads
 * nowhere. Returns 0, -ERR_TARGET or -ERR_SYSTEM; reach_free() is required in each case. */
int reach_take(struct target *target, const struct walk *walk, bool by_middle,
	const struct target_range *apart, size_t apart_count, struct reach_taken *taken,
	struct err *err);

#endif
