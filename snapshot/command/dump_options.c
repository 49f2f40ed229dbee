#include "snapshot/command/dump_options.h"

#include <stdio.h>
#include <string.h>

#include "core/os.h"
#include "snapshot/command/packed_name.h"

int dump_option(struct take *take, int id, const char *value, struct err *err)
{
	switch (id) {
	case OPT_DUMP_STACKS: return capture_stacks_parse(value, &take->options.stacks, err);
	case OPT_DUMP_BY_STACK: take->by_stack = true; return 0;
	case OPT_DUMP_GZIP: take->is_packed = true; return 0;
	case OPT_DUMP_FORCE: take->is_forced = true; return 0;
	case OPT_DUMP_VERBOSE: take->is_verbose = true; return 0;
	default: return id;
	}
}

int dump_check_out(const struct take *take, const char *out, const char *option, struct err *err)
{
	bool is_file = out && strcmp(out, "-") != 0;

	if (take->is_packed && !is_file && os_is_terminal(stdout))
		return err_set(err, ERR_USAGE, "--gzip", "nobody reads that on a terminal; give %s",
			option);
	return 0;
}

int dump_name_add(
	struct buf *path, const char *pattern, const struct file_names *names, bool is_packed)
{
	struct buf name;
	int rc;

	if (!is_packed)
		return file_pattern_add(path, pattern, names);
	buf_init(&name);
	rc = file_pattern_add(&name, pattern, names);
	if (!rc)
		rc = packed_name_add(path, name.data);
	buf_release(&name);
	return rc;
}
