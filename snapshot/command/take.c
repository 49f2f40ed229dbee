#include <inttypes.h>
#include <stdio.h>

#include "core/dump.h"
#include "core/in_hand.h"
#include "core/text.h"
#include "snapshot/by_stack.h"
#include "snapshot/command/command.h"
#include "snapshot/live/process.h"

#define TRACER_PATIENCE_MS 10000

/* The target that an interrupt has to let go; one at a time. */
static struct in_hand held;

static void on_interrupt(void)
{
	struct target *target = in_hand_take(&held);

	if (target && target->ops->interrupt)
		target->ops->interrupt(target);
	in_hand_done(&held);
	out_interrupted();
}

/* Of a phase that took less than a millisecond no rate is known: 0. */
static double rate(uint64_t count, int64_t ms)
{
	return ms > 0 ? (double)count / 1e3 / (double)ms : 0;
}

static const char *how_read(const struct target *target)
{
	if (target->is_file)
		return "read";
	return target->is_cloned ? "read from a clone" : "held";
}

/* It may hold what a file or a module is called. */
static void say_warning(const struct take *take, const struct target *target, const char *warning)
{
	char text[1600];

	snprintf(text, sizeof(text), "%s: warning: %s", target->name, warning);
	text_harmless(text);
	if (take->warn)
		take->warn(take->warn_ctx, text);
	else
		fprintf(stderr, "hsnap: %s\n", text);
}

/* What is only reserved is address space, and no memory. */
static struct census reserved_total(const struct snapshot *snapshot)
{
	struct census total = {0};

	for (size_t i = 0; i < snapshot->block_count; i++) {
		if (snapshot->heaps[snapshot->blocks[i].heap].addr == HEAP_RESERVED)
			census_add(&total, &(struct census){1, snapshot->blocks[i].requested_bytes,
						   snapshot->blocks[i].overhead_bytes});
	}
	for (size_t i = 0; i < snapshot->sum_count; i++) {
		const struct block_sum *sum = &snapshot->sums[i];

		if (snapshot->heaps[sum->heap].addr == HEAP_RESERVED)
			census_add(&total, &(struct census){sum->block_count, sum->requested_bytes,
						   sum->overhead_bytes});
	}
	for (size_t i = 0; i < snapshot->heap_count; i++) {
		if (snapshot->heaps[i].addr == HEAP_RESERVED)
			census_add(&total, &snapshot->heaps[i].stackless);
	}
	return total;
}

struct written {
	int64_t ms;
	uint64_t bytes;
};

static void report(const struct snapshot *snapshot, const struct target *target,
	const struct capture_stats *stats, const struct written *written)
{
	struct census total = snapshot_total(snapshot);
	struct census reserved = reserved_total(snapshot);
	uint64_t stackless = 0;
	char apart[64] = "";

	for (size_t i = 0; i < snapshot->heap_count; i++)
		stackless += snapshot->heaps[i].stackless.block_count;
	if (reserved.block_count)
		snprintf(apart, sizeof(apart), " (and %" PRIu64 " of address space reserved)",
			reserved.requested_bytes);
	fprintf(stderr,
		"hsnap: %s: %" PRIu64 " blocks, %" PRIu64 " bytes requested%s, %" PRIu64
		" overhead, %" PRIu64 " blocks without a stack, %zu heaps, %zu stacks from %s\n"
		"hsnap: %s: %s for %" PRId64 " ms, %u tries, %" PRIu64 " reads of %" PRIu64
		" bytes; %" PRIu64 " bytes copied in %" PRId64 " ms\n",
		target->name, total.block_count - reserved.block_count,
		total.requested_bytes - reserved.requested_bytes, apart, total.overhead_bytes,
		stackless, snapshot->heap_count, snapshot->stacks.count, snapshot->stack_source,
		target->name, how_read(target), stats->held_ms, stats->tries, target->reads,
		target->read_bytes, stats->copied_bytes, stats->copy_ms);
	if (stats->why_not_copied)
		fprintf(stderr, "hsnap: %s: walked while it was held: %s\n", target->name,
			stats->why_not_copied);
	fprintf(stderr,
		"hsnap: %s: walked in %" PRId64 " ms, stacks read in %" PRId64
		" ms, joined in %" PRId64 " ms: %.1f million blocks/s; %" PRIu64
		" bytes written in %" PRId64 " ms: %.0f MB/s\n",
		target->name, stats->walk_ms, stats->stacks_ms, stats->join_ms,
		rate(stats->block_count, stats->walk_ms + stats->stacks_ms + stats->join_ms),
		written->bytes, written->ms, rate(written->bytes, written->ms));
}

