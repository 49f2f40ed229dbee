#include "diff/options.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "core/kv.h"
#include "core/size.h"

enum {
	DECIMAL = 1,
	HEX,
	FORMAT,
	OUTPUT,
	INCLUDE,
	EXCLUDE,
	MODULE,
	HEAP,
	MIN_BYTES,
	MIN_COUNT,
	SHOWN,
	SORT,
	GROUP,
	INVERT,
	STRIP,
	NO_STRIP,
	STRIP_FILE,
	SUPPRESS,
	MAX_GROWTH,
	MATCH,
	INPUT_BASE,
	NO_SYMBOLS,
	FORCE,
	HELP,
	VERSION,
	IGNORED,
	LOG,
};

const struct opt hdiff_options[] = {
	{DECIMAL, "d", "decimal", NULL, "decimal numbers (the default)"},
	{HEX, NULL, "hex", NULL, "hexadecimal numbers"},
	{FORMAT, "o", "format", "NAME", "form of the report (default: text)"},
	{OUTPUT, "f", "output", "FILE", "write to FILE: all of it or nothing"},
	{INCLUDE, "i", "include", "RE", "only stacks with a frame that matches; repeatable"},
	{EXCLUDE, "x", "exclude", "RE", "no stacks with a frame that matches; repeatable"},
	{MODULE, NULL, "module", "NAME", "only stacks through this module; repeatable"},
	{HEAP, NULL, "heap", "ADDR", "only blocks of this heap; repeatable"},
	{MIN_BYTES, NULL, "min-bytes", "SIZE", "only changes of SIZE or more"},
	{MIN_COUNT, NULL, "min-count", "N", "only changes of N blocks or more"},
	{SHOWN, "n", NULL, "N", "show the first N, count all"},
	{SORT, NULL, "sort", "KEY", "bytes (the default), count, new, old or name"},
	{GROUP, NULL, "group", "WHAT", "stack (the default), function, file, module or heap"},
	{INVERT, NULL, "invert", NULL, "frames outermost first"},
	{STRIP, NULL, "strip", NULL,
		"leave out innermost frames of allocators (default for groups)"},
	{NO_STRIP, NULL, "no-strip", NULL, "show them (default for stacks)"},
	{STRIP_FILE, NULL, "strip-file", "FILE",
		"leave out also those that FILE lists; repeatable"},
	{SUPPRESS, NULL, "suppress", "FILE", "no stacks that FILE lists; repeatable"},
	{MAX_GROWTH, NULL, "max-growth", "SIZE[,N]", "exit status 1 when growth is more"},
	{MATCH, NULL, "match", "HOW", "auto (the default), id, address, module or symbol"},
	{INPUT_BASE, NULL, "input-base", "BASE", "hex or decimal: numbers of a comparison"},
	{NO_SYMBOLS, NULL, "no-symbols", NULL, "modules and offsets only, no names"},
	SYMBOL_OPTS,
	{FORCE, NULL, "force", NULL, "use a dump that is cut short as far as it goes"},
	{HELP, "h", "help", NULL, "print this and end"},
	{VERSION, NULL, "version", NULL, "print the version and end"},
	{HELP, "?", NULL, NULL, NULL},
	{IGNORED, "l", NULL, NULL, NULL}, /* lines of source are shown anyway */
	{IGNORED, "v", NULL, NULL, NULL},
	{LOG, "v", NULL, "FILE", NULL}, /* as -v:FILE only */
	{0},
};

static const struct options defaults = {
	.match = MATCH_AUTO,
	.group = GROUP_STACK,
	.sort = SORT_BYTES,
	.shown_max = SIZE_MAX,
	.strip = STRIP_DEFAULT,
	.format = report_formats,
	.growth_max_bytes = UINT64_MAX,
	.growth_max_blocks = UINT64_MAX,
};

/* ---------------------------------------------------------------- words */

struct word {
	const char *name;
	int value;
};

static const struct word sorts[] = {
	{"bytes", SORT_BYTES},
	{"count", SORT_COUNT},
	{"new", SORT_NEW},
	{"old", SORT_OLD},
	{"name", SORT_NAME},
	{NULL, 0},
};

static const struct word groups[] = {
	{"stack", GROUP_STACK},
	{"function", GROUP_FUNCTION},
	{"file", GROUP_FILE},
	{"module", GROUP_MODULE},
	{"heap", GROUP_HEAP},
	{NULL, 0},
};

static const struct word matches[] = {
	{"auto", MATCH_AUTO},
	{"id", MATCH_ID},
	{"address", MATCH_ADDRESS},
	{"module", MATCH_MODULE},
	{"symbol", MATCH_SYMBOL},
	{NULL, 0},
};

