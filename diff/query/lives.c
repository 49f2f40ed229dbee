/* Births and deaths of blocks by span, in one pass. The table's memory is bounded: if it becomes
 * too large, small rows are merged, and then spans. */
#include "diff/query/lives.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "diff/read/read_use.h"

#define ENTRIES_MAX (1 << 20) /* 32 MiB */
#define RUNS_MAX (1 << 21) /* 64 MiB */
#define ROWS_MIN 2000 /* at least this many rows are listed */
#define EDGES_MIN 17
#define WEIGHT_KEPT 256 /* weight of a byte that the report shows; of one that was allocated: 1 */

/* Consecutive allocations of a kind in one span. */
struct life_run {
	uint64_t first_number;
	uint64_t live; /* number of blocks that have not been freed */
	uint64_t freed_now; /* number of blocks freed in the current span */
	uint16_t span;
};

struct kind_lives {
	struct life_run *runs; /* in order of their numbers; the first has the older blocks */
	size_t run_count, run_cap;
	uint64_t next_number;
	uint64_t bytes; /* of one block */
	uint64_t use_bytes, use_blocks; /* what a recorded block stands for */
	uint32_t number, row;
	enum record_memory memory;
	bool is_touched; /* has freed blocks in the current span */
};

struct row_lives {
	uint64_t weight;
	bool is_used, is_other;
};

struct life_maker {
	struct life_window window;
	struct row_lives *rows;
	struct lives *lives;
	size_t entry_cap;
	size_t span; /* number of the current span */
	struct kind_lives *kinds;
	size_t kind_count, kind_cap, run_count;
	uint32_t *touched; /* kinds with freed blocks in the current span */
	size_t touched_count, touched_cap;
	uint64_t now_bytes[RECORD_MEMORIES], now_blocks[RECORD_MEMORIES];
	uint64_t in_use; /* sum of `now_bytes` without reserved address space */
	uint64_t time_ms; /* of the current event */
	uint64_t highest_bytes, highest_ms; /* in the current span */
};

/* ---------------------------------------------------------------- edges */

static int by_time(const void *a, const void *b)
{
	const struct life_edge *x = a, *y = b;

	/* An edge at the end of a millisecond comes after all positions in it. */
	if (x->time_ms != y->time_ms)
		return x->time_ms < y->time_ms ? -1 : 1;
	return x->position < y->position ? -1 : x->position > y->position;
}

static void add_edge(struct lives *lives, uint64_t time_ms, uint64_t position, const char *label)
{
	lives->edges[lives->edge_count++] =
		(struct life_edge){.time_ms = time_ms, .position = position, .label = label};
}

/* Returns true if the mark's label names its moment: no other mark has it, and it is not another
 * way to write a moment. */
static bool is_name(const struct record_facts *facts, size_t number)
{
	const char *label = facts->marks[number].label;

	if (!strcmp(label, "start") || !strcmp(label, "end") || !strncmp(label, "peak", 4) ||
		strchr("0123456789.", *label))
		return false;
	for (size_t i = 0; i < facts->mark_count; i++) {
		if (i != number && !strcmp(facts->marks[i].label, label))
			return false;
	}
	return true;
}

static bool is_inside(const struct life_window *window, uint64_t position, uint64_t time_ms)
{
	return position > window->from_position && position < window->to_position &&
	       time_ms >= window->from_ms && time_ms <= window->to_ms;
}

/* Adds edges at the marks and at the peak of the recording. */
static void add_labels(struct lives *lives, const struct life_window *window)
{
	const struct record_facts *facts = window->facts;

	if (is_inside(window, facts->peak.position, facts->peak.time_ms))
		add_edge(lives, facts->peak.time_ms, facts->peak.position, "peak");
	for (size_t i = 0; facts->mark_count <= LIFE_LABELS_MAX && i < facts->mark_count; i++) {
		const struct record_mark *mark = &facts->marks[i];

		if (is_inside(window, mark->position, mark->time_ms) && is_name(facts, i))
			add_edge(lives, mark->time_ms, mark->position, mark->label);
	}
}

