/*
 * The rows of a view as a call tree, for people. A node has the sum of all stacks that contain it.
 * In a top-down tree, the outermost frames are next to the root. In a bottom-up tree, the innermost
 * frames are next to the root. Two frames are equal if their modules and functions are equal. If
 * the functions are unknown, modules and offsets must be equal. Each node is a line. Nodes below
 * one per cent are left out. A node is indented more than its parent, and marked with "-", only if
 * the parent has several children that are shown. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/text.h"
#include "diff/report/clean.h"
#include "diff/report/numbers.h"
#include "diff/report/report.h"
#include "diff/report/report_parts.h"

#define CALL_NONE UINT32_MAX

struct call_node {
	/* "module!function" in the form that frame_name() writes; "" for the root */
	const char *name;
	uint32_t parent, first_child, next; /* indexes of nodes; CALL_NONE: no such node */
	struct change total;
	/* Sum of all growth and all shrinking in the node's rows, which would cancel each other in
	 * the node's growth. The node is shown only if this sum is large enough. */
	uint64_t moved_bytes;
};

struct call_tree {
	struct call_node *nodes; /* starting with the root */
	size_t count, cap;
	struct u64map known; /* maps a parent and the number of a name to a node */
	struct table names; /* maps a name to its number */
	struct arena texts;
};

#define PLACES_UNKNOWN "(ambiguous stack)"

static uint32_t add_node(struct call_tree *tree, const char *name, uint32_t parent)
{
	uint32_t number = (uint32_t)tree->count;

	if (tree->count == CALL_NONE)
		memory_out();
	array_grow((void **)&tree->nodes, &tree->cap, tree->count, sizeof(*tree->nodes));
	tree->nodes[tree->count++] = (struct call_node){
		.name = name, .parent = parent, .first_child = CALL_NONE, .next = CALL_NONE};
	if (parent != CALL_NONE) {
		tree->nodes[number].next = tree->nodes[parent].first_child;
		tree->nodes[parent].first_child = number;
	}
	return number;
}

/* Returns the child with the given name. Adds the child if it is new. */
static uint32_t child_of(struct call_tree *tree, uint32_t parent, const char *name, size_t len)
{
	uint64_t *known = table_find(&tree->names, name, len);
	uint32_t node = (uint32_t)tree->count;
	uint64_t number = known ? *known : tree->names.count;

	if (!known)
		table_add(&tree->names, name, len, number);
	if (!u64map_add(&tree->known, (uint64_t)parent << 32 | number, &node))
		return node;
	return add_node(tree, arena_text(&tree->texts, name, len), parent);
}

static void count(struct call_node *node, const struct change *change, uint64_t moved_bytes)
{
	change_add(&node->total, change);
	node->moved_bytes += moved_bytes;
}

static uint64_t moved(const struct change *change)
{
	uint64_t old = change->old.requested_bytes, now = change->now.requested_bytes;

	return now > old ? now - old : old - now;
}

static void add_row(struct call_tree *tree, const struct view *view, const struct row *row,
	const struct frames *frames, bool is_bottom_up, struct buf *name)
{
	struct change change = row_change(view->comparison, row);
	uint64_t moved_bytes = moved(&change);
	size_t frame_count = frames->part_count ? 0 : frames->count;
	uint32_t node = 0;

	count(&tree->nodes[0], &change, moved_bytes);
	if (!frame_count || row->kind == ROW_STACKLESS) {
		buf_clear(name);
		buf_add_text(name, frames->part_count ? PLACES_UNKNOWN : NO_STACK);
		node = child_of(tree, 0, name->data, name->len);
		count(&tree->nodes[node], &change, moved_bytes);
	}
	for (size_t i = 0; i < frame_count; i++) {
		frame_name(&frames->items[is_bottom_up ? i : frame_count - 1 - i], name);
		node = child_of(tree, node, name->data, name->len);
		count(&tree->nodes[node], &change, moved_bytes);
	}
}

/* ---------------------------------------------------------------- order */

