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
	struct buf folder; /* with a separator behind it, or "" */
	struct buf last; /* the pattern of the files' own names, for this process */
	unsigned words;
	uint32_t pid;
	int64_t start_ms;
	struct series_limits limits;
	uint64_t number; /* of the last file that was written */
	char **own; /* the names of those that this run has written, the oldest first */
	size_t count, cap;
	bool has_trouble; /* which was told */
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

/* Takes the pattern apart where the files' own names begin. 0 or -ERR_NOMEM. */
static int split(struct series_files *files, const char *pattern, const char *program)
{
	const struct file_names names = {.program = program, .pid = files->pid};
	const char *last = file_pattern_last(pattern);
	struct buf folder;
	int rc;

	buf_init(&folder);
	rc = buf_add(&folder, pattern, (size_t)(last - pattern));
	if (!rc)
		rc = file_pattern_add(&files->folder, folder.data, &names);
	if (!rc)
		rc = buf_add_text(&files->folder, "");
	if (!rc)
		rc = file_pattern_bind(&files->last, last, program, files->pid);
	buf_release(&folder);
	return rc;
}

struct series_files *series_files_new(const struct series_plan *plan, const char *program,
	uint32_t pid, int64_t start_ms, struct err *err)
{
	struct series_files *files;
	struct buf pattern;
	unsigned words;

	if (file_pattern_check(plan->out, &words, err))
		return NULL;
	buf_init(&pattern);
	files = calloc(1, sizeof(*files));
	if (files)
		*files = (struct series_files){
			.words = words, .pid = pid, .start_ms = start_ms, .limits = plan->limits};
	if (!files ||
		(plan->is_packed ? packed_name_add(&pattern, plan->out) :
				   buf_add_text(&pattern, plan->out)) ||
		split(files, pattern.data, program)) {
		series_files_free(files);
		files = NULL;
		err_set(err, ERR_NOMEM, plan->out, NULL);
	}
	buf_release(&pattern);
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

/* One above all that are there, or were written by this series. */
static int next_number(const struct series_files *files, uint64_t *number, struct err *err)
{
	struct highest highest = {files->last.data, files->number};
	int rc = folder_each(files->folder.data, FOLDER_NAMES, see_number, &highest, err);

	if (!rc && highest.number >= PATTERN_NUMBER_MAX)
		rc = err_set(err, ERR_EXISTS, files->last.data, "it has the highest number");
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
		names.again = tries + 1; /* the first of a second has nothing behind its time */
	if (rc)
		return rc;
	buf_clear(path);
	rc = buf_add_text(path, files->folder.data);
	if (!rc)
		rc = file_pattern_add(path, files->last.data, &names);
	return rc ? err_set(err, ERR_NOMEM, files->folder.data, NULL) : 0;
}

/* Unless somebody is faster, the name is free; a file that is there is not touched. */
static int check_folder(struct series_files *files, struct err *err)
{
	struct buf path;
	struct out out;
	int rc;

	buf_init(&path);
	rc = series_files_name(files, os_time_ms(), 0, &path, err);
	if (!rc)
		rc = out_open(&out, path.data, err);
	if (!rc)
		out_abort(&out);
	buf_release(&path);
	return rc;
}

int series_files_check(const struct series_plan *plan, struct err *err)
{
	const char *last = file_pattern_last(plan->out);
	struct series_files *files;
	int rc = 0;

	if (memchr(plan->out, '{', (size_t)(last - plan->out)))
		return 0;
	files = series_files_new(plan, "program", 1, 0, err);
	if (!files)
		return -(int)err->code;
	if (files->words & (PATTERN_TIME | PATTERN_NUMBER))
		rc = check_folder(files, err);
	series_files_free(files);
	return rc;
}

/* ---------------------------------------------------------------- removing the oldest */

struct candidate {
	const struct folder_entry *entry;
	size_t own; /* the place among those that this run has written, from 1; 0: it has not */
	int64_t time_ms; /* in its head, when own is 0 */
};

struct pruning {
	struct series_files *files;
	struct folder_list list;
	struct candidate *found;
	size_t count;
	struct buf path; /* of the file at hand */
};

static int set_path(struct pruning *pruning, const char *name)
{
	buf_clear(&pruning->path);
	return buf_add_text(&pruning->path, pruning->files->folder.data) ||
	       buf_add_text(&pruning->path, name);
}

static struct candidate *find(struct pruning *pruning, const char *name)
{
	for (size_t i = 0; i < pruning->count; i++) {
		if (!strcmp(pruning->found[i].entry->name, name))
			return &pruning->found[i];
	}
	return NULL;
}

/* Those whose names fit. 0 or -ERR_NOMEM. */
static int find_names(struct pruning *pruning)
{
	uint64_t number;

	pruning->found = calloc(pruning->list.count + 1, sizeof(*pruning->found));
	if (!pruning->found)
		return -ERR_NOMEM;
	for (size_t i = 0; i < pruning->list.count; i++) {
		const struct folder_entry *entry = &pruning->list.entries[i];

		if (entry->is_file &&
			file_pattern_fits(pruning->files->last.data, entry->name, &number))
			pruning->found[pruning->count++].entry = entry;
	}
	return 0;
}

/* Tells which of them this run has written, and forgets those that are not there any more. False: the last of
 * them is not. Somebody has taken it away, and the older ones are all there is; or the system has called it
 * otherwise. */
static bool find_own(struct pruning *pruning)
{
	struct series_files *files = pruning->files;
	struct candidate *candidate = NULL;
	size_t kept = 0;

	for (size_t i = 0; i < files->count; i++) {
		candidate = find(pruning, files->own[i]);
		if (candidate) {
			files->own[kept++] = files->own[i];
			candidate->own = kept;
		} else {
			free(files->own[i]);
		}
	}
	files->count = kept;
	return candidate;
}

/* Leaves those whose heads say that they are of the series, and the newest. */
static void read_heads(struct pruning *pruning)
{
	const struct series_files *files = pruning->files;
	size_t kept = 0;

	for (size_t i = 0; i < pruning->count; i++) {
		struct candidate candidate = pruning->found[i];
		struct dump_head head = {0};
		bool is_of_series = !set_path(pruning, candidate.entry->name) &&
				    !dump_head_read(pruning->path.data, &head, NULL) &&
				    head.is_ours && head.time_ms && head.start_ms &&
				    head.pid == files->pid && head.start_ms == files->start_ms;

		candidate.time_ms = candidate.own ? 0 : head.time_ms;
		if (is_of_series || candidate.own == files->count)
			pruning->found[kept++] = candidate;
	}
	pruning->count = kept;
}

static int by_age(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->own != y->own)
		return x->own < y->own ? -1 : 1;
	if (x->time_ms != y->time_ms)
		return x->time_ms < y->time_ms ? -1 : 1;
	return strcmp(x->entry->name, y->entry->name);
}

