/*
 * Memory of the tracer in the target. hsnap sets it up and reads it from outside.
 *
 * struct tracer_area is the DLL's data export TRACER_EXPORT. The DLL does nothing by itself. hsnap
 * reserves memory for the tables, fills in the fields "set by hsnap", sets the state to TRACER_ON,
 * and then writes jumps to the hooks into ntdll (snapshot/control/).
 *
 * The area and the tables can be read at any instant, even while every thread of the target is
 * suspended at an arbitrary place:
 * - A block entry is valid if its key is not 0 and tracer_block_is_live(). The key is written last
 *   and cleared first. An entry that is being moved may be found twice, but is never missing.
 * - A stack record is complete before any thread gets its id. After that, only its `born` and the
 *   tracer's own `stale` change.
 * - While tracer_ranges.changing is odd, ranges are changing, and the reader must read them again
 *   later.
 * - A thread that has changed a block entry or a stack counts the change in tracer_area.changes
 *   afterwards. A piece of a table that was read is consistent if two conditions are met: its
 *   count is the same as before the read, and the table's lock is free.
 * - Modules and unloads are complete below their counts, and never change. For unloads that found
 *   no room, only their number is known, and an address range that contains all of them: see
 *   tracer_unload_is_lost().
 *
 * Integers are little-endian and have the same layout for 32- and 64-bit targets.
 */
#ifndef SNAPSHOT_TRACER_SHARED_H
#define SNAPSHOT_TRACER_SHARED_H

#include <stddef.h>
#include <stdint.h>

#define TRACER_DLL_64 "hsnap-tracer64.dll"
#define TRACER_DLL_32 "hsnap-tracer32.dll"
#if UINTPTR_MAX > UINT32_MAX /* for programs with hsnap's own bitness */
#define TRACER_DLL TRACER_DLL_64
#else
#define TRACER_DLL TRACER_DLL_32
#endif
#define TRACER_EXPORT "hsnap_tracer"
/* hsnap-mark.h calls the function tracer_mark(label) of the DLL by its name. The name and the
 * argument never change. */
#define TRACER_MAGIC 0x54534e4148435254u /* "TRCHANST" */
#define TRACER_VERSION 12

#define TRACER_DEPTH_MAX 64 /* frames recorded per stack */
#define TRACER_SHARDS 64
#define TRACER_PAGE ((uint64_t)4096)
#define TRACER_HEAPS_LOG2 12
#define TRACER_PIECE ((uint64_t)8192) /* bytes of a table that share a change counter */
/* number of change counters per table; piece i uses counter i % TRACER_COUNTS */
#define TRACER_COUNTS 128
#define TRACER_BARE_IMAGES 64
/* value of tracer_unload.module if there was no room for the record */
#define TRACER_NO_MODULE UINT64_MAX

enum tracer_state {
	TRACER_LOADED, /* nothing is set up yet */
	TRACER_ON,
	/* the tracer was on before; the hooks are removed and record nothing, and the tables may
	 * have been freed */
	TRACER_OFF,
};

/* Types of handles, by the function that opened them. */
enum tracer_handle_type {
	HANDLE_EVENT,
	HANDLE_FILE, /* also pipes, sockets and devices */
	HANDLE_KEY,
	HANDLE_MUTANT,
	HANDLE_PROCESS,
	HANDLE_SECTION,
	HANDLE_SEMAPHORE,
	HANDLE_THREAD,
	HANDLE_TIMER,
	HANDLE_TOKEN,
	HANDLE_OTHER,
	HANDLE_TYPES,
};

/*
 * Functions of ntdll that open a handle: name of the hook, name of the function, number of
 * arguments, number of the argument that points to the handle, and type. All are optional.
 * Prototypes: phnt (ntexapi.h, ntioapi.h, ntmmapi.h, ntobapi.h, ntpsapi.h, ntregapi.h, ntseapi.h).
 */
