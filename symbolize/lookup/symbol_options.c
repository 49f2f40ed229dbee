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

static int add(const char ***items, size_t *cap, size_t *count, const char *value, struct err *err)
{
	if (array_grow((void **)items, cap, *count, sizeof(**items)))
		return err_set(err, ERR_NOMEM, NULL, NULL);
	(*items)[(*count)++] = value;
	return 0;
}

static int take_map(struct symbol_arguments *arguments, const char *value, struct err *err)
{
	const char *equals = strchr(value, '=');
	/* Not the environment's symbol path: that is not this option's fault. */
	struct symbol_options alone = {.symbol_path = ".", .maps = &value, .map_count = 1};
	int rc = equals && equals > value && equals[1] ?
			 symbol_options_check(&alone, err) :
			 err_set(err, ERR_USAGE, value, "a map is FROM=TO");

	if (!rc)
		rc = add(&arguments->maps, &arguments->map_cap, &arguments->options.map_count,
			value, err);
	arguments->options.maps = arguments->maps;
	return rc;
}

static int take_path(struct symbol_arguments *arguments, const char *value, struct err *err)
{
	struct symbol_options alone = {.symbol_path = value};
	int rc = symbol_options_check(&alone, err);

	if (!rc)
		arguments->options.symbol_path = value;
	return rc;
}

static int take_strip(struct symbol_arguments *arguments, const char *value, struct err *err)
{
	int rc = add(&arguments->strips, &arguments->strip_cap, &arguments->options.strip_count,
		value, err);

	arguments->options.strip_paths = arguments->strips;
	return rc;
}

/* The place of an error: which option it is about. */
static int name_option(int rc, const char *option, const char *value, struct err *err)
{
	if (rc == -ERR_USAGE && err)
		snprintf(err->place, sizeof(err->place), "%s %s", option, value);
	return rc ? rc : 1;
}

int symbol_arguments_take(
	struct symbol_arguments *arguments, int id, const char *value, struct err *err)
{
	struct symbol_options *options = &arguments->options;

	switch (id) {
	case SYMBOL_OPT_PATH:
		return name_option(take_path(arguments, value, err), "--symbol-path", value, err);
	case SYMBOL_OPT_MAP:
		return name_option(take_map(arguments, value, err), "--map", value, err);
	case SYMBOL_OPT_STRIP:
		return name_option(take_strip(arguments, value, err), "--strip-path", value, err);
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

static void tell(void *ctx, const char *module, size_t done, size_t total)
{
	struct symbol_console *console = ctx;

	progress_tell(&console->progress, module, done, total, os_time_ms());
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
		.progress = tell,
		.is_cancelled = is_cancelled,
		.busy = set_busy};
}

bool symbol_console_stopped(void)
{
	return os_was_interrupted();
}
