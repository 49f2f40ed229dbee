#include "symbolize/backend/llvm.h"

#include <string.h>

/* Where things are, in the file (PE Format: MS-DOS stub, COFF header, optional header, sections). */
#define PE_POINTER 0x3c /* in the MS-DOS header */
#define PE_AT 0x40
#define COFF_AT (PE_AT + 4)
#define OPTIONAL_AT (COFF_AT + 20)
#define OPTIONAL64_BYTES 240 /* 16 directories behind 112 bytes */
#define OPTIONAL32_BYTES 224 /* and behind 96 */
#define SECTION_BYTES 40
#define HEADERS_BYTES 0x200 /* also where the section is in the file */
#define SECTION_RVA 0x1000
#define FILE_ALIGN 0x200
#define PAGE 0x1000
#define DEBUG_DIRECTORY 6
#define DEBUG_ENTRY_BYTES 28
#define DEBUG_CODEVIEW 2
#define MZ_MARK 0x5a4d /* "MZ" */
#define PE_MARK 0x4550 /* "PE", 0, 0 */
#define CODEVIEW_MARK 0x53445352 /* "RSDS" */

/* What is assumed when there is no image: names do not depend on it. */
#define USUAL_BASE UINT64_C(0x140000000)
#define USUAL_SIZE 0x10000000

static void put16(char *to, uint32_t value)
{
	to[0] = (char)value;
	to[1] = (char)(value >> 8);
}

static void put32(char *to, uint32_t value)
{
	put16(to, value);
	put16(to + 2, value >> 16);
}

static uint32_t aligned(uint32_t bytes, uint32_t to)
{
	return (bytes + to - 1) / to * to;
}

static void put_coff(char *coff, const struct pe_image *pe, bool is_64)
{
	put16(coff, pe ? pe->machine : PE_MACHINE_AMD64);
	put16(coff + 2, 1); /* sections */
	put16(coff + 16, is_64 ? OPTIONAL64_BYTES : OPTIONAL32_BYTES);
	put16(coff + 18, is_64 ? 0x2022 : 0x2102); /* a DLL that can be run, for so many bits */
}

static void put_optional(
	char *optional, const struct pe_image *pe, bool is_64, uint32_t section_bytes)
{
	uint64_t base = pe ? pe->preferred_base : USUAL_BASE;
	uint32_t size = SECTION_RVA + aligned(section_bytes, PAGE);
	char *directories = optional + (is_64 ? 112 : 96);

	put16(optional, is_64 ? 0x20b : 0x10b);
	put32(optional + 8, section_bytes); /* initialized data */
	put32(optional + (is_64 ? 24 : 28), (uint32_t)base);
	if (is_64)
		put32(optional + 28, (uint32_t)(base >> 32));
	put32(optional + 32, PAGE);
	put32(optional + 36, FILE_ALIGN);
	put16(optional + 40, 6); /* a system that it runs on */
	put16(optional + 48, 6);
	if (size < USUAL_SIZE)
		size = USUAL_SIZE;
	put32(optional + 56, pe && pe->size_of_image > size ? pe->size_of_image : size);
	put32(optional + 60, HEADERS_BYTES);
	put16(optional + 68, 3); /* console */
	put32(directories - 4, 16);
	put32(directories + DEBUG_DIRECTORY * 8, SECTION_RVA);
	put32(directories + DEBUG_DIRECTORY * 8 + 4, DEBUG_ENTRY_BYTES);
}

static void put_section(char *section, uint32_t bytes)
{
	memcpy(section, ".rdata\0", 8);
	put32(section + 8, bytes);
	put32(section + 12, SECTION_RVA);
	put32(section + 16, aligned(bytes, FILE_ALIGN));
	put32(section + 20, HEADERS_BYTES);
	put32(section + 36, 0x40000040); /* data that can be read */
}

static void put_debug(char *entry, uint32_t record_bytes)
{
	put32(entry + 12, DEBUG_CODEVIEW);
	put32(entry + 16, record_bytes);
	put32(entry + 20, SECTION_RVA + DEBUG_ENTRY_BYTES);
	put32(entry + 24, HEADERS_BYTES + DEBUG_ENTRY_BYTES);
}

static unsigned digit(char c)
{
	return c >= 'A' ? (unsigned)(c - 'A') + 10 : (unsigned)(c - '0');
}

/* A GUID as symbol servers spell it: a number of 4 bytes, two of 2, and 8 bytes. */
static void put_guid(char *to, const char *digits)
{
	static const unsigned char places[] = {
		3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};

	for (size_t i = 0; i < sizeof(places) && strlen(digits) == 32; i++)
		to[places[i]] = (char)(digit(digits[2 * i]) << 4 | digit(digits[2 * i + 1]));
}

int staging_stub(struct buf *stub, const struct module_files *files, const char *pdb)
{
	const struct pe_image *pe = files->pe;
	size_t name_bytes = strlen(pdb) + 1;
	uint32_t record_bytes, section_bytes, len;
	bool is_64 = !pe || pe->bits != 32;
	char *image, *record;

	if (name_bytes > 1 << 16)
		return -ERR_NOMEM;
	record_bytes = 24 + (uint32_t)name_bytes;
	section_bytes = DEBUG_ENTRY_BYTES + record_bytes;
	len = HEADERS_BYTES + aligned(section_bytes, FILE_ALIGN);
	buf_clear(stub);
	if (buf_reserve(stub, len))
		return -ERR_NOMEM;
	image = stub->data;
	stub->len = len;
	memset(image, 0, (size_t)len + 1);
	put16(image, MZ_MARK);
	put32(image + PE_POINTER, PE_AT);
	put32(image + PE_AT, PE_MARK);
	put_coff(image + COFF_AT, pe, is_64);
	put_optional(image + OPTIONAL_AT, pe, is_64, section_bytes);
	put_section(
		image + OPTIONAL_AT + (is_64 ? OPTIONAL64_BYTES : OPTIONAL32_BYTES), section_bytes);
	put_debug(image + HEADERS_BYTES, record_bytes);
	record = image + HEADERS_BYTES + DEBUG_ENTRY_BYTES;
	put32(record, CODEVIEW_MARK);
	put_guid(record + 4, files->guid);
	put32(record + 20, files->age);
	memcpy(record + 24, pdb, name_bytes);
	return 0;
}
