/*
 * Allocators without a name: a C runtime that was linked into a module whose symbols are not at hand. Every row would be
 * called by the return address in malloc.
 *
 * Such an address is the innermost one, layers aside, in most stacks of its module, and many callers lead to it, or to one of
 * its callers, which is operator new then; a function that leaks has few. What lies near it and has many callers as well is
 * calloc, realloc and the like. When these are layers, operator new is found the same way, and so on. Few addresses come into
 * question, so their names are looked for before they are judged.
 */
#include "diff/query/strip.h"

#include <stdlib.h>
#include <string.h>

#include "diff/query/naming.h"

enum {
	CALLERS_MIN = 30, /* of what most stacks of a module have in common */
	CHAIN_CALLERS_MIN = 3, /* of what one caller with that many calls */
	NEAR_CALLERS_MIN = 10, /* of what lies near such an address */
	NEAR_BYTES = 0x4000, /* in which a static C runtime has its allocators */
	SAMPLE = 4096, /* stacks that are looked at, evenly spread, */
	DEPTH = 12, /* and so many frames of most */
	ROUNDS = 8,
};

/* An innermost address without a name. */
struct front {
	struct frame frame;
	const char *name;
	size_t dump;
	bool is_text; /* the dump has text in the place of an address */
	bool is_judged;
	size_t module, stack_count, caller_count;
};

/* One that called it. */
struct front_caller {
	size_t front, stack_count, caller_count;
};

/* A layer that was found. */
struct nameless_layer {
	const char *module;
	uint64_t offset_bytes;
};

struct fronts {
	struct strip *strip;
	struct naming *naming;
	struct arena arena;
	struct front *items;
	size_t count, cap;
	struct front_caller *callers;
	size_t caller_count, caller_cap, context_count;
	struct nameless_layer *layers;
	size_t layer_count, layer_cap;
	size_t *module_stacks; /* by module: stacks whose front is in it */
	size_t module_count, module_cap;
	struct table known; /* see number_of() */
	struct buf key, name;
	struct frames frames;
};

/* Kinds of texts in the table. Each has numbers of its own. */
enum text_kind { TEXT_MODULE = 'm', TEXT_FRONT, TEXT_CALLER, TEXT_CONTEXT };

/* Returns the number of a text of frames, innermost first, or of the module of the first; next if it is new. */
static size_t number_of(
	struct fronts *fronts, enum text_kind kind, const struct frame *frames, size_t next)
{
	size_t count = kind == TEXT_MODULE ? 0 : (size_t)(kind - TEXT_MODULE);
	struct buf *key = &fronts->key;
	const uint64_t *known;

	buf_clear(key);
	buf_printf(key, "%c%s", kind, count ? "" : frames->module);
	for (size_t i = 0; i < count; i++) {
		frame_name(&frames[i], &fronts->name);
		buf_printf(key, "%s%s", i ? "<" : "", fronts->name.data);
	}
	known = table_find(&fronts->known, key->data, key->len);
	if (known)
		return (size_t)*known;
	table_add(&fronts->known, key->data, key->len, next);
	return next;
}

/* Counts a stack to the module of a frame, and returns the module's number. */
static size_t count_module(struct fronts *fronts, const struct frame *frame)
{
	size_t number = number_of(fronts, TEXT_MODULE, frame, fronts->module_count);

	if (number == fronts->module_count) {
		array_grow((void **)&fronts->module_stacks, &fronts->module_cap, number,
			sizeof(*fronts->module_stacks));
		fronts->module_stacks[fronts->module_count++] = 0;
	}
	fronts->module_stacks[number]++;
	return number;
}

static struct front *count_front(struct fronts *fronts, const struct frame *frame, size_t module)
{
	size_t number = number_of(fronts, TEXT_FRONT, frame, fronts->count);

	if (number == fronts->count) {
		array_grow((void **)&fronts->items, &fronts->cap, number, sizeof(*fronts->items));
		fronts->items[fronts->count++] = (struct front){.frame = *frame,
			.name = arena_text(&fronts->arena, fronts->name.data, fronts->name.len),
			.module = module};
	}
	fronts->items[number].stack_count++;
	return &fronts->items[number];
}

/* Counts who called a front, the first of these frames, and who called that. */
static void count_callers(
	struct fronts *fronts, struct front *front, const struct frame *frames, size_t count)
{
	size_t number = number_of(fronts, TEXT_CALLER, frames, fronts->caller_count);

	if (number == fronts->caller_count) {
		array_grow((void **)&fronts->callers, &fronts->caller_cap, number,
			sizeof(*fronts->callers));
		fronts->callers[fronts->caller_count++] =
			(struct front_caller){.front = (size_t)(front - fronts->items)};
		front->caller_count++;
	}
	fronts->callers[number].stack_count++;
	if (count > 2 && number_of(fronts, TEXT_CONTEXT, frames, fronts->context_count) ==
				 fronts->context_count) {
		fronts->context_count++;
		fronts->callers[number].caller_count++;
	}
}

