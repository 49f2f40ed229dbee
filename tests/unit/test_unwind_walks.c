/* The unwinder's cache of rules for 32-bit code, and its cached walks over generated stacks. Stacks
 * are allocated with exact sizes, so that the sanitizers detect a read outside. */
#include "tests/unit/t.h"

#include <pthread.h>

#include "snapshot/tracer/unwind_parts_x86.h"

static const struct unwind_skip none = {0, 0};
static const struct unwind32_rule frame_rule = UNWIND32_FRAME;

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 16;
}

static uint32_t below(uint64_t *random, uint32_t limit)
{
	return (uint32_t)(next_random(random) % limit);
}

static void know(uint32_t addr, struct unwind32_rule rule)
{
	unwind32_add(addr, &rule, unwind32_begin());
}

static void know_esp(uint32_t addr, int32_t cfa)
{
	know(addr, (struct unwind32_rule){.cfa = cfa, .ebp_from = UNWIND32_KEPT});
}

static int forget(void **state)
{
	(void)state;
	unwind32_forget(0, UINT64_MAX);
	return 0;
}

#undef TEST_AROUND
#define TEST_AROUND forget, NULL

/* ---------------------------------------------------------------- cache */

static struct unwind32_rule rule_of(uint32_t addr)
{
	return (struct unwind32_rule){
		.cfa = 4 + (int32_t)(addr * 0x9e3779b1u >> 24) * 4, .ebp_from = UNWIND32_KEPT};
}

static bool is_rule_of(uint32_t addr, const struct unwind32_rule *rule)
{
	return rule->cfa == rule_of(addr).cfa && rule->kind == UNWIND32_STEP &&
	       rule->ebp_from == UNWIND32_KEPT;
}

TEST(rule_is_found_as_it_was_put)
{
	static const struct unwind32_rule rules[] = {
		UNWIND32_FRAME,
		{.kind = UNWIND32_END},
		{.kind = UNWIND32_NO_CODE},
		{.cfa = INT32_MAX,
			.ebp = INT32_MIN,
			.cfa_from = UNWIND32_EBP,
			.is_indirect = 1,
			.ebp_from = UNWIND32_ESP},
		{.cfa = INT32_MAX,
			.ebp = INT32_MIN,
			.cfa_from = UNWIND32_EBP,
			.is_indirect = 1,
			.ebp_from = UNWIND32_EBP},
	};

	for (uint32_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		know(0x401000 + i, rules[i]);
	for (uint32_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		const struct unwind32_rule *rule = unwind32_find(0x401000 + i);

		assert_non_null(rule);
		assert_memory_equal(rule, &rules[i], sizeof(*rule));
	}
}

TEST(address_is_found_under_itself_alone)
{
	uint64_t random = 2;

	for (int i = 0; i < 200; i++) {
		uint32_t addr = (uint32_t)next_random(&random);

		know_esp(addr, 8);
		know(addr, frame_rule); /* replaces the rule */
		assert_int_equal(unwind32_find(addr)->cfa_from, UNWIND32_EBP);
		for (unsigned bit = 0; bit < 32; bit++)
			assert_null(unwind32_find(addr ^ (uint32_t)1 << bit));
		unwind32_forget(addr, (uint64_t)addr + 1);
		assert_null(unwind32_find(addr));
	}
}

TEST(range_is_forgotten_and_no_more)
{
	uint32_t from = 0x12345678, to = 0x12346789;

	for (uint32_t addr = from - 2000; addr < to + 2000; addr++)
		know(addr, rule_of(addr));
	unwind32_forget(from, to);
	for (uint32_t addr = from - 2000; addr < to + 2000; addr++) {
		if (addr >= from && addr < to)
			assert_null(unwind32_find(addr));
		else
			assert_true(unwind32_find(addr) && is_rule_of(addr, unwind32_find(addr)));
	}
}

/* A rule that is computed before a removal and stored after it must not be used. */
TEST(rule_learnt_too_late_does_not_count)
{
	uint32_t begun = unwind32_begin();

	unwind32_forget(0x5000, 0x6000);
	unwind32_add(0x5800, &frame_rule, begun);
	assert_null(unwind32_find(0x5800));
	unwind32_add(0x5800, &frame_rule, unwind32_begin());
	assert_non_null(unwind32_find(0x5800));
}

static void *write_and_find(void *seed)
{
	uint64_t random = (uintptr_t)seed, wrong = 0;

	for (int i = 0; i < 200000; i++) {
		uint32_t addr = 0x400000 + below(&random, 1 << 22);
		const struct unwind32_rule *rule = unwind32_find(addr);

		if (i % 3)
			wrong += rule && !is_rule_of(addr, rule);
		else
			know(addr, rule_of(addr));
		if (i % 5000 == 0)
			unwind32_forget(addr, addr + 10000);
	}
	return (void *)(uintptr_t)wrong;
}

TEST(threads_find_nothing_that_is_wrong)
{
	pthread_t threads[4];
	void *wrong;

	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, write_and_find, (void *)(i + 1)), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &wrong);
		assert_null(wrong);
	}
}

