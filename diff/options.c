/* hdiff's options: the table, and parsing. */
#include "diff/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/opt.h"
#include "core/base/parse.h"
#include "core/dump/kv.h"
#include "diff/match/match.h"
#include "diff/query/view.h"
#include "diff/trend/trend.h"

enum {
	DECIMAL = 1,
	HEX,
	FORMAT,
	OUTPUT,
	JUNIT,
	ANNOTATE,
	INCLUDE,
	EXCLUDE,
	MODULE,
	HEAP,
	LOST,
	SIZE,
	THREAD,
	MIN_BYTES,
	MIN_COUNT,
	TREND_VERDICT,
	SHOWN,
	NO_STACKS,
	HEAPS,
	PINNED,
	SIZES,
	AGE,
	TREE,
	COLOUR,
	NO_PAGER,
	SORT,
	GROUP,
	INVERT,
	REVERSE,
	STRIP,
	NO_STRIP,
	STRIP_FILE,
	SUPPRESS,
	SPARK,
	MAX_GROWTH,
	MAX_GROWTH_ROW,
	MAX_GROWTH_NET,
	MATCH,
	WARM_UP,
	SINCE,
	UNTIL,
	ACROSS_RESTARTS,
	SERIES,
	SUM,
	LIST,
	VERBOSE,
	PROCESS,
	EXTRACT,
	OVER_TIME,
	HISTOGRAM,
	BY_MARK,
	CLASS,
	FROM,
	TO,
	OLDER_THAN,
	STILL_AT,
	TRANSIENT,
	PEAK,
	INPUT_BASE,
	NO_SYMBOLS,
	FORCE,
	OVERWRITE,
	HELP,
	VERSION,
	IGNORED,
	LOG,
};

