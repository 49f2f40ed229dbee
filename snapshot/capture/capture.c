#include "snapshot/capture/capture.h"

#include <string.h>

#include "core/base/os.h"
#include "snapshot/capture/capture_parts.h"
#include "snapshot/stacks/tracer_read.h"
#include "snapshot/target/nt_process.h"

#define TRIES_MAX 100 /* while a thread stands inside a heap */
#define BUSY_MS_MAX 300 /* so long the target is held for nothing */
#define WALKS_MAX 3 /* while something in the heaps makes no sense */
#define RETRY_MS 1

int capture_stacks_parse(const char *name, enum capture_stacks *stacks, struct err *err)
{
	static const char *const names[] = {
		[STACKS_AUTO] = "auto",
		[STACKS_UST] = "ust",
		[STACKS_OS] = "os",
		[STACKS_TRACER] = "tracer",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strcmp(name, names[i])) {
			*stacks = (enum capture_stacks)i;
			return 0;
		}
	}
	return err_set(err, ERR_USAGE, name, "stacks come from auto, ust, os or tracer");
}

/*
 * Finds out whether there is a tracer. That there is none is an error only if stacks have to come
 * from it; of a file it may be that what would tell is missing.
 */
static int find_tracer(struct target *target, const struct snapshot *snapshot,
	enum capture_stacks wanted, struct raw_capture *captured, struct err *err)
{
	struct err why = {0};
	int rc = tracer_find_on(
		target, snapshot->modules, snapshot->module_count, &captured->area_addr, &why);

	captured->has_tracer = !rc;
	captured->is_detached = rc == -ERR_NOT_TRACED && why.detail[0];
	if (rc == -ERR_NOT_TRACED && !target->ops->is_alive(target))
		return err_set(err, ERR_GONE, target->name, NULL);
	if (rc && rc != -ERR_NOMEM && wanted == STACKS_AUTO) {
		if (rc == -ERR_NOT_TRACED)
			return 0;
		if (target->is_file) {
			captured->tracer_err = why;
			return 0;
		}
	}
	if (rc && err)
		*err = why;
	return rc;
}

/* Of a file, what can be known is: heaps that are not in it are no error. */
static int walk_heaps(struct memory *memory, struct raw_capture *captured, struct err *err)
{
	struct err why = {0};
	int rc = heaps_walk(memory, &captured->walk, &why);

	if (rc && rc != -ERR_NOMEM && memory->target->is_file) {
		captured->heaps_err = why;
		return 0;
	}
	if (rc && err)
		*err = why;
	return rc;
}

/*
 * What became of reading the tracer's tables. That they cannot be read is no error of a file, nor that
 * the tracer has gone since it was found when stacks come from wherever they are: only then are those of
 * ust wanted too.
 */
static int settle_tracer(struct target *target, struct raw_capture *captured, int rc,
	const struct err *why, struct err *err)
{
	bool is_gone = rc == -ERR_NOT_TRACED && captured->wants_ust;

	if (rc && rc != -ERR_NOMEM && (is_gone || target->is_file)) {
		captured->has_tracer = false;
		captured->is_detached = is_gone;
		if (!is_gone)
			captured->tracer_err = *why;
		tracer_copy_release(&captured->tracer);
		return 0;
	}
	if (rc)
		*err = *why;
	return rc;
}

static int read_tracer(struct target *target, struct raw_capture *captured, struct err *err)
{
	struct err why = {0};
	int rc = captured->has_tracer ?
			 tracer_copy_read(&captured->tracer, target, captured->area_addr, &why) :
			 0;

	return settle_tracer(target, captured, rc, &why, err);
}

static int parse_tracer(struct target *target, struct raw_capture *captured, struct err *err)
{
	struct err why = {0};
	int rc = captured->has_tracer ?
			 tracer_copy_parse(&captured->tracer, target, captured->area_addr, &why) :
			 0;

	return settle_tracer(target, captured, rc, &why, err);
}

static int take_stacks(struct memory *memory, const struct snapshot *snapshot,
	struct raw_capture *captured, struct err *err)
{
	struct target *target = memory->target;
	uint32_t flags;
	int rc = read_tracer(target, captured, err);

	if (rc || !captured->wants_ust)
		return rc;
	flags = nt_global_flag(target);
	captured->is_flagged = flags & NT_FLAG_UST;
	if (ust_take(captured->ust, memory, &captured->walk, snapshot->modules,
		    snapshot->module_count, flags))
		return err_set(err, ERR_NOMEM, target->name, NULL);
	return 0;
}

/* Everything that needs the target to stand still: finds the blocks, and reads what tells their stacks. */
static int take_held(struct memory *memory, const struct snapshot *snapshot,
	struct raw_capture *captured, struct capture_stats *stats, struct err *err)
{
	int64_t start = os_clock_ms(), walked;
	int rc;

	walk_clear(&captured->walk);
	memory_clear(memory);
	rc = walk_heaps(memory, captured, err);
	walked = os_clock_ms();
	if (!rc)
		rc = take_stacks(memory, snapshot, captured, err);
	stats->walk_ms = walked - start;
	stats->stacks_ms = os_clock_ms() - walked;
	return rc;
}

static bool is_busy(struct target *target, const struct raw_capture *captured)
{
	return heaps_are_busy(target) ||
	       (captured->has_tracer && tracer_is_busy(target, captured->area_addr));
}

/*
 * A thread that was stopped inside a heap or the tracer leaves it half changed: the target is let go
 * and held again. That is found out before the walk, which costs more. A lock that stays held (its thread
 * hangs or was ended) is no reason to give up: then the heap is walked as it is. So is a file, which
 * stays as it is.
 */
