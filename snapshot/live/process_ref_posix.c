/* There are no Windows processes here. */
#include "snapshot/live/process_ref.h"

int kept_find(const char *name, struct kept_seen **seen, size_t *count, struct err *err)
{
	(void)seen;
	(void)count;
	return err_set(err, ERR_PLATFORM, name, NULL);
}

int kept_find_pid(uint32_t pid, struct kept_seen **seen, size_t *count, struct err *err)
{
	(void)pid;
	(void)seen;
	(void)count;
	return err_set(err, ERR_PLATFORM, "-p", NULL);
}

int kept_open(struct kept *kept, uint32_t pid, int64_t start_ms, struct err *err)
{
	(void)kept;
	(void)pid;
	(void)start_ms;
	return err_set(err, ERR_PLATFORM, "-p", NULL);
}

void kept_close(struct kept *kept)
{
	(void)kept;
}

bool kept_has_ended(const struct kept *kept)
{
	(void)kept;
	return true;
}

int kept_private_bytes(const struct kept *kept, uint64_t *bytes, struct err *err)
{
	(void)kept;
	(void)bytes;
	return err_set(err, ERR_PLATFORM, "-p", NULL);
}

int kept_target(const struct kept *kept, struct target *target, struct err *err)
{
	(void)kept;
	(void)target;
	return err_set(err, ERR_PLATFORM, "-p", NULL);
}
