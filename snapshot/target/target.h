/*
 * Interface to the process that is examined: reads its memory, lists its modules, and holds it.
 * target_live_windows.c implements the interface for a live process, minidump_memory.c for a file.
 * Addresses are addresses in the target and are always uint64_t. No data from the target is
 * trusted. snapshot/target/target_memory.h reads a target with few calls. */
#ifndef SNAPSHOT_TARGET_TARGET_H
#define SNAPSHOT_TARGET_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/dump/model.h"
#include "core/pe/pe.h"

/* Size of the address space of an x64 process. */
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
	bool is_image; /* the region belongs to a module */
	/* Read-only view of a file or section. The process has not written to its bytes through
	 * this view. */
	bool is_read_only_view;
};

struct target_range {
	uint64_t from, end; /* empty if from == end */
};

/* State of a thread while its process is held. */
struct target_thread {
	/* The thread's registers: the processor's CONTEXT of winnt.h. */
	const unsigned char *context;
	size_t context_bytes; /* 0: unknown */
	uint64_t teb; /* address of the TEB that has the bitness of the process; 0: unknown */
	uint64_t sp; /* stack pointer; 0: unknown */
};

enum target_memory_type {
	TARGET_PRIVATE,
	TARGET_VIEW, /* view of a file or section */
	TARGET_IMAGE,
};

/* A range of reserved or committed address space with equal properties. */
struct target_memory {
	uint64_t addr, end;
	uint64_t allocation; /* start of the allocation that contains the range */
	enum target_memory_type type;
	bool is_committed;
	/* Pages of a view or an image that the process has written to: copies of its own. */
	bool is_copy;
};

struct target_teb {
	uint64_t addr;
	unsigned bits; /* a thread of a 32-bit process on 64-bit Windows has two TEBs */
};

struct target_ops {
	/* Reads exactly len bytes. Returns 0, or -ERR_READ if any byte is missing. */
	int (*read)(struct target *target, uint64_t addr, void *bytes, size_t len);
	/* Finds the region that contains `addr`, or, if no region contains it, the next region
	 * above it. Returns 0, or -ERR_READ if no such region exists. NULL: regions are unknown,
	 * and only reads reveal which memory exists. */
	int (*region)(struct target *target, uint64_t addr, struct target_region *region);
	/* Like region(), for targets whose region is NULL; each call may be slow. NULL: regions are
	 * unknown. */
	int (*slow_region)(struct target *target, uint64_t addr, struct target_region *region);
	/* Calls each() for all threads. No thread may be running. Returns 0, the nonzero result of
	 * each(), or -ERR_SYSTEM. NULL: threads are unknown. */
	int (*threads)(struct target *target,
		int (*each)(void *ctx, const struct target_thread *thread), void *ctx,
		struct err *err);
	/*
	 * The next three functions serve the balance of the process (core/dump/balance.h). The
	 * process may be running. All three are NULL if they are not available. The caller frees
	 * the lists.
	 *
	 * space() lists the address space, except free parts, in ascending order. tebs() lists the
	 * TEBs of all threads. Both return 0, or -ERR_TARGET if the list is missing or cannot be
	 * trusted. count() sets the system's counters, and the numbers of threads, handles and
	 * other objects, where they are known. Strings are allocated from `arena`.
	 */
	int (*space)(struct target *target, struct target_memory **list, size_t *count);
	int (*tebs)(struct target *target, struct target_teb **list, size_t *count);
	void (*count)(struct target *target, struct balance *balance, struct arena *arena);
	/* Returns a pointer to the bytes at `addr` in a mapped file, and their number, or NULL if
	 * the bytes are missing. The pointer is valid until close(). NULL: memory must be read. */
	const unsigned char *(*view)(struct target *target, uint64_t addr, size_t *len);
	/* Adds the loaded modules (base, size_bytes and path; for a file also their identities) to
	 * `snapshot`, and a warning for each piece of missing information. Returns 0 or an
	 * error. */
	int (*modules)(struct target *target, struct snapshot *snapshot, struct err *err);
	/* Suspend and resume all threads. resume() does nothing if nothing is suspended. */
	int (*suspend)(struct target *target, struct err *err);
	void (*resume)(struct target *target);
	/* Resumes the process permanently: a concurrent or later suspend() never returns. Called by
	 * an interrupt handler that then ends hsnap. NULL: nothing is ever held. */
	void (*interrupt)(struct target *target);
	bool (*is_alive)(struct target *target);
	void (*close)(struct target *target);
};