static int take(struct memory *memory, const struct snapshot *snapshot,
	struct raw_capture *captured, struct capture_stats *stats, struct err *err)
{
	struct target *target = memory->target;
	unsigned walks = 0;

	/* What this finds while the process runs is forgotten, but the memory that it takes is ready then:
	 * page faults would be a quarter of the time for which the process is held. */
	if (!target->is_file && !target->is_cloned)
		walk_heaps(memory, captured, NULL);
	for (;;) {
		int64_t start = os_clock_ms();
		int rc = target->ops->suspend(target, err);
		bool is_last = target->is_file || stats->tries + 1 >= TRIES_MAX ||
			       stats->held_ms > BUSY_MS_MAX;
		bool again = !rc && !is_last && is_busy(target, captured);

		stats->tries++;
		if (!rc && !again) {
			rc = take_held(memory, snapshot, captured, stats, err);
			again = !rc && !walk_is_sound(&captured->walk) && !target->is_file &&
				++walks < WALKS_MAX;
		}
		target->ops->resume(target);
		start = target->held_from_ms ? target->held_from_ms : start;
		stats->held_ms += os_clock_ms() - start;
		if (!again)
			return rc;
		os_sleep_ms(RETRY_MS);
	}
}

/* Stacks that were asked for by name have to be there. */
static int check_wanted(const struct target *target, enum capture_stacks wanted,
	const struct raw_capture *captured, struct err *err)
{
	if (wanted == STACKS_TRACER && captured->tracer_err.code) {
		*err = captured->tracer_err;
		return -(int)err->code;
	}
	if (wanted != STACKS_UST || ust_record_count(captured->ust))
		return 0;
	if (!captured->is_flagged)
		return err_set(err, ERR_NO_STACKS, target->name, "it was not started with +ust");
	if (!captured->walk.block_count)
		return 0;
	return err_set(err, ERR_NO_STACKS, target->name,
		target->is_wine ? "Wine records none, even with +ust" :
				  "it was started with +ust, but no block leads to a record");
}

static int build(struct target *target, struct snapshot *snapshot, struct raw_capture *captured,
	struct err *err)
{
	int rc = describe_process(target, snapshot);

	if (!rc)
		rc = model_add_blocks(snapshot, captured);
	if (rc)
		return err_set(err, ERR_NOMEM, target->name, NULL);
	describe_stacks(target, snapshot, captured);
	describe_gaps(snapshot, captured);
	return 0;
}

/* What was loaded after the first list and before the target was held. That it cannot be listed a
 * second time, as when it has ended, is no error: the first list holds. */
static int list_modules_again(struct target *target, struct snapshot *snapshot, struct err *err)
{
	struct snapshot later;
	int replaced = 0;

	snapshot_init(&later);
	if (!target->ops->modules(target, &later, NULL))
		replaced = describe_merge_modules(snapshot, later.modules, later.module_count);
	snapshot_release(&later);
	if (replaced < 0)
		return err_set(err, ERR_NOMEM, target->name, NULL);
	if (replaced)
		snapshot_warn(snapshot,
			"%d modules were loaded in the place of others while the snapshot was "
			"taken; addresses there are taken for those of the earlier ones",
			replaced);
	return 0;
}

/* All that reads the target. */
static int read_target(struct target *target, const struct capture_options *options,
	struct snapshot *snapshot, struct raw_capture *captured, struct capture_stats *stats,
	struct err *err)
{
	struct memory memory;
	int64_t start;
	int rc = 0;

	if (memory_init(&memory, target))
		return err_set(err, ERR_NOMEM, target->name, NULL);
	if (options->stacks == STACKS_AUTO || options->stacks == STACKS_TRACER)
		rc = find_tracer(target, snapshot, options->stacks, captured, err);
	if (options->stacks == STACKS_OS)
		rc = os_stacks_take(target, &captured->os, err);
	if (!rc)
		rc = take(&memory, snapshot, captured, stats, err);
	memory_release(&memory);
	start = os_clock_ms();
	if (!rc)
		rc = parse_tracer(target, captured, err);
	stats->stacks_ms += os_clock_ms() - start;
	if (!rc && !target->is_file)
		rc = list_modules_again(target, snapshot, err);
	return rc ? rc : check_wanted(target, options->stacks, captured, err);
}

int capture_target(struct target *target, const struct capture_options *options,
	struct snapshot *snapshot, struct capture_stats *stats, struct err *err)
{
	struct raw_capture captured = {.ust = ust_new()};
	struct err local;
	int64_t start;
	int rc;

	*stats = (struct capture_stats){0};
	err = err ? err : &local;
	walk_init(&captured.walk);
	tracer_copy_init(&captured.tracer);
	captured.wants_ust = options->stacks == STACKS_AUTO || options->stacks == STACKS_UST;
	rc = captured.ust ? target->ops->modules(target, snapshot, err) :
			    err_set(err, ERR_NOMEM, target->name, NULL);
	if (!rc)
		rc = read_target(target, options, snapshot, &captured, stats, err);
	start = os_clock_ms();
	if (!rc)
		rc = build(target, snapshot, &captured, err);
	stats->join_ms = os_clock_ms() - start;
	stats->block_count = captured.walk.block_count;
	walk_release(&captured.walk);
	tracer_copy_release(&captured.tracer);
	ust_free(captured.ust);
	os_stacks_free(captured.os);
	return rc;
}
