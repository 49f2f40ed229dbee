/* What a terminal can show, and how far a long piece of work is. */
#ifndef CORE_BASE_TERMINAL_H
#define CORE_BASE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What a terminal that standard output goes to can show. */

/* Whether standard output is a terminal, and one that is said to show UTF-8: on Windows by the
 * console's code page, elsewhere by the first of LC_ALL, LC_CTYPE and LANG that is set. */
bool terminal_is_utf8(void);

/* Whether the terminal that standard output is obeys escape sequences for colours; on Windows it is told to. */
bool terminal_shows_colour(void);

#define TERMINAL_COLUMNS 80 /* of what is no terminal, or does not tell */
#define TERMINAL_COLUMNS_MAX 200

/* How many columns a stream has: of a terminal so many as COLUMNS says, if it is set, or as it tells itself, up to
 * TERMINAL_COLUMNS_MAX. */
unsigned terminal_columns(FILE *stream);

/* What the terminal tells itself; 0: nothing, or it is none. */
unsigned os_terminal_columns(FILE *stream);

/* Whether a locale's name, as "de_DE.UTF-8@euro", says UTF-8; NULL does not. Not on Windows. */
bool os_is_utf8(const char *name);

/*
 * What is too long for a screen goes to a pager, as git has it: the variable that is named says which one, else PAGER;
 * else "less -FRX", if there is less. "" and "cat" are none. On Windows there is one only if a variable names it.
 */

/* From now on standard output goes there, until pager_end(). Where there is none nothing happens. */
void pager_start(const char *variable);

/* Waits until it ends, and gives standard output back; true when there was one: whoever leaves it has seen
 * enough, and what was not written to it is no error. Ctrl-C meanwhile is the pager's. */
bool pager_end(void);

/*
 * How far a long piece of work is: one line on a terminal, rewritten in place.
 *
 * It is shown only where somebody looks (a terminal), only when the work has taken over half a second,
 * and at most ten times a second. It names what the work is at, and says so when that alone takes over
 * five seconds. It is gone when the work ends.
 */

#define PROGRESS_AFTER_MS 500
#define PROGRESS_EVERY_MS 100
#define PROGRESS_LONG_MS 5000
/* Of the line, at most: two more and the last one stay free. On a narrower terminal lines stay behind. */
#define PROGRESS_COLUMNS 77

struct progress {
	FILE *to;
	const char *what; /* "hsym: looking up names" */
	bool is_watched; /* to is a terminal */
	int64_t start_ms, item_ms, shown_ms; /* of the work, of the item, of the last line */
	char item[40]; /* what the work is at, harmless; cut to fit */
	size_t columns; /* of the line that stands there; 0: none does */
};

/* Begins a piece of work. what must outlive it. Times are os_time_ms(). */
void progress_begin(struct progress *progress, FILE *to, const char *what, int64_t now_ms);

/* done of total pieces are done, the work is at item. Cheap when nothing is to be shown. */
void progress_tell(
	struct progress *progress, const char *item, size_t done, size_t total, int64_t now_ms);

/* Takes the line away; it comes back when more is told. For whoever writes on the same terminal, and
 * when the work is over. */
void progress_wipe(struct progress *progress);

#endif
