/* The loop of a series. It searches for processes, takes a snapshot of each when it is due,
 * abandons processes that keep failing, and waits. The log of the loop's messages is at the end. */
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/parse.h"
#include "core/base/text.h"
#include "core/io/file.h"
#include "snapshot/series/series.h"

struct member {
	struct process_seen id;
	struct process_ref process;
	/* NULL: the process was not opened or was given up, and `process` is not set */
	struct series_files *files;
	int refused; /* error in opening the process that was already reported */
	uint64_t written;
	/* Used when growth is watched. base: the watched figure at the last snapshot, or
	 * KEPT_UNKNOWN_BYTES. retry_at_ms: earliest time of a new attempt after a failed
	 * snapshot. */
	uint64_t base;
	int64_t retry_at_ms;
	unsigned failures; /* number of consecutive failures */
	int64_t failing_from_ms;
	bool is_given_up; /* closed permanently; `files` is NULL */
};

struct loop {
	const struct series_plan *plan;
	const struct series_calls *calls;
	const char *place; /* description of the requested process, for messages */
	struct member *members; /* in the order of process_ref_find() */
	size_t count, cap;
	struct series_result result;
	/* Last error of a search; the same error is not reported twice in a row. */
	enum err_code said;
	bool has_shot;
	int64_t shot_ms; /* start of the last snapshot of any process */
	int64_t due_ms;
	bool is_waiting; /* waiting for a process; due_ms is then the time of the next search */
};

/* ---------------------------------------------------------------- messages */

static void PRINTF_LIKE(2, 3) messages(const struct loop *loop, const char *format, ...)
{
	char line[2400];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	loop->calls->messages(loop->calls->ctx, text_harmless(line));
}

static void print_err(const struct loop *loop, const char *before, const struct err *err)
{
	char text[1600];

	messages(loop, "%s%s", before, err_text(err, text, sizeof(text)));
}

/* Reports that no process was found, or why the search failed. */
static void print_trouble(struct loop *loop, const struct err *err)
{
	if (loop->said == err->code)
		return;
	loop->said = err->code;
	if (err->code == ERR_NO_PROCESS)
		messages(loop, "%s: waiting for a process with this name", loop->place);
	else
		print_err(loop, "", err);
}

int series_several(const char *place, const struct process_seen *seen, size_t count, bool with_all,
	struct err *err)
{
	const size_t room = sizeof(err->detail) - 60; /* leaves room for the text after the list */
	char date[DATE_TEXT_BYTES];
	struct buf text;
	int rc;

	buf_init(&text);
	for (size_t i = 0; i < count; i++) {
		size_t len = text.len;

		buf_printf(&text, "%spid %" PRIu32, i ? ", " : "", seen[i].pid);
		if (seen[i].start_ms)
			buf_printf(&text, " started %s", date_text(seen[i].start_ms, date));
		if (seen[i].private_bytes != KEPT_UNKNOWN_BYTES)
			buf_printf(&text, " with %" PRIu64 " private bytes", seen[i].private_bytes);
		if (text.len >= room) {
			text.len = len;
			buf_printf(&text, ", and %zu more", count - i);
			break;
		}
	}
	rc = err_set(err, ERR_MANY, place, "%s%s", text.data,
		with_all ? "; use --all for all of them" : "");
	buf_release(&text);
	return rc;
}

/* ---------------------------------------------------------------- processes */

static bool is_gone(int rc)
{
	return rc == -ERR_GONE || rc == -ERR_NO_PROCESS;
}

static bool is_full(const struct loop *loop, const struct member *member)
{
	return loop->plan->file_count && member->written >= loop->plan->file_count;
}

/* Returns the number of open processes. If `unfinished` is set, counts only those whose series is
 * unfinished. */
static size_t living(const struct loop *loop, bool unfinished)
{
	size_t count = 0;

	for (size_t i = 0; i < loop->count; i++)
		count +=
			loop->members[i].files && !(unfinished && is_full(loop, &loop->members[i]));
	return count;
}

