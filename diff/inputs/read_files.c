#include "diff/inputs/read_files.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "core/thread.h"
#include "diff/inputs/read_window.h"

#define THREADS_MAX 8

/* Work on some of the files, by their numbers. */
struct reading {
	struct read_file *files;
	const size_t *numbers;
	size_t count;
	struct stack_store *store;
	unsigned cores;
	void (*work_on)(struct reading *reading, size_t at);
	atomic_size_t next;
	atomic_bool is_short; /* of memory */
};

static void run_some(void *ctx, unsigned number)
{
	struct reading *reading = ctx;
	size_t at;

	(void)number;
	while ((at = atomic_fetch_add(&reading->next, 1)) < reading->count)
		reading->work_on(reading, at);
}

static int run_all(struct reading *reading)
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
static void read_at(struct reading *reading, size_t at)
{
	size_t left = reading->count - at;

	if (read_one(&reading->files[reading->numbers[at]], reading->store,
		    left < reading->cores ? reading->cores / (unsigned)left : 1))
		atomic_store(&reading->is_short, true);
}

static void look_at(struct reading *reading, size_t at)
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

static int too_many(size_t count, const struct read_wishes *wishes, struct err *err)
{
	bool has_window = wishes->since.kind || wishes->until.kind;

	return err_set(err, ERR_USAGE, has_window ? "--since, --until" : "a trend",
		"%zu files are to be read, and %d are the most; %s", count, READ_MAX,
		has_window ? "ask for less time" :
			     "name fewer by a pattern, or say --since or --until");
}

/* Reads those that are wanted; what they turn out to be may make others wanted. */
static int read_wanted(struct reading *reading, size_t *numbers, size_t count,
	const struct read_wishes *wishes, struct err *err)
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
	const struct read_wishes *wishes, struct stack_store *store, struct err *err)
{
	size_t *numbers = calloc(count + 1, sizeof(*numbers));
	struct reading reading = {
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
