/*
 * Interfaces of hsnap doctor, which checks that hsnap reads the heaps of this system correctly. A
 * child process allocates known blocks and records the truth about them. The results from each
 * source of blocks and stacks are compared with this truth. */
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

/* Heaps of the child. Only the child allocates in them, except in the process heap. */
enum doctor_heap {
	DOCTOR_PROCESS_HEAP,
	DOCTOR_GROWABLE,
	DOCTOR_FIXED, /* with a maximum size */
	DOCTOR_UNLOCKED, /* HEAP_NO_SERIALIZE, which excludes the low fragmentation heap */
	DOCTOR_SEGMENT, /* exists only if the system supports it */
	DOCTOR_HEAPS,
};

/* Groups of blocks, by purpose. The limits between groups are limits of the allocators. Blocks up
 * to 16 KiB may be in the low fragmentation heap. Big blocks have sizes around the limit above
 * which a block has memory of its own. */
enum doctor_group {
	DOCTOR_SMALL, /* every size from 0 to 1024 */
	DOCTOR_MIDDLE, /* up to 16 KiB */
	DOCTOR_BACK_END, /* up to 256 KiB */
	DOCTOR_BIG,
	DOCTOR_RESIZED,
	DOCTOR_GROUPS,
};

extern const char *const doctor_heap_names[DOCTOR_HEAPS], *const doctor_group_names[DOCTOR_GROUPS];

#define DOCTOR_FIXED_BYTES ((size_t)16 << 20) /* maximum size of the fixed heap */
#define DOCTOR_SITES 4 /* number of the child's functions that allocate */
#define DOCTOR_RESIZE_SITE DOCTOR_SITES /* the function that reallocates */
#define DOCTOR_BLOCKS_MAX 16384
#define DOCTOR_LISTED_MAX 256 /* heaps of the child, including those of the system's DLLs */

struct doctor_block {
	uint64_t addr, requested_bytes;
	uint64_t was_bytes; /* size before the block was reallocated; 0: never reallocated */
	uint8_t heap, group;
	/* Function that allocated the block. The stack of a reallocated block may show this
	 * function or DOCTOR_RESIZE_SITE. */
	uint8_t site;
	bool is_freed;
	bool is_late; /* allocated after other blocks were freed, possibly in their place */
};

/* Code of one function. Its return addresses are greater than `from` and at most `to`. */
struct doctor_range {
	uint64_t from, to;
};

/* Truth about a child, in memory that the child and its parent share. */
struct doctor_truth {
	/* 0 if all allocations succeeded. Otherwise the child gave up after an allocation failed,
	 * and this is the size of that allocation. */
	uint32_t failed_bytes;
	uint64_t heaps[DOCTOR_HEAPS]; /* 0: no such heap */
	/* HeapCompatibilityInformation: 0: none, 1: look-aside lists, 2: low fragmentation heap */
	uint32_t front_ends[DOCTOR_HEAPS];
	/* Heaps that GetProcessHeaps() returned after the child's work; listed_count 0: unknown. */
	uint64_t listed[DOCTOR_LISTED_MAX];
	uint32_t listed_count;
	struct doctor_range image; /* code of the child's program */
	struct doctor_range sites[DOCTOR_SITES + 1];
	struct doctor_range outer; /* function that calls all sites */
	uint32_t block_count;
	struct doctor_block blocks[DOCTOR_BLOCKS_MAX];
};

/*
 * Fills an empty truth with the blocks that the child is to allocate. Their addresses are not set
 * yet. The plan is pure arithmetic and identical on every system. The child first allocates all
 * blocks that are not late, in this order. It then reallocates some blocks, frees some, and
 * allocates the late blocks.
 */
void doctor_plan(struct doctor_truth *truth);

/* Adds a block. Returns false if there is no room. */
bool doctor_truth_add(struct doctor_truth *truth, const struct doctor_block *block);

/* Sorts the blocks by address. Removes blocks without an address. Also removes a freed block if
 * another block has since been allocated at its address. */
void doctor_truth_sort(struct doctor_truth *truth);

/* Returns true if a truth, after doctor_truth_sort(), is within its bounds. */
bool doctor_truth_is_sound(const struct doctor_truth *truth);

/* The doctor's output: rows of "expected, found". */

