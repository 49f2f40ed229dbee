#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/dump/dump_head.h"
#include "core/io/file.h"
#include "core/io/out.h"
#include "snapshot/series/file_pattern.h"
#include "snapshot/series/series.h"

void series_prune_release(struct series_prune *prune)
{
	folder_list_release(&prune->list);
	free(prune->files);
	prune->files = NULL;
	prune->count = 0;
}

/* One pruning. */
struct pruning {
	struct series_prune *prune;
	const char *folder;
	const struct series_warn *warn;
	struct buf path; /* of the file at hand */
	size_t count; /* of the series, without those that could not be removed */
	uint64_t bytes;
};

static int set_path(struct pruning *pruning, const struct series_file *file)
{
	buf_clear(&pruning->path);
	return buf_add_text(&pruning->path, pruning->folder) ||
			       buf_add_text(&pruning->path, file->name) ?
		       -ERR_NOMEM :
		       0;
}

/* Whether this run has written it. */
static bool is_own(const struct series_file *file)
{
	return file->turn && file->turn % 2 == 0;
}

/* Copies what is known of a file; the old ones and the new come in one order. One that is of another size
 * now is another file, or was not wholly there. */
static void remember(const struct series_prune *old, size_t *at, struct series_file *file)
{
	const struct series_file *known;

	while (*at < old->count && strcmp(old->files[*at].name, file->name) < 0)
		++*at;
	if (*at == old->count || strcmp(old->files[*at].name, file->name) != 0)
		return;
	known = &old->files[*at];
	if (known->size_bytes == file->size_bytes || is_own(known)) {
		file->turn = known->turn;
		file->order_ms = known->order_ms;
	}
	file->was_warned_of = known->was_warned_of;
	if (known->size_bytes != file->size_bytes)
		return;
	file->is_read = known->is_read;
	file->is_of_series = known->is_of_series;
	file->time_ms = known->time_ms;
}

/* Reads the folder; *prune then knows the files that are there now. */
static int look(struct series_prune *prune, const char *folder, const char *last, struct err *err)
{
	struct series_prune old = *prune, fresh = *prune;
	struct file_names names;
	size_t at = 0;
	int rc = folder_list_read(folder, &fresh.list, err);

	if (rc)
		return rc;
	fresh.count = 0;
	fresh.files = calloc(fresh.list.count + 1, sizeof(*fresh.files));
	if (!fresh.files) {
		folder_list_release(&fresh.list);
		return err_set(err, ERR_NOMEM, folder, NULL);
	}
	for (size_t i = 0; i < fresh.list.count; i++) {
		const struct folder_entry *entry = &fresh.list.entries[i];
		struct series_file *file = &fresh.files[fresh.count];

		if (!entry->is_file || !file_pattern_fits(last, entry->name, &names))
			continue;
		*file = (struct series_file){.name = entry->name, .size_bytes = entry->size_bytes};
		remember(&old, &at, file);
		fresh.count++;
	}
	*prune = fresh;
	series_prune_release(&old);
	return 0;
}

/* Whether its head says that it is of the series. What cannot be opened or read now, another program may
 * have open: it is asked again. */
static int read_head(struct pruning *pruning, struct series_file *file)
{
	const struct series_prune *prune = pruning->prune;
	struct dump_head head = {0};
	int rc = set_path(pruning, file);

	if (!rc)
		rc = dump_head_read(pruning->path.data, &head, NULL);
	file->is_read = rc != -ERR_OPEN && rc != -ERR_READ;
	file->is_of_series = !rc && head.is_ours && head.pid == prune->pid && head.start_ms &&
			     head.start_ms == prune->start_ms && head.time_ms;
	file->time_ms = head.time_ms;
	return rc == -ERR_NOMEM ? rc : 0;
}

/* From the last name on, for those are mostly the newest: the ones that this series has written. */
static int read_heads(struct pruning *pruning, struct series_file *newest)
{
	size_t left = PRUNE_HEADS_MAX - 1;
	int rc = read_head(pruning, newest);

	for (size_t i = pruning->prune->count; !rc && i-- && left;) {
		if (pruning->prune->files[i].is_read)
			continue;
		left--;
		rc = read_head(pruning, &pruning->prune->files[i]);
	}
	return rc;
}

/*
 * Where files come in the order of age. It is that of the times in them; but the clock may have been set:
 * this run's own are as old as the last of them at most, in whatever order their times are, and what was
 * there before the newest was put there is as old as that at least.
 */