#define TRACER_HANDLE_CALLS(X)                                                                     \
	X(CREATE_EVENT, "NtCreateEvent", 5, 1, HANDLE_EVENT)                                       \
	X(OPEN_EVENT, "NtOpenEvent", 3, 1, HANDLE_EVENT)                                           \
	X(CREATE_FILE, "NtCreateFile", 11, 1, HANDLE_FILE)                                         \
	X(OPEN_FILE, "NtOpenFile", 6, 1, HANDLE_FILE)                                              \
	X(CREATE_PIPE, "NtCreateNamedPipeFile", 14, 1, HANDLE_FILE)                                \
	X(CREATE_KEY, "NtCreateKey", 7, 1, HANDLE_KEY)                                             \
	X(OPEN_KEY, "NtOpenKey", 3, 1, HANDLE_KEY)                                                 \
	X(OPEN_KEY_EX, "NtOpenKeyEx", 4, 1, HANDLE_KEY)                                            \
	X(CREATE_MUTANT, "NtCreateMutant", 4, 1, HANDLE_MUTANT)                                    \
	X(OPEN_MUTANT, "NtOpenMutant", 3, 1, HANDLE_MUTANT)                                        \
	X(OPEN_PROCESS, "NtOpenProcess", 4, 1, HANDLE_PROCESS)                                     \
	X(CREATE_SECTION, "NtCreateSection", 7, 1, HANDLE_SECTION)                                 \
	X(CREATE_SECTION_EX, "NtCreateSectionEx", 9, 1, HANDLE_SECTION)                            \
	X(OPEN_SECTION, "NtOpenSection", 3, 1, HANDLE_SECTION)                                     \
	X(CREATE_SEMAPHORE, "NtCreateSemaphore", 5, 1, HANDLE_SEMAPHORE)                           \
	X(OPEN_SEMAPHORE, "NtOpenSemaphore", 3, 1, HANDLE_SEMAPHORE)                               \
	X(OPEN_THREAD, "NtOpenThread", 4, 1, HANDLE_THREAD)                                        \
	X(CREATE_TIMER, "NtCreateTimer", 4, 1, HANDLE_TIMER)                                       \
	X(OPEN_TIMER, "NtOpenTimer", 3, 1, HANDLE_TIMER)                                           \
	X(OPEN_PROCESS_TOKEN, "NtOpenProcessToken", 3, 3, HANDLE_TOKEN)                            \
	X(OPEN_PROCESS_TOKEN_EX, "NtOpenProcessTokenEx", 4, 4, HANDLE_TOKEN)                       \
	X(OPEN_THREAD_TOKEN, "NtOpenThreadToken", 4, 4, HANDLE_TOKEN)                              \
	X(OPEN_THREAD_TOKEN_EX, "NtOpenThreadTokenEx", 5, 5, HANDLE_TOKEN)                         \
	X(DUPLICATE_TOKEN, "NtDuplicateToken", 6, 6, HANDLE_TOKEN)                                 \
	X(CREATE_PORT, "NtCreateIoCompletion", 4, 1, HANDLE_OTHER)                                 \
	X(CREATE_JOB, "NtCreateJobObject", 3, 1, HANDLE_OTHER)

/* Functions of ntdll that are hooked. Optional functions do not exist in every Windows version.
 * HOOK_CREATE_PROCESS is hooked only if child processes are followed or handles are recorded. */
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
	HOOK_CREATE_THREAD, /* NtCreateThreadEx, optional */
	HOOK_TERMINATE_THREAD, /* NtTerminateThread */
	HOOK_CREATE_PROCESS, /* NtCreateUserProcess, optional */
	HOOK_CLOSE, /* NtClose; this function and the following ones only for handles */
	HOOK_DUPLICATE, /* NtDuplicateObject */
#define TRACER_CALL_ID(id, name, count, at, type) HOOK_##id,
	TRACER_HANDLE_CALLS(TRACER_CALL_ID) HOOK_COUNT,
#undef TRACER_CALL_ID
};

struct tracer_hook {
	/* set by the DLL: address of the hook; 0: the DLL does not hook the function */
	uint64_t hook;
	/* Set by hsnap: */
	uint64_t function; /* address in ntdll */
	/* trampoline that calls the unpatched function; remains after detaching */
	uint64_t original;
	uint8_t old_bytes[16], new_bytes[16];
	uint32_t patch_bytes; /* number of bytes used in each array; 0: not hooked */
	uint32_t unused;
};

