#include "diff/inputs/read_window.h"

#include <string.h>

#include "core/os.h"
#include "diff/inputs/dump_order.h"
#include "diff/read/sum_head.h"

/* Keeps what says which snapshot it is, and no more memory than that takes. */
static int keep(struct read_file *file, const struct sums *head, struct stack_store *store)
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
int read_window_look(struct read_file *file, struct stack_store *store)
{
	const char *path = file->item->path;
	struct source *source;
	struct sums head;
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

static bool is_usable(const struct read_file *file, const struct read_wishes *wishes)
{
	return !read_file_is_damaged(file) ||
	       (wishes->takes_damaged && (!file->rc || file->rc == -ERR_CUT));
}

/* The newest of those that can be used, or of which nobody knows; 0: none. */
static int64_t find_newest(
	const struct read_file *files, size_t count, const struct read_wishes *wishes)
{
	int64_t newest = 0;

	for (size_t i = 0; i < count; i++) {
		if (files[i].sums.time_ms > newest && is_usable(&files[i], wishes))
			newest = files[i].sums.time_ms;
	}
	return newest;
}

size_t read_window_find(const struct read_file *files, size_t count,
	const struct read_wishes *wishes, size_t *numbers)
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
