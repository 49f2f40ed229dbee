/* What Windows answers about its heap stacks, made here from the forms that facts give. */
#include "tests/unit/t.h"

#include "snapshot/stacks/os_stacks.h"

#define MEMORY_BYTES ((uint64_t)1 << 30) /* of the process */

static struct os_stacks *stacks; /* of the test at hand */

struct record {
	unsigned char bytes[2048];
	size_t len;
};

static void add(struct record *record, uint64_t value, size_t len)
{
	for (size_t i = 0; i < len; i++)
		record->bytes[record->len++] = (unsigned char)(value >> 8 * i);
}

/* An exact copy, so that a read past its end is seen. */
static int put(const struct record *record)
{
	unsigned char *bytes = malloc(record->len ? record->len : 1);
	int rc;

	assert_non_null(bytes);
	memcpy(bytes, record->bytes, record->len);
	rc = os_stacks_put(stacks, bytes, record->len);
	free(bytes);
	return rc;
}

static int put_init(void)
{
	struct record record = {0};

	add(&record, 2, 4);
	add(&record, 3, 4);
	add(&record, 0, 4);
	return put(&record);
}

/* Version, PointerSize, [padding,] Heap, TotalCommit, TotalReserve. */
static int put_header(size_t pointer)
{
	struct record record = {0};

	add(&record, 2, 2);
	add(&record, pointer, 2);
	add(&record, 0, pointer - 4);
	add(&record, 0x1230000, pointer);
	add(&record, 0x100000, pointer);
	add(&record, 0x200000, pointer);
	return put(&record);
}

/* Version, PointerSize, MappingCount, Heap. */
static int put_old_header(size_t pointer)
{
	struct record record = {0};

	add(&record, 1, 2);
	add(&record, pointer, 2);
	add(&record, 7, 4);
	add(&record, 0x1230000, pointer);
	return put(&record);
}

static void add_allocation(struct record *record, size_t pointer, uint64_t addr, uint64_t bytes)
{
	add(record, addr, pointer);
	add(record, 0, pointer);
	add(record, bytes, pointer);
}

static int put_allocation(size_t pointer, uint64_t addr, uint64_t bytes)
{
	struct record record = {0};

	add_allocation(&record, pointer, addr, bytes);
	return put(&record);
}

static void add_frames(struct record *record, size_t pointer, uint64_t first, size_t count)
{
	size_t places = (count + 7) / 8 * 8;

	for (size_t i = 0; i < places; i++)
		add(record, i < count ? first + 0x10 * i : 0, pointer);
}

static int put_frames(size_t pointer, uint64_t first, size_t count)
{
	struct record record = {0};

	add_frames(&record, pointer, first, count);
	return put(&record);
}

/* A block and its stack, both of which are taken. */
static void tell(size_t pointer, uint64_t addr, uint64_t bytes, uint64_t first, size_t count)
{
	assert_int_equal(put_allocation(pointer, addr, bytes), 0);
	for (size_t at = 0; at < count; at += 8)
		assert_int_equal(
			put_frames(pointer, first + 0x10 * at, count - at < 8 ? count - at : 8), 0);
}

/* Nothing more comes; so many blocks have a stack. */
static void end_with(size_t count)
{
	assert_int_equal(os_stacks_end(stacks), 0);
	assert_int_equal(os_stacks_count(stacks), count);
}

static int release(void **state)
{
	(void)state;
	os_stacks_free(stacks);
	stacks = NULL;
	return 0;
}

/* In the place of those that were there. */
static void start(uint64_t memory_bytes)
{
	release(NULL);
	stacks = os_stacks_new(memory_bytes);
}

static void begin_in(uint64_t memory_bytes, size_t pointer)
{
	start(memory_bytes);
	assert_false(os_stacks_is_begun(stacks));
	assert_int_equal(put_init(), 0);
	assert_true(os_stacks_is_begun(stacks));
	assert_int_equal(put_header(pointer), 0);
}

static void begin(size_t pointer)
{
	begin_in(MEMORY_BYTES, pointer);
}

