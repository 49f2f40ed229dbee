#include "core/model.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/buf.h"

void snapshot_init(struct snapshot *snapshot)
{
	*snapshot = (struct snapshot){0};
	arena_init(&snapshot->arena);
	stackset_init(&snapshot->stacks);
}

void snapshot_release(struct snapshot *snapshot)
{
	free(snapshot->modules);
	free(snapshot->heaps);
	free(snapshot->blocks);
	free(snapshot->sums);
	free(snapshot->warnings);
	stackset_release(&snapshot->stacks);
	arena_release(&snapshot->arena);
	snapshot_init(snapshot);
}

static void *item_add(void **items, size_t *cap, size_t *count, size_t item_bytes)
{
	char *item;

	if (array_grow(items, cap, *count, item_bytes))
		return NULL;
	item = (char *)*items + (*count)++ * item_bytes;
	return memset(item, 0, item_bytes);
}

struct module *snapshot_add_module(struct snapshot *snapshot)
{
	return item_add((void **)&snapshot->modules, &snapshot->module_cap, &snapshot->module_count,
		sizeof(*snapshot->modules));
}

struct heap *snapshot_add_heap(struct snapshot *snapshot)
{
	return item_add((void **)&snapshot->heaps, &snapshot->heap_cap, &snapshot->heap_count,
		sizeof(*snapshot->heaps));
}

struct block *snapshot_add_block(struct snapshot *snapshot)
{
	return item_add((void **)&snapshot->blocks, &snapshot->block_cap, &snapshot->block_count,
		sizeof(*snapshot->blocks));
}

struct block_sum *snapshot_add_sum(struct snapshot *snapshot)
{
	return item_add((void **)&snapshot->sums, &snapshot->sum_cap, &snapshot->sum_count,
		sizeof(*snapshot->sums));
}

/* By address: what a heading is called, and its kind in notes. */
static const char *const headings[][2] = {
	[HEAP_VIRTUAL] = {"VirtualAlloc", "virtual"},
	[HEAP_RESERVED] = {"VirtualAlloc reserved", "reserved"},
	[HEAP_MAPPED] = {"Mapped", "mapped"},
};

#define HEADINGS (sizeof(headings) / sizeof(*headings))

const char *heap_name(uint64_t addr)
{
	return addr < HEADINGS ? headings[addr][0] : NULL;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

static bool is_same_word(const char *a, const char *b)
{
	while (*a && lower(*a) == lower(*b)) {
		a++;
		b++;
	}
	return !*a && !*b;
}

uint64_t heap_by_name(const char *name)
{
	for (uint64_t i = HEAP_VIRTUAL; i < HEADINGS; i++) {
		if (is_same_word(name, headings[i][0]) || is_same_word(name, headings[i][1]))
			return i;
	}
	return 0;
}

int snapshot_reserve_blocks(struct snapshot *snapshot, size_t more)
{
	size_t wanted = snapshot->block_count + more;
	void *grown;

	if (more <= snapshot->block_cap - snapshot->block_count)
		return 0;
	if (wanted < more || wanted > SIZE_MAX / sizeof(*snapshot->blocks))
		return -ERR_NOMEM;
	grown = realloc(snapshot->blocks, wanted * sizeof(*snapshot->blocks));
	if (!grown)
		return -ERR_NOMEM;
	snapshot->blocks = grown;
	snapshot->block_cap = wanted;
	return 0;
}

static void add_warning(struct snapshot *snapshot, const char *format, va_list args)
{
	char text[400];
	const char *copy;
	const char **slot;

	vsnprintf(text, sizeof(text), format, args);
	copy = arena_text(&snapshot->arena, text, strlen(text));
	slot = copy ? item_add((void **)&snapshot->warnings, &snapshot->warning_cap,
			      &snapshot->warning_count, sizeof(*slot)) :
		      NULL;
	if (slot)
		*slot = copy;
}

void snapshot_warn(struct snapshot *snapshot, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add_warning(snapshot, format, args);
	va_end(args);
}

void snapshot_lacks(struct snapshot *snapshot, const char *format, ...)
{
	va_list args;

	snapshot->missing_count++;
	va_start(args, format);
	add_warning(snapshot, format, args);
	va_end(args);
}

struct census snapshot_total(const struct snapshot *snapshot)
{
	struct census total = {.block_count = snapshot->block_count};

	for (size_t i = 0; i < snapshot->block_count; i++) {
		total.requested_bytes += snapshot->blocks[i].requested_bytes;
		total.overhead_bytes += snapshot->blocks[i].overhead_bytes;
	}
	for (size_t i = 0; i < snapshot->sum_count; i++) {
		const struct block_sum *sum = &snapshot->sums[i];

		total.block_count += sum->block_count;
		total.requested_bytes += sum->requested_bytes;
		total.overhead_bytes += sum->overhead_bytes;
	}
	for (size_t i = 0; i < snapshot->heap_count; i++) {
		const struct census *stackless = &snapshot->heaps[i].stackless;

		total.block_count += stackless->block_count;
		total.requested_bytes += stackless->requested_bytes;
		total.overhead_bytes += stackless->overhead_bytes;
		total.overhead_bytes += snapshot->heaps[i].rest_overhead_bytes;
	}
	return total;
}

static int by_base(const void *a, const void *b)
{
	const struct module *x = a, *y = b;

	return x->base < y->base ? -1 : x->base > y->base;
}

void modules_sort(struct module *modules, size_t count)
{
	if (count)
		qsort(modules, count, sizeof(*modules), by_base);
}

const struct module *module_at(const struct module *modules, size_t count, uint64_t addr)
{
	size_t low = 0;

	while (count) { /* the last module whose base is not above addr */
		size_t half = count / 2;

		if (modules[low + half].base <= addr) {
			low += half + 1;
			count -= half + 1;
		} else {
			count = half;
		}
	}
	if (!low || addr - modules[low - 1].base >= modules[low - 1].size_bytes)
		return NULL;
	return &modules[low - 1];
}

const struct module *module_of_return(const struct module *modules, size_t count, uint64_t addr)
{
	const struct module *module = addr ? module_at(modules, count, addr - 1) : NULL;

	return module ? module : module_at(modules, count, addr);
}

const char *path_base(const char *path)
{
	const char *base = path;

	for (; *path; path++) {
		if (*path == '/' || *path == '\\')
			base = path + 1;
	}
	return base;
}
