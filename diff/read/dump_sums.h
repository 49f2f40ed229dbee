/* A dump's data in hdiff, and the warnings about dumps. */
#ifndef DIFF_READ_DUMP_SUMS_H
#define DIFF_READ_DUMP_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/dump/model.h"
#include "core/dump/source.h"
#include "core/dump/stackset.h"
#include "symbolize/symbolize.h"

/*
 * A dump's data in hdiff: the sums of each stack.
 *
 * Sums are computed while the file is read; single blocks are stored only on request. struct
 * dump_sums owns everything it points to, and sums_release() frees all of it. Each time a file is
 * read, stacks, heaps and texts may get other numbers, and cells may be in another order. The data
 * is equal otherwise. */

#define WARNINGS_MAX 20 /* number of warnings that are stored */

#define SUMS_TOO_LARGE "its blocks add up to more than 8 EiB"
#define CELL_NONE UINT32_MAX

/* Sums of one stack's blocks in one heap. */
struct stack_total {
	uint32_t stack; /* index in `stacks`, or STACK_NONE if no stack is known for these blocks */
	uint32_t heap : 31; /* index in `heaps` */
	/* In the dump, the blocks' entries have only an id, and several stacks have this id.
	 * `stack` is the first of these stacks; sums_same_id() returns the next ones. */
	uint32_t is_bare : 1;
	struct block_totals sums;
};

struct listed_block {
	uint64_t addr, requested_bytes;
	/* number of the block's cell, or CELL_NONE; until the whole dump is read, number of the
	 * block's stack instead */
	uint32_t cell;
	/* needed only while the dump is read: twice the heap's number, plus 1 for an entry without
	 * a stack */
	uint32_t heap;
};

/* A malformed line that was skipped. */
struct left_out {
	const char *place; /* "file:line", or NULL if the warning is not about a line */
	const char *why;
};

/* Fate of an allocation: whether it was allocated and freed inside or outside of a window, which is
 * the time between two moments of a recording. WPA uses the same names: AIFO means allocated
 * inside, freed outside. */
enum block_fate {
	FATE_LIVE, /* live at one moment; there is no window */
	/* allocated in the window and not freed in it: increased memory usage */
	FATE_AIFO,
	FATE_AIFI, /* allocated and freed in the window: transient blocks */
	FATE_AOFI, /* live at the start of the window, and freed in it */
	FATE_AOFO, /* live during the whole window */
	FATE_AI, /* allocated in the window: AIFO and AIFI */
	FATE_ALL, /* live at any moment of the window */
};
#define BLOCK_FATES 7

/* Returns "live", "aifo", ... */
const char *block_fate_name(enum block_fate fate);

/* Sizes of the blocks to count, both included; all zero: any size. */
struct size_limits {
	bool is_limited;
	uint64_t least_bytes, most_bytes;
};

static inline bool size_limits_has(const struct size_limits *range, uint64_t bytes)
{
	return !range->is_limited || (bytes >= range->least_bytes && bytes <= range->most_bytes);
}

/* Part of a recording to read. recording_position() defines the form of moments. */
struct recording_part {
	enum block_fate fate;
	const char *moment; /* for FATE_LIVE; NULL: the end of the recording */
	const char *from, *to; /* for other fates; NULL: start and end of the recording */
	/* For FATE_AIFO: the blocks that were allocated from `from` to `to` and that exist at this
	 * moment. NULL: at `to`. */
	const char *still_at;
	int64_t older_ms; /* for FATE_AOFO: the window is this long and ends at `to`; 0: see `from` */
	/* also read single blocks: from dumps and, for FATE_LIVE, from recordings with addresses */
	bool wants_blocks;
	bool wants_creators; /* also read the stacks that created heaps */
	struct size_limits sizes; /* of dumps, too */
	/* Count allocations by thread, and only those of this thread (an id, or a name with
	 * wildcards); NULL: of all threads. */
	bool by_thread;
	const char *thread;
	/* an option requested this part, so an input that is not a recording is an error */
	bool is_asked;
};

/* The first bytes of a block. */
struct dump_content {
	const char *stack; /* id of the block's stack */
	/* For a block without a stack: the frames of its group, see stackless.h. */
	uint64_t frames[2];
	uint32_t frame_count;
	uint64_t addr, requested_bytes;
	unsigned bits; /* bitness of the block's process */
	uint32_t len;
	const unsigned char *bytes;
	size_t pointer_at, pointer_count; /* range in `pointers`, in order of offset */
};

