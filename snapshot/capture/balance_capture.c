/*
 * The balance of a process: attributes each range of its address space to one part.
 *
 * Ranges with the same AllocationBase form an allocation. Marks decide the part to which a private
 * allocation belongs: addresses of stacks, of the tracer, of TEBs and PEBs, and of heaps and their
 * blocks. Private allocations without a mark are "virtual". The parts therefore add up to the sum
 * of all ranges by construction.
 */
#include <stdlib.h>

#include "core/base/memory.h"
#include "core/dump/balance.h"
#include "snapshot/capture/capture_parts.h"
#include "snapshot/target/nt_process.h"
#include "snapshot/target/peb_layout.h"

/* Parts to which a mark can assign an allocation. If an allocation has several marks, the highest
 * part counts: PEB and TEBs may share an allocation with other data. */
enum owner {
	OWNER_NONE,
	OWNER_HEAP,
	OWNER_SYSTEM,
	OWNER_TRACER,
	OWNER_STACK,
};

struct allocation {
	uint64_t addr, end;
	uint64_t committed_bytes;
	enum owner owner;
};

struct balancing {
	struct allocation *allocations; /* private allocations, in ascending order */
	size_t count, cap;
	size_t recent; /* index of the allocation that was found last */
	struct balance *balance;
};

static void add_bytes(struct balance *balance, enum balance_figure part, uint64_t bytes)
{
	balance_set(balance, part, balance->figures[part] + bytes);
}

static void add_private(struct balancing *balancing, const struct target_memory *memory)
{
	struct allocation *last =
		balancing->count ? &balancing->allocations[balancing->count - 1] : NULL;

	if (!last || last->addr != memory->allocation) {
		array_grow((void **)&balancing->allocations, &balancing->cap, balancing->count,
			sizeof(*balancing->allocations));
		last = &balancing->allocations[balancing->count++];
		*last = (struct allocation){.addr = memory->allocation};
	}
	last->end = memory->end;
	if (memory->is_committed)
		last->committed_bytes += memory->end - memory->addr;
}

static void add_memory(struct balancing *balancing, const struct target_memory *memory)
{
	const bool is_image = memory->type == TARGET_IMAGE;

	if (memory->type == TARGET_PRIVATE)
		add_private(balancing, memory);
	else if (memory->is_committed && memory->is_copy)
		add_bytes(balancing->balance, is_image ? BALANCE_IMAGE_COPIES : BALANCE_VIEW_COPIES,
			memory->end - memory->addr);
	else if (memory->is_committed)
		add_bytes(balancing->balance, is_image ? BALANCE_IMAGES : BALANCE_MAPPED,
			memory->end - memory->addr);
}

/* Returns the private allocation that contains `addr`, or NULL. */
static struct allocation *find(struct balancing *balancing, uint64_t addr)
{
	struct allocation *all = balancing->allocations;
	size_t low = 0, high = balancing->count;

	if (balancing->recent < high && addr >= all[balancing->recent].addr &&
		addr < all[balancing->recent].end)
		return &all[balancing->recent];
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (all[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == balancing->count || all[low].addr > addr)
		return NULL;
	balancing->recent = low;
	return &all[low];
}

static void mark(struct balancing *balancing, uint64_t addr, enum owner owner)
{
	struct allocation *allocation = addr ? find(balancing, addr) : NULL;

	if (allocation && allocation->owner < owner)
		allocation->owner = owner;
}

static void add_block(
	struct balancing *balancing, uint64_t addr, uint64_t requested, uint64_t overhead)
{
	struct allocation *allocation = find(balancing, addr);

