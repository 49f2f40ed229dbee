/* A made Windows process that is written as a minidump, together with the truth about the process.
 * Models of allocators (nt_model.c, segment_model.c, page_model.c, ust_model.c) lay out memory as
 * Windows does. They follow published facts, not the walkers' tables, and report each block that
 * they place. Models never read back their work. Addresses are those of the made process. If memory
 * runs out or a model makes a mistake, the program ends with a message. */
#ifndef TESTS_IMAGES_MADE_IMAGE_H
#define TESTS_IMAGES_MADE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile {
	const char *name; /* "win7-x86", "win10-x64", ... */
	unsigned bits;
	unsigned os_major, os_minor, os_build;
	bool is_wow64; /* a 32-bit process, run and dumped by a 64-bit Windows */
};

/* Returns a profile by its number, or NULL past the last one. profile_find() returns NULL for an
 * unknown name. */
const struct profile *profile_at(size_t number);
const struct profile *profile_find(const char *name);

struct image_options {
	uint64_t seed;
	unsigned stack_count;
	unsigned most_heaps; /* number of heaps that will be entered; 0: a few */
	uint32_t nt_global_flag; /* 1000: ust, 2000000: page heap, 70: a debugger's */
	bool is_page_heap_full;
	bool has_lfh;
	bool is_depth_in_index_slot; /* place of a trace's frame count */
	bool is_flag_only; /* the PEB has the +ust flag, but no stacks are recorded */
	bool has_made_code; /* some frames are in executable memory of no module */
	bool has_unloaded; /* some frames are in a module that was unloaded later */
	bool is_memory_list; /* the dump has all its memory in a MemoryList */
	bool has_no_infos; /* the dump has no MemoryInfoList */
	bool is_plain; /* the headers of NT heaps are not coded */
	bool is_sparse; /* most blocks were freed, and their memory is still committed */
	bool is_partial; /* the dump has only the memory of a dump without full memory */
};

#define FLAG_HEAP_TAIL_CHECK 0x10u
#define FLAG_HEAP_FREE_CHECK 0x20u
#define FLAG_HEAP_VALIDATE 0x40u
#define FLAG_STACK_TRACES 0x1000u
#define FLAG_PAGE_HEAP 0x2000000u

enum image_access {
	IMAGE_READ = 1,
	IMAGE_WRITE = 2,
	IMAGE_EXECUTE = 4,
	IMAGE_GUARD = 8, /* committed but inaccessible: not in the dump */
	IMAGE_COPIED = 16, /* writable, and a write would make a copy */
};

struct image;

/* profile must outlive the image. */
struct image *image_new(const struct profile *profile, const struct image_options *options);
void image_free(struct image *image);
const struct image_options *image_options(const struct image *image);
/* A WOW64 process has a 32-bit and a 64-bit side. image_side() selects the side to which all
 * functions below apply (initially the 32-bit side). */
const struct profile *image_profile(const struct image *image);
unsigned image_ptr_bytes(const struct image *image);
void image_side(struct image *image, unsigned bits);
/* Begins heap `number` of `count`. Each heap has its own random numbers and addresses, so that a
 * change in one heap does not move other heaps. */
void image_begin_heap(struct image *image, unsigned number, unsigned count);

/* Returns a random number below limit (> 0), the same in every run. */
uint64_t image_random(struct image *image, uint64_t limit);

/* Returns a number below limit (> 0) that depends only on the seed and on `what`, a string literal
 * that names the decision. All heaps and states get the same number. Draws no random number. */
uint64_t image_chance(const struct image *image, const char *what, uint64_t limit);

/* Makes room in rows for at least count + 1; ends the program if memory runs out. */
void *image_grow(void *rows, size_t *capacity, size_t count, size_t row_bytes);
void image_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* ---- memory
 *
 * Reserves address space in granules of 64 KiB at a free place that the image chooses, and commits
 * (zeroed) or decommits its pages. Committed pages go into the dump. align: a power of two; a
 * smaller value than a granule is rounded up to it.
 */
uint64_t image_reserve(struct image *image, uint64_t bytes, uint64_t align);
void image_commit(struct image *image, uint64_t addr, uint64_t bytes, unsigned access);
uint64_t image_committed(
	/* number of committed bytes in the range */
	struct image *image, uint64_t addr, uint64_t bytes);
void image_decommit(struct image *image, uint64_t addr, uint64_t bytes);

/* Write and read little-endian numbers of 1 to 8 bytes. The memory must be committed. */
void image_write(struct image *image, uint64_t addr, uint64_t value, size_t bytes);
void image_write_ptr(struct image *image, uint64_t addr, uint64_t value);
uint64_t image_get(struct image *image, uint64_t addr, size_t bytes);
uint64_t image_get_ptr(struct image *image, uint64_t addr);
void image_fill(struct image *image, uint64_t addr, int byte, uint64_t bytes);

