#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "symbolize/files/pdb.h"

/* Numbers of the further streams that the DBI stream lists, 2 bytes each, and sections as images have
 * them. After LLVM's "The PDB DBI Stream". */
enum {
	EXTRA_OMAP_TO = 3,
	EXTRA_OMAP_FROM = 4,
	EXTRA_SECTIONS = 5,
	EXTRA_COUNT = 6, /* that are looked at */
	EXTRA_NONE = 0xffff,
	SECTION_BYTES = 40,
};

/* The parts: a number that tells which kind of entry, then those. After LLVM's "The PDB DBI Stream",
 * section contributions. */
enum {
	PARTS_VERSION_BYTES = 4,
	PART_BYTES = 28,
	PART_2_BYTES = 32,
	PART_SECTION = 0,
	PART_OFFSET = 4,
	PART_SIZE = 8,
	PART_FLAGS = 12, /* those of the section in the object file, as in PE images */
	PART_IS_COMDAT = 0x1000,
	PARTS_AT_ONCE = 1000,
	PARTS_MAX = 1 << 22,
};
#define PARTS_1 0xf12eba2du
#define PARTS_2 0xf13151e4u

static int take_sections(struct msf *msf, uint16_t number, struct pe_image *image, struct err *err)
{
	unsigned char bytes[PE_SECTIONS_MAX * SECTION_BYTES];
	struct msf_stream stream;
	int rc = msf_find(msf, number, &stream, err);

	if (!rc && (stream.bytes > sizeof(bytes) || stream.bytes % SECTION_BYTES))
		return msf_damaged(msf, err);
	if (!rc)
		rc = msf_read(msf, &stream, 0, bytes, stream.bytes, err);
	for (uint32_t at = 0; !rc && at < stream.bytes; at += SECTION_BYTES) {
		struct pe_section *section = &image->sections[image->section_count++];

		memcpy(section->name, bytes + at, 8);
		section->size_bytes = pe_u32(bytes + at + 8);
		section->rva = pe_u32(bytes + at + 12);
		if (section->size_bytes > UINT32_MAX - section->rva)
			return msf_damaged(msf, err);
	}
	return rc;
}

/* The streams that the DBI stream lists at its end; those it does not list are not there. */
static int read_extra(
	struct msf *msf, const struct pdb_dbi *dbi, uint16_t numbers[EXTRA_COUNT], struct err *err)
{
	unsigned char bytes[EXTRA_COUNT * 2];
	size_t len = dbi->extra_bytes < sizeof(bytes) ? dbi->extra_bytes : sizeof(bytes);
	int rc;

	memset(bytes, 0xff, sizeof(bytes));
	rc = msf_read(msf, &dbi->stream, dbi->extra_at, bytes, len, err);
	for (size_t i = 0; i < EXTRA_COUNT; i++)
		numbers[i] = pe_u16(bytes + i * 2);
	return rc;
}

/* Machine, bits and sections of a zeroed image. Returns 0, -ERR_READ or -ERR_TARGET. */
static int pdb_read_image(
	struct msf *msf, const struct pdb_dbi *dbi, struct pe_image *image, struct err *err)
{
	uint16_t numbers[EXTRA_COUNT];
	int rc = read_extra(msf, dbi, numbers, err);

	if (rc)
		return rc;
	if (numbers[EXTRA_OMAP_TO] != EXTRA_NONE || numbers[EXTRA_OMAP_FROM] != EXTRA_NONE)
		return err_set(err, ERR_TARGET, msf->path,
			"the image was rearranged after it was linked (OMAP)");
	if (numbers[EXTRA_SECTIONS] == EXTRA_NONE)
		return err_set(
			err, ERR_TARGET, msf->path, "the PDB does not say where the sections are");
	image->machine = dbi->machine;
	image->bits = dbi->machine == PE_MACHINE_I386 ? 32 : 64;
	return take_sections(msf, numbers[EXTRA_SECTIONS], image, err);
}

int pdb_read_sections(const char *path, struct pe_image *image, struct err *err)
{
	struct pe_image *fresh = calloc(1, sizeof(*fresh));
	struct pdb_dbi dbi = {0};
	struct msf msf;
	int rc;

	if (!fresh)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	rc = msf_open(&msf, path, err);
	if (!rc) {
		rc = pdb_read_dbi(&msf, &dbi, err);
		if (!rc)
			rc = pdb_read_image(&msf, &dbi, fresh, err);
		msf_close(&msf);
	}
	if (!rc)
		*image = *fresh;
	free(fresh);
	return rc;
}

/* ---------------------------------------------------------------- parts */

struct part_list {
	struct pdb_parts parts;
	size_t cap;
};

