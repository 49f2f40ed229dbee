/*
 * Parses a moment of a recording: a name, mark, duration, percentage, date, or distance from a name
 * or mark.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/parse.h"
#include "core/record/recording_read.h"

/* Parses "40%" or "12.5%" as a share of a length, rounded down. Returns false for other text. For
 * more than 100%, sets `*value` to 0 and `*is_in` to false. */
static bool share_parse(const char *text, uint64_t length, uint64_t *value, bool *is_in)
{
	const char *at = text;
	uint64_t share = 0, unit = 1000000; /* 1% is 1000000 */

	for (; *at >= '0' && *at <= '9' && share <= 1000 * unit; at++)
		share = share * 10 + (uint64_t)(*at - '0') * unit;
	if (at == text)
		return false;
	if (*at == '.' && at[1] >= '0' && at[1] <= '9') {
		for (at++; *at >= '0' && *at <= '9'; at++) {
			unit /= 10;
			share += (uint64_t)(*at - '0') * unit;
		}
	}
	if (strcmp(at, "%") != 0)
		return false;
	*is_in = share <= 100 * UINT64_C(1000000);
	*value = *is_in ? length / 100000000 * share + length % 100000000 * share / 100000000 : 0;
	return true;
}

/* Stores the distance at the end of the text ("-1s" in "peak-1s"), and returns the position of its
 * sign. Returns NULL if there is no distance. */
static const char *find_distance(const char *moment, int64_t *ms)
{
	const char *sign = strrchr(moment, '-'), *plus = strrchr(moment, '+');

	sign = !sign || (plus && plus > sign) ? plus : sign;
	return sign && !duration_parse(sign + 1, ms) ? sign : NULL;
}

/* Reports an unknown moment. `is_past`: the moment is after the end of the recording. */
static int no_moment(
	const struct recording *recording, const char *moment, bool is_past, struct err *err)
{
	uint64_t length_ms = recording->facts.length_ms;
	int64_t ms;
	const char *sign = find_distance(moment, &ms);
	size_t len = sign ? (size_t)(sign - moment) : strlen(moment);

	if (*moment && !moment[strspn(moment, "0123456789.")])
		return err_set(err, ERR_MOMENT, recording->path,
			"no mark is named %s; a time needs its unit: %ss", moment, moment);
	if (!is_past && len && len <= RECORD_TEXT_MAX)
		return err_set(err, ERR_MOMENT, recording->path, "no mark is named %.*s", (int)len,
			moment);
	return err_set(err, ERR_MOMENT, recording->path,
		"%s: the recording is %" PRIu64 ".%03u s long", moment, length_ms / 1000,
		(unsigned)(length_ms % 1000));
}

/* Fails if several marks have the label at the start of a moment. `len` is the length of the
 * label. */
static int check_label(
	const struct recording *recording, const char *moment, size_t len, struct err *err)
{
	const struct record_facts *facts = &recording->facts;
	const struct record_mark *first = NULL;

	for (size_t i = 0; i < facts->mark_count; i++) {
		const struct record_mark *mark = &facts->marks[i];

		if (strlen(mark->label) != len || memcmp(mark->label, moment, len) != 0)
			continue;
		if (first)
			return err_set(err, ERR_MOMENT, recording->path,
				"several marks are named %s: give the time of one, such as "
				"%" PRIu64 "ms or %" PRIu64 "ms",
				first->label, first->time_ms, mark->time_ms);
		first = mark;
	}
	return 0;
}

/* Parses a duration, a percentage or a date. Returns true if the text is one of these. Sets
 * `*is_in` if that time lies within the recording; only then stores the time. */
