/*
 * Which blocks something in the process leads to. Conservative: every aligned word that is an address inside a block
 * is a pointer to it. In a 64-bit process so are parts of a word: its lower 47 bits, where it has a tag above them, and
 * each half of it, in which programs keep addresses below 4 GiB. Memory is shown once, from low addresses to high; what
 * is kept of it is who points to whom.
 */
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
		reach; /* of blocks that lead to each other in a circle the first is lost */
	uint64_t with; /* BLOCK_LOST_WITH: the address of the lost block that leads to it */
};

/* End of the addresses that numbers look like: sizes, counters, characters. A pointer into the middle of a block there
 * never counts, for a block of some size has an address like that of any small number. */
#define REACH_LOW ((uint64_t)1 << 20)

struct reach;

/* For a process of that many bits, and about so many blocks. by_middle: a pointer into a block's middle counts
 * from REACH_LOW on. */
struct reach *reach_new(unsigned bits, bool by_middle, size_t count);
void reach_free(struct reach *reach); /* NULL is nothing */

/* Adds a block; all of them, in any order, before memory is shown. Those that overlap end where the next begins. One
 * of no bytes has one. */
void reach_add(struct reach *reach, uint64_t addr, uint64_t bytes);
void reach_ready(struct reach *reach);

/* Whether a block lies in part in from..end. */
bool reach_has_block(const struct reach *reach, uint64_t from, uint64_t end);

/* Shows bytes of memory, from addr on, which is behind all that was shown before. What lies in no block leads to
 * others if is_root. */
void reach_show(
	struct reach *reach, uint64_t addr, const unsigned char *bytes, size_t len, bool is_root);

/* A word that leads to whatever it is the address of: a register. */
void reach_root(struct reach *reach, uint64_t word);

/* Finds what leads to each. 0, or -ERR_LIMIT: there are more pointers than are kept. */
int reach_settle(struct reach *reach, const char *name, struct err *err);

/* Number of the blocks that only parts of words lead to; they are held. */
size_t reach_part_count(const struct reach *reach);

/* Of the block that was added as number i. */
struct reach_found reach_of(const struct reach *reach, size_t i);

/*
 * All of that of a process: its memory is read once, while it is held. Roots are what lies in no heap (of modules what can
 * be written, stacks from their pointers on, all other pages except read-only views), and what threads have in registers.
 */

struct reach_taken {
	struct reach *
		reach; /* the caller's, to be settled when the process runs again; its blocks are those of the walk */
	size_t thread_count, unseen_count; /* of them, those whose registers are not known */
	uint64_t unread_bytes; /* that could not be read */
	size_t low_count; /* blocks below REACH_LOW */
};

/* The region that addr lies in, from there on; empty: none. */
struct target_range reach_apart_from(struct target *target, uint64_t addr);

/* apart: memory that leads nowhere, as it is not the program's. 0, -ERR_TARGET or -ERR_SYSTEM; reach_free() in each case. */
int reach_take(struct target *target, const struct walk *walk, bool by_middle,
	const struct target_range *apart, size_t apart_count, struct reach_taken *taken,
	struct err *err);

#endif
