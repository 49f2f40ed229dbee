/*
 * Reads PDB files. A PDB is an MSF container: a file divided into blocks. The file contains
 * streams, and each stream is a list of blocks. The stream directory is also such a list; it
 * contains the sizes and block numbers of all streams.
 *
 * The file is read on demand. Even for a PDB of 2 GB, only one block of the directory and a window
 * of records are in memory. Sections below: container, identity, the image's sections, section
 * contributions, functions.
 */
#include "symbolize/files/pdb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/os.h"

/* The first bytes of the file (LLVM's "The MSF File Format"). */
enum {
	MAGIC_BYTES = 32,
	SUPER_BLOCK_BYTES = 32,
	SUPER_BLOCK_COUNT = 40,
	SUPER_DIRECTORY_BYTES = 44,
	/* numbers of the blocks that contain the directory's block list; nearly always one block */
	SUPER_MAP = 52,
	SUPER_BYTES = 56,
	BLOCK_MIN = 512,
	BLOCK_MAX = 65536,
	NUMBER_BYTES = 4,
};
#define NO_SIZE UINT32_MAX /* size of a missing stream */
#define NO_BLOCK UINT32_MAX

static const char magic[MAGIC_BYTES] = "Microsoft C/C++ MSF 7.00\r\n\x1a"
				       "DS\0\0";

struct msf_stream {
	uint32_t bytes; /* also 0 for a missing stream */
	uint32_t list_at; /* offset of the stream's block list in the directory */
};

struct pdb {
	struct os_file file;
	const char *path; /* used in errors; owned by the caller */
	struct err *err;
	int rc; /* first error, or 0 */
	uint32_t block_bytes, block_count;
	uint32_t directory_bytes, stream_count;
	unsigned char *block; /* the directory block in memory */
	uint32_t block_index; /* index of that block in the directory */
	/* From the DBI stream. */
	struct msf_stream dbi;
	uint32_t age;
	uint16_t machine; /* same values as in images */
	uint16_t symbols; /* number of the stream of symbol records */
	uint64_t extra_at; /* offset of the list of extra stream numbers in the DBI stream */
	uint32_t extra_bytes;
	uint32_t objects_bytes; /* bytes of the list of object files, which follows the header */
	uint64_t parts_at; /* offset of the section contributions in the DBI stream */
	uint32_t parts_bytes;
	struct pe_image *image; /* only machine, bits and sections are set */
};

/* The functions below that return bool set rc and err and return false on failure. */
static bool fail(struct pdb *pdb, const char *why)
{
	pdb->rc = err_set(pdb->err, ERR_TARGET, pdb->path, "%s", why);
	return false;
}

static bool fail_damaged(struct pdb *pdb)
{
	return fail(pdb, "the PDB is damaged");
}

static uint32_t blocks_of(const struct pdb *pdb, uint32_t bytes)
{
	return bytes / pdb->block_bytes + (bytes % pdb->block_bytes != 0);
}

static bool read_file(struct pdb *pdb, uint64_t at, void *bytes, size_t len)
{
	if (os_read_at(&pdb->file, at, bytes, len))
		pdb->rc = err_set(pdb->err, ERR_READ, pdb->path, NULL);
	return !pdb->rc;
}

/* Reads a part of one block. Refuses block 0, because it is the container's header. */
static bool read_block(struct pdb *pdb, uint32_t number, uint32_t at, void *bytes, size_t len)
{
	if (!number || number >= pdb->block_count)
		return fail_damaged(pdb);
	return read_file(pdb, (uint64_t)number * pdb->block_bytes + at, bytes, len);
}

static bool load_directory(struct pdb *pdb, uint32_t index)
{
	uint32_t per_block = pdb->block_bytes / NUMBER_BYTES;
	uint64_t map_at = SUPER_MAP + (uint64_t)(index / per_block) * NUMBER_BYTES;
	unsigned char number[NUMBER_BYTES] = {0};

	if (pdb->block_index == index)
		return true;
	pdb->block_index = NO_BLOCK;
	if (map_at + NUMBER_BYTES > pdb->block_bytes)
		return fail_damaged(pdb);
	if (!read_file(pdb, map_at, number, sizeof(number)) ||
		!read_block(pdb, pe_u32(number), index % per_block * NUMBER_BYTES, number,
			sizeof(number)) ||
		!read_block(pdb, pe_u32(number), 0, pdb->block, pdb->block_bytes))
		return false;
	pdb->block_index = index;
	return true;
}

