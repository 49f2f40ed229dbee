/* Stacks as boxes for graphs: the frames of one row, and the distinct boxes and sorted lines of all
 * rows. */
#include "diff/report/graph.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "diff/query/group.h"
#include "diff/report/clean.h"
#include "diff/report/report_parts.h"

bool graph_is_growth(const struct view *view)
{
	return !view->comparison->is_sum && view->comparison->dump_count > 1;
}

const char *graph_what(const struct view *view)
{
	const struct comparison *comparison = view->comparison;
	enum block_fate fate = comparison->dumps ? comparison->dumps[0].window.fate : FATE_LIVE;

	return fate == FATE_LIVE ? "inuse" : block_fate_name(fate);
}

void graph_inputs(const struct view *view, struct buf *words)
{
	const struct comparison *comparison = view->comparison;
	const struct dump_sums *dumps = comparison->dumps;
	const size_t count = dumps ? comparison->dump_count : 0;
	bool is_partial = !dumps && (comparison->is_cut || comparison->is_partial);
	uint64_t sample_bytes = 0;

	for (size_t i = 0; i < count; i++) {
		is_partial |= dumps[i].quality.is_incomplete || dumps[i].quality.is_cut;
		sample_bytes = dumps[i].quality.sample_bytes ? dumps[i].quality.sample_bytes :
							       sample_bytes;
	}
	if (!count)
		buf_add_text(words, comparison->read_from ? comparison->read_from : "-");
	else if (comparison->is_sum && count > 1)
		buf_printf(words, "%s and %zu more", dumps[0].id.path, count - 1);
	else if (graph_is_growth(view))
		buf_printf(words, "%s -> %s", dumps[0].id.path, dumps[count - 1].id.path);
	else
		buf_add_text(words, dumps[0].id.path);
	if (view->is_filtered || graph_row_count(view) < view->row_count)
		buf_add_text(words, ", only the selected stacks");
	if (is_partial)
		buf_add_text(words, ", INCOMPLETE");
	if (sample_bytes)
		buf_printf(
			words, ", ESTIMATES: one in %" PRIu64 " bytes was recorded", sample_bytes);
}

size_t graph_row_count(const struct view *view)
{
	/* A grouped view shows groups instead of rows. Therefore, all of its rows are drawn. */
	return view->group == GROUP_STACK ? view->shown_count : view->row_count;
}

/* ---------------------------------------------------------------- one stack */

void graph_stack_init(struct graph_stack *stack)
{
	*stack = (struct graph_stack){0};
	buf_init(&stack->names);
	buf_init(&stack->group);
	frames_init(&stack->found);
}

void graph_stack_release(struct graph_stack *stack)
{
	free(stack->frames);
	frames_release(&stack->found);
	buf_release(&stack->names);
	buf_release(&stack->group);
}

/* Adds a frame whose name is already in `names`, starting at `from`. */
static void add_frame(struct graph_stack *stack, size_t from, const struct frame *frame)
{
	if (stack->names.len == from)
		buf_add_text(&stack->names, "?");
	buf_add(&stack->names, "", 1);
	array_grow((void **)&stack->frames, &stack->cap, stack->count, sizeof(*stack->frames));
	stack->frames[stack->count++] = (struct graph_frame){.frame = frame};
}

/* Adds the frames of a row. The last frame in `found` becomes the root of the graph, also in an
 * inverted view, where that is the innermost frame. */
static void add_frames(struct graph_stack *stack, const struct view *view, const struct row *row)
{
	const struct frames *found = &stack->found;
	size_t count = found->part_count ? found->part_at[0] : found->count;
	char space[ROW_WORDS_BYTES];

	if (row->kind == ROW_AMBIGUOUS && count)
		buf_printf(&stack->names, "(ambiguous: one of %zu stacks)", found->part_count + 1);
	else if (!count || row->kind == ROW_STACKLESS)
		buf_add_text(&stack->names, report_row_words(row, space));
	if (stack->names.len)
		add_frame(stack, 0, NULL);
	while (count--) {
		const struct frame *frame = &found->items[count];
		size_t from = stack->names.len;

		if (view->group == GROUP_STACK) {
			clean_frame(&stack->names, frame, true);
		} else {
			group_name(view, frame, &stack->group);
			clean_text(&stack->names, stack->group.data, true);
		}
		add_frame(stack, from, view->group == GROUP_STACK ? frame : NULL);
	}
}

