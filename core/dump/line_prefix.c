/* Finds the form of a prefix before each line, and its length in a line. */
#include "core/dump/line_prefix.h"

#include <stdint.h>
#include <string.h>

#include "core/dump/pasted.h"

#define NUMBER_DIGITS_MAX 8
#define DATA_LINES_MIN 2 /* fewer lines of data prove nothing */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static bool is_line_end(const char *line, size_t len, size_t at)
{
	return at == len || line[at] == '\r' || line[at] == '\n';
}

/* Returns the length of "2026-05-04T09:01:00.0000003Z", with the blank after it. */
static size_t time_bytes(const char *line, size_t len)
{
	static const char form[] = "0000-00-00T00:00:00";
	size_t at = 0;

	if (len <= sizeof(form))
		return 0;
	for (; form[at]; at++) {
		if (form[at] == '0' ? !is_digit(line[at]) : line[at] != form[at])
			return 0;
	}
	at += line[at] == '.';
	while (at < len && is_digit(line[at]))
		at++;
	if (at == len || line[at] != 'Z')
		return 0;
	at++;
	return is_line_end(line, len, at) ? at : line[at] == ' ' ? at + 1 : 0;
}

/* Returns the length of "12:" and stores the number. */
static size_t number_bytes(const char *line, size_t len, uint64_t *number)
{
	size_t at = 0;

	*number = 0;
	while (at < len && at < NUMBER_DIGITS_MAX && is_digit(line[at]))
		*number = *number * 10 + (uint64_t)(line[at++] - '0');
	return at && at < len && line[at] == ':' ? at + 1 : 0;
}

/* Returns the length of "|", ":" or letters and ">", without the blank after it. */
static size_t mark_bytes(const char *line, size_t len)
{
	size_t at = 0;

	while (at < len && at < PREFIX_MARK_BYTES - 2 && is_letter(line[at]))
		at++;
	if (at == len || (at ? line[at] != '>' : line[at] != '|' && line[at] != ':'))
		return 0;
	at++;
	return is_line_end(line, len, at) || line[at] == ' ' ? at : 0;
}

static size_t pass_byte_order_mark(const char *line, size_t len)
{
	return len > 2 && !memcmp(line, "\xef\xbb\xbf", 3) ? 3 : 0;
}

size_t line_prefix_bytes(const struct line_prefix *prefix, const char *line, size_t len)
{
	const size_t skipped = pass_byte_order_mark(line, len);
	size_t bytes = 0;
	uint64_t number;

	line += skipped;
	len -= skipped;
	switch (prefix->kind) {
	case PREFIX_NONE: break;
	case PREFIX_TIME: bytes = time_bytes(line, len); break;
	case PREFIX_NUMBER: bytes = number_bytes(line, len, &number); break;
	case PREFIX_MARK:
		bytes = mark_bytes(line, len);
		if (bytes != strlen(prefix->mark) || memcmp(line, prefix->mark, bytes) != 0)
			return 0;
		bytes += bytes < len && line[bytes] == ' ';
		break;
	}
	return bytes ? skipped + bytes : 0;
}

/* Returns the prefix that a line of data has, if any. */
static struct line_prefix prefix_of(const char *line, size_t len)
{
	const size_t skipped = pass_byte_order_mark(line, len);
	struct line_prefix prefix = {PREFIX_NONE, ""};
	uint64_t number;
	size_t mark;

	line += skipped;
	len -= skipped;
	mark = mark_bytes(line, len);
	if (mark)
		memcpy(prefix.mark, line, mark);
	prefix.kind = mark			       ? PREFIX_MARK :
		      time_bytes(line, len)	       ? PREFIX_TIME :
		      number_bytes(line, len, &number) ? PREFIX_NUMBER :
							 PREFIX_NONE;
	return prefix;
}

static bool is_data_after(const struct line_prefix *prefix, const char *line, size_t len)
{
	const size_t bytes = line_prefix_bytes(prefix, line, len);

	return bytes && pasted_is_data(line + bytes, len - bytes);
}

/* Returns true if a line of data does not have the prefix. */
static bool has_other_data(const struct line_prefix *prefix, const char *text, const char *end)
{
	for (const char *next; text < end; text = next) {
		next = memchr(text, '\n', (size_t)(end - text));
		next = next ? next + 1 : end;
		if (!line_prefix_bytes(prefix, text, (size_t)(next - text)) &&
			pasted_is_data(text, (size_t)(next - text)))
			return true;
	}
	return false;
}

bool line_prefix_find(struct line_prefix *prefix, const char *text, size_t len)
{
	const char *start = text, *end = text + len, *newline;
	uint64_t number = 0, last = 0;
	size_t data_count = 0;

	*prefix = (struct line_prefix){PREFIX_NONE, ""};
	for (; (newline = memchr(text, '\n', (size_t)(end - text))); text = newline + 1) {
		const size_t line_len = (size_t)(newline - text);

		if (!prefix->kind) { /* still before the first line of data */
			struct line_prefix first = prefix_of(text, line_len);

			if (!first.kind || !is_data_after(&first, text, line_len))
				continue;
			if (has_other_data(&first, start, text))
				return false;
			*prefix = first;
		}
		if (is_data_after(prefix, text, line_len))
			data_count++;
		else if (!line_prefix_bytes(prefix, text, line_len) &&
			 pasted_is_data(text, line_len))
			break;
		if (prefix->kind == PREFIX_NUMBER && number_bytes(text, line_len, &number)) {
			if (number <= last)
				break;
			last = number;
		}
	}
	if (newline || data_count < DATA_LINES_MIN)
		prefix->kind = PREFIX_NONE;
	return prefix->kind;
}
