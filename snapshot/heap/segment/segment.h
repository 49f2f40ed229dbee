/* Walker of segment heaps: layouts, and interfaces between the parts of the walker. */
#ifndef SNAPSHOT_HEAP_SEGMENT_SEGMENT_H
#define SNAPSHOT_HEAP_SEGMENT_SEGMENT_H

#include <stddef.h>
#include <stdint.h>

#include "snapshot/heap/claims.h"
#include "snapshot/heap/nt_heap.h"

/*
 * Layouts of the segment heap of Windows 10 and 11: offsets, in bytes, of the fields that the
 * walker reads.
 *
 * A row contains the fields that differ by build, and points to the fields that all builds of one
 * bitness share. The row for a heap is found by probing: the best row is the one with which most
 * pointers and lists are correct. If several rows are equally good, the page ranges decide.
 *
 * Sources: type listings made from public symbols of ntkrnlmp (which shares the heap library) and
 * ntdll; each row names its own sources. A comment next to each number names its structure and
 * field.
 */

/* Fields that are the same in all builds of one bitness. */
struct segment_parts {
	/* `bits` is the size of a pointer, `unit` the granularity of blocks in bytes */
	unsigned bits, unit;
	/* _HEAP_PAGE_SEGMENT */
	uint16_t segment_signature;
	/* _HEAP_PAGE_RANGE_DESCRIPTOR */
	uint16_t range_bytes, range_signature, range_flags;
	/* _HEAP_VS_SUBSEGMENT, _HEAP_VS_CHUNK_HEADER */
	uint16_t vs_size, vs_signature, vs_first_chunk, vs_chunk_bytes, vs_chunk_bits;
	/* _HEAP_LFH_SUBSEGMENT, _HEAP_LFH_SUBSEGMENT_OWNER. If lfh_owner is 0, there is no pointer
	 * to an owner. */
	uint16_t lfh_owner, lfh_free_count, lfh_block_count, lfh_offsets;
	uint16_t lfh_bitmap, owner_bucket;
	/* Used if there is no pointer to an owner: the subsegment's reference to its bucket,
	 * relative to the LFH context, and the context's table of buckets. */
	uint16_t lfh_bucket_ref, lfh_buckets;
	/* True if LFH_HALVES is the likelier form of the bitmap (enum lfh_form). */
	bool lfh_is_halved;
	/* _HEAP_VS_CONTEXT, _HEAP_VS_SLOT_MAP, _HEAP_VS_AFFINITY_SLOT, _HEAP_VS_SUBSEGMENT. If
	 * slot_list is 0, there are no slots, and the context itself has the list. A reference to a
	 * slot, shifted left by slot_shift, is an offset from the context. */
	uint16_t slot_map, slot_mask, slot_shift, slot_map_entry, slot_context, slot_list;
	uint16_t vs_owner;
	/* _HEAP_LARGE_ALLOC_DATA, the _RTL_BALANCED_NODE in it, _RTL_RB_TREE */
	uint16_t large_address, large_pages, node_left, node_right, node_parent, tree_root,
		tree_min;
	/* _SEGMENT_HEAP_EXTRA */
	uint16_t extra_interceptor, extra_units, extra_settable, extra_bytes;
	/* Value of the pointer to a stack's record if there is no record. */
	uint64_t no_record;
	/* ntdll!RtlpHpHeapGlobals */
	uint16_t globals_heap_key, globals_lfh_key;
};

struct segment_layout {
	const char *name;
	const struct segment_parts *parts;
	/* _SEGMENT_HEAP. If committed_pages is 0, the page counts are unknown. */
	uint16_t large_tree, large_reserved, large_committed, reserved_pages, committed_pages;
	/* Two _HEAP_SEG_CONTEXTs. If context_bytes is 0, the heap itself is the only context. */
	uint16_t contexts, context_bytes, vs_context, lfh_context, heap_bytes;
	/* _HEAP_SEG_CONTEXT, or the heap itself, whose UnitShift and FirstDescriptorIndex are
	 * constants. */
	uint16_t unit_shift, first_descriptor, to_lfh, to_vs, to_heap, segment_list;
	/* _HEAP_VS_CONTEXT. If vs_list is 0, the lists are in the slots of the context. */
	uint16_t vs_list;
	/* _HEAP_PAGE_RANGE_DESCRIPTOR */
	uint16_t range_unused, range_unused_bytes, range_extra, range_units;
	/* _HEAP_LFH_SUBSEGMENT. 0: the build does not have this field. */
	uint16_t lfh_withheld;
	/* First build for which this row is preferred if several rows fit. */
	uint32_t first_build;
};

