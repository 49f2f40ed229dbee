#include "core/pe.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "core/err.h"

/* The symbol table, after Microsoft's "PE Format": entries of 18 bytes, some of which are extra
 * ones of the entry before; behind them the names that do not fit into 8 bytes. */
enum {
	ENTRY_BYTES = 18,
	ENTRIES_AT_ONCE = 1000,
	ENTRIES_MAX = 1 << 22,
	NAME_MAX_BYTES = 4096,
	TYPE_FUNCTION = 0x20,
	CLASS_EXTERNAL = 2,
	CLASS_STATIC = 3,
};

struct reader {
	const struct pe_source *source;
	const struct pe_image *image;
	struct pe_exports *symbols;
	size_t cap;
	uint64_t texts; /* place in the file */
	uint32_t texts_bytes;
	char name[NAME_MAX_BYTES];
};

/* A name among those behind the table: false when there is none. */
static bool long_name(struct reader *reader, uint32_t at)
{
	size_t left = at < reader->texts_bytes ? reader->texts_bytes - at : 0;
	size_t len = 0;

	while (len < left && len < sizeof(reader->name) - 1) {
		size_t part = sizeof(reader->name) - 1 - len;

		part = part < 64 ? part : 64;
		part = part < left - len ? part : left - len;
		if (reader->source->read(reader->source->ctx, reader->texts + at + len,
			    reader->name + len, part))
			return false;
		if (memchr(reader->name + len, '\0', part))
			return true;
		len += part;
	}
	reader->name[len] = '\0';
	return len == sizeof(reader->name) - 1;
}

static bool take_name(struct reader *reader, const unsigned char *entry)
{
	if (!pe_u32(entry))
		return long_name(reader, pe_u32(entry + 4)) && reader->name[0];
	memcpy(reader->name, entry, 8);
	reader->name[8] = '\0';
	return true;
}

/* 32-bit names have a '_' before what the source says. */
static const char *plain_name(const struct reader *reader)
{
	return reader->image->machine == PE_MACHINE_I386 && reader->name[0] == '_' ?
		       reader->name + 1 :
		       reader->name;
}

static int take_entry(struct reader *reader, const unsigned char *entry)
{
	struct pe_exports *symbols = reader->symbols;
	uint32_t value = pe_u32(entry + 8), number = pe_u16(entry + 12);
	const struct pe_section *section;
	const char *name;

	if (pe_u16(entry + 14) != TYPE_FUNCTION || !number ||
		number > reader->image->section_count ||
		(entry[16] != CLASS_EXTERNAL && entry[16] != CLASS_STATIC))
		return 0;
	section = &reader->image->sections[number - 1];
	if (value >= section->size_bytes || !take_name(reader, entry))
		return 0;
	if (array_grow(
		    (void **)&symbols->list, &reader->cap, symbols->count, sizeof(*symbols->list)))
		return -ERR_NOMEM;
	name = arena_text(&symbols->arena, plain_name(reader), strlen(plain_name(reader)));
	if (!name)
		return -ERR_NOMEM;
	symbols->list[symbols->count++] =
		(struct pe_export){.rva = section->rva + value, .name = name};
	return 0;
}

static int take_entries(struct reader *reader)
{
	unsigned char bytes[ENTRIES_AT_ONCE * ENTRY_BYTES];
	uint32_t count = reader->image->coff_symbols, skip = 0;
	int rc = 0;

	for (uint32_t from = 0; !rc && from < count; from += ENTRIES_AT_ONCE) {
		uint32_t part = count - from < ENTRIES_AT_ONCE ? count - from : ENTRIES_AT_ONCE;

		if (reader->source->read(reader->source->ctx,
			    reader->image->coff_offset + (uint64_t)from * ENTRY_BYTES, bytes,
			    part * (size_t)ENTRY_BYTES))
			return -ERR_READ;
		for (uint32_t i = 0; !rc && i < part; i++) {
			const unsigned char *entry = bytes + i * (size_t)ENTRY_BYTES;

			if (skip) {
				skip--;
				continue;
			}
			skip = entry[17];
			rc = take_entry(reader, entry);
		}
	}
	return rc;
}

int pe_symbols_read(
	const struct pe_source *source, const struct pe_image *image, struct pe_exports *symbols)
{
	struct pe_exports fresh = {0};
	struct reader reader = {.source = source, .image = image, .symbols = &fresh};
	unsigned char size[4];
	int rc = 0;

	arena_init(&fresh.arena);
	if (image->coff_symbols && !source->in_memory) {
		if (image->coff_symbols > ENTRIES_MAX)
			return -ERR_TARGET;
		reader.texts = image->coff_offset + (uint64_t)image->coff_symbols * ENTRY_BYTES;
		if (!source->read(source->ctx, reader.texts, size, sizeof(size)))
			reader.texts_bytes = pe_u32(size);
		rc = take_entries(&reader);
	}
	if (rc) {
		pe_exports_release(&fresh);
		return rc;
	}
	if (fresh.count)
		qsort(fresh.list, fresh.count, sizeof(*fresh.list), pe_export_compare);
	*symbols = fresh;
	return 0;
}