static const struct opt hdiff_options[] = {
	{DECIMAL, "d", "decimal", NULL, "print UMDH's form, in decimal numbers"},
	{HEX, NULL, "hex", NULL, "print UMDH's form, in hexadecimal numbers"},
	{FORMAT, "o", "format", "NAME",
		"report as text (the default), umdh, html, json, ...: see the manual"},
	{OUTPUT, "f", "output", "FILE", "write to FILE, whole or not at all"},
	{INCLUDE, "i", "include", "RE", "show only stacks with a frame that matches; repeatable"},
	{EXCLUDE, "x", "exclude", "RE", "hide stacks with a frame that matches; repeatable"},
	{MODULE, NULL, "module", "NAME", "show only stacks through this module; repeatable"},
	{HEAP, NULL, "heap", "ADDR", "count only blocks of this heap; repeatable"},
	{LOST, "g", "lost", NULL, "count only blocks that nothing points to (dumps of hsnap -g)"},
	{SIZE, NULL, "size", "SIZE", "count only blocks of this size, or of 1K..4K"},
	{THREAD, NULL, "thread", "NAME|ID",
		"count only what these threads of a recording allocated"},
	{MIN_BYTES, NULL, "min-bytes", "SIZE", "show only changes of SIZE or more"},
	{MIN_COUNT, NULL, "min-count", "N", "show only changes of N blocks or more"},
	{TREND_VERDICT, NULL, "verdict", "LIST",
		"trends to show: grows, grew-once, returns, steady, shrinks, too-few"},
	{SHOWN, "n", NULL, "N", "show only the first N (text: 20); totals count all"},
	{NO_STACKS, NULL, "no-stacks", NULL, "show only the table"},
	{HEAPS, NULL, "heaps", NULL, "show heaps: their blocks, free space and committed memory"},
	{PINNED, NULL, "pinned", NULL,
		"show stacks whose blocks keep almost unused memory allocated"},
	{SIZES, NULL, "sizes", NULL, "show the sizes of each stack's blocks"},
	{AGE, NULL, "age", NULL, "show how many blocks of each stack already existed in OLD"},
	{TREE, NULL, "tree", NULL, "show a call tree, top down; with --invert bottom up"},
	{COLOUR, NULL, "color", "WHEN", "use colors: auto (the default), always or never"},
	{NO_PAGER, NULL, "no-pager", NULL, "never show the report in a pager"},
	{SORT, NULL, "sort", "KEY",
		"by bytes, count, new, old, name; groups: total; trends: verdict, slope"},
	{GROUP, NULL, "group", "WHAT",
		"group by function, file, module, heap, memory or thread; or by stack"},
	{INVERT, NULL, "invert", NULL, "show the outermost frame first"},
	{REVERSE, NULL, "reverse", NULL, "with -o folded: NEW before OLD, to draw what shrank"},
	{STRIP, NULL, "strip", NULL,
		"hide the innermost frames of allocators (default for groups)"},
	{NO_STRIP, NULL, "no-strip", NULL, "show all frames (default for stacks)"},
	{STRIP_FILE, NULL, "strip-file", "FILE", "also hide frames that FILE lists; repeatable"},
	{SUPPRESS, NULL, "suppress", "FILE",
		"hide stacks listed in FILE (runtime: a built-in list); repeatable"},
	{SPARK, NULL, "spark", "HOW", "bars of a trend: auto, utf8, ascii or none"},
	{MAX_GROWTH, NULL, "max-growth", "LIMIT",
		"exit with 1 if growth is over SIZE[,BLOCKS], SIZE/h or handles:N"},
	{MAX_GROWTH_ROW, NULL, "max-growth-row", "LIMIT",
		"the same for the stack that grew most: SIZE[,BLOCKS]"},
	{MAX_GROWTH_NET, NULL, "max-growth-net", "LIMIT",
		"the same for growth minus decrease: SIZE[,BLOCKS]"},
	{JUNIT, NULL, "junit", "FILE", "also write the result to FILE as JUnit XML"},
	{ANNOTATE, NULL, "annotate", NULL,
		"print ::error lines for GitHub Actions if a limit is exceeded"},
	{MATCH, NULL, "match", "HOW",
		"match stacks by auto (default), id, address, module, symbol, function"},
	{WARM_UP, NULL, "warm-up", "N", "leave out the first N dumps of each process"},
	{SINCE, NULL, "since", "TIME",
		"use only dumps since TIME: a date, or 6h for 6 hours before the newest"},
	{UNTIL, NULL, "until", "TIME", "use only dumps up to TIME"},
	{ACROSS_RESTARTS, NULL, "across-restarts", NULL,
		"make one series of all processes with the same image"},
	{SERIES, NULL, "series", "N", "show only series number N"},
	{SUM, NULL, "sum", NULL, "add up all dumps, one per process"},
	{LIST, NULL, "list", NULL, "list what a recording or an ETW log contains; -v lists more"},
	{PROCESS, NULL, "process", "NAME|PID", "select the process of an ETW log"},
	{EXTRACT, NULL, "extract", NULL, "write a dump of one moment of a recording: FILE@MOMENT"},
	{OVER_TIME, NULL, "over-time", NULL, "show a recording's use of memory over time"},
	{HISTOGRAM, NULL, "histogram", NULL, "show the sizes of a recording's allocations"},
	{BY_MARK, NULL, "by-mark", NULL,
		"show what was kept from each mark of a recording to the next"},
	{CLASS, NULL, "class", "CLASS",
		"what to count in a recording: aifo (the default), aifi, aofi, aofo, ai"},
	{FROM, NULL, "from", "MOMENT", "start of the window: 10s, 40%, peak, a mark, a time"},
	{TO, NULL, "to", "MOMENT", "end of the window"},
	{OLDER_THAN, NULL, "older-than", "DURATION",
		"show what exists at the end and was allocated that long before"},
	{STILL_AT, NULL, "still-at", "MOMENT",
		"show what was allocated in the window and exists at MOMENT"},
	{TRANSIENT, NULL, "transient", NULL,
		"show what was allocated and freed in the window, as --class aifi"},
	{PEAK, NULL, "peak", NULL, "show the peak of a recording, like FILE@peak"},
	{INPUT_BASE, NULL, "input-base", "BASE",
		"base of the numbers in a comparison: hex or decimal"},
	{NO_SYMBOLS, NULL, "no-symbols", NULL, "show modules and offsets, not names"},
	SYMBOL_OPTS,
	{FORCE, NULL, "force", NULL, "accept dumps that are cut short, damaged or incomplete"},
	{OVERWRITE, NULL, "overwrite", NULL, "let -f and --junit replace any file"},
	{HELP, "h", "help", NULL, "print this help"},
	{VERSION, NULL, "version", NULL, "print the version"},
	{HELP, "?", NULL, NULL, NULL},
	{IGNORED, "l", NULL, NULL, NULL}, /* source lines are always shown */
	{VERBOSE, "v", NULL, NULL, NULL},
	{LOG, "v", NULL, "FILE", NULL}, /* only as -v:FILE */
	{0},
};

