/* The files of a series: their names and numbers, and the removal of the oldest files. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/dump/dump_head.h"
#include "core/io/file.h"
#include "core/io/out.h"
#include "snapshot/series/file_pattern.h"
#include "snapshot/series/series.h"

struct series_files {
	struct buf folder; /* folder of the files, with a trailing separator, or "" */
	struct buf last; /* pattern of the files' own names, bound to this process */
	unsigned words;
	uint32_t pid;
	int64_t start_ms;
	struct series_limits limits;
	uint64_t number; /* {n} of the last file that was written */
	char **own; /* names of the files that this run has written, oldest first */
	size_t count, cap;
	bool has_trouble; /* the last removal failed, which was reported */
};

void series_files_free(struct series_files *files)
{
	if (!files)
		return;
	for (size_t i = 0; i < files->count; i++)
		free(files->own[i]);
	free(files->own);
	buf_release(&files->folder);
	buf_release(&files->last);
	free(files);
}

struct series_files *series_files_new(const struct series_plan *plan, const char *program,
	uint32_t pid, int64_t start_ms, struct err *err)
{
	const struct file_names names = {.program = program, .pid = pid};
	struct series_files *files;
	struct buf pattern, folder;
	const char *last;
	unsigned words;

	if (file_pattern_check(plan->out, &words, err))
		return NULL;
	files = xcalloc(1, sizeof(*files));
	*files = (struct series_files){
		.words = words, .pid = pid, .start_ms = start_ms, .limits = plan->limits};
	buf_init(&pattern);
	buf_init(&folder);
	if (plan->is_packed)
		packed_name_add(&pattern, plan->out);
	else
		buf_add_text(&pattern, plan->out);
	last = file_pattern_last(pattern.data);
	buf_add(&folder, pattern.data, (size_t)(last - pattern.data));
	buf_add_text(&files->folder, "");
	file_pattern_add(&files->folder, folder.data, &names);
	file_pattern_bind(&files->last, last, program, pid);
	/* Create folders only at this point. If a folder disappears later, its disk may have been
	 * removed. */
	if (files->words)
		out_make_folders(files->folder.data);
	buf_release(&pattern);
	buf_release(&folder);
	return files;
}

struct highest {
	const char *last;
	uint64_t number;
};

static int see_number(void *ctx, const struct folder_entry *entry)
{
	struct highest *highest = ctx;
	uint64_t number;

	if (file_pattern_fits(highest->last, entry->name, &number) && number > highest->number)
		highest->number = number;
	return 0;
}

/* Stores a number above those of all existing files and of all files that this series has
 * written. */
static int next_number(const struct series_files *files, uint64_t *number, struct err *err)
{
	struct highest highest = {files->last.data, files->number};
	int rc = folder_each(files->folder.data, FOLDER_NAMES, see_number, &highest, err);

	if (!rc && highest.number >= PATTERN_NUMBER_MAX)
		rc = err_set(err, ERR_EXISTS, files->last.data, "the highest number is in use");
	*number = highest.number + 1;
	return rc;
}

int series_files_name(struct series_files *files, int64_t time_ms, unsigned tries, struct buf *path,
	struct err *err)
{
	struct file_names names = {.program = "", .time_ms = time_ms};
	int rc = 0;

	if (files->words & PATTERN_NUMBER)
		rc = next_number(files, &names.number, err);
	else if (tries)
		names.again = tries + 1; /* the first name for a second has no suffix */
	if (rc)
		return rc;
	buf_clear(path);
	buf_add_text(path, files->folder.data);
	file_pattern_add(path, files->last.data, &names);
	return 0;
}

/* Creates a file and aborts it. The file's name is free unless another program takes it; existing
 * files are not changed. */
int series_files_check(const struct series_plan *plan, struct err *err)
{
	const char *last = file_pattern_last(plan->out);
	struct series_files *files;
	struct buf path;
	struct out out;
	int rc = 0;

	if (memchr(plan->out, '{', (size_t)(last - plan->out)))
		return 0;
	files = series_files_new(plan, "program", 1, 0, err);
	if (!files)
		return -(int)err->code;
	buf_init(&path);
	if (files->words & (PATTERN_TIME | PATTERN_NUMBER)) {
		rc = series_files_name(files, os_time_ms(), 0, &path, err);
		if (!rc)
			rc = out_open_as(&out, path.data, OUT_OVERWRITE, err);
		if (!rc)
			out_abort(&out);
		else if (err) /* the name is not that of an ordinary file */
			snprintf(err->place, sizeof(err->place), "%s",
				files->folder.len ? files->folder.data : plan->out);
	}
	buf_release(&path);
	series_files_free(files);
	return rc;
}

/* ---------------------------------------------------------------- removing the oldest */

struct candidate {
	const struct folder_entry *entry;
	size_t own; /* position among this run's files, from 1; 0: written by another run */
	int64_t clock_ms, time_ms; /* from the file's header, if own is 0 */
};

static void set_path(const struct series_files *files, struct buf *path, const char *name)
{
	buf_clear(path);
	buf_add_text(path, files->folder.data);
	buf_add_text(path, name);
}

