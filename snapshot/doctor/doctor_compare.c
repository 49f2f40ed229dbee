#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/doctor/doctor.h"

void doctor_tally_wrong(struct doctor_tally *tally, const char *format, ...)
{
	va_list args;

	if (tally->first[0])
		return;
	va_start(args, format);
	vsnprintf(tally->first, sizeof(tally->first), format, args);
	va_end(args);
}

void doctor_tally_more(struct doctor_tally *tally, const char *format, ...)
{
	size_t len = strlen(tally->first);
	va_list args;

	if (!len)
		return;
	va_start(args, format);
	vsnprintf(tally->first + len, sizeof(tally->first) - len, format, args);
	va_end(args);
}

int doctor_tally_add(struct doctor_report *report, const struct doctor_subject *subject,
	const struct doctor_tally *tally)
{
	struct doctor_row row = {.source = subject->source,
		.heap = doctor_heap_name(subject->heap),
		.what = subject->what,
		.part = subject->part,
		.expected = tally->expected,
		.found = tally->found,
		.verdict = DOCTOR_OK};

	if (tally->expected != tally->found || tally->first[0])
		row.verdict = tally->is_note ? DOCTOR_NOTE : DOCTOR_OFF;
	snprintf(row.detail, sizeof(row.detail), "%s", tally->first);
	return doctor_report_add(report, &row);
}

struct sums {
	uint64_t blocks, bytes;
};

/* What the child has in a heap of its own. */
static struct sums true_sums(const struct doctor_truth *truth, enum doctor_heap heap)
{
	struct sums sums = {0};

	for (uint32_t i = 0; i < truth->block_count; i++) {
		const struct doctor_block *block = &truth->blocks[i];

		if (block->heap != heap || block->is_freed)
			continue;
		sums.blocks++;
		sums.bytes += block->requested_bytes;
	}
	return sums;
}

/* What a walk listed there that is no live block of the truth's. */
static void add_walked(struct sums *sums, const struct doctor_truth *truth, enum doctor_heap heap,
	const struct doctor_found *walked)
{
	for (size_t i = 0; walked && i < walked->block_count; i++) {
		const struct doctor_found_block *at = &walked->blocks[i];
		const struct doctor_block *block = doctor_truth_find(truth, at->addr);

		if (at->heap != truth->heaps[heap] ||
			(block && block->heap == heap && !block->is_freed))
			continue;
		sums->blocks++;
		sums->bytes += at->requested_bytes;
	}
}

static struct sums found_sums(const struct doctor_found *found, uint64_t addr)
{
	const struct heap *heap = doctor_found_heap(found, addr);
	struct sums sums = {0};

	if (heap)
		sums = (struct sums){heap->stackless.block_count, heap->stackless.requested_bytes};
	for (size_t i = 0; i < found->block_count; i++) {
		if (found->blocks[i].heap != addr)
			continue;
		sums.blocks++;
		sums.bytes += found->blocks[i].requested_bytes;
	}
	return sums;
}

static int judge_sums_of(struct doctor_report *report, const char *source, enum doctor_heap heap,
	const struct sums *expected, const struct sums *found)
{
	const struct doctor_subject of_blocks = {source, heap, "number of blocks", "blocks"},
				    of_bytes = {source, heap, "bytes in them", "bytes"};
	struct doctor_tally blocks = {.expected = expected->blocks, .found = found->blocks},
			    bytes = {.expected = expected->bytes, .found = found->bytes};
	int rc = doctor_tally_add(report, &of_blocks, &blocks);

	return rc ? rc : doctor_tally_add(report, &of_bytes, &bytes);
}

