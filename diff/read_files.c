/* Reading the input files: chooses files according to --since and --until, and reads whole files on
 * several threads. */
#include "diff/read_files.h"

#include <stdlib.h>
#include <string.h>

#include <stdatomic.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/parse.h"
#include "core/base/text.h"
#include "diff/dump_identity.h"
#include "diff/file_list.h"
#include "diff/printed/printed.h"
#include "diff/read/dump_sums.h"
#include "diff/read/foreign.h"

/* Reads only the head, and stores only the process and time. Problems with opening the file or with
 * its head are reported later, when the file is read completely. */
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
	if (!rc && head.id.time_ms) {
		image = dump_image(&head);
		file->sums.id.path = path;
		file->sums.id.image = image ? stack_store_text(store, image) : NULL;
		file->sums.id.host = head.id.host ? stack_store_text(store, head.id.host) : NULL;
		for (enum code_base i = 0; i < CODE_BASES; i++)
			file->sums.id.code_bases[i] = dump_code_base(&head, i);
		file->sums.id.pid = head.id.pid;
		file->sums.id.time_ms = head.id.time_ms;
		file->sums.id.start_ms = head.id.start_ms;
		file->sums.id.clock_ms = head.id.clock_ms;
		file->sums.id.has_wall_time = head.id.has_wall_time;
		file->kind = FILE_DUMP;
		file->is_unread = true;
	}
	sums_release(&head);
}

/* Returns the time of the newest file that is usable or not yet read completely, or 0. */
static int64_t find_newest(
	const struct read_file *files, size_t count, const struct time_filter *window)
{
	int64_t newest = 0;

	for (size_t i = 0; i < count; i++) {
		bool is_usable =
			!read_file_is_damaged(&files[i]) ||
			(window->takes_damaged && (!files[i].rc || files[i].rc == -ERR_CUT));

		if (is_usable && files[i].sums.id.time_ms > newest)
			newest = files[i].sums.id.time_ms;
	}
	return newest;
}

/* Corrects the times of all known heads using the machine's clock. First undoes earlier
 * corrections: they may be based on a file that was later read completely and turned out to be
 * damaged. */
static void finish_heads(struct read_file *files, size_t count)
{
	struct dump_sums **dumps = xcalloc(count + 1, sizeof(struct dump_sums *));
	size_t known = 0;

	for (size_t i = 0; i < count; i++) {
		struct dump_identity *id = &files[i].sums.id;

		if (id->stated_ms)
			id->time_ms = id->stated_ms;
		id->stated_ms = 0;
		if (id->clock_ms && !read_file_is_damaged(&files[i]))
			dumps[known++] = &files[i].sums;
	}
	dumps_correct_clocks(dumps, known);
	free(dumps);
}

/* Finds files that must still be read completely, according to what is known from the files read so
 * far. Stores their indexes in `numbers`. Returns their number; 0: all files are read. */
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
		int64_t time_ms = files[i].sums.id.time_ms;

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

/* Reads a part of a recording. Recordings require random access. */
static int read_recording(struct read_file *file, struct source *source, struct err *err)
{
	const struct file_item *item = file->item;
	uint64_t from, to;

	if (!source_is_plain(source, &from, &to))
		return err_set(err, ERR_NOT_DUMP, source_name(source),
			"a recording can be read only from an unpacked file, not from a pipe");
	return sums_read_recording(&file->sums, item->path, item->file, &item->part, err);
}

/* Reads a source. If printed comparisons are allowed, leaves the source of one open. */
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
			"a comparison; comparisons cannot be read together with dumps");
	if (file->kind == FILE_COMPARISON) {
		file->printed = *source;
		*source = NULL;
		return 0;
	}
	if (file->kind == FILE_FOLDED)
		return folded_read(&file->sums, file->item->path, *source, err);
	if (file->kind == FILE_PPROF)
		return pprof_read(&file->sums, file->item->path, *source, err);
	file->sums.single.wants_listed = file->item->part.wants_blocks;
	file->sums.single.wants_creators = file->item->part.wants_creators;
	file->sums.single.sizes = file->item->part.sizes;
	rc = sums_read_with(&file->sums, file->item->path, *source, threads, err);
	/* Prefer `words` to the error. The exception is `words` that begin with "nor ", if the
	 * error has details: it then names an almost correct line, which explains more. */
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
	sums_copy_banner(&file->sums);
	if (!reading->store)
		return;
	if (file->rc && file->rc != -ERR_CUT) {
		sums_release(&file->sums);
		return;
	}
	stack_store_add(reading->store, &file->sums);
}

/* Reads files, one after another on each thread. When fewer files than threads are left, reads each
 * of them with several threads. */
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
		"%zu files match, but at most %d can be read; %s", count, READ_MAX,
		has_window ? "choose a shorter time" :
			     "use a narrower pattern, --since or --until");
}

/* Reads the files that are needed. Their content may show that further files are needed. */
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
	return file->rc || file->sums.quality.skip_count;
}