static void set_order(struct series_prune *prune, struct series_file *newest)
{
	prune->turns++;
	if (newest->is_of_series && (!prune->has_last || newest->time_ms > prune->last_ms)) {
		prune->has_last = true;
		prune->last_ms = newest->time_ms;
	}
	if (prune->has_last) {
		newest->turn = 2 * prune->turns;
		newest->order_ms = prune->last_ms;
	}
	for (size_t i = 0; i < prune->count; i++) {
		struct series_file *file = &prune->files[i];
		bool is_late = prune->has_last && file->time_ms > prune->last_ms;

		if (file->turn || !file->is_of_series)
			continue;
		file->turn = 2 * prune->turns - 1;
		file->order_ms = is_late ? prune->last_ms : file->time_ms;
	}
}

static int by_age(const void *a, const void *b)
{
	const struct series_file *x = *(struct series_file *const *)a;
	const struct series_file *y = *(struct series_file *const *)b;

	if (x->order_ms != y->order_ms)
		return x->order_ms < y->order_ms ? -1 : 1;
	if (x->turn != y->turn)
		return x->turn < y->turn ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* It may be another file by that name now: that one stays. */
static int remove_file(struct pruning *pruning, struct series_file *file)
{
	struct err why;
	int rc = read_head(pruning, file);

	if (rc || !file->is_of_series)
		return rc;
	rc = folder_remove(pruning->path.data, &why);
	if (rc == -ERR_REMOVE && !file->was_warned_of) {
		file->was_warned_of = true;
		pruning->warn->warn(pruning->warn->ctx, &why);
	}
	return rc == -ERR_REMOVE ? 0 : rc;
}

static bool is_too_much(const struct pruning *pruning)
{
	const struct series_limits *limits = &pruning->prune->limits;

	return pruning->count > limits->keep_count || pruning->bytes > limits->keep_bytes;
}

/* Removes what is too much of these, which do not include the newest. */
static int remove_oldest(struct pruning *pruning, struct series_file **oldest, size_t count)
{
	int rc = 0;

	if (count)
		qsort(oldest, count, sizeof(struct series_file *), by_age);
	for (size_t i = 0; !rc && i < count && is_too_much(pruning); i++) {
		rc = remove_file(pruning, oldest[i]);
		pruning->count--;
		pruning->bytes -= oldest[i]->size_bytes;
	}
	return rc;
}

static struct series_file *find(struct series_prune *prune, const char *name)
{
	for (size_t i = 0; i < prune->count; i++) {
		if (!strcmp(prune->files[i].name, name))
			return &prune->files[i];
	}
	return NULL;
}

/* Counts the files of the series and removes some of them. */
static int prune_files(struct pruning *pruning, const struct series_file *newest)
{
	struct series_prune *prune = pruning->prune;
	struct series_file **others = calloc(prune->count, sizeof(*others));
	size_t count = 0;
	int rc;

	if (!others)
		return -ERR_NOMEM;
	pruning->bytes = newest->size_bytes;
	for (size_t i = 0; i < prune->count; i++) {
		struct series_file *file = &prune->files[i];

		if (file == newest || !file->is_of_series)
			continue;
		pruning->bytes += file->size_bytes;
		others[count++] = file;
	}
	pruning->count = count + 1;
	rc = remove_oldest(pruning, others, count);
	free(others);
	return rc;
}

/* Somebody has taken it away: then the older ones are all there is. Or the system has called it otherwise:
 * then none is ever known, and none goes. */
static int warn_of_newest(struct pruning *pruning, const char *newest)
{
	const struct series_file file = {.name = newest};
	struct err why;

	if (pruning->prune->was_warned_of_newest)
		return 0;
	if (set_path(pruning, &file))
		return -ERR_NOMEM;
	pruning->prune->was_warned_of_newest = true;
	err_set(&why, ERR_OPEN, pruning->path.data,
		"it is not in its folder by this name, so none of the older ones is removed");
	pruning->warn->warn(pruning->warn->ctx, &why);
	return 0;
}

/* Reads what is not known of the files, the newest among them, and removes some. */
static int prune_behind(struct pruning *pruning, struct series_file *newest)
{
	int rc = read_heads(pruning, newest);

	if (rc)
		return rc;
	pruning->prune->was_warned_of_newest = false;
	set_order(pruning->prune, newest);
	return prune_files(pruning, newest);
}

int series_prune(struct series_prune *prune, const char *folder, const char *last,
	const char *newest, const struct series_warn *warn, struct err *err)
{
	struct pruning pruning = {.prune = prune, .folder = folder, .warn = warn};
	struct series_file *file;
	int rc = look(prune, folder, last, err);

	if (rc)
		return rc;
	file = find(prune, newest);
	buf_init(&pruning.path);
	rc = file ? prune_behind(&pruning, file) : warn_of_newest(&pruning, newest);
	buf_release(&pruning.path);
	return rc ? err_set(err, ERR_NOMEM, folder, NULL) : 0;
}

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
