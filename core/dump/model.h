/* The model: a snapshot in memory, its modules, and the order of its blocks. */
#ifndef CORE_DUMP_MODEL_H
#define CORE_DUMP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/dump/balance.h"
#include "core/dump/kv.h"
#include "core/dump/stackset.h"

/*
 * A snapshot of one process's heaps, in memory.
 *
 * struct snapshot owns everything it points to; snapshot_release() frees it all. Addresses belong
 * to the target process. "Requested" bytes are those that the program asked the heap to allocate;
 * "overhead" bytes are those that the heap adds.
 */

struct module {
	uint64_t base, size_bytes;
	const char *path;
	/* Identity of the build; valid only if has_identity is set. */
	const char *pdb; /* file name of the PDB, or NULL */
	const char *pdb_guid; /* 32 hexadecimal digits, or NULL */
	uint32_t pdb_age;
	uint32_t timestamp, checksum; /* from the image's headers */
	bool has_identity;
	/* Last base address of an unloaded module; otherwise 0. The `base` of an unloaded module is
	 * an address where no module was ever loaded. This keeps its frames apart from those of a
	 * module that was loaded later at the old address. */
	uint64_t unloaded_at;
};

struct block_totals {
	uint64_t block_count, requested_bytes, overhead_bytes;
};

static inline void block_totals_add(struct block_totals *to, const struct block_totals *more)
{
	to->block_count += more->block_count;
	to->requested_bytes += more->requested_bytes;
	to->overhead_bytes += more->overhead_bytes;
}

/* Memory in which a heap places blocks. A container may contain smaller ones. */
enum container_kind {
	CONTAINER_SEGMENT, /* a committed part of a segment */
	CONTAINER_VS, /* a VS subsegment of a segment heap */
	CONTAINER_LFH, /* memory for blocks of one size */
};

/* Returns "segment", "vs" or "lfh". */
const char *container_kind_name(enum container_kind kind);

/* A container that only a few blocks keep allocated. */
struct container {
	uint64_t addr, bytes, committed_bytes;
	struct block_totals blocks;
	uint32_t heap; /* index into heaps */
	enum container_kind kind;
};

/* Use of a heap's memory, as man/hdump.5 defines it. */
struct heap_space {
	bool is_known; /* the numbers below are known */
	uint64_t free_run_bytes; /* largest unused range */
	struct block_totals lfh, vs; /* blocks whose innermost container is of this kind */
};

struct heap {
	uint64_t addr;
	/* Name of a walker: "nt", "segment", "page", "wine" or "unknown". For memory outside heaps,
	 * kind of a heading: "virtual", "reserved", "mapped" or "stack" (see heap_name()). */
	const char *kind;
	const char *layout; /* name of the walker's structure layout, or NULL */
	uint64_t committed_bytes, reserved_bytes;
	struct heap_space space;
	const uint64_t *creator; /* frames of the stack that created the heap; NULL: not known */
	uint32_t creator_depth;
	/* Totals of the walk; valid if `has_exact` is set. They are exact even in a sampled
	 * snapshot, where the entries and `stackless` are estimates. */
	struct block_totals exact;
	struct block_totals stackless; /* blocks without a known stack; not in blocks[] */
	struct block_totals stackless_lost; /* lost blocks among the stackless ones */
	unsigned bits; /* 32 or 64; 0: not recorded */
	bool has_exact;
	bool unwalked; /* no walker knows this heap, so its blocks come from the tracer */
	/* The walk met damaged or missing memory, so some of the blocks are known only from the
	 * tracer. */
	bool is_partial;
	/* A block was shrunk in place, so sizes may be too large by less than one size class. */
	bool has_loose_sizes;
	bool is_complete; /* the heap is unwalked or partial, but the tracer recorded every block */
	/* Number of blocks that the tracer recorded but the walk did not find. */
	uint64_t traced_only;
};

/* Headings for memory outside heaps. A heading is stored in place of a heap's address; no heap can
 * have such a low address. "Reserved" address space is not committed, so it uses no memory. */
enum {
	HEAP_VIRTUAL = 1, /* committed by VirtualAlloc */
	HEAP_RESERVED, /* reserved by VirtualAlloc */
	HEAP_MAPPED, /* views of sections */
	HEAP_STACKS, /* committed stacks of threads whose creation was recorded */
	/* Open handles, one heading for each type. An entry is a handle: its value in place of an
	 * address, and 0 bytes. */
	HEAP_HANDLES_FIRST = 16,
	HEAP_HANDLES_END = 32,
};