#define SEGMENT_ONLY_SHIFT 12 /* UnitShift of a heap without contexts */
/* FirstDescriptorIndex of a heap without contexts: the number of units that its 256 descriptors
 * occupy */
#define SEGMENT_ONLY_FIRST 2
#define SEGMENT_DESCRIPTORS 256 /* _HEAP_PAGE_SEGMENT.DescArray */
#define SEGMENT_RANGE_SIGNATURE 0xccddccddu /* _HEAP_PAGE_RANGE_DESCRIPTOR.TreeSignature */
#define SEGMENT_RANGE_FLAGS 0x1fu /* on x86, the other bits contain a page count */
#define SEGMENT_RANGE_USED 0x03u /* both of these flags: allocated, and first of a range */
#define SEGMENT_RANGE_USER 0x03u
#define SEGMENT_RANGE_INTERNAL 0x07u
#define SEGMENT_RANGE_LFH 0x0bu
#define SEGMENT_RANGE_VS 0x0fu
#define SEGMENT_VS_SIGNATURE 0x2bedu
/* Constant that is XORed into the signature of page segments, in addition to the key. Builds since
 * SEGMENT_BUILD_WIDE do not use it. */
#define SEGMENT_CONSTANT 0xa2e64eada2e64eadu
#define SEGMENT_BUILD_WIDE 26100u
#define SEGMENT_BUILD_X64_ONLY 26100u /* since this build, only x64 layouts are known */

extern const struct segment_layout segment_layouts[];
extern const size_t segment_layout_count;

/*
 * Parts of the walker of segment heaps.
 *
 * A heap's memory consists of page ranges (segment_ranges.c). Each range is a block, a VS
 * subsegment (segment_vs.c) or an LFH subsegment (segment_lfh.c). Chunks of VS subsegments can also
 * contain LFH subsegments. Large blocks are in a tree (segment_heap.c). All heaps of a process use
 * the same keys, which are recovered before the first heap is walked (segment_keys.c,
 * segment_lfh_key.c). The unused end of a block may lead to its stack (segment_tails.c).
 *
 * Functions return 0 or -ERR_NOMEM. They also return 0 after invalid data, which they record with
 * walk_broken().
 */

/* Set of references to affinity slots. Each possible reference has one bit. */
struct vs_slots {
	uint64_t refs[(UINT16_MAX + 1) / 64];
};

struct segment_heap {
	struct nt_walk *nt;
	const struct segment_layout *layout;
	const struct segment_parts *parts;
	uint64_t addr;
	struct extent run;
	struct extent records; /* readable memory in which the record of a stack was found */
	uint64_t vs_ranges; /* number of VS subsegments found */
	struct vs_slots slots; /* slots that own VS subsegments */
};

/* Records a fault at `addr`: missing memory if the memory is missing, otherwise invalid data, which
 * `what` (a literal) describes. Returns 0. */
int segment_fault(const struct segment_heap *heap, uint64_t addr, const char *what);

/* Returns true if the pointer at `addr` is readable and points to `to`. */
bool segment_points_to(struct nt_walk *nt, uint64_t addr, uint64_t to);

/* Returns true if at least one neighbour of the list's head points back to the head. The other
 * neighbour may be damaged. */
bool segment_list_fits(struct nt_walk *nt, uint64_t head, bool is_coded);

/* Finds the layout of the heap at `addr`. Returns false if no layout fits. */
bool segment_heap_open(struct segment_heap *heap, struct nt_walk *nt, uint64_t addr);

/* Records a warning if a context's pointers have the wrong targets. Pointers to the front ends may
 * be null. */
void segment_context_check(struct segment_heap *heap, uint64_t context);

/* A run of pages that the back end allocated. */
struct segment_range {
	uint64_t addr, bytes, unused_bytes;
	unsigned flags;
	bool has_extra;
};

