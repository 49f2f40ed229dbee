/* Segment heaps: layouts, and their parts. */
#ifndef SNAPSHOT_HEAP_SEGMENT_SEGMENT_H
#define SNAPSHOT_HEAP_SEGMENT_SEGMENT_H

#include <stddef.h>
#include <stdint.h>

#include "snapshot/heap/claims.h"
#include "snapshot/heap/nt_heap.h"

/*
 * The segment heap of Windows 10 and 11: offsets, in bytes, of what its walker reads.
 *
 * What differs by build is in a row; what is the same in all builds of one bitness hangs on it. Which
 * row a heap has is found by probing: the one whose pointers and lists stand where the row says, most of
 * them; where that is so for several rows, page ranges must make sense.
 *
 * Sources: type listings made from public symbols of ntkrnlmp (which shares the heap library) and
 * ntdll; the row says which. Structure and field are named beside each number.
 */

/* The same in all builds of one bitness. */
struct segment_parts {
	unsigned bits, unit; /* bytes of a pointer's bits; granularity of blocks */
	/* _HEAP_PAGE_SEGMENT */
	uint16_t segment_signature;
	/* _HEAP_PAGE_RANGE_DESCRIPTOR */
	uint16_t range_bytes, range_signature, range_flags;
	/* _HEAP_VS_SUBSEGMENT, _HEAP_VS_CHUNK_HEADER */
	uint16_t vs_size, vs_signature, vs_first_chunk, vs_chunk_bytes, vs_chunk_bits;
	/* _HEAP_LFH_SUBSEGMENT, _HEAP_LFH_SUBSEGMENT_OWNER; lfh_owner 0: there is no pointer to an owner */
	uint16_t lfh_owner, lfh_free_count, lfh_block_count, lfh_offsets;
	uint16_t lfh_bitmap, owner_bucket;
	/* Without a pointer: a reference from the LFH context to the bucket, which is in the context's table */
	uint16_t lfh_bucket_ref, lfh_buckets;
	bool lfh_is_halved; /* the bitmap's likelier form, enum lfh_form */
	/* _HEAP_VS_CONTEXT, _HEAP_VS_SLOT_MAP, _HEAP_VS_AFFINITY_SLOT, _HEAP_VS_SUBSEGMENT; slot_list 0: there are no
	 * slots, the context has the list. A reference is an offset from the context, shifted. */
	uint16_t slot_map, slot_mask, slot_shift, slot_map_entry, slot_context, slot_list;
	uint16_t vs_owner;
	/* _HEAP_LARGE_ALLOC_DATA, _RTL_BALANCED_NODE in it, _RTL_RB_TREE */
	uint16_t large_address, large_pages, node_left, node_right, node_parent, tree_root,
		tree_min;
	/* _SEGMENT_HEAP_EXTRA */
	uint16_t extra_interceptor, extra_units, extra_settable, extra_bytes;
	/* What says that there is no record of a stack. */
	uint64_t no_record;
	/* ntdll!RtlpHpHeapGlobals */
	uint16_t globals_heap_key, globals_lfh_key;
};

struct segment_layout {
	const char *name;
	const struct segment_parts *parts;
	/* _SEGMENT_HEAP; committed_pages 0: these counts are not known */
	uint16_t large_tree, large_reserved, large_committed, reserved_pages, committed_pages;
	/* Two _HEAP_SEG_CONTEXTs; context_bytes 0: there are none, the heap is its only one. */
	uint16_t contexts, context_bytes, vs_context, lfh_context, heap_bytes;
	/* _HEAP_SEG_CONTEXT, or of the heap: there UnitShift and FirstDescriptorIndex are constants */
	uint16_t unit_shift, first_descriptor, to_lfh, to_vs, to_heap, segment_list;
	/* _HEAP_VS_CONTEXT; 0: its slots have lists */
	uint16_t vs_list;
	/* _HEAP_PAGE_RANGE_DESCRIPTOR */
	uint16_t range_unused, range_unused_bytes, range_extra, range_units;
	/* _HEAP_LFH_SUBSEGMENT; 0: it has no such field */
	uint16_t lfh_withheld;
	/* Which builds are likelier to be this row's, when several fit. */
	uint32_t first_build;
};

