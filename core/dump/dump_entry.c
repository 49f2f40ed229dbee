/* Parses the entries of a dump: the line of numbers, then the stack as TAB-indented addresses or as
 * names. Each finished entry is passed to the sink. */
#include "core/base/text.h"
#include "core/dump/scanner.h"

/* Reads a number with an optional "0x" prefix. */
static bool number_parse(const char **at, const char *end, uint64_t *value)
{
	(void)SCAN_MATCH(at, end, "0x");
	return hex_parse(at, value);
}

/* Parses " + OVH at ADDR by BackTrace": one block. */
static bool block_parse(const char **at, const char *end, struct dump_entry *entry)
{
	entry->block_count = 1;
	return SCAN_MATCH(at, end, " bytes + ") && hex_parse(at, &entry->overhead_bytes) &&
	       SCAN_MATCH(at, end, " at ") && hex_parse(at, &entry->addr) &&
	       SCAN_MATCH(at, end, " by BackTrace");
}

/* Parses " bytes in 0xCOUNT allocations (@ 0xSIZE + 0xOVH) by: BackTrace": COUNT blocks. */
static bool sum_parse(const char **at, const char *end, struct dump_entry *entry)
{
	uint64_t size_bytes, overhead = 0;

	if (!SCAN_MATCH(at, end, " bytes in ") || !number_parse(at, end, &entry->block_count) ||
		!SCAN_MATCH(at, end, " allocations (@ ") || !number_parse(at, end, &size_bytes))
		return false;
	if (SCAN_MATCH(at, end, " + ") && !number_parse(at, end, &overhead))
		return false;
	if (!SCAN_MATCH(at, end, ") by: BackTrace") ||
		(entry->block_count && overhead > UINT64_MAX / entry->block_count))
		return false;
	entry->overhead_bytes = entry->block_count * overhead;
	return true;
}

/* Returns true if a line contains words that occur only in entries. Called for lines that do not
 * begin like an entry: such a line is a damaged entry. UMDH's heading also contains the words, and
 * is excluded. */
static bool was_entry(const struct scan_line *line)
{
	const char *end = line->text + line->len;

	for (const char *at = line->text; at < end; at++) {
		const char *from;

		at = memchr(at, ' ', (size_t)(end - at));
		if (!at)
			return false;
		from = at;
		if (SCAN_MATCH(&from, end, " bytes + OVERHEAD "))
			return false;
		if (SCAN_MATCH(&from, end, " by BackTrace") ||
			SCAN_MATCH(&from, end, " by: BackTrace"))
			return true;
	}
	return false;
}

/* Returns true if a line contains only the start of an entry. */
static bool is_start(const struct scan_line *line)
{
	static const char one[] = " bytes + ", sum[] = " bytes in ";
	const char *at = line->text, *end = line->text + line->len;
	size_t len;

	while (at < end && hex_digits[(unsigned char)*at])
		at++;
	len = (size_t)(end - at);
	return at > line->text && ((len < sizeof(one) && !memcmp(at, one, len)) ||
					  (len < sizeof(sum) && !memcmp(at, sum, len)));
}

enum entry_kind { NO_ENTRY, BAD_ENTRY, ONE_BLOCK, SUM };

static enum entry_kind entry_parse(const struct scan_line *line, struct dump_entry *entry)
{
	const char *at = line->text, *end = line->text + line->len;
	bool fits, is_sum;

	while (end > at && end[-1] == ' ')
		end--;
	fits = at < end && hex_parse(&at, &entry->requested_bytes);
	while (!fits && hex_digits[(unsigned char)*at])
		at++;
	is_sum = (size_t)(end - at) >= 10 && !memcmp(at, " bytes in ", 10);
	if (!is_sum && ((size_t)(end - at) < 9 || memcmp(at, " bytes + ", 9) != 0))
		return was_entry(line) ? BAD_ENTRY : NO_ENTRY;
	if (at == line->text)
		return BAD_ENTRY;
	if (!fits || !(is_sum ? sum_parse : block_parse)(&at, end, entry) || at == end ||
		end - at >= SCAN_ID_BYTES)
		return BAD_ENTRY;
	entry->stack.id = at;
	entry->id_len = (size_t)(end - at);
	return is_sum ? SUM : ONE_BLOCK;
}

/* Returns true for a sum whose id and block size equal those of an earlier sum. Checks only files
 * that begin with sums and have no headings; in other files an id may occur in two heaps. */
static bool is_repeated_sum(struct dump_scanner *scanner, const struct dump_entry *entry)
{
	struct {
		char id[SCAN_ID_BYTES];
		uint64_t sizes[2];
	} key = {0};

	bool has_headings = scanner->headings[0].index.count || scanner->headings[1].index.count;

	if (scanner->is_ours || has_headings || !entry->block_count)
		return false;
	if (scanner->has_entries && !scanner->sums.count)
		return false;
	memcpy(key.id, entry->stack.id, entry->id_len);
	key.sizes[0] = entry->requested_bytes / entry->block_count;
	key.sizes[1] = entry->overhead_bytes / entry->block_count;
	if (table_find(&scanner->sums, &key, sizeof(key)))
		return true;
	table_add(&scanner->sums, &key, sizeof(key), 0);
	return false;
}

