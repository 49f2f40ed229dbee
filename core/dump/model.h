/* The model: a snapshot in memory, its modules, the order of its blocks. */
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
 * the target's. "requested" is what the program asked for, "overhead" what the heap adds to it.
 */

struct module {
	uint64_t base, size_bytes;
	const char *path;
	/* What tells one build from another, when has_identity is true. */
	const char *pdb; /* file name the image asks for, or NULL */
	const char *pdb_guid; /* 32 hexadecimal digits, or NULL */
	uint32_t pdb_age;
	uint32_t timestamp, checksum; /* of the image's headers */
	bool has_identity;
	/* Where it lay last, when it is not loaded any more: base then is one that it never had, to tell
	 * its frames from those of what came to its place. Else 0. */
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
	/* "nt", "segment", "page", "wine", "unknown": who walked it; "virtual", "reserved", "mapped":
	 * it is none, see heap_name() */
	const char *kind;
	const char *layout; /* which of its kind's layouts was used, or NULL */
	uint64_t committed_bytes, reserved_bytes;
	/* Of a sample, where entries and stackless are estimates: what the walk counted, if has_exact. */
	struct block_totals exact;
	struct block_totals stackless; /* blocks no stack is known for; they are not in blocks[] */
	struct block_totals
		stackless_lost; /* of them, those that nothing leads to but what is lost */
	unsigned bits; /* 32, 64; 0 when not recorded */
	bool has_exact;
	bool unwalked; /* no walker knows this heap: blocks are those the tracer saw */
	bool is_partial; /* its walk met damage or missing memory: blocks are also those the tracer saw */
	/* Sizes may be too large by less than a size class, after a block was shrunk in place. */
	bool has_loose_sizes;
	bool is_complete; /* unwalked or partial, but the tracer saw every block of it */
	uint64_t traced_only; /* number of blocks that the tracer has and the walk has not */
};

/*
 * Headings of memory that is in no heap, in the place of a heap's address: nothing can lie there.
 * "reserved" is address space that is not committed, and no memory.
 */
enum {
	HEAP_VIRTUAL = 1, /* committed by VirtualAlloc */
	HEAP_RESERVED, /* reserved by it */
	HEAP_MAPPED, /* views of sections */
};

/* What such a heading is called, "VirtualAlloc reserved"; NULL: it is a heap's address. */
const char *heap_name(uint64_t addr);
/* Its kind, "reserved"; NULL as above. */
const char *heap_heading_kind(uint64_t addr);

/* The heading of that name, or that kind ("reserved"), in letters of either case; 0: there is none. */
uint64_t heap_by_name(const char *name);

/* What leads to a block. */
enum block_reach {
	BLOCK_HELD, /* something does, or nobody looked */
	BLOCK_INTERIOR, /* only pointers into its middle */
	BLOCK_LOST, /* nothing */
	BLOCK_LOST_WITH, /* only lost blocks; by block its value is this and more: the place in lost of the one */
};
#define BLOCK_REACHES (BLOCK_LOST_WITH + 1)

/* "held", "interior", "lost", "lost-with". */
const char *block_reach_name(enum block_reach reach);

#if __has_attribute(gcc_struct) /* on Windows fields of bits fill whole units else */
#define BLOCK_PACKED __attribute__((packed, aligned(8), gcc_struct))
#else
#define BLOCK_PACKED __attribute__((packed, aligned(8)))
#endif

/* 24 bytes, for there are millions. Who fills one with what a process or file says asks block_fits(). */
struct block {
	uint64_t addr : 48;
	uint64_t requested_bytes : 48;
	uint64_t overhead_bytes : 40;
	uint64_t heap : 24; /* index into heaps */
	uint64_t stack : 32; /* index into stacks.stacks */
} BLOCK_PACKED;

#define BLOCK_OVERHEAD_MAX (((uint64_t)1 << 40) - 1)
#define BLOCK_HEAPS_MAX ((size_t)1 << 24)

/* False: there is no room for one like that, which no process can have. */
static inline bool block_fits(uint64_t addr, uint64_t requested_bytes)
{
	return !((addr | requested_bytes) >> 48);
}

