/*
 * Repairs pasted text: classifies lines, restores replaced characters, and repairs lines. Examines
 * the start of a text to find out whether the text needs repair.
 */
#include "core/dump/pasted.h"

#include <string.h>

#include "core/base/text.h"
#include "core/dump/printed_line.h"
#include "core/dump/scanner.h"

#define EMPTY_MAX 100 /* maximum number of lines held back */
#define LINE_PAD 16 /* zeros after a line, for hex_parse() */
#define BARE_MIN 6 /* minimum number of digits of an address that has no TAB or blank before it */
/* minimum number of digits of an address after blanks, because addresses start at 64 KiB */
#define ADDR_MIN 5
#define MESSAGE_BLANKS 9 /* before a path that continues a message of the symbol engine */
#define FILES_TRIED 4 /* maximum number of places where the file of a named frame may begin */
#define ESCAPE '\x1b' /* begins a command to a terminal */
#define SURE_ENTRIES 256 /* this many entries without damage prove that the text is intact */

void pasted_init(struct pasted *pasted)
{
	*pasted = (struct pasted){.empty_end = "\n"};
	buf_init(&pasted->name);
	buf_init(&pasted->unescaped);
	buf_init(&pasted->decoded);
	buf_init(&pasted->text);
	buf_init(&pasted->plain);
}

void pasted_release(struct pasted *pasted)
{
	buf_release(&pasted->name);
	buf_release(&pasted->unescaped);
	buf_release(&pasted->decoded);
	buf_release(&pasted->text);
	buf_release(&pasted->plain);
}

/* ---------------------------------------------------------------- kinds of lines */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static void pass_blanks(const char **at)
{
	while (is_blank(**at))
		++*at;
}

static size_t hex_count(const char *at)
{
	size_t count = 0;

	while (hex_digits[(unsigned char)at[count]])
		count++;
	return count;
}

/* Skips blanks and hexadecimal digits. Returns true if there were digits. */
static bool skip_hex(const char **at)
{
	size_t count;

	pass_blanks(at);
	count = hex_count(*at);
	*at += count;
	return count;
}

static bool skip_char(const char **at, char c)
{
	pass_blanks(at);
	if (**at != c)
		return false;
	++*at;
	return true;
}

/* Returns true for "REQ bytes + OVH at ADDR by BackTraceID" and "BYTES bytes in 0xCOUNT
 * allocations". */
static bool is_entry(const char *at, const char *end)
{
	if (!skip_hex(&at))
		return false;
	if (SCAN_MATCH(&at, end, " bytes in 0x"))
		return true;
	return SCAN_MATCH(&at, end, " bytes + ") && skip_hex(&at) && SCAN_MATCH(&at, end, " at ") &&
	       skip_hex(&at) && SCAN_MATCH(&at, end, " by BackTrace");
}

/* Recognizes "+ GROWTH ( NEW - OLD) COUNT allocs BackTraceID" and "+ GROWTH ( NEW - OLD)
 * BackTraceID allocations". */
static enum pasted_kind row_kind(const char *at)
{
	const char *id;

	if (*at != '+' && *at != '-')
		return PASTED_OTHER;
	at++;
	if (!skip_hex(&at) || !skip_char(&at, '(') || !skip_hex(&at) || !skip_char(&at, '-') ||
		!skip_hex(&at) || !skip_char(&at, ')'))
		return PASTED_OTHER;
	id = strstr(at, "BackTrace");
	if (!id)
		return PASTED_OTHER;
	return strstr(id, "allocations") ? PASTED_COUNTS : PASTED_ROW;
}

/* Returns the words of a heap's heading. Only punctuation may precede the words. Returns NULL if
 * the line is not a heading. */
static const char *heading_words(const char *at, const char *end)
{
	const char *words, *digits;
	bool is_start;

	while (at < end && !(*at >= '0' && *at <= '9') &&
		!((*at | 0x20) >= 'a' && (*at | 0x20) <= 'z'))
		at++;
	words = digits = at;
	is_start = SCAN_MATCH(&digits, end, "Start of data for heap @ ") ||
		   SCAN_MATCH(&digits, end, "End of data for heap @ ");
	if (is_start)
		return hex_count(digits) ? words : NULL;
	return SCAN_MATCH(&digits, end, "Heap ") && skip_hex(&digits) &&
			       SCAN_MATCH(&digits, end, " Hogs") ?
		       words :
		       NULL;
}

/* Returns true for "//    BASE SIZE PATH". */
static bool is_module(const char *at, const char *end)
{
	at += 2;
	return skip_hex(&at) && is_blank(*at) && skip_hex(&at) && is_blank(*at) && at + 1 < end;
}