enum doctor_verdict {
	DOCTOR_OK,
	DOCTOR_NOTE, /* unexpected, but not necessarily a mistake */
	DOCTOR_OFF,
	DOCTOR_NOT_THERE, /* not available on this system, so nothing was tested */
};

/* A row of the long table. The short table has one line per source and heap, which combines the
 * rows of that source and heap. The numbers of rows with the same `part` are added up. */
struct doctor_row {
	const char *source, *heap, *what, *part; /* literals; `heap` may be "" */
	uint64_t expected, found;
	enum doctor_verdict verdict;
	bool has_no_numbers;
	char detail[700]; /* first mistake, or reason for DOCTOR_NOT_THERE; may be empty */
};

struct doctor {
	struct doctor_truth *truth; /* owned; truth about the child under test */
	struct doctor_row *rows; /* owned */
	size_t row_count, row_cap;
	struct buf notes; /* facts about the system, one per line, without duplicates */
	struct doctor_keep *keep; /* owned by the caller; NULL: --keep was not specified */
	char os[80]; /* empty if no child was started */
	bool is_wine;
};

/* Initialises doctor with an empty truth and no findings. The caller must always call
 * doctor_release(). */
void doctor_init(struct doctor *doctor);
void doctor_release(struct doctor *doctor);

/* Adds a copy of the row. If the two numbers of the row differ, or if the row has a detail, the
 * verdict becomes DOCTOR_OFF, unless it is DOCTOR_NOTE. */
void doctor_add(struct doctor *doctor, const struct doctor_row *row);

/* Adds a row without numbers. */
void doctor_add_reason(struct doctor *doctor, const char *source, const char *what,
	enum doctor_verdict verdict, const char *why);

/* Adds a row without numbers. Its detail is the error's reason and, if the verdict is DOCTOR_OFF,
 * the error's remedy. */
void doctor_add_error(struct doctor *doctor, const char *source, const char *what,
	enum doctor_verdict verdict, const struct err *why);

/* Adds a line to the notes, unless they already contain it. */
void doctor_note(struct doctor *doctor, const char *name, const char *format, ...)
	PRINTF_LIKE(3, 4);

/* Returns the number of rows with this verdict and source; source NULL: any source. */
size_t doctor_count(const struct doctor *doctor, const char *source, enum doctor_verdict verdict);

/* Prints one line per source and heap, or (is_verbose) every row. Then prints the notes, the
 * reasons and the verdict. */
void doctor_print(const struct doctor *doctor, bool is_verbose, FILE *to);

/*
 * Comparison with the truth. The child's own heaps must contain exactly the blocks in the truth.
 * The process heap may contain more blocks, because the system's DLLs also use it.
 *
 * In heaps of Windows, two kinds of differences are not necessarily a mistake of hsnap. ntdll may
 * have blocks of its own in a heap that a program created. It may also keep a freed block for a
 * while before marking it as free. No published fact excludes either, and both are rare. In
 * contrast, a walker that mistakes free blocks for live ones does so for a whole kind of block. So
 * a few such blocks produce a note with their number; more produce DOCTOR_OFF. Wine's source shows
 * that neither happens in its heaps.
 */

/* Compares the blocks of a snapshot. If `has_stacks` is set, compares only blocks that have a
 * stack, and just counts the remaining blocks of their heap. Sorts the blocks by address. */
void doctor_compare(
	struct doctor *doctor, const char *source, struct snapshot *snapshot, bool has_stacks);

/*
 * Compares the heaps of a walk with the heaps that GetProcessHeaps() returned in the child. A
 * missing heap is a mistake, because dumps lack all of its blocks. An additional heap is only a
 * note, because Windows may not count it as one of the process's heaps. The heaps of the 64-bit
 * half of a 32-bit process are ignored, because GetProcessHeaps() does not return them.
 */
void doctor_compare_heaps(struct doctor *doctor, const char *source, const struct heap *heaps,
	size_t count, unsigned bits);

/* Walks the heaps of a live child or of its file, and compares them with the truth. */
void doctor_look_walk(struct doctor *doctor, struct target *target, const char *source);

/* Captures a snapshot with stacks from this source and compares it with the truth. Missing stacks
 * are a mistake only if `must_be` is set. */
void doctor_look_dump(struct doctor *doctor, struct target *target, const char *source,
	enum capture_stacks stacks, bool must_be);

