/* The edges of a window's spans: round times, the peak, and marks. */
#include "diff/query/lives.h"

#include <stdlib.h>
#include <string.h>

#include "diff/read/read_use.h"

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

void lives_add_edges(struct lives *lives, const struct life_window *window)
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

static const char *copy(struct lives *lives, const char *label)
{
	return label ? arena_text(&lives->arena, label, strlen(label)) : NULL;
}

void lives_copy_labels(struct lives *lives, const struct life_window *window)
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
