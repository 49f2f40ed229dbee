/* Kinds of a recording, divided by the thread that allocated. */
#include "diff/read/thread_kinds.h"

#include <stdlib.h>

#include "core/base/hash.h"
#include "core/base/memory.h"

#define PAGE_BLOCKS 64
#define PART_FREED UINT32_MAX
#define FETCH_AHEAD 16 /* in events; frees often access blocks at random */

struct owner_page {
	uint64_t numbers[PAGE_BLOCKS]; /* in the part */
	uint32_t parts[PAGE_BLOCKS]; /* PART_FREED: the block was freed */
	unsigned live_count;
};

/* Blocks of a kind of the recording. */
struct owners {
	struct owner_page **pages; /* NULL: all of its blocks were freed */
	size_t page_count, page_cap;
	uint64_t allocated;
	uint32_t thread, part; /* the last part found, if `allocated` is not 0 */
};

struct thread_kinds {
	struct u64map numbers; /* maps a kind and a thread to a part */
	uint64_t *allocated; /* indexed by part */
	size_t part_count, part_cap;
	struct owners *owners; /* indexed by kind */
};

/* Finds the part of a thread. Most kinds are allocated by one thread, or by one after another. */
static uint32_t part_number(struct thread_kinds *kinds, uint32_t kind, uint32_t thread)
{
	struct owners *owners = &kinds->owners[kind];
	uint32_t number = (uint32_t)kinds->part_count;

	if (owners->allocated && owners->thread == thread)
		return owners->part;
	if (u64map_add(&kinds->numbers, (uint64_t)kind << 32 | thread, &number)) {
		array_grow((void **)&kinds->allocated, &kinds->part_cap, kinds->part_count,
			sizeof(*kinds->allocated));
		kinds->allocated[kinds->part_count++] = 0;
	}
	owners->thread = thread;
	owners->part = number;
	return number;
}

static void add_block(struct thread_kinds *kinds, struct record_event *event)
{
	struct owners *owners = &kinds->owners[event->kind];
	const uint32_t part = part_number(kinds, event->kind, event->thread);
	const size_t place = owners->allocated++ % PAGE_BLOCKS;
	struct owner_page *page;

	if (!place) {
		array_grow((void **)&owners->pages, &owners->page_cap, owners->page_count,
			sizeof(struct owner_page *));
		page = owners->pages[owners->page_count++] = xmalloc(sizeof(*page));
		page->live_count = 0;
	}
	page = owners->pages[owners->page_count - 1];
	page->live_count++;
	page->parts[place] = part;
	page->numbers[place] = kinds->allocated[part]++;
	event->kind = part;
	event->number = page->numbers[place];
}

static bool remove_block(struct thread_kinds *kinds, struct record_event *event)
{
	struct owners *owners = &kinds->owners[event->kind];
	const size_t number = (size_t)(event->number / PAGE_BLOCKS),
		     place = event->number % PAGE_BLOCKS;
	struct owner_page *page = event->number < owners->allocated ? owners->pages[number] : NULL;

	if (!page || page->parts[place] == PART_FREED)
		return false;
	event->kind = page->parts[place];
	event->number = page->numbers[place];
	page->parts[place] = PART_FREED;
	/* the last page may get more blocks */
	if (!--page->live_count && number < owners->allocated / PAGE_BLOCKS) {
		free(page);
		owners->pages[number] = NULL;
	}
	return true;
}

/* Prefetches the blocks of an event's kind and, later, the event's block. Must be inline, because
 * otherwise gcc removes the calls as having no effect. */
static inline __attribute__((always_inline)) void fetch_kind(
	const struct thread_kinds *kinds, const struct record_event *event)
{
	__builtin_prefetch(&kinds->owners[event->kind]);
}

static inline __attribute__((always_inline)) void fetch_block(
	const struct thread_kinds *kinds, const struct record_event *event)
{
	const struct owners *owners = &kinds->owners[event->kind];
	const uint64_t number = event->type == RECORD_FREE ? event->number : owners->allocated;
	const struct owner_page *page = number / PAGE_BLOCKS < owners->page_count ?
						owners->pages[number / PAGE_BLOCKS] :
						NULL;

	if (!page)
		return;
	__builtin_prefetch(&page->numbers[number % PAGE_BLOCKS]);
	__builtin_prefetch(&page->parts[number % PAGE_BLOCKS]);
	__builtin_prefetch(&page->live_count);
}

