#include "diff/inputs.h"

#include <string.h>

#include "core/buf.h"
#include "core/source.h"
#include "core/text.h"
#include "diff/read/read_comparison.h"

/* Who is told. */
struct listener {
	const char *path;
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

	return say_warning(listener, listener->path, "", text);
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
				   say_warning(listener, listener->path, "", sums->warnings[i]);
	}
	if (!rc && sums->warning_count > WARNINGS_MAX) {
		snprintf(text, sizeof(text), "and %zu more", sums->warning_count - WARNINGS_MAX);
		rc = say_warning(listener, listener->path, "", text);
	}
	return rc;
}

static int read_comparison(const struct options *options, struct listener *listener,
	struct source *source, struct err *err)
{
	struct read_words words = {listener, say_skipped, say_sentence};

	if (options->path_count > 1)
		return err_set(err, ERR_USAGE, listener->path, "a comparison is read alone");
	return comparison_read(
		&listener->inputs->comparison, source, (unsigned)options->input_base, &words, err);
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

/* Reads input number. 1: it was a printed comparison; 0: a dump; or an error. */
static int read_one(
	const struct options *options, struct listener *listener, size_t number, struct err *err)
{
	struct source *source;
	const char *bytes;
	int rc = source_open(&source, listener->path, err);
	bool is_comparison;
	int64_t len;

	if (rc)
		return rc;
	len = source_peek(source, &bytes, err);
	is_comparison = len > 0 && comparison_is(bytes, (size_t)len);
	if (len == -ERR_CUT) /* there is nothing that could be used */
		rc = err_set(err, ERR_EMPTY, listener->path, "what is packed in it is cut off");
	else if (len < 0)
		rc = (int)len;
	else if (is_comparison)
		rc = read_comparison(options, listener, source, err);
	else
		rc = read_dump(listener, number, source, err);
	if (rc == -ERR_CUT)
		rc = say_cut(listener, err) ? err_set(err, ERR_NOMEM, NULL, NULL) : 0;
	source_close(source);
	return rc ? rc : is_comparison;
}

int inputs_read(struct inputs *inputs, const struct options *options, FILE *say, struct err *err)
{
	struct match_request match = {.mode = options->match,
		.no_symbols = options->no_symbols,
		.by_heap = options->group == GROUP_HEAP,
		.heaps = options->heaps,
		.heap_count = options->heap_count};
	int rc = 0;

	*inputs = (struct inputs){.is_partial = false};
	for (size_t i = 0; i < DUMPS_MAX; i++)
		sums_init(&inputs->dumps[i]);
	for (size_t i = 0; !rc && i < options->path_count; i++) {
		struct listener listener = {options->paths[i], say, inputs};

		rc = read_one(options, &listener, i, err);
	}
	if (rc)
		return rc < 0 ? rc : 0;
	if (comparison_make(&inputs->comparison, inputs->dumps, options->path_count, &match))
		return err_set(err, ERR_NOMEM, NULL, NULL);
	return 0;
}

void inputs_release(struct inputs *inputs)
{
	comparison_release(&inputs->comparison);
	for (size_t i = 0; i < DUMPS_MAX; i++)
		sums_release(&inputs->dumps[i]);
}