/* Reads a number at an offset in the directory. `at` and the block size are multiples of 4, so the
 * number lies within one block. */
static bool read_number(struct pdb *pdb, uint32_t at, uint32_t *number)
{
	if (pdb->directory_bytes < NUMBER_BYTES || at > pdb->directory_bytes - NUMBER_BYTES)
		return fail_damaged(pdb);
	if (!load_directory(pdb, at / pdb->block_bytes))
		return false;
	*number = pe_u32(pdb->block + at % pdb->block_bytes);
	return true;
}

/* Finds a stream by number. A missing stream has 0 bytes. */
static bool find_stream(struct pdb *pdb, uint32_t number, struct msf_stream *stream)
{
	uint64_t list_at = NUMBER_BYTES * ((uint64_t)pdb->stream_count + 1);
	uint64_t file_bytes = (uint64_t)pdb->block_count * pdb->block_bytes;
	uint32_t bytes = 0;

	*stream = (struct msf_stream){0};
	if (number >= pdb->stream_count)
		return true;
	for (uint32_t i = 0; i <= number; i++) {
		/* skip the block list of the previous stream */
		list_at += (uint64_t)blocks_of(pdb, bytes) * NUMBER_BYTES;
		if (!read_number(pdb, (i + 1) * NUMBER_BYTES, &bytes))
			return false;
		if (bytes == NO_SIZE)
			bytes = 0;
	}
	if (bytes > file_bytes ||
		list_at + (uint64_t)blocks_of(pdb, bytes) * NUMBER_BYTES > pdb->directory_bytes)
		return fail_damaged(pdb);
	*stream = (struct msf_stream){.bytes = bytes, .list_at = (uint32_t)list_at};
	return true;
}

static bool read_stream(
	struct pdb *pdb, const struct msf_stream *stream, uint64_t at, void *bytes, size_t len)
{
	unsigned char *to = bytes;

	if (at > stream->bytes || len > stream->bytes - at)
		return fail_damaged(pdb);
	while (len) {
		uint32_t from = (uint32_t)(at % pdb->block_bytes), number = 0;
		uint32_t index = (uint32_t)(at / pdb->block_bytes);
		size_t part = pdb->block_bytes - from;

		part = part < len ? part : len;
		if (!read_number(pdb, stream->list_at + index * NUMBER_BYTES, &number) ||
			!read_block(pdb, number, from, to, part))
			return false;
		to += part;
		at += part;
		len -= part;
	}
	return true;
}

static bool read_super(struct pdb *pdb)
{
	unsigned char super[SUPER_BYTES] = {0};
	uint64_t size = os_size(&pdb->file);

	if (size >= MAGIC_BYTES &&
		!read_file(pdb, 0, super, size < sizeof(super) ? (size_t)size : sizeof(super)))
		return false;
	if (memcmp(super, magic, MAGIC_BYTES) != 0)
		return fail(pdb, "not a PDB file");
	if (size < sizeof(super))
		return fail(pdb, "the PDB is cut short");
	pdb->block_bytes = pe_u32(super + SUPER_BLOCK_BYTES);
	pdb->block_count = pe_u32(super + SUPER_BLOCK_COUNT);
	pdb->directory_bytes = pe_u32(super + SUPER_DIRECTORY_BYTES);
	if (pdb->block_bytes < BLOCK_MIN || pdb->block_bytes > BLOCK_MAX ||
		(pdb->block_bytes & (pdb->block_bytes - 1)))
		return fail_damaged(pdb);
	if ((uint64_t)pdb->block_count * pdb->block_bytes > size)
		return fail(pdb, "the PDB is cut short");
	return pdb->directory_bytes <= size || fail_damaged(pdb);
}

static void pdb_close(struct pdb *pdb)
{
	free(pdb->block);
	free(pdb->image);
	os_close(&pdb->file);
}