/* What blocks of one stack and heap add up to, in a snapshot that does not tell them one by one. */
struct block_sum {
	uint64_t block_count, requested_bytes, overhead_bytes; /* of all of them; block_count > 0 */
	uint32_t heap, stack; /* as those of a block */
	enum block_reach reach;
};

/* The first bytes of a block, of which some words lead to other blocks. */
#define CONTENT_BYTES_MAX 64
struct block_content {
	uint64_t addr, requested_bytes;
	uint32_t stack; /* as that of a block */
	uint32_t len; /* of bytes */
	unsigned char bytes[CONTENT_BYTES_MAX];
};
struct content_pointer {
	uint32_t content; /* index into contents */
	uint32_t offset; /* of the word */
	uint64_t to, requested_bytes; /* the block that it is an address in */
	uint32_t stack;
};

/* A note of kind "content", as it is read; stack: its id, as long as the pairs. 0 or -ERR_BAD_LINE. */
struct content_note {
	struct block_content content;
	unsigned bits; /* of a word */
	const char *stack;
};
int content_note_read(const struct kv *kv, struct content_note *note);

/* A word of so many bits, of which len bytes are there at most. */
uint64_t content_word(const unsigned char *bytes, size_t len, unsigned bits);

/* What is known of the system's database of stacks, where blocks point into it (source "ust"). */
struct stack_records {
	bool is_known; /* that there are such records at all */
	uint64_t record_count,
		broken_count, /* that blocks point to; of these, those without sense */
		cut_count; /* and those that say they have more frames than could be read */
	uint64_t database; /* its address; 0: it was not found, and what follows is not known */
	/* Stacks in it; questions asked of it; allocations whose stack found no room. */
	uint64_t entry_count, lookup_count, failure_count;
	/* Of the entries, how many its index and how many its hash chains lead to. */
	uint64_t indexed_count, chained_count;
	uint64_t used_bytes, reserved_bytes;
};

/* What is known of the tracer that stacks come from. */
struct tracer_facts {
	uint32_t version; /* 0: there is none */
	/* What it had no room for. */
	uint64_t dropped_blocks, dropped_stacks, dropped_ranges, dropped_unloads;
	uint64_t mismatch_count; /* stacks where its fast unwinder was found wrong */
	bool is_attached; /* the program ran before */
	struct block_totals
		before; /* blocks from before, which have no stack; not known in a sample */
	uint64_t limit_bytes, committed_bytes; /* of its tables */
	uint64_t sample_bytes; /* one in so many was recorded, all figures are estimates; 0: all */
};

struct snapshot {
	struct arena arena;
	uint32_t pid, parent_pid; /* 0 when not recorded */
	unsigned bits; /* 32, 64; 0 when not recorded */
	int64_t time_ms, start_ms; /* of the snapshot and of the process; 0 when not recorded */
	int64_t clock_ms; /* os_clock_ms() at the snapshot; 0 when not recorded */
	const char *image, *os, *host; /* or NULL; host: the name of the machine it ran on */
	const char *stack_source; /* "tracer", "ust", "none"; NULL when not recorded */
	struct module *modules;
	size_t module_count, module_cap;
	struct heap *heaps;
	size_t heap_count, heap_cap;
	struct block *blocks;
	size_t block_count, block_cap;
	struct block_sum *sums; /* beside blocks; by heap */
	size_t sum_count, sum_cap;
	bool has_reach; /* what leads to blocks was looked at */
	bool by_middle; /* and pointers into the middle count */
	uint64_t part_held_count; /* blocks that only parts of words lead to */
	uint32_t *reach; /* of the first reach_count blocks (enum block_reach); others are held */
	size_t reach_count, reach_cap;
	uint64_t *lost; /* addresses of blocks that others are lost with */
	size_t lost_count, lost_cap;
	struct block_content *contents; /* of some blocks, by stack */
	size_t content_count, content_cap;
	struct content_pointer *pointers; /* in the order of contents and offsets */
	size_t pointer_count, pointer_cap;
	bool is_by_stack; /* there is one sum for each stack and heap, and no block */
	struct stackset stacks;
	struct stack_records records;
	struct tracer_facts tracer;
	const char **warnings; /* what could not be read, one sentence each */
	size_t warning_count, warning_cap;
	uint64_t missing_count; /* of them, those because of which blocks or ranges are missing */
};

