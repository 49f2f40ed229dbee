#include "snapshot/doctor/doctor_lie.h"

#include <string.h>

/* Where the small live block is in the list: some way in, not the first. */
static struct doctor_block *victim(struct doctor_truth *truth)
{
	unsigned skip = 10;

	for (uint32_t i = 0; i < truth->block_count; i++) {
		struct doctor_block *block = &truth->blocks[i];

		if (block->heap == DOCTOR_GROWABLE && block->group == DOCTOR_SMALL &&
			!block->is_freed && block->requested_bytes && !skip--)
			return block;
	}
	return NULL;
}

static void leave_out(struct doctor_truth *truth, struct doctor_block *block)
{
	struct doctor_block *end = truth->blocks + truth->block_count--;

	memmove(block, block + 1, (size_t)(end - block - 1) * sizeof(*block));
}

bool doctor_lie(struct doctor_truth *truth, const char *how)
{
	struct doctor_block *block = victim(truth);

	if (!block)
		return false;
	if (!strcmp(how, "size"))
		block->requested_bytes++;
	else if (!strcmp(how, "place"))
		block->addr += 8;
	else if (!strcmp(how, "heap"))
		block->heap = DOCTOR_UNLOCKED;
	else if (!strcmp(how, "site"))
		block->site = (uint8_t)((block->site + 1) % DOCTOR_SITES);
	else if (!strcmp(how, "freed"))
		block->is_freed = true;
	else if (!strcmp(how, "silent"))
		leave_out(truth, block);
	else
		return false;
	return true;
}
