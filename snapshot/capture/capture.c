#include "snapshot/capture/capture.h"

#include <string.h>

#include "core/base/os.h"
#include "snapshot/capture/capture_parts.h"
#include "snapshot/stacks/tracer_read.h"
#include "snapshot/target/nt_process.h"

#define LIMIT_BYTES ((uint64_t)2 << 30)
#define LIMIT_PART 4 /* of the machine's memory */

/* What a process may grow by between the look and the hold without a page fault while it is held. */
#define SLACK_PART 8
#define SLACK_BYTES ((uint64_t)2 << 20)

int copying_init(struct copying *copying, struct target *target, uint64_t limit_bytes)
{
	copying->is_on = false;
	copying->why_not = NULL;
	target_ranges_init(&copying->wanted);
	target_copy_init(&copying->copy, target, limit_bytes);
	return memory_init(&copying->memory, &copying->copy.target);
}

void copying_release(struct copying *copying)
{
	memory_release(&copying->memory);
	target_copy_release(&copying->copy);
	target_ranges_release(&copying->wanted);
}

uint64_t copying_limit(void)
{
	uint64_t part = os_memory_bytes() / LIMIT_PART;

	return part < LIMIT_BYTES ? part : LIMIT_BYTES;
}

/* Notes what a snapshot will read of the target, which may be the copy. */
static int plan(struct copying *copying, struct target *target, const struct captured *captured)
{
	int rc;

	target_ranges_clear(&copying->wanted);
	rc = heaps_plan(target, &copying->wanted);
	if (!rc)
		rc = nt_plan_flags(target, &copying->wanted);
	if (!rc && captured->has_tracer)
		rc = tracer_plan(target, captured->area_addr, &copying->wanted);
	return rc;
}

static bool make_room(struct copying *copying)
{
	uint64_t limit = copying->copy.limit_bytes, bytes;

	target_ranges_settle(&copying->wanted);
	bytes = target_ranges_bytes(&copying->wanted);
	if (bytes > limit) {
		copying->why_not = "it is too large to be copied";
		return false;
	}
	bytes += bytes / SLACK_PART + SLACK_BYTES;
	if (!target_copy_reserve(&copying->copy, bytes < limit ? bytes : limit))
		return true;
	copying->why_not = "there is no memory to copy it to";
	return false;
}

void copying_look(struct copying *copying, const struct captured *captured)
{
	struct target *target = copying->copy.from;
	int rc;

	if (target->is_file)
		return;
	/* What a database of stacks will be read for, only walking tells. */
	if (captured->wants_ust && nt_global_flag(target) & NT_FLAG_UST)
		return;
	rc = plan(copying, target, captured);
	if (rc == -ERR_NOMEM)
		copying->why_not = "it has too many parts to be copied";
	copying->is_on = !rc && make_room(copying);
}

bool copying_take(struct copying *copying, const struct captured *captured)
{
	struct target_copy *copy = &copying->copy;
	int rc;

	memory_clear(&copying->memory);
	target_copy_open(copy);
	rc = target_copy_take(copy, &copying->wanted);
	if (!rc)
		rc = plan(copying, &copy->target, captured);
	if (!rc)
		rc = target_copy_take(copy, &copying->wanted);
	target_copy_seal(copy);
	if (!rc && !copy->is_short)
		return true;
	copying->is_on = false;
	copying->why_not = "too much has changed before it was held";
	return false;
}

bool copying_failed(struct copying *copying)
{
	copying->is_on = false;
	copying->why_not = "its copy lacks something";
	return true;
}

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
	enum capture_stacks wanted, struct captured *captured, struct err *err)
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
static int walk_heaps(struct memory *memory, struct captured *captured, struct err *err)
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
 * Reads the tracer's tables. That they cannot be read is no error of a file, nor that the tracer has
 * gone since it was found when stacks come from wherever they are: only then are those of ust wanted
 * too.
 */
static int take_tracer(struct target *target, struct captured *captured, struct err *err)
{
	struct err why = {0};
	int rc = tracer_copy_take(&captured->tracer, target, captured->area_addr, &why);
	bool is_gone = rc == -ERR_NOT_TRACED && captured->wants_ust;

	if (rc && rc != -ERR_NOMEM && (is_gone || target->is_file)) {
		captured->has_tracer = false;
		captured->is_detached = is_gone;
		if (!is_gone)
			captured->tracer_err = why;
		tracer_copy_release(&captured->tracer);
		return 0;
	}
	if (rc && err)
		*err = why;
	return rc;
}

static int take_stacks(struct memory *memory, const struct snapshot *snapshot,
	struct captured *captured, struct err *err)
{
	struct target *target = memory->target;
	uint32_t flags;
	int rc = 0;

	if (captured->has_tracer)
		rc = take_tracer(target, captured, err);
	if (rc || !captured->wants_ust)
		return rc;
	flags = nt_global_flag(target);
	captured->is_flagged = flags & NT_FLAG_UST;
	if (ust_take(captured->ust, memory, &captured->walk, snapshot->modules,
		    snapshot->module_count, flags))
		return err_set(err, ERR_NOMEM, target->name, NULL);
	return 0;
}

