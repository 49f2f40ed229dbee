/* The walker of segment heaps: nothing that a process holds makes it crash, hang or grow. */
#include "tests/unit/fake_segment.h"

/* One heap with everything: back-end range, VS with LFH in it, LFH, large blocks; where each lies. */
struct zoo {
	struct fake_segment s;
	uint64_t segment, range, vs, lfh, inner, chunks[4], nodes[3];
};

static void zoo_vs(struct zoo *z)
{
	struct fake_segment *s = &z->s;
	struct fake_vs vs;
	struct fake_lfh inner;

	z->vs = seg_range(s, z->segment, 12, s->l->first_index + 1, 2, 15, 0, false);
	vs = seg_vs(s, FAKE_HEAP, z->vs);
	z->chunks[0] = seg_chunk(s, &vs, 0x100, true, 0) - s->l->v_header;
	z->chunks[1] = seg_chunk(s, &vs, 0x140, false, 0) - s->l->v_header;
	z->chunks[2] = seg_chunk(s, &vs, 0x180, true, 0x30) - s->l->v_header;
	z->inner = seg_chunk(s, &vs, 0x800, true, 0x2010);
	z->chunks[3] = seg_chunk(s, &vs, 0x400, true, 0) - s->l->v_header;
	seg_vs_end(s, &vs, true);
	inner = seg_lfh(s, z->inner, 0x800 - s->l->v_header - 0x10, 0x30, 0x30 / s->l->unit);
	seg_lfh_block(s, &inner, 1, 5);
}

static void zoo_large(struct zoo *z)
{
	struct fake_segment *s = &z->s;
	uint64_t tree = FAKE_HEAP + s->l->tree;

	for (unsigned i = 0; i < 3; i++) {
		z->nodes[i] = seg_meta(s, 0x30);
		seg_ptr(s, z->nodes[i] + s->l->n_address, 0x40000000 + 0x1000000 * (i ^ 1));
		seg_ptr(s, z->nodes[i] + s->l->n_pages, 0x20000);
		if (i)
			seg_ptr(s, z->nodes[i] + s->l->n_parent, z->nodes[0]);
	}
	seg_ptr(s, tree, z->nodes[0]);
	seg_ptr(s, z->nodes[0] + s->l->n_left, z->nodes[1]);
	seg_ptr(s, z->nodes[0] + s->l->n_right, z->nodes[2]);
}

#define ZOO_BLOCKS 9 /* 3 large, 1 range, 3 VS, 1 LFH in VS, 1 LFH */

static void zoo_init(struct zoo *z, const struct fake_layout *l)
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

static void zoo_end(struct zoo *z, size_t blocks, unsigned broken)
{
	seg_walk(&z->s);
	assert_int_equal(z->s.walk.block_count, blocks);
	assert_int_equal(z->s.walk.broken_count, broken);
	seg_release(&z->s);
}

static const struct fake_layout *const layouts[] = {
	&fake_26100_x64, &fake_22000_x64, &fake_19041_x64, &fake_19041_x86, &fake_14393_x64};

#define EACH_ZOO(z)                                                                                \
	for (size_t i_ = 0; i_ < sizeof(layouts) / sizeof(*layouts); i_++)                         \
		for (bool once_ = (zoo_init(z, layouts[i_]), true); once_; once_ = false)

static void everything_is_found_when_nothing_is_wrong(void **state)
{
	struct zoo z;

	(void)state;
	EACH_ZOO(&z)
	{
		zoo_end(&z, ZOO_BLOCKS, 0);
	}
}

/* ---------------------------------------------------------------- page ranges */

static uint64_t descriptor(const struct zoo *z, unsigned index)
{
	return z->segment + (uint64_t)(z->s.l->first_index + index) * z->s.l->d_bytes;
}

static void a_range_of_no_size_is_noted_and_passed(void **state)
{
	struct zoo z;

	(void)state;
	EACH_ZOO(&z)
	{
		fake_put(&z.s.fake, descriptor(&z, 0) + z.s.l->d_units, 0, 1);
		zoo_end(&z, ZOO_BLOCKS - 1, 1);
	}
}

static void a_range_past_its_segment_is_noted(void **state)
{
	struct zoo z;

	(void)state;
	EACH_ZOO(&z)
	{
		fake_put(&z.s.fake, descriptor(&z, 3) + z.s.l->d_units, 0xff, 1);
		zoo_end(&z, ZOO_BLOCKS - 1, 1);
	}
}

static void a_range_without_its_signature_is_noted(void **state)
{
	struct zoo z;

	(void)state;
	EACH_ZOO(&z)
	{
		fake_put(&z.s.fake, descriptor(&z, 0), 0xccddccde, 4);
		zoo_end(&z, ZOO_BLOCKS - 1, 1);
	}
}

