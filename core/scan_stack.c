/* The stack behind an entry of a dump: addresses behind TABs, or names of functions. */
#include "core/hex.h"
#include "core/scanner.h"

/* What a reader gave to an entry before its stack turned out to be malformed counts without it. */
static int bad_stack(struct dump_scanner *scanner, const char *detail)
{
	scanner->open.is_dropped = true;
	return scan_skip(scanner, detail);
}

static int bad_stack_or_cut(struct dump_scanner *scanner, const char *detail)
{
	int rc;

	if (!scanner->no_newline)
		return bad_stack(scanner, detail);
	scanner->open.is_dropped = true;
	rc = scan_close_entry(scanner, true);
	return rc ? rc : scan_fail(scanner, ERR_CUT, detail);
}

/*
 * "MODULE!FUNCTION+0x12", "MODULE!FUNCTION+12" or "MODULE+0x12", behind a TAB or not. An entry is
 * none, whatever its id.
 */
static bool is_name(const char *at, const char *end)
{
	const char *plus = end, *digits, *bang;

	while (plus > at && plus[-1] != '+')
		plus--;
	if (plus < at + 2)
		return false;
	digits = plus;
	plus--;
	bang = memchr(at, '!', (size_t)(plus - at));
	if (!SCAN_TAKE(&digits, end, "0x") && !bang)
		return false;
	if (digits == end || bang == at || bang == plus - 1)
		return false;
	while (digits < end && hex_digits[(unsigned char)*digits])
		digits++;
	if (digits != end)
		return false;
	while (hex_digits[(unsigned char)*at])
		at++;
	return !SCAN_TAKE(&at, end, " bytes in ") && !SCAN_TAKE(&at, end, " bytes + ");
}

static int add_name(struct dump_scanner *scanner, const char *text, size_t len)
{
	struct scan_entry *open = &scanner->open;

	if (open->is_dropped)
		return 0;
	if (open->entry.name_count == DUMP_FRAMES_MAX)
		return bad_stack(scanner, "a stack is too deep");
	if (len > SCAN_NAME_MAX)
		return bad_stack(scanner, "the name of a function is too long");
	if (buf_add(&open->name_text, text, len))
		return -ERR_NOMEM;
	open->names[open->entry.name_count++].len = len;
	return 0;
}

/* Whether frames of the open entry may be names. */
static bool takes_names(const struct scan_entry *open)
{
	return open->is_sum && !open->entry.stack.frame_count && !open->entry.stack.alias_count;
}

static const char *trimmed(const char *at, const char *end)
{
	while (end > at && (end[-1] == ' ' || end[-1] == '\r'))
		end--;
	return end;
}

int scan_name_line(struct dump_scanner *scanner)
{
	const char *at = scanner->at, *end = memchr(at, '\n', (size_t)(scanner->end - at));
	struct scan_line line;
	int rc;

	if (!takes_names(&scanner->open) || *at == '/' || *at == '*')
		return 0;
	end = trimmed(at, end ? end : scanner->end);
	if (end - at > DUMP_LINE_MAX || memchr(at, '\0', (size_t)(end - at)) || !is_name(at, end))
		return 0;
	rc = scan_next(scanner, &line);
	if (rc > 0)
		rc = add_name(scanner, at, (size_t)(end - at));
	return rc ? rc : 1;
}

/* Behind it another stack of the same id begins. */
static bool is_alias(const char *at, const char *end)
{
	return end - at == 5 && !memcmp(at, "Alias", 5);
}

static int add_alias(struct dump_scanner *scanner)
{
	struct stack *stack = &scanner->open.entry.stack;

	if (stack->alias_count == DUMP_FRAMES_MAX)
		return bad_stack(scanner, "too many stacks under one id");
	scanner->open.aliases[stack->alias_count++] = stack->frame_count;
	return 0;
}

static int add_frame(struct dump_scanner *scanner, const char *at, const char *end)
{
	struct stack *stack = &scanner->open.entry.stack;

	if (stack->frame_count == DUMP_FRAMES_MAX)
		return bad_stack(scanner, "a stack is too deep");
	if (!hex_take(&at, &scanner->open.frames[stack->frame_count]) || at != end)
		return bad_stack_or_cut(scanner, "bad stack line");
	stack->frame_count++;
	return 0;
}

/* A line without its TAB that belongs to no entry. */
static int orphan(struct dump_scanner *scanner, const char *at, const char *end)
{
	uint64_t addr;
	bool is_frame = is_alias(at, end) || (hex_take(&at, &addr) && at == end);

	/* In a dump nothing else starts with a TAB. */
	return scanner->is_dump || (is_frame && scanner->sink.skipped) ?
		       scan_skip(scanner, "a stack without an entry") :
		       0;
}

static int stack_line(struct dump_scanner *scanner)
{
	struct scan_entry *open = &scanner->open;
	struct scan_line line;
	const char *at, *end;
	int rc = scan_next(scanner, &line);

	if (rc <= 0 || scanner->is_passing)
		return rc < 0 ? rc : 0;
	at = line.text + 1;
	end = trimmed(at, line.text + line.len);
	if (at == end)
		return 0; /* seen in a published log: a line with nothing but the TAB */
	if (!open->is_open)
		return orphan(scanner, at, end);
	if (takes_names(open) && is_name(at, end))
		return add_name(scanner, at, (size_t)(end - at));
	if (open->entry.name_count)
		return bad_stack_or_cut(scanner, "bad stack line");
	if (is_alias(at, end))
		return add_alias(scanner);
	return add_frame(scanner, at, end);
}

/* Whole plain lines of a stack ("TAB HEX"): most of what a dump consists of. What is not plain is
 * left to stack_line(). */
static void plain_frames(struct dump_scanner *scanner)
{
	struct stack *stack = &scanner->open.entry.stack;
	const char *at = scanner->at;
	uint32_t count = stack->frame_count;

	while (*at == '\t' && count < DUMP_FRAMES_MAX) {
		const char *digit = at + 1;

		if (!hex_take(&digit, &scanner->open.frames[count]))
			break;
		digit += *digit == '\r';
		if (*digit != '\n') /* also at the end of the part */
			break;
		at = digit + 1;
		count++;
	}
	scanner->line_number += count - stack->frame_count;
	stack->frame_count = count;
	scanner->at = at;
}

int scan_stack_lines(struct dump_scanner *scanner)
{
	const struct scan_entry *open = &scanner->open;
	int rc = 0;

	while (!rc && scanner->at < scanner->end && *scanner->at == '\t') {
		if (open->is_open && !open->entry.name_count && !scanner->sink.line)
			plain_frames(scanner);
		if (scanner->at < scanner->end && *scanner->at == '\t')
			rc = stack_line(scanner);
	}
	return rc;
}
