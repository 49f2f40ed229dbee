/* The model: a snapshot in memory, its modules, and the order of its blocks. */
#ifndef CORE_DUMP_MODEL_H
#define CORE_DUMP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/dump/kv.h"
#include "core/dump/stackset.h"

/*
 * A snapshot of one process's heaps, in memory.
 *
 * struct snapshot owns everything it points to; snapshot_release() frees it at once. Addresses are
 * the target's. "requested" bytes are those that the program asked the heap to allocate; "overhead"
 * bytes are those that the heap adds.
 */

struct module {
	uint64_t base, size_bytes;
	const char *path;
	/* Identity of the build, if has_identity. */
	const char *pdb; /* file name of the PDB, or NULL */
	const char *pdb_guid; /* 32 hexadecimal digits, or NULL */
	uint32_t pdb_age;
	uint32_t timestamp, checksum; /* of the image's headers */
	bool has_identity;
	/* Last base address of an unloaded module, otherwise 0. base of such a module is an address
	 * that it never had. That distinguishes its frames from those of a later module at the same
	 * place. */
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

struct heap {
	uint64_t addr;
	/* "nt", "segment", "page", "wine", "unknown": the walker; "virtual", "reserved", "mapped":
	 * not a heap, see heap_name() */
	const char *kind;
	const char *layout; /* layout of that kind that was used, or NULL */
	uint64_t committed_bytes, reserved_bytes;
	/* In a sampled snapshot, whose entries and stackless are estimates: the walk's totals, if
	 * has_exact. */
	struct block_totals exact;
	struct block_totals stackless; /* blocks without a known stack; they are not in blocks[] */
	struct block_totals stackless_lost; /* the lost ones among them */
	unsigned bits; /* 32, 64; 0: not recorded */
	bool has_exact;
	bool unwalked; /* no walker knows this heap: blocks are those that the tracer recorded */
	/* The walk met damage or missing memory: blocks include those that only the tracer
	 * recorded. */
	bool is_partial;
	/* After a block was shrunk in place, sizes may be too large by less than a size class. */
	bool has_loose_sizes;
	bool is_complete; /* unwalked or partial, but the tracer recorded every block */
	/* Number of blocks that the tracer recorded and the walk did not find. */
	uint64_t traced_only;
};

/* Headings of memory outside heaps, used in the place of a heap's address: no heap can lie there.
 * "reserved" is address space that is not committed, so it is not memory. */
enum {
	HEAP_VIRTUAL = 1, /* committed by VirtualAlloc */
	HEAP_RESERVED, /* reserved by VirtualAlloc */
	HEAP_MAPPED, /* views of sections */
};

/* Returns the name of such a heading ("VirtualAlloc reserved"), or NULL for a heap's address. */
const char *heap_name(uint64_t addr);
/* Returns the kind of such a heading ("reserved"), or NULL for a heap's address. */
const char *heap_heading_kind(uint64_t addr);

/* Returns the heading with that name or kind ("reserved"), in either case; 0: none. */
uint64_t heap_by_name(const char *name);

/* How a block can be reached. */
enum block_reach {
	BLOCK_HELD, /* by some pointer, or reachability is unknown */
	BLOCK_INTERIOR, /* only by pointers into its middle */
	BLOCK_LOST, /* by nothing */
	/* Only from lost blocks; in snapshot.reach, BLOCK_LOST_WITH + i means: lost with the block
	 * at lost[i]. */
	BLOCK_LOST_WITH,
};
#define BLOCK_REACHES (BLOCK_LOST_WITH + 1)

/* Returns "held", "interior", "lost" or "lost-with". */
const char *block_reach_name(enum block_reach reach);

#if __has_attribute(gcc_struct) /* on Windows, bit fields would fill whole units otherwise */
#define BLOCK_PACKED __attribute__((packed, aligned(8), gcc_struct))
#else
#define BLOCK_PACKED __attribute__((packed, aligned(8)))
#endif

/* 24 bytes, because there are millions. Check data of a process or file with block_fits() first. */
struct block {
	uint64_t addr : 48;
	uint64_t requested_bytes : 48;
	uint64_t overhead_bytes : 40;
	uint64_t heap : 24; /* index into heaps */
	uint64_t stack : 32; /* index into stacks.stacks */
} BLOCK_PACKED;

#define BLOCK_OVERHEAD_MAX (((uint64_t)1 << 40) - 1)
#define BLOCK_HEAPS_MAX ((size_t)1 << 24)

/* Returns false for values that are too large for struct block, which no process can have. */
static inline bool block_fits(uint64_t addr, uint64_t requested_bytes)
{
	return !((addr | requested_bytes) >> 48);
}

/* The sum of the blocks of one stack and heap, in a snapshot without single blocks. */
struct block_sum {
	uint64_t block_count, requested_bytes, overhead_bytes; /* totals; block_count > 0 */
	uint32_t heap, stack; /* as in struct block */
	enum block_reach reach;
};

/* The first bytes of a block, and the words in it that point to other blocks. */
#define CONTENT_BYTES_MAX 64
struct block_content {
	uint64_t addr, requested_bytes;
	uint32_t stack; /* as in struct block */
	uint32_t len; /* number of bytes */
	unsigned char bytes[CONTENT_BYTES_MAX];
};
struct content_pointer {
	uint32_t content; /* index into contents */
	uint32_t offset; /* of the word, in bytes */
	uint64_t to, requested_bytes; /* the block that the word points into */
	uint32_t stack;
};

/* A parsed note of kind "content"; stack is the id of its stack, valid as long as the pairs. The
 * function returns 0 or -ERR_BAD_LINE. */
struct content_note {
	struct block_content content;
	unsigned bits; /* size of a word */
	const char *stack;
};
int content_note_read(const struct kv *kv, struct content_note *note);

/* Returns the word of this many bits at bytes, of which only len bytes may be available. */
uint64_t content_word(const unsigned char *bytes, size_t len, unsigned bits);

/* Facts about the system's stack database, if blocks point into it (source "ust"). */
struct stack_records {
	bool is_known; /* true if such records exist */
	uint64_t record_count,
		broken_count, /* records that blocks point to; the invalid ones among them */
		cut_count; /* those that claim more frames than could be read */
	uint64_t database; /* its address; 0: not found, and the following members are unknown */
	/* Stacks in it; lookups; allocations whose stack did not fit. */
	uint64_t entry_count, lookup_count, failure_count;
	/* Entries that its index and its hash chains lead to. */
	uint64_t indexed_count, chained_count;
	uint64_t used_bytes, reserved_bytes;
};

/* Facts about the tracer as the source of stacks. */
struct tracer_facts {
	uint32_t version; /* 0: no tracer */
	/* Items that did not fit into its tables. */
	uint64_t dropped_blocks, dropped_stacks, dropped_ranges, dropped_unloads;
	uint64_t mismatch_count; /* stacks for which the fast unwinder was wrong */
	bool is_attached; /* the tracer was attached to a running program */
	/* Blocks that are older than the tracer and have no stack; unknown in a sample. */
	struct block_totals before;
	uint64_t limit_bytes, committed_bytes; /* size of its tables */
	/* One allocation per this many bytes was recorded, and all figures are estimates; 0: no
	 * sampling. */
	uint64_t sample_bytes;
};

struct snapshot {
	struct arena arena;
	uint32_t pid, parent_pid; /* 0: not recorded */
	unsigned bits; /* 32, 64; 0: not recorded */
	int64_t time_ms, start_ms; /* of the snapshot and of the process; 0: not recorded */
	int64_t clock_ms; /* os_clock_ms() at the snapshot; 0: not recorded */
	const char *image, *os, *host; /* NULL: not recorded; host: name of the machine */
	const char *stack_source; /* "tracer", "ust", "none"; NULL: not recorded */
	struct module *modules;
	size_t module_count, module_cap;
	struct heap *heaps;
	size_t heap_count, heap_cap;
	struct block *blocks;
	size_t block_count, block_cap;
	struct block_sum *sums; /* in addition to blocks; ordered by heap */
	size_t sum_count, sum_cap;
	bool has_reach; /* reachability was examined */
	bool by_middle; /* pointers into the middle of a block count */
	uint64_t part_held_count; /* blocks that only parts of words point to */
	uint32_t *reach; /* enum block_reach of the first reach_count blocks; the others are held */
	size_t reach_count, reach_cap;
	uint64_t *lost; /* addresses of the blocks that others are lost with */
	size_t lost_count, lost_cap;
	struct block_content *contents; /* of some blocks; ordered by stack */
	size_t content_count, content_cap;
	struct content_pointer *pointers; /* ordered by content and offset */
	size_t pointer_count, pointer_cap;
	bool is_by_stack; /* one sum for each stack and heap, and no blocks */
	struct stackset stacks;
	struct stack_records records;
	struct tracer_facts tracer;
	const char **warnings; /* one sentence each about data that could not be read */
	size_t warning_count, warning_cap;
	uint64_t missing_count; /* number of warnings about missing blocks or ranges */
};

void snapshot_init(struct snapshot *snapshot);
void snapshot_release(struct snapshot *snapshot);

/* Add a zeroed item and return it. The pointer is valid until the next item is added. */
struct module *snapshot_add_module(struct snapshot *snapshot);
struct heap *snapshot_add_heap(struct snapshot *snapshot);
struct block *snapshot_add_block(struct snapshot *snapshot);
struct block_sum *snapshot_add_sum(struct snapshot *snapshot);

/* Adds a copy of a module and its texts. */
void snapshot_copy_module(struct snapshot *snapshot, const struct module *module);

/* Returns how block i can be reached, as in struct snapshot. */
static inline uint32_t snapshot_reach(const struct snapshot *snapshot, size_t i)
{
	return i < snapshot->reach_count ? snapshot->reach[i] : BLOCK_HELD;
}

/* Add a printf-formatted warning. snapshot_lacks() is for heaps, memory, blocks or ranges that are
 * known to be missing: it makes the snapshot incomplete. */
void snapshot_warn(struct snapshot *snapshot, const char *format, ...) PRINTF_LIKE(2, 3);
void snapshot_lacks(struct snapshot *snapshot, const char *format, ...) PRINTF_LIKE(2, 3);

/* Returns the total of all blocks, including those without a stack. */
struct block_totals snapshot_total(const struct snapshot *snapshot);

/* Returns the module that contains addr, or NULL. modules must be sorted by base and must not
 * overlap. */
const struct module *module_at(const struct module *modules, size_t count, uint64_t addr);

/* Returns the module of a return address, or NULL. Looks up the call before it: if the called
 * function never returns, the address itself may lie past the end of the module. */
const struct module *module_of_return(const struct module *modules, size_t count, uint64_t addr);

void modules_sort(struct module *modules, size_t count);

/* Returns the part of a module's path after the last / or \. */
const char *module_path_base(const char *path);

/*
 * The modules of a dump while it is read: lines of the module table, and notes about builds that
 * follow. module_list_finish() joins them.
 */

#define MODULE_TEXT_MAX 4096 /* bytes of a path or another text of a module */
#define MODULE_LIST_MAX ((size_t)16 << 20) /* bytes of one list; many times what a process needs */

struct module_list {
	struct module *items; /* sorted by base after module_list_finish() */
	size_t count, cap;
	struct module *notes; /* base and identity */
	size_t note_count, note_cap;
	size_t bytes; /* size of its items and texts */
	struct arena *arena; /* the caller's; holds the texts */
};

void module_list_init(struct module_list *list, struct arena *arena);
void module_list_release(struct module_list *list);

/* Adds a line of the module table. Returns 0, or -ERR_BAD_LINE if it exceeds the limits. */
int module_list_add(
	struct module_list *list, uint64_t base, uint64_t size_bytes, const char *path, size_t len);

/* Adds a note of kind "module". Returns 0 or -ERR_BAD_LINE. */
int module_list_note(struct module_list *list, const struct kv *pairs);

/* Sorts the modules in a total order and adds the identities from the notes. */
void module_list_finish(struct module_list *list);

/*
 * Blocks in the order of a dump: by heap, then by address. Walkers find most blocks in that order.
 */

/* Blocks first to end - 1 of a snapshot, all of one heap. */
struct block_span {
	size_t first, end;
};

/* Returns all blocks in order, as spans of consecutive blocks; blocks with equal addresses keep
 * their order. The caller frees *spans. Returns 0 or -ERR_NOMEM. */
int block_order(const struct snapshot *snapshot, struct block_span **spans, size_t *count);

/* Returns the number of blocks that one recorded block of this size stands for, if one allocation
 * per sample_bytes bytes was recorded. */
double block_sample_weight(uint64_t requested_bytes, uint64_t sample_bytes);

#endif
