/*
 * Segment heaps: what the parts of their walker share.
 *
 * A heap's memory is ranges of pages (segment_ranges.c), each of which is a block, a VS subsegment
 * (segment_vs.c) or an LFH subsegment (segment_lfh.c); LFH subsegments also lie in chunks of VS
 * ones. Large blocks hang on a tree (segment_large.c). The keys are the process's: they are
 * recovered from all its heaps before the first is walked (segment_keys.c, segment_lfh_key.c).
 *
 * Functions return 0, also when they met what makes no sense (it is noted with walk_broken()), or
 * -ERR_NOMEM.
 */
#ifndef SNAPSHOT_HEAP_SEGMENT_HEAP_H
#define SNAPSHOT_HEAP_SEGMENT_HEAP_H

#include "snapshot/heap/claim_run.h"
#include "snapshot/heap/nt_heap.h"
#include "snapshot/heap/segment/segment_layout.h"

struct segment_heap {
	struct nt_walk *nt;
	const struct segment_layout *layout;
	const struct segment_parts *parts;
	uint64_t addr;
	struct claim_run run;
	struct claim records; /* a range of memory that is there, where a stack's record was */
	uint64_t vs_ranges; /* VS subsegments met */
};

/* Notes what is wrong with what begins at addr: that it is not there, or else the literal. Returns 0. */
int segment_fault(const struct segment_heap *heap, uint64_t addr, const char *what);

/* A count of pages in the heap's own structure, as bytes; 0 when it cannot be. */
uint64_t segment_pages_at(const struct segment_heap *heap, uint16_t field);

/* Finds the layout of the heap at addr. False: none fits. */
bool segment_heap_open(struct segment_heap *heap, struct nt_walk *nt, uint64_t addr);

/* A run of pages that the back end gave out. */
struct segment_range {
	uint64_t addr, bytes, unused_bytes;
	unsigned flags;
	bool has_extra;
};

/* Calls range() with every range in use; when it returns something else than 0 that is the end.
 * segment(), when there is one, is called before with each page segment's address, and answers
 * whether its ranges are wanted, or a negative error. */
#define SEGMENT_SKIP 0
#define SEGMENT_TAKE 1
#define SEGMENT_STOP 2 /* that is the end */

struct segment_visit {
	int (*segment)(void *ctx, uint64_t addr, uint64_t seg_context);
	int (*range)(void *ctx, const struct segment_range *range);
	void *ctx;
};

int segment_ranges_walk(struct segment_heap *heap, const struct segment_visit *visit);

/* The key that the page segment at addr is signed with, when it belongs to the context. */
bool segment_page_key(
	struct segment_heap *heap, uint64_t addr, uint64_t seg_context, uint64_t *key);

/* ---- VS: chunks one after the other. */
struct vs_chunk {
	uint64_t addr, bytes; /* with its header */
	bool is_allocated, is_skipped, has_unused;
};

struct vs_cursor {
	struct segment_heap *heap;
	uint64_t key; /* the heap key */
	uint64_t next, end, limit; /* limit: of the range that the subsegment lies in */
	uint64_t previous_units; /* of the chunk before; 0: there is none */
	const char *broken; /* why it ended, or NULL */
};

/* A subsegment at addr in a range of that many bytes. False: it is none. */
bool vs_cursor_init(struct vs_cursor *cursor, struct segment_heap *heap, uint64_t key,
	uint64_t addr, uint64_t range_bytes);
bool vs_cursor_next(struct vs_cursor *cursor, struct vs_chunk *chunk);

/* The LFH subsegment that is a chunk's content, if it is one: 1 and its range, or 0. */
int vs_chunk_lfh(
	struct segment_heap *heap, const struct vs_chunk *chunk, uint64_t *addr, uint64_t *bytes);
int segment_vs_walk(struct segment_heap *heap, uint64_t addr, uint64_t range_bytes);

