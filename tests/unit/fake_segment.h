/* Segment heaps made by hand from the published layouts. A walk must find exactly the ranges,
 * chunks and blocks that a test places. */
#ifndef TESTS_UNIT_FAKE_SEGMENT_H
#define TESTS_UNIT_FAKE_SEGMENT_H

#include "tests/unit/fake_target.h"

#include "snapshot/heap/nt_heap.h"
#include "tests/images/segment_image_layout.h"

/* Layouts under test. Their offsets come from the image maker's tables, which are independent of
 * the walker's. */
struct fake_layout {
	const char *name;
	unsigned bits, build, ptr, unit, first_index;
	struct segment_image_layout at;
};

static const struct {
	const char *name;
	unsigned bits, build;
} seg_builds[] = {
	{"segment 10.0.26100 x64", 64, 26100},
	{"segment 10.0.20348-22000 x64", 64, 22000},
	{"segment 10.0.17763-19041 x64", 64, 19041},
	{"segment 10.0.19041 x86", 32, 19041},
	{"segment 10.0.14393-15063 x64", 64, 14393}, /* one list of segments, no contexts */
	{"segment 10.0.17134 x64", 64, 17134},
	{"segment 10.0.16299 x64", 64, 16299},
};

#define SEG_LAYOUTS (sizeof(seg_builds) / sizeof(seg_builds[0]))
/* Sets of layouts, by number. */
#define BUILD_26100 0x1u
#define BUILD_22000 0x2u
#define BUILD_19041 0x4u
#define ALL 0x7fu

static inline const struct fake_layout *seg_layout(size_t number)
{
	static struct fake_layout layouts[SEG_LAYOUTS];
	struct fake_layout *l = &layouts[number];
	unsigned bits = seg_builds[number].bits, build = seg_builds[number].build;

	*l = (struct fake_layout){.name = seg_builds[number].name,
		.bits = bits,
		.build = build,
		.ptr = bits / 8,
		.unit = bits / 4,
		.at = *segment_image_layout_of(bits, build)};
	l->first_index = l->at.segment.header_bytes >> 12;
	return l;
}

#define FAKE_HEAP 0x10000000u
#define FAKE_META 0x11000000u /* the segment tree's nodes, owners, records */
#define FAKE_SEGMENTS 0x20000000u
#define FAKE_NTDLL 0x77000000u
#define FAKE_GLOBALS (FAKE_NTDLL + 0x2340u)
#define FAKE_CONSTANT 0xa2e64eada2e64eadu

struct fake_segment {
	const struct fake_layout *l;
	uint64_t heap_key, constant;
	uint32_t lfh_key;
	bool is_wide, is_halved;
	uint64_t meta, segment; /* next free addresses */
	uint64_t heaps[2];
	struct nt_process process;
	struct memory memory;
	struct walk walk;
	struct nt_walk nt;
};

static struct fake_segment seg;

static inline void seg_ptr(uint64_t addr, uint64_t value)
{
	fake_write(addr, value, seg.l->ptr);
}

static inline uint64_t seg_mask(void)
{
	return seg.l->bits == 64 ? UINT64_MAX : UINT32_MAX;
}

/* List operations. With `coded`, each pointer is XORed with its own address. */
static inline void seg_list_init(uint64_t head, bool coded)
{
	seg_ptr(head, head ^ (coded ? head : 0));
	seg_ptr(head + seg.l->ptr, head ^ (coded ? head : 0));
}

static inline void seg_list_add(uint64_t head, uint64_t link, bool coded)
{
	uint64_t p = seg.l->ptr, k = coded ? seg_mask() : 0;
	uint64_t last = fake_get(head + p, p) ^ (head & k);

	seg_ptr(link, head ^ (link & k));
	seg_ptr(link + p, last ^ (link & k));
	seg_ptr(last, link ^ (last & k));
	seg_ptr(head + p, link ^ (head & k));
}

static inline uint64_t seg_context(uint64_t heap, unsigned i)
{
	return heap + seg.l->at.heap.contexts + i * seg.l->at.context.bytes;
}

#define FAKE_SLOT_MAP 0x28u /* offsets from the VS context, in units of 64 bytes */
#define FAKE_SLOT 0x2au

/* Returns the head of the list of VS subsegments. The head is in the context or in its only
 * affinity slot. */
static inline uint64_t seg_vs_list(uint64_t heap)
{
	const uint64_t context = heap + seg.l->at.heap.vs;

	return seg.l->at.vs_slot.bytes ? context + FAKE_SLOT * 64 + seg.l->at.vs_slot.list :
					 context + seg.l->at.vs.list;
}

