/*
 * The state of the dump scanner between two lines. Only for core/dump/dump_*.c; other code uses
 * core/dump/dump.h.
 *
 * The text comes in parts. An entry is passed on when the first line after its stack is seen, so it
 * may span several parts.
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

#define SCAN_ID_BYTES 64 /* includes the NUL */
#define SCAN_SHOWN_BYTES 64 /* of a line in a message, includes the NUL */
#define SCAN_NAME_MAX 4095 /* bytes of a named frame */

struct scan_line {
	const char *text;
	size_t len; /* without the line end */
};

/* An entry whose stack may continue in the following lines. */
struct scan_entry {
	struct dump_entry entry;
	char id[SCAN_ID_BYTES];
	bool is_open;
	bool is_sum; /* sum of several blocks: its frames may be names */
	bool is_dropped; /* its stack is malformed */
	uint64_t frames[DUMP_FRAMES_MAX];
	uint32_t aliases[DUMP_FRAMES_MAX];
	struct buf name_text; /* all names, concatenated */
	struct dump_name names[DUMP_FRAMES_MAX]; /* text is set when all names are known */
};

/* A malformed line, held until the text is known to be a dump. */
struct scan_held {
	uint64_t line;
	const char *detail;
};

struct dump_scanner {
	char *name;
	struct dump_sink sink;
	struct err *err, own_err;
	const char *at, *end; /* the current part */
	bool is_last; /* this is the last part */
	bool is_split; /* the part may end inside an entry, or inside a line that is too long */
	bool no_newline; /* the last line of the text has no line end */
	uint64_t line_number; /* of the last line */
	bool has_list; /* a list of modules or of a heap's blocks has begun */
	bool in_modules, heap_open, is_ours, ended, is_dump;
	/* In files that hsnap did not write: heaps with a "Start of data", and with a "Hogs"
	 * heading. */
	struct u64map headings[2];
	/* In files that hsnap did not write, if they have no headings: id and block size of each
	 * sum. */
	struct table sums;
	bool is_cut; /* the reader reported that the file is truncated */
	bool after_names; /* the current line ends a sum's stack, whose frames may be names */
	bool is_passing; /* the following stack lines belong to a malformed entry */
	/* Number of the last line of a note, including lines it was wrapped to. */
	uint64_t note_line;
	struct block_totals seen;
	struct kv pairs;
	/* Skipped lines that look like data; number of the first one. */
	uint64_t unread_count, unread_line;
	char unread[SCAN_SHOWN_BYTES]; /* text of that first line */
	size_t skip_count;
	struct scan_held held[DUMP_SKIPS_MAX]; /* the first skip_count lines, until is_dump */
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

/* Sets the error, with the last line as its place; detail may be NULL. Returns -code. */
int scan_fail(struct dump_scanner *scanner, enum err_code code, const char *detail);

/* Handles a malformed last line; detail is a literal. Returns 0 if the line is skipped, or an
 * error. */
int scan_skip(struct dump_scanner *scanner, const char *detail);

/* As scan_skip(), but a last line without a line end is treated as truncated. */
int scan_skip_or_cut(struct dump_scanner *scanner, const char *detail);

/* Counts the last line, if it looks like data, for a report at the end. */
void scan_unknown_line(struct dump_scanner *scanner, const struct scan_line *line);
void scan_unread_line(struct dump_scanner *scanner, const struct scan_line *line);

/* Notes a proof that the text is a dump. Returns 0, or an error of the sink. */
int scan_is_dump(struct dump_scanner *scanner);

/* Returns true if the dump is incomplete so far. */
bool scan_may_be_cut(const struct dump_scanner *scanner);

/* Reads the next line. Returns 1 if it must be parsed, 0 if it was skipped, or an error. */
int scan_next(struct dump_scanner *scanner, struct scan_line *line);

/* Scans a part. An entry that is open at its end stays open. DUMP_PAD_BYTES zeros follow. */
int scan_part(struct dump_scanner *scanner, const char *text, size_t len, bool is_split);

/* Parse a line from scan_next(). Return 0 or an error. */
int scan_comment_line(struct dump_scanner *scanner, const struct scan_line *line);
int scan_entry_line(struct dump_scanner *scanner, const struct scan_line *line);

/* Reads lines that start with a TAB, at least one. */
int scan_stack_lines(struct dump_scanner *scanner);

/* Returns true for a named frame: a location that may have "ADDRESS : " before it (Windows XP and
 * 2003) and " (FILE, LINE)" after it. An entry is not a named frame, whatever its id. */
bool scan_is_name(const char *at, const char *end);

/* Reads the current line if it is a named frame of the open entry. Returns 1 if it was read, 0 if
 * it is not a named frame, or an error. */
int scan_name_line(struct dump_scanner *scanner);

/* Passes the open entry on. at_end: the text ends after it. */
int scan_close_entry(struct dump_scanner *scanner, bool at_end);

#endif
