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
#ifndef SYMBOLIZE_CACHE_SECTION_H
#define SYMBOLIZE_CACHE_SECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/buf.h"
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

#endif
