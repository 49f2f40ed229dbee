#include "core/pe.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"

/* All numbers and places below are those of Microsoft's "PE Format" page. */
enum {
	EXPORTS_BYTES = 40,
	EXPORTS_MAX = 65536, /* ordinals have 16 bits */
	NAME_MAX_BYTES = 4096,
	NAMES_MAX_BYTES = 32 << 20, /* of one table; more is nonsense: many names at one place */
};

/* The three arrays of an export table, as they stand in the image. */
struct export_table {
	unsigned char *functions, *names, *ordinals;
	uint32_t function_count, name_count, first_ordinal;
};

static int read_array(const struct pe_source *source, const struct pe_image *image, uint32_t rva,
	size_t bytes, unsigned char **array)
{
	int rc;

	if (bytes > pe_left_at(image, rva))
		return -ERR_TARGET;
	*array = malloc(bytes + 1);
	if (!*array)
		return -ERR_NOMEM;
	rc = pe_read(source, image, rva, *array, bytes);
	if (rc) {
		free(*array);
		*array = NULL;
	}
	return rc;
}

static void table_free(struct export_table *table)
{
	free(table->functions);
	free(table->names);
	free(table->ordinals);
}

static int read_table(
	const struct pe_source *source, const struct pe_image *image, struct export_table *table)
{
	unsigned char head[EXPORTS_BYTES];
	int rc;

	*table = (struct export_table){0};
	if (!image->exports.rva)
		return 0;
	rc = pe_read(source, image, image->exports.rva, head, sizeof(head));
	if (rc)
		return rc;
	table->first_ordinal = pe_u32(head + 16);
	table->function_count = pe_u32(head + 20);
	table->name_count = pe_u32(head + 24);
	if (table->function_count > EXPORTS_MAX || table->name_count > EXPORTS_MAX)
		return -ERR_TARGET;
	if (table->function_count)
		rc = read_array(source, image, pe_u32(head + 28), table->function_count * (size_t)4,
			&table->functions);
	if (!rc && table->name_count)
		rc = read_array(source, image, pe_u32(head + 32), table->name_count * (size_t)4,
			&table->names);
	if (!rc && table->name_count)
		rc = read_array(source, image, pe_u32(head + 36), table->name_count * (size_t)2,
			&table->ordinals);
	if (rc)
		table_free(table);
	return rc;
}

/* The rva of one export, 0 when it is none: a hole, or a text "DLL.Name" for another to fulfil. */
static uint32_t function_rva(
	const struct pe_image *image, const struct export_table *table, uint32_t index)
{
	uint32_t rva =
		index < table->function_count ? pe_u32(table->functions + index * (size_t)4) : 0;

	if (rva >= image->exports.rva && rva - image->exports.rva < image->exports.size_bytes)
		return 0;
	return pe_section_at(image, rva) ? rva : 0;
}

static int add_export(struct pe_exports *exports, uint32_t rva, uint32_t ordinal, const char *name)
{
	const char *copy;

	if (exports->arena.used_bytes > NAMES_MAX_BYTES)
		return -ERR_TARGET;
	copy = arena_text(&exports->arena, name, strlen(name));
	if (!copy)
		return -ERR_NOMEM;
	exports->list[exports->count++] =
		(struct pe_export){.rva = rva, .ordinal = ordinal, .name = copy};
	return 0;
}

static int add_named(const struct pe_source *source, const struct pe_image *image,
	const struct export_table *table, struct pe_exports *exports, unsigned char *is_named)
{
	char name[NAME_MAX_BYTES];
	int rc = 0;

	for (uint32_t i = 0; !rc && i < table->name_count; i++) {
		uint32_t index = pe_u16(table->ordinals + i * (size_t)2);
		uint32_t rva = function_rva(image, table, index);

		if (!rva)
			continue;
		rc = pe_read_text(
			source, image, pe_u32(table->names + i * (size_t)4), name, sizeof(name));
		if (!rc)
			rc = add_export(exports, rva, table->first_ordinal + index, name);
		is_named[index] = 1;
	}
	return rc;
}

static int add_nameless(const struct pe_image *image, const struct export_table *table,
	struct pe_exports *exports, const unsigned char *is_named)
{
	char name[32];
	int rc = 0;

	for (uint32_t i = 0; !rc && i < table->function_count; i++) {
		uint32_t rva = function_rva(image, table, i);

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
	unsigned char *is_named = NULL;
	int rc = read_table(source, image, &table);

	if (rc)
		return rc;
	arena_init(&fresh.arena);
	is_named = calloc(table.function_count + (size_t)1, 1);
	fresh.list =
		malloc((table.function_count + (size_t)table.name_count + 1) * sizeof(*fresh.list));
	rc = is_named && fresh.list ? 0 : -ERR_NOMEM;
	if (!rc)
		rc = add_named(source, image, &table, &fresh, is_named);
	if (!rc)
		rc = add_nameless(image, &table, &fresh, is_named);
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

int pe_find_export(const struct pe_source *source, const struct pe_image *image, const char *name,
	uint32_t *rva)
{
	struct export_table table;
	char text[NAME_MAX_BYTES];
	int rc = read_table(source, image, &table);

	if (rc)
		return rc;
	rc = -ERR_SYMBOLS;
	for (uint32_t i = 0; rc == -ERR_SYMBOLS && i < table.name_count; i++) {
		uint32_t found =
			function_rva(image, &table, pe_u16(table.ordinals + i * (size_t)2));
		int bad = pe_read_text(
			source, image, pe_u32(table.names + i * (size_t)4), text, sizeof(text));

		if (bad) {
			rc = bad;
		} else if (found && !strcmp(text, name)) {
			*rva = found;
			rc = 0;
		}
	}
	table_free(&table);
	return rc;
}
