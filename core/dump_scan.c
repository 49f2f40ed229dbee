#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/dump.h"
#include "core/hex.h"
#include "core/lines.h"
#include "core/os.h"

#define UNKNOWN_LINES_MAX 1000 /* so many lines without a sign of a dump: it is none */

struct scan {
	struct lines lines;
	const struct dump_sink *sink;
	struct err *err;
	bool in_modules, heap_open, is_ours, ended, is_dump;
	struct census seen;
	struct kv pairs;
	uint64_t frames[DUMP_FRAMES_MAX];
	uint32_t aliases[DUMP_FRAMES_MAX];
};

static int bad(struct scan *scan, enum err_code code, const char *detail)
{
	char place[600];

	snprintf(place, sizeof(place), "%.500s:%" PRIu64, scan->lines.source->name,
		scan->lines.number);
	return err_set(scan->err, code, place, detail ? "%s" : NULL, detail);
}

static bool starts(const struct line *line, const char *text)
{
	size_t len = strlen(text);

	return line->len >= len && !memcmp(line->text, text, len);
}

/* By its first two bytes: PowerShell's redirection writes such files. */
static bool is_utf16(const struct line *line)
{
	return starts(line, "\xff\xfe") || starts(line, "\xfe\xff");
}

/* 1 and the next line, 0 at the end, or an error. */
static int next_line(struct scan *scan, struct line *line)
{
	enum err_code trouble = scan->is_dump ? ERR_BAD_LINE : ERR_NOT_DUMP;
	int rc = lines_next(&scan->lines, line);

	if (rc <= 0)
		return rc;
	if (line->is_long) {
		if (!starts(line, "//"))
			return bad(scan, trouble, "a line is too long");
		line->len = 0;
		return 1;
	}
	if (memchr(line->text, '\0', line->len))
		return bad(scan, trouble,
			scan->lines.number == 1 && is_utf16(line) ?
				"it is UTF-16 text: convert it to UTF-8" :
				"there are bytes in it that are not text");
	rc = scan->sink->line ? scan->sink->line(scan->sink->ctx, line->text, line->len) : 0;
	return rc ? rc : 1;
}

static inline bool take(const char **at, const char *end, const char *text, size_t len)
{
	if ((size_t)(end - *at) < len || memcmp(*at, text, len) != 0)
		return false;
	*at += len;
	return true;
}

#define TAKE(at, end, text) take(at, end, text, sizeof(text) - 1)

/* "//    BASE SIZE PATH", between "Loaded modules" and "Process modules enumerated". */
static int module_line(struct scan *scan, const struct line *line)
{
	const char *at = line->text + 2, *end = line->text + line->len;
	uint64_t base, size_bytes;

	while (at < end && *at == ' ')
		at++;
	if (!hex_take(&at, &base) || !TAKE(&at, end, " "))
		return 0; /* the heading, or something of a later version */
	while (at < end && *at == ' ')
		at++;
	if (!hex_take(&at, &size_bytes) || !TAKE(&at, end, " ") || at == end)
		return 0;
	if (base + size_bytes < base)
		return bad(scan, ERR_BAD_LINE, "the module lies outside the address space");
	return scan->sink->module ? scan->sink->module(scan->sink->ctx, base, size_bytes, at,
					    (size_t)(end - at)) :
				    0;
}

static int check_format(struct scan *scan)
{
	uint64_t format = 0;

	if (kv_get_number(&scan->pairs, "format", 10, &format) || !format)
		return -ERR_BAD_LINE;
	scan->is_ours = true;
	if (format > DUMP_FORMAT)
		return bad(scan, ERR_VERSION, NULL);
	return 0;
}

/* What blocks without a stack add to the counts of the end mark. */
static int count_stackless(struct scan *scan)
{
	uint64_t blocks = 0, requested = 0, overhead = 0;
	int rc = kv_get_number(&scan->pairs, "stackless-blocks", 10, &blocks);

	if (!rc)
		rc = kv_get_number(&scan->pairs, "stackless-requested", 10, &requested);
	if (!rc)
		rc = kv_get_number(&scan->pairs, "stackless-overhead", 10, &overhead);
	scan->seen.block_count += blocks;
	scan->seen.requested_bytes += requested;
	scan->seen.overhead_bytes += overhead;
	return rc;
}