static const struct word bases[] = {{"hex", 16}, {"decimal", 10}, {NULL, 0}};

/* An unknown word, with those that are known: next() gives them one by one. */
static int unknown_word(const char *text, const char *(*next)(const void *all, size_t i),
	const void *all, struct err *err)
{
	const char *name;
	struct buf names;
	int rc = 0;

	buf_init(&names);
	for (size_t i = 0; !rc && (name = next(all, i)); i++)
		rc = buf_printf(&names, "%s%s", i ? ", " : "", name);
	rc = rc ? err_set(err, ERR_NOMEM, NULL, NULL) :
		  err_set(err, ERR_USAGE, text, "there are %s", names.data);
	buf_release(&names);
	return rc;
}

static const char *word_name(const void *all, size_t i)
{
	return ((const struct word *)all)[i].name;
}

static const char *format_name(const void *all, size_t i)
{
	return ((const struct report_format *)all)[i].name;
}

static int take_word(const struct word *words, const char *text, int *value, struct err *err)
{
	for (const struct word *word = words; word->name; word++) {
		if (!strcmp(word->name, text)) {
			*value = word->value;
			return 0;
		}
	}
	return unknown_word(text, word_name, words, err);
}

static int take_format(struct options *options, const char *text, struct err *err)
{
	for (const struct report_format *format = report_formats; format->name; format++) {
		if (!strcmp(format->name, text)) {
			options->format = format;
			return 0;
		}
	}
	return unknown_word(text, format_name, report_formats, err);
}

/* ---------------------------------------------------------------- numbers */

static int take_number(const char *text, uint64_t *value, struct err *err)
{
	return kv_number(text, 10, value) ?
		       err_set(err, ERR_USAGE, text, "this is no decimal number") :
		       0;
}

static int take_size(const char *text, size_t len, uint64_t *value, struct err *err)
{
	return size_parse(text, len, value) ?
		       err_set(err, ERR_USAGE, text, "sizes are like 65536, 64K, 1.5M or 2GiB") :
		       0;
}

static int take_limits(struct options *options, const char *text, struct err *err)
{
	size_t len = strcspn(text, ",");
	uint64_t bytes, blocks = UINT64_MAX;
	int rc = take_size(text, len, &bytes, err);

	if (!rc && text[len])
		rc = take_number(text + len + 1, &blocks, err);
	if (!rc) {
		options->growth_max_bytes = bytes;
		options->growth_max_blocks = blocks;
	}
	return rc;
}

static int take_heap(struct options *options, const char *text, struct err *err)
{
	const char *digits = text;
	uint64_t addr = heap_by_name(text);

	if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'))
		digits += 2;
	if (!addr && kv_number(digits, 16, &addr))
		return err_set(err, ERR_USAGE, text,
			"a heap is a hexadecimal address, or virtual, reserved or mapped");
	if (array_grow((void **)&options->heaps, &options->heap_cap, options->heap_count,
		    sizeof(*options->heaps)))
		return err_set(err, ERR_NOMEM, NULL, NULL);
	options->heaps[options->heap_count++] = addr;
	return 0;
}

/* ---------------------------------------------------------------- parsing */

static int take_item(struct option_list *list, const char *text, struct err *err)
{
	if (array_grow((void **)&list->items, &list->cap, list->count, sizeof(*list->items)))
		return err_set(err, ERR_NOMEM, NULL, NULL);
	list->items[list->count++] = text;
	return 0;
}

static int take_path(struct options *options, const char *path, struct err *err)
{
	if (options->path_count == DUMPS_MAX)
		return err_set(err, ERR_USAGE, path, "%d dumps at most", DUMPS_MAX);
	options->paths[options->path_count++] = path;
	return 0;
}

/* What is but a switch: false when id is something else. */
static bool take_switch(struct options *options, int id)
{
	switch (id) {
	case DECIMAL: options->style.hex = false; break;
	case HEX: options->style.hex = true; break;
	case INVERT: options->is_inverted = true; break;
	case STRIP: options->strip = STRIP_YES; break;
	case NO_STRIP: options->strip = STRIP_NO; break;
	case NO_SYMBOLS: options->no_symbols = true; break;
	case FORCE: options->force = true; break;
	case HELP: options->help = true; break;
	case VERSION: options->version = true; break;
	case IGNORED: break;
	default: return false;
	}
	return true;
}

static int take_choice(struct options *options, int id, const char *text, struct err *err)
{
	int value = 0, rc;

	switch (id) {
	case SORT:
		rc = take_word(sorts, text, &value, err);
		options->sort = (enum view_sort)value;
		break;
	case GROUP:
		rc = take_word(groups, text, &value, err);
		options->group = (enum view_group)value;
		break;
	case MATCH:
		rc = take_word(matches, text, &value, err);
		options->match = (enum match_mode)value;
		break;
	default: rc = take_word(bases, text, &options->input_base, err);
	}
	return rc;
}

