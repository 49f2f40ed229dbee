/*
 * Finds allocators without a name, in a C runtime that was linked into a module without symbols.
 * They become layers: frames that are removed from the inner end of stacks (strip.h). Otherwise,
 * every row would start with the return address in malloc.
 *
 * In most stacks of the module, the return address in malloc is the innermost one after the layers
 * that are already known, and has many callers. But malloc may have only a few callers, with
 * operator new as the main one. In that case, operator new has many callers and is in most of the
 * module's stacks. If malloc has hardly any other caller, operator new must be in nearly all of the
 * stacks. In a small program, neither may have enough callers: together, they must have as many. A
 * leaking function has few callers.
 *
 * A linked runtime calls the system heap, or a C library's DLL, itself. Therefore, an address that
 * calls an allocator in any other module belongs to an ordinary function.
 *
 * calloc, realloc and similar functions lie near malloc and also have many callers. Some of these
 * callers also call malloc. operator new[] lies near operator new and calls it. Once all functions
 * around malloc are layers, the next round finds operator new in the same way, and so on. Few
 * addresses qualify. Before such an address becomes a layer, its name is looked up. */
#include "diff/query/strip.h"

#include <stdlib.h>
#include <string.h>

#include "diff/query/naming.h"

enum {
	/* minimum number of callers if the allocator is the innermost address in most stacks of a
	 * module */
	CALLERS_MIN = 30,
	/* minimum number of callers if one of the callers has CALLERS_MIN callers itself; not
	 * required if that caller is in nearly all stacks of the module */
	CHAIN_CALLERS_MIN = 3,
	/* minimum number of callers if the allocator lies near another allocator that was found */
	NEAR_CALLERS_MIN = 10,
	/* maximum distance between allocators of a linked C runtime, in bytes; 0x1CD3 in node 18 */
	NEAR_BYTES = 0x2000,
	/* minimum number of functions that call both the allocator and another allocator near it; 2
	 * of 19 in node 18 */
	NEAR_SHARED_MIN = 2,
	SITE_BYTES = 0x100, /* maximum distance between two calls in one function */
	SAMPLE = 4096, /* number of stacks examined, evenly spread */
	DEPTH = 12, /* maximum number of frames examined in each stack */
	ROUNDS = 8,
};

/* A front: an address without a name that is the innermost address of a stack after the layers. */
struct front {
	struct frame frame;
	const char *name;
	size_t dump;
	bool is_text; /* the dump contains text instead of an address */
	bool is_judged;
	bool calls_near; /* in some stack, calls a layer that was found and lies near the front */
	size_t module, stack_count, caller_count;
};

/* A caller of a front. */
struct front_caller {
	size_t front, stack_count, caller_count;
	bool is_shared; /* also calls a known layer */
};

/* A call site in a function, and the site that called the function. */
struct call_site {
	struct frame place, context;
	size_t caller; /* index of the front's caller */
};

struct call_sites {
	struct call_site *items;
	size_t count, cap;
};

struct fronts {
	struct strip *strip;
	struct naming *naming;
	struct arena arena;
	struct front *items;
	size_t count, cap;
	struct front_caller *callers;
	size_t caller_count, caller_cap;
	/* `contexts`: sites that call fronts. `layer_calls`: sites that call layers found so
	 * far. */
	struct call_sites contexts, layer_calls;
	struct frame *layers;
	size_t layer_count, layer_cap;
	/* indexed by module: number of stacks whose front is in the module */
	size_t *module_stacks;
	size_t module_count, module_cap;
	struct table known; /* see number_of() */
	struct buf key, name;
	struct frames frames;
};

/* Kinds of keys in the table. Each kind has its own numbers. */
enum text_kind { TEXT_MODULE = 'm', TEXT_FRONT, TEXT_CALLER, TEXT_CONTEXT };

/* Returns the number of a key. The key consists of `kind` and the names of the innermost frames.
 * For TEXT_MODULE, it contains only the module of the first frame. A new key gets the number
 * `next`. */
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

/* Counts a stack for the module of a frame. Returns the module's number. */
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

static bool is_module(const struct frame *a, const struct frame *b)
{
	return a->module && b->module && !strcmp(a->module, b->module);
}

