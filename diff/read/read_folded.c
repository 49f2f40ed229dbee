/* Folded stacks: recognizing them, and reading them line by line. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/dump/dump.h"
#include "diff/read/foreign.h"
#include "diff/read/read_dump.h"
#include "diff/read/text_sums.h"

struct folded_reader {
	struct text_sums texts;
	struct err *err;
	uint64_t line_count, pair_count; /* lines with data; of these, lines with two numbers */
};

static bool is_blank(const char *text, size_t len)
{
	return !len || (len == 1 && *text == '\r');
}

/* Removes blanks and a number from the end. Returns false if the text does not end with a blank and
 * a number that fits. */
static bool cut_number(const char *text, size_t *len, uint64_t *number)
{
	size_t end = *len, at;

	while (end && strchr(" \r", text[end - 1]))
		end--;
	for (at = end; at && text[at - 1] >= '0' && text[at - 1] <= '9'; at--)
		;
	if (at == end || !at || text[at - 1] != ' ')
		return false;
	*number = 0;
	for (size_t i = at; i < end; i++) {
		if (*number > (INT64_MAX - 9) / 10)
			return false;
		*number = *number * 10 + (uint64_t)(text[i] - '0');
	}
	while (at && text[at - 1] == ' ')
		at--;
	*len = at;
	return at > 0;
}

#define FOLDED_LINES 20 /* lines that show the form of a file */

bool folded_is(const char *bytes, size_t len)
{
	const char *end = bytes + len;
	unsigned count = 0, chain_count = 0;

	for (const char *newline; count < FOLDED_LINES && bytes < end; bytes = newline + 1) {
		size_t stack_len;
		uint64_t number;

		newline = memchr(bytes, '\n', (size_t)(end - bytes));
		if (!newline)
			break;
		stack_len = (size_t)(newline - bytes);
		if (is_blank(bytes, stack_len))
			continue;
		if (!cut_number(bytes, &stack_len, &number))
			return false;
		chain_count += memchr(bytes, ';', stack_len) != NULL;
		count++;
	}
	return chain_count > 0;
}

#define ADDR_DIGITS_MIN 8

/* Returns the number of a frame's text. A short word of hexadecimal digits, such as "add", is a
 * function. An offset shows this to frame_parse(). */
static uint64_t frame_number(struct folded_reader *reader, const char *text, size_t len)
{
	char function[ADDR_DIGITS_MIN + 2];

	if (len >= ADDR_DIGITS_MIN || memchr(text, '+', len) || !strncmp(text, "0x", 2))
		return text_sums_frame(&reader->texts, text, len);
	snprintf(function, sizeof(function), "%.*s+0", (int)len, text);
	return text_sums_frame(&reader->texts, function, strlen(function));
}

/* Adds a line without its number. Of a very deep stack, keeps the innermost frames. */
static int add_stack(struct folded_reader *reader, const char *text, size_t len, uint64_t bytes)
{
	const struct block_totals blocks = {.requested_bytes = bytes};
	uint64_t frames[DUMP_FRAMES_MAX];
	size_t count = 0;

	while (len && count < DUMP_FRAMES_MAX) {
		size_t at = len;

		while (at && text[at - 1] != ';')
			at--;
		if (at < len)
			frames[count++] = frame_number(reader, text + at, len - at);
		len = at ? at - 1 : 0;
	}
	return bytes ? text_sums_add(&reader->texts, NULL, frames, count, &blocks) : 0;
}

/* Reports a line that is skipped. Fails if too many were skipped. */
static int skip(struct folded_reader *reader, uint64_t number, const char *why)
{
	struct dump_sums *sums = reader->texts.sums;
	char place[600];
	struct err skipped;

	snprintf(place, sizeof(place), "%.500s:%" PRIu64, sums->id.path, number);
	if (sums->quality.skip_count >= DUMP_SKIPS_MAX)
		return err_set(reader->err, ERR_BAD_LINE, place, "%s", why);
	err_set(&skipped, ERR_BAD_LINE, place, "%s", why);
	sums_add_skipped(sums, &skipped);
	return 0;
}

static int read_line(struct folded_reader *reader, const struct line *line, uint64_t number)
{
	size_t len = line->len, len_before;
	uint64_t bytes, old;

	if (line->is_long)
		return skip(reader, number, "the line is too long");
	if (is_blank(line->text, len))
		return 0;
	if (!cut_number(line->text, &len, &bytes))
		return skip(reader, number, "no stack and number of folded stacks");
	reader->line_count++;
	len_before = len;
	reader->pair_count += cut_number(line->text, &len_before, &old);
	if (add_stack(reader, line->text, len, bytes))
		return err_set(
			reader->err, ERR_BAD_LINE, reader->texts.sums->id.path, SUMS_TOO_LARGE);
	return 0;
}

int folded_read(struct dump_sums *sums, const char *path, struct source *source, struct err *err)
{
	struct err local;
	struct folded_reader reader = {.err = err ? err : &local};
	struct dump_source stream = source_stream(source);
	struct lines lines;
	struct line line;
	int rc;

	text_sums_begin(&reader.texts, sums, path);
	sums->quality.lacks_blocks = true;
	lines_init(&lines, &stream, reader.err);
	while ((rc = lines_next(&lines, &line)) > 0) {
		rc = read_line(&reader, &line, lines.number);
		if (rc)
			break;
	}
	lines_release(&lines);
	text_sums_end(&reader.texts);
	sums->quality.is_cut = rc == -ERR_CUT;
	if (!rc && reader.line_count && reader.pair_count == reader.line_count)
		rc = err_set(err, ERR_NOT_DUMP, path,
			"folded stacks of a difference, with two numbers in each line; give two "
			"files with one number");
	return rc;
}