/* Makes a VS context, with one slot if the layout has slots. */
static inline void seg_vs_slot(uint64_t heap)
{
	const struct fake_layout *l = seg.l;
	const uint64_t context = heap + l->at.heap.vs;

	if (!l->at.vs_slot.bytes)
		return;
	fake_write(context + l->at.vs_slot.map, FAKE_SLOT_MAP, 2);
	fake_write(context + l->at.vs_slot.mask, 0, 1);
	fake_write(context + FAKE_SLOT_MAP * 64, FAKE_SLOT, 2);
	seg_ptr(context + FAKE_SLOT * 64 + l->at.vs_slot.context, context);
}

static inline void seg_heap(uint64_t heap)
{
	const struct fake_layout *l = seg.l;

	fake_map(heap, 0x6000);
	fake_write(heap + l->at.heap.signature, 0xddeeddee, 4);
	if (!l->at.context.bytes)
		seg_list_init(heap + l->at.context.list, false);
	for (unsigned i = 0; l->at.context.bytes && i < 2; i++) {
		uint64_t c = seg_context(heap, i);

		fake_write(c + l->at.context.unit_shift, i ? 16 : 12, 1);
		fake_write(c + l->at.context.first_index, i ? 1 : l->first_index, 1);
		seg_ptr(c + l->at.context.lfh, heap + l->at.heap.lfh);
		seg_ptr(c + l->at.context.vs, heap + l->at.heap.vs);
		seg_ptr(c + l->at.context.heap, heap);
		seg_list_init(c + l->at.context.list, false);
	}
	seg_vs_slot(heap);
	seg_list_init(seg_vs_list(heap), true);
	seg.heaps[seg.process.heap_count++] = heap;
}

/* Removes ntdll, as in a dump that lacks ntdll's data. */
static inline void seg_no_ntdll(void)
{
	fake.module_count = 0;
}

static inline void seg_init(const struct fake_layout *l)
{
	seg = (struct fake_segment){.l = l};
	fake_init();
	fake.target.bits = l->bits;
	seg.heap_key = 0x5b1d3c9f7a82e641u & seg_mask();
	seg.is_wide = seg.is_halved = l->build >= 26100;
	seg.constant = seg.is_wide ? 0 : FAKE_CONSTANT & seg_mask();
	seg.lfh_key = 0x9e4c71d3;
	seg.meta = FAKE_META;
	seg.segment = FAKE_SEGMENTS;
	seg.process =
		(struct nt_process){.bits = l->bits, .os_build = l->build, .heaps = seg.heaps};
	fake_map(FAKE_META, 0x10000);
	/* Adds ntdll, whose data contains the keys of RtlpHpHeapGlobals. */
	fake_map(FAKE_NTDLL, 0x4000);
	fake_write_module(
		FAKE_NTDLL, seg.l->bits, 0x4000, 0x1000, "C:\\Windows\\System32\\NTDLL.dll");
	seg_ptr(FAKE_GLOBALS, seg.heap_key);
	seg_ptr(FAKE_GLOBALS + seg.l->ptr, seg.lfh_key | 0x1234567800000000u);
	seg_heap(FAKE_HEAP);
	walk_init(&seg.walk);
}

static inline uint64_t seg_meta(unsigned bytes)
{
	uint64_t addr = seg.meta;

	seg.meta += (bytes + 15) / 16 * 16;
	return addr;
}

static inline uint64_t seg_segment(uint64_t heap, unsigned i)
{
	uint64_t addr = seg.segment, c = seg_context(heap, i);

	seg.segment += 0x1000000;
	fake_map(addr, (size_t)256 << (i ? 16 : 12));
	seg_list_add(c + seg.l->at.context.list, addr, false);
	seg_ptr(addr + seg.l->at.segment.signature, addr ^ c ^ seg.heap_key ^ seg.constant);
	return addr;
}

/* Makes a range of units that begins at unit `index`; returns its address. */
static inline uint64_t seg_range(uint64_t segment, unsigned shift, unsigned index, unsigned units,
	unsigned flags, uint32_t unused, bool extra)
{
	const struct fake_layout *l = seg.l;
	uint64_t d = segment + (uint64_t)index * l->at.range.bytes;

	fake_write(d, flags & 2 ? 0xccddccdd : 0, 4);
	fake_write(d + l->at.range.unused, unused, l->at.context.bytes ? 4 : 2);
	fake_write(d + l->at.range.extra, extra, 2);
	/* On x86 a count of pages shares the byte. */
	fake_write(d + l->at.range.flags, flags | (l->bits == 32 ? 0xa0 : 0), 1);
	fake_write(d + l->at.range.unit, units, 1);
	return segment + ((uint64_t)index << shift);
}

