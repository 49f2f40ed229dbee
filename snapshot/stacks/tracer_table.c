/* A copy of the tracer's tables: finds the tables in the target and checks their limits, reads
 * changed pieces repeatedly, and parses the copy. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/os.h"
#include "snapshot/stacks/tracer_parts.h"
#include "snapshot/stacks/tracer_read.h"

#define SHARD_PAGES_MAX (1u << 18)
#define READ_BYTES ((size_t)1 << 20) /* bytes per read */
#define STACKS_MAX ((uint64_t)8 << TRACER_STACK_BITS) /* largest offset that an id can contain */
#define MODULES_MAX ((uint64_t)1 << 26)
#define UNLOADS_MAX ((uint64_t)1 << 20)
#define RANGES_MAX ((uint64_t)1 << 24)
#define TOTAL_PART 2 /* limit for all tables together: this fraction of the machine's memory */
#define SAMPLE_MAX ((uint64_t)1 << 40) /* bytes, the tracer's own limit */

void tracer_copy_init(struct tracer_copy *copy)
{
	memset(copy, 0, sizeof(*copy));
	tracer_modules_init(&copy->modules);
}

/* Releases everything except the area. */
static void forget(struct tracer_copy *copy)
{
	for (size_t i = 0; i < PART_COUNT; i++) {
		free(copy->parts[i].copy);
		copy->parts[i] = (struct tracer_part){0};
	}
	free(copy->blocks);
	copy->blocks = NULL;
	copy->block_count = 0;
	tracer_index_release(&copy->index);
	copy->broken_shards = 0;
	tracer_modules_release(&copy->modules);
	tracer_ranges_release(&copy->ranges);
}

void tracer_copy_release(struct tracer_copy *copy)
{
	forget(copy);
	free(copy->since);
	tracer_copy_init(copy);
}

/* ---------------------------------------------------------------- location of the tables */

static int set_part(
	struct tracer_copy *copy, size_t id, uint64_t addr, uint64_t bytes, uint64_t bytes_max)
{
	if (bytes > bytes_max)
		return -ERR_TARGET;
	copy->parts[id].addr = addr;
	copy->parts[id].bytes = bytes;
	return 0;
}

/* Plans the reading of a shard. A shard whose lock was never released may be outdated and is
 * omitted. */
static int set_shard(struct tracer_copy *copy, size_t id)
{
	const struct tracer_shard *shard = &copy->area.shards[id];

	copy->broken_shards += shard->broken != 0;
	if (!shard->table || shard->broken)
		return 0;
	return set_part(
		copy, id, shard->table, shard->pages * TRACER_PAGE, SHARD_PAGES_MAX * TRACER_PAGE);
}

/* A new process has committed nothing, so its stack area is empty. */
static int set_stacks(struct tracer_copy *copy)
{
	const struct tracer_area *area = &copy->area;

	if (area->stacks_top < 8 || area->stacks_top > area->stacks_limit ||
		(area->stacks_committed && area->stacks_top > area->stacks_committed))
		return -ERR_TARGET;
	return set_part(copy, PART_STACKS, area->stacks,
		area->stacks_committed ? area->stacks_top : 0, STACKS_MAX);
}

static int set_others(struct tracer_copy *copy)
{
	const struct tracer_area *area = &copy->area;
	const struct tracer_ranges *ranges = &area->ranges;
	uint64_t unload_count = tracer_unloads_kept(area);
	int rc = -ERR_TARGET;

	if (area->modules_top <= area->modules_limit && unload_count <= UNLOADS_MAX &&
		ranges->node_count <= ranges->node_limit)
		rc = set_part(copy, PART_MODULES, area->modules, area->modules_top, MODULES_MAX);
	if (!rc)
		rc = set_part(copy, PART_UNLOADS, area->unloads,
			unload_count * sizeof(struct tracer_unload), UINT64_MAX);
	if (!rc)
		rc = set_part(copy, PART_RANGES, ranges->nodes,
			(uint64_t)ranges->node_count * sizeof(struct tracer_range),
			RANGES_MAX * sizeof(struct tracer_range));
	return rc;
}

