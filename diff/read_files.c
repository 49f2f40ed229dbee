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

int say_warning(FILE *say, const char *place, const char *what, const char *text)
{
	struct buf words;
	int rc;

	buf_init(&words);
	rc = buf_printf(&words, "%s: warning: %s%s", place, what, text);
	if (!rc) {
		fprintf(say, "hdiff: %s\n", text_harmless(words.data));
		fflush(say);
	}
	buf_release(&words);
	return rc;
}

int say_left_out(FILE *say, const char *place, const char *why)
{
	return say_warning(say, place, "left out: ", why);
}

/* The place is told by the reason: it may be a line of the file. */
int say_damaged(FILE *say, const char *place, const struct err *why)
{
	struct err without_place = *why;
	char text[sizeof(why->detail) + 200];

	without_place.place[0] = '\0';
	return say_left_out(say, why->place[0] ? why->place : place,
		err_reason(&without_place, text, sizeof(text)));
}

int say_cut(FILE *say, const struct err *err)
{
	return say_warning(
		say, err->place, "it is cut short and used as far as it goes: ", err->detail);
}

/* Lines that were left out have their own place. */
int say_warnings(FILE *say, const char *name, const struct dump_sums *sums)
{
	char text[60];
	int rc = 0;

	for (size_t i = 0; !rc && i < sums->warning_count && i < WARNINGS_MAX; i++) {
		const struct left_out *line = &sums->left_out[i];

		rc = line->place ? say_left_out(say, line->place, line->why) :
				   say_warning(say, name, "", sums->warnings[i]);
	}
	if (!rc && sums->warning_count > WARNINGS_MAX) {
		snprintf(text, sizeof(text), "and %zu more", sums->warning_count - WARNINGS_MAX);
		rc = say_warning(say, name, "", text);
	}
	return rc;
}

static int say_dump_warning(FILE *say, const struct dump_warning *warning)
{
	const struct left_out none = {0}, *line = &none;
	struct buf words;
	int rc;

	if (warning->number < WARNINGS_MAX)
		line = &warning->first->left_out[warning->number];
	if (line->place)
		return say_left_out(say, line->place, line->why);
	buf_init(&words);
	rc = dump_warning_words(&words, warning);
	if (!rc)
		rc = say_warning(say, warning->first->path, "", words.data);
	buf_release(&words);
	return rc;
}

int say_series_warnings(FILE *say, const struct dump_sums *dumps, size_t count)
{
	struct dump_warnings warnings;
	int rc = dump_warnings_gather(&warnings, dumps, count);

	for (size_t i = 0; !rc && i < warnings.count; i++)
		rc = say_dump_warning(say, &warnings.items[i]);
	dump_warnings_release(&warnings);
	return rc;
}

/* Texts that are shorter than the whole, and what completes them. */
static const struct form {
	size_t len;
	const char *rest;
	int64_t span_ms; /* that such a text stands for */
} forms[] = {
	{sizeof("2026-11-20") - 1, "T00:00:00Z", 86400000},
	{sizeof("2026-11-20T10:00") - 1, ":00Z", 60000},
	{sizeof("2026-11-20T10:00:00") - 1, "Z", 1000},
	{sizeof("2026-11-20T10:00:00.000") - 1, "Z", 1},
};

static const struct form *form_of(size_t len)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		if (forms[i].len == len)
			return &forms[i];
	}
	return NULL;
}

int moment_parse(const char *text, bool is_end, struct moment *moment)
{
	size_t len = strlen(text);
	const struct form *form;
	char whole[40];
	int64_t ms;

	if (!duration_parse(text, &ms)) {
		*moment = (struct moment){MOMENT_BEFORE_NEWEST, ms};
		return 0;
	}
	if (len && text[len - 1] == 'Z')
		len--;
	form = form_of(len);
	if (!form)
		return -ERR_USAGE;
	snprintf(whole, sizeof(whole), "%.*s%s", (int)len, text, form->rest);
	if (date_parse(whole, &ms))
		return -ERR_USAGE;
	*moment = (struct moment){MOMENT_AT, is_end ? ms + form->span_ms - 1 : ms};
	return 0;
}

int64_t moment_ms(const struct moment *moment, int64_t newest_ms)
{
	if (moment->kind == MOMENT_AT)
		return moment->ms;
	return newest_ms >= INT64_MIN + moment->ms ? newest_ms - moment->ms : INT64_MIN;
}

/* What a dump says about its process and its time before it tells of any block. */

struct head_reader {
	struct sum_reader reader;
	enum file_kind kind;
};

/* A comparison is none, though it may hold lines of a dump. */
static int look_at_line(void *ctx, const char *text, size_t len)
{
	struct head_reader *head = ctx;

	if (head->kind == FILE_UNKNOWN)
		head->kind = file_kind_of(text, len);
	return head->kind == FILE_COMPARISON ? -ERR_NOT_DUMP : 0;
}

