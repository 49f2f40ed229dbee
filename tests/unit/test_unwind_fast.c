/* The x64 unwinder's cache of return addresses (packed entries, lookups, removal), and its cached
 * walks over generated stacks. Stacks are allocated with exact sizes, so that the sanitizers detect
 * a read outside. */
#include "tests/unit/t.h"

#include <pthread.h>

#include "snapshot/tracer/unwind.h"
#include "snapshot/tracer/unwind_parts_x64.h"

#define ADDR_END ((uint64_t)1 << 47)

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 16;
}

static void put(uint64_t addr, uint32_t packed)
{
	unwind_cache_add(addr, packed, unwind_cache_begin());
}

static int forget(void **state)
{
	(void)state;
	unwind_forget_all();
	return 0;
}

#undef TEST_AROUND
#define TEST_AROUND forget, NULL

TEST_WITH(steps_are_packed_and_unpacked, NULL, NULL)
{
	uint64_t random = 1;

	for (int i = 0; i < 100000; i++) {
		struct unwind_step step = {.is_from_rbp = next_random(&random) & 1,
			.cfa = ((int64_t)(next_random(&random) % 65536) - 32768) * 8,
			.rbp = ((int64_t)(next_random(&random) % 16384) - 8192) * 8};
		uint32_t packed = unwind_pack(&step);

		if (!step.is_from_rbp && step.cfa <= 0) {
			assert_int_equal(packed, UNWIND_NEVER);
			continue;
		}
		assert_int_equal(unwind_packed_is_from_rbp(packed), step.is_from_rbp);
		assert_int_equal(unwind_packed_cfa(packed), step.cfa);
		assert_int_equal(unwind_packed_rbp(packed), step.rbp);
		assert_true(packed != UNWIND_UNKNOWN && packed != UNWIND_END &&
			    packed != UNWIND_NEVER && packed != UNWIND_NO_CODE);
	}
}

TEST_WITH(what_does_not_fit_is_never_kept, NULL, NULL)
{
	static const struct unwind_step leaf = {false, 8, UNWIND_RBP_KEPT},
					steps[] = {
						{false, 0, -16},
						{false, -8, -16},
						{false, 12, -16},
						{false, 16, -12},
						{false, 32768 * 8, -16},
						{true, 32768 * 8, -16},
						{true, -32769 * 8, -16},
						{false, 16, 8192 * 8},
						{false, 16, -8193 * 8},
					};

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		assert_int_equal(unwind_pack(&steps[i]), UNWIND_NEVER);
	assert_int_equal(unwind_pack(&leaf), UNWIND_LEAF);
}

/* An entry contains the whole address, so a lookup of another address in the same set does not find
 * it. */
TEST(address_is_found_under_itself_alone)
{
	uint64_t random = 2;

	for (int i = 0; i < 200; i++) {
		uint64_t addr = next_random(&random) % ADDR_END;

		put(addr, 5);
		put(addr, 0x12345 | 1); /* replaces the entry */
		assert_int_equal(unwind_cache_find(addr), 0x12345 | 1);
		for (unsigned bit = 0; bit < 64; bit++)
			assert_int_equal(unwind_cache_find(addr ^ (uint64_t)1 << bit), 0);
		unwind_forget(addr, addr + 1);
		assert_int_equal(unwind_cache_find(addr), 0);
	}
}

TEST(addresses_of_no_program_are_not_kept)
{
	static const uint64_t addrs[] = {ADDR_END, UINT64_MAX, (uint64_t)1 << 63};

	for (size_t i = 0; i < 3; i++) {
		put(addrs[i], 77);
		assert_int_equal(unwind_cache_find(addrs[i]), 0);
		assert_int_equal(unwind_cache_find(addrs[i] & (ADDR_END - 1)), 0);
	}
}

/* A range of 32 KiB has one place for each address, so all addresses of two such ranges fit. */
TEST(neighbours_do_not_push_each_other_out)
{
	for (uint64_t at = 0; at < UNWIND_SETS; at++) {
		put(0x7ff812340000 + at, (uint32_t)at << 2 | 1);
		put(0x140000000 + at, (uint32_t)at << 2 | 3);
	}
	for (uint64_t at = 0; at < UNWIND_SETS; at++) {
		assert_int_equal(unwind_cache_find(0x7ff812340000 + at), (uint32_t)at << 2 | 1);
		assert_int_equal(unwind_cache_find(0x140000000 + at), (uint32_t)at << 2 | 3);
	}
}

TEST(range_is_forgotten_and_no_more)
{
	uint64_t from = 0x7ff812345678, to = 0x7ff812346789;

	for (uint64_t addr = from - 2000; addr < to + 2000; addr++)
		put(addr, 5);
	unwind_forget(from, to);
	for (uint64_t addr = from - 2000; addr < to + 2000; addr++)
		assert_int_equal(unwind_cache_find(addr), addr >= from && addr < to ? 0 : 5);
}

