/* Random decisions of a model. Every growth state draws equal numbers, so that a block's place does
 * not depend on the state; only its life does. */
#ifndef TESTS_IMAGES_MODEL_PLAN_H
#define TESTS_IMAGES_MODEL_PLAN_H

#include "tests/images/made_image.h"

struct model_plan {
	uint64_t random;
	unsigned growth;
};

/* Draws once from the image's numbers, independently of the growth. */
struct model_plan model_plan_of(struct image *image, const struct model_request *request);
/* Returns a repeatable number below limit (> 0, at most 2^32). */
uint64_t model_random(struct model_plan *plan, uint64_t limit);
/* Returns true if a place is live in the state. Of 100 places, 64 are live in all states, 6 until
 * some state, 15 from some state on, and 15 never. So about two thirds are live at first. */
bool model_life(struct model_plan *plan);
unsigned model_places(unsigned block_count);

/* Allocates zeroed memory; the caller frees it. */
void *model_zeroed(size_t count, size_t bytes);

/* Returns the marked place with that number. If it does not exist, the program ends: the damage
 * would test nothing. */
uint64_t model_marked(const struct image *image, const char *name, size_t number);

#endif
