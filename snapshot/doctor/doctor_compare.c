/* Comparison of the heaps and blocks that were found with the truth of the doctor's child. Each
 * heap has rows for the groups of blocks, and for freed, additional and overlapping blocks. Unknown
 * heaps are described, so that a row of a layout table can be added for them. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/doctor/doctor.h"
#include "snapshot/target/peb_layout.h"

#define WALKS_MAX 3 /* maximum number of walks while the heaps contain invalid data */

/* A number of blocks counts as "a few" if it is at most FEW_MAX, and at most a fraction of the
 * child's blocks: 1 / FREED_PART of the blocks that the child freed, or 1 / OTHERS_PART of all its
 * blocks. */
#define FEW_MAX 32
#define FREED_PART 8
#define OTHERS_PART 64

/* Rows of a heap that follow those for the groups of blocks (enum doctor_group). */
enum {
	ROW_FREED = DOCTOR_GROUPS,
	ROW_OTHERS,
	ROW_OVERLAPPING,
	ROW_STACKS,
	ROWS,
};

struct heap_rows {
	struct doctor_row rows[ROWS];
	uint64_t listed;
	uint64_t unlisted; /* number of the child's blocks that are not listed */
};

struct doctor_comparison {
	const struct doctor_truth *truth;
	/* The snapshot to compare; its blocks are sorted by address. */
	const struct snapshot *snapshot;
	bool has_stacks; /* every listed block has a stack */
	struct heap_rows heaps[DOCTOR_HEAPS];
};

