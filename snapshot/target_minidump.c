#include "snapshot/process.h"

int target_open_minidump(struct target *target, const char *path, struct err *err)
{
	(void)target;
	return err_set(err, ERR_NOT_MINIDUMP, path, NULL);
}