/* Calls range() for every range in use, until range() returns a nonzero value. Calls segment()
 * first for each page segment, unless segment() is NULL. segment() returns SEGMENT_TAKE to visit
 * the ranges of the segment, SEGMENT_SKIP to skip them, SEGMENT_STOP, or a negative error. */
#define SEGMENT_SKIP 0
#define SEGMENT_TAKE 1
#define SEGMENT_STOP 2 /* end the walk */

struct segment_visit {
	int (*segment)(void *ctx, uint64_t addr, uint64_t seg_context);
	int (*range)(void *ctx, const struct segment_range *range);
	void *ctx;
};

int segment_ranges_walk(struct segment_heap *heap, const struct segment_visit *visit);

/* Computes the key that signs the page segment at `addr`, on the assumption that the segment
 * belongs to the context. Returns false if `addr` is misaligned or unreadable. */
bool segment_page_key(
	struct segment_heap *heap, uint64_t addr, uint64_t seg_context, uint64_t *key);

/* ---- VS: adjacent chunks of different sizes. */
struct vs_chunk {
	uint64_t addr, bytes; /* `bytes` includes the header */
	bool is_allocated, is_skipped, has_unused;
};

struct vs_cursor {
	struct segment_heap *heap;
	uint64_t key; /* the heap key */
	/* `limit` is the end of the page range that contains the subsegment */
	uint64_t next, end, limit;
	uint64_t previous_units; /* size of the previous chunk; 0: none */
	const char *broken; /* reason why the walk ended early, or NULL */
};

/* Starts a walk of the subsegment at `addr`, in a range of `range_bytes`. Returns false if there is
 * no subsegment at `addr`. */
bool vs_cursor_init(struct vs_cursor *cursor, struct segment_heap *heap, uint64_t key,
	uint64_t addr, uint64_t range_bytes);
bool vs_cursor_next(struct vs_cursor *cursor, struct vs_chunk *chunk);

/* Returns 1 if the chunk contains an LFH subsegment, and stores the range of the subsegment.
 * Otherwise returns 0. */
int vs_chunk_lfh(
	struct segment_heap *heap, const struct vs_chunk *chunk, uint64_t *addr, uint64_t *bytes);
int segment_vs_walk(struct segment_heap *heap, uint64_t addr, uint64_t range_bytes);

/* Returns the number of subsegments in the VS context's list or in the lists of its slots. */
uint64_t segment_vs_listed(struct segment_heap *heap);

/* Returns true if an affinity slot of the VS context points back to the context. Reads only the
 * structures of the heap. */
bool segment_vs_has_slots(struct nt_walk *nt, const struct segment_layout *layout, uint64_t addr);

/* ---- LFH. */

/* Form of a subsegment's bitmap. For each block, the bitmap has a busy bit, and a bit that marks a
 * busy block as only partly used. */
enum lfh_form {
	LFH_PAIRS, /* two bits per block, the busy bit first */
	/* In each 64-bit word, the busy bits of 32 blocks come first, then their other bits. */
	LFH_HALVES,
	LFH_FORMS
};

/* Returns the bits of block k. Bit 0: busy; bit 1: only partly used. */
static inline unsigned lfh_state(const unsigned char *bitmap, enum lfh_form form, uint32_t k)
{
	const unsigned char *word = bitmap + k / 32 * 8 + k % 32 / 8;

	if (form == LFH_PAIRS)
		return bitmap[k / 4] >> k % 4 * 2 & 3;
	return (word[0] >> k % 8 & 1) | (word[4] >> k % 8 & 1) << 1;
}

struct lfh_sample {
	uint64_t addr, bytes;
	uint32_t free_count, block_count, header_bytes; /* header_bytes includes the bitmap */
	uint32_t encoded, withheld_count;
	int bucket; /* -1: unknown */
};

struct lfh_offsets {
	uint32_t block_bytes, first;
};

/* Reads a subsegment's header. Returns false if the header is invalid. */
bool lfh_sample_read(
	struct segment_heap *heap, uint64_t addr, uint64_t bytes, struct lfh_sample *sample);
