/*
 * PE images (.exe, .dll), 32- and 64-bit: headers, identity, sections, exports, symbols.
 *
 * The bytes come through a callback, from a file or from the memory of a live process. They are
 * never trusted: every offset, count and string is checked, and invalid ones are an error. Layout:
 * "PE Format", Microsoft Learn. An rva is an offset from the start of the image in memory.
 */
#ifndef CORE_PE_PE_H
#define CORE_PE_PE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"

#define PE_SECTIONS_MAX 96 /* the documented limit of Windows' loader */
#define PE_MACHINE_I386 0x014c
#define PE_MACHINE_AMD64 0x8664
#define PE_MACHINE_ARM64 0xaa64

struct pe_source {
	/* Reads exactly len bytes at offset. Returns 0, or a negative number. */
	int (*read)(void *ctx, uint64_t offset, void *bytes, size_t len);
	void *ctx;
	bool in_memory; /* offset is an rva; otherwise an offset in the file */
};

struct pe_section {
	char name[9];
	uint32_t rva, size_bytes; /* in memory */
	uint32_t file_offset, file_bytes;
	bool is_code, is_writable;
};

struct pe_range {
	uint32_t rva, size_bytes; /* both 0: no such range */
};

struct pe_image {
	uint16_t machine;
	unsigned bits; /* 32 or 64 */
	uint32_t timestamp, checksum, size_of_image, size_of_headers;
	uint32_t entry_rva; /* 0: none */
	uint64_t preferred_base;
	/* The symbol table that mingw leaves in the file and that is not mapped; both 0: none. */
	uint32_t coff_offset, coff_symbols;
	struct pe_range exports, exceptions, debug;
	struct pe_section sections[PE_SECTIONS_MAX];
	size_t section_count;
	/* From the CodeView record; empty texts and 0 without a record. */
	char pdb[300]; /* file name of the PDB; truncated if longer */
	char pdb_guid[33]; /* 32 upper-case digits, as in the paths of symbol servers */
	uint32_t pdb_age;
};

/* Fills *image. Returns 0; -ERR_READ if the source cannot read; -ERR_TARGET if this is not a PE
 * image or its headers are inconsistent. A damaged CodeView record is ignored. */
int pe_read_headers(const struct pe_source *source, struct pe_image *image);

/* Returns the section that contains rva, or NULL. */
const struct pe_section *pe_section_at(const struct pe_image *image, uint32_t rva);

/* Reads len bytes at an rva. Bytes that a section has only in memory read as 0 from a file. Returns
 * 0, -ERR_READ, or -ERR_TARGET if the bytes are not all in the headers or in one section. */
int pe_read(const struct pe_source *source, const struct pe_image *image, uint32_t rva, void *bytes,
	size_t len);

/* Returns the number of bytes from rva to the end of its section, or of the headers. */
size_t pe_left_at(const struct pe_image *image, uint32_t rva);

/* Reads a NUL-terminated text; of a longer text, the first size - 1 bytes. Returns 0, -ERR_READ, or
 * -ERR_TARGET if the text has no end in its section. */
int pe_read_text(const struct pe_source *source, const struct pe_image *image, uint32_t rva,
	char *text, size_t size);

/* Read numbers of PE images: little-endian, unaligned. */
static inline uint16_t pe_u16(const unsigned char *bytes)
{
	return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static inline uint32_t pe_u32(const unsigned char *bytes)
{
	return pe_u16(bytes) | (uint32_t)pe_u16(bytes + 2) << 16;
}

struct pe_export {
	uint32_t rva, ordinal;
	const char *name; /* "OrdinalN" if it has no name */
};

/* Owns its list, and the names in the arena. */
struct pe_exports {
	struct pe_export *list; /* sorted by rva, then name; without forwarders to another DLL */
	size_t count;
	struct arena arena;
};

/* Reads the export table. Without a table, *exports is empty. Returns 0, -ERR_READ or -ERR_TARGET.
 * The caller releases *exports after success. */
int pe_exports_read(
	const struct pe_source *source, const struct pe_image *image, struct pe_exports *exports);
void pe_exports_release(struct pe_exports *exports);

/* As pe_exports_read(), for the functions in the symbol table that mingw leaves; ordinals are 0.
 * Names are not demangled. An image in memory has no symbol table. */
int pe_symbols_read(
	const struct pe_source *source, const struct pe_image *image, struct pe_exports *symbols);

/* For qsort(): compares rva, then the first 4096 bytes of the name. */
int pe_export_compare(const void *a, const void *b);

/* Finds an export by its exact name. Returns 0 and sets *rva; -ERR_SYMBOLS if there is no such
 * export (or it is a forwarder); -ERR_READ, -ERR_TARGET. */
int pe_find_export(const struct pe_source *source, const struct pe_image *image, const char *name,
	uint32_t *rva);

/* Finds count exports in one pass: rvas[i] is the rva of names[i], or 0. Returns 0, or -ERR_READ or
 * -ERR_TARGET with rvas possibly incomplete. */
int pe_find_exports(const struct pe_source *source, const struct pe_image *image,
	const char *const *names, size_t count, uint32_t *rvas);

/* Finds the function that contains rva, in the exception table of x64 images. Returns 1 and sets
 * *start to the rva of its first byte. Returns 0 if no function contains rva; then *start is the
 * end of the last function before it, or 0. Otherwise returns -ERR_READ, -ERR_TARGET or
 * -ERR_SYMBOLS (no table). */
int pe_function_start(const struct pe_source *source, const struct pe_image *image, uint32_t rva,
	uint32_t *start);

#endif
