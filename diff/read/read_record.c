/* Reading a recording into sums: its state at a moment, or the fates of allocations in a window. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/parse.h"
#include "core/record/record.h"
#include "diff/read/dump_sums.h"
#include "diff/read/read_dump.h"
#include "diff/read/read_use.h"

#define GRANULE UINT64_C(0x10000) /* modules start at multiples of this size */
#define ID_BYTES 20

struct record_reader {
	struct dump_sums *sums;
	const struct record_facts *facts;
	struct placing *places; /* indexed by module */
	/* indexed by stack: the stack's number in the sums; STACK_NONE: not added yet */
	uint32_t *stacks;
	/* `heaps` maps a heap's address to its number, `cells` maps a heap and a stack to a cell */
	struct u64map heaps, cells;
	size_t heap_cap, cell_cap;
	/* sum of all blocks added so far; each number fits into an int64_t */
	struct block_totals all;
};

struct place_in_time {
	uint64_t position, time_ms;
};

/* Moments of a window: its start, the last allocation that counts, and its end. */
struct window_places {
	struct place_in_time from, born, to;
};

/* States at the start of a window, after the last allocation that counts, and at its end. */
struct window_states {
	struct record_state from, born, to;
};

const char *block_fate_name(enum block_fate fate)
{
	static const char *const names[] = {
		[FATE_LIVE] = "live",
		[FATE_AIFO] = "aifo",
		[FATE_AIFI] = "aifi",
		[FATE_AOFI] = "aofi",
		[FATE_AOFO] = "aofo",
		[FATE_AI] = "ai",
		[FATE_ALL] = "all",
	};

	return names[fate];
}

/* ---------------------------------------------------------------- modules and stacks */

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

static const char *copy_text(struct arena *arena, const char *text)
{
	return text ? arena_text(arena, text, strlen(text)) : NULL;
}

/* Assigns an address to each module. A module that is not loaded, or that overlaps another module,
 * gets a separate address, as in dumps. */
static void place_modules(struct record_reader *reader, uint64_t time_ms)
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
static void copy_modules(struct record_reader *reader)
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
		module->path = copy_text(&sums->module_list.texts, module->path);
		module->pdb = copy_text(&sums->module_list.texts, module->pdb);
		module->pdb_guid = copy_text(&sums->module_list.texts, module->pdb_guid);
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
static uint32_t add_stack(struct record_reader *reader, uint32_t number)
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
	uint32_t *number, struct err *err)
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
	if (!size_limits_has(&sums->single.sizes, kind->bytes))
		return 0;
	cell.heap = add_heap(reader, kind);
	cell.stack = add_stack(reader, kind->stack);
	if (u64map_add(&reader->cells, (uint64_t)cell.heap << 32 | cell.stack, &at)) {
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
			rc = add_blocks(reader, &reader->facts->kinds[i], counts[i], &cell, err);
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
			rc = add_blocks(reader, &reader->facts->kinds[i], counts[i],
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
		switch (fate) {
		case FATE_AIFO: counts[i] = allocated - frees.inside[i]; break;
		case FATE_AIFI: counts[i] = frees.inside[i]; break;
		case FATE_AOFI: counts[i] = frees.before[i]; break;
		case FATE_AOFO: counts[i] = from->live[i] - frees.before[i]; break;
		case FATE_AI: counts[i] = allocated; break;
		case FATE_ALL: counts[i] = from->live[i] + allocated; break;
		case FATE_LIVE: counts[i] = to->live[i]; break;
		}
	}
	frees_release(&frees);
	return rc;
}

/* Reads the single blocks that are live at a position. Not possible for a sample, in which each
 * block also represents blocks whose addresses are unknown. */
