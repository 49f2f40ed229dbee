/* ETW logs among the inputs: sorts them into sessions, and converts the events of one process to a
 * recording. Lists the content of a session as text or JSON. */
#include "diff/logs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/terminal.h"
#include "core/base/text.h"
#include "core/etw/etw.h"
#include "core/io/out.h"
#include "core/io/temp.h"
#include "core/io/zip.h"
#include "diff/report/json.h"
#include "diff/report/umdh.h"

#define LIST_SCHEMA "hdiff-list-etw/1"

static bool is_named_etl(const char *path)
{
	const size_t len = strlen(path);

	return len > 4 && !text_compare(path + len - 4, ".etl");
}

bool log_exists(const char *path)
{
	unsigned char bytes[ETW_PEEK_BYTES];
	struct os_file file;
	bool is_log = false;

	if (!strcmp(path, "-") || os_is_special(path) || os_open(&file, path, NULL))
		return false;
	if (os_size(&file) >= sizeof(bytes) && !os_read_at(&file, 0, bytes, sizeof(bytes)))
		is_log = etw_is_head(bytes, sizeof(bytes)) || zip_is_head(bytes, sizeof(bytes));
	os_close(&file);
	return is_log || is_named_etl(path);
}

/* ---------------------------------------------------------------- reading */

struct log_progress {
	struct progress line;
	const char *path;
};

static void show_progress(void *ctx, uint64_t done, uint64_t total)
{
	struct log_progress *progress = ctx;

	progress_report(&progress->line, progress->path, (size_t)done, (size_t)total, os_time_ms());
}

struct log_session {
	struct etw_log *log;
	const char **paths;
	size_t count;
	const char *recording;
	bool has_moment; /* one of the session's items has a moment */
	size_t first; /* index of the session's first item */
};

struct log_sessions {
	struct log_session *items;
	size_t count, cap;
	size_t *of_item; /* indexed by item: its session, or SIZE_MAX */
};

static int read_session(
	struct log_session *session, const struct options *options, FILE *messages, struct err *err)
{
	const struct etw_process *process;
	struct etw_record_options how = {.is_temporary = true};
	struct log_progress progress = {.path = session->paths[0]};
	int rc = 0;

	if (session->count > 1) {
		etw_close(session->log);
		session->log = NULL;
		rc = etw_open(&session->log, session->paths, session->count, err);
	}
	progress_begin(&progress.line, messages, "hdiff: reading", os_time_ms());
	if (!rc)
		rc = etw_scan(session->log, false, show_progress, &progress, err);
	if (!rc)
		rc = etw_choose(session->log, options->process, &process, err);
	if (!rc)
		rc = temp_path(&how.path, ".hrec", err);
	if (!rc)
		rc = etw_record(session->log, process, &how, show_progress, &progress, err);
	progress_wipe(&progress.line);
	session->recording = how.path;
	etw_close(session->log);
	session->log = NULL;
	return rc;
}

static bool has_path(const struct log_session *session, const char *path)
{
	for (size_t i = 0; i < session->count; i++) {
		if (!strcmp(session->paths[i], path) || os_same_file(session->paths[i], path))
			return true;
	}
	return false;
}

/* Adds a log to its session, or to a new session. */
static int add_log(struct log_sessions *all, const char *path, size_t item, struct err *err)
{
	struct etw_log *log = NULL;
	struct log_session *session = NULL;
	size_t at = 0;
	int rc;

	for (at = 0; at < all->count; at++) {
		if (has_path(&all->items[at], path)) {
			all->of_item[item] = at;
			return 0;
		}
	}
	rc = etw_open(&log, &path, 1, err);
	if (rc)
		return rc;
	for (at = 0; at < all->count && !etw_is_one_session(all->items[at].log, log); at++)
		;
	if (at == all->count) {
		array_grow((void **)&all->items, &all->cap, all->count, sizeof(*all->items));
		all->items[all->count++] = (struct log_session){.log = log, .first = item};
	} else {
		etw_close(log);
	}
	session = &all->items[at];
	session->paths = xrealloc(session->paths, (session->count + 1) * sizeof(const char *));
	session->paths[session->count++] = path;
	all->of_item[item] = at;
	return 0;
}

static bool is_first_of_session(const struct file_item *item, size_t number, void *ctx)
{
	const struct log_sessions *all = ctx;
	const struct log_session *session;

	if (all->of_item[number] == SIZE_MAX)
		return true;
	session = &all->items[all->of_item[number]];
	return session->has_moment ? item->part.moment != NULL : number == session->first;
}

int logs_read(
	struct file_list *list, const struct options *options, FILE *messages, struct err *err)
{
	struct log_sessions all = {.of_item = xcalloc(list->count + 1, sizeof(size_t))};
	int rc = 0;