/* Returns true for a line that becomes a module line only after the typographic characters in its
 * numbers are replaced. Typographic characters in a path stay unchanged. */
static bool is_mended_module(const struct pasted *pasted, const char *at, const char *end)
{
	pass_blanks(&at);
	return is_module(pasted->plain.data, pasted->plain.data + pasted->plain.len) &&
	       !(at[0] == '/' && is_module(at, end));
}

static const char banner[] = "// UMDH: version ";

/* Returns true for a comment that readers recognize and that contains no path. */
static bool is_fixed_comment(const char *plain)
{
	return !strncmp(plain, banner, sizeof(banner) - 1) ||
	       !strncmp(plain, "// Loaded modules", 17) ||
	       !strncmp(plain, "// Process modules", 18);
}

static bool is_ascii(const char *at, const char *end)
{
	while (at < end && !(*at & 0x80))
		at++;
	return at == end;
}

/* Returns true for a named frame with a file, but without its last word, "LINE)". */
static bool is_cut_name(const char *at, const char *end)
{
	unsigned tries = 0;

	if (at == end || end[-1] != ',')
		return false;
	for (const char *from = at + 1; from < end && tries < FILES_TRIED; from++) {
		if (*from != ' ' || from[1] != '(' || !hex_digits[(unsigned char)from[-1]])
			continue;
		tries++;
		if (scan_is_name(at, from))
			return true;
	}
	return false;
}

/* Returns the kind of a line. Blanks around the line must have been removed, and LINE_PAD zeros
 * must follow it. */
static enum pasted_kind kind_of(const char *at, const char *end)
{
	size_t digits = hex_count(at);
	enum pasted_kind row;

	if (at == end)
		return PASTED_EMPTY;
	if (at[0] == '/' && at[1] == '/')
		return PASTED_COMMENT;
	if ((digits && at + digits == end && digits <= 16) || !strcmp(at, "Alias"))
		return PASTED_FRAME;
	if (scan_is_name(at, end) || is_cut_name(at, end))
		return PASTED_NAME;
	if (heading_words(at, end))
		return PASTED_HEADING;
	if (!is_ascii(at, end))
		return PASTED_OTHER;
	if (is_entry(at, end))
		return PASTED_ENTRY;
	row = row_kind(at);
	if (row != PASTED_OTHER)
		return row;
	return !strncmp(at, "Total increase ==", 17) || !strncmp(at, "Total decrease ==", 17) ?
		       PASTED_TOTAL :
		       PASTED_OTHER;
}

/* ---------------------------------------------------------------- characters */

/* Returns the length of a character that pasting has inserted or put in place of an ASCII
 * character. Sets `*as` to that ASCII character, or to 0 for an inserted character, which is
 * invisible. Returns 0 for any other character. Bytes that are not UTF-8 are treated as a Windows
 * code page. */
static size_t stands_for(const char *at, bool with_dashes, char *as)
{
	static const struct {
		uint32_t first, last;
		char as;
	} signs[] = {{0xa0, 0xa0, ' '}, {0xad, 0xad, 0}, {0x61c, 0x61c, 0}, {0x2000, 0x200a, ' '},
		{0x200b, 0x200b, 0}, {0x200e, 0x200f, 0}, {0x2010, 0x2015, '-'},
		{0x202a, 0x202e, 0}, {0x202f, 0x202f, ' '}, {0x205f, 0x205f, ' '},
		{0x2060, 0x2069, 0}, {0x2212, 0x2212, '-'}, {0x3000, 0x3000, ' '},
		{0xfeff, 0xfeff, 0}};
	uint32_t code;
	size_t len = text_utf8(at, &code);

	for (size_t i = 0; len && i < sizeof(signs) / sizeof(*signs); i++) {
		*as = signs[i].as;
		if (code >= signs[i].first && code <= signs[i].last)
			return *as == '-' && !with_dashes ? 0 : len;
	}
	*as = *at == '\xa0' ? ' ' : '-';
	return !len && (*as == ' ' || (with_dashes && (*at == '\x96' || *at == '\x97')));
}

/* Copies a line to pasted->plain, restores its characters, and removes the blanks around it.
 * Returns the number of blanks that preceded the line. */