/* A word of a block that points into another block. */
struct dump_pointer {
	uint64_t offset, to, requested_bytes;
	const char *stack;
};

/* A container that only a few blocks keep allocated (struct container). */
struct dump_container {
	uint64_t addr, end, committed_bytes;
	struct block_totals blocks; /* with a stack or without */
};

/* Reason why `time_ms` is known to be wrong. */
enum date_doubt {
	DATE_PLAUSIBLE,
	DATE_EARLY, /* before the start of the dump's process */
	/* no running clock: contradicts the names or arguments, or is more than a year from that of
	 * the next dump */
	DATE_ODD,
	DATE_AHEAD, /* more than a day ahead of this machine's clock */
	/* the dump lacks the machine's running clock; other dumps of its process have this clock,
	 * and it shows that their times were wrong */
	DATE_UNKNOWN,
};

/* Modules whose bases do not change while a process runs. */
enum code_base { BASE_PROGRAM, BASE_NTDLL, CODE_BASES };

/* The process and moment of a dump. */
struct dump_identity {
	/* set only for a recording: name of the file that was opened, which is `path` without the
	 * moment */
	const char *file;
	const char *source; /* program that recorded the events; NULL: our tracer */
	const char *path; /* as specified by the user */
	uint32_t pid, parent_pid; /* these fields and the next two are 0 if they are not recorded */
	int64_t time_ms, start_ms;
	/* see struct dump_head; used by dumps_correct_clocks() to correct `time_ms` */
	int64_t clock_ms;
	int64_t stated_ms; /* the dump's own time, if `time_ms` was corrected; otherwise 0 */
	enum date_doubt date_doubt;
	bool is_misplaced; /* the dump's place among others is in doubt, because its date is */
	const char *image, *host; /* may be NULL */
	uint64_t code_bases[CODE_BASES]; /* if the modules were not read; see dump_code_base() */
	/* Recordings only: */
	const char *os;
	unsigned bits;
	/* From UMDH's banner; 0 without a banner. The banner contains a local time, accurate to the
	 * minute, which is stored as if it were UTC. Therefore, only differences between banner
	 * times are meaningful. */
	uint32_t banner_pid;
	int64_t banner_time_ms;
	const char *banner_host; /* or NULL */
	bool has_wall_time; /* `time_ms` is `banner_time_ms`, see sums_copy_banner() */
};

/* Allocations of one kind by one thread of a recording. */
struct thread_kind {
	uint32_t kind, thread; /* indexes in the recording's facts */
	uint64_t allocated, live; /* at the end of the window */
	uint64_t from_allocated, from_live; /* at its start */
	/* in the window: allocations that count, and frees of these and of older ones */
	uint64_t born_allocated, freed_inside, freed_before;
};

/* The part of a recording that the sums cover. */
struct recording_window {
	/* 0 if the sums come from a dump. For a recording, 1 + the position of the moment or of the
	 * window's end. A moment (FATE_LIVE) has no start, so `from_position` and `from_ms` are
	 * 0. */
	uint64_t position;
	enum block_fate fate;
	uint64_t from_position, from_ms, to_ms;
	/* Allocations at or after this position, which is usually the window's end, do not
	 * count. */
	uint64_t born_position, born_ms;
	/* Only in a window. Indexed by kind (allocations with the same stack, size, heap and
	 * memory): number of the cell that contains the kind's sums, which may be 0. CELL_NONE: no
	 * block of the kind was live in the window. */
	uint32_t *kind_cells;
	size_t kind_count;
	/* If kinds are divided by thread: the parts. Then `kind_cells` and `kind_count` are about
	 * parts instead of kinds. Otherwise NULL. */
	struct thread_kind *parts;
	size_t real_count; /* number of kinds of the recording that may have parts */
	/* Indexed by module of the recording: the module's base address in the sums. */
	uint64_t *module_bases;
};

/* Returns true if the window goes on after the last allocation that counts. */
static inline bool window_is_longer(const struct recording_window *window)
{
	return window->born_position + 1 < window->position;
}

/* Single blocks. They are stored only on request. */
struct single_blocks {
	/* Blocks whose stack is known, if a recording with addresses was read. Otherwise NULL. */
	struct block *blocks;
	size_t block_count;
	/* set by the caller before a dump is read: list its single blocks */
	bool wants_listed;
	bool wants_creators; /* set by the caller: read the stacks that created the heaps */
	/* set by the caller: other blocks count only in the dump's totals */
	struct size_limits sizes;
	bool has_unlisted; /* some entries of the dump are sums */
	struct listed_block *listed;
	size_t listed_count;
	struct dump_content *contents; /* sorted by stack */
	size_t content_count;
	struct dump_pointer *pointers;
	size_t pointer_count;
	bool has_containers; /* the dump lists its containers */
	struct dump_container *containers;
	size_t container_count;
	uint64_t container_left_count; /* number of containers that the dump does not list */
};

