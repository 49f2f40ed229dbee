/*
 * Reports for databases. They are documented in man/hdiff-json.5, section LINES, which must change
 * with this file.
 *
 * Each line contains everything about one stack and its dump, so one table can hold lines from any
 * number of machines. No key is ever missing and no value is null, because databases need one type
 * for each key. */
#include "diff/report/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/text.h"
#include "diff/query/strip.h"
#include "diff/report/clean.h"
#include "diff/report/json.h"
#include "diff/report/report_parts.h"

struct line_writer {
	struct out *out;
	const struct view *view;
	struct strip *strip;
	struct frames frames;
	/* Texts of the current row. `text`: all frames. `function`: the innermost frame that is not
	 * an allocator's. */
	struct buf text, function;
	uint64_t hash;
};

/* ---------------------------------------------------------------- stacks */

/* Appends a frame's text. The text of a frame must be equal on all machines and, if the function
 * has a name, in all builds. Therefore, it contains no address and no offset in the function.
 * Modules are in lower case, because Windows ignores the case of file names. */
static void add_frame(struct buf *text, const struct frame *frame)
{
	size_t from = text->len;

	if (frame->module)
		clean_text(text, frame->module, true);
	for (size_t i = from; i < text->len; i++)
		text->data[i] = text_lower(text->data[i]);
	if (frame->module)
		buf_add_text(text, frame->function ? "!" : "+");
	if (frame->function)
		clean_text(text, frame->function, true);
	else if (frame->module)
		buf_printf(text, "%" PRIX64, frame->offset_bytes);
	else
		buf_add_text(text, "?");
	for (size_t i = from; i < text->len; i++) {
		if (text->data[i] == ';')
			text->data[i] = ':';
	}
}

/* Returns the FNV-1a hash of the frames. FNV-1a is easy to compute in any language. */
static uint64_t hash_text(const struct buf *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < text->len; i++)
		hash = (hash ^ (unsigned char)text->data[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/* Stores all frames of a row, starting with the innermost. Ignores options that change which frames
 * are shown, because such options would also change the hash. */
static void add_stack(struct line_writer *writer, uint32_t number)
{
	const struct row *row = &writer->view->comparison->rows[number];
	struct frames *frames = &writer->frames;
	struct buf *text = &writer->text;
	char space[ROW_WORDS_BYTES];
	size_t count;

	buf_clear(text);
	buf_clear(&writer->function);
	naming_frames(&writer->view->naming, number, frames);
	count = frames->part_count ? frames->part_at[0] : frames->count;
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_add_text(text, ";");
		add_frame(text, &frames->items[i]);
	}
	if (!count)
		buf_add_text(text, report_row_words(row, space));
	else if (row->kind == ROW_AMBIGUOUS)
		buf_printf(text, ";(ambiguous: one of %zu stacks)", frames->part_count + 1);
	writer->hash = hash_text(text);
	if (count) {
		strip_frames(writer->strip, frames);
		add_frame(&writer->function, &frames->items[0]);
	} else {
		buf_add(&writer->function, text->data, text->len);
	}
}

/* ---------------------------------------------------------------- processes */

/* Returns the module with the image's name, or NULL. */
static const struct module *main_module(const struct dump_sums *dump)
{
	const char *name = dump->id.image ? module_path_base(dump->id.image) : "";

	for (size_t i = 0; i < dump->module_list.count; i++) {
		if (!text_compare(module_path_base(dump->module_list.items[i].path), name))
			return &dump->module_list.items[i];
	}
	return NULL;
}

/* Writes the module's build in the form that symbol stores use. This is the identity of the PDB or,
 * if no PDB is known, the time stamp and size of the image. Writes "" if both are unknown. */
static void write_build(struct json *json, const struct dump_sums *dump)
{
	const struct module *module = main_module(dump);
	char text[64] = "";

	if (module && module->pdb_guid)
		snprintf(text, sizeof(text), "%.32s%" PRIX32, module->pdb_guid, module->pdb_age);
	else if (module && module->has_identity)
		snprintf(text, sizeof(text), "%08" PRIX32 "%" PRIx64, module->timestamp,
			module->size_bytes);
	json_text(json, "build", text);
}

static void write_time(struct json *json, const char *key, int64_t time_ms)
{
	char text[DATE_TEXT_BYTES];

	json_text(json, key, date_text(time_ms, text));
}

static void write_process(struct json *json, const struct dump_sums *dump)
{
	json_text(json, "host", dump->id.host ? dump->id.host : "");
	json_text(json, "image", dump->id.image ? module_path_base(dump->id.image) : "");
	write_build(json, dump);
	json_number(json, "pid", dump->id.pid);
	write_time(json, "start", dump->id.start_ms);
	write_time(json, "time", dump->id.time_ms);
	json_text(json, "path", dump->id.path);
}

/* Writes a figure of the process's balance, or -1 if the dump does not record it. */
static void write_figure(struct json *json, const char *key, const struct balance *balance,
	enum balance_figure figure)
{
	json_signed(
		json, key, balance_knows(balance, figure) ? (int64_t)balance->figures[figure] : -1);
}

/* ---------------------------------------------------------------- lines */

static void write_line(
	struct line_writer *writer, const struct dump_sums *dump, const struct block_totals *totals)
{
	struct json json = {.out = writer->out, .is_first = true};
	char hash[17];

	snprintf(hash, sizeof(hash), "%016" PRIX64, writer->hash);
	json_open(&json, NULL, '{');
	write_process(&json, dump);
	json_text(&json, "stack", hash);
	json_text(&json, "function", writer->function.data);
	json_text(&json, "frames", writer->text.data);
	json_number(&json, "bytes", totals->requested_bytes);
	json_known(&json, "blocks", totals->block_count, !dump->quality.lacks_blocks);
	json_known(&json, "overhead", totals->overhead_bytes, !dump->quality.lacks_overhead);
	write_figure(&json, "private_bytes", sums_balance(dump), BALANCE_PRIVATE);
	write_figure(&json, "threads", sums_balance(dump), BALANCE_THREADS);
	write_figure(&json, "handles", sums_balance(dump), BALANCE_HANDLES);
	json_close(&json, '}');
	out_char(writer->out, '\n');
}

/* Writes a line for each dump that has the stack. A report about only one of the dumps would
 * contain the same line. */
static void write_row(struct line_writer *writer, uint32_t number)
{
	const struct comparison *comparison = writer->view->comparison;
	const struct row *row = &comparison->rows[number];

	add_stack(writer, number);
	for (size_t i = 0; i < comparison->dump_count; i++) {
		const struct block_totals *totals = &row->totals[i];

		if (totals->block_count || totals->requested_bytes || totals->overhead_bytes)
			write_line(writer, &comparison->dumps[i], totals);
	}
}

void report_jsonl(struct out *out, const struct report *report)
{
	struct line_writer writer = {.out = out, .strip = report->strip};

	frames_init(&writer.frames);
	buf_init(&writer.text);
	buf_init(&writer.function);
	for (const struct view *view = report->views; view < report->views + report->view_count;
		view++) {
		writer.view = view;
		for (size_t i = 0; i < view->shown_count && !out->err.code; i++)
			write_row(&writer, view->rows[i]);
	}
	buf_release(&writer.function);
	buf_release(&writer.text);
	frames_release(&writer.frames);
}
