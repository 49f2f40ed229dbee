#include "core/os.h"
#include "symbolize/symbolize.h"

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
