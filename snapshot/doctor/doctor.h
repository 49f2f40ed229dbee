/*
 * hsnap doctor checks that hsnap reads the heaps of this system correctly. A child process
 * allocates known blocks and records the truth about them. The results of each source of blocks and
 * stacks are compared with that truth. */
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

/* Heaps of the child. Except in the process heap, only the child allocates in them. */
enum doctor_heap {
	DOCTOR_PROCESS_HEAP,
	DOCTOR_GROWABLE,
	DOCTOR_FIXED, /* with a maximum size */
	DOCTOR_UNLOCKED, /* HEAP_NO_SERIALIZE, which excludes the low fragmentation heap */
	DOCTOR_SEGMENT, /* if the system supports it */
	DOCTOR_HEAPS,
};

/* Purposes of blocks. The bounds are those of the allocators: sizes up to 16 KiB may be in the low
 * fragmentation heap, and big blocks are about as large as blocks with memory of their own. */
enum doctor_group {
	DOCTOR_SMALL, /* every size from 0 to 1024 */
	DOCTOR_MIDDLE, /* up to 16 KiB */
	DOCTOR_BACK_END, /* up to 256 KiB */
	DOCTOR_BIG,
	DOCTOR_RESIZED, /* reallocated */
	DOCTOR_GROUPS,
};

extern const char *const doctor_heap_names[DOCTOR_HEAPS], *const doctor_group_names[DOCTOR_GROUPS];

#define DOCTOR_FIXED_BYTES ((size_t)16 << 20) /* maximum size of the fixed heap */
#define DOCTOR_SITES 4 /* number of functions of the child that allocate */
#define DOCTOR_RESIZE_SITE DOCTOR_SITES /* the function that reallocates */
#define DOCTOR_BLOCKS_MAX 16384
#define DOCTOR_LISTED_MAX 256 /* heaps of the child, including those of the system's DLLs */

struct doctor_block {
	uint64_t addr, requested_bytes;
	uint64_t was_bytes; /* size before it was reallocated; 0: not reallocated */
	uint8_t heap, group;
	/* Function that allocated it; the stack of a reallocated block may show either. */
	uint8_t site;
	bool is_freed;
	bool is_late; /* allocated after others were freed, possibly in their place */
};

/* Code of one function: a return address in it is > from and <= to. */
struct doctor_range {
	uint64_t from, to;
};

/* Truth about a child, in memory that child and parent share. */
struct doctor_truth {
	uint32_t failed_bytes; /* size for which the child got no block and gave up; 0: success */
	uint64_t heaps[DOCTOR_HEAPS]; /* 0: no such heap */
	/* HeapCompatibilityInformation: 0 plain, 1 look-aside, 2 low fragmentation */
	uint32_t front_ends[DOCTOR_HEAPS];
	/* Heaps that GetProcessHeaps() lists at the end; listed_count 0: unknown. */
	uint64_t listed[DOCTOR_LISTED_MAX];
	uint32_t listed_count;
	struct doctor_range image; /* the child's program */
	struct doctor_range sites[DOCTOR_SITES + 1];
	struct doctor_range outer; /* function that calls all sites */
	uint32_t block_count;
	struct doctor_block blocks[DOCTOR_BLOCKS_MAX];
};

/*
 * Fills an empty truth with the blocks that the child is to allocate, without addresses. The plan
 * is pure arithmetic and identical on every system. Blocks that are not late are allocated in this
 * order. Then some are reallocated, then some are freed, then the late blocks are allocated. */
void doctor_plan(struct doctor_truth *truth);

/* Adds a block. Returns false if there is no room. */
bool doctor_truth_add(struct doctor_truth *truth, const struct doctor_block *block);

/* Sorts the blocks by address. Removes blocks without an address, and freed blocks whose address
 * another block has. */
void doctor_truth_settle(struct doctor_truth *truth);

/* Returns true if a settled truth is within its bounds. */
bool doctor_truth_is_sound(const struct doctor_truth *truth);

/* The doctor's output: rows of "expected, found". */