static bool is_near(const struct frame *a, const struct frame *b)
{
	uint64_t x = a->offset_bytes, y = b->offset_bytes;

	return is_module(a, b) && (x < y ? y - x : x - y) <= NEAR_BYTES;
}

/* Adds a call site: `frames[0]`, and the site `frames[1]`, which called the function that contains
 * `frames[0]`. */
static void add_site(struct call_sites *sites, const struct frame *frames, size_t caller)
{
	array_grow((void **)&sites->items, &sites->cap, sites->count, sizeof(*sites->items));
	sites->items[sites->count++] = (struct call_site){frames[0], frames[1], caller};
}

/* Counts the caller of a front, and the caller's caller. The front is the first frame. */
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
	if (count > 2 && number_of(fronts, TEXT_CONTEXT, frames, fronts->contexts.count) ==
				 fronts->contexts.count) {
		add_site(&fronts->contexts, &frames[1], number);
		fronts->callers[number].caller_count++;
	}
}

/* Returns true if the first `count` frames, which are all layers, may have been called by a runtime
 * that is linked into the module of `frames[count]`. Each of these frames must be in that module,
 * or in a module of strip_is_heap(). */
static bool is_inside_runtime(const struct frame *frames, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!strip_is_heap(&frames[i]) && !is_module(&frames[i], &frames[count]))
			return false;
	}
	return true;
}

static void count_stack(struct fronts *fronts, size_t dump, bool is_text)
{
	const struct frame *at = fronts->frames.items;
	size_t left = fronts->frames.count, module;
	struct front *front;
	bool calls_layer;

	for (; left > 1 && strip_matches(fronts->strip, at); at++)
		left--;
	if (left < 2 || fronts->frames.part_count || !at->module)
		return;
	module = count_module(fronts, at);
	calls_layer = at > fronts->frames.items && strip_is_nameless(fronts->strip, &at[-1]);
	if (calls_layer)
		add_site(&fronts->layer_calls, at, 0);
	if (at->function ||
		!is_inside_runtime(fronts->frames.items, (size_t)(at - fronts->frames.items)))
		return;
	front = count_front(fronts, at, module);
	front->calls_near |= calls_layer && is_near(&at[-1], at);
	front->dump = dump;
	front->is_text = is_text;
	count_callers(fronts, front, at, left);
}

/* Counts fronts in the stacks of the newest dump, or in the rows of a printed comparison. */
static void count_stacks(struct fronts *fronts)
{
	const struct comparison *comparison = fronts->naming->comparison;
	const struct dump_sums *last =
		comparison->dumps ? comparison->dumps + comparison->dump_count - 1 : NULL;
	size_t count = last ? last->stacks.count : comparison->row_count;

	table_release(&fronts->known);
	table_init(&fronts->known);
	fronts->count = fronts->module_count = fronts->caller_count = 0;
	fronts->contexts.count = fronts->layer_calls.count = 0;
	for (size_t i = 0; i < count; i += count / SAMPLE + 1) {
		struct stack stack = {0};

		if (last) {
			stack = *sums_stack(last, (uint32_t)i);
			if (!stack.frames || stack.alias_count)
				continue;
			/* the number of frames cannot be reduced if frames are packed */
			if (stack.frame_count > DEPTH && !stack.frame_cut)
				stack.frame_count = DEPTH;
			naming_stack_frames(fronts->naming, last, &stack, &fronts->frames);
		} else {
			naming_frames(fronts->naming, i, &fronts->frames);
		}
		count_stack(fronts, last ? comparison->dump_count - 1 : 0, !last || stack.is_named);
	}
}

/* Looks up the name of a front. If the front has no name, adds it as a layer. If it has a name, the
 * next round does not count it. Returns false if the front was already judged. */
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
	fronts->layers[fronts->layer_count++] = front->frame;
	return true;
}

static bool is_near_layer(const struct fronts *fronts, const struct frame *frame)
{
	for (size_t i = 0; i < fronts->layer_count; i++) {
		if (is_near(&fronts->layers[i], frame))
			return true;
	}
	return false;
}

