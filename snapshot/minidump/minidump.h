/* A process in a minidump file: the reader of the file, and the target that is made from it. */
#ifndef SNAPSHOT_MINIDUMP_MINIDUMP_H
#define SNAPSHOT_MINIDUMP_MINIDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "core/dump/model.h"
#include "snapshot/target/target.h"

/* Address ranges of a target, sorted and without overlaps, each with its properties. */

struct span {
	uint64_t addr, end;
	uint64_t offset; /* offset of the first byte in a file */
	unsigned access; /* enum target_access */
	bool is_image, is_read_only_view;
};

struct spans {
	struct span *list;
	size_t count, cap;
};

/* Frees the spans. */
void spans_release(struct spans *spans);

/* Adds a span without sorting; an empty span is ignored. Returns 0 or -ERR_NOMEM. */
int spans_add(struct spans *spans, const struct span *span);

/* Sorts the spans and removes overlaps. The overlapping part stays in the span that begins lower.
 * If both begin at the same address, it stays in the span with the lower offset. Returns the number
 * of spans that lost a part. */
size_t spans_sort(struct spans *spans);

/* Joins adjacent spans. `by_offset`: only if they are also adjacent in the file. */
void spans_join(struct spans *spans, bool by_offset);

/* Returns the index of the first span that ends above `addr`, or `count`. */
size_t spans_find(const struct spans *spans, uint64_t addr);

/* Returns the span that contains `addr`, or NULL. In both cases, narrows `region` to the addresses
 * for which the result is the same. */
const struct span *spans_narrow(
	const struct spans *spans, uint64_t addr, struct target_region *region);

/*
 * A minidump file: Microsoft's format, from its public documentation of minidumpapiset.h. All data
 * is read in place, in the mapped file, and none of it is trusted. Offsets and sizes are checked
 * against the file's size, lists end at the end of the file at the latest, and missing parts are
 * counted. The memory that is allocated for the dump is limited by the file's size. */

/* Types of the streams that are read. */
enum minidump_stream_type {
	MD_THREADS = 3,
	MD_MODULES = 4,
	MD_MEMORY = 5,
	MD_SYSTEM = 7,
	MD_MEMORY64 = 9,
	MD_HANDLES = 12,
	MD_MISC = 15,
	MD_INFOS = 16,
	MD_VM_COUNTERS = 22,
	MD_STREAM_TYPES
};

struct minidump_stream {
	const unsigned char *bytes; /* NULL: the stream is not in the file */
	size_t len; /* number of bytes that are in the file */
	uint32_t said_len; /* number of bytes according to the directory */
};

/* Numbers of parts that were omitted, by reason. */
struct minidump_gaps {
	uint64_t cut_ranges, cut_bytes; /* memory beyond the end of the file */
	/* number of list entries beyond the end of the file or of their stream */
	uint64_t cut_entries;
	size_t overlaps; /* ranges of memory that overlap an earlier one */
	size_t shared; /* ranges of memory that together exceed the size of the file */
	size_t odd_modules; /* modules that are empty or inside another module */
	/* Number of strings that are missing, or for which a valid file of this size would have no
	 * room. */
	size_t cut_names;
	uint64_t cut_types; /* handles whose type is such a string, or one of too many types */
	size_t repeated; /* streams whose type already occurred */
	bool has_odd_space; /* the list of regions is inconsistent */
};

/* A list of entries of equal size. */
struct minidump_list {
	const unsigned char *entries;
	size_t count; /* number of entries that are present */
	size_t entry_bytes;
	bool is_whole; /* the list is in the file, and no entry is missing */
};

struct minidump {
	const unsigned char *bytes; /* the file; owned by the caller */
	size_t len;
	struct minidump_stream streams[MD_STREAM_TYPES];
	uint64_t flags; /* MINIDUMP_TYPE */
	int64_t time_ms;
	/* Bitness of the program that wrote the file. A 64-bit program may have written the file of
	 * a 32-bit process. */
	unsigned bits;
	bool is_bits_guessed; /* the file does not specify the bitness */
	struct module *modules; /* sorted by base, without overlaps; strings are in arena */
	size_t module_count, module_cap;
	/* Index (in modules) of the first module in the file, which is the program. */
	size_t first_module;
	struct spans memory; /* memory in the file */
	struct spans runs; /* memory in the file, joined regardless of offset */
	struct spans infos; /* committed memory, with its access */
	struct minidump_list info_list; /* the regions as they are in the file */
	bool has_space; /* info_list is complete and consistent */
	uint64_t handle_count; /* 0: unknown */
	struct balance_handles *handle_types; /* in arena */
	size_t handle_type_count;
	struct spans module_spans;
	uint64_t range_count; /* number of ranges of memory that are listed in the file */
	uint64_t text_bytes_left; /* number of bytes of strings that may still be stored */
	struct minidump_gaps gaps;
	struct arena arena;
};