	for (size_t i = 0; !rc && i < list->count; i++) {
		all.of_item[i] = SIZE_MAX;
		if (log_exists(list->items[i].file))
			rc = add_log(&all, list->items[i].file, i, err);
		/* a zip archive in a folder: the reader of dumps reports why it is left out */
		if (rc && list->items[i].is_found && !is_named_etl(list->items[i].file))
			rc = 0;
		if (!rc && all.of_item[i] != SIZE_MAX)
			all.items[all.of_item[i]].has_moment |= list->items[i].part.moment != NULL;
	}
	for (size_t i = 0; !rc && i < all.count; i++)
		rc = read_session(&all.items[i], options, messages, err);
	for (size_t i = 0; !rc && i < list->count; i++) {
		if (all.of_item[i] != SIZE_MAX)
			list->items[i].file = all.items[all.of_item[i]].recording;
	}
	if (!rc && all.count)
		file_list_filter(list, is_first_of_session, &all);
	if (!rc && !all.count && options->process)
		rc = err_set(err, ERR_USAGE, "--process", "applies only to ETW logs");
	for (size_t i = 0; i < all.count; i++) {
		etw_close(all.items[i].log);
		free(all.items[i].paths);
	}
	free(all.items);
	free(all.of_item);
	return rc;
}

/* ---------------------------------------------------------------- listing */

static const char *group_name(unsigned group)
{
	switch (group) {
	case 0x00: return "EventTrace";
	case ETW_MEMORY: return "Memory";
	case ETW_PROCESS: return "Process";
	case ETW_THREAD: return "Thread";
	case ETW_HEAP: return "Heap";
	case ETW_IMAGE: return "Image";
	case ETW_STACK: return "Stack";
	case ETW_IMAGE_ID: return "ImageId";
	case ETW_PATHS: return "Paths";
	case ETW_HEAP_SNAPSHOT: return "HeapSnapshot";
	default: return NULL;
	}
}

static void guid_text(const unsigned char *g, char text[40])
{
	snprintf(text, 40, "%08" PRIx32 "-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x", etw_u32(g),
		etw_u16(g + 4), etw_u16(g + 6), g[8], g[9], g[10], g[11], g[12], g[13], g[14],
		g[15]);
}

/* Returns the name or number of a kernel group, or the GUID of a provider. */
static const char *provider_text(const struct etw_count *count, char text[40])
{
	const char *name = group_name(count->group);

	if (name)
		return name;
	if (count->group == ETW_OTHER)
		guid_text(count->guid, text);
	else
		snprintf(text, 40, "group 0x%02x", count->group);
	return text;
}

/* Returns the kind of report that the events of a process allow, or NULL. */
static const char *answers(const struct etw_process *process, const struct etw_facts *facts)
{
	const bool has_stacks = facts->stack_count || facts->key_count;

	if (process->heap_events)
		return has_stacks ? "heap blocks by stack" : "heap blocks, without stacks";
	if (process->memory_events)
		return has_stacks ? "virtual memory by stack" : "virtual memory, without stacks";
	return NULL;
}

static const char *clock_name(enum etw_clock clock)
{
	return clock == ETW_CLOCK_QPC	 ? "performance counter" :
	       clock == ETW_CLOCK_SYSTEM ? "system time" :
					   "processor cycles";
}

struct losses {
	uint64_t events, buffers, flagged;
	bool is_cut;
	uint64_t cut_bytes;
};

static struct losses losses_of(const struct etw_facts *facts)
{
	struct losses losses = {0};

	for (size_t i = 0; i < facts->file_count; i++) {
		const struct etw_file *file = &facts->files[i];

		losses.events += file->head.events_lost;
		losses.buffers += file->head.buffers_lost;
		losses.flagged += file->flagged_losses;
		if (file->is_cut) {
			losses.is_cut = true;
			losses.cut_bytes = file->cut_bytes;
		}
	}
	return losses;
}

