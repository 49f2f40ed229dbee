/*
 * Memory that the tracer keeps in the target, and that hsnap sets up and reads from outside.
 *
 * struct tracer_area is the DLL's data export TRACER_EXPORT. The DLL does nothing by itself. hsnap
 * reserves memory for its tables, fills in the fields "set by hsnap", sets the state to TRACER_ON,
 * and then writes jumps to the hooks into ntdll (snapshot/control/).
 *
 * Everything here and in the tables can be read at any instant, even while every thread of the
 * target is suspended at an arbitrary place:
 * - A block entry is valid if its key is not 0 and tracer_block_is_live(). The key is written last
 *   and cleared first. An entry that is being moved is there twice, and never missing.
 * - A stack record is complete before its id is handed out. After that only its `born` changes,
 *   and the tracer's own `stale`.
 * - Ranges are changing while tracer_ranges.changing is odd: the reader has to read them again
 *   later.
 * - A thread that has changed a block's entry or a stack then counts that in tracer_area.changes.
 *   A piece of a table is as it was read if its count still has the value from before the read,
 *   and its lock is free.
 * - Modules and unloads are complete below their counts, and never change. For unloads that found
 *   no room, only their number and a range around all of them are known: see
 *   tracer_unload_is_lost().
 *
 * Integers are little-endian and laid out alike for 32- and 64-bit targets.
 */
#ifndef SNAPSHOT_TRACER_SHARED_H
#define SNAPSHOT_TRACER_SHARED_H

#include <stddef.h>
#include <stdint.h>

#define TRACER_DLL_64 "hsnap-tracer64.dll"
#define TRACER_DLL_32 "hsnap-tracer32.dll"
#if UINTPTR_MAX > UINT32_MAX /* for programs of our own bitness */
#define TRACER_DLL TRACER_DLL_64
#else
#define TRACER_DLL TRACER_DLL_32
#endif
#define TRACER_EXPORT "hsnap_tracer"
#define TRACER_MAGIC 0x54534e4148435254u /* "TRCHANST" */
#define TRACER_VERSION 10

#define TRACER_DEPTH_MAX 64 /* frames recorded per stack */
#define TRACER_SHARDS 64
#define TRACER_PAGE ((uint64_t)4096)
#define TRACER_HEAPS_LOG2 12
#define TRACER_PIECE ((uint64_t)8192) /* bytes of a table that share a change counter */
#define TRACER_COUNTS 128 /* change counters per table: piece i uses counter i modulo this */
#define TRACER_BARE_IMAGES 64
#define TRACER_NO_MODULE UINT64_MAX /* tracer_unload.module: there was no room for the record */

enum tracer_state {
	TRACER_LOADED, /* nothing is set up yet */
	TRACER_ON,
	TRACER_OFF, /* was on; the hooks are removed and record nothing, the tables may be freed */
};

/*
 * Functions of ntdll that are hooked. Optional ones do not exist in every Windows. The last one is
 * hooked only if child processes are followed.
 */
enum tracer_hook_id {
	HOOK_ALLOCATE, /* RtlAllocateHeap */
	HOOK_REALLOCATE, /* RtlReAllocateHeap */
	HOOK_FREE, /* RtlFreeHeap */
	HOOK_CREATE_HEAP, /* RtlCreateHeap */
	HOOK_DESTROY_HEAP, /* RtlDestroyHeap */
	HOOK_VIRTUAL_ALLOCATE, /* NtAllocateVirtualMemory */
	HOOK_VIRTUAL_ALLOCATE_EX, /* NtAllocateVirtualMemoryEx, optional */
	HOOK_VIRTUAL_FREE, /* NtFreeVirtualMemory */
	HOOK_MAP, /* NtMapViewOfSection */
	HOOK_MAP_EX, /* NtMapViewOfSectionEx, optional */
	HOOK_UNMAP, /* NtUnmapViewOfSection */
	HOOK_UNMAP_EX, /* NtUnmapViewOfSectionEx, optional */
	HOOK_TERMINATE, /* NtTerminateProcess */
	HOOK_CREATE_PROCESS, /* NtCreateUserProcess, optional */
	HOOK_COUNT,
};

struct tracer_hook {
	uint64_t hook; /* set by the DLL: our function; 0: not hooked by this DLL */
	/* Set by hsnap: */
	uint64_t function; /* in ntdll */
	uint64_t original; /* a trampoline: calls the unpatched function; stays after detaching */
	uint8_t old_bytes[16], new_bytes[16];
	uint32_t patch_bytes; /* bytes used of each; 0: not hooked */
	uint32_t unused;
};