/* Reads a file of `len` bytes, which must outlive the dump. `name` is used in messages. Returns 0,
 * -ERR_NOT_MINIDUMP, or -ERR_NOMEM. */
int minidump_read(
	struct minidump *dump, const void *bytes, size_t len, const char *name, struct err *err);
void minidump_release(struct minidump *dump);

/* Implements read() of struct target_ops. */
int minidump_copy(const struct minidump *dump, uint64_t addr, void *bytes, size_t len);

/* Implements view() of struct target_ops. */
const unsigned char *minidump_view(const struct minidump *dump, uint64_t addr, size_t *len);

/* ---- interfaces between the parts of the reader ---- */

/* Returns a pointer to the bytes at `rva`, or NULL. Reduces `*len` to the number of available
 * bytes. */
const unsigned char *minidump_at(const struct minidump *dump, uint64_t rva, size_t *len);

/* Counts the bytes of a string that is about to be stored. Returns false if the strings together
 * would be longer than in any valid file of this size. */
bool minidump_has_room(struct minidump *dump, size_t bytes);

/* Copies a string to the dump's arena, as UTF-8. Returns NULL if the string is empty or missing, or
 * exceeds what a file of this size can contain. A longer string is cut after `units_max` units. */
const char *minidump_text(struct minidump *dump, uint32_t rva, size_t units_max);

/* Finds the list in a stream whose first field (u32) is the number of entries. Missing entries are
 * counted as gaps. Some writers leave 4 bytes between the number and the entries. */
struct minidump_list minidump_list(
	struct minidump *dump, enum minidump_stream_type type, size_t entry_bytes);

/* Finds the list in a stream that begins with the size of its head, the size of an entry, and the
 * number of entries, which has `count_bytes` bytes. Missing entries, and a list whose entries are
 * smaller than `entry_min_bytes`, are counted as gaps. */
struct minidump_list minidump_headed_list(struct minidump *dump, enum minidump_stream_type type,
	size_t count_bytes, size_t entry_min_bytes);

/* Returns how many of `count` entries of `entry_bytes` fit into `len` bytes. The remaining entries
 * are counted as gaps. */
size_t minidump_entries(struct minidump *dump, uint64_t count, size_t len, size_t entry_bytes);

/* Returns an address from the file without its sign extension, because 32-bit addresses may have
 * been extended. */
uint64_t minidump_addr(const struct minidump *dump, uint64_t addr);

/* Reads the streams of memory. Returns 0 or -ERR_NOMEM. */
int minidump_read_memory(struct minidump *dump);

/* Adds modules that are not in the file's list, except modules that overlap a module in the list.
 * Returns 0 or -ERR_NOMEM. */
int minidump_add_modules(struct minidump *dump, const struct module *modules, size_t count);

/* The balance of the process in a minidump (minidump_balance.c). */

/* Checks the list of regions, and counts the handles by type. The memory must have been read. */
void minidump_read_balance(struct minidump *dump);

/* Returns the number of threads whose TEB is not in the file. */
size_t minidump_missing_tebs(struct minidump *dump, struct target *target);

/* Implement space(), tebs() and count() of struct target_ops. */
int minidump_space(const struct minidump *dump, struct target_memory **list, size_t *count);
int minidump_tebs(
	struct minidump *dump, struct target *target, struct target_teb **list, size_t *count);
void minidump_count(struct minidump *dump, struct balance *balance, struct arena *arena);

/* Description of the process in a minidump, for struct target. */

/* Fills the target's bits, peb, host_peb, pid, times, image and os, if the file contains them.
 * target->ops->read() must read the file. If a 64-bit writer omitted the modules of a 32-bit
 * process, adds them. Returns 0 or -ERR_NOMEM. */
int minidump_describe(struct minidump *dump, struct target *target);

/* Adds a warning for everything that is missing or inconsistent in the file. */
void minidump_warn(struct minidump *dump, struct target *target, struct snapshot *snapshot);

#endif
