/* The database of stacks. It is found without symbols, by its structure and its own counters.
 * Similar memory to which ntdll points is rejected. */
#include "tests/unit/t.h"

#include "tests/unit/fake_ust.h"

#define NTDLL 0x70000000u
#define NTDLL_BYTES 0x8000u
#define NTDLL_DATA (NTDLL + 0x2000u) /* ntdll's only writable section */
#define NTDLL_DATA_BYTES 0x2000u
#define DATABASE 0x50000000u
#define DATABASE_BYTES 0x20000u
#define BUCKETS 5u
#define ENTRIES 20u

/* struct _STACK_TRACE_DATABASE of Windows 7 to 10. */
struct locations {
	unsigned commit_base, lower_commit, upper_commit, lower_free, upper_free, lookups, added;
	unsigned index_array, failures, bucket_count, buckets, bucket_bytes, record_head;
};

static const struct locations *places_of(unsigned bits)
{
	static const struct locations x86 = {
		0x48, 0x4c, 0x50, 0x54, 0x58, 0x5c, 0x60, 0x64, 0x70, 0x178, 0x17c, 8, 0x0c};
	static const struct locations x64 = {
		0x88, 0x90, 0x98, 0xa0, 0xa8, 0xb0, 0xb4, 0xb8, 0xc8, 0x2d0, 0x2d8, 16, 0x10};

	return bits == 64 ? &x64 : &x86;
}

struct scene {
	struct memory memory;
	struct ust_database found;
	unsigned bits;
	uint64_t lower_free;
};

static struct scene scene;

static void write_ptr(uint64_t addr, uint64_t value)
{
	fake_write(addr, value, scene.bits / 8);
}

/* Places entry i (counted from 1) in its bucket's chain and in the index. */
static void place_entry(uint32_t i)
{
	const struct locations *at = places_of(scene.bits);
	uint64_t bucket = DATABASE + at->buckets + i % BUCKETS * at->bucket_bytes;
	struct made_record record = {.chain = fake_get(bucket, scene.bits / 8),
		.index = i,
		.depth = 3,
		.frame_count = 3,
		.first_frame = CODE_BASE + 0x100};

	write_record(scene.bits, scene.lower_free, &record);
	write_ptr(bucket, scene.lower_free);
	write_ptr(DATABASE + DATABASE_BYTES - i * (scene.bits / 8), scene.lower_free);
	scene.lower_free += 0x40;
}

static void place_database(void)
{
	const struct locations *at = places_of(scene.bits);

	fake_map(DATABASE, DATABASE_BYTES)->needs_hold = true;
	scene.lower_free = DATABASE + 0x400;
	write_ptr(DATABASE + at->commit_base, scene.lower_free);
	for (uint32_t i = 1; i <= ENTRIES; i++)
		place_entry(i);
	write_ptr(DATABASE + at->lower_commit, DATABASE + 0x2000);
	write_ptr(DATABASE + at->upper_commit, DATABASE + DATABASE_BYTES - 0x1000);
	write_ptr(DATABASE + at->lower_free, scene.lower_free);
	write_ptr(
		DATABASE + at->upper_free, DATABASE + DATABASE_BYTES - ENTRIES * (scene.bits / 8));
	fake_write(DATABASE + at->lookups, 4711, 4);
	fake_write(DATABASE + at->added, ENTRIES, 4);
	write_ptr(DATABASE + at->index_array, DATABASE + DATABASE_BYTES);
	fake_write(DATABASE + at->failures, 17, 4);
	fake_write(DATABASE + at->bucket_count, BUCKETS, 4);
}

static int release(void **state)
{
	(void)state;
	memory_release(&scene.memory);
	fake_release();
	scene = (struct scene){0};
	return 0;
}

static void scene_init(unsigned bits)
{
	release(NULL);
	scene.bits = bits;
	ust_place(bits);
	fake_map(NTDLL, NTDLL_BYTES)->needs_hold = true;
	fake_write_module(
		NTDLL, bits, NTDLL_BYTES, NTDLL_DATA_BYTES, "C:\\Windows\\SYSTEM32\\ntdll.dll");
	place_database();
	write_ptr(NTDLL_DATA + 0x1238, DATABASE);
	assert_int_equal(memory_init(&scene.memory, &fake.target), 0);
}