static void close_member(struct member *member)
{
	if (!member->files)
		return;
	series_files_free(member->files);
	member->files = NULL;
	process_ref_close(&member->process);
}

static void remove_at(struct loop *loop, size_t at)
{
	struct member *member = &loop->members[at];

	close_member(member);
	loop->count--;
	memmove(member, member + 1, (loop->count - at) * sizeof(*member));
}

/* Closes processes that have exited, and reports each. */
static void reap(struct loop *loop)
{
	for (size_t i = loop->count; i > 0; i--) {
		const struct member *member = &loop->members[i - 1];
		bool is_short =
			!member->written || (loop->plan->file_count && !is_full(loop, member));

		if (!member->files || !process_ref_has_ended(&member->process))
			continue;
		messages(loop, "pid %" PRIu32 ": the process has ended; %" PRIu64 " file%s written",
			member->id.pid, member->written, text_plural(member->written));
		if (is_short && !loop->plan->waits)
			loop->result.is_short = true;
		remove_at(loop, i - 1);
	}
}

static bool is_same(const struct process_seen *a, const struct process_seen *b)
{
	return a->pid == b->pid && a->start_ms == b->start_ms;
}

/* Forgets processes that were never opened or were given up, and have exited. */
static void forget(struct loop *loop, const struct process_seen *seen, size_t count)
{
	for (size_t i = loop->count; i > 0; i--) {
		size_t at = 0;

		while (at < count && !is_same(&seen[at], &loop->members[i - 1].id))
			at++;
		if (at == count && !loop->members[i - 1].files)
			remove_at(loop, i - 1);
	}
}

static int open_files(const struct loop *loop, struct member *member, struct err *err)
{
	const struct process_ref *process = &member->process;
	const char *program =
		process->image[0] || !loop->plan->name ? process->image : loop->plan->name;

	member->files = series_files_new(loop->plan, program, process->pid, process->start_ms, err);
	if (member->files)
		return 0;
	process_ref_close(&member->process);
	return -(int)err->code;
}

/* Adds a process unless it is already known. A failure to open the process is reported once. A
 * process that has exited is not added. */
static void add_process(struct loop *loop, const struct process_seen *id)
{
	struct member *member;
	struct err err;
	size_t at = 0;
	int rc;

	while (at < loop->count && !is_same(&loop->members[at].id, id))
		at++;
	if (at == loop->count) {
		array_grow((void **)&loop->members, &loop->cap, at, sizeof(*loop->members));
		loop->members[loop->count++] =
			(struct member){.id = *id, .base = KEPT_UNKNOWN_BYTES};
	}
	member = &loop->members[at];
	if (member->files || member->is_given_up)
		return;
	rc = process_ref_open(&member->process, id->pid, id->start_ms, &err);
	if (!rc)
		rc = open_files(loop, member, &err);
	if (rc && rc != member->refused && !is_gone(rc)) {
		loop->result.failed++;
		print_err(loop, "", &err);
	}
	member->refused = rc;
	if (is_gone(rc))
		remove_at(loop, at);
}

/* Searches for processes: removes those that have exited and adds new ones. Returns 0 (even if none
 * could be opened), an error of process_ref_find(), -ERR_NO_PROCESS, or -ERR_MANY. */
static int look(struct loop *loop, struct err *err)
{
	const struct series_plan *plan = loop->plan;
	struct process_seen *seen = NULL;
	size_t count = 0;
	int rc;

	reap(loop);
	rc = plan->name ? process_ref_find(plan->name, &seen, &count, err) :
			  process_ref_find_pid(plan->pid, &seen, &count, err);
	if (rc)
		return rc;
	forget(loop, seen, count);
	if (count > 1 && !plan->takes_all) {
		rc = series_several(loop->place, seen, count, true, err);
	} else {
		for (size_t i = 0; i < count; i++)
			add_process(loop, &seen[i]);
		if (!loop->count)
			rc = err_set(err, ERR_NO_PROCESS, loop->place, NULL);
	}
	free(seen);
	return rc;
}