/* ---------------------------------------------------------------- walks */

#define WORDS 1200
#define FRAMES_MAX 60
#define STACK 0x00ff0000u /* address of the generated stacks */

static struct made {
	uint32_t *words; /* words_count words; allocated with this exact size */
	uint32_t words_count;
	struct unwind32_stack stack;
	struct unwind32_start start;
	uint64_t frames[FRAMES_MAX];
	uint32_t count;
	uint32_t slots[FRAMES_MAX + 1]; /* indexes of the return addresses */
} made;

static struct unwind32_start stop;

static struct unwind32_stack stack_of(const void *words, uint32_t count)
{
	return (struct unwind32_stack){STACK + count * 4, (uintptr_t)words - STACK};
}

static uint32_t addr_of(uint32_t word)
{
	return STACK + word * 4;
}

/* Builds frames of random kinds, from the inner end outwards. ebp: the value that EBP must have in
 * a frame's code. If that code needs a certain value, the frames below save EBP or do not change
 * it. A first pass, from the outer end, chooses each value. */
static void make(uint64_t *random)
{
	struct {
		uint32_t at, cfa;
		enum { BY_ESP, BY_EBP, BY_WORD_AT_EBP, BY_WORD_AT_ESP, KINDS } kind;
		uint32_t ebp_save; /* index of the word that saves EBP, or 0 */
		enum unwind32_from save_from;
	} plan[FRAMES_MAX];
	uint32_t at = 0, count = 0, ebp;

	unwind32_forget(0, UINT64_MAX);
	free(made.words);
	made.words_count = 16 + below(random, WORDS);
	made.words = malloc(made.words_count * 4);
	assert_non_null(made.words);
	for (uint32_t i = 0; i < made.words_count; i++)
		made.words[i] = (uint32_t)next_random(random);
	made.stack = stack_of(made.words, made.words_count);
	while (count < FRAMES_MAX - 1) {
		uint32_t size = 4 + below(random, 20);

		if (at + 1 + size > made.words_count)
			break;
		plan[count].at = at;
		plan[count].cfa = at + 1 + size;
		plan[count].kind = below(random, KINDS);
		plan[count].ebp_save = below(random, 2) ? at + 2 + below(random, size - 3) : 0;
		plan[count].save_from = below(random, 3);
		count++;
		at += size;
	}
	made.words[at] = 0;
	made.count = count;
	made.slots[count] = addr_of(at);
	ebp = (uint32_t)next_random(random);
	for (uint32_t i = count; i--;) {
		uint32_t in_frame = plan[i].at + 1, cfa = plan[i].cfa, addr;
		uint32_t caller_ebp = ebp, save = plan[i].ebp_save;
		bool uses_ebp = plan[i].kind == BY_EBP || plan[i].kind == BY_WORD_AT_EBP;
		struct unwind32_rule rule = {.ebp_from = UNWIND32_KEPT};

		addr = 0x10000000 + i * 0x10000 + below(random, 0x10000);
		made.words[plan[i].at] = addr;
		made.slots[i] = addr_of(plan[i].at);
		made.frames[i] = addr;
		if (uses_ebp && !save)
			save = in_frame + 1;
		if (save) {
			rule.ebp_from = (uint8_t)plan[i].save_from;
			if (rule.ebp_from == UNWIND32_EBP && !uses_ebp)
				rule.ebp_from = UNWIND32_CFA;
			made.words[save] = caller_ebp;
			ebp = uses_ebp ? addr_of(in_frame + below(random, 3)) :
					 (uint32_t)next_random(random);
			rule.ebp = (int32_t)(addr_of(save) - (rule.ebp_from == UNWIND32_CFA ?
									     addr_of(cfa) :
								     rule.ebp_from == UNWIND32_EBP ?
									     ebp :
									     addr_of(in_frame)));
		}
		rule.cfa_from = uses_ebp ? UNWIND32_EBP : UNWIND32_ESP;
		rule.is_indirect = plan[i].kind == BY_WORD_AT_EBP || plan[i].kind == BY_WORD_AT_ESP;
		if (rule.is_indirect) {
			uint32_t word = in_frame; /* must not be the word that saves EBP */

			made.words[word] = addr_of(cfa);
			rule.cfa = (int32_t)(addr_of(word) - (uses_ebp ? ebp : addr_of(in_frame)));
		} else {
			rule.cfa = (int32_t)(addr_of(cfa) - (uses_ebp ? ebp : addr_of(in_frame)));
		}
		know(addr, rule);
	}
	made.start = (struct unwind32_start){addr_of(0), ebp, 0};
}

