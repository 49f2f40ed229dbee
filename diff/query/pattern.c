/* Matching texts: the only user of PCRE2, with limits on steps; spellings of modules; lists in
 * files. */
#include "diff/query/pattern.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/dump/source.h"

#define KNOWN_MAX ((size_t)1 << 20) /* number of cached texts */
/*
 * Maximum number of steps for one text and for all texts. A reasonable pattern needs far fewer
 * steps, and this many steps do not take long. PCRE2 does not report the number of steps. A match
 * therefore starts with a low limit, which is raised until the match ends. All raised limits of a
 * text are added up as its cost. An interpreted step takes at least ten times as long as a compiled
 * one. */
#define STEPS_FIRST 1000
#define STEPS_FACTOR 4
#define STEPS_MAX 1024000
#define STEPS_ALL (UINT64_C(4000) * STEPS_MAX)
#define STEPS_INTERPRETED 10 /* cost of an interpreted step */
#define DEPTH_MAX 100000
#define HEAP_MAX_KIB 65536
#define JIT_STACK_MAX_BYTES ((size_t)1 << 20)

struct pattern {
	const char *text;
	pcre2_code *code;
	pcre2_match_context *context;
	pcre2_match_data *data;
	pcre2_jit_stack *jit_stack; /* NULL: no JIT */
	uint64_t steps; /* cost of all texts so far; a text's first limit does not count */
	bool has_matched;
};

const char *const module_extensions[MODULE_EXTENSIONS] = {"exe", "dll", "ocx", "pyd"};

/* Returns the number of bytes of a module's extension at the end of a text, or 0. The extension must
 * follow the name of a module: "*.dll" is a condition on the extension. */
static size_t extension_len(const char *text, size_t len)
{
	for (size_t i = 0; i < MODULE_EXTENSIONS; i++) {
		size_t at = len - strlen(module_extensions[i]);

		if (at > len || at < 2 || text[at - 1] != '.' ||
			!text_same(text + at, len - at, module_extensions[i], len - at))
			continue;
		at -= text[at - 2] == '\\' ? 2 : 1;
		return at && (isalnum((unsigned char)text[at - 1]) || text[at - 1] == '_') ?
			       len - at :
			       0;
	}
	return 0;
}

void pattern_drop_extensions(char *pattern)
{
	size_t len = 0;

	for (const char *at = pattern; *at; at++) {
		if (*at == '!')
			len -= extension_len(pattern, len);
		pattern[len++] = *at;
	}
	pattern[len] = '\0';
}

void patterns_init(struct patterns *patterns, const char *option)
{
	*patterns = (struct patterns){.option = option};
	table_init(&patterns->known);
}

void patterns_release(struct patterns *patterns)
{
	for (size_t i = 0; i < patterns->count; i++) {
		pcre2_match_data_free(patterns->items[i].data);
		pcre2_match_context_free(patterns->items[i].context);
		pcre2_jit_stack_free(patterns->items[i].jit_stack);
		pcre2_code_free(patterns->items[i].code);
	}
	free(patterns->items);
	table_release(&patterns->known);
	patterns_init(patterns, patterns->option);
}

/* Compiles a pattern with the JIT. If this is not possible, the pattern is interpreted. */
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
	char why[200], place[600];
	char *names = xstrdup(text);
	int code;
	size_t at;

	pattern_drop_extensions(names);
	pattern.code = pcre2_compile((PCRE2_SPTR)names, PCRE2_ZERO_TERMINATED,
		PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);
	free(names);
	if (!pattern.code && code == PCRE2_ERROR_HEAP_FAILED)
		memory_out();
	if (!pattern.code) {
		if (pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof(why)) < 0)
			snprintf(why, sizeof(why), "error %d", code);
		snprintf(place, sizeof(place), "%s %s", patterns->option, text);
		return err_set(err, ERR_USAGE, place, "bad pattern: %s at offset %zu", why, at);
	}
	pattern.context = pcre2_match_context_create(NULL);
	pattern.data = pcre2_match_data_create(1, NULL);
	if (!pattern.context || !pattern.data)
		memory_out();
	pcre2_set_depth_limit(pattern.context, DEPTH_MAX);
	pcre2_set_heap_limit(pattern.context, HEAP_MAX_KIB);
	quicken(&pattern);
	array_grow((void **)&patterns->items, &patterns->cap, patterns->count, sizeof(pattern));
	patterns->items[patterns->count++] = pattern;
	return 0;
}

static int match_within(struct pattern *pattern, const char *text, size_t len, uint32_t steps)
{
	pcre2_set_match_limit(pattern->context, steps);
	return pcre2_match(
		pattern->code, (PCRE2_SPTR)text, len, 0, 0, pattern->data, pattern->context);
}

static int match(const struct patterns *patterns, size_t index, const char *text, size_t len,
	struct err *err)
{
	struct pattern *pattern = &patterns->items[index];
	const unsigned cost = pattern->jit_stack ? 1 : STEPS_INTERPRETED;
	char why[200], place[sizeof(err->place)];
	uint32_t steps = STEPS_FIRST;
	int rc = match_within(pattern, text, len, steps);

	while (rc == PCRE2_ERROR_MATCHLIMIT && pattern->steps < STEPS_ALL &&
		(steps *= STEPS_FACTOR) <= STEPS_MAX / cost) {
		pattern->steps += (uint64_t)steps * cost;
		rc = match_within(pattern, text, len, steps);
	}
	pattern->has_matched |= rc >= 0;
	if (rc >= 0 || rc == PCRE2_ERROR_NOMATCH)
		return rc >= 0;
	if (rc == PCRE2_ERROR_NOMEMORY)
		memory_out();
	snprintf(place, sizeof(place), "%s %s", patterns->option, pattern->text);
	if (pattern->steps >= STEPS_ALL)
		return err_set(err, ERR_USAGE, place, "this pattern takes too long on these names");
	if (pcre2_get_error_message(rc, (PCRE2_UCHAR *)why, sizeof(why)) < 0)
		snprintf(why, sizeof(why), "error %d", rc);
	return err_set(err, ERR_USAGE, place, "cannot be matched against %.100s: %s", text, why);
}

