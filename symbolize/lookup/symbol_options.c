/* Options of all commands that look up names, and a listener that prints for these commands. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "symbolize/files/module_files.h"
#include "symbolize/symbolize.h"

int symbol_options_check(const struct symbol_options *options, struct err *err)
{
	struct finder *finder = finder_new(options, err);

	if (!finder)
		return -(int)err->code;
	finder_free(finder);
	return 0;
}

void symbol_options_warn(struct symbol_options *options)
{
	struct finder *finder = options->symbol_path ? finder_new(options, NULL) : NULL;

	if (finder)
		finder_check_places(finder);
	finder_free(finder);
	options->is_path_checked = finder;
}

static void add(const char ***items, size_t *cap, size_t *count, const char *value)
{
	array_grow((void **)items, cap, *count, sizeof(**items));
	(*items)[(*count)++] = value;
}

/* Checks the value of one option, ignoring the symbol path in the environment. Returns 1, or
 * -ERR_USAGE with the option as the error's place. */
static int check_value(
	const struct symbol_options *alone, const char *option, const char *value, struct err *err)
{
	int rc = symbol_options_check(alone, err);

	if (rc && err)
		snprintf(err->place, sizeof(err->place), "%s %s", option, value);
	return rc ? rc : 1;
}

int symbol_arguments_handle(
	struct symbol_arguments *arguments, int id, const char *value, struct err *err)
{
	struct symbol_options *options = &arguments->options;

	switch (id) {
	case SYMBOL_OPT_PATH:
		options->symbol_path = value;
		return check_value(&(struct symbol_options){.symbol_path = value}, "--symbol-path",
			value, err);
	case SYMBOL_OPT_MAP:
		add(&arguments->maps, &arguments->map_cap, &options->map_count, value);
		options->maps = arguments->maps;
		return check_value(
			&(struct symbol_options){
				.symbol_path = ".", .maps = &value, .map_count = 1},
			"--map", value, err);
	case SYMBOL_OPT_STRIP:
		add(&arguments->strips, &arguments->strip_cap, &options->strip_count, value);
		options->strip_paths = arguments->strips;
		return 1;
	case SYMBOL_OPT_RAW: options->no_demangle = true; return 1;
	case SYMBOL_OPT_MISMATCH: options->allow_mismatch = true; return 1;
	case SYMBOL_OPT_NO_CACHE: options->no_cache = true; return 1;
	case SYMBOL_OPT_NO_LOCAL: options->no_local_files = true; return 1;
	default: return 0;
	}
}

void symbol_arguments_release(struct symbol_arguments *arguments)
{
	free(arguments->maps);
	free(arguments->strips);
	*arguments = (struct symbol_arguments){0};
}

static void warn(void *ctx, const char *sentence)
{
	struct symbol_console *console = ctx;

	progress_wipe(&console->progress);
	fprintf(console->to, "%s: %s\n", console->program, sentence);
	fflush(console->to);
}

static void show_progress(void *ctx, const char *module, size_t done, size_t total)
{
	struct symbol_console *console = ctx;

	progress_report(&console->progress, module, done, total, os_time_ms());
}

static bool is_cancelled(void *ctx)
{
	(void)ctx;
	return os_was_interrupted();
}

static void set_busy(void *ctx, bool is_busy)
{
	struct symbol_console *console = ctx;

	os_hold_interrupt(is_busy);
	if (is_busy)
		progress_begin(&console->progress, console->to, console->what, os_time_ms());
	else
		progress_wipe(&console->progress);
}

struct symbol_listener symbol_console_listener(
	struct symbol_console *console, const char *program, FILE *to)
{
	*console = (struct symbol_console){.program = program, .to = to};
	snprintf(console->what, sizeof(console->what), "%s: looking up names", program);
	return (struct symbol_listener){.ctx = console,
		.warn = warn,
		.progress = show_progress,
		.is_cancelled = is_cancelled,
		.busy = set_busy};
}

bool symbol_console_stopped(void)
{
	return os_was_interrupted();
}
