#include "snapshot/capture.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/os.h"
#include "core/table.h"
#include "snapshot/heap/heap.h"
#include "snapshot/stacks/tracer_table.h"

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

struct raw {
	struct memory memory;
	struct walk walk;
	struct tracer_copy tracer;
	uint64_t area_addr;
};

/* Everything that needs the target to stand still. */
static int take_held(struct target *target, struct raw *raw, struct err *err)
{
	int rc;

	walk_clear(&raw->walk);
	memory_clear(&raw->memory);
	rc = heaps_walk(&raw->memory, &raw->walk, err);
	return rc ? rc : tracer_copy_take(&raw->tracer, target, raw->area_addr, err);
}

/*
 * A thread that was stopped inside a heap leaves it half changed: the target is let go and held
 * again. That is found out before the walk, which costs more. A lock that stays held (its thread
 * hangs or was ended) is no reason to give up: then the heap is walked as it is.
 */
static int take(
	struct target *target, struct raw *raw, struct capture_stats *stats, struct err *err)
{
	unsigned walks = 0;

	*stats = (struct capture_stats){0};
	for (;;) {
		int64_t start = os_time_ms();
		int rc = target->ops->suspend(target, err);
		bool is_last = ++stats->tries >= TRIES_MAX || stats->held_ms > BUSY_MS_MAX;
		bool again = !rc && !is_last && heaps_are_busy(target);

		if (!rc && !again) {
			rc = take_held(target, raw, err);
			again = !rc && raw->walk.broken_count && ++walks < WALKS_MAX;
		}
		target->ops->resume(target);
		stats->held_ms += os_time_ms() - start;
		if (!again)
			return rc;
		os_sleep_ms(RETRY_MS);
	}
}

static const char *keep(struct snapshot *snapshot, const char *text)
{
	return *text ? arena_text(&snapshot->arena, text, strlen(text)) : NULL;
}

/* What identifies a module's build; one that is gone by now has none. */
static void identify(struct target *target, struct snapshot *snapshot, struct module *module,
	struct pe_image *image)
{
	struct target_image at = {target, module->base};
	struct pe_source source = target_image_source(&at);

	if (pe_read_headers(&source, image))
		return;
	module->has_identity = true;
	module->timestamp = image->timestamp;
	module->checksum = image->checksum;
	module->pdb = keep(snapshot, image->pdb);
	module->pdb_guid = keep(snapshot, image->pdb_guid);
	module->pdb_age = image->pdb_age;
}

static int describe(struct target *target, struct snapshot *snapshot, struct err *err)
{
	struct pe_image *image = malloc(sizeof(*image));

	if (!image)
		return err_set(err, ERR_NOMEM, target->name, NULL);
	for (size_t i = 0; i < snapshot->module_count; i++)
		identify(target, snapshot, &snapshot->modules[i], image);
	free(image);
	snapshot->pid = target->pid;
	snapshot->bits = target->bits;
	snapshot->start_ms = target->start_ms;
	snapshot->image = keep(snapshot, target->image);
	snapshot->os = keep(snapshot, target->os);
	snapshot->stack_source = "tracer";
	return 0;
}

/* The index of the stack that the tracer has for a block, or STACK_NONE. */
static int put_stack(
	struct snapshot *snapshot, const struct tracer_copy *tracer, uint32_t id, uint32_t *index)
{
	uint64_t frames[TRACER_DEPTH_MAX];
	char text[16];
	struct stack stack = {.id = text, .same_id = STACK_NONE, .frames = frames};
	int len;

	*index = STACK_NONE;
	stack.frame_count = tracer_copy_stack(tracer, id, frames);
	if (!stack.frame_count)
		return 0;
	len = snprintf(text, sizeof(text), "%" PRIX32, id);
	return stackset_put(&snapshot->stacks, &stack, (size_t)len, index);
}

static int add_block(struct snapshot *snapshot, const struct walked_block *walked, uint32_t stack)
{
	struct block *block;

	if (stack == STACK_NONE) {
		struct census *stackless = &snapshot->heaps[walked->heap].stackless;

		stackless->block_count++;
		stackless->requested_bytes += walked->requested_bytes;
		stackless->overhead_bytes += walked->overhead_bytes;
		return 0;
	}
	block = snapshot_add_block(snapshot);
	if (!block)
		return -ERR_NOMEM;
	block->addr = walked->addr;
	block->requested_bytes = walked->requested_bytes;
	block->overhead_bytes = walked->overhead_bytes;
	block->heap = walked->heap;
	block->stack = stack;
	return 0;
}

/*
 * Gives each walked block the stack the tracer has for it. An entry of another size or heap is not
 * about this block: the block counts as one without a stack.
 */
static int join(
	struct snapshot *snapshot, const struct walk *walk, const struct tracer_copy *tracer)
{
	uint64_t mismatches = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < walk->block_count; i++) {
		const struct walked_block *walked = &walk->blocks[i];
		const struct tracer_block *traced = tracer_copy_find(tracer, walked->addr);
		uint32_t stack = STACK_NONE;

		if (traced && (traced->size_bytes != walked->requested_bytes ||
				      traced->heap != walk->heaps[walked->heap].addr)) {
			mismatches++;
			traced = NULL;
		}
		if (traced)
			rc = put_stack(snapshot, tracer, traced->stack, &stack);
		if (!rc)
			rc = add_block(snapshot, walked, stack);
	}
	if (mismatches)
		snapshot_warn(snapshot,
			"%" PRIu64
			" blocks have another size or heap in the tracer's table; they are "
			"counted without a stack",
			mismatches);
	return rc;
}

