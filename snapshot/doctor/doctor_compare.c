#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/doctor/doctor.h"

#define WALKS_MAX 3 /* while something in the heaps makes no sense */

/* Few: no more than so many, and than this part of the blocks that the child freed or has. */
#define FEW_MAX 32
#define FREED_PART 8
#define OTHERS_PART 64

/* What one source found. */
struct doctor_found {
	const char *source;
	const struct snapshot *snapshot; /* its blocks by address */
	bool has_stacks; /* each block has one */
};

/* The rows of one heap in the making. */
struct heap_rows {
	struct doctor_row groups[DOCTOR_GROUPS], freed, others, overlapping, stacks;
	uint64_t listed; /* blocks */
	uint64_t unlisted; /* blocks that the child has */
};

static int compare_blocks(const void *a, const void *b)
{
	const struct block *x = a, *y = b;

	return x->addr == y->addr ? 0 : x->addr < y->addr ? -1 : 1;
}

static int compare_addr(const void *key, const void *item)
{
	uint64_t addr = *(const uint64_t *)key, at = *(const uint64_t *)item;

	return addr == at ? 0 : addr < at ? -1 : 1;
}

static const struct block *found_at(const struct doctor_found *found, uint64_t addr)
{
	const struct snapshot *snapshot = found->snapshot;

	if (!snapshot->block_count)
		return NULL;
	return bsearch(&addr, snapshot->blocks, snapshot->block_count, sizeof(*snapshot->blocks),
		compare_addr);
}

static const struct doctor_block *truth_at(const struct doctor_truth *truth, uint64_t addr)
{
	return bsearch(
		&addr, truth->blocks, truth->block_count, sizeof(*truth->blocks), compare_addr);
}

static uint64_t heap_of(const struct doctor_found *found, const struct block *block)
{
	return found->snapshot->heaps[block->heap].addr;
}

static const struct heap *heap_at(const struct doctor_found *found, uint64_t addr)
{
	for (size_t i = 0; i < found->snapshot->heap_count; i++) {
		if (found->snapshot->heaps[i].addr == addr)
			return &found->snapshot->heaps[i];
	}
	return NULL;
}

/* Which of the child's heaps that is; DOCTOR_HEAPS: none. */
static int child_heap(const struct doctor_truth *truth, uint64_t addr)
{
	int i = 0;

	while (i < DOCTOR_HEAPS && (!addr || truth->heaps[i] != addr))
		i++;
	return i;
}

/* Keeps the text when it is the first one. */
static void wrong(struct doctor_row *row, const char *format, ...) PRINTF_LIKE(2, 3);

static void wrong(struct doctor_row *row, const char *format, ...)
{
	va_list args;

	if (row->detail[0])
		return;
	va_start(args, format);
	vsnprintf(row->detail, sizeof(row->detail), format, args);
	va_end(args);
}

static bool is_in(const struct doctor_range *range, uint64_t addr)
{
	return addr > range->from && addr <= range->to;
}

/* True when the innermost frame inside the child's program is the site that the block was allocated
 * at, and further out there is the function that calls all sites. */
static bool stack_fits(const struct doctor_truth *truth, const struct doctor_block *block,
	const struct stack *stack)
{
	uint32_t i = 0, count = stack->frames ? stack->frame_count : 0;

	while (i < count && !is_in(&truth->image, stack->frames[i]))
		i++;
	if (i == count || !(is_in(&truth->sites[block->site], stack->frames[i]) ||
				  (block->was_bytes && is_in(&truth->sites[DOCTOR_RESIZE_SITE],
							       stack->frames[i]))))
		return false;
	for (i++; i < count; i++) {
		if (is_in(&truth->outer, stack->frames[i]))
			return true;
	}
	return false;
}

/* More heap than this on top of a block is no overhead but a mistake: it has room for what page-sized
 * and larger units leave over, and for what a block had before it was made smaller in its place. */
static uint64_t overhead_max(const struct doctor_block *block)
{
	uint64_t bytes = block->requested_bytes > block->was_bytes ? block->requested_bytes :
								     block->was_bytes;

	return 512 + bytes / 4 + (bytes > 16384 ? 131072 : 0) + block->was_bytes;
}

