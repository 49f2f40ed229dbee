/* Terminals: their capabilities and width, the pager, and the progress line. */
#ifndef CORE_BASE_TERMINAL_H
#define CORE_BASE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Returns true if standard output is a terminal that shows UTF-8. On Windows, every console does.
 * Elsewhere the first of LC_ALL, LC_CTYPE and LANG that is set decides. */
bool terminal_is_utf8(void);

/* Returns true if standard output is a terminal that obeys escape sequences for colours. On
 * Windows, enables them first. */
bool terminal_shows_colour(void);

#define TERMINAL_COLUMNS 80 /* used if the stream is not a terminal or its width is unknown */
#define TERMINAL_COLUMNS_MAX 200

/* Returns the width of a stream, at most TERMINAL_COLUMNS_MAX. For a terminal, the variable COLUMNS
 * overrides the width that the terminal reports. */
unsigned terminal_columns(FILE *stream);

/* Returns the width that the terminal reports; 0 if it is unknown or the stream is not a
 * terminal. */
unsigned os_terminal_columns(FILE *stream);

/* Returns true if a locale name such as "de_DE.UTF-8@euro" specifies UTF-8. Returns false for NULL.
 * Not on Windows. */
bool os_is_utf8(const char *name);

/*
 * A pager for text that does not fit on the screen, chosen in the same way as git's pager: the
 * named variable, then PAGER, then "less -FRX" if it is installed. "" and "cat" mean no pager. On
 * Windows only a variable can name a pager.
 */

/* Sends standard output to the pager until pager_end(). Does nothing if there is no pager. */
void pager_start(const char *variable);

/* Waits for the pager to exit and restores standard output. On POSIX, only the pager reacts to
 * Ctrl-C until then. Returns true if there was a pager. In that case unwritten text is not an
 * error, because the user may quit the pager early. */
bool pager_end(void);

/*
 * The progress of a long task: one line on a terminal, rewritten in place.
 *
 * The line appears only on a terminal, and only after half a second of work. It changes at most ten
 * times a second. It names the current item, and adds "takes long" if the item takes more than five
 * seconds. The line is erased when the task ends.
 */

#define PROGRESS_AFTER_MS 500
#define PROGRESS_EVERY_MS 100
#define PROGRESS_LONG_MS 5000
/* Maximum width of the line: 80 columns, minus two for "^C" and minus the last column. On a
 * narrower terminal, remnants of old lines stay visible. */
#define PROGRESS_COLUMNS 77

struct progress {
	FILE *to;
	const char *what; /* description of the task, such as "hsym: looking up names" */
	bool is_watched; /* `to` is a terminal */
	int64_t start_ms, item_ms, shown_ms;
	char item[40]; /* name of the current item, sanitized and cut to fit */
	size_t columns; /* width of the line now on the terminal; 0: no line */
};

/* Begins a task. `what` must outlive the task. Times are values of os_time_ms(). */
void progress_begin(struct progress *progress, FILE *to, const char *what, int64_t now_ms);

/* Reports that `done` of `total` items are done and that `item` is the current item. Cheap if
 * nothing is shown. */
void progress_report(
	struct progress *progress, const char *item, size_t done, size_t total, int64_t now_ms);

/* Erases the line; the next report shows it again. Call this at the end of the task, and before any
 * other output to the same terminal. */
void progress_wipe(struct progress *progress);

#endif
