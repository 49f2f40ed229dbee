/* Actions on a recording other than comparing: lists its content, and writes a moment as a dump. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/parse.h"
#include "core/base/text.h"
#include "core/dump/dump.h"
#include "core/dump/dump_head.h"
#include "core/io/out.h"
#include "core/record/record.h"
#include "diff/file_list.h"
#include "diff/hdiff.h"
#include "diff/logs.h"
#include "diff/messages.h"
#include "diff/options.h"
#include "diff/report/json.h"
#include "diff/report/umdh.h"

#define LIST_SCHEMA "hdiff-list/1"

/* ---------------------------------------------------------------- listing */

static void write_text(struct out *out, const char *key, const char *text)
{
	if (!text)
		return;
	out_printf(out, "%-10s ", key);
	out_harmless(out, text);
	out_char(out, '\n');
}

static void write_date(struct out *out, const char *key, int64_t ms)
{
	char text[DATE_TEXT_BYTES];

	if (ms)
		write_text(out, key, date_text(ms, text));
}

static void write_process(struct out *out, const struct record_facts *facts)
{
	out_printf(out, "%-10s %" PRIu32, "process", facts->pid);
	if (facts->bits)
		out_printf(out, ", %u-bit", facts->bits);
	if (facts->parent_pid)
		out_printf(out, ", started by %" PRIu32, facts->parent_pid);
	out_char(out, '\n');
	write_text(out, "image", facts->image);
	write_text(out, "system", facts->os);
	write_date(out, "started", facts->start_ms);
}

static void write_events(struct out *out, const struct record_facts *facts)
{
	uint64_t thousandths =
		facts->event_count ?
			(uint64_t)((double)facts->file_bytes * 1000 / (double)facts->event_count +
				   0.5) :
			0;

	out_printf(out, "%-10s %" PRIu64 " in ", "events", facts->event_count);
	umdh_seconds(out, facts->length_ms);
	out_printf(out, "\n%-10s %" PRIu64 " bytes", "file", facts->file_bytes);
	if (facts->event_count)
		out_printf(out, ", %" PRIu64 ".%03u an event", thousandths / 1000,
			(unsigned)(thousandths % 1000));
	out_printf(out, "\n%-10s %" PRIu64 " event%s\n", "lost", facts->lost_count,
		text_plural(facts->lost_count));
	if (facts->has_addresses)
		out_printf(out, "%-10s recorded for all blocks\n", "addresses");
	if (facts->sample_bytes)
		out_printf(out, "%-10s one in %" PRIu64 " bytes: all numbers are estimates\n",
			"sampled", facts->sample_bytes);
	if (facts->is_cut)
		out_printf(out, "%-10s not ended, or damaged: valid up to byte %" PRIu64 "\n",
			"cut", facts->cut_bytes);
}

#define ENDING_MS 100

/* Returns the number of module loads and unloads, except the unloads at the end of the process. An
 * unload before a mark is never one of these. */
static size_t loads_before_end(const struct record_facts *facts)
{
	const uint64_t marked_ms =
		facts->mark_count ? facts->marks[facts->mark_count - 1].time_ms : 0;
	size_t count = facts->load_count;

	while (count && !facts->loads[count - 1].is_loaded &&
		facts->loads[count - 1].time_ms > marked_ms &&
		facts->length_ms - facts->loads[count - 1].time_ms < ENDING_MS)
		count--;
	return count;
}

static void write_loads(struct out *out, const struct record_facts *facts)
{
	size_t count = loads_before_end(facts);

	for (size_t i = 0; i < count; i++) {
		const struct record_load *load = &facts->loads[i];

		out_printf(out, "%-10s ", load->is_loaded ? "loaded" : "unloaded");
		umdh_seconds(out, load->time_ms);
		out_char(out, ' ');
		out_harmless(out, facts->modules[load->module].path);
		out_char(out, '\n');
	}
	if (count < facts->load_count)
		out_printf(out, "%-10s %zu module%s at the end\n", "unloaded",
			facts->load_count - count, text_plural(facts->load_count - count));
}

static void write_count(struct out *out, size_t count, const char *noun, const char *then)
{
	out_printf(out, "%zu %s%s%s", count, noun, count == 1 ? "" : "s", then);
}

