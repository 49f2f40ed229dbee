/*
 * The state of the scanner of dumps between two lines, for core/dump/dump_*.c alone: others use core/dump/dump.h.
 *
 * The text comes in parts. An entry is handed on when the first line behind its stack is seen, so
 * that it may lie in several of them.
 */
#ifndef CORE_DUMP_SCANNER_H
#define CORE_DUMP_SCANNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/dump/dump.h"

#define SCAN_ID_BYTES 64 /* with a NUL */
#define SCAN_SHOWN_BYTES 64 /* of a line in a message, with a NUL */
#define SCAN_NAME_MAX 4095 /* bytes of a frame that is given as text */

struct scan_line {
	const char *text;
	size_t len; /* without the line end */
};

/* An entry behind which lines of its stack may come. */
struct scan_entry {
	struct dump_entry entry;
	char id[SCAN_ID_BYTES];
	bool is_open;
	bool is_sum; /* of several blocks: its frames may be names */
	bool is_dropped; /* its stack broke the rules */
	uint64_t frames[DUMP_FRAMES_MAX];
	uint32_t aliases[DUMP_FRAMES_MAX];
	struct buf name_text; /* of all names, one behind the other */
	struct dump_name names[DUMP_FRAMES_MAX]; /* text is set when all are there */
};

/* A malformed line of what may turn out to be no dump at all. */
struct scan_held {
	uint64_t line;
	const char *detail;
};

struct dump_scanner {
	char *name;
	struct dump_sink sink;
	struct err *err, own_err;
	const char *at, *end; /* the part that is read */
	bool is_last; /* part */
	bool is_split; /* the part ends where the next may go on with its last line or entry */
	bool no_newline; /* the last line of the text has no line end */
	uint64_t line_number; /* of the last line */
	bool has_list; /* of modules or of a heap's blocks: its first line */
	bool in_modules, heap_open, is_ours, ended, is_dump;
	struct u64map headings[2]; /* of heaps, in files of others: "Start of data", "Hogs" */
	struct table
		sums; /* ID and block size of each sum, in files of others that have no headings */
	bool is_cut; /* as whoever reads the file says */
	bool after_names; /* the line at hand ends a sum's stack, whose frames are names */
	bool is_passing; /* stack lines that come belong to what was malformed */
	uint64_t note_line; /* the last line of a note, with what it was wrapped into */
	struct block_totals seen;
	struct kv pairs;
	uint64_t unread_count, unread_line; /* lines like data that were skipped; the first one, */
	char unread[SCAN_SHOWN_BYTES]; /* and its text */
	size_t skip_count;
	struct scan_held held[DUMP_SKIPS_MAX]; /* the first skip_count, until is_dump */
	struct scan_entry open;
};

static inline bool scan_take(const char **at, const char *end, const char *text, size_t len)
{
	if ((size_t)(end - *at) < len || memcmp(*at, text, len) != 0)
		return false;
	*at += len;
	return true;
}

#define SCAN_TAKE(at, end, text) scan_take(at, end, text, sizeof(text) - 1)

static inline bool scan_starts(const struct scan_line *line, const char *text)
{
	size_t len = strlen(text);

	return line->len >= len && !memcmp(line->text, text, len);
}

/* Fills the error in, with the last line as its place; detail may be NULL. Returns -code. */
int scan_fail(struct dump_scanner *scanner, enum err_code code, const char *detail);

/* The last line breaks the rules; detail is a literal. 0: it is passed over, or an error. */
int scan_skip(struct dump_scanner *scanner, const char *detail);

/* As scan_skip(), but a last line without a line end is one that was cut. */
int scan_skip_or_cut(struct dump_scanner *scanner, const char *detail);

/* Counts the last line if it looks like data: it is reported at the end. */
void scan_unknown_line(struct dump_scanner *scanner, const struct scan_line *line);
void scan_unread_line(struct dump_scanner *scanner, const struct scan_line *line);

/* There is a sign that the text is a dump. Returns 0, or an error of the sink. */
int scan_is_dump(struct dump_scanner *scanner);

/* Whether something must follow before the dump is whole. */
bool scan_may_be_cut(const struct dump_scanner *scanner);

/* Takes the next line. 1: it is to be understood; 0: it was passed over; or an error. */
int scan_next(struct dump_scanner *scanner, struct scan_line *line);

/* Reads a part; what is open at its end stays so. Behind end are DUMP_PAD_BYTES zeros. */
int scan_part(struct dump_scanner *scanner, const char *text, size_t len, bool is_split);

/* Each understands one line that scan_next() gave. 0 or an error. */
int scan_comment_line(struct dump_scanner *scanner, const struct scan_line *line);
int scan_entry_line(struct dump_scanner *scanner, const struct scan_line *line);

/* Takes lines that start with a TAB, at least one. */
int scan_stack_lines(struct dump_scanner *scanner);

/*
 * Returns true for a frame with a name: a place that may have "ADDRESS : " in front (Windows XP and 2003), and
 * " (FILE, LINE)" after it. An entry does not, whatever its id.
 */
bool scan_is_name(const char *at, const char *end);

/* Takes the line at hand when it is a frame of the open entry. 1: it is; 0: it is not; or an
 * error. */
int scan_name_line(struct dump_scanner *scanner);

/* Hands the open entry on. at_end: nothing is behind it. */
int scan_close_entry(struct dump_scanner *scanner, bool at_end);

#endif
