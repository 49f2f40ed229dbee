/*
 * Reads function names from a PE image: from the export table, and from the COFF symbol table that
 * mingw leaves. Both tables are returned as a struct pe_exports.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/pe/pe.h"

/* All numbers and offsets below are from "PE Format", Microsoft Learn. */
enum {
	EXPORTS_BYTES = 40,
	EXPORTS_MAX = 65536, /* maximum, because ordinals have 16 bits */
	NAME_MAX_BYTES = 4096,
	/* limit per table, exceeded only if many entries share one name */
	NAMES_MAX_BYTES = 32 << 20,
	RANGE_MAX_BYTES = 8 << 20, /* maximum size of a single read */
};

/* The three arrays of an export table, copied from the image. */
struct export_table {
	const struct pe_source *source;
	const struct pe_image *image;
	/* Copy of the export range given by the headers, which usually contains the table and its
	 * names. It is copied with one read, because reading another process's memory is slow.
	 * NULL: not available. */
	unsigned char *range;
	size_t range_bytes;
	unsigned char *functions, *names, *ordinals;
	uint32_t function_count, name_count, first_ordinal;
};

static void read_range(struct export_table *table)
{
	const struct pe_range *range = &table->image->exports;

	if (range->size_bytes > RANGE_MAX_BYTES ||
		range->size_bytes > pe_left_at(table->image, range->rva))
		return;
	table->range = xmalloc(range->size_bytes);
	table->range_bytes = range->size_bytes;
	if (pe_read(table->source, table->image, range->rva, table->range, table->range_bytes)) {
		free(table->range);
		table->range = NULL;
	}
}

/* Returns the bytes of the copied range at rva and sets `*left` to the number of bytes from there
 * to the range's end. Returns NULL if rva is outside the range. */
static const unsigned char *in_range(const struct export_table *table, uint32_t rva, size_t *left)
{
	uint32_t from = table->image->exports.rva;

	if (!table->range || rva < from || rva - from >= table->range_bytes)
		return NULL;
	*left = table->range_bytes - (rva - from);
	return table->range + (rva - from);
}

static int read_part(const struct export_table *table, uint32_t rva, void *bytes, size_t len)
{
	size_t left = 0;
	const unsigned char *at = in_range(table, rva, &left);

	if (!at || len > left)
		return pe_read(table->source, table->image, rva, bytes, len);
	memcpy(bytes, at, len);
	return 0;
}

/* Reads a name. Returns the same values as pe_read_text(). */
static int read_name(const struct export_table *table, uint32_t i, char *text, size_t size)
{
	uint32_t rva = pe_u32(table->names + i * (size_t)4);
	size_t left = 0, len;
	const unsigned char *at = in_range(table, rva, &left);
	const unsigned char *end = at ? memchr(at, 0, left) : NULL;

	if (!end)
		return pe_read_text(table->source, table->image, rva, text, size);
	len = (size_t)(end - at);
	if (len >= size)
		len = size - 1;
	memcpy(text, at, len);
	text[len] = '\0';
	return 0;
}

static int read_array(
	const struct export_table *table, uint32_t rva, size_t bytes, unsigned char **array)
{
	int rc;

	if (bytes > pe_left_at(table->image, rva))
		return -ERR_TARGET;
	*array = xmalloc(bytes);
	rc = read_part(table, rva, *array, bytes);
	if (rc) {
		free(*array);
		*array = NULL;
	}
	return rc;
}

static void table_free(struct export_table *table)
{
	free(table->range);
	free(table->functions);
	free(table->names);
	free(table->ordinals);
}

static int read_table(
	const struct pe_source *source, const struct pe_image *image, struct export_table *table)
{
	unsigned char head[EXPORTS_BYTES];
	int rc;

	*table = (struct export_table){.source = source, .image = image};
	if (!image->exports.rva)
		return 0;
	read_range(table);
	rc = read_part(table, image->exports.rva, head, sizeof(head));
	if (rc) {
		table_free(table);
		return rc;
	}
	table->first_ordinal = pe_u32(head + 16);
	table->function_count = pe_u32(head + 20);
	table->name_count = pe_u32(head + 24);
	if (table->function_count > EXPORTS_MAX || table->name_count > EXPORTS_MAX)
		rc = -ERR_TARGET;
	if (!rc && table->function_count)
		rc = read_array(table, pe_u32(head + 28), table->function_count * (size_t)4,
			&table->functions);
	if (!rc && table->name_count)
		rc = read_array(
			table, pe_u32(head + 32), table->name_count * (size_t)4, &table->names);
	if (!rc && table->name_count)
		rc = read_array(
			table, pe_u32(head + 36), table->name_count * (size_t)2, &table->ordinals);
	if (rc)
		table_free(table);
	return rc;
}

/* Returns the rva of an export, or 0 for an unused entry or a forwarder ("DLL.Name"). */
static uint32_t function_rva(const struct export_table *table, uint32_t index)
{
	const struct pe_image *image = table->image;
	uint32_t rva =
		index < table->function_count ? pe_u32(table->functions + index * (size_t)4) : 0;

	if (rva >= image->exports.rva && rva - image->exports.rva < image->exports.size_bytes)
		return 0;
	return pe_section_at(image, rva) ? rva : 0;
}

