/* The sums of a recording: the blocks of a moment, or of a window by fate and by thread. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/text.h"
#include "diff/read/read_dump.h"
#include "diff/read/read_record.h"
#include "diff/read/read_use.h"
#include "diff/read/thread_kinds.h"

/* States at the start of a window, after the last allocation that counts, and at its end. */
struct window_states {
	struct record_state from, born, to;
};

/* ---------------------------------------------------------------- sums */

_Static_assert((int)RECORD_COMMITTED == HEAP_VIRTUAL && (int)RECORD_RESERVED == HEAP_RESERVED &&
		       (int)RECORD_MAPPED == HEAP_MAPPED && (int)RECORD_STACK == HEAP_STACKS,
	"ranges have a heading for each memory");

uint64_t record_kind_heap(const struct record_facts *facts, const struct record_kind *kind)
{
	if (kind->memory != RECORD_HEAP)
		return kind->memory;
	return kind->heap == RECORD_NO_HEAP ? 0 : facts->heaps[kind->heap];
}

static uint32_t add_heap(struct record_reader *reader, const struct record_kind *kind)
{
	struct dump_sums *sums = reader->sums;
	uint64_t addr = record_kind_heap(reader->facts, kind);
	uint32_t number = (uint32_t)sums->heap_count;

	if (u64map_add(&reader->heaps, addr, &number)) {
		array_grow((void **)&sums->heaps, &reader->heap_cap, sums->heap_count,
			sizeof(*sums->heaps));
		sums->heaps[sums->heap_count++] = addr;
	}
	return number;
}

static bool add_up(uint64_t *to, uint64_t more)
{
	return more > INT64_MAX || __builtin_add_overflow(*to, more, to) || *to > INT64_MAX;
}

/* Adds `count` blocks of a kind to the sums of the kind's stack and heap. Stores the number of the
 * cell that contains these sums, or CELL_NONE if the size is not requested. In a sample, each block counts as all the blocks that it
 * represents. */
static int add_blocks(struct record_reader *reader, const struct record_kind *kind, uint64_t count,
	bool is_wanted, uint32_t *number, struct err *err)
{
	struct dump_sums *sums = reader->sums;
	struct stack_total cell = {0};
	uint32_t at = (uint32_t)sums->cell_count;

	count = record_kind_stands_for(
		reader->facts, (uint32_t)(kind - reader->facts->kinds), count);
	cell.sums.block_count = count;
	if (__builtin_mul_overflow(kind->bytes, count, &cell.sums.requested_bytes) ||
		add_up(&reader->all.block_count, count) ||
		add_up(&reader->all.requested_bytes, cell.sums.requested_bytes))
		return err_set(err, ERR_BAD_RECORDING, sums->id.path, SUMS_TOO_LARGE);
	block_totals_add(
		kind->memory == RECORD_RESERVED ? &sums->reserved : &sums->total, &cell.sums);
	*number = CELL_NONE;
	if (!is_wanted || !size_limits_has(&sums->single.sizes, kind->bytes))
		return 0;
	cell.heap = add_heap(reader, kind);
	cell.stack = record_reader_stack(reader, kind->stack);
	/* each part of a kind has a cell of its own */
	if (reader->wanted_threads ||
		u64map_add(&reader->cells, (uint64_t)cell.heap << 32 | cell.stack, &at)) {
		array_grow((void **)&sums->cells, &reader->cell_cap, sums->cell_count,
			sizeof(*sums->cells));
		sums->cells[sums->cell_count++] = cell;
	} else {
		block_totals_add(&sums->cells[at].sums, &cell.sums);
	}
	*number = at;
	return 0;
}

static int add_kinds(struct record_reader *reader, const uint64_t *counts, struct err *err)
{
	uint32_t cell;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < reader->facts->kind_count; i++) {
		if (counts[i])
			rc = add_blocks(
				reader, &reader->facts->kinds[i], counts[i], true, &cell, err);
	}
	return rc;
}

/* Adds the blocks of a window by kind. Includes kinds that have no blocks of the window's fate,
 * because reports also show other fates. */
static int add_window(struct record_reader *reader, const struct window_states *states,
	const uint64_t *counts, struct err *err)
{
	const struct record_state *from = &states->from, *born = &states->born;
	struct dump_sums *sums = reader->sums;
	int rc = 0;

	sums->window.kind_count = born->kind_count;
	sums->window.kind_cells =
		arena_alloc(&sums->arena, born->kind_count * sizeof(*sums->window.kind_cells));
	for (uint32_t i = 0; !rc && i < born->kind_count; i++) {
		sums->window.kind_cells[i] = CELL_NONE;
		if (from->live[i] || born->allocated[i] > from->allocated[i])
			rc = add_blocks(reader, &reader->facts->kinds[i], counts[i], true,
				&sums->window.kind_cells[i], err);
	}
	return rc;
}

/* ---------------------------------------------------------------- blocks */

/* Numbers of blocks freed in a window, indexed by kind. `inside` counts blocks that were also
 * allocated in the window, `before` counts blocks that were allocated earlier. */
