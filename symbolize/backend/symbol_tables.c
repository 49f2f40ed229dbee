/*
 * A module's own symbol tables (backend.h). Four lists of names are sorted by address: image
 * symbols, private and public symbols of the PDB, and exports. The image's table of functions
 * determines where functions begin and end. Without that table, only lists that are complete enough
 * can determine this.
 */
#include "symbolize/backend/backend.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "symbolize/files/pdb.h"
#include "symbolize/names.h"

/* Sources, in order of trust: an export may be a name that only other programs use. */
enum { SYMBOLS, PRIVATES, PUBLICS, EXPORTS, TABLES };
enum { NAMES_LOOKED_AT = 100 };

/* Cache of parts of the image file, because each search reads the table of functions many times, a
 * few bytes at a time. */
#define WINDOW_BYTES ((size_t)16 << 10)
#define WINDOWS 64

struct table_window {
	uint64_t at; /* file offset, a multiple of WINDOW_BYTES */
	size_t len;
	unsigned char *bytes; /* the cached bytes, or NULL */
};

static const char *const table_names[TABLES] = {"symbols", "private symbols", "publics", "exports"};

struct tables {
	const struct module_files *files;
	bool no_demangle;
	bool is_open, is_read;
	struct os_file file; /* the image file */
	uint64_t file_bytes;
	struct table_window windows[WINDOWS];
	struct pe_exports lists[TABLES];
	/* the image's headers as recorded in the PDB, used if the image is missing */
	struct pe_image *pdb_image;
	struct pdb_parts privates; /* ranges of the PDB's private functions */
	struct pdb_parts pdb_parts; /* ranges of functions compiled into separate sections */
	bool is_pdb_image_read, are_parts_read;
};

static int read_file(void *ctx, uint64_t offset, void *bytes, size_t len)
{
	struct tables *tables = ctx;
	size_t from = offset % WINDOW_BYTES;
	uint64_t at = offset - from, left = tables->file_bytes > at ? tables->file_bytes - at : 0;
	struct table_window *window = &tables->windows[at / WINDOW_BYTES % WINDOWS];

	if (len <= WINDOW_BYTES - from && (!window->len || window->at != at)) {
		if (!window->bytes)
			window->bytes = xmalloc(WINDOW_BYTES);
		window->at = at;
		window->len = left < WINDOW_BYTES ? (size_t)left : WINDOW_BYTES;
		if (os_read_at(&tables->file, at, window->bytes, window->len))
			window->len = 0;
	}
	if (window->at != at || len > window->len || from > window->len - len)
		return os_read_at(&tables->file, offset, bytes, len);
	memcpy(bytes, window->bytes + from, len);
	return 0;
}

static struct pe_source file_source(struct tables *tables)
{
	return (struct pe_source){.read = read_file, .ctx = tables};
}

struct tables *tables_new(const struct module_files *files, bool no_demangle)
{
	struct tables *tables = xcalloc(1, sizeof(*tables));

	tables->files = files;
	tables->no_demangle = no_demangle;
	return tables;
}

void tables_rest(struct tables *tables)
{
	if (tables->is_open)
		os_close(&tables->file);
	tables->is_open = false;
	for (size_t i = 0; i < WINDOWS; i++) { /* the next file to be opened may be another file */
		free(tables->windows[i].bytes);
		tables->windows[i] = (struct table_window){0};
	}
}

void tables_free(struct tables *tables)
{
	if (!tables)
		return;
	tables_rest(tables);
	for (size_t i = 0; i < TABLES; i++)
		pe_exports_release(&tables->lists[i]);
	free(tables->privates.list);
	free(tables->pdb_parts.list);
	free(tables->pdb_image);
	free(tables);
}

/* Returns the image's headers if the image can be read now, otherwise the headers in the PDB.
 * Returns NULL if neither is available. */
static const struct pe_image *image_of(struct tables *tables)
{
	if (tables->files->image) {
		if (!tables->is_open) {
			tables->is_open = !os_open(&tables->file, tables->files->image, NULL);
			tables->file_bytes = tables->is_open ? os_size(&tables->file) : 0;
		}
		return tables->is_open ? tables->files->pe : NULL;
	}
	if (tables->files->pdb && !tables->is_pdb_image_read) {
		tables->is_pdb_image_read = true;
		tables->pdb_image = xcalloc(1, sizeof(*tables->pdb_image));
		if (pdb_read_sections(tables->files->pdb, tables->pdb_image, NULL)) {
			free(tables->pdb_image);
			tables->pdb_image = NULL;
		}
	}
	return tables->pdb_image;
}

