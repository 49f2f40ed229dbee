/* Births and deaths of blocks by span, in one pass. The table's memory is bounded: if it becomes
 * too large, small rows are merged, and then spans. */
#include "diff/query/lives.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

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
	/* indexed by birth: blocks of merged rows that were freed in the current span */
	struct life_entry others[LIFE_SPANS_MAX + 2];
	uint32_t *touched; /* kinds with freed blocks in the current span */
	size_t touched_count, touched_cap;
	uint64_t now_bytes[RECORD_MEMORIES], now_blocks[RECORD_MEMORIES];
	uint64_t in_use; /* sum of `now_bytes` without reserved address space */
	uint64_t time_ms; /* of the current event */
	uint64_t highest_bytes, highest_ms; /* in the current span */
};

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

static void append_entry(struct life_maker *maker, const struct life_entry *entry)
{
	struct lives *lives = maker->lives;

	array_grow((void **)&lives->entries, &maker->entry_cap, lives->entry_count,
		sizeof(*lives->entries));
	lives->entries[lives->entry_count++] = *entry;
}

/* Adds blocks of a kind that were allocated in span `birth` and freed in span `death`. The caller
 * must then call add_others(). */
static void add_entry(struct life_maker *maker, const struct kind_lives *kind, uint16_t birth,
	uint16_t death, uint64_t count)
{
	const uint64_t blocks = record_kind_stands_for(maker->window.facts, kind->number, count);
	const struct life_entry entry = {kind->row, birth, death, blocks, blocks * kind->bytes};

	if (!maker->rows[kind->row].is_other) {
		append_entry(maker, &entry);
		return;
	}
	maker->others[birth].blocks += blocks;
	maker->others[birth].bytes += entry.bytes;
}

/* Adds the blocks of all merged rows that were freed in span `death`. */
static void add_others(struct life_maker *maker, uint16_t death)
{
	for (size_t i = 0; i <= maker->lives->edge_count; i++) {
		struct life_entry *other = &maker->others[i];

		if (other->blocks)
			append_entry(maker, &(struct life_entry){LIFE_OTHER, (uint16_t)i, death,
						    other->blocks, other->bytes});
		*other = (struct life_entry){0};
	}
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

/* Adds the blocks of a kind that were freed in the current span, and drops runs whose blocks were
 * all freed. */
static void add_freed_kind(struct life_maker *maker, struct kind_lives *kind)
{
	size_t left = 0;

	for (size_t i = 0; i < kind->run_count; i++) {
		struct life_run *run = &kind->runs[i];

		if (run->freed_now)
			add_entry(maker, kind, run->span, (uint16_t)maker->span, run->freed_now);
		run->freed_now = 0;
		if (!i || run->live)
			kind->runs[left++] = *run;
	}
	maker->run_count -= kind->run_count - left;
	kind->run_count = left;
	kind->is_touched = false;
}

/* Adds the blocks that were freed in the current span. */
static void add_freed(struct life_maker *maker)
{
	for (size_t i = 0; i < maker->touched_count; i++)
		add_freed_kind(maker, &maker->kinds[maker->touched[i]]);
	add_others(maker, (uint16_t)maker->span);
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
	lives_add_edges(maker->lives, window);
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

void lives_fetch(const struct life_maker *maker, uint32_t number, bool are_blocks)
{
	const struct kind_lives *kind = &maker->kinds[number];

	if (are_blocks) {
		__builtin_prefetch(&kind->runs[kind->run_count - 1]);
		__builtin_prefetch(&maker->rows[kind->row]);
		return;
	}
	__builtin_prefetch(kind);
	__builtin_prefetch((const char *)(kind + 1) - 1);
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

struct lives *lives_end(struct life_maker *maker)
{
	struct lives *lives = maker->lives;

	while (maker->span < lives->edge_count)
		end_span(maker);
	for (size_t i = 0; i < maker->kind_count; i++) {
		add_live(maker, &maker->kinds[i]);
		if (lives->entry_count > ENTRIES_MAX) {
			add_others(maker, (uint16_t)lives->edge_count);
			limit_size(maker);
		}
	}
	add_others(maker, (uint16_t)lives->edge_count);
	merge_entries(lives);
	lives_copy_labels(lives, &maker->window);
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