/* Opens a PDB. After success the caller must close it. */
static bool pdb_open(struct pdb *pdb, const char *path, struct err *err)
{
	uint32_t count = 0;

	*pdb = (struct pdb){.path = path, .err = err, .block_index = NO_BLOCK};
	pdb->rc = os_open(&pdb->file, path, err);
	if (pdb->rc)
		return false;
	if (read_super(pdb)) {
		pdb->block = xmalloc(pdb->block_bytes);
		if (read_number(pdb, 0, &count) && count > pdb->directory_bytes / NUMBER_BYTES - 1)
			fail_damaged(pdb);
		pdb->stream_count = count;
	}
	if (pdb->rc)
		pdb_close(pdb);
	return !pdb->rc;
}

/* ---------------------------------------------------------------- identity */

/* LLVM's "The PDB Info Stream" and "The PDB DBI Stream". */
enum {
	STREAM_INFO = 1,
	STREAM_DBI = 3,
	INFO_VERSION = 0,
	INFO_GUID = 12,
	INFO_BYTES = 28,
	INFO_VERSION_70 = 20000404, /* first version with a GUID */
	DBI_SIGNATURE = 0,
	DBI_AGE = 8,
	DBI_SYMBOLS = 20,
	DBI_SIZES = 24, /* sizes of the parts that follow the header, except the EC part */
	DBI_PARTS_BYTES = 28, /* size of the section contributions */
	DBI_SIZES_END = 44,
	DBI_EXTRA_BYTES = 48,
	DBI_EC_BYTES = 52, /* size of the EC part, which precedes the extra streams */
	DBI_MACHINE = 58,
	DBI_BYTES = 64,
};
#define DBI_SIGNATURE_NEW UINT32_MAX

static bool read_dbi(struct pdb *pdb)
{
	unsigned char header[DBI_BYTES] = {0};

	if (!find_stream(pdb, STREAM_DBI, &pdb->dbi))
		return false;
	if (!pdb->dbi.bytes)
		return fail(pdb, "the PDB belongs to no image");
	if (!read_stream(pdb, &pdb->dbi, 0, header, sizeof(header)))
		return false;
	if (pe_u32(header + DBI_SIGNATURE) != DBI_SIGNATURE_NEW)
		return fail(pdb, "the PDB has an old format");
	pdb->age = pe_u32(header + DBI_AGE);
	pdb->machine = pe_u16(header + DBI_MACHINE);
	pdb->symbols = pe_u16(header + DBI_SYMBOLS);
	pdb->extra_at = DBI_BYTES + (uint64_t)pe_u32(header + DBI_EC_BYTES);
	for (int at = DBI_SIZES; at < DBI_SIZES_END; at += 4)
		pdb->extra_at += pe_u32(header + at);
	pdb->objects_bytes = pe_u32(header + DBI_SIZES);
	pdb->parts_at = DBI_BYTES + (uint64_t)pdb->objects_bytes;
	pdb->parts_bytes = pe_u32(header + DBI_PARTS_BYTES);
	pdb->extra_bytes = pe_u32(header + DBI_EXTRA_BYTES);
	return true;
}

static bool read_identity(struct pdb *pdb, struct pdb_identity *identity)
{
	unsigned char info[INFO_BYTES] = {0};
	const unsigned char *guid = info + INFO_GUID;
	struct msf_stream stream;
	int len;

	if (!find_stream(pdb, STREAM_INFO, &stream) ||
		!read_stream(pdb, &stream, 0, info, sizeof(info)))
		return false;
	if (pe_u32(info + INFO_VERSION) < INFO_VERSION_70)
		return fail(pdb, "the PDB has no GUID");
	if (!read_dbi(pdb))
		return false;
	len = snprintf(identity->guid, sizeof(identity->guid), "%08lX%04X%04X",
		(unsigned long)pe_u32(guid), pe_u16(guid + 4), pe_u16(guid + 6));
	for (size_t i = 8; i < 16; i++)
		len += snprintf(identity->guid + len, sizeof(identity->guid) - (size_t)len, "%02X",
			guid[i]);
	identity->age = pdb->age;
	return true;
}

int pdb_read_identity(const char *path, struct pdb_identity *identity, struct err *err)
{
	struct pdb pdb;

	if (!pdb_open(&pdb, path, err))
		return pdb.rc;
	read_identity(&pdb, identity);
	pdb_close(&pdb);
	return pdb.rc;
}

/* ---------------------------------------------------------------- sections */