/* ---------------------------------------------------------------- VS */

struct fake_vs {
	uint64_t addr, next, previous_bytes;
};

static inline struct fake_vs seg_vs(uint64_t heap, uint64_t addr)
{
	seg_list_add(seg_vs_list(heap), addr, true);
	if (seg.l->at.vs_subsegment.owner)
		fake_write(addr + seg.l->at.vs_subsegment.owner, FAKE_SLOT, 2);
	return (struct fake_vs){addr, addr + seg.l->at.vs_subsegment.first_chunk, 0};
}

/* Makes a chunk of `bytes` bytes, including its header. Returns the address of the user bytes.
 * tail: value of the chunk's last word. */
static inline uint64_t seg_chunk(struct fake_vs *vs, uint64_t bytes, bool allocated, unsigned tail)
{
	const struct fake_layout *l = seg.l;
	uint64_t units = bytes / l->unit, previous = vs->previous_bytes / l->unit, at = vs->next;
	uint64_t key = (at ^ seg.heap_key) & seg_mask();

	if (l->bits == 64)
		fake_write(at,
			(0x1234 | units << 16 | previous << 32 | (uint64_t)allocated << 48) ^ key,
			8);
	else
		fake_write(
			at, (1 | units << 1 | previous << 16 | (uint64_t)allocated << 31) ^ key, 4);
	fake_write(at + l->at.chunk.bits, (0x5a ^ (key & 0xff)) | (tail ? 0x100 : 0), 4);
	if (tail)
		fake_write(at + bytes - 2, tail, 2);
	vs->next += bytes;
	vs->previous_bytes = bytes;
	return at + l->at.chunk.bytes;
}

static inline void seg_vs_end(const struct fake_vs *vs, bool counts_header)
{
	uint64_t bytes =
		vs->next - vs->addr - (counts_header ? 0 : seg.l->at.vs_subsegment.first_chunk);
	unsigned units = (unsigned)(bytes / seg.l->unit);

	fake_write(vs->addr + seg.l->at.vs_subsegment.size, units, 2);
	fake_write(vs->addr + seg.l->at.vs_subsegment.signature,
		((units ^ 0x2bed) & 0x7fff) | 0x8000, 2);
}

/* ---------------------------------------------------------------- LFH */

struct fake_lfh {
	uint64_t addr;
	unsigned block_bytes, first, count;
};

static inline unsigned seg_lfh_room(unsigned count)
{
	unsigned word = seg.l->ptr * 8,
		 head = seg.l->at.subsegment.bitmap + (count * 2 + word - 1) / word * seg.l->ptr;

	return (head + seg.l->unit - 1) / seg.l->unit * seg.l->unit;
}

static inline void seg_lfh_free_write(const struct fake_lfh *lfh, unsigned n)
{
	fake_write(lfh->addr + seg.l->at.subsegment.free_count, n, 2);
}

#define FAKE_BUCKETS 0x40u /* offset from the LFH context to bucket 0; each bucket has two units */

/* Makes a bucket. A subsegment of the first heap and the context's table refer to the bucket. */
static inline void seg_bucket_write(uint64_t subsegment, unsigned bucket)
{
	const struct fake_layout *l = seg.l;
	const uint64_t context = FAKE_HEAP + l->at.heap.lfh;
	const unsigned ref = FAKE_BUCKETS + bucket * 2;

	fake_write(subsegment + l->at.subsegment.bucket, ref, 2);
	fake_write(context + ref * 64, bucket << 1 | 1, 1);
	seg_ptr(context + l->at.lfh.buckets + (uint64_t)bucket * l->ptr, context + ref * 64);
}

/* Makes a subsegment of `bytes` bytes, filled with blocks. bucket: the bucket of the subsegment's
 * owner. */
static inline struct fake_lfh seg_lfh(
	uint64_t addr, unsigned bytes, unsigned block_bytes, unsigned bucket)
{
	struct fake_lfh lfh = {addr, block_bytes, 0, bytes / block_bytes};
	uint64_t owner = seg_meta(0x40), shifted = seg.is_wide ? addr >> 12 : (uint32_t)addr >> 12;

	while (seg_lfh_room(lfh.count) + lfh.count * block_bytes > bytes)
		lfh.count--;
	lfh.first = seg_lfh_room(lfh.count);
	if (seg.l->at.subsegment.bucket) {
		if (bucket < 128)
			seg_bucket_write(addr, bucket);
	} else {
		seg_ptr(addr + seg.l->at.subsegment.owner, owner);
		fake_write(owner + 1, bucket, 1);
	}
	fake_write(addr + seg.l->at.subsegment.block_count, lfh.count, 2);
	seg_lfh_free_write(&lfh, lfh.count);
	fake_write(addr + seg.l->at.subsegment.offsets,
		(block_bytes | (uint64_t)lfh.first << 16) ^ seg.lfh_key ^ (uint32_t)shifted, 4);
	return lfh;
}

