/* Snapshots by stack: the sum of each stack is correct, and the totals do not change.
 * e2e_by_stack.t tests their dumps. */
#include "tests/unit/t.h"

#include <inttypes.h>
#include <unistd.h>

#include "snapshot/capture/capture.h"
#include "tests/unit/test_dump.h"

#define HEAPS 4 /* the last heap holds ranges of virtual memory */
#define STACKS 60
#define BLOCKS 7000

struct truth {
	struct block_totals of[HEAPS][STACKS];
	struct block_totals stackless[HEAPS];
	uint64_t state;
};

static uint64_t random_below(struct truth *truth, uint64_t limit)
{
	truth->state ^= truth->state << 13;
	truth->state ^= truth->state >> 7;
	truth->state ^= truth->state << 17;
	return truth->state % limit;
}

static void add_stacks(struct snapshot *snapshot)
{
	for (uint32_t i = 0; i < STACKS; i++) {
		uint64_t frames[] = {0x140001000 + i, 0x140002000};
		struct stack stack = {
			.same_id = STACK_NONE, .frames = frames, .frame_count = 1 + i % 2};
		uint32_t index;
		char id[20];

		snprintf(id, sizeof(id), "%" PRIX32, 0x100 + i);
		stack.id = id;
		stackset_add(&snapshot->stacks, &stack, strlen(id), &index);
		assert_int_equal(index, i);
	}
}

/* A few stacks own most of the blocks, and not every stack occurs in every heap. */
static uint32_t any_stack(struct truth *truth, uint32_t heap)
{
	uint32_t below = 1 + (uint32_t)random_below(truth, STACKS);

	return (uint32_t)random_below(truth, below) / (heap + 1) * (heap + 1);
}

static void add_sums(struct snapshot *snapshot, struct truth *truth, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct block_totals more = {1 + random_below(truth, 9), 0, 0};
		uint32_t stack = any_stack(truth, 1);

		more.requested_bytes = more.block_count * random_below(truth, 5000);
		more.overhead_bytes = more.block_count * random_below(truth, 40);
		block_totals_add(&truth->of[1][stack], &more);
		*snapshot_add_sum(snapshot) = (struct block_sum){more.block_count,
			more.requested_bytes, more.overhead_bytes, 1, stack, BLOCK_HELD};
	}
}

static void make(struct snapshot *snapshot, struct truth *truth, uint64_t seed, unsigned sums)
{
	snapshot_init(snapshot);
	*truth = (struct truth){.state = seed * UINT64_C(0x9e3779b97f4a7c15)};
	snapshot->time_ms = 1;
	add_stacks(snapshot);
	for (uint32_t i = 0; i < HEAPS; i++) {
		struct heap *heap = snapshot_add_heap(snapshot);

		*heap = (struct heap){.addr = i < HEAPS - 1 ? 0x10000 * (i + 1) : HEAP_VIRTUAL};
		heap->stackless = truth->stackless[i] =
			(struct block_totals){i, 100 * (uint64_t)i, 7 * (uint64_t)i};
	}
	for (uint32_t i = 0; i < BLOCKS; i++) {
		uint32_t heap = (uint32_t)random_below(truth, HEAPS);
		uint32_t stack = any_stack(truth, heap);
		struct block_totals one = {1, random_below(truth, 5000),
			heap < HEAPS - 1 ? random_below(truth, 40) : 0};

		block_totals_add(&truth->of[heap][stack], &one);
		*snapshot_add_block(snapshot) = (struct block){0x7000000 + 0x2000 * (uint64_t)i,
			one.requested_bytes, one.overhead_bytes, heap, stack};
	}
	add_sums(snapshot, truth, sums);
}

static struct block_totals total_of(const struct truth *truth)
{
	struct block_totals total = {0};

	for (size_t i = 0; i < HEAPS; i++) {
		block_totals_add(&total, &truth->stackless[i]);
		for (size_t j = 0; j < STACKS; j++)
			block_totals_add(&total, &truth->of[i][j]);
	}
	return total;
}

