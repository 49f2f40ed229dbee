/* The JSON report of a trend, which has a schema of its own: man/hdiff-json.5, TRENDS. */
#ifndef DIFF_REPORT_JSON_TREND_H
#define DIFF_REPORT_JSON_TREND_H

#include "diff/report/report.h"

/* For report_json(). */
void report_json_trend(struct out *out, const struct report *report);

#endif
