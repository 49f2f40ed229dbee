#include "core/dump/dump_head.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/parse.h"
#include "core/dump/dump.h"
#include "core/dump/source.h"

struct head_reading {
	struct dump_head head;
	bool has_dump, has_process; /* these notes were read */
};

/* No head has a module, a heap or an entry. */
static int on_module(void *ctx, uint64_t base, uint64_t size_bytes, const char *path, size_t len)
{
	(void)ctx;
	(void)base;
	(void)size_bytes;
	(void)path;
	(void)len;
	return DUMP_HEAD_ENOUGH;
}

static int on_heap(void *ctx, uint64_t addr)
{
	(void)ctx;
	(void)addr;
	return DUMP_HEAD_ENOUGH;
}

static int on_entry(void *ctx, const struct dump_entry *entry)
{
	(void)ctx;
	(void)entry;
	return DUMP_HEAD_ENOUGH;
}

static int take_date(const struct kv *pairs, const char *key, int64_t *ms)
{
	const char *text = kv_get(pairs, key);

	return text ? date_parse(text, ms) : 0;
}

static int on_note(void *ctx, const char *kind, const struct kv *pairs)
{
	struct head_reading *reading = ctx;
	struct dump_head *head = &reading->head;
	int rc = 0;

	if (!strcmp(kind, "dump")) {
		rc = take_date(pairs, "time", &head->time_ms);
		reading->has_dump = head->is_ours = true;
	} else if (!strcmp(kind, "process")) {
		rc = kv_get_u32(pairs, "id", 10, &head->pid);
		if (!rc)
			rc = take_date(pairs, "start", &head->start_ms);
		reading->has_process = true;
	}
	if (!rc && reading->has_dump && reading->has_process)
		rc = DUMP_HEAD_ENOUGH;
	return rc;
}

/* "Logtime 2010-05-04 10:11" */
static void take_logtime(const char *banner, int64_t *ms)
{
	static const char label[] = "Logtime ", form[] = "2010-05-04 10:11";
	const char *at = strstr(banner, label);
	char text[sizeof("2010-05-04T10:11:00Z")];

	if (!at || strlen(at) < strlen(label) + strlen(form))
		return;
	at += strlen(label);
	snprintf(text, sizeof(text), "%.10sT%.5s:00Z", at, at + 11);
	if (at[10] == ' ')
		date_parse(text, ms);
}

static void take_pid(const char *banner, uint32_t *pid)
{
	static const char label[] = " PID=";
	const char *at = strstr(banner, label);
	uint64_t number;

	if (at && !kv_number(at + strlen(label), 10, &number) && number <= UINT32_MAX)
		*pid = (uint32_t)number;
}

/* "// UMDH: version VERSION: Logtime DATE TIME - Machine=NAME - PID=NUMBER" */
static int on_line(void *ctx, const char *text, size_t len)
{
	static const char start[] = "// UMDH: version ";
	struct head_reading *reading = ctx;
	char banner[400];

	if (len < strlen(start) || len >= sizeof(banner) || memcmp(text, start, strlen(start)) != 0)
		return 0;
	memcpy(banner, text, len);
	banner[len] = '\0';
	take_logtime(banner, &reading->head.time_ms);
	take_pid(banner, &reading->head.pid);
	return 0;
}

/* Up to DUMP_HEAD_BYTES, zeros behind them. 0; 1: the text goes on; or an error, which comes behind what
 * was read. */
static int fill(struct source *source, char *text, size_t *len, struct err *err)
{
	int64_t got = 0;

	*len = 0;
	while (*len < DUMP_HEAD_BYTES &&
		(got = source_read(source, text + *len, DUMP_HEAD_BYTES - *len, err)) > 0)
		*len += (size_t)got;
	return got < 0 ? (int)got : got > 0;
}

/* Where the last line begins: one that is not whole is not looked at. */
static size_t whole_lines(const char *text, size_t len)
{
	while (len && text[len - 1] != '\n')
		len--;
	return len;
}

/* Scans what fill() got. */
static int scan_text(struct source *source, const struct dump_sink *sink, char *text, size_t len,
	bool has_more, struct err *err)
{
	struct dump_scanner *scanner = dump_scanner_new(source_name(source), sink, err);
	int rc;

	if (!scanner)
		return -ERR_NOMEM;
	if (has_more)
		len = whole_lines(text, len);
	memset(text + len, 0, DUMP_PAD_BYTES);
	rc = dump_scanner_text(scanner, text, len, !has_more);
	if (!rc && !has_more)
		rc = dump_scanner_end(scanner);
	dump_scanner_free(scanner);
	return rc ? rc : has_more;
}

int dump_head_scan(struct source *source, const struct dump_sink *sink, struct err *err)
{
	char *text = malloc(DUMP_HEAD_BYTES + DUMP_PAD_BYTES);
	struct err unread = {0};
	size_t len;
	int rc, more;

	if (!text)
		return err_set(err, ERR_NOMEM, source_name(source), NULL);
	more = fill(source, text, &len, &unread);
	rc = scan_text(source, sink, text, len, more, err);
	if (rc == 1 && more < 0) {
		rc = more;
		if (err)
			*err = unread;
	}
	free(text);
	return rc == DUMP_HEAD_ENOUGH ? 0 : rc;
}

static int scan(struct head_reading *reading, struct source *source, struct err *err)
{
	const struct dump_sink sink = {.ctx = reading,
		.line = on_line,
		.module = on_module,
		.heap = on_heap,
		.entry = on_entry,
		.note = on_note};
	int rc = dump_head_scan(source, &sink, err);

	if (rc == 1 && !reading->has_dump)
		return err_set(err, ERR_NOT_DUMP, source_name(source), "it does not begin as one");
	return rc == 1 ? 0 : rc;
}

int dump_head_read(const char *path, struct dump_head *head, struct err *err)
{
	struct head_reading reading = {0};
	struct source *source;
	int rc;

	if (os_is_special(path)) /* it could keep us waiting */
		return err_set(err, ERR_READ, path, "it is not a regular file");
	rc = source_open(&source, path, err);
	if (rc)
		return rc;
	rc = scan(&reading, source, err);
	if (!rc)
		*head = reading.head;
	source_close(source);
	return rc;
}
