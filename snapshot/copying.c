#include "snapshot/copying.h"

#include "core/os.h"
#include "snapshot/stacks/tracer_plan.h"
#include "snapshot/target/nt_process.h"

#define LIMIT_BYTES ((uint64_t)2 << 30)
#define LIMIT_PART 4 /* of the machine's memory */

/* What a process may grow by between the look and the hold without a page fault while it is held. */
#define SLACK_PART 8
#define SLACK_BYTES ((uint64_t)2 << 20)

int copying_init(struct copying *copying, struct target *target, uint64_t limit_bytes)
{
	copying->is_on = false;
	copying->why_not = NULL;
	target_ranges_init(&copying->wanted);
	target_copy_init(&copying->copy, target, limit_bytes);
	return memory_init(&copying->memory, &copying->copy.target);
}

void copying_release(struct copying *copying)
{
	memory_release(&copying->memory);
	target_copy_release(&copying->copy);
	target_ranges_release(&copying->wanted);
}

uint64_t copying_limit(void)
{
	uint64_t part = os_memory_bytes() / LIMIT_PART;

	return part < LIMIT_BYTES ? part : LIMIT_BYTES;
}

/* Notes what a snapshot will read of the target, which may be the copy. */
static int plan(struct copying *copying, struct target *target, const struct captured *captured)
{
	int rc;

	target_ranges_clear(&copying->wanted);
	rc = heaps_plan(target, &copying->wanted);
	if (!rc)
		rc = nt_plan_flags(target, &copying->wanted);
	if (!rc && captured->has_tracer)
		rc = tracer_plan(target, captured->area_addr, &copying->wanted);
	return rc;
}

static bool make_room(struct copying *copying)
{
	uint64_t limit = copying->copy.limit_bytes, bytes;

	target_ranges_settle(&copying->wanted);
	bytes = target_ranges_bytes(&copying->wanted);
	if (bytes > limit) {
		copying->why_not = "it is too large to be copied";
		return false;
	}
	bytes += bytes / SLACK_PART + SLACK_BYTES;
	if (!target_copy_reserve(&copying->copy, bytes < limit ? bytes : limit))
		return true;
	copying->why_not = "there is no memory to copy it to";
	return false;
}

void copying_look(struct copying *copying, const struct captured *captured)
{
	struct target *target = copying->copy.from;
	int rc;

	if (target->is_file)
		return;
	/* What a database of stacks will be read for, only walking tells. */
	if (captured->wants_ust && nt_global_flag(target) & NT_FLAG_UST)
		return;
	rc = plan(copying, target, captured);
	if (rc == -ERR_NOMEM)
		copying->why_not = "it has too many parts to be copied";
	copying->is_on = !rc && make_room(copying);
}

bool copying_take(struct copying *copying, const struct captured *captured)
{
	struct target_copy *copy = &copying->copy;
	int rc;

	memory_clear(&copying->memory);
	target_copy_open(copy);
	rc = target_copy_take(copy, &copying->wanted);
	if (!rc)
		rc = plan(copying, &copy->target, captured);
	if (!rc)
		rc = target_copy_take(copy, &copying->wanted);
	target_copy_seal(copy);
	if (!rc && !copy->is_short)
		return true;
	copying->is_on = false;
	copying->why_not = "too much has changed before it was held";
	return false;
}

bool copying_failed(struct copying *copying)
{
	copying->is_on = false;
	copying->why_not = "its copy lacks something";
	return true;
}
