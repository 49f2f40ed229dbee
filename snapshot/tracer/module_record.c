#include "snapshot/tracer/module_record.h"

#include <stddef.h>

/*
 * Offsets: "PE Format", Microsoft Learn. Those of the optional header are for images of both
 * bitnesses, where they differ PE32 comes first. RSDS: CV_INFO_PDB70, as in "Matching debug
 * information", and LLVM's include/llvm/Object/CVDebugRecord.h.
 */
#define DOS_PE_OFFSET 0x3c
#define PE_TIMESTAMP 8
#define PE_OPTIONAL 24
#define OPTIONAL_CHECKSUM 64
static const uint8_t optional_directory_count[] = {92, 108};
static const uint8_t optional_directories[] = {96, 112};
#define OPTIONAL_BYTES_READ (112 + 7 * 8) /* with the directory of debug data, the 7th */
#define PE_HEADER_BYTES (PE_OPTIONAL + OPTIONAL_BYTES_READ)
#define MAGIC_PE32 0x10b
#define MAGIC_PE32_PLUS 0x20b
#define DIRECTORY_DEBUG 6
#define DEBUG_ENTRY_BYTES 28
#define DEBUG_ENTRIES_MAX 32
#define DEBUG_TYPE 12
#define DEBUG_SIZE 16
#define DEBUG_RVA 20
#define TYPE_CODEVIEW 2
#define RSDS_GUID 4
#define RSDS_AGE 20
#define RSDS_NAME 24

static uint32_t u32(const uint8_t *bytes)
{
	return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

static bool read_at(const struct module_image *image, uint32_t rva, void *to, uint32_t len)
{
	return len <= image->bytes && rva <= image->bytes - len &&
	       image->read(image->base + rva, to, len);
}

/* The name behind an RSDS record, when all of it is there. */
static void add_pdb(
	struct module_record *record, const struct module_image *image, uint32_t rva, uint32_t len)
{
	uint8_t *name = record->names + record->module.path_units * 2;
	uint32_t count = 0;

	if (!len || len > MODULE_PDB_BYTES || !read_at(image, rva, name, len))
		return;
	while (count < len && name[count])
		count++;
	record->module.pdb_bytes = (uint16_t)count;
}

/* One entry of the debug directory; true when it told what the PDB is. */
static bool add_debug(
	struct module_record *record, const struct module_image *image, const uint8_t *entry)
{
	uint32_t size = u32(entry + DEBUG_SIZE), rva = u32(entry + DEBUG_RVA);
	uint8_t rsds[RSDS_NAME];

	if (u32(entry + DEBUG_TYPE) != TYPE_CODEVIEW || size < sizeof(rsds) ||
		!read_at(image, rva, rsds, sizeof(rsds)) || rsds[0] != 'R' || rsds[1] != 'S' ||
		rsds[2] != 'D' || rsds[3] != 'S')
		return false;
	for (int i = 0; i < 16; i++)
		record->module.guid[i] = rsds[RSDS_GUID + i];
	record->module.age = u32(rsds + RSDS_AGE);
	add_pdb(record, image, rva + RSDS_NAME, size - RSDS_NAME);
	return true;
}

static void add_headers(struct module_record *record, const struct module_image *image)
{
	uint8_t header[PE_HEADER_BYTES], offset[4], entry[DEBUG_ENTRY_BYTES];
	const uint8_t *optional = header + PE_OPTIONAL, *directory;
	uint32_t magic, is_plus, size;

	if (!read_at(image, DOS_PE_OFFSET, offset, sizeof(offset)) ||
		!read_at(image, u32(offset), header, sizeof(header)) ||
		u32(header) != 0x4550 /* "PE\0\0" */)
		return;
	magic = u32(optional) & 0xffff;
	if (magic != MAGIC_PE32 && magic != MAGIC_PE32_PLUS)
		return;
	is_plus = magic == MAGIC_PE32_PLUS;
	record->module.timestamp = u32(header + PE_TIMESTAMP);
	record->module.checksum = u32(optional + OPTIONAL_CHECKSUM);
	directory = optional + optional_directories[is_plus] + DIRECTORY_DEBUG * 8;
	size = u32(directory + 4);
	if (u32(optional + optional_directory_count[is_plus]) <= DIRECTORY_DEBUG)
		return;
	for (uint32_t i = 0; i < DEBUG_ENTRIES_MAX && i < size / DEBUG_ENTRY_BYTES; i++) {
		if (!read_at(image, u32(directory) + i * DEBUG_ENTRY_BYTES, entry, sizeof(entry)) ||
			add_debug(record, image, entry))
			return;
	}
}

void module_record_make(struct module_record *record, const struct module_image *image)
{
	uint16_t units =
		image->path_units < MODULE_PATH_UNITS ? image->path_units : MODULE_PATH_UNITS;

	record->module = (struct tracer_module){.image_bytes = image->bytes, .path_units = units};
	for (uint32_t i = 0; i < units * 2u; i++)
		record->names[i] = ((const uint8_t *)image->path)[i];
	add_headers(record, image);
	record->module.record_bytes = (uint32_t)offsetof(struct module_record, names) + units * 2u +
				      record->module.pdb_bytes;
}
