/* Reads the head of a dump. A sink stops the scanner at the first record that cannot belong to a
 * head. */
#include "core/dump/dump_head.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/parse.h"
#include "core/dump/dump.h"
#include "core/dump/source.h"

#define CLOCK_MS_MAX                                                                               \
	((uint64_t)1 << 52) /* longer than any machine runs; adding a date cannot overflow */

struct head_reading {
	struct dump_head head;
	bool has_process; /* a "process" note was read */
};

/* The head of a dump written by hsnap contains no modules, so the first module ends the head. */
static int on_module(void *ctx, uint64_t base, uint64_t size_bytes, const char *path, size_t len)
{
	(void)ctx;
	(void)base;
	(void)size_bytes;
	(void)path;
	(void)len;
	return DUMP_HEAD_ENOUGH;
}

/* The first heap or entry ends every head. */
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

int dump_head_note(struct dump_head *head, const char *kind, const struct kv *kv)
{
	struct dump_head told = *head;
	uint64_t clock_ms = 0;
	int rc = 0;

	if (!strcmp(kind, "dump")) {
		told.is_ours = true;
		rc = kv_get_date(kv, "time", &told.time_ms);
	} else if (!strcmp(kind, "process")) {
		told.pid = told.parent_pid = 0;
		told.start_ms = 0;
		told.image = kv_get(kv, "image");
		told.host = kv_get(kv, "host");
		if (kv_get_u32(kv, "id", 10, &told.pid) ||
			kv_get_u32(kv, "parent", 10, &told.parent_pid) ||
			kv_get_date(kv, "start", &told.start_ms) ||
			kv_get_number(kv, "clock", 10, &clock_ms) || clock_ms > CLOCK_MS_MAX)
			rc = -ERR_BAD_LINE;
		told.clock_ms = (int64_t)clock_ms;
	} else if (!strcmp(kind, "umdh") && !head->banner_pid && !head->banner_time_ms) {
		if (kv_get_u32(kv, "id", 10, &told.banner_pid) ||
			kv_get_date(kv, "time", &told.banner_time_ms))
			return 0; /* a line of another program, not a banner */
		told.banner_host = kv_get(kv, "host");
	}
	if (!rc)
		*head = told;
	return rc;
}

static int on_note(void *ctx, const char *kind, const struct kv *pairs)
{
	struct head_reading *reading = ctx;
	int rc = dump_head_note(&reading->head, kind, pairs);

	reading->has_process |= !strcmp(kind, "process");
	return rc || !reading->head.is_ours || !reading->has_process ? rc : DUMP_HEAD_ENOUGH;
}

/* Reads up to DUMP_HEAD_BYTES. Returns 0 at the end, 1 if the text continues, or an error. Even
 * after an error, `text` contains the bytes that were read before. */
static int fill(struct source *source, char *text, size_t *len, struct err *err)
{
	int64_t got = 0;

	*len = 0;
	while (*len < DUMP_HEAD_BYTES &&
		(got = source_read(source, text + *len, DUMP_HEAD_BYTES - *len, err)) > 0)
		*len += (size_t)got;
	return got < 0 ? (int)got : got > 0;
}

int dump_head_scan(struct source *source, const struct dump_sink *sink, struct err *err)
{
	struct dump_sink head = *sink;
	struct dump_scanner *scanner;
	char *text = xmalloc(DUMP_HEAD_BYTES + DUMP_PAD_BYTES);
	struct err unread = {0};
	size_t len;
	int more = fill(source, text, &len, &unread), rc;

	head.heap = on_heap;
	head.entry = on_entry;
	scanner = dump_scanner_new(source_name(source), &head, err);
	while (more && len && text[len - 1] != '\n')
		len--; /* ignore an incomplete line */
	memset(text + len, 0, DUMP_PAD_BYTES);
	rc = dump_scanner_text(scanner, text, len, !more);
	if (!rc && !more)
		rc = dump_scanner_end(scanner);
	if (!rc && more < 0 && err)
		*err = unread;
	if (!rc)
		rc = more;
	dump_scanner_free(scanner);
	free(text);
	return rc == DUMP_HEAD_ENOUGH ? 0 : rc;
}

int dump_head_read(const char *path, struct dump_head *head, struct err *err)
{
	struct head_reading reading = {0};
	const struct dump_sink sink = {.ctx = &reading, .module = on_module, .note = on_note};
	struct source *source;
	int rc;

	if (os_is_special(path)) /* opening it could block */
		return err_set(err, ERR_NOT_FILE, path, NULL);
	rc = source_open(&source, path, err);
	if (rc)
		return rc;
	rc = dump_head_scan(source, &sink, err);
	if (rc == 1)
		rc = reading.head.is_ours ? 0 :
					    err_set(err, ERR_NOT_DUMP, source_name(source),
						    "does not begin like one");
	reading.head.image = reading.head.host = reading.head.banner_host = NULL;
	if (!rc)
		*head = reading.head;
	source_close(source);
	return rc;
}

bool dump_head_is_of(const char *path, const struct dump_head *of)
{
	struct dump_head head;

	return of->time_ms && !dump_head_read(path, &head, NULL) && head.is_ours &&
	       head.pid == of->pid && head.start_ms == of->start_ms && head.time_ms == of->time_ms;
}