int doctor_judge_sums(struct doctor_report *report, const struct doctor_truth *truth,
	const struct doctor_found *found, const struct doctor_found *walked)
{
	int rc = 0;

	for (int i = DOCTOR_PROCESS_HEAP + 1; !rc && i < DOCTOR_HEAPS; i++) {
		const struct heap *heap = doctor_found_heap(found, truth->heaps[i]);
		enum doctor_heap id = (enum doctor_heap)i;
		struct sums expected = true_sums(truth, id), sums;

		/* Of a heap that was not walked there are no sums; doctor_judge() says what that is. */
		if (!truth->heaps[i] || (heap && heap->unwalked))
			continue;
		add_walked(&expected, truth, id, walked);
		sums = found_sums(found, truth->heaps[i]);
		rc = judge_sums_of(report, found->source, id, &expected, &sums);
	}
	return rc;
}

static int compare(const void *a, const void *b)
{
	const struct doctor_found_block *x = a, *y = b;

	return x->addr == y->addr ? 0 : x->addr < y->addr ? -1 : 1;
}

void doctor_found_sort(struct doctor_found *found)
{
	if (found->block_count)
		qsort(found->blocks, found->block_count, sizeof(*found->blocks), compare);
}

static int make(
	struct doctor_found *found, size_t count, const struct heap *heaps, size_t heap_count)
{
	struct doctor_found_block *blocks = calloc(count ? count : 1, sizeof(*blocks));

	if (!blocks)
		return -ERR_NOMEM;
	*found = (struct doctor_found){
		.blocks = blocks, .block_count = count, .heaps = heaps, .heap_count = heap_count};
	return 0;
}

int doctor_found_by_walk(struct doctor_found *found, const struct walk *walk)
{
	if (make(found, walk->block_count, walk->heaps, walk->heap_count))
		return -ERR_NOMEM;
	for (size_t i = 0; i < walk->block_count; i++) {
		const struct walked_block *block = &walk->blocks[i];

		found->blocks[i] = (struct doctor_found_block){.addr = block->addr,
			.requested_bytes = block->requested_bytes,
			.overhead_bytes = block->overhead_bytes,
			.heap = walk->heaps[block->heap].addr};
	}
	doctor_found_sort(found);
	return 0;
}

int doctor_found_by_snapshot(struct doctor_found *found, const struct snapshot *snapshot)
{
	if (make(found, snapshot->block_count, snapshot->heaps, snapshot->heap_count))
		return -ERR_NOMEM;
	found->has_stacks = true;
	for (size_t i = 0; i < snapshot->block_count; i++) {
		const struct block *block = &snapshot->blocks[i];
		const struct stack *stack = &snapshot->stacks.stacks[block->stack];

		found->blocks[i] = (struct doctor_found_block){.addr = block->addr,
			.requested_bytes = block->requested_bytes,
			.overhead_bytes = block->overhead_bytes,
			.heap = snapshot->heaps[block->heap].addr,
			.frames = stack->frames,
			.frame_count = stack->frame_count};
	}
	doctor_found_sort(found);
	return 0;
}

void doctor_found_release(struct doctor_found *found)
{
	free(found->blocks);
	*found = (struct doctor_found){0};
}

