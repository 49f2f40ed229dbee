/* Parses the comment lines of a dump: UMDH's banner, the modules, and hsnap's notes. */
#include <stdio.h>
#include <string.h>

#include "core/base/text.h"
#include "core/dump/scanner.h"

static void pass_blanks(const char **at, const char *end)
{
	while (*at < end && (**at == ' ' || **at == '\t'))
		++*at;
}

/* Reads a number and the required blanks after it. */
static bool parse_column(const char **at, const char *end, uint64_t *value)
{
	const char *behind;

	if (!hex_parse(at, value))
		return false;
	behind = *at;
	pass_blanks(at, end);
	return *at > behind;
}

#define BASE_DIGITS_MIN 5 /* minimum number of digits of a module's base */

/* Returns true if a line begins like a module line, not like a heading or a word. */
static bool is_like_module(const char *at, const char *end)
{
	size_t digits = 0, decimal = 0;

	for (; at < end && hex_digits[(unsigned char)*at]; at++, digits++)
		decimal += *at <= '9';
	return digits >= BASE_DIGITS_MIN && decimal && at < end && (*at == ' ' || *at == '\t');
}

/* Parses "//    BASE SIZE PATH", a line between "Loaded modules" and "Process modules
 * enumerated". */
static int module_line(struct dump_scanner *scanner, const struct scan_line *line)
{
	const struct dump_sink *sink = &scanner->sink;
	const char *at = line->text + 2, *end = line->text + line->len, *begin;
	uint64_t base, size_bytes;
	int rc;

	pass_blanks(&at, end);
	begin = at;
	if (!parse_column(&at, end, &base) || !parse_column(&at, end, &size_bytes) || at == end) {
		if (is_like_module(begin, end))
			scan_unread_line(scanner, line);
		return 0; /* a heading, or a line written by a later version */
	}
	if (base + size_bytes < base)
		return scan_skip(scanner, "the module lies outside the address space");
	rc = sink->module ? sink->module(sink->ctx, base, size_bytes, at, (size_t)(end - at)) : 0;
	return rc == -ERR_BAD_LINE ?
		       scan_skip(scanner,
			       "a module's path is too long, or there are too many modules") :
		       rc;
}

static bool has_snapshot(const struct dump_scanner *scanner)
{
	return scanner->seen.block_count || scanner->ended;
}

static int check_format(struct dump_scanner *scanner)
{
	uint64_t format = 0;

	if (has_snapshot(scanner))
		return scan_fail(scanner, ERR_SECOND, "the first line of a dump");
	scanner->is_ours = true;
	if (kv_get_number(&scanner->pairs, "format", 10, &format) || !format)
		return -ERR_BAD_LINE;
	return format > DUMP_FORMAT ? scan_fail(scanner, ERR_VERSION, NULL) : 0;
}

/* Reads three numbers by name; a missing number is 0. */
static int get_totals(
	const struct kv *pairs, const char *const names[3], struct block_totals *totals)
{
	int rc;

	*totals = (struct block_totals){0};
	rc = kv_get_number(pairs, names[0], 10, &totals->block_count);
	if (!rc)
		rc = kv_get_number(pairs, names[1], 10, &totals->requested_bytes);
	return rc ? rc : kv_get_number(pairs, names[2], 10, &totals->overhead_bytes);
}

/* Updates the totals that the end mark must match. Adds blocks without a stack, and overhead that
 * is missing from the lines of sums. */
static int count_stackless(struct dump_scanner *scanner)
{
	static const char *const names[] = {
		"stackless-blocks", "stackless-requested", "stackless-overhead"};
	uint64_t rest = 0;
	struct block_totals more;
	int rc = get_totals(&scanner->pairs, names, &more);

	if (!rc)
		rc = kv_get_number(&scanner->pairs, "rest-overhead", 10, &rest);
	if (rc)
		return rc;
	more.overhead_bytes += rest;
	block_totals_add(&scanner->seen, &more);
	return 0;
}

static int check_end(struct dump_scanner *scanner, const char **detail)
{
	static const char *const names[] = {"blocks", "requested", "overhead"};
	const struct block_totals *seen = &scanner->seen;
	struct block_totals said;

	for (int i = 0; i < 3; i++) {
		if (!kv_get(&scanner->pairs, names[i]))
			return -ERR_BAD_LINE;
	}
	if (get_totals(&scanner->pairs, names, &said))
		return -ERR_BAD_LINE;
	/* A truncated number is still a number, so only matching totals prove that the line is
	 * complete. */
	if (said.block_count == seen->block_count &&
		said.requested_bytes == seen->requested_bytes &&
		said.overhead_bytes == seen->overhead_bytes) {
		scanner->ended = true;
		return 0;
	}
	scanner->ended = !scanner->no_newline;
	*detail = "the sums do not match the entries above";
	return -ERR_BAD_LINE;
}