static size_t plain_line(struct pasted *pasted, const char *at, const char *end, bool with_dashes)
{
	struct buf *plain = &pasted->plain;
	size_t before = 0;
	char as;

	buf_clear(plain);
	while (at < end) {
		size_t len = *at & 0x80 ? stands_for(at, with_dashes, &as) : 0;

		if (!len) {
			as = *at;
			len = 1;
		}
		at += len;
		if (is_blank(as) && !plain->len)
			before++;
		else if (as)
			buf_add(plain, &as, 1);
	}
	while (plain->len && is_blank(plain->data[plain->len - 1]))
		plain->len--;
	buf_add(plain, (const char[LINE_PAD]){0}, LINE_PAD);
	plain->len -= LINE_PAD;
	return before;
}

/* ---------------------------------------------------------------- lines */

struct pasted_line {
	enum pasted_kind kind;
	const char *at, *end; /* the line without quote marks, trailing blanks and CR */
	bool is_quoted;
	size_t blanks; /* number of blanks before the text */
};

/* Skips quote marks, and up to one blank after each mark. */
static bool pass_quotes(const char **at)
{
	bool is_quoted = false;

	for (;;) {
		const char *mark = *at;

		pass_blanks(&mark);
		if (*mark != '>')
			return is_quoted;
		*at = mark + 1 + (mark[1] == ' ');
		is_quoted = true;
	}
}

/* Removes a pair of quotation marks, which spreadsheets write around a cell that contains a comma,
 * from the line in pasted->plain. Updates the line's kind and blanks. Leaves a line unchanged that
 * has no known meaning without the marks. */
static void remove_marks(struct pasted *pasted, struct pasted_line *line)
{
	struct buf *plain = &pasted->plain, copy;
	const char *at = plain->data + 1, *end = plain->data + plain->len - 1;
	size_t blanks = 0;

	if (plain->len < 2 || at[-1] != '"' || *end != '"')
		return;
	for (; at < end && is_blank(*at); at++)
		blanks++;
	while (end > at && is_blank(end[-1]))
		end--;
	buf_init(&copy);
	for (; at < end; at++) {
		buf_add(&copy, at, 1);
		at += at[0] == '"' && at + 1 < end && at[1] == '"';
	}
	buf_add(&copy, (const char[LINE_PAD]){0}, LINE_PAD);
	copy.len -= LINE_PAD;
	line->kind = kind_of(copy.data, copy.data + copy.len);
	if (line->kind != PASTED_OTHER) {
		line->blanks += blanks;
		buf_clear(plain);
		buf_add(plain, copy.data, copy.len + LINE_PAD);
		plain->len -= LINE_PAD;
	}
	buf_release(&copy);
}

static struct pasted_line split_line(struct pasted *pasted, const char *line, size_t len)
{
	struct pasted_line taken = {0};
	struct buf *text = &pasted->text;

	while (len && (line[len - 1] == '\n' || line[len - 1] == '\r' || is_blank(line[len - 1])))
		len--;
	buf_clear(text);
	buf_add(text, line, len);
	buf_add(text, (const char[LINE_PAD]){0}, LINE_PAD);
	taken.at = text->data;
	taken.end = text->data + len;
	taken.is_quoted = pass_quotes(&taken.at);
	if (taken.at > taken.end)
		taken.at = taken.end;
	for (int with_dashes = 0; with_dashes < 2; with_dashes++) {
		taken.blanks = plain_line(pasted, taken.at, taken.end, with_dashes);
		taken.kind = kind_of(pasted->plain.data, pasted->plain.data + pasted->plain.len);
		if (taken.kind == PASTED_OTHER)
			remove_marks(pasted, &taken);
		/* in a banner, dashes are replaced, too */
		if (taken.kind != PASTED_OTHER &&
			strncmp(pasted->plain.data, banner, sizeof(banner) - 1) != 0)
			break;
	}
	return taken;
}

/* Removes tags from the end of a line. The line end remains. */
static size_t remove_tags(char *line, size_t len)
{
	static const char *const tags[] = {"<br>", "<br/>", "<br />", "</p>", "</div>", "</li>",
		"</code>", "</pre>", "</body>", "</html>"};
	size_t text_len = len, tags_at;

	while (text_len && (line[text_len - 1] == '\n' || line[text_len - 1] == '\r'))
		text_len--;
	tags_at = text_len;
	for (size_t i = 0; i < sizeof(tags) / sizeof(*tags); i++) {
		size_t tag_len = strlen(tags[i]);

		if (tags_at < tag_len || memcmp(line + tags_at - tag_len, tags[i], tag_len) != 0)
			continue;
		tags_at -= tag_len;
		i = SIZE_MAX; /* start again */
	}
	memmove(line + tags_at, line + text_len, len - text_len);
	return tags_at + len - text_len;
}