/* Puts the dump into the file, and says what that took: without waiting for the disk. */
static struct written write_dump(struct out *out, const struct snapshot *snapshot)
{
	int64_t start = os_clock_ms();

	dump_write(out, snapshot);
	return (struct written){os_clock_ms() - start, out->bytes + out->len};
}

/*
 * A file that lacks the heaps lists what it has, but nobody may take that for a process without
 * blocks: two such would compare as equal.
 */
static bool has_heaps(const struct target *target, const struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->heap_count; i++) {
		if (!snapshot->heaps[i].unwalked)
			return true;
	}
	return !target->is_file || snapshot_total(snapshot).block_count;
}

/* What was written may not be all there is. */
static int check_whole(const struct take *take, const struct target *target,
	const struct snapshot *snapshot, struct err *err)
{
	if (!snapshot->missing_count || take->is_forced)
		return 0;
	return err_set(err, has_heaps(target, snapshot) ? ERR_INCOMPLETE : ERR_NO_HEAPS,
		target->name, "what there is was written");
}

static struct taken sum_up(const struct snapshot *snapshot, const struct capture_stats *stats)
{
	struct census total = snapshot_total(snapshot), reserved = reserved_total(snapshot);

	return (struct taken){total.block_count - reserved.block_count,
		total.requested_bytes - reserved.requested_bytes, stats->held_ms};
}

/* Under the first name that is free. */
static int open_out(const struct take *take, struct out *out, const char *path, struct err *err)
{
	const unsigned flags = (take->is_new ? OUT_NEW : 0) | (take->is_packed ? OUT_GZIP : 0);
	int rc = out_open_as(out, path, flags, err);

	while (rc == -ERR_EXISTS && take->names) {
		rc = take->names->next(take->names->ctx, &path, err);
		if (!rc)
			rc = out_open_as(out, path, flags, err);
	}
	return rc;
}

/* What is being started by hsnap run, say, would have no stacks yet, and be the first of its series. */
static void wait_for_tracer(const struct take *take, const struct target *target)
{
	int64_t until_ms = os_clock_ms() + TRACER_PATIENCE_MS;

	if (target->is_file || !process_is_changing(target->pid))
		return;
	say_warning(take, target, "its tracer is being switched on or off: waiting for that");
	while (process_is_changing(target->pid) && os_clock_ms() < until_ms &&
		!os_was_interrupted())
		os_sleep_ms(10);
}

int take(const struct take *take, struct target *target, const char *path, struct taken *taken,
	struct err *err)
{
	struct capture_stats stats = {0};
	struct written written = {0};
	struct snapshot snapshot;
	struct out out;
	int rc;

	wait_for_tracer(take, target);
	rc = open_out(take, &out, path, err);
	if (rc)
		return rc;
	snapshot_init(&snapshot);
	in_hand_set(&held, target);
	rc = capture(target, &take->options, &snapshot, &stats, err);
	in_hand_clear(&held);
	if (!rc && take->by_stack && by_stack(&snapshot))
		rc = err_set(err, ERR_NOMEM, target->name, NULL);
	if (!rc && !has_heaps(target, &snapshot))
		snapshot_lacks(&snapshot, "no heap could be walked");
	if (rc) {
		out_abort(&out);
	} else {
		written = write_dump(&out, &snapshot);
		rc = out_commit_as(&out, take->names, err);
	}
	for (size_t i = 0; !rc && i < snapshot.warning_count; i++)
		say_warning(take, target, snapshot.warnings[i]);
	if (!rc && take->is_verbose)
		report(&snapshot, target, &stats, &written);
	if (!rc && taken)
		*taken = sum_up(&snapshot, &stats);
	if (!rc)
		rc = check_whole(take, target, &snapshot, err);
	snapshot_release(&snapshot);
	return rc;
}

void take_guard_interrupts(void)
{
	os_on_interrupt(on_interrupt);
}

int command_fail(const struct err *err)
{
	err_print(stderr, "hsnap", err);
	return 2;
}