int scan_entry_line(struct dump_scanner *scanner, const struct scan_line *line)
{
	struct dump_entry entry = {.stack.same_id = STACK_NONE};
	struct scan_entry *open = &scanner->open;
	enum entry_kind kind = entry_parse(line, &entry);

	if (kind == NO_ENTRY && !(scanner->is_dump && is_start(line))) {
		scan_unknown_line(scanner, line);
		return 0;
	}
	if (kind <= BAD_ENTRY)
		return scan_skip_or_cut(scanner, "bad entry");
	if (scanner->ended)
		return scan_fail(scanner, ERR_BAD_LINE, "an entry after the end mark");
	if (scanner->no_newline && scan_may_be_cut(scanner))
		return scan_fail(scanner, ERR_CUT, "the last line is incomplete");
	if (kind == SUM && is_repeated_sum(scanner, &entry))
		return scan_fail(scanner, ERR_SECOND, "the stack was listed before");
	scanner->has_entries = true;
	memcpy(open->id, entry.stack.id, entry.id_len);
	open->id[entry.id_len] = '\0';
	entry.stack.id = open->id;
	open->entry = entry;
	open->is_open = true;
	open->is_sum = kind == SUM;
	open->is_dropped = false;
	buf_clear(&open->name_text);
	return scan_is_dump(scanner);
}

static void report_names(struct scan_entry *open)
{
	const char *text = open->name_text.data;

	for (uint32_t i = 0; i < open->entry.name_count; i++) {
		open->names[i].text = text;
		text += open->names[i].len;
	}
	open->entry.names = open->names;
}

int scan_close_entry(struct dump_scanner *scanner, bool at_end)
{
	struct scan_entry *open = &scanner->open;
	struct dump_entry *entry = &open->entry;
	struct block_totals *seen = &scanner->seen;

	open->is_open = false;
	/* The stack may be incomplete at the end of a truncated file. No stack is better than a
	 * wrong one. */
	if (open->is_dropped || (at_end && scan_may_be_cut(scanner)))
		entry->stack.frame_count = entry->name_count = 0;
	if (entry->stack.frame_count) {
		entry->stack.frames = open->frames;
		entry->stack.alias_at = open->aliases;
	} else {
		entry->stack.alias_count = 0;
	}
	if (entry->name_count)
		report_names(open);
	seen->block_count += entry->block_count;
	seen->requested_bytes += entry->requested_bytes;
	seen->overhead_bytes += entry->overhead_bytes;
	return scanner->sink.entry ? scanner->sink.entry(scanner->sink.ctx, entry) : 0;
}

/* Drops a malformed stack. The entry is still counted, without a stack. */
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

static int add_name(struct dump_scanner *scanner, const char *text, size_t len)
{
	struct scan_entry *open = &scanner->open;

	if (open->is_dropped)
		return 0;
	if (open->entry.name_count == DUMP_FRAMES_MAX)
		return bad_stack(scanner, "a stack is too deep");
	if (len > SCAN_NAME_MAX)
		return bad_stack(scanner, "the name of a function is too long");
	buf_add(&open->name_text, text, len);
	open->names[open->entry.name_count++].len = len;
	return 0;
}

/* Returns true if the open entry's frames may be names. */
static bool may_have_names(const struct scan_entry *open)
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

	if (!may_have_names(&scanner->open) || *at == '/' || *at == '*')
		return 0;
	end = trimmed(at, end ? end : scanner->end);
	if (end - at > DUMP_LINE_MAX || memchr(at, '\0', (size_t)(end - at)) ||
		!scan_is_name(at, end))
		return 0;
	rc = scan_next(scanner, &line);
	if (rc > 0)
		rc = add_name(scanner, at, (size_t)(end - at));
	return rc ? rc : 1;
}

/* An "Alias" line starts another candidate stack for the same id. */
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
	if (!hex_parse(&at, &scanner->open.frames[stack->frame_count]) || at != end)
		return bad_stack_or_cut(scanner, "bad stack line");
	stack->frame_count++;
	return 0;
}

/* Handles a stack line that belongs to no entry. */
static int orphan(struct dump_scanner *scanner, const char *at, const char *end)
{
	uint64_t addr;
	bool is_frame = is_alias(at, end) || (hex_parse(&at, &addr) && at == end);

	/* In a dump, only stack lines start with a TAB. */
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
		return 0; /* published logs contain lines with only a TAB */
	if (!open->is_open)
		return orphan(scanner, at, end);
	if (may_have_names(open) && scan_is_name(at, end))
		return add_name(scanner, at, (size_t)(end - at));
	if (open->entry.name_count)
		return bad_stack_or_cut(scanner, "bad stack line");
	if (is_alias(at, end))
		return add_alias(scanner);
	return add_frame(scanner, at, end);
}

/* Reads complete lines "TAB HEX", the most frequent lines of a dump. Leaves all other lines to
 * stack_line(). */
static void plain_frames(struct dump_scanner *scanner)
{
	struct stack *stack = &scanner->open.entry.stack;
	const char *at = scanner->at;
	uint32_t count = stack->frame_count;

	while (*at == '\t' && count < DUMP_FRAMES_MAX) {
		const char *digit = at + 1;

		if (!hex_parse(&digit, &scanner->open.frames[count]))
			break;
		digit += *digit == '\r';
		if (*digit != '\n') /* also true at the end of the part */
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
