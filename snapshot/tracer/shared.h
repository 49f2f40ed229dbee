/*
 * The memory that the tracer keeps in the target, and that hsnap sets up and reads from outside.
 *
 * struct tracer_area is the DLL's data export TRACER_EXPORT. The DLL does nothing by itself: hsnap
 * reserves memory for its tables, fills in the part "set by hsnap", sets the state to TRACER_ON, and
 * then writes jumps to the hooks into ntdll (snapshot/control/).
 *
 * Everything here and in the tables can be read at any instant, also while every thread of the target
 * is suspended wherever it stood:
 *  - A block entry is valid when its key is not 0 and tracer_block_is_live(); the key is written last
 *    and cleared first. An entry that is being moved is there twice; it is never missing.
 *  - A stack record is complete before its id is handed out; of it only born changes after that.
 *  - Ranges are being changed while tracer_ranges.changing is odd: then they are read again later.
 *  - Whoever changed a block's entry or a stack counts that in tracer_area.changes, behind it: a piece of
 *    a table whose count is what it was before the piece was read, and whose lock is free, is as it was read.
 *  - Modules and unloads are complete below their counts, and never change. Of unloads that found no
 *    room only the number and a range around all of them are known, see tracer_unload_is_lost().
 * Integers are little-endian and laid out alike for 32- and 64-bit targets.
 */
#ifndef SNAPSHOT_TRACER_SHARED_H
#define SNAPSHOT_TRACER_SHARED_H

#include <stddef.h>
#include <stdint.h>

#define TRACER_DLL_64 "hsnap-tracer64.dll"
#define TRACER_DLL_32 "hsnap-tracer32.dll"
#if UINTPTR_MAX > UINT32_MAX /* of programs of our own bitness */
#define TRACER_DLL TRACER_DLL_64
#else
#define TRACER_DLL TRACER_DLL_32
#endif
#define TRACER_EXPORT "hsnap_tracer"
#define TRACER_MAGIC 0x54534e4148435254u /* "TRCHANST" */
#define TRACER_VERSION 10

#define TRACER_DEPTH_MAX 64 /* frames kept of one stack */
#define TRACER_SHARDS 64
#define TRACER_PAGE ((uint64_t)4096)
#define TRACER_HEAPS_LOG2 12
#define TRACER_PIECE ((uint64_t)8192) /* bytes of a table whose changes are counted together */
#define TRACER_COUNTS 128 /* of each table: one for each so many'th piece */
#define TRACER_BARE_IMAGES 64
#define TRACER_NO_MODULE UINT64_MAX /* tracer_unload.module: there was no room to say which */

enum tracer_state {
	TRACER_LOADED, /* nothing is set up yet */
	TRACER_ON,
	TRACER_OFF, /* was on; the hooks are out and record nothing, the tables may be gone */
};

/*
 * The functions of ntdll that are hooked. Optional ones are not there in every Windows; the last one
 * is hooked only where child processes are followed.
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
	uint64_t hook; /* set by the DLL: our function; 0: this DLL does not hook it */
	/* Set by hsnap: */
	uint64_t function; /* in ntdll */
	uint64_t original; /* a trampoline: calls the function as it was. Stays after detaching. */
	uint8_t old_bytes[16], new_bytes[16];
	uint32_t patch_bytes; /* how many of them; 0: not hooked */
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

/* A part of the live-block table, chosen by the block's address. */
struct tracer_shard {
	uint64_t table; /* address of an array of struct tracer_block; 0: empty yet */
	uint32_t lock;
	uint32_t count; /* with blocks of destroyed heaps */
	uint32_t broken; /* its lock was never given back: what it holds is old */
	uint32_t cleaned; /* how many heaps had been destroyed when those blocks were last out */
	uint32_t waited; /* how often it was used since another one was */
	uint32_t order; /* of its next event (rings.h) */
	/* Threads inside RtlReAllocateHeap, whose blocks are not in the table meanwhile. */
	uint32_t reallocating;
	uint32_t pages; /* of the table, TRACER_PAGE each: entries may be in any of them */
	uint32_t lines; /* where their homes are: the tracer's own business */
	uint32_t unused[5]; /* a cache line each */
};

/* One stack. Its id is its offset in the stack area divided by 8. */
struct tracer_stack {
	uint32_t unused;
	uint32_t hash;
	uint16_t depth;
	/* A module it passes through has been unloaded since: never handed out again. The tracer's own business. */
	uint16_t stale;
	/* How many unloads there had been when it was last handed out. A frame belongs to the first
	 * unload from there on that covers it, and if there is none to a module that is still there. */
	uint32_t born;
	uint64_t frames[]; /* return addresses, innermost first */
};