static void check_walk(uint64_t *random, struct unwind32_trail *trail)
{
	uint64_t frames[FRAMES_MAX];

	(void)random;
	memset(frames, 0xee, sizeof(frames));
	assert_int_equal(
		unwind32_walk(frames, FRAMES_MAX, &none, &made.stack, &made.start, &stop, trail),
		made.count);
	assert_memory_equal(frames, made.frames, made.count * 8);
}

TEST(walks_find_frames_of_made_stacks)
{
	uint64_t random = 3, all = 0;

	for (int i = 0; i < 3000; i++) {
		make(&random);
		check_walk(&random, NULL);
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
		assert_int_equal(
			unwind32_walk(frames, max, &none, &made.stack, &made.start, &stop, NULL),
			count);
		assert_memory_equal(frames, made.frames, count * 8);
		assert_int_equal(frames[max], 77);
	}
}

/* The tracer's own frames are chained by EBP only, so no rule is requested for them. */
TEST(own_frames_are_left_out)
{
	static const uint32_t words[] = {
		0x10000010, STACK + 8, /* own frame, called with EBP at the next word */
		STACK + 16, 0x10000020, /* own frame */
		STACK + 16, 0x401000, /* the first frame that is not own */
		0x10000030, 0, /* an own address that lies farther out */
	};
	struct unwind32_stack stack = stack_of(words, 8);
	struct unwind32_start start = {STACK, STACK + 8, 0};
	struct unwind_skip own = {0x10000000, 0x10001000};
	uint64_t frames[8];

	know_esp(0x401000, 4);
	know_esp(0x10000030, 4);
	assert_int_equal(unwind32_walk(frames, 8, &own, &stack, &start, &stop, NULL), 2);
	assert_int_equal(frames[0], 0x401000);
	assert_int_equal(frames[1], 0x10000030);
}

TEST(walk_stops_at_unknown_address)
{
	uint64_t random = 5, frames[FRAMES_MAX];
	struct unwind32_rule rule;

	for (int i = 0; i < 500; i++) {
		uint32_t at;

		make(&random);
		if (!made.count)
			continue;
		at = below(&random, made.count);
		rule = *unwind32_find((uint32_t)made.frames[at]);
		unwind32_forget(made.frames[at], made.frames[at] + 1);
		assert_int_equal(unwind32_walk(frames, FRAMES_MAX, &none, &made.stack, &made.start,
					 &stop, NULL),
			UNWIND32_MISS);
		assert_int_equal(stop.slot, made.slots[at]);
		assert_int_equal(stop.count, at + 1);
		assert_true(unwind32_step_on(&made.stack, &stop, &rule));
		assert_int_equal(stop.slot, made.slots[at + 1]);
		assert_int_equal(
			unwind32_walk(frames, FRAMES_MAX, &none, &made.stack, &stop, &stop, NULL),
			made.count);
		assert_memory_equal(frames, made.frames, made.count * 8);
	}
}

