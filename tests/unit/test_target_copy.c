/*
 * Raw copies of a target: what was taken is there to the byte, each byte is read once, what cannot be
 * read costs itself only, and no list of the target's makes a copy grow past its limit.
 */
#include <stdatomic.h>

#include "tests/unit/fake_target.h"

#include "snapshot/target/target_memory.h"

#define SPACE_BYTES ((uint64_t)8 << 20)
#define BASE 0x10000000u
#define HOLE_BYTES 0x1000u

/* A process of BASE..BASE + SPACE_BYTES, made up as it is read, by any number of threads. Nothing that
 * touches hole..hole + HOLE_BYTES can be read. */
struct made {
	struct target target;
	uint64_t hole; /* 0: none */
	atomic_ullong reads, bytes;
	bool is_dead;
};

static unsigned char byte_at(uint64_t addr)
{
	return (unsigned char)((addr * 0x9e3779b97f4a7c15u) >> 56);
}

static int made_read(struct target *target, uint64_t addr, void *bytes, size_t len)
{
	struct made *made = target->system;
	unsigned char *to = bytes;

	atomic_fetch_add(&made->reads, 1);
	memset(bytes, 0xa5, len);
	if (addr < BASE || addr + len > BASE + SPACE_BYTES ||
		(made->hole && addr < made->hole + HOLE_BYTES && addr + len > made->hole))
		return -ERR_READ;
	atomic_fetch_add(&made->bytes, len);
	for (size_t i = 0; i < len; i++)
		to[i] = byte_at(addr + i);
	return 0;
}

static bool made_is_alive(struct target *target)
{
	const struct made *made = target->system;

	return !made->is_dead;
}

static const struct target_ops made_ops = {.read = made_read, .is_alive = made_is_alive};

static struct made *made_new(unsigned reader_count)
{
	struct made *made = calloc(1, sizeof(*made));

	assert_non_null(made);
	made->target = (struct target){
		.ops = &made_ops, .system = made, .bits = 64, .reader_count = reader_count};
	return made;
}

static void assert_is_copied(struct target_copy *copy, uint64_t addr, uint64_t end)
{
	while (addr < end) {
		size_t len = 0;
		const unsigned char *bytes = copy->target.ops->view(&copy->target, addr, &len);

		assert_non_null(bytes);
		assert_true(len > 0);
		for (; len && addr < end; len--)
			assert_int_equal(*bytes++, byte_at(addr++));
	}
}

static void assert_is_not_copied(struct target_copy *copy, uint64_t addr)
{
	unsigned char byte;
	size_t len;

	assert_null(copy->target.ops->view(&copy->target, addr, &len));
	assert_int_equal(target_read(&copy->target, addr, &byte, 1), -ERR_READ);
}

/* ---------------------------------------------------------------- ranges */

static void ranges_that_meet_or_share_a_page_are_one(void **state)
{
	struct target_ranges ranges;

	(void)state;
	target_ranges_init(&ranges);
	assert_int_equal(target_ranges_add(&ranges, 0x5000, 0x1000), 0);
	assert_int_equal(
		target_ranges_add(&ranges, 0x9ff0, 0x20), 0); /* it ends in the next one's page */
	assert_int_equal(target_ranges_add(&ranges, 0x1000, 0x100), 0);
	assert_int_equal(target_ranges_add(&ranges, 0xaf00, 8), 0);
	assert_int_equal(target_ranges_add(&ranges, 0x6000, 0x10), 0); /* it meets the first */
	assert_int_equal(target_ranges_add(&ranges, 0x5100, 0x10), 0); /* it lies in it */
	assert_int_equal(target_ranges_add(&ranges, 0x2000, 0), 0);
	target_ranges_settle(&ranges);
	assert_int_equal(ranges.count, 3);
	assert_true(ranges.items[0].addr == 0x1000 && ranges.items[0].end == 0x1100);
	assert_true(ranges.items[1].addr == 0x5000 && ranges.items[1].end == 0x6010);
	assert_true(ranges.items[2].addr == 0x9ff0 && ranges.items[2].end == 0xaf08);
	assert_int_equal(target_ranges_bytes(&ranges), 0x100 + 0x1010 + 0xf18);
	target_ranges_clear(&ranges);
	target_ranges_settle(&ranges);
	assert_int_equal(target_ranges_bytes(&ranges), 0);
	target_ranges_release(&ranges);
}