/* ---------------------------------------------------------------- one snapshot */

/* Successive names for one file. */
struct shot_naming {
	const struct series_calls *calls;
	struct series_files *files;
	struct buf path;
	unsigned tries;
};

static int next_name(void *ctx, const char **path, struct err *err)
{
	struct shot_naming *naming = ctx;
	int rc;

	if (naming->tries == SERIES_TRIES)
		return err_set(err, ERR_EXISTS, naming->path.data, NULL);
	rc = series_files_name(
		naming->files, naming->calls->time_ms(), naming->tries++, &naming->path, err);
	*path = naming->path.data;
	return rc;
}

static void print_file(const struct loop *loop, const char *path, const struct series_taken *taken,
	uint64_t from, uint64_t now)
{
	const char *words = balance_words[loop->plan->growth_figure].words;
	char apart[100] = "";

	if (from != KEPT_UNKNOWN_BYTES)
		snprintf(apart, sizeof(apart), ", %s %" PRIu64 " to %" PRIu64, words, from, now);
	else if (now != KEPT_UNKNOWN_BYTES)
		snprintf(apart, sizeof(apart), ", %s %" PRIu64, words, now);
	messages(loop, "%s: %" PRIu64 " block%s, %" PRIu64 " byte%s, held %" PRId64 " ms%s", path,
		taken->block_count, text_plural(taken->block_count), taken->requested_bytes,
		text_plural(taken->requested_bytes), taken->held_ms, apart);
}

/* Returns the number of consecutive failures after which further attempts are pointless. */
static unsigned patience(const struct loop *loop, const struct member *member, enum err_code code)
{
	int64_t failing_ms = loop->calls->clock_ms() - member->failing_from_ms;

	switch (code) {
	case ERR_NOT_TRACED:
	case ERR_NO_STACKS:
	case ERR_BITS:
	case ERR_64_BITS:
	case ERR_PLATFORM:
	case ERR_USAGE: return 1;
	case ERR_TARGET: /* a process that is starting or exiting is unreadable for a moment */
	case ERR_NO_HEAPS:
	case ERR_RIGHTS: return SERIES_UNREADABLE_TRIES;
	default: return failing_ms < SERIES_PATIENCE_MS ? UINT_MAX : SERIES_PATIENCE_TRIES;
	}
}

/* Counts and reports a failure, and ends the series of the process if the fault persists. An exit
 * of the process is not a failure; reap() reports it. */
static void fail(struct loop *loop, struct member *member, const struct err *err)
{
	if (is_gone(-(int)err->code) && process_ref_has_ended(&member->process))
		return;
	loop->result.failed++;
	print_err(loop, "", err);
	member->retry_at_ms = loop->calls->clock_ms() + SERIES_RETRY_MS;
	if (!member->failures++)
		member->failing_from_ms = loop->calls->clock_ms();
	if (!loop->plan->every_ms || member->failures < patience(loop, member, err->code))
		return;
	messages(loop,
		"pid %" PRIu32 ": given up after %u failure%s in a row; %" PRIu64 " file%s written",
		member->id.pid, member->failures, text_plural(member->failures), member->written,
		text_plural(member->written));
	member->is_given_up = true;
	close_member(member);
}

/* Removes old files. An error in doing so is not a failure of the newest file. */
static void remove_old(struct loop *loop, struct member *member, const char *path)
{
	struct err err;

	if (series_files_written(member->files, path, &err))
		print_err(loop, "warning: ", &err);
}

