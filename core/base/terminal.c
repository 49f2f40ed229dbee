/* The width of a terminal, and the progress line. */
#include "core/base/terminal.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/os.h"
#include "core/base/text.h"

#define LINE_BYTES 400

unsigned terminal_columns(FILE *stream)
{
	const unsigned own = os_terminal_columns(stream);
	char *said = os_env("COLUMNS");
	long columns = said && os_is_terminal(stream) ? strtol(said, NULL, 10) : 0;

	free(said);
	if (columns <= 0)
		columns = own ? own : TERMINAL_COLUMNS;
	return columns < TERMINAL_COLUMNS_MAX ? (unsigned)columns : TERMINAL_COLUMNS_MAX;
}

void progress_begin(struct progress *progress, FILE *to, const char *what, int64_t now_ms)
{
	*progress = (struct progress){.to = to,
		.what = what,
		.is_watched = os_is_terminal(to),
		.start_ms = now_ms,
		.item_ms = now_ms};
}

/* Copies as many whole characters as fit. */
static void copy_text(char *to, size_t size, const char *from)
{
	size_t len = strlen(from);

	if (len >= size)
		len = size - 1;
	while (len && from[len] && (from[len] & 0xc0) == 0x80)
		len--;
	memcpy(to, from, len);
	to[len] = '\0';
}

static void set_item(struct progress *progress, const char *item, int64_t now_ms)
{
	char name[sizeof(progress->item)];

	copy_text(name, sizeof(name), item);
	text_harmless(name);
	if (!strcmp(name, progress->item))
		return;
	memcpy(progress->item, name, sizeof(name));
	progress->item_ms = now_ms;
}

/* Overwrites the progress line. Blanks erase the rest of the old line and any "^C" after it. The
 * only control character is a carriage return, which every terminal obeys. */
static void write_line(struct progress *progress, const char *line)
{
	size_t columns = text_columns(line);
	size_t old = progress->columns && !columns ? progress->columns + 2 : progress->columns;
	size_t rest = old > columns ? old - columns : 0;

	fprintf(progress->to, "\r%s%*s%s", line, (int)rest, "", columns ? "" : "\r");
	fflush(progress->to);
	progress->columns = columns;
}

void progress_report(
	struct progress *progress, const char *item, size_t done, size_t total, int64_t now_ms)
{
	char line[LINE_BYTES], shown[PROGRESS_COLUMNS * 4];

	if (!progress->is_watched)
		return;
	set_item(progress, item, now_ms);
	if (now_ms - progress->start_ms < PROGRESS_AFTER_MS ||
		(now_ms >= progress->shown_ms && now_ms - progress->shown_ms < PROGRESS_EVERY_MS))
		return;
	progress->shown_ms = now_ms;
	snprintf(line, sizeof(line), "%s: %zu of %zu, %s%s", progress->what, done, total,
		progress->item, now_ms - progress->item_ms > PROGRESS_LONG_MS ? " takes long" : "");
	copy_text(shown, PROGRESS_COLUMNS + 1, line);
	write_line(progress, shown);
}

void progress_wipe(struct progress *progress)
{
	if (progress->columns)
		write_line(progress, "");
}
