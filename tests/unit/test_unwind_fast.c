/*
 * The x64 unwinder's walks by what is known of return addresses, over made stacks. These are allocated
 * to the byte, so that the sanitizers see a read outside.
 */
#include "tests/unit/t.h"

#include "snapshot/tracer/unwind_parts_x64.h"

#define WORDS 512
#define FRAMES_MAX 64

static const struct unwind_skip none = {0, 0};

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 16;
}

static uint64_t below(uint64_t *state, uint64_t end)
{
	return next_random(state) % end;
}

/* A made stack, and what a walk over it must find. */
struct made {
	uint64_t *words; /* words_count of them, on the heap */
	uint64_t words_count;
	struct unwind_start start;
	uint64_t frames[FRAMES_MAX];
	uint32_t count;
};

static uint64_t addr_of(const uint64_t *word)
{
	return (uint64_t)(uintptr_t)word;
}

static void know(uint64_t addr, bool is_from_rbp, int64_t cfa, int64_t rbp)
{
	struct unwind_step step = {is_from_rbp, cfa, rbp};
	uint32_t packed = unwind_pack(&step);

	assert_int_not_equal(packed, UNWIND_NEVER);
	unwind_cache_put(addr, packed, unwind_cache_begin());
}

/*
 * Builds frames from the inner end outwards, each of a random kind, as far as there is room; all other
 * words are random. RBP is what the kinds make of it: some save it and point it into their own frame.
 */
static void make(struct made *made, uint64_t *random)
{
	uint64_t at = 0, rbp_word = 0;
	bool rbp_is_frame = false;

	made->words_count = 16 + below(random, WORDS);
	made->words = malloc(made->words_count * 8);
	assert_non_null(made->words);
	for (uint64_t i = 0; i < made->words_count; i++)
		made->words[i] = next_random(random);
	made->start = (struct unwind_start){addr_of(made->words), next_random(random),
		addr_of(made->words + made->words_count), 0};
	memset(made->frames, 0, sizeof(made->frames));
	made->count = 0;
	while (made->count < FRAMES_MAX) {
		/* The word at `at` is a return address; its frame has `size` words above that. */
		uint64_t size = 1 + below(random, 20), cfa = at + 1 + size;
		uint64_t addr = 0x140000000 + below(random, 1u << 30);
		bool has_room = cfa <= made->words_count;

		made->words[at] = addr;
		made->frames[made->count++] = addr;
		if (!has_room) { /* leads out of the stack, wherever it goes */
			made->words[at] = 0;
			made->count--;
			break;
		}
		if (rbp_is_frame && below(random, 2)) {
			/* CFA by RBP, which the word at rbp_word is the address of */
			know(addr, true, (int64_t)(cfa - rbp_word) * 8, UNWIND_RBP_KEPT);
			if (rbp_word < cfa)
				rbp_is_frame = false;
		} else {
			know(addr, false, (int64_t)size * 8, UNWIND_RBP_KEPT);
		}
		if (size > 1 && below(random, 2)) {
			/* saves the caller's RBP, which points to some word farther out */
			uint64_t slot = at + 1 + below(random, size - 1);
			uint32_t packed = unwind_cache_find(addr);

			rbp_word = cfa + below(random, made->words_count);
			rbp_is_frame = rbp_word < made->words_count;
			made->words[slot] = rbp_is_frame ? addr_of(made->words + rbp_word) :
							   next_random(random);
			know(addr, unwind_packed_is_from_rbp(packed), unwind_packed_cfa(packed),
				((int64_t)slot - (int64_t)cfa) * 8);
		}
		at = cfa - 1;
	}
}

TEST(walks_find_the_frames_of_made_stacks)
{
	uint64_t random = 3, frames[FRAMES_MAX], all = 0;

	for (int i = 0; i < 5000; i++) {
		struct made made;

		unwind_forget_all();
		make(&made, &random);
		memset(frames, 0xee, sizeof(frames));
		assert_int_equal(unwind_fast(frames, FRAMES_MAX, &none, &made.start), made.count);
		assert_memory_equal(frames, made.frames, made.count * 8);
		all += made.count;
		free(made.words);
	}
	assert_true(all > 50000);
}

TEST(a_walk_is_cut_at_max)
{
	uint64_t random = 4, frames[FRAMES_MAX + 1];

	for (uint32_t max = 0; max <= FRAMES_MAX; max++) {
		struct made made;
		uint32_t count;

		unwind_forget_all();
		make(&made, &random);
		frames[max] = 77;
		count = made.count < max ? made.count : max;
		assert_int_equal(unwind_fast(frames, max, &none, &made.start), count);
		assert_memory_equal(frames, made.frames, count * 8);
		assert_int_equal(frames[max], 77);
		free(made.words);
	}
}

/* Damage of any kind: whatever it finds, it reads nothing outside and ends. */
TEST(damage_leads_nowhere_outside)
{
	uint64_t random = 5, frames[FRAMES_MAX], hurt = 0;

	for (int i = 0; i < 5000; i++) {
		struct made made;
		uint32_t count;

		unwind_forget_all();
		make(&made, &random);
		for (uint64_t changes = 1 + below(&random, 20); changes--;) {
			uint64_t *word = &made.words[below(&random, made.words_count)];
			uint64_t *other = &made.words[below(&random, made.words_count)];

			*word = below(&random, 2) ? *other : addr_of(other) + below(&random, 9);
		}
		made.start.rbp = addr_of(made.words) - 64 + below(&random, 128 + WORDS * 8);
		count = unwind_fast(frames, FRAMES_MAX, &none, &made.start);
		assert_true(count == UNWIND_MISS || count <= FRAMES_MAX);
		hurt += count != made.count;
		free(made.words);
	}
	assert_true(hurt > 1000);
}

