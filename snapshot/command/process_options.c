#include "snapshot/command/process_options.h"

#include <stdlib.h>
#include <string.h>

#include "core/kv.h"
#include "snapshot/live/kept.h"
#include "snapshot/series/series_loop.h"

int process_option(struct process_choice *choice, int id, const char *value, struct err *err)
{
	switch (id) {
	case OPT_PROCESS_PID: choice->pid = value; break;
	case OPT_PROCESS_NAME:
		if (strpbrk(value, "/\\"))
			return err_set(err, ERR_IMAGE_NAME, value, NULL);
		choice->name = value;
		break;
	default: return id;
	}
	choice->count++;
	return 0;
}

int process_choice_check(const struct process_choice *choice, const char *place, struct err *err)
{
	if (choice->count == 1)
		return 0;
	return err_set(err, ERR_USAGE, place,
		choice->count ? "give one of -p and -pn, once" :
				"say which process: -p PID or -pn NAME");
}

int process_pid_parse(const char *text, uint32_t *pid, struct err *err)
{
	uint64_t number;

	if (kv_number(text, 10, &number) || !number || number > UINT32_MAX)
		return err_set(err, ERR_USAGE, text, "a pid is a decimal number");
	*pid = (uint32_t)number;
	return 0;
}

static int refuse_several(const char *name, bool with_all, const struct kept_seen *seen,
	size_t count, struct err *err)
{
	struct series_found found = {.items = calloc(count, sizeof(*found.items))};
	int rc;

	if (!found.items)
		return err_set(err, ERR_NOMEM, name, NULL);
	for (; found.count < count; found.count++)
		found.items[found.count] = (struct series_process){seen[found.count].pid,
			seen[found.count].start_ms, seen[found.count].private_bytes};
	rc = series_several(name, &found, with_all, err);
	free(found.items);
	return rc;
}

int process_choose(
	const struct process_choice *choice, bool with_all, uint32_t *pid, struct err *err)
{
	struct kept_seen *seen = NULL;
	size_t count = 0;
	int rc;

	if (!choice->name)
		return process_pid_parse(choice->pid, pid, err);
	rc = kept_find(choice->name, &seen, &count, err);
	if (!rc && !count)
		rc = err_set(err, ERR_NO_PROCESS, choice->name, NULL);
	else if (!rc && count > 1)
		rc = refuse_several(choice->name, with_all, seen, count, err);
	else if (!rc)
		*pid = seen[0].pid;
	free(seen);
	return rc;
}
