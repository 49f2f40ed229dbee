/* Reading a dump into sums: declarations shared within diff/read/. */
#ifndef DIFF_READ_READ_DUMP_H
#define DIFF_READ_READ_DUMP_H

#include <stdint.h>

#include "core/base/hash.h"
#include "core/dump/dump.h"
#include "core/dump/dump_head.h"
#include "core/dump/model.h"
#include "core/dump/source.h"
#include "diff/read/count.h"
#include "diff/read/dump_sums.h"

struct sum_reader {
	struct dump_sums *sums;
	struct err *err;
	struct dump_head head; /* filled from the notes read so far */
	struct balance balance; /* of the process */
	struct module_list modules;
	struct shared_stacks pool;
	uint64_t heap_addr; /* heap of the current entries */
	struct thread_counts tally; /* counts of the thread that reads in order */
	struct table texts; /* maps frame text to frame number */
	size_t text_cap, listed_cap, content_cap, pointer_cap, container_cap;
	struct dump_scanner *scanner;
	/* Blocks without a stack that are in no group yet: maps the address of a heap to an index in
	 * `ungrouped`. */
	struct u64map ungrouped_numbers;
	struct ungrouped {
		struct block_totals held, lost;
	} * ungrouped;
	size_t ungrouped_count, ungrouped_cap;
	struct stackless_group *groups; /* notes about such blocks, in the order of the dump */
	size_t group_count, group_cap;
	bool is_over; /* the sums overflow */
	bool has_code_page; /* some names are not UTF-8 */
};

/* Adds to a total. Fails if the total exceeds a limit. The limit ensures that the difference of two
 * totals fits in a signed number. */
int sum_reader_add(struct block_totals *total, const struct block_totals *more);

/* Adds to the dump's total. Must be called before `more` is counted anywhere else. If the total
 * does not overflow, no partial sum can overflow. Returns 0, or -ERR_BAD_LINE after filling the
 * reader's `err`. */
int sum_reader_total(struct sum_reader *reader, const struct block_totals *more);

/* Sets the heap of the blocks that follow, and how these blocks can be reached. Returns 0. */
int sum_reader_heap(struct sum_reader *reader, uint64_t addr, enum block_reach reach);

/* Reads a note of the dump. See struct dump_sink. */
int sum_reader_note(void *ctx, const char *kind, const struct kv *kv);

/* Adds a warning. Copies the text. */
void sums_warn(struct dump_sums *sums, const char *text);

/* Counts a malformed line that was skipped, and adds a warning that contains the line number. The
 * report prints the file name before the warning. */
void sums_add_skipped(struct dump_sums *sums, const struct err *why);

/* Division of a file between threads. */
struct read_plan {
	unsigned threads;
	uint64_t piece_bytes;
	uint64_t from, to; /* range of the text in the file, as offsets */
};

/* Reads a plain source with several threads. The reader's scanner reads all lines that are not
 * plain entries, in order. Returns READ_IN_ORDER if the text cannot be divided; the caller must
 * then discard the data read so far. Otherwise, returns the same values as dump_scanner_read(). */
#define READ_IN_ORDER 1
int reader_threads_read(
	struct sum_reader *reader, struct source *source, const struct read_plan *plan);

/* Like sums_read(), but divides the file according to `plan`, regardless of its size. If `plan` is
 * NULL, reads the file in order with one thread. */
int sums_read_by(struct dump_sums *sums, const char *path, struct source *source,
	const struct read_plan *plan, struct err *err);

#endif
