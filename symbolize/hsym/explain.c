/*
 * The table of hsym --explain: for each module, the number of addresses with names, the sources of
 * the names, the files, and the reasons for missing names.
 */
#include "symbolize/hsym/hsym.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"

/* maximum width of the columns for modules and sources; a longer text shifts the rest of its row */
#define NAME_COLUMNS 32

struct explained {
	struct addnames_module of_module;
	struct symbol_status story;
	char *name;
	const char *by;
};

/* Orders modules by number of addresses without names, largest first, then by name. No two modules
 * compare equal. */
static int by_lack(const void *a, const void *b)
{
	const struct explained *left = a, *right = b;
	const struct addnames_module *x = &left->of_module, *y = &right->of_module;
	size_t x_lack = x->seen - x->named, y_lack = y->seen - y->named;
	int order = x_lack != y_lack ? (x_lack > y_lack ? -1 : 1) : strcmp(left->name, right->name);

	if (order || !x->module || !y->module)
		return order ? order : !x->module - !y->module;
	return x->module->base < y->module->base ? -1 : x->module->base > y->module->base;
}

static char *join(struct arena *arena, const char *a, const char *b)
{
	struct buf text;
	char *copy;

	buf_init(&text);
	buf_printf(&text, "%s%s", a, b);
	copy = arena_text(arena, text.data, text.len);
	buf_release(&text);
	return copy;
}

static void fill_row(const struct addnames *work, struct explained *row, struct arena *arena)
{
	const struct module *module = row->of_module.module;
	size_t carried = row->of_module.carried;

	row->by = carried ? "the dump" : "-";
	if (!module) {
		row->name = join(arena, "(outside all modules)", "");
		return;
	}
	row->name = text_harmless(join(
		arena, module_path_base(module->path), module->unloaded_at ? " (unloaded)" : ""));
	symbolizer_explain(work->symbolizer, module, &row->story);
	if (row->of_module.named > carried && row->story.by[0])
		row->by = join(arena, row->story.by, carried ? ", the dump" : "");
}

/* ---------------------------------------------------------------- writing */

static void widen(size_t *width, const char *text)
{
	size_t columns = text_columns(text);

	if (columns > *width)
		*width = columns < NAME_COLUMNS ? columns : NAME_COLUMNS;
}

static void write_padded(struct out *out, const char *text, size_t width)
{
	out_text(out, text);
	for (size_t columns = text_columns(text); columns < width; columns++)
		out_char(out, ' ');
}

/* Writes the reason for missing names, or a default reason if the look-up returned none. */
static void write_reason(const struct addnames *work, struct out *out, const struct explained *row)
{
	const struct symbol_status *story = &row->story;
	const struct module *module = row->of_module.module;
	bool has_reason = story->reason && story->reason[0];

	if (!has_reason && row->of_module.named == row->of_module.seen)
		return;
	out_text(out, "    ");
	if (has_reason) {
		out_harmless(out, story->reason);
	} else if (!module) {
		out_text(out, work->modules.count ? "the dump lists no module at these addresses" :
						    "the dump lists no modules");
	} else if (!story->image && !story->debug) {
		out_text(out, "no file ");
		out_harmless(out, module->path);
		out_text(out, " here");
	} else {
		out_text(out, "the symbols that were found do not cover the other addresses");
	}
	out_char(out, '\n');
}

void explain_write(const struct addnames *work, struct out *out)
{
	struct addnames_module *modules;
	size_t count = addnames_modules(work, &modules), named = 0, module_count = 0;
	struct explained *rows = xcalloc(count, sizeof(*rows));
	size_t name_width = strlen("module"), by_width = strlen("by");
	struct arena arena;

	arena_init(&arena);
	for (size_t i = 0; i < count; i++) {
		rows[i].of_module = modules[i];
		fill_row(work, &rows[i], &arena);
		widen(&name_width, rows[i].name);
		widen(&by_width, rows[i].by);
		named += modules[i].named;
		module_count += modules[i].module != NULL;
	}
	qsort(rows, count, sizeof(*rows), by_lack);
	write_padded(out, "module", name_width);
	out_printf(out, " %8s %8s  ", "seen", "named");
	write_padded(out, "by", by_width);
	out_text(out, "  file\n");
	for (size_t i = 0; i < count; i++) {
		const struct explained *row = &rows[i];

		write_padded(out, row->name, name_width);
		out_printf(out, " %8zu %8zu  ", row->of_module.seen, row->of_module.named);
		write_padded(out, row->by, by_width);
		out_text(out, "  ");
		out_harmless(out, row->story.image ? row->story.image : "-");
		out_char(out, '\n');
		if (row->story.debug) {
			out_text(out, "    PDB: ");
			out_harmless(out, row->story.debug);
			out_char(out, '\n');
		}
		write_reason(work, out, row);
	}
	write_padded(out, "total", name_width);
	out_printf(out, " %8zu %8zu  in %zu module%s\n", work->count, named, module_count,
		text_plural(module_count));
	if (addnames_lacks_builds(work))
		out_text(out, LACKS_BUILDS "\n");
	arena_release(&arena);
	free(modules);
	free(rows);
}