static void write_head(struct out *out, const struct etw_facts *facts)
{
	const struct etw_head *head = &facts->files->head;
	const struct losses losses = losses_of(facts);
	char date[DATE_TEXT_BYTES];
	uint64_t length = (etw_time(head, facts->last_ticks) - head->start_time) / 10000;

	for (size_t i = 0; i < facts->file_count; i++) {
		out_printf(out, "%-10s ", i ? "" : "log");
		out_harmless(out, facts->files[i].path);
		out_printf(out, "\n%-10s ", "recorder");
		out_harmless(out, facts->files[i].head.session);
		out_char(out, '\n');
	}
	out_printf(out, "%-10s Windows %u.%u.%u, %u-bit, %u processor%s\n", "system",
		head->os_major, head->os_minor, head->os_build, head->pointer_bytes * 8,
		head->processor_count, text_plural(head->processor_count));
	out_printf(out, "%-10s %s\n", "begun", date_text(etw_time_ms(head->start_time), date));
	out_printf(out, "%-10s ", "length");
	umdh_seconds(out, length);
	out_printf(out, "\n%-10s %s, %" PRIu64 " a second\n", "clock", clock_name(head->clock),
		head->frequency);
	out_printf(out, "%-10s %" PRIu64 " event%s in %" PRIu64 " buffer%s, %" PRIu64 " bytes\n",
		"events", facts->event_count, text_plural(facts->event_count), facts->buffer_count,
		text_plural(facts->buffer_count), facts->file_bytes);
	out_printf(out, "%-10s %" PRIu64 " event%s, %" PRIu64 " buffer%s", "lost", losses.events,
		text_plural(losses.events), losses.buffers, text_plural(losses.buffers));
	if (losses.flagged)
		out_printf(out, "; %" PRIu64 " buffer%s marked as following a loss", losses.flagged,
			losses.flagged == 1 ? " is" : "s are");
	out_char(out, '\n');
	if (losses.is_cut)
		out_printf(out, "%-10s at byte %" PRIu64 ", or damaged there\n", "cut",
			losses.cut_bytes);
	if (facts->bad_buffers)
		out_printf(out, "%-10s %" PRIu64 " buffer%s\n", "damaged", facts->bad_buffers,
			text_plural(facts->bad_buffers));
	if (facts->snapshot_parts)
		out_printf(out,
			"%-10s %" PRIu64
			" part%s of heap snapshots by WPR, whose format is undocumented\n",
			"unreadable", facts->snapshot_parts, text_plural(facts->snapshot_parts));
	if (facts->orphan_events)
		out_printf(out, "%-10s %" PRIu64 " heap event%s to no listed process\n", "orphans",
			facts->orphan_events, facts->orphan_events == 1 ? " belongs" : "s belong");
}

static void write_processes(struct out *out, const struct etw_facts *facts, bool is_verbose)
{
	out_printf(out, "\n%8s %14s %14s  %-20s %s\n", "pid", "heap events", "memory events",
		"image", "can show");
	for (size_t i = 0; i < facts->process_count; i++) {
		const struct etw_process *process = &facts->processes[i];
		const char *what = answers(process, facts);

		if (!what && !is_verbose)
			continue;
		out_printf(out, "%8" PRIu32 " %14" PRIu64 " %14" PRIu64 "  ", process->pid,
			process->heap_events, process->memory_events);
		out_harmless(out, process->image ? process->image : "?");
		for (size_t k = process->image ? strlen(process->image) : 1; what && k < 20; k++)
			out_char(out, ' ');
		if (what)
			out_printf(out, " %s", what);
		out_char(out, '\n');
	}
}

static void write_counts(struct out *out, const struct etw_facts *facts)
{
	char guid[40];

	out_printf(out,
		"\n"
		"stacks     %" PRIu64 " in full, %" PRIu64 " by key, %" PRIu64 " key definitions\n"
		"matched    %" PRIu64 " to an event; %" PRIu64 " without an event, %" PRIu64
		" with an undefined key\n"
		"images     %" PRIu64 " events, %" PRIu64 " of them with an identity\n",
		facts->stack_count, facts->key_count, facts->definition_count, facts->bound_count,
		facts->unbound_count, facts->undefined_count, facts->image_count,
		facts->identified_count);
	out_printf(out, "\n%14s  %-36s %6s %8s %7s\n", "events", "provider", "type", "version",
		"header");
	for (size_t i = 0; i < facts->count_count; i++) {
		const struct etw_count *count = &facts->counts[i];

		out_printf(out, "%14" PRIu64 "  %-36s %6u %8u %7u\n", count->count,
			provider_text(count, guid), count->id, count->version, count->header);
	}
}

