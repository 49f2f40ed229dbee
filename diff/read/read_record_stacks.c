/* The modules and stacks of a recording, as a dump of one moment would have them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "diff/read/read_record.h"

#define GRANULE UINT64_C(0x10000) /* modules start at multiples of this size */
#define ID_BYTES 20

/* Data for placing a module of the recording at an address. */
struct placing {
	bool is_loaded, is_used; /* loaded at the moment; used by a stack */
};

/* A module while modules are sorted. */
struct placing_order {
	const struct module *module;
	uint32_t number;
	bool is_loaded;
};

/* Orders loaded modules before others, then by base. Of modules with the same base, the one with
 * the highest number comes first. */
static int by_place(const void *a, const void *b)
{
	const struct placing_order *x = a, *y = b;

	if (x->is_loaded != y->is_loaded)
		return x->is_loaded ? -1 : 1;
	if (x->module->base != y->module->base)
		return x->module->base < y->module->base ? -1 : 1;
	return x->number > y->number ? -1 : x->number < y->number;
}

/* Finds the modules that are loaded at a given time. */
static void find_loaded(struct record_reader *reader, uint64_t time_ms)
{
	const struct record_facts *facts = reader->facts;

	for (size_t i = 0; i < facts->module_count; i++)
		reader->places[i].is_loaded = true;
	/* A module whose first event is a load was not loaded before. */
	for (size_t i = facts->load_count; i--;)
		reader->places[facts->loads[i].module].is_loaded = !facts->loads[i].is_loaded;
	for (size_t i = 0; i < facts->load_count && facts->loads[i].time_ms <= time_ms; i++)
		reader->places[facts->loads[i].module].is_loaded = facts->loads[i].is_loaded;
}

static struct placing_order *modules_in_order(const struct record_reader *reader)
{
	const struct record_facts *facts = reader->facts;
	struct placing_order *order = xcalloc(facts->module_count + 1, sizeof(*order));

	for (uint32_t i = 0; i < facts->module_count; i++)
		order[i] =
			(struct placing_order){&facts->modules[i], i, reader->places[i].is_loaded};
	qsort(order, facts->module_count, sizeof(*order), by_place);
	return order;
}

/* Returns an unused address after all modules. Modules whose own address was reused are placed
 * there. Returns 0 if no address is left. */
static uint64_t spare_place(const struct record_facts *facts)
{
	uint64_t spare = facts->bits == 32 ? UINT64_C(1) << 31 : UINT64_C(1) << 47;

	for (uint32_t i = 0; i < facts->module_count; i++) {
		const struct module *module = &facts->modules[i];
		uint64_t end;

		if (__builtin_add_overflow(module->base, module->size_bytes, &end) ||
			end > UINT64_MAX - 2 * GRANULE)
			return 0;
		if (end > spare)
			spare = end;
	}
	return (spare + GRANULE - 1) & ~(GRANULE - 1);
}

const char *record_reader_text(struct arena *arena, const char *text)
{
	return text ? arena_text(arena, text, strlen(text)) : NULL;
}

/* Assigns an address to each module. A module that is not loaded, or that overlaps another module,
 * gets a separate address, as in dumps. */
void record_reader_place(struct record_reader *reader, uint64_t time_ms)
{
	const struct record_facts *facts = reader->facts;
	struct placing_order *order;
	uint64_t spare = spare_place(facts), end = 0, *bases;

	reader->places = xcalloc(facts->module_count + 1, sizeof(*reader->places));
	bases = arena_alloc(&reader->sums->arena, (facts->module_count + 1) * sizeof(*bases));
	reader->sums->window.module_bases = bases;
	find_loaded(reader, time_ms);
	order = modules_in_order(reader);
	for (uint32_t i = 0; i < facts->module_count; i++) {
		const struct module *module = order[i].module;
		uint64_t base = module->base, bytes = module->size_bytes;

		if ((!order[i].is_loaded || (i && base < end)) && spare &&
			spare <= UINT64_MAX - bytes - 2 * GRANULE) {
			base = spare;
			spare += (bytes + 2 * GRANULE - 1) & ~(GRANULE - 1);
		} else if (base + bytes > end) {
			end = base + bytes;
		}
		bases[order[i].number] = base;
	}
	free(order);
}

/* Copies the modules that are loaded, or that occur in stacks. For a window, copies all modules,
 * because any of them may occur in the stacks of frees. */
void record_reader_copy_modules(struct record_reader *reader)
{
	const struct record_facts *facts = reader->facts;
	struct dump_sums *sums = reader->sums;

	sums->module_list.items =
		xcalloc(facts->module_count + 1, sizeof(*sums->module_list.items));
	for (uint32_t i = 0; i < facts->module_count; i++) {
		const struct placing *place = &reader->places[i];
		uint64_t base = sums->window.module_bases[i];
		struct module *module = &sums->module_list.items[sums->module_list.count];

		if (!place->is_loaded && !place->is_used && sums->window.fate == FATE_LIVE)
			continue;
		*module = facts->modules[i];
		module->path = record_reader_text(&sums->module_list.texts, module->path);
		module->pdb = record_reader_text(&sums->module_list.texts, module->pdb);
		module->pdb_guid = record_reader_text(&sums->module_list.texts, module->pdb_guid);
		module->unloaded_at = base != module->base ? module->base : 0;
		module->base = base;
		sums->module_list.count++;
	}
	modules_sort(sums->module_list.items, sums->module_list.count);
}

uint32_t record_stack_id(const struct record_facts *facts, uint32_t stack)
{
	return stack == RECORD_NO_STACK || !facts->stacks[stack].frame_count ? 0 : stack + 1;
}

void record_stack_addrs(
	const struct dump_sums *sums, const struct record_stack *stack, uint64_t *frames)
{
	for (uint32_t i = 0; i < stack->frame_count; i++) {
		const struct record_frame *frame = &stack->frames[i];

		frames[i] = frame->offset;
		if (frame->module != RECORD_NO_MODULE)
			frames[i] += sums->window.module_bases[frame->module];
	}
}

/* Returns the number in the sums of stack `number` of the recording. Adds the stack to the sums if
 * it is new. Returns STACK_NONE if no frame of the stack is known. */
uint32_t record_reader_stack(struct record_reader *reader, uint32_t number)
{
	const struct record_stack *from;
	struct stack stack = {.same_id = STACK_NONE};
	uint64_t frames[RECORD_FRAMES_MAX];
	char id[ID_BYTES];
	size_t len;

	if (!record_stack_id(reader->facts, number))
		return STACK_NONE;
	if (reader->stacks[number] != STACK_NONE)
		return reader->stacks[number];
	from = &reader->facts->stacks[number];
	stack.frame_count = from->frame_count;
	record_stack_addrs(reader->sums, from, frames);
	for (uint32_t i = 0; i < from->frame_count; i++) {
		if (from->frames[i].module != RECORD_NO_MODULE)
			reader->places[from->frames[i].module].is_used = true;
	}
	len = (size_t)snprintf(id, sizeof(id), "%" PRIX32, record_stack_id(reader->facts, number));
	stack.id = id;
	stack.frames = frames;
	stackset_add(&reader->sums->stacks, &stack, len, &reader->stacks[number]);
	return reader->stacks[number];
}
