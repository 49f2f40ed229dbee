/*
 * ETW logs: recordings of a whole machine by WPR, xperf or PerfView. The heap events and the
 * virtual memory of one process in a log become a recording.
 *
 * A log is read twice. A scan, in the order of the file, finds processes, modules and definitions
 * of stacks. Most definitions come at the end of the log. Then the events are read in the order of
 * time. Memory is bounded by what the scan finds (within limits), by one buffer per processor, and
 * by the live blocks.
 */
#ifndef CORE_ETW_ETW_H
#define CORE_ETW_ETW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/etw/etw_file.h"

struct etw_process {
	uint32_t pid, parent_pid; /* parent 0: unknown */
	unsigned bits; /* 32 or 64 */
	const char *image; /* file name, or NULL */
	const char *command_line; /* or NULL */
	uint64_t start_ticks, end_ticks; /* 0: not in the log */
	/* Events of its blocks and heaps; of its virtual memory. */
	uint64_t heap_events, memory_events;
	/* Its first heaps were created in the log, so the log contains its start. */
	bool has_heap_create;
};

/* Number of events of one kind, for a description of the log. */
struct etw_count {
	unsigned group;
	unsigned char guid[16]; /* for ETW_OTHER */
	uint16_t id;
	uint8_t type, version, header;
	uint64_t count;
};

struct etw_facts {
	/* After etw_open(). */
	const struct etw_file *files; /* files of one session; the clock of the first one is used */
	size_t file_count;
	uint64_t file_bytes, buffer_count;
	/* After etw_scan(). */
	uint64_t event_count, first_ticks, last_ticks;
	uint64_t skipped_count; /* trace messages, and errors of logging */
	uint64_t bad_buffers; /* buffers that cannot be unpacked or whose rest is invalid */
	uint64_t snapshot_parts; /* parts of WPR's heap snapshots, whose format is not published */
	uint64_t stack_count, key_count,
		definition_count; /* stacks in full; stacks by key; definitions of keys */
	uint64_t image_count, identity_count;
	const struct etw_process *processes; /* sorted by pid */
	size_t process_count;
	uint64_t orphan_events; /* heap events without a process */
	/* Sorted by group; only if the scan was called with wants_counts. */
	const struct etw_count *counts;
	size_t count_count;
	/* After etw_bind(). */
	uint64_t bound_count, unbound_count; /* stacks with and without an event */
	uint64_t undefined_count; /* keys without a definition */
	uint64_t identified_count; /* images with an identity */
};

struct etw_log;

/* Called now and then with the amount of work that is done. */
typedef void (*etw_progress_fn)(void *ctx, uint64_t done, uint64_t total);

/* Opens the files of one session, plain or in zip archives. Returns 0, -ERR_OPEN, -ERR_READ,
 * -ERR_NOT_ETW, -ERR_NO_ETL, or -ERR_BAD_ETW (also for files of several sessions). */
int etw_open(struct etw_log **log, const char *const *paths, size_t count, struct err *err);
void etw_close(struct etw_log *log); /* log may be NULL */

/* Returns true if two opened logs are of one machine since one boot, and overlap in time. */
bool etw_is_one_session(const struct etw_log *a, const struct etw_log *b);

int etw_scan(struct etw_log *log, bool wants_counts, etw_progress_fn progress, void *ctx,
	struct err *err);
const struct etw_facts *etw_facts(const struct etw_log *log);

/* Counts how stacks bind to events, after a scan; for a description of the log. */
int etw_bind(struct etw_log *log, etw_progress_fn progress, void *ctx, struct err *err);

/* Chooses the process with the pid or image name wanted. NULL: the only process with heap events
 * or, if no process has any, the only one with virtual memory. Returns 0, -ERR_NO_PROCESS or
 * -ERR_PROCESSES. */
int etw_choose(const struct etw_log *log, const char *wanted, const struct etw_process **process,
	struct err *err);

struct etw_record_options {
	const char *path; /* of the recording */
	bool keeps_addresses;
	bool is_temporary; /* size does not matter: it is removed soon */
};

/* Writes the recording of a process, after a scan. */
int etw_record(struct etw_log *log, const struct etw_process *process,
	const struct etw_record_options *options, etw_progress_fn progress, void *ctx,
	struct err *err);

#endif
