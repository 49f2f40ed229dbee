/* Stacks as flame graphs and other viewers draw them: a box for each frame, the root first. */
#ifndef DIFF_REPORT_GRAPH_H
#define DIFF_REPORT_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "diff/query/view.h"
#include "diff/read/frame.h"

/* Whether there is something old, so that what is shown is growth; else it is what is there. */
bool graph_is_growth(const struct view *view);

/* What is there: "inuse", or its class in a window of a recording. */
const char *graph_what(const struct view *view);

/* Appends the files that it is of, and what makes its numbers others than they look. */
void graph_inputs(const struct view *view, struct buf *words);

/* The number of rows that are drawn, the first ones of view->rows. */
size_t graph_row_count(const struct view *view);

/* One row's. graph_stack_init() before the first, graph_stack_release() behind the last. */
struct graph_stack {
	struct change change;
	struct graph_frame {
		const char *
			name; /* as clean_frame() has it; of a group, or words where no frame is known */
		const struct frame *frame; /* that it is the name of; NULL: of none */
	} * frames; /* the root first */
	size_t count, cap;
	struct frames found;
	struct buf names, group; /* text of all, ended by NUL; of the one at hand */
};

void graph_stack_init(struct graph_stack *stack);
void graph_stack_release(struct graph_stack *stack);

/* Fills it from a row; false when there is nothing of it to draw. */
bool graph_stack_read(struct graph_stack *stack, const struct view *view, uint32_t row);

/* All that are drawn. Each box is kept once, so that long names on many stacks do not take the memory that their text
 * would. Stacks of the same boxes are one line with their sum; lines are sorted box by box, by name. */
struct graph {
	struct graph_box {
		const char *name;
		const char *file; /* as the frame has it, NULL: not known */
		uint32_t line; /* 0: not known */
		uint32_t number; /* that it had while lines were read */
	} * boxes;
	size_t box_count, box_cap;
	struct graph_line {
		const uint32_t *boxes; /* the root first */
		size_t at, count; /* of them, in all of numbers[] */
		struct change change;
	} * lines;
	size_t line_count, line_cap;
	uint32_t *numbers;
	size_t number_count, number_cap;
	struct table known; /* boxes by what they show */
	struct arena arena;
};

enum {
	GRAPH_PLACES = 1, /* boxes that differ in file or line are two; else they have neither */
	GRAPH_FOLDED = 2, /* a ';' in a name is a ':' */
};

void graph_make(struct graph *graph, const struct view *view, unsigned flags);
void graph_release(struct graph *graph);

#endif