static const struct options defaults = {
	.match = MATCH_AUTO,
	.group = GROUP_STACK,
	.sort = SORT_DEFAULT,
	.shown_max = SIZE_MAX,
	.strip = STRIP_DEFAULT,
	.grown_max = {UINT64_MAX, UINT64_MAX},
	.row_max = {UINT64_MAX, UINT64_MAX},
	.net_max = {UINT64_MAX, UINT64_MAX},
};

/* ---------------------------------------------------------------- numbers */

static int parse_number(const char *text, uint64_t *value, struct err *err)
{
	return kv_number(text, 10, value) ? err_set(err, ERR_USAGE, text, "not a decimal number") :
					    0;
}

static int parse_count(const char *text, uint64_t least, size_t *value, struct err *err)
{
	uint64_t number;

	if (kv_number(text, 10, &number) || number < least || number > SIZE_MAX)
		return err_set(
			err, ERR_USAGE, text, "not a decimal number of at least %d", (int)least);
	*value = (size_t)number;
	return 0;
}

static int parse_moment(struct moment *moment, const char *text, bool is_end, struct err *err)
{
	return moment_parse(text, is_end, moment) ?
		       err_set(err, ERR_USAGE, text,
			       "give a time such as 2026-11-20 or 2026-11-20T10:00 (UTC), or 6h "
			       "for 6 hours before the newest dump") :
		       0;
}

static int parse_size(const char *text, size_t len, uint64_t *value, struct err *err)
{
	return size_parse(text, len, value) ?
		       err_set(err, ERR_USAGE, text,
			       "give a size such as 65536, 64K, 1.5M or 2GiB") :
		       0;
}

/* Parses "64", "1K..4K", "1K.." or "..4K". */
static int parse_sizes(struct size_limits *sizes, const char *text, struct err *err)
{
	const char *dots = strstr(text, ".."), *most = dots ? dots + 2 : text;
	int rc = 0;

	*sizes = (struct size_limits){.is_limited = true, .most_bytes = UINT64_MAX};
	if (dots != text)
		rc = parse_size(text, dots ? (size_t)(dots - text) : strlen(text),
			&sizes->least_bytes, err);
	if (!rc && (*most || dots == text))
		rc = parse_size(most, strlen(most), &sizes->most_bytes, err);
	if (!rc && sizes->least_bytes > sizes->most_bytes)
		rc = err_set(err, ERR_USAGE, text, "the first size is above the second");
	return rc;
}

/* Parses "1M/h" or "10M/d". */
static int parse_rate(struct options *options, const char *text, size_t len, struct err *err)
{
	const char *unit = text + len + 1;
	uint64_t bytes;
	int rc;

	if (strcmp(unit, "h") != 0 && strcmp(unit, "d") != 0)
		return err_set(err, ERR_USAGE, text, "a rate is SIZE/h or SIZE/d");
	rc = parse_size(text, len, &bytes, err);
	if (!rc) {
		options->rate_max_bytes = bytes;
		options->rate_max_hours = *unit == 'h' ? 1 : 24;
	}
	return rc;
}

/* Parses "64K" or "64K,100". */
static int parse_limit(struct growth_limit *limit, const char *text, struct err *err)
{
	size_t len = strcspn(text, ",");
	struct growth_limit read = {.blocks = UINT64_MAX};
	int rc = parse_size(text, len, &read.bytes, err);

	if (!rc && text[len])
		rc = parse_number(text + len + 1, &read.blocks, err);
	if (!rc)
		*limit = read;
	return rc;
}

/* Parses "threads:5", "private:10M" or "handles:Event:100". */
static int parse_figure_limit(struct options *options, const char *text, struct err *err)
{
	const char *value = strrchr(text, ':') + 1;
	struct figure_limit limit = {.key = text, .key_len = (size_t)(value - 1 - text)};
	bool is_count;
	int rc;

	if (!balance_key_known(limit.key, limit.key_len, &is_count))
		return err_set(err, ERR_USAGE, text,
			"not a figure of a process; figures are private, threads, handles, gdi, "
			"user, handles:TYPE, and the parts that -o json lists in `balance`");
	rc = is_count ? parse_number(value, &limit.most, err) :
			parse_size(value, strlen(value), &limit.most, err);
	if (rc)
		return rc;
	array_grow((void **)&options->figure_max, &options->figure_max_cap,
		options->figure_max_count, sizeof(*options->figure_max));
	options->figure_max[options->figure_max_count++] = limit;
	return 0;
}

