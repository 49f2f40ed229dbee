/* Reading the input files: messages about them, heads of dumps, the choice according to --since and
 * --until, and reading whole files on several threads. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stdatomic.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/parse.h"
#include "core/base/text.h"
#include "core/dump/dump_head.h"
#include "diff/hdiff.h"
#include "diff/input_parts.h"
#include "diff/printed/printed.h"
#include "diff/read/dump_sums.h"
#include "diff/read/read_dump.h"
#include "diff/series_list.h"

void message_line(FILE *say, const char *format, ...)
{
	char small[200], *words = small;
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(small, sizeof(small), format, args);
	va_end(args);
	if (len >= (int)sizeof(small)) {
		words = xmalloc((size_t)len + 1);
		va_start(args, format);
		vsnprintf(words, (size_t)len + 1, format, args);
		va_end(args);
	}
	fprintf(say, "hdiff: %s\n", text_harmless(words));
	fflush(say);
	if (words != small)
		free(words);
}

void message_warning(FILE *say, const char *place, const char *what, const char *text)
{
	message_line(say, "%s: warning: %s%s", place, what, text);
}

void message_left_out(FILE *say, const char *place, const char *why)
{
	message_warning(say, place, "left out: ", why);
}

/* Prints the reason's own place if it has one, because that place may be a line of the file. */
void message_damaged(FILE *say, const char *place, const struct err *why)
{
	struct err without_place = *why;
	char text[sizeof(why->detail) + 200];

	without_place.place[0] = '\0';
	message_left_out(say, why->place[0] ? why->place : place,
		err_reason(&without_place, text, sizeof(text)));
}

void message_cut(FILE *say, const struct err *err)
{
	message_warning(say, err->place, "cut short, and used up to there: ", err->detail);
}

/* Malformed lines are reported with their own place. */
void message_warnings(FILE *say, const char *name, const struct dump_sums *sums)
{
	for (size_t i = 0; i < sums->warning_count && i < WARNINGS_MAX; i++) {
		const struct left_out *line = &sums->left_out[i];

		if (line->place)
			message_left_out(say, line->place, line->why);
		else
			message_warning(say, name, "", sums->warnings[i]);
	}
	if (sums->warning_count > WARNINGS_MAX)
		message_line(
			say, "%s: warning: and %zu more", name, sums->warning_count - WARNINGS_MAX);
}

void message_series_warnings(FILE *say, const struct dump_sums *dumps, size_t count)
{
	struct dump_warnings warnings;
	struct buf words;

	buf_init(&words);
	dump_warnings_gather(&warnings, dumps, count);
	for (size_t i = 0; i < warnings.count; i++) {
		const struct dump_warning *warning = &warnings.items[i];
		const struct left_out none = {0}, *line = &none;

		if (warning->number < WARNINGS_MAX)
			line = &warning->first->left_out[warning->number];
		buf_clear(&words);
		dump_warning_words(&words, warning);
		if (line->place)
			message_left_out(say, line->place, line->why);
		else
			message_warning(say, warning->first->path, "", words.data);
	}
	dump_warnings_release(&warnings);
	buf_release(&words);
}

int moment_parse(const char *text, bool is_end, struct moment *moment)
{
	int64_t ms, last_ms;

	if (!duration_parse(text, &ms)) {
		*moment = (struct moment){MOMENT_BEFORE_NEWEST, ms};
		return 0;
	}
	if (date_span_parse(text, &ms, &last_ms))
		return -ERR_USAGE;
	*moment = (struct moment){MOMENT_AT, is_end ? last_ms : ms};
	return 0;
}

int64_t moment_ms(const struct moment *moment, int64_t newest_ms)
{
	if (moment->kind == MOMENT_AT)
		return moment->ms;
	return newest_ms >= INT64_MIN + moment->ms ? newest_ms - moment->ms : INT64_MIN;
}

/* Reader of a dump's process and time. It reads up to the first block. */

struct head_reader {
	struct sum_reader reader;
	enum file_kind kind;
};