/* A step that is computed before a removal and stored after it must not be used. */
TEST(what_is_learnt_too_late_does_not_count)
{
	uint64_t begun = unwind_cache_begin();

	unwind_forget(0x5000, 0x6000);
	unwind_cache_add(0x5800, 5, begun);
	assert_int_equal(unwind_cache_find(0x5800), 0);
	unwind_cache_add(0x5800, 5, unwind_cache_begin());
	assert_int_equal(unwind_cache_find(0x5800), 5);
}

/* Derives a step from the address, so that a wrong step is detected. */
static uint32_t step_of(uint64_t addr)
{
	return (uint32_t)(addr * 0x9e3779b97f4a7c15u >> 32) | 1;
}

static void *write_and_find(void *seed)
{
	uint64_t random = (uintptr_t)seed, wrong = 0;

	for (int i = 0; i < 300000; i++) {
		/* few sets, many addresses */
		uint64_t addr = next_random(&random) % 64 << 40 | next_random(&random) % 8;
		uint32_t found = unwind_cache_find(addr);

		wrong += found && found != step_of(addr);
		put(addr, step_of(addr));
		if (i % 1000 == 0)
			unwind_forget(addr, addr + 1);
	}
	return (void *)(uintptr_t)wrong;
}

TEST(threads_find_nothing_wrong)
{
	pthread_t threads[4];

	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, write_and_find, (void *)(i + 1)), 0);
	for (int i = 0; i < 4; i++) {
		void *wrong;

		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
}

/* ---------------------------------------------------------------- walks */

#define WORDS 512
#define FRAMES_MAX 64

static const struct unwind_skip none = {0, 0};
static struct unwind_start stop;

static uint64_t below(uint64_t *state, uint64_t end)
{
	return next_random(state) % end;
}

/* A generated stack, and the expected result of a walk over it. */
static struct made {
	uint64_t *words; /* words_count words; allocated with this exact size */
	uint64_t words_count;
	struct unwind_start start;
	uint64_t frames[FRAMES_MAX];
	uint32_t count;
} made;

static uint64_t addr_of(const uint64_t *word)
{
	return (uint64_t)(uintptr_t)word;
}

static struct unwind_start start_at(const uint64_t *words, const uint64_t *end)
{
	return (struct unwind_start){.slot = addr_of(words), .high = addr_of(end)};
}

static void know(uint64_t addr, bool is_from_rbp, int64_t cfa, int64_t rbp)
{
	struct unwind_step step = {is_from_rbp, cfa, rbp};
	uint32_t packed = unwind_pack(&step);

	assert_int_not_equal(packed, UNWIND_NEVER);
	unwind_cache_add(addr, packed, unwind_cache_begin());
}

/* Builds frames of random kinds, from the inner end outwards, while there is room. All other words
 * are random. RBP depends on the frames' kinds: some frames save it and point it into themselves.
 * The stack replaces the previous stack, whose addresses are removed from the cache. */
static void make(uint64_t *random)
{
	uint64_t at = 0, rbp_word = 0;
	bool rbp_is_frame = false;

	unwind_forget_all();
	free(made.words);
	made.words_count = 16 + below(random, WORDS);
	made.words = malloc(made.words_count * 8);
	assert_non_null(made.words);
	for (uint64_t i = 0; i < made.words_count; i++)
		made.words[i] = next_random(random);
	made.start = start_at(made.words, made.words + made.words_count);
	made.start.rbp = next_random(random);
	memset(made.frames, 0, sizeof(made.frames));
	made.count = 0;
	while (made.count < FRAMES_MAX) {
		/* The word at `at` is a return address. Its frame has `size` words above this
		 * word. */
		uint64_t size = 1 + below(random, 20), cfa = at + 1 + size;
		uint64_t addr = 0x140000000 + below(random, 1u << 30);
		bool has_room = cfa <= made.words_count;

		made.words[at] = addr;
		made.frames[made.count++] = addr;
		if (!has_room) { /* a frame that leads out of the stack, in any direction */
			made.words[at] = 0;
			made.count--;
			break;
		}
		if (rbp_is_frame && below(random, 2)) {
			/* The CFA is computed from RBP, which points to the word at rbp_word. */
			know(addr, true, (int64_t)(cfa - rbp_word) * 8, UNWIND_RBP_KEPT);
		} else {
			know(addr, false, (int64_t)size * 8, UNWIND_RBP_KEPT);
		}
		if (rbp_word < cfa)
			rbp_is_frame = false;
		if (size > 1 && below(random, 2)) {
			/* The frame saves the caller's RBP, which points to a word farther out. */
			uint64_t slot = at + 1 + below(random, size - 1);
			uint32_t packed = unwind_cache_find(addr);

			rbp_word = cfa + below(random, made.words_count);
			rbp_is_frame = rbp_word < made.words_count;
			made.words[slot] =
				rbp_is_frame ? addr_of(made.words + rbp_word) : next_random(random);
			know(addr, unwind_packed_is_from_rbp(packed), unwind_packed_cfa(packed),
				((int64_t)slot - (int64_t)cfa) * 8);
		}
		at = cfa - 1;
	}
}