/* What one capture is about: the target's memory as it is, or a copy of it. */
struct taking {
	struct memory *memory; /* of the target */
	struct copying *copying;
	const struct snapshot *snapshot;
	struct captured *captured;
	struct capture_stats *stats;
};

/* Finds the blocks and what tells their stacks: in the copy, or in the target, which is held then. */
static int walk(struct taking *taking, struct memory *memory, struct err *err)
{
	struct captured *captured = taking->captured;
	int64_t start = os_clock_ms(), walked;
	int rc;

	walk_clear(&captured->walk);
	memory_clear(memory);
	rc = walk_heaps(memory, captured, err);
	walked = os_clock_ms();
	if (!rc)
		rc = take_stacks(memory, taking->snapshot, captured, err);
	taking->stats->walk_ms = walked - start;
	taking->stats->stacks_ms = os_clock_ms() - walked;
	return rc;
}

/* Everything that needs the target to stand still. *is_copied: walking does not. */
static int take_held(struct taking *taking, bool *is_copied, struct err *err)
{
	struct copying *copying = taking->copying;
	int64_t start = os_clock_ms();

	/* A clone stands still for as long as is wanted. */
	*is_copied = copying->is_on && !taking->memory->target->is_cloned &&
		     copying_take(copying, taking->captured);
	taking->stats->copied_bytes = *is_copied ? copying->copy.bytes : 0;
	taking->stats->copy_ms = *is_copied ? os_clock_ms() - start : 0;
	return *is_copied ? 0 : walk(taking, taking->memory, err);
}

static bool is_busy(struct target *target, const struct captured *captured)
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
static int take(struct taking *taking, struct err *err)
{
	struct target *target = taking->memory->target;
	struct capture_stats *stats = taking->stats;
	unsigned walks = 0;

	for (;;) {
		int64_t start = os_clock_ms();
		int rc = target->ops->suspend(target, err);
		bool is_last = target->is_file || stats->tries + 1 >= TRIES_MAX ||
			       stats->held_ms > BUSY_MS_MAX;
		bool again = !rc && !is_last && is_busy(target, taking->captured);
		bool is_taken = !rc && !again, is_copied = false;

		stats->tries++;
		if (is_taken)
			rc = take_held(taking, &is_copied, err);
		target->ops->resume(target);
		start = target->held_from_ms ? target->held_from_ms : start;
		stats->held_ms += os_clock_ms() - start;
		if (is_copied)
			rc = walk(taking, &taking->copying->memory, err);
		if (is_copied && rc == -ERR_TARGET)
			again = copying_failed(taking->copying);
		else if (is_taken)
			again = !rc && !walk_is_sound(&taking->captured->walk) &&
				!target->is_file && ++walks < WALKS_MAX;
		if (!again)
			return rc;
		os_sleep_ms(RETRY_MS);
	}
}

/* Looks at what there is to copy, then takes it. */
static int look_and_take(struct memory *memory, const struct capture_options *options,
	const struct snapshot *snapshot, struct captured *captured, struct capture_stats *stats,
	struct err *err)
{
	struct target *target = memory->target;
	uint64_t limit = options->copy_limit_bytes ? options->copy_limit_bytes : copying_limit();
	struct copying copying;
	struct taking taking = {memory, &copying, snapshot, captured, stats};
	int rc;

	if (copying_init(&copying, target, limit)) {
		rc = err_set(err, ERR_NOMEM, target->name, NULL);
	} else {
		copying_look(&copying, captured);
		rc = take(&taking, err);
	}
	stats->why_not_copied = copying.why_not;
	copying_release(&copying);
	return rc;
}

/* Stacks that were asked for by name have to be there. */
static int check_wanted(const struct target *target, enum capture_stacks wanted,
	const struct captured *captured, struct err *err)
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

static int build(struct target *target, struct snapshot *snapshot, struct captured *captured,
	struct err *err)
{
	int rc = describe(target, snapshot);

	if (!rc)
		rc = join(snapshot, captured);
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
		replaced = module_merge(snapshot, later.modules, later.module_count);
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
	struct snapshot *snapshot, struct captured *captured, struct capture_stats *stats,
	struct err *err)
{
	struct memory memory;
	int rc = 0;

	if (memory_init(&memory, target))
		return err_set(err, ERR_NOMEM, target->name, NULL);
	if (options->stacks == STACKS_AUTO || options->stacks == STACKS_TRACER)
		rc = find_tracer(target, snapshot, options->stacks, captured, err);
	if (options->stacks == STACKS_OS)
		rc = os_stacks_take(target, &captured->os, err);
	if (!rc)
		rc = look_and_take(&memory, options, snapshot, captured, stats, err);
	memory_release(&memory);
	if (!rc && !target->is_file)
		rc = list_modules_again(target, snapshot, err);
	return rc ? rc : check_wanted(target, options->stacks, captured, err);
}

int capture(struct target *target, const struct capture_options *options, struct snapshot *snapshot,
	struct capture_stats *stats, struct err *err)
{
	struct captured captured = {.ust = ust_new()};
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
