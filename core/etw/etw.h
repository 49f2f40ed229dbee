/*
 * ETW logs: what WPR, xperf and PerfView recorded of a whole machine. The heap events and the virtual memory of one
 * process in them become a recording.
 *
 * A log is read twice: a scan, in the order of the file, finds processes, modules and definitions of stacks, most of
 * which come at the log's end; then the events are taken in their order. Memory is bounded by what the scan
 * finds (with limits), by a buffer for each processor, and by the blocks that are live.
 */
#ifndef CORE_ETW_ETW_H
#define CORE_ETW_ETW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/etw/etw_file.h"

struct etw_process {
	uint32_t pid, parent_pid; /* parent 0: not known */
	unsigned bits; /* 32 or 64 */
	const char *image; /* a file name, or NULL */
	const char *command_line; /* or NULL */
	uint64_t start_ticks, end_ticks; /* 0: not in the log */
	uint64_t heap_events, memory_events; /* of its blocks and heaps; of its virtual memory */
	bool has_heap_create; /* of its first heaps: the log has seen its beginning */
};

/* Events of one kind, for whoever wants to know what is in a log. */
struct etw_count {
	unsigned group;
	unsigned char guid[16]; /* of ETW_OTHER */
	uint16_t id;
	uint8_t type, version, header;
	uint64_t count;
};

struct etw_facts {
	/* After etw_open(). */
	const struct etw_file *files; /* of one session; the first one has the clock that counts */
	size_t file_count;
	uint64_t file_bytes, buffer_count;
	/* After etw_scan(). */
	uint64_t event_count, first_ticks, last_ticks;
	uint64_t skipped_count; /* messages of other forms */
	uint64_t bad_buffers; /* that did not unpack, or of which the rest makes no sense */
	uint64_t snapshot_parts; /* of heap snapshots of WPR, whose form is not published */
	uint64_t stack_count, key_count,
		definition_count; /* stacks in full; by key; keys defined */
	uint64_t image_count, identity_count;
	const struct etw_process *processes; /* by pid */
	size_t process_count;
	uint64_t orphan_events; /* heap events that name no process */
	const struct etw_count *counts; /* in the order of the groups; when they were asked for */
	size_t count_count;
	/* After etw_bind(). */
	uint64_t bound_count, unbound_count; /* stacks that found their event; that did not */
	uint64_t undefined_count; /* keys that are never defined */
	uint64_t identified_count; /* images that have an identity */
};

struct etw_log;

/* Is told how much of the work is done, now and then. */
typedef void (*etw_progress_fn)(void *ctx, uint64_t done, uint64_t total);

/* Opens the files of one session, as it is or packed in a zip archive: 0; -ERR_OPEN, -ERR_READ, -ERR_NOT_ETW,
 * -ERR_BAD_ETW, also when they are of several. */
int etw_open(struct etw_log **log, const char *const *paths, size_t count, struct err *err);
void etw_close(struct etw_log *log); /* NULL is nothing */

/* Whether two opened logs are of one machine between two starts, and overlap in time. */
bool etw_is_one_session(const struct etw_log *a, const struct etw_log *b);

int etw_scan(struct etw_log *log, bool wants_counts, etw_progress_fn progress, void *ctx,
	struct err *err);
const struct etw_facts *etw_facts(const struct etw_log *log);

/* Finds out how stacks bind to events, after a scan; for whoever wants to know. */
int etw_bind(struct etw_log *log, etw_progress_fn progress, void *ctx, struct err *err);

/* Chooses the process that is meant by a pid or an image's name, or, when wanted is NULL, the only one with heap events or,
 * without any such, with virtual memory: 0, -ERR_NO_PROCESS, -ERR_PROCESSES. */
int etw_choose(const struct etw_log *log, const char *wanted, const struct etw_process **process,
	struct err *err);

struct etw_record_options {
	const char *path; /* of the recording */
	bool keeps_addresses;
	bool is_temporary; /* its size does not matter */
};

/* Writes the recording of a process, after a scan. */
int etw_record(struct etw_log *log, const struct etw_process *process,
	const struct etw_record_options *options, etw_progress_fn progress, void *ctx,
	struct err *err);

#endif
