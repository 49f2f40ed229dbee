#include "symbolize/backend/backend.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "symbolize/files/pdb.h"
#include "symbolize/names.h"

/* In the order in which they are believed: exports may be names for others' use. */
enum { SYMBOLS, PRIVATES, PUBLICS, EXPORTS, TABLES };
enum { NAMES_LOOKED_AT = 100 };

/* The table of functions is searched again and again, a few bytes here and there: so much of the file is
 * kept for that while it is open. */
#define WINDOW_BYTES ((size_t)16 << 10)
#define WINDOWS 64

struct table_window {
	uint64_t at; /* in the file, a multiple of WINDOW_BYTES */
	size_t len;
	unsigned char *bytes; /* NULL: there are none */
};

static const char *const table_names[TABLES] = {"symbols", "private symbols", "publics", "exports"};

struct tables {
	const struct module_files *files;
	bool no_demangle;
	bool is_open, is_read;
	struct os_file file; /* the image */
	uint64_t file_bytes;
	struct table_window windows[WINDOWS];
	struct pe_exports lists[TABLES];
	struct pe_image *pdb_image; /* what the PDB says of it, when the image is not here */
	struct pdb_parts privates; /* where the PDB's private functions are */
	struct pdb_parts pdb_parts; /* functions that were compiled by themselves */
	bool is_pdb_image_read, are_parts_read;
};

/* The window that offset lies in; NULL: it cannot be had. */
static const struct table_window *window_at(struct tables *tables, uint64_t offset)
{
	uint64_t at = offset - offset % WINDOW_BYTES;
	struct table_window *window = &tables->windows[at / WINDOW_BYTES % WINDOWS];

	if (window->bytes && window->at == at && window->len)
		return window;
	if (at >= tables->file_bytes)
		return NULL;
	if (!window->bytes)
		window->bytes = malloc(WINDOW_BYTES);
	window->at = at;
	window->len = tables->file_bytes - at < WINDOW_BYTES ? (size_t)(tables->file_bytes - at) :
							       WINDOW_BYTES;
	if (window->bytes && !os_read_at(&tables->file, at, window->bytes, window->len))
		return window;
	window->len = 0;
	return NULL;
}

static int read_file(void *ctx, uint64_t offset, void *bytes, size_t len)
{
	struct tables *tables = ctx;
	size_t from = offset % WINDOW_BYTES;
	const struct table_window *window =
		len <= WINDOW_BYTES - from ? window_at(tables, offset) : NULL;

	if (!window || len > window->len || from > window->len - len)
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
	struct tables *tables = calloc(1, sizeof(*tables));

	if (tables) {
		tables->files = files;
		tables->no_demangle = no_demangle;
	}
	return tables;
}