enum doctor_verdict {
	DOCTOR_OK,
	DOCTOR_NOTE, /* unexpected, but not certainly a mistake */
	DOCTOR_OFF,
	DOCTOR_NOT_THERE, /* not available on this system: nothing is wrong, nothing is proven */
};

/* A row of the long table. In the short table, rows of one source and heap share a line, and rows
 * of one part are added up. */
struct doctor_row {
	const char *source, *heap, *what, *part; /* literals; heap may be "" */
	uint64_t expected, found;
	enum doctor_verdict verdict;
	bool has_no_numbers;
	char detail[700]; /* the first mistake, or the reason for DOCTOR_NOT_THERE; may be empty */
};

struct doctor {
	struct doctor_truth *truth; /* owned; of the child under test */
	struct doctor_row *rows; /* owned */
	size_t row_count, row_cap;
	struct buf notes; /* facts about the system, one per line, without duplicates */
	struct doctor_keep *keep; /* owned by the caller; NULL: without --keep */
	char os[80]; /* empty: no child was started */
	bool is_wine;
};

/* Allocates an empty truth; there are no findings yet. doctor_release() is required in any case. */
void doctor_init(struct doctor *doctor);
void doctor_release(struct doctor *doctor);

/* Adds a copy of the row. A row with different numbers, or with a detail, becomes DOCTOR_OFF unless
 * it is a note. */
void doctor_add(struct doctor *doctor, const struct doctor_row *row);

/* Adds a row without numbers. */
void doctor_say_why(struct doctor *doctor, const char *source, const char *what,
	enum doctor_verdict verdict, const char *why);

/* Adds a row without numbers, with the error's reason, and its remedy if the verdict is
 * DOCTOR_OFF. */
void doctor_say(struct doctor *doctor, const char *source, const char *what,
	enum doctor_verdict verdict, const struct err *why);

/* Adds a line to the notes, unless it is there already. */
void doctor_note(struct doctor *doctor, const char *name, const char *format, ...)
	PRINTF_LIKE(3, 4);

/* Returns the number of rows with this verdict, of one source or (NULL) of all. */
size_t doctor_count(const struct doctor *doctor, const char *source, enum doctor_verdict verdict);

/* Prints a line for each source and heap, or every row; then the notes, the reasons and the
 * verdict. */
void doctor_print(const struct doctor *doctor, bool is_verbose, FILE *to);

/*
 * Comparison with the truth. The child's own heaps must contain exactly the blocks of the truth.
 * The process heap may contain more, because the system's DLLs use it too.
 *
 * In a heap of Windows, two differences may not be a mistake of hsnap, and no published fact
 * excludes them. ntdll may have blocks of its own in a heap that a program created. It may also set
 * a freed block aside for a while before it marks the block as free. Both are rare, whereas a
 * walker that takes free blocks for live ones does so for a whole kind of block. So a few such
 * blocks are a note, with their number, and more are DOCTOR_OFF. Wine's heaps, whose source is
 * open, do neither. */

/* Compares the blocks of a snapshot: all of them or, with has_stacks, those with a stack; the
 * others are counts of their heaps then. Sorts the blocks by address. */
void doctor_compare(
	struct doctor *doctor, const char *source, struct snapshot *snapshot, bool has_stacks);

/*
 * Compares the heaps of a walk with those that GetProcessHeaps() listed in the child. A missing
 * heap is a mistake, because dumps lack all of its blocks. An additional heap may be one that
 * Windows does not count as the process's, so it is a note. Heaps of the other half of a 32-bit
 * process, which that function does not list, are left out. */
void doctor_compare_heaps(struct doctor *doctor, const char *source, const struct heap *heaps,
	size_t count, unsigned bits);

/* Walks the heaps of a child, alive or in a file, and compares them. */
void doctor_look_walk(struct doctor *doctor, struct target *target, const char *source);

/* Captures a snapshot with these stacks and compares it. Missing stacks are a mistake only if
 * must_be. */
void doctor_look_dump(struct doctor *doctor, struct target *target, const char *source,
	enum capture_stacks stacks, bool must_be);