static void ranges_that_cannot_be_are_refused_and_so_are_too_many(void **state)
{
	struct target_ranges ranges;

	(void)state;
	target_ranges_init(&ranges);
	assert_int_equal(target_ranges_add(&ranges, UINT64_MAX, 1), -ERR_NOMEM);
	assert_int_equal(target_ranges_add(&ranges, UINT64_MAX - 7, 16), -ERR_NOMEM);
	assert_int_equal(target_ranges_add(&ranges, 16, UINT64_MAX), -ERR_NOMEM);
	assert_int_equal(target_ranges_add(&ranges, 1, TARGET_SPACE_BYTES), -ERR_NOMEM);
	assert_int_equal(ranges.count, 0);
	assert_int_equal(target_ranges_add(&ranges, 0, TARGET_SPACE_BYTES), 0);
	for (uint64_t i = 1; i < TARGET_RANGES_MAX; i++)
		assert_int_equal(target_ranges_add(&ranges, i << 20, 8), 0);
	assert_int_equal(target_ranges_add(&ranges, 0, 8), -ERR_NOMEM);
	target_ranges_release(&ranges);
}

/* ---------------------------------------------------------------- reading at once */

#define PIECES 300
#define PIECE_BYTES 0x2000

static void pieces_are_read_once_each_and_say_what_became_of_them(void **state)
{
	static unsigned char bytes[PIECES][PIECE_BYTES];
	struct target_piece pieces[PIECES];

	(void)state;
	for (unsigned readers = 0; readers < 6; readers++) {
		struct made *made = made_new(readers);

		made->hole = BASE + 17 * PIECE_BYTES + 0x500;
		memset(bytes, 0, sizeof(bytes));
		for (unsigned i = 0; i < PIECES; i++)
			pieces[i] = (struct target_piece){.addr = BASE + i * PIECE_BYTES,
				.len = PIECE_BYTES,
				.bytes = bytes[i],
				.rc = 1};
		pieces[40].addr = UINT64_MAX - 5;
		pieces[PIECES - 1].addr = BASE + SPACE_BYTES - PIECE_BYTES + 1;
		target_read_many(&made->target, pieces, PIECES);
		for (unsigned i = 0; i < PIECES; i++) {
			bool is_bad = i == 17 || i == 40 || i == PIECES - 1;

			assert_int_equal(pieces[i].rc, is_bad ? -ERR_READ : 0);
			for (unsigned k = 0; !is_bad && k < PIECE_BYTES; k++)
				assert_int_equal(bytes[i][k], byte_at(pieces[i].addr + k));
		}
		assert_int_equal(made->reads, PIECES - 1); /* one is no address */
		assert_int_equal(made->target.reads, PIECES);
		assert_int_equal(made->target.read_bytes, PIECES * PIECE_BYTES);
		free(made);
	}
}

/* ---------------------------------------------------------------- copies */

static void add_some(struct target_ranges *ranges, uint64_t *seed, unsigned char *is_wanted)
{
	unsigned count = 1 + fake_random(seed) % 12;

	while (count--) {
		uint64_t len = 1 + fake_random(seed) % (fake_random(seed) % 4 ? 0x3000 : 0x200000);
		uint64_t at = fake_random(seed) % (SPACE_BYTES - len);

		assert_int_equal(target_ranges_add(ranges, BASE + at, len), 0);
		memset(is_wanted + at, 1, len);
	}
}