/* Indexes in the DBI stream's list of extra stream numbers (2 bytes each), and the size of a
 * section header (LLVM's "The PDB DBI Stream"). */
enum {
	EXTRA_OMAP_TO = 3,
	EXTRA_OMAP_FROM = 4,
	EXTRA_SECTIONS = 5,
	EXTRA_COUNT = 6, /* number of entries that are read */
	EXTRA_NONE = 0xffff,
	SECTION_BYTES = 40,
	SECTION_FLAGS = 36,
	SECTION_CODE = 0x20, /* IMAGE_SCN_CNT_CODE */
};

static bool read_sections(struct pdb *pdb, uint16_t number)
{
	unsigned char bytes[PE_SECTIONS_MAX * SECTION_BYTES];
	struct pe_image *image = pdb->image;
	struct msf_stream stream;

	if (!find_stream(pdb, number, &stream))
		return false;
	if (stream.bytes > sizeof(bytes) || stream.bytes % SECTION_BYTES)
		return fail_damaged(pdb);
	if (!read_stream(pdb, &stream, 0, bytes, stream.bytes))
		return false;
	for (uint32_t at = 0; at < stream.bytes; at += SECTION_BYTES) {
		struct pe_section *section = &image->sections[image->section_count++];

		memcpy(section->name, bytes + at, 8);
		section->size_bytes = pe_u32(bytes + at + 8);
		section->rva = pe_u32(bytes + at + 12);
		section->is_code = (pe_u32(bytes + at + SECTION_FLAGS) & SECTION_CODE) != 0;
		if (section->size_bytes > UINT32_MAX - section->rva)
			return fail_damaged(pdb);
	}
	return true;
}

/* Reads machine, bits and sections. Entries missing from the DBI stream's list count as missing
 * streams. */
static bool read_image(struct pdb *pdb)
{
	unsigned char extra[EXTRA_COUNT * 2];
	size_t len = pdb->extra_bytes < sizeof(extra) ? pdb->extra_bytes : sizeof(extra);
	uint16_t sections;

	memset(extra, 0xff, sizeof(extra));
	if (!read_stream(pdb, &pdb->dbi, pdb->extra_at, extra, len))
		return false;
	if (pe_u16(extra + 2 * EXTRA_OMAP_TO) != EXTRA_NONE ||
		pe_u16(extra + 2 * EXTRA_OMAP_FROM) != EXTRA_NONE)
		return fail(pdb, "the image was rearranged after it was linked (OMAP)");
	sections = pe_u16(extra + 2 * EXTRA_SECTIONS);
	if (sections == EXTRA_NONE)
		return fail(pdb, "the PDB does not record the sections");
	pdb->image->machine = pdb->machine;
	pdb->image->bits = pdb->machine == PE_MACHINE_I386 ? 32 : 64;
	return read_sections(pdb, sections);
}

static bool open_with_image(struct pdb *pdb, const char *path, struct err *err)
{
	if (!pdb_open(pdb, path, err))
		return false;
	pdb->image = xcalloc(1, sizeof(*pdb->image));
	if (read_dbi(pdb) && read_image(pdb))
		return true;
	pdb_close(pdb);
	return false;
}

int pdb_read_sections(const char *path, struct pe_image *image, struct err *err)
{
	struct pdb pdb;

	if (!open_with_image(&pdb, path, err))
		return pdb.rc;
	*image = *pdb.image;
	pdb_close(&pdb);
	return 0;
}

/* Converts a section number and an offset to an rva. Returns false if the range is not within the
 * section. */
static bool find_rva(
	const struct pdb *pdb, uint16_t number, uint32_t offset, uint32_t bytes, uint32_t *rva)
{
	const struct pe_section *section;

	if (!number || number > pdb->image->section_count)
		return false;
	section = &pdb->image->sections[number - 1];
	*rva = section->rva + offset;
	return offset < section->size_bytes && bytes <= section->size_bytes - offset;
}

static void add_range(struct pdb_parts *ranges, uint32_t rva, uint32_t size_bytes)
{
	array_grow((void **)&ranges->list, &ranges->cap, ranges->count, sizeof(*ranges->list));
	ranges->list[ranges->count++] = (struct pe_range){rva, size_bytes};
}