TEST(what_is_not_known_is_missed)
{
	uint64_t words[] = {0x1000, 1, 0x2000, 2, 0}, frames[8];
	struct unwind_start start = {addr_of(words), 0, addr_of(words + 5), 0};

	unwind_forget_all();
	assert_int_equal(unwind_fast(frames, 8, &none, &start), UNWIND_MISS);
	know(0x1000, false, 16, UNWIND_RBP_KEPT);
	assert_int_equal(unwind_fast(frames, 8, &none, &start), UNWIND_MISS);
	assert_int_equal(unwind_fast(frames, 2, &none, &start), UNWIND_MISS);
	assert_int_equal(unwind_fast(frames, 1, &none, &start), 1);
	know(0x2000, false, 16, UNWIND_RBP_KEPT);
	assert_int_equal(unwind_fast(frames, 8, &none, &start), 2);
	unwind_cache_put(0x2000, UNWIND_NEVER, unwind_cache_begin());
	assert_int_equal(unwind_fast(frames, 8, &none, &start), UNWIND_MISS);
	unwind_cache_put(0x2000, UNWIND_END, unwind_cache_begin());
	assert_int_equal(unwind_fast(frames, 8, &none, &start), 2);
	assert_int_equal(unwind_fast(frames, 2, &none, &start), 2);
	unwind_cache_put(0x2000, UNWIND_NO_CODE, unwind_cache_begin());
	assert_int_equal(unwind_fast(frames, 8, &none, &start), 1);
	assert_int_equal(unwind_fast(frames, 2, &none, &start), 1);
}

TEST(frames_are_left_out_at_the_inner_end_only)
{
	uint64_t words[] = {0x1000, 0x1010, 0x2000, 0x1020, 0}, frames[8];
	struct unwind_start start = {addr_of(words), 0, addr_of(words + 5), 0};
	struct unwind_skip own = {0x1000, 0x1100}, all = {1, UINT64_MAX};

	unwind_forget_all();
	for (int i = 0; i < 4; i++)
		know(words[i], false, 8, UNWIND_RBP_KEPT);
	assert_int_equal(unwind_fast(frames, 8, &own, &start), 2);
	assert_int_equal(frames[0], 0x2000);
	assert_int_equal(frames[1], 0x1020);
	assert_int_equal(unwind_fast(frames, 8, &all, &start), 0);
}

/* Three addresses of one set, which has room for two. */
static void find_crowd(uint64_t crowd[3])
{
	uint64_t count = 1, index;

	crowd[0] = 0x140001000;
	index = unwind_index(crowd[0], unwind_tag(crowd[0]));
	for (uint64_t tag = 1; count < 3; tag++) {
		uint64_t addr = tag << UNWIND_SETS_LOG2 | unwind_index(index, tag);

		if (addr != crowd[0])
			crowd[count++] = addr;
	}
}

/* The entry of an address moves in its set, or goes and comes again: hints are no more than that. */
TEST(entries_may_move)
{
	uint64_t crowd[3], frames[8];

	find_crowd(crowd);
	for (int i = 0; i < 6; i++) {
		uint64_t words[] = {0x7000, crowd[i % 3], 0x7100, 0};
		struct unwind_start start = {addr_of(words), 0, addr_of(words + 4), 0};

		unwind_forget_all();
		know(0x7000, false, 8, UNWIND_RBP_KEPT);
		know(0x7100, false, 8, UNWIND_RBP_KEPT);
		know(crowd[i % 3], false, 8, UNWIND_RBP_KEPT);
		assert_int_equal(unwind_fast(frames, 8, &none, &start), 3);
		unwind_forget(crowd[i % 3], crowd[i % 3] + 1);
		assert_int_equal(unwind_fast(frames, 8, &none, &start), UNWIND_MISS);
		know(crowd[(i + 1) % 3], false, 16, UNWIND_RBP_KEPT);
		assert_int_equal(unwind_fast(frames, 8, &none, &start), UNWIND_MISS);
		know(crowd[i % 3], false, 8, UNWIND_RBP_KEPT);
		for (int again = 0; again < 3; again++) {
			assert_int_equal(unwind_fast(frames, 8, &none, &start), 3);
			assert_memory_equal(frames, words, 3 * 8);
		}
	}
}

/* Whatever hints say, a walk finds the same. */
TEST(hints_change_nothing)
{
	uint64_t random = 6, frames[FRAMES_MAX];

	for (int i = 0; i < 500; i++) {
		struct made made;

		unwind_forget_all();
		make(&made, &random);
		for (int times = 0; times < 20; times++) {
			uint64_t other = made.frames[below(&random, FRAMES_MAX)];

			for (uint32_t at = 0; at < made.count; at++)
				unwind_cache[unwind_cache_place(made.frames[at])].hint =
					below(&random, 3) ? next_random(&random) :
							    other << 16 | below(&random, 65536);
			made.start.number++;
			assert_int_equal(
				unwind_fast(frames, FRAMES_MAX, &none, &made.start), made.count);
			assert_memory_equal(frames, made.frames, made.count * 8);
		}
		free(made.words);
	}
}