/* Returns true if two calls are in the same function. The function need not have a name. */
static bool is_same_function(const struct frame *a, const struct frame *b)
{
	uint64_t x = a->offset_bytes, y = b->offset_bytes;

	if (!is_module(a, b))
		return false;
	if (a->function || b->function)
		return a->function && b->function && !strcmp(a->function, b->function);
	return (x < y ? y - x : x - y) <= SITE_BYTES;
}

/* Marks a caller of a front if its function also calls a known layer. */
static void find_shared(struct fronts *fronts)
{
	for (size_t i = 0; i < fronts->contexts.count; i++) {
		const struct call_site *site = &fronts->contexts.items[i];
		bool *is_shared = &fronts->callers[site->caller].is_shared;

		for (size_t k = 0; !*is_shared && k < fronts->layer_calls.count; k++) {
			const struct call_site *call = &fronts->layer_calls.items[k];

			*is_shared = site->context.offset_bytes == call->context.offset_bytes &&
				     is_same_function(&site->context, &call->context) &&
				     is_same_function(&site->place, &call->place);
		}
	}
}

static size_t shared_count(const struct fronts *fronts, size_t front)
{
	size_t count = 0;

	for (size_t i = 0; i < fronts->caller_count; i++)
		count += fronts->callers[i].front == front && fronts->callers[i].is_shared;
	return count;
}

/* Returns true if `stack_count` is more than half of the module's stacks. */
static bool is_most(const struct fronts *fronts, const struct front *front, size_t stack_count)
{
	return stack_count > fronts->module_stacks[front->module] / 2;
}

static bool is_nearly_all(
	const struct fronts *fronts, const struct front *front, size_t stack_count)
{
	return stack_count >= fronts->module_stacks[front->module] / 10 * 9;
}

/* Returns true for a front with several callers in a third of the module's stacks. */
static bool is_major(const struct fronts *fronts, const struct front *front)
{
	return front->caller_count >= NEAR_CALLERS_MIN &&
	       front->stack_count >= fronts->module_stacks[front->module] / 3;
}

/* Returns true if malloc and operator new, of which one or both are innermost, together have enough
 * callers. */
static bool are_enough(const struct fronts *fronts, const struct front *front, size_t caller_count,
	size_t stack_count)
{
	return is_major(fronts, front) && caller_count >= NEAR_CALLERS_MIN &&
	       front->caller_count + caller_count >= CALLERS_MIN &&
	       is_most(fronts, front, front->stack_count + stack_count);
}

/* Judges two fronts near each other that share the innermost place. */
static bool judge_pairs(struct fronts *fronts, struct front *front)
{
	bool is_new = false;

	for (size_t i = 0; is_major(fronts, front) && i < fronts->count; i++) {
		struct front *other = &fronts->items[i];

		if (other != front && is_near(&other->frame, &front->frame) &&
			is_major(fronts, other) &&
			are_enough(fronts, front, other->caller_count, other->stack_count))
			is_new |= judge(fronts, front);
	}
	return is_new;
}

/* Judges all fronts. Returns true if stacks may have other fronts now. */
static bool judge_fronts(struct fronts *fronts)
{
	bool is_new = false;

	find_shared(fronts);
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
			(front->caller_count >= CHAIN_CALLERS_MIN ||
				is_nearly_all(fronts, front, caller->stack_count)) &&
			is_most(fronts, front, caller->stack_count))
			is_new |= judge(fronts, front);
		else if (are_enough(fronts, front, caller->caller_count, 0))
			is_new |= judge(fronts, front);
	}
	for (size_t i = 0; i < fronts->count; i++) {
		struct front *front = &fronts->items[i];

		is_new |= judge_pairs(fronts, front);
		if (((front->caller_count >= CALLERS_MIN || is_major(fronts, front)) &&
			    front->calls_near) ||
			(front->caller_count >= NEAR_CALLERS_MIN &&
				is_near_layer(fronts, &front->frame) &&
				shared_count(fronts, i) >= NEAR_SHARED_MIN))
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
	free(fronts.contexts.items);
	free(fronts.layer_calls.items);
	free(fronts.layers);
	arena_release(&fronts.arena);
}
