#include "snapshot/stacks/ust_depth.h"

#define CLEAR_MIN 8 /* so many records at least show where the number is */
#define CLEAR_TIMES 4 /* and so many times those that show the other place */
#define ADDRESS_MIN 0x10000u /* below, Windows has no memory */

static bool are_addresses(const uint64_t *frames, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (frames[i] < ADDRESS_MIN || frames[i] >= TARGET_SPACE_BYTES)
			return false;
	}
	return true;
}

static enum ust_fit fit_of(uint32_t said, struct code_ranges *code, const uint64_t *frames,
	uint32_t count, uint32_t in_code)
{
	if (!said || said > count)
		return UST_FIT_NONE;
	if (said <= in_code)
		return said < in_code ? UST_FIT_INSIDE : UST_FIT_EXACT;
	if (!code_ranges_have_return(code, frames[said - 1]) ||
		(said < count && code_ranges_have_return(code, frames[said])))
		return UST_FIT_NONE;
	return are_addresses(frames, said) ? UST_FIT_WHOLE : UST_FIT_NONE;
}

void ust_depth_read(struct ust_depth *depth, const uint16_t said[UST_SLOTS], unsigned room,
	struct code_ranges *code, const uint64_t *frames, uint32_t count)
{
	uint32_t in_code = 0;

	while (in_code < count && code_ranges_have_return(code, frames[in_code]))
		in_code++;
	*depth = (struct ust_depth){
		.room = (uint8_t)room, .in_code = (uint8_t)in_code, .count = (uint8_t)count};
	for (int i = 0; i < UST_SLOTS; i++) {
		depth->said[i] = said[i] <= UST_DEPTH_MAX ? (uint8_t)said[i] : 0;
		depth->fit[i] = (uint8_t)fit_of(depth->said[i], code, frames, count, in_code);
	}
}

uint32_t ust_depth_most(const struct ust_depth *depth)
{
	uint32_t most = depth->in_code;

	for (int i = 0; i < UST_SLOTS; i++) {
		if (depth->said[i] > most && depth->said[i] <= depth->count)
			most = depth->said[i];
	}
	return most;
}

void ust_votes_add(struct ust_votes *votes, const struct ust_depth *depth)
{
	uint8_t by_depth = depth->fit[UST_SLOT_DEPTH], by_index = depth->fit[UST_SLOT_INDEX];

	if (depth->room && depth->room < depth->in_code)
		votes->no_room++;
	else if (depth->room && depth->in_code)
		votes->room++;
	if (by_depth > by_index)
		votes->fits[UST_SLOT_DEPTH] += by_depth >= UST_FIT_EXACT;
	else if (by_index > by_depth)
		votes->fits[UST_SLOT_INDEX] += by_index >= UST_FIT_EXACT;
}

static bool is_clear(size_t yes, size_t no)
{
	return yes >= CLEAR_MIN && yes / CLEAR_TIMES >= no;
}

struct ust_habit ust_votes_habit(const struct ust_votes *votes, enum ust_slot guess)
{
	size_t depth = votes->fits[UST_SLOT_DEPTH], index = votes->fits[UST_SLOT_INDEX];
	struct ust_habit habit = {.slot = guess};

	if (depth != index)
		habit.slot = depth > index ? UST_SLOT_DEPTH : UST_SLOT_INDEX;
	habit.is_clear = depth > index ? is_clear(depth, index) : is_clear(index, depth);
	habit.has_room = is_clear(votes->room, votes->no_room);
	return habit;
}

/* Of a process that leaves no doubt, so many frames are taken that are addresses, and of which some
 * lie in code: more of the stack may be gone than what lies between. */
static bool is_likely(const struct ust_depth *depth, struct code_ranges *code,
	const uint64_t *frames, uint32_t said)
{
	bool has_code = depth->in_code > 0;

	if (!said || said > depth->count || !are_addresses(frames, said))
		return false;
	for (uint32_t i = 0; i < said && !has_code; i++)
		has_code = code_ranges_have_return(code, frames[i]);
	return has_code;
}

/* Frames as far as they lie in code. */
static uint32_t last_resort(
	const struct ust_depth *depth, const struct ust_habit *habit, uint32_t said, bool *is_cut)
{
	uint32_t room = habit->has_room ? depth->room : 0;
	uint32_t count = room && room < depth->in_code ? room : depth->in_code;

	*is_cut = count && said > count;
	return count;
}

/* Of two numbers that agree with the frames equally well, the one that has room. */
static uint32_t choose_equal(const struct ust_depth *depth, const struct ust_habit *habit)
{
	enum ust_slot other = habit->slot == UST_SLOT_DEPTH ? UST_SLOT_INDEX : UST_SLOT_DEPTH;
	bool has_limit = habit->has_room && depth->room;

	if (has_limit && depth->said[habit->slot] > depth->room &&
		depth->said[other] <= depth->room)
		return depth->said[other];
	return depth->said[habit->slot];
}

uint32_t ust_depth_choose(const struct ust_depth *depth, const struct ust_habit *habit,
	struct code_ranges *code, const uint64_t *frames, bool *is_cut)
{
	const uint8_t *said = depth->said, *fit = depth->fit;

	*is_cut = false;
	if (habit->is_clear) {
		uint32_t usual = said[habit->slot];

		if (fit[habit->slot] || is_likely(depth, code, frames, usual))
			return usual;
		return last_resort(depth, habit, usual, is_cut);
	}
	if (fit[UST_SLOT_DEPTH] != fit[UST_SLOT_INDEX])
		return fit[UST_SLOT_DEPTH] > fit[UST_SLOT_INDEX] ? said[UST_SLOT_DEPTH] :
								   said[UST_SLOT_INDEX];
	if (fit[UST_SLOT_DEPTH])
		return choose_equal(depth, habit);
	return last_resort(depth, habit,
		said[UST_SLOT_DEPTH] > said[UST_SLOT_INDEX] ? said[UST_SLOT_DEPTH] :
							      said[UST_SLOT_INDEX],
		is_cut);
}