/* Writes the figures of a recording, then a line for each load or unload of a module and for each
 * mark. */
static void write_recording(struct out *out, const char *path, const struct record_facts *facts)
{
	write_text(out, "recording", path);
	write_process(out, facts);
	write_date(out, "begun", facts->time_ms);
	if (facts->is_attached)
		out_printf(out, "%-10s to a running process, which had %" PRIu64 " block%s\n",
			"attached", facts->start_position, text_plural(facts->start_position));
	write_events(out, facts);
	out_printf(out, "%-10s %" PRIu64 " bytes at ", "peak", facts->peak.bytes);
	umdh_seconds(out, facts->peak.time_ms);
	out_printf(out, "\n%-10s ", "tables");
	write_count(out, facts->module_count, "module", ", ");
	write_count(out, facts->stack_count, "stack", ", ");
	write_count(out, facts->heap_count, "heap", ", ");
	write_count(out, facts->thread_count ? facts->thread_count - 1 : 0, "thread", ", ");
	write_count(out, facts->kind_count, "kind", " of allocation\n");
	write_loads(out, facts);
	for (size_t i = 0; i < facts->remark_count; i++)
		write_text(out, "remark", facts->remarks[i]);
	for (size_t i = 0; i < facts->thread_count; i++) {
		if (!facts->thread_names[i])
			continue;
		out_printf(out, "%-10s %" PRIu32 " ", "thread", facts->threads[i]);
		out_harmless(out, facts->thread_names[i]);
		out_char(out, '\n');
	}
	for (size_t i = 0; i < facts->mark_count; i++) {
		out_printf(out, "%-10s ", "mark");
		umdh_seconds(out, facts->marks[i].time_ms);
		out_char(out, ' ');
		out_harmless(out, facts->marks[i].label);
		out_char(out, '\n');
	}
}

static void json_known_text(struct json *json, const char *key, const char *text)
{
	if (text)
		json_text(json, key, text);
}

static void json_date(struct json *json, const char *key, int64_t ms)
{
	char text[DATE_TEXT_BYTES];

	if (ms)
		json_text(json, key, date_text(ms, text));
}

static void json_moment(struct json *json, uint64_t time_ms, uint64_t position)
{
	json_number(json, "time_ms", time_ms);
	json_number(json, "position", position);
}

