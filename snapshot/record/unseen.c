/* Walks of the heaps during a recording. They find blocks that were freed without an event. */
#include <stddef.h>
#include <stdlib.h>

#include "core/base/os.h"
#include "core/base/sorted.h"
#include "snapshot/heap/heap.h"
#include "snapshot/record/replay.h"

#define TRIES_MAX 100 /* tries while a thread is inside a heap */
#define RETRY_MS 1

static bool read_orders(struct target *target, uint64_t area_addr, uint32_t orders[RING_STREAMS])
{
	for (unsigned i = 0; i < TRACER_SHARDS; i++) {
		const uint64_t addr = area_addr + offsetof(struct tracer_area, shards) +
				      i * sizeof(struct tracer_shard) +
				      offsetof(struct tracer_shard, order);

		if (target_u32(target, addr, &orders[i]))
			return false;
	}
	return !target_u32(target,
		area_addr + offsetof(struct tracer_area, ranges) +
			offsetof(struct tracer_ranges, order),
		&orders[RING_RANGES]);
}

/* Returns true if the walk found every block of every heap. */
static bool is_whole(const struct walk *walk)
{
	bool result = walk_is_sound(walk) && !walk->doubt_count && !walk->busy_count;

	for (size_t i = 0; result && i < walk->heap_count; i++)
		result = !walk->heaps[i].unwalked;
	return result;
}

static bool try_once(struct heap_look *look, struct target *target, uint64_t area_addr,
	struct memory *memory, struct walk *walk)
{
	bool result;

	if (target->ops->suspend(target, NULL))
		return false;
	walk_clear(walk);
	memory_clear(memory);
	result = !heaps_are_busy(target) && read_orders(target, area_addr, look->orders) &&
		 !heaps_walk(memory, NULL, walk, NULL) && is_whole(walk);
	target->ops->resume(target);
	return result;
}

static bool copy_addrs(struct heap_look *look, const struct walk *walk)
{
	look->addrs = malloc((walk->block_count + 1) * sizeof(*look->addrs));
	if (!look->addrs)
		return false;
	for (size_t i = 0; i < walk->block_count; i++)
		look->addrs[i] = walk->blocks[i].addr;
	look->count = sorted_unique(look->addrs, walk->block_count);
	return true;
}

bool heap_look_capture(struct heap_look *look, struct target *target, uint64_t area_addr)
{
	struct memory memory;
	struct walk walk;
	bool result = false;

	*look = (struct heap_look){0};
	if (memory_init(&memory, target))
		return false;
	walk_init(&walk);
	for (int i = 0; !result && i < TRIES_MAX && target->ops->is_alive(target); i++) {
		if (i)
			os_sleep_ms(RETRY_MS);
		result = try_once(look, target, area_addr, &memory, &walk);
	}
	result = result && copy_addrs(look, &walk);
	walk_release(&walk);
	memory_release(&memory);
	return result;
}

void heap_look_release(struct heap_look *look)
{
	free(look->addrs);
	*look = (struct heap_look){0};
}

bool heap_look_has(const void *look, uint64_t addr)
{
	const struct heap_look *taken = look;
	size_t at = sorted_below(taken->addrs, taken->count, sizeof(*taken->addrs), 0, addr);

	return at < taken->count && taken->addrs[at] == addr;
}