/* Returns the end of the terminal escape sequence at `at`: CSI (colours, "erase line"), OSC
 * (titles, links) or a shorter sequence. An OSC ends with a bell, or before the next escape
 * sequence, which is usually the terminator "ESC \". */
static const char *pass_escape(const char *at, const char *end)
{
	const char first = ++at < end ? *at : 0, limit = first == '[' ? 0x40 : 0x30;
	const char *stop = at;

	while (first == ']' && stop < end && *stop != '\a' && *stop != ESCAPE)
		stop++;
	if (first == ']')
		return stop == end ? at + 1 : stop + (*stop == '\a');
	at += first == '[';
	while (at < end && *at >= ' ' && *at < limit)
		at++;
	return at == end || *at <= ' ' ? at : at + 1;
}

/* Returns a line without the escape sequences that programs write for terminals. */
static const char *remove_escapes(struct pasted *pasted, const char *line, size_t *len)
{
	struct buf *to = &pasted->unescaped;
	const char *end = line + *len;

	if (!memchr(line, ESCAPE, *len))
		return line;
	buf_clear(to);
	while (line < end) {
		const char *escape = memchr(line, ESCAPE, (size_t)(end - line));

		buf_add(to, line, (size_t)((escape ? escape : end) - line));
		line = escape ? pass_escape(escape, end) : end;
	}
	*len = to->len;
	return to->data;
}

/* Returns a line without entities and without tags at its end. */
static const char *decode(struct pasted *pasted, const char *line, size_t *len)
{
	if (!memchr(line, '&', *len) && !memchr(line, '<', *len))
		return line;
	buf_clear(&pasted->decoded);
	buf_add(&pasted->decoded, line, *len);
	*len = remove_tags(pasted->decoded.data, text_from_html(pasted->decoded.data, *len));
	return pasted->decoded.data;
}

/* Returns true if the line contains a number after words that occur only in banners, entries,
 * headings, rows and totals. */
static bool has_words(const char *text)
{
	static const char *const words[] = {" bytes + ", " bytes in 0x", "data for heap @ ",
		"BackTrace", "Total increase == ", "Total decrease == ", "UMDH: version "};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		const char *at = strstr(text, words[i]);

		if (at && skip_hex(&(const char *){at + strlen(words[i])}))
			return true;
	}
	return false;
}

/* Returns true for a line of addresses, optionally followed by an HTML tag. */
static bool are_addresses(const char *at, const char *end)
{
	do {
		size_t digits = hex_count(at);

		at += digits;
		if (digits < BARE_MIN || (*at && *at != '<' && !is_blank(*at)))
			return false;
		pass_blanks(&at);
	} while (at < end && *at != '<');
	return true;
}

/* Returns true for a line of diff output, such as "5a6,9". Such output mixes lines of two files. */
static bool is_hunk(const char *at)
{
	static const char decimal[] = "0123456789,";
	size_t left = strspn(at, decimal), right;

	if (!left || !at[left] || !strchr("acd", at[left]))
		return false;
	right = strspn(at + left + 1, decimal);
	return right && !at[left + 1 + right] && strchr(at, ',');
}

bool pasted_is_omission(const char *text, size_t len)
{
	static const char *const marks[] = {"...", "\xe2\x80\xa6", "snip"};

	if (len > 2 && strchr("[(<", *text) && strchr("])>", text[len - 1])) {
		text++;
		len -= 2;
	}
	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
		if (len == strlen(marks[i]) && !memcmp(text, marks[i], len))
			return true;
	}
	return false;
}

/* Returns true for a line in which a viewer or a chat reports that it left out lines, such as
 * "[... 200 lines truncated ...]". */
static bool is_omission(const char *text)
{
	static const char *const words[] = {" lines truncated", " lines omitted", " lines hidden",
		" lines skipped", " more lines", "(truncated)", "[truncated]"};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (strstr(text, words[i]))
			return true;
	}
	return pasted_is_omission(text, strlen(text));
}

bool pasted_is_data(const char *line, size_t len)
{
	struct pasted pasted;
	enum pasted_kind kind;
	const char *text;
	bool is_data;

	pasted_init(&pasted);
	kind = split_line(&pasted, line, len).kind;
	text = pasted.plain.data;
	is_data = kind != PASTED_COMMENT && kind != PASTED_EMPTY &&
		  ((kind >= PASTED_HEADING && kind != PASTED_FRAME) || has_words(text) ||
			  are_addresses(text, text + pasted.plain.len) || is_hunk(text) ||
			  is_omission(text));
	pasted_release(&pasted);
	return is_data;
}

static bool is_message(const struct pasted *pasted)
{
	return line_is_message((struct words){pasted->plain.data, pasted->plain.len});
}

