/*
 * What both JSON reports have in common: sums, totals, rows and frames as man/hdiff-json.5 has them.
 * What is wrong with the output is kept in out.
 */
#ifndef DIFF_JSON_PARTS_H
#define DIFF_JSON_PARTS_H

#include "diff/ask/view.h"
#include "diff/report/json_write.h"

void json_census(
	struct json *json, const char *key, const struct census *census, bool has_overhead);

/* "old", "new" and "growth" of what the caller opened. */
void json_change(struct json *json, const struct change *change, bool has_overhead);

/* A line with the sums of what is selected, of what is not, and of everything. */
void json_totals(struct json *json, const struct view *view);

/* Nothing when ms is 0. */
void json_date(struct json *json, const char *key, int64_t ms);

/* "time" or "local_time", when it is known. */
void json_dump_time(struct json *json, const struct sums *dump);

/* What a file lacks. */
void json_lacks(struct json *json, bool is_cut, const char *const *warnings, size_t count);

/* What else a dump says of itself: "sample_bytes" to "warnings". */
void json_dump_state(struct json *json, const struct sums *dump);

/* "kind" to "ids" of a row. */
void json_row_names(struct json *json, const struct row *row);

/* "candidate_count", and "frames" or "candidates", of row number. frames is for use here. */
void json_row_frames(
	struct json *json, const struct view *view, uint32_t number, struct frames *frames);

/* A line each with how rows are made and how frames are turned. */
void json_asked(struct json *json, const struct view *view);

/* A line each with the numbers of rows and groups. */
void json_counts(struct json *json, const struct view *view);

#endif
