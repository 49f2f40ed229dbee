/* hsnap snapshot, the default command: takes one snapshot of a process or a minidump. Other
 * commands also use snapshot_capture(). command_series.c handles series. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/os.h"
#include "core/base/text.h"
#include "core/dump/dump.h"
#include "core/io/interrupt.h"
#include "snapshot/capture/capture.h"
#include "snapshot/command/command.h"
#include "snapshot/live/process.h"

#define TRACER_PATIENCE_MS 10000

/* Target that an interrupt must release. Only one target at a time. */
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

/* Prints a warning. The warning may contain names of files or modules. */
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
 * If lost, returns the totals of lost blocks, which are reachable only from other lost blocks or
 * not at all. Otherwise returns the totals of address space that is only reserved and thus is not
 * memory.
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
		"hsnap: %s: %" PRIu64 " blocks, %" PRIu64 " bytes requested%s, %" PRIu64
		" overhead, %" PRIu64 " blocks without a stack, %zu heaps, %zu stacks from %s\n"
		"hsnap: %s: %s for %" PRId64 " ms, %u tries, %" PRIu64 " reads of %" PRIu64
		" bytes\n",
		target->name, total.block_count - reserved.block_count,
		total.requested_bytes - reserved.requested_bytes, apart, total.overhead_bytes,
		stackless, snapshot->heap_count, snapshot->stacks.count, snapshot->stack_source,
		target->name, how_read(target), stats->held_ms, stats->tries, target->reads,
		target->read_bytes);
	fprintf(stderr,
		"hsnap: %s: walked in %" PRId64 " ms%s, stacks read in %" PRId64
		" ms, joined in %" PRId64 " ms: %.1f million blocks/s; %" PRIu64
		" bytes written in %" PRId64 " ms: %.0f MB/s\n",
		target->name, stats->walk_ms, stats->walked_running ? " while it ran" : "",
		stats->stacks_ms, stats->join_ms,
		rate(stats->block_count, stats->walk_ms + stats->stacks_ms + stats->join_ms),
		written->bytes, written->ms, rate(written->bytes, written->ms));
	if (snapshot->has_reach)
		fprintf(stderr,
			"hsnap: %s: what may lead to blocks was read in %" PRId64 " ms of that\n",
			target->name, stats->reach_ms);
}

/*
 * Returns false for a minidump that lacks the heaps. The dump of such a file lists what the file
 * contains. However, it must not look like the dump of a process without blocks, because two such
 * dumps would compare as equal.
 */
static bool has_heaps(const struct target *target, const struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->heap_count; i++) {
		if (!snapshot->heaps[i].unwalked)
			return true;
	}
	return !target->is_file || snapshot_total(snapshot).block_count;
}

/* Opens the output file, using the first name that is free. */
static int open_out(const struct snapshot_request *take, const struct target *target,
	struct out *out, const char *path, struct err *err)
{
	const unsigned flags = (take->is_new ? OUT_NEW : dump_out_flags(path, target)) |
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

/* Waits while an hsnap is turning the process's tracer on or off. For example, a process that hsnap
 * run is just starting has no stacks yet, and would be the first one of its series. */
static void wait_for_tracer(const struct snapshot_request *take, const struct target *target)
{
	int64_t until_ms = os_clock_ms() + TRACER_PATIENCE_MS;

	if (target->is_file || !process_is_changing(target->pid))
		return;
	message_warning(take, target, "its tracer is being switched on or off: waiting for that");
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
	/* The dump may be incomplete. */
	if (!rc && snapshot.missing_count && !take->is_forced)
		rc = err_set(err, has_heaps(target, &snapshot) ? ERR_INCOMPLETE : ERR_NO_HEAPS,
			target->name, "written as it is");
	snapshot_release(&snapshot);
	return rc;
}

void snapshot_guard_interrupts(void)
{
	os_on_interrupt(on_interrupt);
}

/* ---------------------------------------------------------------- hsnap snapshot */

enum {
	OPT_DUMP = 1,
	OPT_OUT,
	OPT_EVERY,
	OPT_COMPARE,
};

static const struct opt options[] = {
	PROCESS_OPTIONS("take a snapshot of"),
	{OPT_DUMP, "z", "dump", "FILE", "take a snapshot of the process in this minidump"},
	{OPT_OUT, "f", "output", "OUT", "write to OUT instead of standard output"},
	{OPT_EVERY, NULL, "every", "T", "take one every T (30s, 30m, 1h30m, 2d)"},
	SERIES_OPTIONS,
	READ_OPTIONS,
	DUMP_OPTIONS,
	HELP_OPTION,
	{OPT_COMPARE, "d", NULL, NULL, NULL},
	{0},
};

static const char usage[] =
	"usage: hsnap -p PID | -pn NAME | -z FILE [-f OUT] [--stacks SOURCE] [--walk]\n"
	"             [-g] [--interior yes|no] [--sample-content N] [--by-stack] [--gzip]\n"
	"             [--overwrite] [--force] [-v]\n"
	"       hsnap -p PID | -pn NAME -f OUT [--every T] [--count N] [--keep N]\n"
	"             [--max-bytes SIZE] [--on-exit stop | wait] [--all] [--log FILE]\n"
	"             [--stacks SOURCE] [--walk] [-g] [--interior yes|no]\n"
	"             [--sample-content N] [--by-stack]\n"
	"             [--gzip] [--overwrite] [--force] [-v]\n"
	"\n"
	"Write every live heap block of a process, with its stack, as text.\n"
	"hdiff compares two of them: hdiff a.txt b.txt\n"
	"In OUT {name} and {pid} stand for the program and process, {time} for the time\n"
	"(UTC), {n} for the number of the file in its series, {{ for a brace.\n";

struct one_request {
	struct series_request series;
	const char *dump;
};

/* Makes the file's name from the process's name. Standard output has no name. The pattern was
 * checked before. */
static int name_file(const struct one_request *request, const struct target *target,
	struct buf *path, struct err *err)
{
	struct file_names names = {
		.program = target->image, .pid = target->pid, .time_ms = target->time_ms};
	const char *out = request->series.out;