static int add_export(struct pe_exports *exports, uint32_t rva, uint32_t ordinal, const char *name)
{
	if (exports->arena.used_bytes > NAMES_MAX_BYTES)
		return -ERR_TARGET;
	exports->list[exports->count++] = (struct pe_export){.rva = rva,
		.ordinal = ordinal,
		.name = arena_text(&exports->arena, name, strlen(name))};
	return 0;
}

static int add_named(
	const struct export_table *table, struct pe_exports *exports, unsigned char *is_named)
{
	char name[NAME_MAX_BYTES];
	int rc = 0;

	for (uint32_t i = 0; !rc && i < table->name_count; i++) {
		uint32_t index = pe_u16(table->ordinals + i * (size_t)2);
		uint32_t rva = function_rva(table, index);

		if (!rva)
			continue;
		rc = read_name(table, i, name, sizeof(name));
		if (!rc)
			rc = add_export(exports, rva, table->first_ordinal + index, name);
		is_named[index] = 1;
	}
	return rc;
}

static int add_nameless(
	const struct export_table *table, struct pe_exports *exports, const unsigned char *is_named)
{
	char name[32];
	int rc = 0;

	for (uint32_t i = 0; !rc && i < table->function_count; i++) {
		uint32_t rva = function_rva(table, i);

		if (!rva || is_named[i])
			continue;
		snprintf(name, sizeof(name), "Ordinal%" PRIu32, table->first_ordinal + i);
		rc = add_export(exports, rva, table->first_ordinal + i, name);
	}
	return rc;
}

int pe_export_compare(const void *a, const void *b)
{
	const struct pe_export *x = a, *y = b;

	if (x->rva != y->rva)
		return x->rva < y->rva ? -1 : 1;
	return x->name == y->name ? 0 : strncmp(x->name, y->name, NAME_MAX_BYTES);
}

int pe_exports_read(
	const struct pe_source *source, const struct pe_image *image, struct pe_exports *exports)
{
	struct pe_exports fresh = {0};
	struct export_table table;
	unsigned char *is_named;
	int rc = read_table(source, image, &table);

	if (rc)
		return rc;
	arena_init(&fresh.arena);
	is_named = xcalloc(table.function_count, 1);
	fresh.list = xcalloc(table.function_count + (size_t)table.name_count, sizeof(*fresh.list));
	rc = add_named(&table, &fresh, is_named);
	if (!rc)
		rc = add_nameless(&table, &fresh, is_named);
	free(is_named);
	table_free(&table);
	if (rc) {
		pe_exports_release(&fresh);
		return rc;
	}
	qsort(fresh.list, fresh.count, sizeof(*fresh.list), pe_export_compare);
	*exports = fresh;
	return 0;
}

void pe_exports_release(struct pe_exports *exports)
{
	free(exports->list);
	arena_release(&exports->arena);
	*exports = (struct pe_exports){0};
}

/* For each name that equals `text` and has no rva yet, sets `rvas[i]` to `rva`. Returns the number
 * of such names. */
static size_t note(
	const char *text, uint32_t rva, const char *const *names, size_t count, uint32_t *rvas)
{
	size_t noted = 0;

	for (size_t i = 0; i < count; i++) {
		if (!rvas[i] && !strcmp(text, names[i])) {
			rvas[i] = rva;
			noted++;
		}
	}
	return noted;
}

int pe_find_exports(const struct pe_source *source, const struct pe_image *image,
	const char *const *names, size_t count, uint32_t *rvas)
{
	struct export_table table;
	char text[NAME_MAX_BYTES];
	size_t left = count;
	int rc = read_table(source, image, &table);

	memset(rvas, 0, count * sizeof(*rvas));
	if (rc)
		return rc;
	for (uint32_t i = 0; !rc && left && i < table.name_count; i++) {
		uint32_t rva = function_rva(&table, pe_u16(table.ordinals + i * (size_t)2));

		rc = read_name(&table, i, text, sizeof(text));
		if (!rc && rva)
			left -= note(text, rva, names, count, rvas);
	}
	table_free(&table);
	return rc;
}

int pe_find_export(const struct pe_source *source, const struct pe_image *image, const char *name,
	uint32_t *rva)
{
	uint32_t found;
	int rc = pe_find_exports(source, image, &name, 1, &found);

	if (!rc && !found)
		rc = -ERR_SYMBOLS;
	if (!rc)
		*rva = found;
	return rc;
}

/* The symbol table has entries of 18 bytes. Some entries are auxiliary: they belong to the entry
 * before them. Names longer than 8 bytes are in a string table after the symbol table. */
enum {
	ENTRY_BYTES = 18,
	ENTRIES_AT_ONCE = 1000,
	ENTRIES_MAX = 1 << 22,
	TYPE_NONE = 0,
	TYPE_FUNCTION = 0x20,
	CLASS_EXTERNAL = 2,
	CLASS_STATIC = 3,
};