/* A live block, in 16 bytes. See tracer_block_*() below. */
struct tracer_block {
	uint64_t key; /* address in the low 48 bits, the heap's tag above; 0: the entry is free */
	/* stack id in the low TRACER_STACK_BITS, requested bytes above (saturating) */
	uint64_t what;
};

#define TRACER_ADDR_BITS 48
#define TRACER_STACK_BITS 27
#define TRACER_SIZE_MAX (((uint64_t)1 << (64 - TRACER_STACK_BITS)) - 1)

/* A part of the table of live blocks. A block's address determines its shard. */
struct tracer_shard {
	uint64_t table; /* address of an array of struct tracer_block; 0: not created yet */
	uint32_t lock;
	uint32_t count; /* number of blocks, including blocks of destroyed heaps */
	uint32_t broken; /* nonzero: the lock was never released, so the contents are stale */
	/* value of `heaps_destroyed` when blocks of destroyed heaps were last removed */
	uint32_t cleaned;
	uint32_t waited; /* number of uses of the shard since a heap was destroyed */
	uint32_t order; /* order number of the shard's next event (rings.h) */
	/* number of threads inside RtlReAllocateHeap; during that call, their blocks are not in the
	 * table */
	uint32_t reallocating;
	/* size of the table in pages of TRACER_PAGE bytes; entries may be in any of the pages */
	uint32_t pages;
	uint32_t lines; /* number of lines that contain homes; private to the tracer */
	uint32_t unused[5]; /* fills a cache line */
};

/* One stack. The stack's id is its offset in the stack area, divided by 8. */
struct tracer_stack {
	uint32_t unused;
	uint32_t hash;
	uint16_t depth;
	/* nonzero: a module in this stack was unloaded, so the id is never returned again; private
	 * to the tracer */
	uint16_t stale;
	/*
	 * Number of unloads when the id was last returned. Earlier unloads do not affect the stack.
	 * If unloads with this number or a higher number cover a frame, the frame belongs to the
	 * module of the first of them. Otherwise the frame belongs to a loaded module.
	 */
	uint32_t born;
	uint64_t frames[]; /* return addresses, innermost first */
};

/* A module that was unloaded, identified while it was still loaded. Records are packed and 8-byte
 * aligned. */
struct tracer_module {
	uint32_t record_bytes; /* size of this record, including path and pdb */
	uint32_t image_bytes, timestamp, checksum; /* values from the image's headers */
	/* from the RSDS debug record; guid and age are all 0 if the image has no such record */
	uint8_t guid[16];
	uint32_t age;
	/* length of the path in UTF-16 units, and of the PDB name in UTF-8 bytes; neither has a
	 * terminator */
	uint16_t path_units, pdb_bytes;
	/* the path and the PDB name follow these fields */
};

struct tracer_unload {
	uint64_t base, end;
	uint64_t module; /* offset in the module area, or TRACER_NO_MODULE */
};

enum tracer_range_kind {
	RANGE_NONE, /* the node is free */
	RANGE_RESERVED,
	RANGE_COMMITTED,
	RANGE_MAPPED,
	/* Pages of a thread's stack that were committed when the thread was created. Lower pages of
	 * the same allocation are RANGE_RESERVED, and the system commits them as the stack grows. */
	RANGE_STACK,
	RANGE_HANDLE = 16, /* an open handle; plus enum tracer_handle_type */
};

/* Start of the ranges of handles, one page each, above the addresses of processes. */
#define TRACER_HANDLES ((uint64_t)1 << 47)
#define TRACER_HANDLE_STEP 4 /* handles are multiples of this */
#define TRACER_HANDLE_MAX ((uint64_t)1 << 30)

/* Bit of tracer_range.kind: the system is about to free the range, and another thread may already
 * have got the same memory. If two nodes overlap, the one without this bit is valid. */
#define RANGE_TAKEN 0x100u

/* Pages of virtual memory that did not come from a heap. Ranges are nodes of a tree (ranges.c).
 * Nodes do not overlap, except nodes with RANGE_TAKEN. */
struct tracer_range {
	uint64_t start, end;
	uint64_t allocation; /* base of the whole reservation or mapping; 0: unknown */
	uint32_t kind; /* enum tracer_range_kind, possibly with RANGE_TAKEN */
	uint32_t stack; /* id of the stack that committed, reserved or mapped it */
	uint32_t reserve_stack; /* for committed memory: id of the stack that reserved it */
	uint32_t left, right, priority; /* indexes of nodes, plus 1; private to the tracer */
};

