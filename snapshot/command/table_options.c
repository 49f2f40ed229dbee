#include "snapshot/command/table_options.h"

#include <string.h>

#include "core/kv.h"
#include "core/size.h"

#define MB_MIN 16
#define MB_MAX (sizeof(void *) == 8 ? 1 << 20 : 1024)
#define SAMPLE_MAX ((uint64_t)1 << 40)

int table_limit_parse(const char *text, uint64_t *bytes, struct err *err)
{
	uint64_t megabytes;

	if (kv_number(text, 10, &megabytes) || megabytes < MB_MIN || megabytes > MB_MAX)
		return err_set(err, ERR_USAGE, "--max-mb", "'%s' is no number of MiB from %d to %d",
			text, MB_MIN, (int)MB_MAX);
	*bytes = megabytes << 20;
	return 0;
}

int table_sample_parse(const char *text, uint64_t *bytes, struct err *err)
{
	uint64_t mean;

	if (size_parse(text, strlen(text), &mean) || !mean || mean > SAMPLE_MAX)
		return err_set(err, ERR_USAGE, "--sample",
			"'%s' is no number of bytes up to 1T; it is given as 65536, 512K or 1M",
			text);
	*bytes = mean;
	return 0;
}