static int check_end(struct scan *scan)
{
	struct census said = {0};
	int rc;

	if (!kv_get(&scan->pairs, "blocks") || !kv_get(&scan->pairs, "requested") ||
		!kv_get(&scan->pairs, "overhead"))
		return -ERR_BAD_LINE;
	rc = kv_get_number(&scan->pairs, "blocks", 10, &said.block_count);
	if (!rc)
		rc = kv_get_number(&scan->pairs, "requested", 10, &said.requested_bytes);
	if (!rc)
		rc = kv_get_number(&scan->pairs, "overhead", 10, &said.overhead_bytes);
	if (rc)
		return rc;
	if (said.block_count != scan->seen.block_count ||
		said.requested_bytes != scan->seen.requested_bytes ||
		said.overhead_bytes != scan->seen.overhead_bytes)
		return bad(scan, ERR_BAD_LINE, "the sums do not match the entries above");
	scan->ended = true;
	return 0;
}

static int note_line(struct scan *scan, const struct line *line)
{
	const char *at = line->text + strlen("// hsnap: "), *end = line->text + line->len;
	const char *space = memchr(at, ' ', (size_t)(end - at));
	size_t len = (size_t)((space ? space : end) - at);
	char kind[32];
	int rc;

	if (!len || len >= sizeof(kind))
		return bad(scan, scan->lines.no_newline ? ERR_CUT : ERR_BAD_LINE,
			"bad '// hsnap:' line");
	memcpy(kind, at, len);
	kind[len] = '\0';
	/* Half a number is a number too; only the end mark shows by its sums that it is whole. */
	if (scan->lines.no_newline && strcmp(kind, "end") != 0)
		return bad(scan, ERR_CUT, "the last line is not whole");
	rc = kv_parse(&scan->pairs, at + len, (size_t)(end - at) - len);
	if (!rc && !strcmp(kind, "dump"))
		rc = check_format(scan);
	else if (!rc && !strcmp(kind, "heap"))
		rc = count_stackless(scan);
	else if (!rc && !strcmp(kind, "end"))
		rc = check_end(scan);
	if (!rc && scan->sink->note)
		rc = scan->sink->note(scan->sink->ctx, kind, &scan->pairs);
	if (rc == -ERR_BAD_LINE && scan->lines.no_newline)
		return bad(scan, ERR_CUT, "the last line is not whole");
	if (rc == -ERR_BAD_LINE && (!scan->err || scan->err->code != ERR_BAD_LINE))
		return bad(scan, ERR_BAD_LINE, "bad '// hsnap:' line");
	return rc;
}

static int comment_line(struct scan *scan, const struct line *line)
{
	if (starts(line, "// hsnap: ")) {
		scan->is_dump = true;
		return note_line(scan, line);
	}
	if (starts(line, "// Loaded modules")) {
		scan->is_dump = scan->in_modules = true;
	} else if (starts(line, "// Process modules enumerated")) {
		scan->in_modules = false;
	} else if (scan->in_modules) {
		return module_line(scan, line);
	}
	return 0;
}

/* The address in a heap's heading, which may have any number of dashes before it. */
static int heap_line(struct scan *scan, const struct line *line)
{
	const char *at = line->text, *end = line->text + line->len;
	uint64_t addr;

	while (at < end && (*at == '*' || *at == '-' || *at == ' '))
		at++;
	if (TAKE(&at, end, "End of data for heap @ ")) {
		scan->heap_open = false;
		return 0;
	}
	if (TAKE(&at, end, "Start of data for heap @ "))
		scan->heap_open = true;
	else if (!TAKE(&at, end, "Heap "))
		return 0;
	if (!hex_take(&at, &addr))
		return scan->lines.no_newline ? 0 : bad(scan, ERR_BAD_LINE, "bad heap heading");
	scan->is_dump = true;
	return scan->sink->heap ? scan->sink->heap(scan->sink->ctx, addr) : 0;
}