/* Orders ranges by rva; of several ranges with the same rva, the longest comes last. */
static int by_rva(const void *a, const void *b)
{
	const struct pe_range *x = a, *y = b;

	if (x->rva != y->rva)
		return x->rva < y->rva ? -1 : 1;
	return x->size_bytes < y->size_bytes ? -1 : x->size_bytes > y->size_bytes;
}

static void sort_ranges(struct pdb_parts *ranges)
{
	if (ranges->count)
		qsort(ranges->list, ranges->count, sizeof(*ranges->list), by_rva);
}

/* ---------------------------------------------------------------- section contributions */

/* Section contributions: a version number, then entries (LLVM's "The PDB DBI Stream"). */
enum {
	PARTS_VERSION_BYTES = 4,
	PART_BYTES = 28,
	PART_2_BYTES = 32,
	PART_SECTION = 0,
	PART_OFFSET = 4,
	PART_SIZE = 8,
	PART_FLAGS = 12, /* flags of the section in the object file, as in PE images */
	PART_IS_COMDAT = 0x1000,
	PARTS_AT_ONCE = 1000,
	PARTS_MAX = 1 << 22,
};
#define PARTS_1 0xf12eba2du
#define PARTS_2 0xf13151e4u

/* Adds a COMDAT contribution. Skips invalid entries. Skips other contributions, because they may
 * contain many functions. */
static void add_part(const struct pdb *pdb, const unsigned char *entry, struct pdb_parts *parts)
{
	uint32_t size = pe_u32(entry + PART_SIZE), rva;

	if (size && pe_u32(entry + PART_FLAGS) & PART_IS_COMDAT &&
		find_rva(
			pdb, pe_u16(entry + PART_SECTION), pe_u32(entry + PART_OFFSET), size, &rva))
		add_range(parts, rva, size);
}

static bool read_parts(struct pdb *pdb, struct pdb_parts *parts)
{
	unsigned char bytes[PARTS_AT_ONCE * PART_2_BYTES];
	uint64_t at = pdb->parts_at + PARTS_VERSION_BYTES;
	uint32_t entry_bytes, left;

	if (pdb->parts_bytes < PARTS_VERSION_BYTES)
		return true;
	if (!read_stream(pdb, &pdb->dbi, pdb->parts_at, bytes, PARTS_VERSION_BYTES))
		return false;
	if (pe_u32(bytes) != PARTS_1 && pe_u32(bytes) != PARTS_2)
		return true; /* unknown version: treated as if there were no contributions */
	entry_bytes = pe_u32(bytes) == PARTS_1 ? PART_BYTES : PART_2_BYTES;
	left = (pdb->parts_bytes - PARTS_VERSION_BYTES) / entry_bytes;
	if (left > PARTS_MAX)
		return fail_damaged(pdb);
	while (left) {
		uint32_t count = left < PARTS_AT_ONCE ? left : PARTS_AT_ONCE;

		if (!read_stream(pdb, &pdb->dbi, at, bytes, (size_t)count * entry_bytes))
			return false;
		for (uint32_t i = 0; i < count; i++)
			add_part(pdb, bytes + (size_t)i * entry_bytes, parts);
		at += (uint64_t)count * entry_bytes;
		left -= count;
	}
	return true;
}

int pdb_read_parts(const char *path, struct pdb_parts *parts, struct err *err)
{
	struct pdb_parts found = {0};
	struct pdb pdb;

	if (!open_with_image(&pdb, path, err))
		return pdb.rc;
	if (read_parts(&pdb, &found)) {
		sort_ranges(&found);
		*parts = found;
	} else {
		free(found.list);
	}
	pdb_close(&pdb);
	return pdb.rc;
}

/* ---------------------------------------------------------------- functions */

/* Symbol records: length (not counting the length field), kind, contents (LLVM's "CodeView Symbol
 * Records"). */
enum {
	RECORD_HEAD = 4,
	RECORD_KIND = 2,
	RECORD_MAX = 2 + 0xffff,
	PUBLIC = 0x110e,
	PUBLIC_FLAGS = 4,
	PUBLIC_OFFSET = 8,
	PUBLIC_SECTION = 12,
	PUBLIC_NAME = 14,
	FLAG_FUNCTION = 2,
	LOCAL_FUNCTION = 0x110f,
	GLOBAL_FUNCTION = 0x1110,
	LOCAL_FUNCTION_ID = 0x1146,
	GLOBAL_FUNCTION_ID = 0x1147,
	FUNCTION_SIZE = 16,
	FUNCTION_OFFSET = 32,
	FUNCTION_SECTION = 36,
	FUNCTION_NAME = 39,
	FUNCTIONS_MAX = 1 << 22,
	WINDOW_BYTES = 4 * RECORD_MAX,
};