/* A module that was unloaded, as identified when it was there; records are packed, 8-byte aligned. */
struct tracer_module {
	uint32_t record_bytes; /* with path and pdb */
	uint32_t image_bytes, timestamp, checksum; /* of its headers */
	uint8_t guid[16]; /* of its RSDS debug record; all 0 and age 0: it has none */
	uint32_t age;
	uint16_t path_units, pdb_bytes; /* UTF-16 units, UTF-8 bytes; without an end mark */
	/* then the path, then the pdb's name */
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

/* A bit of tracer_range.kind: the system is being asked to free it. By now somebody else may have
 * that memory, whose node is the one that holds. */
#define RANGE_TAKEN 0x100u

/* Pages of virtual memory that did not come from a heap; a node of a tree (ranges.c). Nodes do not
 * overlap, but for those that are taken. */
struct tracer_range {
	uint64_t start, end;
	uint64_t allocation; /* base of what was reserved or mapped at once; 0: not known */
	uint32_t kind; /* enum tracer_range_kind, and RANGE_TAKEN */
	uint32_t stack; /* id: who committed it, reserved it, mapped it */
	uint32_t reserve_stack; /* id: who reserved what lies below a commit */
	uint32_t left, right, priority; /* indices + 1 of nodes; the tracer's own business */
};

struct tracer_ranges {
	uint64_t nodes, node_limit; /* address, and how many there can be */
	uint32_t node_count; /* nodes ever used: all that can be valid */
	uint32_t changing; /* odd: while they change */
	uint32_t lock, root, free;
	uint32_t broken; /* its lock was never given back: what it holds is old */
	uint32_t order; /* of its next event (rings.h) */
	uint32_t unused;
};

struct tracer_area {
	uint64_t magic;
	uint32_t version, area_bytes;
	uint32_t state, unused_word;
	uint32_t pointer_bytes;
	uint32_t flags; /* set by hsnap: TRACER_FLAG_* */

	/* Set by hsnap before the state is TRACER_ON. The tables' parts are of one reservation
	 * (snapshot/control/patch_plan.h). */
	uint64_t reserved, reserved_bytes;
	/* Address of the rings of a recording (rings.h); 0: there is none, or hsnap has ended since. */
	uint64_t rings;
	uint64_t sample_bytes; /* 0: every block is recorded; else one in so many bytes */
	uint64_t limit_bytes; /* so much of what is reserved may be committed */
	uint64_t trampolines, trampolines_bytes;

	uint64_t committed_bytes; /* of all tables */
	uint64_t stacks; /* address of the stack area */
	uint64_t stacks_top; /* bytes used of it */
	uint64_t stacks_committed, stacks_limit; /* bytes */
	uint64_t stack_buckets; /* address, and below 64 KiB the tracer's own business */
	uint64_t shard_tables, shard_bytes; /* address of the first shard's room, and of each */
	uint64_t modules, modules_top, modules_limit; /* address, bytes */
	/* Address, and how many; the count goes on when the limit is reached. */
	uint64_t unloads, unload_count, unload_limit;
	struct tracer_ranges ranges;

	/* What the tables say too little about. */
	uint64_t dropped_blocks; /* not recorded: no room, or a broken shard */
	uint64_t dropped_stacks; /* blocks and ranges recorded with stack 0 */
	uint64_t dropped_ranges; /* no room; or changes of any kind, since ranges.broken */
	uint64_t dropped_unloads;
	uint64_t unwind_mismatches; /* stacks where the cached unwinder was found wrong */
	uint64_t lost_from, lost_to; /* where unloads that found no room were, all of them */
	uint64_t heaps_destroyed; /* how many */

