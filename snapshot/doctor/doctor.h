/*
 * hsnap doctor: does hsnap read this system's heaps rightly? A child of ours makes known blocks and
 * tells the truth about them; every source of blocks and stacks is compared with it.
 *
 * struct doctor_truth lies in memory that child and parent share and is only numbers. The child is
 * hsnap.exe itself, so both sides have one layout; the parent checks all of it all the same.
 */
#ifndef SNAPSHOT_DOCTOR_DOCTOR_H
#define SNAPSHOT_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/dump/model.h"
#include "snapshot/capture/capture.h"
#include "snapshot/heap/heap.h"

/* The heaps of the child. All but the process heap are its own: nobody else puts blocks there. */
enum doctor_heap {
	DOCTOR_PROCESS_HEAP,
	DOCTOR_GROWABLE,
	DOCTOR_FIXED, /* with a maximum size */
	DOCTOR_UNLOCKED, /* HEAP_NO_SERIALIZE, which rules out the low fragmentation heap */
	DOCTOR_SEGMENT, /* where the system makes one */
	DOCTOR_HEAPS,
};

/* What a block is there to try. Bounds are those of the allocators: sizes up to 16 KiB may be in the
 * low fragmentation heap, and big ones lie about where a heap takes memory of its own for each. */
enum doctor_group {
	DOCTOR_SMALL, /* every step of 8 bytes from 0 to 1024 */
	DOCTOR_MIDDLE, /* to 16 KiB */
	DOCTOR_BACK_END, /* to 256 KiB */
	DOCTOR_BIG,
	DOCTOR_RESIZED, /* reallocated */
	DOCTOR_GROUPS,
};

#define DOCTOR_SITES 4 /* functions of the child that allocate */
#define DOCTOR_RESIZE_SITE DOCTOR_SITES /* the one that reallocates */
#define DOCTOR_BLOCKS_MAX 32768
#define DOCTOR_MAGIC 0x31434f44u /* "DOC1" */

struct doctor_block {
	uint64_t addr, requested_bytes;
	uint64_t was_bytes; /* before it was reallocated; 0: it was not */
	uint8_t heap, group;
	uint8_t site; /* where it was allocated; the stack of a reallocated one may show either */
	bool is_freed;
};

/* Code of one function: a return address into it is above from and not above to. */
struct doctor_range {
	uint64_t from, to;
};

struct doctor_truth {
	uint32_t magic;
	uint32_t
		failed_bytes; /* the child got no block of so many bytes and gave up; 0: all is well */
	uint64_t heaps[DOCTOR_HEAPS]; /* 0: there is none */
	/* HeapCompatibilityInformation: 0 plain, 1 look-aside, 2 low fragmentation */
	uint32_t front_ends[DOCTOR_HEAPS];
	struct doctor_range image; /* the child's program */
	struct doctor_range sites[DOCTOR_SITES + 1];
	struct doctor_range outer; /* the function that calls all of them */
	uint32_t block_count;
	struct doctor_block blocks[DOCTOR_BLOCKS_MAX]; /* by address, each once */
};

const char *doctor_heap_name(enum doctor_heap heap);
const char *doctor_group_name(enum doctor_group group);

/* Adds a block; false when there is no room. */
bool doctor_truth_add(struct doctor_truth *truth, const struct doctor_block *block);

/* Orders the blocks, and forgets freed ones whose place another block has taken. */
void doctor_truth_settle(struct doctor_truth *truth);

/* True when everything in it has its bounds, as the parent asks of what it was handed. */
bool doctor_truth_is_sound(const struct doctor_truth *truth);

/* The index of the first block at or above addr, or block_count. */
size_t doctor_truth_from(const struct doctor_truth *truth, uint64_t addr);

/* The block at addr, freed or not, or NULL. */
const struct doctor_block *doctor_truth_find(const struct doctor_truth *truth, uint64_t addr);

/*
 * What the child allocates: pure arithmetic, the same on every system.
 *
 * The order of things: everything that is not late is allocated in the plan's order, then blocks are
 * reallocated, then some are freed, then the late ones are allocated, into the holes if the heap
 * likes.
 */

#define DOCTOR_FIXED_BYTES ((size_t)16 << 20) /* the maximum of the fixed heap */

struct doctor_step {
	uint64_t bytes, then_bytes; /* then: reallocated to so many, in the resized group */
	uint8_t heap, group, site;
	bool is_late, is_freed;
};

struct doctor_plan {
	struct doctor_step *steps; /* owned */
	size_t count, cap;
};