/* Walks like unwind_fast(), step by step and without runs. */
static uint32_t walk_by_steps(uint64_t *frames, uint32_t max, const struct unwind_skip *skip,
	const struct unwind_start *start, struct unwind_start *end)
{
	struct unwind_start at = *start;

	for (;;) {
		uint64_t addr = *(uint64_t *)(uintptr_t)at.slot;
		uint32_t packed = unwind_cache_find(addr);

		if (at.count || addr < skip->from || addr >= skip->to) {
			if (!addr || at.count == max)
				return at.count;
			frames[at.count++] = addr;
		}
		if (!addr || at.slot + 8 > at.high - 8 || packed == UNWIND_END)
			return at.count;
		if (packed == UNWIND_NO_CODE)
			return at.count - !!at.count;
		if (packed == UNWIND_UNKNOWN || packed == UNWIND_NEVER ||
			!unwind_step_on(&at, packed)) {
			*end = at;
			return UNWIND_MISS;
		}
	}
}

TEST(walks_find_frames_of_made_stacks)
{
	uint64_t random = 3, frames[FRAMES_MAX], all = 0;

	for (int i = 0; i < 5000; i++) {
		make(&random);
		for (int times = 0; times < 3; times++) {
			memset(frames, 0xee, sizeof(frames));
			assert_int_equal(
				unwind_fast(frames, FRAMES_MAX, &none, &made.start, &stop, NULL),
				made.count);
			assert_memory_equal(frames, made.frames, made.count * 8);
		}
		all += made.count;
	}
	assert_true(all > 50000);
}

TEST(walk_is_cut_at_max)
{
	uint64_t random = 4, frames[FRAMES_MAX + 1];

	for (uint32_t max = 0; max <= FRAMES_MAX; max++) {
		uint32_t count;

		make(&random);
		frames[max] = 77;
		count = made.count < max ? made.count : max;
		assert_int_equal(unwind_fast(frames, max, &none, &made.start, &stop, NULL), count);
		assert_memory_equal(frames, made.frames, count * 8);
		assert_int_equal(frames[max], 77);
	}
}

TEST(damage_leads_nowhere_outside)
{
	uint64_t random = 5, frames[FRAMES_MAX], hurt = 0;

	for (int i = 0; i < 5000; i++) {
		uint32_t count;

		make(&random);
		for (uint64_t changes = 1 + below(&random, 20); changes--;) {
			uint64_t *word = &made.words[below(&random, made.words_count)];
			uint64_t *other = &made.words[below(&random, made.words_count)];

			*word = below(&random, 2) ? *other : addr_of(other) + below(&random, 9);
		}
		made.start.rbp = addr_of(made.words) - 64 + below(&random, 128 + WORDS * 8);
		count = unwind_fast(frames, FRAMES_MAX, &none, &made.start, &stop, NULL);
		assert_true(count == UNWIND_MISS || count <= FRAMES_MAX);
		hurt += count != made.count;
	}
	assert_true(hurt > 1000);
}

TEST(what_is_not_known_is_missed)
{
	uint64_t words[] = {0x1000, 1, 0x2000, 2, 0}, frames[8];
	struct unwind_start start = start_at(words, words + 5);

	assert_int_equal(unwind_fast(frames, 8, &none, &start, &stop, NULL), UNWIND_MISS);
	know(0x1000, false, 16, UNWIND_RBP_KEPT);
	assert_int_equal(unwind_fast(frames, 8, &none, &start, &stop, NULL), UNWIND_MISS);
	assert_int_equal(unwind_fast(frames, 2, &none, &start, &stop, NULL), UNWIND_MISS);
	assert_int_equal(unwind_fast(frames, 1, &none, &start, &stop, NULL), 1);
	know(0x2000, false, 16, UNWIND_RBP_KEPT);
	assert_int_equal(unwind_fast(frames, 8, &none, &start, &stop, NULL), 2);
	unwind_forget(0x2000, 0x2001);
	unwind_cache_add(0x2000, UNWIND_NEVER, unwind_cache_begin());
	assert_int_equal(unwind_fast(frames, 8, &none, &start, &stop, NULL), UNWIND_MISS);
	unwind_cache_add(0x2000, UNWIND_END, unwind_cache_begin());
	assert_int_equal(unwind_fast(frames, 8, &none, &start, &stop, NULL), 2);
	assert_int_equal(unwind_fast(frames, 2, &none, &start, &stop, NULL), 2);
	unwind_cache_add(0x2000, UNWIND_NO_CODE, unwind_cache_begin());
	assert_int_equal(unwind_fast(frames, 8, &none, &start, &stop, NULL), 1);
	assert_int_equal(unwind_fast(frames, 2, &none, &start, &stop, NULL), 1);
}