static int handle_note(struct dump_scanner *scanner, const char *kind, const char **detail)
{
	const struct dump_sink *sink = &scanner->sink;
	int rc = 0;

	if (!strcmp(kind, "dump"))
		rc = check_format(scanner);
	else if (!strcmp(kind, "end"))
		rc = check_end(scanner, detail);
	if (!rc && sink->note)
		rc = sink->note(sink->ctx, kind, &scanner->pairs);
	/* must come last, because a line that contains an error must not change the totals */
	if (!rc && !strcmp(kind, "heap"))
		rc = count_stackless(scanner);
	return rc;
}

static int note_line(struct dump_scanner *scanner, const struct scan_line *line)
{
	const char *at = line->text + strlen("// hsnap: "), *end = line->text + line->len;
	const char *space = memchr(at, ' ', (size_t)(end - at));
	const char *detail = "bad '// hsnap:' line";
	size_t len = (size_t)((space ? space : end) - at);
	char kind[32];
	int rc;

	if (!len || len >= sizeof(kind))
		return scan_skip_or_cut(scanner, detail);
	memcpy(kind, at, len);
	kind[len] = '\0';
	if (scanner->no_newline && strcmp(kind, "end") != 0)
		return scan_fail(scanner, ERR_CUT, "the last line is incomplete");
	rc = kv_parse(&scanner->pairs, at + len, (size_t)(end - at) - len);
	if (!rc)
		rc = handle_note(scanner, kind, &detail);
	if (rc == -ERR_BAD_LINE && scanner->no_newline)
		return scan_fail(scanner, ERR_CUT, "the last line is incomplete");
	return rc == -ERR_BAD_LINE ? scan_skip(scanner, detail) : rc;
}

/* Reads up to `max` digits and advances `*at`. Returns the number of digits read. */
static size_t parse_digits(const char **at, const char *end, size_t max)
{
	const char *from = *at;

	while (*at < end && (size_t)(*at - from) < max && **at >= '0' && **at <= '9')
		++*at;
	return (size_t)(*at - from);
}

#define HOST_MAX 63

static bool is_host_char(char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '-' ||
	       c == '_';
}

/* How much of UMDH's banner was parsed. */
enum banner_part {
	BANNER_OTHER, /* not a banner, or not in a known form */
	BANNER_TIME, /* only the time, in any form; the rest is missing */
	BANNER_NAMELESS, /* without a valid machine */
	BANNER_WHOLE,
};

/* Returns true for "2011-08-08 20:39". */
static bool is_minute(const char *at, const char *end)
{
	static const char form[] = "0000-00-00 00:00";

	if ((size_t)(end - at) < strlen(form))
		return false;
	for (size_t i = 0; form[i]; i++) {
		if (form[i] == '0' ? at[i] < '0' || at[i] > '9' : at[i] != form[i])
			return false;
	}
	return true;
}

#define BANNER_PAIRS_BYTES 200

/* Parses "// UMDH: version 6.1.7650.0: Logtime 2011-08-08 20:39 - Machine=NAME - PID=4711". Writes
 * the pid, the machine's name and the time (local time, treated as UTC) to `pairs`. */
static enum banner_part banner_parse(const char *at, const char *end, char *pairs)
{
	const char *time, *pid, *host = NULL;
	const char logtime[] = ": Logtime ", machine[] = " - Machine=", process[] = " - PID=";
	size_t digits, host_len = 0;

	while (at < end && !scan_starts(&(struct scan_line){at, (size_t)(end - at)}, logtime))
		at++;
	time = at + strlen(logtime);
	if (at == end)
		return BANNER_OTHER;
	if (!is_minute(time, end))
		return BANNER_TIME;
	for (; at < end; at++) {
		const struct scan_line rest = {at, (size_t)(end - at)};

		if (scan_starts(&rest, process))
			break;
		if (scan_starts(&rest, machine))
			host = at + strlen(machine);
		host_len += host && at >= host && is_host_char(*at);
	}
	if (at == end)
		return BANNER_TIME;
	if (!host || host_len != (size_t)(at - host) || host_len > HOST_MAX)
		host_len = 0;
	pid = at += strlen(process);
	digits = parse_digits(&at, end, 10);
	while (at < end && *at == ' ')
		at++;
	if (!digits || at != end)
		return BANNER_TIME;
	snprintf(pairs, BANNER_PAIRS_BYTES, " time=%.10sT%.5s:00Z id=%.*s%s%.*s", time, time + 11,
		(int)digits, pid, host_len ? " host=" : "", (int)host_len, host_len ? host : "");
	return host_len ? BANNER_WHOLE : BANNER_NAMELESS;
}

