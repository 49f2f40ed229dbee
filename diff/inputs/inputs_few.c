#include "diff/inputs/inputs_few.h"

#include <stdlib.h>

#include "diff/inputs/input_kind.h"
#include "diff/inputs/input_say.h"
#include "diff/read/read_comparison.h"

/* Who is told. */
struct listener {
	const char *path, *name; /* as it was given, and as it is called */
	FILE *say;
	struct inputs *inputs;
};

static int say_skipped(void *ctx, const struct err *why)
{
	const struct listener *listener = ctx;

	listener->inputs->is_partial = true;
	return say_left_out(listener->say, why->place, why->detail);
}

static int say_sentence(void *ctx, const char *text)
{
	const struct listener *listener = ctx;

	return say_warning(listener->say, listener->name, "", text);
}

/* What cannot be asked of a comparison that is read, or NULL. */
static const char *too_much(const struct listener *listener, const struct options *options)
{
	if (listener->inputs->dump_count > 1)
		return "a comparison is read alone";
	if (options->heap_count || options->group == GROUP_HEAP)
		return "a comparison does not tell heaps";
	if (options->match != MATCH_AUTO)
		return "a comparison is matched already";
	return NULL;
}

/* Why growth cannot be held against the limits that are asked for, or NULL: none must be kept only
 * because rows are missing or numbers were guessed. */
static const char *no_limit(const struct options *options, const struct comparison *comparison)
{
	bool has_limit = !options->force && (options->growth_max_bytes != UINT64_MAX ||
						    options->growth_max_blocks != UINT64_MAX);

	if (!has_limit)
		return NULL;
	if (comparison->lacks_rows || comparison->may_lack_rows)
		return "it may not show all that grew; compare the dumps, or use --force";
	if (comparison->is_guess)
		return "whether its numbers are hexadecimal was guessed; say --input-base";
	if (comparison->lacks_counts && options->growth_max_blocks != UINT64_MAX)
		return "it does not tell by how many blocks";
	return NULL;
}

static int read_comparison(const struct options *options, struct listener *listener,
	struct source *source, struct err *err)
{
	struct read_words words = {listener, say_skipped, say_sentence};
	const char *why = too_much(listener, options);
	int rc;

	if (why)
		return err_set(err, ERR_USAGE, listener->name, "%s", why);
	rc = comparison_read(&listener->inputs->series[0].comparison, source,
		(unsigned)options->input_base, &words, err);
	if (rc && rc != -ERR_CUT)
		return rc;
	why = no_limit(options, &listener->inputs->series[0].comparison);
	listener->inputs->is_partial |= why || listener->inputs->series[0].comparison.is_partial;
	if (why &&
		say_warning(listener->say, listener->name, "--max-growth cannot judge it: ", why))
		return err_set(err, ERR_NOMEM, NULL, NULL);
	return rc;
}

static int read_dump(
	struct listener *listener, size_t number, struct source *source, struct err *err)
{
	struct sums *sums = &listener->inputs->dumps[number];
	int rc = sums_read(sums, listener->path, source, err);

	if (sums->skip_count)
		listener->inputs->is_partial = true;
	if ((!rc || rc == -ERR_CUT) && say_warnings(listener->say, listener->name, sums))
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	return rc;
}

static int read_as(const struct options *options, struct listener *listener, size_t number,
	struct source *source, enum file_kind *kind, struct err *err)
{
	const char *words = NULL;
	int rc = input_kind(listener->path, source, kind, &words, err);

	if (rc)
		return rc;
	if (*kind == FILE_COMPARISON)
		return read_comparison(options, listener, source, err);
	rc = read_dump(listener, number, source, err);
	if (rc == -ERR_NOT_DUMP && words)
		return err_set(err, ERR_NOT_DUMP, source_name(source), "%s", words);
	return rc;
}

/* Reads input number. 1: it was a printed comparison; 0: a dump; or an error. */
static int read_one(
	const struct options *options, struct listener *listener, size_t number, struct err *err)
{
	enum file_kind kind = FILE_UNKNOWN;
	struct source *source;
	int rc = source_open(&source, listener->path, err);

	if (rc)
		return rc;
	listener->name = source_name(source);
	rc = read_as(options, listener, number, source, &kind, err);
	if (rc == -ERR_CUT) {
		listener->inputs->is_partial = true;
		rc = say_cut(listener->say, err) ? err_set(err, ERR_NOMEM, NULL, NULL) : 0;
	}
	source_close(source);
	return rc ? rc : kind == FILE_COMPARISON;
}

int inputs_read_few(struct inputs *inputs, const struct options *options,
	const struct file_list *files, FILE *say, struct err *err)
{
	int rc = 0;

	inputs->dumps = calloc(files->count + 1, sizeof(*inputs->dumps));
	inputs->series = calloc(1, sizeof(*inputs->series));
	if (!inputs->dumps || !inputs->series)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	inputs->series_count = 1;
	for (; inputs->dump_count < files->count; inputs->dump_count++)
		sums_init(&inputs->dumps[inputs->dump_count]);
	for (size_t i = 0; !rc && i < files->count; i++) {
		const char *path = files->items[i].path;
		struct listener listener = {path, path, say, inputs};

		rc = read_one(options, &listener, i, err);
	}
	inputs->series[0].count = inputs->dump_count;
	return rc;
}