TEST(frames_are_left_out_at_inner_end_only)
{
	uint64_t words[] = {0x1000, 0x1010, 0x2000, 0x1020, 0}, frames[8];
	struct unwind_start start = start_at(words, words + 5);
	struct unwind_skip own = {0x1000, 0x1100}, all = {1, UINT64_MAX};

	unwind_forget_all();
	for (int i = 0; i < 4; i++)
		know(words[i], false, 8, UNWIND_RBP_KEPT);
	assert_int_equal(unwind_fast(frames, 8, &own, &start, &stop, NULL), 2);
	assert_int_equal(frames[0], 0x2000);
	assert_int_equal(frames[1], 0x1020);
	assert_int_equal(unwind_fast(frames, 8, &all, &start, &stop, NULL), 0);
}

static struct unwind_trail trail;

/* The stack that was noted last, and counts of notes and of reused trails. */
static uint64_t noted[FRAMES_MAX];
static uint32_t noted_count, notes, same;

/* Attaches a note to the stack that was found. Some walks are not stored. */
static void note(const uint64_t *frames, uint32_t count)
{
	assert_int_equal(trail.note.id, 0);
	if (!trail.count)
		return;
	trail.note.id = ++notes;
	noted_count = count;
	memcpy(noted, frames, count * 8);
}

/* Walks with the last walk's trail, and step by step. */
static void check_trail(
	const struct unwind_start *start, uint32_t max, const struct unwind_skip *skip)
{
	uint64_t alone[FRAMES_MAX], after[FRAMES_MAX];
	struct unwind_start stops[2] = {0};
	bool is_full = max == FRAMES_MAX && skip->from == none.from && skip->to == none.to;
	bool is_same = unwind_is_same(&trail, start) && trail.note.id;
	uint32_t count = walk_by_steps(alone, max, skip, start, &stops[0]);

	if (is_full && is_same) {
		assert_int_equal(trail.note.id, notes);
		assert_int_equal(count, noted_count);
		assert_memory_equal(alone, noted, count * 8);
		same++;
	}

	assert_int_equal(unwind_fast(after, max, skip, start, &stops[1], &trail), count);
	if (count == UNWIND_MISS) {
		assert_int_equal(stops[1].slot, stops[0].slot);
		assert_int_equal(stops[1].rbp, stops[0].rbp);
		count = stops[0].count;
		assert_int_equal(stops[1].count, count);
	}
	assert_memory_equal(after, alone, count * 8);
	if (is_full)
		note(after, count);
}

/* Walks over stacks, most of which keep the outer part of the previous stack. */
TEST(earlier_walks_change_nothing)
{
	uint64_t random = 11, kept[16 + WORDS];

	trail.count = 0;
	for (int i = 0; i < 3000; i++) {
		make(&random);
		memcpy(kept, made.words, made.words_count * 8);
		for (int walks = 0; walks < 40; walks++) {
			struct unwind_start start = made.start;
			struct unwind_skip skip = none;
			uint32_t max = FRAMES_MAX;

			if (!below(&random, 3))
				memcpy(made.words, kept, made.words_count * 8);
			if (!below(&random, 3))
				made.words[below(&random, made.words_count)] =
					addr_of(made.words + below(&random, made.words_count));
			if (!below(&random, 3))
				made.words[below(&random, made.words_count)] =
					made.words[below(&random, made.words_count)];
			if (!below(&random, 4))
				start.rbp = addr_of(made.words + below(&random, made.words_count));
			if (!below(&random, 4)) {
				start.slot += below(&random, made.words_count) * 8;
			}
			if (!below(&random, 4))
				max = (uint32_t)below(&random, FRAMES_MAX + 1);
			if (!below(&random, 8))
				skip = (struct unwind_skip){made.words[0], made.words[0] + 1};
			check_trail(&start, max, &skip);
		}
	}
	assert_in_range(notes, 1000, 120000);
	assert_in_range(same, 1000, notes);
}