TEST(stack_ends_with_its_outermost_rule)
{
	uint64_t random = 6, frames[FRAMES_MAX];

	for (int i = 0; i < 500; i++) {
		uint32_t at, kind = below(&random, 2) ? UNWIND32_END : UNWIND32_NO_CODE;

		make(&random);
		if (!made.count)
			continue;
		at = below(&random, made.count);
		know((uint32_t)made.frames[at], (struct unwind32_rule){.kind = (uint8_t)kind});
		assert_int_equal(unwind32_walk(frames, FRAMES_MAX, &none, &made.stack, &made.start,
					 &stop, NULL),
			at + (kind == UNWIND32_END));
	}
}

/* A frame is at EBP, and EBP is impossible: unaligned, below the frame, or outside the stack. */
TEST(wrong_ebp_ends_stack)
{
	static const uint32_t wrong[] = {0, 1, STACK, STACK - 4, STACK + 5, STACK + 6, STACK + 12,
		STACK + 16, STACK + 20, UINT32_MAX, UINT32_MAX - 3, UINT32_MAX - 7, 0x80000000};
	uint32_t *words = malloc(16);
	uint64_t frames[4];

	assert_non_null(words);
	memcpy(words, (uint32_t[]){0x401000, STACK + 8, 0x401000, 0x401000}, 16);
	know(0x401000, frame_rule);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct unwind32_stack stack = stack_of(words, 4);
		struct unwind32_start start = {STACK, wrong[i], 0};

		assert_int_equal(unwind32_walk(frames, 4, &none, &stack, &start, &stop, NULL), 1);
	}
	free(words);
}

TEST(damage_leads_nowhere_outside)
{
	uint64_t random = 7, frames[FRAMES_MAX], hurt = 0;

	for (int i = 0; i < 5000; i++) {
		uint32_t count;

		make(&random);
		for (uint32_t changes = 1 + below(&random, 20); changes--;) {
			uint32_t *word = &made.words[below(&random, made.words_count)];

			*word = below(&random, 2) ? made.words[below(&random, made.words_count)] :
						    addr_of(below(&random, made.words_count)) +
							    below(&random, 5);
		}
		if (made.count && below(&random, 2))
			know((uint32_t)made.frames[below(&random, made.count)],
				(struct unwind32_rule){
					.cfa = (int32_t)next_random(&random) >> below(&random, 32),
					.ebp = (int32_t)next_random(&random) >> below(&random, 32),
					.cfa_from = (uint8_t)below(&random, 2),
					.is_indirect = (uint8_t)below(&random, 2),
					.ebp_from = (uint8_t)below(&random, 4)});
		made.start.ebp = STACK - 64 + below(&random, 128 + WORDS * 4);
		count = unwind32_walk(
			frames, FRAMES_MAX, &none, &made.stack, &made.start, &stop, NULL);
		assert_true(count == UNWIND32_MISS || count <= FRAMES_MAX);
		hurt += count != made.count;
	}
	assert_true(hurt > 500);
}

/* ---------------------------------------------------------------- trails */

static struct unwind32_trail trail;
static struct unwind32_walked walked[UNWIND32_MARKS];

/* Walks with the trail and without it. For any trail the results must be equal. */
static uint32_t check_same(uint32_t max)
{
	uint64_t with[FRAMES_MAX], without[FRAMES_MAX];
	struct unwind32_start other;
	bool is_same = unwind32_is_same(&trail, &made.stack, &made.start);
	uint32_t note = trail.note.id;
	uint32_t count = unwind32_walk(with, max, &none, &made.stack, &made.start, &stop, &trail);

	assert_int_equal(
		unwind32_walk(without, max, &none, &made.stack, &made.start, &other, NULL), count);
	if (count != UNWIND32_MISS)
		assert_memory_equal(with, without, count * 8);
	if (is_same) {
		assert_int_equal(trail.note.id, note);
		assert_true(trail.is_whole);
	}
	return is_same;
}