/* Writes the list as JSON: man/hdiff-json.5, RECORDINGS. */
static void write_json(struct out *out, const char *path, const struct record_facts *facts)
{
	struct json json = {.out = out, .is_first = true};

	json_open(&json, NULL, '{');
	json_text(&json, "schema", LIST_SCHEMA);
	json_line(&json);
	json_text(&json, "tool", "hdiff " HSNAP_VERSION);
	json_line(&json);
	json_text(&json, "path", path);
	json_line(&json);
	json_number(&json, "pid", facts->pid);
	if (facts->parent_pid)
		json_number(&json, "parent_pid", facts->parent_pid);
	if (facts->bits)
		json_number(&json, "bits", facts->bits);
	json_known_text(&json, "image", facts->image);
	json_known_text(&json, "system", facts->os);
	json_date(&json, "start", facts->start_ms);
	json_date(&json, "begun", facts->time_ms);
	json_known_text(&json, "source", facts->source);
	json_bool(&json, "attached", facts->is_attached);
	json_number(&json, "start_position", facts->start_position);
	json_line(&json);
	json_number(&json, "event_count", facts->event_count);
	json_number(&json, "length_ms", facts->length_ms);
	json_number(&json, "file_bytes", facts->file_bytes);
	json_number(&json, "lost_count", facts->lost_count);
	if (facts->sample_bytes)
		json_number(&json, "sample_bytes", facts->sample_bytes);
	json_bool(&json, "addresses", facts->has_addresses);
	json_bool(&json, "cut", facts->is_cut);
	json_open_line(&json, "peak", '{');
	json_moment(&json, facts->peak.time_ms, facts->peak.position);
	json_number(&json, "bytes", facts->peak.bytes);
	json_close(&json, '}');
	json_line(&json);
	json_number(&json, "module_count", facts->module_count);
	json_number(&json, "stack_count", facts->stack_count);
	json_number(&json, "kind_count", facts->kind_count);
	json_open_line(&json, "heaps", '[');
	for (size_t i = 0; i < facts->heap_count; i++)
		json_hex(&json, NULL, facts->heaps[i]);
	json_close(&json, ']');
	json_open_line(&json, "threads", '[');
	for (size_t i = 1; i < facts->thread_count; i++)
		json_number(&json, NULL, facts->threads[i]);
	json_close(&json, ']');
	json_open_line(&json, "thread_names", '{');
	for (size_t i = 0; i < facts->thread_count; i++) {
		char id[20];

		snprintf(id, sizeof(id), "%" PRIu32, facts->threads[i]);
		if (facts->thread_names[i])
			json_text(&json, id, facts->thread_names[i]);
	}
	json_close(&json, '}');
	json_open_line(&json, "loads", '[');
	for (size_t i = 0; i < facts->load_count; i++) {
		const struct record_load *load = &facts->loads[i];

		json_open_line(&json, NULL, '{');
		json_text(&json, "path", facts->modules[load->module].path);
		json_bool(&json, "loaded", load->is_loaded);
		json_number(&json, "time_ms", load->time_ms);
		json_close(&json, '}');
	}
	json_close(&json, ']');
	json_open_line(&json, "remarks", '[');
	for (size_t i = 0; i < facts->remark_count; i++)
		json_text(&json, NULL, facts->remarks[i]);
	json_close(&json, ']');
	json_open_line(&json, "marks", '[');
	for (size_t i = 0; i < facts->mark_count; i++) {
		json_open_line(&json, NULL, '{');
		json_text(&json, "label", facts->marks[i].label);
		json_moment(&json, facts->marks[i].time_ms, facts->marks[i].position);
		json_close(&json, '}');
	}
	json_close(&json, ']');
	json_close(&json, '}');
	out_char(out, '\n');
}

int run_list(const struct options *options, FILE *messages, struct err *err)
{
	const char *path = options->paths.items[0];
	const enum list_form form = options->format->list;
	struct recording *recording;
	struct out out;
	int rc;

	if (form == LIST_NONE)
		return err_set(err, ERR_USAGE, "--list", "has only the forms text and json");
	if (log_exists(path))
		return run_list_logs(options, messages, err);
	if (options->paths.count > 1)
		return err_set(err, ERR_USAGE, "--list", "applies to one recording");
	rc = recording_open(&recording, path, err);
	if (rc)
		return rc;
	if (options->output && os_same_file(options->output, path))
		rc = err_set(err, ERR_USAGE, options->output, "input and output are the same file");
	if (!rc)
		rc = out_open(&out, options->output, err);
	if (!rc) {
		(form == LIST_JSON ? write_json : write_recording)(
			&out, path, recording_facts(recording));
		rc = out_commit(&out, err);
	}
	recording_close(recording);
	return rc;
}

/* ---------------------------------------------------------------- a moment as a dump */

/* a dump must record the tracer's format to contain a note about the tracer */
#define TRACER_FORMAT 1

/* Compares by heap, then by stack. */
static int by_heap(const void *a, const void *b)
{
	const struct block_sum *x = a, *y = b;

	if (x->heap != y->heap)
		return x->heap < y->heap ? -1 : 1;
	return x->stack < y->stack ? -1 : x->stack > y->stack;
}

static void fill_heaps(struct snapshot *snapshot, const struct dump_sums *sums)
{
	/* Wine has only one kind of heap. For Windows, recordings do not contain the kind. */
	bool is_wine = snapshot->os && strstr(snapshot->os, "Wine ");

	for (size_t i = 0; i < sums->heap_count; i++) {
		struct heap *heap = snapshot_add_heap(snapshot);

		heap->addr = sums->heaps[i];
		heap->kind = heap_heading_kind(heap->addr);
		if (!heap->kind)
			heap->kind = is_wine ? "wine" : "unknown";
		heap->bits = snapshot->bits;
	}
	for (size_t i = 0; i < sums->cell_count; i++) {
		const struct stack_total *cell = &sums->cells[i];
		struct block_sum *sum;

		if (cell->stack == STACK_NONE) {
			block_totals_add(&snapshot->heaps[cell->heap].stackless, &cell->sums);
			continue;
		}
		if (sums->single.blocks)
			continue;
		sum = snapshot_add_sum(snapshot);
		*sum = (struct block_sum){.block_count = cell->sums.block_count,
			.requested_bytes = cell->sums.requested_bytes,
			.heap = cell->heap,
			.stack = cell->stack};
	}
	if (snapshot->sum_count)
		qsort(snapshot->sums, snapshot->sum_count, sizeof(*snapshot->sums), by_heap);
	snapshot->is_by_stack = !sums->single.blocks;
	snapshot->blocks = sums->single.blocks;
	snapshot->block_count = sums->single.block_count;
}

