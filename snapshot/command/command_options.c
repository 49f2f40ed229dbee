/* Options that several commands share: their parsing and checks. Also the names and columns of
 * 'hsnap ps'. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/parse.h"
#include "core/base/text.h"
#include "core/dump/kv.h"
#include "snapshot/command/command.h"
#include "snapshot/live/process_ref.h"
#include "snapshot/series/file_pattern.h"
#include "snapshot/series/series.h"

bool command_name_is_like(const char *name, const char *pattern)
{
	struct buf whole;
	bool result;

	buf_init(&whole);
	buf_printf(&whole, strpbrk(pattern, "*?") ? "%s" : "*%s*", pattern);
	result = text_glob(whole.data, name, GLOB_FOLD | GLOB_QUESTION);
	buf_release(&whole);
	return result;
}

int command_fail(const struct err *err)
{
	err_print(stderr, "hsnap", err);
	return 2;
}

int command_read(
	const struct command_form *form, int argc, char **argv, void *request, struct err *err)
{
	struct opt_state state;
	int id, rc = 0;

	opt_init(&state, form->options, argc, argv);
	state.stop_at_argument = form->stops_at_argument;
	while (!rc && (id = opt_next(&state, err))) {
		if (id == OPT_COMMAND_HELP) {
			fputs(form->usage, stdout);
			fputc('\n', stdout);
			opt_help(form->options, stdout);
			return 1;
		}
		rc = form->set(request, id, state.value, err);
	}
	return rc;
}

int process_option(struct process_choice *choice, int id, const char *value, struct err *err)
{
	switch (id) {
	case OPT_PROCESS_PID: choice->pid = value; break;
	case OPT_PROCESS_NAME:
		if (strpbrk(value, "/\\"))
			return err_set(err, ERR_IMAGE_NAME, value, NULL);
		choice->name = value;
		break;
	default: return id;
	}
	choice->count++;
	return 0;
}

int process_choice_check(const struct process_choice *choice, const char *place, struct err *err)
{
	if (choice->count == 1)
		return 0;
	return err_set(err, ERR_USAGE, place,
		choice->count ? "give one of -p and -pn, once" :
				"name the process: -p PID or -pn NAME");
}

int process_pid_parse(const char *text, uint32_t *pid, struct err *err)
{
	uint64_t number;

	if (kv_number(text, 10, &number) || !number || number > UINT32_MAX)
		return err_set(err, ERR_USAGE, text, "a pid is a decimal number; -pn takes a name");
	*pid = (uint32_t)number;
	return 0;
}

int process_choose(
	const struct process_choice *choice, bool with_all, uint32_t *pid, struct err *err)
{
	struct process_seen *seen = NULL;
	size_t count = 0;
	int rc;

	if (!choice->name)
		return process_pid_parse(choice->pid, pid, err);
	rc = process_ref_find(choice->name, &seen, &count, err);
	if (!rc && !count)
		rc = err_set(err, ERR_NO_PROCESS, choice->name, NULL);
	else if (!rc && count > 1)
		rc = series_several(choice->name, seen, count, with_all, err);
	else if (!rc)
		*pid = seen[0].pid;
	free(seen);
	return rc;
}

static int parse_content(struct snapshot_request *take, const char *value, struct err *err)
{
	uint64_t count;

	if (kv_number(value, 10, &count) || !count || count > CONTENT_BLOCKS_MAX)
		return err_set(err, ERR_USAGE, value, "--sample-content takes 1 to %d blocks",
			CONTENT_BLOCKS_MAX);
	take->options.content_count = (unsigned)count;
	return 0;
}

int dump_option(struct snapshot_request *take, int id, const char *value, struct err *err)
{
	switch (id) {
	case OPT_DUMP_STACKS: return capture_stacks_parse(value, &take->options.stacks, err);
	case OPT_DUMP_WALK: take->options.walks = true; return 0;
	case OPT_DUMP_LOST: take->options.finds_lost = true; return 0;
	case OPT_DUMP_INTERIOR:
		take->options.only_starts = !strcmp(value, "no");
		return take->options.only_starts || !strcmp(value, "yes") ?
			       0 :
			       err_set(err, ERR_USAGE, value, "--interior is yes or no");
	case OPT_DUMP_CONTENT: return parse_content(take, value, err);
	case OPT_DUMP_BY_STACK: take->by_stack = true; return 0;
	case OPT_DUMP_GZIP: take->is_packed = true; return 0;
	case OPT_DUMP_OVERWRITE: out_protect(NULL); return 0;
	case OPT_DUMP_FORCE: take->is_forced = true; return 0;
	case OPT_DUMP_VERBOSE: take->is_verbose = true; return 0;
	default: return id;
	}
}

int dump_check_out(
	const struct snapshot_request *take, const char *out, const char *option, struct err *err)
{
	bool is_file = out && strcmp(out, "-") != 0;

	if (take->is_packed && !is_file && os_is_terminal(stdout))
		return err_set(err, ERR_USAGE, "--gzip",
			"compressed output is not for a terminal; give %s", option);
	return 0;
}

void dump_name_add(
	struct buf *path, const char *pattern, const struct file_names *names, bool is_packed)
{
	struct buf name;

	buf_init(&name);
	buf_add_text(&name, "");
	file_pattern_add(&name, pattern, names);
	if (is_packed)
		packed_name_add(path, name.data);
	else
		buf_add_text(path, name.data);
	buf_release(&name);
}

#define MB_MIN 16
#define MB_MAX (sizeof(void *) == 8 ? 1 << 20 : 1024)
#define SAMPLE_MAX ((uint64_t)1 << 40)

int table_limit_parse(const char *text, uint64_t *bytes, struct err *err)
{
	uint64_t megabytes;

	if (kv_number(text, 10, &megabytes) || megabytes < MB_MIN || megabytes > MB_MAX)
		return err_set(err, ERR_USAGE, "--max-mb",
			"'%s' is not a number of MiB from %d to %d", text, MB_MIN, (int)MB_MAX);
	*bytes = megabytes << 20;
	return 0;
}

int table_sample_parse(const char *text, uint64_t *bytes, struct err *err)
{
	uint64_t mean;

	if (size_parse(text, strlen(text), &mean) || !mean || mean > SAMPLE_MAX)
		return err_set(err, ERR_USAGE, "--sample",
			"'%s' is not a number of bytes up to 1T: write 65536, 512K or 1M", text);
	*bytes = mean;
	return 0;
}

/* Formats a number; "?" if the number is not known. */
static const char *number(char text[24], int64_t value)
{
	snprintf(text, 24, value < 0 ? "?" : "%" PRId64, value);
	return text;
}

