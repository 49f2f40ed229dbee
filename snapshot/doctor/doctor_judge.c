#include "snapshot/doctor/doctor_judge.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* One row in the making. */
struct tally {
	uint64_t expected, found;
	char first[200]; /* wrong thing; empty: none */
};

struct heap_tally {
	struct tally groups[DOCTOR_GROUPS], stacks, freed, others; /* freed: found is those gone */
	uint64_t unseen; /* live blocks that are not listed at all */
};

uint64_t doctor_overhead_max(const struct doctor_block *block)
{
	uint64_t bytes = block->requested_bytes > block->was_bytes ? block->requested_bytes :
								     block->was_bytes;

	return 512 + bytes / 4 + (bytes > 16384 ? 131072 : 0) + block->was_bytes;
}

static void wrong(struct tally *tally, const char *format, ...) PRINTF_LIKE(2, 3);

static void wrong(struct tally *tally, const char *format, ...)
{
	va_list args;

	if (tally->first[0])
		return;
	va_start(args, format);
	vsnprintf(tally->first, sizeof(tally->first), format, args);
	va_end(args);
}

static bool is_in(const struct doctor_range *range, uint64_t addr)
{
	return addr > range->from && addr <= range->to;
}

bool doctor_stack_fits(const struct doctor_truth *truth, const struct doctor_block *block,
	const uint64_t *frames, uint32_t frame_count)
{
	uint32_t i = 0;

	while (i < frame_count && !is_in(&truth->image, frames[i]))
		i++;
	if (i == frame_count ||
		!(is_in(&truth->sites[block->site], frames[i]) ||
			(block->was_bytes && is_in(&truth->sites[DOCTOR_RESIZE_SITE], frames[i]))))
		return false;
	for (i++; i < frame_count; i++) {
		if (is_in(&truth->outer, frames[i]))
			return true;
	}
	return false;
}

/* True when the block is found once and is what it should be; says in tally what is not. */
static bool is_right(const struct doctor_truth *truth, const struct doctor_block *block,
	const struct doctor_found *found, const struct doctor_found_block *at, struct tally *tally)
{
	const struct doctor_found_block *next = at + 1;

	if (next < found->blocks + found->block_count && next->addr == at->addr)
		wrong(tally, "the block at %" PRIX64 " is listed twice", block->addr);
	else if (at->heap != truth->heaps[block->heap])
		wrong(tally, "the block at %" PRIX64 " is listed in heap %" PRIX64, block->addr,
			at->heap);
	else if (at->requested_bytes != block->requested_bytes)
		wrong(tally,
			"the block at %" PRIX64 " has %" PRIu64
			" bytes and is listed with %" PRIu64,
			block->addr, block->requested_bytes, at->requested_bytes);
	else if (at->overhead_bytes > doctor_overhead_max(block))
		wrong(tally,
			"the block at %" PRIX64 " of %" PRIu64
			" bytes is listed with an overhead of %" PRIu64,
			block->addr, block->requested_bytes, at->overhead_bytes);
	else
		return true;
	return false;
}

static void judge_live(struct heap_tally *tally, const struct doctor_truth *truth,
	const struct doctor_block *block, const struct doctor_found *found)
{
	const struct doctor_found_block *at = doctor_found_at(found, block->addr);
	struct tally *group = &tally->groups[block->group];

	group->expected++;
	tally->stacks.expected++;
	if (!at) {
		tally->unseen++;
		wrong(group, "the block of %" PRIu64 " bytes at %" PRIX64 " is not listed%s",
			block->requested_bytes, block->addr,
			found->has_stacks ? ", or not with a stack" : "");
		return;
	}
	group->found += is_right(truth, block, found, at, group);
	if (doctor_stack_fits(truth, block, at->frames, at->frames ? at->frame_count : 0))
		tally->stacks.found++;
	else
		wrong(&tally->stacks,
			"the stack of the block at %" PRIX64
			" does not lead to where it was allocated",
			block->addr);
}

/* The place may be another heap's by now, when the memory had gone back to the system. */
static void judge_freed(struct heap_tally *tally, const struct doctor_truth *truth,
	const struct doctor_block *block, const struct doctor_found *found)
{
	const struct doctor_found_block *at = doctor_found_at(found, block->addr);

	tally->freed.expected++;
	if (at && at->heap == truth->heaps[block->heap])
		wrong(&tally->freed, "the block at %" PRIX64 " was freed and is listed",
			block->addr);
	else
		tally->freed.found++;
}

/* Blocks of the heap that the child did not make. */
static void judge_others(struct heap_tally *tally, const struct doctor_truth *truth,
	const struct doctor_found *found, uint64_t heap)
{
	for (size_t i = 0; i < found->block_count; i++) {
		const struct doctor_found_block *at = &found->blocks[i];

		if (at->heap != heap || doctor_truth_find(truth, at->addr))
			continue;
		tally->others.found++;
		wrong(&tally->others, "a block of %" PRIu64 " bytes at %" PRIX64 " is listed",
			at->requested_bytes, at->addr);
	}
}

