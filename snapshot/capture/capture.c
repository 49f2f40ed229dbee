/* The steps of a capture: find the source of stacks, hold the target, walk its heaps, read the
 * tracer's tables, resume the target, and join the data. As much as possible is prepared while a
 * live target still runs, to keep the hold brief. If a thread is inside a heap, the target is
 * resumed and held again. */
#include "snapshot/capture/capture.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/os.h"
#include "snapshot/capture/capture_parts.h"
#include "snapshot/stacks/tracer_read.h"
#include "snapshot/target/nt_process.h"

#define TRIES_MAX 100 /* maximum number of holds while a thread is inside a heap */
/* After trying for this time to hold the target outside its heaps, hsnap walks the heaps in their
 * current state. */
#define BUSY_MS_MAX 300
#define WALKS_MAX 3 /* maximum number of walks while the heaps contain invalid data */
#define RETRY_MS 1
#define PAGE_BYTES 4096
/* Larger files are not touched, because their pages would be evicted again. The limit is the
 * machine's memory divided by this number. */
#define TOUCH_SHARE 2
/* Before the target is held, the tables are read several times. They are read again if the last
 * reading took more than FEW_BYTES, and less than three quarters of the bytes of the reading
 * before. */
#define FEW_BYTES ((uint64_t)128 << 10)
#define LESS 3
/* Limits for the copy of a target's memory, in which hsnap searches for pointers to blocks: the
 * machine's memory divided by COPY_SHARE, or COPY_BYTES if the size of that memory is unknown. */
#define COPY_SHARE 8
#define COPY_BYTES ((uint64_t)512 << 20)
#define LESS_OF 4

/* Finds the source of stacks. A missing tracer is an error only with --stacks tracer. A file may
 * lack the memory that shows whether a tracer was present. */
static int find_source(struct target *target, const struct snapshot *snapshot,
	enum capture_stacks wanted, struct raw_capture *captured, struct err *err)
{
	struct err why = {0};
	int rc = capture_source_find(target, snapshot, wanted, &captured->source, &why);

	if (rc == -ERR_NOT_TRACED && !target->ops->is_alive(target))
		return err_set(err, ERR_GONE, target->name, NULL);
	if (rc == -ERR_NOT_TRACED && wanted == STACKS_AUTO)
		return 0;
	if (rc && target->is_file && wanted == STACKS_AUTO) {
		captured->tracer_err = why;
		return 0;
	}
	if (rc)
		*err = why;
	return rc;
}

/* Reads the tracer's list of heaps. The list gives hints to the walk, which otherwise depends on
 * Windows' lists of heaps. */
static void read_hints(struct target *target, struct raw_capture *captured)
{
	struct tracer_area *area = xmalloc(sizeof(*area));
	size_t count = 0;

	if (captured->source.has_tracer &&
		!tracer_area_read(target, captured->source.area_addr, area, &(struct err){0})) {
		captured->traced_heaps =
			xcalloc(1u << TRACER_HEAPS_LOG2, sizeof(*captured->traced_heaps));
		for (uint32_t i = 1; i < 1u << TRACER_HEAPS_LOG2; i++) {
			const uint64_t addr = tables_heap_at(area, i);

			if (addr)
				captured->traced_heaps[count++] = addr;
		}
		captured->hints =
			(struct heap_hints){area->pointer_bytes * 8, captured->traced_heaps, count};
	}
	free(area);
}

struct walking {
	struct memory *memory;
	const struct heap_hints *hints;
	struct walk *walk;
	struct err *err;
	int rc;
	atomic_bool is_done;
};

/* Touches each page of a mapped file, except pages of modules, before the walk. Otherwise mapping
 * the pages into this process takes a fifth of the walk's time. */
static void touch(struct walking *walking)
{
	struct target *target = walking->memory->target;
	struct target_region region = {0};
	size_t len;

	while (!target->ops->region(target, region.end, &region) && region.end > region.addr) {
		for (uint64_t at = region.addr; !region.is_image && at < region.end; at += len) {
			const unsigned char *bytes = target->ops->view(target, at, &len);

			if (!bytes)
				return;
			len = len < region.end - at ? len : (size_t)(region.end - at);
			for (size_t i = 0; i < len; i += PAGE_BYTES) {
				if (walking->is_done)
					return;
				(void)*(const volatile unsigned char *)(bytes + i);
			}
		}
	}
}