/* Formats a size, such as "12.3 MiB". */
static const char *size_words(char text[24], uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double size = (double)bytes / 1024;
	size_t unit = 0;

	if (bytes == KEPT_UNKNOWN_BYTES)
		return "?";
	while (size >= 999.95) {
		size /= 1024;
		unit++;
	}
	snprintf(text, 24, "%.1f %s", size, units[unit]);
	return text;
}

#define NARROW_COLUMNS 100 /* narrower terminals get short start times */
#define DAY_MS (INT64_C(24) * 3600 * 1000)

/* Formats a start time, such as "2026-11-20T10:25Z". If `is_short` is set, only the time of day, or
 * the date if the process started more than a day before `now_ms`: "10:25Z", "11-20". */
static const char *start_words(
	char text[DATE_TEXT_BYTES], int64_t start_ms, bool is_short, int64_t now_ms)
{
	if (!start_ms)
		return "?";
	date_text(start_ms, text);
	if (strlen(text) <= strlen("2026-11-20T10:25"))
		return text;
	memcpy(text + strlen("2026-11-20T10:25"), "Z", 2);
	if (!is_short)
		return text;
	if (now_ms - start_ms < DAY_MS)
		return text + strlen("2026-11-20T");
	text[strlen("2026-11-20")] = '\0';
	return text + strlen("2026-");
}

/* Returns the part of a command line after its first word, which is the program and may be in
 * quotation marks. */
static const char *arguments_of(const char *command_line)
{
	const bool is_quoted = *command_line == '"';

	command_line += is_quoted;
	command_line += strcspn(command_line, is_quoted ? "\"" : " \t");
	command_line += *command_line == '"';
	return command_line + strspn(command_line, " \t");
}

/* Cuts a text that needs more columns. */
static void cut_text(char *text, unsigned columns)
{
	unsigned width;

	for (size_t len; *text; text += len, columns -= width) {
		len = text_char(text, &width);
		if (width > columns) {
			*text = '\0';
			return;
		}
	}
}

