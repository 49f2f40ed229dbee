/* Stacks as boxes for flame graphs and other viewers: one box per frame, starting with the root. */
#ifndef DIFF_REPORT_GRAPH_H
#define DIFF_REPORT_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "diff/query/view.h"
#include "diff/read/frame.h"

/* Returns true if the view has OLD sums. In that case, figures are growth. Otherwise, they are
 * current usage. */
bool graph_is_growth(const struct view *view);

/* Returns the name of the figures: "inuse", or the fate of a window of a recording. */
const char *graph_what(const struct view *view);

/* Appends the names of the input files, and reasons why figures are estimates or incomplete. */
void graph_inputs(const struct view *view, struct buf *words);

/* Returns the number of rows to draw, starting with the first in `view->rows`. */
size_t graph_row_count(const struct view *view);

/* Stack of one row. The struct is used again for each row. Call graph_stack_init() before the first
 * row and graph_stack_release() after the last. */
struct graph_stack {
	struct change change;
	struct graph_frame {
		/* output of clean_frame(), the name of a group, or, if no frame is known,
		 * report_row_words() */
		const char *name;
		const struct frame *frame; /* frame with this name, or NULL */
	} * frames; /* starting with the root */
	size_t count, cap;
	struct frames found;
	/* `names`: all names, each NUL-terminated. `group`: name of the current frame's group. */
	struct buf names, group;
};

void graph_stack_init(struct graph_stack *stack);
void graph_stack_release(struct graph_stack *stack);

/* Fills `stack` from a row. Returns false if the row has nothing to draw. */
bool graph_stack_read(struct graph_stack *stack, const struct view *view, uint32_t row);

/* All stacks that are drawn. A line is the sum of all stacks with equal boxes. Lines are sorted by
 * the names of their boxes, and the names of the roots are compared first. To save memory for long
 * names, each box is stored only once. */
struct graph {
	struct graph_box {
		const char *name;
		const char *file; /* source file of the frame; NULL: unknown */
		uint32_t line; /* 0: unknown */
		uint32_t number; /* number of the box; used only while lines are read */
	} * boxes;
	size_t box_count, box_cap;
	struct graph_line {
		const uint32_t *boxes; /* starting with the root */
		size_t at, count; /* range in `numbers` */
		struct change change;
	} * lines;
	size_t line_count, line_cap;
	uint32_t *numbers;
	size_t number_count, number_cap;
	struct table known; /* maps a box's content to its number */
	struct arena arena;
};

enum {
	/* boxes with different files or lines are different; without this flag, boxes contain
	 * neither file nor line */
	GRAPH_PLACES = 1,
	GRAPH_FOLDED = 2, /* ';' in names becomes ':' */
};

void graph_make(struct graph *graph, const struct view *view, unsigned flags);
void graph_release(struct graph *graph);

#endif