static void assert_block_totals(const struct block_totals *is, const struct block_totals *wanted)
{
	assert_int_equal(is->block_count, wanted->block_count);
	assert_int_equal(is->requested_bytes, wanted->requested_bytes);
	assert_int_equal(is->overhead_bytes, wanted->overhead_bytes);
}

static void check_sums(const struct snapshot *snapshot, const struct truth *truth)
{
	const struct block_sum *sum = snapshot->sums;
	struct block_totals total = snapshot_total(snapshot), wanted = total_of(truth);

	assert_null(snapshot->blocks);
	assert_int_equal(snapshot->block_count, 0);
	assert_true(snapshot->is_by_stack);
	for (uint32_t heap = 0; heap < HEAPS; heap++) {
		for (uint32_t stack = 0; stack < STACKS; stack++) {
			const struct block_totals *of = &truth->of[heap][stack];

			if (!of->block_count)
				continue;
			assert_true(sum < snapshot->sums + snapshot->sum_count);
			assert_int_equal(sum->heap, heap);
			assert_int_equal(sum->stack, stack);
			assert_block_totals(&(struct block_totals){sum->block_count,
						    sum->requested_bytes, sum->overhead_bytes},
				of);
			sum++;
		}
	}
	assert_ptr_equal(sum, snapshot->sums + snapshot->sum_count);
	assert_block_totals(&total, &wanted);
}

TEST(blocks_add_up_by_stack_and_heap)
{
	struct snapshot snapshot;
	struct truth truth;

	for (uint64_t seed = 1; seed < 6; seed++) {
		make(&snapshot, &truth, seed, 0);
		model_sum_by_stack(&snapshot);
		check_sums(&snapshot, &truth);
		model_sum_by_stack(&snapshot); /* a second call must change nothing */
		check_sums(&snapshot, &truth);
		snapshot_release(&snapshot);
	}
}

/* The sums are like those of a sample, with several sums per stack. */
TEST(sums_add_up_with_blocks)
{
	struct snapshot snapshot;
	struct truth truth;

	make(&snapshot, &truth, 9, 2000);
	model_sum_by_stack(&snapshot);
	check_sums(&snapshot, &truth);
	snapshot_release(&snapshot);
}

TEST(nothing_adds_up_to_nothing)
{
	struct snapshot snapshot;

	snapshot_init(&snapshot);
	model_sum_by_stack(&snapshot);
	assert_int_equal(snapshot.sum_count, 0);
	snapshot_release(&snapshot);
}

static int scan_text(const char *text, size_t len, const struct dump_sink *sink, struct err *err)
{
	struct memory memory = {.bytes = text, .len = len, .step = SIZE_MAX};
	struct dump_source source = {.read = read_memory, .ctx = &memory, .name = "made"};

	return dump_scan(&source, sink, err);
}

/* Changes a digit of the rounding remainder, so that it contradicts the end mark. */
TEST(wrong_rest_is_found)
{
	struct snapshot snapshot;
	const struct dump_sink nothing = {0};
	struct truth truth;
	struct err err;
	size_t len;
	char *dump, *digit;

	make(&snapshot, &truth, 4, 0);
	model_sum_by_stack(&snapshot);
	dump = written(&snapshot, &len);
	digit = strstr(dump, " rest-overhead=");
	assert_non_null(digit);
	digit += strlen(" rest-overhead=");
	*digit = *digit == '9' ? '8' : (char)(*digit + 1);
	assert_int_equal(scan_text(dump, len, &nothing, &err), -ERR_BAD_LINE);
	assert_non_null(strstr(err.detail, "sums do not match"));
	*digit = 'x';
	assert_int_equal(scan_text(dump, len, &nothing, &err), -ERR_BAD_LINE);
	assert_non_null(strstr(err.detail, "bad '// hsnap:' line"));
	free(dump);
	snapshot_release(&snapshot);
}