/* Returns true for the rest of a wrapped heading, "- - -". */
static bool are_dashes(const char *text)
{
	while (text[0] == '-' && text[1] == ' ')
		text += 2;
	return text[0] == '-' && !text[1];
}

bool pasted_is_foreign(const char *line, size_t len)
{
	/* parts of the heading of entries, which may be wrapped; of a message, the path */
	static const char *const known[] = {"REQUESTED", "STACK if not", "BackTraceID", "dumped."};
	struct pasted pasted;
	bool is_foreign;

	if (!len || words_start((struct words){line, len}, "         "))
		return false;
	pasted_init(&pasted);
	is_foreign = split_line(&pasted, line, len).kind == PASTED_OTHER && *line != '\x1a' &&
		     !is_message(&pasted) && !are_dashes(pasted.plain.data);
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		is_foreign &= !strstr(pasted.plain.data, known[i]);
	pasted_release(&pasted);
	return is_foreign;
}

/* Returns true if a line continues a named frame that was wrapped at a blank, and whose last
 * character is `last`: "(FILE, LINE)", or "LINE)" after a comma. */
static bool is_rest_of_name(char last, const char *plain)
{
	const char *number = last == ',' ? plain : *plain == '(' ? strrchr(plain, ',') : NULL;
	size_t digits;

	if (!number)
		return false;
	number += strspn(number, ", ");
	digits = strspn(number, "0123456789");
	return digits && !strcmp(number + digits, ")");
}

/* Appends the named frame that was held back. */
static void add_name(struct pasted *pasted, struct buf *to)
{
	if (!pasted->name.len)
		return;
	buf_add(to, pasted->name.data, pasted->name.len);
	buf_add_text(to, pasted->name_end);
	buf_clear(&pasted->name);
}

/* Joins a line to the named frame that was held back. To keep the number of lines, a line with only
 * a TAB follows. Returns false if the line does not continue the frame. */
static bool join_name(struct pasted *pasted, const char *end, struct buf *to)
{
	struct buf *name = &pasted->name;

	if (!name->len || !is_rest_of_name(name->data[name->len - 1], pasted->plain.data))
		return false;
	buf_printf(name, " %s", pasted->plain.data);
	add_name(pasted, to);
	buf_add_text(to, "\t");
	buf_add_text(to, end);
	return true;
}

/* Appends the lines that were held back. Inside a stack, each empty line gets a TAB so that
 * the stack continues. */
static void add_empty(struct pasted *pasted, bool in_stack, struct buf *to)
{
	add_name(pasted, to);
	for (; pasted->empty_count; pasted->empty_count--) {
		buf_add_text(to, in_stack ? "\t" : "");
		buf_add_text(to, pasted->empty_end);
	}
}

void pasted_end(struct pasted *pasted, struct buf *to)
{
	add_empty(pasted, false, to);
}

/* Returns true if a stack line without a TAB is "Alias" or has enough digits for an address. A
 * shorter number may be a page number. */
static bool is_long_number(const struct pasted *pasted, const struct pasted_line *line)
{
	const char *plain = pasted->plain.data;

	return !strcmp(plain, "Alias") || hex_count(plain) >= (line->blanks ? ADDR_MIN : BARE_MIN);
}

/* Returns true if a line belongs to the preceding record. */
static bool goes_on(const struct pasted *pasted, const struct pasted_line *line)
{
	bool has_tab = *pasted->text.data == '\t';

	if (!pasted->in_record)
		return false;
	if (line->kind == PASTED_FRAME)
		return has_tab || ((line->blanks || line->is_quoted || pasted->has_bare) &&
					  is_long_number(pasted, line));
	return line->kind == PASTED_NAME || line->kind == PASTED_COUNTS;
}

/* Appends a line in the form in which a program would print it. */
static void add_text(struct pasted *pasted, const struct pasted_line *line, bool is_part,
	const char *original, size_t len, struct buf *to)
{
	const char *plain = pasted->plain.data;
	bool is_frame = line->kind == PASTED_FRAME || line->kind == PASTED_NAME;

	const char *at = line->at;

	pass_blanks(&at);
	if (line->kind == PASTED_COMMENT && *at == '/' && !(at[2] & 0x80) &&
		!is_fixed_comment(plain) && !is_mended_module(pasted, at, line->end)) {
		buf_add(to, at, (size_t)(line->end - at)); /* the text of a comment is unchanged */
	} else if (line->is_quoted && line->kind == PASTED_OTHER) {
		buf_add(to, line->at, (size_t)(line->end - line->at));
	} else if (line->kind == PASTED_OTHER || (is_frame && !is_part)) {
		buf_add(to, original, len);
	} else if (line->kind == PASTED_HEADING && strncmp(plain, "*-", 2) != 0) {
		buf_add_text(to, "*- ");
		buf_add_text(to, heading_words(plain, plain + pasted->plain.len));
	} else {
		if (is_frame)
			buf_add(to, "\t", 1);
		buf_add(to, plain, pasted->plain.len);
	}
}