const struct doctor_found_block *doctor_found_at(const struct doctor_found *found, uint64_t addr)
{
	size_t low = 0, high = found->block_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (found->blocks[middle].addr < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < found->block_count && found->blocks[low].addr == addr ? &found->blocks[low] :
									     NULL;
}

const struct heap *doctor_found_heap(const struct doctor_found *found, uint64_t addr)
{
	for (size_t i = 0; i < found->heap_count; i++) {
		if (found->heaps[i].addr == addr)
			return &found->heaps[i];
	}
	return NULL;
}

struct heap_tally {
	enum doctor_heap heap;
	struct doctor_tally groups[DOCTOR_GROUPS], stacks;
	struct doctor_tally freed; /* found is those gone */
	struct doctor_tally others, overlapping;
	uint64_t
		unseen; /* live blocks, and those that were there before, that are not listed at all */
	uint64_t other_bytes;
};

/* What is compared. */
struct scene {
	const struct doctor_truth *truth;
	const struct doctor_found *found;
	const struct doctor_found *before; /* or NULL */
};

uint64_t doctor_overhead_max(const struct doctor_block *block)
{
	uint64_t bytes = block->requested_bytes > block->was_bytes ? block->requested_bytes :
								     block->was_bytes;

	return 512 + bytes / 4 + (bytes > 16384 ? 131072 : 0) + block->was_bytes;
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
	const struct doctor_found *found, const struct doctor_found_block *at,
	struct doctor_tally *tally)
{
	const struct doctor_found_block *next = at + 1;

	if (next < found->blocks + found->block_count && next->addr == at->addr)
		doctor_tally_wrong(tally, "the block at %" PRIX64 " is listed twice", block->addr);
	else if (at->heap != truth->heaps[block->heap])
		doctor_tally_wrong(tally, "the block at %" PRIX64 " is listed in heap %" PRIX64,
			block->addr, at->heap);
	else if (at->requested_bytes != block->requested_bytes)
		doctor_tally_wrong(tally,
			"the block at %" PRIX64 " has %" PRIu64
			" bytes and is listed with %" PRIu64,
			block->addr, block->requested_bytes, at->requested_bytes);
	else if (at->overhead_bytes > doctor_overhead_max(block))
		doctor_tally_wrong(tally,
			"the block at %" PRIX64 " of %" PRIu64
			" bytes is listed with an overhead of %" PRIu64,
			block->addr, block->requested_bytes, at->overhead_bytes);
	else
		return true;
	return false;
}

static void judge_live(
	struct heap_tally *tally, const struct scene *scene, const struct doctor_block *block)
{
	const struct doctor_found *found = scene->found;
	const struct doctor_found_block *at = doctor_found_at(found, block->addr);
	struct doctor_tally *group = &tally->groups[block->group];

	group->expected++;
	tally->stacks.expected++;
	if (!at) {
		tally->unseen++;
		doctor_tally_wrong(group,
			"the block of %" PRIu64 " bytes at %" PRIX64 " is not listed%s",
			block->requested_bytes, block->addr,
			found->has_stacks ? ", or not with a stack" : "");
		return;
	}
	group->found += is_right(scene->truth, block, found, at, group);
	if (doctor_stack_fits(scene->truth, block, at->frames, at->frames ? at->frame_count : 0))
		tally->stacks.found++;
	else
		doctor_tally_wrong(&tally->stacks,
			"the stack of the block at %" PRIX64
			" does not lead to where it was allocated",
			block->addr);
}

/* The place may be another heap's by now, when the memory had gone back to the system. */
static void judge_freed(
	struct heap_tally *tally, const struct scene *scene, const struct doctor_block *block)
{
	const struct doctor_found_block *at = doctor_found_at(scene->found, block->addr);

	tally->freed.expected++;
	if (at && at->heap == scene->truth->heaps[block->heap])
		doctor_tally_wrong(&tally->freed,
			"the block at %" PRIX64 " was freed and is listed", block->addr);
	else
		tally->freed.found++;
}

static uint64_t end_of(uint64_t addr, uint64_t bytes)
{
	uint64_t end = addr + (bytes ? bytes : 1);

	return end > addr ? end : UINT64_MAX;
}

/* A live block of the truth that lies in a found block at another address, or NULL. */
static const struct doctor_block *covered_by(
	const struct doctor_truth *truth, const struct doctor_found_block *at)
{
	uint64_t end = end_of(at->addr, at->requested_bytes);

	for (size_t i = doctor_truth_from(truth, at->addr); i-- > 0;) {
		const struct doctor_block *block = &truth->blocks[i];

		if (block->is_freed)
			continue;
		if (end_of(block->addr, block->requested_bytes) > at->addr)
			return block;
		break;
	}
	for (size_t i = doctor_truth_from(truth, at->addr); i < truth->block_count; i++) {
		const struct doctor_block *block = &truth->blocks[i];

		if (block->addr >= end)
			break;
		if (!block->is_freed && block->addr != at->addr)
			return block;
	}
	return NULL;
}

/* No two blocks of a heap share a byte. */
static void judge_overlapping(struct heap_tally *tally, const struct scene *scene)
{
	uint64_t heap = scene->truth->heaps[tally->heap], end = 0, last = 0;

	for (size_t i = 0; i < scene->found->block_count; i++) {
		const struct doctor_found_block *at = &scene->found->blocks[i];
		const struct doctor_block *block;

		if (at->heap != heap)
			continue;
		block = covered_by(scene->truth, at);
		if (at->addr < end || block) {
			tally->overlapping.found++;
			doctor_tally_wrong(&tally->overlapping,
				"the blocks at %" PRIX64 " and %" PRIX64 " share memory", at->addr,
				block ? block->addr : last);
		}
		if (end_of(at->addr, at->requested_bytes) > end) {
			end = end_of(at->addr, at->requested_bytes);
			last = at->addr;
		}
	}
}

static bool was_there(const struct scene *scene, uint64_t addr)
{
	return scene->before && doctor_found_at(scene->before, addr);
}

/* Blocks of the heap that the child did not make. */
static void judge_others(struct heap_tally *tally, const struct scene *scene)
{
	const struct doctor_found *found = scene->found;
	uint64_t heap = scene->truth->heaps[tally->heap];

	for (size_t i = 0; i < found->block_count; i++) {
		const struct doctor_found_block *at = &found->blocks[i];

		if (at->heap != heap || doctor_truth_find(scene->truth, at->addr) ||
			was_there(scene, at->addr))
			continue;
		tally->others.found++;
		tally->other_bytes += at->requested_bytes;
		doctor_tally_wrong(&tally->others,
			"a block of %" PRIu64 " bytes at %" PRIX64 " is listed",
			at->requested_bytes, at->addr);
	}
}

/* Those that were in the heap before and have no stack are counted without one. */
static void pass_over_before(struct heap_tally *tally, const struct scene *scene)
{
	uint64_t heap = scene->truth->heaps[tally->heap];

	for (size_t i = 0; scene->before && i < scene->before->block_count; i++) {
		const struct doctor_found_block *at = &scene->before->blocks[i];

		tally->unseen += at->heap == heap && !doctor_found_at(scene->found, at->addr);
	}
}

/* Those without a stack are only counted: as many as are missing may be the missing ones. */
static void judge_stackless(struct heap_tally *tally, const struct scene *scene)
{
	const struct heap *heap = doctor_found_heap(scene->found, scene->truth->heaps[tally->heap]);
	uint64_t stackless = heap ? heap->stackless.block_count : 0;

	if (!scene->found->has_stacks || stackless <= tally->unseen)
		return;
	tally->others.found += stackless - tally->unseen;
	doctor_tally_wrong(&tally->others, "%" PRIu64 " more blocks are counted without a stack",
		stackless - tally->unseen);
}

static uint64_t live_count(const struct heap_tally *tally)
{
	uint64_t count = 0;

	for (int group = 0; group < DOCTOR_GROUPS; group++)
		count += tally->groups[group].expected;
	return count;
}

static bool are_few(uint64_t count, uint64_t of, unsigned part)
{
	return count <= DOCTOR_FEW_MAX && count <= of / part;
}

/* What may differ without a mistake of ours; doctor_judge.h says why. */
static void make_notes(struct heap_tally *tally, const struct scene *scene)
{
	const struct heap *heap = doctor_found_heap(scene->found, scene->truth->heaps[tally->heap]);
	uint64_t listed = tally->freed.expected - tally->freed.found;

	if (!heap || !heap->kind || !strcmp(heap->kind, "wine"))
		return;
	tally->freed.is_note = are_few(listed, tally->freed.expected, DOCTOR_FREED_PART);
	tally->others.is_note = are_few(tally->others.found, live_count(tally), DOCTOR_OTHERS_PART);
	if (tally->freed.is_note)
		doctor_tally_more(
			&tally->freed, "; Windows may put blocks aside when they are freed");
	if (tally->others.is_note && !scene->found->has_stacks)
		doctor_tally_more(
			&tally->others, ", %" PRIu64 " bytes with all such", tally->other_bytes);
	if (tally->others.is_note)
		doctor_tally_more(&tally->others, "; it may be the heap's own");
}

static int add_rows(
	struct doctor_report *report, const char *source, const struct heap_tally *tally)
{
	struct doctor_subject subject = {source, tally->heap, NULL, "blocks"};
	int rc = 0;

	for (int group = 0; !rc && group < DOCTOR_GROUPS; group++) {
		subject.what = doctor_group_name((enum doctor_group)group);
		if (tally->groups[group].expected)
			rc = doctor_tally_add(report, &subject, &tally->groups[group]);
	}
	subject.what = "freed blocks gone";
	subject.part = "freed";
	if (!rc && tally->heap != DOCTOR_PROCESS_HEAP)
		rc = doctor_tally_add(report, &subject, &tally->freed);
	subject.what = "other blocks";
	subject.part = "other";
	if (!rc && tally->heap != DOCTOR_PROCESS_HEAP)
		rc = doctor_tally_add(report, &subject, &tally->others);
	subject.what = "blocks that overlap";
	subject.part = "overlap";
	return rc ? rc : doctor_tally_add(report, &subject, &tally->overlapping);
}

static int add_stacks(
	struct doctor_report *report, const char *source, const struct heap_tally *tally)
{
	const struct doctor_subject subject = {source, tally->heap, "stacks", "stacks"};

	return doctor_tally_add(report, &subject, &tally->stacks);
}

/* True when the heap is only named, as hsnap does with what it knows no layout of. */
static bool is_unwalked(const struct doctor_found *found, uint64_t addr)
{
	const struct heap *heap = doctor_found_heap(found, addr);
	size_t i = 0;

	while (i < found->block_count && found->blocks[i].heap != addr)
		i++;
	return heap && heap->unwalked && i == found->block_count;
}

/* Of segment heaps the first systems that had them are left out, and dumps say so. */
static int say_unwalked(struct doctor_report *report, const char *source, enum doctor_heap heap)
{
	const struct doctor_row row = {.source = source,
		.heap = doctor_heap_name(heap),
		.what = "walking it",
		.part = "walking it",
		.verdict = heap == DOCTOR_SEGMENT ? DOCTOR_NOT_THERE : DOCTOR_OFF,
		.has_no_numbers = true,
		.detail = "no layout is known for it; in dumps it is a heap that was not walked"};

	return doctor_report_add(report, &row);
}

static int judge_heap(
	struct doctor_report *report, const struct scene *scene, enum doctor_heap heap)
{
	const struct doctor_truth *truth = scene->truth;
	struct heap_tally tally = {.heap = heap};
	int rc;

	if (is_unwalked(scene->found, truth->heaps[heap]))
		return say_unwalked(report, scene->found->source, heap);
	for (uint32_t i = 0; i < truth->block_count; i++) {
		const struct doctor_block *block = &truth->blocks[i];

		if (block->heap != heap)
			continue;
		if (block->is_freed)
			judge_freed(&tally, scene, block);
		else
			judge_live(&tally, scene, block);
	}
	pass_over_before(&tally, scene);
	judge_others(&tally, scene);
	judge_stackless(&tally, scene);
	judge_overlapping(&tally, scene);
	make_notes(&tally, scene);
	rc = add_rows(report, scene->found->source, &tally);
	return rc || !scene->found->has_stacks ? rc :
						 add_stacks(report, scene->found->source, &tally);
}

int doctor_judge(struct doctor_report *report, const struct doctor_truth *truth,
	const struct doctor_found *found, const struct doctor_found *before)
{
	const struct scene scene = {truth, found, before};
	int rc = 0;

	for (int heap = 0; !rc && heap < DOCTOR_HEAPS; heap++) {
		if (truth->heaps[heap])
			rc = judge_heap(report, &scene, (enum doctor_heap)heap);
	}
	return rc;
}