#define SEGMENT_ONLY_SHIFT 12 /* of a heap without contexts */
#define SEGMENT_ONLY_FIRST 2 /* the descriptors that its 256 take */
#define SEGMENT_DESCRIPTORS 256 /* _HEAP_PAGE_SEGMENT.DescArray */
#define SEGMENT_RANGE_SIGNATURE 0xccddccddu /* _HEAP_PAGE_RANGE_DESCRIPTOR.TreeSignature */
#define SEGMENT_RANGE_FLAGS 0x1fu /* on x86 the other bits are a page count */
#define SEGMENT_RANGE_USED 0x03u /* both bits: given out, and the first of its range */
#define SEGMENT_RANGE_USER 0x03u
#define SEGMENT_RANGE_INTERNAL 0x07u
#define SEGMENT_RANGE_LFH 0x0bu
#define SEGMENT_RANGE_VS 0x0fu
#define SEGMENT_VS_SIGNATURE 0x2bedu
/* What page segments are signed with besides the key; nothing from this build on. */
#define SEGMENT_CONSTANT 0xa2e64eada2e64eadu
#define SEGMENT_BUILD_WIDE 26100u
#define SEGMENT_BUILD_X64_ONLY 26100u /* from this build on only x64 layouts are known */

extern const struct segment_layout segment_layouts[];
extern const size_t segment_layout_count;

/*
 * Segment heaps: what the parts of their walker share.
 *
 * A heap's memory is ranges of pages (segment_vs.c), each of which is a block, a VS subsegment
 * (segment_vs.c) or an LFH subsegment (segment_lfh.c); LFH subsegments also lie in chunks of VS
 * ones. Large blocks hang on a tree (segment_heap.c). The keys are the process's: they are
 * recovered from all its heaps before the first is walked (segment_keys.c, segment_lfh.c).
 *
 * Functions return 0, also when they met what makes no sense (it is noted with walk_broken()), or
 * -ERR_NOMEM.
 */

/* References to affinity slots, each once: a set of all that there can be. */
struct vs_slots {
	uint64_t refs[(UINT16_MAX + 1) / 64];
};

struct segment_heap {
	struct nt_walk *nt;
	const struct segment_layout *layout;
	const struct segment_parts *parts;
	uint64_t addr;
	struct extent run;
	struct extent records; /* a range of memory that is there, where a stack's record was */
	uint64_t vs_ranges; /* VS subsegments met */
	struct vs_slots slots; /* that own them */
};

/* Notes what is wrong with what begins at addr: that it is not there, or else the literal. Returns 0. */
int segment_fault(const struct segment_heap *heap, uint64_t addr, const char *what);

/* Returns true if a neighbour of a list's head leads back to it: the other one may be damaged. */
bool segment_list_fits(struct nt_walk *nt, uint64_t head, bool is_coded);

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

/* Returns the number of subsegments on the list of the VS context, or on those of its slots. */
uint64_t segment_vs_listed(struct segment_heap *heap);

/* Returns true if an affinity slot of the VS context names the context. Reads only the heap's own structures. */
bool segment_vs_has_slots(struct nt_walk *nt, const struct segment_layout *layout, uint64_t addr);

/* ---- LFH. */

/* How a subsegment's bitmap marks blocks as busy, and busy blocks as not all used. */
enum lfh_form {
	LFH_PAIRS, /* two bits for each block, the busy bit first */
	LFH_HALVES, /* in each 64-bit word, the busy bits of 32 blocks and then their other bits */
	LFH_FORMS
};

/* Returns the bits of block k: 1 if it is busy, 2 if not all of it is used. */
static inline unsigned lfh_state(const unsigned char *bitmap, enum lfh_form form, uint32_t k)
{
	const unsigned char *word = bitmap + k / 32 * 8 + k % 32 / 8;

	if (form == LFH_PAIRS)
		return bitmap[k / 4] >> k % 4 * 2 & 3;
	return (word[0] >> k % 8 & 1) | (word[4] >> k % 8 & 1) << 1;
}

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

/*
 * Chooses the form of the bitmaps of all samples: busy and free blocks must be all blocks, in more of the samples than for
 * the other form. If the samples do not decide, the form is the layout's.
 */
enum lfh_form lfh_form_choose(
	struct segment_heap *heap, const struct lfh_sample *samples, size_t count);

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

/* Whether a stack's mark stands in an unused tail, whatever it leads to. */
bool segment_mark_is_there(struct segment_heap *heap, uint64_t tail, uint64_t tail_bytes);

/* Where the record of a block's stack lies, as its unused tail says; 0: nowhere. A tail that should lead
 * to one and does not is noted. */
uint64_t segment_record_find(struct segment_heap *heap, uint64_t tail, uint64_t tail_bytes);

#endif