/* Those without a stack are only counted: as many as are missing may be the missing ones. */
static void judge_stackless(
	struct heap_tally *tally, const struct doctor_found *found, uint64_t heap_addr)
{
	const struct heap *heap = doctor_found_heap(found, heap_addr);
	uint64_t stackless = heap ? heap->stackless.block_count : 0;

	if (!found->has_stacks || stackless <= tally->unseen)
		return;
	tally->others.found += stackless - tally->unseen;
	wrong(&tally->others, "%" PRIu64 " more blocks are counted without a stack",
		stackless - tally->unseen);
}

static int add_row(struct doctor_report *report, const char *source, enum doctor_heap heap,
	const char *what, const struct tally *tally)
{
	struct doctor_row row = {.source = source,
		.heap = doctor_heap_name(heap),
		.what = what,
		.expected = tally->expected,
		.found = tally->found,
		.verdict = tally->expected == tally->found && !tally->first[0] ? DOCTOR_OK :
										 DOCTOR_OFF};

	snprintf(row.detail, sizeof(row.detail), "%s", tally->first);
	return doctor_report_add(report, &row);
}

static int add_rows(struct doctor_report *report, const struct doctor_found *found,
	enum doctor_heap heap, const struct heap_tally *tally)
{
	int rc = 0;

	for (int group = 0; !rc && group < DOCTOR_GROUPS; group++) {
		if (tally->groups[group].expected)
			rc = add_row(report, found->source, heap,
				doctor_group_name((enum doctor_group)group), &tally->groups[group]);
	}
	if (!rc && heap != DOCTOR_PROCESS_HEAP)
		rc = add_row(report, found->source, heap, "freed blocks gone", &tally->freed);
	if (!rc && heap != DOCTOR_PROCESS_HEAP)
		rc = add_row(report, found->source, heap, "other blocks", &tally->others);
	if (!rc && found->has_stacks)
		rc = add_row(report, found->source, heap, "stacks", &tally->stacks);
	return rc;
}

static int judge_heap(struct doctor_report *report, const struct doctor_truth *truth,
	const struct doctor_found *found, enum doctor_heap heap)
{
	struct heap_tally tally = {0};

	for (uint32_t i = 0; i < truth->block_count; i++) {
		const struct doctor_block *block = &truth->blocks[i];

		if (block->heap != heap)
			continue;
		if (block->is_freed)
			judge_freed(&tally, truth, block, found);
		else
			judge_live(&tally, truth, block, found);
	}
	judge_others(&tally, truth, found, truth->heaps[heap]);
	judge_stackless(&tally, found, truth->heaps[heap]);
	return add_rows(report, found, heap, &tally);
}

int doctor_judge(struct doctor_report *report, const struct doctor_truth *truth,
	const struct doctor_found *found)
{
	int rc = 0;

	for (int heap = 0; !rc && heap < DOCTOR_HEAPS; heap++) {
		if (truth->heaps[heap])
			rc = judge_heap(report, truth, found, (enum doctor_heap)heap);
	}
	return rc;
}

static int judge_sums_of(struct doctor_report *report, const struct doctor_truth *truth,
	const struct doctor_found *found, enum doctor_heap id)
{
	const struct heap *heap = doctor_found_heap(found, truth->heaps[id]);
	struct tally blocks = {0}, bytes = {0};

	for (uint32_t i = 0; i < truth->block_count; i++) {
		const struct doctor_block *block = &truth->blocks[i];

		if (block->heap != id || block->is_freed)
			continue;
		blocks.expected++;
		bytes.expected += block->requested_bytes;
	}
	for (size_t i = 0; i < found->block_count; i++) {
		if (found->blocks[i].heap != truth->heaps[id])
			continue;
		blocks.found++;
		bytes.found += found->blocks[i].requested_bytes;
	}
	if (heap) {
		blocks.found += heap->stackless.block_count;
		bytes.found += heap->stackless.requested_bytes;
	}
	return add_row(report, found->source, id, "number of blocks", &blocks) ?
		       -ERR_NOMEM :
		       add_row(report, found->source, id, "bytes in them", &bytes);
}

int doctor_judge_sums(struct doctor_report *report, const struct doctor_truth *truth,
	const struct doctor_found *found)
{
	int rc = 0;

	for (int heap = DOCTOR_PROCESS_HEAP + 1; !rc && heap < DOCTOR_HEAPS; heap++) {
		if (truth->heaps[heap])
			rc = judge_sums_of(report, truth, found, (enum doctor_heap)heap);
	}
	return rc;
}