static int remove_oldest(struct pruning *pruning, struct err *err)
{
	const struct series_limits *limits = &pruning->files->limits;
	size_t count = pruning->count;
	uint64_t bytes = 0;
	int rc = 0;

	qsort(pruning->found, count, sizeof(*pruning->found), by_age);
	for (size_t i = 0; i < count; i++)
		bytes += pruning->found[i].entry->size_bytes;
	for (const struct candidate *oldest = pruning->found;
		count > 1 && (count > limits->keep_count || bytes > limits->keep_bytes); oldest++) {
		struct err why;
		int status = set_path(pruning, oldest->entry->name) ?
				     err_set(&why, ERR_NOMEM, oldest->entry->name, NULL) :
				     folder_remove(pruning->path.data, &why);

		if (status && !rc) {
			rc = status;
			*err = why;
		}
		count--;
		bytes -= oldest->entry->size_bytes;
	}
	return rc;
}

static int prune(struct series_files *files, const char *newest, struct err *err)
{
	struct pruning pruning = {.files = files};
	int rc = folder_list_read(files->folder.data, &pruning.list, err);

	if (rc)
		return rc;
	buf_init(&pruning.path);
	if (find_names(&pruning)) {
		rc = err_set(err, ERR_NOMEM, files->folder.data, NULL);
	} else if (!find_own(&pruning)) {
		rc = err_set(err, ERR_OPEN, newest,
			"it is not in its folder by this name, so none of the older ones is "
			"removed");
	} else {
		read_heads(&pruning);
		rc = remove_oldest(&pruning, err);
	}
	buf_release(&pruning.path);
	free(pruning.found);
	folder_list_release(&pruning.list);
	return rc;
}

static int add_own(struct series_files *files, const char *name)
{
	char *copy = strdup(name);

	if (!copy ||
		array_grow((void **)&files->own, &files->cap, files->count, sizeof(*files->own))) {
		free(copy);
		return -ERR_NOMEM;
	}
	files->own[files->count++] = copy;
	return 0;
}

int series_files_written(struct series_files *files, const char *path, struct err *err)
{
	const struct series_limits *limits = &files->limits;
	const char *name = file_pattern_last(path);
	bool had_trouble = files->has_trouble;
	struct err trouble;
	int rc;

	if (!file_pattern_fits(files->last.data, name, &files->number) ||
		(limits->keep_count == SIZE_MAX && limits->keep_bytes == UINT64_MAX))
		return 0;
	rc = add_own(files, name) ? err_set(&trouble, ERR_NOMEM, path, NULL) :
				    prune(files, path, &trouble);
	files->has_trouble = rc;
	if (!rc || had_trouble)
		return 0;
	*err = trouble;
	return rc;
}
