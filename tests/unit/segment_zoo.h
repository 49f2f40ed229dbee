/*
 * One segment heap with everything in it, for a test to damage.
 */
#ifndef TESTS_UNIT_SEGMENT_ZOO_H
#define TESTS_UNIT_SEGMENT_ZOO_H

#include "tests/unit/fake_segment.h"

/* Back-end range, VS with LFH in it, LFH, large blocks; where each lies. */
struct zoo {
	struct fake_segment s;
	uint64_t segment, range, vs, lfh, inner, chunks[4], nodes[3];
};

static inline void zoo_vs(struct zoo *z)
{
	struct fake_segment *s = &z->s;
	struct fake_vs vs;
	struct fake_lfh inner;

	z->vs = seg_range(s, z->segment, 12, s->l->first_index + 1, 2, 15, 0, false);
	vs = seg_vs(s, FAKE_HEAP, z->vs);
	z->chunks[0] = seg_chunk(s, &vs, 0x100, true, 0) - s->l->at.chunk.bytes;
	z->chunks[1] = seg_chunk(s, &vs, 0x140, false, 0) - s->l->at.chunk.bytes;
	z->chunks[2] = seg_chunk(s, &vs, 0x180, true, 0x30) - s->l->at.chunk.bytes;
	z->inner = seg_chunk(s, &vs, 0x800, true, 0x2010);
	z->chunks[3] = seg_chunk(s, &vs, 0x400, true, 0) - s->l->at.chunk.bytes;
	seg_vs_end(s, &vs, true);
	inner = seg_lfh(s, z->inner, 0x800 - s->l->at.chunk.bytes - 0x10, 0x30, 0x30 / s->l->unit);
	seg_lfh_block(s, &inner, 1, 5);
}

static inline void zoo_large(struct zoo *z)
{
	struct fake_segment *s = &z->s;
	uint64_t tree = FAKE_HEAP + s->l->at.heap.large_tree;

	for (unsigned i = 0; i < 3; i++) {
		z->nodes[i] = seg_meta(s, 0x30);
		seg_ptr(s, z->nodes[i] + s->l->at.large.address, 0x40000000 + 0x1000000 * (i ^ 1));
		seg_ptr(s, z->nodes[i] + s->l->at.large.pages, 0x20000);
		if (i)
			seg_ptr(s, z->nodes[i] + 2ull * s->l->ptr, z->nodes[0]);
	}
	seg_ptr(s, tree, z->nodes[0]);
	seg_ptr(s, z->nodes[0], z->nodes[1]);
	seg_ptr(s, z->nodes[0] + s->l->ptr, z->nodes[2]);
}

#define ZOO_BLOCKS 9 /* 3 large, 1 range, 3 VS, 1 LFH in VS, 1 LFH */

static inline void zoo_init(struct zoo *z, const struct fake_layout *l)
{
	struct fake_lfh lfh;

	seg_init(&z->s, l);
	z->segment = seg_segment(&z->s, FAKE_HEAP, 0);
	z->range = seg_range(&z->s, z->segment, 12, l->first_index, 1, 3, 9, false);
	zoo_vs(z);
	z->lfh = seg_range(&z->s, z->segment, 12, l->first_index + 3, 4, 11, 0, false);
	lfh = seg_lfh(&z->s, z->lfh, 0x4000, 0x60, 0x60 / l->unit);
	seg_lfh_block(&z->s, &lfh, 2, 3);
	zoo_large(z);
}

/* broken: places that made no sense or are not there. */
static inline void zoo_end(struct zoo *z, size_t blocks, unsigned broken)
{
	seg_walk(&z->s);
	assert_int_equal(z->s.walk.block_count, blocks);
	assert_int_equal(z->s.walk.broken_count + z->s.walk.missing_count, broken);
}

static inline void zoo_run(void (*test)(struct zoo *z, unsigned i), unsigned times)
{
	for (size_t k = 0; k < SEG_LAYOUTS; k++) {
		for (unsigned i = 0; i < times; i++) {
			struct zoo z;

			zoo_init(&z, seg_layout(k));
			test(&z, i);
			seg_release(&z.s);
		}
	}
}

/* A test of a fresh zoo z of each layout; and the same for each i below times. */
#define ZOO_TEST(name) ZOO_TIMES(name, 1)
#define ZOO_TIMES(name, times)                                                                     \
	static void name##_in(struct zoo *z, unsigned i);                                          \
	TEST(name)                                                                                 \
	{                                                                                          \
		zoo_run(name##_in, times);                                                         \
	}                                                                                          \
	static void name##_in(struct zoo *z, unsigned i __attribute__((unused)))

/* The descriptor of one of the heap's units. */
static inline uint64_t descriptor(const struct zoo *z, unsigned index)
{
	return z->segment + (uint64_t)(z->s.l->first_index + index) * z->s.l->at.range.bytes;
}

#endif