/* Checks that runs are followed, which the test above does not show. */
TEST(runs_are_not_looked_up)
{
	uint64_t words[40] = {0}, frames[FRAMES_MAX];
	struct unwind_start start = start_at(words, words + 40);

	for (uint64_t i = 0; i < 39; i++) {
		words[i] = 0x140001000 + i * 0x10;
		know(words[i], false, 8, UNWIND_RBP_KEPT);
	}
	assert_int_equal(unwind_fast(frames, FRAMES_MAX, &none, &start, &stop, NULL), 39);
	for (uint64_t i = 0; i < 39; i++)
		put(words[i], UNWIND_NEVER);
	memset(frames, 0xee, sizeof(frames));
	assert_int_equal(unwind_fast(frames, FRAMES_MAX, &none, &start, &stop, NULL), 39);
	assert_memory_equal(frames, words, 39 * 8);
	unwind_forget(1, 2);
	assert_int_equal(unwind_fast(frames, FRAMES_MAX, &none, &start, &stop, NULL), UNWIND_MISS);
}

/* Addresses with steps of all kinds, for stacks of random order. */
#define PLACES 40

static uint64_t place_of(uint64_t number)
{
	return 0x140001000 + number % PLACES * 0x40;
}

static void know_places(void)
{
	uint64_t random = 21;

	for (uint64_t i = 0; i < PLACES; i++) {
		int64_t size = 1 + (int64_t)below(&random, 4);

		switch (i % 4) {
		case 0: know(place_of(i), false, size * 8, UNWIND_RBP_KEPT); break;
		case 1: know(place_of(i), false, (size + 1) * 8, -16); break;
		case 2: /* saved in the caller's room for arguments, or beyond it */
			know(place_of(i), false, size * 8, (int64_t)below(&random, 10) * 8);
			break;
		default: know(place_of(i), true, (size + 1) * 8, -16); break;
		}
	}
}

#define RANDOM_WORDS 120

/* Fills a stack with random return addresses, pointers into the stack, and zeros. */
static void fill(uint64_t *words, uint64_t *random)
{
	uint64_t first = below(random, RANDOM_WORDS), last = below(random, RANDOM_WORDS);

	for (uint64_t i = first; i <= last; i++)
		words[i] = !below(random, 50) ? 0 :
			   below(random, 4)   ? place_of(below(random, PLACES)) :
						addr_of(&words[below(random, RANDOM_WORDS)]);
	if (!below(random, 2))
		return;
	/* two thirds of the addresses have one successor, as in most programs */
	for (uint64_t i = first; i < last; i++)
		if (below(random, 3))
			words[i + 1] = words[i] + 0x40;
}

/* Walks over random stacks with shared runs. Returns the number of walks that differ from those step
 * by step, or UINT64_MAX if too few frames were found. */
static uint64_t walk_random_stacks(uint64_t seed, int walks)
{
	uint64_t *words = calloc(RANDOM_WORDS, 8), random = seed, wrong = 0, all = 0;
	struct unwind_start start;

	if (!words)
		return UINT64_MAX;
	start = start_at(words, words + RANDOM_WORDS);
	for (int i = 0; i < walks; i++) {
		uint64_t frames[2][FRAMES_MAX];
		struct unwind_start stops[2] = {0};
		uint32_t max =
			below(&random, 8) ? FRAMES_MAX : (uint32_t)below(&random, FRAMES_MAX);
		uint32_t counts[2];

		fill(words, &random);
		words[0] = place_of(below(&random, PLACES));
		start.rbp = addr_of(&words[below(&random, RANDOM_WORDS)]);
		start.number++;
		counts[0] = walk_by_steps(frames[0], max, &none, &start, &stops[0]);
		counts[1] = unwind_fast(frames[1], max, &none, &start, &stops[1], NULL);
		wrong += counts[0] != counts[1] || stops[0].slot != stops[1].slot ||
			 stops[0].rbp != stops[1].rbp || stops[0].count != stops[1].count;
		if (counts[0] == UNWIND_MISS)
			counts[0] = stops[0].count;
		wrong += memcmp(frames[0], frames[1], counts[0] * 8) != 0;
		all += counts[0];
		if (i % 500 == 0)
			unwind_forget(1, 2); /* empties the runs */
	}
	free(words);
	return all > (uint64_t)walks * 3 ? wrong : UINT64_MAX;
}

TEST(runs_of_other_stacks_change_nothing)
{
	know_places();
	assert_int_equal(walk_random_stacks(22, 200000), 0);
}

static void *walk_in_thread(void *seed)
{
	return (void *)(uintptr_t)walk_random_stacks((uintptr_t)seed, 50000);
}

TEST(threads_share_runs)
{
	pthread_t threads[4];

	know_places();
	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, walk_in_thread, (void *)(i + 30)), 0);
	for (int i = 0; i < 4; i++) {
		void *wrong;

		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
}

