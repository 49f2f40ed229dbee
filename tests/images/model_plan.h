/* Random decisions of a model. Every growth state draws equal numbers. So a block's place does not
 * depend on the state; only its life does. */
#ifndef TESTS_IMAGES_MODEL_PLAN_H
#define TESTS_IMAGES_MODEL_PLAN_H

#include "tests/images/made_image.h"

struct model_plan {
	uint64_t random;
	unsigned growth;
	bool is_sparse; /* most places are not live */
};

/* Starts a plan. Draws only one number from the image, whatever the growth is. */
struct model_plan model_plan_of(struct image *image, const struct model_request *request);
/* Returns a random number below limit (> 0, at most 2^32), the same in every run. */
uint64_t model_random(struct model_plan *plan, uint64_t limit);
/* Returns true if a place is live in the state. Of 100 places, 64 are live in all states, 6 until
 * some state, 15 starting at some state, and 15 never. So about two thirds are live at first. In a
 * sparse plan, only 3 of 100 places are ever live. */
bool model_life(struct model_plan *plan);
unsigned model_places(unsigned block_count);

/* Allocates zeroed memory; the caller frees it. */
void *model_zeroed(size_t count, size_t bytes);

/* Returns the marked place with this number. If the place does not exist, ends the program, because
 * the damage would test nothing. */
uint64_t model_marked(const struct image *image, const char *name, size_t number);

#endif
