/* Frames: lists of frames, display names, parsing of C++ function names, and parsing of frames from
 * text. A frame's text is parsed from its end. */
#include "diff/read/frame.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "core/dump/frame_columns.h"

void frames_init(struct frames *frames)
{
	*frames = (struct frames){0};
}

void frames_release(struct frames *frames)
{
	free(frames->items);
	free(frames->part_at);
	frames_init(frames);
}

void frames_clear(struct frames *frames)
{
	frames->count = frames->part_count = 0;
}

void frames_add(struct frames *frames, const struct frame *frame)
{
	array_grow((void **)&frames->items, &frames->cap, frames->count, sizeof(*frame));
	frames->items[frames->count++] = *frame;
}

void frames_part(struct frames *frames)
{
	array_grow((void **)&frames->part_at, &frames->part_cap, frames->part_count,
		sizeof(*frames->part_at));
	frames->part_at[frames->part_count++] = frames->count;
}

void frame_name(const struct frame *frame, struct buf *buf)
{
	buf_clear(buf);
	if (frame->module)
		buf_add_text(buf, frame_module(frame));
	if (frame->module && frame->function)
		buf_add(buf, "!", 1);
	if (frame->function)
		buf_add_text(buf, frame->function);
	else if (frame->module)
		buf_printf(buf, "+%" PRIX64, frame->offset_bytes);
	else
		buf_printf(buf, "%" PRIX64, frame->addr);
}

/* ---------------------------------------------------------------- functions */

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       c == '_';
}

/* Returns true if a name may begin at `at`. This is the case if the previous character cannot be
 * part of a name. */
static bool is_start(const char *text, const char *at)
{
	return at == text || (!is_word(at[-1]) && at[-1] != ':');
}

/* Returns the number of brackets that are open after the character at `at`. */
static size_t count_depth(const char *function, const char *at, size_t depth)
{
	if (strchr("<([{`", *at))
		return depth + 1;
	if (depth && strchr(">)]}'", *at))
		return depth - (*at != '>' || at == function || at[-1] != '-');
	return depth;
}

const char *function_pass_operator(const char *function, const char *at)
{
	static const char *const signs[] = {
		"<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "()", "<", ">"};
	size_t depth = 0;

	if (strncmp(at, "operator", 8) != 0 || is_word(at[8]) ||
		(at > function && !strchr(": *&<(,", at[-1])))
		return at;
	at += 8;
	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++) {
		if (!strncmp(at, signs[i], strlen(signs[i])))
			return at + strlen(signs[i]);
	}
	if (*at != ' ')
		return at;
	/* conversion to a type, or operator new */
	for (; *at && (depth || !strchr("(>,", *at)); at++)
		depth = count_depth(function, at, depth);
	return at;
}

const char *function_own(const char *function)
{
	const char *own = function;
	size_t depth = 0;

	for (const char *at = function; *at;) {
		const char *past = function_pass_operator(function, at);
		bool is_first = at == own || at[-1] == ':';

		if (!depth && (past > at || (*at == '(' && !is_first)))
			break; /* a '(' ends the name, except in "(anonymous namespace)" */
		/* a blank ends the return type, except in "f [clone .cold]" */
		if (!depth && *at == ' ' && at[1] != '[')
			own = at + 1;
		depth = past > at ? depth : count_depth(function, at, depth);
		at = past > at ? past : at + 1;
	}
	return own;
}

bool frame_spelling(const struct frame *frame, size_t number, struct frame *spelt)
{
	const bool is_recorded = number & 1, is_own = number & 2;
	const char *whole;

	*spelt = *frame;
	spelt->shown_module = NULL;
	if (is_recorded && frame->recorded_module)
		spelt->module = frame->recorded_module;
	if (is_recorded && frame->recorded_function)
		spelt->function = frame->recorded_function;
	whole = spelt->function;
	if (is_own && whole && strchr(whole, ' '))
		spelt->function = function_own(whole);
	return (!is_own || spelt->function != whole) &&
	       (!is_recorded || frame->recorded_module || frame->recorded_function);
}

/* Skips `word`. Before it, also skips a blank, or "class " or "struct ", which Microsoft's names
 * contain. After "std::", also skips an inline namespace. Returns the end, or NULL if `word` does
 * not follow. */
static const char *pass(const char *at, const char *word)
{
	static const char *const front[] = {" ", "class ", "struct "};
	static const char *const inner[] = {"__cxx11::", "__1::"};

	for (size_t i = 0; i < sizeof(front) / sizeof(*front); i++) {
		if (!strncmp(at, front[i], strlen(front[i])))
			at += strlen(front[i]);
	}
	if (strncmp(at, word, strlen(word)) != 0)
		return NULL;
	at += strlen(word);
	for (size_t i = 0; i < sizeof(inner) / sizeof(*inner) && !strcmp(word, "std::"); i++) {
		if (!strncmp(at, inner[i], strlen(inner[i])))
			at += strlen(inner[i]);
	}
	return at;
}