static int read_blocks(struct record_reader *reader, struct recording *recording, uint64_t position,
	struct err *err)
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
			.stack = add_stack(reader, kind->stack)};

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
static int read_live(struct record_reader *reader, struct recording *recording, uint64_t position,
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
static int read_fate(struct record_reader *reader, struct recording *recording, struct err *err)
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

/* ---------------------------------------------------------------- the whole recording */

/* Counts blocks from before the tracer was attached. These blocks have no stack. */
static int add_before(struct record_reader *reader, struct recording *recording, struct err *err)
{
	const struct record_facts *facts = reader->facts;
	struct block_totals *before = &reader->sums->before;
	struct record_state state;
	int rc;

	reader->sums->is_attached = facts->is_attached;
	if (!facts->is_attached)
		return 0;
	rc = recording_state(recording, facts->start_position, &state, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < state.kind_count; i++) {
		uint64_t bytes;

		if (facts->kinds[i].stack != RECORD_NO_STACK ||
			__builtin_mul_overflow(facts->kinds[i].bytes, state.live[i], &bytes))
			continue;
		before->block_count += state.live[i];
		before->requested_bytes += bytes;
	}
	record_state_release(&state);
	return 0;
}

static void copy_facts(struct record_reader *reader)
{
	const struct record_facts *facts = reader->facts;
	struct dump_sums *sums = reader->sums;

	sums->id.pid = facts->pid;
	sums->id.parent_pid = facts->parent_pid;
	sums->id.start_ms = facts->start_ms;
	sums->id.image = copy_text(&sums->arena, facts->image);
	sums->id.os = copy_text(&sums->arena, facts->os);
	sums->id.bits = facts->bits;
	sums->id.source = copy_text(&sums->arena, facts->source);
	sums->quality.sample_bytes = facts->sample_bytes;
}

/* Adds warnings about losses up to a position. If a recording was not ended, only its last events
 * are missing. Sums of an earlier moment are therefore complete. */
static void add_losses(struct record_reader *reader, uint64_t to)
{
	const struct record_facts *facts = reader->facts;
	char text[200];

	for (size_t i = 0; i < facts->remark_count; i++)
		sums_warn(reader->sums, facts->remarks[i]);
	if (facts->lost_count) {
		snprintf(text, sizeof(text),
			"%" PRIu64 " event%s lost during the recording: each number may be "
			"wrong by up to that many blocks",
			facts->lost_count, facts->lost_count == 1 ? " was" : "s were");
		sums_warn(reader->sums, text);
		reader->sums->quality.is_incomplete = true;
	}
	if (facts->is_cut) {
		snprintf(text, sizeof(text),
			"the recording was not ended: it is complete up to %" PRIu64
			".%03u s; later events are missing",
			facts->length_ms / 1000, (unsigned)(facts->length_ms % 1000));
		sums_warn(reader->sums, text);
		reader->sums->quality.is_incomplete |= to == facts->event_count;
	}
}

/* Finds the position of a moment. `option` is the option that specified the moment, or NULL if the
 * moment is part of the path. */
static int find_moment(const struct record_reader *reader, struct recording *recording,
	const char *option, const char *moment, struct place_in_time *place, struct err *err)
{
	int rc = recording_position(recording, moment, &place->position, &place->time_ms, err);

	if (rc == -ERR_MOMENT)
		snprintf(err->place, sizeof(err->place), "%s%s%s",
			option ? option : reader->sums->id.path, option ? " " : "",
			option ? moment : "");
	return rc;
}

/* Finds the moment by which blocks must be allocated to be old enough at the window's end. */
static int find_older(const struct record_reader *reader, struct recording *recording,
	const struct recording_part *part, struct window_places *places, struct err *err)
{
	char moment[30], end[DURATION_TEXT_BYTES];

	if ((uint64_t)part->older_ms > places->to.time_ms)
		return err_set(err, ERR_USAGE, "--older-than",
			"no block can be that old: the window ends after %s",
			duration_text((int64_t)places->to.time_ms, end));
	snprintf(moment, sizeof(moment), "%" PRIu64 "ms",
		places->to.time_ms - (uint64_t)part->older_ms);
	return find_moment(reader, recording, "--older-than", moment, &places->from, err);
}

/* Finds the moments of a window. For FATE_LIVE, finds only a moment, and stores it in `to`. */
static int find_part(const struct record_reader *reader, struct recording *recording,
	const struct recording_part *part, struct window_places *places, struct err *err)
{
	const char *to = part->to ? part->to : part->still_at ? part->still_at : "end";
	int rc;

	if (part->fate == FATE_LIVE)
		to = part->moment ? part->moment : "end";
	rc = find_moment(reader, recording,
		part->fate == FATE_LIVE ? NULL :
		part->to		? "--to" :
					  "--still-at",
		to, &places->to, err);
	places->born = places->to;
	if (rc || part->fate == FATE_LIVE)
		return rc;
	if (part->still_at)
		rc = find_moment(reader, recording, "--still-at", part->still_at, &places->to, err);
	if (!rc && part->older_ms)
		rc = find_older(reader, recording, part, places, err);
	else if (!rc)
		rc = find_moment(reader, recording, "--from", part->from ? part->from : "start",
			&places->from, err);
	if (rc)
		return rc;
	if (places->from.position > places->born.position)
		return err_set(err, ERR_USAGE, reader->sums->id.path, "--from is after --to");
	return places->born.position > places->to.position ?
		       err_set(err, ERR_USAGE, reader->sums->id.path, "--to is after --still-at") :
		       0;
}

static int read_part(struct record_reader *reader, struct recording *recording,
	const struct recording_part *part, struct err *err)
{
	struct dump_sums *sums = reader->sums;
	struct window_places places = {0};
	int rc = find_part(reader, recording, part, &places, err);

	if (!rc)
		rc = add_before(reader, recording, err);
	if (rc)
		return rc;
	place_modules(reader, places.to.time_ms);
	copy_facts(reader);
	add_losses(reader, places.to.position);
	if (reader->facts->time_ms)
		sums->id.time_ms = reader->facts->time_ms + (int64_t)places.to.time_ms;
	sums->single.sizes = part->sizes;
	sums->window = (struct recording_window){.fate = part->fate,
		.from_position = places.from.position,
		.from_ms = places.from.time_ms,
		.born_position = places.born.position,
		.born_ms = places.born.time_ms,
		.to_ms = places.to.time_ms,
		.position = places.to.position + 1,
		.module_bases = sums->window.module_bases};
	if (part->fate != FATE_LIVE)
		return read_fate(reader, recording, err);
	rc = read_live(reader, recording, places.to.position, err);
	if (!rc && part->wants_blocks && reader->facts->has_addresses &&
		!reader->facts->sample_bytes)
		rc = read_blocks(reader, recording, places.to.position, err);
	return rc;
}

int sums_read_recording(struct dump_sums *sums, const char *path, const char *file,
	const struct recording_part *part, struct err *err)
{
	struct record_reader reader = {.sums = sums};
	struct recording *recording;
	int rc = recording_open(&recording, file, err);

	if (rc)
		return rc;
	sums->id.path = arena_text(&sums->arena, path, strlen(path));
	sums->id.file = arena_text(&sums->arena, file, strlen(file));
	reader.facts = recording_facts(recording);
	reader.stacks = xmalloc((reader.facts->stack_count + 1) * sizeof(*reader.stacks));
	memset(reader.stacks, 0xff, reader.facts->stack_count * sizeof(*reader.stacks));
	u64map_init(&reader.heaps);
	u64map_init(&reader.cells);
	rc = read_part(&reader, recording, part, err);
	if (!rc)
		copy_modules(&reader);
	u64map_release(&reader.heaps);
	u64map_release(&reader.cells);
	free(reader.places);
	free(reader.stacks);
	recording_close(recording);
	return rc;
}
