#include "symbolize/files/pdb.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "symbolize/files/pdb_dbi.h"

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
	FUNCTIONS_MAX = 1 << 22,
	WINDOW_BYTES = 4 * RECORD_MAX,
};

struct pdb_reader {
	struct msf msf;
	struct pdb_dbi dbi;
	struct pe_image *image;
	struct pe_exports functions;
	size_t cap;
	unsigned char *window; /* the records that were read last */
	struct err *err;
};

static int keep_function(struct pdb_reader *reader, uint32_t rva, const char *name, size_t len)
{
	struct pe_exports *functions = &reader->functions;
	const char *copy;

	if (functions->count == FUNCTIONS_MAX)
		return msf_damaged(&reader->msf, reader->err);
	if (reader->dbi.machine == PE_MACHINE_I386 && name[0] == '_') {
		name++;
		len--;
	}
	copy = arena_text(&functions->arena, name, len);
	if (!copy || array_grow((void **)&functions->list, &reader->cap, functions->count,
			     sizeof(*functions->list)))
		return err_set(reader->err, ERR_NOMEM, NULL, NULL);
	functions->list[functions->count++] = (struct pe_export){.rva = rva, .name = copy};
	return 0;
}

/* len: with its head. One that makes no sense is as none. */
static int take_record(struct pdb_reader *reader, const unsigned char *record, size_t len)
{
	const struct pe_section *section;
	uint32_t number, offset;
	const char *name, *end;

	if (pe_u16(record + RECORD_KIND) != PUBLIC || len <= PUBLIC_NAME ||
		!(pe_u32(record + PUBLIC_FLAGS) & FLAG_FUNCTION))
		return 0;
	number = pe_u16(record + PUBLIC_SECTION);
	if (!number || number > reader->image->section_count)
		return 0;
	section = &reader->image->sections[number - 1];
	offset = pe_u32(record + PUBLIC_OFFSET);
	name = (const char *)record + PUBLIC_NAME;
	end = memchr(name, '\0', len - PUBLIC_NAME);
	if (offset >= section->size_bytes || !end || end == name)
		return 0;
	return keep_function(reader, section->rva + offset, name, (size_t)(end - name));
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

static int read_symbols(struct pdb_reader *reader)
{
	struct msf_stream stream;
	size_t len = 0, taken = 0; /* of the window */
	int rc = msf_find(&reader->msf, reader->dbi.symbols, &stream, reader->err);

	for (uint32_t at = 0; !rc && at < stream.bytes;) {
		size_t part = stream.bytes - at;

		len -= taken;
		memmove(reader->window, reader->window + taken, len);
		part = part < WINDOW_BYTES - len ? part : WINDOW_BYTES - len;
		rc = msf_read(&reader->msf, &stream, at, reader->window + len, part, reader->err);
		at += (uint32_t)part;
		len += part;
		if (!rc)
			rc = take_records(reader, len, &taken);
	}
	return !rc && len != taken ? msf_damaged(&reader->msf, reader->err) : rc;
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

int pdb_read_functions(const char *path, struct pe_exports *functions, struct err *err)
{
	struct pdb_reader reader = {.err = err};
	int rc = reader_open(&reader, path);

	if (rc)
		return rc;
	arena_init(&reader.functions.arena);
	reader.window = malloc(WINDOW_BYTES);
	rc = reader.window ? read_symbols(&reader) : err_set(err, ERR_NOMEM, NULL, NULL);
	if (rc) {
		pe_exports_release(&reader.functions);
	} else {
		if (reader.functions.count)
			qsort(reader.functions.list, reader.functions.count,
				sizeof(*reader.functions.list), pe_export_compare);
		*functions = reader.functions;
	}
	reader_close(&reader);
	return rc;
}
