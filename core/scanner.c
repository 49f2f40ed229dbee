/* The scanner of dumps: lines of a text that comes in parts, and who understands them. */
#include "core/scanner.h"

#include <assert.h>
#include <stdlib.h>

#include "core/hex.h"

#define UNKNOWN_LINES_MAX 1000 /* so many lines without a sign of a dump: it is none */

struct dump_scanner *dump_scanner_new(
	const char *name, const struct dump_sink *sink, struct err *err)
{
	struct dump_scanner *scanner = calloc(1, sizeof(*scanner));

	if (scanner)
		scanner->name = strdup(name);
	if (!scanner || !scanner->name) {
		free(scanner);
		err_set(err, ERR_NOMEM, name, NULL);
		return NULL;
	}
	scanner->sink = *sink;
	scanner->err = err ? err : &scanner->own_err;
	*scanner->err = (struct err){0};
	kv_init(&scanner->pairs);
	buf_init(&scanner->open.name_text);
	return scanner;
}

void dump_scanner_free(struct dump_scanner *scanner)
{
	if (!scanner)
		return;
	kv_release(&scanner->pairs);
	buf_release(&scanner->open.name_text);
	free(scanner->name);
	free(scanner);
}

bool scan_may_be_cut(const struct dump_scanner *scanner)
{
	return scanner->is_cut ||
	       (scanner->is_ours ? !scanner->ended : scanner->heap_open || scanner->in_modules);
}

static int not_understood(struct dump_scanner *scanner, const char *detail)
{
	if (!scanner->is_dump)
		return scan_fail(scanner, ERR_NOT_DUMP, detail);
	if (scanner->open.is_open)
		scanner->open.is_dropped = true;
	return scan_skip(scanner, detail);
}

int scan_next(struct dump_scanner *scanner, struct scan_line *line)
{
	const char *at = scanner->at;
	const char *newline = memchr(at, '\n', (size_t)(scanner->end - at));
	bool is_stack = *at == '\t';
	int rc;

	scanner->line_number++;
	scanner->no_newline = !newline && scanner->is_last;
	line->text = at;
	line->len = (size_t)((newline ? newline : scanner->end) - at);
	scanner->at = newline ? newline + 1 : scanner->end;
	if (line->len > DUMP_LINE_MAX) {
		if (scan_starts(line, "//") || (is_stack && scanner->is_passing))
			return 0;
		return not_understood(scanner, "a line is too long");
	}
	if (memchr(at, '\0', line->len))
		return is_stack && scanner->is_passing ?
			       0 :
			       not_understood(scanner, "there are bytes in it that are not text");
	if (line->len && at[line->len - 1] == '\r')
		line->len--;
	rc = scanner->sink.line ? scanner->sink.line(scanner->sink.ctx, at, line->len) : 0;
	return rc ? rc : 1;
}

/* The address in a heap's heading, which may have any number of dashes before it. */
static int heap_line(struct dump_scanner *scanner, const struct scan_line *line)
{
	const char *at = line->text, *end = line->text + line->len;
	uint64_t addr;
	int rc;

	while (at < end && (*at == '*' || *at == '-' || *at == ' '))
		at++;
	if (SCAN_TAKE(&at, end, "End of data for heap @ ")) {
		if (hex_take(&at, &addr))
			scanner->heap_open = false;
		else if (!scanner->no_newline)
			return scan_skip(scanner, "bad heap heading");
		return 0;
	}
	if (SCAN_TAKE(&at, end, "Start of data for heap @ "))
		scanner->heap_open = true;
	else if (!SCAN_TAKE(&at, end, "Heap "))
		return 0;
	if (!hex_take(&at, &addr))
		return scanner->no_newline ? 0 : scan_skip(scanner, "bad heap heading");
	rc = scan_is_dump(scanner);
	return !rc && scanner->sink.heap ? scanner->sink.heap(scanner->sink.ctx, addr) : rc;
}

/* "+ 10 ( 20 - 10) 2 allocs TAB BackTraceID": what hdiff and umdh print when they compare. */
static bool is_comparison(const struct scan_line *line)
{
	const char *at = line->text, *end = line->text + line->len;

	if (!line->len || (*at != '+' && *at != '-'))
		return false;
	for (; at < end; at++) {
		const char *from = at;

		if (SCAN_TAKE(&from, end, "BackTrace"))
			return true;
	}
	return false;
}

static int understand(struct dump_scanner *scanner, struct scan_line *line)
{
	if (scanner->line_number == 1 && scan_starts(line, "\xef\xbb\xbf")) { /* order mark */
		line->text += 3;
		line->len -= 3;
	}
	if (!line->len)
		return 0;
	if (scan_starts(line, "//"))
		return scan_comment_line(scanner, line);
	if (scan_starts(line, "*-"))
		return heap_line(scanner, line);
	if (!scanner->is_dump && is_comparison(line))
		return scan_fail(scanner, ERR_NOT_DUMP, "it is a comparison");
	/* or chatter of the debug library and the like */
	return scan_entry_line(scanner, line);
}

