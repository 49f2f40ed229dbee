#include "diff/ask/pattern.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/buf.h"

#define KNOWN_MAX ((size_t)1 << 20) /* texts that are remembered */
/* Far above what a sane pattern needs for a name, far below what a user would wait for. */
#define STEPS_MAX 1000000
#define DEPTH_MAX 100000
#define HEAP_MAX_KIB 65536
#define JIT_STACK_MAX_BYTES ((size_t)1 << 20)

struct pattern {
	const char *text;
	pcre2_code *code;
	pcre2_match_context *context;
	pcre2_match_data *data;
	pcre2_jit_stack *jit_stack; /* NULL: there is no JIT */
	bool has_matched;
};

void patterns_init(struct patterns *patterns, const char *option)
{
	*patterns = (struct patterns){.option = option};
	table_init(&patterns->known);
}

static void pattern_release(struct pattern *pattern)
{
	pcre2_match_data_free(pattern->data);
	pcre2_match_context_free(pattern->context);
	pcre2_jit_stack_free(pattern->jit_stack);
	pcre2_code_free(pattern->code);
}

void patterns_release(struct patterns *patterns)
{
	for (size_t i = 0; i < patterns->count; i++)
		pattern_release(&patterns->items[i]);
	free(patterns->items);
	table_release(&patterns->known);
	patterns_init(patterns, patterns->option);
}

static int compile(struct pattern *pattern, const char *option, struct err *err)
{
	char why[200], place[sizeof(err->place)];
	int code;
	size_t at;

	pattern->code = pcre2_compile((PCRE2_SPTR)pattern->text, PCRE2_ZERO_TERMINATED,
		PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);
	if (pattern->code)
		return 0;
	if (code == PCRE2_ERROR_HEAP_FAILED)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	if (pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof(why)) < 0)
		snprintf(why, sizeof(why), "error %d", code);
	snprintf(place, sizeof(place), "%s %s", option, pattern->text);
	return err_set(err, ERR_USAGE, place, "bad pattern: %s at offset %zu", why, at);
}

static int limit(struct pattern *pattern, struct err *err)
{
	pattern->context = pcre2_match_context_create(NULL);
	pattern->data = pcre2_match_data_create(1, NULL);
	if (!pattern->context || !pattern->data)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	pcre2_set_match_limit(pattern->context, STEPS_MAX);
	pcre2_set_depth_limit(pattern->context, DEPTH_MAX);
	pcre2_set_heap_limit(pattern->context, HEAP_MAX_KIB);
	return 0;
}

/* Where there is no JIT, or it cannot do this pattern, the pattern is interpreted. */
static void quicken(struct pattern *pattern)
{
	if (pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE))
		return;
	pattern->jit_stack = pcre2_jit_stack_create(32 << 10, JIT_STACK_MAX_BYTES, NULL);
	if (pattern->jit_stack)
		pcre2_jit_stack_assign(pattern->context, NULL, pattern->jit_stack);
}

int patterns_add(struct patterns *patterns, const char *text, struct err *err)
{
	struct pattern pattern = {.text = text};
	int rc = compile(&pattern, patterns->option, err);

	if (!rc)
		rc = limit(&pattern, err);
	if (!rc && array_grow((void **)&patterns->items, &patterns->cap, patterns->count,
			   sizeof(pattern)))
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	if (rc) {
		pattern_release(&pattern);
		return rc;
	}
	quicken(&pattern);
	patterns->items[patterns->count++] = pattern;
	return 0;
}

static int match(const struct patterns *patterns, size_t index, const char *text, size_t len,
	struct err *err)
{
	struct pattern *pattern = &patterns->items[index];
	char why[200], place[sizeof(err->place)];
	int rc = pcre2_match(
		pattern->code, (PCRE2_SPTR)text, len, 0, 0, pattern->data, pattern->context);

	pattern->has_matched |= rc >= 0;
	if (rc >= 0 || rc == PCRE2_ERROR_NOMATCH)
		return rc >= 0;
	if (rc == PCRE2_ERROR_NOMEMORY)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	if (pcre2_get_error_message(rc, (PCRE2_UCHAR *)why, sizeof(why)) < 0)
		snprintf(why, sizeof(why), "error %d", rc);
	snprintf(place, sizeof(place), "%s %s", patterns->option, pattern->text);
	return err_set(
		err, ERR_USAGE, place, "this pattern cannot be held against %.100s: %s", text, why);
}

int patterns_match(const struct patterns *patterns, const char *text, struct err *err)
{
	size_t len = strlen(text);
	int found = 0;

	for (size_t i = 0; !found && i < patterns->count; i++)
		found = match(patterns, i, text, len, err);
	return found;
}

int patterns_match_known(struct patterns *patterns, const char *text, struct err *err)
{
	size_t len = strlen(text);
	const uint64_t *known = table_find(&patterns->known, text, len);
	int found;

	if (known)
		return (int)*known;
	found = patterns_match(patterns, text, err);
	if (found >= 0 && patterns->known.count < KNOWN_MAX &&
		table_add(&patterns->known, text, len, (uint64_t)found))
		return err_set(err, ERR_NOMEM, NULL, NULL);
	return found;
}

size_t patterns_unmatched(const struct patterns *patterns, size_t from)
{
	while (from < patterns->count && patterns->items[from].has_matched)
		from++;
	return from;
}

void patterns_try(struct patterns *patterns, const char *text)
{
	size_t len = strlen(text);

	for (size_t i = 0; (i = patterns_unmatched(patterns, i)) < patterns->count; i++) {
		struct err why;

		if (match(patterns, i, text, len, &why) < 0)
			patterns->items[i].has_matched = true;
	}
}

const char *pattern_text(const struct patterns *patterns, size_t index)
{
	return patterns->items[index].text;
}
