/*
 * hsnap doctor: does hsnap read the heaps of this system correctly? A child of ours allocates known blocks
 * and tells the truth about them; what each source of blocks and stacks finds is compared with that.
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

/* The heaps of the child. All but the process heap are its own: nobody else allocates in them. */
enum doctor_heap {
	DOCTOR_PROCESS_HEAP,
	DOCTOR_GROWABLE,
	DOCTOR_FIXED, /* with a maximum size */
	DOCTOR_UNLOCKED, /* HEAP_NO_SERIALIZE, which rules out the low fragmentation heap */
	DOCTOR_SEGMENT, /* where the system makes one */
	DOCTOR_HEAPS,
};

/* What a block is there to try. Bounds are those of the allocators: sizes up to 16 KiB may be in the
 * low fragmentation heap, and big ones are about as large as those that get memory of their own. */
enum doctor_group {
	DOCTOR_SMALL, /* every size from 0 to 1024 */
	DOCTOR_MIDDLE, /* to 16 KiB */
	DOCTOR_BACK_END, /* to 256 KiB */
	DOCTOR_BIG,
	DOCTOR_RESIZED, /* reallocated */
	DOCTOR_GROUPS,
};

extern const char *const doctor_heap_names[DOCTOR_HEAPS], *const doctor_group_names[DOCTOR_GROUPS];

#define DOCTOR_FIXED_BYTES ((size_t)16 << 20) /* the maximum of the fixed heap */
#define DOCTOR_SITES 4 /* functions of the child that allocate */
#define DOCTOR_RESIZE_SITE DOCTOR_SITES /* the one that reallocates */
#define DOCTOR_BLOCKS_MAX 16384
#define DOCTOR_LISTED_MAX 256 /* heaps of the child, with those of the system's DLLs */

struct doctor_block {
	uint64_t addr, requested_bytes;
	uint64_t was_bytes; /* before it was reallocated; 0: it was not */
	uint8_t heap, group;
	uint8_t site; /* where it was allocated; the stack of a reallocated one may show either */
	bool is_freed;
	bool is_late; /* allocated after others were freed, into the holes if the heap likes */
};

/* Code of one function: a return address into it is above from and not above to. */
struct doctor_range {
	uint64_t from, to;
};

/* Lies in memory that child and parent share. */
struct doctor_truth {
	uint32_t failed_bytes; /* the child got no block of so many and gave up; 0: all is well */
	uint64_t heaps[DOCTOR_HEAPS]; /* 0: there is none */
	/* HeapCompatibilityInformation: 0 plain, 1 look-aside, 2 low fragmentation */
	uint32_t front_ends[DOCTOR_HEAPS];
	/* Heaps that GetProcessHeaps() lists at the end; listed_count 0: not known. */
	uint64_t listed[DOCTOR_LISTED_MAX];
	uint32_t listed_count;
	struct doctor_range image; /* the child's program */
	struct doctor_range sites[DOCTOR_SITES + 1];
	struct doctor_range outer; /* the function that calls all of them */
	uint32_t block_count;
	struct doctor_block blocks[DOCTOR_BLOCKS_MAX];
};

/*
 * Fills an empty truth with the blocks that the child is to allocate, without addresses: pure arithmetic,
 * the same on every system. Those that are not late are allocated in this order, then some are
 * reallocated, then some freed, then the late ones are allocated.
 */
void doctor_plan(struct doctor_truth *truth);

/* Adds a block; false when there is no room. */
bool doctor_truth_add(struct doctor_truth *truth, const struct doctor_block *block);

/* Orders the blocks by address, each once: forgets those without one, and freed ones whose place another
 * has taken. */
void doctor_truth_settle(struct doctor_truth *truth);

/* True when a settled truth keeps its bounds. */
bool doctor_truth_is_sound(const struct doctor_truth *truth);

/* What the doctor prints: rows of "expected, found". */

