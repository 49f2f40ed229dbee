/* Real memory of Windows 7: part of a heap, and its chain of blocks, which was read by hand. */
#include "tests/unit/data.h"

#include "snapshot/heap/nt/nt.h"
#include "snapshot/live/process.h"

#define FRAGMENT "dumps/syzygy_notepad-larger-32bit"
#define HEAP_32 0x8b0000u
#define HEAP_64 0x10000u

struct real {
	struct target target;
	struct memory memory;
	struct nt_process process;
	struct walk walk;
	struct nt_walk nt;
};

/* Opens the minidump, which has no full memory; skips the test if it is missing. */
static struct real *real_new(unsigned bits)
{
	const char *file = data_file(FRAGMENT ".dmp");
	struct real *real;
	struct err err;

	real = calloc(1, sizeof(*real));
	assert_non_null(real);
	assert_int_equal(target_open_minidump(&real->target, file, &err), 0);
	real->process = (struct nt_process){.bits = bits, .global_flag = 0x70, .os_build = 7601};
	assert_int_equal(memory_init(&real->memory, &real->target), 0);
	walk_init(&real->walk);
	real->nt = (struct nt_walk){.memory = &real->memory,
		.process = &real->process,
		.walk = &real->walk,
		.probes_left = NT_PROBES};
	claims_init(&real->nt.claims, TARGET_SPACE_BYTES);
	return real;
}

static void real_free(struct real *real)
{
	claims_release(&real->nt.claims);
	walk_release(&real->walk);
	memory_release(&real->memory);
	real->target.ops->close(&real->target);
	free(real);
}

static bool number_after(const char *line, const char *name, uint64_t *value)
{
	const char *at = strstr(line, name);

	if (at)
		*value = strtoull(at + strlen(name), NULL, 16);
	return at != NULL;
}

struct line {
	uint64_t addr, requested_bytes, overhead_bytes;
};

static bool read_line(FILE *file, uint64_t *entry, uint64_t *size, struct line *block)
{
	char line[512];

	while (fgets(line, sizeof(line), file)) {
		*entry = strtoull(line, NULL, 16);
		if (!strstr(line, " flags 07 ") || !number_after(line, " size ", size) ||
			!number_after(line, " user=", &block->addr) ||
			!number_after(line, " ubytes=", &block->requested_bytes))
			continue;
		block->overhead_bytes = *size - block->requested_bytes;
		return true;
	}
	return false;
}

/* Asserts that the walk found the chain's blocks one directly after another. Returns their
 * number. */
static size_t assert_chain(const struct walk *walk, uint64_t *from, uint64_t *end)
{
	FILE *file = fopen(data_file(FRAGMENT ".walk.txt"), "r");
	struct line want = {0};
	uint64_t entry, size;
	size_t count = 0, i = 0;

	assert_non_null(file);
	while (read_line(file, &entry, &size, &want)) {
		*from = count++ ? *from : entry;
		*end = entry + size;
		if (!walk)
			continue;
		while (i < walk->block_count && walk->blocks[i].addr != want.addr)
			i++;
		assert_true(i < walk->block_count);
		assert_int_equal(walk->blocks[i].requested_bytes, want.requested_bytes);
		assert_int_equal(walk->blocks[i].overhead_bytes, want.overhead_bytes);
		assert_int_equal(walk->blocks[i].stack, STACK_NONE);
	}
	assert_int_equal(fclose(file), 0);
	assert_int_equal(count, 7);
	return count;
}

TEST(real_chain_of_windows_7_decodes_to_what_it_is)
{
	struct real *real = real_new(32);
	uint64_t from, end;
	struct extent run;
	struct nt_heap heap;

	assert_chain(NULL, &from, &end);
	assert_true(nt_heap_open(&heap, &real->nt, HEAP_32));
	assert_string_equal(heap.layout->name, "nt 6.1.7600-7601 x86");
	run = (struct extent){.addr = from, .end = end, .segment = HEAP_32};
	assert_int_equal(nt_chain_walk(&heap, &run), 0);
	assert_int_equal(real->walk.doubt_count, 0);
	assert_int_equal(real->walk.broken_count, 0);
	assert_int_equal(real->walk.block_count, assert_chain(&real->walk, &from, &end));
	nt_heap_close(&heap);
	real_free(real);
}

/* The file has the heap's header, but neither the first blocks nor most of the heap's list of
 * blocks. */
TEST(real_heap_with_holes_gives_chain_that_is_left)
{
	struct real *real = real_new(32);
	uint64_t from, end;

	assert_int_equal(nt_backend_walk(&real->nt, HEAP_32), 0);
	assert_true(real->walk.missing_count > 0);
	assert_chain(&real->walk, &from, &end);
	/* The segment's first block and its end are correct. The file lacks the page that describes
	 * the segment's uncommitted range. */
	assert_int_equal(real->walk.broken_count, 0);
	assert_int_equal(real->walk.doubt_count, 0);
	assert_int_equal(real->walk.heaps[0].reserved_bytes, 0x100000);
	real_free(real);
}

TEST(real_64_bit_heap_is_known_by_its_signatures)
{
	struct real *real = real_new(64);
	struct nt_header header;
	struct nt_heap heap;
	uint64_t coded;

	real->process.os_build = 0;
	assert_true(nt_heap_open(&heap, &real->nt, HEAP_64));
	assert_string_equal(heap.layout->name, "nt 6.1.7600-7601 x64");
	assert_int_equal(memory_u64(&real->memory, HEAP_64 + 8, &coded), 0);
	assert_true(nt_header_decode(coded, heap.key, &header));
	assert_int_equal(header.units, 0xa8);
	assert_false(nt_header_decode(coded ^ 0x40, heap.key, &header));
	nt_heap_close(&heap);
	real_free(real);
}