/* Passes the banner on as a note of kind "umdh", which is empty if only the time is there. Any other
 * form is an ordinary comment. */
static int pass_banner(struct dump_scanner *scanner)
{
	struct buf *banner = &scanner->banner;
	char pairs[BANNER_PAIRS_BYTES] = "";
	bool is_banner = banner_parse(banner->data, banner->data + banner->len, pairs);

	buf_clear(banner);
	if (!is_banner || !scanner->sink.note || kv_parse(&scanner->pairs, pairs, strlen(pairs)))
		return 0;
	return scanner->sink.note(scanner->sink.ctx, "umdh", &scanner->pairs);
}

#define BANNER_MAX 250 /* bytes; the names of machines are short */

/* Appends a line to the banner if the result is complete. Mail wraps lines at a blank, a console at
 * its edge. */
static bool append_to_banner(struct buf *banner, const char *at, size_t len)
{
	size_t before = banner->len;
	char pairs[BANNER_PAIRS_BYTES];
	enum banner_part part[2];

	for (int with_blank = 0; with_blank < 2; with_blank++) {
		banner->len = before;
		buf_add(banner, " ", (size_t)with_blank);
		buf_add(banner, at, len);
		part[with_blank] = banner_parse(banner->data, banner->data + banner->len, pairs);
	}
	if (part[1] >= part[0] && part[1] > BANNER_TIME)
		return true;
	banner->len = before;
	if (part[0] <= BANNER_TIME)
		return false;
	buf_add(banner, at, len);
	return true;
}

/* After a complete banner, only the rest of the pid may follow. */
int scan_banner(struct dump_scanner *scanner, struct scan_line *line)
{
	struct buf *banner = &scanner->banner;
	char pairs[BANNER_PAIRS_BYTES];
	bool is_comment = !line || scan_starts(line, "//"), is_complete;
	const char *at, *end;

	is_complete = banner_parse(banner->data, banner->data + banner->len, pairs) > BANNER_TIME;
	if (!line || (is_comment && is_complete))
		return pass_banner(scanner);
	at = line->text + (is_comment ? 2 : 0);
	end = line->text + line->len;
	pass_blanks(&at, end);
	while (end > at && end[-1] == ' ')
		end--;
	if (banner->len + (size_t)(end - at) < BANNER_MAX) {
		if (at < end && append_to_banner(banner, at, (size_t)(end - at))) {
			line->len = 0;
			return 0;
		}
		if (!is_comment && !is_complete) { /* perhaps wrapped twice */
			buf_printf(banner, " %.*s", (int)(end - at), at);
			return 0;
		}
	}
	return pass_banner(scanner);
}

int scan_comment_line(struct dump_scanner *scanner, const struct scan_line *line)
{
	int rc;

	if (scan_starts(line, "// hsnap: ")) {
		rc = scan_is_dump(scanner);
		scanner->note_line = scanner->line_number;
		return rc ? rc : note_line(scanner, line);
	}
	if (scan_starts(line, "// UMDH: version ")) {
		/* A banner begins a log, so it must not follow another log. A log without blocks
		 * counts too. */
		if (has_snapshot(scanner) || (scanner->has_list && !scanner->is_ours))
			return scan_fail(scanner, ERR_SECOND, "UMDH's banner");
		buf_add(&scanner->banner, line->text, line->len);
		while (scanner->banner.len && scanner->banner.data[scanner->banner.len - 1] == ' ')
			scanner->banner.len--;
		return 0;
	}
	if (scan_starts(line, "// Loaded modules")) {
		if (has_snapshot(scanner))
			return scan_fail(scanner, ERR_SECOND, "another list of modules");
		scanner->in_modules = scanner->has_list = true;
		return scan_is_dump(scanner);
	}
	if (scan_starts(line, "// Process modules enumerated"))
		scanner->in_modules = false;
	else if (scanner->in_modules)
		return module_line(scanner, line);
	return 0;
}
