/* The rows whose blocks keep almost unused containers allocated, and the memory that freeing these
 * blocks would release. The dump lists the containers. */
#include <stdlib.h>

#include "core/base/memory.h"
#include "core/base/sorted.h"
#include "diff/query/view.h"

#define PIN_STACKLESS (ROW_NONE - 1) /* stands for the blocks without a stack */

/* A row's blocks in a container. */
struct pin {
	uint32_t container, row; /* row: ROW_NONE for blocks that are in no row; or PIN_STACKLESS */
	struct block_totals blocks;
};

struct pinning {
	const struct comparison *comparison;
	const struct dump_sums *dump;
	struct pinned_view *pinned;
	struct dump_container *containers; /* sorted by address, without overlaps */
	uint32_t count;
	struct pin *pins;
	size_t pin_count, pin_cap;
};

static int by_addr(const void *a, const void *b)
{
	const struct dump_container *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

/* Copies the dump's containers, sorted by address. Drops containers that overlap others, which
 * exist only in damaged dumps. */
static void sort_containers(struct pinning *pinning)
{
	const struct single_blocks *single = &pinning->dump->single;
	struct pinned_view *pinned = pinning->pinned;
	uint64_t end = 0;

	pinning->containers = xcalloc(single->container_count + 1, sizeof(*pinning->containers));
	for (size_t i = 0; i < single->container_count; i++)
		pinning->containers[i] = single->containers[i];
	qsort(pinning->containers, single->container_count, sizeof(*pinning->containers), by_addr);
	for (size_t i = 0; i < single->container_count; i++) {
		const struct dump_container container = pinning->containers[i];

		if (container.addr < end)
			continue;
		end = container.end;
		pinning->containers[pinning->count++] = container;
		pinned->committed_bytes += container.committed_bytes;
		block_totals_add(&pinned->blocks, &container.blocks);
	}
	pinned->container_count = pinning->count;
	pinned->left_count = single->container_left_count;
}

static void add_pin(struct pinning *pinning, const struct pin *pin)
{
	array_grow((void **)&pinning->pins, &pinning->pin_cap, pinning->pin_count, sizeof(*pin));
	pinning->pins[pinning->pin_count++] = *pin;
}

static void add_listed(struct pinning *pinning)
{
	const struct single_blocks *single = &pinning->dump->single;
	const uint32_t *rows = pinning->comparison->cell_rows[0];

	for (size_t i = 0; i < single->listed_count; i++) {
		const struct listed_block *block = &single->listed[i];
		const size_t next = sorted_up_to(pinning->containers, pinning->count,
			sizeof(*pinning->containers), offsetof(struct dump_container, addr),
			block->addr);

		if (!next || pinning->containers[next - 1].end <= block->addr)
			continue;
		add_pin(pinning, &(struct pin){(uint32_t)next - 1,
					 block->cell == CELL_NONE ? ROW_NONE : rows[block->cell],
					 {1, block->requested_bytes, 0}});
	}
}

/* Adds the blocks without a stack, which dumps do not list: what the containers have besides the
 * listed blocks. */
static void add_stackless(struct pinning *pinning)
{
	struct block_totals *listed = xcalloc(pinning->count + 1, sizeof(*listed));

	for (size_t i = 0; i < pinning->pin_count; i++)
		block_totals_add(&listed[pinning->pins[i].container], &pinning->pins[i].blocks);
	for (uint32_t i = 0; i < pinning->count; i++) {
		const struct block_totals *all = &pinning->containers[i].blocks;
		const uint64_t bytes = all->requested_bytes > listed[i].requested_bytes ?
					       all->requested_bytes - listed[i].requested_bytes :
					       0;

		if (all->block_count > listed[i].block_count)
			add_pin(pinning,
				&(struct pin){i, PIN_STACKLESS,
					{all->block_count - listed[i].block_count, bytes, 0}});
	}
	free(listed);
}

static int by_container(const void *a, const void *b)
{
	const struct pin *x = a, *y = b;

	if (x->container != y->container)
		return x->container < y->container ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

/* Returns count / all of the bytes, rounded down. The products cannot overflow, because counts have
 * at most 32 bits. */
static uint64_t part_of(uint64_t bytes, uint64_t count, uint64_t all)
{
	return bytes / all * count + bytes % all * count / all;
}

/* Adds a container's rows. `pins` are all its pins, sorted by row. */
static void add_owners(struct pinning *pinning, const struct pin *pins, size_t count)
{
	const uint64_t bytes = pinning->containers[pins->container].committed_bytes;
	const bool is_shared = pins[0].row != pins[count - 1].row;
	uint64_t all = 0, of_row = 0;

	for (size_t i = 0; i < count; i++)
		all += pins[i].blocks.block_count;

	for (size_t i = 0; i < count; i++) {
		struct row_pinned *row;

		if (pins[i].row == ROW_NONE)
			continue;
		row = pins[i].row == PIN_STACKLESS ? &pinning->pinned->stackless :
						     &pinning->pinned->rows[pins[i].row];
		block_totals_add(&row->blocks, &pins[i].blocks);
		of_row += pins[i].blocks.block_count;
		if (i + 1 < count && pins[i + 1].row == pins[i].row)
			continue;
		row->part_bytes += part_of(bytes, of_row, all);
		of_row = 0;
		row->container_count++;
		*(is_shared ? &row->shared_bytes : &row->alone_bytes) += bytes;
	}
}

void view_find_pinned(struct view *view)
{
	const struct comparison *comparison = view->comparison;
	struct pinning pinning = {
		.comparison = comparison, .dump = comparison->dumps, .pinned = &view->pinned};
	size_t first = 0;

	view->pinned.rows =
		arena_alloc(&view->arena, (comparison->row_count + 1) * sizeof(*view->pinned.rows));
	for (size_t i = 0; i < comparison->row_count; i++)
		view->pinned.rows[i] = (struct row_pinned){0};
	sort_containers(&pinning);
	add_listed(&pinning);
	add_stackless(&pinning);
	if (pinning.pin_count)
		qsort(pinning.pins, pinning.pin_count, sizeof(*pinning.pins), by_container);
	for (size_t i = 0; i < pinning.pin_count; i++) {
		if (i + 1 < pinning.pin_count &&
			pinning.pins[i + 1].container == pinning.pins[i].container)
			continue;
		add_owners(&pinning, &pinning.pins[first], i + 1 - first);
		first = i + 1;
	}
	free(pinning.containers);
	free(pinning.pins);
}