static inline uint64_t seg_lfh_addr(const struct fake_lfh *lfh, unsigned k)
{
	return lfh->addr + lfh->first + (uint64_t)k * lfh->block_bytes;
}

/* Sets one bit of block k and returns the old bit. bit: 0 for busy, 1 for not fully used. Since
 * 26100 each word describes 32 blocks: the low half has their busy bits, the high half their other
 * bits. */
static inline bool seg_lfh_set(const struct fake_lfh *lfh, unsigned k, unsigned bit)
{
	const uint64_t bitmap = lfh->addr + seg.l->at.subsegment.bitmap;
	const unsigned at = seg.is_halved ? k / 32 * 64 + k % 32 + bit * 32 : k * 2 + bit;
	const uint64_t byte = fake_get(bitmap + at / 8, 1);

	fake_write(bitmap + at / 8, byte | 1u << at % 8, 1);
	return byte >> at % 8 & 1;
}

/* Marks block k as busy. tail: value of the block's last word, or 0. */
static inline uint64_t seg_lfh_block(const struct fake_lfh *lfh, unsigned k, unsigned tail)
{
	const uint64_t addr = seg_lfh_addr(lfh, k);
	const uint64_t free_count = lfh->addr + seg.l->at.subsegment.free_count;

	if (!seg_lfh_set(lfh, k, 0))
		seg_lfh_free_write(lfh, (unsigned)fake_get(free_count, 2) - 1);
	if (tail) {
		seg_lfh_set(lfh, k, 1);
		fake_write(addr + lfh->block_bytes - 2, tail, 2);
	}
	return addr;
}

/* ---------------------------------------------------------------- walking */

static inline void seg_walk_limited(uint64_t limit)
{
	assert_int_equal(memory_init(&seg.memory, &fake.target), 0);
	seg.nt =
		(struct nt_walk){.memory = &seg.memory, .process = &seg.process, .walk = &seg.walk};
	claims_init(&seg.nt.claims, limit);
	for (size_t i = 0; i < seg.process.heap_count; i++)
		assert_int_equal(segment_heap_walk(&seg.nt, seg.process.heaps[i]), 0);
}

static inline void seg_walk(void)
{
	seg_walk_limited(TARGET_SPACE_BYTES);
}

static inline void seg_release(void)
{
	memory_release(&seg.memory);
	claims_release(&seg.nt.claims);
	walk_release(&seg.walk);
	fake_release();
}

static inline void assert_block(
	size_t i, uint64_t addr, uint64_t requested, uint64_t overhead, uint64_t record)
{
	assert_true(i < seg.walk.block_count);
	assert_int_equal(seg.walk.blocks[i].addr, addr);
	assert_int_equal(seg.walk.blocks[i].requested_bytes, requested);
	assert_int_equal(seg.walk.blocks[i].overhead_bytes, overhead);
	assert_int_equal(seg.walk.blocks[i].stack == STACK_NONE ?
				 0 :
				 seg.walk.records[seg.walk.blocks[i].stack].addr,
		record);
}

static inline void seg_run(
	void (*test)(const struct fake_layout *l, unsigned i), unsigned layouts, unsigned times)
{
	for (size_t k = 0; k < SEG_LAYOUTS; k++) {
		for (unsigned i = 0; layouts >> k & 1 && i < times; i++) {
			seg_init(seg_layout(k));
			test(seg.l, i);
			seg_release();
		}
	}
}

/* Defines a test that runs once for each layout l of the set, each time in a fresh process `seg`
 * with one heap. SEG_TIMES repeats the test for each i below `times`. */
#define SEG_TEST(name, layouts) SEG_TIMES(name, layouts, 1)
#define SEG_TIMES(name, layouts, times)                                                            \
	static void name##_in(const struct fake_layout *l, unsigned i);                            \
	TEST(name)                                                                                 \
	{                                                                                          \
		seg_run(name##_in, layouts, times);                                                \
	}                                                                                          \
	static void name##_in(const struct fake_layout *l __attribute__((unused)),                 \
		unsigned i __attribute__((unused)))

#endif