/* Object files of the image: a list of entries, each followed by two strings (LLVM's "The PDB DBI
 * Stream"). */
enum {
	OBJECT_STREAM = 34, /* number of the stream with the object file's symbols */
	OBJECT_SYMBOLS_BYTES = 36,
	OBJECT_TEXTS = 64,
	OBJECT_ALIGN = 4,
	OBJECT_MAX = OBJECT_TEXTS + 2 * 0x1000,
	OBJECT_SYMBOLS_AT = 4, /* offset in that stream, after a signature */
	NO_STREAM = 0xffff,
};

struct pdb_reader {
	struct pdb pdb;
	struct pe_exports functions;
	struct pdb_parts ranges; /* ranges of the functions in object files */
	size_t cap;
	unsigned char *window; /* the records read last */
};

/* Returns true if a public symbol is a function or data outside code, such as the table of a class's
 * virtual functions. Data in code would hide the end of the function before it. */
static bool is_wanted_public(const struct pdb *pdb, const unsigned char *record)
{
	uint16_t section = pe_u16(record + PUBLIC_SECTION);

	return pe_u32(record + PUBLIC_FLAGS) & FLAG_FUNCTION ||
	       (section && section <= pdb->image->section_count &&
		       !pdb->image->sections[section - 1].is_code);
}

/* Adds the symbol in a record. `len` includes the record's head. Skips invalid records. */
static bool add_record(struct pdb_reader *reader, const unsigned char *record, size_t len)
{
	struct pe_exports *functions = &reader->functions;
	uint16_t kind = pe_u16(record + RECORD_KIND);
	bool is_public = kind == PUBLIC;
	size_t name_at = is_public ? PUBLIC_NAME : FUNCTION_NAME;
	uint32_t rva, size_bytes;
	const char *name, *end;

	if ((!is_public && kind != LOCAL_FUNCTION && kind != GLOBAL_FUNCTION &&
		    kind != LOCAL_FUNCTION_ID && kind != GLOBAL_FUNCTION_ID) ||
		len <= name_at || (is_public && !is_wanted_public(&reader->pdb, record)))
		return true;
	size_bytes = is_public ? 0 : pe_u32(record + FUNCTION_SIZE);
	name = (const char *)record + name_at;
	end = memchr(name, '\0', len - name_at);
	if (!end || end == name ||
		!find_rva(&reader->pdb,
			pe_u16(record + (is_public ? PUBLIC_SECTION : FUNCTION_SECTION)),
			pe_u32(record + (is_public ? PUBLIC_OFFSET : FUNCTION_OFFSET)), size_bytes,
			&rva))
		return true;
	if (is_public && reader->pdb.machine == PE_MACHINE_I386 && name[0] == '_')
		name++;
	if (functions->count == FUNCTIONS_MAX)
		return fail_damaged(&reader->pdb);
	if (!is_public)
		add_range(&reader->ranges, rva, size_bytes);
	array_grow((void **)&functions->list, &reader->cap, functions->count,
		sizeof(*functions->list));
	functions->list[functions->count++] = (struct pe_export){
		.rva = rva, .name = arena_text(&functions->arena, name, (size_t)(end - name))};
	return true;
}

/* Handles all complete records in the first `len` bytes of the window. Sets `*used` to their total
 * size. */
static bool add_records(struct pdb_reader *reader, size_t len, size_t *used)
{
	size_t bytes;

	for (*used = 0; len - *used >= RECORD_HEAD; *used += bytes) {
		const unsigned char *record = reader->window + *used;

		bytes = 2 + (size_t)pe_u16(record);
		if (bytes < RECORD_HEAD) /* the start of the next record is unknown */
			return fail_damaged(&reader->pdb);
		if (bytes > len - *used)
			break;
		if (!add_record(reader, record, bytes))
			return false;
	}
	return true;
}

