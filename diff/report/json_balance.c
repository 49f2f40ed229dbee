/* The balance of a process in JSON: man/hdiff-json.5 documents it and must change with this file. */
#include "diff/report/json.h"

#include "diff/query/balance_view.h"

void json_balance(struct json *json)
{
	const struct balance_view *balance = &json->view->balance;
	const size_t count = json->comparison->dump_count;

	if (!balance->count)
		return;
	json_open_line(json, "balance", '[');
	for (size_t i = 0; i < balance->count; i++) {
		const struct balance_row *row = &balance->rows[i];

		json_open_line(json, NULL, '{');
		json_text(json, "key", row->key);
		json_text(json, "unit", row->is_count ? "count" : "bytes");
		json_open(json, "values", '[');
		for (size_t k = 0; k < count; k++)
			json_known(json, NULL, row->values[k], row->values[k] != BALANCE_UNKNOWN);
		json_close(json, ']');
		if (count > 1)
			json_growth(json, "change", row->last, row->first, row->has_change);
		if (row->has_trend) {
			json_text(json, "verdict", trend_verdict_name(row->trend.verdict));
			if (json->has_rates)
				json_fraction(json, "per_hour", row->trend.bytes_per_hour);
			else
				json_known(json, "per_hour", 0, false);
		}
		json_close(json, '}');
	}
	json_close(json, ']');
}
