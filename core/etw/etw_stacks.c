/* Stacks of a log: interns frames, stores definitions of keys, and binds stacks to events. A stack
 * comes after its event, in up to two parts (kernel and user). Each part is a list of frames or a
 * key. Meanwhile the event waits in a ring. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/etw/etw_parts.h"

#define DEFINITIONS_MAX ((size_t)1 << 24)
#define STACKS_MAX ((size_t)1 << 24)
#define FRAMES_MAX ((size_t)1 << 26)
#define KERNEL_64 UINT64_C(0x0000800000000000) /* the first kernel address */
#define KERNEL_32 UINT64_C(0x80000000)
#define RECENT_BITS 14 /* size of the table of recent stacks, which is indexed by a cheap hash */
#define OPEN_SCAN 256 /* number of earlier events that are checked for a missing user part */

void etw_stacks_init(struct etw_stacks *stacks)
{
	*stacks = (struct etw_stacks){
		.recent = xcalloc((size_t)1 << RECENT_BITS, sizeof(*stacks->recent))};
	hash_index_init(&stacks->index);
}

void etw_stacks_release(struct etw_stacks *stacks)
{
	hash_index_release(&stacks->index);
	free(stacks->recent);
	free(stacks->stacks);
	free(stacks->frames);
	free(stacks->definitions);
}

static bool is_stack(
	const struct etw_stacks *stacks, uint32_t number, const uint64_t *frames, uint32_t count)
{
	const struct etw_raw_stack *stack = &stacks->stacks[number];

	return stack->count == count &&
	       !memcmp(stacks->frames + stack->first, frames, count * sizeof(*frames));
}

/* Returns the number of a stack, adding the stack if it is new. Returns ETW_NO_STACK at the
 * limit. */
static uint32_t find_or_add(struct etw_stacks *stacks, const uint64_t *frames, uint32_t count)
{
	struct hasher hasher = hasher_begin(&stacks->index.key);
	struct hash_probe probe;
	uint32_t hash, number;

	for (uint32_t i = 0; i < count; i++)
		hasher_add(&hasher, frames[i]);
	hash = hasher_end(&hasher);
	probe = hash_index_probe(&stacks->index, hash);
	while ((number = hash_index_next(&stacks->index, &probe)) != INDEX_NONE) {
		if (is_stack(stacks, number, frames, count))
			return number;
	}
	if (stacks->stack_count >= STACKS_MAX || count > FRAMES_MAX - stacks->frame_count) {
		stacks->dropped_count++;
		return ETW_NO_STACK;
	}
	while (stacks->frame_count + count > stacks->frame_cap)
		array_grow((void **)&stacks->frames, &stacks->frame_cap, stacks->frame_cap,
			sizeof(*stacks->frames));
	array_grow((void **)&stacks->stacks, &stacks->stack_cap, stacks->stack_count,
		sizeof(*stacks->stacks));
	memcpy(stacks->frames + stacks->frame_count, frames, count * sizeof(*frames));
	stacks->stacks[stacks->stack_count] = (struct etw_raw_stack){stacks->frame_count, count};
	stacks->frame_count += count;
	hash_index_add(&stacks->index, hash, (uint32_t)stacks->stack_count);
	return (uint32_t)stacks->stack_count++;
}

/* Returns the number of a stack. Searches the recent stacks first, because most stacks are among
 * them. */
static uint32_t intern(struct etw_stacks *stacks, const uint64_t *frames, uint32_t count)
{
	uint64_t sum = 0;
	uint32_t *recent;

	for (uint32_t i = 0; i < count; i++)
		sum += frames[i] * (2 * i + 1);
	recent = &stacks->recent[sum * UINT64_C(0x9e3779b97f4a7c15) >> (64 - RECENT_BITS)];
	if (*recent >= stacks->stack_count || !is_stack(stacks, *recent, frames, count)) {
		uint32_t number = find_or_add(stacks, frames, count);

		if (number == ETW_NO_STACK)
			return number;
		*recent = number;
	}
	return *recent;
}

/* Reads the remaining frames of a payload. Returns the number of the stack that the user frames
 * form, or ETW_NO_STACK. Sets `*is_kernel` if the outermost frame is in the kernel. */
