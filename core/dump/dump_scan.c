/* Scans dumps: moves a window over the source and passes each line of the window to its parser.
 * Malformed lines are reported and skipped, up to a limit. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "core/dump/dump.h"
#include "core/dump/pasted.h"
#include "core/dump/scanner.h"
#include "core/dump/source.h"

#define WINDOW_BYTES ((size_t)1 << 20)

struct line_window {
	char *bytes;
	size_t len;
	bool at_eof; /* the source has no more bytes */
	/* an overlong line filled the window and was scanned; the rest of the line must be
	 * skipped */
	bool in_line;
};

static int fill(struct line_window *window, const struct dump_source *source, struct err *err)
{
	while (!window->at_eof && window->len < WINDOW_BYTES) {
		int64_t got = source->read(
			source->ctx, window->bytes + window->len, WINDOW_BYTES - window->len, err);

		if (got < 0)
			return (int)got;
		window->at_eof = !got;
		window->len += (size_t)got;
	}
	return 0;
}

/* Returns the offset of the start of the window's last line. Unless with_tab is set, lines that
 * start with a TAB do not count. Returns 0 if no such line exists. */
static size_t last_line(const struct line_window *window, bool with_tab)
{
	for (size_t at = window->len; at > 1; at--) {
		if (window->bytes[at - 2] == '\n' && (with_tab || window->bytes[at - 1] != '\t'))
			return at - 1;
	}
	return 0;
}

static void drop(struct line_window *window, size_t len)
{
	window->len -= len;
	memmove(window->bytes, window->bytes + len, window->len);
}

static void pass_line(struct line_window *window)
{
	const char *newline = memchr(window->bytes, '\n', window->len);

	drop(window, newline ? (size_t)(newline + 1 - window->bytes) : window->len);
	window->in_line = !newline;
}

/* Scans a full window up to the start of its last line, which stays for the next part. Scans the
 * final window to its end. */
static int scan_window(struct dump_scanner *scanner, struct line_window *window)
{
	size_t len = window->at_eof ? window->len : last_line(window, false);
	bool is_split = !len;
	char behind[DUMP_PAD_BYTES];
	int rc;

	if (is_split)
		len = last_line(window, true);
	if (is_split && !len && !window->at_eof) {
		window->in_line = true;
		len = window->len;
	}
	scanner->is_last = window->at_eof;
	memcpy(behind, window->bytes + len, DUMP_PAD_BYTES);
	memset(window->bytes + len, 0, DUMP_PAD_BYTES);
	rc = scan_part(scanner, window->bytes, len, is_split);
	memcpy(window->bytes + len, behind, DUMP_PAD_BYTES);
	drop(window, len);
	return rc;
}

static int scan_all(struct dump_scanner *scanner, struct line_window *window,
	const struct dump_source *source, struct err *cut)
{
	int rc = 0;

	while (!rc && !(window->at_eof && !window->len)) {
		rc = fill(window, source, cut);
		if (rc == -ERR_CUT) {
			dump_scanner_cut(scanner);
			window->at_eof = true;
			rc = 0;
		} else if (rc) {
			*scanner->err = *cut;
		}
		if (!rc && window->in_line)
			pass_line(window);
		else if (!rc)
			rc = scan_window(scanner, window);
	}
	return rc ? rc : dump_scanner_end(scanner);
}

int dump_scanner_read(
	struct dump_scanner *scanner, const struct dump_source *source, struct err *err)
{
	struct line_window window = {.bytes = xmalloc(WINDOW_BYTES + DUMP_PAD_BYTES)};
	struct err cut = {0};
	int rc = scan_all(scanner, &window, source, &cut);

	if (cut.code == ERR_CUT && (rc == -ERR_CUT || rc == -ERR_EMPTY)) {
		rc = -ERR_CUT;
		if (err)
			*err = cut;
	}
	free(window.bytes);
	return rc;
}

int dump_scan(const struct dump_source *source, const struct dump_sink *sink, struct err *err)
{
	struct dump_scanner *scanner = dump_scanner_new(source->name, sink, err);
	int rc = dump_scanner_read(scanner, source, err);

	dump_scanner_free(scanner);
	return rc;
}

/* the text is refused after this many lines without a sign of a dump */
#define UNKNOWN_LINES_MAX 1000

