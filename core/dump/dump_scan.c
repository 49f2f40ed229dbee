/* Scans a part of a dump: passes each line to its parser, and checks at the end that the dump is
 * complete. dump_comments.c parses comments; dump_entry.c parses entries and their stacks. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "core/dump/dump.h"
#include "core/dump/scanner.h"

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
	buf_init(&scanner->banner);
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
	buf_release(&scanner->banner);
	free(scanner->name);
	free(scanner);
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
	/* A heap also ends the list of modules, because the line that ends the list may have been
	 * cut out. */
	scanner->in_modules &= !is_start;
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

/* Returns true for a line of a comparison: "+ 10 ( 20 - 10) 2 allocs TAB BackTraceID". */
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
	if (line->len && scanner->banner.len) {
		int rc = scan_banner(scanner, line);

		if (rc)
			return rc;
	}
	if (!line->len)
		return 0;
	if (scan_starts(line, "//"))
		return scan_comment_line(scanner, line);
	/* context lines of a patch, which begin with a blank, may look like a dump */
	if (scan_starts(line, "@@ -") && !scanner->seen.block_count)
		return scan_fail(
			scanner, ERR_NOT_DUMP, "a patch; use the files that it was made of");
	if (scan_starts(line, "*-"))
		return heap_line(scanner, line);
	if (is_comparison(line)) {
		/* a row has a number after its sign */
		bool is_patch = line->text[1] != ' ' && line->text[1] != '\t' &&
				!hex_digits[(unsigned char)line->text[1]];

		if (scanner->is_dump)
			return scan_fail(scanner, ERR_SECOND, "a comparison");
		if (line->text[1] == ',' || line->text[1] == ';')
			return scan_fail(scanner, ERR_NOT_DUMP,
				"a comparison that a spreadsheet split into cells; use the file "
				"that UMDH wrote");
		return scan_fail(scanner, ERR_NOT_DUMP,
			is_patch ? "a comparison in a patch; remove the first character of each "
				   "line" :
				   "a row of a comparison");
	}
	/* an entry, or unrelated output, for example of a debug library */
	return scan_entry_line(scanner, line);
}

/* Lets the sink read entries itself. Returns true if the sink read at least one line. */
static bool pass_plain(struct dump_scanner *scanner)
{
	const struct dump_sink *sink = &scanner->sink;
	struct dump_progress taken = {0};
	const char *at = scanner->at, *stop;

	/* The first entry must be parsed here. It proves that the text is a dump, and shows whether
	 * the dump begins with sums. If it does, all sums must be parsed here. */
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
	/* The names of an entry may continue in the next part; its addresses may not. */
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
	scanner->has_entries |= more->block_count != 0;
	block_totals_add(&scanner->seen, more);
	return rc;
}

void dump_scanner_cut(struct dump_scanner *scanner)
{
	scanner->is_cut = true;
}

static const char *missing(const struct dump_scanner *scanner)
{
	return scanner->is_cut	      ? "the end of the packed data is missing" :
	       scanner->is_ours	      ? "the end mark is missing" :
	       scanner->heap_open     ? "the end of a heap is missing" :
	       scanner->lacks_heading ? "a heap in the middle lacks its start or its end" :
					"the end of the module list is missing";
}

int dump_scanner_end(struct dump_scanner *scanner)
{
	int rc = scanner->open.is_open ? scan_close_entry(scanner, true) : 0;

	if (!rc && scanner->banner.len)
		rc = scan_banner(scanner, NULL);
	if (rc)
		return rc;
	if (!scanner->line_number)
		return err_set(scanner->err, ERR_EMPTY, scanner->name, NULL);
	if (!scanner->is_dump)
		return not_dump(scanner);
	if (scanner->unread_count)
		rc = scan_report_unread(scanner);
	if (rc)
		return rc;
	return scan_may_be_cut(scanner) ? scan_fail(scanner, ERR_CUT, missing(scanner)) : 0;
}
