#include "symbolize/hsym/hsym.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/text.h"

#define NAME_COLUMNS 32 /* of modules and of who knew, at most; longer ones push the rest aside */
#define OUTSIDE "(outside all modules)"

struct explained {
	const struct module *module; /* NULL: in none */
	size_t seen, named, carried; /* addresses; carried: of the named, by the dump itself */
	struct symbol_status story;
	struct buf name, by;
};

struct module_table {
	struct explained *rows;
	size_t count;
};

static void modules_release(struct module_table *table)
{
	for (size_t i = 0; i < table->count; i++) {
		buf_release(&table->rows[i].name);
		buf_release(&table->rows[i].by);
	}
	free(table->rows);
}

/* A row for each module, in their order, and the last one for what lies in none. */
static void count_addresses(const struct addnames *work, struct module_table *table)
{
	table->count = work->modules.count + 1;
	for (size_t i = 0; i < work->modules.count; i++)
		table->rows[i].module = &work->modules.items[i];
	for (size_t i = 0; i < work->count; i++) {
		const struct symbol_query *query = &work->queries[i];
		size_t number = query->module ? (size_t)(query->module - work->modules.items) :
						work->modules.count;
		struct explained *row = &table->rows[number];

		row->seen++;
		row->named += query->found.count > 0;
		row->carried += symbol_names_find(work->names, query->addr).count > 0;
	}
}

/* Keeps the rows of modules that addresses lie in. */
static void drop_unseen(struct module_table *table)
{
	size_t kept = 0;

	for (size_t i = 0; i < table->count; i++) {
		if (table->rows[i].seen)
			table->rows[kept++] = table->rows[i];
	}
	table->count = kept;
}

static int make_name(struct explained *row)
{
	int rc = buf_add_text(
		&row->name, row->module ? module_path_base(row->module->path) : OUTSIDE);

	if (!rc && row->module && row->module->unloaded_at)
		rc = buf_add_text(&row->name, " (unloaded)");
	if (!rc)
		text_harmless(row->name.data);
	return rc;
}

static int make_by(struct explained *row)
{
	bool by_others = row->named > row->carried && row->story.by && row->story.by[0];
	int rc = by_others ? buf_add_text(&row->by, row->story.by) : 0;

	if (!rc && row->carried)
		rc = buf_add_text(&row->by, by_others ? ", the dump" : "the dump");
	if (!rc && !row->by.len)
		rc = buf_add_text(&row->by, "-");
	return rc;
}

static int tell_rows(const struct addnames *work, struct module_table *table, struct err *err)
{
	for (size_t i = 0; i < table->count; i++) {
		struct explained *row = &table->rows[i];
		int rc = row->module ?
				 symbolizer_story(work->symbolizer, row->module, &row->story, err) :
				 0;

		if (rc)
			return rc;
		if (make_name(row) || make_by(row))
			return err_set(err, ERR_NOMEM, NULL, NULL);
	}
	return 0;
}

/* The most nameless addresses first, then by name; a total order. */
static int by_lack(const void *a, const void *b)
{
	const struct explained *x = a, *y = b;
	size_t left = x->seen - x->named, right = y->seen - y->named;
	int order = left != right ? (left > right ? -1 : 1) : strcmp(x->name.data, y->name.data);

	if (order || !x->module || !y->module)
		return order ? order : !x->module - !y->module;
	return x->module->base < y->module->base ? -1 : x->module->base > y->module->base;
}

/* ---------------------------------------------------------------- writing */

static size_t columns_of(const char *text)
{
	size_t columns = 0;

	for (; *text; text++)
		columns += (*text & 0xc0) != 0x80;
	return columns;
}

static void widen(size_t *width, const char *text)
{
	size_t columns = columns_of(text);

	if (columns > *width)
		*width = columns < NAME_COLUMNS ? columns : NAME_COLUMNS;
}

static void put_text(struct out *out, const char *text, size_t width)
{
	size_t columns = columns_of(text);

	out_text(out, text);
	for (; columns < width; columns++)
		out_char(out, ' ');
}

/* What is not to be said of a module any better by those who looked. */
static void put_reason(const struct addnames *work, struct out *out, const struct explained *row)
{
	const struct symbol_status *story = &row->story;

	if (story->reason && story->reason[0]) {
		out_text(out, "    ");
		out_harmless(out, story->reason);
	} else if (row->named == row->seen) {
		return;
	} else if (!row->module) {
		out_text(out, work->modules.count ? "    no module of the dump lies there" :
						    "    the dump lists no modules");
	} else if (!story->image && !story->debug) {
		out_text(out, "    no file ");
		out_harmless(out, row->module->path);
		out_text(out, " here");
	} else {
		out_text(out, "    what was found has no name for the others");
	}
	out_char(out, '\n');
}

static void put_row(const struct addnames *work, struct out *out, const struct explained *row,
	size_t name_width, size_t by_width)
{
	put_text(out, row->name.data, name_width);
	out_char(out, ' ');
	out_number(out, row->seen, 10, 8);
	out_char(out, ' ');
	out_number(out, row->named, 10, 8);
	out_text(out, "  ");
	put_text(out, row->by.data, by_width);
	out_text(out, "  ");
	out_harmless(out, row->story.image ? row->story.image : "-");
	out_char(out, '\n');
	if (row->story.debug) {
		out_text(out, "    PDB: ");
		out_harmless(out, row->story.debug);
		out_char(out, '\n');
	}
	put_reason(work, out, row);
}

static void put_total(const struct addnames *work, const struct module_table *table,
	size_t name_width, struct out *out)
{
	size_t modules = 0;

	for (size_t i = 0; i < table->count; i++)
		modules += table->rows[i].module != NULL;
	put_text(out, "total", name_width);
	out_char(out, ' ');
	out_number(out, work->count, 10, 8);
	out_char(out, ' ');
	out_number(out, addnames_named(work), 10, 8);
	out_printf(out, "  in %zu module%s\n", modules, modules == 1 ? "" : "s");
}

static void put_table(
	const struct addnames *work, const struct module_table *table, struct out *out)
{
	size_t name_width = strlen("module"), by_width = strlen("by");

	for (size_t i = 0; i < table->count; i++) {
		widen(&name_width, table->rows[i].name.data);
		widen(&by_width, table->rows[i].by.data);
	}
	put_text(out, "module", name_width);
	out_printf(out, " %8s %8s  ", "seen", "named");
	put_text(out, "by", by_width);
	out_text(out, "  file\n");
	for (size_t i = 0; i < table->count; i++)
		put_row(work, out, &table->rows[i], name_width, by_width);
	put_total(work, table, name_width, out);
}

int explain_write(const struct addnames *work, struct out *out, struct err *err)
{
	struct module_table table = {.rows = calloc(work->modules.count + 1, sizeof(*table.rows))};
	int rc;

	if (!table.rows)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	count_addresses(work, &table);
	drop_unseen(&table);
	rc = tell_rows(work, &table, err);
	if (!rc) {
		qsort(table.rows, table.count, sizeof(*table.rows), by_lack);
		put_table(work, &table, out);
		if (addnames_lacks_builds(work))
			out_text(out, LACKS_BUILDS "\n");
	}
	modules_release(&table);
	return rc;
}