static int parse_heap(struct options *options, const char *text, struct err *err)
{
	const char *digits = text;
	uint64_t addr = !strcmp(text, "heaps")	 ? HEAPS_ALL :
			!strcmp(text, "handles") ? HANDLES_ALL :
						   heap_by_name(text);

	if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'))
		digits += 2;
	if (!addr && kv_number(digits, 16, &addr))
		return err_set(err, ERR_USAGE, text,
			"a heap is a hexadecimal address, or heaps, handles, virtual, reserved, "
			"mapped or stack");
	array_grow((void **)&options->heaps, &options->heap_cap, options->heap_count,
		sizeof(*options->heaps));
	options->heaps[options->heap_count++] = addr;
	return 0;
}

/* ---------------------------------------------------------------- parsing */

static int add_item(struct option_list *list, const char *text)
{
	array_grow((void **)&list->items, &list->cap, list->count, sizeof(*list->items));
	list->items[list->count++] = text;
	return 0;
}

/* Handles an option without a value. Returns false for any other option. */
static bool handle_switch(struct options *options, int id)
{
	switch (id) {
	case DECIMAL:
	case HEX:
		options->style.hex = id == HEX;
		options->is_umdh = true;
		break;
	case SIZES: options->shows_sizes = true; break;
	case AGE: options->shows_age = true; break;
	case PINNED: options->shows_pinned = true; break;
	case TREE: options->style.is_tree = true; break;
	case NO_STACKS: options->style.no_stacks = true; break;
	case HEAPS: options->style.shows_heaps = true; break;
	case NO_PAGER: options->no_pager = true; break;
	case INVERT: options->is_inverted = true; break;
	case REVERSE: options->style.is_reverse = true; break;
	case STRIP: options->strip = STRIP_YES; break;
	case NO_STRIP: options->strip = STRIP_NO; break;
	case NO_SYMBOLS: options->no_symbols = true; break;
	case FORCE: options->force = true; break;
	case ANNOTATE: options->annotate = true; break;
	case OVERWRITE: options->overwrite = true; break;
	case ACROSS_RESTARTS: options->across_restarts = true; break;
	case SUM: options->sum = true; break;
	case LIST: options->list = true; break;
	case VERBOSE: options->is_verbose = true; break;
	case EXTRACT: options->extract = true; break;
	case OVER_TIME: options->chart = CHART_OVER_TIME; break;
	case HISTOGRAM: options->chart = CHART_SIZES; break;
	case BY_MARK: options->by_mark = true; break;
	case TRANSIENT: options->part.fate = FATE_AIFI; break;
	case PEAK: options->part.moment = "peak"; break;
	case HELP: options->help = true; break;
	case VERSION: options->version = true; break;
	case IGNORED: break;
	default: return false;
	}
	return true;
}

static int handle_choice(struct options *options, int id, const char *text, struct err *err)
{
	int value = 0, rc;

	switch (id) {
	case SORT:
		rc = option_word_value(sort_words, text, &value, err);
		options->sort = (enum view_sort)value;
		break;
	case SPARK:
		rc = option_word_value(spark_words, text, &value, err);
		options->style.spark = (enum spark_style)value;
		break;
	case GROUP:
		rc = option_word_value(group_words, text, &value, err);
		options->group = (enum view_group)value;
		break;
	case MATCH:
		rc = option_word_value(match_words, text, &value, err);
		options->match = (enum match_mode)value;
		break;
	case COLOUR:
		rc = option_word_value(colour_words, text, &value, err);
		options->colour = value;
		break;
	case CLASS:
		rc = option_word_value(fate_words, text, &value, err);
		options->part.fate = (enum block_fate)value;
		break;
	default: rc = option_word_value(base_words, text, &options->input_base, err);
	}
	return rc;
}