/*
 * The folder of --keep: a minidump of each child, without texts that identify the user, the truth
 * about it, and facts about the machine. With these files the reading of this Windows can be tested
 * anywhere. */

#define DOCTOR_SECRETS 12
#define DOCTOR_SECRET_UNITS 512 /* longer texts are truncated */

/* A text that identifies the user, in lower case. */
struct doctor_secret {
	uint16_t units[DOCTOR_SECRET_UNITS];
	size_t count, width; /* bytes per unit: 2 in UTF-16, 1 in UTF-8 */
	bool is_path; /* path without a drive; otherwise a name */
};

struct doctor_secrets {
	char system[300]; /* the system's folder, UTF-8; its parts are not secret */
	struct doctor_secret list[DOCTOR_SECRETS];
	size_t count;
};

/* Adds a text in UTF-8, unless it is too short to be recognized or a part of the system's
 * folder. */
void doctor_secrets_add(struct doctor_secrets *secrets, const char *text, bool is_path);

/*
 * Overwrites the secrets in the bytes with the letter x: in UTF-16 and, for paths, in UTF-8,
 * regardless of case. Names are overwritten if they are whole words, and paths if the last folder's
 * name ends there. Returns the number of places. */
size_t doctor_blank(const struct doctor_secrets *secrets, unsigned char *bytes, size_t len);

/*
 * Adds the truth about a child as text, in the form of tests/images/make_image where possible.
 * Addresses are hexadecimal, sizes decimal:
 *   process pid=N bits=N build=N flags=HEX
 *   image FROM TO            code of its program; a return address is above FROM and not above TO
 *   outer FROM TO            code of the function that calls all sites
 *   site NUMBER FROM TO      code of a function that allocates
 *   heap ADDR KIND           that GetProcessHeaps() lists: wine, nt, segment or unknown
 *   block HEAP ADDR REQUESTED - - SITE[|SITE]
 *   freed HEAP ADDR
 *   total BLOCKS REQUESTED - */
void doctor_truth_text(
	struct buf *text, const struct doctor_truth *truth, struct target *target, uint32_t flags);

struct doctor_keep {
	const char *folder; /* UTF-8 */
	struct doctor_secrets secrets;
	struct buf machine; /* contents of machine.txt */
	bool has_32, has_64; /* it contains facts about children of that bitness */
	struct err err; /* first failure; code 0: none */
};

/* Windows only: creates the folder. Returns 0, -ERR_EXISTS or -ERR_CREATE. */
int doctor_keep_begin(struct doctor_keep *keep, struct err *err);

/* Windows only: stores a child's minidump and truth as files named after the state. file is a
 * HANDLE of the minidump, open for reading and writing, which is overwritten; process is the
 * child's HANDLE. Does nothing after a failure. */
void doctor_keep_child(
	struct doctor *doctor, const char *state, struct target *target, void *process, void *file);

/* Records, as one line, why a child is not stored in that state. */
void doctor_keep_reason(
	struct doctor_keep *keep, const char *state, unsigned bits, const char *why);

/* Windows only: writes machine.txt. Returns 0 or the first failure. */
int doctor_keep_end(struct doctor_keep *keep, struct err *err);

/* Windows only: add lines about the system, and about a child: its mitigation policies and the
 * first bytes of the functions of ntdll that the tracer hooks. */
void doctor_machine_system(struct buf *text);
void doctor_machine_child(struct buf *text, struct target *target, void *process);

/*
 * The child: hsnap.exe with a hidden command. It inherits four handles: the memory for its truth,
 * two events for taking turns, and its parent, whose exit ends it. The child signals that it is
 * ready, waits, does its work, signals again, and waits for its end. */
#define DOCTOR_CHILD "--child" /* hsnap doctor --child HANDLE ... */

enum {
	DOCTOR_MEMORY, /* struct doctor_truth */
	DOCTOR_SAID, /* set by the child */
	DOCTOR_GO, /* set by the parent */
	DOCTOR_PARENT,
	DOCTOR_HANDLES,
};

/* Windows only: main() of the child, with the parent's arguments. Returns its exit status. */
int doctor_child_main(int argc, char **argv);

#endif
