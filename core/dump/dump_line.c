/* Reads the lines of a dump and reports lines that no parser can use.
 *
 * A malformed line is skipped, up to a limit. It is not reported before the text is known to be a
 * dump. An unknown line is counted if it looks like data. The report at the end quotes the first
 * such line. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/text.h"
#include "core/dump/dump.h"
#include "core/dump/pasted.h"
#include "core/dump/printed_line.h"
#include "core/dump/scanner.h"

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
			"too many bad lines (" TEXT_OF(DUMP_SKIPS_MAX) " were skipped)");
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

bool scan_may_be_cut(const struct dump_scanner *scanner)
{
	return scanner->is_cut ||
	       (scanner->is_ours ?
			       !scanner->ended :
			       scanner->heap_open || scanner->lacks_heading || scanner->in_modules);
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
	bool is_lost_module = scanner->in_modules && !scan_starts(line, "     ") &&
			      !line_is_message((struct words){line->text, line->len});

	if (is_of_note)
		scanner->note_line++;
	scanner->has_cut_path |= is_lost_module && memchr(line->text, '\\', line->len);
	if (is_of_note || is_lost_module ||
		(scanner->heap_open && pasted_is_foreign(line->text, line->len)) ||
		(scanner->after_names && is_like_name(line)) ||
		pasted_is_data(line->text, line->len))
		scan_unread_line(scanner, line);
}

const char *dump_unread_text(uint64_t count, const char *first, char *text, size_t size)
{
	snprintf(text, size, "%" PRIu64 " line%s that look%s like data; the first: \"%s\"", count,
		text_plural(count), count == 1 ? "s" : "", first);
	return text;
}

int scan_report_unread(struct dump_scanner *scanner)
{
	char detail[SCAN_SHOWN_BYTES + 150];

	dump_unread_text(scanner->unread_count, scanner->unread, detail, sizeof(detail));
	if (scanner->has_cut_path)
		strcat(detail, "; module paths are cut, so different modules may share a name");
	scanner->skip_count++;
	return scanner->sink.skipped ?
		       report(scanner, scanner->unread_line, detail) :
		       fill_in(scanner, scanner->err, ERR_BAD_LINE, scanner->unread_line, detail);
}