static int take_value(struct options *options, int id, const char *text, struct err *err)
{
	uint64_t number;
	int rc;

	switch (id) {
	case FORMAT: return take_format(options, text, err);
	case OUTPUT: options->output = text; return 0;
	case INCLUDE: return take_item(&options->includes, text, err);
	case EXCLUDE: return take_item(&options->excludes, text, err);
	case MODULE: return take_item(&options->modules, text, err);
	case HEAP: return take_heap(options, text, err);
	case MIN_BYTES: return take_size(text, strlen(text), &options->min_bytes, err);
	case MIN_COUNT: return take_number(text, &options->min_blocks, err);
	case SHOWN:
		rc = take_number(text, &number, err);
		options->shown_max = rc || number > SIZE_MAX ? SIZE_MAX : (size_t)number;
		return rc;
	case STRIP_FILE:
		options->strip = STRIP_YES;
		return take_item(&options->strip_files, text, err);
	case SUPPRESS: return take_item(&options->suppress_files, text, err);
	case MAX_GROWTH: return take_limits(options, text, err);
	default: return take_choice(options, id, text, err);
	}
}

static size_t count_stdin(const char *const *paths, size_t count)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++)
		found += !strcmp(paths[i], "-");
	return found;
}

static int check(const struct options *options, struct err *err)
{
	const struct option_list *strip = &options->strip_files,
				 *suppress = &options->suppress_files;

	if (count_stdin(options->paths, options->path_count) +
			count_stdin(strip->items, strip->count) +
			count_stdin(suppress->items, suppress->count) >
		1)
		return err_set(err, ERR_USAGE, "-", "standard input can be read once only");
	if (options->is_inverted && options->group != GROUP_STACK)
		return err_set(err, ERR_USAGE, "--invert", "groups have no frames to turn round");
	return 0;
}

/* Names the option beside its value, in the form that was used of those that --help lists. */
static void name_option(int id, const char *given, const char *value, struct err *err)
{
	const struct opt *opt = hdiff_options;
	bool is_long;

	while (opt->id != id)
		opt++;
	is_long = opt->long_name && (!opt->short_name || !strncmp(given, "--", 2));
	snprintf(err->place, sizeof(err->place), "%s%s %s", is_long ? "--" : "-",
		is_long ? opt->long_name : opt->short_name, value);
}

/* Takes what opt_next() found at the argument given. */
static int take(struct options *options, int id, const struct opt_state *state, const char *given,
	struct err *err)
{
	int rc;

	if (id == OPT_ARGUMENT)
		return take_path(options, state->value, err);
	if (id == LOG && given[2] != ':')
		return err_set(err, ERR_USAGE, given, "there is no such option");
	if (id < 0 || id == LOG || take_switch(options, id))
		return id < 0 ? id : 0;
	rc = symbol_arguments_take(&options->symbols, id, state->value, err);
	if (!rc)
		rc = take_value(options, id, state->value, err);
	if (rc > 0)
		return 0;
	if (rc == -ERR_USAGE)
		name_option(id, given, state->value, err);
	return rc;
}

int options_parse(struct options *options, int argc, char **argv, struct err *err)
{
	struct opt_state state;
	const char *given;
	int id, rc = 0;

	*options = defaults;
	opt_init(&state, hdiff_options, argc, argv);
	while (!rc && !options->help && !options->version) {
		given = state.at < argc ? argv[state.at] : "";
		id = opt_next(&state, err);
		if (!id)
			break;
		rc = take(options, id, &state, given, err);
	}
	return rc || options->help || options->version ? rc : check(options, err);
}

static void list_release(struct option_list *list)
{
	free(list->items);
	*list = (struct option_list){0};
}

void options_release(struct options *options)
{
	list_release(&options->includes);
	list_release(&options->excludes);
	list_release(&options->modules);
	list_release(&options->suppress_files);
	list_release(&options->strip_files);
	free(options->heaps);
	symbol_arguments_release(&options->symbols);
	*options = defaults;
}

bool options_strip(const struct options *options)
{
	return options->strip == STRIP_YES ||
	       (options->strip == STRIP_DEFAULT && options->group != GROUP_STACK);
}

void options_usage(FILE *to)
{
	fprintf(to, "usage: hdiff [options] OLD [NEW [NEWER...]]\n"
		    "Say which stacks grew from one heap dump to the next.\n\n");
	opt_help(hdiff_options, to);
}