	if (!out || !strcmp(out, "-"))
		return 0;
	dump_name_add(path, out, &names, request->series.take.is_packed);
	/* The dump must not replace the minidump that it is made from. */
	if (request->dump && !os_is_special(path->data) && os_same_file(request->dump, path->data))
		return err_set(err, ERR_USAGE, path->data, "input and output are the same file");
	return 0;
}

/* Prints a summary of a written file. The percentage is rounded down, so 100 % means all blocks. */
static void print_written(const char *path, const struct snapshot_result *taken)
{
	const uint64_t count = taken->block_count, with = count - taken->stackless_count;
	char name[1600]; /* a fixed buffer: the file already exists, so nothing may fail now */

	snprintf(name, sizeof(name), "%s", path);
	fprintf(stderr,
		"hsnap: %s: %" PRIu64 " block%s (%" PRIu64 " %% with stacks), %" PRIu64 " byte%s",
		text_harmless(name), count, text_plural(count), count ? with * 100 / count : 0,
		taken->requested_bytes, text_plural(taken->requested_bytes));
	if (taken->has_reach)
		fprintf(stderr, "; lost: %" PRIu64 " block%s, %" PRIu64 " byte%s",
			taken->lost_count, text_plural(taken->lost_count), taken->lost_bytes,
			text_plural(taken->lost_bytes));
	fputc('\n', stderr);
}

static int take_one(const struct one_request *request, struct err *err)
{
	struct snapshot_result taken;
	struct target target;
	struct buf path;
	uint32_t pid = 0;
	int rc = 0;

	snapshot_guard_interrupts();
	if (!request->dump)
		rc = process_choose(&request->series.process, true, &pid, err);
	if (!rc)
		rc = request->dump ? target_open_minidump(&target, request->dump, err) :
				     target_open_live(&target, pid, err);
	if (rc)
		return rc;
	buf_init(&path);
	rc = name_file(request, &target, &path, err);
	if (!rc)
		rc = snapshot_capture(&request->series.take, &target, path.data, &taken, err);
	target.ops->close(&target);
	if (!rc && path.data && !request->series.take.is_verbose)
		print_written(path.data, &taken);
	buf_release(&path);
	return rc;
}

static int check_one(const struct one_request *request, unsigned words, struct err *err)
{
	const struct series_request *series = &request->series;

	if (request->dump && series->given)
		return err_set(err, ERR_USAGE, series->given,
			"a minidump does not change: only for processes, -p and -pn");
	if (request->dump && words & PATTERN_NUMBER)
		return err_set(
			err, ERR_USAGE, series->out, "{n} is only for processes, -p and -pn");
	return dump_check_out(&series->take, series->out, "-f OUT", err);
}

static int snapshot(struct one_request *request)
{
	struct series_request *series = &request->series;
	struct err err = {0};
	unsigned words = 0;
	int rc = 0;

	if (series->process.count != 1)
		rc = err_set(&err, ERR_USAGE, series->process.count ? "-p, -pn and -z" : "hsnap",
			series->process.count ? "give one of them, once" :
						"name the process: -p PID, -pn NAME or -z FILE");
	if (!rc && series->out && strcmp(series->out, "-") != 0)
		rc = file_pattern_check(series->out, &words, &err);
	series->take.makes_folders = words != 0;
	if (!rc && !request->dump && (series->given || words))
		return series_main(series);
	if (!rc)
		rc = check_one(request, words, &err);
	if (!rc)
		rc = take_one(request, &err);
	return rc ? command_fail(&err) : 0;
}

static int set_option(void *ctx, int id, const char *value, struct err *err)
{
	struct one_request *request = ctx;
	struct series_request *series = &request->series;

	switch (id) {
	case OPT_DUMP:
		request->dump = value;
		series->process.count++;
		return 0;
	case OPT_OUT: series->out = value; return 0;
	case OPT_EVERY:
		series->given = "--every";
		return series_span_parse("--every", value, &series->every_ms, err);
	case OPT_COMPARE:
		return err_set(
			err, ERR_USAGE, "-d", "hdiff compares snapshots: hdiff -d a.txt b.txt");
	case OPT_ARGUMENT:
		return err_set(err, ERR_USAGE, value,
			"no such command; hdiff compares snapshots: hdiff a.txt b.txt");
	default: return series_option(series, id, value, err);
	}
}

int command_snapshot(int argc, char **argv)
{
	static const struct command_form form = {usage, options, .set = set_option};
	struct one_request request = {.series = SERIES_REQUEST_INIT};
	struct err err = {0};
	int rc = command_read(&form, argc, argv, &request, &err);

	if (rc)
		return rc < 0 ? command_fail(&err) : 0;
	return snapshot(&request);
}