static int by_addr_of_part(const void *a, const void *b)
{
	const struct tracer_part *x = *(struct tracer_part *const *)a,
				 *y = *(struct tracer_part *const *)b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/*
 * Returns true if all parts lie in the tracer's reservation and do not overlap. Otherwise a few
 * bytes in the target could appear as any number of blocks.
 */
static bool are_apart(struct tracer_copy *copy)
{
	const struct tracer_area *area = &copy->area;
	struct tracer_part *parts[PART_COUNT];
	size_t count = 0;

	for (size_t i = 0; i < PART_COUNT; i++) {
		struct tracer_part *part = &copy->parts[i];

		if (!part->bytes)
			continue;
		if (part->addr < area->reserved ||
			part->addr - area->reserved > area->reserved_bytes ||
			part->bytes > area->reserved_bytes - (part->addr - area->reserved))
			return false;
		parts[count++] = part;
	}
	if (count)
		qsort(parts, count, sizeof(*parts), by_addr_of_part);
	for (size_t i = 1; i < count; i++) {
		if (parts[i]->addr - parts[i - 1]->addr < parts[i - 1]->bytes)
			return false;
	}
	return true;
}

static int set_parts(struct tracer_copy *copy)
{
	int rc = copy->area.sample_bytes <= SAMPLE_MAX ? 0 : -ERR_TARGET;

	for (size_t i = 0; !rc && i < TRACER_SHARDS; i++)
		rc = set_shard(copy, i);
	if (!rc)
		rc = set_stacks(copy);
	if (!rc)
		rc = set_others(copy);
	return rc ? rc : are_apart(copy) ? 0 : -ERR_TARGET;
}

static int fail(struct target *target, uint64_t area_addr, int rc, struct err *err)
{
	if (rc == -ERR_NOMEM)
		return err_set(err, ERR_NOMEM, target->name, NULL);
	return target_err(target, area_addr, "damaged tracer table", err);
}

/*
 * Checks the total size of the tables; their contents are checked later. A target may claim more
 * than this machine can hold without affecting other programs. */
static int check_total(const struct tracer_copy *copy, struct target *target, struct err *err)
{
	uint64_t limit = os_memory_bytes() / TOTAL_PART, total = 0;

	for (size_t i = 0; i < PART_COUNT; i++)
		total += copy->parts[i].bytes;
	if (!limit || total <= limit) /* limit 0: the machine's memory is unknown */
		return 0;
	return err_set(err, ERR_TARGET, target->name,
		"its tracer's tables take %" PRIu64 " MiB, more than half of this machine's memory",
		total >> 20);
}

static int plan(
	struct tracer_copy *copy, struct target *target, uint64_t area_addr, struct err *err)
{
	int rc;

	forget(copy);
	rc = tracer_area_read(target, area_addr, &copy->area, err);
	if (!rc)
		rc = tracer_check(target, &copy->area, err);
	if (rc)
		return rc;
	rc = set_parts(copy);
	return rc ? fail(target, area_addr, rc, err) : check_total(copy, target, err);
}

/* Allocates the copy of a part. If the target lacks the memory, reading the part fails and no
 * further part is allocated. So at most one part is allocated in vain. */
static int room_for(struct tracer_part *part)
{
	if (part->bytes)
		part->copy = malloc((size_t)part->bytes);
	return part->bytes && !part->copy ? -ERR_NOMEM : 0;
}

static int read_bytes(
	struct target *target, const struct tracer_part *part, uint64_t at, uint64_t end)
{
	while (at < end) {
		size_t piece = end - at < READ_BYTES ? (size_t)(end - at) : READ_BYTES;

		if (target_read(target, part->addr + at, part->copy + at, piece))
			return -ERR_READ;
		at += piece;
	}
	return 0;
}

static int read_part(struct target *target, const struct tracer_part *part)
{
	return read_bytes(target, part, 0, part->bytes);
}

/* ---------------------------------------------------------------- reading changes */

/* Returns true if a part is still in the same place and all its changes are counted. If a thread
 * holds the lock of a shard, some changes may not be counted yet. */
static bool is_counted(const struct tracer_copy *copy, const struct tracer_area *last_area,
	size_t id, const struct tracer_part *last)
{
	const struct tracer_area *area = &copy->area;

	if (!last->copy || area->session != last_area->session ||
		copy->parts[id].addr != last->addr || copy->parts[id].bytes < last->bytes)
		return false;
	return id == PART_STACKS || (id < TRACER_SHARDS && !area->shards[id].lock);
}

/* Reads the changed pieces of a part, and the bytes by which the part has grown. */
static int read_changes(struct tracer_copy *copy, struct target *target, size_t id,
	const uint32_t *last_changes, uint64_t last_bytes)
{
	const struct tracer_part *part = &copy->parts[id];
	const uint32_t *changes = copy->area.changes[id];
	uint64_t from = 0;
	int rc = 0;

	for (uint64_t at = 0; !rc && at < last_bytes; at += TRACER_PIECE) {
		size_t count = tracer_count_of(at);

		if (changes[count] != last_changes[count])
			continue;
		/* [`from`, `at`) has changed */
		rc = read_bytes(target, part, from, at);
		copy->read_bytes += at - from;
		from = last_bytes - at < TRACER_PIECE ? last_bytes : at + TRACER_PIECE;
	}
	copy->read_bytes += part->bytes - from;
	return rc ? rc : read_bytes(target, part, from, part->bytes);
}

/* Reuses the unchanged pieces of the last reading and reads the rest. */
static int read_again(struct tracer_copy *copy, struct target *target, size_t id,
	const struct tracer_area *last_area, struct tracer_part *last)
{
	struct tracer_part *part = &copy->parts[id];

	if (!is_counted(copy, last_area, id, last)) {
		copy->read_bytes += part->bytes;
		return room_for(part) ? -ERR_NOMEM : read_part(target, part);
	}
	part->copy = last->copy;
	if (part->bytes > last->bytes)
		part->copy = realloc(last->copy, (size_t)part->bytes);
	if (!part->copy)
		return -ERR_NOMEM;
	last->copy = NULL;
	return read_changes(copy, target, id, last_area->changes[id], last->bytes);
}

int tracer_copy_read(
	struct tracer_copy *copy, struct target *target, uint64_t area_addr, struct err *err)
{
	struct tracer_area *last_area = malloc(sizeof(*last_area));
	struct tracer_part last[PART_COUNT];
	int rc, failed = 0;

	if (!last_area)
		return err_set(err, ERR_NOMEM, target->name, NULL);
	*last_area = copy->area;
	memcpy(last, copy->parts, sizeof(last));
	memset(copy->parts, 0, sizeof(copy->parts));
	rc = plan(copy, target, area_addr, err);
	copy->read_bytes = 0;
	for (size_t i = 0; !rc && !failed && i < PART_COUNT; i++)
		failed = read_again(copy, target, i, last_area, &last[i]);
	for (size_t i = 0; i < PART_COUNT; i++)
		free(last[i].copy);
	free(last_area);
	if (failed)
		rc = fail(target, area_addr, failed, err);
	if (rc)
		forget(copy);
	return rc;
}

void tracer_copy_mark(struct tracer_copy *copy, struct target *target, uint64_t area_addr)
{
	struct err ignored;

	if (!copy->since)
		copy->since = malloc(sizeof(*copy->since));
	if (copy->since && tracer_area_read(target, area_addr, copy->since, &ignored)) {
		free(copy->since);
		copy->since = NULL;
	}
}

int tracer_copy_read_unloads(
	struct tracer_copy *copy, struct target *target, uint64_t area_addr, struct err *err)
{
	struct tracer_part *modules = &copy->parts[PART_MODULES],
			   *unloads = &copy->parts[PART_UNLOADS];
	int rc = plan(copy, target, area_addr, err), failed = 0;

	if (rc)
		return rc;
	failed = room_for(unloads);
	failed = failed ? failed : room_for(modules);
	failed = failed ? failed : read_part(target, unloads);
	failed = failed ? failed : read_part(target, modules);
	failed = failed ? failed :
			  tracer_modules_parse(&copy->modules, modules->copy,
				  (size_t)modules->bytes, unloads->copy,
				  (size_t)unloads->bytes / sizeof(struct tracer_unload));
	if (!failed)
		return 0;
	forget(copy);
	return fail(target, area_addr, failed, err);
}

/* ---------------------------------------------------------------- parsing */

static size_t count_valid(const struct tracer_part *part)
{
	size_t count = 0;

	for (uint64_t at = 0; at < part->bytes; at += sizeof(struct tracer_block)) {
		uint64_t key;

		memcpy(&key, part->copy + at, sizeof(key));
		count += key != 0;
	}
	return count;
}

/* Returns true if the table of the shard has not changed near this offset since tracer_copy_mark().
 * The table may be changing if the lock of the shard is held. */
static bool is_unchanged(const struct tracer_copy *copy, size_t id, uint64_t offset)
{
	const struct tracer_area *now = &copy->area, *since = copy->since;
	const size_t count = tracer_count_of(offset);

	return since && since->session == now->session &&
	       since->shards[id].table == now->shards[id].table && !since->shards[id].lock &&
	       !now->shards[id].lock && since->changes[id][count] == now->changes[id][count];
}

static void copy_valid(struct tracer_copy *copy, size_t id)
{
	const struct tracer_part *part = &copy->parts[id];
	const uint64_t generation = (uint64_t)1 << (TRACER_ADDR_BITS + TRACER_HEAPS_LOG2);
	bool is_old = false;

	for (uint64_t at = 0; at < part->bytes; at += sizeof(struct tracer_block)) {
		struct tracer_block *block = &copy->blocks[copy->block_count];

		if (at % TRACER_PIECE == 0)
			is_old = is_unchanged(copy, id, at);
		memcpy(block, part->copy + at, sizeof(*block));
		copy->block_count += block->key && tracer_block_is_live(&copy->area, block);
		block->key = (block->key & (generation - 1)) | (is_old ? generation : 0);
	}
}

static int parse_blocks(struct tracer_copy *copy)
{
	size_t count = 0;

	for (size_t i = 0; i < TRACER_SHARDS; i++)
		count += count_valid(&copy->parts[i]);
	/* Allocate one entry more than needed. copy_valid() copies an entry before it checks the
	 * entry, so an invalid entry may be copied after the last valid one. */
	copy->blocks = malloc((count + 1) * sizeof(*copy->blocks));
	if (!copy->blocks)
		return -ERR_NOMEM;
	for (size_t i = 0; i < TRACER_SHARDS; i++) {
		copy_valid(copy, i);
		free(copy->parts[i].copy);
		copy->parts[i] = (struct tracer_part){0};
	}
	return 0;
}

int tracer_copy_parse(
	struct tracer_copy *copy, struct target *target, uint64_t area_addr, struct err *err)
{
	const struct tracer_part *modules = &copy->parts[PART_MODULES],
				 *unloads = &copy->parts[PART_UNLOADS],
				 *ranges = &copy->parts[PART_RANGES];
	int rc = parse_blocks(copy);

	if (!rc)
		rc = tracer_modules_parse(&copy->modules, modules->copy, (size_t)modules->bytes,
			unloads->copy, (size_t)unloads->bytes / sizeof(struct tracer_unload));
	tracer_ranges_parse(
		&copy->ranges, ranges->copy, (size_t)ranges->bytes / sizeof(struct tracer_range));
	if (!rc)
		return 0;
	forget(copy);
	return fail(target, area_addr, rc, err);
}

void tracer_copy_sort(struct tracer_copy *copy)
{
	size_t kept = 0;

	if (!copy->block_count)
		return;
	tracer_blocks_sort(copy->blocks, copy->block_count);
	for (size_t i = 1; i < copy->block_count; i++) {
		if (tracer_block_addr(&copy->blocks[i]) != tracer_block_addr(&copy->blocks[kept]))
			copy->blocks[++kept] = copy->blocks[i];
	}
	copy->block_count = kept + 1;
	tracer_index_release(&copy->index);
	tracer_index_build(&copy->index, copy->blocks, copy->block_count);
}

const struct tracer_block *tracer_copy_find(const struct tracer_copy *copy, uint64_t addr)
{
	const struct tracer_index *index = &copy->index;
	size_t low = 0, high = copy->block_count;

	if (addr >> TRACER_ADDR_BITS)
		return NULL;
	if (index->starts) {
		if (addr < index->first || tracer_index_part(index, addr) >= index->part_count)
			return NULL;
		low = index->starts[tracer_index_part(index, addr)];
		high = index->starts[tracer_index_part(index, addr) + 1];
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		uint64_t there = tracer_block_addr(&copy->blocks[middle]);

		if (there == addr)
			return &copy->blocks[middle];
		if (there < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

bool tracer_copy_matches(const struct tracer_copy *copy, const struct tracer_block *block,
	uint64_t heap, uint64_t bytes)
{
	return tracer_block_bytes(block) == bytes &&
	       (!tracer_block_heap(block) || tracer_copy_heap(copy, block) == heap);
}

uint64_t tracer_copy_heap(const struct tracer_copy *copy, const struct tracer_block *block)
{
	return tracer_heap_handle(&copy->area, tracer_block_heap(block));
}

/* Resolves a frame. If an unload at the frame's address could not be recorded, the frame does not
 * belong to the module that is there now. */
static uint64_t resolve(const struct tracer_copy *copy, uint32_t born, uint64_t frame)
{
	uint64_t found = tracer_modules_resolve(&copy->modules, born, frame);

	if (found == frame && frame && tracer_unload_is_lost(&copy->area, born, frame - 1))
		return TRACER_LOST_BASE + frame;
	return found;
}

uint32_t tracer_copy_stack(
	const struct tracer_copy *copy, uint32_t id, uint64_t frames[TRACER_DEPTH_MAX])
{
	const struct tracer_part *stacks = &copy->parts[PART_STACKS];
	uint64_t at = (uint64_t)id * 8;
	struct tracer_stack head;

	if (!id || stacks->bytes < sizeof(head) || at > stacks->bytes - sizeof(head))
		return 0;
	memcpy(&head, stacks->copy + at, sizeof(head));
	at += sizeof(head);
	if (!head.depth || head.depth > TRACER_DEPTH_MAX || head.depth * 8u > stacks->bytes - at)
		return 0;
	memcpy(frames, stacks->copy + at, head.depth * 8u);
	for (uint32_t i = 0; head.born < copy->area.unload_count && i < head.depth; i++)
		frames[i] = resolve(copy, head.born, frames[i]);
	return head.depth;
}
