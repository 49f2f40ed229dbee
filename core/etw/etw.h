/*
 * ETW logs: recordings of a whole machine made by WPR, xperf or PerfView. The heap events and
 * virtual memory events of one process in a log are converted to a recording.
 *
 * A log is read twice. First, a scan reads the events in file order. It finds processes, modules,
 * and definitions of stacks, most of which are at the end of the log. Then the events are read
 * again, in order of time. Memory is needed only for the data found by the scan (which has limits),
 * one buffer per processor, and the live blocks.
 */
#ifndef CORE_ETW_ETW_H
#define CORE_ETW_ETW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/etw/etw_file.h"

struct etw_process {
	uint32_t pid, parent_pid; /* parent_pid 0: unknown */
	unsigned bits; /* 32 or 64 */
	const char *image; /* file name, or NULL */
	const char *command_line; /* command line, or NULL */
	uint64_t start_ticks, end_ticks; /* 0: not recorded in the log */
	/* Number of events about the blocks and heaps of the process, and about its virtual
	 * memory. */
	uint64_t heap_events, memory_events;
	/* The log contains the creation of the process's first heaps, so it covers the start of the
	 * process. */
	bool has_heap_create;
};

/* Number of events of one kind, used to describe the log. */
struct etw_count {
	unsigned group;
	unsigned char guid[16]; /* used only for ETW_OTHER */
	uint16_t id;
	uint8_t type, version, header;
	uint64_t count;
};

struct etw_facts {
	/* Valid after etw_open(). */
	/* files of one session; times use the clock of the first file */
	const struct etw_file *files;
	size_t file_count;
	uint64_t file_bytes, buffer_count;
	/* Valid after etw_scan(). */
	uint64_t event_count, first_ticks, last_ticks;
	uint64_t skipped_count; /* trace messages, and logging errors */
	uint64_t bad_buffers; /* buffers that cannot be unpacked or whose end is invalid */
	uint64_t snapshot_parts; /* parts of WPR's heap snapshots, whose format is unpublished */
	/* number of stacks with frames, of stacks that contain only a key, and of definitions of
	 * keys */
	uint64_t stack_count, key_count, definition_count;
	uint64_t image_count, identity_count;
	const struct etw_process *processes; /* sorted by pid */
	size_t process_count;
	uint64_t orphan_events; /* heap events without a process */
	/* Sorted by group. Only filled in if wants_counts was passed to etw_scan(). */
	const struct etw_count *counts;
	size_t count_count;
	/* Valid after etw_bind(). */
	/* number of stacks for which an event was found, and for which none was found */
	uint64_t bound_count, unbound_count;
	uint64_t undefined_count; /* keys without a definition */
	uint64_t identified_count; /* images whose identity is known */
};

struct etw_log;

/* Called from time to time with the amount of work done. */
typedef void (*etw_progress_fn)(void *ctx, uint64_t done, uint64_t total);

/* Opens the files of one session, plain or in zip archives. Returns 0, -ERR_OPEN, -ERR_READ,
 * -ERR_NOT_ETW, -ERR_NO_ETL, or -ERR_BAD_ETW (also for files of several sessions). */
int etw_open(struct etw_log **log, const char *const *paths, size_t count, struct err *err);
void etw_close(struct etw_log *log); /* log may be NULL */

/* Returns true if two open logs come from the same boot of the same machine and overlap in time. */
bool etw_is_one_session(const struct etw_log *a, const struct etw_log *b);

int etw_scan(struct etw_log *log, bool wants_counts, etw_progress_fn progress, void *ctx,
	struct err *err);
const struct etw_facts *etw_facts(const struct etw_log *log);

/* Counts the stacks for which an event is found, to describe the log. etw_scan() comes first. */
int etw_bind(struct etw_log *log, etw_progress_fn progress, void *ctx, struct err *err);

/* Chooses the process whose pid or image name is `wanted`. If `wanted` is NULL, chooses the only
 * process with heap events. If no process has heap events, chooses the only process with virtual
 * memory events. Returns 0, -ERR_NO_PROCESS or -ERR_PROCESSES. */
int etw_choose(const struct etw_log *log, const char *wanted, const struct etw_process **process,
	struct err *err);

struct etw_record_options {
	const char *path; /* path of the recording */
	bool keeps_addresses;
	bool is_temporary; /* the file is removed soon, so its size does not matter */
};

/* Writes the recording of a process. Call it after etw_scan(). */
int etw_record(struct etw_log *log, const struct etw_process *process,
	const struct etw_record_options *options, etw_progress_fn progress, void *ctx,
	struct err *err);

#endif