/* Warnings about a dump, and reasons why its figures may be incomplete. */
struct dump_quality {
	/* The first WARNINGS_MAX warnings, one sentence each; NULL: no warnings. */
	const char **warnings;
	size_t warning_count; /* number of all warnings */
	struct left_out *left_out; /* indexed by warning: the malformed line that caused it */
	size_t skip_count; /* number of malformed lines skipped, each with a warning */
	bool is_cut; /* the end of the file is missing */
	bool is_incomplete; /* according to notes in the dump, data is missing */
	/* Set if the file records no overhead, or no numbers of blocks: printed comparisons
	 * (diff/chain.c), and files of other tools (foreign.h). */
	bool lacks_overhead, lacks_blocks;
	/* The totals of the printed comparisons that the dump was made from include stacks without
	 * rows, so the dump's total exceeds the sum of its cells. */
	bool lacks_rows;
	/* For a recording that contains only a sample: one allocation was recorded for every
	 * `sample_bytes` bytes allocated, so all figures are estimates. 0: all allocations were
	 * recorded. */
	uint64_t sample_bytes;
};

struct dump_modules {
	struct module *items; /* sorted by base */
	size_t count;
	struct arena texts; /* storage of the modules' texts */
	/* `items` belongs to the store (diff/read/stack_store.h), and is shared by dumps with equal
	 * modules. */
	bool are_shared;
};

/* A heap as its note describes it, and the sums of its blocks. */
struct heap_fact {
	uint64_t addr;
	const char *kind; /* "" if not recorded */
	/* Frames of the stack that created the heap; NULL: not known, or not requested. */
	uint64_t *creator;
	uint32_t creator_depth;
	struct heap_memory {
		uint64_t committed_bytes, reserved_bytes;
		struct block_totals blocks;
		struct heap_space space;
	} memory;
};

struct dump_sums {
	struct arena arena;
	struct dump_identity id;
	struct recording_window window;
	struct single_blocks single;
	struct dump_quality quality;
	struct stackset stacks;
	/* Indexed by stack: the stack's number in the stack store (diff/read/stack_store.h). Stacks
	 * with equal ids and frames have equal numbers. STACK_NONE: the stack is not in the store.
	 * NULL: no stack of this dump is in the store. */
	uint32_t *shared;
	/* The store's stacks, indexed by the numbers in `shared`. NULL: the stacks are in `stacks`.
	 * Otherwise, `stacks` contains only their number, and `same_id` links the stacks that have
	 * the same id. `same_id` is NULL if each id has one stack. */
	const struct stack *const *common;
	uint32_t *same_id;
	/* One cell for each (stack, heap, is_bare) that occurs; NULL if the cells are packed.
	 * stack_totals_walk() in diff/read/stack_store.h reads both forms. */
	struct stack_total *cells;
	unsigned char *packed_cells;
	size_t cell_count;
	/* Indexed by cell: the id of the thread that allocated. NULL: cells are not divided by
	 * thread. */
	uint32_t *cell_threads;
	struct recorded_thread {
		uint32_t id;
		const char *name; /* may be NULL */
	} * threads; /* sorted by id; NULL without `cell_threads` */
	size_t thread_count;
	uint64_t *heaps; /* addresses; 0 for entries before the first heading */
	/* indexed by heap: enum block_reach, which is equal for all blocks of the heap; NULL:
	 * unknown */
	unsigned char *reaches;
	bool has_reach; /* the dump records how its blocks are reachable */
	size_t heap_count;
	/* Texts of frames. In a stack with `is_named`, a frame is an index in `texts`. */
	const char **texts;
	size_t text_count;
	/* Sums of all blocks except those in `reserved` and `handles`. The sum of all three,
	 * including overhead, fits in an int64_t. */
	struct block_totals total;
	struct block_totals reserved; /* address space under the heading HEAP_RESERVED */
	struct block_totals handles; /* under the headings of handles, whose bytes are 0 */
	/* The tracer was attached while the process was already running. Older blocks have no
	 * stack; `before` contains their sums. */
	bool is_attached;
	struct block_totals before;
	bool has_stackless; /* some stacks are groups of blocks without a stack: stackless.h */
	struct heap_fact *heap_facts; /* one for each note about a heap; empty for recordings */
	size_t heap_fact_count, heap_fact_cap;
	struct balance *balance; /* NULL if the dump does not record it; see sums_balance() */
	/* The tracer recorded virtual memory, and stacks of threads. The sums are committed bytes:
	 * from VirtualAlloc, and of the stacks. */
	bool has_virtual, has_stacks;
	uint64_t virtual_bytes;
	struct block_totals thread_stacks;
	struct dump_modules module_list;
	struct symbol_names *names; /* names of functions that the dump contains, or NULL */
};

