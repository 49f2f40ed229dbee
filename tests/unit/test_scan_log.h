/* A log of all calls to a sink of the scanner. */
#ifndef TESTS_UNIT_TEST_SCAN_LOG_H
#define TESTS_UNIT_TEST_SCAN_LOG_H

#include "tests/unit/t.h"

#include <inttypes.h>

#include "core/base/memory.h"
#include "core/dump/dump.h"
#include "core/dump/source.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

struct scan_log {
	struct buf text; /* one line per call */
	struct block_totals sums;
	int entries, skips;
	struct err first_skip;
};

static inline int log_module(
	void *ctx, uint64_t base, uint64_t size_bytes, const char *path, size_t len)
{
	struct scan_log *log = ctx;

	buf_printf(&log->text, "module %" PRIX64 " %" PRIX64 " %.*s\n", base, size_bytes, (int)len,
		path);
	return 0;
}

static inline int log_heap(void *ctx, uint64_t addr)
{
	struct scan_log *log = ctx;

	buf_printf(&log->text, "heap %" PRIX64 "\n", addr);
	return 0;
}

/* Reads every bit of the entry, so that the sanitizers detect invalid data. */
static inline int log_entry(void *ctx, const struct dump_entry *entry)
{
	const struct stack *stack = &entry->stack;
	struct scan_log *log = ctx;
	buf_printf(&log->text, "entry %" PRIu64 " %" PRIX64 " %" PRIX64 " %" PRIX64 " ",
		entry->block_count, entry->requested_bytes, entry->overhead_bytes, entry->addr);

	buf_add(&log->text, stack->id, entry->id_len);
	assert_true(!stack->frames == !stack->frame_count);
	assert_true(stack->frames || !stack->alias_count);
	assert_true(!entry->names == !entry->name_count);
	for (uint32_t i = 0; i < stack->frame_count; i++)
		buf_printf(&log->text, " %" PRIX64, stack_frame(stack, i));
	for (uint32_t i = 0; i < stack->alias_count; i++)
		buf_printf(&log->text, " @%" PRIu32, stack->alias_at[i]);
	for (uint32_t i = 0; i < entry->name_count; i++) {
		buf_add_text(&log->text, " ");
		buf_add(&log->text, entry->names[i].text, entry->names[i].len);
	}
	buf_add_text(&log->text, "\n");
	log->sums.block_count += entry->block_count;
	log->sums.requested_bytes += entry->requested_bytes;
	log->sums.overhead_bytes += entry->overhead_bytes;
	log->entries++;
	return 0;
}

static inline int log_note(void *ctx, const char *kind, const struct kv *pairs)
{
	struct scan_log *log = ctx;
	uint64_t number = 0;

	buf_printf(&log->text, "note %s %zu\n", kind, pairs->count);
	return !strcmp(kind, "process") ? kv_get_number(pairs, "id", 10, &number) : 0;
}

static inline int log_skipped(void *ctx, const struct err *why)
{
	struct scan_log *log = ctx;

	assert_int_equal(why->code, ERR_BAD_LINE);
	if (!log->skips++)
		log->first_skip = *why;
	buf_printf(&log->text, "skipped %s %s\n", why->place, why->detail);
	return 0;
}

static inline struct dump_sink log_sink(struct scan_log *log)
{
	*log = (struct scan_log){0};
	return (struct dump_sink){.ctx = log,
		.module = log_module,
		.heap = log_heap,
		.entry = log_entry,
		.note = log_note,
		.skipped = log_skipped};
}

/* A dump in memory, read in pieces of at most step bytes. */
struct memory {
	const char *bytes;
	size_t len, at, step;
	bool fails_at_end;
};

static inline int64_t read_memory(void *ctx, void *bytes, size_t len, struct err *err)
{
	struct memory *memory = ctx;
	size_t part = memory->len - memory->at;

	part = part < len ? part : len;
	part = part < memory->step ? part : memory->step;
	memcpy(bytes, memory->bytes + memory->at, part);
	memory->at += part;
	if (!part && memory->fails_at_end)
		return err_set(err, ERR_READ, "made", "the disk says so");
	return (int64_t)part;
}

/* Returns the end of a part of at least `want` bytes. The part ends before a line without a TAB, or
 * at the end of the text. */
static inline size_t part_end(const char *text, size_t len, size_t at, size_t want)
{
	for (size_t end = at + want; end < len; end++) {
		if (text[end - 1] == '\n' && text[end] != '\t')
			return end;
	}
	return len;
}

/* Feeds one part to the scanner. After the part come zeros, and then unreadable memory. */
static inline int feed(struct dump_scanner *scanner, const char *text, size_t len, bool is_last)
{
	char *part = calloc(1, len + 64);
	int rc;

	assert_non_null(part);
	memcpy(part, text, len);
	rc = dump_scanner_text(scanner, part, len, is_last);
	free(part);
	return rc;
}

static inline int scan_in_parts(
	const char *text, size_t len, size_t want, const struct dump_sink *sink, struct err *err)
{
	struct dump_scanner *scanner = dump_scanner_new("made", sink, err);
	int rc = 0;

	assert_non_null(scanner);
	for (size_t at = 0, end = 0; !rc && at < len; at = end) {
		end = part_end(text, len, at, want);
		rc = feed(scanner, text + at, end - at, end == len);
	}
	if (!rc)
		rc = dump_scanner_end(scanner);
	dump_scanner_free(scanner);
	return rc;
}

static inline int dump_scan_file(const char *path, const struct dump_sink *sink, struct err *err)
{
	struct dump_source source;
	struct source *file;
	int rc = source_open(&file, path, err);

	if (rc)
		return rc;
	source = source_stream(file);
	rc = dump_scan(&source, sink, err);
	source_close(file);
	return rc;
}

/* Building blocks of the tests' texts, and the logs they give. */
#define ONE "1 bytes + 2 at 3 by BackTrace4\n"
#define ONE_LOG "entry 1 1 2 3 4"
#define BAD "skipped made:"
#define OURS "// hsnap: dump format=1\n"

/* Scans a text into a log, which the caller releases. */
static inline int scan(struct scan_log *log, const char *text, struct err *err)
{
	struct dump_sink sink = log_sink(log);

	return scan_in_parts(text, strlen(text), strlen(text), &sink, err);
}

/* Scans a text; checks the log and the result. */
static inline struct err expect_scan(const char *text, int rc, const char *wanted)
{
	struct scan_log log;
	struct err err = {0};
	int is = scan(&log, text, &err);

	if (is != rc)
		fail_msg("%d %s %s of: %s", is, err.place, err.detail, text);
	assert_string_equal(log.text.data ? log.text.data : "", wanted);
	buf_release(&log.text);
	return err;
}

static inline void expect_log(const char *text, const char *wanted)
{
	expect_scan(text, 0, wanted);
}

/* Returns a text of `fill` repeated `count` times between two other texts; the caller frees it. */
static inline char *many(const char *before, const char *fill, size_t count, const char *after)
{
	struct buf text;

	buf_init(&text);
	buf_add_text(&text, before);
	while (count--)
		buf_add_text(&text, fill);
	buf_add_text(&text, after);
	return text.data;
}

#endif
