#include "symbolize/tables/symbol_tables.h"

#include <stdlib.h>
#include <string.h>

#include "core/os.h"
#include "symbolize/keep.h"

struct tables {
	const struct module_files *files;
	bool no_demangle;
	bool is_open, is_read;
	struct os_file file;
	struct pe_exports symbols, exports;
};

static int read_file(void *ctx, uint64_t offset, void *bytes, size_t len)
{
	return os_read_at(ctx, offset, bytes, len);
}

static struct pe_source file_source(const struct tables *tables)
{
	return (struct pe_source){.read = read_file, .ctx = (void *)&tables->file};
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
}

void tables_free(struct tables *tables)
{
	if (!tables)
		return;
	tables_rest(tables);
	pe_exports_release(&tables->symbols);
	pe_exports_release(&tables->exports);
	free(tables);
}

static bool is_ready(struct tables *tables)
{
	if (!tables->is_open && tables->files->image)
		tables->is_open = !os_open(&tables->file, tables->files->image, NULL);
	return tables->is_open;
}

bool tables_reach(struct tables *tables, uint32_t start, uint32_t rva)
{
	struct pe_source source = file_source(tables);
	const struct pe_section *section;
	uint32_t function;

	if (!is_ready(tables))
		return false;
	section = pe_section_at(tables->files->pe, rva);
	if (!section || start > rva || start < section->rva)
		return false;
	if (pe_function_start(&source, tables->files->pe, rva, &function) < 0)
		return true; /* no table says more */
	return start >= function;
}

uint64_t tables_offset(struct tables *tables, uint32_t rva)
{
	struct pe_source source = file_source(tables);
	uint32_t start;

	if (!is_ready(tables) || pe_function_start(&source, tables->files->pe, rva, &start) != 1)
		return 0;
	return (uint64_t)rva + 1 - start;
}

/* The last that begins at or below rva, of several for one place the first by name. */
static const struct pe_export *last_below(const struct pe_exports *table, uint32_t rva)
{
	size_t low = 0, count = table->count;

	while (count) { /* the first that begins above rva */
		size_t half = count / 2;

		if (table->list[low + half].rva <= rva) {
			low += half + 1;
			count -= half + 1;
		} else {
			count = half;
		}
	}
	while (low > 1 && table->list[low - 2].rva == table->list[low - 1].rva)
		low--;
	return low ? &table->list[low - 1] : NULL;
}

static void read_tables(struct tables *tables)
{
	struct pe_source source = file_source(tables);

	tables->is_read = true;
	if (pe_symbols_read(&source, tables->files->pe, &tables->symbols))
		tables->symbols = (struct pe_exports){0};
	if (pe_exports_read(&source, tables->files->pe, &tables->exports))
		tables->exports = (struct pe_exports){0};
}

int tables_find(struct tables *tables, uint32_t rva, struct arena *arena, struct symbol *symbol,
	const char **by)
{
	const struct pe_export *function;

	(void)arena;
	if (!is_ready(tables))
		return 0;
	if (!tables->is_read)
		read_tables(tables);
	*by = "symbols";
	function = last_below(&tables->symbols, rva);
	if (!function || !tables_reach(tables, function->rva, rva)) {
		*by = "exports";
		function = last_below(&tables->exports, rva);
	}
	if (!function || !tables_reach(tables, function->rva, rva))
		return 0;
	*symbol = (struct symbol){
		.function = function->name, .offset_bytes = (uint64_t)rva + 1 - function->rva};
	return 1;
}

const char *tables_name_at(struct tables *tables, uint32_t rva)
{
	(void)tables;
	(void)rva;
	return NULL;
}