/* Reads the records of a stream from `at` to `end`. */
static bool read_symbols(
	struct pdb_reader *reader, const struct msf_stream *stream, uint32_t at, uint32_t end)
{
	size_t len = 0, used = 0; /* bytes in the window */

	while (at < end) {
		size_t part = end - at;

		len -= used;
		memmove(reader->window, reader->window + used, len);
		part = part < WINDOW_BYTES - len ? part : WINDOW_BYTES - len;
		if (!read_stream(&reader->pdb, stream, at, reader->window + len, part))
			return false;
		at += (uint32_t)part;
		len += part;
		if (!add_records(reader, len, &used))
			return false;
	}
	return len == used || fail_damaged(&reader->pdb);
}

static bool read_publics(struct pdb_reader *reader)
{
	struct msf_stream stream;

	return find_stream(&reader->pdb, reader->pdb.symbols, &stream) &&
	       read_symbols(reader, &stream, 0, stream.bytes);
}

/* Reads the symbols of one object file. Each object file has a stream of its own, so all object
 * files together cannot have more symbol bytes than the PDB has. `*left_bytes` is the part of this
 * limit that is left. */
static bool read_object(
	struct pdb_reader *reader, const unsigned char *object, uint64_t *left_bytes)
{
	uint16_t number = pe_u16(object + OBJECT_STREAM);
	uint32_t bytes = pe_u32(object + OBJECT_SYMBOLS_BYTES);
	struct msf_stream stream;

	if (number == NO_STREAM || bytes <= OBJECT_SYMBOLS_AT)
		return true;
	if (!find_stream(&reader->pdb, number, &stream))
		return false;
	if (bytes > stream.bytes || bytes > *left_bytes)
		return fail_damaged(&reader->pdb);
	*left_bytes -= bytes;
	return read_symbols(reader, &stream, OBJECT_SYMBOLS_AT, bytes);
}

static bool read_objects(struct pdb_reader *reader)
{
	struct pdb *pdb = &reader->pdb;
	uint64_t left_bytes = os_size(&pdb->file), end = DBI_BYTES + (uint64_t)pdb->objects_bytes;
	unsigned char object[OBJECT_MAX];
	size_t bytes;

	for (uint64_t at = DBI_BYTES; at < end;
		at += (bytes + OBJECT_ALIGN - 1) / OBJECT_ALIGN * OBJECT_ALIGN) {
		size_t len = end - at < OBJECT_MAX ? (size_t)(end - at) : OBJECT_MAX;
		const unsigned char *first, *second = NULL;

		if (len <= OBJECT_TEXTS)
			break;
		if (!read_stream(pdb, &pdb->dbi, at, object, len))
			return false;
		first = memchr(object + OBJECT_TEXTS, '\0', len - OBJECT_TEXTS);
		if (first)
			second = memchr(first + 1, '\0', (size_t)(object + len - first - 1));
		if (!second)
			return fail_damaged(pdb);
		if (!read_object(reader, object, &left_bytes))
			return false;
		bytes = (size_t)(second + 1 - object);
	}
	return true;
}

/* Reads the functions of the object files or, if `ranges` is NULL, the public functions. */
static int read_functions(
	const char *path, struct pe_exports *functions, struct pdb_parts *ranges, struct err *err)
{
	struct pdb_reader reader = {0};

	if (!open_with_image(&reader.pdb, path, err))
		return reader.pdb.rc;
	arena_init(&reader.functions.arena);
	reader.window = xmalloc(WINDOW_BYTES);
	if (!(ranges ? read_objects(&reader) : read_publics(&reader))) {
		pe_exports_release(&reader.functions);
		free(reader.ranges.list);
	} else {
		if (reader.functions.count)
			qsort(reader.functions.list, reader.functions.count,
				sizeof(*reader.functions.list), pe_export_compare);
		*functions = reader.functions;
		sort_ranges(&reader.ranges);
		if (ranges)
			*ranges = reader.ranges;
	}
	free(reader.window);
	pdb_close(&reader.pdb);
	return reader.pdb.rc;
}

int pdb_read_functions(const char *path, struct pe_exports *functions, struct err *err)
{
	return read_functions(path, functions, NULL, err);
}

int pdb_read_private_functions(
	const char *path, struct pe_exports *functions, struct pdb_parts *ranges, struct err *err)
{
	return read_functions(path, functions, ranges, err);
}