/* True when the block is what it should be; says in row what is not. */
static bool is_right(const struct doctor_block *block, uint64_t heap, const struct block *at,
	uint64_t at_heap, struct doctor_row *row)
{
	if (at_heap != heap)
		wrong(row, "the block at %" PRIX64 " is listed in heap %" PRIX64, block->addr,
			at_heap);
	else if (at->requested_bytes != block->requested_bytes)
		wrong(row,
			"the block at %" PRIX64 " has %" PRIu64
			" bytes and is listed with %" PRIu64,
			block->addr, block->requested_bytes, at->requested_bytes);
	else if (at->overhead_bytes > overhead_max(block))
		wrong(row,
			"the block at %" PRIX64 " of %" PRIu64
			" bytes is listed with an overhead of %" PRIu64,
			block->addr, block->requested_bytes, at->overhead_bytes);
	else
		return true;
	return false;
}

static void compare_live(struct heap_rows *rows, const struct doctor_truth *truth,
	const struct doctor_found *found, const struct doctor_block *block)
{
	const struct block *at = found_at(found, block->addr);
	struct doctor_row *group = &rows->groups[block->group];

	group->expected++;
	rows->stacks.expected++;
	if (!at) {
		rows->unlisted++;
		wrong(group, "the block of %" PRIu64 " bytes at %" PRIX64 " is not listed%s",
			block->requested_bytes, block->addr,
			found->has_stacks ? ", or not with a stack" : "");
		return;
	}
	group->found += is_right(block, truth->heaps[block->heap], at, heap_of(found, at), group);
	if (!found->has_stacks)
		return;
	if (stack_fits(truth, block, &found->snapshot->stacks.stacks[at->stack]))
		rows->stacks.found++;
	else
		wrong(&rows->stacks,
			"the stack of the block at %" PRIX64
			" does not lead to where it was allocated",
			block->addr);
}

/* The place may be another heap's by now, when the memory had gone back to the system. */
static void compare_freed(struct heap_rows *rows, const struct doctor_truth *truth,
	const struct doctor_found *found, const struct doctor_block *block)
{
	const struct block *at = found_at(found, block->addr);

	rows->freed.expected++;
	if (at && heap_of(found, at) == truth->heaps[block->heap])
		wrong(&rows->freed, "the block at %" PRIX64 " was freed and is listed",
			block->addr);
	else
		rows->freed.found++;
}

/* What is listed: blocks that the child did not make, and blocks that share memory. */
static void compare_listed(struct heap_rows rows[DOCTOR_HEAPS], const struct doctor_truth *truth,
	const struct doctor_found *found)
{
	uint64_t end = 0, last = 0;

	for (size_t i = 0; i < found->snapshot->block_count; i++) {
		const struct block *at = &found->snapshot->blocks[i];
		uint64_t at_end = at->addr + (at->requested_bytes ? at->requested_bytes : 1);
		int heap = child_heap(truth, heap_of(found, at));

		if (heap == DOCTOR_HEAPS)
			continue;
		rows[heap].listed++;
		if (!truth_at(truth, at->addr)) {
			rows[heap].others.found++;
			wrong(&rows[heap].others,
				"a block of %" PRIu64 " bytes at %" PRIX64 " is listed",
				at->requested_bytes, at->addr);
		}
		if (at->addr < end) {
			rows[heap].overlapping.found++;
			wrong(&rows[heap].overlapping,
				"the blocks at %" PRIX64 " and %" PRIX64 " share memory", last,
				at->addr);
		}
		if (at_end < at->addr) /* it wraps around */
			at_end = UINT64_MAX;
		if (at_end > end) {
			end = at_end;
			last = at->addr;
		}
	}
}

static bool are_few(uint64_t count, uint64_t all, unsigned part)
{
	return count && count <= FEW_MAX && count <= all / part;
}

static void make_note(struct doctor_row *row, const char *why)
{
	size_t len = strlen(row->detail);

	row->verdict = DOCTOR_NOTE;
	snprintf(row->detail + len, sizeof(row->detail) - len, "; %s", why);
}