int patterns_match(const struct patterns *patterns, const char *text, struct err *err)
{
	size_t len = strlen(text);
	int found = 0;

	for (size_t i = 0; !found && i < patterns->count; i++)
		found = match(patterns, i, text, len, err);
	return found;
}

void pattern_version(char to[PATTERN_VERSION_BYTES])
{
	*to = '\0';
	pcre2_config(PCRE2_CONFIG_VERSION, to);
	to[strcspn(to, " ")] = '\0'; /* cut off the date that follows */
}

int patterns_match_known(struct patterns *patterns, const char *text, struct err *err)
{
	size_t len = strlen(text);
	const uint64_t *known = table_find(&patterns->known, text, len);
	int found;

	if (known)
		return (int)*known;
	found = patterns_match(patterns, text, err);
	if (found >= 0 && patterns->known.count < KNOWN_MAX)
		table_add(&patterns->known, text, len, (uint64_t)found);
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

struct spelt {
	const char *text;
	size_t dump;
};

/* Stores a module's key in `spellings->lower`. The key is the module's name with ASCII letters in
 * lower case, because the case of module names is ignored. */
static void make_key(struct spellings *spellings, const char *module)
{
	struct buf *lower = &spellings->lower;

	buf_clear(lower);
	buf_add_text(lower, module);
	for (size_t i = 0; i < lower->len; i++)
		lower->data[i] = text_lower(lower->data[i]);
}

static void add(struct spellings *spellings, const char *module, size_t dump)
{
	struct buf *lower = &spellings->lower;
	const uint64_t *known;
	struct spelt *spelt;

	if (!module)
		return;
	make_key(spellings, module);
	known = table_find(&spellings->known, lower->data, lower->len);
	if (known) {
		spelt = &spellings->items[*known];
		if (spelt->dump == dump && strcmp(module, spelt->text) < 0)
			spelt->text = module;
		return;
	}
	array_grow((void **)&spellings->items, &spellings->cap, spellings->count,
		sizeof(*spellings->items));
	table_add(&spellings->known, lower->data, lower->len, spellings->count);
	spellings->items[spellings->count++] = (struct spelt){module, dump};
}

void spellings_make(struct spellings *spellings, const struct naming *naming)
{
	const struct comparison *comparison = naming->comparison;

	*spellings = (struct spellings){.count = 0};
	table_init(&spellings->known);
	buf_init(&spellings->lower);
	for (size_t dump = comparison->dumps ? comparison->dump_count : 0; dump--;) {
		for (size_t i = 0; i < comparison->dumps[dump].module_list.count; i++)
			add(spellings, naming->modules[dump][i], dump);
		for (size_t i = 0; i < comparison->dumps[dump].text_count; i++)
			add(spellings, naming->texts[dump][i].module, dump);
	}
	for (size_t i = 0; !comparison->dumps && i < comparison->row_count; i++) {
		const struct frames *frames = comparison->rows[i].frames;

		for (size_t k = 0; frames && k < frames->count; k++)
			add(spellings, frames->items[k].module, 0);
	}
}

void spellings_release(struct spellings *spellings)
{
	table_release(&spellings->known);
	free(spellings->items);
	buf_release(&spellings->lower);
	*spellings = (struct spellings){.count = 0};
}

const char *spelling_find(struct spellings *spellings, const char *module)
{
	const uint64_t *known;

	make_key(spellings, module);
	known = table_find(&spellings->known, spellings->lower.data, spellings->lower.len);
	return known ? spellings->items[*known].text : module;
}

static const char blanks[] = " \t\r\v\f";

/* Handles one line of the file. Modifies `text`. */
static int handle_line(
	char *text, listfile_line *handle, void *ctx, const char *place, struct err *err)
{
	size_t len;

	text += strspn(text, blanks);
	for (len = strlen(text); len && strchr(blanks, text[len - 1]); len--)
		text[len - 1] = '\0';
	return *text && *text != '#' ? handle(ctx, text, place, err) : 0;
}

static int next_line(
	struct lines *lines, const char *name, struct buf *text, struct buf *place, struct err *err)
{
	struct line line;
	int rc = lines_next(lines, &line);

	if (rc <= 0)
		return rc;
	buf_clear(text);
	buf_clear(place);
	buf_add(text, line.text, line.len);
	buf_printf(place, "%s:%" PRIu64, name, lines->number);
	if (line.is_long || memchr(line.text, '\0', line.len))
		return err_set(err, ERR_USAGE, place->data, "not a line of text");
	return 1;
}

int pattern_list_read(const char *path, listfile_line *handle, void *ctx, struct err *err)
{
	struct dump_source from;
	struct source *source;
	struct lines lines;
	struct buf text, place;
	int rc = source_open(&source, path, err);

	if (rc)
		return rc;
	buf_init(&text);
	buf_init(&place);
	from = source_stream(source);
	lines_init(&lines, &from, err);
	while (!rc && (rc = next_line(&lines, from.name, &text, &place, err)) > 0)
		rc = handle_line(text.data, handle, ctx, place.data, err);
	lines_release(&lines);
	buf_release(&text);
	buf_release(&place);
	source_close(source);
	return rc;
}
