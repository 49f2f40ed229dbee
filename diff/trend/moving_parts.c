#include "diff/trend/moving_parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"

#define SILENT_LEAST 4

static bool init_choice(struct moving_choice *choice, const struct moving_parts *moving)
{
	choice->moves = calloc(moving->whole->part_count, sizeof(*choice->moves));
	return choice->moves && !trend_kit_init(&choice->kit, moving->axis);
}

static bool init_moving(struct moving_parts *moving)
{
	size_t count = moving->whole->count;

	moving->moves = calloc(moving->whole->part_count, sizeof(*moving->moves));
	moving->times_ms = calloc(count, sizeof(*moving->times_ms));
	moving->parts = calloc(count, sizeof(*moving->parts));
	if (!moving->moves || !moving->times_ms || !moving->parts)
		return false;
	for (size_t i = 0; i < MOVING_KEPT; i++) {
		if (!init_choice(&moving->kept[i], moving))
			return false;
	}
	return true;
}

int moving_parts_init(
	struct moving_parts *moving, const struct trend_axis *axis, const struct trend_plan *whole)
{
	*moving = (struct moving_parts){.axis = axis, .whole = whole};
	if (whole->part_count < 2 || init_moving(moving))
		return 0;
	moving_parts_release(moving);
	return -ERR_NOMEM;
}

void moving_parts_release(struct moving_parts *moving)
{
	for (size_t i = 0; i < MOVING_KEPT; i++) {
		trend_kit_release(&moving->kept[i].kit);
		free(moving->kept[i].moves);
	}
	free(moving->moves);
	free(moving->times_ms);
	free(moving->parts);
	*moving = (struct moving_parts){0};
}

static bool does_move(const struct trend_plan *plan, size_t part, const double *values)
{
	size_t from = plan->part_from[part], to = plan->part_from[part + 1];

	for (size_t i = from + 1; i < to; i++) {
		if (values[i] < values[from] || values[i] > values[from])
			return true;
	}
	return false;
}

/* A few equal values may be chance, and to leave out those that by chance do not move
 * makes a slope steeper than it is. */
static bool is_silent(const struct trend_plan *plan, size_t part, const double *values)
{
	size_t count = plan->part_from[part + 1] - plan->part_from[part];

	return count >= SILENT_LEAST && !does_move(plan, part, values);
}

/* Whether some move and some are silent. */
static bool find_moves(struct moving_parts *moving, const double *values)
{
	const struct trend_plan *whole = moving->whole;
	bool any_moves = false, any_silent = false;

	for (size_t part = 0; part < whole->part_count; part++) {
		moving->moves[part] = !is_silent(whole, part, values);
		any_moves |= does_move(whole, part, values);
		any_silent |= !moving->moves[part];
	}
	return any_moves && any_silent;
}

static void make_choice(struct moving_parts *moving, struct moving_choice *choice)
{
	const struct trend_plan *whole = moving->whole;
	struct trend_axis axis = {
		moving->axis->times_ms ? moving->times_ms : NULL, moving->parts, 0};

	memcpy(choice->moves, moving->moves, whole->part_count * sizeof(*choice->moves));
	for (size_t part = 0; part < whole->part_count; part++) {
		if (!moving->moves[part])
			continue;
		for (size_t i = whole->part_from[part]; i < whole->part_from[part + 1]; i++) {
			if (axis.times_ms)
				moving->times_ms[axis.count] = moving->axis->times_ms[i];
			moving->parts[axis.count++] = moving->axis->parts[i];
		}
	}
	trend_kit_set(&choice->kit, &axis);
	choice->is_made = true;
}

struct trend_kit *moving_parts_find(struct moving_parts *moving, const double *values)
{
	struct moving_choice *choice;
	size_t bytes = moving->whole->part_count * sizeof(*moving->moves);

	if (moving->whole->part_count < 2 || !find_moves(moving, values))
		return NULL;
	for (size_t i = 0; i < MOVING_KEPT; i++) {
		choice = &moving->kept[i];
		if (choice->is_made && !memcmp(choice->moves, moving->moves, bytes))
			return &choice->kit;
	}
	choice = &moving->kept[moving->next++ % MOVING_KEPT];
	make_choice(moving, choice);
	return &choice->kit;
}

void moving_parts_take(const struct moving_parts *moving, double *values)
{
	const struct trend_plan *whole = moving->whole;
	size_t count = 0;

	for (size_t part = 0; part < whole->part_count; part++) {
		size_t from = whole->part_from[part], to = whole->part_from[part + 1];

		if (!moving->moves[part])
			continue;
		for (size_t i = from; i < to; i++)
			values[count++] = values[i];
	}
}