/* Adds edges at multiples of a round length. */
static void add_times(struct lives *lives, const struct life_window *window)
{
	const uint64_t step =
		use_step_ms(window->to_ms - window->from_ms, LIFE_SPANS_MAX - lives->edge_count);
	uint64_t now = window->from_ms, more = step - now % step;

	while (more < window->to_ms - now) {
		now += more;
		add_edge(lives, now, UINT64_MAX, NULL);
		more = step;
	}
}

/* Returns a name of the start or the end of the window, or NULL. */
static const char *name_at(const struct record_facts *facts, uint64_t position)
{
	if (position == facts->start_position)
		return "start";
	if (position == facts->event_count)
		return "end";
	if (position == facts->peak.position)
		return "peak";
	for (size_t i = 0; i < facts->mark_count; i++) {
		if (facts->marks[i].position == position && is_name(facts, i))
			return facts->marks[i].label;
	}
	return NULL;
}

static void make_edges(struct lives *lives, const struct life_window *window)
{
	size_t last = 1;

	lives->edges = xcalloc(LIFE_SPANS_MAX + 2, sizeof(*lives->edges));
	add_edge(lives, window->from_ms, window->from_position,
		name_at(window->facts, window->from_position));
	add_labels(lives, window);
	add_times(lives, window);
	qsort(lives->edges + 1, lives->edge_count - 1, sizeof(*lives->edges), by_time);
	for (size_t i = 1; i < lives->edge_count; i++) {
		if (by_time(&lives->edges[last - 1], &lives->edges[i]))
			lives->edges[last++] = lives->edges[i];
	}
	lives->edge_count = last;
	add_edge(lives, window->to_ms, window->to_position,
		name_at(window->facts, window->to_position));
}

/* ---------------------------------------------------------------- the table */

static int by_row(const void *a, const void *b)
{
	const struct life_entry *x = a, *y = b;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	if (x->birth != y->birth)
		return x->birth < y->birth ? -1 : 1;
	return x->death < y->death ? -1 : x->death > y->death;
}

/* Sorts the entries and adds up those that are equal. */
static void merge_entries(struct lives *lives)
{
	size_t last = 0;

	if (lives->entry_count)
		qsort(lives->entries, lives->entry_count, sizeof(*lives->entries), by_row);
	for (size_t i = 0; i < lives->entry_count; i++) {
		struct life_entry *entry = &lives->entries[i];

		if (!last || by_row(&lives->entries[last - 1], entry)) {
			lives->entries[last++] = *entry;
			continue;
		}
		lives->entries[last - 1].blocks += entry->blocks;
		lives->entries[last - 1].bytes += entry->bytes;
	}
	lives->entry_count = last;
}

/* Renames the spans of a kind's runs, and joins runs that are then in one span. */
static void rename_runs(struct kind_lives *kind, const uint16_t *renamed)
{
	size_t last = 0;

	for (size_t i = 0; i < kind->run_count; i++) {
		struct life_run run = kind->runs[i];

		run.span = renamed[run.span];
		/* Run 0 has the older blocks, and stays alone. */
		if (last > 1 && kind->runs[last - 1].span == run.span)
			kind->runs[last - 1].live += run.live;
		else
			kind->runs[last++] = run;
	}
	kind->run_count = last;
}

/* Merges each second span that ended with the next, which did not. Edges with labels stay while
 * there are others. */
