/*
 * The chain of EBP in made 32-bit stacks, which are allocated to the byte, so that the sanitizers see a
 * read outside.
 */
#include "tests/unit/t.h"

#include "snapshot/tracer/unwind.h"

static const struct unwind_skip none = {0, 0};

/* An EBP, a return address, and what a chain of them must give. */
TEST(chains_are_followed)
{
	static const uint32_t stack[] = {
		0x1010,
		0x401000,
		0,
		0, /* 0x1000 */
		0x1018,
		0x402000, /* 0x1010 */
		0x101c,
		0x403000, /* 0x1018: the next one overlaps it, but lies above */
		0x404000,
		0,
	};
	struct unwind_window window = {0x1000, 0x1000 + sizeof(stack), (const uint8_t *)stack};
	struct unwind_skip own = {0x401000, 0x402001};
	uint64_t frames[8];

	assert_int_equal(unwind_chain(frames, 8, &none, &window, 0x1000), 4);
	assert_int_equal(frames[0], 0x401000);
	assert_int_equal(frames[1], 0x402000);
	assert_int_equal(frames[2], 0x403000);
	assert_int_equal(frames[3], 0x404000);
	assert_int_equal(unwind_chain(frames, 2, &none, &window, 0x1000), 2);
	assert_int_equal(unwind_chain(frames, 8, &own, &window, 0x1000), 2);
	assert_int_equal(frames[0], 0x403000);
}

TEST(chains_end_where_they_must)
{
	static const uint32_t starts[] = {0, 0xffc, 0x1001, 0x1002, 0x100c, 0x1010, 0xfffffffc};
	static const uint32_t nexts[] = {0, 0x1000, 0xffc, 0x1009, 0x100a, 0x100c, 0x1010,
		0xfffffff8, 0xfffffffc, 0x7fffffff};
	uint32_t *stack = malloc(16);
	uint64_t frames[8];

	assert_non_null(stack);
	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		struct unwind_window window = {0x1000, 0x1010, (const uint8_t *)stack};

		memcpy(stack, (uint32_t[]){0x1008, 0x401000, 0, 0x402000}, 16);
		assert_int_equal(unwind_chain(frames, 8, &none, &window, starts[i]), 0);
	}
	for (size_t i = 0; i < sizeof(nexts) / sizeof(*nexts); i++) {
		struct unwind_window window = {0x1000, 0x1010, (const uint8_t *)stack};

		memcpy(stack, (uint32_t[]){nexts[i], 0x401000, 0, 0x402000}, 16);
		assert_int_equal(unwind_chain(frames, 8, &none, &window, 0x1000), 1);
	}
	memcpy(stack, (uint32_t[]){0x1008, 0, 0, 0x402000}, 16);
	assert_int_equal(
		unwind_chain(frames, 8, &none,
			&(struct unwind_window){0x1000, 0x1010, (const uint8_t *)stack}, 0x1000),
		0);
	free(stack);
}
