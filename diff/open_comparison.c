#include "diff/open_comparison.h"

#include <string.h>

#include "core/buf.h"
#include "core/os.h"
#include "core/text.h"
#include "diff/read_comparison.h"

int comparison_is_next(struct source *source, struct err *err)
{
	const char *bytes;
	int64_t len = source_peek(source, &bytes, err);

	if (len < 0)
		return (int)len;
	return comparison_is(bytes, (size_t)len);
}

int comparison_open(struct source **source, const char *path, struct err *err)
{
	struct source *opened;
	int rc;

	if (!strcmp(path, "-") || os_is_special(path))
		return 0;
	rc = source_open(&opened, path, err);
	if (rc)
		return rc;
	rc = comparison_is_next(opened, err);
	if (rc > 0)
		*source = opened;
	else
		source_close(opened);
	return rc < 0 ? rc : 0;
}

struct aloud {
	const char *name;
	FILE *say;
};

static int say_warning(
	const struct aloud *aloud, const char *place, const char *what, const char *text)
{
	struct buf words;
	int rc;

	buf_init(&words);
	rc = buf_printf(&words, "%s: warning: %s%s", place, what, text);
	if (!rc) {
		fprintf(aloud->say, "hdiff: %s\n", text_harmless(words.data));
		fflush(aloud->say);
	}
	buf_release(&words);
	return rc;
}

static int skipped(void *ctx, const struct err *why)
{
	return say_warning(ctx, why->place, "left out: ", why->detail);
}

static int warning(void *ctx, const char *text)
{
	const struct aloud *aloud = ctx;

	return say_warning(aloud, aloud->name, "", text);
}

int comparison_read_aloud(struct comparison *comparison, struct source *source, unsigned base,
	FILE *say, struct err *err)
{
	struct aloud aloud = {source_name(source), say};
	struct read_words words = {&aloud, skipped, warning};

	return comparison_read(comparison, source, base, &words, err);
}
