/*
 * Reads a PE image: headers and sections, bytes at an rva, identity (CodeView), and the start of a
 * function (from the exception table).
 */
#include "core/pe/pe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"

/* All numbers and offsets below are from "PE Format", Microsoft Learn. */
enum {
	DOS_BYTES = 64,
	DOS_NEW_HEADER = 60,
	COFF_BYTES = 24, /* including the signature before the COFF header */
	OPTIONAL_MAX = 240,
	OPTIONAL_32 = 0x10b,
	OPTIONAL_64 = 0x20b,
	DIRECTORY_EXPORTS = 0,
	DIRECTORY_EXCEPTIONS = 3,
	DIRECTORY_DEBUG = 6,
	SECTION_BYTES = 40,
	SECTION_CODE = 0x20 | 0x20000000, /* contains code; can be executed */
	SECTION_WRITABLE = (int)0x80000000,
	DEBUG_BYTES = 28,
	DEBUG_ENTRIES_MAX = 64,
	DEBUG_CODEVIEW = 2,
	CODEVIEW_BYTES = 24, /* "RSDS", GUID and age; the file name follows */
};

static int read_raw(const struct pe_source *source, uint64_t offset, void *bytes, size_t len)
{
	return source->read(source->ctx, offset, bytes, len) ? -ERR_READ : 0;
}

/* ---------------------------------------------------------------- headers */

/* Reads the optional header. Its 32-bit and 64-bit layouts differ little. */
static int parse_optional(struct pe_image *image, const unsigned char *opt, size_t len)
{
	bool is_64 = len >= 2 && pe_u16(opt) == OPTIONAL_64;
	size_t directories = is_64 ? 112 : 96;
	struct pe_range *wanted[] = {[DIRECTORY_EXPORTS] = &image->exports,
		[DIRECTORY_EXCEPTIONS] = &image->exceptions,
		[DIRECTORY_DEBUG] = &image->debug};
	uint32_t count;

	if (len < directories || (!is_64 && pe_u16(opt) != OPTIONAL_32))
		return -ERR_TARGET;
	image->bits = is_64 ? 64 : 32;
	image->entry_rva = pe_u32(opt + 16);
	image->preferred_base =
		is_64 ? pe_u32(opt + 24) | (uint64_t)pe_u32(opt + 28) << 32 : pe_u32(opt + 28);
	image->size_of_image = pe_u32(opt + 56);
	image->size_of_headers = pe_u32(opt + 60);
	image->checksum = pe_u32(opt + 64);
	count = pe_u32(opt + directories - 4);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted) && i < count; i++) {
		const unsigned char *entry = opt + directories + i * 8;

		if (!wanted[i] || directories + i * 8 + 8 > len || !pe_u32(entry))
			continue;
		*wanted[i] =
			(struct pe_range){.rva = pe_u32(entry), .size_bytes = pe_u32(entry + 4)};
	}
	return image->size_of_headers <= image->size_of_image ? 0 : -ERR_TARGET;
}

static int parse_section(struct pe_image *image, const unsigned char *bytes)
{
	struct pe_section *section = &image->sections[image->section_count++];

	memcpy(section->name, bytes, 8);
	section->name[8] = '\0';
	section->size_bytes = pe_u32(bytes + 8);
	section->rva = pe_u32(bytes + 12);
	section->file_bytes = pe_u32(bytes + 16);
	section->file_offset = pe_u32(bytes + 20);
	section->is_code = (pe_u32(bytes + 36) & SECTION_CODE) != 0;
	section->is_writable = (pe_u32(bytes + 36) & SECTION_WRITABLE) != 0;
	if (!section->size_bytes)
		section->size_bytes = section->file_bytes;
	if (section->rva > image->size_of_image ||
		section->size_bytes > image->size_of_image - section->rva)
		return -ERR_TARGET;
	return 0;
}

static int read_sections(
	const struct pe_source *source, struct pe_image *image, uint64_t at, size_t count)
{
	unsigned char bytes[PE_SECTIONS_MAX * SECTION_BYTES];
	int rc;

	if (count > PE_SECTIONS_MAX)
		return -ERR_TARGET;
	rc = read_raw(source, at, bytes, count * SECTION_BYTES);
	for (size_t i = 0; !rc && i < count; i++)
		rc = parse_section(image, bytes + i * SECTION_BYTES);
	return rc;
}

/* Finds the offset of the "PE" signature. */
static int find_headers(const struct pe_source *source, uint32_t *at)
{
	unsigned char dos[DOS_BYTES];

	if (read_raw(source, 0, dos, sizeof(dos)))
		return -ERR_READ;
	if (dos[0] != 'M' || dos[1] != 'Z')
		return -ERR_TARGET;
	*at = pe_u32(dos + DOS_NEW_HEADER);
	return 0;
}