static int by_moved(const void *a, const void *b)
{
	const struct call_node *x = *(const struct call_node *const *)a,
			       *y = *(const struct call_node *const *)b;

	if (x->moved_bytes != y->moved_bytes)
		return x->moved_bytes > y->moved_bytes ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void sort_children(
	struct call_tree *tree, uint32_t parent, struct call_node ***sorted, size_t *cap)
{
	size_t found = 0;
	uint32_t *link = &tree->nodes[parent].first_child;

	for (uint32_t child = *link; child != CALL_NONE; child = tree->nodes[child].next) {
		array_grow((void **)sorted, cap, found, sizeof(**sorted));
		(*sorted)[found++] = &tree->nodes[child];
	}
	if (found)
		qsort(*sorted, found, sizeof(**sorted), by_moved);
	for (size_t i = 0; i < found; i++) {
		*link = (uint32_t)((*sorted)[i] - tree->nodes);
		link = &(*sorted)[i]->next;
	}
	*link = CALL_NONE;
}

/* Makes the tree of all rows of a view, without the frames that start a program. Names must have
 * been looked up. Sorts children by `moved_bytes`, largest first. */
static void tree_make(
	struct call_tree *tree, const struct view *view, struct strip *start_up, bool is_bottom_up)
{
	struct call_node **sorted = NULL;
	size_t cap = 0;
	struct frames frames;
	struct buf name;

	*tree = (struct call_tree){0};
	u64map_init(&tree->known);
	table_init(&tree->names);
	arena_init(&tree->texts);
	frames_init(&frames);
	buf_init(&name);
	add_node(tree, "", CALL_NONE);
	for (size_t i = 0; i < view->row_count; i++) {
		const struct row *row = &view->comparison->rows[view->rows[i]];

		naming_frames(&view->naming, view->rows[i], &frames);
		if (view->strip)
			strip_frames(view->strip, &frames);
		strip_start_up(start_up, &frames, false);
		add_row(tree, view, row, &frames, is_bottom_up, &name);
	}
	for (size_t i = 0; i < tree->count; i++)
		sort_children(tree, (uint32_t)i, &sorted, &cap);
	free(sorted);
	buf_release(&name);
	frames_release(&frames);
}

static void tree_release(struct call_tree *tree)
{
	u64map_release(&tree->known);
	table_release(&tree->names);
	arena_release(&tree->texts);
	free(tree->nodes);
	*tree = (struct call_tree){0};
}

/* ---------------------------------------------------------------- lines */

enum { BYTES = 11, BLOCKS = 10, SHARE = 6, INDENT_MAX = 40 };

struct printed_tree {
	struct out *out;
	const struct call_tree *tree;
	const struct report *report;
	bool is_single; /* there is no OLD */
	unsigned columns;
	size_t left_out; /* number of nodes below one per cent */
	struct buf word;
};

static bool is_shown(const struct printed_tree *printed, const struct call_node *node)
{
	return node->moved_bytes >= (printed->tree->nodes[0].moved_bytes + 99) / 100 &&
	       node->moved_bytes;
}

static size_t shown_children(const struct printed_tree *printed, const struct call_node *parent)
{
	size_t count = 0;

	for (uint32_t i = parent->first_child; i != CALL_NONE; i = printed->tree->nodes[i].next)
		count += is_shown(printed, &printed->tree->nodes[i]);
	return count;
}

/* Returns true if the node's parent has other children that are shown. */
static bool is_one_of_several(const struct printed_tree *printed, const struct call_node *node)
{
	return node->parent != CALL_NONE &&
	       shown_children(printed, &printed->tree->nodes[node->parent]) > 1;
}

/* Writes a node with its sign and colour. Marks the node "new" if all of its blocks are new, or
 * "gone" if all were freed. */
static void write_node(struct printed_tree *printed, const struct call_node *node, unsigned indent)
{
	const struct change *change = &node->total;
	struct growth bytes = growth_of(change->now.requested_bytes, change->old.requested_bytes);
	struct growth blocks = growth_of(change->now.block_count, change->old.block_count);
	const bool is_marked =
		printed->report->style.is_coloured && bytes.amount && !printed->is_single;
	char size[REPORT_SIZE_BYTES], count[REPORT_COUNT_BYTES], word[REPORT_COUNT_BYTES + 1];
	const bool is_new = !change->old.block_count && !change->old.requested_bytes;
	const bool is_gone = !change->now.block_count && !change->now.requested_bytes;
	const char *mark = printed->is_single ? "" : is_new ? "new  " : is_gone ? "gone " : "     ";
	unsigned left = printed->columns - BYTES - BLOCKS - SHARE - 2 - (unsigned)strlen(mark);

	snprintf(word, sizeof(word), "%s%s",
		printed->is_single || !bytes.amount ? "" :
		bytes.sign == '-'		    ? "-" :
						      "+",
		report_size(bytes.amount, size));
	out_printf(printed->out, "%s%*s%s",
		is_marked ? bytes.sign == '-' ? "\033[32m" : "\033[31m" : "", BYTES, word,
		is_marked ? "\033[0m" : "");
	snprintf(word, sizeof(word), "%s%s",
		printed->is_single || !blocks.amount ? "" :
		blocks.sign == '-'		     ? "-" :
						       "+",
		report_count(blocks.amount, count));
	if (printed->report->views->comparison->lacks_blocks)
		snprintf(word, sizeof(word), "?");
	out_printf(printed->out, "%*s%*u %%  %s", BLOCKS, word, SHARE - 2,
		report_percent(node->moved_bytes, printed->tree->nodes[0].moved_bytes), mark);
	indent = indent < INDENT_MAX && indent < left / 2 ? indent : left / 2;
	out_printf(printed->out, "%*s", (int)indent, is_one_of_several(printed, node) ? "- " : "");
	buf_clear(&printed->word);
	clean_text(&printed->word, *node->name ? node->name : "(all)", true);
	report_shorten(&printed->word, 0, left - indent);
	report_write_cut(printed->out, printed->word.data, left - indent);
	out_char(printed->out, '\n');
}

/* Writes nodes depth first. Not recursive, because stacks may be deep. */
static void write_nodes(struct printed_tree *printed)
{
	const struct call_node *nodes = printed->tree->nodes;
	uint32_t at = 0;
	unsigned indent = 0;

	for (;;) {
		uint32_t next = nodes[at].first_child;

		write_node(printed, &nodes[at], indent);
		if (next != CALL_NONE && is_shown(printed, &nodes[next])) {
			at = next;
			indent += is_one_of_several(printed, &nodes[at]) ? 2 : 0;
			continue;
		}
		/* Go up to a node whose next sibling is shown. Siblings are sorted by
		 * `moved_bytes`. If one is too small to be shown, all siblings after it are too
		 * small. */
		while (at && (nodes[at].next == CALL_NONE ||
				     !is_shown(printed, &nodes[nodes[at].next]))) {
			indent -= is_one_of_several(printed, &nodes[at]) ? 2 : 0;
			at = nodes[at].parent;
		}
		if (!at || printed->out->err.code)
			return;
		at = nodes[at].next;
	}
}

void report_tree(
	struct out *out, const struct view *view, const struct report *report, unsigned columns)
{
	struct call_tree tree;
	struct printed_tree printed = {.out = out,
		.tree = &tree,
		.report = report,
		.is_single = view->comparison->dumps && !view->comparison->axis &&
			     comparison_columns(view->comparison) < 2,
		.columns = columns};

	tree_make(&tree, view, report->start_up, view->is_inverted);
	buf_init(&printed.word);
	out_printf(out, "%*s%*s%*s  %s%s\n", BYTES, printed.is_single ? "bytes" : "growth", BLOCKS,
		"blocks", SHARE, "share", printed.is_single ? "" : "     ",
		view->is_inverted ? "called by" : "calls");
	write_nodes(&printed);
	for (size_t i = 0; i < tree.count; i++)
		printed.left_out += !is_shown(&printed, &tree.nodes[i]);
	out_printf(out, "\n");
	if (printed.left_out)
		out_printf(out, "%zu node%s below 1 %% %s left out\n", printed.left_out,
			text_plural(printed.left_out), printed.left_out == 1 ? "is" : "are");
	buf_release(&printed.word);
	tree_release(&tree);
}
