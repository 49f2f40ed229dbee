/*
 * Reading a dump into sums: what its parts share, for diff/read/ alone.
 */
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
	struct dump_head head; /* what the notes told so far */
	struct module_list modules;
	struct shared_stacks pool;
	uint64_t heap_addr; /* of what is read */
	struct thread_counts tally; /* of what is read in order */
	struct table texts; /* frames that are given as text, to their numbers */
	size_t text_cap, listed_cap, content_cap, pointer_cap;
	struct dump_scanner *scanner;
	bool is_over; /* the sums do not fit */
	bool has_code_page; /* there are names that are not UTF-8 */
};

/* Counts to the total of the dump, before anything counts to its parts: these cannot overflow when
 * that does not. 0, or -ERR_BAD_LINE with the reader's err filled. */
int sum_reader_total(struct sum_reader *reader, const struct block_totals *more);

/* What is read from now on are blocks of this heap, to which that leads: 0. */
int sum_reader_heap(struct sum_reader *reader, uint64_t addr, enum block_reach reach);

/* Notes: what the dump says about itself. See struct dump_sink. */
int sum_reader_note(void *ctx, const char *kind, const struct kv *kv);

/* Keeps a sentence for the reader of the report. */
void sums_warn(struct dump_sums *sums, const char *text);

/* How a file is cut for several threads. */
struct read_plan {
	unsigned threads;
	uint64_t piece_bytes;
	uint64_t from, to; /* the text's place in the file */
};

/*
 * Has several threads read a plain source, with the reader's scanner for all that is not plain
 * entries, in order. Returns as dump_scanner_read(), or READ_IN_ORDER when the text cannot be cut: what was
 * read is then of no use.
 */
#define READ_IN_ORDER 1
int reader_threads_read(
	struct sum_reader *reader, struct source *source, const struct read_plan *plan);

/* As sums_read(), by this plan, whatever the size; NULL: one thread, in order. */
int sums_read_by(struct dump_sums *sums, const char *path, struct source *source,
	const struct read_plan *plan, struct err *err);

#endif