/* Skips a string type in its long form and stores its short name. Returns the end, or NULL if no
 * such type follows. */
static const char *pass_string(const char *at, const char **name)
{
	static const char *const types[][2] = {
		{"char", "std::string"}, {"wchar_t", "std::wstring"}};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		const char *c = types[i][0], *end = at;
		const char *const words[] = {"std::", "basic_string", "<", c, ",",
			"std::", "char_traits", "<", c, ">", ",", "std::", "allocator", "<", c, ">",
			">"};

		for (size_t k = 0; end && k < sizeof(words) / sizeof(*words); k++)
			end = pass(end, words[k]);
		if (end) {
			*name = types[i][1];
			return end;
		}
	}
	return NULL;
}

void function_shown(const char *function, struct buf *shown)
{
	const char *at = function, *from = function; /* start of the text not yet appended */

	while (*at) {
		const char *name = "std::", *end = NULL;

		if (*at != ' ' && is_start(function, at) && !(end = pass_string(at, &name)) &&
			!strncmp(at, "std::", 5))
			end = pass(at, name);
		if (!end) {
			at++;
			continue;
		}
		buf_add(shown, from, (size_t)(at - from));
		buf_add_text(shown, name);
		at = from = end;
	}
	buf_add(shown, from, (size_t)(at - from));
}

#define INLINE " [inline]"

/* Part of a text. Parsing removes pieces from its end. */
struct frame_part {
	const char *text;
	size_t len;
};

static struct frame_part trim(struct frame_part part)
{
	while (part.len && (*part.text == ' ' || *part.text == '\t'))
		part = (struct frame_part){part.text + 1, part.len - 1};
	while (part.len && (part.text[part.len - 1] == ' ' || part.text[part.len - 1] == '\t'))
		part.len--;
	return part;
}

/* Removes `word` from the end of a part. Returns false if the part does not end with it. */
static bool cut_end(struct frame_part *part, const char *word)
{
	size_t len = strlen(word);

	if (part->len < len || memcmp(part->text + part->len - len, word, len) != 0)
		return false;
	part->len -= len;
	return true;
}

/* Parses the whole part as a hexadecimal number of up to 64 bits, with or without 0x. Accepts
 * WinDbg's '`' before the last 8 digits. */
static bool hex_whole(struct frame_part part, uint64_t *value)
{
	return frame_columns_number(part.text, part.len, value);
}

/* Returns the last position of `byte`, or the part's length if it does not occur. */
static size_t last_of(struct frame_part part, char byte)
{
	for (size_t i = part.len; i; i--) {
		if (part.text[i - 1] == byte)
			return i - 1;
	}
	return part.len;
}

/* Removes "+OFFSET" from the end. */
static bool cut_offset(struct frame_part *part, uint64_t *offset)
{
	size_t plus = last_of(*part, '+');

	if (plus == part->len ||
		!hex_whole(
			(struct frame_part){part->text + plus + 1, part->len - plus - 1}, offset))
		return false;
	part->len = plus;
	return true;
}

#define ADDR_DIGITS_MIN 5 /* fewest digits of an address in brackets */
#define BARE_DIGITS_MIN 8 /* fewest digits of an address after a blank */

/* Removes " : ADDRESS", " (ADDRESS)", " [ADDRESS]" or " ADDRESS" from the end. */
static bool cut_number(struct frame_part *part, uint64_t *addr)
{
	size_t blank = last_of(*part, ' ');
	struct frame_part front = {part->text, blank}, digits;
	const char *open;

	if (part->len - blank < 2)
		return false;
	digits = (struct frame_part){part->text + blank + 1, part->len - blank - 1};
	open = strchr("([", *digits.text);
	if (open && *open) {
		if (digits.len < ADDR_DIGITS_MIN + 2 ||
			digits.text[digits.len - 1] != (*open == '(' ? ')' : ']'))
			return false;
		digits = (struct frame_part){digits.text + 1, digits.len - 2};
	} else if (!cut_end(&front, " :") && digits.len < BARE_DIGITS_MIN) {
		return false;
	}
	if (!hex_whole(digits, addr))
		return false;
	*part = front;
	return true;
}

/* Removes an address from the end if an offset precedes the address. */
static bool cut_addr(struct frame_part *part, uint64_t *addr)
{
	struct frame_part front = *part, before;
	uint64_t offset;

	if (!cut_number(&front, addr))
		return false;
	before = front;
	if (!cut_offset(&before, &offset))
		return false;
	*part = front;
	return true;
}

