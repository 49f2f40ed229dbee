#include <inttypes.h>
#include <string.h>

#include "core/base/parse.h"
#include "core/record/recording_read.h"

/* "40%" or "12.5%" of a length, rounded down. False when it is no such text; more than all is 0 and a false *is_in. */
static bool share_parse(const char *text, uint64_t length, uint64_t *value, bool *is_in)
{
	const char *at = text;
	uint64_t share = 0, unit = 1000000; /* of millionths of a hundredth */

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

static int no_moment(const struct recording *recording, const char *moment, struct err *err)
{
	uint64_t ms = recording->facts.length_ms;

	return err_set(err, ERR_MOMENT, recording->path, "%s: it is %" PRIu64 ".%03u s long",
		moment, ms / 1000, (unsigned)(ms % 1000));
}

/* A span, a share or a wall time: true, and the time in the recording, when *is_in. */
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

int recording_position(struct recording *recording, const char *moment, uint64_t *position,
	uint64_t *time_ms, struct err *err)
{
	const struct record_facts *facts = &recording->facts;
	const struct record_mark *mark = find_mark(facts, moment);
	uint64_t at, ms = 0;
	bool is_in;
	int rc;

	if (!strcmp(moment, "start")) {
		at = facts->start_position;
	} else if (!strcmp(moment, "end")) {
		at = facts->event_count;
		ms = facts->length_ms;
	} else if (!strcmp(moment, "peak")) {
		at = facts->peak.position;
		ms = facts->peak.time_ms;
	} else if (time_parse(facts, moment, &ms, &is_in)) {
		if (!is_in)
			return no_moment(recording, moment, err);
		rc = record_events_until(recording, ms, &at, err);
		if (rc)
			return rc;
	} else if (mark) {
		at = mark->position;
		ms = mark->time_ms;
	} else {
		return no_moment(recording, moment, err);
	}
	*position = at;
	*time_ms = ms;
	return 0;
}