static void walk_or_touch(void *ctx, unsigned number)
{
	struct walking *walking = ctx;

	if (number) {
		touch(walking);
		return;
	}
	walking->rc = heaps_walk(walking->memory, walking->hints, walking->walk, walking->err);
	walking->is_done = true;
}

/* Missing heaps are not an error in a file. */
static int walk_heaps(struct memory *memory, struct raw_capture *captured, struct err *err)
{
	struct target *target = memory->target;
	struct err why = {0};
	struct walking walking = {memory, &captured->hints, &captured->walk, &why, 0, false};
	bool touches = target->ops->view && thread_cores() > 1 &&
		       target_committed_bytes(target) < os_memory_bytes() / TOUCH_SHARE;
	int rc;

	thread_run(touches ? 2 : 1, walk_or_touch, &walking);
	rc = walking.rc;
	if (rc && rc != -ERR_NOMEM && memory->target->is_file) {
		captured->heaps_err = why;
		return 0;
	}
	if (rc && err)
		*err = why;
	return rc;
}

/*
 * Runs a step that reads or parses the tracer's tables. In a file, unreadable tables are not an
 * error. With --stacks auto, hsnap can fall back to ust. So it is not an error either if the tracer
 * has been switched off since it was found.
 */
static int read_tracer(struct target *target, struct raw_capture *captured,
	int (*step)(struct tracer_copy *copy, struct target *target, uint64_t area_addr,
		struct err *err),
	struct err *err)
{
	struct err why = {0};
	int rc = captured->source.has_tracer ?
			 step(&captured->tracer, target, captured->source.area_addr, &why) :
			 0;
	bool is_gone = rc == -ERR_NOT_TRACED && captured->wants_ust;

	if (rc && rc != -ERR_NOMEM && (is_gone || target->is_file)) {
		captured->source.has_tracer = false;
		captured->source.is_loaded = is_gone;
		if (!is_gone)
			captured->tracer_err = why;
		tracer_copy_release(&captured->tracer);
		return 0;
	}
	if (rc)
		*err = why;
	return rc;
}

static int find_reach(struct target *target, struct raw_capture *captured, struct err *err)
{
	reach_free(captured->reach.reach);
	return reach_capture(target, &captured->walk, !captured->only_starts, captured->apart,
		APART_COUNT, &captured->reach, err);
}

/* Prepares find_reach() while the target is held, by copying the memory of the target. If the copy
 * would be too large, runs find_reach() at once. */
static int prepare_reach(struct target *target, const struct snapshot *snapshot,
	struct raw_capture *captured, struct capture_stats *stats, struct err *err)
{
	const uint64_t memory = os_memory_bytes();
	int64_t start = os_clock_ms();
	int rc = 0;

	if (!captured->finds_lost)
		return 0;
	/* Omit the tracer's tables and rings, because they contain the addresses of all blocks,
	 * which look like pointers in a 32-bit process. Omit the tracer's DLL too, because it
	 * stores old registers of threads. */
	if (captured->source.has_tracer) {
		const struct tracer_area *area = &captured->tracer.area;
		const struct module *dll = module_at(
			snapshot->modules, snapshot->module_count, captured->source.area_addr);

		captured->apart[0] = (struct target_range){
			area->reserved, area->reserved + area->reserved_bytes};
		captured->apart[1] = reach_apart_from(target, area->rings_view);
		if (dll)
			captured->apart[2] =
				(struct target_range){dll->base, dll->base + dll->size_bytes};
	}
	target_copy_free(captured->copy);
	captured->copy = target->is_file || target->is_cloned ?
				 NULL :
				 target_copy(target, captured->apart, APART_COUNT,
					 memory ? memory / COPY_SHARE : COPY_BYTES);
	if (!captured->copy)
		rc = find_reach(target, captured, err);
	stats->reach_ms = os_clock_ms() - start;
	return rc;
}

static int read_stacks(struct memory *memory, const struct snapshot *snapshot,
	struct raw_capture *captured, struct err *err)
{
	struct target *target = memory->target;
	int rc = read_tracer(target, captured, tracer_copy_read, err);