struct dump_scanner *dump_scanner_new(
	const char *name, const struct dump_sink *sink, struct err *err)
{
	struct dump_scanner *scanner = xcalloc(1, sizeof(*scanner));

	scanner->name = xstrdup(name);
	scanner->sink = *sink;
	scanner->err = err ? err : &scanner->own_err;
	*scanner->err = (struct err){0};
	kv_init(&scanner->pairs);
	for (int i = 0; i < 2; i++)
		u64map_init(&scanner->headings[i]);
	table_init(&scanner->sums);
	buf_init(&scanner->open.name_text);
	return scanner;
}

void dump_scanner_free(struct dump_scanner *scanner)
{
	if (!scanner)
		return;
	kv_release(&scanner->pairs);
	for (int i = 0; i < 2; i++)
		u64map_release(&scanner->headings[i]);
	table_release(&scanner->sums);
	buf_release(&scanner->open.name_text);
	free(scanner->name);
	free(scanner);
}

bool scan_may_be_cut(const struct dump_scanner *scanner)
{
	return scanner->is_cut ||
	       (scanner->is_ours ?
			       !scanner->ended :
			       scanner->heap_open || scanner->lacks_heading || scanner->in_modules);
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
			       not_understood(scanner, "bytes that are not text");
	if (line->len && at[line->len - 1] == '\r')
		line->len--;
	rc = scanner->sink.line ? scanner->sink.line(scanner->sink.ctx, at, line->len) : 0;
	return rc ? rc : 1;
}

/* Parses a heap heading, whose words may follow any number of dashes. */
static int heap_line(struct dump_scanner *scanner, const struct scan_line *line)
{
	const char *at = line->text, *end = line->text + line->len;
	bool is_start, was_open;
	uint32_t none = 0;
	uint64_t addr;
	int rc;

	while (at < end && (*at == '*' || *at == '-' || *at == ' '))
		at++;
	if (SCAN_MATCH(&at, end, "End of data for heap @ ")) {
		if (!hex_parse(&at, &addr))
			return scanner->no_newline ? 0 : scan_skip(scanner, "bad heap heading");
		scanner->lacks_heading |= !scanner->heap_open || addr != scanner->open_heap;
		scanner->heap_open = false;
		return 0;
	}
	is_start = SCAN_MATCH(&at, end, "Start of data for heap @ ");
	was_open = scanner->heap_open;
	scanner->heap_open |= is_start;
	scanner->has_list |= is_start;
	scanner->in_modules &= !is_start; /* also where the end of the module list was cut out */
	if (!is_start && !SCAN_MATCH(&at, end, "Heap "))
		return 0;
	if (!hex_parse(&at, &addr))
		return scanner->no_newline ? 0 : scan_skip(scanner, "bad heap heading");
	if (!scanner->is_ours && !u64map_add(&scanner->headings[!is_start], addr, &none))
		return scan_fail(scanner, ERR_SECOND, "the heap was listed before");
	scanner->lacks_heading |= was_open && is_start;
	scanner->open_heap = is_start ? addr : scanner->open_heap;
	rc = scan_is_dump(scanner);
	return !rc && scanner->sink.heap ? scanner->sink.heap(scanner->sink.ctx, addr) : rc;
}

/* Returns true for "+ 10 ( 20 - 10) 2 allocs TAB BackTraceID", a line of a comparison, not of a
 * dump. */
static bool is_comparison(const struct scan_line *line)
{
	const char *at = line->text, *end = line->text + line->len;

	if (!line->len || (*at != '+' && *at != '-'))
		return false;
	for (; at < end; at++) {
		const char *from = at;

		if (SCAN_MATCH(&from, end, "BackTrace"))
			return true;
	}
	return false;
}

static int understand(struct dump_scanner *scanner, struct scan_line *line)
{
	if (scanner->line_number == 1 && scan_starts(line, "\xef\xbb\xbf")) { /* byte order mark */
		line->text += 3;
		line->len -= 3;
	}
	if (!line->len)
		return 0;
	if (scan_starts(line, "//"))
		return scan_comment_line(scanner, line);
	if (scan_starts(line, "*-"))
		return heap_line(scanner, line);
	if (is_comparison(line))
		return scanner->is_dump ? scan_fail(scanner, ERR_SECOND, "a comparison") :
					  scan_fail(scanner, ERR_NOT_DUMP, "a comparison");
	/* an entry, or unrelated output such as that of a debug library */
	return scan_entry_line(scanner, line);
}