static void write_row(FILE *to, struct buf *line, unsigned columns)
{
	text_harmless(line->data);
	if (columns)
		cut_text(line->data, columns);
	fprintf(to, "%s\n", line->data);
	buf_clear(line);
}

void ps_print(FILE *to, const struct ps_row *rows, size_t count, unsigned columns, int64_t now_ms)
{
	const bool is_narrow = columns && columns < NARROW_COLUMNS;
	const int thread_width = is_narrow ? 4 : 7, start_width = is_narrow ? 7 : 17;
	struct buf line;
	bool has_gdi = false;

	for (size_t i = 0; i < count; i++)
		has_gdi = has_gdi || rows[i].gdi_count >= 0;
	buf_init(&line);
	buf_printf(&line, "%6s %4s %5s  %-8s %9s %*s %7s%s  %-*s  %s", "pid", "bits", "heaps",
		"stacks", "private", thread_width, is_narrow ? "thr" : "threads", "handles",
		has_gdi ? "   gdi" : "", start_width, "started", "name  command line");
	write_row(to, &line, columns);
	for (size_t i = 0; i < count; i++) {
		const struct ps_row *row = &rows[i];
		char bits[24], heaps[24], size[24], start[DATE_TEXT_BYTES];
		char threads[24], handles[24], gdi[24];
		const char *command = row->command_line ? row->command_line : "?";

		if (columns && row->command_line)
			command = arguments_of(command);
		buf_printf(&line, "%6" PRIu32 " %4s %5s  %-8s %9s %*s %7s", row->pid,
			number(bits, row->bits ? (int64_t)row->bits : -1),
			number(heaps, row->heap_count), row->stacks ? row->stacks : "?",
			size_words(size, row->private_bytes), thread_width,
			number(threads, row->thread_count), number(handles, row->handle_count));
		if (has_gdi)
			buf_printf(&line, " %5s", number(gdi, row->gdi_count));
		buf_printf(&line, "  %-*s  %s%s%s", start_width,
			start_words(start, row->start_ms, is_narrow, now_ms), row->name,
			*command ? "  " : "", command);
		write_row(to, &line, columns);
	}
	buf_release(&line);
}

void ps_print_missing(FILE *to, size_t closed_count, size_t other_count, size_t ended_count)
{
	if (other_count)
		fprintf(to, "hsnap: use the 64-bit hsnap for 64-bit processes (%zu of them)\n",
			other_count);
	if (closed_count)
		fprintf(to,
			"hsnap: %zu of the processes, shown as ?, cannot be read: run hsnap as "
			"administrator\n",
			closed_count);
	if (ended_count)
		fprintf(to, "hsnap: %zu more ended before they could be read\n", ended_count);
}

#define SPAN_MIN_MS INT64_C(1000)
#define SPAN_MAX_MS (INT64_C(365) * 24 * 3600 * 1000)

int series_span_parse(const char *option, const char *text, int64_t *ms, struct err *err)
{
	int64_t span;

	if (duration_parse(text, &span))
		return err_set(err, ERR_USAGE, option,
			"'%s' is not a duration: write 30s, 30m, 1h30m or 2d", text);
	if (span < SPAN_MIN_MS || span > SPAN_MAX_MS)
		return err_set(err, ERR_USAGE, option, "%s is not between 1s and 365d", text);
	*ms = span;
	return 0;
}

static int parse_size(const char *option, const char *text, uint64_t *bytes, struct err *err)
{
	uint64_t size;

	if (size_parse(text, strlen(text), &size) || !size)
		return err_set(err, ERR_USAGE, option,
			"'%s' is not a size: write 65536, 64K, 1.5M or 2G", text);
	*bytes = size;
	return 0;
}