/* "REQ bytes + OVH at ADDR by BackTraceID"; 1: it is one, 0: something else, or an error. */
static int entry_parse(struct scan *scan, const struct line *line, struct dump_entry *entry)
{
	const char *at = line->text, *end = line->text + line->len;
	bool fits;

	while (end > at && end[-1] == ' ')
		end--;
	fits = hex_take(&at, &entry->requested_bytes);
	while (!fits && hex_digits[(unsigned char)*at])
		at++;
	if (TAKE(&at, end, " bytes in "))
		return bad(scan, ERR_BAD_LINE, "sums of several blocks are not read");
	if (!TAKE(&at, end, " bytes + "))
		return 0;
	if (!fits || !hex_take(&at, &entry->overhead_bytes) || !TAKE(&at, end, " at ") ||
		!hex_take(&at, &entry->addr) || !TAKE(&at, end, " by BackTrace") || at == end)
		return bad(scan, scan->lines.no_newline ? ERR_CUT : ERR_BAD_LINE, "bad entry");
	entry->block_count = 1;
	entry->stack.id = at;
	entry->id_len = (size_t)(end - at);
	return 1;
}

/* Whether something must follow before the dump is whole. */
static bool may_be_cut(const struct scan *scan)
{
	return scan->is_ours ? !scan->ended : scan->heap_open || scan->in_modules;
}

/* One line of a stack: 0, or an error. */
static int frame_parse(struct scan *scan, const struct line *line, struct stack *stack)
{
	const char *at = line->text + 1, *end = line->text + line->len;

	while (end > at && end[-1] == ' ')
		end--;
	if (at == end)
		return 0; /* seen in a published log: a line with nothing but the TAB */
	if (end - at == 5 && !memcmp(at, "Alias", 5)) {
		if (stack->alias_count == DUMP_FRAMES_MAX)
			return bad(scan, ERR_BAD_LINE, "too many stacks under one id");
		scan->aliases[stack->alias_count++] = stack->frame_count;
		return 0;
	}
	if (stack->frame_count == DUMP_FRAMES_MAX)
		return bad(scan, ERR_BAD_LINE, "a stack is too deep");
	if (!hex_take(&at, &scan->frames[stack->frame_count]) || at != end)
		return bad(scan, scan->lines.no_newline ? ERR_CUT : ERR_BAD_LINE, "bad stack line");
	stack->frame_count++;
	return 0;
}

/* Whole plain lines of a stack ("TAB HEX") that are at hand: most of what a dump consists of. What
 * is not plain is left to stack_line(). */
static void plain_frames(struct scan *scan, struct stack *stack)
{
	struct lines *lines = &scan->lines;
	const char *at = lines->at;

	while (*at == '\t' && stack->frame_count < DUMP_FRAMES_MAX) {
		const char *digit = at + 1;

		if (!hex_take(&digit, &scan->frames[stack->frame_count]))
			break;
		digit += *digit == '\r';
		if (*digit != '\n') /* also at the end of what was read */
			break;
		at = digit + 1;
		stack->frame_count++;
		lines->number++;
	}
	lines->at += at - lines->at;
}

/* Any line of a stack, with what next_line() does for it. */
static int stack_line(struct scan *scan, struct stack *stack)
{
	struct line line;
	int rc = next_line(scan, &line);

	return rc > 0 ? frame_parse(scan, &line, stack) : rc;
}

/* The lines behind an entry that start with a TAB. */
static int stack_lines(struct scan *scan, struct stack *stack)
{
	struct lines *lines = &scan->lines;
	int rc = 0;

	/* DUMP_LINE_MAX bytes were at hand behind the entry, and zeros are behind the last. */
	while (!rc && *lines->at == '\t') {
		if (!scan->sink->line)
			plain_frames(scan, stack);
		if (*lines->at == '\t')
			rc = stack_line(scan, stack);
		if (!rc && lines->at == lines->end)
			rc = lines_refill(lines);
	}
	/* At the end of a cut file the rest of the stack may be missing: rather none than a wrong
	 * one. */
	if (rc || !stack->frame_count || (lines->at == lines->end && may_be_cut(scan))) {
		stack->frame_count = stack->alias_count = 0;
		return rc;
	}
	stack->frames = scan->frames;
	stack->alias_at = scan->aliases;
	return 0;
}