struct pe_reader {
	const struct pe_source *source;
	const struct pe_image *image;
	struct pe_exports *symbols;
	size_t cap;
	/* The string table after the symbols, plus a NUL. All long names point into this copy, so
	 * they take no more memory than in the file. */
	char *texts;
	uint32_t texts_bytes;
};

/* Reads the string table. Returns 0, even without a string table, or -ERR_READ. */
static int read_texts(struct pe_reader *reader)
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
	/* Check that the last byte is readable before allocating. */
	if (source->read(source->ctx, at + len - 1, size, 1))
		return -ERR_READ;
	texts = arena_alloc(&reader->symbols->arena, (size_t)len + 1);
	if (source->read(source->ctx, at, texts, len))
		return -ERR_READ;
	reader->texts = texts;
	reader->texts_bytes = len;
	return 0;
}

/* Returns a 32-bit name without its decoration: "_f" (cdecl), "_f@8" (stdcall), "@f@8" (fastcall)
 * and "f@@16" (vectorcall) all become "f". Truncates the name in place, because copying each name
 * would need unbounded memory. */
static char *plain_name(const struct pe_reader *reader, char *name)
{
	char *at;

	if (reader->image->machine != PE_MACHINE_I386)
		return name;
	at = strrchr(name, '@');
	if (at && at > name + 1 && name[0] != '?' && at[1] && !at[1 + strspn(at + 1, "0123456789")])
		at[at[-1] == '@' ? -1 : 0] = '\0';
	return name[0] == '_' || name[0] == '@' ? name + 1 : name;
}

/* Returns a symbol's name, which is stored in the entry (up to 8 bytes) or in the string table.
 * Returns NULL if there is no name. */
static char *copy_name(struct pe_reader *reader, const unsigned char *entry)
{
	uint32_t at = pe_u32(entry + 4);
	char text[9] = {0};
	char *name;

	if (!pe_u32(entry))
		return at < reader->texts_bytes && reader->texts[at] ?
			       plain_name(reader, reader->texts + at) :
			       NULL;
	memcpy(text, entry, 8);
	name = plain_name(reader, text);
	return arena_text(&reader->symbols->arena, name, strlen(name));
}

/* Returns the function name contained in a section name, or NULL. gcc and clang put each function
 * that may be discarded or moved into its own section, ".text$NAME" or ".text.startup.NAME".
 * Libraries without local symbols, such as libstdc++, still have symbols for these sections. */
static char *name_of_part(const struct pe_reader *reader, char *name)
{
	static const char *const prefixes[] = {".text$", ".text.startup."};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
		size_t len = strlen(prefixes[i]);

		if (!strncmp(name, prefixes[i], len) && name[len])
			return plain_name(reader, name + len);
	}
	return NULL;
}

static void read_entry(struct pe_reader *reader, const unsigned char *entry)
{
	struct pe_exports *symbols = reader->symbols;
	uint32_t value = pe_u32(entry + 8), number = pe_u16(entry + 12);
	uint16_t type = pe_u16(entry + 14);
	const struct pe_section *section;
	char *name;

	if ((type != TYPE_FUNCTION && type != TYPE_NONE) || !number ||
		number > reader->image->section_count ||
		(entry[16] != CLASS_EXTERNAL && entry[16] != CLASS_STATIC))
		return;
	section = &reader->image->sections[number - 1];
	name = value < section->size_bytes ? copy_name(reader, entry) : NULL;
	if (name && type == TYPE_NONE)
		name = name_of_part(reader, name);
	if (!name)
		return;
	array_grow((void **)&symbols->list, &reader->cap, symbols->count, sizeof(*symbols->list));
	symbols->list[symbols->count++] =
		(struct pe_export){.rva = section->rva + value, .name = name};
}

static int read_entries(struct pe_reader *reader)
{
	unsigned char bytes[ENTRIES_AT_ONCE * ENTRY_BYTES];
	uint32_t count = reader->image->coff_symbols, skip = 0;

	for (uint32_t from = 0; from < count; from += ENTRIES_AT_ONCE) {
		uint32_t part = count - from < ENTRIES_AT_ONCE ? count - from : ENTRIES_AT_ONCE;

		if (reader->source->read(reader->source->ctx,
			    reader->image->coff_offset + (uint64_t)from * ENTRY_BYTES, bytes,
			    part * (size_t)ENTRY_BYTES))
			return -ERR_READ;
		for (uint32_t i = 0; i < part; i++) {
			const unsigned char *entry = bytes + i * (size_t)ENTRY_BYTES;

			if (skip) {
				skip--;
				continue;
			}
			skip = entry[17];
			read_entry(reader, entry);
		}
	}
	return 0;
}

int pe_symbols_read(
	const struct pe_source *source, const struct pe_image *image, struct pe_exports *symbols)
{
	struct pe_exports fresh = {0};
	struct pe_reader reader = {.source = source, .image = image, .symbols = &fresh};
	int rc = 0;

	arena_init(&fresh.arena);
	if (image->coff_symbols && !source->in_memory) {
		if (image->coff_symbols > ENTRIES_MAX)
			return -ERR_TARGET;
		rc = read_texts(&reader);
		if (!rc)
			rc = read_entries(&reader);
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