/* Steps at the limits of what a run can contain, and just beyond. */
TEST(runs_contain_long_steps)
{
	static const struct unwind_step steps[] = {{false, 1023 * 8, -120 * 8},
		{false, 1024 * 8, -120 * 8}, {false, 1023 * 8, -121 * 8},
		{false, 200 * 8, -200 * 8}, {false, 8, 24}, {false, 8, 32}, {false, 16, -16}};
	uint64_t *words = calloc(1100, 8), frames[8];
	struct unwind_start start = start_at(words, words + 1100);

	assert_non_null(words);
	words[0] = 0x1000;
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		int64_t caller = steps[i].cfa / 8, saved = caller + 1 + steps[i].rbp / 8;

		unwind_forget_all();
		memset(words + 1, 0, 1099 * 8);
		words[caller] = 0x2000;
		words[caller + 1] = 0x3000;
		words[saved] = addr_of(&words[caller + 2]);
		words[caller + 3] = 0x4000;
		know(0x1000, false, steps[i].cfa, steps[i].rbp);
		know(0x2000, false, 8, UNWIND_RBP_KEPT);
		know(0x3000, true, 16, UNWIND_RBP_KEPT);
		know(0x4000, false, 8, UNWIND_RBP_KEPT);
		for (int times = 0; times < 3; times++) {
			uint64_t expected[8];
			struct unwind_start end;
			uint32_t count = walk_by_steps(expected, 8, &none, &start, &end);

			assert_int_equal(unwind_fast(frames, 8, &none, &start, &stop, NULL), count);
			if (count != UNWIND_MISS)
				assert_memory_equal(frames, expected, count * 8);
		}
	}
	free(words);
}

/* The key of such a run equals that of a run from address 1. */
TEST(run_that_is_being_stored_is_not_followed)
{
	uint64_t words[] = {0x7000, UNWIND_RUN_BUSY, 0x7100, 0}, frames[8];
	struct unwind_start start = start_at(words, words + 4);
	struct unwind_run *run = unwind_run_of(UNWIND_RUN_BUSY);

	know(0x7000, false, 8, UNWIND_RBP_KEPT);
	run->key = UNWIND_RUN_BUSY << UNWIND_RUN_BITS;
	run->words[0] = (uint64_t)0x7100 << UNWIND_RUN_BITS | 1;
	assert_int_equal(unwind_fast(frames, 8, &none, &start, &stop, NULL), UNWIND_MISS);
	assert_int_equal(stop.count, 2);
	run->key = 0;
}

/* A run that is stored after its steps were forgotten must not be used. */
TEST(late_run_does_not_count)
{
	struct unwind_learner learner;
	uint64_t words[] = {0x7000, 0x7100, 0}, frames[8];
	struct unwind_start start = start_at(words, words + 3);
	const struct unwind_step step = {false, 8, UNWIND_RBP_KEPT};

	unwind_learner_begin(&learner, 0x7000);
	unwind_learner_step(&learner, unwind_pack(&step), 0x7100);
	unwind_forget(0x7000, 0x8000);
	unwind_learner_end(&learner);
	assert_int_equal(unwind_fast(frames, 8, &none, &start, &stop, NULL), UNWIND_MISS);
	assert_int_equal(stop.count, 1);
}

/* Frames that were found before the walk continued are not in the trail. */
TEST(of_walk_that_goes_on_nothing_is_noted)
{
	uint64_t random = 13, frames[FRAMES_MAX];

	trail.count = 0;
	for (int i = 0; i < 100; i++) {
		struct unwind_start start;

		make(&random);
		start = made.start;
		unwind_fast(frames, FRAMES_MAX, &none, &start, &stop, &trail);
		assert_int_not_equal(trail.count, 0);
		start.count = 1;
		unwind_fast(frames, FRAMES_MAX, &none, &start, &stop, &trail);
		assert_int_equal(trail.count, 0);
	}
}

TEST(stack_is_not_same_when_something_was_forgotten)
{
	uint64_t random = 14, frames[FRAMES_MAX];
	struct unwind_start shorter;

	trail.count = 0;
	make(&random);
	assert_false(unwind_is_same(&trail, &made.start));
	unwind_fast(frames, FRAMES_MAX, &none, &made.start, &stop, &trail);
	assert_true(unwind_is_same(&trail, &made.start));
	shorter = made.start;
	shorter.high -= 8;
	assert_false(unwind_is_same(&trail, &shorter));
	unwind_forget(1, 2);
	assert_false(unwind_is_same(&trail, &made.start));
}

/* A frame's size depends on RBP, so equal stacks can have different registers. */
TEST(same_words_are_another_stack_with_another_rbp)
{
	uint64_t words[] = {0x1000, 1, 0x2000, 0x3000, 0, 0x4000, 0}, frames[8];
	struct unwind_start start = start_at(words, words + 7);

	trail.count = 0;
	know(0x1000, true, 16, UNWIND_RBP_KEPT);
	for (uint64_t addr = 0x2000; addr < 0x5000; addr += 0x1000)
		know(addr, false, 8, UNWIND_RBP_KEPT);
	for (int i = 0; i < 4; i++) {
		start.rbp = addr_of(&words[i % 2 ? 1 : 4]);
		assert_false(unwind_is_same(&trail, &start));
		assert_int_equal(
			unwind_fast(frames, 8, &none, &start, &stop, &trail), i % 2 ? 3 : 2);
		assert_true(unwind_is_same(&trail, &start));
		assert_int_equal(frames[1], i % 2 ? 0x2000 : 0x4000);
	}
}