	/* Set by hsnap before the program starts: handles of the target's process, or 0. At exit
	 * the target sets exit_reached and waits for exit_continue or the end of hsnap_process. */
	uint64_t exit_reached, exit_continue, hsnap_process;
	/* TRACER_FLAG_CHILDREN: a thread that has created a process puts its ids here, sets
	 * child_created, and waits for child_taken or the end of hsnap_process, one at a time. */
	uint64_t child_created, child_taken;
	uint32_t child_pid, child_tid, child_lock;
	/* Set by hsnap: another number whenever the tracer is turned on, never 0. */
	uint32_t session;
	uint32_t unload_lock, unload_broken;
	/* Set by the DLL: what hsnap fills with zeros before the tracer is turned on again. */
	uint64_t clear, clear_bytes;
	uint64_t unwind_base; /* set by hsnap: unwind_mismatches of all earlier sessions */
	uint64_t rings_view; /* set by hsnap: where the section of the rings is mapped, or 0 */
	uint64_t
		rings_process; /* set by hsnap: a handle of who takes the events out of them, or 0 */
	/* Another number whenever a module was loaded, before its code runs; 0: the loader does not tell. */
	uint32_t load_count;
	uint32_t exit_thread; /* id of the thread that has set exit_reached; it holds locks */
	uint32_t unused[6];

	/* What follows begins a cache line. */
	struct tracer_hook hooks[HOOK_COUNT];
	struct tracer_shard shards[TRACER_SHARDS];
	/* A handle and its state each, see TRACER_HEAP_*; index 0: not known. */
	uint64_t heaps[(size_t)1 << TRACER_HEAPS_LOG2];
	/* How often a shard's table was changed, or (the last of them) the stacks: in their first piece, in
	 * their second one, and so on, the first one again behind the last. */
	uint32_t changes[TRACER_SHARDS + 1][TRACER_COUNTS];
	/* Bases of 32-bit images that stacks went through and that have no rules for unwinding, 0 after the last one:
	 * such code was unwound by EBP alone. Set by the DLL, for as long as the process runs. */
	uint32_t bare_images[TRACER_BARE_IMAGES];
};

#define TRACER_FLAG_ATTACHED                                                                       \
	1u /* the program ran before: there may be blocks that it did not see */
#define TRACER_FLAG_CHILDREN 2u
#define TRACER_FLAG_RECORDING 4u /* it is on for a recording alone, and goes with it */
#define TRACER_FLAG_LISTED                                                                         \
	8u /* the blocks from before are in the table, too, with stack 0: it has all there are */
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

/* Whether any thread is inside RtlReAllocateHeap. */
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
 * A heap that is destroyed takes all its blocks with it, and that must not take time. So a block has
 * its heap's tag: the index in tracer_area.heaps, and a generation that is another one when there is
 * a heap at the same address again. Blocks of another generation than the heap's are to be ignored.
 */
#define TRACER_HEAP_GENERATIONS 16u
/* Each with the generation of the heap, or without one: from TRACER_HEAP_DEAD on no block of it is live. */
#define TRACER_HEAP_DEAD 16u /* was destroyed */
#define TRACER_HEAP_CLEANING 32u /* comes again, when what is left of its blocks is out */
#define TRACER_HEAP_LEAVING 48u /* is being destroyed, which may be refused */
#define TRACER_HEAP_STATE 63u /* bits of tracer_area.heaps that are not the handle's */

static inline uint32_t tracer_block_heap(const struct tracer_block *block)
{
	return (uint32_t)(block->key >> TRACER_ADDR_BITS) & ((1u << TRACER_HEAPS_LOG2) - 1);
}

static inline uint64_t tracer_heap_handle(const struct tracer_area *area, uint32_t index)
{
	return area->heaps[index] & ~(uint64_t)TRACER_HEAP_STATE;
}

/* Whether the heap it is in has not been destroyed. */
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

/* Which of a table's counts of changes has the byte at an offset. */
static inline size_t tracer_count_of(uint64_t offset)
{
	return (size_t)(offset / TRACER_PIECE % TRACER_COUNTS);
}

/* How many unloads can be looked up. */
static inline uint64_t tracer_unloads_kept(const struct tracer_area *area)
{
	uint64_t count = __atomic_load_n(&area->unload_count, __ATOMIC_ACQUIRE);

	return count < area->unload_limit ? count : area->unload_limit;
}

/*
 * Whether a frame of a stack may be in a module whose unload found no room, so that its module is not
 * known. To be asked when no unload from born on covers it, and before what is there now is.
 */
static inline int tracer_unload_is_lost(
	const struct tracer_area *area, uint32_t born, uint64_t frame)
{
	uint64_t count = __atomic_load_n(&area->unload_count, __ATOMIC_ACQUIRE);

	return count > area->unload_limit && born < count && frame >= area->lost_from &&
	       frame < area->lost_to;
}

/* heap: its tag, from heapindex_of(). stack 0: its stack found no room. */
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
