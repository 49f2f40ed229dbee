/*
 * PE images (.exe, .dll), 32-bit and 64-bit: headers, identity, sections, exports, symbols.
 *
 * A callback supplies the bytes, from a file or from the memory of a live process. The bytes are
 * never trusted: every offset, count and string is checked, and an invalid value is an error.
 * Layout: "PE Format", Microsoft Learn. An rva is an offset from the start of the image in memory.
 */
#ifndef CORE_PE_PE_H
#define CORE_PE_PE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"

#define PE_SECTIONS_MAX 96 /* documented limit of the Windows loader */
#define PE_MACHINE_I386 0x014c
#define PE_MACHINE_AMD64 0x8664
#define PE_MACHINE_ARM64 0xaa64

struct pe_source {
	/* Reads exactly `len` bytes at `offset`. Returns 0 or a negative number. */
	int (*read)(void *ctx, uint64_t offset, void *bytes, size_t len);
	void *ctx;
	bool in_memory; /* offsets are rvas; otherwise they are file offsets */
};

struct pe_section {
	char name[9];
	uint32_t rva, size_bytes; /* place in memory */
	uint32_t file_offset, file_bytes;
	bool is_code, is_writable;
};

struct pe_range {
	uint32_t rva, size_bytes; /* both 0: the image has no such range */
};

struct pe_image {
	uint16_t machine;
	unsigned bits; /* 32 or 64 */
	uint32_t timestamp, checksum, size_of_image, size_of_headers;
	uint32_t entry_rva; /* 0: no entry point */
	uint64_t preferred_base;
	/* The symbol table that mingw leaves in the file; it is not mapped into memory. Both 0:
	 * none. */
	uint32_t coff_offset, coff_symbols;
	struct pe_range exports, exceptions, debug;
	struct pe_section sections[PE_SECTIONS_MAX];
	size_t section_count;
	/* From the CodeView record. Without a record, the strings are empty and the age is 0. */
	char pdb[300]; /* file name of the PDB, truncated if it is too long */
	char pdb_guid[33]; /* 32 upper-case digits, as used in symbol server paths */
	uint32_t pdb_age;
};

/* Fills *image. Returns 0; -ERR_READ if the source cannot be read; or -ERR_TARGET if the bytes are
 * not a PE image or the headers are inconsistent. A damaged CodeView record is ignored. */
int pe_read_headers(const struct pe_source *source, struct pe_image *image);

/* Returns the section that contains rva, or NULL. */
const struct pe_section *pe_section_at(const struct pe_image *image, uint32_t rva);

/* Reads `len` bytes at an rva. A section may be larger in memory than in the file; in a file, the
 * additional bytes read as 0. Returns 0, -ERR_READ, or -ERR_TARGET if the range does not lie within
 * the headers or within one section. */
int pe_read(const struct pe_source *source, const struct pe_image *image, uint32_t rva, void *bytes,
	size_t len);

/* Returns the number of bytes from rva to the end of its section, or to the end of the headers. */
size_t pe_left_at(const struct pe_image *image, uint32_t rva);

/* Reads a NUL-terminated string, truncated to `size` - 1 bytes. Returns 0, -ERR_READ, or
 * -ERR_TARGET if the section contains no NUL after rva. */
int pe_read_text(const struct pe_source *source, const struct pe_image *image, uint32_t rva,
	char *text, size_t size);

/* Read a number from a PE image: little-endian, unaligned. */
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
	const char *name; /* "OrdinalN" if the export has no name */
};

/* Owns the list. The names lie in the arena. */
struct pe_exports {
	struct pe_export *list; /* sorted by rva, then name; excludes forwarders to other DLLs */
	size_t count;
	struct arena arena;
};

/* Reads the export table. If the image has none, *exports is empty. Returns 0, -ERR_READ or
 * -ERR_TARGET. After success, the caller releases *exports. */
int pe_exports_read(
	const struct pe_source *source, const struct pe_image *image, struct pe_exports *exports);
void pe_exports_release(struct pe_exports *exports);

/* Like pe_exports_read(), but reads the functions in the symbol table that mingw leaves in the
 * file. Their ordinals are 0, and their names are not demangled. An image in memory has no symbol
 * table. */
int pe_symbols_read(
	const struct pe_source *source, const struct pe_image *image, struct pe_exports *symbols);

/* Comparison for qsort(): by rva, then by the first 4096 bytes of the name. */
int pe_export_compare(const void *a, const void *b);

/* Finds an export by its exact name. Returns 0 and sets `*rva`; -ERR_SYMBOLS if there is no such
 * export or it is a forwarder; -ERR_READ or -ERR_TARGET. */
int pe_find_export(const struct pe_source *source, const struct pe_image *image, const char *name,
	uint32_t *rva);

/* Finds `count` exports in one pass. Sets rvas[i] to the rva of names[i], or to 0 if the image does
 * not export it. Returns 0, -ERR_READ or -ERR_TARGET. After an error, `rvas` may be incomplete. */
int pe_find_exports(const struct pe_source *source, const struct pe_image *image,
	const char *const *names, size_t count, uint32_t *rvas);

/* Finds the function that contains rva, using the exception table of an x64 image. Returns 1 and
 * sets *start to the rva of the function's first byte. Returns 0 if no function contains rva, and
 * sets *start to the end of the last function before rva, or to 0. Otherwise returns -ERR_READ,
 * -ERR_TARGET, or -ERR_SYMBOLS if there is no table. */
int pe_function_start(const struct pe_source *source, const struct pe_image *image, uint32_t rva,
	uint32_t *start);

#endif