/* Finds files whose names match. Returns their number; the caller frees *found. */
static size_t find_names(
	const struct series_files *files, const struct folder_list *list, struct candidate **found)
{
	size_t count = 0;
	uint64_t number;

	*found = xcalloc(list->count, sizeof(**found));
	for (size_t i = 0; i < list->count; i++) {
		const struct folder_entry *entry = &list->entries[i];

		if (entry->is_file && file_pattern_fits(files->last.data, entry->name, &number))
			(*found)[count++].entry = entry;
	}
	return count;
}

static int by_name(const void *name, const void *candidate)
{
	return strcmp(name, ((const struct candidate *)candidate)->entry->name);
}

/*
 * Marks the candidates (sorted by name) that this run has written. Forgets written files that no
 * longer exist. Returns false if the last file written does not exist under its name. There are two
 * possible reasons: the file was removed, so that only older files are left, or the system gave it
 * another name.
 */
static bool find_own(struct series_files *files, struct candidate *found, size_t count)
{
	bool has_last = false;
	size_t kept = 0;

	for (size_t i = 0; i < files->count; i++) {
		struct candidate *own =
			bsearch(files->own[i], found, count, sizeof(*found), by_name);

		has_last = own;
		if (own) {
			files->own[kept++] = files->own[i];
			own->own = kept;
		} else {
			free(files->own[i]);
		}
	}
	files->count = kept;
	return has_last;
}

static bool read_head(const struct series_files *files, struct buf *path, const char *name,
	struct dump_head *head)
{
	*head = (struct dump_head){0};
	set_path(files, path, name);
	return !dump_head_read(path->data, head, NULL) && head->is_ours && head->start_ms &&
	       head->time_ms && head->pid == files->pid && head->start_ms == files->start_ms;
}

/* Keeps the candidates that belong to the series. Checks the headers of files that this run has not
 * written. Returns the number of remaining candidates. */
static size_t read_heads(const struct series_files *files, struct candidate *found, size_t count)
{
	struct dump_head head;
	struct buf path;
	size_t kept = 0;

	buf_init(&path);
	for (size_t i = 0; i < count; i++) {
		struct candidate candidate = found[i];

		if (!candidate.own && !read_head(files, &path, candidate.entry->name, &head))
			continue;
		if (!candidate.own) {
			candidate.clock_ms = head.clock_ms;
			candidate.time_ms = head.time_ms;
		}
		found[kept++] = candidate;
	}
	buf_release(&path);
	return kept;
}

static int by_age(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->own != y->own)
		return x->own < y->own ? -1 : 1;
	if (x->clock_ms != y->clock_ms) /* files without a clock are from an older version */
		return x->clock_ms < y->clock_ms ? -1 : 1;
	if (x->time_ms != y->time_ms)
		return x->time_ms < y->time_ms ? -1 : 1;
	return strcmp(x->entry->name, y->entry->name);
}

/* Removes the oldest files. Returns 0 or the first error. Also checks files of this run again,
 * because another file may have replaced them. */
static int remove_oldest(
	const struct series_files *files, struct candidate *found, size_t count, struct err *err)
{
	const struct series_limits *limits = &files->limits;
	uint64_t bytes = 0;
	struct dump_head head;
	struct buf path;
	int rc = 0, status;

	qsort(found, count, sizeof(*found), by_age);
	for (size_t i = 0; i < count; i++)
		bytes += found[i].entry->size_bytes;
	buf_init(&path);
	for (; count > 1 && (count > limits->keep_count || bytes > limits->keep_bytes); count--) {
		set_path(files, &path, found->entry->name);
		status = 0;
		if (!found->own || read_head(files, &path, found->entry->name, &head))
			status = folder_remove(path.data, rc ? NULL : err);
		rc = rc ? rc : status;
		bytes -= found++->entry->size_bytes;
	}
	buf_release(&path);
	return rc;
}

static int prune(struct series_files *files, const char *newest, struct err *err)
{
	struct folder_list list;
	struct candidate *found;
	size_t count;
	int rc = folder_list_read(files->folder.data, &list, err);

	if (rc)
		return rc;
	count = find_names(files, &list, &found);
	if (find_own(files, found, count)) {
		count = read_heads(files, found, count);
		rc = remove_oldest(files, found, count, err);
	} else {
		rc = err_set(err, ERR_OPEN, newest,
			"not found in its folder under this name, so no older file is removed");
	}
	free(found);
	folder_list_release(&list);
	return rc;
}

int series_files_written(struct series_files *files, const char *path, struct err *err)
{
	const struct series_limits *limits = &files->limits;
	const char *name = file_pattern_last(path);
	bool had_trouble = files->has_trouble;
	struct err trouble;
	int rc;

	if (!file_pattern_fits(files->last.data, name, &files->number) ||
		(limits->keep_count == UINT64_MAX && limits->keep_bytes == UINT64_MAX))
		return 0;
	array_grow((void **)&files->own, &files->cap, files->count, sizeof(*files->own));
	files->own[files->count++] = xstrdup(name);
	rc = prune(files, path, &trouble);
	files->has_trouble = rc;
	if (!rc || had_trouble)
		return 0;
	*err = trouble;
	return rc;
}