struct tracer_ranges {
	uint64_t nodes, node_limit; /* address of the nodes, maximum number of nodes */
	uint32_t node_count; /* number of nodes ever used; all higher indices are invalid */
	uint32_t changing; /* odd while the ranges change */
	uint32_t lock, root, free;
	uint32_t broken; /* nonzero: the lock was never released, so the contents are stale */
	uint32_t order; /* order number of the next event (rings.h) */
	uint32_t unused;
};

struct tracer_area {
	uint64_t magic;
	uint32_t version, area_bytes;
	uint32_t state, unused_word;
	uint32_t pointer_bytes;
	uint32_t flags; /* set by hsnap: TRACER_FLAG_* */

	/* Set by hsnap before the state becomes TRACER_ON. All parts of the tables share one
	 * reservation (snapshot/control/patch_plan.h). */
	uint64_t reserved, reserved_bytes;
	/* address of the rings of a recording (rings.h); 0: no recording, or hsnap has exited
	 * during a recording */
	uint64_t rings;
	/* 0: every block is recorded; otherwise one block per sample_bytes on average */
	uint64_t sample_bytes;
	uint64_t limit_bytes; /* maximum number of committed bytes in the reservation */
	uint64_t trampolines, trampolines_bytes;

	uint64_t committed_bytes; /* committed bytes of all tables */
	uint64_t stacks; /* address of the stack area */
	uint64_t stacks_top; /* used bytes of the stack area */
	uint64_t stacks_committed, stacks_limit; /* bytes */
	uint64_t stack_buckets; /* address; the bits below 64 KiB are private to the tracer */
	/* address of the first shard's table, and number of bytes reserved for each shard's
	 * table */
	uint64_t shard_tables, shard_bytes;
	/* address of the module area, used bytes, and size */
	uint64_t modules, modules_top, modules_limit;
	/* address and number of unloads; the number still increases after the limit has been
	 * reached */
	uint64_t unloads, unload_count, unload_limit;
	struct tracer_ranges ranges;

	/* Counters of data that the tables lack. */
	uint64_t dropped_blocks; /* blocks not recorded: no room, or a broken shard */
	uint64_t dropped_stacks; /* blocks and ranges recorded with stack 0 */
	uint64_t dropped_ranges; /* changes not recorded: no room, or ranges.broken is set */
	uint64_t dropped_unloads;
	uint64_t unwind_mismatches; /* stacks for which the unwinder's cache was wrong */
	uint64_t lost_from, lost_to; /* address range of all unloads that found no room */
	uint64_t heaps_destroyed;

	/*
	 * Handles in the target, set by hsnap before the program starts; otherwise 0. When the
	 * target exits, it sets the event exit_reached, and then waits for exit_continue or for the
	 * end of hsnap_process.
	 */
	uint64_t exit_reached, exit_continue, hsnap_process;
	/*
	 * Used if TRACER_FLAG_CHILDREN is set. A thread that has created a process stores the ids
	 * here and sets the event child_created. It then waits for child_taken or for the end of
	 * hsnap_process. Only one thread does this at a time.
	 */
	uint64_t child_created, child_taken;
	uint32_t child_pid, child_tid, child_lock;
	/* set by hsnap: never 0, and different each time the tracer is turned on */
	uint32_t session;
	uint32_t unload_lock, unload_broken;
	/* set by the DLL: range of memory that hsnap must zero before it turns the tracer on
	 * again */
	uint64_t clear, clear_bytes;
	/* set by hsnap: sum of `unwind_mismatches` over all earlier sessions */
	uint64_t unwind_base;
	/* set by hsnap: address at which the section of the rings is mapped, or 0 */
	uint64_t rings_view;
	/* set by hsnap: handle of the process that reads the rings, or 0 */
	uint64_t rings_process;
	/* Counter that changes whenever a module is loaded, before code of the module runs. 0: the
	 * loader sends no notifications. */
	uint32_t load_count;
	/* id of the thread that has set exit_reached; this thread may hold locks */
	uint32_t exit_thread;
	uint32_t unused[6];