/* Refuses a comparison, although it may contain lines of a dump. */
static int look_at_line(void *ctx, const char *text, size_t len)
{
	struct head_reader *head = ctx;

	if (head->kind == FILE_UNKNOWN)
		head->kind = file_kind_of(text, len);
	return head->kind == FILE_COMPARISON ? -ERR_NOT_DUMP : 0;
}

/* Collects modules, which reveal the image if no note contains it. */
static int take_module(void *ctx, uint64_t base, uint64_t size_bytes, const char *path, size_t len)
{
	struct head_reader *head = ctx;

	return module_list_add(&head->reader.modules, base, size_bytes, path, len);
}

static int end_at_heap(void *ctx, uint64_t addr)
{
	(void)ctx;
	(void)addr;
	return DUMP_HEAD_ENOUGH;
}

static int end_at_entry(void *ctx, const struct dump_entry *entry)
{
	(void)ctx;
	(void)entry;
	return DUMP_HEAD_ENOUGH;
}

static int take_note(void *ctx, const char *kind, const struct kv *pairs)
{
	struct head_reader *head = ctx;
	const struct dump_sums *sums = head->reader.sums;
	int rc = 0;

	if (!strcmp(kind, "dump") || !strcmp(kind, "process") || !strcmp(kind, "umdh"))
		rc = sum_reader_note(&head->reader, kind, pairs);
	if (!rc && sums->time_ms && sums->pid && sums->start_ms && sums->image)
		rc = DUMP_HEAD_ENOUGH;
	return rc;
}

int sums_read_head(struct dump_sums *sums, const char *path, struct source *source, struct err *err)
{
	struct err local;
	struct head_reader head = {.reader = {.sums = sums, .err = err ? err : &local}};
	const struct dump_sink sink = {.ctx = &head,
		.line = look_at_line,
		.module = take_module,
		.heap = end_at_heap,
		.entry = end_at_entry,
		.note = take_note};
	int rc;

	module_list_init(&head.reader.modules, &sums->module_texts);
	sums->path = arena_text(&sums->arena, path, strlen(path));
	rc = dump_head_scan(source, &sink, err);
	module_list_finish(&head.reader.modules);
	sums->modules = head.reader.modules.items;
	sums->module_count = head.reader.modules.count;
	head.reader.modules.items = NULL;
	module_list_release(&head.reader.modules);
	sums_copy_banner(sums);
	return rc;
}

/* Reads only the head, and stores only the snapshot's process and time. A file that cannot be
 * opened or has no sound head is reported later, when it is read whole. */
static void read_head(struct read_file *file, struct stack_store *store)
{
	const char *path = file->item->path, *image;
	struct source *source;
	struct dump_sums head;
	int rc;

	if (!strcmp(path, "-") || os_is_special(path) || file->item->part.moment ||
		source_open(&source, path, NULL))
		return;
	sums_init(&head);
	rc = sums_read_head(&head, path, source, NULL);
	source_close(source);
	if (!rc && head.time_ms) {
		image = dump_image(&head);
		file->sums.path = path;
		file->sums.image = image ? stack_store_text(store, image) : NULL;
		file->sums.host = head.host ? stack_store_text(store, head.host) : NULL;
		file->sums.pid = head.pid;
		file->sums.time_ms = head.time_ms;
		file->sums.start_ms = head.start_ms;
		file->sums.clock_ms = head.clock_ms;
		file->sums.has_wall_time = head.has_wall_time;
		file->kind = FILE_DUMP;
		file->is_unread = true;
	}
	sums_release(&head);
}

/* Returns the time of the newest file that is usable or not yet read whole, or 0 if there is no
 * such file. */
static int64_t find_newest(
	const struct read_file *files, size_t count, const struct time_filter *window)
{
	int64_t newest = 0;

	for (size_t i = 0; i < count; i++) {
		bool is_usable =
			!read_file_is_damaged(&files[i]) ||
			(window->takes_damaged && (!files[i].rc || files[i].rc == -ERR_CUT));

		if (is_usable && files[i].sums.time_ms > newest)
			newest = files[i].sums.time_ms;
	}
	return newest;
}