static void capture_one(struct loop *loop, struct member *member, uint64_t figure)
{
	struct shot_naming naming = {.calls = loop->calls, .files = member->files};
	const struct out_names names = {next_name, &naming};
	struct series_taken taken = {0};
	struct err err = {0};
	const char *first = NULL;

	buf_init(&naming.path);
	loop->has_shot = true;
	loop->shot_ms = loop->calls->clock_ms();
	if (next_name(&naming, &first, &err) ||
		loop->calls->take(
			loop->calls->ctx, &member->process, first, &names, &taken, &err)) {
		fail(loop, member, &err);
	} else {
		print_file(loop, naming.path.data, &taken, member->base, figure);
		loop->result.written++;
		loop->result.incomplete += taken.is_incomplete;
		member->written++;
		member->failures = 0;
		member->base = figure;
		remove_old(loop, member, naming.path.data);
	}
	buf_release(&naming.path);
}

static void watch(struct loop *loop, struct member *member)
{
	struct err err = {0};
	uint64_t now = 0;

	if (loop->calls->clock_ms() < member->retry_at_ms)
		return;
	if (process_ref_figure(&member->process, loop->plan->growth_figure, &now, &err))
		fail(loop, member, &err);
	else if (member->base == KEPT_UNKNOWN_BYTES ||
		 (now >= member->base && now - member->base >= loop->plan->growth))
		capture_one(loop, member, now);
}

static void capture_each(struct loop *loop)
{
	for (size_t i = 0; i < loop->count && !loop->calls->is_interrupted(); i++) {
		struct member *member = &loop->members[i];

		if (!member->files || is_full(loop, member))
			continue;
		if (loop->plan->growth)
			watch(loop, member);
		else
			capture_one(loop, member, KEPT_UNKNOWN_BYTES);
	}
	reap(loop);
}

/* ---------------------------------------------------------------- the loop */

/* Waits until the next snapshot is due, the last process has exited, or an interrupt occurs. The
 * number of processes to wait for is limited. If there are more, the exit of the others is noticed
 * when the next snapshot is due. */
static void wait_until_due(struct loop *loop)
{
	const struct series_calls *calls = loop->calls;

	while (!calls->is_interrupted() && calls->clock_ms() < loop->due_ms) {
		intptr_t handles[OS_WAIT_MAX];
		size_t count = 0;

		for (size_t i = 0; i < loop->count && count < OS_WAIT_MAX; i++) {
			if (loop->members[i].files)
				handles[count++] = loop->members[i].process.handle;
		}
		calls->wait(loop->due_ms, handles, count);
		reap(loop);
		if (count && !living(loop, false))
			return;
	}
}

/* Searches for a process, and sets the time of its snapshot or of the next search. */
static void look_for_one(struct loop *loop)
{
	struct err err = {0};

	if (look(loop, &err))
		print_trouble(loop, &err);
	else
		loop->said = 0;
	loop->is_waiting = !living(loop, false);
	loop->due_ms = loop->calls->clock_ms() + (loop->is_waiting ? SERIES_LOOK_MS : 0);
}

/* Adds processes that have started since the last search. If the search fails, the known processes
 * are still captured. */
static void look_for_more(struct loop *loop)
{
	struct err err = {0};
	int rc = look(loop, &err);

	if (rc && rc != -ERR_NO_PROCESS)
		print_trouble(loop, &err);
}

/* Advances due_ms by whole intervals to the first time that is not in the past. */
static void set_next(struct loop *loop)
{
	const struct series_plan *plan = loop->plan;
	int64_t late_ms = loop->calls->clock_ms() - loop->due_ms, steps = 1;
	char text[DURATION_TEXT_BYTES];

	if (late_ms > plan->every_ms)
		steps = (late_ms - 1) / plan->every_ms + 1;
	loop->due_ms += steps * plan->every_ms;
	if (steps > 1 && !plan->growth)
		messages(loop,
			"%" PRId64
			" snapshot%s skipped: the previous one was done %s after it was due",
			steps - 1, text_plural((uint64_t)steps - 1), duration_text(late_ms, text));
}

/* Returns true if nothing remains to be done for the present processes. A single round is done even
 * if it failed. If the loop waits and the process exited without a file, the loop waits for another
 * process. */