int series_growth_parse(
	const char *text, enum balance_figure *figure, uint64_t *growth, struct err *err)
{
	static const enum balance_figure figures[] = {
		BALANCE_PRIVATE, BALANCE_THREADS, BALANCE_HANDLES, BALANCE_GDI, BALANCE_USER};
	const char *colon = strchr(text, ':');

	*figure = BALANCE_PRIVATE;
	if (!colon)
		return parse_size("--growth", text, growth, err);
	for (size_t i = 0; i < sizeof(figures) / sizeof(*figures); i++) {
		const struct balance_word *word = &balance_words[figures[i]];

		if (!text_same(text, (size_t)(colon - text), word->key, strlen(word->key)))
			continue;
		*figure = figures[i];
		if (!word->is_count)
			return parse_size("--growth", colon + 1, growth, err);
		if (!kv_number(colon + 1, 10, growth) && *growth)
			return 0;
		return err_set(
			err, ERR_USAGE, "--growth", "'%s' is not a number above 0", colon + 1);
	}
	return err_set(err, ERR_USAGE, "--growth",
		"'%s': known figures are private, threads, handles, gdi and user", text);
}

static int parse_count(const char *option, const char *text, uint64_t *count, struct err *err)
{
	uint64_t number;

	if (kv_number(text, 10, &number) || !number || number > INT32_MAX)
		return err_set(err, ERR_USAGE, option, "'%s' is not a number of files", text);
	*count = number;
	return 0;
}

int series_option(struct series_request *request, int id, const char *value, struct err *err)
{
	static const char *const names[] = {
		"--count", "--keep", "--max-bytes", "--on-exit", "--all", "--log"};
	const char *name = "";

	if (id >= OPT_SERIES_COUNT && id <= OPT_SERIES_LOG)
		request->given = name = names[id - OPT_SERIES_COUNT];
	switch (id) {
	case OPT_SERIES_COUNT: return parse_count(name, value, &request->file_count, err);
	case OPT_SERIES_KEEP: return parse_count(name, value, &request->limits.keep_count, err);
	case OPT_SERIES_MAX_BYTES: return parse_size(name, value, &request->limits.keep_bytes, err);
	case OPT_SERIES_ON_EXIT:
		request->waits = !strcmp(value, "wait");
		if (!request->waits && strcmp(value, "stop") != 0)
			return err_set(err, ERR_USAGE, name, "takes stop or wait");
		return 0;
	case OPT_SERIES_ALL: request->takes_all = true; return 0;
	case OPT_SERIES_LOG: request->log = value; return 0;
	default: break;
	}
	id = process_option(&request->process, id, value, err);
	return id > 0 ? dump_option(&request->take, id, value, err) : id;
}

bool series_is_log(const struct series_request *request, const char *path)
{
	if (!request->log || os_is_special(path))
		return false;
	return !strcmp(request->log, path) || os_same_file(request->log, path);
}

/* Returns true if the pattern without words is the name of the log file. */
static bool is_written_to_log(const struct series_request *request)
{
	struct buf path;
	bool result;

	buf_init(&path);
	dump_name_add(
		&path, request->out, &(struct file_names){.program = ""}, request->take.is_packed);
	result = series_is_log(request, path.data);
	buf_release(&path);
	return result;
}

int series_check(const struct series_request *request, unsigned *words, struct err *err)
{
	const char *option = request->given ? request->given : "-f", *name = request->process.name;
	bool is_series = request->every_ms || request->limits.keep_count != UINT64_MAX ||
			 request->limits.keep_bytes != UINT64_MAX;
	unsigned found = 0;

	if (!request->out || !strcmp(request->out, "-"))
		return err_set(err, ERR_USAGE, option, "needs a file: -f OUT");
	if (request->file_count && !request->every_ms)
		return err_set(err, ERR_USAGE, "--count", "needs --every T");
	if (file_pattern_check(request->out, &found, err))
		return -ERR_USAGE;
	if (request->takes_all && !name)
		return err_set(err, ERR_USAGE, "--all", "needs a name: -pn NAME");
	if (request->waits && !name)
		return err_set(err, ERR_USAGE, "--on-exit wait",
			"a restarted process has another pid: give -pn NAME");
	if (is_series && !(found & (PATTERN_TIME | PATTERN_NUMBER)))
		return err_set(err, ERR_USAGE, request->out,
			"each snapshot needs a file of its own: put {time} or {n} into its name");
	if (request->takes_all && !(found & PATTERN_PID))
		return err_set(err, ERR_USAGE, request->out,
			"with --all each process needs a file of its own: put {pid} into its name");
	if (!found && is_written_to_log(request))
		return err_set(err, ERR_USAGE, request->out, SERIES_IS_LOG);
	*words = found;
	return 0;
}
