/* Takes one snapshot of an open target into one file, and reports the result. An interrupt releases
 * a held target and removes the unfinished file. Only dumps written by hsnap may be replaced. */
#include "snapshot/capture/snapshot_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/os.h"
#include "core/base/text.h"
#include "core/dump/dump.h"
#include "core/dump/dump_head.h"
#include "core/io/interrupt.h"
#include "snapshot/live/process.h"

#define TRACER_PATIENCE_MS 10000

/* Target that an interrupt must release. There is only one target at a time. */
static struct interrupt_cleanup held;

static void on_interrupt(void)
{
	struct target *target = interrupt_cleanup_get(&held);

	if (target && target->ops->interrupt)
		target->ops->interrupt(target);
	interrupt_cleanup_done(&held);
	out_interrupted();
}

/* Returns millions per second, or 0 if the phase took less than a millisecond. */
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

/* Prints a warning, which may contain names of files or modules. */
static void message_warning(
	const struct snapshot_request *take, const struct target *target, const char *warning)
{
	char text[1600];

	snprintf(text, sizeof(text), "%s: warning: %s", target->name, warning);
	text_harmless(text);
	if (take->warn)
		take->warn(take->warn_ctx, text);
	else
		fprintf(stderr, "hsnap: %s\n", text);
}

/*
 * If `lost` is set, returns the totals of lost blocks: blocks that no pointer leads to, except
 * pointers in other lost blocks. Otherwise returns the totals of address space that is only
 * reserved, and so is not memory.
 */
static struct block_totals part_total(const struct snapshot *snapshot, bool lost)
{
	struct block_totals total = {0};
	bool has_any = lost && snapshot->has_reach;

	for (size_t i = 0; i < snapshot->heap_count; i++) {
		const struct heap *heap = &snapshot->heaps[i];
		bool is_reserved = !lost && heap->addr == HEAP_RESERVED;

		if (lost || is_reserved)
			block_totals_add(&total, lost ? &heap->stackless_lost : &heap->stackless);
		has_any = has_any || is_reserved;
	}
	for (size_t i = 0; has_any && i < snapshot->block_count; i++) {
		const struct block *block = &snapshot->blocks[i];

		if (lost ? snapshot_reach(snapshot, i) >= BLOCK_LOST :
			   snapshot->heaps[block->heap].addr == HEAP_RESERVED)
			block_totals_add(&total, &(struct block_totals){1, block->requested_bytes,
							 block->overhead_bytes});
	}
	for (size_t i = 0; has_any && i < snapshot->sum_count; i++) {
		const struct block_sum *sum = &snapshot->sums[i];

		if (lost ? sum->reach >= BLOCK_LOST :
			   snapshot->heaps[sum->heap].addr == HEAP_RESERVED)
			block_totals_add(
				&total, &(struct block_totals){sum->block_count,
						sum->requested_bytes, sum->overhead_bytes});
	}
	return total;
}

static uint64_t stackless_count(const struct snapshot *snapshot)
{
	uint64_t count = 0;

	for (size_t i = 0; i < snapshot->heap_count; i++) {
		if (snapshot->heaps[i].addr != HEAP_RESERVED)
			count += snapshot->heaps[i].stackless.block_count;
	}
	return count;
}

struct written {
	int64_t ms;
	uint64_t bytes;
};

static void report(const struct snapshot *snapshot, const struct target *target,
	const struct capture_stats *stats, const struct written *written)
{
	struct block_totals total = snapshot_total(snapshot);
	struct block_totals reserved = part_total(snapshot, false);
	uint64_t stackless = 0;
	char apart[64] = "";

	for (size_t i = 0; i < snapshot->heap_count; i++)
		stackless += snapshot->heaps[i].stackless.block_count;
	if (reserved.block_count)
		snprintf(apart, sizeof(apart), " (and %" PRIu64 " bytes of address space reserved)",
			reserved.requested_bytes);
	fprintf(stderr,
		"hsnap: %s: %" PRIu64 " block%s, %" PRIu64 " bytes requested%s, %" PRIu64
		" overhead, %" PRIu64 " without a stack, %zu heap%s, %zu stack%s from %s\n"
		"hsnap: %s: %s for %" PRId64 " ms, %u tr%s, %" PRIu64 " reads of %" PRIu64
		" bytes\n",
		target->name, total.block_count - reserved.block_count,
		text_plural(total.block_count - reserved.block_count),
		total.requested_bytes - reserved.requested_bytes, apart, total.overhead_bytes,
		stackless, snapshot->heap_count, text_plural(snapshot->heap_count),
		snapshot->stacks.count, text_plural(snapshot->stacks.count), snapshot->stack_source,
		target->name, how_read(target), stats->held_ms, stats->tries,
		stats->tries == 1 ? "y" : "ies", target->reads, target->read_bytes);
	fprintf(stderr,
		"hsnap: %s: walked in %" PRId64 " ms%s, stacks read in %" PRId64
		" ms, joined in %" PRId64 " ms: %.1f million blocks/s; memory accounted for in "
		"%" PRId64 " ms; %" PRIu64 " bytes written in %" PRId64 " ms: %.0f MB/s\n",
		target->name, stats->walk_ms, stats->walked_running ? " while it ran" : "",
		stats->stacks_ms, stats->join_ms,
		rate(stats->block_count, stats->walk_ms + stats->stacks_ms + stats->join_ms),
		stats->balance_ms, written->bytes, written->ms, rate(written->bytes, written->ms));
	if (snapshot->has_reach)
		fprintf(stderr,
			"hsnap: %s: memory with pointers to blocks was read in %" PRId64
			" ms of that\n",
			target->name, stats->reach_ms);
}

