/* Terminals: what they can show, their width, the pager and the progress line. */
#ifndef CORE_BASE_TERMINAL_H
#define CORE_BASE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Returns true if standard output is a terminal that shows UTF-8: on Windows any console, elsewhere
 * by the first of LC_ALL, LC_CTYPE and LANG that is set. */
bool terminal_is_utf8(void);

/* Returns true if standard output is a terminal that obeys escape sequences for colours. On
 * Windows, switches them on. */
bool terminal_shows_colour(void);

#define TERMINAL_COLUMNS 80 /* if the stream is not a terminal or its width is unknown */
#define TERMINAL_COLUMNS_MAX 200

/* Returns the width of a stream, at most TERMINAL_COLUMNS_MAX. For a terminal, COLUMNS overrides
 * the width that the terminal reports. */
unsigned terminal_columns(FILE *stream);

/* Returns the width that the terminal reports; 0: unknown, or not a terminal. */
unsigned os_terminal_columns(FILE *stream);

/* Returns true if a locale's name, such as "de_DE.UTF-8@euro", specifies UTF-8; NULL does not. Not
 * on Windows. */
bool os_is_utf8(const char *name);

/*
 * A pager for text that is too long for the screen, chosen as git does it: by the named variable,
 * otherwise by PAGER, otherwise "less -FRX" if it is installed. "" and "cat" mean no pager. On
 * Windows only a variable can name a pager.
 */

/* Sends standard output to the pager until pager_end(). Without a pager, does nothing. */
void pager_start(const char *variable);

/* Waits for the pager to end and restores standard output. Returns true if there was a pager:
 * quitting it early is the user's choice, so text that was not written is not an error. Ctrl-C is
 * left to the pager. */
bool pager_end(void);

/*
 * The progress of a long piece of work: one line on a terminal, rewritten in place.
 *
 * The line appears only on a terminal, only after half a second of work, and changes at most ten
 * times a second. It names the current item, and reports an item that takes more than five seconds.
 * It is erased when the work ends.
 */

#define PROGRESS_AFTER_MS 500
#define PROGRESS_EVERY_MS 100
#define PROGRESS_LONG_MS 5000
/* Maximum columns of the line; of 80, two stay free for "^C", and the last one. A narrower terminal
 * keeps remnants of old lines. */
#define PROGRESS_COLUMNS 77

struct progress {
	FILE *to;
	const char *what; /* "hsym: looking up names" */
	bool is_watched; /* to is a terminal */
	int64_t start_ms, item_ms, shown_ms;
	char item[40]; /* name of the current item, made harmless, cut to fit */
	size_t columns; /* of the line on the terminal; 0: no line */
};

/* Begins a piece of work. what must outlive it. Times are from os_time_ms(). */
void progress_begin(struct progress *progress, FILE *to, const char *what, int64_t now_ms);

/* Reports that done of total pieces are done and item is the current one. Cheap if nothing is
 * shown. */
void progress_tell(
	struct progress *progress, const char *item, size_t done, size_t total, int64_t now_ms);

/* Erases the line, which reappears with the next report. Call it at the end of the work and before
 * other output to the same terminal. */
void progress_wipe(struct progress *progress);

#endif
