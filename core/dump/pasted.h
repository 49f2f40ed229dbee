/*
 * Repair of texts that went through mail, a web page or an editor.
 *
 * Programs print dumps and comparisons with a TAB before each frame. In pasted texts, TABs are
 * missing or have become blanks. Lines are quoted or separated by empty lines, and dashes, blanks
 * and line ends are replaced. A line whose meaning is certain is restored to the printed form.
 * Other lines are unchanged, and the number of lines never changes.
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
	PASTED_ROW, /* first line of a row of a comparison */
	PASTED_COUNTS, /* second line of a row */
	PASTED_TOTAL,
	PASTED_FRAME, /* an address, or "Alias" */
	PASTED_NAME, /* a named frame */
};

struct pasted {
	bool is_html; /* characters are entities */
	bool has_bare; /* addresses of frames have no TAB or blank before them */
	bool in_record; /* further lines of an entry or a row may follow */
	/* Number of empty lines held back, because a stack may continue after them. */
	size_t empty_count;
	const char *empty_end; /* line end of the empty lines */
	struct buf decoded, text, plain; /* of the current line */
};

void pasted_init(struct pasted *pasted);
void pasted_release(struct pasted *pasted);

/* Returns true if the start of a text shows that it needs repair. */
bool pasted_find(struct pasted *pasted, const char *text, size_t len);

/* Appends a line to *to, repaired. The line includes its line end, except for the last line. */
void pasted_add(struct pasted *pasted, const char *line, size_t len, struct buf *to);

/* Appends the lines that were held back, at the end of the text. */
void pasted_end(struct pasted *pasted, struct buf *to);

/* Returns true if a line, repaired, contains data of a dump or a comparison. Comments are not
 * data. */
bool pasted_is_data(const char *line, size_t len);

/* Returns true if a text begins with a mark of a list, a table, a quote or markup, unlike a
 * frame. */
bool pasted_is_marked(const char *text, size_t len);

#endif
