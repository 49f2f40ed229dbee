/* A module is replaced by another one at the same addresses, again and again, while other threads walk
 * stacks there. After the old module was forgotten, no walk uses its steps or rules. */
#include "tests/unit/t.h"

#include <pthread.h>

#include "snapshot/tracer/unwind.h"
#include "snapshot/tracer/unwind_parts_x64.h"
#include "snapshot/tracer/unwind_parts_x86.h"

#define THREADS 3
#define WORDS 25 /* of a stack: return addresses, and a 0 */
#define END 300 /* the last version */

static const struct unwind_skip none = {0, 0};
static uint32_t version; /* odd while the module is replaced */

static uint32_t current(void)
{
	return __atomic_load_n(&version, __ATOMIC_SEQ_CST);
}

static uint64_t addr_of(uint64_t number)
{
	return 0x401000 + number * 0x40;
}

/* Returns the number of frames that a walk must find. A frame has one word, or two. */
static uint32_t frames_of(uint32_t number)
{
	return number & 2 ? WORDS / 2 : WORDS - 1;
}

/* One walk of a thread. Returns the number of frames. Every eighth walk is over another stack with
 * the same addresses, so that runs are stored again and again. */
static uint32_t walk(uint32_t thread)
{
	static struct unwind_trail trails[THREADS];
	static uint32_t found[THREADS], numbers[THREADS];
	static uint64_t words[THREADS][2][WORDS];
	uint32_t number = ++numbers[thread], other = number % 8 == 0;
	uint64_t frames[WORDS], *stack = words[thread][other];
	struct unwind_start start = {
		.slot = (uintptr_t)stack, .high = (uintptr_t)(stack + WORDS), .number = number};

	for (uint64_t i = 0; i < WORDS - 1; i++)
		stack[i] = addr_of(other ? (i * 7 + 1) % (WORDS - 1) : i);
	if (!unwind_is_same(&trails[thread], &start))
		found[thread] = unwind_fast(frames, WORDS, &none, &start, &start, &trails[thread]);
	return found[thread];
}

#define STACK 0x00ff0000u /* address of the 32-bit stack */

static uint32_t walk32(uint32_t thread)
{
	static struct unwind32_walked passed[THREADS][UNWIND32_MARKS];
	static struct unwind32_trail trails[THREADS];
	static uint32_t found[THREADS], words[THREADS][WORDS];
	static bool is_ready[THREADS];
	struct unwind32_stack stack = {STACK + sizeof(words[0]), (uintptr_t)words[thread] - STACK};
	struct unwind32_start start = {STACK, 0, 0};
	uint64_t frames[WORDS];

	for (uint32_t i = 0; i < WORDS - 1; i++)
		words[thread][i] = (uint32_t)addr_of(i);
	if (!is_ready[thread])
		unwind32_trail_init(&trails[thread], passed[thread]);
	is_ready[thread] = true;
	if (!unwind32_is_same(&trails[thread], &stack, &start))
		found[thread] = unwind32_walk(
			frames, WORDS, &none, &stack, &start, &start, &trails[thread]);
	return found[thread];
}

static void replace(uint32_t number)
{
	const struct unwind_step step = {false, number & 2 ? 16 : 8, UNWIND_RBP_KEPT};

	unwind_forget(addr_of(0), addr_of(WORDS));
	for (uint64_t i = 0; i < WORDS - 1; i++)
		unwind_cache_add(addr_of(i), unwind_pack(&step), unwind_cache_begin());
}

static void replace32(uint32_t number)
{
	const struct unwind32_rule rule = {.cfa = number & 2 ? 8 : 4, .ebp_from = UNWIND32_KEPT};

	unwind32_forget(addr_of(0), addr_of(WORDS));
	for (uint64_t i = 0; i < WORDS - 1; i++)
		unwind32_add((uint32_t)addr_of(i), &rule, unwind32_begin());
}

static uint32_t (*walker)(uint32_t thread);

/* Returns the number of walks that began and ended between two replacements and found a stack of
 * another version. */
static void *walk_until_end(void *thread)
{
	uint64_t wrong = 0;

	for (uint32_t before = current(); before < END; before = current()) {
		uint32_t found = walker((uint32_t)(uintptr_t)thread);

		wrong += !(before & 1) && current() == before && found != frames_of(before);
	}
	return (void *)(uintptr_t)wrong;
}

static void check(uint32_t (*walk_once)(uint32_t thread), void (*replace_once)(uint32_t number))
{
	pthread_t threads[THREADS];

	walker = walk_once;
	version = 0;
	replace_once(0);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, walk_until_end, (void *)i), 0);
	while (current() < END) {
		uint32_t next = __atomic_add_fetch(&version, 1, __ATOMIC_SEQ_CST) + 1;

		replace_once(next);
		__atomic_fetch_add(&version, 1, __ATOMIC_SEQ_CST);
		for (int i = 0; i < 10; i++)
			sched_yield();
	}
	for (int i = 0; i < THREADS; i++) {
		void *wrong;

		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
}

TEST(forgotten_steps_are_never_used)
{
	check(walk, replace);
}

TEST(forgotten_rules_are_never_used)
{
	check(walk32, replace32);
}