static bool is_done(const struct loop *loop)
{
	bool is_there = living(loop, false);

	if (!loop->plan->every_ms)
		return !loop->plan->waits || loop->result.written || is_there;
	return loop->plan->file_count && is_there && !living(loop, true);
}

/* Starts waiting after the last process has exited. A process that restarts continually must not
 * get more files than one that keeps running. */
static void begin_waiting(struct loop *loop)
{
	const struct series_plan *plan = loop->plan;
	int64_t gap_ms = plan->growth	? SERIES_RESTART_MS :
			 plan->every_ms ? plan->every_ms :
					  SERIES_LOOK_MS;

	if (loop->is_waiting)
		return;
	loop->is_waiting = true;
	loop->due_ms = loop->calls->clock_ms();
	if (loop->has_shot && loop->shot_ms + gap_ms > loop->due_ms)
		loop->due_ms = loop->shot_ms + gap_ms;
}

static void run(struct loop *loop)
{
	const struct series_calls *calls = loop->calls;

	while (!calls->is_interrupted()) {
		if (!living(loop, false)) {
			if (!loop->plan->waits)
				return;
			begin_waiting(loop);
		}
		if (calls->clock_ms() < loop->due_ms) {
			wait_until_due(loop);
		} else if (loop->is_waiting) {
			look_for_one(loop);
		} else {
			if (loop->plan->takes_all)
				look_for_more(loop);
			capture_each(loop);
			if (is_done(loop))
				return;
			if (living(loop, false))
				set_next(loop);
		}
	}
}

int series_run(const struct series_plan *plan, const struct series_calls *calls,
	struct series_result *result, struct err *err)
{
	struct loop loop = {.plan = plan, .calls = calls, .place = plan->name};
	char pid[40];
	int rc;

	snprintf(pid, sizeof(pid), "pid %" PRIu32, plan->pid);
	if (!plan->name)
		loop.place = pid;
	rc = look(&loop, err);
	loop.is_waiting = rc == -ERR_NO_PROCESS && plan->waits;
	if (loop.is_waiting) {
		print_trouble(&loop, err);
		rc = 0;
	}
	loop.due_ms = calls->clock_ms() + (loop.is_waiting ? SERIES_LOOK_MS : 0);
	if (loop.is_waiting || living(&loop, false))
		run(&loop);
	if (!rc && (plan->every_ms || calls->is_interrupted()))
		messages(&loop, "%s%" PRIu64 " file%s written",
			calls->is_interrupted() ? "interrupted: " : "", loop.result.written,
			text_plural(loop.result.written));
	*result = loop.result;
	while (loop.count)
		remove_at(&loop, loop.count - 1);
	free(loop.members);
	return rc;
}

int series_exit_status(const struct series_result *result)
{
	return result->failed || result->incomplete || result->is_short ? 2 : 0;
}

/* ---------------------------------------------------------------- the log */

static int append(const char *path, const char *text, size_t len, struct err *err)
{
	struct buf old;
	int rc;

	buf_init(&old);
	buf_printf(&old, "%s.1", path);
	rc = file_append_line(path, text, len, SERIES_LOG_BYTES, old.data, err);
	buf_release(&old);
	return rc;
}

int series_log_start(struct series_log *log, const char *path, struct err *err)
{
	int rc = out_check(path, err);

	*log = (struct series_log){.path = path};
	return rc || !path ? rc : append(path, "", 0, err);
}

int series_log_add(struct series_log *log, int64_t time_ms, const char *line, struct err *err)
{
	char date[DATE_TEXT_BYTES];
	bool was_failing = log->is_failing;
	struct buf text;
	int rc;

	if (!log->path)
		return 0;
	buf_init(&text);
	buf_printf(&text, "%s %s", date_text(time_ms, date), line);
	text_harmless(text.data);
	buf_add(&text, "\n", 1);
	rc = append(log->path, text.data, text.len, err);
	buf_release(&text);
	log->is_failing = rc;
	return was_failing ? 0 : rc;
}
