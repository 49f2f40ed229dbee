/* Parts of a made process, for the files that build the process, not for the models. */
#ifndef TESTS_IMAGES_IMAGE_INSIDE_H
#define TESTS_IMAGES_IMAGE_INSIDE_H

#include <stdio.h>

#include "tests/images/made_image.h"

#define PAGE_BYTES 0x1000u
#define GRANULE_BYTES 0x10000u
#define MOST_FRAMES 32
#define MOST_MODULES 16

enum region_use {
	USE_OTHER, /* private memory of the process itself */
	USE_HEAP,
	USE_STACK,
	USE_SYSTEM, /* PEB and TEBs */
	USE_VIEW, /* view of a file or section */
	USE_MODULE,
};

/* One reservation: the access of its pages (0: not committed), and their bytes. */
struct region {
	uint64_t base;
	uint64_t bytes;
	uint8_t *access;
	uint8_t *data;
	enum region_use use;
	uint32_t protect; /* AllocationProtect */
};

struct made_module {
	const char *path;
	unsigned bits;
	uint64_t base;
	uint32_t bytes;
	uint32_t text_offset, text_bytes;
	uint32_t data_offset, data_bytes;
	uint32_t timestamp;
	uint8_t guid[16];
	uint32_t age;
	char pdb[32];
};

struct made_stack {
	uint64_t record;
	unsigned frame_count;
	bool is_used;
	uint64_t frames[MOST_FRAMES];
};

struct truth_heap_row {
	uint64_t heap;
	const char *kind;
	bool is_other; /* belongs to the 64-bit side of a WOW64 process */
	uint64_t committed, reserved; /* 0: not known */
};

struct truth_block_row {
	uint64_t heap, addr, requested, overhead;
	unsigned stack;
	bool is_other;
};

struct truth_container_row {
	uint64_t heap, addr, bytes;
	const char *kind;
	bool is_other;
};

struct mark {
	const char *name;
	uint64_t addr;
};

struct ring_heap {
	uint64_t heap;
	uint64_t user_context; /* address of the heap's UserContext; 0: not known */
};

/* Heaps of one side. Used since build 26100. */
struct heap_ring {
	uint64_t head; /* address of the ring's head; 0: this Windows has no ring */
	struct ring_heap *heaps;
	size_t heap_count, heap_capacity;
	uint64_t *blocks; /* blocks that hold the entries */
	size_t block_count, block_capacity;
};

/* Data of a process that exist once per bitness. */
struct side {
	struct profile profile;
	uint64_t cursor; /* next free address for a reservation */
	uint64_t heaps_from; /* address of the first heap's reservation */
	uint64_t teb, peb, ldr, parameters; /* teb: the first thread's */
	uint64_t heap_list; /* PEB.ProcessHeaps */
	uint32_t heap_count, most_heaps;
	struct heap_ring ring;
	uint64_t ntdll; /* base of this side's ntdll */
	uint64_t page_heap_list;
	uint64_t made_code; /* memory with code in no module */
	uint32_t lfh_key;
	uint64_t hp_heap_key, hp_lfh_key;
	uint64_t database;
	uint64_t database_variable;
	uint32_t database_entries, database_lookups, database_failures;
	uint64_t database_used, database_reserved; /* number of bytes */
	struct made_stack *stacks;
};

/* Numbers to write into the minidump in place of the true ones. 0: the true number. */
struct dump_lies {
	uint64_t module_count, range_count, info_count, thread_count, handle_count;
	uint64_t module_bytes, range_bytes, range_start;
	uint64_t base_rva;
	/* one entry in the middle of the MemoryInfoList */
	uint64_t info_start, info_bytes, info_allocation, info_state, info_type;
	bool is_info_twice, is_info_swapped; /* with the next entry */
	uint64_t handle_bytes; /* size of a handle's entry */
	uint64_t type_name; /* place of the names of all types */
	uint64_t type_name_bytes; /* length of the names of all types */
	uint64_t counter; /* all VM counters */
	uint64_t counters_revision;
	bool has_many_types;
};

/* Threads of the process, the first of which make_side() makes. */
#define THREADS 3

/* Handles of one type. */
struct made_handles {
	const char *type; /* "": the system did not reveal the type */
	unsigned count;
};

/* Ends with a row without handles. */
extern const struct made_handles image_handles[];

/* The system's counters. */
struct made_counters {
	uint64_t private_bytes, private_peak, working_set;
};

struct image {
	struct image_options options;
	const struct profile *profile;
	uint64_t random_state;
	unsigned bits; /* bitness of the chosen side */
	struct side sides[2]; /* 32 and 64 bits */

	struct region *regions; /* sorted by base */
	size_t region_count, region_capacity;
	struct region *last;
	bool is_late; /* true once the process is made; heaps follow */

	struct made_module modules[MOST_MODULES];
	size_t module_count;
	uint64_t tebs[THREADS]; /* each of the bitness of the Windows */

	struct truth_container_row *containers;
	size_t container_count, container_capacity;
	struct truth_heap_row *heaps;
	size_t heap_count, heap_capacity;
	struct truth_block_row *blocks;
	size_t block_count, block_capacity;
	struct mark *marks;
	size_t mark_count, mark_capacity;
	struct dump_lies lies;
};

struct side *image_at_side(struct image *image);
/* Returns true if the chosen side is not the process's own side. */
bool image_is_other_side(const struct image *image);
uint64_t image_hash(uint64_t value);

struct region *image_reserve_at(struct image *image, uint64_t base, uint64_t bytes);
/* Returns true if pages with this access are in the dump. */
bool image_is_held(unsigned access);
struct region *image_region(struct image *image, uint64_t addr);
void image_write_bytes(struct image *image, uint64_t addr, const void *bytes, size_t count);
/* Writes the text as UTF-16. */
void image_write_text(struct image *image, uint64_t addr, const char *text);
void image_write_string(struct image *image, uint64_t addr, uint64_t text_addr, const char *text);

struct made_module *image_add_module(
	struct image *image, const char *path, uint64_t base, unsigned bits);
void image_make_process(struct image *image);
/* Writes the TEB of a thread whose stack is [stack, stack + stack_bytes). */
void image_fill_teb(struct image *image, uint64_t teb, uint64_t stack, uint64_t stack_bytes);
/* Connects the TEBs of a WOW64 process's thread. */
void image_join_tebs(struct image *image, uint64_t teb32, uint64_t teb64);
/* Makes the other threads and a few views, and puts them where no other memory is. Draws no random
 * number. */
void image_make_threads(struct image *image);
void image_make_views(struct image *image);
struct made_counters image_counters(const struct image *image);
/* Writes the true figures of the process's balance. */
void image_write_balance(const struct image *image, FILE *file);
void image_make_stacks(struct image *image);
void ust_model_make(struct image *image);

uint64_t image_process_heap(struct image *image);
/* Makes an empty ring in ntdll's data, if this Windows has a ring. */
void image_place_ring(struct image *image, uint64_t ntdll_data);
void image_make_rings(struct image *image);

/* Both functions end the program if the file cannot be written. */
void image_write_minidump(struct image *image, const char *path);
void image_write_truth(struct image *image, const char *path);

#endif
