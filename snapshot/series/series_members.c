#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/parse.h"
#include "core/base/text.h"
#include "core/io/file.h"
#include "snapshot/series/series.h"

static int add_text(const char *path, const char *text, size_t len, struct err *err)
{
	struct buf old;
	int rc;

	buf_init(&old);
	if (buf_printf(&old, "%s.1", path))
		rc = err_set(err, ERR_NOMEM, path, NULL);
	else
		rc = append_line(path, text, len, SERIES_LOG_BYTES, old.data, err);
	buf_release(&old);
	return rc;
}

int series_log_start(struct series_log *log, const char *path, struct err *err)
{
	*log = (struct series_log){.path = path};
	return path ? add_text(path, "", 0, err) : 0;
}

/* Adds "DATE TEXT" to text, as one line. 0 or -ERR_NOMEM. */
static int add_line(struct buf *text, int64_t time_ms, const char *line)
{
	char date[DATE_TEXT_BYTES];
	size_t from = text->len;

	if (buf_printf(text, "%s %s", date_text(time_ms, date), line))
		return -ERR_NOMEM;
	text_harmless(text->data + from);
	return buf_add(text, "\n", 1);
}

/* And that lines before it are not there. */
static int add(const struct series_log *log, int64_t time_ms, const char *line, struct err *err)
{
	char lost[80];
	struct buf text;
	int rc = 0;

	buf_init(&text);
	snprintf(lost, sizeof(lost), "%" PRIu64 " line%s could not be written and %s lost",
		log->lost, log->lost == 1 ? "" : "s", log->lost == 1 ? "is" : "are");
	if (log->lost)
		rc = add_line(&text, time_ms, lost);
	if (!rc)
		rc = add_line(&text, time_ms, line);
	if (rc)
		rc = err_set(err, ERR_NOMEM, log->path, NULL);
	else
		rc = add_text(log->path, text.data, text.len, err);
	buf_release(&text);
	return rc;
}

int series_log_add(struct series_log *log, int64_t time_ms, const char *line, struct err *err)
{
	bool is_known = log->lost;
	int rc = log->path ? add(log, time_ms, line, err) : 0;

	log->lost = rc ? log->lost + 1 : 0;
	return is_known ? 0 : rc;
}

void series_say(const struct series_members *members, const char *format, ...)
{
	char line[2400];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	members->ops->say(members->ctx, text_harmless(line));
}

void series_say_err(const struct series_members *members, const struct err *err)
{
	char text[1600];

	series_say(members, "%s", err_text(err, text, sizeof(text)));
}

void series_say_once(struct series_members *members, const struct err *err)
{
	/* of several processes it tells how large they are, too, which is no news */
	const struct err *news = err->code == ERR_MANY ? &members->several : err;
	const struct err *said = &members->said;

	if (said->code == news->code && !strcmp(said->place, news->place) &&
		!strcmp(said->detail, news->detail))
		return;
	members->said = *news;
	series_say_err(members, err);
}

void series_say_waiting(struct series_members *members)
{
	if (members->said.code != ERR_NO_PROCESS)
		series_say(members, "%s: waiting for such a process", members->plan->what);
	members->said = (struct err){.code = ERR_NO_PROCESS};
}

bool series_member_is_full(const struct series_members *members, const struct series_member *member)
{
	return members->plan->file_count && member->written >= members->plan->file_count;
}

size_t series_members_living(const struct series_members *members)
{
	size_t count = 0;

	for (size_t i = 0; i < members->count; i++)
		count += members->items[i].process != NULL;
	return count;
}

size_t series_members_unfinished(const struct series_members *members)
{
	size_t count = 0;

	for (size_t i = 0; i < members->count; i++)
		count += members->items[i].process &&
			 !series_member_is_full(members, &members->items[i]);
	return count;
}

static void remove_at(struct series_members *members, size_t at)
{
	if (members->items[at].process)
		members->ops->close(members->ctx, members->items[at].process);
	members->count--;
	memmove(members->items + at, members->items + at + 1,
		(members->count - at) * sizeof(*members->items));
}

void series_members_release(struct series_members *members)
{
	while (members->count)
		remove_at(members, members->count - 1);
	free(members->items);
	members->items = NULL;
	members->cap = 0;
}

static bool is_same(const struct series_process *a, const struct series_process *b)
{
	return a->pid == b->pid && a->start_ms == b->start_ms;
}

static bool is_in(const struct series_found *found, const struct series_process *id)
{
	for (size_t i = 0; i < found->count; i++) {
		if (is_same(&found->items[i], id))
			return true;
	}
	return false;
}

static struct series_member *member_of(
	struct series_members *members, const struct series_process *id)
{
	for (size_t i = 0; i < members->count; i++) {
		if (is_same(&members->items[i].id, id))
			return &members->items[i];
	}
	return NULL;
}

/* A member, one that has ended. */
static void say_ended(struct series_members *members, const struct series_member *member)
{
	bool is_short = !member->written ||
			(members->plan->file_count && !series_member_is_full(members, member));

	series_say(members, "pid %" PRIu32 ": the process has ended; %" PRIu64 " file%s of it",
		member->id.pid, member->written, member->written == 1 ? "" : "s");
	if (is_short && !members->plan->waits)
		members->result.is_short = true;
}