/* _LIST_ENTRY: the functions make an empty head, and append an entry. */
void image_list_init(struct image *image, uint64_t head);
void image_list_add(struct image *image, uint64_t head, uint64_t entry);

/* ---- process
 *
 * Adds a heap to the PEB's ProcessHeaps (and as ProcessHeap). From build 26100 on only the process
 * heap is added.
 */
void image_enter_heap(struct image *image, uint64_t heap, bool is_process_heap);

/* Since build 26100 the PEB lists only the process heap, and a ring has all heaps (image_ring.c).
 * The first heap that can hold blocks provides the blocks for the ring's entries. image_ring_wish()
 * returns how many blocks the current heap provides, or 0 for other heaps. user_context: address of
 * the heap's UserContext, or 0 if it is not known. */
struct ring_wish {
	unsigned count, bytes; /* number and size of the blocks */
};

struct ring_wish image_ring_wish(struct image *image);
void image_ring_offer(struct image *image, uint64_t block);
void image_ring_add(struct image *image, uint64_t heap, uint64_t user_context);

/* Keys at the start of ntdll's .data: RtlpLFHKey, and RtlpHpHeapGlobals' HeapKey and LfhKey. */
uint32_t image_lfh_key(const struct image *image);
uint64_t image_hp_heap_key(const struct image *image);
uint64_t image_hp_lfh_key(const struct image *image);

/* Returns the address of verifier.dll's list head AVrfpDphPageHeapList, which is initially empty.
 * Valid only with FLAG_PAGE_HEAP. */
uint64_t image_page_heap_list(const struct image *image);

/* ---- stacks
 *
 * A stack is a number; its frames lie in the image's modules. image_stack_record() returns the
 * address of its RTL_STACK_TRACE_ENTRY, to which a block points, or 0 if the process was started
 * without +ust.
 */
#define STACK_NOTHING UINT32_MAX
unsigned image_stack_count(const struct image *image);
uint64_t image_stack_record(struct image *image, unsigned stack);
bool image_has_ust(const struct image *image);

/* ---- truth. kind: "nt", "segment", "page". */
void truth_heap(struct image *image, uint64_t heap, const char *kind);
/* Records the heap's total memory, including its own structures, if the facts define that total. */
void truth_heap_bytes(struct image *image, uint64_t heap, uint64_t committed, uint64_t reserved);
void truth_block(struct image *image, uint64_t heap, uint64_t addr, uint64_t requested_bytes,
	uint64_t overhead_bytes, unsigned stack);

/* Records memory in which a heap places blocks: a committed part of a segment of an NT heap
 * ("segment"), a VS subsegment ("vs"), an LFH subsegment or container ("lfh"). Later decommits of
 * its pages are taken into account. */
void truth_container(
	struct image *image, uint64_t heap, const char *kind, uint64_t addr, uint64_t bytes);

/* ---- damage
 *
 * A model marks places by name. After everything is made, its breaks find and damage these places.
 * image_marked() returns 0 if the name has no such number.
 */
void image_mark(struct image *image, const char *name, uint64_t addr);
uint64_t image_marked(const struct image *image, const char *name, size_t number);

struct image_break {
	const char *name;
	const char *says;
	void (*apply)(struct image *image);
};

/* Defines a damage that consists of one statement. */
#define BREAK(name, damage)                                                                        \
	static void name(struct image *image)                                                      \
	{                                                                                          \
		damage;                                                                            \
	}

/* One table per file of breaks. Each table ends with a row without a name. */
extern const struct image_break dump_breaks[];
extern const struct image_break nt_breaks[];
extern const struct image_break ust_breaks[];
extern const struct image_break segment_breaks[];
extern const struct image_break page_breaks[];

/* ---- models
 *
 * Each model makes one heap, enters it in the PEB's list, and fills it with about block_count live
 * blocks and with freed ones. growth selects the state of each heap. A block that is live in state
 * 0 keeps its place in all later states, live or freed; each state adds blocks of some stacks. All
 * states must draw equal random numbers until the last block of state 0 is placed.
 */
struct model_request {
	unsigned block_count;
	unsigned growth;
	bool is_process_heap;
	bool is_unlisted; /* the heap is in none of the PEB's lists */
};

uint64_t nt_model_make(struct image *image, const struct model_request *request);
uint64_t segment_model_make(struct image *image, const struct model_request *request);
/* Makes a full page heap, or a light page heap (in an NT heap). */
uint64_t page_model_make(struct image *image, const struct model_request *request, bool is_full);

#endif