/* One that makes no sense is as none, and so is one that may hold many functions. */
static int take_part(
	const struct pe_image *image, const unsigned char *entry, struct part_list *list)
{
	struct pdb_parts *parts = &list->parts;
	uint32_t number = pe_u16(entry + PART_SECTION), offset = pe_u32(entry + PART_OFFSET);
	uint32_t size = pe_u32(entry + PART_SIZE);
	const struct pe_section *section;

	if (!number || number > image->section_count || !size ||
		!(pe_u32(entry + PART_FLAGS) & PART_IS_COMDAT))
		return 0;
	section = &image->sections[number - 1];
	if (offset >= section->size_bytes || size > section->size_bytes - offset)
		return 0;
	if (array_grow((void **)&parts->list, &list->cap, parts->count, sizeof(*parts->list)))
		return -ERR_NOMEM;
	parts->list[parts->count++] = (struct pe_range){section->rva + offset, size};
	return 0;
}

static int take_parts(struct msf *msf, const struct pdb_dbi *dbi, const struct pe_image *image,
	uint32_t entry_bytes, struct part_list *list, struct err *err)
{
	unsigned char bytes[PARTS_AT_ONCE * PART_2_BYTES];
	uint64_t at = dbi->parts_at + PARTS_VERSION_BYTES;
	uint32_t left = (dbi->parts_bytes - PARTS_VERSION_BYTES) / entry_bytes;
	int rc = 0;

	if (left > PARTS_MAX)
		return msf_damaged(msf, err);
	while (!rc && left) {
		uint32_t count = left < PARTS_AT_ONCE ? left : PARTS_AT_ONCE;

		rc = msf_read(msf, &dbi->stream, at, bytes, (size_t)count * entry_bytes, err);
		for (uint32_t i = 0; !rc && i < count; i++) {
			rc = take_part(image, bytes + (size_t)i * entry_bytes, list);
			if (rc)
				err_set(err, ERR_NOMEM, NULL, NULL);
		}
		at += (uint64_t)count * entry_bytes;
		left -= count;
	}
	return rc;
}

static int read_parts(
	struct msf *msf, struct part_list *list, struct pe_image *image, struct err *err)
{
	unsigned char version[PARTS_VERSION_BYTES] = {0};
	struct pdb_dbi dbi = {0};
	int rc = pdb_read_dbi(msf, &dbi, err);

	if (!rc)
		rc = pdb_read_image(msf, &dbi, image, err);
	if (rc || dbi.parts_bytes < sizeof(version))
		return rc;
	rc = msf_read(msf, &dbi.stream, dbi.parts_at, version, sizeof(version), err);
	if (rc)
		return rc;
	if (pe_u32(version) == PARTS_1)
		return take_parts(msf, &dbi, image, PART_BYTES, list, err);
	if (pe_u32(version) == PARTS_2)
		return take_parts(msf, &dbi, image, PART_2_BYTES, list, err);
	return 0; /* of another kind */
}

static int parts_by_rva(const void *a, const void *b)
{
	const struct pe_range *x = a, *y = b;

	return x->rva < y->rva ? -1 : x->rva > y->rva;
}

int pdb_read_parts(const char *path, struct pdb_parts *parts, struct err *err)
{
	struct pe_image *image = calloc(1, sizeof(*image));
	struct part_list list = {0};
	struct msf msf;
	int rc;

	if (!image)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	rc = msf_open(&msf, path, err);
	if (!rc) {
		rc = read_parts(&msf, &list, image, err);
		msf_close(&msf);
	}
	free(image);
	if (rc) {
		free(list.parts.list);
		return rc;
	}
	if (list.parts.count)
		qsort(list.parts.list, list.parts.count, sizeof(*list.parts.list), parts_by_rva);
	*parts = list.parts;
	return 0;
}

/* Symbol records, after LLVM's "CodeView Symbol Records": length without itself, kind, contents. */
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

/* The object files that the image was linked from, after LLVM's "The PDB DBI Stream": a list of entries,
 * each with two texts behind it. */
enum {
	OBJECT_STREAM = 34, /* number of the stream of its symbols */
	OBJECT_SYMBOLS_BYTES = 36,
	OBJECT_TEXTS = 64,
	OBJECT_ALIGN = 4,
	OBJECT_MAX = OBJECT_TEXTS + 2 * 0x1000,
	OBJECT_SYMBOLS_AT = 4, /* in the stream, behind a number that tells its kind */
	NO_STREAM = 0xffff,
};

struct pdb_reader {
	struct msf msf;
	struct pdb_dbi dbi;
	struct pe_image *image;
	struct pe_exports functions;
	struct pdb_parts ranges; /* of functions that object files have */
	size_t cap, range_cap;
	unsigned char *window; /* the records that were read last */
	struct err *err;
};

