/* core/dump: what a tracer knows is written, and read back as it was. */
#include "tests/unit/t.h"

#define _XOPEN_SOURCE 700 /* P_tmpdir */
#include <unistd.h>

#include "tests/unit/test_dump.h"

static const uint64_t frames[] = {0x800000000123, 0x140001490};

static uint32_t put_stack(struct snapshot *snapshot, const char *id)
{
	struct stack wanted = {.id = id, .frames = frames, .frame_count = 2};
	uint32_t index;

	assert_int_equal(stackset_put(&snapshot->stacks, &wanted, strlen(id), &index), 0);
	return index;
}

static void make(struct snapshot *snapshot)
{
	const struct tracer_facts facts = {2, 11, 12, 13, 14, 15, true, {16, 17, 18}, 19, 20, 4096};

	snapshot_init(snapshot);
	snapshot->tracer = facts;
	*snapshot_add_module(snapshot) = (struct module){.base = 0x800000000000,
		.size_bytes = 0x20000,
		.path = "C:\\plug.dll",
		.timestamp = 0x5EED,
		.has_identity = true,
		.unloaded_at = 0x180000000};
	*snapshot_add_heap(snapshot) = (struct heap){.addr = 0x650000,
		.kind = "nt",
		.has_exact = true,
		.exact = {100, 200, 300},
		.stackless = {1, 2, 3}};
	*snapshot_add_heap(snapshot) = (struct heap){.addr = HEAP_RESERVED, .kind = "reserved"};
	*snapshot_add_sum(snapshot) =
		(struct block_sum){20, 20 * 0x428, 20 * 0x10, 0, put_stack(snapshot, "2A")};
	*snapshot_add_sum(snapshot) = (struct block_sum){3, 0, 3 * 8, 0, put_stack(snapshot, "2B")};
	*snapshot_add_block(snapshot) =
		(struct block){0x50000, 0x10000, 0, 1, put_stack(snapshot, "2A")};
}

TEST(facts_and_modules_come_back)
{
	struct snapshot made, read;
	size_t len;
	char *dump;

	make(&made);
	dump = written(&made, &len);
	assert_int_equal(load(&read, dump, len, SIZE_MAX, NULL), 0);
	assert_int_equal(read.tracer.version, made.tracer.version);
	assert_int_equal(read.tracer.dropped_blocks, 11);
	assert_int_equal(read.tracer.dropped_stacks, 12);
	assert_int_equal(read.tracer.dropped_ranges, 13);
	assert_int_equal(read.tracer.dropped_unloads, 14);
	assert_int_equal(read.tracer.mismatch_count, 15);
	assert_true(read.tracer.is_attached);
	assert_memory_equal(&read.tracer.before, &made.tracer.before, sizeof(struct block_totals));
	assert_int_equal(read.tracer.limit_bytes, 19);
	assert_int_equal(read.tracer.committed_bytes, 20);
	assert_int_equal(read.tracer.sample_bytes, 4096);
	assert_int_equal(read.modules[0].unloaded_at, 0x180000000);
	assert_true(read.heaps[0].has_exact);
	assert_false(read.heaps[1].has_exact);
	assert_memory_equal(
		&read.heaps[0].exact, &made.heaps[0].exact, sizeof(struct block_totals));
	snapshot_release(&read);
	snapshot_release(&made);
	free(dump);
}

/* The example of hdump.5, to the byte; and the end mark adds up, or it could not be read. */
TEST(sums_are_entries_of_their_own)
{
	struct snapshot made, read;
	struct block_totals total;
	size_t len;
	char *dump;

	make(&made);
	total = snapshot_total(&made);
	assert_int_equal(total.block_count, 20 + 3 + 1 + 1);
	assert_int_equal(total.requested_bytes, 20 * 0x428 + 0x10000 + 2);
	assert_int_equal(total.overhead_bytes, 20 * 0x10 + 3 * 8 + 3);
	dump = written(&made, &len);
	assert_non_null(strstr(dump,
		"\r\n5320 bytes in 0x14 allocations (@ 0x428 + 0x10) by: BackTrace2A\r\n"
		"\t800000000123\r\n\t140001490\r\n"));
	assert_non_null(
		strstr(dump, "\r\n0 bytes in 0x3 allocations (@ 0x0 + 0x8) by: BackTrace2B\r\n"));
	assert_non_null(strstr(dump, " Heap 2 Hogs: VirtualAlloc reserved - "));
	assert_non_null(strstr(dump, "\r\n10000 bytes + 0 at 50000 by BackTrace2A\r\n"));
	assert_int_equal(load(&read, dump, len, 7, NULL), 0);
	assert_int_equal(snapshot_total(&read).requested_bytes, total.requested_bytes);
	assert_int_equal(read.heaps[read.blocks[2].heap].addr, HEAP_RESERVED);
	snapshot_release(&read);
	snapshot_release(&made);
	free(dump);
}

TEST(headings_have_names)
{
	assert_string_equal(heap_name(1), "VirtualAlloc");
	assert_string_equal(heap_name(2), "VirtualAlloc reserved");
	assert_string_equal(heap_name(3), "Mapped");
	assert_null(heap_name(0));
	assert_null(heap_name(4));
	assert_null(heap_name(UINT64_MAX));
	assert_int_equal(heap_by_name("virtualalloc"), 1);
	assert_int_equal(heap_by_name("Reserved"), 2);
	assert_int_equal(heap_by_name("MAPPED"), 3);
	assert_int_equal(heap_by_name("VirtualAlloc "), 0);
	assert_int_equal(heap_by_name("virtua"), 0);
	assert_int_equal(heap_by_name(""), 0);
}
