/*
 * The state of the dump scanner between two lines. Only for core/dump/dump_*.c; other code uses
 * core/dump/dump.h.
 *
 * The text arrives in parts. An entry may span several parts. It is passed to the sink when the
 * scanner sees the first line after the entry's stack.
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

#define SCAN_ID_BYTES 64 /* including the NUL */
#define SCAN_SHOWN_BYTES 64 /* bytes of a line shown in a message, including the NUL */
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
	bool is_sum; /* a sum of several blocks, whose frames may be names */
	bool is_dropped; /* the entry's stack is malformed */
	uint64_t frames[DUMP_FRAMES_MAX];
	uint32_t aliases[DUMP_FRAMES_MAX];
	struct buf name_text; /* all names, concatenated */
	/* the `text` pointers are set when all names are known */
	struct dump_name names[DUMP_FRAMES_MAX];
};

/* A malformed line. It is not reported before the text is known to be a dump. */
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
	bool is_split; /* the part may end inside an entry or inside an overlong line */
	bool no_newline; /* the final line of the text has no line end */
	uint64_t line_number; /* number of the current line */
	bool has_list; /* a module list or the block list of a heap has begun */
	bool in_modules, heap_open, is_ours, ended, is_dump;
	uint64_t open_heap; /* address of the open heap; valid if `heap_open` is set */
	/* the start or end of a heap is missing; only for files not written by hsnap */
	bool lacks_heading;
	/* For files not written by hsnap: the heaps with a "Start of data" heading, and the heaps
	 * with a "Hogs" heading. */
	struct u64map headings[2];
	bool has_entries; /* an entry was parsed */
	/* Id and block size of each sum. Only for files not written by hsnap that begin with sums
	 * and have no headings. */
	struct table sums;
	bool is_cut; /* the reader reported that the file is truncated */
	/* the current line directly follows the stack of a sum, so it may be a named frame */
	bool after_names;
	bool is_passing; /* stack lines are being skipped because their entry is malformed */
	/* Number of the last line of a note, including the continuation lines of a wrapped note. */
	uint64_t note_line;
	/* UMDH's banner, which may be wrapped: held until the first line that does not continue
	 * it. Empty: no banner is held. */
	struct buf banner;
	struct block_totals seen;
	struct kv pairs;
	/* Number of skipped lines that look like data, and the line number of the first such
	 * line. */
	uint64_t unread_count, unread_line;
	char unread[SCAN_SHOWN_BYTES]; /* start of the first skipped line */
	bool has_cut_path; /* some skipped lines continue a module's path */
	size_t skip_count;
	/* the first `skip_count` malformed lines, held until `is_dump` is set */
	struct scan_held held[DUMP_SKIPS_MAX];
	struct scan_entry open;
};

static inline bool scan_match(const char **at, const char *end, const char *text, size_t len)
{
	if ((size_t)(end - *at) < len || memcmp(*at, text, len) != 0)
		return false;
	*at += len;
	return true;
}

#define SCAN_MATCH(at, end, text) scan_match(at, end, text, sizeof(text) - 1)

static inline bool scan_starts(const struct scan_line *line, const char *text)
{
	size_t len = strlen(text);

	return line->len >= len && !memcmp(line->text, text, len);
}

/* Sets an error at the current line. `detail` may be NULL. Returns -code. */
int scan_fail(struct dump_scanner *scanner, enum err_code code, const char *detail);

/* Handles a malformed line; `detail` is a string literal. Returns 0 if the line was skipped, or an
 * error. */
int scan_skip(struct dump_scanner *scanner, const char *detail);

/* Like scan_skip(), except that a final line without a line end is treated as truncated. */
int scan_skip_or_cut(struct dump_scanner *scanner, const char *detail);

/* Counts an unknown line if it looks like data. The count is reported at the end. */
void scan_unknown_line(struct dump_scanner *scanner, const struct scan_line *line);
void scan_unread_line(struct dump_scanner *scanner, const struct scan_line *line);

/* Reports the lines that were counted. Returns 0, an error, or the result of the sink. */
int scan_report_unread(struct dump_scanner *scanner);

/* Records that the text is proven to be a dump. Returns 0, or an error of the sink. */
int scan_is_dump(struct dump_scanner *scanner);

/* Returns true if the dump may be truncated at this point. */
bool scan_may_be_cut(const struct dump_scanner *scanner);

/* Reads the next line. Returns 1 if the caller must parse the line, 0 if the line was skipped, or
 * an error. */
int scan_next(struct dump_scanner *scanner, struct scan_line *line);

/* Scans a part. An entry may remain open at the end of the part. DUMP_PAD_BYTES zeros must follow
 * the text. */
int scan_part(struct dump_scanner *scanner, const char *text, size_t len, bool is_split);

/* Passes on a held banner. If `line` continues the banner, sets line->len to 0. NULL: no further
 * line can continue it. Returns 0, an error, or the result of the sink. */
int scan_banner(struct dump_scanner *scanner, struct scan_line *line);

/* Parse a line from scan_next(). Return 0 or an error. */
int scan_comment_line(struct dump_scanner *scanner, const struct scan_line *line);
int scan_entry_line(struct dump_scanner *scanner, const struct scan_line *line);

/* Reads one or more lines that start with a TAB. */
int scan_stack_lines(struct dump_scanner *scanner);

/* Returns true for a named frame: a location, optionally preceded by "ADDRESS : " (Windows XP and
 * 2003) and followed by " (FILE, LINE)". An entry is never a named frame, whatever its id. */
bool scan_is_name(const char *at, const char *end);

/* Reads the current line if it is a named frame of the open entry. Returns 1 if the line was read,
 * 0 if the line is not a named frame, or an error. */
int scan_name_line(struct dump_scanner *scanner);

/* Passes the open entry to the sink. `at_end`: the text ends directly after the entry. */
int scan_close_entry(struct dump_scanner *scanner, bool at_end);

#endif