TEST(walk_with_trail_finds_same)
{
	uint64_t random = 8;
	uint32_t again = 0, joined = 0;

	unwind32_trail_init(&trail, walked);
	for (int i = 0; i < 2000; i++) {
		make(&random);
		check_same(FRAMES_MAX);
		for (int k = 0; k < 6; k++) {
			uint32_t save = 0, at = 0;
			bool is_changed = below(&random, 3);
			struct unwind32_start start = made.start;

			trail.note.id = 1000u + (uint32_t)k;
			if (is_changed) {
				at = below(&random, made.words_count);
				save = made.words[at];
				made.words[at] = below(&random, 2) ? save + 4 :
								     (uint32_t)next_random(&random);
			}
			if (below(&random, 4) == 0)
				made.start.ebp += 4;
			if (made.count > 2 && below(&random, 3) == 0) {
				uint32_t inner = below(&random, made.count - 1);

				made.start.slot = made.slots[inner];
				joined++;
			}
			again += check_same(FRAMES_MAX);
			made.start = start;
			if (is_changed)
				made.words[at] = save;
		}
	}
	assert_true(again > 1000);
	assert_true(joined > 1000);
}

TEST(ebp_that_no_rule_needs_may_change)
{
	uint32_t words[] = {0x401000, 1, 0x402000, 2, STACK + 24, 0x403000, 0, 0};
	struct unwind32_stack stack = stack_of(words, 8);
	struct unwind32_start start = {STACK, 77, 0};
	uint64_t frames[8];

	know_esp(0x401000, 8);
	know(0x402000, (struct unwind32_rule){.cfa = 12, .ebp = -8, .ebp_from = UNWIND32_CFA});
	know_esp(0x403000, 4);
	unwind32_trail_init(&trail, walked);
	assert_int_equal(unwind32_walk(frames, 8, &none, &stack, &start, &stop, &trail), 3);
	assert_true(trail.is_whole);
	assert_true(unwind32_is_same(&trail, &stack, &start));
	start.ebp = 78;
	words[1] = 5;
	words[4] = 9; /* the word that saves EBP */
	assert_true(unwind32_is_same(&trail, &stack, &start));
	words[5] = 0x403001;
	assert_false(unwind32_is_same(&trail, &stack, &start));

	words[5] = 0x403000;
	words[4] = STACK + 20;
	know(0x403000, (struct unwind32_rule){
			       .cfa = 8, .cfa_from = UNWIND32_EBP, .ebp_from = UNWIND32_KEPT});
	know(0x403000, (struct unwind32_rule){
			       .cfa = 8, .cfa_from = UNWIND32_EBP, .ebp_from = UNWIND32_KEPT});
	unwind32_forget(0, 1);
	assert_int_equal(unwind32_walk(frames, 8, &none, &stack, &start, &stop, &trail), 3);
	assert_true(unwind32_is_same(&trail, &stack, &start));
	start.ebp = 79;
	assert_true(unwind32_is_same(&trail, &stack, &start));
	words[4] = STACK + 24;
	assert_false(unwind32_is_same(&trail, &stack, &start));
}

TEST(trail_ends_with_what_was_forgotten)
{
	uint64_t random = 9;

	unwind32_trail_init(&trail, walked);
	do
		make(&random);
	while (made.count < 5);
	check_same(FRAMES_MAX);
	assert_true(unwind32_is_same(&trail, &made.stack, &made.start));
	unwind32_forget(1, 2);
	assert_false(unwind32_is_same(&trail, &made.stack, &made.start));
}

TEST(trail_that_was_cut_is_not_longer_than_it_is)
{
	uint64_t random = 10;

	for (int i = 0; i < 500; i++) {
		struct unwind32_start start;

		make(&random);
		if (made.count < 8)
			continue;
		unwind32_trail_init(&trail, walked);
		start = made.start;
		check_same(5);
		made.start.slot = made.slots[2];
		check_same(5);
		made.start = start;
		check_same(5);
		check_same(FRAMES_MAX);
		check_same(3);
	}
}