/* Two paths lead to such a frame. They take its RBP from different places. */
TEST(rbp_is_looked_for_where_it_is_now)
{
	uint64_t words[] = {0, 0, 0, 0x3000, 4, 0x4000, 0, 0x5000, 0}, frames[8];
	struct unwind_start start = start_at(words, words + 9);
	static const struct {
		uint64_t addr;
		int first, second; /* targets of the two RBPs */
		uint64_t caller;
	} walks[] = {{0x1000, 4, 4, 0x4000}, {0x2000, 4, 4, 0x4000}, {0x2000, 4, 6, 0x5000},
		{0x2000, 6, 4, 0x4000}, {0x1000, 6, 4, 0x5000}, {0x1000, 4, 6, 0x4000}};

	trail.count = 0;
	know(0x1000, false, 24, -24);
	know(0x2000, false, 24, -16);
	know(0x3000, true, 16, UNWIND_RBP_KEPT);
	know(0x4000, false, 8, UNWIND_RBP_KEPT);
	know(0x5000, false, 8, UNWIND_RBP_KEPT);
	for (size_t i = 0; i < sizeof(walks) / sizeof(*walks); i++) {
		words[0] = walks[i].addr;
		words[1] = addr_of(&words[walks[i].first]);
		words[2] = addr_of(&words[walks[i].second]);
		assert_int_equal(unwind_fast(frames, 8, &none, &start, &stop, &trail), 3);
		assert_int_equal(frames[2], walks[i].caller);
	}
}

/* Finds three addresses that belong to the same set, which has room for two. */
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

/* The entry of an address moves in its set, or is removed and added again. */
TEST(entries_may_move)
{
	uint64_t crowd[3], frames[8];

	find_crowd(crowd);
	for (int i = 0; i < 6; i++) {
		uint64_t words[] = {0x7000, crowd[i % 3], 0x7100, 0};
		struct unwind_start start = start_at(words, words + 4);

		unwind_forget_all();
		know(0x7000, false, 8, UNWIND_RBP_KEPT);
		know(0x7100, false, 8, UNWIND_RBP_KEPT);
		know(crowd[i % 3], false, 8, UNWIND_RBP_KEPT);
		assert_int_equal(unwind_fast(frames, 8, &none, &start, &stop, NULL), 3);
		unwind_forget(crowd[i % 3], crowd[i % 3] + 1);
		assert_int_equal(unwind_fast(frames, 8, &none, &start, &stop, NULL), UNWIND_MISS);
		know(crowd[(i + 1) % 3], false, 16, UNWIND_RBP_KEPT);
		assert_int_equal(unwind_fast(frames, 8, &none, &start, &stop, NULL), UNWIND_MISS);
		know(crowd[i % 3], false, 8, UNWIND_RBP_KEPT);
		for (int again = 0; again < 3; again++) {
			assert_int_equal(unwind_fast(frames, 8, &none, &start, &stop, NULL), 3);
			assert_memory_equal(frames, words, 3 * 8);
		}
	}
}

/* Some addresses cannot be cached. The walk continues, and the caller supplies each such step. */
TEST(walks_go_on_from_where_they_stop)
{
	uint64_t random = 7, frames[FRAMES_MAX], stops = 0;

	for (int i = 0; i < 3000; i++) {
		uint32_t told[FRAMES_MAX + 1] = {0}, count, max;
		struct unwind_start at;

		make(&random);
		for (uint32_t k = 0; k < made.count; k++) {
			told[k] = unwind_cache_find(made.frames[k]);
			if (below(&random, 3))
				put(made.frames[k], UNWIND_NEVER);
		}
		max = below(&random, 4) ? FRAMES_MAX : made.count / 2;
		memset(frames, 0xee, sizeof(frames));
		at = made.start;
		while ((count = unwind_fast(frames, max, &none, &at, &stop, NULL)) == UNWIND_MISS) {
			at = stop;
			assert_true(at.count && at.count <= made.count);
			assert_int_equal(
				*(uint64_t *)(uintptr_t)at.slot, made.frames[at.count - 1]);
			if (!unwind_step_on(&at, told[at.count - 1])) {
				count = at.count; /* the step led out of the stack */
				break;
			}
			stops++;
		}
		assert_int_equal(count, made.count < max ? made.count : max);
		assert_memory_equal(frames, made.frames, count * 8);
	}
	assert_true(stops > 10000);
}

/* ---------------------------------------------------------------- unwind data */