/* Lets the sink read entries itself. Returns true if the sink read at least one line. */
static bool pass_plain(struct dump_scanner *scanner)
{
	const struct dump_sink *sink = &scanner->sink;
	struct dump_progress taken = {0};
	const char *at = scanner->at, *stop;

	/* The first entry must be parsed here: it proves that the text is a dump, and shows whether it
	 * begins with sums, which are then all checked. */
	if (!scanner->has_entries && !scanner->is_ours)
		return false;
	if (!sink->plain || sink->line || scanner->sums.count || !scanner->is_dump ||
		scanner->is_split || scanner->in_modules || scanner->ended ||
		!(hex_digits[(unsigned char)*at] || *at == '\n' || *at == '\r'))
		return false;
	stop = sink->plain(sink->ctx, at, scanner->end, &taken);
	assert(stop >= at && stop <= scanner->end);
	scanner->at = stop;
	scanner->line_number += taken.line_count;
	block_totals_add(&scanner->seen, &taken.seen);
	return stop != at;
}

void scan_unread_line(struct dump_scanner *scanner, const struct scan_line *line)
{
	size_t len = line->len;

	if (scanner->unread_count++)
		return;
	scanner->unread_line = scanner->line_number;
	if (len >= SCAN_SHOWN_BYTES)
		len = SCAN_SHOWN_BYTES - 1;
	while (len && len < line->len && (line->text[len] & 0xc0) == 0x80)
		len--; /* do not split a UTF-8 character */
	memcpy(scanner->unread, line->text, len);
	scanner->unread[len] = '\0';
	text_harmless(scanner->unread);
}

static bool is_like_name(const struct scan_line *line)
{
	size_t at = line->len;

	while (at && hex_digits[(unsigned char)line->text[at - 1]])
		at--;
	return memchr(line->text, '!', line->len) ||
	       (at < line->len && at && (line->text[at - 1] == '+' || line->text[at - 1] == 'x'));
}

void scan_unknown_line(struct dump_scanner *scanner, const struct scan_line *line)
{
	/* Continuation of a wrapped note. */
	bool is_of_note =
		scanner->note_line && scanner->note_line + 1 == scanner->line_number &&
		(memchr(line->text, '=', line->len) || memchr(line->text, '"', line->len));
	/* Inside a module list, every line should be a comment. */
	bool is_lost_module = scanner->in_modules && !scan_starts(line, "DBGHELP:") &&
			      !scan_starts(line, "     ");

	if (is_of_note)
		scanner->note_line++;
	if (is_of_note || is_lost_module || (scanner->after_names && is_like_name(line)) ||
		pasted_is_data(line->text, line->len))
		scan_unread_line(scanner, line);
}

static int not_dump(struct dump_scanner *scanner)
{
	return err_set(scanner->err, ERR_NOT_DUMP, scanner->name,
		scanner->unread_count ? "line %" PRIu64 " only looks like data: \"%s\"" : NULL,
		scanner->unread_line, scanner->unread);
}

