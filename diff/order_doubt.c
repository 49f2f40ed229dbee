/* Compares the order of dumps by time with the numbers in their names, and with the order in which
 * the user named them. */
#include "diff/order_doubt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/parse.h"
#include "core/base/text.h"
#include "diff/dump_identity.h"
#include "diff/file_list.h"
#include "diff/read/read_dump.h"
#include "diff/report/report_parts.h"

#define STEP_MAX 2 /* one file of a numbered series may be missing */
#define YEAR_MS (366 * (int64_t)DAY_MS) /* a process rarely runs that long between two dumps */

/* ---------------------------------------------------------------- two names */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Returns true if a number is the hour or the day in a dump's date. */
static bool is_of_date(uint64_t number, const struct dump_sums *dump, bool is_day)
{
	char text[DATE_TEXT_BYTES]; /* "2026-11-20T10:25:00.000Z" */

	date_text(dump->id.time_ms, text);
	return strlen(text) > 13 && number == strtoull(text + (is_day ? 8 : 11), NULL, 10);
}

/* Returns the index at which two names first differ, if both have a number there. Returns SIZE_MAX
 * if they differ otherwise. */
static size_t find_number(const char *a, const char *b)
{
	size_t at = 0;

	while (a[at] && a[at] == b[at])
		at++;
	while (at && is_digit(a[at - 1]))
		at--;
	return is_digit(a[at]) && is_digit(b[at]) ? at : SIZE_MAX;
}

/* Returns true if the names differ only in a number, which is a little greater in `y`. Numbers that
 * are days or hours start again. */
static bool follows_by_name(const struct dump_place *x, const struct dump_place *y)
{
	const char *a = x->dump->id.path, *b = y->dump->id.path;
	size_t at = find_number(a, b);
	char *a_end, *b_end;
	uint64_t from, to;

	if (at == SIZE_MAX)
		return false;
	from = strtoull(a + at, &a_end, 10);
	to = strtoull(b + at, &b_end, 10);
	/* Both are UINT64_MAX if they are too long. */
	if (strcmp(a_end, b_end) != 0 || to <= from || to - from > STEP_MAX)
		return false;
	for (int is_day = 0; is_day < 2; is_day++) {
		if (is_of_date(from, x->dump, is_day) && is_of_date(to, y->dump, is_day))
			return false;
	}
	return true;
}

/* Returns true if the user named `x` before `y`, although it is after `y` in alphabetic order. */
static bool follows_by_hand(const struct dump_place *x, const struct dump_place *y)
{
	const char *a = x->dump->id.path, *b = y->dump->id.path;

	return x->number < y->number && strcmp(a, b) > 0 && text_compare(a, b) > 0;
}

/* ---------------------------------------------------------------- contradictions */

static bool is_earlier(const struct dump_place *x, const struct dump_place *y)
{
	return x->dump->id.time_ms < y->dump->id.time_ms;
}

static int by_name(const void *a, const void *b)
{
	const struct dump_place *x = a, *y = b;

	return file_list_name_order(x->dump->id.path, y->dump->id.path);
}

static int by_number(const void *a, const void *b)
{
	const struct dump_place *x = a, *y = b;

	return int64_order((int64_t)x->number, (int64_t)y->number);
}

/* Two dumps whose times contradict the order of their names, or of the command line. */
struct contradiction {
	const struct dump_place *first, *second; /* in the order of names or of the command line */
	const char *order;
};

static bool find_by_name(struct dump_place *places, size_t count, struct contradiction *found)
{
	size_t pairs = 0, bad = 0;

	qsort(places, count, sizeof(*places), by_name);
	for (size_t i = 1; i < count; i++) {
		if (!follows_by_name(&places[i - 1], &places[i]))
			continue;
		pairs++;
		if (is_earlier(&places[i], &places[i - 1]) && !bad++)
			*found = (struct contradiction){&places[i - 1], &places[i], "name"};
	}
	return bad && (bad < pairs || pairs == 1);
}

/* Returns true if all names have numbers whose order is that of the times. */
static bool is_order_of_names(struct dump_place *places, size_t count)
{
	size_t at = 1;

	qsort(places, count, sizeof(*places), by_name);
	while (at < count && !is_earlier(&places[at], &places[at - 1]) &&
		find_number(places[at - 1].dump->id.path, places[at].dump->id.path) != SIZE_MAX)
		at++;
	return at >= count;
}