/* Returns true for the first line of the record into which PowerShell turns UMDH's first message:
 * "umdh.exe : DBGHELP: app - private symbols". */
static bool is_error(const char *at, const char *end)
{
	static const char name[] = "umdh", mark[] = " : ";
	const char *colon;
	bool is_found = false;

	if (is_blank(*at))
		return false;
	for (colon = at; colon < end && !SCAN_MATCH(&(const char *){colon}, end, mark); colon++) {
		if (strchr("!+\t", *colon)) /* a frame */
			return false;
		is_found |= (size_t)(end - colon) > sizeof(name) &&
			    text_same(colon, sizeof(name) - 1, name, sizeof(name) - 1);
	}
	return is_found && colon < end;
}

/* Returns true for a line that contains the place of a command: "At C:\a.ps1:14 char:1", in any
 * language. */
static bool is_command_place(const char *at, const char *end)
{
	for (; at + 1 < end; at++) {
		if (at[0] == ':' && at[1] >= '0' && at[1] <= '9')
			return true;
	}
	return false;
}

/* Returns true if a line belongs to an error record of PowerShell, or is a message of the symbol
 * engine. Follows the record, which ends with an empty line, and the message, which may continue
 * with a path. */
static bool pass_error(struct pasted *pasted, const struct pasted_line *line)
{
	enum pasted_error before = pasted->error;
	const char *at = line->at;

	pasted->error = ERROR_NONE;
	if (line->kind == PASTED_EMPTY)
		return before == ERROR_ENDED;
	if (line->kind != PASTED_OTHER)
		return false;
	if (is_message(pasted) || (before == ERROR_MESSAGE && line->blanks >= MESSAGE_BLANKS))
		pasted->error = ERROR_MESSAGE;
	else if (is_error(at, line->end))
		pasted->error = ERROR_BEGUN;
	else if (before == ERROR_BEGUN && is_command_place(at, line->end))
		pasted->error = ERROR_PLACED;
	else if (before == ERROR_PLACED && strstr(at, "FullyQualifiedErrorId"))
		pasted->error = ERROR_ENDED;
	else if (before == ERROR_PLACED && (*at == '+' || *at == ' '))
		pasted->error = ERROR_PLACED;
	return pasted->error != ERROR_NONE;
}

void pasted_add(struct pasted *pasted, const char *line, size_t len, struct buf *to)
{
	const char *end;
	struct pasted_line taken;
	size_t text_len;
	bool is_part;

	line = remove_escapes(pasted, line, &len);
	if (pasted->is_html)
		line = decode(pasted, line, &len);
	text_len = len;
	while (text_len && (line[text_len - 1] == '\n' || line[text_len - 1] == '\r'))
		text_len--;
	end = !len || line[len - 1] != '\n' ? "" : len > 1 && line[len - 2] == '\r' ? "\r\n" : "\n";
	if (memchr(line, '\0', len)) { /* damaged, but not by pasting */
		add_empty(pasted, false, to);
		buf_add(to, line, len);
		pasted->in_record = false;
		return;
	}
	taken = split_line(pasted, line, len);
	if (pass_error(pasted, &taken)) { /* a line with only a TAB does not end a stack */
		buf_add_text(to, pasted->in_record ? "\t" : "//");
		buf_add_text(to, end);
		return;
	}
	if (taken.kind == PASTED_EMPTY && *end) {
		pasted->empty_end = end;
		if (++pasted->empty_count == EMPTY_MAX)
			pasted->in_record = false;
		if (!pasted->in_record)
			add_empty(pasted, false, to);
		return;
	}
	if (pasted->in_record && taken.kind == PASTED_OTHER && taken.blanks &&
		strchr(pasted->plain.data, '!'))
		taken.kind = PASTED_NAME; /* for example, a name without an offset */
	if (taken.kind == PASTED_OTHER && join_name(pasted, end, to))
		return;
	is_part = goes_on(pasted, &taken);
	add_empty(pasted, is_part, to);
	if (is_part && taken.kind == PASTED_NAME && *end) {
		add_text(pasted, &taken, is_part, line, text_len, &pasted->name);
		pasted->name_end = end;
		return;
	}
	add_text(pasted, &taken, is_part, line, text_len, to);
	buf_add_text(to, end);
	pasted->in_record = is_part || taken.kind == PASTED_ENTRY || taken.kind == PASTED_ROW ||
			    taken.kind == PASTED_COUNTS;
}