static void count_stack(struct fronts *fronts, size_t dump, bool is_text)
{
	const struct frame *at = fronts->frames.items;
	size_t left = fronts->frames.count, module;
	struct front *front;

	for (; left > 1 && strip_takes(fronts->strip, at); at++)
		left--;
	if (left < 2 || fronts->frames.part_count || !at->module)
		return;
	module = count_module(fronts, at);
	if (at->function)
		return;
	front = count_front(fronts, at, module);
	front->dump = dump;
	front->is_text = is_text;
	count_callers(fronts, front, at, left);
}

/* The newest dump's stacks have it all; a comparison that was read has rows alone. */
static void count_stacks(struct fronts *fronts)
{
	const struct comparison *comparison = fronts->naming->comparison;
	const struct dump_sums *last =
		comparison->dumps ? comparison->dumps + comparison->dump_count - 1 : NULL;
	size_t count = last ? last->stacks.count : comparison->row_count;

	table_release(&fronts->known);
	table_init(&fronts->known);
	fronts->count = fronts->module_count = fronts->caller_count = fronts->context_count = 0;
	for (size_t i = 0; i < count; i += count / SAMPLE + 1) {
		struct stack stack = {0};

		if (last) {
			stack = *sums_stack(last, (uint32_t)i);
			if (!stack.frames || stack.alias_count)
				continue;
			if (stack.frame_count > DEPTH && !stack.frame_cut) /* not packed */
				stack.frame_count = DEPTH;
			naming_stack_frames(fronts->naming, last, &stack, &fronts->frames);
		} else {
			naming_frames(fronts->naming, i, &fronts->frames);
		}
		count_stack(fronts, last ? comparison->dump_count - 1 : 0, !last || stack.is_named);
	}
}

/* A front of which a name is known is none in the next round. Returns true if the front was not judged before. */
static bool judge(struct fronts *fronts, struct front *front)
{
	if (front->is_judged)
		return false;
	front->is_judged = true;
	if (!front->is_text && naming_find_addr(fronts->naming, front->dump, front->frame.addr))
		return true;
	strip_add_nameless(fronts->strip, front->name);
	array_grow((void **)&fronts->layers, &fronts->layer_cap, fronts->layer_count,
		sizeof(*fronts->layers));
	fronts->layers[fronts->layer_count++] =
		(struct nameless_layer){front->frame.module, front->frame.offset_bytes};
	return true;
}

static bool is_near_layer(const struct fronts *fronts, const struct frame *frame)
{
	for (size_t i = 0; i < fronts->layer_count; i++) {
		uint64_t a = fronts->layers[i].offset_bytes, b = frame->offset_bytes;

		if (!strcmp(fronts->layers[i].module, frame->module) &&
			(a < b ? b - a : a - b) <= NEAR_BYTES)
			return true;
	}
	return false;
}

/* Returns true if most of the module's stacks go through so many of them. */
static bool is_most(const struct fronts *fronts, const struct front *front, size_t stack_count)
{
	return stack_count > fronts->module_stacks[front->module] / 2;
}

/* Returns true if stacks may have other fronts now. */
static bool judge_fronts(struct fronts *fronts)
{
	bool is_new = false;

	for (size_t i = 0; i < fronts->count; i++) {
		struct front *front = &fronts->items[i];

		if (front->caller_count >= CALLERS_MIN &&
			is_most(fronts, front, front->stack_count))
			is_new |= judge(fronts, front);
	}
	for (size_t i = 0; i < fronts->caller_count; i++) {
		const struct front_caller *caller = &fronts->callers[i];
		struct front *front = &fronts->items[caller->front];

		if (caller->caller_count >= CALLERS_MIN &&
			front->caller_count >= CHAIN_CALLERS_MIN &&
			is_most(fronts, front, caller->stack_count))
			is_new |= judge(fronts, front);
	}
	for (size_t i = 0; i < fronts->count; i++) {
		struct front *front = &fronts->items[i];

		if (front->caller_count >= NEAR_CALLERS_MIN && is_near_layer(fronts, &front->frame))
			is_new |= judge(fronts, front);
	}
	return is_new;
}

void strip_find_nameless(struct strip *strip, struct naming *naming)
{
	struct fronts fronts = {.strip = strip, .naming = naming};

	arena_init(&fronts.arena);
	table_init(&fronts.known);
	buf_init(&fronts.key);
	buf_init(&fronts.name);
	frames_init(&fronts.frames);
	for (int i = 0; i < ROUNDS; i++) {
		count_stacks(&fronts);
		if (!judge_fronts(&fronts))
			break;
	}
	frames_release(&fronts.frames);
	buf_release(&fronts.key);
	buf_release(&fronts.name);
	table_release(&fronts.known);
	free(fronts.module_stacks);
	free(fronts.items);
	free(fronts.callers);
	free(fronts.layers);
	arena_release(&fronts.arena);
}