/* Three times over, what of it is there already being left as it is. */
static void what_is_taken_is_there_and_is_read_once(void **state)
{
	unsigned char *is_wanted = malloc(SPACE_BYTES);
	uint64_t seed = 20261120;

	(void)state;
	assert_non_null(is_wanted);
	for (unsigned round = 0; round < 30; round++) {
		struct made *made = made_new(round % 4);
		struct target_ranges ranges;
		struct target_copy copy;

		memset(is_wanted, 0, SPACE_BYTES);
		target_ranges_init(&ranges);
		target_copy_init(&copy, &made->target, SPACE_BYTES * 2);
		if (round % 2)
			assert_int_equal(target_copy_reserve(&copy, 0x300000), 0);
		target_copy_open(&copy);
		for (unsigned i = 0; i < 3; i++) {
			uint64_t some = BASE + fake_random(&seed) % (SPACE_BYTES - 8), number;

			target_ranges_clear(&ranges);
			add_some(&ranges, &seed, is_wanted);
			assert_int_equal(target_copy_take(&copy, &ranges), 0);
			assert_int_equal(target_u64(&copy.target, some, &number), 0);
			memset(is_wanted + (some - BASE), 1, 8);
			for (unsigned k = 0; k < 8; k++)
				assert_int_equal(number >> 8 * k & 0xff, byte_at(some + k));
			for (size_t r = 0; r < ranges.count;
				r++) /* settled: with what lies between */
				memset(is_wanted + (ranges.items[r].addr - BASE), 1,
					ranges.items[r].end - ranges.items[r].addr);
		}
		target_copy_seal(&copy);
		for (uint64_t at = 0, from; at < SPACE_BYTES; at++) {
			for (from = at; at < SPACE_BYTES && is_wanted[at];)
				at++;
			assert_is_copied(&copy, BASE + from, BASE + at);
			if (at < SPACE_BYTES && at % 64 == 0)
				assert_is_not_copied(&copy, BASE + at);
		}
		assert_int_equal(made->bytes, copy.bytes);
		for (size_t at = 0; at < SPACE_BYTES; at++)
			copy.bytes -= is_wanted[at];
		assert_int_equal(copy.bytes, 0);
		target_copy_release(&copy);
		target_ranges_release(&ranges);
		free(made);
	}
	free(is_wanted);
}

static void what_cannot_be_read_costs_its_own_piece_only(void **state)
{
	struct made *made = made_new(3);
	struct target_ranges ranges;
	struct target_copy copy;
	uint64_t reads;

	(void)state;
	target_ranges_init(&ranges);
	target_copy_init(&copy, &made->target, SPACE_BYTES * 2);
	target_copy_open(&copy);
	made->hole = BASE + BULK_PIECE_BYTES + 0x5000;
	assert_int_equal(target_ranges_add(&ranges, BASE, 4 * BULK_PIECE_BYTES), 0);
	assert_int_equal(target_ranges_add(&ranges, BASE - 0x100000, 0x10), 0);
	assert_int_equal(target_copy_take(&copy, &ranges), 0);
	assert_is_copied(&copy, BASE, BASE + BULK_PIECE_BYTES);
	assert_is_copied(&copy, BASE + 2 * BULK_PIECE_BYTES, BASE + 4 * BULK_PIECE_BYTES);
	assert_int_equal(made->reads, 5);
	made->hole = 0; /* it is tried again, and nothing else is */
	reads = made->reads;
	assert_int_equal(target_copy_take(&copy, &ranges), 0);
	assert_int_equal(made->reads, reads + 2);
	target_copy_seal(&copy);
	assert_is_copied(&copy, BASE, BASE + 4 * BULK_PIECE_BYTES);
	assert_is_not_copied(&copy, BASE - 0x100000);
	assert_false(copy.is_short);
	target_copy_release(&copy);
	target_ranges_release(&ranges);
	free(made);
}

static void a_sealed_copy_asks_the_target_for_its_life_only(void **state)
{
	struct made *made = made_new(0);
	struct target_copy copy;
	struct memory memory;
	uint64_t number;

	(void)state;
	target_copy_init(&copy, &made->target, SPACE_BYTES);
	assert_int_equal(target_u64(&copy.target, BASE, &number), -ERR_READ);
	target_copy_open(&copy);
	assert_int_equal(target_u64(&copy.target, BASE + 8, &number), 0);
	assert_int_equal(target_u64(&copy.target, BASE + 4, &number), 0);
	assert_int_equal(made->bytes, 12);
	target_copy_seal(&copy);
	assert_int_equal(target_u64(&copy.target, BASE + 6, &number), 0);
	assert_int_equal(target_u64(&copy.target, BASE + 9, &number), -ERR_READ);
	assert_int_equal(memory_init(&memory, &copy.target), 0);
	assert_non_null(memory_at(&memory, BASE + 4, 12)); /* in two pieces */
	assert_null(memory_at(&memory, BASE + 4, 13));
	assert_true(copy.target.ops->is_alive(&copy.target));
	made->is_dead = true;
	assert_false(copy.target.ops->is_alive(&copy.target));
	assert_int_equal(made->reads, 2);
	memory_clear(&memory);
	target_copy_open(&copy); /* the process ran: nothing is left of before */
	assert_null(memory_at(&memory, BASE + 8, 8));
	memory_release(&memory);
	target_copy_release(&copy);
	free(made);
}

/* ---------------------------------------------------------------- bounds */