static bool is_found(void)
{
	memory_clear(&scene.memory);
	assert_int_equal(ust_database_find(&scene.found, &scene.memory, scene.bits, fake.modules,
				 fake.module_count),
		0);
	assert_int_equal(fake.loose_reads + fake.late_reads, 0);
	return scene.found.addr == DATABASE;
}

#undef TEST_AROUND
#define TEST_AROUND NULL, release

TEST(database_is_found_with_its_contents)
{
	for (unsigned bits = 32; bits <= 64; bits += 32) {
		uint64_t records_end;

		scene_init(bits);
		records_end = scene.lower_free - DATABASE;
		assert_true(is_found());
		assert_int_equal(scene.found.entry_count, ENTRIES);
		assert_int_equal(scene.found.lookup_count, 4711);
		assert_int_equal(scene.found.failure_count, 17);
		assert_int_equal(scene.found.indexed_count, ENTRIES);
		assert_int_equal(scene.found.chained_count, ENTRIES);
		assert_int_equal(scene.found.reserved_bytes, DATABASE_BYTES);
		assert_int_equal(scene.found.used_bytes, records_end + ENTRIES * (bits / 8));
	}
}

TEST(only_what_ntdll_of_that_width_can_write_is_looked_at)
{
	scene_init(64);
	write_ptr(NTDLL_DATA + 0x1238, 0);
	assert_false(is_found());
	write_ptr(NTDLL + 0x1100, DATABASE); /* the pointer is in ntdll's code */
	assert_false(is_found());
	write_ptr(NTDLL_DATA + NTDLL_DATA_BYTES - 8, DATABASE);
	assert_true(is_found());
	fake.modules[1].path = "C:\\app\\xntdll.dll";
	assert_false(is_found());
	fake.modules[1].path = "C:\\WINDOWS\\NTDLL.DLL";
	assert_true(is_found());
	fake_write(NTDLL + 0x80 + 24, 0x10b, 2); /* a 32-bit image */
	assert_false(is_found());
	assert_int_equal(scene.found.addr, 0);
}

TEST(what_contradicts_itself_is_no_database)
{
	for (unsigned bits = 32; bits <= 64; bits += 32) {
		const struct locations *at = places_of(bits);
		const struct {
			uint64_t place, value;
			size_t bytes;
		} wrong[] = {
			{at->commit_base, DATABASE - 8, bits / 8},
			{at->commit_base, DATABASE + 0x3000, bits / 8},
			{at->lower_commit, DATABASE + DATABASE_BYTES, bits / 8},
			{at->upper_commit, DATABASE + 0x1000, bits / 8},
			{at->upper_commit, 0xfffffff0, bits / 8},
			{at->lower_free, DATABASE, bits / 8},
			{at->lower_free, 0, bits / 8},
			{at->lower_free, DATABASE + at->buckets + 8, bits / 8},
			{at->lower_free, UINT64_MAX, bits / 8},
			{at->upper_free, DATABASE + 0x100, bits / 8},
			{at->upper_free, UINT64_MAX, bits / 8},
			{at->index_array, 0, bits / 8},
			{at->index_array, DATABASE + 0x800, bits / 8},
			{at->index_array, DATABASE - 0x1000, bits / 8},
			{at->added, 0xffffffff, 4},
			{at->bucket_count, 0, 4},
			{at->bucket_count, 0xffffffff, 4},
			{at->bucket_count, 0x10000000, 4},
			{at->buckets, DATABASE - 0x100, bits / 8},
			{at->buckets + at->bucket_bytes, 0x12345678, bits / 8},
			{at->buckets, DATABASE + 0x404 - bits / 32, bits / 8},
		};
		scene_init(bits);
		for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
			uint64_t addr = DATABASE + wrong[i].place;
			uint64_t right = fake_get(addr, wrong[i].bytes);

			fake_write(addr, wrong[i].value, wrong[i].bytes);
			if (is_found())
				fail_msg("%u bits: case %zu is taken for a database", bits, i);
			fake_write(addr, right, wrong[i].bytes);
		}
		assert_true(is_found());
	}
}

TEST(torn_index_counts_as_far_as_it_is_there)
{
	scene_init(64);
	write_ptr(DATABASE + DATABASE_BYTES - 3 * 8, 0x1234);
	write_ptr(DATABASE + DATABASE_BYTES - 4 * 8, UINT64_MAX);
	assert_true(is_found());
	assert_int_equal(scene.found.entry_count, ENTRIES);
	assert_int_equal(scene.found.indexed_count, ENTRIES - 2);
	/* The walk followed at most one more entry. */
	assert_int_equal(scene.found.chained_count, ENTRIES - 1);
}