struct lfh_offsets lfh_decode(const struct lfh_sample *sample, uint32_t key, bool is_wide);
bool lfh_offsets_fit(const struct segment_parts *parts, const struct lfh_sample *sample,
	const struct lfh_offsets *offsets);
int segment_lfh_walk(struct segment_heap *heap, uint64_t addr, uint64_t bytes);

/* Records a fault if data that is marked as something else is probably an LFH subsegment with live
 * blocks: the data must pass all checks of a subsegment. Returns 0 or -ERR_NOMEM. */
int segment_lfh_notice(struct segment_heap *heap, uint64_t addr, uint64_t bytes);

/* Returns the block size of a bucket, or 0 if there is no such bucket. */
uint32_t lfh_bucket_bytes(const struct segment_parts *parts, int bucket);

#define BITMAP_BYTES_MAX (0xffffu / 4 + 1)

/* An LFH subsegment whose offsets are decoded. */
struct lfh {
	struct segment_heap *heap;
	const struct lfh_sample *sample;
	uint64_t first;
	uint32_t block_bytes;
	enum lfh_form form;
	bool skips_crossing; /* busy blocks that cross a page are skipped as withheld */
	unsigned char bitmap[BITMAP_BYTES_MAX];
};

/* Returns the number of busy blocks. One mask selects the busy bits of a word in either form of the
 * bitmap. */
uint32_t lfh_busy_count(const struct lfh *lfh);

/* Reads the bitmap in whole words, because LFH_HALVES requires this. Returns false if the bitmap is
 * unreadable. */
bool lfh_read_bitmap(struct lfh *lfh);

/*
 * Chooses the form of the bitmaps of all samples. For the right form, the busy and free blocks of a
 * sample add up to all its blocks. Returns the form that is right for more samples, or the form in
 * the layout if neither is.
 */
enum lfh_form lfh_form_choose(
	struct segment_heap *heap, const struct lfh_sample *samples, size_t count);

/* Returns true if most samples are valid with the key. Sets `*is_wide` to the form of the mask with
 * which they are valid. Samples may come from several heaps of one bitness. */
bool lfh_key_fits(struct segment_heap *heap, const struct lfh_sample *samples, size_t count,
	uint32_t key, bool *is_wide);

/* Guesses the key of the LFH from samples. Returns false if no key is certain. */
bool lfh_key_guess(struct segment_heap *heap, const struct lfh_sample *samples, size_t count,
	uint32_t *key, bool *is_wide);

/* Recover the keys of the process. The first function recovers the keys of page segments and VS
 * chunks; the second, the key of the LFH. Later calls do nothing. */
int segment_keys_find(struct nt_walk *nt);
int segment_lfh_key_find(struct nt_walk *nt);

/* Contents of the last two bytes of a partly used block. */
struct segment_tail {
	uint64_t unused_bytes;
	bool has_extra, is_lfh; /* `is_lfh` is used only for VS chunks */
};

enum segment_tail_kind { SEGMENT_TAIL_LFH, SEGMENT_TAIL_VS };

/* Reads the tail of a block, which consists of the `bytes` bytes before `end`. Returns false if
 * these bytes cannot have a tail of this kind. */
bool segment_tail_read(struct segment_heap *heap, uint64_t end, uint64_t bytes,
	enum segment_tail_kind kind, struct segment_tail *tail);

/* A live block: `bytes` bytes at `addr`, of which the last `unused_bytes` are unused. */
struct segment_block {
	uint64_t addr, bytes, unused_bytes;
	uint64_t header_bytes; /* size of the header before `addr` */
	bool has_extra;
};

/* Add a live block. The first function also claims its memory. Return 0 or -ERR_NOMEM. */
int segment_block_add(struct segment_heap *heap, const struct segment_block *block);
int segment_block_list(struct segment_heap *heap, const struct segment_block *block);

/* Returns true if an unused tail contains the mark of a stack. The pointer after the mark may be
 * invalid. */
bool segment_mark_exists(struct segment_heap *heap, uint64_t tail, uint64_t tail_bytes);

/* Returns the address of the record of a block's stack, or 0. The address is stored in the unused
 * tail of the block. Records a fault if the tail should lead to a record but does not. */
uint64_t segment_record_find(struct segment_heap *heap, uint64_t tail, uint64_t tail_bytes);

#endif