/* Returns 0 or -ERR_NOMEM, then with nothing to release. */
int doctor_plan_make(struct doctor_plan *plan);
void doctor_plan_release(struct doctor_plan *plan);

/*
 * What one source found in the child, in one form.
 */

struct doctor_found_block {
	uint64_t addr, requested_bytes, overhead_bytes;
	uint64_t heap; /* address */
	const uint64_t *frames; /* innermost first; NULL: not known */
	uint32_t frame_count;
};

/* Owns blocks; heaps and frames are those of the walk or snapshot it was made of. */
struct doctor_found {
	const char *source; /* its name, a literal */
	bool has_stacks;
	struct doctor_found_block *blocks; /* by address */
	size_t block_count;
	const struct heap *heaps;
	size_t heap_count;
};

/* Each returns 0 or -ERR_NOMEM, then with nothing to release. Of a snapshot only the blocks with a
 * stack are listed; the others are numbers of their heaps (heap.stackless). */
int doctor_found_by_walk(struct doctor_found *found, const struct walk *walk);
int doctor_found_by_snapshot(struct doctor_found *found, const struct snapshot *snapshot);
void doctor_found_release(struct doctor_found *found);

/* Orders the blocks, as the above do. */
void doctor_found_sort(struct doctor_found *found);

/* The first block at addr, or NULL; others at the same address follow it. */
const struct doctor_found_block *doctor_found_at(const struct doctor_found *found, uint64_t addr);

/* The heap at addr, or NULL. */
const struct heap *doctor_found_heap(const struct doctor_found *found, uint64_t addr);

/*
 * The doctor's findings: rows of "expected, found", and printing them.
 */

enum doctor_verdict {
	DOCTOR_OK,
	DOCTOR_NOTE, /* not as expected, and no mistake for sure */
	DOCTOR_OFF,
	DOCTOR_NOT_THERE, /* not to be had in this place: nothing is wrong, nothing is proven */
};

struct doctor_row {
	const char *source, *heap, *what; /* literals; heap may be empty */
	const char
		*part; /* a literal: the word for it in the short table, where such rows are one */
	uint64_t expected, found;
	enum doctor_verdict verdict;
	bool has_no_numbers;
	char detail[700]; /* the first thing that is wrong, or why it is not there; may be empty */
};

struct doctor_report {
	struct doctor_row *rows;
	size_t count, cap;
};

void doctor_report_init(struct doctor_report *report);
void doctor_report_release(struct doctor_report *report);

/* How many rows have this verdict, and how many are off. */
size_t doctor_report_count(const struct doctor_report *report, enum doctor_verdict verdict);
size_t doctor_report_off(const struct doctor_report *report);

/* Adds a copy of row. 0 or -ERR_NOMEM. */
int doctor_report_add(struct doctor_report *report, const struct doctor_row *row);

/* Adds a row that has no numbers. 0 or -ERR_NOMEM. */
int doctor_report_say(struct doctor_report *report, const char *source, const char *what,
	enum doctor_verdict verdict, const char *detail);

/* True when there is a row of this source with this verdict. */
bool doctor_report_has(
	const struct doctor_report *report, const char *source, enum doctor_verdict verdict);

/* Prints every row. */
void doctor_report_print_rows(const struct doctor_report *report, FILE *to);

/* Prints one line for each source and heap, with its rows' numbers in it; rows that have neither are left
 * to doctor_report_print_details(). */
void doctor_report_print_short(const struct doctor_report *report, FILE *to);

/* Prints a line for each row of this verdict, with the reason. */
void doctor_report_print_details(
	const struct doctor_report *report, enum doctor_verdict verdict, FILE *to);

/*
 * One row in the making: how many were expected, how many found, and the first thing that is wrong.
 */

struct doctor_tally {
	uint64_t expected, found;
	bool is_note; /* that the two differ is told, and not called a mistake */
	char first[400]; /* wrong thing; empty: none */
};

/* What a row is about: its line of the full table, and the word for it in the short one. */
struct doctor_subject {
	const char *source;
	enum doctor_heap heap;
	const char *what, *part;
};

/* Keeps the text when it is the first one. */
void doctor_tally_wrong(struct doctor_tally *tally, const char *format, ...) PRINTF_LIKE(2, 3);

/* Adds to the text when there is one. */
void doctor_tally_more(struct doctor_tally *tally, const char *format, ...) PRINTF_LIKE(2, 3);

/* Adds the row; it is ok when nothing is wrong and the numbers are equal. 0 or -ERR_NOMEM. */
int doctor_tally_add(struct doctor_report *report, const struct doctor_subject *subject,
	const struct doctor_tally *tally);