static inline bool heap_is_handles(uint64_t addr)
{
	return addr >= HEAP_HANDLES_FIRST && addr < HEAP_HANDLES_END;
}

/* Returns a heading's name ("VirtualAlloc reserved"), or NULL for a heap's address. */
const char *heap_name(uint64_t addr);
/* Returns a heading's kind ("reserved"), or NULL for a heap's address. */
const char *heap_heading_kind(uint64_t addr);

/* Returns the heading with this name or kind, ignoring case, or 0 if no heading has it. */
uint64_t heap_by_name(const char *name);

/* How a block can be reached. */
enum block_reach {
	BLOCK_HELD, /* some pointer leads to it, or reachability is unknown */
	BLOCK_INTERIOR, /* only pointers into its middle lead to it */
	BLOCK_LOST, /* no pointer leads to it */
	/* Only lost blocks point to it. In snapshot.reach, BLOCK_LOST_WITH + i marks a block that
	 * was lost together with the block at `lost[i]`. */
	BLOCK_LOST_WITH,
};
#define BLOCK_REACHES (BLOCK_LOST_WITH + 1)

/* Returns "held", "interior", "lost" or "lost-with". */
const char *block_reach_name(enum block_reach reach);

/* without this attribute, each bit field would fill a whole unit on Windows */
#if __has_attribute(gcc_struct)
#define BLOCK_PACKED __attribute__((packed, aligned(8), gcc_struct))
#else
#define BLOCK_PACKED __attribute__((packed, aligned(8)))
#endif

/* Packed into 24 bytes, because a snapshot has millions of blocks. Before storing data from a
 * process or a file, check it with block_fits(). */
struct block {
	uint64_t addr : 48;
	uint64_t requested_bytes : 48;
	uint64_t overhead_bytes : 40;
	uint64_t heap : 24; /* index into heaps */
	uint64_t stack : 32; /* index into stacks.stacks */
} BLOCK_PACKED;

#define BLOCK_OVERHEAD_MAX (((uint64_t)1 << 40) - 1)
#define BLOCK_HEAPS_MAX ((size_t)1 << 24)

/* Returns false if a value is too large for struct block. No real process has such values. */
static inline bool block_fits(uint64_t addr, uint64_t requested_bytes)
{
	return !((addr | requested_bytes) >> 48);
}

/* Sum of the blocks with one stack in one heap, for snapshots that do not list single blocks. */
struct block_sum {
	uint64_t block_count, requested_bytes, overhead_bytes; /* block_count > 0 */
	uint32_t heap, stack; /* as in struct block */
	enum block_reach reach;
};

/* Meaning of the first word of a block. */
enum stackless_word {
	STACKLESS_ANY, /* nothing is known about it */
	STACKLESS_ADDRESS, /* an address in a module, such as that of a class's virtual functions */
	STACKLESS_TEXT, /* the block starts with ASCII text */
	STACKLESS_WIDE, /* the block starts with such text in UTF-16 */
};

/* Blocks without a stack in one heap that have the same size and the same first word. They are
 * included in heap.stackless. */
struct stackless_group {
	struct block_totals totals; /* block_count > 0 */
	/* Bytes requested for each block. If `is_range` is set, a power of two: sizes are from
	 * `bytes` to 2 * bytes - 1. */
	uint64_t bytes;
	/* The address, or up to 7 characters of the text, the first in the lowest byte. 0 for
	 * STACKLESS_ANY. */
	uint64_t word;
	uint32_t heap; /* as in struct block */
	enum stackless_word kind;
	bool is_range;
	bool is_lost; /* the blocks are lost */
};

/* The first bytes of a block, and the pointers to other blocks in those bytes. */
#define CONTENT_BYTES_MAX 64
struct block_content {
	uint64_t addr, requested_bytes;
	uint32_t stack; /* as in struct block */
	uint32_t group; /* if `stack` is STACK_NONE: index into snapshot.stackless */
	uint32_t len; /* number of bytes */
	unsigned char bytes[CONTENT_BYTES_MAX];
};
struct content_pointer {
	uint32_t content; /* index into contents */
	uint32_t offset; /* offset of the pointer, in bytes */
	uint64_t to, requested_bytes; /* the block that it points into */
	uint32_t stack;
};