/* Modules may tell the image, when no note does. */
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
	rc = sums->path ? dump_head_scan(source, &sink, err) : -ERR_NOMEM;
	module_list_finish(&head.reader.modules);
	sums->modules = head.reader.modules.items;
	sums->module_count = head.reader.modules.count;
	head.reader.modules.items = NULL;
	module_list_release(&head.reader.modules);
	sums_take_banner(sums);
	return rc;
}

/* Keeps what says which snapshot it is, and no more memory than that takes. */
static int keep(struct read_file *file, const struct dump_sums *head, struct stack_store *store)
{
	const char *image = dump_image(head);
	const char *own = image ? stack_store_text(store, image) : NULL;

	if (image && !own)
		return -ERR_NOMEM;
	file->sums.path = file->item->path;
	file->sums.image = own;
	file->sums.pid = head->pid;
	file->sums.time_ms = head->time_ms;
	file->sums.start_ms = head->start_ms;
	file->sums.has_wall_time = head->has_wall_time;
	file->kind = FILE_DUMP;
	file->is_unread = true;
	return 0;
}

/* What cannot be opened, or has no sound head, is told of by whoever reads it whole. */
static int read_window_look(struct read_file *file, struct stack_store *store)
{
	const char *path = file->item->path;
	struct source *source;
	struct dump_sums head;
	int rc;

	if (!strcmp(path, "-") || os_is_special(path) || source_open(&source, path, NULL))
		return 0;
	sums_init(&head);
	rc = sums_read_head(&head, path, source, NULL);
	source_close(source);
	if (!rc && head.time_ms)
		rc = keep(file, &head, store);
	sums_release(&head);
	return rc == -ERR_NOMEM ? rc : 0;
}

static bool is_usable(const struct read_file *file, const struct time_filter *wishes)
{
	return !read_file_is_damaged(file) ||
	       (wishes->takes_damaged && (!file->rc || file->rc == -ERR_CUT));
}

/* The newest of those that can be used, or of which nobody knows; 0: none. */
static int64_t find_newest(
	const struct read_file *files, size_t count, const struct time_filter *wishes)
{
	int64_t newest = 0;

	for (size_t i = 0; i < count; i++) {
		if (files[i].sums.time_ms > newest && is_usable(&files[i], wishes))
			newest = files[i].sums.time_ms;
	}
	return newest;
}

/* Puts into numbers[] those of files that are unread and must not stay so, now that so much is known: how
 * many, 0 when all is done. */
static size_t read_window_find(const struct read_file *files, size_t count,
	const struct time_filter *wishes, size_t *numbers)
{
	int64_t newest = find_newest(files, count, wishes);
	int64_t from = wishes->since.kind ? moment_ms(&wishes->since, newest) : INT64_MIN;
	int64_t to = wishes->until.kind ? moment_ms(&wishes->until, newest) : INT64_MAX;
	bool goes_by_newest = wishes->since.kind == MOMENT_BEFORE_NEWEST ||
			      wishes->until.kind == MOMENT_BEFORE_NEWEST;
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		int64_t time_ms = files[i].sums.time_ms;

		if (files[i].is_unread && ((time_ms >= from && time_ms <= to) ||
						  (goes_by_newest && time_ms == newest)))
			numbers[found++] = i;
	}
	return found;
}

#define THREADS_MAX 8

/* Work on some of the files, by their numbers. */
struct file_reading {
	struct read_file *files;
	const size_t *numbers;
	size_t count;
	struct stack_store *store;
	unsigned cores;
	void (*work_on)(struct file_reading *reading, size_t at);
	atomic_size_t next;
	atomic_bool is_short; /* of memory */
};

static void run_some(void *ctx, unsigned number)
{
	struct file_reading *reading = ctx;
	size_t at;

	(void)number;
	while ((at = atomic_fetch_add(&reading->next, 1)) < reading->count)
		reading->work_on(reading, at);
}

static int run_all(struct file_reading *reading)
{
	atomic_store(&reading->next, 0);
	thread_run(reading->cores < reading->count ? reading->cores : (unsigned)reading->count,
		run_some, reading);
	return atomic_load(&reading->is_short) ? -ERR_NOMEM : 0;
}

static int read_dump(
	struct read_file *file, struct source *source, unsigned threads, struct err *err)
{
	const char *words = NULL;
	int rc = input_kind(file->item->path, source, &file->kind, &words, err);

