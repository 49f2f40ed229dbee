/* Dumps in memory, written and then read into a log in pieces of a given size. */
#ifndef TESTS_UNIT_TEST_DUMP_H
#define TESTS_UNIT_TEST_DUMP_H

#include "core/dump/dump.h"
#include "core/dump/dump_head.h"
#include "core/dump/model.h"
#include "tests/unit/scratch.h"
#include "tests/unit/test_scan_log.h"

/* Logs one line for each note, with all its values. */
static inline int log_told(void *ctx, const char *kind, const struct kv *pairs)
{
	struct scan_log *log = ctx;
	struct dump_head head = {0};

	buf_printf(&log->text, "note %s", kind);
	for (size_t i = 0; i < pairs->count; i++)
		buf_printf(&log->text, " %s=[%s]", pairs->words.data + pairs->key_at[i],
			pairs->words.data + pairs->value_at[i]);
	buf_add_text(&log->text, "\n");
	return dump_head_note(&head, kind, pairs);
}

/* Reads a dump of len bytes. The caller releases the log, even after an error. */
static inline int load(
	struct scan_log *log, const char *bytes, size_t len, size_t step, struct err *err)
{
	struct memory memory = {.bytes = bytes, .len = len, .step = step};
	struct dump_source source = {.read = read_memory, .ctx = &memory, .name = "made"};
	struct dump_sink sink = log_sink(log);

	sink.note = log_told;
	sink.skipped = NULL;
	buf_add_text(&log->text, "");
	return dump_scan(&source, &sink, err);
}

/* Reads a dump in one piece and in small pieces, and requires equal results. Returns only the
 * code. */
static inline int verdict_of(const char *bytes, size_t len)
{
	struct scan_log log;
	struct err err = {0}, other = {0};
	int rc = load(&log, bytes, len, SIZE_MAX, &err), again;

	buf_release(&log.text);
	again = load(&log, bytes, len, 1 + len / 7, &other);
	buf_release(&log.text);
	assert_int_equal(rc, again);
	assert_int_equal(err.code, -rc);
	if (rc)
		assert_memory_equal(err.place, "made", 4);
	return rc;
}

static inline int verdict(const char *dump)
{
	return verdict_of(dump, strlen(dump));
}

/* Writes a snapshot to a file and returns its text; the caller frees it. */
static inline char *written(const struct snapshot *snapshot, size_t *len)
{
	const char *base = getenv("TMPDIR");
	char path[256], *dump;
	struct out out;

	snprintf(path, sizeof(path), "%s/test_dump.%ld", base ? base : P_tmpdir, (long)getpid());
	assert_int_equal(out_open(&out, path, NULL), 0);
	dump_write(&out, snapshot);
	assert_int_equal(out_commit(&out, NULL), 0);
	dump = file_get(path, len);
	assert_int_equal(*len, out.bytes);
	unlink(path);
	return dump;
}

#endif