/* What is known when all blocks have been looked at. */
static void finish(struct heap_rows *rows, bool has_stacks, const struct heap *heap)
{
	uint64_t stackless = heap ? heap->stackless.block_count : 0;

	/* Those without a stack are only counted: as many as are missing may be the missing ones. */
	if (has_stacks && stackless > rows->unlisted) {
		rows->others.found += stackless - rows->unlisted;
		wrong(&rows->others, "%" PRIu64 " more blocks are counted without a stack",
			stackless - rows->unlisted);
	}
	/* What may differ without a mistake of ours; doctor.h says why. */
	if (!heap || !heap->kind || !strcmp(heap->kind, "wine"))
		return;
	if (are_few(rows->freed.expected - rows->freed.found, rows->freed.expected, FREED_PART))
		make_note(&rows->freed, "Windows may put blocks aside when they are freed");
	if (are_few(rows->others.found, rows->stacks.expected, OTHERS_PART))
		make_note(&rows->others, "it may be the heap's own");
}

static void add_row(struct doctor *doctor, const char *source, int heap, const char *part,
	const char *what, struct doctor_row *row)
{
	row->source = source;
	row->heap = doctor_heap_names[heap];
	row->part = part;
	row->what = what;
	doctor_add(doctor, row);
}

static void add_rows(
	struct doctor *doctor, const struct doctor_found *found, int heap, struct heap_rows *rows)
{
	for (int i = 0; i < DOCTOR_GROUPS; i++) {
		if (rows->groups[i].expected)
			add_row(doctor, found->source, heap, "blocks", doctor_group_names[i],
				&rows->groups[i]);
	}
	if (heap != DOCTOR_PROCESS_HEAP) {
		add_row(doctor, found->source, heap, "freed", "freed blocks gone", &rows->freed);
		add_row(doctor, found->source, heap, "other", "other blocks", &rows->others);
	}
	add_row(doctor, found->source, heap, "overlap", "blocks that overlap", &rows->overlapping);
	if (found->has_stacks)
		add_row(doctor, found->source, heap, "stacks", "stacks", &rows->stacks);
}

/* Some segment heaps of the first systems that had them are of no known layout, and dumps say so. */
static void add_unwalked(struct doctor *doctor, const char *source, int heap)
{
	struct doctor_row row = {.verdict = heap == DOCTOR_SEGMENT ? DOCTOR_NOT_THERE : DOCTOR_OFF,
		.has_no_numbers = true,
		.detail = "no layout is known for it; in dumps it is a heap that was not walked"};

	add_row(doctor, source, heap, "walking it", "walking it", &row);
}

/* Which row of which layout table read a heap. */
static void note_layout(struct doctor *doctor, int i, const struct heap *heap)
{
	static const char *const names[] = {
		"none", "look-aside lists", "low fragmentation", "unknown"};
	uint32_t front_end = doctor->truth->front_ends[i];

	doctor_note(doctor, doctor_heap_names[i], "kind %s%s%s, front end %s%s",
		heap->kind ? heap->kind : "unknown", heap->layout ? ", layout " : "",
		heap->layout ? heap->layout : "", names[front_end < 3 ? front_end : 3],
		heap->unwalked ? ", not walked" : "");
}

static void compare(
	struct doctor *doctor, const char *source, struct snapshot *snapshot, bool has_stacks)
{
	const struct doctor_found found = {source, snapshot, has_stacks};
	const struct doctor_truth *truth = doctor->truth;
	struct heap_rows rows[DOCTOR_HEAPS] = {0};

	if (snapshot->block_count)
		qsort(snapshot->blocks, snapshot->block_count, sizeof(*snapshot->blocks),
			compare_blocks);
	for (uint32_t i = 0; i < truth->block_count; i++) {
		const struct doctor_block *block = &truth->blocks[i];

		(block->is_freed ? compare_freed : compare_live)(
			&rows[block->heap], truth, &found, block);
	}
	compare_listed(rows, truth, &found);
	for (int i = 0; i < DOCTOR_HEAPS; i++) {
		const struct heap *heap = heap_at(&found, truth->heaps[i]);

		if (!truth->heaps[i])
			continue;
		if (heap)
			note_layout(doctor, i, heap);
		finish(&rows[i], has_stacks, heap);
		/* The tracer's blocks are known of a heap that was not walked, too. */
		if (heap && heap->unwalked && !rows[i].listed)
			add_unwalked(doctor, source, i);
		else
			add_rows(doctor, &found, i, &rows[i]);
	}
}