/* Returns false for a minidump that lacks the heaps. Such a minidump must not produce a dump that
 * looks like the dump of a process without blocks. Two such dumps would compare as equal. */
static bool has_heaps(const struct target *target, const struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->heap_count; i++) {
		if (!snapshot->heaps[i].unwalked)
			return true;
	}
	return !target->is_file || snapshot_total(snapshot).block_count;
}

unsigned snapshot_out_flags(const char *path, const struct target *target)
{
	struct dump_head head;
	bool is_other;

	if (!path || !strcmp(path, "-") || !os_exists(path) || dump_head_read(path, &head, NULL) ||
		!head.is_ours)
		return 0;
	is_other = !target || head.pid != target->pid || head.start_ms != target->start_ms;
	return is_other || (target->time_ms && head.time_ms == target->time_ms) ? OUT_OVERWRITE : 0;
}

/* Opens the output file, using the first name that is free. */
static int open_out(const struct snapshot_request *take, const struct target *target,
	struct out *out, const char *path, struct err *err)
{
	const unsigned flags = (take->is_new ? OUT_NEW : snapshot_out_flags(path, target)) |
			       (take->is_packed ? OUT_GZIP : 0);
	int rc;

	if (take->makes_folders)
		out_make_folders(path);
	rc = out_open_as(out, path, flags, err);
	while (rc == -ERR_EXISTS && take->names) {
		rc = take->names->next(take->names->ctx, &path, err);
		if (!rc)
			rc = out_open_as(out, path, flags, err);
	}
	return rc;
}

/* Waits while another hsnap is turning the process's tracer on or off. For example, a process that
 * hsnap run is just starting has no stacks yet. A snapshot without stacks would be the first one of
 * its series. */
static void wait_for_tracer(const struct snapshot_request *take, const struct target *target)
{
	int64_t until_ms = os_clock_ms() + TRACER_PATIENCE_MS;

	if (target->is_file || !process_is_changing(target->pid))
		return;
	message_warning(take, target, "its tracer is being switched on or off: waiting");
	while (process_is_changing(target->pid) && os_clock_ms() < until_ms &&
		!os_was_interrupted())
		os_sleep_ms(10);
}

int snapshot_capture(const struct snapshot_request *take, struct target *target, const char *path,
	struct snapshot_result *taken, struct err *err)
{
	struct capture_stats stats = {0};
	struct written written = {0};
	struct snapshot snapshot;
	struct out out;
	int rc;

	wait_for_tracer(take, target);
	rc = open_out(take, target, &out, path, err);
	if (rc)
		return rc;
	snapshot_init(&snapshot);
	interrupt_cleanup_set(&held, target);
	rc = capture_target(target, &take->options, &snapshot, &stats, err);
	interrupt_cleanup_clear(&held);
	if (!rc && take->by_stack)
		model_sum_by_stack(&snapshot);
	if (!rc && !has_heaps(target, &snapshot))
		snapshot_lacks(&snapshot, "no heap could be walked");
	if (rc) {
		out_abort(&out);
	} else {
		int64_t start_ms = os_clock_ms();

		dump_write(&out, &snapshot); /* does not wait for the disk */
		written = (struct written){os_clock_ms() - start_ms, out.bytes + out.len};
		rc = out_commit_as(&out, take->names, err);
	}
	for (size_t i = 0; !rc && i < snapshot.warning_count; i++)
		message_warning(take, target, snapshot.warnings[i]);
	if (!rc && take->is_verbose)
		report(&snapshot, target, &stats, &written);
	if (!rc && taken) {
		struct block_totals total = snapshot_total(&snapshot);
		struct block_totals reserved = part_total(&snapshot, false);
		struct block_totals lost = part_total(&snapshot, true);

		*taken = (struct snapshot_result){
			.block_count = total.block_count - reserved.block_count,
			.requested_bytes = total.requested_bytes - reserved.requested_bytes,
			.stackless_count = stackless_count(&snapshot),
			.has_reach = snapshot.has_reach,
			.lost_count = lost.block_count,
			.lost_bytes = lost.requested_bytes,
			.held_ms = stats.held_ms};
	}
	/* the dump may be incomplete */
	if (!rc && snapshot.missing_count && !take->is_forced)
		rc = err_set(err, has_heaps(target, &snapshot) ? ERR_INCOMPLETE : ERR_NO_HEAPS,
			target->name, "the dump was written anyway");
	snapshot_release(&snapshot);
	return rc;
}

void snapshot_guard_interrupts(void)
{
	os_on_interrupt(on_interrupt);
}
