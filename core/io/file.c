/*
 * The parts of file.h that are the same on all systems: appending a line to a log, and listing a
 * folder.
 */
#include "core/io/file.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/io/out.h"

/* Returns true if the file ends with a newline. */
static bool is_whole(struct os_file *file, uint64_t size)
{
	char last;

	return !size || os_read_at(file, size - 1, &last, 1) || last == '\n';
}

/* Appends a line. If the file does not end with a newline, appends one first. */
static int add(struct os_file *file, uint64_t size, const char *path, const char *line, size_t len,
	struct err *err)
{
	int rc = is_whole(file, size) ? 0 : os_write(file, "\n", 1, path, err);

	return rc ? rc : os_write(file, line, len, path, err);
}

/* Renames the full log to `aside` and opens a new log. Holds the lock of the old file until the new
 * file exists. If the old file cannot be renamed, continues to use it. */
static int begin_new(struct os_file *file, const char *path, const char *aside, struct err *err)
{
	struct os_file full = *file;
	int rc;

	if (out_check(aside, NULL) || os_replace(path, aside, NULL))
		return 0;
	rc = file_append_open(file, path, err);
	os_close(&full);
	return rc;
}

int file_append_line(const char *path, const char *line, size_t len, uint64_t limit_bytes,
	const char *aside, struct err *err)
{
	struct os_file file;
	uint64_t size;
	int rc = file_append_open(&file, path, err);

	if (rc)
		return rc;
	size = os_size(&file);
	if (len && size && len + 1 > limit_bytes - (size < limit_bytes ? size : limit_bytes)) {
		rc = begin_new(&file, path, aside, err);
		if (rc)
			return rc;
		size = os_size(&file);
	}
	if (len)
		rc = add(&file, size, path, line, len, err);
	os_close(&file);
	return rc;
}

static int add_entry(void *ctx, const struct folder_entry *entry)
{
	struct folder_list *list = ctx;
	struct folder_entry copy = *entry;

	copy.name = arena_text(&list->names, entry->name, strlen(entry->name));
	array_grow((void **)&list->entries, &list->cap, list->count, sizeof(*list->entries));
	list->entries[list->count++] = copy;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct folder_entry *x = a, *y = b;

	return strcmp(x->name, y->name);
}

int folder_list_read(const char *path, struct folder_list *list, struct err *err)
{
	struct folder_list made = {0};
	int rc;

	arena_init(&made.names);
	rc = folder_each(path, FOLDER_ENTRIES, add_entry, &made, err);
	if (rc) {
		folder_list_release(&made);
		return rc;
	}
	if (made.count)
		qsort(made.entries, made.count, sizeof(*made.entries), compare);
	*list = made;
	return 0;
}

void folder_list_release(struct folder_list *list)
{
	free(list->entries);
	arena_release(&list->names);
	*list = (struct folder_list){0};
}