/* Stores the address of each frame's name, now that `names` no longer moves. In a grouped view,
 * merges consecutive frames of one group. */
static void join_frames(struct graph_stack *stack, bool is_grouped)
{
	const char *name = stack->names.data;
	size_t kept = 0;

	for (size_t i = 0; i < stack->count; i++) {
		struct graph_frame *frame = &stack->frames[kept];

		*frame = (struct graph_frame){name, stack->frames[i].frame};
		kept += !is_grouped || !kept || strcmp(frame[-1].name, name) != 0;
		name += strlen(name) + 1;
	}
	stack->count = kept;
}

bool graph_stack_read(struct graph_stack *stack, const struct view *view, uint32_t number)
{
	const struct row *row = &view->comparison->rows[number];
	struct change change = row_change(view->comparison, row);
	const struct block_totals *old = &change.old, *now = &change.now;

	stack->change = change;
	if (!old->requested_bytes && !now->requested_bytes && !old->block_count &&
		!now->block_count)
		return false;
	/* In a trend, only the growth from the first to the last snapshot is drawn, and this row
	 * has none. */
	if (view->comparison->axis && old->requested_bytes == now->requested_bytes)
		return false;
	stack->count = 0;
	buf_clear(&stack->names);
	if (group_is_of_row(view->group)) {
		group_row_name(view, row, &stack->group);
		clean_text(&stack->names, stack->group.data, true);
		add_frame(stack, 0, NULL);
	} else {
		view_frames(view, number, &stack->found);
		add_frames(stack, view, row);
	}
	join_frames(stack, view->group != GROUP_STACK);
	return true;
}

/* ---------------------------------------------------------------- all stacks */

/* Returns the number of a box. Adds the box if it is new. */
static uint32_t find_box(
	struct graph *graph, const struct graph_frame *frame, unsigned flags, struct buf *key)
{
	const struct frame *place = flags & GRAPH_PLACES ? frame->frame : NULL;
	struct graph_box box = {.number = (uint32_t)graph->box_count};
	const uint64_t *known;

	buf_clear(key);
	buf_add(key, frame->name, strlen(frame->name) + 1);
	if (place && place->file) {
		buf_add(key, &place->line, sizeof(place->line));
		buf_add_text(key, place->file);
	}
	known = table_find(&graph->known, key->data, key->len);
	if (known)
		return (uint32_t)*known;
	if (graph->box_count == UINT32_MAX)
		memory_out();
	table_add(&graph->known, key->data, key->len, box.number);
	box.name = arena_text(&graph->arena, frame->name, strlen(frame->name));
	if (place && place->file) {
		box.file = arena_text(&graph->arena, place->file, strlen(place->file));
		box.line = place->line;
	}
	array_grow(
		(void **)&graph->boxes, &graph->box_cap, graph->box_count, sizeof(*graph->boxes));
	graph->boxes[graph->box_count++] = box;
	return box.number;
}

static void add_line(
	struct graph *graph, const struct graph_stack *stack, unsigned flags, struct buf *key)
{
	struct graph_line line = {
		.at = graph->number_count, .count = stack->count, .change = stack->change};

	for (size_t i = 0; flags & GRAPH_FOLDED && i < stack->names.len; i++) {
		if (stack->names.data[i] == ';')
			stack->names.data[i] = ':';
	}
	for (size_t i = 0; i < stack->count; i++) {
		array_grow((void **)&graph->numbers, &graph->number_cap, graph->number_count,
			sizeof(*graph->numbers));
		graph->numbers[graph->number_count++] =
			find_box(graph, &stack->frames[i], flags, key);
	}
	array_grow(
		(void **)&graph->lines, &graph->line_cap, graph->line_count, sizeof(*graph->lines));
	graph->lines[graph->line_count++] = line;
}

