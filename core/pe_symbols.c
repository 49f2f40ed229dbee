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
	TYPE_NONE = 0,
	TYPE_FUNCTION = 0x20,
	CLASS_EXTERNAL = 2,
	CLASS_STATIC = 3,
};

struct reader {
	const struct pe_source *source;
	const struct pe_image *image;
	struct pe_exports *symbols;
	size_t cap;
	/* The names behind the table and a NUL. All names point into this one copy, so that they
	 * take no more memory than the file does. */
	const char *texts;
	uint32_t texts_bytes;
};

/* 0 also when there are none, else -ERR_READ or -ERR_NOMEM. */
static int read_texts(struct reader *reader)
{
	const struct pe_source *source = reader->source;
	uint64_t at =
		reader->image->coff_offset + (uint64_t)reader->image->coff_symbols * ENTRY_BYTES;
	unsigned char size[4];
	uint32_t len;
	char *texts;

	if (source->read(source->ctx, at, size, sizeof(size)))
		return 0;
	len = pe_u32(size);
	if (len <= sizeof(size))
		return 0;
	/* The last byte must be there before memory is asked for. */
	if (source->read(source->ctx, at + len - 1, size, 1))
		return -ERR_READ;
	texts = arena_alloc(&reader->symbols->arena, (size_t)len + 1);
	if (!texts)
		return -ERR_NOMEM;
	if (source->read(source->ctx, at, texts, len))
		return -ERR_READ;
	reader->texts = texts;
	reader->texts_bytes = len;
	return 0;
}

/* 32-bit names have a '_' before what the source says. */
static const char *plain_name(const struct reader *reader, const char *name)
{
	return reader->image->machine == PE_MACHINE_I386 && name[0] == '_' ? name + 1 : name;
}

/* Up to 8 bytes in the entry itself, or a place among the texts. *name is NULL when it has none. */
static int take_name(struct reader *reader, const unsigned char *entry, const char **name)
{
	uint32_t at = pe_u32(entry + 4);
	char text[9] = {0};

	*name = NULL;
	if (!pe_u32(entry)) {
		if (at < reader->texts_bytes && reader->texts[at])
			*name = plain_name(reader, reader->texts + at);
		return 0;
	}
	memcpy(text, entry, 8);
	*name = arena_text(&reader->symbols->arena, plain_name(reader, text),
		strlen(plain_name(reader, text)));
	return *name ? 0 : -ERR_NOMEM;
}

/*
 * The name of the function that a part of a section is for, or NULL. gcc and clang write each function that
 * may be left out or moved into a part of its own, ".text$NAME" or ".text.startup.NAME", and begin it
 * there. Libraries whose local symbols were taken out, as libstdc++'s, have these symbols still.
 */
static const char *name_of_part(const struct reader *reader, const char *name)
{
	static const char *const prefixes[] = {".text$", ".text.startup."};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
		size_t len = strlen(prefixes[i]);

		if (!strncmp(name, prefixes[i], len) && name[len])
			return plain_name(reader, name + len);
	}
	return NULL;
}

static int take_entry(struct reader *reader, const unsigned char *entry)
{
	struct pe_exports *symbols = reader->symbols;
	uint32_t value = pe_u32(entry + 8), number = pe_u16(entry + 12);
	uint16_t type = pe_u16(entry + 14);
	const struct pe_section *section;
	const char *name;
	int rc;

	if ((type != TYPE_FUNCTION && type != TYPE_NONE) || !number ||
		number > reader->image->section_count ||
		(entry[16] != CLASS_EXTERNAL && entry[16] != CLASS_STATIC))
		return 0;
	section = &reader->image->sections[number - 1];
	if (value >= section->size_bytes)
		return 0;
	rc = take_name(reader, entry, &name);
	if (!rc && name && type == TYPE_NONE)
		name = name_of_part(reader, name);
	if (rc || !name)
		return rc;
	if (array_grow(
		    (void **)&symbols->list, &reader->cap, symbols->count, sizeof(*symbols->list)))
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
	int rc = 0;

	arena_init(&fresh.arena);
	if (image->coff_symbols && !source->in_memory) {
		if (image->coff_symbols > ENTRIES_MAX)
			return -ERR_TARGET;
		rc = read_texts(&reader);
		if (!rc)
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
