/*
 * Interface to the process that is examined: read its memory, list its modules, hold it.
 *
 * target_live_windows.c implements it for a live process, minidump_memory.c for a file. Addresses
 * belong to the target and are always uint64_t. Nothing that is read from it is trusted.
 * snapshot/target/target_memory.h reads it with few calls. */
#ifndef SNAPSHOT_TARGET_TARGET_H
#define SNAPSHOT_TARGET_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/dump/model.h"
#include "core/pe/pe.h"

/* Size of the x64 address space of a process. */
#define TARGET_SPACE_BYTES ((uint64_t)1 << 47)

struct target;

enum target_access {
	TARGET_READ = 1,
	TARGET_WRITE = 2,
	TARGET_EXECUTE = 4,
};

/* Committed memory of one kind: [addr, end). */
struct target_region {
	uint64_t addr, end;
	unsigned access; /* enum target_access; 0 for a guard page */
	bool is_image; /* belongs to a module */
	/* View of a file or a section, mapped without write access: the process wrote none of its
	 * bytes through this view. */
	bool is_read_only_view;
};

struct target_range {
	uint64_t from, end; /* empty if from == end */
};

/* State of a thread while its process is held. */
struct target_thread {
	const unsigned char *context; /* registers: the processor's CONTEXT of winnt.h */
	size_t context_bytes; /* 0: unknown */
	uint64_t teb; /* of the process's bitness; 0: unknown */
	uint64_t sp; /* stack pointer; 0: unknown */
};

struct target_ops {
	/* Reads exactly len bytes. Returns 0, or -ERR_READ if any of them is missing. */
	int (*read)(struct target *target, uint64_t addr, void *bytes, size_t len);
	/* Finds the region that contains addr, otherwise the next one above it. Returns 0, or
	 * -ERR_READ at the end. NULL: regions are unknown, and only reads show what
	 * exists. */
	int (*region)(struct target *target, uint64_t addr, struct target_region *region);
	/* Works like region() for targets whose region is NULL; each call may take a while. NULL:
	 * regions are unknown. */
	int (*slow_region)(struct target *target, uint64_t addr, struct target_region *region);
	/* Calls each() for all threads, none of which runs. Returns 0, the result of each(), or
	 * -ERR_SYSTEM. NULL: threads are unknown. */
	int (*threads)(struct target *target,
		int (*each)(void *ctx, const struct target_thread *thread), void *ctx,
		struct err *err);
	/* Returns the bytes at addr in place (in a mapped file) and their number, or NULL if they
	 * are missing. They stay valid until close(). NULL: memory must be read. */
	const unsigned char *(*view)(struct target *target, uint64_t addr, size_t *len);
	/* Adds the loaded modules (base, size_bytes, path; for a file also their identities) to
	 * snapshot, and warnings for missing information. Returns 0 or an error. */
	int (*modules)(struct target *target, struct snapshot *snapshot, struct err *err);
	/* Suspend and resume all threads. resume() does nothing if nothing is suspended. */
	int (*suspend)(struct target *target, struct err *err);
	void (*resume)(struct target *target);
	/* Resumes for good, from an interrupt handler that then ends this process; a later
	 * suspend() never returns. NULL: nothing is ever held. */
	void (*interrupt)(struct target *target);
	bool (*is_alive)(struct target *target);
	void (*close)(struct target *target);
};

struct target {
	const struct target_ops *ops;
	void *system; /* data of the implementation */
	char name[40]; /* for messages: "pid 12" */
	uint32_t pid;
	uint32_t parent_pid; /* process that started it; 0: unknown */
	unsigned bits;
	uint64_t peb; /* process environment block of this bitness */
	uint64_t host_peb; /* 64-bit PEB of a 32-bit process on 64-bit Windows; otherwise 0 */
	uint32_t os_build; /* 0: unknown */
	/* Time, by os_clock_ms(), at which the last suspend() began to hold it; 0: at its call. */
	int64_t held_from_ms;
	/* suspend() makes a copy to read, and the process continues; of the last suspend(), or an
	 * estimate for the next */
	bool is_cloned;
	/* Id of the thread that ends the process and waits in the tracer until it has been
	 * examined; 0: none. On Windows that thread holds the process heap's lock. */
	uint32_t exit_thread;
	bool needs_threads; /* suspend() must provide for threads(), even with a clone */
	bool is_wine; /* known to be Wine; a file does not show it */
	/* It neither runs nor changes, and parts of its memory may be missing for good. */
	bool is_file;
	int64_t start_ms;
	int64_t time_ms; /* time of the state that is read; 0: now */
	char image[1024], os[80], host[256]; /* UTF-8; host: the machine's name, "" if unknown */
	uint64_t reads, read_bytes; /* number of calls and bytes, for -v */
};

int target_read(struct target *target, uint64_t addr, void *bytes, size_t len);

/*
 * Copies a held target, so that it can run while its memory is examined. Copies all readable
 * memory, except except[], read-only views, and those parts of modules that are not writable; and
 * the state of its threads. The copy is a target with regions, views and threads only. Returns NULL
 * if the target's regions are unknown, the copy would exceed max_bytes, or memory is short. */
struct target *target_copy(struct target *target, const struct target_range *except,
	size_t except_count, uint64_t max_bytes);
void target_copy_free(struct target *copy); /* accepts NULL */

/* Read numbers in the target's memory. Return 0 or -ERR_READ. */
int target_u32(struct target *target, uint64_t addr, uint32_t *value);
int target_u64(struct target *target, uint64_t addr, uint64_t *value);

/* Returns true if the owner of a lock may be changing the data that the lock protects. Owner 0 is
 * no owner, and the exiting thread only waits. */
static inline bool target_lock_is_held(const struct target *target, uint64_t owner)
{
	return owner && owner != target->exit_thread;
}

#define TARGET_BUILD_10 10240u /* first build of Windows 10 */

/* Returns true if blocks may be freed without passing the entry of RtlFreeHeap, as ntdll of Windows
 * 7 and 8 does. Under Wine only programs may do that; their heaps are walked by the layouts of
 * Wine's own source. */
static inline bool target_may_free_unseen(const struct target *target)
{
	return target->is_wine || (target->os_build && target->os_build < TARGET_BUILD_10);
}

/* Returns the number of committed bytes; the size of the address space if it is unknown. */
uint64_t target_committed_bytes(struct target *target);

/* Returns the end of the committed memory that begins at addr, at most end; end if it is
 * unknown. */
uint64_t target_committed_end(struct target *target, uint64_t addr, uint64_t end);

/* Sets the error for a failed read: ERR_GONE if the process has exited, otherwise ERR_TARGET with
 * the address and what. Returns the negative code. */
int target_err(struct target *target, uint64_t addr, const char *what, struct err *err);

/* A loaded module as a source for core/pe/pe.h; image must outlive the source. */
struct target_image {
	struct target *target;
	uint64_t base;
	/* Filled in: its first page, which contains the headers, because each read of a live
	 * process is slow. */
	bool has_looked, has_page;
	unsigned char page[4096];
};

struct pe_source target_image_source(struct target_image *image);

/* Little-endian numbers in bytes that were read. Inline, because walkers do little else. */
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