	/* a block outside of private memory was freed while the process ran */
	if (!allocation)
		return;
	if (allocation->owner < OWNER_HEAP)
		allocation->owner = OWNER_HEAP;
	add_bytes(balancing->balance, BALANCE_BLOCKS, requested);
	add_bytes(balancing->balance, BALANCE_OVERHEAD, overhead);
}

/* Adds the blocks of heaps that only the tracer knows. */
static void add_traced(struct balancing *balancing, const struct raw_capture *captured)
{
	const struct walk *walk = &captured->walk;
	const struct tracer_copy *tracer = &captured->tracer;
	struct u64map unwalked; /* address of a heap -> unused */
	uint32_t unused = 0;

	u64map_init(&unwalked);
	for (size_t i = 0; i < walk->heap_count; i++) {
		if (walk->heaps[i].unwalked)
			u64map_add(&unwalked, walk->heaps[i].addr, &unused);
	}
	for (size_t i = 0; unwalked.index.count && i < tracer->block_count; i++) {
		const struct tracer_block *traced = &tracer->blocks[i];

		if (u64map_find(&unwalked, tracer_copy_heap(tracer, traced), &unused))
			add_block(balancing, tracer_block_addr(traced), tracer_block_bytes(traced),
				0);
	}
	u64map_release(&unwalked);
}

/* Marks the memory of heaps, and adds up their blocks. */
static void mark_heaps(struct balancing *balancing, const struct walk *walk)
{
	for (size_t i = 0; i < walk->heap_count; i++)
		mark(balancing, walk->heaps[i].addr, OWNER_HEAP);
	for (size_t i = 0; i < walk->own_count; i++)
		mark(balancing, walk->own[i], OWNER_HEAP);
	for (size_t i = 0; i < walk->block_count; i++) {
		const struct block *block = &walk->blocks[i];

		add_block(balancing, block->addr, block->requested_bytes, block->overhead_bytes);
	}
}

/*
 * Wine's threads have a second stack, on which Wine's system calls run. Wine stores its address in
 * the thread's GdiTebBatch, at an offset that depends on the version. Marks each allocation at whose
 * start one of these words points, unless it has an owner.
 */
static void mark_wine_stack(
	struct balancing *balancing, struct target *target, const struct target_teb *teb)
{
	const unsigned word = teb->bits / 8;
	unsigned char batch[TEB_BATCH_BYTES];

