#include <inttypes.h>

#include "core/base/parse.h"
#include "snapshot/series/series.h"

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

struct loop {
	struct series_members members;
	int64_t due_ms;
	bool is_fresh; /* all members were found just now */
	bool is_waiting; /* for somebody to come: that is what is due */
	int64_t gap_ms; /* after one that ended soon, until the next is taken; 0: the last one did not */
};

static int64_t now(const struct loop *loop)
{
	return loop->members.ops->clock_ms(loop->members.ctx);
}

static bool is_interrupted(const struct loop *loop)
{
	return loop->members.ops->is_interrupted(loop->members.ctx);
}

/* Until the next one is due, or the last of the processes has ended, or an interrupt. */
static void wait_until_due(struct loop *loop)
{
	struct series_members *members = &loop->members;

	while (!is_interrupted(loop) && now(loop) < loop->due_ms) {
		void *processes[SERIES_WAIT_MAX];
		size_t count = 0, living = series_members_living(members);

		for (size_t i = 0; i < members->count && count < SERIES_WAIT_MAX; i++) {
			if (members->items[i].process)
				processes[count++] = members->items[i].process;
		}
		members->ops->wait(members->ctx, loop->due_ms, processes, count);
		series_members_reap(members);
		if (living && !series_members_living(members))
			return;
	}
}

/* Sets when to take what came, or to look again. */
static void look_for_one(struct loop *loop)
{
	struct series_members *members = &loop->members;
	struct err err = {0};
	int rc = series_members_look(members, &err);

	loop->due_ms = now(loop) + (rc ? SERIES_LOOK_MS : 0);
	loop->is_waiting = rc;
	loop->is_fresh = !rc;
	if (!rc)
		members->said = (struct err){0};
	else if (rc == -ERR_NO_PROCESS || rc == -ERR_GONE)
		series_say_waiting(members);
	else
		series_say_once(members, &err);
}

/* Who came since the last time; not being able to look is no reason to leave out those that are known. */
static void look_for_more(struct loop *loop)
{
	struct err err = {0};

	if (!loop->is_fresh && loop->members.plan->takes_all) {
		int rc = series_members_look(&loop->members, &err);

		if (rc && rc != -ERR_NO_PROCESS && rc != -ERR_GONE)
			series_say_once(&loop->members, &err);
	}
	loop->is_fresh = false;
}

static void take_each(struct loop *loop)
{
	struct series_members *members = &loop->members;

	look_for_more(loop);
	for (size_t i = 0; i < members->count && !is_interrupted(loop); i++)
		series_shot(members, &members->items[i]);
	series_members_reap(members);
}

/* The first time from now on that is a whole number of intervals behind the last. */
static void set_next(struct loop *loop)
{
	const struct series_plan *plan = loop->members.plan;
	int64_t late_ms = now(loop) - loop->due_ms, steps = 1;

	if (late_ms > plan->every_ms)
		steps = (late_ms - 1) / plan->every_ms + 1;
	loop->due_ms += steps * plan->every_ms;
	if (steps > 1 && !plan->growth_bytes) {
		char text[DURATION_TEXT_BYTES];

		series_say(&loop->members,
			"%" PRId64 " time%s left out: the last snapshot was done %s after it was "
			"due",
			steps - 1, steps == 2 ? "" : "s", duration_text(late_ms, text));
	}
}

/* Whether nothing is left to be done by those who are there. Once is done, too, when it failed; but who
 * waits for a process, and saw one end before there was a file of it, waits for another. */
static bool is_done(const struct loop *loop)
{
	const struct series_members *members = &loop->members;
	bool is_there = series_members_living(members);

	if (!members->plan->every_ms)
		return !members->plan->waits || members->result.written || is_there;
	return members->plan->file_count && is_there && !series_members_unfinished(members);
}

/* The least and the most time between the last snapshot of a process that has ended and the first one of
 * the next. */
static void restart_gaps_ms(const struct series_plan *plan, int64_t *least_ms, int64_t *most_ms)
{
	*most_ms = plan->growth_bytes ? SERIES_RESTART_MAX_MS : plan->every_ms;
	*least_ms = *most_ms < SERIES_RESTART_MS ? *most_ms : SERIES_RESTART_MS;
	if (!plan->every_ms)
		*most_ms = *least_ms = SERIES_LOOK_MS;
}

/* One that ends and is started again all the time must not fill the disk, for each is a series of its own:
 * the time doubles. One that stayed for two files, or for as long as the longest gap, is none of those. */
static int64_t restart_gap_ms(struct loop *loop)
{
	struct series_members *members = &loop->members;
	int64_t least_ms, most_ms;

	restart_gaps_ms(members->plan, &least_ms, &most_ms);
	if (members->has_stayed || now(loop) - members->shot_ms >= most_ms)
		loop->gap_ms = 0;
	else
		loop->gap_ms = loop->gap_ms ? 2 * loop->gap_ms : least_ms;
	members->has_stayed = false;
	if (loop->gap_ms > most_ms)
		loop->gap_ms = most_ms;
	return loop->gap_ms ? loop->gap_ms : least_ms;
}

/* Nobody is left: what is due next is to look for somebody. */
static void begin_waiting(struct loop *loop)
{
	const struct series_members *members = &loop->members;
	int64_t from_ms;

	if (loop->is_waiting)
		return;
	from_ms = members->shot_ms + restart_gap_ms(loop);
	loop->is_waiting = true;
	loop->due_ms = now(loop);
	if (members->has_shot && from_ms > loop->due_ms)
		loop->due_ms = from_ms;
}

static void run(struct loop *loop)
{
	struct series_members *members = &loop->members;

	while (!is_interrupted(loop)) {
		if (!series_members_living(members)) {
			if (!members->plan->waits)
				return;
			begin_waiting(loop);
		}
		if (now(loop) < loop->due_ms) {
			wait_until_due(loop);
		} else if (loop->is_waiting) {
			look_for_one(loop);
		} else {
			take_each(loop);
			if (is_done(loop))
				return;
			if (series_members_living(members))
				set_next(loop);
		}
	}
}

static void say_end(const struct loop *loop)
{
	const struct series_members *members = &loop->members;

	series_say(members, "%s%" PRIu64 " file%s written",
		is_interrupted(loop) ? "interrupted: " : "", members->result.written,
		members->result.written == 1 ? "" : "s");
}

int series_loop_run(const struct series_plan *plan, const struct series_ops *ops, void *ctx,
	struct series_result *result, struct err *err)
{
	struct loop loop = {.members = {.plan = plan, .ops = ops, .ctx = ctx}, .is_fresh = true};
	int rc = series_members_look(&loop.members, err);

	loop.is_waiting = (rc == -ERR_NO_PROCESS || rc == -ERR_GONE) && plan->waits;
	if (loop.is_waiting) {
		series_say_waiting(&loop.members);
		rc = 0;
	}
	if (!rc) {
		loop.due_ms = now(&loop) + (loop.is_waiting ? SERIES_LOOK_MS : 0);
		run(&loop);
		if (plan->every_ms || is_interrupted(&loop))
			say_end(&loop);
		*result = loop.members.result;
	}
	series_members_release(&loop.members);
	return rc;
}

int series_exit_status(const struct series_result *result)
{
	return result->failed || result->incomplete || result->is_short ? 2 : 0;
}