/* ---------------------------------------------------------------- signs of damage */

/* Signs of damage found at the start of a text. */
struct pasted_signs {
	enum pasted_kind last; /* kind of the last nonempty line */
	bool in_record; /* the last nonempty line belongs to an entry or a row */
	bool is_interrupted; /* a message of the symbol engine follows an entry, a row or a frame */
	char last_sign; /* last character of the last nonempty line */
	size_t empty_count; /* number of empty lines since the last nonempty line */
	size_t entry_count;
	bool has_frames, has_bare;
	bool is_found;
};

/* Returns true if a line proves that the text is HTML: it contains entities or tags, and is a line
 * of a dump or a comparison once they are decoded. */
static bool is_html(struct pasted *pasted, const char *line, size_t len)
{
	size_t decoded_len = len;
	const char *decoded = decode(pasted, line, &decoded_len);
	const char *plain;
	enum pasted_kind before, kind;

	if (decoded_len == len)
		return false;
	before = split_line(pasted, line, len).kind;
	kind = split_line(pasted, decoded, decoded_len).kind;
	plain = pasted->plain.data;
	if (kind == PASTED_OTHER)
		return strchr(plain, '!'); /* a frame without an offset */
	if (kind != PASTED_COMMENT || before != PASTED_COMMENT)
		return kind != PASTED_EMPTY;
	/* The line is a comment, and may contain an entity that is not HTML. The value of a note
	 * may contain anything, so a note proves HTML only if the quotation marks around its value
	 * are entities. A module line also proves HTML, but not in a dump written by hsnap, because
	 * a module's name may contain an entity. */
	return (!pasted->is_ours && is_module(plain, plain + pasted->plain.len)) ||
	       (!memchr(line, '"', len) && memchr(decoded, '"', decoded_len));
}

/* Returns true if is_html() is true for any line that contains `sign`. */
static bool find_sign(struct pasted *pasted, const char *text, size_t len, char sign)
{
	const char *end = text + len, *at = text, *newline;

	for (; (at = memchr(at, sign, (size_t)(end - at))); at = newline) {
		const char *line = at;

		while (line > text && line[-1] != '\n')
			line--;
		newline = memchr(at, '\n', (size_t)(end - at));
		if (!newline || newline - line > DUMP_LINE_MAX)
			return false;
		if (is_html(pasted, line, (size_t)(newline - line)))
			return true;
	}
	return false;
}

static bool find_html(struct pasted *pasted, const char *text, size_t len)
{
	pasted->is_ours = !strncmp(text, "// hsnap: ", len < 10 ? len : 10);
	return find_sign(pasted, text, len, '&') || find_sign(pasted, text, len, '<');
}

/* Returns true if the text contains terminal escape sequences that may be removed. In a dump
 * written by hsnap, only sequences at the start or end of a line count, because a path may contain
 * anything. */
static bool find_escape(const char *text, const char *end, bool is_ours)
{
	const char *at = text, *stop;

	for (; (at = memchr(at, ESCAPE, (size_t)(end - at))); at = stop) {
		stop = pass_escape(at, end);
		if (!is_ours || at == text || at[-1] == '\n' || stop == end || *stop == '\r' ||
			*stop == '\n')
			return true;
	}
	return false;
}

/* Examines a line that is_plain() did not recognize. */
static void see_line(
	struct pasted *pasted, struct pasted_signs *signs, const char *line, size_t len)
{
	const char *clear = remove_escapes(pasted, line, &len);
	const char *decoded = pasted->is_html ? decode(pasted, clear, &len) : clear;
	struct pasted_line taken = split_line(pasted, decoded, len);
	enum pasted_kind before = signs->last;
	bool in_record = signs->in_record;
	size_t text_len = (size_t)(taken.end - pasted->text.data);
	bool is_same = text_len == pasted->plain.len &&
		       !memcmp(pasted->plain.data, pasted->text.data, text_len);
	bool is_frame = taken.kind == PASTED_FRAME || taken.kind == PASTED_NAME;