static void write_json(struct out *out, const struct etw_facts *facts, bool is_verbose)
{
	const struct etw_head *head = &facts->files->head;
	const struct losses losses = losses_of(facts);
	struct json json = {.out = out, .is_first = true};
	char text[DATE_TEXT_BYTES];

	json_open(&json, NULL, '{');
	json_text(&json, "schema", LIST_SCHEMA);
	json_line(&json);
	json_text(&json, "tool", "hdiff " HSNAP_VERSION);
	json_open_line(&json, "files", '[');
	for (size_t i = 0; i < facts->file_count; i++) {
		json_open_line(&json, NULL, '{');
		json_text(&json, "path", facts->files[i].path);
		json_text(&json, "recorder", facts->files[i].head.session);
		json_number(&json, "bytes", facts->files[i].file_bytes);
		json_number(&json, "buffers", facts->files[i].buffer_count);
		json_close(&json, '}');
	}
	json_close(&json, ']');
	json_line(&json);
	snprintf(text, sizeof(text), "Windows %u.%u.%u", head->os_major, head->os_minor,
		head->os_build);
	json_text(&json, "system", text);
	json_number(&json, "bits", head->pointer_bytes * 8);
	json_number(&json, "processors", head->processor_count);
	json_text(&json, "begun", date_text(etw_time_ms(head->start_time), text));
	json_number(
		&json, "length_ms", (etw_time(head, facts->last_ticks) - head->start_time) / 10000);
	json_text(&json, "clock", clock_name(head->clock));
	json_number(&json, "frequency", head->frequency);
	json_line(&json);
	json_number(&json, "event_count", facts->event_count);
	json_number(&json, "events_lost", losses.events);
	json_number(&json, "buffers_lost", losses.buffers);
	json_number(&json, "buffers_flagged", losses.flagged);
	json_number(&json, "buffers_damaged", facts->bad_buffers);
	json_bool(&json, "cut", losses.is_cut);
	json_number(&json, "heap_snapshot_parts", facts->snapshot_parts);
	json_number(&json, "heap_events_without_process", facts->orphan_events);
	json_open_line(&json, "processes", '[');
	for (size_t i = 0; i < facts->process_count; i++) {
		const struct etw_process *process = &facts->processes[i];

		json_open_line(&json, NULL, '{');
		json_number(&json, "pid", process->pid);
		json_number(&json, "parent_pid", process->parent_pid);
		json_number(&json, "bits", process->bits);
		if (process->image)
			json_text(&json, "image", process->image);
		if (process->command_line)
			json_text(&json, "command_line", process->command_line);
		json_number(&json, "heap_events", process->heap_events);
		json_number(&json, "memory_events", process->memory_events);
		json_close(&json, '}');
	}
	json_close(&json, ']');
	if (is_verbose) {
		json_open_line(&json, "stacks", '{');
		json_number(&json, "full", facts->stack_count);
		json_number(&json, "keys", facts->key_count);
		json_number(&json, "definitions", facts->definition_count);
		json_number(&json, "bound", facts->bound_count);
		json_number(&json, "unbound", facts->unbound_count);
		json_number(&json, "undefined", facts->undefined_count);
		json_close(&json, '}');
		json_number(&json, "image_count", facts->image_count);
		json_number(&json, "identified_count", facts->identified_count);
		json_open_line(&json, "events", '[');
		for (size_t i = 0; i < facts->count_count; i++) {
			const struct etw_count *count = &facts->counts[i];
			char guid[40];

			json_open_line(&json, NULL, '{');
			json_text(&json, "provider", provider_text(count, guid));
			json_number(&json, "type", count->id);
			json_number(&json, "version", count->version);
			json_number(&json, "header", count->header);
			json_number(&json, "count", count->count);
			json_close(&json, '}');
		}
		json_close(&json, ']');
	}
	json_close(&json, '}');
	out_char(out, '\n');
}

int run_list_logs(const struct options *options, FILE *messages, struct err *err)
{
	struct log_progress progress = {.path = options->paths.items[0]};
	const bool is_json = options->format->list == LIST_JSON, is_verbose = options->is_verbose;
	const struct etw_facts *facts;
	struct etw_log *log;
	struct out out;
	int rc = etw_open(&log, options->paths.items, options->paths.count, err);

	if (rc)
		return rc;
	for (size_t i = 0; !rc && options->output && i < options->paths.count; i++) {
		if (os_same_file(options->output, options->paths.items[i]))
			rc = err_set(err, ERR_USAGE, options->output,
				"input and output are the same file");
	}
	progress_begin(&progress.line, messages, "hdiff: reading", os_time_ms());
	if (!rc)
		rc = etw_scan(log, is_verbose, show_progress, &progress, err);
	if (!rc && is_verbose)
		rc = etw_bind(log, show_progress, &progress, err);
	progress_wipe(&progress.line);
	facts = etw_facts(log);
	if (!rc)
		rc = out_open(&out, options->output, err);
	if (!rc && is_json) {
		write_json(&out, facts, is_verbose);
	} else if (!rc) {
		write_head(&out, facts);
		write_processes(&out, facts, is_verbose);
		if (is_verbose)
			write_counts(&out, facts);
	}
	if (!rc)
		rc = out_commit(&out, err);
	etw_close(log);
	return rc;
}