enum doctor_verdict {
	DOCTOR_OK,
	DOCTOR_NOTE, /* not as expected, and no mistake for sure */
	DOCTOR_OFF,
	DOCTOR_NOT_THERE, /* not to be had on this system: nothing is wrong, nothing is proven */
};

/* In the short table the rows of one source and heap are one line, and those of one part are added up. */
struct doctor_row {
	const char *source, *heap, *what, *part; /* literals; heap may be empty */
	uint64_t expected, found;
	enum doctor_verdict verdict;
	bool has_no_numbers;
	char detail[700]; /* the first thing that is wrong, or why it is not there; may be empty */
};

struct doctor {
	struct doctor_truth *truth; /* owned; of the child that is looked at */
	struct doctor_row *rows; /* owned */
	size_t row_count, row_cap;
	struct buf notes; /* lines, each once: what was used */
	struct doctor_keep *keep; /* the caller's; NULL: nothing is kept */
	char os[80]; /* empty: no child was ever there */
	bool is_wine;
};

/* Room for a truth, which is empty, and no findings; doctor_release() in any case. */
void doctor_init(struct doctor *doctor);
void doctor_release(struct doctor *doctor);

/* Adds a copy of the row; one with numbers that differ, or with a detail, is off if it is not a note. */
void doctor_add(struct doctor *doctor, const struct doctor_row *row);

/* Adds a row without numbers. */
void doctor_say_why(struct doctor *doctor, const char *source, const char *what,
	enum doctor_verdict verdict, const char *why);

/* The same with the error's reason; its remedy too when it is off. */
void doctor_say(struct doctor *doctor, const char *source, const char *what,
	enum doctor_verdict verdict, const struct err *why);

/* Notes a line of what was used, once. */
void doctor_note(struct doctor *doctor, const char *name, const char *format, ...)
	PRINTF_LIKE(3, 4);

/* How many rows have this verdict, of one source or (NULL) of all. */
size_t doctor_count(const struct doctor *doctor, const char *source, enum doctor_verdict verdict);

/* Prints a line for each source and heap, or every row; then what was used, the reasons, the verdict. */
void doctor_print(const struct doctor *doctor, bool is_verbose, FILE *to);

/*
 * Comparing with the truth. The child's own heaps must hold the truth's blocks and nothing else. The
 * process heap may hold more, since the system's DLLs use it too.
 *
 * Two things may differ in a heap of Windows without a mistake of ours, and no published fact says
 * that they do not: ntdll may keep blocks of its own in a heap that a program made, and it may put a
 * freed block aside for a while before it marks it free. Both are few, whereas a walker that takes
 * free blocks for live ones does so for a whole kind of them. So what is few is a note, with its
 * numbers, and more is off. Wine's heaps, whose source is open, do neither.
 */

/* The blocks of a snapshot, all or (has_stacks) those that have a stack; the others are numbers of their heaps
 * then. Orders them by address. */
void doctor_compare(
	struct doctor *doctor, const char *source, struct snapshot *snapshot, bool has_stacks);

/*
 * Compares the heaps that a walk found with those that GetProcessHeaps() listed in the child. A missing one is a mistake:
 * none of its blocks is in any dump. One more may be a heap that Windows does not count as the process's, so it is a
 * note. Heaps of the other half of a 32-bit process, which that function does not list, are left out.
 */
void doctor_compare_heaps(struct doctor *doctor, const char *source, const struct heap *heaps,
	size_t count, unsigned bits);

/* Walks the heaps of a child, alive or a file, and compares. */
void doctor_look_walk(struct doctor *doctor, struct target *target, const char *source);

/* Compares what a snapshot with these stacks has. That there are none is a mistake if they must be. */
void doctor_look_dump(struct doctor *doctor, struct target *target, const char *source,
	enum capture_stacks stacks, bool must_be);

/*
 * The folder of --keep: a minidump of each child, without what identifies the user, the truth about it, and facts about
 * the machine. With them what hsnap reads of this Windows can be tested anywhere.
 */

