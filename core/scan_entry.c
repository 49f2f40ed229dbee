/* Entries of a dump: the line that counts, and handing on what came with it. */
#include "core/hex.h"
#include "core/scanner.h"

/* A number that may have "0x" before it. */
static bool number_take(const char **at, const char *end, uint64_t *value)
{
	(void)SCAN_TAKE(at, end, "0x");
	return hex_take(at, value);
}

/* " + OVH at ADDR by BackTrace": one block. */
static bool block_parse(const char **at, const char *end, struct dump_entry *entry)
{
	entry->block_count = 1;
	return SCAN_TAKE(at, end, " bytes + ") && hex_take(at, &entry->overhead_bytes) &&
	       SCAN_TAKE(at, end, " at ") && hex_take(at, &entry->addr) &&
	       SCAN_TAKE(at, end, " by BackTrace");
}

/* " bytes in 0xCOUNT allocations (@ 0xSIZE + 0xOVH) by: BackTrace": so many blocks. */
static bool sum_parse(const char **at, const char *end, struct dump_entry *entry)
{
	uint64_t size_bytes, overhead = 0;

	if (!SCAN_TAKE(at, end, " bytes in ") || !number_take(at, end, &entry->block_count) ||
		!SCAN_TAKE(at, end, " allocations (@ ") || !number_take(at, end, &size_bytes))
		return false;
	if (SCAN_TAKE(at, end, " + ") && !number_take(at, end, &overhead))
		return false;
	if (!SCAN_TAKE(at, end, ") by: BackTrace") ||
		(entry->block_count && overhead > UINT64_MAX / entry->block_count))
		return false;
	entry->overhead_bytes = entry->block_count * overhead;
	return true;
}

/* Whether a line that does not begin as an entry was one before it was damaged. UMDH's heading has
 * the words, too. */
static bool was_entry(const struct scan_line *line)
{
	const char *end = line->text + line->len;

	if (scan_starts(line, "REQUESTED bytes + OVERHEAD"))
		return false;
	for (const char *at = line->text; at < end; at++) {
		const char *from;

		at = memchr(at, ' ', (size_t)(end - at));
		if (!at)
			return false;
		from = at;
		if (SCAN_TAKE(&from, end, " by BackTrace") ||
			SCAN_TAKE(&from, end, " by: BackTrace"))
			return true;
	}
	return false;
}

/* Whether a line is the start of an entry and no more. */
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

enum kind { NO_ENTRY, BAD_ENTRY, ONE_BLOCK, SUM };

static enum kind entry_parse(const struct scan_line *line, struct dump_entry *entry)
{
	const char *at = line->text, *end = line->text + line->len;
	bool fits, is_sum;

	while (end > at && end[-1] == ' ')
		end--;
	fits = at < end && hex_take(&at, &entry->requested_bytes);
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

int scan_entry_line(struct dump_scanner *scanner, const struct scan_line *line)
{
	struct dump_entry entry = {.stack.same_id = STACK_NONE};
	struct scan_entry *open = &scanner->open;
	enum kind kind = entry_parse(line, &entry);

	if (kind == NO_ENTRY && !(scanner->is_dump && is_start(line)))
		return 0;
	if (kind <= BAD_ENTRY)
		return scan_skip_or_cut(scanner, "bad entry");
	if (scanner->ended)
		return scan_fail(scanner, ERR_BAD_LINE, "there is an entry behind the end mark");
	if (scanner->no_newline && scan_may_be_cut(scanner))
		return scan_fail(scanner, ERR_CUT, "the last line is not whole");
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

static void give_names(struct scan_entry *open)
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
	struct census *seen = &scanner->seen;

	open->is_open = false;
	/* At the end of a cut file the rest of a stack may be missing: rather none than a wrong
	 * one. */
	if (open->is_dropped || (at_end && scan_may_be_cut(scanner)))
		entry->stack.frame_count = entry->name_count = 0;
	if (entry->stack.frame_count) {
		entry->stack.frames = open->frames;
		entry->stack.alias_at = open->aliases;
	} else {
		entry->stack.alias_count = 0;
	}
	if (entry->name_count)
		give_names(open);
	seen->block_count += entry->block_count;
	seen->requested_bytes += entry->requested_bytes;
	seen->overhead_bytes += entry->overhead_bytes;
	return scanner->sink.entry ? scanner->sink.entry(scanner->sink.ctx, entry) : 0;
}
