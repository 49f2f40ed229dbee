/* Printed comparisons: rows are sorted, are consistent, and add up to the totals. */
#include "tests/fuzz/fuzz.h"

#include "core/dump/source.h"
#include "diff/match/match.h"
#include "diff/printed/printed.h"

struct said {
	size_t skip_count, warning_count;
};

static int skipped(void *ctx, const struct err *why)
{
	struct said *said = ctx;

	HOLDS(why->code == ERR_BAD_LINE);
	said->skip_count++;
	return 0;
}

static int warning(void *ctx, const char *text)
{
	struct said *said = ctx;

	HOLDS(text[0]);
	said->warning_count++;
	return 0;
}

static void check(const struct comparison *comparison, int rc, const struct said *said)
{
	struct delta total = comparison_delta(comparison);
	int64_t bytes = 0, blocks = 0, before = INT64_MAX;

	HOLDS(!comparison->dumps && comparison->dump_count == 2);
	for (size_t i = 0; i < comparison->row_count; i++) {
		const struct row *row = &comparison->rows[i];
		struct delta delta = row_delta(comparison, row);

		HOLDS(delta.requested_bytes || delta.block_count);
		HOLDS(delta.requested_bytes <= before);
		HOLDS(row->frames && row->id_count > 0);
		before = delta.requested_bytes;
		bytes += delta.requested_bytes;
		blocks += delta.block_count;
	}
	HOLDS(comparison->lacks_rows ||
		(bytes == total.requested_bytes && blocks == total.block_count));
	HOLDS(rc != -ERR_CUT || (comparison->is_cut && comparison->is_partial));
	HOLDS(rc || !said->skip_count || comparison->is_partial);
	HOLDS(comparison->warning_count == said->warning_count + said->skip_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const unsigned bases[] = {0, 10, 16};
	const char *path = fuzz_file(0, bytes, len);
	struct comparison comparison;
	enum file_kind kind;
	struct source *source;
	struct said said = {0};
	struct read_words words = {&said, skipped, warning, len % 2};
	struct err err = {0};
	int rc;

	printed_refused((const char *)bytes, len);
	HOLDS(!source_open(&source, path, NULL));
	rc = file_kind_find(&kind, source, &err);
	HOLDS(!rc || rc == -ERR_ENCODINGS);
	rc = comparison_read(&comparison, source, bases[len % 3], &words, &err);
	HOLDS(!rc || (int)err.code == -rc);
	if (!rc || rc == -ERR_CUT)
		check(&comparison, rc, &said);
	comparison_release(&comparison);
	source_close(source);
	return 0;
}
