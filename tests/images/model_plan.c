#include "tests/images/model_plan.h"

#include <stdlib.h>

#define LAST_STATE 8u /* last growth state that changes anything; later states equal it */

struct model_plan model_plan_of(struct image *image, const struct model_request *request)
{
	return (struct model_plan){1 + image_random(image, UINT32_MAX), request->growth,
		image_options(image)->is_sparse};
}

/* xorshift64*, by Sebastiano Vigna (public domain). */
uint64_t model_random(struct model_plan *plan, uint64_t limit)
{
	plan->random ^= plan->random >> 12;
	plan->random ^= plan->random << 25;
	plan->random ^= plan->random >> 27;
	return (plan->random * 0x2545f4914f6cdd1dull >> 32) % limit;
}

bool model_life(struct model_plan *plan)
{
	uint64_t kind = model_random(plan, 100);
	unsigned state = 1 + (unsigned)model_random(plan, LAST_STATE);
	if (plan->is_sparse)
		return kind < 3;
	if (kind < 64)
		return true;
	if (kind < 70)
		return plan->growth < state;
	return kind < 85 && plan->growth >= state;
}

unsigned model_places(unsigned block_count)
{
	return block_count + block_count * 3 / 7;
}

void *model_zeroed(size_t count, size_t bytes)
{
	void *rows = calloc(count ? count : 1, bytes);
	if (!rows)
		image_die("out of memory");
	return rows;
}

uint64_t model_marked(const struct image *image, const char *name, size_t number)
{
	uint64_t addr = image_marked(image, name, number);
	if (!addr)
		image_die("nothing to damage: %s", name);
	return addr;
}
