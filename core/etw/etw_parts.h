/* The parts of an ETW log: modules, stacks, the order of events, and the log itself. */
#ifndef CORE_ETW_ETW_PARTS_H
#define CORE_ETW_ETW_PARTS_H

#include "core/base/hash.h"
#include "core/etw/etw.h"
#include "core/etw/etw_file.h"
#include "core/record/record.h"

/* Types of events within their groups (see etw_file.h), from Microsoft's documentation and phnt's
 * ntwmi.h. */
enum {
	HEAP_CREATE = 32,
	HEAP_ALLOC,
	HEAP_REALLOC,
	HEAP_DESTROY,
	HEAP_FREE,
	MEMORY_ALLOC = 98,
	MEMORY_FREE,
	PROCESS_START = 1,
	PROCESS_END,
	PROCESS_RUNDOWN_START,
	PROCESS_RUNDOWN_END,
	IMAGE_UNLOAD = 2,
	IMAGE_RUNDOWN_START,
	IMAGE_RUNDOWN_END,
	IMAGE_LOAD = 10,
	IMAGE_ID_INFO = 0,
	IMAGE_ID_RSDS = 36,
	PATHS_VOLUME = 35,
	STACK_FRAMES = 32,
	STACK_CREATE = 34,
	STACK_DELETE,
	STACK_RUNDOWN,
	STACK_KEY_KERNEL,
	STACK_KEY_USER,
};

/* Modules, implemented in etw_images.c. */

struct etw_image {
	uint64_t ticks, base, bytes;
	uint32_t pid, timestamp, checksum;
	uint8_t type; /* IMAGE_* */
	const char *path;
};

struct etw_identity {
	uint64_t ticks, base;
	uint32_t pid, timestamp, age; /* age 0: no PDB */
	unsigned char guid[16];
	const char *pdb;
};

struct etw_volume {
	const char *nt, *dos; /* prefixes of paths */
};

struct etw_images {
	struct etw_image *images;
	struct etw_identity *identities;
	struct etw_volume *volumes;
	size_t image_count, image_cap, identity_count, identity_cap, volume_count, volume_cap;
	uint64_t dropped_count; /* image events dropped at the limit */
	struct arena texts;
};

/* Adds an event of ETW_IMAGE, ETW_IMAGE_ID or ETW_PATHS. */
void etw_images_add(struct etw_images *images, const struct etw_event *event);
void etw_images_release(struct etw_images *images);

/* Returns a path with a drive letter. Replaces the longest volume prefix that matches. */
const char *etw_images_path(struct etw_images *images, const char *path);

/* Returns the number of image events for whose process and base an identity was logged. */
uint64_t etw_images_identified(const struct etw_images *images);

/* A module of a process, and the time during which it was loaded. */
struct etw_module {
	struct module module; /* strings are in the images' arena */
	/* in ticks; `from` is 0 if the module was loaded at the start, `to` is UINT64_MAX if it was
	 * loaded until the end */
	uint64_t from, to;
};

/* Returns the modules of a process in the order in which they were loaded. The caller frees the
 * array. */
struct etw_module *etw_images_modules(struct etw_images *images, uint32_t pid, size_t *count);

/* Stacks, implemented in etw_stacks.c. */

#define ETW_NO_STACK UINT32_MAX

/* A stack from the log, without its kernel frames. */
struct etw_raw_stack {
	size_t first; /* index into etw_stacks.frames */
	uint32_t count;
};

/* The stack to which a key refers. The definition is valid until `ticks`, when the system discarded
 * the key. */
struct etw_definition {
	uint64_t key, ticks;
	uint32_t stack;
	bool is_kernel;
};

struct etw_stacks {
	struct hash_index index;
	uint32_t *recent;
	struct etw_raw_stack *stacks;
	uint64_t *frames;
	struct etw_definition *definitions; /* sorted by etw_stacks_sort() */
	size_t stack_count, stack_cap, frame_count, frame_cap, definition_count, definition_cap;
	uint64_t dropped_count; /* stacks dropped at the limit */
};

void etw_stacks_init(struct etw_stacks *stacks);
void etw_stacks_release(struct etw_stacks *stacks);

/* Adds a STACK_CREATE, STACK_DELETE or STACK_RUNDOWN event. */
void etw_stacks_define(struct etw_stacks *stacks, const struct etw_event *event);
void etw_stacks_sort(struct etw_stacks *stacks);

/* An event that waits for its stack. The stack comes later in the log. */
struct etw_waiting {
	uint64_t ticks;
	uint32_t pid, tid, cpu;
	uint32_t stack; /* index of a raw stack, or ETW_NO_STACK */
	bool has_kernel, has_user; /* parts of the stack that have been read */
	bool waits; /* waits for its stack; otherwise it waits only because earlier events do */
	bool is_ours; /* used by the replay: the event belongs to the process */
	uint8_t what; /* used by the replay: enum what */
	uint64_t heap, addr, bytes, old_addr;
};

struct etw_binder {
	struct etw_stacks *stacks;
	struct etw_waiting *ring;
	size_t cap; /* a power of two */
	/* number of events that have left, and number of events that were added */
	uint64_t head, tail;
	uint64_t wait_ticks; /* maximum time that an event waits */
	/* number of waiting events for which only the kernel part of the stack was read */
	size_t kernel_only;
	void (*leave)(void *ctx, const struct etw_waiting *waiting);
	void *ctx;
	uint64_t bound_count, unbound_count, undefined_count;
};

void etw_binder_init(struct etw_binder *binder, struct etw_stacks *stacks, size_t cap,
	uint64_t wait_ticks, void (*leave)(void *, const struct etw_waiting *), void *ctx);
void etw_binder_release(struct etw_binder *binder);
/* Adds an event and returns it; the caller fills it in. Calls leave() for each event that has
 * waited long enough. */
struct etw_waiting *etw_binder_add(struct etw_binder *binder, const struct etw_event *event);
/* Binds a stack to its event. The stack is a STACK_FRAMES, STACK_KEY_KERNEL or STACK_KEY_USER
 * event. */
void etw_binder_stack(struct etw_binder *binder, const struct etw_event *event);
void etw_binder_end(struct etw_binder *binder); /* Calls leave() for all waiting events. */

/* The order of events, implemented in etw_merge.c. */

struct etw_merge;

int etw_merge_open(struct etw_merge **merge, struct etw_log *log, struct err *err);
void etw_merge_close(struct etw_merge *merge);
/* Returns 1 and the next event (valid until the next call), 0 at the end, or -ERR_READ. */
int etw_merge_next(struct etw_merge *merge, const struct etw_event **event, struct err *err);
/* Returns the number of bytes read from the files. */
uint64_t etw_merge_done(const struct etw_merge *merge);

/* The log itself, implemented in etw_log.c. */

struct etw_log {
	struct etw_file *files;
	size_t file_count;
	struct etw_facts facts;
	struct etw_images images;
	struct etw_stacks stacks;
	struct etw_process *processes;
	/* `last_process` is the index of the process found by the last search */
	size_t process_cap, last_process;
	struct u64map process_numbers, count_numbers;
	struct etw_count *counts;
	size_t count_cap;
	struct arena texts;
};

#endif