static int read_all_headers(const struct pe_source *source, struct pe_image *image)
{
	unsigned char coff[COFF_BYTES], opt[OPTIONAL_MAX];
	uint32_t at;
	size_t opt_bytes, taken;
	int rc = find_headers(source, &at);

	if (!rc)
		rc = read_raw(source, at, coff, sizeof(coff));
	if (rc)
		return rc;
	if (memcmp(coff, "PE\0\0", 4) != 0)
		return -ERR_TARGET;
	image->machine = pe_u16(coff + 4);
	image->timestamp = pe_u32(coff + 8);
	image->coff_offset = pe_u32(coff + 12);
	image->coff_symbols = image->coff_offset ? pe_u32(coff + 16) : 0;
	opt_bytes = pe_u16(coff + 20);
	taken = opt_bytes < OPTIONAL_MAX ? opt_bytes : OPTIONAL_MAX;
	rc = read_raw(source, at + (uint64_t)COFF_BYTES, opt, taken);
	if (!rc)
		rc = parse_optional(image, opt, taken);
	if (!rc)
		rc = read_sections(
			source, image, at + (uint64_t)COFF_BYTES + opt_bytes, pe_u16(coff + 6));
	return rc;
}

/* ---------------------------------------------------------------- bytes at an rva */

const struct pe_section *pe_section_at(const struct pe_image *image, uint32_t rva)
{
	for (size_t i = 0; i < image->section_count; i++) {
		const struct pe_section *section = &image->sections[i];

		if (rva >= section->rva && rva - section->rva < section->size_bytes)
			return section;
	}
	return NULL;
}

static int read_section(const struct pe_source *source, const struct pe_section *section,
	uint32_t at, void *bytes, size_t len)
{
	size_t stored = at < section->file_bytes ? section->file_bytes - at : 0;

	stored = stored < len ? stored : len;
	if (stored && read_raw(source, (uint64_t)section->file_offset + at, bytes, stored))
		return -ERR_READ;
	memset((char *)bytes + stored, 0, len - stored);
	return 0;
}

int pe_read(const struct pe_source *source, const struct pe_image *image, uint32_t rva, void *bytes,
	size_t len)
{
	const struct pe_section *section = pe_section_at(image, rva);

	if (section ? len > section->size_bytes - (rva - section->rva) :
		      rva > image->size_of_headers || len > image->size_of_headers - rva)
		return -ERR_TARGET;
	if (!section || source->in_memory)
		return read_raw(source, rva, bytes, len);
	return read_section(source, section, rva - section->rva, bytes, len);
}

size_t pe_left_at(const struct pe_image *image, uint32_t rva)
{
	const struct pe_section *section = pe_section_at(image, rva);

	if (section)
		return section->size_bytes - (rva - section->rva);
	return rva < image->size_of_headers ? image->size_of_headers - rva : 0;
}

int pe_read_text(const struct pe_source *source, const struct pe_image *image, uint32_t rva,
	char *text, size_t size)
{
	size_t left = pe_left_at(image, rva), len = 0;

	while (len + 1 < size) {
		size_t part = size - 1 - len < 64 ? size - 1 - len : 64;
		char *end;
		int rc;

		part = part < left - len ? part : left - len;
		if (!part)
			return -ERR_TARGET; /* no NUL before the end of the section */
		rc = pe_read(source, image, rva + (uint32_t)len, text + len, part);
		if (rc)
			return rc;
		end = memchr(text + len, '\0', part);
		if (end)
			return 0;
		len += part;
	}
	text[len] = '\0';
	return 0;
}

/* ---------------------------------------------------------------- identity */

static void copy_guid(struct pe_image *image, const unsigned char *guid)
{
	char *to = image->pdb_guid;
	int len = snprintf(to, sizeof(image->pdb_guid), "%08lX%04X%04X",
		(unsigned long)pe_u32(guid), pe_u16(guid + 4), pe_u16(guid + 6));

	for (size_t i = 8; i < 16; i++)
		len += snprintf(to + len, sizeof(image->pdb_guid) - (size_t)len, "%02X", guid[i]);
}

/* Reads the CodeView record at its rva. If the linker has omitted the rva, reads the record at its
 * file offset instead. */
static int read_record(const struct pe_source *source, const struct pe_image *image,
	const unsigned char *entry, void *bytes, size_t len)
{
	uint32_t rva = pe_u32(entry + 20), offset = pe_u32(entry + 24);

	if (rva)
		return pe_read(source, image, rva, bytes, len);
	return offset && !source->in_memory ? read_raw(source, offset, bytes, len) : -ERR_TARGET;
}