struct target {
	const struct target_ops *ops;
	void *system; /* data of the interface's implementation */
	char name[40]; /* for messages: "pid 12" */
	uint32_t pid;
	uint32_t parent_pid; /* pid of the process that started the target; 0: unknown */
	unsigned bits;
	uint64_t peb; /* address of the PEB of this bitness */
	/* Address of the 64-bit PEB of a 32-bit process on 64-bit Windows; otherwise 0. */
	uint64_t host_peb;
	uint32_t os_build; /* 0: unknown */
	/* Value of os_clock_ms() when the process was last held. 0: use the time at which suspend()
	 * was called. */
	int64_t held_from_ms;
	/* suspend() copies the process, and the process itself continues to run. Valid for the last
	 * suspend(); before the first one, a prediction. */
	bool is_cloned;
	/* Id of the thread that is ending the process; 0: none. The thread waits in the tracer
	 * until the process has been examined. On Windows, it holds the lock of the process
	 * heap. */
	uint32_t exit_thread;
	/* threads() must work after suspend(), even if the process is copied */
	bool needs_threads;
	bool is_wine; /* known to run under Wine; not detected in files */
	/* The target neither runs nor changes, and parts of its memory may be permanently
	 * missing. */
	bool is_file;
	int64_t start_ms;
	int64_t time_ms; /* time of the state that is read; 0: the present */
	char image[1024], os[80], host[256]; /* UTF-8; host: the machine's name, "" if unknown */
	uint64_t reads, read_bytes; /* number of reads and of bytes read, for -v */
};

int target_read(struct target *target, uint64_t addr, void *bytes, size_t len);

/*
 * Copies a held target, so that the target can run while the copy is examined. Copies the state of
 * the threads and all readable memory, except the ranges in except[], read-only views, and the
 * parts of modules that are not writable. The copy is a target with only regions, views and
 * threads. Returns NULL if the target's regions are unknown, the copy would exceed `max_bytes`, or
 * memory is short.
 */
struct target *target_copy(struct target *target, const struct target_range *except,
	size_t except_count, uint64_t max_bytes);
void target_copy_free(struct target *copy); /* accepts NULL */

/* Reads a number in the target's memory. Returns 0 or -ERR_READ. */
int target_u32(struct target *target, uint64_t addr, uint32_t *value);

/* Returns true if the owner of a lock may be changing the data that the lock protects. If the owner
 * is 0, the lock is free. The exiting thread only waits, so it changes nothing. */
static inline bool target_lock_is_held(const struct target *target, uint64_t owner)
{
	return owner && owner != target->exit_thread;
}

#define TARGET_BUILD_10 10240u /* first build of Windows 10 */

/*
 * Returns true if blocks may be freed without entering RtlFreeHeap at its start, as in ntdll of
 * Windows 7 and 8. Also returns true under Wine, where only a program can free blocks in this way.
 * Wine's heaps are walked according to Wine's own source. So if a walk does not find a block there,
 * the block was freed.
 */
static inline bool target_may_free_unseen(const struct target *target)
{
	return target->is_wine || (target->os_build && target->os_build < TARGET_BUILD_10);
}

/* Returns the number of committed bytes or, if unknown, the size of the address space. */
uint64_t target_committed_bytes(struct target *target);

/* Returns the end of the committed memory that begins at addr, but at most `end`. Returns `end` if
 * unknown. */
uint64_t target_committed_end(struct target *target, uint64_t addr, uint64_t end);

/* Sets the error for a failed read: ERR_GONE if the process has exited, otherwise ERR_TARGET with
 * `addr` and `what`. Returns the negative code. */
int target_err(struct target *target, uint64_t addr, const char *what, struct err *err);

/* A loaded module as a source for core/pe/pe.h. `image` must outlive the source. */
struct target_image {
	struct target *target;
	uint64_t base;
	/* Filled in by the source: the module's first page, which contains the headers. It is
	 * cached, because each read of a live process is slow. */
	bool has_looked, has_page;
	unsigned char page[4096];
};

struct pe_source target_image_source(struct target_image *image);

/* Little-endian numbers in bytes that were read. Inline, because walkers spend most of their time
 * here. */
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
