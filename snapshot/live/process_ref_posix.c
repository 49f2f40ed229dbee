/* References to Windows processes, on other systems. All functions fail. */
#include "snapshot/live/process_ref.h"

int process_ref_find(const char *name, struct process_seen **seen, size_t *count, struct err *err)
{
	(void)seen;
	(void)count;
	return err_set(err, ERR_PLATFORM, name, NULL);
}

int process_ref_find_pid(uint32_t pid, struct process_seen **seen, size_t *count, struct err *err)
{
	(void)pid;
	(void)seen;
	(void)count;
	return err_set(err, ERR_PLATFORM, "-p", NULL);
}

int process_ref_open(struct process_ref *ref, uint32_t pid, int64_t start_ms, struct err *err)
{
	(void)ref;
	(void)pid;
	(void)start_ms;
	return err_set(err, ERR_PLATFORM, "-p", NULL);
}

void process_ref_close(struct process_ref *ref)
{
	(void)ref;
}

bool process_ref_has_ended(const struct process_ref *ref)
{
	(void)ref;
	return true;
}

int process_ref_figure(
	const struct process_ref *ref, enum balance_figure figure, uint64_t *value, struct err *err)
{
	(void)ref;
	(void)figure;
	(void)value;
	return err_set(err, ERR_PLATFORM, "-p", NULL);
}

int process_ref_target(const struct process_ref *ref, struct target *target, struct err *err)
{
	(void)ref;
	(void)target;
	return err_set(err, ERR_PLATFORM, "-p", NULL);
}