static int add_traced(struct snapshot *snapshot, const struct tracer_copy *tracer,
	const struct tracer_block *traced, uint32_t heap)
{
	struct walked_block block = {
		.addr = traced->addr, .requested_bytes = traced->size_bytes, .heap = heap};
	uint32_t stack;
	int rc = put_stack(snapshot, tracer, traced->stack, &stack);

	return rc ? rc : add_block(snapshot, &block, stack);
}

/* Blocks in heaps that no walker knows: what the tracer saw is all there is. */
static int join_unwalked(
	struct snapshot *snapshot, const struct walk *walk, const struct tracer_copy *tracer)
{
	struct table unwalked; /* address -> index */
	int rc = 0;

	table_init(&unwalked);
	for (size_t i = 0; !rc && i < walk->heap_count; i++) {
		uint64_t addr = walk->heaps[i].addr;

		if (walk->heaps[i].unwalked && !table_find(&unwalked, &addr, sizeof(addr)))
			rc = table_add(&unwalked, &addr, sizeof(addr), i);
	}
	for (size_t i = 0; !rc && unwalked.count && i < tracer->block_count; i++) {
		const struct tracer_block *traced = &tracer->blocks[i];
		uint64_t *heap = table_find(&unwalked, &traced->heap, sizeof(traced->heap));

		if (heap)
			rc = add_traced(snapshot, tracer, traced, (uint32_t)*heap);
	}
	table_release(&unwalked);
	return rc;
}

/* What the reader of the dump has to know about its gaps. */
static void warn(struct snapshot *snapshot, const struct raw *raw)
{
	const struct tracer_area *area = &raw->tracer.area;

	if (raw->walk.broken_count)
		snapshot_warn(snapshot,
			"%u places in the heaps made no sense; the first: %s at %" PRIX64,
			raw->walk.broken_count, raw->walk.broken_what, raw->walk.broken_addr);
	if (raw->walk.busy_count)
		snapshot_warn(snapshot,
			"%u heaps had their lock held all the time; they were walked nevertheless",
			raw->walk.busy_count);
	if (area->dropped_blocks)
		snapshot_warn(snapshot, "the tracer had no room for %" PRIu64 " blocks",
			area->dropped_blocks);
	if (area->dropped_stacks)
		snapshot_warn(snapshot,
			"the tracer had no room for the stacks of %" PRIu64 " blocks",
			area->dropped_stacks);
	if (raw->tracer.broken_shards)
		snapshot_warn(snapshot,
			"%u of the %d parts of the tracer's table were left locked by a thread "
			"that ended; their blocks are counted without a stack",
			raw->tracer.broken_shards, TRACER_SHARDS);
	for (size_t i = 0; i < raw->walk.heap_count; i++) {
		if (raw->walk.heaps[i].unwalked)
			snapshot_warn(snapshot,
				"heap %" PRIX64 " is of a kind that cannot be walked; only traced "
				"blocks are listed, their overhead is not known",
				raw->walk.heaps[i].addr);
	}
}

static int build(struct snapshot *snapshot, struct raw *raw)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < raw->walk.heap_count; i++) {
		struct heap *heap = snapshot_add_heap(snapshot);

		if (heap)
			*heap = raw->walk.heaps[i];
		else
			rc = -ERR_NOMEM;
	}
	tracer_copy_sort(&raw->tracer);
	if (!rc)
		rc = join(snapshot, &raw->walk, &raw->tracer);
	if (!rc)
		rc = join_unwalked(snapshot, &raw->walk, &raw->tracer);
	warn(snapshot, raw);
	return rc;
}

int capture(struct target *target, const struct capture_options *options, struct snapshot *snapshot,
	struct capture_stats *stats, struct err *err)
{
	struct raw raw = {0};
	int rc = target->ops->modules(target, snapshot, err);

	(void)options;
	walk_init(&raw.walk);
	tracer_copy_init(&raw.tracer);
	if (!rc && memory_init(&raw.memory, target))
		rc = err_set(err, ERR_NOMEM, target->name, NULL);
	if (rc)
		goto out;
	rc = tracer_find(target, snapshot->modules, snapshot->module_count, &raw.area_addr, err);
	if (rc == -ERR_NOT_TRACED && !target->ops->is_alive(target))
		rc = err_set(err, ERR_GONE, target->name, NULL);
	if (!rc)
		rc = take(target, &raw, stats, err);
	snapshot->time_ms = os_time_ms();
	if (!rc)
		rc = describe(target, snapshot, err);
	if (!rc && build(snapshot, &raw))
		rc = err_set(err, ERR_NOMEM, target->name, NULL);
out:
	memory_release(&raw.memory);
	walk_release(&raw.walk);
	tracer_copy_release(&raw.tracer);
	return rc;
}
