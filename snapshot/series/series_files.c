#include "snapshot/series/series_files.h"

#include <stdlib.h>
#include <string.h>

#include "core/folder.h"
#include "core/os.h"
#include "core/out.h"
#include "snapshot/command/packed_name.h"
#include "snapshot/series/file_pattern.h"

#define NUMBERS_APART_MAX UINT64_C(1000000000)

struct series_files {
	struct buf folder; /* with a separator behind it, or "" */
	struct buf last; /* the pattern of the files' own names, for this process */
	unsigned words;
	bool has_written;
	struct file_names written; /* the last one */
	struct file_names tried; /* the last name that was handed out */
	struct series_prune prune;
};

void series_files_free(struct series_files *files)
{
	if (!files)
		return;
	buf_release(&files->folder);
	buf_release(&files->last);
	series_prune_release(&files->prune);
	free(files);
}

/* Takes the pattern apart where the files' own names begin. */
static int split(struct series_files *files, const char *bound)
{
	const struct file_names none = {.program = ""};
	const char *last = file_pattern_last(bound);
	struct buf folder;
	int rc;

	buf_init(&folder);
	rc = buf_add(&folder, bound, (size_t)(last - bound));
	if (!rc)
		rc = file_pattern_add(&files->folder, folder.data, &none);
	if (!rc)
		rc = buf_add_text(&files->folder, "");
	if (!rc)
		rc = buf_add_text(&files->last, last);
	buf_release(&folder);
	return rc;
}

/* Fills a new one. 0 or -ERR_NOMEM. */
static int fill(
	struct series_files *files, const char *pattern, const char *program, bool is_packed)
{
	struct buf whole, bound;
	int rc;

	buf_init(&whole);
	buf_init(&bound);
	rc = is_packed ? packed_name_add(&whole, pattern) : buf_add_text(&whole, pattern);
	if (!rc)
		rc = file_pattern_bind(&bound, whole.data, program, files->prune.pid);
	if (!rc)
		rc = split(files, bound.data);
	buf_release(&whole);
	buf_release(&bound);
	return rc;
}

struct series_files *series_files_new(const char *pattern, const char *program, uint32_t pid,
	int64_t start_ms, const struct series_limits *limits, bool is_packed, struct err *err)
{
	struct series_files *files;
	unsigned words;

	if (file_pattern_check(pattern, &words, err))
		return NULL;
	if (!(words & (PATTERN_TIME | PATTERN_NUMBER))) {
		err_set(err, ERR_USAGE, pattern,
			"each file of a series needs a name of its own: put {time} or {n} into it");
		return NULL;
	}
	files = calloc(1, sizeof(*files));
	if (files) {
		files->words = words;
		files->prune =
			(struct series_prune){.pid = pid, .start_ms = start_ms, .limits = *limits};
	}
	if (!files || fill(files, pattern, program, is_packed)) {
		series_files_free(files);
		err_set(err, ERR_NOMEM, pattern, NULL);
		return NULL;
	}
	return files;
}

/* The names that are taken. */
struct taken_names {
	const struct series_files *files;
	int64_t second; /* of the time that a name is looked for */
	bool has_time;
	unsigned again; /* the highest of that second */
	uint64_t *numbers;
	size_t count, cap;
};

static int64_t second_of(int64_t ms)
{
	return ms / 1000 - (ms % 1000 < 0);
}

static int take_name(struct taken_names *taken, const struct file_names *names)
{
	if (array_grow(
		    (void **)&taken->numbers, &taken->cap, taken->count, sizeof(*taken->numbers)))
		return -ERR_NOMEM;
	taken->numbers[taken->count++] = names->number;
	if (second_of(names->time_ms) != taken->second)
		return 0;
	taken->has_time = true;
	if (names->again > taken->again)
		taken->again = names->again;
	return 0;
}

static int look_at(void *ctx, const struct folder_entry *entry)
{
	struct taken_names *taken = ctx;
	struct file_names names;

	return file_pattern_fits(taken->files->last.data, entry->name, &names) ?
		       take_name(taken, &names) :
		       0;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The highest that a series can have come to: what is far above the next lower one is passed over, for one
 * foreign file that has such a number would end the series. */
static uint64_t highest(const struct taken_names *taken)
{
	uint64_t number = taken->files->has_written ? taken->files->written.number : 0;

	if (taken->count)
		qsort(taken->numbers, taken->count, sizeof(*taken->numbers), compare);
	for (size_t i = 0; i < taken->count; i++) {
		if (taken->numbers[i] > number && taken->numbers[i] - number <= NUMBERS_APART_MAX)
			number = taken->numbers[i];
	}
	return number;
}

/* The first name behind what is taken. False: there is none. The first of a second has nothing behind its
 * time, the second "_2". */
static bool choose(struct file_names *names, const struct taken_names *taken)
{
	unsigned before = taken->has_time ? (taken->again ? taken->again : 1) : 0;

	if (taken->files->words & PATTERN_NUMBER) {
		names->number = highest(taken) + 1;
		return names->number <= PATTERN_NUMBER_MAX;
	}
	names->again = before ? before + 1 : 0;
	return names->again <= PATTERN_AGAIN_MAX;
}

/* All that is there, was written by this series or was handed out. */
static int look_at_all(struct taken_names *taken, unsigned tries, struct err *err)
{
	const struct series_files *files = taken->files;
	int rc = folder_each(files->folder.data, FOLDER_NAMES, look_at, taken, err);

	if (!rc && files->has_written)
		rc = take_name(taken, &files->written);
	if (!rc && tries) /* somebody has it, though it may not be seen yet */
		rc = take_name(taken, &files->tried);
	return rc == -ERR_NOMEM ? err_set(err, ERR_NOMEM, files->folder.data, NULL) : rc;
}

int series_files_name(struct series_files *files, int64_t time_ms, unsigned tries, struct buf *path,
	struct err *err)
{
	struct file_names names = {.program = "", .time_ms = time_ms};
	struct taken_names taken = {.files = files, .second = second_of(time_ms)};
	int rc = look_at_all(&taken, tries, err);

	if (!rc && (tries >= SERIES_TRIES_MAX || !choose(&names, &taken)))
		rc = err_set(err, ERR_EXISTS, files->last.data, "so are the names behind it");
	free(taken.numbers);
	if (rc)
		return rc;
	buf_clear(path);
	rc = buf_add_text(path, files->folder.data);
	if (!rc)
		rc = file_pattern_add(path, files->last.data, &names);
	files->tried = names;
	return rc ? err_set(err, ERR_NOMEM, files->folder.data, NULL) : 0;
}

int series_files_check(struct series_files *files, struct err *err)
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

int series_files_written(struct series_files *files, const char *path,
	const struct series_warn *warn, struct err *err)
{
	const struct series_limits *limits = &files->prune.limits;
	const char *name = file_pattern_last(path);

	if (!file_pattern_fits(files->last.data, name, &files->written))
		return 0; /* not one of ours */
	files->has_written = true;
	if (limits->keep_count == SIZE_MAX && limits->keep_bytes == UINT64_MAX)
		return 0;
	return series_prune(&files->prune, files->folder.data, files->last.data, name, warn, err);
}
