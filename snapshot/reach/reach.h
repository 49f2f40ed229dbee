/*
 * Search for the blocks to which something in the process points.
 *
 * The search is conservative: every aligned word that is an address inside a block counts as a
 * pointer to that block. In a 64-bit process, parts of a word count too. If the upper bits of a
 * word may be a tag, the lower 47 bits count. Each half of a word also counts, because programs
 * store addresses below 4 GiB in halves. The caller shows memory to the search once, in ascending
 * order. Only the pointers between blocks are stored.
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
	enum block_reach reach; /* for blocks in a cycle, only the first is BLOCK_LOST */
	/* Address of the lost block from which this block is reachable. Used for
	 * BLOCK_LOST_WITH. */
	uint64_t with;
};

/* Addresses below this limit look like ordinary numbers: sizes, counters, characters. So a pointer
 * into the middle of a block below the limit never counts. Otherwise every small number would look
 * like a pointer to some block. */
#define REACH_LOW ((uint64_t)1 << 20)

struct reach;

/* Creates a search for a process of the given bitness with about `count` blocks. `by_middle`:
 * pointers into the middle of a block count if they are at or above REACH_LOW. */
struct reach *reach_new(unsigned bits, bool by_middle, size_t count);
void reach_free(struct reach *reach); /* accepts NULL */

/* Adds a block. All blocks must be added, in any order, before reach_ready() is called and memory
 * is shown. If blocks overlap, each block ends where the next begins. An empty block counts as one
 * byte. */
void reach_add(struct reach *reach, uint64_t addr, uint64_t bytes);
void reach_ready(struct reach *reach);

bool reach_has_block(const struct reach *reach, uint64_t from, uint64_t end);

/* Shows `len` bytes of memory at `addr` to the search. `addr` must be above all memory shown
 * before. `is_root`: words outside blocks count as pointers too. */
void reach_show(
	struct reach *reach, uint64_t addr, const unsigned char *bytes, size_t len, bool is_root);

/* Adds a root word, such as a register. */
void reach_root(struct reach *reach, uint64_t word);

/* Determines the result for each block. Returns 0, or -ERR_LIMIT if there are too many pointers to
 * store. */
int reach_resolve(struct reach *reach, const char *name, struct err *err);

/* Returns the number of blocks that are held only through parts of words. */
size_t reach_part_count(const struct reach *reach);

/* Returns the result for block number `i`. Blocks are numbered from 0, in the order in which they
 * were added. */
struct reach_found reach_of(const struct reach *reach, size_t i);

/*
 * The complete search in a process. Memory is read once, while the process is held. Roots are the
 * registers of threads and the memory outside heaps: the writable parts of modules, stacks above
 * the stack pointer, and all other pages except read-only views.
 */

struct reach_taken {
	/* Owned by the caller, who calls reach_resolve() after the process has been resumed. The
	 * blocks in it are those of the walk, in the same order. */
	struct reach *reach;
	/* Number of threads, and number of threads whose registers are unknown. */
	size_t thread_count, unseen_count;
	uint64_t unread_bytes; /* number of bytes that could not be read */
	size_t low_count; /* number of blocks below REACH_LOW */
};

/* Returns the part of a region that begins at `addr`. The range is empty if `addr` is in no
 * region. */
struct target_range reach_apart_from(struct target *target, uint64_t addr);

/* Creates a search and shows the process to it. `apart` is memory that does not belong to the
 * program, so its words do not count. Returns 0, -ERR_TARGET or -ERR_SYSTEM. The caller must always
 * call reach_free(). */
int reach_capture(struct target *target, const struct walk *walk, bool by_middle,
	const struct target_range *apart, size_t apart_count, struct reach_taken *taken,
	struct err *err);

#endif