static void read_lists(struct tables *tables)
{
	struct pe_source source = file_source(tables);
	struct pe_exports *lists = tables->lists;

	if (tables->is_read)
		return;
	tables->is_read = true;
	if (tables->is_open && pe_symbols_read(&source, tables->files->pe, &lists[SYMBOLS]))
		lists[SYMBOLS] = (struct pe_exports){0};
	if (tables->is_open && pe_exports_read(&source, tables->files->pe, &lists[EXPORTS]))
		lists[EXPORTS] = (struct pe_exports){0};
	if (tables->files->pdb && pdb_read_functions(tables->files->pdb, &lists[PUBLICS], NULL))
		lists[PUBLICS] = (struct pe_exports){0};
	if (tables->files->pdb && pdb_read_private_functions(tables->files->pdb, &lists[PRIVATES],
					  &tables->privates, NULL)) {
		lists[PRIVATES] = (struct pe_exports){0};
		tables->privates = (struct pdb_parts){0};
	}
}

/* Returns the number of `list` items that begin below rva. Each item starts with its rva, and the
 * list must be sorted by rva. */
static size_t count_below(const void *list, size_t count, size_t item_bytes, uint64_t rva)
{
	size_t low = 0;

	while (count) {
		size_t half = count / 2;
		uint32_t at;

		memcpy(&at, (const char *)list + (low + half) * item_bytes, sizeof(at));
		if (at < rva) {
			low += half + 1;
			count -= half + 1;
		} else {
			count = half;
		}
	}
	return low;
}

static size_t exports_below(const struct pe_exports *table, uint64_t rva)
{
	return count_below(table->list, table->count, sizeof(*table->list), rva);
}

/* Returns the range that contains rva, or NULL. */
static const struct pe_range *range_at(const struct pdb_parts *ranges, uint32_t rva)
{
	size_t count =
		count_below(ranges->list, ranges->count, sizeof(*ranges->list), (uint64_t)rva + 1);
	const struct pe_range *last = count ? &ranges->list[count - 1] : NULL;

	return last && rva - last->rva < last->size_bytes ? last : NULL;
}

/* Returns the range of the PDB's private function that covers rva, or NULL. */
static const struct pe_range *private_at(struct tables *tables, uint32_t rva)
{
	read_lists(tables);
	return range_at(&tables->privates, rva);
}

/* Returns the last symbol at or below rva. If several symbols have that address, returns the first
 * by name. */
static const struct pe_export *last_below(const struct pe_exports *table, uint32_t rva)
{
	size_t count = exports_below(table, (uint64_t)rva + 1);

	if (!table->list || !count)
		return NULL;
	return &table->list[exports_below(table, table->list[count - 1].rva)];
}

/* Returns the last symbol at or below rva in any table, or NULL. */
static const struct pe_export *nearest(struct tables *tables, uint32_t rva, const char **by)
{
	const struct pe_export *found = NULL;

	read_lists(tables);
	for (size_t i = 0; i < TABLES; i++) {
		const struct pe_export *function = last_below(&tables->lists[i], rva);

		if (function && (!found || function->rva > found->rva)) {
			found = function;
			*by = table_names[i];
		}
	}
	return found;
}

/* Like pe_function_start(), but an unreadable table counts as missing. */
static int function_start(
	struct tables *tables, const struct pe_image *image, uint32_t rva, uint32_t *start)
{
	struct pe_source source = file_source(tables);

	return pe_function_start(&source, image, rva, start);
}

/* Returns true if both `start` and rva are in one function that was compiled into its own section,
 * so no other function lies between them. Otherwise an unnamed function may lie between them,
 * because PDB publics and exports omit functions that are not public. */
static bool is_own_part(struct tables *tables, uint32_t start, uint32_t rva)
{
	const struct pe_range *part;

	if (!tables->are_parts_read && tables->files->pdb &&
		pdb_read_parts(tables->files->pdb, &tables->pdb_parts, NULL))
		tables->pdb_parts = (struct pdb_parts){0};
	tables->are_parts_read = true;
	part = range_at(&tables->pdb_parts, rva);
	return part && start >= part->rva;
}

/* Returns true if the image's symbols contain a function at `start`. Unlike the other lists, the
 * image's symbols include functions that are not public. */
static bool is_symbol(struct tables *tables, uint32_t start)
{
	const struct pe_export *function;

	read_lists(tables);
	function = last_below(&tables->lists[SYMBOLS], start);
	return function && function->rva == start;
}

/* Returns true if the table of functions has `start` and rva in the same function. A part of that
 * function may have been moved away. If the table has no entry for rva (a function without a
 * frame), no function may begin between `start` and rva. Without a table, all function starts must
 * be known. */
static bool is_one_function(
	struct tables *tables, const struct pe_image *image, uint32_t start, uint32_t rva)
{
	const struct pe_range *own = private_at(tables, rva);
	uint32_t function, other;
	const struct pe_export *last;
	const char *by;
	int rc = own ? 0 : function_start(tables, image, rva, &function);

	if (own)
		return start >= own->rva;
	if (rc == 1)
		return function_start(tables, image, start, &other) == 1 && other == function;
	if (rc == 0 && start < function)
		return false;
	if (rc < 0 && start != rva && !is_symbol(tables, start) && !is_own_part(tables, start, rva))
		return false;
	last = nearest(tables, rva, &by);
	return !last || last->rva <= start;
}