static uint32_t read_frames(struct etw_stacks *stacks, struct etw_payload *from, bool *is_kernel)
{
	const uint64_t kernel = from->pointer_bytes == 4 ? KERNEL_32 : KERNEL_64;
	uint64_t frames[RECORD_FRAMES_MAX], last = 0;
	const size_t bytes = from->pointer_bytes;
	uint32_t count = 0;

	for (size_t left = (size_t)(from->end - from->at) / bytes;
		left && count < RECORD_FRAMES_MAX; left--, from->at += bytes) {
		last = bytes == 4 ? etw_u32(from->at) : etw_u64(from->at);
		if (last && last < kernel)
			frames[count++] = last;
	}
	*is_kernel = last >= kernel;
	return count ? intern(stacks, frames, count) : ETW_NO_STACK;
}

void etw_stacks_define(struct etw_stacks *stacks, const struct etw_event *event)
{
	struct etw_payload from = etw_payload(event);
	struct etw_definition definition = {.ticks = event->time, .key = etw_parse_pointer(&from)};

	if (from.is_short)
		return;
	if (stacks->definition_count >= DEFINITIONS_MAX) {
		stacks->dropped_count++;
		return;
	}
	definition.stack = read_frames(stacks, &from, &definition.is_kernel);
	array_grow((void **)&stacks->definitions, &stacks->definition_cap, stacks->definition_count,
		sizeof(*stacks->definitions));
	stacks->definitions[stacks->definition_count++] = definition;
}

static int order(const struct etw_definition *x, const struct etw_definition *y)
{
	if (x->is_kernel != y->is_kernel)
		return x->is_kernel ? 1 : -1;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->ticks < y->ticks ? -1 : x->ticks > y->ticks;
}

static int by_key(const void *a, const void *b)
{
	return order(a, b);
}

void etw_stacks_sort(struct etw_stacks *stacks)
{
	if (stacks->definition_count)
		qsort(stacks->definitions, stacks->definition_count, sizeof(*stacks->definitions),
			by_key);
}

/* Finds the definition of a key that was valid at `ticks`. This is the first definition at or after
 * `ticks`, because a definition is logged when its key is discarded. */
