/*
 * What a model decides by chance. The same is drawn in every growth state, so that a block's place
 * does not depend on the state; only whether it is live does.
 */
#ifndef TESTS_IMAGES_MODEL_PLAN_H
#define TESTS_IMAGES_MODEL_PLAN_H

#include "tests/images/made_image.h"

struct model_plan {
	uint64_t random;
	unsigned growth;
};

/* Draws once from the image's numbers, whatever the growth. */
struct model_plan model_plan_of(struct image *image, const struct model_request *request);
/* A repeatable number below limit (> 0, at most 2^32). */
uint64_t model_random(struct model_plan *plan, uint64_t limit);
/* Whether a place is live in the state: of 100, 64 are in all states, 6 until one of them, 15 from
 * one on, 15 never. So two thirds of the places are live at first. */
bool model_life(struct model_plan *plan);
/* The places that about so many live blocks need. */
unsigned model_places(unsigned block_count);

/* Zeroed, for free(). */
void *model_zeroed(size_t count, size_t bytes);

/* The number'th place marked so. Damage that finds nothing to damage ends the program: it would
 * test nothing. */
uint64_t model_marked(const struct image *image, const char *name, size_t number);

#endif