static void merge_spans(struct life_maker *maker)
{
	struct lives *lives = maker->lives;
	uint16_t *renamed = xcalloc(lives->edge_count + 1, sizeof(*renamed));
	size_t plain = 0, kept = 1, old_count = lives->edge_count;

	for (size_t i = 1; i + 1 < old_count; i++)
		plain += !lives->edges[i].label;
	for (size_t i = 1, turn = 0; i < old_count; i++) {
		bool stays = i + 1 == old_count || i == maker->span ||
			     (lives->edges[i].label && plain) || turn++ % 2;
		struct life_edge *next = &lives->edges[i + 1];

		renamed[i] = (uint16_t)kept;
		if (stays) {
			lives->edges[kept++] = lives->edges[i];
		} else if (i < maker->span &&
			   lives->edges[i].highest_bytes >= next->highest_bytes) {
			next->highest_bytes = lives->edges[i].highest_bytes;
			next->highest_ms = lives->edges[i].highest_ms;
		}
	}
	renamed[old_count] = (uint16_t)kept;
	lives->edge_count = kept;
	maker->span = renamed[maker->span];
	for (size_t i = 0; i < lives->entry_count; i++) {
		lives->entries[i].birth = renamed[lives->entries[i].birth];
		lives->entries[i].death = renamed[lives->entries[i].death];
	}
	maker->run_count = 0;
	for (size_t i = 0; i < maker->kind_count; i++) {
		rename_runs(&maker->kinds[i], renamed);
		maker->run_count += maker->kinds[i].run_count;
	}
	free(renamed);
	merge_entries(lives);
}