static bool time_parse(
	const struct record_facts *facts, const char *moment, uint64_t *time_ms, bool *is_in)
{
	int64_t ms, last_ms;

	if (!duration_parse(moment, &ms)) {
		*is_in = (uint64_t)ms <= facts->length_ms;
		*time_ms = (uint64_t)ms;
		return true;
	}
	if (share_parse(moment, facts->length_ms, time_ms, is_in))
		return true;
	if (date_span_parse(moment, &ms, &last_ms))
		return false;
	*is_in = facts->time_ms && ms >= facts->time_ms &&
		 (uint64_t)(ms - facts->time_ms) <= facts->length_ms;
	*time_ms = *is_in ? (uint64_t)(ms - facts->time_ms) : 0;
	return true;
}

static const struct record_mark *find_mark(const struct record_facts *facts, const char *label)
{
	for (size_t i = 0; i < facts->mark_count; i++) {
		if (!strcmp(facts->marks[i].label, label))
			return &facts->marks[i];
	}
	return NULL;
}

/* Parses "start", "end", "peak" or the label of a mark. Returns true, and stores position and time,
 * if the name is one of these. */
static bool name_parse(
	const struct record_facts *facts, const char *name, uint64_t *position, uint64_t *time_ms)
{
	const struct record_mark *mark = find_mark(facts, name);

	if (!strcmp(name, "start")) {
		*position = facts->start_position;
		*time_ms = 0;
	} else if (!strcmp(name, "end")) {
		*position = facts->event_count;
		*time_ms = facts->length_ms;
	} else if (!strcmp(name, "peak")) {
		*position = facts->peak.position;
		*time_ms = facts->peak.time_ms;
	} else if (mark) {
		*position = mark->position;
		*time_ms = mark->time_ms;
	}
	return mark || !strcmp(name, "start") || !strcmp(name, "end") || !strcmp(name, "peak");
}

/* Parses a distance: "peak-1s", "noon+500ms", or "-1s" (before the end). Returns true if the text
 * is a distance. Sets `*is_in` if the resulting time lies within the recording; only then stores
 * the time. */
static bool distance_parse(
	const struct record_facts *facts, const char *moment, uint64_t *time_ms, bool *is_in)
{
	char name[RECORD_TEXT_MAX + 1];
	uint64_t position, from_ms = facts->length_ms;
	int64_t ms;
	const char *sign = find_distance(moment, &ms);

	if (!sign || (size_t)(sign - moment) > RECORD_TEXT_MAX)
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)(sign - moment), moment);
	if ((*name || *sign == '+') && !name_parse(facts, name, &position, &from_ms))
		return false;
	*is_in =
		*sign == '-' ? (uint64_t)ms <= from_ms : (uint64_t)ms <= facts->length_ms - from_ms;
	*time_ms = !*is_in ? 0 : *sign == '-' ? from_ms - (uint64_t)ms : from_ms + (uint64_t)ms;
	return true;
}

int recording_position(struct recording *recording, const char *moment, uint64_t *position,
	uint64_t *time_ms, struct err *err)
{
	const struct record_facts *facts = &recording->facts;
	const bool is_word =
		!strcmp(moment, "start") || !strcmp(moment, "end") || !strcmp(moment, "peak");
	size_t label_len = strlen(moment);
	bool is_known = true, is_in = true, has_position = false;
	uint64_t at = 0, ms = 0;
	int64_t distance_ms;
	int rc = 0;

	if (!is_word && time_parse(facts, moment, &ms, &is_in))
		label_len = 0;
	else if (name_parse(facts, moment, &at, &ms))
		has_position = true;
	else if (distance_parse(facts, moment, &ms, &is_in))
		label_len = (size_t)(find_distance(moment, &distance_ms) - moment);
	else
		is_known = false;
	if (!is_known || !is_in)
		return no_moment(recording, moment, !is_in, err);
	if (!is_word && label_len)
		rc = check_label(recording, moment, label_len, err);
	if (!rc && !has_position)
		rc = record_events_until(recording, ms, &at, err);
	if (rc)
		return rc;
	*position = at;
	*time_ms = ms;
	return 0;
}
