/* A snapshot of a hostile process can be written, and reading it back gives an equal snapshot. */
#ifndef TESTS_FUZZ_FUZZ_CAPTURE_H
#define TESTS_FUZZ_FUZZ_CAPTURE_H

#include "core/dump/dump.h"
#include "core/dump/model.h"
#include "core/dump/source.h"
#include "core/io/out.h"
#include "diff/read/dump_sums.h"
#include "snapshot/capture/capture.h"
#include "snapshot/target/target.h"
#include "tests/fuzz/fuzz.h"

static inline const char *capture_written(const struct snapshot *snapshot)
{
	const char *path = fuzz_file(1, "", 0);
	struct out out;
	int rc;

	HOLDS(!out_open(&out, NULL, NULL));
	out.file.handle = strtol(strrchr(path, '/') + 1, NULL, 10);
	dump_write(&out, snapshot);
	rc = out_commit(&out, NULL);
	HOLDS(!rc);
	return path;
}

static inline void capture_read_back(const struct snapshot *snapshot)
{
	const char *path = capture_written(snapshot);
	struct block_totals total = snapshot_total(snapshot);
	struct dump_sums sums;
	struct source *source;
	struct err err = {0};

	HOLDS(!source_open(&source, path, NULL));
	sums_init(&sums);
	HOLDS(!sums_read(&sums, path, source, &err));
	HOLDS(!sums.quality.skip_count && !sums.quality.is_cut);
	HOLDS(sums.total.block_count + sums.reserved.block_count == total.block_count);
	HOLDS(sums.total.requested_bytes + sums.reserved.requested_bytes == total.requested_bytes);
	HOLDS(sums.total.overhead_bytes + sums.reserved.overhead_bytes == total.overhead_bytes);
	HOLDS(sums.quality.is_incomplete == (snapshot->missing_count > 0));
	sums_release(&sums);
	source_close(source);
}

/* Takes a snapshot as hsnap does. how: one bit per option. */
static inline void capture_check(struct target *target, unsigned how)
{
	struct capture_options options = {.finds_lost = how & 1,
		.only_starts = how & 2,
		.content_count = how & 4 ? 3 : 0,
		.stacks = how & 8 ? STACKS_UST : STACKS_AUTO,
		.walks = how & 16};
	struct capture_stats stats = {0};
	struct snapshot snapshot;
	struct err err = {0};
	int rc;

	snapshot_init(&snapshot);
	rc = capture_target(target, &options, &snapshot, &stats, &err);
	HOLDS(!rc || (int)err.code == -rc);
	if (!rc && how & 32)
		model_sum_by_stack(&snapshot);
	if (!rc)
		capture_read_back(&snapshot);
	snapshot_release(&snapshot);
}

#endif