/* How many subsegments the VS context lists. */
uint64_t segment_vs_listed(struct segment_heap *heap);

/* ---- LFH. */
struct lfh_sample {
	uint64_t addr, bytes;
	uint32_t free_count, block_count, header_bytes; /* header with bitmap */
	uint32_t encoded, withheld_count;
	int bucket; /* -1: not known */
};

struct lfh_offsets {
	uint32_t block_bytes, first;
};

/* Reads a subsegment's header. False: it cannot be one. */
bool lfh_sample_read(
	struct segment_heap *heap, uint64_t addr, uint64_t bytes, struct lfh_sample *sample);
struct lfh_offsets lfh_decode(const struct lfh_sample *sample, uint32_t key, bool is_wide);
bool lfh_offsets_fit(const struct segment_parts *parts, const struct lfh_sample *sample,
	const struct lfh_offsets *offsets);
int segment_lfh_walk(struct segment_heap *heap, uint64_t addr, uint64_t bytes);

/* Notes when what is said to be something else is, in every respect, an LFH subsegment with live
 * blocks. 0 or -ERR_NOMEM. */
int segment_lfh_notice(struct segment_heap *heap, uint64_t addr, uint64_t bytes);

/* The size that blocks of a bucket have; 0: there is no such bucket. */
uint32_t lfh_bucket_bytes(const struct segment_parts *parts, int bucket);

/* Whether most samples, which may be of several heaps of one bitness, make sense with the key, and which
 * mask they then have. */
bool lfh_key_fits(struct segment_heap *heap, const struct lfh_sample *samples, size_t count,
	uint32_t key, bool *is_wide);

/* Guesses the LFH's key from samples. False: what they say fits several keys about as well. */
bool lfh_key_guess(struct segment_heap *heap, const struct lfh_sample *samples, size_t count,
	uint32_t *key, bool *is_wide);

/* Looks in ntdll's writable data for the heap key, and asks fits() of what stands there as the LFH's.
 * False: there is none that fits. */
struct segment_globals {
	uint64_t heap_key;
	bool (*fits)(void *ctx, uint32_t lfh_key);
	void *ctx;
};

bool segment_globals_find(struct nt_walk *nt, const struct segment_parts *parts,
	const struct segment_globals *wanted);

/* ---- the rest */
int segment_large_walk(struct segment_heap *heap);

/* Recovers the process's keys, once: those of page segments and VS chunks; that of the LFH. */
int segment_keys_find(struct nt_walk *nt);
int segment_lfh_key_find(struct nt_walk *nt);

/* What the last two bytes of a block that is not all used say. */
struct segment_tail {
	uint64_t unused_bytes;
	bool has_extra, is_lfh; /* is_lfh: of VS chunks */
};

enum segment_tail_kind { SEGMENT_TAIL_LFH, SEGMENT_TAIL_VS };

/* False when bytes bytes before end cannot have that tail. */
bool segment_tail_read(struct segment_heap *heap, uint64_t end, uint64_t bytes,
	enum segment_tail_kind kind, struct segment_tail *tail);

/* A live block: user bytes from addr on, of which the last unused_bytes are not. */
struct segment_block {
	uint64_t addr, bytes, unused_bytes;
	uint64_t header_bytes; /* before addr */
	bool has_extra;
};

int segment_block_add(struct segment_heap *heap, const struct segment_block *block);

/* The same without a claim. */
int segment_block_list(struct segment_heap *heap, const struct segment_block *block);

/* Whether a stack's mark stands in an unused tail, whatever it leads to. */
bool segment_mark_is_there(struct segment_heap *heap, uint64_t tail, uint64_t tail_bytes);

/* Where the record of a block's stack lies, as its unused tail says; 0: nowhere. A tail that should lead
 * to one and does not is noted. */
uint64_t segment_record_find(struct segment_heap *heap, uint64_t tail, uint64_t tail_bytes);

#endif