/* Corrects the times of all known heads using the machine's clock. */
static void finish_heads(struct read_file *files, size_t count)
{
	struct dump_sums **dumps = xcalloc(count + 1, sizeof(struct dump_sums *));
	size_t known = 0;

	for (size_t i = 0; i < count; i++) {
		if (files[i].sums.clock_ms && !read_file_is_damaged(&files[i]))
			dumps[known++] = &files[i].sums;
	}
	dumps_correct_clocks(dumps, known, NULL, NULL);
	free(dumps);
}

/* Stores in `numbers` the unread files that must be read whole, according to what is known now.
 * Returns the number of these files; 0: all done. */
static size_t find_wanted(
	struct read_file *files, size_t count, const struct time_filter *window, size_t *numbers)
{
	int64_t newest, from, to;
	bool goes_by_newest = window->since.kind == MOMENT_BEFORE_NEWEST ||
			      window->until.kind == MOMENT_BEFORE_NEWEST;
	size_t found = 0;

	finish_heads(files, count);
	newest = find_newest(files, count, window);
	from = window->since.kind ? moment_ms(&window->since, newest) : INT64_MIN;
	to = window->until.kind ? moment_ms(&window->until, newest) : INT64_MAX;
	for (size_t i = 0; i < count; i++) {
		int64_t time_ms = files[i].sums.time_ms;

		if (files[i].is_unread && ((time_ms >= from && time_ms <= to) ||
						  (goes_by_newest && time_ms == newest)))
			numbers[found++] = i;
	}
	return found;
}

#define THREADS_MAX 8

/* Work on some of the files, identified by their numbers. */
struct file_reading {
	struct read_file *files;
	size_t *numbers;
	size_t count;
	struct stack_store *store; /* NULL: named files, each read separately */
	unsigned cores;
	bool is_of_heads;
	atomic_size_t next;
};

/* Reads a part of a recording, which requires random access. */
static int read_recording(struct read_file *file, struct source *source, struct err *err)
{
	const struct file_item *item = file->item;
	uint64_t from, to;

	if (!source_is_plain(source, &from, &to))
		return err_set(err, ERR_NOT_DUMP, source_name(source),
			"a recording is read only from a file, neither packed nor from a pipe");
	return sums_read_recording(&file->sums, item->path, item->file, &item->part, err);
}

/* Reads a source. Leaves the source of a printed comparison open, if one is allowed. */
static int read_source(const struct file_reading *reading, struct read_file *file,
	struct source **source, unsigned threads, struct err *err)
{
	const char *words = NULL, *name = source_name(*source);
	int rc = input_kind(file->item->path, *source, &file->kind, &words, err);

	if (rc)
		return rc;
	if (file->kind == FILE_RECORDING)
		return read_recording(file, *source, err);
	if (file->item->part.is_asked)
		return err_set(err, ERR_NOT_RECORDING, name, NULL);
	file->is_log = reading->store && file->item->is_found && file->kind == FILE_UNKNOWN &&
		       input_is_log(*source);
	if (file->is_log)
		return err_set(err, ERR_NOT_DUMP, name, NULL);
	if (file->kind == FILE_COMPARISON && reading->store)
		return err_set(err, ERR_NOT_DUMP, name,
			"a comparison; comparisons are read alone or in a row, not beside dumps");
	if (file->kind == FILE_COMPARISON) {
		file->printed = *source;
		*source = NULL;
		return 0;
	}
	file->sums.wants_listed = file->item->part.wants_blocks;
	rc = sums_read_with(&file->sums, file->item->path, *source, threads, err);
	/* An almost correct line explains more than "not a dump". */
	if (rc == -ERR_NOT_DUMP && words && (strncmp(words, "nor ", 4) != 0 || !err->detail[0]))
		return err_set(err, ERR_NOT_DUMP, name, "%s", words);
	return rc;
}