struct frees {
	uint64_t *inside, *before;
};

struct free_count {
	struct recording *recording;
	const struct record_state *first; /* state at the start of the window */
	const struct record_state *born; /* state after which allocations do not count */
	struct frees parts[USE_PARTS_MAX]; /* parts that do not exist have no arrays */
};

static struct frees frees_make(size_t kind_count)
{
	return (struct frees){xcalloc(kind_count + 1, sizeof(uint64_t)),
		xcalloc(kind_count + 1, sizeof(uint64_t))};
}

static void frees_release(struct frees *frees)
{
	free(frees->inside);
	free(frees->before);
}

static int count_part(void *ctx, unsigned number, uint64_t from, uint64_t to, struct err *err)
{
	struct free_count *count = ctx;
	struct frees *frees = &count->parts[number];
	const struct record_event *events;
	struct record_cursor *cursor;
	size_t event_count;
	int rc = record_cursor_open(&cursor, count->recording, from, to, err);

	if (rc)
		return rc;
	*frees = frees_make(count->first->kind_count);
	while ((rc = record_next_events(cursor, &events, &event_count, err)) > 0) {
		for (size_t i = 0; i < event_count; i++) {
			const struct record_event *event = &events[i];

			if (event->type != RECORD_FREE)
				continue;
			if (event->number < count->first->allocated[event->kind])
				frees->before[event->kind]++;
			else if (event->number < count->born->allocated[event->kind])
				frees->inside[event->kind]++;
		}
	}
	record_cursor_close(cursor);
	return rc;
}

/* Counts the frees in a window by kind and adds them to `sum`. */
static int count_frees(struct recording *recording, const struct window_states *states,
	struct frees *sum, struct err *err)
{
	struct free_count count = {
		.recording = recording, .first = &states->from, .born = &states->born};
	int rc = use_read_parts(
		recording, states->from.position, states->to.position, count_part, &count, err);

	for (unsigned i = 0; i < USE_PARTS_MAX; i++) {
		struct frees *part = &count.parts[i];

		for (size_t k = 0; part->inside && k < states->to.kind_count; k++) {
			sum->inside[k] += part->inside[k];
			sum->before[k] += part->before[k];
		}
		frees_release(part);
	}
	return rc;
}

struct fate_counts {
	uint64_t from_live, to_live, allocated, freed_inside, freed_before;
};

static uint64_t fate_count(enum block_fate fate, const struct fate_counts *counts)
{
	switch (fate) {
	case FATE_AIFO: return counts->allocated - counts->freed_inside;
	case FATE_AIFI: return counts->freed_inside;
	case FATE_AOFI: return counts->freed_before;
	case FATE_AOFO: return counts->from_live - counts->freed_before;
	case FATE_AI: return counts->allocated;
	case FATE_ALL: return counts->from_live + counts->allocated;
	case FATE_LIVE: break;
	}
	return counts->to_live;
}

/* For each kind of allocation, stores in `counts` how many allocations have the given fate. The
 * fate (see enum block_fate) depends on whether an allocation was made and freed in the window. */
static int count_fates(struct recording *recording, const struct window_states *states,
	enum block_fate fate, uint64_t *counts, struct err *err)
{
	const struct record_state *from = &states->from, *born = &states->born, *to = &states->to;
	size_t kinds = to->kind_count;
	struct frees frees = frees_make(kinds);
	bool was_empty = born->position == to->position;
	int rc = 0;

	for (size_t i = 0; i < kinds; i++)
		was_empty &= !from->live[i];
	if (!was_empty && fate != FATE_ALL)
		rc = count_frees(recording, states, &frees, err);
	for (size_t i = 0; !rc && i < kinds; i++) {
		uint64_t allocated = born->allocated[i] - from->allocated[i];

		if (was_empty) /* all freed blocks were allocated in the window */
			frees.inside[i] = allocated - to->live[i];
		counts[i] = fate_count(fate, &(struct fate_counts){from->live[i], to->live[i],
						     allocated, frees.inside[i], frees.before[i]});
	}
	frees_release(&frees);
	return rc;
}

/* Reads the single blocks that are live at a position. Not possible for a sample, in which each
 * block also represents blocks whose addresses are unknown. */
int record_reader_blocks(struct record_reader *reader, struct recording *recording,
	uint64_t position, struct err *err)
{
	struct dump_sums *sums = reader->sums;
	struct record_block *from;
	size_t count;
	int rc = recording_blocks(recording, position, &from, &count, err);

	if (rc)
		return rc;
	sums->single.blocks = xmalloc(count * sizeof(*sums->single.blocks));
	for (size_t i = 0; !rc && i < count; i++) {
		const struct record_kind *kind = &reader->facts->kinds[from[i].kind];
		struct block block = {.addr = from[i].addr,
			.requested_bytes = kind->bytes,
			.heap = add_heap(reader, kind),
			.stack = record_reader_stack(reader, kind->stack)};

		if (!block_fits(from[i].addr, kind->bytes))
			rc = err_set(err, ERR_BAD_RECORDING, sums->id.path,
				"contains a block of an impossible size");
		else if (block.stack != STACK_NONE)
			sums->single.blocks[sums->single.block_count++] = block;
	}
	free(from);
	return rc;
}