static int keep_function(struct pdb_reader *reader, uint32_t rva, const char *name, size_t len)
{
	struct pe_exports *functions = &reader->functions;
	const char *copy;

	if (functions->count == FUNCTIONS_MAX)
		return msf_damaged(&reader->msf, reader->err);
	copy = arena_text(&functions->arena, name, len);
	if (!copy || array_grow((void **)&functions->list, &reader->cap, functions->count,
			     sizeof(*functions->list)))
		return err_set(reader->err, ERR_NOMEM, NULL, NULL);
	functions->list[functions->count++] = (struct pe_export){.rva = rva, .name = copy};
	return 0;
}

static int keep_range(struct pdb_reader *reader, uint32_t rva, uint32_t size_bytes)
{
	struct pdb_parts *ranges = &reader->ranges;

	if (array_grow((void **)&ranges->list, &reader->range_cap, ranges->count,
		    sizeof(*ranges->list)))
		return err_set(reader->err, ERR_NOMEM, NULL, NULL);
	ranges->list[ranges->count++] = (struct pe_range){rva, size_bytes};
	return 0;
}

/* len: with its head. One that makes no sense is as none. */
static int take_record(struct pdb_reader *reader, const unsigned char *record, size_t len)
{
	uint16_t kind = pe_u16(record + RECORD_KIND);
	bool is_public = kind == PUBLIC;
	size_t name_at = is_public ? PUBLIC_NAME : FUNCTION_NAME;
	const struct pe_section *section;
	uint32_t number, offset, size_bytes;
	const char *name, *end;
	int rc = 0;

	if ((!is_public && kind != LOCAL_FUNCTION && kind != GLOBAL_FUNCTION &&
		    kind != LOCAL_FUNCTION_ID && kind != GLOBAL_FUNCTION_ID) ||
		len <= name_at || (is_public && !(pe_u32(record + PUBLIC_FLAGS) & FLAG_FUNCTION)))
		return 0;
	number = pe_u16(record + (is_public ? PUBLIC_SECTION : FUNCTION_SECTION));
	if (!number || number > reader->image->section_count)
		return 0;
	section = &reader->image->sections[number - 1];
	offset = pe_u32(record + (is_public ? PUBLIC_OFFSET : FUNCTION_OFFSET));
	size_bytes = is_public ? 0 : pe_u32(record + FUNCTION_SIZE);
	name = (const char *)record + name_at;
	end = memchr(name, '\0', len - name_at);
	if (offset >= section->size_bytes || size_bytes > section->size_bytes - offset || !end ||
		end == name)
		return 0;
	if (is_public && reader->dbi.machine == PE_MACHINE_I386 && name[0] == '_')
		name++;
	if (!is_public)
		rc = keep_range(reader, section->rva + offset, size_bytes);
	return rc ? rc : keep_function(reader, section->rva + offset, name, (size_t)(end - name));
}

/* Takes the whole records among len bytes; *taken is how many bytes they are. */
static int take_records(struct pdb_reader *reader, size_t len, size_t *taken)
{
	size_t at = 0;
	int rc = 0;

	while (!rc && len - at >= RECORD_HEAD) {
		size_t bytes = 2 + (size_t)pe_u16(reader->window + at);

		if (bytes < RECORD_HEAD) /* where the next one is nobody knows */
			return msf_damaged(&reader->msf, reader->err);
		if (bytes > len - at)
			break;
		rc = take_record(reader, reader->window + at, bytes);
		at += bytes;
	}
	*taken = at;
	return rc;
}

/* The records of a stream from at up to end. */
static int read_symbols(
	struct pdb_reader *reader, const struct msf_stream *stream, uint32_t at, uint32_t end)
{
	size_t len = 0, taken = 0; /* of the window */
	int rc = 0;

	while (!rc && at < end) {
		size_t part = end - at;

		len -= taken;
		memmove(reader->window, reader->window + taken, len);
		part = part < WINDOW_BYTES - len ? part : WINDOW_BYTES - len;
		rc = msf_read(&reader->msf, stream, at, reader->window + len, part, reader->err);
		at += (uint32_t)part;
		len += part;
		if (!rc)
			rc = take_records(reader, len, &taken);
	}
	return !rc && len != taken ? msf_damaged(&reader->msf, reader->err) : rc;
}

static int read_publics(struct pdb_reader *reader)
{
	struct msf_stream stream;
	int rc = msf_find(&reader->msf, reader->dbi.symbols, &stream, reader->err);

	return rc ? rc : read_symbols(reader, &stream, 0, stream.bytes);
}