static void add_entry(struct life_maker *maker, const struct kind_lives *kind, uint16_t birth,
	uint16_t death, uint64_t count)
{
	struct lives *lives = maker->lives;
	const uint64_t blocks = record_kind_stands_for(maker->window.facts, kind->number, count);

	array_grow((void **)&lives->entries, &maker->entry_cap, lives->entry_count,
		sizeof(*lives->entries));
	lives->entries[lives->entry_count++] =
		(struct life_entry){.row = maker->rows[kind->row].is_other ? LIFE_OTHER : kind->row,
			.birth = birth,
			.death = death,
			.blocks = blocks,
			.bytes = blocks * kind->bytes};
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Merges the smaller half of the rows. Returns false if only ROWS_MIN are left. */
static bool merge_rows(struct life_maker *maker)
{
	uint64_t *weights = xcalloc(maker->window.row_count + 1, sizeof(*weights)), limit;
	size_t count = 0, left;

	for (size_t i = 0; i < maker->window.row_count; i++) {
		if (maker->rows[i].is_used && !maker->rows[i].is_other)
			weights[count++] = maker->rows[i].weight;
	}
	qsort(weights, count, sizeof(*weights), by_size);
	left = count / 2 > ROWS_MIN ? count / 2 : ROWS_MIN;
	limit = count > left ? weights[count - left] : 0;
	free(weights);
	if (count <= left)
		return false;
	for (size_t i = 0, more = count - left; more && i < maker->window.row_count; i++) {
		struct row_lives *row = &maker->rows[i];

		if (!row->is_used || row->is_other || row->weight > limit)
			continue;
		row->is_other = true;
		more--;
	}
	for (size_t i = 0; i < maker->lives->entry_count; i++) {
		struct life_entry *entry = &maker->lives->entries[i];

		if (entry->row != LIFE_OTHER && maker->rows[entry->row].is_other)
			entry->row = LIFE_OTHER;
	}
	merge_entries(maker->lives);
	return true;
}

/* Keeps the table within its limits. No span may be open: no run has blocks in `freed_now`. */
static void limit_size(struct life_maker *maker)
{
	struct lives *lives = maker->lives;

	while (maker->run_count > RUNS_MAX && lives->edge_count > EDGES_MIN)
		merge_spans(maker);
	if (lives->entry_count <= ENTRIES_MAX)
		return;
	merge_entries(lives);
	while (lives->entry_count > ENTRIES_MAX / 2 && merge_rows(maker))
		continue;
	while (lives->entry_count > ENTRIES_MAX / 2 && lives->edge_count > EDGES_MIN)
		merge_spans(maker);
}

/* Adds the blocks that were freed in the current span. */
static void add_freed(struct life_maker *maker)
{
	for (size_t i = 0; i < maker->touched_count; i++) {
		struct kind_lives *kind = &maker->kinds[maker->touched[i]];

		kind->is_touched = false;
		for (size_t k = 0; k < kind->run_count; k++) {
			struct life_run *run = &kind->runs[k];

			if (run->freed_now)
				add_entry(maker, kind, run->span, (uint16_t)maker->span,
					run->freed_now);
			run->freed_now = 0;
		}
	}
	maker->touched_count = 0;
}

/* ---------------------------------------------------------------- events */

struct life_maker *lives_begin(const struct life_window *window)
{
	struct life_maker *maker = xcalloc(1, sizeof(*maker));

	maker->window = *window;
	maker->span = 1;
	maker->rows = xcalloc(window->row_count + 1, sizeof(*maker->rows));
	maker->lives = xcalloc(1, sizeof(*maker->lives));
	arena_init(&maker->lives->arena);
	make_edges(maker->lives, window);
	maker->highest_ms = window->from_ms;
	return maker;
}

void lives_add_kind(struct life_maker *maker, const struct life_kind *added)
{
	const struct record_facts *facts = maker->window.facts;
	const struct record_kind *record = &facts->kinds[added->number];
	struct row_lives *row = &maker->rows[added->row];
	struct kind_lives *kind;
	struct life_edge *first = maker->lives->edges;
	uint64_t blocks;

	array_grow(
		(void **)&maker->kinds, &maker->kind_cap, maker->kind_count, sizeof(*maker->kinds));
	kind = &maker->kinds[maker->kind_count++];
	*kind = (struct kind_lives){.next_number = added->first_number,
		.bytes = record->bytes,
		.use_bytes = record_kind_bytes(facts, added->number),
		.use_blocks = record_kind_stands_for(facts, added->number, 1),
		.number = added->number,
		.row = added->row,
		.memory = record->memory};
	row->is_used = true;
	row->weight = added->weight > UINT64_MAX / 2 / WEIGHT_KEPT ? UINT64_MAX / 2 :
								     added->weight * WEIGHT_KEPT;
	array_grow((void **)&kind->runs, &kind->run_cap, 0, sizeof(*kind->runs));
	kind->runs[kind->run_count++] = (struct life_run){.live = added->live};
	blocks = record_kind_stands_for(facts, added->number, added->live);
	maker->now_blocks[kind->memory] += blocks;
	maker->now_bytes[kind->memory] += blocks * kind->bytes;
	if (kind->memory != RECORD_RESERVED)
		maker->in_use += blocks * kind->bytes;
	maker->highest_bytes = first->highest_bytes = maker->in_use;
	first->highest_ms = first->time_ms;
	memcpy(first->bytes, maker->now_bytes, sizeof(first->bytes));
	memcpy(first->blocks, maker->now_blocks, sizeof(first->blocks));
}

/* Ends the current span. */
static void end_span(struct life_maker *maker)
{
	struct life_edge *edge = &maker->lives->edges[maker->span];

	memcpy(edge->bytes, maker->now_bytes, sizeof(edge->bytes));
	memcpy(edge->blocks, maker->now_blocks, sizeof(edge->blocks));
	edge->highest_bytes = maker->highest_bytes;
	edge->highest_ms = maker->highest_ms;
	maker->highest_bytes = maker->in_use;
	maker->highest_ms = edge->time_ms;
	add_freed(maker);
	limit_size(maker);
	maker->span++;
}

void lives_advance(struct life_maker *maker, uint64_t position, uint64_t time_ms)
{
	maker->time_ms = time_ms;
	while (maker->span + 1 < maker->lives->edge_count) {
		const struct life_edge *edge = &maker->lives->edges[maker->span];

		if (edge->position != UINT64_MAX ? position < edge->position :
						   time_ms <= edge->time_ms)
			break;
		end_span(maker);
	}
}

void lives_alloc(struct life_maker *maker, uint32_t number)
{
	struct kind_lives *kind = &maker->kinds[number];
	struct life_run *run = &kind->runs[kind->run_count - 1];

	if (kind->run_count == 1 || run->span != maker->span) {
		array_grow(
			(void **)&kind->runs, &kind->run_cap, kind->run_count, sizeof(*kind->runs));
		run = &kind->runs[kind->run_count++];
		maker->run_count++;
		*run = (struct life_run){
			.first_number = kind->next_number, .span = (uint16_t)maker->span};
	}
	kind->next_number++;
	run->live++;
	maker->rows[kind->row].weight += kind->use_bytes; /* may wrap around after 2^63 bytes */
	maker->now_bytes[kind->memory] += kind->use_bytes;
	maker->now_blocks[kind->memory] += kind->use_blocks;
	if (kind->memory == RECORD_RESERVED)
		return;
	maker->in_use += kind->use_bytes;
	if (maker->in_use > maker->highest_bytes) {
		maker->highest_bytes = maker->in_use;
		maker->highest_ms = maker->time_ms;
	}
}

void lives_free(struct life_maker *maker, uint32_t number, uint64_t block)
{
	struct kind_lives *kind = &maker->kinds[number];
	size_t from = 0, end = kind->run_count;

	while (end - from > 1) {
		size_t middle = end - 1;

		/* Most blocks are young: the newest run is compared first. */
		if (kind->runs[middle].first_number > block)
			middle = from + (end - from) / 2;
		if (kind->runs[middle].first_number <= block)
			from = middle;
		else
			end = middle;
	}
	kind->runs[from].freed_now++;
	kind->runs[from].live--;
	maker->now_bytes[kind->memory] -= kind->use_bytes;
	maker->now_blocks[kind->memory] -= kind->use_blocks;
	if (kind->memory != RECORD_RESERVED)
		maker->in_use -= kind->use_bytes;
	if (kind->is_touched)
		return;
	kind->is_touched = true;
	array_grow((void **)&maker->touched, &maker->touched_cap, maker->touched_count,
		sizeof(*maker->touched));
	maker->touched[maker->touched_count++] = number;
}

static void free_maker(struct life_maker *maker)
{
	for (size_t i = 0; i < maker->kind_count; i++)
		free(maker->kinds[i].runs);
	free(maker->kinds);
	free(maker->rows);
	free(maker->touched);
	free(maker);
}

/* Adds the blocks of a kind that outlive the window. */
static void add_live(struct life_maker *maker, const struct kind_lives *kind)
{
	for (size_t i = 0; i < kind->run_count; i++) {
		if (kind->runs[i].live)
			add_entry(maker, kind, kind->runs[i].span,
				(uint16_t)maker->lives->edge_count, kind->runs[i].live);
	}
}

static const char *copy(struct lives *lives, const char *label)
{
	return label ? arena_text(&lives->arena, label, strlen(label)) : NULL;
}

/* Copies the labels of the edges, and the marks in the window. */
static void copy_labels(struct lives *lives, const struct life_window *window)
{
	const struct record_facts *facts = window->facts;

	for (size_t i = 0; i < lives->edge_count; i++)
		lives->edges[i].label = copy(lives, lives->edges[i].label);
	lives->marks = xcalloc(facts->mark_count + 1, sizeof(*lives->marks));
	for (size_t i = 0; i < facts->mark_count; i++) {
		struct record_mark mark = facts->marks[i];

		if (mark.position < window->from_position || mark.position > window->to_position)
			continue;
		mark.label = copy(lives, mark.label);
		lives->marks[lives->mark_count++] = mark;
	}
}

struct lives *lives_end(struct life_maker *maker)
{
	struct lives *lives = maker->lives;

	while (maker->span < lives->edge_count)
		end_span(maker);
	for (size_t i = 0; i < maker->kind_count; i++) {
		add_live(maker, &maker->kinds[i]);
		limit_size(maker);
	}
	merge_entries(lives);
	copy_labels(lives, &maker->window);
	free_maker(maker);
	return lives;
}

void lives_cancel(struct life_maker *maker)
{
	if (!maker)
		return;
	lives_release(maker->lives);
	free_maker(maker);
}

void lives_release(struct lives *lives)
{
	if (!lives)
		return;
	free(lives->edges);
	free(lives->entries);
	free(lives->marks);
	arena_release(&lives->arena);
	free(lives);
}