/* One live block: 16 bytes, see tracer_block_*() below. */
struct tracer_block {
	uint64_t key; /* address in the low 48 bits, the heap's tag above; 0: free entry */
	uint64_t what; /* stack id in the low TRACER_STACK_BITS, requested bytes above, saturated */
};

#define TRACER_ADDR_BITS 48
#define TRACER_STACK_BITS 27
#define TRACER_SIZE_MAX (((uint64_t)1 << (64 - TRACER_STACK_BITS)) - 1)

/* Part of the live-block table, chosen by the block's address. */
struct tracer_shard {
	uint64_t table; /* address of an array of struct tracer_block; 0: still empty */
	uint32_t lock;
	uint32_t count; /* blocks, including those of destroyed heaps */
	uint32_t broken; /* the lock was never released: the contents are out of date */
	uint32_t cleaned; /* heaps_destroyed when blocks of destroyed heaps were last removed */
	uint32_t waited; /* uses since a heap was destroyed */
	uint32_t order; /* order of the shard's next event (rings.h) */
	/* threads inside RtlReAllocateHeap, whose blocks are not in the table meanwhile */
	uint32_t reallocating;
	uint32_t pages; /* of the table, TRACER_PAGE bytes each: entries may be in any of them */
	uint32_t lines; /* lines that hold the homes; private to the tracer */
	uint32_t unused[5]; /* fills a cache line */
};

/* One stack. Its id is its offset in the stack area divided by 8. */
struct tracer_stack {
	uint32_t unused;
	uint32_t hash;
	uint16_t depth;
	/* nonzero: a module in it has been unloaded since, never handed out again; private to the
	 * tracer */
	uint16_t stale;
	/* Number of unloads when it was last handed out. A frame belongs to the first unload from
	 * that one on that covers it; if none does, to a module that is still loaded. */
	uint32_t born;
	uint64_t frames[]; /* return addresses, innermost first */
};

/* Unloaded module, identified while it was loaded; records are packed, 8-byte aligned. */
struct tracer_module {
	uint32_t record_bytes; /* with path and pdb */
	uint32_t image_bytes, timestamp, checksum; /* from its headers */
	uint8_t guid[16]; /* of its RSDS debug record; all 0 and age 0: has none */
	uint32_t age;
	uint16_t path_units, pdb_bytes; /* UTF-16 units, UTF-8 bytes; not terminated */
	/* followed by the path, then the PDB name */
};

struct tracer_unload {
	uint64_t base, end;
	uint64_t module; /* offset in the area of modules, or TRACER_NO_MODULE */
};

enum tracer_range_kind {
	RANGE_NONE, /* a free node */
	RANGE_RESERVED,
	RANGE_COMMITTED,
	RANGE_MAPPED,
};

/* Bit of tracer_range.kind: the system is being asked to free the range. Another thread may have
 * that memory by now; then that thread's node is the valid one. */
#define RANGE_TAKEN 0x100u

/* Pages of virtual memory that did not come from a heap; a node of a tree (ranges.c). Nodes do not
 * overlap, except those with RANGE_TAKEN. */
struct tracer_range {
	uint64_t start, end;
	uint64_t allocation; /* base of the whole reservation or mapping; 0: unknown */
	uint32_t kind; /* enum tracer_range_kind, perhaps with RANGE_TAKEN */
	uint32_t stack; /* id of the stack that committed, reserved or mapped it */
	uint32_t reserve_stack; /* id of the stack that reserved the memory of a commit */
	uint32_t left, right, priority; /* indices of nodes + 1; private to the tracer */
};

struct tracer_ranges {
	uint64_t nodes, node_limit; /* address, maximum number */
	uint32_t node_count; /* nodes ever used: no other node is valid */
	uint32_t changing; /* odd while they change */
	uint32_t lock, root, free;
	uint32_t broken; /* the lock was never released: the contents are out of date */
	uint32_t order; /* order of the next event (rings.h) */
	uint32_t unused;
};

struct tracer_area {
	uint64_t magic;
	uint32_t version, area_bytes;
	uint32_t state, unused_word;
	uint32_t pointer_bytes;
	uint32_t flags; /* set by hsnap: TRACER_FLAG_* */

	/* Set by hsnap before the state is TRACER_ON. The parts of the tables share one reservation
	 * (snapshot/control/patch_plan.h). */
	uint64_t reserved, reserved_bytes;
	/* address of the rings of a recording (rings.h); 0: no recording, or hsnap has exited
	 * since */
	uint64_t rings;
	uint64_t sample_bytes; /* 0: every block is recorded; otherwise one per this many bytes */
	uint64_t limit_bytes; /* bytes of the reservation that may be committed */
	uint64_t trampolines, trampolines_bytes;