/*
 * The folder of --keep. For each child, it contains the truth, and a minidump without strings that
 * identify the user. It also contains facts about the machine. These files suffice to test, on any
 * system, how hsnap reads this version of Windows.
 */

#define DOCTOR_SECRETS 12
#define DOCTOR_SECRET_UNITS 512 /* longer strings are truncated */

/* A string that identifies the user, in lower case. */
struct doctor_secret {
	uint16_t units[DOCTOR_SECRET_UNITS];
	size_t count, width; /* bytes per unit: 2 in UTF-16, 1 in UTF-8 */
	bool is_path; /* true: path without a drive; false: name */
};

struct doctor_secrets {
	char system[300]; /* the system's folder in UTF-8; its components are not secret */
	struct doctor_secret list[DOCTOR_SECRETS];
	size_t count;
};

/* Adds a UTF-8 string, unless it is too short to be recognized or is part of the system's
 * folder. */
void doctor_secrets_add(struct doctor_secrets *secrets, const char *text, bool is_path);

/*
 * Overwrites the secrets in the bytes with the letter x, regardless of case. Searches for names in
 * UTF-16, and for paths in UTF-16 and UTF-8. A name is overwritten only as a whole word; a path
 * only if its last component is complete. Returns the number of places.
 */
size_t doctor_blank(const struct doctor_secrets *secrets, unsigned char *bytes, size_t len);

/*
 * Appends the truth about a child as text, in the format of tests/images/make_image where possible.
 * Addresses are hexadecimal, sizes decimal.
 *
 *     process pid=N bits=N build=N flags=HEX
 *     image FROM TO            code of its program; a return address is above FROM and not above TO
 *     outer FROM TO            code of the function that calls all sites
 *     site NUMBER FROM TO      code of a function that allocates
 *     heap ADDR KIND           from GetProcessHeaps(): wine, nt, segment or unknown
 *     block HEAP ADDR REQUESTED - - SITE[|SITE]
 *     freed HEAP ADDR
 *     total BLOCKS REQUESTED - */
void doctor_truth_text(
	struct buf *text, const struct doctor_truth *truth, struct target *target, uint32_t flags);

struct doctor_keep {
	const char *folder; /* UTF-8 */
	struct doctor_secrets secrets;
	struct buf machine; /* contents of machine.txt */
	bool has_32, has_64; /* machine.txt contains facts about children of this bitness */
	struct err err; /* first failure; code 0: no failure yet */
};

/* Windows only: creates the folder. Returns 0, -ERR_EXISTS or -ERR_CREATE. */
int doctor_keep_begin(struct doctor_keep *keep, struct err *err);

/* Windows only: stores the minidump and truth of a child in files named after `state`. `file` is a
 * HANDLE of the minidump, open for reading and writing; its contents are overwritten. `process` is
 * a HANDLE of the child. Does nothing after a failure. */
void doctor_keep_child(
	struct doctor *doctor, const char *state, struct target *target, void *process, void *file);

/* Records in one line why no child is stored for this state. */
void doctor_keep_reason(
	struct doctor_keep *keep, const char *state, unsigned bits, const char *why);

/* Windows only: writes machine.txt. Returns 0 or the first failure. */
int doctor_keep_end(struct doctor_keep *keep, struct err *err);

/* Windows only. Append lines about the system, and about a child: its mitigation policies, and the
 * first bytes of the ntdll functions that the tracer hooks. */
void doctor_machine_system(struct buf *text);
void doctor_machine_child(struct buf *text, struct target *target, void *process);

/*
 * The child: hsnap.exe with a hidden command. It inherits four handles: the memory for its truth,
 * two events for taking turns, and its parent's process. The child exits when its parent exits. The
 * child signals that it is ready, waits, does its work, signals again, and waits until it is
 * ended. */
#define DOCTOR_CHILD "--child" /* hsnap doctor --child HANDLE ... */

enum {
	DOCTOR_MEMORY, /* struct doctor_truth */
	DOCTOR_SAID, /* event, set by the child */
	DOCTOR_GO, /* event, set by the parent */
	DOCTOR_PARENT,
	DOCTOR_HANDLES,
};

/* Windows only: main() of the child, with the parent's arguments. Returns its exit status. */
int doctor_child_main(int argc, char **argv);

#endif
