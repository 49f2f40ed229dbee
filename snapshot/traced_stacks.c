#include "snapshot/traced_stacks.h"

#include "core/out.h"

void traced_stacks_init(
	struct traced_stacks *stacks, struct snapshot *snapshot, const struct tracer_copy *tracer)
{
	*stacks = (struct traced_stacks){.snapshot = snapshot, .tracer = tracer};
	u64map_init(&stacks->known);
}

void traced_stacks_release(struct traced_stacks *stacks)
{
	u64map_release(&stacks->known);
}

int traced_stacks_find(struct traced_stacks *stacks, uint32_t id, uint32_t *index)
{
	uint64_t frames[TRACER_DEPTH_MAX];
	char text[16];
	struct stack stack = {.id = text, .same_id = STACK_NONE, .frames = frames};
	size_t len;
	int rc = 0;

	if (u64map_find(&stacks->known, id, index))
		return 0;
	*index = STACK_NONE;
	len = out_hex_digits(text, id);
	stack.frame_count = tracer_copy_stack(stacks->tracer, id, frames);
	if (stack.frame_count)
		rc = stackset_put(&stacks->snapshot->stacks, &stack, len, index);
	if (!rc)
		rc = u64map_put(&stacks->known, id, index);
	return rc < 0 ? rc : 0;
}
