#include "snapshot/series/series_shot.h"

#include <inttypes.h>

/* The names for one file, one behind the other. */
struct naming {
	struct series_members *members;
	struct series_member *member;
	struct buf *path;
	unsigned tries;
};

static int next_name(void *ctx, const char **path, struct err *err)
{
	struct naming *naming = ctx;
	const struct series_members *members = naming->members;
	int rc;

	if (naming->tries == SERIES_TRIES)
		return err_set(err, ERR_EXISTS, naming->path->data, NULL);
	buf_clear(naming->path);
	rc = members->ops->name(
		members->ctx, naming->member->process, naming->tries++, naming->path, err);
	*path = naming->path->data;
	return rc;
}

/* The file under the first name that is free. */
static int take_file(struct series_members *members, struct series_member *member, struct buf *path,
	struct series_taken *taken, struct err *err)
{
	struct naming naming = {members, member, path, 0};
	const struct out_names names = {next_name, &naming};
	const char *first;
	int rc = next_name(&naming, &first, err);

	return rc ? rc :
		    members->ops->take(members->ctx, member->process, first, &names, taken, err);
}

/* Private bytes now; SERIES_UNKNOWN_BYTES where they do not matter. */
struct growth {
	uint64_t from, now;
};

static void say_file(const struct series_members *members, const struct buf *path,
	const struct series_taken *taken, const struct growth *growth)
{
	char apart[100] = "";

	if (growth->from != SERIES_UNKNOWN_BYTES)
		snprintf(apart, sizeof(apart), ", private bytes %" PRIu64 " to %" PRIu64,
			growth->from, growth->now);
	else if (growth->now != SERIES_UNKNOWN_BYTES)
		snprintf(apart, sizeof(apart), ", private bytes %" PRIu64, growth->now);
	series_say(members, "%s: %" PRIu64 " blocks, %" PRIu64 " bytes, held %" PRId64 " ms%s",
		path->data, taken->block_count, taken->requested_bytes, taken->held_ms, apart);
}

/* That a process ended meanwhile is no failure: its end is said by who sees it. What else went wrong is. */
static void fail(
	struct series_members *members, struct series_member *member, const struct err *err)
{
	const struct series_plan *plan = members->plan;
	bool is_end = err->code == ERR_GONE || err->code == ERR_NO_PROCESS;

	if (is_end && members->ops->has_ended(members->ctx, member->process))
		return;
	members->result.failed++;
	series_say_err(members, err);
	member->retry_ms = member->retry_ms ? 2 * member->retry_ms : plan->every_ms;
	if (member->retry_ms > SERIES_RETRY_MS)
		member->retry_ms = SERIES_RETRY_MS;
	member->retry_at_ms = members->ops->clock_ms(members->ctx) + member->retry_ms;
}

static void take_one(
	struct series_members *members, struct series_member *member, const struct growth *growth)
{
	struct series_taken taken = {0};
	struct err err = {0};
	struct buf path;

	buf_init(&path);
	members->has_shot = true;
	members->shot_ms = members->ops->clock_ms(members->ctx);
	if (take_file(members, member, &path, &taken, &err)) {
		fail(members, member, &err);
	} else {
		say_file(members, &path, &taken, growth);
		members->result.written++;
		members->result.incomplete += taken.is_incomplete;
		member->written++;
		member->retry_ms = 0;
		member->has_base = true;
		member->base_bytes = growth->now;
		members->ops->written(members->ctx, member->process, path.data);
	}
	buf_release(&path);
}

static void watch(struct series_members *members, struct series_member *member)
{
	struct growth growth = {SERIES_UNKNOWN_BYTES, 0};
	struct err err = {0};

	if (member->retry_ms && members->ops->clock_ms(members->ctx) < member->retry_at_ms)
		return;
	if (members->ops->private_bytes(members->ctx, member->process, &growth.now, &err)) {
		fail(members, member, &err);
		return;
	}
	if (member->has_base) {
		growth.from = member->base_bytes;
		if (growth.now < growth.from ||
			growth.now - growth.from < members->plan->growth_bytes)
			return;
	}
	take_one(members, member, &growth);
}

void series_shot(struct series_members *members, struct series_member *member)
{
	static const struct growth none = {SERIES_UNKNOWN_BYTES, SERIES_UNKNOWN_BYTES};

	if (!member->process || series_member_is_full(members, member))
		return;
	if (members->plan->growth_bytes)
		watch(members, member);
	else
		take_one(members, member, &none);
}
