/*
 * PE images (.exe, .dll), 32- and 64-bit: headers, identity, sections, exports.
 *
 * The bytes come through a callback, from a file or from the memory of a live process. They are
 * never trusted: every offset, count and string is bounded and checked, and what makes no sense is
 * an error. Layout after Microsoft's published "PE Format". Numbers called rva are offsets from
 * where the image begins in memory.
 */
#ifndef CORE_PE_PE_H
#define CORE_PE_PE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"

#define PE_SECTIONS_MAX 96 /* what Windows' loader is documented to accept */
#define PE_MACHINE_I386 0x014c
#define PE_MACHINE_AMD64 0x8664
#define PE_MACHINE_ARM64 0xaa64

struct pe_source {
	/* Reads exactly len bytes at offset: 0, or negative. */
	int (*read)(void *ctx, uint64_t offset, void *bytes, size_t len);
	void *ctx;
	bool in_memory; /* offset is an rva from the image's base; else it is a place in the file */
};

struct pe_section {
	char name[9];
	uint32_t rva, size_bytes; /* in memory */
	uint32_t file_offset, file_bytes;
	bool is_code, is_writable;
};

struct pe_range {
	uint32_t rva, size_bytes; /* both 0: there is none */
};

struct pe_image {
	uint16_t machine;
	unsigned bits; /* 32 or 64 */
	uint32_t timestamp, checksum, size_of_image, size_of_headers;
	uint32_t entry_rva; /* 0: none */
	uint64_t preferred_base;
	/* The symbol table that mingw leaves in the file, which is not mapped; or both 0. */
	uint32_t coff_offset, coff_symbols;
	struct pe_range exports, exceptions, debug;
	struct pe_section sections[PE_SECTIONS_MAX];
	size_t section_count;
	/* From the CodeView record; empty texts and 0 when there is none. */
	char pdb[300]; /* the file name the image asks for; cut when longer */
	char pdb_guid[33]; /* 32 upper-case digits, as symbol servers spell it */
	uint32_t pdb_age;
};

/* Fills *image. Returns 0; -ERR_READ when the source could not deliver; -ERR_TARGET when this is no
 * PE image or its headers contradict themselves. A damaged CodeView record is as none. */
int pe_read_headers(const struct pe_source *source, struct pe_image *image);

/* The section that rva lies in, or NULL. */
const struct pe_section *pe_section_at(const struct pe_image *image, uint32_t rva);

/* Reads len bytes at an rva, wherever the source keeps them; bytes that a section has only in
 * memory read as 0 from a file. Returns 0, -ERR_READ, or -ERR_TARGET when they are not all in the
 * headers or in one section. */
int pe_read(const struct pe_source *source, const struct pe_image *image, uint32_t rva, void *bytes,
	size_t len);

/* How many bytes from rva on are in the same section, or in the headers. */
size_t pe_left_at(const struct pe_image *image, uint32_t rva);

/* Reads a text that ends with NUL; of a longer one its first size - 1 bytes. Returns 0, -ERR_READ,
 * or -ERR_TARGET when it does not end where its section does. */
int pe_read_text(const struct pe_source *source, const struct pe_image *image, uint32_t rva,
	char *text, size_t size);

/* Numbers as PE images hold them: little-endian, aligned or not. */
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
	const char *name; /* "OrdinalN" when it has none */
};

/* Owns its list and, in the arena, the names. */
struct pe_exports {
	struct pe_export *list; /* by rva, then name; without those that another DLL fulfils */
	size_t count;
	struct arena arena;
};

/* Reads the export table; an image without one has none. Returns 0, -ERR_READ or
 * -ERR_TARGET. The caller releases *exports after success. */
int pe_exports_read(
	const struct pe_source *source, const struct pe_image *image, struct pe_exports *exports);
void pe_exports_release(struct pe_exports *exports);

/* The same for the functions in the symbol table that mingw leaves; their ordinals are 0. Names are
 * as the compiler made them, not demangled. In memory there are none. */
int pe_symbols_read(
	const struct pe_source *source, const struct pe_image *image, struct pe_exports *symbols);

/* For qsort(): by rva, then the first 4096 bytes of the name. */
int pe_export_compare(const void *a, const void *b);

/* Finds one export by its exact name. Returns 0 and *rva; -ERR_SYMBOLS when there is none of that
 * name here (or another DLL fulfils it); -ERR_READ, -ERR_TARGET. */
int pe_find_export(const struct pe_source *source, const struct pe_image *image, const char *name,
	uint32_t *rva);

/* Finds count of them while the table is read once: rvas[i] is that of names[i], or 0. Returns 0,
 * -ERR_READ or -ERR_TARGET: then some may be missing in rvas. */
int pe_find_exports(const struct pe_source *source, const struct pe_image *image,
	const char *const *names, size_t count, uint32_t *rvas);

/* The function that covers rva, by the table of functions (exceptions) that 64-bit images have.
 * Returns 1 and *start: rva of its first byte; 0 and *start: no function does, and *start is the
 * end of the last one before it, or 0; else -ERR_READ, -ERR_TARGET or -ERR_SYMBOLS (no table). */
int pe_function_start(const struct pe_source *source, const struct pe_image *image, uint32_t rva,
	uint32_t *start);

#endif