	uint64_t committed_bytes; /* of all tables */
	uint64_t stacks; /* address of the stack area */
	uint64_t stacks_top; /* bytes used of it */
	uint64_t stacks_committed, stacks_limit; /* bytes */
	uint64_t stack_buckets; /* address; the bits below 64 KiB are private to the tracer */
	/* address of the first shard's room, and bytes of each */
	uint64_t shard_tables, shard_bytes;
	uint64_t modules, modules_top, modules_limit; /* address, bytes */
	/* address and number; the count still rises when the limit is reached */
	uint64_t unloads, unload_count, unload_limit;
	struct tracer_ranges ranges;

	/* Counters of what the tables lack. */
	uint64_t dropped_blocks; /* not recorded: no room, or a broken shard */
	uint64_t dropped_stacks; /* blocks and ranges recorded with stack 0 */
	uint64_t dropped_ranges; /* no room; after ranges.broken: any change */
	uint64_t dropped_unloads;
	uint64_t unwind_mismatches; /* stacks for which the cached unwinder was wrong */
	uint64_t lost_from, lost_to; /* range around all unloads that found no room */
	uint64_t heaps_destroyed;

	/* Handles of the target's process, set by hsnap before the program starts, or 0. At exit
	 * the target sets exit_reached and waits for exit_continue or the end of hsnap_process. */
	uint64_t exit_reached, exit_continue, hsnap_process;
	/* TRACER_FLAG_CHILDREN: a thread that has created a process stores its ids here and sets
	 * child_created. Then it waits for child_taken or the end of hsnap_process. One thread at a
	 * time. */
	uint64_t child_created, child_taken;
	uint32_t child_pid, child_tid, child_lock;
	/* set by hsnap: another number whenever the tracer is turned on, never 0 */
	uint32_t session;
	uint32_t unload_lock, unload_broken;
	/* set by the DLL: memory that hsnap zeroes before the tracer is turned on again */
	uint64_t clear, clear_bytes;
	uint64_t unwind_base; /* set by hsnap: unwind_mismatches of all earlier sessions */
	uint64_t rings_view; /* set by hsnap: address of the mapped section of the rings, or 0 */
	/* set by hsnap: handle of the process that empties the rings, or 0 */
	uint64_t rings_process;
	/* Changes whenever a module is loaded, before its code runs; 0: the loader does not
	 * notify. */
	uint32_t load_count;
	uint32_t exit_thread; /* id of the thread that has set exit_reached; it holds locks */
	uint32_t unused[6];

	/* The rest begins on a cache line. */
	struct tracer_hook hooks[HOOK_COUNT];
	struct tracer_shard shards[TRACER_SHARDS];
	/* Handle and state (TRACER_HEAP_*) of each heap; index 0: unknown heap. */
	uint64_t heaps[(size_t)1 << TRACER_HEAPS_LOG2];
	/* Change counters: changes[shard][piece % TRACER_COUNTS]; the last row counts the stack
	 * area. */
	uint32_t changes[TRACER_SHARDS + 1][TRACER_COUNTS];
	/* Bases of 32-bit images without unwinding rules that stacks passed through, 0 after the
	 * last one. Such code was unwound by EBP alone. Set by the DLL, and kept until the process
	 * exits. */
	uint32_t bare_images[TRACER_BARE_IMAGES];
};

#define TRACER_FLAG_ATTACHED                                                                       \
	1u /* the program ran before: there may be blocks that the tracer did not see */
#define TRACER_FLAG_CHILDREN 2u
#define TRACER_FLAG_RECORDING 4u /* on for a recording alone, and turned off with it */
#define TRACER_FLAG_LISTED                                                                         \
	8u /* the older blocks are in the table, too, with stack 0: it is complete */
#define TRACER_FLAG_BSTR_CACHE 16u /* COM's cache of strings is not known to be off */

_Static_assert(sizeof(struct tracer_hook) == 64, "layout");
_Static_assert(sizeof(struct tracer_block) == 16, "layout");
_Static_assert(sizeof(struct tracer_shard) == 64, "layout");
_Static_assert(sizeof(struct tracer_stack) == 16, "layout");
_Static_assert(sizeof(struct tracer_module) == 40, "layout");
_Static_assert(sizeof(struct tracer_unload) == 24, "layout");
_Static_assert(sizeof(struct tracer_range) == 48, "layout");
_Static_assert(sizeof(struct tracer_ranges) == 48, "layout");
_Static_assert(offsetof(struct tracer_area, ranges) == 200, "layout");
_Static_assert(offsetof(struct tracer_area, hooks) == 448, "layout");
_Static_assert(offsetof(struct tracer_area, shards) % 64 == 0, "a shard shares no cache line");
_Static_assert(sizeof(struct tracer_area) ==
		       448 + 64 * (HOOK_COUNT + TRACER_SHARDS) + (8 << TRACER_HEAPS_LOG2) +
			       4 * (TRACER_SHARDS + 1) * TRACER_COUNTS + 4 * TRACER_BARE_IMAGES,
	"layout");