/*
 * Lies about one block, so that tests can see the doctor notice: the child tells one when the
 * environment variable names it.
 */

#define DOCTOR_LIE_VARIABLE "HSNAP_DOCTOR_LIE"

/*
 * Changes what a settled truth says about one live block of the growable heap. how is "size",
 * "place" (8 bytes further), "heap", "site", "silent" (the block is left out), "freed" (it is said to
 * be freed). False when there is no such lie or no such block.
 */
bool doctor_lie(struct doctor_truth *truth, const char *how);

/*
 * Comparing what a source found with the truth.
 *
 * The child's own heaps must hold the truth's blocks and nothing else. The process heap may hold
 * more, since the system's DLLs use it too.
 *
 * Two things may differ in a heap of Windows without a mistake of ours, and no published fact says
 * that they do not: ntdll may keep blocks of its own in a heap that a program made, and it may put a
 * freed block aside for a while before it marks it free. Both are few, whereas a walker that takes
 * free blocks for live ones does so for a whole kind of them. So what is few is a note, with its
 * numbers, and more is off. Wine's heaps, whose source is open, do neither.
 */

/* Few: no more than so many, and than this part of the blocks that the child freed or has. */
#define DOCTOR_FEW_MAX 32
#define DOCTOR_FREED_PART 8
#define DOCTOR_OTHERS_PART 64

/* More heap than this on top of a block is no overhead but a mistake: it has room for what page-sized
 * and larger units leave over, and for what a block had before it was made smaller in its place. */
uint64_t doctor_overhead_max(const struct doctor_block *block);

/*
 * Adds the rows for every heap of the truth: its blocks by group, its freed blocks, what else is in
 * it, blocks that lie in one another, and the stacks where found has such. before is what was in the
 * heaps when the child had just made them, or NULL. 0 or -ERR_NOMEM.
 */
int doctor_judge(struct doctor_report *report, const struct doctor_truth *truth,
	const struct doctor_found *found, const struct doctor_found *before);

/* The same by numbers alone: blocks and bytes of the child's own heaps, those that are listed and those
 * that heaps only count because they have no stack. What a walk of this child listed beyond the truth
 * (that is doctor_judge()'s to judge) is expected here too; walked may be NULL. 0 or -ERR_NOMEM. */
int doctor_judge_sums(struct doctor_report *report, const struct doctor_truth *truth,
	const struct doctor_found *found, const struct doctor_found *walked);

/* True when the innermost frame inside the child's program is the site that the block was allocated
 * at, and further out there is the function that calls all sites. */
bool doctor_stack_fits(const struct doctor_truth *truth, const struct doctor_block *block,
	const uint64_t *frames, uint32_t frame_count);

/*
 * Looking at the doctor's child in one way after the other, and noting what was found. The child may
 * be alive or a file.
 */

struct doctor {
	struct doctor_report report;
	struct doctor_truth *truth; /* of the child that is looked at */
	/* What a walk of that child found in its heaps before it used them, and after; without heaps
	 * and frames. */
	struct doctor_found before, walked;
	struct buf notes; /* lines, each once: what was used */
	char os[80]; /* empty: no child was ever there */
	bool is_wine;
	bool has_ust; /* every child is started with +ust: the registry says so */
};

/* A way of taking a snapshot, and how it is judged. */
struct doctor_dump {
	const char *source;
	enum capture_stacks stacks;
	bool must_be; /* that it is not to be had is a mistake */
	bool is_sums; /* judged by numbers alone */
};

/* All of these return 0 or -ERR_NOMEM; what goes wrong with the child is a finding. */

/* Room for a truth, and no findings; doctor_release() in both cases. */
int doctor_init(struct doctor *doctor);
void doctor_release(struct doctor *doctor);

/* Forgets what the last child had in its heaps. */
void doctor_forget(struct doctor *doctor);

/* Notes a line of what was used, once. */
int doctor_note(struct doctor *doctor, const char *line);

/* Adds a row that has the error's reason; its remedy too when it is off. */
int doctor_say(struct doctor *doctor, const char *source, const char *what,
	enum doctor_verdict verdict, const struct err *why);

/* Keeps what is in the heaps before the child uses them. */
int doctor_look_before(struct doctor *doctor, struct target *target);

/* Compares every block that the walkers list, with a stack or without. */
int doctor_look_walk(struct doctor *doctor, struct target *target, const char *source);

/* Compares what a dump would have, of the stacks that are wanted. */
int doctor_look_dump(struct doctor *doctor, struct target *target, const struct doctor_dump *dump);

#endif