/* Fills a snapshot from sums. The snapshot borrows their texts, stacks and blocks. */
static void fill_snapshot(struct snapshot *snapshot, const struct dump_sums *sums)
{
	snapshot->pid = sums->id.pid;
	snapshot->parent_pid = sums->id.parent_pid;
	snapshot->bits = sums->id.bits;
	snapshot->start_ms = sums->id.start_ms;
	snapshot->time_ms = sums->id.time_ms;
	snapshot->image = sums->id.image;
	snapshot->os = sums->id.os;
	snapshot->stack_source = sums->id.source ? sums->id.source : "tracer";
	if (sums->is_attached || sums->quality.sample_bytes)
		snapshot->tracer = (struct tracer_facts){.version = TRACER_FORMAT,
			.is_attached = sums->is_attached,
			.before = sums->before,
			.sample_bytes = sums->quality.sample_bytes};
	for (size_t i = 0; i < sums->module_list.count; i++)
		snapshot_copy_module(snapshot, &sums->module_list.items[i]);
	for (size_t i = 0; i < sums->quality.warning_count && i < WARNINGS_MAX; i++)
		snapshot_warn(snapshot, "%s", sums->quality.warnings[i]);
	snapshot->missing_count = sums->quality.is_incomplete;
	fill_heaps(snapshot, sums);
}

static int write_dump(const char *output, const struct dump_sums *sums, struct err *err)
{
	const struct dump_head head = {
		.pid = sums->id.pid, .start_ms = sums->id.start_ms, .time_ms = sums->id.time_ms};
	struct stackset none;
	struct snapshot snapshot;
	struct out out;
	int rc;

	snapshot_init(&snapshot);
	fill_snapshot(&snapshot, sums);
	none = snapshot.stacks;
	snapshot.stacks = sums->stacks;
	/* the output already contains this snapshot, so replacing it loses nothing */
	if (output && dump_head_is_of(output, &head))
		out_protect(NULL);
	rc = out_open(&out, output, err);
	if (!rc) {
		dump_write(&out, &snapshot);
		rc = out_commit(&out, err);
	}
	snapshot.stacks = none;
	snapshot.blocks = NULL;
	snapshot_release(&snapshot);
	return rc;
}

int run_extract(const struct options *options, FILE *messages, struct err *err)
{
	struct recording_part part;
	struct file_list list;
	struct dump_sums sums;
	int rc = file_list_make(&list, options->paths.items, options->paths.count, err);
	const struct file_item *item;

	sums_init(&sums);
	if (!rc)
		rc = logs_read(&list, options, messages, err);
	item = list.items;
	if (!rc && list.count > 1)
		rc = err_set(err, ERR_USAGE, "--extract", "applies to one recording");
	if (!rc && item->part.moment && options->part.moment)
		rc = err_set(
			err, ERR_USAGE, item->path, "names a moment, and --peak names another");
	if (!rc && options->output && os_same_file(options->output, item->file))
		rc = err_set(err, ERR_USAGE, options->output, "input and output are the same file");
	if (!rc) {
		part = item->part.moment ? item->part : options->part;
		part.wants_blocks = true;
		rc = sums_read_recording(&sums, item->path, item->file, &part, err);
	}
	if (!rc) {
		message_warnings(messages, item->path, &sums);
		rc = write_dump(options->output, &sums, err);
	}
	sums_release(&sums);
	file_list_release(&list);
	return rc;
}