/* Returns true if any thread is inside RtlReAllocateHeap. */
static inline int tracer_is_reallocating(const struct tracer_shard shards[TRACER_SHARDS])
{
	uint32_t count = 0;

	for (unsigned i = 0; i < TRACER_SHARDS; i++)
		count |= shards[i].reallocating;
	return count != 0;
}

static inline uint64_t tracer_block_addr(const struct tracer_block *block)
{
	return block->key & (((uint64_t)1 << TRACER_ADDR_BITS) - 1);
}

/*
 * The destruction of a heap ends all its blocks, and must not take time. So each block stores its
 * heap's tag: the index in tracer_area.heaps, and a generation, which changes when a heap is
 * created at the same address again. Blocks of a generation other than the heap's are to be
 * ignored.
 */
#define TRACER_HEAP_GENERATIONS 16u
/* States, each with or without the heap's generation: from TRACER_HEAP_DEAD on, no block of the
 * heap is live. */
#define TRACER_HEAP_DEAD 16u /* destroyed */
#define TRACER_HEAP_CLEANING 32u /* in use again once the remaining blocks are removed */
#define TRACER_HEAP_LEAVING 48u /* being destroyed, which may be refused */
#define TRACER_HEAP_STATE 63u /* bits of tracer_area.heaps that are not part of the handle */

static inline uint32_t tracer_block_heap(const struct tracer_block *block)
{
	return (uint32_t)(block->key >> TRACER_ADDR_BITS) & ((1u << TRACER_HEAPS_LOG2) - 1);
}

static inline uint64_t tracer_heap_handle(const struct tracer_area *area, uint32_t index)
{
	return area->heaps[index] & ~(uint64_t)TRACER_HEAP_STATE;
}

/* Returns true if the block's heap has not been destroyed. */
static inline int tracer_block_is_live(
	const struct tracer_area *area, const struct tracer_block *block)
{
	uint32_t index = tracer_block_heap(block);
	uint64_t heap = __atomic_load_n(&area->heaps[index], __ATOMIC_RELAXED);
	uint64_t generation = block->key >> (TRACER_ADDR_BITS + TRACER_HEAPS_LOG2);

	return !index || (heap & TRACER_HEAP_STATE) == generation;
}

static inline uint32_t tracer_block_stack(const struct tracer_block *block)
{
	return (uint32_t)(block->what & (((uint32_t)1 << TRACER_STACK_BITS) - 1));
}

static inline uint64_t tracer_block_bytes(const struct tracer_block *block)
{
	return block->what >> TRACER_STACK_BITS;
}

/* Returns the index of a table's change counter for the byte at an offset. */
static inline size_t tracer_count_of(uint64_t offset)
{
	return (size_t)(offset / TRACER_PIECE % TRACER_COUNTS);
}

/* Returns the number of unloads that can be looked up. */
static inline uint64_t tracer_unloads_kept(const struct tracer_area *area)
{
	uint64_t count = __atomic_load_n(&area->unload_count, __ATOMIC_ACQUIRE);

	return count < area->unload_limit ? count : area->unload_limit;
}

/*
 * Returns true if a frame of a stack may be in a module whose unload found no room, so that the
 * module is unknown. To be called if no unload from born on covers the frame, before loaded modules
 * are searched.
 */
static inline int tracer_unload_is_lost(
	const struct tracer_area *area, uint32_t born, uint64_t frame)
{
	uint64_t count = __atomic_load_n(&area->unload_count, __ATOMIC_ACQUIRE);

	return count > area->unload_limit && born < count && frame >= area->lost_from &&
	       frame < area->lost_to;
}

/* Makes an entry. heap: the tag from heapindex_of(). stack: 0 if the stack found no room. */
static inline struct tracer_block tracer_block_make(
	uint64_t addr, uint32_t heap, uint32_t stack, uint64_t bytes)
{
	if (bytes > TRACER_SIZE_MAX)
		bytes = TRACER_SIZE_MAX;
	return (struct tracer_block){
		.key = addr | (uint64_t)heap << TRACER_ADDR_BITS,
		.what = bytes << TRACER_STACK_BITS | stack,
	};
}

#endif
