/*
 * Texts that went through mail, a web page or an editor.
 *
 * Programs print dumps and comparisons with a TAB before each frame. In what people paste, TABs have become blanks
 * or are missing, lines are quoted or have empty ones between them, and dashes, blanks and line ends are others.
 * A line whose meaning is certain becomes again what was printed. Other lines stay as they are, and the
 * number of lines stays the same.
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
	PASTED_HEADING, /* of a heap */
	PASTED_ENTRY, /* of a dump */
	PASTED_ROW, /* of a comparison: its first line */
	PASTED_COUNTS, /* its second one */
	PASTED_TOTAL,
	PASTED_FRAME, /* an address, or "Alias" */
	PASTED_NAME, /* a frame with a name */
};

struct pasted {
	bool has_bare; /* addresses of frames have nothing before them */
	bool in_record; /* lines of an entry or a row may come */
	size_t empty_count; /* lines that were held back: a stack may go on behind them */
	const char *empty_end; /* their line end */
	struct buf text, plain; /* of the line at hand */
};

void pasted_init(struct pasted *pasted);
void pasted_release(struct pasted *pasted);

/* Returns true if the beginning of a text shows that it must be mended. */
bool pasted_find(struct pasted *pasted, const char *text, size_t len);

/* Adds a line, mended, to a text. The line has its line end, unless it is the last one. */
void pasted_add(struct pasted *pasted, const char *line, size_t len, struct buf *to);

/* Adds what was held back, at the end of the text. */
void pasted_end(struct pasted *pasted, struct buf *to);

/* Returns true if a line, mended, holds data of a dump or a comparison. Comments are none. */
bool pasted_is_data(const char *line, size_t len);

/* Returns true if a text begins with the mark of a list, a table, a quote or markup, as no frame does. */
bool pasted_is_marked(const char *text, size_t len);

#endif