	if (rc || !captured->wants_ust || captured->is_from_tables)
		return rc;
	if (ust_read(captured->ust, memory, &captured->walk, snapshot->modules,
		    snapshot->module_count, nt_global_flag(target)))
		return err_set(err, ERR_NOMEM, target->name, NULL);
	return 0;
}

static bool is_unwalkable(const struct walk *walk)
{
	for (size_t i = 0; i < walk->heap_count; i++) {
		if (!walk->heaps[i].unwalked)
			return false;
	}
	return walk->heap_count && !walk->broken_count && !walk->missing_count;
}

static int walk_again(struct memory *memory, struct raw_capture *captured, struct err *err)
{
	int rc;

	walk_clear(&captured->walk);
	memory_clear(memory);
	rc = walk_heaps(memory, captured, err);
	captured->is_unwalkable = !rc && is_unwalkable(&captured->walk);
	return rc;
}

/*
 * Walks the heaps while the target runs, several times if there seems to be damage. If the damage
 * changes from walk to walk, it is a change in progress, and the target must be held. If the damage
 * is the same in each walk, the heap is really damaged. This is no problem, because the tracer's
 * tables contain its blocks.
 */
static int walk_running(struct memory *memory, struct raw_capture *captured, struct err *err)
{
	const struct walk *walk = &captured->walk;
	int rc = walk_again(memory, captured, err);
	bool is_damaged = true;

	for (int i = 1; !rc && !walk_is_sound(walk) && i < WALKS_MAX; i++) {
		const uint64_t addr = walk->broken_addr;
		const unsigned count = walk->broken_count;

		os_sleep_ms(RETRY_MS);
		rc = walk_again(memory, captured, err);
		is_damaged = is_damaged && addr == walk->broken_addr &&
			     count == walk->broken_count && !walk->missing_count;
	}
	captured->is_from_tables = !rc && (walk_is_sound(walk) || is_damaged) && !walk->doubt_count;
	return rc;
}

/* Reads the tracer's tables while the target runs. Only later changes must then be read while the
 * target is held. Repeats the reading as long as each one is considerably smaller than the one
 * before. */
static void read_tracer_running(struct target *target, struct raw_capture *captured)
{
	uint64_t last = UINT64_MAX;

	if (!captured->source.has_tracer || target->is_file || target->is_cloned)
		return;
	while (!tracer_copy_read(
		       &captured->tracer, target, captured->source.area_addr, &(struct err){0}) &&
		captured->tracer.read_bytes > FEW_BYTES &&
		captured->tracer.read_bytes < last / LESS_OF * LESS)
		last = captured->tracer.read_bytes;
}

/* Does everything for which the target must be held: finds the blocks, and reads the data about
 * their stacks. */
static int capture_held(struct memory *memory, const struct snapshot *snapshot,
	struct raw_capture *captured, struct capture_stats *stats, struct err *err)
{
	int64_t start = os_clock_ms(), walked;
	int rc;

	rc = captured->is_from_tables || captured->is_unwalkable ?
		     0 :
		     walk_again(memory, captured, err);
	walked = os_clock_ms();
	if (!rc)
		rc = read_stacks(memory, snapshot, captured, err);
	if (!captured->is_from_tables)
		stats->walk_ms = walked - start;
	stats->stacks_ms = os_clock_ms() - walked;
	return rc ? rc : prepare_reach(memory->target, snapshot, captured, stats, err);
}

static bool is_busy(struct target *target, const struct raw_capture *captured)
{
	return (!captured->is_from_tables && !captured->is_unwalkable && heaps_are_busy(target)) ||
	       (captured->source.has_tracer && tracer_is_busy(target, captured->source.area_addr,
						       captured->is_from_tables));
}

/*
 * Holds the target and captures it.
 *
 * A thread may be stopped inside a heap or the tracer, whose data is then half changed. In this
 * case, the target is resumed and held again. This is checked first, because the walk is expensive.
 * If a lock stays held, because its thread hangs or was terminated, the heap is walked in its
 * current state. A file never changes, so it is always walked in its current state.
 */
static int capture_once(struct memory *memory, const struct snapshot *snapshot,
	struct raw_capture *captured, struct capture_stats *stats, struct err *err)
{
	struct target *target = memory->target;
	unsigned walks = 0;