void snapshot_init(struct snapshot *snapshot);
void snapshot_release(struct snapshot *snapshot);

/* Each adds one zeroed item and returns it, valid until the next is added. */
struct module *snapshot_add_module(struct snapshot *snapshot);
struct heap *snapshot_add_heap(struct snapshot *snapshot);
struct block *snapshot_add_block(struct snapshot *snapshot);
struct block_sum *snapshot_add_sum(struct snapshot *snapshot);

/* Adds a module with copies of its texts. */
void snapshot_copy_module(struct snapshot *snapshot, const struct module *module);

/* What leads to block i, as in struct snapshot. */
static inline uint32_t snapshot_reach(const struct snapshot *snapshot, size_t i)
{
	return i < snapshot->reach_count ? snapshot->reach[i] : BLOCK_HELD;
}

/* Each adds a printf-formatted warning. snapshot_lacks() is for
 * heaps, memory, blocks or ranges that are known to be missing: it makes the snapshot incomplete. */
void snapshot_warn(struct snapshot *snapshot, const char *format, ...) PRINTF_LIKE(2, 3);
void snapshot_lacks(struct snapshot *snapshot, const char *format, ...) PRINTF_LIKE(2, 3);

/* All blocks, with those without a stack. */
struct block_totals snapshot_total(const struct snapshot *snapshot);

/* The module that addr lies in, or NULL. modules must be sorted by base and must not overlap. */
const struct module *module_at(const struct module *modules, size_t count, uint64_t addr);

/* The module that a return address belongs to: the call before it counts, since when that never
 * returns the address itself may lie behind the module. NULL: none. */
const struct module *module_of_return(const struct module *modules, size_t count, uint64_t addr);

/* Sorts by base. */
void modules_sort(struct module *modules, size_t count);

/* The part of a module's path behind the last / or \. */
const char *module_path_base(const char *path);

/*
 * The modules of a dump while it is read: lines of the module table, and notes about builds that
 * come later. module_list_finish() joins them.
 */

#define MODULE_TEXT_MAX 4096 /* bytes of a path, or of another text about a module */
#define MODULE_LIST_MAX ((size_t)16 << 20) /* bytes of one list, many times what a process has */

struct module_list {
	struct module *items; /* after module_list_finish(): sorted by base */
	size_t count, cap;
	struct module *notes; /* base and identity */
	size_t note_count, note_cap;
	size_t bytes; /* of all that is in it */
	struct arena *arena; /* the caller's; texts are copied into it */
};

void module_list_init(struct module_list *list, struct arena *arena);
void module_list_release(struct module_list *list);

/* A line of the module table: 0, or -ERR_BAD_LINE when it is more than is kept. */
int module_list_add(
	struct module_list *list, uint64_t base, uint64_t size_bytes, const char *path, size_t len);

/* A note of kind "module": 0 or -ERR_BAD_LINE. */
int module_list_note(struct module_list *list, const struct kv *pairs);

/* Sorts the modules, in a total order, and gives them the identities that the notes tell. */
void module_list_finish(struct module_list *list);

/*
 * Blocks in the order of a dump: by heap, then by address. Walkers find most of them in that order.
 */

/* Blocks first..end of a snapshot, of one heap. */
struct block_span {
	size_t first, end;
};

/* All blocks in order, as spans of them that stand next to each other; blocks that have one place stay as they were
 * among each other. The caller frees *spans. 0 or -ERR_NOMEM. */
int block_order(const struct snapshot *snapshot, struct block_span **spans, size_t *count);

/* Where one in so many bytes was recorded: of a block of that size, how many like it one that was stands for. */
double block_sample_weight(uint64_t requested_bytes, uint64_t sample_bytes);

#endif