void sums_init(struct dump_sums *sums);
void sums_release(struct dump_sums *sums);

/* Returns the balance of a dump, which may have no figures. */
static inline const struct balance *sums_balance(const struct dump_sums *sums)
{
	static const struct balance unknown;

	return sums->balance ? sums->balance : &unknown;
}

static inline const struct stack *sums_stack(const struct dump_sums *sums, uint32_t stack)
{
	return sums->common ? &(*sums->common)[sums->shared[stack]] : &sums->stacks.stacks[stack];
}

/* Returns the number of the next stack with the same id in this dump, or STACK_NONE. */
static inline uint32_t sums_same_id(const struct dump_sums *sums, uint32_t stack)
{
	if (sums->common)
		return sums->same_id ? sums->same_id[stack] : STACK_NONE;
	return sums->stacks.stacks[stack].same_id;
}

/* Copies the pid, the machine and the time from UMDH's banner if the dump has no better values. */
void sums_copy_banner(struct dump_sums *sums);

/*
 * Reads a dump into initialised sums, which the caller must release even after an error. `path` is
 * the user's name for the dump. Returns 0 or an error of dump_scan(). Also returns -ERR_BAD_LINE if
 * the blocks add up to more than an address space. After -ERR_CUT, `sums` contains everything
 * before the cut. Large files are read by several threads. */
int sums_read(struct dump_sums *sums, const char *path, struct source *source, struct err *err);

/* Reads a dump using the given number of threads; 0: chosen according to the size. */
int sums_read_with(struct dump_sums *sums, const char *path, struct source *source,
	unsigned threads, struct err *err);

/* Reads a part of the recording in `file`. Returns 0, -ERR_USAGE if the window ends before it
 * begins, or an error of core/record. */
int sums_read_recording(struct dump_sums *sums, const char *path, const char *file,
	const struct recording_part *part, struct err *err);

/* Returns the name of a thread, or NULL. */
const char *sums_thread_name(const struct dump_sums *sums, uint32_t id);

struct record_facts;
struct record_kind;
struct record_stack;

/* Returns the id used in sums for a stack of a recording: the stack's number plus 1, or 0 if none
 * of its frames is known. */
uint32_t record_stack_id(const struct record_facts *facts, uint32_t stack);

/* Stores the return addresses of a stack in `frames`, computed with the module bases in `sums`. */
void record_stack_addrs(
	const struct dump_sums *sums, const struct record_stack *stack, uint64_t *frames);

/* Returns the heap under which the blocks of a kind are counted: for heap blocks, the heap's
 * address or, if it is unknown, 0; for other memory, a heading such as HEAP_VIRTUAL. */
uint64_t record_kind_heap(const struct record_facts *facts, const struct record_kind *kind);

/* A warning that occurs in one or more dumps of a series. Most dumps have the same warnings, so
 * each warning is printed only once. */

struct dump_warning {
	const struct dump_sums *first; /* first dump with this warning */
	/* index in `first->warnings`, or WARNINGS_MAX for an item that represents all warnings
	 * whose texts were not stored */
	size_t number;
	size_t more; /* number of warnings whose texts were not stored, in all dumps */
	size_t dump_count; /* number of dumps with this warning */
};

struct dump_warnings {
	struct dump_warning *items; /* in the order of the dumps */
	size_t count, cap;
};

/* Collects the distinct warnings of dumps[0..count). The dumps must outlive `warnings`. */
void dump_warnings_gather(
	struct dump_warnings *warnings, const struct dump_sums *dumps, size_t count);
void dump_warnings_release(struct dump_warnings *warnings);

/* Appends the text of a warning. If several dumps have the warning, also appends the number of
 * dumps. */
void dump_warning_words(struct buf *words, const struct dump_warning *warning);

#endif