/* UNWIND_INFO of known prologues, written by hand after "x64 exception handling", Microsoft Learn,
 * with the step that results. The CFA includes pushed registers, allocated bytes, and the return
 * address. */
TEST(unwind_data_gives_step)
{
	static const struct {
		uint8_t info[24];
		struct unwind_step step;
	} forms[] = {
		/* no codes: a leaf */
		{{1, 0, 0, 0}, {false, 8, UNWIND_RBP_KEPT}},
		/* push rbp; mov rbp, rsp */
		{{1, 4, 2, 5, 4, 0x03, 1, 0x50}, {true, 16, -16}},
		/* sub rsp, 28h */
		{{1, 4, 1, 0, 4, 0x42}, {false, 0x30, UNWIND_RBP_KEPT}},
		/* push rbx; push rbp; sub rsp, 20h */
		{{1, 6, 3, 0, 6, 0x32, 2, 0x50, 1, 0x30}, {false, 0x38, -24}},
		/* push rbp; push rbx; sub rsp, 20h */
		{{1, 6, 3, 0, 6, 0x32, 2, 0x30, 1, 0x50}, {false, 0x38, -16}},
		/* sub rsp, 128h: the size is in units of eight. */
		{{1, 7, 2, 0, 7, 0x01, 0x25, 0}, {false, 0x130, UNWIND_RBP_KEPT}},
		/* sub rsp, 10008h: the size is not scaled. */
		{{1, 7, 3, 0, 7, 0x11, 0x08, 0, 1, 0}, {false, 0x10010, UNWIND_RBP_KEPT}},
		/* push rbp; sub rsp, 50h; lea rbp, [rsp+20h]; a later allocation. RBP is 38h below
		 * the return address. */
		{{1, 10, 3, 0x25, 10, 0x03, 5, 0x92, 1, 0x50}, {true, 0x40, -16}},
		/* sub rsp, 48h; mov [rsp+40h], rbp */
		{{1, 9, 3, 0, 9, 0x54, 8, 0, 4, 0x82}, {false, 0x50, -16}},
		/* mov [rsp+...], rbp with a far offset, and movaps [rsp+20h], xmm6. */
		{{1, 14, 6, 0, 14, 0x68, 2, 0, 9, 0x55, 0x40, 0, 0, 0, 4, 0x82},
			{false, 0x50, -16}},
		/* With a handler: flags do not change the step. */
		{{1 | 3 << 3, 4, 2, 5, 4, 0x03, 1, 0x50}, {true, 16, -16}},
	};
	static const struct {
		uint8_t info[12];
		const char *why;
	} never[] = {
		{{2, 4, 1, 0, 4, 0x42}, "another version"},
		{{1 | 4 << 3, 4, 1, 0, 4, 0x42}, "a part of another function"},
		{{1, 4, 2, 3, 4, 0x03, 1, 0x30}, "a frame on RBX"},
		{{1, 4, 1, 5, 1, 0x50}, "a frame register that is never set"},
		{{1, 4, 2, 5, 4, 0x50, 1, 0x03}, "RBP pushed after it was set"},
		{{1, 4, 1, 0, 4, 0x0a}, "an interrupt's frame"},
		{{1, 4, 1, 0, 4, 0x01, 1, 0}, "a code that goes on behind the last one"},
		{{1, 4, 2, 0, 4, 0x21, 1, 0}, "no such code"},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		const uint8_t *info = forms[i].info;

		for (unsigned prologue = 0; prologue < info[1]; prologue++)
			assert_int_equal(unwind_read(info, prologue), UNWIND_NEVER);
		if (unwind_read(info, info[1]) != unwind_pack(&forms[i].step))
			fail_msg("form %zu", i);
		assert_int_equal(unwind_read(info, 1 << 20), unwind_pack(&forms[i].step));
	}
	for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++) {
		if (unwind_read(never[i].info, 100) != UNWIND_NEVER)
			fail_msg("%s", never[i].why);
	}
}

TEST(unwind_data_is_read_to_its_end)
{
	uint64_t random = 8, steps = 0;

	for (int i = 0; i < 200000; i++) {
		unsigned count = (unsigned)below(&random, 6);
		uint8_t *info = malloc(4 + 2 * count);
		uint32_t packed;

		assert_non_null(info);
		for (unsigned k = 0; k < 4 + 2 * count; k++)
			info[k] = (uint8_t)next_random(&random);
		info[0] = 1;
		info[2] = (uint8_t)count;
		info[3] &= 0xf5;
		packed = unwind_read(info, 255);
		steps += packed != UNWIND_NEVER;
		assert_true(packed == UNWIND_NEVER || unwind_packed_is_from_rbp(packed) ||
			    unwind_packed_cfa(packed) > 0);
		free(info);
	}
	assert_true(steps > 1000);
}