static int read_codeview(
	const struct pe_source *source, struct pe_image *image, const unsigned char *entry)
{
	unsigned char bytes[CODEVIEW_BYTES + sizeof(image->pdb)] = {0};
	size_t len = pe_u32(entry + 16);

	len = len < sizeof(bytes) ? len : sizeof(bytes);
	if (len < CODEVIEW_BYTES || read_record(source, image, entry, bytes, len) ||
		memcmp(bytes, "RSDS", 4) != 0)
		return -ERR_TARGET;
	copy_guid(image, bytes + 4);
	image->pdb_age = pe_u32(bytes + 20);
	memcpy(image->pdb, bytes + CODEVIEW_BYTES, sizeof(image->pdb) - 1);
	return 0;
}

static void read_identity(const struct pe_source *source, struct pe_image *image)
{
	unsigned char entry[DEBUG_BYTES];
	uint32_t count = image->debug.size_bytes / DEBUG_BYTES;

	for (uint32_t i = 0; i < count && i < DEBUG_ENTRIES_MAX; i++) {
		if (image->debug.rva > UINT32_MAX - i * DEBUG_BYTES ||
			pe_read(source, image, image->debug.rva + i * DEBUG_BYTES, entry,
				sizeof(entry)))
			return;
		if (pe_u32(entry + 12) == DEBUG_CODEVIEW && !read_codeview(source, image, entry))
			return;
	}
}

int pe_read_headers(const struct pe_source *source, struct pe_image *image)
{
	struct pe_image fresh = {0};
	int rc = read_all_headers(source, &fresh);

	if (rc)
		return rc;
	read_identity(source, &fresh);
	*image = fresh;
	return 0;
}

/* The function table of x64 images, with unwind records ("x64 exception handling", Microsoft
 * Learn). An entry consists of begin, end and unwind record. Entries are sorted by begin. */
enum {
	ENTRY_BYTES = 12,
	UNWIND_BYTES = 4, /* size without the unwind codes, which are 2 bytes each */
	UNWIND_CHAINED = 4,
	CHAIN_MAX = 32,
};

struct function {
	uint32_t begin, end, unwind;
};

static int read_entry(const struct pe_source *source, const struct pe_image *image, uint32_t rva,
	struct function *function)
{
	unsigned char bytes[ENTRY_BYTES];
	int rc = pe_read(source, image, rva, bytes, sizeof(bytes));

	if (rc)
		return rc;
	*function = (struct function){pe_u32(bytes), pe_u32(bytes + 4), pe_u32(bytes + 8)};
	return 0;
}

/* Replaces `*function` with the first entry of its function, by following a chain of entries. (A
 * function may have separated parts, each with an entry of its own.) */
static int follow_chain(
	const struct pe_source *source, const struct pe_image *image, struct function *function)
{
	int rc = 0;

	for (int i = 0; i < CHAIN_MAX; i++) {
		unsigned char unwind[UNWIND_BYTES];
		uint32_t codes;

		if (function->unwind & 1) { /* refers to another entry, not to a record */
			rc = read_entry(source, image, function->unwind & ~1u, function);
			if (rc)
				return rc;
			continue;
		}
		rc = pe_read(source, image, function->unwind, unwind, sizeof(unwind));
		if (rc || !(unwind[0] >> 3 & UNWIND_CHAINED))
			return rc;
		codes = (unwind[2] + 1u) & ~1u;
		if (function->unwind > UINT32_MAX - UNWIND_BYTES - codes * 2)
			return -ERR_TARGET;
		rc = read_entry(
			source, image, function->unwind + UNWIND_BYTES + codes * 2, function);
		if (rc)
			return rc;
	}
	return -ERR_TARGET;
}

/* Finds the last entry that begins at or below rva. Returns 1 if there is such an entry, otherwise
 * 0 or an error. */
static int find_entry(const struct pe_source *source, const struct pe_image *image, uint32_t rva,
	struct function *found)
{
	uint32_t low = 0, count = image->exceptions.size_bytes / ENTRY_BYTES;
	struct function at;
	int any = 0;

	if (image->exceptions.size_bytes > pe_left_at(image, image->exceptions.rva))
		return -ERR_TARGET;
	while (count) {
		uint32_t half = count / 2;
		int rc = read_entry(
			source, image, image->exceptions.rva + (low + half) * ENTRY_BYTES, &at);

		if (rc)
			return rc;
		if (at.begin <= rva) {
			*found = at;
			any = 1;
			low += half + 1;
			count -= half + 1;
		} else {
			count = half;
		}
	}
	return any;
}

int pe_function_start(
	const struct pe_source *source, const struct pe_image *image, uint32_t rva, uint32_t *start)
{
	struct function found = {0};
	int rc;

	if (image->machine != PE_MACHINE_AMD64 || !image->exceptions.size_bytes)
		return -ERR_SYMBOLS;
	rc = find_entry(source, image, rva, &found);
	if (rc < 0)
		return rc;
	if (!rc || rva >= found.end) {
		*start = rc ? found.end : 0;
		return 0;
	}
	rc = follow_chain(source, image, &found);
	if (rc)
		return rc;
	*start = found.begin;
	return 1;
}