/* The symbols of one object file. *left_bytes: as many as all files may have yet, as each has a stream of its
 * own. */
static int read_object(struct pdb_reader *reader, const unsigned char *object, uint64_t *left_bytes)
{
	uint16_t number = pe_u16(object + OBJECT_STREAM);
	uint32_t bytes = pe_u32(object + OBJECT_SYMBOLS_BYTES);
	struct msf_stream stream;
	int rc;

	if (number == NO_STREAM || bytes <= OBJECT_SYMBOLS_AT)
		return 0;
	rc = msf_find(&reader->msf, number, &stream, reader->err);
	if (!rc && (bytes > stream.bytes || bytes > *left_bytes))
		return msf_damaged(&reader->msf, reader->err);
	*left_bytes -= rc ? 0 : bytes;
	return rc ? rc : read_symbols(reader, &stream, OBJECT_SYMBOLS_AT, bytes);
}

static int read_objects(struct pdb_reader *reader)
{
	const struct pdb_dbi *dbi = &reader->dbi;
	uint64_t left_bytes = os_size(&reader->msf.file);
	unsigned char object[OBJECT_MAX];
	int rc = 0;

	for (uint64_t at = dbi->objects_at, end = at + dbi->objects_bytes; !rc && at < end;) {
		size_t len = end - at < OBJECT_MAX ? (size_t)(end - at) : OBJECT_MAX;
		const unsigned char *first, *second = NULL;

		if (len <= OBJECT_TEXTS)
			break;
		rc = msf_read(&reader->msf, &dbi->stream, at, object, len, reader->err);
		if (rc)
			break;
		first = memchr(object + OBJECT_TEXTS, '\0', len - OBJECT_TEXTS);
		if (first)
			second = memchr(first + 1, '\0', (size_t)(object + len - first - 1));
		if (!second)
			return msf_damaged(&reader->msf, reader->err);
		rc = read_object(reader, object, &left_bytes);
		at += ((uint64_t)(second + 1 - object) + OBJECT_ALIGN - 1) / OBJECT_ALIGN *
		      OBJECT_ALIGN;
	}
	return rc;
}

/* After success the container is open. */
static int reader_open(struct pdb_reader *reader, const char *path)
{
	int rc;

	reader->image = calloc(1, sizeof(*reader->image));
	if (!reader->image)
		return err_set(reader->err, ERR_NOMEM, NULL, NULL);
	rc = msf_open(&reader->msf, path, reader->err);
	if (!rc) {
		rc = pdb_read_dbi(&reader->msf, &reader->dbi, reader->err);
		if (!rc)
			rc = pdb_read_image(&reader->msf, &reader->dbi, reader->image, reader->err);
		if (rc)
			msf_close(&reader->msf);
	}
	if (rc)
		free(reader->image);
	return rc;
}

static void reader_close(struct pdb_reader *reader)
{
	msf_close(&reader->msf);
	free(reader->image);
	free(reader->window);
}

/* Of several that begin at one place the longest is the last. */
static int by_rva(const void *a, const void *b)
{
	const struct pe_range *x = a, *y = b;

	if (x->rva != y->rva)
		return x->rva < y->rva ? -1 : 1;
	return x->size_bytes < y->size_bytes ? -1 : x->size_bytes > y->size_bytes;
}

/* ranges: NULL for public symbols. */
static int read_all(
	const char *path, struct pe_exports *functions, struct pdb_parts *ranges, struct err *err)
{
	struct pdb_reader reader = {.err = err};
	int rc = reader_open(&reader, path);

	if (rc)
		return rc;
	arena_init(&reader.functions.arena);
	reader.window = malloc(WINDOW_BYTES);
	if (!reader.window)
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	else
		rc = ranges ? read_objects(&reader) : read_publics(&reader);
	if (rc) {
		pe_exports_release(&reader.functions);
		free(reader.ranges.list);
	} else {
		if (reader.functions.count)
			qsort(reader.functions.list, reader.functions.count,
				sizeof(*reader.functions.list), pe_export_compare);
		*functions = reader.functions;
	}
	if (!rc && ranges) {
		if (reader.ranges.count)
			qsort(reader.ranges.list, reader.ranges.count, sizeof(*reader.ranges.list),
				by_rva);
		*ranges = reader.ranges;
	}
	reader_close(&reader);
	return rc;
}

int pdb_read_functions(const char *path, struct pe_exports *functions, struct err *err)
{
	return read_all(path, functions, NULL, err);
}

int pdb_read_private_functions(
	const char *path, struct pe_exports *functions, struct pdb_parts *ranges, struct err *err)
{
	return read_all(path, functions, ranges, err);
}
