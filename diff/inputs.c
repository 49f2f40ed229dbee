#include "diff/inputs.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "core/os.h"
#include "core/source.h"
#include "core/text.h"
#include "diff/read/comparison_find.h"
#include "diff/read/read_comparison.h"
#include "diff/read/sum_reader.h"

/* Who is told. */
struct listener {
	const char *path, *name; /* as it was given, and as it is called */
	FILE *say;
	struct inputs *inputs;
};

/* One line, whatever the texts hold. 0 or -ERR_NOMEM. */
static int say_warning(
	const struct listener *listener, const char *place, const char *what, const char *text)
{
	struct buf words;
	int rc;

	buf_init(&words);
	rc = buf_printf(&words, "%s: warning: %s%s", place, what, text);
	if (!rc) {
		fprintf(listener->say, "hdiff: %s\n", text_harmless(words.data));
		fflush(listener->say);
	}
	buf_release(&words);
	return rc;
}

static int say_skipped(void *ctx, const struct err *why)
{
	const struct listener *listener = ctx;

	listener->inputs->is_partial = true;
	return say_warning(listener, why->place, "left out: ", why->detail);
}

static int say_sentence(void *ctx, const char *text)
{
	const struct listener *listener = ctx;

	return say_warning(listener, listener->name, "", text);
}

static int say_cut(const struct listener *listener, const struct err *err)
{
	listener->inputs->is_partial = true;
	return say_warning(
		listener, err->place, "it is cut short and used as far as it goes: ", err->detail);
}

/* What a dump lacks. Lines that were left out have their own place. */
static int say_warnings(const struct listener *listener, const struct sums *sums)
{
	char text[60];
	int rc = 0;

	for (size_t i = 0; !rc && i < sums->warning_count && i < WARNINGS_MAX; i++) {
		const struct left_out *line = &sums->left_out[i];

		rc = line->place ? say_warning(listener, line->place, "left out: ", line->why) :
				   say_warning(listener, listener->name, "", sums->warnings[i]);
	}
	if (!rc && sums->warning_count > WARNINGS_MAX) {
		snprintf(text, sizeof(text), "and %zu more", sums->warning_count - WARNINGS_MAX);
		rc = say_warning(listener, listener->name, "", text);
	}
	return rc;
}

/* What cannot be asked of a comparison that is read, or NULL. */
static const char *too_much(const struct options *options)
{
	if (options->path_count > 1)
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
	const char *why = too_much(options);
	int rc;

	if (why)
		return err_set(err, ERR_USAGE, listener->name, "%s", why);
	rc = comparison_read(
		&listener->inputs->comparison, source, (unsigned)options->input_base, &words, err);
	if (rc && rc != -ERR_CUT)
		return rc;
	why = no_limit(options, &listener->inputs->comparison);
	listener->inputs->is_partial |= why || listener->inputs->comparison.is_partial;
	if (why && say_warning(listener, listener->name, "--max-growth cannot judge it: ", why))
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
	if ((!rc || rc == -ERR_CUT) && say_warnings(listener, sums))
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	return rc;
}

static bool is_read_once(const char *path)
{
	return !strcmp(path, "-") || os_is_special(path);
}

/* Looks for the first sign of what a file is, where a peek shows nothing but messages of the symbol
 * engine. */
static int look_further(const char *path, enum file_kind *kind, struct err *err)
{
	struct source *source;
	int rc = source_open(&source, path, err);

	if (rc)
		return rc;
	rc = file_kind_find(kind, source, err);
	source_close(source);
	return rc;
}

/* Finds out what a source is, and words for a refusal or NULL. 0 or an error. */
static int find_kind(const char *path, struct source *source, enum file_kind *kind,
	const char **words, struct err *err)
{
	const char *bytes;
	int64_t len = source_peek(source, &bytes, err);

	if (len == -ERR_CUT) /* there is nothing that could be used */
		return err_set(err, ERR_EMPTY, path, "what is packed in it is cut off");
	if (len < 0)
		return (int)len;
	*kind = file_kind_of(bytes, (size_t)len);
	*words = report_is(bytes, (size_t)len);
	if (*kind != FILE_UNKNOWN || *words)
		return 0;
	*words = "nor is it a comparison";
	if ((size_t)len < SOURCE_PEEK_BYTES)
		return 0;
	if (!is_read_once(path))
		return look_further(path, kind, err);
	*words = "nor does it start like a comparison; in a file more is searched";
	return 0;
}

static int read_as(const struct options *options, struct listener *listener, size_t number,
	struct source *source, enum file_kind *kind, struct err *err)
{
	const char *words = NULL;
	int rc = find_kind(listener->path, source, kind, &words, err);

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
	if (rc == -ERR_CUT)
		rc = say_cut(listener, err) ? err_set(err, ERR_NOMEM, NULL, NULL) : 0;
	source_close(source);
	return rc ? rc : kind == FILE_COMPARISON;
}

/* Of a sample and of all there is, growth may be nothing but the sample's error. */
static int check_samples(struct inputs *inputs, const struct options *options, FILE *say)
{
	size_t last = inputs->dump_count - 1;
	struct sums *newest = &inputs->dumps[last];
	const char *words =
		"it was sampled in another way than the dump it is compared with: growth may "
		"be an error of the estimates";

	for (size_t i = 0; i < last; i++) {
		struct listener listener = {
			options->paths[last], options->paths[last], say, inputs};

		if (inputs->dumps[i].sample_bytes == newest->sample_bytes)
			continue;
		if (sums_warn(newest, words))
			return -ERR_NOMEM;
		return say_warning(&listener, listener.name, "", words);
	}
	return 0;
}

int inputs_read(struct inputs *inputs, const struct options *options, FILE *say, struct err *err)
{
	struct match_request match = {.mode = options->match,
		.no_symbols = options->no_symbols,
		.symbols = &options->symbols.options,
		.by_heap = options->group == GROUP_HEAP,
		.heaps = options->heaps,
		.heap_count = options->heap_count};
	int rc = 0;

	*inputs = (struct inputs){.dumps = calloc(options->path_count, sizeof(*inputs->dumps))};
	if (!inputs->dumps)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	for (; inputs->dump_count < options->path_count; inputs->dump_count++)
		sums_init(&inputs->dumps[inputs->dump_count]);
	for (size_t i = 0; !rc && i < options->path_count; i++) {
		struct listener listener = {options->paths[i], options->paths[i], say, inputs};

		rc = read_one(options, &listener, i, err);
	}
	if (rc)
		return rc < 0 ? rc : 0;
	if (check_samples(inputs, options, say) ||
		comparison_make(&inputs->comparison, inputs->dumps, options->path_count, &match))
		return err_set(err, ERR_NOMEM, NULL, NULL);
	return 0;
}

void inputs_release(struct inputs *inputs)
{
	comparison_release(&inputs->comparison);
	for (size_t i = 0; i < inputs->dump_count; i++)
		sums_release(&inputs->dumps[i]);
	free(inputs->dumps);
}
