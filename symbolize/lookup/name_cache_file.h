/*
 * A section of the cache of names: the names of some addresses of one module, as bytes in a file.
 *
 * Numbers are little-endian. A head of SECTION_HEAD_BYTES:
 *
 *	 0  u32  magic
 *	 4  u32  bytes of the key
 *	 8  u32  answers
 *	12  u32  symbols
 *	16  u32  bytes of texts
 *	20  u32  hash of the key
 *	24  u64  check of the body
 *	32  u64  check of the 32 bytes before
 *
 * and a body: the key; the answers' offsets into the image (u32, each above the one before); the
 * number of each answer's first symbol (u32; its symbols end where the next answer's begin); the symbols
 * (SYMBOL_BYTES each: u32 place of the function's name among the texts, u32 that of the file's or
 * NO_TEXT, u32 line, u64 offset from the function's start); the texts, each ended by NUL.
 *
 * Nothing of it is believed: a section that is cut or changed fails its checks, and one that was made to
 * pass them still leads nowhere outside its own bytes.
 */
#ifndef SYMBOLIZE_LOOKUP_NAME_CACHE_FILE_H
#define SYMBOLIZE_LOOKUP_NAME_CACHE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/io/file.h"
#include "symbolize/symbolize.h"

#define SECTION_HEAD_BYTES 40
#define SECTION_KEY_MAX 8000 /* bytes */

struct section_head {
	uint32_t key_bytes, answer_count, symbol_count, text_bytes;
	uint32_t key_hash;
	uint64_t body_check;
};

uint32_t section_key_hash(const char *key);

/* Reads SECTION_HEAD_BYTES: false when they are no head. */
bool section_head_get(const unsigned char *bytes, struct section_head *head);

/* Of the whole section, with its head. */
uint64_t section_bytes(const struct section_head *head);

/* Whether body is the one that head was written for. */
bool section_is_whole(const struct section_head *head, const unsigned char *body);

/* One whose names can be looked up. */
struct section {
	unsigned char *body; /* owned, as malloc() gave it */
	uint32_t answer_count, symbol_count, text_bytes;
	const unsigned char *rvas, *firsts, *symbols; /* in body */
	char *texts; /* in body; control characters in them have been made harmless */
	const struct arena *arena; /* that kept has been copied to; NULL: none yet */
	const char *kept;
};

/* Takes body over when it is sound and of that key: true. */
bool section_take(struct section *section, const struct section_head *head, unsigned char *body,
	const char *key);
void section_release(struct section *section);

/* The index of rva's answer, or answer_count. */
uint32_t section_find(const struct section *section, uint32_t rva);

uint32_t section_rva(const struct section *section, uint32_t index);

/* One answer, copied into arena; for all answers the texts once, so arena must not be released before the
 * section. 0 or -ERR_NOMEM. */
int section_answer(
	struct section *section, uint32_t index, struct arena *arena, struct symbols *found);

/* What to write. */
struct section_answer {
	uint32_t rva;
	uint32_t age; /* of two about one rva, the one of the higher number counts */
	struct symbols symbols;
};

/* Sorts them, and of several about one rva leaves one; leaves out what no section can hold. Returns how
 * many are left. */
size_t section_sort(struct section_answer *answers, size_t count);

/* Adds a section of the first so many answers, sorted, to bytes as make it about limit bytes long, and
 * says how many those are. 0 or -ERR_NOMEM, then with bytes as they were. */
int section_build(struct buf *bytes, const char *key, const struct section_answer *answers,
	size_t count, size_t limit, size_t *taken);

/* How a section of the cache of names lies in its bytes: for section.c, which reads, and
 * section_build.c, which writes. The layout is told in section.h. */

#define SECTION_MAGIC UINT32_C(0x736d6e68) /* "hnms" */
#define HEAD_CHECKED_BYTES 32 /* of the head; its own check follows */
#define SYMBOL_BYTES 20
#define NO_TEXT UINT32_MAX

static inline uint32_t le32(const unsigned char *bytes)
{
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

static inline uint64_t le64(const unsigned char *bytes)
{
	return le32(bytes) | (uint64_t)le32(bytes + 4) << 32;
}

static inline void put_le32(unsigned char *bytes, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		bytes[i] = (unsigned char)(value >> (8 * i));
}

static inline void put_le64(unsigned char *bytes, uint64_t value)
{
	put_le32(bytes, (uint32_t)value);
	put_le32(bytes + 4, (uint32_t)(value >> 32));
}

/* A step is one to one in either number while the other stays: a change within one word changes the
 * result for certain. Against accidents, not against people. */
static inline uint64_t check_step(uint64_t sum, uint64_t word)
{
	sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return sum << 29 | sum >> 35;
}

static inline uint64_t check_of(const unsigned char *bytes, size_t len)
{
	uint64_t sum = check_step(len, 1);
	unsigned char last[8] = {0};

	for (; len >= 8; bytes += 8, len -= 8)
		sum = check_step(sum, le64(bytes));
	if (len)
		memcpy(last, bytes, len);
	return check_step(sum, le64(last));
}

/* The header of the file of the cache of names: one text, twice, so that a file is known for ours when
 * one of them is damaged. Another format gets another file name. */

#define HEADER_TEXT "hsnap's names 1\n"
#define HEADER_TEXT_BYTES 16
#define HEADER_BYTES 32

/*
 * The file of the cache of names: a header, then sections (section.h), the newest last.
 *
 * It is read without a lock, while others may write: a section counts that is whole. It is written
 * under own_file_lock(): mostly by adding sections at its end. When it would become too long the oldest
 * sections go, and sections of one module that have become many are made one; then those that stay move
 * up in place, which needs no room on the disk and no second name. Whoever reads meanwhile finds less,
 * and so does everybody when the writer is killed in the middle of it.
 */

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