static void a_range_smaller_than_what_is_unused_is_noted(void **state)
{
	struct zoo z;

	(void)state;
	EACH_ZOO(&z)
	{
		fake_put(&z.s.fake, descriptor(&z, 0) + z.s.l->d_unused, 0x1001, 4);
		zoo_end(&z, ZOO_BLOCKS - 1, 1);
	}
}

static void a_list_of_segments_that_leads_round_ends(void **state)
{
	struct zoo z;

	(void)state;
	EACH_ZOO(&z)
	{
		uint64_t second = seg_segment(&z.s, FAKE_HEAP, 0);

		seg_ptr(&z.s, second, z.segment);
		zoo_end(&z, ZOO_BLOCKS, 1);
	}
}

static void a_segment_that_is_not_there_is_noted(void **state)
{
	struct zoo z;

	(void)state;
	EACH_ZOO(&z)
	{
		uint64_t second = seg_segment(&z.s, FAKE_HEAP, 0);

		fake_unmap(&z.s.fake, second);
		seg_walk(&z.s);
		assert_int_equal(z.s.walk.block_count, ZOO_BLOCKS);
		assert_true(z.s.walk.broken_count > 0);
		seg_release(&z.s);
	}
}

/* ---------------------------------------------------------------- VS */

static void sizes_put(struct zoo *z, unsigned i, unsigned units, unsigned previous)
{
	uint64_t at = z->chunks[i], key = at ^ z->s.heap_key;

	if (z->s.l->bits == 64)
		fake_put(&z->s.fake, at,
			((uint64_t)units << 16 | (uint64_t)previous << 32 | 1ull << 48) ^ key, 8);
	else
		fake_put(&z->s.fake, at, (units << 1 | previous << 16 | 0x80000000u) ^ key, 4);
}

static void a_chunk_of_no_size_ends_its_subsegment(void **state)
{
	struct zoo z;

	(void)state;
	EACH_ZOO(&z)
	{
		sizes_put(&z, 2, 0, 0x140 / z.s.l->unit);
		zoo_end(&z, ZOO_BLOCKS - 3, 1);
	}
}

static void a_chunk_past_its_subsegment_ends_it(void **state)
{
	struct zoo z;

	(void)state;
	EACH_ZOO(&z)
	{
		sizes_put(&z, 2, z.s.l->bits == 64 ? 0xffff : 0x7fff, 0x140 / z.s.l->unit);
		zoo_end(&z, ZOO_BLOCKS - 3, 1);
	}
}

static void a_chunk_that_does_not_know_the_one_before_ends_its_subsegment(void **state)
{
	struct zoo z;

	(void)state;
	EACH_ZOO(&z)
	{
		sizes_put(&z, 2, 0x180 / z.s.l->unit, 0x150 / z.s.l->unit);
		zoo_end(&z, ZOO_BLOCKS - 3, 1);
	}
}

static void a_chunk_smaller_than_what_is_unused_is_noted(void **state)
{
	struct zoo z;

	(void)state;
	EACH_ZOO(&z)
	{
		fake_put(&z.s.fake, z.chunks[2] + 0x180 - 2, 0x181, 2);
		zoo_end(&z, ZOO_BLOCKS, 1);
	}
}

static void a_subsegment_without_its_signature_is_noted(void **state)
{
	struct zoo z;

	(void)state;
	EACH_ZOO(&z)
	{
		fake_put(&z.s.fake, z.vs + z.s.l->v_signature, 0x1234, 2);
		zoo_end(&z, ZOO_BLOCKS - 4, 1);
	}
}

/* ---------------------------------------------------------------- LFH */

static void an_lfh_subsegment_of_impossible_offsets_is_noted(void **state)
{
	struct zoo z;

	(void)state;
	for (unsigned damage = 0; damage < 3; damage++) {
		EACH_ZOO(&z)
		{
			uint64_t at = z.inner + z.s.l->l_offsets;
			uint64_t plain = fake_get(&z.s.fake, at, 4);

			/* The block size 0, or not a whole unit, or the first block far away. */
			if (damage == 0)
				plain ^= 0x30;
			else
				plain ^= damage == 1 ? 4 : 0x70000000;
			fake_put(&z.s.fake, at, plain, 4);
			for (unsigned k = 0; k < 3; k++) { /* more that are sound */
				struct fake_lfh lfh = seg_lfh(&z.s,
					seg_range(&z.s, z.segment, 12, 20 + 2 * k, 2, 11, 0, false),
					0x2000, 0x40 + 0x10 * k, (0x40 + 0x10 * k) / z.s.l->unit);

				seg_lfh_block(&z.s, &lfh, 0, 0);
			}
			zoo_end(&z, ZOO_BLOCKS - 1 + 3, 1);
		}
	}
}

static void an_lfh_subsegment_of_impossible_counts_is_noted(void **state)
{
	struct zoo z;

	(void)state;
	for (unsigned damage = 0; damage < 2; damage++) {
		EACH_ZOO(&z)
		{
			fake_put(&z.s.fake, z.lfh + z.s.l->l_count, damage ? 0xffff : 0, 2);
			zoo_end(&z, ZOO_BLOCKS - 1, 1);
		}
	}
}

