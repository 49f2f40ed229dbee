#include "diff/report/report.h"

#include <stddef.h>

const struct report_format report_formats[] = {
	{"text", report_text},
	{"json", report_json},
	{"csv", report_csv},
	{"folded", report_folded},
	{NULL, NULL},
};