void series_members_reap(struct series_members *members)
{
	for (size_t i = members->count; i > 0; i--) {
		struct series_member *member = &members->items[i - 1];

		if (!member->process || !members->ops->has_ended(members->ctx, member->process))
			continue;
		say_ended(members, member);
		members->has_stayed |= member->written > 1;
		remove_at(members, i - 1);
	}
}

/* Forgets those that could not be opened and are there no more. */
static void forget(struct series_members *members, const struct series_found *found)
{
	for (size_t i = members->count; i > 0; i--) {
		if (!members->items[i - 1].process && !is_in(found, &members->items[i - 1].id))
			remove_at(members, i - 1);
	}
}

/* The member for a process, which may be new; NULL: no memory. */
static struct series_member *member_make(
	struct series_members *members, const struct series_process *id)
{
	struct series_member *member = member_of(members, id);

	if (member || array_grow((void **)&members->items, &members->cap, members->count,
			      sizeof(*members->items)))
		return member;
	member = &members->items[members->count++];
	*member = (struct series_member){.id = *id};
	return member;
}

/* *is_news: it failed, and not as it did the last time. One that is gone by now is no member. */
static int take_in(struct series_members *members, const struct series_process *id, bool *is_news,
	struct err *err)
{
	struct series_member *member = member_make(members, id);
	int rc;

	*is_news = true;
	if (!member)
		return err_set(err, ERR_NOMEM, members->plan->what, NULL);
	if (member->process)
		return 0;
	rc = members->ops->open(members->ctx, id, &member->process, err);
	if (!rc)
		return 0;
	member->process = NULL;
	*is_news = member->refused != (enum err_code) - rc;
	member->refused = (enum err_code) - rc;
	if (rc == -ERR_GONE || rc == -ERR_NO_PROCESS) {
		*is_news = false;
		remove_at(members, (size_t)(member - members->items));
	}
	return rc;
}

/* "pid 12 started 2026-11-20T10:25:48.123Z with 1048576 private bytes", cut to size; how long it is. */
static size_t describe(const struct series_process *id, char *text, size_t size)
{
	char date[DATE_TEXT_BYTES];
	int len = snprintf(text, size, "pid %" PRIu32, id->pid);

	if (id->start_ms)
		len += snprintf(text + len, size - (size_t)len, " started %s",
			date_text(id->start_ms, date));
	if (id->private_bytes != SERIES_UNKNOWN_BYTES)
		len += snprintf(text + len, size - (size_t)len, " with %" PRIu64 " private bytes",
			id->private_bytes);
	return (size_t)len;
}

int series_several(
	const char *what, const struct series_found *found, bool with_all, struct err *err)
{
	const char *all = with_all ? "; --all takes each" : "";
	char text[sizeof(err->detail) - 60] = "", one[160]; /* far more than one takes */
	size_t len = 0, i;

	for (i = 0; i < found->count; i++) {
		size_t more = describe(&found->items[i], one, sizeof(one));

		if (len + 2 + more >= sizeof(text))
			break;
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? ", " : "", one);
	}
	if (i == found->count)
		return err_set(err, ERR_MANY, what, "%s%s", text, all);
	return err_set(err, ERR_MANY, what, "%s, and %zu more%s", text, found->count - i, all);
}

/* Each trouble is said once; the last one is the caller's when nobody is left. */
static int take_in_each(
	struct series_members *members, const struct series_found *found, struct err *err)
{
	struct err last = {0}, trouble;
	bool is_unsaid = false, is_news;
	int rc = 0;

	for (size_t i = 0; i < found->count && rc != -ERR_NOMEM; i++) {
		int status = take_in(members, &found->items[i], &is_news, &trouble);

		if (!status || (rc && !is_news))
			continue;
		if (is_unsaid)
			series_say_err(members, &last);
		rc = status;
		last = trouble;
		is_unsaid = is_news;
		members->result.failed += is_news;
	}
	if (rc && series_members_living(members)) {
		if (is_unsaid)
			series_say_err(members, &last);
		return 0;
	}
	if (rc)
		*err = last;
	return rc;
}

/* The error for those that were found; and who they are, apart from how large. */
static int refuse_several(
	struct series_members *members, struct series_found *found, struct err *err)
{
	int rc = series_several(members->plan->what, found, true, err);

	for (size_t i = 0; i < found->count; i++)
		found->items[i].private_bytes = SERIES_UNKNOWN_BYTES;
	series_several(members->plan->what, found, true, &members->several);
	return rc;
}

static int take_in_all(struct series_members *members, struct series_found *found, struct err *err)
{
	if (found->count > 1 && !members->plan->takes_all)
		return refuse_several(members, found, err);
	if (!found->count && !series_members_living(members))
		return err_set(err, ERR_NO_PROCESS, members->plan->what, NULL);
	return take_in_each(members, found, err);
}

int series_members_look(struct series_members *members, struct err *err)
{
	struct series_found found = {0};
	int rc;

	series_members_reap(members);
	rc = members->ops->find(members->ctx, &found, err);
	if (!rc) {
		forget(members, &found);
		rc = take_in_all(members, &found, err);
	}
	free(found.items);
	return rc;
}
