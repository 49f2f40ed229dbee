/*
 * Repairs text that went through mail, a web page or an editor.
 *
 * Programs print dumps and comparisons with a TAB before each frame. Pasting changes such text:
 * TABs disappear or become blanks, lines are quoted, empty lines appear, and dashes, blanks and
 * line ends are replaced. A line with only one possible meaning is restored to the printed form.
 * The lines of an error record that PowerShell put between the others are emptied. Other lines and
 * the number of lines stay unchanged.
 */
#ifndef CORE_DUMP_PASTED_H
#define CORE_DUMP_PASTED_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/memory.h"

enum pasted_kind {
	PASTED_OTHER,
	PASTED_EMPTY,
	PASTED_COMMENT,
	PASTED_HEADING, /* heading of a heap */
	PASTED_ENTRY, /* entry of a dump */
	PASTED_ROW, /* first line of a row in a comparison */
	PASTED_COUNTS, /* second line of a row */
	PASTED_TOTAL,
	PASTED_FRAME, /* an address, or "Alias" */
	PASTED_NAME, /* a named frame */
};

/* Progress in an error record of PowerShell, or in a message of the symbol engine. Both may stand
 * between any two lines. */
enum pasted_error { ERROR_NONE, ERROR_BEGUN, ERROR_PLACED, ERROR_ENDED, ERROR_MESSAGE };

struct pasted {
	bool is_ours; /* the text begins with a note of hsnap's */
	bool is_html; /* characters are written as HTML entities */
	bool has_bare; /* the addresses of frames are not indented */
	bool in_record; /* further lines of an entry or a row may follow */
	enum pasted_error error;
	/* Number of empty lines held back, because a stack may continue after them. */
	size_t empty_count;
	const char *empty_end; /* line end that the empty lines have */
	struct buf name; /* named frame held back, because its file may follow */
	const char *name_end; /* line end of `name` */
	struct buf unescaped, decoded, text, plain; /* buffers for the current line */
};

void pasted_init(struct pasted *pasted);
void pasted_release(struct pasted *pasted);

/* Returns true if the start of a text shows that the text needs repair. */
bool pasted_find(struct pasted *pasted, const char *text, size_t len);

/* Appends a repaired line to `*to`. `line` includes its line end, except at the end of the text. */
void pasted_add(struct pasted *pasted, const char *line, size_t len, struct buf *to);

/* Appends the lines that were held back. Call this at the end of the text. */
void pasted_end(struct pasted *pasted, struct buf *to);

/* Returns true if a line, once repaired, contains data of a dump or a comparison. Comments do not
 * count as data. */
bool pasted_is_data(const char *line, size_t len);

/* Returns true if a line inside a heap is neither data nor one of UMDH's lines. A person or a web page
 * may have put it in place of lines. */
bool pasted_is_foreign(const char *line, size_t len);

/* Returns true for a mark that a person put in place of lines, such as "...", "[...]" or
 * "<snip>". */
bool pasted_is_omission(const char *text, size_t len);

/* Returns true if a text begins with a list, table, quote or markup character, which a frame never
 * does. */
bool pasted_is_marked(const char *text, size_t len);

#endif