static bool find_by_hand(struct dump_place *places, size_t count, struct contradiction *found)
{
	size_t backwards = 0;

	for (size_t i = 0; i < count; i++) {
		if (!places[i].dump->id.has_wall_time)
			return false;
	}
	if (count < 3 || is_order_of_names(places, count))
		return false;
	found->first = NULL;
	qsort(places, count, sizeof(*places), by_number);
	for (size_t i = 1; i < count; i++) {
		if (!is_earlier(&places[i], &places[i - 1]))
			continue;
		backwards++;
		if (!found->first && follows_by_hand(&places[i - 1], &places[i]))
			*found = (struct contradiction){
				&places[i - 1], &places[i], "place on the command line"};
	}
	return found->first && backwards < count - 1;
}

static const struct dump_sums *warn_contradiction(
	const struct contradiction *found, const struct order_rules *rules)
{
	bool is_first = !found->second->is_used;
	const struct dump_place *its = is_first ? found->first : found->second,
				*other = is_first ? found->second : found->first;
	char words[1000], time[DATE_TEXT_BYTES], other_time[DATE_TEXT_BYTES];

	if (!its->is_used)
		return NULL;
	snprintf(words, sizeof(words),
		"by its time, %s, it is %s %.600s (%s), by its %s %s it: the clock may have been "
		"set; sorted by time%s",
		report_dump_time(its->dump, time), is_first ? "after" : "before",
		other->dump->id.path, report_dump_time(other->dump, other_time), found->order,
		is_first ? "before" : "after",
		rules->force || rules->is_pair ? "" : ", without rates");
	sums_warn(its->dump, words);
	if (!rules->force) {
		its->dump->id.date_doubt = DATE_ODD;
		its->dump->id.is_misplaced = true;
	}
	return its->dump;
}

/* ---------------------------------------------------------------- leaps in time */

static void warn_leap(const struct dump_sums *from, struct dump_sums *to, bool has_rates)
{
	char words[1000], time[DATE_TEXT_BYTES], other_time[DATE_TEXT_BYTES];
	int64_t days = (to->id.time_ms - from->id.time_ms) / DAY_MS;

	snprintf(words, sizeof(words),
		"its time, %s, is %" PRId64 " days after that of %.600s (%s): the clock may have "
		"been set%s",
		report_dump_time(to, time), days, from->id.path, report_dump_time(from, other_time),
		has_rates ? ", so there are no rates" : "");
	sums_warn(to, words);
}

/* Checks two dumps that follow each other in time. */
static const struct dump_sums *check_leap(
	const struct dump_place *x, const struct dump_place *y, const struct order_rules *rules)
{
	struct dump_identity *from = &x->dump->id, *to = &y->dump->id;
	bool is_early = from->date_doubt == DATE_EARLY && to->date_doubt != DATE_EARLY,
	     is_ahead = to->date_doubt == DATE_AHEAD && from->date_doubt != DATE_AHEAD,
	     is_far =
		     !is_early && to->time_ms - from->time_ms > YEAR_MS && x->is_used && y->is_used,
	     is_placed = follows_by_name(x, y) || (!rules->is_by_name && follows_by_hand(x, y));

	if (is_far)
		warn_leap(x->dump, y->dump, !rules->force && !rules->is_pair);
	if (!rules->force && is_far)
		*(is_ahead ? &from->date_doubt : &to->date_doubt) = DATE_ODD;
	if (!rules->force && !is_placed) {
		from->is_misplaced |= is_early;
		to->is_misplaced |= is_ahead || is_far;
	}
	return is_far ? y->dump : NULL;
}

/* ---------------------------------------------------------------- the check */

static const struct dump_sums *check_clockless(
	struct dump_place *places, size_t count, const struct order_rules *rules)
{
	struct dump_place *sorted = xcalloc(count + 1, sizeof(*sorted));
	const struct dump_sums *warned = NULL;
	struct contradiction found;

	memcpy(sorted, places, count * sizeof(*sorted));
	if (find_by_name(sorted, count, &found) ||
		(!rules->is_by_name && find_by_hand(sorted, count, &found))) {
		warned = warn_contradiction(&found, rules);
	} else {
		for (size_t i = 1; i < count; i++) {
			const struct dump_sums *dump =
				check_leap(&places[i - 1], &places[i], rules);

			warned = dump ? dump : warned;
		}
	}
	free(sorted);
	return warned;
}

const struct dump_sums *order_check(
	const struct dump_place *places, size_t count, const struct order_rules *rules)
{
	struct dump_place *clockless = xcalloc(count + 1, sizeof(*clockless));
	const struct dump_sums *warned;
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		const struct dump_sums *dump = places[i].dump;

		if (dump->id.time_ms && !dump->id.clock_ms && !dump->window.position)
			clockless[found++] = places[i];
	}
	warned = check_clockless(clockless, found, rules);
	free(clockless);
	return warned;
}