	/*
	 * A process that will be suspended is first walked while it runs. If the blocks come from
	 * the tables, the result of this walk is used. Otherwise the result is discarded, but the
	 * allocated memory is used again for the second walk. Without it, page faults would take a
	 * quarter of the time for which the process is held.
	 */
	if (captured->is_from_tables) {
		int64_t start = os_clock_ms();
		int rc;

		tracer_copy_mark(&captured->tracer, target, captured->source.area_addr);
		rc = walk_running(memory, captured, err);

		stats->walk_ms = os_clock_ms() - start;
		if (rc)
			return rc;
	} else if (!target->is_file && !target->is_cloned) {
		walk_again(memory, captured, NULL);
	}
	read_tracer_running(target, captured);
	for (;;) {
		int64_t start = os_clock_ms(), held_ms;
		int rc = target->ops->suspend(target, err);
		bool is_last = target->is_file || stats->tries + 1 >= TRIES_MAX ||
			       stats->held_ms > BUSY_MS_MAX;
		bool again = !rc && !is_last && is_busy(target, captured);

		stats->tries++;
		if (!rc && !again) {
			rc = capture_held(memory, snapshot, captured, stats, err);
			again = !rc && !captured->is_from_tables &&
				!walk_is_sound(&captured->walk) && !target->is_file &&
				++walks < WALKS_MAX;
		}
		target->ops->resume(target);
		start = target->held_from_ms ? target->held_from_ms : start;
		held_ms = os_clock_ms() - start;
		stats->held_ms += held_ms;
		if (!again)
			return rc;
		/* On a busy machine, the lock's holder needs time to release the lock. */
		os_sleep_ms(held_ms > RETRY_MS ? (unsigned)held_ms : RETRY_MS);
	}
}

/* Returns an error if the user requested a source of stacks that the target lacks. */
static int check_wanted(const struct target *target, enum capture_stacks wanted,
	const struct raw_capture *captured, struct err *err)
{
	if (wanted == STACKS_TRACER && captured->tracer_err.code) {
		*err = captured->tracer_err;
		return -(int)err->code;
	}
	if (wanted != STACKS_UST || ust_facts(captured->ust)->record_count)
		return 0;
	if (!captured->source.has_ust)
		return err_set(err, ERR_NO_STACKS, target->name, "not started with +ust");
	if (!captured->walk.block_count)
		return 0;
	return err_set(err, ERR_NO_STACKS, target->name,
		target->is_wine ? "Wine records none, even with +ust" :
				  "started with +ust, but no stack was found for any block");
}

static void build(struct target *target, struct snapshot *snapshot, struct raw_capture *captured)
{
	describe_process(target, snapshot);
	model_add_blocks(snapshot, captured);
	describe_stacks(target, snapshot, captured);
	describe_gaps(snapshot, captured);
}

/* Adds modules that were loaded between the first listing and the hold. The first list remains
 * unchanged if the modules cannot be listed again, for example because the process has exited. */
static void list_modules_again(struct target *target, struct snapshot *snapshot)
{
	struct snapshot later;
	int replaced = 0;

	snapshot_init(&later);
	if (!target->ops->modules(target, &later, NULL))
		replaced = describe_merge_modules(snapshot, later.modules, later.module_count);
	snapshot_release(&later);
	if (replaced)
		snapshot_warn(snapshot,
			"%d module%s loaded at the place of an earlier one while the snapshot was "
			"taken; addresses there are attributed to the earlier module",
			replaced, replaced == 1 ? " was" : "s were");
}

static int capture_all(struct memory *memory, const struct snapshot *snapshot,
	struct raw_capture *captured, struct capture_stats *stats, struct err *err)
{
	int rc = capture_once(memory, snapshot, captured, stats, err);
	int64_t start = os_clock_ms();

	if (!rc)
		rc = read_tracer(memory->target, captured, tracer_copy_parse, err);
	if (!rc)
		tables_correct_sizes(captured);
	stats->stacks_ms += os_clock_ms() - start;
	return rc;
}