static int replay_event(struct thread_kinds *kinds, struct part_event *event)
{
	event->kind = event->event.kind;
	if (event->event.type == RECORD_ALLOC)
		add_block(kinds, &event->event);
	else if (!remove_block(kinds, &event->event))
		return -ERR_BAD_RECORDING;
	return 0;
}

int thread_kinds_replay(struct recording *recording, const struct dump_sums *sums,
	int (*handle)(void *ctx, const struct part_event *event, struct err *err), void *ctx,
	struct err *err)
{
	const size_t kind_count = recording_facts(recording)->kind_count;
	struct thread_kinds kinds = {.owners = xcalloc(kind_count + 1, sizeof(*kinds.owners))};
	const struct record_event *events;
	struct record_cursor *cursor = NULL;
	struct part_event next = {.position = 0};
	size_t count;
	int rc = record_cursor_open(&cursor, recording, 0, sums->window.position - 1, err);

	u64map_init(&kinds.numbers);
	while (!rc && (rc = record_next_events(cursor, &events, &count, err)) > 0) {
		rc = 0;
		for (size_t i = 0; !rc && i < count; i++, next.position++) {
			if (i + 2 * FETCH_AHEAD < count)
				fetch_kind(&kinds, &events[i + 2 * FETCH_AHEAD]);
			if (i + FETCH_AHEAD < count)
				fetch_block(&kinds, &events[i + FETCH_AHEAD]);
			next.event = events[i];
			rc = replay_event(&kinds, &next);
			if (rc)
				err_set(err, ERR_BAD_RECORDING, sums->id.path,
					"a block is freed twice");
			else
				rc = handle(ctx, &next, err);
		}
	}
	record_cursor_close(cursor);
	for (size_t i = 0; i < kind_count; i++) {
		for (size_t k = 0; k < kinds.owners[i].page_count; k++)
			free(kinds.owners[i].pages[k]);
		free(kinds.owners[i].pages);
	}
	free(kinds.owners);
	free(kinds.allocated);
	u64map_release(&kinds.numbers);
	return rc;
}

struct part_count {
	const struct recording_window *window;
	struct thread_kind *parts;
	size_t count, cap;
	bool is_begun; /* the window has begun */
};

static void begin_window(struct part_count *count)
{
	count->is_begun = true;
	for (size_t i = 0; i < count->count; i++) {
		count->parts[i].from_allocated = count->parts[i].allocated;
		count->parts[i].from_live = count->parts[i].live;
	}
}

static int count_event(void *ctx, const struct part_event *next, struct err *err)
{
	const struct record_event *event = &next->event;
	struct part_count *count = ctx;
	struct thread_kind *part;

	(void)err;
	if (next->position == count->window->from_position)
		begin_window(count);
	if (event->kind == count->count) {
		array_grow(
			(void **)&count->parts, &count->cap, count->count, sizeof(*count->parts));
		count->parts[count->count++] =
			(struct thread_kind){.kind = next->kind, .thread = event->thread};
	}
	part = &count->parts[event->kind];
	if (event->type == RECORD_ALLOC) {
		part->allocated++;
		part->live++;
		part->born_allocated +=
			count->is_begun && next->position < count->window->born_position;
		return 0;
	}
	part->live--;
	if (!count->is_begun)
		return 0;
	if (event->number < part->from_allocated)
		part->freed_before++;
	else if (event->number < part->from_allocated + part->born_allocated)
		part->freed_inside++;
	return 0;
}

int thread_kinds_read(struct recording *recording, const struct dump_sums *sums,
	struct thread_kind **parts, size_t *part_count, struct err *err)
{
	struct part_count count = {.window = &sums->window};
	int rc = thread_kinds_replay(recording, sums, count_event, &count, err);

	if (!rc && !count.is_begun)
		begin_window(&count);
	*parts = count.parts;
	*part_count = count.count;
	return rc;
}
