#include "diff/inputs/read_files.h"

#include <stdatomic.h>
#include <string.h>

#include "core/thread.h"

#define THREADS_MAX 8

struct reading {
	struct read_file *files;
	size_t count;
	struct stack_store *store;
	unsigned cores;
	atomic_size_t next;
};

static int read_dump(struct read_file *file, struct source *source, unsigned threads)
{
	const char *words = NULL;
	int rc = input_kind(file->item->path, source, &file->kind, &words, &file->err);

	if (rc)
		return rc;
	if (file->kind == FILE_COMPARISON)
		return err_set(&file->err, ERR_NOT_DUMP, source_name(source),
			"it is a comparison, which is read alone");
	rc = sums_read_with(&file->sums, file->item->path, source, threads, &file->err);
	if (rc == -ERR_NOT_DUMP && words)
		return err_set(&file->err, ERR_NOT_DUMP, source_name(source), "%s", words);
	return rc;
}

/* What is of no use gives its memory back. */
static void read_one(struct read_file *file, struct stack_store *store, unsigned threads)
{
	struct source *source;

	file->rc = source_open(&source, file->item->path, &file->err);
	if (file->rc)
		return;
	file->rc = read_dump(file, source, threads);
	source_close(source);
	if (file->rc && file->rc != -ERR_CUT)
		sums_release(&file->sums);
	else if (stack_store_take(store, &file->sums))
		file->rc = -ERR_NOMEM;
}

/* A thread for each file, and for the last ones the threads that have no file of their own. */
static void work(void *ctx, unsigned number)
{
	struct reading *reading = ctx;
	size_t index;

	(void)number;
	while ((index = atomic_fetch_add(&reading->next, 1)) < reading->count) {
		size_t left = reading->count - index;
		struct read_file *file = &reading->files[index];

		if (!file->item->is_double)
			read_one(file, reading->store,
				left < reading->cores ? reading->cores / (unsigned)left : 1);
	}
}

int read_files(struct read_file *files, const struct file_item *items, size_t count,
	struct stack_store *store)
{
	struct reading reading = {
		.files = files, .count = count, .store = store, .cores = thread_cores()};

	for (size_t i = 0; i < count; i++) {
		files[i] = (struct read_file){.item = &items[i]};
		sums_init(&files[i].sums);
	}
	reading.cores = reading.cores < THREADS_MAX ? reading.cores : THREADS_MAX;
	thread_run(reading.cores < count ? reading.cores : (unsigned)count, work, &reading);
	for (size_t i = 0; i < count; i++) {
		if (files[i].rc == -ERR_NOMEM)
			return -ERR_NOMEM;
	}
	return 0;
}

void read_files_release(struct read_file *files, size_t count)
{
	for (size_t i = 0; i < count; i++)
		sums_release(&files[i].sums);
}