	if (rc)
		return rc;
	file->is_log = file->item->is_found && file->kind == FILE_UNKNOWN && input_is_log(source);
	if (file->is_log)
		return err_set(err, ERR_NOT_DUMP, source_name(source), NULL);
	if (file->kind == FILE_COMPARISON)
		return err_set(err, ERR_NOT_DUMP, source_name(source),
			"it is a comparison, which is read alone");
	rc = sums_read_with(&file->sums, file->item->path, source, threads, err);
	if (rc == -ERR_NOT_DUMP && words)
		return err_set(err, ERR_NOT_DUMP, source_name(source), "%s", words);
	return rc;
}

/* What is of no use gives its memory back. 0 or -ERR_NOMEM. */
static int read_one(struct read_file *file, struct stack_store *store, unsigned threads)
{
	struct err err = {0};
	struct source *source;

	sums_release(&file->sums);
	file->is_unread = false;
	file->rc = source_open(&source, file->item->path, &err);
	if (!file->rc) {
		file->rc = read_dump(file, source, threads, &err);
		source_close(source);
	}
	if (file->rc == -ERR_NOMEM)
		return -ERR_NOMEM;
	if (file->rc) { /* few of many, and large */
		file->err = malloc(sizeof(err));
		if (!file->err)
			return -ERR_NOMEM;
		*file->err = err;
	}
	if (file->rc && file->rc != -ERR_CUT) {
		sums_release(&file->sums);
		return 0;
	}
	sums_take_banner(&file->sums);
	return stack_store_take(store, &file->sums);
}

/* A thread for each file, and for the last ones the threads that have no file of their own. */
static void read_at(struct file_reading *reading, size_t at)
{
	size_t left = reading->count - at;

	if (read_one(&reading->files[reading->numbers[at]], reading->store,
		    left < reading->cores ? reading->cores / (unsigned)left : 1))
		atomic_store(&reading->is_short, true);
}

static void look_at(struct file_reading *reading, size_t at)
{
	if (read_window_look(&reading->files[reading->numbers[at]], reading->store))
		atomic_store(&reading->is_short, true);
}

static size_t find_heads(const struct read_file *files, size_t count, size_t *numbers)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		if (!files[i].item->is_double)
			numbers[found++] = i;
	}
	return found;
}

/* All but those that have a head. */
static size_t find_headless(const struct read_file *files, size_t count, size_t *numbers)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		if (!files[i].item->is_double && !files[i].is_unread)
			numbers[found++] = i;
	}
	return found;
}

static int too_many(size_t count, const struct time_filter *wishes, struct err *err)
{
	bool has_window = wishes->since.kind || wishes->until.kind;

	return err_set(err, ERR_USAGE, has_window ? "--since, --until" : "a trend",
		"%zu files are to be read, and %d are the most; %s", count, READ_MAX,
		has_window ? "ask for less time" :
			     "name fewer by a pattern, or say --since or --until");
}

/* Reads those that are wanted; what they turn out to be may make others wanted. */
static int read_wanted(struct file_reading *reading, size_t *numbers, size_t count,
	const struct time_filter *wishes, struct err *err)
{
	bool has_window = wishes->since.kind || wishes->until.kind;
	size_t total = 0;
	int rc = 0;

	reading->work_on = read_at;
	reading->count = find_headless(reading->files, count, numbers);
	if (has_window)
		reading->count +=
			read_window_find(reading->files, count, wishes, &numbers[reading->count]);
	while (!rc && reading->count) {
		total += reading->count;
		if (total > READ_MAX)
			return too_many(total, wishes, err);
		rc = run_all(reading);
		reading->count =
			has_window ? read_window_find(reading->files, count, wishes, numbers) : 0;
	}
	return rc;
}

int read_files(struct read_file *files, const struct file_item *items, size_t count,
	const struct time_filter *wishes, struct stack_store *store, struct err *err)
{
	size_t *numbers = calloc(count + 1, sizeof(*numbers));
	struct file_reading reading = {
		.files = files, .numbers = numbers, .store = store, .cores = thread_cores()};
	int rc = numbers ? 0 : -ERR_NOMEM;

	reading.cores = reading.cores < THREADS_MAX ? reading.cores : THREADS_MAX;
	for (size_t i = 0; i < count; i++) {
		files[i] = (struct read_file){.item = &items[i]};
		sums_init(&files[i].sums);
	}
	if (!rc && (wishes->since.kind || wishes->until.kind)) {
		reading.work_on = look_at;
		reading.count = find_heads(files, count, numbers);
		rc = run_all(&reading);
	}
	if (!rc)
		rc = read_wanted(&reading, numbers, count, wishes, err);
	free(numbers);
	return rc == -ERR_NOMEM ? err_set(err, ERR_NOMEM, NULL, NULL) : rc;
}

void read_files_release(struct read_file *files, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		sums_release(&files[i].sums);
		free(files[i].err);
	}
}

bool read_file_is_damaged(const struct read_file *file)
{
	return file->rc || file->sums.skip_count;
}
