/*
 * Stub images for llvm-symbolizer: a stub is a minimal PE file whose only content is a debug
 * directory that names a PDB.
 */
#include "symbolize/backend/llvm.h"

#include <string.h>

/* Offsets in the file, from Microsoft's "PE Format": MS-DOS stub, COFF header, optional header, and
 * one section, the debug directory. Its single entry has the type CodeView and contains "RSDS",
 * GUID, age and name. */
enum {
	PE_AT = 0x40,
	COFF_AT = PE_AT + 4,
	OPTIONAL_AT = COFF_AT + 20,
	OPTIONAL64_BYTES = 240, /* 16 directories, after 112 bytes */
	OPTIONAL32_BYTES = 224, /* 16 directories, after 96 bytes */
	HEADERS_BYTES = 0x200, /* also the file offset of the section */
	FILE_ALIGN = 0x200,
	SECTION_RVA = 0x1000,
	PAGE = 0x1000,
	DEBUG_DIRECTORY = 6 * 8,
	DEBUG_ENTRY_BYTES = 28,
	RECORD_AT = HEADERS_BYTES + DEBUG_ENTRY_BYTES,
	NAME_AT = RECORD_AT + 24,
};

/* Used without an image; the value does not affect names. */
#define USUAL_BASE UINT64_C(0x140000000)
#define USUAL_SIZE 0x10000000

static uint32_t aligned(uint32_t bytes, uint32_t to)
{
	return (bytes + to - 1) / to * to;
}

static unsigned digit(char c)
{
	return c >= 'A' ? (unsigned)(c - 'A') + 10 : (unsigned)(c - '0');
}

/* Writes a GUID (a 4-byte number, two 2-byte numbers and 8 bytes), given as the digits used by
 * symbol servers. */
static void write_guid(char *to, const char *digits)
{
	static const unsigned char places[] = {
		3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};

	for (size_t i = 0; i < sizeof(places) && strlen(digits) == 32; i++)
		to[places[i]] = (char)(digit(digits[2 * i]) << 4 | digit(digits[2 * i + 1]));
}

void staging_stub(struct buf *stub, const struct module_files *files, const char *pdb)
{
	const struct pe_image *pe = files->pe;
	bool is_64 = !pe || pe->bits != 32;
	uint64_t base = pe ? pe->preferred_base : USUAL_BASE;
	uint32_t section_at = OPTIONAL_AT + (is_64 ? OPTIONAL64_BYTES : OPTIONAL32_BYTES);
	uint32_t directories_at = OPTIONAL_AT + (is_64 ? 112 : 96);
	uint32_t name_bytes = (uint32_t)strlen(pdb) + 1,
		 record_bytes = NAME_AT - RECORD_AT + name_bytes;
	uint32_t section_bytes = DEBUG_ENTRY_BYTES + record_bytes;
	size_t len = HEADERS_BYTES + aligned(section_bytes, FILE_ALIGN);
	uint32_t size = SECTION_RVA + aligned(section_bytes, PAGE);
	uint32_t least = size < USUAL_SIZE ? USUAL_SIZE : size;
	const struct {
		uint32_t at, bytes;
		uint64_t value;
	} fields[] = {
		{0, 2, 0x5a4d}, /* "MZ" */
		{0x3c, 4, PE_AT},
		{PE_AT, 4, 0x4550}, /* "PE", 0, 0 */
		{COFF_AT, 2, pe ? pe->machine : PE_MACHINE_AMD64},
		{COFF_AT + 2, 2, 1}, /* number of sections */
		{COFF_AT + 16, 2, section_at - OPTIONAL_AT},
		{COFF_AT + 18, 2, is_64 ? 0x2022 : 0x2102}, /* executable DLL of that bitness */
		{OPTIONAL_AT, 2, is_64 ? 0x20b : 0x10b},
		{OPTIONAL_AT + 8, 4, section_bytes}, /* initialized data */
		{OPTIONAL_AT + (is_64 ? 24 : 28), is_64 ? 8 : 4, base},
		{OPTIONAL_AT + 32, 4, PAGE},
		{OPTIONAL_AT + 36, 4, FILE_ALIGN},
		{OPTIONAL_AT + 40, 2, 6}, /* minimum system version */
		{OPTIONAL_AT + 48, 2, 6},
		{OPTIONAL_AT + 56, 4, pe && pe->size_of_image > least ? pe->size_of_image : least},
		{OPTIONAL_AT + 60, 4, HEADERS_BYTES},
		{OPTIONAL_AT + 68, 2, 3}, /* console subsystem */
		{directories_at - 4, 4, 16},
		{directories_at + DEBUG_DIRECTORY, 4, SECTION_RVA},
		{directories_at + DEBUG_DIRECTORY + 4, 4, DEBUG_ENTRY_BYTES},
		{section_at, 8, 0x61746164722e}, /* ".rdata" */
		{section_at + 8, 4, section_bytes},
		{section_at + 12, 4, SECTION_RVA},
		{section_at + 16, 4, aligned(section_bytes, FILE_ALIGN)},
		{section_at + 20, 4, HEADERS_BYTES},
		{section_at + 36, 4, 0x40000040}, /* readable data */
		{HEADERS_BYTES + 12, 4, 2}, /* CodeView */
		{HEADERS_BYTES + 16, 4, record_bytes},
		{HEADERS_BYTES + 20, 4, SECTION_RVA + DEBUG_ENTRY_BYTES},
		{HEADERS_BYTES + 24, 4, RECORD_AT},
		{RECORD_AT, 4, 0x53445352}, /* "RSDS" */
		{RECORD_AT + 20, 4, files->age},
	};

	buf_clear(stub);
	buf_reserve(stub, len);
	stub->len = len;
	memset(stub->data, 0, len + 1);
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		for (uint32_t n = 0; n < fields[i].bytes; n++)
			stub->data[fields[i].at + n] = (char)(fields[i].value >> 8 * n);
	}
	write_guid(stub->data + RECORD_AT + 4, files->guid);
	memcpy(stub->data + NAME_AT, pdb, name_bytes);
}