/* More of them than are withheld cross a page: it cannot be told which are. */
static void withheld_blocks_that_cannot_be_told_are_noted(void **state)
{
	struct zoo z;

	(void)state;
	EACH_ZOO(&z)
	{
		for (unsigned k = 0; k < 0x80; k++)
			fake_put(&z.s.fake, z.lfh + z.s.l->l_bitmap + k / 4, 0x55, 1);
		if (z.s.l->l_withheld)
			fake_put(&z.s.fake, z.lfh + z.s.l->l_withheld, 1, 1);
		zoo_end(&z, ZOO_BLOCKS - 1 + 0x80, z.s.l->l_withheld != 0);
	}
}

/* ---------------------------------------------------------------- large blocks */

static void a_tree_that_leads_round_ends(void **state)
{
	struct zoo z;

	(void)state;
	EACH_ZOO(&z)
	{
		seg_ptr(&z.s, z.nodes[1] + z.s.l->n_left, z.nodes[0]);
		seg_ptr(&z.s, z.nodes[0] + z.s.l->n_parent, z.nodes[1]);
		zoo_end(&z, ZOO_BLOCKS, 1);
	}
	EACH_ZOO(&z)
	{
		seg_ptr(&z.s, z.nodes[0] + z.s.l->n_left, z.nodes[2]);
		zoo_end(&z, ZOO_BLOCKS - 1, 1);
	}
}

static void a_large_block_of_no_size_ends_the_tree(void **state)
{
	struct zoo z;

	(void)state;
	EACH_ZOO(&z)
	{
		seg_ptr(&z.s, z.nodes[0] + z.s.l->n_pages, 0xfff);
		zoo_end(&z, ZOO_BLOCKS - 2, 1);
	}
}

/* ---------------------------------------------------------------- all of it */

static void blocks_are_no_more_than_memory(void **state)
{
	struct zoo z;

	(void)state;
	EACH_ZOO(&z)
	{
		seg_walk_limited(&z.s, 0x1000);
		assert_true(z.s.walk.block_count < ZOO_BLOCKS);
		assert_true(z.s.walk.broken_count > 0);
		seg_release(&z.s);
	}
}

static void spoil(struct fake *fake, uint64_t *seed, uint64_t addr, size_t len, unsigned count)
{
	while (count--)
		fake_put(fake, addr + fake_random(seed) % len, fake_random(seed), 1);
}

/* Whatever bytes are wrong: it ends, and no block is larger than there is memory. */
static void damaged_bytes_do_no_harm(void **state)
{
	uint64_t seed = 0x5eed;

	(void)state;
	for (unsigned i = 0; i < 600; i++) {
		struct zoo z;

		zoo_init(&z, layouts[i % 5]);
		spoil(&z.s.fake, &seed, FAKE_HEAP + z.s.l->tree, 0x300, i % 4);
		spoil(&z.s.fake, &seed, FAKE_META, 0x100, i % 3);
		spoil(&z.s.fake, &seed, z.segment, 0x180, i % 5);
		spoil(&z.s.fake, &seed, z.vs, 0x1000, i % 7);
		spoil(&z.s.fake, &seed, z.lfh, 0x60, i % 2);
		seg_walk_limited(&z.s, 0x1000000);
		assert_true(z.s.walk.block_count <= 0x1000000 / 8);
		seg_release(&z.s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_found_when_nothing_is_wrong),
		cmocka_unit_test(a_range_of_no_size_is_noted_and_passed),
		cmocka_unit_test(a_range_past_its_segment_is_noted),
		cmocka_unit_test(a_range_without_its_signature_is_noted),
		cmocka_unit_test(a_range_smaller_than_what_is_unused_is_noted),
		cmocka_unit_test(a_list_of_segments_that_leads_round_ends),
		cmocka_unit_test(a_segment_that_is_not_there_is_noted),
		cmocka_unit_test(a_chunk_of_no_size_ends_its_subsegment),
		cmocka_unit_test(a_chunk_past_its_subsegment_ends_it),
		cmocka_unit_test(a_chunk_that_does_not_know_the_one_before_ends_its_subsegment),
		cmocka_unit_test(a_chunk_smaller_than_what_is_unused_is_noted),
		cmocka_unit_test(a_subsegment_without_its_signature_is_noted),
		cmocka_unit_test(an_lfh_subsegment_of_impossible_offsets_is_noted),
		cmocka_unit_test(an_lfh_subsegment_of_impossible_counts_is_noted),
		cmocka_unit_test(withheld_blocks_that_cannot_be_told_are_noted),
		cmocka_unit_test(a_tree_that_leads_round_ends),
		cmocka_unit_test(a_large_block_of_no_size_ends_the_tree),
		cmocka_unit_test(blocks_are_no_more_than_memory),
		cmocka_unit_test(damaged_bytes_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