/* A parsed note of kind "content". `stack` is the id of the block's stack; the string belongs to
 * the parsed pairs. A block without a stack has the id "0", and the number of its group. content_note_read() returns 0 or -ERR_BAD_LINE. */
struct content_note {
	struct block_content content;
	unsigned bits; /* size of a pointer */
	const char *stack;
};
int content_note_read(const struct kv *kv, struct content_note *note);

/* Returns the word of `bits` bits at `bytes`. Reads at most `len` bytes. */
uint64_t content_word(const unsigned char *bytes, size_t len, unsigned bits);

/* Reads the frames of the stack that created a heap from a note of kind "heap". Returns their
 * number, or 0 if the note has no valid frames. */
#define CREATOR_FRAMES_MAX 256
uint32_t creator_note_read(const struct kv *kv, uint64_t frames[CREATOR_FRAMES_MAX]);

/* Facts about the system's stack database. Used if blocks point to its records (stack source
 * "ust"). */
struct stack_records {
	bool is_known; /* true if blocks point to such records */
	/* Numbers of records that blocks point to: all, invalid ones, and those that claim more
	 * frames than could be read. */
	uint64_t record_count, broken_count, cut_count;
	/* address of the database; 0: not found, and the members below are unknown */
	uint64_t database;
	/* Numbers of stacks in the database, of lookups, and of allocations whose stack did not
	 * fit. */
	uint64_t entry_count, lookup_count, failure_count;
	/* Numbers of entries reachable through the database's index and through its hash chains. */
	uint64_t indexed_count, chained_count;
	uint64_t used_bytes, reserved_bytes;
};

/* Facts about the tracer as the source of stacks. */
struct tracer_facts {
	uint32_t version; /* 0: no tracer */
	/* Numbers of items that did not fit into the tracer's tables. */
	uint64_t dropped_blocks, dropped_stacks, dropped_ranges, dropped_unloads;
	uint64_t mismatch_count; /* stacks that the fast unwinder got wrong */
	bool is_attached; /* the tracer was attached to a running program */
	/* Blocks that are older than the tracer and have no stack. Unknown if sampling is on. */
	struct block_totals before;
	uint64_t limit_bytes, committed_bytes; /* size of the tracer's tables */
	/* Sampling: one allocation is recorded per this many bytes, and all figures are estimates.
	 * 0: no sampling. */
	uint64_t sample_bytes;
};

struct snapshot {
	struct arena arena;
	uint32_t pid, parent_pid; /* 0: not recorded */
	unsigned bits; /* 32 or 64; 0: not recorded */
	int64_t time_ms, start_ms; /* time of the snapshot, start of the process; 0: not recorded */
	int64_t clock_ms; /* value of os_clock_ms() at the snapshot; 0: not recorded */
	const char *image, *os, *host; /* host: the machine's name; NULL: not recorded */
	const char *stack_source; /* "tracer", "ust" or "none"; NULL: not recorded */
	struct module *modules;
	size_t module_count, module_cap;
	struct heap *heaps;
	size_t heap_count, heap_cap;
	bool has_containers; /* the next members are known */
	struct container *containers; /* largest first */
	size_t container_count, container_cap;
	size_t container_left_count; /* number of smaller containers that were left out */
	struct block *blocks;
	size_t block_count, block_cap;
	struct block_sum *sums; /* sums that `blocks` does not contain; ordered by heap */
	size_t sum_count, sum_cap;
	/* Groups of blocks without a stack; ordered by heap and size. They cover all such blocks of
	 * heaps, or none. */
	struct stackless_group *stackless;
	size_t stackless_count;
	bool has_reach; /* true if reachability was examined */
	bool by_middle; /* true if a pointer into a block's middle also holds the block */
	uint64_t part_held_count; /* number of blocks that are held only through parts of words */
	/* Values of enum block_reach for the first `reach_count` blocks. The remaining blocks are
	 * held. */
	uint32_t *reach;
	size_t reach_count, reach_cap;
	uint64_t *lost; /* addresses of lost blocks; see BLOCK_LOST_WITH */
	size_t lost_count, lost_cap;
	struct block_content *contents; /* contents of some blocks; ordered by stack */
	size_t content_count, content_cap;
	struct content_pointer *pointers; /* ordered by content and offset */
	size_t pointer_count, pointer_cap;
	bool is_by_stack; /* the snapshot has one sum per stack and heap, but no single blocks */
	struct stackset stacks;
	struct stack_records records;
	struct tracer_facts tracer;
	struct balance balance;
	const char **warnings; /* one sentence each about data that could not be read */
	size_t warning_count, warning_cap;
	uint64_t missing_count; /* number of warnings about missing blocks or ranges */
};