/* Lets the sink read as much as it likes by itself. True: it did read some. */
static bool pass_plain(struct dump_scanner *scanner)
{
	const struct dump_sink *sink = &scanner->sink;
	struct dump_progress taken = {0};
	const char *at = scanner->at, *stop;

	/* the first entry is understood here, for the sign of a dump that it is */
	if (!sink->plain || sink->line || !scanner->is_dump || scanner->is_split ||
		scanner->in_modules || scanner->ended ||
		!(hex_digits[(unsigned char)*at] || *at == '\n' || *at == '\r'))
		return false;
	stop = sink->plain(sink->ctx, at, scanner->end, &taken);
	assert(stop >= at && stop <= scanner->end);
	scanner->at = stop;
	scanner->line_number += taken.line_count;
	census_add(&scanner->seen, &taken.seen);
	return stop != at;
}

/* A line that does not start with a TAB. */
static int other_line(struct dump_scanner *scanner)
{
	struct scan_line line;
	int rc = 0;

	scanner->is_passing = false;
	if (scanner->open.is_open) {
		rc = scan_name_line(scanner);
		if (rc)
			return rc < 0 ? rc : 0;
		rc = scan_close_entry(scanner, false);
	}
	if (rc || pass_plain(scanner))
		return rc;
	rc = scan_next(scanner, &line);
	if (rc > 0)
		rc = understand(scanner, &line);
	if (!rc && !scanner->is_dump && scanner->line_number > UNKNOWN_LINES_MAX)
		rc = err_set(scanner->err, ERR_NOT_DUMP, scanner->name, NULL);
	return rc;
}

int scan_part(struct dump_scanner *scanner, const char *text, size_t len, bool is_split)
{
	int rc = 0;

	scanner->at = text;
	scanner->end = text + len;
	scanner->is_split = is_split;
	while (!rc && scanner->at < scanner->end)
		rc = *scanner->at == '\t' ? scan_stack_lines(scanner) : other_line(scanner);
	return rc;
}

/* Errors that come from elsewhere as a code alone. */
static int finish(struct dump_scanner *scanner, int rc)
{
	return rc == -ERR_NOMEM ? err_set(scanner->err, ERR_NOMEM, scanner->name, NULL) : rc;
}

int dump_scanner_text(struct dump_scanner *scanner, const char *text, size_t len, bool is_last)
{
	const struct scan_entry *open = &scanner->open;
	int rc;

	scanner->is_last = is_last;
	rc = scan_part(scanner, text, len, false);
	/* names of functions may stand in the next part, addresses may not */
	if (!rc && open->is_open && (is_last || !open->is_sum || open->entry.stack.frame_count))
		rc = scan_close_entry(scanner, is_last);
	return finish(scanner, rc);
}

int dump_scanner_pass(struct dump_scanner *scanner, const struct dump_progress *passed)
{
	const struct census *more = &passed->seen;
	int rc = scanner->open.is_open ? scan_close_entry(scanner, false) : 0;

	scanner->is_passing = scanner->no_newline = false;
	if (!rc && more->block_count) /* empty lines are no sign of anything */
		rc = scan_is_dump(scanner);
	scanner->line_number += passed->line_count;
	if (!rc && scanner->ended &&
		(more->block_count || more->requested_bytes || more->overhead_bytes))
		rc = scan_fail(scanner, ERR_BAD_LINE, "there is an entry behind the end mark");
	census_add(&scanner->seen, more);
	return finish(scanner, rc);
}

void dump_scanner_cut(struct dump_scanner *scanner)
{
	scanner->is_cut = true;
}

static const char *missing(const struct dump_scanner *scanner)
{
	return scanner->is_cut	  ? "the packed text has no end" :
	       scanner->is_ours	  ? "the end mark is missing" :
	       scanner->heap_open ? "the end of a heap is missing" :
				    "the end of the module list is missing";
}

int dump_scanner_end(struct dump_scanner *scanner)
{
	int rc = scanner->open.is_open ? scan_close_entry(scanner, true) : 0;

	if (rc)
		return finish(scanner, rc);
	if (!scanner->line_number)
		return err_set(scanner->err, ERR_EMPTY, scanner->name, NULL);
	if (!scanner->is_dump)
		return err_set(scanner->err, ERR_NOT_DUMP, scanner->name, NULL);
	return scan_may_be_cut(scanner) ? scan_fail(scanner, ERR_CUT, missing(scanner)) : 0;
}