static int entry_line(struct scan *scan, const struct line *line)
{
	struct dump_entry entry = {.stack.same_id = STACK_NONE};
	char id[64];
	int rc = entry_parse(scan, line, &entry);

	if (rc <= 0)
		return rc;
	if (scan->ended)
		return bad(scan, ERR_BAD_LINE, "there is an entry behind the end mark");
	if (scan->lines.no_newline && may_be_cut(scan))
		return bad(scan, ERR_CUT, "the last line is not whole");
	if (entry.id_len >= sizeof(id))
		return bad(scan, ERR_BAD_LINE, "the BackTrace id is too long");
	memcpy(id, entry.stack.id, entry.id_len); /* the window moves on */
	entry.stack.id = id;
	scan->is_dump = true;
	rc = stack_lines(scan, &entry.stack);
	if (rc)
		return rc;
	scan->seen.block_count += entry.block_count;
	scan->seen.requested_bytes += entry.requested_bytes;
	scan->seen.overhead_bytes += entry.overhead_bytes;
	return scan->sink->entry ? scan->sink->entry(scan->sink->ctx, &entry) : 0;
}

/* "+ 10 ( 20 - 10) 2 allocs TAB BackTraceID": what hdiff and umdh print when they compare. */
static bool is_comparison(const struct line *line)
{
	const char *at = line->text, *end = line->text + line->len;

	if (*at != '+' && *at != '-')
		return false;
	for (; at < end; at++) {
		const char *from = at;

		if (TAKE(&from, end, "BackTrace"))
			return true;
	}
	return false;
}

static int one_line(struct scan *scan, struct line *line)
{
	if (scan->lines.number == 1 && starts(line, "\xef\xbb\xbf")) { /* a byte order mark */
		line->text += 3;
		line->len -= 3;
	}
	if (!line->len)
		return 0;
	if (starts(line, "//"))
		return comment_line(scan, line);
	if (starts(line, "*-"))
		return heap_line(scan, line);
	if (hex_digits[(unsigned char)line->text[0]])
		return entry_line(scan, line);
	if (!scan->is_dump && is_comparison(line))
		return bad(scan, ERR_NOT_DUMP, "it is a comparison");
	return 0; /* chatter of the debug library and the like */
}

static int scan_all(struct scan *scan)
{
	struct line line;
	int rc;

	while ((rc = next_line(scan, &line)) > 0) {
		rc = one_line(scan, &line);
		if (rc)
			return rc;
		if (!scan->is_dump && scan->lines.number > UNKNOWN_LINES_MAX)
			break;
	}
	if (rc < 0)
		return rc;
	if (!scan->lines.number)
		return err_set(scan->err, ERR_EMPTY, scan->lines.source->name, NULL);
	if (!scan->is_dump)
		return err_set(scan->err, ERR_NOT_DUMP, scan->lines.source->name, NULL);
	if (may_be_cut(scan))
		return bad(scan, ERR_CUT,
			scan->is_ours	? "the end mark is missing" :
			scan->heap_open ? "the end of a heap is missing" :
					  "the end of the module list is missing");
	return 0;
}

int dump_scan(const struct dump_source *source, const struct dump_sink *sink, struct err *err)
{
	struct err local = {0};
	struct scan *scan = calloc(1, sizeof(*scan));
	int rc;

	err = err ? err : &local;
	*err = (struct err){0};
	if (!scan || lines_init(&scan->lines, source, err)) {
		rc = err_set(err, ERR_NOMEM, source->name, NULL);
		goto out;
	}
	scan->sink = sink;
	scan->err = err;
	kv_init(&scan->pairs);
	rc = scan_all(scan);
	if (rc == -ERR_NOMEM)
		err_set(err, ERR_NOMEM, source->name, NULL);
	kv_release(&scan->pairs);
	lines_release(&scan->lines);
out:
	free(scan);
	return rc;
}

struct file_source {
	struct os_file file;
	const char *path;
};

static int64_t read_file(void *ctx, void *bytes, size_t len, struct err *err)
{
	struct file_source *source = ctx;

	return os_read(&source->file, bytes, len, source->path, err);
}

int dump_scan_file(const char *path, const struct dump_sink *sink, struct err *err)
{
	struct file_source file = {.path = strcmp(path, "-") ? path : "standard input"};
	struct dump_source source = {.read = read_file, .ctx = &file, .name = file.path};
	int rc = os_open(&file.file, path, err);

	if (rc)
		return rc;
	rc = dump_scan(&source, sink, err);
	os_close(&file.file);
	return rc;
}