/* Reads a whole file. Frees a dump that cannot be used. */
static void read_whole(const struct file_reading *reading, struct read_file *file, unsigned threads)
{
	struct err err = {0};
	struct source *source;

	sums_release(&file->sums);
	file->is_unread = false;
	file->rc = source_open(&source, file->item->file, &err);
	if (!file->rc) {
		file->rc = read_source(reading, file, &source, threads, &err);
		if (source)
			source_close(source);
	}
	if (file->rc) { /* allocated, because it is large and rare */
		file->err = xmalloc(sizeof(err));
		*file->err = err;
	}
	stack_totals_pack(&file->sums);
	if (!reading->store)
		return;
	if (file->rc && file->rc != -ERR_CUT) {
		sums_release(&file->sums);
		return;
	}
	sums_copy_banner(&file->sums);
	stack_store_add(reading->store, &file->sums);
}

/* Reads one file after another on each thread. The last files are read with several threads each,
 * because some threads have no file left. */
static void read_some(void *ctx, unsigned number)
{
	struct file_reading *reading = ctx;
	size_t at;

	(void)number;
	while ((at = atomic_fetch_add(&reading->next, 1)) < reading->count) {
		struct read_file *file = &reading->files[reading->numbers[at]];
		size_t left = reading->count - at;

		if (reading->is_of_heads)
			read_head(file, reading->store);
		else
			read_whole(reading, file,
				left < reading->cores ? reading->cores / (unsigned)left : 1);
	}
}

static void read_all(struct file_reading *reading)
{
	atomic_store(&reading->next, 0);
	thread_run(reading->cores < reading->count ? reading->cores : (unsigned)reading->count,
		read_some, reading);
}

/* Collects the numbers of files that were not read at all, not even their heads. */
static void find_unknown(struct file_reading *reading, size_t count)
{
	reading->count = 0;
	for (size_t i = 0; i < count; i++) {
		if (!reading->files[i].item->is_double && !reading->files[i].is_unread)
			reading->numbers[reading->count++] = i;
	}
}

static int too_many(size_t count, bool has_window, struct err *err)
{
	return err_set(err, ERR_USAGE, has_window ? "--since, --until" : "a trend",
		"%zu files match, and at most %d are read; %s", count, READ_MAX,
		has_window ? "choose a shorter time" :
			     "use a narrower pattern, --since or --until");
}

/* Reads the files that are needed. Their content may show that other files are needed, too. */
static int read_wanted(struct file_reading *reading, size_t count, const struct time_filter *window,
	struct err *err)
{
	bool has_window = window->since.kind || window->until.kind;
	size_t total = 0;

	find_unknown(reading, count);
	if (has_window) {
		reading->is_of_heads = true;
		read_all(reading);
		reading->is_of_heads = false;
		find_unknown(reading, count);
		reading->count += find_wanted(
			reading->files, count, window, &reading->numbers[reading->count]);
	}
	while (reading->count) {
		total += reading->count;
		if (total > READ_MAX)
			return too_many(total, has_window, err);
		read_all(reading);
		reading->count =
			has_window ? find_wanted(reading->files, count, window, reading->numbers) :
				     0;
	}
	return 0;
}

int read_files(struct read_file *files, const struct file_item *items, size_t count,
	const struct time_filter *window, struct stack_store *store, struct err *err)
{
	struct file_reading reading = {.files = files, .store = store, .cores = thread_cores()};
	int rc = 0;

	reading.cores = reading.cores < THREADS_MAX ? reading.cores : THREADS_MAX;
	for (size_t i = 0; i < count; i++) {
		files[i] = (struct read_file){.item = &items[i]};
		sums_init(&files[i].sums);
	}
	if (store) {
		reading.numbers = xcalloc(count + 1, sizeof(*reading.numbers));
		rc = read_wanted(&reading, count, window, err);
		free(reading.numbers);
	}
	for (size_t i = 0; !store && i < count; i++) {
		read_whole(&reading, &files[i], 0);
		if (files[i].printed || (files[i].rc && files[i].rc != -ERR_CUT))
			break; /* the remaining files are not needed */
	}
	return rc;
}

void read_files_release(struct read_file *files, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		sums_release(&files[i].sums);
		free(files[i].err);
		if (files[i].printed)
			source_close(files[i].printed);
	}
}

bool read_file_is_damaged(const struct read_file *file)
{
	return file->rc || file->sums.skip_count;
}