	if (target_read(target, teb->addr + peb_layout(teb->bits)->teb_batch, batch, sizeof(batch)))
		return;
	for (size_t i = 0; i + word <= sizeof(batch); i += word) {
		const uint64_t addr = word == 8 ? bytes_u64(batch + i) : bytes_u32(batch + i);
		struct allocation *allocation = addr ? find(balancing, addr) : NULL;

		if (allocation && allocation->addr == addr && allocation->owner == OWNER_NONE)
			allocation->owner = OWNER_STACK;
	}
}

static int by_addr(const void *a, const void *b)
{
	const struct thread_stack *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Marks the TEBs and the stacks of all threads, and lists the stacks. */
static void mark_threads(struct balancing *balancing, struct target *target,
	const struct target_teb *tebs, size_t count, struct raw_capture *captured)
{
	captured->thread_stacks = xcalloc(count + 1, sizeof(*captured->thread_stacks));
	for (size_t i = 0; i < count; i++) {
		const struct target_teb *teb = &tebs[i];
		const unsigned word = teb->bits / 8;
		const struct allocation *allocation;
		unsigned char bytes[8] = {0};
		uint64_t stack;

		mark(balancing, teb->addr, OWNER_SYSTEM);
		if (target_read(target, teb->addr + peb_layout(teb->bits)->teb_stack, bytes, word))
			continue;
		stack = word == 8 ? bytes_u64(bytes) : bytes_u32(bytes);
		mark(balancing, stack, OWNER_STACK);
		allocation = find(balancing, stack);
		if (allocation && allocation->addr == stack &&
			block_fits(stack, allocation->end - stack))
			captured->thread_stacks[captured->thread_stack_count++] =
				(struct thread_stack){stack, allocation->end - stack,
					allocation->committed_bytes};
		if (target->is_wine)
			mark_wine_stack(balancing, target, teb);
	}
	qsort(captured->thread_stacks, captured->thread_stack_count,
		sizeof(*captured->thread_stacks), by_addr);
}

/* Adds the private allocations to their parts. */
static void add_up(struct balancing *balancing)
{
	static const enum balance_figure parts[] = {
		[OWNER_NONE] = BALANCE_VIRTUAL,
		[OWNER_SYSTEM] = BALANCE_SYSTEM,
		[OWNER_TRACER] = BALANCE_TRACER,
		[OWNER_STACK] = BALANCE_STACKS,
	};
	struct balance *balance = balancing->balance;
	uint64_t heaps = 0, reserved = 0;

	for (size_t i = 0; i < balancing->count; i++) {
		const struct allocation *allocation = &balancing->allocations[i];

		if (allocation->owner == OWNER_HEAP)
			heaps += allocation->committed_bytes;
		else
			add_bytes(balance, parts[allocation->owner], allocation->committed_bytes);
		if (allocation->owner == OWNER_STACK)
			reserved += allocation->end - allocation->addr;
	}
	balance_set(balance, BALANCE_STACKS_RESERVED, reserved);
	/* The process may have run since the walk, so the heaps may have shrunk. */
	if (balance->figures[BALANCE_BLOCKS] > heaps)
		balance_set(balance, BALANCE_BLOCKS, heaps);
	heaps -= balance->figures[BALANCE_BLOCKS];
	if (balance->figures[BALANCE_OVERHEAD] > heaps)
		balance_set(balance, BALANCE_OVERHEAD, heaps);
	balance_set(balance, BALANCE_FREE, heaps - balance->figures[BALANCE_OVERHEAD]);
}

/* Attributes the address space to parts. If it cannot be listed, no part is known. */
static void attribute(struct target *target, struct raw_capture *captured, struct balance *balance,
	const struct target_teb *tebs, size_t teb_count)
{
	struct balancing balancing = {.balance = balance};
	struct target_memory *space = NULL;
	size_t count = 0;

	if (target->ops->space(target, &space, &count))
		return;
	for (int i = BALANCE_FIRST_PART; i <= BALANCE_IMAGES; i++)
		balance_set(balance, i, 0);
	for (size_t i = 0; i < count; i++)
		add_memory(&balancing, &space[i]);
	free(space);
	mark_heaps(&balancing, &captured->walk);
	add_traced(&balancing, captured);
	mark(&balancing, target->peb, OWNER_SYSTEM);
	mark(&balancing, target->host_peb, OWNER_SYSTEM);
	if (captured->source.has_tracer)
		mark(&balancing, captured->tracer.area.reserved, OWNER_TRACER);
	mark_threads(&balancing, target, tebs, teb_count, captured);
	add_up(&balancing);
	free(balancing.allocations);
}

/* Reports missing figures of a live process. A process that has exited meanwhile has none. */
static void warn_of_gaps(struct target *target, struct snapshot *snapshot)
{
	const struct balance *balance = &snapshot->balance;

	if (target->is_file || !target->ops->is_alive(target))
		return;
	if (!balance_knows(balance, BALANCE_FIRST_PART))
		snapshot_warn(snapshot,
			"the threads or the memory of the process could not be listed, so the "
			"parts of its private memory are not known");
	if (!balance_knows(balance, BALANCE_THREADS))
		snapshot_warn(snapshot, "the number of threads of the process is not known");
}

void balance_capture(struct target *target, struct raw_capture *captured, struct snapshot *snapshot)
{
	struct balance *balance = &snapshot->balance;
	struct target_teb *tebs = NULL;
	size_t count = 0;

	if (!target->ops->count)
		return;
	target->ops->count(target, balance, &snapshot->arena);
	balance_sort_handles(balance);
	/* Without the TEBs, stacks would count as "virtual". */
	if (!target->ops->tebs(target, &tebs, &count))
		attribute(target, captured, balance, tebs, count);
	free(tebs);
	warn_of_gaps(target, snapshot);
}