bool tables_reach(struct tables *tables, uint32_t start, uint32_t rva)
{
	const struct pe_image *image = image_of(tables);
	const struct pe_section *section = image ? pe_section_at(image, rva) : NULL;

	return section && start <= rva && start >= section->rva &&
	       is_one_function(tables, image, start, rva);
}

bool tables_deny(struct tables *tables, uint32_t start, uint32_t rva)
{
	const struct pe_image *image = image_of(tables);
	const struct pe_range *own = image ? private_at(tables, rva) : NULL;
	uint32_t function, other;

	if (own)
		return start < own->rva || start > rva;
	return image && function_start(tables, image, rva, &function) == 1 &&
	       (function_start(tables, image, start, &other) != 1 || other != function);
}

/* Returns the symbol of the function that covers rva, or NULL. */
static const struct pe_export *find_function(struct tables *tables, uint32_t rva, const char **by)
{
	const struct pe_image *image = image_of(tables);
	const struct pe_range *own = image ? private_at(tables, rva) : NULL;
	const struct pe_export *function = image ? nearest(tables, own ? own->rva : rva, by) : NULL;
	uint32_t start;

	if (!function || tables_reach(tables, function->rva, rva))
		return function;
	if (function_start(tables, image, rva, &start) != 1)
		return NULL;
	/* rva is in a part that was moved away from its function */
	function = nearest(tables, start, by);
	return function && function->rva == start ? function : NULL;
}

uint64_t tables_offset(struct tables *tables, uint32_t rva, bool *is_sure)
{
	const struct pe_image *image = image_of(tables);
	const struct pe_range *own = image ? private_at(tables, rva) : NULL;
	const struct pe_export *function;
	const char *by;
	uint32_t start;

	*is_sure = own != NULL;
	if (own)
		return (uint64_t)rva + 1 - own->rva;
	*is_sure = image && function_start(tables, image, rva, &start) == 1;
	if (*is_sure)
		return start <= rva ? (uint64_t)rva + 1 - start : 0;
	function = find_function(tables, rva, &by);
	return function ? (uint64_t)rva + 1 - function->rva : 0;
}

/* Ranks a name; the best name has the highest rank. Without `other_name`, the order is: mangled
 * names, except those of Microsoft's compiler; names from image symbols and private symbols; names
 * from publics and exports; names decorated by Microsoft's compiler. With `no_demangle`, names of
 * Microsoft's compiler rank as the other mangled names do.
 *
 * A match with `other_name` counts more than this order. For a PDB it counts less, because a
 * backend may mix up public names. */
static int rank(const struct tables *tables, int table, const char *raw, int same)
{
	int kind = table == SYMBOLS || table == PRIVATES ? 2 : 1;

	if (is_mangled(raw))
		kind = raw[0] == '?' && !tables->no_demangle ? 0 : 3;
	return 1 + (tables->files->pdb ? kind * 4 + same : same * 4 + kind);
}

int tables_name_at(
	struct tables *tables, uint32_t rva, const char *other_name, struct table_name *name)
{
	int best = 0;

	if (image_of(tables))
		read_lists(tables);
	for (int table = 0; table < TABLES; table++) {
		const struct pe_exports *list = &tables->lists[table];
		size_t from = exports_below(list, rva),
		       end = exports_below(list, (uint64_t)rva + 1);

		for (size_t i = from; list->list && i < end && i - from < NAMES_LOOKED_AT; i++) {
			const char *raw = list->list[i].name;
			int same = other_name ? is_name_of(raw, other_name) : 0;
			int fits = rank(tables, table, raw, same);

			if (fits <= best)
				continue;
			best = fits;
			*name = (struct table_name){.raw = raw,
				.table = table_names[table],
				.is_for_others = table == EXPORTS,
				.is_said = same > 0};
		}
	}
	return best > 0;
}

const char *tables_shown(struct tables *tables, const char *raw, struct arena *arena)
{
	const char *copy;
	struct buf text;

	buf_init(&text);
	if (tables->no_demangle || demangle_name(raw, &text) != 1)
		buf_add_text(&text, raw);
	copy = arena_text(arena, text.data, text.len);
	buf_release(&text);
	return copy;
}

int tables_find(struct tables *tables, uint32_t rva, const char *other_name, struct arena *arena,
	struct symbol *symbol, const char **by)
{
	const char *table = "";
	const struct pe_export *function = find_function(tables, rva, &table);
	struct table_name best;

	if (!function || !tables_name_at(tables, function->rva, other_name, &best))
		return 0;
	*symbol = (struct symbol){.function = tables_shown(tables, best.raw, arena),
		.offset_bytes = function->rva <= rva ? (uint64_t)rva + 1 - function->rva : 0};
	*by = best.table;
	return 1;
}