static int by_text(const void *a, const void *b)
{
	const struct graph_box *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (!order)
		order = strcmp(x->file ? x->file : "", y->file ? y->file : "");
	return order ? order : (x->line > y->line) - (x->line < y->line);
}

/* Renumbers boxes in the order of their texts. After that, comparing numbers gives the same order
 * as comparing texts. */
static void rank_boxes(struct graph *graph)
{
	uint32_t *rank = xcalloc(graph->box_count + 1, sizeof(*rank));

	if (graph->box_count)
		qsort(graph->boxes, graph->box_count, sizeof(*graph->boxes), by_text);
	for (size_t i = 0; i < graph->box_count; i++)
		rank[graph->boxes[i].number] = (uint32_t)i;
	for (size_t i = 0; i < graph->number_count; i++)
		graph->numbers[i] = rank[graph->numbers[i]];
	for (size_t i = 0; i < graph->line_count; i++)
		graph->lines[i].boxes = graph->numbers + graph->lines[i].at;
	free(rank);
}

static int by_boxes(const struct graph_line *x, const struct graph_line *y)
{
	size_t count = x->count < y->count ? x->count : y->count;

	for (size_t i = 0; i < count; i++) {
		if (x->boxes[i] != y->boxes[i])
			return x->boxes[i] < y->boxes[i] ? -1 : 1;
	}
	return x->count < y->count ? -1 : x->count > y->count;
}

static int by_boxes_and_sums(const void *a, const void *b)
{
	const struct graph_line *x = a, *y = b;
	const uint64_t of_x[] = {x->change.old.requested_bytes, x->change.now.requested_bytes,
		x->change.old.block_count, x->change.now.block_count};
	const uint64_t of_y[] = {y->change.old.requested_bytes, y->change.now.requested_bytes,
		y->change.old.block_count, y->change.now.block_count};
	int order = by_boxes(x, y);

	for (size_t i = 0; !order && i < 4; i++)
		order = (of_x[i] > of_y[i]) - (of_x[i] < of_y[i]);
	return order;
}

static bool has_room(const struct block_totals *to, const struct block_totals *more)
{
	return to->requested_bytes <= UINT64_MAX - more->requested_bytes &&
	       to->block_count <= UINT64_MAX - more->block_count;
}

/* Adds up adjacent lines with equal boxes. If the sum would overflow, keeps both lines, which
 * together have the same meaning. */
static void unite_lines(struct graph *graph)
{
	size_t kept = 0;

	for (size_t i = 0; i < graph->line_count; i++) {
		const struct graph_line *line = &graph->lines[i];
		struct graph_line *to = kept ? &graph->lines[kept - 1] : NULL;

		if (to && !by_boxes(to, line) && has_room(&to->change.old, &line->change.old) &&
			has_room(&to->change.now, &line->change.now))
			change_add(&to->change, &line->change);
		else
			graph->lines[kept++] = *line;
	}
	graph->line_count = kept;
}

void graph_make(struct graph *graph, const struct view *view, unsigned flags)
{
	struct graph_stack stack;
	struct buf key;

	*graph = (struct graph){0};
	arena_init(&graph->arena);
	table_init(&graph->known);
	graph_stack_init(&stack);
	buf_init(&key);
	for (size_t i = 0; i < graph_row_count(view); i++) {
		if (graph_stack_read(&stack, view, view->rows[i]))
			add_line(graph, &stack, flags, &key);
	}
	buf_release(&key);
	graph_stack_release(&stack);
	rank_boxes(graph);
	if (graph->line_count)
		qsort(graph->lines, graph->line_count, sizeof(*graph->lines), by_boxes_and_sums);
	unite_lines(graph);
}

void graph_release(struct graph *graph)
{
	free(graph->lines);
	free(graph->numbers);
	free(graph->boxes);
	table_release(&graph->known);
	arena_release(&graph->arena);
}