static void expect(uint64_t addr, uint64_t bytes, uint64_t first, uint32_t count)
{
	const uint64_t *frames = NULL;

	assert_int_equal(os_stacks_bytes(stacks, addr), bytes);
	assert_int_equal(os_stacks_find(stacks, addr, &frames), count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(frames[i], first + 0x10 * i);
}

#undef TEST_AROUND
#define TEST_AROUND NULL, release

/* Blocks of one process in no order of addresses, with stacks of 3, 8, 12 and no frames. */
static void check_blocks(size_t pointer)
{
	begin(pointer);
	tell(pointer, 0x50000, 100, 0x401000, 3);
	tell(pointer, 0x40000, 200, 0x402000, 8);
	assert_int_equal(put_header(pointer), 0);
	tell(pointer, 0x60000, 300, 0x403000, 12);
	assert_int_equal(put_allocation(pointer, 0x70000, 400), 0);
	end_with(3);
	expect(0x50000, 100, 0x401000, 3);
	expect(0x40000, 200, 0x402000, 8);
	expect(0x60000, 300, 0x403000, 12);
	expect(0x70000, 400, 0, 0);
	expect(0x50008, 0, 0, 0);
	expect(0, 0, 0, 0);
	expect(UINT64_MAX, 0, 0, 0);
}

TEST(blocks_of_both_bitnesses_are_found_by_address)
{
	check_blocks(8);
	check_blocks(4);
}

TEST(an_allocation_may_bring_its_frames_in_one_piece)
{
	for (size_t pointer = 4; pointer <= 8; pointer += 4) {
		struct record record = {0};

		begin(pointer);
		add_allocation(&record, pointer, 0x50000, 100);
		add_frames(&record, pointer, 0x401000, 11);
		assert_int_equal(put(&record), 0);
		assert_int_equal(os_stacks_end(stacks), 0);
		expect(0x50000, 100, 0x401000, 11);
	}
}

TEST(the_older_header_is_known_too)
{
	for (size_t pointer = 4; pointer <= 8; pointer += 4) {
		start(MEMORY_BYTES);
		assert_int_equal(put_init(), 0);
		assert_int_equal(put_old_header(pointer), 0);
		tell(pointer, 0x50000, 100, 0x401000, 2);
		assert_int_equal(put_old_header(pointer), 0);
		tell(pointer, 0x60000, 200, 0x402000, 2);
		end_with(2);
		expect(0x50000, 100, 0x401000, 2);
		expect(0x60000, 200, 0x402000, 2);
	}
}

TEST(the_last_word_about_an_address_counts)
{
	begin(8);
	for (uint64_t i = 1; i <= 100; i++)
		tell(8, 0x50000, i, 0x401000 * i, 1);
	end_with(1);
	expect(0x50000, 100, 0x401000 * 100, 1);
}

/* Told of without end, it takes no more memory than its stacks that differ. */
TEST(one_address_told_again_and_again_is_one_block)
{
	begin_in(100, 8);
	for (uint64_t i = 1; i <= 100000; i++)
		tell(8, 0x50000, i, 0x401000, 5);
	end_with(1);
	expect(0x50000, 100000, 0x401000, 5);
}

TEST(no_more_blocks_than_the_process_has_memory_for)
{
	begin_in(8 * 100, 8);
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(put_allocation(8, 0x50000 + i * 8, 1), 0);
	assert_int_equal(put_allocation(8, 0x50000, 2), 0);
	assert_int_equal(put_allocation(8, 0x60000, 1), -ERR_TARGET);
	assert_int_equal(os_stacks_end(stacks), -ERR_TARGET);
}

/* A stack of ten frames takes 56 bytes at least, however many blocks have it. */
TEST(no_more_stacks_than_the_process_has_memory_for)
{
	begin_in(56 * 10 + 55, 8);
	for (uint64_t i = 0; i < 50; i++) {
		tell(8, 0x50000 + i * 8, 1, 0x401000 * (1 + i % 10), 10);
	}
	assert_int_equal(put_allocation(8, 0x60000, 1), 0);
	expect(0x50000 + 49 * 8, 1, 0x401000 * 10, 10);
	assert_int_equal(put_frames(8, 0x409000, 10), 0);
	assert_int_equal(os_stacks_end(stacks), -ERR_TARGET);
}

TEST(a_stack_without_end_is_cut)
{
	begin(8);
	assert_int_equal(put_allocation(8, 0x50000, 100), 0);
	for (uint64_t i = 0; i < 10000; i++)
		assert_int_equal(put_frames(8, 0x401000 + 0x80 * i, 8), 0);
	assert_int_equal(os_stacks_end(stacks), 0);
	expect(0x50000, 100, 0x401000, OS_STACKS_DEPTH_MAX);
}

TEST(frames_behind_the_end_of_a_stack_are_none)
{
	struct record record = {0};

	begin(8);
	assert_int_equal(put_allocation(8, 0x50000, 100), 0);
	add(&record, 0x401000, 8);
	add(&record, 0, 8);
	for (size_t i = 0; i < 6; i++)
		add(&record, UINT64_MAX, 8);
	assert_int_equal(put(&record), 0);
	assert_int_equal(os_stacks_end(stacks), 0);
	expect(0x50000, 100, 0x401000, 1);
}

/* A stream that goes well until one wrong record comes, of len bytes that all are value. */
static void refuse(bool with_header, size_t len, unsigned char value)
{
	struct record record = {.len = len};

	if (with_header)
		begin(8);
	else
		start(MEMORY_BYTES);
	memset(record.bytes, value, len);
	assert_int_equal(put(&record), -ERR_TARGET);
	assert_int_equal(put_allocation(8, 0x50000, 100), -ERR_TARGET);
	assert_int_equal(os_stacks_end(stacks), -ERR_TARGET);
}

TEST(what_is_no_record_spoils_the_answer)
{
	refuse(false, 0, 0);
	refuse(false, 11, 0);
	refuse(false, 13, 0);
	refuse(true, 0, 0);
	refuse(true, 1, 0xff);
	refuse(true, 12, 0);
	refuse(true, 0x20, 0xff); /* a header's length, but none */
	refuse(true, 0x20, 0);
	refuse(true, 0x18, 0); /* an allocation at NULL */
	refuse(true, 0x18, 0xff); /* and at the end of all memory */
	refuse(true, 0x40, 1); /* frames of nothing */
	refuse(true, 0x19, 1);
	refuse(true, 0x58 + 1, 1);
	refuse(true, 1999, 0x41);
}

TEST(frames_out_of_the_address_space_spoil_it)
{
	begin(8);
	assert_int_equal(put_allocation(8, 0x50000, 100), 0);
	assert_int_equal(put_frames(8, UINT64_C(0xfffff80000000000), 1), -ERR_TARGET);
	begin(8);
	assert_int_equal(put_allocation(8, 0x50000, UINT64_C(1) << 63), -ERR_TARGET);
}

TEST(frames_behind_a_header_belong_to_nothing)
{
	const uint64_t *frames;

	begin(8);
	assert_int_equal(put_allocation(8, 0x50000, 100), 0);
	assert_int_equal(put_header(8), 0);
	assert_int_equal(put_frames(8, 0x401000, 2), 0);
	assert_int_equal(os_stacks_end(stacks), 0);
	assert_int_equal(os_stacks_find(stacks, 0x50000, &frames), 0);
}

TEST(heaps_of_two_bitnesses_are_not_taken_for_one)
{
	begin(8);
	assert_int_equal(put_header(4), -ERR_TARGET);
}

TEST(an_answer_that_never_began_is_none)
{
	start(MEMORY_BYTES);
	assert_int_equal(os_stacks_end(stacks), -ERR_TARGET);
	start(MEMORY_BYTES);
	assert_int_equal(put_init(), 0);
	assert_int_equal(os_stacks_end(stacks), 0);
	assert_int_equal(os_stacks_count(stacks), 0);
	os_stacks_free(NULL);
}

TEST(random_records_end_well)
{
	static const size_t lens[] = {0, 4, 12, 16, 24, 32, 64, 88, 128, 152};
	uint64_t seed = 7;

	for (int round = 0; round < 2000; round++) {
		if (round % 2)
			begin(round % 4 == 1 ? 4 : 8);
		else
			start(MEMORY_BYTES);
		for (int i = 0; i < 30; i++) {
			struct record record = {0};
			size_t len;

			seed = seed * 6364136223846793005u + 1442695040888963407u;
			len = lens[seed >> 33 & 7];
			while (record.len < len) {
				seed = seed * 6364136223846793005u + 1442695040888963407u;
				add(&record, seed >> 34 & 0x7ffff, 4);
			}
			put(&record);
		}
		os_stacks_end(stacks);
		expect(1, 0, 0, 0);
	}
}
