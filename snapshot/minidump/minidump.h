/* A process in a minidump file. */
#ifndef SNAPSHOT_MINIDUMP_MINIDUMP_H
#define SNAPSHOT_MINIDUMP_MINIDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "core/dump/model.h"
#include "snapshot/target/target.h"

/*
 * Ranges of a target's addresses, in order and without overlaps, each with what is known about it.
 */

struct span {
	uint64_t addr, end;
	uint64_t offset; /* of the first byte in a file */
	unsigned access; /* enum target_access */
	bool is_image, is_read_only_view;
};

struct spans {
	struct span *list;
	size_t count, cap;
};

/* Adds one as it is; an empty one is left out. 0 or -ERR_NOMEM. */
int spans_add(struct spans *spans, const struct span *span);

/* Puts them in order; of what several have the one that begins lower keeps it, then the one with the lower
 * offset. How many lost a part. */
size_t spans_settle(struct spans *spans);

/* Makes one of those that lie side by side, in the file as well when by_offset. */
void spans_join(struct spans *spans, bool by_offset);

/* The first that ends above addr: its index, or count. */
size_t spans_find(const struct spans *spans, uint64_t addr);

/* The one that addr lies in, or NULL. Then, and else, region is narrowed to what has the same answer. */
const struct span *spans_narrow(
	const struct spans *spans, uint64_t addr, struct target_region *region);

/*
 * A minidump file: Microsoft's format, as its public documentation of minidumpapiset.h gives it.
 *
 * Everything is read where it lies, in the mapped file, and nothing in it is trusted: places and sizes are
 * checked against the file's size, lists are read as far as they are there, and what had to be left out is
 * counted. What is kept beside the file is bounded by its size.
 */

/* Those that are read, by their numbers. */
enum minidump_stream_type {
	MD_THREADS = 3,
	MD_MODULES = 4,
	MD_MEMORY = 5,
	MD_SYSTEM = 7,
	MD_MEMORY64 = 9,
	MD_MISC = 15,
	MD_INFOS = 16,
	MD_STREAM_TYPES
};

struct minidump_stream {
	const unsigned char *bytes; /* NULL: the file has none */
	size_t len; /* as far as it is in the file */
	uint32_t said_len; /* as the file says */
};

/* What was left out. */
struct minidump_gaps {
	uint64_t cut_ranges, cut_bytes; /* of memory, behind the end of the file */
	uint64_t cut_entries; /* of lists, behind the end of the file or of their stream */
	size_t overlaps; /* ranges of memory that were there before */
	size_t shared; /* ranges of memory that are more than the file can hold */
	size_t odd_modules; /* empty, or one inside another */
	size_t cut_names; /* texts that are not there, or more than a file of that size can hold */
	size_t repeated; /* streams of a kind that was there before */
};

struct minidump {
	const unsigned char *bytes; /* the file; the caller's */
	size_t len;
	struct minidump_stream streams[MD_STREAM_TYPES];
	uint64_t flags; /* MINIDUMP_TYPE */
	int64_t time_ms;
	unsigned bits; /* of whoever wrote it: 64 also for a 32-bit process seen from 64 bits */
	bool is_bits_guessed; /* nothing in the file says so */
	struct module *modules; /* by base, without overlaps; texts are in arena */
	size_t module_count, module_cap;
	size_t first_module; /* of the file: the program; index */
	struct spans memory; /* what is in the file */
	struct spans runs; /* the same without regard to where in the file */
	struct spans infos; /* committed memory, with its access */
	struct spans module_spans;
	uint64_t range_count; /* of memory, as the file lists them */
	uint64_t text_bytes_left; /* that may still be kept */
	struct minidump_gaps gaps;
	struct arena arena;
};

/* Reads a file of len bytes, which must outlive the dump. name is for messages. Returns 0,
 * -ERR_NOT_MINIDUMP or -ERR_NOMEM. */
int minidump_read(
	struct minidump *dump, const void *bytes, size_t len, const char *name, struct err *err);
void minidump_release(struct minidump *dump);

/* As in struct target_ops. */
int minidump_copy(const struct minidump *dump, uint64_t addr, void *bytes, size_t len);

/* ---- what the parts of the reader share ---- */

/* A list of entries of one size behind their number. */
struct minidump_list {
	const unsigned char *entries;
	size_t count; /* that are there */
};

/* The list in a stream whose first field is the number (u32) of its entries; what of it is missing is counted
 * as a gap. Some writers leave 4 bytes between the two. */
struct minidump_list minidump_list(
	struct minidump *dump, enum minidump_stream_type type, size_t entry_bytes);

/* How many entries of entry_bytes are in len bytes, of count that should be; the rest counts as a gap. */
size_t minidump_entries(struct minidump *dump, uint64_t count, size_t len, size_t entry_bytes);

/* An address as the file has it: 32-bit ones may have been extended by their sign. */
uint64_t minidump_addr(const struct minidump *dump, uint64_t addr);

/* Each reads its streams: 0 or -ERR_NOMEM. */
int minidump_read_memory(struct minidump *dump);
int minidump_read_modules(struct minidump *dump);

/* Adds modules that the file's list lacks; one where there is one already is left out. 0 or -ERR_NOMEM. */
int minidump_add_modules(struct minidump *dump, const struct module *modules, size_t count);

/*
 * Which process a minidump holds: what struct target says of itself.
 */

/* Fills target's bits, peb, host_peb, pid, times, image and os, as far as the file tells. target->ops->read() reads the
 * file. Adds the modules of a 32-bit process that a 64-bit writer left out. 0 or -ERR_NOMEM. */
int minidump_describe(struct minidump *dump, struct target *target);

/* Adds a warning for everything that is missing from the file, or odd in it. */
void minidump_warn(
	const struct minidump *dump, const struct target *target, struct snapshot *snapshot);

#endif