static const struct etw_definition *find(
	const struct etw_stacks *stacks, bool is_kernel, uint64_t key, uint64_t ticks)
{
	const struct etw_definition wanted = {.key = key, .ticks = ticks, .is_kernel = is_kernel};
	size_t low = 0, high = stacks->definition_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (order(&stacks->definitions[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < stacks->definition_count && stacks->definitions[low].key == key &&
			       stacks->definitions[low].is_kernel == is_kernel ?
		       &stacks->definitions[low] :
		       NULL;
}

/* ---------------------------------------------------------------- binding */

void etw_binder_init(struct etw_binder *binder, struct etw_stacks *stacks, size_t cap,
	uint64_t wait_ticks, void (*leave)(void *, const struct etw_waiting *), void *ctx)
{
	*binder = (struct etw_binder){.stacks = stacks,
		.ring = xmalloc(cap * sizeof(*binder->ring)),
		.cap = cap,
		.wait_ticks = wait_ticks,
		.leave = leave,
		.ctx = ctx};
}

void etw_binder_release(struct etw_binder *binder)
{
	free(binder->ring);
}

static struct etw_waiting *waiting_at(const struct etw_binder *binder, uint64_t number)
{
	return &binder->ring[number & (binder->cap - 1)];
}

static void leave_first(struct etw_binder *binder)
{
	const struct etw_waiting *first = waiting_at(binder, binder->head++);

	binder->kernel_only -= first->has_kernel && !first->has_user;
	if (binder->leave)
		binder->leave(binder->ctx, first);
}

struct etw_waiting *etw_binder_add(struct etw_binder *binder, const struct etw_event *event)
{
	struct etw_waiting *added;

	while (binder->head < binder->tail) {
		const struct etw_waiting *first = waiting_at(binder, binder->head);

		if (first->waits && !(first->has_user && binder->leave) &&
			binder->tail - binder->head < binder->cap &&
			(event->time <= first->ticks ||
				event->time - first->ticks <= binder->wait_ticks))
			break;
		leave_first(binder);
	}
	added = waiting_at(binder, binder->tail++);
	*added = (struct etw_waiting){.ticks = event->time,
		.pid = event->pid,
		.tid = event->tid,
		.cpu = event->cpu,
		.waits = true,
		.stack = ETW_NO_STACK};
	return added;
}

void etw_binder_end(struct etw_binder *binder)
{
	while (binder->head < binder->tail)
		leave_first(binder);
}

/* Returns the number of the first waiting event at or after the time `ticks`. Searches from the end
 * of the ring, where that event usually is. */
static uint64_t first_at(const struct etw_binder *binder, uint64_t ticks)
{
	uint64_t low = binder->tail, high = binder->tail, step = 1;

	while (low > binder->head && waiting_at(binder, low - 1)->ticks >= ticks) {
		high = low - 1;
		low = high - binder->head > step ? high - step : binder->head;
		step *= 2;
		if (low == high || waiting_at(binder, low)->ticks < ticks)
			break;
	}
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (waiting_at(binder, middle)->ticks < ticks)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Finds the waiting event at `ticks` to which a stack belongs. The event must be from the stack's
 * thread or have no thread. An event from the same processor is preferred. */
static struct etw_waiting *find_waiting(const struct etw_binder *binder, uint64_t ticks,
	uint32_t tid, uint32_t cpu, uint64_t *number)
{
	struct etw_waiting *best = NULL;
	unsigned best_fit = 0;

	for (uint64_t i = first_at(binder, ticks);
		i < binder->tail && waiting_at(binder, i)->ticks == ticks; i++) {
		struct etw_waiting *waiting = waiting_at(binder, i);
		unsigned fit = waiting->tid == tid	 ? 3 :
			       waiting->tid != ETW_NO_ID ? 0 :
			       waiting->cpu == cpu	 ? 2 :
							   1;

		if (fit > best_fit) {
			best = waiting;
			best_fit = fit;
			*number = i;
		}
	}
	return best;
}

static void assign(struct etw_binder *binder, struct etw_waiting *waiting, bool has_user,
	bool has_kernel, uint32_t stack)
{
	bool was = waiting->has_kernel && !waiting->has_user;

	waiting->has_kernel |= has_kernel;
	waiting->has_user |= has_user;
	if (stack != ETW_NO_STACK)
		waiting->stack = stack;
	binder->kernel_only += (waiting->has_kernel && !waiting->has_user) - was;
}

/* Assigns the user part of a stack to all events that lack it and that the thread caused since it
 * entered the kernel. */
static void assign_open(struct etw_binder *binder, uint64_t number, uint32_t tid, uint32_t stack)
{
	uint64_t end = number - binder->head > OPEN_SCAN ? number - OPEN_SCAN : binder->head;

	while (binder->kernel_only && number-- > end) {
		struct etw_waiting *waiting = waiting_at(binder, number);

		if (waiting->tid == tid && waiting->has_kernel && !waiting->has_user)
			assign(binder, waiting, true, false, stack);
	}
}

void etw_binder_stack(struct etw_binder *binder, const struct etw_event *event)
{
	struct etw_payload from = etw_payload(event);
	const uint64_t ticks = etw_parse_u64(&from);
	const uint32_t pid = etw_parse_u32(&from), tid = etw_parse_u32(&from);
	bool is_kernel = event->type == STACK_KEY_KERNEL, is_user = event->type == STACK_KEY_USER;
	struct etw_waiting *waiting;
	uint32_t stack = ETW_NO_STACK;
	uint64_t number = 0;

	if (event->type == STACK_FRAMES) {
		if (!from.is_short)
			stack = read_frames(binder->stacks, &from, &is_kernel);
		is_user = stack != ETW_NO_STACK;
	} else {
		const struct etw_definition *definition =
			find(binder->stacks, is_kernel, etw_parse_pointer(&from), event->time);

		if (!definition)
			binder->undefined_count++;
		else if (is_user)
			stack = definition->stack;
	}
	waiting = from.is_short ? NULL : find_waiting(binder, ticks, tid, event->cpu, &number);
	if (!waiting) {
		binder->unbound_count++;
		return;
	}
	binder->bound_count++;
	if (waiting->tid == ETW_NO_ID)
		waiting->tid = tid;
	if (waiting->pid == ETW_NO_ID)
		waiting->pid = pid;
	assign(binder, waiting, is_user, is_kernel, stack);
	if (is_user)
		assign_open(binder, number, tid, stack);
}