/* Returns true if a file may follow the text in `part`, which must end with an offset, or with an
 * offset and an address. */
static bool is_place(struct frame_part part)
{
	struct frame_part with_addr = part;
	uint64_t value;

	return cut_addr(&with_addr, &value) || cut_offset(&part, &value);
}

/* Returns the position of the " (" or " [" before the file at the part's end, or the part's length
 * if there is no such bracket. Names of files and functions may contain brackets, so several
 * brackets are tried. The bracket that matches the final one is used if an offset precedes it.
 * Otherwise, the last bracket with an offset before it is used. If no bracket has an offset before
 * it, the matching bracket is used. */
static size_t file_start(struct frame_part part)
{
	const char close = part.text[part.len - 1], open = close == ')' ? '(' : '[';
	size_t depth = 0, tries = 0, i, match = part.len;

	for (i = part.len; i-- > 1;) {
		if (part.text[i] == close)
			depth++;
		else if (part.text[i] == open && !--depth)
			break;
	}
	if (i > 1 && i < part.len && part.text[i - 1] == ' ')
		match = i - 1;
	if (match < part.len && is_place((struct frame_part){part.text, match}))
		return match;
	for (i = part.len; i-- > 1 && tries < 64;) {
		if (part.text[i] != open || part.text[i - 1] != ' ')
			continue;
		tries++; /* each attempt parses all text before the bracket */
		if (is_place((struct frame_part){part.text, i - 1}))
			return i - 1;
	}
	return match;
}

/* Parses the whole part as a number from 1 to UINT32_MAX. */
static bool line_number(struct frame_part part, uint32_t *line)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < part.len && sum <= UINT32_MAX; i++) {
		if (part.text[i] < '0' || part.text[i] > '9')
			return false;
		sum = sum * 10 + (uint64_t)(part.text[i] - '0');
	}
	if (!sum || sum > UINT32_MAX)
		return false;
	*line = (uint32_t)sum;
	return true;
}

/* Removes a line number from the end. */
static bool remove_decimal(struct frame_part *part, uint32_t *line)
{
	size_t len = part->len;

	while (len && part->text[len - 1] >= '0' && part->text[len - 1] <= '9')
		len--;
	if (!line_number((struct frame_part){part->text + len, part->len - len}, line))
		return false;
	part->len = len;
	return true;
}

/* Removes the line and its separator from the end: "FILE, LINE", "FILE @ LINE", "FILE:LINE" or
 * "FILE:LINE:COLUMN". */
static bool remove_line(struct frame_part *part, uint32_t *line)
{
	struct frame_part outer;
	uint32_t outer_line;

	if (!remove_decimal(part, line))
		return false;
	if (!cut_end(part, ":"))
		return cut_end(part, ", ") || cut_end(part, " @ ");
	outer = *part;
	if (remove_decimal(&outer, &outer_line) && cut_end(&outer, ":")) {
		*part = outer;
		*line = outer_line;
	}
	return true;
}

/* Removes the file and the line, in brackets, from the end. */
static bool cut_source(struct frame_part *part, struct frame_part *file, uint32_t *line)
{
	struct frame_part name = {part->text, part->len ? part->len - 1 : 0};
	uint32_t number;
	size_t start;

	if (!name.len || !strchr(")]", part->text[name.len]) || !remove_line(&name, &number))
		return false;
	start = file_start(*part);
	if (start + 2 >= name.len)
		return false;
	*file = (struct frame_part){part->text + start + 2, name.len - start - 2};
	*line = number;
	*part = trim((struct frame_part){part->text, start});
	return true;
}

/* Removes a file and line from the end. If an address follows them, also removes the address. */
static void cut_place(struct frame *frame, struct frame_part *part, struct frame_part *file)
{
	struct frame_part front = *part;
	uint64_t addr;

	if (cut_source(part, file, &frame->line) || !cut_number(&front, &addr) ||
		!cut_source(&front, file, &frame->line))
		return;
	*part = front;
	frame->has_addr = true;
	frame->addr = addr;
}

/* Splits at the first '!' if the text before it can be a file name. Otherwise, the '!' may belong
 * to an operator, or follow a placeholder in angle brackets. */
static bool cut_module(struct frame_part *part, struct frame_part *module)
{
	const char *mark = part->len ? memchr(part->text, '!', part->len) : NULL;

	if (!mark || mark == part->text ||
		(mark - part->text == 8 && !memcmp(part->text, "operator", 8)))
		return false;
	for (const char *at = part->text; at < mark; at++) {
		if (strchr(":<>\"|*/\\", *at))
			return false;
	}
	*module = (struct frame_part){part->text, (size_t)(mark - part->text)};
	*part = (struct frame_part){mark + 1, part->len - module->len - 1};
	return true;
}

