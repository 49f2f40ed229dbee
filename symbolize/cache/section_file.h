/*
 * The file of the cache of names: a header, then sections (section.h), the newest last.
 *
 * It is read without a lock, while others may write: a section counts that is whole. It is written
 * under own_file_lock(): mostly by adding sections at its end. When it would become too long the oldest
 * sections go, and sections of one module that have become many are made one; then those that stay move
 * up in place, which needs no room on the disk and no second name. Whoever reads meanwhile finds less,
 * and so does everybody when the writer is killed in the middle of it.
 */
#ifndef SYMBOLIZE_CACHE_SECTION_FILE_H
#define SYMBOLIZE_CACHE_SECTION_FILE_H

#include "core/own_file.h"
#include "symbolize/cache/section.h"

#define SECTIONS_MAX 8192 /* in the file */
#define SECTIONS_OF_KEY_MAX 8 /* small ones of one module; then they are made one */

struct section_ref {
	uint64_t offset;
	struct section_head head;
	bool is_dropped; /* for who writes */
};

struct section_refs {
	struct section_ref *list;
	size_t count, cap;
	uint64_t end; /* where the last one ends, or the header; behind it lies nothing of use */
	bool is_header_whole;
	bool has_gaps; /* between them lies what is no section */
};

void section_refs_init(struct section_refs *refs);
void section_refs_release(struct section_refs *refs);

/* Finds the sections within the first limit bytes of a file: 0, or -ERR_NOMEM. -ERR_READ: the file is no
 * cache, not even a damaged one. */
int section_refs_read(struct section_refs *refs, struct os_file *file, uint64_t limit);

/* Reads one: 0, -ERR_READ when it is damaged, not of that key or no longer there, or -ERR_NOMEM. */
int section_read(struct os_file *file, const struct section_ref *ref, const char *key,
	struct section *section);

/* New names of one module. */
struct section_additions {
	const char *key;
	struct section_answer *answers;
	size_t count;
};

/* What to write, and how. */
struct section_job {
	const char *path;
	uint64_t limit; /* bytes the file may have */
	bool is_own_place; /* what lies there is a cache, whatever it looks like */
	bool is_damaged; /* sections were met that are not whole: look for them */
	const struct section_additions *additions;
	size_t count;
};

/* Writes what can be written. */
void section_file_add(const struct section_job *job);

#endif
