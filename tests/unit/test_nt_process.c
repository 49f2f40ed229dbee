/* What a PEB says of its process: its heaps, once each, and whether its list of them can be believed. */
#include "tests/unit/fake_target.h"

#include "snapshot/nt_process.h"

#define PAGE 0x500000u
#define PAGE_END 0x501000u /* nothing is there */

static struct fake fake;
static struct memory memory;
static struct nt_process process;

/* A PEB whose process heap is first, and whose list of heaps says that it has some number of them, of
 * which count are there. */
static int read_list(uint64_t first, const uint64_t *heaps, size_t count, uint32_t said)
{
	uint64_t list = PAGE_END - 8 * count;
	struct err err;
	int rc;

	fake_init(&fake);
	fake.is_held = true;
	fake_map(&fake, PAGE, PAGE_END - PAGE);
	for (size_t i = 0; i < count; i++)
		fake_put(&fake, list + 8 * i, heaps[i], 8);
	fake_put(&fake, FAKE_PEB + FAKE_PEB_HEAP, first, 8);
	fake_put(&fake, FAKE_PEB + FAKE_PEB_HEAP_COUNT, said, 4);
	fake_put(&fake, FAKE_PEB + FAKE_PEB_HEAP_LIST, list, 8);
	fake_put(&fake, FAKE_PEB + 0xbc, NT_FLAG_UST | NT_FLAG_HPA, 4);
	fake_put(&fake, FAKE_PEB + 0x118, 10, 4);
	fake_put(&fake, FAKE_PEB + 0x120, 19041, 2);
	assert_int_equal(memory_init(&memory, &fake.target), 0);
	rc = nt_process_read(&process, &memory, FAKE_PEB, 64, &err);
	memory_release(&memory);
	fake_release(&fake);
	return rc;
}

static void heaps_are_listed_the_process_heap_first(void **state)
{
	static const uint64_t heaps[] = {0x30000, 0x10000, 0x20000};

	(void)state;
	assert_int_equal(read_list(0x10000, heaps, 3, 3), 0);
	assert_int_equal(process.heap_count, 3);
	assert_true(process.heaps[0] == 0x10000);
	assert_true(process.heaps[1] == 0x30000);
	assert_true(process.heaps[2] == 0x20000);
	assert_false(process.is_heap_list_cut);
	assert_int_equal(process.global_flag, 0x2001000);
	assert_int_equal(process.os_major, 10);
	assert_int_equal(process.os_build, 19041);
	nt_process_release(&process);
}

static void a_heap_that_is_listed_twice_is_kept_once_and_said(void **state)
{
	static const uint64_t first_again[] = {0x10000, 0x10000},
			      other[] = {0x10000, 0x20000, 0x20000};

	(void)state;
	assert_int_equal(read_list(0x10000, first_again, 2, 2), 0);
	assert_int_equal(process.heap_count, 1);
	assert_true(process.is_heap_list_cut);
	nt_process_release(&process);
	assert_int_equal(read_list(0x10000, other, 3, 3), 0);
	assert_int_equal(process.heap_count, 2);
	assert_true(process.is_heap_list_cut);
	nt_process_release(&process);
}

static void a_list_that_cannot_be_read_to_its_end_is_said(void **state)
{
	static const uint64_t heaps[] = {0x10000, 0x20000};

	(void)state;
	assert_int_equal(read_list(0x10000, heaps, 2, 3), 0);
	assert_int_equal(process.heap_count, 2);
	assert_true(process.is_heap_list_cut);
	nt_process_release(&process);
	assert_int_equal(read_list(0x10000, heaps, 2, UINT32_MAX), 0);
	assert_int_equal(process.heap_count, 2);
	assert_true(process.is_heap_list_cut);
	nt_process_release(&process);
	/* none at all: the process heap is one */
	assert_int_equal(read_list(0x10000, heaps, 0, 0), 0);
	assert_int_equal(process.heap_count, 1);
	assert_false(process.is_heap_list_cut);
	nt_process_release(&process);
}

static void a_process_without_a_heap_is_none_yet(void **state)
{
	(void)state;
	assert_int_equal(read_list(0, NULL, 0, 0), -ERR_TARGET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heaps_are_listed_the_process_heap_first),
		cmocka_unit_test(a_heap_that_is_listed_twice_is_kept_once_and_said),
		cmocka_unit_test(a_list_that_cannot_be_read_to_its_end_is_said),
		cmocka_unit_test(a_process_without_a_heap_is_none_yet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