	if (taken.kind == PASTED_EMPTY) {
		signs->empty_count++;
		return;
	}
	while (len && decoded[len - 1] == '\r')
		len--;
	/* Spreadsheets end each line with TABs for the cells that are empty. */
	signs->is_found |= taken.kind > PASTED_COMMENT && len && decoded[len - 1] == '\t';
	if (is_frame) {
		bool has_tab = *pasted->text.data == '\t' && !taken.is_quoted;

		signs->is_found |= in_record && !has_tab && (taken.blanks || taken.is_quoted);
		/* An empty line before a frame is damage, except before the first frame of a
		 * comparison's stack. */
		signs->is_found |= in_record && signs->empty_count && before != PASTED_COUNTS &&
				   before != PASTED_ROW;
		/* With invisible characters in it, a name would differ from the same name without
		 * them. */
		signs->is_found |= in_record && !taken.is_quoted &&
				   taken.blanks + pasted->plain.len != text_len;
		/* The message would end the stack. A block has no named frames. */
		signs->is_found |= signs->is_interrupted &&
				   (taken.kind == PASTED_FRAME || before != PASTED_ENTRY);
		signs->has_frames |= in_record && taken.blanks;
		signs->has_bare |= in_record && taken.kind == PASTED_FRAME && !taken.blanks &&
				   hex_count(pasted->plain.data) >= BARE_MIN;
	} else if (taken.kind == PASTED_OTHER) {
		signs->is_found |= is_error(taken.at, taken.end) ||
				   (before == PASTED_NAME && in_record &&
					   is_rest_of_name(signs->last_sign, pasted->plain.data));
	} else if (taken.kind == PASTED_COMMENT) {
		signs->is_found |= taken.blanks || taken.is_quoted ||
				   (is_fixed_comment(pasted->plain.data) && !is_same) ||
				   is_mended_module(pasted, taken.at, taken.end);
	} else {
		const char *words = pasted->plain.data;

		signs->is_found |= !is_same;
		signs->is_found |= taken.kind == PASTED_HEADING && strncmp(words, "*-", 2) != 0;
		signs->is_found |= taken.kind == PASTED_COUNTS && signs->empty_count;
	}
	signs->entry_count += taken.kind == PASTED_ENTRY;
	signs->is_interrupted =
		taken.kind == PASTED_OTHER && in_record &&
		(is_message(pasted) || (signs->is_interrupted && taken.blanks >= MESSAGE_BLANKS));
	signs->in_record = signs->is_interrupted || (in_record && is_frame) ||
			   taken.kind == PASTED_ENTRY || taken.kind == PASTED_ROW ||
			   taken.kind == PASTED_COUNTS;
	signs->last = signs->is_interrupted ? before : taken.kind;
	signs->last_sign = pasted->plain.data[pasted->plain.len - 1];
	signs->empty_count = 0;
}

/* Returns true for the most common lines of a dump, unless the line ends in CR CR. */
static bool is_plain(struct pasted_signs *signs, const char *line, size_t len)
{
	bool has_tab = *line == '\t', is_hex;
	size_t digits;

	if (len && line[len - 1] == '\r' && --len && line[len - 1] == '\r') {
		signs->is_found = true;
		return false;
	}
	if (!len) {
		signs->empty_count++;
		return true;
	}
	digits = hex_count(line + has_tab);
	is_hex = digits && digits + has_tab == len;
	if (!digits || is_hex != has_tab ||
		(has_tab && (signs->empty_count || signs->is_interrupted)) ||
		(!is_hex &&
			(strncmp(line + digits, " bytes ", 7) != 0 || !is_ascii(line, line + len))))
		return false;
	signs->last = has_tab ? PASTED_FRAME : PASTED_ENTRY;
	signs->is_interrupted = false;
	signs->in_record |= !has_tab;
	signs->has_frames |= has_tab;
	signs->entry_count += !has_tab;
	signs->empty_count = 0;
	return true;
}

bool pasted_find(struct pasted *pasted, const char *text, size_t len)
{
	struct pasted_signs signs = {0};
	const char *end = text + len;
	bool has_escapes;

	if (memchr(text, '\0', len))
		return false; /* for example a recording */
	pasted->is_html = find_html(pasted, text, len);
	has_escapes = find_escape(text, end, pasted->is_ours);
	while (text < end && !signs.is_found && signs.entry_count < SURE_ENTRIES) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t line_len = (size_t)((newline ? newline : end) - text);

		if (line_len > DUMP_LINE_MAX)
			return false;
		if (newline && !is_plain(&signs, text, line_len))
			see_line(pasted, &signs, text, line_len);
		text = newline ? newline + 1 : end;
	}
	pasted->has_bare = signs.has_bare && !signs.has_frames;
	return signs.is_found || pasted->has_bare || pasted->is_html || has_escapes;
}