	/* The remaining fields begin on a cache line. */
	struct tracer_hook hooks[HOOK_COUNT];
	struct tracer_shard shards[TRACER_SHARDS];
	/* Handle and state (TRACER_HEAP_*) of each heap. Index 0 represents an unknown heap. */
	uint64_t heaps[(size_t)1 << TRACER_HEAPS_LOG2];
	/* Ids of the stacks that created these heaps; 0: not known. */
	uint32_t heap_stacks[(size_t)1 << TRACER_HEAPS_LOG2];
	/* Change counters: changes[shard][piece % TRACER_COUNTS]. The last row is for the stack
	 * area. */
	uint32_t changes[TRACER_SHARDS + 1][TRACER_COUNTS];
	/*
	 * Bases of the 32-bit images whose code had to be unwound using only EBP, because the
	 * images have no unwinding rules. 0 after the last base. Set by the DLL, and unchanged
	 * until the process exits.
	 */
	uint32_t bare_images[TRACER_BARE_IMAGES];
};

/* the program was already running, so it may have blocks that the tracer has not seen */
#define TRACER_FLAG_ATTACHED 1u
#define TRACER_FLAG_CHILDREN 2u
/* the tracer is on only for a recording, and is turned off when the recording ends */
#define TRACER_FLAG_RECORDING 4u
/* the table is complete: it also contains the blocks older than the tracer, with stack 0 */
#define TRACER_FLAG_LISTED 8u
#define TRACER_FLAG_HANDLES 32u /* handles are recorded */
#define TRACER_FLAG_BSTR_CACHE 16u /* COM's string cache may be on */

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
		       448 + 64 * (HOOK_COUNT + TRACER_SHARDS) + (12 << TRACER_HEAPS_LOG2) +
			       4 * (TRACER_SHARDS + 1) * TRACER_COUNTS + 4 * TRACER_BARE_IMAGES,
	"layout");

/* Returns the handle that a range represents, whose kind is RANGE_HANDLE or above. */
static inline uint64_t tracer_range_handle(const struct tracer_range *range)
{
	return (range->start - TRACER_HANDLES) / TRACER_PAGE * TRACER_HANDLE_STEP;
}

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
 * When a heap is destroyed, all its blocks end at once, and this must take constant time. So each
 * block stores the tag of its heap: an index in tracer_area.heaps, and a generation. The generation
 * changes when another heap is created at the same address. Readers must ignore a block whose
 * generation differs from that of its heap.
 */
#define TRACER_HEAP_GENERATIONS 16u
/* States of a heap. An entry of tracer_area.heaps is the sum of the heap's handle, its state, and
 * its generation (0 in the state TRACER_HEAP_CLEANING). The state of a live heap is 0. In the state
 * TRACER_HEAP_DEAD and all higher states, no block of the heap is live. */
#define TRACER_HEAP_DEAD 16u /* destroyed */
#define TRACER_HEAP_CLEANING 32u /* can be used again as soon as the remaining blocks are removed */
#define TRACER_HEAP_LEAVING 48u /* being destroyed, but the system may refuse */
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

/* Returns the index of the change counter for the byte at an offset in a table. */
static inline size_t tracer_count_of(uint64_t offset)
{
	return (size_t)(offset / TRACER_PIECE % TRACER_COUNTS);
}

/* Returns the number of unloads whose records can be looked up. */
static inline uint64_t tracer_unloads_kept(const struct tracer_area *area)
{
	uint64_t count = __atomic_load_n(&area->unload_count, __ATOMIC_ACQUIRE);

	return count < area->unload_limit ? count : area->unload_limit;
}

/*
 * Returns true if a frame may be in a module whose unload found no room in the records. The frame's
 * module is then unknown. If an unload with the number `born` or higher covers the frame, do not
 * call this function. Otherwise call it before searching the loaded modules.
 */
static inline int tracer_unload_is_lost(
	const struct tracer_area *area, uint32_t born, uint64_t frame)
{
	uint64_t count = __atomic_load_n(&area->unload_count, __ATOMIC_ACQUIRE);

	return count > area->unload_limit && born < count && frame >= area->lost_from &&
	       frame < area->lost_to;
}

/* Makes an entry. `heap` is a tag from heapindex_of(). `stack` is 0 if there was no room for the
 * stack. */
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