static int handle_value(struct options *options, int id, const char *text, struct err *err)
{
	uint64_t number;
	int rc;

	switch (id) {
	case FORMAT: return option_word_format(text, &options->format, err);
	case OUTPUT: options->output = text; return 0;
	case JUNIT: options->junit = text; return 0;
	case PROCESS: options->process = text; return 0;
	case INCLUDE: return add_item(&options->includes, text);
	case EXCLUDE: return add_item(&options->excludes, text);
	case MODULE: return add_item(&options->modules, text);
	case HEAP: return parse_heap(options, text, err);
	case LOST: options->only_lost = true; return 0;
	case SIZE: return parse_sizes(&options->part.sizes, text, err);
	case THREAD: options->part.thread = text; return 0;
	case MIN_BYTES: return parse_size(text, strlen(text), &options->min_bytes, err);
	case MIN_COUNT: return parse_number(text, &options->min_blocks, err);
	case TREND_VERDICT: return option_word_verdicts(text, &options->trend_verdicts, err);
	case SHOWN:
		options->is_shown_asked = true;
		rc = parse_number(text, &number, err);
		options->shown_max = rc || number > SIZE_MAX ? SIZE_MAX : (size_t)number;
		return rc;
	case STRIP_FILE: options->strip = STRIP_YES; return add_item(&options->strip_files, text);
	case SUPPRESS: return add_item(&options->suppress_files, text);
	case SINCE: return parse_moment(&options->since, text, false, err);
	case UNTIL: return parse_moment(&options->until, text, true, err);
	case FROM: options->part.from = text; return 0;
	case TO: options->part.to = text; return 0;
	case STILL_AT: options->part.still_at = text; return 0;
	case OLDER_THAN:
		return duration_parse(text, &options->part.older_ms) || !options->part.older_ms ?
			       err_set(err, ERR_USAGE, text, "give a duration such as 10m or 30s") :
			       0;
	case WARM_UP: return parse_count(text, 0, &options->warm_up, err);
	case SERIES: return parse_count(text, 1, &options->series, err);
	case MAX_GROWTH:
		if (strchr(text, ':'))
			return parse_figure_limit(options, text, err);
		return strchr(text, '/') ? parse_rate(options, text, strcspn(text, "/"), err) :
					   parse_limit(&options->grown_max, text, err);
	case MAX_GROWTH_ROW: return parse_limit(&options->row_max, text, err);
	case MAX_GROWTH_NET: return parse_limit(&options->net_max, text, err);
	default: return handle_choice(options, id, text, err);
	}
}

/* Inserts the option's name before its value in the error. Uses the user's spelling if --help lists
 * it. */
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

/* Handles a result of opt_next(). `given` is the argument. */
static int handle_option(struct options *options, int id, const struct opt_state *state,
	const char *given, struct err *err)
{
	int rc;

	if (id == OPT_ARGUMENT)
		return add_item(&options->paths, state->value);
	if (id == LOG && given[2] != ':')
		return err_set(err, ERR_USAGE, given, "no such option");
	if (id < 0 || id == LOG || handle_switch(options, id))
		return id < 0 ? id : 0;
	rc = symbol_arguments_handle(&options->symbols, id, state->value, err);
	if (!rc)
		rc = handle_value(options, id, state->value, err);
	if (rc > 0)
		return 0;
	if (rc == -ERR_USAGE)
		name_option(id, given, state->value, err);
	return rc;
}

/* Returns true if UMDH's switches apply. They apply only to reports, because only reports have
 * UMDH's form. */
static bool is_umdh(const struct options *options)
{
	return options->is_umdh && !options->chart && !options->list && !options->extract;
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
		rc = handle_option(options, id, &state, given, err);
	}
	if (!options->format && !rc)
		rc = option_word_format(is_umdh(options) ? "umdh" : "text", &options->format, err);
	options->style.is_whole_table = options->is_shown_asked || options->style.no_stacks;
	if (options->chart && options->format && options->format->includes_charts)
		options->chart = CHART_NONE; /* a page has all charts */
	options->part.by_thread = options->part.thread || options->group == GROUP_THREAD;
	options->part.is_asked = options->part.moment || options->part.fate || options->part.from ||
				 options->part.to || options->part.still_at ||
				 options->part.older_ms || options->chart || options->by_mark;
	rc = rc || options->help || options->version ? rc : options_check(options, err);
	if (options->by_mark && !rc)
		options->part.fate = FATE_AI;
	return rc;
}

static void list_release(struct option_list *list)
{
	free(list->items);
	*list = (struct option_list){0};
}

void options_release(struct options *options)
{
	list_release(&options->paths);
	list_release(&options->includes);
	list_release(&options->excludes);
	list_release(&options->modules);
	list_release(&options->suppress_files);
	list_release(&options->strip_files);
	free(options->heaps);
	free(options->figure_max);
	symbol_arguments_release(&options->symbols);
	*options = defaults;
}

void options_usage(FILE *to)
{
	fprintf(to, "usage: hdiff [options] OLD [NEW]\n"
		    "       hdiff [options] FILE|FOLDER|PATTERN ...\n"
		    "       hdiff --list|--extract|--over-time|--histogram|--by-mark [options] "
		    "RECORDING\n"
		    "Show which stacks grew from one heap dump to the next.\n\n");
	opt_help(hdiff_options, to);
}