/* Counts the blocks that are live at a position. */
int record_reader_live(struct record_reader *reader, struct recording *recording, uint64_t position,
	struct err *err)
{
	struct record_state state;
	int rc = recording_state(recording, position, &state, err);

	if (rc)
		return rc;
	rc = add_kinds(reader, state.live, err);
	record_state_release(&state);
	return rc;
}

/* Counts the blocks that have the given fate in a window. */
int record_reader_fates(struct record_reader *reader, struct recording *recording, struct err *err)
{
	const struct recording_window *window = &reader->sums->window;
	struct window_states states = {0};
	uint64_t *counts;
	int rc = recording_state(recording, window->from_position, &states.from, err);

	if (!rc)
		rc = recording_state(recording, window->born_position, &states.born, err);
	if (!rc)
		rc = recording_state(recording, window->position - 1, &states.to, err);
	if (!rc) {
		counts = xcalloc(states.to.kind_count + 1, sizeof(*counts));
		rc = count_fates(recording, &states, window->fate, counts, err);
		if (!rc)
			rc = add_window(reader, &states, counts, err);
		free(counts);
	}
	record_state_release(&states.from);
	record_state_release(&states.born);
	record_state_release(&states.to);
	return rc;
}

/* ---------------------------------------------------------------- threads */

static bool thread_matches(const struct record_facts *facts, size_t thread, const char *wanted)
{
	const char *name = facts->thread_names[thread];
	char id[20];

	snprintf(id, sizeof(id), "%" PRIu32, facts->threads[thread]);
	return (thread && !strcmp(id, wanted)) || (name && text_glob(wanted, name, 0));
}

static int by_id(const void *a, const void *b)
{
	const struct recorded_thread *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

const char *sums_thread_name(const struct dump_sums *sums, uint32_t id)
{
	const struct recorded_thread wanted = {.id = id},
				     *found = sums->threads ? bsearch(&wanted, sums->threads,
								      sums->thread_count,
								      sizeof(wanted), by_id) :
							      NULL;

	return found ? found->name : NULL;
}

static int find_threads(
	struct record_reader *reader, const struct recording_part *part, struct err *err)
{
	const struct record_facts *facts = reader->facts;
	struct dump_sums *sums = reader->sums;
	bool is_found = false;

	reader->wanted_threads = xcalloc(facts->thread_count + 1, sizeof(*reader->wanted_threads));
	sums->thread_count = facts->thread_count;
	sums->threads = arena_alloc(&sums->arena, facts->thread_count * sizeof(*sums->threads));
	for (size_t i = 0; i < facts->thread_count; i++) {
		reader->wanted_threads[i] = !part->thread || thread_matches(facts, i, part->thread);
		is_found |= reader->wanted_threads[i];
		sums->threads[i] = (struct recorded_thread){facts->threads[i],
			record_reader_text(&sums->arena, facts->thread_names[i])};
	}
	qsort(sums->threads, sums->thread_count, sizeof(*sums->threads), by_id);
	if (is_found)
		return 0;
	return err_set(err, ERR_USAGE, part->thread,
		"no thread of %s has this id or name; hdiff --list lists them", sums->id.path);
}

/* Counts the blocks of a moment or window, divided by thread. */
int record_reader_threads(struct record_reader *reader, struct recording *recording,
	const struct recording_part *part, struct err *err)
{
	struct dump_sums *sums = reader->sums;
	struct recording_window *window = &sums->window;
	struct thread_kind *parts;
	int rc = find_threads(reader, part, err);

	if (rc)
		return rc;
	rc = thread_kinds_read(recording, sums, &parts, &window->kind_count, err);
	window->real_count = reader->facts->kind_count;
	window->kind_cells =
		arena_alloc(&sums->arena, window->kind_count * sizeof(*window->kind_cells));
	window->parts = arena_alloc(&sums->arena, window->kind_count * sizeof(*window->parts));
	sums->cell_threads =
		arena_alloc(&sums->arena, window->kind_count * sizeof(*sums->cell_threads));
	for (size_t i = 0; !rc && i < window->kind_count; i++) {
		const struct thread_kind *from = &parts[i];
		const struct fate_counts counts = {from->from_live, from->live,
			from->born_allocated, from->freed_inside, from->freed_before};

		window->parts[i] = *from;
		window->kind_cells[i] = CELL_NONE;
		if (!from->live &&
			(window->fate == FATE_LIVE || (!from->from_live && !from->born_allocated)))
			continue;
		rc = add_blocks(reader, &reader->facts->kinds[from->kind],
			fate_count(window->fate, &counts), reader->wanted_threads[from->thread],
			&window->kind_cells[i], err);
		if (window->kind_cells[i] != CELL_NONE)
			sums->cell_threads[window->kind_cells[i]] =
				reader->facts->threads[from->thread];
	}
	free(parts);
	return rc;
}
