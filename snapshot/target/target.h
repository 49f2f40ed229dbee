/*
 * The process that is looked at, behind one interface: read its memory, list its modules, hold it.
 *
 * target_live_windows.c reads a live process, minidump_memory.c a file. Addresses are the target's
 * and always uint64_t. Nothing read from it is trusted. snapshot/target/target_memory.h reads it with few calls.
 */
#ifndef SNAPSHOT_TARGET_TARGET_H
#define SNAPSHOT_TARGET_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/dump/model.h"
#include "core/pe/pe.h"

/* Of x64 address space: all that a process holds lies in it. */
#define TARGET_SPACE_BYTES ((uint64_t)1 << 47)

struct target;

enum target_access {
	TARGET_READ = 1,
	TARGET_WRITE = 2,
	TARGET_EXECUTE = 4,
};

/* Committed memory of one kind: addr..end. */
struct target_region {
	uint64_t addr, end;
	unsigned access; /* enum target_access; a guard page has none */
	bool is_image; /* a part of a module */
	/* A view of a file or a section that was mapped without write access: the process wrote none of its bytes
	 * by this view. */
	bool is_read_only_view;
};

struct target_range {
	uint64_t from, end; /* empty: from is end */
};

/* What a thread has in hand while its process is held. */
struct target_thread {
	const unsigned char *context; /* CONTEXT of winnt.h, as the processor has it: registers */
	size_t context_bytes; /* 0: they are not known */
	uint64_t teb; /* of the process's bits; 0: not known */
	uint64_t sp; /* 0: not known */
};

struct target_ops {
	/* Exactly len bytes: 0, or -ERR_READ when a part of them is not there. */
	int (*read)(struct target *target, uint64_t addr, void *bytes, size_t len);
	/* The region that addr lies in, else the next above it: 0, or -ERR_READ when there is none.
	 * NULL: regions are not known, only reading tells. */
	int (*region)(struct target *target, uint64_t addr, struct target_region *region);
	/* The same where region is NULL: each call may take a while. NULL: as region. */
	int (*slow_region)(struct target *target, uint64_t addr, struct target_region *region);
	/* Calls each() for all threads, of which no one runs: 0, what each() returned, or -ERR_SYSTEM.
	 * NULL: threads are not known. */
	int (*threads)(struct target *target,
		int (*each)(void *ctx, const struct target_thread *thread), void *ctx,
		struct err *err);
	/* The bytes at addr where they lie (in a mapped file) and how many of them; NULL when they
	 * are not there. They stay until close(). NULL: memory has to be read. */
	const unsigned char *(*view)(struct target *target, uint64_t addr, size_t *len);
	/* Adds the loaded modules (base, size_bytes, path; of a file also what identifies them) to
	 * snapshot, and a warning for whatever the target cannot tell: 0 or an error. */
	int (*modules)(struct target *target, struct snapshot *snapshot, struct err *err);
	/* Stops and continues all threads. resume() is harmless when nothing is suspended. */
	int (*suspend)(struct target *target, struct err *err);
	void (*resume)(struct target *target);
	/* resume() for good, from an interrupt that then ends this process: a suspend() after it
	 * never returns. NULL: nothing is ever held. */
	void (*interrupt)(struct target *target);
	/* False when the process has ended. */
	bool (*is_alive)(struct target *target);
	void (*close)(struct target *target);
};

struct target {
	const struct target_ops *ops;
	void *system; /* the implementation's own */
	char name[40]; /* "pid 12", for messages */
	uint32_t pid;
	uint32_t parent_pid; /* of the process that started it; 0: not known */
	unsigned bits;
	uint64_t peb; /* address of the process environment block, of a process of that many bits */
	uint64_t host_peb; /* of a 32-bit process on 64-bit Windows: its 64-bit one; else 0 */
	uint32_t os_build; /* 0: not known */
	int64_t held_from_ms; /* by os_clock_ms(), when the last suspend() began to hold it; 0: when it
	                       * was called */
	bool is_cloned; /* suspend() makes a copy to read, and the process runs on; of the last one, or
	                 * of the next as far as it can be told */
	/* Id of the thread that ends the process and waits in the tracer until it has been looked at; 0: none. Windows has it
	 * hold the process heap's lock. */
	uint32_t exit_thread;
	bool needs_threads; /* threads() is wanted of what suspend() makes, be it a clone */
	bool is_wine; /* known to be; a file does not tell */
	bool is_file; /* it neither runs nor changes, and parts of its memory may be missing for good */
	int64_t start_ms;
	int64_t time_ms; /* when the process was as it is seen; 0: now */
	char image[1024], os[80],
		host[256]; /* UTF-8; host: the machine's name, "" when not known */
	uint64_t reads, read_bytes; /* how many calls, for -v */
};

int target_read(struct target *target, uint64_t addr, void *bytes, size_t len);

/*
 * A copy of a target that is held, so that it can run on while its memory is looked at: what can be read of it without
 * except[] and read-only views, of modules only what can be written, and what its threads have in hand. It is a target of its own, with regions,
 * views and threads, and no more. NULL: its regions are not known, it takes more than max_bytes, or there is no memory
 * for it.
 */
struct target *target_copy(struct target *target, const struct target_range *except,
	size_t except_count, uint64_t max_bytes);
void target_copy_free(struct target *copy); /* NULL is nothing */

/* Numbers in the target's memory: 0 or -ERR_READ. */
int target_u32(struct target *target, uint64_t addr, uint32_t *value);
int target_u64(struct target *target, uint64_t addr, uint64_t *value);

/* Returns true if a thread that may be changing what a lock protects owns it: 0 is no owner, and the exiting thread waits. */
static inline bool target_lock_is_held(const struct target *target, uint64_t owner)
{
	return owner && owner != target->exit_thread;
}

#define TARGET_BUILD_10 10240u /* of Windows 10 */

/* Returns true if blocks may be freed without passing the entry of RtlFreeHeap: ntdll of Windows 7 and 8 does that. Under
 * Wine only a program may, but there heaps are walked by its own source. */
static inline bool target_may_free_unseen(const struct target *target)
{
	return target->is_wine || (target->os_build && target->os_build < TARGET_BUILD_10);
}

/* How many bytes of the target are committed; all that can be addressed when that is not known. */
uint64_t target_committed_bytes(struct target *target);

/* How far addr..end is committed; end when that is not known. */
uint64_t target_committed_end(struct target *target, uint64_t addr, uint64_t end);

/* The error for a failed read: ERR_GONE when the process has ended, else ERR_TARGET with the
 * address and what was looked for. Returns its negative. */
int target_err(struct target *target, uint64_t addr, const char *what, struct err *err);

/* A loaded module as core/pe/pe.h reads it; image must outlive the source. */
struct target_image {
	struct target *target;
	uint64_t base;
	/* Filled in: its first page, where headers are, for each read of a live process takes long. */
	bool has_looked, has_page;
	unsigned char page[4096];
};

struct pe_source target_image_source(struct target_image *image);

/* Little-endian numbers in bytes that were read. In line: most of what walkers do is this. */
static inline uint16_t bytes_u16(const unsigned char *bytes)
{
	return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static inline uint32_t bytes_u32(const unsigned char *bytes)
{
	return bytes_u16(bytes) | (uint32_t)bytes_u16(bytes + 2) << 16;
}

static inline uint64_t bytes_u64(const unsigned char *bytes)
{
	return bytes_u32(bytes) | (uint64_t)bytes_u32(bytes + 4) << 32;
}

#endif