/* Completes the walk with blocks from the tracer's tables, or discards a wrong layout. */
static int complete(struct raw_capture *captured, const char *name, struct err *err)
{
	const struct walk *walk = &captured->walk;

	if (!captured->is_from_tables)
		captured->wrong_layout = tables_judge(captured);
	if (tables_add_heaps(captured))
		return err_set(err, ERR_NOMEM, name, NULL);
	for (size_t i = 0; captured->finds_lost && i < walk->heap_count; i++)
		captured->is_reach_refused |= walk->heaps[i].unwalked || walk->heaps[i].is_partial;
	if (captured->is_reach_refused) {
		reach_free(captured->reach.reach);
		captured->reach = (struct reach_taken){0};
	}
	return 0;
}

static int read_target(struct target *target, const struct capture_options *options,
	struct snapshot *snapshot, struct raw_capture *captured, struct capture_stats *stats,
	struct err *err)
{
	struct memory memory;
	int rc;

	if (memory_init(&memory, target))
		return err_set(err, ERR_NOMEM, target->name, NULL);
	rc = find_source(target, snapshot, options->stacks, captured, err);
	if (!rc)
		read_hints(target, captured);
	if (!rc && options->finds_lost && captured->source.sample_bytes)
		rc = err_set(
			err, ERR_USAGE, "-g", "not with --sample, which records only some blocks");
	captured->is_from_tables = !rc && captured->source.may_have_all && !options->walks &&
				   !options->finds_lost && !captured->source.has_ust &&
				   target->is_wine && !target->is_file && !target->is_cloned;
	captured->may_free_unseen = target_may_free_unseen(target);
	target->needs_threads = options->finds_lost;
	if (!rc)
		rc = capture_all(&memory, snapshot, captured, stats, err);
	if (!rc && captured->is_from_tables && !captured->is_unwalkable &&
		(!tables_have_all(captured) || !tables_add_blocks(captured))) {
		captured->is_from_tables = false;
		rc = capture_all(&memory, snapshot, captured, stats, err);
	}
	if (!rc)
		rc = complete(captured, target->name, err);
	if (!rc) {
		int64_t start = os_clock_ms();

		heap_space_capture(target, captured, snapshot);
		balance_capture(target, captured, snapshot);
		stats->balance_ms = os_clock_ms() - start;
	}
	if (!rc && captured->copy && !captured->is_reach_refused)
		rc = find_reach(captured->copy, captured, err);
	target_copy_free(captured->copy);
	captured->copy = NULL;
	if (!rc && captured->reach.reach)
		rc = reach_resolve(captured->reach.reach, target->name, err);
	memory_release(&memory);
	stats->walked_running = captured->is_from_tables;
	if (!rc && captured->source.may_have_all && options->walks)
		tables_compare(captured);
	if (!rc && !target->is_file)
		list_modules_again(target, snapshot);
	return rc ? rc : check_wanted(target, options->stacks, captured, err);
}

int capture_target(struct target *target, const struct capture_options *options,
	struct snapshot *snapshot, struct capture_stats *stats, struct err *err)
{
	struct raw_capture captured = {.ust = ust_new(),
		.finds_lost = options->finds_lost,
		.only_starts = options->only_starts};
	struct err local;
	int64_t start;
	int rc;

	*stats = (struct capture_stats){0};
	err = err ? err : &local;
	walk_init(&captured.walk);
	tracer_copy_init(&captured.tracer);
	captured.wants_ust = options->stacks == STACKS_AUTO || options->stacks == STACKS_UST;
	rc = target->ops->modules(target, snapshot, err);
	if (!rc)
		rc = read_target(target, options, snapshot, &captured, stats, err);
	start = os_clock_ms();
	if (!rc)
		build(target, snapshot, &captured);
	if (!rc)
		rc = stackless_capture(target, &captured, options->content_count, snapshot, err);
	if (!rc && options->content_count)
		content_capture(target, options->content_count, snapshot);
	stats->join_ms = os_clock_ms() - start;
	stats->block_count = captured.walk.block_count;
	walk_release(&captured.walk);
	free(captured.traced_heaps);
	free(captured.stackless);
	free(captured.thread_stacks);
	reach_free(captured.reach.reach);
	tracer_copy_release(&captured.tracer);
	ust_free(captured.ust);
	return rc;
}
