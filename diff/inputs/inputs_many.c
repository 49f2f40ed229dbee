#include "diff/inputs/inputs_many.h"

#include <stdlib.h>
#include <string.h>

#include "core/os.h"
#include "diff/inputs/dump_order.h"
#include "diff/inputs/input_say.h"
#include "diff/inputs/read_files.h"
#include "diff/inputs/series_list.h"

bool input_is_output(const struct options *options, const char *path)
{
	return options->output && strcmp(options->output, "-") != 0 && strcmp(path, "-") != 0 &&
	       !os_is_special(path) && os_same_file(options->output, path);
}

static bool is_dump(const struct read_file *file)
{
	return file->kind == FILE_DUMP || !file->rc || file->rc == -ERR_CUT;
}

/* What was asked for by its name was to be there, and no dump may be missing in a sum. */
static bool is_missed(const struct read_file *file, const struct options *options)
{
	return !file->item->is_found || (options->sum && file->rc != -ERR_NOT_DUMP);
}

/* Says why a file is left out. */
static int leave_out(struct inputs *inputs, const struct read_file *file,
	const struct options *options, FILE *say, const struct err *why)
{
	inputs->is_partial |= is_missed(file, options);
	if (inputs_leave_out(inputs, file->item->path))
		return -ERR_NOMEM;
	return say_damaged(say, file->item->path, why);
}

/* A dump that is there but for some of its lines or its end. */
static int leave_damaged(struct inputs *inputs, const struct read_file *file,
	const struct options *options, FILE *say)
{
	const struct sums *sums = &file->sums;
	struct err why = {.code = ERR_BAD_LINE};

	if (file->rc == -ERR_CUT)
		return leave_out(inputs, file, options, say, file->err);
	for (size_t i = 0; i < sums->warning_count && i < WARNINGS_MAX; i++) {
		if (!sums->left_out[i].place)
			continue;
		err_set(&why, ERR_BAD_LINE, sums->left_out[i].place, "%s", sums->left_out[i].why);
		break;
	}
	return leave_out(inputs, file, options, say, &why);
}

/* What it lacks is said of its series. */
static int take(
	struct inputs *inputs, struct read_file *file, const struct options *options, FILE *say)
{
	int rc = file->rc ? say_cut(say, file->err) : 0;

	inputs->is_partial |= read_file_is_damaged(file) && is_missed(file, options);
	if (rc)
		return rc;
	inputs->dumps[inputs->dump_count++] = file->sums;
	sums_init(&file->sums);
	file->is_taken = true;
	return 0;
}

/* Takes one of the files if it is of use, or says why not. What has two names and is of no use was said of
 * the first. */
static int settle(struct inputs *inputs, struct read_file *read, size_t number,
	const struct options *options, FILE *say, struct err *err)
{
	struct read_file *file = &read[number];
	int rc;

	if (file->item->is_double) {
		rc = read[file->item->twin].is_taken ?
			     say_left_out(say, file->item->path, "it is named twice") :
			     0;
	} else if (input_is_output(options, file->item->path)) {
		return is_dump(file) ?
			       err_set(err, ERR_USAGE, options->output, "it is one of the dumps") :
			       0;
	} else if (file->is_log) {
		rc = 0;
	} else if (file->rc && file->rc != -ERR_CUT) {
		rc = leave_out(inputs, file, options, say, file->err);
	} else if (read_file_is_damaged(file) && !options->force) {
		rc = leave_damaged(inputs, file, options, say);
	} else {
		rc = take(inputs, file, options, say);
	}
	return rc ? err_set(err, ERR_NOMEM, NULL, NULL) : 0;
}

/* Why there is nothing left. */
static int say_none(const struct read_file *read, const struct options *options,
	const struct file_list *files, struct err *err)
{
	bool is_damaged = false;

	for (size_t i = 0; i < files->count; i++)
		is_damaged |= read[i].rc == -ERR_CUT || read[i].sums.skip_count;
	return err_set(err, is_damaged ? ERR_CUT : ERR_NOT_DUMP, options->paths.items[0],
		is_damaged ? "none of %zu files is whole" :
			     "none of %zu files is one that can be used",
		files->count);
}

static int read_all(struct inputs *inputs, struct read_file *read, const struct options *options,
	const struct file_list *files, FILE *say, struct err *err)
{
	struct read_wishes wishes = {options->since, options->until, options->force};
	int rc = read_files(read, files->items, files->count, &wishes, inputs->store, err);

	for (size_t i = 0; !rc && i < files->count; i++)
		rc = settle(inputs, read, i, options, say, err);
	if (!rc && !inputs->dump_count)
		rc = say_none(read, options, files, err);
	return rc;
}

/* How many files were to be dumps: one that is found twice is one, and the report and a log are none. */
static size_t count_meant(
	const struct read_file *read, const struct file_list *files, const struct options *options)
{
	size_t count = 0;

	for (size_t i = 0; i < files->count; i++)
		count += !files->items[i].is_double && !read[i].is_log &&
			 !input_is_output(options, files->items[i].path);
	return count;
}

/* More than two, or what there would be else a comparison with nothing of: the others are left out. */
static bool is_trend(const struct inputs *inputs, const struct read_file *read,
	const struct options *options, const struct file_list *files)
{
	const struct sums *dumps = inputs->dumps;

	bool is_asked = options->sum || options_ask_trend(options) ||
			(files->has_found && options_of_trend(options));

	if (is_asked || (files->count > 2 && !files->has_found))
		return true;
	if (inputs->dump_count == 1)
		return count_meant(read, files, options) > 1;
	if (inputs->dump_count > 2 || dump_same_snapshot(&dumps[0], &dumps[1]))
		return true;
	return files->has_found && !dump_same_process(&dumps[0], &dumps[1]);
}

int inputs_read_many(struct inputs *inputs, const struct options *options,
	const struct file_list *files, FILE *say, struct err *err)
{
	struct read_file *read = calloc(files->count + 1, sizeof(*read));
	int rc;

	inputs->dumps = calloc(files->count + 1, sizeof(*inputs->dumps));
	inputs->store = stack_store_new();
	if (read && inputs->dumps && inputs->store) {
		rc = read_all(inputs, read, options, files, say, err);
		if (!rc)
			rc = series_list_make(
				inputs, options, is_trend(inputs, read, options, files), say, err);
	} else {
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	}
	if (read)
		read_files_release(read, files->count);
	free(read);
	return rc;
}