/* Where the walkers met with what they could not make sense of. */
static void add_broken(struct doctor *doctor, const char *source, const struct walk *walk)
{
	struct doctor_row row = {.source = source,
		.heap = "",
		.what = "places without sense",
		.part = "places without sense",
		.found = (uint64_t)walk->broken_count + walk->missing_count};
	int heap = child_heap(doctor->truth, walk->broken_heap);
	char place[80] = "";

	if (walk->broken_heap)
		snprintf(place, sizeof(place), ", in heap %" PRIX64 " (%s)", walk->broken_heap,
			heap < DOCTOR_HEAPS ? doctor_heap_names[heap] : "not the child's own");
	if (walk->broken_count)
		wrong(&row, "%s at %" PRIX64 "%s", walk->broken_what, walk->broken_addr, place);
	else if (walk->missing_count)
		wrong(&row, "%s at %" PRIX64, walk->missing_what, walk->missing_addr);
	doctor_add(doctor, &row);
}

void doctor_compare_walk(struct doctor *doctor, const char *source, const struct walk *walk)
{
	struct snapshot snapshot;

	snapshot_init(&snapshot);
	for (size_t i = 0; i < walk->heap_count; i++) {
		struct heap *heap = snapshot_add_heap(&snapshot);

		if (heap)
			*heap = walk->heaps[i];
	}
	for (size_t i = 0; i < walk->block_count; i++) {
		const struct walked_block *walked = &walk->blocks[i];
		struct block *block = snapshot_add_block(&snapshot);

		if (block)
			*block = (struct block){walked->addr, walked->requested_bytes,
				walked->overhead_bytes, walked->heap, STACK_NONE};
	}
	if (snapshot.heap_count != walk->heap_count || snapshot.block_count != walk->block_count)
		doctor->is_out_of_memory = true;
	else
		compare(doctor, source, &snapshot, false);
	snapshot_release(&snapshot);
	add_broken(doctor, source, walk);
}

void doctor_compare_snapshot(struct doctor *doctor, const char *source, struct snapshot *snapshot)
{
	compare(doctor, source, snapshot, true);
}

static int walk_held(struct memory *memory, struct walk *walk, struct err *err)
{
	struct target *target = memory->target;
	int rc;

	walk_clear(walk);
	memory_clear(memory);
	rc = target->ops->suspend(target, err);
	if (!rc)
		rc = heaps_walk(memory, walk, err);
	target->ops->resume(target);
	return rc;
}

void doctor_look_walk(struct doctor *doctor, struct target *target, const char *source)
{
	struct memory memory;
	struct err err = {0};
	struct walk walk;
	unsigned walks = 0;
	int rc;

	if (memory_init(&memory, target)) {
		doctor->is_out_of_memory = true;
		return;
	}
	walk_init(&walk);
	/* The child waits, but a thread of the system's in it may have stood inside a heap. */
	do {
		rc = walk_held(&memory, &walk, &err);
	} while (!rc && !walk_is_sound(&walk) && ++walks < WALKS_MAX);
	if (rc)
		doctor_say(doctor, source, "walking the heaps", DOCTOR_OFF, &err);
	else
		doctor_compare_walk(doctor, source, &walk);
	if (!target->is_file)
		doctor_note(doctor, "held",
			target->is_cloned ? "by a clone of its memory" : "by suspending it");
	walk_release(&walk);
	memory_release(&memory);
}

/* Whether an error says no more than that a source is not to be had here. */
static bool is_not_there(enum err_code code)
{
	return code == ERR_NO_STACKS || code == ERR_NOT_TRACED || code == ERR_PLATFORM;
}

void doctor_look_dump(struct doctor *doctor, struct target *target, const char *source,
	enum capture_stacks stacks, bool must_be)
{
	struct capture_options want = {.stacks = stacks};
	struct capture_stats stats = {0};
	struct snapshot snapshot;
	struct err err = {0};

	snapshot_init(&snapshot);
	if (capture_target(target, &want, &snapshot, &stats, &err)) {
		doctor_say(doctor, source, "dump",
			!must_be && is_not_there(err.code) ? DOCTOR_NOT_THERE : DOCTOR_OFF, &err);
	} else {
		doctor_compare_snapshot(doctor, source, &snapshot);
		for (size_t i = 0; i < snapshot.warning_count; i++)
			doctor_note(doctor, source, "warning: %.600s", snapshot.warnings[i]);
	}
	snapshot_release(&snapshot);
}
