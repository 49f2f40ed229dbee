/*
 * A small 64-bit PE image made from arithmetic: exports, symbols and a table of functions, for damage to
 * be done to. Layout after Microsoft's "PE Format" and "x64 exception handling", written down a second
 * time to check the reader with.
 *
 *   0x1000  code: alpha 0x1000 (to 0x1100), beta 0x1100 (to 0x1200), Ordinal4 0x1200, func 0x1500,
 *           a part of delta 0x1600 (to 0x1680), gamma 0x1700, a part of alpha 0x1800 (to 0x1880),
 *           delta 0x1900 (to 0x1a00); "mark" at 0x1520 is no function
 *   0x2000  exports
 *   0x3000  table of functions, its unwind records from 0x3100 on
 */
#ifndef TESTS_UNIT_IMAGE_MADE_H
#define TESTS_UNIT_IMAGE_MADE_H

#include "tests/unit/pdb_made.h"

enum {
	MADE_PE = 64, /* places in the file */
	MADE_OPTIONAL = MADE_PE + 24,
	MADE_DIRECTORIES = MADE_OPTIONAL + 112,
	MADE_HEADERS = MADE_OPTIONAL + 240,
	MADE_TEXT = 0x400,
	MADE_EXPORTS = 0x600,
	MADE_FUNCTIONS = 0xa00,
	MADE_COFF = 0xc00,
	/* within the exports */
	MADE_ADDRESSES = 40,
	MADE_NAMES = 72,
	MADE_ORDINALS = 96,
	MADE_TEXTS = 112,
};

static inline void made_image_section(struct made_bytes *to, unsigned i, const char *name,
	uint32_t rva, uint32_t at, uint32_t bytes)
{
	size_t from = MADE_HEADERS + i * (size_t)40;

	memcpy(to->bytes + from, name, strlen(name));
	made_set(to, from + 8, 0x1000, 4);
	made_set(to, from + 12, rva, 4);
	made_set(to, from + 16, bytes, 4);
	made_set(to, from + 20, at, 4);
	made_set(to, from + 36, i ? 0x40000040 : 0x60000020, 4);
}

static inline void made_headers(struct made_bytes *to)
{
	memcpy(to->bytes, "MZ", 2);
	made_set(to, 60, MADE_PE, 4);
	memcpy(to->bytes + MADE_PE, "PE", 2);
	made_set(to, MADE_PE + 4, 0x8664, 2);
	made_set(to, MADE_PE + 6, 3, 2);
	made_set(to, MADE_PE + 12, MADE_COFF, 4);
	made_set(to, MADE_PE + 16, 2, 4);
	made_set(to, MADE_PE + 20, 240, 2);
	made_set(to, MADE_OPTIONAL, 0x20b, 2);
	made_set(to, MADE_OPTIONAL + 24, 0x140000000, 8);
	made_set(to, MADE_OPTIONAL + 56, 0x4000, 4);
	made_set(to, MADE_OPTIONAL + 60, 0x400, 4);
	made_set(to, MADE_OPTIONAL + 108, 16, 4);
	made_set(to, MADE_DIRECTORIES, 0x2000, 4);
	made_set(to, MADE_DIRECTORIES + 4, 0x200, 4);
	made_set(to, MADE_DIRECTORIES + 24, 0x3000, 4);
	made_set(to, MADE_DIRECTORIES + 28, 60, 4);
	made_image_section(to, 0, ".text", 0x1000, MADE_TEXT, 0x200);
	made_image_section(to, 1, ".edata", 0x2000, MADE_EXPORTS, 0x400);
	made_image_section(to, 2, ".pdata", 0x3000, MADE_FUNCTIONS, 0x200);
}

static inline void made_exports(struct made_bytes *to)
{
	/* The fifth is a text for another DLL to fulfil, within the table. */
	static const uint32_t places[] = {0x1000, 0x1100, 0x1700, 0x1200, 0x2000 + 200, 0x1900};
	static const char *const names[] = {"alpha", "beta", "delta", "gamma", "gone"};
	static const uint16_t indexes[] = {0, 1, 5, 2, 4};

	made_set(to, MADE_EXPORTS + 16, 1, 4);
	made_set(to, MADE_EXPORTS + 20, 6, 4);
	made_set(to, MADE_EXPORTS + 24, 5, 4);
	made_set(to, MADE_EXPORTS + 28, 0x2000 + MADE_ADDRESSES, 4);
	made_set(to, MADE_EXPORTS + 32, 0x2000 + MADE_NAMES, 4);
	made_set(to, MADE_EXPORTS + 36, 0x2000 + MADE_ORDINALS, 4);
	for (unsigned i = 0; i < 6; i++)
		made_set(to, MADE_EXPORTS + MADE_ADDRESSES + i * (size_t)4, places[i], 4);
	for (unsigned i = 0; i < 5; i++) {
		size_t text = MADE_TEXTS + i * (size_t)8;

		memcpy(to->bytes + MADE_EXPORTS + text, names[i], strlen(names[i]));
		made_set(to, MADE_EXPORTS + MADE_NAMES + i * (size_t)4, 0x2000 + text, 4);
		made_set(to, MADE_EXPORTS + MADE_ORDINALS + i * (size_t)2, indexes[i], 2);
	}
	memcpy(to->bytes + MADE_EXPORTS + 200, "OTHER.gone", 10);
}

/* One whose unwind record names another entry begins where that does. */
static inline void made_functions(struct made_bytes *to)
{
	static const uint32_t entries[5][3] = {{0x1000, 0x1100, 0x3100}, {0x1100, 0x1200, 0x3100},
		{0x1600, 0x1680, 0x3110}, {0x1800, 0x1880, 0x3120}, {0x1900, 0x1a00, 0x3100}};
	static const unsigned chained[2][2] = {{0x110, 4}, {0x120, 0}}; /* record, entry */

	for (unsigned i = 0; i < 15; i++)
		made_set(to, MADE_FUNCTIONS + i * (size_t)4, entries[i / 3][i % 3], 4);
	made_set(to, MADE_FUNCTIONS + 0x100, 1, 1);
	for (unsigned i = 0; i < 2; i++) {
		size_t at = MADE_FUNCTIONS + chained[i][0];

		made_set(to, at, 1 | 4 << 3, 1);
		for (unsigned j = 0; j < 3; j++)
			made_set(to, at + 4 + j * (size_t)4, entries[chained[i][1]][j], 4);
	}
}

static inline void made_symbol(
	struct made_bytes *to, unsigned i, const char *name, uint32_t value, uint16_t type)
{
	size_t at = MADE_COFF + i * (size_t)18;

	memcpy(to->bytes + at, name, strlen(name));
	made_set(to, at + 8, value, 4);
	made_set(to, at + 12, 1, 2);
	made_set(to, at + 14, type, 2);
	made_set(to, at + 16, 2, 1);
}

static inline struct made_bytes made_image(void)
{
	struct made_bytes image = {0};

	made_fill(&image, MADE_COFF + 2 * 18 + 4);
	made_headers(&image);
	made_exports(&image);
	made_functions(&image);
	made_symbol(&image, 0, "func", 0x500, 0x20);
	made_symbol(&image, 1, "mark", 0x520, 0);
	made_set(&image, MADE_COFF + 2 * 18, 4, 4); /* no longer names */
	return image;
}

#endif