static void no_range_makes_a_copy_larger_than_its_limit(void **state)
{
	struct made *made = made_new(0);
	struct target_ranges ranges;
	struct target_copy copy;
	unsigned char byte;

	(void)state;
	target_ranges_init(&ranges);
	target_copy_init(&copy, &made->target, 0x10000);
	assert_int_equal(target_copy_reserve(&copy, TARGET_SPACE_BYTES), -ERR_NOMEM);
	assert_int_equal(target_copy_reserve(&copy, 0x10001), -ERR_NOMEM);
	target_copy_open(&copy);
	assert_int_equal(target_ranges_add(&ranges, 0, TARGET_SPACE_BYTES), 0);
	assert_int_equal(target_copy_take(&copy, &ranges), -ERR_NOMEM);
	assert_int_equal(made->reads, 0);
	target_ranges_clear(&ranges);
	target_copy_open(&copy);
	assert_int_equal(target_ranges_add(&ranges, BASE, 0x10000), 0);
	assert_int_equal(target_copy_take(&copy, &ranges), 0);
	assert_is_copied(&copy, BASE, BASE + 0x10000);
	assert_false(copy.is_short);
	assert_int_equal(target_read(&copy.target, BASE + 0x10000, &byte, 1), -ERR_READ);
	assert_true(copy.is_short);
	target_copy_release(&copy);
	target_ranges_release(&ranges);
	free(made);
}

static void what_is_read_little_by_little_has_an_end(void **state)
{
	struct made *made = made_new(0);
	struct target_copy copy;
	unsigned char byte;

	(void)state;
	target_copy_init(&copy, &made->target, SPACE_BYTES);
	target_copy_open(&copy);
	for (uint64_t i = 0; i < COPY_MISSES_MAX; i++) /* from both ends */
		assert_int_equal(target_read(&copy.target,
					 BASE + (i % 2 ? SPACE_BYTES - 2 * i : 2 * i), &byte, 1),
			0);
	assert_false(copy.is_short);
	assert_int_equal(target_read(&copy.target, BASE + 4, &byte, 1), 0);
	assert_int_equal(target_read(&copy.target, BASE + 5, &byte, 1), -ERR_READ);
	assert_true(copy.is_short);
	target_copy_open(&copy);
	assert_false(copy.is_short);
	assert_int_equal(target_read(&copy.target, BASE + 5, &byte, 1), 0);
	target_copy_release(&copy);
	free(made);
}

static void what_fits_the_room_made_before_needs_no_more(void **state)
{
	struct made *made = made_new(0);
	struct target_ranges ranges;
	struct target_copy copy;

	(void)state;
	target_ranges_init(&ranges);
	target_copy_init(&copy, &made->target, SPACE_BYTES);
	assert_int_equal(target_copy_reserve(&copy, 3 * BULK_PIECE_BYTES), 0);
	assert_int_equal(target_copy_reserve(&copy, BULK_PIECE_BYTES), 0);
	assert_int_equal(target_ranges_add(&ranges, BASE, 3 * BULK_PIECE_BYTES), 0);
	for (unsigned i = 0; i < 3; i++) {
		target_copy_open(&copy);
		assert_int_equal(target_copy_take(&copy, &ranges), 0);
		assert_int_equal(copy.room_count, 1);
	}
	assert_int_equal(target_ranges_add(&ranges, BASE + 4 * BULK_PIECE_BYTES, 1), 0);
	assert_int_equal(target_copy_take(&copy, &ranges), 0);
	assert_int_equal(copy.room_count, 2);
	assert_is_copied(&copy, BASE, BASE + 3 * BULK_PIECE_BYTES);
	target_copy_release(&copy);
	target_ranges_release(&ranges);
	free(made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_that_meet_or_share_a_page_are_one),
		cmocka_unit_test(ranges_that_cannot_be_are_refused_and_so_are_too_many),
		cmocka_unit_test(pieces_are_read_once_each_and_say_what_became_of_them),
		cmocka_unit_test(what_is_taken_is_there_and_is_read_once),
		cmocka_unit_test(what_cannot_be_read_costs_its_own_piece_only),
		cmocka_unit_test(a_sealed_copy_asks_the_target_for_its_life_only),
		cmocka_unit_test(no_range_makes_a_copy_larger_than_its_limit),
		cmocka_unit_test(what_is_read_little_by_little_has_an_end),
		cmocka_unit_test(what_fits_the_room_made_before_needs_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
