#include "tests/unit/t.h"

#include "core/base/hash.h"
#include "tests/unit/test_match.h"

TEST(every_number_is_found_under_its_hash)
{
	struct hash_index index;
	struct hash_probe probe;

	hash_index_init(&index);
	probe = hash_index_probe(&index, 7);
	/* The index is still empty. */
	assert_int_equal(hash_index_next(&index, &probe), INDEX_NONE);
	for (uint32_t i = 0; i < 20000; i++) /* several numbers share a hash */
		hash_index_add(&index, i * 0x9E3779B1 % 15000, i);
	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t number;
		bool is_found = false;

		probe = hash_index_probe(&index, i * 0x9E3779B1 % 15000);
		while ((number = hash_index_next(&index, &probe)) != INDEX_NONE) {
			assert_int_equal(number * 0x9E3779B1 % 15000, i * 0x9E3779B1 % 15000);
			assert_false(is_found && number == i);
			is_found |= number == i;
		}
		assert_true(is_found);
	}
	hash_index_release(&index);
}

static uint32_t hash_of(const struct hash_index *index, uint64_t a, uint64_t b, const char *text)
{
	struct hasher hasher = hasher_begin(&index->key);

	hasher_add(&hasher, a);
	hasher_add(&hasher, b);
	hasher_add_bytes(&hasher, text, strlen(text));
	return hasher_end(&hasher);
}

/* Differences that cancel in simpler hashes must not cancel here, under any key. */
TEST(words_that_differ_in_upper_bits_do_not_collide)
{
	struct hash_index index;
	unsigned equal = 0;

	hash_index_init(&index);
	for (uint64_t i = 0; i < 1000; i++) {
		uint32_t hash = hash_of(&index, i, i, "");

		equal += hash == hash_of(&index, i ^ UINT64_C(1) << 63,
					 i ^ UINT64_C(0x8000000080000000), "");
		equal += hash == hash_of(&index, i ^ UINT64_C(1) << 63, i ^ UINT64_C(1) << 63, "");
		equal += hash == hash_of(&index, i, i, "12345678");
		equal += hash == hash_of(&index, i ^ UINT64_C(1) << 32, i, "");
	}
	assert_true(equal < 3); /* the expected number is 4000 / 4294967296 */
	hash_index_release(&index);
}

/* The published test vectors of SipHash are for another variant. This test only checks that the key
 * changes the hash. */
TEST(another_key_gives_other_hashes)
{
	struct hash_index a = {.key = {{1, 2}}}, b = {.key = {{1, 3}}};
	unsigned equal = 0;

	for (uint64_t i = 0; i < 1000; i++)
		equal += hash_of(&a, i, 7, "x") == hash_of(&b, i, 7, "x");
	assert_true(equal < 3);
	assert_int_equal(hash_of(&a, 5, 7, "x"), hash_of(&a, 5, 7, "x"));
}

/* Makes a dump by hand with room for this many heaps and cells. */
static struct dump_sums *made_begin(uint32_t heaps, uint32_t cells)
{
	struct dump_sums *sums = compared.dumps;

	compared_begin(1);
	sums_init(sums);
	sums->id.path = "made";
	sums->heaps = xcalloc(heaps, sizeof(*sums->heaps));
	sums->cells = xcalloc(cells, sizeof(*sums->cells));
	sums->heap_count = heaps;
	sums->cell_count = cells;
	return sums;
}

/* There are many entries and heaps, and one id with very many stacks. A full search for each entry
 * would take days. */
TEST(id_of_many_stacks_in_many_heaps_is_gone_through_once)
{
	const uint32_t count = 60000;
	uint64_t frame;
	struct stack stack = {.id = "A", .same_id = STACK_NONE, .frames = &frame, .frame_count = 1};

	for (unsigned i = 0; i < 4; i++) {
		struct dump_sums *sums = made_begin(count, count);

		for (uint32_t k = 0; k < count; k++) {
			uint32_t index;

			frame = k;
			stackset_add(&sums->stacks, &stack, 1, &index);
			sums->heaps[k] = k << 16;
			sums->cells[k] = (struct stack_total){0, k, true, {1, 16, 0}};
		}
		compared_make((struct match_request){
			.by_heap = i % 2, .mode = i < 2 ? MATCH_AUTO : MATCH_ID});
		assert_int_equal(compared.comparison.row_count, i % 2 ? count : 1);
		assert_int_equal(compared.comparison.rows[0].totals[0].requested_bytes,
			i % 2 ? 16 : 16 * count);
		assert_int_equal(compared.comparison.rows[0].candidate_count, i < 2 ? count : 0);
	}
}

/* Some of these stacks have equal hashes, under any key. About ten such pairs are expected. Only
 * one run in 20000 has no pair. */
TEST(stacks_of_equal_hashes_stay_apart)
{
	const uint32_t count = 300000;
	struct dump_sums *sums = made_begin(1, count);
	uint64_t frame;
	struct stack stack = {.same_id = STACK_NONE, .frames = &frame, .frame_count = 1};
	char id[20];

	for (uint32_t i = 0; i < count; i++) {
		frame = 0x1000 + i;
		snprintf(id, sizeof(id), "%X", i + 1);
		stack.id = id;
		stackset_add(&sums->stacks, &stack, strlen(id), &sums->cells[i].stack);
		sums->cells[i].sums = (struct block_totals){1, i, 0};
	}
	compared_make((struct match_request){0});
	assert_int_equal(compared.comparison.row_count, count);
	for (uint32_t i = 0; i < count; i++) /* the row with the most bytes comes first */
		assert_int_equal(stack_frame(compared.comparison.rows[i].stack, 0),
			0x1000 + compared.comparison.rows[i].totals[0].requested_bytes);
}