/* Handles a line that does not start with a TAB. */
static int other_line(struct dump_scanner *scanner)
{
	struct scan_line line;
	int rc = 0;

	scanner->is_passing = false;
	scanner->after_names = scanner->open.is_open && scanner->open.is_sum &&
			       !scanner->open.entry.stack.frame_count;
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
		rc = not_dump(scanner);
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

int dump_scanner_text(struct dump_scanner *scanner, const char *text, size_t len, bool is_last)
{
	const struct scan_entry *open = &scanner->open;
	int rc;

	scanner->is_last = is_last;
	rc = scan_part(scanner, text, len, false);
	/* names may continue in the next part, but addresses may not */
	if (!rc && open->is_open && (is_last || !open->is_sum || open->entry.stack.frame_count))
		rc = scan_close_entry(scanner, is_last);
	return rc;
}

int dump_scanner_pass(struct dump_scanner *scanner, const struct dump_progress *passed)
{
	const struct block_totals *more = &passed->seen;
	int rc = scanner->open.is_open ? scan_close_entry(scanner, false) : 0;

	scanner->is_passing = scanner->no_newline = false;
	if (!rc && more->block_count) /* empty lines do not prove that the text is a dump */
		rc = scan_is_dump(scanner);
	scanner->line_number += passed->line_count;
	if (!rc && scanner->ended &&
		(more->block_count || more->requested_bytes || more->overhead_bytes))
		rc = scan_fail(scanner, ERR_BAD_LINE, "an entry after the end mark");
	block_totals_add(&scanner->seen, more);
	return rc;
}

void dump_scanner_cut(struct dump_scanner *scanner)
{
	scanner->is_cut = true;
}

#define TEXT_OF_(text) #text
#define TEXT_OF(macro) TEXT_OF_(macro)

static int fill_in(const struct dump_scanner *scanner, struct err *err, enum err_code code,
	uint64_t line, const char *detail)
{
	char place[600];

	snprintf(place, sizeof(place), "%.500s:%" PRIu64, scanner->name, line);
	return err_set(err, code, place, detail ? "%s" : NULL, detail);
}

int scan_fail(struct dump_scanner *scanner, enum err_code code, const char *detail)
{
	return fill_in(scanner, scanner->err, code, scanner->line_number, detail);
}

static int report(struct dump_scanner *scanner, uint64_t line, const char *detail)
{
	struct err why = {0};

	fill_in(scanner, &why, ERR_BAD_LINE, line, detail);
	return scanner->sink.skipped(scanner->sink.ctx, &why);
}

int scan_skip(struct dump_scanner *scanner, const char *detail)
{
	scanner->is_passing = true;
	if (!scanner->sink.skipped)
		return scan_fail(scanner, ERR_BAD_LINE, detail);
	if (scanner->skip_count == DUMP_SKIPS_MAX && !scanner->is_dump)
		return err_set(scanner->err, ERR_NOT_DUMP, scanner->name, NULL);
	if (scanner->skip_count == DUMP_SKIPS_MAX)
		return scan_fail(scanner, ERR_BAD_LINE,
			"too many bad lines (" TEXT_OF(DUMP_SKIPS_MAX) " were passed over)");
	scanner->skip_count++;
	if (scanner->is_dump)
		return report(scanner, scanner->line_number, detail);
	scanner->held[scanner->skip_count - 1] = (struct scan_held){scanner->line_number, detail};
	return 0;
}

int scan_skip_or_cut(struct dump_scanner *scanner, const char *detail)
{
	return scanner->no_newline ? scan_fail(scanner, ERR_CUT, detail) :
				     scan_skip(scanner, detail);
}

int scan_is_dump(struct dump_scanner *scanner)
{
	int rc = 0;

	if (scanner->is_dump)
		return 0;
	scanner->is_dump = true;
	for (size_t i = 0; !rc && i < scanner->skip_count; i++)
		rc = report(scanner, scanner->held[i].line, scanner->held[i].detail);
	return rc;
}

const char *dump_unread_text(uint64_t count, const char *first, char *text, size_t size)
{
	snprintf(text, size, "%" PRIu64 " line%s that look%s like data; the first: \"%s\"", count,
		text_plural(count), count == 1 ? "s" : "", first);
	return text;
}

static int report_unread(struct dump_scanner *scanner)
{
	char detail[SCAN_SHOWN_BYTES + 100];

	dump_unread_text(scanner->unread_count, scanner->unread, detail, sizeof(detail));
	scanner->skip_count++;
	return scanner->sink.skipped ?
		       report(scanner, scanner->unread_line, detail) :
		       fill_in(scanner, scanner->err, ERR_BAD_LINE, scanner->unread_line, detail);
}

static const char *missing(const struct dump_scanner *scanner)
{
	return scanner->is_cut	      ? "the end of the packed data is missing" :
	       scanner->is_ours	      ? "the end mark is missing" :
	       scanner->heap_open     ? "the end of a heap is missing" :
	       scanner->lacks_heading ? "the start or the end of a heap in its middle is missing" :
					"the end of the module list is missing";
}

int dump_scanner_end(struct dump_scanner *scanner)
{
	int rc = scanner->open.is_open ? scan_close_entry(scanner, true) : 0;

	if (rc)
		return rc;
	if (!scanner->line_number)
		return err_set(scanner->err, ERR_EMPTY, scanner->name, NULL);
	if (!scanner->is_dump)
		return not_dump(scanner);
	if (scanner->unread_count)
		rc = report_unread(scanner);
	if (rc)
		return rc;
	return scan_may_be_cut(scanner) ? scan_fail(scanner, ERR_CUT, missing(scanner)) : 0;
}