#define DOCTOR_SECRETS 12
#define DOCTOR_SECRET_UNITS 512 /* longer texts are cut */

/* A text that identifies the user, in lower case. */
struct doctor_secret {
	uint16_t units[DOCTOR_SECRET_UNITS];
	size_t count, width; /* bytes of a unit: 2 is UTF-16, 1 is UTF-8 */
	bool is_path; /* without a drive; otherwise a name */
};

struct doctor_secrets {
	char system[300]; /* the folder of the system, UTF-8: what is a part of it is no secret */
	struct doctor_secret list[DOCTOR_SECRETS];
	size_t count;
};

/* Adds a text in UTF-8, unless it is too short to be told from other bytes, or a part of the system's folder. */
void doctor_secrets_add(struct doctor_secrets *secrets, const char *text, bool is_path);

/*
 * Overwrites the secrets among the bytes with the letter x, in UTF-16 and, of paths, in UTF-8, with letters of either
 * case. Names are overwritten where they are whole words, and paths where the last folder's name ends. Returns the number
 * of places.
 */
size_t doctor_blank(const struct doctor_secrets *secrets, unsigned char *bytes, size_t len);

/*
 * Adds the truth about a child as text, in the form of tests/images/make_image where that has one; addresses are
 * hexadecimal, sizes decimal:
 *   process pid=N bits=N build=N flags=HEX
 *   image FROM TO            code of its program; a return address is above FROM and not above TO
 *   outer FROM TO            code of the function that calls all sites
 *   site NUMBER FROM TO      code of a function that allocates
 *   heap ADDR KIND           that GetProcessHeaps() lists: wine, nt, segment or unknown
 *   block HEAP ADDR REQUESTED - - SITE[|SITE]
 *   freed HEAP ADDR
 *   total BLOCKS REQUESTED -
 */
void doctor_truth_text(
	struct buf *text, const struct doctor_truth *truth, struct target *target, uint32_t flags);

struct doctor_keep {
	const char *folder; /* UTF-8 */
	struct doctor_secrets secrets;
	struct buf machine; /* what machine.txt gets */
	bool has_32, has_64; /* facts about children of that bitness are in it */
	struct err err; /* the first failure; code 0: none */
};

/* Windows only: makes the folder. 0, -ERR_EXISTS or -ERR_CREATE. */
int doctor_keep_begin(struct doctor_keep *keep, struct err *err);

/* Windows only: keeps a minidump, a HANDLE of a file for reading and writing that is overwritten, and the truth about the
 * child as files named after the state. process is its HANDLE. Does nothing after a failure. */
void doctor_keep_child(
	struct doctor *doctor, const char *state, struct target *target, void *process, void *file);

/* Records why a child is not kept in that state, as one line. */
void doctor_keep_reason(
	struct doctor_keep *keep, const char *state, unsigned bits, const char *why);

/* Windows only: writes machine.txt. 0 or the first failure. */
int doctor_keep_end(struct doctor_keep *keep, struct err *err);

/* Windows only: add lines about the system, and about a child: its policies and the first bytes of functions of ntdll
 * that the tracer hooks. */
void doctor_machine_system(struct buf *text);
void doctor_machine_child(struct buf *text, struct target *target, void *process);

/*
 * The child: hsnap.exe with a hidden command. It inherits four handles: the memory for its truth, two
 * events that take turns (it says that it is there, waits, does its work, says so and waits for its
 * end), and its parent, whose end ends it.
 */
#define DOCTOR_CHILD "--child" /* hsnap doctor --child HANDLE ... */

enum {
	DOCTOR_MEMORY, /* struct doctor_truth */
	DOCTOR_SAID, /* set by the child */
	DOCTOR_GO, /* set by the parent */
	DOCTOR_PARENT,
	DOCTOR_HANDLES,
};

/* Windows only: the child's main(), with the arguments as the parent gives them. Returns its exit status. */
int doctor_child_main(int argc, char **argv);

#endif
