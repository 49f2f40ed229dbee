#include "diff/report/report.h"

#include <stddef.h>

const struct report_format report_formats[] = {
	{"text", report_text, false},
	{"json", report_json, false},
	{"csv", report_csv, false},
	{"folded", report_folded, true},
	{NULL, NULL, false},
};
