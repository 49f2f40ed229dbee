#include "diff/report.h"

#include <stddef.h>

const struct report_format report_formats[] = {
	{"text", report_text},
	{NULL, NULL},
};