static const char *copy(struct arena *arena, struct frame_part part)
{
	return part.text ? arena_text(arena, part.text, part.len) : NULL;
}

/* Removes the file name extension, which debuggers print, from a module's name. Returns false if the
 * name has none. */
static bool cut_ending(struct frame_part *module)
{
	static const char *const endings[] = {".dll", ".exe", ".ocx", ".drv"};

	for (size_t i = 0; module->len > 4 && i < sizeof(endings) / sizeof(*endings); i++) {
		if (text_same(module->text + module->len - 4, 4, endings[i], 4)) {
			module->len -= 4;
			return true;
		}
	}
	return false;
}

/* Splits the text before the offset, address and file into module and function. Without a function,
 * an offset that is followed by an address is an offset in a module. Returns false for an empty
 * text. */
static bool split_names(struct frame_part names, bool is_offset_in_module,
	struct frame_part *module, struct frame_part *function)
{
	struct frame_part rest = names;

	if (!names.len)
		return false;
	if (cut_module(&rest, module) && (rest.len || is_offset_in_module)) {
		if (rest.len)
			*function = rest;
		return true;
	}
	*module = (struct frame_part){0};
	if (is_offset_in_module && !memchr(names.text, '!', names.len))
		*module = names;
	else
		*function = names;
	return true;
}

/* Splits a frame into parts. Returns false if its form is unknown. */
static bool split(struct frame *frame, struct frame_part text, struct frame_part *module,
	struct frame_part *function, struct frame_part *file)
{
	struct frame_columns columns;
	bool has_offset;

	frame->is_inline = cut_end(&text, INLINE);
	columns = frame_columns_find(text.text, text.len);
	text = (struct frame_part){text.text + columns.len, text.len - columns.len};
	if (columns.len && text.len > 2 && text.text[0] == '(' && text.text[text.len - 1] == ')' &&
		memchr(text.text, '!', text.len)) /* "ADDRESS (MODULE!FUNCTION+OFFSET)" */
		text = (struct frame_part){text.text + 1, text.len - 2};
	frame->is_inline |= columns.is_inline;
	cut_place(frame, &text, file);
	frame->has_addr |= cut_addr(&text, &frame->addr);
	if (columns.has_addr && !frame->has_addr) {
		frame->has_addr = true;
		frame->addr = columns.addr;
	}
	has_offset = cut_offset(&text, &frame->offset_bytes);
	/* a short word before a file, such as "add", is a function */
	if (!has_offset && !frame->is_inline && (!file->len || text.len >= BARE_DIGITS_MIN) &&
		hex_whole(text, &frame->addr)) {
		frame->has_addr = true;
		return true;
	}
	return split_names(text, (frame->has_addr || columns.len) && !file->len, module, function);
}

/* Returns true for a placeholder of an unknown module with an unknown function: "<no module>!???". */
static bool is_placeholder(struct frame_part function)
{
	const char *mark = function.len ? memchr(function.text, '!', function.len) : NULL;

	if (!mark || *function.text != '<' || mark[-1] != '>')
		return false;
	while (++mark < function.text + function.len) {
		if (*mark != '?')
			return false;
	}
	return true;
}

void frame_parse(struct frame *frame, struct arena *arena, const char *text, size_t len)
{
	struct frame_part whole = trim((struct frame_part){text, len});
	struct frame_part module = {0}, function = {0}, file = {0}, given;

	*frame = (struct frame){0};
	if (!split(frame, whole, &module, &function, &file)) {
		*frame = (struct frame){0};
		module = file = (struct frame_part){0};
		function = whole;
	}
	if (frame->has_addr && is_placeholder(function)) {
		function = (struct frame_part){0};
		frame->offset_bytes = 0;
	}
	given = module = trim(module); /* in French, a blank precedes '!' */
	if (cut_ending(&module))
		frame->recorded_module = copy(arena, given);
	frame->module = copy(arena, module);
	frame->function = copy(arena, function);
	frame->file = copy(arena, file);
}

const char *frame_odd_end(const struct frame *frame)
{
	size_t depth = 0;
	const char *at = frame->module ? frame->function : NULL;

	while (at && *at) {
		const char *past = function_pass_operator(frame->function, at);
		size_t digits = 0;

		if (past == at)
			depth = count_depth(frame->function, past++, depth);
		if (*at == '+' && !depth && past[0] == '0' && (past[1] | 0x20) == 'x')
			past += 2;
		while (*at == '+' && !depth && hex_digits[(unsigned char)past[digits]])
			digits++;
		past += digits;
		if (digits && *past && strchr(" ([,.", *past))
			return past;
		at = past;
	}
	return NULL;
}