void tables_rest(struct tables *tables)
{
	if (tables->is_open)
		os_close(&tables->file);
	tables->is_open = false;
	for (size_t i = 0; i < WINDOWS; i++) { /* another time it may be another file */
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

static void read_pdb_image(struct tables *tables)
{
	tables->is_pdb_image_read = true;
	tables->pdb_image = calloc(1, sizeof(*tables->pdb_image));
	if (tables->pdb_image && pdb_read_sections(tables->files->pdb, tables->pdb_image, NULL)) {
		free(tables->pdb_image);
		tables->pdb_image = NULL;
	}
}

/* The image's headers, when it can be read now, or else what its PDB has of them. NULL: neither is
 * here. */
static const struct pe_image *image_of(struct tables *tables)
{
	if (tables->files->image) {
		if (!tables->is_open) {
			tables->is_open = !os_open(&tables->file, tables->files->image, NULL);
			tables->file_bytes = tables->is_open ? os_size(&tables->file) : 0;
		}
		return tables->is_open ? tables->files->pe : NULL;
	}
	if (tables->files->pdb && !tables->is_pdb_image_read)
		read_pdb_image(tables);
	return tables->pdb_image;
}

static void read_lists(struct tables *tables)
{
	struct pe_source source = file_source(tables);
	struct pe_exports *lists = tables->lists;

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

/* The last of the ranges that begins at or below rva, if it reaches there. */
static const struct pe_range *range_at(const struct pdb_parts *ranges, uint32_t rva)
{
	size_t low = 0, count = ranges->list ? ranges->count : 0;

	while (count) { /* how many begin at or below rva */
		size_t half = count / 2;

		if (ranges->list[low + half].rva <= rva) {
			low += half + 1;
			count -= half + 1;
		} else {
			count = half;
		}
	}
	return low && rva - ranges->list[low - 1].rva < ranges->list[low - 1].size_bytes ?
		       &ranges->list[low - 1] :
		       NULL;
}

/* The function of the PDB's private symbols that covers rva, or NULL. */
static const struct pe_range *private_at(struct tables *tables, uint32_t rva)
{
	if (!tables->is_read)
		read_lists(tables);
	return range_at(&tables->privates, rva);
}

/* How many of the table begin below rva. */
static size_t count_below(const struct pe_exports *table, uint64_t rva)
{
	size_t low = 0, count = table->count;

	while (count) {
		size_t half = count / 2;

		if (table->list[low + half].rva < rva) {
			low += half + 1;
			count -= half + 1;
		} else {
			count = half;
		}
	}
	return low;
}

/* The last that begins at or below rva, of several for one place the first by name. */
static const struct pe_export *last_below(const struct pe_exports *table, uint32_t rva)
{
	size_t count = count_below(table, (uint64_t)rva + 1);

	return count && table->list ? &table->list[count_below(table, table->list[count - 1].rva)] :
				      NULL;
}

/* The last symbol at or below rva in any of the module's tables; NULL: there is none. */
static const struct pe_export *nearest(struct tables *tables, uint32_t rva, const char **by)
{
	const struct pe_export *found = NULL;

	if (!tables->is_read)
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

/* As pe_function_start(). What cannot be read is as no table. */
static int function_start(
	struct tables *tables, const struct pe_image *image, uint32_t rva, uint32_t *start)
{
	struct pe_source source = file_source(tables);

	return pe_function_start(&source, image, rva, start);
}

static void read_parts(struct tables *tables)
{
	tables->are_parts_read = true;
	if (tables->files->pdb && pdb_read_parts(tables->files->pdb, &tables->pdb_parts, NULL))
		tables->pdb_parts = (struct pdb_parts){0};
}

/* Functions that are not public have no name in a PDB's tables or among exports, and any may lie between.
 * Not where a function was compiled by itself. */
static bool is_own_part(struct tables *tables, uint32_t start, uint32_t rva)
{
	const struct pe_range *part;

	if (!tables->are_parts_read)
		read_parts(tables);
	part = range_at(&tables->pdb_parts, rva);
	return part && start >= part->rva;
}

/* Whether the symbols of an image, which has those of functions that are not public too, have one that
 * begins there. */
static bool is_symbol(struct tables *tables, uint32_t start)
{
	const struct pe_export *function;

	if (!tables->is_read)
		read_lists(tables);
	function = last_below(&tables->lists[SYMBOLS], start);
	return function && function->rva == start;
}

/* The same function, by the table of them, also when a part of it was moved away. Where that has
 * nothing, one without a frame of its own, no function may begin between; and where there is no such table,
 * it must be known of all functions where they begin. */
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

/* The name of what covers rva, or NULL. */
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
	function = nearest(tables, start, by); /* rva is in a part that was moved away from it */
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

/* How well a name fits: names that can be read best, with parameters or without, and those of the tables that
 * are more than names for others' use. said is the better clue, but for a PDB, of whose public names a backend
 * may say any. */
static int rank(const struct tables *tables, int table, const char *raw, int same)
{
	int kind = table == SYMBOLS || table == PRIVATES ? 2 : 1;

	if (is_mangled(raw))
		kind = raw[0] == '?' && !tables->no_demangle ? 0 : 3;
	return 1 + (tables->files->pdb ? kind * 4 + same : same * 4 + kind);
}

int tables_name_at(struct tables *tables, uint32_t rva, const char *said, struct table_name *name)
{
	int best = 0;

	if (image_of(tables) && !tables->is_read)
		read_lists(tables);
	for (int table = 0; table < TABLES; table++) {
		const struct pe_exports *list = &tables->lists[table];
		size_t from = count_below(list, rva), end = count_below(list, (uint64_t)rva + 1);

		for (size_t i = from; list->list && i < end && i - from < NAMES_LOOKED_AT; i++) {
			const char *raw = list->list[i].name;
			int same = said ? is_name_of(raw, said) : 0;
			int fits = same < 0 ? same : rank(tables, table, raw, same);

			if (fits < 0)
				return fits;
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
	const char *kept = NULL;
	struct buf text;
	int rc;

	buf_init(&text);
	rc = tables->no_demangle ? 0 : demangle_name(raw, &text);
	if (rc == 1)
		kept = arena_text(arena, text.data, text.len);
	else if (!rc)
		kept = arena_text(arena, raw, strlen(raw));
	buf_release(&text);
	return kept;
}

int tables_find(struct tables *tables, uint32_t rva, const char *said, struct arena *arena,
	struct symbol *symbol, const char **by)
{
	const char *table = "";
	const struct pe_export *function = find_function(tables, rva, &table);
	struct table_name best;
	const char *name;
	int rc = function ? tables_name_at(tables, function->rva, said, &best) : 0;

	if (rc != 1)
		return rc;
	name = tables_shown(tables, best.raw, arena);
	if (!name)
		return -ERR_NOMEM;
	*symbol = (struct symbol){.function = name,
		.offset_bytes = function->rva <= rva ? (uint64_t)rva + 1 - function->rva : 0};
	*by = best.table;
	return 1;
}