void snapshot_init(struct snapshot *snapshot);
void snapshot_release(struct snapshot *snapshot);

/* Adds a zeroed item and returns a pointer to it. The pointer is valid until the next item is
 * added. */
struct module *snapshot_add_module(struct snapshot *snapshot);
struct heap *snapshot_add_heap(struct snapshot *snapshot);
struct block *snapshot_add_block(struct snapshot *snapshot);
struct block_sum *snapshot_add_sum(struct snapshot *snapshot);

/* Adds a copy of a module and its strings. */
void snapshot_copy_module(struct snapshot *snapshot, const struct module *module);

/* Returns how block `i` can be reached, as a value of snapshot.reach. */
static inline uint32_t snapshot_reach(const struct snapshot *snapshot, size_t i)
{
	return i < snapshot->reach_count ? snapshot->reach[i] : BLOCK_HELD;
}

/* Adds a printf-formatted warning. Call snapshot_lacks() instead if heaps, memory, blocks or ranges
 * are known to be missing: it also marks the snapshot as incomplete. */
void snapshot_warn(struct snapshot *snapshot, const char *format, ...) PRINTF_LIKE(2, 3);
void snapshot_lacks(struct snapshot *snapshot, const char *format, ...) PRINTF_LIKE(2, 3);

/* Returns the total of all blocks, including blocks without a stack. */
struct block_totals snapshot_total(const struct snapshot *snapshot);

/* Returns the module that contains `addr`, or NULL. `modules` must be sorted by base and must not
 * overlap. */
const struct module *module_at(const struct module *modules, size_t count, uint64_t addr);

/* Returns the module that contains the call before a return address, or NULL. After a call that
 * never returns, the return address itself may lie past the end of the module. */
const struct module *module_of_return(const struct module *modules, size_t count, uint64_t addr);

void modules_sort(struct module *modules, size_t count);

/* Returns the part of a module's path after the last / or \. The path may be in a code page, where a
 * character may contain the byte of a backslash. */
const char *module_path_base(const char *path);

/*
 * Collects the modules of a dump while it is read: the lines of the module table, and the notes
 * about builds that follow the table. module_list_finish() joins lines and notes.
 */

#define MODULE_TEXT_MAX 4096 /* bytes of a path or other string of a module */
/* maximum bytes of a list; many times what a process needs */
#define MODULE_LIST_MAX ((size_t)16 << 20)

struct module_list {
	struct module *items; /* module table; sorted by base after module_list_finish() */
	size_t count, cap;
	struct module *notes; /* identities; size_bytes and path are not set */
	size_t note_count, note_cap;
	size_t bytes; /* size of the items and their strings */
	struct arena *arena; /* owned by the caller; holds the strings */
};

void module_list_init(struct module_list *list, struct arena *arena);
void module_list_release(struct module_list *list);

/* Adds a line of the module table. Returns 0, or -ERR_BAD_LINE if it exceeds the limits. */
int module_list_add(
	struct module_list *list, uint64_t base, uint64_t size_bytes, const char *path, size_t len);

/* Adds a note of kind "module". Returns 0 or -ERR_BAD_LINE. */
int module_list_note(struct module_list *list, const struct kv *pairs);

/* Sorts the modules and adds the identities from the notes. The order does not depend on the order
 * of the input. */
void module_list_finish(struct module_list *list);

/*
 * Blocks in dump order: by heap, then by address. Walkers find most blocks in that order.
 */

/* Blocks [first, end) of a snapshot, all in one heap. */
struct block_span {
	size_t first, end;
};

/* Returns all blocks in dump order, as spans of adjacent array items. Blocks with equal addresses
 * stay in their original order. The caller frees *spans. Returns 0 or -ERR_NOMEM. */
int block_order(const struct snapshot *snapshot, struct block_span **spans, size_t *count);

/* Returns the number of real blocks that one sampled block of this size represents. On average, one
 * allocation per `sample_bytes` bytes was recorded. */
double block_sample_weight(uint64_t requested_bytes, uint64_t sample_bytes);

#endif