TEST(entries_that_bear_another_number_do_not_count)
{
	scene_init(32);
	fake_write(DATABASE + 0x400 + 8, 2, 2);
	fake_write(DATABASE + 0x440 + 6, 1, 2); /* upper half of the field */
	assert_true(is_found());
	assert_int_equal(scene.found.indexed_count, ENTRIES - 2);
}

TEST(chain_that_leads_round_ends)
{
	for (unsigned bits = 32; bits <= 64; bits += 32) {
		scene_init(bits);
		write_ptr(DATABASE + 0x400, DATABASE + 0x400 + BUCKETS * 0x40);
		assert_true(is_found());
		assert_int_equal(scene.found.indexed_count, ENTRIES);
		assert_int_equal(scene.found.chained_count, ENTRIES + 1);
	}
}

/* The database claims counts and places without memory. The work must depend on the mapped memory
 * only. */
TEST(index_that_is_elsewhere_is_none)
{
	const struct locations *at = places_of(64);
	scene_init(64);
	fake_write(DATABASE + at->added, 0xffffffff, 4);
	write_ptr(DATABASE + at->index_array, UINT64_C(1) << 46);
	write_ptr(DATABASE + at->upper_free, UINT64_C(1) << 45);
	write_ptr(DATABASE + at->upper_commit, UINT64_C(1) << 45);
	fake.reads = 0;
	assert_false(is_found());
	assert_in_range(fake.reads, 1, 1000);
}

/* The database claims more entries than fit into mapped memory, so the rest of the index is
 * unmapped. */
TEST(claimed_entries_do_not_cost_more_than_there_is)
{
	const struct locations *at = places_of(64);
	const uint64_t end = DATABASE + DATABASE_BYTES + 0x1000040000;
	scene_init(64);
	fake_map(end - 0x1000, 0x1000);
	for (uint64_t i = 1; i <= 0x1000 / 8; i++)
		write_ptr(end - i * 8, DATABASE + 0x400);
	fake_write(DATABASE + at->added, 0xffffffff / 8, 4);
	write_ptr(DATABASE + at->index_array, end);
	fake.reads = 0;
	assert_true(is_found());
	assert_int_equal(scene.found.entry_count, 0xffffffff / 8);
	assert_int_equal(scene.found.indexed_count, 1);
	assert_in_range(scene.found.chained_count, 0, 2);
	assert_in_range(fake.reads, 1, 1000);
}

/* Every pointer in ntdll's data leads to a database that is almost valid and has the maximum number
 * of buckets. */
TEST(many_near_misses_end_quickly)
{
	const struct locations *at = places_of(64);
	scene_init(64);
	fake_unmap(DATABASE);
	fake_map(DATABASE, 0x1400000);
	for (uint64_t i = 0; i < NTDLL_DATA_BYTES / 8; i++) {
		uint64_t addr = DATABASE + i * 0x1000;

		write_ptr(NTDLL_DATA + i * 8, addr);
		write_ptr(addr + at->commit_base, addr);
		write_ptr(addr + at->lower_commit, addr);
		write_ptr(addr + at->upper_commit, addr + 0x2000000);
		write_ptr(addr + at->lower_free, addr + 0x1100000);
		write_ptr(addr + at->upper_free, addr + 0x1100000);
		write_ptr(addr + at->index_array, addr + 0x2000000);
		fake_write(addr + at->bucket_count, 0x100000, 4);
	}
	assert_false(is_found());
}

TEST(whichever_word_of_it_is_damaged_nothing_is_harmed)
{
	uint64_t seed = 7;

	for (unsigned round = 0; round < 400; round++) {
		scene_init(round % 2 ? 32 : 64);
		for (unsigned i = 0; i < 1 + round % 4; i++) {
			uint64_t place = fake_random(&seed) % 0x900 & ~UINT64_C(3);
			uint64_t value = fake_random(&seed) % 3 ?
						 fake_random(&seed) :
						 DATABASE + fake_random(&seed) % DATABASE_BYTES;

			fake_write(DATABASE + place, value, 4);
		}
		is_found();
		assert_true(scene.found.addr == 0 || scene.found.addr == DATABASE);
		assert_true(scene.found.used_bytes <= scene.found.reserved_bytes);
	}
}