static int compare_found(const void *a, const void *b)
{
	const struct block *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int compare_truth(const void *a, const void *b)
{
	const struct doctor_block *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static const struct block *found_at(const struct doctor_comparison *comparison, uint64_t addr)
{
	const struct snapshot *snapshot = comparison->snapshot;

	return snapshot->block_count ?
		       bsearch(&(struct block){.addr = addr}, snapshot->blocks,
			       snapshot->block_count, sizeof(*snapshot->blocks), compare_found) :
		       NULL;
}

static uint64_t heap_of(const struct doctor_comparison *comparison, const struct block *block)
{
	return comparison->snapshot->heaps[block->heap].addr;
}

static const struct heap *heap_at(const struct snapshot *snapshot, uint64_t addr)
{
	for (size_t i = 0; i < snapshot->heap_count; i++) {
		if (snapshot->heaps[i].addr == addr)
			return &snapshot->heaps[i];
	}
	return NULL;
}

/* Returns the number of the child's heap at addr, or DOCTOR_HEAPS. */
static int child_heap(const struct doctor_truth *truth, uint64_t addr)
{
	int i = 0;

	while (i < DOCTOR_HEAPS && (!addr || truth->heaps[i] != addr))
		i++;
	return i;
}

static void PRINTF_LIKE(2, 3) wrong(struct doctor_row *row, const char *format, ...)
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

/* Returns true if the stack is plausible. Its innermost frame inside the child's program must be in
 * the function that allocated the block. A frame further out must be in the function that calls all
 * sites. */
static bool stack_fits(const struct doctor_truth *truth, const struct doctor_block *block,
	const struct stack *stack)
{
	uint32_t i = 0, count = stack->frames ? stack->frame_count : 0;

	while (i < count && !is_in(&truth->image, stack_frame(stack, i)))
		i++;
	if (i == count || !(is_in(&truth->sites[block->site], stack_frame(stack, i)) ||
				  (block->was_bytes && is_in(&truth->sites[DOCTOR_RESIZE_SITE],
							       stack_frame(stack, i)))))
		return false;
	for (i++; i < count; i++) {
		if (is_in(&truth->outer, stack_frame(stack, i)))
			return true;
	}
	return false;
}

/* Returns the largest plausible overhead of a block. Allows for rounding up to pages and larger
 * units, and for the former size of a block that was shrunk in place. */
static uint64_t overhead_max(const struct doctor_block *block)
{
	uint64_t bytes = block->requested_bytes > block->was_bytes ? block->requested_bytes :
								     block->was_bytes;

	return 512 + bytes / 4 + (bytes > 16384 ? 131072 : 0) + block->was_bytes;
}

static void compare_live(struct doctor_comparison *comparison, const struct doctor_block *block)
{
	const struct doctor_truth *truth = comparison->truth;
	struct heap_rows *heap = &comparison->heaps[block->heap];
	struct doctor_row *group = &heap->rows[block->group], *stacks = &heap->rows[ROW_STACKS];
	const struct block *at = found_at(comparison, block->addr);

	group->expected++;
	stacks->expected++;
	if (!at) {
		heap->unlisted++;
		wrong(group, "the block of %" PRIu64 " bytes at %" PRIX64 " is not listed%s",
			block->requested_bytes, block->addr,
			comparison->has_stacks ? ", or not with a stack" : "");
		return;
	}
	if (heap_of(comparison, at) != truth->heaps[block->heap])
		wrong(group, "the block at %" PRIX64 " is listed in heap %" PRIX64, block->addr,
			heap_of(comparison, at));
	else if (at->requested_bytes != block->requested_bytes)
		wrong(group,
			"the block at %" PRIX64 " has %" PRIu64
			" bytes but is listed with %" PRIu64,
			block->addr, block->requested_bytes, (uint64_t)at->requested_bytes);
	else if (at->overhead_bytes > overhead_max(block))
		wrong(group,
			"the block at %" PRIX64 " of %" PRIu64
			" bytes is listed with an overhead of %" PRIu64,
			block->addr, block->requested_bytes, (uint64_t)at->overhead_bytes);
	else
		group->found++;
	if (!comparison->has_stacks)
		return;
	if (stack_fits(truth, block, &comparison->snapshot->stacks.stacks[at->stack]))
		stacks->found++;
	else
		wrong(stacks,
			"the stack of the block at %" PRIX64
			" does not lead to the code that allocated it",
			block->addr);
}

/* Checks that a freed block is not listed in its heap. The address may now belong to another heap,
 * if the memory had been returned to the system. */
static void compare_freed(struct doctor_comparison *comparison, const struct doctor_block *block)
{
	const struct block *at = found_at(comparison, block->addr);
	struct doctor_row *freed = &comparison->heaps[block->heap].rows[ROW_FREED];

	freed->expected++;
	if (at && heap_of(comparison, at) == comparison->truth->heaps[block->heap])
		wrong(freed, "the block at %" PRIX64 " was freed but is still listed", block->addr);
	else
		freed->found++;
}

/* Counts listed blocks that the child did not allocate, and blocks that overlap. */
static void compare_listed(struct doctor_comparison *comparison)
{
	const struct doctor_truth *truth = comparison->truth;
	uint64_t end = 0, last = 0;

	for (size_t i = 0; i < comparison->snapshot->block_count; i++) {
		const struct block *at = &comparison->snapshot->blocks[i];
		uint64_t at_addr = at->addr, bytes = at->requested_bytes;
		uint64_t at_end = at_addr + (bytes ? bytes : 1);
		int number = child_heap(truth, heap_of(comparison, at));
		struct heap_rows *heap = &comparison->heaps[number];

		if (number == DOCTOR_HEAPS)
			continue;
		heap->listed++;
		if (!bsearch(&(struct doctor_block){.addr = at_addr}, truth->blocks,
			    truth->block_count, sizeof(*truth->blocks), compare_truth)) {
			heap->rows[ROW_OTHERS].found++;
			wrong(&heap->rows[ROW_OTHERS],
				"a block of %" PRIu64 " bytes at %" PRIX64 " is listed", bytes,
				at_addr);
		}
		if (at_addr < end) {
			heap->rows[ROW_OVERLAPPING].found++;
			wrong(&heap->rows[ROW_OVERLAPPING],
				"the blocks at %" PRIX64 " and %" PRIX64 " share memory", last,
				at_addr);
		}
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

/* Completes the rows of a heap after all blocks were compared. */
static void finish(struct heap_rows *rows, bool has_stacks, const struct heap *heap)
{
	struct doctor_row *freed = &rows->rows[ROW_FREED], *others = &rows->rows[ROW_OTHERS];
	uint64_t stackless = heap ? heap->stackless.block_count : 0;

	/* Blocks without a stack are only counted. They may be the child's missing blocks, so only
	 * a surplus is an error. */
	if (has_stacks && stackless > rows->unlisted) {
		others->found += stackless - rows->unlisted;
		wrong(others, "%" PRIu64 " more block%s counted without a stack",
			stackless - rows->unlisted,
			stackless - rows->unlisted == 1 ? " is" : "s are");
	}
	/* These differences are not necessarily hsnap's mistake; see doctor.h. */
	if (!heap || !heap->kind || !strcmp(heap->kind, "wine"))
		return;
	if (are_few(freed->expected - freed->found, freed->expected, FREED_PART))
		make_note(freed, "Windows may keep freed blocks in a cache");
	if (are_few(others->found, rows->rows[ROW_STACKS].expected, OTHERS_PART))
		make_note(others, "they may be the heap's own");
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

static void add_rows(struct doctor *doctor, const char *source, int heap, bool has_stacks,
	struct doctor_row *rows)
{
	static const char *const names[ROWS][2] = {
		[ROW_FREED] = {"freed", "freed blocks gone"},
		[ROW_OTHERS] = {"other", "other blocks"},
		[ROW_OVERLAPPING] = {"overlap", "blocks that overlap"},
		[ROW_STACKS] = {"stacks", "stacks"},
	};

	for (int i = 0; i < ROWS; i++) {
		bool is_group = i < DOCTOR_GROUPS;

		if (is_group		? !rows[i].expected :
			i == ROW_STACKS ? !has_stacks :
					  i != ROW_OVERLAPPING && heap == DOCTOR_PROCESS_HEAP)
			continue;
		add_row(doctor, source, heap, is_group ? "blocks" : names[i][0],
			is_group ? doctor_group_names[i] : names[i][1], &rows[i]);
	}
}

/* Adds a row for an unwalked heap. Two layouts of segment heaps are unknown: that of the first
 * systems with segment heaps, and that of the latest 32-bit systems. Dumps report such heaps as not
 * walked. */
static void add_unwalked(
	struct doctor *doctor, const char *source, int heap, const struct heap *found)
{
	bool is_segment =
		heap == DOCTOR_SEGMENT || (found->kind && !strcmp(found->kind, "segment"));
	struct doctor_row row = {.verdict = is_segment ? DOCTOR_NOT_THERE : DOCTOR_OFF,
		.has_no_numbers = true,
		.detail = "its layout is unknown; dumps report it as a heap that was not walked"};

	add_row(doctor, source, heap, "walking it", "walking it", &row);
}

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

void doctor_compare(
	struct doctor *doctor, const char *source, struct snapshot *snapshot, bool has_stacks)
{
	const struct doctor_truth *truth = doctor->truth;
	struct doctor_comparison comparison = {
		truth, snapshot, has_stacks, .heaps = {{.listed = 0}}};

	if (snapshot->block_count)
		qsort(snapshot->blocks, snapshot->block_count, sizeof(*snapshot->blocks),
			compare_found);
	for (uint32_t i = 0; i < truth->block_count; i++)
		(truth->blocks[i].is_freed ? compare_freed : compare_live)(
			&comparison, &truth->blocks[i]);
	compare_listed(&comparison);
	for (int i = 0; i < DOCTOR_HEAPS; i++) {
		const struct heap *heap = heap_at(snapshot, truth->heaps[i]);
		struct heap_rows *rows = &comparison.heaps[i];

		if (!truth->heaps[i])
			continue;
		if (heap)
			note_layout(doctor, i, heap);
		finish(rows, has_stacks, heap);
		/* The tracer's blocks are listed even if their heap was not walked. */
		if (heap && heap->unwalked && !rows->listed)
			add_unwalked(doctor, source, i, heap);
		else
			add_rows(doctor, source, i, has_stacks, rows->rows);
	}
}

static void add_broken(struct doctor *doctor, const char *source, const struct walk *walk)
{
	struct doctor_row row = {.source = source,
		.heap = "",
		.what = "invalid places",
		.part = "invalid places",
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

static bool is_listed(const struct doctor_truth *truth, uint64_t addr)
{
	uint32_t i = 0;

	while (i < truth->listed_count && truth->listed[i] != addr)
		i++;
	return i < truth->listed_count;
}

static bool is_walked(const struct heap *heaps, size_t count, uint64_t addr, unsigned bits)
{
	size_t i = 0;

	while (i < count && (heaps[i].addr != addr || heaps[i].bits != bits))
		i++;
	return i < count;
}

void doctor_compare_heaps(struct doctor *doctor, const char *source, const struct heap *heaps,
	size_t count, unsigned bits)
{
	const struct doctor_truth *truth = doctor->truth;
	struct doctor_row listed = {.source = source,
		.heap = "",
		.what = "heaps of GetProcessHeaps()",
		.part = "heaps of GetProcessHeaps()",
		.expected = truth->listed_count};
	struct doctor_row others = {
		.source = source, .heap = "", .what = "other heaps", .part = "other heaps"};
	bool is_wine = false;

	if (!truth->listed_count)
		return;
	for (uint32_t i = 0; i < truth->listed_count; i++) {
		if (is_walked(heaps, count, truth->listed[i], bits))
			listed.found++;
		else
			wrong(&listed, "the heap at %" PRIX64 " was not found", truth->listed[i]);
	}
	for (size_t i = 0; i < count; i++) {
		is_wine = is_wine || (heaps[i].kind && !strcmp(heaps[i].kind, "wine"));
		if (heaps[i].bits != bits || is_listed(truth, heaps[i].addr))
			continue;
		others.found++;
		wrong(&others, "GetProcessHeaps() does not return the heap at %" PRIX64,
			heaps[i].addr);
	}
	if (others.found && !is_wine)
		make_note(&others, "Windows may not count it among the process's heaps");
	doctor_add(doctor, &listed);
	doctor_add(doctor, &others);
}

static void compare_walk(
	struct doctor *doctor, const char *source, const struct walk *walk, unsigned bits)
{
	struct snapshot snapshot;

	snapshot_init(&snapshot);
	for (size_t i = 0; i < walk->heap_count; i++)
		*snapshot_add_heap(&snapshot) = walk->heaps[i];
	for (size_t i = 0; i < walk->block_count; i++) {
		struct block *block = snapshot_add_block(&snapshot);

		*block = walk->blocks[i];
		block->stack = STACK_NONE;
	}
	doctor_compare(doctor, source, &snapshot, false);
	snapshot_release(&snapshot);
	doctor_compare_heaps(doctor, source, walk->heaps, walk->heap_count, bits);
	add_broken(doctor, source, walk);
}

static int walk_held(struct memory *memory, struct walk *walk, struct err *err)
{
	struct target *target = memory->target;
	int rc;

	walk_clear(walk);
	memory_clear(memory);
	rc = target->ops->suspend(target, err);
	if (!rc)
		rc = heaps_walk(memory, NULL, walk, err);
	target->ops->resume(target);
	return rc;
}

/* Covers the header of the largest known heap, and some bytes after it. */
#define EVIDENCE_BYTES 0xa00u

static void append_offsets(
	struct buf *buf, const char *what, const unsigned char *bytes, uint32_t value)
{
	for (size_t i = 0; i + 4 <= EVIDENCE_BYTES; i += 4) {
		if (bytes_u32(bytes + i) == value)
			buf_printf(buf, ", %s at +%zx", what, i);
	}
}

/*
 * Adds notes from which a developer can make a new row of a layout table. They list the places in
 * the header of an unwalked heap that contain its signature, the word HEAP, its own address, or an
 * empty list. They also contain the bytes before the child's first block in the heap.
 */
static void note_evidence(struct doctor *doctor, struct target *target, int number)
{
	const struct doctor_truth *truth = doctor->truth;
	const uint64_t addr = truth->heaps[number];
	const unsigned step = target->bits / 8;
	unsigned char bytes[EVIDENCE_BYTES], header[16];
	struct buf buf = {0};

	if (target_read(target, addr, bytes, sizeof(bytes)))
		return;
	append_offsets(&buf, "FFEEFFEE", bytes, 0xffeeffee);
	append_offsets(&buf, "DDEEDDEE", bytes, 0xddeeddee);
	append_offsets(&buf, "HEAP", bytes, 0x50414548);
	for (unsigned i = 0; i + 2 * step <= sizeof(bytes); i += step) {
		uint64_t word = bytes_ptr(bytes + i, target->bits);

		if (word == addr)
			buf_printf(&buf, ", own address at +%x", i);
		else if (word == addr + i && bytes_ptr(bytes + i + step, target->bits) == word)
			buf_printf(&buf, ", empty list at +%x", i);
	}
	for (uint32_t i = 0; i < truth->block_count; i++) {
		const struct doctor_block *block = &truth->blocks[i];

		if ((int)block->heap != number ||
			target_read(target, block->addr - sizeof(header), header, sizeof(header)))
			continue;
		buf_printf(&buf, ", before a block of %" PRIu64 " bytes", block->requested_bytes);
		for (size_t k = 0; k < sizeof(header); k++)
			buf_printf(&buf, " %02x", header[k]);
		break;
	}
	doctor_note(doctor, doctor_heap_names[number], "of an unknown layout: %.600s",
		buf.len ? buf.data + 2 : "nothing known in it");
	buf_release(&buf);
}

static void note_unknown_heaps(
	struct doctor *doctor, struct target *target, const struct walk *walk)
{
	for (int i = 0; i < DOCTOR_HEAPS; i++) {
		bool is_walked = false;

		for (size_t k = 0; k < walk->heap_count; k++)
			is_walked |= walk->heaps[k].addr == doctor->truth->heaps[i] &&
				     !walk->heaps[k].unwalked;
		if (doctor->truth->heaps[i] && !is_walked)
			note_evidence(doctor, target, i);
	}
}

/* Adds a note with the lengths of both lists of heaps. The PEB's list has only one heap on Windows
 * 11 24H2 and later. */
static void note_list(struct doctor *doctor, struct target *target)
{
	uint32_t count = 0;

	if (doctor->truth->listed_count &&
		!target_u32(target, target->peb + peb_layout(target->bits)->heap_count, &count))
		doctor_note(doctor, "lists of heaps",
			"GetProcessHeaps() %" PRIu32 ", PEB.NumberOfHeaps %" PRIu32
			", in the %u-bit child",
			doctor->truth->listed_count, count, target->bits);
}

void doctor_look_walk(struct doctor *doctor, struct target *target, const char *source)
{
	struct memory memory;
	struct err err = {0};
	struct walk walk;
	unsigned walks = 0;
	int rc;

	if (memory_init(&memory, target))
		memory_out();
	walk_init(&walk);
	/* The child waits, but one of the system's threads in the child may have been inside a
	 * heap. */
	do {
		rc = walk_held(&memory, &walk, &err);
	} while (!rc && !walk_is_sound(&walk) && ++walks < WALKS_MAX);
	if (rc)
		doctor_add_error(doctor, source, "walking the heaps", DOCTOR_OFF, &err);
	else
		compare_walk(doctor, source, &walk, target->bits);
	note_unknown_heaps(doctor, target, &walk);
	if (!target->is_file) {
		note_list(doctor, target);
		doctor_note(doctor, "held",
			target->is_cloned ? "by a clone of its memory" : "by suspending it");
	}
	walk_release(&walk);
	memory_release(&memory);
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
		bool is_no_mistake =
			!must_be && (err.code == ERR_NO_STACKS || err.code == ERR_NOT_TRACED ||
					    err.code == ERR_PLATFORM);

		doctor_add_error(doctor, source, "dump",
			is_no_mistake ? DOCTOR_NOT_THERE : DOCTOR_OFF, &err);
	} else {
		doctor_compare(doctor, source, &snapshot, true);
		for (size_t i = 0; i < snapshot.warning_count; i++)
			doctor_note(doctor, source, "warning: %.600s", snapshot.warnings[i]);
	}
	snapshot_release(&snapshot);
}
